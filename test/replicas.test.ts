// Several processes on one PostgreSQL database: whichever of them is asked, there is one fleet.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { openPostgresStore } from '../src/store/postgres/postgres.ts'
import type { Store } from '../src/store/store.ts'
import {
  checkServed,
  checkVerified,
  ENDPOINTS,
  pollUrl,
  Replay,
  revisionOf,
  startReplicas,
} from './faults/fleet-load.ts'
import { temporaryPostgres } from './postgres-server.ts'
import { type Answer, type ServiceProcess, waitFor } from './service.ts'

const SEED_FILE = join(import.meta.dirname, '../data/seed.json')
const DEMO = 'demo-cluster-01'
const DEMO_DNS = 'demo-cluster-01.k8s.example.com'

let database: string
/** Two that take writes, and one that does not. */
let one: ServiceProcess
let two: ServiceProcess
let reader: ServiceProcess
const cleanUps: (() => unknown)[] = []

before(async () => {
  const context = { after: (clean: () => unknown) => void cleanUps.unshift(clean) }
  database = await temporaryPostgres(context)
  const crud = { DATABASE_URL: database, SEED_FILE, API_MODE: 'crud' }
  const started = await startReplicas(context, crud, crud, { ...crud, API_MODE: 'read-only' })
  ;[one, two, reader] = started as [ServiceProcess, ServiceProcess, ServiceProcess]
})
after(async () => {
  for (const clean of cleanUps) await clean()
})

function isReplayed({ headers }: Answer): boolean {
  return headers['idempotent-replayed'] === 'true'
}

async function headOf(service: ServiceProcess): Promise<number> {
  return (await service.call('GET', '/ready')).body.revision
}

function cluster(id: string, dns: string) {
  return { id, cluster_name: id, cluster_dns: dns, environment: 'dev' }
}

test('replicas that start together on an empty database fill it once', async () => {
  for (const replica of [one, two]) {
    const { body } = await replica.call('GET', '/revisions')
    const made = body.map(({ revision, actor }: { revision: number; actor: string }) => [revision, actor])
    assert.deepEqual(made, [[1, 'seed']])
  }
  for (const endpoint of ENDPOINTS) {
    const polls = await Promise.all(
      [one, two, reader].map((replica) => replica.call('GET', pollUrl(DEMO_DNS, endpoint))),
    )
    for (const { status, text, headers } of polls) {
      assert.equal(status, 200)
      assert.equal(headers['x-revision'], '1')
      assert.equal(text, polls[0]?.text)
    }
  }
})

test('a write through either replica is seen by all of them from its revision on', async () => {
  for (let i = 0; i < 6; i++) {
    const writer = i % 2 === 0 ? one : two
    const replicaCount = `r${i}`
    const written = await writer.call('PATCH', `/clusters/${DEMO}/patches/podinfo`, {
      body: { replicaCount },
    })
    assert.equal(written.status, 200, written.text)
    const revision = revisionOf(written)
    for (const replica of [one, two, reader]) {
      const url = `${pollUrl(DEMO_DNS, 'platform-components')}?min_revision=${revision}`
      const { status, headers, body } = await replica.call('GET', url)
      assert.equal(status, 200)
      assert.equal(headers['x-revision'], String(revision))
      const podinfo = body.inputs.find(({ id }: { id: string }) => id === 'podinfo')
      assert.equal(podinfo.patches.replicaCount, replicaCount)
    }
    for (const replica of [one, two]) {
      const read = await replica.call('GET', `/clusters/${DEMO}?min_revision=${revision}`)
      assert.equal(read.body.patches.podinfo.replicaCount, replicaCount)
      assert.equal(read.headers.etag, `"${revision}"`)
    }
  }
})

