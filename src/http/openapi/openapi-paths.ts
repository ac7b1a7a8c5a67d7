// The paths of the API, in OpenAPI's words.
import { JSON_PATCH, MERGE_PATCH, NDJSON } from '../../api/media-types.ts'
import type { JsonObject } from '../../base/json.ts'
import type { SchemaObject } from '../../base/json-schema.ts'
import { withArticle } from '../../base/sentences.ts'
import { POLL_BASE } from '../../base/urls.ts'
import { type InputField, WRITE_METHODS } from '../../domain/types/resource-type.ts'
import type { RegisteredDelivery, RegisteredType, RegisteredTypes } from '../../registry/build-types.ts'
import { schemaOf } from '../../registry/validator.ts'
import {
  exampleChange,
  exampleDocument,
  exampleId,
  exampleOverride,
  exampleValues,
} from './openapi-example.ts'
import {
  AT,
  CREATING,
  example,
  IF_ABSENT,
  IF_CHANGED,
  IF_MATCH,
  inPath,
  inQuery,
  json,
  LOOKING_BACK,
  limit,
  NOT_MODIFIED,
  type Node,
  OFFSET,
  type Operation,
  ok,
  operation,
  READING,
  READING_ONE,
  REVISION_PAGE,
  ref,
  SELECTOR,
  schemaName,
  WRITE,
  WRITING,
  WRITTEN_HEADERS,
} from './openapi-operation.ts'
import { jsonPatchBody, published } from './openapi-schema.ts'

/** The same schema under both names of a merge patch. */
function mergePatch(schema: Node, value: JsonObject): Node {
  return {
    ...json(schema, 'application/json', example(value)),
    ...json(schema, MERGE_PATCH, example(value)),
  }
}

function jsonPatch(value: JsonObject): Node {
  const operations = Object.entries(value).map(([name, field]) => ({
    op: 'add',
    path: `/${name}`,
    value: field,
  }))
  return json(jsonPatchBody(), JSON_PATCH, example(operations))
}

/** The answer to a poll. */
export function inputs(types: RegisteredTypes, type: RegisteredDelivery): Node {
  return {
    type: 'object',
    required: ['inputs'],
    properties: { inputs: { type: 'array', items: inputOf(types, type) } },
  }
}

/** One input: what is always there, and what is where something was said. */
function inputOf({ cluster }: RegisteredTypes, type: RegisteredDelivery): Node {
  const own = type.schema.properties ?? {}
  const references = type.referenceSchema?.properties ?? {}
  const schemaFor = (source: string): SchemaObject => published(own[source] ?? references[source] ?? {})
  const isSure = (source: string): boolean =>
    source === 'id' ||
    (type.schema.required?.includes(source) ?? false) ||
    (own[source] ?? references[source])?.default !== undefined
  const group = (sources: readonly string[]): Node => ({
    type: 'object',
    required: sources.filter(isSure),
    properties: Object.fromEntries(sources.map((source) => [source, schemaFor(source)])),
  })
  const describe = (field: InputField): Node => {
    if (field.kind === 'value') return schemaFor(field.source)
    if (field.kind === 'group') return group(field.sources)
    if (field.kind === 'patches') return { type: 'object', additionalProperties: { type: 'string' } }
    const names = cluster.input.map(([name]) => name)
    return {
      type: 'object',
      required: names,
      properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
    }
  }
  const { input } = type.delivery
  const sure = input.filter((field) => field.kind !== 'value' || isSure(field.source))
  return {
    type: 'object',
    required: ['id', ...sure.map(({ name }) => name)],
    properties: {
      id: { type: 'string' },
      ...Object.fromEntries(input.map((field) => [field.name, describe(field)])),
    },
  }
}

function clusterList({ cluster }: RegisteredTypes): Node {
  const names = ['id', ...cluster.list]
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]))
  const inputs = { type: 'array', items: { type: 'object', required: names, properties } }
  return { type: 'object', required: ['inputs'], properties: { inputs } }
}

