// The shape of a resource file: Firestone's keys, with our own under `schema.x-flux`.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { JsonObject } from '../base/json.ts'
import type { SchemaObject } from '../base/json-schema.ts'
import { DOCUMENT_RULES, type DocumentRules } from '../domain/types/resource-type.ts'
import { RULE_DEPENDENCIES, RULE_KEYS, type RuleKeys } from './rule-keys.ts'

export interface QueryParam {
  readonly name: string
  readonly description?: string
  readonly schema?: SchemaObject
  readonly methods?: readonly string[]
}

/** How a type reaches clusters, or that it is the cluster type itself. */
export interface FluxSection extends RuleKeys {
  readonly singular?: string
  /** What the command line calls it. */
  readonly noun?: string
  /** Whether tools keep its documents for themselves; an export leaves them out. */
  readonly bookkeeping?: boolean
  /** Whether its documents decide about the whole fleet: callers whose scope is a part of it may not write them. */
  readonly fleet_wide?: boolean
  /** What its documents mean to the service itself: they obey the rules of that. */
  readonly rules?: DocumentRules
  readonly endpoint?: string
  readonly assigned_by?: string
  readonly reference?: { readonly [name: string]: SchemaObject }
  readonly enabled_by?: string
  readonly overrides?: readonly string[]
  readonly references?: { readonly [field: string]: string }
  readonly waits_among?: { readonly [field: string]: string }
  readonly patches?: boolean
  readonly reports_health?: boolean
  readonly input?: readonly (string | { readonly [group: string]: readonly string[] })[]
  readonly cluster?: {
    readonly dns: string
    readonly patches: string
    readonly deletion_protection: string
    readonly labels?: string
    readonly environment?: string
    readonly input: { readonly [name: string]: string }
    readonly list: readonly string[]
  }
}

/** HTTP methods of the list, and of one document in it. */
export interface MethodLists {
  readonly resource?: readonly string[]
  readonly instance?: readonly string[]
  readonly instance_attrs?: readonly string[]
}

/** A resource file, and where it was read from. */
export interface LoadedFile extends ResourceFile {
  readonly path: string
}

export interface ResourceFile {
  readonly kind: string
  readonly apiVersion: string
  readonly versionInPath?: boolean
  readonly methods?: MethodLists
  readonly security?: MethodLists & { readonly scheme?: { readonly [name: string]: JsonObject } }
  readonly default_query_params?: readonly { readonly name?: unknown }[]
  readonly metadata?: { readonly name?: string; readonly description?: string }
  readonly descriptions?: { readonly [level: string]: { readonly [method: string]: string } }
  readonly schema: {
    readonly key: { readonly name: string; readonly description?: string; readonly schema?: SchemaObject }
    readonly query_params?: readonly QueryParam[]
    readonly items: SchemaObject & { readonly properties: { readonly [name: string]: SchemaObject } }
    readonly 'x-flux'?: FluxSection
  }
}

const methods = {
  type: 'array',
  items: { enum: ['delete', 'get', 'head', 'options', 'patch', 'post', 'put'] },
} as const
const methodsByLevel = { resource: methods, instance: methods, instance_attrs: methods }
const name = { type: 'string', pattern: '^[a-z][a-z0-9_]*$' }
const names = { type: 'array', items: { type: 'string' }, uniqueItems: true }

const fluxSchema = {
  type: 'object',
  properties: {
    singular: { type: 'string', minLength: 1 },
    noun: { type: 'string', pattern: '^[a-z][a-z0-9]*(-[a-z0-9]+)*$' },
    bookkeeping: { type: 'boolean' },
    fleet_wide: { type: 'boolean' },
    rules: { enum: DOCUMENT_RULES },
    endpoint: { type: 'string', pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$' },
    assigned_by: name,
    reference: { type: 'object', additionalProperties: { type: 'object' } },
    enabled_by: { type: 'string' },
    overrides: names,
    references: { type: 'object', additionalProperties: { type: 'string' } },
    waits_among: { type: 'object', additionalProperties: { type: 'string', minLength: 1 } },
    patches: { type: 'boolean' },
    reports_health: { type: 'boolean' },
    ...RULE_KEYS,
    input: {
      type: 'array',
      items: {
        type: ['string', 'object'],
        minProperties: 1,
        maxProperties: 1,
        additionalProperties: { ...names, minItems: 1 },
      },
    },
    cluster: {
      type: 'object',
      properties: {
        dns: { type: 'string' },
        patches: { type: 'string' },
        deletion_protection: { type: 'string' },
        labels: { type: 'string' },
        environment: { type: 'string' },
        input: { type: 'object', minProperties: 1, additionalProperties: { type: 'string' } },
        list: names,
      },
      required: ['dns', 'patches', 'deletion_protection', 'input', 'list'],
      additionalProperties: false,
    },
  },
  dependentRequired: { endpoint: ['assigned_by', 'input'], assigned_by: ['endpoint'], ...RULE_DEPENDENCIES },
  additionalProperties: false,
}

/** Firestone is strict at the top and open under `schema`; so are we, and strict again inside `x-flux`. */
const fileSchema = {
  type: 'object',
  properties: {
    kind: name,
    apiVersion: { type: 'string', minLength: 1 },
    versionInPath: { type: 'boolean' },
    metadata: {
      type: 'object',
      properties: { name: { type: 'string' }, description: { type: 'string' } },
    },
    asyncapi: { type: 'object' },
    default_query_params: { type: 'array', items: { type: 'object' } },
    descriptions: {
      type: 'object',
      additionalProperties: { type: 'object', additionalProperties: { type: 'string' } },
    },
    methods: { type: 'object', properties: methodsByLevel, additionalProperties: false },
    security: {
      type: 'object',
      properties: { ...methodsByLevel, scheme: { type: 'object', additionalProperties: { type: 'object' } } },
      additionalProperties: false,
    },
    schema: {
      type: 'object',
      properties: {
        type: { const: 'array' },
        key: {
          type: 'object',
          properties: { name: { const: 'id' }, schema: { type: 'object' } },
          required: ['name'],
        },
        query_params: {
          type: 'array',
          items: {
            type: 'object',
            properties: { name: { type: 'string' }, schema: { type: 'object' }, methods },
            required: ['name'],
          },
        },
        items: {
          type: 'object',
          properties: {
            type: { const: 'object' },
            properties: { type: 'object', additionalProperties: { type: 'object' } },
            required: names,
          },
          required: ['properties'],
        },
        'x-flux': fluxSchema,
      },
      required: ['key', 'items'],
    },
  },
  required: ['kind', 'apiVersion', 'schema'],
  additionalProperties: false,
}

export const checkResourceFile: ValidateFunction = new Ajv2020({
  allErrors: true,
  allowUnionTypes: true,
  // The schema is our own: to hold it against that of schemas takes longer than all resource files.
  meta: false,
  validateSchema: false,
}).compile(fileSchema)
