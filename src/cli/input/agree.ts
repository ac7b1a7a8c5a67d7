// Agreement before a change is made: on the terminal, or by a flag where there is none.

import { EXIT, Failure } from '../failure.ts'
import type { ReportLook } from '../output/field-report.ts'
import { painter, plain } from '../output/terminal.ts'
import { wrapFor } from '../output/wrap.ts'
import type { Session } from '../session.ts'
import { confirm, openAsking } from './ask.ts'

export interface Question {
  /** What would be done, as an order: `delete cluster prod-us-01`. */
  readonly does: string
  /** What has to be typed. */
  readonly word: string
  /** The preview in one line: printed where the whole of it is not, or has scrolled off the screen. */
  readonly summary?: string
  /** Lines to read before answering. */
  readonly notes: readonly string[]
  /** Whether the change goes on without a question where there is no terminal. */
  readonly isOptional?: boolean
}

/** The server as people know it: by the name of its context, too. */
function serverIn({ settings: { url, context } }: Session): string {
  const address = url.href.replace(/\/$/, '')
  return context === undefined ? address : `${context} (${address})`
}

/** Lines that are still on the screen when the question is asked. */
const ON_SCREEN = 20

/** Whether questions are to be asked at all. */
export function isAsked({ settings }: Session, { yes = false }: { readonly yes?: boolean }): boolean {
  return !yes && settings.ask !== 'never'
}

/**
 * Asks a question, after the text of `show`. Returns true when somebody agreed, and false when an optional question had
 * no terminal. Throws when anything but the word is typed, or when a question that is not optional has no terminal.
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
    const told = [isLong ? summary : '', ...notes].filter(Boolean).map((note) => `${plain(note)}\n`)
    stderr.write(wrapFor(stderr, `${shown}${told.join('')}`))
    const asked = `${does[0]?.toUpperCase()}${does.slice(1)} on ${serverIn(session)}?`
    await confirm(asking, plain(asked), word)
    return true
  } finally {
    asking.close()
  }
}
