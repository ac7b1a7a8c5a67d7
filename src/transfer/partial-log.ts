// Partial logs: the changes of each revision for a mirror that copies only the clusters of a selector.
import type { Selector } from '../domain/access/selector.ts'
import {
  type ClusterType,
  type Document,
  type DocumentName,
  dnsOf,
  type Types,
} from '../domain/types/resource-type.ts'
import type { DocumentVersion, LoggedChange, Store } from '../store/store.ts'
import { type Cluster, Membership } from './part-membership.ts'
import type { SentChange } from './transfer-items.ts'
import { documentsAt } from './verify-log.ts'

/** Selects the clusters that match, and every document but for what belongs to or speaks of another cluster. */
export interface Selection {
  readonly selector: Selector
  readonly types: Pick<Types, 'cluster' | 'system'>
}

/**
 * Follows a log along its revisions. At each revision the partial log holds the definitions, the clusters that match, and
 * the documents for one of these clusters alone, such as its token; types that are in no partial copy are left out. A
 * tombstone that matches is left out while a live cluster outside the partial log has the same DNS name: the tombstone
 * would tell that cluster to delete everything.
 */
export class PartialLog {
  readonly #store: Store
  readonly #selection: Selection
  /** Which documents the partial log holds after the last revision; loaded on first use. */
  #membership: Membership | undefined
  /** Changed documents whose membership is known at the end of the revision, and whether the partial log held them before. */
  readonly #tombstones = new Map<string, boolean>()
  readonly #owned = new Map<string, DocumentName & { readonly held: boolean }>()

  constructor(store: Store, selection: Selection) {
    this.#store = store
    this.#selection = selection
  }

