import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { builtInTypes } from '../../../test/service.ts'
import { Overlay } from './overlay.ts'
import { State } from './state.ts'
import type { Entry, View } from './view.ts'

const types = builtInTypes()

function entry(id: string, name = id, how: { deleted?: boolean; revision?: number } = {}): Entry {
  const document = { id, cluster_name: name, cluster_dns: `${name}.example.com`, environment: 'dev' }
  return { id, document, revision: 2, deleted: false, size: JSON.stringify(document).length, ...how }
}

function stateOf(...entries: Entry[]): State {
  const state = new State(types)
  state.apply(
    1,
    entries.map(({ id, ...after }) => ({ type: 'clusters', id, after })),
  )
  return state
}

/** Live clusters b, d and f, and a tombstone t. */
function base(): State {
  return stateOf(entry('b'), entry('d'), entry('f'), entry('t', 't', { deleted: true }))
}

function overlay(over: View, laid: Readonly<Record<string, Entry | undefined>> = {}): Overlay {
  const view = new Overlay(over, types.cluster, 2)
  for (const [id, value] of Object.entries(laid)) view.lay('clusters', id, value)
  return view
}

function idsOf(view: View, type = 'clusters'): string[] {
  return [...view.all(type)].map(({ id }) => id)
}

function holder(view: View, name: string, except?: string): string | undefined {
  return view.dnsHolder(`${name}.example.com`, except)?.id
}

test('an overlay with nothing laid on it shows what lies beneath, under its own revision', () => {
  const state = base()
  const view = overlay(state)
  assert.equal(view.revision, 2)
  assert.deepEqual([...view.all('clusters')], [...state.all('clusters')])
  assert.equal(view.get('clusters', 'b'), state.get('clusters', 'b'))
  assert.equal(view.tombstone('clusters', 't'), state.tombstone('clusters', 't'))
  assert.equal(view.count('clusters'), 3)
  assert.equal(holder(view, 'd'), 'd')
  assert.equal(view.has('clusters', 'b'), false)
})

test('what is added stands in its place among the others', () => {
  const view = overlay(base(), { g: entry('g'), e: entry('e'), a: entry('a'), 'b-1': entry('b-1') })
  assert.deepEqual(idsOf(view), ['a', 'b', 'b-1', 'd', 'e', 'f', 'g'])
  assert.equal(view.count('clusters'), 7)
  assert.equal(view.get('clusters', 'e')?.id, 'e')
  assert.equal(holder(view, 'e'), 'e')
  assert.ok(view.has('clusters', 'e'))
})

test('what is replaced keeps its place and shows the new document', () => {
  const view = overlay(base(), { d: entry('d', 'new') })
  assert.deepEqual(
    [...view.all('clusters')].map(({ document }) => document.cluster_name),
    ['b', 'new', 'f'],
  )
  assert.equal(view.get('clusters', 'd')?.document.cluster_name, 'new')
  assert.equal(view.get('clusters', 'd')?.revision, 2)
  assert.equal(view.count('clusters'), 3)
})

test('what is removed is gone without a trace, live or a tombstone', () => {
  const view = overlay(base(), { d: undefined, t: undefined, never: undefined })
  assert.deepEqual(idsOf(view), ['b', 'f'])
  assert.equal(view.count('clusters'), 2)
  for (const id of ['d', 't', 'never']) {
    assert.equal(view.get('clusters', id), undefined)
    assert.equal(view.tombstone('clusters', id), undefined)
    assert.ok(view.has('clusters', id))
  }
})

test('what is deleted is a tombstone and no longer live', () => {
  const view = overlay(base(), {
    d: entry('d', 'd', { deleted: true }),
    x: entry('x', 'x', { deleted: true }),
  })
  assert.deepEqual(idsOf(view), ['b', 'f'])
  assert.equal(view.count('clusters'), 2)
  assert.equal(view.get('clusters', 'd'), undefined)
  assert.equal(view.tombstone('clusters', 'd')?.id, 'd')
  assert.equal(view.get('clusters', 'x'), undefined)
  assert.equal(view.tombstone('clusters', 'x')?.id, 'x')
})

test('a tombstone beneath that is live above counts and is listed', () => {
  const view = overlay(base(), { t: entry('t') })
  assert.deepEqual(idsOf(view), ['b', 'd', 'f', 't'])
  assert.equal(view.count('clusters'), 4)
  assert.equal(view.tombstone('clusters', 't'), undefined)
  assert.equal(holder(view, 't'), 't')
})

