// Others that serve what a fleet with rollouts is served: processes that start anew, mirrors, and readers of the past.
import assert from 'node:assert/strict'
import { parseSelector } from '../src/domain/access/selector.ts'
import type { View } from '../src/domain/documents/view.ts'
import { type Engine, startEngine } from '../src/engine/engine.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import type { ExportOptions } from '../src/transfer/export-log.ts'
import { importLog } from '../src/transfer/import-log.ts'
import { CLUSTER_IDS } from './random-changes.ts'
import { answersTo, types } from './rollout-model.ts'

type Answers = Readonly<Record<string, readonly string[]>>

/** What every cluster gets, those that are deleted or unknown included. */
export function answersIn(view: View, ids: readonly string[] = CLUSTER_IDS): Answers {
  return Object.fromEntries(ids.map((id) => [id, answersTo(view, id)]))
}

async function mirrorOf({ past }: Engine, options: Partial<ExportOptions> = {}): Promise<Engine> {
  const now = () => new Date('2026-03-01T00:00:00Z')
  const store = openMemoryStore()
  await importLog(store, past.export({ since: 0, now: now(), ...options }))
  return startEngine({ store, types, now })
}

/** A mirror serves the same bytes, and one of a part of the fleet the same bytes to that part. */
export async function assertMirrors(engine: Engine, text: string): Promise<void> {
  const mirror = await mirrorOf(engine)
  assert.deepEqual(answersIn(mirror.state), answersIn(engine.state))
  await mirror.stop()
  const parsed = parseSelector(types, text)
  assert.ok(parsed.ok)
  const { selector } = parsed
  const part = await mirrorOf(engine, { selection: { selector, types } })
  const inPart = CLUSTER_IDS.filter((id) => {
    const entry = engine.state.get('clusters', id)
    return entry && selector.matches(entry.document)
  })
  assert.deepEqual(answersIn(part.state, inPart), answersIn(engine.state, inPart))
  await part.stop()
}

/** What is read of a revision is what was served then, also where only one cluster is read. */
export async function assertPast({ past }: Engine, served: ReadonlyMap<number, Answers>): Promise<void> {
  for (const [revision, answers] of served) {
    const read = await past.read(revision, undefined, function* (view) {
      yield
      return answersIn(view)
    })
    assert.deepEqual(read, answers, `at revision ${revision}`)
    for (const [i, type] of types.delivered.entries())
      for (const id of CLUSTER_IDS.slice(0, 3)) {
        const view = await past.cluster(revision, id, type)
        assert.equal(answersTo(view, id)[i], answers[id]?.[i], `${id} at revision ${revision}`)
      }
  }
}
