// `explain`: what the fields of a type are, from the server's schema.
import type { Command } from 'commander'
import type { SchemaObject } from '../../base/json-schema.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { UnknownName, usage } from '../failure.ts'
import { closest } from '../input/closest.ts'
import type { Look } from '../output/print.ts'
import { namesOf } from '../server/nouns.ts'

export function defineExplain(command: Command, { run }: Tools): void {
  command
    .argument(
      '<type[.field]>',
      'a type, or a field of one: cluster, component.oci_tag, rolebinding.subjects.kind',
    )
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} explain component\n  ${PROGRAM} explain component.oci_tag\n  ${PROGRAM} explain rolebinding.subjects -o json`,
    )
    .action(
      run(async (session, text: string) => {
        const [name = '', ...path] = text.split('.')
        const noun = session.nouns.find((each) => namesOf(each).includes(name))
        if (!noun)
          throw new UnknownName(
            `"${name}" is no type: there are ${session.nouns.map((each) => each.noun).join(', ')}`,
          )
        const described = { description: noun.description, ...noun.schema }
        const schema = path.reduce<SchemaObject>((above, step, i) => {
          const below = childOf(above, step)
          if (below) return below
          const known = Object.keys(membersOf(above))
          const near = closest(step, known)
          const place = [name, ...path.slice(0, i)].join('.')
          throw usage(
            `${place} has no field "${step}"${known.length > 0 ? `: there are ${known.join(', ')}` : ''}`,
            near.length > 0 ? `did you mean ${near.join(' or ')}?` : undefined,
          )
        }, described)
        await session.print({ value: schema, human: (look) => describe(look, text, schema) })
      }),
    )
}

function membersOf(schema: SchemaObject): Readonly<Record<string, SchemaObject>> {
  return schema.properties ?? schema.items?.properties ?? {}
}

function childOf(schema: SchemaObject, step: string): SchemaObject | undefined {
  const members = membersOf(schema)
  const name = step.replaceAll('-', '_')
  if (Object.hasOwn(members, name)) return members[name]
  const { additionalProperties: other } = schema
  return typeof other === 'object' ? other : undefined
}

function describe(look: Look, name: string, schema: SchemaObject): string {
  const { description = '', default: preset, enum: values, required = schema.items?.required ?? [] } = schema
  const rows: [string, string][] = [
    ['Name:', name],
    ['Type:', typeOf(schema)],
    ...(values ? ([['One of:', values.join(', ')]] as [string, string][]) : []),
    ...(preset === undefined ? [] : ([['Default:', JSON.stringify(preset)]] as [string, string][])),
    ...limits(schema),
  ]
  const members = Object.entries(membersOf(schema))
  const fields = members.map(([field, each]) => [
    field,
    typeOf(each),
    required.includes(field) ? 'yes' : '',
    each.description ?? '',
  ])
  const table = fields.length > 0 ? `\n${look.table(['FIELD', 'TYPE', 'REQUIRED', 'ABOUT'], fields)}` : ''
  return `${look.pairs(rows)}${description ? `\n${description}\n` : ''}${table}`
}

const LIMITS = ['format', 'pattern', 'minLength', 'maxLength', 'minimum', 'maximum', 'minItems', 'maxItems']

function limits(schema: SchemaObject): [string, string][] {
  const all = schema as unknown as Readonly<Record<string, unknown>>
  return LIMITS.flatMap((name): [string, string][] =>
    all[name] === undefined ? [] : [[`${name}:`, String(all[name])]],
  )
}

function typeOf({ type, items, additionalProperties: other }: SchemaObject): string {
  if (items) return `list of ${typeOf(items)}`
  if (typeof other === 'object') return `map of ${typeOf(other)}`
  return Array.isArray(type) ? type.join(' or ') : String(type ?? 'any')
}
