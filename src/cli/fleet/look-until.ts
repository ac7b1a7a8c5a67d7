// Looks at something on the server again and again, until it is as it should be, time is over, or somebody gives up.
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../failure.ts'
import { INTERRUPTED } from '../input/ask.ts'
import { isTransient } from '../server/refusal.ts'
import type { Session } from '../session.ts'

export interface Look<T> {
  /** What is waited for, in words. */
  readonly name: string
  /** Milliseconds; undefined for as long as it takes. */
  readonly waitMs: number | undefined
  read(): Promise<T>
  /** Whether to stop; may throw to end it as a failure. Called after every look. */
  isDone(seen: T): boolean | Promise<boolean>
  /** The failure when time is over, by the last look. */
  timedOut(last: T | undefined): Failure
}

const EVERY_MS = 2000
/** The longest that a timer takes: weeks. */
const LONGEST_MS = 2 ** 31 - 1
/** Reading may take this share of the time at most. */
const BUSY_SHARE = 0.2

/** Returns the last look. Throws when time is over, and at Ctrl-C. */
export async function lookUntil<T>(
  session: Session,
  { name, waitMs, read, isDone, timedOut }: Look<T>,
): Promise<T> {
  const { promise: ended, reject } = Promise.withResolvers<never>()
  // Nobody may be waiting for it when it ends.
  ended.catch(() => {})
  let last: T | undefined
  const timer = setTimeout(() => reject(timedOut(last)), waitMs ?? LONGEST_MS)
  const interrupt = (): void =>
    reject(new Failure(INTERRUPTED, `no longer waiting for ${name}: what was changed stays so`))
  process.once('SIGINT', interrupt)
  try {
    for (;;) {
      const begun = Date.now()
      const seen = await Promise.race([readPatiently(session, read), ended])
      last = seen ?? last
      if (seen !== undefined && (await isDone(seen))) return seen
      const pause = Math.max(EVERY_MS, (Date.now() - begun) / BUSY_SHARE)
      await Promise.race([sleep(pause, undefined, { ref: false }), ended])
    }
  } finally {
    clearTimeout(timer)
    process.off('SIGINT', interrupt)
  }
}

/** Returns undefined where the server does not respond for a moment: it may be restarting. */
async function readPatiently<T>(session: Session, read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (!isTransient(error)) throw error
    session.note(error.message)
    return undefined
  }
}
