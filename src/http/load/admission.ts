// How much of the service each caller may use at once: requests, waits, bytes and expensive work.
import { Lane } from '../../engine/lane.ts'
import type { Limits } from '../service-limits.ts'
import { FairQueue } from './fair-queue.ts'

/** One caller may take this part of all places, and of all streams; administrators may take all places. */
export const CALLER_SHARE = 4
const WAITS_PER_CALLER = 20
/** Parsed, a body takes several times as much memory. */
const BODY_BYTES = { total: 96 * 1024 * 1024, perCaller: 40 * 1024 * 1024 }
const PREVIEW_BYTES = { total: 32 * 1024 * 1024, perCaller: 8 * 1024 * 1024 }
const POLL_BYTES = { total: 256 * 1024 * 1024, perCaller: 32 * 1024 * 1024 }
const PAGES_PER_NETWORK = 50
const WATCHERS = 1000
const COSTLY = { total: 6, reserved: 2, perCaller: 2 }
/** Amounts that callers hold, up to a limit for each and one for all. */
export class Shares {
  readonly #held = new Map<string, number>()
  readonly #perCaller: number
  readonly #all: number
  #sum = 0

  constructor({ perCaller, total = Number.POSITIVE_INFINITY }: { perCaller: number; total?: number }) {
    this.#perCaller = perCaller
    this.#all = total
  }

  /** Takes what there is room for, or nothing; says whether the caller or all together hold too much. */
  take(caller: string, amount = 1): 'taken' | 'caller' | 'all' {
    const held = (this.#held.get(caller) ?? 0) + amount
    if (held > this.#perCaller) return 'caller'
    if (this.#sum + amount > this.#all) return 'all'
    this.#held.set(caller, held)
    this.#sum += amount
    return 'taken'
  }

  give(caller: string, amount = 1): void {
    const held = (this.#held.get(caller) ?? 0) - amount
    if (held > 0) this.#held.set(caller, held)
    else this.#held.delete(caller)
    this.#sum -= amount
  }
}

export interface Admission {
  /** Previews, and reading the log. */
  readonly costly: Lane
  /** Lists from the state; apart from `costly`, so that they never wait for reads of the store. */
  readonly lists: Lane
  /** Whose request, and whose part of a long body, is next. */
  readonly turns: FairQueue
  /** Bytes of request bodies that are being read or processed. */
  readonly bodyBytes: Shares
  /** Bytes of request bodies of callers that may not write. */
  readonly previewBytes: Shares
  /** Requests that wait for a revision that is still to come. */
  readonly waits: Shares
  /** Streams of revisions. */
  readonly streams: Shares
  /** Characters of long answers to polls that have not been read yet. */
  readonly pollBytes: Shares
  /** Requests for public pages, by network. */
  readonly pages: Shares
}

export function createAdmission({ watchers = WATCHERS, watchersPerCaller }: Limits): Admission {
  const perCaller = watchersPerCaller ?? Math.ceil(watchers / CALLER_SHARE)
  return {
    costly: new Lane(COSTLY),
    lists: new Lane(COSTLY),
    turns: new FairQueue(),
    bodyBytes: new Shares(BODY_BYTES),
    previewBytes: new Shares(PREVIEW_BYTES),
    waits: new Shares({ perCaller: WAITS_PER_CALLER }),
    pollBytes: new Shares(POLL_BYTES),
    pages: new Shares({ perCaller: PAGES_PER_NETWORK }),
    streams: new Shares({ perCaller, total: watchers }),
  }
}
