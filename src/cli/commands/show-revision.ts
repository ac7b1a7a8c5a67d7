// `show`: one revision, or several as one: their changes, and what they meant for clusters.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { LAST, revisionNamed } from '../fleet/newest-revision.ts'
import { describeCompared } from '../output/compared-report.ts'
import { refuseNameOutput } from '../output/print.ts'
import { describeRevision } from '../output/revision-table.ts'
import { readCompared } from '../server/read-compared.ts'
import type { Session } from '../session.ts'

export function defineShow(command: Command, { run }: Tools): void {
  command
    .argument(
      `[revision|${LAST}]`,
      'its number, or two as in 40..45: what they changed together (default last)',
    )
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} show\n  ${PROGRAM} show 12\n  ${PROGRAM} show 40..45\n  ${PROGRAM} show 12 -o jsonpath='{.impact.clusters}'`,
    )
    .action(
      run(async (session, text = LAST) => {
        const [, first, last] = /^(\d+)\.\.(\d*)$/.exec(text) ?? []
        if (first !== undefined) return showRange(session, first, last || undefined)
        const revision = await revisionNamed(session, text)
        const { body } = await session.api.get(`/revisions/${revision}`)
        await session.print({
          value: body,
          names: [`revisions/${revision}`],
          isPaged: true,
          human: (look) => describeRevision(look, body),
        })
      }),
    )
}

/** What the revisions after the first changed together, the last one included. */
async function showRange(session: Session, from: string, to: string | undefined): Promise<void> {
  refuseNameOutput(session)
  const compared = await readCompared(session, { from, to })
  await session.print({ value: compared, isPaged: true, human: (look) => describeCompared(look, compared) })
  if (compared.change_count === 0 && session.format.kind === 'human') session.note('no difference')
}
