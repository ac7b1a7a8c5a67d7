// What the description of the API says of requests: generators can read it, it is neither more nor less than what is
// taken, and every example of it works.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { OPERATIONS } from '../src/api/batch-schema.ts'
import type { Json, JsonObject } from '../src/base/json.ts'
import { ROLES } from '../src/domain/access/grant.ts'
import { STATUS } from '../src/http/request/problem-response.ts'
import type { RegisteredTypes } from '../src/registry/build-types.ts'
import { measure } from '../tools/prose/measure.ts'
import {
  type Answer,
  builtInTypes,
  RESOURCES,
  smallFleet,
  startService,
  type TestService,
  temporaryFolder,
} from './service.ts'

const POLICIES = join(import.meta.dirname, '../examples/network-policies')

/** A type whose file has not one example, and refers to another. */
const BARE_TYPE = `
kind: quotas
apiVersion: v1
schema:
  key: { name: id }
  x-flux: { endpoint: quotas, assigned_by: quotas, references: { tier: tiers, others: quotas }, overrides: [pods], input: [pods, tier] }
  items:
    type: object
    required: [tier, pods, host, kind, limits, since, text]
    properties:
      tier: { type: string }
      pods: { type: integer, minimum: 5 }
      host: { type: string, format: hostname }
      kind: { type: string, enum: [hard, soft] }
      limits: { type: array, minItems: 1, items: { type: object, required: [name], properties: { name: { type: string, minLength: 9 } } } }
      since: { type: string, format: date-time }
      text: { type: string, maxLength: 10 }
      others: { type: array, items: { type: string } }
      share: { type: number, default: 0.5 }
`
const TIERS = `
kind: tiers
apiVersion: v1
schema:
  key: { name: id, schema: { type: string, format: dns-label } }
  items: { type: object, properties: { text: { type: string } } }
`
/** Nobody could tell what the code looks like: there is no example of it, and no wrong one either. */
const CODES = `
kind: codes
apiVersion: v1
schema:
  key: { name: id }
  items: { type: object, required: [code], properties: { code: { type: string, pattern: '^[A-Z]{3}-[0-9]{5}$' } } }
`

function bareTypes(t: TestContext, ...files: string[]): RegisteredTypes {
  const folder = temporaryFolder(t)
  for (const [i, text] of files.entries()) writeFileSync(join(folder, `${i}.yaml`), text)
  return builtInTypes(folder)
}

interface Schema {
  readonly [keyword: string]: unknown
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly schema: { readonly example?: unknown; readonly enum?: readonly unknown[] }
}

interface Media {
  readonly schema: Schema
  readonly example?: Json
  readonly examples?: Readonly<Record<string, { readonly value: Json }>>
}

interface Operation {
  readonly operationId: string
  readonly description?: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> }
}

interface Described extends Operation {
  readonly path: string
  readonly method: string
}

interface Description {
  // biome-ignore lint/suspicious/noExplicitAny: tests look into the description freely
  readonly document: any
  readonly operations: readonly Described[]
}

async function describeApi(service: TestService): Promise<Description> {
  const { body: document } = await service.call('GET', '/openapi.json')
  const items = Object.entries(document.paths as Record<string, Record<string, Operation>>)
  const operations = items.flatMap(([path, { parameters = [], ...methods }]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      path,
      method: method.toUpperCase(),
      parameters: [...(parameters as readonly Parameter[]), ...(operation.parameters ?? [])],
    })),
  )
  return { document, operations }
}

