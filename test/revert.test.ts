import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Json } from '../src/base/json.ts'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import { assertProblem, changesOf, pathsIn, run, STORES, start, type Write } from './every-store.ts'
import { type Answer, READ_TOKEN, startService, type TestService, temporaryFolder } from './service.ts'

const EMPTY = '{"inputs":[]}'
const NAMES = ['one', 'two', 'three', 'renamed'].map((id) => `${id}.k8s.example.com`)

function revert(service: TestService, revision: number | string, body?: Json, query = ''): Promise<Answer> {
  return service.call('POST', `/revisions/${revision}/revert${query}`, { body })
}

/** All documents and polls; a name that is not known answers otherwise than one of a deleted cluster. */
async function seen(service: TestService): Promise<Record<string, string>> {
  const endpoints = service.types.delivered.map(({ delivery }) => delivery.endpoint)
  const polls = NAMES.flatMap((dns) => endpoints.map((endpoint) => `/${dns}/${endpoint}`))
  const urls = [
    ...service.types.all.map(({ name }) => `/${name}`),
    ...['', ...polls].map((poll) => `/api/v2/flux/clusters${poll}`),
  ]
  const answers = await Promise.all(urls.map((url) => service.call('GET', url)))
  return Object.fromEntries(
    urls.map((url, i) => [url, `${answers[i]?.status} ${answers[i]?.headers.etag} ${answers[i]?.text}`]),
  )
}

async function poll(service: TestService, dns: string): Promise<Answer> {
  return service.call('GET', `/api/v2/flux/clusters/${dns}/platform-components`, { token: READ_TOKEN })
}

/** Runs what must be refused, or find nothing to do, and leave everything as it is. */
async function assertChangesNothing(service: TestService, refused: () => Promise<void>): Promise<void> {
  const { revision } = service.engine.state
  const before = await seen(service)
  await refused()
  assert.equal(service.engine.state.revision, revision)
  assert.deepEqual(await seen(service), before)
}

const cluster = (id: string, more: { readonly [key: string]: Json } = {}) => ({
  id,
  cluster_name: id,
  cluster_dns: `${id}.k8s.example.com`,
  environment: 'qa',
  ...more,
})
const third = cluster('three', { platform_components: [{ id: 'c' }], patches: { c: { size: 'xl' } } })

interface Case {
  readonly name: string
  readonly first?: readonly Write[]
  readonly write: Write
  /** What undoing it does. */
  readonly undone: readonly string[]
}

const CASES: readonly Case[] = [
  {
    name: 'creating a cluster',
    write: ['POST', '/clusters', third],
    undone: ['purge clusters/three'],
  },
  {
    name: 'creating a definition',
    write: ['POST', '/namespaces', { id: 'team-c', labels: { team: 'c' } }],
    undone: ['delete namespaces/team-c'],
  },
  {
    name: 'creating a cluster under the id of a deleted one',
    first: [['DELETE', '/clusters/one']],
    write: ['POST', '/clusters', cluster('one', { cluster_dns: 'renamed.k8s.example.com' })],
    undone: ['delete clusters/one'],
  },
  {
    name: 'patching a cluster',
    write: [
      'PATCH',
      '/clusters/one',
      { cluster_dns: 'renamed.k8s.example.com', node_count: 3, labels: { region: 'eu' }, patches: null },
    ],
    undone: ['update clusters/one'],
  },
  {
    name: 'taking a field away',
    first: [['PATCH', '/clusters/one', { node_count: 3, labels: { region: 'eu', zone: '1' } }]],
    write: ['PATCH', '/clusters/one', { node_count: null, labels: { region: null } }],
    undone: ['update clusters/one'],
  },
  {
    name: 'replacing a cluster',
    write: [
      'PUT',
      '/clusters/one',
      cluster('one', {
        platform_components: [{ id: 'c' }, { id: 'b' }],
        namespaces: [{ id: 'team-b' }],
        rolebindings: [{ id: 'admins' }],
      }),
    ],
    undone: ['update clusters/one'],
  },
  {
    name: 'turning the order of a list round',
    write: [
      'PATCH',
      '/clusters/one',
      { platform_components: [{ id: 'b', oci_tag: 'v2.0.0' }, { id: 'c' }, { id: 'a' }] },
    ],
    undone: ['update clusters/one'],
  },
  {
    name: 'patching a definition',
    write: ['PATCH', '/platform_components/a', { oci_tag: 'v9', cluster_env_enabled: true }],
    undone: ['update platform_components/a'],
  },
  {
    name: 'setting values',
    write: ['PATCH', '/clusters/one/patches/a', { replicas: '5', color: 'red' }],
    undone: ['update clusters/one'],
  },
  {
    name: 'setting the first values of a component',
    write: ['PUT', '/clusters/one/patches/b', { replicas: '5' }],
    undone: ['update clusters/one'],
  },
  {
    name: 'taking values away',
    write: ['DELETE', '/clusters/one/patches/a'],
    undone: ['update clusters/one'],
  },
  {
    name: 'assigning',
    write: ['PUT', '/clusters/one/platform_components/c', { enabled: false, oci_tag: 'v7' }],
    undone: ['update clusters/one'],
  },
  {
    name: 'assigning otherwise',
    write: ['PUT', '/clusters/one/platform_components/b', { component_path: 'elsewhere' }],
    undone: ['update clusters/one'],
  },
  {
    name: 'unassigning the first of a list, with its values',
    write: ['DELETE', '/clusters/one/platform_components/a'],
    undone: ['update clusters/one'],
  },
  {
    name: 'unassigning from the middle of a list',
    first: [['PUT', '/clusters/one/platform_components/c', {}]],
    write: ['DELETE', '/clusters/one/platform_components/b'],
    undone: ['update clusters/one'],
  },
  {
    name: 'deleting a cluster',
    write: ['DELETE', '/clusters/one'],
    undone: ['restore clusters/one'],
  },
  {
    name: 'restoring a cluster',
    first: [['DELETE', '/clusters/one']],
    write: ['POST', '/clusters/one/restore'],
    undone: ['delete clusters/one'],
  },
  {
    name: 'purging a live cluster',
    write: ['DELETE', '/clusters/one?purge=true'],
    undone: ['create clusters/one'],
  },
  {
    name: 'purging a tombstone',
    first: [['DELETE', '/clusters/one']],
    write: ['DELETE', '/clusters/one?purge=true'],
    undone: ['delete clusters/one'],
  },
  {
    name: 'deleting a definition',
    write: ['DELETE', '/platform_components/c'],
    undone: ['create platform_components/c'],
  },
  {
    name: 'deleting a definition with all that names it',
    first: [
      ['PUT', '/clusters/two/platform_components/c', {}],
      ['PUT', '/clusters/two/platform_components/a', { enabled: false }],
      ['PUT', '/clusters/two/platform_components/b', {}],
      ['PATCH', '/clusters/two/patches/a', { x: '1' }],
    ],
    write: ['DELETE', '/platform_components/a?cascade=true'],
    undone: [
      'create platform_components/a',
      'update clusters/one',
      'update clusters/two',
      'update platform_components/b',
    ],
  },
  {
    name: 'a batch over documents of all types',
    write: [
      'POST',
      '/batch',
      {
        operations: [
          { op: 'create', type: 'namespaces', document: { id: 'team-c' } },
          { op: 'create', type: 'clusters', document: { ...third, namespaces: [{ id: 'team-c' }] } },
          { op: 'delete', type: 'clusters', id: 'two' },
          { op: 'patch', type: 'rolebindings', id: 'admins', patch: { role: 'view' } },
          { op: 'unassign', type: 'platform_components', id: 'a', clusters: ['one'] },
          { op: 'assign', type: 'namespaces', ref: { id: 'team-c' }, selector: 'environment=dev' },
          { op: 'delete', type: 'namespaces', id: 'team-b' },
        ],
      },
    ],
    undone: [
      'create namespaces/team-b',
      'delete namespaces/team-c',
      'purge clusters/three',
      'restore clusters/two',
      'update clusters/one',
      'update rolebindings/admins',
    ],
  },
  {
    name: 'a rollback',
    first: [
      ['PATCH', '/clusters/one', { node_count: 3 }],
      ['DELETE', '/clusters/two'],
      ['POST', '/clusters', third],
    ],
    write: ['POST', '/rollback', { to_revision: 1 }],
    undone: ['create clusters/three', 'delete clusters/two', 'update clusters/one'],
  },
]

