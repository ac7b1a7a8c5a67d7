// `NOUN history`: the revisions of one document.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { parseCount } from '../input/option-parsers.ts'
import { printRevisions } from '../output/revision-table.ts'
import type { Noun } from '../server/nouns.ts'
import { pathOf } from '../server/read-documents.ts'

export function defineHistory(command: Command, { run }: Tools, noun: Noun): void {
  command
    .argument('<id>', `id of the ${noun.singular}`)
    .option('--limit <number>', 'at most so many', parseCount, 20)
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} ${noun.noun} history ID\n  ${PROGRAM} show REVISION`)
    .action(
      run((session, id: string, { limit }: { limit: number }) =>
        printRevisions(session, pathOf(noun, id, 'history'), {}, limit),
      ),
    )
}
