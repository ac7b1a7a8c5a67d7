import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Json } from '../src/base/json.ts'
import { createRandom } from './seeded-random.ts'
import { type ServiceProcess, spawnService, temporaryFolder } from './service.ts'

/** Enough to see what goes wrong often; `make test-faults` has more of them. */
const ROUNDS = Number(process.env.CRASH_ROUNDS ?? 6)
const CLIENTS = 4
const KEPT_NAMESPACES = 3

/** What one client has made of the part of the fleet that is its own. */
interface Owned {
  readonly counter: number
  readonly namespaces: readonly string[]
  readonly assigned: readonly string[]
}

interface Write {
  readonly method: string
  readonly path: string
  readonly body?: Json
  /** What the client owns once the write is done. */
  readonly after: Owned
}

interface Client {
  readonly name: string
  /** As acknowledged. */
  owned: Owned
  /** Sent, and not acknowledged. */
  inFlight: Write | undefined
  acknowledged: number
}

/** Creates a namespace, assigns it, counts on the cluster, and drops the oldest from both in one revision. */
function nextWrite({ name, owned }: Client): Write {
  const { counter, namespaces, assigned } = owned
  const [oldest] = namespaces
  const newest = namespaces.at(-1)
  if (oldest && namespaces.length > KEPT_NAMESPACES) {
    const without = (ids: readonly string[]) => ids.filter((id) => id !== oldest)
    const after = { counter, namespaces: without(namespaces), assigned: without(assigned) }
    return { method: 'DELETE', path: `/namespaces/${oldest}?cascade=true`, after }
  }
  if (newest && !assigned.includes(newest)) {
    const after = { ...owned, assigned: [...assigned, newest] }
    return { method: 'PUT', path: `/clusters/${name}/namespaces/${newest}`, body: {}, after }
  }
  const wanted = `${name}-${String(counter).padStart(6, '0')}`
  if (newest !== wanted) {
    const body = { id: wanted, labels: { counter: String(counter) } }
    return {
      method: 'POST',
      path: '/namespaces',
      body,
      after: { ...owned, namespaces: [...namespaces, wanted] },
    }
  }
  const body = { labels: { counter: String(counter + 1) } }
  return { method: 'PATCH', path: `/clusters/${name}`, body, after: { ...owned, counter: counter + 1 } }
}

