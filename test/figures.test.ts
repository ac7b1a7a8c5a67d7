// Figures of the pages are those of docs/figures.json, and nobody writes them by hand; `npm run figures` fills the pages.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { DERIVED, FIGURES } from '../tools/figures/derived.ts'
import { filled, pagesWithFigures, unmarked } from '../tools/figures/fill.ts'
import { loadTables, ROOT, withMeasured } from '../tools/figures/tables.ts'

const tables = loadTables()
const pages = pagesWithFigures().map((page) => [page, readFileSync(join(ROOT, page), 'utf8')] as const)

test('pages show the figures that were measured, and the limits of the code', () => {
  const stale = pages.filter(([, text]) => filled(text, tables) !== text).map(([page]) => page)
  assert.deepEqual(stale, [], 'npm run figures')
})

test('a page whose figure is changed by hand differs from what was measured', () => {
  const [, text = ''] = pages.find(([page]) => page === 'docs/sizing.md') ?? []
  assert.notEqual(filled(text.replace(' µs |', '1 µs |'), tables), text.replace(' µs |', '1 µs |'))
})

/** Memory, files, speed. Settings, thresholds of alerts and sizes in formats are no measurements. */
const MEASURED = /\d[\d.,]* ?(?:MB|GB|µs|kB)\b|\d (?:polls|commits|writes|requests) a second/
/** These pages tell how something was measured, or what it was when it was decided. */
const TELLS = /^(?:docs\/benchmarks\.md|docs\/decisions\/.*|CHANGELOG\.md|docs\/cli-reference\.md)$/
/** Not measured: sizes that others prescribe, and what an example puts in. */
const GIVEN = ['proxies that take no more than 8 kB', 'cores and 2 GB of memory carry', 'at most 4 kB']

test('no page repeats a measured figure by hand', () => {
  const found = pages
    .filter(([page]) => !TELLS.test(page))
    .flatMap(([page, text]) =>
      unmarked(text)
        .replaceAll(/^( *)(`{3,})[\s\S]*?^\1\2 *$/gm, '')
        .split('\n')
        .filter((line) => MEASURED.test(line) && !GIVEN.some((given) => line.includes(given)))
        .map((line) => `${page}: ${line.trim()}`),
    )
  assert.deepEqual(
    found,
    [],
    'add it to tools/figures/derived.ts and write <!-- figure: its name --><!-- end -->',
  )
})

test('every figure has a place on a page', () => {
  const shown = pages.map(([, text]) => text).join('\n')
  assert.deepEqual(
    Object.keys(FIGURES).filter((name) => !shown.includes(`<!-- figure: ${name} -->`)),
    [],
  )
})

test('every panel of the dashboards says what it shows', () => {
  for (const name of ['dashboard-fleet', 'dashboard-service']) {
    const { rows } = DERIVED[name]?.(tables) ?? { rows: [] }
    assert.ok(rows.length > 10, name)
    for (const [title, description, metrics] of rows) assert.ok(description && metrics, `${name}: ${title}`)
  }
})

/** Markdown takes such a line for HTML and shows the rest of it as it is. */
test('no line begins with the marker of a figure', () => {
  const found = pages.flatMap(([page, text]) => (/^ *<!-- figure/m.test(text) ? [page] : []))
  assert.deepEqual(found, [])
})

test('a run of one part replaces its rows and keeps the others', () => {
  const old = {
    head: ['what', 'clusters', 'measured'],
    rows: [
      ['start', '10', '1 s'],
      ['start', '20', '2 s'],
    ],
  }
  const measured = {
    head: old.head,
    rows: [
      ['start', '20', '3 s'],
      ['start', '30', '4 s'],
    ],
  }
  assert.deepEqual(withMeasured(old, measured, 2).rows, [
    ['start', '10', '1 s'],
    ['start', '20', '3 s'],
    ['start', '30', '4 s'],
  ])
})
