// What PostgreSQL and the network report, in the words of an operator.
import { StoreError } from '../store.ts'

/** By SQLSTATE, or by Node's error code. */
const PROBLEMS: Record<string, { readonly message: string; readonly isTransient?: true }> = {
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
  '53200': { message: 'the database is out of memory', isTransient: true },
  '53300': {
    message: 'the database has too many connections: raise max_connections or lower DATABASE_POOL_SIZE',
    isTransient: true,
  },
  '25006': { message: 'the database takes no writes: it is a standby, or read-only', isTransient: true },
  '55P03': {
    message: 'another commit is in the way: it is large, or the database waits for its standby',
    isTransient: true,
  },
  '57P01': { message: 'the database is shutting down', isTransient: true },
  '57P02': { message: 'the database crashed and is recovering', isTransient: true },
  '57P03': { message: 'the database is starting up or shutting down', isTransient: true },
  // Raised by a trigger of ours.
  FR001: {
    message:
      'a program of an earlier version uses the database too, and knows nothing of rollouts and holds: upgrade every process first',
  },
  ECONNREFUSED: { message: 'the database refuses connections', isTransient: true },
  ECONNRESET: { message: 'the connection to the database broke', isTransient: true },
  EPIPE: { message: 'the connection to the database broke', isTransient: true },
  ENOTFOUND: { message: 'the host of the database has no address', isTransient: true },
  EAI_AGAIN: { message: 'the host of the database cannot be resolved now', isTransient: true },
  ETIMEDOUT: { message: 'the database cannot be reached in time', isTransient: true },
  EHOSTUNREACH: { message: 'the host of the database cannot be reached', isTransient: true },
  ENETUNREACH: { message: 'the network of the database cannot be reached', isTransient: true },
  ENOENT: { message: 'the socket of the database is not there', isTransient: true },
}

/** The driver knows these by their text only. */
const BROKEN = /timeout|terminated|Connection ended|not queryable|closed|socket hang up|disconnected/i

/** Whether another transaction got in the way, so that a retry may succeed. */
export function isCollision(error: unknown): boolean {
  const { code } = error as { code?: string }
  return code === '40001' || code === '40P01' || code === '23502'
}

/** Runs something whose failures become StoreErrors. */
export async function withStoreErrors<T>(run: () => Promise<T>): Promise<T> {
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
  if (known) return new StoreError(known.message, { cause, isTransient: known.isTransient ?? false })
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
