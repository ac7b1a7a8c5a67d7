// Mirror mode: another service's log, copied into a file of its own and followed over HTTPS.
import { closeSync, existsSync, openSync, rmSync, statSync, utimesSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isObject } from '../base/json.ts'
import { moveIntoPlace } from '../runtime/replace-file.ts'
import { openSqliteStore } from '../store/sqlite/sqlite.ts'
import { type Store, StoreError } from '../store/store.ts'
import type { ReplicationStatus } from './replication-status.ts'
import { standInFor } from './stand-in.ts'
import { importLog } from './transfer.ts'
import { linesOf, StreamError } from './transfer-lines.ts'

export interface MirrorOptions {
  /** Of the service to follow. */
  readonly url: string
  readonly token: () => string
  /** Only these clusters. */
  readonly selector: string | undefined
  /** Where everything is kept. */
  readonly path: string
  /** Told of the first failure after a success, and of the first success after a failure. */
  readonly onProblem: (error: Error) => void
  readonly onBack: () => void
}

export interface Mirror {
  /** Away until everything was copied once: half a history is an old one, which clusters must not go back to. */
  readonly store: Store
  /** How it stands to the upstream. */
  status(): ReplicationStatus
  stop(): Promise<void>
}

/** How often to ask without being told to: the stream of changes may be held back by something on the way. */
const LOOK_MS = 5_000
const MAX_PAUSE_MS = 30_000
const FIRST_PAUSE_MS = 500
/** Nothing comes for so long: the connection is dead. Heartbeats come more often. */
const SILENCE_MS = 45_000
/** What was not confirmed for so long may be old: the upstream is asked more often. */
const CONFIRMED_MS = 15_000
const NOTE_MS = 5_000

