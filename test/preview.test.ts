import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../src/base/json.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { assertProblem } from './every-store.ts'
import {
  type Answer,
  builtInTypes,
  type Call,
  READ_TOKEN,
  type ServiceOptions,
  type ServiceProcess,
  smallFleet,
  spawnService,
  startService,
  type TestService,
  temporaryFolder,
} from './service.ts'

const types = builtInTypes()
const JSON_PATCH = { 'content-type': 'application/json-patch+json' }
const POLLS = '/api/v2/flux/clusters'
const ENDPOINTS = ['platform-components', 'namespaces', 'rolebindings']
const TAG = { op: 'patch', type: 'platform_components', id: 'a', patch: { oci_tag: 'v2' } }
const OTHER_PLAN = `sha256:${'0'.repeat(64)}`

function cluster(id: string, more: JsonObject = {}) {
  return {
    id,
    cluster_name: id,
    cluster_dns: `${id}.k8s.example.com`,
    environment: 'dev',
    ...more,
  }
}

function component(id: string) {
  return {
    id,
    component_path: `core/${id}`,
    component_version: '1.0.0',
    oci_url: 'oci://registry.example.com/components',
    oci_tag: 'v1.0.0',
  }
}

const STRATEGY = { id: 'careful', waves: [{ name: 'one', clusters: ['one'] }] }
const FREEZE = { id: 'year-end', reason: 'nobody is here', from: '2040-01-01T00:00:00Z' }

/** The seed, then a cluster that was deleted, then one that was changed: revision 3. */
async function start(options: ServiceOptions = {}): Promise<TestService> {
  const { clusters, ...rest } = smallFleet()
  const three = cluster('three', { labels: { region: 'eu' }, platform_components: [{ id: 'a' }] })
  const more = { applied_sets: [{ id: 'set' }], strategies: [STRATEGY], freezes: [FREEZE] }
  const service = await startService({
    types,
    ...options,
    fleet: { ...rest, ...more, clusters: [...clusters, three] },
  })
  await service.call('DELETE', '/clusters/three')
  await service.call('PATCH', '/clusters/one', { body: { node_count: 5 } })
  assert.equal(service.engine.state.revision, 3)
  return service
}

/** Everything that can be read of a fleet: documents, histories, polls, and the headers that tell of changes. */
async function everything(service: TestService): Promise<Record<string, unknown>> {
  const urls = [
    ...types.all.map(({ name }) => `/${name}`),
    ...['one', 'two', 'three'].flatMap((id) => [`/clusters/${id}`, `/clusters/${id}/history`]),
    ...['one', 'two', 'three', 'new'].flatMap((id) =>
      ENDPOINTS.map((endpoint) => `${POLLS}/${id}.k8s.example.com/${endpoint}`),
    ),
    '/platform_components/a/history',
    '/namespaces/team-a/history',
    '/revisions',
    POLLS,
  ]
  const answers = await Promise.all(urls.map((url) => service.call('GET', url)))
  return Object.fromEntries(
    answers.map(({ status, headers, text }, i) => [
      urls[i],
      { status, etag: headers.etag, revision: headers['x-revision'], text },
    ]),
  )
}

/** Every decision says anew since when a cluster is held. */
function withoutTimes({ text }: Pick<Answer, 'text'>): string {
  return text.replaceAll(/"since":"[^"]+"/g, '')
}

function withQuery(url: string, query: string): string {
  return `${url}${url.includes('?') ? '&' : '?'}${query}`
}

function preview(service: Pick<TestService, 'call'>, on: string, call: Call = {}): Promise<Answer> {
  const [method = '', url = ''] = on.split(' ')
  return service.call(method, withQuery(url, 'dry_run=true'), call)
}

function apply(
  service: Pick<TestService, 'call'>,
  on: string,
  plan: string,
  call: Call = {},
): Promise<Answer> {
  const [method = '', url = ''] = on.split(' ')
  return service.call(method, withQuery(url, `plan=${plan}`), call)
}

interface Write extends Call {
  /** Method and URL. */
  readonly on: string
}

const binding = { id: 'new', role: 'view', subjects: [{ kind: 'User', name: 'ann' }] }

