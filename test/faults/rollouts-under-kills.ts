// Rollouts, one after the other, while the process that takes their steps is killed again and again.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  askUntilDone,
  type End,
  hasEnded,
  startRollout,
  untilRollout,
} from '../../tools/simulate/rollouts/rollout-run.ts'
import { changesTo } from '../../tools/simulate/rollouts/rollout-scenario.ts'
import type { LoggedRollout } from '../../tools/simulate/rollouts/staged-documents.ts'
import { createRandom, type Random } from '../seeded-random.ts'
import { chooseSeed } from './fleet-load.ts'
import { type KilledOptions, KilledService } from './killed-service.ts'

export const WAVES = [
  { name: 'canary', count: 2, gates: { healthy_percent: 100, soak_s: 1 } },
  { name: 'tenth', percent: 25, gates: { applied_percent: 100 } },
  { name: 'rest', rest: true, max_concurrent: 4, gates: { applied_percent: 100 } },
]
const WITHIN_MS = 5 * 60_000
/** For how long a process may live; every third one long enough that its clusters are heard, however slow the machine. */
const LIFE_MS = 3500
const LONG_LIFE_MS = 12_000
/** One of so many killed processes leaves a lease that has to expire by itself. */
const LEFT_LEASES = 12
/** Replicas tell each other what clusters reported every ten seconds. */
const FIXES_TO_A_HOTFIX = 60
const ENDS: readonly End[] = ['finish', 'abort']

export interface KillsOptions extends Omit<KilledOptions, 'random'> {
  readonly kills: number
}

/** What a broken connection says; an answer with another status than 200 is a failure. */
const BROKEN = new Set(['closed', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'nobody lives'])

export async function rolloutsUnderKills(t: TestContext, { kills, ...options }: KillsOptions): Promise<void> {
  const seed = chooseSeed()
  t.diagnostic(`FAULTS_SEED=${seed}`)
  const random = createRandom(seed)
  const service = new KilledService(t, { ...options, random })
  await service.start()
  await sleep(2000)
  const ended = new AbortController()
  const killing = killOften(service, kills, random, ended.signal)
  const fixing = fixOften(service, ended.signal)
  let rollouts = 0
  try {
    rollouts = await runMany(service, killing)
  } finally {
    ended.abort()
    await Promise.all([killing, fixing])
  }
  await sleep(2000)
  await assertRight(service)
  const { steps } = service.world.watch
  const term = await service.leaseTerm()
  assert.ok(term >= kills / 4, `the lease has changed hands ${term} times`)
  t.diagnostic(
    `${kills} kills, ${term} holders of the lease, ${rollouts} rollouts, ${steps} steps, ${service.figures().polls} polls, ${service.acknowledged.length} writes acknowledged`,
  )
}

/** One rollout after the other; the last one is not disturbed. Returns how many. */
async function runMany(service: KilledService, killing: Promise<void>): Promise<number> {
  let isOver = false
  const over = killing.finally(() => {
    isOver = true
  })
  let n = 0
  for (let isLast = false; !isLast; n++) {
    isLast = isOver
    await runOne(service, n)
  }
  await over
  return n
}

/** No answer and no step was wrong, and the log has every acknowledged write once. */
async function assertRight(service: KilledService): Promise<void> {
  await service.checkLog()
  const { wrong, errors_by_kind } = service.figures()
  const { problems } = service.world.watch
  assert.deepEqual({ wrong, problems }, { wrong: [], problems: [] })
  for (const errors of Object.values(errors_by_kind))
    assert.deepEqual(
      Object.keys(errors).filter((error) => !BROKEN.has(error)),
      [],
      JSON.stringify(errors),
    )
}

async function killOften(
  service: KilledService,
  kills: number,
  random: Random,
  signal: AbortSignal,
): Promise<void> {
  for (let n = 1; n <= kills && !signal.aborted; n++) {
    // Every other one is killed while it takes steps, whatever the others were at.
    if (n % 2 === 0) await service.untilControlled(LONG_LIFE_MS)
    await sleep(random.below(n % 3 === 0 ? LONG_LIFE_MS : LIFE_MS))
    await service.killController({ expiresAtOnce: n % LEFT_LEASES > 0 })
  }
}

/**
 * Other fields of the documents that are rolled out, and of a cluster, go on changing: the documents so seldom that clusters
 * get to prove an answer before it changes again.
 */
async function fixOften({ world }: KilledService, signal: AbortSignal): Promise<void> {
  for (let n = 0; !signal.aborted; n++) {
    if (n % FIXES_TO_A_HOTFIX === 0)
      await askUntilDone(world, 'PATCH', '/platform_components/component-6', {
        component_version: `1.6.0-fix.${n}`,
      })
    await askUntilDone(world, 'PATCH', '/clusters/cluster-000001', { labels: { fixed: String(n) } })
    await sleep(500)
  }
}

/** A rollout of its own version; ends as it is meant to. */
async function runOne({ world }: KilledService, n: number): Promise<LoggedRollout> {
  const tag = `v2.${n}.0`
  const order = { message: `to ${tag}`, changes: changesTo(tag), rollout: { waves: WAVES } }
  const id = await startRollout(world, order)
  const end = ENDS[n % ENDS.length]
  if (end === 'abort') {
    await untilRollout(world, id, ({ waves }) => (waves.at(-1)?.opened ?? 0) > 0, WITHIN_MS)
    await askUntilDone(world, 'POST', `/rollouts/${id}/abort`, {})
  }
  const rollout = await untilRollout(world, id, hasEnded, WITHIN_MS)
  assert.equal(rollout.state, end === 'abort' ? 'aborted' : 'finished')
  return rollout
}
