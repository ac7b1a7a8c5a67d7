import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { builtInTypes } from '../../../test/service.ts'
import type { BrakePercents } from '../../base/brake-percents.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { finish } from '../../base/steps.ts'
import type { Command } from '../commands/command.ts'
import { type Decision, decide } from '../commands/decide.ts'
import { Comparison } from '../delivery/compare-served.ts'
import { renderInputs } from '../delivery/render-inputs.ts'
import { servedTo } from '../delivery/served-view.ts'
import { State } from '../documents/state.ts'
import type { View } from '../documents/view.ts'
import { findRemovals } from './brake.ts'

const types = builtInTypes()

const COMPONENTS = 'platform_components'

function create(type: string, document: JsonObject): Command {
  return { op: 'create', type, document, path: '' }
}

function cluster(id: string, more: JsonObject): Command {
  const own = { id, cluster_name: id, cluster_dns: `${id}.example.com`, environment: 'dev' }
  return create('clusters', { ...own, ...more })
}

function patch(id: string, change: Json): Command {
  return { op: 'patch', type: 'clusters', id, patch: change, format: 'merge', path: '' }
}

function unassign(type: string, from: string, id: string): Command {
  return { op: 'unassign', type, cluster: from, id, path: '' }
}

function enable(on: string, id: string, enabled: boolean): Command {
  return { op: 'assign', type: COMPONENTS, cluster: on, id, reference: { enabled }, how: 'merge', path: '' }
}

function remove(id: string, purge = false): Command {
  return { op: 'delete', type: 'clusters', id, cascade: false, purge, path: '' }
}

function decided(state: State, commands: Command[]): Decision {
  const decision = finish(decide(types, state, commands))
  assert.ok(decision.ok, JSON.stringify(decision))
  return decision.value
}

const CATALOG = ['a', 'b', 'c', 'd'].flatMap((id) => [
  create(COMPONENTS, { id, component_path: id, component_version: '1', oci_url: 'oci://x', oci_tag: 'v1' }),
  create('namespaces', { id }),
])

/** A state with the catalog after these commands, each list of them as one revision. */
function stateAfter(...batches: Command[][]): State {
  const state = new State(types)
  for (const commands of [CATALOG, ...batches]) {
    const changes = decided(state, commands).changes.map(({ type, id, after }) => ({
      type,
      id,
      after: after && { document: after.document, deleted: after.deleted, size: after.json.length },
    }))
    state.apply(state.revision + 1, changes)
  }
  return state
}

/** Ids c0, c1, … */
function ids(count: number, from = 0): string[] {
  return Array.from({ length: count }, (_, i) => `c${from + i}`)
}

const THREE = [{ id: 'a' }, { id: 'b' }, { id: 'c' }]
const OFF = THREE.map(({ id }) => ({ id, enabled: false }))

const ASSIGNED = {
  platform_components: [{ id: 'a' }, { id: 'b' }],
  namespaces: [{ id: 'a' }, { id: 'b' }],
}

function fleet(size: number, assigned: JsonObject = ASSIGNED): State {
  return stateAfter(ids(size).map((id) => cluster(id, assigned)))
}

/** By the share of the fleet alone, unless a share of groups is given. */
function removals(state: State, commands: Command[], percent = 10, groupPercent = 100): string[] {
  const { after, changes } = decided(state, commands)
  return finish(findRemovals(new Comparison(types, state, after), changes, { percent, groupPercent }))
}

function cascade(type: string, id: string): Command {
  return { op: 'delete', type, id, cascade: true, purge: false, path: '' }
}

function takeFrom(count: number, from = 0): Command[] {
  return ids(count, from).map((id) => unassign('namespaces', id, 'a'))
}

