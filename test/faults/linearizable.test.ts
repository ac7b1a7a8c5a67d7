// Random operations by several clients on two replicas at once: one order of all of them explains every answer.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { temporaryPostgres } from '../postgres-server.ts'
import { createRandom, type Random } from '../seeded-random.ts'
import {
  type Answer,
  type ServiceProcess,
  startService,
  type TestService,
  temporaryFolder,
} from '../service.ts'
import {
  checkVerified,
  chooseSeed,
  ENDPOINTS,
  pollUrl,
  Replay,
  revisionOf,
  startReplicas,
} from './fleet-load.ts'

const RUNS = 4
const CLIENTS = 8
const OPERATIONS_OF_EACH = 250
/** Few of each, so that clients are in each other's way. */
const COMPONENTS = ['a', 'b']
const NAMESPACES = ['n0', 'n1', 'n2', 'n3']
const CLUSTERS = ['k0', 'k1', 'k2', 'k3']
const DNS = ['d0.example.com', 'd1.example.com', 'd2.example.com', 'd3.example.com']
const VALUES = ['1', '2']

interface Request {
  readonly method: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly body?: Json | undefined
  readonly headers: Readonly<Record<string, string>>
}

interface Operation {
  readonly id: string
  readonly request: Request
  readonly replica: ServiceProcess
  readonly start: number
  readonly end: number
  readonly answer: Answer
  /** The revision that was to be waited for. */
  readonly least: number
}

type Kind = 'read' | 'written' | 'unchanged' | 'refused'

function kindOf({ request, answer }: Operation): Kind {
  if (request.method === 'GET') return 'read'
  if (answer.status >= 300) return 'refused'
  return answer.headers['x-change-count'] === '0' ? 'unchanged' : 'written'
}

function urlOf({ path, query }: Request, more: Readonly<Record<string, string>> = {}): string {
  const text = new URLSearchParams({ ...query, ...more }).toString()
  return text === '' ? path : `${path}?${text}`
}

function fleet() {
  const component = { component_path: 'p', component_version: '1', oci_url: 'oci://x', oci_tag: 'v1' }
  return {
    platform_components: COMPONENTS.map((id) => ({ id, ...component })),
    namespaces: [{ id: 'n0' }, { id: 'n1' }],
    rolebindings: [],
    clusters: CLUSTERS.slice(0, 3).map((id, i) => ({
      id,
      cluster_name: id,
      cluster_dns: DNS[i],
      environment: 'dev',
      platform_components: [{ id: 'a' }],
      namespaces: [{ id: 'n0' }],
    })),
  }
}

function chooseRead(random: Random): Pick<Request, 'method' | 'path'> {
  const paths = [
    () => `/clusters/${random.pick(CLUSTERS)}`,
    () => `/namespaces/${random.pick(NAMESPACES)}`,
    () => random.pick(['/clusters', '/namespaces']),
    () => `/clusters/${random.pick(CLUSTERS)}/inputs/${random.pick(ENDPOINTS)}`,
    () => pollUrl(random.pick(DNS), random.pick(ENDPOINTS)),
    () => pollUrl(random.pick(DNS), random.pick(ENDPOINTS)),
  ]
  return { method: 'GET', path: random.pick(paths)() }
}

type Choice = readonly [
  method: string,
  path: string,
  body?: Json | undefined,
  query?: Readonly<Record<string, string>>,
]

