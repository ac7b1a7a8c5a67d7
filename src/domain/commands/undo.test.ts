import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { builtInTypes } from '../../../test/service.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { Problem } from '../../base/problem.ts'
import { finish } from '../../base/steps.ts'
import { State } from '../documents/state.ts'
import type { DocumentVersion, View } from '../documents/view.ts'
import type { Command, Undo } from './command.ts'
import { decide } from './decide.ts'
import { type UndoConflict, undo } from './undo.ts'

/** What taking the change from `before` to `after` out of `current` leaves; a conflict is a failure. */
function undone(before: Json, after: Json, current: Json): Json | undefined {
  const conflicts: UndoConflict[] = []
  const result = undo(before, after, current, conflicts)
  assert.deepEqual(conflicts, [])
  return result
}

function conflictsOf(before: Json, after: Json, current: Json): UndoConflict[] {
  const conflicts: UndoConflict[] = []
  undo(before, after, current, conflicts)
  return conflicts
}

/** References by their ids alone: `a b` is [{id: a}, {id: b}]. */
function list(ids: string): { id: string }[] {
  return ids.split(' ').flatMap((id) => (id === '' ? [] : [{ id }]))
}

test('fields that the change set go back, and what others have set since stays', () => {
  const before = { name: 'x', size: 1, color: 'red' }
  const after = { name: 'y', size: 2, color: 'red' }
  assert.deepEqual(undone(before, after, { name: 'y', size: 2, color: 'blue', new: true }), {
    name: 'x',
    size: 1,
    color: 'blue',
    new: true,
  })
})

test('a field that the change added goes, and one that it removed comes back', () => {
  assert.deepEqual(undone({ a: 1 }, { a: 1, b: 2 }, { a: 5, b: 2 }), { a: 5 })
  assert.deepEqual(undone({ a: 1, b: 2 }, { a: 1 }, { a: 5 }), { a: 5, b: 2 })
})

test('a field that was changed again is a conflict that says what it was left as and what it is', () => {
  assert.deepEqual(conflictsOf({ a: 1, b: 1 }, { a: 2, b: 2 }, { a: 3, b: 2 }), [
    { path: '/a', left: 2, current: 3 },
  ])
  assert.deepEqual(conflictsOf({ a: 1, b: 1 }, { a: 2, b: 1 }, { b: 1 }), [
    { path: '/a', left: 2, current: undefined },
  ])
  assert.deepEqual(conflictsOf({ a: 1, b: 1 }, { b: 1 }, { a: 3, b: 1 }), [
    { path: '/a', left: undefined, current: 3 },
  ])
  assert.deepEqual(conflictsOf({ a: 1 }, { a: 2, b: 2 }, { a: 3, b: 3 }), [
    { path: '/a', left: 2, current: 3 },
    { path: '/b', left: 2, current: 3 },
  ])
})

test('a conflict leaves its field as it is', () => {
  assert.deepEqual(undo({ a: 1, b: 1 }, { a: 2, b: 2 }, { a: 3, b: 2 }, []), { a: 3, b: 1 })
})

test('a field that is back already is fine, be it set, added or removed', () => {
  assert.deepEqual(undone({ a: 1, b: 1 }, { a: 2, b: 2 }, { a: 1, b: 2 }), { a: 1, b: 1 })
  assert.deepEqual(undone({ b: 1 }, { a: 2, b: 2 }, { b: 2 }), { b: 1 })
  assert.deepEqual(undone({ a: 1, b: 1 }, { b: 2 }, { a: 1, b: 2 }), { a: 1, b: 1 })
})

test('a change that is undone already, as a whole, is fine', () => {
  const [before, after] = [
    { a: 1, list: list('x y') },
    { a: 2, list: list('y z') },
  ]
  assert.deepEqual(undone(before, after, before), before)
})

test('the same value in another order of keys still holds', () => {
  const [before, after] = [{ labels: {} }, { labels: { a: '1', b: '2' } }]
  assert.deepEqual(undone(before, after, { labels: { b: '2', a: '1' }, more: true }), {
    labels: {},
    more: true,
  })
})

