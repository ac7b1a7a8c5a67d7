import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { after, before, suite, type TestContext, test } from 'node:test'
import { createOidc } from '../src/http/auth/oidc.ts'
import { assertProblem, start } from './every-store.ts'
import { type OidcIssuer, startOidcIssuer } from './oidc-issuer.ts'
import {
  failToStart,
  READ_TOKEN,
  type ServiceOptions,
  type ServiceProcess,
  smallFleet,
  spawnService,
  temporaryFolder,
  WRITE_TOKEN,
  waitFor,
} from './service.ts'

const AUDIENCE = 'fleet-api'
const BASE = '/api/v2/flux/clusters'
const POLL_ONE = `${BASE}/one.k8s.example.com/platform-components`
const POLL_TWO = `${BASE}/two.k8s.example.com/platform-components`
const UNAUTHORIZED = {
  error: 'unauthorized',
  reason: 'credential_refused',
  message: 'a valid token is needed: send "Authorization: Bearer <token>"',
}

const RULES = `
oidc:
  - { claim: admins, role: admin }
  - { claim: team-a, role: editor, selector: environment=dev }
  - { claim: namespaces, role: editor, types: [namespaces] }
  - { claim: everyone, role: viewer }
  - { claim: pollers, role: poller }
  - { claim: cluster-one, role: cluster, cluster: one }
  - { claim: team-a, role: admin }
`

/** Settings of a service with this issuer; the folder is the caller's to clean. */
function settings(folder: string, issuer: OidcIssuer, more: Record<string, string> = {}) {
  const write = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }
  return {
    STORE_BACKEND: 'memory',
    API_MODE: 'crud',
    SEED_FILE: write('seed.json', JSON.stringify(smallFleet())),
    ACCESS_FILE: write('access.yaml', RULES),
    OIDC_ISSUER: issuer.url,
    OIDC_AUDIENCE: AUDIENCE,
    MAX_AUTH_FAILURES: '100000',
    ...more,
  }
}

/** The service in this process with an issuer, and a clock that can be put forward. */
async function startWithIssuer(t: TestContext, options: ServiceOptions = {}) {
  const issuer = await startOidcIssuer(t, { audience: AUDIENCE })
  let time = Date.now()
  const now = () => new Date(time)
  const names = { audience: AUDIENCE, roleClaim: 'groups', usernameClaim: 'email' }
  const oidc = createOidc({ issuer: issuer.url, ...names, now })
  const rules = () => ({ oidc: [{ claim: 'everyone', role: 'viewer' }], certificates: [] }) as const
  const service = await start(t, { now, ...options, auth: { oidc, rules } })
  const mint = (claims = {}) => issuer.mint({ groups: ['everyone'], ...claims })
  const statusOf = async (token: string, path = POLL_ONE) =>
    (await service.call('GET', path, { token })).status
  const pass = (seconds: number) => {
    time += seconds * 1000
  }
  return { issuer, service, mint, statusOf, pass }
}

