import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Json } from '../src/base/json.ts'
import { hashOf } from '../src/engine/token-secret.ts'
import { readSharedTokens } from '../src/http/auth/shared-tokens.ts'
import { type Answer, READ_TOKEN, startService, WRITE_TOKEN } from './service.ts'

const POLLS = [
  '/api/v2/flux/clusters',
  '/api/v2/flux/clusters/one.k8s.example.com/platform-components',
  '/api/v2/flux/clusters/one.k8s.example.com/namespaces',
  '/api/v2/flux/clusters/one.k8s.example.com/rolebindings',
]

const OPEN = ['/health', '/ready', '/metrics', '/openapi.yaml', '/openapi.json', '/docs']

const READS = [
  '/clusters',
  '/clusters/one',
  '/clusters/one/history',
  '/clusters/one/inputs/namespaces',
  '/clusters/one/platform_components/a',
  '/clusters/one/patches/a',
  '/platform_components',
  '/platform_components/a',
  '/namespaces',
  '/namespaces/team-a',
  '/namespaces/team-a/history',
  '/rolebindings',
  '/rolebindings/admins',
  '/revisions',
  '/revisions/1',
]

/** Each of them would pass and change something, in this order. */
const WRITES: readonly (readonly [string, string, Json?])[] = [
  ['POST', '/namespaces', { id: 'new' }],
  ['PUT', '/namespaces/team-a', { labels: { team: 'x' } }],
  ['PATCH', '/namespaces/team-b', { labels: { team: 'b' } }],
  ['DELETE', '/namespaces/team-b'],
  ['PUT', '/clusters/one/platform_components/c', {}],
  ['PATCH', '/clusters/one/platform_components/b', { enabled: false }],
  ['PUT', '/clusters/one/patches/b', { x: '1' }],
  ['PATCH', '/clusters/one/patches/a', { x: '1' }],
  ['DELETE', '/clusters/one/patches/a'],
  ['DELETE', '/clusters/one/platform_components/a'],
  ['PATCH', '/clusters/one', { environment: 'qa' }],
  ['DELETE', '/clusters/one'],
  ['POST', '/clusters/one/restore'],
  ['DELETE', '/clusters/two?purge=true'],
  ['DELETE', '/rolebindings/admins?cascade=true&confirm=removals'],
]

function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
}

function assertUnauthorized(answer: Answer): void {
  assert.equal(answer.status, 401, answer.text)
  assert.equal(answer.body.error, 'unauthorized')
  assert.match(String(answer.headers['www-authenticate']), /^Bearer/)
}

test('in read-only mode polls are answered and open routes work', async () => {
  const service = await startService({ mode: 'read-only' })
  for (const url of POLLS) {
    for (const token of [READ_TOKEN, WRITE_TOKEN]) {
      assert.equal((await service.call('GET', url, { token })).status, 200, url)
    }
    assertUnauthorized(await service.call('GET', url, { token: null }))
  }
  for (const url of OPEN) assert.equal((await service.call('GET', url, { token: null })).status, 200, url)
})

test('in read-only mode polls have the bytes of crud mode', async () => {
  const readOnly = await startService({ mode: 'read-only' })
  const crud = await startService()
  for (const url of POLLS) {
    assert.equal((await readOnly.call('GET', url)).text, (await crud.call('GET', url)).text)
  }
})

test('in read-only mode every write is 405, says what is allowed and changes nothing', async () => {
  const service = await startService({ mode: 'read-only' })
  for (const [method, url, body] of WRITES) {
    const answer = await service.call(method, url, { body })
    assert.equal(answer.status, 405, `${method} ${url}`)
    assert.equal(answer.body.error, 'method_not_allowed')
    assert.equal(answer.headers.allow, 'GET, HEAD')
  }
  for (const url of [...POLLS, '/health']) {
    const answer = await service.call('POST', url, { body: {} })
    assert.equal(answer.status, 405, url)
    assert.equal(answer.headers.allow, 'GET, HEAD')
  }
  assert.equal(service.engine.state.revision, 1)
})

test('in read-only mode a write is 405 whatever its body', async () => {
  const service = await startService({ mode: 'read-only' })
  const merge = { 'content-type': 'application/merge-patch+json' }
  for (const [raw, headers] of [
    ['{}', merge],
    ['{', {}],
    ['', {}],
    ['<x/>', { 'content-type': 'application/xml' }],
    ['{"__proto__":{}}', {}],
  ] as const) {
    const answer = await service.call('PATCH', '/clusters/one', { raw, headers })
    assert.equal(answer.status, 405, raw)
    assert.equal(answer.headers.allow, 'GET, HEAD')
  }
})

test('in read-only mode every read of documents is 404', async () => {
  const service = await startService({ mode: 'read-only' })
  for (const url of READS) {
    const answer = await service.call('GET', url)
    assert.equal(answer.status, 404, url)
    assert.equal(answer.body.error, 'not_found')
  }
})

