// What others have changed in the documents of a set since it was last applied, and would be lost.
import type { Revision } from '../../api/wire-types.ts'
import { excerpts, type Json, type JsonObject } from '../../base/json.ts'
import { count } from '../../base/sentences.ts'
import { EXIT, Failure } from '../failure.ts'
import { agree, isAsked } from '../input/agree.ts'
import { nameOf } from '../server/nouns.ts'
import { pathOf, readDocuments } from '../server/read-documents.ts'
import { revisionsAt } from '../server/read-revisions.ts'
import { Refusal } from '../server/refusal.ts'
import type { Session } from '../session.ts'
import type { Wanted } from './apply-set.ts'
import type { AppliedBefore } from './inventory.ts'
import { type ChangedByOthers, changedByOthers, describePlace, valueAt } from './three-way.ts'

/** A change of others in a document of the set; without a place, the document is gone. */
export interface Overwritten extends ChangedByOthers {
  readonly wanted: Wanted
  readonly since: number
}

/** So many changes are named with who made them. */
const SHOWN = 20
const PAGE_SIZE = 20

/** Finds what differs from what the set applied, and from what its files say now. */
export async function findOverwritten(
  session: Session,
  set: readonly Wanted[],
  current: ReadonlyMap<string, JsonObject>,
  { revision, held }: AppliedBefore,
): Promise<Overwritten[]> {
  const differing = set.filter((wanted) => {
    const now = current.get(nameOf(wanted))
    return held.has(nameOf(wanted)) && changedIn(wanted, wanted.document, now).length > 0
  })
  if (differing.length === 0) return []
  const then = await readThen(session, differing, revision)
  // What was read before the revision was known may be older than it.
  const latest = await readDocuments(session, differing)
  return differing.flatMap((wanted) => {
    const before = then.get(nameOf(wanted))
    const changes = before ? changedIn(wanted, before, latest.get(nameOf(wanted))) : []
    return changes.map((change) => ({ ...change, wanted, since: revision }))
  })
}

/** What was changed of the fields that a file names. */
export function changedIn(
  { document }: Wanted,
  before: JsonObject,
  now: JsonObject | undefined,
): ChangedByOthers[] {
  if (!now) return [{ place: [], before, after: undefined }]
  return Object.keys(document).flatMap((name) =>
    changedByOthers({ before: before[name], after: now[name], file: document[name] }, [name]),
  )
}

async function readThen(
  session: Session,
  entries: readonly Wanted[],
  revision: number,
): Promise<Map<string, JsonObject>> {
  try {
    return await readDocuments(session, entries, { at: String(revision) })
  } catch (error) {
    if (!(error instanceof Refusal) || error.reason !== 'history_pruned') throw error
    session.note(`what others have changed is not known: revision ${revision} was pruned`)
    return new Map()
  }
}

/** Stops, or asks on a terminal, before changes of others are lost. */
export async function agreeToOverwrite(
  session: Session,
  flags: { readonly yes?: boolean; readonly overwrite?: boolean },
  overwritten: readonly Overwritten[],
): Promise<void> {
  if (flags.overwrite || overwritten.length === 0) return
  const notes = await describeOverwritten(session, overwritten)
  const does = `overwrite ${count(overwritten.length, 'change')} of others`
  if (isAsked(session, flags)) {
    await agree(session, { does, word: 'yes', notes }, HINT)
    return
  }
  throw new Failure(EXIT.usage, `this would ${does}: nothing was changed`, { details: notes, hint: HINT })
}

/** Where nothing is sent, what would be overwritten is a warning. */
export async function warnOfOverwritten(
  session: Session,
  overwritten: readonly Overwritten[],
): Promise<void> {
  for (const line of await describeOverwritten(session, overwritten)) session.warn(line)
}

/** Thrown after a preview that apply would refuse. */
export function refuseOverwritten(
  flags: { readonly overwrite?: boolean },
  overwritten: readonly Overwritten[],
): void {
  if (flags.overwrite || overwritten.length === 0) return
  const message = `apply would overwrite ${count(overwritten.length, 'change')} of others`
  throw new Failure(EXIT.usage, message, { hint: HINT })
}

const HINT = 'take what others changed into the files with pull, or add --overwrite'

/** A line for each change, with who made it; the first of them, and how many more there are. */
export async function describeOverwritten(
  session: Session,
  overwritten: readonly Overwritten[],
): Promise<string[]> {
  const shown = overwritten.slice(0, SHOWN)
  const histories = new Map<string, Promise<Revision[]>>()
  const lines = shown.map(async (each) => {
    const { wanted, since } = each
    const history = histories.get(nameOf(wanted)) ?? readHistory(session, wanted, since)
    histories.set(nameOf(wanted), history)
    const by = (await history).find(({ changes: [change] }) => {
      const [before, after] = [valueAt(change?.before, each.place), valueAt(change?.after, each.place)]
      return JSON.stringify(before) !== JSON.stringify(after)
    })
    return `${wanted.source}: ${nameOf(wanted)} ${describeChange(each)}${by ? describeAuthor(by) : ''}`
  })
  const more = overwritten.length - shown.length
  return [...(await Promise.all(lines)), ...(more > 0 ? [`and ${count(more, 'more change')}`] : [])]
}

async function readHistory(session: Session, { type, id }: Wanted, since: number): Promise<Revision[]> {
  const found: Revision[] = []
  const path = pathOf({ name: type }, id, 'history')
  for await (const revision of revisionsAt(session, path, { pageSize: PAGE_SIZE })) {
    if (revision.revision <= since) break
    found.push(revision)
  }
  return found
}

function describeChange({ place, before, after }: ChangedByOthers): string {
  if (place.length === 0) return 'was deleted'
  const [from, to] = excerpts(before ?? null, after ?? null)
  const shown = (value: Json | undefined, text: string): string => (value === undefined ? '(none)' : text)
  return `${describePlace(place)}: ${shown(before, from)} → ${shown(after, to)}`
}

function describeAuthor({ revision, actor, message }: Revision): string {
  return `, by ${actor} in revision ${revision}${message ? ` (${message})` : ''}`
}