for (const { name, first = [], write, undone } of CASES) {
  test(`${name} is undone by a new revision, and the undoing too`, async (t) => {
    const service = await start(t)
    await run(service, ...first)
    const before = await seen(service)
    const number = await run(service, write)
    const after = await seen(service)
    assert.notDeepEqual(after, before)

    const answer = await revert(service, number)
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.body.revision, number + 1)
    assert.equal(answer.headers['x-revision'], String(number + 1))
    assert.equal(answer.body.changes, undone.length)
    assert.deepEqual(await seen(service), before)
    assert.deepEqual(await changesOf(service, number + 1), undone.toSorted())

    assert.equal((await revert(service, number + 1)).body.revision, number + 2)
    assert.deepEqual(await seen(service), after)
    assert.equal((await revert(service, number + 2)).body.revision, number + 3)
    assert.deepEqual(await seen(service), before)
    const { body: verified } = await service.call('GET', '/revisions/verify')
    assert.deepEqual(verified.problems, [])
    assert.equal(verified.verified, true)
  })
}

test('a revert is a revision like any other, named after what it undoes', async (t) => {
  const service = await start(t)
  const number = await run(service, ['PATCH', '/clusters/one', { node_count: 3 }])
  const { body: undone } = await service.call('GET', '/clusters/one?at=1')
  const sent = { 'x-change-message': 'back again', 'x-request-id': 'req-7' }
  await service.call('POST', `/revisions/${number}/revert`, { headers: sent })
  const { body } = await service.call('GET', `/revisions/${number + 1}`)
  assert.equal(body.operation, `revert revision ${number}`)
  assert.equal(body.message, 'back again')
  assert.equal(body.actor, 'writer')
  assert.equal(body.request_id, 'req-7')
  assert.deepEqual(body.changes[0].after, undone)
  assert.equal((await service.call('GET', '/clusters/one')).headers.etag, `"${number + 1}"`)
  assert.equal((await service.call('GET', `/revisions/${number}`)).body.operation, 'patch clusters/one')
})

test('the first revision can be undone, which leaves nothing at all', async (t) => {
  const service = await start(t)
  const before = await seen(service)
  assert.equal((await revert(service, 1)).status, 200)
  for (const { name } of service.types.all) {
    assert.deepEqual((await service.call('GET', `/${name}`)).body, [])
  }
  assert.equal((await poll(service, 'one.k8s.example.com')).status, 404)
  await revert(service, 2)
  assert.deepEqual(await seen(service), before)
})

