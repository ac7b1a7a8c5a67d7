import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Explanation } from '../src/api/wire-types.ts'
import type { Json } from '../src/base/json.ts'
import type { ExplainedField } from '../src/domain/delivery/explain-input.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import { pruneLog } from '../src/transfer/verify-log.ts'
import { assertProblem, STORES, start } from './every-store.ts'
import { builtInTypes, chartFleet, READ_TOKEN, type TestService, temporaryFolder } from './service.ts'
import { withoutDigests } from './without-digests.ts'

const ENDPOINTS = ['platform-components', 'namespaces', 'rolebindings']
const EXAMPLE = join(import.meta.dirname, '../examples/network-policies')

async function explain(
  service: TestService,
  endpoint: string,
  { cluster = 'one', at = '' }: { cluster?: string; at?: number | string } = {},
): Promise<Explanation> {
  const url = `/clusters/${cluster}/inputs/${endpoint}?explain=true${at === '' ? '' : `&at=${at}`}`
  const answer = await service.call('GET', url, { token: READ_TOKEN })
  assert.equal(answer.status, 200, `${url}: ${answer.text}`)
  assert.equal(answer.headers['x-revision'], String(answer.body.revision))
  return answer.body
}

/** Where one field comes from: source, document and message. */
async function originOf(service: TestService, endpoint: string, id: string, path: string): Promise<string> {
  const { inputs } = await explain(service, endpoint)
  const field = inputs.find((input) => input.id === id)?.fields.find((other) => other.path === path)
  assert.ok(field, `${id} has no ${path}`)
  return `${field.source} ${field.document}: ${field.message}`
}

type Write = readonly [message: string, method: string, url: string, body?: Json]

/** Runs writes that must succeed, each with its message. */
async function run(service: TestService, ...writes: Write[]): Promise<void> {
  for (const [message, method, url, body] of writes) {
    const answer = await service.call(method, url, { body, headers: { 'x-change-message': message } })
    assert.ok(answer.status < 300, `${method} ${url}: ${answer.text}`)
  }
}

type JsonMap = { readonly [key: string]: Json }

