// What a caller may do: a role, and the scope that it is limited to.
import type { Detail } from '../../base/problem.ts'
import type { View } from '../documents/view.ts'
import type { Types } from '../types/resource-type.ts'
import { parseSelector } from './selector.ts'

/** From the least to the most; `permissions.ts` says what each may do. */
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
  /** For the role cluster: the id of the cluster that it polls for. */
  readonly cluster?: string
  /** For an editor: a write may affect only clusters that match. For a mirror: only these clusters are copied. */
  readonly selector?: string
  /** For an editor: only documents of these types. An assignment counts as the type of the assigned document. */
  readonly types?: readonly string[]
}

/** The grant alone, of what grants more or holds secrets, such as a token. */
export function grantIn({ role, cluster, selector, types }: Grant): Grant {
  return {
    role,
    ...(cluster !== undefined && { cluster }),
    ...(selector !== undefined && { selector }),
    ...(types !== undefined && { types }),
  }
}

/** Returns the clusters and types of a grant; empty without a limit. */
export function scopeOf({ cluster, selector, types }: Grant): string {
  const parts = [cluster, selector !== undefined && `(${selector})`, types?.join(',')]
  return parts.filter(Boolean).join(' ')
}

export function describeGrant(grant: Grant): string {
  const scope = scopeOf(grant)
  return `role ${grant.role}${scope ? ` for ${scope}` : ''}`
}

/** Returns everything wrong with a grant; a cluster that it names must exist. */
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
