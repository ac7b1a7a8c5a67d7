// Everybody who follows the log as it grows: a revision is read once for all of them, and nobody waits for anybody.

import type { ServerResponse } from 'node:http'
import { setImmediate as breathe, setTimeout as sleep } from 'node:timers/promises'
import { CHANGES_IN_LIST } from '../../api/limits.ts'
import { fail, type Result, succeed } from '../../base/problem.ts'
import type { RecordedRevision } from '../../engine/past.ts'
import type { Sender } from '../../engine/write-queue.ts'
import { inLane } from '../load/callers.ts'
import { presentRevision } from '../request/present-revision.ts'
import type { Service } from '../service.ts'

interface Watchers {
  /** Sends every revision after this one, until either side ends it; as a bell nothing of it but its number. */
  add(response: ServerResponse, after: number, check: Check, how: How): void
  /** Ends all streams, so that the server can close. */
  endAll(): void
}

interface How {
  readonly idsOnly: boolean
  /** Whose turn it is to read what came before. */
  readonly sender: Sender
}

/** Whether a stream may go on: at once before a revision, with more care from time to time. */
export interface Check {
  before(): boolean
  thorough(): boolean | Promise<boolean>
}

interface Watcher {
  readonly response: ServerResponse
  readonly check: Check
  readonly how: How
  /** The last revision that it was sent. */
  sent: number
  /** Since when it has not read what it was sent. */
  stuckSince: number | undefined
}

interface Event {
  readonly revision: number
  readonly text: Buffer
}

const HEARTBEAT_MS = 15_000
const UNSENT_BYTES = 1024 * 1024
const STUCK_MS = 30_000
/** Revisions that are read from the log at once. */
const PAGE = 20
/** Streams that are written to before others get their turn. */
const STREAMS_PER_SLICE = 100
/** After a failure to read the log. */
const PAUSE_MS = 1000
/** For the last bytes of a stream; then whoever does not read them is left. */
const LINGER_MS = 1000