test('an undone creation leaves no tombstone and an undone purge brings the tombstone back', async (t) => {
  const service = await start(t)
  await run(service, ['POST', '/clusters', third])
  assert.notEqual((await poll(service, 'three.k8s.example.com')).text, EMPTY)
  await revert(service, 2)
  assert.equal((await poll(service, 'three.k8s.example.com')).status, 404)
  assertProblem(await service.call('POST', '/clusters/three/restore'), 404, 'not_found')

  const document = (await service.call('GET', '/clusters/one')).text
  const purged = await run(service, ['DELETE', '/clusters/one'], ['DELETE', '/clusters/one?purge=true'])
  assert.equal((await poll(service, 'one.k8s.example.com')).status, 404)
  await revert(service, purged)
  const { status, text } = await poll(service, 'one.k8s.example.com')
  assert.deepEqual({ status, text }, { status: 200, text: EMPTY })
  assert.equal((await service.call('POST', '/clusters/one/restore')).text, document)
})

interface Later {
  readonly name: string
  readonly first?: readonly Write[]
  readonly write: Write
  readonly later: readonly Write[]
  readonly url: string
  readonly expected: Json
}

const KEPT: readonly Later[] = [
  {
    name: 'other fields of a document',
    write: ['PATCH', '/clusters/one', { node_count: 3, vm_image: 'x' }],
    later: [['PATCH', '/clusters/one', { environment: 'qa', k0s_version: '1' }]],
    url: '/clusters/one',
    expected: {
      id: 'one',
      cluster_name: 'one',
      cluster_dns: 'one.k8s.example.com',
      environment: 'qa',
      labels: {},
      deletion_protection: false,
      k0s_version: '1',
      patches: { a: { replicas: '2' } },
      namespaces: [{ id: 'team-a' }],
      platform_components: [
        { id: 'a', enabled: true },
        { id: 'b', enabled: true, oci_tag: 'v2.0.0' },
      ],
      rolebindings: [{ id: 'admins' }],
    },
  },
  {
    name: 'other labels',
    first: [['PATCH', '/namespaces/team-a', { labels: { region: 'eu' } }]],
    write: ['PATCH', '/namespaces/team-a', { labels: { team: 'b', region: null } }],
    later: [['PATCH', '/namespaces/team-a', { labels: { owner: 'x' }, annotations: { note: 'y' } }]],
    url: '/namespaces/team-a',
    expected: {
      id: 'team-a',
      labels: { team: 'a', region: 'eu', owner: 'x' },
      annotations: { note: 'y' },
    },
  },
  {
    name: 'other values of the same component',
    write: ['PATCH', '/clusters/one/patches/a', { replicas: '5', color: 'red' }],
    later: [['PATCH', '/clusters/one/patches/a', { size: 'xl' }]],
    url: '/clusters/one/patches/a',
    expected: { replicas: '2', size: 'xl' },
  },
  {
    name: 'other fields of the same reference',
    write: ['PATCH', '/clusters/one/platform_components/b', { oci_tag: 'v3' }],
    later: [['PATCH', '/clusters/one/platform_components/b', { enabled: false, component_path: 'p' }]],
    url: '/clusters/one/platform_components/b',
    expected: { id: 'b', enabled: false, component_path: 'p', oci_tag: 'v2.0.0' },
  },
  {
    name: 'what was assigned after what was assigned',
    write: ['PUT', '/clusters/two/platform_components/b', {}],
    later: [
      ['PUT', '/clusters/two/platform_components/a', {}],
      ['PUT', '/clusters/two/namespaces/team-b', {}],
    ],
    url: '/api/v2/flux/clusters/two.k8s.example.com/platform-components?ids',
    expected: ['a'],
  },
  {
    name: 'what was unassigned after what was unassigned',
    first: [['PUT', '/clusters/one/platform_components/c', {}]],
    write: ['DELETE', '/clusters/one/platform_components/a'],
    later: [['DELETE', '/clusters/one/platform_components/b']],
    url: '/api/v2/flux/clusters/one.k8s.example.com/platform-components?ids',
    expected: ['a', 'c'],
  },
  {
    name: 'what was assigned after something was unassigned, which goes to where it was',
    first: [['PUT', '/clusters/one/platform_components/c', {}]],
    write: ['DELETE', '/clusters/one/platform_components/b'],
    later: [
      ['POST', '/platform_components', componentLike('d')],
      ['PUT', '/clusters/one/platform_components/d', {}],
    ],
    url: '/api/v2/flux/clusters/one.k8s.example.com/platform-components?ids',
    expected: ['a', 'b', 'c', 'd'],
  },
  {
    name: 'what was assigned after the order was changed',
    write: ['PATCH', '/clusters/one', { platform_components: [{ id: 'b', oci_tag: 'v2.0.0' }, { id: 'a' }] }],
    later: [['PUT', '/clusters/one/platform_components/c', {}]],
    url: '/api/v2/flux/clusters/one.k8s.example.com/platform-components?ids',
    expected: ['a', 'b', 'c'],
  },
  {
    name: 'what was assigned after a definition went with all that named it',
    write: ['DELETE', '/platform_components/a?cascade=true'],
    later: [
      ['PUT', '/clusters/one/platform_components/c', {}],
      ['PATCH', '/clusters/one/patches/b', { x: '1' }],
    ],
    url: '/api/v2/flux/clusters/one.k8s.example.com/platform-components?ids',
    expected: ['a', 'b', 'c'],
  },
]

function componentLike(id: string): { readonly [key: string]: Json } {
  return { id, component_path: 'p', component_version: '1', oci_url: 'oci://x', oci_tag: 'v1' }
}

