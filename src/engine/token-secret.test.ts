import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { hashOf, isSecret, newSecret, newToken, tokenIdOf } from './token-secret.ts'

const NOW = new Date('2026-01-31T12:00:00.123Z')
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

const mint = (): string => newSecret(NOW).secret

describe('a secret', () => {
  test('is frs_, 43 digits of 256 random bits and a checksum of 6', () => {
    for (let i = 0; i < 100; i++) {
      const secret = mint()
      assert.match(secret, /^frs_[0-9A-Za-z]{49}$/)
      assert.ok(isSecret(secret), secret)
    }
  })

  test('is never made twice, and takes any digit at any place', () => {
    const secrets = Array.from({ length: 2000 }, mint)
    assert.equal(new Set(secrets).size, secrets.length)
    for (let place = 4; place < 47; place++) {
      const seen = new Set(secrets.map((secret) => secret[place]))
      assert.ok(seen.size > 55, `${seen.size} digits at place ${place}`)
    }
  })

  test('carries the checksum that scanners are told of: the CRC-32 of the random part, in base 62', () => {
    // As Python's zlib.crc32 has it.
    for (const [random, checksum] of [
      ['0'.repeat(43), '2CZclj'],
      [`${'Flux'.repeat(10)}abc`, '2p2nyf'],
    ]) {
      assert.ok(isSecret(`frs_${random}${checksum}`))
    }
  })

  test('that has one digit wrong is told from a right one', () => {
    const secret = mint()
    for (let place = 0; place < secret.length; place++) {
      const at = DIGITS.indexOf(secret[place] as string)
      for (const step of [1, 7, 31]) {
        const wrong = secret.slice(0, place) + DIGITS[(at + step + 62) % 62] + secret.slice(place + 1)
        assert.ok(!isSecret(wrong), wrong)
      }
    }
  })

  test('that is cut, has two digits swapped, or has something around it is told from a right one', () => {
    const secret = mint()
    for (let length = 0; length < secret.length; length++) assert.ok(!isSecret(secret.slice(0, length)))
    for (let place = 0; place < secret.length - 1; place++) {
      const [a, b] = [secret[place], secret[place + 1]]
      if (a !== b) assert.ok(!isSecret(secret.slice(0, place) + b + a + secret.slice(place + 2)))
    }
    for (const around of [`${secret} `, ` ${secret}`, `${secret}\n`, `${secret}0`, secret.toUpperCase()])
      assert.ok(!isSecret(around), around)
  })

  test('is not what looks like nothing of ours', () => {
    const texts = [
      '',
      'frs_',
      'frs_ü',
      `frs_${'0'.repeat(49)}`,
      '__proto__',
      'ü'.repeat(53),
      '\ud800'.repeat(53),
    ]
    for (const text of texts) assert.ok(!isSecret(text), text)
  })
})

describe('what is kept', () => {
  test('is the SHA-256 of the secret in hex, and when it was made', () => {
    const { secret, kept } = newSecret(NOW)
    const hash = createHash('sha256').update(secret).digest('hex')
    assert.deepEqual(kept, { hash, created_at: '2026-01-31T12:00:00.123Z' })
    assert.equal(hashOf(secret), hash)
    assert.notEqual(hashOf(`${secret}\n`), hash)
  })

  test('of a token is what it grants, never the secret', () => {
    const grant = { role: 'editor', selector: 'environment=dev', types: ['clusters'] } as const
    const expiresAt = '2027-01-31T12:00:00.000Z'
    const { token, secret } = newToken({ name: 'ci', grant, expiresAt, createdBy: 'ops' }, NOW)
    assert.deepEqual(token, {
      id: tokenIdOf('ci'),
      name: 'ci',
      ...grant,
      created_at: '2026-01-31T12:00:00.123Z',
      created_by: 'ops',
      expires_at: expiresAt,
      secrets: [{ hash: hashOf(secret), created_at: '2026-01-31T12:00:00.123Z' }],
    })
    assert.ok(!JSON.stringify(token).includes(secret))
  })

  test('of a token that never expires has no end', () => {
    const request = { name: 'ci', grant: { role: 'viewer' }, expiresAt: undefined, createdBy: 'ops' } as const
    assert.ok(!('expires_at' in newToken(request, NOW).token))
  })
})

test('the id of a token is the same wherever its name is, and another for every name', () => {
  assert.equal(tokenIdOf('a'), 'tok-ca978112ca1bbdca')
  const names = ['a', 'A', 'a.', '', 'ü', '__proto__', 'constructor', tokenIdOf('a'), '0'.repeat(64)]
  assert.equal(new Set(names.map(tokenIdOf)).size, names.length)
  for (const name of names) assert.match(tokenIdOf(name), /^tok-[0-9a-f]{16}$/)
})
