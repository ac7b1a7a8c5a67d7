// The ids that somebody has typed, as the API has them: TYPE/ID loses its type, a DNS name becomes its cluster's id.
import type { Command } from 'commander'
import { usage } from '../failure.ts'
import type { Session } from '../session.ts'
import { clusterNoun, type Noun, namesOf } from './nouns.ts'
import { findDocument } from './read-documents.ts'

/** The arguments of a command with ids in place of what was typed; `own` is the noun that its ids are of. */
export async function resolveArguments<Args extends unknown[]>(
  session: Session,
  args: Args,
  own: Noun | undefined,
): Promise<Args> {
  const command = args.at(-1) as Command
  const resolved = [...args]
  for (const [i, argument] of command.registeredArguments.entries()) {
    const noun = nounOf(session, argument.name(), own)
    const given = args[i]
    if (noun === undefined || given === undefined) continue
    resolved[i] = Array.isArray(given)
      ? await Promise.all(given.map((each) => resolveId(session, noun, String(each))))
      : await resolveId(session, noun, String(given))
  }
  const flags = args.at(-2) as { cluster?: unknown }
  const { cluster } = flags
  const clusters = clusterNoun(session.nouns)
  if (Array.isArray(cluster))
    flags.cluster = await Promise.all(cluster.map((each) => resolveId(session, clusters, String(each))))
  else if (typeof cluster === 'string') flags.cluster = await resolveId(session, clusters, cluster)
  return resolved as Args
}

/** The noun whose ids an argument takes. */
function nounOf({ nouns }: Session, name: string, own: Noun | undefined): Noun | undefined {
  if (name === 'id' || name === 'other') return own
  return nouns.find(({ noun }) => noun === name)
}

async function resolveId(session: Session, noun: Noun, text: string): Promise<string> {
  // Labels stand among ids.
  if (text.includes('=')) return text
  const [type = '', id, ...more] = text.split('/')
  if (id !== undefined && id !== '' && more.length === 0) {
    const named = session.nouns.find((each) => namesOf(each).includes(type))
    if (named && named.name !== noun.name)
      throw usage(`"${text}" is of ${named.name}, and this is for ${noun.name}`)
    if (named) return id
  }
  const isDns = noun.cluster !== undefined && text.includes('.')
  return isDns ? ((await idOfDns(session, noun, text)) ?? text) : text
}

/** The id of the cluster with a DNS name; undefined where the text is an id itself, or nobody has that name. */
async function idOfDns(session: Session, noun: Noun, text: string): Promise<string | undefined> {
  const dns = noun.cluster?.dns ?? ''
  if (!noun.filters.includes(dns) || (await findDocument(session, noun, text))) return undefined
  const { body } = await session.api.get(`/${noun.name}`, { query: { [dns]: text, limit: 1 } })
  return body[0]?.id
}