function keysIn(path: string): string[] {
  const steps = path.split('/').slice(1)
  return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** The input that the fields make up. */
function assemble(fields: readonly ExplainedField[]): JsonMap {
  const input: Record<string, Json> = {}
  for (const { path, value } of fields) {
    const keys = keysIn(path)
    const last = keys.pop() as string
    const holder = keys.reduce<Record<string, Json>>((object, key) => {
      object[key] ??= {}
      return object[key] as Record<string, Json>
    }, input)
    assert.ok(!Object.hasOwn(holder, last), `${path} is told twice`)
    holder[last] = value
  }
  return input
}

/** Compares the explanation of all inputs with the inputs themselves, and its revisions with the log. */
async function assertExplainsAll(service: TestService, cluster = 'one', at = ''): Promise<void> {
  for (const endpoint of ENDPOINTS) {
    const explained = await explain(service, endpoint, { cluster, at })
    const query = at === '' ? '' : `?at=${at}`
    const { text } = await service.call('GET', `/clusters/${cluster}/inputs/${endpoint}${query}`)
    assert.equal(explained.cluster, cluster)
    assert.equal(explained.endpoint, endpoint)
    assert.deepEqual(
      explained.inputs.map(({ fields }) => assemble(fields)),
      JSON.parse(withoutDigests(text)).inputs,
    )
    for (const { id, fields } of explained.inputs) {
      assert.equal(fields[0]?.path, '/id')
      assert.equal(fields[0]?.value, id)
      for (const { path, source, document, revision, time, actor, message } of fields) {
        if (source === 'default') continue
        const where = `${endpoint}/${id}${path}`
        assert.ok(['catalog', 'override', 'patch', 'cluster'].includes(source), where)
        assert.ok(revision !== null && revision <= explained.revision, where)
        const type = service.types.byEndpoint(endpoint)?.name
        assert.equal(document, source === 'catalog' ? `${type}/${id}` : `clusters/${cluster}`, where)
        const { body: recorded } = await service.call('GET', `/revisions/${revision}?impact_limit=0`)
        assert.deepEqual(
          { time, actor, message },
          { time: recorded.time, actor: recorded.actor, message: recorded.message },
          where,
        )
        const changed = recorded.changes.map((change: JsonMap) => `${change.type}/${change.id}`)
        assert.ok(changed.includes(document), where)
      }
    }
  }
}

test('every field of an input is told with its value, where it comes from and who set it', async (t) => {
  let now = '2026-01-31T12:00:00.000Z'
  const service = await start(t, { fleet: chartFleet(), now: () => new Date(now) })
  now = '2026-01-31T13:00:00.000Z'
  await run(service, ['five of them', 'PATCH', '/clusters/one/patches/b', { 'ui/replicas': '5' }])
  const seed = { revision: 1, time: '2026-01-31T12:00:00.000Z', actor: 'seed', message: 'Seed file' }
  const later = { revision: 2, time: now, actor: 'writer', message: 'five of them' }
  const catalog = { source: 'catalog', document: 'platform_components/b', ...seed }
  const cluster = { source: 'cluster', document: 'clusters/one', ...seed }
  const { inputs, ...head } = await explain(service, 'platform-components')
  assert.deepEqual(head, { cluster: 'one', endpoint: 'platform-components', revision: 2 })
  assert.deepEqual(
    inputs.map(({ id }) => id),
    ['a', 'b'],
  )
  assert.deepEqual(inputs[1]?.fields, [
    { path: '/id', value: 'b', ...cluster },
    { path: '/component_path', value: 'core/b/1.0.0', ...catalog },
    { path: '/component_version', value: '1.0.0', ...catalog },
    { path: '/cluster_env_enabled', value: false, ...catalog },
    { path: '/depends_on', value: ['a'], ...catalog },
    { path: '/enabled', value: true, ...cluster },
    {
      path: '/patches/ui~1replicas',
      value: '5',
      source: 'patch',
      document: 'clusters/one',
      ...later,
    },
    { path: '/cluster/name', value: 'one', ...cluster },
    { path: '/cluster/dns', value: 'one.k8s.example.com', ...cluster },
    { path: '/cluster/environment', value: 'dev', ...cluster },
    { path: '/source/oci_url', value: 'oci://registry.example.com/components', ...catalog },
    { path: '/source/oci_tag', value: 'v2.0.0', ...cluster, source: 'override' },
    { path: '/delivery', value: 'helm', ...catalog },
  ])
})

const PC = 'platform-components'
const TAG = '/source/oci_tag'

/** What is done, and what is then told of some fields: input, path, source, document and message. */
const STORY: readonly {
  readonly write: Write
  readonly told: readonly (readonly [endpoint: string, id: string, path: string, origin: string])[]
}[] = [
  {
    write: ['newer b', 'PATCH', '/platform_components/b', { oci_tag: 'v5', component_version: '5' }],
    told: [
      [PC, 'b', TAG, 'override clusters/one: Seed file'],
      [PC, 'b', '/component_version', 'catalog platform_components/b: newer b'],
      [PC, 'b', '/component_path', 'catalog platform_components/b: Seed file'],
      [PC, 'a', '/component_version', 'catalog platform_components/a: Seed file'],
    ],
  },
  {
    write: ['own a', 'PATCH', '/clusters/one/platform_components/a', { oci_tag: 'v7' }],
    told: [
      [PC, 'a', TAG, 'override clusters/one: own a'],
      [PC, 'a', '/id', 'cluster clusters/one: Seed file'],
      [PC, 'a', '/enabled', 'cluster clusters/one: Seed file'],
    ],
  },
  {
    write: ['own a again', 'PUT', '/clusters/one/platform_components/a', { oci_tag: 'v7' }],
    told: [[PC, 'a', TAG, 'override clusters/one: own a']],
  },
  {
    write: [
      'more beside it',
      'PATCH',
      '/clusters/one',
      {
        node_count: 9,
        platform_components: [
          { id: 'a', oci_tag: 'v7' },
          { id: 'b', oci_tag: 'v2.0.0' },
        ],
      },
    ],
    told: [
      [PC, 'a', TAG, 'override clusters/one: own a'],
      [PC, 'b', TAG, 'override clusters/one: Seed file'],
      [PC, 'b', '/id', 'cluster clusters/one: Seed file'],
    ],
  },
  {
    write: ['b like all others', 'PATCH', '/clusters/one/platform_components/b', { oci_tag: null }],
    told: [[PC, 'b', TAG, 'catalog platform_components/b: newer b']],
  },
  {
    write: ['b stays', 'PATCH', '/clusters/one/platform_components/b', { oci_tag: 'v5' }],
    told: [[PC, 'b', TAG, 'override clusters/one: b stays']],
  },
  {
    write: ['newest b', 'PATCH', '/platform_components/b', { oci_tag: 'v6', component_path: 'b6' }],
    told: [
      [PC, 'b', TAG, 'override clusters/one: b stays'],
      [PC, 'b', '/component_path', 'catalog platform_components/b: newest b'],
      [PC, 'b', '/component_version', 'catalog platform_components/b: newer b'],
    ],
  },
  {
    write: ['a path of its own', 'PATCH', '/clusters/one/platform_components/b', { component_path: 'own' }],
    told: [[PC, 'b', '/component_path', 'override clusters/one: a path of its own']],
  },
  {
    write: ['red', 'PATCH', '/clusters/one/patches/a', { replicas: '2', color: 'red' }],
    told: [
      [PC, 'a', '/patches/replicas', 'patch clusters/one: Seed file'],
      [PC, 'a', '/patches/color', 'patch clusters/one: red'],
    ],
  },
  {
    write: ['blue', 'PATCH', '/clusters/one/patches/a', { color: 'blue' }],
    told: [[PC, 'a', '/patches/color', 'patch clusters/one: blue']],
  },
  {
    write: ['red after all', 'PUT', '/clusters/one/patches/a', { replicas: '2', color: 'red' }],
    told: [
      [PC, 'a', '/patches/color', 'patch clusters/one: red after all'],
      [PC, 'a', '/patches/replicas', 'patch clusters/one: Seed file'],
    ],
  },
  {
    write: ['no replicas', 'PATCH', '/clusters/one/patches/a', { replicas: null }],
    told: [[PC, 'a', '/patches/color', 'patch clusters/one: red after all']],
  },
  {
    write: ['replicas again', 'PATCH', '/clusters/one/patches/a', { replicas: '2' }],
    told: [[PC, 'a', '/patches/replicas', 'patch clusters/one: replicas again']],
  },
  {
    write: ['own labels', 'PUT', '/clusters/one/namespaces/team-a', { labels: { own: 'yes' } }],
    told: [
      ['namespaces', 'team-a', '/labels', 'override clusters/one: own labels'],
      ['namespaces', 'team-a', '/annotations', 'catalog namespaces/team-a: Seed file'],
      ['namespaces', 'team-a', '/id', 'cluster clusters/one: Seed file'],
    ],
  },
  {
    write: ['annotated', 'PATCH', '/namespaces/team-a', { annotations: { x: 'y' }, labels: { z: '1' } }],
    told: [
      ['namespaces', 'team-a', '/labels', 'override clusters/one: own labels'],
      ['namespaces', 'team-a', '/annotations', 'catalog namespaces/team-a: annotated'],
    ],
  },
  {
    write: ['other labels', 'PATCH', '/clusters/one/namespaces/team-a', { labels: { more: 'yes' } }],
    told: [['namespaces', 'team-a', '/labels', 'override clusters/one: other labels']],
  },
  {
    write: ['labels of all', 'PATCH', '/clusters/one/namespaces/team-a', { labels: null }],
    told: [['namespaces', 'team-a', '/labels', 'catalog namespaces/team-a: annotated']],
  },
  {
    write: ['view only', 'PATCH', '/clusters/one/rolebindings/admins', { role: 'view' }],
    told: [
      ['rolebindings', 'admins', '/role', 'override clusters/one: view only'],
      ['rolebindings', 'admins', '/subjects', 'catalog rolebindings/admins: Seed file'],
    ],
  },
  {
    write: ['to qa', 'PATCH', '/clusters/one', { environment: 'qa' }],
    told: [
      [PC, 'a', '/cluster/environment', 'cluster clusters/one: to qa'],
      [PC, 'b', '/cluster/environment', 'cluster clusters/one: to qa'],
      ['namespaces', 'team-a', '/cluster/environment', 'cluster clusters/one: to qa'],
      ['rolebindings', 'admins', '/cluster/environment', 'cluster clusters/one: to qa'],
      ['rolebindings', 'admins', '/cluster/name', 'cluster clusters/one: Seed file'],
    ],
  },
  {
    write: ['b off', 'PATCH', '/clusters/one/platform_components/b', { enabled: false }],
    told: [
      [PC, 'b', '/enabled', 'cluster clusters/one: b off'],
      [PC, 'b', TAG, 'override clusters/one: b stays'],
    ],
  },
  {
    write: ['also c', 'PUT', '/clusters/one/platform_components/c', {}],
    told: [
      [PC, 'c', '/id', 'cluster clusters/one: also c'],
      [PC, 'c', '/enabled', 'cluster clusters/one: also c'],
      [PC, 'c', TAG, 'catalog platform_components/c: Seed file'],
      [PC, 'c', '/cluster/environment', 'cluster clusters/one: to qa'],
      [PC, 'b', '/enabled', 'cluster clusters/one: b off'],
    ],
  },
  {
    write: ['without b', 'DELETE', '/clusters/one/platform_components/b'],
    told: [[PC, 'c', '/id', 'cluster clusters/one: also c']],
  },
  {
    write: ['with b', 'PUT', '/clusters/one/platform_components/b', { oci_tag: 'v5', enabled: false }],
    told: [
      [PC, 'b', '/id', 'cluster clusters/one: with b'],
      [PC, 'b', '/enabled', 'cluster clusters/one: with b'],
      [PC, 'b', TAG, 'override clusters/one: with b'],
      [PC, 'b', '/component_path', 'catalog platform_components/b: newest b'],
    ],
  },
  {
    write: [
      'the other way round',
      'PATCH',
      '/clusters/one',
      {
        platform_components: [
          { id: 'b', enabled: false, oci_tag: 'v5' },
          { id: 'c' },
          { id: 'a', oci_tag: 'v7' },
        ],
      },
    ],
    told: [
      [PC, 'b', '/id', 'cluster clusters/one: with b'],
      [PC, 'a', TAG, 'override clusters/one: own a'],
    ],
  },
  {
    write: ['no c at all', 'DELETE', '/platform_components/c?cascade=true'],
    told: [[PC, 'b', '/id', 'cluster clusters/one: with b']],
  },
  {
    write: [
      'a new c',
      'POST',
      '/batch',
      {
        operations: [
          {
            op: 'create',
            type: 'platform_components',
            document: {
              id: 'c',
              component_path: 'core/c/1.0.0',
              component_version: '1.0.0',
              oci_url: 'oci://registry.example.com/components',
              oci_tag: 'v1.0.0',
              depends_on: ['b'],
            },
          },
          { op: 'assign', type: 'platform_components', ref: { id: 'c' }, clusters: ['one', 'two'] },
        ],
      },
    ],
    told: [
      [PC, 'c', '/id', 'cluster clusters/one: a new c'],
      [PC, 'c', TAG, 'catalog platform_components/c: a new c'],
      [PC, 'c', '/component_path', 'catalog platform_components/c: a new c'],
    ],
  },
  {
    write: ['as it was', 'POST', '/rollback', { to_revision: 1, ids: ['one', 'b', 'c'] }],
    told: [
      [PC, 'b', TAG, 'override clusters/one: as it was'],
      [PC, 'b', '/component_path', 'catalog platform_components/b: as it was'],
      [PC, 'b', '/id', 'cluster clusters/one: with b'],
      [PC, 'a', TAG, 'catalog platform_components/a: Seed file'],
      [PC, 'a', '/patches/replicas', 'patch clusters/one: replicas again'],
      ['namespaces', 'team-a', '/cluster/environment', 'cluster clusters/one: as it was'],
      ['namespaces', 'team-a', '/labels', 'catalog namespaces/team-a: annotated'],
    ],
  },
]

async function tell(service: TestService): Promise<void> {
  for (const { write } of STORY) await run(service, write)
}

test('through a long story every value is told with who last set it', async (t) => {
  const service = await start(t)
  await assertExplainsAll(service)
  for (const { write, told } of STORY) {
    await run(service, write)
    for (const [endpoint, id, path, origin] of told) {
      assert.equal(await originOf(service, endpoint, id, path), origin, `${write[0]}: ${id}${path}`)
    }
  }
  await assertExplainsAll(service)
  await assertExplainsAll(service, 'two')
})

/** What is told of cluster one now. */
async function toldNow(service: TestService, at: number | string = ''): Promise<Explanation['inputs'][]> {
  const all = await Promise.all(ENDPOINTS.map((endpoint) => explain(service, endpoint, { at })))
  return all.map(({ inputs }) => inputs)
}

for (const [store, open] of Object.entries(STORES)) {
  test(`what was told at any revision is told of it ever after (${store})`, async (t) => {
    let minute = 0
    const time = (of: number) => new Date(Date.UTC(2026, 0, 31, 12, of))
    const service = await start(t, { store: await open(t), now: () => time(minute) })
    const told: Explanation['inputs'][][] = [[], await toldNow(service)]
    for (const { write } of STORY) {
      minute++
      const { revision } = service.engine.state
      await run(service, write)
      if (service.engine.state.revision > revision) told.push(await toldNow(service))
    }
    assert.equal(told.length, service.engine.state.revision + 1)
    minute++
    await run(
      service,
      ['gone', 'DELETE', '/clusters/one?purge=true'],
      ['gone', 'DELETE', '/platform_components/a?cascade=true'],
    )
    for (const [revision, expected] of told.entries().drop(1)) {
      assert.deepEqual(await toldNow(service, revision), expected, `revision ${revision}`)
      const { body } = await service.call('GET', `/revisions/${revision}?impact_limit=0`)
      assert.deepEqual(await toldNow(service, body.time), expected, body.time)
    }
    await assertExplainsAll(service, 'one', '1')
    await assertExplainsAll(service, 'one', '12')
  })
}

type Documents = Record<string, JsonMap | undefined>

/** What the document of a field says of it, found by the field's name alone. */
function said(
  documents: Documents | undefined,
  list: string,
  id: string,
  field: ExplainedField,
): Json | undefined {
  const document = documents?.[String(field.document)]
  if (!document) return undefined
  const keys = keysIn(field.path)
  const last = keys.at(-1) as string
  if (field.source === 'catalog') return document[last]
  if (field.source === 'patch') return (document.patches as Record<string, JsonMap>)[id]?.[last]
  if (keys[0] === 'cluster') {
    return document[{ name: 'cluster_name', dns: 'cluster_dns' }[last] ?? last]
  }
  return (document[list] as JsonMap[]).find((reference) => reference.id === id)?.[last]
}

test('the revision that is told of a field is the one that made it what it is', async (t) => {
  const service = await start(t)
  await tell(service)
  const last = service.engine.state.revision
  const history: Documents[] = []
  for (let revision = 0; revision <= last; revision++) {
    history[revision] = {}
    for (const { name } of service.types.all) {
      const { body } = await service.call('GET', `/${name}?at=${revision}`)
      for (const document of body) (history[revision] as Documents)[`${name}/${document.id}`] = document
    }
  }
  let checked = 0
  for (let at = 1; at <= last; at++) {
    for (const endpoint of ENDPOINTS) {
      const list = endpoint.replace('-', '_')
      for (const { id, fields } of (await explain(service, endpoint, { at })).inputs) {
        for (const field of fields.filter(({ source }) => source !== 'default')) {
          // What the cluster lacks is no value of its own.
          if (field.path === '/depends_on' && field.source === 'cluster') continue
          const where = `${endpoint}/${id}${field.path} at ${at}`
          const revision = field.revision as number
          const now = said(history[at], list, id, field)
          assert.deepEqual(now, field.value, where)
          for (let n = revision; n < at; n++) assert.deepEqual(said(history[n], list, id, field), now, where)
          assert.notDeepEqual(said(history[revision - 1], list, id, field), now, where)
          checked++
        }
      }
    }
  }
  assert.ok(checked > 500)
})

test('what an input cannot wait for is told of with the write that took it from the cluster', async (t) => {
  const service = await start(t)
  const origin = () => originOf(service, 'platform-components', 'b', '/depends_on')
  assert.equal(await origin(), 'catalog platform_components/b: Seed file')
  await run(service, ['off', 'PATCH', '/clusters/one/platform_components/a', { enabled: false }])
  assert.equal(await origin(), 'cluster clusters/one: off')
  await run(service, ['on', 'PATCH', '/clusters/one/platform_components/a', { enabled: true }])
  assert.equal(await origin(), 'catalog platform_components/b: Seed file')
})

test('what is left out of a list is named, with why the cluster does not get it', async (t) => {
  const service = await start(t)
  const leftOut = async () => {
    const { inputs } = await explain(service, 'platform-components')
    const fields = inputs.find(({ id }) => id === 'b')?.fields ?? []
    for (const { path, left_out } of fields) assert.ok(left_out === undefined || path === '/depends_on', path)
    const field = fields.find(({ path }) => path === '/depends_on')
    return [field?.value, field?.source, field?.left_out]
  }
  assert.deepEqual(await leftOut(), [['a'], 'catalog', undefined])
  await run(service, ['off', 'PATCH', '/clusters/one/platform_components/a', { enabled: false }])
  assert.deepEqual(await leftOut(), [[], 'cluster', [{ id: 'a', why: 'switched_off' }]])
  await run(service, ['gone', 'DELETE', '/clusters/one/platform_components/a'])
  assert.deepEqual(await leftOut(), [[], 'cluster', [{ id: 'a', why: 'not_assigned' }]])
  await run(
    service,
    ['again', 'PUT', '/clusters/one/platform_components/a', {}],
    ['by Helm', 'PATCH', '/platform_components/a', { delivery: 'helm' }],
  )
  assert.deepEqual(await leftOut(), [[], 'catalog', [{ id: 'a', why: 'delivered_otherwise' }]])
})

test('a cluster that was deleted and restored is told of as before', async (t) => {
  const service = await start(t)
  await run(service, ['own a', 'PATCH', '/clusters/one/platform_components/a', { oci_tag: 'v7' }])
  const before = await toldNow(service)
  await run(service, ['by mistake', 'DELETE', '/clusters/one'])
  assertProblem(await service.call('GET', '/clusters/one/inputs/namespaces?explain=true'), 404, 'not_found')
  await run(service, ['sorry', 'POST', '/clusters/one/restore'])
  assert.deepEqual(await toldNow(service), before)
  await run(service, ['again', 'DELETE', '/clusters/one'], ['undone', 'POST', '/revisions/5/revert'])
  assert.deepEqual(await toldNow(service), before)
})

test('a cluster that was purged and made anew is told of from then on', async (t) => {
  const service = await start(t)
  const { body } = await service.call('GET', '/clusters/one')
  await run(
    service,
    ['away', 'DELETE', '/clusters/one?purge=true'],
    ['born again', 'POST', '/clusters', body],
  )
  for (const { fields } of (await toldNow(service)).flat()) {
    for (const { source, message } of fields.filter((field) => field.source !== 'default')) {
      assert.equal(message, source === 'catalog' ? 'Seed file' : 'born again')
    }
  }
})

test('a value is found however long ago it was set', async (t) => {
  const service = await start(t)
  await run(service, ['long ago', 'PATCH', '/clusters/one/patches/a', { color: 'red' }])
  await run(service, ['long ago', 'PATCH', '/platform_components/a', { oci_tag: 'v2' }])
  for (let i = 0; i < 120; i++) {
    await run(
      service,
      ['noise', 'PATCH', '/clusters/one', { node_count: i }],
      ['noise', 'PATCH', '/platform_components/a', { component_version: String(i) }],
    )
  }
  assert.equal(await originOf(service, PC, 'a', '/patches/color'), 'patch clusters/one: long ago')
  assert.equal(await originOf(service, PC, 'a', TAG), 'catalog platform_components/a: long ago')
  assert.equal(await originOf(service, PC, 'a', '/patches/replicas'), 'patch clusters/one: Seed file')
  assert.equal(await originOf(service, PC, 'a', '/component_version'), 'catalog platform_components/a: noise')
})

test('where the log does not reach back far enough nobody is named', async (t) => {
  let now = '2026-01-31T12:00:00Z'
  const pruned = openMemoryStore()
  const service = await start(t, { store: pruned, now: () => new Date(now) })
  now = '2026-01-31T13:00:00Z'
  await run(service, ['own a', 'PATCH', '/clusters/one/platform_components/a', { oci_tag: 'v7' }])
  assert.ok((await pruneLog(pruned, '2026-01-31T12:30:00Z')).ok)
  const [input] = (await explain(service, PC)).inputs
  const nobody = { revision: null, time: null, actor: null, message: null }
  const find = (path: string) => input?.fields.find((field) => field.path === path)
  assert.deepEqual(find('/component_version'), {
    path: '/component_version',
    value: '1.0.0',
    source: 'catalog',
    document: 'platform_components/a',
    ...nobody,
  })
  assert.deepEqual(find('/enabled'), {
    path: '/enabled',
    value: true,
    source: 'cluster',
    document: 'clusters/one',
    ...nobody,
  })
  assert.equal(find(TAG)?.message, 'own a')
})

test('a default of a field that the document has never seen comes from nobody', async (t) => {
  const folder = temporaryFolder(t)
  const [file] = readdirSync(EXAMPLE).filter((name) => name.endsWith('.yaml')) as [string]
  const text = readFileSync(join(EXAMPLE, file), 'utf8')
  const newer = text
    .replace('input: [target_namespace, ingress_rules, cluster]', 'input: [target_namespace, mode, cluster]')
    .replace(
      '    properties:\n',
      '    properties:\n      mode: { description: How., type: string, default: strict }\n',
    )
  writeFileSync(join(folder, file), newer)
  const store = openMemoryStore()
  const first = await start(t, { store, types: builtInTypes(EXAMPLE) })
  await run(
    first,
    ['guard', 'POST', '/network_policies', { id: 'guard', target_namespace: 'web' }],
    ['guard one', 'PUT', '/clusters/one/network_policies/guard', {}],
  )
  const second = await start(t, { store, types: builtInTypes(folder) })
  const url = '/clusters/one/inputs/network-policies'
  const [input] = JSON.parse(withoutDigests((await second.call('GET', url)).text)).inputs
  assert.equal(input.mode, 'strict')
  const fields = (await explain(second, 'network-policies')).inputs[0]?.fields ?? []
  assert.deepEqual(assemble(fields), input)
  assert.deepEqual(
    fields.find(({ path }) => path === '/mode'),
    {
      path: '/mode',
      value: 'strict',
      source: 'default',
      document: null,
      revision: null,
      time: null,
      actor: null,
      message: null,
    },
  )
  await run(second, [
    'say it',
    'PATCH',
    '/network_policies/guard',
    { mode: 'strict', target_namespace: 'api' },
  ])
  assert.equal(
    await originOf(second, 'network-policies', 'guard', '/mode'),
    'catalog network_policies/guard: say it',
  )
})

test('no values at all come from nobody, whoever took them away', async (t) => {
  const service = await start(t)
  await run(service, ['no values', 'DELETE', '/clusters/one/patches/a'])
  for (const { fields } of (await explain(service, PC)).inputs) {
    assert.deepEqual(
      fields.filter(({ path }) => path.startsWith('/patches')),
      [
        {
          path: '/patches',
          value: {},
          source: 'default',
          document: null,
          revision: null,
          time: null,
          actor: null,
          message: null,
        },
      ],
    )
  }
})

test('what is explained is the past only when the past is asked for', async (t) => {
  const service = await start(t, { now: () => new Date('2026-01-31T12:00:00Z') })
  await run(service, ['to qa', 'PATCH', '/clusters/one', { environment: 'qa' }])
  assert.equal((await explain(service, PC)).revision, 2)
  assert.equal((await explain(service, PC, { at: 1 })).revision, 1)
  assert.equal((await explain(service, PC, { at: '2026-01-31T14:00:00+02:00' })).revision, 2)
  const url = `/clusters/one/inputs/${PC}`
  for (const [query, status, error] of [
    ['explain=true&at=3', 400, 'validation_error'],
    ['explain=true&at=soon', 400, 'validation_error'],
    ['explain=true&at=2026-01-31T12:00:01Z', 400, 'validation_error'],
    ['explain=true&at=0', 404, 'not_found'],
    ['explain=yes', 400, 'validation_error'],
    ['explain=', 400, 'validation_error'],
    ['explained=true', 400, 'validation_error'],
  ] as const) {
    assertProblem(await service.call('GET', `${url}?${query}`), status, error)
  }
  const plain = await service.call('GET', url)
  assert.equal((await service.call('GET', `${url}?explain=false`)).text, plain.text)
})

test('what is not there cannot be explained, and nothing is explained as nothing', async (t) => {
  const service = await start(t)
  for (const url of ['/clusters/nobody/inputs/namespaces', '/clusters/one/inputs/nothing']) {
    assertProblem(await service.call('GET', `${url}?explain=true`), 404, 'not_found')
  }
  for (const endpoint of ENDPOINTS) {
    assert.deepEqual((await explain(service, endpoint, { cluster: 'two' })).inputs, [])
  }
  const url = '/clusters/one/inputs/namespaces?explain=true'
  assertProblem(await service.call('GET', url, { token: null }), 401, 'unauthorized')
})

test('another process on the same file explains the same', async (t) => {
  const path = join(temporaryFolder(t), 'fleet.db')
  const one = await start(t, { store: openSqliteStore({ path, write: true }) })
  const two = await start(t, { store: openSqliteStore({ path, write: true }) })
  await tell(one)
  await two.engine.catchUp()
  assert.deepEqual(await toldNow(two), await toldNow(one))
  for (const at of [1, 7, 20]) assert.deepEqual(await toldNow(two, at), await toldNow(one, at))
})

test('a cluster that was made anew owes nothing to the deleted one of its name', async (t) => {
  const service = await start(t)
  const { body: document } = await service.call('GET', '/clusters/one')
  await service.call('DELETE', '/clusters/one')
  await service.call('POST', '/clusters', { body: { ...document, labels: { made: 'anew' } } })
  const { body } = await service.call('GET', '/clusters/one/inputs/platform-components?explain=true')
  const fields: { source: string; revision: number }[] = body.inputs.flatMap(
    (input: { fields: object[] }) => input.fields,
  )
  const own = fields.filter(({ source }) => source === 'cluster')
  assert.ok(own.length > 0)
  for (const { revision } of own) assert.equal(revision, 3)
})
