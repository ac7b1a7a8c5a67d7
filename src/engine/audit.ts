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
import {
  type DeliveredType,
  type Document,
  type DocumentName,
  referencesOf,
  type Types,
} from '../domain/types/resource-type.ts'
import type { DocumentSpan } from '../store/store.ts'
import type { DocumentRevision, Past } from './past.ts'

/** Says of every field of a cluster's inputs where it came from at a revision, and who last set it there. */
export async function explain(
  types: Types,
  past: Past,
  type: DeliveredType,
  { cluster: id, revision }: { cluster: string; revision: number },
): Promise<Result<ExplainedInput[]>> {
  const { name, singular } = types.cluster.type
  const view = servedTo(types, await past.cluster(revision, id, type), id)
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
    const fields = origins.flatMap((origin) => {
      const value = valueAt(input, origin.path)
      if (value === undefined) return []
      const setters = { cluster: ofCluster, definition: ofDefinition, type: undefined }[origin.holder]
      setters?.lookFor(origin)
      return () => explainField(origin, value, setters)
    })
    await ofDefinition.find(past.historyOf(type.name, reference.id, revision + 1))
    inputs.push({ id: reference.id, fields: () => fields.map((field) => field()) })
  }
  await ofCluster.find(past.historyOf(name, id, revision + 1))
  return succeed(inputs.map((input) => ({ id: input.id, fields: input.fields() })))
}

function explainField(origin: FieldOrigin, value: Json, setters: Setters | undefined): ExplainedField {
  const { path, source, leftOut } = origin
  const { revision = null, time = null, actor = null, message = null } = setters?.found.get(origin) ?? {}
  const document = setters?.document ?? null
  const said = { path, value, source, document, revision, time, actor, message }
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

/** Returns spans of the cluster's own document, and of every definition for as long as it was assigned. */
export async function spansOf(
  types: Types,
  past: Past,
  now: View,
  id: string,
): Promise<Result<DocumentSpan[]>> {
  const { name, singular } = types.cluster.type
  const spans: DocumentSpan[] = [{ type: name, id }]
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
