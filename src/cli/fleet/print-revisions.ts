// The newest revisions: as a table with the clusters that each has reached, or each with its changes.
import type { Revision } from '../../api/wire-types.ts'
import type { Impact } from '../../domain/delivery/impact.ts'
import { describeRevision, type Reach, revisionTable } from '../output/revision-table.ts'
import type { Call } from '../server/api.ts'
import { revisionsAt } from '../server/read-revisions.ts'
import type { Session } from '../session.ts'

interface Options {
  readonly path: string
  readonly query: Call['query']
  readonly limit: number
  /** The revision after which to begin. */
  readonly after?: number | undefined
  /** Whether each is shown with what it changed. */
  readonly isWhole?: boolean | undefined
}

/** Of so many revisions it is looked up which clusters they reached. */
const REACHED = 100
/** At once. */
const REQUESTS = 3
/** What is not known by then is left out of the table. */
const REACH_MS = 10_000

export async function printRevisions(session: Session, options: Options): Promise<void> {
  const { path, query, limit, after = 0, isWhole = false } = options
  const revisions: Revision[] = []
  // One more than is shown tells whether there are more.
  for await (const revision of revisionsAt(session, path, { query, limit: limit + 1 })) {
    if (revision.revision <= after) break
    revisions.push(revision)
  }
  const shown = revisions.slice(0, limit)
  const { kind } = session.format
  const isTable = kind === 'human' || kind === 'csv'
  const wholes = isWhole ? await readAll(session, shown) : []
  const reach = isTable && !isWhole ? await readReach(session, shown) : undefined
  await session.print({
    value: isWhole ? wholes : shown,
    names: shown.map(({ revision }) => `revisions/${revision}`),
    isPaged: true,
    human: (look) =>
      isWhole
        ? wholes.map((each) => describeRevision(look, each)).join('\n')
        : revisionTable(look, shown, reach),
  })
  if (shown.length < revisions.length) session.note(`the newest ${shown.length}; --limit shows more`)
  if (shown.length === 0 && kind === 'human') session.note('No revisions found.')
}

async function readAll({ api }: Session, revisions: readonly Revision[]): Promise<Revision[]> {
  const found: Revision[] = []
  for (const { revision } of revisions) found.push((await api.get(`/revisions/${revision}`)).body)
  return found
}

/** How many clusters each has reached, as far as that is found out soon. */
export async function readReach({ api }: Session, revisions: readonly Revision[]): Promise<Reach> {
  const reach = new Map<number, Impact | undefined>()
  const ends = Date.now() + REACH_MS
  const waiting = revisions.slice(0, REACHED)
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next && Date.now() < ends; next = waiting.shift()) {
      const query = { limit: 0, impact_limit: 0 }
      const { status, body } = await api.get(`/revisions/${next.revision}`, {
        query,
        expect: [404, 410, 503],
      })
      reach.set(next.revision, status === 200 ? body.impact : undefined)
    }
  }
  await Promise.all(Array.from({ length: REQUESTS }, work))
  return reach
}
