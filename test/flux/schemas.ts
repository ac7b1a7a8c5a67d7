// Checks objects as an API server would: against the real schemas of Kubernetes, Flux and Prometheus, and for what it
// demands beside them. The schemas are what tools/flux/install.sh puts into .tools/schemas.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020, type AnySchemaObject, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import type { DataValidateFunction } from 'ajv/dist/types/index.js'
import { isObject, pointer } from '../../src/base/json.ts'
import { parseObjects } from './tools.ts'

/** What is wrong with objects that are applied together: object, place and problem of each; nothing when all is well. */
export function validateObjects(objects: readonly unknown[]): string[] {
  const seen = new Set<string>()
  return objects.flatMap((object, i) => {
    if (!isKubernetesObject(object)) return [`object ${i} has no apiVersion, kind or metadata`]
    const { apiVersion, kind, metadata } = object
    const name = [metadata.namespace, metadata.name].filter((part) => part !== undefined).join('/')
    const say = (problem: string) => `${kind} ${name}: ${problem}`
    const known = loadKinds().get(`${apiVersion} ${kind}`)
    if (!known) return [say(`no such kind in ${apiVersion}`)]
    // As in a cluster, versions of a kind are views of one object.
    const identity = [groupOf(apiVersion), kind, name].join(' ')
    const twice = seen.has(identity) ? ['is there twice'] : []
    seen.add(identity)
    return [...twice, ...checkMetadata(object, known.namespaced), ...checkSchema(object, known)].map(say)
  })
}

interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: Readonly<Record<string, unknown>>
  readonly [field: string]: unknown
}

interface Kind {
  readonly namespaced: boolean
  readonly schema: AnySchemaObject
  validate?: ValidateFunction
}

function isKubernetesObject(value: unknown): value is KubernetesObject {
  if (!isObject(value)) return false
  return typeof value.apiVersion === 'string' && typeof value.kind === 'string' && isObject(value.metadata)
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? (apiVersion.split('/')[0] as string) : ''
}

// Metadata

const PART = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?'
const SUBDOMAIN = `${PART}(?:\\.${PART})*`
const QUALIFIED = '[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?'
const NAME = new RegExp(`^(?=.{1,253}$)${SUBDOMAIN}$`)
const NAMESPACE = new RegExp(`^(?=.{1,63}$)${PART}$`)
const LABEL_KEY = new RegExp(`^(?:(?=[^/]{1,253}/)${SUBDOMAIN}/)?${QUALIFIED}$`)
const LABEL_VALUE = new RegExp(`^(?:${QUALIFIED})?$`)
const DATA_KEY = /^(?!\.\.)(?!\.$)[-._a-zA-Z0-9]{1,253}$/

/** Names of kinds, or of all kinds of a group, that are not DNS subdomains. */
const OTHER_NAMES: Readonly<Record<string, RegExp>> = {
  'v1 Namespace': NAMESPACE,
  // A digit may come first since Kubernetes 1.36, but clusters may be older.
  'v1 Service': /^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$/,
  'rbac.authorization.k8s.io': /^(?!\.\.?$)[^/%]+$/,
}

function checkMetadata(object: KubernetesObject, namespaced: boolean): string[] {
  const { apiVersion, kind, metadata } = object
  const { name, namespace } = metadata
  const problems: string[] = []
  const form = OTHER_NAMES[`${apiVersion} ${kind}`] ?? OTHER_NAMES[groupOf(apiVersion)] ?? NAME
  if (typeof name !== 'string' || !form.test(name)) problems.push('/metadata/name is not a valid name')
  if (namespaced && (typeof namespace !== 'string' || !NAMESPACE.test(namespace))) {
    problems.push('/metadata/namespace is not a valid namespace')
  }
  if (!namespaced && namespace !== undefined) problems.push('/metadata/namespace: the kind has none')
  problems.push(...checkLabels(metadata, '/metadata'))
  const template = isObject(object.spec) && isObject(object.spec.template) && object.spec.template.metadata
  if (isObject(template)) problems.push(...checkLabels(template, '/spec/template/metadata'))
  if (kind === 'ConfigMap' || kind === 'Secret') {
    for (const key of ['data', 'binaryData', 'stringData'].flatMap((field) => keysOf(object[field]))) {
      if (!DATA_KEY.test(key)) problems.push(`/data: "${key}" is not a valid key`)
    }
  }
  return problems
}

function checkLabels(metadata: Readonly<Record<string, unknown>>, path: string): string[] {
  const { labels, annotations } = metadata
  const keys = [...keysOf(labels), ...keysOf(annotations).map((key) => key.toLowerCase())]
  const values = isObject(labels) ? Object.values(labels) : []
  return [
    ...keys.filter((key) => !LABEL_KEY.test(key)).map((key) => `${path}: "${key}" is not a valid key`),
    ...values
      .filter((value) => typeof value === 'string' && !LABEL_VALUE.test(value))
      .map((value) => `${path}/labels: "${value}" is not a valid value`),
  ]
}

