// `show`: one revision, or several as one: their changes, and what they meant for clusters.
import type { Command } from 'commander'
import type { Revision } from '../../api/wire-types.ts'
import type { Impact } from '../../domain/delivery/impact.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { LAST, revisionNamed } from '../fleet/newest-revision.ts'
import { describeChanges } from '../output/change-report.ts'
import { describeCompared } from '../output/compared-report.ts'
import { describeImpact } from '../output/impact-report.ts'
import { type Look, refuseNameOutput } from '../output/print.ts'
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
          human: (look) => describeRevision(look, body),
        })
      }),
    )
}

/** What the revisions after the first changed together, the last one included. */
async function showRange(session: Session, from: string, to: string | undefined): Promise<void> {
  refuseNameOutput(session)
  const compared = await readCompared(session, { from, to })
  await session.print({ value: compared, human: (look) => describeCompared(look, compared) })
  if (compared.change_count === 0 && session.format.kind === 'human') session.note('no difference')
}

function describeRevision(look: Look, revision: Revision & { impact?: Impact }): string {
  const { message, operation, actor, time, changes, change_count, impact } = revision
  const head = look.pairs([
    ['Revision:', String(revision.revision)],
    ['Time:', time],
    ['Actor:', actor],
    ['From:', String(revision.client_address ?? '')],
    ['Message:', message ?? ''],
    ['Operation:', operation],
    ['Request id:', String(revision.request_id ?? '')],
    ['Hash:', String(revision.hash ?? '')],
  ])
  return `${head}\n${describeChanges(look, changes, change_count)}${impact ? describeImpact(look, impact) : ''}`
}
