// The API described in OpenAPI 3.1, made from the types: what a type gains, its description gains.

import type { SchemaObject } from '../../base/json-schema.ts'
import { PROBLEM_CODES, REASONS } from '../../base/problem.ts'
import type { RegisteredDelivery, RegisteredType, RegisteredTypes } from '../../registry/build-types.ts'
import { describeTypes } from '../../registry/describe-types.ts'
import { batchSchemas } from './openapi-batch.ts'
import { exampleDocument, exampleId, exampleOverride } from './openapi-example.ts'
import { HEADERS, MIN_REVISION, type Node, ref, schemaName } from './openapi-operation.ts'
import { clusterPaths, documentPaths, inputs, operationPaths, pollPaths } from './openapi-paths.ts'
import { problemResponses } from './openapi-problems.ts'
import { logPath, REVISION_SCHEMAS, revisionPaths, watchPath } from './openapi-revisions.ts'
import { jsonPatchSchemas, merged, published, sent, without } from './openapi-schema.ts'
import { TOKEN_SCHEMAS, tokenPaths, whoamiPath } from './openapi-tokens.ts'

/** Of the OIDC issuer, for those who log in on a command line. */
export interface Login {
  readonly issuer: string
  readonly clientId: string
}

export interface OpenapiOptions {
  readonly login?: Login | undefined
  readonly version: string
  readonly mode: 'read-only' | 'crud'
}

export function buildOpenapi(types: RegisteredTypes, { version, mode, login }: OpenapiOptions): Node {
  const crud = mode === 'crud'
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
    tags: [
      { name: 'polls', description: 'What clusters ask for.' },
      ...(crud
        ? types.all.map(({ name, file }) => ({ name, description: file.metadata?.description ?? name }))
        : []),
      { name: 'revisions', description: 'Who changed what, when and why.' },
      { name: 'tokens', description: 'Who may come in, and what they may do.' },
      { name: 'operations', description: 'Probes, metrics and this description.' },
    ],
    'x-flux-types': linkSchemas(types),
    paths: withMinRevision({
      ...pollPaths(types),
      ...(crud ? Object.assign({}, ...types.all.map((type) => documentPaths(types, type))) : {}),
      ...(crud ? clusterPaths(types) : {}),
      ...(crud ? revisionPaths(types) : {}),
      ...watchPath(),
      ...logPath(),
      ...(crud ? tokenPaths(types) : {}),
      ...whoamiPath(),
      ...operationPaths(),
    }),
    components: {
      securitySchemes: {
        bearer_auth: { type: 'http', scheme: 'bearer' },
        basic_auth: {
          type: 'http',
          scheme: 'basic',
          description: 'The token as password, with any user name.',
        },
        ...(login && {
          oidc: {
            type: 'openIdConnect',
            openIdConnectUrl: `${login.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
            'x-client-id': login.clientId,
          },
        }),
      },
      schemas: {
        ...Object.fromEntries(types.all.flatMap((type) => typeSchemas(types, type, crud))),
        ...Object.fromEntries(
          types.delivered.map((type) => [`${schemaName(type)}_inputs`, inputs(types, type)]),
        ),
        ...(crud && { ...jsonPatchSchemas(), ...valueSchemas(types), ...batchSchemas(types) }),
        error: ERROR_SCHEMA,
        ...(crud ? REVISION_SCHEMAS : { impact: REVISION_SCHEMAS.impact }),
        ...TOKEN_SCHEMAS,
      },
      headers: HEADERS,
      responses: problemResponses(),
    },
  }
}

/** Whatever is read can be asked for as of after a write. */
function withMinRevision(paths: Node): Node {
  const read = Object.entries(
    paths as Record<string, { get?: Node & { security?: unknown; parameters?: Node[] } }>,
  )
  return Object.fromEntries(
    read.map(([path, { get, ...rest }]) => {
      if (!get || get.security) return [path, { ...(get && { get }), ...rest }]
      return [path, { get: { ...get, parameters: [...(get.parameters ?? []), MIN_REVISION] }, ...rest }]
    }),
  )
}

/** A document and a reference, as they are answered and as they are sent. */
function typeSchemas(
  types: RegisteredTypes,
  type: RegisteredType,
  crud: boolean,
): [name: string, schema: Node][] {
  const name = schemaName(type)
  const { schema, referenceSchema: reference } = type
  const document = exampleDocument(types, type)
  const answered: [string, Node][] = [
    [
      name,
      {
        ...linked(types, type, published(schema), 'reference'),
        ...(document && { example: type.normalise(document) }),
      },
    ],
    ...(reference
      ? [
          [
            `${name}_reference`,
            {
              ...published(reference),
              example: { id: exampleId(type), ...exampleOverride(type as RegisteredDelivery) },
            },
          ] as [string, Node],
        ]
      : []),
  ]
  if (!crud) return answered
  const created = linked(types, type, sent(schema), 'reference_to_assign')
  return [
    ...answered,
    [`${name}_to_create`, created],
    [`${name}_to_replace`, without(created, 'id')],
    [`${name}_to_merge`, linked(types, type, merged(schema), 'reference_to_assign')],
    ...(reference
      ? ([
          [`${name}_reference_to_assign`, sent(reference)],
          [`${name}_reference_to_replace`, without(sent(reference), 'id')],
          [`${name}_reference_to_merge`, merged(reference)],
        ] as [string, Node][])
      : []),
  ]
}

/** The lists of a cluster refer to the schemas of references, so that clients have one type for each. */
function linked(
  { cluster, delivered }: RegisteredTypes,
  type: RegisteredType,
  schema: SchemaObject,
  kind: string,
): SchemaObject {
  if (type !== cluster.type) return schema
  const lists = delivered.map((other) => {
    const list = other.delivery.assignedBy
    return [list, { ...schema.properties?.[list], items: ref(`${schemaName(other)}_${kind}`) }]
  })
  return { ...schema, properties: { ...schema.properties, ...Object.fromEntries(lists) } }
}

/** A cluster's values for one of its components. */
function valueSchemas({ cluster, patchable, get }: RegisteredTypes): Node {
  const patches = get(cluster.type.name)?.schema.properties?.[cluster.patches]
  const values = patches?.additionalProperties
  return patchable && typeof values === 'object'
    ? { values: published(values), values_to_merge: merged(values) }
    : {}
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
      enum: [...new Set(Object.values(REASONS).flat())],
      description: 'Which of the refusals with this code it is, where that is known. Every conflict has one.',
      example: 'unknown_reference',
    },
    message: { type: 'string', description: 'What is wrong and what would be right, for people.' },
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
      description: 'Of a destructive_change: what it would have meant for clusters.',
    },
  },
}
