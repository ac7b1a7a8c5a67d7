// Reaching a PostgreSQL database, saying in our words what is wrong with it, and bringing it to the current schema.
import { readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Duplex } from 'node:stream'
import pg from 'pg'
import { type Migrated, StoreError } from '../store.ts'

export interface PostgresOptions {
  /** postgres://user:password@host:port/database, without what says how to use TLS. */
  readonly url: string
  /** Holds the password; read again for every connection. */
  readonly passwordFile?: string | undefined
  readonly poolSize?: number
  readonly tls?: {
    readonly mode: 'disable' | 'require' | 'verify-ca' | 'verify-full'
    readonly ca?: string
    readonly cert?: string
    readonly key?: string
  }
  /** Without it the database is only read. */
  readonly write: boolean
  /** Told of what is unsafe about the database. */
  readonly warn?: (message: string) => void
}

export const DEFAULT_POOL_SIZE = 10
const CONNECT_MS = 5_000
/** What a look at the database may take before it counts as away. */
export const LOOK_MS = 2_000
const QUERY_MS = 30_000

const TYPES = {
  // Revisions are bigint there, and far from what a number can hold.
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format as 'text'),
}

/** A pool whose failures are StoreErrors, and which is used once the schema is known to be right. */
export class Database {
  readonly #pool: pg.Pool
  readonly #options: PostgresOptions
  readonly #Client: new () => pg.Client
  #ready: Promise<void> | undefined

  constructor(options: PostgresOptions) {
    this.#options = options
    const config = clientConfig(options)
    this.#Client = clientOf(config, options.tls)
    this.#pool = new pg.Pool({
      ...config,
      Client: this.#Client,
      max: options.poolSize ?? DEFAULT_POOL_SIZE,
      idleTimeoutMillis: 60_000,
      // A server that does not answer does not let go of a connection, and would keep a process that has stopped.
      allowExitOnIdle: true,
    })
    // An idle connection that breaks is replaced when the next one is needed.
    this.#pool.on('error', () => {})
  }

  async query<T>(text: string, values: readonly unknown[] = [], ms = QUERY_MS): Promise<T[]> {
    return explained(async () => {
      await this.#prepare()
      return send<T>(this.#pool, text, values, ms)
    })
  }

  /** A look at one row. Where that is refused, the connection is not used again: the next one may lead elsewhere. */
  async look<T, R>(text: string, take: (row: T | undefined) => R): Promise<R> {
    return explained(async () => {
      await this.#prepare()
      return onOne(this.#pool, async (client) => take((await send<T>(client, text, [], LOOK_MS))[0]))
    })
  }

  /** All or nothing, on one connection. */
  async transact<T>(begin: string, run: (query: Query) => Promise<T>): Promise<T> {
    return explained(async () => {
      await this.#prepare()
      return transaction(this.#pool, begin, run)
    })
  }

  /** A connection of its own, for what a pool cannot do. */
  connect(): pg.Client {
    return new this.#Client()
  }

  async end(): Promise<void> {
    await this.#pool.end()
  }

  /** Once, and again after a failure. */
  #prepare(): Promise<void> {
    this.#ready ??= this.#setUp().catch((error) => {
      this.#ready = undefined
      throw error
    })
    return this.#ready
  }

  async #setUp(): Promise<void> {
    const { write, warn } = this.#options
    if (write) await migrate(this.#pool)
    else await checkSchema(this.#pool)
    const [row] = await send<{ fsync: string }>(
      this.#pool,
      "SELECT current_setting('fsync') AS fsync",
      [],
      LOOK_MS,
    )
    if (row?.fsync === 'off')
      warn?.('the database runs with fsync=off: a crash of its host can lose or damage what was written')
  }
}

/** Whatever the default of the database is: who waits for a lock is to see what was done meanwhile. */
export const READ_COMMITTED = 'BEGIN ISOLATION LEVEL READ COMMITTED'

export type Query = <T>(text: string, values?: readonly unknown[]) => Promise<T[]>

