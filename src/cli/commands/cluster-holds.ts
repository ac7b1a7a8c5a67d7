// `hold`: clusters that keep what they are served now, until a time or until they are released.
import type { Command } from 'commander'
import { PAGES } from '../../api/limits.ts'
import type { ShownHold } from '../../api/rollout-schema.ts'
import { ageOf, fromNow } from '../../base/relative-time.ts'
import { addSubcommand, PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { getNew } from '../fleet/read-status.ts'
import { parseExpiry } from '../input/moments.ts'
import { durationOption } from '../input/rollout-flags.ts'
import { addActionFlags, type WriteFlags } from '../input/write-flags.ts'
import type { Look } from '../output/print.ts'
import { printDone, printFleetWrite } from '../output/write-report.ts'
import { clusterNoun } from '../server/nouns.ts'
import { HOLD_ROUTES, pathOf } from '../server/read-documents.ts'
import { readPages } from '../server/read-pages.ts'
import { sendBatch, sendChange } from '../server/send-change.ts'
import type { Session } from '../session.ts'

const ABOUT = `
A held cluster gets exactly what it gets now at every poll, whatever is written and rolled out. What it misses reaches it once it is
released. Deleting a cluster releases it.`

export function defineHold(command: Command, tools: Tools): void {
  command.addHelpText('after', ABOUT)
  defineList(command, tools)
  defineCreate(command, tools)
  defineRelease(command, tools)
}

function defineList(command: Command, { run }: Tools): void {
  addSubcommand(command, 'list', 'Clusters that are held, since when, by whom and why.')
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} hold list\n  ${PROGRAM} hold list -o name`)
    .action(
      run(async (session) => {
        const holds = await readHolds(session)
        await session.print({
          value: holds,
          names: holds.map(({ cluster }) => nameOf(session, cluster)),
          human: (look) => (holds.length === 0 ? '' : holdTable(look, holds, new Date())),
        })
        if (holds.length === 0 && session.format.kind === 'human') session.note('No cluster is held.')
      }),
    )
}

function nameOf({ nouns }: Session, cluster: string): string {
  return `${clusterNoun(nouns).name}/${cluster}`
}

async function readHolds(session: Session): Promise<ShownHold[]> {
  const holds: ShownHold[] = []
  const pages = readPages<ShownHold>(
    ({ limit, offset }) => getNew(session, `/${HOLD_ROUTES.name}`, { limit, offset }),
    { size: PAGES.max },
  )
  for await (const { items } of pages) for (const hold of items) holds.push(hold)
  return holds
}

function holdTable({ table }: Look, holds: readonly ShownHold[], now: Date): string {
  return table(
    ['CLUSTER', 'SINCE', 'UNTIL', 'BY', 'REASON'],
    holds.map(({ cluster, since, until, held_by, reason }) => [
      cluster,
      ageOf(since, now),
      until === undefined ? 'released' : fromNow(until, now),
      held_by,
      reason,
    ]),
  )
}

interface SelectFlags extends WriteFlags {
  readonly selector?: string
}

interface CreateFlags extends SelectFlags {
  /** Seconds. */
  readonly for?: number
  readonly until?: string
  readonly reason?: string
}

function defineCreate(command: Command, { run }: Tools): void {
  const own = addSubcommand(command, 'create', 'Hold clusters at what they are served now.')
    .argument('[cluster]', 'id of the cluster')
    .option('-l, --selector <selector>', 'all clusters that match this label selector, in one revision')
    .addOption(durationOption('--for <duration>', 'for so long: 2h, 3d'))
    .option('--until <time>', 'until then: 12h, 2027-01-31 or an RFC 3339 time')
    .option('--reason <text>', 'why; whoever looks at the hold reads it (default: the message)')
  addActionFlags(own)
    .addHelpText(
      'after',
      `\nWithout --for and --until it lasts until it is released. A cluster that is held keeps what it had: only end and reason change.\n\nExamples:\n  ${PROGRAM} hold create prod-eu-01 --for 2h -m 'migration of the database'\n  ${PROGRAM} hold create prod-eu-01 --until 2027-01-31 --reason 'audit'\n  ${PROGRAM} hold create -l region=eu --for 2h -m 'migration of the registry'`,
    )
    .action(
      run(async (session, id: string | undefined, given: CreateFlags) => {
        const { for: during, until, reason, selector, ...flags } = given
        const target = targetOf(id, selector)
        if (during !== undefined && until !== undefined) throw usage('give --for or --until, not both')
        const why = reason ?? flags.message
        if (why === undefined) throw usage('why is it held? Give --reason')
        const now = new Date()
        const end =
          during !== undefined
            ? new Date(now.getTime() + during * 1000).toISOString()
            : until && parseExpiry(until, '--until', now)
        const hold = { reason: why, ...(end !== undefined && { until: end }) }
        if ('selector' in target) {
          const sent = await sendBatch(session, flags, [{ op: 'hold', ...target, ...hold }])
          return printFleetWrite(session, sent, `hold (${selector})`)
        }
        const sent = await sendChange(session, flags, {
          method: 'PUT',
          path: pathOf(HOLD_ROUTES, target.id),
          body: hold,
          does: `hold cluster ${id}`,
        })
        const lasts = end === undefined ? 'until it is released' : `until ${end}`
        await printDone(session, sent, {
          name: nameOf(session, target.id),
          told: () => `cluster ${id} is held at what it is served now, ${lasts}`,
        })
      }),
    )
}

function defineRelease(command: Command, { run }: Tools): void {
  addActionFlags(
    addSubcommand(
      command,
      'release',
      'Release clusters: they get what they are to have, from their next poll on.',
    )
      .argument('[held]', 'id of the cluster')
      .option(
        '-l, --selector <selector>',
        'all held clusters that match this label selector, in one revision',
      ),
  )
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} hold release prod-eu-01 --dry-run\n  ${PROGRAM} hold release prod-eu-01 -m 'the migration is done'\n  ${PROGRAM} hold release -l region=eu -m 'the migration is done'`,
    )
    .action(
      run(async (session, id: string | undefined, { selector, ...flags }: SelectFlags) => {
        const target = targetOf(id, selector)
        if ('selector' in target) {
          const sent = await sendBatch(session, flags, [{ op: 'release', ...target }])
          return printFleetWrite(session, sent, `release (${selector})`)
        }
        const sent = await sendChange(session, flags, {
          method: 'DELETE',
          path: pathOf(HOLD_ROUTES, target.id),
          does: `release cluster ${id}`,
        })
        await printDone(session, sent, {
          name: nameOf(session, target.id),
          told: () => `cluster ${id} is released: it gets what it is to have, from its next poll on`,
        })
      }),
    )
}

function targetOf(
  id: string | undefined,
  selector: string | undefined,
): { id: string } | { selector: string } {
  if (id !== undefined && selector === undefined) return { id }
  if (id === undefined && selector !== undefined) return { selector }
  throw usage('which clusters? Give an id or --selector, not both')
}