/** At least one write that changes something on every route that writes. */
const WRITES: readonly Write[] = [
  { on: 'POST /clusters', body: cluster('new', { platform_components: [{ id: 'a' }] }) },
  { on: 'PUT /clusters/one?confirm=removals', body: cluster('one') },
  { on: 'PUT /clusters/new', body: cluster('new'), headers: { 'if-none-match': '*' } },
  { on: 'PATCH /clusters/one', body: { environment: 'prod' } },
  { on: 'PATCH /clusters/one', body: [{ op: 'remove', path: '/node_count' }], headers: JSON_PATCH },
  { on: 'PATCH /clusters/one', body: { node_count: 6 }, headers: { 'if-match': '"3"' } },
  { on: 'DELETE /clusters/one' },
  { on: 'DELETE /clusters/one?purge=true' },
  { on: 'DELETE /clusters/three?purge=true' },
  { on: 'POST /clusters/three/restore' },
  { on: 'POST /platform_components', body: component('new') },
  { on: 'PUT /platform_components/a', body: component('a') },
  { on: 'PUT /platform_components/b', body: component('b') },
  { on: 'PATCH /platform_components/a', body: { oci_tag: 'v1.1.0' } },
  { on: 'DELETE /platform_components/c' },
  { on: 'DELETE /platform_components/a?cascade=true' },
  { on: 'POST /applied_sets', body: { id: 'new' } },
  { on: 'PUT /applied_sets/set', body: { documents: { namespaces: ['team-a'] } } },
  { on: 'PATCH /applied_sets/set', body: { documents: { clusters: ['one'] } } },
  { on: 'DELETE /applied_sets/set' },
  { on: 'POST /strategies', body: { ...STRATEGY, id: 'new' } },
  { on: 'PUT /strategies/careful', body: { waves: [{ name: 'all', rest: true }] } },
  { on: 'PATCH /strategies/careful', body: { bake_s: 60 } },
  { on: 'DELETE /strategies/careful' },
  { on: 'POST /freezes', body: { ...FREEZE, id: 'new' } },
  { on: 'PUT /freezes/year-end', body: { reason: 'all are here', from: '2042-01-01T00:00:00Z' } },
  { on: 'PATCH /freezes/year-end', body: { until: '2041-01-01T00:00:00Z' } },
  { on: 'DELETE /freezes/year-end' },
  { on: 'PUT /holds/one', body: { reason: 'somebody works on it' } },
  { on: 'POST /namespaces', body: { id: 'new' } },
  { on: 'PUT /namespaces/team-a', body: { labels: { team: 'b' } } },
  { on: 'PATCH /namespaces/team-a', body: { labels: { team: null } } },
  { on: 'DELETE /namespaces/team-b' },
  { on: 'DELETE /namespaces/team-a?cascade=true&confirm=removals' },
  { on: 'POST /rolebindings', body: binding },
  { on: 'PUT /rolebindings/admins', body: { ...binding, id: 'admins' } },
  { on: 'PATCH /rolebindings/admins', body: { role: 'edit' } },
  { on: 'DELETE /rolebindings/admins?cascade=true&confirm=removals' },
  { on: 'PUT /clusters/two/platform_components/a', body: { oci_tag: 'v3' } },
  { on: 'PATCH /clusters/one/platform_components/b', body: { oci_tag: null } },
  { on: 'DELETE /clusters/one/platform_components/a' },
  { on: 'PUT /clusters/two/namespaces/team-b' },
  { on: 'PATCH /clusters/one/namespaces/team-a', body: { labels: { x: 'y' } } },
  { on: 'DELETE /clusters/one/namespaces/team-a?confirm=removals' },
  { on: 'PUT /clusters/two/rolebindings/admins', body: {} },
  { on: 'PATCH /clusters/one/rolebindings/admins', body: { role: 'view' } },
  { on: 'DELETE /clusters/one/rolebindings/admins?confirm=removals' },
  { on: 'PUT /clusters/one/patches/a', body: { color: 'red' } },
  { on: 'PATCH /clusters/one/patches/a', body: { replicas: null } },
  { on: 'DELETE /clusters/one/patches/a' },
  { on: 'POST /revisions/3/revert' },
  { on: 'POST /revisions/2/revert', body: { message: 'back' } },
  { on: 'POST /rollback', body: { to_revision: 1 } },
  {
    on: 'POST /rollback',
    body: { to_revision: 0, types: ['namespaces', 'clusters', 'rolebindings', 'platform_components'] },
  },
  { on: 'POST /rollback', body: { to_revision: 2, selector: 'environment=dev' } },
  {
    on: 'POST /batch?confirm=removals',
    body: {
      operations: [
        { op: 'create', type: 'namespaces', document: { id: 'new' } },
        { op: 'assign', type: 'namespaces', ref: { id: 'new' }, selector: 'id' },
        { op: 'patch', type: 'platform_components', id: 'a', patch: { oci_tag: 'v2' } },
        { op: 'restore', type: 'clusters', id: 'three' },
        { op: 'delete', type: 'rolebindings', id: 'admins', cascade: true },
        { op: 'patch_values', component: 'a', values: { replicas: '9' }, clusters: ['one', 'three'] },
        { op: 'delete', type: 'clusters', id: 'two', purge: true },
      ],
    },
  },
]

