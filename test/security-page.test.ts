// What docs/security.md says, held against the code that it is said of.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ROLES } from '../src/domain/access/grant.ts'

const ROOT = join(import.meta.dirname, '..')
const page = readFileSync(join(ROOT, 'docs/security.md'), 'utf8')

/** The first cells of the table below a heading. */
function firstCells(heading: string): string[] {
  const [, below = ''] = page.split(`\n## ${heading}\n`)
  const rows = (below.split('\n## ')[0] ?? '').split('\n').filter((line) => line.startsWith('| '))
  return rows.slice(1).map((row) => row.split('|')[1]?.trim() ?? '')
}

test('what a stolen token can cost is said of every role', () => {
  const cells = firstCells('What a stolen token of each role can cost')
  const roles = new Set(cells.map((cell) => /^`(\w+)`/.exec(cell)?.[1]))
  assert.deepEqual([...roles], [...ROLES])
})

test('what the service runs on is named, and nothing else', () => {
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const [, table = ''] = page.split('| what the service runs on |')
  const rows = table.split('\n\n')[0]?.split('\n').slice(2) ?? []
  const named = rows.flatMap((row) => row.split('|')[1]?.match(/[^`, ]+(?=`)/g) ?? [])
  assert.deepEqual(named.toSorted(), Object.keys(dependencies).toSorted())
})
