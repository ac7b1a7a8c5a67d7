// `NOUN versions`: which versions of a definition clusters are to have, and how far they have come.
import type { Command } from 'commander'
import type { VersionList, VersionStatus } from '../../api/versions-schema.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { getNew } from '../fleet/read-status.ts'
import type { Look } from '../output/print.ts'
import type { Noun } from '../server/nouns.ts'
import { pathOf } from '../server/read-documents.ts'

const HEADERS = ['VERSION', 'CLUSTERS', 'OVERRIDDEN', 'APPLIED', 'HEALTHY', 'FAILED']

export function defineVersions(command: Command, { run }: Tools, noun: Noun): void {
  command
    .argument('<id>', `id of the ${noun.singular}`)
    .addHelpText(
      'after',
      `\nOVERRIDDEN: clusters that have this version by an override of their own. -o wide counts each environment.\n\nExamples:\n  ${PROGRAM} ${noun.noun} versions ID\n  ${PROGRAM} ${noun.noun} versions ID -o wide`,
    )
    .action(
      run(async (session, id: string) => {
        const { body } = await getNew(session, pathOf(noun, id, 'versions'))
        const { versions }: VersionList = body
        await session.print({
          value: body,
          names: versions.map(({ version }) => version ?? ''),
          human: (look) => (versions.length === 0 ? '' : versionTable(look, versions)),
        })
        if (versions.length === 0 && session.format.kind === 'human')
          session.note(`No cluster has ${noun.name}/${id}.`)
      }),
    )
}

function versionTable({ table, wide }: Look, versions: readonly VersionStatus[]): string {
  const rows = versions.map(({ version, clusters, overridden, applied, healthy, failed, environments }) => [
    version ?? '(none)',
    ...[clusters, overridden, applied, healthy, failed].map((number) => number.toLocaleString('en')),
    Object.entries(environments)
      .map(([name, each]) => `${name} ${each.applied}/${each.clusters}`)
      .join(', '),
  ])
  return wide ? table([...HEADERS, 'APPLIED BY ENVIRONMENT'], rows) : table(HEADERS, rows)
}