test('just as many clusters as the percentage says may lose an input, and not one more', () => {
  assert.deepEqual(removals(fleet(50), takeFrom(5)), [])
  assert.deepEqual(removals(fleet(50), takeFrom(6)), [
    'it takes inputs from 6 of 50 clusters (12.0 %, more than 10 %)',
  ])
  assert.deepEqual(removals(fleet(49), takeFrom(5)), [
    'it takes inputs from 5 of 49 clusters (10.2 %, more than 10 %)',
  ])
  assert.deepEqual(removals(fleet(20), takeFrom(5), 25), [])
  assert.deepEqual(removals(fleet(20), takeFrom(6), 25).length, 1)
})

test('four clusters may lose an input whatever the percentage, five may not', () => {
  assert.deepEqual(removals(fleet(4), takeFrom(4), 0), [])
  assert.deepEqual(removals(fleet(5), takeFrom(4), 0), [])
  assert.deepEqual(removals(fleet(5), takeFrom(5), 0), [
    'it takes inputs from 5 of 5 clusters (100.0 %, more than 0 %)',
  ])
  assert.equal(removals(fleet(200), takeFrom(5), 0).length, 1)
})

test('with a percentage of one hundred all clusters may lose inputs', () => {
  assert.deepEqual(removals(fleet(8), takeFrom(8), 100), [])
  assert.equal(removals(fleet(8), takeFrom(8), 99).length, 1)
})

test('switching off counts as taking away', () => {
  const off = (count: number) => ids(count).map((id) => enable(id, 'a', false))
  assert.deepEqual(removals(fleet(5), off(4), 0), [])
  assert.deepEqual(removals(fleet(5), off(5), 0).length, 1)
})

test('taking from some and switching off on others counts together', () => {
  const off = ids(2, 3).map((id) => enable(id, 'a', false))
  assert.deepEqual(removals(fleet(10), [...takeFrom(3), ...off], 0), [
    'it takes inputs from 5 of 10 clusters (50.0 %, more than 0 %)',
  ])
})

test('a cluster that loses several inputs, at several endpoints, counts once', () => {
  const twice = (count: number) =>
    ids(count).flatMap((id) => [
      unassign('namespaces', id, 'a'),
      unassign('namespaces', id, 'b'),
      unassign(COMPONENTS, id, 'a'),
      enable(id, 'b', false),
    ])
  const state = fleet(5, { namespaces: THREE, platform_components: THREE })
  assert.deepEqual(removals(state, twice(4), 0), [])
  assert.match(removals(state, twice(5), 0)[0] ?? '', /^it takes inputs from 5 of 5 clusters/)
})

test('what is given, switched on, overridden, moved or renamed is not taken away', () => {
  const state = fleet(6, {
    platform_components: [{ id: 'a', enabled: false }, { id: 'b' }],
    namespaces: [{ id: 'a' }],
    patches: { b: { replicas: '1' } },
  })
  const each = (command: (id: string) => Command) => removals(state, ids(6).map(command), 0)
  assert.deepEqual(
    each((id) => enable(id, 'a', true)),
    [],
  )
  assert.deepEqual(
    each((id) => patch(id, { namespaces: [{ id: 'b' }, { id: 'a', labels: { x: '1' } }] })),
    [],
  )
  assert.deepEqual(
    each((id) => patch(id, { platform_components: [{ id: 'b' }, { id: 'a', enabled: false }] })),
    [],
  )
  assert.deepEqual(
    each((id) => patch(id, { environment: 'prod', patches: { b: null }, labels: { x: '1' } })),
    [],
  )
  const off = { id: 'a', enabled: false, oci_tag: 'v2' }
  assert.deepEqual(
    each((id) => patch(id, { platform_components: [off, { id: 'b' }] })),
    [],
  )
})

test('exchanging one input for another takes one away', () => {
  const exchange = ids(5).map((id) => patch(id, { namespaces: [{ id: 'a' }, { id: 'c' }] }))
  assert.equal(removals(fleet(5), exchange, 0).length, 1)
})