for (const { name, first = [], write, later, url, expected } of KEPT) {
  test(`a revert leaves ${name} as they are since`, async (t) => {
    const service = await start(t)
    await run(service, ...first)
    const number = await run(service, write)
    await run(service, ...later)
    const answer = await revert(service, number)
    assert.equal(answer.status, 200, answer.text)
    const { body } = await service.call('GET', url)
    const found = url.endsWith('?ids') ? body.inputs.map(({ id }: { id: string }) => id) : body
    assert.deepEqual(found, expected)
  })
}

test('a cluster that was deleted is back as it was, though others have changed since', async (t) => {
  const service = await start(t)
  const document = (await service.call('GET', '/clusters/one')).text
  const number = await run(service, ['DELETE', '/clusters/one'])
  await run(
    service,
    ['PATCH', '/platform_components/a', { oci_tag: 'v9' }],
    ['PATCH', '/clusters/two', { node_count: 2 }],
  )
  await revert(service, number)
  assert.equal((await service.call('GET', '/clusters/one')).text, document)
  const [first] = (await poll(service, 'one.k8s.example.com')).body.inputs
  assert.equal(first.source.oci_tag, 'v9')
})

interface Conflict {
  readonly name: string
  readonly first?: readonly Write[]
  readonly write: Write
  readonly later: readonly Write[]
  readonly paths: readonly string[]
}

const CONFLICTS: readonly Conflict[] = [
  {
    name: 'fields that were changed again',
    write: ['PATCH', '/clusters/one', { node_count: 3, vm_image: 'x', k0s_version: '1' }],
    later: [['PATCH', '/clusters/one', { node_count: 4, vm_image: 'y', k0s_version: null }]],
    paths: ['/clusters/one/node_count', '/clusters/one/vm_image'],
  },
  {
    name: 'a label that was changed again',
    write: ['PATCH', '/namespaces/team-a', { labels: { 'example.com/team': 'b', region: 'eu' } }],
    later: [['PATCH', '/namespaces/team-a', { labels: { 'example.com/team': 'c' } }]],
    paths: ['/namespaces/team-a/labels/example.com~1team'],
  },
  {
    name: 'a value that was changed again',
    write: ['PATCH', '/clusters/one/patches/a', { replicas: '3' }],
    later: [['PATCH', '/clusters/one/patches/a', { replicas: '4' }]],
    paths: ['/clusters/one/patches/a/replicas'],
  },
  {
    name: 'a field of a reference that was changed again',
    write: ['PATCH', '/clusters/one/platform_components/b', { oci_tag: 'v3' }],
    later: [['PATCH', '/clusters/one/platform_components/b', { oci_tag: 'v4' }]],
    paths: ['/clusters/one/platform_components/1/oci_tag'],
  },
  {
    name: 'a reference that was changed after it was made',
    write: ['PUT', '/clusters/one/platform_components/c', {}],
    later: [['PATCH', '/clusters/one/platform_components/c', { enabled: false }]],
    paths: ['/clusters/one/platform_components/2'],
  },
  {
    name: 'a reference that was changed and then taken away',
    write: ['PATCH', '/clusters/one/platform_components/b', { oci_tag: 'v3' }],
    later: [['DELETE', '/clusters/one/platform_components/b']],
    paths: ['/clusters/one/platform_components/b'],
  },
  {
    name: 'an unassigned document that was assigned again otherwise',
    write: ['DELETE', '/clusters/one/platform_components/b'],
    later: [['PUT', '/clusters/one/platform_components/b', { oci_tag: 'v5' }]],
    paths: ['/clusters/one/platform_components/1'],
  },
  {
    name: 'an order that was changed again',
    first: [['PUT', '/clusters/one/platform_components/c', {}]],
    write: [
      'PATCH',
      '/clusters/one',
      { platform_components: [{ id: 'c' }, { id: 'b', oci_tag: 'v2.0.0' }, { id: 'a' }] },
    ],
    later: [
      [
        'PATCH',
        '/clusters/one',
        { platform_components: [{ id: 'b', oci_tag: 'v2.0.0' }, { id: 'c' }, { id: 'a' }] },
      ],
    ],
    paths: ['/clusters/one/platform_components'],
  },
  {
    name: 'a plain list that was changed again',
    write: ['PATCH', '/platform_components/c', { depends_on: ['b', 'a'] }],
    later: [['PATCH', '/platform_components/c', { depends_on: ['a'] }]],
    paths: ['/platform_components/c/depends_on'],
  },
  {
    name: 'a created document that was changed',
    write: ['POST', '/namespaces', { id: 'team-c' }],
    later: [['PATCH', '/namespaces/team-c', { labels: { team: 'c' }, annotations: { x: 'y' } }]],
    paths: ['/namespaces/team-c/labels/team', '/namespaces/team-c/annotations/x'],
  },
  {
    name: 'a created cluster that was deleted',
    write: ['POST', '/clusters', third],
    later: [['DELETE', '/clusters/three']],
    paths: ['/clusters/three'],
  },
  {
    name: 'a deleted definition that was made anew',
    write: ['DELETE', '/namespaces/team-b'],
    later: [['POST', '/namespaces', { id: 'team-b', labels: { new: 'yes' } }]],
    paths: ['/namespaces/team-b'],
  },
  {
    name: 'a deleted cluster that was made anew',
    write: ['DELETE', '/clusters/one'],
    later: [['POST', '/clusters', cluster('one')]],
    paths: ['/clusters/one'],
  },
  {
    name: 'a deleted cluster that was purged',
    write: ['DELETE', '/clusters/one'],
    later: [['DELETE', '/clusters/one?purge=true']],
    paths: ['/clusters/one'],
  },
  {
    name: 'a patched document that is gone',
    write: ['PATCH', '/namespaces/team-b', { labels: { team: 'b' } }],
    later: [['DELETE', '/namespaces/team-b']],
    paths: ['/namespaces/team-b'],
  },
  {
    name: 'a restored cluster that was changed',
    first: [['DELETE', '/clusters/one']],
    write: ['POST', '/clusters/one/restore'],
    later: [['PATCH', '/clusters/one', { node_count: 1 }]],
    paths: ['/clusters/one/node_count'],
  },
]

