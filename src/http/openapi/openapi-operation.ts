// Building blocks of an OpenAPI description: operations, parameters, answers.

import type { SchemaObject } from '../../base/json-schema.ts'
import type { RegisteredType } from '../../registry/build-types.ts'
import { schemaOf } from '../../registry/validator.ts'
import { describeOperation } from './operation-texts.ts'

export type Node = Record<string, unknown>

export function schemaName({ singular }: RegisteredType): string {
  return singular.replaceAll(' ', '_')
}

export function ref(name: string): Node {
  return { $ref: `#/components/schemas/${name}` }
}

/** Of a body: the only one, or several by names of their own. */
export type Examples =
  | { readonly example: unknown }
  | {
      readonly examples: Readonly<
        Record<string, { readonly summary?: string | undefined; readonly value: unknown }>
      >
    }

export function json(schema: Node, type = 'application/json', examples?: Examples): Node {
  return { [type]: { schema, ...examples } }
}

export function example(value: unknown): Examples | undefined {
  return value === undefined ? undefined : { example: value }
}

export function ok(description: string, schema: Node, headers: readonly string[] = []): Node {
  return { description, ...headed(headers), content: json(schema) }
}

/** The headers of an answer, by what `HEADERS` knows of them. */
function headed(names: readonly string[]): Node {
  return { headers: headerRefs(['X-Revision', ...names]) }
}

export function headerRefs(names: readonly string[]): Node {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

/** A document that the caller has already. */
export const NOT_MODIFIED = { description: 'What the caller has already.', ...headed(['ETag']) }

/** What goes wrong, by what an operation is. */
const ANYWHERE = [401, 403, 429, 500, 503]
export const READING = [400, ...ANYWHERE]
export const READING_ONE = [400, 404, ...ANYWHERE]
export const LOOKING_BACK = [400, 404, 410, ...ANYWHERE]
export const CREATING = [400, 409, 412, 413, 415, 422, ...ANYWHERE]
export const WRITING = [400, 404, 409, 412, 413, 415, 422, ...ANYWHERE]
export const GOING_BACK = [400, 404, 409, 410, 412, 413, 415, 422, ...ANYWHERE]

const header = (description: string, schema: SchemaObject, required = true): Node => ({
  description,
  ...(required && { required }),
  schema,
})
const ETAG = '(?:"[^"]*")'
export const HEADERS = {
  'X-Revision': header('The revision of the fleet that this was made from, or that a write made.', {
    type: 'integer',
    minimum: 0,
  }),
  'X-Request-Id': header('What the request is called in the log.', { type: 'string', minLength: 1 }),
  ETag: header('Of the document, or of the bytes.', { type: 'string', pattern: `^${ETAG}$` }),
  Location: header('Where the new document is.', { type: 'string', pattern: '^/' }),
  'X-Total-Count': header('How many there are on all pages.', { type: 'integer', minimum: 0 }),
  Link: header('Where the pages before and after are (RFC 8288).', { type: 'string' }, false),
  'X-Change-Count': header(
    'How many documents a write changed; a preview says it in its body.',
    { type: 'integer', minimum: 0 },
    false,
  ),
  Warning: header(
    'What is allowed and hardly meant, or should be looked at first; 8 KiB of it at most.',
    { type: 'string' },
    false,
  ),
  'Idempotent-Replayed': header(
    'That this is the first answer again.',
    { type: 'string', enum: ['true'] },
    false,
  ),
  'X-State-Age': header(
    'Seconds since nothing was missing here; of a process that cannot follow its own store or upstream.',
    { type: 'integer', minimum: 0 },
    false,
  ),
  'WWW-Authenticate': header('How to say who asks.', { type: 'string' }),
  'Retry-After': header('Seconds to wait before trying again.', { type: 'integer', minimum: 0 }),
}
/** What an answer to a write has; an ETag where it is of a document that is there, and no preview. */
export const WRITTEN_HEADERS = ['X-Request-Id', 'X-Change-Count', 'Warning', 'Idempotent-Replayed']

export interface Operation {
  readonly tag: string
  readonly id: string
  readonly summary: string
  readonly parameters?: readonly Node[]
  readonly body?: Node
  /** Whether the body may be left out. */
  readonly bodyless?: boolean
  readonly answers: Record<string, Node>
  readonly problems: readonly number[]
  readonly open?: boolean
}

export function operation(described: Operation): Node {
  const { tag, id, summary, parameters, body, bodyless = false, answers, problems, open } = described
  const description = describeOperation(id)
  const refused = problems.map((status) => [status, { $ref: `#/components/responses/problem_${status}` }])
  return {
    tags: [tag],
    operationId: id,
    summary,
    ...(description !== undefined && { description }),
    ...(parameters && { parameters }),
    ...(body && { requestBody: { required: !bodyless, content: body } }),
    ...(open && { security: [] }),
    responses: { ...answers, ...Object.fromEntries(refused) },
  }
}

export function inPath(name: string, description: string, schema: SchemaObject = { type: 'string' }): Node {
  return { name, in: 'path', required: true, description, schema }
}

/** No text of a request may hold a NUL. */
export const TEXT = '^[^\\u0000]*$'

export function inQuery(name: string, description: string, schema: SchemaObject = { type: 'string' }): Node {
  const isText = schema.type === 'string' && !schema.enum
  return { name, in: 'query', description, schema: isText ? { pattern: TEXT, ...schema } : schema }
}

export function inHeader(name: string, description: string, schema: SchemaObject = { type: 'string' }): Node {
  return { name, in: 'header', description, schema }
}

/** A whole number that loses no digits on its way. */
export const WHOLE = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER }
export const PLAN = '^sha256:[0-9a-f]{64}$'

