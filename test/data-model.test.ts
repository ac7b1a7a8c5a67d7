// The tables of docs/data-model.md are made from the resource files; `DOCS_UPDATE=1` writes them.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'

const ROOT = join(import.meta.dirname, '..')
const PAGE = join(ROOT, 'docs/data-model.md')
const BEGIN = '<!-- types: made by test/data-model.test.ts -->'
const END = '<!-- end of types -->'

interface Schema {
  readonly type?: string
  readonly description?: string
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly default?: unknown
  readonly example?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
}

interface ResourceFile {
  readonly kind: string
  readonly metadata: { readonly description: string }
  readonly schema: {
    readonly key: { readonly schema: Schema; readonly description: string }
    readonly items: Schema
    readonly 'x-flux': {
      readonly singular: string
      readonly endpoint?: string
      readonly assigned_by?: string
      readonly overrides?: readonly string[]
      readonly reference?: Readonly<Record<string, Schema>>
      readonly enabled_by?: string
    }
  }
}

const files = readdirSync(join(ROOT, 'resources'))
  .sort()
  .map((name) => ({
    name,
    file: parse(readFileSync(join(ROOT, 'resources', name), 'utf8')) as ResourceFile,
  }))

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ').trim()
}

function code(value: unknown): string {
  return value === undefined ? '' : `\`${cell(typeof value === 'string' ? value : JSON.stringify(value))}\``
}

function typeOf(schema: Schema): string {
  if (schema.const !== undefined) return code(schema.const)
  if (schema.enum) return `one of ${schema.enum.map(code).join(', ')}`
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(' or ')
  if (schema.type === 'array') return `list of ${schema.items ? plural(schema.items) : 'anything'}`
  if (schema.type === 'object' && typeof schema.additionalProperties === 'object') {
    return `map of ${plural(schema.additionalProperties)}`
  }
  return [schema.format ?? schema.type ?? 'any', limitsOf(schema)].filter((part) => part !== '').join(', ')
}

function plural(schema: Schema): string {
  const { minLength: _shortest, maxLength: _longest, ...unlimited } = schema
  const one = typeOf(unlimited)
  return /^(?:string|object|integer|map|list)/.test(one) ? one.replace(/^(\w+)/, '$1s') : one
}

function limitsOf({ minimum, maximum, maxLength }: Schema): string {
  if (minimum !== undefined && maximum !== undefined) return `${minimum} to ${maximum}`
  if (minimum !== undefined) return `at least ${minimum}`
  if (maximum !== undefined) return `at most ${maximum}`
  return maxLength === undefined ? '' : `at most ${maxLength} characters`
}

interface Row {
  readonly path: string
  readonly schema: Schema
  readonly isRequired: boolean
}

/** Fields of objects and of lists of objects stand below them. */
function* rowsOf(schema: Schema, prefix = ''): Generator<Row> {
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const path = `${prefix}${name}`
    yield { path, schema: field, isRequired: schema.required?.includes(name) ?? false }
    if (field.properties) yield* rowsOf(field, `${path}.`)
    if (field.items?.properties) yield* rowsOf(field.items, `${path}[].`)
  }
}

function tableOf(rows: Iterable<Row>): string {
  const lines = [...rows].map(({ path, schema, isRequired }) =>
    [
      `\`${path}\`${isRequired ? ' **required**' : ''}`,
      typeOf(schema),
      code(schema.default),
      code(schema.example),
      cell(schema.description ?? ''),
    ].join(' | '),
  )
  return [
    '| field | type | default | example | |',
    '|---|---|---|---|---|',
    ...lines.map((line) => `| ${line} |`),
  ].join('\n')
}

function lists(): Row[] {
  return files.flatMap(({ file }) => {
    const { assigned_by, singular } = file.schema['x-flux']
    const description = `Which ${singular} definitions the cluster gets, in this order. See [references](#${anchor(file)}).`
    const schema = { type: 'array', items: { type: 'object' }, default: [], description }
    return assigned_by === undefined ? [] : [{ path: assigned_by, schema, isRequired: false }]
  })
}

function anchor({ kind }: ResourceFile): string {
  return kind
}

function referenceOf({ schema }: ResourceFile): string {
  const { assigned_by, overrides = [], reference = {} } = schema['x-flux']
  if (assigned_by === undefined) return ''
  const own = Object.entries(reference).map(([path, field]) => ({ path, schema: field, isRequired: false }))
  const overridden = overrides.map((path) => {
    const description = 'Override: wins over the catalog on this cluster.'
    const { type, items, additionalProperties, enum: values, format } = schema.items.properties?.[path] ?? {}
    const field = { type, items, additionalProperties, enum: values, format, description }
    return { path, schema: JSON.parse(JSON.stringify(field)) as Schema, isRequired: false }
  })
  const id = { path: 'id', schema: { type: 'string', description: 'Which definition.' }, isRequired: true }
  return `\nA reference in a cluster's \`${assigned_by}\`:\n\n${tableOf([id, ...own, ...overridden])}\n`
}

function sectionOf({ name, file }: (typeof files)[number]): string {
  const { key, items } = file.schema
  const { endpoint, singular } = file.schema['x-flux']
  const id = { path: 'id', schema: { ...key.schema, description: key.description }, isRequired: true }
  const more = file.kind === 'clusters' ? lists() : []
  const served = endpoint ? ` Polled at \`…/${endpoint}\`.` : ''
  return `## ${file.kind}\n\n${cell(file.metadata.description)}${served} One ${singular}, from \`resources/${name}\`:\n\n${tableOf([id, ...rowsOf(items), ...more])}\n${referenceOf(file)}`
}

test('docs/data-model.md has every field of every resource file', () => {
  const page = readFileSync(PAGE, 'utf8')
  const [before, rest] = page.split(BEGIN)
  const after = rest?.split(END)[1]
  assert.ok(before !== undefined && after !== undefined)
  const made = `${before}${BEGIN}\n\n${files.map(sectionOf).join('\n')}\n${END}${after}`
  if (process.env.DOCS_UPDATE === '1') writeFileSync(PAGE, made)
  assert.equal(readFileSync(PAGE, 'utf8'), made)
})
