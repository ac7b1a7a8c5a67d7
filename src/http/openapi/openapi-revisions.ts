// The log and the writes of many documents, in OpenAPI's words.

import { REVERT_SCHEMA } from '../../api/batch-schema.ts'
import { NDJSON } from '../../api/media-types.ts'
import { LEFT_OUT } from '../../domain/delivery/explain-input.ts'
import { OBJECTION_KINDS } from '../../domain/guards/guard.ts'
import { searchableTypes } from '../../domain/types/system-types.ts'
import type { RegisteredTypes } from '../../registry/build-types.ts'
import { batchExamples, rollbackSchema } from './openapi-batch.ts'
import {
  example,
  GOING_BACK,
  IMPACT_LIMIT,
  inHeader,
  inPath,
  inQuery,
  json,
  LOOKING_BACK,
  limit,
  type Node,
  OFFSET,
  type Operation,
  ok,
  operation,
  PLAN,
  READING,
  REVISION,
  REVISION_PAGE,
  ref,
  time,
  WHOLE,
  WRITE,
  WRITTEN_HEADERS,
} from './openapi-operation.ts'
import { requested } from './openapi-schema.ts'

export function revisionPaths(types: RegisteredTypes): Node {
  const revision = inPath('revision', 'Its number.', { ...REVISION, example: 1 })
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
          inQuery('type', 'Only those that changed a document of this type.', {
            type: 'string',
            enum: searchableTypes(types),
          }),
          text('id', 'Only those that changed a document of this id.'),
          text(
            'cluster',
            'Only those that changed this cluster, or a definition while it was assigned to it.',
          ),
          time('since', 'Only from this time on (RFC 3339).'),
          time('until', 'Only up to this time (RFC 3339).'),
          text('q', 'Only with this text in the message, the operation, the actor or the request id.'),
        ],
        answers: {
          200: {
            ...ok('Revisions with their first changes.', {}, ['X-Request-Id', 'Link']),
            content: inLines(ref('revision'), { type: 'array', items: ref('revision') }),
          },
        },
        problems: [...READING, 404],
      }),
    },
    '/revisions/verify': {
      get: operation({
        tag: 'revisions',
        id: 'verify_revisions',
        summary: 'Whether the log is whole and the documents are what it says.',
        answers: { 200: ok('What was found.', ref('verification'), ['X-Request-Id']) },
        problems: READING,
      }),
    },
    '/revisions/{revision}': {
      get: operation({
        tag: 'revisions',
        id: 'get_revision',
        summary: 'One revision with its changes, at most 1000 at a time, and what it meant for clusters.',
        parameters: [revision, limit(1000, 1000), OFFSET, IMPACT_LIMIT],
        answers: {
          200: {
            ...ok('The revision.', {}, ['X-Request-Id']),
            content: inLines(ref('revision_with_impact'), ref('revision_with_impact')),
          },
        },
        problems: LOOKING_BACK,
      }),
    },
    '/revisions/{revision}/revert': {
      post: fleetWrite('revert_revision', 'Undo what a revision did, unless it was built on since.', {
        parameters: [revision, ...WRITE],
        body: json(
          requested(REVERT_SCHEMA),
          'application/json',
          example({ message: 'it broke the ingress' }),
        ),
        bodyless: true,
      }),
    },
    '/rollback': {
      post: fleetWrite('rollback', 'Make the fleet, or a part of it, as it was.', {
        parameters: WRITE,
        body: json(
          rollbackSchema(types),
          'application/json',
          example({ to_revision: 1, message: 'back to the start' }),
        ),
      }),
    },
    '/batch': {
      post: fleetWrite('batch', 'Many changes as one revision, all of them or none.', {
        parameters: WRITE,
        body: json(ref('batch'), 'application/json', batchExamples(types)),
      }),
    },
  }
}

