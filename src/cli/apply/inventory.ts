// The inventory of a set: which documents it held when it was last applied, kept on the server for pruning.
import { createHash } from 'node:crypto'
import type { Preview } from '../../api/wire-types.ts'
import type { JsonObject } from '../../base/json.ts'
import { usage } from '../failure.ts'
import { type DocumentName, type Noun, nameOf } from '../server/nouns.ts'
import { findDocument, listAll, readDocuments, revisionOf } from '../server/read-documents.ts'
import type { Session } from '../session.ts'
import { operationFor, type Step, type Wanted } from './apply-set.ts'
import { choosePrunable, type UnprunedEntry } from './choose-prunable.ts'
import { entriesOf, type Inventory, inventoryOf } from './set-entries.ts'
import { type SetFlags, setName } from './set-flags.ts'

/** The type of the documents that hold inventories; undefined on a server without one. */
export function inventoryNoun({ nouns }: Session): Noun | undefined {
  return nouns.find(({ bookkeeping }) => bookkeeping)
}

export interface ApplyPlan {
  readonly steps: readonly Step[]
  /** What could be pruned, and is not. */
  readonly unpruned: readonly UnprunedEntry[]
  /** What the set was when it was last applied; undefined when that is not known. */
  readonly last: AppliedBefore | undefined
}

/** The revision in which a set was last applied, and the names of what it held. */
export interface AppliedBefore {
  readonly revision: number
  readonly held: ReadonlySet<string>
}

const NO_STEPS: ApplyPlan = { steps: [], unpruned: [], last: undefined }

/** The steps that bring the inventory up to date, and delete what the set holds no longer. */
export async function planInventory(
  session: Session,
  flags: SetFlags,
  set: readonly Wanted[],
): Promise<ApplyPlan> {
  const noun = inventoryNoun(session)
  if (!noun) {
    if (flags.prune) throw usage('this server does not remember what was applied, so nothing can be pruned')
    return NO_STEPS
  }
  const id = setName(flags)
  const recorded = await findDocument(session, noun, id)
  const held = entriesOf((recorded?.document.documents ?? {}) as Inventory)
  const names = new Set(set.map(nameOf))
  const missing = held.filter((entry) => !names.has(nameOf(entry)))
  // Most likely these are two sets of one name: one must not prune the other.
  if (held.length > 0 && missing.length === held.length && flags.name === undefined) {
    const problem = `a set "${id}" was applied before that holds none of these documents`
    if (flags.prune) throw usage(`${problem}: give this one another name by --name`)
    session.note(`${problem}: this one is not remembered; give it a name by --name`)
    return NO_STEPS
  }
  // Documents that others have deleted leave the set.
  const current = await readDocuments(session, missing)
  const existing = missing.filter((entry) => current.has(nameOf(entry)))
  const candidates = flags.prune ? await heldByNoOther(session, noun, id, existing) : []
  const { prunable, unpruned } = await choosePrunable(session, noun, id, candidates)
  const documents = inventoryOf([...(flags.prune ? unpruned : existing), ...set])
  // A server of an earlier release keeps no digest.
  const digest = noun.schema.properties?.digest ? { digest: digestOf(set) } : {}
  const write = operationFor(
    { type: noun.name, id, document: { id, documents, ...digest }, source: '' },
    recorded?.document,
  )
  const expect = recorded ? { if_revision: revisionOf(recorded) } : {}
  const steps = [
    ...prunable.map((entry) => ({ operation: { op: 'delete', ...entry } })),
    ...(write ? [{ operation: { ...write, ...expect } }] : []),
  ]
  return { steps, unpruned, last: lastApplied(recorded) }
}

/** Without a digest, the inventory may have been the same in many revisions. */
function lastApplied(recorded: Recorded | undefined): AppliedBefore | undefined {
  if (!recorded?.document.digest) return undefined
  const held = entriesOf((recorded.document.documents ?? {}) as Inventory)
  return { revision: revisionOf(recorded), held: new Set(held.map(nameOf)) }
}

interface Recorded {
  readonly document: JsonObject
  readonly etag: string
}

function digestOf(set: readonly Wanted[]): string {
  const texts = set.map((each) => `${nameOf(each)} ${JSON.stringify(each.document)}\n`)
  return `sha256:${createHash('sha256').update(texts.toSorted().join('')).digest('hex')}`
}

/** When the set was last applied. */
export async function findLastApplied(session: Session, flags: SetFlags): Promise<AppliedBefore | undefined> {
  const noun = inventoryNoun(session)
  return noun && lastApplied(await findDocument(session, noun, setName(flags)))
}

/** The entries that no other set holds. */
async function heldByNoOther(
  session: Session,
  noun: Noun,
  id: string,
  entries: readonly DocumentName[],
): Promise<readonly DocumentName[]> {
  if (entries.length === 0) return []
  const others = (await listAll(session, noun)).documents.filter((other) => other.id !== id)
  const elsewhere = new Set(
    others.flatMap(({ documents }) => entriesOf((documents ?? {}) as Inventory)).map(nameOf),
  )
  return entries.filter((entry) => !elsewhere.has(nameOf(entry)))
}

/** A preview without the inventory, which people need not see. */
export function withoutInventory(session: Session, steps: readonly Step[], preview: Preview): Preview {
  const inventory = inventoryNoun(session)?.name
  const hidden = steps.filter(({ operation }) => operation.type === inventory).length
  return {
    ...preview,
    changes: preview.changes.filter(({ type }) => type !== inventory),
    change_count: preview.change_count - hidden,
  }
}