export function pollPaths(types: RegisteredTypes): Node {
  const cluster = types.get(types.cluster.type.name) as RegisteredType
  const { example: name } = cluster.schema.properties?.[types.cluster.dns] ?? {}
  const dns = inPath('dns', 'DNS name of the cluster; case and a trailing dot do not matter.', {
    type: 'string',
    ...(name !== undefined && { example: name }),
  })
  const answers = (schema: Node): Operation['answers'] => ({
    200: ok('Inputs for the Flux Operator.', schema, ['ETag']),
    304: NOT_MODIFIED,
  })
  return {
    [POLL_BASE]: {
      get: operation({
        tag: 'polls',
        id: 'poll_clusters',
        summary: 'All live clusters, for the provisioning layer.',
        parameters: [limit(Number.MAX_SAFE_INTEGER), OFFSET, IF_CHANGED, ...filterParameters(cluster)],
        answers: answers(clusterList(types)),
        problems: READING,
      }),
    },
    ...Object.fromEntries(
      types.delivered.map((type) => [
        `${POLL_BASE}/{dns}/${type.delivery.endpoint}`,
        {
          get: operation({
            tag: 'polls',
            id: `poll_${type.name}`,
            summary: `What a cluster gets of ${type.name}; an empty list if it has none or is deleted.`,
            parameters: [dns, IF_CHANGED],
            answers: answers(ref(`${schemaName(type)}_inputs`)),
            problems: READING_ONE,
          }),
        },
      ]),
    ),
  }
}

function filterParameters({ filters }: RegisteredType): Node[] {
  return filters.map(({ name, description = '', schema }) => inQuery(name, description, schema))
}

/** What a write answers: the document, or a preview when it was asked for. */
function written(schema: Node, { created = false } = {}): Operation['answers'] {
  return {
    200: ok('The document; a preview with dry_run.', { anyOf: [schema, ref('preview')] }, WRITTEN_HEADERS),
    ...(created && {
      201: ok('The new document.', schema, [...WRITTEN_HEADERS, 'ETag', 'Location']),
    }),
  }
}

function idOf(type: RegisteredType): SchemaObject {
  const { description: _description, ...schema } = type.schema.properties?.id ?? {}
  return published({ ...schema, example: exampleId(type) })
}

/** Without the methods that the type has no routes for. */
function allowed({ methods }: RegisteredType, path: Node): Node {
  const left = WRITE_METHODS.filter((method) => !methods.has(method))
  return Object.fromEntries(Object.entries(path).filter(([name]) => !left.some((method) => method === name)))
}

