// The environment, read once: a Config, or every problem with it at once.
import { isIP } from 'node:net'
import { type BrakePercents, DEFAULT_BRAKE } from '../base/brake-percents.ts'
import { parseDuration } from '../base/duration.ts'
import type { TokenSource } from '../base/token-list.ts'
import { isSecure, parseBaseUrl } from '../base/urls.ts'
import { parseStore, type StoreConfig } from './database-url.ts'
import { type Environment, listIn, oneOf, parseCount, redact } from './environment.ts'
import { type CheckConfig, parseChecks } from './parse-checks.ts'
import { parseStatus, type StatusConfig } from './parse-status.ts'
import { parseTelemetry, type TelemetryConfig } from './parse-telemetry.ts'
import { parseTokens } from './parse-tokens.ts'

export const MODES = ['read-only', 'crud'] as const

export interface Config {
  readonly mode: (typeof MODES)[number]
  readonly store: StoreConfig
  readonly readTokens: TokenSource
  readonly writeTokens: TokenSource
  readonly seedFile: string | undefined
  readonly resourceFolders: readonly string[]
  readonly templateFolders: readonly string[]
  /** Where clusters reach the service. */
  readonly externalUrl: string | undefined
  readonly listen: ListenAddress
  /** Where probes and metrics are served, if not with the rest. */
  readonly adminListen: ListenAddress | undefined
  readonly tls: TlsConfig | undefined
  readonly oidc: OidcConfig | undefined
  /** Rules that give roles to certificates and to people. */
  readonly accessFile: string | undefined
  /** Addresses and networks of proxies whose forwarded headers are trusted. */
  readonly trustedProxies: readonly string[]
  readonly corsOrigins: readonly string[]
  /** Whether the web console is served. */
  readonly console: boolean
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
  readonly maxRequests: number
  readonly maxAuthFailures: number
  /** Of compressed answers to polls. */
  readonly answerCacheBytes: number
  /**
   * How stale the state may become, while the store is unavailable, before this process reports that it is not ready.
   */
  readonly maxStalenessMs: number
  /** The service that this one is a mirror of. */
  readonly mirror: MirrorConfig | undefined
  /** Where the state is saved, to start from while the store is unavailable. */
  readonly snapshotFolder: string | undefined
  readonly logLevel: string
  /** The share of clusters that may lose inputs in one write without confirmation. */
  readonly brake: BrakePercents
  /** How the status of clusters is derived and kept. */
  readonly status: StatusConfig
  /** Which systems outside may be asked about rollouts; undefined for none. */
  readonly checks: CheckConfig | undefined
  /** Where traces of writes are sent; undefined for nowhere. */
  readonly telemetry: TelemetryConfig | undefined
  /** Whether admins may take profiles of the process. */
  readonly hasProfiles: boolean
  /** How long a stopping process keeps serving, not ready, before it closes its connections. */
  readonly shutdownDelayMs: number
}

type ListenAddress = { readonly host: string; readonly port: number } | { readonly path: string }

interface TlsConfig {
  readonly cert: string
  readonly key: string
  readonly clientCa: string | undefined
  readonly clientAuth: 'none' | 'optional' | 'required'
  /** Whether HTTP/2 is offered beside HTTP/1.1. */
  readonly http2: boolean
}

interface OidcConfig {
  readonly issuer: string
  readonly audience: string
  readonly clientId: string
  readonly roleClaim: string
  readonly usernameClaim: string
}

export type ParsedConfig =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly problems: readonly string[] }

interface MirrorConfig {
  readonly url: string
  readonly tokens: TokenSource
  readonly selector: string | undefined
}

/** The longest path of a unix socket that the kernel accepts. */
const MAX_SOCKET_PATH = 107
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

