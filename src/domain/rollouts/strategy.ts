// Strategies: the waves of a rollout as they are asked for, what is wrong with them, and the one that is built in.
import { pointer } from '../../base/json.ts'
import type { Detail } from '../../base/problem.ts'
import { parseTime } from '../../base/time.ts'
import { isSecure } from '../../base/urls.ts'
import { parseSelector } from '../access/selector.ts'
import { below } from '../documents/parse-document.ts'
import type { Document, Types } from '../types/resource-type.ts'
import { checkWindow } from './calendar.ts'
import type { CheckSpec, Gates, Strategy, WaveSpec } from './rollout.ts'

/** The resource type of strategies. */
export const STRATEGIES = 'strategies'
/** The name of the strategy that is always there; a document of that id replaces it. */
export const DEFAULT_STRATEGY_ID = 'default'

/** What says who is in a wave, exactly one of these, and what each takes. */
const CHOICES = {
  selector: 'a label selector',
  percent: 'a share of what is left',
  count: 'a number of what is left',
  clusters: 'a list of ids',
  rest: 'true',
} satisfies { readonly [choice in keyof WaveSpec]?: string }
const CHOICE_NAMES = Object.keys(CHOICES) as (keyof typeof CHOICES)[]

/** What a wave asks for that names no share: to be served a change says nothing of it. */
const DEFAULT_SHARE: Gates = { applied_percent: 100 }
const SHARES = ['served_percent', 'applied_percent', 'healthy_percent'] as const satisfies (keyof Gates)[]
/** After this long, absent members are set aside. */
export const DEFAULT_DEADLINE_S = 3600

const TIER: Gates = { applied_percent: 90, failures: '10%', soak_s: 300 }
const SHARE: Gates = { applied_percent: 95, failures: '2%', soak_s: 600 }

export const DEFAULT_STRATEGY: Strategy = {
  waves: [
    { name: 'dev', selector: 'environment=dev', gates: TIER },
    { name: 'qa', selector: 'environment=qa', gates: TIER },
    { name: 'uat', selector: 'environment=uat', gates: TIER },
    {
      name: 'canary',
      count: 1,
      gates: { applied_percent: 100, healthy_percent: 100, failures: 0, soak_s: 600 },
    },
    { name: '10-percent', percent: 10, gates: SHARE },
    { name: '50-percent', percent: 50, gates: SHARE },
    { name: 'rest', rest: true, gates: { applied_percent: 95, failures: '2%' } },
  ],
}

/** The gates of a wave, with those that it does not name itself. */
export function gatesOf({ gates = {} }: WaveSpec): Gates {
  const hasShare = SHARES.some((kind) => gates[kind] !== undefined)
  return { ...(hasShare ? {} : DEFAULT_SHARE), failures: 0, ...gates }
}

export function asStrategy(document: Document): Strategy {
  const { id: _, description: __, ...strategy } = document
  return strategy as unknown as Strategy
}

/** How many of some members may fail. */
export function allowedFailures({ failures = 0 }: Gates, members: number): number {
  if (typeof failures === 'number') return failures
  return Math.floor((Number.parseFloat(failures) * members) / 100)
}

/** How many of some members a percentage comes to. */
export function neededOf(percent: number, members: number): number {
  return Math.ceil((percent * members) / 100 - 1e-9)
}

/** Everything wrong with a strategy that its schema cannot say. */
export function checkStrategy(types: Types, { waves }: Strategy, path = ''): Detail[] {
  const details: Detail[] = []
  const names = new Set<string>()
  const named = new Map<string, string>()
  let share = 0
  for (const [i, wave] of waves.entries()) {
    const at = pointer(pointer(path, 'waves'), i)
    if (names.has(wave.name)) details.push({ path: `${at}/name`, message: `is used twice: "${wave.name}"` })
    names.add(wave.name)
    details.push(...checkWave(types, wave, at))
    if (wave.rest && i < waves.length - 1)
      details.push({
        path: `${at}/rest`,
        message: 'must be the last wave: nothing is left for those after it',
      })
    const { percent = share + 1 } = wave
    if (percent <= share)
      details.push({
        path: `${at}/percent`,
        message: `is ${percent}, and an earlier wave goes to ${share} already: each share includes those before it, so it must be more`,
      })
    share = wave.percent === undefined ? share : Math.max(share, percent)
    for (const [j, id] of (wave.clusters ?? []).entries()) {
      const before = named.get(id)
      if (before !== undefined)
        details.push({
          path: `${at}/clusters/${j}`,
          message: `names "${id}", which is in wave "${before}" already`,
        })
      named.set(id, wave.name)
    }
  }
  return details
}

function checkWave(types: Types, wave: WaveSpec, at: string): Detail[] {
  const { selector, start_at, window, gates } = wave
  const parsed = selector === undefined ? undefined : parseSelector(types, selector)
  return [
    ...checkChoice(wave, at),
    ...(parsed && !parsed.ok ? [{ path: `${at}/selector`, message: parsed.message }] : []),
    ...(start_at !== undefined && parseTime(start_at) === undefined
      ? [{ path: `${at}/start_at`, message: `is no time on the calendar: "${start_at}"` }]
      : []),
    ...(window ? below(`${at}/window`, checkWindow(window)) : []),
    ...checkChecks(gates?.checks ?? [], `${at}/gates/checks`),
  ]
}

function checkChoice(wave: WaveSpec, path: string): Detail[] {
  const given = CHOICE_NAMES.filter((choice) => wave[choice] !== undefined)
  if (given.length === 1) return []
  const choices = CHOICE_NAMES.map((choice) => `${choice} (${CHOICES[choice]})`).join(', ')
  const message =
    given.length === 0
      ? `says nothing about who is in it: give one of ${choices}`
      : `has ${given.join(' and ')}: give only one of ${CHOICE_NAMES.join(', ')}`
  return [{ path, message }]
}

function checkChecks(checks: readonly CheckSpec[], path: string): Detail[] {
  const names = checks.map(({ name }) => name)
  return checks.flatMap(({ name, url }, i) => [
    ...(names.indexOf(name) < i ? [{ path: `${path}/${i}/name`, message: `is used twice: "${name}"` }] : []),
    ...(url === undefined ? [] : checkUrl(url, `${path}/${i}/url`)),
  ])
}

function checkUrl(text: string, path: string): Detail[] {
  const url = URL.parse(text)
  if (!url || url.username || url.password || url.hash)
    return [
      { path, message: 'must be a URL such as https://ci.example.com/checks, without user or fragment' },
    ]
  return isSecure(url) ? [] : [{ path, message: 'must be an https:// URL, or http:// on this machine' }]
}