export function documentPaths(types: RegisteredTypes, type: RegisteredType): Node {
  const { name, singular, file } = type
  const one = withArticle(singular)
  const document = ref(schemaName(type))
  const said = (level: string, method: string, otherwise: string): string =>
    file.descriptions?.[level]?.[method] ?? otherwise
  const id = inPath('id', file.schema.key.description ?? 'Id.', idOf(type))
  const isCluster = type === types.cluster.type
  const flag = isCluster
    ? inQuery(
        'purge',
        'Leaves no tombstone, and revokes the tokens of the cluster: polls with them are then 401, others 404.',
        { type: 'boolean' },
      )
    : inQuery('cascade', 'Also removes every reference to it.', { type: 'boolean' })
  const patch = ref(`${schemaName(type)}_to_merge`)
  const { id: _id, ...fields } = exampleDocument(types, type) ?? {}
  const change = exampleChange(types, type)
  return {
    [`/${name}`]: allowed(type, {
      get: operation({
        tag: name,
        id: `list_${name}`,
        summary: said('resource', 'get', `List ${name}.`),
        parameters: [
          limit(5000, 1000),
          OFFSET,
          AT,
          ...(isCluster ? [SELECTOR] : []),
          ...filterParameters(type),
        ],
        answers: {
          200: ok(
            'Documents ordered by id; X-Total-Count and Link tell of the rest.',
            { type: 'array', items: document },
            ['X-Request-Id', 'X-Total-Count', 'Link', ...(isCluster ? ['Warning'] : [])],
          ),
        },
        problems: [...READING, 410],
      }),
      post: operation({
        tag: name,
        id: `create_${name}`,
        summary: said('resource', 'post', `Create ${one}.`),
        parameters: [...WRITE],
        body: json(
          ref(`${schemaName(type)}_to_create`),
          'application/json',
          example(exampleDocument(types, type)),
        ),
        answers: {
          200: ok('A preview with dry_run.', ref('preview'), WRITTEN_HEADERS),
          201: ok('The new document.', document, [...WRITTEN_HEADERS, 'ETag', 'Location']),
        },
        problems: CREATING,
      }),
    }),
    [`/${name}/{id}`]: allowed(type, {
      parameters: [id],
      get: operation({
        tag: name,
        id: `get_${name}`,
        summary: said('instance', 'get', `Get ${one}.`),
        parameters: [AT, IF_CHANGED],
        answers: {
          200: ok('The document, with its ETag.', document, ['X-Request-Id', 'ETag']),
          304: NOT_MODIFIED,
        },
        problems: LOOKING_BACK,
      }),
      put: operation({
        tag: name,
        id: `replace_${name}`,
        summary: said('instance', 'put', `Replace ${one}.`),
        parameters: [IF_MATCH, IF_ABSENT, ...WRITE],
        body: json(ref(`${schemaName(type)}_to_replace`), 'application/json', example(fields)),
        answers: written(document, { created: true }),
        problems: WRITING,
      }),
      patch: operation({
        tag: name,
        id: `patch_${name}`,
        summary: said('instance', 'patch', `Change some fields of ${one}.`),
        parameters: [IF_MATCH, ...WRITE],
        body: { ...mergePatch(patch, change), ...jsonPatch(change) },
        answers: written(document),
        problems: WRITING,
      }),
      delete: operation({
        tag: name,
        id: `delete_${name}`,
        summary: said('instance', 'delete', `Delete ${one}.`),
        parameters: [flag, IF_MATCH, ...WRITE],
        answers: written(document),
        problems: WRITING,
      }),
    }),
    [`/${name}/{id}/history`]: {
      get: operation({
        tag: name,
        id: `history_${name}`,
        summary: `The revisions that changed ${one}, newest first.`,
        // Of what was never there, a later page is empty.
        parameters: [
          inPath('id', 'Id, also of one that is gone.', { type: 'string', example: exampleId(type) }),
          ...REVISION_PAGE,
        ],
        answers: {
          200: {
            ...ok('Revisions, each with its change of this document.', {}, ['X-Request-Id', 'Link']),
            content: {
              ...json({ type: 'array', items: ref('revision') }),
              ...json({ type: 'array', items: ref('revision') }, NDJSON),
            },
          },
        },
        problems: READING_ONE,
      }),
    },
  }
}

function restorePath(type: RegisteredType, cluster: Node): Node {
  return {
    [`/${type.name}/{cluster}/restore`]: {
      post: operation({
        tag: type.name,
        id: `restore_${type.name}`,
        summary:
          'Bring a deleted cluster back as it was; warnings tell which of its definitions are not what they were.',
        parameters: [cluster, ...WRITE],
        answers: written(ref(schemaName(type))),
        problems: WRITING,
      }),
    },
  }
}

