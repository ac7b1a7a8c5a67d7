import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { runTokenCommand } from '../src/admin/store-tokens.ts'
import type { Json, JsonObject } from '../src/base/json.ts'
import { UsageProblem } from '../src/base/usage-problem.ts'
import { ROLES } from '../src/domain/access/grant.ts'
import { isSecret, tokenIdOf } from '../src/engine/token-secret.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { openSqliteStore, type SqliteOptions } from '../src/store/sqlite/sqlite.ts'
import { type Store, StoreError } from '../src/store/store.ts'
import { pruneLog } from '../src/transfer/verify-log.ts'
import { assertProblem, changesOf, pathsIn, run, STORES, start as startOne } from './every-store.ts'
import {
  type Answer,
  builtInTemplates,
  builtInTypes,
  type Call,
  COMPILED,
  MAIN,
  READ_TOKEN,
  type ServiceOptions,
  type ServiceProcess,
  spawnService,
  startService,
  type TestService,
  temporaryFolder,
  WRITE_TOKEN,
  waitFor,
} from './service.ts'

const POLL = '/api/v2/flux/clusters/one.k8s.example.com/namespaces'
const SEED_FILE = join(import.meta.dirname, '../data/seed.json')
const DEMO = '/api/v2/flux/clusters/demo-cluster-01.k8s.example.com/namespaces'
const DAY = 24 * 60 * 60

/** Read once for all services of this file. */
const types = builtInTypes()
const templates = builtInTemplates(types)

const start = (t: TestContext, options: ServiceOptions = {}) => startOne(t, { types, templates, ...options })

type Caller = Pick<TestService, 'call'>

interface Issued {
  readonly id: string
  readonly secret: string
  readonly answer: Answer
}

async function create(
  service: Caller,
  name: string,
  more: JsonObject = {},
  call: Call = {},
): Promise<Issued> {
  const answer = await service.call('POST', '/tokens', { ...call, body: { name, role: 'viewer', ...more } })
  assert.equal(answer.status, 201, answer.text)
  return { id: answer.body.id, secret: answer.body.secret, answer }
}

async function rotate(service: Caller, name: string, grace?: string): Promise<string> {
  const body = grace === undefined ? undefined : { grace }
  const answer = await service.call('POST', `/tokens/${name}/rotate`, { body })
  assert.equal(answer.status, 200, answer.text)
  return answer.body.secret
}

/** Whether a secret is good for anything. */
async function works(service: Caller, token: string): Promise<boolean> {
  const { status, text } = await service.call('GET', '/whoami', { token })
  assert.ok(status === 200 || status === 401 || status === 429, text)
  return status === 200
}

async function revisionOf(service: Caller): Promise<number> {
  return Number((await service.call('GET', '/whoami')).headers['x-revision'])
}

async function namesOf(service: Caller, query = ''): Promise<string[]> {
  const { status, body, text } = await service.call('GET', `/tokens${query}`)
  assert.equal(status, 200, text)
  return body.map(({ name }: { name: string }) => name)
}

function clockAt(text: string) {
  const clock = {
    time: Date.parse(text),
    now: () => new Date(clock.time),
    pass(seconds: number) {
      clock.time += seconds * 1000
    },
  }
  return clock
}

/** Nothing that is tried changes anything. */
async function unchanged(service: Caller, tries: () => Promise<void>): Promise<void> {
  const before = [await revisionOf(service), (await service.call('GET', '/tokens')).text]
  await tries()
  assert.deepEqual([await revisionOf(service), (await service.call('GET', '/tokens')).text], before)
}

/** A file of its own for the test, and services on it that may be stopped before its end. */
function sharedFile(t: TestContext) {
  const path = join(temporaryFolder(t), 'fleet.db')
  const open = (options: Partial<SqliteOptions> = {}): Store =>
    openSqliteStore({ path, write: true, ...options })
  async function serve(options: ServiceOptions = {}): Promise<TestService> {
    const service = await startService({ types, templates, ...options, store: options.store ?? open() })
    let stopped: Promise<void> | undefined
    const stop = () => {
      stopped ??= service.stop()
      return stopped
    }
    t.after(stop)
    return { ...service, stop }
  }
  return { path, open, serve }
}

for (const [store, open] of Object.entries(STORES)) {
  describe(`tokens in ${store}`, () => {
    describe('tell of their last use', () => lastUse(open))
    describe('do not come back', () => noReturn(open))
    describe('at once', () => concurrency(open))
  })
}

/** What is decided before the store is asked is the same over every store. */
describe('tokens over any store', () => {
  const open = async () => openMemoryStore()
  describe('are created', () => creation(open))
  describe('are previewed and repeated', () => previews(open))
  describe('are in the audit and nowhere else', () => audit(open))
  describe('are refused', () => refusals(open))
  describe('are found', () => finding(open))
  describe('are rotated', () => rotation(open))
  describe('end', () => endings(open))
})

type Open = (typeof STORES)[string]

function creation(open: Open): void {
  test('with a secret that is answered this once, and works at once', async (t) => {
    const clock = clockAt('2026-01-31T12:00:10.250Z')
    const service = await start(t, { store: await open(t), now: clock.now })
    const before = await revisionOf(service)
    const { answer, id, secret } = await create(service, 'ci-team-a')
    const token = {
      id: tokenIdOf('ci-team-a'),
      name: 'ci-team-a',
      role: 'viewer',
      created_at: '2026-01-31T12:00:10.250Z',
      created_by: 'writer',
      last_used_at: null,
      last_used_from: null,
      valid_secrets: 1,
    }
    assert.deepEqual(answer.body, { ...token, secret })
    assert.ok(isSecret(secret))
    assert.equal(answer.headers.location, `/tokens/${id}`)
    assert.equal(answer.headers['cache-control'], 'no-store')
    assert.equal(Number(answer.headers['x-revision']), before + 1)
    for (const name of [id, 'ci-team-a']) {
      assert.deepEqual((await service.call('GET', `/tokens/${name}`)).body, token)
    }
    assert.deepEqual((await service.call('GET', '/tokens')).body, [token])
    assert.ok(await works(service, secret))
    assert.equal((await service.call('GET', '/clusters/one', { token: secret })).status, 200)
  })

  test('for every role and scope, and whoami tells each what it is', async (t) => {
    const service = await start(t, { store: await open(t), now: clockAt('2026-01-31T12:00:00Z').now })
    const expires_at = '2027-01-31T10:00:00.000Z'
    const cases: Record<string, JsonObject> = {
      one: { role: 'cluster', cluster: 'one' },
      poll: { role: 'poller' },
      copy: { role: 'mirror' },
      part: { role: 'mirror', selector: 'environment=dev' },
      view: { role: 'viewer', expires_at },
      edit: { role: 'editor' },
      dev: { role: 'editor', selector: 'environment in (dev,qa)' },
      narrow: { role: 'editor', selector: 'id', types: ['clusters', 'namespaces'], expires_at },
      all: { role: 'admin' },
    }
    assert.deepEqual(new Set(Object.values(cases).map(({ role }) => role)), new Set(ROLES))
    for (const [name, granted] of Object.entries(cases)) {
      const { secret, answer } = await create(service, name, granted)
      const { body, status } = await service.call('GET', '/whoami', { token: secret })
      assert.equal(status, 200)
      assert.deepEqual(body, { name, via: 'token', ...granted })
      const {
        secret: _,
        id,
        created_at,
        created_by,
        last_used_at,
        last_used_from,
        valid_secrets,
        ...rest
      } = answer.body
      assert.deepEqual(rest, { name, ...granted })
    }
    for (const [token, name, role] of [
      [READ_TOKEN, 'reader', 'viewer'],
      [WRITE_TOKEN, 'writer', 'admin'],
    ] as const) {
      const { body } = await service.call('GET', '/whoami', { token })
      assert.deepEqual(body, { name, via: 'environment', role })
    }
    assertProblem(await service.call('GET', '/whoami', { token: null }), 401, 'unauthorized')
  })

  test('and are as good as the password of HTTP Basic, whatever the user is called', async (t) => {
    const service = await start(t, { store: await open(t) })
    const { secret } = await create(service, 'basic')
    for (const user of ['', 'x', 'flux', 'ü']) {
      const authorization = `Basic ${Buffer.from(`${user}:${secret}`).toString('base64')}`
      const { body } = await service.call('GET', '/whoami', { token: null, headers: { authorization } })
      assert.equal(body.name, 'basic')
    }
    const swapped = `Basic ${Buffer.from(`${secret}:`).toString('base64')}`
    const refused = await service.call('GET', '/whoami', { token: null, headers: { authorization: swapped } })
    assertProblem(refused, 401, 'unauthorized')
  })

  test('with times of any zone, told in UTC', async (t) => {
    const service = await start(t, { store: await open(t), now: clockAt('2026-01-31T12:00:00Z').now })
    const { answer } = await create(service, 'zone', { expires_at: '2026-06-01t02:00:00.5+02:00' })
    assert.equal(answer.body.expires_at, '2026-06-01T00:00:00.500Z')
  })

  test('under odd names, each apart from all others', async (t) => {
    const service = await start(t, { store: await open(t) })
    const names = [
      ...['0', 'a', 'A', 'a..b', 'a-_.b', 'constructor', 'toString', 'hasOwnProperty', 'null', 'Readers'],
      ...['a'.repeat(64), '0123456789abcdef'.repeat(4), 'x'.repeat(253), 'frs-0', 'tokens'],
    ]
    const issued = new Map<string, Issued>()
    for (const name of names) issued.set(name, await create(service, name))
    assert.equal(new Set([...issued.values()].map(({ id }) => id)).size, names.length)
    for (const [name, { id, secret }] of issued) {
      assert.equal((await service.call('GET', `/tokens/${id}`)).body.name, name)
      assert.equal((await service.call('GET', `/tokens/${encodeURIComponent(name)}`)).body.name, name)
      assert.equal((await service.call('GET', '/whoami', { token: secret })).body.name, name)
    }
    assert.deepEqual(await namesOf(service), names.toSorted())
    for (const [name, { secret }] of issued) {
      assert.equal((await service.call('DELETE', `/tokens/${name}`)).status, 200)
      assert.ok(!(await works(service, secret)))
    }
    assert.deepEqual(await namesOf(service), [])
    for (const name of ['__proto__', 'valueOf', 'prototype', '%00', '%ff%fe'.slice(0, 3), '.', ' ']) {
      const { status } = await service.call('GET', `/tokens/${name === ' ' ? '%20' : name}`)
      assert.ok(status === 404 || status === 400, `${name}: ${status}`)
    }
  })

  test('by another token, which the audit and the token itself name', async (t) => {
    const service = await start(t, { store: await open(t) })
    const admin = await create(service, 'ops', { role: 'admin' })
    const { answer } = await create(service, 'made-by-ops', {}, { token: admin.secret })
    assert.equal(answer.body.created_by, 'ops')
    await service.call('DELETE', '/tokens/ops')
    assert.equal((await service.call('GET', '/tokens/made-by-ops')).body.created_by, 'ops')
    assert.ok(await works(service, answer.body.secret), 'a token outlives the one that made it')
  })
}

