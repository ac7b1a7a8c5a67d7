// The command line answers which clusters run what, at which version, and by whose word.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { JsonObject } from '../src/base/json.ts'
import { cli, outcomesOf, type Run } from './cli-process.ts'
import { smallFleet, startService, type TestService } from './service.ts'

let service: TestService
const run = (args: readonly string[]): Promise<Run> => cli(args, { url: service.url })
const { succeed, fail } = outcomesOf(run)

async function output(line: string): Promise<string> {
  const { stdout, stderr } = await succeed(line.split(' '))
  assert.equal(stderr, '')
  return stdout
}

before(async () => {
  const { clusters, ...rest } = smallFleet()
  const more = (id: string, environment: string, reference: JsonObject): JsonObject => ({
    id,
    cluster_name: id,
    cluster_dns: `${id}.k8s.example.com`,
    environment,
    platform_components: [reference],
    namespaces: [{ id: 'team-a' }],
  })
  service = await startService({
    fleet: {
      ...rest,
      clusters: [
        ...clusters,
        more('three', 'qa', { id: 'a' }),
        more('four', 'qa', { id: 'a', enabled: false }),
        more('five', 'prod', { id: 'a', oci_tag: 'v2.0.0' }),
      ],
    },
  })
})
after(() => service.stop())

test('cluster list takes what clusters have, and in which version', async () => {
  for (const [flags, ids] of Object.entries({
    '--component a': ['five', 'four', 'one', 'three'],
    '--component a=v1.0.0': ['one', 'three'],
    '--component a=v2.0.0 -l environment=prod': ['five'],
    '--component a --namespace team-a --component b': ['one'],
    '-l overrides.platform_components=a': ['five'],
  }))
    assert.equal(
      await output(`cluster list ${flags} -o name`),
      ids.map((id) => `clusters/${id}\n`).join(''),
      flags,
    )
  await fail(2, 'a namespace has no versions', ['cluster', 'list', '--namespace', 'team-a=v1'])
  await fail(2, '--component must be an id, or id=version, not "a b"', [
    'cluster',
    'list',
    '--component',
    'a b',
  ])
  const { stderr } = await run(['cluster', 'list', '--component', 'aa=v1'])
  assert.match(stderr, /Warning: no platform component "aa"/)
})

test('component clusters says of each cluster which version it is served, from where, and how it is', async () => {
  assert.equal(
    await output('component clusters a'),
    `CLUSTER  ENV   VERSION  FROM      STATE    OWN-FIELDS      OWN-VALUES
five     prod  v2.0.0   override  pending  oci_tag=v2.0.0  0
four     qa    (off)    catalog   off                      0
one      dev   v1.0.0   catalog   pending                  1
three    qa    v1.0.0   catalog   pending                  0
`,
  )
  assert.equal(await output('component clusters a -l version.a=v2.0.0 -o name'), 'clusters/five\n')
  assert.equal(
    await output('namespace clusters team-a -l environment=dev'),
    'CLUSTER  ENV  FROM     STATE\none      dev  catalog  pending\n',
  )
  const { stdout, stderr } = await succeed(['component', 'clusters', 'a', '--limit', '1'])
  assert.deepEqual([stdout.split('\n').length, stderr], [3, '1 of 4 shown\n'])
  assert.equal((await run(['component', 'clusters', 'c'])).stderr, 'No cluster has platform_components/c.\n')
  await fail(1, 'no platform component "zz"', ['component', 'clusters', 'zz'])
})

test('describe of a component shows it, what needs it, its versions by environment, and who overrides', async () => {
  const text = await output('component describe a')
  const [definition = '', clusters = '', changes = ''] = text.split('\n\n')
  assert.match(definition, /^id: +a\n/)
  assert.match(definition, /^oci tag: +v1\.0\.0$/m)
  assert.match(definition, /^named by: +platform_components\/b$/m)
  assert.equal(
    clusters,
    `Clusters
VERSION  FROM            CLUSTERS  ENVIRONMENTS  APPLIED  HEALTHY  FAILED
v1.0.0   catalog         2         dev 1, qa 1   0        0        0
v2.0.0   override: five  1         prod 1        0        0        0
switched off on 1`,
  )
  assert.match(changes, /^Last changes\nREVISION .*\n1 .*seed/)
})

test('describe is there for every type', async () => {
  assert.match(
    await output('namespace describe team-a'),
    /Clusters\nCLUSTERS {2}ENVIRONMENTS .*\n4 +dev 1, prod 1, qa 2/,
  )
  assert.match(await output('rolebinding describe admins'), /^id: +admins\n/)
  assert.match(await output('namespace describe team-b'), /^Clusters: none$/m)
  const value = JSON.parse(await output('component describe a -o json'))
  assert.deepEqual(
    [value.document.id, value.dependents, value.versions[1].overridden_on, value.switched_off],
    ['a', ['platform_components/b'], ['five'], 1],
  )
  assert.equal(await output('component describe b -o name'), 'platform_components/b\n')
})
