import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Json } from '../src/base/json.ts'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import { pruneLog } from '../src/transfer/verify-log.ts'
import { STORES, start } from './every-store.ts'
import {
  type Answer,
  type Call,
  READ_TOKEN,
  startService,
  type TestService,
  temporaryFolder,
} from './service.ts'

const REVISIONS = 41
const CLUSTERS = ['k0', 'k1', 'k2', 'k3']
const COMPONENTS = ['a', 'b', 'c']
const NAMESPACES = ['n0', 'n1']
const ENDPOINTS = ['platform-components', 'namespaces', 'rolebindings']

type Write = readonly [method: string, url: string, body?: Json]

async function run(service: TestService, ...writes: Write[]): Promise<void> {
  for (const [method, url, body] of writes) {
    const answer = await service.call(method, url, { body })
    assert.ok(answer.status < 300, `${method} ${url}: ${answer.text}`)
  }
}

/** Numbers that look random and are the same in every run (mulberry32). */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

/** A write of any kind, which the service may refuse. */
function writeAtRandom(below: (limit: number) => number): Write {
  const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T
  const k = pick(CLUSTERS)
  const c = pick(COMPONENTS)
  const n = pick(NAMESPACES)
  const tag = `v${below(5)}`
  const component = {
    id: c,
    component_path: `p/${tag}`,
    component_version: pick(['1', '2']),
    oci_url: 'oci://x',
    oci_tag: tag,
    depends_on: pick([[], [pick(COMPONENTS)]]),
  }
  const cluster = {
    id: k,
    cluster_name: k,
    cluster_dns: `${pick(CLUSTERS)}.example.com`,
    environment: pick(['dev', 'qa', 'prod']),
    labels: pick([{}, { region: 'eu' }]),
    platform_components: pick([[], [{ id: c }]]),
    namespaces: pick([[], [{ id: n }]]),
    rolebindings: pick([[], [{ id: 'r0' }]]),
  }
  const values = { [pick(['replicas', 'color'])]: pick([tag, tag, null]) }
  const often: readonly Write[] = [
    ['POST', '/platform_components', component],
    ['PATCH', `/platform_components/${c}`, { oci_tag: tag, depends_on: component.depends_on }],
    ['POST', '/namespaces', { id: n, labels: { team: tag } }],
    ['POST', '/clusters', cluster],
    ['POST', '/clusters', cluster],
    ['PATCH', `/clusters/${k}`, { environment: cluster.environment, node_count: below(9) }],
    ['POST', `/clusters/${k}/restore`],
    [
      'PUT',
      `/clusters/${k}/platform_components/${c}?confirm=removals`,
      pick([{}, { enabled: false }, { oci_tag: tag }]),
    ],
    ['PUT', `/clusters/${k}/namespaces/${n}`, pick([{}, { labels: { own: tag } }])],
    ['PATCH', `/clusters/${k}/patches/${c}`, values],
  ]
  const seldom: readonly Write[] = [
    ['DELETE', `/platform_components/${c}?cascade=true&confirm=removals`],
    ['PATCH', `/namespaces/${n}`, { labels: { team: tag }, annotations: { note: pick(['ä', 'b']) } }],
    ['DELETE', `/namespaces/${n}?cascade=true&confirm=removals`],
    ['PUT', '/rolebindings/r0', { role: pick(['view', 'edit']), subjects: [{ kind: 'User', name: tag }] }],
    ['PATCH', `/clusters/${k}`, { cluster_dns: cluster.cluster_dns, labels: { region: pick(['eu', null]) } }],
    ['DELETE', `/clusters/${k}`],
    ['DELETE', `/clusters/${k}?purge=true`],
    ['DELETE', `/clusters/${k}/platform_components/${c}?confirm=removals`],
    ['POST', '/rollback', { to_revision: 1 + below(REVISIONS), confirm: ['removals'] }],
    ['POST', `/revisions/${1 + below(REVISIONS)}/revert`, { confirm: ['removals'] }],
  ]
  return pick([...often, ...often, ...seldom])
}

