import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { builtInTypes } from '../../../test/service.ts'
import { isObject, type Json, type JsonObject, pointer } from '../../base/json.ts'
import type { Document } from '../types/resource-type.ts'
import { editsBetween, type FieldEdit, layFields, overlapOf } from './edits.ts'

const same = (document: JsonObject): JsonObject => document

/** `ROLLOUT_RUNS` multiplies them. */
const RUNS = { numRuns: 500 * Number(process.env.ROLLOUT_RUNS ?? 1) }
/** As from JSON: with Object's prototype. */
const PLAIN = { noNullPrototype: true }

const key = fc.constantFrom('x', 'y', 'a/b', 'a~b', '~1', '0', '7', '')
const id = fc.constantFrom('a', 'b', 'c', 'd/e', '~0')
const leaf: fc.Arbitrary<Json> = fc.constantFrom<Json>(null, '', 'v1', 'v2', 0, true, false)

const { value, list } = fc.letrec<{ value: Json; list: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    { weight: 3, arbitrary: leaf },
    fc.array(leaf, { maxLength: 3 }) as fc.Arbitrary<Json>,
    fc.dictionary(key, tie('value'), { ...PLAIN, maxKeys: 3 }) as fc.Arbitrary<Json>,
    tie('list'),
  ),
  list: fc
    .uniqueArray(fc.tuple(id, fc.dictionary(key, tie('value'), { ...PLAIN, maxKeys: 2 })), {
      selector: ([name]) => name,
      maxLength: 4,
    })
    .map((items) => items.map(([name, more]) => ({ id: name, ...more }))) as fc.Arbitrary<Json>,
}))
const document = fc
  .tuple(fc.dictionary(key, value, { ...PLAIN, maxKeys: 4 }), list)
  .map(([more, references]): Document => ({ id: 'd', ...more, list: references }))

test('edits turn one document into the other, to the byte', () => {
  fc.assert(
    fc.property(document, document, (before, after) => {
      const edits = editsBetween(before, after, same)
      assert.equal(JSON.stringify(layFields(before, edits, same)), JSON.stringify(after))
      assert.equal(edits.length === 0, JSON.stringify(before) === JSON.stringify(after))
    }),
    RUNS,
  )
})

const { type } = builtInTypes().cluster
const cluster = fc
  .record(
    {
      environment: fc.constantFrom('dev', 'prod'),
      labels: fc.dictionary(key, fc.constantFrom('1', '2'), PLAIN),
      deletion_protection: fc.boolean(),
      patches: fc.dictionary(id, fc.dictionary(key, fc.constantFrom('1', '2'), PLAIN), PLAIN),
      platform_components: fc.uniqueArray(
        fc.record(
          { id, enabled: fc.boolean(), oci_tag: fc.constantFrom('v1', 'v2') },
          { ...PLAIN, requiredKeys: ['id'] },
        ),
        { selector: ({ id: name }) => name },
      ),
      namespaces: fc.uniqueArray(fc.record({ id }, PLAIN), { selector: ({ id: name }) => name }),
    },
    { ...PLAIN, requiredKeys: [] },
  )
  .map(
    (more) =>
      type.normalise({ id: 'k', cluster_name: 'k', cluster_dns: 'k.example.com', ...more }) as Document,
  )

test('edits of clusters keep the order that their schema gives to fields', () => {
  fc.assert(
    fc.property(cluster, cluster, (before, after) => {
      const edits = editsBetween(before, after, (document) => type.normalise(document))
      const laid = layFields(before, edits, (document) => type.normalise(document))
      assert.equal(JSON.stringify(laid), JSON.stringify(after))
    }),
    RUNS,
  )
})

test('edits are data: stored and read again they do the same', () => {
  fc.assert(
    fc.property(document, document, (before, after) => {
      const stored = JSON.parse(JSON.stringify(editsBetween(before, after, same))) as FieldEdit[]
      assert.equal(JSON.stringify(layFields(before, stored, same)), JSON.stringify(after))
    }),
    RUNS,
  )
})

test('edits that are laid a second time change nothing', () => {
  fc.assert(
    fc.property(document, document, (before, after) => {
      const edits = editsBetween(before, after, same)
      const once = layFields(before, edits, same)
      assert.equal(layFields(once, edits, same), once)
    }),
    RUNS,
  )
})

