// A progress bar on the terminal.
import type { Session } from '../session.ts'
import { cut, hasCursor } from './terminal.ts'

export interface Progress {
  /** `more` comes after the numbers. */
  show(done: number, total: number, more?: string): void
  end(): void
}

const WIDTH = 30
/** Shorter work shows no bar. */
const DELAY_MS = 400

/** The part that is done, as a bar. */
export function barOf(done: number, total: number): string {
  const share = total > 0 ? Math.min(1, done / total) : 1
  return '='.repeat(Math.round(share * WIDTH)).padEnd(WIDTH)
}

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
    // A line that is broken could not be drawn over.
    stderr.write(`\r\u001b[K${cut(line, (stderr.columns || 80) - 1)}`)
  }
  const timer = setTimeout(draw, DELAY_MS).unref()
  return {
    show(done, total, more = '') {
      line = `${what} [${barOf(done, total)}] ${done.toLocaleString('en')}/${total.toLocaleString('en')}${more}`
      if (isDrawn) draw()
    },
    end() {
      clearTimeout(timer)
      if (isDrawn) stderr.write('\r\u001b[K')
    },
  }
}
