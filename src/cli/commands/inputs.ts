// `cluster inputs`: what a cluster gets when it polls, and where it comes from.
import type { Command } from 'commander'
import { isObject } from '../../base/json.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { UnknownName } from '../failure.ts'
import { parseAt } from '../input/moments.ts'
import { cell, rankOf, titleOf } from '../output/document-columns.ts'
import type { Look } from '../output/print.ts'
import { type ClusterInputs, type ExplainedInputs, readInputs } from '../server/cluster-inputs.ts'
import { type Noun, namesOf } from '../server/nouns.ts'

interface Flags {
  readonly at?: string
  readonly explain?: boolean
}

export function defineInputs(command: Command, { run, nouns }: Tools, noun: Noun): void {
  const endpoints = nouns.flatMap(({ delivery }) => delivery?.endpoint ?? [])
  command
    .argument('<id>', `id of the ${noun.singular}`)
    .argument('[endpoint]', `one of ${endpoints.join(', ')}; all of them when left out`)
    .option('--at <revision|time>', 'as it was then')
    .option('--explain', 'where each field comes from, and who set it')
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} ${noun.noun} inputs demo-cluster-01\n  ${PROGRAM} ${noun.noun} inputs demo-cluster-01 ${endpoints[1] ?? ''} -o json\n  ${PROGRAM} ${noun.noun} inputs demo-cluster-01 ${endpoints[1] ?? ''} --explain`,
    )
    .action(
      run(async (session, id: string, endpoint: string | undefined, { at, explain }: Flags) => {
        const chosen = endpoint === undefined ? endpoints : [findEndpoint(nouns, endpoint)]
        const results = await readInputs(session, noun, id, chosen, {
          at: parseAt(at),
          ...(explain && { explain }),
        })
        const [only] = results
        await session.print({
          value: endpoint !== undefined && only ? only[1] : Object.fromEntries(results),
          names: results.flatMap(([name, { inputs }]) => inputs.map((input) => `${name}/${input.id}`)),
          human: (look) =>
            results
              .map(([name, result]) => {
                const title = results.length > 1 ? `${look.paint('bold', name)}\n` : ''
                const body = explain
                  ? explainTable(look, result as unknown as ExplainedInputs)
                  : inputTable(
                      look,
                      nouns.find(({ delivery }) => delivery?.endpoint === name),
                      result.inputs,
                    )
                return title + body
              })
              .join('\n'),
        })
      }),
    )
}

/** Finds an endpoint by its name, or by a name of its type. */
function findEndpoint(nouns: readonly Noun[], name: string): string {
  const found = nouns.find(
    (noun) => noun.delivery && [noun.delivery.endpoint, ...namesOf(noun)].includes(name),
  )
  if (found?.delivery) return found.delivery.endpoint
  const known = nouns.flatMap(({ delivery }) => delivery?.endpoint ?? []).join(', ')
  throw new UnknownName(`there is no endpoint "${name}": known are ${known}`)
}

/** What says the same in every row, or is of use to programs only. */
const LEFT_OUT = ['cluster', 'digest', 'answer_digest']

/** A row for each input; what was put together for it, such as its source, has a column for each field. */
function inputTable({ table }: Look, noun: Noun | undefined, inputs: ClusterInputs['inputs']): string {
  if (inputs.length === 0) return '(none)\n'
  const isWhole = (name: string): boolean =>
    name === 'patches' || Object.hasOwn(noun?.schema.properties ?? {}, name)
  const rows = inputs.map((input) => {
    const fields = Object.entries(input).filter(([name]) => !LEFT_OUT.includes(name))
    return new Map(
      fields.flatMap(([name, value]) =>
        isObject(value) && !isWhole(name) ? Object.entries(value) : [[name, value] as const],
      ),
    )
  })
  const names = [...new Set(rows.flatMap((row) => [...row.keys()]))]
  const columns = names
    .map((name) => ({ name, title: titleOf(name) }))
    .toSorted((one, two) => rankOf(one) - rankOf(two))
  return table(
    columns.map(({ title }) => title),
    rows.map((row) => columns.map(({ name }) => cell(row.get(name)))),
  )
}

function explainTable({ table }: Look, { inputs }: ExplainedInputs): string {
  const rows = inputs.flatMap(({ id, fields }) =>
    fields.map(({ path, value, source, revision, actor, message, left_out = [] }) => [
      id,
      path,
      typeof value === 'string' ? value : JSON.stringify(value),
      [source, ...left_out.map((other) => `without ${other.id} (${other.why.replaceAll('_', ' ')})`)].join(
        ', ',
      ),
      String(revision ?? ''),
      actor ?? '',
      message ?? '',
    ]),
  )
  return rows.length === 0
    ? '(none)\n'
    : table(['INPUT', 'FIELD', 'VALUE', 'SOURCE', 'REVISION', 'ACTOR', 'MESSAGE'], rows)
}
