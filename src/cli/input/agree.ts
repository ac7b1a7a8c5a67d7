// Agreement before a change is made: on the terminal, or by a flag where there is none.

import { EXIT, Failure } from '../failure.ts'
import type { ReportLook } from '../output/field-report.ts'
import { painter, plain } from '../output/terminal.ts'
import type { Session } from '../session.ts'
import { confirm, openAsking } from './ask.ts'

export interface Question {
  /** What would be done, as an order: `delete cluster prod-us-01`. */
  readonly does: string
  /** What has to be typed. */
  readonly word: string
  /** What it comes to, in a line: told where the whole of it is not, or is not on the screen any more. */
  readonly summary?: string
  /** What to know before answering, a line each. */
  readonly notes: readonly string[]
  /** Asked only where somebody can be. */
  readonly isOptional?: boolean
}

/** Lines that are still to be seen when the question comes. */
const ON_SCREEN = 20

/** Whether questions are to be asked at all. */
export function isAsked({ settings }: Session, { yes = false }: { readonly yes?: boolean }): boolean {
  return !yes && settings.ask !== 'never'
}

/**
 * Asks, after what `show` renders. Returns whether somebody agreed; false when there is nobody to ask, and need not be.
 * Anything but the word ends the command, and so does a question that nobody is there for.
 */
export async function agree(
  session: Session,
  question: Question,
  hint: string,
  show: (look: ReportLook) => string = () => '',
): Promise<boolean> {
  const { does, word, summary = '', notes, isOptional = false } = question
  const asking = openAsking(session.terminal)
  if (!asking) {
    if (isOptional) return false
    const message = `this would ${does}, and there is no terminal to ask on: nothing was changed`
    throw new Failure(EXIT.usage, message, { details: [summary, ...notes].filter(Boolean), hint })
  }
  try {
    const { stderr } = asking
    const isWide = session.format.kind === 'human' && session.format.wide
    const width = isWide ? undefined : stderr.columns || 80
    const shown = show({ paint: painter(asking, stderr), width })
    const isLong = shown.split('\n').length > ON_SCREEN
    stderr.write(shown)
    for (const note of [isLong ? summary : '', ...notes].filter(Boolean)) stderr.write(`${plain(note)}\n`)
    await confirm(asking, plain(`${does[0]?.toUpperCase()}${does.slice(1)}?`), word)
    return true
  } finally {
    asking.close()
  }
}
