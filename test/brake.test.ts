import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../src/base/json.ts'
import {
  type Answer,
  builtInTypes,
  failToStart,
  READ_TOKEN,
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
  assert.match(answer.body.message, /^this has to be confirmed: /)
  assert.match(answer.body.message, says)
  assert.match(answer.body.message, /send it again with \?confirm=removals$/)
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

/** Stopped without a confirmation, and foretold by a preview; passes with one. */
async function assertHeld(
  service: TestService,
  [method, url, body]: readonly [string, string, Json?],
  says: RegExp,
): Promise<void> {
  const { revision } = service.engine.state
  const sent = body === undefined ? {} : { body }
  const having = (flag: string) => service.call(method, `${url}${url.includes('?') ? '&' : '?'}${flag}`, sent)
  await assertStopped(service, await service.call(method, url, sent), says)
  const shown = await having('dry_run=true')
  assert.equal(shown.status, 200, shown.text)
  assert.deepEqual(shown.body.requires_confirmation, ['removals'])
  assert.match(shown.body.warnings.join('\n'), says)
  assert.match(shown.body.warnings[0], /^needs confirm=removals: it /)
  assert.equal(service.engine.state.revision, revision)
  assertDone(await having('confirm=removals'), revision + 1)
}

describe('a write has to be confirmed that takes inputs', () => {
  const off = (selector: string): Json => [
    { op: 'assign', type: 'platform_components', ref: { id: 'a', enabled: false }, merge: true, selector },
  ]

  for (const [what, operations, says] of [
    [
      'from many of all clusters',
      unassign(11),
      /takes inputs from 11 of 100 clusters \(11\.0 %, more than 10 %\)/,
    ],
    [
      'from many clusters of one environment',
      [{ op: 'unassign', type: 'platform_components', id: 'a', selector: 'environment=prod,number<28' }],
      /takes inputs from 14 of 50 clusters of environment prod \(28\.0 %, more than 25 %\)/,
    ],
    [
      'from many of the clusters that have one of them',
      unassign(5, 'c'),
      /takes c \(platform-components\) from 5 of 10 clusters that have it \(50\.0 %, more than 25 %\)/,
    ],
    ['by switching them off', off('number<11'), /takes inputs from 11 of 100 clusters/],
    [
      'by deleting clusters',
      [{ op: 'delete', type: 'clusters', clusters: names(5) }],
      /takes c \(platform-components\) from 5 of 10 clusters that have it/,
    ],
    [
      'by deleting more than five clusters',
      [{ op: 'delete', type: 'clusters', selector: 'number>93' }],
      /it deletes 6 clusters: c094, c095, c096, c097, c098 and 1 more/,
    ],
  ] as const) {
    test(what, async () => {
      const fleet = fleetOf(100)
      for (const one of fleet.clusters.slice(0, 10)) one.platform_components.push({ id: 'c' })
      const service = await startService({ types, fleet })
      await assertHeld(service, ['POST', '/batch', { operations } as unknown as Json], says)
    })
  }

  test('everywhere by deleting their definition', async () => {
    const service = await start(20)
    await assertHeld(
      service,
      ['DELETE', '/platform_components/a?cascade=true'],
      /takes a \(platform-components\) from 20 of 20 clusters that have it/,
    )
    assertDone(await service.call('DELETE', '/namespaces/team-b?cascade=true'), 3)
  })

  test('and is told all reasons at once', async () => {
    const service = await start(30)
    const operations = [
      { op: 'delete', type: 'clusters', selector: 'number<7' },
      { op: 'unassign', type: 'platform_components', id: 'a', selector: 'number<20' },
      { op: 'patch', type: 'clusters', id: 'c025', patch: { platform_components: [] } },
    ]
    const stopped = await batch(service, operations)
    await assertStopped(service, stopped, /takes inputs from 14 of 30 clusters/)
    assert.match(stopped.body.message, /10 of 15 clusters of environment dev/)
    assert.match(stopped.body.message, /a \(platform-components\) from 21 of 30 clusters that have it/)
    assert.match(stopped.body.message, /empties c025 \(platform-components\)/)
    assert.match(stopped.body.message, /deletes 7 clusters: c000, c001, c002, c003, c004 and 2 more/)
    assert.equal(stopped.body.impact.endpoints['platform-components'].removed, 7 * 2 + 13 + 2)
    const { warnings } = (await batch(service, operations, {}, '?dry_run=true')).body
    assert.equal(warnings.filter((each: string) => each.startsWith('needs confirm=removals: ')).length, 5)
  })

  test('but not one that takes them from few, gives them, or changes them', async () => {
    const service = await start(100)
    assertDone(await batch(service, unassign(10)), 2)
    assertDone(
      await batch(service, [
        { op: 'assign', type: 'platform_components', ref: { id: 'c' }, selector: 'id' },
        { op: 'patch_values', component: 'b', values: { x: '1' }, selector: 'id' },
        { op: 'patch', type: 'platform_components', id: 'b', patch: { oci_tag: 'v9' } },
        { op: 'delete', type: 'clusters', clusters: names(5) },
      ]),
      3,
    )
  })
})

describe('a write that leaves a live cluster nothing of a type has to be confirmed', () => {
  const EMPTIES =
    /it empties c000 \((platform-components|namespaces)\): Flux deletes there all that came from it/
  const one = '/clusters/c000'

  for (const [way, request] of [
    ['a patch', ['PATCH', one, { namespaces: [] }]],
    ['a patch that switches all off', ['PATCH', one, { platform_components: [{ id: 'a', enabled: false }] }]],
    ['taking the last one away', ['DELETE', `${one}/namespaces/team-a`]],
    ['deleting the last definition', ['DELETE', '/namespaces/team-a?cascade=true']],
    [
      'a batch',
      [
        'POST',
        '/batch',
        { operations: [{ op: 'unassign', type: 'namespaces', id: 'team-a', clusters: ['c000'] }] },
      ],
    ],
    [
      'deleting the cluster and making it anew',
      [
        'POST',
        '/batch',
        {
          operations: [
            { op: 'delete', type: 'clusters', id: 'c000' },
            { op: 'create', type: 'clusters', document: { ...fleetOf(1).clusters[0], namespaces: [] } },
          ],
        },
      ],
    ],
  ] as const) {
    test(way, async () => {
      await assertHeld(await start(1), request as unknown as [string, string, Json?], EMPTIES)
    })
  }

  test('a replacement, after which polls get an empty list', async () => {
    const service = await start(1)
    const { body } = await service.call('GET', one)
    await assertHeld(service, ['PUT', one, { ...body, namespaces: [] }], EMPTIES)
    const polled = await service.call('GET', `${POLLS}/c000.k8s.example.com/namespaces`)
    assert.equal(polled.text, '{"inputs":[]}')
  })

  test('the last of several that are taken one by one', async () => {
    const service = await start(1)
    const off = { body: { enabled: false } }
    assertDone(await service.call('PATCH', `${one}/platform_components/a`, off), 2)
    await assertHeld(service, ['PATCH', `${one}/platform_components/b`, off.body], EMPTIES)
    assertDone(await service.call('DELETE', `${one}/platform_components/a`), 4)
    await assertHeld(service, ['DELETE', `${one}/platform_components/b`], EMPTIES)
  })

  for (const [way, url, body] of [
    ['the revert of the first assignment', '/revisions/2/revert', {}],
    ['a rollback behind the first assignment', '/rollback', { to_revision: 1 }],
  ] as const) {
    test(way, async () => {
      const service = await start(1, { namespaces: [] })
      assertDone(await service.call('PUT', `${one}/namespaces/team-a`, { body: {} }), 2)
      await assertHeld(service, ['POST', url, body], EMPTIES)
    })
  }

  test('but not one after which the cluster is gone', async () => {
    const service = await start(2)
    assertDone(await service.call('DELETE', one), 2)
    assertDone(await service.call('DELETE', '/clusters/c001?purge=true'), 3)
  })
})

describe('protected clusters', () => {
  const remove = (ids: readonly string[], more: JsonObject = {}): Json => [
    { op: 'delete', type: 'clusters', clusters: ids, ...more },
  ]

  test('are never deleted, whatever is confirmed', async () => {
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

  test('are not deleted by ways back either', async () => {
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

  test('a way back that gives something back is not', async () => {
    const service = await start(10)
    assertDone(await batch(service, unassign(10), { confirm: ['removals'] }), 2)
    assertDone(await service.call('POST', '/revisions/2/revert'), 3)
    assertDone(await batch(service, unassign(10), { confirm: ['removals'] }), 4)
    assertDone(await service.call('POST', '/rollback', { body: { to_revision: 3 } }), 5)
  })
})

describe('BRAKE_PERCENT and BRAKE_GROUP_PERCENT', () => {
  for (const [fleet, group, allowed, says] of [
    ['27.5', '100', 5, /6 of 20 clusters \(30\.0 %, more than 27\.5 %\)/],
    [
      '100',
      '27.5',
      5,
      /a \(platform-components\) from 6 of 20 clusters that have it \(30\.0 %, more than 27\.5 %\)/,
    ],
    ['100', '100', 20, undefined],
  ] as const) {
    test(`of ${fleet} and ${group} let ${allowed} of 20 clusters lose an input`, async (t) => {
      const seed = join(temporaryFolder(t), 'seed.json')
      writeFileSync(seed, JSON.stringify(fleetOf(20)))
      const service = await spawnService({
        API_MODE: 'crud',
        STORE_BACKEND: 'memory',
        SEED_FILE: seed,
        BRAKE_PERCENT: fleet,
        BRAKE_GROUP_PERCENT: group,
      })
      t.after(() => service.stop('SIGKILL'))
      if (says) await assertStopped(service, await batch(service, unassign(allowed + 1)), says)
      assertDone(await batch(service, unassign(allowed)), 2)
      const all = await batch(service, [{ op: 'delete', type: 'clusters', selector: 'id' }])
      await assertStopped(service, all, /it deletes 20 clusters/)
    })
  }

  test('that are no numbers from 0 to 100 keep the service from starting', async () => {
    const settings = { BRAKE_PERCENT: '10%', BRAKE_GROUP_PERCENT: '101' }
    const env = { AUTH_TOKEN: READ_TOKEN, CRUD_AUTH_TOKEN: WRITE_TOKEN, API_MODE: 'crud', ...settings }
    const { code, stderr } = await failToStart({
      ...env,
      STORE_BACKEND: 'memory',
      LISTEN_ADDR: '127.0.0.1:0',
    })
    assert.equal(code, 2, stderr)
    for (const [name, value] of Object.entries(settings))
      assert.ok(stderr.includes(`${name} must be a number from 0 to 100, not "${value}"`), stderr)
  })
})
