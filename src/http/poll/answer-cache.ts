// Compressed answers to polls, ready to be sent: most polls of a cluster get what its last one got.
import { hash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Digest } from '../../base/digest.ts'
import { type RenderedAnswer, renderInputs } from '../../domain/delivery/render-inputs.ts'
import { keepAnswer, keptAnswer } from '../../domain/delivery/rendered-cluster.ts'
import type { ServedView } from '../../domain/delivery/served-view.ts'
import type { Entry } from '../../domain/documents/view.ts'
import { type AnswerMark, sameMark } from '../../domain/status/evidence.ts'
import type { DeliveredType, Types } from '../../domain/types/resource-type.ts'
import { TimeSlice } from '../../runtime/time-slice.ts'
import { ByteSegments, type Segment, type Stored } from './byte-segments.ts'

/** It hangs on the version of the cluster that it was rendered from, and goes with that. */
export class CachedAnswer implements Stored {
  segment: Segment | undefined = undefined
  at = 0
  length = 0
  isUsed = false
  readonly digest: Digest
  /** The view that the answer was last rendered from, and the stamp that its type had there. */
  view: ServedView
  stamp: number

  constructor(digest: Digest, view: ServedView, stamp: number) {
    this.digest = digest
    this.view = view
    this.stamp = stamp
  }

  /** The compressed answer. It may be moved in the next turn of the event loop: who sends it copies it. */
  get bytes(): Buffer {
    return this.#part(HASH_BYTES, this.length)
  }

  /** Whether it is that answer. Anyone can make two texts of equal digest, so their hashes are compared, too. */
  isOf({ text, digest }: RenderedAnswer): boolean {
    return sameMark(this.digest, digest) && this.#part(0, HASH_BYTES).equals(hashOf(text))
  }

  #part(from: number, to: number): Buffer {
    if (!this.segment) throw new Error('the answer is not in the cache')
    return this.segment.bytes.subarray(this.at + from, this.at + to)
  }
}

/** Not the text: while it waits, it would come to be old garbage, which only long collections free. */
interface Waiting {
  readonly cached: CachedAnswer
  readonly types: Types
  readonly type: DeliveredType
  readonly cluster: Entry
}

/** Shorter answers are rendered about as fast as they are copied. */
const MIN_LENGTH = 512
const MAX_LENGTH = 64 * 1024
const HASH_BYTES = 32
/**
 * Zlib takes 256 kB for each text otherwise, which leaves holes in the memory of the process, and hands out its results in
 * buffers of 16 kB, which only a garbage collection frees.
 */
const SMALL = { windowBits: 13, memLevel: 5, chunkSize: 2 * 1024 }
/** What is more can wait until the next poll. */
const MAX_WAITING = 64

interface CacheRules {
  readonly segmentBytes?: number
  readonly minLength?: number
}

export class AnswerCache {
  hits = 0
  misses = 0
  /** Bytes; 0 switches the cache off. */
  readonly limit: number
  readonly #minLength: number
  readonly #segments: ByteSegments
  readonly #waiting: Waiting[] = []

  constructor(limit: number, now: () => number, { segmentBytes, minLength = MIN_LENGTH }: CacheRules = {}) {
    this.limit = limit
    this.#minLength = minLength
    this.#segments = new ByteSegments(limit, now, segmentBytes)
  }

  get bytes(): number {
    return this.#segments.used
  }

  /** Whether there are answers that are still to be compressed. */
  get isBusy(): boolean {
    return this.#waiting.length > 0
  }

  /**
   * Returns what `renderInputs` returns, or the same compressed. `served` says what the cluster was served last: only what
   * it is served again is kept, since what changes all the time is not worth it.
   */
  answer(
    types: Types,
    view: ServedView,
    type: DeliveredType,
    cluster: Entry,
    served: () => AnswerMark,
  ): RenderedAnswer | CachedAnswer {
    const place = types.delivered.indexOf(type)
    const cached = keptAnswer<CachedAnswer>(cluster, place)
    const stamp = view.stamp(type.name)
    // Nothing but these and the version of the cluster decides about an answer.
    if (cached?.segment && cached.view === view && cached.stamp === stamp) {
      this.hits++
      cached.isUsed = true
      return cached
    }
    this.misses++
    const rendered = renderInputs(view, types, type, cluster)
    const { text, digest } = rendered
    if (text.length < this.#minLength || text.length > MAX_LENGTH) return rendered
    if (cached?.segment) {
      if (cached.isOf(rendered)) {
        cached.view = view
        cached.stamp = stamp
        return rendered
      }
      this.#segments.drop(cached)
    }
    if (
      this.#waiting.length < MAX_WAITING &&
      this.#segments.makeRoom(text.length / 2) &&
      sameMark(served(), digest)
    ) {
      this.#waiting.push({ cached: new CachedAnswer(digest, view, stamp), types, type, cluster })
      if (this.#waiting.length === 1) void this.#compress()
    }
    return rendered
  }

  /** Off the path of the poll, in slices of time that long work of all kinds shares. */
  async #compress(): Promise<void> {
    const slice = new TimeSlice()
    await slice.yield()
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      if (slice.expired) await slice.yield()
      this.#keep(next)
      this.#waiting.shift()
    }
  }

  #keep({ cached, types, type, cluster }: Waiting): void {
    const { view, stamp } = cached
    // Rendered again, it would be another answer.
    if (view.stamp(type.name) !== stamp) return
    const { text } = renderInputs(view, types, type, cluster)
    if (!this.#segments.add(cached, hashOf(text), gzipSync(text, SMALL))) return
    const place = types.delivered.indexOf(type)
    const former = keptAnswer<CachedAnswer>(cluster, place)
    if (former) this.#segments.drop(former)
    keepAnswer(cluster, place, cached)
  }
}

function hashOf(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}
