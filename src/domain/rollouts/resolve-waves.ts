// From the waves of a strategy to the clusters in each: resolved once, so that nobody drifts in or out unseen.
import { Digester } from '../../base/digest.ts'
import { type Detail, invalid, type Result, succeed } from '../../base/problem.ts'
import { named } from '../../base/sentences.ts'
import type { Steps } from '../../base/steps.ts'
import { parseSelector } from '../access/selector.ts'
import type { View } from '../documents/view.ts'
import type { Document, Types } from '../types/resource-type.ts'
import type { Strategy, WaveSpec } from './rollout.ts'
import { neededOf } from './strategy.ts'

export interface ResolvedWave {
  readonly spec: WaveSpec
  /** In the order in which they are opened. */
  readonly members: readonly string[]
}

export interface ResolvedWaves {
  readonly waves: readonly ResolvedWave[]
  readonly warnings: readonly string[]
}

/** The wave of clusters that no other takes. */
const REST: WaveSpec = { name: 'rest', rest: true }

/**
 * Divides the affected clusters among the waves. A cluster goes into the first wave that takes it. `path` points at the
 * waves in what was sent; it is undefined where they were not sent now.
 */
export function* resolveWaves(
  types: Types,
  view: View,
  { waves, unmatched = 'rest' }: Strategy,
  affected: Iterable<string>,
  path: string | undefined,
): Steps<Result<ResolvedWaves>> {
  const clusters = types.cluster.type.name
  const remaining = new Remaining()
  for (const id of affected) {
    yield
    remaining.add(id)
  }
  remaining.sort()
  const resolved: ResolvedWave[] = []
  const warnings: string[] = []
  const details: Detail[] = []
  const empty: string[] = []
  for (const [i, spec] of waves.entries()) {
    yield
    const at = `${path}/${i}`
    const members = remaining.take(spec, (id) => view.get(clusters, id)?.document, types)
    // Members may have been deleted since a rollout was started that is amended now.
    for (const [j, id] of (path === undefined ? [] : (spec.clusters ?? [])).entries())
      if (!view.get(clusters, id))
        details.push({ path: `${at}/clusters/${j}`, message: `names no live cluster: "${id}"` })
    resolved.push({ spec, members })
    const isMember = new Set(members)
    const others = (spec.clusters ?? []).filter((id) => !isMember.has(id))
    if (others.length > 0)
      warnings.push(`wave "${spec.name}" names clusters that the change does not reach: ${named(others)}`)
    if (members.length > 0) continue
    if (yield* matchesAny(types, view, spec)) empty.push(`"${spec.name}"`)
    else warnings.push(`wave "${spec.name}" is skipped: no cluster of the fleet matches ${spec.selector}`)
  }
  if (details.length > 0) return invalid(details)
  if (empty.length === 1) warnings.push(`wave ${empty} has no members, and is skipped`)
  if (empty.length > 1) warnings.push(`waves ${named(empty)} have no members, and are skipped`)
  const left = remaining.take(REST, () => undefined, types)
  if (left.length > 0 && unmatched === 'refuse')
    return invalid(
      [{ path: path ?? '', message: `leaves ${left.length} clusters in no wave: ${named(left)}` }],
      'no_match',
    )
  if (left.length > 0) resolved.push({ spec: nameless(REST, waves), members: left })
  return succeed({ waves: resolved, warnings })
}

/** Whether the selector of a wave, if it has one, is of any cluster at all. */
function* matchesAny(types: Types, view: View, { selector }: WaveSpec): Steps<boolean> {
  const parsed = selector === undefined ? undefined : parseSelector(types, selector)
  if (!parsed?.ok) return true
  for (const { document } of view.all(types.cluster.type.name)) {
    yield
    if (parsed.selector.matches(document)) return true
  }
  return false
}

/** The first wave that takes a cluster that joins later, by index; undefined when none does by its own words. */
export function waveFor(types: Types, specs: readonly WaveSpec[], cluster: Document): number {
  const found = specs.findIndex(({ selector, clusters, rest }) => {
    if (rest) return true
    if (clusters) return clusters.includes(cluster.id)
    const parsed = selector === undefined ? undefined : parseSelector(types, selector)
    return parsed?.ok === true && parsed.selector.matches(cluster)
  })
  return found < 0 ? specs.length - 1 : found
}

/** A name that no wave of the strategy has. */
function nameless(spec: WaveSpec, waves: readonly WaveSpec[]): WaveSpec {
  const taken = new Set(waves.map(({ name }) => name))
  let name = spec.name
  for (let i = 2; taken.has(name); i++) name = `${spec.name}-${i}`
  return { ...spec, name }
}

/** Clusters that no wave has taken yet, in an order that depends on nothing but their ids. */
class Remaining {
  #ids: string[] = []
  /** Taken by waves of percentages, which count themselves among what they take their share of. */
  #shared = 0

  add(id: string): void {
    this.#ids.push(id)
  }

  sort(): void {
    const ranks = new Map(this.#ids.map((id) => [id, rankOf(id)]))
    const rank = (id: string): number => ranks.get(id) as number
    this.#ids.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
  }

  take(spec: WaveSpec, documentOf: (id: string) => Document | undefined, types: Types): string[] {
    if (spec.percent !== undefined) return this.#takeShare(spec.percent)
    if (spec.count !== undefined) return this.#ids.splice(0, spec.count)
    if (spec.rest) return this.#ids.splice(0)
    const chosen = spec.clusters && new Set(spec.clusters)
    const parsed = spec.selector === undefined ? undefined : parseSelector(types, spec.selector)
    const matches = (id: string): boolean => {
      if (chosen) return chosen.has(id)
      const document = parsed?.ok ? documentOf(id) : undefined
      return parsed?.ok === true && document !== undefined && parsed.selector.matches(document)
    }
    const taken = this.#ids.filter(matches)
    const isTaken = new Set(taken)
    this.#ids = this.#ids.filter((id) => !isTaken.has(id))
    return taken
  }

  /** Shares nest: 10 % and then 50 % are a tenth, and another four tenths. */
  #takeShare(percent: number): string[] {
    const wanted = neededOf(percent, this.#ids.length + this.#shared) - this.#shared
    const taken = this.#ids.splice(0, Math.max(0, wanted))
    this.#shared += taken.length
    return taken
  }
}

/** A number that looks random and is the same for an id everywhere and always. */
function rankOf(id: string): number {
  let { b: mixed } = new Digester().addText(id)
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
