// What docs/security.md says, held against the code that it is said of.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { MAX_DEPTH } from '../src/base/json.ts'
import { MAX_OPERATIONS } from '../src/base/json-patch.ts'
import { ROLES } from '../src/domain/access/grant.ts'
import { MAX_DOCUMENT_SIZE } from '../src/registry/build-types.ts'

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

test('limits are those of the code', () => {
  const [, below = ''] = page.split('\n## What a stolen token of each role can cost\n')
  const said = (below.split('\n## ')[0] ?? '').replaceAll('\n', ' ')
  for (const limit of [
    `documents of ${MAX_DOCUMENT_SIZE / 1024 ** 2} MiB`,
    `${MAX_DEPTH} levels`,
    `${MAX_OPERATIONS.toLocaleString('en')} operations that add, copy and move ${(3 * MAX_DOCUMENT_SIZE) / 1024 ** 2} MiB`,
  ])
    assert.ok(said.includes(limit), limit)
})

test('what the service runs on is named, and nothing else', () => {
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const [, table = ''] = page.split('| what the service runs on |')
  const rows = table.split('\n\n')[0]?.split('\n').slice(2) ?? []
  const named = rows.flatMap((row) => row.split('|')[1]?.match(/[^`, ]+(?=`)/g) ?? [])
  assert.deepEqual(named.toSorted(), Object.keys(dependencies).toSorted())
})
