// `NOUN get`: one document.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { parseAt } from '../input/moments.ts'
import { printableDocument } from '../output/document-table.ts'
import type { Noun } from '../server/nouns.ts'
import { getDocument } from '../server/read-documents.ts'

export function defineGet(command: Command, { run, nouns }: Tools, noun: Noun): void {
  command
    .argument('<id>', `id of the ${noun.singular}`)
    .option('--at <revision|time>', 'as it was then')
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} ${noun.noun} get ID -o yaml\n  ${PROGRAM} ${noun.noun} get ID --at 2026-01-31T12:00:00Z`,
    )
    .action(
      run(async (session, id: string, { at }: { at?: string }) => {
        const { body } = await getDocument(session, noun, id, { at: parseAt(at) })
        await session.print(printableDocument(noun, nouns, body))
      }),
    )
}
