// `NOUN patch`: sets the values that clusters have for a component.
import type { Command } from 'commander'
import { type PatchFlags, patchValues } from '../apply/patch-values.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { collect } from '../input/option-parsers.ts'
import { addTargetFlags } from '../input/targets.ts'
import { addWriteFlags } from '../input/write-flags.ts'
import type { Noun } from '../server/nouns.ts'

export function definePatch(command: Command, { run }: Tools, noun: Noun): void {
  command
    .argument('<id>', `id of the ${noun.singular}`)
    .option(
      '--set <key=value>',
      'set a value (repeatable); the key is taken as it is, dots included',
      collect,
    )
    .option('--unset <key>', 'remove a value (repeatable)', collect)
    .option('--replace', 'drop the values that are not named')
  addWriteFlags(addTargetFlags(command))
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} ${noun.noun} patch podinfo --cluster demo-cluster-01 --set replicaCount=3\n  ${PROGRAM} ${noun.noun} patch podinfo --selector environment=dev --set ui.message='Hello, fleet' --dry-run`,
    )
    .action(run((session, id: string, flags: PatchFlags) => patchValues(session, id, flags)))
}