function keysOf(value: unknown): string[] {
  return isObject(value) ? Object.keys(value) : []
}

// Schemas

const SCHEMAS = join(import.meta.dirname, '../../.tools/schemas')
const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'

const QUANTITY = '^[+-]?(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$'
/** What the published schemas of Kubernetes say more narrowly than its API servers. */
const DEFINITIONS: Readonly<Record<string, AnySchemaObject>> = {
  'io.k8s.apimachinery.pkg.api.resource.Quantity': { type: ['string', 'number'], pattern: QUANTITY },
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString': { type: ['integer', 'string'] },
}
const PROTOCOLS = ['TCP', 'UDP', 'SCTP']
/** The published schemas have no enums; these are the ones that are easy to miss. */
const ENUMS: Readonly<Record<string, readonly string[]>> = {
  'io.k8s.api.core.v1.Container.imagePullPolicy': ['Always', 'IfNotPresent', 'Never'],
  'io.k8s.api.core.v1.ContainerPort.protocol': PROTOCOLS,
  'io.k8s.api.core.v1.PodSpec.restartPolicy': ['Always', 'OnFailure', 'Never'],
  'io.k8s.api.core.v1.ServicePort.protocol': PROTOCOLS,
  'io.k8s.api.core.v1.ServiceSpec.type': ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'],
  'io.k8s.api.apps.v1.DeploymentStrategy.type': ['Recreate', 'RollingUpdate'],
  'io.k8s.api.networking.v1.NetworkPolicyPort.protocol': PROTOCOLS,
}
/** What a FluxInstance adds to the kinds that the Alerts and Receivers of its Flux may refer to. */
const OPERATOR_KINDS = ['FluxInstance', 'ResourceSet', 'ResourceSetInputProvider']

const ajv = new Ajv2020({
  allErrors: true,
  strict: false,
  validateSchema: false,
  useDefaults: true, // rules see objects with their defaults
  logger: false, // formats that are unknown here are unknown to API servers, too
  code: { regExp: Object.assign(goRegExp, { code: 'goRegExp' }) },
  formats: {
    int32: { type: 'number', validate: (value: number) => value >= -(2 ** 31) && value < 2 ** 31 },
    byte: /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/,
    'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i,
  },
})
ajv.addKeyword({
  keyword: 'x-kubernetes-list-map-keys',
  type: 'array',
  error: { message: 'has two items with the same key' },
  validate: (keys: readonly string[], items: readonly Readonly<Record<string, unknown>>[]) =>
    new Set(items.map((item) => JSON.stringify(keys.map((key) => item?.[key])))).size === items.length,
})
ajv.addKeyword({
  keyword: 'x-kubernetes-validations',
  compile: (rules: readonly Rule[]) => {
    // Rules on oldSelf are about updates.
    const checks = rules.filter(({ rule }) => !/\boldSelf\b/.test(rule)).map(compileRule)
    const validate: DataValidateFunction = (self: unknown) => {
      validate.errors = checks.flatMap((check) => check(self))
      return validate.errors.length === 0
    }
    return validate
  },
})

function checkSchema(object: KubernetesObject, kind: Kind): string[] {
  kind.validate ??= ajv.compile(kind.schema)
  const errors = kind.validate(structuredClone(object)) ? [] : (kind.validate.errors ?? [])
  // Rules take for granted that the schema holds.
  const plain = errors.filter(({ keyword }) => keyword !== 'rule')
  return (plain.length > 0 ? plain : errors).map(describe)
}

function describe({ keyword, params, instancePath: path, message }: ErrorObject): string {
  const { additionalProperty: extra } = params
  if (keyword === 'additionalProperties') return `${pointer(path, extra)} is an unknown field`
  if (keyword === 'required') return `${pointer(path, params.missingProperty)} is required`
  if (keyword === 'enum') return `${path} must be one of ${params.allowedValues.join(', ')}`
  return `${path} ${message}`
}

let kinds: ReadonlyMap<string, Kind> | undefined

/** Every kind that can be made, by "apiVersion Kind". */
function loadKinds(): ReadonlyMap<string, Kind> {
  if (!existsSync(SCHEMAS)) throw new Error('there are no schemas: run `make test-flux`, which installs them')
  kinds ??= new Map([...loadBuiltIns(), ...loadCustom()])
  return kinds
}

