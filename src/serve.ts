// The service: wires its parts together, listens, and stops cleanly on a signal.
import { readFileSync } from 'node:fs'
import type { Server as TlsServer } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pino, { type Logger } from 'pino'
import type { TokenSource } from './base/token-list.ts'
import { UsageProblem } from './base/usage-problem.ts'
import { warnOfBundle } from './bootstrap/bootstrap-bundle.ts'
import { loadTemplates } from './bootstrap/load-templates.ts'
import type { Template } from './bootstrap/template.ts'
import { type Config, parseConfig } from './config/config.ts'
import { parseSelector, type Selector } from './domain/access/selector.ts'
import { type Engine, startEngine } from './engine/engine.ts'
import type { StatusSettings } from './engine/fleet/follow-fleet.ts'
import { forwardEvidence } from './engine/fleet/forward-evidence.ts'
import type { CheckSettings } from './engine/rollouts/check-asker.ts'
import { seed } from './engine/seed.ts'
import { openSnapshots } from './engine/snapshot.ts'
import { buildAdminApp, buildApp } from './http/app.ts'
import { type AccessRules, NO_RULES, readAccessRules } from './http/auth/access-rules.ts'
import { createAddressOf, createIsProxied, createTrust } from './http/auth/client-address.ts'
import { createFailureLimit } from './http/auth/failure-limit.ts'
import { createAuth } from './http/auth/identify.ts'
import { createOidc } from './http/auth/oidc.ts'
import { filesOf, readSharedTokens, type SharedTokens, tokensOf } from './http/auth/shared-tokens.ts'
import { loadConsole } from './http/console/console-files.ts'
import { listen } from './http/listen.ts'
import { createAdmission } from './http/load/admission.ts'
import { createMetrics, type Metrics } from './http/metrics.ts'
import type { Service } from './http/service.ts'
import { reloadTls } from './http/tls/reload-tls.ts'
import { readTlsFiles, type TlsOptions } from './http/tls/tls-files.ts'
import type { RegisteredTypes } from './registry/build-types.ts'
import { followFiles, type Read } from './runtime/follow-files.ts'
import type { Tracer } from './runtime/spans.ts'
import { openStore } from './store/open-store.ts'
import type { Store } from './store/store.ts'
import { type Mirror, startMirror } from './transfer/mirror.ts'

/** From sources and from the package alike. */
const BUILT_CONSOLE = fileURLToPath(new URL('../dist/console', import.meta.url))
const BUILT_IN_TEMPLATES = fileURLToPath(new URL('../deploy/templates', import.meta.url))
/** Of the key that signs requests. */
const MIN_KEY_LENGTH = 16
const STOP_TIMEOUT_MS = 25_000

interface Started {
  readonly env: NodeJS.ProcessEnv
  readonly version: string
  readonly readTypes: (folders: readonly string[]) => RegisteredTypes
}

