// What clusters set themselves: the list of all overrides and patches, and what a preview says of them.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { JsonObject } from '../src/base/json.ts'
import { run, start } from './every-store.ts'
import { smallFleet, type TestService } from './service.ts'

/** `one` has a patch for a and b at v2.0.0 of its own; `two` gets the tag that the catalog has, by its own word. */
async function fleet(t: TestContext, options = {}): Promise<TestService> {
  const service = await start(t, { fleet: smallFleet(), ...options })
  const pin = { oci_tag: 'v1.0.0' }
  const headers = { 'x-change-message': 'INC-7' }
  const pinned = await service.call('PUT', '/clusters/two/platform_components/a', { body: pin, headers })
  assert.ok(pinned.status < 300, pinned.text)
  await run(service, ['PATCH', '/clusters/one', { labels: { later: '1' } }])
  return service
}

async function list(service: TestService, query = ''): Promise<JsonObject[]> {
  const { status, body, text } = await service.call('GET', `/overrides${query}`)
  assert.equal(status, 200, text)
  return body
}

function briefly(lines: readonly JsonObject[]): string[] {
  return lines.map(({ cluster, id, kind, field, value, catalog, redundant }) =>
    [cluster, id, kind, field, value, catalog ?? '-', redundant ? 'redundant' : ''].join(' ').trim(),
  )
}

test('every override and patch is listed, with who has set it', async (t) => {
  const service = await fleet(t)
  const lines = await list(service, '?explain=true')
  assert.deepEqual(briefly(lines), [
    'one a patch replicas 2 -',
    'one b override oci_tag v2.0.0 v1.0.0',
    'two a override oci_tag v1.0.0 v1.0.0 redundant',
  ])
  assert.deepEqual(
    lines.map(({ environment, revision, actor, message }) => [environment, revision, actor, message]),
    [
      ['dev', 1, 'seed', 'Seed file'],
      ['dev', 1, 'seed', 'Seed file'],
      ['prod', 2, 'writer', 'INC-7'],
    ],
  )
})

test('the list is filtered, paged, and says nothing of who unless it is asked', async (t) => {
  const service = await fleet(t)
  for (const [query, expected] of Object.entries({
    '?selector=environment%3Dprod': ['two'],
    '?id=b': ['one'],
    '?type=namespaces': [],
    '?kind=patch': ['one'],
    '?redundant=true': ['two'],
    '?redundant=false&kind=override': ['one'],
  }))
    assert.deepEqual(
      (await list(service, query)).map(({ cluster }) => cluster),
      expected,
      query,
    )
  const page = await service.call('GET', '/overrides?limit=1&offset=1')
  assert.deepEqual([page.headers['x-total-count'], page.body.length, page.body[0].id], ['3', 1, 'b'])
  assert.equal(page.body[0].actor, undefined)
  assert.match(String(page.headers.link), /offset=2/)
  assert.equal((await service.call('GET', '/overrides?kind=pin')).status, 400)
  assert.equal((await service.call('GET', '/overrides', { token: null })).status, 401)
})

test('a preview of a catalog edit names the clusters that keep their own value', async (t) => {
  const service = await fleet(t)
  const preview = async (id: string, body: JsonObject): Promise<JsonObject> =>
    (await service.call('PATCH', `/platform_components/${id}?dry_run=true`, { body })).body
  const { kept_overrides } = await preview('b', { oci_tag: 'v3.0.0' })
  const kept = { type: 'platform_components', id: 'b', field: 'oci_tag', clusters: 1, examples: ['one'] }
  assert.deepEqual(kept_overrides, [kept])
  // Another field is nobody's own.
  assert.equal((await preview('b', { component_path: 'core/b/3.0.0' })).kept_overrides, undefined)
  assert.equal((await preview('c', { oci_tag: 'v3.0.0' })).kept_overrides, undefined)
  // What is given up in the same write is not kept.
  const ref = { id: 'b', oci_tag: null }
  const operations = [
    { op: 'patch', type: 'platform_components', id: 'b', patch: { oci_tag: 'v3.0.0' } },
    {
      op: 'assign',
      type: 'platform_components',
      merge: true,
      ref,
      selector: 'overrides.platform_components=b',
    },
  ]
  const both = await service.call('POST', '/batch', { body: { operations, dry_run: true } })
  assert.deepEqual([both.body.change_count, both.body.kept_overrides], [2, undefined])
})
