// The shape of responses to writes on the wire: what was done to the fleet, and previews.

import type { SchemaObject } from '../base/json-schema.ts'
import { CONFIRMATIONS, OBJECTION_KINDS } from '../domain/guards/guard.ts'
import { ref } from './component-ref.ts'
import { CHANGES_IN_PREVIEW, PLAN_PATTERN } from './limits.ts'
import { PLANNED_WAVE_SCHEMA } from './rollout-schema.ts'

const count = { type: 'integer', minimum: 0 }
const texts = { type: 'array', items: { type: 'string' } }
const plan = {
  type: 'string',
  pattern: PLAN_PATTERN,
  description: 'Digest of the changes, for a write that is to do just this.',
}
export const WRITTEN_SCHEMA: SchemaObject = {
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
export const PREVIEW_SCHEMA: SchemaObject = {
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
    change_count: {
      ...count,
      description: `How many documents would be changed; at most ${CHANGES_IN_PREVIEW} are shown.`,
    },
    changes: { type: 'array', items: ref('change') },
    impact: ref('impact'),
    warnings: texts,
    requires: {
      type: 'array',
      description: 'Objections to the write, each with the way to lift it, if there is one.',
      items: {
        type: 'object',
        required: ['kind', 'message'],
        properties: {
          kind: { type: 'string', enum: OBJECTION_KINDS, description: 'Which guard objects.' },
          reason: { type: 'string', description: 'Stays the same when the message changes.' },
          message: { type: 'string' },
          details: {
            type: 'array',
            items: {
              type: 'object',
              required: ['path', 'message'],
              properties: { path: { type: 'string' }, message: { type: 'string' } },
            },
          },
          lifted_by: {
            type: 'string',
            enum: ['confirm', 'bypass'],
            description: 'confirm: what `requires_confirmation` lists; bypass: `bypass=true` with a message.',
          },
          next_open: {
            type: 'string',
            format: 'date-time',
            description: 'When the freeze ends, where that is known.',
          },
        },
      },
    },
    requires_confirmation: {
      ...texts,
      items: { type: 'string', enum: CONFIRMATIONS },
      description: 'Confirmations that the write itself needs.',
    },
    plan,
    waves: {
      type: 'array',
      items: PLANNED_WAVE_SCHEMA,
      description: 'The waves of a rollout, with their members.',
    },
    expected_duration_s: {
      ...count,
      description: 'Shortest duration of a rollout, by the intervals of its clusters and the soaks.',
    },
    kept_overrides: {
      type: 'array',
      items: ref('kept_field'),
      description:
        'Fields that are changed in the catalog, and clusters that keep a value of their own for them.',
    },
  },
}
