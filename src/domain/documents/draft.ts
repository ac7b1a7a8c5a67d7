// A view with changes laid over it: what the documents would be if they were committed.
import { getOrSet } from '../../base/get-or-set.ts'
import { equalJson } from '../../base/json.ts'
import type { ClusterType, Document } from '../types/resource-type.ts'
import { Overlay } from './overlay.ts'
import type { Change, Entry, NewVersion, View } from './view.ts'

/** A document that commands have written, whether it differs now or not. */
export interface Touched {
  readonly type: string
  readonly id: string
  readonly before: Entry | undefined
  after: NewVersion | undefined
  /** Whether `after` differs from `before`. */
  changed: boolean
  /** In the order of the commands. */
  readonly origins: Origin[]
}

/** Which part of what was sent shaped a document, so that problems can point there. */
export interface Origin {
  /** JSON pointer to the payload in what was sent. */
  readonly path: string
  /** JSON pointer to where the payload went in the document; the whole of it when left out. */
  readonly at?: string
}

/** Returns where a place in the document stands in what was sent: in the last payload that was about it. */
export function pointerTo(origins: readonly Origin[], place: string): string {
  const isAbout = ({ at }: Origin): boolean =>
    at !== undefined && (place === at || place.startsWith(`${at}/`))
  const { path = '', at = '' } = origins.findLast(isAbout) ?? origins.at(-1) ?? {}
  return place === at || place.startsWith(`${at}/`) ? path + place.slice(at.length) : path
}

/** A short command can ask for a lot: every cluster replaced many times over, or made large. */
const MAX_PUTS = { least: 200_000, perCluster: 4 }
const MAX_GROWTH = { least: 64 * 1024 * 1024, perCluster: 1024 }

/** A view with the changes of commands, at the revision that they would be committed as. */
export class Draft extends Overlay {
  readonly #before: View
  readonly #limits: { readonly puts: number; readonly growth: number }
  #puts = 0
  #growth = 0
  readonly #touched = new Map<string, Map<string, Touched>>()

  constructor(base: View, cluster: ClusterType) {
    super(base, cluster, base.revision + 1)
    this.#before = base
    const clusters = base.count(cluster.type.name)
    this.#limits = {
      puts: Math.max(MAX_PUTS.least, MAX_PUTS.perCluster * clusters),
      growth: Math.max(MAX_GROWTH.least, MAX_GROWTH.perCluster * clusters),
    }
  }

  /** What was there before the write. */
  get original(): View {
    return this.#before
  }

  /** Lays a document over the base. An equal one is no change, whatever the order of its fields. */
  put(type: string, document: Document, origin: Origin, deleted = false): void {
    this.#set(type, document.id, new DraftVersion(document, deleted), origin, differs)
  }

  /** Lays a document over the base so that its JSON is the same to the byte: the order of fields counts. */
  putExactly(type: string, document: Document, origin: Origin, deleted: boolean): void {
    const after = new DraftVersion(document, deleted)
    const isChange = (before: Entry | undefined) => differs(before, after) || !hasSameJson(before, after)
    this.#set(type, document.id, after, origin, isChange)
  }

  remove(type: string, id: string, origin: Origin): void {
    this.#set(type, id, undefined, origin, differs)
  }

  /** Why the write is too large; undefined where it is not. */
  get excess(): string | undefined {
    const { puts, growth } = this.#limits
    if (this.#puts > puts)
      return `changes documents more than ${puts} times in one write: write less at a time`
    if (this.#growth > growth)
      return `makes documents longer by more than ${growth} characters in one write: write less at a time`
    return undefined
  }

  /** Returns every document laid over the base so far, whether it differs or not. */
  touched(): readonly Readonly<Touched>[] {
    return [...this.#touched.values()].flatMap((byId) => [...byId.values()])
  }

  /** Returns what really differs from the base. */
  changes(): Change[] {
    return this.touched().filter(({ changed }) => changed)
  }

  #set(
    type: string,
    id: string,
    after: NewVersion | undefined,
    origin: Origin,
    isChange: (before: Entry | undefined, after: NewVersion | undefined) => boolean,
  ): void {
    const byId = getOrSet(this.#touched, type, () => new Map<string, Touched>())
    const known = byId.get(id)
    const before = known ? known.before : (this.#before.get(type, id) ?? this.#before.tombstone(type, id))
    const changed = isChange(before, after)
    this.#puts++
    this.#growth += (after?.size ?? 0) - (known ? (known.after?.size ?? 0) : (before?.size ?? 0))
    if (known) {
      Object.assign(known, { after, changed })
      known.origins.push(origin)
    } else {
      byId.set(id, { type, id, before, after, changed, origins: [origin] })
    }
    this.lay(type, id, changed ? after && this.#entry(id, after) : before)
  }

  #entry(id: string, { document, deleted, size }: NewVersion): Entry {
    return { id, document, revision: this.revision, deleted, size }
  }
}

/** Makes its JSON when it is asked for: a change of the whole fleet would take several times the memory with all of it. */
class DraftVersion implements NewVersion {
  readonly document: Document
  readonly deleted: boolean
  readonly size: number

  constructor(document: Document, deleted: boolean) {
    this.document = document
    this.deleted = deleted
    this.size = this.json.length
  }

  get json(): string {
    return JSON.stringify(this.document)
  }
}

function hasSameJson(before: Entry | undefined, { json }: NewVersion): boolean {
  return before !== undefined && JSON.stringify(before.document) === json
}

function differs(before: Entry | undefined, after: NewVersion | undefined): boolean {
  if (!before || !after) return Boolean(before) !== Boolean(after)
  return before.deleted !== after.deleted || !equalJson(before.document, after.document)
}
