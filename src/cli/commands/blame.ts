// `blame`: where each value that a cluster gets comes from: who set it, when and why.
import type { Command } from 'commander'
import { ageOf } from '../../base/relative-time.ts'
import { firstOf } from '../../base/sentences.ts'
import type { ExplainedField } from '../../domain/delivery/explain-input.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { unmet } from '../failure.ts'
import { parseAt } from '../input/moments.ts'
import { cell } from '../output/document-columns.ts'
import type { Look } from '../output/print.ts'
import { type ExplainedInputs, readInputs } from '../server/cluster-inputs.ts'
import { clusterNoun } from '../server/nouns.ts'

interface Flags {
  readonly at?: string
  readonly changed?: boolean
}

type Field = ExplainedField

interface Line extends Field {
  readonly endpoint: string
  readonly id: string
}

export function defineBlame(command: Command, { run, nouns }: Tools): void {
  const { noun } = clusterNoun(nouns)
  command
    .argument(`<${noun}>`, `id of the ${noun}`)
    .argument('[id]', 'only this component, namespace, …')
    .argument('[field]', 'only this field: oci_tag, source.oci_tag, or the key of a patch')
    .option(
      '--changed',
      "only what is not the catalog's: overrides, patches, what is switched off or left out",
    )
    .option('--at <revision|time>', 'as it was then')
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} blame prod-eu-01 --changed\n  ${PROGRAM} blame prod-eu-01 podinfo\n  ${PROGRAM} blame prod-eu-01 podinfo replicaCount --at yesterday`,
    )
    .action(
      run(
        async (session, cluster: string, id: string | undefined, field: string | undefined, flags: Flags) => {
          const endpoints = session.nouns.flatMap(({ delivery }) => delivery?.endpoint ?? [])
          const query = { at: parseAt(flags.at), explain: true }
          const read = await readInputs(session, clusterNoun(session.nouns), cluster, endpoints, query)
          const all = read.flatMap(([endpoint, explained]) =>
            linesOf(endpoint, explained as unknown as ExplainedInputs),
          )
          const ofInput = id === undefined ? all : all.filter((line) => line.id === id)
          if (ofInput.length === 0 && id !== undefined)
            throw unmet(
              `${cluster} does not get "${id}"`,
              `${PROGRAM} cluster inputs ${cluster} shows what it gets`,
            )
          const ofField = field === undefined ? ofInput : ofInput.filter(({ path }) => isNamed(path, field))
          if (ofField.length === 0 && field !== undefined)
            throw unmet(`"${id}" of ${cluster} has no field "${field}"`, `known are ${namesIn(ofInput)}`)
          const lines = flags.changed ? ofField.filter(isChanged) : ofField
          await session.print({
            value: lines,
            names: [...new Set(lines.map((line) => `${line.endpoint}/${line.id}`))],
            human: (look) => (lines.length === 0 ? '' : blameTable(look, lines)),
          })
          if (lines.length === 0 && session.format.kind === 'human')
            session.note('Nothing here is its own: everything is what the catalog says.')
        },
      ),
    )
}

/** The fields of all inputs but those that only say whose they are. */
function linesOf(endpoint: string, { inputs }: ExplainedInputs): Line[] {
  return inputs.flatMap(({ id, fields }) =>
    (fields as readonly Field[])
      .filter(({ path }) => path !== '/id' && !path.startsWith('/cluster/'))
      .map((field) => ({ endpoint, id, ...field })),
  )
}

/** The path without its slashes: a key of a patch may have dots of its own. */
function nameOf(path: string): string {
  return path.slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
}

function isNamed(path: string, field: string): boolean {
  const name = nameOf(path)
  const wanted = field.replace(/^\//, '').replaceAll('/', '.')
  return (
    name === wanted || name.slice(name.indexOf('.') + 1) === wanted || name.replaceAll('-', '_') === wanted
  )
}

function namesIn(lines: readonly Line[]): string {
  const names = lines.map(({ path }) => nameOf(path))
  return firstOf([...new Set(names)], 10)
}

function isChanged({ source, value, left_out, rollout, path }: Line): boolean {
  if (source === 'override' || source === 'patch' || left_out || rollout) return true
  return source === 'cluster' && path === '/enabled' && value === false
}

function blameTable({ table }: Look, lines: readonly Line[]): string {
  const now = new Date()
  const rows = lines.map((line) => [
    line.id,
    nameOf(line.path),
    cell(line.value),
    sourceOf(line),
    String(line.revision ?? ''),
    ageOf(line.time, now),
    line.actor ?? '',
    line.message ?? '',
  ])
  return table(['OF', 'FIELD', 'VALUE', 'SOURCE', 'REVISION', 'AGE', 'ACTOR', 'MESSAGE'], rows)
}

/** `catalog`, `override`, …, and what of the document's value is left out here, and why. */
function sourceOf({ source, rollout, left_out = [] }: Line): string {
  return [
    rollout === undefined ? source : `rollout ${rollout}`,
    ...left_out.map(({ id, why }) => `without ${id} (${why.replaceAll('_', ' ')})`),
  ].join(', ')
}
