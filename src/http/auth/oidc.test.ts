import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { exportJWK, generateKeyPair } from 'jose'
import { type OidcIssuer, startOidcIssuer } from '../../../test/oidc-issuer.ts'
import type { JsonObject } from '../../base/json.ts'
import { createOidc, looksLikeJwt, type Oidc, type OidcOptions, type OidcResult } from './oidc.ts'

const AUDIENCE = 'fleet-api'

interface Setup {
  readonly issuer: OidcIssuer
  readonly oidc: Oidc
  /** Puts our clock forward, or back. */
  pass(seconds: number): void
}

async function setUp(t: TestContext, options: Partial<OidcOptions> = {}): Promise<Setup> {
  const issuer = await startOidcIssuer(t, { audience: AUDIENCE })
  let now = Date.now()
  const usual = { issuer: issuer.url, audience: AUDIENCE, roleClaim: 'groups', usernameClaim: 'email' }
  const oidc = createOidc({ ...usual, now: () => new Date(now), ...options })
  return {
    issuer,
    oidc,
    pass(seconds) {
      now += seconds * 1000
    },
  }
}

function inSeconds(seconds: number): number {
  return Math.floor(Date.now() / 1000) + seconds
}

async function accepted(oidc: Oidc, jwt: string): Promise<OidcResult & { ok: true }> {
  const result = await oidc.verify(jwt)
  assert.ok(result.ok, JSON.stringify(result))
  return result
}

/** Why; whatever it is, the log does not get to see the token or a part of it. */
function reasonIn(result: OidcResult, jwt: string): string {
  assert.ok(!result.ok, JSON.stringify(result))
  const { reason } = result
  const parts = jwt.split('.').filter((part) => part.length > 8)
  assert.ok(![jwt, ...parts].some((secret) => secret && reason.includes(secret)), reason)
  assert.doesNotMatch(reason, /eyJ/)
  return reason
}

async function assertRefused(oidc: Oidc, jwt: string, why: RegExp): Promise<void> {
  const result = await oidc.verify(jwt)
  assert.match(reasonIn(result, jwt), why)
  assert.ok(!('unavailable' in result), JSON.stringify(result))
}

async function assertUnavailable(oidc: Oidc, jwt: string, why: RegExp): Promise<void> {
  const result = await oidc.verify(jwt)
  assert.match(reasonIn(result, jwt), why)
  assert.ok('unavailable' in result, JSON.stringify(result))
}

test('a JWT is told from other tokens by its three parts', () => {
  for (const token of ['a.b.c', 'eyJh.eyJp.c2ln', 'A-_9.B-_8.C-_7', 'eyJh.eyJp.']) {
    assert.equal(looksLikeJwt(token), true, token)
  }
  const others = [
    '',
    'opaque',
    'a.b',
    '..',
    '.b.c',
    'a..c',
    'a.b.c.d',
    'a.b.c.d.e',
    'a+.b.c',
    'a.b.c=',
    'a.b.c\n',
  ]
  for (const token of [...others, ' a.b.c', 'a.b/.c', 'ä.b.c']) {
    assert.equal(looksLikeJwt(token), false, JSON.stringify(token))
  }
})