const NAME_MESSAGE =
  'must be 1 to 253 letters, digits, "-", "_" or ".", with a letter or digit at both ends, such as ci-team-a'
const TYPES_KNOWN = /^is an unknown type: known are .*clusters, .*platform_components/

function refusals(open: Open): void {
  test('when anything is wrong with them: where and why is told, and nothing changes', async (t) => {
    const service = await start(t, { store: await open(t), now: clockAt('2026-01-31T12:00:00Z').now })
    const good = { name: 'ok', role: 'viewer' }
    const editor = { name: 'ok', role: 'editor' }
    const cases: readonly (readonly [Json, path: string, message: string | RegExp])[] = [
      [[good], '', 'must be an object'],
      ['text', '', 'must be an object'],
      [null, '', 'must be an object'],
      [{ role: 'viewer' }, '/name', 'is required'],
      [{ name: 'ok' }, '/role', 'is required'],
      [{ ...good, name: 7 }, '/name', 'must be a string, not 7'],
      [{ ...good, name: null }, '/name', 'must be a string, not null'],
      ...[
        '',
        '-a',
        'a-',
        '.a',
        '_a',
        'a b',
        'a/b',
        'ü',
        'a\n',
        '__proto__',
        'oidc:x',
        '漢字',
        '🚀',
        'x'.repeat(254),
      ].map((name) => [{ ...good, name }, '/name', NAME_MESSAGE] as const),
      ...['reader', 'writer', 'seed', 'local', 'unknown', 'anonymous'].map(
        (name) =>
          [{ ...good, name }, '/name', 'is what the audit calls somebody else: choose another'] as const,
      ),
      [
        { ...good, role: 'root' },
        '/role',
        'must be one of cluster, poller, mirror, viewer, editor, admin, not "root"',
      ],
      [{ ...good, id: 'tok-1' }, '/id', /^is an unknown field: known are name, role, .*expires_at$/],
      [{ ...good, secret: 'mine' }, '/secret', /^is an unknown field/],
      [{ ...good, secrets: [] }, '/secrets', /^is an unknown field/],
      [{ ...good, created_by: 'me' }, '/created_by', /^is an unknown field/],
      [{ ...good, role: 'cluster' }, '/cluster', 'is required for the role cluster: the id of the cluster'],
      [{ ...good, role: 'cluster', cluster: 'no' }, '/cluster', 'names an unknown cluster "no"'],
      [
        { ...good, role: 'cluster', cluster: '__proto__' },
        '/cluster',
        'names an unknown cluster "__proto__"',
      ],
      [{ ...good, role: 'cluster', cluster: '' }, '/cluster', 'names an unknown cluster ""'],
      [
        { ...good, role: 'cluster', cluster: 'one.k8s.example.com' },
        '/cluster',
        'names an unknown cluster "one.k8s.example.com"',
      ],
      [{ ...good, cluster: 'one' }, '/cluster', 'goes with the role cluster only, not with viewer'],
      [
        { ...good, selector: 'id' },
        '/selector',
        'goes with the roles editor and mirror only, not with viewer',
      ],
      [
        { ...good, role: 'admin', types: ['clusters'] },
        '/types',
        'goes with the role editor only, not with admin',
      ],
      [{ ...editor, selector: '' }, '/selector', /^is empty/],
      [{ ...editor, selector: 'environment=dev) or (1=1' }, '/selector', /^is not a selector/],
      [{ ...editor, selector: "environment=dev'; --" }, '/selector', /^is not a selector/],
      [{ ...editor, selector: 'uses.nothing' }, '/selector', /^holds "uses.nothing", which is unknown/],
      [{ ...editor, selector: 'a=__proto__' }, '/selector', /^holds "__proto__"/],
      [{ ...editor, selector: ['id'] }, '/selector', 'must be a string, not an array'],
      [{ ...editor, types: [] }, '/types', 'must not be empty'],
      [{ ...editor, types: 'clusters' }, '/types', 'must be an array, not "clusters"'],
      [{ ...editor, types: ['clusters', 'clusters'] }, '/types/1', 'is a duplicate: name each once'],
      [{ ...editor, types: ['clusters', 'nothing'] }, '/types/1', TYPES_KNOWN],
      [{ ...editor, types: ['tokens'] }, '/types/0', TYPES_KNOWN],
      [{ ...editor, types: ['constructor'] }, '/types/0', TYPES_KNOWN],
      [
        { ...good, expires_at: 'soon' },
        '/expires_at',
        'must be an RFC 3339 time, such as 2026-01-31T12:00:00Z, not "soon"',
      ],
      [{ ...good, expires_at: '2027-01-31' }, '/expires_at', /^must be an RFC 3339 time/],
      [{ ...good, expires_at: '2027-02-30T00:00:00Z' }, '/expires_at', /^must be an RFC 3339 time/],
      [{ ...good, expires_at: '2027-01-31T24:00:00Z' }, '/expires_at', /^must be an RFC 3339 time/],
      [{ ...good, expires_at: null }, '/expires_at', 'must be a string, not null'],
      [
        { ...good, expires_at: '2026-01-31T12:00:00Z' },
        '/expires_at',
        'is 2026-01-31T12:00:00.000Z, which is over already',
      ],
      [
        { ...good, expires_at: '2026-01-31T12:59:59+01:00' },
        '/expires_at',
        'is 2026-01-31T11:59:59.000Z, which is over already',
      ],
    ]
    await unchanged(service, async () => {
      for (const [body, path, message] of cases) {
        const answer = await service.call('POST', '/tokens', { body })
        assertProblem(answer, 400, 'validation_error')
        assert.deepEqual(pathsIn(answer), [path], answer.text)
        if (typeof message === 'string') assert.equal(answer.body.details[0].message, message)
        else assert.match(answer.body.details[0].message, message)
        assert.ok(!answer.text.includes('frs_'), answer.text)
      }
    })
  })

  test('with all that is wrong with them together', async (t) => {
    const service = await start(t, { store: await open(t) })
    const body = { name: '-', role: 'cluster', cluster: 'no', selector: 'a=(', types: ['x', 'clusters'] }
    const answer = await service.call('POST', '/tokens', { body })
    assertProblem(answer, 400, 'validation_error')
    assert.deepEqual(pathsIn(answer), ['/name', '/cluster', '/selector', '/types', '/selector', '/types/0'])
  })

  test('as bodies that are none', async (t) => {
    const service = await start(t, { store: await open(t) })
    const raw = '{"name":"x","role":"viewer","__proto__":{"role":"admin"}}'
    await unchanged(service, async () => {
      assertProblem(await service.call('POST', '/tokens', { raw }), 400, 'validation_error')
      assertProblem(await service.call('POST', '/tokens'), 400, 'validation_error')
      assertProblem(await service.call('POST', '/tokens', { raw: '{"name":' }), 400, 'validation_error')
      const headers = { 'content-type': 'text/plain' }
      const text = { raw: '{"name":"x","role":"viewer"}', headers }
      assertProblem(await service.call('POST', '/tokens', text), 415, 'unsupported_media_type')
      const twice = { body: { name: 'x', role: 'viewer' } }
      assertProblem(await service.call('POST', '/tokens?dryrun=true', twice), 400, 'validation_error')
    })
  })

  test('when there is one of the name already, whatever it grants', async (t) => {
    const clock = clockAt('2026-01-31T12:00:00Z')
    const service = await start(t, { store: await open(t), now: clock.now })
    const { secret } = await create(service, 'ci', { expires_at: '2026-02-01T00:00:00Z' })
    for (const seconds of [0, 2 * DAY]) {
      clock.pass(seconds)
      await unchanged(service, async () => {
        const answer = await service.call('POST', '/tokens', { body: { name: 'ci', role: 'admin' } })
        assertProblem(answer, 409, 'conflict')
        assert.deepEqual(pathsIn(answer), ['/name'])
        assert.match(answer.body.message, /^there is a token "ci" already/)
      })
      assert.equal(await works(service, secret), seconds === 0)
    }
    await create(service, 'CI')
  })

  test('when they are called like the id of a token: nobody could tell which is meant', async (t) => {
    const service = await start(t, { store: await open(t) })
    const { id } = await create(service, 'victim')
    const body = { name: id, role: 'viewer' }
    const answer = await service.call('POST', '/tokens', { body })
    assertProblem(answer, 400, 'validation_error')
    assert.deepEqual(pathsIn(answer), ['/name'])
  })

  test('to all but admins, who may not even look', async (t) => {
    const service = await start(t, { store: await open(t) })
    const roles = ROLES.filter((role) => role !== 'admin').map(
      (role): JsonObject => ({ role, ...(role === 'cluster' && { cluster: 'one' }) }),
    )
    const secrets = [READ_TOKEN]
    for (const [i, granted] of roles.entries()) secrets.push((await create(service, `t${i}`, granted)).secret)
    await service.call('GET', '/tokens')
    const requests: readonly (readonly [string, string, Json?])[] = [
      ['POST', '/tokens', { name: 'mine', role: 'admin' }],
      ['POST', '/tokens?dry_run=true', { name: 'mine', role: 'viewer' }],
      ['GET', '/tokens'],
      ['GET', '/tokens/t0'],
      ['GET', '/tokens/nobody'],
      ['POST', '/tokens/t0/rotate'],
      ['DELETE', '/tokens/t0'],
      ['DELETE', '/tokens/t0?dry_run=true'],
    ]
    const before = [await revisionOf(service), await namesOf(service)]
    for (const token of secrets) {
      for (const [method, url, body] of requests) {
        const answer = await service.call(method, url, { token, body })
        assertProblem(answer, 403, 'forbidden')
        assert.match(answer.body.message, /^this needs the role admin, and yours is /)
      }
    }
    for (const token of [null, 'wrong', `frs_${'0'.repeat(49)}`]) {
      for (const [method, url, body] of requests)
        assertProblem(await service.call(method, url, { token, body }), 401, 'unauthorized')
    }
    assert.deepEqual([await revisionOf(service), await namesOf(service)], before)
  })
}

