// Reading documents: one by its id, or all pages of a list.
import { PAGES } from '../../api/limits.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Document } from '../../domain/types/resource-type.ts'
import { usage } from '../failure.ts'
import { startProgress } from '../output/progress.ts'
import type { Session } from '../session.ts'
import type { ApiResponse, Call } from './api.ts'
import { assignedIds, clusterNoun, type DocumentName, type Noun, nameOf } from './nouns.ts'
import { readPages } from './read-pages.ts'
import { warningsIn } from './response-warnings.ts'

/** So few documents are read one by one, more of them as a list. */
const FEW = 20
/** Routes like those of documents, for what has no type here, or for one type alone. */
export const TOKEN_ROUTES = { name: 'tokens' }
export const ROLLOUT_ROUTES = { name: 'rollouts' }
export const HOLD_ROUTES = { name: 'holds' }
export const FREEZE_ROUTES = { name: 'freezes' }

/** The path of a document, or of something below it. */
export function pathOf(noun: Pick<Noun, 'name'>, id: string, ...below: readonly string[]): string {
  return `/${[noun.name, id, ...below].map(segment).join('/')}`
}

/** A URL would resolve dots and drop empty segments. */
function segment(text: string): string {
  if (/^\.{0,2}$/.test(text)) throw usage(`"${text}" is not an id`)
  return encodeURIComponent(text)
}

interface ListOptions {
  readonly query?: Call['query']
  readonly limit?: number | undefined
  /** Documents to leave out at the beginning. */
  readonly offset?: number | undefined
}

interface Listed {
  readonly documents: Document[]
  readonly total: number
}

/** All documents of a list, or the first `limit` of them, as of one revision. */
export async function listAll(session: Session, noun: Noun, options: ListOptions = {}): Promise<Listed> {
  const { query, limit = Number.POSITIVE_INFINITY, offset: first = 0 } = options
  const documents: Document[] = []
  let listed = 0
  // The revision of the first page is the one of all others.
  let at = query?.at
  const progress = startProgress(session, `Reading ${noun.name}`)
  try {
    const pages = readPages<Document>(
      ({ limit: size, offset }) =>
        session.api.get(`/${noun.name}`, { query: { ...query, at, limit: size, offset: first + offset } }),
      { size: PAGES.max, limit },
    )
    for await (const { items, total = items.length, response } of pages) {
      // Warnings are about the selector, and the same on every page.
      if (documents.length === 0) for (const warning of warningsIn(response)) session.warn(warning)
      for (const document of items) documents.push(document)
      at ??= String(response.headers['x-revision'])
      listed = total
      progress.show(documents.length, Math.min(total, limit))
    }
    return { documents, total: listed }
  } finally {
    progress.end()
  }
}

/** The ids of documents that are assigned to the clusters of a selector. */
export async function usedBy(
  session: Session,
  noun: Noun,
  selector: string,
  at?: string,
): Promise<Set<string>> {
  const clusters = clusterNoun(session.nouns)
  const { documents } = await listAll(session, clusters, { query: { selector, at } })
  return new Set(documents.flatMap((cluster) => assignedIds(noun, cluster)))
}

export async function getDocument(
  session: Session,
  noun: Noun,
  id: string,
  query: Call['query'] = {},
): Promise<ApiResponse & { readonly body: Document }> {
  return session.api.get(pathOf(noun, id), { query })
}

/** The document, or undefined when there is none. */
export async function findDocument(
  session: Session,
  noun: Noun,
  id: string,
  query: Call['query'] = {},
): Promise<{ readonly document: JsonObject; readonly etag: string } | undefined> {
  const { status, body, headers } = await session.api.get(pathOf(noun, id), { query, expect: [404] })
  return status === 404 ? undefined : { document: body, etag: String(headers.etag) }
}

/** The revision that an ETag names. */
export function revisionOf({ etag }: Pick<ApiResponse['headers'], 'etag'>): number {
  return Number(String(etag).replaceAll('"', ''))
}

/** The documents of these entries that exist, by name: `namespaces/team-a`. */
export async function readDocuments(
  session: Session,
  entries: readonly DocumentName[],
  query: Call['query'] = {},
): Promise<Map<string, JsonObject>> {
  const documents = new Map<string, JsonObject>()
  for (const [type, wanted] of Map.groupBy(entries, (each) => each.type)) {
    const noun = session.nouns.find(({ name }) => name === type)
    if (!noun) continue
    if (wanted.length > FEW) {
      const { documents: listed } = await listAll(session, noun, { query })
      for (const document of listed) documents.set(nameOf({ type, id: document.id }), document)
      continue
    }
    const found = await Promise.all(wanted.map(({ id }) => findDocument(session, noun, id, query)))
    for (const [i, each] of found.entries()) {
      if (each) documents.set(nameOf(wanted[i] as DocumentName), each.document)
    }
  }
  return documents
}
