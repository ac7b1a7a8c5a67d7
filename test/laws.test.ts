// Laws that hold after any sequence of commands, over fleets made at random.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { isObject, type JsonObject } from '../src/base/json.ts'
import { renderInputs } from '../src/domain/delivery/render-inputs.ts'
import { servedTo } from '../src/domain/delivery/served-view.ts'
import type { View } from '../src/domain/documents/view.ts'
import { type Document, idsIn, referencesOf } from '../src/domain/types/resource-type.ts'
import type { Engine } from '../src/engine/engine.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import {
  AUTHOR,
  answersOf,
  command,
  commands,
  contents,
  documentsOf,
  load,
  RUNS,
  SLOW_RUNS,
  start,
  types,
} from './random-fleet.ts'
import { temporaryFolder } from './service.ts'
import { withoutDigests } from './without-digests.ts'

/** What the brake holds is to happen here. */
const CONFIRMED = { confirmRemovals: true }

function assertWhole(view: View): void {
  const names = new Map<string, string>()
  for (const { id, document } of view.all('clusters')) {
    const name = String(document.cluster_dns).toLowerCase()
    assert.equal(names.get(name), undefined, `${name} has two clusters`)
    names.set(name, id)
    for (const { name: type, delivery } of types.delivered) {
      const ids = referencesOf(document, delivery).map((reference) => reference.id)
      assert.equal(new Set(ids).size, ids.length, `${id} has duplicates in ${type}`)
      for (const wanted of ids) assert.ok(view.get(type, wanted), `${id} refers to no ${type}/${wanted}`)
      if (!delivery.patches) continue
      for (const patched of Object.keys(document.patches as JsonObject))
        assert.ok(ids.includes(patched), `${id} patches ${patched}`)
    }
  }
  for (const { id, document } of view.all('platform_components')) assertAcyclic(view, document, [id])
}

function assertAcyclic(view: View, document: Document, way: readonly string[]): void {
  for (const next of idsIn(document.depends_on)) {
    const entry = view.get('platform_components', next)
    assert.ok(entry, `${document.id} depends on no ${next}`)
    assert.ok(!way.includes(next), `a cycle: ${[...way, next].join(' → ')}`)
    assertAcyclic(view, entry.document, [...way, next])
  }
}

