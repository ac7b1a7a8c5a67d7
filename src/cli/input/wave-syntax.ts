// Waves on the command line: `canary: environment=dev; applied=100; failures=0; soak=10m`.
import { DNS_LABEL } from '../../base/dns-label.ts'
import { parseDuration } from '../../base/duration.ts'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { parseTime } from '../../base/time.ts'
import { usage } from '../failure.ts'

/** What help says of the syntax. No selector holds a semicolon, so that none needs quotes of its own. */
export const WAVE_HELP = `A wave is 'NAME: WHO; SETTING; …'. WHO is a label selector, a share such as 10%, a number of clusters, or rest. A wave
that is called rest needs no more; one of certain clusters is 'NAME; clusters=ID,ID'. Settings:
  applied=100           this share of its clusters, in percent, has to have applied it; likewise served and healthy
  failures=0            so many may fail: a number, or a share such as 5%
  soak=10m              for how long that has to hold
  concurrent=20         so many clusters at a time
  deadline=1h           those that are away then are set aside
  start=2027-01-31T06:00:00Z    it opens not before
  window=0 6 * * 1-5 for 4h in Europe/Vienna    it opens only then
  approve-before=1      so many people have to approve; with "2 others" none of them started it; also approve-after
  check=smoke           an outside check has to pass; "smoke https://ci.example.com/hook within 30m" asks for it
Without gates (served, applied, healthy, failures) all of its clusters have to apply it, and none may fail.`

const NAME = new RegExp(`^${DNS_LABEL}$`)
const EXAMPLE = `'canary: environment=dev; applied=100; soak=10m', 'tenth: 10%' or rest`

interface Setting {
  /** What its text has to be, for messages. */
  readonly must: string
  /** The fields of a wave; undefined where the text is wrong. */
  parse(text: string): JsonObject | undefined
}

const gate = (kind: string): Setting => ({
  must: 'a share from 0 to 100',
  parse: (text) => fieldsIf(percentOf(text, 0), (percent) => ({ gates: { [kind]: percent } })),
})
const seconds = (fields: (seconds: number) => JsonObject): Setting => ({
  must: 'a duration such as 10m or 1h30m',
  parse: (text) => fieldsIf(parseDuration(text), fields),
})
const approval = (when: 'before' | 'after'): Setting => ({
  must: 'like 1, 2 others or 2 others within 1d',
  parse: (text) => fieldsIf(approvalOf(text), (rule) => ({ approval: { [when]: rule } })),
})

const SETTINGS: Readonly<Record<string, Setting>> = {
  served: gate('served_percent'),
  applied: gate('applied_percent'),
  healthy: gate('healthy_percent'),
  failures: {
    must: 'a number or a share, such as 3 or 5%',
    parse: (text) =>
      fieldsIf(/^\d{1,9}$/.test(text) ? Number(text) : shareOf(text), (failures) => ({
        gates: { failures },
      })),
  },
  soak: seconds((soak_s) => ({ gates: { soak_s } })),
  check: {
    must: 'like smoke or smoke https://ci.example.com/hook within 30m',
    parse: (text) => fieldsIf(checkOf(text), (check) => ({ gates: { checks: [check] } })),
  },
  concurrent: {
    must: 'a whole number of at least 1',
    parse: (text) => fieldsIf(countOf(text), (max_concurrent) => ({ max_concurrent })),
  },
  deadline: seconds((deadline_s) => ({ deadline_s })),
  start: {
    must: 'a time such as 2027-01-31T06:00:00Z',
    parse: (text) => fieldsIf(parseTime(text), (start_at) => ({ start_at })),
  },
  window: {
    must: 'like 0 6 * * 1-5 for 4h in Europe/Vienna',
    parse: (text) => fieldsIf(windowOf(text), (window) => ({ window })),
  },
  'approve-before': approval('before'),
  'approve-after': approval('after'),
  clusters: {
    must: 'ids of clusters, joined by commas',
    parse: (text) => {
      const clusters = text.split(',').map((id) => id.trim())
      return clusters.every((id) => id !== '') ? { clusters } : undefined
    },
  },
}