/** From the description of the Kubernetes API: what may be posted, and whether that goes to a namespace. */
function loadBuiltIns(): [string, Kind][] {
  const { paths, definitions } = JSON.parse(readFileSync(join(SCHEMAS, 'kubernetes.json'), 'utf8'))
  for (const [field, values] of Object.entries(ENUMS)) {
    const dot = field.lastIndexOf('.')
    definitions[field.slice(0, dot)].properties[field.slice(dot + 1)].enum = values
  }
  ajv.addSchema({ $id: 'kubernetes', definitions: { ...mapValues(definitions, close), ...DEFINITIONS } })
  return Object.entries<AnySchemaObject>(paths).flatMap(([path, { post }]): [string, Kind][] => {
    const body = post?.parameters?.find((parameter: AnySchemaObject) => parameter.in === 'body')
    if (!body?.schema?.$ref || path.includes('{name}')) return []
    const { group, version, kind } = post['x-kubernetes-group-version-kind']
    const schema = { $ref: `kubernetes${body.schema.$ref}` }
    const apiVersion = group ? `${group}/${version}` : version
    return [[`${apiVersion} ${kind}`, { namespaced: path.includes('{namespace}'), schema }]]
  })
}

/** From the CustomResourceDefinitions among the manifests. */
function loadCustom(): [string, Kind][] {
  const files = readdirSync(SCHEMAS).filter((file) => file.endsWith('.yaml'))
  const manifests = files.flatMap((file) => parseObjects(readFileSync(join(SCHEMAS, file), 'utf8')))
  const custom = (manifests as AnySchemaObject[]).filter(({ kind }) => kind === 'CustomResourceDefinition')
  return custom.flatMap(({ spec: { group, names, scope, versions } }) =>
    (versions as AnySchemaObject[])
      .filter(({ served }) => served)
      .map((version): [string, Kind] => {
        const schema = close(version.schema.openAPIV3Schema)
        const { metadata, spec } = schema.properties
        Object.assign(metadata, { $ref: `kubernetes#/definitions/${OBJECT_META}` })
        if (group === 'notification.toolkit.fluxcd.io') {
          const { eventSources, resources } = spec.properties
          const sources = eventSources ?? resources
          sources?.items.properties.kind.enum.push(...OPERATOR_KINDS)
        }
        return [`${group}/${version.name} ${names.kind}`, { namespaced: scope === 'Namespaced', schema }]
      }),
  )
}

/** A schema that refuses unknown fields wherever it names the known ones. */
function close(schema: AnySchemaObject): AnySchemaObject {
  const { properties, additionalProperties, items } = schema
  const open = additionalProperties ?? schema['x-kubernetes-preserve-unknown-fields'] ?? false
  return {
    ...schema,
    ...(properties && { properties: mapValues(properties, close), additionalProperties: open }),
    ...(isObject(additionalProperties) && { additionalProperties: close(additionalProperties) }),
    ...(items && { items: close(items) }),
    ...(schema['x-kubernetes-list-type'] === 'set' && { uniqueItems: true }),
  }
}

function mapValues<T, U>(object: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]))
}

// What is written in the languages of Go: patterns, and rules in CEL

function goRegExp(pattern: string, flags: string): RegExp {
  return pattern.includes('(?i)')
    ? new RegExp(pattern.replace('(?i)', ''), `${flags}i`)
    : new RegExp(pattern, flags)
}

interface Rule {
  readonly rule: string
  readonly message: string
}

const CEL_FUNCTIONS = /^(?:has|size|startsWith|endsWith|contains|substring|matches|all|exists_one)$/

/** The rules of Flux use little of CEL, which is JavaScript but for some names; a rule that uses more is thrown. */
function compileRule({ rule, message }: Rule): (self: unknown) => Partial<ErrorObject>[] {
  const strings = rule.match(/'(?:[^'\\]|\\.)*'/g) ?? []
  const bare = rule.replaceAll(/'(?:[^'\\]|\\.)*'/g, "''")
  const foreign = (bare.match(/\w+(?=\()/g) ?? []).filter((name) => !CEL_FUNCTIONS.test(name))
  if (foreign.length > 0) throw new Error(`no way to check ${foreign} in the rule ${rule}`)
  const code = bare
    .replaceAll(/[!=]=/g, '$&=')
    .replaceAll(/\bhas\(([\w.]+)\)/g, '($1 !== undefined)')
    .replaceAll(/\bsize\(([\w.]+)\)/g, '$1.length')
    .replaceAll(/([\w.]+)\.matches\(''\)/g, "new RegExp('').test($1)")
    .replaceAll(/([\w.]+)\.exists_one\((\w+), ([^()]+)\)/g, '($1.filter(($2) => $3).length === 1)')
    .replaceAll(/\.all\((\w+), /g, '.every(($1) => ')
    .replaceAll('.contains(', '.includes(')
    .replaceAll("''", () => strings.shift() ?? '')
  const holds = new Function('self', `return ${code}`)
  return (self) => {
    try {
      if (holds(self)) return []
    } catch (error) {
      // A rule that reads what is not there is broken to CEL, too.
      if (!(error instanceof TypeError)) throw error
    }
    return [{ keyword: 'rule', params: {}, message }]
  }
}
