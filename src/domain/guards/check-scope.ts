// What a write may do under a grant: it touches and affects only clusters and types of the grant's scope.
import { forbidden, type Problem } from '../../base/problem.ts'
import { named } from '../../base/sentences.ts'
import type { Steps } from '../../base/steps.ts'
import type { Grant } from '../access/grant.ts'
import { leastRoleWith, may } from '../access/permissions.ts'
import { parseSelector, type Selector } from '../access/selector.ts'
import type { Comparison } from '../delivery/compare-served.ts'
import type { Change, Entry, View } from '../documents/view.ts'
import { HOLDS } from '../rollouts/hold.ts'
import { dnsOf, type Types } from '../types/resource-type.ts'
import { typesTouched } from '../types/types-touched.ts'
import { refuseHeld } from './refuse-held.ts'
import { refuseRollouts } from './refuse-rollouts.ts'

/** What is committed: of a rollout, not its changes but the documents that keep it. */
export interface Committed {
  readonly served: Comparison
  readonly committed: readonly Change[]
}

/** Returns why the changes of a write go beyond a grant; undefined when they do not. */
export function* checkScope(
  grant: Grant,
  comparison: Comparison,
  changes: readonly Change[],
  { served, committed }: Committed = { served: comparison, committed: changes },
): Steps<Problem | undefined> {
  if (!may(grant, 'write')) {
    if (may(grant, 'own_hold') && changes.every((change) => isOwnHold(grant, change))) return undefined
    return forbidden('needs_editor', `the role ${grant.role} may not write`)
  }
  const purged = may(grant, 'purge') ? undefined : refusePurge(comparison.types, changes)
  if (may(grant, 'write_any')) return purged
  const { selector: text, types: allowed } = grant
  const parsed = text === undefined ? undefined : parseSelector(comparison.types, text)
  if (parsed && !parsed.ok)
    return forbidden(
      'invalid_scope',
      `your scope, the clusters (${text}), cannot be read any more: it ${parsed.message}`,
    )
  const scope = { selector: parsed?.selector, types: allowed }
  return (
    purged ??
    refuseFleetWide(grant, comparison.types, changes) ??
    refuseTypes(grant, comparison.types, changes) ??
    refuseRollouts(scope, served, committed) ??
    (yield* refuseClusters(scope.selector, comparison, changes)) ??
    (yield* refuseHeld(scope, comparison, changes))
  )
}

function isOwnHold({ cluster }: Grant, { type, id }: Change): boolean {
  return type === HOLDS && id === cluster
}

function refusePurge({ cluster }: Types, changes: readonly Change[]): Problem | undefined {
  const { name, singular } = cluster.type
  const purged = changes.filter(({ type, before, after }) => type === name && before && !after)
  if (purged.length === 0) return undefined
  return forbidden(
    'purge_needs_admin',
    `this leaves no trace of ${singular} ${named(purged.map(({ id }) => id))}, which only the role ${leastRoleWith('purge')} may: delete without purge`,
    purged.map(({ id }) => ({ path: `/${name}/${id}`, message: 'would be purged' })),
  )
}

/** Documents that decide about the whole fleet, for callers whose scope is a part of it. */
function refuseFleetWide(grant: Grant, types: Types, changes: readonly Change[]): Problem | undefined {
  if (grant.selector === undefined) return undefined
  const wide = changes.filter(({ type }) => types.get(type)?.isFleetWide)
  if (wide.length === 0) return undefined
  return forbidden(
    'out_of_scope',
    `this decides about the whole fleet, and your scope is the clusters (${grant.selector})`,
    wide.map(({ type, id }) => ({ path: `/${type}/${id}`, message: 'is of a type that no scope covers' })),
  )
}

function refuseTypes(
  { types: allowed }: Grant,
  types: Types,
  changes: readonly Change[],
): Problem | undefined {
  if (!allowed) return undefined
  const details = changes.flatMap((change) => {
    // A system type without a resource file: an editor changes only what goes with a cluster, such as its tokens.
    if (!types.get(change.type)) return []
    const foreign = typesTouched(types, change).filter((name) => !allowed.includes(name))
    return foreign.map((name) => ({
      path: `/${change.type}/${change.id}`,
      message: name === change.type ? `is of the type ${name}` : `would be changed in what it has of ${name}`,
    }))
  })
  if (details.length === 0) return undefined
  return forbidden('out_of_scope', `this goes beyond your scope, the types ${allowed.join(', ')}`, details)
}

/** Clusters as they are and as they would be must match: nobody moves one in or out of their scope. */
function* refuseClusters(
  selector: Selector | undefined,
  comparison: Comparison,
  changes: readonly Change[],
): Steps<Problem | undefined> {
  if (!selector) return undefined
  const { text } = selector
  const live = yield* touchedOutside(selector, comparison, changes)
  const deleted = yield* restoredOutside(selector, comparison, live)
  if (live.size + deleted.size === 0) return undefined
  const reasons = [
    ...(live.size > 0 ? [`touches ${outside(live, 'cluster', text)}: ${named([...live].sort())}`] : []),
    ...(deleted.size > 0
      ? [
          `changes what ${outside(deleted, 'deleted cluster', text)} would receive if restored: ${named([...deleted].sort())}`,
        ]
      : []),
  ]
  const { name } = comparison.types.cluster.type
  return forbidden(
    'out_of_scope',
    `this ${reasons.join('; it ')}`,
    [...live, ...deleted].sort().map((id) => ({
      path: `/${name}/${id}`,
      message: live.has(id)
        ? 'is outside your scope'
        : 'is a deleted cluster outside your scope, and would receive something else if it were restored',
    })),
  )
}

function outside({ size }: ReadonlySet<string>, noun: string, scope: string): string {
  return `${size} ${noun}${size === 1 ? '' : 's'} outside your scope (${scope})`
}

function* touchedOutside(
  selector: Selector,
  comparison: Comparison,
  changes: readonly Change[],
): Steps<Set<string>> {
  const { types, before } = comparison
  const { name } = types.cluster.type
  const found = new Set<string>()
  for (const change of changes) {
    yield
    if (change.type !== name) continue
    const documents = [change.before?.document, change.after?.document]
    if (documents.some((document) => document && !selector.matches(document))) found.add(change.id)
    for (const { id, document } of predecessors(types, before, change))
      if (!selector.matches(document)) found.add(id)
  }
  for (const candidate of comparison.candidates()) {
    yield
    const { id } = candidate
    const cluster = before.get(name, id)
    if (!cluster || selector.matches(cluster.document) || found.has(id)) continue
    if (comparison.compare(candidate).length > 0) found.add(id)
  }
  return found
}

/** Deleted clusters outside the scope that would receive something different if they were restored. */
function* restoredOutside(
  selector: Selector,
  comparison: Comparison,
  known: ReadonlySet<string>,
): Steps<Set<string>> {
  const found = new Set<string>()
  for (const tombstone of comparison.restorable()) {
    yield
    if (known.has(tombstone.id) || selector.matches(tombstone.document)) continue
    if (comparison.compareRestored(tombstone).length > 0) found.add(tombstone.id)
  }
  return found
}

/**
 * Deleted clusters that still poll under a DNS name which the change gives to another: they would receive its inputs.
 */
function predecessors({ cluster }: Types, before: View, { after }: Change): readonly Entry[] {
  if (!after || after.deleted) return []
  const dns = dnsOf(cluster, after.document)
  return before.dnsHolder(dns) ? [] : before.tombstonesWithDns(dns)
}
