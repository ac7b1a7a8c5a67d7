// `revert`: takes back the changes of one revision.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { needRevision } from '../input/moments.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { printFleetWrite } from '../output/write-report.ts'
import { sendChange } from '../server/send-change.ts'

export function defineRevert(command: Command, { run }: Tools): void {
  command.argument('<revision>', 'its number, as log shows it')
  addWriteFlags(command)
    .addHelpText(
      'after',
      `\nWhat others did since stays. If they changed the same fields, it is a conflict and nothing is done.\n\nExamples:\n  ${PROGRAM} revert 12 --dry-run\n  ${PROGRAM} revert 12 -m 'broke the demo'`,
    )
    .action(
      run(async (session, text: string, flags: WriteFlags) => {
        const revision = needRevision(text)
        const sent = await sendChange(session, flags, {
          method: 'POST',
          path: `/revisions/${revision}/revert`,
        })
        await printFleetWrite(session, sent, `revert revision ${revision}`)
      }),
    )
}
