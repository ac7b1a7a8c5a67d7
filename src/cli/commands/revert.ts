// `revert`: takes back the changes of one revision.
import type { Command } from 'commander'
import type { Revision } from '../../api/wire-types.ts'
import { fromNow } from '../../base/relative-time.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { LAST, revisionNamed } from '../fleet/newest-revision.ts'
import type { Question } from '../input/agree.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { printFleetWrite } from '../output/write-report.ts'
import { sendChange } from '../server/send-change.ts'
import type { Session } from '../session.ts'

export function defineRevert(command: Command, { run }: Tools): void {
  command.argument(
    `[revision|${LAST}]`,
    'its number, as log shows it (default last, which is always asked about)',
  )
  addWriteFlags(command)
    .addHelpText(
      'after',
      `\nWhat others did since stays. If they changed the same fields, it is a conflict and nothing is done.\n\nExamples:\n  ${PROGRAM} revert 12 --dry-run\n  ${PROGRAM} revert 12 -m 'broke the demo'\n  ${PROGRAM} revert`,
    )
    .action(
      run(async (session, text: string | undefined, flags: WriteFlags) => {
        const revision = await revisionNamed(session, text ?? LAST)
        const sent = await sendChange(session, flags, {
          method: 'POST',
          path: `/revisions/${revision}/revert`,
          ...(text === undefined && { always: await lastOf(session, revision) }),
        })
        await printFleetWrite(session, sent, `revert revision ${revision}`)
      }),
    )
}

/** Whoever names no revision is shown which one is the last. */
async function lastOf(session: Session, revision: number): Promise<Pick<Question, 'does' | 'notes'>> {
  const { body } = await session.api.get(`/revisions/${revision}`, { query: { limit: 1, impact_limit: 0 } })
  const { actor, time, operation, message } = body as Revision
  const what = `${operation}${message ? ` (${message})` : ''}`
  const notes = [`revision ${revision}, ${fromNow(time, new Date())} by ${actor}: ${what}`]
  return { does: `revert revision ${revision}`, notes }
}