export function startMirror({ url, token, selector, path, onProblem, onBack }: MirrorOptions): Mirror {
  const stopped = new AbortController()
  const { signal } = stopped
  const movers = new Set<() => void>()
  const draft = `${path}.copy`
  // Its time is when the upstream last said that nothing is missing; that of the database changes for other reasons.
  const note = `${path}.seen`
  const found = existsSync(path) ? openSqliteStore({ path, write: true }) : undefined
  let store: Store | undefined
  /** The last revision that was copied, and the last one that the upstream is known to have. */
  let copied = 0
  let newest = 0
  let problem: string | undefined
  let confirmedAt = monotonic(timeOf(note) ?? timeOf(path) ?? Date.now())
  let notedAt = Number.NEGATIVE_INFINITY
  let rung = Promise.withResolvers<void>()

  function tell(): void {
    for (const moved of movers) moved()
  }

  function use(own: Store): void {
    store = own
    tell()
  }

  /** The state is known to be all there is, or to have been that so long ago: an upstream may be behind itself. */
  function confirm(stalenessMs: number): void {
    const now = performance.now()
    confirmedAt = now - stalenessMs
    if (problem !== undefined) onBack()
    problem = undefined
    if (now - notedAt < NOTE_MS) return
    notedAt = now
    try {
      const time = new Date(Date.now() - stalenessMs)
      closeSync(openSync(note, 'a'))
      utimesSync(note, time, time)
    } catch {
      // What is served will look older to the next process than it is.
    }
  }

  function fail(error: Error): void {
    if (signal.aborted) return
    if (problem === undefined || (!mayPass(error) && problem !== error.message)) onProblem(error)
    problem = error.message
  }

  async function ask(target: string): Promise<Response> {
    const headers = { authorization: `Bearer ${token()}` }
    const silence = new AbortController()
    const timer = setTimeout(() => silence.abort(), SILENCE_MS)
    try {
      const either = AbortSignal.any([signal, silence.signal])
      const response = await fetch(`${url}${target}`, { headers, redirect: 'error', signal: either })
      if (response.ok) return response
      throw await refusal(response)
    } catch (error) {
      throw error instanceof StoreError ? error : unreachable(error as Error)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Takes in all that is new. */
  async function pull(into: Store): Promise<void> {
    const { revision } = await into.head()
    const query = new URLSearchParams({ since: String(revision), ...(selector && { selector }) })
    const response = await ask(`/log?${query}`)
    // The page of a proxy on the way tells nothing of what is upstream.
    if (!response.headers.get('content-type')?.startsWith('application/x-ndjson')) {
      await response.body?.cancel()
      throw new StoreError('what answers is not flux-resourceset: is a proxy in the way?', {
        isTransient: true,
      })
    }
    const { head } = await importLog(into, linesOf(unlessSilent(response)))
    copied = head.revision
    newest = head.revision
    confirm(1000 * (Number(response.headers.get('x-state-age')) || 0))
  }

  async function pullOwn(own: Store): Promise<void> {
    try {
      await pull(own)
    } catch (error) {
      if (!isUnfit(error)) throw error
      const way = `what is here is served on as it is. To follow this upstream from now on all the same, stop this mirror, delete ${path} and start it again`
      throw new StoreError(`it ${error.message}; ${way}`, { cause: error })
    } finally {
      // Also what came before the lines broke off.
      tell()
    }
  }

  /** Again and again, until it worked once. */
  async function untilDone(run: () => Promise<void>): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; !signal.aborted; pause = Math.min(pause * 2, MAX_PAUSE_MS)) {
      try {
        return await run()
      } catch (error) {
        fail(error as Error)
      }
      await untilRung(pause * (0.5 + Math.random()))
    }
  }

  async function untilRung(ms: number): Promise<void> {
    await Promise.race([rest(ms), rung.promise])
    rung = Promise.withResolvers<void>()
  }

  function rest(ms: number): Promise<void> {
    return sleep(ms, undefined, { signal, ref: false }).catch(() => {})
  }

  /** What was copied before; a file without a revision may be of a copy that has only begun. */
  async function openFound(): Promise<void> {
    if (!found) return
    const { revision } = await found.head()
    if (revision === 0) return found.close()
    copied = revision
    newest = revision
    use(found)
  }

  async function copyAll(): Promise<void> {
    await fillDraft()
    // What is still in its log would be lost, and that would be half a history.
    if ((statSync(`${draft}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0)
      throw new StoreError(`${draft}-wal: could not be brought into the file beside it`)
    removeLogs(draft)
    removeLogs(path)
    await moveIntoPlace(draft, path)
    use(openSqliteStore({ path, write: true }))
  }

  async function fillDraft(): Promise<void> {
    const copy = openSqliteStore({ path: draft, write: true })
    const failure = await pull(copy).catch((error: Error) => error)
    await copy.close()
    if (!failure) return
    if (!isUnfit(failure)) throw failure
    // It was begun from another source; nobody has seen any of it.
    removeLogs(draft)
    rmSync(draft, { force: true })
    throw new StoreError(`it ${failure.message}; the copy is begun anew`, { cause: failure })
  }

  async function follow(): Promise<void> {
    await opened
    if (!store) await untilDone(copyAll)
    const own = store
    while (own && !signal.aborted) {
      await untilDone(() => pullOwn(own))
      await untilRung(LOOK_MS)
    }
  }

  /** The stream of changes is only a bell: what it tells of is pulled, and checked, like all else. */
  async function listen(): Promise<void> {
    while (!signal.aborted) {
      try {
        const response = await ask('/watch')
        rung.resolve()
        for await (const chunk of unlessSilent(response)) hear(Buffer.from(chunk).toString('latin1'))
      } catch {
        // Asking for the log tells what is wrong.
      }
      rung.resolve()
      await rest(LOOK_MS * (0.5 + Math.random()))
    }
  }

  function hear(text: string): void {
    const told = [...text.matchAll(/^(?:: revision|id:) (\d+)$/gm)]
    newest = Math.max(newest, ...told.map(([, revision]) => Number(revision)))
    // Whoever cannot take in what there is has no use for more of it.
    if (newest > copied && problem === undefined) rung.resolve()
  }

  const opened = openFound()
  const running = Promise.all([follow(), listen()]).catch((error: Error) => fail(error))
  const current = (): Store => {
    if (store) return store
    const why = problem === undefined ? '' : `: ${problem}`
    throw new StoreError(`the mirror has not copied everything from its upstream yet${why}`, {
      isTransient: true,
    })
  }

  return {
    // It is not private: what is being copied is looked at while it comes.
    store: standInFor(current, {
      head: () => opened.then(() => current().head()),
      watch(moved) {
        movers.add(moved)
        return () => movers.delete(moved)
      },
      // The mirror closes it, once nothing is being written any more.
      async close() {},
    }),
    status() {
      const stalenessMs = Math.max(0, performance.now() - confirmedAt)
      const why =
        problem ??
        (stalenessMs > CONFIRMED_MS ? 'it has not said for a while that nothing is missing here' : undefined)
      if (why === undefined) return { storeRevision: newest, stalenessMs: 0, problem: undefined }
      return { storeRevision: newest, stalenessMs, problem: `the upstream cannot be followed: ${why}` }
    },
    async stop() {
      stopped.abort()
      rung.resolve()
      await running
      await store?.close()
    },
  }
}

/** Sound, but not made for what is here. */
function isUnfit(error: unknown): error is StreamError {
  return error instanceof StreamError && !error.isDamaged
}

/** Whether it is likely to be over soon, and comes in many words. */
function mayPass(error: Error): boolean {
  return error instanceof StreamError ? error.isDamaged : error instanceof StoreError && error.isTransient
}

function timeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs
}

function removeLogs(database: string): void {
  for (const end of ['-wal', '-shm']) rmSync(`${database}${end}`, { force: true })
}

/** A moment of the wall clock as one of the clock that never jumps. */
function monotonic(time: number): number {
  return performance.now() - Math.max(0, Date.now() - time)
}

async function* unlessSilent({ body }: Response): AsyncGenerator<Uint8Array> {
  const reader = (body as ReadableStream<Uint8Array>).getReader()
  try {
    for (;;) {
      const timer = setTimeout(() => void reader.cancel(), SILENCE_MS)
      const { done, value } = await reader.read().finally(() => clearTimeout(timer))
      if (done) return
      yield value
    }
  } catch (error) {
    throw unreachable(error as Error)
  } finally {
    await reader.cancel().catch(() => {})
  }
}

function unreachable(error: Error): StoreError {
  const { cause, message } = error
  const why = cause instanceof Error ? cause.message : message
  return new StoreError(`it cannot be reached: ${why}`, { cause: error, isTransient: true })
}

async function refusal(response: Response): Promise<StoreError> {
  const { status } = response
  const body: unknown = await response.json().catch(() => undefined)
  const said = isObject(body) && typeof body.message === 'string' ? body.message : `it answers ${status}`
  if (status === 401) return new StoreError('it refuses UPSTREAM_TOKEN: is it still valid there?')
  if (status === 409)
    return new StreamError(`is an older one than what was copied from it: ${said}`, { isDamaged: false })
  if (status >= 500) return new StoreError(said, { isTransient: true })
  return new StoreError(status === 404 ? 'it has no log to copy: is it flux-resourceset?' : said)
}
