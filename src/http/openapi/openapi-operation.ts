// Building blocks of an OpenAPI description: bodies, answers, headers, problems.

import { ref } from '../../api/component-ref.ts'
import { JSON_TYPE, MERGE_PATCH } from '../../api/media-types.ts'
import type { JsonObject } from '../../base/json.ts'
import type { SchemaObject } from '../../base/json-schema.ts'
import type { RegisteredType } from '../../registry/build-types.ts'
import { REVISION_HEADER } from '../request/revision-header.ts'

export type Node = Record<string, unknown>

export function schemaName({ singular }: RegisteredType): string {
  return singular.replaceAll(' ', '_')
}

/** The examples of a body: a single one, or several by name. */
export type Examples =
  | { readonly example: unknown }
  | {
      readonly examples: Readonly<
        Record<string, { readonly summary?: string | undefined; readonly value: unknown }>
      >
    }

export function json(schema: Node, type = JSON_TYPE, examples?: Examples): Node {
  return { [type]: { schema, ...examples } }
}

export function example(value: unknown): Examples | undefined {
  return value === undefined ? undefined : { example: value }
}

export function ok(description: string, schema: Node, headers: readonly string[] = []): Node {
  return { description, ...headed(headers), content: json(schema) }
}

/** The headers of a response, as references to `HEADERS`. */
function headed(names: readonly string[]): Node {
  return { headers: headerRefs([REVISION_HEADER, ...names]) }
}

export function headerRefs(names: readonly string[]): Node {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

/** A document that the caller has already. */
export const NOT_MODIFIED = { description: 'The state that the caller has already.', ...headed(['ETag']) }

/** The error statuses of each kind of operation. */
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
  [REVISION_HEADER]: header('The revision of the fleet that this was made from, or that a write made.', {
    type: 'integer',
    minimum: 0,
  }),
  'X-Request-Id': header('Id of the request in the log.', { type: 'string', minLength: 1 }),
  ETag: header('The version of the document, or a digest of the bytes.', {
    type: 'string',
    pattern: `^${ETAG}$`,
  }),
  Location: header('Where the new document is.', { type: 'string', pattern: '^/' }),
  'X-Total-Count': header('How many there are on all pages.', { type: 'integer', minimum: 0 }),
  Link: header('Where the pages before and after are (RFC 8288).', { type: 'string' }, false),
  'X-Change-Count': header(
    'How many documents a write changed; a preview says it in its body.',
    { type: 'integer', minimum: 0 },
    false,
  ),
  Warning: header(
    'Warnings: allowed but unusual, or worth a look first; 8 KiB at most.',
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
/** Headers of the response to a write; an ETag is added where it is a document and not a preview. */
export const WRITTEN_HEADERS = ['X-Request-Id', 'X-Change-Count', 'Warning', 'Idempotent-Replayed']

/** The responses of a write: the document, or a preview for a dry run. */
export function written(schema: Node, { created = false } = {}): Readonly<Record<number, Node>> {
  return {
    200: ok('The document; a preview with dry_run.', { anyOf: [schema, ref('preview')] }, WRITTEN_HEADERS),
    ...(created && {
      201: ok('The new document.', schema, [...WRITTEN_HEADERS, 'ETag', 'Location']),
    }),
  }
}

/** Sentences of the descriptions of writes. */
export const PREVIEWED =
  'With dry_run nothing is stored, and the answer is a preview of the changes and their impact.'
export const LOCKED =
  'With If-Match it is done only while the document has that ETag; otherwise the last write wins.'

/** The same schema under both names of a merge patch. */
export function mergePatch(schema: Node, value: JsonObject): Node {
  return {
    ...json(schema, JSON_TYPE, example(value)),
    ...json(schema, MERGE_PATCH, example(value)),
  }
}
