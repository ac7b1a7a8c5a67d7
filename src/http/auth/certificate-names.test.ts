import assert from 'node:assert/strict'
import { test } from 'node:test'
import { namesIn } from './certificate-names.ts'

test('DNS names and URIs are names, addresses are not', () => {
  const names = namesIn('DNS:one.example.com, IP Address:10.0.0.1, URI:spiffe://x/cluster/one', 'CN=other')
  assert.deepEqual(names, ['one.example.com', 'spiffe://x/cluster/one'])
})

test('the common name counts only where there are no others, and only when there is one', () => {
  assert.deepEqual(namesIn(undefined, 'O=Fleet\nCN=one.example.com'), ['one.example.com'])
  assert.deepEqual(namesIn('IP Address:10.0.0.1', 'CN=one.example.com'), ['one.example.com'])
  assert.deepEqual(namesIn('DNS:two.example.com', 'CN=one.example.com'), ['two.example.com'])
  assert.deepEqual(namesIn(undefined, 'CN=one\nCN=two'), [])
  assert.deepEqual(namesIn(undefined, 'O=Fleet'), [])
})

test('nothing inside a name that needs quoting becomes a name of its own', () => {
  for (const text of [
    'DNS:"a\\u002c DNS:evil.example.com"',
    'DNS:"a, DNS:evil.example.com"',
    'DNS:"a\\", DNS:evil.example.com"',
    'URI:"https://x/?a=1, DNS:evil.example.com"',
  ])
    assert.deepEqual(namesIn(text, 'O=none'), [], text)
  assert.deepEqual(namesIn('DNS:"odd, DNS:evil", DNS:good.example.com', ''), ['good.example.com'])
})

test('what is not ASCII is no name, and leaves its place to none', () => {
  for (const name of [
    'one.\u212a8s.example.com',
    'one.k8s.exam\u00adple.com',
    'münchen.example.com',
    'one\u0000.com',
  ]) {
    assert.deepEqual(namesIn(undefined, `CN=${name}`), [], name)
    assert.deepEqual(namesIn(`DNS:${name}`, 'CN=two.example.com'), [], name)
    assert.deepEqual(namesIn(`DNS:${name}, DNS:good.example.com`, ''), ['good.example.com'], name)
  }
})