/** Everything that can be read as of some time. */
const READS: readonly string[] = [
  ...['clusters', 'platform_components', 'namespaces', 'rolebindings'].map((type) => `/${type}`),
  '/clusters?environment=dev',
  '/clusters?cluster_dns=K1.Example.com.',
  '/clusters?limit=2&offset=1',
  '/clusters?limit=0',
  '/clusters?offset=3&environment=qa',
  '/clusters?selector=region%3Deu',
  '/clusters?selector=environment+in+(dev,qa),uses.platform_components&limit=1',
  '/platform_components?component_version=1',
  '/rolebindings?role=view',
  '/rolebindings/r0',
  ...NAMESPACES.map((id) => `/namespaces/${id}`),
  ...COMPONENTS.map((id) => `/platform_components/${id}`),
  ...CLUSTERS.flatMap((id) => [
    `/clusters/${id}`,
    ...ENDPOINTS.map((endpoint) => `/clusters/${id}/inputs/${endpoint}`),
    `/clusters/${id}/namespaces/n0`,
    `/clusters/${id}/rolebindings/r0`,
    ...COMPONENTS.slice(0, 2).flatMap((c) => [
      `/clusters/${id}/platform_components/${c}`,
      `/clusters/${id}/patches/${c}`,
    ]),
  ]),
]

function at(url: string, moment: number | string): string {
  return `${url}${url.includes('?') ? '&' : '?'}at=${moment}`
}

interface Served {
  readonly status: number
  readonly etag: string | undefined
  readonly total: string | string[] | undefined
  readonly text: string
}

function served({ status, headers, text }: Answer): Served {
  return { status, etag: headers.etag, total: headers['x-total-count'], text }
}

/** What was served at each revision, and when. */
interface Recorded {
  readonly time: string
  readonly reads: readonly Served[]
}

const FLEET = {
  platform_components: ['a', 'b'].map((id) => ({
    id,
    component_path: 'p',
    component_version: '1',
    oci_url: 'oci://x',
    oci_tag: 'v1',
  })),
  namespaces: [{ id: 'n0' }],
  rolebindings: [{ id: 'r0', role: 'view', subjects: [] }],
  clusters: ['k0', 'k1'].map((id) => ({
    id,
    cluster_name: id,
    cluster_dns: `${id}.example.com`,
    environment: 'dev',
    platform_components: [{ id: 'a' }, { id: 'b', enabled: false }],
    namespaces: [{ id: 'n0' }],
    patches: { a: { replicas: '1' } },
  })),
}

/** A clock that moves on by a minute with every revision. */
function minutes() {
  let minute = 0
  return {
    now: () => new Date(Date.UTC(2026, 0, 31, 12, minute)),
    tick: () => {
      minute++
    },
  }
}

/** Writes at random until there are enough revisions; answers what was served at each of them. */
async function live(service: TestService, clock: ReturnType<typeof minutes>): Promise<Recorded[]> {
  const recorded: Recorded[] = []
  const record = async (): Promise<void> => {
    const answers = await Promise.all(READS.map((url) => service.call('GET', url)))
    recorded[service.engine.state.revision] = { time: clock.now().toISOString(), reads: answers.map(served) }
  }
  const below = numbers(98)
  await record()
  while (service.engine.state.revision < REVISIONS) {
    const [method, url, body] = writeAtRandom(below)
    const { revision } = service.engine.state
    clock.tick()
    const answer = await service.call(method, url, { body })
    assert.ok(answer.status < 500, answer.text)
    if (service.engine.state.revision > revision) await record()
  }
  return recorded
}

/** Compares every so many revisions with what was served then. */
async function assertServes(service: TestService, recorded: readonly Recorded[], every = 1): Promise<void> {
  for (let revision = 1; revision < recorded.length; revision += every) {
    const answers = await Promise.all(READS.map((url) => service.call('GET', at(url, revision))))
    answers.forEach((answer, i) => {
      const url = at(READS[i] as string, revision)
      assert.deepEqual(served(answer), recorded[revision]?.reads[i], url)
      assert.equal(answer.headers['x-revision'], String(revision), url)
    })
  }
}

/** The same by the time of revisions. */
async function assertServesTimes(service: TestService, recorded: readonly Recorded[]): Promise<void> {
  for (const { time, reads } of recorded.filter((_, revision) => revision % 8 === 1)) {
    const answers = await Promise.all(READS.map((url) => service.call('GET', at(url, time))))
    assert.deepEqual(answers.map(served), reads, time)
  }
}

async function kindsOfChanges(service: TestService): Promise<string[]> {
  const { body } = await service.call('GET', '/revisions?limit=1000')
  const changes: { op: string; type: string }[] = body.flatMap(
    (revision: { changes: [] }) => revision.changes,
  )
  return [...new Set(changes.map(({ op, type }) => `${op} ${type}`))].toSorted()
}