describe('a good token', () => {
  test('says who its owner is, what is in the role claim, and until when', async (t) => {
    const { issuer, oidc } = await setUp(t)
    const exp = inSeconds(600)
    const result = await accepted(oidc, await issuer.mint({ groups: ['ops', 'dev'], exp }))
    const expiresAt = new Date(exp * 1000)
    assert.deepEqual(result, {
      ok: true,
      username: 'ada@example.com (user-1)',
      values: ['ops', 'dev'],
      expiresAt,
    })
  })

  test('is good with every algorithm that has a public key', async (t) => {
    const { issuer, oidc } = await setUp(t)
    for (const bits of [256, 384, 512]) {
      for (const family of ['RS', 'PS', 'ES']) {
        await issuer.publicKey(`${family}${bits}`)
      }
    }
    for (const alg of ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512']) {
      await accepted(oidc, await issuer.mint({}, { alg }))
    }
    for (const alg of ['EdDSA', 'Ed25519']) {
      const { issuer: other, oidc: itsOidc } = await setUp(t)
      await accepted(itsOidc, await other.mint({}, { alg }))
    }
  })

  test('may have one role as a text, and of a list only texts count', async (t) => {
    const { issuer, oidc } = await setUp(t)
    const values = async (groups: unknown) => (await accepted(oidc, await issuer.mint({ groups }))).values
    assert.deepEqual(await values('ops'), ['ops'])
    assert.deepEqual(await values(['ops', 7, null, ['x'], { y: 1 }, true, 'dev']), ['ops', 'dev'])
    for (const none of [undefined, null, 7, true, {}, { 0: 'ops' }, []]) {
      assert.deepEqual(await values(none), [], JSON.stringify(none))
    }
  })

  test('may have its roles in nested claims', async (t) => {
    const { issuer, oidc } = await setUp(t, { roleClaim: 'realm_access.roles' })
    const values = async (claims: Record<string, unknown>) =>
      (await accepted(oidc, await issuer.mint(claims))).values
    assert.deepEqual(await values({ realm_access: { roles: ['ops'] } }), ['ops'])
    const both = { realm_access: { roles: ['nested'] }, 'realm_access.roles': ['literal'] }
    assert.deepEqual(await values(both), ['literal'])
    for (const realm_access of [undefined, null, 'roles', ['roles'], { role: ['ops'] }]) {
      assert.deepEqual(await values({ realm_access }), [], JSON.stringify(realm_access))
    }
  })

  test('may have its roles in a claim with a URL for a name, and never in what all objects have', async (t) => {
    const roleClaim = 'https://example.com/roles'
    const { issuer, oidc } = await setUp(t, { roleClaim })
    assert.deepEqual((await accepted(oidc, await issuer.mint({ [roleClaim]: 'ops' }))).values, ['ops'])
    for (const name of ['constructor.name', '__proto__', 'toString.name', 'email.length']) {
      const options = { issuer: issuer.url, audience: AUDIENCE, roleClaim: name, usernameClaim: 'sub' }
      const odd = createOidc({ ...options, now: () => new Date() })
      assert.deepEqual((await accepted(odd, await issuer.mint())).values, [], name)
    }
  })

  test('may be for several audiences, and for any client', async (t) => {
    const { issuer, oidc } = await setUp(t)
    await accepted(oidc, await issuer.mint({ aud: ['other', AUDIENCE], azp: 'other' }))
  })

  test('may take its name from any claim, also with a backslash or from beyond ASCII', async (t) => {
    const { issuer, oidc } = await setUp(t, { usernameClaim: 'https://example.com/name' })
    for (const name of ['CORP\\ada', 'Ада', '李', 'a', 'x'.repeat(256)]) {
      const token = await issuer.mint({ 'https://example.com/name': name, email_verified: false })
      assert.equal((await accepted(oidc, token)).username, `${name} (user-1)`)
    }
  })

  test('has the name of its owner with what the issuer knows them by, and an email only when it is verified', async (t) => {
    const { issuer, oidc } = await setUp(t)
    const nameOf = async (claims: JsonObject) => (await accepted(oidc, await issuer.mint(claims))).username
    assert.equal(await nameOf({ email_verified: true }), 'ada@example.com (user-1)')
    assert.equal(await nameOf({ email_verified: true, sub: 'user-2' }), 'ada@example.com (user-2)')
    assert.equal(await nameOf({ email_verified: undefined as never }), 'user-1')
    assert.equal(await nameOf({ email_verified: 'true' }), 'user-1')
    const bySub = await setUp(t, { usernameClaim: 'sub' })
    assert.equal((await accepted(bySub.oidc, await bySub.issuer.mint())).username, 'user-1')
  })

  test('is good for a minute longer, and a minute sooner, for clocks that differ', async (t) => {
    const { issuer, oidc } = await setUp(t)
    await accepted(oidc, await issuer.mint({ exp: inSeconds(-50) }))
    await accepted(oidc, await issuer.mint({ nbf: inSeconds(50) }))
    await accepted(oidc, await issuer.mint({ nbf: inSeconds(0), iat: inSeconds(0) }))
  })

  test('may be good for longer than there are dates', async (t) => {
    const { issuer, oidc } = await setUp(t)
    const { expiresAt } = await accepted(oidc, await issuer.mint({ exp: 1e300 }))
    assert.ok(expiresAt.getTime() > Date.now())
  })

  test('needs no kid while only one key fits', async (t) => {
    const { issuer, oidc } = await setUp(t)
    const token = await issuer.mint({}, { header: { kid: undefined } })
    await accepted(oidc, token)
  })
})

