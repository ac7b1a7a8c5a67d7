// What the credential of this tab may do here, by the rules of the service: what it may not do is not offered.
import { useQuery } from '@tanstack/react-query'
import { may, type Permission } from '../../src/domain/access/permissions.ts'
import { queries } from '../api/queries.ts'

/** Permissions that a read-only process has no routes for. */
const WRITES: ReadonlySet<Permission> = new Set([
  'preview',
  'write',
  'write_any',
  'purge',
  'bypass',
  'admin',
  'own_hold',
])

/** False until the identity is known. */
export function useMay(permission: Permission): boolean {
  const identity = useQuery(queries.whoami())
  const settings = useQuery(queries.settings())
  if (!identity.data || !settings.data) return false
  if (settings.data.mode === 'read-only' && WRITES.has(permission)) return false
  return may(identity.data, permission)
}

/** Whether documents and revisions can be read: a read-only process has no routes for them. */
export function useHasDocuments(): boolean {
  return useQuery(queries.settings()).data?.mode === 'crud'
}
