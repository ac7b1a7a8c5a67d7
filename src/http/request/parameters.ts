// Parameters of requests: each is declared once, and checked and described by its declaration.
import {
  IDEMPOTENCY_KEY_PATTERN,
  MAX_IMPACT_DETAILS,
  MAX_MESSAGE,
  MAX_REVISION,
  type PageLimits,
  PLAN_PATTERN,
  REVISION_PAGES,
} from '../../api/limits.ts'
import type { SchemaObject } from '../../base/json-schema.ts'
import { parseTime } from '../../base/time.ts'
import { IMPACT_LIMIT } from '../../domain/delivery/impact.ts'
import { CONFIRMATIONS } from '../../domain/guards/guard.ts'
import { schemaOf } from '../../registry/validator.ts'

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: boolean
  readonly description: string
  readonly schema: SchemaObject
  /** What is wrong with a value, where the schema has no readable message for it. */
  readonly check?: (text: string) => string | undefined
}

/** The query of a request whose parameters were checked: none is given twice. */
export type Query = Readonly<Record<string, string | undefined>>

/** What is wrong with a value of a query; undefined when nothing is. */
export function problemWith({ schema, check }: Parameter, text: string): string | undefined {
  if (check) return check(text)
  const { type, enum: values, maximum, format } = schema
  if (type === 'boolean') return choiceProblem(['true', 'false'], text, 'true or false')
  if (type === 'integer') return isWhole(text, maximum) ? undefined : notWhole(text, maximum)
  if (values) return choiceProblem(values, text)
  return format === 'date-time' ? timeProblem(text) : undefined
}

/** What is wrong with a value that must be one of `values`. */
export function choiceProblem(values: readonly unknown[], text: string, words?: string): string | undefined {
  if (values.includes(text)) return undefined
  const known = words ?? `${values.length > 1 ? 'one of ' : ''}${values.join(', ')}`
  return `must be ${known}, not "${text}"`
}

function isWhole(text: string, maximum: unknown): boolean {
  return /^\d{1,16}$/.test(text) && Number(text) <= Number(maximum)
}

function notWhole(text: string, maximum: unknown): string {
  const range = maximum === Number.MAX_SAFE_INTEGER ? 'of 0 or more' : `from 0 to ${maximum}`
  return `must be a whole number ${range}, not "${text}"`
}

export function timeProblem(text: string): string | undefined {
  return readTime(text) === undefined
    ? `must be an RFC 3339 time such as 2026-01-31T12:00:00Z, not "${text}"`
    : undefined
}

/** The time in UTC; undefined when the text is not a time. */
export function readTime(text: string): string | undefined {
  // An unescaped plus sign arrives as a space.
  return parseTime(text.replace(' ', '+'))
}

/** A whole number that was checked, or the default of its parameter. */
export function numberIn(query: Query, { name, schema }: Parameter): number | undefined {
  const text = query[name]
  return text === undefined ? (schema.default as number | undefined) : Number(text)
}

/** A time in UTC that was checked. */
export function timeIn(query: Query, { name }: Parameter): string | undefined {
  const text = query[name]
  return text === undefined ? undefined : readTime(text)
}

export function inPath(
  name: string,
  description: string,
  schema: SchemaObject = { type: 'string' },
): Parameter {
  return { name, in: 'path', required: true, description, schema }
}

/** No text of a request may hold a NUL. */
export const TEXT = '^[^\\u0000]*$'

export function inQuery(
  name: string,
  description: string,
  schema: SchemaObject = { type: 'string' },
  check?: Parameter['check'],
): Parameter {
  const isText = schema.type === 'string' && !schema.enum
  const parameter = { name, in: 'query', description, schema: isText ? { pattern: TEXT, ...schema } : schema }
  return { ...(parameter as Parameter), ...(check && { check }) }
}

export function inHeader(
  name: string,
  description: string,
  schema: SchemaObject = { type: 'string' },
): Parameter {
  return { name, in: 'header', description, schema }
}

/** True or false. */
export function flag(name: string, description: string, otherwise?: boolean): Parameter {
  const schema = { type: 'boolean', ...(otherwise !== undefined && { default: otherwise }) }
  return inQuery(name, description, schema)
}

/** A whole number that loses no digits on its way. */
export const WHOLE = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER }
/** The number of a revision. */
export const REVISION = { ...WHOLE, maximum: MAX_REVISION }
const TIME = { type: 'string', format: 'date-time', ...schemaOf('date-time') }

