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
  /**
   * Of a cluster with many components: the report is about those alone whose hashed id begins with these hexadecimal
   * digits. Empty where it is about all.
   */
  readonly part: string
}

/** Longer intervals are a mistake: Flux polls at least once a day. */
export const MAX_EVERY_S = 86_400
/** A resource type may be made by several ResourceSets: `<digest>:1/2` is what the first of two has applied. */
const APPLIED = /^([0-9a-f]{16})(?::([1-9])\/([1-9]))?$/
const PART = /^[0-9a-f]{1,2}$/
const A_DIGEST = 'must be the digest of an answer, 16 lower-case hexadecimal digits'

/** Whether some digits name a part of what a cluster reports on. */
export function isPart(text: string): boolean {
  return PART.test(text)
}

/** Keys that no endpoint has are ignored: a newer bundle may send more. */
export function parseReport(types: Types, query: string): Result<Report> {
  const reading = new Reading(types)
  for (const [key, value] of new URLSearchParams(query)) {
    if (reading.details.length > MAX_FOUND) break
    reading.take(key, value)
  }
  const { details, everyMs, part, ready } = reading
  return details.length > 0
    ? invalid(details)
    : succeed({ everyMs, part, applied: reading.applied(), ready: unambiguous(ready) })
}

class Reading {
  readonly details: Detail[] = []
  readonly ready: Report['ready'][number][] = []
  everyMs = 0
  part = ''
  readonly #types: Types
  readonly #marks = new Map<string, RegExpExecArray[]>()

  constructor(types: Types) {
    this.#types = types
  }

  take(key: string, value: string): void {
    if (key === 'ready') this.#takeReady(value)
    else if (key === 'every') this.#takeEvery(value)
    else if (key === 'part') {
      if (isPart(value)) this.part = value
      else this.#refuse(key, 'must be one or two hexadecimal digits')
    } else if (this.#types.byEndpoint(key)) {
      const mark = APPLIED.exec(value)
      if (!mark) this.#refuse(key, A_DIGEST)
      else this.#marks.set(key, [...(this.#marks.get(key) ?? []), mark])
    }
  }

  /**
   * The digest that all parts of each type have applied. While a type has two, the mark of the answer before is still
   * being removed: nothing is known then.
   */
  applied(): ReadonlyMap<string, Halves> {
    const applied = new Map<string, Halves>()
    for (const [endpoint, marks] of this.#marks) {
      const [, hex = '', , total] = marks[0] ?? []
      const agree = marks.every((mark) => mark[1] === hex && mark[3] === total)
      const parts = new Set(marks.map((mark) => mark[2]))
      const mark = agree && parts.size === Number(total ?? 1) ? parseHex(hex) : undefined
      if (mark) applied.set(endpoint, mark)
    }
    return applied
  }

  #takeReady(value: string): void {
    const colon = value.lastIndexOf(':')
    const mark = parseHex(value.slice(colon + 1))
    if (colon < 1 || !mark)
      this.#refuse('ready', `is "${value.slice(0, 100)}": it must be <component>:<digest>`)
    else this.ready.push({ id: value.slice(0, colon), mark })
  }

  #takeEvery(value: string): void {
    const seconds = /^\d{1,6}$/.test(value) ? Number(value) : 0
    if (seconds < 1 || seconds > MAX_EVERY_S)
      this.#refuse('every', `must be seconds, from 1 to ${MAX_EVERY_S}`)
    this.everyMs = seconds * 1000
  }

  #refuse(key: string, message: string): void {
    this.details.push({ path: `?${key}`, message })
  }
}

/** Of a component that is reported with two digests, the mark of the one before is still being removed. */
function unambiguous(ready: Report['ready']): Report['ready'] {
  const marks = new Map<string, Halves>()
  const twice = new Set<string>()
  for (const { id, mark } of ready) {
    const known = marks.get(id)
    if (known && !sameMark(known, mark)) twice.add(id)
    marks.set(id, mark)
  }
  return [...marks].filter(([id]) => !twice.has(id)).map(([id, mark]) => ({ id, mark }))
}

/**
 * What is known after a report. How long each digest has been reported is carried over from the report before, and so is
 * what a report of a part does not speak of; `inPart` says which components it does.
 */
export function takeReport(
  evidence: Pick<Evidence, 'report' | 'poll'>,
  { everyMs, applied, ready, part }: Report,
  now: number,
  inPart: (component: string) => boolean,
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
  const reported = ready.map(
    ({ id, mark }): ReadyEntry => ({ id, mark, since: before?.ready.sinceOf(id, mark) ?? now }),
  )
  const others = [...(before?.ready.entries() ?? [])].filter(({ id }) => !inPart(id))
  return {
    at: now,
    everyMs,
    applied: marks,
    ready: new ReadyList([...reported, ...others]),
    ...(part !== '' && { parts: withPart(before?.parts, part, now) }),
  }
}

/** A part takes the place of those that it holds, or is held by: the cluster reports in other parts since. */
function withPart(
  before: ReadonlyMap<string, number> | undefined,
  part: string,
  now: number,
): ReadonlyMap<string, number> {
  const others = [...(before ?? [])].filter(([other]) => !other.startsWith(part) && !part.startsWith(other))
  return new Map([...others, [part, now]])
}
