// Runs long work in time slices, until it is done or aborted.
import type { Problem } from '../base/problem.ts'
import type { Steps } from '../base/steps.ts'
import { TimeSlice } from './time-slice.ts'

/** The abort reason of work, with the problem to return to its caller. */
export class Interrupted extends Error {
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.message)
    this.problem = problem
  }
}

/** Throws the signal's reason when it is aborted before the work is done. */
export async function runTimeSliced<T>(steps: Steps<T>, signal?: AbortSignal): Promise<T> {
  for (const timeSlice = new TimeSlice(); ; ) {
    const { done, value } = steps.next()
    if (done) return value
    if (!timeSlice.expired) continue
    await timeSlice.yield()
    signal?.throwIfAborted()
  }
}

/** Waits for a time slice before work that is started often, which would otherwise begin at once each time. */
export function nextSlice(): Promise<void> {
  return new TimeSlice().yield()
}
