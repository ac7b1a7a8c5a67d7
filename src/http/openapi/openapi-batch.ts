// Batches and rollbacks, in OpenAPI's words: one schema for each operation.

import { BATCH_SCHEMA, OPERATIONS, ROLLBACK_SCHEMA } from '../../api/batch-schema.ts'
import { ref } from '../../api/component-ref.ts'
import type { SchemaObject } from '../../base/json-schema.ts'
import { METHOD_OF } from '../../domain/commands/parse-batch.ts'
import type { RegisteredDelivery, RegisteredType, RegisteredTypes } from '../../registry/build-types.ts'
import { schemaOf } from '../../registry/validator.ts'
import { REVISION } from '../request/parameters.ts'
import {
  exampleChange,
  exampleDocument,
  exampleId,
  exampleOverride,
  exampleValues,
} from './openapi-example.ts'
import { type Examples, type Node, schemaName } from './openapi-operation.ts'
import { always, byValue, every, holds, lacks, needs, oneOfFields } from './openapi-rules.ts'
import { requested } from './openapi-schema.ts'

/** What an operation is beyond its fields. */
interface Described {
  readonly description: string
  /** Types that it can be of; of none where it has no type. */
  readonly of: readonly RegisteredType[]
  /** The field that holds a value of the type, and what that is for each. */
  readonly payload?: readonly [field: string, schema: (type: RegisteredType) => Node]
  /** What must hold, by type. */
  readonly rule: (type: RegisteredType) => Node
}

export function batchSchemas(types: RegisteredTypes): Node {
  const described = Object.entries(operationsOf(types))
  const names = described.map(([op]) => [op, `${op}_operation`] as const)
  const { properties = {}, ...rest } = requested(BATCH_SCHEMA)
  const operations = { ...properties.operations, items: ref('batch_operation') }
  return {
    batch: { ...rest, properties: { ...properties, operations } },
    batch_operation: {
      oneOf: names.map(([, name]) => ref(name)),
      discriminator: {
        propertyName: 'op',
        mapping: Object.fromEntries(names.map(([op, name]) => [op, `#/components/schemas/${name}`])),
      },
    },
    ...Object.fromEntries(described.map(([op, each]) => [`${op}_operation`, operationSchema(op, each)])),
  }
}

/** All fields that it takes of any type, and then what each type takes of them. */
function operationSchema(op: string, { description, of, payload, rule }: Described): Node {
  const { properties = {}, ...rest } = requested(OPERATIONS[op] as SchemaObject)
  const [field, schemaFor] = payload ?? []
  const variants = schemaFor ? of.map(schemaFor) : []
  const rules = of.map((type) => {
    const own = field && schemaFor ? holds({ [field]: schemaFor(type) }) : {}
    return { values: [type.name], rule: every(own, rule(type)) }
  })
  return {
    ...rest,
    description,
    properties: {
      ...properties,
      op: { type: 'string', const: op },
      ...(properties.type && { type: { ...properties.type, enum: of.map(({ name }) => name) } }),
      ...(field && { [field]: anyOf(variants) }),
    },
    ...byValue('type', rules),
  }
}

function anyOf(schemas: readonly Node[]): Node {
  const flat = schemas.flatMap((schema) => (schema.anyOf as Node[] | undefined) ?? [schema])
  const different = [...new Map(flat.map((schema) => [JSON.stringify(schema), schema])).values()]
  return different.length === 1 ? (different[0] as Node) : { anyOf: different }
}

const ONE_AT_A_TIME = { if_revision: ['id'] }

/** Each with the types that have the method for it; none that has no type left. */
function operationsOf(types: RegisteredTypes): Record<string, Described> {
  const known = Object.entries(describeOperations(types)).map(([op, { of, ...rest }]) => {
    const needed = METHOD_OF[op]
    return [op, { ...rest, of: needed ? of.filter(({ methods }) => methods.has(needed)) : of }] as const
  })
  return Object.fromEntries(known.filter(([, { of }]) => of.length > 0))
}

