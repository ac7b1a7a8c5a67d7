// `diff`: shows what apply would change.
import type { Command } from 'commander'
import { readSet } from '../apply/apply-set.ts'
import { planApply } from '../apply/apply-steps.ts'
import { warnOfUnpruned } from '../apply/choose-prunable.ts'
import { withoutInventory } from '../apply/inventory.ts'
import { inTermsOfFiles, sendSteps } from '../apply/send-set.ts'
import { addSetFlags, type SetFlags } from '../apply/set-flags.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { EXIT, unmet } from '../failure.ts'
import { describePreview } from '../output/change-report.ts'
import { printablePreview } from '../output/write-report.ts'

export function defineDiff(command: Command, { run }: Tools): void {
  addSetFlags(command)
    .addHelpText(
      'after',
      `\nExits with 0 when there is no difference and with ${EXIT.unmet} when there is one.\n\nExamples:\n  ${PROGRAM} diff -f fleet/\n  ${PROGRAM} diff -f fleet/ --prune -o json`,
    )
    .action(
      run(async (session, flags: SetFlags) => {
        const set = await readSet(session.terminal, session.nouns, flags.file)
        const { steps, unpruned } = await planApply(session, flags, set)
        warnOfUnpruned(session, unpruned)
        const { preview } = await inTermsOfFiles(steps, () =>
          sendSteps(session, { dryRun: true }, steps, steps.length),
        )
        if (!preview) throw new Error('a dry run returns a preview')
        const shown = withoutInventory(session, steps, preview)
        await session.print({
          ...printablePreview(preview),
          human: (look) => (shown.change_count === 0 ? '' : describePreview(look, shown)),
        })
        // The output has shown what differs: the exit code says that something does.
        if (shown.change_count > 0) throw unmet('')
      }),
    )
}