function finding(open: Open): void {
  test('in a list by name, in pages, through filters', async (t) => {
    const service = await start(t, { store: await open(t) })
    assert.deepEqual(await namesOf(service), [])
    for (const name of ['d', 'b', 'B', 'a10', 'a2', 'c']) await create(service, name)
    await create(service, 'one', { role: 'cluster', cluster: 'one' })
    await create(service, 'one-again', { role: 'cluster', cluster: 'one' })
    await create(service, 'two', { role: 'cluster', cluster: 'two' })
    const all = ['B', 'a10', 'a2', 'b', 'c', 'd', 'one', 'one-again', 'two']
    assert.deepEqual(await namesOf(service), all)
    assert.deepEqual(await namesOf(service, '?role=cluster'), ['one', 'one-again', 'two'])
    assert.deepEqual(await namesOf(service, '?role=admin'), [])
    assert.deepEqual(await namesOf(service, '?cluster=one'), ['one', 'one-again'])
    assert.deepEqual(await namesOf(service, '?cluster=one&role=viewer'), [])
    assert.deepEqual(await namesOf(service, '?name=b'), ['b'])
    assert.deepEqual(await namesOf(service, '?name=%62&role=viewer'), ['b'])
    assert.deepEqual(await namesOf(service, '?name='), [])
    assert.deepEqual(await namesOf(service, '?name=__proto__'), [])
    const page = await service.call('GET', '/tokens?limit=2&offset=4')
    assert.deepEqual(
      page.body.map(({ name }: { name: string }) => name),
      ['c', 'd'],
    )
    assert.equal(page.headers['x-total-count'], '9')
    assert.equal(
      page.headers.link,
      '</tokens?limit=2&offset=2>; rel="prev", </tokens?limit=2&offset=6>; rel="next"',
    )
    const filtered = await service.call('GET', '/tokens?role=cluster&limit=1')
    assert.equal(filtered.headers['x-total-count'], '3')
    assert.equal(filtered.headers.link, '</tokens?role=cluster&limit=1&offset=1>; rel="next"')
    assert.deepEqual(await namesOf(service, '?offset=9'), [])
    assert.deepEqual(await namesOf(service, '?limit=0'), [])
  })

  test('not through what the list does not know', async (t) => {
    const service = await start(t, { store: await open(t) })
    for (const [query, path] of [
      ['limit=x', '?limit'],
      ['limit=5001', '?limit'],
      ['offset=-1', '?offset'],
      ['nmae=a', '?nmae'],
      ['at=1', '?at'],
      ['secret=frs_x', '?secret'],
      ['name=a&name=b', '?name'],
      ['dry_run=true', '?dry_run'],
    ]) {
      const answer = await service.call('GET', `/tokens?${query}`)
      assertProblem(answer, 400, 'validation_error')
      assert.deepEqual(pathsIn(answer), [path])
    }
  })

  test('not through a role that there is not', async (t) => {
    const service = await start(t, { store: await open(t) })
    assertProblem(await service.call('GET', '/tokens?role=edtor'), 400, 'validation_error')
  })

  test('by nothing but a name or an id', async (t) => {
    const service = await start(t, { store: await open(t) })
    const { secret, id } = await create(service, 'ci')
    for (const name of ['CI', 'ci2', id.slice(0, -1), id.toUpperCase(), '*', '__proto__', 'constructor']) {
      for (const [method, url] of [
        ['GET', `/tokens/${name}`],
        ['DELETE', `/tokens/${name}`],
        ['POST', `/tokens/${name}/rotate`],
      ] as const) {
        const answer = await service.call(method, url)
        assertProblem(answer, 404, 'not_found')
        assert.equal(answer.body.message, `no token "${name}"`)
      }
    }
    assert.equal((await service.call('HEAD', '/tokens/ci')).status, 200)
    for (const method of ['PUT', 'PATCH']) {
      const answer = await service.call(method, '/tokens/ci', { body: { name: 'ci', role: 'admin' } })
      assertProblem(answer, 405, 'method_not_allowed')
    }
    assertProblem(
      await service.call('DELETE', '/tokens/ci', { body: { purge: true } }),
      400,
      'validation_error',
    )
    assertProblem(await service.call('DELETE', '/tokens/ci?purge=true'), 400, 'validation_error')
    assert.ok(await works(service, secret))
  })
}

function rotation(open: Open): void {
  const begin = async (t: TestContext) => {
    const clock = clockAt('2026-01-31T12:00:10Z')
    const service = await start(t, { store: await open(t), now: clock.now })
    const { secret, id } = await create(service, 'ci', { role: 'cluster', cluster: 'one' })
    return { clock, service, secret, id }
  }
  const ends = async (service: Caller) =>
    (await service.call('GET', '/tokens/ci')).body.old_secrets_expire_at as string | undefined

  test('the new secret works at once, the old one for a day, and not a moment longer', async (t) => {
    const { clock, service, secret, id } = await begin(t)
    clock.pass(60)
    const answer = await service.call('POST', `/tokens/${id}/rotate`)
    assert.equal(answer.status, 200)
    assert.equal(answer.headers['cache-control'], 'no-store')
    const { secret: next, ...shown } = answer.body
    assert.ok(isSecret(next))
    assert.notEqual(next, secret)
    const token = {
      id,
      name: 'ci',
      role: 'cluster',
      cluster: 'one',
      created_at: '2026-01-31T12:00:10.000Z',
      created_by: 'writer',
      rotated_at: '2026-01-31T12:01:10.000Z',
      old_secrets_expire_at: '2026-02-01T12:01:10.000Z',
      last_used_at: null,
      last_used_from: null,
      valid_secrets: 2,
    }
    assert.deepEqual(shown, token)
    assert.deepEqual((await service.call('GET', '/tokens/ci')).body, token)
    const poll = (token: string) => service.call('GET', POLL, { token })
    assert.equal((await poll(next)).status, 200)
    assert.equal((await poll(secret)).status, 200)
    clock.pass(DAY - 0.001)
    const { body } = await service.call('GET', '/whoami', { token: secret })
    assert.equal(body.expires_at, '2026-02-01T12:01:10.000Z', 'it is told when it ends')
    assert.equal((await poll(secret)).status, 200)
    clock.pass(0.001)
    assertProblem(await poll(secret), 401, 'unauthorized')
    assertProblem(await service.call('GET', '/whoami', { token: secret }), 401, 'unauthorized')
    assert.equal((await poll(next)).status, 200)
    assert.ok(!('expires_at' in (await service.call('GET', '/whoami', { token: next })).body))
  })

  test('with any grace from none to 90 days', async (t) => {
    const { clock, service, secret } = await begin(t)
    const graces = {
      '0s': 0,
      '0d0h0m0s': 0,
      '1s': 1,
      '1h30m': 5400,
      '90m': 5400,
      '7d': 7 * DAY,
      '90d': 90 * DAY,
    }
    let current = secret
    for (const [grace, seconds] of Object.entries(graces)) {
      const next = await rotate(service, 'ci', grace)
      if (seconds > 0) {
        assert.equal(await ends(service), new Date(clock.time + seconds * 1000).toISOString())
        clock.pass(seconds - 0.001)
        assert.ok(await works(service, current), grace)
        clock.pass(0.001)
      }
      assert.ok(!(await works(service, current)), grace)
      assert.ok(await works(service, next), grace)
      current = next
    }
  })

  test('a grace of none leaves nothing of the old secret', async (t) => {
    const { service, secret } = await begin(t)
    await rotate(service, 'ci', '0s')
    assert.equal(await ends(service), undefined)
    assertProblem(await service.call('GET', POLL, { token: secret }), 401, 'unauthorized')
  })

  test('a second time the graces of the first get shorter, and never longer', async (t) => {
    const { clock, service, secret: first } = await begin(t)
    const second = await rotate(service, 'ci', '2h')
    const third = await rotate(service, 'ci', '48h')
    assert.equal(await ends(service), '2026-02-02T12:00:10.000Z', 'of the second')
    clock.pass(2 * 3600 - 1)
    assert.ok(await works(service, first))
    clock.pass(1)
    assert.ok(!(await works(service, first)), 'the first was not made to last longer')
    assert.ok(await works(service, second))
    const fourth = await rotate(service, 'ci', '10m')
    assert.equal(await ends(service), '2026-01-31T14:10:10.000Z')
    clock.pass(599)
    assert.ok((await works(service, second)) && (await works(service, third)))
    clock.pass(1)
    assert.ok(!(await works(service, second)) && !(await works(service, third)))
    assert.ok(await works(service, fourth))
    const fifth = await rotate(service, 'ci', '0s')
    assert.ok(!(await works(service, fourth)))
    assert.ok(await works(service, fifth))
  })

  test('a secret that has ended does not begin again with a later rotation', async (t) => {
    const { clock, service, secret } = await begin(t)
    await rotate(service, 'ci', '1m')
    clock.pass(60)
    const next = await rotate(service, 'ci', '90d')
    assert.ok(!(await works(service, secret)))
    assert.ok(await works(service, next))
  })

  test('not for a grace that is too long or none at all, and nothing changes', async (t) => {
    const { service, secret } = await begin(t)
    const message = (text: string) =>
      `must be a duration from 0s to 90d, such as 30m, 24h or 7d, not "${text}"`
    const wrong = [
      '91d',
      '90d1s',
      '2161h',
      '999999d',
      '',
      '24',
      'h',
      '-1h',
      '1.5h',
      ' 24h',
      '24H',
      '1w',
      '1d 2h',
    ]
    await unchanged(service, async () => {
      for (const grace of [...wrong, '9999999s', '1h\n', '٣h']) {
        const answer = await service.call('POST', '/tokens/ci/rotate', { body: { grace } })
        assertProblem(answer, 400, 'validation_error')
        assert.deepEqual(answer.body.details, [{ path: '/grace', message: message(grace) }])
      }
      for (const [body, path] of [
        [{ grace: 3600 }, '/grace'],
        [{ grace: null }, '/grace'],
        [{ grce: '1h' }, '/grce'],
        [{ secret: 'mine' }, '/secret'],
        [['1h'], ''],
        ['1h', ''],
        [null, ''],
      ] as const) {
        const answer = await service.call('POST', '/tokens/ci/rotate', { body })
        assertProblem(answer, 400, 'validation_error')
        assert.deepEqual(pathsIn(answer), [path])
      }
    })
    assert.ok(await works(service, secret))
  })

  test('with an empty object as without a body', async (t) => {
    const { service } = await begin(t)
    assert.equal((await service.call('POST', '/tokens/ci/rotate', { body: {} })).status, 200)
    assert.equal(await ends(service), '2026-02-01T12:00:10.000Z')
  })

  test('up to five secrets are valid at a time; a shorter grace makes room', async (t) => {
    const { clock, service, secret } = await begin(t)
    const secrets = [secret]
    for (let i = 0; i < 4; i++) secrets.push(await rotate(service, 'ci'))
    for (const each of secrets) assert.ok(await works(service, each))
    await service.call('GET', '/tokens')
    await unchanged(service, async () => {
      const answer = await service.call('POST', '/tokens/ci/rotate')
      assertProblem(answer, 409, 'conflict')
      assert.equal(
        answer.body.message,
        '5 earlier secrets of token "ci" are still valid: rotate with a shorter grace, such as 0s',
      )
      assert.ok(!('secret' in answer.body))
    })
    for (const each of secrets) assert.ok(await works(service, each))
    clock.pass(DAY)
    const late = await rotate(service, 'ci')
    assert.ok(await works(service, late), 'those that have ended make room too')
    for (let i = 0; i < 3; i++) await rotate(service, 'ci')
    const last = await rotate(service, 'ci', '0s')
    assert.ok(!(await works(service, late)))
    assert.ok(await works(service, last))
  })

  test('not once the token has expired', async (t) => {
    const clock = clockAt('2026-01-31T12:00:00Z')
    const service = await start(t, { store: await open(t), now: clock.now })
    await create(service, 'ends', { expires_at: '2026-01-31T13:00:00Z' })
    clock.pass(3599)
    const secret = await rotate(service, 'ends')
    const { body } = await service.call('GET', '/whoami', { token: secret })
    assert.equal(body.expires_at, '2026-01-31T13:00:00.000Z', 'a new secret does not make it last longer')
    clock.pass(1)
    assert.ok(!(await works(service, secret)))
    await unchanged(service, async () => {
      const answer = await service.call('POST', '/tokens/ends/rotate')
      assertProblem(answer, 409, 'conflict')
      assert.equal(answer.body.message, 'token "ends" has expired: revoke it and create another one')
    })
  })

  test('by themselves, where they may', async (t) => {
    const { service } = await begin(t)
    const { secret } = await create(service, 'ops', { role: 'admin' })
    const rotated = await service.call('POST', '/tokens/ops/rotate', { token: secret, body: { grace: '0s' } })
    assert.equal(rotated.status, 200)
    assert.ok(!(await works(service, secret)))
    assert.ok(await works(service, rotated.body.secret))
  })
}

