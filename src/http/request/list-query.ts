// The query of a list: filters that the type declares, limit and offset.

import type { FastifyReply } from 'fastify'
import { PAGES } from '../../api/limits.ts'
import { invalid, type Result, succeed } from '../../base/problem.ts'
import { parseSelector, type Selector } from '../../domain/access/selector.ts'
import type { StatusReader } from '../../domain/access/selector-subjects.ts'
import { servedVersions } from '../../domain/delivery/served-version.ts'
import type { View } from '../../domain/documents/view.ts'
import { canonicalDns, type Document } from '../../domain/types/resource-type.ts'
import type { RegisteredType, RegisteredTypes } from '../../registry/build-types.ts'
import {
  AT,
  choiceProblem,
  flag,
  inQuery,
  limitOf,
  numberIn,
  OFFSET,
  type Parameter,
  pageOf,
  type Query,
  SELECTOR,
} from './parameters.ts'
import { checkValues } from './query.ts'

/** Clients refuse headers of more than 16 KiB, and a link repeats a selector with every character escaped. */
const MAX_LINK = 8192

interface Page {
  readonly limit: number
  readonly offset: number
}

export interface ListQuery extends Page {
  /** Whether to list the deleted documents, as they were, instead of those that are there. */
  readonly deleted: boolean
  /** The label selector of a list of clusters, where one is given. */
  readonly selector?: Selector
  /** Whether a document of a view matches. */
  matches(document: Document, view: View): boolean
}

const PAGE = pageOf(PAGES)
const [LIMIT] = PAGE
const ID_PREFIX = inQuery('id_prefix', 'Only documents whose id begins with this.')
const DELETED = flag('deleted', 'The deleted ones, as they were, instead of those that are there.')
const POLL_LIMIT = limitOf({ max: Number.MAX_SAFE_INTEGER })

/** What a list of documents takes. */
export function listParameters(types: RegisteredTypes, type: RegisteredType): Parameter[] {
  const ofClusters = type === types.cluster.type ? [SELECTOR, DELETED] : []
  return [...PAGE, AT, ...ofClusters, ...idPrefix(type), ...filterParameters(type)]
}

/** A type may have a filter of that name itself. */
function idPrefix(type: RegisteredType): Parameter[] {
  return type.filters.some(({ name }) => name === ID_PREFIX.name) ? [] : [ID_PREFIX]
}

/** What the list of clusters for pollers takes. */
export function pollParameters(
  type: RegisteredType,
): readonly [limit: Parameter, offset: Parameter, ...filters: Parameter[]] {
  return [POLL_LIMIT, OFFSET, ...filterParameters(type)]
}

function filterParameters(type: RegisteredType): Parameter[] {
  return type.filters.map(({ name, description = '', schema }) => {
    const values = schema?.enum ?? type.schema.properties?.[name]?.enum
    const described = values ? { type: 'string', ...schema, enum: values } : schema
    // A field without an enum takes any value; one that no document has gives an empty list.
    const check = (text: string) => (values ? choiceProblem(values, text) : undefined)
    return inQuery(name, description, described, check)
  })
}

/** Parses a query that `checkQuery` has accepted. Status is that of the present, also with `at`. */
export function parseListQuery(
  types: RegisteredTypes,
  type: RegisteredType,
  query: Query,
  status: StatusReader,
): Result<ListQuery> {
  const listed = listedIn(type, query)
  if (query.selector === undefined) return succeed(listed)
  const selected = parseSelector(types, query.selector, { status, version: servedVersions(types) })
  if (!selected.ok) return invalid([{ path: '?selector', message: selected.message }])
  const { selector } = selected
  return succeed({
    ...listed,
    selector,
    matches: (document, view) => listed.matches(document, view) && selector.matches(document, view),
  })
}

function listedIn(type: RegisteredType, query: Query): ListQuery {
  const listed = { ...readQuery(type, query, LIMIT), deleted: query.deleted === 'true' }
  const prefix = idPrefix(type).length > 0 ? query.id_prefix : undefined
  if (prefix === undefined) return listed
  return {
    ...listed,
    matches: (document, view) => document.id.startsWith(prefix) && listed.matches(document, view),
  }
}

/** Without a limit, returns everything. Unknown parameters are ignored: a poll must not break. */
export function parsePollQuery(type: RegisteredType, query: Query): Result<ListQuery> {
  const details = checkValues(pollParameters(type), query)
  return details.length > 0 ? invalid(details) : succeed(readQuery(type, query, POLL_LIMIT))
}

function readQuery(type: RegisteredType, query: Query, limit: Parameter): ListQuery {
  const filters = type.filters.flatMap(({ name }) => filterFor(type, name, query[name]) ?? [])
  return {
    ...pageIn(query, limit),
    deleted: false,
    matches: (document) => filters.every((filter) => filter(document)),
  }
}

/** The page of a query that was checked. */
export function pageIn(query: Query, limit: Parameter = LIMIT): Page {
  return {
    limit: numberIn(query, limit) ?? Number.POSITIVE_INFINITY,
    offset: numberIn(query, OFFSET) ?? 0,
  }
}

type Filter = (document: Document) => boolean

function filterFor(type: RegisteredType, name: string, wanted: string | undefined): Filter | undefined {
  if (wanted === undefined) return undefined
  if (type.schema.properties?.[name]?.format === 'hostname') {
    const dns = canonicalDns(wanted)
    return (document) => canonicalDns(String(document[name])) === dns
  }
  return (document) => document[name] !== undefined && String(document[name]) === wanted
}

/** Sets the headers with the total and the links to the previous and next page. */
export function sendPageHeaders(
  reply: FastifyReply,
  url: string,
  { limit, offset }: Page,
  total: number,
): void {
  const link = (rel: string, at: number): string => {
    const [path, query] = url.split('?')
    const params = new URLSearchParams(query)
    params.set('limit', String(limit))
    params.set('offset', String(at))
    return `<${path}?${params}>; rel="${rel}"`
  }
  const links = [
    ...(offset > 0 && limit > 0 ? [link('prev', Math.max(0, offset - limit))] : []),
    ...(offset + limit < total && limit > 0 ? [link('next', offset + limit)] : []),
  ]
  reply.header('X-Total-Count', total)
  const header = links.join(', ')
  if (header !== '' && header.length <= MAX_LINK) reply.header('Link', header)
}
