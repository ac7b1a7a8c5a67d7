import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { builtInTypes } from '../../../test/service.ts'
import { withoutDigests } from '../../../test/without-digests.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { finish } from '../../base/steps.ts'
import type { Command } from '../commands/command.ts'
import { type Decision, decide } from '../commands/decide.ts'
import { Overlay } from '../documents/overlay.ts'
import { State } from '../documents/state.ts'
import type { Entry, View } from '../documents/view.ts'
import type { Document } from '../types/resource-type.ts'
import { Comparison } from './compare-served.ts'
import { type Impact, impactOf } from './impact.ts'
import type { InputImpact } from './impact-counts.ts'
import { renderInputs } from './render-inputs.ts'
import { servedTo } from './served-view.ts'

const types = builtInTypes()

function create(type: string, document: JsonObject): Command {
  return { op: 'create', type, document, path: '' }
}

function cluster(id: string, more: JsonObject = {}): Command {
  const own = { id, cluster_name: id, cluster_dns: `${id}.example.com`, environment: 'dev' }
  return create('clusters', { ...own, ...more })
}

function component(id: string, more: JsonObject = {}): Command {
  const source = { component_path: `core/${id}`, component_version: '1', oci_url: 'oci://x', oci_tag: 'v1' }
  return create('platform_components', { id, ...source, ...more })
}

function patch(type: string, id: string, change: Json): Command {
  return { op: 'patch', type, id, patch: change, format: 'merge', path: '' }
}

function remove(type: string, id: string, how: { cascade?: boolean; purge?: boolean } = {}): Command {
  return { op: 'delete', type, id, cascade: false, purge: false, ...how, path: '' }
}

function assign(type: string, to: string, id: string, reference: JsonObject, merge = false): Command {
  return { op: 'assign', type, cluster: to, id, reference, how: merge ? 'merge' : 'replace', path: '' }
}

function decided(state: State, commands: Command[]): Decision {
  const decision = finish(decide(types, state, commands))
  assert.ok(decision.ok, JSON.stringify(decision))
  return decision.value
}

/** A state after these commands, each list of them as one revision. */
function stateAfter(...batches: Command[][]): State {
  const state = new State(types)
  for (const commands of batches) {
    const changes = decided(state, commands).changes.map(({ type, id, after }) => ({
      type,
      id,
      after: after && { document: after.document, deleted: after.deleted, size: after.json.length },
    }))
    state.apply(state.revision + 1, changes)
  }
  return state
}

function impact(state: State, commands: Command[], limit?: number): Impact {
  return finish(impactOf(new Comparison(types, state, decided(state, commands).after), limit))
}

const NONE: Impact = {
  clusters: 0,
  by_environment: {},
  touched: 0,
  joining: 0,
  leaving: 0,
  losing: 0,
  endpoints: {},
  inputs: [],
  input_count: 0,
  details: [],
}

/** What is counted of a component. */
function input(id: string, counts: Partial<InputImpact>): InputImpact {
  const none = { added: 0, removed: 0, changed: 0, switched_off: 0, fields: {} }
  return { endpoint: 'platform-components', id, ...none, ...counts }
}

/** The inputs of each cluster that are added (+), removed (-) or changed (~), in the order of the details. */
function told({ details }: Impact): string[] {
  return details.map(({ cluster: id, endpoint, added, removed, changed }) =>
    [
      `${id}/${endpoint}`,
      ...added.map((input) => `+${input}`),
      ...removed.map((input) => `-${input}`),
      ...changed.map(({ id: input, fields }) => `~${input}${fields.map(({ path }) => path).join()}`),
    ].join(' '),
  )
}

const CATALOG = [component('a'), component('b'), create('namespaces', { id: 'n', labels: { team: 'x' } })]

