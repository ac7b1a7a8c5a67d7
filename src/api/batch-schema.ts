// The shape of a batch and of a rollback on the wire.

import type { SchemaObject } from '../base/json-schema.ts'
import { MAX_SELECTOR } from '../domain/access/selector.ts'
import { MAX_OPERATIONS } from '../domain/commands/parse-batch.ts'
import { MAX_IMPACT_DETAILS, MAX_MESSAGE } from './limits.ts'

const id = { type: 'string', minLength: 1, description: 'Id of the document.' }
const type = { type: 'string', description: 'Name of the type, such as platform_components.' }
/** Ids in one list, at most; a selector can choose more clusters. */
const MAX_IDS = 100_000
const clusters = {
  type: 'array',
  items: { type: 'string' },
  minItems: 1,
  maxItems: MAX_IDS,
  uniqueItems: true,
  description: 'Ids of the clusters.',
}
const selector = {
  type: 'string',
  maxLength: MAX_SELECTOR,
  description: 'Label selector over labels, id, cluster_name, cluster_dns, environment and uses.<type>.',
  example: 'environment in (dev,qa), region=eu',
}
const allow_empty = { type: 'boolean', description: 'A selector that matches nothing is not an error.' }
const if_revision = {
  type: 'integer',
  minimum: 1,
  description: 'Only when the document is still at this revision.',
}
const object = { type: 'object' }
const targets = { clusters, selector, allow_empty }

function operation(properties: Record<string, SchemaObject>, required: readonly string[]): SchemaObject {
  return {
    type: 'object',
    required: ['op', ...required],
    properties: { op: { type: 'string' }, ...properties },
    additionalProperties: false,
  }
}

/** What each operation takes. */
export const OPERATIONS: Readonly<Record<string, SchemaObject>> = {
  create: operation({ type, document: object }, ['type', 'document']),
  replace: operation({ type, id, document: object, if_revision }, ['type', 'id', 'document']),
  patch: operation({ type, id, ...targets, patch: { type: ['object', 'array'] }, if_revision }, [
    'type',
    'patch',
  ]),
  delete: operation(
    { type, id, ...targets, cascade: { type: 'boolean' }, purge: { type: 'boolean' }, if_revision },
    ['type'],
  ),
  restore: operation({ type, id, clusters }, ['type']),
  assign: operation(
    { type, ref: object, merge: { type: 'boolean' }, ensure: { type: 'boolean' }, ...targets },
    ['type', 'ref'],
  ),
  unassign: operation({ type, id, ...targets }, ['type', 'id']),
  patch_values: operation({ component: id, values: object, replace: { type: 'boolean' }, ...targets }, [
    'component',
    'values',
  ]),
}

const plan = {
  type: 'string',
  description: 'The digest that a preview answered: do exactly that or nothing.',
}
/** Fields that every write of several documents takes, whatever it changes. */
const writing = {
  message: {
    type: 'string',
    maxLength: MAX_MESSAGE,
    description: 'Why the change is made; kept with its revision.',
  },
  bypass: {
    type: 'boolean',
    description:
      'Writes what a rollout holds or a freeze covers all the same. It needs the permission, and a message that says why.',
  },
  dry_run: { type: 'boolean', description: 'Answers what would happen, and stores nothing.' },
  plan,
  confirm: {
    type: 'array',
    items: { type: 'string', enum: ['removals', 'finish'] },
    description:
      'The word removals confirms a write that takes inputs from many clusters, or the last of a type from one. The word finish confirms the finish of a rollout with waves that are not through.',
  },
  impact_limit: {
    type: 'integer',
    minimum: 0,
    maximum: MAX_IMPACT_DETAILS,
    description: 'How many details of the impact.',
  },
  rollout: {
    type: 'object',
    description:
      'Makes the change reach its clusters wave by wave: the name of a strategy, or the fields of one. supersedes names a rollout to abort in the same revision.',
  },
}

export const BATCH_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['operations'],
  properties: {
    operations: { type: 'array', minItems: 1, maxItems: MAX_OPERATIONS, items: object },
    allow_empty,
    ...writing,
  },
  additionalProperties: false,
}

export const REVERT_SCHEMA: SchemaObject = {
  type: 'object',
  properties: writing,
  additionalProperties: false,
}

export const ROLLBACK_SCHEMA: SchemaObject = {
  type: 'object',
  properties: {
    to_revision: { type: 'integer', minimum: 0, description: 'Make it as it was at this revision.' },
    to_time: { type: 'string', format: 'date-time', description: 'Make it as it was at this time.' },
    selector,
    types: { type: 'array', items: { type: 'string' }, minItems: 1, uniqueItems: true },
    ids: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: MAX_IDS, uniqueItems: true },
    allow_empty,
    ...writing,
  },
  additionalProperties: false,
}