export function watchPath(): Node {
  const newest = 'The newest revision that the caller has; without it the stream begins now.'
  const events = {
    type: 'string',
    description:
      'Each event has the number of a revision as its id, and as its data what a list of revisions shows of it.',
  }
  return {
    '/watch': {
      get: operation({
        tag: 'revisions',
        id: 'watch_revisions',
        summary:
          'Revisions as they are made, in order and without gaps, as server-sent events; it does not end.',
        parameters: [
          inQuery('since', newest, WHOLE),
          inHeader('Last-Event-ID', 'The same, of a client that comes back; it counts more.', WHOLE),
        ],
        answers: {
          200: { ...ok('Events.', {}, ['X-Request-Id']), content: json(events, 'text/event-stream') },
        },
        problems: [...READING, 410],
      }),
    },
  }
}

export function logPath(): Node {
  return {
    '/log': {
      get: operation({
        tag: 'revisions',
        id: 'copy_log',
        summary:
          'The log after a revision as it is stored, as lines of JSON, for mirrors; only the last line says that it is whole.',
        parameters: [
          inQuery('since', 'The newest revision that the caller has; 0 for none.', WHOLE),
          inQuery('selector', 'Only the log of these clusters; of all when it is empty.', {
            type: 'string',
            format: 'label-selector',
          }),
        ],
        answers: {
          200: {
            ...ok('Lines.', {}, ['X-Request-Id', 'X-State-Age']),
            content: json({ type: 'array', items: { type: 'object' } }, NDJSON),
          },
        },
        problems: [...READING, 409],
      }),
    },
  }
}

/** As JSON, or one object on each line: like a list, to a reader of the description. */
function inLines(item: Node, whole: Node): Node {
  return { ...json(whole), ...json({ type: 'array', items: item }, NDJSON) }
}

function fleetWrite(
  id: string,
  summary: string,
  rest: Pick<Operation, 'parameters' | 'body' | 'bodyless'>,
): Node {
  const answers = {
    200: ok(
      'What was done; a preview with dry_run.',
      { anyOf: [ref('written'), ref('preview')] },
      WRITTEN_HEADERS,
    ),
  }
  return operation({ tag: 'revisions', id, summary, answers, problems: GOING_BACK, ...rest })
}

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
const texts = { type: 'array', items: { type: 'string' } }
const changedField = {
  type: 'object',
  required: ['path', 'before', 'after'],
  properties: {
    path: { type: 'string', description: 'JSON pointer into the input.' },
    before: {},
    after: {},
  },
}
const IMPACT_SCHEMA = {
  type: 'object',
  required: [
    'clusters',
    'by_environment',
    'touched',
    'joining',
    'leaving',
    'losing',
    'endpoints',
    'inputs',
    'input_count',
    'details',
  ],
  properties: {
    clusters: { ...count, description: 'How many clusters receive something else.' },
    by_environment: { type: 'object', additionalProperties: count },
    touched: {
      ...count,
      description: 'Clusters that receive something else, or whose own document changes.',
    },
    joining: { ...count, description: 'Clusters that are created or restored, with inputs or without.' },
    leaving: { ...count, description: 'Clusters that are deleted or purged, with inputs or without.' },
    losing: { ...count, description: 'Clusters that stay, and have an input removed or switched off.' },
    endpoints: {
      type: 'object',
      additionalProperties: {
        type: 'object',
        required: ['clusters', 'added', 'removed', 'changed'],
        properties: { clusters: count, added: count, removed: count, changed: count },
      },
    },
    inputs: {
      type: 'array',
      description:
        'What the clusters that stay receive differently, by input: the 100 that reach the most clusters. Counts are of clusters, and exact.',
      maxItems: 100,
      items: {
        type: 'object',
        required: ['endpoint', 'id', 'added', 'removed', 'changed', 'switched_off', 'fields'],
        properties: {
          endpoint: { type: 'string' },
          id: { type: 'string' },
          added: { ...count, description: 'Clusters that did not have it.' },
          removed: { ...count, description: 'Clusters that lose it.' },
          changed: { ...count, description: 'Clusters that receive it differently.' },
          switched_off: { ...count, description: 'Of those, how many have it switched off.' },
          fields: {
            type: 'object',
            additionalProperties: count,
            description: 'By JSON pointer into the input, how many receive another value; at most 20.',
          },
        },
      },
    },
    input_count: { ...count, description: 'How many inputs there are to count, shown or not.' },
    details: {
      type: 'array',
      description: 'The first of them, ordered by cluster; impact_limit says how many.',
      items: {
        type: 'object',
        required: ['cluster', 'environment', 'endpoint', 'added', 'removed', 'changed'],
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
              required: ['id', 'fields'],
              properties: { id: { type: 'string' }, fields: { type: 'array', items: changedField } },
            },
          },
        },
      },
    },
  },
}

