// One flag for every field of a document, and back from the flags to the fields.
import { type Command, Option } from 'commander'
import type { Json, JsonObject } from '../../base/json.ts'
import type { SchemaObject } from '../../base/json-schema.ts'
import type { Noun } from '../server/nouns.ts'
import { parsePair, parseValue } from './field-values.ts'
import { collect } from './option-parsers.ts'
import { WRITE_FLAG_NAMES } from './write-flags.ts'

type Field = readonly [name: string, schema: SchemaObject]
type Values = Readonly<Record<string, unknown>>

/** How a field is given: once, as key=value pairs, as pairs that may repeat a key, or item by item. */
function shapeOf({ type, additionalProperties, items }: SchemaObject): 'one' | 'pairs' | 'lists' | 'items' {
  if (type === 'array' && items) return 'items'
  const member =
    type === 'object' && typeof additionalProperties === 'object' ? additionalProperties.type : 'object'
  if (member === 'object') return 'one'
  return member === 'array' ? 'lists' : 'pairs'
}

/** The flag of a field: `labels` is given as --label, one at a time. */
function flagName([name, schema]: Field): string {
  const singular = shapeOf(schema) === 'one' ? name : name.replace(/ies$/, 'y').replace(/s$/, '')
  return `--${singular.replaceAll('_', '-')}`
}

function toOption(field: Field, isRequired = false): Option {
  const [, schema] = field
  const { description = '', type, items } = schema
  const flag = flagName(field)
  const about = `${description.replace(/\.$/, '')}${isRequired ? ' (required)' : defaultOf(schema)}`
  const option = (what: string, more = '') => new Option(`${flag} ${what}`, `${about}${more}`)
  switch (shapeOf(schema)) {
    case 'pairs':
    case 'lists':
      return option('<key=value>', ' (repeatable)').argParser(collect)
    case 'items':
      return items?.properties
        ? option('<key=value,…>', ` (repeatable; ${Object.keys(items.properties).join(', ')})`).argParser(
            collect,
          )
        : option('<value>', ' (repeatable)').argParser(collect)
    default:
      if (type === 'boolean') return option('[true|false]')
      if (type === 'object' || type === 'array') return option('<json>')
      return schema.enum
        ? option(`<${schema.enum.join('|')}>`)
        : option(type === 'integer' ? '<number>' : '<text>')
  }
}

function defaultOf({ default: value }: SchemaObject): string {
  const isEmpty = value === undefined || (typeof value === 'object' && Object.keys(value ?? {}).length === 0)
  return isEmpty ? '' : ` (default ${JSON.stringify(value)})`
}

interface FlagOptions {
  /** Flags that the command gets later. */
  readonly later?: readonly string[]
  /** The fields that have to be given. */
  readonly required?: readonly string[]
  /** Whether help leaves them out. */
  readonly isHidden?: boolean
}

/**
 * Adds a flag for each field; returns the fields that have one. A field whose flag has the name of a flag of the
 * command, of the program, of every write or of `later` gets none.
 */
export function addFieldFlags(
  command: Command,
  fields: readonly Field[],
  program: Command,
  { later = [], required = [], isHidden = false }: FlagOptions = {},
): readonly Field[] {
  const reserved = [...program.options.map(({ long }) => long), ...WRITE_FLAG_NAMES]
  return fields.filter((field) => {
    const option = toOption(field, required.includes(field[0]))
    const taken = [...reserved, ...later, '--help', ...command.options.map(({ long }) => long)]
    if (taken.includes(option.long)) return false
    command.addOption(isHidden ? option.hideHelp() : option)
    return true
  })
}

/** What clusters can have differently, as flags of a command that has flags for the definition itself: `--cluster-oci-tag`. */
export function addReferenceFlags(
  command: Command,
  program: Command,
  { delivery }: Noun,
  { isHidden = false } = {},
): readonly Field[] {
  const { id: _id, ...properties } = delivery?.reference.properties ?? {}
  const fields = Object.entries(properties).map(([name, schema]): Field => {
    return [name === delivery?.enabled_by ? name : `${OF_CLUSTER}${name}`, schema]
  })
  return addFieldFlags(command, fields, program, { isHidden })
}

const OF_CLUSTER = 'cluster_'

/** The reference that such flags ask for. */
export function referenceOf(given: JsonObject): JsonObject {
  const fields = Object.entries(given).map(([name, value]): [string, Json] => [
    name.replace(OF_CLUSTER, ''),
    value,
  ])
  return Object.fromEntries(fields)
}

/** Flags of fields with values that somebody could have: ` --environment dev`. */
export function exampleFlags(fields: readonly Field[]): string {
  return fields.map((field) => ` ${flagName(field)} ${exampleOf(field[1])}`).join('')
}

function exampleOf({
  enum: values,
  format,
  items,
  type,
  example,
}: SchemaObject & { example?: unknown }): string {
  if (typeof example === 'string') return example
  if (values) return String(values[0])
  if (format === 'hostname') return 'ID.k8s.example.com'
  if (items?.properties)
    return Object.entries(items.properties)
      .filter(([name]) => items.required?.includes(name) ?? true)
      .map(([name, schema]) => `${name}=${schema.enum?.[0] ?? 'dev-team'}`)
      .join(',')
  return type === 'boolean' ? 'true' : type === 'integer' ? '3' : 'TEXT'
}

/** Places in a document, as the flags have them: `/cluster_dns` is --cluster-dns. */
export function inFieldFlags(fields: readonly Field[]): (text: string) => string {
  const flags = new Map(fields.map((field) => [field[0], flagName(field)]))
  return (text) =>
    text.replaceAll(/(^|[\s(])\/([a-z0-9_]+)(?=\s|$)/g, (all, before: string, name: string) =>
      flags.has(name) ? `${before}${flags.get(name)}` : all,
    )
}

/** The value that commander read for a flag. */
export function givenFor(flag: string, values: Values): unknown {
  return values[new Option(`${flag} <x>`).attributeName()]
}

/** The fields that flags were given for. */
export function readFieldFlags(fields: readonly Field[], values: Values): JsonObject {
  return Object.fromEntries(
    fields.flatMap((field): [string, Json][] => {
      const [name, schema] = field
      const flag = flagName(field)
      const given = givenFor(flag, values)
      if (given === undefined) return []
      // A flag without a value means true.
      return [[name, readField(schema, given === true ? 'true' : (given as string | string[]), flag)]]
    }),
  )
}

function readField(schema: SchemaObject, given: string | readonly string[], flag: string): Json {
  if (typeof given === 'string') return parseValue(schema, given, flag)
  const shape = shapeOf(schema)
  if (shape === 'items') return given.flatMap((text) => parseValue(schema, text, flag) as Json[])
  const member = schema.additionalProperties as SchemaObject
  const pairs = given
    .map((text) => parsePair(text, flag))
    .map(([key, text]) => [key, parseValue(member, text, flag)] as const)
  if (shape === 'pairs') return Object.fromEntries(pairs)
  const lists = Map.groupBy(pairs, ([key]) => key)
  return Object.fromEntries(
    [...lists].map(([key, each]) => [key, each.flatMap(([, value]) => value as Json[])]),
  )
}