export function limitOf({ limit, max }: { readonly limit?: number; readonly max: number }): Parameter {
  const schema = { ...WHOLE, maximum: max, ...(limit !== undefined && { default: limit }) }
  return inQuery('limit', 'How many to answer at most.', schema)
}

export const OFFSET = inQuery('offset', 'How many to skip.', WHOLE)

/** A page of a list, and how many there are at most. */
export function pageOf(pages: PageLimits): readonly [limit: Parameter, offset: Parameter] {
  return [limitOf(pages), OFFSET]
}

export function time(name: string, description: string): Parameter {
  return inQuery(name, description, TIME)
}

export const AT = inQuery(
  'at',
  'As it was at this revision, or at this time (RFC 3339).',
  { anyOf: [REVISION, TIME] },
  (text) =>
    /^\d{1,15}$/.test(text) || readTime(text) !== undefined
      ? undefined
      : `must be a revision or an RFC 3339 time such as 2026-01-31T12:00:00Z, not "${text}"`,
)

/** What every read takes. */
export const MIN_REVISION = inQuery(
  'min_revision',
  'Waits, for some seconds at most, until the process that answers is at this revision: who has written elsewhere reads it here.',
  REVISION,
)

// No example: the docs page would fill it in, and lists would be empty.
export const SELECTOR = inQuery(
  'selector',
  'Label selector over labels, id, cluster_name, cluster_dns, environment and uses.<type>, such as environment in (dev,qa), region=eu, and over the present contact, delivery, health and operator_version.',
  { type: 'string', format: 'label-selector', minLength: 1 },
)

/** The page of a list of revisions. */
export const REVISION_LIMIT = limitOf(REVISION_PAGES)
export const BEFORE = inQuery('before', 'Only revisions before this one.', WHOLE)

export const IMPACT = inQuery('impact_limit', 'How many details of the impact to answer.', {
  type: 'integer',
  minimum: 0,
  maximum: MAX_IMPACT_DETAILS,
  default: IMPACT_LIMIT,
})

const PLAN = new RegExp(PLAN_PATTERN)
export const isPlan = (text: string): boolean => PLAN.test(text)
export const NO_PLAN = 'must be a plan that a preview answered: sha256: and 64 hex digits'

/** What every write takes. */
export const WRITE_PARAMETERS: readonly Parameter[] = [
  inHeader('X-Change-Message', 'Why the change is made; kept with its revision.', {
    type: 'string',
    maxLength: MAX_MESSAGE,
  }),
  inHeader('Idempotency-Key', 'A repetition with the same key within 24 hours gets the first answer again.', {
    type: 'string',
    pattern: IDEMPOTENCY_KEY_PATTERN,
  }),
  flag('dry_run', 'Answers a preview, and stores nothing.'),
  inQuery(
    'plan',
    'The digest that a preview answered: do exactly that or nothing.',
    { type: 'string', pattern: PLAN_PATTERN },
    (text) => (isPlan(text) ? undefined : NO_PLAN),
  ),
  inQuery(
    'confirm',
    'The word removals confirms a write that takes inputs from many clusters, or the last of a type from one. The word finish confirms the finish of a rollout with waves that are not through. A comma joins both.',
    { type: 'string', pattern: `^(?:${CONFIRMATIONS.join('|')})(?:,(?:${CONFIRMATIONS.join('|')}))*$` },
    (text) =>
      text
        .split(',')
        .map((each) => choiceProblem(CONFIRMATIONS, each))
        .find((problem) => problem !== undefined),
  ),
  flag(
    'bypass',
    'Writes what a rollout holds or a freeze covers all the same. It needs the permission, and a message that says why.',
  ),
  inQuery(
    'rollout',
    'The name of a strategy: the change reaches its clusters wave by wave. Answers 202 with the rollout.',
    { type: 'string', minLength: 1, maxLength: 253 },
  ),
  IMPACT,
]

const REVISION_TAG = '"[0-9]{1,16}"'
export const IF_MATCH = inHeader(
  'If-Match',
  'Only when the document still has this ETag, or is there at all (*).',
  { type: 'string', pattern: `^(?:\\*|${REVISION_TAG}(?: *, *${REVISION_TAG})*)$` },
)
export const IF_ABSENT = inHeader(
  'If-None-Match',
  'Set to * to create the document; goes without If-Match.',
  { type: 'string', enum: ['*'] },
)
export const IF_CHANGED = inHeader(
  'If-None-Match',
  'ETags that the caller has already: 304 when nothing changed.',
)
