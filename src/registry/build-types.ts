// Turns resource files into types: validators, references, deliveries, and the cluster's own schema.
import {
  RESERVED_ENDPOINTS,
  RESERVED_INPUT_FIELDS,
  RESERVED_KINDS,
  RESERVED_LISTS,
} from '../api/reserved-names.ts'
import type { Json, JsonObject } from '../base/json.ts'
import type { SchemaObject } from '../base/json-schema.ts'
import type {
  ClusterType,
  DeliveredType,
  Delivery,
  InputField,
  ResourceType,
  SystemType,
  Types,
} from '../domain/types/resource-type.ts'
import { inventoryType, SYSTEM_TYPES, systemTypes } from '../domain/types/system-types.ts'
import { checkFilters } from './check-filters.ts'
import { checkSchema } from './check-schema.ts'
import { buildNormaliser } from './normalise.ts'
import type { FluxSection, LoadedFile, QueryParam, ResourceFile } from './resource-file.ts'
import { buildMatcher, buildNeeds, buildPatchNames, fieldsOfRules } from './rule-keys.ts'
import { checkMethods, checkSecurity, methodsOf } from './type-methods.ts'
import { buildDocumentChecker, MAX_BYTES } from './validator.ts'

/** A type with what the faces need of its file. */
export interface RegisteredType extends ResourceType {
  readonly file: ResourceFile
  /** The schema of one document, with its id and, on clusters, the lists of assigned documents. */
  readonly schema: SchemaObject
  /** The schema of one reference; only where clusters can be assigned the type. */
  readonly referenceSchema?: SchemaObject
  readonly filters: readonly QueryParam[]
  /** What the command line calls it: `component`. */
  readonly noun: string
}

/** A type that clusters can be assigned. */
export type RegisteredDelivery = RegisteredType & DeliveredType

export interface RegisteredTypes extends Types {
  readonly all: readonly RegisteredType[]
  readonly delivered: readonly RegisteredDelivery[]
  get(name: string): RegisteredType | undefined
}

/** Clusters could not receive more anyway: an answer to a poll has 900 KiB at most. */
export const MAX_DOCUMENT_SIZE = 1024 * 1024
/** Inventories grow with the fleet: this is enough for about 200,000 ids. */
const MAX_INVENTORY_SIZE = 4 * 1024 * 1024

type Built =
  | { readonly ok: true; readonly types: RegisteredTypes }
  | { readonly ok: false; readonly problems: readonly string[] }

/**
 * `isWhole` is false where a file is missing or its mistakes were taken out: then only the other problems are returned.
 */
export function buildTypes(files: readonly LoadedFile[], isWhole = true): Built {
  const problems = [...files.flatMap(checkFile), ...checkTogether(files, isWhole)]
  const clusterFile = files.find((file) => fluxOf(file).cluster) as LoadedFile
  const all: RegisteredType[] = []
  for (const file of problems.length > 0 ? [] : files) {
    try {
      all.push(buildType(file, file === clusterFile ? files : []))
    } catch (error) {
      problems.push(`${file.path}: a schema cannot be used: ${(error as Error).message}`)
    }
  }
  if (problems.length > 0 || !isWhole) return { ok: false, problems }
  const byName = new Map(all.map((type) => [type.name, type]))
  const delivered = all.filter((type): type is RegisteredDelivery => type.delivery !== undefined)
  const byEndpoint = new Map(delivered.map((type) => [type.delivery.endpoint, type]))
  const types: RegisteredTypes = {
    all,
    delivered,
    cluster: buildClusterType(byName.get(clusterFile.kind) as RegisteredType),
    system: systemTypes([...SYSTEM_TYPES, ...files.filter(isInventory).map(buildInventory)]),
    patchable: delivered.find((type) => type.delivery.patches),
    get: (name) => byName.get(name),
    byEndpoint: (endpoint) => byEndpoint.get(endpoint),
  }
  return { ok: true, types }
}

function isInventory(file: ResourceFile): boolean {
  return fluxOf(file).bookkeeping === true
}

function buildInventory(file: ResourceFile): SystemType {
  return inventoryType(file.kind, singularOf(file))
}

function fluxOf(file: ResourceFile): FluxSection {
  return file.schema['x-flux'] ?? {}
}

