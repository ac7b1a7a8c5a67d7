// Takes the steps of long work in small helpings, so that polls are answered in between.
import { setImmediate as breathe } from 'node:timers/promises'
import type { Steps } from '../domain/steps.ts'

/** How long others wait at most. */
const HELPING_MS = 1

export async function inTurns<T>(steps: Steps<T>): Promise<T> {
  for (let end = performance.now() + HELPING_MS; ; ) {
    const { done, value } = steps.next()
    if (done) return value
    if (performance.now() < end) continue
    await breathe()
    end = performance.now() + HELPING_MS
  }
}
