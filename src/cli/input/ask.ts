// Questions on the terminal.
import { openSync } from 'node:fs'
import { createInterface, type Interface } from 'node:readline'
import { Writable } from 'node:stream'
import { ReadStream, WriteStream } from 'node:tty'
import { Failure, unmet } from '../failure.ts'
import { hasCursor, isInteractive, type Terminal } from '../output/terminal.ts'
import { wrapFor } from '../output/wrap.ts'

/** The exit code of a program that Ctrl-C has ended, as shells have it. */
export const INTERRUPTED = 130

/** A terminal to ask on. */
export interface Asking {
  readonly env: Terminal['env']
  readonly stdin: NodeJS.ReadStream
  readonly stderr: NodeJS.WriteStream
  close(): void
}

/**
 * Opens the terminal to ask on; undefined when there is none. When stdin is a pipe or stderr a file, it is the
 * controlling terminal of the process, as with git and ssh.
 */
export function openAsking(terminal: Terminal): Asking | undefined {
  const { env, stdin, stderr } = terminal
  if (isInteractive(terminal)) return { env, stdin, stderr, close() {} }
  try {
    const input = new ReadStream(openSync('/dev/tty', 'r'))
    const output = new WriteStream(openSync('/dev/tty', 'w'))
    const close = (): void => {
      input.destroy()
      output.destroy()
    }
    return { env, stdin: input, stderr: output, close }
  } catch {
    return undefined
  }
}

/** Asks for a line; returns an empty one when the input ends. */
function ask(asking: Asking, question: string): Promise<string> {
  const { stdin, stderr } = asking
  const isEdited = hasCursor(asking, stderr)
  return read(asking, question, createInterface({ input: stdin, output: stderr, terminal: isEdited }))
}

/** Asks for a line that is not shown while it is typed. */
export async function askHidden(terminal: Terminal, question: string): Promise<string> {
  const { stdin, stderr } = terminal
  const output = new Writable({ write: (_chunk, _encoding, done) => done() })
  // readline writes what is typed to its output, which discards it.
  const lines = createInterface({ input: stdin, output, terminal: true })
  stderr.write(question)
  const answer = await read(terminal, '', lines)
  stderr.write('\n')
  return answer
}

/** Throws unless this word is typed. */
export async function confirm(asking: Asking, question: string, word: string): Promise<void> {
  const { stderr } = asking
  const order = `Type "${word}" to go on: `
  const lines = wrapFor(stderr, question).split('\n')
  const last = lines.at(-1) ?? ''
  const fits = !stderr.isTTY || last.length + 1 + order.length < (stderr.columns || 80)
  const above = fits ? lines.slice(0, -1) : lines
  for (const line of above) stderr.write(`${line}\n`)
  const answer = (await ask(asking, fits ? `${last} ${order}` : order)).trim().toLowerCase()
  if (answer !== word.toLowerCase() && !(word === 'yes' && answer === 'y')) throw unmet('nothing was changed')
}

function read({ stderr }: Pick<Terminal, 'stderr'>, question: string, lines: Interface): Promise<string> {
  return new Promise((resolve, reject) => {
    const finish = (): void => {
      lines.off('close', end)
      process.off('SIGINT', interrupt)
      lines.close()
    }
    const end = (): void => {
      finish()
      stderr.write('\n')
      resolve('')
    }
    const interrupt = (): void => {
      finish()
      stderr.write('\n')
      reject(new Failure(INTERRUPTED, 'nothing was changed'))
    }
    lines.once('close', end)
    lines.once('SIGINT', interrupt)
    // Where readline does not edit lines, the terminal turns Ctrl-C into a signal.
    process.once('SIGINT', interrupt)
    lines.question(question, (answer) => {
      finish()
      resolve(answer)
    })
  })
}
