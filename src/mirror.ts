// Mirror mode: another service's log, copied into a file of its own and followed over HTTPS.
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Condition } from './engine/engine.ts'
import { openSqliteStore } from './store/sqlite.ts'
import { type Store, StoreError } from './store/store.ts'
import { importLog } from './store/transfer.ts'
import { linesOf } from './store/transfer-lines.ts'

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
  condition(): Condition
  stop(): Promise<void>
}

/** How often to ask without being told to: the stream of changes may be held back by something on the way. */
const LOOK_MS = 5_000
const MAX_PAUSE_MS = 30_000
const FIRST_PAUSE_MS = 500
/** Nothing comes for so long: the connection is dead. Heartbeats come more often. */
const SILENCE_MS = 45_000
const TOUCH_MS = 10_000

export function startMirror({ url, token, selector, path, onProblem, onBack }: MirrorOptions): Mirror {
  const stopped = new AbortController()
  const { signal } = stopped
  const movers = new Set<() => void>()
  let store: Store | undefined
  let newest = 0
  let problem: string | undefined
  let confirmedAt = monotonic(statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now())
  let touchedAt = 0
  let rung = Promise.withResolvers<void>()

  /** The state is known to be all there is; the file's time tells the next process. */
  function confirm(): void {
    confirmedAt = performance.now()
    if (problem !== undefined) onBack()
    problem = undefined
    if (confirmedAt - touchedAt < TOUCH_MS || !existsSync(path)) return
    touchedAt = confirmedAt
    utimesSync(path, new Date(), new Date())
  }

  function fail(error: Error): void {
    if (problem === undefined) onProblem(error)
    problem = error.message
  }

  async function ask(target: string): Promise<Response> {
    const silence = new AbortController()
    const timer = setTimeout(() => silence.abort(), SILENCE_MS)
    try {
      const response = await fetch(`${url}${target}`, {
        headers: { authorization: `Bearer ${token()}` },
        redirect: 'error',
        signal: AbortSignal.any([signal, silence.signal]),
      })
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
    const { head } = await importLog(into, linesOf(unlessSilent(response)))
    newest = Math.max(newest, head.revision)
    confirm()
    for (const moved of movers) moved()
  }

  /** Again and again, until it worked once. */
  async function untilDone(run: () => Promise<void>): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; !signal.aborted; pause = Math.min(pause * 2, MAX_PAUSE_MS)) {
      try {
        return await run()
      } catch (error) {
        fail(error as Error)
      }
      await Promise.race([rest(pause * (0.5 + Math.random())), rung.promise])
      rung = Promise.withResolvers<void>()
    }
  }

  function rest(ms: number): Promise<void> {
    return sleep(ms, undefined, { signal, ref: false }).catch(() => {})
  }

  async function copyAll(): Promise<void> {
    const draft = `${path}.copy`
    const copy = openSqliteStore({ path: draft, write: true })
    try {
      await untilDone(() => pull(copy))
    } finally {
      await copy.close()
    }
    if (signal.aborted) return
    for (const leftover of ['-wal', '-shm']) rmSync(`${draft}${leftover}`, { force: true })
    renameSync(draft, path)
    syncFolder(dirname(path))
  }

  async function openOwn(): Promise<Store | undefined> {
    if (!existsSync(path)) return undefined
    const own = openSqliteStore({ path, write: true })
    if ((await own.head()).revision > 0) return own
    await own.close()
    return undefined
  }

  async function follow(): Promise<void> {
    let own = await openOwn()
    if (!own) {
      await copyAll()
      if (signal.aborted) return
      own = openSqliteStore({ path, write: true })
    }
    store = own
    for (const moved of movers) moved()
    const followed = own
    while (!signal.aborted) {
      await untilDone(() => pull(followed))
      await Promise.race([rest(LOOK_MS), rung.promise])
      rung = Promise.withResolvers<void>()
    }
  }

  /** The stream of changes is only a bell: what it tells of is pulled, and checked, like all else. */
  async function listen(): Promise<void> {
    while (!signal.aborted) {
      try {
        const response = await ask('/watch')
        rung.resolve()
        for await (const chunk of unlessSilent(response)) {
          const told = [
            ...Buffer.from(chunk)
              .toString('latin1')
              .matchAll(/^(?:: revision|id:) (\d+)$/gm),
          ]
          newest = Math.max(newest, ...told.map(([, revision]) => Number(revision)))
          const { revision } = (await store?.head()) ?? { revision: -1 }
          if (newest > revision) rung.resolve()
          else if (problem === undefined) confirm()
        }
      } catch {
        // Asking for the log tells what is wrong.
      }
      rung.resolve()
      await rest(LOOK_MS * (0.5 + Math.random()))
    }
  }

  const running = Promise.all([follow(), listen()]).catch((error: Error) => fail(error))
  const current = (): Store => {
    if (store) return store
    const why = problem === undefined ? '' : `: ${problem}`
    throw new StoreError(`the mirror has not copied everything from its upstream yet${why}`, { isAway: true })
  }

  return {
    store: standIn(current, (moved) => {
      movers.add(moved)
      return () => movers.delete(moved)
    }),
    condition: () => ({
      storeRevision: newest,
      ageMs: problem === undefined ? 0 : Math.max(0, performance.now() - confirmedAt),
      problem: problem && `the upstream cannot be followed: ${problem}`,
    }),
    async stop() {
      stopped.abort()
      rung.resolve()
      await running
      await store?.close()
    },
  }
}

/** Everything goes to the store that there is by then. */
function standIn(current: () => Store, watch: Store['watch']): Store {
  return new Proxy({} as Store, {
    get(_, name: keyof Store) {
      if (name === 'watch') return watch
      // The mirror closes it, once nothing is being written any more.
      if (name === 'close') return async () => {}
      return (...args: never[]) => (current()[name] as (...args: never[]) => unknown)(...args)
    },
  })
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
  return new StoreError(`it cannot be reached: ${why}`, { cause: error, isAway: true })
}

async function refusal(response: Response): Promise<StoreError> {
  const { status } = response
  const text = await response.text().catch(() => '')
  const said = /"message":"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? `it answers ${status}`
  if (status === 401) return new StoreError('it refuses UPSTREAM_TOKEN: is it still valid there?')
  if (status === 409) return new StoreError(`it is an older one than what was copied from it: ${said}`)
  return new StoreError(status === 404 ? 'it has no log to copy: is it flux-resourceset?' : said)
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