test('no edit touches what another one of the same change touches', () => {
  fc.assert(
    fc.property(document, document, (before, after) => {
      const edits = editsBetween(before, after, same)
      for (const [i, edit] of edits.entries())
        assert.equal(overlapOf([edit], edits.toSpliced(i, 1)), undefined, JSON.stringify(edits))
    }),
    RUNS,
  )
})

/** Every leaf of a document by its place; items of lists of references are placed by their id. */
function leavesOf(document: Json, path = '', leaves = new Map<string, string>()): Map<string, string> {
  const isList = Array.isArray(document) && document.every((item) => isObject(item) && 'id' in item)
  if (isList)
    for (const item of document as JsonObject[]) leavesOf(item, pointer(path, String(item.id)), leaves)
  else if (isObject(document))
    for (const [name, part] of Object.entries(document)) leavesOf(part, pointer(path, name), leaves)
  else leaves.set(path, JSON.stringify(document))
  return leaves
}

/** What differs between two documents, as leaves; undefined for one that is missing. */
function differences(before: Json, after: Json): Map<string, string | undefined> {
  const [was, is] = [leavesOf(before), leavesOf(after)]
  const places = [...new Set([...was.keys(), ...is.keys()])].filter(
    (place) => was.get(place) !== is.get(place),
  )
  return new Map(places.map((place) => [place, is.get(place)]))
}

type Mutation = (document: Document) => Document

function asMap(part: Json | undefined): JsonObject {
  return isObject(part) ? part : {}
}

function withKey(map: JsonObject, name: string, part: Json | undefined): JsonObject {
  const { [name]: _, ...rest } = map
  return part === undefined
    ? rest
    : Object.hasOwn(map, name)
      ? { ...map, [name]: part }
      : { ...rest, [name]: part }
}

const changed = fc.option(fc.oneof(leaf, value), { nil: undefined })
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.tuple(key, changed).map(
    ([name, part]): Mutation =>
      (document) =>
        withKey(document, name, part) as Document,
  ),
  fc.tuple(key, key, changed).map(
    ([name, inner, part]): Mutation =>
      (document) =>
        withKey(document, name, withKey(asMap(document[name]), inner, part)) as Document,
  ),
  fc.tuple(id, key, changed).map(
    ([name, inner, part]): Mutation =>
      ({ list, ...document }) => ({
        ...document,
        list: (list as JsonObject[]).map((item) => (item.id === name ? withKey(item, inner, part) : item)),
      }),
  ),
  fc.tuple(id, key, leaf).map(
    ([name, inner, part]): Mutation =>
      ({ list, ...document }) => ({
        ...document,
        list: [...(list as JsonObject[]).filter((item) => item.id !== name), { id: name, [inner]: part }],
      }),
  ),
  id.map(
    (name): Mutation =>
      ({ list, ...document }) => ({
        ...document,
        list: (list as JsonObject[]).filter((item) => item.id !== name),
      }),
  ),
)
const mutations = fc.array(mutation, { minLength: 1, maxLength: 2 })

function mutated(document: Document, by: readonly Mutation[]): Document {
  return by.reduce((done, mutate) => mutate(done), document)
}

test('laid over a document that has changed elsewhere, exactly these changes and those are there', () => {
  let combined = 0
  fc.assert(
    fc.property(document, mutations, mutations, (before, byMe, byThem) => {
      const [one, other] = [mutated(before, byMe), mutated(before, byThem)]
      const [mine, theirs] = [editsBetween(before, one, same), editsBetween(before, other, same)]
      if (mine.length === 0 || theirs.length === 0 || overlapOf(mine, theirs) !== undefined) return
      combined++
      const expected = leavesOf(before)
      for (const [place, is] of [...differences(before, one), ...differences(before, other)])
        if (is === undefined) expected.delete(place)
        else expected.set(place, is)
      assert.deepEqual(sorted(leavesOf(layFields(other, mine, same))), sorted(expected))
      // In the other order it comes to the same, but for the order of keys and of what both have added.
      assert.deepEqual(sorted(leavesOf(layFields(one, theirs, same))), sorted(expected))
    }),
    { numRuns: 4 * RUNS.numRuns },
  )
  assert.ok(combined > RUNS.numRuns, `only ${combined} changes were combined`)
})