/** Starts the service, which runs until a signal stops it. Throws UsageProblem with all problems of its settings. */
export async function serve({ env, version, readTypes }: Started): Promise<void> {
  // Process 1 of a container gets only the signals that it handles.
  let stop = (_signal: string): void => process.exit(0)
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => stop(signal))
  const config = readConfig(env)
  const log = pino({ level: config.logLevel, base: null, timestamp: pino.stdTimeFunctions.isoTime })
  const types = readTypes(config.resourceFolders)
  const templates = readTemplates(config, types)
  for (const warning of warnOfBundle(types, templates, true)) log.warn(warning)
  const files = readFiles(config, types, log)
  const { engine, mirror, metrics } = await startStores(config, types, version, log)
  warnOfUnknownTypes(engine, types, log)
  warnOfReserved(engine, types, log)
  const tracer = await startTracer(config, version, log)
  const service = buildService(config, files, { version, types, templates, engine, metrics, log, tracer })
  const app = await buildApp(service, files.tls ? { tls: files.tls, http2: config.tls?.http2 ?? false } : {})
  const admin = config.adminListen && (await buildAdminApp(service))
  await listen(app, config.listen)
  if (admin && config.adminListen) await listen(admin, config.adminListen)
  if (config.tls) reloadTls(config.tls, app.server as unknown as TlsServer, log)
  log.info(
    {
      version,
      mode: config.mode,
      store: config.store.backend,
      address: app.server.address(),
      ...(admin && { admin_address: admin.server.address() }),
      revision: engine.state.revision,
    },
    engine.isLoaded ? 'ready' : 'listening',
  )
  const stopForwarding =
    mirror &&
    forwardEvidence({
      fleet: engine.fleet,
      send: mirror.report,
      now,
      failed: (err) => log.warn({ err, upstream: config.mirror?.url }, 'the upstream takes no reports'),
    })
  let stopping = false
  stop = async (signal: string): Promise<void> => {
    if (stopping) return
    stopping = true
    log.info({ signal }, 'stopping')
    setTimeout(() => process.exit(1), config.shutdownDelayMs + STOP_TIMEOUT_MS).unref()
    engine.drain()
    await sleep(config.shutdownDelayMs)
    await app.close()
    await admin?.close()
    await stopForwarding?.()
    await engine.stop()
    await mirror?.stop()
    await tracer?.stop()
    log.info('stopped')
    // Connections that clients keep open must not keep the process alive.
    process.exit()
  }
}

interface Stores {
  readonly engine: Engine
  readonly mirror: Mirror | undefined
  readonly metrics: Metrics
}

/** Opens the store, or the mirror's copy, starts the engine on it, and seeds an empty one. */
async function startStores(
  config: Config,
  types: RegisteredTypes,
  version: string,
  log: Logger,
): Promise<Stores> {
  let metrics: Metrics | undefined
  const fleetStatus = statusSettings(config, types)
  const mirror = config.mirror && openMirror(config, types, log)
  const start = (store: Store, upstream?: Mirror): Promise<Engine> =>
    startEngine({
      store,
      ...(upstream && { upstream: upstream.status }),
      types,
      now,
      brake: config.brake,
      fleetStatus,
      onStoreError(error, doing) {
        metrics?.countStoreError(doing)
        log.error({ err: error, doing }, 'the store failed')
      },
      onStoreBack: () => log.info('store connection restored'),
      onLoading: (documents) => log.info({ documents }, 'loading'),
      controlsRollouts: config.mode === 'crud' && !upstream,
      checks: checkSettings(config),
      onRolloutProblem: (err) => log.warn({ err }, 'a step of a rollout cannot be taken now'),
      ...(config.snapshotFolder !== undefined && { snapshots: openSnapshots(config.snapshotFolder) }),
    })
  const engine = await start(
    mirror?.store ??
      openStore(config.store, { write: config.mode === 'crud', warn: (message) => log.warn(message) }),
    mirror,
  )
  if (engine.isLoaded) await fillEmptyStore(config, types, engine, start)
  else fillLater(config, types, engine, log)
  metrics = createMetrics(types, version, engine, now)
  return { engine, mirror, metrics }
}

/** The key is read anew for every request, so that it can be replaced while the process runs. */
function checkSettings({ checks }: Config): CheckSettings | undefined {
  if (!checks) return undefined
  if (readFirstToken(checks.key).length < MIN_KEY_LENGTH)
    throw new UsageProblem(
      `ROLLOUT_CHECK_KEY must have at least ${MIN_KEY_LENGTH} characters: it can be guessed otherwise`,
    )
  return { urls: checks.urls, key: () => readFirstToken(checks.key) }
}

function readFirstToken(source: TokenSource): string {
  const problems: string[] = []
  const [token = ''] = tokensOf(source, problems)
  if (problems.length > 0) throw new UsageProblem(...problems)
  return token
}

function statusSettings({ status }: Config, types: RegisteredTypes): StatusSettings {
  const { unobserved, ...limits } = status
  const selector =
    unobserved === undefined ? undefined : readSelector(types, 'UNOBSERVED_SELECTOR', unobserved)
  return { ...limits, isUnobserved: (cluster) => selector?.matches(cluster) ?? false }
}

