// The shape of an explanation on the wire: where the fields of a cluster's inputs come from.
import type { SchemaObject } from '../base/json-schema.ts'
import { LEFT_OUT } from '../domain/delivery/explain-input.ts'

const count = { type: 'integer', minimum: 0 }
const nullableText = { type: ['string', 'null'] }
const LEFT_OUT_SCHEMA = {
  type: 'array',
  minItems: 1,
  description:
    'Dependencies that this input does not wait for: not assigned, switched off, or delivered in a way that cannot be waited for.',
  items: {
    type: 'object',
    required: ['id', 'why'],
    properties: { id: { type: 'string' }, why: { type: 'string', enum: LEFT_OUT } },
  },
}

export const EXPLANATION_SCHEMA: SchemaObject = {
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
                document: {
                  ...nullableText,
                  description: 'The document that holds the value; null for a default.',
                },
                revision: { type: ['integer', 'null'] },
                time: { ...nullableText, format: 'date-time' },
                actor: nullableText,
                message: nullableText,
                rollout: {
                  type: 'string',
                  description:
                    'The rollout that the value comes from, where the document itself holds another one; revision, time, actor and message are those of the step that opened it for the cluster.',
                },
                held: {
                  type: 'boolean',
                  const: true,
                  description:
                    'That the value is the one that the cluster is held at, and the document holds another one since.',
                },
                left_out: LEFT_OUT_SCHEMA,
              },
            },
          },
        },
      },
    },
  },
}