describe('a token is refused', () => {
  test('with another issuer or none, and ours is not even asked', async (t) => {
    const { issuer, oidc } = await setUp(t)
    for (const iss of ['https://other.example.com', `${issuer.url}/`, undefined, null, [issuer.url]]) {
      await assertRefused(oidc, await issuer.mint({ iss }), /not issued by/)
    }
    assert.equal(issuer.requests.length, 0)
  })

  test('with another audience or none', async (t) => {
    const { issuer, oidc } = await setUp(t)
    for (const aud of ['other', ['other'], [], `${AUDIENCE}2`, undefined, null, { 0: AUDIENCE }]) {
      await assertRefused(oidc, await issuer.mint({ aud }), /not for the audience "fleet-api"/)
    }
  })

  test('without a signature, whatever stands in its place', async (t) => {
    const { issuer, oidc } = await setUp(t)
    const bare = await issuer.mint({}, { alg: 'none' })
    await assertRefused(oidc, bare, /algorithm/)
    await assertRefused(oidc, `${bare}c2lnbmF0dXJl`, /algorithm/)
    for (const alg of ['None', 'NONE', '', undefined, 7]) {
      const odd = await issuer.mint({}, { alg: 'none', header: { alg } })
      await assertRefused(oidc, odd, /algorithm|well-formed/)
    }
    const good = await issuer.mint()
    await assertRefused(oidc, good.slice(0, good.lastIndexOf('.') + 1), /signature/)
    assert.equal(issuer.count('jwks'), 1, 'for the last one alone')
  })

  test('when it is signed with the public key as a shared secret', async (t) => {
    const { issuer, oidc } = await setUp(t)
    for (const alg of ['RS256', 'ES256']) {
      const key = Buffer.from(await issuer.publicKey(alg))
      const token = await issuer.mint({}, { alg: 'HS256', kid: `${alg}-1`, key })
      await assertRefused(oidc, token, /algorithm/)
    }
  })

  test('when somebody else signed it, or it was changed afterwards', async (t) => {
    const { issuer, oidc } = await setUp(t)
    const { issuer: other } = await setUp(t)
    await assertRefused(oidc, await other.mint({ iss: issuer.url }), /signature of the token is wrong/)
    const [header, , signature] = (await issuer.mint()).split('.')
    const [, payload] = (await issuer.mint({ email: 'eve@example.com' })).split('.')
    await assertRefused(oidc, [header, payload, signature].join('.'), /signature of the token is wrong/)
  })

  test('when it brings its own key', async (t) => {
    const { issuer, oidc } = await setUp(t)
    const { privateKey, publicKey } = await generateKeyPair('ES256')
    const header = { jwk: await exportJWK(publicKey), jku: 'http://127.0.0.1:1/keys' }
    await assertRefused(oidc, await issuer.mint({}, { key: privateKey, header }), /signature/)
    await assertRefused(oidc, await issuer.mint({}, { key: privateKey, header, kid: 'mine' }), /no key/)
  })

  test('when its key is not known to the issuer', async (t) => {
    const { issuer, oidc } = await setUp(t)
    await assertRefused(oidc, await issuer.mint({}, { kid: 'unknown' }), /no key/)
  })

  test('when several keys fit and it does not say which', async (t) => {
    const { issuer, oidc } = await setUp(t)
    issuer.publish(await exportJWK((await generateKeyPair('ES256')).publicKey))
    await assertRefused(oidc, await issuer.mint({}, { header: { kid: undefined } }), /which key/)
    await accepted(oidc, await issuer.mint())
  })

  test('when its time is over or has not come, by our clock', async (t) => {
    const { issuer, oidc, pass } = await setUp(t)
    await assertRefused(oidc, await issuer.mint({ exp: inSeconds(-70) }), /expired/)
    await assertRefused(oidc, await issuer.mint({ nbf: inSeconds(70) }), /"nbf"/)
    const token = await issuer.mint({ nbf: inSeconds(0), exp: inSeconds(600) })
    await accepted(oidc, token)
    pass(670)
    await assertRefused(oidc, token, /expired/)
    pass(-740)
    await assertRefused(oidc, token, /"nbf"/)
  })

  test('when its times are not numbers', async (t) => {
    const { issuer, oidc } = await setUp(t)
    for (const claim of ['exp', 'nbf', 'iat']) {
      await assertRefused(oidc, await issuer.mint({ [claim]: 'tomorrow' }), new RegExp(`"${claim}"`))
    }
    await assertRefused(oidc, await issuer.mint({ exp: null }), /"exp"/)
  })

  test('without a claim that is needed', async (t) => {
    const { issuer, oidc } = await setUp(t)
    for (const claim of ['exp', 'sub', 'email']) {
      await assertRefused(oidc, await issuer.mint({ [claim]: undefined }), new RegExp(`"${claim}"`))
    }
    for (const sub of ['', 7, null, ['x']]) {
      await assertRefused(oidc, await issuer.mint({ sub }), /"sub"/)
    }
  })

  test('when the name of its owner would not look in a log like what it is', async (t) => {
    const { issuer, oidc } = await setUp(t)
    const odd = [
      '',
      ' ',
      'a\nb',
      'a\tb',
      '\0',
      'a\u007f',
      'a\u0085b',
      'a\u2028b',
      'a\u202eb',
      'a\ud800',
      'x'.repeat(257),
    ]
    for (const email of [...odd, 7, null, true, ['a@example.com'], { a: 1 }]) {
      await assertRefused(oidc, await issuer.mint({ email }), /"email", for the name of the user, /)
    }
    for (const sub of odd.slice(1)) {
      await assertRefused(oidc, await issuer.mint({ sub }), /"sub", for the name of the user, /)
    }
    const options = { issuer: issuer.url, audience: AUDIENCE, roleClaim: 'groups', now: () => new Date() }
    const inherited = createOidc({ ...options, usernameClaim: 'toString' })
    await assertRefused(inherited, await issuer.mint(), /"toString"/)
  })

  test('when its owner has the name from an email that nobody verified', async (t) => {
    const { issuer, oidc } = await setUp(t)
    for (const email_verified of [false, 'false', 0, null, 'yes']) {
      await assertRefused(oidc, await issuer.mint({ email_verified }), /not verified/)
    }
  })

  test('when it is longer than 16 KiB', async (t) => {
    const { issuer, oidc } = await setUp(t)
    await accepted(oidc, await issuer.mint({ more: 'x'.repeat(11 * 1024) }))
    await assertRefused(oidc, await issuer.mint({ more: 'x'.repeat(13 * 1024) }), /longer than 16384/)
    await assertRefused(oidc, 'x'.repeat(10_000_000), /longer than 16384/)
  })

  test('when it is no JWT of JSON objects', async (t) => {
    const { issuer, oidc } = await setUp(t)
    for (const claims of ['', 'claims', '{', '[]', 'null', '"x"', '7', '\ufffd{}']) {
      await assertRefused(oidc, await issuer.mint(claims), /JWT/)
    }
    const [, payload, signature] = (await issuer.mint()).split('.')
    const headers = ['{', '[]', 'null', '{"alg":"ES256"', '{"alg":["ES256"]}', '{"alg":"ES256","kid":{}}']
    for (const header of headers) {
      const token = [Buffer.from(header).toString('base64url'), payload, signature].join('.')
      await assertRefused(oidc, token, /JWT|no key/)
    }
    for (const token of [
      '',
      '.',
      '..',
      'a.b.c',
      'opaque',
      `${await issuer.mint()}.x`,
      ` ${await issuer.mint()}`,
    ]) {
      await assertRefused(oidc, token, /JWT/)
    }
  })

  test('when it asks for more than we know', async (t) => {
    const { issuer, oidc } = await setUp(t)
    const [, payload, signature] = (await issuer.mint()).split('.')
    for (const more of ['"crit":["eyJsecret"],"eyJsecret":1', '"crit":["b64"],"b64":false', '"crit":[]']) {
      const header = Buffer.from(`{"alg":"ES256","kid":"ES256-1",${more}}`).toString('base64url')
      await assertRefused(oidc, [header, payload, signature].join('.'), /./)
    }
  })

  test('with a key that would make V8 misread others from then on', async (t) => {
    const { issuer, oidc } = await setUp(t)
    for (const poison of [
      '{"h":[],"\\\\":0}',
      '{"h":[],"\\u005c" :0}',
      '{"h":{"\\\\x":0',
      '{"h":[],"\\\\":',
    ]) {
      await assertRefused(oidc, await issuer.mint(poison), /backslash/)
      const header = Buffer.from(poison).toString('base64url')
      await assertRefused(oidc, `${header}.e30.c2ln`, /backslash/)
      assert.deepEqual(Object.keys(JSON.parse('{"h":1,"\\"":2}')), ['h', '"'])
    }
    await assertRefused(oidc, await issuer.mint('"\\"'.repeat(4000)), /JWT/)
  })
})

