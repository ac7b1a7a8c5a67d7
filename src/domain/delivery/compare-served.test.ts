import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { builtInTypes } from '../../../test/service.ts'
import { withoutDigests } from '../../../test/without-digests.ts'
import { getOrSet } from '../../base/get-or-set.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { Overlay } from '../documents/overlay.ts'
import { State } from '../documents/state.ts'
import type { Entry, View } from '../documents/view.ts'
import { type Document, referencesOf } from '../types/resource-type.ts'
import { Comparison } from './compare-served.ts'
import { renderInputs } from './render-inputs.ts'
import { type ServedTo, type ServedView, servedTo } from './served-view.ts'

const types = builtInTypes()

function component(id: string, more: JsonObject = {}): Document {
  const source = { component_path: `core/${id}`, component_version: '1', oci_url: 'oci://x', oci_tag: 'v1' }
  return { id, ...source, cluster_env_enabled: false, depends_on: [], ...more }
}

function cluster(id: string, references: readonly JsonObject[]): Document {
  const own = { id, cluster_name: id, cluster_dns: `${id}.example.com`, environment: 'dev' }
  return {
    ...own,
    labels: {},
    patches: {},
    namespaces: [],
    platform_components: references,
    rolebindings: [],
  }
}

function stateOf(components: readonly Document[], clusters: readonly Document[]): State {
  const state = new State(types)
  const put = (type: string) => (document: Document) =>
    state.put(1, { type, id: document.id, after: { document, deleted: false, size: 1 } })
  components.forEach(put('platform_components'))
  clusters.forEach(put('clusters'))
  return state
}

type Edits = readonly {
  readonly type: string
  readonly id: string
  readonly document: Document | undefined
}[]

function edit(document: Document, type = 'platform_components'): Edits[number] {
  return { type, id: document.id, document }
}

function overlay(base: View, edits: Edits): Overlay {
  const view = new Overlay(base, types.cluster, base.revision + 1)
  for (const { type, id, document } of edits) {
    const entry: Entry | undefined = document && { id, document, revision: 2, deleted: false, size: 1 }
    view.lay(type, id, entry)
  }
  return view
}

/** Serves some clusters from a view with edits laid over it, whatever the view: those of one wave from the same one. */
function serveWaves(waves: readonly Edits[], waveOf: (cluster: string, view: View) => number): ServedTo {
  const known = new Map<View, Map<number, ServedView>>()
  return (_types, view, id) => {
    const wave = waveOf(id, view)
    const edits = waves[wave]
    if (!edits) return servedTo(types, view, id)
    const byWave = getOrSet(known, view, () => new Map<number, ServedView>())
    return getOrSet(byWave, wave, () => servedTo(types, overlay(view, edits), id))
  }
}

/** The changed fields of a cluster's components, with their values. */
function changesOf(comparison: Comparison, id: string): string[] {
  return comparison
    .compare({ id: id })
    .flatMap(({ changed }) =>
      changed.flatMap(({ id: input, fields }) =>
        fields.map(({ path, before, after }) => `${input}${path} ${before} ${after}`),
      ),
    )
}

test('clusters that share a reference but are served from different views are each compared by their own', () => {
  const plain = [{ id: 'web', enabled: true }]
  const state = stateOf(
    [component('web')],
    ['a', 'b', 'c', 'd'].map((id) => cluster(id, plain)),
  )
  const [first, ...others] = [...state.all('clusters')].map(({ document }) => {
    const [type] = types.delivered.filter(({ name }) => name === 'platform_components')
    return type && referencesOf(document, type.delivery)[0]
  })
  assert.ok(first && others.every((reference) => reference === first), 'the clusters share no reference')
  const after = overlay(state, [edit(component('web', { oci_tag: 'v2' }))])
  const wave = [edit(component('web', { oci_tag: 'v9' }))]
  // The wave of b is open before and after; that of c opens, that of d closes.
  const served = serveWaves([wave], (id, view) =>
    id === 'b' || (id === 'c' && view === after) || (id === 'd' && view === state) ? 0 : -1,
  )
  for (const order of ['abcd', 'dcba', 'bacd', 'cabd']) {
    const comparison = new Comparison(types, state, after, served)
    const found = Object.fromEntries([...order].map((id) => [id, changesOf(comparison, id)]))
    assert.deepEqual(
      found,
      {
        a: ['web/source/oci_tag v1 v2'],
        b: [],
        c: ['web/source/oci_tag v1 v9'],
        d: ['web/source/oci_tag v9 v2'],
      },
      order,
    )
  }
})

