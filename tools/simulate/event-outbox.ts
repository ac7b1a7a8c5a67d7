// What the notification-controller does with events: holds back duplicates, tries a few times, and then loses them.
import type { ClusterAnswer, FluxEvent } from './exchange.ts'

const HELD_BACK_MS = 5 * 60 * 1000
/** Delays between the attempts. */
const RETRIES_MS = [1000, 4000, 10_000]

/** An event that waits for an attempt. */
export interface Posting {
  readonly event: FluxEvent
  readonly attempt: number
  readonly dueAt: number
}

/** A failure that somebody took note of. */
export interface ToldFailure {
  readonly kind: string
  readonly name: string
  /** When it happened. */
  readonly at: number
}

export class EventOutbox {
  readonly #sentAt = new Map<string, number>()
  readonly #failures = new Map<string, ToldFailure>()
  #waiting: Posting[] = []
  #lost = 0

  /** Events that nobody will hear of: lost on the way, held back, or given up after the last attempt. */
  get lost(): number {
    return this.#lost
  }

  /** Of every object whose last event that was taken is a failure. */
  get toldFailures(): readonly ToldFailure[] {
    return [...this.#failures.values()]
  }

  get dueAt(): number {
    return Math.min(Number.POSITIVE_INFINITY, ...this.#waiting.map(({ dueAt }) => dueAt))
  }

  add(event: FluxEvent, now: number): void {
    const key = keyOf(event)
    if (now - (this.#sentAt.get(key) ?? Number.NEGATIVE_INFINITY) < HELD_BACK_MS) {
      this.#lost++
      return
    }
    this.#sentAt.set(key, now)
    this.#waiting.push({ event, attempt: 0, dueAt: now })
  }

  /** Takes the events out whose time has come; each comes back by `answered`. */
  take(now: number): Posting[] {
    const due = this.#waiting.filter(({ dueAt }) => dueAt <= now)
    if (due.length > 0) this.#waiting = this.#waiting.filter(({ dueAt }) => dueAt > now)
    return due
  }

  answered({ event, attempt }: Pick<Posting, 'event' | 'attempt'>, answer: ClusterAnswer, now: number): void {
    if (answer.kind === 'answer' && answer.status < 300) {
      this.#told(event)
      return
    }
    const delay = RETRIES_MS[attempt]
    const isFinal = answer.kind === 'answer' && answer.status < 500 && answer.status !== 429
    if (delay === undefined || isFinal) {
      this.#lost++
      return
    }
    const wait = Math.max(delay, (answer.kind === 'answer' && answer.retryAfterMs) || 0)
    this.#waiting.push({ event, attempt: attempt + 1, dueAt: now + wait })
  }

  #told({ involvedObject: { kind, name }, severity, timestamp }: FluxEvent): void {
    const object = `${kind}/${name}`
    if (severity === 'error') this.#failures.set(object, { kind, name, at: Date.parse(timestamp) })
    else this.#failures.delete(object)
  }

  /** An event that did not get this far. */
  lose(): void {
    this.#lost++
  }
}

/** Equal events are duplicates, whatever happened between them. */
function keyOf({ involvedObject: { kind, namespace, name }, message, metadata }: FluxEvent): string {
  return [kind, namespace, name, message, metadata.revision ?? ''].join('\n')
}
