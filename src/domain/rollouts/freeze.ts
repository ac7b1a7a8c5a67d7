// Freezes: stretches of time in which clusters are served nothing new. What they say, and when they are on.
import { pointer } from '../../base/json.ts'
import type { Detail } from '../../base/problem.ts'
import { named } from '../../base/sentences.ts'
import { parseTime } from '../../base/time.ts'
import { BYPASSES, type Bypass } from '../access/permissions.ts'
import { parseSelector } from '../access/selector.ts'
import type { Entry, View } from '../documents/view.ts'
import type { Document, ResourceType, Types } from '../types/resource-type.ts'
import { checkWindow, firstOpen, nextOpening, phaseAt } from './calendar.ts'
import type { Window } from './rollout.ts'

/** The freeze that is the switch: while it is there, no rollout opens anything. */
export const STOPPED_LINE = 'stop-the-line'

export interface Freeze {
  readonly id: string
  /** Clusters that it covers; all of them without it. */
  readonly selector?: string
  /** RFC 3339: the bounds of the freeze, or of the times that its schedule names. */
  readonly from?: string
  readonly until?: string
  readonly cron?: string
  readonly duration_s?: number
  readonly zone?: string
  readonly reason: string
  /** `rollouts`: no wave opens, and writes pass. */
  readonly blocks?: 'changes' | 'rollouts'
  readonly bypass?: Bypass
}

/** Whether a freeze is on at a moment, in milliseconds, and until when it stays so. */
export interface FreezePhase {
  readonly isOn: boolean
  /** Undefined where no end is in sight: of a freeze that is not on, it never will be again. */
  readonly until: number | undefined
}

/** Everything wrong with a freeze that its schema cannot say. */
export function checkFreeze(types: Types, document: Document): Detail[] {
  const freeze = asFreeze(document)
  const { selector, cron, duration_s, zone } = freeze
  const details: Detail[] = []
  const parsed = selector === undefined ? undefined : parseSelector(types, selector)
  if (parsed && !parsed.ok) details.push({ path: '/selector', message: parsed.message })
  details.push(...checkBounds(freeze))
  if (cron === undefined && duration_s !== undefined)
    details.push({ path: '/cron', message: 'is required with duration_s: when the freeze begins each time' })
  if (cron !== undefined && duration_s === undefined)
    details.push({ path: '/duration_s', message: 'is required with cron: how long it freezes each time' })
  if (cron === undefined && zone !== undefined)
    details.push({
      path: '/zone',
      message: 'goes with cron only: from and until say their own offset from UTC',
    })
  if (cron !== undefined) details.push(...checkWindow({ cron, ...(zone !== undefined && { zone }) }))
  if (details.length === 0 && neverFreezes(freeze))
    details.push({ path: '/cron', message: `names no time between from and until: "${cron}"` })
  return details
}

function checkBounds({ from, until }: Freeze): Detail[] {
  const details = Object.entries({ from, until }).flatMap(([field, text]) =>
    text === undefined || parseTime(text) !== undefined
      ? []
      : [{ path: pointer('', field), message: `is no time on the calendar: "${text}"` }],
  )
  if (details.length > 0 || from === undefined || until === undefined) return details
  return Date.parse(from) < Date.parse(until)
    ? []
    : [{ path: '/until', message: `must be after from, which is ${from}` }]
}

/** Without an end, a schedule that names any time at all names one between the bounds. */
function neverFreezes(freeze: Freeze): boolean {
  const window = windowOf(freeze)
  if (!window || freeze.from === undefined || freeze.until === undefined) return false
  const first = firstOpen(window, Date.parse(freeze.from))
  return first === undefined || first >= Date.parse(freeze.until)
}

export function freezePhase(freeze: Freeze, now: number): FreezePhase {
  const from = freeze.from === undefined ? Number.NEGATIVE_INFINITY : Date.parse(freeze.from)
  const end = freeze.until === undefined ? Number.POSITIVE_INFINITY : Date.parse(freeze.until)
  const off = (until: number | undefined): FreezePhase => ({
    isOn: false,
    until: until !== undefined && until < end ? until : undefined,
  })
  if (now >= end) return off(undefined)
  const window = windowOf(freeze)
  if (now < from) return off(window ? firstOpen(window, from) : from)
  const phase = window && phaseAt(window, now)
  if (window && phase && !phase.isOpen) return off(nextOpening(window, now))
  const until = Math.min(end, phase?.until ?? Number.POSITIVE_INFINITY)
  return { isOn: true, until: Number.isFinite(until) ? until : undefined }
}

/** The first moment from `now` on at which none of some freezes is on; undefined where none is in sight. */
export function thawOf(freezes: readonly Freeze[], now: number): number | undefined {
  let at = now
  // Freezes may follow each other without a gap.
  for (let i = 0; i < MAX_FOLLOWING; i++) {
    const on = freezes.map((freeze) => freezePhase(freeze, at)).filter(({ isOn }) => isOn)
    if (on.length === 0) return at
    const ends = on.map(({ until }) => until ?? Number.POSITIVE_INFINITY)
    at = Math.max(...ends)
    if (at === Number.POSITIVE_INFINITY) return undefined
  }
  return undefined
}

const MAX_FOLLOWING = 100

function windowOf({ cron, duration_s, zone }: Freeze): Window | undefined {
  if (cron === undefined || duration_s === undefined) return undefined
  return { cron, duration_s, ...(zone !== undefined && { zone }) }
}

/** A freeze with the clusters that it covers. */
export interface KnownFreeze {
  readonly freeze: Freeze
  covers(cluster: Document): boolean
}

/** `freeze "year-end" (Nobody is here.)`, or several. */
export function nameFreezes(freezes: readonly Freeze[]): string {
  const texts = freezes.map(({ id, reason }) => `"${id}" (${reason})`)
  return `freeze${texts.length === 1 ? '' : 's'} ${named(texts)}`
}

/** Who may pass all of some freezes. */
export function bypassOf(freezes: readonly Freeze[]): Bypass {
  const strictest = freezes.map(({ bypass = 'admin' }) => BYPASSES.indexOf(bypass))
  return BYPASSES[Math.max(0, ...strictest)] as Bypass
}

const known = new WeakMap<Entry, KnownFreeze>()

/** All freezes, on or not. There are few of them, and mostly none. */
export function freezesIn(types: Types, view: View): readonly KnownFreeze[] {
  const type = freezeType(types)
  if (!type || view.count(type.name) === 0) return []
  return [...view.all(type.name)].map((entry) => knownFreeze(types, entry))
}

export function freezeType(types: Types): ResourceType | undefined {
  return types.all.find(({ rules }) => rules === 'freeze')
}

function knownFreeze(types: Types, entry: Entry): KnownFreeze {
  let found = known.get(entry)
  if (!found) {
    const freeze = asFreeze(entry.document)
    const parsed = freeze.selector === undefined ? undefined : parseSelector(types, freeze.selector)
    // A selector that cannot be read any more covers everything: a freeze never ends by itself.
    const covers = parsed?.ok ? parsed.selector.matches : () => true
    found = { freeze, covers }
    known.set(entry, found)
  }
  return found
}

function asFreeze(document: Document): Freeze {
  return document as unknown as Freeze
}
