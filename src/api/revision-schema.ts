// The shape of revisions, and of what is found when the log is verified, on the wire.
import type { SchemaObject } from '../base/json-schema.ts'
import { ref } from './component-ref.ts'
import { CHANGES_IN_LIST } from './limits.ts'

const nullableDocument = { type: ['object', 'null'], additionalProperties: true }
const REVISION_SCHEMA = {
  type: 'object',
  required: [
    'revision',
    'time',
    'actor',
    'message',
    'request_id',
    'client_address',
    'operation',
    'hash',
    'change_count',
    'changes',
  ],
  properties: {
    revision: { type: 'integer' },
    time: { type: 'string', format: 'date-time' },
    actor: { type: 'string' },
    message: { type: ['string', 'null'] },
    request_id: { type: 'string' },
    client_address: { type: ['string', 'null'] },
    operation: { type: 'string', description: 'The request, in one line.' },
    hash: { type: 'string', description: "SHA-256 of its content and of its predecessor's hash." },
    change_count: {
      type: 'integer',
      description: `How many changes it made; a list shows the first ${CHANGES_IN_LIST} of them.`,
    },
    changes: { type: 'array', items: ref('change') },
  },
}

export const CHANGE_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['type', 'id', 'op', 'before', 'after'],
  properties: {
    type: { type: 'string' },
    id: { type: 'string' },
    op: { type: 'string', enum: ['create', 'update', 'delete', 'restore', 'purge'] },
    before: nullableDocument,
    after: nullableDocument,
  },
}

const count = { type: 'integer', minimum: 0 }

/** What is found when the log is verified. */
export interface Verification {
  readonly verified: boolean
  readonly from: number
  readonly to: number
  readonly hash: string
  readonly revisions: number
  readonly documents: number
  /** Where the log begins, once older revisions were given up. */
  readonly anchor: { readonly revision: number; readonly time: string } | null
  readonly problems: readonly string[]
}

const VERIFICATION_SCHEMA = {
  type: 'object',
  required: ['verified', 'from', 'to', 'hash', 'revisions', 'documents', 'anchor', 'problems'],
  properties: {
    verified: { type: 'boolean' },
    from: { type: 'integer' },
    to: { type: 'integer' },
    hash: { type: 'string' },
    revisions: count,
    documents: count,
    anchor: {
      type: ['object', 'null'],
      required: ['revision', 'hash', 'time', 'state'],
      properties: {
        revision: { type: 'integer' },
        hash: { type: 'string' },
        time: { type: 'string', format: 'date-time' },
        state: { type: 'string' },
      },
      description: 'Where the log begins once older revisions were pruned.',
    },
    problems: { type: 'array', items: { type: 'string' } },
  },
}

/** What the routes of the log refer to. */
export const REVISION_SCHEMAS: Readonly<Record<string, SchemaObject>> = {
  revision: REVISION_SCHEMA,
  revision_with_impact: {
    ...REVISION_SCHEMA,
    required: [...REVISION_SCHEMA.required, 'impact'],
    properties: { ...REVISION_SCHEMA.properties, impact: ref('impact') },
  },
  change: CHANGE_SCHEMA,
  verification: VERIFICATION_SCHEMA,
}
