// The schemas of resource types: documents and references, as they are returned and as they are sent, and inputs.
import { ref } from '../../api/component-ref.ts'
import type { SchemaObject } from '../../base/json-schema.ts'
import type { InputField } from '../../domain/types/resource-type.ts'
import type { RegisteredDelivery, RegisteredType, RegisteredTypes } from '../../registry/build-types.ts'
import { exampleDocument, exampleId, exampleOverride } from './openapi-example.ts'
import { type Node, schemaName } from './openapi-operation.ts'
import { merged, published, sent, without } from './openapi-schema.ts'

type Schemas = Record<string, Node>

/** A document and a reference as they are returned. */
export function answeredSchemas(types: RegisteredTypes, type: RegisteredType): Schemas {
  const name = schemaName(type)
  const { schema, referenceSchema: reference } = type
  const document = exampleDocument(types, type)
  return {
    [name]: {
      ...linked(types, type, published(schema), 'reference'),
      ...(document && { example: type.normalise(document) }),
    },
    ...(reference && {
      [`${name}_reference`]: {
        ...published(reference),
        example: { id: exampleId(type), ...exampleOverride(type as RegisteredDelivery) },
      },
    }),
  }
}

/** A document and a reference as they are sent. */
export function sentSchemas(types: RegisteredTypes, type: RegisteredType): Schemas {
  const name = schemaName(type)
  const { schema, referenceSchema: reference } = type
  const created = linked(types, type, sent(schema), 'reference_to_assign')
  return {
    [`${name}_to_create`]: created,
    [`${name}_to_replace`]: without(created, 'id'),
    [`${name}_to_merge`]: linked(types, type, merged(schema), 'reference_to_assign'),
    ...(reference && {
      [`${name}_reference_to_assign`]: sent(reference),
      [`${name}_reference_to_replace`]: without(sent(reference), 'id'),
      [`${name}_reference_to_merge`]: merged(reference),
    }),
  }
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
export function valueSchemas({ cluster, patchable, get }: RegisteredTypes): Schemas {
  const patches = get(cluster.type.name)?.schema.properties?.[cluster.patches]
  const values = patches?.additionalProperties
  return patchable && typeof values === 'object'
    ? { values: published(values), values_to_merge: merged(values) }
    : {}
}

/** The answer to a poll. */
export function inputsSchema(types: RegisteredTypes, type: RegisteredDelivery): Node {
  return {
    type: 'object',
    required: ['inputs'],
    properties: { inputs: { type: 'array', items: inputOf(types, type) } },
  }
}

/** One input: the fields that are always there, and the optional ones. */
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
  const fieldSchema = (field: InputField): Node => {
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
    required: ['id', ...sure.map(({ name }) => name), ...Object.keys(DIGESTS)],
    properties: {
      id: { type: 'string' },
      ...Object.fromEntries(input.map((field) => [field.name, fieldSchema(field)])),
      ...DIGESTS,
    },
  }
}

const DIGEST = { type: 'string', pattern: '^[0-9a-f]{16}$', example: '2c1f0e9d84b3a657' }

const DIGESTS = {
  digest: { ...DIGEST, description: 'Covers this input, without the two digests.' },
  answer_digest: { ...DIGEST, description: 'Covers the whole answer: equal for equal lists of inputs.' },
}

export function clusterListSchema({ cluster }: RegisteredTypes): Node {
  const names = ['id', ...cluster.list]
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]))
  const inputs = { type: 'array', items: { type: 'object', required: names, properties } }
  return { type: 'object', required: ['inputs'], properties: { inputs } }
}

/** The schema of a document's id in a path. */
export function idSchema(type: RegisteredType): SchemaObject {
  const { description: _description, ...schema } = type.schema.properties?.id ?? {}
  return published({ ...schema, example: exampleId(type) })
}
