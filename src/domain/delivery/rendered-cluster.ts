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
  /**
   * The identity, and below it a line for each reference that is patched, with its place: JSON has no line break of its own. One
   * text takes a third of what its parts and their digests would. Undefined while an answer is kept, which mostly means that nothing is rendered.
   */
  lines: string | undefined
  /** By the place of the type. */
  answers: (object | undefined)[] | undefined
}

/** The identity of a cluster, and its patches in the order of its references. */
interface ClusterValues {
  readonly identity: Fragment
  readonly patches: readonly Fragment[]
}

export const NO_VALUES = fragment('{}')

/** `references` is how many references may be patched; 0 for a type whose inputs have no patches. */
export function renderCluster(types: Types, cluster: Entry, references: number): ClusterValues {
  cluster.rendered ??= { lines: undefined, answers: undefined } satisfies RenderedCluster
  const rendered = cluster.rendered as RenderedCluster
  rendered.lines ??= renderLines(types, cluster.document)
  const { lines } = rendered
  const end = endOfLine(lines, 0)
  return { identity: fragment(lines.slice(0, end)), patches: patchesIn(lines, end + 1, references) }
}

function patchesIn(lines: string, from: number, references: number): readonly Fragment[] {
  if (references === 0) return NO_PATCHES
  const patches: Fragment[] = new Array(references).fill(NO_VALUES)
  for (let start = from, end: number; start < lines.length; start = end + 1) {
    end = endOfLine(lines, start)
    const space = lines.indexOf(' ', start)
    patches[Number(lines.slice(start, space))] = fragment(lines.slice(space + 1, end))
  }
  return patches
}

const NO_PATCHES: readonly Fragment[] = []

function endOfLine(lines: string, start: number): number {
  const end = lines.indexOf('\n', start)
  return end < 0 ? lines.length : end
}

function renderLines(types: Types, document: Document): string {
  const patched = types.patchable ? referencesOf(document, types.patchable.delivery) : []
  const patches = patched.flatMap(({ id }, place) => {
    const values = patchesOf(types.cluster, document, id)
    return Object.keys(values).length === 0 ? [] : [`${place} ${JSON.stringify(values)}`]
  })
  // Joined, not added: V8 keeps a sum of strings as a tree.
  return [JSON.stringify(identityOf(types.cluster, document)), ...patches].join('\n')
}

/** What somebody keeps of an answer to a version of a cluster, by the place of the type; it goes with that version. */
export function keptAnswer<T extends object>({ rendered }: Entry, place: number): T | undefined {
  return (rendered as RenderedCluster | undefined)?.answers?.[place] as T | undefined
}

/** Keeps an answer in the place of what it was rendered from. The cluster has been rendered before. */
export function keepAnswer(cluster: Entry, place: number, answer: object): void {
  const rendered = cluster.rendered as RenderedCluster
  const { answers = [] } = rendered
  // A list that grows would have room for 17.
  const length = Math.max(answers.length, place + 1)
  rendered.answers = Array.from({ length }, (_, i) => (i === place ? answer : answers[i]))
  rendered.lines = undefined
}

function fragment(text: string): Fragment {
  return { text, digest: digestOf(text) }
}

/** The identity of its cluster that every input carries. */
export function identityOf(cluster: ClusterType, document: Document): JsonObject {
  return Object.fromEntries(cluster.input.map(([name, property]) => [name, document[property] ?? '']))
}
