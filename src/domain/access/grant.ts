// What a caller may do: a role, for an editor inside a scope, and what a write may touch under it.

import { type Detail, forbidden, type Problem } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import type { Comparison } from '../delivery/impact.ts'
import type { Change, Entry, View } from '../documents/view.ts'
import { named } from '../guards/brake.ts'
import { refuseHeld } from '../guards/refuse-held.ts'
import { dnsOf, type Types } from '../types/resource-type.ts'
import { typesTouched } from '../types/types-touched.ts'
import { parseSelector, type Selector } from './selector.ts'

/** Each may do what those before it may, but for copying the log; `cluster` only for one cluster. */
export const ROLES = ['cluster', 'poller', 'mirror', 'viewer', 'editor', 'admin'] as const
export type Role = (typeof ROLES)[number]

/** What each role may do, to be read after its name. */
export const ROLE_MEANINGS: Readonly<Record<Role, string>> = {
  cluster: 'polls for one cluster',
  poller: 'polls for every cluster',
  mirror: 'copies the log, all of it or what its selector leaves',
  viewer: 'reads everything',
  editor: 'writes inside its scope',
  admin: 'may do everything',
}

/** What a role can be limited by. */
export const SCOPES: Readonly<Record<Role, readonly (keyof Omit<Grant, 'role'>)[]>> = {
  cluster: ['cluster'],
  poller: [],
  mirror: ['selector'],
  viewer: [],
  editor: ['selector', 'types'],
  admin: [],
}

export interface Grant {
  readonly role: Role
  /** Of the role cluster: the id of the one that it polls for. */
  readonly cluster?: string
  /** Of an editor: only what touches clusters that match, and no others. Of a mirror: only these clusters are copied. */
  readonly selector?: string
  /** Of an editor: only documents of these types; what a cluster is assigned counts as the type of that. */
  readonly types?: readonly string[]
}

/** Copies hold what nobody else gets to see, and neither viewers nor editors need it. */
export function mayMirror({ role }: Grant): boolean {
  return role === 'mirror' || role === 'admin'
}

export function reaches(grant: Grant, role: Role): boolean {
  return ROLES.indexOf(grant.role) >= ROLES.indexOf(role)
}

/** Which clusters and types; nothing where there is no limit. */
export function scopeOf({ cluster, selector, types }: Grant): string {
  const parts = [cluster, selector !== undefined && `(${selector})`, types?.join(',')]
  return parts.filter(Boolean).join(' ')
}

export function describeGrant(grant: Grant): string {
  const scope = scopeOf(grant)
  return `role ${grant.role}${scope ? ` for ${scope}` : ''}`
}

/** Everything wrong with a grant; a cluster that it names must be there. */
export function checkGrant(types: Types, view: View | undefined, grant: Grant): Detail[] {
  const { role, cluster, selector, types: names } = grant
  const details: Detail[] = []
  const clusters = types.cluster.type
  if (role === 'cluster' && cluster === undefined)
    details.push({ path: '/cluster', message: 'is required for the role cluster: the id of the cluster' })
  const takes = SCOPES[role]
  if (cluster !== undefined && !takes.includes('cluster'))
    details.push({ path: '/cluster', message: `goes with the role cluster only, not with ${role}` })
  else if (cluster !== undefined && view && !view.get(clusters.name, cluster))
    details.push({ path: '/cluster', message: `names an unknown ${clusters.singular} "${cluster}"` })
  if (selector !== undefined && !takes.includes('selector'))
    details.push({
      path: '/selector',
      message: `goes with the roles editor and mirror only, not with ${role}`,
    })
  if (names !== undefined && !takes.includes('types'))
    details.push({ path: '/types', message: `goes with the role editor only, not with ${role}` })
  const parsed = selector === undefined ? undefined : parseSelector(types, selector)
  if (parsed && !parsed.ok) details.push({ path: '/selector', message: parsed.message })
  const known = types.all.map(({ name }) => name)
  for (const [i, name] of (names ?? []).entries()) {
    if (!known.includes(name))
      details.push({ path: `/types/${i}`, message: `is an unknown type: known are ${known.join(', ')}` })
  }
  return details
}

/** Why the changes of a write go beyond a grant; nothing when they do not. */
export function* refuseBeyond(
  grant: Grant,
  comparison: Comparison,
  changes: readonly Change[],
): Steps<Problem | undefined> {
  if (grant.role === 'admin') return undefined
  if (grant.role !== 'editor') return forbidden('needs_editor', `the role ${grant.role} may not write`)
  const { selector: text, types: allowed } = grant
  const parsed = text === undefined ? undefined : parseSelector(comparison.types, text)
  if (parsed && !parsed.ok)
    return forbidden(
      'invalid_scope',
      `your scope, the clusters (${text}), cannot be read any more: it ${parsed.message}`,
    )
  const scope = { selector: parsed?.selector, types: allowed }
  return (
    refusePurge(comparison.types, changes) ??
    refuseTypes(grant, comparison.types, changes) ??
    (yield* refuseClusters(scope.selector, comparison, changes)) ??
    (yield* refuseHeld(scope, comparison, changes))
  )
}

function refusePurge({ cluster }: Types, changes: readonly Change[]): Problem | undefined {
  const { name, singular } = cluster.type
  const purged = changes.filter(({ type, before, after }) => type === name && before && !after)
  if (purged.length === 0) return undefined
  return forbidden(
    'purge_needs_admin',
    `this leaves no trace of ${singular} ${named(purged.map(({ id }) => id))}, which only the role admin may: delete without purge`,
    purged.map(({ id }) => ({ path: `/${name}/${id}`, message: 'would be purged' })),
  )
}

function refuseTypes(
  { types: allowed }: Grant,
  types: Types,
  changes: readonly Change[],
): Problem | undefined {
  if (!allowed) return undefined
  const details = changes.flatMap((change) => {
    // Tokens are of no type: none but those of a cluster whose id is taken over are changed by an editor.
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
  for (const id of comparison.candidates()) {
    yield
    const cluster = before.get(name, id)
    if (!cluster || selector.matches(cluster.document) || found.has(id)) continue
    if (comparison.compare(id).length > 0) found.add(id)
  }
  return found
}

/** A deleted cluster can come back, with what is made of its definitions meanwhile. */
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

/** Deleted clusters that are still told to remove everything, and would be given what another one gets. */
function predecessors({ cluster }: Types, before: View, { after }: Change): readonly Entry[] {
  if (!after || after.deleted) return []
  const dns = dnsOf(cluster, after.document)
  return before.dnsHolder(dns) ? [] : before.tombstonesWithDns(dns)
}
