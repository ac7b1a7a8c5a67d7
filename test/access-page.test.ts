// What docs/access.md and docs/security.md say of roles, held against the table of permissions.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Grant, ROLES, type Role } from '../src/domain/access/grant.ts'
import { may, PERMISSIONS, type Permission } from '../src/domain/access/permissions.ts'

/** The cells of a table's rows, the head first. */
function tableAt(page: string, head: string): string[][] {
  const text = readFileSync(join(import.meta.dirname, '../docs', page), 'utf8')
  const [, below] = text.split(`\n${head}`)
  assert.ok(below !== undefined, `${page} has a table with the head ${head}`)
  const [first, , ...rest] = `${head}${below.split('\n\n')[0]}`.split('\n')
  return [first, ...rest].map((row = '') =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

/** `mirror`, or `mirror` with a selector. */
function grantOf(cell: string): Grant {
  const [, role = '', more] = /^`(\w+)`( with a (?:selector|scope))?/.exec(cell) ?? []
  assert.ok(
    ROLES.some((known) => known === role),
    cell,
  )
  return { role: role as Role, ...(more && { selector: 'environment=dev' }) }
}

test('docs/access.md says what each role may do, permission by permission', () => {
  const [[, , ...heads] = [], ...rows] = tableAt('access.md', '| permission |')
  assert.deepEqual(new Set(heads.map((head) => grantOf(head).role)), new Set(ROLES))
  assert.ok(heads.some((head) => grantOf(head).selector !== undefined))
  assert.deepEqual(
    rows.map(([name]) => name),
    PERMISSIONS.map((permission) => `\`${permission}\``),
  )
  for (const [name = '', meaning, ...cells] of rows) {
    assert.ok(meaning, name)
    const permission = name.slice(1, -1) as Permission
    const expected = heads.map((head) => (may(grantOf(head), permission) ? 'yes' : ''))
    assert.deepEqual(cells, expected, name)
  }
})

test('docs/security.md says of those who may write what they can change, and of all others: nothing', () => {
  const [, ...rows] = tableAt('security.md', '| role | reads | changes |')
  assert.ok(rows.length >= ROLES.length)
  for (const [name = '', , changes] of rows) {
    const grant = grantOf(name)
    assert.equal(changes === 'nothing', !may(grant, 'write') && !may(grant, 'own_hold'), name)
    assert.equal(changes?.includes('tokens and purging included') ?? false, may(grant, 'admin'), name)
  }
})
