// The fleets whose polls are measured, and which of their clusters poll.
import { join } from 'node:path'
import { clusterDns, clusterToken, type FleetKind, writeFleet } from '../fleet.ts'
import { startService, type Target, TOKEN } from '../server-process.ts'
import type { TlsFiles } from './peers.ts'

export interface Poll {
  readonly dns: string
  readonly path: string
  /** The cluster's own. */
  readonly token: string
}

/** More clusters than this say nothing new: caches of the processor are long exceeded. */
export const MOST_CLUSTERS = 100_000

/** As the service has it by default. */
const CACHE_MB = 64
/** What the compressed answer of a cluster takes. */
const ANSWER_KB = 1.1

/** The cache of answers. If only some clusters poll, it has their share of the room: as many find theirs as if all did. */
export function cacheMegabytes(size: number, hasRoomForAll = false): number {
  const polled = Math.min(size, MOST_CLUSTERS)
  const room = hasRoomForAll ? Math.ceil((polled * ANSWER_KB) / 1000) : CACHE_MB * (polled / size)
  return Math.max(1, Math.round(room))
}

/** Whether the default cache has room for the answers of all clusters. */
export function fitsCache(size: number): boolean {
  return cacheMegabytes(size, true) <= cacheMegabytes(size)
}

/** Random clusters of a fleet, the same ones each time. */
export function pollsOf(size: number): Poll[] {
  const numbers = Array.from({ length: Math.min(size, MOST_CLUSTERS) }, (_, i) =>
    size <= MOST_CLUSTERS ? i : Math.floor(random(i) * size),
  )
  for (let i = numbers.length - 1; i > 0; i--) {
    const other = Math.floor(random(-i) * (i + 1))
    const moved = numbers[i] as number
    numbers[i] = numbers[other] as number
    numbers[other] = moved
  }
  return numbers.map((n) => ({
    dns: clusterDns(n),
    path: `/api/v2/flux/clusters/${clusterDns(n)}/platform-components`,
    token: clusterToken(n),
  }))
}

function random(n: number): number {
  let mixed = Math.imul(n ^ 0x5bf03635, 0x9e3779b1)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x85ebca77)
  return ((mixed ^ (mixed >>> 13)) >>> 0) / 2 ** 32
}

/** Lines for the client. */
export function pollLines(polls: readonly Poll[], isShared: boolean): string {
  return polls.map(({ path, token }) => `${path} ${isShared ? TOKEN : token}\n`).join('')
}

export async function writeDatabase(folder: string, size: number, kind: FleetKind): Promise<string> {
  const database = join(folder, `${kind}-${size}.db`)
  await writeFleet(database, size, kind === 'lived-in', kind)
  return `sqlite://${database}`
}

/** Our service; with TLS its probes are on a port beside. */
export function startOurs(
  name: string,
  database: string,
  port: number,
  cacheMb: number,
  tls?: TlsFiles,
  adminPort?: number,
): Promise<Target> {
  const settings = {
    ANSWER_CACHE_MB: String(cacheMb),
    ...(tls && {
      TLS_CERT_FILE: tls.cert,
      TLS_KEY_FILE: tls.key,
      ADMIN_LISTEN_ADDR: `127.0.0.1:${adminPort}`,
    }),
  }
  return startService(name, database, port, 'inherit', settings)
}