async function send<T>(
  on: pg.Pool | pg.PoolClient,
  text: string,
  values: readonly unknown[] = [],
  ms = QUERY_MS,
): Promise<T[]> {
  const query = { text, values: [...values], query_timeout: ms }
  return (await on.query(query)).rows as T[]
}

async function transaction<T>(pool: pg.Pool, begin: string, run: (query: Query) => Promise<T>): Promise<T> {
  return onOne(pool, async (client) => {
    await send(client, begin)
    const result = await run((text, values) => send(client, text, values))
    await send(client, 'COMMIT')
    return result
  })
}

async function onOne<T>(pool: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  // It breaks between two queries: the next one tells.
  const broke = (): void => {}
  client.on('error', broke)
  let failure: Error | undefined
  try {
    return await run(client)
  } catch (error) {
    failure = error as Error
    throw error
  } finally {
    client.off('error', broke)
    // A connection that failed is thrown away, and with it the transaction.
    client.release(failure)
  }
}

function clientConfig({
  url: text,
  passwordFile,
  tls = { mode: 'disable' },
}: PostgresOptions): pg.ClientConfig {
  const url = new URL(text)
  const read = (part: string): string => decodeURIComponent(part)
  const host = url.searchParams.get('host') ?? (read(url.hostname).replace(/^\[(.*)\]$/, '$1') || 'localhost')
  const verifiesHost = tls.mode === 'verify-full'
  const verifies = verifiesHost || tls.mode === 'verify-ca' || tls.ca !== undefined
  return {
    host,
    port: Number(url.port || url.searchParams.get('port') || 5432),
    user: read(url.username) || 'postgres',
    database: read(url.pathname.slice(1)),
    ...(passwordFile
      ? { password: () => readPassword(passwordFile) }
      : url.password !== '' && { password: read(url.password) }),
    ssl:
      tls.mode === 'disable'
        ? false
        : {
            rejectUnauthorized: verifies,
            ...(!verifiesHost && { checkServerIdentity: () => undefined }),
          },
    application_name: 'flux-resourceset',
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: TYPES as pg.CustomTypesConfig,
  }
}

/** Certificates are renewed while the process runs: they are read for every connection, and fail no more than that. */
function clientOf(config: pg.ClientConfig, tls: PostgresOptions['tls']): new () => pg.Client {
  return class extends pg.Client {
    constructor() {
      super(config)
    }

    // biome-ignore lint/suspicious/noExplicitAny: with a callback it answers nothing, and a promise without one
    override connect(callback?: any): any {
      try {
        if (config.ssl) Object.assign(config.ssl, readCertificates(tls))
      } catch (error) {
        if (!callback) return Promise.reject(error)
        return process.nextTick(callback, error)
      }
      if (!callback) return super.connect()
      return super.connect((error: Error | undefined, ...more: unknown[]) => {
        // What fails on this side leaves a connection that the server goes on waiting for.
        if (error) (this as unknown as { connection: { stream: Duplex } }).connection.stream.destroy()
        callback(error, ...more)
      })
    }
  }
}

function readCertificates({ ca, cert, key }: Partial<NonNullable<PostgresOptions['tls']>> = {}) {
  const files = Object.entries({ ca, cert, key }).filter(
    (file): file is [string, string] => file[1] !== undefined,
  )
  return Object.fromEntries(
    files.map(([name, path]) => {
      try {
        return [name, readFileSync(path)]
      } catch (error) {
        throw unreadable('DATABASE_URL', path, error as Error)
      }
    }),
  )
}

async function readPassword(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (error) {
    throw unreadable('DATABASE_PASSWORD_FILE', path, error as Error)
  }
}

/** It may be on its way: a Secret that is being mounted or exchanged. */
function unreadable(variable: string, path: string, cause: Error): StoreError {
  const message = `the file ${path} that ${variable} names cannot be read: ${cause.message}`
  return new StoreError(message, { cause, isTransient: true })
}

/** Any number; it only has to be the same in all versions of this program. */
const MIGRATION_LOCK = 7_205_148_301
const FOLDER = new URL('../migrations/', import.meta.url)

