import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkWindow, firstOpen, nextOpening, phaseAt } from './calendar.ts'

const HOUR = 3600

function text(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString().replace('.000Z', 'Z')
}

/** The openings of a window from a moment on, each with its end. */
function openings(cron: string, zone: string, duration_s: number, from: string, count: number): string[] {
  const window = { cron, zone, duration_s }
  const found: string[] = []
  let at = Date.parse(from)
  for (let i = 0; i < count; i++) {
    const start = nextOpening(window, at) ?? assert.fail('it never opens again')
    found.push(`${text(start)} to ${text(phaseAt(window, start).until)}`)
    at = start
  }
  return found
}

// Clocks of Berlin go forward on 29 March 2026 (02:00 → 03:00) and back on 25 October (03:00 → 02:00), those of New York
// on 8 March and 1 November (02:00), those of Lord Howe by half an hour on 4 October (02:00 → 02:30) and 5 April
// (02:00 → 01:30).
const DAYS: readonly {
  readonly name: string
  readonly window: readonly [cron: string, zone: string, duration_s: number]
  readonly from: string
  readonly opens: readonly string[]
}[] = [
  {
    name: 'in spring, a window in the missing hour opens when the hour ends',
    window: ['30 2 * * *', 'Europe/Berlin', HOUR],
    from: '2026-03-28T00:00:00Z',
    opens: [
      '2026-03-28T01:30:00Z to 2026-03-28T02:30:00Z',
      '2026-03-29T01:00:00Z to 2026-03-29T02:00:00Z',
      '2026-03-30T00:30:00Z to 2026-03-30T01:30:00Z',
    ],
  },
  {
    name: 'in spring, a window over the missing hour lasts its seconds: it ends later by the clock on the wall',
    window: ['0 22 * * *', 'Europe/Berlin', 6 * HOUR],
    from: '2026-03-28T12:00:00Z',
    opens: [
      // 22:00 to 05:00.
      '2026-03-28T21:00:00Z to 2026-03-29T03:00:00Z',
      '2026-03-29T20:00:00Z to 2026-03-30T02:00:00Z',
    ],
  },
  {
    name: 'in autumn, a window in the repeated hour opens once, at the first of the two',
    window: ['30 2 * * *', 'Europe/Berlin', HOUR],
    from: '2026-10-24T12:00:00Z',
    opens: ['2026-10-25T00:30:00Z to 2026-10-25T01:30:00Z', '2026-10-26T01:30:00Z to 2026-10-26T02:30:00Z'],
  },
  {
    name: 'in autumn, a window of every hour opens in both of the repeated ones',
    window: ['0 * * * *', 'Europe/Berlin', 600],
    from: '2026-10-24T23:30:00Z',
    opens: [
      '2026-10-25T00:00:00Z to 2026-10-25T00:10:00Z',
      '2026-10-25T01:00:00Z to 2026-10-25T01:10:00Z',
      '2026-10-25T02:00:00Z to 2026-10-25T02:10:00Z',
    ],
  },
  {
    name: 'New York, spring',
    window: ['30 2 * * *', 'America/New_York', HOUR],
    from: '2026-03-07T12:00:00Z',
    opens: ['2026-03-08T07:00:00Z to 2026-03-08T08:00:00Z', '2026-03-09T06:30:00Z to 2026-03-09T07:30:00Z'],
  },
  {
    name: 'New York, autumn',
    window: ['30 1 * * *', 'America/New_York', HOUR],
    from: '2026-10-31T12:00:00Z',
    opens: ['2026-11-01T05:30:00Z to 2026-11-01T06:30:00Z', '2026-11-02T06:30:00Z to 2026-11-02T07:30:00Z'],
  },
  {
    name: 'Lord Howe, spring: half an hour is missing',
    window: ['15 2 * * *', 'Australia/Lord_Howe', HOUR],
    from: '2026-10-02T12:00:00Z',
    opens: [
      '2026-10-02T15:45:00Z to 2026-10-02T16:45:00Z',
      '2026-10-03T15:30:00Z to 2026-10-03T16:30:00Z',
      '2026-10-04T15:15:00Z to 2026-10-04T16:15:00Z',
    ],
  },
  {
    name: 'Lord Howe, autumn: half an hour is repeated',
    window: ['45 1 * * *', 'Australia/Lord_Howe', HOUR],
    from: '2026-04-03T16:00:00Z',
    opens: ['2026-04-04T14:45:00Z to 2026-04-04T15:45:00Z', '2026-04-05T15:15:00Z to 2026-04-05T16:15:00Z'],
  },
  {
    name: 'UTC knows no daylight saving',
    window: ['30 2 * * *', 'UTC', HOUR],
    from: '2026-03-28T12:00:00Z',
    opens: ['2026-03-29T02:30:00Z to 2026-03-29T03:30:00Z', '2026-03-30T02:30:00Z to 2026-03-30T03:30:00Z'],
  },
]

