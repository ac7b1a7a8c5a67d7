// Who set what: the origin of every value that a cluster gets, and the revisions that concern a cluster.

import { equalJson, type Json } from '../base/json.ts'
import { notFound, type Result, succeed } from '../base/problem.ts'
import { enabledReferences, unmetDependencies } from '../domain/delivery/dependencies.ts'
import {
  type ExplainedField,
  type ExplainedInput,
  explainInput,
  type FieldOrigin,
  valueAt,
} from '../domain/delivery/explain-input.ts'
import { resolveInput } from '../domain/delivery/render-inputs.ts'
import { servedTo } from '../domain/delivery/served-view.ts'
import type { View } from '../domain/documents/view.ts'
import { HOLDS } from '../domain/rollouts/hold.ts'
import { ROLLOUTS } from '../domain/rollouts/rollout.ts'
import { stagingOf } from '../domain/rollouts/staging.ts'
import {
  type DeliveredType,
  type Document,
  type DocumentName,
  referencesOf,
  type Types,
} from '../domain/types/resource-type.ts'
import type { DocumentSpan } from '../store/store.ts'
import type { DocumentRevision, Past } from './past.ts'
import { type ServedSource, ServedSources } from './served-sources.ts'

/** Says of every field of a cluster's inputs where it came from at a revision, and who last set it there. */
export async function explain(
  types: Types,
  past: Past,
  type: DeliveredType,
  { cluster: id, revision }: { cluster: string; revision: number },
): Promise<Result<ExplainedInput[]>> {
  const { name, singular } = types.cluster.type
  const base = await past.cluster(revision, id, type)
  const view = servedTo(types, base, id)
  const sources = new ServedSources(types, past, base, id)
  const cluster = view.get(name, id)?.document
  if (!cluster) return notFound(singular, id)
  const ofCluster = new Setters(`${name}/${id}`)
  const inputs: { id: string; fields: () => ExplainedField[] }[] = []
  const enabled = enabledReferences(cluster, type.delivery)
  for (const reference of referencesOf(cluster, type.delivery)) {
    const definition = view.get(type.name, reference.id)?.document
    if (!definition) continue
    const input = resolveInput(types, view, type, definition, { cluster, reference, enabled })
    const ofDefinition = new Setters(`${type.name}/${reference.id}`)
    const unmet = unmetDependencies(view, type, definition, reference, enabled)
    const origins = explainInput(types.cluster, type, [cluster, definition, reference], unmet)
    const fields: (() => ExplainedField)[] = []
    for (const origin of origins) {
      const value = valueAt(input, origin.path)
      if (value === undefined) continue
      const setters = { cluster: ofCluster, definition: ofDefinition, type: undefined }[origin.holder]
      const [holder, of] = origin.holder === 'cluster' ? [name, id] : [type.name, reference.id]
      const served = setters && (await sources.sourceOf(holder, of, origin.read))
      if (!served) setters?.lookFor(origin)
      fields.push(() => explainField(origin, value, setters, served))
    }
    await ofDefinition.find(past.historyOf(type.name, reference.id, revision + 1))
    inputs.push({ id: reference.id, fields: () => fields.map((field) => field()) })
  }
  await ofCluster.find(past.historyOf(name, id, revision + 1))
  return succeed(inputs.map((input) => ({ id: input.id, fields: input.fields() })))
}

function explainField(
  origin: FieldOrigin,
  value: Json,
  setters: Setters | undefined,
  served: ServedSource | undefined,
): ExplainedField {
  const { path, source, leftOut } = origin
  const found = setters?.found.get(origin)
  const { revision = null, time = null, actor = null, message = null } = served ?? found ?? {}
  const document = setters?.document ?? null
  const { rollout, held } = served ?? {}
  const said = {
    ...{ path, value, source, document, revision, time, actor, message },
    ...(rollout !== undefined && { rollout }),
    ...(held && { held }),
  }
  return leftOut ? { ...said, left_out: leftOut } : said
}