test('an edit of a definition takes nothing away, a definition that goes with its uses does', () => {
  const edit = {
    op: 'patch',
    type: 'namespaces',
    id: 'a',
    patch: { labels: { x: '1' } },
    format: 'merge',
    path: '',
  }
  assert.deepEqual(removals(fleet(10), [edit as Command], 0), [])
  assert.deepEqual(removals(fleet(10), [cascade('namespaces', 'a')]), [
    'it takes inputs from 10 of 10 clusters (100.0 %, more than 10 %)',
  ])
})

test('an input that comes back in the same write was never taken', () => {
  const backAndForth = ids(5).flatMap((id): Command[] => [
    unassign('namespaces', id, 'a'),
    { op: 'assign', type: 'namespaces', cluster: id, id: 'a', reference: {}, how: 'replace', path: '' },
  ])
  assert.deepEqual(removals(fleet(5), backAndForth, 0), [])
})

/** Clusters of two environments by turns; every second of prod has component d. */
function mixedFleet(size: number): State {
  return stateAfter(
    ids(size).map((id, i) => {
      const more = i % 4 === 1 ? [{ id: 'd' }] : []
      const environment = i % 2 === 0 ? 'dev' : 'prod'
      return cluster(id, { ...ASSIGNED, platform_components: [...THREE, ...more], environment })
    }),
  )
}

/** Ids of every fourth cluster, from the second on: prod, with component d. */
function everyFourth(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `c${4 * i + 1}`)
}

test('just as many clusters of an environment as the share says may lose an input, and not one more', () => {
  const state = mixedFleet(40)
  const take = (count: number) => everyFourth(count).map((id) => unassign(COMPONENTS, id, 'a'))
  assert.deepEqual(removals(state, take(5), 100, 25), [])
  assert.deepEqual(removals(state, take(6), 100, 25), [
    'it takes inputs from 6 of 20 clusters of environment prod (30.0 %, more than 25 %)',
  ])
  assert.deepEqual(removals(state, take(6), 100, 30), [])
  assert.deepEqual(removals(state, take(10), 100, 100), [])
})

test('four clusters may lose an input, whatever share of an environment or of those that have it', () => {
  const take = (count: number) => everyFourth(count).map((id) => unassign(COMPONENTS, id, 'd'))
  assert.deepEqual(removals(mixedFleet(16), take(4), 100, 0), [])
  assert.deepEqual(removals(mixedFleet(20), take(5), 100, 0), [
    'it takes inputs from 5 of 10 clusters of environment prod (50.0 %, more than 0 %)',
    'it takes d (platform-components) from 5 of 5 clusters that have it (100.0 %, more than 0 %)',
  ])
})

test('an input is not taken from many of the clusters that have it, however large the fleet', () => {
  const state = mixedFleet(200)
  assert.deepEqual(
    removals(
      state,
      everyFourth(12).map((id) => unassign(COMPONENTS, id, 'd')),
      10,
      25,
    ),
    [],
  )
  for (const commands of [
    everyFourth(13).map((id) => unassign(COMPONENTS, id, 'd')),
    everyFourth(13).map((id) => enable(id, 'd', false)),
    everyFourth(13).flatMap((id, i) => (i < 5 ? remove(id) : unassign(COMPONENTS, id, 'd'))),
  ]) {
    assert.deepEqual(removals(state, commands, 10, 25), [
      'it takes d (platform-components) from 13 of 50 clusters that have it (26.0 %, more than 25 %)',
    ])
  }
  assert.match(
    removals(state, [cascade(COMPONENTS, 'd')], 100, 25).at(-1) ?? '',
    /it takes d \(platform-components\) from 50 of 50 clusters that have it/,
  )
})

test('clusters that had an input switched off neither lose it nor have it', () => {
  const off = (id: string) => cluster(id, { platform_components: [{ id: 'a', enabled: false }, { id: 'b' }] })
  const on = (id: string) => cluster(id, { platform_components: [{ id: 'a' }, { id: 'b' }] })
  const state = stateAfter([...ids(10).map(off), ...ids(10, 10).map(on)])
  const take = (count: number, from: number) => ids(count, from).map((id) => unassign(COMPONENTS, id, 'a'))
  assert.deepEqual(removals(state, take(5, 0), 100, 25), [])
  assert.deepEqual(removals(state, take(5, 10), 100, 25), [
    'it takes a (platform-components) from 5 of 10 clusters that have it (50.0 %, more than 25 %)',
  ])
})

