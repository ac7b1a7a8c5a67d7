// The tokens of the environment: one for reading and one for writing, given in it or in files that it names.
import { parseTokenList, type TokenSource } from '../../base/token-list.ts'
import { hashOf } from '../../engine/token-secret.ts'
import { readCredential } from '../../runtime/credential-files.ts'
import type { Read } from '../../runtime/follow-files.ts'
import type { Identity } from './identity.ts'

/** By the digest of each token: the time of a lookup reveals nothing about how much of a guess was right. */
export type SharedTokens = ReadonlyMap<string, Identity>

const READER: Identity = { name: 'reader', via: 'environment', grant: { role: 'viewer' } }
const WRITER: Identity = { name: 'writer', via: 'environment', grant: { role: 'admin' } }
/** Shorter ones can be guessed. */
const MIN_LENGTH = 16

export function readSharedTokens(
  read: TokenSource,
  write: TokenSource,
): Read<{ readonly tokens: SharedTokens; readonly hasWeak: boolean }> {
  const problems: string[] = []
  const [readers, writers] = [tokensOf(read, problems), tokensOf(write, problems)]
  if (problems.length > 0) return { ok: false, problems: [...new Set(problems)] }
  const tokens = new Map([
    ...readers.map((token) => [hashOf(token), READER] as const),
    ...writers.map((token) => [hashOf(token), WRITER] as const),
  ])
  const hasWeak = [...readers, ...writers].some((token) => token.length < MIN_LENGTH)
  return { ok: true, value: { tokens, hasWeak } }
}

export function filesOf(...sources: readonly TokenSource[]): string[] {
  return [...new Set(sources.flatMap((source) => ('file' in source ? source.file : [])))]
}

/** Returns the tokens; adds what is wrong with them to the problems. */
export function tokensOf(source: TokenSource, problems: string[]): readonly string[] {
  if ('tokens' in source) return source.tokens
  const { file, variable } = source
  const read = readCredential(file)
  const { tokens, problem } = read.ok ? parseTokenList(read.text) : { tokens: [], problem: read.why }
  if (problem) problems.push(`${variable} ${file}: ${problem}`)
  return tokens
}
