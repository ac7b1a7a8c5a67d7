// The log and the writes of many documents, in OpenAPI's words.
import { BATCH_SCHEMA, OPERATIONS, REVERT_SCHEMA, ROLLBACK_SCHEMA } from './batch-schema.ts'
import {
  IMPACT_LIMIT,
  inPath,
  inQuery,
  json,
  LIMIT,
  type Node,
  OFFSET,
  type Operation,
  ok,
  operation,
  REVISION_PAGE,
  ref,
  WRITE,
} from './openapi-operation.ts'

const NDJSON = 'application/x-ndjson'

function revisionList(description: string): Node {
  return {
    description,
    content: { ...json({ type: 'array', items: ref('revision') }), ...json(ref('revision'), NDJSON) },
  }
}

export function revisionPaths(): Node {
  const revision = inPath('revision', 'Its number.')
  const text = (name: string, description: string): Node => inQuery(name, description)
  return {
    '/revisions': {
      get: operation({
        tag: 'revisions',
        id: 'list_revisions',
        summary: 'Revisions, newest first.',
        parameters: [
          ...REVISION_PAGE,
          text('actor', 'Only by this actor.'),
          text('type', 'Only those that changed a document of this type.'),
          text('id', 'Only those that changed a document of this id.'),
          text(
            'cluster',
            'Only those that changed this cluster, or a definition while it was assigned to it.',
          ),
          text('since', 'Only from this time on (RFC 3339).'),
          text('until', 'Only up to this time (RFC 3339).'),
          text('q', 'Only with this text in the message, the operation, the actor or the request id.'),
        ],
        answers: { 200: revisionList('Revisions with their first changes.') },
      }),
    },
    '/revisions/verify': {
      get: operation({
        tag: 'revisions',
        id: 'verify_revisions',
        summary: 'Whether the log is whole and the documents are what it says.',
        answers: { 200: ok('What was found.', ref('verification')) },
      }),
    },
    '/revisions/{revision}': {
      get: operation({
        tag: 'revisions',
        id: 'get_revision',
        summary: 'One revision with its changes, at most 1000 at a time, and what it meant for clusters.',
        parameters: [revision, LIMIT, OFFSET, IMPACT_LIMIT],
        answers: {
          200: ok('The revision.', {
            allOf: [ref('revision'), { type: 'object', properties: { impact: ref('impact') } }],
          }),
        },
      }),
    },
    '/revisions/{revision}/revert': {
      post: fleetWrite('revert_revision', 'Undo what a revision did, unless it was built on since.', {
        parameters: [revision, ...WRITE],
        body: json(REVERT_SCHEMA as Node),
      }),
    },
    '/rollback': {
      post: fleetWrite('rollback', 'Make the fleet, or a part of it, as it was.', {
        parameters: WRITE,
        body: json(ROLLBACK_SCHEMA as Node),
      }),
    },
    '/batch': {
      post: fleetWrite('batch', 'Many changes as one revision, all of them or none.', {
        parameters: WRITE,
        body: json(batchSchema()),
      }),
    },
  }
}

function fleetWrite(id: string, summary: string, rest: Pick<Operation, 'parameters' | 'body'>): Node {
  const answers = {
    200: ok('What was done; a preview with dry_run.', { anyOf: [ref('written'), ref('preview')] }),
    409: ok(
      'A conflict, a changed plan, or a change that removes a lot and was not confirmed.',
      ref('error'),
    ),
  }
  return operation({ tag: 'revisions', id, summary, answers, ...rest })
}

/** With every operation spelt out. */
function batchSchema(): Node {
  const operations = Object.entries(OPERATIONS).map(([op, schema]) => ({
    ...schema,
    properties: { ...schema.properties, op: { const: op } },
  }))
  const { operations: list, ...properties } = BATCH_SCHEMA.properties ?? {}
  return {
    ...BATCH_SCHEMA,
    properties: { operations: { ...list, items: { oneOf: operations } }, ...properties },
  }
}

