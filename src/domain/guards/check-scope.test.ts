import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { command as anyCommand, types } from '../../../test/random-fleet.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { Problem } from '../../base/problem.ts'
import { finish } from '../../base/steps.ts'
import { type Grant, ROLES } from '../access/grant.ts'
import { parseSelector } from '../access/selector.ts'
import type { Command } from '../commands/command.ts'
import { type Decision, decide } from '../commands/decide.ts'
import { Comparison } from '../delivery/compare-served.ts'
import { renderInputs } from '../delivery/render-inputs.ts'
import { servedTo } from '../delivery/served-view.ts'
import { State } from '../documents/state.ts'
import type { DocumentVersion, Entry, View } from '../documents/view.ts'
import { type Document, dnsOf } from '../types/resource-type.ts'
import { checkScope } from './check-scope.ts'

function create(type: string, document: JsonObject): Command {
  return { op: 'create', type, document, path: '' }
}

function component(id: string, more: JsonObject = {}): Command {
  const source = { component_path: `core/${id}`, component_version: '1', oci_url: 'oci://x', oci_tag: 'v1' }
  return create('platform_components', { id, ...source, ...more })
}

function cluster(id: string, more: JsonObject = {}): Command {
  const own = { id, cluster_name: id, cluster_dns: `${id}.example.com`, environment: 'dev' }
  return create('clusters', { ...own, ...more })
}

function patch(type: string, id: string, change: Json): Command {
  return { op: 'patch', type, id, patch: change, format: 'merge', path: '' }
}

function remove(type: string, id: string, how: { cascade?: boolean; purge?: boolean } = {}): Command {
  return { op: 'delete', type, id, cascade: false, purge: false, ...how, path: '' }
}

/** What a step of the past changed. */
type Step = readonly {
  type: string
  id: string
  before: DocumentVersion | undefined
  after: DocumentVersion | undefined
}[]

interface Fleet {
  readonly state: State
  readonly steps: Step[]
}

/** Does what can be done of these commands, as one step; says whether it could. */
function apply({ state, steps }: Fleet, commands: readonly Command[]): boolean {
  const decision = finish(decide(types, state, commands))
  if (!decision.ok) return false
  const { changes } = decision.value
  steps.push(changes.map(({ type, id, before, after }) => ({ type, id, before, after })))
  state.apply(
    state.revision + 1,
    changes.map(({ type, id, after }) => ({
      type,
      id,
      after: after && { document: after.document, deleted: after.deleted, size: after.json.length },
    })),
  )
  return true
}

function fleetAfter(...batches: Command[][]): Fleet {
  const fleet = { state: new State(types), steps: [] }
  for (const commands of batches) assert.ok(apply(fleet, commands), JSON.stringify(commands))
  return fleet
}

/** Two tiers that share some of the catalog, a cluster that has nothing and two that were deleted. */
const BEGINNING = [
  [
    component('a'),
    component('b', { depends_on: ['a'] }),
    component('c'),
    create('namespaces', { id: 'n0', labels: { x: '1' } }),
    create('namespaces', { id: 'n1' }),
    create('rolebindings', { id: 'r0', role: 'view', subjects: [] }),
    cluster('k0', {
      platform_components: [{ id: 'a' }, { id: 'b' }],
      namespaces: [{ id: 'n0' }],
      patches: { a: { replicas: '1' } },
    }),
    cluster('k1', {
      environment: 'prod',
      platform_components: [{ id: 'b' }, { id: 'a', oci_tag: 'own', enabled: false }],
      rolebindings: [{ id: 'r0' }],
    }),
    cluster('k2', { environment: 'prod', labels: { x: '1' }, namespaces: [{ id: 'n0' }, { id: 'n1' }] }),
    cluster('k3'),
    cluster('k4', { cluster_dns: 'k9.example.com', namespaces: [{ id: 'n1' }] }),
    cluster('k5', {
      environment: 'prod',
      platform_components: [{ id: 'c' }, { id: 'b' }],
      namespaces: [{ id: 'n1' }],
    }),
  ],
  [remove('clusters', 'k3'), remove('clusters', 'k5')],
]

