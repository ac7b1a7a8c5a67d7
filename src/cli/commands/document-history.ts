// `NOUN history`: the revisions of one document.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { printRevisions } from '../fleet/print-revisions.ts'
import { parseCount } from '../input/option-parsers.ts'
import type { Noun } from '../server/nouns.ts'
import { pathOf } from '../server/read-documents.ts'

export function defineHistory(command: Command, { run }: Tools, noun: Noun): void {
  command
    .argument('<id>', `id of the ${noun.singular}`)
    .option('--limit <number>', 'at most so many', parseCount, 20)
    .option('-p, --patch', 'each with what it changed, as show has it')
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} ${noun.noun} history ID\n  ${PROGRAM} show REVISION`)
    .action(
      run((session, id: string, { limit, patch }: { limit: number; patch?: boolean }) =>
        printRevisions(session, { path: pathOf(noun, id, 'history'), query: {}, limit, isWhole: patch }),
      ),
    )
}
