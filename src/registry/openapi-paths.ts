// The paths of the API, in OpenAPI's words.
import { POLL_BASE } from '../domain/base-url.ts'
import type { RegisteredType, RegisteredTypes } from './build-types.ts'
import {
  AT,
  IF_MATCH,
  inHeader,
  inPath,
  inQuery,
  json,
  LIMIT,
  type Node,
  OFFSET,
  type Operation,
  ok,
  operation,
  REVISION_PAGE,
  ref,
  SELECTOR,
  schemaName,
  WRITE,
} from './openapi-operation.ts'

function inputs(type: RegisteredType): Node {
  return {
    type: 'object',
    required: ['inputs'],
    properties: {
      inputs: {
        type: 'array',
        description: `Of each assigned ${type.singular}: ${['id', ...(type.delivery?.input.map(({ name }) => name) ?? [])].join(', ')}.`,
        items: {
          type: 'object',
          required: ['id', 'cluster'],
          properties: { id: { type: 'string' } },
          additionalProperties: true,
        },
      },
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
  const dns = inPath('dns', 'DNS name of the cluster; case and a trailing dot do not matter.')
  const cluster = types.get(types.cluster.type.name) as RegisteredType
  const delivered = types.all.filter((type) => type.delivery)
  return {
    [POLL_BASE]: {
      get: operation({
        tag: 'polls',
        id: 'poll_clusters',
        summary: 'All live clusters, for the provisioning layer.',
        parameters: [LIMIT, OFFSET, ...filterParameters(cluster)],
        answers: { 200: ok('Inputs for the Flux Operator.', clusterList(types)) },
      }),
    },
    ...Object.fromEntries(
      delivered.map((type) => [
        `${POLL_BASE}/{dns}/${type.delivery?.endpoint}`,
        {
          get: operation({
            tag: 'polls',
            id: `poll_${type.name}`,
            summary: `What a cluster gets of ${type.name}; an empty list once the cluster is deleted.`,
            parameters: [dns],
            answers: { 200: ok('Inputs for the Flux Operator.', inputs(type)) },
          }),
        },
      ]),
    ),
  }
}

function filterParameters({ filters }: RegisteredType): Node[] {
  return filters.map(({ name, description = '', schema }) => inQuery(name, description, schema))
}

export function documentPaths(types: RegisteredTypes, type: RegisteredType): Node {
  const { name, singular, file } = type
  const document = ref(schemaName(type))
  const said = (level: string, method: string, otherwise: string): string =>
    file.descriptions?.[level]?.[method] ?? otherwise
  const id = inPath('id', file.schema.key.description ?? 'Id.')
  const isCluster = type === types.cluster.type
  const flag = isCluster
    ? inQuery('purge', 'Leaves no tombstone: polls then answer 404.', { type: 'boolean' })
    : inQuery('cascade', 'Also removes every reference to it.', { type: 'boolean' })
  return {
    [`/${name}`]: {
      get: operation({
        tag: name,
        id: `list_${name}`,
        summary: said('resource', 'get', `List ${name}.`),
        parameters: [LIMIT, OFFSET, AT, ...(isCluster ? [SELECTOR] : []), ...filterParameters(type)],
        answers: {
          200: ok('Documents ordered by id; X-Total-Count and Link tell of the rest.', {
            type: 'array',
            items: document,
          }),
        },
      }),
      post: operation({
        tag: name,
        id: `create_${name}`,
        summary: said('resource', 'post', `Create a ${singular}.`),
        parameters: [...WRITE],
        body: json(document),
        answers: { 201: ok('The new document.', document) },
      }),
    },
    [`/${name}/{id}`]: {
      parameters: [id],
      get: operation({
        tag: name,
        id: `get_${name}`,
        summary: said('instance', 'get', `Get a ${singular}.`),
        parameters: [AT],
        answers: { 200: ok('The document, with its ETag.', document) },
      }),
      put: operation({
        tag: name,
        id: `replace_${name}`,
        summary: said('instance', 'put', `Replace a ${singular}.`),
        parameters: [IF_MATCH, inHeader('If-None-Match', 'Set to * to create the document.'), ...WRITE],
        body: json(document),
        answers: { 200: ok('The document.', document), 201: ok('The new document.', document) },
      }),
      patch: operation({
        tag: name,
        id: `patch_${name}`,
        summary: said('instance', 'patch', `Change some fields of a ${singular}.`),
        parameters: [IF_MATCH, ...WRITE],
        body: {
          ...json({ type: 'object' }),
          ...json({ type: 'object' }, 'application/merge-patch+json'),
          ...json({ type: 'array', items: { type: 'object' } }, 'application/json-patch+json'),
        },
        answers: { 200: ok('The document.', document) },
      }),
      delete: operation({
        tag: name,
        id: `delete_${name}`,
        summary: said('instance', 'delete', `Delete a ${singular}.`),
        parameters: [flag, IF_MATCH, ...WRITE],
        answers: { 200: ok('What was deleted.', document) },
      }),
    },
    [`/${name}/{id}/history`]: {
      get: operation({
        tag: name,
        id: `history_${name}`,
        summary: `The revisions that changed a ${singular}, newest first.`,
        parameters: [id, ...REVISION_PAGE],
        answers: {
          200: ok('Revisions, each with its change of this document.', {
            type: 'array',
            items: ref('revision'),
          }),
        },
      }),
    },
  }
}

export function clusterPaths(types: RegisteredTypes): Node {
  const type = types.get(types.cluster.type.name) as RegisteredType
  const { name } = type
  const cluster = inPath('cluster', 'Id of the cluster.')
  const document = ref(schemaName(type))
  const assignments = types.all.flatMap((other) => (other.delivery ? [assignmentPath(type, other)] : []))
  return {
    [`/${name}/{cluster}/restore`]: {
      post: operation({
        tag: name,
        id: `restore_${name}`,
        summary: 'Bring a deleted cluster back as it was.',
        parameters: [cluster, ...WRITE],
        answers: { 200: ok('The cluster.', document) },
      }),
    },
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
          inQuery('interval', 'How often each provider polls.', { type: 'string', default: '5m' }),
          inQuery('api_url', 'Where clusters reach the service; EXTERNAL_URL when nothing is said.'),
          inQuery('token_secret', 'A Secret that is there already and holds the token.'),
          inQuery('cert_secret', 'A Secret with a certificate for the connection.'),
          inQuery('flux_instance', 'Whether Flux itself is installed.', { type: 'boolean', default: true }),
        ],
        answers: {
          200: { description: 'The manifests.', content: json({ type: 'string' }, 'application/yaml') },
        },
      }),
    },
    [`/${name}/{cluster}/inputs/{endpoint}`]: {
      get: operation({
        tag: name,
        id: `inputs_${name}`,
        summary: 'What the cluster gets when it polls.',
        parameters: [
          cluster,
          inPath('endpoint', 'Last segment of the poll URL.'),
          AT,
          inQuery('explain', 'Answers where every field comes from and who set it.', { type: 'boolean' }),
        ],
        answers: { 200: ok('The very answer to its poll.', { type: 'object', additionalProperties: true }) },
      }),
    },
    ...Object.assign({}, ...assignments),
    ...(types.patchable ? patchesPath(types, cluster) : {}),
  }
}