suite('a user', () => {
  let issuer: OidcIssuer
  let service: ServiceProcess
  const cleanings: (() => unknown)[] = []
  before(async () => {
    const context = { after: (clean: () => unknown) => void cleanings.push(clean) }
    issuer = await startOidcIssuer(context as TestContext, { audience: AUDIENCE })
    service = await spawnService(settings(temporaryFolder(context), issuer))
  })
  after(async () => {
    await service.stop()
    for (const clean of cleanings) clean()
  })
  const as = async (...groups: string[]) => ({ token: await issuer.mint({ groups }) })

  test('has the role and the scope of the first rule that fits', async () => {
    for (const [groups, expected] of [
      [['admins'], { role: 'admin' }],
      [['everyone', 'admins'], { role: 'admin' }],
      [['everyone', 'team-a'], { role: 'editor', selector: 'environment=dev' }],
      [['team-a'], { role: 'editor', selector: 'environment=dev' }],
      [['x', 'namespaces'], { role: 'editor', types: ['namespaces'] }],
      [['everyone'], { role: 'viewer' }],
      [['pollers'], { role: 'poller' }],
      [['cluster-one'], { role: 'cluster', cluster: 'one' }],
    ] as const) {
      const { body } = await service.call('GET', '/whoami', await as(...groups))
      const { expires_at, ...who } = body
      assert.deepEqual(
        who,
        { name: 'oidc:ada@example.com (user-1)', via: 'oidc', ...expected },
        groups.join(),
      )
      assert.ok(Date.parse(expires_at) > Date.now())
    }
  })

  test('may have one role as a text, and may send the token as a password', async () => {
    const token = await issuer.mint({ groups: 'everyone' })
    assert.equal((await service.call('GET', '/clusters', { token })).status, 200)
    const authorization = `Basic ${Buffer.from(`ada:${token}`).toString('base64')}`
    const answer = await service.call('GET', '/clusters', { token: null, headers: { authorization } })
    assert.equal(answer.status, 200)
  })

  test('who is a viewer polls, reads and previews, and writes nothing', async () => {
    const viewer = await as('everyone')
    for (const path of [POLL_ONE, POLL_TWO, BASE]) {
      const answer = await service.call('GET', path, viewer)
      assert.equal(answer.status, 200, answer.text)
      assert.equal(answer.text, (await service.call('GET', path, { token: READ_TOKEN })).text)
    }
    for (const path of ['/clusters', '/revisions'])
      assert.equal((await service.call('GET', path, viewer)).status, 200)
    const body = { id: 'by-viewer' }
    assertProblem(await service.call('POST', '/namespaces', { ...viewer, body }), 403, 'forbidden')
    const preview = await service.call('POST', '/namespaces?dry_run=true', { ...viewer, body })
    assert.equal(preview.status, 200, preview.text)
    assertProblem(await service.call('GET', '/tokens', viewer), 403, 'forbidden')
  })

  test('who polls for one cluster or for all gets just that', async () => {
    const [one, poller] = [await as('cluster-one'), await as('pollers')]
    assert.equal((await service.call('GET', POLL_ONE, one)).status, 200)
    for (const path of [POLL_TWO, BASE, '/clusters'])
      assertProblem(await service.call('GET', path, one), 403, 'forbidden')
    for (const path of [POLL_ONE, POLL_TWO, BASE])
      assert.equal((await service.call('GET', path, poller)).status, 200)
    assertProblem(await service.call('GET', '/clusters', poller), 403, 'forbidden')
  })

  test('who writes is in the audit by name', async () => {
    const grace = {
      token: await issuer.mint({ groups: ['team-a'], email: 'grace@example.com', sub: 'user-7' }),
    }
    const inside = { ...grace, body: { replicas: '4' } }
    const written = await service.call('PATCH', '/clusters/one/patches/a', inside)
    assert.equal(written.status, 200, written.text)
    const outside = await service.call('PATCH', '/clusters/two', { ...grace, body: { labels: { x: 'y' } } })
    assertProblem(outside, 403, 'forbidden')
    assert.match(outside.body.message, /two/)
    const made = await service.call('POST', '/tokens', {
      ...(await as('admins')),
      body: { name: 'by-ada', role: 'viewer' },
    })
    assert.equal(made.status, 201, made.text)
    assert.equal(made.body.created_by, 'oidc:ada@example.com (user-1)')
    const { body } = await service.call('GET', '/revisions?limit=2')
    assert.deepEqual(
      body.map(({ actor }: { actor: string }) => actor),
      ['oidc:ada@example.com (user-1)', 'oidc:grace@example.com (user-7)'],
    )
    for (const query of ['actor=oidc:grace@example.com%20(user-7)', 'q=grace@example.com', 'q=user-7'])
      assert.equal((await service.call('GET', `/revisions?${query}`)).body.length, 1, query)
  })

  test('whom no rule gives a role is known, and gets 403 everywhere', async () => {
    for (const claims of [
      { groups: ['strangers'] },
      { groups: [] },
      { groups: undefined },
      { groups: { a: 1 } },
    ]) {
      const from = service.output().length
      const token = await issuer.mint(claims)
      for (const path of ['/whoami', '/clusters', POLL_ONE, BASE]) {
        const answer = await service.call('GET', path, { token })
        assertProblem(answer, 403, 'forbidden')
        assert.match(answer.body.message, /nothing gives you a role/)
        assert.doesNotMatch(answer.text, /strangers|everyone|admins/)
      }
      await waitFor('the log says who', () =>
        /no rule of ACCESS_FILE gives this user a role/.test(service.output().slice(from)),
      )
    }
    assert.equal((await service.call('GET', '/health', await as('strangers'))).status, 200)
  })

  test('whose token does not hold gets the plain 401, and only the log has the reason', async () => {
    const other = await startOidcIssuer(
      { after: (clean: () => unknown) => void cleanings.push(clean) } as TestContext,
      {
        audience: AUDIENCE,
      },
    )
    const admin = { groups: ['admins'] }
    const now = Math.floor(Date.now() / 1000)
    const good = await issuer.mint(admin)
    const [head, payload, signature] = good.split('.') as [string, string, string]
    const raised = Buffer.from(payload, 'base64url').toString().replace('ada@', 'eva@')
    const publicKey = await issuer.publicKey()
    for (const [token, why] of [
      [await other.mint(admin), /was not issued by/],
      [await other.mint({ ...admin, iss: issuer.url }), /signature of the token is wrong/],
      [await issuer.mint({ ...admin, iss: `${issuer.url}/` }), /was not issued by/],
      [await issuer.mint({ ...admin, aud: 'another-api' }), /not for the audience/],
      [await issuer.mint({ ...admin, aud: undefined }), /aud/],
      [await issuer.mint(admin, { alg: 'none' }), /algorithm that is not allowed/],
      [
        await issuer.mint(admin, { alg: 'HS256', key: Buffer.from(publicKey) }),
        /algorithm that is not allowed/,
      ],
      [await issuer.mint({ ...admin, exp: now - 120 }), /has expired/],
      [await issuer.mint({ ...admin, exp: undefined }), /exp/],
      [await issuer.mint({ ...admin, nbf: now + 600 }), /nbf/],
      [await issuer.mint(admin, { kid: 'made-up' }), /has no key/],
      [await issuer.mint({ ...admin, email_verified: false }), /not verified/],
      [await issuer.mint({ ...admin, email: undefined }), /email.*is missing or no text/],
      [await issuer.mint({ ...admin, email: 'root\nwriter' }), /characters that are no text/],
      [
        `${head}.${Buffer.from(raised).toString('base64url')}.${signature}`,
        /signature of the token is wrong/,
      ],
      [`${head}.${payload}.`, /JWT|signature/],
      ['a.b.c', /JWT|issued/],
      [`${head}.${payload}`, /there is no such token/],
    ] as const) {
      const from = service.output().length
      for (const path of ['/whoami', '/clusters', POLL_ONE, BASE]) {
        const answer = await service.call('GET', path, { token })
        assert.equal(answer.status, 401, `${why}: ${answer.text}`)
        assert.deepEqual(answer.body, UNAUTHORIZED)
        assert.match(String(answer.headers['www-authenticate']), /^Bearer/)
      }
      await waitFor(`the log says ${why}`, () => why.test(service.output().slice(from)))
      for (const part of token.split('.').filter((each) => each.length > 8))
        assert.ok(!service.output().includes(part), 'the log holds a part of the token')
    }
    assert.equal((await service.call('GET', '/whoami', { token: good })).status, 200)
  })

  test('does not get in the way of other tokens', async () => {
    for (const token of [READ_TOKEN, WRITE_TOKEN])
      assert.equal((await service.call('GET', POLL_ONE, { token })).status, 200)
    const { body } = await service.call('POST', '/tokens', { body: { name: 'named', role: 'viewer' } })
    assert.equal((await service.call('GET', '/clusters', { token: body.secret })).status, 200)
  })
})