test('of patches through both at once of different fields of one cluster none is lost', async () => {
  const base = await headOf(one)
  const names = Array.from({ length: 60 }, (_, i) => `field-${i}`)
  const answers = await Promise.all(
    names.map((name, i) =>
      (i % 2 === 0 ? one : two).call('PATCH', `/clusters/${DEMO}`, { body: { labels: { [name]: 'yes' } } }),
    ),
  )
  answers.forEach(({ status, text, body }, i) => {
    assert.equal(status, 200, text)
    assert.equal(body.labels[names[i] as string], 'yes', 'an answer shows its own patch')
  })
  const revisions = answers.map(revisionOf).sort((a, b) => a - b)
  assert.deepEqual(
    revisions,
    names.map((_, i) => base + 1 + i),
    'every patch has a revision of its own',
  )
  for (const replica of [one, two]) {
    const { body } = await replica.call('GET', `/clusters/${DEMO}?min_revision=${revisions.at(-1)}`)
    const { region, ...labels } = body.labels
    assert.equal(region, 'eu')
    assert.deepEqual(labels, Object.fromEntries(names.map((name) => [name, 'yes'])))
  }
})

test('clients of both that read, change and write with If-Match until they win count without a loss', async () => {
  const [clients, increments] = [6, 5]
  let refused = 0
  async function increment(replica: ServiceProcess): Promise<number> {
    for (let tries = 0; tries < 1000; tries++) {
      const { body, headers } = await replica.call('GET', '/clusters/dev-us-01')
      const count = String(Number(body.labels.count ?? 0) + 1)
      const answer = await replica.call('PATCH', '/clusters/dev-us-01', {
        body: { labels: { count } },
        headers: { 'if-match': String(headers.etag) },
      })
      if (answer.status === 200) return revisionOf(answer)
      assert.equal(answer.status, 412, answer.text)
      refused++
    }
    return assert.fail('others were faster every time')
  }
  const counted = await Promise.all(
    Array.from({ length: clients }, async (_, i) => {
      let last = 0
      for (let n = 0; n < increments; n++) last = await increment(i % 2 === 0 ? one : two)
      return last
    }),
  )
  assert.ok(refused > 0, 'they were in each other’s way')
  for (const replica of [one, two]) {
    const { body } = await replica.call('GET', `/clusters/dev-us-01?min_revision=${Math.max(...counted)}`)
    assert.equal(body.labels.count, String(clients * increments))
  }
})

test('of two creations through both at once with one DNS name exactly one wins', async () => {
  for (let i = 0; i < 15; i++) {
    const dns = `wanted-${i}.k8s.example.com`
    const ids = [`left-${i}`, `right-${i}`]
    const answers = await Promise.all(
      ids.map((id, n) =>
        (n === 0 ? one : two).call('POST', '/clusters', {
          body: cluster(id, n === 0 ? dns : dns.toUpperCase()),
        }),
      ),
    )
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409])
    const winner = answers.findIndex(({ status }) => status === 201)
    const revision = revisionOf(answers[winner] as Answer)
    for (const replica of [one, two]) {
      const found = await Promise.all(
        ids.map((id) => replica.call('GET', `/clusters/${id}?min_revision=${revision}`)),
      )
      assert.equal(found[winner]?.status, 200)
      assert.equal(found[1 - winner]?.status, 404)
    }
  }
})

test('writes with one key through both at once are done once and answered the same', async () => {
  const base = await headOf(one)
  const rounds = 20
  for (let i = 0; i < rounds; i++) {
    const [method, url, body] =
      i % 2 === 0
        ? ['POST', '/namespaces', { id: `once-${i}` }]
        : ['PATCH', '/clusters/dev-us-01', { labels: { once: String(i) } }]
    const send = (replica: ServiceProcess): Promise<Answer> =>
      replica.call(String(method), String(url), {
        body: body as { id: string },
        headers: { 'idempotency-key': `key-${i}` },
      })
    const answers = await Promise.all([send(one), send(two), send(one), send(two)])
    const [first] = answers
    for (const answer of answers) {
      assert.ok(answer.status < 300, answer.text)
      assert.equal(answer.status, first?.status)
      assert.equal(answer.text, first?.text)
      assert.equal(answer.headers.etag, first?.headers.etag)
      assert.equal(revisionOf(answer), base + 1 + i)
    }
    assert.equal(answers.filter(isReplayed).length, 3, 'one of them did it')
  }
})