test('what was served at any revision or time is served again, to the byte', async (t) => {
  const clock = minutes()
  const service = await start(t, { fleet: FLEET, now: clock.now })
  const recorded = await live(service, clock)
  assert.equal(recorded.length, REVISIONS + 1)
  const kinds = await kindsOfChanges(service)
  for (const [type, ...ops] of [
    ['clusters', 'create', 'update', 'delete', 'restore', 'purge'],
    ['platform_components', 'create', 'update', 'delete'],
    ['namespaces', 'create', 'update', 'delete'],
    ['rolebindings', 'update'],
  ] as const) {
    for (const op of ops) assert.ok(kinds.includes(`${op} ${type}`), `no ${op} of ${type} in ${kinds}`)
  }
  await assertServes(service, recorded)
  await assertServesTimes(service, recorded)
})

test('every process on one SQLite file serves the same past, whenever it was started', async (t) => {
  const path = join(temporaryFolder(t), 'fleet.db')
  const clock = minutes()
  const options = { fleet: FLEET, now: clock.now }
  const first = await startService({ store: openSqliteStore({ path, write: true }), ...options })
  const follower = await start(t, { store: openSqliteStore({ path, write: true }), ...options })
  const recorded = await live(first, clock)
  await assertServes(first, recorded)
  await assertServesTimes(first, recorded)
  await follower.engine.catchUp()
  await assertServes(follower, recorded, 3)
  await first.stop()
  const restarted = await start(t, { store: openSqliteStore({ path, mode: 'rw', write: false }), ...options })
  await assertServes(restarted, recorded, 3)
})

for (const [store, open] of Object.entries(STORES)) {
  test(`the past does not change while others write (${store})`, async (t) => {
    const service = await start(t, { store: await open(t), fleet: FLEET })
    const reads = READS.filter((url) => url.startsWith('/clusters')).slice(0, 12)
    const before = await Promise.all(reads.map((url) => service.call('GET', url)))
    let writing = true
    const writer = (async () => {
      for (let i = 0; i < 30; i++) {
        const id = `k${i % 3}`
        await service.call('PATCH', `/clusters/${id}`, { body: { environment: i % 2 ? 'dev' : 'qa' } })
        await service.call('DELETE', `/clusters/${id}?purge=true`)
        const body = { ...FLEET.clusters[0], id, cluster_dns: `${id}.example.com` } as Json
        await service.call('POST', '/clusters', { body })
      }
      writing = false
    })()
    for (let round = 0; writing || round < 3; round++) {
      const answers = await Promise.all(reads.map((url) => service.call('GET', at(url, 1))))
      assert.deepEqual(answers.map(served), before.map(served))
    }
    await writer
    assert.ok(service.engine.state.revision > 60)
  })
}

test('a time is the newest revision of that time, however it is written', async (t) => {
  let now = '2026-01-31T12:00:00Z'
  const service = await start(t, { now: () => new Date(now) })
  for (const minute of ['10', '20', '20', '30']) {
    now = `2026-01-31T12:${minute}:00Z`
    await run(service, ['PATCH', '/clusters/one', { node_count: service.engine.state.revision }])
  }
  now = '2026-01-31T13:00:00Z'
  for (const [moment, revision] of [
    ['2026-01-31T12:00:00Z', 1],
    ['2026-01-31T12:09:59.999Z', 1],
    ['2026-01-31T12:10:00Z', 2],
    ['2026-01-31T12:10:00.000Z', 2],
    ['2026-01-31t12:10:00z', 2],
    ['2026-01-31T12:19:59Z', 2],
    ['2026-01-31T12:20:00Z', 4],
    ['2026-01-31T14:20:00%2B02:00', 4],
    ['2026-01-31T14:20:00+02:00', 4],
    ['2026-01-31T17:59:59+05:30', 4],
    ['2026-01-31T18:00:00+05:30', 5],
    ['2026-01-31T07:30:00-05:00', 5],
    ['2026-01-31T12:30:00.5-00:00', 5],
    ['2026-01-31T13:00:00Z', 5],
    ['2026-01-31T14:00:00+01:00', 5],
  ] as const) {
    const answer = await service.call('GET', at('/clusters/one', moment))
    assert.equal(answer.status, 200, `${moment}: ${answer.text}`)
    assert.equal(answer.headers['x-revision'], String(revision), moment)
    assert.equal(answer.headers.etag, `"${revision}"`, moment)
    assert.equal(answer.body.node_count, revision === 1 ? undefined : revision - 1, moment)
    const list = await service.call('GET', at('/clusters?environment=dev', moment))
    assert.deepEqual(list.body, [answer.body])
    assert.equal(list.headers['x-revision'], String(revision))
    const inputs = await service.call('GET', at('/clusters/one/inputs/namespaces', moment))
    assert.equal(inputs.headers['x-revision'], String(revision))
  }
  for (const moment of ['2026-01-31T11:59:59.999Z', '2026-01-31T12:00:00+00:01', '1999-12-31T23:59:59Z']) {
    const list = await service.call('GET', at('/clusters', moment))
    assert.deepEqual(list.body, [])
    assert.equal(list.headers['x-revision'], '0')
  }
})