test('objects are undone field by field, however deep, with the path of each conflict', () => {
  const before = { patches: { a: { replicas: '1', color: 'red' }, b: { x: '1' } } }
  const after = { patches: { a: { replicas: '2', color: 'blue' }, b: { x: '1' } } }
  const grown = { patches: { a: { replicas: '2', color: 'blue', size: 'm' }, b: { x: '2' } } }
  assert.deepEqual(undone(before, after, grown), {
    patches: { a: { replicas: '1', color: 'red', size: 'm' }, b: { x: '2' } },
  })
  const again = { patches: { a: { replicas: '3', color: 'blue' }, b: { x: '2' } } }
  assert.deepEqual(conflictsOf(before, after, again), [
    { path: '/patches/a/replicas', left: '2', current: '3' },
  ])
})

test('the path of a conflict is a JSON pointer, whatever the keys', () => {
  const labels = (value: string) => ({ labels: { 'example.com/team': value, 'a~b': value, toString: value } })
  assert.deepEqual(
    conflictsOf(labels('1'), labels('2'), labels('3')).map(({ path }) => path),
    ['/labels/example.com~1team', '/labels/a~0b', '/labels/toString'],
  )
})

test('keys that are named like members of every object are fields as any others', () => {
  const before = { labels: { a: '1' } }
  const after = { labels: { a: '1', toString: 'x', valueOf: 'y' } }
  const current = { labels: { a: '2', toString: 'x', valueOf: 'y' } }
  assert.deepEqual(undone(before, after, current), { labels: { a: '2' } })
})

test('a list of anything but references is one value', () => {
  const document = (...depends_on: string[]) => ({ depends_on, tag: 'v1' })
  assert.deepEqual(undone(document('a'), document('a', 'b'), { ...document('a', 'b'), tag: 'v2' }), {
    depends_on: ['a'],
    tag: 'v2',
  })
  assert.deepEqual(conflictsOf(document('a'), document('a', 'b'), document('a', 'b', 'c')), [
    { path: '/depends_on', left: ['a', 'b'], current: ['a', 'b', 'c'] },
  ])
  const subjects = (...names: string[]) => ({ subjects: names.map((name) => ({ kind: 'Group', name })) })
  assert.deepEqual(
    conflictsOf(subjects('a'), subjects('b'), subjects('b', 'c')).map(({ path }) => path),
    ['/subjects'],
  )
})

test('a value that became another kind of value is a conflict', () => {
  assert.deepEqual(conflictsOf({ a: { x: 1 } }, { a: { x: 2 } }, { a: 'text' }), [
    { path: '/a', left: { x: 2 }, current: 'text' },
  ])
  assert.deepEqual(conflictsOf({ a: list('x') }, { a: list('x y') }, { a: ['x', 'y', 'z'] }), [
    { path: '/a', left: list('x y'), current: ['x', 'y', 'z'] },
  ])
})

test('references that the change added go, and what others have added stays', () => {
  assert.deepEqual(undone(list('a'), list('a b c'), list('x a b y c')), list('x a y'))
  assert.deepEqual(undone(list(''), list('a b'), list('a b c')), list('c'))
})

test('references that the change removed come back to their place', () => {
  assert.deepEqual(undone(list('a b c'), list('a c'), list('a c x')), list('a b c x'))
  assert.deepEqual(undone(list('a b c'), list('b c'), list('x b c')), list('x a b c'))
  assert.deepEqual(undone(list('a b c d'), list('a d'), list('a d x')), list('a b c d x'))
})

test('a reference that comes back stands before those of its followers that are still there, or else last', () => {
  assert.deepEqual(undone(list('a b c d'), list('a c d'), list('a d')), list('a b d'))
  assert.deepEqual(undone(list('a b c'), list('a c'), list('a x')), list('a x b'))
})

test('a reference comes back with all that it said', () => {
  const before = [{ id: 'a', oci_tag: 'v2', enabled: false }, { id: 'b' }]
  assert.deepEqual(undone(before, list('b'), list('b c')), [...before, { id: 'c' }])
})

test('references that others removed since stay away, and so do those that are gone again', () => {
  assert.deepEqual(undone(list('a b c'), list('a b c d'), list('a c d')), list('a c'))
  assert.deepEqual(undone(list('a b'), list('a b c'), list('b')), list('b'))
})

test('a reference that is back already is not added twice', () => {
  assert.deepEqual(undone(list('a b c'), list('a'), list('a b x')), list('a b x c'))
})

