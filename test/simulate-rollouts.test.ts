// Whole rollouts over a simulated fleet, every answer and every step checked from outside; and that wrong ones are noticed.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { asRollout, ROLLOUTS, type Rollout, type Wave } from '../src/domain/rollouts/rollout.ts'
import {
  askUntilDone,
  hasEnded,
  previewRollout,
  type RolloutOrder,
  startRollout,
  untilRollout,
} from '../tools/simulate/rollouts/rollout-run.ts'
import { changedComponentOf, changesTo } from '../tools/simulate/rollouts/rollout-scenario.ts'
import { type SimulatedRollouts, type SimulationOptions, simulateRollouts } from './simulated-rollouts.ts'

const MINUTE = 60_000
const CANARY = { name: 'canary', count: 1, gates: { healthy_percent: 100, soak_s: 30 } }
const WAVES = [
  CANARY,
  { name: 'tenth', percent: 20, gates: { applied_percent: 100, soak_s: 10 } },
  { name: 'rest', rest: true, max_concurrent: 5, gates: { applied_percent: 95, failures: '10%' } },
]
const ORDER: RolloutOrder = { message: 'to v2', changes: changesTo('v2.0.0'), rollout: { waves: WAVES } }

/** Clusters that have been answered and have reported; gone after the test. */
async function start(t: TestContext, options: Partial<SimulationOptions> = {}): Promise<SimulatedRollouts> {
  const run = await simulateRollouts({ clusters: 20, interval: 20_000, ...options })
  t.after(() => run.stop())
  await run.world.pass(40_000)
  return run
}

async function assertAllRight({ world, figures }: SimulatedRollouts): Promise<void> {
  await world.watch.log.follow()
  const { wrong, errors } = figures()
  assert.deepEqual({ wrong, errors, problems: world.watch.problems }, { wrong: [], errors: 0, problems: [] })
}

test('a rollout goes through a fleet as previewed, wave by wave, and every answer and step is right', async (t) => {
  const run = await start(t)
  const { world } = run
  const { waves } = (await previewRollout(world, ORDER)) as { waves: readonly { members: number }[] }
  assert.deepEqual(
    waves.map(({ members }) => members),
    [1, 4, 15],
  )
  const id = await startRollout(world, ORDER)
  const ended = await untilRollout(world, id, hasEnded, 30 * MINUTE)
  assert.equal(ended.state, 'finished')
  assert.deepEqual(
    ended.waves.map(({ members, opened }) => [members, opened]),
    waves.map(({ members }) => [members, members]),
  )
  await world.pass(30_000)
  await assertAllRight(run)
  assert.ok(world.watch.steps >= 3 * WAVES.length, `${world.watch.steps} steps`)
})

test('an aborted rollout gives every cluster its former bytes, and what was applied then proves nothing to the next one', async (t) => {
  const run = await start(t)
  const { world } = run
  const first = await startRollout(world, ORDER)
  await untilRollout(world, first, ({ waves }) => waves[1]?.state === 'passed', 30 * MINUTE)
  const served = run.named(first, 1)
  // Cut off before they are served the base again, with everything applied that the next rollout brings.
  for (const n of served) run.tell(n, { kind: 'away' })
  await askUntilDone(world, 'POST', `/rollouts/${first}/abort`, {})
  await world.pass(30_000)
  const second = await startRollout(world, { ...ORDER, message: 'to v2 again' })
  await untilRollout(world, second, ({ waves }) => waves[1]?.state === 'open', 30 * MINUTE)
  assert.deepEqual(run.named(second, 1), served)
  await world.pass(5 * MINUTE)
  assert.equal(world.watch.rollout(second)?.waves[1]?.state, 'open', 'nobody of the wave can be asked')
  for (const n of served) run.tell(n, { kind: 'back' })
  await untilRollout(world, second, hasEnded, 30 * MINUTE)
  await assertAllRight(run)
})

test('members that fail stop a rollout where more fail than may, and it goes on when they recover', async (t) => {
  const run = await start(t)
  const { world } = run
  const id = await startRollout(world, ORDER)
  await untilRollout(world, id, ({ waves }) => waves[1]?.state === 'open', 30 * MINUTE)
  const [failing = assert.fail()] = run.named(id, 1)
  run.tell(failing, { kind: 'fail', component: changedComponentOf(failing) })
  await untilRollout(world, id, ({ state }) => state === 'paused', 10 * MINUTE)
  await world.pass(5 * MINUTE)
  assert.equal(world.watch.rollout(id)?.waves[2]?.opened, 0)
  run.tell(failing, { kind: 'recover' })
  await world.pass(5 * MINUTE)
  await askUntilDone(world, 'POST', `/rollouts/${id}/retry`, {})
  const ended = await untilRollout(world, id, hasEnded, 30 * MINUTE)
  assert.equal(ended.state, 'finished')
  await assertAllRight(run)
})

/** Takes a step in the name of the service. */
async function force(
  { service, world }: SimulatedRollouts,
  id: string,
  change: (rollout: Rollout) => Rollout,
): Promise<void> {
  const { engine } = service
  const entry = engine.state.get(ROLLOUTS, id) ?? assert.fail()
  const command = { op: 'put_rollout', rollout: change(asRollout(entry)), assumed: 0, path: '' } as const
  const author = { actor: `rollout/${id}`, message: null, request_id: 'forced', client_address: null }
  const done = await engine.write([command], author, {
    ownRollout: id,
    confirmRemovals: true,
    confirmFinish: true,
  })
  assert.ok(done.ok, JSON.stringify(done))
  await world.watch.log.reach(done.value.revision)
}