test('a cluster whose own document is another in the view that it is served from is compared by that one', () => {
  const state = stateOf([component('web'), component('db')], [cluster('a', [{ id: 'web', enabled: true }])])
  const after = overlay(state, [])
  const assigned = cluster('a', [
    { id: 'web', enabled: false },
    { id: 'db', enabled: true },
  ])
  const served = serveWaves([[edit(assigned, 'clusters')]], (_id, view) => (view === after ? 0 : -1))
  const [difference, ...more] = new Comparison(types, state, after, served).compare({ id: 'a' })
  assert.deepEqual(more, [])
  const { added, removed, changed, disabled } = difference ?? assert.fail('nothing differs')
  assert.deepEqual(
    { added, removed, disabled, changed: changed.map(({ id }) => id) },
    { added: ['db'], removed: [], disabled: ['web'], changed: ['web'] },
  )
})

const ID = fc.constantFrom('a', 'b', 'c')
const definition = fc
  .tuple(ID, fc.constantFrom('v1', 'v2'), fc.option(ID, { nil: undefined }))
  .map(([id, oci_tag, other]) =>
    component(id, { oci_tag, depends_on: other === undefined || other === id ? [] : [other] }),
  )
const edits: fc.Arbitrary<Edits> = fc.uniqueArray(
  fc.oneof(
    definition.map((document) => edit(document)),
    ID.map((id) => ({ type: 'platform_components', id, document: undefined })),
  ),
  { selector: ({ id }) => id, maxLength: 3 },
)
const references = fc.uniqueArray(fc.record({ id: ID, enabled: fc.boolean() }, { noNullPrototype: true }), {
  selector: ({ id }) => id,
})

function inputsOf(view: ServedView, id: string): Map<string, Json> {
  const entry = view.get('clusters', id) ?? assert.fail('no cluster')
  return new Map(
    types.delivered.flatMap((type) => {
      const { inputs } = JSON.parse(withoutDigests(renderInputs(view, types, type, entry).text))
      return inputs.map((input: JsonObject & { id: string }) => [input.id, input])
    }),
  )
}

test('whatever views clusters are served from, the comparison is the difference of what is rendered from them', () => {
  let differing = 0
  fc.assert(
    fc.property(
      fc.array(references, { minLength: 3, maxLength: 3 }),
      edits,
      fc.tuple(edits, edits),
      fc.array(fc.tuple(fc.integer({ min: -1, max: 1 }), fc.integer({ min: -1, max: 1 })), {
        minLength: 3,
        maxLength: 3,
      }),
      (lists, laid, waves, open) => {
        const ids = lists.map((_, i) => `c${i}`)
        const state = stateOf(
          ['a', 'b', 'c'].map((id) => component(id)),
          lists.map((list, i) => cluster(`c${i}`, list)),
        )
        const after = overlay(state, laid)
        const served = serveWaves(waves, (id, view) => open[ids.indexOf(id)]?.[view === state ? 0 : 1] ?? -1)
        const comparison = new Comparison(types, state, after, served)
        for (const id of ids) {
          const [had, has] = [inputsOf(served(types, state, id), id), inputsOf(served(types, after, id), id)]
          const expected = ['a', 'b', 'c'].flatMap((input) => {
            if (isDeepStrictEqual(had.get(input), has.get(input))) return []
            return `${had.has(input) ? (has.has(input) ? '~' : '-') : '+'}${input}`
          })
          const found = comparison
            .compare({ id: id })
            .flatMap(({ added, removed, changed }) => [
              ...added.map((input) => `+${input}`),
              ...removed.map((input) => `-${input}`),
              ...changed.map((input) => `~${input.id}`),
            ])
          assert.deepEqual(
            found.sort((x, y) => ((x[1] ?? '') < (y[1] ?? '') ? -1 : 1)),
            expected,
          )
          differing += expected.length
        }
      },
    ),
    { numRuns: 500 },
  )
  assert.ok(differing > 500, `only ${differing} inputs differed`)
})
