// Questions on the terminal.
import { createInterface, type Interface } from 'node:readline'
import { Writable } from 'node:stream'
import { Failure, unmet } from './failure.ts'
import type { Terminal } from './terminal.ts'

/** How shells tell of Ctrl-C. */
export const INTERRUPTED = 130

/** What is typed; nothing at all when the input ends. */
export function ask(terminal: Terminal, question: string): Promise<string> {
  const { stdin, stderr } = terminal
  return read(terminal, question, createInterface({ input: stdin, output: stderr }))
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
export async function confirm(terminal: Terminal, question: string, word = 'yes'): Promise<void> {
  const answer = (await ask(terminal, `${question} Type "${word}" to go on: `)).trim().toLowerCase()
  if (answer !== word && !(word === 'yes' && answer === 'y')) throw unmet('nothing was changed')
}

function read({ stderr }: Terminal, question: string, lines: Interface): Promise<string> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      stderr.write('\n')
      resolve('')
    }
    lines.once('close', end)
    lines.once('SIGINT', () => {
      lines.off('close', end)
      lines.close()
      stderr.write('\n')
      reject(new Failure(INTERRUPTED, 'nothing was changed'))
    })
    lines.question(question, (answer) => {
      lines.off('close', end)
      lines.close()
      resolve(answer)
    })
  })
}
