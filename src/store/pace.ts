// Keeps long work from holding up polls: it rests after a moment, so that whoever waits gets a turn.
import { setImmediate as turn } from 'node:timers/promises'

/** Short, since a poll on a new connection needs several turns of its own. */
const MOMENT_MS = 0.25

export class Pace {
  #end = performance.now() + MOMENT_MS

  /** Whether it is time to rest. */
  get isDue(): boolean {
    return performance.now() >= this.#end
  }

  async rest(): Promise<void> {
    await turn()
    this.#end = performance.now() + MOMENT_MS
  }
}