export function parseConfig(env: Environment): ParsedConfig {
  const problems: string[] = []
  const isShared = oneOf(env, 'SHARED_TOKENS', ['on', 'off'], 'on', problems) === 'on'
  const readTokens = isShared ? parseTokens(env, 'AUTH_TOKEN', problems) : undefined
  if (isShared && !readTokens)
    problems.push('AUTH_TOKEN is required, or AUTH_TOKEN_FILE: the bearer token that clusters poll with')
  const mode = oneOf(env, 'API_MODE', MODES, 'read-only', problems)
  const maxConnections = parseCount(env, 'MAX_CONNECTIONS', 10_000, problems)
  const config: Config = {
    mode,
    store: parseStore(env, problems),
    readTokens: readTokens ?? NO_TOKENS,
    // In read-only mode the token that all clusters share must not open admin routes.
    writeTokens:
      (isShared ? parseTokens(env, 'CRUD_AUTH_TOKEN', problems) : undefined) ??
      (mode === 'crud' ? readTokens : undefined) ??
      NO_TOKENS,
    seedFile: env.SEED_FILE || undefined,
    resourceFolders: parseFolders(env.RESOURCES_DIR),
    templateFolders: parseFolders(env.TEMPLATES_DIR),
    externalUrl: parseExternalUrl(env, problems),
    listen: parseListenAddress('LISTEN_ADDR', env.LISTEN_ADDR || '0.0.0.0:8080', problems),
    adminListen: env.ADMIN_LISTEN_ADDR
      ? parseListenAddress('ADMIN_LISTEN_ADDR', env.ADMIN_LISTEN_ADDR, problems)
      : undefined,
    tls: parseTls(env, problems),
    oidc: parseOidc(env, problems),
    accessFile: env.ACCESS_FILE || undefined,
    trustedProxies: parseNetworks(env, problems),
    corsOrigins: parseOrigins(env, problems),
    console: oneOf(env, 'CONSOLE', ['on', 'off'], 'on', problems) === 'on',
    maxConnections,
    maxConnectionsPerAddress: parseCount(
      env,
      'MAX_CONNECTIONS_PER_ADDRESS',
      Math.ceil(maxConnections / 2),
      problems,
    ),
    maxRequests: parseCount(env, 'MAX_REQUESTS', 500, problems),
    maxAuthFailures: parseCount(env, 'MAX_AUTH_FAILURES', 30, problems),
    answerCacheBytes: parseCount(env, 'ANSWER_CACHE_MB', 64, problems, 0) * 1024 * 1024,
    maxStalenessMs: parseStaleness(env, problems),
    mirror: parseMirror(env, problems),
    snapshotFolder: env.SNAPSHOT_DIR || undefined,
    logLevel: oneOf(env, 'LOG_LEVEL', LOG_LEVELS, 'info', problems),
    brake: {
      percent: parsePercent(env, 'BRAKE_PERCENT', DEFAULT_BRAKE.percent, problems),
      groupPercent: parsePercent(env, 'BRAKE_GROUP_PERCENT', DEFAULT_BRAKE.groupPercent, problems),
    },
    status: parseStatus(env, problems),
    checks: parseChecks(env, problems),
    telemetry: parseTelemetry(env, problems),
    hasProfiles: oneOf(env, 'PROFILES', ['on', 'off'], 'off', problems) === 'on',
    shutdownDelayMs: parseSeconds(env, 'SHUTDOWN_DELAY_SECONDS', 0, problems) * 1000,
  }
  if (config.mode === 'crud' && config.store.backend === 'sqlite' && config.store.mode === 'ro') {
    problems.push('API_MODE crud needs to write, but DATABASE_URL says mode=ro')
  }
  if (config.mirror) problems.push(...refuseBeside(config))
  return problems.length > 0 ? { ok: false, problems } : { ok: true, config }
}

