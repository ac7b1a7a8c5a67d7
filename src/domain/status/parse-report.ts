// A cluster's report of what it has applied: the query of the URL that its marks make.
import { type Halves, parseHex } from '../../base/digest.ts'
import { getOrSet } from '../../base/get-or-set.ts'
import { type Detail, invalid, MAX_FOUND, type Result, succeed } from '../../base/problem.ts'
import type { Types } from '../types/resource-type.ts'
import { type AppliedMark, type Evidence, type ReportEvidence, sameMark } from './evidence.ts'
import { type ReadyEntry, ReadyList } from './ready-list.ts'

export interface Report {
  /** 0 when the cluster does not say how often it polls. */
  readonly everyMs: number
  /** The digests of applied answers, by endpoint: of several, all but one are of marks that are still there. */
  readonly applied: ReadonlyMap<string, readonly Halves[]>
  /** A component may be there several times, likewise. */
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
const READY = 'ready='
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
  return details.length > 0 ? invalid(details) : succeed({ everyMs, part, ready, applied: reading.applied() })
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

  /** The digests that all parts of each type have applied. */
  applied(): Report['applied'] {
    const applied = new Map<string, Halves[]>()
    for (const [endpoint, marks] of this.#marks) {
      const parts = new Map<string, Set<string | undefined>>()
      for (const [, hex = '', part, total = '1'] of marks)
        getOrSet(parts, `${hex}/${total}`, () => new Set()).add(part)
      const whole = [...parts].filter(([key, { size }]) => size === Number(key.slice(17)))
      applied.set(
        endpoint,
        whole.flatMap(([key]) => parseHex(key.slice(0, 16)) ?? []),
      )
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
  const leftovers = new Map([...(before?.leftovers ?? [])].filter(([key]) => isElsewhere(key, inPart)))
  const choose = (key: string, marks: readonly Halves[], known: Halves | undefined): Halves | undefined => {
    const chosen = chooseMark(marks, known, before?.leftovers?.get(key) ?? [])
    if (chosen.leftovers.length > 0) leftovers.set(key, chosen.leftovers)
    return chosen.mark
  }
  const marks = new Map<string, AppliedMark>()
  for (const [endpoint, reported] of applied) {
    const known = before?.applied.get(endpoint)
    const mark = choose(endpoint, reported, known?.mark)
    if (!mark) continue
    const same = known && sameMark(known.mark, mark) ? known : undefined
    const served = evidence.poll(endpoint)
    const isLast = served !== undefined && sameMark(served.mark, mark)
    marks.set(endpoint, {
      mark,
      since: same?.since ?? now,
      revision: isLast ? served.revision : (same?.revision ?? 0),
    })
  }
  const reported: ReadyEntry[] = []
  for (const [id, marksOf] of byComponent(ready)) {
    const mark = choose(`${READY}${id}`, marksOf, before?.ready.markOf(id))
    if (mark) reported.push({ id, mark, since: before?.ready.sinceOf(id, mark) ?? now })
  }
  const others = [...(before?.ready.entries() ?? [])].filter(({ id }) => !inPart(id))
  return {
    at: now,
    everyMs,
    applied: marks,
    ready: new ReadyList([...reported, ...others]),
    ...(part !== '' && { parts: withPart(before?.parts, part, now) }),
    ...(leftovers.size > 0 && { leftovers }),
  }
}

/** Whether leftovers are of a component that a report of a part does not speak of. */
function isElsewhere(key: string, inPart: (component: string) => boolean): boolean {
  return key.startsWith(READY) && !inPart(key.slice(READY.length))
}

function byComponent(ready: Report['ready']): ReadonlyMap<string, Halves[]> {
  const marks = new Map<string, Halves[]>()
  for (const { id, mark } of ready) getOrSet(marks, id, () => []).push(mark)
  return marks
}

/**
 * Which of the marks that are reported of one thing is true. The Flux Operator may forget to remove the mark from before,
 * for good, where it takes in two answers within a second. So one that another has taken the place of counts no more until
 * it has gone. Nothing is known where several came at once.
 */
function chooseMark(
  marks: readonly Halves[],
  known: Halves | undefined,
  left: readonly Halves[],
): { readonly mark: Halves | undefined; readonly leftovers: readonly Halves[] } {
  const leftovers = left.filter((each) => includesMark(marks, each))
  const fresh: Halves[] = []
  for (const mark of marks) if (!includesMark(leftovers, mark) && !includesMark(fresh, mark)) fresh.push(mark)
  if (fresh.length <= 1) return { mark: fresh[0], leftovers }
  const added = fresh.filter((mark) => known && !sameMark(mark, known))
  return fresh.length === 2 && known && added.length === 1
    ? { mark: added[0], leftovers: [...leftovers, known] }
    : { mark: undefined, leftovers }
}

function includesMark(marks: readonly Halves[], mark: Halves): boolean {
  return marks.some((each) => sameMark(each, mark))
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