/** Every schema that a request is made of, by where it is, each once. */
function requestSchemas({ document, operations }: Description): Map<string, Schema> {
  const found = new Map<string, Schema>()
  const visit = (at: string, schema: unknown): void => {
    if (Array.isArray(schema)) for (const [i, each] of schema.entries()) visit(`${at}/${i}`, each)
    if (typeof schema !== 'object' || schema === null || Array.isArray(schema) || found.has(at)) return
    found.set(at, schema as Schema)
    const { $ref: link, properties = {}, ...rest } = schema as Schema & { $ref?: string }
    const name = link?.replace('#/components/schemas/', '')
    if (name) visit(name, document.components.schemas[name])
    for (const [key, child] of Object.entries(properties)) visit(`${at}/properties/${key}`, child)
    for (const keyword of ['items', 'additionalProperties', 'allOf', 'anyOf', 'oneOf', 'if', 'then', 'else'])
      visit(`${at}/${keyword}`, rest[keyword])
  }
  for (const { operationId, requestBody } of operations)
    for (const [type, { schema }] of Object.entries(requestBody?.content ?? {}))
      visit(`${operationId} ${type}`, schema)
  return found
}

describe('generators understand what may be sent', () => {
  test('for no field has a default that would make it required, or that stands beside null', async () => {
    const found = requestSchemas(await describeApi(await startService({ types: builtInTypes(POLICIES) })))
    assert.ok(found.has('cluster_to_create/properties/labels') && found.has('network_policy_to_merge'))
    const named = [...found].filter(([, schema]) => 'default' in schema).map(([at]) => at)
    assert.deepEqual(named, [])
  })

  test('for what is left out takes a default that the description of the field tells', async () => {
    const { document } = await describeApi(await startService())
    const {
      cluster,
      cluster_to_create: sent,
      platform_component_reference_to_assign: reference,
    } = document.components.schemas
    assert.deepEqual(cluster.properties.labels.default, {})
    assert.match(sent.properties.labels.description, / Default: \{\}\.$/)
    assert.match(sent.properties.deletion_protection.description, / Default: false\.$/)
    assert.match(reference.properties.enabled.description, / Default: true\.$/)
  })

  test('for no object takes nothing but nulls, and none has a schema that is a mere true or false', async () => {
    const found = requestSchemas(await describeApi(await startService({ types: builtInTypes(POLICIES) })))
    for (const [at, { properties = {}, additionalProperties: others, patternProperties }] of found) {
      assert.notDeepEqual((others as Schema | undefined)?.type, 'null', at)
      assert.equal(patternProperties, undefined, at)
      for (const child of Object.values(properties)) assert.equal(typeof child, 'object', at)
    }
  })

  test('for a body is one object: only operations differ, and their op tells which it is', async () => {
    const description = await describeApi(await startService({ types: builtInTypes(POLICIES) }))
    const { schemas } = description.document.components
    // What is under `then` and `else` are rules, not types.
    const chosen = [...requestSchemas(description)].filter(([at]) => !/\/(?:if|then|else)(?:\/|$)/.test(at))
    const unions = chosen.filter(([, schema]) => 'oneOf' in schema).map(([at]) => at)
    assert.deepEqual(unions.toSorted(), ['batch_operation', 'json_patch_operation'])
    const { propertyName, mapping } = schemas.batch_operation.discriminator
    assert.equal(propertyName, 'op')
    assert.deepEqual(Object.keys(mapping), Object.keys(OPERATIONS))
    for (const [op, link] of Object.entries<string>(mapping)) {
      const { properties, required } = schemas[link.replace('#/components/schemas/', '')]
      assert.deepEqual([properties.op, required[0]], [{ type: 'string', const: op }, 'op'])
    }
  })

  test('for the lists of a cluster have the same type as what is assigned one by one', async () => {
    const { document } = await describeApi(await startService({ types: builtInTypes(POLICIES) }))
    const { cluster, cluster_to_create, cluster_to_merge } = document.components.schemas
    for (const [schema, name] of [
      [cluster, 'network_policy_reference'],
      [cluster_to_create, 'network_policy_reference_to_assign'],
      [cluster_to_merge, 'network_policy_reference_to_assign'],
    ]) {
      const { items } = schema.properties.network_policies
      assert.deepEqual(items, { $ref: `#/components/schemas/${name}` })
    }
  })
})

// What is described is what is taken.

function compile({ document }: Description, pointer: string): ValidateFunction {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema(document, 'openapi')
  return ajv.compile({ $ref: `openapi#${pointer}` })
}

