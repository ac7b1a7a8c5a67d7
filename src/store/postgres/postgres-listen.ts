// Notifications of other processes' commits, by LISTEN in PostgreSQL.
import { setTimeout as sleep } from 'node:timers/promises'
import { backoff } from '../../runtime/backoff.ts'
import type { Database } from './postgres-database.ts'
import { CHANNEL } from './postgres-writer.ts'

/** Delays before listening again. */
const FIRST_DELAY_MS = 500
const MAX_DELAY_MS = 15_000

/** Notifications are only a hint: while the connection is broken, the checks of the head at an interval miss nothing. */
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
    // The client may emit more than one error, and without a listener each would be thrown.
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
    // A dead connection may never end, and must not keep the process alive; `unref` is missing from the types.
    ;(client as unknown as { unref(): void }).unref()
    void client.end().catch(() => {})
  }
}