for (const { name, first = [], write, later, paths } of CONFLICTS) {
  test(`a revert over ${name} is refused, names it and does nothing`, async (t) => {
    const service = await start(t)
    await run(service, ...first)
    const number = await run(service, write)
    await run(service, ...later)
    await assertChangesNothing(service, async () => {
      for (const query of ['', '?dry_run=true', '?confirm=removals']) {
        const refused = await revert(service, number, undefined, query)
        assertProblem(refused, 409, 'conflict')
        assert.deepEqual(pathsIn(refused).toSorted(), paths.toSorted())
        assert.match(refused.body.message, new RegExp(`revision ${number}\\b`))
      }
    })
  })
}

test('a conflict tells what the revision left and what is there now', async (t) => {
  const service = await start(t)
  const number = await run(service, ['PATCH', '/clusters/one', { node_count: 3 }])
  await run(service, ['PATCH', '/clusters/one', { node_count: 4 }])
  const { body } = await revert(service, number)
  assert.match(body.message, /cluster "one"/)
  assert.deepEqual(body.details, [
    { path: '/clusters/one/node_count', message: `is 4 now, not 3 as revision ${number} left it` },
  ])
})

test('a conflict of two long values shows where they differ', async (t) => {
  const service = await start(t)
  const image = (end: string) => ({ vm_image: `${'x'.repeat(300)}${end}` })
  const number = await run(service, ['PATCH', '/clusters/one', image('A')])
  await run(service, ['PATCH', '/clusters/one', image('B')])
  const { body } = await revert(service, number)
  assert.match(body.details[0].message, /^is …x+B" now, not …x+A" as revision \d+ left it$/)
})

test('one conflict stops the undoing of all documents of a revision', async (t) => {
  const service = await start(t)
  const number = await run(service, [
    'POST',
    '/batch',
    {
      operations: [
        { op: 'patch', type: 'namespaces', id: 'team-b', patch: { labels: { team: 'b' } } },
        { op: 'patch', type: 'clusters', id: 'two', patch: { node_count: 3 } },
        { op: 'patch', type: 'rolebindings', id: 'admins', patch: { role: 'view' } },
      ],
    },
  ])
  await run(service, ['PATCH', '/clusters/two', { node_count: 4 }])
  await assertChangesNothing(service, async () => {
    const refused = await revert(service, number)
    assertProblem(refused, 409, 'conflict')
    assert.ok(pathsIn(refused).includes('/clusters/two/node_count'))
  })
  await run(service, ['PATCH', '/clusters/two', { node_count: 3 }])
  assert.equal((await revert(service, number)).body.changes, 3)
})

const BY_HAND: readonly Omit<Conflict, 'first' | 'paths'>[] = [
  {
    name: 'a patch',
    write: ['PATCH', '/clusters/one', { node_count: 3, labels: { region: 'eu' } }],
    later: [['PATCH', '/clusters/one', { node_count: null, labels: { region: null } }]],
  },
  {
    name: 'an assignment',
    write: ['PUT', '/clusters/one/platform_components/c', {}],
    later: [['DELETE', '/clusters/one/platform_components/c']],
  },
  {
    name: 'values',
    write: ['PATCH', '/clusters/one/patches/a', { replicas: '3' }],
    later: [['PATCH', '/clusters/one/patches/a', { replicas: '2' }]],
  },
  {
    name: 'a deletion',
    write: ['DELETE', '/clusters/one'],
    later: [['POST', '/clusters/one/restore']],
  },
  {
    name: 'a creation',
    write: ['POST', '/clusters', third],
    later: [['DELETE', '/clusters/three?purge=true']],
  },
  {
    name: 'a patch that was reverted',
    write: ['PATCH', '/clusters/one', { node_count: 3 }],
    later: [['POST', '/revisions/2/revert']],
  },
]

for (const { name, write, later } of BY_HAND) {
  test(`undoing ${name} that was undone already makes no revision`, async (t) => {
    const service = await start(t)
    const number = await run(service, write)
    const revision = await run(service, ...later)
    await assertChangesNothing(service, async () => {
      const answer = await revert(service, number)
      assert.equal(answer.status, 200, answer.text)
      assert.equal(answer.body.revision, revision)
      assert.equal(answer.body.changes, 0)
    })
  })
}

test('what is left of a revision that was partly undone by hand is undone', async (t) => {
  const service = await start(t)
  const before = await seen(service)
  const number = await run(service, [
    'POST',
    '/batch',
    {
      operations: [
        { op: 'patch', type: 'clusters', id: 'one', patch: { node_count: 3, vm_image: 'x' } },
        { op: 'create', type: 'namespaces', document: { id: 'team-c' } },
      ],
    },
  ])
  await run(service, ['DELETE', '/namespaces/team-c'], ['PATCH', '/clusters/one', { node_count: null }])
  assert.equal((await revert(service, number)).body.changes, 1)
  assert.deepEqual(await seen(service), before)
})