  /** Returns what the partial log held of a document at the revision that the log begins with; undefined for nothing. */
  async heldAt(revision: number): Promise<(document: DocumentVersion) => DocumentVersion | undefined> {
    const membership = await this.#loaded(revision)
    const holds = ({ type, id, json }: DocumentVersion): boolean => {
      if (this.#isLeftOut(type)) return false
      if (type === this.#clusters.type.name) return membership.holdsCluster(id)
      return this.#ownerOf(type, json) === undefined || membership.holdsOwned(keyOf({ type, id }))
    }
    return (document) =>
      holds(document) ? { ...document, json: membership.shared.partOf(document) } : undefined
  }

  /** The changes to send for a change; those that depend on the rest of the revision are returned by `end`. */
  async take(revision: number, change: LoggedChange): Promise<SentChange[]> {
    if (this.#isLeftOut(change.type)) return []
    if (change.type === this.#clusters.type.name) return this.#takeCluster(revision, change)
    if (!this.#isShared(change.type)) return this.#takeOther(revision, change)
    const { shared } = await this.#loaded(revision - 1)
    shared.set(change, change.after)
    return []
  }

  /** The remaining changes of a revision, to send after all others. */
  end(): SentChange[] {
    const membership = this.#membership
    if (!membership) return []
    const changes = [
      ...this.#endTombstones(membership),
      ...this.#endOwned(membership),
      ...membership.shared.end(membership.areMoved),
    ]
    membership.settle()
    this.#tombstones.clear()
    this.#owned.clear()
    return changes
  }

  async #takeCluster(revision: number, change: LoggedChange): Promise<SentChange[]> {
    const { id } = change
    const before = this.#look(change.before, change.before_deleted)
    const after = this.#look(change.after, change.after_deleted)
    if (concernsOnlyItself(before, after)) return after?.matches ? [sent(change)] : []
    const membership = await this.#loaded(revision - 1)
    const held = membership.sent(id)
    membership.setCluster(id, after)
    if (after?.matches && after.deleted) {
      this.#tombstones.set(id, held)
      return []
    }
    if (after?.matches) return [sent(change)]
    return held ? [removal(change)] : []
  }

  async #takeOther(revision: number, change: LoggedChange): Promise<SentChange[]> {
    const { type, id, before, after } = change
    const [ownerBefore, ownerAfter] = [this.#ownerOf(type, before), this.#ownerOf(type, after)]
    if (ownerBefore === undefined && ownerAfter === undefined) return [sent(change)]
    const membership = await this.#loaded(revision - 1)
    const key = keyOf(change)
    const held = before !== null && (ownerBefore === undefined || membership.sentOwned.has(key))
    this.#owned.set(key, { type, id, held })
    membership.setOwned(key, after === null ? undefined : { cluster: ownerAfter, change: sent(change) })
    return []
  }

  *#endTombstones(membership: Membership): Generator<SentChange> {
    for (const id of inOrder(this.#tombstones.keys(), membership.tombstonesTouched())) {
      const json = membership.tombstoneJson(id)
      if (json === undefined) continue
      const change = { type: this.#clusters.type.name, id, after: json, after_deleted: true }
      const isNew = this.#tombstones.has(id)
      const held = this.#tombstones.get(id) ?? membership.sent(id)
      const holds = membership.holdsCluster(id)
      if (holds && (isNew || !held)) yield change
      else if (held && !holds) yield removal(change)
    }
  }

  *#endOwned(membership: Membership): Generator<SentChange> {
    for (const key of inOrder(this.#owned.keys(), membership.ownedTouched())) {
      const changed = this.#owned.get(key)
      const held = changed?.held ?? membership.sentOwned.has(key)
      const document = membership.owned.get(key)
      const holds = membership.holdsOwned(key)
      if (document && holds && (changed || !held)) yield document.change
      else if (held && !holds) yield removal((changed ?? document?.change) as DocumentName)
    }
  }

  get #clusters(): ClusterType {
    return this.#selection.types.cluster
  }

  #isLeftOut(type: string): boolean {
    return this.#selection.types.system.get(type)?.inPartialCopies === false
  }

  /** Whether its documents speak of many clusters. */
  #isShared(type: string): boolean {
    return this.#selection.types.system.get(type)?.partOf !== undefined
  }

  /** The one cluster that a document is for; undefined when it is not for one alone. */
  #ownerOf(type: string, json: string | null): string | undefined {
    const system = this.#selection.types.system.get(type)
    return json === null ? undefined : system?.clusterOf?.(JSON.parse(json) as Document)
  }

  async #loaded(revision: number): Promise<Membership> {
    if (this.#membership) return this.#membership
    const { system } = this.#selection.types
    const membership = new Membership(system, this.#clusters.type.name)
    if (revision > 0) {
      for await (const { type, id, json, deleted } of documentsAt(this.#store, revision)) {
        if (type === this.#clusters.type.name) membership.setCluster(id, this.#look(json, deleted))
        else if (this.#isShared(type)) membership.shared.set({ type, id }, json)
        else {
          const cluster = this.#ownerOf(type, json)
          const change = { type, id, after: json, after_deleted: deleted }
          if (cluster !== undefined) membership.setOwned(keyOf(change), { cluster, change })
        }
      }
    }
    membership.settle()
    this.#membership = membership
    return membership
  }

  #look(json: string | null, deleted: boolean): Cluster | undefined {
    if (json === null) return undefined
    const document = JSON.parse(json) as Document
    const matches = this.#selection.selector.matches(document)
    const dns = dnsOf(this.#clusters, document)
    return { matches, deleted, dns, json: matches && deleted ? json : undefined }
  }
}

/** Whether the change affects the membership of no other document. */
function concernsOnlyItself(before: Cluster | undefined, after: Cluster | undefined): boolean {
  if (!before || !after || before.deleted || after.deleted) return false
  return before.matches === after.matches && (after.matches || before.dns === after.dns)
}

/** Unique and sorted: the hash of a revision must not depend on which revision the export began with. */
function inOrder(...ids: readonly Iterable<string>[]): string[] {
  return [...new Set(ids.flatMap((some) => [...some]))].sort()
}

function keyOf({ type, id }: DocumentName): string {
  return `${type}/${id}`
}

export function sent({ type, id, after, after_deleted }: SentChange): SentChange {
  return { type, id, after, after_deleted }
}

function removal({ type, id }: DocumentName): SentChange {
  return { type, id, after: null, after_deleted: false }
}