test('the fields of a reference are undone one by one, wherever it stands now', () => {
  const before = [
    { id: 'a', tag: 'v1' },
    { id: 'b', tag: 'v1' },
  ]
  const after = [
    { id: 'a', tag: 'v2' },
    { id: 'b', tag: 'v1' },
  ]
  const current = [{ id: 'x' }, { id: 'b', tag: 'v9' }, { id: 'a', tag: 'v2', enabled: false }]
  assert.deepEqual(undone(before, after, current), [
    { id: 'x' },
    { id: 'b', tag: 'v9' },
    { id: 'a', tag: 'v1', enabled: false },
  ])
})

test('a reference that was changed again is a conflict at its place of now', () => {
  const before = { refs: [{ id: 'a', tag: 'v1' }] }
  const after = { refs: [{ id: 'a', tag: 'v2' }] }
  assert.deepEqual(conflictsOf(before, after, { refs: [{ id: 'x' }, { id: 'a', tag: 'v3' }] }), [
    { path: '/refs/1/tag', left: 'v2', current: 'v3' },
  ])
})

test('a reference that the change added and others changed is a conflict', () => {
  assert.deepEqual(
    conflictsOf({ refs: list('a') }, { refs: list('a b') }, { refs: [{ id: 'b', tag: 'v2' }] }),
    [{ path: '/refs/0', left: { id: 'b' }, current: { id: 'b', tag: 'v2' } }],
  )
})

test('a reference that the change removed and others added otherwise is a conflict', () => {
  assert.deepEqual(
    conflictsOf({ refs: list('a b') }, { refs: list('a') }, { refs: [{ id: 'a' }, { id: 'b', tag: 'v2' }] }),
    [{ path: '/refs/1', left: undefined, current: { id: 'b', tag: 'v2' } }],
  )
})

test('a reference that the change edited and others removed is a conflict', () => {
  const before = { refs: [{ id: 'a', tag: 'v1' }, { id: 'b' }] }
  const after = { refs: [{ id: 'a', tag: 'v2' }, { id: 'b' }] }
  assert.deepEqual(conflictsOf(before, after, { refs: list('b') }), [
    { path: '/refs/a', left: { id: 'a', tag: 'v2' }, current: undefined },
  ])
})

test('what the change moved goes back to its place, around what others have added', () => {
  assert.deepEqual(undone(list('a b c'), list('c a b'), list('c a b x')), list('a b c x'))
  assert.deepEqual(undone(list('a b c'), list('c a b'), list('x c y a b')), list('x a y b c'))
})

test('what the change moved goes back also when others have removed or edited some of it', () => {
  assert.deepEqual(undone(list('a b c d'), list('d c b a'), list('d b a')), list('a b d'))
  const edited = [{ id: 'c' }, { id: 'a', tag: 'v2' }, { id: 'b' }]
  assert.deepEqual(undone(list('a b c'), list('c a b'), edited), [
    { id: 'a', tag: 'v2' },
    { id: 'b' },
    { id: 'c' },
  ])
})

test('what was moved back already stays, and what others moved is left alone', () => {
  assert.deepEqual(undone(list('a b c'), list('c b a'), list('a b c x')), list('a b c x'))
  assert.deepEqual(undone(list('a b c'), list('a b c d'), list('c d b a')), list('c b a'))
})

test('what was moved again is a conflict over the order', () => {
  assert.deepEqual(conflictsOf({ refs: list('a b c') }, { refs: list('c a b') }, { refs: list('b c a') }), [
    { path: '/refs', left: ['c', 'a', 'b'], current: ['b', 'c', 'a'] },
  ])
})

const leaf = fc.jsonValue({ maxDepth: 2, noUnicodeString: true }).map((value) => withoutProto(value as Json))

/** No document may hold such a key. */
function withoutProto(value: Json): Json {
  return JSON.parse(JSON.stringify(value).replaceAll('__proto__', 'proto'))
}

const anything = fc.oneof(
  leaf,
  fc.dictionary(fc.constantFrom('a', 'b', 'c'), leaf),
  fc.uniqueArray(fc.record({ id: fc.constantFrom('a', 'b', 'c'), tag: fc.constantFrom(1, 2) }), {
    selector: ({ id }) => id,
  }),
)

test('undoing the last change gives what was before, and undoing it twice gives no more', () => {
  fc.assert(
    fc.property(anything, anything, (before, after) => {
      assert.deepEqual(undone(before, after, after), before)
      assert.deepEqual(undone(before, after, before), before)
    }),
  )
})