test('an edit of a definition reaches those that are assigned it, with the fields as they receive them', () => {
  const state = stateAfter([
    ...CATALOG,
    cluster('one', { platform_components: [{ id: 'b' }, { id: 'a' }] }),
    cluster('two', { platform_components: [{ id: 'b' }], environment: 'prod' }),
    cluster('three', { platform_components: [{ id: 'a' }], environment: 'prod' }),
  ])
  const fields = [
    { path: '/component_version', before: '1', after: '2' },
    { path: '/source/oci_tag', before: 'v1', after: 'v2' },
  ]
  const expected = { endpoint: 'platform-components', added: [], removed: [], changed: [{ id: 'a', fields }] }
  assert.deepEqual(
    impact(state, [patch('platform_components', 'a', { oci_tag: 'v2', component_version: '2' })]),
    {
      ...NONE,
      clusters: 2,
      by_environment: { dev: 1, prod: 1 },
      touched: 2,
      inputs: [input('a', { changed: 2, fields: { '/component_version': 2, '/source/oci_tag': 2 } })],
      input_count: 1,
      endpoints: { 'platform-components': { clusters: 2, added: 0, removed: 0, changed: 2 } },
      details: [
        { cluster: 'one', environment: 'dev', ...expected },
        { cluster: 'three', environment: 'prod', ...expected },
      ],
    },
  )
})

test('an edit of a definition that nobody is assigned, or of nothing, reaches no one', () => {
  const state = stateAfter([...CATALOG, cluster('one', { platform_components: [{ id: 'a' }] })])
  assert.deepEqual(impact(state, [patch('platform_components', 'b', { oci_tag: 'v2' })]), NONE)
  assert.deepEqual(impact(state, [component('c')]), NONE)
  assert.deepEqual(impact(state, [remove('platform_components', 'b')]), NONE)
  assert.deepEqual(impact(state, []), NONE)
})

test('a cluster that overrides the edited field does not notice, one that overrides another does', () => {
  const state = stateAfter([
    ...CATALOG,
    cluster('path', { platform_components: [{ id: 'a', component_path: 'mine' }] }),
    cluster('plain', { platform_components: [{ id: 'a' }] }),
    cluster('same', { platform_components: [{ id: 'a', oci_tag: 'v2' }] }),
    cluster('tag', { platform_components: [{ id: 'a', oci_tag: 'mine' }] }),
  ])
  const tag = patch('platform_components', 'a', { oci_tag: 'v2' })
  assert.deepEqual(told(impact(state, [tag])), [
    'path/platform-components ~a/source/oci_tag',
    'plain/platform-components ~a/source/oci_tag',
  ])
  const both = patch('platform_components', 'a', { oci_tag: 'v2', component_path: 'other' })
  assert.deepEqual(told(impact(state, [both])), [
    'path/platform-components ~a/source/oci_tag',
    'plain/platform-components ~a/component_path,/source/oci_tag',
    'same/platform-components ~a/component_path',
    'tag/platform-components ~a/component_path',
  ])
})

test('an override is a whole value: one of labels hides every edit of the labels', () => {
  const state = stateAfter([
    ...CATALOG,
    cluster('own', { namespaces: [{ id: 'n', labels: { owner: 'me' } }] }),
    cluster('plain', { namespaces: [{ id: 'n' }] }),
  ])
  const edit = patch('namespaces', 'n', { labels: { team: null, tier: '1' } })
  const { details } = impact(state, [edit])
  assert.deepEqual(
    details.map(({ cluster: id, changed }) => [id, changed]),
    [
      [
        'plain',
        [
          {
            id: 'n',
            fields: [
              { path: '/labels/team', before: 'x', after: null },
              { path: '/labels/tier', before: null, after: '1' },
            ],
          },
        ],
      ],
    ],
  )
})

test('overrides that come and go change an input only where they say something else', () => {
  const state = stateAfter([
    ...CATALOG,
    cluster('one', { platform_components: [{ id: 'a' }, { id: 'b', oci_tag: 'mine' }] }),
  ])
  const type = 'platform_components'
  assert.deepEqual(impact(state, [assign(type, 'one', 'a', { oci_tag: 'v1' })]), { ...NONE, touched: 1 })
  assert.deepEqual(told(impact(state, [assign(type, 'one', 'a', { oci_tag: 'v2' })])), [
    'one/platform-components ~a/source/oci_tag',
  ])
  assert.deepEqual(told(impact(state, [assign(type, 'one', 'b', {})])), [
    'one/platform-components ~b/source/oci_tag',
  ])
})

