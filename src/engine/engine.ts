// Decide, then commit, then publish: the only way anything changes, and the state that everything is read from.
import type { Command, Outcome } from '../domain/command.ts'
import { decide } from '../domain/decide.ts'
import { fail, type Result, succeed } from '../domain/problem.ts'
import type { Types } from '../domain/resource-type.ts'
import { State } from '../domain/state.ts'
import type { Change, PolledView, Slot, View } from '../domain/view.ts'
import {
  type HistoryQuery,
  type RecordedRevision,
  type RevisionMeta,
  type Store,
  StoreError,
} from '../store/store.ts'

export type { HistoryQuery, RecordedChange, RecordedRevision } from '../store/store.ts'

export type Author = Pick<RevisionMeta, 'actor' | 'message' | 'request_id'>

export interface Written {
  /** The revision that the write made, or the current one when nothing changed. */
  readonly revision: number
  readonly changes: readonly Change[]
  /** One per command, in their order. */
  readonly outcomes: readonly Outcome[]
  /** What the write left, whatever has been published since. */
  readonly after: View
  readonly warnings: readonly string[]
}

export interface Engine {
  /** True once a stop has begun. */
  readonly draining: boolean
  /** Everything as of the last published revision; changes under the reader's feet only between ticks. */
  readonly state: PolledView & Pick<State, 'typeNames'>
  /** Does all of the commands as one revision, or none; with `onlyAt`, only on top of that very revision. */
  write(commands: readonly Command[], author: Author, options?: { onlyAt?: number }): Promise<Result<Written>>
  history(query: HistoryQuery): Promise<Result<RecordedRevision[]>>
  /** Takes in what other processes have committed. */
  catchUp(): Promise<void>
  /** Why the engine cannot serve, if it cannot. */
  check(): Promise<string | undefined>
  /** Takes no more writes and says that it is not ready; polls go on. */
  drain(): void
  /** Finishes the writes under way, then lets go of the store. */
  stop(): Promise<void>
}

export interface EngineParts {
  readonly store: Store
  readonly types: Types
  readonly now: () => Date
  /** Told of every failure of the store. */
  readonly onStoreError?: (error: StoreError, doing: 'commit' | 'read' | 'follow') => void
}

/** Writers elsewhere can win every race for a while, but not for ever. */
const MAX_ATTEMPTS = 100

/** Loads the state and follows the store until stopped. */
export async function startEngine({
  store,
  types,
  now,
  onStoreError = () => {},
}: EngineParts): Promise<Engine> {
  const state = new State(types)
  state.revision = await store.load((revision, document) => state.put(revision, document))
  state.settle()

  let stopping = false
  let writes: Promise<unknown> = Promise.resolve()
  let following: Promise<void> | undefined

  async function follow(): Promise<void> {
    for await (const { revision, changes } of store.changesSince(state.revision)) {
      // A commit of our own may have published it while it was being read.
      if (revision <= state.revision) continue
      if (revision > state.revision + 1)
        throw new StoreError(`revision ${state.revision + 1} is missing from the log`)
      state.apply(revision, changes)
    }
  }

  /** Callers that come while one is reading share the next reading, which sees all they could have seen. */
  async function catchUp(): Promise<void> {
    await following
    following ??= follow().finally(() => {
      following = undefined
    })
    await following
  }

  async function attempt(
    commands: readonly Command[],
    author: Author,
    onlyAt?: number,
  ): Promise<Result<Written>> {
    for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
      if ((await store.head()) !== state.revision) await catchUp()
      if (onlyAt !== undefined && state.revision !== onlyAt) {
        return fail({
          code: 'conflict',
          message: `the store is at revision ${state.revision}, not ${onlyAt}`,
        })
      }
      const decision = decide(types, state, commands)
      if (!decision.ok) return decision
      const { changes } = decision.value
      const base = state.revision
      if (changes.length === 0) return succeed({ revision: base, ...decision.value })
      const meta = { time: now().toISOString(), ...author }
      const stored = changes.map(({ type, id, after }) => ({ type, id, after: after && toStored(after) }))
      const commit = await store.commit(base, { ...meta, changes: stored })
      if (!commit.ok) continue
      if (state.revision === base) state.apply(base + 1, changes.map(toApplied))
      return succeed({ revision: base + 1, ...decision.value })
    }
    return fail({ code: 'unavailable', message: 'other writers were faster every time: try again' })
  }

  async function guarded<T>(doing: 'commit' | 'read', run: () => Promise<Result<T>>): Promise<Result<T>> {
    try {
      return await run()
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      onStoreError(error, doing)
      return fail({ code: 'unavailable', message: `the store cannot be used now: ${error.message}` })
    }
  }

  // A store that stays away is looked at many times a second, and told of once.
  let followed = true
  const unwatch = store.watch(async () => {
    try {
      await catchUp()
      followed = true
    } catch (error) {
      if (followed) onStoreError(error as StoreError, 'follow')
      followed = false
    }
  })

  return {
    get draining() {
      return stopping
    },
    state,
    catchUp,
    write(commands, author, { onlyAt } = {}) {
      if (stopping) return Promise.resolve(fail({ code: 'unavailable', message: 'the service is stopping' }))
      const result = writes.then(() => guarded('commit', () => attempt(commands, author, onlyAt)))
      writes = result.catch(() => {})
      return result
    },
    history: (query) => guarded('read', async () => succeed(await store.history(query))),
    async check() {
      if (stopping) return 'the service is stopping'
      try {
        await store.head()
        return undefined
      } catch (error) {
        return `the store does not answer: ${(error as Error).message}`
      }
    },
    drain() {
      stopping = true
    },
    async stop() {
      stopping = true
      unwatch()
      await writes
      await following?.catch(() => {})
      await store.close()
    },
  }
}

function toStored({ json, deleted }: Slot) {
  return { json, deleted }
}

function toApplied({ type, id, after }: Change) {
  const applied = after && { document: after.document, deleted: after.deleted, size: after.json.length }
  return { type, id, after: applied }
}
