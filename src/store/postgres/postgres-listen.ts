// Hearing of other processes' commits in PostgreSQL.
import { setTimeout as sleep } from 'node:timers/promises'
import { backoff } from '../../runtime/backoff.ts'
import type { Database } from './postgres-database.ts'
import { CHANNEL } from './postgres-writer.ts'

/** Delays before listening again. */
const FIRST_DELAY_MS = 500
const MAX_DELAY_MS = 15_000

/** Only a hint: a process that checks the head once in a while misses nothing where there is no such connection. */
export function listen(db: Database, moved: () => void): () => void {
  const stopped = new AbortController()
  void listenUntil(stopped.signal, db, moved)
  return () => stopped.abort()
}

async function listenUntil(signal: AbortSignal, db: Database, moved: () => void): Promise<void> {
  const delays = backoff({ first: FIRST_DELAY_MS, max: MAX_DELAY_MS })
  while (!signal.aborted) {
    const begun = performance.now()
    await listenOnce(signal, db, moved).catch(() => {})
    if (performance.now() - begun > MAX_DELAY_MS) delays.reset()
    await sleep(delays.next(), undefined, { signal, ref: false }).catch(() => {})
  }
}

/** Returns when the connection ends. */
async function listenOnce(signal: AbortSignal, db: Database, moved: () => void): Promise<void> {
  const client = db.connect()
  const ended = new Promise<void>((resolve) => {
    client.once('end', resolve)
    // It may break more than once, and nobody else listens.
    client.on('error', () => resolve())
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
  try {
    await client.connect()
    client.on('notification', moved)
    await client.query(`LISTEN ${CHANNEL}`)
    // Earlier notifications were missed.
    moved()
    await ended
  } finally {
    // Waiting for a connection that is gone can take for ever; the method is missing from the types.
    ;(client as unknown as { unref(): void }).unref()
    void client.end().catch(() => {})
  }
}