/** Every choice of some of the fields. */
function subsetsOf(fields: JsonObject): JsonObject[] {
  const [first, ...rest] = Object.entries(fields)
  if (!first) return [{}]
  return subsetsOf(Object.fromEntries(rest)).flatMap((some) => [some, { [first[0]]: first[1], ...some }])
}

test('a token is described as it is taken, for every role with every choice of limits', async () => {
  const service = await startService()
  const description = await describeApi(service)
  const validate = compile(description, '/paths/~1tokens/post/requestBody/content/application~1json/schema')
  const limits = { cluster: 'one', selector: 'environment=dev', types: ['clusters'] }
  const taken = new Set<string>()
  for (const role of ROLES)
    for (const limit of subsetsOf(limits)) {
      const body = { name: 'ci', role, ...limit }
      const { status } = await service.call('POST', '/tokens?dry_run=true', { body })
      assert.ok(status === 200 || status === 400)
      assert.equal(validate(body), status === 200, JSON.stringify(body))
      if (status === 200) taken.add(role)
    }
  assert.deepEqual([...taken], [...ROLES])
  assert.ok(!validate({ name: 'ci', role: 'root' }) && !validate({ role: 'viewer' }))
})

test('an operation of a batch is described as it is taken, for every type and every way to name its targets', async () => {
  const service = await startService({ fleet: { ...smallFleet(), applied_sets: [{ id: 'set' }] } })
  const description = await describeApi(service)
  const validate = compile(description, '/components/schemas/batch')
  const document = { ...(await service.call('GET', '/namespaces/team-a')).body, id: 'team-a' }
  const ids = {
    clusters: 'one',
    namespaces: 'team-a',
    applied_sets: 'set',
    nonsense: 'x',
  }
  const payloads = (id: string): Record<string, JsonObject[]> => ({
    create: [{ document }, {}],
    replace: [{ document }, { document, if_revision: 1 }],
    patch: [{ patch: {} }, { patch: [] }, { patch: {}, if_revision: 1 }, { patch: { documents: {} } }],
    delete: subsetsOf({ cascade: true, purge: true, if_revision: 1 }),
    restore: [{}],
    assign: subsetsOf({ merge: true, ensure: true }).map((how) => ({ ref: { id }, ...how })),
    unassign: [{}],
    patch_values: [{ component: 'a', values: { x: '1', y: null } }, { values: {} }],
  })
  assert.deepEqual(Object.keys(payloads('')), Object.keys(OPERATIONS))
  let taken = 0
  for (const op of Object.keys(OPERATIONS))
    for (const [type, id] of Object.entries(ids))
      for (const payload of payloads(id)[op] ?? [])
        for (const way of subsetsOf({ id, clusters: ['one'], selector: 'id=one' })) {
          const typed = op === 'patch_values' ? {} : { type }
          const body = { operations: [{ op, ...typed, ...payload, ...way }], allow_empty: true }
          const answer = await service.call('POST', '/batch?dry_run=true', { body })
          const isRefused = answer.status === 400
          assert.equal(validate(body), !isRefused, `${JSON.stringify(body)}: ${answer.text}`)
          taken += Number(!isRefused)
        }
  assert.ok(taken > 50, String(taken))
})

test('a rollback is described as it is taken, to a revision or a time, of a part or of all', async () => {
  const service = await startService()
  const description = await describeApi(service)
  const validate = compile(description, '/paths/~1rollback/post/requestBody/content/application~1json/schema')
  const now = new Date().toISOString()
  for (const types of [{}, { types: ['clusters'] }, { types: ['namespaces'] }, { types: ['nonsense'] }])
    for (const some of subsetsOf({ to_revision: 1, to_time: now, selector: 'environment=dev' })) {
      const body = { ...some, ...types, allow_empty: true }
      const { status, text } = await service.call('POST', '/rollback?dry_run=true', { body })
      assert.equal(validate(body), status !== 400, `${JSON.stringify(body)}: ${text}`)
    }
})

// Examples.

