// The API described in OpenAPI 3.1, from the types and the routes there are: what they gain, the description gains.

import { ref } from '../../api/component-ref.ts'
import { IMPACT_SCHEMA } from '../../api/impact-schema.ts'
import { KEPT_FIELD_SCHEMA } from '../../api/own-values-schema.ts'
import { REASON_TEXTS } from '../../api/problem-reasons.ts'
import { CHANGE_SCHEMA } from '../../api/revision-schema.ts'
import { PREVIEW_SCHEMA } from '../../api/write-schema.ts'
import { discoveryUrl } from '../../base/oidc-discovery.ts'
import { PROBLEM_CODES, REASONS } from '../../base/problem.ts'
import type { RegisteredType, RegisteredTypes } from '../../registry/build-types.ts'
import { describeTypes } from '../../registry/describe-types.ts'
import type { Route } from '../route.ts'
import type { Login } from '../service.ts'
import { HEADERS, type Node, schemaName } from './openapi-operation.ts'
import { buildPaths, describedRoutes } from './openapi-paths.ts'
import { problemResponses } from './openapi-problems.ts'
import { answeredSchemas } from './openapi-types.ts'

export interface OpenapiOptions {
  readonly login?: Login | undefined
  readonly version: string
}

export function buildOpenapi(
  types: RegisteredTypes,
  routes: readonly Route[],
  { version, login }: OpenapiOptions,
): Node {
  const described = describedRoutes(routes)
  return {
    openapi: '3.1.0',
    info: {
      title: 'flux-resourceset',
      version,
      description:
        'The desired state of a fleet of Kubernetes clusters, polled by the Flux Operator of each of them. Where the service is set up for them, client certificates do instead of a token.',
      contact: { name: 'The maintainers of flux-resourceset' },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ bearer_auth: [] }, { basic_auth: [] }, ...(login ? [{ oidc: [] }] : [])],
    tags: tagsOf(types, new Set(described.map(({ tag }) => tag))),
    'x-flux-types': linkSchemas(types),
    paths: buildPaths(described),
    components: {
      securitySchemes: securitySchemes(login),
      schemas: {
        ...Object.assign({}, ...types.all.map((type) => answeredSchemas(types, type))),
        error: ERROR_SCHEMA,
        impact: IMPACT_SCHEMA,
        // Every write returns a preview for a dry run.
        ...(described.some(({ method }) => method !== 'GET') && {
          change: CHANGE_SCHEMA,
          preview: PREVIEW_SCHEMA,
          kept_field: KEPT_FIELD_SCHEMA,
        }),
        ...Object.assign({}, ...described.map(({ schemas }) => schemas)),
      },
      headers: HEADERS,
      responses: problemResponses(),
    },
  }
}

/** Tags; those of types only where the type has routes. */
function tagsOf(types: RegisteredTypes, used: ReadonlySet<string>): Node[] {
  return [
    { name: 'polls', description: 'Requests of clusters.' },
    ...types.all
      .filter(({ name }) => used.has(name))
      .map(({ name, file }) => ({ name, description: file.metadata?.description ?? name })),
    { name: 'revisions', description: 'The log: actor, time, message and changes.' },
    { name: 'rollouts', description: 'Changes that reach the fleet wave by wave.' },
    { name: 'status', description: 'Status of clusters: served, applied, health.' },
    { name: 'tokens', description: 'Identity, tokens and roles.' },
    { name: 'operations', description: 'Probes, metrics and this description.' },
  ]
}

function securitySchemes(login: Login | undefined): Node {
  return {
    bearer_auth: { type: 'http', scheme: 'bearer' },
    basic_auth: {
      type: 'http',
      scheme: 'basic',
      description: 'The token as password, with any user name.',
    },
    ...(login && {
      oidc: {
        type: 'openIdConnect',
        openIdConnectUrl: discoveryUrl(login.issuer),
        'x-client-id': login.clientId,
      },
    }),
  }
}

/** With references to schemas in the place of schemas. */
function linkSchemas(types: RegisteredTypes): Node[] {
  return describeTypes(types).map((noun, i) => {
    const name = schemaName(types.all[i] as RegisteredType)
    const { delivery } = noun
    return {
      ...noun,
      schema: ref(name),
      ...(delivery && { delivery: { ...delivery, reference: ref(`${name}_reference`) } }),
    }
  })
}

const REASON_NAMES = [...new Set(Object.values(REASONS).flat())]
/** What a reason means; one that several codes have means the same for all of them. */
const MEANINGS = new Map(
  Object.values(REASON_TEXTS).flatMap((texts) =>
    Object.entries(texts).map(([name, { meaning }]): [string, string] => [name, meaning]),
  ),
)

const ERROR_SCHEMA = {
  type: 'object',
  required: ['error', 'message'],
  properties: {
    error: {
      type: 'string',
      enum: PROBLEM_CODES,
      description: 'A code that stays the same.',
      example: 'validation_error',
    },
    reason: {
      type: 'string',
      enum: REASON_NAMES,
      'x-enum-descriptions': REASON_NAMES.map((name) => MEANINGS.get(name)),
      description: 'Which of the refusals with this code it is, where that is known. Every conflict has one.',
      example: 'unknown_reference',
    },
    message: { type: 'string', description: 'The problem and its solution, for people.' },
    details: {
      type: 'array',
      items: {
        type: 'object',
        required: ['path', 'message'],
        properties: {
          path: { type: 'string', description: 'JSON pointer into what was sent.' },
          message: { type: 'string' },
        },
      },
    },
    impact: {
      ...ref('impact'),
      description: 'The impact that a destructive_change would have had on clusters.',
    },
    next_open: {
      type: 'string',
      format: 'date-time',
      description: 'When the freezes that cover it end, where that is known.',
    },
  },
}