function buildType(file: ResourceFile, assignable: readonly ResourceFile[]): RegisteredType {
  const flux = fluxOf(file)
  const schema = documentSchema(file, assignable)
  const type = {
    file,
    schema,
    name: file.kind,
    singular: singularOf(file),
    methods: methodsOf(file),
    maxSize: isInventory(file) ? MAX_INVENTORY_SIZE : MAX_DOCUMENT_SIZE,
    noun: nounOf(file),
    references: Object.entries(flux.references ?? {}).map(([field, type]) => ({ field, type })),
    filters: file.schema.query_params ?? [],
    normalise: buildNormaliser(schema) as (document: JsonObject) => JsonObject,
    check: buildDocumentChecker(schema),
    reserved: new Map(Object.entries(flux.reserved ?? {})),
  }
  if (!flux.endpoint || !flux.assigned_by) return type
  return { ...type, referenceSchema: referenceSchema(file), delivery: buildDelivery(file, flux) }
}

function singularOf(file: ResourceFile): string {
  return fluxOf(file).singular ?? file.kind.replaceAll('_', ' ').replace(/s$/, '')
}

function nounOf(file: ResourceFile): string {
  return fluxOf(file).noun ?? singularOf(file).replaceAll(' ', '-')
}

function buildDelivery(file: ResourceFile, flux: FluxSection): Delivery {
  const schema = referenceSchema(file)
  const own = Object.keys(flux.reference ?? {})
  const input = inputFields(flux)
  return {
    endpoint: flux.endpoint ?? '',
    assignedBy: flux.assigned_by ?? '',
    overrides: flux.overrides ?? [],
    enabledBy: flux.enabled_by,
    patches: flux.patches ?? false,
    reportsHealth: flux.reports_health ?? false,
    waitsFor: Object.entries(flux.references ?? {}).flatMap(([field, kind]) =>
      kind === file.kind ? [field] : [],
    ),
    deliveryClass: flux.waits_among ? buildMatcher(flux.waits_among) : () => false,
    onEveryCluster: new Set(flux.on_every_cluster),
    needs: buildNeeds(flux),
    patchNames: buildPatchNames(flux),
    input,
    placeholders: input.flatMap(({ kind }) => (kind === 'cluster' || kind === 'patches' ? [kind] : [])),
    referenceDefaults: defaultsOf(own.map((name) => [name, flux.reference?.[name] as SchemaObject])),
    definitionDefaults: defaultsOf(Object.entries(file.schema.items.properties)),
    normaliseReference: buildNormaliser(schema) as (reference: JsonObject) => JsonObject,
    checkReference: buildDocumentChecker(schema),
  }
}

/** `cluster` is always a part of an input. */
function inputFields(flux: FluxSection): InputField[] {
  const fields = (flux.input ?? []).map((field): InputField => {
    if (field === 'cluster' || field === 'patches') return { kind: field, name: field }
    if (typeof field === 'string') return { kind: 'value', name: field, source: field }
    const [name, sources] = Object.entries(field)[0] as [string, readonly string[]]
    return { kind: 'group', name, sources }
  })
  const complete = fields.some(({ kind }) => kind === 'cluster')
  return complete ? fields : [...fields, { kind: 'cluster', name: 'cluster' }]
}

function buildClusterType(type: RegisteredType): ClusterType {
  const { dns, patches, deletion_protection, labels, environment, input, list } = fluxOf(type.file)
    .cluster as NonNullable<FluxSection['cluster']>
  const values = type.schema.properties?.[patches]?.additionalProperties
  return {
    type,
    dns,
    patches,
    checkValues: typeof values === 'object' ? buildDocumentChecker(values) : () => [],
    deletionProtection: deletion_protection,
    labels,
    environment,
    input: Object.entries(input),
    list,
  }
}

function documentSchema(file: ResourceFile, assignable: readonly ResourceFile[]): SchemaObject {
  const { key, items } = file.schema
  const { properties: _own, required = [], additionalProperties: _open, ...rest } = items
  const { id: _key, ...properties } = propertiesOf(file)
  const lists = assignable.flatMap((other): [string, SchemaObject][] => {
    const list = fluxOf(other).assigned_by
    const description = `What the cluster is given of ${other.kind}, in order.`
    return list ? [[list, { description, type: 'array', items: referenceSchema(other), default: [] }]] : []
  })
  return close({
    ...rest,
    type: 'object',
    required: ['id', ...required.filter((name) => name !== 'id')],
    properties: { id: keySchema(key), ...properties, ...Object.fromEntries(lists) },
  })
}

function keySchema(key: ResourceFile['schema']['key']): SchemaObject {
  const schema = { type: 'string', format: 'dns-subdomain', ...key.schema }
  return key.description ? { description: key.description, ...schema } : schema
}

