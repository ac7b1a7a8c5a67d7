// The part of a log that a selector chooses: what of each revision concerns those who follow only some clusters.
import { getOrSet } from '../base/get-or-set.ts'
import type { Selector } from '../domain/access/selector.ts'
import { asToken, TOKENS } from '../domain/access/token.ts'
import { type ClusterType, type Document, dnsOf, type Types } from '../domain/types/resource-type.ts'
import type { DocumentVersion, LoggedChange, Store } from '../store/store.ts'
import type { SentChange } from './transfer-items.ts'
import { documentsAt } from './verify-log.ts'

/** Where a partial log records what it is a part of: beside the documents, and of no type that a request could name. */
export const SOURCES = 'sources'

/** Only the clusters that match, with everything that is not a cluster's own and names none of the others. */
export interface Selection {
  readonly selector: Selector
  readonly types: Pick<Types, 'cluster' | 'bookkeeping'>
}

/**
 * Follows a log along its revisions. At each of them the part holds the definitions, the clusters that match, and of tokens
 * for one cluster those whose cluster matches; no bookkeeping, which names clusters of the whole fleet. A tombstone that matches is left out
 * while a live cluster outside the part has its DNS name: it would tell that one to delete everything.
 */
export class PartialLog {
  readonly #store: Store
  readonly #selection: Selection
  /** What the revisions so far left; loaded when something depends on it. */
  #membership: Membership | undefined
  /** What this revision changed whose place depends on all of it, and whether the part held it before. */
  readonly #tombstones = new Map<string, boolean>()
  readonly #tokens = new Map<string, boolean>()

  constructor(store: Store, selection: Selection) {
    this.#store = store
    this.#selection = selection
  }