test('roles and names may come from other claims', async (t) => {
  const issuer = await startOidcIssuer(t, { audience: AUDIENCE })
  const more = { OIDC_ROLE_CLAIM: 'realm_access.roles', OIDC_USERNAME_CLAIM: 'preferred_username' }
  const service = await spawnService(settings(temporaryFolder(t), issuer, more))
  t.after(() => service.stop('SIGKILL'))
  const claims = { realm_access: { roles: ['everyone'] }, preferred_username: 'ada', groups: ['admins'] }
  const { body } = await service.call('GET', '/whoami', { token: await issuer.mint(claims) })
  assert.deepEqual([body.name, body.role], ['oidc:ada (user-1)', 'viewer'])
  assert.equal(await service.stop(), 0)
})

test('a token is good for as long as it says, and for a minute more', async (t) => {
  const { mint, statusOf, pass } = await startWithIssuer(t)
  const token = await mint({ exp: Math.floor(Date.now() / 1000) + 300 })
  assert.equal(await statusOf(token), 200)
  pass(350)
  assert.equal(await statusOf(token), 200)
  pass(15)
  assert.equal(await statusOf(token), 401)
  assert.equal(await statusOf(token, '/clusters'), 401)
})

test('new keys of the issuer are found, and old ones are good no longer', async (t) => {
  const { issuer, mint, statusOf } = await startWithIssuer(t)
  const old = await mint()
  assert.equal(await statusOf(old), 200)
  await issuer.rotate()
  const next = await mint()
  const found = await Promise.all(Array.from({ length: 20 }, () => statusOf(next)))
  assert.deepEqual([...new Set(found)], [200])
  assert.equal(await statusOf(old), 401)
  assert.equal(issuer.count('jwks'), 2)
})

