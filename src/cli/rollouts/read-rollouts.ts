// Reading rollouts: which one is meant, how far it is, and who is in its waves.
import { PAGES } from '../../api/limits.ts'
import type { ShownMember, ShownRollout } from '../../api/rollout-schema.ts'
import { isActive } from '../../domain/rollouts/rollout.ts'
import { PROGRAM } from '../cli-command.ts'
import { unmet, usage } from '../failure.ts'
import { getNew } from '../fleet/read-status.ts'
import type { Call } from '../server/api.ts'
import { pathOf, ROLLOUT_ROUTES } from '../server/read-documents.ts'
import { readPages } from '../server/read-pages.ts'
import type { Session } from '../session.ts'

/** Names the newest rollout. */
export const LAST_ROLLOUT = 'last'
/** The path of all rollouts. */
const ROLLOUTS_PATH = `/${ROLLOUT_ROUTES.name}`

/** The newest rollouts, and how many there are. */
export async function readRollouts(
  session: Session,
  { state, limit }: { readonly state?: string | undefined; readonly limit: number },
): Promise<{ readonly rollouts: readonly ShownRollout[]; readonly total: number }> {
  const rollouts: ShownRollout[] = []
  let total = 0
  const pages = readPages<ShownRollout>(
    (page) => getNew(session, ROLLOUTS_PATH, { state, limit: page.limit, offset: page.offset }),
    { size: PAGES.max, limit },
  )
  for await (const page of pages) {
    rollouts.push(...page.items)
    total = page.total ?? rollouts.length
  }
  return { rollouts, total }
}

export async function readRollout(
  session: Session,
  id: string,
  query: Call['query'] = {},
): Promise<ShownRollout> {
  return (await getNew(session, pathOf(ROLLOUT_ROUTES, id), query)).body
}

/** The id that a text means: an id with or without its type, `last`, or without a text the only one that has not ended. */
export async function rolloutNamed(session: Session, text: string | undefined): Promise<string> {
  if (text === undefined) return onlyActive(session)
  if (text !== LAST_ROLLOUT) return text.replace(/^rollouts\//, '')
  const { rollouts } = await readRollouts(session, { limit: 1 })
  const [newest] = rollouts
  if (!newest) throw unmet('there is no rollout yet')
  return newest.id
}

async function onlyActive(session: Session): Promise<string> {
  const { rollouts } = await readRollouts(session, { limit: RECENT })
  const active = rollouts.filter(isActive)
  const [only, ...more] = active
  if (!only) throw unmet('no rollout is under way', `${PROGRAM} rollout list shows those that have ended`)
  if (more.length > 0)
    throw usage(`which rollout? There are ${active.map(({ id }) => id).join(', ')}: give its id`)
  return only.id
}

/** Far more than may be active at a time, and those are mostly the newest. */
const RECENT = 200

/** The members of a rollout, in the order in which their waves open. */
export async function readMembers(
  session: Session,
  id: string,
  query: { readonly wave?: string | undefined; readonly state?: string | undefined },
): Promise<ShownMember[]> {
  const members: ShownMember[] = []
  const path = pathOf(ROLLOUT_ROUTES, id, 'members')
  const pages = readPages<ShownMember>(
    ({ limit, offset }) => getNew(session, path, { ...query, limit, offset }),
    { size: PAGES.max },
  )
  for await (const { items } of pages) for (const member of items) members.push(member)
  return members
}
