// Parameters of a URL's query: each route says which it takes.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Detail, invalid, notFound, type Result, succeed } from '../../base/problem.ts'
import { parseTime } from '../../base/time.ts'
import { isWellEncoded } from '../../base/urls.ts'
import type { At } from '../../domain/commands/command.ts'
import { sendProblem } from './problem-response.ts'

export type RawQuery = Readonly<Record<string, string | string[] | undefined>>

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Parameters that a route takes. */
    parameters?: readonly string[]
    /** Parameters that a route takes, each true or false. */
    flags?: readonly string[]
  }
}

/** What every writing route takes. */
const WRITE_PARAMETERS = ['plan', 'confirm', 'impact_limit']
const WRITE_FLAGS = ['dry_run']
/** What every reading route takes. */
const READ_PARAMETERS = ['min_revision']

export function isWrite({ method }: FastifyRequest): boolean {
  return method !== 'GET' && method !== 'HEAD'
}

/** Refuses what a route does not know: a misspelt filter must not list everything, nor a misspelt flag be ignored. */
export function checkQuery(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  const { config } = request.routeOptions
  const writes = isWrite(request)
  const parameters = [...(config.parameters ?? []), ...(writes ? WRITE_PARAMETERS : READ_PARAMETERS)]
  const flags = [...(config.flags ?? []), ...(writes ? WRITE_FLAGS : [])]
  const known = [...parameters, ...flags]
  const details = Object.entries(request.query as RawQuery).flatMap(([name, value]): Detail[] => {
    const path = `?${name}`
    if (!known.includes(name)) {
      const hint = known.length > 0 ? `known are ${known.join(', ')}` : 'there are none here'
      return [{ path, message: `is an unknown parameter: ${hint}` }]
    }
    if (Array.isArray(value)) return [{ path, message: 'is given more than once' }]
    const isFlag = flags.includes(name) && value !== 'true' && value !== 'false'
    return isFlag ? [{ path, message: `must be true or false, not "${value}"` }] : []
  })
  if (!isWellEncoded(request.url)) details.push({ path: '?', message: 'is not well percent-encoded' })
  // Nothing here is called so, and no database can be asked for it.
  else if (request.url.split('?')[1]?.includes('%00'))
    details.push({ path: '?', message: 'holds a NUL character (%00): remove it' })
  const names = Object.keys(request.query as RawQuery)
  const isUnknown = names.filter((name) => !known.includes(name)).length === details.length
  if (details.length > 0)
    sendProblem(reply, invalid(details, isUnknown ? 'unknown_parameter' : undefined).problem)
  else done()
}

/** A whole number from 0 to max, when there is one. */
export function parseWhole(
  given: RawQuery[string],
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

/** A time in UTC, when there is one. */
export function parseTimeAt(given: RawQuery[string], path: string, details: Detail[]): string | undefined {
  if (given === undefined) return undefined
  // An unescaped plus sign arrives as a space.
  const time = parseTime(String(given).replace(' ', '+'))
  if (time === undefined) {
    details.push({ path, message: `must be an RFC 3339 time such as 2026-01-31T12:00:00Z, not "${given}"` })
  }
  return time
}

/** The moment that is asked for, when one is. */
export function parseAt({ at }: RawQuery): Result<At | undefined> {
  if (at === undefined) return succeed(undefined)
  if (/^\d{1,15}$/.test(String(at))) return succeed({ revision: Number(at) })
  const time = parseTimeAt(at, '?at', [])
  if (time !== undefined) return succeed({ time })
  const message = `must be a revision or an RFC 3339 time such as 2026-01-31T12:00:00Z, not "${at}"`
  return invalid([{ path: '?at', message }])
}

/** The number of a revision in a path. */
export function parseRevision(text: string): Result<number> {
  return /^\d{1,15}$/.test(text) ? succeed(Number(text)) : notFound('revision', text)
}
