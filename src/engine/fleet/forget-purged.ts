// What was noted of clusters that were purged goes: one that is made anew under such an id has none of the evidence.
import { getOrSet } from '../../base/get-or-set.ts'
import { TimeSlice } from '../../runtime/time-slice.ts'
import type { Notes } from '../../store/notes.ts'
import { keysOf, type NoteKind, partsOf } from './evidence-notes.ts'
import type { Fleet } from './fleet.ts'
import { TRANSITIONS, type TransitionLog } from './transition-log.ts'

type IsKnown = (cluster: string) => boolean

/** Forgets all that this process knows of them, in the store too. */
export async function forgetPurged(
  fleet: Fleet,
  transitions: TransitionLog,
  notes: Notes,
  isKnown: IsKnown,
): Promise<void> {
  const timeSlice = new TimeSlice()
  const purged: string[] = []
  const gone = new Map<NoteKind, string[]>()
  for (const [cluster, record] of fleet.records) {
    if (timeSlice.expired) await timeSlice.yield()
    if (isKnown(cluster)) continue
    purged.push(cluster)
    for (const [kind, keys] of keysOf(cluster, record)) getOrSet(gone, kind, () => []).push(...keys)
  }
  if (purged.length === 0) return
  for (const [kind, keys] of gone) await notes.remove(kind, keys)
  await notes.remove(TRANSITIONS, purged)
  for (const cluster of purged) {
    transitions.forget(cluster)
    fleet.forget(cluster)
  }
}

/** Removes what other processes have noted of them. */
export async function removeUnknown(notes: Notes, kind: string, isKnown: IsKnown): Promise<void> {
  const gone: string[] = []
  const timeSlice = new TimeSlice()
  for await (const { key } of notes.read(kind)) {
    if (timeSlice.expired) await timeSlice.yield()
    if (!isKnown(partsOf(key)[0])) gone.push(key)
  }
  if (gone.length > 0) await notes.remove(kind, gone)
}
