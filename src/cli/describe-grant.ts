// What somebody may do, in words for people.
import type { Grant } from '../domain/grant.ts'

/** Which clusters and types; nothing where there is no limit. */
export function scopeOf({ cluster, selector, types }: Grant): string {
  const parts = [cluster, selector !== undefined && `(${selector})`, types?.join(',')]
  return parts.filter(Boolean).join(' ')
}

export function describeGrant(grant: Grant): string {
  const scope = scopeOf(grant)
  return `role ${grant.role}${scope ? ` for ${scope}` : ''}`
}
