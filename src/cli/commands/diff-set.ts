// `diff`: shows what apply would change, or what differs between two moments.
import type { Command } from 'commander'
import { readSet } from '../apply/apply-set.ts'
import { planApply } from '../apply/apply-steps.ts'
import { warnOfUnpruned } from '../apply/choose-prunable.ts'
import { withoutInventory } from '../apply/inventory.ts'
import { refuseOverwritten, warnOfOverwritten } from '../apply/others-changes.ts'
import { inTermsOfFiles, sendSteps } from '../apply/send-set.ts'
import { addSetFlags, type SetFlags } from '../apply/set-flags.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { EXIT, unmet, usage } from '../failure.ts'
import { describePreview } from '../output/change-report.ts'
import { describeCompared } from '../output/compared-report.ts'
import { refuseNameOutput } from '../output/print.ts'
import { printablePreview } from '../output/write-report.ts'
import { type Moments, readCompared } from '../server/read-compared.ts'
import type { Session } from '../session.ts'

interface Flags extends Omit<SetFlags, 'file'> {
  readonly file?: readonly string[]
  readonly from?: string
  readonly to?: string
  readonly selector?: string
}

export function defineDiff(command: Command, { run }: Tools): void {
  addSetFlags(command.optionsGroup('Files with the fleet:'), { isOptional: true })
    .optionsGroup('The fleet then with the fleet now:')
    .option('--from <revision|time>', 'what has changed since then')
    .option('--to <revision|time>', 'up to then (default now)')
    .option('-l, --selector <selector>', 'only for clusters that match this label selector, at either moment')
    .addHelpText(
      'after',
      `\nExits with 0 when there is no difference and with ${EXIT.unmet} when there is one;\nwith ${EXIT.usage} when apply would overwrite what others have changed since the set was last applied.\n\nExamples:\n  ${PROGRAM} diff -f fleet/\n  ${PROGRAM} diff -f fleet/ --prune -o json\n  ${PROGRAM} diff --from 40 --to now -l environment=prod\n  ${PROGRAM} diff --from yesterday`,
    )
    .action(
      run((session, flags: Flags) => {
        const { file, from, to, selector } = flags
        if (file && (from ?? to ?? selector) !== undefined)
          throw usage('compare files (--file), or moments (--from, --to, --selector), not both')
        if (file) return diffSet(session, { ...flags, file })
        if (from === undefined)
          throw usage('compare what? Give --file with the fleet as it is to be, or --from')
        return diffMoments(session, { from, to, selector })
      }),
    )
}

async function diffMoments(session: Session, moments: Moments): Promise<void> {
  refuseNameOutput(session)
  const compared = await readCompared(session, moments)
  await session.print({ value: compared, isPaged: true, human: (look) => describeCompared(look, compared) })
  if (compared.change_count > 0 || compared.impact.clusters > 0) throw unmet('')
}

async function diffSet(session: Session, flags: SetFlags): Promise<void> {
  const set = await readSet(session.terminal, session.nouns, flags.file)
  const { steps, unpruned, overwritten } = await planApply(session, flags, set)
  warnOfUnpruned(session, unpruned)
  await warnOfOverwritten(session, overwritten)
  const { preview } = await inTermsOfFiles(steps, () =>
    sendSteps(session, { dryRun: true }, steps, steps.length),
  )
  if (!preview) throw new Error('a dry run returns a preview')
  const shown = withoutInventory(session, steps, preview)
  await session.print({
    ...printablePreview(preview),
    isPaged: true,
    human: (look) => (shown.change_count === 0 ? '' : describePreview(look, shown)),
  })
  refuseOverwritten(flags, overwritten)
  // The output has shown what differs: the exit code says that something does.
  if (shown.change_count > 0) throw unmet('')
}
