import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Failure } from '../failure.ts'
import { parseWave } from './wave-syntax.ts'

const parse = (text: string) => parseWave(text, '--rollout-wave')

function refusal(text: string): string {
  try {
    parse(text)
  } catch (error) {
    if (error instanceof Failure) return error.message
  }
  return assert.fail(`${text} was taken`)
}

describe('a wave on the command line', () => {
  test('says who is in it in one word, or by a selector with all that a selector may hold', () => {
    const taken: [string, object][] = [
      ['rest', { name: 'rest', rest: true }],
      ['last: rest', { name: 'last', rest: true }],
      ['tenth: 10%', { name: 'tenth', percent: 10 }],
      ['tiny: 0.5 %', { name: 'tiny', percent: 0.5 }],
      ['one: 1', { name: 'one', count: 1 }],
      ['dev:environment=dev', { name: 'dev', selector: 'environment=dev' }],
      [
        'eu: environment in (dev, qa),region=eu,name!=x,soak',
        { name: 'eu', selector: 'environment in (dev, qa),region=eu,name!=x,soak' },
      ],
      ['two; clusters=a, b', { name: 'two', clusters: ['a', 'b'] }],
    ]
    for (const [text, wave] of taken) assert.deepEqual(parse(text), wave, text)
  })

  test('takes every setting of a strategy, in any order', () => {
    assert.deepEqual(
      parse(
        'canary: environment=dev; soak=1h30m; applied=100; served=99.5%;healthy=90 ; failures=5%; concurrent=20; deadline=2h;',
      ),
      {
        name: 'canary',
        selector: 'environment=dev',
        gates: {
          soak_s: 5400,
          applied_percent: 100,
          served_percent: 99.5,
          healthy_percent: 90,
          failures: '5%',
        },
        max_concurrent: 20,
        deadline_s: 7200,
      },
    )
    assert.deepEqual(
      parse(
        'rest; start=2027-01-31T06:00:00+01:00; window=0 6 * * 1-5 for 4h in Europe/Vienna; approve-before=1; approve-after=2 others within 1d; failures=3',
      ),
      {
        name: 'rest',
        rest: true,
        start_at: '2027-01-31T05:00:00.000Z',
        window: { cron: '0 6 * * 1-5', duration_s: 14_400, zone: 'Europe/Vienna' },
        approval: { before: { count: 1 }, after: { count: 2, not_starter: true, expires_s: 86_400 } },
        gates: { failures: 3 },
      },
    )
    assert.deepEqual(parse('rest; check=smoke; check=load https://ci.example.com/hook within 30m').gates, {
      checks: [{ name: 'smoke' }, { name: 'load', url: 'https://ci.example.com/hook', timeout_s: 1800 }],
    })
  })

  test('that is wrong is refused with the place, and what would be right', () => {
    const refused: [string, RegExp][] = [
      ['', /^--rollout-wave must be like 'canary: environment=dev; .*, not ""$/],
      ['environment=dev', /must be like 'canary: environment=dev;/],
      ['name=canary,selector=environment=dev', /must be like 'canary: environment=dev;/],
      ['Canary: 1', /must be like/],
      ['canary', /wave "canary" of --rollout-wave says nothing about who is in it: write it like 'canary/],
      ['canary; soak=10m', /says nothing about who is in it/],
      ['canary: 0', /a number of clusters is at least 1, not 0/],
      ['canary: 0%', /a share is more than 0% and at most 100%, not 0%/],
      ['canary: 101%', /at most 100%, not 101%/],
      [
        'canary: 1; soak=ten',
        /wave "canary" of --rollout-wave: soak must be a duration such as 10m or 1h30m, not "ten"/,
      ],
      ['canary: 1; applied=120', /applied must be a share from 0 to 100, not "120"/],
      ['canary: 1; failures=-1', /failures must be a number or a share, such as 3 or 5%, not "-1"/],
      ['canary: 1; failures=200%', /failures must be/],
      ['canary: 1; sook=1m', /"sook" is no setting: there are served, applied,/],
      ['canary: 1; toString=1m', /"toString" is no setting/],
      ['canary: 1; soak', /soak must be a duration such as 10m or 1h30m, not ""/],
      ['canary: 1; soak=1m; soak=2m', /soak is given twice/],
      ['canary: a=b; clusters=x', /give either clusters=… or "a=b", not both/],
      ['canary; clusters=x,,y', /clusters must be ids of clusters, joined by commas/],
      ['canary: 1; start=tomorrow', /start must be a time such as 2027-01-31T06:00:00Z/],
      ['canary: 1; window=0 6 * * *', /window must be like 0 6 \* \* 1-5 for 4h in Europe\/Vienna/],
      ['canary: 1; approve-before=0', /approve-before must be like 1, 2 others or 2 others within 1d/],
      ['canary: 1; check=a b', /check must be like smoke or smoke https/],
    ]
    for (const [text, says] of refused) assert.match(refusal(text), says, text)
  })
})
