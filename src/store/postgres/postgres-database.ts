// A PostgreSQL database as a pool of connections; its schema is checked or migrated before the first query.
import pg from 'pg'
import { clientConfig, clientOf, type PostgresOptions } from './postgres-client.ts'
import { withStoreErrors } from './postgres-errors.ts'
import { checkSchema, migrate } from './postgres-migrate.ts'
import { onOne, QUICK_MS, type Query, send, transaction } from './postgres-query.ts'

export const DEFAULT_POOL_SIZE = 10

/** A pool whose failures are StoreErrors; the schema is checked or migrated before the first query. */
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
      // A server that does not respond keeps its connection open, and with it a process that has stopped.
      allowExitOnIdle: true,
    })
    // An idle connection that breaks is replaced when the next one is needed.
    this.#pool.on('error', () => {})
  }

  async query<T>(text: string, values: readonly unknown[] = [], ms?: number): Promise<T[]> {
    return withStoreErrors(async () => {
      await this.#prepare()
      return send<T>(this.#pool, text, values, ms)
    })
  }

  /** Reads one row. When `take` throws, the connection is closed: a new one may lead to another server. */
  async readRow<T, R>(text: string, take: (row: T | undefined) => R): Promise<R> {
    return withStoreErrors(async () => {
      await this.#prepare()
      return onOne(this.#pool, async (client) => take((await send<T>(client, text, [], QUICK_MS))[0]))
    })
  }

  /** Runs a transaction on one connection. */
  async transact<T>(begin: string, run: (query: Query) => Promise<T>): Promise<T> {
    return withStoreErrors(async () => {
      await this.#prepare()
      return transaction(this.#pool, begin, run)
    })
  }

  /** A connection outside the pool, for LISTEN. */
  connect(): pg.Client {
    return new this.#Client()
  }

  async end(): Promise<void> {
    await this.#pool.end()
  }

  /** Checks or migrates the schema once; after a failure, again on the next call. */
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
      QUICK_MS,
    )
    if (row?.fsync === 'off')
      warn?.('the database runs with fsync=off: a crash of its host can lose or damage what was written')
  }
}