/** The id, what the type says of references, and the fields that may be overridden. */
function referenceSchema(file: ResourceFile): SchemaObject {
  const flux = fluxOf(file)
  const overrides = (flux.overrides ?? []).map((name) => {
    const { default: _default, ...schema } = plain(propertiesOf(file)[name] as SchemaObject)
    return [name, schema]
  })
  const id = { type: 'string', minLength: 1, description: `Id of one of ${file.kind}.` }
  return close({
    type: 'object',
    required: ['id'],
    properties: { id, ...flux.reference, ...Object.fromEntries(overrides) },
  })
}

/** With the limits that no keyword of JSON Schema has. */
function propertiesOf(file: ResourceFile): Record<string, SchemaObject> {
  const limited = Object.entries(fluxOf(file).max_bytes ?? {}).map(([name, limit]) => {
    return [name, { ...file.schema.items.properties[name], [MAX_BYTES]: limit }] as const
  })
  return { ...file.schema.items.properties, ...Object.fromEntries(limited) }
}

/** Firestone lets a property wrap its schema. */
function plain(schema: SchemaObject): SchemaObject {
  const { schema: wrapped, expose: _expose, ...rest } = schema
  return wrapped ? { ...rest, ...(wrapped as SchemaObject) } : rest
}

/** Objects with declared properties take no others, unless they say so. */
function close(schema: SchemaObject): SchemaObject {
  const { properties, items, additionalProperties, ...rest } = plain(schema)
  return {
    ...rest,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, close(child)])),
      additionalProperties: false,
    }),
    ...(items && { items: close(items) }),
    ...(additionalProperties !== undefined && {
      additionalProperties:
        typeof additionalProperties === 'object' ? close(additionalProperties) : additionalProperties,
    }),
  }
}

function defaultsOf(properties: readonly (readonly [string, SchemaObject])[]): JsonObject {
  const defaults = properties.filter(([, schema]) => schema.default !== undefined)
  return Object.fromEntries(defaults.map(([name, schema]) => [name, schema.default as Json]))
}

/** Everything that is wrong with a file on its own. */
function checkFile(file: LoadedFile): string[] {
  const { kind, versionInPath, default_query_params = [] } = file
  const { assigned_by: list = '', endpoint = '' } = fluxOf(file)
  const problems = [
    ...(RESERVED_KINDS.has(kind) || SYSTEM_TYPES.some(({ name }) => name === kind)
      ? [`kind "${kind}" is taken by the service itself`]
      : []),
    ...(RESERVED_LISTS.has(list) ? [`x-flux.assigned_by "${list}" is reserved`] : []),
    ...(RESERVED_ENDPOINTS.has(endpoint) ? [`x-flux.endpoint "${endpoint}" is reserved`] : []),
    ...inputFields(fluxOf(file))
      .filter(({ name }) => RESERVED_INPUT_FIELDS.has(name))
      .map(({ name }) => `x-flux.input names "${name}", which every input has already`),
    ...(versionInPath ? ['versionInPath must be false: routes have no version in them'] : []),
    ...default_query_params
      .filter(({ name }) => name !== 'limit' && name !== 'offset')
      .map(
        ({ name }) => `default_query_params names "${name}": lists take limit and offset, and query_params`,
      ),
    ...checkMethods(file),
    ...checkSecurity(file),
    ...checkNames(file),
    ...checkPatterns(file),
    ...checkFilters(file),
    ...schemasIn(file).flatMap(([place, schema]) => checkSchema(place, close(schema))),
  ]
  return problems.map((problem) => `${file.path}: ${problem}`)
}

/** The schemas of a file, each where it stands. */
function schemasIn({ schema: { key, items, 'x-flux': flux = {} } }: ResourceFile): [string, SchemaObject][] {
  const below = (place: string, schemas: { readonly [name: string]: SchemaObject }) =>
    Object.entries(schemas).map(([name, schema]): [string, SchemaObject] => [`${place}.${name}`, schema])
  return [
    ['schema.key.schema', keySchema(key)],
    ...below('schema.items.properties', items.properties),
    ...below('x-flux.reference', flux.reference ?? {}),
  ]
}

function checkPatterns(file: ResourceFile): string[] {
  return Object.entries(fluxOf(file).waits_among ?? {}).flatMap(([field, pattern]) => {
    try {
      new RegExp(pattern, 'u')
      return []
    } catch (error) {
      return [`x-flux.waits_among.${field}: ${(error as Error).message}`]
    }
  })
}