test('a revert does not delete a protected cluster until its protection is switched off', async (t) => {
  const service = await start(t)
  const created = await run(service, ['POST', '/clusters', { ...third, deletion_protection: true }])
  await assertChangesNothing(service, async () => {
    for (const query of ['', '?confirm=removals', '?dry_run=true']) {
      const refused = await revert(service, created, undefined, query)
      assertProblem(refused, 409, 'conflict')
      assert.match(refused.body.message, /three.*deletion_protection/)
    }
  })
  const unlocked = await run(service, ['PATCH', '/clusters/three', { deletion_protection: false }])
  assertProblem(await revert(service, created), 409, 'conflict')
  assert.equal((await revert(service, unlocked)).status, 200, 'a protection can be switched on again')
})

test('a cluster whose DNS name was taken is not brought back until the name is free', async (t) => {
  const service = await start(t)
  const before = (await service.call('GET', '/clusters/one')).text
  const number = await run(service, ['DELETE', '/clusters/one'])
  await run(service, ['POST', '/clusters', { ...third, cluster_dns: 'ONE.k8s.example.com' }])
  await assertChangesNothing(service, async () => {
    const refused = await revert(service, number)
    assertProblem(refused, 409, 'conflict')
    assert.match(refused.body.message, /one\.k8s\.example\.com.*three/)
    assert.deepEqual(pathsIn(refused), ['/clusters/one/cluster_dns'])
  })
  await run(service, ['PATCH', '/clusters/three', { cluster_dns: 'three.k8s.example.com' }])
  assert.equal((await revert(service, number)).status, 200)
  assert.equal((await service.call('GET', '/clusters/one')).text, before)
})

test('a DNS name that was given up and taken by another is not taken back', async (t) => {
  const service = await start(t)
  const number = await run(service, ['PATCH', '/clusters/one', { cluster_dns: 'renamed.k8s.example.com' }])
  await run(service, ['POST', '/clusters', { ...third, cluster_dns: 'one.k8s.example.com' }])
  await assertChangesNothing(service, async () => {
    assertProblem(await revert(service, number), 409, 'conflict')
  })
})

test('two clusters that swapped their DNS names in one revision have them back', async (t) => {
  const service = await start(t)
  const before = await seen(service)
  const swap = (id: string, dns: string) => ({
    op: 'patch',
    type: 'clusters',
    id,
    patch: { cluster_dns: `${dns}.k8s.example.com` },
  })
  const number = await run(service, [
    'POST',
    '/batch',
    { operations: [swap('one', 'two'), swap('two', 'one')] },
  ])
  assert.notDeepEqual(await seen(service), before)
  assert.equal((await revert(service, number)).status, 200)
  assert.deepEqual(await seen(service), before)
})

test('a created definition that is in use is not taken away, and its users are named', async (t) => {
  const service = await start(t)
  const number = await run(service, ['POST', '/platform_components', componentLike('d')])
  await run(
    service,
    ['PUT', '/clusters/two/platform_components/d', {}],
    ['PATCH', '/platform_components/c', { depends_on: ['d'] }],
  )
  await assertChangesNothing(service, async () => {
    const refused = await revert(service, number)
    assertProblem(refused, 409, 'conflict')
    assert.deepEqual(pathsIn(refused).toSorted(), ['/clusters/two', '/platform_components/c'])
  })
})

test('a reference to a definition that is gone is not brought back, and the definition is named', async (t) => {
  const service = await start(t)
  const unassigned = await run(service, ['DELETE', '/clusters/one/namespaces/team-a?confirm=removals'])
  await run(service, ['DELETE', '/namespaces/team-a'])
  await assertChangesNothing(service, async () => {
    const refused = await revert(service, unassigned)
    assert.ok([400, 409].includes(refused.status), refused.text)
    assert.match(refused.body.message, /team-a/)
    assert.deepEqual(pathsIn(refused), ['/clusters/one/namespaces/0/id'])
  })
})

test('a revision that is not there cannot be undone', async (t) => {
  const service = await start(t)
  await assertChangesNothing(service, async () => {
    for (const number of ['2', '0', '-1', 'abc', '1.0', '9'.repeat(15), '9'.repeat(20), '%20']) {
      assertProblem(await revert(service, number), 404, 'not_found')
    }
  })
})

test('only the write token undoes, only by POST, and not in read-only mode', async (t) => {
  const service = await start(t)
  const url = '/revisions/1/revert'
  assertProblem(await service.call('POST', url, { token: READ_TOKEN }), 403, 'forbidden')
  assertProblem(await service.call('POST', url, { token: null }), 401, 'unauthorized')
  const get = await service.call('GET', url)
  assertProblem(get, 405, 'method_not_allowed')
  assert.equal(get.headers.allow, 'POST')
  const readOnly = await start(t, { mode: 'read-only' })
  assertProblem(await readOnly.call('POST', url), 405, 'method_not_allowed')
  assert.equal(service.engine.state.revision, 1)
})

test('what a revert does not know is refused by name', async (t) => {
  const service = await start(t)
  const number = await run(service, ['PATCH', '/clusters/one', { node_count: 3 }])
  await assertChangesNothing(service, async () => {
    for (const [body, query, path] of [
      [{ dry_runs: true }, '', '/dry_runs'],
      [{ dry_run: 'yes' }, '', '/dry_run'],
      [{ confirm: ['everything'] }, '', '/confirm/0'],
      [{ message: 'x'.repeat(1001) }, '', '/message'],
      [{ plan: 'sha256:1' }, '', '/plan'],
      [{ operations: [] }, '', '/operations'],
      [[], '', ''],
      [undefined, '?dryrun=true', '?dryrun'],
      [undefined, '?dry_run=1', '?dry_run'],
      [undefined, '?plan=x', '?plan'],
      [undefined, '?confirm=all', '?confirm'],
      [undefined, '?at=1', '?at'],
    ] as const) {
      const refused = await revert(service, number, body, query)
      assertProblem(refused, 400, 'validation_error')
      assert.ok(pathsIn(refused).includes(path), refused.text)
    }
  })
})

