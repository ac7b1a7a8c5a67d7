// What `--prune` may delete: what the log shows the set to have applied, and nothing that others wrote into it.
import type { Revision } from '../../api/wire-types.ts'
import type { DescribedChange } from '../../domain/documents/describe-change.ts'
import { PROGRAM } from '../command-tree.ts'
import { count } from '../output/count.ts'
import { startProgress } from '../output/progress.ts'
import { describeMethods, type Noun, nameOf, takes } from '../server/nouns.ts'
import { pathOf } from '../server/read-documents.ts'
import type { Session } from '../session.ts'
import { entriesOf, type Inventory } from './apply-set.ts'

export interface SetEntry {
  readonly type: string
  readonly id: string
}

/** An entry that is not pruned, and why. */
export interface LeftEntry extends SetEntry {
  readonly why: string
}

interface Chosen {
  readonly prunable: readonly SetEntry[]
  readonly left: readonly LeftEntry[]
}

const PAGE = 20
/** As many documents are looked up at once. */
const AT_ONCE = 10
const DEADLINE_MS = 30_000
const SHOWN = 20

/**
 * An entry may be pruned when the revision that put it into the set also changed the document, or was made by whoever
 * prunes now; and nobody else has made the document anew since.
 */
export async function choosePrunable(
  session: Session,
  books: Noun,
  set: string,
  entries: readonly SetEntry[],
): Promise<Chosen> {
  if (entries.length === 0) return { prunable: [], left: [] }
  const deadline = performance.now() + DEADLINE_MS
  const isLate = (): boolean => performance.now() > deadline
  const actor = String((await session.api.getAsWriter('/whoami')).body.name)
  const origins = await originsOf(session, pathOf(books, set, 'history'), entries, isLate)
  const progress = startProgress(session, 'Reading the log')
  try {
    const reasons: (string | undefined)[] = []
    for (let i = 0; i < entries.length; i += AT_ONCE) {
      progress.show(i, entries.length)
      const questions = entries.slice(i, i + AT_ONCE).map((entry) => {
        return { set, entry, actor, origin: origins.get(nameOf(entry)), isLate }
      })
      reasons.push(...(await Promise.all(questions.map((question) => whyNot(session, question)))))
    }
    return {
      prunable: entries.filter((_, i) => reasons[i] === undefined),
      left: entries.flatMap((entry, i) => {
        const why = reasons[i]
        return why === undefined ? [] : [{ ...entry, why }]
      }),
    }
  } finally {
    progress.end()
  }
}

/** For each entry, the newest revision that put it into the set. */
async function originsOf(
  session: Session,
  path: string,
  entries: readonly SetEntry[],
  isLate: () => boolean,
): Promise<Map<string, Revision>> {
  const open = new Set(entries.map(nameOf))
  const found = new Map<string, Revision>()
  for await (const revision of revisionsOf(session, path)) {
    if (open.size === 0 || isLate()) return found
    const [change] = revision.changes
    if (!change || isWayBack(revision)) continue
    const had = new Set(namesIn(change.before))
    for (const name of namesIn(change.after)) {
      if (!had.has(name) && open.delete(name)) found.set(name, revision)
    }
  }
  return found
}

function namesIn(set: DescribedChange['before']): string[] {
  return entriesOf((set?.documents ?? {}) as Inventory).map(nameOf)
}

/** Newest first. */
async function* revisionsOf({ api }: Session, path: string): AsyncGenerator<Revision> {
  for (let before: number | undefined; ; ) {
    const { body } = await api.get(path, { query: { limit: PAGE, before } })
    yield* body as Revision[]
    if (body.length < PAGE) return
    before = body.at(-1).revision
  }
}

/** Going back says nothing of what a set applied: that is where what is brought back came from. */
function isWayBack({ operation }: Revision): boolean {
  return /^(?:revert|rollback)\b/.test(operation)
}

interface Question {
  readonly set: string
  readonly entry: SetEntry
  /** Who prunes. */
  readonly actor: string
  readonly origin: Revision | undefined
  isLate(): boolean
}

/** Why an entry must not be pruned; undefined when it may be. */
async function whyNot(session: Session, question: Question): Promise<string | undefined> {
  const { set, entry, actor, origin, isLate } = question
  const noun = session.nouns.find(({ name }) => name === entry.type)
  if (!noun || noun.bookkeeping) return 'no file can hold it'
  if (!takes(noun, 'delete')) return describeMethods(noun)
  if (isLate()) return 'the log could not be read in time'
  if (!origin) return `the log does not reach back to when it came into the set "${set}"`
  for await (const revision of revisionsOf(session, pathOf(noun, entry.id, 'history'))) {
    const op = revision.changes[0]?.op
    if (revision.revision < origin.revision) break
    if (revision.revision === origin.revision) {
      if (op === 'delete' || op === 'purge') break
      return undefined
    }
    if (op === 'create' && revision.actor !== actor && !isWayBack(revision))
      return `it was made anew since it came into the set "${set}", in ${by(revision)}`
    if (isLate()) return 'the log could not be read in time'
  }
  if (origin.actor === actor) return undefined
  return `it is in the set "${set}" since ${by(origin)}, which did not change it`
}

function by({ revision, actor, time }: Revision): string {
  return `revision ${revision} by ${actor} (${time})`
}

export function tellOfLeft(session: Session, left: readonly LeftEntry[]): void {
  for (const { why, ...entry } of left.slice(0, SHOWN)) {
    const noun = session.nouns.find(({ name }) => name === entry.type)
    const hint =
      noun && !takes(noun, 'delete')
        ? ''
        : `. If it is to go: ${PROGRAM} ${noun?.noun ?? entry.type} delete ${entry.id}`
    session.warn(`${nameOf(entry)} is not pruned: ${why}${hint}`)
  }
  const more = left.length - SHOWN
  if (more > 0)
    session.warn(`${count(more, 'more document')} of the set ${more === 1 ? 'is' : 'are'} not pruned`)
}