test('before the first revision there is nothing', async (t) => {
  const service = await start(t)
  for (const { name } of service.types.all) {
    const list = await service.call('GET', `/${name}?at=0`)
    assert.equal(list.status, 200)
    assert.deepEqual(list.body, [])
    assert.equal(list.headers['x-total-count'], '0')
    assert.equal(list.headers['x-revision'], '0')
  }
  for (const url of [
    '/clusters/one',
    '/namespaces/team-a',
    '/clusters/one/platform_components/a',
    '/clusters/one/patches/a',
    '/clusters/one/inputs/namespaces',
  ]) {
    const answer = await service.call('GET', at(url, 0))
    assert.equal(answer.status, 404, url)
    assert.equal(answer.body.error, 'not_found')
    assert.equal(answer.headers['x-revision'], '0')
  }
})

const TIMED = [
  '/clusters',
  '/clusters/one',
  '/clusters/one/platform_components/a',
  '/clusters/one/patches/a',
  '/clusters/one/inputs/platform-components',
]

test('what is still to come cannot be read', async (t) => {
  const service = await start(t, { now: () => new Date('2026-01-31T12:00:00Z') })
  for (const url of TIMED) {
    for (const [moment, told] of [
      ['2', /still to come: the newest is 1/],
      ['999999999999999', /still to come/],
      ['2026-01-31T12:00:00.001Z', /future/],
      ['2026-01-31T12:00:00-00:01', /future/],
      ['9999-12-31T23:59:59Z', /future/],
    ] as const) {
      const answer = await service.call('GET', at(url, moment))
      assert.equal(answer.status, 400, answer.text)
      assert.equal(answer.body.error, 'validation_error')
      assert.match(answer.body.message, told)
      assert.equal(answer.body.details[0].path, '?at')
      assert.equal(answer.headers['x-revision'], '1')
    }
  }
})

test('what is neither a revision nor a time is refused', async (t) => {
  const service = await start(t)
  for (const url of TIMED) {
    for (const moment of [
      '',
      'now',
      '-1',
      '1.0',
      '1e0',
      '0x1',
      '9999999999999999',
      '%2B1',
      '2026-01-31',
      '2026-01-31T12:00:00',
      '2026-01-31%2012:00:00Z',
      '2026-13-31T12:00:00Z',
      '2026-01-31T25:00:00Z',
      '2026-01-31T12:00Z',
      '26-01-31T12:00:00Z',
      '1&at=1',
    ]) {
      const answer = await service.call('GET', at(url, moment))
      assert.equal(answer.status, 400, `${at(url, moment)}: ${answer.text}`)
      assert.equal(answer.body.details[0].path, '?at')
    }
  }
})

test('polls serve what is, whatever time they ask for', async (t) => {
  const service = await start(t)
  await run(
    service,
    ['PATCH', '/clusters/one', { environment: 'prod' }],
    ['DELETE', '/clusters/two'],
    ['PATCH', '/namespaces/team-a', { labels: { team: 'b' } }],
  )
  const base = '/api/v2/flux/clusters'
  for (const url of [
    base,
    `${base}?environment=prod`,
    ...ENDPOINTS.map((e) => `${base}/one.k8s.example.com/${e}`),
  ]) {
    const now = await service.call('GET', url, { token: READ_TOKEN })
    for (const moment of ['1', '0', '999', 'rubbish', '2001-01-01T00:00:00Z']) {
      const asked = await service.call('GET', at(url, moment), { token: READ_TOKEN })
      assert.deepEqual(served(asked), served(now), at(url, moment))
      assert.equal(asked.headers['x-revision'], '4')
    }
  }
})