/** A way back, told by numbers that are taken modulo what there is to go back to. */
interface Back {
  readonly op: 'back'
  readonly how: 'document' | 'fleet' | 'undo'
  readonly step: number
  readonly pick: number
}
const back: fc.Arbitrary<Back> = fc.record({
  op: fc.constant('back' as const),
  how: fc.constantFrom('document', 'fleet', 'undo'),
  step: fc.nat(100),
  pick: fc.nat(100),
})

function wayBack({ steps }: Fleet, { how, step, pick }: Back): Command[] {
  const to = step % steps.length
  if (how === 'undo') {
    return (steps[to] ?? []).map(({ type, id, before, after }) => {
      return { op: 'undo', type, id, revision: to + 1, before, after, path: '' }
    })
  }
  const then = new Map<string, Command>()
  for (const { type, id, before } of steps.slice(to).flat()) {
    const known = then.get(`${type}/${id}`)
    if (!known) then.set(`${type}/${id}`, { op: 'reset', type, id, to: before, path: '' })
  }
  const resets = [...then.values()]
  return how === 'fleet' ? resets : resets.slice(pick % resets.length).slice(0, 1)
}

/** What changes the tiers, the labels and the assignments of those that are there. */
const edit: fc.Arbitrary<Command> = fc.oneof(
  fc
    .tuple(
      fc.constantFrom('k0', 'k1', 'k2', 'k4'),
      fc.record(
        {
          environment: fc.constantFrom('dev', 'prod'),
          labels: fc.constantFrom<Json>({ x: '1' }, { x: '2' }, { x: null }),
          node_count: fc.nat(3),
          namespaces: fc.constantFrom<Json>([], [{ id: 'n0' }], [{ id: 'n1' }, { id: 'n0' }]),
          platform_components: fc.constantFrom<Json>([], [{ id: 'a' }], [{ id: 'b' }, { id: 'a' }]),
          patches: fc.constantFrom<Json>({ a: null, b: null }, { a: { replicas: '2' } }),
        },
        { requiredKeys: [], noNullPrototype: true },
      ),
    )
    .map(([id, change]) => patch('clusters', id, change as Json)),
  fc
    .tuple(
      fc.constantFrom('a', 'b', 'c'),
      fc.record(
        {
          oci_tag: fc.constantFrom('v1', 'v2', 'own'),
          delivery: fc.constantFrom('helm', 'kustomize'),
          depends_on: fc.constantFrom<Json>([], ['a'], ['c']),
        },
        { requiredKeys: [], noNullPrototype: true },
      ),
    )
    .map(([id, change]) => patch('platform_components', id, change as Json)),
  fc
    .tuple(fc.constantFrom('n0', 'n1'), fc.constantFrom<Json>({ x: '1' }, { x: '2' }, { x: null, y: '1' }))
    .map(([id, labels]) => patch('namespaces', id, { labels })),
  fc
    .tuple(fc.constantFrom('k3', 'k5', 'k6'), fc.constantFrom('dev', 'prod'), fc.boolean())
    .map(([id, environment, busy]) =>
      cluster(id, { environment, ...(busy && { namespaces: [{ id: 'n0' }], patches: {} }) }),
    ),
)

const write = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: anyCommand as fc.Arbitrary<Command | Back> },
    { weight: 4, arbitrary: edit },
    { weight: 1, arbitrary: back },
  ),
  { minLength: 1, maxLength: 3 },
)
const history = fc.array(fc.oneof(anyCommand, edit), { maxLength: 8 })

/** A write that could be done, and the fleet as it was. */
interface Case {
  readonly state: State
  readonly decision: Decision
  refuse(grant: Grant): Problem | undefined
}

