// `wait`: until clusters were served, have applied, or are healthy with what they are to have.
import { type Command, Option } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { LAST, revisionNamed } from '../fleet/newest-revision.ts'
import { type Group, revisionGroup, selectedGroup } from '../fleet/standing.ts'
import { describeReached, waitFor } from '../fleet/wait-for-clusters.ts'
import { DEFAULT_GOAL, GOALS, type Goal } from '../input/goals.ts'
import { refuseNameOutput } from '../output/print.ts'
import type { Session } from '../session.ts'

interface Flags {
  readonly revision?: string
  readonly last?: boolean
  readonly selector?: string
  readonly for: Goal
  readonly ignoreOffline?: boolean
}

const ABOUT = `
With a revision: waits for the clusters that it changed. Without one: for all clusters and all of their desired state.
--selector limits both to a part of the fleet. Exits with 0 when all of them have it; with 4 when a component has failed
or a cluster rejects what it receives, which are named; with 5 after --timeout (default 10m). An offline cluster counts
as one that does not have it.`

export function defineWait(command: Command, { run }: Tools): void {
  command
    .option('--revision <number>', `the clusters that this revision changed, or ${LAST}`)
    .option('--last', 'the clusters of the newest revision')
    .option('-l, --selector <selector>', 'only clusters that match this label selector')
    .addOption(new Option('--for <state>', 'how far they have to come').choices(GOALS).default(DEFAULT_GOAL))
    .option('--ignore-offline', 'set clusters aside that nothing is heard of, and list them')
    .addHelpText(
      'after',
      `${ABOUT}\n\nExamples:\n  ${PROGRAM} wait --last\n  ${PROGRAM} wait --revision 41 --for healthy --timeout 20m --ignore-offline\n  ${PROGRAM} wait --last -l environment=dev --for served`,
    )
    .action(
      run(async (session, flags: Flags) => {
        refuseNameOutput(session)
        const group = await groupOf(session, flags)
        const options = { goal: flags.for, ignoreOffline: flags.ignoreOffline ?? false }
        const standing = await waitFor(session, group, options)
        await session.print({
          value: { goal: flags.for, ...standing },
          human: () => `${describeReached(group, standing, options)}\n`,
        })
      }),
    )
}

async function groupOf(session: Session, { revision, last, selector }: Flags): Promise<Group> {
  if (last && revision !== undefined) throw usage('give one of --revision and --last')
  const text = last ? LAST : revision
  if (text === undefined) return selectedGroup(session, selector)
  return revisionGroup(session, await revisionNamed(session, text), { selector })
}