test('only reads of documents and inputs go back in time', async (t) => {
  const service = await start(t)
  for (const [method, url, body] of [
    ['POST', '/namespaces?at=1', { id: 'new' }],
    ['PUT', '/namespaces/team-a?at=1', {}],
    ['PATCH', '/namespaces/team-a?at=1', {}],
    ['DELETE', '/namespaces/team-b?at=1', undefined],
    ['PUT', '/clusters/one/platform_components/c?at=1', {}],
    ['POST', '/batch?at=1', { operations: [] }],
    ['GET', '/revisions?at=1', undefined],
    ['GET', '/revisions/1?at=1', undefined],
    ['GET', '/clusters/one/history?at=1', undefined],
  ] as const) {
    const answer = await service.call(method, url, { body })
    assert.equal(answer.status, 400, `${method} ${url}`)
    assert.equal(answer.body.details[0].path, '?at')
  }
  assert.equal(service.engine.state.revision, 1)
})

test('the read token reads the past, and no token reads nothing', async (t) => {
  const service = await start(t)
  for (const url of TIMED) {
    assert.equal((await service.call('GET', at(url, 1), { token: READ_TOKEN })).status, 200)
    assert.equal((await service.call('GET', at(url, 1), { token: null })).status, 401)
  }
})

test('a page of the past links to the others, and counts what there was', async (t) => {
  const service = await start(t)
  const ids = Array.from({ length: 7 }, (_, i) => `n${i}`)
  const operations = ids.map((id) => ({ op: 'create', type: 'namespaces', document: { id } }))
  await run(service, ['POST', '/batch', { operations }])
  const past = service.engine.state.revision
  await run(service, ...ids.slice(0, 4).map((id): Write => ['DELETE', `/namespaces/${id}`]), [
    'POST',
    '/namespaces',
    { id: 'aaa' },
  ])
  const found: string[] = []
  let url: string | undefined = `/namespaces?limit=4&at=${past}`
  for (let pages = 0; url !== undefined; pages++) {
    assert.ok(pages < 5)
    const page: Answer = await service.call('GET', url)
    assert.equal(page.headers['x-total-count'], '9')
    assert.equal(page.headers['x-revision'], String(past))
    found.push(...page.body.map(({ id }: { id: string }) => id))
    url = /<([^>]+)>; rel="next"/.exec(String(page.headers.link))?.[1]
    if (url) assert.match(url, new RegExp(`at=${past}`))
  }
  assert.deepEqual(found, [...ids, 'team-a', 'team-b'])
  const now = await service.call('GET', '/namespaces')
  assert.equal(now.headers['x-total-count'], '6')
  assert.equal(now.headers['x-revision'], String(service.engine.state.revision))
})

test('a time in a link of a page is written so that it can be followed', async (t) => {
  const service = await start(t, { now: () => new Date('2026-01-31T12:00:00Z') })
  const first = await service.call('GET', '/platform_components?limit=1&at=2026-01-31T14:00:00+02:00')
  assert.equal(first.status, 200)
  const next = /<([^>]+)>; rel="next"/.exec(String(first.headers.link))?.[1] as string
  const second = await service.call('GET', next)
  assert.equal(second.status, 200, second.text)
  assert.equal(second.body[0].id, 'b')
})

test('what has not changed since it was read is not sent again, of any time', async (t) => {
  const service = await start(t)
  await run(
    service,
    ['PATCH', '/clusters/one', { node_count: 1 }],
    ['PATCH', '/clusters/two', { node_count: 1 }],
  )
  const ask = (url: string, etag: string) => service.call('GET', url, { headers: { 'if-none-match': etag } })
  assert.equal((await ask('/clusters/one?at=1', '"1"')).status, 304)
  assert.equal((await ask('/clusters/one?at=2', '"1"')).status, 200)
  assert.equal((await ask('/clusters/one?at=3', '"2"')).status, 304)
  const url = '/clusters/one/inputs/platform-components'
  const { etag } = (await service.call('GET', url)).headers
  await run(service, ['DELETE', '/clusters/one/platform_components/a'])
  assert.equal((await ask(`${url}?at=3`, String(etag))).status, 304)
  assert.equal((await ask(`${url}?at=4`, String(etag))).status, 200)
})