const GROUPS = ['g', 'h']
const KEYS = ['a', 'b', 'toString', 'x/y']
const places = fc
  .shuffledSubarray(GROUPS.flatMap((group) => KEYS.map((key) => [group, key] as const)))
  .chain((all) => fc.nat(all.length).map((cut) => [all.slice(0, cut), all.slice(cut)] as const))
const group = fc.dictionary(fc.constantFrom(...KEYS), leaf, { noNullPrototype: true })
const groups = fc.record({ g: group, h: group }, { noNullPrototype: true })
type Groups = Readonly<Record<string, JsonObject>>
type Edit = readonly [place: readonly [string, string], value: Json | undefined]

function edited(document: Groups, edits: readonly Edit[]): Groups {
  const copy: Record<string, Record<string, Json>> = structuredClone(document) as never
  for (const [[group, key], value] of edits) {
    const fields = copy[group] ?? assert.fail()
    if (value === undefined) delete fields[key]
    else fields[key] = value
  }
  return copy
}

test('undoing a change of some fields keeps every change of others, without a conflict', () => {
  const edits = places.chain(([ours, theirs]) => {
    const values = (of: readonly (readonly [string, string])[]) =>
      fc.tuple(...of.map((place) => fc.tuple(fc.constant(place), fc.option(leaf, { nil: undefined }))))
    return fc.tuple(values(ours), values(theirs))
  })
  fc.assert(
    fc.property(groups, edits, (before, [ours, theirs]) => {
      const after = edited(before, ours)
      assert.deepEqual(undone(before, after, edited(after, theirs)), edited(before, theirs))
    }),
    { numRuns: 300 },
  )
})

type Item = { readonly id: string; readonly tag: number }
const items = fc.uniqueArray(fc.record({ id: fc.constantFrom(...'abcdef'), tag: fc.constant(0) }), {
  selector: ({ id }) => id,
})
/** What is done to an item: nothing, another tag, or removal. An item that is not there is added by a new tag. */
const deed = fc.constantFrom('keep', 'edit', 'remove')
const deeds = fc.record({ a: deed, b: deed, c: deed, d: deed, e: deed, f: deed })

function done(to: readonly Item[], what: Record<string, string>, whose: (id: string) => boolean): Item[] {
  const kept = to.flatMap((item) => {
    if (!whose(item.id) || what[item.id] === 'keep') return [item]
    return what[item.id] === 'remove' ? [] : [{ ...item, tag: item.tag + 1 }]
  })
  const added = Object.keys(what).filter(
    (id) => whose(id) && what[id] === 'edit' && !to.some((item) => item.id === id),
  )
  return [...kept, ...added.map((id) => ({ id, tag: 7 }))]
}

test('undoing a change of some references keeps every change of others, and the order', () => {
  fc.assert(
    fc.property(items, deeds, fc.subarray([...'abcdef']), (before, what, ours) => {
      const isOurs = (id: string) => ours.includes(id)
      const isTheirs = (id: string) => !ours.includes(id)
      const after = done(before, what, isOurs)
      const result = undone(before, after, done(after, what, isTheirs)) as Item[]
      const expected = done(before, what, isTheirs)
      const byId = (a: Item, b: Item) => (a.id < b.id ? -1 : 1)
      assert.deepEqual(result.toSorted(byId), expected.toSorted(byId))
      const old = ({ id }: Item) => before.some((item) => item.id === id)
      assert.deepEqual(result.filter(old), expected.filter(old))
    }),
    { numRuns: 500 },
  )
})

test('undoing a change of the order alone brings the order back, whatever others did to some of it', () => {
  fc.assert(
    fc.property(
      items.chain((before) => fc.tuple(fc.constant(before), reordered(before))),
      deeds,
      ([before, after], theirs) => {
        const current = done(after, theirs, () => true)
        assert.deepEqual(
          undone(before, after, current),
          done(before, theirs, () => true),
        )
      },
    ),
    { numRuns: 300 },
  )
})

function reordered(of: readonly Item[]): fc.Arbitrary<Item[]> {
  return fc.shuffledSubarray([...of], { minLength: of.length })
}

const types = builtInTypes()
const document = { id: 'one', cluster_name: 'one', cluster_dns: 'one.example.com', environment: 'dev' }
const create: Command = { op: 'create', type: 'clusters', document, path: '' }
const remove: Command = { op: 'delete', type: 'clusters', id: 'one', cascade: false, purge: false, path: '' }
const purge: Command = { ...remove, purge: true }
const restore: Command = { op: 'restore', type: 'clusters', id: 'one', path: '' }

