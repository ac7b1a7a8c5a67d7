// The service: wires its parts together, listens, and stops cleanly on a signal.
import type { Server as TlsServer } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pino, { type Logger } from 'pino'
import { UsageProblem } from './base/usage-problem.ts'
import { warnOfBundle } from './bootstrap/bootstrap-bundle.ts'
import { loadTemplates } from './bootstrap/load-templates.ts'
import type { Template } from './bootstrap/template.ts'
import { type Config, parseConfig } from './config/config.ts'
import { forwardEvidence } from './engine/fleet/forward-evidence.ts'
import { buildAdminApp } from './http/admin-app.ts'
import { buildApp } from './http/app.ts'
import { createAddressOf, createIsProxied, createTrust } from './http/auth/client-address.ts'
import { createFailureLimit } from './http/auth/failure-limit.ts'
import { createAuth } from './http/auth/identify.ts'
import { createOidc } from './http/auth/oidc.ts'
import { loadConsole } from './http/console/console-files.ts'
import { listen } from './http/listen.ts'
import { createAdmission } from './http/load/admission.ts'
import { AnswerCache } from './http/poll/answer-cache.ts'
import type { Service } from './http/service.ts'
import { reloadTls } from './http/tls/reload-tls.ts'
import type { RegisteredTypes } from './registry/build-types.ts'
import type { Tracer } from './runtime/spans.ts'
import { type LiveFiles, readLiveFiles } from './startup/live-files.ts'
import { startStores } from './startup/start-stores.ts'
import { warnOfReserved, warnOfUnknownTypes } from './startup/startup-warnings.ts'

/** From sources and from the package alike. */
const BUILT_CONSOLE = fileURLToPath(new URL('../dist/console', import.meta.url))
const BUILT_IN_TEMPLATES = fileURLToPath(new URL('../deploy/templates', import.meta.url))
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
  const files = readLiveFiles(config, types, log)
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
      failed: (err) =>
        log.warn({ err, upstream: config.mirror?.url }, 'the upstream does not accept reports'),
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

function now(): Date {
  return new Date()
}

/** Builds what the routes work with. */
function buildService(
  config: Config,
  files: LiveFiles,
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
  const answers = new AnswerCache(config.answerCacheBytes, Date.now)
  metrics.addAnswers(answers)
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
    answers,
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

function readTemplates({ templateFolders }: Config, types: RegisteredTypes): readonly Template[] {
  const loaded = loadTemplates([BUILT_IN_TEMPLATES, ...templateFolders], types)
  if (!loaded.ok) throw new UsageProblem(...loaded.problems)
  return loaded.templates
}
