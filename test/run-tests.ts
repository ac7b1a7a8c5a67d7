// Runs all tests. Most files share a few processes: starting one and warming it up takes longer than the tests of a file.
import { globSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { setUp, tearDown } from './run-setup.ts'

const ROOT = join(import.meta.dirname, '..')
const SHARED = join(ROOT, 'node_modules/.cache/tests')
/** As many processes share the other files: so few that each is worth its start, so many that none of them ends last. */
const SHARES = 6

/** These take longest, and none of it is their own start; or they measure time, or set the clock of their process. */
const ALONE = [
  'test/docs.test.ts',
  'test/processes.test.ts',
  'src/store/postgres/postgres.test.ts',
  'test/dockerfile.test.ts',
  'test/roles.test.ts',
  'test/transfer-commands.test.ts',
  'test/startup.test.ts',
  'test/tokens.test.ts',
  'test/package.test.ts',
  'test/transport.test.ts',
  'test/cli-apply.test.ts',
  'test/greedy-callers.test.ts',
  'test/simulate-command.test.ts',
  'test/watch.test.ts',
  'test/mirror.test.ts',
  'test/mirror-reports.test.ts',
  'test/cli-watch.test.ts',
  'test/earlier-program.test.ts',
  'test/hostile-clients.test.ts',
  'test/rollout-kills.test.ts',
  'test/static-stability.test.ts',
  'test/parsing-cost.test.ts',
  'test/rollout-laws.test.ts',
]

/** Deals files out by their size, which is near enough to the time they take. */
function deal(files: readonly string[], hands: number): string[][] {
  const sized = files.map((file) => ({ file, size: statSync(join(ROOT, file)).size }))
  const dealt = Array.from({ length: hands }, (): string[] => [])
  for (const [index, { file }] of sized.sort((a, b) => b.size - a.size).entries())
    dealt[index % hands]?.push(file)
  return dealt
}

/** A file that is nothing but these. */
function share(name: string, files: readonly string[]): string {
  const path = join(SHARED, `${name}.mjs`)
  writeFileSync(path, files.map((file) => `import ${JSON.stringify(join(ROOT, file))}\n`).join(''))
  return path
}

rmSync(SHARED, { recursive: true, force: true })
mkdirSync(SHARED, { recursive: true })
const found = globSync(['src/**/*.test.ts', 'test/*.test.ts'], { cwd: ROOT })
const shared = deal(
  found.filter((file) => !ALONE.includes(file)),
  SHARES,
)
// One Chromium for half of the pages.
const pages = deal(globSync('test/console/*.test.ts', { cwd: ROOT }), 2)

// What takes longest begins first, so that nothing long is left at the end.
const files = [
  ...pages.map((each, index) => share(`console-${index}`, each)),
  ...shared.map((each, index) => share(`shared-${index}`, each)),
  ...ALONE.map((file) => join(ROOT, file)),
]

await setUp()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void tearDown().finally(() => process.exit(1)))
const tests = run({
  files,
  cwd: ROOT,
  // A test waits now and then.
  concurrency: Math.ceil(availableParallelism() * 1.5),
  forceExit: true,
  // Of a file: a test that never ends fails.
  timeout: 600_000,
  execArgv: [`--require=${join(import.meta.dirname, 'untracked-promises.cjs')}`],
})
tests.on('test:fail', () => {
  process.exitCode = 1
})
const report = tests.compose(new spec())
report.pipe(process.stdout)
await finished(report)
await tearDown()
