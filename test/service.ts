// The service for tests, on a free port: inside this process, or as a process of its own.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import pino, { type Logger } from 'pino'
import type { Json } from '../src/base/json.ts'
import { loadTemplates } from '../src/bootstrap/load-templates.ts'
import type { Template } from '../src/bootstrap/template.ts'
import { type Engine, startEngine } from '../src/engine/engine.ts'
import type { CheckSettings } from '../src/engine/rollouts/check-asker.ts'
import { seed } from '../src/engine/seed.ts'
import { buildApp } from '../src/http/app.ts'
import { createAddressOf, createIsProxied } from '../src/http/auth/client-address.ts'
import { createFailureLimit } from '../src/http/auth/failure-limit.ts'
import { type AuthParts, createAuth } from '../src/http/auth/identify.ts'
import { readSharedTokens } from '../src/http/auth/shared-tokens.ts'
import type { ConsoleFiles } from '../src/http/console/console-files.ts'
import type { Transport } from '../src/http/http-server.ts'
import { createAdmission } from '../src/http/load/admission.ts'
import { createMetrics } from '../src/http/metrics.ts'
import { AnswerCache } from '../src/http/poll/answer-cache.ts'
import type { Service } from '../src/http/service.ts'
import type { RegisteredTypes } from '../src/registry/build-types.ts'
import { loadTypes } from '../src/registry/load-types.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import type { Store } from '../src/store/store.ts'

export const READ_TOKEN = 'test-read-token'
export const WRITE_TOKEN = 'test-write-token'
export const RESOURCES = join(import.meta.dirname, '../resources')

/** Nobody changes them, and making them takes longer than most tests. */
let known: RegisteredTypes | undefined
let knownTemplates: readonly Template[] | undefined

export function builtInTypes(...moreFolders: string[]): RegisteredTypes {
  if (moreFolders.length > 0) return loadAllTypes(moreFolders)
  known ??= loadAllTypes([])
  return known
}

function loadAllTypes(moreFolders: readonly string[]): RegisteredTypes {
  const loaded = loadTypes([RESOURCES, ...moreFolders])
  if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
  return loaded.types
}

export function builtInTemplates(types: RegisteredTypes, ...moreFolders: string[]): readonly Template[] {
  if (types !== known || moreFolders.length > 0) return loadAllTemplates(types, moreFolders)
  knownTemplates ??= loadAllTemplates(types, [])
  return knownTemplates
}

function loadAllTemplates(types: RegisteredTypes, moreFolders: readonly string[]): readonly Template[] {
  const loaded = loadTemplates([join(import.meta.dirname, '../deploy/templates'), ...moreFolders], types)
  if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
  return loaded.templates
}

/** A small fleet: two clusters, three components in a chain, two namespaces, one role binding. */
export function smallFleet() {
  const component = (id: string, depends_on: string[] = []) => ({
    id,
    component_path: `core/${id}/1.0.0`,
    component_version: '1.0.0',
    oci_url: 'oci://registry.example.com/components',
    oci_tag: 'v1.0.0',
    depends_on,
  })
  return {
    platform_components: [component('a'), component('b', ['a']), component('c', ['b'])],
    namespaces: [{ id: 'team-a', labels: { team: 'a' } }, { id: 'team-b' }],
    rolebindings: [{ id: 'admins', role: 'cluster-admin', subjects: [{ kind: 'Group', name: 'admins' }] }],
    clusters: [
      {
        id: 'one',
        cluster_name: 'one',
        cluster_dns: 'one.k8s.example.com',
        environment: 'dev',
        platform_components: [{ id: 'a' }, { id: 'b', oci_tag: 'v2.0.0' }],
        namespaces: [{ id: 'team-a' }],
        rolebindings: [{ id: 'admins' }],
        patches: { a: { replicas: '2' } },
      },
      { id: 'two', cluster_name: 'two', cluster_dns: 'two.k8s.example.com', environment: 'prod' },
    ],
  }
}

/** The same with charts only, which take Helm paths. */
export function chartFleet() {
  const { platform_components, ...fleet } = smallFleet()
  const charts = platform_components.map((component) => ({ ...component, delivery: 'helm' }))
  return { ...fleet, platform_components: charts }
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
  readonly body: any
}