function chooseWrite(random: Random): Choice {
  const [component, namespace] = [random.pick(COMPONENTS), random.pick(NAMESPACES)]
  const [cluster, value] = [random.pick(CLUSTERS), random.pick(VALUES)]
  const definition = { id: namespace, labels: { x: value } }
  const document = {
    id: cluster,
    cluster_name: `${cluster}-${value}`,
    cluster_dns: random.pick(DNS),
    environment: 'dev',
    namespaces: [{ id: namespace }],
  }
  const label = { labels: { [random.pick(['x', 'y'])]: value } }
  const choices: readonly (() => Choice)[] = [
    () => ['POST', '/namespaces', definition],
    () => ['PUT', `/namespaces/${namespace}`, definition],
    () => ['PATCH', `/namespaces/${namespace}`, label],
    () => ['DELETE', `/namespaces/${namespace}`, undefined, { cascade: random.pick(['true', 'false']) }],
    () => ['POST', '/clusters', document],
    () => ['PUT', `/clusters/${cluster}`, document],
    () => ['PATCH', `/clusters/${cluster}`, label],
    () => ['PATCH', `/clusters/${cluster}`, label],
    () => ['PATCH', `/clusters/${cluster}`, label],
    () => ['PATCH', `/clusters/${cluster}`, { cluster_dns: random.pick(DNS) }],
    () => ['DELETE', `/clusters/${cluster}`, undefined, { purge: random.pick(['true', 'false', 'false']) }],
    () => ['POST', `/clusters/${cluster}/restore`],
    () => ['POST', `/clusters/${cluster}/restore`],
    () => ['PUT', `/clusters/${cluster}/namespaces/${namespace}`, {}],
    () => ['DELETE', `/clusters/${cluster}/namespaces/${namespace}`],
    () => ['PUT', `/clusters/${cluster}/platform_components/${component}`, { oci_tag: `v${value}` }],
    () => ['PATCH', `/clusters/${cluster}/patches/${component}`, { replicas: value }],
    () => ['PATCH', `/clusters/${cluster}/patches/${component}`, { replicas: value }],
    () => ['POST', '/batch', { operations: chooseBatch(definition, cluster) }],
  ]
  return random.pick(choices)()
}

function chooseBatch(definition: JsonObject & { readonly id: string }, cluster: string): Json[] {
  return [
    { op: 'replace', type: 'namespaces', id: definition.id, document: definition },
    { op: 'assign', type: 'namespaces', ref: { id: definition.id }, clusters: [cluster] },
    { op: 'patch', type: 'clusters', clusters: [cluster], patch: { labels: definition.labels ?? {} } },
  ]
}

class Client {
  readonly #name: string
  readonly #random: Random
  readonly #replicas: readonly ServiceProcess[]
  readonly #done: Operation[]
  /** The newest revision that an answer told of, and the last ETag of each document. */
  #seen = 0
  readonly #etags = new Map<string, string>()

  constructor(name: string, random: Random, replicas: readonly ServiceProcess[], done: Operation[]) {
    this.#name = name
    this.#random = random
    this.#replicas = replicas
    this.#done = done
  }

  async run(): Promise<void> {
    for (let i = 0; i < OPERATIONS_OF_EACH; i++) {
      const id = `${this.#name}-${i}`
      if (this.#random.next() < 0.4) await this.#read(id)
      else await this.#write(id)
    }
  }

  async #read(id: string): Promise<void> {
    const least = this.#random.next() < 0.6 ? this.#seen : 0
    await this.#send(id, { ...chooseRead(this.#random), query: {}, headers: {} }, { least })
  }

  /** Some under a condition; some with a key, to both replicas at once. */
  async #write(id: string): Promise<void> {
    const random = this.#random
    const [method, path, body, more] = chooseWrite(random)
    const dice = random.next()
    const etag = this.#etags.get(path)
    const hasOne = /^\/(clusters|namespaces)\/\w+$/.test(path)
    const condition: Record<string, string> =
      hasOne && etag && dice < 0.4
        ? { 'if-match': etag }
        : method === 'PUT' && hasOne && dice < 0.6
          ? { 'if-none-match': '*' }
          : {}
    const headers = { 'x-request-id': id, ...condition }
    const request = { method, path, body, query: { confirm: 'removals', ...more }, headers }
    if (random.next() < 0.8) return void (await this.#send(id, request))
    const keyed = { ...request, headers: { ...headers, 'idempotency-key': id } }
    const both = this.#replicas.map((replica) => this.#send(id, keyed, { replica }))
    const [one, two] = (await Promise.all(both)) as [Answer, Answer]
    if (one.status >= 300 || two.status >= 300) return
    assert.equal(two.text, one.text, `${id} is answered the same`)
    assert.equal(two.status, one.status)
    for (const name of ['etag', 'x-revision', 'x-change-count', 'location'])
      assert.equal(two.headers[name], one.headers[name], `${id}: ${name}`)
  }

