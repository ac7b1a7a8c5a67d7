// Replicas and the database are killed at any moment, under load: nothing acknowledged is lost, nothing is done twice.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Json } from '../../src/base/json.ts'
import { type PostgresServer, startPostgres } from '../postgres-server.ts'
import { createRandom, type Random } from '../seeded-random.ts'
import { type Answer, type ServiceProcess, spawnService, waitFor } from '../service.ts'
import {
  checkServed,
  checkVerified,
  chooseSeed,
  dnsOf,
  ENDPOINTS,
  pollUrl,
  Replay,
  revisionOf,
} from './fleet-load.ts'

const ROUNDS = 36
const WRITERS = 5
const POLLERS_OF_EACH = 2
const MAX_TRIES = 2000
const KEPT_NAMESPACES = 4
/** More than a store writes in one statement. */
const BULK = Array.from({ length: 420 }, (_, i) => `bulk-${i}`)
const SHARED = 'shared'
const WRITTEN = Array.from({ length: WRITERS }, (_, i) => `writer-${i}`)
const CLUSTERS = [SHARED, ...WRITTEN]

/** One process, from its start to its end. */
interface Life {
  readonly service: ServiceProcess
  /** Started while the database was away, and not seen with a state since. */
  isEmpty: boolean
  isKilled: boolean
  /** The newest revision that a poll was answered from. */
  seen: number
}

/** Where one process runs after the other. */
interface Replica {
  readonly mode: 'crud' | 'read-only'
  life: Life | undefined
}

interface Write {
  /** Of its request, each time that it is sent. */
  readonly name: string
  readonly hasKey: boolean
  readonly method: string
  readonly path: string
  readonly body?: Json
  /** The document that it leaves is its answer. */
  readonly document?: readonly [type: string, id: string]
}

interface Acknowledged extends Write {
  readonly answer: Answer
}

class Load {
  readonly random: Random
  readonly replicas: readonly Replica[]
  isOn = false
  readonly acknowledged: Acknowledged[] = []
  readonly unknown: Write[] = []
  /** What was answered at each revision, by URL. */
  readonly polled = new Map<number, Map<string, string>>()
  readonly counts = { acknowledged: 0, unknown: 0, repeated: 0, polls: 0 }
  #named = 0

  constructor(random: Random, replicas: readonly Replica[]) {
    this.random = random
    this.replicas = replicas
  }

  name(of: string): string {
    return `${of}-${this.#named++}`
  }

  /** Polls one replica for as long as there is load; whoever lives answers. */
  async poll(replica: Replica): Promise<void> {
    while (this.isOn) {
      const { life } = replica
      if (life) await this.#pollOnce(life)
      await sleep(4)
    }
  }

  async #pollOnce(life: Life): Promise<void> {
    const { random, polled, counts } = this
    const { seen, service } = life
    const url = pollUrl(dnsOf(random.pick(CLUSTERS)), random.pick(ENDPOINTS))
    const answer = await service.call('GET', url).catch((error: Error) => {
      assert.ok(life.isKilled, `a poll of a living replica failed: ${error.message}`)
    })
    if (!answer || (answer.status === 503 && life.isEmpty)) return
    assert.equal(answer.status, 200, `${url}: ${answer.text}`)
    life.isEmpty = false
    counts.polls++
    const revision = revisionOf(answer)
    assert.ok(revision >= seen, `a replica went back from revision ${seen} to ${revision}`)
    life.seen = Math.max(life.seen, revision)
    const known = polled.get(revision) ?? new Map<string, string>()
    polled.set(revision, known)
    assert.equal(answer.text, known.get(url) ?? answer.text, `${url} at revision ${revision}`)
    known.set(url, answer.text)
  }

  /** Whether it was acknowledged; what has a key is sent until it is, to whichever replica. */
  async send(write: Write): Promise<boolean> {
    const { name, hasKey, method, path, body } = write
    const headers = { 'x-request-id': name, ...(hasKey && { 'idempotency-key': name }) }
    const crud = this.replicas.filter(({ mode }) => mode === 'crud')
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const service = this.random.pick(crud).life?.service
      const answer = await service?.call(method, path, { body, headers }).catch(() => undefined)
      if (answer && answer.status !== 503) {
        assert.ok(answer.status < 300, `${name}, ${method} ${path}: ${answer.status} ${answer.text}`)
        this.acknowledged.push({ ...write, answer })
        this.counts.acknowledged++
        return true
      }
      if (service && !hasKey) {
        this.unknown.push(write)
        this.counts.unknown++
        return false
      }
      if (service) this.counts.repeated++
      await sleep(20)
    }
    throw new Error(`${name} was not done for ever`)
  }
}

