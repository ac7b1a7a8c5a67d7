// From a set of documents to the operations that make the fleet hold it, and what remembers the set.
import type { JsonObject } from '../../base/json.ts'
import { usage } from '../failure.ts'
import { clusterNoun, type Noun, nameOf, takes } from '../server/nouns.ts'
import { findDocument, listAll } from '../server/read-documents.ts'
import type { Session } from '../session.ts'
import {
  completer,
  defaultName,
  entriesOf,
  type Inventory,
  inventoryOf,
  isSetName,
  operationFor,
  type Wanted,
} from './apply-set.ts'
import { choosePrunable, type LeftEntry, type SetEntry } from './choose-prunable.ts'

export interface SetFlags {
  readonly file: readonly string[]
  readonly prune?: boolean
  readonly name?: string
}

/** What the service takes at once, with room for what surrounds it. */
const MAX_BYTES = 30 * 1024 * 1024
/** So few documents are read one by one, more of them as a list. */
const FEW = 20

/** One operation, and the document of the set that it is for, if it is for one. */
export interface Step {
  readonly operation: JsonObject
  readonly wanted?: Wanted
}

/** The type that remembers sets. */
export function booksOf({ nouns }: Session): Noun | undefined {
  return nouns.find(({ bookkeeping }) => bookkeeping)
}

export interface Work {
  readonly steps: readonly Step[]
  /** What could be pruned, and is not. */
  readonly left: readonly LeftEntry[]
}

/** What has to be done so that the fleet holds the set. */
export async function prepare(session: Session, flags: SetFlags, set: readonly Wanted[]): Promise<Work> {
  const current = await readCurrent(session, set)
  const complete = new Map(session.nouns.map((noun) => [noun.name, completer(noun)]))
  const steps = set.flatMap((wanted): Step[] => {
    const { type, document } = wanted
    const full = complete.get(type)?.(document) ?? document
    const operation = operationFor({ ...wanted, document: full }, current.get(nameOf(wanted)))
    return operation ? [{ operation, wanted }] : []
  })
  const books = await keepBooks(session, flags, set)
  const all = [...steps, ...books.steps]
  return { ...books, steps: all.length > 0 ? all : nothingToDo(session, set) }
}

/** That there is nothing to do is for the service to say as well: a document as it is, or no cluster at all. */
function nothingToDo({ nouns }: Session, set: readonly Wanted[]): Step[] {
  const isPatchable = ({ type }: Wanted): boolean =>
    nouns.some((noun) => noun.name === type && takes(noun, 'patch'))
  const wanted = set.find(isPatchable)
  if (wanted) return [{ operation: { op: 'patch', type: wanted.type, id: wanted.id, patch: [] }, wanted }]
  const assigned = nouns.find(({ delivery }) => delivery)
  const [first] = set
  if (!first || !assigned) return []
  const nowhere = { selector: 'id,!id', allow_empty: true }
  return [{ operation: { op: 'unassign', type: assigned.name, id: first.id, ...nowhere } }]
}

/** Documents as they are now. */
async function readCurrent(session: Session, entries: readonly SetEntry[]): Promise<Map<string, JsonObject>> {
  const current = new Map<string, JsonObject>()
  for (const [type, wanted] of Map.groupBy(entries, (each) => each.type)) {
    const noun = session.nouns.find(({ name }) => name === type)
    if (!noun) continue
    if (wanted.length > FEW) {
      const { documents } = await listAll(session, noun)
      for (const document of documents) current.set(nameOf({ type, id: document.id }), document)
      continue
    }
    const found = await Promise.all(wanted.map(({ id }) => findDocument(session, noun, id)))
    for (const [i, each] of found.entries()) {
      if (each) current.set(nameOf(wanted[i] as SetEntry), each.document)
    }
  }
  return current
}

/** What remembers the set, and deletes what it holds no longer. */
async function keepBooks(session: Session, flags: SetFlags, set: readonly Wanted[]): Promise<Work> {
  const books = booksOf(session)
  if (!books) {
    if (flags.prune) throw usage('this server does not remember what was applied, so nothing can be pruned')
    return NOTHING
  }
  const id = setName(flags)
  const recorded = await findDocument(session, books, id)
  const held = entriesOf((recorded?.document.documents ?? {}) as Inventory)
  const now = new Set(set.map(nameOf))
  const missing = held.filter((entry) => !now.has(nameOf(entry)))
  // Two sets of one name, most likely: one must not prune the other.
  if (held.length > 0 && missing.length === held.length && flags.name === undefined) {
    const told = `a set "${id}" was applied before that holds none of these documents`
    if (flags.prune) throw usage(`${told}: give this one another name by --name`)
    session.note(`${told}: this one is not remembered; give it a name by --name`)
    return NOTHING
  }
  // What others have deleted is not this set's any more.
  const current = await readCurrent(session, missing)
  const gone = missing.filter((entry) => current.has(nameOf(entry)))
  const free = flags.prune ? await heldByNoOther(session, books, id, gone) : []
  const { prunable, left } = await choosePrunable(session, books, id, free)
  const documents = inventoryOf([...(flags.prune ? left : gone), ...set])
  const write = operationFor(
    { type: books.name, id, document: { id, documents }, source: '' },
    recorded?.document,
  )
  const expect = recorded ? { if_revision: Number(recorded.etag.replaceAll('"', '')) } : {}
  const steps = [
    ...prunable.map((entry) => ({ operation: { op: 'delete', ...entry } })),
    ...(write ? [{ operation: { ...write, ...expect } }] : []),
  ]
  return { steps, left }
}

const NOTHING: Work = { steps: [], left: [] }

export function setName({ name, file }: SetFlags): string {
  if (name === undefined) return defaultName(file)
  if (!isSetName(name)) throw usage(`--name must be a name such as fleet or team-a.prod, not "${name}"`)
  return name
}

/** What another set holds is that one's. */
async function heldByNoOther(
  session: Session,
  books: Noun,
  id: string,
  entries: readonly SetEntry[],
): Promise<readonly SetEntry[]> {
  if (entries.length === 0) return []
  const others = (await listAll(session, books)).documents.filter((other) => other.id !== id)
  const elsewhere = new Set(
    others.flatMap(({ documents }) => entriesOf((documents ?? {}) as Inventory)).map(nameOf),
  )
  return entries.filter((entry) => !elsewhere.has(nameOf(entry)))
}

/** The steps in parts that the service takes: one, if it can be. */
export function splitBySize(session: Session, steps: readonly Step[]): Step[][] {
  const clusters = clusterNoun(session.nouns).name
  const books = booksOf(session)?.name
  // What clusters refer to must be there before they are; what is remembered comes after what it is about.
  const weight = ({ operation: { op, type } }: Step): number =>
    type === books ? 3 : op === 'delete' ? 2 : type === clusters ? 1 : 0
  const sized = steps.map((step) => ({ step, bytes: Buffer.byteLength(JSON.stringify(step.operation)) + 1 }))
  const total = sized.reduce((sum, { bytes }) => sum + bytes, 0)
  if (total <= MAX_BYTES) return [[...steps]]
  const parts: Step[][] = []
  let size = MAX_BYTES
  for (const { step, bytes } of sized.toSorted((a, b) => weight(a.step) - weight(b.step))) {
    if (bytes > MAX_BYTES)
      throw usage(`${nameOf(step.wanted ?? { type: 'the', id: 'set' })} alone is larger than 30 MiB`)
    if (size + bytes > MAX_BYTES) {
      parts.push([])
      size = 0
    }
    parts.at(-1)?.push(step)
    size += bytes
  }
  return parts
}
