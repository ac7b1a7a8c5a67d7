// Laws of previews, of the way back and of time travel, over fleets made at random.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { finish } from '../src/base/steps.ts'
import type { Command, WriteCommand } from '../src/domain/commands/command.ts'
import { decide } from '../src/domain/commands/decide.ts'
import type { Impact } from '../src/domain/delivery/impact.ts'
import { renderInputs } from '../src/domain/delivery/render-inputs.ts'
import { servedTo } from '../src/domain/delivery/served-view.ts'
import { beforeAndAfter } from '../src/domain/documents/describe-change.ts'
import type { View } from '../src/domain/documents/view.ts'
import type { Engine } from '../src/engine/engine.ts'
import type { Written } from '../src/engine/write-options.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import {
  AUTHOR,
  answersOf,
  command,
  commands,
  documentsOf,
  RUNS,
  SLOW_RUNS,
  start,
  types,
} from './random-fleet.ts'
import { difference, received, told } from './received-differences.ts'
import { temporaryFolder } from './service.ts'

const CONFIRMED = { confirmRemovals: true }
/** Mostly one command, sometimes a batch. */
const writes = fc.array(
  fc.oneof({ weight: 3, arbitrary: fc.tuple(command) }, fc.array(command, { minLength: 2, maxLength: 3 })),
  { minLength: 10, maxLength: 30 },
)

function revert(revision: number): WriteCommand {
  return { op: 'revert', revision, path: '' }
}

async function startAfter(prelude: readonly Command[]): Promise<Engine> {
  const engine = await start(openMemoryStore())
  for (const next of prelude) await engine.write([next], AUTHOR, CONFIRMED)
  return engine
}

/** Documents and tombstones, whatever revision made them so. */
function standing(view: View): Record<string, unknown> {
  const found = documentsOf(view) as Record<string, { document: unknown }>
  return Object.fromEntries(Object.entries(found).map(([key, { document }]) => [key, document]))
}

function assertCounts(impact: Impact): void {
  const clusters = new Set(impact.details.map(({ cluster }) => cluster))
  assert.equal(impact.clusters, clusters.size)
  assert.equal(
    Object.values(impact.by_environment).reduce((a, b) => a + b, 0),
    clusters.size,
  )
  for (const [endpoint, counts] of Object.entries(impact.endpoints)) {
    const details = impact.details.filter((detail) => detail.endpoint === endpoint)
    const sum = (key: 'added' | 'removed' | 'changed') =>
      details.reduce((n, detail) => n + detail[key].length, 0)
    const expected = {
      clusters: details.length,
      added: sum('added'),
      removed: sum('removed'),
      changed: sum('changed'),
    }
    assert.deepEqual(counts, expected)
    // Counted once more by input, without the clusters that come and go.
    if (impact.joining + impact.leaving > 0) continue
    const inputs = impact.inputs.filter((input) => input.endpoint === endpoint)
    const byInput = (key: 'added' | 'removed' | 'changed') => inputs.reduce((n, input) => n + input[key], 0)
    assert.deepEqual(
      { added: byInput('added'), removed: byInput('removed'), changed: byInput('changed') },
      { added: sum('added'), removed: sum('removed'), changed: sum('changed') },
    )
  }
}

function changesOf({ changes }: Written) {
  return changes.map(beforeAndAfter)
}

test('a dry run changes nothing, and applied at once its plan does exactly what it showed', async () => {
  let applied = 0
  await fc.assert(
    fc.asyncProperty(writes, async (sequence) => {
      const engine = await start(openMemoryStore())
      for (const work of sequence) {
        const before = [documentsOf(engine.state), answersOf(engine), engine.state.revision]
        const preview = await engine.write(work, AUTHOR, { dryRun: true, impactLimit: 1000 })
        assert.deepEqual([documentsOf(engine.state), answersOf(engine), engine.state.revision], before)
        const { plan } = preview.ok ? preview.value : {}
        const options = { ...CONFIRMED, ...(plan && { plan }), impactLimit: 1000 }
        const done = await engine.write(work, AUTHOR, options)
        assert.equal(done.ok, preview.ok)
        if (!preview.ok || !done.ok) continue
        assert.deepEqual(changesOf(done.value), changesOf(preview.value))
        assert.deepEqual(done.value.impact, preview.value.impact)
        assert.equal(done.value.plan, plan)
        if (done.value.changes.length > 0) applied++
      }
    }),
    RUNS,
  )
  assert.ok(applied > 500, `only ${applied} were applied`)
})

test('the impact is the difference of all answers before and after', async () => {
  let felt = 0
  await fc.assert(
    fc.asyncProperty(writes, async (sequence) => {
      const engine = await start(openMemoryStore())
      for (const work of sequence) {
        const before = received(engine.state)
        const done = await engine.write(work, AUTHOR, { ...CONFIRMED, impactLimit: 1000 })
        if (!done.ok || done.value.changes.length === 0) continue
        const impact = done.value.impact ?? assert.fail()
        assert.deepEqual(told(impact), difference(before, received(engine.state)))
        assertCounts(impact)
        assert.deepEqual(await engine.past.impactOf(engine.state.revision, 1000), impact)
        if (impact.clusters > 0) felt++
      }
    }),
    RUNS,
  )
  assert.ok(felt > 200, `only ${felt} changed anything for a cluster`)
})

