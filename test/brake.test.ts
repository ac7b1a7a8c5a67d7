import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { Json, JsonObject } from '../src/base/json.ts'
import {
  type Answer,
  builtInTypes,
  failToStart,
  READ_TOKEN,
  type ServiceProcess,
  smallFleet,
  spawnService,
  startService,
  type TestService,
  temporaryFolder,
  WRITE_TOKEN,
} from './service.ts'

const types = builtInTypes()
const POLLS = '/api/v2/flux/clusters'

type Called = Pick<TestService, 'call'>

/** So many clusters, c000 and on, each with components a and b and one namespace. */
function fleetOf(count: number, more: JsonObject = {}) {
  return {
    ...smallFleet(),
    clusters: Array.from({ length: count }, (_, i) => ({
      id: name(i),
      cluster_name: name(i),
      cluster_dns: `${name(i)}.k8s.example.com`,
      environment: i % 2 === 0 ? 'dev' : 'prod',
      labels: { number: String(i) },
      platform_components: [{ id: 'a' }, { id: 'b' }],
      namespaces: [{ id: 'team-a' }],
      ...more,
    })),
  }
}

function name(i: number): string {
  return `c${String(i).padStart(3, '0')}`
}

function names(count: number, from = 0): string[] {
  return Array.from({ length: count }, (_, i) => name(from + i))
}

function start(count: number, more: JsonObject = {}): Promise<TestService> {
  return startService({ types, fleet: fleetOf(count, more) })
}

function batch(service: Called, operations: Json, more: JsonObject = {}, query = ''): Promise<Answer> {
  return service.call('POST', `/batch${query}`, { body: { operations, ...more } })
}

function unassign(count: number, id = 'a'): Json {
  return [{ op: 'unassign', type: 'platform_components', id, selector: `number<${count}` }]
}

/** Stopped, with the reason and what it would have meant; nothing is stored. */
async function assertStopped(service: Called, answer: Answer, says: RegExp): Promise<void> {
  assert.equal(answer.status, 409, answer.text)
  assert.equal(answer.body.error, 'destructive_change')
  assert.match(answer.body.message, /^this removes a lot: /)
  assert.match(answer.body.message, says)
  assert.match(answer.body.message, /confirm=removals/)
  const { clusters, by_environment, endpoints, details } = answer.body.impact
  assert.equal(typeof clusters, 'number')
  for (const part of [by_environment, endpoints]) assert.equal(typeof part, 'object')
  assert.ok(Array.isArray(details))
  const { headers } = await service.call('GET', '/clusters')
  assert.equal(headers['x-revision'], answer.headers['x-revision'])
}

function assertDone(answer: Answer, revision: number): void {
  assert.ok(answer.status === 200 || answer.status === 201, answer.text)
  assert.equal(answer.headers['x-revision'], String(revision))
}

