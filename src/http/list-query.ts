// The query of a list: filters that the type declares, limit and offset.
import type { FastifyReply } from 'fastify'
import { type Detail, invalid, type Result, succeed } from '../domain/problem.ts'
import { canonicalDns, type Document } from '../domain/resource-type.ts'
import type { RegisteredType } from '../registry/build-types.ts'
import type { QueryParam, SchemaObject } from '../registry/resource-file.ts'

export const DEFAULT_LIMIT = 1000
export const MAX_LIMIT = 5000

export interface ListQuery {
  readonly limit: number
  readonly offset: number
  matches(document: Document): boolean
}

export type RawQuery = Readonly<Record<string, string | string[] | undefined>>

/** Refuses a parameter that it does not know: a misspelt filter must not list everything. */
export function parseListQuery(type: RegisteredType, query: RawQuery): Result<ListQuery> {
  const known = ['limit', 'offset', ...type.filters.map(({ name }) => name)]
  const unknown = Object.keys(query).filter((name) => !known.includes(name))
  if (unknown.length === 0) return parseKnown(type, query, { limit: DEFAULT_LIMIT, max: MAX_LIMIT })
  return invalid(
    unknown.map((name) => ({
      path: `?${name}`,
      message: `is an unknown parameter: known are ${known.join(', ')}`,
    })),
  )
}

/** Ignores what it does not know and answers everything unless told otherwise: a poll must not break. */
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
  const limit = parseWhole(query.limit, 'limit', limits.max, details) ?? limits.limit
  const offset = parseWhole(query.offset, 'offset', Number.MAX_SAFE_INTEGER, details) ?? 0
  if (details.length > 0) return invalid(details)
  return succeed({ limit, offset, matches: (document) => filters.every((filter) => filter(document)) })
}

type Filter = (document: Document) => boolean

function parseFilter(
  type: RegisteredType,
  param: QueryParam,
  given: string | string[] | undefined,
  details: Detail[],
): Filter | undefined {
  if (given === undefined) return undefined
  const { name } = param
  const property = type.schema.properties?.[name] ?? {}
  const schema: SchemaObject = { ...property, ...param.schema }
  const path = `?${name}`
  if (Array.isArray(given)) {
    details.push({ path, message: 'is given more than once' })
    return undefined
  }
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

/** A whole number from 0 to max, when there is one. */
export function parseWhole(
  given: string | string[] | undefined,
  name: string,
  max: number,
  details: Detail[],
): number | undefined {
  if (given === undefined) return undefined
  if (typeof given === 'string' && /^\d{1,16}$/.test(given) && Number(given) <= max) return Number(given)
  const range = max === Number.MAX_SAFE_INTEGER ? 'of 0 or more' : `from 0 to ${max}`
  details.push({ path: `?${name}`, message: `must be a whole number ${range}, not "${given}"` })
  return undefined
}

/** Says how many there are and where the rest is. */
export function sendPageHeaders(
  reply: FastifyReply,
  url: string,
  { limit, offset }: ListQuery,
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
  if (links.length > 0) reply.header('Link', links.join(', '))
}
