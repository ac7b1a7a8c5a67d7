// Takes the steps of long work in turns with everything else that wants to run.
import type { Steps } from '../domain/steps.ts'
import { Pace } from '../store/pace.ts'

export async function inTurns<T>(steps: Steps<T>): Promise<T> {
  for (const pace = new Pace(); ; ) {
    const { done, value } = steps.next()
    if (done) return value
    if (pace.isDue) await pace.rest()
  }
}
