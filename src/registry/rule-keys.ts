// The keys of `x-flux` that are rules for documents: their shape, and what the domain is given of them.
import { pointer } from '../base/json.ts'
import type { Delivery, Need, ReadField } from '../domain/types/resource-type.ts'
import { formatProblem, knownFormats } from './validator.ts'
import { checkPaths } from './value-paths.ts'

/** Regular expressions by field: a document is meant when one of them matches. */
export type Patterns = { readonly [field: string]: string }

export interface RuleKeys {
  /** Ids that no new document may have, each with the reason. */
  readonly reserved?: { readonly [id: string]: string }
  /** Ids of what every cluster has, assigned or not. */
  readonly on_every_cluster?: readonly string[]
  /** How many bytes the texts of a field may have together, keys included. */
  readonly max_bytes?: { readonly [field: string]: number }
  /** What else a cluster should be given with a document. */
  readonly needs?: readonly NeedKey[]
  /** What the names of patches look like; the first that fits the document counts. */
  readonly patch_names?: readonly { readonly format: string; readonly where?: Patterns }[]
  /** The field that is the version of a document; the first that fits the document counts. */
  readonly version?: readonly { readonly field: string; readonly where?: Patterns }[]
}

interface NeedKey {
  readonly field: string
  readonly type: string
  readonly may_be_missing?: boolean
  readonly where?: Patterns
}

const text = { type: 'string', minLength: 1 }
const patterns = { type: 'object', minProperties: 1, additionalProperties: text }

export const RULE_KEYS = {
  reserved: { type: 'object', additionalProperties: text },
  on_every_cluster: { type: 'array', items: text, uniqueItems: true },
  max_bytes: { type: 'object', additionalProperties: { type: 'integer', minimum: 1 } },
  needs: {
    type: 'array',
    items: {
      type: 'object',
      properties: { field: text, type: text, may_be_missing: { type: 'boolean' }, where: patterns },
      required: ['field', 'type'],
      additionalProperties: false,
    },
  },
  patch_names: {
    type: 'array',
    items: {
      type: 'object',
      properties: { format: { enum: knownFormats() }, where: patterns },
      required: ['format'],
      additionalProperties: false,
    },
  },
  version: {
    type: 'array',
    minItems: 1,
    items: {
      type: 'object',
      properties: { field: text, where: patterns },
      required: ['field'],
      additionalProperties: false,
    },
  },
}

/** These rules are about what clusters are assigned: only types that they can be assigned may have them. */
export const RULE_DEPENDENCIES = {
  on_every_cluster: ['endpoint'],
  needs: ['endpoint'],
  patch_names: ['patches'],
  version: ['endpoint'],
}

/** The fields that rules name, each with the key that names it. */
export function fieldsOfRules({
  max_bytes,
  needs = [],
  patch_names = [],
  version = [],
}: RuleKeys): [key: string, field: string][] {
  const inPatterns = [...needs, ...patch_names, ...version].flatMap(({ where }) => Object.keys(where ?? {}))
  return [
    ...Object.keys(max_bytes ?? {}).map((field): [string, string] => ['max_bytes', field]),
    ...needs.flatMap(({ field }): [string, string][] => (field === 'id' ? [] : [['needs', field]])),
    ...version.map(({ field }): [string, string] => ['version', field]),
    ...inPatterns.map((field): [string, string] => ['where', field]),
  ]
}

/** Whether one of the patterns matches; without patterns everything does. */
export function buildMatcher(where: Patterns | undefined): (read: ReadField) => boolean {
  if (!where) return () => true
  const tests = Object.entries(where).map(([field, pattern]) => [field, new RegExp(pattern, 'u')] as const)
  return (read) =>
    tests.some(([field, pattern]) => {
      const value = read(field)
      return typeof value === 'string' && pattern.test(value)
    })
}

/** Of several keys for one type, the first with a value counts. */
export function buildNeeds({ needs = [] }: RuleKeys): Delivery['needs'] {
  const keys = needs.map(({ where, ...key }) => ({ ...key, matches: buildMatcher(where) }))
  return {
    types: [...new Set(needs.map(({ type }) => type))],
    fields: [
      ...new Set(
        needs.flatMap(({ field, where, may_be_missing }) =>
          may_be_missing ? [] : [field, ...Object.keys(where ?? {})],
        ),
      ),
    ],
    of(read) {
      const found = new Map<string, Need>()
      for (const { field, type, may_be_missing = false, matches } of keys) {
        const id = found.has(type) ? undefined : read(field)
        if (typeof id === 'string' && matches(read))
          found.set(type, { type, id, mayBeMissing: may_be_missing })
      }
      return [...found.values()]
    },
  }
}

export function buildPatchNames({ patch_names }: RuleKeys): Delivery['patchNames'] {
  if (!patch_names) return undefined
  const keys = patch_names.map(({ format, where }) => ({ format, matches: buildMatcher(where) }))
  const formatOf = (read: ReadField): string | undefined => keys.find(({ matches }) => matches(read))?.format
  return {
    fields: [...new Set(patch_names.flatMap(({ where }) => Object.keys(where ?? {})))],
    formatOf,
    check(read, values) {
      const format = formatOf(read)
      if (format === undefined) return []
      const names = Object.keys(values)
      const details = names.flatMap((name) => {
        const message = formatProblem(format, name)
        return message === undefined ? [] : [{ path: pointer('', name), message }]
      })
      return details.length > 0 || format !== 'value-path' ? details : checkPaths(names)
    },
  }
}

export function buildVersionField({ version }: RuleKeys): Delivery['versionField'] {
  if (!version) return undefined
  const keys = version.map(({ field, where }) => ({ field, matches: buildMatcher(where) }))
  return (read) => keys.find(({ matches }) => matches(read))?.field
}
