// `cluster status`: what one cluster was served, has applied, and how its components fare.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { getNew } from '../fleet/read-status.ts'
import { describeStatus } from '../output/cluster-status-report.ts'
import type { Noun } from '../server/nouns.ts'
import { pathOf } from '../server/read-documents.ts'

const ABOUT = `
SERVED and APPLIED are the first digits of digests. Where they equal DESIRED, the cluster was served, or has applied,
exactly what it should have now. -o wide shows whole digests and all transitions.`

export function defineClusterStatus(command: Command, { run }: Tools, noun: Noun): void {
  command
    .argument('<id>', `id of the ${noun.singular}`)
    .addHelpText(
      'after',
      `${ABOUT}\n\nExamples:\n  ${PROGRAM} ${noun.noun} status demo-cluster-01\n  ${PROGRAM} ${noun.noun} status demo-cluster-01 -o jsonpath='{.contact.state} {.delivery} {.health}'`,
    )
    .action(
      run(async (session, id: string) => {
        const { body } = await getNew(session, pathOf(noun, id, 'status'))
        await session.print({
          value: body,
          names: [`${noun.name}/${id}`],
          human: (look) => describeStatus(look, body, new Date()),
        })
      }),
    )
}
