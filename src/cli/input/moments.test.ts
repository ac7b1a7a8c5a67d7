import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fromNow } from '../../base/relative-time.ts'
import { parseTime } from '../../base/time.ts'
import { Failure } from '../failure.ts'
import { parseExpiry, parseMoment, parseRevision } from './moments.ts'

const NOW = new Date('2026-03-01T12:30:15.250Z')

function moment(text: string, now = NOW): string {
  return parseMoment(text, '--to', now)
}

function assertNoMoment(text: string): void {
  assert.throws(
    () => moment(text),
    (error) =>
      error instanceof Failure &&
      error.exitCode === 2 &&
      error.message.startsWith('--to must be ') &&
      error.message.endsWith(`not "${text}"`),
    text,
  )
}

test('a revision is digits and nothing else', () => {
  assert.equal(parseRevision('0'), 0)
  assert.equal(parseRevision('12'), 12)
  assert.equal(parseRevision('007'), 7)
  assert.equal(parseRevision('999999999999999'), 999_999_999_999_999)
  for (const text of ['', ' 1', '1 ', '-1', '+1', '1.0', '1e3', '0x1', '2h', '١', 'abc', '1\n']) {
    assert.equal(parseRevision(text), undefined, JSON.stringify(text))
  }
})

test('a revision is never a number that lost digits on its way', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^\d{1,30}$/), (text) => {
      const revision = parseRevision(text)
      assert.ok(revision === undefined || BigInt(revision) === BigInt(text))
    }),
  )
})

test('seconds, minutes, hours, days and weeks count back from now', () => {
  assert.equal(moment('0s'), '2026-03-01T12:30:15.250Z')
  assert.equal(moment('90s'), '2026-03-01T12:28:45.250Z')
  assert.equal(moment('45m'), '2026-03-01T11:45:15.250Z')
  assert.equal(moment('2h'), '2026-03-01T10:30:15.250Z')
  assert.equal(moment('1d'), '2026-02-28T12:30:15.250Z')
  assert.equal(moment('2w'), '2026-02-15T12:30:15.250Z')
})

test('so many units ago is as long ago as as many of the next smaller unit', () => {
  const same: readonly (readonly [large: string, small: string, factor: number])[] = [
    ['m', 's', 60],
    ['h', 'm', 60],
    ['d', 'h', 24],
    ['w', 'd', 7],
  ]
  fc.assert(
    fc.property(fc.nat(2000), fc.constantFrom(...same), (number, [large, small, factor]) => {
      assert.equal(moment(`${number}${large}`), moment(`${number * factor}${small}`))
    }),
  )
})

test('a date is its first moment in UTC, and a time is told in UTC with milliseconds', () => {
  assert.equal(moment('2026-01-31'), '2026-01-31T00:00:00.000Z')
  assert.equal(moment('2024-02-29'), '2024-02-29T00:00:00.000Z')
  assert.equal(moment('2026-01-31T12:00:00Z'), '2026-01-31T12:00:00.000Z')
  assert.equal(moment('2026-01-31t12:00:00z'), '2026-01-31T12:00:00.000Z')
  assert.equal(moment('2026-01-31T12:00:00.5+02:00'), '2026-01-31T10:00:00.500Z')
})

test('durations have several units, and days have names', () => {
  assert.equal(moment('1h30m'), moment('90m'))
  assert.equal(moment('1w1d1h1m1s'), moment(`${((8 * 24 + 1) * 60 + 1) * 60 + 1}s`))
  assert.equal(moment('today'), '2026-03-01T00:00:00.000Z')
  assert.equal(moment('yesterday'), '2026-02-28T00:00:00.000Z')
})

test('what of a time is left out is nothing, and its zone is UTC', () => {
  assert.equal(moment('2026-01-31 12:00'), '2026-01-31T12:00:00.000Z')
  assert.equal(moment('2026-01-31T12:00:30'), '2026-01-31T12:00:30.000Z')
  assert.equal(moment('2026-01-31T21:40-05:00'), '2026-02-01T02:40:00.000Z')
  assert.equal(moment('2026-01-31+02:00'), '2026-01-30T22:00:00.000Z')
})