  async #send(
    id: string,
    request: Request,
    { least = 0, replica = this.#random.pick(this.#replicas) } = {},
  ): Promise<Answer> {
    const { method, body, headers } = request
    const start = performance.now()
    const waits = least > 0 ? { min_revision: String(least) } : undefined
    const answer = await replica.call(method, urlOf(request, waits), { body, headers })
    const end = performance.now()
    assert.ok(answer.status < 500, `${id}: ${answer.status} ${answer.text}`)
    this.#done.push({ id, request, replica, start, end, answer, least })
    if (answer.headers.etag) this.#etags.set(request.path, answer.headers.etag)
    this.#seen = Math.max(this.#seen, revisionOf(answer))
    return answer
  }
}

/** The revisions at which it can have taken place, as the clock has it. */
interface Span {
  readonly first: number
  readonly last: number
}

function spansOf(operations: readonly Operation[], head: number): Map<Operation, Span> {
  const written = operations.filter((operation) => kindOf(operation) === 'written')
  return new Map(
    operations.map((operation) => {
      const before = operations.filter(({ end }) => end < operation.start)
      const after = written.filter(({ start }) => start > operation.end)
      const first = before.reduce((most, { answer }) => Math.max(most, revisionOf(answer)), 1)
      const last = after.reduce((least, { answer }) => Math.min(least, revisionOf(answer) - 1), head)
      return [operation, { first, last }]
    }),
  )
}

/** A write takes place after all that was answered before it was sent; a read may be of a replica that is behind. */
function checkOrder(operations: readonly Operation[], spans: ReadonlyMap<Operation, Span>): void {
  for (const operation of operations) {
    const kind = kindOf(operation)
    if (kind === 'refused') continue
    const { id, answer, least, replica, start } = operation
    const { first, last } = spans.get(operation) as Span
    const revision = revisionOf(answer)
    assert.ok(revision <= last, `${id} is of revision ${revision}, which came after ${last}`)
    if (kind === 'written' && answer.headers['idempotent-replayed'] === undefined)
      assert.ok(revision > first, `${id} made revision ${revision}, and ${first} was there before`)
    if (kind === 'unchanged') assert.ok(revision >= first, `${id} is of ${revision}, before ${first}`)
    if (kind !== 'read') continue
    assert.ok(revision >= least, `${id} is of revision ${revision}, not of ${least} or later`)
    const here = operations.filter((other) => other.replica === replica && other.end < start)
    const seen = here.reduce((most, other) => Math.max(most, revisionOf(other.answer)), 1)
    assert.ok(revision >= seen, `${id} went back from revision ${seen} to ${revision}`)
  }
}

const TOLD = ['etag', 'location', 'warning', 'x-change-count'] as const

function assertSame(id: string, answer: Answer, expected: Answer): void {
  const at = `${id} at revision ${revisionOf(answer)}`
  assert.equal(answer.status, expected.status, `${at}: ${answer.text} instead of ${expected.text}`)
  assert.equal(answer.text, expected.text, at)
  for (const name of TOLD)
    assert.deepEqual(timeless(answer.headers[name]), timeless(expected.headers[name]), `${at}: ${name}`)
}

/** A warning may name the time of a revision, which is another one when it is made again. */
function timeless(header: unknown): unknown {
  return JSON.parse(JSON.stringify(header ?? null).replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'then'))
}