/** Runs a law over writes that are possible on fleets made at random. */
function forAnyWrite<T>(more: fc.Arbitrary<T>, law: (found: Case, more: T) => void, numRuns = 500): void {
  let possible = 0
  fc.assert(
    fc.property(history, write, more, (past, wanted, given) => {
      const fleet = fleetAfter(...BEGINNING)
      for (const command of past) apply(fleet, [command])
      const commands = wanted.flatMap((each) => (each.op === 'back' ? wayBack(fleet, each) : [each]))
      const { state } = fleet
      const decided = finish(decide(types, state, commands))
      if (!decided.ok || decided.value.changes.length === 0) return
      possible++
      const decision = decided.value
      const refuse = (grant: Grant) =>
        finish(checkScope(grant, new Comparison(types, state, decision.after), decision.changes))
      law({ state, decision, refuse }, given)
    }),
    { numRuns },
  )
  assert.ok(possible > numRuns / 5, `only ${possible} of ${numRuns} writes were possible`)
}

const CLUSTER_IDS = ['k0', 'k1', 'k2', 'k3', 'k4', 'k5', 'k6']

function standing(view: View, type: string, id: string): Entry | undefined {
  return view.get(type, id) ?? view.tombstone(type, id)
}

/** The answers to all polls of a cluster; the order of an object's keys does not count, all else does. */
function answersTo(view: View, id: string): Json[] {
  const entry = view.get('clusters', id)
  return entry
    ? types.delivered.map((type) =>
        JSON.parse(renderInputs(servedTo(types, view, entry.id), types, type, entry).text),
      )
    : []
}

/** What a deleted cluster would get if it were restored as it is. */
function answersIfRestored(view: View, tombstone: Entry): Json[] {
  const { id, document, revision, size } = tombstone
  const entry = { id, document, revision, size, deleted: false }
  return types.delivered.map((type) =>
    JSON.parse(renderInputs(servedTo(types, view, entry.id), types, type, entry).text),
  )
}

function isChanged(before: Entry | undefined, after: Entry | undefined): boolean {
  return (
    before?.deleted !== after?.deleted || JSON.stringify(before?.document) !== JSON.stringify(after?.document)
  )
}

/** Clusters that a write touches and that do not match, found by looking at every one of them. */
function outside(before: View, after: View, matches: (document: Document) => boolean): string[] {
  return CLUSTER_IDS.filter((id) => {
    const [was, is] = [standing(before, 'clusters', id), standing(after, 'clusters', id)]
    const documents = [was, is].flatMap((entry) => entry?.document ?? [])
    const touched =
      isChanged(was, is) ||
      (was?.deleted
        ? !isDeepStrictEqual(answersIfRestored(before, was), answersIfRestored(after, was))
        : !isDeepStrictEqual(answersTo(before, id), answersTo(after, id)))
    return touched && !documents.every(matches)
  })
}

/** Whether a cluster gets the DNS name of another one that was deleted: a test of scopes tells of that. */
function takesNameOfDeleted({ state, decision: { changes } }: Case): boolean {
  const names = CLUSTER_IDS.flatMap((id) => {
    const tombstone = state.tombstone('clusters', id)
    return tombstone ? [{ id, dns: dnsOf(types.cluster, tombstone.document) }] : []
  })
  return changes.some(
    ({ type, id, after }) =>
      type === 'clusters' &&
      after?.deleted === false &&
      names.some((gone) => gone.id !== id && gone.dns === dnsOf(types.cluster, after.document)),
  )
}

function purged({ state, decision }: Case): string[] {
  return CLUSTER_IDS.filter(
    (id) => standing(state, 'clusters', id) && !standing(decision.after, 'clusters', id),
  )
}

const OWNERS = new Map([
  ['platform_components', 'platform_components'],
  ['patches', 'platform_components'],
  ['namespaces', 'namespaces'],
  ['rolebindings', 'rolebindings'],
])

/** What of a cluster belongs to which type; of what is empty there is nothing to own. */
function partsOf(document: Document): Map<string, Record<string, Json>> {
  const parts = new Map<string, Record<string, Json>>()
  for (const [field, value] of Object.entries(document)) {
    const owner = OWNERS.get(field)
    if (owner && Object.keys(value as object).length === 0) continue
    parts.set(owner ?? 'clusters', { ...parts.get(owner ?? 'clusters'), [field]: value })
  }
  return parts
}

