// Back-off: growing delays between attempts, with jitter so that many clients do not retry in step.

export interface Backoff {
  /** How many milliseconds to wait before the next attempt. */
  next(): number
  /** Starts again with the first delay, after an attempt that succeeded. */
  reset(): void
}

interface Options {
  /** The first delay in milliseconds; each one after it is twice as long. */
  readonly first: number
  /** Back-off cap in milliseconds. */
  readonly max: number
  readonly random?: () => number
}

/** Delays of `first`, twice that, and so on up to `max`; each is between half of it and all of it, at random. */
export function backoff({ first, max, random = Math.random }: Options): Backoff {
  let delay = Math.min(first, max)
  return {
    next() {
      const jittered = (delay * (1 + random())) / 2
      delay = Math.min(delay * 2, max)
      return jittered
    },
    reset() {
      delay = Math.min(first, max)
    },
  }
}
