// Questions on the terminal.
import { openSync } from 'node:fs'
import { createInterface, type Interface } from 'node:readline'
import { Writable } from 'node:stream'
import { ReadStream, WriteStream } from 'node:tty'
import { Failure, unmet } from '../failure.ts'
import { hasCursor, isInteractive, type Terminal } from '../output/terminal.ts'

/** How shells tell of Ctrl-C. */
export const INTERRUPTED = 130

/** Where somebody can be asked. */
export interface Asking {
  readonly env: Terminal['env']
  readonly stdin: NodeJS.ReadStream
  readonly stderr: NodeJS.WriteStream
  close(): void
}

/**
 * The terminal that somebody sits at, or undefined when there is none. Like git and ssh do: when stdin is a pipe or
 * stderr a file, it is the terminal that the process belongs to.
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

/** What is typed; nothing at all when the input ends. */
function ask(asking: Asking, question: string): Promise<string> {
  const { stdin, stderr } = asking
  const isEdited = hasCursor(asking, stderr)
  return read(asking, question, createInterface({ input: stdin, output: stderr, terminal: isEdited }))
}

/** The same for what must not stand on the screen. */
export async function askHidden(terminal: Terminal, question: string): Promise<string> {
  const { stdin, stderr } = terminal
  const output = new Writable({ write: (_chunk, _encoding, done) => done() })
  // From here on the terminal shows nothing of what is typed.
  const lines = createInterface({ input: stdin, output, terminal: true })
  stderr.write(question)
  const answer = await read(terminal, '', lines)
  stderr.write('\n')
  return answer
}

/** Goes on only when this word is typed. */
export async function confirm(asking: Asking, question: string, word: string): Promise<void> {
  const answer = (await ask(asking, `${question} Type "${word}" to go on: `)).trim().toLowerCase()
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
    // A terminal that readline does not edit lines on makes a signal of Ctrl-C itself.
    process.once('SIGINT', interrupt)
    lines.question(question, (answer) => {
      finish()
      resolve(answer)
    })
  })
}
