// `NOUN get`: documents by their ids.
import type { Command } from 'commander'
import type { JsonObject } from '../../base/json.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { parseAt } from '../input/moments.ts'
import { printableDocument, printableList } from '../output/document-table.ts'
import type { Noun } from '../server/nouns.ts'
import { getDocument } from '../server/read-documents.ts'
import { Refusal } from '../server/refusal.ts'

interface Flags {
  readonly at?: string
  readonly ignoreNotFound?: boolean
}

export function defineGet(command: Command, { run, nouns }: Tools, noun: Noun): void {
  command
    .argument('<id...>', `ids of ${noun.name.replaceAll('_', ' ')}`)
    .option('--at <revision|time>', 'as it was then')
    .option('--ignore-not-found', 'leave out what is not there, instead of failing')
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} ${noun.noun} get ID -o yaml\n  ${PROGRAM} ${noun.noun} get ID --at 2026-01-31T12:00:00Z`,
    )
    .action(
      run(async (session, ids: string[], flags: Flags) => {
        const query = { at: parseAt(flags.at) }
        const read = async (id: string): Promise<JsonObject[]> => {
          try {
            return [(await getDocument(session, noun, id, query)).body]
          } catch (error) {
            const isMissing = error instanceof Refusal && error.reason === 'unknown_id'
            if (!isMissing || !flags.ignoreNotFound) throw error
            return []
          }
        }
        const found = (await Promise.all(ids.map(read))).flat()
        const [only] = found
        if (ids.length === 1 && only) return session.print(printableDocument(noun, nouns, only))
        if (ids.length > 1) await session.print(printableList(noun, nouns, found))
      }),
    )
}
