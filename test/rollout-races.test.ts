// Steps that were worked out before somebody acted on the rollout, and come to be written after that.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fleetOf } from './reporting-clusters.ts'
import { controllerOf, startRolled, tagOf, wavesOf } from './rolled-fleet.ts'
import type { TestService } from './service.ts'

const CLUSTERS = ['one', 'two']
const CHANGE = [tagOf('a', 'v2.0.0')]

for (const [what, waves, earlier] of [
  ['opens a wave', wavesOf(...CLUSTERS), 'passed'],
  ['finishes it', [{ name: 'all', rest: true }], 'passed'],
] as const)
  test(`a step that ${what} is not taken once somebody has paused the rollout`, async (t) => {
    const fleet = await startRolled(t, fleetOf({ one: {}, two: {} }))
    await fleet.settle(...CLUSTERS)
    fleet.pass(10)
    const id = await fleet.start(CHANGE, waves)
    fleet.pass(10)
    await fleet.settle(...CLUSTERS)
    const { engine } = fleet.service
    let paused = 0
    const write: typeof engine.write = async (commands, author, options) => {
      // As late as can be: when the wave before has passed, and the next step is about to be written.
      const [first] = (await fleet.waves(id)) as string[]
      if (first === earlier && paused === 0) {
        paused++
        assert.equal((await fleet.act(id, 'pause', { remark: 'wait' })).status, 200)
      }
      return engine.write(commands, author, options)
    }
    const late = Object.assign(Object.create(engine), { write }) as TestService['engine']
    const failures: unknown[] = []
    const controller = controllerOf({ ...fleet.service, engine: late }, fleet.store, fleet.now, failures)
    while ((await controller.tick()) > 0);
    const { state, waiting_for } = await fleet.rollout(id)
    assert.deepEqual([paused, state, waiting_for, failures], [1, 'paused', 'wait', []])
    assert.equal((await fleet.waves(id))[0], earlier)
    await controller.stop()
  })
