// `pull`: takes what others have changed on the server into the files of a set.
import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { count } from '../../base/sentences.ts'
import { readSet } from '../apply/apply-set.ts'
import { completed } from '../apply/apply-steps.ts'
import { type Edit, editText } from '../apply/edit-files.ts'
import { findLastApplied } from '../apply/inventory.ts'
import { changedIn, describeOverwritten, findOverwritten, type Overwritten } from '../apply/others-changes.ts'
import { addFileFlags, type SetFlags } from '../apply/set-flags.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { filesOf, STDIN } from '../input/read-files.ts'
import { nameOf } from '../server/nouns.ts'
import { readDocuments } from '../server/read-documents.ts'
import type { Session } from '../session.ts'

interface Flags extends SetFlags {
  readonly dryRun?: boolean
}

export function definePull(command: Command, { run }: Tools): void {
  addFileFlags(command)
    .option('--dry-run', 'show what would be taken, and write no file')
    .addHelpText(
      'after',
      `
Writes into the files what others have changed since the set was last applied, in fields that the files name. Changes
made only in the files stay, and so do comments. For a set that was never applied, every difference is taken. Documents
that are not in the files are left out: export writes all.

Examples:
  ${PROGRAM} pull -f fleet/ --dry-run
  ${PROGRAM} pull -f fleet/ && git diff`,
    )
    .action(run(pull))
}

async function pull(session: Session, flags: Flags): Promise<void> {
  if (flags.file.includes(STDIN)) throw usage('pull writes files: stdin cannot be written')
  const set = completed(session, await readSet(session.terminal, session.nouns, flags.file))
  const current = await readDocuments(session, set)
  const last = await findLastApplied(session, flags)
  const found: Overwritten[] = last
    ? await findOverwritten(session, set, current, last)
    : set
        .filter((wanted) => current.has(nameOf(wanted)))
        .flatMap((wanted) =>
          changedIn(wanted, wanted.document, current.get(nameOf(wanted))).map((change) => {
            return { ...change, wanted, since: 0 }
          }),
        )
  const lines = await describeOverwritten(session, found)
  const taken = found.filter(({ place }) => place.length > 0)
  const edits = taken.map(
    ({ wanted: { type, id }, place, after }): Edit => ({ type, id, place, value: after }),
  )
  const written: string[] = []
  for (const file of new Set(edits.length > 0 ? flags.file.flatMap(filesOf) : [])) {
    const text = await editText(session.nouns, file, edits)
    if (text === undefined) continue
    if (!flags.dryRun) write(file, text)
    written.push(file)
  }
  for (const { wanted } of found.filter(({ place }) => place.length === 0))
    session.warn(`${nameOf(wanted)} was deleted: if that is right, take it out of ${wanted.source}`)
  await session.print({
    value: { files: written },
    names: written,
    human: () => lines.map((line) => `${line}\n`).join(''),
  })
  if (session.format.kind !== 'human') return
  if (flags.dryRun) session.note('nothing was changed')
  else
    session.note(
      written.length === 0
        ? 'nothing to take'
        : `${count(written.length, 'file')} written: ${written.join(', ')}`,
    )
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text)
  } catch (error) {
    throw usage(`${file} cannot be written: ${(error as Error).message}`)
  }
}
