import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalDns } from './resource-type.ts'

test('DNS names are the same in any case of A to Z and with the dot of the root', () => {
  for (const name of ['one.k8s.example.com', 'ONE.K8S.EXAMPLE.COM', 'One.k8s.example.com.'])
    assert.equal(canonicalDns(name), 'one.k8s.example.com')
})

test('letters beyond A to Z have no case, even where Unicode gives their lower case as one of a to z', () => {
  const folding = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code)).filter(
    (letter) => letter > '\u007f' && /[a-zA-Z]/.test(letter.toLowerCase() + letter.toUpperCase()),
  )
  assert.ok(folding.includes('\u212a'))
  for (const letter of folding) assert.equal(canonicalDns(`x${letter}.example.com`), `x${letter}.example.com`)
})