export interface Call {
  /** The write token unless said otherwise; null for none. */
  readonly token?: string | null
  readonly body?: Json | undefined
  readonly raw?: string | Buffer
  readonly headers?: Readonly<Record<string, string>>
}

export interface TestService {
  readonly url: string
  readonly app: FastifyInstance
  readonly engine: Engine
  readonly types: RegisteredTypes
  call(method: string, url: string, options?: Call): Promise<Answer>
  stop(): Promise<void>
}

export interface ServiceOptions {
  readonly mode?: 'read-only' | 'crud'
  readonly fleet?: unknown
  readonly store?: Store
  readonly types?: RegisteredTypes
  readonly templates?: readonly Template[]
  readonly externalUrl?: string
  readonly now?: () => Date
  /** What of the callers' identification differs from the usual. */
  readonly auth?: Partial<AuthParts>
  readonly limits?: Partial<Service['limits']>
  readonly maxStalenessMs?: number
  readonly corsOrigins?: readonly string[]
  readonly hasAdminPort?: boolean
  readonly trustedProxies?: readonly string[]
  readonly maxAuthFailures?: number
  readonly login?: Service['login']
  readonly tracer?: Service['tracer']
  readonly hasProfiles?: boolean
  readonly console?: ConsoleFiles
  readonly transport?: Transport
  readonly log?: Logger
  /** Whether it takes the steps of rollouts. */
  readonly controlsRollouts?: boolean
  /** Where checks of rollouts may be asked. */
  readonly checks?: CheckSettings
  readonly onStoreError?: NonNullable<Parameters<typeof startEngine>[0]['onStoreError']>
}

export async function startService(options: ServiceOptions = {}): Promise<TestService> {
  const { mode = 'crud', fleet = smallFleet(), store = openMemoryStore(), types = builtInTypes() } = options
  const { now = () => new Date(), log = pino({ level: 'silent' }), trustedProxies = [], login } = options
  const { onStoreError = () => {}, controlsRollouts = false, checks } = options
  const engine = await startEngine({ store, types, now, onStoreError, controlsRollouts, checks })
  const seeded = await seed(engine, types, fleet)
  if (!seeded.ok) throw new Error(JSON.stringify(seeded.problem))
  const metrics = createMetrics(types, 'test', engine, now)
  const answers = new AnswerCache(1024 * 1024, Date.now)
  metrics.addAnswers(answers)
  const shared = readSharedTokens({ tokens: [READ_TOKEN] }, { tokens: [WRITE_TOKEN] })
  if (!shared.ok) throw new Error(shared.problems.join())
  const { templates = builtInTemplates(types), externalUrl, corsOrigins = [] } = options
  const addressOf = createAddressOf(trustedProxies)
  const auth = createAuth({
    types,
    state: engine.state,
    uses: engine.uses,
    refresh: engine.check,
    shared: () => shared.value.tokens,
    failures: createFailureLimit(options.maxAuthFailures ?? 1_000_000, now),
    addressOf,
    metrics,
    log,
    now,
    ...options.auth,
  })
  const limits = { requests: 1000, connections: 10_000, ...options.limits }
  const app = await buildApp(
    {
      mode,
      version: 'test',
      engine,
      types,
      templates,
      externalUrl,
      auth,
      answers,
      addressOf,
      isProxied: createIsProxied(trustedProxies),
      limits,
      admission: createAdmission(limits),
      maxStalenessMs: options.maxStalenessMs ?? Number.POSITIVE_INFINITY,
      corsOrigins,
      hasAdminPort: options.hasAdminPort ?? false,
      login,
      tracer: options.tracer,
      hasProfiles: options.hasProfiles ?? false,
      console: options.console,
      metrics,
      log,
      now,
    },
    options.transport,
  )
  await app.listen({ host: '127.0.0.1', port: 0 })
  // Neither the server nor a connection that a test leaves open keeps the process.
  app.server.unref()
  app.server.on('connection', (socket: Socket) => socket.unref())
  const { port } = app.server.address() as AddressInfo
  // Three quarters of what a small request takes are its connection.
  const agent = new Agent({ keepAlive: true })
  return {
    url: `http://127.0.0.1:${port}`,
    app,
    engine,
    types,
    call: (method, path, options) => httpCall(port, method, path, options, agent),
    async stop() {
      agent.destroy()
      await app.close()
      await engine.stop()
    },
  }
}

