// Tokens and identities, in OpenAPI's words.
import { ROLES } from '../domain/grant.ts'
import {
  inPath,
  inQuery,
  json,
  LIMIT,
  type Node,
  OFFSET,
  ok,
  operation,
  ref,
  WRITE,
} from './openapi-operation.ts'
import {
  IDENTITY_SCHEMA,
  ISSUED_TOKEN_SCHEMA,
  NEW_TOKEN_SCHEMA,
  ROTATION_SCHEMA,
  TOKEN_SCHEMA,
} from './token-schema.ts'

export function tokenPaths(): Node {
  const id = inPath('id', 'Its id, or its name.')
  const issued = ok('The token with its secret, which is shown this once; a preview with dry_run.', {
    anyOf: [ref('issued_token'), ref('preview')],
  })
  return {
    '/tokens': {
      get: operation({
        tag: 'tokens',
        id: 'list_tokens',
        summary: 'Tokens, ordered by name, never with their secrets. For admins.',
        parameters: [
          LIMIT,
          OFFSET,
          inQuery('name', 'Only the one of this name.'),
          inQuery('role', 'Only those of this role.', { type: 'string', enum: ROLES }),
          inQuery('cluster', 'Only those of this cluster.'),
        ],
        answers: { 200: ok('Tokens.', { type: 'array', items: ref('token') }) },
      }),
      post: operation({
        tag: 'tokens',
        id: 'create_token',
        summary: 'Create a token. For admins.',
        parameters: [...WRITE],
        body: json(NEW_TOKEN_SCHEMA as Node),
        answers: { 200: issued, 201: issued },
      }),
    },
    '/tokens/{id}': {
      parameters: [id],
      get: operation({
        tag: 'tokens',
        id: 'get_token',
        summary: 'One token, without its secret. For admins.',
        answers: { 200: ok('The token.', ref('token')) },
      }),
      delete: operation({
        tag: 'tokens',
        id: 'revoke_token',
        summary: 'Revoke a token: it is good for nothing from then on. For admins.',
        parameters: [...WRITE],
        answers: { 200: ok('What was revoked; a preview with dry_run.', { type: 'object' }) },
      }),
    },
    '/tokens/{id}/rotate': {
      post: operation({
        tag: 'tokens',
        id: 'rotate_token',
        summary: 'Give a token a new secret; earlier ones stay valid for a while. For admins.',
        parameters: [id, ...WRITE],
        body: json(ROTATION_SCHEMA as Node),
        bodyIsOptional: true,
        answers: { 200: issued },
      }),
    },
  }
}

export function whoamiPath(): Node {
  return {
    '/whoami': {
      get: operation({
        tag: 'tokens',
        id: 'whoami',
        summary: 'Who the service takes you for, and what you may do.',
        answers: { 200: ok('You.', ref('identity')) },
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