function endings(open: Open): void {
  test('when they are revoked: at once, for every secret, and only once', async (t) => {
    const service = await start(t, { store: await open(t) })
    const { secret, id } = await create(service, 'ci', { role: 'editor' })
    const next = await rotate(service, 'ci')
    const { body: shown } = await service.call('GET', '/tokens/ci')
    const answer = await service.call('DELETE', `/tokens/${id}`)
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, shown)
    for (const token of [secret, next]) {
      assert.ok(!(await works(service, token)))
      assertProblem(await service.call('GET', POLL, { token }), 401, 'unauthorized')
      assertProblem(await service.call('GET', '/clusters', { token }), 401, 'unauthorized')
      const body = { id: 'new' }
      assertProblem(await service.call('POST', '/namespaces', { token, body }), 401, 'unauthorized')
    }
    await unchanged(service, async () => {
      for (const name of ['ci', id]) {
        assertProblem(await service.call('DELETE', `/tokens/${name}`), 404, 'not_found')
        assertProblem(await service.call('GET', `/tokens/${name}`), 404, 'not_found')
        assertProblem(await service.call('POST', `/tokens/${name}/rotate`), 404, 'not_found')
      }
    })
    assert.deepEqual(await namesOf(service), [])
  })

  test('when they expire: for reads, writes and polls, at that moment', async (t) => {
    const clock = clockAt('2026-01-31T12:00:00Z')
    const service = await start(t, { store: await open(t), now: clock.now })
    const { secret: token } = await create(service, 'ci', {
      role: 'editor',
      expires_at: '2026-01-31T13:00:00Z',
    })
    const requests = async () => {
      const body = { labels: { at: String(clock.time) } }
      return [
        await service.call('GET', '/clusters/one', { token }),
        await service.call('PATCH', '/clusters/one', { token, body }),
        await service.call('GET', POLL, { token }),
        await service.call('GET', '/api/v2/flux/clusters', { token }),
        await service.call('GET', '/whoami', { token }),
      ]
    }
    clock.pass(3599.999)
    for (const { status } of await requests()) assert.equal(status, 200)
    clock.pass(0.001)
    const before = await revisionOf(service)
    for (const answer of await requests()) assertProblem(answer, 401, 'unauthorized')
    assert.equal(await revisionOf(service), before)
    const { body } = await service.call('GET', '/tokens/ci')
    assert.equal(body.expires_at, '2026-01-31T13:00:00.000Z', 'it is still listed')
    assert.equal((await service.call('DELETE', '/tokens/ci')).status, 200)
    const again = await create(service, 'ci')
    assert.ok(await works(service, again.secret))
    assert.ok(!(await works(service, token)))
  })

  test('no sooner and no later than the earlier of their own end and that of a rotated secret', async (t) => {
    const clock = clockAt('2026-01-31T12:00:00Z')
    const service = await start(t, { store: await open(t), now: clock.now })
    const { secret } = await create(service, 'ci', { expires_at: '2026-01-31T13:00:00Z' })
    await rotate(service, 'ci', '30m')
    const endOf = async (token: string) => (await service.call('GET', '/whoami', { token })).body.expires_at
    assert.equal(await endOf(secret), '2026-01-31T12:30:00.000Z')
    const long = await create(service, 'long', { expires_at: '2026-01-31T13:00:00Z' })
    await rotate(service, 'long', '90d')
    assert.equal(await endOf(long.secret), '2026-01-31T13:00:00.000Z')
  })

  test('and make room for another of the same name, which has nothing of theirs', async (t) => {
    const clock = clockAt('2026-01-31T12:00:10Z')
    const service = await start(t, { store: await open(t), now: clock.now })
    const old = await create(service, 'ci', { role: 'admin' })
    assert.ok(await works(service, old.secret))
    await service.call('DELETE', '/tokens/ci')
    clock.pass(60)
    const young = await create(service, 'ci', { role: 'poller' })
    assert.equal(young.id, old.id)
    assert.notEqual(young.secret, old.secret)
    const { body } = await service.call('GET', '/tokens/ci')
    assert.deepEqual(
      [body.role, body.created_at, body.last_used_at, body.last_used_from, body.rotated_at],
      ['poller', '2026-01-31T12:01:10.000Z', null, null, undefined],
    )
    assert.ok(!(await works(service, old.secret)))
    assert.equal((await service.call('GET', '/whoami', { token: young.secret })).body.role, 'poller')
  })

  test('and their last use is not that of another of the same name, also within a minute', async (t) => {
    const clock = clockAt('2026-01-31T12:00:10Z')
    const service = await start(t, { store: await open(t), now: clock.now })
    const old = await create(service, 'ci')
    assert.ok(await works(service, old.secret))
    await service.call('DELETE', '/tokens/ci')
    clock.pass(20)
    await create(service, 'ci')
    const { body } = await service.call('GET', '/tokens/ci')
    assert.deepEqual([body.last_used_at, body.last_used_from], [null, null])
  })

  test('for an admin that revokes itself', async (t) => {
    const service = await start(t, { store: await open(t) })
    const { secret: token } = await create(service, 'ops', { role: 'admin' })
    assert.equal((await service.call('DELETE', '/tokens/ops', { token })).status, 200)
    assertProblem(await service.call('DELETE', '/tokens/ops', { token }), 401, 'unauthorized')
  })

  test('only in the state that the caller expects, as all other writes', async (t) => {
    const service = await start(t, { store: await open(t) })
    const { secret } = await create(service, 'ci')
    for (const headers of [{ 'If-Match': '"1"' }, { 'If-Match': '"999"' }, { 'If-None-Match': '*' }]) {
      for (const [method, url] of [
        ['DELETE', '/tokens/ci'],
        ['POST', '/tokens/ci/rotate'],
      ] as const) {
        const answer = await service.call(method, url, { headers: headers as Record<string, string> })
        assert.ok(answer.status === 412 || answer.status === 400, `${method} ${answer.text}`)
      }
    }
    assert.ok(await works(service, secret))
  })
}

function lastUse(open: Open): void {
  test('to the minute, from where, whatever they were used for', async (t) => {
    const clock = clockAt('2026-01-31T12:00:10Z')
    const service = await start(t, { store: await open(t), now: clock.now, trustedProxies: ['127.0.0.1'] })
    const { secret } = await create(service, 'ci')
    const shown = async () => {
      const { body } = await service.call('GET', '/tokens/ci')
      const [listed] = (await service.call('GET', '/tokens?name=ci')).body
      assert.deepEqual(listed, body)
      return [body.last_used_at, body.last_used_from]
    }
    assert.deepEqual(await shown(), [null, null])
    const basic = `Basic ${Buffer.from(`flux:${secret}`).toString('base64')}`
    const uses: readonly (readonly [string, Call])[] = [
      ['/whoami', { token: secret }],
      [POLL, { token: secret }],
      ['/api/v2/flux/clusters', { token: null, headers: { authorization: basic } }],
      ['/clusters/one', { token: secret }],
    ]
    for (const [i, [url, call]] of uses.entries()) {
      clock.pass(100)
      const headers = { ...call.headers, 'x-forwarded-for': `203.0.113.${i}` }
      assert.equal((await service.call('GET', url, { ...call, headers })).status, 200)
      const minute = new Date(Math.floor(clock.time / 60_000) * 60_000).toISOString()
      assert.deepEqual(await shown(), [minute, `203.0.113.${i}`])
    }
    const last = await shown()
    clock.pass(3600)
    await service.call('POST', '/tokens/ci/rotate', { body: { grace: '0s' } })
    assert.ok(!(await works(service, secret)))
    assert.ok(!(await works(service, `${secret}x`)))
    assert.deepEqual(await shown(), last, 'what was refused is no use')
  })

  test('without a revision, and without a line in the audit', async (t) => {
    const service = await start(t, { store: await open(t) })
    const { secret } = await create(service, 'ci')
    const before = await revisionOf(service)
    const { length } = (await service.call('GET', '/revisions')).body
    for (let i = 0; i < 20; i++) assert.ok(await works(service, secret))
    assert.equal(await revisionOf(service), before)
    assert.equal((await service.call('GET', '/revisions')).body.length, length)
  })

  test('also in the answer to a rotation', async (t) => {
    const clock = clockAt('2026-01-31T12:00:10Z')
    const service = await start(t, { store: await open(t), now: clock.now })
    const { secret } = await create(service, 'ci')
    await works(service, secret)
    clock.pass(3600)
    const { body } = await service.call('POST', '/tokens/ci/rotate')
    assert.deepEqual([body.last_used_at, body.last_used_from], ['2026-01-31T12:00:00.000Z', '127.0.0.1'])
  })
}