const nullableDocument = { type: ['object', 'null'], additionalProperties: true }
const REVISION_SCHEMA = {
  type: 'object',
  properties: {
    revision: { type: 'integer' },
    time: { type: 'string', format: 'date-time' },
    actor: { type: 'string' },
    message: { type: ['string', 'null'] },
    request_id: { type: 'string' },
    client_address: { type: ['string', 'null'] },
    operation: { type: 'string', description: 'What was asked for, in a line.' },
    hash: { type: 'string', description: "SHA-256 of its content and of its predecessor's hash." },
    change_count: {
      type: 'integer',
      description: 'How many changes it made; a list shows the first 20 of them.',
    },
    changes: { type: 'array', items: ref('change') },
  },
}

const CHANGE_SCHEMA = {
  type: 'object',
  properties: {
    type: { type: 'string' },
    id: { type: 'string' },
    op: { type: 'string', enum: ['create', 'update', 'delete', 'restore', 'purge'] },
    before: nullableDocument,
    after: nullableDocument,
  },
}

const count = { type: 'integer', minimum: 0 }
const texts = { type: 'array', items: { type: 'string' } }
const changedField = {
  type: 'object',
  properties: {
    path: { type: 'string', description: 'JSON pointer into the input.' },
    before: {},
    after: {},
  },
}
const IMPACT_SCHEMA = {
  type: 'object',
  required: ['clusters', 'by_environment', 'endpoints', 'details'],
  properties: {
    clusters: { ...count, description: 'How many clusters receive something else.' },
    by_environment: { type: 'object', additionalProperties: count },
    endpoints: {
      type: 'object',
      additionalProperties: {
        type: 'object',
        properties: { clusters: count, added: count, removed: count, changed: count },
      },
    },
    details: {
      type: 'array',
      description: 'The first of them, ordered by cluster; impact_limit says how many.',
      items: {
        type: 'object',
        properties: {
          cluster: { type: 'string' },
          environment: { type: 'string' },
          endpoint: { type: 'string' },
          added: texts,
          removed: texts,
          changed: {
            type: 'array',
            items: {
              type: 'object',
              properties: { id: { type: 'string' }, fields: { type: 'array', items: changedField } },
            },
          },
        },
      },
    },
  },
}

const plan = { type: 'string', description: 'Digest of the changes, for a write that is to do just this.' }
const WRITTEN_SCHEMA = {
  type: 'object',
  properties: {
    revision: { type: 'integer' },
    changes: { ...count, description: 'How many documents were changed.' },
    impact: ref('impact'),
    warnings: texts,
    plan,
  },
}
const PREVIEW_SCHEMA = {
  type: 'object',
  properties: {
    dry_run: { const: true },
    base_revision: { type: 'integer' },
    change_count: { ...count, description: 'How many documents would be changed; at most 1000 are shown.' },
    changes: { type: 'array', items: ref('change') },
    impact: ref('impact'),
    warnings: texts,
    requires_confirmation: { ...texts, description: 'What the write itself has to confirm.' },
    plan,
  },
}
const VERIFICATION_SCHEMA = {
  type: 'object',
  properties: {
    verified: { type: 'boolean' },
    from: { type: 'integer' },
    to: { type: 'integer' },
    hash: { type: 'string' },
    revisions: count,
    documents: count,
    anchor: {
      type: ['object', 'null'],
      description: 'Where the log begins once older revisions were given up.',
    },
    problems: texts,
  },
}

/** Schemas that the paths above refer to. */
export const REVISION_SCHEMAS = {
  revision: REVISION_SCHEMA,
  change: CHANGE_SCHEMA,
  impact: IMPACT_SCHEMA,
  written: WRITTEN_SCHEMA,
  preview: PREVIEW_SCHEMA,
  verification: VERIFICATION_SCHEMA,
}
