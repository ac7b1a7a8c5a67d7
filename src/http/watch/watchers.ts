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

export class Watchers {
  readonly #service: Service
  readonly #heartbeatMs: number
  readonly #unsentBytes: number
  readonly #stuckMs: number
  readonly #unsubscribe: () => void
  readonly #all = new Set<Watcher>()
  /** Those who have everything up to `#published`; the others are still reading what came before. */
  readonly #live = new Set<Watcher>()
  #published: number
  #isPublishing = false
  #heart: NodeJS.Timeout | undefined

  constructor(service: Service) {
    this.#service = service
    const { heartbeatMs = HEARTBEAT_MS, unsentBytes = UNSENT_BYTES, stuckMs = STUCK_MS } = service.limits
    this.#heartbeatMs = heartbeatMs
    this.#unsentBytes = unsentBytes
    this.#stuckMs = stuckMs
    this.#published = service.engine.state.revision
    this.#unsubscribe = service.engine.subscribe(() => void this.#publishAll())
  }

  /** Sends every revision after this one, until either side ends it; with `idsOnly` nothing of it but its number. */
  add(response: ServerResponse, after: number, check: Check, how: How): void {
    const watcher: Watcher = { response, check, how, sent: after, stuckSince: undefined }
    this.#all.add(watcher)
    this.#service.metrics.noteWatchers(this.#all.size)
    this.#heart ??= setInterval(() => this.#beat(), this.#heartbeatMs).unref()
    response.on('drain', () => {
      watcher.stuckSince = undefined
    })
    response.once('close', () => this.#forget(watcher))
    // At the end of a connection that is gone already; its close is what counts.
    response.on('error', () => {})
    this.#catchUp(watcher).catch((error: unknown) => {
      this.#service.log.error({ err: error }, 'revisions could not be read for somebody who watches')
      this.#end(watcher)
    })
  }

  /** Ends all streams, so that the server can close. */
  endAll(): void {
    this.#unsubscribe()
    for (const watcher of this.#all) this.#end(watcher)
  }

  #present(recorded: RecordedRevision): Event {
    const { revision } = recorded
    const data = JSON.stringify(presentRevision(this.#service.types, recorded))
    return { revision, text: Buffer.from(`id: ${revision}\nevent: revision\ndata: ${data}\n\n`) }
  }

  /** Some of the revisions after one, in order and without gaps. */
  #read(after: number): Promise<Result<Event[]>> {
    const limit = Math.min(PAGE, this.#service.engine.state.revision - after)
    return this.#service.engine.inspect(async (past) => {
      const query = { before: after + limit + 1, limit, changeLimit: CHANGES_IN_LIST }
      const found = await past.history(query)
      if (found.at(-1)?.revision === after + 1)
        return succeed(found.reverse().map((recorded) => this.#present(recorded)))
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

  async #publishAll(): Promise<void> {
    if (this.#isPublishing) return
    this.#isPublishing = true
    try {
      while (this.#published < this.#service.engine.state.revision) await this.#publishSome()
    } catch (error) {
      this.#service.log.error({ err: error }, 'revisions could not be sent to those who watch')
      for (const watcher of this.#live) this.#end(watcher)
    } finally {
      this.#isPublishing = false
    }
  }

  async #publishSome(): Promise<void> {
    if (this.#live.size === 0) {
      this.#published = this.#service.engine.state.revision
      return
    }
    const events = await this.#read(this.#published)
    if (events.ok) for (const event of events.value) await this.#publish(event)
    else if (events.problem.code === 'gone') for (const watcher of this.#live) this.#end(watcher)
    else await sleep(PAUSE_MS, undefined, { ref: false })
  }

  async #publish(event: Event): Promise<void> {
    let written = 0
    // Whoever joins meanwhile has everything up to `published`, and is reached too.
    for (const watcher of this.#live) {
      this.#send(watcher, event)
      if (++written % STREAMS_PER_SLICE === 0) await breathe()
    }
    this.#published = event.revision
    await breathe()
  }

  #send(watcher: Watcher, { revision, text }: Event): void {
    if (revision <= watcher.sent || !this.#all.has(watcher)) return
    if (!watcher.check.before()) this.#end(watcher)
    else if (watcher.response.writableLength > this.#unsentBytes) this.#drop(watcher)
    else {
      watcher.sent = revision
      this.#write(watcher, watcher.how.idsOnly ? Buffer.from(`id: ${revision}\n\n`) : text)
    }
  }

  #write(watcher: Watcher, text: Buffer): void {
    if (!watcher.response.write(text)) watcher.stuckSince ??= performance.now()
  }

  /** Reads what came before on its own, at the pace of whoever reads the stream. */
  async #catchUp(watcher: Watcher): Promise<void> {
    while (this.#all.has(watcher) && watcher.sent < this.#published) {
      const events = await inLane(this.#service.admission.costly, watcher.how.sender, () =>
        this.#read(watcher.sent),
      )
      if (!events.ok && events.problem.code === 'gone') return this.#end(watcher)
      if (!events.ok) await sleep(PAUSE_MS, undefined, { ref: false })
      for (const event of events.ok ? events.value : []) {
        if (this.#all.has(watcher) && watcher.stuckSince !== undefined) await drained(watcher.response)
        this.#send(watcher, event)
      }
    }
    if (!this.#all.has(watcher)) return
    this.#live.add(watcher)
    void this.#publishAll()
  }

  async #beat(): Promise<void> {
    let looked = 0
    for (const watcher of this.#all) {
      this.#look(watcher)
      if (++looked % STREAMS_PER_SLICE === 0) await breathe()
    }
  }

  #look(watcher: Watcher): void {
    const allowed = watcher.check.thorough()
    const endUnless = (isAllowed: boolean): void => {
      if (!isAllowed) this.#end(watcher)
    }
    if (typeof allowed === 'boolean') endUnless(allowed)
    else allowed.then(endUnless, () => this.#end(watcher))
    if (!this.#all.has(watcher)) return
    const { stuckSince } = watcher
    if (stuckSince === undefined)
      this.#write(watcher, Buffer.from(`: revision ${this.#service.engine.state.revision}\n\n`))
    else if (performance.now() - stuckSince > this.#stuckMs) this.#drop(watcher)
  }

  #forget(watcher: Watcher): void {
    this.#live.delete(watcher)
    if (!this.#all.delete(watcher)) return
    this.#service.metrics.noteWatchers(this.#all.size)
    if (this.#all.size > 0) return
    clearInterval(this.#heart)
    this.#heart = undefined
  }

  #end(watcher: Watcher): void {
    if (!this.#all.has(watcher)) return
    this.#forget(watcher)
    watcher.response.end()
    setTimeout(() => watcher.response.destroy(), LINGER_MS).unref()
  }

  #drop(watcher: Watcher): void {
    this.#forget(watcher)
    this.#service.metrics.countDroppedWatcher()
    watcher.response.destroy()
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
