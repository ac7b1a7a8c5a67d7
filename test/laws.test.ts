// Laws that hold after any sequence of commands, over fleets made at random.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Command } from '../src/domain/command.ts'
import { isObject, type Json, type JsonObject } from '../src/domain/json.ts'
import { renderInputs } from '../src/domain/render-inputs.ts'
import { type Document, idsIn, referencesOf } from '../src/domain/resource-type.ts'
import type { View } from '../src/domain/view.ts'
import { type Engine, startEngine } from '../src/engine/engine.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { openSqliteStore } from '../src/store/sqlite.ts'
import type { Store } from '../src/store/store.ts'
import { builtInTypes, temporaryFolder } from './service.ts'

const types = builtInTypes()
/** Failing is enough where every run takes a database; elsewhere the smallest example is looked for, for a while. */
const RUNS = { numRuns: 300, interruptAfterTimeLimit: 30_000, markInterruptAsFailure: true }
const SLOW_RUNS = { numRuns: 40, endOnFailure: true }

const AUTHOR = { actor: 'law', message: null, request_id: 'law', client_address: null }
const DEFINITIONS = ['platform_components', 'namespaces', 'rolebindings']

const component = fc.constantFrom('a', 'b', 'c', 'd')
const namespace = fc.constantFrom('n0', 'n1', 'n2')
const rolebinding = fc.constantFrom('r0', 'r1')
const cluster = fc.constantFrom('k0', 'k1', 'k2', 'k3')
const dns = fc.constantFrom('k0.example.com', 'k1.example.com', 'k2.example.com', 'K2.example.com')
const text = fc.oneof(
  fc.constantFrom('v1', 'v2'),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }),
)
const values = fc.dictionary(fc.constantFrom('replicas', 'ui.color', '0', 'ünï'), text, { maxKeys: 3 })
const override = fc.record({ oci_tag: fc.option(text), enabled: fc.boolean() }, { requiredKeys: [] })

const componentDocument = fc.record({
  id: component,
  component_path: text,
  component_version: text,
  oci_url: text,
  oci_tag: text,
  depends_on: fc.array(component, { maxLength: 2 }),
})
const clusterDocument = fc.record(
  {
    id: cluster,
    cluster_name: text,
    cluster_dns: dns,
    environment: fc.constantFrom('dev', 'prod'),
    platform_components: fc.array(
      fc.tuple(component, override).map(([id, more]) => ({ id, ...more })),
      { maxLength: 4 },
    ),
    namespaces: fc.array(
      namespace.map((id) => ({ id })),
      { maxLength: 3 },
    ),
    rolebindings: fc.array(
      rolebinding.map((id) => ({ id })),
      { maxLength: 2 },
    ),
    patches: fc.dictionary(component, values, { maxKeys: 2 }),
  },
  { requiredKeys: ['id', 'cluster_name', 'cluster_dns', 'environment'] },
)
const document = fc.oneof(
  componentDocument.map((value) => ['platform_components', value] as const),
  fc
    .record({ id: namespace, labels: fc.dictionary(fc.constantFrom('x', 'y'), fc.constantFrom('1', '2')) })
    .map((value) => ['namespaces', value] as const),
  rolebinding.map(
    (id) => ['rolebindings', { id, role: 'view', subjects: [{ kind: 'Group', name: id }] }] as const,
  ),
  clusterDocument.map((value) => ['clusters', value] as const),
)
const target = fc.oneof(
  component.map((id) => ['platform_components', id] as const),
  namespace.map((id) => ['namespaces', id] as const),
  rolebinding.map((id) => ['rolebindings', id] as const),
)

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 4,
    arbitrary: document.map(
      ([type, value]) => ({ op: 'create', type, document: value as Json, path: '' }) as const,
    ),
  },
  document.map(
    ([type, value]) => ({ op: 'replace', type, id: value.id, document: value as Json, path: '' }) as const,
  ),
  fc
    .tuple(
      component,
      fc.record({ oci_tag: text, depends_on: fc.array(component, { maxLength: 2 }) }, { requiredKeys: [] }),
    )
    .map(
      ([id, patch]) =>
        ({ op: 'patch', type: 'platform_components', id, patch, format: 'merge', path: '' }) as const,
    ),
  fc
    .tuple(
      cluster,
      fc.record(
        { cluster_dns: dns, patches: fc.dictionary(component, fc.option(values)) },
        { requiredKeys: [] },
      ),
    )
    .map(
      ([id, patch]) =>
        ({ op: 'patch', type: 'clusters', id, patch: patch as Json, format: 'merge', path: '' }) as const,
    ),
  fc
    .tuple(target, fc.boolean())
    .map(([[type, id], cascade]) => ({ op: 'delete', type, id, cascade, purge: false, path: '' }) as const),
  fc
    .tuple(cluster, fc.boolean())
    .map(([id, purge]) => ({ op: 'delete', type: 'clusters', id, cascade: false, purge, path: '' }) as const),
  cluster.map((id) => ({ op: 'restore', type: 'clusters', id, path: '' }) as const),
  {
    weight: 3,
    arbitrary: fc.tuple(target, cluster, override, fc.boolean()).map(
      ([[type, id], to, reference, merge]) =>
        ({
          op: 'assign',
          type,
          cluster: to,
          id,
          reference: type === 'platform_components' ? reference : {},
          merge,
          path: '',
        }) as const,
    ),
  },
  fc
    .tuple(target, cluster)
    .map(([[type, id], from]) => ({ op: 'unassign', type, cluster: from, id, path: '' }) as const),
  fc
    .tuple(
      component,
      cluster,
      fc.dictionary(fc.constantFrom('replicas', 'ui.color'), fc.option(text)),
      fc.boolean(),
    )
    .map(
      ([id, of, changed, merge]) =>
        ({ op: 'patch_values', cluster: of, component: id, values: changed, merge, path: '' }) as const,
    ),
)
const commands = fc.array(command, { minLength: 20, maxLength: 50 })

