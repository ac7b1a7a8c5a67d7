// Every `$ command` of the documentation, run as a reader runs it: what is printed must be what is written.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import {
  BLOCKS,
  blocksIn,
  commandsOf,
  contentOf,
  everyPage,
  isOpen,
  isRun,
  ROOT,
  type Step,
  startOf,
  stepsIn,
} from './docs-pages.ts'
import { buildConsole, missingTools, openReader } from './docs-reader.ts'

/** Writes down what is printed instead of comparing it. */
const UPDATE = process.env.DOCS_UPDATE === '1'

/** Pages without a command that is run here, and what holds them to the truth instead. */
const NOT_RUN: Record<string, string> = {
  'docs/README.md': 'a list of pages; the site checks its links',
  'docs/api.md': 'routes in prose; its tables and its clients have tests of their own',
  'docs/benchmarks.md': 'figures, made by bench/',
  'docs/ci.md': 'pipelines of other systems; its flags are in the command line reference',
  'docs/cli-reference.md': 'made from the program',
  'docs/clouds.md': 'needs clouds; its examples have tests of their own',
  'docs/components.md': 'needs a registry; its example is rendered by a test',
  'docs/concepts.md': 'pictures',
  'docs/configuration.md': 'a table of settings, held against the code',
  'docs/console.md': 'a page in a browser; test/console opens it',
  'docs/data-model.md': 'made from the resource files',
  'docs/deploying.md': 'needs a cluster; its values are rendered by test/flux',
  'docs/faq.md': 'questions; the answers are on other pages',
  'docs/glossary.md': 'words',
  'docs/growth.md': 'figures and reasons',
  'docs/high-availability.md': 'needs several machines and a PostgreSQL; test/faults does what it says',
  'docs/operating.md': 'tables of metrics and settings',
  'docs/runbooks.md': 'needs a broken service; every alert has one by a test',
  'docs/scheduled-jobs.md': 'needs a cluster; its manifests are checked by a test',
  'docs/secrets.md': 'needs a vault; its example type is rendered by a test',
  'docs/security.md': 'held against the table of permissions',
  'docs/sizing.md': 'figures, made by bench/',
  'docs/sso.md': 'needs an identity provider; test/oidc.test.ts has one',
  'docs/tls-on-kubernetes.md': 'needs a cluster; rendered by test/flux',
  'docs/troubleshooting.md': 'symptoms; their codes and reasons have tests of their own',
  'docs/why.md': 'reasons and comparisons',
  'docs/writing.md': 'rules; test/prose.test.ts counts them',
}

const pages = everyPage.filter((page) => blocksIn(contentOf(page)).length > 0)

test('every page has commands that are run, or a reason why not', () => {
  assert.deepEqual(
    everyPage.filter((page) => !pages.includes(page)),
    Object.keys(NOT_RUN).sort(),
  )
})

/** An ellipsis stands for whatever changes from run to run; on a line of its own, for any lines. */
function isAsWritten(printed: string, expected: string): boolean {
  const lines = expected.trim().split('\n').map(patternOf)
  return new RegExp(`^${lines.join('\n')}$`).test(printed)
}

function patternOf(line: string): string {
  return line.trim() === '…' ? '[^]*' : line.split('…').map(RegExp.escape).join('.*')
}

const missing = missingTools()
const skip = missing.length > 0 && `needs ${missing.join(' and ')}`

describe('a reader', { skip, concurrency: 2 }, () => {
  before(buildConsole)

  for (const page of pages) {
    test(`gets from the commands of ${page} what is written there`, { timeout: 120_000 }, async (t) => {
      const reader = await openReader(t, startOf(page))
      const blocks: Printed[][] = []
      for (const { kind, steps } of blocksIn(contentOf(page))) {
        const outcomes: Printed[] = []
        for (const step of steps) {
          assert.ok(!isOpen(step.command), `cut off: $ ${step.command}`)
          const printed = kind === 'text' ? await reader.typeIn(step) : await reader.run(step.command)
          outcomes.push({ ...step, printed })
        }
        blocks.push(outcomes)
      }
      if (UPDATE) return update(page, blocks)
      for (const { command, expected, printed } of blocks.flat()) {
        if (!isAsWritten(printed, expected)) assert.equal(printed, expected.trim(), `$ ${command}`)
      }
    })
  }
})

test('a page that starts the demo says how its reader gets the variables', () => {
  for (const page of pages.filter((each) => startOf(each) !== undefined)) {
    const [before = ''] = contentOf(page).split(/```console|```text\n\$ /)
    assert.match(before, /source data\/demo\.env/, page)
  }
})

test('a page whose commands use the demo starts it', () => {
  const uses = /\$api|\$read|\$write|\$DATABASE_URL|flux-resourceset-cli (?!--help|completion)/
  for (const page of pages.filter((each) => startOf(each) === undefined)) {
    for (const { command } of blocksIn(contentOf(page)).flatMap(({ steps }) => steps)) {
      assert.doesNotMatch(command, uses, page)
    }
  }
})

/** The fleet of a reader has another log: the same number is somebody else's revision there. */
test('no command of the pages reads or takes back a revision by a fixed number', () => {
  const fixed =
    /\/revisions\/\d|\bat=\d|--at \d|\b(?:revert|show) \d|\brollback\b.*(--to \d|to_revision\W+\d)/
  const found = everyPage.flatMap((page) => commandsOf(page).filter((command) => fixed.test(command)))
  assert.deepEqual(found, [])
})

/** Who has a DATABASE_URL may be an operator, and it is the real one. */
test('no command of the pages gives up or overwrites what is in the database of its reader', () => {
  const writes = /flux-resourceset (?:prune-history|restore|migrate)\b|flux-resourceset copy\b/
  const harmless = /--dry-run|DATABASE_URL=sqlite:\/\/\$work\/|--to "sqlite:\/\/\$work\//
  const lines = everyPage.flatMap((page) => commandsOf(page).flatMap((command) => command.split('\n')))
  const found = lines.filter((line) => writes.test(line))
  assert.ok(found.length > 3)
  assert.deepEqual(
    found.filter((line) => !harmless.test(line)),
    [],
  )
})

type Printed = Step & { readonly printed: string }

function update(page: string, outcomes: readonly (readonly Printed[])[]): void {
  let next = 0
  const updated = contentOf(page).replaceAll(BLOCKS, (block, kind, content) => {
    if (!isRun({ kind, steps: stepsIn(content) })) return block
    const steps = (outcomes[next++] ?? []).map(({ command, expected, printed }) => {
      const output = isAsWritten(printed, expected) ? expected : printed
      return `$ ${command}${output === '' ? '' : `\n${output}`}`
    })
    return `\`\`\`${kind}\n${steps.join('\n')}\n\`\`\``
  })
  writeFileSync(join(ROOT, page), updated)
}