function fill({ path, parameters = [] }: Described): string {
  return path.replaceAll(/\{(\w+)\}/g, (_match, name) => {
    const { schema } = parameters.find((each) => each.in === 'path' && each.name === name) as Parameter
    const value = schema.example ?? schema.enum?.[0]
    assert.ok(value !== undefined, `${path} has no example of its ${name}`)
    return encodeURIComponent(String(value))
  })
}

interface Example {
  readonly operation: Described
  readonly name: string
  readonly type: string
  readonly body: Json
}

/** By name; the only one has none. */
function namedIn({ example, examples = {} }: Media): [name: string, value: Json][] {
  const named = Object.entries(examples).map(([name, { value }]): [string, Json] => [name, value])
  return example === undefined ? named : [['', example]]
}

function examplesIn({ operations }: Description): Example[] {
  return operations.flatMap((operation) =>
    Object.entries(operation.requestBody?.content ?? {}).flatMap(([type, media]) =>
      namedIn(media).map(([name, body]) => ({ operation, name, type, body })),
    ),
  )
}

/** What clusters and mirrors report changes no document, and has no preview. */
function isReport({ parameters = [] }: Operation): boolean {
  return !parameters.some(({ name }) => name === 'dry_run')
}

function send(
  service: TestService,
  { operation, type, body }: Example,
  query = isReport(operation) ? '' : '?dry_run=true',
): Promise<Answer> {
  return service.call(operation.method, `${fill(operation)}${query}`, {
    raw: JSON.stringify(body),
    headers: { 'Content-Type': type },
  })
}

/** Creates whatever the examples create, on an empty fleet: what refers to others comes after them. */
async function createAll(service: TestService, examples: readonly Example[]): Promise<void> {
  let left = examples.filter(({ operation: { operationId: id } }) => /^create_(?!token$)/.test(id))
  while (left.length > 0) {
    const later: Example[] = []
    let problem = ''
    for (const example of left) {
      const preview = await send(service, example)
      if (preview.status !== 200) {
        problem = `${example.operation.operationId}: ${preview.text}`
        later.push(example)
        continue
      }
      assert.equal((await send(service, example, '')).status, 201)
    }
    assert.ok(later.length < left.length, problem)
    left = later
  }
}

async function assertAllWork(types: RegisteredTypes): Promise<void> {
  const service = await startService({ types, fleet: {} })
  const description = await describeApi(service)
  const examples = examplesIn(description)
  await createAll(service, examples)
  const isCreating = ({ operation, name }: Example): boolean =>
    /^create_(?!token$)/.test(operation.operationId) ||
    (operation.operationId === 'batch' && name === 'create')
  const isRestoring = ({ operation, name }: Example): boolean =>
    operation.operationId === 'batch' && name === 'restore'
  const token = examples.find(({ operation }) => operation.operationId === 'create_token') as Example
  const isOfRollout = ({ path }: Described): boolean => path.startsWith('/rollouts/')
  const others = examples.filter(
    (each) => !isCreating(each) && !isRestoring(each) && !isOfRollout(each.operation),
  )
  for (const example of others) {
    if (example.operation.operationId === 'rotate_token')
      assert.equal((await send(service, token, '')).status, 201)
    const { status, text } = await send(service, example)
    const expected = isReport(example.operation) ? 202 : 200
    assert.equal(status, expected, `${example.operation.operationId} ${example.name}: ${text}`)
  }
  for (const operation of description.operations) {
    if (operation.method !== 'GET' || !operation.path.includes('{')) continue
    if (operation.path.endsWith('/bootstrap') || isOfRollout(operation)) continue
    if (operation.path === '/holds/{cluster}') continue
    const { status, text } = await service.call('GET', fill(operation))
    assert.equal(status, 200, `${operation.operationId}: ${text}`)
  }
  await assertBatchOfAbsent(
    service,
    examples.filter((each) => isCreating(each) || isRestoring(each)),
  )
}