test('the last that was laid in a place is what counts', () => {
  const view = overlay(base())
  for (const value of [entry('a', 'first'), undefined, entry('a', 'second')]) view.lay('clusters', 'a', value)
  for (const value of [entry('d', 'first'), entry('d', 'second'), undefined]) view.lay('clusters', 'd', value)
  assert.deepEqual(idsOf(view), ['a', 'b', 'f'])
  assert.equal(view.count('clusters'), 3)
  assert.equal(view.get('clusters', 'a')?.document.cluster_name, 'second')
  assert.equal(holder(view, 'first'), undefined)
  assert.equal(holder(view, 'second'), 'a')
})

test('types do not get into each other’s way', () => {
  const view = overlay(base())
  view.lay('namespaces', 'd', undefined)
  view.lay('namespaces', 'n', entry('n', 'd'))
  assert.deepEqual(idsOf(view), ['b', 'd', 'f'])
  assert.deepEqual(idsOf(view, 'namespaces'), ['n'])
  assert.deepEqual([view.count('clusters'), view.count('namespaces'), view.count('rolebindings')], [3, 1, 0])
  assert.equal(holder(view, 'd'), 'd')
  assert.deepEqual(idsOf(view, 'rolebindings'), [])
})

test('a DNS name follows its cluster: the new one is held, the old one is free', () => {
  const view = overlay(base(), { d: entry('d', 'new'), f: undefined, b: entry('b', 'b', { deleted: true }) })
  assert.equal(holder(view, 'new'), 'd')
  assert.equal(holder(view, 'd'), undefined)
  assert.equal(holder(view, 'f'), undefined)
  assert.equal(holder(view, 'b'), undefined)
  assert.equal(holder(view, 't'), undefined)
})

test('a DNS name that goes from one cluster to another has its new holder', () => {
  const exchanged = overlay(base(), { b: entry('b', 'd'), d: entry('d', 'b') })
  assert.deepEqual([holder(exchanged, 'b'), holder(exchanged, 'd')], ['d', 'b'])
  const taken = overlay(base(), { d: undefined, x: entry('x', 'd') })
  assert.equal(holder(taken, 'd'), 'x')
})

test('a DNS name is looked up in any case and with the dot of the root', () => {
  const view = overlay(base(), { x: entry('x', 'Mixed') })
  for (const dns of ['mixed.example.com', 'MIXED.example.com.', 'Mixed.Example.Com']) {
    assert.equal(view.dnsHolder(dns)?.id, 'x')
  }
  assert.equal(view.dnsHolder('B.EXAMPLE.COM.')?.id, 'b')
})

test('a cluster does not stand in its own way, but in that of another', () => {
  const view = overlay(base(), { x: entry('x', 'new') })
  assert.equal(holder(view, 'new', 'x'), undefined)
  assert.equal(holder(view, 'new', 'b'), 'x')
  assert.equal(holder(view, 'b', 'b'), undefined)
  assert.equal(holder(view, 'b', 'x'), 'b')
  const doubled = overlay(base(), { x: entry('x', 'new'), y: entry('y', 'new'), z: entry('z', 'b') })
  assert.equal(holder(doubled, 'new', 'x'), 'y')
  assert.equal(holder(doubled, 'new', 'y'), 'x')
  assert.equal(holder(doubled, 'b', 'z'), 'b')
  assert.equal(holder(doubled, 'b', 'b'), 'z')
})

test('overlays lie on overlays', () => {
  const lower = overlay(base(), { a: entry('a'), d: undefined, f: entry('f', 'lower') })
  const upper = overlay(lower, { a: undefined, d: entry('d', 'upper'), e: entry('e') })
  assert.deepEqual(idsOf(upper), ['b', 'd', 'e', 'f'])
  assert.equal(upper.count('clusters'), 4)
  assert.equal(upper.get('clusters', 'f')?.document.cluster_name, 'lower')
  assert.deepEqual(
    ['a', 'd', 'upper', 'lower', 'f', 'e'].map((name) => holder(upper, name)),
    [undefined, undefined, 'd', 'f', undefined, 'e'],
  )
  assert.deepEqual(idsOf(lower), ['a', 'b', 'f'])
})

