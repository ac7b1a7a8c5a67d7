// Freezes keep writes from changing what the clusters that they cover are served.
import { conflictOf, MAX_DETAILS, type Problem } from '../../base/problem.ts'
import { named } from '../../base/sentences.ts'
import type { Steps } from '../../base/steps.ts'
import type { Bypass } from '../access/permissions.ts'
import type { WriteCommand } from '../commands/command.ts'
import type { Comparison } from '../delivery/compare-served.ts'
import type { Entry } from '../documents/view.ts'
import {
  bypassOf,
  type Freeze,
  freezePhase,
  freezesIn,
  type KnownFreeze,
  nameFreezes,
  thawOf,
} from '../rollouts/freeze.ts'
import { asRollout, ROLLOUTS } from '../rollouts/rollout.ts'

/** Whether commands only bring back what clusters were served before: that is never frozen. */
export function isWayBack(commands: readonly WriteCommand[]): boolean {
  return commands.every((command) => {
    if (command.op === 'act_on_rollout')
      return command.action.kind === 'abort' || command.action.kind === 'skip'
    return command.op === 'revert' || command.op === 'rollback'
  })
}

export interface Frozen {
  readonly problem: Problem
  /** Who may pass it all the same. */
  readonly bypass: Bypass
}

/** `served` compares what clusters are served before and after the commit; `now` is in milliseconds. */
export function* checkFrozen(served: Comparison, now: number): Steps<Frozen | undefined> {
  const { types, before, after } = served
  const known = freezesIn(types, before)
  if (known.length === 0) return undefined
  const isOpening = opensMembers(served)
  const all = known.filter(({ freeze }) => freeze.blocks !== 'rollouts' || isOpening)
  const on = all.filter(({ freeze }) => freezePhase(freeze, now).isOn)
  if (on.length === 0) return undefined
  const clusters = types.cluster.type.name
  const found = new Findings(all)
  for (const candidate of served.candidates()) {
    yield
    const { id } = candidate
    const was = before.get(clusters, id)
    // Nothing is taken from a cluster that joins.
    if (!was) continue
    const standings = [was, after.get(clusters, id)].filter((entry) => entry !== undefined)
    if (on.some((freeze) => coversAny(freeze, standings)) && served.compare(candidate).length > 0)
      found.add(id, standings)
  }
  return found.ids.length === 0 ? undefined : found.refusal(clusters, now)
}

/** A cluster is covered as it is and as it would be: no write moves one out of a freeze. */
function coversAny({ covers }: KnownFreeze, standings: readonly Entry[]): boolean {
  return standings.some(({ document }) => covers(document))
}

/** Whether more members of a rollout are served its change. */
function opensMembers({ before, after }: Comparison): boolean {
  return [...after.laid(ROLLOUTS).keys()].some((id) => {
    const [was, is] = [before.get(ROLLOUTS, id), after.get(ROLLOUTS, id)]
    const openedBefore = was ? asRollout(was).waves.map(({ opened }) => opened) : []
    return is !== undefined && asRollout(is).waves.some(({ opened }, i) => opened > (openedBefore[i] ?? 0))
  })
}

/** The frozen clusters that a write would change, and the freezes that cover one of them, now or later. */
class Findings {
  readonly ids: string[] = []
  readonly #all: readonly KnownFreeze[]
  readonly #covering = new Set<Freeze>()

  constructor(all: readonly KnownFreeze[]) {
    this.#all = all
  }

  add(id: string, standings: readonly Entry[]): void {
    this.ids.push(id)
    for (const known of this.#all)
      if (!this.#covering.has(known.freeze) && coversAny(known, standings)) this.#covering.add(known.freeze)
  }

  refusal(clusters: string, now: number): Frozen {
    const covering = [...this.#covering]
    const on = covering.filter((freeze) => freezePhase(freeze, now).isOn)
    const bypass = bypassOf(on)
    const thaw = thawOf(covering, now)
    const until = thaw === undefined ? undefined : new Date(thaw).toISOString()
    const wait = `wait until ${until ?? (on.length === 1 ? 'it is deleted' : 'they are deleted')}`
    const ways = bypass === 'nobody' ? `${wait}; nobody may bypass it` : `${wait}, or bypass it with a reason`
    const freezes = nameFreezes(on)
    const problem = conflictOf(
      'frozen',
      `this would change ${named(this.ids)}, under ${freezes}: ${ways}`,
      this.ids
        .slice(0, MAX_DETAILS)
        .map((id) => ({ path: `/${clusters}/${id}`, message: `is under ${freezes}` })),
    )
    return { problem: { ...problem, ...(until !== undefined && { nextOpen: until }) }, bypass }
  }
}
