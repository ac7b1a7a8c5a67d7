import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Revision } from '../src/api/wire-types.ts'
import { assertProblem } from './every-store.ts'
import { type Answer, READ_TOKEN, smallFleet, startService, type TestService } from './service.ts'

async function revision(service: TestService, number: number) {
  return (await service.call('GET', `/revisions/${number}`)).body
}

function numbers({ body }: Answer): number[] {
  return body.map((entry: Revision) => entry.revision)
}

/** Revisions 2 to 6: five patches of cluster one. */
async function fivePatches(service: TestService): Promise<void> {
  for (const node_count of [1, 2, 3, 4, 5]) {
    await service.call('PATCH', '/clusters/one', { body: { node_count } })
  }
}

test('a revision tells who changed what, when and why, with before and after', async () => {
  const service = await startService({ now: () => new Date('2026-01-31T12:00:00Z') })
  const before = (await service.call('GET', '/namespaces/team-a')).body
  const headers = { 'x-change-message': 'hand over to team b', 'x-request-id': 'req-1' }
  const body = { labels: { team: 'b' } }
  const after = (await service.call('PATCH', '/namespaces/team-a', { body, headers })).body
  const recorded = await service.call('GET', '/revisions/2', { token: READ_TOKEN })
  assert.equal(recorded.status, 200)
  const { hash, impact, ...rest } = recorded.body
  assert.match(hash, /^[0-9a-f]{64}$/)
  assert.deepEqual(impact.by_environment, { dev: 1 })
  assert.deepEqual(rest, {
    revision: 2,
    time: '2026-01-31T12:00:00.000Z',
    actor: 'writer',
    message: 'hand over to team b',
    request_id: 'req-1',
    client_address: '127.0.0.1',
    operation: 'patch namespaces/team-a',
    change_count: 1,
    changes: [{ type: 'namespaces', id: 'team-a', op: 'update', before, after }],
  })
  assert.deepEqual(before.labels, { team: 'a' })
  assert.deepEqual(after.labels, { team: 'b' })
})

test('creating has no before and deleting has no after', async () => {
  const service = await startService()
  const { body: document } = await service.call('POST', '/namespaces', { body: { id: 'new' } })
  await service.call('DELETE', '/namespaces/new')
  const [created] = (await revision(service, 2)).changes
  assert.deepEqual(created, { type: 'namespaces', id: 'new', op: 'create', before: null, after: document })
  const [deleted] = (await revision(service, 3)).changes
  assert.deepEqual(deleted, { type: 'namespaces', id: 'new', op: 'delete', before: document, after: null })
})

test('deleting, restoring and purging a cluster are told apart', async () => {
  const service = await startService()
  const { body: document } = await service.call('GET', '/clusters/one')
  await service.call('DELETE', '/clusters/one')
  await service.call('POST', '/clusters/one/restore')
  await service.call('DELETE', '/clusters/one?purge=true')
  const change = { type: 'clusters', id: 'one' }
  const changes = await Promise.all([2, 3, 4].map(async (n) => (await revision(service, n)).changes[0]))
  assert.deepEqual(changes, [
    { ...change, op: 'delete', before: document, after: null },
    { ...change, op: 'restore', before: null, after: document },
    { ...change, op: 'purge', before: document, after: null },
  ])
})

test('the changes of one write stand in one revision', async () => {
  const service = await startService()
  await service.call('DELETE', '/platform_components/a?cascade=true')
  const { changes, change_count } = await revision(service, 2)
  const told = changes.map(({ type, id, op }: Revision['changes'][number]) => `${op} ${type}/${id}`)
  assert.deepEqual(told.toSorted(), [
    'delete platform_components/a',
    'update clusters/one',
    'update platform_components/b',
  ])
  assert.equal(change_count, 3)
})

test('the seed is the first revision, with every document it made', async () => {
  const fleet = smallFleet()
  const service = await startService({ fleet })
  const { changes, change_count } = await revision(service, 1)
  const told = changes.map(({ type, id, op }: Revision['changes'][number]) => `${op} ${type}/${id}`)
  const made = Object.entries(fleet).flatMap(([type, list]) => list.map(({ id }) => `create ${type}/${id}`))
  assert.deepEqual(told.toSorted(), made.toSorted())
  assert.equal(change_count, made.length)
})

test('a message outside ASCII is kept as it was written', async () => {
  const service = await startService()
  for (const message of ['größer für Zoë', '発行 → 🚀', 'plain']) {
    const sent = Buffer.from(message, 'utf8').toString('latin1')
    // A body of bytes: beside one of text, Node would write the header as UTF-8 a second time.
    const raw = Buffer.from(JSON.stringify({ labels: { n: String(message.length) } }))
    const { headers } = await service.call('PATCH', '/clusters/one', {
      raw,
      headers: { 'x-change-message': sent },
    })
    assert.equal((await revision(service, Number(headers['x-revision']))).message, message)
  }
})

test('a change without a message has none', async () => {
  const service = await startService()
  await fivePatches(service)
  assert.equal((await revision(service, 2)).message, null)
})

test("a caller's request id is answered and kept", async () => {
  const service = await startService()
  const headers = { 'x-request-id': 'ci/pipeline-42:7' }
  const answer = await service.call('POST', '/namespaces', { body: { id: 'new' }, headers })
  assert.equal(answer.headers['x-request-id'], 'ci/pipeline-42:7')
  assert.equal((await revision(service, 2)).request_id, 'ci/pipeline-42:7')
})

