import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Grant, ROLES, type Role } from './grant.ts'
import { leastRoleWith, may, PERMISSIONS, type Permission } from './permissions.ts'

/** The first role of each permission; those after it have it too, but for `mirror` and what is of one's own cluster. */
const LEAST: Record<Permission, Role> = {
  known: 'cluster',
  poll: 'cluster',
  own_status: 'cluster',
  own_hold: 'cluster',
  poll_any: 'poller',
  list_clusters: 'poller',
  mirror: 'mirror',
  watch: 'mirror',
  read: 'viewer',
  preview: 'viewer',
  write: 'editor',
  write_any: 'admin',
  purge: 'admin',
  bypass: 'admin',
  admin: 'admin',
  priority: 'admin',
}

function allowed(grant: Grant): Permission[] {
  return PERMISSIONS.filter((permission) => may(grant, permission))
}

for (const [i, role] of ROLES.entries())
  test(`the role ${role} may do what those before it may, but copy the log only as mirror or admin, and neither read a status nor hold a cluster as poller or mirror`, () => {
    const expected = PERMISSIONS.filter((permission) => {
      if (permission === 'mirror') return role === 'mirror' || role === 'admin'
      if (permission === 'own_status') return role !== 'poller' && role !== 'mirror'
      if (permission === 'own_hold') return role === 'cluster' || role === 'editor' || role === 'admin'
      return ROLES.indexOf(LEAST[permission]) <= i
    })
    assert.deepEqual(allowed({ role }), expected)
  })

test('a mirror with a selector copies and polls for nobody, not even with an empty selector', () => {
  for (const selector of ['environment=dev', ''])
    assert.deepEqual(allowed({ role: 'mirror', selector }), ['known', 'mirror', 'watch'])
})

test('the scope of an editor takes no permission away: what it writes is checked against the scope', () => {
  const grant: Grant = { role: 'editor', selector: 'environment=dev', types: ['namespaces'] }
  assert.deepEqual(allowed(grant), allowed({ role: 'editor' }))
})

test('who lacks a permission is told the first role that has it', () => {
  for (const permission of PERMISSIONS) assert.equal(leastRoleWith(permission), LEAST[permission])
})
