// Stretches in which no process of the service ran: no cluster could be heard then, so they count for nobody.
import type { Json } from '../../base/json.ts'
import type { Note } from '../../store/notes.ts'

interface Gap {
  readonly from: number
  readonly until: number
}

/** The kind and the key of the note whose time says when a process last ran; its value holds the gaps before. */
export const OBSERVING = 'observing'
/** Gaps to keep: the longest of those that ended lately. */
const MAX_GAPS = 20
const KEPT_MS = 7 * 86_400_000

export class UnobservedTime {
  #gaps: readonly Gap[] = []

  /** Takes in what the processes before this one left, which started at that moment. */
  learn({ time, value }: Note, started: number): void {
    const last = { from: Date.parse(time), until: started }
    this.#gaps = [...gapsIn(value), last]
      .filter(({ from, until }) => until > from && until > started - KEPT_MS)
      .sort((one, other) => other.until - other.from - (one.until - one.from))
      .slice(0, MAX_GAPS)
  }

  /** For how long after this moment no process ran. */
  after(moment: number): number {
    let total = 0
    for (const { from, until } of this.#gaps) total += Math.max(0, until - Math.max(from, moment))
    return total
  }

  /** Processes that start later learn of the gaps too. */
  note(now: number): Note {
    const value = JSON.stringify(this.#gaps.map(({ from, until }) => [from, until]))
    return { key: OBSERVING, time: new Date(now).toISOString(), value }
  }
}

/** None in what no version of this program wrote. */
function gapsIn(value: string | null): Gap[] {
  try {
    const rows = JSON.parse(value ?? '[]') as Json
    return (Array.isArray(rows) ? rows : []).flatMap((row) => {
      const [from, until] = Array.isArray(row) ? row : []
      return typeof from === 'number' && typeof until === 'number' ? [{ from, until }] : []
    })
  } catch {
    return []
  }
}