/** In order; each says which version a program must know of at least to work with what it leaves. */
const MIGRATIONS = readdirSync(FOLDER)
  .filter((name) => /^postgres-\d+\.sql$/.test(name))
  .sort()
  .map((name) => {
    const sql = readFileSync(new URL(name, FOLDER), 'utf8')
    return { sql, from: Number(/^-- Works with programs from version: (\d+)/.exec(sql)?.[1]) }
  })

export interface Schema {
  readonly version: number
  /** The version that a program must know of at least. */
  readonly from: number
}

export const SCHEMA =
  'SELECT version, works_from AS "from" FROM flux_resourceset.migrations ORDER BY version DESC LIMIT 1'

async function schemaOf(query: Query): Promise<Schema> {
  const [found] = await query<{ ours: boolean; theirs: boolean; encoding: string }>(`
    SELECT to_regclass('flux_resourceset.migrations') IS NOT NULL AS ours,
      current_setting('server_encoding') AS encoding,
      EXISTS (SELECT 1 FROM information_schema.tables WHERE table_schema = 'flux_resourceset') AS theirs`)
  // Another one would work until somebody writes a character that it does not have.
  if (found?.encoding !== 'UTF8')
    throw new StoreError(
      `the encoding of the database is ${found?.encoding}, and has to be UTF8: create one with TEMPLATE template0 ENCODING 'UTF8'`,
    )
  if (!found?.ours && found?.theirs)
    throw new StoreError('the schema flux_resourceset of the database is of another program')
  if (!found?.ours) return { version: 0, from: 0 }
  const [last] = await query<Schema>(SCHEMA)
  return last ?? { version: 0, from: 0 }
}

/** Also of a process that runs already: what it would write there, or take out of it, may be wrong. */
export function refuseNewer({ version, from }: Schema): void {
  const known = MIGRATIONS.length
  if (version > known && from > known)
    throw new StoreError(
      `the schema of the database is version ${version}, which needs a program that knows ${from} or more, and this one knows ${known}: upgrade the program`,
    )
}

async function checkSchema(pool: pg.Pool): Promise<void> {
  const schema = await schemaOf((text, values) => send(pool, text, values, LOOK_MS))
  refuseNewer(schema)
  if (schema.version < MIGRATIONS.length)
    throw new StoreError(
      `the schema of the database is version ${schema.version}, and this program needs ${MIGRATIONS.length}: run flux-resourceset migrate, or start a process in crud mode`,
      { isTransient: true },
    )
}

/** Applies what is missing, once, whoever else is starting. */
async function migrate(pool: pg.Pool): Promise<Migrated> {
  const known = MIGRATIONS.length
  const seen = await schemaOf((text, values) => send(pool, text, values, LOOK_MS))
  refuseNewer(seen)
  if (seen.version >= known) return { from: seen.version, to: seen.version }
  return transaction(pool, READ_COMMITTED, async (query) => {
    await query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK])
    const schema = await schemaOf(query)
    refuseNewer(schema)
    if (schema.version === 0) {
      const [row] = await query<{ there: boolean }>(
        "SELECT to_regnamespace('flux_resourceset') IS NOT NULL AS there",
      )
      if (!row?.there) await query('CREATE SCHEMA flux_resourceset')
      await query(`CREATE TABLE flux_resourceset.migrations
        (version integer PRIMARY KEY, works_from integer NOT NULL, applied timestamptz NOT NULL DEFAULT now())`)
    }
    for (const [i, { sql, from }] of MIGRATIONS.entries()) {
      if (i < schema.version) continue
      await query(sql)
      await query('INSERT INTO flux_resourceset.migrations (version, works_from) VALUES ($1, $2)', [
        i + 1,
        from,
      ])
    }
    return { from: schema.version, to: Math.max(schema.version, known) }
  })
}

