// The query of a URL: checked against the parameters that a route declares, before the route runs.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Detail, invalid, notFound, type Result, succeed } from '../../base/problem.ts'
import { isWellEncoded } from '../../base/urls.ts'
import type { At } from '../../domain/commands/command.ts'
import {
  MIN_REVISION,
  type Parameter,
  problemWith,
  type Query,
  readTime,
  WRITE_PARAMETERS,
} from './parameters.ts'
import { sendProblem } from './problem-response.ts'

type RawQuery = Readonly<Record<string, string | string[] | undefined>>

const READ_QUERY = [MIN_REVISION]
const WRITE_QUERY = WRITE_PARAMETERS.filter((parameter) => parameter.in === 'query')

export function isWrite({ method, routeOptions }: FastifyRequest): boolean {
  return method !== 'GET' && method !== 'HEAD' && !routeOptions.config.isReport
}

/** Refuses what a route does not know: a misspelt filter must not list everything, nor a misspelt flag be ignored. */
export function checkQuery(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  const { parameters = [], isReport } = request.routeOptions.config
  const common = isReport ? [] : isWrite(request) ? WRITE_QUERY : READ_QUERY
  const known = [...parameters, ...common]
  const query = request.query as RawQuery
  const unknown = checkNames(known, query)
  const unreadable = checkEncoding(request.url)
  // Values that are not well encoded are not checked further.
  const details = [...unknown, ...(unreadable.length > 0 ? unreadable : checkValues(known, query))]
  const reason = details.length === unknown.length ? 'unknown_parameter' : undefined
  if (details.length === 0) done()
  else sendProblem(reply, invalid(details, reason).problem)
}

function checkNames(known: readonly Parameter[], query: RawQuery): Detail[] {
  const unknown = Object.keys(query).filter((given) => !known.some(({ name }) => name === given))
  if (unknown.length === 0) return []
  const hint = known.length > 0 ? `known are ${flagsLast(known).join(', ')}` : 'there are none here'
  return unknown.map((name) => ({ path: `?${name}`, message: `is an unknown parameter: ${hint}` }))
}

function flagsLast(known: readonly Parameter[]): string[] {
  const isFlag = ({ schema }: Parameter): number => Number(schema.type === 'boolean')
  return known.toSorted((a, b) => isFlag(a) - isFlag(b)).map(({ name }) => name)
}

/** What is wrong with the values of known parameters; unknown ones are ignored. */
export function checkValues(known: readonly Parameter[], query: RawQuery): Detail[] {
  return known.flatMap((parameter) => {
    const path = `?${parameter.name}`
    const value = query[parameter.name]
    if (value === undefined) return []
    if (typeof value !== 'string') return [{ path, message: 'is given more than once' }]
    const message = problemWith(parameter, value)
    return message === undefined ? [] : [{ path, message }]
  })
}

function checkEncoding(url: string): Detail[] {
  if (!isWellEncoded(url)) return [{ path: '?', message: 'is not well percent-encoded' }]
  // No name holds a NUL, and PostgreSQL refuses it in a query.
  return url.split('?')[1]?.includes('%00')
    ? [{ path: '?', message: 'holds a NUL character (%00): remove it' }]
    : []
}

/** The moment of `?at=`; undefined without it. */
export function momentIn({ at }: Query): At | undefined {
  if (at === undefined) return undefined
  return /^\d+$/.test(at) ? { revision: Number(at) } : { time: readTime(at) as string }
}

/** The number of a revision in a path. */
export function parseRevision(text: string): Result<number> {
  return /^\d{1,15}$/.test(text) ? succeed(Number(text)) : notFound('revision', text)
}