/** The same, stopped after the test, whoever still holds on to it. Each request has a connection of its own. */
export async function startUnheld(t: TestContext, options: ServiceOptions = {}): Promise<TestService> {
  const service = await startService(options)
  const connections = new Set<Socket>()
  service.app.server.on('connection', (socket: Socket) => connections.add(socket))
  t.after(async () => {
    for (const socket of connections) socket.destroy()
    await service.stop()
  })
  const { port } = new URL(service.url)
  return { ...service, call: (method, path, options) => httpCall(Number(port), method, path, options) }
}

/** How many connections a service has. */
export async function connectionsOf({ app }: TestService): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>()
  app.server.getConnections((_, count) => resolve(count))
  return promise
}

/** One request, sent exactly as given; on a connection of its own where no agent keeps any. */
async function httpCall(
  port: number,
  method: string,
  path: string,
  options: Call = {},
  agent: Agent | false = false,
): Promise<Answer> {
  const { token = WRITE_TOKEN, body, raw } = options
  const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  const headers = {
    ...(token !== null && { authorization: `Bearer ${token}` }),
    ...(payload !== undefined && {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(payload),
    }),
    ...options.headers,
  }
  const sent = request({ host: '127.0.0.1', port, method, path, headers, agent }).end(payload)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  // Of what was refused before all of it was sent, the rest is not read.
  sent.on('error', () => {})
  const bytes = Buffer.concat(await response.toArray())
  const text = bytes.toString('utf8')
  return { status: response.statusCode ?? 0, headers: response.headers, bytes, text, body: parse(text) }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Looks again and again, for some seconds and longer where the machine is busy. */
export async function waitFor(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 3000; tries++) {
    if (await holds()) return
    await sleep(15)
  }
  throw new Error(`waited in vain until ${what}`)
}

/** A folder that is gone after the test. */
export function temporaryFolder(context: { after(clean: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-'))
  // A process that is stopped after this may still write to it.
  context.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

/** The port that a process says it listens on. */
export function portIn(output: string): number | undefined {
  const port = /"port":(\d+)\}.*"msg":"(?:ready|listening)"/.exec(output)?.[1]
  return port === undefined ? undefined : Number(port)
}

export interface ServiceProcess {
  readonly url: string
  readonly child: ChildProcess
  /** Everything it has printed so far. */
  output(): string
  call(method: string, path: string, options?: Call): Promise<Answer>
  /** Waits for the exit after a signal; answers the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/** The sources, or what a run of all tests has made of them. */
export const MAIN = process.env.TEST_MAIN || join(import.meta.dirname, '../src/main.ts')

/** For every process that a test starts: most of their time would go into compiling the same again. */
export const COMPILED = { NODE_COMPILE_CACHE: join(import.meta.dirname, '../node_modules/.cache/compiled') }

/** Starts `main.ts`, or another one, with these settings and waits until it listens. */
export async function spawnService(env: Record<string, string>, main = MAIN): Promise<ServiceProcess> {
  const child = spawn(process.execPath, [main], {
    env: {
      AUTH_TOKEN: READ_TOKEN,
      CRUD_AUTH_TOKEN: WRITE_TOKEN,
      ...COMPILED,
      ...env,
      LISTEN_ADDR: '127.0.0.1:0',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk
    })
  }
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)))
  for (let tries = 0; tries < 3000; tries++) {
    const port = portIn(output)
    if (port !== undefined) {
      return {
        url: `http://127.0.0.1:${port}`,
        child,
        output: () => output,
        call: (method, path, options) => httpCall(port, method, path, options),
        stop(signal = 'SIGTERM') {
          child.kill(signal)
          return exited
        },
      }
    }
    if (child.exitCode !== null) throw new Error(`the service stopped at once:\n${output}`)
    await sleep(10)
  }
  child.kill('SIGKILL')
  throw new Error(`the service did not become ready:\n${output}`)
}

/** Runs `main.ts` with these settings until it gives up; answers its exit code and what it said on stderr. */
export async function failToStart(
  env: Record<string, string>,
): Promise<{ code: number | null; stderr: string }> {
  const child = spawn(process.execPath, [MAIN], {
    env: { ...COMPILED, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: 20_000,
  })
  let stderr = ''
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  const [code] = (await once(child, 'exit')) as [number | null]
  return { code, stderr }
}