function load(store: Store): Promise<Engine> {
  return startEngine({ store, types, now: () => new Date(0) })
}

/** A small fleet to begin with, so that commands find something to work on. */
async function start(store: Store): Promise<Engine> {
  const engine = await load(store)
  const source = { component_path: 'p', component_version: '1', oci_url: 'oci://x', oci_tag: 'v1' }
  const fleet: [string, Json][] = [
    ['platform_components', { id: 'a', ...source }],
    ['platform_components', { id: 'b', ...source, depends_on: ['a'] }],
    ['namespaces', { id: 'n0' }],
    ['rolebindings', { id: 'r0', role: 'view', subjects: [] }],
    [
      'clusters',
      {
        id: 'k0',
        cluster_name: 'k0',
        cluster_dns: 'k0.example.com',
        environment: 'dev',
        platform_components: [{ id: 'a' }, { id: 'b' }],
        namespaces: [{ id: 'n0' }],
      },
    ],
  ]
  const created = await engine.write(
    fleet.map(([type, value]) => ({ op: 'create', type, document: value, path: '' })),
    AUTHOR,
  )
  assert.ok(created.ok)
  return engine
}

function documentsOf(view: View): Record<string, unknown> {
  const found: Record<string, unknown> = {}
  for (const { name } of types.all) {
    for (const { id, document, revision } of view.all(name)) found[`${name}/${id}`] = { document, revision }
  }
  for (const id of ['k0', 'k1', 'k2', 'k3']) {
    const tombstone = view.tombstone('clusters', id)
    if (tombstone) found[`deleted/${id}`] = { document: tombstone.document, revision: tombstone.revision }
  }
  return found
}

/** Every answer that any cluster could get. */
function answersOf({ state }: Engine): Record<string, { text: string; etag: string }> {
  const answers: Record<string, { text: string; etag: string }> = {}
  for (const name of ['k0.example.com', 'k1.example.com', 'k2.example.com']) {
    const entry = state.clusterByDns(name)
    if (!entry) continue
    for (const type of types.delivered) {
      const { text, digest } = renderInputs(state, types, type, entry)
      answers[`${name}/${type.delivery.endpoint}`] = { text, etag: `${digest.a}.${digest.b}` }
    }
  }
  return answers
}

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
  }
  assert.ok(!hasNull(answer), `a null in ${text}`)
}

/** The merge in its simplest words, for the type that uses all of it. */
function assertMerged({ state }: Engine): void {
  const type = types.byEndpoint('platform-components') ?? assert.fail()
  for (const entry of state.all('clusters')) {
    const { document } = entry
    const patches = document.patches as Record<string, JsonObject>
    const inputs = referencesOf(document, type.delivery).map((reference) => {
      const catalog = state.get('platform_components', reference.id)?.document ?? assert.fail()
      const { component_version, cluster_env_enabled, depends_on, oci_url } = catalog
      return {
        id: reference.id,
        component_path: reference.component_path ?? catalog.component_path,
        component_version,
        cluster_env_enabled,
        depends_on,
        enabled: reference.enabled,
        patches: patches[reference.id] ?? {},
        cluster: {
          name: document.cluster_name,
          dns: document.cluster_dns,
          environment: document.environment,
        },
        source: { oci_url, oci_tag: reference.oci_tag ?? catalog.oci_tag },
      }
    })
    assert.equal(renderInputs(state, types, type, entry).text, JSON.stringify({ inputs }))
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
        const result = await engine.write([next], AUTHOR)
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
      const result = await engine.write([next], AUTHOR)
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
        const [a, b] = await Promise.all([inMemory.write([next], AUTHOR), onDisk.write([next], AUTHOR)])
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
        await oneByOne.write([next], AUTHOR)
        await atOnce.write([next], AUTHOR)
      }
      const before = documentsOf(atOnce.state)
      const together = await atOnce.write(batch, AUTHOR)
      if (!together.ok) return assert.deepEqual(documentsOf(atOnce.state), before)
      assertWhole(atOnce.state)
      assert.deepEqual(answersOf(atOnce), answersOf(await load(store)))
      let allDone = true
      for (const next of batch) allDone = (await oneByOne.write([next], AUTHOR)).ok && allDone
      // Together, commands may lean on later ones (a dependency that is created after its user).
      if (allDone) assert.deepEqual(contents(atOnce.state), contents(oneByOne.state))
    }),
    { ...RUNS, numRuns: 2000 },
  )
})

function contents(view: View): unknown {
  return DEFINITIONS.concat('clusters').map((name) => [...view.all(name)].map(({ document }) => document))
}

test('equal answers have equal ETags and different answers have different ones', async () => {
  const byEtag = new Map<string, string>()
  const byText = new Map<string, string>()
  await fc.assert(
    fc.asyncProperty(commands, async (sequence) => {
      const engine = await start(openMemoryStore())
      for (const next of sequence) {
        await engine.write([next], AUTHOR)
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