test('so are writes with one key that may find nothing to change', async () => {
  const path = '/clusters/dev-us-01'
  for (let i = 0; i < 60; i++) {
    const label = (x: string) => ({ body: { labels: { x } } })
    const before = await one.call('PATCH', path, label('wanted'))
    assert.equal(before.status, 200, before.text)
    const keyed = { ...label('wanted'), headers: { 'idempotency-key': `wanted-${i}` } }
    const [first, second, other] = await Promise.all([
      one.call('PATCH', path, keyed),
      two.call('PATCH', path, keyed),
      (i % 2 === 0 ? one : two).call('PATCH', path, label('other')),
    ])
    const third = await two.call('PATCH', path, keyed)
    assert.equal(other.status, 200, other.text)
    for (const answer of [second, third]) {
      assert.equal(answer.status, 200, answer.text)
      assert.equal(answer.text, first.text)
      assert.equal(revisionOf(answer), revisionOf(first))
      assert.equal(answer.headers['x-change-count'], first.headers['x-change-count'])
    }
  }
})

test('a write is not done any more once another replica has kept an answer under its key', async (t) => {
  const url = await temporaryPostgres(t)
  const [slow, fast] = [1, 2].map(() => openPostgresStore({ url, write: true })) as [Store, Store]
  t.after(() => Promise.all([slow.close(), fast.close()]))
  assert.equal((await fast.head()).revision, 0)
  const time = new Date().toISOString()
  const kept = { key: 'k', fingerprint: 'f', time, answer: 'nothing to do' }
  const meta = { time, actor: 'a', message: null, request_id: 'r', client_address: null, operation: 'o' }
  const changes = [{ type: 'namespaces', id: 'n', after: { json: '{"id":"n"}', deleted: false } }]
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  let committing: ReturnType<Store['commit']> | undefined
  try {
    await holder.query('BEGIN')
    await holder.query('SELECT 1 FROM flux_resourceset.head FOR UPDATE')
    committing = slow.commit(0, { ...meta, changes, idempotency: { ...kept, answer: 'done' } })
    await waitFor('the commit waits', async () => {
      const waiting =
        'SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND datname = $1'
      return (await holder.query(waiting, [new URL(url).pathname.slice(1)])).rows.length > 0
    })
    await fast.idempotency.save(kept)
  } finally {
    await holder.end()
  }
  const committed = await committing
  assert.equal(committed.ok, false)
  assert.equal((await fast.head()).revision, 0)
  assert.equal((await fast.idempotency.find('k', time))?.answer, 'nothing to do')
})

test('at one revision all replicas answer polls with the same bytes, also while the fleet changes', async () => {
  const replicas = [one, two, reader]
  const seen = new Map<string, Set<string>>()
  let compared = 0
  let isWriting = true
  async function poll(replica: ServiceProcess): Promise<void> {
    while (isWriting) {
      for (const endpoint of ENDPOINTS) {
        const { status, text, headers } = await replica.call('GET', pollUrl(DEMO_DNS, endpoint))
        assert.equal(status, 200)
        const key = `${endpoint} at ${headers['x-revision']}`
        const known = seen.get(key) ?? new Set()
        if (known.size > 0) compared++
        seen.set(key, known.add(`${headers.etag} ${text}`))
      }
    }
  }
  const polling = Promise.all(replicas.map(poll))
  let last = 0
  try {
    for (let i = 0; i < 30; i++) {
      const written = await (i % 2 === 0 ? one : two).call('PATCH', `/clusters/${DEMO}/patches/podinfo`, {
        body: { replicaCount: `n${i}` },
      })
      last = revisionOf(written)
    }
  } finally {
    isWriting = false
  }
  await polling
  assert.ok(compared > 30, `only ${compared} were compared`)
  for (const [key, answers] of seen) assert.equal(answers.size, 1, key)
  const replay = new Replay()
  await replay.follow(database)
  assert.equal(replay.state.revision, last)
  for (const replica of replicas) await checkServed(replica, replay, [DEMO, 'dev-us-01'])
})

test('the log of all that both have written has no gaps, and its hash chain is whole', async () => {
  const replay = new Replay()
  await replay.follow(database)
  assert.equal(replay.state.revision, await headOf(reader))
  await checkVerified([one, two], replay.state.revision)
})
