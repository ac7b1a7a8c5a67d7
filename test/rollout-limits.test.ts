// No rollout can make an answer exceed Flux's limits, whichever waves are open at the same time.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../src/base/json.ts'
import { fleetOf } from './reporting-clusters.ts'
import { startRolled, tagOf, wavesOf } from './rolled-fleet.ts'

const FLEET = fleetOf({ one: { components: [{ id: 'a' }, { id: 'b' }] }, two: {}, three: {} })

/** Values that make half of an answer of 900 KiB, and a bit. */
function valuesOf(component: string, clusters: readonly string[] = ['one']): JsonObject {
  return { op: 'patch_values', component, clusters: [...clusters], values: { text: 'x'.repeat(500_000) } }
}

const LATER: readonly JsonObject[] = [
  { name: 'first', clusters: ['two'] },
  { name: 'rest', rest: true },
]

describe('an answer that would be too large', () => {
  test('with two rollouts together is refused when the second one starts, though no wave is open yet', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const first = await fleet.start([valuesOf('a'), tagOf('a', 'v2.0.0')], LATER)
    const body = {
      operations: [valuesOf('b'), tagOf('b', 'v2.0.0')],
      rollout: { waves: [{ name: 'all', rest: true }] },
    }
    const refused = await fleet.service.call('POST', '/batch', { body })
    assert.deepEqual([refused.status, refused.body.reason], [400, 'answer_too_large'], refused.text)
    assert.match(
      refused.body.message,
      /would make the platform-components answer of cluster "one" 1\d{6} bytes/,
    )
    assert.equal((await fleet.service.call('GET', '/rollouts')).body.length, 1)
    await fleet.act(first, 'abort')
    assert.equal((await fleet.service.call('POST', '/batch', { body })).status, 202)
  })

  test('once a wave opens is refused to an ordinary write, and one that is only under way too', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const first = await fleet.start([valuesOf('a'), tagOf('a', 'v2.0.0')], LATER)
    const values = { body: { text: 'x'.repeat(500_000) } }
    const write = () => fleet.service.call('PUT', '/clusters/one/patches/b', values)
    assert.deepEqual([(await write()).status, (await write()).body.reason], [400, 'answer_too_large'])
    await fleet.act(first, 'finish', undefined, { query: '?confirm=finish' })
    assert.equal((await write()).status, 400)
  })

  test('by definitions that a rollout and an ordinary write make larger is refused', async (t) => {
    const { clusters, ...definitions } = FLEET
    const large = { text: 'x'.repeat(240_000) }
    const ids = ['n1', 'n2', 'n3', 'n4']
    const fleet = await startRolled(t, {
      ...definitions,
      namespaces: ids.map((id) => ({ id, ...(id < 'n3' && { annotations: large }) })),
      clusters: clusters.map((cluster) => ({ ...cluster, namespaces: ids.map((id) => ({ id })) })),
    })
    const grow = (id: string) => ({ op: 'patch', type: 'namespaces', id, patch: { annotations: large } })
    await fleet.start([grow('n3')], LATER)
    const body = { operations: [grow('n4')] }
    const refused = await fleet.service.call('POST', '/batch', { body })
    assert.deepEqual([refused.status, refused.body.reason], [400, 'answer_too_large'], refused.text)
    assert.equal(refused.body.details[0].path, '/operations/0/patch')
  })

  test('for a cluster that is held is refused, although it is not served it now', async (t) => {
    const fleet = await startRolled(t, FLEET)
    await fleet.service.call('PUT', '/holds/one', { body: { reason: 'busy' } })
    const half = { body: { text: 'x'.repeat(500_000) } }
    assert.equal((await fleet.service.call('PUT', '/clusters/one/patches/a', half)).status, 200)
    assert.equal((await fleet.service.call('PUT', '/clusters/one/patches/b', half)).status, 400)
  })
})

test('of two rollouts that fit together both run, and an ordinary write beside them', async (t) => {
  const fleet = await startRolled(t, FLEET)
  await fleet.start([valuesOf('a'), tagOf('a', 'v2.0.0')], wavesOf('two'))
  await fleet.start([tagOf('b', 'v2.0.0')], wavesOf('one'))
  const body = { operations: [{ op: 'patch', type: 'clusters', id: 'one', patch: { node_count: 3 } }] }
  assert.equal((await fleet.service.call('POST', '/batch', { body })).status, 200)
})
