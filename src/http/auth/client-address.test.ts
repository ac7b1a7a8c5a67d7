import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { describe, test } from 'node:test'
import { createAddressOf, createIsProxied } from './client-address.ts'
import { networkOf } from './failure-limit.ts'

/** Where a request comes from that arrives from `remote`, with this in X-Forwarded-For. */
function addressOf(trusted: readonly string[], remote: string | undefined, forwarded?: string): string {
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
  return createAddressOf(trusted)({
    socket: { remoteAddress: remote },
    headers,
  } as unknown as IncomingMessage)
}

const PROXIES = ['10.0.0.0/8', '192.0.2.7', 'fd00::/8', '::1']

describe('the address of a client', () => {
  test('is the other end of the connection, whatever the headers say, when no proxy is trusted', () => {
    assert.equal(addressOf([], '10.0.0.1', '203.0.113.5'), '10.0.0.1')
    assert.equal(addressOf([], '10.0.0.1'), '10.0.0.1')
    assert.equal(addressOf([], '2001:db8::1', '203.0.113.5'), '2001:db8::1')
    assert.equal(addressOf([], undefined, '203.0.113.5'), 'unix')
  })

  test('is the other end when that is not a trusted proxy', () => {
    for (const remote of ['203.0.113.9', '192.0.2.8', '11.0.0.1', '2001:db8::1', 'fe80::1%eth0'])
      assert.equal(addressOf(PROXIES, remote, '198.51.100.1'), remote)
  })

  test('is what a trusted proxy says, by address or by network, of either version', () => {
    for (const remote of ['10.0.0.1', '10.255.255.255', '192.0.2.7', 'fd12::9', '::1']) {
      assert.equal(addressOf(PROXIES, remote, '203.0.113.5'), '203.0.113.5')
      assert.equal(addressOf(PROXIES, remote, '2001:db8::5'), '2001:db8::5')
    }
  })

  test('is the proxy itself when it says nothing', () => {
    for (const forwarded of [undefined, '', ' ', ',', ' , '])
      assert.equal(addressOf(PROXIES, '10.0.0.1', forwarded), '10.0.0.1')
  })

  test('is the last that is not a trusted proxy: what the client itself wrote before counts for nothing', () => {
    assert.equal(addressOf(PROXIES, '10.0.0.1', '1.1.1.1, 203.0.113.5'), '203.0.113.5')
    assert.equal(addressOf(PROXIES, '10.0.0.1', '1.1.1.1, 203.0.113.5, 10.0.0.2,192.0.2.7'), '203.0.113.5')
    assert.equal(addressOf(PROXIES, '10.0.0.1', '10.0.0.9, 203.0.113.5'), '203.0.113.5')
  })

  test('is the first of a chain of nothing but proxies', () => {
    assert.equal(addressOf(PROXIES, '10.0.0.1', '10.0.0.3, 10.0.0.2'), '10.0.0.3')
  })

  test('is where the chain stops making sense', () => {
    for (const nonsense of [
      'unknown',
      '_hidden',
      'unix',
      '<script>',
      '203.0.113',
      'for=203.0.113.5',
      '::g',
    ]) {
      assert.equal(addressOf(PROXIES, '10.0.0.1', `203.0.113.5, ${nonsense}, 10.0.0.2`), '10.0.0.2')
      assert.equal(addressOf(PROXIES, '10.0.0.1', nonsense), '10.0.0.1')
    }
  })

  test('has no port, no brackets, and stays IPv4 where it is', () => {
    assert.equal(addressOf(PROXIES, '10.0.0.1', '203.0.113.5:41234'), '203.0.113.5')
    assert.equal(addressOf(PROXIES, '10.0.0.1', '[2001:db8::5]:41234'), '2001:db8::5')
    assert.equal(addressOf(PROXIES, '10.0.0.1', '[2001:db8::5]'), '2001:db8::5')
    assert.equal(addressOf([], '::ffff:203.0.113.5'), '203.0.113.5')
    assert.equal(addressOf([], '::FFFF:203.0.113.5'), '203.0.113.5')
    assert.equal(addressOf(PROXIES, '::ffff:10.0.0.1', '::ffff:203.0.113.5'), '203.0.113.5')
  })

  test('stays IPv4 in brackets too: all such clients are not one network', () => {
    assert.equal(addressOf(PROXIES, '10.0.0.1', '[::ffff:203.0.113.5]:41234'), '203.0.113.5')
    const networks = ['203.0.113.5', '203.0.113.6'].map((address) =>
      networkOf(addressOf(PROXIES, '10.0.0.1', `[::ffff:${address}]:80`)),
    )
    assert.notEqual(networks[0], networks[1])
  })

  test('behind a unix socket is what the proxy says where unix is trusted, and unix otherwise', () => {
    assert.equal(addressOf(['unix'], undefined, '203.0.113.5'), '203.0.113.5')
    assert.equal(addressOf(['unix'], undefined), 'unix')
    assert.equal(addressOf(PROXIES, undefined, '203.0.113.5'), 'unix')
    assert.equal(addressOf(['unix'], '10.0.0.1', '203.0.113.5'), '10.0.0.1', 'trusts no network')
  })

  test('of a connection that is gone is not known, and not taken for a unix socket', () => {
    const gone = {
      socket: { remoteAddress: undefined, destroyed: true },
      headers: { 'x-forwarded-for': '203.0.113.5' },
    }
    for (const trusted of [[], PROXIES, ['unix']])
      assert.equal(createAddressOf(trusted)(gone as unknown as IncomingMessage), 'unknown')
  })

  test('of a header as long as headers may be is found', () => {
    const forwarded = `${'10.0.0.2, '.repeat(1600)}10.0.0.3`
    assert.equal(addressOf(PROXIES, '10.0.0.1', forwarded), '10.0.0.2')
  })
})

test('a request is proxied when its other end is a proxy that is trusted, whatever its headers say', () => {
  const isProxied = (trusted: readonly string[], remote: string | undefined, headers = {}): boolean =>
    createIsProxied(trusted)({ socket: { remoteAddress: remote }, headers } as unknown as IncomingMessage)
  for (const remote of ['10.0.0.1', '::ffff:10.0.0.1', '::1']) assert.ok(isProxied(PROXIES, remote), remote)
  for (const remote of ['203.0.113.9', '2001:db8::1', undefined, ''])
    assert.ok(!isProxied(PROXIES, remote, { 'x-forwarded-for': '10.0.0.1' }), String(remote))
  assert.ok(isProxied(['unix'], undefined))
  for (const remote of ['10.0.0.1', undefined]) assert.ok(!isProxied([], remote))
})
