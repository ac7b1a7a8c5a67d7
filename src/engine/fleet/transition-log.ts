// When clusters changed their state: one note for each cluster, with its last transitions, newest first.
import type { Column } from '../../domain/status/status-words.ts'
import { TimeSlice } from '../../runtime/time-slice.ts'
import type { Note } from '../../store/notes.ts'
import type { Store } from '../../store/store.ts'
import type { Transition } from './fleet.ts'

/** A transition as it is kept; the note's key names the cluster. */
export type KeptTransition = Omit<Transition, 'cluster'>

export const TRANSITIONS = 'transitions'
/** Of one cluster, at most. Every change of the fleet moves delivery and health, and pushes out no contact. */
const MAX_KEPT: Readonly<Record<Column, number>> = { contact: 40, delivery: 20, health: 20 }
/** Clusters to read and write at once. */
const AT_ONCE = 500

export class TransitionLog {
  readonly #store: Pick<Store, 'notes'>
  readonly #retentionMs: number
  readonly #now: () => number
  /** As many of a cluster as are kept, however long the store is unavailable. */
  readonly #pending = new Map<string, readonly KeptTransition[]>()

  constructor(store: Pick<Store, 'notes'>, retentionMs: number, now: () => number) {
    this.#store = store
    this.#retentionMs = retentionMs
    this.#now = now
  }

  add({ cluster, ...transition }: Transition): void {
    const pending = [...(this.#pending.get(cluster) ?? []), transition]
    this.#pending.set(cluster, bounded(pending.toReversed()).reverse())
  }

  /** Newest first, those that are not in the store yet included. */
  async of(cluster: string): Promise<KeptTransition[]> {
    let kept: KeptTransition[] = []
    for await (const note of this.#store.notes.read(TRANSITIONS, [cluster])) kept = parse(note)
    return this.#joined(kept, this.#pending.get(cluster) ?? [])
  }

  /** Several processes may do this: each adds only what is not there yet. What fails is tried again. */
  async flush(): Promise<void> {
    const timeSlice = new TimeSlice()
    const clusters = [...this.#pending.keys()]
    for (let at = 0; at < clusters.length; at += AT_ONCE) {
      const some = clusters.slice(at, at + AT_ONCE)
      const kept = new Map<string, KeptTransition[]>()
      for await (const note of this.#store.notes.read(TRANSITIONS, some)) kept.set(note.key, parse(note))
      const time = new Date(this.#now()).toISOString()
      const taken = some.map((key) => [key, this.#pending.get(key) ?? []] as const)
      const notes = taken.map(([key, pending]): Note => {
        const joined = this.#joined(kept.get(key) ?? [], pending)
        return { key, time, value: JSON.stringify(joined.map((each) => Object.values(each))) }
      })
      await this.#store.notes.record(TRANSITIONS, notes)
      for (const [key, written] of taken) this.#drop(key, written)
      if (timeSlice.expired) await timeSlice.yield()
    }
  }

  /** Drops what is not in the store yet. */
  forget(cluster: string): void {
    this.#pending.delete(cluster)
  }

  /** What was added meanwhile stays. */
  #drop(cluster: string, written: readonly KeptTransition[]): void {
    const left = this.#pending.get(cluster)?.filter((each) => !written.includes(each)) ?? []
    if (left.length > 0) this.#pending.set(cluster, left)
    else this.#pending.delete(cluster)
  }

  /** Another process may have noted the same change already: its state is then the last one that is kept. */
  #joined(kept: readonly KeptTransition[], pending: readonly KeptTransition[]): KeptTransition[] {
    const joined = [...kept]
    for (const { time, column, from, to } of pending) {
      const last = joined.find((each) => each.column === column)
      if (last?.to !== to) joined.unshift({ time, column, from, to })
    }
    const oldest = this.#now() - this.#retentionMs
    return bounded(joined.filter(({ time }) => time >= oldest))
  }
}

/** The newest of each column; the newest of all comes first. */
function bounded(transitions: readonly KeptTransition[]): KeptTransition[] {
  const left = { ...MAX_KEPT }
  return transitions.filter(({ column }) => left[column]-- > 0)
}

function parse({ value }: Note): KeptTransition[] {
  try {
    const rows = JSON.parse(value ?? '[]') as [number, KeptTransition['column'], string, string][]
    return rows.map(([time, column, from, to]) => ({ time, column, from, to }))
  } catch {
    return []
  }
}
