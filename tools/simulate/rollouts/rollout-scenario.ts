// One rollout of `npm run simulate`, from its preview until every cluster has what its end leaves; and what that takes.
import type { JsonObject } from '../../../src/base/json.ts'
import {
  amendRollout,
  askUntilDone,
  type End,
  hasEnded,
  previewRollout,
  type RolloutOrder,
  type RolloutWorld,
  startRollout,
  untilHeard,
  untilRollout,
} from './rollout-run.ts'
import type { AskedChange, LoggedRollout } from './staged-documents.ts'

/** Every cluster of a made fleet has exactly one of these: its picks are three apart. */
const COMPONENTS = [6, 7, 8]

/** The component of the n-th cluster that the rollouts of the simulation change. */
export function changedComponentOf(n: number): string {
  return `component-${COMPONENTS[n % COMPONENTS.length]}`
}

/** A change that reaches every cluster of a made fleet. */
export function changesTo(tag: string): AskedChange[] {
  return COMPONENTS.map((n) => ({
    type: 'platform_components',
    id: `component-${n}`,
    patch: { oci_tag: tag },
  }))
}

/** Some clusters stay away for ever: nobody waits longer for those than so many intervals. */
const HEARD_INTERVALS = 4
/** Intervals from the first polls until such a rollout of the quick strategy has ended, about. */
export const QUICK_INTERVALS = 9

const QUICK_GATES = { applied_percent: 90, failures: '10%', soak_s: 2 }

/** Quick, and with room for the clusters that `--faults` breaks; one wave waits until the absent ones are set aside. */
function quickStrategy(intervalMs: number): JsonObject {
  const deadline_s = Math.ceil((2 * intervalMs) / 1000)
  return {
    waves: [
      { name: 'canary', count: 10, deadline_s, gates: { healthy_percent: 70, failures: 3, soak_s: 2 } },
      { name: '10-percent', percent: 10, deadline_s, gates: QUICK_GATES },
      { name: '50-percent', percent: 50, deadline_s, gates: { ...QUICK_GATES, applied_percent: 98 } },
      { name: 'rest', rest: true, deadline_s, gates: QUICK_GATES },
    ],
  }
}

/** Plain data, for people and programs. */
export interface RolloutSummary {
  readonly end: End
  readonly preview_ms: number
  readonly start_ms: number
  /** How long its end was asked for: of an abort or an amendment, until it was answered. */
  readonly end_ms: number | null
  /** From the start until the log has its end. */
  readonly seconds: number
  /** From the end until every cluster was answered again, or was waited for long enough. */
  readonly heard_seconds: number
  readonly waves: readonly WaveSummary[]
  /** How often it was paused by failures, and somebody let it go on. */
  readonly retries: number
  /** Clusters that were set aside at some time. */
  readonly set_aside: number
  /** Revisions of the log that it took. */
  readonly revisions: number
  readonly steps: number
  readonly wrong_steps: readonly string[]
}

interface WaveSummary {
  readonly name: string
  readonly members: number
  /** Seconds from the start. */
  readonly opened: number | null
  readonly passed: number | null
}

interface LoggedTimes {
  readonly started_at: string
  readonly waves: readonly { readonly opened_at?: string; readonly passed_at?: string }[]
}

export interface Scenario {
  readonly end: End
  readonly strategy: JsonObject | undefined
  /** How often a cluster polls. */
  readonly intervalMs: number
  /** DNS names of the clusters. */
  readonly clusters: readonly string[]
  readonly withinMs: number
}

export async function runScenario(world: RolloutWorld, scenario: Scenario): Promise<RolloutSummary> {
  const { end, intervalMs, strategy = quickStrategy(intervalMs), clusters, withinMs } = scenario
  const { watch } = world
  const order: RolloutOrder = { message: 'to v2.0.0', changes: changesTo('v2.0.0'), rollout: strategy }
  await watch.log.follow()
  const before = watch.log.revision
  const preview_ms = await timed(world, () => previewRollout(world, order))
  let id = ''
  const begun = world.clock()
  const start_ms = await timed(world, async () => {
    id = await startRollout(world, order)
  })
  let retries = 0
  /** As an operator does who has looked at the failures, and finds that they have other causes. */
  const retryPaused = async ({ state }: LoggedRollout): Promise<void> => {
    if (state !== 'paused') return
    retries++
    await askUntilDone(world, 'POST', `/rollouts/${id}/retry`, {})
  }
  const end_ms = await bringToEnd(world, id, scenario, retryPaused)
  const ended = await untilRollout(world, id, hasEnded, withinMs - (world.clock() - begun), retryPaused)
  const seconds = (world.clock() - begun) / 1000
  const heard_seconds =
    (await timed(world, () => untilHeard(world, clusters, HEARD_INTERVALS * intervalMs))) / 1000
  await watch.log.follow()
  return {
    end,
    preview_ms,
    start_ms,
    end_ms,
    seconds,
    heard_seconds,
    waves: wavesOf(ended),
    retries,
    set_aside: watch.setAside,
    revisions: watch.log.revision - before,
    steps: watch.steps,
    wrong_steps: watch.problems,
  }
}

/** In the midst of it: of an abort, once most clusters are served the change. */
async function bringToEnd(
  world: RolloutWorld,
  id: string,
  { end, withinMs }: Scenario,
  meanwhile: (rollout: LoggedRollout) => Promise<void>,
): Promise<number | null> {
  if (end === 'finish') return null
  const isAt = (place: number) => (rollout: LoggedRollout) => (rollout.waves.at(place)?.opened ?? 0) > 0
  await untilRollout(world, id, isAt(end === 'abort' ? -1 : 1), withinMs, meanwhile)
  if (end === 'abort') return timed(world, () => askUntilDone(world, 'POST', `/rollouts/${id}/abort`, {}))
  return timed(world, () => amendRollout(world, id, { message: 'to v2.0.1', changes: changesTo('v2.0.1') }))
}

async function timed({ clock }: RolloutWorld, run: () => Promise<unknown>): Promise<number> {
  const begun = clock()
  await run()
  return clock() - begun
}

function wavesOf(rollout: LoggedRollout): WaveSummary[] {
  const times = rollout as unknown as LoggedTimes
  const seconds = (at: string | undefined): number | null =>
    at === undefined ? null : (Date.parse(at) - Date.parse(times.started_at)) / 1000
  return rollout.waves.map(({ name, members }, i) => {
    const { opened_at, passed_at } = times.waves[i] ?? {}
    return { name, members, opened: seconds(opened_at), passed: seconds(passed_at) }
  })
}