/** Parses one wave; `flag` is where it was given. */
export function parseWave(text: string, flag: string): JsonObject {
  const [head = '', ...parts] = text.split(';').map((part) => part.trim())
  const [, name = '', who = ''] = /^([^:\s]*)(?:\s*:\s*(.*))?$/s.exec(head) ?? []
  if (!NAME.test(name)) throw usage(`${flag} must be like ${EXAMPLE}, not "${text}"`)
  const place = `wave "${name}" of ${flag}`
  const given = parts.filter((part) => part !== '').map((part) => parseSetting(part, place))
  const twice = given.find(({ key }, i) => key !== 'check' && given.findIndex((each) => each.key === key) < i)
  if (twice) throw usage(`${place}: ${twice.key} is given twice`)
  const settings = given.reduce((fields, each) => joined(fields, each.fields), {} as JsonObject)
  return { name, ...(settings.clusters ? nobodyElse(who, place) : whoOf(name, who, place)), ...settings }
}

function parseSetting(part: string, place: string): { readonly key: string; readonly fields: JsonObject } {
  const at = part.indexOf('=')
  const key = (at < 0 ? part : part.slice(0, at)).trim()
  const setting = Object.hasOwn(SETTINGS, key) ? SETTINGS[key] : undefined
  if (!setting) throw usage(`${place}: "${key}" is no setting: there are ${Object.keys(SETTINGS).join(', ')}`)
  const text = at < 0 ? '' : part.slice(at + 1).trim()
  const fields = setting.parse(text)
  if (!fields) throw usage(`${place}: ${key} must be ${setting.must}, not "${text}"`)
  return { key, fields }
}

/** Objects are joined field by field, lists one after the other. */
function joined(one: JsonObject, other: JsonObject): JsonObject {
  const fields = Object.entries(other).map(([name, value]): [string, Json] => {
    const known = one[name]
    if (Array.isArray(known) && Array.isArray(value)) return [name, [...known, ...value]]
    return [name, isObject(known) && isObject(value) ? joined(known, value) : value]
  })
  return { ...one, ...Object.fromEntries(fields) }
}

function nobodyElse(who: string, place: string): JsonObject {
  if (who === '') return {}
  throw usage(`${place}: give either clusters=… or "${who}", not both`)
}

function whoOf(name: string, who: string, place: string): JsonObject {
  if (who === 'rest' || (who === '' && name === 'rest')) return { rest: true }
  if (who === '') throw usage(`${place} says nothing about who is in it: write it like ${EXAMPLE}`)
  if (who.endsWith('%')) {
    const percent = percentOf(who, Number.MIN_VALUE)
    if (percent === undefined) throw usage(`${place}: a share is more than 0% and at most 100%, not ${who}`)
    return { percent }
  }
  if (!/^\d+$/.test(who)) return { selector: who }
  const count = countOf(who)
  if (count === undefined) throw usage(`${place}: a number of clusters is at least 1, not ${who}`)
  return { count }
}

function fieldsIf<T>(value: T | undefined, fields: (value: T) => JsonObject): JsonObject | undefined {
  return value === undefined ? undefined : fields(value)
}

function percentOf(text: string, least: number): number | undefined {
  const [, number] = /^(\d{1,3}(?:\.\d{1,6})?) ?%?$/.exec(text) ?? []
  const percent = Number(number)
  return percent >= least && percent <= 100 ? percent : undefined
}

function shareOf(text: string): string | undefined {
  return /^\d{1,2}(?:\.\d{1,2})?%$|^100%$/.test(text) ? text : undefined
}

function countOf(text: string): number | undefined {
  return /^\d{1,9}$/.test(text) && Number(text) > 0 ? Number(text) : undefined
}

function windowOf(text: string): JsonObject | undefined {
  const [, cron = '', duration = '', zone] = /^(.+?) for (\S+)(?: in (\S+))?$/.exec(text) ?? []
  return fieldsIf(parseDuration(duration), (duration_s) => ({
    cron,
    duration_s,
    ...(zone !== undefined && { zone }),
  }))
}

function approvalOf(text: string): JsonObject | undefined {
  const [, number = '', others, within] = /^(\d{1,2})( others?)?(?: within (\S+))?$/.exec(text) ?? []
  const expires_s = within === undefined ? undefined : parseDuration(within)
  if (within !== undefined && expires_s === undefined) return undefined
  return fieldsIf(countOf(number), (count) => ({
    count,
    ...(others !== undefined && { not_starter: true }),
    ...(expires_s !== undefined && { expires_s }),
  }))
}

function checkOf(text: string): JsonObject | undefined {
  const [, name = '', url, within] = /^(\S+)(?: (https?:\S+))?(?: within (\S+))?$/.exec(text) ?? []
  const timeout_s = within === undefined ? undefined : parseDuration(within)
  if (name === '' || (within !== undefined && timeout_s === undefined)) return undefined
  return { name, ...(url !== undefined && { url }), ...(timeout_s !== undefined && { timeout_s }) }
}