test('large inputs of the past are compressed like those of now', async (t) => {
  const service = await start(t)
  await run(service, ['PUT', '/clusters/one/patches/a', { text: 'ä'.repeat(15_000) }])
  const url = '/clusters/one/inputs/platform-components'
  const options: Call = { headers: { 'accept-encoding': 'gzip' } }
  const then = await service.call('GET', url, options)
  assert.equal(then.headers['content-encoding'], 'gzip')
  await run(service, ['DELETE', '/clusters/one'])
  const again = await service.call('GET', at(url, 2), options)
  assert.deepEqual(again.bytes, then.bytes)
  assert.equal(again.headers.etag, then.headers.etag)
})

test('a deleted cluster is not there in the past either, and is before and after', async (t) => {
  const service = await start(t)
  await run(service, ['DELETE', '/clusters/one'], ['POST', '/clusters/one/restore'])
  await run(service, ['DELETE', '/clusters/one?purge=true'])
  const url = '/clusters/one/inputs/platform-components'
  for (const path of [
    '/clusters/one',
    url,
    '/clusters/one/platform_components/a',
    '/clusters/one/patches/a',
  ]) {
    const statuses = await Promise.all([0, 1, 2, 3, 4].map((n) => service.call('GET', at(path, n))))
    assert.deepEqual(
      statuses.map(({ status }) => status),
      [404, 200, 404, 200, 404],
      path,
    )
  }
  const lists = await Promise.all([1, 2, 3, 4].map((n) => service.call('GET', at('/clusters', n))))
  assert.deepEqual(
    lists.map(({ headers }) => headers['x-total-count']),
    ['2', '1', '2', '1'],
  )
  assert.equal((await service.call('GET', '/clusters/one?at=3')).headers.etag, '"3"')
})

for (const [store, open] of Object.entries(STORES)) {
  test(`what lies before the beginning of a pruned log is gone, and what comes after is there (${store})`, async (t) => {
    let now = '2026-01-31T12:01:00Z'
    const pruned = await open(t)
    const service = await start(t, { store: pruned, now: () => new Date(now) })
    for (let i = 2; i <= 6; i++) {
      now = `2026-01-31T12:0${i}:00Z`
      await run(service, ['PATCH', '/clusters/one', { node_count: i }])
    }
    const result = await pruneLog(pruned, '2026-01-31T12:04:00Z')
    assert.ok(result.ok)
    assert.equal(result.pruned.anchor?.revision, 3)
    for (const n of [3, 4, 5, 6]) {
      assert.equal((await service.call('GET', at('/clusters/one', n))).body.node_count, n)
      const [first] = (await service.call('GET', at('/clusters', n))).body
      assert.equal(first.node_count, n)
      const moment = `2026-01-31T12:0${n}:30Z`
      if (n < 6) assert.equal((await service.call('GET', at('/clusters/one', moment))).body.node_count, n)
    }
    const gone: Write[] = [
      ...TIMED.flatMap((url): Write[] => [
        ['GET', at(url, 2)],
        ['GET', at(url, 0)],
        ['GET', at(url, '2026-01-31T12:02:59Z')],
      ]),
      ['GET', '/revisions/2'],
      ['POST', '/revisions/2/revert'],
      ['POST', '/revisions/3/revert'],
      ['POST', '/rollback', { to_revision: 2 }],
      ['POST', '/rollback', { to_time: '2026-01-31T12:02:30Z' }],
    ]
    for (const [method, url, body] of gone) {
      const answer = await service.call(method, url, { body })
      assert.equal(answer.status, 410, `${method} ${url}: ${answer.text}`)
      assert.equal(answer.body.error, 'gone')
      assert.match(answer.body.message, /kept from revision 3 \(2026-01-31T12:03:00\.000Z\) on/)
    }
    assert.equal(service.engine.state.revision, 6)
    const rolled = await service.call('POST', '/rollback', { body: { to_revision: 3 } })
    assert.equal(rolled.status, 200, rolled.text)
    assert.equal((await service.call('GET', '/clusters/one')).body.node_count, 3)
    assert.equal((await service.call('POST', '/revisions/7/revert')).status, 200)
    assert.equal((await service.call('GET', '/clusters/one')).body.node_count, 6)
    assert.equal((await service.call('GET', '/revisions/verify')).body.verified, true)
  })
}