/** What the Flux Operator asks of an answer, and what it cannot carry. */
function assertContract(text: string): void {
  assert.ok(Buffer.byteLength(text) <= 921_600)
  const answer = JSON.parse(text)
  assert.deepEqual(Object.keys(answer), ['inputs'])
  assert.ok(Array.isArray(answer.inputs) && answer.inputs.length <= 10_000)
  const ids = answer.inputs.map((input: JsonObject) => input.id)
  for (const id of ids) assert.match(id, /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
  assert.equal(new Set(ids).size, ids.length)
  for (const input of answer.inputs) {
    assert.equal(Object.keys(input)[0], 'id')
    assert.ok(isObject(input.cluster))
    assert.ok(!('provider' in input))
    assert.deepEqual(Object.keys(input).slice(-2), ['digest', 'answer_digest'])
    for (const digest of [input.digest, input.answer_digest]) assert.match(digest, /^[0-9a-f]{16}$/)
  }
  assert.ok(!hasNull(answer), `a null in ${text}`)
}

function isHelm({ oci_url, delivery }: Document): boolean {
  return delivery === 'helm' || /^https?:/.test(String(oci_url))
}

/** The merge in its simplest words, for the type that uses all of it. */
function assertMerged({ state }: Engine): void {
  const type = types.byEndpoint('platform-components') ?? assert.fail()
  for (const entry of state.all('clusters')) {
    const { document } = entry
    const patches = document.patches as Record<string, JsonObject>
    const references = referencesOf(document, type.delivery)
    const inputs = references.map((reference) => {
      const catalog = state.get('platform_components', reference.id)?.document ?? assert.fail()
      const { component_version, cluster_env_enabled, depends_on, oci_url, delivery } = catalog
      return {
        id: reference.id,
        component_path: reference.component_path ?? catalog.component_path,
        component_version,
        cluster_env_enabled,
        depends_on: (depends_on as string[]).filter((needed) => {
          const other = references.find(({ id }) => id === needed)
          const its = state.get('platform_components', needed)?.document
          return other?.enabled && its && isHelm(its) === isHelm(catalog)
        }),
        enabled: reference.enabled,
        patches: patches[reference.id] ?? {},
        cluster: {
          name: document.cluster_name,
          dns: document.cluster_dns,
          environment: document.environment,
        },
        source: { oci_url, oci_tag: reference.oci_tag ?? catalog.oci_tag },
        ...(delivery !== undefined && { delivery }),
      }
    })
    const { text } = renderInputs(servedTo(types, state, entry.id), types, type, entry)
    assert.equal(withoutDigests(text), JSON.stringify({ inputs }))
  }
}

function hasNull(value: unknown): boolean {
  if (value === null) return true
  return typeof value === 'object' && Object.values(value).some(hasNull)
}

test('after any commands references are whole and answers keep the contract; a refusal changes nothing', async () => {
  await fc.assert(
    fc.asyncProperty(commands, async (sequence) => {
      const engine = await start(openMemoryStore())
      for (const next of sequence) {
        const before = documentsOf(engine.state)
        const { revision } = engine.state
        const result = await engine.write([next], AUTHOR, CONFIRMED)
        if (result.ok) assertWhole(engine.state)
        else assert.deepEqual([documentsOf(engine.state), engine.state.revision], [before, revision])
        for (const { text } of Object.values(answersOf(engine))) assertContract(text)
        assertMerged(engine)
      }
    }),
    RUNS,
  )
})

test('the commands of the laws really create, change, delete and refuse', async () => {
  const seen = new Map<string, number>()
  const note = (what: string): unknown => seen.set(what, (seen.get(what) ?? 0) + 1)
  for (const sequence of fc.sample(commands, { numRuns: 150, seed: 7 })) {
    const engine = await start(openMemoryStore())
    for (const next of sequence) {
      const result = await engine.write([next], AUTHOR, CONFIRMED)
      note(
        `${next.op} ${result.ok ? (result.value.changes.length > 0 ? 'done' : 'unchanged') : result.problem.code}`,
      )
    }
  }
  for (const op of [
    'create',
    'replace',
    'patch',
    'delete',
    'restore',
    'assign',
    'unassign',
    'patch_values',
    'for_clusters',
  ]) {
    assert.ok((seen.get(`${op} done`) ?? 0) > 5, `${op} hardly ever succeeds: ${JSON.stringify([...seen])}`)
  }
  for (const refusal of [
    'create conflict',
    'create validation_error',
    'delete conflict',
    'delete not_found',
  ]) {
    assert.ok((seen.get(refusal) ?? 0) > 5, `${refusal} hardly ever happens`)
  }
})

test('memory and SQLite agree, and a state loaded or rebuilt from the log equals the state that was served', async (t) => {
  const folder = temporaryFolder(t)
  let run = 0
  await fc.assert(
    fc.asyncProperty(commands, async (sequence) => {
      const path = join(folder, `${run++}.db`)
      const inMemory = await start(openMemoryStore())
      const onDisk = await start(openSqliteStore({ path, write: true }))
      for (const next of sequence) {
        const [a, b] = await Promise.all([
          inMemory.write([next], AUTHOR, CONFIRMED),
          onDisk.write([next], AUTHOR, CONFIRMED),
        ])
        assert.equal(a.ok ? 'done' : a.problem.message, b.ok ? 'done' : b.problem.message)
      }
      const served = documentsOf(inMemory.state)
      const answers = answersOf(inMemory)
      assert.deepEqual(documentsOf(onDisk.state), served)
      assert.deepEqual(answersOf(onDisk), answers)
      const log = await onDisk.past.history({ limit: 1000, changeLimit: 1000 })
      await onDisk.stop()
      const loaded = await load(openSqliteStore({ path, mode: 'rw', write: false }))
      assert.deepEqual(documentsOf(loaded.state), served)
      assert.deepEqual(answersOf(loaded), answers)
      await loaded.stop()
      const rebuilt: Record<string, unknown> = {}
      for (const { revision, changes } of log.toReversed()) {
        for (const { type, id, after, after_deleted } of changes) {
          delete rebuilt[`${type}/${id}`]
          delete rebuilt[`deleted/${id}`]
          if (after)
            rebuilt[after_deleted ? `deleted/${id}` : `${type}/${id}`] = { document: after, revision }
        }
      }
      assert.deepEqual(rebuilt, served)
    }),
    SLOW_RUNS,
  )
})

test('a batch does what its commands do one by one, or nothing at all', async () => {
  await fc.assert(
    fc.asyncProperty(commands, fc.array(command, { minLength: 2, maxLength: 3 }), async (prelude, batch) => {
      const store = openMemoryStore()
      const [oneByOne, atOnce] = [await start(openMemoryStore()), await start(store)]
      for (const next of prelude) {
        await oneByOne.write([next], AUTHOR, CONFIRMED)
        await atOnce.write([next], AUTHOR, CONFIRMED)
      }
      const before = documentsOf(atOnce.state)
      const together = await atOnce.write(batch, AUTHOR, CONFIRMED)
      if (!together.ok) return assert.deepEqual(documentsOf(atOnce.state), before)
      assertWhole(atOnce.state)
      assert.deepEqual(answersOf(atOnce), answersOf(await load(store)))
      let allDone = true
      for (const next of batch) allDone = (await oneByOne.write([next], AUTHOR, CONFIRMED)).ok && allDone
      // Together, commands may lean on later ones (a dependency that is created after its user).
      if (allDone) assert.deepEqual(contents(atOnce.state), contents(oneByOne.state))
    }),
    { ...RUNS, numRuns: 400 },
  )
})

test('equal answers have equal ETags and different answers have different ones', async () => {
  const byEtag = new Map<string, string>()
  const byText = new Map<string, string>()
  await fc.assert(
    fc.asyncProperty(commands, async (sequence) => {
      const engine = await start(openMemoryStore())
      for (const next of sequence) {
        await engine.write([next], AUTHOR, CONFIRMED)
        for (const { text, etag } of Object.values(answersOf(engine))) {
          assert.equal(byEtag.get(etag) ?? text, text, 'one ETag for two answers')
          assert.equal(byText.get(text) ?? etag, etag, 'two ETags for one answer')
          byEtag.set(etag, text)
          byText.set(text, etag)
        }
      }
    }),
    RUNS,
  )
  assert.ok(byText.size > 100, `only ${byText.size} different answers`)
})
