// The processes that work on one store: each notes every half minute that it is there, and which revision it serves.
import { randomUUID } from 'node:crypto'
import { isObject, type JsonObject } from '../base/json.ts'
import type { State } from '../domain/documents/state.ts'
import { ReportOnce } from '../runtime/report-once.ts'
import type { Note } from '../store/notes.ts'
import { type Store, StoreError } from '../store/store.ts'

/** What a process says of itself. */
export interface ReplicaAbout {
  /** The name of its host, or of its pod. */
  readonly name: string
  readonly version: string
  readonly mode: 'read-only' | 'crud'
  /** What keeps the log: memory, sqlite or postgres. */
  readonly store: string
}

export interface Replica extends ReplicaAbout {
  readonly revision: number
  /** RFC 3339, UTC. */
  readonly startedAt: string
  readonly seenAt: string
  readonly isSelf: boolean
}

export interface Replicas {
  /** This process, and others that were there lately; those that were not are left out. Throws StoreError. */
  list(): Promise<Replica[]>
  /** This process is no longer listed. */
  stop(): Promise<void>
}

interface ReplicasParts {
  readonly store: Pick<Store, 'notes'>
  readonly state: Pick<State, 'revision'>
  readonly about: ReplicaAbout | undefined
  readonly now: () => Date
  /** Called once while the store is away. */
  readonly failed: (error: StoreError) => void
}

const UNNAMED: ReplicaAbout = { name: 'unnamed', version: 'unknown', mode: 'crud', store: 'unknown' }
const REPLICAS = 'replicas'
const REPLICA_NOTE_MS = 30_000
/** A process that was killed is listed for so long, with its age. */
const KEPT_MS = 3_600_000

export function followReplicas({ store, state, about = UNNAMED, now, failed }: ReplicasParts): Replicas {
  const key = randomUUID()
  const startedAt = now().toISOString()
  const self = (): Replica => ({
    ...about,
    revision: state.revision,
    startedAt,
    seenAt: now().toISOString(),
    isSelf: true,
  })
  const reports = new ReportOnce({ failed })
  const attempt = async (write: () => Promise<void>): Promise<void> => {
    try {
      await write()
      reports.succeed()
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      reports.fail(error)
    }
  }
  let running = Promise.resolve()
  const note = (): void => {
    running = running.then(() => attempt(() => store.notes.record(REPLICAS, [noteOf(key, self())])))
  }
  const timer = setInterval(note, REPLICA_NOTE_MS).unref()
  note()

  return {
    async list() {
      await running
      const since = now().getTime() - KEPT_MS
      const found: Replica[] = []
      const old: string[] = []
      for await (const each of store.notes.read(REPLICAS)) {
        if (each.key === key) continue
        if (Date.parse(each.time) < since) old.push(each.key)
        else found.push(replicaOf(each))
      }
      if (old.length > 0) await store.notes.remove(REPLICAS, old)
      return [self(), ...found.sort((a, b) => (a.name < b.name ? -1 : 1))]
    },
    async stop() {
      clearInterval(timer)
      await running
      await attempt(() => store.notes.remove(REPLICAS, [key]))
    },
  }
}

function noteOf(key: string, { seenAt, isSelf: _, ...rest }: Replica): Note {
  return { key, time: seenAt, value: JSON.stringify(rest) }
}

/** Others may be of another version, and say less or more. */
function replicaOf({ time, value }: Note): Replica {
  const parsed: unknown = JSON.parse(value ?? '{}')
  const { name, version, mode, store, revision, startedAt } = (isObject(parsed) ? parsed : {}) as JsonObject
  return {
    name: String(name ?? 'unknown'),
    version: String(version ?? 'unknown'),
    mode: mode === 'crud' ? 'crud' : 'read-only',
    store: String(store ?? 'unknown'),
    revision: Number(revision ?? 0),
    startedAt: String(startedAt ?? time),
    seenAt: time,
    isSelf: false,
  }
}
