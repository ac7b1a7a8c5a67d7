// The query of a list: filters that the type declares, limit and offset.

import type { FastifyReply } from 'fastify'
import { PAGES } from '../../api/limits.ts'
import type { SchemaObject } from '../../base/json-schema.ts'
import { type Detail, invalid, type Result, succeed } from '../../base/problem.ts'
import { parseSelector, type Selector } from '../../domain/access/selector.ts'
import { canonicalDns, type Document } from '../../domain/types/resource-type.ts'
import type { RegisteredType, RegisteredTypes } from '../../registry/build-types.ts'
import type { QueryParam } from '../../registry/resource-file.ts'
import { parseWhole, type RawQuery } from './query.ts'

/** Clients refuse headers of more than 16 KiB, and a link repeats a selector with every character escaped. */
const MAX_LINK = 8192

interface Page {
  readonly limit: number
  readonly offset: number
}

export interface ListQuery extends Page {
  /** What clusters are chosen by, if they are. */
  readonly selector?: Selector
  matches(document: Document): boolean
}

/** The names of what `parseListQuery` reads, and the time it is asked for. */
export function listParameters(types: RegisteredTypes, type: RegisteredType): string[] {
  const selector = type === types.cluster.type ? ['selector'] : []
  return ['limit', 'offset', 'at', ...selector, ...type.filters.map(({ name }) => name)]
}

export function parseListQuery(
  types: RegisteredTypes,
  type: RegisteredType,
  query: RawQuery,
): Result<ListQuery> {
  const parsed = parseKnown(type, query, PAGES)
  if (!parsed.ok || query.selector === undefined) return parsed
  const selected = parseSelector(types, String(query.selector))
  if (!selected.ok) return invalid([{ path: '?selector', message: selected.message }])
  const { matches } = parsed.value
  const { selector } = selected
  return succeed({
    ...parsed.value,
    selector,
    matches: (document) => matches(document) && selector.matches(document),
  })
}

/** Answers everything unless told otherwise, and ignores what it does not know: a poll must not break. */
export function parsePollQuery(type: RegisteredType, query: RawQuery): Result<ListQuery> {
  return parseKnown(type, query, { limit: Number.POSITIVE_INFINITY, max: Number.MAX_SAFE_INTEGER })
}

function parseKnown(
  type: RegisteredType,
  query: RawQuery,
  limits: { limit: number; max: number },
): Result<ListQuery> {
  const details: Detail[] = []
  const filters = type.filters.flatMap((param) => {
    const filter = parseFilter(type, param, query[param.name], details)
    return filter ? [filter] : []
  })
  const page = parsePage(query, details, limits)
  if (details.length > 0) return invalid(details)
  return succeed({ ...page, matches: (document) => filters.every((filter) => filter(document)) })
}

export function parsePage(query: RawQuery, details: Detail[], { limit, max } = PAGES): Page {
  return {
    limit: parseWhole(query.limit, 'limit', max, details) ?? limit,
    offset: parseWhole(query.offset, 'offset', Number.MAX_SAFE_INTEGER, details) ?? 0,
  }
}

type Filter = (document: Document) => boolean

function parseFilter(
  type: RegisteredType,
  param: QueryParam,
  given: RawQuery[string],
  details: Detail[],
): Filter | undefined {
  if (typeof given !== 'string') return undefined
  const { name } = param
  const property = type.schema.properties?.[name] ?? {}
  const schema: SchemaObject = { ...property, ...param.schema }
  const path = `?${name}`
  if (schema.enum && !schema.enum.includes(given)) {
    details.push({ path, message: `must be one of ${schema.enum.join(', ')}, not "${given}"` })
    return undefined
  }
  if (property.format === 'hostname') {
    const wanted = canonicalDns(given)
    return (document) => canonicalDns(String(document[name])) === wanted
  }
  return (document) => document[name] !== undefined && String(document[name]) === given
}

/** Says how many there are and where the rest is. */
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