function sorted(leaves: ReadonlyMap<string, string>): [string, string][] {
  return [...leaves].sort(([a], [b]) => (a < b ? -1 : 1))
}

const BEFORE: Document = {
  id: 'd',
  map: { x: '1', 'a/b': { y: '1' } },
  tags: ['one', 'two'],
  list: [{ id: 'a' }, { id: 'b', on: true }, { id: 'c' }],
}

/** The places that edits name, for one change of a document. */
function placesOf(change: JsonObject): string[] {
  return editsBetween(BEFORE, { ...BEFORE, ...change }, same).map(({ path }) => path)
}

test('edits are as fine as they can be, for what they name is held while a rollout runs', () => {
  assert.deepEqual(placesOf({ map: { x: '2', 'a/b': { y: '1' } } }), ['/map/x'])
  assert.deepEqual(placesOf({ map: { x: '1', 'a/b': { y: '1', '~': '2' } } }), ['/map/a~1b/~0'])
  assert.deepEqual(placesOf({ map: { x: '1' } }), ['/map/a~1b'])
  assert.deepEqual(placesOf({ tags: ['one'] }), ['/tags'], 'a list of anything but references is one value')
  assert.deepEqual(placesOf({ list: [{ id: 'a' }, { id: 'b', on: false }, { id: 'c' }] }), ['/list/b/on'])
  assert.deepEqual(placesOf({ list: [{ id: 'a' }, { id: 'c' }] }), ['/list/b'])
  assert.deepEqual(placesOf({ list: [...(BEFORE.list as Json[]), { id: 'd' }] }), ['/list/d'])
  assert.deepEqual(
    placesOf({ list: (BEFORE.list as Json[]).toReversed() }),
    ['/list'],
    'the order is of the list',
  )
  assert.deepEqual(placesOf({ list: [{ id: 'd' }, ...(BEFORE.list as Json[])] }), ['/list'], 'so is a place')
  assert.deepEqual(placesOf({ 'new/field': null }), ['/new~1field'])
})

test('null is a value, and a missing field is none', () => {
  const bare: Document = { id: 'd' }
  const empty: Document = { id: 'd', x: null }
  assert.deepEqual(editsBetween(bare, empty, same), [{ path: '/x', after: null }])
  assert.deepEqual(editsBetween(empty, bare, same), [{ path: '/x', before: null }])
})

test('a field that was given another value meanwhile keeps it', () => {
  const edits = editsBetween({ id: 'd', x: '1' }, { id: 'd', x: '2' }, same)
  assert.deepEqual(layFields({ id: 'd', x: '3' }, edits, same), { id: 'd', x: '3' })
  assert.deepEqual(layFields({ id: 'd' }, edits, same), { id: 'd' }, 'and stays away where it was removed')
  const item = editsBetween(
    BEFORE,
    { ...BEFORE, list: [{ id: 'a' }, { id: 'b', on: false }, { id: 'c' }] },
    same,
  )
  assert.deepEqual(layFields({ id: 'd', list: [{ id: 'a' }] }, item, same), { id: 'd', list: [{ id: 'a' }] })
})

test('what is added to a list goes to its end, whatever is there by then', () => {
  const edits = editsBetween({ id: 'd', list: [] }, { id: 'd', list: [{ id: 'a' }] }, same)
  assert.deepEqual(layFields({ id: 'd', list: [{ id: 'b' }] }, edits, same).list, [{ id: 'b' }, { id: 'a' }])
})

test('two changes overlap where one touches the same field or a part of it', () => {
  const at = (...paths: string[]): FieldEdit[] => paths.map((path) => ({ path, after: '1' }))
  assert.equal(overlapOf(at('/a'), at('/b')), undefined)
  assert.equal(overlapOf(at('/a'), at('/ab')), undefined, 'the beginning of a name is no part of it')
  assert.equal(overlapOf(at('/x', '/a'), at('/a')), '/a')
  assert.equal(overlapOf(at('/a/b'), at('/a')), '/a/b')
  assert.equal(overlapOf(at('/a'), at('/a/b')), '/a')
  assert.equal(overlapOf(at(''), at('/a/b')), '', 'the whole document')
})