/** What a batch creates or restores must not be there. */
async function assertBatchOfAbsent(service: TestService, examples: readonly Example[]): Promise<void> {
  const inBatch = examples.filter(({ operation }) => operation.operationId === 'batch')
  assert.equal(inBatch.length, 2)
  for (const example of inBatch) {
    const [{ type, id, document }] = (example.body as { operations: [JsonObject] }).operations
    const gone = `/${type}/${id ?? (document as JsonObject).id}`
    const flags = type === 'clusters' ? 'confirm=removals' : 'cascade=true&confirm=removals'
    assert.equal((await service.call('DELETE', `${gone}?${flags}`)).status, 200, gone)
    const { status, text } = await send(service, example)
    assert.equal(status, 200, `batch ${example.name}: ${text}`)
  }
}

describe('every example of a request works on a fleet of examples', () => {
  test('of the types that come with the service', () => assertAllWork(builtInTypes()))

  test('with a type of the examples', () => assertAllWork(builtInTypes(POLICIES)))

  test('with types that give no example and refer to each other', async (t) => {
    await assertAllWork(bareTypes(t, BARE_TYPE, TIERS))
  })

  test('with clusters of other environments than those that their example names', async (t) => {
    const file = readFileSync(join(RESOURCES, 'cluster.yaml'), 'utf8')
    const types = bareTypes(t, file.replaceAll('[dev, qa, uat, prod]', '[lab, live]'))
    await assertAllWork(types)
    const { document } = await describeApi(await startService({ types, fleet: {} }))
    assert.equal(document.components.schemas.cluster.properties.environment.example, 'lab')
    assert.equal(document.components.schemas.cluster.example.environment, 'lab')
  })

  test('also of what is done to a rollout and a hold', async () => {
    const fleet = JSON.parse(JSON.stringify(smallFleet()).replaceAll('"a"', '"podinfo"'))
    const service = await startService({ fleet })
    const waves = [
      { name: 'canary', clusters: ['one'], gates: { checks: [{ name: 'smoke' }] } },
      { name: 'rest', rest: true, approval: { before: { count: 1 } } },
    ]
    const change = { op: 'patch', type: 'platform_components', id: 'podinfo', patch: { oci_tag: 'v9' } }
    const started = await service.call('POST', '/batch', {
      body: { operations: [change], rollout: { waves } },
    })
    assert.equal(started.status, 202, started.text)
    const { id } = started.body.rollout
    await service.call('PUT', '/holds/two', { body: { reason: 'somebody works on it' } })
    const { operations } = await describeApi(service)
    const urlOf = ({ path }: Described): string => path.replace('{id}', id).replace('{cluster}', 'two')
    const about = operations.filter(({ path }) => /^\/(?:rollouts|holds)\/\{/.test(path))
    assert.ok(about.length > 10)
    for (const operation of about) {
      const [[, body] = []] = Object.values(operation.requestBody?.content ?? {}).flatMap(namedIn)
      const isResume = operation.operationId === 'resume_rollout'
      if (isResume) await service.call('POST', `/rollouts/${id}/pause`)
      const query = operation.method === 'GET' ? '' : '?dry_run=true'
      const { status, text } = await service.call(operation.method, `${urlOf(operation)}${query}`, { body })
      assert.equal(status, 200, `${operation.operationId}: ${text}`)
      if (isResume) await service.call('POST', `/rollouts/${id}/resume`)
    }
  })

  test('and there is one of every body, of every operation of a batch, and of every role', async () => {
    const service = await startService({ types: builtInTypes(POLICIES) })
    const { operations } = await describeApi(service)
    for (const { operationId, requestBody } of operations)
      for (const [type, media] of Object.entries(requestBody?.content ?? {}))
        assert.ok(namedIn(media).length > 0, `${operationId} ${type}`)
    const namesIn = (id: string): string[] => {
      const found = operations.find(({ operationId }) => operationId === id)
      return Object.keys(found?.requestBody?.content['application/json']?.examples ?? {})
    }
    assert.deepEqual(namesIn('batch'), Object.keys(OPERATIONS))
    assert.deepEqual(namesIn('create_token'), [...ROLES])
  })

  test('but of a type that nobody could guess there is none, rather than a wrong one', async (t) => {
    const { document, operations } = await describeApi(await startService({ types: bareTypes(t, CODES) }))
    const creating = operations.find(({ operationId }) => operationId === 'create_codes')
    assert.deepEqual(Object.keys(creating?.requestBody?.content['application/json'] ?? {}), ['schema'])
    const { code } = document.components.schemas.code.properties
    assert.equal(code.example, undefined)
  })
})

test('every text and number of a document has an example, so that no page makes one up', async () => {
  const { document } = await describeApi(await startService({ types: builtInTypes(POLICIES) }))
  const bare = new Set<string>()
  const visit = (at: string, schema: Schema): void => {
    const isOpen = [schema.type].flat().some((type) => type === 'string' || type === 'integer')
    if (isOpen && !schema.enum && !('const' in schema) && schema.example === undefined) bare.add(at)
    for (const [name, child] of Object.entries(schema.properties ?? {})) visit(`${at}/${name}`, child)
    for (const child of [schema.items, schema.additionalProperties])
      if (typeof child === 'object') visit(`${at}/*`, child as Schema)
  }
  for (const name of Object.keys(document.components.schemas))
    if (/^(?:cluster|namespace|platform_component|role_binding|network_policy|applied_set)(?:_|$)/.test(name))
      if (!name.endsWith('_inputs')) visit(name, document.components.schemas[name])
  assert.deepEqual([...bare], [])
})

test('what narrows an answer down has no example, which a page would fill in', async () => {
  const { operations } = await describeApi(await startService({ types: builtInTypes(POLICIES) }))
  for (const { operationId, parameters = [] } of operations)
    for (const { in: place, name, schema } of parameters)
      assert.equal('example' in schema, place === 'path' && !schema.enum, `${operationId} ${name}`)
})

test('every failure has one answer for all operations, with a short example of its own code', async () => {
  const description = await describeApi(await startService())
  const { responses } = description.document.components
  const validate = compile(description, '/components/schemas/error')
  for (const [name, { content }] of Object.entries<{ content: Record<string, Media> }>(responses)) {
    const value = content['application/json']?.example ?? assert.fail(name)
    assert.ok(validate(value), name)
    const { error } = value as { error: keyof typeof STATUS }
    assert.equal(name, `problem_${STATUS[error]}`)
    assert.ok(JSON.stringify(value).length < 200, name)
  }
})

test('every operation is described in a sentence or more, and every type has its right article', async () => {
  for (const mode of ['crud', 'read-only'] as const) {
    const { document, operations } = await describeApi(await startService({ mode }))
    for (const { operationId, description = '' } of operations)
      assert.match(description, /^[A-Z].{20,}\.$/, operationId)
    assert.doesNotMatch(JSON.stringify(document), /\ba (?=applied|editor|ETag|id )/)
    assert.ok(document.info.contact.name)
  }
})

test('descriptions are plain: no long sentences, none of the habits that docs/writing.md forbids', async () => {
  const { document } = await describeApi(await startService())
  const texts = new Set<string>()
  const collect = (value: unknown, key = ''): void => {
    if (typeof value === 'string' && (key === 'description' || key === 'summary')) texts.add(value)
    if (typeof value !== 'object' || value === null) return
    for (const [name, child] of Object.entries(value)) collect(child, name)
  }
  collect(document)
  assert.ok(texts.size > 500)
  const found = [...texts]
    .map(measure)
    .flatMap(({ long, habits }) => [...long, ...habits.map(({ text }) => text)])
  assert.deepEqual(found, [])
})

test('no credential is described that is not asked for: a certificate is optional, and OIDC is where it is set up', async () => {
  const login = { issuer: 'https://sso.example.com', clientId: 'fleet' }
  for (const [service, schemes] of [
    [await startService(), ['bearer_auth', 'basic_auth']],
    [await startService({ login }), ['bearer_auth', 'basic_auth', 'oidc']],
  ] as const) {
    const { document } = await describeApi(service)
    assert.deepEqual(Object.keys(document.components.securitySchemes), schemes)
    assert.deepEqual(document.security.flatMap(Object.keys), schemes)
  }
})
