// How far editors reach: what they change, and whom that touches, decides over every write.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Json, JsonObject } from '../src/base/json.ts'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import { assertProblem, pathsIn, run, start as startOn, type Write } from './every-store.ts'
import {
  type Answer,
  builtInTypes,
  type Call,
  READ_TOKEN,
  type ServiceOptions,
  startService,
  type TestService,
} from './service.ts'

const EXAMPLE = join(import.meta.dirname, '../examples/network-policies')
const types = builtInTypes()
const extended = builtInTypes(EXAMPLE)
const DEV = { selector: 'environment in (dev,qa)' }
const OTHER_PLAN = `sha256:${'0'.repeat(64)}`

function cluster(id: string, environment: string, more: JsonObject = {}) {
  return { id, cluster_name: id, cluster_dns: `${id}.example.com`, environment, ...more }
}

function component(id: string, more: JsonObject = {}) {
  const source = { component_path: id, component_version: '1', oci_url: 'oci://x', oci_tag: 'v1' }
  return { id, ...source, ...more }
}

function refs(...ids: string[]) {
  return ids.map((id) => ({ id }))
}

/** Four clusters: what dev and prod share, what each has alone, and what nobody has. */
function fleet() {
  return {
    platform_components: [
      component('core'),
      component('dash', { depends_on: ['core'] }),
      component('tool'),
      component('unused'),
    ],
    namespaces: [...refs('shared', 'devs', 'prods', 'free')],
    rolebindings: [{ id: 'admins', role: 'view', subjects: [{ kind: 'Group', name: 'g' }] }],
    applied_sets: [{ id: 'set' }],
    clusters: [
      cluster('dev-a', 'dev', {
        labels: { team: 'x' },
        platform_components: refs('core', 'dash', 'tool'),
        namespaces: refs('shared', 'devs'),
        rolebindings: refs('admins'),
        patches: { tool: { replicas: '1' } },
      }),
      cluster('dev-b', 'dev'),
      cluster('prod-a', 'prod', {
        platform_components: refs('core', 'dash'),
        namespaces: refs('shared', 'prods'),
        patches: { core: { replicas: '3' } },
      }),
      cluster('prod-b', 'prod', { labels: { team: 'x' }, platform_components: refs('dash') }),
      cluster('qa-a', 'qa', { platform_components: [{ id: 'core', oci_tag: 'own' }] }),
    ],
  }
}

function start(t: TestContext): Promise<TestService> {
  return startOn(t, { types, fleet: fleet() })
}

