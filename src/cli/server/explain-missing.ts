// What is said of an id that is not there: when it was deleted, since when it exists, or which one was meant.
import type { Revision } from '../../api/wire-types.ts'
import { fromNow } from '../../base/relative-time.ts'
import { PROGRAM } from '../cli-command.ts'
import { type Advice, EXIT, Failure } from '../failure.ts'
import { closest } from '../input/closest.ts'
import type { Session } from '../session.ts'
import type { Noun } from './nouns.ts'
import { pathOf } from './read-documents.ts'
import { Refusal } from './refusal.ts'

/** Ids that are looked through for one that was meant. */
const MOST_IDS = 1000

/** The failure with what is known of the id that it names; other failures as they are. */
export async function explainMissing(session: Session, error: unknown): Promise<unknown> {
  if (!(error instanceof Refusal) || error.status !== 404 || error.reason !== 'unknown_id') return error
  const [, singular, id = ''] = /no (.+?) "([^"]+)"/.exec(error.message) ?? []
  const noun = session.nouns.find((each) => each.singular === singular?.replace(/^deleted /, ''))
  // The service has said it where it knew.
  if (!noun || error.message.includes('did you mean')) return error
  try {
    const { details = [], ...advice } = await knownOf(session, noun, id, singular !== noun.singular)
    return new Failure(EXIT.refused, error.message, {
      details: [...details, ...error.details],
      hint: advice.hint ?? error.hint,
    })
  } catch {
    // The first failure is what counts.
    return error
  }
}

async function knownOf(
  session: Session,
  noun: Noun,
  id: string,
  isDeleted: boolean,
): Promise<Advice & { details?: string[] }> {
  const history = await session.api.get(pathOf(noun, id, 'history'), { query: { limit: 1 }, expect: [404] })
  const [last]: Revision[] = history.status === 404 ? [] : history.body
  const change = last?.changes.find((each) => each.type === noun.name && each.id === id)
  if (!last || !change) return meant(session, noun, id, isDeleted)
  const when = `${fromNow(last.time, new Date())} (${last.time.slice(0, 19)}Z)`
  if (change.op === 'delete' && !isDeleted)
    return {
      details: [
        ...((await appearance(session, noun, id)).details ?? []),
        `it was deleted in revision ${last.revision} by ${last.actor}, ${when}${said(last)}`,
      ],
      hint: noun.cluster
        ? `${PROGRAM} ${noun.noun} restore ${id}`
        : `${PROGRAM} revert ${last.revision} brings it back`,
    }
  return isDeleted ? meant(session, noun, id, isDeleted) : appearance(session, noun, id)
}

function said({ message }: Revision): string {
  return message ? `: ${message}` : ''
}

/** Where a document is there now, and was not at the moment that was asked for: since when it is. */
async function appearance(
  session: Session,
  noun: Noun,
  id: string,
): Promise<Advice & { details?: string[] }> {
  const { body } = await session.api.get(pathOf(noun, id, 'history'), { query: { limit: 1000 } })
  const first: Revision | undefined = body.at(-1)
  if (!first) return {}
  return {
    details: [
      `it appeared in revision ${first.revision}, ${fromNow(first.time, new Date())} (${first.time.slice(0, 19)}Z)`,
    ],
  }
}

async function meant(session: Session, noun: Noun, id: string, isDeleted: boolean): Promise<Advice> {
  const query = { limit: MOST_IDS, ...(isDeleted && { deleted: true }) }
  const begins = id.slice(0, Math.max(1, Math.ceil(id.length / 2)))
  const near = await session.api.get(`/${noun.name}`, { query: { ...query, id_prefix: begins } })
  const all = near.body.length > 0 ? near : await session.api.get(`/${noun.name}`, { query })
  const found = closest(
    id,
    all.body.map((each: { id: string }) => each.id),
  )
  if (found.length === 0)
    return isDeleted ? { hint: `${PROGRAM} ${noun.noun} list --deleted shows what can be restored` } : {}
  return { hint: `did you mean ${found.join(' or ')}?` }
}
