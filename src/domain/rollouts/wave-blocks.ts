// Why a rollout may not serve its change to more clusters now: windows that are closed, and freezes.
import { named } from '../../base/sentences.ts'
import type { Steps } from '../../base/steps.ts'
import { mayBypass } from '../access/permissions.ts'
import type { View } from '../documents/view.ts'
import type { Types } from '../types/resource-type.ts'
import type { ActiveRollout } from './active-rollout.ts'
import type { Block, Surroundings } from './advance.ts'
import { phaseAt } from './calendar.ts'
import { type Freeze, freezePhase, freezesIn, type KnownFreeze, nameFreezes, thawOf } from './freeze.ts'
import { type Rollout, specOf } from './rollout.ts'

/** A rollout with its members, as a view has them, at a moment. */
export interface Moment {
  readonly types: Types
  readonly view: View
  readonly active: ActiveRollout
  readonly now: Date
}

/** Works out what keeps the next wave from opening or, where all waves have ended, the change from being finished. */
export function* surroundingsOf(moment: Moment): Steps<Surroundings> {
  const { view, active, now } = moment
  const { rollout } = active
  const next = rollout.waves.findIndex(
    ({ state, opened, members }) => (state === 'waiting' || state === 'open') && opened < members,
  )
  const closed = next < 0 ? undefined : closedWindow(rollout, next, now.getTime())
  const frozen = closed ? undefined : yield* frozenMembers(moment, next)
  return {
    now: now.toISOString(),
    revision: view.revision + 1,
    blockOf(wave, opened) {
      if (wave !== next) return undefined
      return closed ?? frozen?.blockBefore(opened, `of wave ${specOf(rollout, wave).name}`)
    },
    blockOfFinish: () =>
      next < 0 ? frozen?.blockBefore(Number.POSITIVE_INFINITY, 'that the finish would change') : undefined,
  }
}

function closedWindow(rollout: Rollout, wave: number, now: number): Block | undefined {
  const { window, name } = specOf(rollout, wave)
  const phase = window && phaseAt(window, now)
  if (!phase || phase.isOpen) return undefined
  if (phase.until === undefined) return { why: `wave ${name}: its window does not open any more` }
  const until = new Date(phase.until).toISOString()
  return { why: `wave ${name} opens at ${until}: its window is closed until then`, until }
}

/** Members of a wave that are not open yet; without a wave, all those that the finish would reach. */
function* frozenMembers({ types, view, active, now }: Moment, wave: number): Steps<FrozenMembers> {
  const { rollout } = active
  const frozen = new FrozenMembers(freezesAgainst(types, view, rollout), now.getTime())
  const clusters = types.cluster.type.name
  for (const [i, { opened }] of frozen.isLooking ? rollout.waves.entries() : []) {
    if (wave >= 0 && i !== wave) continue
    let place = -1
    for (const id of active.membersOf(i)) {
      yield
      place++
      if (!frozen.isLooking) return frozen
      const isSkipped = active.isSkipped(id)
      if (wave >= 0 ? isSkipped || place < opened : !isSkipped && place < opened) continue
      const cluster = view.get(clusters, id)
      if (cluster) frozen.see(id, place, cluster.document)
    }
  }
  return frozen
}

/** The freezes that count for a rollout. */
function freezesAgainst(
  types: Types,
  view: View,
  { bypass: bypasses, grant }: Rollout,
): readonly KnownFreeze[] {
  const isPassed = ({ freeze: { bypass } }: KnownFreeze): boolean =>
    bypasses === true && (grant === undefined || mayBypass(grant, bypass))
  return freezesIn(types, view).filter((known) => !isPassed(known))
}

/** Frozen members to look for: more of them say nothing new. */
const MAX_FOUND = 20

class FrozenMembers {
  readonly #all: readonly KnownFreeze[]
  readonly #on: readonly KnownFreeze[]
  readonly #now: number
  readonly #found: { readonly id: string; readonly place: number; readonly by: readonly Freeze[] }[] = []

  constructor(all: readonly KnownFreeze[], now: number) {
    this.#all = all
    this.#on = all.filter(({ freeze }) => freezePhase(freeze, now).isOn)
    this.#now = now
  }

  get isLooking(): boolean {
    return this.#on.length > 0 && this.#found.length < MAX_FOUND
  }

  see(id: string, place: number, cluster: Parameters<KnownFreeze['covers']>[0]): void {
    if (!this.#on.some(({ covers }) => covers(cluster))) return
    const by = this.#all.filter(({ covers }) => covers(cluster)).map(({ freeze }) => freeze)
    this.#found.push({ id, place, by })
  }

  /** What keeps members before a place from being served the change. */
  blockBefore(end: number, which: string): Block | undefined {
    const found = this.#found.filter(({ place }) => place < end)
    if (found.length === 0) return undefined
    const covering = [...new Set(found.flatMap(({ by }) => by))]
    const thaw = thawOf(covering, this.#now)
    const names = nameFreezes(covering.filter((freeze) => freezePhase(freeze, this.#now).isOn))
    const clusters = `${named(found.map(({ id }) => id))} ${which}`
    if (thaw === undefined) return { why: `${names} to be deleted, which covers ${clusters}` }
    const until = new Date(thaw).toISOString()
    return { why: `the end of ${names} at ${until}, which covers ${clusters}`, until }
  }
}
