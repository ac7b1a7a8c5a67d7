// The edits of one rollout, laid over documents, and the place of each of its members.
import { getOrSet } from '../../base/get-or-set.ts'
import type { Entry } from '../documents/view.ts'
import type { Document, Types } from '../types/resource-type.ts'
import { type DocumentEdit, layFields } from './edits.ts'
import { isSomebody } from './partial-rollout.ts'
import { asPlan } from './rollout.ts'

/** A member's wave, and its place in the order in which members are opened. */
export interface MemberPlace {
  readonly wave: number
  readonly place: number
}

const NO_EDITS: ReadonlyMap<string, DocumentEdit> = new Map()

export class RolloutOverlay {
  /** The revision that made the plan. */
  readonly revision: number
  readonly #types: Types
  readonly #edits = new Map<string, Map<string, DocumentEdit>>()
  readonly #members = new Map<string, MemberPlace>()
  /** By the entry underneath: what polls render of a laid entry is kept as long as that is. */
  readonly #laid = new WeakMap<Entry, Entry>()
  readonly #created = new Map<DocumentEdit, Entry>()

  constructor(types: Types, plan: Entry) {
    this.revision = plan.revision
    this.#types = types
    const { edits, members } = asPlan(plan)
    for (const edit of edits) {
      const byId = getOrSet(this.#edits, edit.type, () => new Map())
      for (const id of edit.ids) byId.set(id, edit)
    }
    for (const [wave, ids] of members.entries())
      for (const [place, id] of ids.entries()) if (!isSomebody(id)) this.#members.set(id, { wave, place })
  }

  /** Ids of the documents of a type that the rollout edits. */
  edited(type: string): ReadonlyMap<string, DocumentEdit> {
    return this.#edits.get(type) ?? NO_EDITS
  }

  get types(): Iterable<string> {
    return this.#edits.keys()
  }

  /** Ids of the members that the plan names. */
  get members(): Iterable<string> {
    return this.#members.keys()
  }

  placeOf(cluster: string): MemberPlace | undefined {
    return this.#members.get(cluster)
  }

  /** Returns a live document as it is with the edits; `entry` is the live one underneath. */
  lay(type: string, id: string, entry: Entry | undefined): Entry | undefined {
    const edit = this.#edits.get(type)?.get(id)
    if (edit === undefined) return entry
    if ('deleted' in edit) return undefined
    if ('created' in edit) return entry ?? this.#create(edit, edit.created)
    return entry && (this.#laid.get(entry) ?? this.#lay(edit.fields, type, entry))
  }

  #create(edit: DocumentEdit, document: Document): Entry {
    return getOrSet(this.#created, edit, () => this.#entry(document, 0))
  }

  #lay(fields: Parameters<typeof layFields>[1], type: string, entry: Entry): Entry {
    const normalise = this.#types.get(type)?.normalise ?? ((document) => document)
    const document = layFields(entry.document, fields, normalise)
    const laid = document === entry.document ? entry : this.#entry(document, entry.revision)
    this.#laid.set(entry, laid)
    return laid
  }

  #entry(document: Document, revision: number): Entry {
    const { id } = document
    const size = JSON.stringify(document).length
    return { id, document, deleted: false, size, revision: Math.max(revision, this.revision) }
  }
}

const overlays = new WeakMap<Entry, RolloutOverlay>()

/** One overlay for each version of a plan, so that what was laid and rendered is kept from revision to revision. */
export function overlayOf(types: Types, plan: Entry): RolloutOverlay {
  let overlay = overlays.get(plan)
  if (!overlay) {
    overlay = new RolloutOverlay(types, plan)
    overlays.set(plan, overlay)
  }
  return overlay
}
