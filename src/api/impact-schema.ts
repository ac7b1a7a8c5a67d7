// The shape of an impact on the wire: what clusters receive differently.
import type { SchemaObject } from '../base/json-schema.ts'

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
export const IMPACT_SCHEMA: SchemaObject = {
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
        'Differences for the clusters that stay, by input: the 100 that reach the most clusters. Counts are of clusters, and exact.',
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
          switched_off: { ...count, description: 'How many of those have it switched off.' },
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
