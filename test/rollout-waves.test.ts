// Who is in which wave: laws over strategies and fleets made at random.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { finish } from '../src/base/steps.ts'
import { State } from '../src/domain/documents/state.ts'
import { resolveWaves } from '../src/domain/rollouts/resolve-waves.ts'
import type { Strategy } from '../src/domain/rollouts/rollout.ts'
import { CLUSTER_IDS, strategy } from './random-changes.ts'
import { types } from './rollout-model.ts'

const RUNS = { numRuns: 300 * Number(process.env.ROLLOUT_RUNS ?? 1) }

/** The clusters of the tests of rollouts, and more of them. */
const IDS: readonly string[] = [...CLUSTER_IDS, ...Array.from({ length: 93 }, (_, n) => `more-${n}`)]
const FLEET = new State(types)
for (const [n, id] of IDS.entries()) {
  const document = {
    id,
    cluster_name: id,
    cluster_dns: `${id}.example.com`,
    environment: ['dev', 'qa', 'prod'][n % 3] as string,
    labels: { ring: String(n % 2) },
  }
  FLEET.put(1, { type: 'clusters', id, after: { document, deleted: false, size: 1 } })
}

function membersOf(spec: Strategy, affected: readonly string[]): readonly (readonly string[])[] {
  const resolved = finish(resolveWaves(types, FLEET, spec, affected, '/waves'))
  assert.ok(resolved.ok, JSON.stringify(resolved))
  return resolved.value.waves.map(({ members }) => members)
}

const affected = fc.shuffledSubarray([...IDS])

test('waves divide the affected clusters: each is in exactly one of them', () => {
  fc.assert(
    fc.property(strategy, affected, (spec, ids) => {
      assert.deepEqual(membersOf(spec, ids).flat().sort(), ids.toSorted())
    }),
    RUNS,
  )
})

test('who is in a wave, and in which order, does not depend on the order in which clusters are found', () => {
  fc.assert(
    fc.property(strategy, affected, fc.nat(), (spec, ids, seed) => {
      const turned = [...ids.slice(seed % (ids.length + 1)), ...ids.slice(0, seed % (ids.length + 1))]
      assert.deepEqual(membersOf(spec, turned), membersOf(spec, ids))
    }),
    RUNS,
  )
})

const shares = fc
  .uniqueArray(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 5 })
  .map((percents) => percents.sort((a, b) => a - b))

function sharesOf(percents: readonly number[]): Strategy {
  return { waves: percents.map((percent) => ({ name: `to-${percent}`, percent })) }
}

test('shares nest: after each wave as many are in as its share says, whatever shares came before', () => {
  fc.assert(
    fc.property(shares, affected, (percents, ids) => {
      const waves = membersOf(sharesOf(percents), ids)
      for (const [i, percent] of percents.entries()) {
        const so = waves.slice(0, i + 1).flat()
        assert.equal(so.length, Math.ceil((percent * ids.length) / 100), `${percent} % of ${ids.length}`)
        assert.deepEqual(
          so,
          membersOf(sharesOf([percent]), ids)[0],
          'other shares before it are other clusters',
        )
      }
    }),
    RUNS,
  )
})

test('shares stick: clusters that come or go move nobody past another one', () => {
  fc.assert(
    fc.property(affected, affected, (some, more) => {
      const order = (ids: readonly string[]) =>
        membersOf({ waves: [{ name: 'all', rest: true }] }, ids).flat()
      const both = [...new Set([...some, ...more])]
      const isSome = new Set(some)
      assert.deepEqual(
        order(both).filter((id) => isSome.has(id)),
        order(some),
      )
    }),
    RUNS,
  )
})

test('a share is the same in every version of this program', () => {
  assert.deepEqual(membersOf(sharesOf([5, 10]), IDS).slice(0, 2), [
    ['more-77', 'more-86', 'more-88', 'more-30', 'c5'],
    ['more-79', 'more-7', 'more-42', 'more-83', 'more-43'],
  ])
})
