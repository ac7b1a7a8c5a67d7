// The names of a cluster's patches fit how the component is delivered there, and stay so when that changes.

import { getOrSet } from '../../base/get-or-set.ts'
import { equalJson, isObject, pointer } from '../../base/json.ts'
import { type Detail, invalid, MAX_FOUND, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import { readerOf } from '../delivery/resolve-field.ts'
import { type Draft, pointerTo, type Touched } from '../documents/draft.ts'
import type { View } from '../documents/view.ts'
import {
  type DeliveredType,
  type Document,
  findReference,
  patchesOf,
  type Types,
} from '../types/resource-type.ts'
import { clustersNamed, Remarks } from './remarks.ts'

/** Refuses wrong names that the write brings in; returns warnings about restored clusters that have wrong names. */
export function* checkPatchNames(types: Types, draft: Draft, before: View): Steps<Result<string[]>> {
  const type = types.patchable
  if (!type?.delivery.patchNames) return succeed([])
  const write = { types, type, before, draft }
  const details: Detail[] = []
  const remarks = new Remarks()
  for (const touched of draft.touched()) {
    yield
    if (touched.type === types.cluster.type.name) details.push(...checkCluster(write, touched, remarks))
    if (details.length > MAX_FOUND) break
  }
  details.push(...(yield* checkDefinitions(write)))
  return details.length > 0 ? invalid(details) : succeed(remarks.lines())
}

interface Write {
  readonly types: Types
  readonly type: DeliveredType
  readonly before: View
  readonly draft: Draft
}

function checkCluster(
  write: Write,
  { id, before: was, after: is, origins }: Touched,
  remarks: Remarks,
): Detail[] {
  if (!is || is.deleted) return []
  const { types, type, before, draft } = write
  const patches = is.document[types.cluster.patches]
  const isRestored = was?.deleted && equalJson(was.document, is.document)
  const old = was && !was.deleted ? was.document : undefined
  const details: Detail[] = []
  for (const component of isObject(patches) ? Object.keys(patches) : []) {
    if (old && isUntouched(write, old, is.document, component)) continue
    const found = wrongNames(write, draft, is.document, component)
    const [first] = found
    if (!first) continue
    if (isRestored) {
      // A deleted cluster cannot be corrected before it is restored.
      remarks.add(id, `the patches of ${type.singular} "${component}" do not fit it: ${described(first)}`)
      continue
    }
    const known = old ? wrongNames(write, before, old, component) : []
    for (const { path, message } of without(found, known).slice(0, MAX_FOUND + 1))
      details.push({ path: pointerTo(origins, path), message })
    if (details.length > MAX_FOUND) break
  }
  return details
}

/** A cheap check by identity: most changes of a cluster do not touch the component. */
function isUntouched({ types, type, draft }: Write, was: Document, is: Document, component: string): boolean {
  const { delivery, name } = type
  return (
    !draft.has(name, component) &&
    patchesOf(types.cluster, was, component) === patchesOf(types.cluster, is, component) &&
    (was[delivery.assignedBy] === is[delivery.assignedBy] ||
      findReference(was, delivery, component) === findReference(is, delivery, component))
  )
}

/** Everything wrong with a cluster's names for a component, with its place in the cluster. */
function wrongNames({ types, type }: Write, view: View, cluster: Document, component: string): Detail[] {
  const { name, delivery } = type
  const reference = findReference(cluster, delivery, component)
  const definition = reference && view.get(name, component)?.document
  if (!definition) return []
  const at = pointer(pointer('', types.cluster.patches), component)
  const values = patchesOf(types.cluster, cluster, component)
  const found = delivery.patchNames?.check(readerOf(delivery, definition, reference), values) ?? []
  return found.map(({ path, message }) => ({ path: at + path, message }))
}

/** Checks definitions that would be delivered in another way, against all clusters that patch them. */
function* checkDefinitions(write: Write): Steps<Detail[]> {
  const { types, before, draft } = write
  const changed = new Map(draft.touched().flatMap((touched) => changedField(write, touched) ?? []))
  const patching = new Map<string, { readonly clusters: string[]; readonly first: Detail }>()
  const clusters = types.cluster.type.name
  for (const { id: cluster, document } of changed.size > 0 ? draft.all(clusters) : []) {
    yield
    const patches = draft.has(clusters, cluster) ? undefined : document[types.cluster.patches]
    for (const id of isObject(patches) ? Object.keys(patches) : []) {
      const found = changed.has(id) ? wrongNames(write, draft, document, id) : []
      const [first] = found.length > 0 ? without(found, wrongNames(write, before, document, id)) : []
      if (first) getOrSet(patching, id, () => ({ clusters: [], first })).clusters.push(cluster)
    }
  }
  return [...patching].map(([id, { clusters: named, first }]) => ({
    path: changed.get(id) ?? '',
    message: `does not go with the patches of ${clustersNamed(named)}, whose ${described(first)}; change those patches first, or in the same write`,
  }))
}

/** Returns the place of the change after which a definition may take other names on some cluster. */
function changedField(
  { type }: Write,
  { type: name, id, before: was, after: is, origins }: Touched,
): [id: string, path: string][] | undefined {
  const { delivery } = type
  const { fields = [], formatOf } = delivery.patchNames ?? {}
  if (name !== type.name || !was || !is) return undefined
  const changed = fields.filter(
    (field) => !equalJson(was.document[field] ?? null, is.document[field] ?? null),
  )
  const [first] = changed
  if (first === undefined) return undefined
  const formats = [was, is].map(({ document }) => formatOf?.(readerOf(delivery, document, { id })))
  const isOther = formats[0] !== formats[1] || fields.some((field) => delivery.overrides.includes(field))
  return isOther ? [[id, pointerTo(origins, pointer('', first))]] : undefined
}

function without(details: readonly Detail[], known: readonly Detail[]): readonly Detail[] {
  const keys = new Set(known.map(described))
  return details.filter((detail) => !keys.has(described(detail)))
}

function described({ path, message }: Detail): string {
  return `${path} ${message}`
}
