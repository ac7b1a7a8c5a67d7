// Laws of staged rollouts, over fleets, writes and rollouts made at random.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { before, mock, test } from 'node:test'
import fc from 'fast-check'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import { changes, strategy } from './random-changes.ts'
import { type Happening, happenings } from './random-rollouts.ts'
import { answersIn, assertMirrors, assertPast } from './rollout-copies.ts'
import { World } from './rollout-world.ts'
import { temporaryFolder } from './service.ts'

/** How many times as much is tried, and then of another seed each time; what fails names its seed. */
const TIMES = Number(process.env.ROLLOUT_RUNS ?? 1)
/** A short run is the same every time: a few cases at random may not come to what happens seldom. */
const SEED = 21

function runs(number: number) {
  return { numRuns: number * TIMES, endOnFailure: true, ...(TIMES === 1 && { seed: SEED }) }
}

const starts = fc
  .array(fc.record({ commands: changes, spec: strategy }), { minLength: 4, maxLength: 8 })
  .map((all) => all.map((each): Happening => ({ kind: 'start', ...each })))

// Controllers take their steps when they are told to.
before(() => mock.timers.enable({ apis: ['setTimeout'] }))

async function worldAfter(sequence: readonly Happening[], open?: () => Promise<World>): Promise<World> {
  const world = await (open?.() ?? World.open())
  for (const happening of sequence) await world.happen(happening)
  return world
}

test('whatever happens, each cluster gets base, base with the edits of its open rollouts, or what it is held at', async () => {
  const tried = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(happenings(), async (sequence) => {
      const world = await worldAfter(sequence)
      await world.stop()
      for (const [what, times] of world.tried) tried.set(what, (tried.get(what) ?? 0) + times)
    }),
    runs(40),
  )
  for (const what of [
    'write: done',
    'write: held_by_rollout',
    'start: done',
    'amend: done',
    'finish: done',
    'hold: done',
    'act abort: done',
    'act skip: done',
    'progress: true',
    'poll: from the cache',
  ])
    assert.ok((tried.get(what) ?? 0) > 0, `never tried: ${what}; ${JSON.stringify([...tried])}`)
})

test('a fleet whose rollouts are all aborted gets what a fleet gets in which they never were', async () => {
  await fc.assert(
    fc.asyncProperty(happenings(), async (sequence) => {
      const world = await worldAfter(sequence)
      for (const _ of world.active())
        await world.happen({ kind: 'act', rollout: 0, action: { kind: 'abort' }, by: 'ann' })
      assert.deepEqual(world.active(), [])
      for (const { id } of [...world.engine.state.all('holds')])
        await world.happen({ kind: 'release', cluster: id })
      assert.deepEqual(answersIn(world.engine.state), answersIn(world.plain.state))
      await world.stop()
    }),
    runs(15),
  )
})

test('a rollout whose clusters all answer well comes to its end, whatever has happened before', async () => {
  let ended = 0
  await fc.assert(
    fc.asyncProperty(happenings(), starts, async (first, then) => {
      const world = await worldAfter([...first, ...then])
      ended += world.active().length
      for (let rounds = 0; world.active().length > 0; rounds++) {
        assert.ok(rounds < 60, JSON.stringify(world.active()))
        await world.clearTheWay()
        await world.happen({ kind: 'tick', replica: 0 })
        await world.happen({ kind: 'progress' })
      }
      await world.stop()
    }),
    runs(12),
  )
  assert.ok(ended > 10, `only ${ended} rollouts were left to end`)
})

test('new processes, mirrors, mirrors of a part and readers of the past serve the same bytes', async (t) => {
  const folder = temporaryFolder(t)
  let run = 0
  await fc.assert(
    fc.asyncProperty(happenings(), fc.boolean(), async (sequence, onDisk) => {
      const path = join(folder, `${run++}.db`)
      const world = await worldAfter(sequence, () =>
        World.open(onDisk ? () => openSqliteStore({ path, write: true }) : undefined),
      )
      await world.happen({ kind: 'restart', replica: 1 })
      await assertMirrors(world.engine, 'environment=dev')
      await assertPast(world.engine, world.watch.served)
      await world.stop()
    }),
    runs(6),
  )
})

test('of rollouts that touch different fields it does not matter in which order they are finished', async () => {
  let several = 0
  await fc.assert(
    fc.asyncProperty(starts, async (sequence) => {
      const [there, back] = await Promise.all(
        [0, -1].map(async (next) => {
          const world = await worldAfter(sequence)
          if (world.active().length > 1) several++
          for (const _ of world.active()) {
            const rollout = (world.active().length + next) % world.active().length
            await world.happen({ kind: 'finish', rollout })
          }
          const answers = answersIn(world.engine.state)
          await world.stop()
          return answers
        }),
      )
      assert.deepEqual(there, back)
    }),
    runs(30),
  )
  assert.ok(several > 20, `only ${several / 2} times there were several`)
})
