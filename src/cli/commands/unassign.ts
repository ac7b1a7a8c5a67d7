// `NOUN unassign`: takes a definition from clusters.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { addTargetFlags, describeTargets, needTargets, type TargetFlags } from '../input/targets.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { printFleetWrite } from '../output/write-report.ts'
import type { Noun } from '../server/nouns.ts'
import { sendBatch } from '../server/send-change.ts'

export function defineUnassign(command: Command, { run }: Tools, noun: Noun): void {
  command.argument('<id>', `id of the ${noun.singular}`)
  addWriteFlags(addTargetFlags(command))
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} ${noun.noun} unassign ID --cluster demo-cluster-01`)
    .action(
      run(async (session, id: string, flags: WriteFlags & TargetFlags) => {
        const targets = needTargets(flags)
        const operation = { op: 'unassign', type: noun.name, id, ...targets }
        const sent = await sendBatch(session, flags, [operation])
        await printFleetWrite(session, sent, `unassign ${noun.name}/${id} from ${describeTargets(targets)}`)
      }),
    )
}
