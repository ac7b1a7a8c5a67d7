// Laws of staged rollouts, over fleets, writes and rollouts made at random.
import assert from 'node:assert/strict'
import { before, mock, test } from 'node:test'
import fc from 'fast-check'
import { happenings } from './random-rollouts.ts'
import { World } from './rollout-world.ts'

const RUNS = { numRuns: Number(process.env.ROLLOUT_RUNS ?? 60) }

// Controllers take their steps when they are told to.
before(() => mock.timers.enable({ apis: ['setTimeout'] }))

test('whatever happens, each cluster gets base, base with the edits of its open rollouts, or what it is held at', async () => {
  const tried = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(happenings(), async (sequence) => {
      const world = await World.open()
      for (const happening of sequence) await world.happen(happening)
      await world.stop()
      for (const [what, times] of world.tried) tried.set(what, (tried.get(what) ?? 0) + times)
    }),
    RUNS,
  )
  if (process.env.DEBUG) console.log([...tried].sort())
  assert.ok(tried.size > 0)
})