function previews(open: Open): void {
  test('a dry run says what would be, shows no secret and does nothing', async (t) => {
    const service = await start(t, { store: await open(t) })
    const { secret, id } = await create(service, 'ci')
    const writes: readonly (readonly [string, string, Json | undefined, string, string])[] = [
      ['POST', '/tokens?dry_run=true', { name: 'new', role: 'viewer' }, 'create', tokenIdOf('new')],
      ['POST', '/tokens/ci/rotate?dry_run=true', { grace: '0s' }, 'update', id],
      ['POST', '/tokens/ci/rotate?dry_run=true', undefined, 'update', id],
      ['DELETE', '/tokens/ci?dry_run=true', undefined, 'delete', id],
    ]
    await unchanged(service, async () => {
      for (const [method, url, body, op, changed] of writes) {
        const answer = await service.call(method, url, { body })
        assert.equal(answer.status, 200, answer.text)
        assert.equal(answer.body.dry_run, true)
        assert.equal(answer.body.change_count, 1)
        const [change] = answer.body.changes
        assert.deepEqual([change.type, change.id, change.op], ['tokens', changed, op])
        assert.equal(answer.body.impact.clusters, 0)
        assert.doesNotMatch(answer.text, /frs_|"secrets?"|"hash"/)
      }
    })
    assertProblem(await service.call('GET', '/tokens/new'), 404, 'not_found')
    assert.ok(await works(service, secret))
  })

  test('a dry run is refused for the same reasons', async (t) => {
    const service = await start(t, { store: await open(t) })
    await create(service, 'ci')
    const dry = (method: string, url: string, body?: Json) =>
      service.call(method, `${url}?dry_run=true`, { body })
    assertProblem(await dry('POST', '/tokens', { name: 'ci', role: 'viewer' }), 409, 'conflict')
    assertProblem(await dry('POST', '/tokens', { name: '-', role: 'viewer' }), 400, 'validation_error')
    assertProblem(await dry('POST', '/tokens/ci/rotate', { grace: '1y' }), 400, 'validation_error')
    assertProblem(await dry('DELETE', '/tokens/no'), 404, 'not_found')
  })

  test('the plan of a revocation holds, and not after something has changed', async (t) => {
    const service = await start(t, { store: await open(t) })
    const { secret } = await create(service, 'ci')
    const { body } = await service.call('DELETE', '/tokens/ci?dry_run=true')
    await rotate(service, 'ci')
    assertProblem(await service.call('DELETE', `/tokens/ci?plan=${body.plan}`), 409, 'plan_changed')
    assert.ok(await works(service, secret))
    const again = await service.call('DELETE', '/tokens/ci?dry_run=true')
    assert.equal((await service.call('DELETE', `/tokens/ci?plan=${again.body.plan}`)).status, 200)
  })

  test('a plan that does not hold any more tells nothing of secrets', async (t) => {
    const service = await start(t, { store: await open(t) })
    await create(service, 'ci')
    const { body } = await service.call('DELETE', '/tokens/ci?dry_run=true')
    await rotate(service, 'ci')
    const answer = await service.call('DELETE', `/tokens/ci?plan=${body.plan}`)
    assertProblem(answer, 409, 'plan_changed')
    assert.doesNotMatch(answer.text, /"hash|hash\\"|[0-9a-f]{64}/)
  })

  test('the plan of a creation and of a rotation can be kept, where one is answered at all', async (t) => {
    const clock = clockAt('2026-01-31T12:00:00Z')
    const service = await start(t, { store: await open(t), now: clock.now })
    for (const [url, body] of [
      ['/tokens', { name: 'new', role: 'viewer' }],
      ['/tokens/new/rotate', { grace: '1h' }],
    ] as const) {
      const { body: preview } = await service.call('POST', `${url}?dry_run=true`, { body })
      clock.pass(5)
      const query = preview.plan === undefined ? '' : `?plan=${preview.plan}`
      const answer = await service.call('POST', url + query, { body })
      assert.ok(answer.status < 300, answer.text)
    }
  })

  test('a creation that is sent again makes no second token and shows no secret', async (t) => {
    const service = await start(t, { store: await open(t) })
    const headers = { 'Idempotency-Key': 'key-1' }
    const body = { name: 'ci', role: 'viewer' }
    const { answer, secret } = await create(service, 'ci', {}, { headers })
    await unchanged(service, async () => {
      for (let i = 0; i < 3; i++) {
        const again = await service.call('POST', '/tokens', { body, headers })
        assert.equal(again.status, 201)
        assert.equal(again.headers['idempotent-replayed'], 'true')
        assert.equal(again.headers.location, answer.headers.location)
        const { secret: _, ...rest } = answer.body
        assert.deepEqual(again.body, rest)
        assert.ok(!again.text.includes('frs_'))
      }
      const other = await service.call('POST', '/tokens', { body: { ...body, role: 'admin' }, headers })
      assertProblem(other, 422, 'idempotency_mismatch')
    })
    assert.deepEqual(await namesOf(service), ['ci'])
    assert.ok(await works(service, secret))
    const unkeyed = await service.call('POST', '/tokens', { body })
    assertProblem(unkeyed, 409, 'conflict')
  })

  test('a rotation and a revocation that are sent again are done once', async (t) => {
    const service = await start(t, { store: await open(t) })
    const { secret } = await create(service, 'ci')
    const headers = { 'Idempotency-Key': 'key-2' }
    const first = await service.call('POST', '/tokens/ci/rotate', { headers, body: { grace: '1h' } })
    const second = await service.call('POST', '/tokens/ci/rotate', { headers, body: { grace: '1h' } })
    assert.equal(second.headers['idempotent-replayed'], 'true')
    assert.ok(!second.text.includes('frs_'))
    assert.ok((await works(service, first.body.secret)) && (await works(service, secret)))
    const gone = { headers: { 'Idempotency-Key': 'key-3' } }
    const revoked = await service.call('DELETE', '/tokens/ci', gone)
    assert.equal(revoked.status, 200)
    const { secret: next } = await create(service, 'ci')
    assertProblem(await service.call('DELETE', '/tokens/nobody', gone), 404, 'not_found')
    const replayed = await service.call('DELETE', '/tokens/ci', gone)
    assert.deepEqual([replayed.status, replayed.text], [200, revoked.text])
    assert.ok(await works(service, next), 'the one that came after it stays')
  })

  test('two callers may use the same key', async (t) => {
    const service = await start(t, { store: await open(t) })
    const headers = { 'Idempotency-Key': 'same' }
    const { secret: token } = await create(service, 'ops', { role: 'admin' }, { headers })
    const { secret } = await create(service, 'other', {}, { headers, token })
    assert.ok(isSecret(secret))
  })
}

