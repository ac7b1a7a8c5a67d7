// Time slices: all long work of the process shares one slice of each turn of the event loop, so that polls are not held up.

/** Short, since a poll on a new connection needs several turns of its own. */
const SLICE_MS = 0.25

/**
 * Turns of the event loop between two slices. Node accepts one connection in each turn: with work in every turn it could
 * not keep up with new connections.
 */
const SHORT_TURNS = 3

/** Work that waits for its next slice, first come, first served. */
const waiting: (() => void)[] = []
let isScheduled = false
let shortTurns = 0

function schedule(): void {
  if (isScheduled || waiting.length === 0) return
  isScheduled = true
  setImmediate(resumeNext)
}

/** One at a time: however much work there is, a turn of the event loop takes no longer. */
function resumeNext(): void {
  isScheduled = false
  if (shortTurns > 0) shortTurns--
  else {
    shortTurns = SHORT_TURNS
    waiting.shift()?.()
  }
  schedule()
}

export class TimeSlice {
  #end = performance.now() + SLICE_MS

  /** Whether the slice is used up: the work has to yield. */
  get expired(): boolean {
    return performance.now() >= this.#end
  }

  async yield(): Promise<void> {
    await new Promise<void>((resume) => {
      waiting.push(resume)
      schedule()
    })
    this.#end = performance.now() + SLICE_MS
  }
}