for (const { name, window, from, opens } of DAYS)
  test(`${name} (${window[0]} ${window[1]})`, () => {
    const [cron, zone, duration_s] = window
    assert.deepEqual(openings(cron, zone, duration_s, from, opens.length), opens)
  })

test('a window is open from its first millisecond to before its end', () => {
  const window = { cron: '0 8 * * *', zone: 'UTC', duration_s: HOUR }
  const at = (time: string) => phaseAt(window, Date.parse(time))
  assert.deepEqual(
    ['07:59:59.999', '08:00:00.000', '08:59:59.999', '09:00:00.000'].map((time) => {
      const { isOpen, until } = at(`2026-05-04T${time}Z`)
      return [isOpen, text(until)]
    }),
    [
      [false, '2026-05-04T08:00:00Z'],
      [true, '2026-05-04T09:00:00Z'],
      [true, '2026-05-04T09:00:00Z'],
      [false, '2026-05-05T08:00:00Z'],
    ],
  )
})

test('what is known of a window does not depend on the order of questions, nor on a clock that goes back', () => {
  const window = { cron: '*/20 * * * *', zone: 'Europe/Berlin', duration_s: 300 }
  const base = Date.parse('2026-10-25T00:00:00Z')
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 3 * HOUR * 1000 }), { maxLength: 20 }), (offsets) => {
      for (const offset of offsets) {
        const inPeriod = offset % 1_200_000
        const { isOpen, until } = phaseAt(window, base + offset)
        assert.equal(isOpen, inPeriod < 300_000)
        assert.equal(until, base + offset - inPeriod + (isOpen ? 300_000 : 1_200_000))
      }
    }),
  )
})

test('openings that meet are one: its end is that of the last', () => {
  const weekdays = { cron: '0 0 * * 1-5', duration_s: 24 * HOUR }
  assert.deepEqual(phaseAt(weekdays, Date.parse('2026-03-03T12:00:00Z')), {
    isOpen: true,
    until: Date.parse('2026-03-07T00:00:00Z'),
  })
  const always = { cron: '0 * * * *', duration_s: 2 * HOUR }
  assert.deepEqual(phaseAt(always, Date.parse('2026-03-03T12:30:00Z')), { isOpen: true, until: undefined })
})

test('the first open moment is at once, or the next opening', () => {
  const window = { cron: '0 8 * * *', duration_s: HOUR }
  assert.equal(text(firstOpen(window, Date.parse('2026-05-04T08:30:00Z'))), '2026-05-04T08:30:00Z')
  assert.equal(text(firstOpen(window, Date.parse('2026-05-04T09:00:00Z'))), '2026-05-05T08:00:00Z')
})

const WRONG = [
  ['61 * * * *', 'UTC', '/cron', /"0 8 \* \* 1-5": Invalid value for minute: 61/],
  ['* * * *', 'UTC', '/cron', /it has 4$/],
  ['0 * * * * *', 'UTC', '/cron', /it has 6$/],
  ['', 'UTC', '/cron', /it has 0$/],
  ['2026-01-01T00:00:00 * * * *', 'UTC', '/cron', /it holds a colon$/],
  ['every day at 8 please', 'UTC', '/cron', /illegal characters/],
  ['0 0 30 2 *', 'UTC', '/cron', /^names a time that never comes: "0 0 30 2 \*"$/],
  ['0 8 * * *', 'Mars/Olympus_Mons', '/zone', /IANA time zone, such as Europe\/Berlin or UTC, not "Mars/],
  ['0 8 * * *', '+01:00', '/zone', /IANA time zone/],
] as const

test('a schedule that cannot be read, or names no time, is told by its field', () => {
  for (const [cron, zone, path, message] of WRONG) {
    const [detail, ...more] = checkWindow({ cron, zone })
    assert.equal(detail?.path, path, cron)
    assert.match(detail?.message ?? '', message)
    assert.deepEqual(more, [])
  }
  for (const cron of ['0 8 * * 1-5', '*/15 9-17 * * MON', '@daily', '0 0 L * *', '0 9 * * 1#1'])
    assert.deepEqual(checkWindow({ cron, zone: 'Asia/Kathmandu' }), [], cron)
})