/** The selector of a setting. */
function readSelector(types: RegisteredTypes, name: string, text: string): Selector {
  const parsed = parseSelector(types, text)
  if (!parsed.ok) throw new UsageProblem(`${name} ${parsed.message}`)
  return parsed.selector
}

function now(): Date {
  return new Date()
}

/** Builds what the routes work with. */
function buildService(
  config: Config,
  files: Files,
  parts: Pick<Service, 'version' | 'types' | 'templates' | 'engine' | 'metrics' | 'log' | 'tracer'>,
): Service {
  const { types, engine, metrics, log } = parts
  const { oidc, trustedProxies } = config
  const addressOf = createAddressOf(trustedProxies)
  const limits = {
    requests: config.maxRequests,
    connections: config.maxConnections,
    connectionsPerAddress: config.maxConnectionsPerAddress,
    trusts: createTrust(trustedProxies),
  }
  return {
    ...parts,
    mode: config.mode,
    externalUrl: config.externalUrl,
    auth: createAuth({
      types,
      state: engine.state,
      uses: engine.uses,
      refresh: engine.check,
      shared: () => files.shared,
      rules: () => files.rules,
      oidc: oidc && createOidc({ ...oidc, now }),
      failures: createFailureLimit(config.maxAuthFailures, now),
      addressOf,
      metrics,
      log,
      now,
    }),
    addressOf,
    isProxied: createIsProxied(trustedProxies),
    limits,
    admission: createAdmission(limits),
    maxStalenessMs: config.maxStalenessMs,
    corsOrigins: config.corsOrigins,
    hasAdminPort: config.adminListen !== undefined,
    login: oidc,
    hasProfiles: config.hasProfiles,
    console: config.console ? loadConsole(BUILT_CONSOLE) : undefined,
    now,
  }
}

/** The exporter is loaded only where traces are wanted. */
async function startTracer({ telemetry }: Config, version: string, log: Logger): Promise<Tracer | undefined> {
  if (!telemetry) return undefined
  const { url, headers, serviceName, resource } = telemetry
  const { startOtlpTracer } = await import('./runtime/otlp-tracer.ts')
  return startOtlpTracer({
    url,
    headers,
    resource: { ...resource, 'service.name': serviceName, 'service.version': version },
    failed: (err) => log.warn({ err }, 'traces cannot be sent: they are kept for a while, then dropped'),
  })
}

function readConfig(env: NodeJS.ProcessEnv): Config {
  const parsed = parseConfig(env)
  if (!parsed.ok) throw new UsageProblem(...parsed.problems)
  return parsed.config
}

/** Values from files other than the store, reloaded while the process runs. */
interface Files {
  shared: SharedTokens
  rules: AccessRules
  readonly tls: TlsOptions | undefined
}

function readFiles(
  { readTokens, writeTokens, accessFile, tls }: Config,
  types: RegisteredTypes,
  log: Logger,
): Files {
  const readShared = () => readSharedTokens(readTokens, writeTokens)
  const readRules = () =>
    accessFile ? readAccessRules(accessFile, types) : ({ ok: true, value: NO_RULES } as const)
  const [shared, rules, secured] = [readShared(), readRules(), tls && readTlsFiles(tls)]
  if (!shared.ok || !rules.ok || secured?.ok === false) {
    throw new UsageProblem(
      ...[shared, rules, secured].flatMap((read) => (read?.ok === false ? read.problems : [])),
    )
  }
  if (shared.value.hasWeak)
    log.warn('a token of the environment is shorter than 16 characters: it can be guessed')
  const files: Files = { shared: shared.value.tokens, rules: rules.value, tls: secured?.value.options }
  follow(log, filesOf(readTokens, writeTokens), readShared, ({ tokens }) => {
    files.shared = tokens
  })
  follow(log, accessFile ? [accessFile] : [], readRules, (value) => {
    files.rules = value
  })
  return files
}

