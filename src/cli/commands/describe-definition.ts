// `NOUN describe` of what is no cluster: its fields, what needs it, which clusters have which version, and what changed.
import type { Command } from 'commander'
import type { VersionList, VersionStatus } from '../../api/versions-schema.ts'
import type { Revision } from '../../api/wire-types.ts'
import type { JsonObject } from '../../base/json.ts'
import { firstOf } from '../../base/sentences.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { getNew } from '../fleet/read-status.ts'
import { cell } from '../output/document-columns.ts'
import type { Look } from '../output/print.ts'
import { revisionTable } from '../output/revision-table.ts'
import { fieldsOf, type Noun, nameOf } from '../server/nouns.ts'
import { readAssigned } from '../server/read-assigned.ts'
import { getDocument, listAll, pathOf } from '../server/read-documents.ts'
import type { Session } from '../session.ts'

const LAST_CHANGES = 5
/** How many clusters with an override are named for each version. */
const NAMED = 4
/** How many versions have their clusters named. */
const NAMED_VERSIONS = 5
/** What stands in a selector. */
const WORD = /^[\w./-]+$/

interface Description {
  readonly document: JsonObject
  readonly dependents: readonly string[]
  readonly versions: readonly DescribedVersion[]
  /** How many clusters have it switched off. */
  readonly switched_off: number
  readonly revisions: readonly Revision[]
}

interface DescribedVersion extends VersionStatus {
  /** The first clusters that have this version by an override of their own. */
  readonly overridden_on?: readonly string[]
}

export function defineDescribeDefinition(command: Command, { run }: Tools, noun: Noun): void {
  command
    .argument('<id>', `id of the ${noun.singular}`)
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} ${noun.noun} describe ID\n  ${PROGRAM} ${noun.noun} describe ID -o yaml`,
    )
    .action(
      run(async (session, id: string) => {
        const described = await describe(session, noun, id)
        await session.print({
          value: described,
          names: [nameOf({ type: noun.name, id })],
          human: (look) => layOut(look, noun, session.nouns, described),
        })
      }),
    )
}

async function describe(session: Session, noun: Noun, id: string): Promise<Description> {
  const { body: document } = await getDocument(session, noun, id)
  const [dependents, where, history] = await Promise.all([
    dependentsOf(session, noun, id),
    noun.delivery ? whereIs(session, noun, id) : { versions: [], switched_off: 0 },
    session.api.get(pathOf(noun, id, 'history'), { query: { limit: LAST_CHANGES } }),
  ])
  return { document, dependents, ...where, revisions: history.body }
}

/** The documents that name this one in a field. */
async function dependentsOf(session: Session, { name }: Noun, id: string): Promise<string[]> {
  const naming = session.nouns.flatMap((noun) => {
    const fields = Object.entries(noun.references).filter(([, type]) => type === name)
    return fields.length > 0 ? [{ noun, fields: fields.map(([field]) => field) }] : []
  })
  const found = await Promise.all(
    naming.map(async ({ noun, fields }) => {
      const { documents } = await listAll(session, noun)
      const dependents = documents.filter((each) => fields.some((field) => names(each[field], id)))
      return dependents.map((each) => nameOf({ type: noun.name, id: each.id }))
    }),
  )
  return found.flat()
}

function names(value: unknown, id: string): boolean {
  return Array.isArray(value) ? value.includes(id) : value === id
}

async function whereIs(
  session: Session,
  noun: Noun,
  id: string,
): Promise<Pick<Description, 'versions' | 'switched_off'>> {
  const [{ body }, { total }] = await Promise.all([
    getNew(session, pathOf(noun, id, 'versions')),
    readAssigned(session, noun, id, { limit: 0 }),
  ])
  const { versions }: VersionList = body
  const enabled = versions.reduce((sum, { clusters }) => sum + clusters, 0)
  const named = versions
    .filter(
      ({ overridden, version }) => overridden > 0 && version !== null && WORD.test(version) && WORD.test(id),
    )
    .slice(0, NAMED_VERSIONS)
  const overriddenOn = await Promise.all(
    named.map(async ({ version }) => {
      const selector = `version.${id}=${version},overrides.${noun.name}=${id}`
      const { clusters } = await readAssigned(session, noun, id, { selector, limit: NAMED + 1 })
      return [version, clusters.map(({ cluster }) => cluster)] as const
    }),
  )
  const byVersion = new Map(overriddenOn)
  const described = versions.map((each) => {
    const clusters = byVersion.get(each.version)
    return clusters ? { ...each, overridden_on: clusters } : each
  })
  return { versions: described, switched_off: total - enabled }
}

function layOut(look: Look, noun: Noun, nouns: readonly Noun[], described: Description): string {
  const { document, dependents, versions, switched_off: off, revisions } = described
  const rows = fieldsOf(noun, nouns)
    .filter(([name]) => document[name] !== undefined)
    .map(([name]): [string, string] => [`${name.replaceAll('_', ' ')}:`, cell(document[name]) || '(nothing)'])
  const isNamed = nouns.some(({ references }) => Object.values(references).includes(noun.name))
  return [
    look.pairs([
      ['id:', String(document.id)],
      ...rows,
      ...(isNamed ? ([['named by:', dependents.join(', ') || '(nothing)']] as const) : []),
    ]),
    ...(noun.delivery ? [versionSection(look, noun, versions, off)] : []),
    heading(look, 'Last changes', revisions.length),
    revisionTable(look, revisions),
  ].join('\n')
}

function heading({ paint }: Look, title: string, number: number): string {
  return `${paint('bold', title)}${number === 0 ? ': none' : ''}`
}

function versionSection(look: Look, noun: Noun, versions: readonly DescribedVersion[], off: number): string {
  const title = heading(look, 'Clusters', versions.length + off)
  const isVersioned = noun.delivery?.versions === true
  const rows = versions.map((each) => [
    ...(isVersioned ? [each.version ?? '(none)', originOf(each)] : []),
    each.clusters.toLocaleString('en'),
    Object.entries(each.environments)
      .map(([name, { clusters }]) => `${name} ${clusters.toLocaleString('en')}`)
      .join(', '),
    ...[each.applied, each.healthy, each.failed].map((number) => number.toLocaleString('en')),
  ])
  const headers = [
    ...(isVersioned ? ['VERSION', 'FROM'] : []),
    ...['CLUSTERS', 'ENVIRONMENTS', 'APPLIED', 'HEALTHY', 'FAILED'],
  ]
  const lines = [
    title,
    ...(rows.length > 0 ? [look.table(headers, rows).trimEnd()] : []),
    ...(off > 0 ? [`switched off on ${off.toLocaleString('en')}`] : []),
  ]
  return `${lines.join('\n')}\n`
}

/** `catalog`, or how many have the version by an override, and the first of them. */
function originOf({ clusters, overridden, overridden_on: named = [] }: DescribedVersion): string {
  if (overridden === 0) return 'catalog'
  const all = [...named, ...Array.from({ length: Math.max(0, overridden - named.length) }, () => '')]
  const who = named.length > 0 ? `: ${firstOf(all, Math.min(NAMED, named.length))}` : ''
  return overridden === clusters
    ? `override${who}`
    : `catalog, ${overridden.toLocaleString('en')} override${who}`
}