test('a cluster that is pinned to the old value by the same write does not notice the new one', () => {
  const holders = ['one', 'two'].map((id) => cluster(id, { platform_components: [{ id: 'a' }] }))
  const state = stateAfter([...CATALOG, ...holders])
  const batch = [
    patch('platform_components', 'a', { oci_tag: 'v2' }),
    assign('platform_components', 'one', 'a', { oci_tag: 'v1' }),
  ]
  for (const commands of [batch, batch.toReversed()]) {
    assert.deepEqual(told(impact(state, commands)), ['two/platform-components ~a/source/oci_tag'])
  }
})

test('what is assigned, unassigned and switched off is told apart', () => {
  const state = stateAfter([...CATALOG, cluster('one', { platform_components: [{ id: 'a' }] })])
  const type = 'platform_components'
  assert.deepEqual(told(impact(state, [assign(type, 'one', 'b', {})])), ['one/platform-components +b'])
  assert.deepEqual(told(impact(state, [{ op: 'unassign', type, cluster: 'one', id: 'a', path: '' }])), [
    'one/platform-components -a',
  ])
  assert.deepEqual(impact(state, [assign(type, 'one', 'a', { enabled: false })]).details[0]?.changed, [
    { id: 'a', fields: [{ path: '/enabled', before: true, after: false }] },
  ])
  const exchange = patch('clusters', 'one', { platform_components: [{ id: 'b' }] })
  assert.deepEqual(told(impact(state, [exchange])), ['one/platform-components +b -a'])
})

test('patches are told value by value, for their component alone', () => {
  const state = stateAfter([
    ...CATALOG.slice(1),
    component('a', { delivery: 'helm' }),
    cluster('one', {
      platform_components: [{ id: 'a' }, { id: 'b' }],
      namespaces: [{ id: 'n' }],
      patches: { a: { replicas: '1', color: 'red' } },
    }),
  ])
  const values: Command = {
    op: 'patch_values',
    cluster: 'one',
    component: 'a',
    values: { replicas: '2', color: null, 'ui/size': 'm' },
    merge: true,
    path: '',
  }
  const { details, endpoints } = impact(state, [values])
  assert.deepEqual(endpoints, { 'platform-components': { clusters: 1, added: 0, removed: 0, changed: 1 } })
  assert.deepEqual(details[0]?.changed, [
    {
      id: 'a',
      fields: [
        { path: '/patches/replicas', before: '1', after: '2' },
        { path: '/patches/color', before: 'red', after: null },
        { path: '/patches/ui~1size', before: null, after: 'm' },
      ],
    },
  ])
})

test('what no input says of a cluster has no impact', () => {
  const state = stateAfter([...CATALOG, cluster('one', { namespaces: [{ id: 'n' }] })])
  const quiet = { labels: { region: 'eu' }, deletion_protection: true, node_count: 3 }
  assert.deepEqual(impact(state, [patch('clusters', 'one', quiet)]), { ...NONE, touched: 1 })
})

const BUSY = { platform_components: [{ id: 'b' }, { id: 'a' }], namespaces: [{ id: 'n' }] }

test('the order of inputs does not count', () => {
  const state = stateAfter([
    ...CATALOG,
    component('c'),
    cluster('one', { platform_components: [{ id: 'a' }, { id: 'b', oci_tag: 'mine' }, { id: 'c' }] }),
  ])
  const order = (...platform_components: Json[]) => patch('clusters', 'one', { platform_components })
  const mine = { id: 'b', oci_tag: 'mine' }
  assert.deepEqual(impact(state, [order({ id: 'c' }, { id: 'a' }, mine)]), { ...NONE, touched: 1 })
  assert.deepEqual(told(impact(state, [order(mine, { id: 'c', oci_tag: 'v2' })])), [
    'one/platform-components -a ~c/source/oci_tag',
  ])
})

