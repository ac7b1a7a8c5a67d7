// Turns resource files into types: validators, references and deliveries.
import type { Json, JsonObject } from '../base/json.ts'
import type { SchemaObject } from '../base/json-schema.ts'
import type {
  ClusterType,
  DeliveredType,
  Delivery,
  ResourceType,
  SystemType,
  Types,
} from '../domain/types/resource-type.ts'
import { inventoryType, SYSTEM_TYPES, systemTypes } from '../domain/types/system-types.ts'
import { checkFile, checkTogether } from './check-files.ts'
import { buildConform } from './conform.ts'
import { fluxOf, inputFields, nounOf, singularOf } from './flux-section.ts'
import { buildNormaliser } from './normalise.ts'
import type { FluxSection, LoadedFile, QueryParam, ResourceFile } from './resource-file.ts'
import { buildMatcher, buildNeeds, buildPatchNames, buildVersionField } from './rule-keys.ts'
import { methodsOf } from './type-methods.ts'
import { documentSchema, referenceSchema } from './type-schemas.ts'
import { buildDocumentChecker } from './validator.ts'

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
export const MAX_INVENTORY_SIZE = 4 * 1024 * 1024

type Built =
  | { readonly ok: true; readonly types: RegisteredTypes }
  | { readonly ok: false; readonly problems: readonly string[] }

/**
 * `isWhole` is false where a file is missing or its mistakes were taken out: then only the other problems are returned.
 */
export function buildTypes(files: readonly LoadedFile[], isWhole = true): Built {
  const problems = [...files.flatMap(checkFile), ...checkTogether(files, isWhole)]
  const clusterFile = files.find((file) => fluxOf(file).cluster) as LoadedFile
  if (problems.length > 0 || !isWhole) return { ok: false, problems }
  const all = files.map((file) => buildType(file, file === clusterFile ? files : []))
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

function buildType(file: ResourceFile, assignable: readonly ResourceFile[]): RegisteredType {
  const flux = fluxOf(file)
  const schema = documentSchema(file, assignable)
  const rules = {
    normalise: buildNormaliser(schema) as (document: JsonObject) => JsonObject,
    check: buildDocumentChecker(schema),
  }
  const type = {
    ...rules,
    file,
    schema,
    name: file.kind,
    singular: singularOf(file),
    methods: methodsOf(file),
    maxSize: isInventory(file) ? MAX_INVENTORY_SIZE : MAX_DOCUMENT_SIZE,
    noun: nounOf(file),
    isFleetWide: flux.fleet_wide ?? false,
    ...(flux.rules && { rules: flux.rules }),
    references: Object.entries(flux.references ?? {}).map(([field, type]) => ({ field, type })),
    filters: file.schema.query_params ?? [],
    conform: buildConform(schema, rules),
    reserved: new Map(Object.entries(flux.reserved ?? {})),
  }
  if (!flux.endpoint || !flux.assigned_by) return type
  return { ...type, referenceSchema: referenceSchema(file), delivery: buildDelivery(file, flux) }
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
    versionField: buildVersionField(flux),
    input,
    placeholders: input.flatMap(({ kind }) => (kind === 'cluster' || kind === 'patches' ? [kind] : [])),
    referenceDefaults: defaultsOf(own.map((name) => [name, flux.reference?.[name] as SchemaObject])),
    definitionDefaults: defaultsOf(Object.entries(file.schema.items.properties)),
    normaliseReference: buildNormaliser(schema) as (reference: JsonObject) => JsonObject,
    checkReference: buildDocumentChecker(schema),
  }
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

function defaultsOf(properties: readonly (readonly [string, SchemaObject])[]): JsonObject {
  const defaults = properties.filter(([, schema]) => schema.default !== undefined)
  return Object.fromEntries(defaults.map(([name, schema]) => [name, schema.default as Json]))
}
