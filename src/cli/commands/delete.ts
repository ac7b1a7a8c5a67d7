// `NOUN delete`: one document, or several together.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { printDocumentWrite, printFleetWrite } from '../output/write-report.ts'
import { type Noun, nameOf } from '../server/nouns.ts'
import { listAll, pathOf, readDocuments } from '../server/read-documents.ts'
import { sendBatch, sendChange } from '../server/send-change.ts'
import type { Session } from '../session.ts'

interface Flags extends WriteFlags {
  readonly cascade?: boolean
  readonly purge?: boolean
  readonly selector?: string
  readonly ignoreNotFound?: boolean
}

export function defineDelete(command: Command, { run }: Tools, noun: Noun): void {
  command.argument(noun.cluster ? '[id...]' : '<id...>', 'ids, all of them deleted or none')
  command.option('--ignore-not-found', 'leave out what is not there, instead of failing')
  if (noun.cluster)
    command
      .option(
        '--purge',
        'leave no tombstone and revoke its tokens: polls are then 401 or 404, and Flux keeps what it has',
      )
      .option('-l, --selector <selector>', 'all that match this label selector, instead of ids')
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
      run(async (session, given: string[], flags: Flags) => {
        const ids = await chosenIds(session, noun, given, flags)
        if (ids.length === 0) return session.note('nothing to delete')
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

/** The ids that were given, or those of the clusters that match. */
async function chosenIds(
  session: Session,
  noun: Noun,
  given: readonly string[],
  { selector, ignoreNotFound }: Flags,
): Promise<readonly string[]> {
  if ((selector === undefined) === (given.length === 0))
    throw usage(`which ${noun.singular}? Give ids${noun.cluster ? ', or --selector' : ''}`)
  if (selector !== undefined) {
    const { documents } = await listAll(session, noun, { query: { selector } })
    return documents.map(({ id }) => id)
  }
  const unique = [...new Set(given)]
  if (!ignoreNotFound) return unique
  const found = await readDocuments(
    session,
    unique.map((id) => ({ type: noun.name, id })),
  )
  return unique.filter((id) => found.has(nameOf({ type: noun.name, id })))
}
