// Queries on a connection, with a time limit, and transactions.
import type pg from 'pg'

/** The schema that all tables are in. */
export const S = 'flux_resourceset'
/** Time limit of a quick query, after which the database counts as unavailable. */
export const QUICK_MS = 2_000
const QUERY_MS = 30_000

/** Explicit, not the database's default: a transaction that waited for a lock must see what was committed meanwhile. */
export const READ_COMMITTED = 'BEGIN ISOLATION LEVEL READ COMMITTED'

export type Query = <T>(text: string, values?: readonly unknown[]) => Promise<T[]>

export async function send<T>(
  on: pg.Pool | pg.PoolClient,
  text: string,
  values: readonly unknown[] = [],
  ms = QUERY_MS,
): Promise<T[]> {
  const query = { text, values: [...values], query_timeout: ms }
  return (await on.query(query)).rows as T[]
}

export async function transaction<T>(
  pool: pg.Pool,
  begin: string,
  run: (query: Query) => Promise<T>,
): Promise<T> {
  return onOne(pool, async (client) => {
    await send(client, begin)
    const result = await run((text, values) => send(client, text, values))
    await send(client, 'COMMIT')
    return result
  })
}

/** Runs something on one connection of the pool. */
export async function onOne<T>(pool: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  // A connection that breaks between two queries fails the next one.
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
    // A connection that failed is closed, which rolls its transaction back.
    client.release(failure)
  }
}
