import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createFailureLimit, networkOf } from './failure-limit.ts'

function limit(perMinute: number) {
  const clock = { time: Date.parse('2026-01-31T12:00:00.000Z') }
  const failures = createFailureLimit(perMinute, () => new Date(clock.time))
  return { clock, count: (network: string, credential?: string) => failures.count({ network, credential }) }
}

/** So many failures of the same. */
function fails(
  count: (network: string, credential?: string) => unknown,
  times: number,
  network: string,
  credential?: string,
): unknown[] {
  return Array.from({ length: times }, () => count(network, credential))
}

describe('failures', () => {
  test('are free up to the limit; the first above it is marked, and all are told how long to wait', () => {
    const { clock, count } = limit(3)
    assert.deepEqual(fails(count, 3, 'a'), [undefined, undefined, undefined])
    clock.time += 10_000
    assert.deepEqual(fails(count, 3, 'a'), [
      { wait: 50, isFirst: true },
      { wait: 50, isFirst: false },
      { wait: 50, isFirst: false },
    ])
    clock.time += 49_999
    assert.deepEqual(count('a'), { wait: 1, isFirst: false }, 'never told to wait for no time at all')
  })

  test('are forgotten a minute after the first of them, however many came', () => {
    const { clock, count } = limit(2)
    fails(count, 50, 'a')
    clock.time += 60_000
    assert.deepEqual(fails(count, 3, 'a'), [undefined, undefined, { wait: 60, isFirst: true }])
  })

  test('of others do not count', () => {
    const { count } = limit(1)
    fails(count, 9, 'a')
    assert.equal(count('b'), undefined)
    for (const key of ['__proto__', 'constructor', '']) assert.equal(count(key), undefined, key)
  })

  test('with several keys count for each; any that is over makes it wait, the longest of them', () => {
    const { clock, count } = limit(2)
    fails(count, 2, 'address')
    clock.time += 20_000
    assert.deepEqual(count('address', 'credential'), { wait: 40, isFirst: true })
    assert.deepEqual(count('address', 'credential'), { wait: 40, isFirst: false })
    assert.deepEqual(
      count('address', 'credential'),
      { wait: 60, isFirst: true },
      'the credential is over too',
    )
    assert.deepEqual(count('other address', 'credential'), { wait: 60, isFirst: false })
  })

  test('of one credential count wherever they come from', () => {
    const { count } = limit(5)
    const answers = Array.from({ length: 7 }, (_, i) => count(`from 10.0.0.${i}`, 'with x'))
    assert.deepEqual(
      answers.map((over) => over !== undefined),
      [false, false, false, false, false, true, true],
    )
  })

  test('of more addresses than can be remembered push out the oldest, not the newest', () => {
    const { count } = limit(1)
    fails(count, 2, 'first')
    for (let i = 0; i < 20_000; i++) count(`n${i}`)
    assert.equal(count('first'), undefined, 'the oldest was forgotten')
    assert.ok(count('n19999'), 'the newest was not')
    assert.ok(count('n10000'))
  })

  test('of one address are not forgotten however many credentials it makes up', () => {
    const { count } = limit(30)
    const answers = Array.from({ length: 50_000 }, (_, i) => count('attacker', `made up ${i}`))
    assert.equal(answers.filter((over) => over === undefined).length, 30)
    assert.equal(answers.filter((over) => over?.isFirst).length, 1)
  })

  test('with one credential are not forgotten however many addresses it comes from', () => {
    const { count } = limit(30)
    const answers = Array.from({ length: 50_000 }, (_, i) => count(`10.${i}`, 'stolen'))
    assert.equal(answers.filter((over) => over === undefined).length, 30)
  })

  test('of an address and of a credential that are called the same count apart', () => {
    const { count } = limit(1)
    count('same', 'other')
    assert.equal(count('elsewhere', 'same'), undefined)
  })

  test('of an address whose minute is over make it the newest again', () => {
    const { clock, count } = limit(1)
    count('first')
    clock.time += 60_000
    count('first')
    for (let i = 0; i < 19_999; i++) count(`n${i}`)
    assert.ok(count('first'))
  })
})

describe('the network that an address counts for', () => {
  const cases: Record<string, string> = {
    '10.1.2.3': '10.1.2.3',
    unix: 'unix',
    '': '',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
    '2001:db8:1:2::': '2001:db8:1:2::/64',
    '2001:db8::1': '2001:db8:0:0::/64',
    '2001:db8::5:6:7': '2001:db8:0:0::/64',
    '1::5:6:7:8:9': '1:0:0:5::/64',
    '::1': '0:0:0:0::/64',
    '::': '0:0:0:0::/64',
    'fe80::1%eth0': 'fe80:0:0:0::/64',
    '64:ff9b::192.0.2.1': '64:ff9b:0:0::/64',
    '1:2:3::192.0.2.1': '1:2:3:0::/64',
  }
  for (const [address, network] of Object.entries(cases)) {
    test(`of ${address || 'nothing'} is ${network || 'nothing'}`, () =>
      assert.equal(networkOf(address), network))
  }

  test('is the same for all of one customer, and another for their neighbour', () => {
    const own = [
      '2001:db8:0:7::1',
      '2001:db8:0:7:ffff:ffff:ffff:ffff',
      '2001:db8:0:7::',
      '2001:db8::7:0:0:0:1',
    ]
    assert.deepEqual([...new Set(own.map(networkOf))], ['2001:db8:0:7::/64'])
    assert.notEqual(networkOf('2001:db8:0:8::1'), networkOf('2001:db8:0:7::1'))
  })
})