test('a new identity of a cluster changes each of its inputs, at every endpoint', () => {
  const state = stateAfter([...CATALOG, cluster('one', BUSY), cluster('two', BUSY)])
  const changes = [
    ['cluster_name', '/cluster/name', 'one', 'uno'],
    ['cluster_dns', '/cluster/dns', 'one.example.com', 'uno.example.com'],
    ['environment', '/cluster/environment', 'dev', 'prod'],
  ] as const
  for (const [property, path, before, after] of changes) {
    const found = impact(state, [patch('clusters', 'one', { [property]: after })])
    assert.deepEqual(found.endpoints, {
      namespaces: { clusters: 1, added: 0, removed: 0, changed: 1 },
      'platform-components': { clusters: 1, added: 0, removed: 0, changed: 2 },
    })
    for (const { changed } of found.details) {
      for (const { fields } of changed) assert.deepEqual(fields, [{ path, before, after }])
    }
    assert.equal(found.clusters, 1)
  }
})

test('clusters that have no inputs never receive anything differently', () => {
  const state = stateAfter([cluster('one')])
  const moved = impact(state, [patch('clusters', 'one', { environment: 'prod' })])
  assert.deepEqual(moved, { ...NONE, touched: 1 })
  const replaced = impact(state, [cluster('two'), remove('clusters', 'one')])
  assert.deepEqual(replaced, { ...NONE, touched: 2, joining: 1, leaving: 1 })
})

test('a cluster that is created or restored receives all, one that is deleted or purged loses all', () => {
  const gained = ['one/namespaces +n', 'one/platform-components +b +a']
  const lost = ['one/namespaces -n', 'one/platform-components -b -a']
  const live = stateAfter([...CATALOG, cluster('one', BUSY)])
  const deleted = stateAfter([...CATALOG, cluster('one', BUSY)], [remove('clusters', 'one')])
  assert.deepEqual(told(impact(stateAfter(CATALOG), [cluster('one', BUSY)])), gained)
  assert.deepEqual(told(impact(live, [remove('clusters', 'one')])), lost)
  assert.deepEqual(told(impact(live, [remove('clusters', 'one', { purge: true })])), lost)
  assert.deepEqual(told(impact(deleted, [{ op: 'restore', type: 'clusters', id: 'one', path: '' }])), gained)
  assert.deepEqual(told(impact(deleted, [cluster('one', { namespaces: [{ id: 'n' }] })])), [
    'one/namespaces +n',
  ])
})

test('a tombstone receives nothing, whether it is purged or not and whatever its definitions become', () => {
  const deleted = stateAfter(
    [...CATALOG, cluster('one', BUSY), cluster('two', BUSY)],
    [remove('clusters', 'one')],
  )
  const purge = remove('clusters', 'one', { purge: true })
  const edit = patch('platform_components', 'a', { oci_tag: 'v2' })
  assert.deepEqual(impact(deleted, [purge]), NONE)
  assert.deepEqual(told(impact(deleted, [edit])), ['two/platform-components ~a/source/oci_tag'])
  assert.deepEqual(told(impact(deleted, [edit, purge])), ['two/platform-components ~a/source/oci_tag'])
})

test('a definition that goes with all its uses is removed from every cluster that had it', () => {
  const state = stateAfter([
    ...CATALOG,
    component('c', { depends_on: ['a'] }),
    cluster('one', BUSY),
    cluster('two', { platform_components: [{ id: 'a' }, { id: 'c' }] }),
    cluster('three', { platform_components: [{ id: 'c' }] }),
    cluster('four', { platform_components: [{ id: 'b' }] }),
  ])
  assert.deepEqual(told(impact(state, [remove('platform_components', 'a', { cascade: true })])), [
    'one/platform-components -a',
    'two/platform-components -a ~c/depends_on',
  ])
})

/** Clusters c0, c1, …; one in three is prod and one in two has the namespace. */
function fleet(size: number): Command[] {
  return Array.from({ length: size }, (_, i) =>
    cluster(`c${i}`, {
      environment: i % 3 === 0 ? 'prod' : 'dev',
      platform_components: [{ id: 'a' }, { id: 'b' }],
      ...(i % 2 === 0 && { namespaces: [{ id: 'n' }] }),
    }),
  )
}