/** Brings a database up to date and lets go of it. */
export async function migratePostgres(options: Omit<PostgresOptions, 'write'>): Promise<Migrated> {
  const config = clientConfig({ ...options, write: true })
  const pool = new pg.Pool({ ...config, Client: clientOf(config, options.tls), max: 1 })
  pool.on('error', () => {})
  try {
    return await explained(() => migrate(pool))
  } finally {
    await pool.end()
  }
}

/** What PostgreSQL and the network say, in the words of an operator; `away` may be over soon. */
const PROBLEMS: Record<string, { readonly message: string; readonly away?: true }> = {
  '28P01': { message: 'the database refuses the password: check DATABASE_URL or DATABASE_PASSWORD_FILE' },
  '28000': { message: 'the database refuses the user: check DATABASE_URL and its pg_hba.conf' },
  '3D000': { message: 'there is no such database: create it, or check DATABASE_URL' },
  '42501': {
    message: 'the user of DATABASE_URL may not do this in the database: grant it the schema flux_resourceset',
  },
  '3F000': { message: 'the schema flux_resourceset of the database is gone: restore it from a backup' },
  '42P01': {
    message: 'a table of the schema flux_resourceset is gone from the database: restore it from a backup',
  },
  '53100': { message: 'the disk of the database is full: make room and try again' },
  '53200': { message: 'the database is out of memory', away: true },
  '53300': {
    message: 'the database has too many connections: raise max_connections or lower DATABASE_POOL_SIZE',
    away: true,
  },
  '25006': { message: 'the database takes no writes: it is a standby, or read-only', away: true },
  '55P03': {
    message: 'another commit is in the way: it is large, or the database waits for its standby',
    away: true,
  },
  '57P01': { message: 'the database is shutting down', away: true },
  '57P02': { message: 'the database crashed and is recovering', away: true },
  '57P03': { message: 'the database is starting up or shutting down', away: true },
  ECONNREFUSED: { message: 'the database refuses connections', away: true },
  ECONNRESET: { message: 'the connection to the database broke', away: true },
  EPIPE: { message: 'the connection to the database broke', away: true },
  ENOTFOUND: { message: 'the host of the database has no address', away: true },
  EAI_AGAIN: { message: 'the host of the database cannot be resolved now', away: true },
  ETIMEDOUT: { message: 'the database cannot be reached in time', away: true },
  EHOSTUNREACH: { message: 'the host of the database cannot be reached', away: true },
  ENETUNREACH: { message: 'the network of the database cannot be reached', away: true },
  ENOENT: { message: 'the socket of the database is not there', away: true },
}

/** The driver knows these by their text only. */
const BROKEN = /timeout|terminated|Connection ended|not queryable|closed|socket hang up|disconnected/i

/** Another transaction got in the way: the same again may well work. */
export function isCollision(error: unknown): boolean {
  const { code } = error as { code?: string }
  return code === '40001' || code === '40P01' || code === '23502'
}

async function explained<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw toStoreError(error)
  }
}

function toStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error
  const cause = error as Error & { code?: string; errors?: readonly { code?: string }[] }
  const code = cause.code ?? cause.errors?.[0]?.code ?? ''
  const known = PROBLEMS[code]
  if (known) return new StoreError(known.message, { cause, isTransient: known.away ?? false })
  if (/does not support SSL/.test(cause.message))
    return new StoreError(
      'the database does not speak TLS: set sslmode=disable in DATABASE_URL if that is meant',
      {
        cause,
      },
    )
  if (/client password must be/.test(cause.message))
    return new StoreError(
      'the database wants a password: give one in DATABASE_PASSWORD_FILE or in DATABASE_URL',
      { cause },
    )
  if (/CERT|SIGNATURE|ERR_TLS/.test(code))
    return new StoreError(
      `the certificate of the database is not trusted (${cause.message}): check sslrootcert and sslmode in DATABASE_URL`,
      { cause },
    )
  if (code.startsWith('08') || (!/^[0-9A-Z]{5}$/.test(code) && BROKEN.test(cause.message)))
    return new StoreError(`the connection to the database broke: ${cause.message}`, {
      cause,
      isTransient: true,
    })
  return new StoreError(`the database failed: ${cause.message}`, { cause })
}