const NOTHING = new Map<string, unknown>()

/** The types that a write touches, found by looking at every document. */
function typesTouched({ state, decision }: Case): string[] {
  const { after } = decision
  return types.all.flatMap(({ name }) => {
    const ids = new Set([...state.all(name), ...after.all(name)].map(({ id }) => id))
    if (name !== 'clusters')
      return [...ids].some((id) => isChanged(state.get(name, id), after.get(name, id))) ? name : []
    return CLUSTER_IDS.flatMap((id) => {
      const [was, is] = [standing(state, name, id), standing(after, name, id)]
      if (!isChanged(was, is)) return []
      // One that comes brings all that it has; one that goes takes it along.
      const stays = was?.deleted === is?.deleted
      const [had, has] = [was, is].map((entry) =>
        entry && (stays || !entry.deleted) ? partsOf(entry.document) : NOTHING,
      ) as [Map<string, unknown>, Map<string, unknown>]
      const touched = [...new Set([...had.keys(), ...has.keys()])].filter(
        (type) => !isDeepStrictEqual(had.get(type), has.get(type)),
      )
      return stays ? touched : ['clusters', ...touched]
    })
  })
}

const SELECTORS = [
  'environment=dev',
  'environment!=prod',
  'environment in (prod)',
  'environment notin (prod)',
  'x=1',
  '!x',
  'x',
  'id!=k0',
  'id in (k0,k1)',
  'cluster_dns=K0.example.com.',
  'uses.namespaces=n0',
  '!uses.rolebindings',
  'uses.platform_components>1',
]
const selector = fc.constantFrom(...SELECTORS)
const someTypes = fc.uniqueArray(fc.constantFrom(...types.all.map(({ name }) => name)), { minLength: 1 })

function matcher(text: string): (document: Document) => boolean {
  const parsed = parseSelector(types, text)
  return parsed.ok ? (document) => parsed.selector.matches(document) : assert.fail(parsed.message)
}

function namedIn({ details }: Problem): string[] {
  return (details ?? []).map(({ path }) => path.replace('/clusters/', ''))
}

test('a selector allows a write exactly when all clusters that it changes or reaches match before and after', () => {
  const count = { allowed: 0, refused: 0 }
  forAnyWrite(
    selector,
    (found, text) => {
      if (takesNameOfDeleted(found)) return
      const problem = found.refuse({ role: 'editor', selector: text })
      if (purged(found).length > 0) return assert.match(problem?.message ?? '', /only the role admin/)
      const expected = outside(found.state, found.decision.after, matcher(text))
      assert.deepEqual(problem ? namedIn(problem) : [], expected)
      assert.equal(problem?.code, expected.length > 0 ? 'forbidden' : undefined)
      count[problem ? 'refused' : 'allowed']++
    },
    2000,
  )
  assert.ok(count.allowed > 100 && count.refused > 100, JSON.stringify(count))
})

test('an admin may do anything, and who is less than an editor may do nothing', () => {
  forAnyWrite(fc.constant(0), ({ refuse }) => {
    assert.equal(refuse({ role: 'admin' }), undefined)
    for (const role of ROLES.filter((role) => role !== 'editor' && role !== 'admin')) {
      assert.equal(refuse({ role, cluster: 'k0' })?.code, 'forbidden')
    }
  })
})

test('an editor without a scope is refused for clusters that would leave no trace, and for nothing else', () => {
  let refused = 0
  forAnyWrite(fc.constant(0), (found) => {
    const problem = found.refuse({ role: 'editor' })
    assert.deepEqual(problem ? namedIn(problem).sort() : [], purged(found))
    refused += Number(problem !== undefined)
  })
  assert.ok(refused > 5)
})

test('a scope that every cluster is in, and all types, are no limit', () => {
  const all = types.all.map(({ name }) => name)
  forAnyWrite(fc.constant(0), ({ refuse }) => {
    const unlimited = refuse({ role: 'editor' })
    for (const text of ['id', 'environment in (dev,qa,uat,prod)', 'id!=nobody'])
      assert.deepEqual(refuse({ role: 'editor', selector: text }), unlimited)
    assert.deepEqual(refuse({ role: 'editor', types: all }), unlimited)
    assert.deepEqual(refuse({ role: 'editor', types: all, selector: 'id' }), unlimited)
  })
})

