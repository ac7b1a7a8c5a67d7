// `show`: one revision, its changes, and what they meant for clusters.
import type { Command } from 'commander'
import type { Revision } from '../../api/wire-types.ts'
import type { Impact } from '../../domain/delivery/impact.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { needRevision } from '../input/moments.ts'
import { describeChanges } from '../output/change-report.ts'
import { describeImpact } from '../output/impact-report.ts'
import type { Look } from '../output/print.ts'

export function defineShow(command: Command, { run }: Tools): void {
  command
    .argument('<revision>', 'its number')
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} show 12\n  ${PROGRAM} show 12 -o jsonpath='{.impact.clusters}'`,
    )
    .action(
      run(async (session, text: string) => {
        const revision = needRevision(text)
        const { body } = await session.api.get(`/revisions/${revision}`)
        await session.print({
          value: body,
          names: [`revisions/${revision}`],
          human: (look) => describeRevision(look, body),
        })
      }),
    )
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
