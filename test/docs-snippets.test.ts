// What pages show without running it: flags of the command line exist, and manifests are such that Kubernetes takes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { contentOf, everyPage } from './docs-pages.ts'

const reference = contentOf('docs/cli-reference.md')

/** The text of code in blocks and in lines. */
function codeOf(page: string): string[] {
  const text = contentOf(page)
  const blocks = [...text.matchAll(/```\w*\n([\s\S]*?)\n *```/g)].map(([, code = '']) => code)
  const inline = [...text.replaceAll(/```[\s\S]*?```/g, '').matchAll(/`([^`\n]+)`/g)].map(
    ([, code = '']) => code,
  )
  return [...blocks, ...inline]
}

/** Each call of the program, up to where the shell takes over. */
function callsOf(code: string): string[] {
  const joined = code.replaceAll(/\\\n */g, '')
  return [...joined.matchAll(/flux-resourceset-cli ([^|;&>)\n]*)/g)].map(([, call = '']) =>
    call.replaceAll(/'[^']*'|"[^"]*"/g, ''),
  )
}

test('every flag of the command line that a page shows exists', () => {
  const known = new Set([...reference.matchAll(/(?<![\w-])--[a-z][a-z-]*/g)].map(([flag]) => flag))
  const pages = everyPage.filter((page) => page !== 'docs/cli-reference.md')
  const shown = pages.flatMap((page) =>
    codeOf(page)
      .flatMap(callsOf)
      .flatMap((call) =>
        [...call.matchAll(/(?<![\w-])--[a-z][a-z-]*/g)].map(([flag]) => [page, flag] as const),
      ),
  )
  assert.ok(shown.length > 60)
  // A flag that begins with the name of a field is one of types of your own.
  assert.deepEqual(
    shown.filter(([, flag]) => !known.has(flag)).map(([page, flag]) => `${page}: ${flag}`),
    [],
  )
})

test('every YAML that a page shows can be read', () => {
  const problems = everyPage.flatMap((page) =>
    [...contentOf(page).matchAll(/```yaml\n([\s\S]*?)\n```/g)].flatMap(([, yaml = '']) =>
      // Templates hold << … >>, which is YAML only once it is rendered.
      yaml.includes('<<')
        ? []
        : parseAllDocuments(yaml).flatMap((document) =>
            document.errors.map((error) => `${page}: ${error.message.split('\n')[0]}`),
          ),
    ),
  )
  assert.deepEqual(problems, [])
})

/** A blank line within a table ends it, and its other rows are shown as text. */
test('every table of a page has a head', () => {
  const problems = everyPage.flatMap((page) =>
    contentOf(page)
      .replaceAll(/^( *)(`{3,})[\s\S]*?^\1\2 *$/gm, '')
      .split(/\n\s*\n/)
      .map((block) => block.split('\n').filter((line) => line.trim().startsWith('|')))
      .filter(([head, rule]) => head !== undefined && !/^ *\|[ :|-]+\| *$/.test(rule ?? ''))
      .map(([head]) => `${page}: ${head}`),
  )
  assert.deepEqual(problems, [])
})

test('the glossary has at most forty words, in order', () => {
  const rows = contentOf('docs/glossary.md')
    .split('\n')
    .filter((line) => /^\| [a-z]/.test(line))
  const words = rows.slice(1).map((row) => row.split(' | ')[0])
  assert.ok(words.length > 20 && words.length <= 40, String(words.length))
  assert.deepEqual(words, words.toSorted())
})