test('a narrower selector never allows more', () => {
  let narrowed = 0
  forAnyWrite(fc.tuple(selector, selector), ({ refuse }, [wide, more]) => {
    const beyondWide = refuse({ role: 'editor', selector: wide })
    const beyondNarrow = refuse({ role: 'editor', selector: `${wide}, ${more}` })
    if (beyondWide) assert.ok(beyondNarrow)
    narrowed += Number(!beyondWide && beyondNarrow !== undefined)
  })
  assert.ok(narrowed > 5)
})

test('types allow a write exactly when all that it changes is of these types', () => {
  const count = { allowed: 0, refused: 0 }
  forAnyWrite(
    someTypes,
    (found, allowed) => {
      const problem = found.refuse({ role: 'editor', types: allowed })
      if (purged(found).length > 0) return
      const foreign = typesTouched(found).filter((name) => !allowed.includes(name))
      assert.equal(problem !== undefined, foreign.length > 0, `${problem?.message} ${foreign}`)
      count[problem ? 'refused' : 'allowed']++
    },
    2000,
  )
  assert.ok(count.allowed > 100 && count.refused > 100, JSON.stringify(count))
})

test('fewer types never allow more, and beside a selector both have to hold', () => {
  forAnyWrite(fc.tuple(someTypes, selector), ({ refuse }, [allowed, text]) => {
    const byTypes = refuse({ role: 'editor', types: allowed })
    if (byTypes) assert.ok(refuse({ role: 'editor', types: allowed.slice(1) }))
    const bySelector = refuse({ role: 'editor', selector: text })
    const byBoth = refuse({ role: 'editor', types: allowed, selector: text })
    assert.equal(byBoth !== undefined, byTypes !== undefined || bySelector !== undefined)
  })
})

function refusal(state: State, commands: Command[], grant: Grant): Problem | undefined {
  const decision = finish(decide(types, state, commands))
  assert.ok(decision.ok, JSON.stringify(decision))
  const { after, changes } = decision.value
  return finish(checkScope(grant, new Comparison(types, state, after), changes))
}

test('many clusters outside are counted, the first of them named, and a bounded number told in details', () => {
  const clusters = Array.from({ length: 60 }, (_, i) =>
    cluster(`p${String(i).padStart(2, '0')}`, { environment: 'prod', namespaces: [{ id: 'n' }] }),
  )
  const dev = cluster('dev', { namespaces: [{ id: 'n' }] })
  const { state } = fleetAfter([create('namespaces', { id: 'n' }), dev, ...clusters])
  const problem = refusal(state, [patch('namespaces', 'n', { labels: { x: '1' } })], {
    role: 'editor',
    selector: 'environment=dev',
  })
  assert.equal(
    problem?.message,
    'this touches 60 clusters outside your scope (environment=dev): p00, p01, p02, p03, p04 and 55 more',
  )
  assert.equal(problem.details?.length, 50)
  assert.deepEqual(problem.details[0], { path: '/clusters/p00', message: 'is outside your scope' })
})

test('what only deleted clusters use is theirs, so that nobody changes what comes back with them', () => {
  const vault = component('vault', { depends_on: ['db'] })
  const prod = cluster('prod', { environment: 'prod', platform_components: [{ id: 'vault' }, { id: 'db' }] })
  const { state } = fleetAfter(
    [component('db'), component('other'), vault, prod],
    [remove('clusters', 'prod')],
  )
  const grant = { role: 'editor', selector: 'environment=dev' } as const
  const beyond = (...commands: Command[]) => refusal(state, commands, grant)
  const refused = beyond(patch('platform_components', 'vault', { oci_url: 'oci://elsewhere' }))
  assert.equal(
    refused?.message,
    'this changes what 1 deleted cluster outside your scope (environment=dev) would receive if restored: prod',
  )
  assert.deepEqual(refused.details, [
    {
      path: '/clusters/prod',
      message:
        'is a deleted cluster outside your scope, and would receive something else if it were restored',
    },
  ])
  assert.ok(beyond(patch('platform_components', 'db', { delivery: 'kustomize' })), 'what it waits for')
  assert.ok(beyond(remove('platform_components', 'vault')))
  assert.ok(beyond(remove('platform_components', 'db', { cascade: true })))
  assert.equal(beyond(patch('platform_components', 'other', { oci_url: 'oci://elsewhere' })), undefined)
  assert.equal(
    refusal(state, [patch('platform_components', 'vault', { oci_tag: 'v2' })], { role: 'editor' }),
    undefined,
  )
})