test('counts are exact, however few details are wanted', () => {
  const state = stateAfter([...CATALOG, ...fleet(12)])
  const edits = [
    patch('platform_components', 'a', { oci_tag: 'v2' }),
    patch('platform_components', 'b', { oci_tag: 'v2' }),
    patch('namespaces', 'n', { labels: { team: 'y' } }),
  ]
  const { details, ...counts } = impact(state, edits)
  assert.deepEqual(counts, {
    clusters: 12,
    by_environment: { dev: 8, prod: 4 },
    touched: 12,
    joining: 0,
    leaving: 0,
    losing: 0,
    inputs: [
      input('a', { changed: 12, fields: { '/source/oci_tag': 12 } }),
      input('b', { changed: 12, fields: { '/source/oci_tag': 12 } }),
      { ...input('n', { changed: 6, fields: { '/labels/team': 6 } }), endpoint: 'namespaces' },
    ],
    input_count: 3,
    endpoints: {
      namespaces: { clusters: 6, added: 0, removed: 0, changed: 6 },
      'platform-components': { clusters: 12, added: 0, removed: 0, changed: 24 },
    },
  })
  assert.equal(details.length, 18)
  for (const limit of [0, 1, 17]) {
    assert.deepEqual(impact(state, edits, limit), { ...counts, details: details.slice(0, limit) })
  }
})

test('what clusters get, lose and receive differently is counted by input, beyond the details too', () => {
  const holder = (id: string, ...references: JsonObject[]) =>
    cluster(id, { platform_components: references as unknown as Json })
  const state = stateAfter([
    ...CATALOG,
    holder('has-a', { id: 'a' }),
    holder('has-both', { id: 'a' }, { id: 'b' }),
    holder('has-b', { id: 'b' }),
    holder('has-none'),
  ])
  const type = 'platform_components'
  const ids = ['has-a', 'has-b', 'has-both', 'has-none']
  const toAll = ids.map((id) => assign(type, id, 'a', { oci_tag: 'v2' }))
  const { inputs, input_count, losing, touched } = impact(state, toAll, 0)
  assert.deepEqual(inputs, [input('a', { added: 2, changed: 2, fields: { '/source/oci_tag': 2 } })])
  assert.deepEqual({ input_count, losing, touched }, { input_count: 1, losing: 0, touched: 4 })
  const off = assign(type, 'has-b', 'b', { enabled: false }, true)
  const taken: Command = { op: 'unassign', type, cluster: 'has-both', id: 'b', path: '' }
  const lost = impact(state, [off, taken, remove('clusters', 'has-a'), holder('new', { id: 'b' })])
  assert.deepEqual(lost.inputs, [
    input('b', { removed: 1, changed: 1, switched_off: 1, fields: { '/enabled': 1 } }),
  ])
  const { clusters, joining, leaving } = lost
  assert.deepEqual([clusters, lost.touched, joining, leaving, lost.losing], [4, 4, 1, 1, 2])
})

test('of very many inputs and fields the most widespread are counted', () => {
  const ids = Array.from({ length: 250 }, (_, i) => `x${i}`)
  const all = cluster('all', { platform_components: ids.map((id) => ({ id })) })
  const some = cluster('some', { platform_components: ids.slice(-3).map((id) => ({ id })) })
  const state = stateAfter([...ids.map((id) => component(id)), all, some])
  const edits = ids.map((id) => patch('platform_components', id, { oci_tag: 'v2' }))
  const { inputs, input_count } = impact(state, edits)
  assert.deepEqual([inputs.length, input_count], [100, 250])
  assert.deepEqual(
    inputs.slice(0, 4).map(({ id, changed }) => [id, changed]),
    [
      ['x247', 2],
      ['x248', 2],
      ['x249', 2],
      ['x0', 1],
    ],
  )
  const values = Object.fromEntries(ids.map((id) => [id, '1']))
  const patched = impact(state, [patch('clusters', 'all', { patches: { x0: values } })])
  assert.equal(Object.keys(patched.inputs[0]?.fields ?? {}).length, 20)
})

test('details stop at a hundred endpoints where nothing else is asked for', () => {
  const state = stateAfter([...CATALOG, ...fleet(101)])
  const { clusters, details } = impact(state, [patch('platform_components', 'a', { oci_tag: 'v2' })])
  assert.deepEqual([clusters, details.length], [101, 100])
})

