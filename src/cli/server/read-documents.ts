// Reading documents: one by its id, or all pages of a list.
import { PAGES } from '../../api/limits.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Document } from '../../domain/types/resource-type.ts'
import { usage } from '../failure.ts'
import { startProgress } from '../output/progress.ts'
import type { Session } from '../session.ts'
import type { Answer, Call } from './api-client.ts'
import { assignedIds, clusterNoun, type Noun } from './nouns.ts'
import { warningsIn } from './send-change.ts'

/** They are found like documents, and are of no type. */
export const TOKENS = { name: 'tokens' }

/** Where a document, or something below it, is found. */
export function pathOf(noun: Pick<Noun, 'name'>, id: string, ...below: readonly string[]): string {
  return `/${[noun.name, id, ...below].map(segment).join('/')}`
}

/** A URL would resolve dots and lose what is empty. */
function segment(text: string): string {
  if (/^\.{0,2}$/.test(text)) throw usage(`"${text}" is not an id`)
  return encodeURIComponent(text)
}

export interface ListOptions {
  readonly query?: Call['query']
  readonly limit?: number | undefined
}

export interface Listed {
  readonly documents: Document[]
  readonly total: number
  readonly revision: string
  readonly warnings: readonly string[]
}

/** All documents of a list, or the first so many of them. */
export async function listAll(session: Session, noun: Noun, options: ListOptions = {}): Promise<Listed> {
  const { query, limit = Number.POSITIVE_INFINITY } = options
  const documents: Document[] = []
  // All pages are of one revision, that of the first.
  let at = query?.at
  const progress = startProgress(session, `Reading ${noun.name}`)
  try {
    for (;;) {
      const size = Math.min(PAGES.max, limit - documents.length)
      const page = await readPage(session, noun, { ...query, at, limit: size, offset: documents.length })
      // They are of the selector, and the same on every page.
      if (documents.length === 0) for (const warning of page.warnings) session.warn(warning)
      for (const document of page.documents) documents.push(document)
      at ??= page.revision
      progress.show(documents.length, Math.min(page.total, limit))
      const isLast = page.documents.length === 0 || documents.length >= Math.min(page.total, limit)
      if (isLast) return { ...page, documents }
    }
  } finally {
    progress.end()
  }
}

async function readPage(session: Session, noun: Noun, query: NonNullable<Call['query']>): Promise<Listed> {
  const answer = await session.api.get(`/${noun.name}`, { query })
  const { body, headers } = answer
  return {
    warnings: warningsIn(answer),
    documents: body,
    total: Number(headers['x-total-count'] ?? body.length),
    revision: String(headers['x-revision']),
  }
}

/** Keeps the documents that clusters of a selector are given. */
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
): Promise<Answer & { readonly body: Document }> {
  return session.api.get(pathOf(noun, id), { query })
}

/** The document, or nothing when there is none. */
export async function findDocument(
  session: Session,
  noun: Noun,
  id: string,
): Promise<{ readonly document: JsonObject; readonly etag: string } | undefined> {
  const { status, body, headers } = await session.api.get(pathOf(noun, id), { expect: [404] })
  return status === 404 ? undefined : { document: body, etag: String(headers.etag) }
}
