// From a set of documents to the operations that make the fleet hold it.
import { usage } from '../failure.ts'
import { clusterNoun, nameOf, takes } from '../server/nouns.ts'
import { readDocuments } from '../server/read-documents.ts'
import type { Session } from '../session.ts'
import { completer, operationFor, type Step, type Wanted } from './apply-set.ts'
import { type ApplyPlan, inventoryNoun, planInventory } from './inventory.ts'
import { findOverwritten, type Overwritten } from './others-changes.ts'
import type { SetFlags } from './set-flags.ts'

/** What the service takes at once, with room for what surrounds it. */
const MAX_BYTES = 30 * 1024 * 1024

interface SetPlan extends Omit<ApplyPlan, 'last'> {
  /** What others have changed since the set was last applied, and the steps would take back. */
  readonly overwritten: readonly Overwritten[]
}

/** The steps that make the fleet hold the set. */
export async function planApply(session: Session, flags: SetFlags, set: readonly Wanted[]): Promise<SetPlan> {
  const current = await readDocuments(session, set)
  const full = completed(session, set)
  const steps = full.flatMap((wanted, i): Step[] => {
    const operation = operationFor(wanted, current.get(nameOf(wanted)))
    return operation ? [{ operation, wanted: set[i] as Wanted }] : []
  })
  const { last, ...inventory } = await planInventory(session, flags, set)
  const overwritten = last ? await findOverwritten(session, full, current, last) : []
  const all = [...steps, ...inventory.steps]
  return { ...inventory, overwritten, steps: all.length > 0 ? all : nothingToDo(session, set) }
}

/** The documents of a set, with their fields as the service has them. */
export function completed({ nouns }: Session, set: readonly Wanted[]): Wanted[] {
  const complete = new Map(nouns.map((noun) => [noun.name, completer(noun)]))
  return set.map((wanted) => {
    const { type, document } = wanted
    return { ...wanted, document: complete.get(type)?.(document) ?? document }
  })
}

/** An operation that changes nothing, so that the service gives its answer: an empty patch, or one of no cluster. */
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

/** The steps in parts that the service takes: one part, if it can be. */
export function splitBySize(session: Session, steps: readonly Step[]): Step[][] {
  const clusters = clusterNoun(session.nouns).name
  const inventory = inventoryNoun(session)?.name
  // Definitions come before the clusters that refer to them; the inventory comes after the documents in it.
  const weight = ({ operation: { op, type } }: Step): number =>
    type === inventory ? 3 : op === 'delete' ? 2 : type === clusters ? 1 : 0
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
