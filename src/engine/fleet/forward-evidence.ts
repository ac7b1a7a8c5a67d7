// What a mirror notes of its clusters, sent to its upstream in batches.

import type { Json } from '../../base/json.ts'
import type { EvidenceReport } from '../../domain/status/evidence-report.ts'
import type { Note } from '../../store/notes.ts'
import type { StoreError } from '../../store/store.ts'
import { NoteBuffer } from '../note-buffer.ts'
import { EVIDENCE_KINDS, type EvidenceKind, pollKeysOf } from './evidence-notes.ts'
import type { FollowedFleet } from './follow-fleet.ts'
import { SEEN } from './seen-notes.ts'
import { shiftTimes } from './shift-note.ts'

export interface ForwarderParts {
  readonly fleet: FollowedFleet
  /** Throws StoreError where the upstream did not take them. */
  readonly send: (reports: readonly EvidenceReport[]) => Promise<void>
  readonly now: () => Date
  readonly flushMs?: number
  /** Called with the first failure, and not again until reports are taken again. */
  readonly failed: (error: StoreError) => void
}

const FLUSH_MS = 10_000

/** While the upstream is away only keys are kept: it gets what is known when it is back. Returns a function that stops it. */
export function forwardEvidence(parts: ForwarderParts): () => Promise<void> {
  const { fleet, send, now, flushMs = FLUSH_MS, failed } = parts
  const record = (kind: string, notes: readonly Note[]): Promise<void> =>
    send(notes.map((note) => reportOf(kind as EvidenceKind, note, now().getTime())))
  const buffers = EVIDENCE_KINDS.map((kind) => {
    // A cluster that is no more here, such as one that has left the mirror's selector, is not reported on.
    const noteOf = (key: string): Note | undefined =>
      fleet.isKnown(key) ? fleet.fleet.noteOf(kind, key) : undefined
    return [kind, new NoteBuffer({ store: { notes: { record } }, kind, noteOf, flushMs, failed })] as const
  })
  const byKind = new Map(buffers)
  // Upstreams of earlier versions know no notes of times alone.
  fleet.onTouched((kind, key) => {
    if (kind !== SEEN) return byKind.get(kind)?.touch(key)
    const record = fleet.fleet.records.get(key)
    if (record) for (const each of pollKeysOf(key, record)) byKind.get('polls')?.touch(each)
  })
  return async () => {
    for (const [, buffer] of buffers) await buffer.stop()
  }
}

function reportOf(kind: EvidenceKind, { key, time, value }: Note, now: number): EvidenceReport {
  const content = value === null ? null : (JSON.parse(value) as Json)
  return {
    kind,
    key,
    age_ms: Math.max(0, now - Date.parse(time)),
    value: shiftTimes(kind, content, -now) as EvidenceReport['value'],
  }
}

/** The note of a report that came at this moment. */
export function noteOfReport(kind: EvidenceKind, { key, age_ms, value }: EvidenceReport, now: number): Note {
  const content = shiftTimes(kind, value, now)
  return {
    key,
    time: new Date(now - age_ms).toISOString(),
    value: content === null ? null : JSON.stringify(content),
  }
}
