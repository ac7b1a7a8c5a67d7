// `NOUN delete`: one document, or several together.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { printDocumentWrite, printFleetWrite } from '../output/write-report.ts'
import type { Noun } from '../server/nouns.ts'
import { pathOf } from '../server/read-documents.ts'
import { sendBatch, sendChange } from '../server/send-change.ts'

interface Flags extends WriteFlags {
  readonly cascade?: boolean
  readonly purge?: boolean
}

export function defineDelete(command: Command, { run }: Tools, noun: Noun): void {
  command.argument('<id...>', `ids, all of them deleted or none`)
  if (noun.cluster)
    command.option(
      '--purge',
      'leave no tombstone and revoke its tokens: polls are then 401 or 404, and Flux keeps what it has',
    )
  else command.option('--cascade', 'also remove every reference to it')
  const more = noun.cluster
    ? `\nA deleted ${noun.singular} gets an empty list when it polls, so its Flux removes everything that came from here.\nrestore brings it back as it was, unless it was purged. Its id has to be typed first, or of several how many they are.\n`
    : ''
  addWriteFlags(command, { isStaged: noun.delivery !== undefined })
    .addHelpText(
      'after',
      `${more}\nExamples:\n  ${PROGRAM} ${noun.noun} delete ID --dry-run\n  ${PROGRAM} ${noun.noun} delete ID -m 'replaced by another'`,
    )
    .action(
      run(async (session, ids: string[], flags: Flags) => {
        const how = { ...(flags.cascade && { cascade: true }), ...(flags.purge && { purge: true }) }
        const [id = ''] = ids
        if (ids.length === 1) {
          const sent = await sendChange(session, flags, {
            method: 'DELETE',
            path: pathOf(noun, id),
            query: how,
            operation: { op: 'delete', type: noun.name, id, ...how },
          })
          return printDocumentWrite(session, sent, { noun, id, done: flags.purge ? 'purged' : 'deleted' })
        }
        const operations = ids.map((each) => ({ op: 'delete', type: noun.name, id: each, ...how }))
        const sent = await sendBatch(session, flags, operations)
        await printFleetWrite(session, sent, `delete ${ids.length} ${noun.name}`)
      }),
    )
}
