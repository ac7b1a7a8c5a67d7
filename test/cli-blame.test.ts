// blame: where the values that a cluster gets come from, and whose they are while a rollout or a hold is under way.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startEngine } from '../src/engine/engine.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { cli, outcomesOf } from './cli-process.ts'
import { run, start } from './every-store.ts'
import { chartFleet, waitFor } from './service.ts'

async function fleet(t: TestContext) {
  const service = await start(t, { fleet: chartFleet() })
  const headers = { 'x-change-message': 'INC-9' }
  const patched = await service.call('PATCH', '/clusters/one/patches/a', {
    body: { 'image.tag': '7' },
    headers,
  })
  assert.ok(patched.status < 300, patched.text)
  return { service, ...outcomesOf((args) => cli(args, { url: service.url })) }
}

function table(stdout: string): string[] {
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.replaceAll(/\b\d+s\b/g, '1s').replaceAll(/ {2,}/g, '|'))
}

test('blame says of each value where it comes from, when and why; --changed only of what is not the catalog’s', async (t) => {
  const { succeed } = await fleet(t)
  const changed = await succeed(['blame', 'one', '--changed'])
  assert.deepEqual(table(changed.stdout), [
    'OF|FIELD|VALUE|SOURCE|REVISION|AGE|ACTOR|MESSAGE',
    'a|patches.replicas|2|patch|1|1s|seed|Seed file',
    'a|patches.image.tag|7|patch|2|1s|writer|INC-9',
    'b|source.oci_tag|v2.0.0|override|1|1s|seed|Seed file',
  ])
  const all = await succeed(['blame', 'one', 'b'])
  assert.match(all.stdout, /^b +component_path +core\/b\/1\.0\.0 +catalog +1 /m)
  assert.doesNotMatch(all.stdout, /cluster\.|^a /m)
  const none = await succeed(['blame', 'two', '--changed'])
  assert.deepEqual(
    [none.stdout, none.stderr],
    ['', 'Nothing here is its own: everything is what the catalog says.\n'],
  )
})

test('blame takes a field by its last name, its whole name, or the key of a patch, and a moment', async (t) => {
  const { succeed, fail } = await fleet(t)
  for (const field of ['image.tag', 'patches.image.tag'])
    assert.equal(table((await succeed(['blame', 'one', 'a', field])).stdout).length, 2, field)
  for (const field of ['oci_tag', 'source.oci_tag', '/source/oci_tag'])
    assert.match((await succeed(['blame', 'one', 'b', field])).stdout, /v2\.0\.0/)
  await fail(
    4,
    ['"a" of one has no field "image.tag"', 'known are '],
    ['blame', 'one', 'a', 'image.tag', '--at', '1'],
  )
  await fail(4, 'one does not get "zz"', ['blame', 'one', 'zz'])
  const [line] = JSON.parse((await succeed(['blame', 'one', 'a', 'image.tag', '-o', 'json'])).stdout)
  assert.deepEqual([line.id, line.path, line.value, line.message], ['a', '/patches/image.tag', '7', 'INC-9'])
})

test('a dependency that is left out is told with the reason', async (t) => {
  const { service, succeed } = await fleet(t)
  await run(service, ['DELETE', '/clusters/one/platform_components/a'])
  const { stdout } = await succeed(['blame', 'one', 'b', 'depends_on'])
  assert.match(stdout, /cluster, without a \(not assigned\)/)
  assert.match((await succeed(['blame', 'one', '--changed'])).stdout, /^b +depends_on /m)
})

test('what an open wave serves is told with its rollout and who has made it; others have the catalog’s', async (t) => {
  const store = openMemoryStore()
  const service = await start(t, { fleet: chartFleet(), store })
  const { types, call, url } = service
  const controller = await startEngine({
    store,
    types,
    now: () => new Date(),
    controlsRollouts: true,
    onStoreError() {},
  })
  t.after(() => controller.stop())
  await run(service, ['PUT', '/clusters/two/platform_components/a', {}])
  const waves = [
    { name: 'first', clusters: ['one'], approval: { after: {} } },
    { name: 'rest', rest: true },
  ]
  const operations = [
    { op: 'patch', type: 'platform_components', id: 'a', patch: { component_version: '2.0.0' } },
  ]
  const staged = await call('POST', '/batch', { body: { operations, rollout: { waves }, message: 'two' } })
  assert.equal(staged.status, 202, staged.text)
  const { id } = staged.body.rollout
  const field = async (cluster: string) => {
    const { stdout, stderr } = await cli(['blame', cluster, 'a', 'component_version', '-o', 'json'], { url })
    assert.equal(stderr, '')
    const [{ value, rollout, message }] = JSON.parse(stdout)
    return { value, rollout, message }
  }
  await waitFor('the wave to open', async () => (await field('one')).value === '2.0.0')
  assert.deepEqual(await field('one'), { value: '2.0.0', rollout: id, message: 'two' })
  assert.deepEqual(await field('two'), { value: '1.0.0', rollout: undefined, message: 'Seed file' })
  const changed = await cli(['blame', 'one', 'a', '--changed'], { url })
  assert.match(changed.stdout, new RegExp(`^a +component_version +2\\.0\\.0 +rollout ${id} `, 'm'))
  const listed = await call('GET', '/clusters?selector=version.a%3D2.0.0')
  assert.deepEqual(
    listed.body.map(({ id: cluster }: { id: string }) => cluster),
    ['one'],
  )
})