export function limit(maximum: number, otherwise?: number): Node {
  const schema = { ...WHOLE, maximum, ...(otherwise !== undefined && { default: otherwise }) }
  return inQuery('limit', 'How many to answer at most.', schema)
}

export const OFFSET = inQuery('offset', 'How many to skip.', WHOLE)
export const REVISION = { ...WHOLE, maximum: 999_999_999_999_999 }
const TIME = { type: 'string', format: 'date-time', ...schemaOf('date-time') }
export const AT = inQuery('at', 'As it was at this revision, or at this time (RFC 3339).', {
  anyOf: [REVISION, TIME],
})
export const MIN_REVISION = inQuery(
  'min_revision',
  'Waits, for some seconds at most, until the process that answers is at this revision: who has written elsewhere reads it here.',
  REVISION,
)
export function time(name: string, description: string): Node {
  return inQuery(name, description, TIME)
}
// No example: pages fill it in, and then list nothing.
export const SELECTOR = inQuery(
  'selector',
  'Label selector over labels, id, cluster_name, cluster_dns, environment and uses.<type>, such as environment in (dev,qa), region=eu.',
  { type: 'string', format: 'label-selector', minLength: 1 },
)
/** The page of a list of revisions. */
export const REVISION_PAGE = [limit(1000, 50), inQuery('before', 'Only revisions before this one.', WHOLE)]
export const IMPACT_LIMIT = inQuery('impact_limit', 'How many details of the impact to answer.', {
  type: 'integer',
  minimum: 0,
  maximum: 10_000,
  default: 100,
})
/** What every write takes. */
export const WRITE = [
  inHeader('X-Change-Message', 'Why the change is made; kept with its revision.', {
    type: 'string',
    maxLength: 1000,
  }),
  inHeader('Idempotency-Key', 'A repetition with the same key within 24 hours gets the first answer again.', {
    type: 'string',
    pattern: '^[!-~]{1,255}$',
  }),
  inQuery('dry_run', 'Answers a preview, and stores nothing.', { type: 'boolean' }),
  inQuery('plan', 'The digest that a preview answered: do exactly that or nothing.', {
    type: 'string',
    pattern: PLAN,
  }),
  inQuery(
    'confirm',
    'Confirms a write that takes inputs from many clusters, or the last of a type from one.',
    { type: 'string', enum: ['removals'] },
  ),
  IMPACT_LIMIT,
]
const REVISION_TAG = '"[0-9]{1,16}"'
export const IF_MATCH = inHeader(
  'If-Match',
  'Only when the document still has this ETag, or is there at all (*).',
  {
    type: 'string',
    pattern: `^(?:\\*|${REVISION_TAG}(?: *, *${REVISION_TAG})*)$`,
  },
)
export const IF_ABSENT = inHeader(
  'If-None-Match',
  'Set to * to create the document; goes without If-Match.',
  {
    type: 'string',
    enum: ['*'],
  },
)
export const IF_CHANGED = inHeader(
  'If-None-Match',
  'ETags that the caller has already: 304 when nothing changed.',
  {
    type: 'string',
  },
)