test('every time of the log is understood as itself', () => {
  const min = new Date('0001-01-01T00:00:00Z')
  const max = new Date('9999-12-31T23:59:59Z')
  fc.assert(
    fc.property(fc.date({ min, max, noInvalidDate: true }), (date) => {
      assert.equal(moment(date.toISOString()), date.toISOString())
    }),
  )
})

test('what is no moment is wrong use, and is repeated in the message', () => {
  const odd = [
    '',
    ' ',
    'Yesterday',
    'tomorrow',
    'now',
    '30m1h',
    '1h1h',
    'h',
    '2',
    '12',
    '2 h',
    ' 2h',
    '2h ',
    '2H',
    '-2h',
    '+2h',
    '1.5h',
    '2hh',
  ]
  const offCalendar = ['2026-02-29', '2026-13-01', '2026-00-10', '2026-01-00', '2026-01-31T24:00:00Z']
  const incomplete = ['2026-1-31', '2026-01', '2026-01-31T12', '2026-01-31  12:00', '2026-01-31T12:00+2']
  for (const text of [...odd, ...offCalendar, ...incomplete, '2h\n', '2026-01-31\n']) assertNoMoment(text)
})

test('a moment before the calendar of the service begins is wrong use, not something to send', () => {
  // The service takes years of four digits.
  for (const text of ['800000d', '200000w', '90000000d', `${'9'.repeat(30)}w`]) assertNoMoment(text)
})

test('whatever is understood is a time that the service understands as well', () => {
  const text = fc.oneof(
    fc.stringMatching(/^\d{1,12}[smhdw]$/),
    fc.stringMatching(/^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?$/),
    fc.string(),
  )
  fc.assert(
    fc.property(text, (given) => {
      let time: string
      try {
        time = moment(given)
      } catch (error) {
        assert.ok(error instanceof Failure && error.exitCode === 2, String(error))
        return
      }
      assert.equal(parseTime(time), time)
    }),
    { numRuns: 300 },
  )
})

test('an end is so long from now, a day or a moment', () => {
  const expiry = (text: string) => parseExpiry(text, '--expires', NOW)
  assert.equal(expiry('90s'), '2026-03-01T12:31:45.250Z')
  assert.equal(expiry('12h'), '2026-03-02T00:30:15.250Z')
  assert.equal(expiry('1w'), expiry('7d'))
  assert.equal(expiry('2027-01-31'), '2027-01-31T00:00:00.000Z')
  assert.equal(expiry('2027-01-31T12:00:00+02:00'), '2027-01-31T10:00:00.000Z')
})

test('an end that the service would not understand is wrong use', () => {
  for (const text of ['', 'never', '90', '-1d', '2027-02-30', '3000000d', `${'9'.repeat(30)}w`]) {
    assert.throws(
      () => parseExpiry(text, '--expires', NOW),
      (error) => error instanceof Failure && error.exitCode === 2 && error.message.endsWith(`not "${text}"`),
      text,
    )
  }
})

test('how long ago something was, or is still to come, is told in one unit', () => {
  const tell = (ms: number) => fromNow(new Date(NOW.getTime() + ms).toISOString(), NOW)
  const [minute, hour, day] = [60_000, 3_600_000, 86_400_000]
  assert.deepEqual([tell(0), tell(-900), tell(-59_400)], ['0s ago', '1s ago', '59s ago'])
  assert.deepEqual([tell(-59_600), tell(90 * minute), tell(-47 * hour)], ['1m ago', 'in 2h', '47h ago'])
  assert.deepEqual([tell(48 * hour), tell(90 * day - 40), tell(-400 * day)], ['in 2d', 'in 90d', '400d ago'])
})

test('a time from now is told as what it was asked for by', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 59 }), fc.constantFrom('s', 'm'), (number, unit) => {
      assert.equal(fromNow(parseExpiry(`${number}${unit}`, '--expires', NOW), NOW), `in ${number}${unit}`)
    }),
  )
})