function assignmentPath(cluster: RegisteredType, type: RegisteredType): Node {
  const reference = ref(`${schemaName(type)}_reference`)
  const list = type.delivery?.assignedBy
  const verb = (
    id: string,
    summary: string,
    rest: Pick<Operation, 'body' | 'answers' | 'parameters'>,
  ): Node => operation({ tag: cluster.name, id: `${id}_${type.name}`, summary, ...rest })
  const write = { parameters: [IF_MATCH, ...WRITE] }
  return {
    [`/${cluster.name}/{cluster}/${list}/{id}`]: {
      parameters: [inPath('cluster', 'Id of the cluster.'), inPath('id', `Id of the ${type.singular}.`)],
      get: verb('get_assigned', `How a ${type.singular} is assigned.`, {
        parameters: [AT],
        answers: { 200: ok('The reference.', reference) },
      }),
      put: verb('assign', `Assign a ${type.singular}, or replace how it is assigned.`, {
        ...write,
        body: json(reference),
        answers: { 200: ok('The reference.', reference), 201: ok('The new reference.', reference) },
      }),
      patch: verb('override', `Change how a ${type.singular} is assigned.`, {
        ...write,
        body: json({ type: 'object' }, 'application/merge-patch+json'),
        answers: { 200: ok('The reference.', reference) },
      }),
      delete: verb('unassign', `Take a ${type.singular} from the cluster.`, {
        ...write,
        answers: { 200: ok('The reference as it was.', reference) },
      }),
    },
  }
}

function patchesPath(types: RegisteredTypes, cluster: Node): Node {
  const { type, patches } = types.cluster
  const values = { type: 'object', additionalProperties: { type: 'string' } }
  const answers = { 200: ok('The values.', values) }
  const verb = (id: string, summary: string, rest: Pick<Operation, 'body' | 'parameters'>): Node =>
    operation({ tag: type.name, id: `${id}_patches`, summary, answers, ...rest })
  const write = { parameters: [IF_MATCH, ...WRITE] }
  return {
    [`/${type.name}/{cluster}/${patches}/{id}`]: {
      parameters: [cluster, inPath('id', `Id of the ${types.patchable?.singular}.`)],
      get: verb('get', "The cluster's values for one of its components.", { parameters: [AT] }),
      put: verb('replace', 'Replace the values.', { ...write, body: json(values) }),
      patch: verb('change', 'Set some values; null removes one.', {
        ...write,
        body: json({ type: 'object' }, 'application/merge-patch+json'),
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
    type = 'application/json',
    schema: Node = { type: 'object' },
  ): Node => ({
    get: operation({
      tag: 'operations',
      id,
      summary,
      open: true,
      answers: { 200: { description, content: json(schema, type) } },
    }),
  })
  return {
    '/health': open('health', 'Whether the process lives.', 'It does.'),
    '/ready': open('ready', 'Whether it can serve; 503 with the reason when not.', 'It can.'),
    '/metrics': open('metrics', 'Metrics for Prometheus.', 'Metrics.', 'text/plain', { type: 'string' }),
    '/openapi.json': open('openapi_json', 'This description as JSON.', 'OpenAPI 3.1.'),
    '/openapi.yaml': open('openapi_yaml', 'This description as YAML.', 'OpenAPI 3.1.', 'application/yaml', {
      type: 'string',
    }),
  }
}