export function clusterPaths(types: RegisteredTypes): Node {
  const type = types.get(types.cluster.type.name) as RegisteredType
  const { name } = type
  const cluster = inPath('cluster', 'Id of the cluster.', idOf(type))
  const assignments = types.delivered.map((other) => assignmentPath(type, other))
  const patchable = types.delivered.find(({ delivery }) => delivery.patches)
  const secret = { type: 'string', ...schemaOf('dns-subdomain') }
  return {
    ...(type.methods.has('delete') && restorePath(type, cluster)),
    [`/${name}/{cluster}/bootstrap`]: {
      get: operation({
        tag: name,
        id: `bootstrap_${name}`,
        summary: 'What the cluster applies once to phone home: manifests, as a stream of YAML.',
        parameters: [
          cluster,
          inQuery('flavor', 'With the URLs of this cluster, or the same for every cluster.', {
            type: 'string',
            enum: ['concrete', 'identity'],
            default: 'concrete',
          }),
          inQuery('interval', 'How often each provider polls, from 1s to 24h.', {
            type: 'string',
            pattern: '^(?:[0-9]{1,5}[hms])+$',
            default: '5m',
          }),
          inQuery(
            'api_url',
            'Where clusters reach the service, such as https://fleet.example.com; EXTERNAL_URL when nothing is said.',
            {
              type: 'string',
              pattern: '^\\s*[Hh][Tt][Tt][Pp][Ss]?:',
            },
          ),
          inQuery('token_secret', 'A Secret that is there already and holds the token.', secret),
          inQuery('cert_secret', 'A Secret with a certificate for the connection.', secret),
          inQuery('flux_instance', 'Whether Flux itself is installed.', { type: 'boolean', default: true }),
        ],
        answers: {
          200: {
            ...ok('The manifests, several documents in one stream.', {}, ['X-Request-Id', 'Warning']),
            content: { 'application/yaml': {} },
          },
        },
        problems: READING_ONE,
      }),
    },
    [`/${name}/{cluster}/inputs/{endpoint}`]: {
      get: operation({
        tag: name,
        id: `inputs_${name}`,
        summary: 'What the cluster gets when it polls.',
        parameters: [
          cluster,
          inPath('endpoint', 'Last segment of the poll URL.', {
            type: 'string',
            enum: types.delivered.map(({ delivery }) => delivery.endpoint),
          }),
          AT,
          IF_CHANGED,
          inQuery('explain', 'Answers where every field comes from and who set it.', { type: 'boolean' }),
        ],
        answers: {
          200: ok(
            'The very answer to its poll; with explain, where its fields come from.',
            {
              anyOf: [
                ...types.delivered.map((other) => ref(`${schemaName(other)}_inputs`)),
                ref('explanation'),
              ],
            },
            ['X-Request-Id'],
          ),
          304: NOT_MODIFIED,
        },
        problems: LOOKING_BACK,
      }),
    },
    ...Object.assign({}, ...assignments),
    ...(patchable ? patchesPath(types, patchable, cluster) : {}),
  }
}

function assignmentPath(cluster: RegisteredType, type: RegisteredDelivery): Node {
  const reference = ref(`${schemaName(type)}_reference`)
  const list = type.delivery.assignedBy
  const patch = ref(`${schemaName(type)}_reference_to_merge`)
  const one = withArticle(type.singular)
  const override = exampleOverride(type)
  const verb = (
    id: string,
    summary: string,
    rest: Pick<Operation, 'body' | 'bodyless' | 'answers' | 'parameters' | 'problems'>,
  ): Node => operation({ tag: cluster.name, id: `${id}_${type.name}`, summary, ...rest })
  const write = { parameters: [IF_MATCH, ...WRITE], problems: WRITING }
  return {
    [`/${cluster.name}/{cluster}/${list}/{id}`]: {
      parameters: [
        inPath('cluster', 'Id of the cluster.', idOf(cluster)),
        inPath('id', `Id of the ${type.singular}.`, idOf(type)),
      ],
      get: verb('get_assigned', `How ${one} is assigned.`, {
        parameters: [AT],
        answers: { 200: ok('The reference.', reference, ['X-Request-Id', 'ETag']) },
        problems: LOOKING_BACK,
      }),
      put: verb('assign', `Assign ${one}, or replace how it is assigned.`, {
        ...write,
        body: json(ref(`${schemaName(type)}_reference_to_replace`), 'application/json', example(override)),
        bodyless: true,
        answers: written(reference, { created: true }),
      }),
      patch: verb('override', `Change how ${one} is assigned.`, {
        ...write,
        body: mergePatch(patch, override),
        answers: written(reference),
      }),
      delete: verb('unassign', `Take ${one} from the cluster.`, {
        ...write,
        answers: written(reference),
      }),
    },
  }
}

