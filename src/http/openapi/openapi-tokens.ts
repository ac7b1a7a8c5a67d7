// Tokens and identities, in OpenAPI's words.

import {
  IDENTITY_SCHEMA,
  ISSUED_TOKEN_SCHEMA,
  NEW_TOKEN_SCHEMA,
  ROTATION_SCHEMA,
  TOKEN_SCHEMA,
} from '../../api/token-schema.ts'
import { ROLE_MEANINGS, ROLES, SCOPES } from '../../domain/access/grant.ts'
import { DEFAULT_GRACE, TOKEN_NAME } from '../../domain/access/token.ts'
import type { RegisteredType, RegisteredTypes } from '../../registry/build-types.ts'
import { exampleId } from './openapi-example.ts'
import {
  type Examples,
  example,
  IF_MATCH,
  inPath,
  inQuery,
  json,
  limit,
  type Node,
  OFFSET,
  ok,
  operation,
  READING,
  READING_ONE,
  ref,
  WRITE,
  WRITING,
  WRITTEN_HEADERS,
} from './openapi-operation.ts'
import { byValue, every, lacks, needs } from './openapi-rules.ts'
import { requested } from './openapi-schema.ts'

export function tokenPaths(types: RegisteredTypes): Node {
  const id = inPath('id', 'Its id, or its name.', { type: 'string', example: EXAMPLE_NAME })
  const preview = 'a preview with dry_run'
  return {
    '/tokens': {
      get: operation({
        tag: 'tokens',
        id: 'list_tokens',
        summary: 'Tokens, ordered by name, never with their secrets. For admins.',
        parameters: [
          limit(5000, 1000),
          OFFSET,
          inQuery('name', 'Only the one of this name.'),
          inQuery('role', 'Only those of this role.', { type: 'string', enum: ROLES }),
          inQuery('cluster', 'Only those of this cluster.'),
        ],
        answers: {
          200: ok('Tokens.', { type: 'array', items: ref('token') }, [
            'X-Request-Id',
            'X-Total-Count',
            'Link',
          ]),
        },
        problems: READING,
      }),
      post: operation({
        tag: 'tokens',
        id: 'create_token',
        summary: 'Create a token. For admins.',
        parameters: [...WRITE],
        body: json(newTokenSchema(types), 'application/json', tokenExamples(types)),
        answers: {
          200: ok('A preview with dry_run.', ref('preview'), WRITTEN_HEADERS),
          201: ok('The token with its secret, which is shown this once.', ref('issued_token'), [
            ...WRITTEN_HEADERS,
            'Location',
            'ETag',
          ]),
        },
        problems: WRITING,
      }),
    },
    '/tokens/{id}': {
      parameters: [id],
      get: operation({
        tag: 'tokens',
        id: 'get_token',
        summary: 'One token, without its secret. For admins.',
        answers: { 200: ok('The token.', ref('token'), ['X-Request-Id', 'ETag']) },
        problems: READING_ONE,
      }),
      delete: operation({
        tag: 'tokens',
        id: 'revoke_token',
        summary: 'Revoke a token: it is good for nothing from then on. For admins.',
        parameters: [IF_MATCH, ...WRITE],
        answers: {
          200: ok(
            `What was revoked; ${preview}.`,
            { anyOf: [ref('token'), ref('preview')] },
            WRITTEN_HEADERS,
          ),
        },
        problems: WRITING,
      }),
    },
    '/tokens/{id}/rotate': {
      post: operation({
        tag: 'tokens',
        id: 'rotate_token',
        summary: 'Give a token a new secret; earlier ones stay valid for a while. For admins.',
        parameters: [id, IF_MATCH, ...WRITE],
        body: json(rotationSchema(), 'application/json', example({ grace: DEFAULT_GRACE })),
        bodyless: true,
        answers: {
          200: ok(
            `The token with its secret, which is shown this once; ${preview}.`,
            { anyOf: [ref('issued_token'), ref('preview')] },
            WRITTEN_HEADERS,
          ),
        },
        problems: WRITING,
      }),
    },
  }
}

const EXAMPLE_NAME = 'ci-team-a'
const NAME = { pattern: TOKEN_NAME.source }
const DURATION = { pattern: '^(?:[0-9]{1,6}[dhms])+$' }

function rotationSchema(): Node {
  const { properties = {}, ...rest } = ROTATION_SCHEMA
  const { default: usual, ...grace } = { ...properties.grace, ...DURATION }
  return {
    ...rest,
    properties: { grace: { ...grace, description: `${grace.description} Default: ${usual}.` } },
  }
}

/** With what each role takes. */
function newTokenSchema(types: RegisteredTypes): Node {
  const { properties = {}, ...rest } = requested(NEW_TOKEN_SCHEMA)
  const { name, types: chosen } = properties
  const names = types.all.map((type) => type.name)
  const rules = ROLES.map((role) => {
    const scopes = ['cluster', 'selector', 'types'].filter(
      (field) => !SCOPES[role].some((one) => one === field),
    )
    return { values: [role], rule: every(lacks(...scopes), role === 'cluster' ? needs('cluster') : {}) }
  })
  return {
    ...rest,
    properties: {
      ...properties,
      name: { ...name, ...NAME },
      types: { ...chosen, items: { type: 'string', enum: names } },
    },
    ...byValue('role', rules),
  }
}

/** One for each role. */
function tokenExamples(types: RegisteredTypes): Examples {
  const cluster = types.get(types.cluster.type.name) as RegisteredType
  const values = { cluster: exampleId(cluster), selector: 'environment in (dev,qa)', types: [cluster.name] }
  const examples = Object.fromEntries(
    ROLES.map((role) => {
      const scope = Object.fromEntries(SCOPES[role].map((field) => [field, values[field]]))
      return [
        role,
        { summary: `${role} ${ROLE_MEANINGS[role]}`, value: { name: EXAMPLE_NAME, role, ...scope } },
      ]
    }),
  )
  return { examples }
}

export function whoamiPath(): Node {
  return {
    '/whoami': {
      get: operation({
        tag: 'tokens',
        id: 'whoami',
        summary: 'Who the service takes you for, and what you may do.',
        answers: { 200: ok('You.', ref('identity'), ['X-Request-Id']) },
        problems: READING,
      }),
    },
  }
}

/** Schemas that the paths above refer to. */
export const TOKEN_SCHEMAS = {
  token: TOKEN_SCHEMA,
  issued_token: ISSUED_TOKEN_SCHEMA,
  identity: IDENTITY_SCHEMA,
}