/** Does everything again on a service of its own, one after the other, in the order of revisions. */
class Oracle {
  readonly #service: TestService
  readonly #spans: ReadonlyMap<Operation, Span>
  readonly #at = new Map<string, Operation[]>()
  #refused: Operation[]

  constructor(service: TestService, operations: readonly Operation[], spans: ReadonlyMap<Operation, Span>) {
    this.#service = service
    this.#spans = spans
    this.#refused = operations.filter((operation) => kindOf(operation) === 'refused')
    for (const operation of operations) {
      const key = `${kindOf(operation)} ${revisionOf(operation.answer)}`
      this.#at.set(key, [...(this.#at.get(key) ?? []), operation])
    }
  }

  async explain(head: number): Promise<void> {
    for (let revision = 1; revision <= head; revision++) {
      if (revision > 1) await this.#repeatWrite(revision)
      for (const kind of ['read', 'unchanged'])
        for (const operation of this.#at.get(`${kind} ${revision}`) ?? []) await this.#repeat(operation)
      await this.#justify(revision)
      assert.equal(this.#service.engine.state.revision, revision)
    }
    const [first] = this.#refused
    const span = JSON.stringify(first && this.#spans.get(first))
    assert.equal(this.#refused.length, 0, `${first?.id} had no reason in ${span}: ${first?.answer.text}`)
  }

  #call({ method, body, headers, ...request }: Request, more: Record<string, string> = {}): Promise<Answer> {
    const { 'idempotency-key': _, ...sent } = headers
    return this.#service.call(method, urlOf({ method, headers, ...request }, more), { body, headers: sent })
  }

  async #repeat({ id, request, answer }: Operation): Promise<void> {
    assertSame(id, answer, await this.#call(request))
  }

  /** One write made it; whoever sent the same with its key was told of it. */
  async #repeatWrite(revision: number): Promise<void> {
    const writes = this.#at.get(`written ${revision}`) ?? []
    const [first, ...others] = writes.toSorted((a, b) => Number(isReplayed(a)) - Number(isReplayed(b)))
    assert.ok(first, `revision ${revision} was answered`)
    await this.#repeat(first)
    for (const other of others) {
      assert.ok(other.id === first.id && isReplayed(other), `${other.id} and ${first.id} made ${revision}`)
      assertSame(other.id, other.answer, first.answer)
    }
  }

  async #justify(revision: number): Promise<void> {
    const open: Operation[] = []
    for (const operation of this.#refused) {
      const { first, last } = this.#spans.get(operation) as Span
      const isOver = first > revision || last < revision
      if (isOver || !(await this.#isJustified(operation))) open.push(operation)
    }
    this.#refused = open
  }

  async #isJustified({ request, answer }: Operation): Promise<boolean> {
    const { status, text } = await this.#call(request, { dry_run: 'true' })
    return status === answer.status && text === answer.text
  }
}

function isReplayed({ answer }: Operation): boolean {
  return answer.headers['idempotent-replayed'] === 'true'
}

async function runOnce(t: TestContext, random: Random): Promise<Map<Kind, number>> {
  const DATABASE_URL = await temporaryPostgres(t)
  const SEED_FILE = join(temporaryFolder(t), 'fleet.json')
  writeFileSync(SEED_FILE, JSON.stringify(fleet()))
  const env = { DATABASE_URL, SEED_FILE, API_MODE: 'crud' }
  const replicas = await startReplicas(t, env, env)
  const done: Operation[] = []
  const clients = Array.from({ length: CLIENTS }, (_, i) => {
    return new Client(`client-${i}`, createRandom(random.below(2 ** 31)), replicas, done)
  })
  await Promise.all(clients.map((client) => client.run()))

  const replay = new Replay()
  await replay.follow(DATABASE_URL)
  const head = replay.state.revision
  await checkVerified(replicas, head)
  checkLog(done, replay)
  const spans = spansOf(done, head)
  checkOrder(done, spans)
  const service = await startService({ fleet: fleet() })
  t.after(() => service.stop())
  await new Oracle(service, done, spans).explain(head)
  const counts = new Map<Kind, number>()
  for (const kind of done.map(kindOf)) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  for (const replica of replicas) await replica.stop()
  return counts
}

/** Each acknowledged write made the one revision that it told of, and nothing else made any. */
function checkLog(operations: readonly Operation[], { made, state }: Replay): void {
  const written = new Map<string, number>()
  for (const operation of operations.filter((each) => kindOf(each) === 'written'))
    written.set(operation.id, revisionOf(operation.answer))
  for (const [id, revision] of written) assert.deepEqual(made.get(id), [revision], id)
  assert.equal(state.revision, written.size + 1, 'the seed, and every write once')
}

const seed = chooseSeed()

for (let run = 0; run < RUNS; run++) {
  test(`one order of all operations on two replicas explains every answer (${run + 1} of ${RUNS})`, async (t) => {
    const counts = await runOnce(t, createRandom(seed + run)).catch((cause) => {
      throw new Error(`with seed ${seed} + ${run}: ${cause.message}`, { cause })
    })
    const told = [...counts].map(([kind, count]) => `${count} ${kind}`).join(', ')
    t.diagnostic(`seed ${seed} + ${run}: ${told}`)
    for (const kind of ['read', 'written', 'unchanged', 'refused'] as const)
      assert.ok((counts.get(kind) ?? 0) > 20, `too few were ${kind}`)
  })
}

test('reads that wait for revisions to come are of the revision that they tell', async (t) => {
  const DATABASE_URL = await temporaryPostgres(t)
  const SEED_FILE = join(temporaryFolder(t), 'fleet.json')
  writeFileSync(SEED_FILE, JSON.stringify(fleet()))
  const env = { DATABASE_URL, SEED_FILE, API_MODE: 'crud' }
  const [writer, reader] = (await startReplicas(t, env, env)) as [ServiceProcess, ServiceProcess]
  const paths = [pollUrl('d0.example.com', 'platform-components'), '/clusters/k0', '/clusters?limit=2']
  const read: Answer[][] = paths.map(() => [])
  for (let round = 0, head = 1; round < 60; round++) {
    const waiting = paths.flatMap((path, i) =>
      // One caller may wait for few revisions at once.
      Array.from({ length: 5 }, async (_, n) => {
        const url = `${path}${path.includes('?') ? '&' : '?'}min_revision=${head + 1 + n}`
        const answer = await reader.call('GET', url)
        assert.equal(answer.status, 200, answer.text)
        assert.ok(revisionOf(answer) > head + n, 'it waited')
        read[i]?.push(answer)
      }),
    )
    const written = Array.from({ length: 10 }, async (_, n) => {
      const body = { replicas: `${round}-${n}` }
      const { status, text } = await writer.call('PATCH', '/clusters/k0/patches/a', { body })
      assert.equal(status, 200, text)
    })
    await Promise.all([...written, ...waiting])
    head += written.length
  }
  const expected: Map<number, string>[] = paths.map(() => new Map())
  const replay = new Replay()
  await replay.follow(DATABASE_URL, () => {
    const { state } = replay
    const clusters = [...state.all('clusters')].map(({ document }) => document)
    const answers = [
      replay.poll('d0.example.com', 'platform-components'),
      JSON.stringify(clusters[0]),
      JSON.stringify(clusters.slice(0, 2)),
    ]
    answers.forEach((text, i) => {
      expected[i]?.set(state.revision, String(text))
    })
  })
  paths.forEach((path, i) => {
    for (const answer of read[i] ?? []) {
      const revision = revisionOf(answer)
      assert.equal(answer.text, expected[i]?.get(revision), `${path} at revision ${revision}`)
    }
  })
})
