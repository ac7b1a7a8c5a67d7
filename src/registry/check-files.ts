// What is wrong with resource files: each on its own, and all of them together.
import {
  RESERVED_ENDPOINTS,
  RESERVED_INPUT_FIELDS,
  RESERVED_KINDS,
  RESERVED_LISTS,
} from '../api/reserved-names.ts'
import type { SchemaObject } from '../base/json-schema.ts'
import { SYSTEM_TYPES } from '../domain/types/system-types.ts'
import { checkFilters, filterSchemas } from './check-filters.ts'
import { checkSchemas, type PlacedSchema } from './check-schema.ts'
import { fluxOf, inputFields, nounOf } from './flux-section.ts'
import type { LoadedFile, ResourceFile } from './resource-file.ts'
import { fieldsOfRules } from './rule-keys.ts'
import { checkMethods, checkSecurity } from './type-methods.ts'
import { close, keySchema } from './type-schemas.ts'

/** Everything that is wrong with a file on its own. */
export function checkFile(file: LoadedFile): string[] {
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
    ...checkSchemas(schemasIn(file)),
  ]
  return problems.map((problem) => `${file.path}: ${problem}`)
}

/** The schemas of a file, each where it stands; what stands beside the properties is a schema of its own. */
function schemasIn(file: ResourceFile): PlacedSchema[] {
  const { key, items, 'x-flux': flux = {} } = file.schema
  const { properties, required: _required, ...rest } = items
  const below = (place: string, schemas: { readonly [name: string]: SchemaObject }) =>
    Object.entries(schemas).map(([name, schema]): PlacedSchema => [`${place}.${name}`, close(schema)])
  return [
    ['schema.key.schema', close(keySchema(key))],
    ['schema.items', rest],
    ...below('schema.items.properties', properties),
    ...below('x-flux.reference', flux.reference ?? {}),
    ...filterSchemas(file),
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

export function checkTogether(files: readonly LoadedFile[], isWhole: boolean): string[] {
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
    ...twins(files, 'rules', (file) => fluxOf(file).rules),
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
