// Tokens from files or stdin: on the command line they would show in lists of processes.

import { type GlobalFlags, parseToken } from '../config/settings.ts'
import { usage } from '../failure.ts'
import type { Terminal } from '../output/terminal.ts'
import { readStdin, readText, STDIN } from './read-files.ts'

/** Tokens from files, which replace the flags of the same names. */
export interface GivenTokens {
  readonly apiToken?: string
  readonly writeToken?: string
}

const FLAGS = [
  { token: 'apiToken', file: 'apiTokenFile', name: '--api-token' },
  { token: 'writeToken', file: 'writeTokenFile', name: '--write-token' },
] as const

export async function readTokenFiles(terminal: Terminal, flags: GlobalFlags): Promise<GivenTokens> {
  const lines = await linesFor(terminal, [flags.apiTokenFile, flags.writeTokenFile])
  const tokens: Record<string, string> = {}
  for (const { token, file, name } of FLAGS) {
    const path = flags[file]
    if (path === undefined) continue
    if (flags[token] !== undefined) throw usage(`${name} and ${name}-file are both given: give one of them`)
    const text = path === STDIN ? lines.shift() : readText(path)
    const given = parseToken(text, `${name}-file`)
    if (given === undefined) throw usage(`${name}-file: ${path} holds no token`)
    tokens[token] = given
  }
  return tokens
}

/** Reads a line of stdin for each source that is stdin. */
export async function linesFor(
  terminal: Terminal,
  sources: readonly (string | undefined)[],
): Promise<string[]> {
  const wanted = sources.filter((source) => source === STDIN).length
  if (wanted === 0) return []
  const lines = (await readStdin(terminal))
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  if (lines.length < wanted)
    throw usage(`stdin holds ${lines.length} lines, and ${wanted} tokens are to be read from it`)
  return lines
}
