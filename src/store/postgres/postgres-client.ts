// Connections to a PostgreSQL database: where it is, and with which password and certificates.
import type { Duplex } from 'node:stream'
import pg from 'pg'
import { readCredential } from '../../runtime/credential-files.ts'
import { StoreError } from '../store.ts'

export interface PostgresOptions {
  /** postgres://user:password@host:port/database, without the parameters for TLS. */
  readonly url: string
  /** The file with the password; read again for every connection. */
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
  /** Called with what is unsafe about the database's settings. */
  readonly warn?: (message: string) => void
}

const CONNECT_MS = 5_000
/** Triggers of the schema know programs that serve no rollouts by their former name: without the number. */
const APPLICATION_NAME = 'flux-resourceset/5'

const TYPES = {
  // Revisions are of type bigint, and far below Number.MAX_SAFE_INTEGER.
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format as 'text'),
}

export function clientConfig({
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
      ? { password: async () => readNamed('DATABASE_PASSWORD_FILE', passwordFile).trim() }
      : url.password !== '' && { password: read(url.password) }),
    ssl:
      tls.mode === 'disable'
        ? false
        : {
            rejectUnauthorized: verifies,
            ...(!verifiesHost && { checkServerIdentity: () => undefined }),
          },
    application_name: APPLICATION_NAME,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: TYPES as pg.CustomTypesConfig,
  }
}

/** Reads the certificates for every connection, as they are renewed while the process runs; a bad file fails only that one. */
export function clientOf(config: pg.ClientConfig, tls: PostgresOptions['tls']): new () => pg.Client {
  return class extends pg.Client {
    constructor() {
      super(config)
    }

    // biome-ignore lint/suspicious/noExplicitAny: with a callback it returns nothing, and a promise without one
    override connect(callback?: any): any {
      try {
        if (config.ssl) Object.assign(config.ssl, readCertificates(tls))
      } catch (error) {
        if (!callback) return Promise.reject(error)
        return process.nextTick(callback, error)
      }
      if (!callback) return super.connect()
      return super.connect((error: Error | undefined, ...more: unknown[]) => {
        // After a failure on this side the server would keep the connection open.
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
  return Object.fromEntries(files.map(([name, path]) => [name, readNamed('DATABASE_URL', path)]))
}

/** The error is transient: a Secret may be being mounted or replaced. */
function readNamed(variable: string, path: string): string {
  const read = readCredential(path)
  if (read.ok) return read.text
  const { cause } = read
  const message = `the file ${path} that ${variable} names cannot be read: ${cause.message}`
  throw new StoreError(message, { cause, isTransient: true })
}
