// Selectors over the status of clusters: in lists and previews, and nowhere else.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { start } from './every-store.ts'
import type { TestService } from './service.ts'

/** Of two clusters, `one` has polled everything and `two` nothing. */
async function polled(t: TestContext): Promise<TestService> {
  const service = await start(t)
  for (const { delivery } of service.types.delivered)
    await service.call('GET', `/api/v2/flux/clusters/one.k8s.example.com/${delivery.endpoint}`, {
      headers: { 'user-agent': 'flux-operator/v0.57.0' },
    })
  return service
}

function idsOf(documents: { readonly id: string }[]): string[] {
  return documents.map(({ id }) => id)
}

function query(selector: string): string {
  return `selector=${encodeURIComponent(selector)}`
}

test('lists of clusters and of status select by states', async (t) => {
  const service = await polled(t)
  for (const [selector, expected] of Object.entries({
    'contact=current': ['one'],
    'contact=never': ['two'],
    'contact in (current,never)': ['one', 'two'],
    'delivery=served': ['one'],
    'health!=progressing': ['two'],
    'operator_version<0.58': ['one'],
    'operator_version>0.57': [],
    'environment=dev,contact=never': [],
  })) {
    const { body, headers } = await service.call('GET', `/clusters?${query(selector)}`)
    assert.deepEqual(idsOf(body), expected, selector)
    assert.equal(headers.warning, undefined)
    const status = await service.call('GET', `/status?${query(selector)}`)
    assert.deepEqual(
      status.body.clusters.map(({ cluster }: { cluster: string }) => cluster),
      expected,
    )
  }
})

test('a state that there is not is refused with those there are', async (t) => {
  const service = await polled(t)
  for (const list of ['/clusters', '/status']) {
    const { status, body } = await service.call('GET', `${list}?${query('contact=ofline')}`)
    assert.equal(status, 400)
    assert.match(body.message, /\?selector holds "ofline", which is unknown: known are refused, offline,/)
  }
})

const ONLY = /status of clusters changes by itself, so it selects only in lists and in previews/

test('a list of the past selects by the states of the present', async (t) => {
  const { body } = await (await polled(t)).call('GET', `/clusters?at=1&${query('contact=never')}`)
  assert.deepEqual(idsOf(body), ['two'])
})

test('a preview of a batch selects by states, and the write refuses to', async (t) => {
  const service = await polled(t)
  const assign = { op: 'assign', type: 'platform_components', ref: { id: 'c' }, selector: 'contact=current' }
  const patch = { op: 'patch', type: 'clusters', patch: { labels: { x: 'y' } }, selector: 'health=unknown' }
  const body = { operations: [assign, patch] }
  const preview = await service.call('POST', '/batch?dry_run=true', { body })
  assert.equal(preview.status, 200, preview.text)
  assert.deepEqual(idsOf(preview.body.changes).toSorted(), ['one', 'two'])
  const written = await service.call('POST', '/batch', { body })
  assert.equal(written.status, 400)
  assert.deepEqual(
    written.body.details.map(({ path }: { path: string }) => path),
    ['/operations/0/selector', '/operations/1/selector'],
  )
  assert.match(written.body.message, ONLY)
  const unknown = { operations: [{ ...assign, selector: 'contact=ofline' }] }
  const refused = await service.call('POST', '/batch?dry_run=true', { body: unknown })
  assert.match(refused.body.message, /known are refused, offline/)
})

test('what is kept does not select by states', async (t) => {
  const service = await polled(t)
  for (const role of ['editor', 'mirror']) {
    const body = { name: role, role, selector: 'health=healthy' }
    const { status, body: problem } = await service.call('POST', '/tokens', { body })
    assert.equal(status, 400)
    assert.match(problem.message, ONLY)
  }
  const copied = await service.call('GET', `/log?${query('contact=current')}`)
  assert.deepEqual([copied.status, ONLY.test(copied.body.message)], [400, true])
  const rollback = { to_revision: 1, selector: 'contact=current', dry_run: true }
  const rolled = await service.call('POST', '/rollback', { body: rollback })
  assert.deepEqual([rolled.status, ONLY.test(rolled.body.message)], [400, true])
})
