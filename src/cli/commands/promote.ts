// `NOUN promote`: gives clusters the version of a definition that others have proved.
import type { Command } from 'commander'
import type { AssignedCluster } from '../../api/versions-schema.ts'
import { equalJson, type JsonObject } from '../../base/json.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { unmet, usage } from '../failure.ts'
import { dropOperation, overridableFields } from '../input/drop-overrides.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { cell } from '../output/document-columns.ts'
import { printFleetWrite } from '../output/write-report.ts'
import { clusterNoun, type Noun } from '../server/nouns.ts'
import { readAssigned } from '../server/read-assigned.ts'
import { sendBatch } from '../server/send-change.ts'
import type { Session } from '../session.ts'

interface Flags extends WriteFlags {
  readonly from: string
  readonly to: string
}

const CATALOG = 'catalog'

export function definePromote(command: Command, { run }: Tools, noun: Noun): void {
  command
    .argument('<id>', `id of the ${noun.singular}`)
    .requiredOption('--from <environment|selector>', 'the clusters that have what is to be promoted')
    .requiredOption('--to <environment|selector|catalog>', 'the clusters to promote it to; catalog: all')
  addWriteFlags(command)
    .addHelpText(
      'after',
      `
Clusters of --to that have the ${noun.singular} get the same overrides as those of --from; where --from has none, theirs
are dropped. --to catalog makes the values the default in the catalog, and drops every override of these fields.

Examples:
  ${PROGRAM} ${noun.noun} promote grafana --from dev --to qa --dry-run
  ${PROGRAM} ${noun.noun} promote grafana --from 'canary=true' --to environment=prod,region=eu
  ${PROGRAM} ${noun.noun} promote grafana --from prod --to catalog -m 'v1.1.0 everywhere'`,
    )
    .action(
      run(async (session, id: string, flags: Flags) => {
        const from = selectorOf(session, flags.from)
        const { clusters } = await readAssigned(session, noun, id, { selector: from })
        const own = ownFields(noun, id, clusters, from)
        const names = overridableFields(noun)
        const operations =
          flags.to === CATALOG
            ? toCatalog(noun, id, own, from)
            : [toClusters(noun, id, own, names, selectorOf(session, flags.to))]
        const sent = await sendBatch(session, flags, operations)
        const what = Object.entries(own).map(([name, value]) => `${name}=${cell(value)}`)
        await printFleetWrite(
          session,
          sent,
          `promote ${id} (${what.join(', ') || 'as in the catalog'}) to ${flags.to}`,
        )
      }),
    )
}

/** An environment by its name is a selector of it. */
function selectorOf({ nouns }: Session, text: string): string {
  const isName = /^[\w.-]+$/.test(text)
  return isName ? `${clusterNoun(nouns).cluster.environment ?? 'environment'}=${text}` : text
}

/** The fields that all of these clusters set themselves, alike. */
function ownFields(noun: Noun, id: string, clusters: readonly AssignedCluster[], from: string): JsonObject {
  const enabled = clusters.filter((each) => each.enabled)
  const [first] = enabled
  if (!first) throw unmet(`no cluster that (${from}) selects has ${noun.singular} "${id}"`)
  const fieldsOf = ({ overrides }: AssignedCluster): JsonObject => {
    const own = Object.entries(overrides).filter(([name]) => overridableFields(noun).includes(name))
    return Object.fromEntries(own)
  }
  const other = enabled.find((each) => !equalJson(fieldsOf(each), fieldsOf(first)))
  if (other)
    throw unmet(
      `the clusters of (${from}) have "${id}" in more than one way: which is to be promoted?`,
      `${first.cluster} has ${told(first)}, ${other.cluster} has ${told(other)}; give --from a selector of one of them`,
    )
  return fieldsOf(first)
}

function told({ version, overrides }: AssignedCluster): string {
  const own = Object.entries(overrides).map(([name, value]) => `${name}=${cell(value)}`)
  return own.join(', ') || (version ?? 'what the catalog has')
}

function toClusters(
  noun: Noun,
  id: string,
  own: JsonObject,
  names: readonly string[],
  selector: string,
): JsonObject {
  const others = names.filter((name) => !Object.hasOwn(own, name)).map((name) => [name, null])
  const ref = { id, ...own, ...Object.fromEntries(others) }
  return { op: 'assign', type: noun.name, merge: true, ref, selector }
}

function toCatalog(noun: Noun, id: string, own: JsonObject, from: string): JsonObject[] {
  const names = Object.keys(own)
  if (names.length === 0)
    throw usage(`the clusters of (${from}) have what the catalog says: nothing is left to promote`)
  const drop = {
    ...dropOperation(noun, id, names),
    selector: `overrides.${noun.name}=${id}`,
    allow_empty: true,
  }
  return [{ op: 'patch', type: noun.name, id, patch: own }, drop]
}
