// Every link of the pages leads somewhere: to a file that is there, and to a heading in it.
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { test } from 'node:test'
import { slug } from '../docs/site/slug.ts'

const ROOT = join(import.meta.dirname, '..')
const pages = globSync(['*.md', 'docs/*.md', 'docs/decisions/*.md', 'examples/*.md', 'examples/*/*.md'], {
  cwd: ROOT,
})

/** Without code, in which brackets mean something else. */
function proseOf(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8')
    .replaceAll(/^( *)(`{3,})[\s\S]*?^\1\2 *$/gm, '')
    .replaceAll(/`[^`\n]*`/g, (code) => code.replaceAll(/[[\]()]/g, ''))
}

const anchors = new Map<string, ReadonlySet<string>>()

function anchorsOf(page: string): ReadonlySet<string> {
  const known = anchors.get(page)
  if (known) return known
  const seen = new Map<string, number>()
  const made = [...proseOf(page).matchAll(/^#{1,6} +(.+)$/gm)].map(([, heading = '']) => {
    const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/[`*]/g, '')
    const anchor = slug(text)
    const times = seen.get(anchor) ?? 0
    seen.set(anchor, times + 1)
    return times === 0 ? anchor : `${anchor}-${times}`
  })
  anchors.set(page, new Set(made))
  return new Set(made)
}

function* linksOf(page: string): Generator<string> {
  for (const [, target = ''] of proseOf(page).matchAll(/\]\(([^)\s]+)(?: "[^"]*")?\)/g)) yield target
}

function problemOf(page: string, target: string): string | undefined {
  if (/^[a-z]+:/.test(target)) return undefined
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? page : normalize(join(dirname(page), path))
  if (!existsSync(join(ROOT, file))) return `${page}: ${target}: no such file`
  if (anchor === undefined) return undefined
  if (statSync(join(ROOT, file)).isDirectory() || !anchorsOf(file).has(anchor))
    return `${page}: ${target}: no such heading`
  return undefined
}

test('links of the pages lead to files and headings that are there', () => {
  const links = pages.flatMap((page) => [...linksOf(page)].map((target) => [page, target] as const))
  assert.ok(links.length > 300)
  assert.deepEqual(
    links.map(([page, target]) => problemOf(page, target)).filter((problem) => problem !== undefined),
    [],
  )
})

test('docs/README.md lists every page of the documentation', () => {
  const listed = new Set([...linksOf('docs/README.md')].map((target) => target.split('#')[0]))
  const missing = globSync('docs/*.md', { cwd: ROOT })
    .map((page) => page.slice('docs/'.length))
    .filter((page) => page !== 'README.md' && !listed.has(page))
  assert.deepEqual(missing, [])
})

test('every alert has a runbook, and links to it', () => {
  const runbooks = anchorsOf('docs/runbooks.md')
  for (const file of [
    'deploy/kustomize/components/service-monitor/alerts.yaml',
    'deploy/chart/templates/service-monitor.yaml',
  ]) {
    const alerts = readFileSync(join(ROOT, file), 'utf8')
      .split(/^ *- alert: /m)
      .slice(1)
    assert.ok(alerts.length > 8, file)
    for (const alert of alerts) {
      const name = /^\w+/.exec(alert)?.[0] ?? ''
      const anchor = slug(name)
      assert.ok(runbooks.has(anchor), `${name} has a section in docs/runbooks.md`)
      assert.match(alert, new RegExp(`runbook: docs/runbooks\\.md#${anchor}\\n`), name)
    }
  }
})
