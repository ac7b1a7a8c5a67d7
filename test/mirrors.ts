// What tests of mirrors share: mirrors as processes, upstreams that can be exchanged, and all that either serves.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import type { Json } from '../src/base/json.ts'
import type { Command } from '../src/domain/commands/command.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import type { Store } from '../src/store/store.ts'
import type { ExportOptions } from '../src/transfer/export-log.ts'
import { importLog } from '../src/transfer/import-log.ts'
import { pruneLog } from '../src/transfer/verify-log.ts'
import { start } from './every-store.ts'
import { AUTHOR, command } from './random-fleet.ts'
import {
  type Answer,
  builtInTypes,
  type ServiceOptions,
  type ServiceProcess,
  spawnService,
  type TestService,
  temporaryFolder,
  WRITE_TOKEN,
  waitFor,
} from './service.ts'
import { startProxy, type TcpProxy } from './tcp-proxy.ts'

const ENDPOINTS = builtInTypes().delivered.map(({ delivery }) => delivery.endpoint)
/** All that random changes may give to a cluster, and one that nobody has. */
const NAMES = [0, 1, 2, 3].map((i) => `k${i}.example.com`)

/** What random changes find something to do with. */
export function randomFleet() {
  const component = (id: string, depends_on: string[] = []) => ({
    id,
    component_path: id,
    component_version: '1',
    oci_url: 'oci://x',
    oci_tag: 'v1',
    depends_on,
  })
  return {
    platform_components: [component('a'), component('b', ['a'])],
    namespaces: [{ id: 'n0' }],
    rolebindings: [{ id: 'r0', role: 'view', subjects: [] }],
    clusters: [
      {
        id: 'k0',
        cluster_name: 'k0',
        cluster_dns: 'k0.example.com',
        environment: 'dev',
        platform_components: [{ id: 'a' }, { id: 'b' }],
        namespaces: [{ id: 'n0' }],
      },
      { id: 'k1', cluster_name: 'k1', cluster_dns: 'k1.example.com', environment: 'prod' },
    ],
  }
}

/** Of a cluster of that fleet. */
export const POLL = '/api/v2/flux/clusters/k0.example.com/namespaces'

export function upstreamOf(t: TestContext): Promise<TestService> {
  return start(t, { fleet: randomFleet() })
}

/** A value of so many characters that is another one each time. */
export function large(i: number, size: number): Command {
  const patch = { patches: { a: { text: `${i} `.padEnd(size, 'text') } } }
  return { op: 'patch', type: 'clusters', id: 'k0', patch, format: 'merge', path: '' }
}

/** At revision 1000: enough that a copy is written down in several steps. */
export async function longUpstream(t: TestContext): Promise<TestService> {
  const upstream = await upstreamOf(t)
  for (let i = 0; i < 999; i++) await upstream.engine.write([large(i, 500)], AUTHOR)
  assert.equal(upstream.engine.state.revision, 1000)
  return upstream
}

/** Nothing but that it lives, and that there is nothing yet. */
export async function checkServesNothing(mirror: ServiceProcess): Promise<void> {
  for (const url of [POLL, '/api/v2/flux/clusters', '/whoami', '/log', '/watch', '/openapi.json']) {
    const { status, headers } = await mirror.call('GET', url)
    assert.equal(status, 503, url)
    assert.match(String(headers['retry-after']), /^\d+$/)
  }
  const { status, body } = await ready(mirror)
  assert.equal(status, 503)
  assert.match(body.message, /has not copied everything from its upstream yet/)
  assert.equal((await mirror.call('GET', '/health', { token: null })).status, 200)
  assert.equal(await metric(mirror, 'store_up'), 0)
}

/** Of a long upstream. */
export async function beginsToCopy({ path }: MirrorProcess): Promise<void> {
  await waitFor('a part is copied', () => revisionIn(`${path}.copy`) > 0)
  assert.ok(revisionIn(`${path}.copy`) < 1000, 'and not everything')
}

/** All that there is gives way to one more revision. */
export async function pruneOlder(upstream: TestService, store: Store): Promise<void> {
  await sleep(5)
  const before = new Date().toISOString()
  await sleep(5)
  await write(upstream, 'after')
  const pruned = await pruneLog(store, before)
  assert.ok(pruned.ok && pruned.pruned.revisions > 0)
}

/** The database and everything beside it. */
export function bytesOf({ path }: MirrorProcess): string {
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(basename(path)))
    .map((name) => readFileSync(join(dirname(path), name), 'latin1'))
    .join()
}

/** Changes one after the other, those that come to nothing left out; answers after each that made a revision. */
export async function* changeAtRandom(
  { engine }: TestService,
  seed: number,
  count: number,
): AsyncGenerator<number> {
  let done = 0
  // Most are refused: they name what is not there, or is there already.
  for (const some of fc.sample(command, { seed, numRuns: count * 10 })) {
    const written = await engine.write([some], AUTHOR, { confirmRemovals: true })
    if (!written.ok || written.value.changes.length === 0) continue
    yield written.value.revision
    if (++done === count) return
  }
  assert.fail(`${done} of ${count} changes were made`)
}

interface Served {
  readonly status: number
  readonly etag: string | undefined
  readonly text: string
}

