// The shape of tokens on the wire.

import type { SchemaObject } from '../base/json-schema.ts'
import { ROLE_MEANINGS, ROLES } from '../domain/access/grant.ts'
import { DEFAULT_GRACE } from '../domain/access/token.ts'

const time = { type: 'string', format: 'date-time' }
const granted = {
  role: {
    type: 'string',
    enum: ROLES,
    description: ROLES.map((role) => `The role ${role} ${ROLE_MEANINGS[role]}.`).join(' '),
  },
  cluster: {
    type: 'string',
    description: 'The id of the cluster, for the role cluster.',
    example: 'us-east-prod-01',
  },
  selector: {
    type: 'string',
    description:
      'Limits an editor to changes that touch matching clusters only. Limits a mirror to these clusters.',
    example: 'environment in (dev,qa)',
  },
  types: {
    type: 'array',
    items: { type: 'string' },
    minItems: 1,
    uniqueItems: true,
    description: 'Limits an editor to these types.',
  },
}
const name = {
  type: 'string',
  description: 'Unique; the audit shows it as the actor.',
  example: 'ci-team-a',
}
const expires_at = { ...time, description: 'From then on it is no token any more; never when left out.' }

export const NEW_TOKEN_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['name', 'role'],
  properties: { name, ...granted, expires_at },
  additionalProperties: false,
}

const grace = {
  type: 'string',
  default: DEFAULT_GRACE,
  description: 'How long earlier secrets stay valid: 0s for not at all, 90d at most.',
  example: DEFAULT_GRACE,
}

export const ROTATION_SCHEMA: SchemaObject = {
  type: 'object',
  properties: { grace },
  additionalProperties: false,
}

export const ISSUE_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['clusters'],
  properties: {
    clusters: {
      type: 'array',
      items: { type: 'string' },
      minItems: 1,
      uniqueItems: true,
      description: 'The ids of the clusters.',
      example: ['us-east-prod-01'],
    },
    grace,
  },
  additionalProperties: false,
}

export const TOKEN_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['id', 'name', 'role', 'created_at', 'created_by', 'last_used_at', 'last_used_from'],
  properties: {
    id: { type: 'string' },
    name,
    ...granted,
    created_at: time,
    created_by: { type: 'string', description: 'Its creator, as the audit names them.' },
    expires_at,
    rotated_at: { ...time, description: 'When its secret was last replaced.' },
    old_secrets_expire_at: {
      ...time,
      description: 'When the last of the earlier secrets stops being valid.',
    },
    last_used_at: { type: ['string', 'null'], format: 'date-time', description: 'To the minute.' },
    last_used_from: { type: ['string', 'null'], description: 'The address that used it last.' },
    valid_secrets: {
      type: 'integer',
      description: 'How many of its secrets are valid now: earlier ones are until their grace is over.',
    },
  },
}

const SECRET = { type: 'string', pattern: '^frs_[0-9A-Za-z]{49}$' }

export const ISSUED_TOKEN_SCHEMA: SchemaObject = {
  ...TOKEN_SCHEMA,
  properties: {
    ...TOKEN_SCHEMA.properties,
    secret: {
      ...SECRET,
      description: 'Shown this once. An answer that is repeated for an Idempotency-Key does not hold it.',
    },
  },
}

export const ISSUED_TOKENS_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['revision'],
  properties: {
    revision: { type: 'integer' },
    tokens: {
      type: 'array',
      description:
        'In the order of the request, shown this once: an answer that is repeated for an Idempotency-Key does not hold them.',
      items: {
        type: 'object',
        required: ['cluster', 'name', 'secret'],
        properties: { cluster: { type: 'string' }, name, secret: SECRET },
      },
    },
  },
}

export const IDENTITY_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['name', 'via', 'role'],
  properties: {
    name: { type: 'string', description: 'Your name in the audit.' },
    via: { type: 'string', enum: ['environment', 'token', 'certificate', 'oidc'] },
    ...granted,
    expires_at,
  },
}