test('a cluster counts once in its environment: the new one, or the last that a deleted one had', () => {
  const state = stateAfter([
    ...CATALOG,
    cluster('gone', { ...BUSY, environment: 'uat' }),
    cluster('moved', { ...BUSY, environment: 'dev' }),
    cluster('quiet', { ...BUSY, environment: 'qa' }),
  ])
  const batch = [
    remove('clusters', 'gone'),
    patch('clusters', 'moved', { environment: 'prod' }),
    cluster('new', { ...BUSY, environment: 'dev' }),
  ]
  const { clusters, by_environment, details } = impact(state, batch)
  assert.equal(clusters, 3)
  assert.deepEqual(Object.entries(by_environment), [
    ['dev', 1],
    ['prod', 1],
    ['uat', 1],
  ])
  assert.deepEqual(
    details.map(({ cluster: id, environment }) => `${id} ${environment}`),
    ['gone uat', 'gone uat', 'moved prod', 'moved prod', 'new dev', 'new dev'],
  )
})

test('details are ordered by cluster, be it new, gone, restored, changed or only reached', () => {
  const named = (id: string) => cluster(id, { namespaces: [{ id: 'n' }] })
  const state = stateAfter([...CATALOG, ...['b', 'd', 'f', 'h', 'j'].map(named)], [remove('clusters', 'h')])
  const clusters = [
    named('k'),
    named('a'),
    named('e'),
    { op: 'restore', type: 'clusters', id: 'h', path: '' } as const,
    remove('clusters', 'f'),
    patch('clusters', 'd', { environment: 'qa' }),
  ]
  const ordered = (commands: Command[]) => impact(state, commands).details.map(({ cluster: id }) => id)
  assert.deepEqual(ordered(clusters), ['a', 'd', 'e', 'f', 'h', 'k'])
  const edit = patch('namespaces', 'n', { labels: { team: 'y' } })
  assert.deepEqual(ordered([...clusters, edit]), ['a', 'b', 'd', 'e', 'f', 'h', 'j', 'k'])
})

test('one cluster may be reached at several endpoints, by its own change and by that of definitions', () => {
  const binding = create('rolebindings', { id: 'r', role: 'view', subjects: [] })
  const state = stateAfter([...CATALOG, binding, cluster('one', { ...BUSY, rolebindings: [{ id: 'r' }] })])
  const found = impact(state, [
    patch('rolebindings', 'r', { role: 'edit' }),
    patch('platform_components', 'a', { oci_tag: 'v2' }),
    patch('clusters', 'one', { namespaces: [] }),
  ])
  assert.equal(found.clusters, 1)
  assert.deepEqual(told(found), [
    'one/namespaces -n',
    'one/platform-components ~a/source/oci_tag',
    'one/rolebindings ~r/role',
  ])
})

test('a reference whose definition is not there makes no input: it comes and goes with the definition', () => {
  const entry = (document: Document): Entry => ({
    id: document.id,
    document,
    revision: 1,
    deleted: false,
    size: 0,
  })
  const without = new Overlay(new State(types), types.cluster, 1)
  const document = { id: 'one', cluster_name: 'one', cluster_dns: 'one.example.com', environment: 'dev' }
  without.lay('clusters', 'one', entry({ ...document, namespaces: [{ id: 'n' }, { id: 'never' }] }))
  const withIt = new Overlay(without, types.cluster, 2)
  withIt.lay('namespaces', 'n', entry({ id: 'n', labels: {}, annotations: {} }))
  const goneAgain = new Overlay(withIt, types.cluster, 3)
  goneAgain.lay('namespaces', 'n', undefined)
  const between = (before: View, after: Overlay) =>
    told(finish(impactOf(new Comparison(types, before, after))))
  assert.deepEqual(between(without, withIt), ['one/namespaces +n'])
  assert.deepEqual(between(withIt, goneAgain), ['one/namespaces -n'])
  const renamed = new Overlay(withIt, types.cluster, 3)
  renamed.lay(
    'clusters',
    'one',
    entry({ ...document, environment: 'qa', namespaces: [{ id: 'never' }, { id: 'n' }] }),
  )
  const found = finish(impactOf(new Comparison(types, withIt, renamed)))
  assert.deepEqual(told(found), ['one/namespaces ~n/cluster/environment'])
})

