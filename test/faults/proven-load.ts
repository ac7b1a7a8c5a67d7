// Writers and pollers for tests that break things under them, and the proof that nothing was lost, doubled or missed.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { runSql } from '../postgres-server.ts'
import { type Answer, READ_TOKEN, type ServiceProcess, spawnService, waitFor } from '../service.ts'
import { startProxy, type TcpProxy } from '../tcp-proxy.ts'

export const SEED_FILE = new URL('../../data/seed.json', import.meta.url).pathname
const DEMO = '/api/v2/flux/clusters/demo-cluster-01.k8s.example.com'
const POLLS = ['platform-components', 'namespaces', 'rolebindings'].map((endpoint) => `${DEMO}/${endpoint}`)
const WRITE = '/clusters/demo-cluster-01/patches/podinfo'
/** How often a writer sends the same again before it gives up. */
const MAX_REPEATS = 300

type Callable = Pick<ServiceProcess, 'call'>

export interface Replica {
  readonly service: ServiceProcess
  /** Between it and the database. */
  readonly proxy: TcpProxy
}

/** A service behind a proxy of its own; gone after the test. */
export async function startReplica(
  t: TestContext,
  url: string,
  env: Record<string, string> = {},
): Promise<Replica> {
  const { hostname: host, port } = new URL(url)
  const proxy = await startProxy({ host, port: Number(port) })
  t.after(() => proxy.close())
  const through = Object.assign(new URL(url), { port: String(proxy.port) }).href
  const service = await spawnService({ DATABASE_URL: through, SEED_FILE, API_MODE: 'crud', ...env })
  t.after(() => service.stop('SIGKILL'))
  return { service, proxy }
}

/** What one write was, and what became of it as far as the writer knows. */
interface Sent {
  readonly message: string
  /** The revision it was acknowledged with. */
  readonly revision?: number
}

export interface Writers {
  readonly acknowledged: number
  readonly unknown: number
  stop(): Promise<void>
  /** Every acknowledged write is one revision of the database, that very one; any other one is there once or not at all. */
  check(url: string): Promise<void>
}

/** Every write sets one and the same value to another one: done twice, it would be two revisions. */
export function startWriters(t: TestContext, targets: () => readonly Callable[], count = 4): Writers {
  const sent: Sent[] = []
  let isStopped = false
  t.after(() => {
    isStopped = true
  })

  async function send(message: string, key: string | undefined): Promise<Answer | undefined> {
    const services = targets()
    const service = services[Math.floor(Math.random() * services.length)] as Callable
    const headers = { 'x-change-message': message, ...(key && { 'idempotency-key': key }) }
    const answer = await service
      .call('PATCH', WRITE, { body: { replicaCount: message }, headers })
      .catch(() => undefined)
    if (answer === undefined || answer.status === 503) return undefined
    assert.equal(answer.status, 200, answer.text)
    return answer
  }

  /** Those with a key are sent again until they are acknowledged. */
  async function writeOnce(message: string, key: string | undefined): Promise<void> {
    for (let tries = 0; tries < (key ? MAX_REPEATS : 1); tries++) {
      const answer = await send(message, key)
      if (answer) {
        sent.push({ message, revision: Number(answer.headers['x-revision']) })
        return
      }
      await sleep(50 + Math.random() * 100)
    }
    assert.equal(key, undefined, `${message} was not acknowledged however often it was sent`)
    sent.push({ message })
  }

  async function writeOn(name: string, isKeyed: boolean): Promise<void> {
    for (let i = 0; !isStopped; i++) {
      const message = `${name}-${i}`
      await writeOnce(message, isKeyed ? `key-${message}` : undefined)
      await sleep(Math.random() * 20)
    }
  }

  const writing = Promise.all(Array.from({ length: count }, (_, w) => writeOn(`w${w}`, w % 2 === 0)))
  writing.catch(() => {})
  return {
    get acknowledged() {
      return sent.filter(({ revision }) => revision !== undefined).length
    },
    get unknown() {
      return sent.filter(({ revision }) => revision === undefined).length
    },
    async stop() {
      isStopped = true
      await writing
    },
    async check(url) {
      const rows = await runSql(
        url,
        'select revision, message from flux_resourceset.revisions order by revision',
      )
      rows.forEach(({ revision }, i) => {
        assert.equal(Number(revision), i + 1, 'the log has no gaps')
      })
      const made = Map.groupBy(rows, ({ message }) => message)
      for (const { message, revision } of sent) {
        const found = (made.get(message) ?? []).map((row) => Number(row.revision))
        if (revision !== undefined) assert.deepEqual(found, [revision], `${message} was acknowledged`)
        else assert.ok(found.length <= 1, `${message} is there ${found.length} times`)
      }
    },
  }
}

export interface Pollers {
  readonly count: number
  /** Fails when any poll did, or a revision came after a later one. */
  stop(): Promise<void>
}

/** Polls one process without an end. */
export function startPollers(t: TestContext, service: Callable): Pollers {
  const wrong: string[] = []
  let isStopped = false
  let count = 0
  let last = 0
  t.after(() => {
    isStopped = true
  })
  const polling = (async () => {
    while (!isStopped) {
      const path = POLLS[count++ % POLLS.length] as string
      const answer = await service
        .call('GET', path, { token: READ_TOKEN })
        .catch((error: unknown) => String(error))
      if (typeof answer === 'string') wrong.push(answer)
      else if (answer.status !== 200 || answer.body.inputs.length === 0)
        wrong.push(`${answer.status} ${answer.text}`)
      else if (Number(answer.headers['x-revision']) < last)
        wrong.push(`revision ${answer.headers['x-revision']} after ${last}`)
      else last = Number(answer.headers['x-revision'])
      await sleep(5)
    }
  })()
  return {
    get count() {
      return count
    },
    async stop() {
      isStopped = true
      await polling
      assert.deepEqual(wrong.slice(0, 5), [])
      assert.ok(count > 0)
    },
  }
}

export function ready(service: Callable): Promise<Answer> {
  return service.call('GET', '/ready', { token: null })
}

export async function isReady(service: Callable): Promise<boolean> {
  const { status, body } = await ready(service)
  return status === 200 && body.status === 'ready'
}

/** All are at the last revision of the database, and answer every poll with the same bytes. */
export async function checkEqual(services: readonly Callable[], url: string): Promise<void> {
  const [row] = await runSql(url, 'select revision from flux_resourceset.head')
  const answers = []
  for (const service of services) {
    await waitFor(`revision ${row?.revision} is served`, async () => {
      const { headers } = await service.call('GET', POLLS[0] as string)
      return headers['x-revision'] === String(row?.revision)
    })
    const polls = await Promise.all(POLLS.map((path) => service.call('GET', path)))
    answers.push(polls.map(({ headers, text }) => `${headers.etag} ${text}`))
  }
  for (const answer of answers) assert.deepEqual(answer, answers[0])
}

/** The whole log, with its hashes and against the documents. */
export async function checkLog(service: Callable): Promise<void> {
  const { status, body, text } = await service.call('GET', '/revisions/verify')
  assert.equal(status, 200, text)
  assert.deepEqual(body.problems, [], text)
}

export async function write(service: Callable, value: string): Promise<number> {
  const answer = await service.call('PATCH', WRITE, { body: { replicaCount: value } })
  assert.equal(answer.status, 200, answer.text)
  return Number(answer.headers['x-revision'])
}