function patchesPath(types: RegisteredTypes, patchable: RegisteredType, cluster: Node): Node {
  const { type, patches } = types.cluster
  const answer = ref('values')
  const verb = (
    id: string,
    summary: string,
    rest: Pick<Operation, 'answers' | 'body' | 'parameters' | 'problems'>,
  ): Node => operation({ tag: type.name, id: `${id}_patches`, summary, ...rest })
  const write = { parameters: [IF_MATCH, ...WRITE], answers: written(answer), problems: WRITING }
  const values = exampleValues(types)
  const body = json(ref('values_to_merge'), 'application/json', example(values))
  return {
    [`/${type.name}/{cluster}/${patches}/{id}`]: {
      parameters: [cluster, inPath('id', `Id of the ${patchable.singular}.`, idOf(patchable))],
      get: verb('get', "The cluster's values for one of its components.", {
        parameters: [AT],
        answers: { 200: ok('The values.', answer, ['X-Request-Id', 'ETag']) },
        problems: LOOKING_BACK,
      }),
      put: verb('replace', 'Replace the values.', { ...write, body }),
      patch: verb('change', 'Set some values; null removes one.', {
        ...write,
        body: mergePatch(ref('values_to_merge'), values),
      }),
      delete: verb('delete', 'Remove all the values.', write),
    },
  }
}

export function operationPaths(): Node {
  const open = (
    id: string,
    summary: string,
    description: string,
    schema: Node,
    { type = 'application/json', problems = [] }: { type?: string; problems?: readonly number[] } = {},
  ): Node => ({
    get: operation({
      tag: 'operations',
      id,
      summary,
      open: true,
      answers: { 200: { ...ok(description, schema, ['X-Request-Id']), content: json(schema, type) } },
      problems,
    }),
  })
  const probe = (properties: Record<string, SchemaObject>): Node => ({
    type: 'object',
    required: Object.keys(properties),
    properties,
  })
  const health = probe({ status: { const: 'ok' } })
  const state = {
    mode: { type: 'string', enum: ['read-only', 'crud'] },
    revision: { type: 'integer', minimum: 0 },
  }
  const ready = {
    oneOf: [
      probe({ status: { const: 'ready' }, ...state }),
      probe({
        status: { const: 'degraded' },
        ...state,
        age_seconds: { type: 'integer', minimum: 0, description: 'How long ago nothing was missing here.' },
        reason: { type: 'string', description: 'Why the store cannot be followed.' },
      }),
    ],
  }
  const yaml = { type: 'application/yaml' }
  return {
    '/health': open('health', 'Whether the process lives.', 'It does.', health),
    '/ready': open(
      'ready',
      'Whether it can serve; 503 with the reason when not.',
      'It can; degraded while it cannot follow its store, and answers polls with what it has.',
      ready,
      { problems: [503] },
    ),
    '/metrics': open(
      'metrics',
      'Metrics for Prometheus.',
      'Metrics.',
      { type: 'string' },
      { type: 'text/plain' },
    ),
    '/openapi.json': open('openapi_json', 'This description as JSON.', 'OpenAPI 3.1.', { type: 'object' }),
    '/openapi.yaml': open(
      'openapi_yaml',
      'This description as YAML.',
      'OpenAPI 3.1.',
      { type: 'object' },
      yaml,
    ),
  }
}