describe('when the issuer has new keys', () => {
  test('a token with one is taken at once, and one with an old key no longer', async (t) => {
    const { issuer, oidc } = await setUp(t)
    const old = await issuer.mint()
    await accepted(oidc, old)
    await issuer.rotate()
    await accepted(oidc, await issuer.mint())
    await assertRefused(oidc, old, /no key/)
    assert.deepEqual([issuer.count('discovery'), issuer.count('jwks')], [1, 2])
  })

  test('many tokens that come at once with one are all taken, for one fetch', async (t) => {
    const { issuer, oidc } = await setUp(t)
    await accepted(oidc, await issuer.mint())
    await issuer.rotate()
    const tokens = await Promise.all(Array.from({ length: 50 }, (_, i) => issuer.mint({ sub: `user-${i}` })))
    await Promise.all(tokens.map((token) => accepted(oidc, token)))
    assert.equal(issuer.count('jwks'), 2)
  })

  test('tokens with keys that nobody has do not make us ask again and again', async (t) => {
    const { issuer, oidc, pass } = await setUp(t)
    await accepted(oidc, await issuer.mint())
    for (let i = 0; i < 20; i += 1) {
      await assertRefused(oidc, await issuer.mint({}, { kid: `made-up-${i}` }), /no key/)
    }
    assert.equal(issuer.count('jwks'), 2)
    await issuer.rotate()
    await assertRefused(oidc, await issuer.mint(), /no key/)
    pass(6)
    await accepted(oidc, await issuer.mint())
    assert.equal(issuer.count('jwks'), 3)
  })

  test('an old one is forgotten some time later even if no new one is seen', async (t) => {
    const { issuer, oidc } = await setUp(t)
    const old = await issuer.mint()
    await accepted(oidc, old)
    await issuer.rotate()
    await accepted(oidc, old)
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 11 * 60_000 })
    await assertRefused(oidc, old, /no key/)
  })
})