test('a request without a fit id gets one of its own', async () => {
  const service = await startService()
  const seen = new Set<string>()
  for (const [i, headers] of [
    {},
    {},
    { 'x-request-id': 'two words' },
    { 'x-request-id': 'x'.repeat(500) },
  ].entries()) {
    const answer = await service.call('POST', '/namespaces', { body: { id: `n${i}` }, headers })
    const id = String(answer.headers['x-request-id'])
    assert.match(id, /^[\w-]{8,64}$/)
    assert.equal((await revision(service, i + 2)).request_id, id)
    seen.add(id)
  }
  assert.equal(seen.size, 4)
})

test('revisions are listed newest first', async () => {
  const service = await startService()
  await fivePatches(service)
  const answer = await service.call('GET', '/revisions', { token: READ_TOKEN })
  assert.equal(answer.status, 200)
  assert.deepEqual(numbers(answer), [6, 5, 4, 3, 2, 1])
  const { impact: _impact, ...fifth } = await revision(service, 5)
  assert.deepEqual(answer.body[1], fifth)
})

test('revisions are read in pages by limit and before', async () => {
  const service = await startService()
  await fivePatches(service)
  const list = async (query: string) => numbers(await service.call('GET', `/revisions?${query}`))
  assert.deepEqual(await list('limit=2'), [6, 5])
  assert.deepEqual(await list('limit=2&before=5'), [4, 3])
  assert.deepEqual(await list('before=3'), [2, 1])
  assert.deepEqual(await list('before=1'), [])
  assert.deepEqual(await list('limit=0'), [])
})

test('a long revision is cut in lists, and whole by its number', async () => {
  const namespaces = Array.from({ length: 30 }, (_, i) => ({ id: `n${i}` }))
  const service = await startService({ fleet: { namespaces } })
  const [listed] = (await service.call('GET', '/revisions')).body
  assert.equal(listed.change_count, 30)
  assert.ok(listed.changes.length < 30)
  const whole = await revision(service, 1)
  assert.equal(whole.changes.length, 30)
  const page = (await service.call('GET', '/revisions/1?limit=10&offset=5')).body
  assert.deepEqual(page.changes, whole.changes.slice(5, 15))
})

test('the history of a document holds its own changes only, newest first', async () => {
  const service = await startService()
  await fivePatches(service)
  await service.call('PATCH', '/clusters/two', { body: { node_count: 9 } })
  await service.call('DELETE', '/platform_components/a?cascade=true')
  const history = await service.call('GET', '/clusters/one/history', { token: READ_TOKEN })
  assert.equal(history.status, 200)
  assert.deepEqual(numbers(history), [8, 6, 5, 4, 3, 2, 1])
  for (const { changes } of history.body as Revision[]) {
    assert.deepEqual(
      changes.map(({ type, id }) => `${type}/${id}`),
      ['clusters/one'],
    )
  }
  assert.deepEqual(numbers(await service.call('GET', '/clusters/one/history?limit=2&before=6')), [5, 4])
})

test('every type has histories, and they outlive their documents', async () => {
  const more = {
    applied_sets: [{ id: 'base' }],
    strategies: [{ id: 'one', waves: [{ name: 'all', rest: true }] }],
    freezes: [{ id: 'far', reason: 'r', from: '2090-01-01T00:00:00Z' }],
  }
  const service = await startService({ fleet: { ...smallFleet(), ...more } })
  for (const { name } of service.types.all) {
    const [{ id }] = (await service.call('GET', `/${name}?limit=1`)).body
    assert.deepEqual(numbers(await service.call('GET', `/${name}/${id}/history`)).at(-1), 1, name)
  }
  await service.call('DELETE', '/platform_components/c')
  const { body } = await service.call('GET', '/platform_components/c/history')
  assert.deepEqual(
    body.map(({ changes }: Revision) => changes[0]?.op),
    ['delete', 'create'],
  )
})

test('a write that is refused or changes nothing leaves no revision', async () => {
  const service = await startService()
  await service.call('PATCH', '/clusters/one', { body: { environment: 'dev' } })
  await service.call('PATCH', '/clusters/one', { body: { environment: 'moon' } })
  await service.call('DELETE', '/namespaces/team-a')
  assert.deepEqual(numbers(await service.call('GET', '/revisions')), [1])
})

test('an unknown revision or a document that never was is 404', async () => {
  const service = await startService()
  for (const url of [
    '/revisions/2',
    '/revisions/0',
    '/revisions/abc',
    '/revisions/-1',
    '/clusters/nobody/history',
    '/namespaces/__proto__/history',
  ]) {
    assertProblem(await service.call('GET', url), 404, 'not_found')
  }
})

test('a bad or unknown parameter is refused by name', async () => {
  const service = await startService()
  for (const path of ['/revisions', '/clusters/one/history']) {
    for (const [query, name] of [
      ['limit=-1', 'limit'],
      ['limit=abc', 'limit'],
      ['limit=1.5', 'limit'],
      ['limit=1&limit=2', 'limit'],
      ['before=-1', 'before'],
      ['before=abc', 'before'],
      ['author=writer', 'author'],
    ] as const) {
      const answer = await service.call('GET', `${path}?${query}`)
      assertProblem(answer, 400, 'validation_error')
      assert.match(answer.body.message, new RegExp(name), `${path}?${query}`)
    }
  }
})