/** A mirror holds what its upstream holds, and nothing else. */
function refuseBeside({ mode, store, seedFile }: Config): string[] {
  const problems: string[] = []
  if (mode === 'crud')
    problems.push('UPSTREAM_URL makes this a mirror, which is read-only: leave API_MODE out')
  if (store.backend !== 'sqlite' || store.mode !== 'rwc')
    problems.push(
      'UPSTREAM_URL needs a SQLite file of its own: give DATABASE_URL such as sqlite:///data/mirror.db',
    )
  if (seedFile) problems.push('SEED_FILE has no place in a mirror, which holds what UPSTREAM_URL holds')
  return problems
}

function parseMirror(env: Environment, problems: string[]): MirrorConfig | undefined {
  const text = env.UPSTREAM_URL
  if (!text) {
    for (const name of ['UPSTREAM_TOKEN', 'UPSTREAM_TOKEN_FILE', 'MIRROR_SELECTOR'].filter(
      (each) => env[each],
    ))
      problems.push(`${name} needs UPSTREAM_URL: which service this one mirrors`)
    return undefined
  }
  const url = parseBaseUrl(text)
  if (url === undefined || !isSecure(new URL(url)))
    problems.push(
      `UPSTREAM_URL must be an https:// URL such as https://fleet.example.com, not "${redact(text)}"`,
    )
  const tokens = parseTokens(env, 'UPSTREAM_TOKEN', problems)
  if (!tokens)
    problems.push(
      'UPSTREAM_TOKEN is required with UPSTREAM_URL, or UPSTREAM_TOKEN_FILE: a token of the role mirror there',
    )
  return { url: url ?? '', tokens: tokens ?? NO_TOKENS, selector: env.MIRROR_SELECTOR || undefined }
}

/** Parses a list of folders. A command on the resource types needs nothing else of the environment. */
export function parseFolders(text: string | undefined): string[] {
  return (text ?? '').split(':').filter((folder) => folder !== '')
}

function parseExternalUrl(env: Environment, problems: string[]): string | undefined {
  if (!env.EXTERNAL_URL) return undefined
  const url = parseBaseUrl(env.EXTERNAL_URL)
  if (url === undefined)
    problems.push(`EXTERNAL_URL must be like https://fleet.example.com, not "${redact(env.EXTERNAL_URL)}"`)
  return url
}

const NO_TOKENS: TokenSource = { tokens: [] }

function parseTls(env: Environment, problems: string[]): TlsConfig | undefined {
  const { TLS_CERT_FILE: cert, TLS_KEY_FILE: key, TLS_CLIENT_CA_FILE: clientCa } = env
  const clientAuth = oneOf(
    env,
    'TLS_CLIENT_AUTH',
    ['none', 'optional', 'required'],
    clientCa ? 'optional' : 'none',
    problems,
  )
  const http2 = oneOf(env, 'HTTP2', ['on', 'off'], 'off', problems) === 'on'
  if (http2 && !cert)
    problems.push('HTTP2 on needs TLS_CERT_FILE and TLS_KEY_FILE: it is spoken over TLS only')
  if (clientAuth !== 'none' && !clientCa)
    problems.push(`TLS_CLIENT_AUTH ${clientAuth} needs TLS_CLIENT_CA_FILE: whose certificates count`)
  if (cert && key) return { cert, key, clientCa: clientCa || undefined, clientAuth, http2 }
  if (cert || key)
    problems.push(
      `${cert ? 'TLS_CERT_FILE needs TLS_KEY_FILE' : 'TLS_KEY_FILE needs TLS_CERT_FILE'}: TLS takes both`,
    )
  else if (clientCa)
    problems.push(
      'TLS_CLIENT_CA_FILE needs TLS_CERT_FILE and TLS_KEY_FILE: without TLS nobody shows a certificate',
    )
  return undefined
}