test('commands are data: stored and read again, they decide the same', async () => {
  let decided = 0
  await fc.assert(
    fc.asyncProperty(writes, async (sequence) => {
      const engine = await start(openMemoryStore())
      for (const batch of sequence) {
        const stored: Command[] = JSON.parse(JSON.stringify(batch))
        const [here, there] = [batch, stored].map((each) => finish(decide(types, engine.state, each)))
        assert.deepEqual(there?.ok ? decidedOf(there.value) : there, here?.ok ? decidedOf(here.value) : here)
        const done = await engine.write(stored, AUTHOR, CONFIRMED)
        if (done.ok) decided++
      }
      await engine.stop()
    }),
    RUNS,
  )
  assert.ok(decided > 500, `only ${decided} were done`)
})

function decidedOf({ changes, outcomes, warnings }: Pick<Written, 'changes' | 'outcomes' | 'warnings'>) {
  return { changes: changes.map(beforeAndAfter), outcomes, warnings }
}

test('a revision that is reverted at once leaves everything as it was before', async () => {
  let reverted = 0
  await fc.assert(
    fc.asyncProperty(writes, async (sequence) => {
      const engine = await start(openMemoryStore())
      for (const work of sequence) {
        const before = [standing(engine.state), answersOf(engine)]
        const done = await engine.write(work, AUTHOR, CONFIRMED)
        if (!done.ok || done.value.changes.length === 0) continue
        const back = await engine.write([revert(done.value.revision)], AUTHOR, CONFIRMED)
        assert.ok(back.ok, JSON.stringify(back))
        assert.deepEqual([standing(engine.state), answersOf(engine)], before)
        assert.ok((await engine.write(work, AUTHOR, CONFIRMED)).ok)
        reverted++
      }
    }),
    RUNS,
  )
  assert.ok(reverted > 500, `only ${reverted} were reverted`)
})

test('a revert undoes its own revision alone, or is refused and does nothing', async () => {
  await fc.assert(
    fc.asyncProperty(commands, fc.nat(), async (prelude, pick) => {
      const engine = await startAfter(prelude)
      const revision = 1 + (pick % engine.state.revision)
      const before = [documentsOf(engine.state), engine.state.revision]
      const back = await engine.write([revert(revision)], AUTHOR, CONFIRMED)
      if (!back.ok) return assert.deepEqual([documentsOf(engine.state), engine.state.revision], before)
      const [undone] = await engine.past.history({ revision, limit: 1, changeLimit: 1000 })
      const touched = new Set(undone?.changes.map(({ type, id }) => `${type}/${id}`))
      for (const { type, id } of back.value.changes) assert.ok(touched.has(`${type}/${id}`))
      // Undone once more there is nothing left to undo.
      const again = await engine.write([revert(revision)], AUTHOR, CONFIRMED)
      if (again.ok) assert.deepEqual(again.value.changes, [])
    }),
    RUNS,
  )
})

test('what is read of any revision is what was served then, and a rollback brings it back', async (t) => {
  const folder = temporaryFolder(t)
  let run = 0
  await fc.assert(
    fc.asyncProperty(commands, fc.nat(), fc.boolean(), async (sequence, pick, onDisk) => {
      const store = onDisk
        ? openSqliteStore({ path: join(folder, `${run++}.db`), write: true })
        : openMemoryStore()
      const engine = await start(store)
      const served = new Map<number, { documents: unknown; inputs: unknown; standing: unknown }>()
      const note = (view: View) => ({
        documents: documentsOf(view),
        inputs: textsOf(view),
        standing: standing(view),
      })
      served.set(engine.state.revision, note(engine.state))
      for (const next of sequence) {
        await engine.write([next], AUTHOR, CONFIRMED)
        served.set(engine.state.revision, note(engine.state))
      }
      const read = (revision: number) =>
        engine.past.read(revision, undefined, function* (view) {
          yield
          return note(view)
        })
      for (const [revision, then] of served) assert.deepEqual(await read(revision), then)
      await assertClusterViews(engine, served)
      const to = 1 + (pick % engine.state.revision)
      const request = { to: { revision: to }, allowEmpty: false }
      const back = await engine.write([{ op: 'rollback', path: '', ...request }], AUTHOR, CONFIRMED)
      assert.ok(back.ok, JSON.stringify(back))
      assert.deepEqual(standing(engine.state), served.get(to)?.standing)
      assert.deepEqual(textsOf(engine.state), served.get(to)?.inputs)
      const verification = await engine.past.verify()
      assert.deepEqual([verification.problems, verification.to], [[], engine.state.revision])
      await engine.stop()
    }),
    SLOW_RUNS,
  )
})

/** The very bytes that every cluster gets. */
function textsOf(view: View): Record<string, string> {
  const texts: Record<string, string> = {}
  for (const entry of view.all('clusters')) {
    for (const type of types.delivered) {
      texts[`${entry.id} ${type.delivery.endpoint}`] = renderInputs(
        servedTo(types, view, entry.id),
        types,
        type,
        entry,
      ).text
    }
  }
  return texts
}

/** One cluster can be read without the rest of the fleet. */
async function assertClusterViews(
  engine: Engine,
  served: ReadonlyMap<number, { documents: unknown; inputs: unknown }>,
): Promise<void> {
  for (const [revision, { documents, inputs }] of served) {
    for (const id of ['k0', 'k1', 'k2', 'k3']) {
      for (const type of types.delivered) {
        const view = await engine.past.cluster(revision, id, type)
        const entry = view.get('clusters', id)
        const known = (documents as Record<string, unknown>)[`clusters/${id}`]
        assert.deepEqual(entry && { document: entry.document, revision: entry.revision }, known)
        const text = entry && renderInputs(servedTo(types, view, entry.id), types, type, entry).text
        assert.equal(text, (inputs as Record<string, string>)[`${id} ${type.delivery.endpoint}`])
      }
    }
  }
}