describe('discovery', () => {
  test('happens at the first token, and once for many that come together', async (t) => {
    const { issuer, oidc } = await setUp(t)
    assert.equal(issuer.requests.length, 0)
    const tokens = await Promise.all(Array.from({ length: 50 }, (_, i) => issuer.mint({ sub: `user-${i}` })))
    await Promise.all(tokens.map((token) => accepted(oidc, token)))
    await accepted(oidc, await issuer.mint())
    assert.deepEqual([issuer.count('discovery'), issuer.count('jwks')], [1, 1])
  })

  test('works for an issuer with a slash at its end', async (t) => {
    const { issuer } = await setUp(t)
    const iss = `${issuer.url}/`
    issuer.advertise({ issuer: iss })
    const options = { audience: AUDIENCE, roleClaim: 'groups', usernameClaim: 'email' }
    const oidc = createOidc({ ...options, issuer: iss, now: () => new Date() })
    await accepted(oidc, await issuer.mint({ iss }))
  })

  test('that speaks of another issuer proves nothing', async (t) => {
    for (const other of ['https://other.example.com', '/', undefined, null, 7]) {
      const { issuer, oidc } = await setUp(t)
      issuer.advertise({ issuer: other === '/' ? `${issuer.url}/` : other })
      await assertUnavailable(oidc, await issuer.mint(), /another issuer/)
      assert.equal(issuer.count('jwks'), 0)
    }
  })

  test('that leads to keys over plain HTTP elsewhere, or nowhere, proves nothing', async (t) => {
    const plain = ['http://keys.example.com/', 'http://192.0.2.1/keys', 'http://127.0.0.1.example.com/keys']
    const other = ['ftp://127.0.0.1/keys', 'file:///keys', 'data:application/json,{"keys":[]}']
    for (const jwks_uri of [...plain, ...other, '/keys', '', undefined, null, ['x']]) {
      const { issuer, oidc } = await setUp(t)
      issuer.advertise({ jwks_uri })
      await assertUnavailable(oidc, await issuer.mint(), /jwks_uri/)
    }
  })

  test('over HTTPS does not lead to keys over plain HTTP, not even on loopback', async (t) => {
    const iss = 'https://issuer.example.com'
    const { issuer, oidc } = await setUp(t, { issuer: iss })
    const asked = t.mock.method(globalThis, 'fetch', async () =>
      Response.json({ issuer: iss, jwks_uri: `${issuer.url}/keys` }),
    )
    await assertUnavailable(oidc, await issuer.mint({ iss }), /jwks_uri must be https/)
    assert.equal(asked.mock.callCount(), 1)
  })

  test('is not done over plain HTTP elsewhere', async (t) => {
    for (const iss of ['http://192.0.2.1', 'http://localhost.example.com', 'ftp://127.0.0.1', 'issuer']) {
      const { issuer, oidc } = await setUp(t, { issuer: iss })
      await assertUnavailable(oidc, await issuer.mint({ iss }), /must be an https URL/)
    }
  })
})

