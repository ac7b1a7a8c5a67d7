// What each role may do: one table, asked wherever something is allowed or refused.
import { type Grant, ROLES, type Role } from './grant.ts'

/** A route's `access` names one of them. */
export const PERMISSIONS = [
  /** Read one's own identity. */
  'known',
  /** Poll for one's own cluster. */
  'poll',
  /** Read the status of one's own cluster; of others, it needs `read` too. */
  'own_status',
  /** Hold one's own cluster at what it is served, and release it; others need `write`. */
  'own_hold',
  'poll_any',
  'list_clusters',
  /** Copy the log as it is stored: it holds digests of tokens, which nobody else needs to see. */
  'mirror',
  /** Follow the numbers of new revisions; what they changed needs `read`. */
  'watch',
  'read',
  /** Dry runs of any write. */
  'preview',
  /** Inside the scope of the grant. */
  'write',
  /** No scope limits it. */
  'write_any',
  /** Leave no trace of a cluster. */
  'purge',
  /** Write what rollouts hold, and during freezes, with a reason. */
  'bypass',
  /** List, create, rotate and revoke tokens. */
  'admin',
  /** Go first where others wait, and have no share of requests to keep to. */
  'priority',
] as const
export type Permission = (typeof PERMISSIONS)[number]

export const BYPASSES = ['editor', 'admin', 'nobody'] as const
/** Who may pass an objection: editors too, admins, or nobody. */
export type Bypass = (typeof BYPASSES)[number]

const POLLS: readonly Permission[] = ['known', 'poll', 'poll_any', 'list_clusters']
const READS: readonly Permission[] = [...POLLS, 'own_status', 'watch', 'read', 'preview']

const ROLE_PERMISSIONS: Readonly<Record<Role, ReadonlySet<Permission>>> = {
  cluster: new Set(['known', 'poll', 'own_status', 'own_hold']),
  poller: new Set(POLLS),
  mirror: new Set([...POLLS, 'mirror', 'watch']),
  viewer: new Set(READS),
  editor: new Set([...READS, 'own_hold', 'write']),
  admin: new Set(PERMISSIONS),
}

/**
 * What a role limited by a selector may do, where a scope alone is not enough: a copy of the log leaves other clusters
 * out, and polls could not.
 */
const WITH_SELECTOR: Readonly<Partial<Record<Role, ReadonlySet<Permission>>>> = {
  mirror: new Set(['known', 'mirror', 'watch']),
}

export function may({ role, selector }: Grant, permission: Permission): boolean {
  const limited = selector === undefined ? undefined : WITH_SELECTOR[role]
  return (limited ?? ROLE_PERMISSIONS[role]).has(permission)
}

/** Whether a caller may pass what only admins may pass, or editors too where `by` says so. */
export function mayBypass(grant: Grant, by: Bypass | undefined): boolean {
  return by !== 'nobody' && may(grant, by === 'editor' ? 'write' : 'bypass')
}

/** The first role that has a permission, for messages to callers who lack it. */
export function leastRoleWith(permission: Permission): Role {
  return ROLES.find((role) => ROLE_PERMISSIONS[role].has(permission)) as Role
}
