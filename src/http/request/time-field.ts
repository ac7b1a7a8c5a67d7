// Times in bodies.
import { isObject, type Json } from '../../base/json.ts'
import { type Detail, invalid, type Result, succeed } from '../../base/problem.ts'
import { DEFAULT_GRACE, GRACE, parseGrace } from '../../domain/access/token.ts'
import { readTime, timeProblem } from './parameters.ts'

/** Returns the time in UTC; adds a detail when it is not valid. */
export function readTimeAt(text: string | undefined, path: string, details: Detail[]): string | undefined {
  if (text === undefined) return undefined
  const message = timeProblem(text)
  if (message !== undefined) details.push({ path, message })
  return readTime(text)
}

/** Checks a body that may hold a grace; returns when the grace ends that begins now. */
export function graceEndIn(
  body: Json | undefined,
  check: (body: Json) => Detail[],
  now: Date,
): Result<string> {
  const given = body === undefined ? {} : body
  const details = isObject(given) ? check(given) : [{ path: '', message: 'must be an object' }]
  if (details.length > 0) return invalid(details)
  const { grace = DEFAULT_GRACE } = given as { grace?: string }
  const seconds = parseGrace(grace)
  if (seconds === undefined) return invalid([{ path: '/grace', message: `must be ${GRACE}, not "${grace}"` }])
  return succeed(new Date(now.getTime() + seconds * 1000).toISOString())
}