function audit(open: Open): void {
  test('every step is there, with who did it and why, without a trace of secrets', async (t) => {
    const service = await start(t, { store: await open(t) })
    const headers = { 'X-Change-Message': 'for the night shift' }
    const { id, secret: token } = await create(service, 'ops', { role: 'admin' }, { headers })
    await service.call('POST', '/tokens/ops/rotate', { token })
    await create(service, 'one', { role: 'cluster', cluster: 'one' }, { token })
    await service.call('DELETE', '/tokens/ops', { token })
    const answer = await service.call('GET', '/revisions?type=tokens', { token: READ_TOKEN })
    assert.equal(answer.status, 200)
    assert.deepEqual(
      answer.body.map((entry: { actor: string; operation: string; message: string | null }) => [
        entry.actor,
        entry.operation,
        entry.message,
      ]),
      [
        ['ops', 'revoke token ops', null],
        ['ops', 'create cluster token one', null],
        ['ops', 'rotate token ops', null],
        ['writer', 'create admin token ops', 'for the night shift'],
      ],
    )
    const [revoked, , rotated, created] = answer.body.map(
      ({ changes }: { changes: readonly Json[] }) => changes[0],
    )
    assert.deepEqual([created.op, created.before, created.after.name], ['create', null, 'ops'])
    assert.equal(rotated.op, 'update')
    assert.deepEqual(Object.keys(rotated.after).sort(), [
      ...['created_at', 'created_by', 'id', 'name', 'old_secrets_expire_at', 'role', 'rotated_at'],
    ])
    assert.deepEqual([revoked.op, revoked.after, revoked.before.id], ['delete', null, id])
    const lines = { token: READ_TOKEN, headers: { accept: 'application/x-ndjson' } }
    const texts = [answer.text, (await service.call('GET', '/revisions?type=tokens', lines)).text]
    for (const { revision } of answer.body) {
      const one = await service.call('GET', `/revisions/${revision}`)
      assert.equal(one.body.impact.clusters, 0)
      texts.push(one.text)
    }
    const { body: found } = await service.call('GET', `/revisions?id=${id}`)
    assert.equal(found.length, 3)
    // The one hash of a revision is its own.
    for (const text of texts) assert.doesNotMatch(text, /frs_|"secrets?"|\{"hash"/)
    assert.equal((await service.call('GET', '/revisions/verify')).body.verified, true)
  })

  test('what is written with a token is written in its name', async (t) => {
    const service = await start(t, { store: await open(t) })
    const { secret: token } = await create(service, 'ci-team-a', { role: 'editor' })
    const body = { labels: { by: 'ci' } }
    assert.equal((await service.call('PATCH', '/clusters/one', { token, body })).status, 200)
    const { body: entries } = await service.call('GET', '/revisions?actor=ci-team-a')
    assert.deepEqual(
      entries.map(({ operation }: { operation: string }) => operation),
      ['patch clusters/one'],
    )
    const { body: history } = await service.call('GET', '/clusters/one/history')
    assert.equal(history[0].actor, 'ci-team-a')
  })

  test('they are no documents: not in a list, a batch, a rollback or a description of one', async (t) => {
    const service = await start(t, { store: await open(t) })
    const { id } = await create(service, 'ci')
    for (const { name } of service.types.all) {
      const { text, status } = await service.call('GET', `/${name}`)
      assert.equal(status, 200)
      assert.ok(!text.includes(id) && !text.includes('"ci"'), name)
    }
    await unchanged(service, async () => {
      const operations: JsonObject[] = [
        { op: 'create', type: 'tokens', document: { id: 'x', name: 'x', role: 'admin', secrets: [] } },
        { op: 'replace', type: 'tokens', id, document: { id, role: 'admin' } },
        { op: 'patch', type: 'tokens', id, patch: { role: 'admin' } },
        { op: 'delete', type: 'tokens', id },
        { op: 'restore', type: 'tokens', id },
        { op: 'assign', type: 'tokens', clusters: ['one'], ref: { id } },
        { op: 'create_token', token: { name: 'x', role: 'admin' } },
        { op: 'revoke_token', id },
      ]
      for (const operation of operations) {
        const answer = await service.call('POST', '/batch', { body: { operations: [operation] } })
        assertProblem(answer, 400, 'validation_error')
      }
      const types = await service.call('POST', '/rollback', { body: { to_revision: 1, types: ['tokens'] } })
      assertProblem(types, 400, 'validation_error')
      assert.deepEqual(pathsIn(types), ['/types/0'])
      const ids = await service.call('POST', '/rollback', { body: { to_revision: 1, ids: [id] } })
      assertProblem(ids, 400, 'validation_error')
      assert.deepEqual(pathsIn(ids), ['/ids/0'])
      for (const url of [`/tokens/${id}/history`, `/tokens/${id}/restore`, '/tokens/ci/inputs/namespaces'])
        assertProblem(await service.call('GET', url), 404, 'not_found')
    })
  })

  test('metrics count them', async (t) => {
    const service = await start(t, { store: await open(t) })
    await create(service, 'a')
    await create(service, 'b')
    await service.call('DELETE', '/tokens/a')
    const { text } = await service.call('GET', '/metrics', { token: null })
    assert.match(text, /^flux_resourceset_tokens 1$/m)
    assert.match(text, /^flux_resourceset_writes_total\{type="tokens",op="create_token",result="done"\} 2$/m)
  })
}

function noReturn(open: Open): void {
  const fleetAt = (service: TestService, revision: number, more: JsonObject = {}) =>
    service.call('POST', '/rollback', { body: { to_revision: revision, confirm: ['removals'], ...more } })

  test('a rollback to before a revocation brings the fleet back and not the token', async (t) => {
    const service = await start(t, { store: await open(t) })
    const { secret, id } = await create(service, 'ci')
    const then = await run(service, ['PATCH', '/clusters/one', { labels: { state: 'then' } }])
    const time = new Date().toISOString()
    await run(service, ['DELETE', '/tokens/ci'], ['PATCH', '/clusters/one', { labels: { state: 'now' } }])
    const answer = await fleetAt(service, then)
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(await changesOf(service, answer.body.revision), ['update clusters/one'])
    assertProblem(await service.call('GET', `/tokens/${id}`), 404, 'not_found')
    assert.ok(!(await works(service, secret)))
    const again = await service.call('POST', '/rollback', { body: { to_time: time } })
    assert.equal(again.status, 200, again.text)
    assert.ok(!(await works(service, secret)))
  })

  test('a rollback to before a creation leaves the token alone, also when nothing else has changed', async (t) => {
    const service = await start(t, { store: await open(t) })
    const before = await revisionOf(service)
    const { secret } = await create(service, 'ci')
    const nothing = await fleetAt(service, before)
    assert.equal(nothing.status, 200)
    assert.equal(nothing.body.changes, 0)
    assert.equal(await revisionOf(service), before + 1, 'no revision is made of nothing')
    await run(service, ['PATCH', '/clusters/one', { labels: { state: 'now' } }])
    assert.equal((await fleetAt(service, before)).body.changes, 1)
    assert.ok(await works(service, secret))
    await fleetAt(service, 0)
    assert.ok(await works(service, secret), 'not even to before everything')
  })

  test('a rollback to before a rotation brings back no secret that was rotated away', async (t) => {
    const service = await start(t, { store: await open(t) })
    const { secret } = await create(service, 'ci')
    const before = await revisionOf(service)
    const next = await rotate(service, 'ci', '0s')
    await run(service, ['PATCH', '/clusters/one', { labels: { state: 'now' } }])
    assert.equal((await fleetAt(service, before)).body.changes, 1)
    assert.ok(!(await works(service, secret)))
    assert.ok(await works(service, next))
  })

  test('a revert of any step of a token is a conflict that says so', async (t) => {
    const service = await start(t, { store: await open(t) })
    const { secret } = await create(service, 'ci')
    const next = await rotate(service, 'ci', '0s')
    await service.call('DELETE', '/tokens/ci')
    const last = await revisionOf(service)
    await unchanged(service, async () => {
      for (const revision of [last - 2, last - 1, last]) {
        for (const query of ['', '?dry_run=true']) {
          const answer = await service.call('POST', `/revisions/${revision}/revert${query}`)
          assertProblem(answer, 409, 'conflict')
          assert.equal(
            answer.body.message,
            `revision ${revision} changed a token, and tokens do not come back: revoke it, or create another one`,
          )
        }
      }
    })
    assert.ok(!(await works(service, secret)) && !(await works(service, next)))
  })

  test('the past shows no tokens, and a token opens the past as the present', async (t) => {
    const service = await start(t, { store: await open(t) })
    const before = await revisionOf(service)
    const { secret: token } = await create(service, 'ci')
    const { status } = await service.call('GET', `/clusters?at=${before}`, { token })
    assert.equal(status, 200)
    assertProblem(await service.call('GET', `/tokens?at=${before}`), 400, 'validation_error')
  })
}

function concurrency(open: Open): void {
  test('of many creations of one name, one wins, and only its secret is ever given out', async (t) => {
    const service = await start(t, { store: await open(t) })
    const answers = await Promise.all(
      Array.from({ length: 40 }, () =>
        service.call('POST', '/tokens', { body: { name: 'same', role: 'viewer' } }),
      ),
    )
    const created = answers.filter(({ status }) => status === 201)
    assert.equal(created.length, 1)
    for (const answer of answers.filter(({ status }) => status !== 201)) {
      assertProblem(answer, 409, 'conflict')
      assert.ok(!answer.text.includes('frs_'))
    }
    assert.ok(await works(service, created[0]?.body.secret))
    assert.deepEqual(await namesOf(service), ['same'])
  })

  test('of many creations with one key, all are the same one, and one of them has the secret', async (t) => {
    const service = await start(t, { store: await open(t) })
    const headers = { 'Idempotency-Key': 'k' }
    const body = { name: 'same', role: 'viewer' }
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => service.call('POST', '/tokens', { body, headers })),
    )
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [201])
    assert.equal(answers.filter((answer) => 'secret' in answer.body).length, 1)
    assert.equal(await revisionOf(service), 2)
  })

  test('of many rotations every secret that was answered works, and no more than five', async (t) => {
    const service = await start(t, { store: await open(t) })
    const { secret } = await create(service, 'ci')
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => service.call('POST', '/tokens/ci/rotate')),
    )
    const secrets = answers.flatMap(({ status, body }) => (status === 200 ? [body.secret as string] : []))
    assert.equal(secrets.length, 4)
    for (const answer of answers.filter(({ status }) => status !== 200))
      assertProblem(answer, 409, 'conflict')
    for (const each of [secret, ...secrets]) assert.ok(await works(service, each))
  })

  test('of many rotations without a grace one secret is left', async (t) => {
    const service = await start(t, { store: await open(t) })
    await create(service, 'ci')
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => service.call('POST', '/tokens/ci/rotate', { body: { grace: '0s' } })),
    )
    const good = await Promise.all(answers.map(({ body }) => works(service, body.secret)))
    assert.equal(good.filter(Boolean).length, 1)
  })

  test('of rotations and a revocation nothing is left', async (t) => {
    const service = await start(t, { store: await open(t) })
    for (let i = 0; i < 5; i++) {
      const { secret } = await create(service, 'ci')
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, n) =>
          n === i ? service.call('DELETE', '/tokens/ci') : service.call('POST', '/tokens/ci/rotate'),
        ),
      )
      for (const { status, text } of answers) assert.ok([200, 404, 409].includes(status), text)
      const secrets = [secret, ...answers.flatMap(({ body }) => body.secret ?? [])]
      for (const each of secrets) assert.ok(!(await works(service, each)))
      assert.deepEqual(await namesOf(service), [])
    }
  })
}

describe('tokens on a service that only reads', () => {
  test('are good for polls and whoami, and for nothing that is not there', async (t) => {
    const { open, serve } = sharedFile(t)
    const writer = await serve()
    const { secret } = await create(writer, 'one', { role: 'cluster', cluster: 'one' })
    const { secret: poller } = await create(writer, 'all', { role: 'poller' })
    const clock = clockAt(new Date().toISOString())
    const reader = await serve({
      mode: 'read-only',
      store: open({ write: false }),
      fleet: {},
      now: clock.now,
    })
    const call = (url: string, token: string) => reader.call('GET', url, { token })
    assert.equal((await call(POLL, secret)).status, 200)
    assert.equal((await call('/whoami', secret)).body.name, 'one')
    assertProblem(await call(POLL.replace('one.', 'two.'), secret), 403, 'forbidden')
    assertProblem(await call('/api/v2/flux/clusters', secret), 403, 'forbidden')
    assert.equal((await call('/api/v2/flux/clusters', poller)).status, 200)
    assertProblem(await call(POLL, 'wrong'), 401, 'unauthorized')
    assertProblem(await reader.call('GET', '/tokens'), 404, 'not_found')
    assertProblem(await reader.call('GET', '/tokens/one'), 404, 'not_found')
    const body = { name: 'x', role: 'viewer' }
    assertProblem(await reader.call('POST', '/tokens', { body }), 405, 'method_not_allowed')
    assertProblem(await reader.call('DELETE', '/tokens/one'), 405, 'method_not_allowed')
    const grace = await writer.call('POST', '/tokens/one/rotate', { body: { grace: '1h' } })
    await reader.engine.catchUp()
    assert.equal((await call(POLL, secret)).status, 200)
    assert.equal((await call(POLL, grace.body.secret)).status, 200)
    clock.pass(3601)
    assertProblem(await call(POLL, secret), 401, 'unauthorized')
    assert.equal((await call(POLL, grace.body.secret)).status, 200)
  })
})

