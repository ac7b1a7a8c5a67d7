// What `--prune` may delete: what the log shows the set to have applied, and nothing that others wrote into it.
import type { Revision } from '../../api/wire-types.ts'
import { count } from '../../base/sentences.ts'
import type { DescribedChange } from '../../domain/documents/describe-change.ts'
import { PROGRAM } from '../cli-command.ts'
import { startProgress } from '../output/progress.ts'
import { type DocumentName, describeMethods, type Noun, nameOf, takes } from '../server/nouns.ts'
import { pathOf } from '../server/read-documents.ts'
import { revisionsAt } from '../server/read-revisions.ts'
import type { Session } from '../session.ts'
import { entriesOf, type Inventory } from './set-entries.ts'

/** An entry that is not pruned, and why. */
export interface UnprunedEntry extends DocumentName {
  readonly why: string
}

interface Chosen {
  readonly prunable: readonly DocumentName[]
  readonly unpruned: readonly UnprunedEntry[]
}

const PAGE_SIZE = 20
/** Documents whose history is read at once. */
const CONCURRENCY = 10
const DEADLINE_MS = 30_000
const SHOWN = 20

/**
 * Chooses what may be pruned: an entry whose document was also changed by the revision that put it into the set, or
 * whose revision was made by whoever prunes now; unless somebody else has created the document anew since.
 */
export async function choosePrunable(
  session: Session,
  inventory: Noun,
  set: string,
  entries: readonly DocumentName[],
): Promise<Chosen> {
  if (entries.length === 0) return { prunable: [], unpruned: [] }
  const deadline = performance.now() + DEADLINE_MS
  const isLate = (): boolean => performance.now() > deadline
  const actor = String((await session.api.getAsWriter('/whoami')).body.name)
  const origins = await originsOf(session, pathOf(inventory, set, 'history'), entries, isLate)
  const progress = startProgress(session, 'Reading the log')
  try {
    const reasons: (string | undefined)[] = []
    for (let i = 0; i < entries.length; i += CONCURRENCY) {
      progress.show(i, entries.length)
      const checks = entries.slice(i, i + CONCURRENCY).map((entry) => {
        return { set, entry, actor, origin: origins.get(nameOf(entry)), isLate }
      })
      reasons.push(...(await Promise.all(checks.map((check) => reasonToKeep(session, check)))))
    }
    return {
      prunable: entries.filter((_, i) => reasons[i] === undefined),
      unpruned: entries.flatMap((entry, i) => {
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
  entries: readonly DocumentName[],
  isLate: () => boolean,
): Promise<Map<string, Revision>> {
  const open = new Set(entries.map(nameOf))
  const found = new Map<string, Revision>()
  for await (const revision of revisionsAt(session, path, { pageSize: PAGE_SIZE })) {
    if (open.size === 0 || isLate()) return found
    const [change] = revision.changes
    if (!change || isUndo(revision)) continue
    const before = new Set(namesIn(change.before))
    for (const name of namesIn(change.after)) {
      if (!before.has(name) && open.delete(name)) found.set(name, revision)
    }
  }
  return found
}

function namesIn(set: DescribedChange['before']): string[] {
  return entriesOf((set?.documents ?? {}) as Inventory).map(nameOf)
}

/** An undo only brings back what an earlier revision had put into a set. */
function isUndo({ operation }: Revision): boolean {
  return /^(?:revert|rollback)\b/.test(operation)
}

interface PruneCheck {
  readonly set: string
  readonly entry: DocumentName
  /** Who prunes. */
  readonly actor: string
  /** The revision that put the entry into the set. */
  readonly origin: Revision | undefined
  isLate(): boolean
}

/** Why an entry must not be pruned; undefined when it may be. */
async function reasonToKeep(session: Session, check: PruneCheck): Promise<string | undefined> {
  const { set, entry, actor, origin, isLate } = check
  const noun = session.nouns.find(({ name }) => name === entry.type)
  if (!noun || noun.bookkeeping) return 'no file can hold it'
  if (!takes(noun, 'delete')) return describeMethods(noun)
  if (isLate()) return 'the log could not be read in time'
  if (!origin) return `the log does not reach back to when it came into the set "${set}"`
  const history = revisionsAt(session, pathOf(noun, entry.id, 'history'), { pageSize: PAGE_SIZE })
  for await (const revision of history) {
    const op = revision.changes[0]?.op
    if (revision.revision < origin.revision) break
    if (revision.revision === origin.revision) {
      if (op === 'delete' || op === 'purge') break
      return undefined
    }
    if (op === 'create' && revision.actor !== actor && !isUndo(revision))
      return `it was made anew since it came into the set "${set}", in ${describeRevision(revision)}`
    if (isLate()) return 'the log could not be read in time'
  }
  if (origin.actor === actor) return undefined
  return `it is in the set "${set}" since ${describeRevision(origin)}, which did not change it`
}

function describeRevision({ revision, actor, time }: Revision): string {
  return `revision ${revision} by ${actor} (${time})`
}

/** Warns of entries that are not pruned, up to a number of them. */
export function warnOfUnpruned(session: Session, unpruned: readonly UnprunedEntry[]): void {
  for (const { why, ...entry } of unpruned.slice(0, SHOWN)) {
    const noun = session.nouns.find(({ name }) => name === entry.type)
    const hint =
      noun && !takes(noun, 'delete')
        ? ''
        : `. If it is to go: ${PROGRAM} ${noun?.noun ?? entry.type} delete ${entry.id}`
    session.warn(`${nameOf(entry)} is not pruned: ${why}${hint}`)
  }
  const more = unpruned.length - SHOWN
  if (more > 0)
    session.warn(`${count(more, 'more document')} of the set ${more === 1 ? 'is' : 'are'} not pruned`)
}