describe('a dry run shows what a write would do, stores nothing, and its plan does exactly that', () => {
  for (const { on, ...call } of WRITES) {
    test(`${on} ${JSON.stringify(call.body ?? '').slice(0, 80)}`, async () => {
      const service = await start()
      const before = await everything(service)
      const shown = await preview(service, on, call)
      assert.equal(shown.status, 200, shown.text)
      assert.deepEqual(Object.keys(shown.body), [
        'dry_run',
        'base_revision',
        'change_count',
        'changes',
        'impact',
        'warnings',
        'requires',
        'requires_confirmation',
        'plan',
      ])
      const { dry_run, base_revision, change_count, changes, impact, plan } = shown.body
      assert.equal(dry_run, true)
      assert.deepEqual(shown.body.requires_confirmation, on.includes('confirm=removals') ? ['removals'] : [])
      assert.equal(base_revision, 3)
      assert.equal(shown.headers['x-revision'], '3')
      assert.equal(change_count, changes.length)
      assert.ok(change_count > 0)
      for (const change of changes) {
        assert.deepEqual(Object.keys(change), ['type', 'id', 'op', 'before', 'after'])
      }
      assert.match(plan, /^sha256:[0-9a-f]{64}$/)
      assert.equal(withoutTimes(await preview(service, on, call)), withoutTimes(shown), 'the same again')
      assert.equal(service.engine.state.revision, 3)
      assert.deepEqual(await everything(service), before)

      const applied = await apply(service, on, plan, call)
      assert.ok(applied.status === 200 || applied.status === 201, applied.text)
      assert.equal(applied.headers['x-revision'], '4')
      const recorded = (await service.call('GET', '/revisions/4')).body
      assert.equal(
        withoutTimes({ text: JSON.stringify(recorded.changes) }),
        withoutTimes({ text: JSON.stringify(changes) }),
      )
      assert.equal(recorded.change_count, change_count)
      assert.deepEqual(recorded.impact, impact)
    })
  }

  test('and this is every route that writes', async () => {
    const service = await startService({ types })
    const { paths } = (await service.call('GET', '/openapi.json')).body
    // A token is another one every time: its previews are told of with the rest of its life.
    // Reports of clusters and mirrors are no writes. What is done to rollouts and holds needs one that is there.
    const others = Object.entries<object>(paths).filter(
      ([path]) => !/^\/(?:tokens|reports|rollouts\/)|\/events$/.test(path),
    )
    const missing = others.flatMap(([path, item]) => {
      const pattern = new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/?]+')}(?:\\?|$)`)
      return Object.keys(item)
        .filter((method) => ['post', 'put', 'patch', 'delete'].includes(method))
        .filter((method) => path !== '/holds/{cluster}' || method !== 'delete')
        .map((method) => method.toUpperCase())
        .filter((method) => {
          const covers = ({ on }: Write): boolean =>
            on.startsWith(`${method} `) && pattern.test(on.split(' ')[1] ?? '')
          return !WRITES.some(covers)
        })
        .map((method) => `${method} ${path}`)
    })
    assert.deepEqual(missing, [])
  })
})