/** Writes on what is its own, and on what all write on; never repeats a change, so that doing it twice shows. */
class Writer {
  readonly #load: Load
  readonly #name: string
  /** Namespaces that are known to be there: made, and also assigned. */
  #made: string[] = []
  #assigned: string[] = []

  constructor(load: Load, name: string) {
    this.#load = load
    this.#name = name
  }

  async run(): Promise<void> {
    while (this.#load.isOn) {
      await this.#writeOnce()
      await sleep(this.#load.random.below(15))
    }
  }

  async #writeOnce(): Promise<void> {
    const load = this.#load
    const { random } = load
    const common = { name: load.name(this.#name), hasKey: random.next() < 0.6 }
    const { name } = common
    const own = `/clusters/${this.#name}`
    const [made] = this.#made
    const [oldest] = this.#assigned
    const dice = random.next()
    if (dice < 0.05) {
      const operations = BULK.map((id) => {
        return { op: 'patch', type: 'namespaces', id, patch: { labels: { by: name } } }
      })
      await load.send({ ...common, method: 'POST', path: '/batch', body: { operations } })
    } else if (dice < 0.25) {
      const body = { labels: { last: name } }
      const document = ['clusters', SHARED] as const
      await load.send({ ...common, method: 'PATCH', path: `/clusters/${SHARED}`, body, document })
    } else if (dice < 0.45) {
      const body = { replicas: name }
      await load.send({ ...common, method: 'PATCH', path: `${own}/patches/a`, body })
    } else if (oldest && this.#assigned.length > KEPT_NAMESPACES) {
      this.#assigned.shift()
      const path = `/namespaces/${oldest}?cascade=true&confirm=removals`
      await load.send({ ...common, method: 'DELETE', path })
    } else if (made) {
      this.#made.shift()
      const path = `${own}/namespaces/${made}`
      if (await load.send({ ...common, method: 'PUT', path, body: {} })) this.#assigned.push(made)
    } else {
      const write = { method: 'POST', path: '/namespaces', body: { id: name, labels: { by: name } } }
      const document = ['namespaces', name] as const
      if (await load.send({ ...common, ...write, document })) this.#made.push(name)
    }
  }
}

/** What is killed in a round, and in which order it comes back. */
interface Victims {
  readonly database: boolean
  readonly replicas: readonly Replica[]
}

function chooseVictims(round: number, random: Random, replicas: readonly Replica[]): Victims {
  const one = random.pick(replicas.filter(({ mode }) => mode === 'crud'))
  const kinds: readonly Victims[] = [
    { database: false, replicas: [one] },
    { database: true, replicas: [] },
    { database: true, replicas: [one] },
    { database: true, replicas: [] },
    { database: false, replicas: [one] },
    { database: true, replicas },
  ]
  return kinds[round % kinds.length] as Victims
}

class Machines {
  readonly database: string
  readonly #t: TestContext
  readonly #server: PostgresServer
  readonly #random: Random
  readonly #env: Record<string, string>
  #isDatabaseUp = true

  constructor(t: TestContext, server: PostgresServer, random: Random, database: string) {
    this.#t = t
    this.#server = server
    this.#random = random
    this.database = database
    this.#env = { DATABASE_URL: database }
  }

  async start(replica: Replica): Promise<void> {
    const isEmpty = !this.#isDatabaseUp
    const service = await spawnService({ ...this.#env, API_MODE: replica.mode })
    this.#t.after(() => service.stop('SIGKILL'))
    replica.life = { service, isEmpty, isKilled: false, seen: 0 }
  }

  async #killReplica(replica: Replica): Promise<void> {
    const { life } = replica
    if (!life) return
    life.isKilled = true
    await life.service.stop('SIGKILL')
    replica.life = undefined
  }

  async #killDatabase(): Promise<void> {
    this.#isDatabaseUp = false
    await this.#server.kill()
  }

  async #startDatabase(): Promise<void> {
    await this.#server.start()
    this.#isDatabaseUp = true
  }

  /** At moments of chance, and in an order of chance. */
  async crash({ database, replicas }: Victims): Promise<void> {
    const pause = (ms: number): Promise<void> => sleep(this.#random.below(ms))
    const kills = [
      ...(database ? [() => this.#killDatabase()] : []),
      ...replicas.map((replica) => () => this.#killReplica(replica)),
    ]
    const starts = [
      ...(database ? [() => this.#startDatabase()] : []),
      ...(replicas.length > 0 ? [() => Promise.all(replicas.map((replica) => this.start(replica)))] : []),
    ]
    if (this.#random.next() < 0.5) kills.reverse()
    if (this.#random.next() < 0.5) starts.reverse()
    await pause(600)
    for (const kill of kills) {
      await kill()
      await pause(60)
    }
    await pause(800)
    for (const start of starts) await start()
  }
}

async function isReady({ life }: Replica): Promise<boolean> {
  const ready = await life?.service.call('GET', '/ready')
  return ready?.status === 200 && ready.body.status === 'ready'
}

/** Stops the load whatever happens, and hears of everything that went wrong in it. */
async function crashUnderLoad(
  load: Load,
  writers: readonly Writer[],
  machines: Machines,
  victims: Victims,
): Promise<void> {
  load.isOn = true
  const polling = load.replicas.flatMap((replica) =>
    Array.from({ length: POLLERS_OF_EACH }, () => load.poll(replica)),
  )
  const working = [...polling, ...writers.map((writer) => writer.run())].map((work) =>
    work.finally(() => {
      load.isOn = false
    }),
  )
  const crashing = async (): Promise<void> => {
    try {
      await machines.crash(victims)
      await waitFor('all replicas are ready', async () =>
        (await Promise.all(load.replicas.map(isReady))).every(Boolean),
      )
      await sleep(50 + load.random.below(200))
    } finally {
      load.isOn = false
    }
  }
  const ended = await Promise.allSettled([...working, crashing()])
  for (const result of ended) if (result.status === 'rejected') throw result.reason
}

/** The log must explain all that was answered since the last time. */
async function checkRound(load: Load, replay: Replay, machines: Machines): Promise<void> {
  const { acknowledged, unknown, polled } = load
  const answered = new Map(acknowledged.map((write) => [revisionOf(write.answer), write]))
  assert.equal(answered.size, acknowledged.length, 'every write has a revision of its own')
  const base = replay.state.revision
  const check = (): void => {
    const { state } = replay
    const { document, answer, name } = answered.get(state.revision) ?? {}
    if (document) assert.deepEqual(answer?.body, state.get(...document)?.document, `the answer to ${name}`)
    for (const [url, text] of polled.get(state.revision) ?? []) {
      const [dns = '', endpoint = ''] = url.split('/').slice(-2)
      assert.equal(text, replay.poll(dns, endpoint), `${url} at revision ${state.revision}`)
    }
    polled.delete(state.revision)
  }
  check()
  await replay.follow(machines.database, check)
  assert.deepEqual([...polled.keys()], [], 'polls were answered from revisions that the log has')
  for (const { name, answer } of acknowledged)
    assert.deepEqual(replay.made.get(name), [revisionOf(answer)], `${name} is there once`)
  const done = unknown.filter(({ name }) => replay.made.has(name))
  for (const { name } of done) assert.equal(replay.made.get(name)?.length, 1, `${name} is there once`)
  const explained = acknowledged.length + done.length
  assert.equal(replay.state.revision - base, explained, 'nothing else is in the log')
  const labels = new Set(
    BULK.map((id) => JSON.stringify(replay.state.get('namespaces', id)?.document.labels)),
  )
  assert.equal(labels.size, 1, 'batches are there whole or not at all')
  acknowledged.length = 0
  unknown.length = 0
}

async function checkReplica(replica: Replica, replay: Replay): Promise<void> {
  const { service } = replica.life ?? assert.fail('it is there')
  await checkServed(service, replay, CLUSTERS)
  if (replica.mode === 'read-only') return
  for (const type of ['clusters', 'namespaces', 'platform_components']) {
    const { body } = await service.call('GET', `/${type}?limit=5000`)
    const expected = [...replay.state.all(type)].map(({ document }) => document)
    assert.deepEqual(body, expected, `all ${type}`)
  }
}

async function fill({ life }: Replica): Promise<void> {
  const component = { component_path: 'p', component_version: '1', oci_url: 'oci://x', oci_tag: 'v1' }
  const create = (type: string, document: { readonly id: string; readonly [key: string]: Json }) => {
    return { op: 'create', type, document }
  }
  const cluster = { environment: 'dev', platform_components: [{ id: 'a' }] }
  const operations = [
    create('platform_components', { id: 'a', ...component }),
    ...BULK.map((id) => create('namespaces', { id })),
    ...CLUSTERS.map((id) => {
      const namespaces = id === SHARED ? BULK.slice(0, 20).map((namespace) => ({ id: namespace })) : []
      return create('clusters', { id, cluster_name: id, cluster_dns: dnsOf(id), ...cluster, namespaces })
    }),
  ]
  const { service } = life ?? assert.fail('it is there')
  const filled = await service.call('POST', '/batch', { body: { operations } })
  assert.equal(filled.status, 200, filled.text)
}

async function crashOften(t: TestContext, random: Random): Promise<Load> {
  const server = await startPostgres({ durable: true })
  t.after(() => server.stop())
  const machines = new Machines(t, server, random, await server.createDatabase())
  const modes = ['crud', 'crud', 'read-only'] as const
  const replicas = modes.map((mode): Replica => ({ mode, life: undefined }))
  for (const replica of replicas) await machines.start(replica)
  await fill(replicas[0] as Replica)
  const replay = new Replay()
  await replay.follow(machines.database)
  const load = new Load(random, replicas)
  const writers = WRITTEN.map((name) => new Writer(load, name))
  for (const replica of replicas) await checkReplica(replica, replay)
  for (let round = 0; round < ROUNDS; round++) {
    await crashUnderLoad(load, writers, machines, chooseVictims(round, random, replicas))
    await checkRound(load, replay, machines)
    for (const replica of replicas) await checkReplica(replica, replay)
  }
  const crud = replicas.flatMap(({ mode, life }) => (life && mode === 'crud' ? life.service : []))
  await checkVerified(crud, replay.state.revision)
  return load
}

test('whatever is killed at any moment, acknowledged writes are kept and done once, and polls go on', async (t) => {
  const seed = chooseSeed()
  const { counts } = await crashOften(t, createRandom(seed)).catch((cause) => {
    throw new Error(`with seed ${seed}: ${cause.message}`, { cause })
  })
  const { acknowledged, unknown, repeated, polls } = counts
  t.diagnostic(
    `seed ${seed}: ${ROUNDS} rounds, ${acknowledged} writes acknowledged (${repeated} repeats), ${unknown} unknown, ${polls} polls`,
  )
  assert.ok(acknowledged > 10 * ROUNDS, `only ${acknowledged} writes were acknowledged`)
  assert.ok(unknown > 0 && repeated > 0, 'writes were cut off')
})