test('a dry run tells what an undoing would do and does nothing', async (t) => {
  const service = await start(t)
  const number = await run(service, ['DELETE', '/platform_components/a?cascade=true'])
  await run(service, ['PATCH', '/clusters/two', { node_count: 1 }])
  for (const preview of [
    () => revert(service, number, undefined, '?dry_run=true'),
    () => revert(service, number, { dry_run: true }),
  ]) {
    await assertChangesNothing(service, async () => {
      const { status, body } = await preview()
      assert.equal(status, 200)
      assert.equal(body.dry_run, true)
      assert.equal(body.base_revision, number + 1)
      assert.equal(body.change_count, 3)
      assert.deepEqual(body.requires_confirmation, [])
      assert.deepEqual(
        body.changes.map(({ op, type, id }: Record<string, string>) => `${op} ${type}/${id}`).toSorted(),
        ['create platform_components/a', 'update clusters/one', 'update platform_components/b'],
      )
      assert.deepEqual(body.impact.by_environment, { dev: 1 })
      const [detail] = body.impact.details
      assert.deepEqual(detail.added, ['a'])
      assert.match(body.plan, /^sha256:[0-9a-f]{64}$/)
    })
  }
})

test('a revert does what its preview showed, or nothing', async (t) => {
  const service = await start(t)
  const number = await run(service, ['PATCH', '/clusters/one', { node_count: 3, environment: 'qa' }])
  const preview = (await revert(service, number, { dry_run: true })).body
  await run(service, ['PATCH', '/clusters/two', { node_count: 9 }])
  const again = (await revert(service, number, { dry_run: true })).body
  assert.equal(again.plan, preview.plan, 'changes of other documents do not matter')
  await run(service, ['PATCH', '/clusters/one', { vm_image: 'x' }])
  await assertChangesNothing(service, async () => {
    for (const [body, query] of [
      [{ plan: preview.plan }, ''],
      [undefined, `?plan=${preview.plan}`],
    ] as const) {
      const refused = await revert(service, number, body, query)
      assertProblem(refused, 409, 'plan_changed')
      assert.deepEqual(pathsIn(refused), ['/clusters/one'])
    }
  })
  const current = (await revert(service, number, { dry_run: true })).body
  const done = await revert(service, number, { plan: current.plan })
  assert.equal(done.status, 200, done.text)
  assert.equal(done.body.plan, current.plan)
  assert.deepEqual(done.body.impact, current.impact)
  const { body } = await service.call('GET', `/revisions/${done.body.revision}`)
  assert.deepEqual(body.changes, current.changes)
  assert.deepEqual(body.impact, current.impact)
})

test('the message comes from the body or the header, and the body counts first', async (t) => {
  const service = await start(t)
  const headers = { 'x-change-message': 'from the header' }
  const first = await run(service, ['PATCH', '/clusters/one', { node_count: 3 }])
  for (const [body, expected] of [
    [{ message: 'from the body: größer' }, 'from the body: größer'],
    [{}, 'from the header'],
    [undefined, 'from the header'],
  ] as const) {
    const number: number = service.engine.state.revision
    const { body: done } = await service.call('POST', `/revisions/${number}/revert`, { body, headers })
    assert.equal(done.revision, number + 1)
    assert.equal((await service.call('GET', `/revisions/${number + 1}`)).body.message, expected)
  }
  assert.equal(service.engine.state.revision, first + 3)
})

/** Ten clusters with one component each. */
function tenClusters() {
  const ids = Array.from({ length: 10 }, (_, i) => `k${i}`)
  return {
    platform_components: [componentLike('a'), componentLike('b')],
    clusters: ids.map((id) => cluster(id, { platform_components: [{ id: 'a' }] })),
  }
}

test('undoing what most of the fleet was given has to be confirmed', async (t) => {
  const service = await start(t, { fleet: tenClusters() })
  const operations = [{ op: 'assign', type: 'platform_components', ref: { id: 'b' }, selector: 'id' }]
  const number = await run(service, ['POST', '/batch', { operations }])
  const preview = (await revert(service, number, { dry_run: true })).body
  assert.deepEqual(preview.requires_confirmation, ['removals'])
  assert.match(preview.warnings[0], /confirm=removals.*10 of 10 clusters/)
  await assertChangesNothing(service, async () => {
    for (const body of [undefined, { confirm: [] }, { plan: preview.plan }]) {
      const refused = await revert(service, number, body)
      assertProblem(refused, 409, 'destructive_change')
      assert.match(refused.body.message, /10 of 10 clusters/)
      assert.equal(refused.body.impact.endpoints['platform-components'].removed, 10)
    }
  })
  const done = await revert(service, number, { confirm: ['removals'], plan: preview.plan })
  assert.equal(done.status, 200, done.text)
  assert.equal(done.body.changes, 10)
  assert.deepEqual(done.body.impact.endpoints, {
    'platform-components': { clusters: 10, added: 0, removed: 10, changed: 0 },
  })
  const back = await revert(service, done.body.revision)
  assert.equal(back.status, 200, 'giving back needs no confirmation')
})

test('undoing the creation of many clusters has to be confirmed', async (t) => {
  const service = await start(t)
  const operations = Array.from({ length: 6 }, (_, i) => ({
    op: 'create',
    type: 'clusters',
    document: cluster(`k${i}`),
  }))
  const number = await run(service, ['POST', '/batch', { operations }])
  await assertChangesNothing(service, async () => {
    const refused = await revert(service, number)
    assertProblem(refused, 409, 'destructive_change')
    assert.match(refused.body.message, /deletes 6 clusters: k0, k1/)
  })
  assert.equal((await revert(service, number, undefined, '?confirm=removals')).status, 200)
  assert.equal((await poll(service, 'k0.k8s.example.com')).status, 404)
})