  /** Whether the part held a document at a revision that the log begins with. */
  async heldAt(revision: number): Promise<(document: DocumentVersion) => boolean> {
    const membership = await this.#loaded(revision)
    return ({ type, id, json }) => {
      if (this.#isLeftOut(type)) return false
      if (type === this.#clusters.type.name) return membership.holdsCluster(id)
      return type !== TOKENS || clusterOf(json) === undefined || membership.holdsToken(id)
    }
  }

  /** What travels of a change; what depends on the rest of its revision is left for its end. */
  async take(revision: number, change: LoggedChange): Promise<SentChange[]> {
    if (this.#isLeftOut(change.type)) return []
    if (change.type === this.#clusters.type.name) return this.#takeCluster(revision, change)
    if (change.type === TOKENS) return this.#takeToken(revision, change)
    return [sent(change)]
  }

  /** What is left of a revision when all its changes were taken. */
  end(): SentChange[] {
    const membership = this.#membership
    if (!membership) return []
    const changes = [...this.#endTombstones(membership), ...this.#endTokens(membership)]
    membership.settle()
    this.#tombstones.clear()
    this.#tokens.clear()
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

  async #takeToken(revision: number, change: LoggedChange): Promise<SentChange[]> {
    const { id, before, after } = change
    const [was, is] = [clusterOf(before), clusterOf(after)]
    if (was === undefined && is === undefined) return [sent(change)]
    const membership = await this.#loaded(revision - 1)
    this.#tokens.set(id, before !== null && (was === undefined || membership.sentTokens.has(id)))
    membership.setToken(id, after === null ? undefined : { cluster: is, change: sent(change) })
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

  *#endTokens(membership: Membership): Generator<SentChange> {
    for (const id of inOrder(this.#tokens.keys(), membership.tokensTouched())) {
      const isNew = this.#tokens.has(id)
      const held = this.#tokens.get(id) ?? membership.sentTokens.has(id)
      const token = membership.tokens.get(id)
      const holds = membership.holdsToken(id)
      if (token && holds && (isNew || !held)) yield token.change
      else if (held && !holds) yield removal({ type: TOKENS, id })
    }
  }

  get #clusters(): ClusterType {
    return this.#selection.types.cluster
  }

  #isLeftOut(type: string): boolean {
    return type === SOURCES || this.#selection.types.bookkeeping.has(type)
  }

  async #loaded(revision: number): Promise<Membership> {
    if (this.#membership) return this.#membership
    const membership = new Membership()
    if (revision > 0) {
      for await (const { type, id, json, deleted } of documentsAt(this.#store, revision)) {
        if (type === this.#clusters.type.name) membership.setCluster(id, this.#look(json, deleted))
        else if (type === TOKENS && clusterOf(json) !== undefined) {
          const change = { type, id, after: json, after_deleted: deleted }
          membership.setToken(id, { cluster: clusterOf(json), change })
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
  /** Of a tombstone that matches: it may come back without a change of its own. */
  readonly json: string | undefined
}

interface TokenOfCluster {
  readonly cluster: string | undefined
  readonly change: SentChange
}

/** Whether nothing but the cluster itself depends on the change. */
function concernsOnlyItself(before: Cluster | undefined, after: Cluster | undefined): boolean {
  if (!before || !after || before.deleted || after.deleted) return false
  return before.matches === after.matches && (after.matches || before.dns === after.dns)
}

/** Each once; the hash of a revision must not depend on where its source was read from. */
function inOrder(...ids: readonly Iterable<string>[]): string[] {
  return [...new Set(ids.flatMap((some) => [...some]))].sort()
}

/** The source's clusters and their tokens, by what decides whether the part holds them. */
class Membership {
  readonly tokens = new Map<string, TokenOfCluster>()
  /** Tokens that the part holds since the last revision that ended. */
  readonly sentTokens = new Set<string>()
  readonly #clusters = new Map<string, Cluster>()
  readonly #sentTombstones = new Set<string>()
  /** How many live clusters outside the part have a DNS name, and which tombstones inside. */
  readonly #outside = new Map<string, number>()
  readonly #tombstones = new Map<string, Set<string>>()
  readonly #tokensOf = new Map<string, Set<string>>()
  readonly #touchedNames = new Set<string>()
  readonly #touchedClusters = new Set<string>()
  readonly #touchedTokens = new Set<string>()

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

  setToken(id: string, token: TokenOfCluster | undefined): void {
    const old = this.tokens.get(id)
    if (old?.cluster !== undefined) this.#tokensOf.get(old.cluster)?.delete(id)
    if (token?.cluster !== undefined) getOrSet(this.#tokensOf, token.cluster, () => new Set<string>()).add(id)
    if (token) this.tokens.set(id, token)
    else this.tokens.delete(id)
    this.#touchedTokens.add(id)
  }

  holdsCluster(id: string): boolean {
    const cluster = this.#clusters.get(id)
    return cluster?.matches === true && !(cluster.deleted && this.#outside.has(cluster.dns))
  }

  holdsToken(id: string): boolean {
    const token = this.tokens.get(id)
    if (!token) return false
    return token.cluster === undefined || this.#clusters.get(token.cluster)?.matches === true
  }

  /** Whether the part has held a cluster since the last revision that ended. */
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

  tokensTouched(): string[] {
    return [...this.#touchedClusters].flatMap((id) => [...(this.#tokensOf.get(id) ?? [])])
  }

  /** From here on the part holds what it is to hold. */
  settle(): void {
    for (const id of this.tombstonesTouched()) {
      if (this.holdsCluster(id)) this.#sentTombstones.add(id)
      else this.#sentTombstones.delete(id)
    }
    for (const id of [...this.tokensTouched(), ...this.#touchedTokens]) {
      if (this.holdsToken(id)) this.sentTokens.add(id)
      else this.sentTokens.delete(id)
    }
    for (const touched of [this.#touchedNames, this.#touchedClusters, this.#touchedTokens]) touched.clear()
  }
}

/** The cluster that a token is for, of those that are for one. */
function clusterOf(json: string | null): string | undefined {
  if (json === null) return undefined
  const { role, cluster } = asToken(JSON.parse(json) as Document)
  return role === 'cluster' ? cluster : undefined
}

export function sent({ type, id, after, after_deleted }: SentChange): SentChange {
  return { type, id, after, after_deleted }
}

function removal({ type, id }: Pick<SentChange, 'type' | 'id'>): SentChange {
  return { type, id, after: null, after_deleted: false }
}
