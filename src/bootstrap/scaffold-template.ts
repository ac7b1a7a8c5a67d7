// A ResourceSet template for a type to start from: it works as it is, and shows how each field is written safely.

import type { SchemaObject } from '../base/json-schema.ts'
import type { InputField } from '../domain/types/resource-type.ts'
import type { RegisteredDelivery, RegisteredType } from '../registry/build-types.ts'

export function scaffoldTemplate(type: RegisteredDelivery): string {
  const { endpoint, enabledBy, input } = type.delivery
  const lines = [
    '---',
    'apiVersion: v1',
    'kind: ConfigMap',
    'metadata:',
    `  name: << printf "${endpoint}-%s" inputs.id | quote >>`,
    '  namespace: flux-system',
    'data:',
    ...input.flatMap((field) => dataLines(type, field)),
  ]
  const isSwitched = enabledBy !== undefined && input.some(({ name }) => name === enabledBy)
  const rendered = isSwitched ? [`<<- if ${isOn(type, enabledBy)} >>`, ...lines, '<<- end >>'] : lines
  return `# Makes of each ${type.singular} that the cluster is given: a ConfigMap with all its fields, to be replaced by what you need.
# Values come from the API and may hold anything: pass each through \`quote\`, or \`toJson\` where it is a list or an object.
# The bundle adds a mark, by which clusters report what is applied. So no \`wait: true\` here: the two would wait for each other.
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata:
  name: ${keyOf(endpoint)}
  namespace: flux-system
spec:
  inputsFrom:
    # By name: objects are kept when the provider goes. By label they would be deleted.
    - apiVersion: fluxcd.controlplane.io/v1
      kind: ResourceSetInputProvider
      name: ${keyOf(endpoint)}
  dependsOn:
    # A provider that was just made has no inputs yet: without this everything would be deleted until it has.
    - apiVersion: fluxcd.controlplane.io/v1
      kind: ResourceSetInputProvider
      name: ${keyOf(endpoint)}
      namespace: flux-system
      ready: true
  resourcesTemplate: |
${rendered.map((line) => `    ${line}\n`).join('')}`
}

function read(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? `inputs.${name}` : `get inputs "${name}"`
}

/** The condition for an enabled input: where the field may be missing, only an explicit false disables it. */
function isOn(type: RegisteredDelivery, name: string): string {
  return isAlwaysThere(type, name) ? read(name) : `ne (get inputs "${name}" | toString) "false"`
}

/** One line of the ConfigMap's data, or a guarded one where an input may lack the field. */
function dataLines(type: RegisteredDelivery, field: InputField): string[] {
  const line = `  ${keyOf(field.name)}: << ${written(type, field)} >>`
  const isThere = field.kind !== 'value' || isAlwaysThere(type, field.source)
  return isThere ? [line] : [`  <<- if hasKey inputs "${field.name}" >>`, line, '  <<- end >>']
}

function written(type: RegisteredDelivery, { kind, name, ...field }: InputField): string {
  const value = read(name)
  const schema = kind === 'value' && 'source' in field ? schemaOf(type, field.source) : undefined
  // A number arrives as a float, which is written with an exponent from a million on.
  if (schema?.type === 'integer') return `${value} | int64 | quote`
  return schema?.type === 'string' || schema?.type === 'boolean'
    ? `${value} | quote`
    : `${value} | toJson | quote`
}

function schemaOf(type: RegisteredType, source: string): SchemaObject | undefined {
  return type.schema.properties?.[source] ?? type.referenceSchema?.properties?.[source]
}

/** YAML reads some words as booleans, nulls or numbers: those are quoted. */
function keyOf(name: string): string {
  return /^(?:y|n|yes|no|on|off|true|false|null|~|[\d.+-].*)$/i.test(name) ? JSON.stringify(name) : name
}

/**
 * Whether every input has the field: it is required or has a default. A single dependency is left out where it is
 * unmet.
 */
function isAlwaysThere(type: RegisteredDelivery, source: string): boolean {
  const { referenceDefaults, definitionDefaults, waitsFor } = type.delivery
  if (waitsFor.includes(source) && schemaOf(type, source)?.type !== 'array') return false
  const isDefault = [referenceDefaults, definitionDefaults].some((defaults) =>
    Object.hasOwn(defaults, source),
  )
  return isDefault || Boolean(type.schema.required?.includes(source))
}
