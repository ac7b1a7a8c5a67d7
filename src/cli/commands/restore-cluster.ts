// `cluster restore`: brings a deleted cluster back as it was.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { printDocumentWrite } from '../output/write-report.ts'
import type { Noun } from '../server/nouns.ts'
import { pathOf } from '../server/read-documents.ts'
import { sendChange } from '../server/send-change.ts'

export function defineRestore(command: Command, { run }: Tools, noun: Noun): void {
  command.argument('<id>', `id of the deleted ${noun.singular}`)
  addWriteFlags(command, { isStaged: false })
    .addHelpText(
      'after',
      `\nIt gets the definitions as they are now. Warnings name those that have changed since it was deleted, and by whom.\n\nExamples:\n  ${PROGRAM} ${noun.noun} restore qa-eu-02 --dry-run\n  ${PROGRAM} ${noun.noun} restore qa-eu-02`,
    )
    .action(
      run(async (session, id: string, flags: WriteFlags) => {
        const sent = await sendChange(session, flags, { method: 'POST', path: pathOf(noun, id, 'restore') })
        await printDocumentWrite(session, sent, { noun, id, done: 'restored' })
      }),
    )
}
