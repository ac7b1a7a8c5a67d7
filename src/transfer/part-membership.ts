// Who is in a part of the fleet: clusters, and documents for one cluster alone, revision by revision.
import { getOrSet } from '../base/get-or-set.ts'
import type { SystemTypes } from '../domain/types/resource-type.ts'
import { SharedDocuments } from './shared-documents.ts'
import type { SentChange } from './transfer-items.ts'

export interface Cluster {
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

/** Which clusters of the source, and documents for one cluster alone, the partial log holds. */
export class Membership {
  readonly owned = new Map<string, Owned>()
  /** Keys of the `owned` documents that the partial log holds as of the last revision that ended. */
  readonly sentOwned = new Set<string>()
  readonly shared: SharedDocuments
  readonly #clusters = new Map<string, Cluster>()
  readonly #sentTombstones = new Set<string>()
  /** By DNS name: the number of live clusters outside the partial log, and the tombstones inside. */
  readonly #outside = new Map<string, number>()
  readonly #tombstones = new Map<string, Set<string>>()
  readonly #ownedBy = new Map<string, Set<string>>()
  readonly #touchedNames = new Set<string>()
  readonly #touchedClusters = new Set<string>()
  readonly #touchedOwned = new Set<string>()

  constructor(system: SystemTypes, clusters: string) {
    const isInPart = (id: string): boolean => this.#clusters.get(id)?.matches === true
    this.shared = new SharedDocuments(system, clusters, isInPart)
  }

  /** Whether clusters have come into the part since the last revision that ended, or left it. */
  get areMoved(): boolean {
    return this.#touchedClusters.size > 0
  }

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
    this.shared.settle(this.areMoved)
    for (const touched of [this.#touchedNames, this.#touchedClusters, this.#touchedOwned]) touched.clear()
  }
}