test('nobody makes anew what a deleted cluster outside names and is not there any more', () => {
  const prod = cluster('prod', { environment: 'prod', namespaces: [{ id: 'n' }] })
  const { state } = fleetAfter(
    [create('namespaces', { id: 'n' }), prod],
    [remove('clusters', 'prod')],
    [remove('namespaces', 'n')],
  )
  const grant = { role: 'editor', selector: 'environment=dev' } as const
  assert.match(refusal(state, [create('namespaces', { id: 'n' })], grant)?.message ?? '', /1 deleted cluster/)
  assert.equal(refusal(state, [create('namespaces', { id: 'm' })], grant), undefined)
})

test('live and deleted clusters outside are told apart', () => {
  const using = { environment: 'prod', namespaces: [{ id: 'n' }] }
  const { state } = fleetAfter(
    [create('namespaces', { id: 'n' }), cluster('live', using), cluster('gone', using)],
    [remove('clusters', 'gone')],
  )
  const problem = refusal(state, [patch('namespaces', 'n', { labels: { x: '1' } })], {
    role: 'editor',
    selector: 'environment=dev',
  })
  assert.equal(
    problem?.message,
    'this touches 1 cluster outside your scope (environment=dev): live; it changes what 1 deleted cluster outside your scope (environment=dev) would receive if restored: gone',
  )
})

test('a selector that cannot be read allows nothing, not even what reaches nobody', () => {
  const { state } = fleetAfter([create('namespaces', { id: 'n' })])
  const grant = { role: 'editor', selector: 'uses.gone=x' } as const
  const problem = refusal(state, [create('namespaces', { id: 'new' })], grant)
  assert.match(problem?.message ?? '', /cannot be read any more: it holds "uses\.gone", which is unknown/)
})

test('types that are gone allow nothing', () => {
  const { state } = fleetAfter([create('namespaces', { id: 'n' })])
  for (const names of [[], ['gone'], ['toString'], ['__proto__']])
    assert.ok(refusal(state, [create('namespaces', { id: 'new' })], { role: 'editor', types: names }))
})

test('a cluster made anew where one was deleted counts with what it has now, not with what that one had', () => {
  const namespace = create('namespaces', { id: 'n' })
  const busy = { namespaces: [{ id: 'n' }] }
  const grant = { role: 'editor', types: ['clusters'] } as const
  const quiet = fleetAfter([namespace, cluster('one')], [remove('clusters', 'one')])
  assert.deepEqual(refusal(quiet.state, [cluster('one', busy)], grant)?.details, [
    { path: '/clusters/one', message: 'would be changed in what it has of namespaces' },
  ])
  const full = fleetAfter([namespace, cluster('one', busy)], [remove('clusters', 'one')])
  assert.equal(refusal(full.state, [cluster('one')], grant), undefined)
})

test('a list that an older cluster lacks and that is filled in empty is no change of its type', () => {
  const state = new State(types)
  const document = { id: 'one', cluster_name: 'one', cluster_dns: 'one.example.com', environment: 'dev' }
  state.apply(1, [{ type: 'clusters', id: 'one', after: { document, deleted: false, size: 100 } }])
  const change = patch('clusters', 'one', { node_count: 3 })
  assert.equal(refusal(state, [change], { role: 'editor', types: ['clusters'] }), undefined)
})
