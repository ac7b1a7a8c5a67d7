// `cluster inputs`: what a cluster gets when it polls, and where it comes from.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { UnknownName } from '../failure.ts'
import { parseAt } from '../input/moments.ts'
import { cell } from '../output/document-columns.ts'
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
                  : inputTable(look, result.inputs)
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

/** A row for each input; the cluster is left out, since it is the same in every row. */
function inputTable({ table }: Look, inputs: ClusterInputs['inputs']): string {
  if (inputs.length === 0) return '(none)\n'
  const names = [...new Set(inputs.flatMap((input) => Object.keys(input)))].filter(
    (name) => name !== 'cluster',
  )
  return table(
    names.map((name) => name.replaceAll('_', '-').toUpperCase()),
    inputs.map((input) => names.map((name) => cell(input[name]))),
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