describe('clusters that lose inputs', () => {
  test('may be ten in a hundred, but not eleven', async () => {
    const service = await start(100)
    const stopped = await batch(service, unassign(11))
    await assertStopped(service, stopped, /takes inputs from 11 of 100 clusters \(11\.0 %, more than 10 %\)/)
    assert.deepEqual(stopped.body.impact.endpoints, {
      'platform-components': { clusters: 11, added: 0, removed: 11, changed: 11 },
    })
    assert.deepEqual(stopped.body.impact.by_environment, { dev: 6, prod: 5 })
    assert.equal(stopped.body.impact.details.length, 11)
    assert.equal(service.engine.state.revision, 1)
    assertDone(await batch(service, unassign(10)), 2)
  })

  test('may be four, whatever share that is', async () => {
    const service = await start(5)
    await assertStopped(service, await batch(service, unassign(5)), /5 of 5 clusters \(100\.0 %/)
    assertDone(await batch(service, unassign(4)), 2)
  })

  test('count once, whatever they lose and wherever', async () => {
    const service = await start(100)
    const operations = [
      ...(unassign(10, 'a') as Json[]),
      ...(unassign(10, 'b') as Json[]),
      { op: 'unassign', type: 'namespaces', id: 'team-a', selector: 'number<10' },
    ]
    assertDone(await batch(service, operations), 2)
    const mixed = [
      { op: 'unassign', type: 'namespaces', id: 'team-a', clusters: names(6, 20) },
      { op: 'unassign', type: 'platform_components', id: 'b', clusters: names(6, 40) },
    ]
    await assertStopped(service, await batch(service, mixed), /12 of 100/)
  })

  test('count when a component is switched off, and not when it is switched on', async () => {
    const service = await start(20)
    const set = (enabled: boolean, selector: string) => [
      { op: 'assign', type: 'platform_components', ref: { id: 'a', enabled }, merge: true, selector },
    ]
    await assertStopped(service, await batch(service, set(false, 'id')), /20 of 20 clusters/)
    assertDone(await batch(service, set(false, 'id'), { confirm: ['removals'] }), 2)
    assertDone(await batch(service, set(true, 'id')), 3)
  })

  test('do not count when they are given something, or something else', async () => {
    const service = await start(20)
    assertDone(
      await batch(service, [
        { op: 'assign', type: 'platform_components', ref: { id: 'c' }, selector: 'id' },
        { op: 'assign', type: 'namespaces', ref: { id: 'team-b' }, selector: 'id' },
        { op: 'patch_values', component: 'a', values: { x: '1' }, selector: 'id' },
        { op: 'patch', type: 'platform_components', id: 'a', patch: { oci_tag: 'v9' } },
      ]),
      2,
    )
    assertDone(
      await batch(service, [{ op: 'patch', type: 'clusters', selector: 'id', patch: { node_count: 1 } }]),
      3,
    )
  })

  test('do not count when what they lose comes back in the same batch', async () => {
    const service = await start(20)
    assertDone(
      await batch(service, [
        ...(unassign(20) as Json[]),
        { op: 'assign', type: 'platform_components', ref: { id: 'a', oci_tag: 'v2' }, selector: 'id' },
      ]),
      2,
    )
  })

  test('are counted for single writes too: deleting a definition everywhere', async () => {
    const service = await start(20)
    for (const url of ['/platform_components/a?cascade=true', '/namespaces/team-a?cascade=true']) {
      await assertStopped(service, await service.call('DELETE', url), /20 of 20 clusters/)
      const shown = await service.call('DELETE', `${url}&dry_run=true`)
      assert.equal(shown.status, 200)
      assert.deepEqual(shown.body.requires_confirmation, ['removals'])
      assert.match(shown.body.warnings[0], /needs confirm=removals: it takes inputs from 20 of 20 clusters/)
    }
    assert.equal(service.engine.state.revision, 1)
    assertDone(await service.call('DELETE', '/namespaces/team-a?cascade=true&confirm=removals'), 2)
    assertDone(await service.call('DELETE', '/namespaces/team-b?cascade=true'), 3)
  })
})

describe('an endpoint of a cluster that would be empty', () => {
  const three = { platform_components: [{ id: 'a' }, { id: 'b' }, { id: 'c' }] }
  const EMPTIES = /it empties c000 \(platform-components\)/

  test('is one cluster enough to stop, by whatever write', async () => {
    const service = await start(50, three)
    const document = (await service.call('GET', '/clusters/c000')).body
    const off = three.platform_components.map((ref) => ({ ...ref, enabled: false }))
    for (const [method, url, body] of [
      ['PATCH', '/clusters/c000', { platform_components: [] }],
      ['PATCH', '/clusters/c000', { platform_components: off }],
      ['PUT', '/clusters/c000', { ...document, platform_components: [] }],
    ] as const) {
      const stopped = await service.call(method, url, { body: body as Json })
      await assertStopped(service, stopped, EMPTIES)
      assert.equal(service.engine.state.revision, 1)
    }
    const operations = ['a', 'b', 'c'].map((id) => ({
      op: 'unassign',
      type: 'platform_components',
      id,
      clusters: ['c000'],
    }))
    await assertStopped(service, await batch(service, operations), EMPTIES)
    assertDone(await batch(service, operations.slice(1)), 2)
    assertDone(await service.call('DELETE', '/clusters/c000/platform_components/a'), 3)
    assertDone(
      await service.call('PATCH', '/clusters/c001?confirm=removals', { body: { platform_components: [] } }),
      4,
    )
    const { body } = await service.call('GET', `${POLLS}/c001.k8s.example.com/platform-components`)
    assert.deepEqual(body.inputs, [])
  })

  test('is fine when it had fewer than three inputs', async () => {
    const service = await start(50)
    assertDone(await service.call('PATCH', '/clusters/c000', { body: { platform_components: [] } }), 2)
  })

  test('is fine when the cluster goes with it', async () => {
    const service = await start(50, three)
    assertDone(await service.call('DELETE', '/clusters/c000'), 2)
    assertDone(await service.call('DELETE', '/clusters/c001?purge=true'), 3)
  })

  test('is seen though the cluster was deleted and made anew in the same batch', async () => {
    const service = await start(50, three)
    const { body } = await service.call('GET', '/clusters/c000')
    const operations = [
      { op: 'delete', type: 'clusters', id: 'c000' },
      { op: 'create', type: 'clusters', document: { ...body, platform_components: [] } },
    ]
    await assertStopped(service, await batch(service, operations), EMPTIES)
  })
})

describe('clusters that are deleted', () => {
  const remove = (ids: readonly string[], more: JsonObject = {}): Json => [
    { op: 'delete', type: 'clusters', clusters: ids, ...more },
  ]

  test('may be five at once, but not six', async () => {
    const service = await start(100)
    assertDone(await service.call('DELETE', '/clusters/c099'), 2)
    assertDone(await batch(service, remove(names(5))), 3)
    for (const operations of [
      remove(names(6, 10)),
      remove(names(6, 10), { purge: true }),
      [{ op: 'delete', type: 'clusters', selector: 'number>90' }],
      names(6, 10).map((id) => ({ op: 'delete', type: 'clusters', id })),
    ]) {
      await assertStopped(
        service,
        await batch(service, operations as Json),
        /it deletes \d clusters: c0\d\d, /,
      )
    }
    const stopped = await batch(service, remove(names(6, 10)))
    assert.equal(stopped.body.impact.endpoints['platform-components'].removed, 12)
    assert.equal(stopped.body.impact.clusters, 6)
    assertDone(await batch(service, remove(names(6, 10)), { confirm: ['removals'] }), 4)
    for (const id of names(6, 10)) {
      const { text } = await service.call('GET', `${POLLS}/${id}.k8s.example.com/namespaces`)
      assert.equal(text, '{"inputs":[]}')
    }
  })

  test('are never protected ones, whatever is confirmed', async () => {
    const service = await start(10)
    await service.call('PATCH', '/clusters/c003', { body: { deletion_protection: true } })
    for (const [operations, more, query] of [
      [remove(['c003']), {}, ''],
      [remove(['c003']), { confirm: ['removals'] }, '?confirm=removals'],
      [remove(names(10)), { confirm: ['removals'] }, ''],
      [remove(names(10)), {}, '?confirm=removals&dry_run=true'],
      [remove(names(10), { purge: true }), { confirm: ['removals'] }, ''],
    ] as const) {
      const refused = await batch(service, operations, more as unknown as JsonObject, query)
      assert.equal(refused.status, 409, refused.text)
      assert.equal(refused.body.error, 'conflict')
      assert.match(refused.body.message, /"c003" is protected: set deletion_protection to false first/)
    }
    const single = await service.call('DELETE', '/clusters/c003?confirm=removals')
    assert.equal(single.body.error, 'conflict')
    assert.equal(service.engine.state.revision, 2)
    const switched = [
      { op: 'patch', type: 'clusters', id: 'c003', patch: { deletion_protection: false } },
      ...(remove(['c003']) as Json[]),
    ]
    assertDone(await batch(service, switched), 3)
  })

  test('stay protected from ways back that would delete them', async () => {
    const service = await start(1)
    const body = {
      id: 'late',
      cluster_name: 'late',
      cluster_dns: 'late.k8s.example.com',
      environment: 'dev',
      deletion_protection: true,
    }
    await service.call('POST', '/clusters', { body })
    for (const [url, sent] of [
      ['/rollback', { to_revision: 1, confirm: ['removals'] }],
      ['/revisions/2/revert', { confirm: ['removals'] }],
    ] as const) {
      const refused = await service.call('POST', url, { body: sent as unknown as Json })
      assert.equal(refused.status, 409, refused.text)
      assert.match(refused.body.message, /"late" is protected/)
    }
    assert.equal(service.engine.state.revision, 2)
  })
})

describe('a confirmation', () => {
  test('lets a write pass, in the URL or in the body', async () => {
    for (const [more, query] of [
      [{}, '?confirm=removals'],
      [{ confirm: ['removals'] }, ''],
      [{ confirm: ['removals'] }, '?confirm=removals'],
    ] as const) {
      const service = await start(10)
      const answer = await batch(service, unassign(10), more as unknown as JsonObject, query)
      assertDone(answer, 2)
      assert.equal(answer.body.changes, 10)
      assert.equal(answer.body.impact.endpoints['platform-components'].removed, 10)
    }
  })

  test('of nothing confirms nothing', async () => {
    const service = await start(10)
    await assertStopped(service, await batch(service, unassign(10), { confirm: [] }), /10 of 10/)
  })

  test('that is not needed does no harm', async () => {
    const service = await start(10)
    assertDone(await batch(service, unassign(1), { confirm: ['removals'] }), 2)
    assertDone(await service.call('PATCH', '/clusters/c001?confirm=removals', { body: { node_count: 1 } }), 3)
  })

  test('is told beforehand by a preview, which is itself never stopped', async () => {
    const service = await start(10)
    for (const query of ['?dry_run=true', '?dry_run=true&confirm=removals']) {
      const { status, body } = await batch(service, unassign(10), {}, query)
      assert.equal(status, 200)
      assert.deepEqual(body.requires_confirmation, ['removals'])
      assert.match(body.warnings[0], /^needs confirm=removals: it takes inputs from 10 of 10 clusters/)
      assert.equal(body.change_count, 10)
    }
    const fine = await batch(service, unassign(4), {}, '?dry_run=true')
    assert.deepEqual(fine.body.requires_confirmation, [])
    assert.equal(service.engine.state.revision, 1)
  })

  test('has to be given for all reasons at once, and all of them are told', async () => {
    const service = await start(30, { platform_components: [{ id: 'a' }, { id: 'b' }, { id: 'c' }] })
    const operations = [
      { op: 'delete', type: 'clusters', selector: 'number<7' },
      { op: 'unassign', type: 'namespaces', id: 'team-a', selector: 'number<20' },
      { op: 'patch', type: 'clusters', id: 'c025', patch: { platform_components: [] } },
    ]
    const stopped = await batch(service, operations)
    await assertStopped(service, stopped, /takes inputs from 14 of 30 clusters/)
    assert.match(stopped.body.message, /empties c025 \(platform-components\)/)
    assert.match(stopped.body.message, /deletes 7 clusters: c000, c001, c002, c003, c004 and 2 more/)
    const shown = await batch(service, operations, {}, '?dry_run=true')
    assert.equal(shown.body.warnings.length, 3)
    assertDone(await batch(service, operations, { confirm: ['removals'] }), 2)
  })

  test('can ask for as many details as it likes', async () => {
    const service = await start(10)
    for (const [more, query, details] of [
      [{ impact_limit: 3 }, '', 3],
      [{}, '?impact_limit=0', 0],
      [{}, '', 10],
    ] as const) {
      const stopped = await batch(service, unassign(10), more, query)
      assert.equal(stopped.status, 409)
      assert.equal(stopped.body.impact.details.length, details)
      assert.equal(stopped.body.impact.clusters, 10)
    }
  })
})

describe('ways back are stopped just so', () => {
  async function grown(): Promise<TestService> {
    const service = await start(10)
    const operations = [{ op: 'assign', type: 'namespaces', ref: { id: 'team-b' }, selector: 'id' }]
    assertDone(await batch(service, operations), 2)
    return service
  }

  for (const [way, url, body] of [
    ['a rollback', '/rollback', { to_revision: 1 }],
    ['a rollback of some clusters', '/rollback', { to_revision: 1, selector: 'number<5' }],
    ['a revert', '/revisions/2/revert', {}],
  ] as readonly [string, string, JsonObject][]) {
    test(`${way} that takes a lot away`, async () => {
      const service = await grown()
      const stopped = await service.call('POST', url, { body })
      await assertStopped(service, stopped, /takes inputs from \d+ of 10 clusters/)
      assert.ok(stopped.body.impact.endpoints.namespaces.removed >= 5)
      assert.equal(service.engine.state.revision, 2)
      const shown = await service.call('POST', `${url}?dry_run=true`, { body })
      assert.deepEqual(shown.body.requires_confirmation, ['removals'])
      assertDone(await service.call('POST', `${url}?confirm=removals`, { body }), 3)
    })

    test(`${way}, confirmed in its body`, async () => {
      const service = await grown()
      assertDone(await service.call('POST', url, { body: { ...body, confirm: ['removals'] } }), 3)
    })
  }

  test('a rollback of a few clusters is not stopped', async () => {
    const service = await grown()
    assertDone(await service.call('POST', '/rollback', { body: { to_revision: 1, selector: 'number<4' } }), 3)
  })

  test('a rollback or revert that makes six new clusters go', async () => {
    const service = await start(1)
    const operations = names(6, 1).map((id) => ({
      op: 'create',
      type: 'clusters',
      document: { id, cluster_name: id, cluster_dns: `${id}.k8s.example.com`, environment: 'dev' },
    }))
    assertDone(await batch(service, operations), 2)
    const rollback = await service.call('POST', '/rollback', { body: { to_revision: 1 } })
    await assertStopped(service, rollback, /it deletes 6 clusters/)
    await assertStopped(service, await service.call('POST', '/revisions/2/revert'), /it deletes 6 clusters/)
    assertDone(await service.call('POST', '/revisions/2/revert?confirm=removals'), 3)
    assert.equal(service.engine.state.count('clusters'), 1)
  })

  test('a way back that gives something back is not', async () => {
    const service = await start(10)
    assertDone(await batch(service, unassign(10), { confirm: ['removals'] }), 2)
    assertDone(await service.call('POST', '/revisions/2/revert'), 3)
    assertDone(await batch(service, unassign(10), { confirm: ['removals'] }), 4)
    assertDone(await service.call('POST', '/rollback', { body: { to_revision: 3 } }), 5)
  })
})

describe('BRAKE_PERCENT', () => {
  async function run(t: TestContext, env: Record<string, string>): Promise<ServiceProcess> {
    const seed = join(temporaryFolder(t), 'seed.json')
    writeFileSync(seed, JSON.stringify(fleetOf(20)))
    const service = await spawnService({ API_MODE: 'crud', STORE_BACKEND: 'memory', SEED_FILE: seed, ...env })
    t.after(() => service.stop('SIGKILL'))
    return service
  }

  for (const [setting, allowed, stopped] of [
    ['0', 4, 5],
    ['27.5', 5, 6],
    ['100', 20, undefined],
  ] as const) {
    const what = stopped === undefined ? 'never stops' : `stops ${stopped} of 20 clusters and not ${allowed}`
    test(`${setting} ${what}`, async (t) => {
      const service = await run(t, { BRAKE_PERCENT: setting })
      if (stopped !== undefined) {
        const answer = await batch(service, unassign(stopped))
        await assertStopped(service, answer, new RegExp(`more than ${setting} %`))
      }
      assertDone(await batch(service, unassign(allowed)), 2)
      const all = await batch(service, [{ op: 'delete', type: 'clusters', selector: 'id' }])
      await assertStopped(service, all, /it deletes 20 clusters/)
    })
  }

  test('that is no number from 0 to 100 keeps the service from starting', async () => {
    const settings = ['-1', '101', '10%', 'ten']
    const results = await Promise.all(
      settings.map(async (BRAKE_PERCENT) => {
        const env = { AUTH_TOKEN: READ_TOKEN, CRUD_AUTH_TOKEN: WRITE_TOKEN, API_MODE: 'crud', BRAKE_PERCENT }
        return failToStart({ ...env, STORE_BACKEND: 'memory', LISTEN_ADDR: '127.0.0.1:0' })
      }),
    )
    for (const [i, { code, stderr }] of results.entries()) {
      assert.equal(code, 2, `${settings[i]}: ${stderr}`)
      assert.ok(stderr.includes(`BRAKE_PERCENT must be a number from 0 to 100, not "${settings[i]}"`), stderr)
    }
  })
})