test('tokens with keys that nobody has do not make the service ask the issuer for each', async (t) => {
  const { issuer, statusOf } = await startWithIssuer(t)
  for (let i = 0; i < 50; i++)
    assert.equal(await statusOf(await issuer.mint({}, { kid: `made-up-${i}` })), 401)
  assert.ok(issuer.count('jwks') <= 2, String(issuer.count('jwks')))
  // Nor do those of somebody else at all.
  const before = issuer.requests.length
  assert.equal(await statusOf(await issuer.mint({ iss: 'https://elsewhere.example.com' })), 401)
  assert.equal(issuer.requests.length, before)
})

suite('while the issuer is away', () => {
  for (const mood of ['fail', 'garbage', 'gone'] as const) {
    test(`its users get 503 and all others go on: ${mood}`, async (t) => {
      const { issuer, service, mint, statusOf, pass } = await startWithIssuer(t, { maxAuthFailures: 2 })
      const { body } = await service.call('POST', '/tokens', { body: { name: 'named', role: 'viewer' } })
      const token = await mint()
      if (mood === 'gone') issuer.stop()
      else issuer.behave(mood)
      for (let i = 0; i < 5; i++) {
        for (const path of ['/clusters', POLL_ONE, BASE, '/whoami']) {
          const answer = await service.call('GET', path, { token })
          assertProblem(answer, 503, 'unavailable')
          assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
          assert.doesNotMatch(answer.text, /127\.0\.0\.1|ECONN|issuer|OIDC/)
        }
      }
      for (const other of [READ_TOKEN, WRITE_TOKEN, body.secret as string])
        for (const path of [POLL_ONE, BASE, '/clusters']) assert.equal(await statusOf(other, path), 200)
      // What cannot hold whatever the issuer says is refused all the same.
      assert.equal(await statusOf(await issuer.mint({ iss: 'https://elsewhere.example.com' })), 401)
      const metrics = (await service.call('GET', '/metrics', { token: null })).text
      assert.match(metrics, /authentication_failures_total\{reason="unavailable"\} 20/)
      if (mood === 'gone') return
      issuer.behave('well')
      pass(10)
      assert.equal(await statusOf(token), 200)
    })
  }

  test('those who wait for it keep nobody else waiting', async (t) => {
    const { issuer, service, mint, statusOf } = await startWithIssuer(t)
    issuer.behave('hang')
    const headers = { authorization: `Bearer ${await mint()}` }
    const waiting = Array.from({ length: 20 }, (_, i) => {
      const path = [POLL_ONE, '/clusters'][i % 2] as string
      return request(service.url + path, { headers, agent: false })
        .on('error', () => {})
        .end()
    })
    t.after(() => {
      for (const sent of waiting) sent.destroy()
    })
    await waitFor('the issuer is asked', () => issuer.count('discovery') > 0)
    const polls = await Promise.all(Array.from({ length: 100 }, () => statusOf(READ_TOKEN)))
    assert.deepEqual([...new Set(polls)], [200])
    assert.equal(await statusOf(WRITE_TOKEN, '/clusters'), 200)
    assert.equal(issuer.count('discovery'), 1)
    for (const sent of waiting) sent.destroy()
  })

  test('keys that are known already still prove who somebody is', async (t) => {
    const { issuer, mint, statusOf } = await startWithIssuer(t)
    assert.equal(await statusOf(await mint()), 200)
    issuer.behave('fail')
    assert.equal(await statusOf(await mint({ sub: 'user-2' })), 200)
  })

  test('a service starts', async (t) => {
    const issuer = await startOidcIssuer(t, { audience: AUDIENCE })
    issuer.stop()
    const service = await spawnService(settings(temporaryFolder(t), issuer))
    t.after(() => service.stop('SIGKILL'))
    assert.equal((await service.call('GET', POLL_ONE)).status, 200)
    const token = await issuer.mint({ groups: ['admins'] })
    assertProblem(await service.call('GET', '/clusters', { token }), 503, 'unavailable')
    await waitFor('that is told', () => /OIDC tokens cannot be verified/.test(service.output()))
    assert.equal(await service.stop(), 0)
  })
})