/** The revisions that last gave a document what each of the readers reads, as of a revision; undefined where none is known. */
export async function settersOf(
  past: Past,
  { type, id }: DocumentName,
  readers: readonly Reader['read'][],
  revision: number,
): Promise<(DocumentRevision | undefined)[]> {
  const setters = new Setters(`${type}/${id}`)
  const wanted = readers.map((read): Reader => ({ read }))
  for (const reader of wanted) setters.lookFor(reader)
  await setters.find(past.historyOf(type, id, revision + 1))
  return wanted.map((reader) => setters.found.get(reader))
}

/** Reads a value from any version of a document. */
type Reader = Pick<FieldOrigin, 'read'>

/** Goes back along a document's history until every field in question has been seen to change. */
class Setters {
  readonly document: string
  readonly found = new Map<Reader, DocumentRevision>()
  #open: Reader[] = []

  constructor(document: string) {
    this.document = document
  }

  lookFor(origin: Reader): void {
    this.#open.push(origin)
  }

  async find(history: AsyncIterable<DocumentRevision>): Promise<void> {
    if (this.#open.length === 0) return
    for await (const revision of history) {
      const { after, before: left, before_deleted } = revision.change
      // The document was created again over a tombstone: the deleted one's values are not its own.
      const before = before_deleted && !isSame(left, after) ? null : left
      this.#open = this.#open.filter((origin) => {
        if (isSame(before && origin.read(before), after && origin.read(after))) return true
        this.found.set(origin, revision)
        return false
      })
      if (this.#open.length === 0) return
    }
  }
}

function isSame(a: Json | undefined, b: Json | undefined): boolean {
  return equalJson(a ?? null, b ?? null)
}

/**
 * Returns spans of the cluster's own document and its hold, of every definition for as long as it was assigned, and of the
 * steps that opened running rollouts for it. Who was in one that has ended, only its log says: that is not read.
 */
export async function spansOf(
  types: Types,
  past: Past,
  now: View,
  id: string,
): Promise<Result<DocumentSpan[]>> {
  const { name, singular } = types.cluster.type
  const spans: DocumentSpan[] = [
    { type: name, id },
    { type: HOLDS, id },
  ]
  for (const active of stagingOf(types, now).active) {
    const from = active.isOpenFor(id) ? active.openedRevision(id) : 0
    if (from > 0) spans.push({ type: ROLLOUTS, id: active.rollout.id, from, until: from + 1 })
  }
  const uses = (document: Document, from: number, until: number): void => {
    for (const { name: type, delivery } of types.delivered) {
      for (const reference of referencesOf(document, delivery)) {
        spans.push({ type, id: reference.id, from, until })
      }
    }
  }
  let until = Number.MAX_SAFE_INTEGER
  let oldest: Document | null = now.get(name, id)?.document ?? null
  for await (const { revision, change } of past.historyOf(name, id)) {
    if (change.after && !change.after_deleted) uses(change.after, revision, until)
    until = revision
    oldest = change.before_deleted ? null : change.before
  }
  if (oldest) uses(oldest, 0, until)
  const isKnown = until !== Number.MAX_SAFE_INTEGER || now.get(name, id) || now.tombstone(name, id)
  return isKnown ? succeed(joinSpans(spans)) : notFound(singular, id)
}

/** Joins adjacent spans of the same document; `spans` must be newest first. */
function joinSpans(spans: readonly DocumentSpan[]): DocumentSpan[] {
  const joined = new Map<string, DocumentSpan[]>()
  for (const span of spans) {
    const key = `${span.type}/${span.id}`
    const known = joined.get(key) ?? []
    const next = known.at(-1)
    if (next && next.from === span.until) known[known.length - 1] = { ...next, from: span.from ?? 0 }
    else known.push(span)
    joined.set(key, known)
  }
  return [...joined.values()].flat()
}