function parseOidc(env: Environment, problems: string[]): OidcConfig | undefined {
  const { OIDC_ISSUER: issuer, OIDC_AUDIENCE: audience } = env
  if (!issuer) {
    if (audience) problems.push('OIDC_AUDIENCE needs OIDC_ISSUER: whose tokens count')
    return undefined
  }
  const url = URL.parse(issuer)
  if (!url || url.search || url.hash || !isSecure(url))
    problems.push(
      `OIDC_ISSUER must be an https:// URL, exactly as in the tokens' "iss", not "${redact(issuer)}"`,
    )
  if (!audience)
    problems.push('OIDC_AUDIENCE is required with OIDC_ISSUER: the "aud" that tokens for this service have')
  if (!env.ACCESS_FILE)
    problems.push('ACCESS_FILE is required with OIDC_ISSUER: the rules that give people their roles')
  return {
    issuer,
    audience: audience ?? '',
    clientId: env.OIDC_CLIENT_ID || (audience ?? ''),
    roleClaim: env.OIDC_ROLE_CLAIM || 'groups',
    usernameClaim: env.OIDC_USERNAME_CLAIM || 'email',
  }
}

function parseNetworks(env: Environment, problems: string[]): string[] {
  const networks = listIn(env.TRUSTED_PROXIES)
  for (const network of networks.filter((item) => !isNetwork(item)))
    problems.push(
      `TRUSTED_PROXIES must hold addresses, networks such as 10.0.0.0/8, or unix, separated by commas, not "${network}"`,
    )
  return networks
}

/** Whether a text is an address or a network such as 10.0.0.0/8; `unix` stands for unix sockets. */
function isNetwork(text: string): boolean {
  if (text === 'unix') return true
  const [address = '', prefix, ...more] = text.split('/')
  const version = isIP(address)
  if (version === 0 || more.length > 0) return false
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (version === 6 ? 128 : 32))
}

function parseOrigins(env: Environment, problems: string[]): string[] {
  const origins = listIn(env.CORS_ORIGINS)
  for (const origin of origins.filter((item) => URL.parse(item)?.origin !== item || item === 'null'))
    problems.push(
      `CORS_ORIGINS must hold origins such as https://fleet.example.com, separated by commas, not "${origin}"`,
    )
  return origins
}

const NO_LIMIT = Number.POSITIVE_INFINITY

function parseStaleness(env: Environment, problems: string[]): number {
  const text = env.MAX_STALENESS
  if (!text) return NO_LIMIT
  const seconds = parseDuration(text)
  if (seconds === undefined)
    problems.push(`MAX_STALENESS must be a duration such as 90s, 10m or 2h, not "${text}"`)
  return seconds === undefined ? NO_LIMIT : seconds * 1000
}

function parseListenAddress(variable: string, text: string, problems: string[]): ListenAddress {
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length).replace(/^\/\/(?=\/)/, '')
    if (path === '' || path.length > MAX_SOCKET_PATH)
      problems.push(
        `${variable} must name a socket of 1 to ${MAX_SOCKET_PATH} characters, such as unix:/run/flux-resourceset.sock`,
      )
    return { path }
  }
  const [, host, port] = /^(.*):(\d{1,5})$/.exec(text) ?? []
  if (port === undefined || Number(port) > 65_535) {
    problems.push(
      `${variable} must be host:port, such as 0.0.0.0:8080 or [::]:8080, or unix:/path/to/socket, not "${text}"`,
    )
  }
  return { host: (host || '0.0.0.0').replace(/^\[(.*)\]$/, '$1'), port: Number(port ?? 0) }
}

function parseSeconds(env: Environment, name: string, fallback: number, problems: string[]): number {
  const text = env[name]
  if (!text) return fallback
  if (/^\d{1,4}$/.test(text)) return Number(text)
  problems.push(`${name} must be a whole number of seconds, not "${text}"`)
  return fallback
}

function parsePercent(env: Environment, name: string, fallback: number, problems: string[]): number {
  const text = env[name]
  if (!text) return fallback
  const percent = /^\d{1,3}(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (percent <= 100) return percent
  problems.push(`${name} must be a number from 0 to 100, not "${text}"`)
  return fallback
}
