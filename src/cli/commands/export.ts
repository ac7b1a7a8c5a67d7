// `export`: the fleet, or a part of it, as a set that can be applied.
import type { Command } from 'commander'
import type { JsonObject } from '../../base/json.ts'
import { idsIn } from '../../domain/types/resource-type.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { parseAt } from '../input/moments.ts'
import { collectIds } from '../input/option-parsers.ts'
import { harmless, toYaml } from '../output/print.ts'
import { startProgress } from '../output/progress.ts'
import { writeFolder } from '../output/write-folder.ts'
import {
  assignedIds,
  clusterNoun,
  type DocumentName,
  type Noun,
  nameOf,
  typeNamed,
  withType,
} from '../server/nouns.ts'
import { listAll } from '../server/read-documents.ts'
import type { Session } from '../session.ts'

interface Flags {
  readonly selector?: string
  readonly at?: string
  readonly outputDir?: string
  readonly type?: readonly string[]
}

/** Documents to write before the stream is given time to drain. */
const CHUNK = 500

export function defineExport(command: Command, { run }: Tools): void {
  command
    .option('-l, --selector <selector>', 'only clusters that match, with all that they use')
    .option('--at <revision|time>', 'as it was then')
    .option('--type <names>', 'only documents of these types, such as component', collectIds)
    .option(
      '--output-dir <folder>',
      'one file for each document, TYPE/ID.yaml; files of documents that are gone are deleted',
    )
    .addHelpText(
      'after',
      `\nDefinitions come first, then clusters, all as of one revision. -o yaml is the default; -o json is read faster.\n\nExamples:\n  ${PROGRAM} export > fleet.yaml\n  ${PROGRAM} export --output-dir fleet/\n  ${PROGRAM} export --selector environment=dev -o json | ${PROGRAM} --context lab apply -f -`,
    )
    .action(run(exportFleet))
}

async function exportFleet(session: Session, { selector, at, outputDir, type }: Flags): Promise<void> {
  const { format, nouns, api } = session
  if (format.kind === 'jsonpath') throw usage('export writes yaml, json or name')
  // All pages of all lists are as of one revision.
  const probe = await api.get(`/${clusterNoun(nouns).name}`, { query: { limit: 0, at: parseAt(at) } })
  const revision = String(probe.headers['x-revision'])
  const types = type?.map((name) => typeNamed(nouns, name))
  const collected = await collect(session, selector, revision)
  const documents = types ? collected.filter(([{ name }]) => types.includes(name)) : collected
  if (outputDir !== undefined) {
    const isWhole = selector === undefined && types === undefined
    return writeFolder(session, outputDir, documents, { revision, isWhole })
  }
  const typed = documents.map(([noun, document]) => withType(noun, document))
  if (format.kind === 'yaml' || format.kind === 'human') return writeYaml(session, typed)
  await session.print({
    value: typed,
    names: documents.map(([{ name }, { id }]) => nameOf({ type: name, id: String(id) })),
    human: () => '',
  })
}

async function collect(
  session: Session,
  selector: string | undefined,
  at: string,
): Promise<[Noun, JsonObject][]> {
  const { nouns } = session
  const clusters = clusterNoun(nouns)
  const definitions = nouns.filter((noun) => noun !== clusters && !noun.bookkeeping)
  const chosen = await listAll(session, clusters, { query: { selector, at } })
  const lists = new Map<Noun, readonly JsonObject[]>()
  for (const noun of definitions) lists.set(noun, (await listAll(session, noun, { query: { at } })).documents)
  const isUsed = selector === undefined ? () => true : usesOf(nouns, lists, chosen.documents)
  return [
    ...definitions.flatMap((noun) =>
      (lists.get(noun) ?? [])
        .filter(({ id }) => isUsed({ type: noun.name, id: String(id) }))
        .map((document): [Noun, JsonObject] => [noun, document]),
    ),
    ...chosen.documents.map((document): [Noun, JsonObject] => [clusters, document]),
  ]
}

/** Returns whether a document is assigned to clusters, or referred to by one that is. */
function usesOf(
  nouns: readonly Noun[],
  lists: ReadonlyMap<Noun, readonly JsonObject[]>,
  clusters: readonly JsonObject[],
): (document: DocumentName) => boolean {
  const used = new Set<string>()
  const open: DocumentName[] = clusters.flatMap((cluster) =>
    nouns.flatMap((noun) => assignedIds(noun, cluster).map((id) => ({ type: noun.name, id }))),
  )
  const byKey = new Map(
    [...lists].flatMap(([noun, all]) =>
      all.map((each) => [nameOf({ type: noun.name, id: String(each.id) }), { noun, each }]),
    ),
  )
  for (let next = open.pop(); next; next = open.pop()) {
    const key = nameOf(next)
    if (used.has(key)) continue
    used.add(key)
    const { noun, each } = byKey.get(key) ?? {}
    for (const [field, type] of Object.entries(noun?.references ?? {})) {
      open.push(...idsIn(each?.[field]).map((id) => ({ type, id })))
    }
  }
  return (document) => used.has(nameOf(document))
}

async function writeYaml(session: Session, documents: readonly JsonObject[]): Promise<void> {
  const { terminal } = session
  const { stdout } = terminal
  const progress = startProgress(session, 'Writing')
  try {
    for (let at = 0; at < documents.length; at += CHUNK) {
      const chunk = documents.slice(at, at + CHUNK)
      const texts = await Promise.all(chunk.map(async (each) => `---\n${await toYaml(each)}`))
      const text = harmless(terminal, texts.join(''))
      if (!stdout.write(text)) await new Promise((resolve) => stdout.once('drain', resolve))
      progress.show(at + chunk.length, documents.length)
    }
  } finally {
    progress.end()
  }
}
