// Bytes of many small things within a budget, outside of the heap: no garbage collection ever looks at them.

/** Where something stands. It is changed in place: whoever holds it sees that it was moved or dropped. */
export interface Stored {
  /** Undefined before it is added, and once it is dropped. */
  segment: Segment | undefined
  at: number
  length: number
  /** Set by every use, taken away when its segment is cleaned. */
  isUsed: boolean
}

export interface Segment {
  readonly bytes: Buffer
  stored: Stored[]
  /** The length of all that stands in it and was not dropped. */
  live: number
  end: number
  cleanedAt: number
}

/** A smaller budget is one segment. */
const SEGMENT_BYTES = 256 * 1024
/**
 * What was not used for so long makes room, and nothing else does: clusters poll in rounds, and if there is not room for
 * all of them, the newest in the place of the oldest would mean that none is found again.
 */
const UNUSED_MS = 30 * 60_000

export class ByteSegments {
  readonly #most: number
  readonly #size: number
  readonly #now: () => number
  readonly #segments: Segment[] = []
  #current = -1
  /** The segment that is looked at next when there is no room. */
  #hand = 0

  constructor(budget: number, now: () => number, size = SEGMENT_BYTES) {
    this.#size = Math.min(size, budget)
    this.#most = this.#size === 0 ? 0 : Math.floor(budget / this.#size)
    this.#now = now
  }

  get used(): number {
    return this.#segments.reduce((sum, { live }) => sum + live, 0)
  }

  /** Makes room for so many bytes if it can. It looks at one segment at most, since it is called again soon enough. */
  makeRoom(length: number): boolean {
    const isFree = (segment: Segment | undefined): boolean =>
      segment !== undefined && segment.end + length <= this.#size
    if (isFree(this.#segments[this.#current])) return true
    if (length > this.#size) return false
    if (this.#segments.length < this.#most) {
      this.#current = this.#segments.length
      const bytes = Buffer.allocUnsafeSlow(this.#size)
      this.#segments.push({ bytes, stored: [], live: 0, end: 0, cleanedAt: this.#now() })
      return true
    }
    const next = this.#segments[this.#hand]
    if (!next) return false
    const isDue = next.live < this.#size / 2 || this.#now() - next.cleanedAt > UNUSED_MS
    if (isDue) {
      this.#clean(next)
      this.#current = this.#hand
    }
    this.#hand = (this.#hand + 1) % this.#segments.length
    return isDue && isFree(next)
  }

  /** Returns false where there is less room than `makeRoom` has made. */
  add(stored: Stored, ...parts: readonly Uint8Array[]): boolean {
    const length = parts.reduce((sum, part) => sum + part.length, 0)
    const segment = this.#segments[this.#current]
    if (!segment || segment.end + length > this.#size) return false
    stored.segment = segment
    stored.at = segment.end
    stored.length = length
    stored.isUsed = true
    for (const part of parts) {
      segment.bytes.set(part, segment.end)
      segment.end += part.length
    }
    segment.stored.push(stored)
    segment.live += length
    return true
  }

  drop(stored: Stored): void {
    if (!stored.segment) return
    stored.segment.live -= stored.length
    stored.segment = undefined
  }

  /** Drops what was not used since the last time, and moves the rest together. */
  #clean(segment: Segment): void {
    const isOld = this.#now() - segment.cleanedAt > UNUSED_MS
    let end = 0
    const left: Stored[] = []
    for (const stored of segment.stored) {
      if (stored.segment && isOld && !stored.isUsed) this.drop(stored)
      if (!stored.segment) continue
      segment.bytes.copyWithin(end, stored.at, stored.at + stored.length)
      stored.at = end
      end += stored.length
      if (isOld) stored.isUsed = false
      left.push(stored)
    }
    segment.stored = left
    segment.end = end
    if (isOld) segment.cleanedAt = this.#now()
  }
}