function follow<T>(
  log: Logger,
  paths: readonly string[],
  read: () => Read<T>,
  take: (value: T) => void,
): void {
  followFiles(paths, {
    read,
    take(value) {
      take(value)
      log.info({ files: paths }, 'files have changed and were read again')
    },
    refuse(problems) {
      log.error({ problems }, 'files have changed and cannot be used: what they held before stays in use')
    },
  })
}

function readTemplates({ templateFolders }: Config, types: RegisteredTypes): readonly Template[] {
  const loaded = loadTemplates([BUILT_IN_TEMPLATES, ...templateFolders], types)
  if (!loaded.ok) throw new UsageProblem(...loaded.problems)
  return loaded.templates
}

function openMirror({ mirror, store }: Config, types: RegisteredTypes, log: Logger): Mirror | undefined {
  if (!mirror || store.backend !== 'sqlite') return undefined
  const { url, tokens, selector } = mirror
  if (selector !== undefined) readSelector(types, 'MIRROR_SELECTOR', selector)
  readFirstToken(tokens)
  return startMirror({
    url,
    selector,
    path: store.path,
    token: () => readFirstToken(tokens),
    onProblem: (err) => log.error({ err, upstream: url }, 'the upstream cannot be followed'),
    onBack: () => log.info({ upstream: url }, 'upstream connection restored'),
  })
}

/** A process of either mode fills an empty store once; after that a read-only one never writes. */
async function fillEmptyStore(
  config: Config,
  types: RegisteredTypes,
  engine: Engine,
  start: (store: Store) => Promise<Engine>,
): Promise<void> {
  const { mode, store, seedFile } = config
  if (!seedFile || engine.state.revision > 0 || (store.backend === 'sqlite' && store.mode === 'ro')) return
  if (mode === 'crud' || store.backend === 'memory') return seedFrom(seedFile, types, engine)
  const writer = await start(openStore(store, { write: true }))
  try {
    await seedFrom(seedFile, types, writer)
  } finally {
    await writer.stop()
  }
  await engine.catchUp()
}

/** Waits until a state is loaded, which may take until the store is reachable, and seeds an empty store. */
async function fillLater(config: Config, types: RegisteredTypes, engine: Engine, log: Logger): Promise<void> {
  log.warn({ problem: engine.status.problem }, 'there is nothing to serve until the store can be reached')
  await engine.loaded
  log.info({ revision: engine.state.revision }, 'ready')
  if (!config.seedFile || config.mode !== 'crud' || engine.state.revision > 0) return
  await seedFrom(config.seedFile, types, engine).catch((err) =>
    log.error({ err }, 'SEED_FILE was not loaded'),
  )
}

async function seedFrom(seedFile: string, types: RegisteredTypes, engine: Engine): Promise<void> {
  let content: unknown
  try {
    content = JSON.parse(readFileSync(seedFile, 'utf8'))
  } catch (error) {
    throw new UsageProblem(`SEED_FILE ${seedFile}: ${(error as Error).message}`)
  }
  const seeded = await seed(engine, types, content)
  if (seeded.ok) return
  const { message, details = [] } = seeded.problem
  const problems = details.length > 0 ? details.map(({ path, message }) => `${path} ${message}`) : [message]
  throw new UsageProblem(...problems.map((problem) => `SEED_FILE ${seedFile}: ${problem}`))
}

/** Warns of documents that were created before their ids were reserved; they are still served. */
function warnOfReserved({ state }: Engine, types: RegisteredTypes, log: Logger): void {
  for (const { name: type, reserved } of types.all) {
    for (const [id, reason] of reserved) {
      if (state.get(type, id))
        log.warn({ type, id, reason }, 'the store holds a document whose id is reserved')
    }
  }
}

function warnOfUnknownTypes({ state }: Engine, types: RegisteredTypes, log: Logger): void {
  for (const type of state.typeNames().filter((name) => !types.get(name) && !types.system.get(name))) {
    log.warn(
      { type, documents: state.count(type) },
      'the store holds documents of a type that no resource file describes',
    )
  }
}
