// `revision status`: how far a revision has come in the fleet.
import type { Command } from 'commander'
import type { Propagation, PropagationTimes } from '../../api/propagation-schema.ts'
import { fromNow, howLong } from '../../base/relative-time.ts'
import { count } from '../../base/sentences.ts'
import { addSubcommand, PROGRAM, type Tools } from '../cli-command.ts'
import { LAST, revisionNamed } from '../fleet/newest-revision.ts'
import { getNew } from '../fleet/read-status.ts'
import { GOALS } from '../input/goals.ts'
import type { Look } from '../output/print.ts'
import { barOf } from '../output/progress.ts'

export function defineRevision(command: Command, { run }: Tools): void {
  addSubcommand(command, 'status', 'How many of the clusters that a revision changed have it.')
    .argument(`<revision|${LAST}>`, `its number, or ${LAST}`)
    .option('-l, --selector <selector>', 'only clusters that match this label selector')
    .addHelpText(
      'after',
      `\nserved: the cluster has received it; applied: its Flux has reported it as applied; healthy: all that changed is ready.\n\nExamples:\n  ${PROGRAM} revision status ${LAST}\n  ${PROGRAM} revision status ${LAST} -l environment=prod\n  ${PROGRAM} revision status 41 -o jsonpath='{.applied} of {.affected}'`,
    )
    .action(
      run(async (session, text: string, { selector }: { readonly selector?: string }) => {
        const revision = await revisionNamed(session, text)
        const { body } = await getNew(session, `/revisions/${revision}/propagation`, { selector })
        await session.print({
          value: body,
          names: [`revisions/${revision}`],
          human: (look) => propagationReport(look, body),
        })
      }),
    )
}

function propagationReport(look: Look, propagation: Propagation): string {
  const { revision, time, affected, pending, failed, offline, unknown } = propagation
  const head = `revision ${revision}, ${fromNow(time, new Date())}: `
  if (affected === 0) return `${head}no cluster receives anything else\n`
  const rows = GOALS.map((goal): [string, string] => [
    `${goal}:`,
    `[${barOf(propagation[goal], affected)}] ${propagation[goal].toLocaleString('en')}/${affected.toLocaleString('en')}${timesOf(propagation, goal)}`,
  ])
  return [
    `${head}${count(affected, 'cluster')}\n`,
    look.pairs([...rows, ['rest:', `${failed} failed, ${offline} offline, ${unknown} under way or unknown`]]),
    ...pendingReport(look, propagation),
    ...(pending.length < affected - propagation.applied
      ? [`… and ${count(affected - propagation.applied - pending.length, 'more cluster')}\n`]
      : []),
  ].join('')
}

/** `  half in 40s, all in 5m`, as far as it has come. */
function timesOf({ times }: Propagation, goal: (typeof GOALS)[number]): string {
  if (goal === 'healthy') return ''
  const { p50_s, p100_s }: PropagationTimes = times[goal]
  const told = [
    ...(p50_s === null ? [] : [`half in ${howLong(p50_s * 1000)}`]),
    ...(p100_s === null ? [] : [`all in ${howLong(p100_s * 1000)}`]),
  ]
  return told.length === 0 ? '' : `  ${told.join(', ')}`
}

function pendingReport(look: Look, { pending, forecast }: Propagation): string[] {
  if (pending.length === 0) return []
  const expected =
    forecast.served_s === null ? '' : `, all served in about ${howLong(forecast.served_s * 1000)}`
  return [
    `\n${look.paint('bold', 'Not applied yet')}${expected}\n`,
    look.table(
      ['CLUSTER', 'CONTACT', 'DELIVERY', 'HEALTH'],
      pending.map(({ cluster, contact, delivery, health }) => [cluster, contact, delivery, health]),
    ),
  ]
}
