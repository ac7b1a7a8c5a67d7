// Takes the steps of long work in turns with everything else that wants to run.
import { finish, type Steps } from '../domain/steps.ts'
import { Pace } from '../store/pace.ts'

export async function inTurns<T>(steps: Steps<T>): Promise<T> {
  for (const pace = new Pace(); ; ) {
    const { done, value } = steps.next()
    if (done) return value
    if (pace.isDue) await pace.rest()
  }
}

const MAX_TRIES = 5

/** The same on the state as it stands: again when it has moved meanwhile, and at last without letting anyone in. */
export async function inTurnsOn<T>(state: { readonly revision: number }, run: () => Steps<T>): Promise<T> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const { revision } = state
    const result = await inTurns(run())
    if (state.revision === revision) return result
  }
  return finish(run())
}
