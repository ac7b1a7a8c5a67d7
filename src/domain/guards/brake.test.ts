import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtInTypes } from '../../../test/service.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { finish } from '../../base/steps.ts'
import type { Command } from '../commands/command.ts'
import { type Decision, decide } from '../commands/decide.ts'
import { Comparison } from '../delivery/compare-served.ts'
import { State } from '../documents/state.ts'
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

const ASSIGNED = {
  platform_components: [{ id: 'a' }, { id: 'b' }],
  namespaces: [{ id: 'a' }, { id: 'b' }],
}

function fleet(size: number, assigned: JsonObject = ASSIGNED): State {
  return stateAfter(ids(size).map((id) => cluster(id, assigned)))
}

function removals(state: State, commands: Command[], percent = 10): string[] {
  const { after, changes } = decided(state, commands)
  return finish(findRemovals(new Comparison(types, state, after), changes, percent))
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
  assert.deepEqual(removals(fleet(5), twice(4), 0), [])
  assert.match(removals(fleet(5), twice(5), 0)[0] ?? '', /^it takes inputs from 5 of 5 clusters/)
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
  const cascade: Command = {
    op: 'delete',
    type: 'namespaces',
    id: 'a',
    cascade: true,
    purge: false,
    path: '',
  }
  assert.deepEqual(removals(fleet(10), [cascade]), [
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

const THREE = [{ id: 'a' }, { id: 'b' }, { id: 'c' }]
const OFF = THREE.map(({ id }) => ({ id, enabled: false }))

test('an endpoint of three inputs is not emptied without a word, one of two is', () => {
  const two = stateAfter([
    cluster('one', { namespaces: THREE.slice(0, 2), platform_components: THREE.slice(0, 2) }),
  ])
  const three = stateAfter([cluster('one', { namespaces: THREE, platform_components: THREE })])
  for (const [type, endpoint] of [
    ['namespaces', 'namespaces'],
    [COMPONENTS, 'platform-components'],
  ] as const) {
    const empty = [patch('one', { [type]: [] })]
    assert.deepEqual(removals(two, empty, 100), [])
    assert.deepEqual(removals(three, empty, 100), [`it empties one (${endpoint})`])
    assert.deepEqual(removals(three, [patch('one', { [type]: [{ id: 'c' }] })], 100), [])
  }
})

test('an endpoint whose three inputs are all switched off is emptied as well, one of two is not', () => {
  const two = stateAfter([cluster('one', { platform_components: THREE.slice(0, 2) })])
  const three = stateAfter([cluster('one', { platform_components: THREE })])
  assert.deepEqual(removals(two, [patch('one', { platform_components: OFF.slice(0, 2) })]), [])
  assert.deepEqual(removals(three, [patch('one', { platform_components: OFF })]), [
    'it empties one (platform-components)',
  ])
  assert.deepEqual(
    removals(three, [patch('one', { platform_components: [...OFF.slice(1), { id: 'a' }] })]),
    [],
  )
})

test('switching off some and taking the others empties an endpoint too', () => {
  const state = stateAfter([cluster('one', { platform_components: THREE })])
  assert.deepEqual(removals(state, [patch('one', { platform_components: OFF.slice(0, 1) })]), [
    'it empties one (platform-components)',
  ])
  assert.deepEqual(removals(state, [patch('one', { platform_components: [{ id: 'd', enabled: false }] })]), [
    'it empties one (platform-components)',
  ])
  assert.deepEqual(removals(state, [patch('one', { platform_components: [{ id: 'd' }] })]), [])
})

test('inputs that were off before are not switched off again, but their removal counts', () => {
  const state = stateAfter([
    cluster('one', { platform_components: [...THREE.slice(0, 2), OFF[2] as JsonObject] }),
  ])
  assert.deepEqual(removals(state, [patch('one', { platform_components: OFF })]), [])
  assert.deepEqual(removals(state, [patch('one', { platform_components: [] })]), [
    'it empties one (platform-components)',
  ])
})

test('an endpoint that was off already is not emptied by other changes', () => {
  const state = stateAfter([cluster('one', { platform_components: OFF, namespaces: THREE })])
  assert.deepEqual(removals(state, [patch('one', { environment: 'prod' })]), [])
  assert.deepEqual(removals(state, [patch('one', { platform_components: OFF.slice(1) })]), [])
})

test('endpoints that are emptied are named with their clusters, the first five of them', () => {
  const state = fleet(4, { namespaces: THREE, platform_components: THREE })
  const empty = (id: string) => patch(id, { namespaces: [], platform_components: [] })
  assert.deepEqual(removals(state, ids(1).map(empty)), [
    'it empties c0 (namespaces), c0 (platform-components)',
  ])
  assert.deepEqual(removals(state, ids(4).map(empty)), [
    'it empties c0 (namespaces), c0 (platform-components), c1 (namespaces), c1 (platform-components), c2 (namespaces) and 3 more',
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

test('deleted clusters do not count as losing inputs, nor as emptied', () => {
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
    'it empties c5 (namespaces)',
    'it deletes 6 clusters: c10, c11, c12, c13, c14 and 1 more',
  ])
})
