// The environment, read once: a Config, or every problem with it at once.
import { isAbsolute } from 'node:path'
import { parseBaseUrl } from './domain/base-url.ts'

export interface Config {
  readonly mode: 'read-only' | 'crud'
  readonly store:
    | { readonly backend: 'memory' }
    | { readonly backend: 'sqlite'; readonly path: string; readonly mode: SqliteMode }
  readonly readToken: string
  readonly writeToken: string
  readonly seedFile: string | undefined
  readonly resourceFolders: readonly string[]
  readonly templateFolders: readonly string[]
  /** Where clusters reach the service. */
  readonly externalUrl: string | undefined
  readonly listen: { readonly host: string; readonly port: number }
  readonly logLevel: string
  /** The share of clusters that may lose inputs in one write without confirmation. */
  readonly brakePercent: number
  /** How long to stay up, not ready, before connections are closed on a stop. */
  readonly shutdownDelayMs: number
}

export type ParsedConfig =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly problems: readonly string[] }

type SqliteMode = 'rwc' | 'rw' | 'ro'
type Environment = Readonly<Record<string, string | undefined>>

const DEFAULT_DATABASE = 'sqlite://data/flux-resourceset.db?mode=rwc'
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

export function parseConfig(env: Environment): ParsedConfig {
  const problems: string[] = []
  const readToken = parseToken(env, 'AUTH_TOKEN', problems)
  if (!env.AUTH_TOKEN) problems.push('AUTH_TOKEN is required: the bearer token that clusters poll with')
  const config: Config = {
    mode: oneOf(env, 'API_MODE', ['read-only', 'crud'], 'read-only', problems),
    store: parseStore(env, problems),
    readToken,
    writeToken: env.CRUD_AUTH_TOKEN ? parseToken(env, 'CRUD_AUTH_TOKEN', problems) : readToken,
    seedFile: env.SEED_FILE || undefined,
    resourceFolders: parseFolders(env.RESOURCES_DIR),
    templateFolders: parseFolders(env.TEMPLATES_DIR),
    externalUrl: parseExternalUrl(env, problems),
    listen: parseListenAddress(env.LISTEN_ADDR || '0.0.0.0:8080', problems),
    logLevel: oneOf(env, 'LOG_LEVEL', LOG_LEVELS, 'info', problems),
    brakePercent: parsePercent(env, 'BRAKE_PERCENT', 10, problems),
    shutdownDelayMs: parseSeconds(env, 'SHUTDOWN_DELAY_SECONDS', 0, problems) * 1000,
  }
  if (config.mode === 'crud' && config.store.backend === 'sqlite' && config.store.mode === 'ro') {
    problems.push('API_MODE crud needs to write, but DATABASE_URL says mode=ro')
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, config }
}

/** What a command on the resource types needs of the environment. */
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

function oneOf<T extends string>(
  env: Environment,
  name: string,
  known: readonly T[],
  fallback: T,
  problems: string[],
): T {
  const value = env[name] || fallback
  if (known.includes(value as T)) return value as T
  problems.push(`${name} must be one of ${known.join(', ')}, not "${value}"`)
  return fallback
}

/** A token travels in a header, so it can hold no space and nothing outside ASCII. */
function parseToken(env: Environment, name: string, problems: string[]): string {
  const token = env[name] ?? ''
  if (token !== '' && !/^[\x21-\x7e]+$/.test(token)) {
    problems.push(`${name} may hold only printable ASCII characters without spaces`)
  }
  return token
}

function parseStore(env: Environment, problems: string[]): Config['store'] {
  const url = env.DATABASE_URL || DEFAULT_DATABASE
  const fallback = /^postgres(ql)?:/.test(url) ? 'postgres' : 'sqlite'
  const backend = oneOf(env, 'STORE_BACKEND', ['sqlite', 'memory', 'postgres'], fallback, problems)
  if (backend === 'memory') return { backend }
  if (backend === 'postgres') {
    problems.push('STORE_BACKEND postgres is not available in this version: use sqlite or memory')
    return { backend: 'memory' }
  }
  const [, path = '', query = ''] = /^sqlite:(?:\/\/)?([^?]*)(?:\?(.*))?$/.exec(url) ?? []
  const mode = new URLSearchParams(query).get('mode') ?? 'rwc'
  if (path === '' || path.includes(':memory:')) {
    const hint = 'for a store in memory set STORE_BACKEND=memory'
    problems.push(
      `DATABASE_URL must be like sqlite://data/file.db or sqlite:///var/lib/file.db, not "${redact(url)}"; ${hint}`,
    )
  }
  if (!['rwc', 'rw', 'ro'].includes(mode))
    problems.push(`DATABASE_URL's mode must be rwc, rw or ro, not "${mode}"`)
  return { backend, path: isAbsolute(path) ? path : `./${path}`, mode: mode as SqliteMode }
}

/** A URL may carry a password. */
function redact(url: string): string {
  return url.replace(/^(\s*(?:[a-z][\w+.-]*:)?\/{0,2}).*@/is, '$1***@').replace(/\?.*/, '?…')
}

function parseListenAddress(text: string, problems: string[]): Config['listen'] {
  const [, host, port] = /^(.*):(\d{1,5})$/.exec(text) ?? []
  if (port === undefined || Number(port) > 65_535) {
    problems.push(`LISTEN_ADDR must be host:port, such as 0.0.0.0:8080 or [::]:8080, not "${text}"`)
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

/** What a command on the store itself needs of the environment. */
export function parseStoreConfig(
  env: Environment,
):
  | { readonly ok: true; readonly store: Config['store'] }
  | { readonly ok: false; readonly problems: readonly string[] } {
  const problems: string[] = []
  const store = parseStore(env, problems)
  return problems.length > 0 ? { ok: false, problems } : { ok: true, store }
}