test('what lies beneath is never touched', () => {
  const state = base()
  overlay(state, { b: undefined, d: entry('d', 'new'), x: entry('x'), t: entry('t') })
  assert.deepEqual(idsOf(state), ['b', 'd', 'f'])
  assert.equal(state.get('clusters', 'd')?.document.cluster_name, 'd')
  assert.equal(state.tombstone('clusters', 't')?.id, 't')
  assert.deepEqual([holder(state, 'b'), holder(state, 'd'), holder(state, 'x')], ['b', 'd', undefined])
})

test('a listing that has begun copes with what is laid meanwhile', () => {
  const view = overlay(base())
  const seen: string[] = []
  for (const { id } of view.all('clusters')) {
    seen.push(id)
    if (id === 'b') view.lay('clusters', 'b', undefined)
    if (id === 'd') view.lay('clusters', 'd', entry('d', 'new'))
  }
  assert.deepEqual(seen, ['b', 'd', 'f'])
  assert.deepEqual(idsOf(view), ['d', 'f'])
})

test('the tombstones of a state are those that were deleted last, and not restored or forgotten since', () => {
  const state = base()
  const gone = () => [...state.tombstones('clusters')].map(({ id }) => id).sort()
  const write = (revision: number, ...writes: [id: string, after: Entry | undefined][]) =>
    state.apply(
      revision,
      writes.map(([id, after]) => ({ type: 'clusters', id, after })),
    )
  assert.deepEqual(gone(), ['t'])
  write(2, ['b', entry('b', 'b', { deleted: true })], ['d', entry('d', 'new')])
  assert.deepEqual(gone(), ['b', 't'])
  write(3, ['t', entry('t')], ['b', entry('b', 'other', { deleted: true })])
  assert.deepEqual(
    [...state.tombstones('clusters')].map(({ document, revision }) => [document.cluster_name, revision]),
    [['other', 3]],
  )
  write(4, ['b', undefined])
  assert.deepEqual(gone(), [])
  assert.deepEqual([...state.tombstones('namespaces')], [])
})

const IDS = ['a', 'b', 'c', 'd', 'e']
const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1)
const status = fc.constantFrom('live', 'deleted', 'none')
const lays = fc.array(fc.tuple(fc.constantFrom(...IDS), status, fc.constantFrom(...IDS)), { maxLength: 8 })

test('an overlay is what a plain collection would be after the same writes', () => {
  fc.assert(
    fc.property(fc.array(status, { minLength: 5, maxLength: 5 }), lays, (beneath, writes) => {
      const model = new Map<string, Entry>()
      IDS.forEach((id, i) => {
        if (beneath[i] !== 'none') model.set(id, entry(id, id, { deleted: beneath[i] === 'deleted' }))
      })
      const view = overlay(stateOf(...model.values()))
      for (const [id, how, name] of writes) {
        const laid = how === 'none' ? undefined : entry(id, name, { deleted: how === 'deleted' })
        view.lay('clusters', id, laid)
        if (laid) model.set(id, laid)
        else model.delete(id)
      }
      const live = IDS.flatMap((id) => model.get(id) ?? []).filter(({ deleted }) => !deleted)
      const dead = IDS.flatMap((id) => model.get(id) ?? []).filter(({ deleted }) => deleted)
      const content = ({ id, document }: Entry) => ({ id, document })
      assert.deepEqual([...view.all('clusters')].map(content), live.map(content))
      assert.equal(view.count('clusters'), live.length)
      assert.deepEqual([...view.tombstones('clusters')].map(content).sort(byId), dead.map(content))
      for (const id of IDS) {
        assert.deepEqual(view.get('clusters', id)?.document, live.find((one) => one.id === id)?.document)
        assert.deepEqual(
          view.tombstone('clusters', id)?.document,
          dead.find((one) => one.id === id)?.document,
        )
      }
      for (const name of IDS) {
        for (const except of [undefined, ...IDS]) {
          const holders = live.filter(({ id, document }) => id !== except && document.cluster_name === name)
          const found = holder(view, name, except)
          if (holders.length === 0) assert.equal(found, undefined)
          else
            assert.ok(
              holders.some(({ id }) => id === found),
              `${name} is held by ${found}`,
            )
        }
      }
    }),
    { numRuns: 1000 },
  )
})