const plan = {
  type: 'string',
  pattern: PLAN,
  description: 'Digest of the changes, for a write that is to do just this.',
}
const WRITTEN_SCHEMA = {
  type: 'object',
  required: ['revision', 'changes', 'impact', 'warnings', 'plan'],
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
  required: [
    'dry_run',
    'base_revision',
    'change_count',
    'changes',
    'impact',
    'warnings',
    'requires',
    'requires_confirmation',
    'plan',
  ],
  properties: {
    dry_run: { const: true },
    base_revision: { type: 'integer' },
    change_count: { ...count, description: 'How many documents would be changed; at most 1000 are shown.' },
    changes: { type: 'array', items: ref('change') },
    impact: ref('impact'),
    warnings: texts,
    requires: {
      type: 'array',
      description: 'What stands in the way of the write, with what lifts it, if anything does.',
      items: {
        type: 'object',
        required: ['kind', 'message'],
        properties: {
          kind: { type: 'string', enum: OBJECTION_KINDS, description: 'Which guard objects.' },
          reason: { type: 'string', description: 'Stays the same, whatever the message says.' },
          message: { type: 'string' },
          details: {
            type: 'array',
            items: {
              type: 'object',
              required: ['path', 'message'],
              properties: { path: { type: 'string' }, message: { type: 'string' } },
            },
          },
          lifted_by: { type: 'string', enum: ['confirm'], description: 'confirm: `confirm=removals`.' },
        },
      },
    },
    requires_confirmation: {
      ...texts,
      items: { type: 'string', enum: ['removals'] },
      description: 'What the write itself has to confirm.',
    },
    plan,
  },
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
      description: 'Where the log begins once older revisions were given up.',
    },
    problems: texts,
  },
}

const nullableText = { type: ['string', 'null'] }
const LEFT_OUT_SCHEMA = {
  type: 'array',
  minItems: 1,
  description:
    'What the value names in its document and this input does not wait for: the cluster is not assigned it, has switched it off, or gets it in a way that cannot be waited for.',
  items: {
    type: 'object',
    required: ['id', 'why'],
    properties: { id: { type: 'string' }, why: { type: 'string', enum: LEFT_OUT } },
  },
}

const EXPLANATION_SCHEMA = {
  type: 'object',
  required: ['cluster', 'endpoint', 'revision', 'inputs'],
  properties: {
    cluster: { type: 'string' },
    endpoint: { type: 'string' },
    revision: count,
    inputs: {
      type: 'array',
      items: {
        type: 'object',
        required: ['id', 'fields'],
        properties: {
          id: { type: 'string' },
          fields: {
            type: 'array',
            items: {
              type: 'object',
              required: ['path', 'value', 'source', 'document', 'revision', 'time', 'actor', 'message'],
              properties: {
                path: { type: 'string', description: 'JSON pointer into the input.' },
                value: {},
                source: { type: 'string', enum: ['catalog', 'override', 'patch', 'cluster', 'default'] },
                document: { ...nullableText, description: 'What holds the value; null for a default.' },
                revision: { type: ['integer', 'null'] },
                time: { ...nullableText, format: 'date-time' },
                actor: nullableText,
                message: nullableText,
                left_out: LEFT_OUT_SCHEMA,
              },
            },
          },
        },
      },
    },
  },
}

/** Schemas that the paths above refer to. */
export const REVISION_SCHEMAS = {
  revision: REVISION_SCHEMA,
  revision_with_impact: {
    ...REVISION_SCHEMA,
    required: [...REVISION_SCHEMA.required, 'impact'],
    properties: { ...REVISION_SCHEMA.properties, impact: ref('impact') },
  },
  explanation: EXPLANATION_SCHEMA,
  change: CHANGE_SCHEMA,
  impact: IMPACT_SCHEMA,
  written: WRITTEN_SCHEMA,
  preview: PREVIEW_SCHEMA,
  verification: VERIFICATION_SCHEMA,
}