describe('two services on one file', () => {
  const two = async (t: TestContext) => {
    const { serve } = sharedFile(t)
    return [await serve(), await serve({ fleet: {} })] as const
  }

  test('of creations of one name in both, one wins', async (t) => {
    const services = await two(t)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        (services[i % 2] as TestService).call('POST', '/tokens', { body: { name: 'same', role: 'viewer' } }),
      ),
    )
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, ...Array(19).fill(409)])
    const secret = answers.find(({ status }) => status === 201)?.body.secret
    for (const service of services) {
      await service.engine.catchUp()
      assert.ok(await works(service, secret))
    }
  })

  test('what one has made is good in the other at once', async (t) => {
    const [one, other] = await two(t)
    for (let i = 0; i < 10; i++) {
      const { secret } = await create(one, `new-${i}`)
      assert.ok(await works(other, secret))
      assert.ok(await works(other, await rotate(one, `new-${i}`, '0s')))
    }
  })

  test('who fails too often to say who they are makes nobody look for their tokens any more', async (t) => {
    const store = openMemoryStore()
    let looks = 0
    const head: typeof store.head = () => {
      looks++
      return store.head()
    }
    const service = await start(t, { store: { ...store, head }, maxAuthFailures: 3 })
    const { secret } = await create(service, 'gone')
    assert.equal((await service.call('DELETE', '/tokens/gone')).status, 200)
    looks = 0
    const answers = []
    for (let i = 0; i < 9; i++) answers.push(await service.call('GET', POLL, { token: secret }))
    assert.deepEqual(
      answers.map(({ status }) => status),
      [...Array(3).fill(401), ...Array(6).fill(429)],
    )
    assert.equal(looks, 3)
  })

  test('a revocation in one beats rotations in the other, whichever comes first', async (t) => {
    const [one, other] = await two(t)
    for (let i = 0; i < 10; i++) {
      const { secret } = await create(one, 'ci')
      await other.engine.catchUp()
      const answers = await Promise.all([
        other.call('POST', '/tokens/ci/rotate'),
        one.call('DELETE', '/tokens/ci'),
        one.call('POST', '/tokens/ci/rotate', { body: { grace: '0s' } }),
        other.call('POST', '/tokens/ci/rotate'),
      ])
      for (const { status, text } of answers) assert.ok(status === 200 || status === 404, text)
      assert.equal(answers[1].status, 200)
      const secrets = [secret, ...answers.flatMap(({ body }) => body.secret ?? [])]
      for (const service of [one, other]) {
        await service.engine.catchUp()
        for (const each of secrets) assert.ok(!(await works(service, each)))
        assert.deepEqual(await namesOf(service), [])
      }
    }
  })

  test('what is rotated without a grace in one is over in the other', async (t) => {
    const [one, other] = await two(t)
    const { secret } = await create(one, 'ci')
    await other.engine.catchUp()
    const next = await rotate(other, 'ci', '0s')
    await one.engine.catchUp()
    for (const service of [one, other]) {
      assert.ok(!(await works(service, secret)))
      assert.ok(await works(service, next))
    }
  })

  test('what was just created in one is found, rotated and revoked by the other', async (t) => {
    const [one, other] = await two(t)
    const answers: string[] = []
    for (let i = 0; i < 10; i++) {
      await create(one, `t${i}`)
      const rotated = await other.call('POST', `/tokens/t${i}/rotate`)
      await create(one, `u${i}`)
      const read = await other.call('GET', `/tokens/u${i}`)
      await create(one, `v${i}`)
      const revoked = await other.call('DELETE', `/tokens/v${i}`)
      answers.push(...[rotated, read, revoked].map(({ status }) => String(status)))
    }
    assert.deepEqual([...new Set(answers)], ['200'])
  })

  test('a revocation also reaches one that is further behind than the history reaches back', async (t) => {
    const { open, serve } = sharedFile(t)
    const clock = clockAt('2026-01-31T12:00:00Z')
    const one = await serve({ now: clock.now })
    const [kept, gone] = [await create(one, 'kept'), await create(one, 'gone')]
    const behind = await serve({ store: { ...open(), watch: () => () => {} }, fleet: {} })
    assert.ok((await works(behind, kept.secret)) && (await works(behind, gone.secret)))
    await one.call('DELETE', '/tokens/gone')
    const late = await create(one, 'late')
    clock.pass(60)
    await run(one, ['PATCH', '/clusters/one', { labels: { state: 'now' } }])
    const store = open()
    assert.ok((await pruneLog(store, clock.now().toISOString())).ok)
    await store.close()
    await behind.engine.catchUp()
    const good = await Promise.all([kept, gone, late].map(({ secret }) => works(behind, secret)))
    assert.deepEqual(good, [true, false, true])
  })

  test('the last use is the newest of both, and outlives them', async (t) => {
    const { open, serve } = sharedFile(t)
    const clock = clockAt('2026-01-31T12:00:10Z')
    const now = clock.now
    const one = await serve({ now })
    const { secret } = await create(one, 'ci')
    const reader = await serve({ store: open({ write: false }), mode: 'read-only', fleet: {}, now })
    const shown = async (service: Caller) => (await service.call('GET', '/tokens/ci')).body.last_used_at
    assert.ok(await works(one, secret))
    clock.pass(120)
    assert.ok(await works(reader, secret))
    assert.equal(await shown(one), '2026-01-31T12:00:00.000Z', 'what the other saw is not written down yet')
    await reader.stop()
    assert.equal(await shown(one), '2026-01-31T12:02:00.000Z')
    clock.pass(60)
    assert.ok(await works(one, secret))
    await one.stop()
    const again = await serve({ fleet: {}, now })
    assert.equal(await shown(again), '2026-01-31T12:03:00.000Z')
    assert.ok(await works(again, secret))
  })
})

/** Starts services together; all of them are gone after the test, whatever happens. */
async function startProcesses(t: TestContext, ...envs: Record<string, string>[]): Promise<ServiceProcess[]> {
  const started = await Promise.allSettled(envs.map((env) => spawnService(env)))
  for (const result of started) {
    if (result.status === 'fulfilled') t.after(() => result.value.stop('SIGKILL'))
  }
  return started.map((result) =>
    result.status === 'fulfilled' ? result.value : assert.fail(result.reason as Error),
  )
}

