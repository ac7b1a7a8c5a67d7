import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Failure } from '../failure.ts'
import { reasonIn, secureUrl, tokensIn } from './issuer.ts'

const NOW = new Date('2026-03-01T12:00:00Z')

function jwt(claims: object): string {
  return `eyJ.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.sig`
}

test('the token that says who somebody is comes first, with the end that it has itself', () => {
  const token = jwt({ exp: NOW.getTime() / 1000 + 300 })
  const answer = { id_token: token, access_token: 'opaque', expires_in: 3600, refresh_token: 'r' }
  assert.deepEqual(tokensIn(answer, NOW), {
    token,
    expires_at: '2026-03-01T12:05:00.000Z',
    refresh_token: 'r',
  })
})

test('without it the other one is used, until the answer or the token says', () => {
  assert.deepEqual(tokensIn({ access_token: 'opaque', expires_in: 60 }, NOW), {
    token: 'opaque',
    expires_at: '2026-03-01T12:01:00.000Z',
  })
  const token = jwt({ exp: 1_800_000_000 })
  assert.equal(tokensIn({ access_token: token, expires_in: 60 }, NOW).expires_at, '2027-01-15T08:00:00.000Z')
  assert.deepEqual(tokensIn({ access_token: 'opaque', refresh_token: '' }, NOW), { token: 'opaque' })
  assert.deepEqual(tokensIn({ id_token: jwt({ exp: 'soon' }), expires_in: 60 }, NOW), {
    token: jwt({ exp: 'soon' }),
  })
})

test('an answer without a token that could be sent is a refusal', () => {
  for (const answer of [
    {},
    { id_token: 5 },
    { id_token: '' },
    { access_token: 'a b' },
    { id_token: 'a\nb' },
  ]) {
    assert.throws(() => tokensIn(answer, NOW), Failure)
  }
})

test('secrets go to https, or to this machine; and from https nowhere else', () => {
  const from = new URL('https://issuer.example.com/')
  const local = new URL('http://127.0.0.1:5556/')
  for (const text of ['https://issuer.example.com/token', 'https://127.0.0.1/']) {
    assert.equal(secureUrl(text, 'it', from).href, text)
  }
  for (const text of ['http://127.0.0.1:1/', 'http://localhost/', 'http://[::1]:8/', 'http://127.9.9.9/']) {
    assert.equal(secureUrl(text, 'it').href, text)
    assert.equal(secureUrl(text, 'it', local).href, text)
    assert.throws(() => secureUrl(text, 'it', from), /^Error: it must be an https URL/, text)
  }
  for (const text of [
    'http://issuer.example.com/',
    'http://localhost.example.com/',
    'http://127.0.0.1.example.com/',
    'https://user:password@issuer.example.com/',
    'ftp://127.0.0.1/',
    'issuer.example.com',
    '',
    undefined,
    7,
  ]) {
    assert.throws(() => secureUrl(text, 'it'), Failure, String(text))
  }
})

test('what an issuer says of a refusal is told without what was sent', () => {
  assert.equal(reasonIn({ error: 'invalid_grant' }), 'invalid_grant')
  const body = { error: 'invalid_grant', error_description: 'no such token: hush' }
  assert.equal(reasonIn(body, 'hush'), 'invalid_grant: no such token: (secret)')
})
