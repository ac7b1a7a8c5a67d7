// A cluster's report of what it has applied: the query of the URL that its marks make.
import { type Halves, parseHex } from '../../base/digest.ts'
import { type Detail, invalid, MAX_FOUND, type Result, succeed } from '../../base/problem.ts'
import type { Types } from '../types/resource-type.ts'
import { type AppliedMark, type Evidence, type ReportEvidence, sameMark } from './evidence.ts'
import { type ReadyEntry, ReadyList } from './ready-list.ts'

export interface Report {
  /** 0 when the cluster does not say how often it polls. */
  readonly everyMs: number
  /** The digest of the applied answer, by endpoint. */
  readonly applied: ReadonlyMap<string, Halves>
  readonly ready: readonly Omit<ReadyEntry, 'since'>[]
}

/** Longer intervals are a mistake: Flux polls at least once a day. */
const MAX_EVERY_S = 86_400
/** A resource type may be made by several ResourceSets: `<digest>:1/2` is what the first of two has applied. */
const APPLIED = /^([0-9a-f]{16})(?::([1-9])\/([1-9]))?$/
const A_DIGEST = 'must be the digest of an answer, 16 lower-case hexadecimal digits'

/** Keys that no endpoint has are ignored: a newer bundle may send more. */
export function parseReport(types: Types, query: string): Result<Report> {
  const details: Detail[] = []
  const parts = new Map<string, string[]>()
  const ready: Report['ready'][number][] = []
  let everyMs = 0
  for (const [key, value] of new URLSearchParams(query)) {
    if (details.length > MAX_FOUND) break
    if (key === 'ready') {
      const colon = value.lastIndexOf(':')
      const mark = parseHex(value.slice(colon + 1))
      if (colon < 1 || !mark)
        details.push({
          path: '?ready',
          message: `is "${value.slice(0, 100)}": it must be <component>:<digest>`,
        })
      else ready.push({ id: value.slice(0, colon), mark })
    } else if (key === 'every') {
      const seconds = /^\d{1,6}$/.test(value) ? Number(value) : 0
      if (seconds < 1 || seconds > MAX_EVERY_S)
        details.push({ path: '?every', message: `must be seconds, from 1 to ${MAX_EVERY_S}` })
      everyMs = seconds * 1000
    } else if (types.byEndpoint(key)) {
      const known = parts.get(key)
      if (known) known.push(value)
      else parts.set(key, [value])
    }
  }
  const applied = new Map<string, Halves>()
  for (const [endpoint, values] of parts) {
    const message = checkParts(values)
    if (message) details.push({ path: `?${endpoint}`, message })
    const mark = wholeMark(values)
    if (mark) applied.set(endpoint, mark)
  }
  return details.length > 0 ? invalid(details) : succeed({ everyMs, applied, ready })
}

function checkParts(values: readonly string[]): string | undefined {
  const matches = values.map((value) => APPLIED.exec(value))
  if (matches.some((match) => match === null)) return A_DIGEST
  const names = matches.map((match) => match?.[2] ?? '')
  return new Set(names).size < names.length ? 'is given more than once' : undefined
}

/** The digest that all parts of a type have applied; undefined while they differ, or one is missing. */
function wholeMark(values: readonly string[]): Halves | undefined {
  const matches = values.map((value) => APPLIED.exec(value))
  const [, hex = '', , total] = matches[0] ?? []
  const count = Number(total ?? 1)
  const agree = matches.every((match) => match?.[1] === hex && match[3] === total)
  return agree && matches.length === count ? parseHex(hex) : undefined
}

/** What is known after a report: how long each digest has been reported is carried over from the one before. */
export function takeReport(
  evidence: Pick<Evidence, 'report' | 'poll'>,
  { everyMs, applied, ready }: Report,
  now: number,
): ReportEvidence {
  const { report: before } = evidence
  const marks = new Map<string, AppliedMark>()
  for (const [endpoint, mark] of applied) {
    const known = before?.applied.get(endpoint)
    const same = known && sameMark(known.mark, mark) ? known : undefined
    const served = evidence.poll(endpoint)
    const isLast = served !== undefined && sameMark(served.mark, mark)
    marks.set(endpoint, {
      mark,
      since: same?.since ?? now,
      revision: isLast ? served.revision : (same?.revision ?? 0),
    })
  }
  const since = ({ id, mark }: Omit<ReadyEntry, 'since'>): number => before?.ready.sinceOf(id, mark) ?? now
  return {
    at: now,
    everyMs,
    applied: marks,
    ready: new ReadyList(ready.map((entry) => ({ ...entry, since: since(entry) }))),
  }
}