/** Starts services on one file; all of them are stopped before it goes. */
function onDisk(t: TestContext): (options?: ServiceOptions) => Promise<TestService> {
  const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-'))
  const started: TestService[] = []
  t.after(async () => {
    for (const service of started) await service.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  return async (options) => {
    const store = openSqliteStore({ path: join(folder, 'fleet.db'), write: true })
    const service = await startService({ types, fleet: fleet(), store, ...options })
    let stopped: Promise<void> | undefined
    const stop = (): Promise<void> => {
      stopped ??= service.stop()
      return stopped
    }
    started.push({ ...service, stop })
    return { ...service, stop }
  }
}

type Caller = (method: string, path: string, body?: Json, more?: Call) => Promise<Answer>

/** A new editor. */
async function editor(service: TestService, scope: JsonObject, name = 'ed'): Promise<Caller> {
  const created = await service.call('POST', '/tokens', { body: { name, role: 'editor', ...scope } })
  assert.equal(created.status, 201, created.text)
  return (method, path, body, more) =>
    service.call(method, path, { token: created.body.secret, body, ...more })
}

async function startWith(t: TestContext, scope: JsonObject): Promise<readonly [TestService, Caller]> {
  const service = await start(t)
  return [service, await editor(service, scope)]
}

function assertDone(answer: Answer): void {
  assert.ok(answer.status === 200 || answer.status === 201, answer.text)
}

/** Refused for these clusters, and for no others. */
function assertOutside(answer: Answer, ...ids: string[]): void {
  assertProblem(answer, 403, 'forbidden')
  assert.deepEqual(
    pathsIn(answer),
    ids.map((id) => `/clusters/${id}`),
    answer.text,
  )
}

/** Refused for these types, each told with the document that it is about. */
function assertForeign(answer: Answer, ...told: string[]): void {
  assertProblem(answer, 403, 'forbidden')
  const found = answer.body.details.map(
    ({ path, message }: { path: string; message: string }) =>
      `${path} ${/(?:of the type|what it has of) (\w+)$/.exec(message)?.[1]}`,
  )
  assert.deepEqual(found, told, answer.text)
}

/** Nothing of what is asked for inside may change a thing. */
async function unchanged(service: TestService, ask: () => Promise<void>): Promise<void> {
  const { revision } = service.engine.state
  await ask()
  assert.equal(service.engine.state.revision, revision)
}

test('an editor of dev and qa changes a cluster of theirs, under their name, and not one of prod', async (t) => {
  const [service, ask] = await startWith(t, DEV)
  const done = await ask('PATCH', '/clusters/dev-a', { node_count: 3 })
  assert.equal(done.status, 200)
  const { body } = await service.call('GET', `/revisions/${done.headers['x-revision']}`)
  assert.equal(body.actor, 'ed')
  await unchanged(service, async () => {
    const refused = await ask('PATCH', '/clusters/prod-a', { node_count: 3 })
    assert.deepEqual(refused.body, {
      error: 'forbidden',
      reason: 'out_of_scope',
      message: 'this touches 1 cluster outside your scope (environment in (dev,qa)): prod-a',
      details: [{ path: '/clusters/prod-a', message: 'is outside your scope' }],
    })
    assert.equal(refused.headers['x-revision'], String(service.engine.state.revision))
  })
})

test('what only their clusters use is theirs to edit, what a prod cluster uses is not until it does not', async (t) => {
  const [service, ask] = await startWith(t, DEV)
  assertDone(await ask('PATCH', '/platform_components/tool', { oci_tag: 'v2' }))
  assertDone(await ask('PUT', '/namespaces/devs', { labels: { x: '1' } }))
  const edit = ['PATCH', '/namespaces/shared', { labels: { x: '1' } }] as const
  await unchanged(service, async () => {
    assertOutside(await ask(...edit), 'prod-a')
    assertOutside(await ask('PATCH', '/platform_components/dash', { oci_tag: 'v2' }), 'prod-a', 'prod-b')
    assertOutside(
      await ask('PUT', '/platform_components/core', component('core', { oci_tag: 'v2' })),
      'prod-a',
    )
  })
  await run(service, ['DELETE', '/clusters/prod-a/namespaces/shared'])
  assertDone(await ask(...edit))
})

test('a long list of clusters outside is cut in the message and told whole in the details', async (t) => {
  const service = await start(t)
  const many = Array.from({ length: 8 }, (_, i) => cluster(`p${i}`, 'prod', { namespaces: refs('devs') }))
  for (const each of many) await run(service, ['POST', '/clusters', each])
  const ask = await editor(service, DEV)
  const refused = await ask('PATCH', '/namespaces/devs', { labels: { x: '1' } })
  assertOutside(refused, ...many.map(({ id }) => id))
  assert.equal(
    refused.body.message,
    'this touches 8 clusters outside your scope (environment in (dev,qa)): p0, p1, p2, p3, p4 and 3 more',
  )
})

test('what reaches no cluster outside passes: nobody has it, or they have it otherwise, or nothing changes', async (t) => {
  const service = await start(t)
  await run(
    service,
    ['PATCH', '/clusters/prod-a/platform_components/core', { oci_tag: 'pinned' }],
    ['PATCH', '/clusters/prod-a/namespaces/shared', { labels: { pinned: 'yes' } }],
  )
  const ask = await editor(service, DEV)
  const writes: Write[] = [
    ['POST', '/platform_components', component('new')],
    ['PATCH', '/platform_components/unused', { oci_tag: 'v2' }],
    ['DELETE', '/platform_components/unused'],
    ['POST', '/namespaces', { id: 'new' }],
    ['PATCH', '/applied_sets/set', { documents: { namespaces: ['free'] } }],
    ['PATCH', '/platform_components/core', { oci_tag: 'v2' }],
    ['PATCH', '/namespaces/shared', { labels: { x: '1' } }],
  ]
  for (const write of writes) assertDone(await ask(...write))
  assertOutside(await ask('PATCH', '/platform_components/core', { component_version: '2' }), 'prod-a')
  await unchanged(service, async () => {
    assertDone(await ask('PATCH', '/clusters/prod-a', { environment: 'prod' }))
    assertDone(await ask('PATCH', '/platform_components/dash', { oci_tag: 'v1' }))
  })
})

test('clusters are created and deleted inside the scope and not outside', async (t) => {
  const [service, ask] = await startWith(t, DEV)
  const create = { 'if-none-match': '*' }
  assertDone(await ask('POST', '/clusters', cluster('new', 'qa', { namespaces: refs('shared') })))
  assertDone(await ask('PUT', '/clusters/newer', cluster('newer', 'dev'), { headers: create }))
  assertDone(await ask('DELETE', '/clusters/new'))
  assertDone(await ask('DELETE', '/clusters/dev-a'))
  await run(service, ['DELETE', '/clusters/prod-b'])
  await unchanged(service, async () => {
    assertOutside(await ask('POST', '/clusters', cluster('more', 'prod')), 'more')
    assertOutside(await ask('PUT', '/clusters/more', cluster('more', 'uat'), { headers: create }), 'more')
    assertOutside(await ask('DELETE', '/clusters/prod-a'), 'prod-a')
    // In the place of one that was outside, too.
    assertOutside(await ask('POST', '/clusters', cluster('prod-b', 'dev')), 'prod-b')
    assertOutside(await ask('POST', '/clusters', cluster('dev-a', 'prod')), 'dev-a')
  })
  assertDone(await ask('POST', '/clusters', cluster('dev-a', 'qa')))
})

test('nobody moves a cluster out of their scope or into it, by its environment or by its labels', async (t) => {
  const service = await start(t)
  const byTier = await editor(service, DEV)
  const byLabel = await editor(service, { selector: 'team=x' }, 'labels')
  await unchanged(service, async () => {
    assertOutside(await byTier('PATCH', '/clusters/dev-a', { environment: 'prod' }), 'dev-a')
    assertOutside(await byTier('PATCH', '/clusters/prod-a', { environment: 'dev' }), 'prod-a')
    assertOutside(await byTier('PUT', '/clusters/prod-b', cluster('prod-b', 'dev')), 'prod-b')
    assertOutside(await byLabel('PATCH', '/clusters/dev-a', { labels: { team: 'y' } }), 'dev-a')
    assertOutside(await byLabel('PATCH', '/clusters/dev-a', { labels: { team: null } }), 'dev-a')
    assertOutside(await byLabel('PUT', '/clusters/dev-a', cluster('dev-a', 'dev')), 'dev-a')
    assertOutside(await byLabel('PATCH', '/clusters/dev-b', { labels: { team: 'x' } }), 'dev-b')
    const headers = { 'content-type': 'application/json-patch+json' }
    const away = [{ op: 'replace', path: '/labels/team', value: 'y' }]
    assertOutside(await byLabel('PATCH', '/clusters/dev-a', away, { headers }), 'dev-a')
  })
  assertDone(await byTier('PATCH', '/clusters/dev-a', { environment: 'qa', labels: { team: 'y' } }))
  assertDone(await byLabel('PATCH', '/clusters/prod-b', { environment: 'dev', labels: { more: '1' } }))
})

test('assigning, overriding, unassigning and patching follow the cluster', async (t) => {
  const [service, ask] = await startWith(t, DEV)
  const writes = (id: string, own: string): Write[] => [
    ['PUT', `/clusters/${id}/namespaces/free`, {}],
    ['PATCH', `/clusters/${id}/namespaces/shared`, { labels: { x: '1' } }],
    ['PUT', `/clusters/${id}/patches/dash`, { x: '1' }],
    ['PATCH', `/clusters/${id}/patches/${own}`, { replicas: '9' }],
    ['DELETE', `/clusters/${id}/patches/${own}`],
    ['DELETE', `/clusters/${id}/platform_components/dash`],
  ]
  for (const write of writes('dev-a', 'tool')) assertDone(await ask(...write))
  await unchanged(service, async () => {
    for (const write of writes('prod-a', 'core')) assertOutside(await ask(...write), 'prod-a')
  })
})

test('an input that no longer waits for one that is switched off or gone counts as changed', async (t) => {
  const [service, ask] = await startWith(t, DEV)
  const off = { enabled: false }
  assertOutside(await ask('PATCH', '/clusters/prod-a/platform_components/core', off), 'prod-a')
  assertDone(await ask('PATCH', '/clusters/dev-a/platform_components/core', off))
  // prod-a has both: what one of them waits for is told to it. prod-b lacks what its own would wait for.
  const apart = { depends_on: [] }
  assertOutside(await ask('PATCH', '/platform_components/dash', apart), 'prod-a')
  assertOutside(await ask('PATCH', '/platform_components/core', { delivery: 'helm' }), 'prod-a')
  await run(service, ['PATCH', '/clusters/prod-a/platform_components/core', off])
  assertDone(await ask('PATCH', '/platform_components/dash', apart))
})

test('deleting with all uses reaches those that use it, and only those', async (t) => {
  const [service, ask] = await startWith(t, DEV)
  assertDone(await ask('DELETE', '/platform_components/tool?cascade=true'))
  await unchanged(service, async () => {
    assertOutside(await ask('DELETE', '/namespaces/shared?cascade=true'), 'prod-a')
    assertOutside(await ask('DELETE', '/platform_components/core?cascade=true'), 'prod-a')
    assertOutside(await ask('DELETE', '/platform_components/dash?cascade=true'), 'prod-a', 'prod-b')
  })
  await run(service, ['DELETE', '/clusters/prod-a/platform_components/core'])
  // The component that prod-b has waits for this one by name, and never did so there.
  assertDone(await ask('DELETE', '/platform_components/core?cascade=true&confirm=removals'))
})

test('a batch that is partly outside does nothing at all', async (t) => {
  const [service, ask] = await startWith(t, DEV)
  const assign = (targets: JsonObject) => ({
    op: 'assign',
    type: 'namespaces',
    ref: { id: 'free' },
    ...targets,
  })
  const batch = (...operations: Json[]) => ask('POST', '/batch', { operations })
  await unchanged(service, async () => {
    assertOutside(await batch(assign({ selector: 'id' })), 'prod-a', 'prod-b')
    assertOutside(await batch(assign({ selector: 'team=x' })), 'prod-b')
    assertOutside(await batch(assign({ clusters: ['dev-a', 'prod-a'] })), 'prod-a')
    assertOutside(
      await batch(
        { op: 'patch', type: 'clusters', id: 'dev-a', patch: { node_count: 1 } },
        { op: 'patch', type: 'namespaces', id: 'prods', patch: { labels: { x: '1' } } },
      ),
      'prod-a',
    )
    // What is moved in for the length of a batch is still outside.
    assertOutside(
      await batch(
        { op: 'patch', type: 'clusters', id: 'prod-b', patch: { environment: 'dev' } },
        { op: 'patch', type: 'clusters', id: 'prod-b', patch: { node_count: 1 } },
        { op: 'patch', type: 'clusters', id: 'prod-b', patch: { environment: 'prod' } },
      ),
      'prod-b',
    )
    assertOutside(
      await batch(
        { op: 'delete', type: 'clusters', id: 'prod-b' },
        { op: 'create', type: 'clusters', document: cluster('prod-b', 'dev') },
      ),
      'prod-b',
    )
  })
  const done = await batch(assign({ selector: 'environment in (dev,qa)' }))
  assert.deepEqual([done.status, done.body.changes], [200, 3])
})

test('a way back is judged by what it changes now', async (t) => {
  const service = await start(t)
  const { revision } = service.engine.state
  const dev = await run(service, ['PATCH', '/namespaces/devs', { labels: { x: '1' } }])
  const prod = await run(service, ['PATCH', '/namespaces/prods', { labels: { x: '1' } }])
  const both = await run(service, ['PATCH', '/namespaces/shared', { labels: { x: '1' } }])
  const moved = await run(service, ['PATCH', '/clusters/dev-b', { environment: 'uat' }])
  const ask = await editor(service, DEV)
  const rollback = (choice: JsonObject) => ask('POST', '/rollback', { to_revision: revision, ...choice })
  await unchanged(service, async () => {
    assertOutside(await rollback({}), 'dev-b', 'prod-a')
    assertOutside(await rollback({ types: ['namespaces'] }), 'prod-a')
    assertOutside(await rollback({ ids: ['shared'] }), 'prod-a')
    assertOutside(await rollback({ selector: 'id in (dev-a,dev-b)' }), 'dev-b')
    assertOutside(await ask('POST', `/revisions/${prod}/revert`), 'prod-a')
    assertOutside(await ask('POST', `/revisions/${both}/revert`), 'prod-a')
    assertOutside(await ask('POST', `/revisions/${moved}/revert`), 'dev-b')
  })
  assertDone(await ask('POST', `/revisions/${dev}/revert`))
  await run(service, ['PATCH', '/namespaces/devs', { labels: { x: '2' } }])
  assertDone(await rollback({ ids: ['devs'] }))
  await run(service, ['DELETE', '/clusters/prod-a/namespaces/shared'])
  assertDone(await rollback({ ids: ['shared'] }))
})

test('a deleted cluster is restored by those whose it was', async (t) => {
  const service = await start(t)
  await run(service, ['DELETE', '/clusters/prod-a'], ['DELETE', '/clusters/dev-a'])
  const ask = await editor(service, DEV)
  assertOutside(await ask('POST', '/clusters/prod-a/restore'), 'prod-a')
  assertDone(await ask('POST', '/clusters/dev-a/restore'))
})

test('no editor makes a cluster vanish without a trace, by whatever way', async (t) => {
  const service = await start(t)
  const { revision } = service.engine.state
  const created = await run(service, ['POST', '/clusters', cluster('new', 'dev')])
  await run(service, ['POST', '/clusters', cluster('old', 'dev')], ['DELETE', '/clusters/old'])
  const purge = { op: 'delete', type: 'clusters', purge: true }
  const writes: Write[] = [
    ['DELETE', '/clusters/new?purge=true'],
    ['POST', '/batch', { operations: [{ ...purge, selector: 'id=new' }] }],
    ['POST', '/rollback', { to_revision: revision, ids: ['new'] }],
    ['POST', `/revisions/${created}/revert`, {}],
  ]
  for (const [name, scope] of Object.entries({ all: {}, dev: DEV, clusters: { types: ['clusters'] } })) {
    const ask = await editor(service, scope, name)
    await unchanged(service, async () => {
      for (const write of writes) {
        const refused = await ask(...write)
        assertOutside(refused, 'new')
        assert.equal(
          refused.body.message,
          'this leaves no trace of cluster new, which only the role admin may: delete without purge',
        )
      }
      assertOutside(await ask('DELETE', '/clusters/old?purge=true'), 'old')
      assertOutside(await ask('POST', '/rollback', { to_revision: revision }), 'new', 'old')
    })
  }
  await run(service, ['DELETE', '/clusters/old?purge=true'], ['DELETE', '/clusters/new?purge=true'])
})

test('a DNS name is changed inside the scope, and taken from nobody', async (t) => {
  const [, ask] = await startWith(t, DEV)
  assertDone(await ask('PATCH', '/clusters/dev-a', { cluster_dns: 'renamed.example.com' }))
  assertOutside(await ask('PATCH', '/clusters/prod-a', { cluster_dns: 'other.example.com' }), 'prod-a')
  assertProblem(await ask('PATCH', '/clusters/dev-a', { cluster_dns: 'prod-a.example.com' }), 409, 'conflict')
})

test('the DNS name of a deleted cluster goes to those whose cluster that was', async (t) => {
  const service = await start(t)
  await run(service, ['DELETE', '/clusters/prod-a'], ['DELETE', '/clusters/dev-b'])
  const ask = await editor(service, DEV)
  assertDone(await ask('PATCH', '/clusters/dev-a', { cluster_dns: 'dev-b.example.com' }))
  await unchanged(service, async () => {
    const body = cluster('mine', 'dev', { cluster_dns: 'prod-a.example.com', rolebindings: refs('admins') })
    assertOutside(await ask('POST', '/clusters', body), 'prod-a')
    assertOutside(await ask('PATCH', '/clusters/qa-a', { cluster_dns: 'PROD-A.example.com' }), 'prod-a')
  })
})

test('selectors of every sort are scopes', async (t) => {
  const service = await start(t)
  /** Clusters that may be given a node count, by scope. */
  const scopes: Record<string, string[]> = {
    'environment notin (prod,uat)': ['dev-a', 'dev-b', 'qa-a'],
    'environment!=prod': ['dev-a', 'dev-b', 'qa-a'],
    '!team': ['dev-b', 'prod-a', 'qa-a'],
    team: ['dev-a', 'prod-b'],
    'team=x, environment=prod': ['prod-b'],
    'team!=x': ['dev-b', 'prod-a', 'qa-a'],
    'id in (dev-a,qa-a)': ['dev-a', 'qa-a'],
    'cluster_dns=QA-A.example.com.': ['qa-a'],
    'uses.platform_components=core': ['dev-a', 'prod-a', 'qa-a'],
    '!uses.platform_components': ['dev-b'],
    'uses.namespaces>1': ['dev-a', 'prod-a'],
  }
  const all = fleet().clusters.map(({ id }) => id)
  let nodes = 0
  for (const [i, [selector, inside]] of Object.entries(scopes).entries()) {
    const ask = await editor(service, { selector }, `scope-${i}`)
    for (const id of all) {
      const answer = await ask('PATCH', `/clusters/${id}`, { node_count: ++nodes })
      assert.equal(answer.status, inside.includes(id) ? 200 : 403, `${selector}: ${id}`)
    }
  }
})

test('a scope by what clusters use is not left or entered by assigning', async (t) => {
  const service = await start(t)
  const users = await editor(service, { selector: 'uses.platform_components=core' }, 'users')
  const others = await editor(service, { selector: '!uses.rolebindings' }, 'others')
  await unchanged(service, async () => {
    assertOutside(await users('DELETE', '/clusters/dev-a/platform_components/core'), 'dev-a')
    assertOutside(await users('PUT', '/clusters/dev-b/platform_components/core', {}), 'dev-b')
    const all = await users('DELETE', '/platform_components/core?cascade=true')
    assertOutside(all, 'dev-a', 'prod-a', 'qa-a')
    assertOutside(await others('PUT', '/clusters/dev-b/rolebindings/admins', {}), 'dev-b')
    assertOutside(await others('DELETE', '/clusters/dev-a/rolebindings/admins'), 'dev-a')
  })
  assertDone(await users('PUT', '/clusters/dev-a/platform_components/unused', {}))
  assertDone(await others('PUT', '/clusters/dev-b/namespaces/free', {}))
})

test('a scope that names a type which is gone allows nothing any more, and reads go on', async (t) => {
  const startHere = onDisk(t)
  const before = await startHere({ types: extended })
  const issued = await before.call('POST', '/tokens', {
    body: { name: 'ed', role: 'editor', selector: '!uses.network_policies' },
  })
  const token = issued.body.secret
  assertDone(await before.call('PATCH', '/clusters/dev-a', { token, body: { node_count: 1 } }))
  await before.stop()
  const after = await startHere()
  await unchanged(after, async () => {
    for (const [method, path, body] of [
      ['PATCH', '/namespaces/free', { labels: { x: '1' } }],
      ['POST', '/namespaces', { id: 'new' }],
      ['POST', '/clusters', cluster('new', 'dev')],
    ] as const) {
      const refused = await after.call(method, path, { token, body })
      assertProblem(refused, 403, 'forbidden')
      assert.match(
        refused.body.message,
        /^your scope, the clusters \(!uses\.network_policies\), cannot be read/,
      )
    }
    const preview = await after.call('POST', '/namespaces?dry_run=true', { token, body: { id: 'new' } })
    assert.match(preview.body.warnings[0], /^you may not do this: your scope/)
  })
  assert.equal((await after.call('GET', '/clusters/prod-a', { token })).status, 200)
})

test('an editor of one type changes its documents, and what clusters are given of it', async (t) => {
  const namespaces: Write[] = [
    ['POST', '/namespaces', { id: 'new' }],
    ['PATCH', '/namespaces/shared', { labels: { x: '1' } }],
    ['PUT', '/namespaces/prods', { labels: { x: '1' } }],
    ['PUT', '/clusters/prod-b/namespaces/free', {}],
    ['PATCH', '/clusters/prod-b/namespaces/free', { labels: { x: '1' } }],
    ['DELETE', '/clusters/prod-b/namespaces/free?confirm=removals'],
    ['PATCH', '/clusters/dev-b', { namespaces: refs('devs') }],
    ['DELETE', '/namespaces/shared?cascade=true'],
    [
      'POST',
      '/batch',
      { operations: [{ op: 'assign', type: 'namespaces', ref: { id: 'free' }, selector: 'id' }] },
    ],
  ]
  const components: Write[] = [
    ['PATCH', '/platform_components/core', { oci_tag: 'v2' }],
    ['PUT', '/clusters/prod-a/patches/dash', { x: '1' }],
    ['PATCH', '/clusters/prod-a/patches/core', { x: '1' }],
    ['DELETE', '/clusters/prod-a/patches/core'],
    ['PATCH', '/clusters/prod-a/platform_components/core', { enabled: false }],
    [
      'PATCH',
      '/clusters/dev-a',
      { patches: { dash: { x: '1' } }, platform_components: refs('dash', 'tool') },
    ],
    ['DELETE', '/platform_components/tool?cascade=true'],
  ]
  const clusters: Write[] = [
    ['PATCH', '/clusters/prod-a', { environment: 'dev', labels: { x: '1' }, node_count: 3 }],
    ['PATCH', '/clusters/prod-a', { cluster_dns: 'renamed.example.com', cluster_name: 'renamed' }],
    ['POST', '/clusters', cluster('new', 'prod')],
    ['DELETE', '/clusters/new'],
    ['POST', '/clusters/new/restore'],
    ['PATCH', '/clusters/new', { deletion_protection: true }],
  ]
  const rolebindings: Write[] = [['PATCH', '/clusters/prod-b', { rolebindings: refs('admins') }]]
  const sets: Write[] = [['DELETE', '/applied_sets/set']]
  const writes = { namespaces, platform_components: components, clusters, rolebindings, applied_sets: sets }
  for (const [name, own] of Object.entries(writes)) {
    const service = await start(t)
    const ask = await editor(service, { types: [name] })
    for (const write of own) {
      const before = service.engine.state.revision
      const done = await ask(...write)
      assertDone(done)
      assert.equal(service.engine.state.revision, before + 1, write.join(' '))
    }
    const others = Object.entries(writes).filter(([other]) => other !== name)
    const fresh = await start(t)
    const stranger = await editor(fresh, { types: others.map(([other]) => other) })
    for (const write of own) {
      const refused = await stranger(...write)
      assertProblem(refused, 403, 'forbidden')
      assert.ok(
        refused.body.details.every(({ message }: { message: string }) => message.endsWith(` ${name}`)),
        refused.text,
      )
      await run(fresh, write)
    }
  }
})

test('what is of another type is told, document by document', async (t) => {
  const [service, ask] = await startWith(t, { types: ['namespaces', 'applied_sets'] })
  await unchanged(service, async () => {
    const edit = await ask('PATCH', '/platform_components/core', { oci_tag: 'v2' })
    assert.deepEqual(edit.body, {
      error: 'forbidden',
      reason: 'out_of_scope',
      message: 'this goes beyond your scope, the types namespaces, applied_sets',
      details: [{ path: '/platform_components/core', message: 'is of the type platform_components' }],
    })
    const mixed = {
      node_count: 1,
      namespaces: refs('free'),
      rolebindings: refs('admins'),
      platform_components: [],
    }
    const patched = await ask('PATCH', '/clusters/prod-b', mixed)
    assertProblem(patched, 403, 'forbidden')
    assert.deepEqual(
      patched.body.details
        .map(({ path, message }: { path: string; message: string }) => `${path} ${message}`)
        .sort(),
      [
        '/clusters/prod-b is of the type clusters',
        '/clusters/prod-b would be changed in what it has of platform_components',
        '/clusters/prod-b would be changed in what it has of rolebindings',
      ],
    )
    assertForeign(
      await ask('DELETE', '/platform_components/core?cascade=true'),
      ...['dev-a', 'prod-a', 'qa-a'].map((id) => `/clusters/${id} platform_components`),
      '/platform_components/dash platform_components',
      '/platform_components/core platform_components',
    )
  })
})

test('a cluster that comes or goes does so with all that it is assigned', async (t) => {
  const service = await start(t)
  const bare = await editor(service, { types: ['clusters'] }, 'bare')
  const both = await editor(service, { types: ['clusters', 'namespaces'] }, 'both')
  const given = cluster('new', 'dev', { namespaces: refs('free') })
  assertForeign(await bare('POST', '/clusters', given), '/clusters/new namespaces')
  assertForeign(await both('DELETE', '/clusters/prod-a'), '/clusters/prod-a platform_components')
  assertDone(await both('POST', '/clusters', given))
  assertForeign(await bare('DELETE', '/clusters/new'), '/clusters/new namespaces')
  assertDone(await both('DELETE', '/clusters/new'))
  assertForeign(await bare('POST', '/clusters/new/restore'), '/clusters/new namespaces')
  assertDone(await both('POST', '/clusters/new/restore'))
})

test('a cluster made anew is no way around the types', async (t) => {
  const service = await start(t)
  const bare = await editor(service, { types: ['clusters'] }, 'bare')
  assertDone(await bare('DELETE', '/clusters/dev-b'))
  const given = cluster('dev-b', 'dev', { rolebindings: refs('admins') })
  assertForeign(await bare('POST', '/clusters', given), '/clusters/dev-b rolebindings')
})

test('editors by type go on when a type is added', async (t) => {
  const startHere = onDisk(t)
  const before = await startHere()
  const issued = await before.call('POST', '/tokens', {
    body: { name: 'ed', role: 'editor', types: ['clusters'] },
  })
  await before.stop()
  const after = await startHere({ types: extended })
  const call = { token: issued.body.secret, body: { node_count: 2 } }
  assertDone(await after.call('PATCH', '/clusters/dev-a', call))
})

test('a selector and types have to hold both', async (t) => {
  const [service, ask] = await startWith(t, { ...DEV, types: ['namespaces'] })
  assertDone(await ask('PUT', '/clusters/dev-b/namespaces/free', {}))
  assertDone(await ask('PATCH', '/namespaces/devs', { labels: { x: '1' } }))
  await unchanged(service, async () => {
    assertOutside(await ask('PUT', '/clusters/prod-b/namespaces/free', {}), 'prod-b')
    assertOutside(await ask('PATCH', '/namespaces/shared', { labels: { x: '1' } }), 'prod-a')
    assertForeign(await ask('PATCH', '/clusters/dev-b', { node_count: 1 }), '/clusters/dev-b clusters')
    assertForeign(
      await ask('PUT', '/clusters/prod-b/rolebindings/admins', {}),
      '/clusters/prod-b rolebindings',
    )
  })
})

test('what one may not do is refused before its plan and its removals are looked at', async (t) => {
  const service = await start(t)
  const ask = await editor(service, DEV)
  const three = { namespaces: refs('shared', 'devs', 'free') }
  await run(service, ['PATCH', '/clusters/dev-a', three], ['PATCH', '/clusters/prod-b', three])
  const empty = { namespaces: [] }
  await unchanged(service, async () => {
    assertOutside(await ask('PATCH', `/clusters/prod-b?plan=${OTHER_PLAN}`, empty), 'prod-b')
    assertOutside(await ask('PATCH', '/clusters/prod-b', empty), 'prod-b')
    assertOutside(await ask('PATCH', '/clusters/prod-b?confirm=removals', empty), 'prod-b')
    const preview = await ask('PATCH', '/clusters/prod-b?dry_run=true', empty)
    const { plan, warnings, requires, requires_confirmation } = preview.body
    assert.deepEqual(requires_confirmation, ['removals'])
    const listed = requires.map(({ kind, reason, lifted_by }: Record<string, string>) => [
      kind,
      reason,
      lifted_by,
    ])
    assert.deepEqual(listed, [
      ['scope', 'out_of_scope', undefined],
      ['brake', 'brake', 'confirm'],
    ])
    assert.deepEqual(requires[0].details, [{ path: '/clusters/prod-b', message: 'is outside your scope' }])
    assert.ok(warnings.some((text: string) => text.startsWith('you may not do this: ')))
    assertOutside(await ask('PATCH', `/clusters/prod-b?plan=${plan}&confirm=removals`, empty), 'prod-b')
    const planned = await ask('PATCH', `/clusters/dev-a?plan=${OTHER_PLAN}`, empty)
    assertProblem(planned, 409, 'plan_changed')
    assertProblem(await ask('PATCH', '/clusters/dev-a', empty), 409, 'destructive_change')
  })
  const { plan } = (await ask('PATCH', '/clusters/dev-a?dry_run=true', empty)).body
  assertDone(await ask('PATCH', `/clusters/dev-a?plan=${plan}&confirm=removals`, empty))
})

test('an ETag that holds opens nothing that is outside', async (t) => {
  const [service, ask] = await startWith(t, DEV)
  const withTag = async (id: string, tag?: string) => {
    const { headers } = await ask('GET', `/clusters/${id}`)
    const ifMatch = { 'if-match': tag ?? String(headers.etag) }
    return ask('PATCH', `/clusters/${id}`, { node_count: 5 }, { headers: ifMatch })
  }
  assertDone(await withTag('dev-a'))
  await unchanged(service, async () => {
    assertOutside(await withTag('prod-a'), 'prod-a')
    assertOutside(await withTag('prod-a', '*'), 'prod-a')
    assertProblem(await withTag('dev-a', '"1"'), 412, 'precondition_failed')
  })
})

test('a refusal is not kept for its key, and a repetition does nothing, whatever has become of the scope', async (t) => {
  const [service, ask] = await startWith(t, DEV)
  const stranger = await editor(service, DEV, 'stranger')
  const once = { headers: { 'idempotency-key': 'k1' } }
  const write = (by: Caller) => by('PATCH', '/clusters/prod-a', { node_count: 5 }, once)
  assertOutside(await write(ask), 'prod-a')
  await run(service, ['PATCH', '/clusters/prod-a', { environment: 'dev' }])
  const done = await write(ask)
  assert.deepEqual([done.status, done.headers['idempotent-replayed']], [200, undefined])
  await run(service, ['PATCH', '/clusters/prod-a', { environment: 'prod', node_count: 1 }])
  await unchanged(service, async () => {
    const again = await write(ask)
    assert.deepEqual([again.status, again.headers['idempotent-replayed']], [200, 'true'])
    assert.equal(again.text, done.text)
    // Keys are each caller's own.
    assertOutside(await write(stranger), 'prod-a')
  })
})

test('a preview of what one may not do says so first, and is a preview all the same', async (t) => {
  const service = await start(t)
  const edit = { labels: { x: '1' } }
  const previewBy = async (ask: Caller, path = '/namespaces/shared') => {
    const { status, body } = await ask('PATCH', `${path}?dry_run=true`, edit)
    assert.equal(status, 200)
    return body
  }
  const viewer: Caller = (method, path, body) => service.call(method, path, { token: READ_TOKEN, body })
  const dev = await editor(service, DEV, 'dev')
  const typed = await editor(service, { types: ['clusters'] }, 'typed')
  await unchanged(service, async () => {
    const admin = await previewBy((method, path, body) => service.call(method, path, { body }))
    assert.deepEqual(admin.warnings, [])
    for (const [ask, why] of [
      [viewer, 'the role viewer may not write'],
      [dev, 'this touches 1 cluster outside your scope (environment in (dev,qa)): prod-a'],
      [typed, 'this goes beyond your scope, the types clusters'],
    ] as const) {
      const { requires, ...preview } = await previewBy(ask)
      const { requires: none, ...allowed } = admin
      assert.deepEqual(preview, { ...allowed, warnings: [`you may not do this: ${why}`] })
      assert.deepEqual(none, [])
      assert.deepEqual([requires[0].kind, requires[0].message, requires.length], ['scope', why, 1])
    }
    assert.deepEqual((await previewBy(dev, '/namespaces/devs')).warnings, [])
    const purge = (await dev('DELETE', '/clusters/dev-b?purge=true&dry_run=true')).body
    assert.deepEqual(purge.warnings, [
      'you may not do this: this leaves no trace of cluster dev-b, which only the role admin may: delete without purge',
    ])
  })
})

test('it is the fleet as it is when the write is done that counts, not as it was previewed', async (t) => {
  const [service, ask] = await startWith(t, DEV)
  const edit = { labels: { x: '1' } }
  const { plan, warnings } = (await ask('PATCH', '/namespaces/devs?dry_run=true', edit)).body
  assert.deepEqual(warnings, [])
  await run(service, ['PATCH', '/clusters/dev-a', { environment: 'prod' }])
  await unchanged(service, async () => {
    assertOutside(await ask('PATCH', `/namespaces/devs?plan=${plan}`, edit), 'dev-a')
    assertOutside(await ask('PATCH', '/namespaces/devs', edit), 'dev-a')
    assertOutside(await ask('PATCH', '/clusters/dev-a', { node_count: 1 }), 'dev-a')
  })
})

test('what another process has just written counts already', async (t) => {
  const startHere = onDisk(t)
  const one = await startHere()
  const two = await startHere()
  const issued = await one.call('POST', '/tokens', { body: { name: 'ed', role: 'editor', ...DEV } })
  await two.engine.catchUp()
  const call = (node_count: number) =>
    two.call('PATCH', '/clusters/dev-a', { token: issued.body.secret, body: { node_count } })
  for (let i = 1; i <= 5; i++) {
    await run(one, ['PATCH', '/clusters/dev-a', { environment: 'prod' }])
    assertOutside(await call(i), 'dev-a')
    await run(one, ['PATCH', '/clusters/dev-a', { environment: 'dev' }])
    assertDone(await call(i))
  }
})

test('while a cluster moves in and out, no write of its editor lands on it outside', async (t) => {
  const [service, ask] = await startWith(t, DEV)
  const seen = { done: 0, refused: 0 }
  for (let i = 0; i < 20; i++) {
    const move = (environment: string) => service.call('PATCH', '/clusters/dev-a', { body: { environment } })
    const edit = (x: string) => ask('PATCH', '/namespaces/devs', { labels: { x: `${x}${i}` } })
    const [, first, , second] = await Promise.all([move('prod'), edit('a'), move('dev'), edit('b')])
    for (const { status, text } of [first, second]) {
      assert.ok(status === 200 || status === 403, text)
      seen[status === 200 ? 'done' : 'refused']++
    }
  }
  const { body: revisions } = await service.call('GET', '/revisions?actor=ed&limit=1000')
  assert.equal(seen.done + seen.refused, 40)
  assert.equal(revisions.length, seen.done)
  for (const { revision } of revisions) {
    const { body } = await service.call('GET', `/clusters/dev-a?at=${revision - 1}`)
    assert.equal(body.environment, 'dev', `revision ${revision}`)
  }
})

test('what a deleted cluster outside would come back with is not theirs to change', async (t) => {
  const [service, ask] = await startWith(t, DEV)
  await run(service, ['DELETE', '/clusters/prod-a'], ['DELETE', '/clusters/prod-b'])
  await unchanged(service, async () => {
    const edit = { oci_url: 'oci://elsewhere' }
    assertOutside(await ask('PATCH', '/platform_components/dash', edit), 'prod-a', 'prod-b')
    const refused = await ask('PATCH', '/namespaces/prods', { labels: { x: '1' } })
    assertOutside(refused, 'prod-a')
    assert.match(refused.body.message, /1 deleted cluster outside your scope .* if restored: prod-a$/)
    assertOutside(await ask('DELETE', '/namespaces/prods'), 'prod-a')
  })
  await run(service, ['DELETE', '/clusters/prod-a?purge=true'])
  assertDone(await ask('PATCH', '/namespaces/prods', { labels: { x: '1' } }))
})
