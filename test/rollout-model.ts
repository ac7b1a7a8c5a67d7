// What rollouts come to, worked out another way than the service does: by the leaves of documents.
import assert from 'node:assert/strict'
import { isObject, type Json, type JsonObject, pointer } from '../src/base/json.ts'
import { renderInputs } from '../src/domain/delivery/render-inputs.ts'
import { type ServedView, servedTo } from '../src/domain/delivery/served-view.ts'
import { State } from '../src/domain/documents/state.ts'
import type { View } from '../src/domain/documents/view.ts'
import { HOLDS } from '../src/domain/rollouts/hold.ts'
import { ROLLOUT_PLANS } from '../src/domain/rollouts/rollout.ts'
import { StagedView } from '../src/domain/rollouts/staged-view.ts'
import { type Document, referencesOf } from '../src/domain/types/resource-type.ts'
import { builtInTypes } from './service.ts'

export const types = builtInTypes()
const CLUSTERS = types.cluster.type.name
/** What clusters are served is made of these. */
const TYPES = [CLUSTERS, ...types.delivered.map(({ name }) => name)]

/** Live documents by `type/id`. */
export type Documents = ReadonlyMap<string, Document>
type Leaves = Map<string, string>

/** A change of one document. */
interface ModelEdit {
  readonly before: Document | undefined
  readonly after: Document | undefined
  /** What its leaves become; undefined for those that go. */
  readonly leaves: ReadonlyMap<string, { readonly was: string | undefined; readonly is: string | undefined }>
}
export type ModelEdits = ReadonlyMap<string, ModelEdit>

export function documentsIn(view: View): Documents {
  const found = new Map<string, Document>()
  for (const type of TYPES)
    for (const { id, document } of view.all(type)) found.set(`${type}/${id}`, document)
  return found
}

/** Every leaf of a document by its place; items of lists of references are placed by their id. */
function leavesOf(value: Json, path = '', leaves: Leaves = new Map()): Leaves {
  if (Array.isArray(value) && value.every((item) => isObject(item) && 'id' in item))
    for (const item of value as JsonObject[]) leavesOf(item, pointer(path, String(item.id)), leaves)
  else if (isObject(value))
    for (const [name, part] of Object.entries(value)) leavesOf(part, pointer(path, name), leaves)
  else leaves.set(path, JSON.stringify(value))
  return leaves
}

export function editsOf(before: Documents, after: Documents): ModelEdits {
  const edits = new Map<string, ModelEdit>()
  for (const name of new Set([...before.keys(), ...after.keys()])) {
    const [was, is] = [before.get(name), after.get(name)]
    if (JSON.stringify(was) === JSON.stringify(is)) continue
    const [had, has] = [was ? leavesOf(was) : new Map(), is ? leavesOf(is) : new Map()]
    const places = [...new Set([...had.keys(), ...has.keys()])].filter(
      (place) => had.get(place) !== has.get(place),
    )
    const leaves = new Map(places.map((place) => [place, { was: had.get(place), is: has.get(place) }]))
    edits.set(name, { before: was, after: is, leaves })
  }
  return edits
}

/** Fails unless documents are others with the edits of some rollouts, and with nothing else. */
export function assertEdited(actual: Documents, base: Documents, rollouts: readonly ModelEdits[]): void {
  for (const name of new Set([
    ...actual.keys(),
    ...base.keys(),
    ...rollouts.flatMap((edits) => [...edits.keys()]),
  ])) {
    const edits = rollouts.flatMap((each) => each.get(name) ?? [])
    const [was, is] = [base.get(name), actual.get(name)]
    const [first, ...more] = edits
    if (!first) assert.equal(JSON.stringify(is), JSON.stringify(was), name)
    // To the byte where nothing else has changed, the order of lists included.
    else if (more.length === 0 && JSON.stringify(was) === JSON.stringify(first.before))
      assert.equal(JSON.stringify(is), JSON.stringify(first.after), name)
    else assert.deepEqual(is && sorted(leavesOf(is)), expectedLeaves(name, was, edits), name)
  }
}

function expectedLeaves(name: string, was: Document | undefined, edits: readonly ModelEdit[]): unknown {
  let leaves = was && leavesOf(was)
  for (const { before, after, leaves: changed } of edits) {
    if (!after) leaves = undefined
    else if (!before) leaves ??= leavesOf(after)
    else if (leaves)
      for (const [place, { is }] of changed)
        if (is === undefined) leaves.delete(place)
        else leaves.set(place, is)
  }
  // A cluster that was deleted meanwhile stays so.
  return leaves && (was || !name.startsWith(`${CLUSTERS}/`) ? sorted(leaves) : undefined)
}

function sorted(leaves: Leaves): [string, string][] {
  return [...leaves].sort(([a], [b]) => (a < b ? -1 : 1))
}

/** The documents that a cluster is served from. */
export function servedDocuments(view: View, cluster: string): Documents {
  return documentsIn(servedTo(types, view, cluster))
}

/** The answers that documents come to for a cluster, rendered without anything that was rendered before. */
export function answersFrom(documents: Documents, cluster: string): readonly string[] {
  const state = new State(types)
  for (const [name, document] of documents) {
    const [type = '', id = ''] = name.split('/')
    state.put(1, { type, id, after: { document: structuredClone(document), deleted: false, size: 1 } })
  }
  return answersIn(state as View as ServedView, cluster)
}

/** What a cluster gets from every endpoint. */
export function answersTo(view: View, cluster: string): readonly string[] {
  return answersIn(servedTo(types, view, cluster), cluster, view)
}

function answersIn(served: ServedView, cluster: string, view: View = served): readonly string[] {
  const entry = served.get(CLUSTERS, cluster) ?? view.tombstone(CLUSTERS, cluster)
  return types.delivered.map((type) => (entry ? renderInputs(served, types, type, entry).text : ''))
}

/** The inputs of some answers, in no order and without digests. */
export function inputsOf(answers: readonly string[]): unknown {
  return answers.map((text) => {
    const { inputs = [] } = text === '' ? {} : (JSON.parse(text) as { inputs?: JsonObject[] })
    return inputs
      .map(({ digest: _, answer_digest: __, ...input }) => input as JsonObject)
      .sort((a, b) => (String(a.id) < String(b.id) ? -1 : 1))
  })
}

/** Whether a definition or a cluster's own document is of those that decide about its answers. */
export function referencesIn(documents: Documents, cluster: string): string[] {
  const document = documents.get(`${CLUSTERS}/${cluster}`)
  if (!document) return []
  return types.delivered.flatMap(({ name, delivery }) =>
    referencesOf(document, delivery).map(({ id }) => `${name}/${id}`),
  )
}

/** A view with some edits laid over it for every cluster, and with nothing else than these. */
export function laid(view: View, overlays: ConstructorParameters<typeof StagedView>[1]): View {
  return new Everybody(view, overlays)
}

class Everybody extends StagedView {
  /** No rollouts and no holds. */
  override count(type: string): number {
    return type === ROLLOUT_PLANS || type === HOLDS ? 0 : super.count(type)
  }
}
