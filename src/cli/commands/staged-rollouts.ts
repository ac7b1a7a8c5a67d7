// `rollout`: changes that reach the fleet wave by wave: how far they are, and what people do to them.
import { type Command, Option } from 'commander'
import { MEMBER_STATES } from '../../api/rollout-schema.ts'
import { ROLLOUT_STATES } from '../../domain/rollouts/rollout.ts'
import { addSubcommand, PROGRAM, type Tools } from '../cli-command.ts'
import { parseCount } from '../input/option-parsers.ts'
import { defineActions } from '../rollouts/action-commands.ts'
import {
  LAST_ROLLOUT,
  readMembers,
  readRollout,
  readRollouts,
  rolloutNamed,
} from '../rollouts/read-rollouts.ts'
import { describeMembers, describeProgress, describeRollout } from '../rollouts/rollout-report.ts'
import { rolloutTable } from '../rollouts/rollout-table.ts'
import { defineLine } from '../rollouts/stop-line.ts'
import { watchRollout } from '../rollouts/watch-rollout.ts'

const ABOUT = `
Every write starts one with --rollout or --rollout-wave:

  ${PROGRAM} component update grafana --set oci_tag=v2.0.0 --rollout default --dry-run
  ${PROGRAM} component update grafana --set oci_tag=v2.0.0 --rollout default -m 'Grafana 2'
  ${PROGRAM} apply -f fleet/ --rollout-wave 'canary: environment=dev; soak=10m' --rollout-wave rest

Waves open one after the other, each when the one before has passed its gates. Until the rollout is finished, the
documents of the fleet do not hold the change; abort gives every cluster back what it had. ${LAST_ROLLOUT} is the id of the newest
rollout; status, describe and watch without an id mean the only one that is under way.`

export function defineRollout(command: Command, tools: Tools): void {
  command.addHelpText('after', ABOUT)
  defineList(command, tools)
  defineStatus(command, tools)
  defineDescribe(command, tools)
  defineWatch(command, tools)
  defineActions(command, tools)
  defineLine(command, tools)
}

const ID = [`[rollout]`, `its id, or ${LAST_ROLLOUT}; by default the only one under way`] as const

function defineList(command: Command, { run }: Tools): void {
  addSubcommand(command, 'list', 'List rollouts, newest first.')
    .addOption(new Option('--state <state>', 'only those in this state').choices(ROLLOUT_STATES))
    .option('--limit <number>', 'at most so many', parseCount, 20)
    .addHelpText(
      'after',
      `\nCLUSTERS: how many of them are served the change. -o wide shows what each is waiting for.\n\nExamples:\n  ${PROGRAM} rollout list\n  ${PROGRAM} rollout list --state running -o wide\n  ${PROGRAM} rollout list -o jsonpath='{range [*]}{.id}{"\\t"}{.state}{"\\n"}{end}'`,
    )
    .action(
      run(async (session, flags: { state?: string; limit: number }) => {
        const { rollouts, total } = await readRollouts(session, flags)
        await session.print({
          value: rollouts,
          names: rollouts.map(({ id }) => `rollouts/${id}`),
          human: (look) => (rollouts.length === 0 ? '' : rolloutTable(look, rollouts, new Date())),
        })
        if (rollouts.length === 0 && session.format.kind === 'human') session.note('No rollouts found.')
        if (rollouts.length < total)
          session.note(`the newest ${rollouts.length} of ${total}; --limit shows more`)
      }),
    )
}

function defineStatus(command: Command, { run }: Tools): void {
  addSubcommand(command, 'status', 'Show how far a rollout is, and what it waits for.')
    .argument(...ID)
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} rollout status\n  ${PROGRAM} rollout status r42 -o jsonpath='{.state}: {.waiting_for}{"\\n"}'`,
    )
    .action(
      run(async (session, text: string | undefined) => {
        const rollout = await readRollout(session, await rolloutNamed(session, text))
        await session.print({
          value: rollout,
          names: [`rollouts/${rollout.id}`],
          human: (look) => describeProgress(look, rollout, new Date()),
        })
      }),
    )
}

interface DescribeFlags {
  readonly members?: boolean
  readonly wave?: string
  readonly memberState?: string
}

function defineDescribe(command: Command, { run }: Tools): void {
  addSubcommand(command, 'describe', 'Show a rollout in full: waves, gates, approvals, and who did what.')
    .argument(...ID)
    .option('--members', 'its clusters as well: in which wave each is, and how far it is')
    .option('--wave <name>', 'only the clusters of this wave')
    .addOption(new Option('--member-state <state>', 'only clusters in this state').choices(MEMBER_STATES))
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} rollout describe r42\n  ${PROGRAM} rollout describe r42 --wave canary\n  ${PROGRAM} rollout describe last --member-state failed -o name`,
    )
    .action(
      run(async (session, text: string | undefined, flags: DescribeFlags) => {
        const rollout = await readRollout(session, await rolloutNamed(session, text))
        const { members: all, wave, memberState: state } = flags
        const wanted = all || wave !== undefined || state !== undefined
        const members = wanted ? await readMembers(session, rollout.id, { wave, state }) : undefined
        await session.print({
          value: members ? { ...rollout, members } : rollout,
          names: members ? members.map(({ cluster }) => `clusters/${cluster}`) : [`rollouts/${rollout.id}`],
          human: (look) =>
            `${describeRollout(look, rollout, new Date())}${members ? `\n${describeMembers(look, members)}` : ''}`,
        })
      }),
    )
}

function defineWatch(command: Command, { run }: Tools): void {
  addSubcommand(command, 'watch', 'Follow a rollout until it has finished.')
    .argument(...ID)
    .addHelpText(
      'after',
      `\nOn a terminal the picture is redrawn; elsewhere every change is a line, with -o json of JSON. Exits with 0 when the rollout\nhas finished, with 4 when it was aborted or has paused because of failures, and with 5 after --timeout (default: it waits\nas long as it takes). It goes on waiting when a person has paused the rollout.\n\nExamples:\n  ${PROGRAM} rollout watch\n  ${PROGRAM} rollout watch last --timeout 2h && echo rolled out\n  ${PROGRAM} rollout watch r42 -o json | jq -r .waiting_for`,
    )
    .action(
      run(async (session, text: string | undefined) =>
        watchRollout(session, await rolloutNamed(session, text)),
      ),
    )
}
