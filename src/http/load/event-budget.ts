// How many events clusters may send: a token bucket for each cluster, and one for all together.
import type { Problem } from '../../base/problem.ts'

interface Rate {
  /** How many at once after a pause. */
  readonly burst: number
  readonly perSecond: number
}

/** One change of one component makes up to six events. */
const OF_ONE: Rate = { burst: 300, perSecond: 1 }
const OF_ALL: Rate = { burst: 10_000, perSecond: 1000 }
/** Clusters to remember; of those beyond, the one that has been quiet for longest is forgotten. */
const MAX_CLUSTERS = 20_000
const RETRY_SECONDS = 10

export class EventBudget {
  readonly #now: () => Date
  readonly #clusters = new Map<string, Bucket>()
  readonly #all: Bucket

  constructor(now: () => Date) {
    this.#now = now
    this.#all = new Bucket(OF_ALL, now().getTime())
  }

  /** Counts an event; returns why there is no room for it, and undefined when there is. */
  take(cluster: string): Problem | undefined {
    const time = this.#now().getTime()
    const bucket = this.#clusters.get(cluster) ?? new Bucket(OF_ONE, time)
    this.#clusters.delete(cluster)
    this.#clusters.set(cluster, bucket)
    if (this.#clusters.size > MAX_CLUSTERS)
      this.#clusters.delete(this.#clusters.keys().next().value as string)
    // A cluster beyond its own budget uses up nothing of the others'.
    if (!bucket.take(time)) return tooMany('this cluster sends too many events')
    return this.#all.take(time) ? undefined : tooMany('all clusters together send too many events')
  }
}

function tooMany(message: string): Problem {
  return { code: 'rate_limited', reason: 'too_many_events', message, retryAfter: RETRY_SECONDS }
}

class Bucket {
  readonly #rate: Rate
  #left: number
  #time: number

  constructor(rate: Rate, time: number) {
    this.#rate = rate
    this.#left = rate.burst
    this.#time = time
  }

  take(time: number): boolean {
    const { burst, perSecond } = this.#rate
    const refilled = (Math.max(0, time - this.#time) / 1000) * perSecond
    this.#left = Math.min(burst, this.#left + refilled)
    this.#time = time
    if (this.#left < 1) return false
    this.#left--
    return true
  }
}
