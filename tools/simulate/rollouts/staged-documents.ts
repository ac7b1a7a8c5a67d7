// What each cluster is to be served at a revision: the documents as the log has them, with the changes of the rollouts that
// are open for it laid over them.
import { isObject, type Json, type JsonObject } from '../../../src/base/json.ts'
import { benchFleetInputs, type Endpoint } from '../bench-fleet-inputs.ts'
import type { ExpectedInputs } from '../oracle.ts'
import type { FleetLog } from './fleet-log.ts'

/** What somebody asked for: a merge patch of one document. */
export interface AskedChange {
  readonly type: string
  readonly id: string
  readonly patch: JsonObject
}

/** A rollout as the log has it: the fields that say whom it is open for. */
export interface LoggedRollout {
  readonly id: string
  readonly state: string
  readonly waves: readonly LoggedWave[]
  readonly skipped: readonly string[]
  readonly set_aside: readonly string[]
  readonly retried_at?: string
}

export interface LoggedWave {
  readonly name: string
  readonly state: string
  readonly members: number
  readonly opened: number
  readonly opened_revision?: number
}

/** A rollout that has not ended, at a revision. */
export interface ActiveAt {
  readonly rollout: LoggedRollout
  /** The revision that brought its plan. */
  readonly plannedAt: number
  readonly members: Members
}

/** The wave of each member, and its place in the order in which they are opened. */
type Members = ReadonlyMap<string, { readonly wave: number; readonly place: number }>

/** Types whose documents the inputs of an endpoint are made from, beside the cluster. */
const DEFINITIONS: Readonly<Record<string, string>> = {
  'platform-components': 'platform_components',
  namespaces: 'namespaces',
  rolebindings: 'rolebindings',
}

export class StagedDocuments {
  readonly #log: FleetLog
  /** Ids of clusters by their DNS names. */
  readonly #ids: ReadonlyMap<string, string>
  /** What was asked for, by the message of the write. */
  readonly #asked = new Map<string, readonly AskedChange[]>()
  readonly #members = new WeakMap<JsonObject, Members>()

  constructor(log: FleetLog, ids: ReadonlyMap<string, string>) {
    this.#log = log
    this.#ids = ids
  }

  /** Says what a rollout is about before it is asked for; no other write may have this message. */
  ask(message: string, changes: readonly AskedChange[]): void {
    this.#asked.set(message, changes)
  }

  /** Rollouts that have not ended at a revision; only those have a plan. */
  *activeAt(revision: number): Generator<ActiveAt> {
    const log = this.#log
    for (const plan of log.all('rollout_plans', revision)) {
      const id = String(plan.id)
      const rollout = log.get('rollouts', id, revision)
      if (!rollout) throw new Error(`rollout ${id} has a plan at revision ${revision}, and is not there`)
      yield {
        rollout: rollout as unknown as LoggedRollout,
        plannedAt: log.versionOf('rollout_plans', id, revision),
        members: this.#membersOf(plan),
      }
    }
  }

  /** Names all that an answer is made from, once the log is known so far. */
  async stateAt(dns: string, endpoint: string, revision: number): Promise<string> {
    const log = this.#log
    await log.reach(revision)
    const open = this.#openFor(this.#idOf(dns), revision)
    return [
      log.versionOf('clusters', this.#idOf(dns), revision),
      log.changedAt(DEFINITIONS[endpoint] ?? '', revision),
      ...open.map(({ rollout, plannedAt }) => `${rollout.id}@${plannedAt}`),
    ].join()
  }

  async expect(dns: string, endpoint: string, revision: number): Promise<ExpectedInputs | undefined> {
    await this.#log.reach(revision)
    const id = this.#idOf(dns)
    const open = this.#openFor(id, revision)
    const changes = open.flatMap((active) => this.askedFor(active).changes)
    const find = (type: string, name: string): JsonObject => {
      const laid = changes
        .filter((change) => change.type === type && change.id === name)
        .reduce<Json>(
          (document, { patch }) => merge(document, patch),
          this.#log.get(type, name, revision) ?? {},
        )
      return laid as JsonObject
    }
    return benchFleetInputs(find('clusters', id), endpoint as Endpoint, find)
  }

  /** What a rollout is about by its plan: what it was started with, or amended to, and the revision that did it. */
  askedFor({ rollout: { id }, plannedAt }: ActiveAt): { askedAt: number; changes: readonly AskedChange[] } {
    for (let at = plannedAt; at > 0; at = this.#log.versionOf('rollout_plans', id, at - 1)) {
      const changes = this.#asked.get(this.#log.messageOf(at) ?? '')
      if (changes) return { askedAt: at, changes }
    }
    throw new Error(`nobody asked for rollout ${id}`)
  }

  #openFor(cluster: string, revision: number): ActiveAt[] {
    return [...this.activeAt(revision)].filter(({ rollout, members }) => {
      const member = members.get(cluster)
      const wave = member && rollout.waves[member.wave]
      return wave && member.place < wave.opened && !rollout.skipped.includes(cluster)
    })
  }

  #membersOf(plan: JsonObject): Members {
    let members = this.#members.get(plan)
    if (!members) {
      const waves = plan.members as readonly (readonly string[])[]
      members = new Map(waves.flatMap((ids, wave) => ids.map((id, place) => [id, { wave, place }] as const)))
      this.#members.set(plan, members)
    }
    return members
  }

  #idOf(dns: string): string {
    return this.#ids.get(dns) ?? dns
  }
}

/** A merge patch laid over a document: null removes a field. */
function merge(value: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch
  const merged: Record<string, Json> = { ...(isObject(value) ? value : {}) }
  for (const [key, each] of Object.entries(patch)) {
    if (each === null) delete merged[key]
    else merged[key] = merge(merged[key], each)
  }
  return merged
}
