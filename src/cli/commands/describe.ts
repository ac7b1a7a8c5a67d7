// `cluster describe`: everything about one cluster, on one screen.
import type { Command } from 'commander'
import { equalJson, type Json, type JsonObject } from '../../base/json.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { parseAt } from '../input/moments.ts'
import { cell } from '../output/document-columns.ts'
import type { Look } from '../output/print.ts'
import { revisionTable } from '../output/revision-table.ts'
import { plain } from '../output/terminal.ts'
import { type ExplainedInputs, readInputs } from '../server/cluster-inputs.ts'
import { fieldsOf, type Noun } from '../server/nouns.ts'
import { getDocument } from '../server/read-documents.ts'

const LAST_CHANGES = 5

export function defineDescribe(command: Command, { run, nouns }: Tools, noun: Noun): void {
  const delivered = nouns.filter(({ delivery }) => delivery)
  command
    .argument('<id>', `id of the ${noun.singular}`)
    .option('--at <revision|time>', 'as it was then')
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} ${noun.noun} describe demo-cluster-01\n  ${PROGRAM} ${noun.noun} describe demo-cluster-01 --at 7d`,
    )
    .action(
      run(async (session, id: string, flags: { at?: string }) => {
        const at = parseAt(flags.at)
        const { body: cluster, headers } = await getDocument(session, noun, id, { at })
        // The last changes before then, where then is named.
        const before = at === undefined ? undefined : Number(headers['x-revision']) + 1
        const endpoints = delivered.map(({ delivery }) => delivery?.endpoint ?? '')
        const [results, changes] = await Promise.all([
          readInputs(session, noun, id, endpoints, { explain: true, at }),
          session.api.get('/revisions', { query: { cluster: id, limit: LAST_CHANGES, before } }),
        ])
        const inputs = Object.fromEntries(results) as unknown as Record<string, ExplainedInputs>
        await session.print({
          value: { cluster, inputs, revisions: changes.body },
          names: [`${noun.name}/${id}`],
          human: (look) =>
            [
              identity(look, noun, nouns, cluster),
              ...delivered.map((type) => describeType(look, type, inputs[type.delivery?.endpoint ?? ''])),
              heading(look, 'Last changes', changes.body.length),
              revisionTable(look, changes.body),
            ].join('\n'),
        })
      }),
    )
}

function heading({ paint }: Look, title: string, number: number): string {
  return `${paint('bold', title)}${number === 0 ? ': none' : ''}`
}

function identity({ pairs }: Look, noun: Noun, nouns: readonly Noun[], cluster: JsonObject): string {
  const patches = noun.cluster?.patches
  const rows = fieldsOf(noun, nouns)
    .filter(([name]) => name !== patches && cluster[name] !== undefined)
    .map(([name]): [string, string] => [`${name.replaceAll('_', ' ')}:`, cell(cluster[name])])
  return pairs([['id:', String(cluster.id)], ...rows])
}

/** A row for each input, with the fields that are not the default everywhere; then the patches. */
function describeType(look: Look, noun: Noun, explained: ExplainedInputs | undefined): string {
  const inputs = explained?.inputs ?? []
  const title = heading(look, noun.name.replaceAll('_', ' '), inputs.length)
  if (inputs.length === 0) return `${title}\n`
  const own = inputs.map(({ id, fields }) => ({
    id,
    fields: fields.filter(({ path }) => !/^\/(?:id$|cluster\/|patches(?:\/|$))/.test(path)),
    patches: fields.filter(({ path }) => path.startsWith('/patches/')),
  }))
  const names = [...new Set(own.flatMap(({ fields }) => fields.map(({ path }) => path)))].filter((path) => {
    const { default: preset } = noun.schema.properties?.[lastOf(path)] ?? {}
    const values = own.flatMap(({ fields }) => fields.filter((field) => field.path === path))
    return !values.every(({ value }) => preset !== undefined && equalJson(value, preset as Json))
  })
  // Short values first: on a narrow terminal the last columns are left out.
  const read = (fields: ExplainedInputs['inputs'][number]['fields'], path: string): string =>
    cell(fields.find((field) => field.path === path)?.value)
  const widest = (path: string): number => Math.max(...own.map(({ fields }) => read(fields, path).length))
  names.sort((a, b) => widest(a) - widest(b))
  const rows = own.map(({ id, fields }) => [id, origin(fields), ...names.map((path) => read(fields, path))])
  const patched = own.flatMap(({ id, patches }) =>
    patches.map(
      ({ path, value }) =>
        `  ${plain(id)}: ${plain(unescaped(path.slice('/patches/'.length)))}=${plain(String(value))}`,
    ),
  )
  const table = look.table(
    ['ID', 'FROM', ...names.map((path) => lastOf(path).replaceAll('_', '-').toUpperCase())],
    rows,
  )
  return [
    title,
    table.trimEnd(),
    ...(patched.length > 0 ? [look.paint('dim', 'patches:'), ...patched] : []),
    '',
  ].join('\n')
}

function lastOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function unescaped(pointer: string): string {
  return pointer.replaceAll('~1', '/').replaceAll('~0', '~')
}

/** Where the values are from: `catalog`, or the fields that this cluster overrides. */
function origin(fields: ExplainedInputs['inputs'][number]['fields']): string {
  const overridden = fields.filter(({ source }) => source === 'override').map(({ path }) => lastOf(path))
  return overridden.length > 0 ? `override: ${overridden.join(', ')}` : 'catalog'
}
