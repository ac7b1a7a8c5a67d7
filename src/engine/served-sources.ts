// Where a value comes from that a cluster is served and its documents do not hold: an open rollout, or a hold.
import { equalJson, type Json } from '../base/json.ts'
import type { Entry, View } from '../domain/documents/view.ts'
import type { ActiveRollout } from '../domain/rollouts/active-rollout.ts'
import { actorOf } from '../domain/rollouts/advance.ts'
import { asHold, HOLDS } from '../domain/rollouts/hold.ts'
import { ROLLOUTS } from '../domain/rollouts/rollout.ts'
import { stagingOf } from '../domain/rollouts/staging.ts'
import type { Document, Types } from '../domain/types/resource-type.ts'
import type { Past } from './past.ts'

export interface ServedSource {
  readonly revision: number | null
  readonly time: string | null
  readonly actor: string | null
  readonly message: string | null
  /** The rollout that is open for the cluster. */
  readonly rollout?: string
  /** Set where the cluster is held. */
  readonly held?: true
}

type Read = (document: Document) => Json | undefined

export class ServedSources {
  readonly #past: Past
  readonly #view: View
  readonly #cluster: string
  readonly #open: readonly ActiveRollout[]
  readonly #hold: Entry | undefined
  readonly #served: View
  readonly #found = new Map<ActiveRollout | Entry, Promise<ServedSource>>()

  /** `view` is the documents as they were at some revision. */
  constructor(types: Types, past: Past, view: View, cluster: string) {
    const staging = stagingOf(types, view)
    this.#past = past
    this.#view = view
    this.#cluster = cluster
    this.#served = staging.viewFor(cluster)
    this.#hold = staging.isHeld(cluster) ? view.get(HOLDS, cluster) : undefined
    this.#open = staging.active.filter((each) => each.isOpenFor(cluster))
  }

  /** Undefined for a value that the document itself holds. */
  async sourceOf(type: string, id: string, read: Read): Promise<ServedSource | undefined> {
    const base = this.#view.get(type, id)
    const is = valueIn(this.#served.get(type, id), read)
    if (this.#hold) {
      // What a hold has kept of a rollout is the hold's.
      return isSame(is, valueIn(base, read)) ? undefined : this.#once(this.#hold, sourceOfHold)
    }
    let entry = base
    let last: ActiveRollout | undefined
    for (const active of this.#open) {
      const laid = active.overlay.lay(type, id, entry)
      if (!isSame(valueIn(entry, read), valueIn(laid, read))) last = active
      entry = laid
    }
    return last && this.#once(last, (past) => sourceOfRollout(past, last, this.#cluster))
  }

  #once<K extends ActiveRollout | Entry>(
    key: K,
    find: (past: Past, key: K) => Promise<ServedSource>,
  ): Promise<ServedSource> {
    const known = this.#found.get(key)
    if (known) return known
    const found = find(this.#past, key)
    this.#found.set(key, found)
    return found
  }
}

function valueIn(entry: Entry | undefined, read: Read): Json | undefined {
  return entry && read(entry.document)
}

function isSame(a: Json | undefined, b: Json | undefined): boolean {
  return equalJson(a ?? null, b ?? null)
}

/** The revision that opened the cluster: that of its wave, or a later one that opened more of the wave. */
async function sourceOfRollout(past: Past, active: ActiveRollout, cluster: string): Promise<ServedSource> {
  const { rollout } = active
  const wave = rollout.waves[active.placeOf(cluster)?.wave ?? 0]
  const revision = active.openedRevision(cluster)
  const time = (revision === wave?.opened_revision && wave.opened_at) || null
  const own = { revision, time, actor: actorOf(rollout), message: rollout.message }
  return { ...((await recordOf(past, ROLLOUTS, rollout.id, revision)) ?? own), rollout: rollout.id }
}

async function sourceOfHold(past: Past, hold: Entry): Promise<ServedSource> {
  const { since: time, held_by: actor, reason: message } = asHold(hold)
  const made = await recordOf(past, HOLDS, hold.id, hold.revision)
  return { ...(made ?? { revision: hold.revision, time, actor }), message, held: true }
}

/** What the log says of a revision; undefined where it does not reach back that far. */
async function recordOf(past: Past, type: string, id: string, revision: number) {
  for await (const found of past.historyOf(type, id, revision + 1)) {
    const { time, actor, message } = found
    return found.revision === revision ? { revision, time, actor, message } : undefined
  }
  return undefined
}