function rename(cluster_name: string): Command {
  return { op: 'patch', type: 'clusters', id: 'one', patch: { cluster_name }, format: 'merge', path: '' }
}

/** A state after these commands, each a revision of its own, and how the cluster stood after each. */
function history(...commands: Command[]): { state: State; stood: (DocumentVersion | undefined)[] } {
  const state = new State(types)
  const stood: (DocumentVersion | undefined)[] = [undefined]
  for (const command of commands) {
    const decided = finish(decide(types, state, [command]))
    assert.ok(decided.ok, JSON.stringify(decided))
    const changes = decided.value.changes.map(({ type, id, after }) => ({
      type,
      id,
      after: after && { document: after.document, deleted: after.deleted, size: after.json.length },
    }))
    state.apply(state.revision + 1, changes)
    stood.push(standing(state))
  }
  return { state, stood }
}

function standing(view: View): DocumentVersion | undefined {
  const entry = view.get('clusters', 'one') ?? view.tombstone('clusters', 'one')
  return entry && { document: entry.document, deleted: entry.deleted }
}

/** Undoes one of these revisions after all of them. */
function undoRevision(revision: number, ...commands: Command[]) {
  const { state, stood } = history(...commands)
  const command: Undo = {
    op: 'undo',
    type: 'clusters',
    id: 'one',
    revision,
    before: stood[revision - 1],
    after: stood[revision],
    path: '/clusters/one',
  }
  return { decided: finish(decide(types, state, [command])), stood }
}

function problemOf(revision: number, ...commands: Command[]): Problem {
  const { decided } = undoRevision(revision, ...commands)
  assert.ok(!decided.ok)
  assert.equal(decided.problem.code, 'conflict')
  return decided.problem
}

test('whatever a change moved and removed comes back to its place, before what others have added', () => {
  assert.deepEqual(undone(list('a b c d'), list('d a c'), list('d a c e')), list('a b c d e'))
  fc.assert(
    fc.property(
      items.chain((before) => fc.tuple(fc.constant(before), fc.shuffledSubarray(before))),
      ([before, after]) => {
        const added = { id: 'x' }
        const result = undone(before, after, [...after, added]) as { id: string }[]
        assert.deepEqual(
          result.filter(({ id }) => id !== 'x'),
          before,
        )
      },
    ),
  )
})

test('undoing a creation, a deletion, a restoration or a purge brings back what stood before', () => {
  for (const commands of [
    [create],
    [create, remove],
    [create, remove, restore],
    [create, remove, purge],
    [create, purge],
    [create, rename('two')],
  ]) {
    const { decided, stood } = undoRevision(commands.length, ...commands)
    assert.ok(decided.ok, JSON.stringify(decided))
    assert.deepEqual(standing(decided.value.after), stood[commands.length - 1])
  }
})

test('undoing what is undone already changes nothing', () => {
  for (const [revision, ...commands] of [
    [2, create, remove, restore],
    [3, create, remove, restore, remove],
    [2, create, rename('two'), rename('one')],
    [1, create, purge],
  ] as const) {
    const { decided } = undoRevision(revision, ...commands)
    assert.ok(decided.ok, JSON.stringify(decided))
    assert.deepEqual(decided.value.changes, [])
  }
})

test('a document that came or went since is a conflict as a whole', () => {
  for (const [revision, message, ...commands] of [
    [2, 'is gone since revision 2', create, rename('two'), remove],
    [2, 'is gone since revision 2', create, rename('two'), purge],
    [2, 'is gone since revision 2', create, remove, purge],
    [1, 'is gone since revision 1', create, remove],
  ] as const) {
    const { details } = problemOf(revision, ...commands)
    assert.deepEqual(details, [{ path: '/clusters/one', message }])
  }
})

test('a conflict of fields names the document, the field, both values and the revision', () => {
  const { message, details } = problemOf(2, create, rename('two'), rename('three'))
  assert.match(message, /^cluster "one" has been changed again since revision 2: undo that first/)
  assert.deepEqual(details, [
    { path: '/clusters/one/cluster_name', message: 'is "three" now, not "two" as revision 2 left it' },
  ])
})

test('a creation is not undone over what others have made of the document', () => {
  const { details } = problemOf(1, create, rename('two'))
  assert.deepEqual(
    details?.map(({ path }) => path),
    ['/clusters/one/cluster_name'],
  )
})
