// Agreement before a change is made: on the terminal, or by a flag where there is none.
import { confirm, openAsking } from './ask.ts'
import { usage } from './failure.ts'
import type { ReportLook } from './field-report.ts'
import type { Session } from './session.ts'
import { painter } from './terminal.ts'

export interface Question {
  /** What would be done, as an order: `delete cluster prod-us-01`. */
  readonly does: string
  /** What has to be typed. */
  readonly word: string
  /** What to know before answering, a line each. */
  readonly notes: readonly string[]
  /** Asked only where somebody can be. */
  readonly isOptional?: boolean
}

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
  const { does, word, notes, isOptional = false } = question
  const asking = openAsking(session.terminal)
  if (!asking) {
    if (isOptional) return false
    throw usage(`this would ${does}, and there is no terminal to ask on: nothing was changed`, hint)
  }
  try {
    const { stderr } = asking
    const isWide = session.format.kind === 'human' && session.format.wide
    const width = isWide ? undefined : stderr.columns || 80
    stderr.write(show({ paint: painter(asking, stderr), width }))
    for (const note of notes) stderr.write(`${note}\n`)
    await confirm(asking, `${does[0]?.toUpperCase()}${does.slice(1)}?`, word)
    return true
  } finally {
    asking.close()
  }
}
