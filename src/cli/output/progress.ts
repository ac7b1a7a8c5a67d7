// A progress bar on the terminal.
import type { Session } from '../session.ts'
import { hasCursor } from './terminal.ts'

export interface Progress {
  show(done: number, total: number): void
  end(): void
}

const WIDTH = 30
/** Shorter work shows no bar. */
const DELAY_MS = 400

export function startProgress(
  { terminal, quiet }: Pick<Session, 'terminal' | 'quiet'>,
  what: string,
): Progress {
  const { stderr } = terminal
  if (quiet || !hasCursor(terminal, stderr)) return { show() {}, end() {} }
  let line = ''
  let isDrawn = false
  const draw = (): void => {
    isDrawn = true
    stderr.write(`\r\u001b[K${line}`)
  }
  const timer = setTimeout(draw, DELAY_MS).unref()
  return {
    show(done, total) {
      const share = total > 0 ? Math.min(1, done / total) : 1
      const bar = '='.repeat(Math.round(share * WIDTH)).padEnd(WIDTH)
      line = `${what} [${bar}] ${done.toLocaleString('en')}/${total.toLocaleString('en')}`
      if (isDrawn) draw()
    },
    end() {
      clearTimeout(timer)
      if (isDrawn) stderr.write('\r\u001b[K')
    },
  }
}