describe('when the issuer cannot be asked, nothing is said of a token:', () => {
  test('it does not listen', async (t) => {
    const { issuer, oidc } = await setUp(t)
    const token = await issuer.mint()
    issuer.stop()
    await assertUnavailable(oidc, token, /ECONNREFUSED/)
  })

  test('it fails, answers garbage, or sends us elsewhere', async (t) => {
    for (const place of ['discovery', 'jwks'] as const) {
      for (const mood of ['fail', 'garbage', 'redirect'] as const) {
        const { issuer, oidc } = await setUp(t)
        issuer.behave(mood, place)
        await assertUnavailable(oidc, await issuer.mint(), /could not be asked/)
      }
    }
  })

  test('its JSON is not what it should be', async (t) => {
    const { issuer, oidc } = await setUp(t)
    issuer.advertise({ jwks_uri: `${issuer.url}/.well-known/openid-configuration` })
    await assertUnavailable(oidc, await issuer.mint(), /could not be asked/)
    const { issuer: broken, oidc: itsOidc } = await setUp(t)
    broken.publish({ kty: 'EC', crv: 'P-256', kid: 'broken', x: 'AAAA', y: 'AAAA' })
    await assertUnavailable(itsOidc, await broken.mint({}, { kid: 'broken' }), /cannot be used/)
    await accepted(itsOidc, await broken.mint())
  })

  test('it does not answer in time', async (t) => {
    const waiting = (['discovery', 'jwks'] as const).flatMap((place) =>
      (['hang', 'stall'] as const).map(async (mood) => {
        const { issuer, oidc } = await setUp(t)
        issuer.behave(mood, place)
        await assertUnavailable(oidc, await issuer.mint(), /within 5 s/)
      }),
    )
    await Promise.all(waiting)
  })

  test('but a token that is wrong in any case is refused all the same', async (t) => {
    const { issuer, oidc } = await setUp(t)
    issuer.behave('fail')
    await assertRefused(oidc, await issuer.mint({}, { alg: 'none' }), /algorithm/)
    await assertRefused(oidc, await issuer.mint({ iss: 'https://other.example.com' }), /not issued by/)
    await assertRefused(oidc, 'x.y.z', /JWT/)
    assert.equal(issuer.requests.length, 0)
  })

  test('and it is left alone for a few seconds, then asked again', async (t) => {
    for (const place of ['discovery', 'jwks'] as const) {
      const { issuer, oidc, pass } = await setUp(t)
      const token = await issuer.mint()
      issuer.behave('fail', place)
      await Promise.all(
        Array.from({ length: 20 }, () => assertUnavailable(oidc, token, /could not be asked/)),
      )
      await assertUnavailable(oidc, token, /could not be asked/)
      assert.equal(issuer.count(place), 1)
      issuer.behave('well')
      await assertUnavailable(oidc, token, /could not be asked/)
      pass(6)
      await accepted(oidc, token)
      assert.equal(issuer.count(place), 2)
    }
  })

  test('and a clock that is set back does not make that longer', async (t) => {
    const { issuer, oidc, pass } = await setUp(t)
    const token = await issuer.mint()
    issuer.behave('fail')
    await assertUnavailable(oidc, token, /could not be asked/)
    issuer.behave('well')
    pass(-3600)
    await accepted(oidc, token)
  })

  test('but keys that are known already still prove what they can', async (t) => {
    const { issuer, oidc, pass } = await setUp(t)
    await accepted(oidc, await issuer.mint())
    issuer.behave('fail')
    await assertUnavailable(oidc, await issuer.mint({}, { kid: 'new' }), /could not be asked/)
    await accepted(oidc, await issuer.mint())
    issuer.behave('well')
    pass(6)
    await assertRefused(oidc, await issuer.mint({}, { kid: 'new' }), /no key/)
    assert.equal(issuer.count('discovery'), 1)
  })

  test('and keys that are too old prove nothing any longer', async (t) => {
    const { issuer, oidc } = await setUp(t)
    const token = await issuer.mint()
    await accepted(oidc, token)
    issuer.behave('fail')
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 11 * 60_000 })
    for (let i = 0; i < 3; i += 1) await assertUnavailable(oidc, token, /could not be asked/)
    assert.equal(issuer.count('jwks'), 2)
  })

  test('and keys that are found elsewhere afterwards are found', async (t) => {
    const { issuer, oidc, pass } = await setUp(t)
    issuer.advertise({ jwks_uri: `${issuer.url}/gone` })
    await assertUnavailable(oidc, await issuer.mint(), /could not be asked/)
    issuer.advertise({ jwks_uri: `${issuer.url}/keys` })
    pass(6)
    await accepted(oidc, await issuer.mint())
  })
})