/** Runs the program with these arguments until it ends. */
async function command(args: readonly string[], env: Record<string, string>) {
  const child = spawn(process.execPath, [MAIN, 'token', ...args], {
    env: { ...COMPILED, ...env },
    timeout: 30_000,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr] = [child.stdout.toArray(), child.stderr.toArray()]
  const [code] = (await once(child, 'close')) as [number | null]
  const text = async (chunks: Promise<Buffer[]>) => Buffer.concat(await chunks).toString('utf8')
  return { code, stdout: await text(stdout), stderr: await text(stderr) }
}

/** Polls on and on with a secret that can be exchanged at any time; every answer but 200 is kept. */
function keepPolling(service: Caller, secret: string) {
  const poller = { secret, polls: 0, failures: [] as string[], stopped: false, done: Promise.resolve() }
  poller.done = (async () => {
    while (!poller.stopped) {
      const { status, text } = await service.call('GET', DEMO, { token: poller.secret })
      poller.polls++
      if (status !== 200) poller.failures.push(text)
      await sleep(1)
    }
  })()
  return poller
}

describe('processes on one file', () => {
  test('tokens live in all of them, through rotations under polling, revocation and a restart', async (t) => {
    const DATABASE_URL = `sqlite://${join(temporaryFolder(t), 'fleet.db')}`
    const common = { DATABASE_URL, SEED_FILE, MAX_AUTH_FAILURES: '100000' }
    const crud = { ...common, API_MODE: 'crud' }
    const [writer, reader] = (await startProcesses(t, crud, common)) as [ServiceProcess, ServiceProcess]

    const grant = { role: 'cluster', cluster: 'demo-cluster-01' }
    const issued = await create(writer, 'demo', grant)
    await waitFor('the reader takes the token', () => works(reader, issued.secret))

    const pollers = [writer, reader, writer, reader].map((service) => keepPolling(service, issued.secret))
    let current = issued.secret
    for (let round = 0; round < 3; round++) {
      const next = await rotate(writer, 'demo', '1h')
      assert.ok(await works(writer, next), 'at once where it was made')
      await waitFor('the reader takes the new secret', () => works(reader, next))
      for (const poller of pollers) {
        poller.secret = next
        const polls = poller.polls
        await waitFor('it polls on', () => poller.polls > polls + 1)
      }
      current = next
    }
    for (const poller of pollers) poller.stopped = true
    await Promise.all(pollers.map(({ done }) => done))
    for (const { failures, polls } of pollers) {
      assert.deepEqual(failures, [])
      assert.ok(polls > 10, `${polls} polls`)
    }

    assert.ok(await works(reader, issued.secret), 'the first is within its grace')
    const last = await rotate(writer, 'demo', '0s')
    await waitFor('the reader takes the last secret', () => works(reader, last))
    for (const service of [writer, reader]) {
      for (const secret of [issued.secret, current]) assert.ok(!(await works(service, secret)))
    }

    const doomed = await create(writer, 'doomed', grant)
    await waitFor('the reader takes it', () => works(reader, doomed.secret))
    assert.equal((await writer.call('DELETE', '/tokens/doomed')).status, 200)
    assert.ok(!(await works(writer, doomed.secret)))
    await waitFor('the reader takes it no more', async () => !(await works(reader, doomed.secret)))
    assertProblem(await reader.call('GET', DEMO, { token: doomed.secret }), 401, 'unauthorized')

    const spare = await create(writer, 'spare', { role: 'poller' })
    await waitFor('the reader takes the spare one', () => works(reader, spare.secret))
    assert.equal(await reader.stop(), 0)
    const { body } = await writer.call('GET', '/tokens/spare')
    assert.match(body.last_used_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:00\.000Z$/, 'the reader has written it down')
    assert.equal(body.last_used_from, '127.0.0.1')

    assert.equal(await writer.stop(), 0)
    const [again] = (await startProcesses(t, crud)) as [ServiceProcess]
    assert.ok(await works(again, last))
    assert.ok(await works(again, spare.secret))
    for (const secret of [issued.secret, current, doomed.secret]) assert.ok(!(await works(again, secret)))
    assert.deepEqual(await namesOf(again), ['demo', 'spare'])
    assert.equal((await again.call('GET', '/revisions/verify')).body.verified, true)
  })

  test('without tokens of the environment the command makes the first admin, beside the service', async (t) => {
    const DATABASE_URL = `sqlite://${join(temporaryFolder(t), 'fleet.db')}`
    const [service] = (await startProcesses(t, {
      ...{ DATABASE_URL, SEED_FILE, API_MODE: 'crud', SHARED_TOKENS: 'off', MAX_AUTH_FAILURES: '100000' },
    })) as [ServiceProcess]
    for (const token of [READ_TOKEN, WRITE_TOKEN]) assert.ok(!(await works(service, token)))

    const env = { DATABASE_URL }
    const made = await command(['create', 'ops', '--role', 'admin'], env)
    assert.deepEqual([made.code, made.stderr], [0, ''])
    const secret = made.stdout.trimEnd()
    assert.ok(isSecret(secret), 'the secret is all that it prints')
    await waitFor('the service takes it', () => works(service, secret))
    const who = await service.call('GET', '/whoami', { token: secret })
    assert.deepEqual(who.body, { name: 'ops', via: 'token', role: 'admin' })
    await create(service, 'made-by-ops', {}, { token: secret })

    const [listed, taken] = await Promise.all([
      command(['list', '-o', 'json'], env),
      command(['create', 'ops', '--role', 'admin'], env),
    ])
    const names = JSON.parse(listed.stdout).map(({ name }: { name: string }) => name)
    assert.deepEqual(names, ['made-by-ops', 'ops'])
    assert.doesNotMatch(listed.stdout, /frs_|hash|secrets/)
    assert.deepEqual([taken.code, taken.stdout], [2, ''])
    assert.match(taken.stderr, /^flux-resourceset: .*there is a token "ops" already/)

    const { body } = await service.call('GET', '/revisions?type=tokens&actor=local', { token: secret })
    assert.equal(body.length, 1)
    assert.equal(body[0].operation, 'create admin token ops')
    assert.match(body[0].message, /^by .+ on the store$/)

    const gone = await command(['revoke', 'ops'], env)
    assert.deepEqual(gone, { code: 0, stdout: 'revoked ops\n', stderr: '' })
    await waitFor('the service takes it no more', async () => !(await works(service, secret)))
  })
})

describe('the token commands', () => {
  /** A store with the small fleet, and a way to run commands on it in this process. */
  async function filled(t: TestContext) {
    const { path, serve } = sharedFile(t)
    const service = await serve()
    const env = { DATABASE_URL: `sqlite://${path}` }
    async function token(...args: string[]): Promise<string[]> {
      const lines: string[] = []
      await runTokenCommand(args, env, types, (line) => lines.push(line))
      await service.engine.catchUp()
      return lines
    }
    return { service, env, token }
  }

  test('make tokens of every kind, print the secret or everything, and list them', async (t) => {
    const { service, token } = await filled(t)
    assert.deepEqual(await token('list'), ['there are no tokens'])
    const [secret = ''] = await token('create', 'ops', '--role', 'admin')
    assert.ok(isSecret(secret))
    assert.ok(await works(service, secret))
    const args = ['--role', 'editor', '--selector', 'environment=dev', '--types', 'clusters,namespaces']
    const [json = ''] = await token(
      'create',
      'ci',
      ...args,
      '--expires',
      '2099-01-31T12:00:00+01:00',
      '-o',
      'json',
    )
    const made = JSON.parse(json)
    assert.ok(await works(service, made.secret))
    const { body } = await service.call('GET', '/whoami', { token: made.secret })
    assert.deepEqual(body, {
      name: 'ci',
      via: 'token',
      role: 'editor',
      selector: 'environment=dev',
      types: ['clusters', 'namespaces'],
      expires_at: '2099-01-31T11:00:00.000Z',
    })
    await token('create', 'one', '--role=cluster', '--cluster=one')
    assert.deepEqual(await token('list'), [
      'ci: role editor for (environment=dev) clusters,namespaces, until 2099-01-31T11:00:00.000Z, last used never',
      'one: role cluster for one, never expires, last used never',
      'ops: role admin, never expires, last used never',
    ])
    const [listed = ''] = await token('list', '-o', 'json')
    assert.deepEqual(
      JSON.parse(listed).map(({ name, created_by, last_used_at }: Record<string, string | null>) => [
        name,
        created_by,
        last_used_at,
      ]),
      ['ci', 'one', 'ops'].map((name) => [name, 'local', null]),
    )
    assert.doesNotMatch(listed, /frs_|hash|secrets/)
    assert.deepEqual(await token('revoke', 'ops'), ['revoked ops'])
    assert.ok(!(await works(service, secret)))
  })

  test('refuse what cannot be, and change nothing', async (t) => {
    const { service, token } = await filled(t)
    await token('create', 'ops', '--role', 'admin')
    const admin = ['--role', 'admin']
    const cases: readonly (readonly [args: readonly string[], message: RegExp])[] = [
      [[], /^there is no command "token ": create, list or revoke/],
      [['rotate', 'ops'], /^there is no command "token rotate"/],
      [['create', ...admin], /^one name of a token is needed/],
      [['create', 'a', 'b', ...admin], /^one name of a token is needed/],
      [['create', 'x'], /^--role must be one of cluster, poller, mirror, viewer, editor, admin$/],
      [['create', 'x', '--role', 'root'], /^--role must be one of .*, not "root"$/],
      [['create', 'x', '--role', '__proto__'], /^--role must be one of .*, not "__proto__"$/],
      [['create', 'x', ...admin, '--expires', 'soon'], /^--expires must be an RFC 3339 time/],
      [['create', 'x', ...admin, '--expires', '2020-01-01T00:00:00Z'], /which is over already$/],
      [['create', 'x', ...admin, '-o', 'yaml'], /^-o must be json, not "yaml"$/],
      [['create', 'x', ...admin, '--secret', 'mine'], /Unknown option '--secret'/],
      [['create', '', ...admin], /must be 1 to 253 letters/],
      [['create', '__proto__', ...admin], /must be 1 to 253 letters/],
      [['create', 'writer', ...admin], /is what the audit calls somebody else/],
      [['create', 'local', ...admin], /is what the audit calls somebody else/],
      [['create', 'ops', ...admin], /there is a token "ops" already/],
      [['create', 'x', '--role', 'cluster'], /^--cluster is required for the role cluster/],
      [['create', 'x', '--role', 'cluster', '--cluster', 'no'], /^--cluster names an unknown cluster "no"/],
      [
        ['create', 'x', ...admin, '--selector', 'id'],
        /^--selector goes with the roles editor and mirror only/,
      ],
      [['create', 'x', '--role', 'editor', '--selector', 'a=('], /^--selector is not a selector/],
      [['create', 'x', '--role', 'editor', '--types', 'clusters,no'], /is an unknown type/],
      [['list', 'ops'], /Unexpected argument 'ops'/],
      [['list', '-o', 'wide'], /^-o must be json/],
      [['revoke'], /^one name of a token is needed/],
      [['revoke', 'nobody'], /^there is no token "nobody": see token list$/],
      [['revoke', '__proto__'], /^there is no token "__proto__"/],
      [['revoke', 'ops', '--force'], /Unknown option '--force'/],
    ]
    await unchanged(service, async () => {
      for (const [args, message] of cases) {
        await assert.rejects(
          token(...args),
          (error: Error) => error instanceof UsageProblem && message.test(error.message),
          args.join(' '),
        )
      }
    })
  })

  test('need a store that is there and lasts, and to write where they write', async (t) => {
    const { env, token } = await filled(t)
    const at = (env: Record<string, string>, ...args: string[]) =>
      runTokenCommand(args, env, types, (line) => assert.fail(line))
    const create = ['create', 'x', '--role', 'admin']
    const missing = { DATABASE_URL: `sqlite://${join(temporaryFolder(t), 'none.db')}` }
    for (const args of [create, ['list'], ['revoke', 'x']]) {
      await assert.rejects(at(missing, ...args), (error) => error instanceof StoreError)
      await assert.rejects(at({ STORE_BACKEND: 'memory' }, ...args), /nothing to work on/)
    }
    const readOnly = { DATABASE_URL: `${env.DATABASE_URL}?mode=ro` }
    await assert.rejects(at(readOnly, ...create), /says mode=ro: this needs to write/)
    await assert.rejects(at(readOnly, 'revoke', 'x'), /says mode=ro: this needs to write/)
    await token(...create)
    const lines: string[] = []
    await runTokenCommand(['list'], readOnly, types, (line) => lines.push(line))
    assert.deepEqual(lines, ['x: role admin, never expires, last used never'])
  })

  test('speak of flags that there are', async (t) => {
    const { token } = await filled(t)
    await token('create', 'ops', '--role', 'admin')
    const messages: string[] = []
    for (const args of [
      ['ops', '--role', 'admin'],
      ['writer', '--role', 'admin'],
      ['x', '--role', 'admin', '--expires', '2020-01-01T00:00:00Z'],
    ]) {
      await assert.rejects(token('create', ...args), (error: Error) => messages.push(error.message) > 0)
    }
    assert.doesNotMatch(messages.join('\n'), /--name|--expires_at/)
  })

  test('list no last use of an earlier token of the same name', async (t) => {
    const { path, serve } = sharedFile(t)
    const clock = clockAt('2026-01-31T12:00:10Z')
    const service = await serve({ now: clock.now })
    const { secret } = await create(service, 'ci')
    assert.ok(await works(service, secret))
    await service.call('DELETE', '/tokens/ci')
    clock.pass(3600)
    await create(service, 'ci')
    await service.stop()
    const lines: string[] = []
    await runTokenCommand(['list'], { DATABASE_URL: `sqlite://${path}` }, types, (line) => lines.push(line))
    assert.deepEqual(lines, ['ci: role viewer, never expires, last used never'])
  })

  test('work for a user without a name, as in a container with a uid of its own', async (t) => {
    const { service, token } = await filled(t)
    const { mock } = t.mock.method(os, 'userInfo', () => {
      throw Object.assign(new Error('A system error occurred: uv_os_get_passwd returned ENOENT'), {
        code: 'ERR_SYSTEM_ERROR',
      })
    })
    syncBuiltinESMExports()
    t.after(() => {
      mock.restore()
      syncBuiltinESMExports()
    })
    const [secret = ''] = await token('create', 'ops', '--role', 'admin')
    assert.ok(await works(service, secret))
  })
})
