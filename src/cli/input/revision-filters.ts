// The flags that choose revisions, of `log` and of `watch`.
import type { Command } from 'commander'
import type { Call } from '../server/api.ts'
import { typeNamed } from '../server/nouns.ts'
import type { Session } from '../session.ts'
import { parseMoment, parseRevision } from './moments.ts'

export interface RevisionFilters {
  readonly actor?: string
  readonly cluster?: string
  readonly selector?: string
  readonly type?: string
  readonly id?: string
  readonly grep?: string
}

export function addRevisionFilters(command: Command): Command {
  return command
    .option(
      '--cluster <id>',
      'what concerns this cluster: its own document, and definitions while it had them',
    )
    .option(
      '-l, --selector <selector>',
      'what concerns clusters that match: their documents, and definitions that they have',
    )
    .option('--actor <name>', 'by this actor')
    .option('--type <name>', 'of this type, such as component')
    .option('--id <id>', 'of documents with this id')
    .option('--grep <text>', 'with this text in the message, operation, actor or request id')
}

/** The filters as the API has them; undefined without any. */
export function filterQuery(
  session: Session,
  { actor, cluster, selector, type, id, grep }: RevisionFilters,
): Call['query'] | undefined {
  const query = { actor, cluster, selector, id, q: grep, type: type && typeNamed(session.nouns, type) }
  return Object.values(query).every((value) => value === undefined) ? undefined : query
}

/** `--since`: after a revision, or from a moment on. */
export function parseSince(text: string | undefined): { readonly after?: number; readonly since?: string } {
  if (text === undefined) return {}
  const after = parseRevision(text)
  return after === undefined ? { since: parseMoment(text, '--since', new Date()) } : { after }
}