/** Every answer that clusters get of a service, which must be at this revision. */
export async function servedBy(
  service: Pick<ServiceProcess, 'call'>,
  revision: number,
): Promise<Record<string, Served>> {
  const urls = [
    '/api/v2/flux/clusters',
    ...NAMES.flatMap((dns) => ENDPOINTS.map((endpoint) => `/api/v2/flux/clusters/${dns}/${endpoint}`)),
  ]
  const answers: Record<string, Served> = {}
  await waitFor(`revision ${revision} is served`, async () => {
    const { headers } = await service.call('GET', '/whoami')
    return Number(headers['x-revision']) >= revision
  })
  for (const url of urls) {
    const { status, headers, text } = await service.call('GET', url)
    assert.equal(headers['x-revision'], String(revision), text)
    answers[url] = { status, etag: headers.etag, text }
  }
  return answers
}

/** Everything is the same at both, and both are at this revision. */
export async function checkSame(
  mirror: Pick<ServiceProcess, 'call'>,
  upstream: Pick<ServiceProcess, 'call'>,
  revision: number,
): Promise<void> {
  assert.deepEqual(await servedBy(mirror, revision), await servedBy(upstream, revision))
}

export interface MirrorProcess extends ServiceProcess {
  readonly path: string
  /** Starts it again on the same file. */
  again(env?: Record<string, string>): Promise<MirrorProcess>
}

/** A mirror with a file of its own, killed after the test. */
export async function mirrorOf(
  t: TestContext,
  url: string,
  env: Record<string, string> = {},
): Promise<MirrorProcess> {
  const path = env.DATABASE_URL?.replace('sqlite://', '') ?? join(temporaryFolder(t), 'mirror.db')
  const all = { UPSTREAM_URL: url, UPSTREAM_TOKEN: WRITE_TOKEN, DATABASE_URL: `sqlite://${path}`, ...env }
  const service = await spawnService(all)
  t.after(() => service.stop('SIGKILL'))
  return { ...service, path, again: (more = {}) => mirrorOf(t, url, { ...all, ...more }) }
}

export interface Way {
  readonly url: string
  readonly proxy: TcpProxy
  /** Leads to this one from now on; whoever was connected has to come again. */
  lead(to: { readonly url: string }): void
}

/** A way to an upstream that can be broken, and lead to another one. */
export async function wayTo(t: TestContext, upstream: { readonly url: string }): Promise<Way> {
  const { hostname: host, port } = new URL(upstream.url)
  const proxy = await startProxy({ host, port: Number(port) })
  t.after(() => proxy.close())
  return {
    url: `http://127.0.0.1:${proxy.port}`,
    proxy,
    lead({ url }) {
      const to = new URL(url)
      proxy.cut()
      proxy.target(to.hostname, Number(to.port))
      proxy.heal()
    },
  }
}

/** Another service that has had the same revisions, up to one of them. */
export async function copyOf(
  t: TestContext,
  { engine }: TestService,
  options: Partial<ExportOptions> & ServiceOptions = {},
): Promise<TestService> {
  const { until, ...more } = options
  const store = openMemoryStore()
  await importLog(store, engine.past.export({ since: 0, until, now: new Date() }))
  return start(t, { store, fleet: {}, ...more })
}

export async function write(service: Pick<ServiceProcess, 'call'>, id: string): Promise<number> {
  const answer = await service.call('POST', '/namespaces', { body: { id } })
  assert.equal(answer.status, 201, answer.text)
  return Number(answer.headers['x-revision'])
}

export async function createToken(service: Pick<ServiceProcess, 'call'>, body: Json): Promise<string> {
  const answer = await service.call('POST', '/tokens', { body })
  assert.equal(answer.status, 201, answer.text)
  return answer.body.secret
}

export function ready(service: ServiceProcess): Promise<Answer> {
  return service.call('GET', '/ready', { token: null })
}

function isReady({ status, body }: Answer): boolean {
  return status === 200 && body.status === 'ready'
}

export async function becomesReady(service: ServiceProcess): Promise<void> {
  await waitFor('the mirror is ready', async () => isReady(await ready(service)))
}

/** Resolves once it says that it cannot follow, and that this is why. */
export async function degradesFor(service: ServiceProcess, reason: RegExp): Promise<Answer> {
  let last: Answer | undefined
  await waitFor(`the mirror says ${reason}`, async () => {
    last = await ready(service)
    return last.body.status === 'degraded' && reason.test(last.body.reason)
  }).catch((error: Error) => assert.fail(`${error.message}: ${last?.text}\n${service.output()}`))
  return last as Answer
}

export async function metric(service: ServiceProcess, name: string): Promise<number> {
  const { text } = await service.call('GET', '/metrics', { token: null })
  const [, value] = new RegExp(`^flux_resourceset_${name} (\\S+)$`, 'm').exec(text) ?? []
  return Number(value ?? assert.fail(`no ${name} in the metrics`))
}

/** Where a file has come to that somebody else is filling. */
export function revisionIn(path: string): number {
  try {
    const db = new DatabaseSync(path, { readOnly: true })
    try {
      return Number(db.prepare('SELECT revision FROM head').get()?.revision)
    } finally {
      db.close()
    }
  } catch {
    return 0
  }
}
