// How far long work is, on a terminal.
import type { Session } from './session.ts'

export interface Progress {
  show(done: number, total: number): void
  end(): void
}

const WIDTH = 30
/** Work that is over before that shows nothing. */
const PATIENCE_MS = 400

export function startProgress(
  { terminal, quiet }: Pick<Session, 'terminal' | 'quiet'>,
  what: string,
): Progress {
  const { stderr } = terminal
  if (quiet || !stderr.isTTY) return { show() {}, end() {} }
  const started = Date.now()
  let drawn = false
  return {
    show(done, total) {
      if (Date.now() - started < PATIENCE_MS) return
      drawn = true
      const share = total > 0 ? Math.min(1, done / total) : 1
      const bar = '='.repeat(Math.round(share * WIDTH)).padEnd(WIDTH)
      stderr.write(`\r\u001b[K${what} [${bar}] ${done.toLocaleString('en')}/${total.toLocaleString('en')}`)
    },
    end() {
      if (drawn) stderr.write('\r\u001b[K')
    },
  }
}
