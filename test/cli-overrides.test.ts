// The command line shows what clusters set themselves, and gives it up.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { cli, outcomesOf, type Run } from './cli-process.ts'
import { run, start } from './every-store.ts'
import { smallFleet } from './service.ts'

async function fleet(t: TestContext) {
  const service = await start(t, { fleet: smallFleet() })
  await run(service, ['PUT', '/clusters/two/platform_components/a', { oci_tag: 'v1.0.0' }])
  const line = (args: readonly string[]): Promise<Run> => cli(args, { url: service.url })
  return { service, ...outcomesOf(line) }
}

test('overrides lists every pin and patch with the value of the catalog, its age and its author', async (t) => {
  const { succeed } = await fleet(t)
  const { stdout, stderr } = await succeed(['overrides'])
  const ages = stdout.replaceAll(/\b\d+s\b/g, '1s')
  assert.equal(
    ages.replaceAll(/ +\n/g, '\n'),
    `CLUSTER  ENV   OF  FIELD     VALUE   CATALOG             AGE  ACTOR   MESSAGE
one      dev   a   replicas  2       (patch)             1s   seed    Seed file
one      dev   b   oci_tag   v2.0.0  v1.0.0              1s   seed    Seed file
two      prod  a   oci_tag   v1.0.0  v1.0.0 (redundant)  1s   writer
`,
  )
  assert.equal(stderr, '1 redundant: overrides --redundant --drop gives them up\n')
  const named = await succeed([
    'overrides',
    'b',
    '--type',
    'component',
    '-l',
    'environment=dev',
    '-o',
    'name',
  ])
  assert.equal(named.stdout, 'clusters/one\n')
  const none = await succeed(['overrides', 'c'])
  assert.deepEqual(
    [none.stdout, none.stderr],
    ['', 'No overrides found: clusters have what the catalog says.\n'],
  )
  assert.match((await succeed(['overrides', '--limit', '1'])).stderr, /^1 of 3 shown$/m)
})

test('--drop gives up what is chosen as one revision, and asks which', async (t) => {
  const { service, succeed, fail } = await fleet(t)
  await fail(2, 'give up which?', ['overrides', '--drop', '--yes'])
  await fail(2, '--limit does not go with --drop', ['overrides', 'a', '--limit', '1', '--drop', '--yes'])
  await fail(4, 'there is no such override', ['overrides', 'c', '--drop', '--yes'])
  const redundant = await succeed(['overrides', '--redundant', '--drop', '-m', 'tidy'])
  assert.equal(
    redundant.stdout,
    'give up 1 override: 1 document changed (revision 3)\nno cluster receives anything else\n',
  )
  const all = await succeed(['overrides', '-l', 'id', '--drop', '--yes'])
  assert.match(
    all.stdout,
    /^give up 2 overrides: 1 document changed \(revision 4\)\n1 cluster receives something else/,
  )
  assert.deepEqual((await service.call('GET', '/overrides')).body, [])
  const [revision] = (await service.call('GET', '/revisions?limit=1')).body
  assert.match(revision.operation, /^patch values of a on one; assign platform_components\/b to one$/)
})

test('a new default can take the overrides with it, and its preview says who would keep theirs', async (t) => {
  const { service, succeed, fail } = await fleet(t)
  const set = ['component', 'update', 'b', '--set', 'oci_tag=v3.0.0']
  const preview = await succeed([...set, '--dry-run'])
  assert.match(preview.stdout, /^1 cluster keeps its own oci_tag of b: one$/m)
  const dropping = await succeed([...set, '--drop-overrides', '--dry-run'])
  assert.match(dropping.stdout, /\/platform_components\[b\]\/oci_tag: "v2.0.0" → \(none\)/)
  assert.doesNotMatch(dropping.stdout, /keeps its own/)
  await succeed([...set, '--drop-overrides'])
  const { body } = await service.call('GET', '/platform_components/b/clusters')
  assert.deepEqual([body[0].version, body[0].overridden], ['v3.0.0', false])
  // Where nobody has one, it is an update like any other.
  await succeed(['component', 'update', 'c', '--set', 'oci_tag=v3.0.0', '--drop-overrides'])
  await fail(2, 'clusters can override component_path, ', [
    'component',
    'update',
    'b',
    '--set',
    'oci_url=oci://x',
    '--drop-overrides',
  ])
})
