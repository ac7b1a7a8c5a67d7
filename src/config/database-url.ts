// Which store to use, from the environment: DATABASE_URL and what goes with it.
import { isAbsolute } from 'node:path'
import { isWellEncoded } from '../base/urls.ts'
import { type Environment, oneOf, parseCount, redact } from './environment.ts'

export type StoreConfig =
  | { readonly backend: 'memory' }
  | { readonly backend: 'sqlite'; readonly path: string; readonly mode: SqliteMode }
  | ({ readonly backend: 'postgres' } & PostgresConfig)

type SqliteMode = 'rwc' | 'rw' | 'ro'

interface PostgresConfig {
  /** The URL without its TLS parameters, and without the password where a file holds it. */
  readonly url: string
  readonly passwordFile: string | undefined
  readonly poolSize: number
  readonly tls: {
    readonly mode: TlsMode
    readonly ca?: string
    readonly cert?: string
    readonly key?: string
  }
}

/** As in libpq, without the modes that fall back to plain text. */
const TLS_MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const
type TlsMode = (typeof TLS_MODES)[number]

const DEFAULT_DATABASE = 'sqlite://data/flux-resourceset.db?mode=rwc'

/** Parses what a command on the store needs of the environment. */
export function parseStoreConfig(
  env: Environment,
):
  | { readonly ok: true; readonly store: StoreConfig }
  | { readonly ok: false; readonly problems: readonly string[] } {
  const problems: string[] = []
  const store = parseStore(env, problems)
  return problems.length > 0 ? { ok: false, problems } : { ok: true, store }
}

export function parseStore(env: Environment, problems: string[]): StoreConfig {
  const url = env.DATABASE_URL || DEFAULT_DATABASE
  const fallback = /^postgres(ql)?:/.test(url) ? 'postgres' : 'sqlite'
  const backend = oneOf(env, 'STORE_BACKEND', ['sqlite', 'memory', 'postgres'], fallback, problems)
  if (backend === 'memory') return { backend }
  if (backend === 'postgres') return { backend, ...parsePostgres(env, problems) }
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

function parsePostgres(env: Environment, problems: string[]): PostgresConfig {
  const text = env.DATABASE_URL ?? ''
  const url = URL.parse(text)
  const passwordFile = env.DATABASE_PASSWORD_FILE || undefined
  const poolSize = parseCount(env, 'DATABASE_POOL_SIZE', 10, problems)
  const tls = url ? parseDatabaseTls(url, problems) : { mode: 'disable' as const }
  if (!url || !/^postgres(ql)?:$/.test(url.protocol) || url.pathname.length < 2)
    problems.push(
      `DATABASE_URL must be like postgres://user@host:5432/database?sslmode=verify-full, not "${redact(text)}"`,
    )
  else {
    if (passwordFile && url.password)
      problems.push('DATABASE_URL has a password and DATABASE_PASSWORD_FILE is set: give one of them')
    problems.push(...refuseParts(url))
  }
  return { url: url?.href ?? text, passwordFile, poolSize, tls }
}

/**
 * Returns the parts of a database URL that would be misread or ignored. Its TLS parameters must be taken off before.
 */
function refuseParts({ username, password, hostname, pathname, searchParams }: URL): string[] {
  const problems: string[] = []
  if (![username, password, hostname, pathname].every(isWellEncoded))
    problems.push('DATABASE_URL has a % that begins no percent-encoding: write it as %25')
  const { host, port, ...others } = Object.fromEntries(searchParams)
  if (host !== undefined && !host.startsWith('/'))
    problems.push(
      `DATABASE_URL's parameter host is a folder with a unix socket, such as /var/run/postgresql, not "${host}": other hosts stand before the database, as in postgres://user@host/database`,
    )
  if (port !== undefined && !/^\d{1,5}$/.test(port))
    problems.push(`DATABASE_URL's parameter port must be a number, not "${port}"`)
  for (const name of Object.keys(others))
    problems.push(
      `DATABASE_URL has an unknown parameter "${name}": known are ${[...TLS_PARAMETERS, 'host', 'port'].join(', ')}`,
    )
  return problems
}

const TLS_PARAMETERS = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'] as const

/** Takes the TLS parameters of libpq off the URL. A remote host needs TLS unless a parameter says otherwise. */
function parseDatabaseTls(url: URL, problems: string[]): PostgresConfig['tls'] {
  const parameters = url.searchParams
  const [given, ca, cert, key] = TLS_PARAMETERS.map((name) => {
    const value = parameters.get(name) || undefined
    parameters.delete(name)
    return value
  })
  const isLocal = parameters.has('host') || ['', 'localhost', '127.0.0.1', '[::1]'].includes(url.hostname)
  const mode = (given ?? (ca || !isLocal ? 'verify-full' : 'disable')) as TlsMode
  if (!TLS_MODES.includes(mode))
    problems.push(`DATABASE_URL's sslmode must be one of ${TLS_MODES.join(', ')}, not "${mode}"`)
  if ((cert === undefined) !== (key === undefined))
    problems.push('DATABASE_URL has one of sslcert and sslkey: a client certificate takes both')
  if (mode === 'disable' && (ca || cert))
    problems.push('DATABASE_URL says sslmode=disable, but names certificates: choose another sslmode')
  return { mode, ...(ca && { ca }), ...(cert && key && { cert, key }) }
}
