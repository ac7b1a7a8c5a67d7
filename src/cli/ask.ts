// A question on the terminal.
import { createInterface } from 'node:readline'
import { Failure } from './failure.ts'
import type { Terminal } from './terminal.ts'

/** How shells tell of Ctrl-C. */
export const INTERRUPTED = 130

/** What is typed; nothing at all when the input ends. */
export function ask({ stdin, stderr }: Terminal, question: string): Promise<string> {
  const lines = createInterface({ input: stdin, output: stderr })
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