test('in crud mode reads take the read token and the write token', async () => {
  const service = await startService()
  for (const url of [...POLLS, ...READS]) {
    for (const token of [READ_TOKEN, WRITE_TOKEN]) {
      assert.equal((await service.call('GET', url, { token })).status, 200, url)
    }
  }
})

test('writes take the write token', async () => {
  const service = await startService()
  for (const [method, url, body] of WRITES) {
    const { revision } = service.engine.state
    const { status, text } = await service.call(method, url, { body })
    assert.ok(status === 200 || status === 201, `${method} ${url}: ${text}`)
    assert.equal(service.engine.state.revision, revision + 1, `${method} ${url}`)
  }
})

test('writes are forbidden to the read token and change nothing', async () => {
  const service = await startService()
  for (const [method, url, body] of WRITES) {
    const answer = await service.call(method, url, { body, token: READ_TOKEN })
    assert.equal(answer.status, 403, `${method} ${url}`)
    assert.equal(answer.body.error, 'forbidden')
  }
  assert.equal(service.engine.state.revision, 1)
})

test('without a valid token nothing but the open routes is served', async () => {
  const service = await startService()
  for (const token of [null, 'wrong', '', `${WRITE_TOKEN}x`, WRITE_TOKEN.slice(0, -1), `${READ_TOKEN},x`]) {
    for (const url of [...POLLS, ...READS]) assertUnauthorized(await service.call('GET', url, { token }))
    for (const [method, url, body] of WRITES) {
      assertUnauthorized(await service.call(method, url, { body, token }))
    }
    for (const url of OPEN) assert.equal((await service.call('GET', url, { token })).status, 200, url)
  }
  assert.equal(service.engine.state.revision, 1)
})

test('a caller without a token learns nothing about what exists', async () => {
  const service = await startService()
  for (const [known, unknown] of [
    ['/clusters/one', '/clusters/nobody'],
    [POLLS[1], '/api/v2/flux/clusters/nobody.example.com/platform-components'],
  ] as const) {
    const answers = await Promise.all(
      [known, unknown].map((url) => service.call('GET', url as string, { token: null })),
    )
    assert.equal(answers[0]?.text, answers[1]?.text)
  }
})

test('a body is not looked at before the token is', async () => {
  const service = await startService()
  assertUnauthorized(await service.call('POST', '/namespaces', { raw: '{', token: null }))
  const answer = await service.call('POST', '/namespaces', { raw: '{', token: READ_TOKEN })
  assert.equal(answer.status, 403)
})

test('the scheme Bearer is taken in any case', async () => {
  const service = await startService()
  for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR']) {
    const headers = { authorization: `${scheme} ${READ_TOKEN}` }
    const answer = await service.call('GET', '/clusters', { token: null, headers })
    assert.equal(answer.status, 200, scheme)
  }
})

test('HTTP Basic is taken with the token as password, whoever the user is', async () => {
  const service = await startService()
  for (const user of ['flux', '', 'anyone at all', 'zoë']) {
    const read = { token: null, headers: { authorization: basic(user, READ_TOKEN) } }
    for (const url of POLLS) assert.equal((await service.call('GET', url, read)).status, 200, user)
    const refused = await service.call('POST', '/namespaces', { ...read, body: { id: 'new' } })
    assert.equal(refused.status, 403)
  }
  const headers = { authorization: basic('ci', WRITE_TOKEN).replace('Basic', 'bAsIc') }
  const written = await service.call('POST', '/namespaces', { token: null, headers, body: { id: 'new' } })
  assert.equal(written.status, 201)
})

test('anything else in the Authorization header is unauthorized', async () => {
  const service = await startService()
  for (const authorization of [
    READ_TOKEN,
    'Bearer',
    'Bearer ',
    `Token ${READ_TOKEN}`,
    `Bearer ${READ_TOKEN} ${READ_TOKEN}`,
    `Bearer "${READ_TOKEN}"`,
    `Basic ${READ_TOKEN}`,
    'Basic',
    'Basic !!!!',
    basic(READ_TOKEN, ''),
    basic(READ_TOKEN, 'x'),
    basic('flux', 'wrong'),
    `Basic ${Buffer.from(READ_TOKEN).toString('base64')}`,
  ]) {
    const answer = await service.call('GET', '/clusters', { token: null, headers: { authorization } })
    assertUnauthorized(answer)
  }
  assertUnauthorized(await service.call('GET', `/clusters?token=${READ_TOKEN}`, { token: null }))
})

test('one token for both may read and write', () => {
  const read = readSharedTokens({ tokens: ['same'] }, { tokens: ['same'] })
  assert.ok(read.ok)
  const { name, grant } = read.value.tokens.get(hashOf('same')) ?? {}
  assert.deepEqual([name, grant], ['writer', { role: 'admin' }])
})

test('open routes show no tokens', async () => {
  for (const mode of ['read-only', 'crud'] as const) {
    const service = await startService({ mode })
    await service.call('GET', POLLS[1] as string)
    for (const url of OPEN) {
      const { text } = await service.call('GET', url, { token: null })
      assert.ok(!text.includes(READ_TOKEN) && !text.includes(WRITE_TOKEN), url)
    }
  }
})