/** Reports names of fields that do not exist. */
function checkNames(file: ResourceFile): string[] {
  const flux = fluxOf(file)
  const properties = new Set(Object.keys(file.schema.items.properties))
  const sources = new Set([...properties, ...Object.keys(flux.reference ?? {})])
  const need = (known: ReadonlySet<string>, name: string, where: string): string[] =>
    known.has(name) ? [] : [`${where} names "${name}", which is not one of ${[...known].join(', ')}`]
  const inputs = inputFields(flux).flatMap((field) =>
    field.kind === 'value' ? [field.source] : field.kind === 'group' ? field.sources : [],
  )
  const { cluster } = flux
  return [
    ...(flux.overrides ?? []).flatMap((name) => need(properties, name, 'x-flux.overrides')),
    ...(flux.enabled_by
      ? need(new Set(Object.keys(flux.reference ?? {})), flux.enabled_by, 'x-flux.enabled_by')
      : []),
    ...Object.keys(flux.references ?? {}).flatMap((name) => need(properties, name, 'x-flux.references')),
    ...Object.keys(flux.waits_among ?? {}).flatMap((name) => need(properties, name, 'x-flux.waits_among')),
    ...fieldsOfRules(flux).flatMap(([key, name]) => need(properties, name, `x-flux.${key}`)),
    ...inputs.filter((name) => name !== 'id').flatMap((name) => need(sources, name, 'x-flux.input')),
    ...(file.schema.query_params ?? []).flatMap(({ name }) => need(properties, name, 'query_params')),
    ...(cluster
      ? [
          cluster.dns,
          cluster.patches,
          cluster.deletion_protection,
          ...(cluster.labels ? [cluster.labels] : []),
          ...(cluster.environment ? [cluster.environment] : []),
          ...Object.values(cluster.input),
          ...cluster.list,
        ]
      : []
    ).flatMap((name) => need(properties, name, 'x-flux.cluster')),
  ]
}

function checkTogether(files: readonly LoadedFile[], isWhole: boolean): string[] {
  const kinds = new Set(files.map(({ kind }) => kind))
  const assignable = new Set(files.flatMap((file) => (fluxOf(file).assigned_by ? [file.kind] : [])))
  const clusters = files.filter((file) => fluxOf(file).cluster)
  const own = new Set(Object.keys(clusters[0]?.schema.items.properties ?? {}))
  return [
    ...(clusters.length === 1 || !isWhole
      ? []
      : [`exactly one type must have x-flux.cluster, not ${clusters.length}`]),
    ...twins(files, 'endpoint', (file) => fluxOf(file).endpoint),
    ...twins(files, 'assigned_by', (file) => fluxOf(file).assigned_by),
    ...twins(files, 'noun', nounOf),
    ...files
      .filter((file) => fluxOf(file).patches)
      .slice(1)
      .map(({ path }) => `${path}: patches are keyed by id alone, so only one type may have x-flux.patches`),
    ...files
      .filter((file) => fluxOf(file).reports_health)
      .slice(1)
      .map(
        ({ path }) =>
          `${path}: reports name components by id alone, so only one type may have x-flux.reports_health`,
      ),
    ...files
      .filter((file) => own.has(fluxOf(file).assigned_by ?? ''))
      .map(
        (file) =>
          `${file.path}: x-flux.assigned_by "${fluxOf(file).assigned_by}" is a property of clusters already`,
      ),
    ...files.flatMap((file) =>
      Object.values(fluxOf(file).references ?? {})
        .filter((kind) => isWhole && !kinds.has(kind))
        .map((kind) => `${file.path}: x-flux.references names an unknown type "${kind}"`),
    ),
    ...files.flatMap((file) =>
      (fluxOf(file).needs ?? [])
        .filter(({ type }) => isWhole && !assignable.has(type))
        .map(({ type }) => `${file.path}: x-flux.needs names "${type}", which clusters cannot be given`),
    ),
  ]
}

function twins(
  files: readonly LoadedFile[],
  key: string,
  read: (file: LoadedFile) => string | undefined,
): string[] {
  const seen = new Map<string, string>()
  return files.flatMap((file) => {
    const value = read(file)
    if (value === undefined) return []
    const other = seen.get(value)
    seen.set(value, file.kind)
    return other ? [`${file.path}: x-flux.${key} "${value}" is used by ${other} already`] : []
  })
}
