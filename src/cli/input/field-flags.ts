// One flag for every field of a document, and back from the flags to the fields.
import { type Command, Option } from 'commander'
import type { Json, JsonObject } from '../../base/json.ts'
import type { SchemaObject } from '../../base/json-schema.ts'
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

function toOption(field: Field): Option {
  const [, schema] = field
  const { description = '', type, items } = schema
  const flag = flagName(field)
  const about = `${description.replace(/\.$/, '')}${defaultOf(schema)}`
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

/**
 * Adds a flag for each field; returns the fields that have one. A field whose flag has the name of a flag of the
 * command, of the program, of every write or of `later` gets none.
 */
export function addFieldFlags(
  command: Command,
  fields: readonly Field[],
  program: Command,
  later: readonly string[] = [],
): readonly Field[] {
  const reserved = [...program.options.map(({ long }) => long), ...WRITE_FLAG_NAMES]
  return fields.filter((field) => {
    const option = toOption(field)
    const taken = [...reserved, ...later, '--help', ...command.options.map(({ long }) => long)]
    if (taken.includes(option.long)) return false
    command.addOption(option)
    return true
  })
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