/** Writes until the service is gone. */
async function writeOn(client: Client, service: ServiceProcess): Promise<void> {
  for (;;) {
    const write = nextWrite(client)
    client.inFlight = write
    const { method, path, body } = write
    const answer = await service.call(method, path, { body }).catch(() => undefined)
    if (!answer) return
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.text}`)
    client.owned = write.after
    client.inFlight = undefined
    client.acknowledged++
  }
}

/** Documents as the log says they are, by type and id. */
class Replay {
  revision = 0
  readonly documents = new Map<string, Json>()

  /** Reads on from where it was; every revision must be whole and follow from the one before. */
  async follow(service: ServiceProcess): Promise<void> {
    const fresh = []
    for (let before = ''; ; ) {
      const { body } = await service.call('GET', `/revisions?limit=100${before}`)
      fresh.push(...body.filter(({ revision }: { revision: number }) => revision > this.revision))
      const last = body.at(-1)?.revision ?? 0
      if (last <= this.revision + 1) break
      before = `&before=${last}`
    }
    for (const { revision, change_count, changes } of fresh.reverse()) {
      assert.equal(revision, this.revision + 1, 'the log has no gaps')
      assert.ok(change_count > 0)
      assert.equal(changes.length, change_count, `revision ${revision} is whole`)
      for (const { type, id, before, after } of changes) {
        const key = `${type}/${id}`
        assert.deepEqual(before, this.documents.get(key) ?? null, `${key} before revision ${revision}`)
        if (after) this.documents.set(key, after)
        else this.documents.delete(key)
      }
      this.revision = revision
    }
  }
}

async function readDocuments(
  service: ServiceProcess,
): Promise<{ documents: Map<string, Json>; revision: number }> {
  const documents = new Map<string, Json>()
  let revision = -1
  for (const type of ['clusters', 'namespaces', 'platform_components', 'rolebindings']) {
    const { body, headers } = await service.call('GET', `/${type}?limit=5000`)
    for (const document of body) documents.set(`${type}/${document.id}`, document)
    revision = Number(headers['x-revision'])
  }
  return { documents, revision }
}

function ownedBy(name: string, documents: ReadonlyMap<string, Json>): Owned {
  const cluster = documents.get(`clusters/${name}`) as unknown as {
    labels: { counter?: string }
    namespaces: { id: string }[]
  }
  const namespaces = [...documents.keys()]
    .filter((key) => key.startsWith(`namespaces/${name}-`))
    .map((key) => key.slice('namespaces/'.length))
  return {
    counter: Number(cluster.labels.counter ?? 0),
    namespaces: namespaces.sort(),
    assigned: cluster.namespaces.map(({ id }) => id),
  }
}

/** Every acknowledged write is there; one in flight is there whole or not at all. */
function checkClient(client: Client, documents: ReadonlyMap<string, Json>): void {
  const found = ownedBy(client.name, documents)
  const happened = isDeepStrictEqual(found, client.inFlight?.after)
  if (!happened) assert.deepEqual(found, client.owned, `what ${client.name} has written`)
  client.owned = found
  client.inFlight = undefined
}

async function startClients(service: ServiceProcess): Promise<Client[]> {
  const names = Array.from({ length: CLIENTS }, (_, i) => `client-${i}`)
  for (const name of names) {
    const body = {
      id: name,
      cluster_name: name,
      cluster_dns: `${name}.k8s.example.com`,
      environment: 'dev',
      labels: { counter: '0' },
    }
    assert.equal((await service.call('POST', '/clusters', { body })).status, 201)
  }
  const owned = { counter: 0, namespaces: [], assigned: [] }
  return names.map((name) => ({ name, owned, inFlight: undefined, acknowledged: 0 }))
}

/** Starts the service on what the last round left, checks all of it, and kills the service while clients write. */
async function crashRound(
  service: ServiceProcess,
  clients: Client[],
  replay: Replay,
  delay: number,
): Promise<void> {
  await checkEverything(service, clients, replay)
  const writing = Promise.all(clients.map((client) => writeOn(client, service)))
  await Promise.race([sleep(delay), writing])
  await Promise.all([service.stop('SIGKILL'), writing])
}

async function checkEverything(service: ServiceProcess, clients: Client[], replay: Replay): Promise<void> {
  await replay.follow(service)
  const { documents, revision } = await readDocuments(service)
  assert.equal(revision, replay.revision, 'the log ends at the revision that is served')
  assert.deepEqual(documents, replay.documents, 'the documents are what the log says')
  for (const client of clients) checkClient(client, documents)
}

async function crashOften(t: TestContext, random: () => number, database: string): Promise<void> {
  const env = {
    API_MODE: 'crud',
    DATABASE_URL: `sqlite://${database}`,
  }
  const start = async () => {
    const service = await spawnService(env)
    t.after(() => service.stop('SIGKILL'))
    return service
  }
  const replay = new Replay()
  let service = await start()
  const clients = await startClients(service)
  for (let round = 0; round < ROUNDS; round++) {
    await crashRound(service, clients, replay, 30 + random() * 270)
    service = await start()
  }
  await checkEverything(service, clients, replay)
  assert.equal(await service.stop(), 0)
  for (const { name, acknowledged } of clients) {
    assert.ok(acknowledged > 2 * ROUNDS, `${name} had only ${acknowledged} writes acknowledged`)
  }
}

test('a service that is killed at any moment keeps every write that it has acknowledged', async (t) => {
  const database = join(temporaryFolder(t), 'fleet.db')
  const seed = randomInt(2 ** 31)
  await crashOften(t, createRandom(seed).next, database).catch((cause) => {
    throw new Error(`with seed ${seed}: ${cause.message}`, { cause })
  })
  const db = new DatabaseSync(database, { readOnly: true })
  t.after(() => db.close())
  assert.deepEqual({ ...db.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' })
})
