// Partial logs: the changes of each revision for a mirror that copies only the clusters of a selector.
import { getOrSet } from '../base/get-or-set.ts'
import type { Selector } from '../domain/access/selector.ts'
import {
  type ClusterType,
  type Document,
  type DocumentName,
  dnsOf,
  type Types,
} from '../domain/types/resource-type.ts'
import type { DocumentVersion, LoggedChange, Store } from '../store/store.ts'
import type { SentChange } from './transfer-items.ts'
import { documentsAt } from './verify-log.ts'

/** Selects the clusters that match, and every document that neither belongs to nor names another cluster. */
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

  /** Returns whether the partial log held a document at the revision that the log begins with. */
  async heldAt(revision: number): Promise<(document: DocumentVersion) => boolean> {
    const membership = await this.#loaded(revision)
    return ({ type, id, json }) => {
      if (this.#isLeftOut(type)) return false
      if (type === this.#clusters.type.name) return membership.holdsCluster(id)
      return this.#ownerOf(type, json) === undefined || membership.holdsOwned(keyOf({ type, id }))
    }
  }

  /** The changes to send for a change; those that depend on the rest of the revision are returned by `end`. */
  async take(revision: number, change: LoggedChange): Promise<SentChange[]> {
    if (this.#isLeftOut(change.type)) return []
    if (change.type === this.#clusters.type.name) return this.#takeCluster(revision, change)
    return this.#takeOther(revision, change)
  }

  /** The remaining changes of a revision, to send after all others. */
  end(): SentChange[] {
    const membership = this.#membership
    if (!membership) return []
    const changes = [...this.#endTombstones(membership), ...this.#endOwned(membership)]
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

  /** The one cluster that a document is for; undefined when it is not for one alone. */
  #ownerOf(type: string, json: string | null): string | undefined {
    const system = this.#selection.types.system.get(type)
    return json === null ? undefined : system?.clusterOf?.(JSON.parse(json) as Document)
  }

  async #loaded(revision: number): Promise<Membership> {
    if (this.#membership) return this.#membership
    const membership = new Membership()
    if (revision > 0) {
      for await (const { type, id, json, deleted } of documentsAt(this.#store, revision)) {
        if (type === this.#clusters.type.name) membership.setCluster(id, this.#look(json, deleted))
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

interface Cluster {
  readonly matches: boolean
  readonly deleted: boolean
  readonly dns: string
  /** Only of a tombstone that matches: it may be sent again without a change of its own. */
  readonly json: string | undefined
}

/** A document that is for one cluster alone. */
interface Owned {
  readonly cluster: string | undefined
  readonly change: SentChange
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

/** Which clusters of the source, and documents for one cluster alone, the partial log holds. */
class Membership {
  readonly owned = new Map<string, Owned>()
  /** Keys of the `owned` documents that the partial log holds as of the last revision that ended. */
  readonly sentOwned = new Set<string>()
  readonly #clusters = new Map<string, Cluster>()
  readonly #sentTombstones = new Set<string>()
  /** By DNS name: the number of live clusters outside the partial log, and the tombstones inside. */
  readonly #outside = new Map<string, number>()
  readonly #tombstones = new Map<string, Set<string>>()
  readonly #ownedBy = new Map<string, Set<string>>()
  readonly #touchedNames = new Set<string>()
  readonly #touchedClusters = new Set<string>()
  readonly #touchedOwned = new Set<string>()

  setCluster(id: string, cluster: Cluster | undefined): void {
    const old = this.#clusters.get(id)
    if (old) this.#index(id, old, -1)
    if (cluster) this.#index(id, cluster, 1)
    if (cluster) this.#clusters.set(id, cluster)
    else this.#clusters.delete(id)
    if ((old?.matches ?? false) !== (cluster?.matches ?? false)) this.#touchedClusters.add(id)
  }

  #index(id: string, { matches, deleted, dns }: Cluster, by: 1 | -1): void {
    if (!matches && !deleted) {
      const count = (this.#outside.get(dns) ?? 0) + by
      if (count > 0) this.#outside.set(dns, count)
      else this.#outside.delete(dns)
      this.#touchedNames.add(dns)
    }
    if (!matches || !deleted) return
    this.#touchedNames.add(dns)
    if (by > 0) getOrSet(this.#tombstones, dns, () => new Set<string>()).add(id)
    else this.#tombstones.get(dns)?.delete(id)
  }

  setOwned(key: string, document: Owned | undefined): void {
    const old = this.owned.get(key)
    if (old?.cluster !== undefined) this.#ownedBy.get(old.cluster)?.delete(key)
    if (document?.cluster !== undefined)
      getOrSet(this.#ownedBy, document.cluster, () => new Set<string>()).add(key)
    if (document) this.owned.set(key, document)
    else this.owned.delete(key)
    this.#touchedOwned.add(key)
  }

  holdsCluster(id: string): boolean {
    const cluster = this.#clusters.get(id)
    return cluster?.matches === true && !(cluster.deleted && this.#outside.has(cluster.dns))
  }

  holdsOwned(key: string): boolean {
    const document = this.owned.get(key)
    if (!document) return false
    return document.cluster === undefined || this.#clusters.get(document.cluster)?.matches === true
  }

  /** Whether the partial log holds a cluster as of the last revision that ended. */
  sent(id: string): boolean {
    const cluster = this.#clusters.get(id)
    return cluster?.matches === true && (!cluster.deleted || this.#sentTombstones.has(id))
  }

  tombstoneJson(id: string): string | undefined {
    return this.#clusters.get(id)?.json
  }

  tombstonesTouched(): string[] {
    return [...this.#touchedNames].flatMap((dns) => [...(this.#tombstones.get(dns) ?? [])])
  }

  ownedTouched(): string[] {
    return [...this.#touchedClusters].flatMap((id) => [...(this.#ownedBy.get(id) ?? [])])
  }

  /** Ends a revision: what should be held counts as sent. */
  settle(): void {
    for (const id of this.tombstonesTouched()) {
      if (this.holdsCluster(id)) this.#sentTombstones.add(id)
      else this.#sentTombstones.delete(id)
    }
    for (const key of [...this.ownedTouched(), ...this.#touchedOwned]) {
      if (this.holdsOwned(key)) this.sentOwned.add(key)
      else this.sentOwned.delete(key)
    }
    for (const touched of [this.#touchedNames, this.#touchedClusters, this.#touchedOwned]) touched.clear()
  }
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