export function openWatchers(service: Service): Watchers {
  const { engine, types, metrics, limits, log } = service
  const { heartbeatMs = HEARTBEAT_MS, unsentBytes = UNSENT_BYTES, stuckMs = STUCK_MS } = limits
  const all = new Set<Watcher>()
  /** Those who have everything up to `published`; the others are still reading what came before. */
  const live = new Set<Watcher>()
  let published = engine.state.revision
  let isPublishing = false
  let heart: NodeJS.Timeout | undefined

  function present(recorded: RecordedRevision): Event {
    const { revision } = recorded
    const data = JSON.stringify(presentRevision(types, recorded))
    return { revision, text: Buffer.from(`id: ${revision}\nevent: revision\ndata: ${data}\n\n`) }
  }

  /** Some of the revisions after one, in order and without gaps. */
  function read(after: number): Promise<Result<Event[]>> {
    const limit = Math.min(PAGE, engine.state.revision - after)
    return engine.inspect(async (past) => {
      const query = { before: after + limit + 1, limit, changeLimit: CHANGES_IN_LIST }
      const found = await past.history(query)
      if (found.at(-1)?.revision === after + 1) return succeed(found.reverse().map(present))
      const known = await past.resolve({ revision: after }, 'the revision')
      return known.ok
        ? fail({
            code: 'unavailable',
            reason: 'log_incomplete',
            message: `no revision ${after + 1} in the log`,
          })
        : known
    })
  }

  async function publishAll(): Promise<void> {
    if (isPublishing) return
    isPublishing = true
    try {
      while (published < engine.state.revision) await publishSome()
    } catch (error) {
      log.error({ err: error }, 'revisions could not be sent to those who watch')
      for (const watcher of live) end(watcher)
    } finally {
      isPublishing = false
    }
  }

  async function publishSome(): Promise<void> {
    if (live.size === 0) {
      published = engine.state.revision
      return
    }
    const events = await read(published)
    if (events.ok) for (const event of events.value) await publish(event)
    else if (events.problem.code === 'gone') for (const watcher of live) end(watcher)
    else await sleep(PAUSE_MS, undefined, { ref: false })
  }

  async function publish(event: Event): Promise<void> {
    let written = 0
    // Whoever joins meanwhile has everything up to `published`, and is reached too.
    for (const watcher of live) {
      send(watcher, event)
      if (++written % STREAMS_PER_SLICE === 0) await breathe()
    }
    published = event.revision
    await breathe()
  }

  function send(watcher: Watcher, { revision, text }: Event): void {
    if (revision <= watcher.sent || !all.has(watcher)) return
    if (!watcher.check.before()) end(watcher)
    else if (watcher.response.writableLength > unsentBytes) drop(watcher)
    else {
      watcher.sent = revision
      write(watcher, watcher.how.idsOnly ? Buffer.from(`id: ${revision}\n\n`) : text)
    }
  }

  function write(watcher: Watcher, text: Buffer): void {
    if (!watcher.response.write(text)) watcher.stuckSince ??= performance.now()
  }

  /** Reads what came before on its own, at the pace of whoever reads the stream. */
  async function catchUp(watcher: Watcher): Promise<void> {
    while (all.has(watcher) && watcher.sent < published) {
      const events = await inLane(service.admission.costly, watcher.how.sender, () => read(watcher.sent))
      if (!events.ok && events.problem.code === 'gone') return end(watcher)
      if (!events.ok) await sleep(PAUSE_MS, undefined, { ref: false })
      for (const event of events.ok ? events.value : []) {
        if (all.has(watcher) && watcher.stuckSince !== undefined) await drained(watcher.response)
        send(watcher, event)
      }
    }
    if (!all.has(watcher)) return
    live.add(watcher)
    void publishAll()
  }

  async function beat(): Promise<void> {
    let looked = 0
    for (const watcher of all) {
      look(watcher)
      if (++looked % STREAMS_PER_SLICE === 0) await breathe()
    }
  }

  function look(watcher: Watcher): void {
    const allowed = watcher.check.thorough()
    const endUnless = (isAllowed: boolean): void => {
      if (!isAllowed) end(watcher)
    }
    if (typeof allowed === 'boolean') endUnless(allowed)
    else allowed.then(endUnless, () => end(watcher))
    if (!all.has(watcher)) return
    const { stuckSince } = watcher
    if (stuckSince === undefined) write(watcher, Buffer.from(`: revision ${engine.state.revision}\n\n`))
    else if (performance.now() - stuckSince > stuckMs) drop(watcher)
  }

  function forget(watcher: Watcher): void {
    live.delete(watcher)
    if (!all.delete(watcher)) return
    metrics.noteWatchers(all.size)
    if (all.size > 0) return
    clearInterval(heart)
    heart = undefined
  }

  function end(watcher: Watcher): void {
    if (!all.has(watcher)) return
    forget(watcher)
    watcher.response.end()
    setTimeout(() => watcher.response.destroy(), LINGER_MS).unref()
  }

  function drop(watcher: Watcher): void {
    forget(watcher)
    metrics.countDroppedWatcher()
    watcher.response.destroy()
  }

  const unsubscribe = engine.subscribe(() => void publishAll())
  return {
    add(response, after, check, how) {
      const watcher: Watcher = { response, check, how, sent: after, stuckSince: undefined }
      all.add(watcher)
      metrics.noteWatchers(all.size)
      heart ??= setInterval(beat, heartbeatMs).unref()
      response.on('drain', () => {
        watcher.stuckSince = undefined
      })
      response.once('close', () => forget(watcher))
      // At the end of a connection that is gone already; its close is what counts.
      response.on('error', () => {})
      catchUp(watcher).catch((error: unknown) => {
        log.error({ err: error }, 'revisions could not be read for somebody who watches')
        end(watcher)
      })
    },
    endAll() {
      unsubscribe()
      for (const watcher of all) end(watcher)
    },
  }
}

/** Resolves when everything is on its way, or never will be. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })
}