function withWave(rollout: Rollout, at: number, patch: Partial<Wave>): Rollout {
  return { ...rollout, waves: rollout.waves.with(at, { ...(rollout.waves[at] as Wave), ...patch }) }
}

const OPEN = { state: 'open', opened_at: '2026-03-01T12:01:00.000Z' } as const

/** Steps that a service must not take right after the start of a rollout, and what is said of them. */
const WRONG_STEPS: Readonly<
  Record<string, readonly [step: (rollout: Rollout, revision: number) => Rollout, said: RegExp]>
> = {
  'a second wave opened before the first has passed': [
    (rollout, opened_revision) => withWave(rollout, 1, { ...OPEN, opened: 4, opened_revision }),
    /wave tenth opened, and canary has not passed/,
  ],
  'a wave passed without evidence': [
    (rollout) => withWave(rollout, 0, { state: 'passed' }),
    /wave canary passed with 0 of 1 healthy for 30 s, and needs 1/,
  ],
  'more members opened than may be under way': [
    (rollout, opened_revision) => {
      const passed = [0, 1].reduce((each, at) => withWave(each, at, { state: 'skipped' }), rollout)
      return withWave(passed, 2, { ...OPEN, opened: 6, opened_revision })
    },
    /wave rest has 6 members under way, and 5 may be/,
  ],
  'a wave closed again': [(rollout) => withWave(rollout, 0, { opened: 0 }), /wave canary was closed again/],
  'a finish before every wave has passed': [
    (rollout) => ({ ...rollout, state: 'finished' }),
    /finished, and not every wave has passed/,
  ],
  'a wave opened by another revision than it says': [
    (rollout) =>
      withWave(withWave(rollout, 0, { state: 'skipped' }), 1, { ...OPEN, opened: 1, opened_revision: 1 }),
    /wave tenth says that it opened at revision 1/,
  ],
}

for (const [name, [step, said]] of Object.entries(WRONG_STEPS))
  test(`${name} is noticed`, async (t) => {
    const run = await start(t, { isControlled: false })
    const id = await startRollout(run.world, ORDER)
    await force(run, id, (rollout) => step(rollout, run.service.engine.state.revision + 1))
    assert.match(run.world.watch.problems.join('\n'), said)
  })

test('a wave opened while members of an earlier one fail is noticed', async (t) => {
  const run = await start(t, { isControlled: false })
  const id = await startRollout(run.world, ORDER)
  const [canary = assert.fail()] = run.named(id, 0)
  await run.world.pass(30_000)
  run.tell(canary, { kind: 'fail', component: changedComponentOf(canary) })
  await run.world.pass(10_000)
  const opened_revision = run.service.engine.state.revision + 1
  await force(run, id, (rollout) => {
    const skipped = withWave(rollout, 0, { state: 'skipped' })
    return withWave(skipped, 1, { ...OPEN, opened: 4, opened_revision })
  })
  assert.deepEqual(run.world.watch.problems, [
    `${id} at revision 3: wave tenth opened, and 1 members of canary fail: ${run.ids[canary]}`,
  ])
})

test('a cluster that was set aside although it answers is noticed', async (t) => {
  const run = await start(t, { isControlled: false })
  const id = await startRollout(run.world, ORDER)
  await run.world.pass(30_000)
  const [canary = assert.fail()] = run.named(id, 0)
  const set_aside = [run.ids[canary] as string]
  await force(run, id, (rollout) => ({ ...rollout, set_aside }))
  assert.match(run.world.watch.problems.join('\n'), /was set aside, and had been answered \d+ ms before/)
  assert.match(
    run.world.watch.problems.join('\n'),
    /was set aside \d+ ms after its wave opened, and has 3600 s/,
  )
})

/** A service that goes on answering what it answered when it froze, as if it were of the present revision. */
function createFrozen(): { isFrozen: boolean; readonly lie: NonNullable<SimulationOptions['lie']> } {
  const kept = new Map<string, string>()
  const frozen = {
    isFrozen: false,
    lie: (({ kind, path }, answer) => {
      if (kind !== 'poll' || answer.kind === 'dropped') return answer
      if (!frozen.isFrozen) kept.set(path, answer.body)
      return { ...answer, body: kept.get(path) ?? answer.body }
    }) satisfies SimulationOptions['lie'],
  }
  return frozen
}

test('members that still get the base after their wave has opened are noticed, and nobody else', async (t) => {
  const service = createFrozen()
  const run = await start(t, { isControlled: false, lie: service.lie })
  service.isFrozen = true
  const id = await startRollout(run.world, ORDER)
  await run.world.pass(40_000)
  const { wrong } = run.figures()
  assert.deepEqual(
    [...new Set(wrong.map(({ dns }) => dns))],
    run.named(id, 0).map((n) => run.names[n]),
  )
  assert.match(String(wrong[0]?.problems), /"oci_tag":"v1.0.0".* instead of .*"oci_tag":"v2.0.0"/)
})

test('members that still get the change after it was aborted are noticed', async (t) => {
  const service = createFrozen()
  const run = await start(t, { isControlled: false, lie: service.lie })
  const id = await startRollout(run.world, ORDER)
  await run.world.pass(40_000)
  await assertAllRight(run)
  const members = run.named(id, 0).map((n) => run.names[n])
  service.isFrozen = true
  await askUntilDone(run.world, 'POST', `/rollouts/${id}/abort`, {})
  await run.world.pass(40_000)
  const { wrong } = run.figures()
  assert.deepEqual([...new Set(wrong.map(({ dns }) => dns))], members)
})