describe('a dry run of what is done to a rollout or a hold stores nothing, and its plan does exactly that', () => {
  const acts: readonly (readonly [on: string, body?: JsonObject])[] = [
    ['POST /rollouts/r5/pause', { remark: 'wait' }],
    ['POST /rollouts/r5/retry'],
    ['POST /rollouts/r5/abort'],
    ['POST /rollouts/r5/finish?confirm=finish'],
    ['POST /rollouts/r5/approve', { wave: 'rest' }],
    ['POST /rollouts/r5/check', { wave: 'canary', name: 'smoke', ok: true }],
    ['POST /rollouts/r5/skip', { wave: 'rest' }],
    ['POST /rollouts/r5/amend', { operations: [{ ...TAG, patch: { oci_tag: 'v3' } }] }],
    ['POST /rollouts/r6/resume'],
    ['DELETE /holds/two'],
  ]
  for (const [on, body] of acts) {
    test(on, async () => {
      const service = await startStaged()
      const shown = await preview(service, on, { body })
      assert.equal(shown.status, 200, shown.text)
      assert.equal(shown.body.dry_run, true)
      assert.ok(shown.body.change_count > 0)
      assert.equal(service.engine.state.revision, 7)
      const applied = await apply(service, on, shown.body.plan, { body })
      assert.equal(applied.status, 200, applied.text)
      assert.equal(service.engine.state.revision, 8)
      const wrong = await apply(service, on, OTHER_PLAN, { body })
      assert.ok([409, 404].includes(wrong.status), wrong.text)
    })
  }

  test('and this is everything that is done to them', async () => {
    const service = await startStaged()
    const { paths } = (await service.call('GET', '/openapi.json')).body
    const actions = Object.keys(paths).filter((path) => /^\/rollouts\/\{id\}\/(?!members)/.test(path))
    const covered = acts.map(([on]) => on.replace(/^\w+ |\?.*/g, '').replace(/\/r\d\//, '/{id}/'))
    assert.deepEqual(actions.toSorted(), covered.filter((path) => path.startsWith('/rollouts')).toSorted())
  })
})

/** Cluster two is held in revision 4, r5 runs with its first wave open, r6 is paused in revision 7. */
async function startStaged(): Promise<TestService> {
  const service = await start()
  const held = await service.call('PUT', '/holds/two', { body: { reason: 'somebody works on it' } })
  assert.equal(held.status, 201, held.text)
  const waves = [
    { name: 'canary', clusters: ['one'], gates: { checks: [{ name: 'smoke' }] } },
    { name: 'rest', rest: true, approval: { before: { count: 1 } } },
  ]
  const other = { op: 'patch', type: 'platform_components', id: 'b', patch: { component_version: '2' } }
  for (const operation of [TAG, other]) {
    const body = { operations: [operation], rollout: { waves } }
    const started = await service.call('POST', '/batch', { body })
    assert.equal(started.status, 202, started.text)
  }
  assert.equal((await service.call('POST', '/rollouts/r6/pause')).status, 200)
  assert.equal(service.engine.state.revision, 7)
  return service
}

test('a preview tells each change with before and after, and what clusters would get', async () => {
  const service = await start()
  const before = (await service.call('GET', '/platform_components/a')).body
  const { body } = await preview(service, 'PATCH /platform_components/a', { body: { oci_tag: 'v1.1.0' } })
  assert.deepEqual(body, {
    dry_run: true,
    base_revision: 3,
    change_count: 1,
    changes: [
      {
        type: 'platform_components',
        id: 'a',
        op: 'update',
        before,
        after: { ...before, oci_tag: 'v1.1.0' },
      },
    ],
    impact: {
      clusters: 1,
      by_environment: { dev: 1 },
      touched: 1,
      joining: 0,
      leaving: 0,
      losing: 0,
      inputs: [
        {
          endpoint: 'platform-components',
          id: 'a',
          added: 0,
          removed: 0,
          changed: 1,
          switched_off: 0,
          fields: { '/source/oci_tag': 1 },
        },
      ],
      input_count: 1,
      endpoints: { 'platform-components': { clusters: 1, added: 0, removed: 0, changed: 1 } },
      details: [
        {
          cluster: 'one',
          environment: 'dev',
          endpoint: 'platform-components',
          added: [],
          removed: [],
          changed: [{ id: 'a', fields: [{ path: '/source/oci_tag', before: 'v1.0.0', after: 'v1.1.0' }] }],
        },
      ],
    },
    warnings: [],
    requires: [],
    requires_confirmation: [],
    plan: body.plan,
  })
})

test('the operations of changes are told apart', async () => {
  const service = await start()
  const operations = [
    { op: 'create', type: 'namespaces', document: { id: 'new' } },
    { op: 'patch', type: 'clusters', id: 'one', patch: { node_count: 6 } },
    { op: 'delete', type: 'namespaces', id: 'team-b' },
    { op: 'delete', type: 'clusters', id: 'two' },
    { op: 'restore', type: 'clusters', id: 'three' },
  ]
  const told = async (on: string, body: Json | undefined) =>
    (await preview(service, on, { body })).body.changes.map(
      ({ op, id, before, after }: { op: string; id: string; before: unknown; after: unknown }) =>
        `${op} ${id} ${before !== null} ${after !== null}`,
    )
  assert.deepEqual((await told('POST /batch', { operations })).toSorted(), [
    'create new false true',
    'delete team-b true false',
    'delete two true false',
    'restore three false true',
    'update one true true',
  ])
  assert.deepEqual(await told('DELETE /clusters/one?purge=true', undefined), ['purge one true false'])
})

test('a preview of what changes nothing has no changes', async () => {
  const service = await start()
  for (const [on, body] of [
    ['PATCH /clusters/one', { node_count: 5 }],
    ['PUT /clusters/one/namespaces/team-a', {}],
    ['POST /rollback', { to_revision: 3 }],
    ['POST /batch', { operations: [{ op: 'patch', type: 'clusters', selector: 'id', patch: {} }] }],
  ] as const) {
    const { body: shown } = await preview(service, on, { body: body as unknown as Json })
    assert.equal(shown.change_count, 0)
    assert.deepEqual(shown.changes, [])
    assert.equal(shown.impact.clusters, 0)
    const applied = await apply(service, on, shown.plan, { body: body as unknown as Json })
    assert.equal(applied.status, 200)
  }
  assert.equal(service.engine.state.revision, 3)
})

test('warnings are told before the write, not only after', async () => {
  const service = await start()
  const { body } = await preview(service, 'PUT /clusters/two/platform_components/b')
  assert.deepEqual(body.warnings, ['cluster "two": "b" depends on "a", which is not assigned'])
  const operations = [{ op: 'unassign', type: 'platform_components', id: 'a', selector: 'id' }]
  const shown = (await preview(service, 'POST /batch', { body: { operations } })).body
  assert.match(shown.warnings[0], /1 of the clusters that match \(id\)/)
})

test('what is asked in the body of a fleet write is the same as in its URL', async () => {
  const service = await start()
  const operations = [{ op: 'patch', type: 'clusters', id: 'one', patch: { environment: 'qa' } }]
  for (const [on, body] of [
    ['POST /batch', { operations }],
    ['POST /rollback', { to_revision: 1 }],
    ['POST /revisions/3/revert', {}],
  ] as const) {
    const [method = '', url = ''] = on.split(' ')
    const shown = await preview(service, on, { body: body as unknown as Json })
    const asked = { ...body, dry_run: true } as unknown as Json
    assert.equal((await service.call(method, url, { body: asked })).text, shown.text)
    const limited = { ...body, dry_run: true, impact_limit: 0 } as unknown as Json
    assert.deepEqual((await service.call(method, url, { body: limited })).body.impact.details, [])
    assert.equal(service.engine.state.revision, 3)
  }
})

test('dry_run=false is a write', async () => {
  const service = await start()
  const answer = await service.call('PATCH', '/clusters/one?dry_run=false', { body: { node_count: 6 } })
  assert.equal(answer.status, 200)
  assert.equal(answer.body.node_count, 6)
  const operations = [{ op: 'patch', type: 'clusters', id: 'one', patch: { node_count: 7 } }]
  const batch = await service.call('POST', '/batch', { body: { operations, dry_run: false } })
  assert.equal(batch.body.revision, 5)
})

test('a dry run is for everybody who may read', async () => {
  const service = await start()
  for (const { on, body } of [WRITES[0], WRITES.at(-1)] as Write[]) {
    const { status, body: told } = await preview(service, on, { body, token: READ_TOKEN })
    assert.equal(status, 200)
    const [warning] = told.warnings.filter((each: string) => !each.startsWith('needs confirm='))
    assert.match(warning, /^you may not do this: the role viewer may not write/)
    assert.equal((await preview(service, on, { body, token: null })).status, 401)
  }
})

describe('a dry run is refused just as the write would be', () => {
  const operations = (...list: Json[]) => ({ operations: list })
  for (const { on, ...call } of [
    { on: 'POST /clusters', body: cluster('one') },
    { on: 'POST /clusters', body: { ...cluster('new'), environment: 'moon', colour: 'red' } },
    { on: 'POST /clusters', body: cluster('new', { cluster_dns: 'one.k8s.example.com' }) },
    { on: 'POST /clusters', body: cluster('new', { namespaces: [{ id: 'nobody' }] }) },
    { on: 'POST /clusters', raw: '{' },
    { on: 'POST /clusters' },
    { on: 'PUT /namespaces/nobody', body: {} },
    { on: 'PUT /namespaces/team-a', body: {}, headers: { 'if-none-match': '*' } },
    { on: 'PATCH /clusters/one', body: { node_count: 6 }, headers: { 'if-match': '"1"' } },
    { on: 'PATCH /clusters/one', body: { node_count: 6 }, headers: { 'if-match': 'W/"3"' } },
    { on: 'PATCH /clusters/one', body: [{ op: 'test', path: '/node_count', value: 1 }], headers: JSON_PATCH },
    { on: 'PATCH /clusters/one', raw: '{}', headers: { 'content-type': 'text/plain' } },
    { on: 'PATCH /platform_components/a', body: { depends_on: ['c'] } },
    { on: 'DELETE /platform_components/a' },
    { on: 'DELETE /namespaces/team-a' },
    { on: 'DELETE /namespaces/team-a?purge=true' },
    { on: 'DELETE /clusters/nobody' },
    { on: 'POST /clusters/one/restore' },
    { on: 'POST /clusters/nobody/restore' },
    { on: 'PUT /clusters/one/namespaces/nobody' },
    { on: 'PUT /clusters/one/namespaces/team-b', body: { colour: 'red' } },
    { on: 'PATCH /clusters/two/platform_components/a', body: { enabled: false } },
    { on: 'DELETE /clusters/two/platform_components/a' },
    { on: 'PATCH /clusters/one/patches/a', body: { replicas: 3 } },
    { on: 'PUT /clusters/one/patches/c', body: { replicas: '3' } },
    { on: 'POST /rollback', body: { to_revision: 99 } },
    { on: 'POST /rollback', body: { to_revision: 1, ids: ['nobody'] } },
    { on: 'POST /revisions/99/revert' },
    { on: 'POST /batch', body: operations() },
    { on: 'POST /batch', body: operations({ op: 'burn' }) },
    { on: 'POST /batch', body: operations({ op: 'delete', type: 'clusters', selector: 'id=nobody' }) },
    { on: 'POST /batch', body: operations({ op: 'delete', type: 'clusters', id: 'one', if_revision: 1 }) },
    { on: 'PATCH /clusters/one', body: {}, headers: { 'x-change-message': 'x'.repeat(1001) } },
    { on: 'PATCH /clusters/one', body: {}, headers: { 'idempotency-key': 'a b' } },
  ] as readonly Write[]) {
    test(`${on} ${call.raw ?? JSON.stringify(call.body ?? '').slice(0, 80)}`, async () => {
      const service = await start()
      const [method = '', url = ''] = on.split(' ')
      const refused = await service.call(method, url, call)
      assert.ok(refused.status >= 400 && refused.status < 500, refused.text)
      const shown = await preview(service, on, call)
      assert.equal(shown.status, refused.status)
      assert.deepEqual(shown.body, refused.body)
      assert.equal(service.engine.state.revision, 3)
    })
  }

  test('by a protected cluster', async () => {
    const service = await start()
    await service.call('PATCH', '/clusters/one', { body: { deletion_protection: true } })
    const refused = await service.call('DELETE', '/clusters/one')
    assertProblem(refused, 409, 'conflict')
    assert.deepEqual((await preview(service, 'DELETE /clusters/one')).body, refused.body)
  })
})

describe('how much a preview shows', () => {
  const CLUSTERS = 1200
  const large = () => ({
    ...smallFleet(),
    clusters: Array.from({ length: CLUSTERS }, (_, i) =>
      cluster(`c${String(i).padStart(4, '0')}`, {
        environment: i % 2 === 0 ? 'dev' : 'prod',
        platform_components: [{ id: 'a' }],
      }),
    ),
  })
  const patchA = { body: { oci_tag: 'v2' } }

  test('impact_limit says how many clusters are told in detail; the counts are always of all', async () => {
    const service = await startService({ types, fleet: large() })
    for (const [query, details] of [
      ['', 100],
      ['?impact_limit=0', 0],
      ['?impact_limit=7', 7],
      ['?impact_limit=10000', CLUSTERS],
    ] as const) {
      const { body } = await preview(service, `PATCH /platform_components/a${query}`, patchA)
      assert.equal(body.impact.clusters, CLUSTERS)
      assert.deepEqual(body.impact.by_environment, { dev: CLUSTERS / 2, prod: CLUSTERS / 2 })
      assert.equal(body.impact.endpoints['platform-components'].changed, CLUSTERS)
      assert.equal(body.impact.details.length, details)
      const told = body.impact.details.map(({ cluster: id }: { cluster: string }) => id)
      assert.deepEqual(told, told.toSorted())
    }
    const operations = [{ op: 'patch', type: 'platform_components', id: 'a', patch: patchA.body }]
    const written = await service.call('POST', '/batch', { body: { operations, impact_limit: 3 } })
    assert.equal(written.body.impact.details.length, 3)
    assert.equal(written.body.impact.clusters, CLUSTERS)
  })

  test('of very many changes the first thousand are shown, and how many there are', async () => {
    const service = await startService({ types, fleet: large() })
    const operations = [{ op: 'patch', type: 'clusters', selector: 'id', patch: { node_count: 1 } }]
    const { body } = await preview(service, 'POST /batch', { body: { operations } })
    assert.equal(body.change_count, CLUSTERS)
    assert.equal(body.changes.length, 1000)
    const applied = await apply(service, 'POST /batch', body.plan, { body: { operations } })
    assert.equal(applied.body.changes, CLUSTERS)
  })
})

describe('a plan', () => {
  const PATCH = 'PATCH /clusters/one'
  const change = { body: { environment: 'qa', labels: { wave: '1' } } }
  const inEu = {
    body: {
      operations: [{ op: 'patch', type: 'clusters', selector: 'region=eu', patch: { node_count: 9 } }],
    },
  }

  async function planned(service: Pick<TestService, 'call'>, on: string, call: Call = {}): Promise<string> {
    const { status, text, body } = await preview(service, on, call)
    assert.equal(status, 200, text)
    return body.plan
  }

  function detailsOf(answer: Answer): Record<string, string> {
    assertProblem(answer, 409, 'plan_changed')
    return Object.fromEntries(
      answer.body.details.map(({ path, message }: { path: string; message: string }) => [path, message]),
    )
  }

  test('stays valid while other documents change', async () => {
    const service = await start()
    const plan = await planned(service, PATCH, change)
    await service.call('PATCH', '/clusters/two', { body: { node_count: 1 } })
    await service.call('POST', '/namespaces', { body: { id: 'new' } })
    await service.call('PATCH', '/platform_components/a', { body: { oci_tag: 'v9' } })
    const applied = await apply(service, PATCH, plan, change)
    assert.equal(applied.status, 200, applied.text)
    assert.equal(applied.headers['x-revision'], '7')
    assert.equal(service.engine.state.revision, 7)
  })

  test('is refused when the document was changed in between, and says what would be done now, and by whom it was changed', async () => {
    const service = await start()
    const plan = await planned(service, PATCH, change)
    const body = { node_count: 77, environment: 'uat', labels: { team: 'x' } }
    await service.call('PATCH', '/clusters/one', { body })
    const refused = await apply(service, PATCH, plan, change)
    assert.deepEqual(detailsOf(refused), {
      '/clusters/one': 'would be changed now, and was last changed by revision 4',
    })
    assert.match(refused.body.message, /Documents have changed since it was made, .*: preview it again$/)
    assert.equal(service.engine.state.revision, 4)
    assert.equal((await service.call('GET', '/clusters/one')).body.environment, 'uat')
    const again = await apply(service, PATCH, await planned(service, PATCH, change), change)
    assert.equal(again.status, 200)
  })

  test('holds when a document was changed and changed back', async () => {
    const service = await start()
    const plan = await planned(service, PATCH, change)
    await service.call('PATCH', '/clusters/one', { body: { node_count: 77 } })
    await service.call('PATCH', '/clusters/one', { body: { node_count: 5 } })
    const applied = await apply(service, PATCH, plan, change)
    assert.equal(applied.status, 200, applied.text)
    assert.equal(applied.headers['x-revision'], '6')
  })

  test('is refused when the request is another', async () => {
    const service = await start()
    const plan = await planned(service, PATCH, change)
    for (const [on, call] of [
      [PATCH, { body: { environment: 'prod', labels: { wave: '1' } } }],
      [PATCH, { body: { environment: 'qa' } }],
      [PATCH, { body: {} }],
      ['PATCH /clusters/two', change],
      ['DELETE /clusters/one', {}],
      ['POST /clusters/three/restore', {}],
      ['POST /batch', { body: { ...inEu.body, allow_empty: true } }],
    ] as const) {
      const refused = await apply(service, on, plan, call as Call)
      assertProblem(refused, 409, 'plan_changed')
      assert.match(refused.body.message, /does not do what the plan says/)
      assert.equal(service.engine.state.revision, 3)
    }
    const other = await apply(service, PATCH, plan, { body: { environment: 'prod' } })
    assert.deepEqual(Object.keys(detailsOf(other)), ['/clusters/one'])
  })

  test('is refused when nothing was ever previewed so', async () => {
    const service = await start()
    assertProblem(await apply(service, PATCH, OTHER_PLAN, change), 409, 'plan_changed')
    assertProblem(await apply(service, 'POST /revisions/3/revert', OTHER_PLAN), 409, 'plan_changed')
    assert.equal(service.engine.state.revision, 3)
  })

  test('is refused without a look into the log, and by deciding once: other writes wait', async () => {
    const store = openMemoryStore()
    const service = await start({ store })
    for (let i = 0; i < 10; i++) await service.call('PATCH', '/clusters/two', { body: { node_count: i } })
    const reads: string[] = []
    for (const name of ['log', 'history', 'changedAfter', 'revisionAt'] as const) {
      const read = store[name].bind(store) as (...args: unknown[]) => never
      Object.assign(store, {
        [name]: (...args: unknown[]) => {
          reads.push(name)
          return read(...args)
        },
      })
    }
    const { type } = service.types.cluster
    const conform = type.conform.bind(type)
    let checks = 0
    Object.assign(type, {
      conform: (...given: Parameters<typeof conform>) => {
        checks++
        return conform(...given)
      },
    })
    assertProblem(await apply(service, PATCH, OTHER_PLAN, change), 409, 'plan_changed')
    Object.assign(type, { conform })
    assert.deepEqual([reads, checks], [[], 1])
  })

  test('is refused once it was carried out', async () => {
    const service = await start()
    const plan = await planned(service, PATCH, change)
    assert.equal((await apply(service, PATCH, plan, change)).status, 200)
    const refused = await apply(service, PATCH, plan, change)
    assertProblem(refused, 409, 'plan_changed')
    assert.equal(refused.body.details, undefined)
    assert.match(refused.body.message, /: it would change nothing now\. /)
    assert.equal(service.engine.state.revision, 4)
  })

  test('is carried out once when many try at once', async () => {
    const service = await start()
    const plan = await planned(service, PATCH, change)
    const answers = await Promise.all(Array.from({ length: 20 }, () => apply(service, PATCH, plan, change)))
    assert.equal(answers.filter(({ status }) => status === 200).length, 1)
    assert.equal(answers.filter(({ body }) => body.error === 'plan_changed').length, 19)
    assert.equal(service.engine.state.revision, 4)
  })

  test('is refused when a selector matches more or fewer than it did', async () => {
    const service = await start()
    await service.call('POST', '/clusters/three/restore')
    const plan = await planned(service, 'POST /batch', inEu)
    await service.call('POST', '/clusters', { body: cluster('new', { labels: { region: 'eu' } }) })
    const more = detailsOf(await apply(service, 'POST /batch', plan, inEu))
    assert.ok('/clusters/new' in more, JSON.stringify(more))
    const wider = await planned(service, 'POST /batch', inEu)
    await service.call('PATCH', '/clusters/new', { body: { labels: { region: 'us' } } })
    const fewer = detailsOf(await apply(service, 'POST /batch', wider, inEu))
    assert.ok(!('/clusters/new' in fewer), JSON.stringify(fewer))
    const applied = await apply(service, 'POST /batch', plan, inEu)
    assert.equal(applied.status, 200, 'the first plan holds again')
    assert.equal(applied.body.changes, 1)
  })

  test('can stand in the body of a fleet write', async () => {
    const service = await start()
    const operations = [{ op: 'patch', type: 'clusters', id: 'one', patch: { environment: 'qa' } }]
    const plan = await planned(service, 'POST /batch', { body: { operations } })
    const refused = await service.call('POST', '/batch', { body: { operations, plan: OTHER_PLAN } })
    assertProblem(refused, 409, 'plan_changed')
    const applied = await service.call('POST', '/batch', { body: { operations, plan } })
    assert.equal(applied.status, 200, applied.text)
    assert.equal(applied.body.plan, plan)
    const back = await planned(service, 'POST /rollback', { body: { to_revision: 3 } })
    const rolled = await service.call('POST', '/rollback', { body: { to_revision: 3, plan: back } })
    assert.equal(rolled.body.revision, 5)
    const undo = await planned(service, 'POST /revisions/5/revert')
    assert.equal((await service.call('POST', '/revisions/5/revert', { body: { plan: undo } })).status, 200)
  })

  test('of a rollback or a revert is refused when more has changed since', async () => {
    const service = await start()
    const rollback = { body: { to_revision: 2 } }
    const back = await planned(service, 'POST /rollback', rollback)
    const undo = await planned(service, 'POST /revisions/3/revert')
    assert.equal(back, undo, 'both do the same')
    await service.call('PATCH', '/namespaces/team-a', { body: { labels: { team: 'z' } } })
    assertProblem(await apply(service, 'POST /rollback', back, rollback), 409, 'plan_changed')
    const reverted = await apply(service, 'POST /revisions/3/revert', undo)
    assert.equal(reverted.status, 200, reverted.text)
    assert.equal(reverted.body.changes, 1)
  })

  test('can be checked by another preview', async () => {
    const service = await start()
    const plan = await planned(service, PATCH, change)
    assert.equal((await preview(service, `${PATCH}?plan=${plan}`, change)).status, 200)
    await service.call('PATCH', '/clusters/one', { body: { node_count: 77 } })
    assertProblem(await preview(service, `${PATCH}?plan=${plan}`, change), 409, 'plan_changed')
  })

  test('is the same for the same changes, however they are written', async () => {
    const service = await start()
    const operations = [
      { op: 'patch', type: 'clusters', id: 'one', patch: { node_count: 1 } },
      { op: 'create', type: 'namespaces', document: { id: 'new' } },
    ]
    const plan = await planned(service, 'POST /batch', { body: { operations } })
    assert.equal(
      await planned(service, 'POST /batch', { body: { operations: operations.toReversed() } }),
      plan,
    )
    const split = [{ op: 'patch', type: 'clusters', id: 'one', patch: { node_count: 8 } }, ...operations]
    assert.equal(await planned(service, 'POST /batch', { body: { operations: split } }), plan)
    const single = await planned(service, 'PATCH /clusters/one', { body: { node_count: 1 } })
    const asBatch = { body: { operations: operations.slice(0, 1) } }
    assert.equal(await planned(service, 'POST /batch', asBatch), single)
  })

  test('differs for different changes', async () => {
    const service = await start()
    const changesOf = new Map<string, string>()
    const plansOf = new Map<string, string>()
    for (const { on, ...call } of WRITES) {
      const { plan, changes } = (await preview(service, on, call)).body
      const told = JSON.stringify(changes)
      assert.equal(changesOf.get(plan) ?? told, told, 'one plan, one set of changes')
      assert.equal(plansOf.get(told) ?? plan, plan, 'one set of changes, one plan')
      changesOf.set(plan, told)
      plansOf.set(told, plan)
    }
    assert.ok(changesOf.size > 30)
  })

  test('that is very old is refused when its document has changed, and holds when it has not', async () => {
    const service = await start()
    const plan = await planned(service, PATCH, change)
    for (let i = 0; i < 60; i++) await service.call('PATCH', '/clusters/two', { body: { node_count: i } })
    assert.equal((await preview(service, `${PATCH}?plan=${plan}`, change)).status, 200)
    await service.call('PATCH', '/clusters/one', { body: { node_count: 77 } })
    assertProblem(await apply(service, PATCH, plan, change), 409, 'plan_changed')
    assert.equal((await apply(service, PATCH, await planned(service, PATCH, change), change)).status, 200)
  })

  test('does not replace If-Match, nor a confirmation', async () => {
    const service = await start()
    const plan = await planned(service, PATCH, change)
    const refused = await apply(service, PATCH, plan, { ...change, headers: { 'if-match': '"1"' } })
    assertProblem(refused, 412, 'precondition_failed')
    const operations = ['a', 'b', 'c'].map((id) => ({
      op: 'assign',
      type: 'platform_components',
      ref: { id },
      clusters: ['two'],
    }))
    await service.call('POST', '/batch', { body: { operations } })
    const empty = { body: { platform_components: [] } }
    const shown = await preview(service, 'PATCH /clusters/two', empty)
    assert.deepEqual(shown.body.requires_confirmation, ['removals'])
    assertProblem(
      await apply(service, 'PATCH /clusters/two', shown.body.plan, empty),
      409,
      'destructive_change',
    )
    const confirmed = await apply(service, 'PATCH /clusters/two?confirm=removals', shown.body.plan, empty)
    assert.equal(confirmed.status, 200, confirmed.text)
  })

  test('made by one process is carried out by another, also after a restart', async (t) => {
    const DATABASE_URL = `sqlite://${join(temporaryFolder(t), 'fleet.db')}`
    const SEED_FILE = join(import.meta.dirname, '../data/seed.json')
    const run = async (): Promise<ServiceProcess> => {
      const service = await spawnService({ API_MODE: 'crud', DATABASE_URL, SEED_FILE })
      t.after(() => service.stop('SIGKILL'))
      return service
    }
    const one = await run()
    const two = await run()
    const on = 'PATCH /clusters/demo-cluster-01'
    const plan = await planned(one, on, { body: { node_count: 41 } })
    assert.equal(await planned(two, on, { body: { node_count: 41 } }), plan)
    assert.equal(
      (await two.call('PATCH', '/clusters/demo-cluster-01', { body: { node_count: 9 } })).status,
      200,
    )
    const refused = await apply(one, on, plan, { body: { node_count: 41 } })
    assert.deepEqual(Object.keys(detailsOf(refused)), ['/clusters/demo-cluster-01'])
    const fresh = await planned(two, on, { body: { node_count: 41 } })
    await Promise.all([one.stop(), two.stop()])
    const three = await run()
    const applied = await apply(three, on, fresh, { body: { node_count: 41 } })
    assert.equal(applied.status, 200, applied.text)
    assert.equal(applied.headers['x-revision'], '3')
  })
})