test('deleted clusters lose what they had, for their environment and for those that have it', () => {
  const state = mixedFleet(20)
  const deleting = everyFourth(5).map((id) => remove(id))
  assert.deepEqual(removals(state, deleting, 0, 25), [
    'it takes inputs from 5 of 10 clusters of environment prod (50.0 %, more than 25 %)',
    'it takes d (platform-components) from 5 of 5 clusters that have it (100.0 %, more than 25 %)',
  ])
  assert.deepEqual(
    removals(
      fleet(5, {}),
      ids(5).map((id) => remove(id)),
      0,
      0,
    ),
    [],
  )
})

test('a cluster that moves counts for the environment that it was in', () => {
  const move = everyFourth(5).map((id) => patch(id, { environment: 'dev', platform_components: THREE }))
  assert.match(removals(mixedFleet(20), move, 100, 25)[0] ?? '', /5 of 10 clusters of environment prod/)
})

test('the fleet is read only when five clusters lose something, a cluster at a step', () => {
  const state = fleet(100)
  for (const [taken, scans] of [
    [takeFrom(4), 0],
    [takeFrom(5), 1],
    [ids(100).map((id) => patch(id, { labels: { x: '1' } })), 0],
  ] as const) {
    let lists = 0
    const watched = new Proxy(state, {
      get(target, key: keyof State) {
        if (key === 'all') lists++
        const value = target[key]
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const { after, changes } = decided(state, [...taken])
    const steps = findRemovals(new Comparison(types, watched, after), changes, {
      percent: 10,
      groupPercent: 25,
    })
    let count = 0
    while (!steps.next().done) count++
    assert.equal(lists, scans)
    assert.ok(count >= changes.length + 100 * scans)
  }
})

const EMPTIED = 'Flux deletes there all that came from it'

test('the last input of a type is not taken from a cluster without confirmation, in one write or in several', () => {
  for (const [type, endpoint] of [
    ['namespaces', 'namespaces'],
    [COMPONENTS, 'platform-components'],
  ] as const) {
    for (const had of [THREE, THREE.slice(0, 2), THREE.slice(0, 1)]) {
      const state = stateAfter([cluster('one', { namespaces: had, platform_components: had })])
      assert.deepEqual(removals(state, [patch('one', { [type]: [] })], 100), [
        `it empties one (${endpoint}): ${EMPTIED}`,
      ])
      assert.deepEqual(removals(state, [patch('one', { [type]: [{ id: 'd' }] })], 100), [])
    }
    const steps = ['a', 'b'].map((id) => [unassign(type, 'one', id)])
    const assigned = cluster('one', { namespaces: THREE, platform_components: THREE })
    for (const [i, step] of steps.entries()) {
      assert.deepEqual(removals(stateAfter([assigned], ...steps.slice(0, i)), step, 0, 0), [])
    }
    assert.deepEqual(removals(stateAfter([assigned], ...steps), [unassign(type, 'one', 'c')], 100), [
      `it empties one (${endpoint}): ${EMPTIED}`,
    ])
  }
})

test('an endpoint is emptied by switching off the last that is on, whatever happens to the others', () => {
  const empties = [`it empties one (platform-components): ${EMPTIED}`]
  const state = stateAfter([cluster('one', { platform_components: [{ id: 'a' }, ...OFF.slice(1)] })])
  assert.deepEqual(removals(state, [enable('one', 'a', false)]), empties)
  assert.deepEqual(removals(state, [unassign(COMPONENTS, 'one', 'a')]), empties)
  assert.deepEqual(
    removals(state, [patch('one', { platform_components: [{ id: 'd', enabled: false }] })]),
    empties,
  )
  assert.deepEqual(removals(state, [patch('one', { platform_components: [{ id: 'a' }] })]), [])
  assert.deepEqual(removals(state, [enable('one', 'a', false), enable('one', 'b', true)]), [])
})

test('an endpoint that was off already is emptied by taking all of it, not by other changes', () => {
  const state = stateAfter([cluster('one', { platform_components: OFF, namespaces: THREE })])
  assert.deepEqual(removals(state, [patch('one', { environment: 'prod' })]), [])
  assert.deepEqual(removals(state, [patch('one', { platform_components: OFF.slice(1) })]), [])
  assert.deepEqual(removals(state, [patch('one', { platform_components: [] })]), [
    `it empties one (platform-components): ${EMPTIED}`,
  ])
})

test('endpoints that are emptied are named with their clusters, the first five of them', () => {
  const state = fleet(4)
  const empty = (id: string) => patch(id, { namespaces: [], platform_components: [] })
  assert.deepEqual(removals(state, ids(1).map(empty)), [
    `it empties c0 (namespaces), c0 (platform-components): ${EMPTIED}`,
  ])
  assert.deepEqual(removals(state, ids(4).map(empty)), [
    `it empties c0 (namespaces), c0 (platform-components), c1 (namespaces), c1 (platform-components), c2 (namespaces) and 3 more: ${EMPTIED}`,
  ])
})

test('five clusters may be deleted at once, six may not', () => {
  for (const purge of [false, true]) {
    const state = fleet(7)
    const deleting = (count: number) => ids(count).map((id) => remove(id, purge))
    assert.deepEqual(removals(state, deleting(5), 0), [])
    assert.deepEqual(removals(state, deleting(6), 0), [
      'it deletes 6 clusters: c0, c1, c2, c3, c4 and 1 more',
    ])
    assert.equal(removals(state, deleting(6), 100).length, 1)
  }
})

test('deleted clusters do not count for the share of the fleet, nor as emptied', () => {
  const state = fleet(9, { namespaces: THREE })
  assert.deepEqual(removals(state, [...ids(5).map((id) => remove(id)), ...takeFrom(4, 5)], 0), [])
})

test('the share is one of the clusters that were there before the write', () => {
  const others = ids(5, 45).map((id) => remove(id))
  assert.deepEqual(removals(fleet(50), [...takeFrom(5), ...others]), [])
  const added = ids(11, 49).map((id) => cluster(id, {}))
  assert.equal(removals(fleet(49), [...takeFrom(5), ...added]).length, 1)
})

test('clusters that are deleted already count neither as clusters nor, when purged, as deleted', () => {
  const state = stateAfter(
    ids(50).map((id) => cluster(id, ASSIGNED)),
    [...ids(6, 44).map((id) => remove(id))],
  )
  const purge = ids(6, 44).map((id) => remove(id, true))
  assert.deepEqual(removals(state, purge, 0), [])
  assert.deepEqual(removals(state, takeFrom(5)), [
    'it takes inputs from 5 of 44 clusters (11.4 %, more than 10 %)',
  ])
})

test('new and restored clusters lose nothing', () => {
  const state = stateAfter(
    ids(6).map((id) => cluster(id, { namespaces: THREE })),
    ids(6).map((id) => remove(id)),
  )
  const restored = ids(6).map((id): Command => ({ op: 'restore', type: 'clusters', id, path: '' }))
  assert.deepEqual(removals(state, restored, 0), [])
  const again = ids(6).map((id) => cluster(id, {}))
  assert.deepEqual(removals(state, again, 0), [])
})

test('all reasons are told at once', () => {
  const state = fleet(20, { namespaces: THREE })
  const batch = [...takeFrom(5), patch('c5', { namespaces: [] }), ...ids(6, 10).map((id) => remove(id))]
  assert.deepEqual(removals(state, batch, 10), [
    'it takes inputs from 6 of 20 clusters (30.0 %, more than 10 %)',
    `it empties c5 (namespaces): ${EMPTIED}`,
    'it deletes 6 clusters: c10, c11, c12, c13, c14 and 1 more',
  ])
})

/** What clusters receive of a view, by cluster, endpoint and input: whether it is switched on. */
function received(view: View): Map<string, Map<string, Map<string, boolean>>> {
  return new Map(
    [...view.all('clusters')].map((entry) => [
      entry.id,
      new Map(
        types.delivered.map((type) => {
          const { inputs } = JSON.parse(
            renderInputs(servedTo(types, view, entry.id), types, type, entry).text,
          )
          return [
            type.delivery.endpoint,
            new Map(inputs.map((input: JsonObject) => [input.id, input.enabled !== false])),
          ]
        }),
      ),
    ]),
  )
}

interface Reasons {
  fleet: string[]
  environments: string[]
  inputs: string[]
  emptied: string[]
  deleted: string[]
}

/** The same counted anew, from poll answers alone. */
function recount(before: View, after: View, { percent, groupPercent }: BrakePercents): Reasons {
  const was = received(before)
  const is = received(after)
  const isOff = (id: string, endpoint: string, input: string) =>
    was.get(id)?.get(endpoint)?.get(input) === true && !is.get(id)?.get(endpoint)?.get(input)
  const isRemoved = (id: string, endpoint: string, input: string) => !is.get(id)?.get(endpoint)?.has(input)
  const clusters = [...was.keys()]
  const losing = clusters.filter((id) =>
    was
      .get(id)
      ?.entries()
      .some(([endpoint, inputs]) =>
        inputs.keys().some((input) => isRemoved(id, endpoint, input) || isOff(id, endpoint, input)),
      ),
  )
  const share = (lost: string[], all: string[], what: string, limit: number): string[] =>
    lost.length >= 5 && (lost.length / all.length) * 100 > limit
      ? [
          `${lost.length} of ${all.length} ${what} (${((100 * lost.length) / all.length).toFixed(1)} %, more than ${limit} %)`,
        ]
      : []
  const endpoints = types.delivered.map(({ delivery }) => delivery.endpoint)
  const environment = (id: string) => before.get('clusters', id)?.document.environment
  return {
    fleet: share(
      losing.filter((id) => is.has(id)),
      clusters,
      'clusters',
      percent,
    ),
    environments: ['dev', 'prod'].flatMap((name) => {
      const among = (all: string[]) => all.filter((id) => environment(id) === name)
      return share(among(losing), among(clusters), `clusters of environment ${name}`, groupPercent)
    }),
    inputs: endpoints.flatMap((endpoint) =>
      ['a', 'b', 'c', 'd'].flatMap((input) => {
        const having = clusters.filter((id) => was.get(id)?.get(endpoint)?.get(input))
        const lost = having.filter((id) => isOff(id, endpoint, input))
        return share(lost, having, 'clusters that have it', groupPercent).map(
          (text) => `${input} (${endpoint}) from ${text}`,
        )
      }),
    ),
    emptied: clusters.flatMap((id) =>
      endpoints.flatMap((endpoint) => {
        const [had, has] = [was, is].map((all) => [...(all.get(id)?.get(endpoint)?.values() ?? [])])
        const isEmpty =
          had?.length !== 0 && (has?.length === 0 || (had?.includes(true) && !has?.includes(true)))
        return is.has(id) && isEmpty ? [`${id} (${endpoint})`] : []
      }),
    ),
    deleted: clusters.filter((id) => !is.has(id)),
  }
}

/** One sentence lists these, the first five of them; none when there are none. */
function assertListed(sentences: readonly string[], start: string, item: RegExp, expected: string[]): void {
  const sentence = sentences.find((each) => each.startsWith(start) && item.test(each)) ?? ''
  const found = [...sentence.matchAll(new RegExp(item, 'g'))].map(([text]) => text)
  const [, more = '0'] = / and (\d+) more/.exec(sentence) ?? []
  assert.deepEqual(
    [found.length, Number(more)],
    [Math.min(5, expected.length), Math.max(0, expected.length - 5)],
  )
  assert.deepEqual(
    found.filter((text) => !expected.includes(text)),
    [],
  )
}

const PLAIN = { noNullPrototype: true }
const chosen = fc.subarray(['a', 'b', 'c'])
const assignments = fc.record(
  {
    environment: fc.constantFrom('dev', 'prod'),
    namespaces: chosen.map((all) => all.map((id) => ({ id }))),
    platform_components: fc
      .tuple(chosen, fc.subarray(['a', 'b', 'c']))
      .map(([all, off]) => all.map((id) => ({ id, enabled: !off.includes(id) }))),
  },
  PLAIN,
)
const fate = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('stays', 'loses', 'loses') },
  { weight: 3, arbitrary: fc.constantFrom('goes', 'is purged', 'is made anew') },
  { weight: 1, arbitrary: fc.constant('changes') },
)
const write = fc.record({
  fleet: fc.array(assignments, { maxLength: 24, size: 'max' }),
  fates: fc.array(fc.tuple(fate, assignments), { minLength: 24, maxLength: 24 }),
  taken: fc.constantFrom('a', 'b'),
  cascades: fc.option(fc.constantFrom('namespaces', COMPONENTS)),
  percents: fc.record({
    percent: fc.constantFrom(0, 10, 50, 100),
    groupPercent: fc.constantFrom(0, 25, 60, 100),
  }),
})

test('the verdict is that of counting anew what clusters receive before and after', () => {
  const seen = { fleet: 0, environments: 0, inputs: 0, emptied: 0, deleted: 0, nothing: 0 }
  const law = fc.property(write, ({ fleet, fates, taken, cascades, percents }) => {
    const state = stateAfter(fleet.map((more, i) => cluster(`c${i}`, more)))
    const commands = fleet.flatMap((own, i): Command[] => {
      const id = `c${i}`
      const [what, more] = fates[i] ?? []
      const rest = (all: readonly JsonObject[]) => all.filter((reference) => reference.id !== taken)
      if (what === 'loses') {
        const { namespaces, platform_components } = own
        return [patch(id, { namespaces: rest(namespaces), platform_components: rest(platform_components) })]
      }
      if (what === 'goes' || what === 'is purged') return [remove(id, what === 'is purged')]
      if (what === 'is made anew') return [remove(id), cluster(id, more ?? {})]
      return what === 'changes' ? [patch(id, { ...more })] : []
    })
    const all = [...commands, cluster('new', {}), ...(cascades ? [cascade(cascades, 'b')] : [])]
    const { percent, groupPercent } = percents
    const found = removals(state, all, percent, groupPercent)
    const reasons = recount(state, decided(state, all).after, percents)
    if (reasons.deleted.length <= 5) reasons.deleted = []
    assertListed(found, 'it takes inputs from', /\d+ of \d+ clusters \([^)]*\)/, reasons.fleet)
    assertListed(
      found,
      'it takes inputs from',
      /\d+ of \d+ clusters of environment \w+ \([^)]*\)/,
      reasons.environments,
    )
    assertListed(
      found,
      'it takes ',
      /\b\w \([\w-]+\) from \d+ of \d+ clusters that have it \([^)]*\)/,
      reasons.inputs,
    )
    assertListed(found, 'it empties', /c\d+ \([\w-]+\)/, reasons.emptied)
    assertListed(found, `it deletes ${reasons.deleted.length} clusters: `, /c\d+/, reasons.deleted)
    const kinds = Object.entries(reasons).filter(([, list]) => list.length > 0)
    assert.equal(found.length, kinds.length)
    for (const [kind] of kinds) seen[kind as keyof Reasons]++
    if (kinds.length === 0) seen.nothing++
  })
  fc.assert(law, { numRuns: 300 })
  for (const [kind, times] of Object.entries(seen)) assert.ok(times >= 5, `${kind}: ${times}`)
})
