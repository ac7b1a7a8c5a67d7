// `cluster diff`: what two clusters get differently, or one cluster now and then.
import type { Command } from 'commander'
import { count } from '../../base/sentences.ts'
import { differingInputs, type InputsDifference } from '../../domain/delivery/differing-inputs.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { EXIT, unmet, usage } from '../failure.ts'
import { parseAt } from '../input/moments.ts'
import { describeField } from '../output/field-report.ts'
import { type Look, refuseNameOutput } from '../output/print.ts'
import { plain } from '../output/terminal.ts'
import { type ClusterInputs, readInputs } from '../server/cluster-inputs.ts'
import { type Noun, namesOf } from '../server/nouns.ts'
import type { Session } from '../session.ts'

interface EndpointDiff extends InputsDifference {
  readonly endpoint: string
}

export function defineClusterDiff(command: Command, { run, nouns }: Tools, noun: Noun): void {
  command
    .argument('<id>', `id of the ${noun.singular}`)
    .argument('[other]', `id of the ${noun.singular} to compare it with`)
    .option(
      '--at <revision|time>',
      'with one cluster: compare then with now; with two: compare both as they were',
    )
    .option('--type <name>', 'only what they get of this type, such as component')
    .addHelpText(
      'after',
      `\nCompares what clusters receive, wherever it comes from, without their own names. Lines with - are what only the first\nhas, lines with + what only the second has. Exits with 0 when there is no difference and with ${EXIT.unmet} when there is one.\n\nExamples:\n  ${PROGRAM} ${noun.noun} diff prod-eu-01 prod-us-01\n  ${PROGRAM} ${noun.noun} diff prod-eu-01 --at 7d --type component`,
    )
    .action(
      run(async (session, id: string, other: string | undefined, flags: { at?: string; type?: string }) => {
        refuseNameOutput(session)
        if (other === undefined && flags.at === undefined)
          throw usage(`compare it with what? Give another ${noun.singular}, or --at for itself then`)
        const at = parseAt(flags.at)
        const endpoints = endpointsOf(nouns, flags.type)
        const [one, two] = await Promise.all([
          readInputs(session, noun, id, endpoints, { at }),
          readInputs(session, noun, other ?? id, endpoints, other === undefined ? {} : { at }),
        ])
        const found = endpoints.flatMap((endpoint, i) => compare(endpoint, one[i]?.[1], two[i]?.[1]) ?? [])
        await report(session, found)
      }),
    )
}

function endpointsOf(nouns: readonly Noun[], type: string | undefined): string[] {
  const found = nouns.flatMap((noun) => {
    const isWanted = type === undefined || [noun.delivery?.endpoint, ...namesOf(noun)].includes(type)
    return noun.delivery && isWanted ? [noun.delivery.endpoint] : []
  })
  if (found.length > 0) return found
  const known = nouns.filter(({ delivery }) => delivery).map(({ noun }) => noun)
  throw usage(`--type must be one of ${known.join(', ')}, not "${type}"`)
}

function compare(
  endpoint: string,
  one: ClusterInputs | undefined,
  two: ClusterInputs | undefined,
): EndpointDiff | undefined {
  const found = differingInputs(one?.inputs ?? [], two?.inputs ?? [])
  const { added, removed, changed } = found
  return added.length + removed.length + changed.length > 0 ? { endpoint, ...found } : undefined
}

async function report(session: Session, found: readonly EndpointDiff[]): Promise<void> {
  await session.print({ value: found, human: (look) => found.map((each) => layOut(look, each)).join('') })
  if (found.length === 0) {
    if (session.format.kind === 'human') session.note('no difference')
    return
  }
  const sum = (read: (each: EndpointDiff) => number): number =>
    found.reduce((all, each) => all + read(each), 0)
  const differing = sum(({ changed }) => changed.length)
  const only = sum(({ added, removed }) => added.length + removed.length)
  if (session.format.kind === 'human')
    session.note(
      `${count(differing, 'input')} with another value, ${only.toLocaleString('en')} on one side only`,
    )
  // The output has shown what differs: the exit code says that something does.
  throw unmet('')
}

function layOut(look: Look, { endpoint, added, removed, changed }: EndpointDiff): string {
  const { paint } = look
  const lines = [
    paint('bold', endpoint),
    ...removed.map((id) => `  ${paint('red', `- ${plain(id)}`)}`),
    ...added.map((id) => `  ${paint('green', `+ ${plain(id)}`)}`),
    ...changed.flatMap(({ id, fields }) => [
      `  ${paint('yellow', `~ ${plain(id)}`)}`,
      ...fields.flatMap((field) => describeField(look, '      ', field)),
    ]),
  ]
  return lines.map((line) => `${line}\n`).join('')
}
