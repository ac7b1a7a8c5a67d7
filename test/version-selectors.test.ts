// Which clusters have what: selectors over versions and overrides, and the clusters of one document.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { JsonObject } from '../src/base/json.ts'
import { run, start } from './every-store.ts'
import { smallFleet, type TestService, WRITE_TOKEN } from './service.ts'

/** `one` and `three` have a at the catalog's v1.0.0, `two` has it at v2.0.0 of its own; `four` has it switched off. */
async function fleet(t: TestContext): Promise<TestService> {
  const { clusters, ...rest } = smallFleet()
  const [one, two] = clusters as readonly JsonObject[]
  const more = (id: string, reference: JsonObject): JsonObject => ({
    id,
    cluster_name: id,
    cluster_dns: `${id}.k8s.example.com`,
    environment: 'qa',
    platform_components: [reference],
  })
  return start(t, {
    fleet: {
      ...rest,
      clusters: [
        one as JsonObject,
        { ...two, platform_components: [{ id: 'a', oci_tag: 'v2.0.0' }] },
        more('three', { id: 'a' }),
        more('four', { id: 'a', enabled: false, oci_tag: 'v3.0.0' }),
      ],
    },
  } as Parameters<typeof start>[1])
}

async function selected(service: TestService, selector: string, more = ''): Promise<string[]> {
  const path = `/clusters?selector=${encodeURIComponent(selector)}${more}`
  const { status, body, text } = await service.call('GET', path)
  assert.equal(status, 200, text)
  return body.map(({ id }: { id: string }) => id).toSorted()
}

test('clusters are listed by the version that they are served', async (t) => {
  const service = await fleet(t)
  for (const [selector, expected] of Object.entries({
    'version.a=v1.0.0': ['one', 'three'],
    'version.a=v2.0.0': ['two'],
    'version.a!=v1.0.0': ['four', 'two'],
    'version.a in (v2.0.0,v3.0.0)': ['two'],
    'version.a<v2': ['one', 'three'],
    'version.a>1.9': ['two'],
    'version.a': ['one', 'three', 'two'],
    '!version.a': ['four'],
    'version.a=v1.0.0,environment=qa': ['three'],
    'overrides.platform_components=a': ['four', 'two'],
    'overrides.platform_components': ['four', 'one', 'two'],
    'uses.platform_components=a,!overrides.platform_components': ['three'],
  }))
    assert.deepEqual(await selected(service, selector), expected, selector)
  const status = await service.call('GET', '/status?selector=version.a%3Dv2.0.0')
  assert.deepEqual([status.body.total, status.body.clusters[0].cluster], [1, 'two'])
})

test('a list of the past goes by the versions of then', async (t) => {
  const service = await fleet(t)
  await run(service, ['PATCH', '/platform_components/a', { oci_tag: 'v1.1.0' }])
  assert.deepEqual(await selected(service, 'version.a=v1.1.0'), ['one', 'three'])
  assert.deepEqual(await selected(service, 'version.a=v1.1.0', '&at=1'), [])
  assert.deepEqual(await selected(service, 'version.a=v1.0.0', '&at=1'), ['one', 'three'])
})

test('a write may select by versions: it is decided on the versions of the moment', async (t) => {
  const service = await fleet(t)
  const operations = [
    {
      op: 'assign',
      type: 'platform_components',
      merge: true,
      ref: { id: 'a', oci_tag: 'v1.5.0' },
      selector: 'version.a<v2',
    },
    { op: 'patch', type: 'clusters', patch: { labels: { raised: '1' } }, selector: 'version.a=v1.5.0' },
  ]
  const { status, text } = await service.call('POST', '/batch', { body: { operations } })
  assert.equal(status, 200, text)
  assert.deepEqual(await selected(service, 'raised=1'), ['one', 'three'])
})

test('what is kept may not go by versions, and a definition that there is not is told', async (t) => {
  const service = await fleet(t)
  const token = { name: 'ci', role: 'editor', selector: 'version.a=v1.0.0' }
  const kept = await service.call('POST', '/tokens', { body: token, token: WRITE_TOKEN })
  assert.equal(kept.status, 400, kept.text)
  assert.match(kept.text, /the version that clusters are served changes with the catalog/)
  const { body, headers } = await service.call('GET', '/clusters?selector=version.aa%3Dv1')
  assert.deepEqual(body, [])
  assert.match(String(headers.warning), /no platform component \\"aa\\"/)
  const wrong = await service.call('GET', '/clusters?selector=overrides.component')
  assert.match(wrong.body.message, /known are overrides\.namespaces, overrides\.platform_components/)
})

test('the clusters of a component are listed with what they are served and what is their own', async (t) => {
  const service = await fleet(t)
  const { body, headers } = await service.call('GET', '/platform_components/a/clusters')
  const lines = body.map((line: JsonObject) => [
    line.cluster,
    line.environment,
    line.enabled,
    line.version,
    line.overridden,
  ])
  assert.deepEqual(lines, [
    ['four', 'qa', false, null, false],
    ['one', 'dev', true, 'v1.0.0', false],
    ['three', 'qa', true, 'v1.0.0', false],
    ['two', 'prod', true, 'v2.0.0', true],
  ])
  assert.equal(headers['x-total-count'], '4')
  assert.deepEqual([body[0].overrides, body[1].patches], [{ oci_tag: 'v3.0.0' }, 1])
  const page = await service.call(
    'GET',
    '/platform_components/a/clusters?limit=1&offset=1&selector=version.a%3Dv1.0.0',
  )
  assert.deepEqual(
    [page.body.map((line: JsonObject) => line.cluster), page.headers['x-total-count']],
    [['three'], '2'],
  )
  assert.equal((await service.call('GET', '/platform_components/zz/clusters')).status, 404)
  const namespaces = await service.call('GET', '/namespaces/team-a/versions')
  assert.deepEqual(
    namespaces.body.versions.map(({ version, clusters }: JsonObject) => [version, clusters]),
    [[null, 1]],
  )
})
