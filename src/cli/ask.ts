// A question on the terminal.
import { createInterface } from 'node:readline/promises'
import { Failure } from './failure.ts'
import type { Terminal } from './terminal.ts'

/** How shells tell of Ctrl-C. */
export const INTERRUPTED = 130

export async function ask({ stdin, stderr }: Terminal, question: string): Promise<string> {
  const lines = createInterface({ input: stdin, output: stderr })
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')))
  try {
    return await Promise.race([lines.question(question), ended])
  } catch {
    stderr.write('\n')
    throw new Failure(INTERRUPTED, 'nothing was changed')
  } finally {
    lines.close()
  }
}
