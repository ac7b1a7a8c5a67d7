// The streams of revisions: each new revision is read once for all of them, and a slow stream holds up no other.

import type { ServerResponse } from 'node:http'
import { setImmediate as breathe, setTimeout as sleep } from 'node:timers/promises'
import { CHANGES_IN_LIST } from '../../api/limits.ts'
import { fail, type Result, succeed } from '../../base/problem.ts'
import type { RecordedRevision } from '../../engine/past.ts'
import type { Sender } from '../../engine/write-queue.ts'
import { inLane } from '../load/callers.ts'
import { presentRevision } from '../request/present-revision.ts'
import type { Service } from '../service.ts'
import { RolloutStates } from './rollout-states.ts'
import { presentRollout, presentTransition } from './status-events.ts'

interface How {
  readonly idsOnly: boolean
  /** Whether transitions of clusters are sent too. */
  readonly withStatus: boolean
  /** Whose turn the reads of earlier revisions take. */
  readonly sender: Sender
}

/** Whether a stream may go on: a fast check before each revision, a thorough one with each heartbeat. */
export interface Check {
  before(): boolean
  thorough(): boolean | Promise<boolean>
}

interface Watcher {
  readonly response: ServerResponse
  readonly check: Check
  readonly how: How
  /** The last revision that was sent to it. */
  sent: number
  /** Since when its buffer has been full; undefined while it reads. */
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
/** How long to wait after a failure to read the log. */
const PAUSE_MS = 1000
/** How long a client may take to read the last bytes of a stream before its connection is closed. */
const LINGER_MS = 1000

export class Watchers {
  readonly #service: Service
  readonly #heartbeatMs: number
  readonly #unsentBytes: number
  readonly #stuckMs: number
  readonly #unsubscribe: readonly (() => void)[]
  readonly #all = new Set<Watcher>()
  /** Streams that have everything up to `#published`; the others are still catching up. */
  readonly #live = new Set<Watcher>()
  /** Live streams that transitions are sent to, and those that are still to be sent. */
  readonly #statusStreams = new Set<Watcher>()
  #transitions: string[] = []
  readonly #rollouts: RolloutStates
  #isTelling = false
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
    const { engine, types } = service
    this.#rollouts = new RolloutStates(types, engine.state)
    this.#unsubscribe = [
      engine.subscribe(() => {
        for (const changed of this.#rollouts.changes())
          this.#tell(() => presentRollout(changed, service.now()))
        void this.#publishAll()
      }),
      engine.fleet.fleet.subscribe((transition) => this.#tell(() => presentTransition(transition))),
    ]
  }

  /** Sends every revision after this one, until either side ends the stream; with `idsOnly` only its number. */
  add(response: ServerResponse, after: number, check: Check, how: How): void {
    const watcher: Watcher = { response, check, how, sent: after, stuckSince: undefined }
    this.#all.add(watcher)
    this.#service.metrics.noteWatchers(this.#all.size)
    this.#heart ??= setInterval(() => this.#beat(), this.#heartbeatMs).unref()
    response.on('drain', () => {
      watcher.stuckSince = undefined
    })
    response.once('close', () => this.#forget(watcher))
    // A write to a closed connection fails; the `close` event handles it.
    response.on('error', () => {})
    this.#sendEarlier(watcher).catch((error: unknown) => {
      this.#service.log.error({ err: error }, 'revisions could not be read for a stream of /watch')
      this.#end(watcher)
    })
  }

  /** Ends all streams, so that the server can close. */
  endAll(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
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
      this.#service.log.error({ err: error }, 'revisions could not be sent to streams of /watch')
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
    // A stream that joins during the loop has everything up to `#published`, and the loop reaches it too.
    for (const watcher of this.#live) {
      this.#send(watcher, event)
      if (++written % STREAMS_PER_SLICE === 0) await breathe()
    }
    this.#published = event.revision
    await breathe()
  }

  #send(watcher: Watcher, { revision, text }: Event): void {
    if (revision <= watcher.sent || !this.#mayTake(watcher)) return
    watcher.sent = revision
    this.#write(watcher, watcher.how.idsOnly ? Buffer.from(`id: ${revision}\n\n`) : text)
  }

  /** Ends a stream that may not go on, and cuts one that nobody reads. */
  #mayTake(watcher: Watcher): boolean {
    if (!this.#all.has(watcher)) return false
    if (!watcher.check.before()) this.#end(watcher)
    else if (watcher.response.writableLength > this.#unsentBytes) this.#drop(watcher)
    else return true
    return false
  }

  /** Those that become known at once are sent at once: after a change of the whole fleet there are very many. */
  #tell(present: () => string): void {
    if (this.#statusStreams.size === 0) return
    this.#transitions.push(present())
    if (this.#isTelling) return
    this.#isTelling = true
    breathe()
      .then(() => this.#publishTransitions())
      .catch((error: unknown) =>
        this.#service.log.error({ err: error }, 'transitions could not be sent to streams of /watch'),
      )
      .finally(() => {
        this.#isTelling = false
      })
  }

  async #publishTransitions(): Promise<void> {
    while (this.#transitions.length > 0) {
      const text = Buffer.from(this.#transitions.join(''))
      this.#transitions = []
      let written = 0
      for (const watcher of this.#statusStreams) {
        if (this.#mayTake(watcher)) this.#write(watcher, text)
        if (++written % STREAMS_PER_SLICE === 0) await breathe()
      }
    }
  }

  #write(watcher: Watcher, text: Buffer): void {
    if (!watcher.response.write(text)) watcher.stuckSince ??= performance.now()
  }

  /** Sends earlier revisions to one stream, at the pace of its reader, until it is live. */
  async #sendEarlier(watcher: Watcher): Promise<void> {
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
    if (watcher.how.withStatus) this.#statusStreams.add(watcher)
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
    this.#statusStreams.delete(watcher)
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

/** Resolves when the buffer is empty or the connection has closed. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })
}
