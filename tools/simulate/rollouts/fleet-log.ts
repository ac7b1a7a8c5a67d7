// The fleet as the log of a service has it, revision by revision: read over HTTP, and kept without the code of the service.
import { setTimeout as sleep } from 'node:timers/promises'
import { getOrSet } from '../../../src/base/get-or-set.ts'
import type { JsonObject } from '../../../src/base/json.ts'

export interface LoggedRevision {
  readonly revision: number
  /** When it was made, in milliseconds. */
  readonly time: number
  readonly actor: string
  readonly message: string | null
  readonly requestId: string
  readonly changes: readonly LoggedChange[]
}

interface LoggedChange {
  readonly type: string
  readonly id: string
  /** Null when it is gone, also where a tombstone is left. */
  readonly after: JsonObject | null
}

interface Version {
  readonly revision: number
  readonly document: JsonObject | null
}

/** Returns the log after a revision as lines of JSON; undefined while nobody answers. */
export type ReadLog = (since: number) => Promise<string | undefined>

/** Called with every revision in their order, once it can be looked up. */
export type TakeRevision = (revision: LoggedRevision) => void

const RETRY_MS = 100

export class FleetLog {
  readonly #read: ReadLog
  readonly #take: TakeRevision
  readonly #versions = new Map<string, Map<string, Version[]>>()
  /** Revisions that changed a document of a type. */
  readonly #changes = new Map<string, number[]>()
  readonly #messages = new Map<number, string>()
  readonly #requests = new Map<string, number[]>()
  #revision = 0
  #reading: Promise<void> | undefined

  constructor(read: ReadLog, take: TakeRevision) {
    this.#read = read
    this.#take = take
  }

  /** The newest revision that was read. */
  get revision(): number {
    return this.#revision
  }

  /** Reads on until a revision is known, for as long as that takes. */
  async reach(revision: number): Promise<void> {
    while (this.#revision < revision) {
      await this.follow()
      if (this.#revision < revision) await sleep(RETRY_MS)
    }
  }

  /** Reads what is new. */
  async follow(): Promise<void> {
    this.#reading ??= this.#readOn().finally(() => {
      this.#reading = undefined
    })
    await this.#reading
  }

  /** A document as it was at a revision. */
  get(type: string, id: string, revision: number): JsonObject | undefined {
    return versionAt(this.#versions.get(type)?.get(id), revision)?.document ?? undefined
  }

  /** The revision that made a document what it was at a revision; 0 for one that was not there yet. */
  versionOf(type: string, id: string, revision: number): number {
    return versionAt(this.#versions.get(type)?.get(id), revision)?.revision ?? 0
  }

  /** The last revision that changed any document of a type, up to a revision; 0 for none. */
  changedAt(type: string, revision: number): number {
    return this.#changes.get(type)?.findLast((changed) => changed <= revision) ?? 0
  }

  /** Revisions that the requests with an id made. */
  madeBy(requestId: string): readonly number[] {
    return this.#requests.get(requestId) ?? []
  }

  messageOf(revision: number): string | undefined {
    return this.#messages.get(revision)
  }

  /** Every document of a type that was there at a revision. */
  *all(type: string, revision: number): Generator<JsonObject> {
    for (const versions of this.#versions.get(type)?.values() ?? []) {
      const document = versionAt(versions, revision)?.document
      if (document) yield document
    }
  }

  async #readOn(): Promise<void> {
    const lines = (await this.#read(this.#revision))?.trimEnd().split('\n') ?? []
    const items: Item[] = lines.map((line) => JSON.parse(line))
    // A copy that was broken off says nothing: the next one begins where this one did.
    if (!items.at(-1)?.end) return
    let changes: LoggedChange[] = []
    let head: Item = {}
    for (const item of items) {
      if (item.revision !== undefined) head = item
      changes.push(...(item.changes ?? []).map(parseChange))
      if (!item.last) continue
      const { revision = 0, time = '', actor = '', message = null, request_id: requestId = '' } = head
      this.#apply({ revision, time: Date.parse(time), actor, message, requestId, changes })
      changes = []
    }
  }

  #apply(read: LoggedRevision): void {
    const { revision, changes, message, requestId } = read
    if (revision !== this.#revision + 1)
      throw new Error(`the log has revision ${revision} after ${this.#revision}`)
    getOrSet(this.#requests, requestId, () => []).push(revision)
    if (message !== null) this.#messages.set(revision, message)
    for (const type of new Set(changes.map((change) => change.type)))
      getOrSet(this.#changes, type, () => []).push(revision)
    for (const { type, id, after } of changes) {
      const byId = getOrSet(this.#versions, type, () => new Map<string, Version[]>())
      getOrSet(byId, id, () => []).push({ revision, document: after })
    }
    this.#revision = revision
    this.#take(read)
  }
}

/** One line of the log: a header, the head of a revision, a part of its changes, or the end. */
interface Item {
  readonly revision?: number
  readonly time?: string
  readonly actor?: string
  readonly message?: string | null
  readonly request_id?: string
  readonly changes?: readonly SentChange[]
  /** Whether the changes are the last ones of their revision. */
  readonly last?: boolean
  readonly end?: object
}

interface SentChange {
  readonly type: string
  readonly id: string
  readonly after: string | null
  readonly after_deleted: boolean
}

function parseChange({ type, id, after, after_deleted }: SentChange): LoggedChange {
  return { type, id, after: after === null || after_deleted ? null : JSON.parse(after) }
}

function versionAt(versions: readonly Version[] | undefined, revision: number): Version | undefined {
  return versions?.findLast((version) => version.revision <= revision)
}