test('tokens that do not hold are limited like all others', async (t) => {
  const { issuer, statusOf } = await startWithIssuer(t, { maxAuthFailures: 3 })
  const found: number[] = []
  for (let i = 0; i < 6; i++) found.push(await statusOf(await issuer.mint({ aud: `api-${i}` })))
  assert.deepEqual(found, [401, 401, 401, 429, 429, 429])
  assert.equal(await statusOf(await issuer.mint({ groups: ['everyone'] })), 200)
  // To be without a role is no failure to say who one is.
  for (let i = 0; i < 6; i++) assert.equal(await statusOf(await issuer.mint({ groups: [] })), 403)
})

suite('settings that do not fit together are refused', { concurrency: true }, () => {
  async function problemsOf(env: Record<string, string>): Promise<string[]> {
    const usual = { AUTH_TOKEN: READ_TOKEN, STORE_BACKEND: 'memory', LISTEN_ADDR: '127.0.0.1:0' }
    const { code, stderr } = await failToStart({ ...usual, LOG_LEVEL: 'silent', ...env })
    assert.equal(code, 2, stderr)
    return stderr.trimEnd().split('\n')
  }

  test('an issuer without audience and rules, or not over TLS', async () => {
    const problems = await problemsOf({ OIDC_ISSUER: 'http://user:hush@id.example.com' })
    assert.deepEqual(
      problems.map((line) => /^flux-resourceset: (\w+)/.exec(line)?.[1]),
      ['OIDC_ISSUER', 'OIDC_AUDIENCE', 'ACCESS_FILE'],
    )
    assert.doesNotMatch(problems.join(), /hush/)
  })

  test('rules that are not there, or not good', async (t) => {
    const ACCESS_FILE = join(temporaryFolder(t), 'access.yaml')
    const env = { OIDC_ISSUER: 'https://id.example.com', OIDC_AUDIENCE: AUDIENCE, ACCESS_FILE }
    const [missing = '', ...more] = await problemsOf(env)
    assert.ok(missing.includes(ACCESS_FILE) && missing.includes('ENOENT'), missing)
    assert.deepEqual(more, [])
    writeFileSync(ACCESS_FILE, 'oidc: [{ claim: a, role: viewer, types: [clusters] }, { claim: b }]')
    const problems = await problemsOf(env)
    assert.ok(
      problems.every((line) => line.startsWith(`flux-resourceset: ACCESS_FILE ${ACCESS_FILE}: /oidc/`)),
      problems.join('\n'),
    )
  })
})