function describeOperations(types: RegisteredTypes): Record<string, Described> {
  const { all, delivered, cluster, patchable } = types
  const isCluster = (type: RegisteredType): boolean => type === cluster.type
  const schema = (kind: string) => (type: RegisteredType) => ref(`${schemaName(type)}_${kind}`)
  const forClusters = oneOfFields(['clusters', 'selector'])
  /** A document by its id, or clusters in all the ways that clusters are named. */
  const named = (type: RegisteredType, ways = ['id', 'clusters', 'selector']): Node =>
    isCluster(type)
      ? { ...oneOfFields(ways), dependentRequired: ONE_AT_A_TIME }
      : every(needs('id'), lacks(...ways.filter((way) => way !== 'id')))
  return {
    create: {
      description: 'Creates a document.',
      of: all,
      payload: ['document', schema('to_create')],
      rule: () => ({}),
    },
    replace: {
      description: 'Replaces a document, all of it.',
      of: all,
      payload: ['document', schema('to_replace')],
      rule: () => ({}),
    },
    patch: {
      description:
        'Changes some fields of a document, or of many clusters: a merge patch (RFC 7396), or a JSON patch (RFC 6902).',
      of: all,
      payload: ['patch', (type) => ({ anyOf: [schema('to_merge')(type), ref('json_patch')] })],
      rule: (type) => named(type),
    },
    delete: {
      description:
        'Deletes a document, or many clusters. cascade also takes a definition from all clusters; purge leaves no tombstone of a cluster.',
      of: all,
      rule: (type) => every(named(type), isFalse(isCluster(type) ? 'cascade' : 'purge')),
    },
    restore: {
      description: 'Brings deleted clusters back.',
      of: all,
      rule: (type) => named(type, ['id', 'clusters']),
    },
    assign: {
      description:
        'Assigns a document to clusters. merge changes the reference where there is one, and assigns nothing; ensure assigns where there is none, and changes nothing.',
      of: delivered,
      payload: ['ref', schema('reference_to_assign')],
      rule: () => every(forClusters, { anyOf: [isFalse('merge'), isFalse('ensure')] }),
    },
    unassign: {
      description: 'Takes a document from clusters, with their values for it.',
      of: delivered,
      rule: () => forClusters,
    },
    hold: {
      description: 'Keeps clusters at what they are served now, as PUT /holds/{cluster} does.',
      of: [cluster.type as RegisteredType],
      rule: () => forClusters,
    },
    release: {
      description: 'Releases clusters; those that are not held are left alone.',
      of: [cluster.type as RegisteredType],
      rule: () => forClusters,
    },
    ...(patchable && {
      patch_values: {
        description:
          'Sets values of a component on clusters; null removes one, and replace removes all others.',
        of: [types.get(patchable.name) as RegisteredType],
        payload: ['values', () => ref('values_to_merge')],
        rule: () => forClusters,
      },
    }),
  }
}

function isFalse(field: string): Node {
  return holds({ [field]: { const: false } })
}

/** An operation of each sort, on what the other examples create. */
export function batchExamples(types: RegisteredTypes): Examples | undefined {
  const definition = types.delivered.find((type) => exampleDocument(types, type)) ?? types.delivered[0]
  if (!definition) return undefined
  const clusters = types.cluster.type.name
  const cluster = exampleId(types.get(clusters) as RegisteredType)
  const { name: type } = definition
  const { id, ...document } = exampleDocument(types, definition) ?? {}
  const some = { clusters: [cluster] }
  const operations: Record<string, Node> = {
    create: { type, document: { id, ...document } },
    replace: { type, id, document },
    patch: { type, id, patch: exampleChange(types, definition) },
    delete: { type, id, cascade: true },
    restore: { type: clusters, id: cluster },
    assign: { type, ref: { id, ...exampleOverride(definition) }, ...some },
    unassign: { type, id, selector: `id=${cluster}` },
    hold: { reason: 'the shop is busy until Monday', ...some },
    release: some,
    ...(types.patchable && {
      patch_values: {
        component: exampleId(types.patchable as RegisteredDelivery),
        values: exampleValues(types),
        ...some,
      },
    }),
  }
  const known = operationsOf(types)
  const possible = Object.entries(operations).filter(([op, { type }]) =>
    known[op]?.of.some(({ name }) => type === undefined || name === type),
  )
  const examples = Object.fromEntries(
    possible.map(([op, operation]) => [
      op,
      { summary: known[op]?.description, value: { operations: [{ op, ...operation }] } },
    ]),
  )
  return { examples }
}

export function rollbackSchema(types: RegisteredTypes): Node {
  const clusters = types.cluster.type.name
  const names = types.all.map(({ name }) => name)
  const { properties = {}, ...rest } = requested(ROLLBACK_SCHEMA)
  const { to_revision, to_time, types: chosen } = properties
  // A selector chooses clusters.
  const scope = {
    anyOf: [lacks('selector'), holds({ types: { type: 'array', items: { const: clusters } } })],
  }
  return {
    ...rest,
    properties: {
      ...properties,
      to_revision: { ...to_revision, ...REVISION },
      to_time: { ...to_time, ...schemaOf('date-time') },
      types: { ...chosen, items: { type: 'string', enum: names } },
    },
    ...always(every(oneOfFields(['to_revision', 'to_time']), scope)),
  }
}
