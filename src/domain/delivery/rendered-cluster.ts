// What answers repeat of a cluster, and what is kept of its answers: it hangs on the version of the cluster.
import { type Digest, digestOf } from '../../base/digest.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Entry } from '../documents/view.ts'
import {
  type ClusterType,
  type Document,
  patchesOf,
  referencesOf,
  type Types,
} from '../types/resource-type.ts'

/** A part of an answer, and its digest. */
export interface Fragment {
  readonly text: string
  readonly digest: Digest
}

/** What entries of clusters keep in `rendered`. */
interface RenderedCluster {
  /** Undefined while an answer is kept, which mostly means that nothing is rendered. */
  values: ClusterValues | undefined
  /** By the place of the type. */
  readonly answers: (object | undefined)[]
}

/** The identity of a cluster, and its patches in the order of its references. */
interface ClusterValues {
  readonly identity: Fragment
  readonly patches: readonly Fragment[]
}

export const NO_VALUES = fragment('{}')

export function renderCluster(types: Types, cluster: Entry): ClusterValues {
  cluster.rendered ??= { values: undefined, answers: new Array(types.delivered.length).fill(undefined) }
  const rendered = cluster.rendered as RenderedCluster
  rendered.values ??= renderValues(types, cluster.document)
  return rendered.values
}

function renderValues(types: Types, document: Document): ClusterValues {
  const patched = types.patchable ? referencesOf(document, types.patchable.delivery) : []
  const patches = patched.map(({ id }) => {
    const values = patchesOf(types.cluster, document, id)
    return Object.keys(values).length === 0 ? NO_VALUES : fragment(JSON.stringify(values))
  })
  return { identity: fragment(JSON.stringify(identityOf(types.cluster, document))), patches }
}

/** What somebody keeps of an answer to a version of a cluster, by the place of the type; it goes with that version. */
export function keptAnswer<T extends object>({ rendered }: Entry, place: number): T | undefined {
  return (rendered as RenderedCluster | undefined)?.answers[place] as T | undefined
}

/** Keeps an answer in the place of what it was rendered from. The cluster has been rendered before. */
export function keepAnswer(cluster: Entry, place: number, answer: object): void {
  const rendered = cluster.rendered as RenderedCluster
  rendered.answers[place] = answer
  rendered.values = undefined
}

function fragment(text: string): Fragment {
  return { text, digest: digestOf(text) }
}

/** The identity of its cluster that every input carries. */
export function identityOf(cluster: ClusterType, document: Document): JsonObject {
  return Object.fromEntries(cluster.input.map(([name, property]) => [name, document[property] ?? '']))
}