/** All inputs of a view without their digests, by cluster, endpoint and id. */
function received(view: View): Map<string, Json> {
  const inputs = new Map<string, Json>()
  for (const entry of view.all('clusters')) {
    for (const type of types.delivered) {
      const { text } = renderInputs(servedTo(types, view, entry.id), types, type, entry)
      for (const input of JSON.parse(withoutDigests(text)).inputs) {
        inputs.set(`${entry.id}/${type.delivery.endpoint}/${input.id}`, input)
      }
    }
  }
  return inputs
}

const definition = fc.constantFrom('a', 'b', 'c')
const reference = fc.record(
  { id: definition, oci_tag: fc.constantFrom('v1', 'v2'), enabled: fc.boolean() },
  { requiredKeys: ['id'], noNullPrototype: true },
)
const references = fc.uniqueArray(reference, { selector: ({ id }) => id })
const old = fc.constantFrom('c0', 'c1', 'c2')
const command: fc.Arbitrary<Command> = fc.oneof(
  fc
    .tuple(definition, fc.constantFrom('v1', 'v2', 'v3'))
    .map(([id, oci_tag]) => patch('platform_components', id, { oci_tag })),
  definition.map((id) => remove('platform_components', id, { cascade: true })),
  fc.constantFrom('x', 'y').map((team) => patch('namespaces', 'n', { labels: { team } })),
  fc
    .tuple(old, references)
    .map(([id, list]) => patch('clusters', id, { platform_components: list, patches: {} })),
  fc
    .tuple(old, fc.constantFrom('dev', 'prod'))
    .map(([id, environment]) => patch('clusters', id, { environment })),
  fc
    .tuple(old, definition, fc.constantFrom('1', '2'))
    .map(([id, of, replicas]) => patch('clusters', id, { patches: { [of]: { replicas } } })),
  old.map((id) => patch('clusters', id, { namespaces: [{ id: 'n' }] })),
  fc
    .tuple(fc.constantFrom('b9', 'c9'), references)
    .map(([id, list]) => cluster(id, { platform_components: list })),
  fc.tuple(old, fc.boolean()).map(([id, purge]) => remove('clusters', id, { purge })),
  fc.constant(remove('clusters', 'gone', { purge: true })),
  fc.constant<Command>({ op: 'restore', type: 'clusters', id: 'gone', path: '' }),
)

test('the impact of any write is the difference of what every cluster receives before and after', () => {
  const starts = fc.tuple(references, references, references)
  let reached = 0
  fc.assert(
    fc.property(starts, fc.array(command, { minLength: 1, maxLength: 5 }), (lists, commands) => {
      const clusters = lists.map((list, i) => cluster(`c${i}`, { platform_components: list }))
      const gone = cluster('gone', { platform_components: [{ id: 'a' }], namespaces: [{ id: 'n' }] })
      const state = stateAfter([...CATALOG, component('c'), ...clusters, gone], [remove('clusters', 'gone')])
      const decision = finish(decide(types, state, commands))
      if (!decision.ok) return
      const { after } = decision.value
      const found = finish(impactOf(new Comparison(types, state, after)))
      const [had, has] = [received(state), received(after)]
      const expected = [...new Set([...had.keys(), ...has.keys()])].flatMap((key) => {
        const [before, now] = [had.get(key), has.get(key)]
        if (before === undefined) return [`+ ${key}`]
        if (now === undefined) return [`- ${key}`]
        return isDeepStrictEqual(before, now) ? [] : [`~ ${key}`]
      })
      const actual = found.details.flatMap(({ cluster: id, endpoint, added, removed, changed }) => [
        ...added.map((input) => `+ ${id}/${endpoint}/${input}`),
        ...removed.map((input) => `- ${id}/${endpoint}/${input}`),
        ...changed.map(({ id: input }) => `~ ${id}/${endpoint}/${input}`),
      ])
      assert.deepEqual(actual.sort(), expected.sort())
      assert.equal(found.clusters, new Set(expected.map((key) => key.slice(2).split('/')[0])).size)
      reached += found.clusters
    }),
    { numRuns: 300 },
  )
  assert.ok(reached > 100, 'hardly any write has an impact')
})