test('a revert that is sent again with its key is done once', async (t) => {
  const service = await start(t)
  const number = await run(service, ['PATCH', '/clusters/one', { node_count: 3 }])
  const headers = { 'idempotency-key': 'undo-1' }
  const send = (revision: number) => service.call('POST', `/revisions/${revision}/revert`, { headers })
  const first = await send(number)
  await run(service, ['PATCH', '/clusters/one', { node_count: 3 }])
  const second = await send(number)
  assert.equal(second.headers['idempotent-replayed'], 'true')
  assert.deepEqual(second.body, first.body)
  assert.equal((await service.call('GET', '/clusters/one')).body.node_count, 3)
  assertProblem(await send(number + 1), 422, 'idempotency_mismatch')
})

for (const [store, open] of Object.entries(STORES)) {
  test(`of many reverts of one revision at once one does it and the others find it done (${store})`, async (t) => {
    const service = await start(t, { store: await open(t) })
    const before = await seen(service)
    const number = await run(service, ['DELETE', '/platform_components/a?cascade=true'])
    const answers = await Promise.all(Array.from({ length: 20 }, () => revert(service, number)))
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    assert.deepEqual(
      answers.map(({ body }) => body.changes).toSorted((a, b) => a - b),
      [...Array(19).fill(0), 3],
    )
    assert.equal(service.engine.state.revision, number + 1)
    assert.deepEqual(await seen(service), before)
  })

  test(`a revision of hundreds of documents is undone as a whole (${store})`, async (t) => {
    const service = await start(t, { store: await open(t) })
    const before = await seen(service)
    const ids = Array.from({ length: 450 }, (_, i) => `n${String(i).padStart(3, '0')}`)
    const operations = [
      ...ids.map((id) => ({ op: 'create', type: 'namespaces', document: { id } })),
      ...ids.map((id) => ({ op: 'assign', type: 'namespaces', ref: { id }, clusters: ['two'] })),
    ]
    const number = await run(service, ['POST', '/batch', { operations }])
    const after = await seen(service)
    const undone = await revert(service, number, { confirm: ['removals'] })
    assert.equal(undone.body.changes, 451, undone.text)
    assert.deepEqual(await seen(service), before)
    assert.equal((await revert(service, undone.body.revision)).status, 200)
    assert.deepEqual(await seen(service), after)
  })
}

test('a revision of another process is undone at once, and a revert is followed by the other', async (t) => {
  const path = join(temporaryFolder(t), 'fleet.db')
  const one = await start(t, { store: openSqliteStore({ path, write: true }) })
  const two = await start(t, { store: openSqliteStore({ path, write: true }) })
  const before = await seen(one)
  for (let i = 0; i < 5; i++) {
    const number = await run(one, ['DELETE', '/platform_components/a?cascade=true'])
    const undone = await revert(two, number)
    assert.equal(undone.status, 200, undone.text)
    assert.deepEqual(await seen(two), before)
    await one.engine.catchUp()
    assert.deepEqual(await seen(one), before)
    assert.deepEqual(await changesOf(one, number + 1), await changesOf(two, number + 1))
  }
  assert.equal((await one.call('GET', '/revisions/verify')).body.verified, true)
})

test('what was done before a restart is undone after it', async (t) => {
  const path = join(temporaryFolder(t), 'fleet.db')
  const first = await startService({ store: openSqliteStore({ path, write: true }) })
  const before = await seen(first)
  const number = await run(first, ['DELETE', '/clusters/one'])
  await first.stop()
  const second = await start(t, { store: openSqliteStore({ path, write: true }) })
  assert.equal((await revert(second, number)).status, 200)
  assert.deepEqual(await seen(second), before)
})

test('the first value of a component goes, and values that others have added since stay', async (t) => {
  const service = await start(t)
  const first = await run(service, ['PATCH', '/clusters/one/patches/b', { x: '1' }])
  const second = await run(service, ['PATCH', '/clusters/one/patches/b', { y: '2' }])
  assert.equal((await revert(service, first)).status, 200)
  assert.deepEqual((await service.call('GET', '/clusters/one/patches/b')).body, { y: '2' })
  assert.equal((await revert(service, second)).status, 200)
  assert.deepEqual((await service.call('GET', '/clusters/one')).body.patches, { a: { replicas: '2' } })
})

test('the conflicts of every document are told at once', async (t) => {
  const service = await start(t)
  const operation = { op: 'patch', type: 'clusters', selector: 'id', patch: { labels: { ring: '1' } } }
  const revision = await run(service, ['POST', '/batch', { operations: [operation] }])
  for (const id of ['one', 'two']) await run(service, ['PATCH', `/clusters/${id}`, { labels: { ring: '2' } }])
  const refused = await revert(service, revision)
  assertProblem(refused, 409, 'conflict')
  assert.deepEqual(pathsIn(refused), ['/clusters/one/labels/ring', '/clusters/two/labels/ring'])
})

test('an assignment that others have set values for since is a conflict', async (t) => {
  const service = await start(t)
  const revision = await run(service, ['PUT', '/clusters/one/platform_components/c', {}])
  await run(service, ['PATCH', '/clusters/one/patches/c', { size: 'xl' }])
  await assertChangesNothing(service, async () => {
    assertProblem(await revert(service, revision), 409, 'conflict')
  })
})
