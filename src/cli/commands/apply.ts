// `apply` and `diff`: the fleet as files say.
import type { Command } from 'commander'
import type { DescribedChange } from '../../domain/describe-change.ts'
import type { Impact } from '../../domain/impact.ts'
import type { JsonObject } from '../../domain/json.ts'
import { Refusal } from '../api-client.ts'
import {
  defaultName,
  entriesOf,
  type Inventory,
  inventoryOf,
  operationFor,
  readSet,
  type Wanted,
} from '../apply-set.ts'
import { count, describePreview, doneTo, receivers } from '../change-report.ts'
import { EXIT, Failure, unmet, usage } from '../failure.ts'
import { collect } from '../field-flags.ts'
import { clusterNoun, type Noun } from '../nouns.ts'
import { PROGRAM, type Tools } from '../program.ts'
import { startProgress } from '../progress.ts'
import { findDocument, listAll } from '../read-documents.ts'
import { addWriteFlags, printablePreview, type Sent, sendChange, type WriteFlags } from '../send-change.ts'
import type { Session } from '../session.ts'

interface Flags extends WriteFlags {
  readonly file: readonly string[]
  readonly prune?: boolean
  readonly name?: string
  readonly split?: boolean
}

/** What the service takes at once, with room for what surrounds it. */
const MAX_BYTES = 30 * 1024 * 1024
/** So few documents are read one by one, more of them as a list. */
const FEW = 20
const TRIES = 3
const SHOWN = 1000

const ABOUT = `
Files hold YAML or JSON documents, each with its type, or are seed files (lists of documents by type):

  type: namespaces
  id: team-a
  labels: {team: a}

What is missing is created. Of what is there, the fields that a file names become exactly what it says; fields that it
does not name stay (null removes one). All of it is one revision.

--prune deletes what the same set held before and holds no longer. A set is known by its name: --name, or else the name
of the first file or folder. What is applied is remembered with it (${PROGRAM} applied-set list).`

function addSetFlags(command: Command): Command {
  return command
    .requiredOption(
      '-f, --file <path>',
      'a file, a folder with all below it, or - for stdin (repeatable)',
      collect,
    )
    .option('--prune', 'delete what the set held before and holds no longer')
    .option('--name <name>', 'name of the set (default: that of the first file or folder)')
}

export function defineApply(command: Command, { run }: Tools): void {
  addWriteFlags(addSetFlags(command))
    .option('--split', 'several revisions where one would be too large, definitions first')
    .addHelpText(
      'after',
      `${ABOUT}\n\nExamples:\n  ${PROGRAM} apply -f fleet/ --dry-run\n  ${PROGRAM} apply -f fleet/ --prune -m 'release 42'\n  ${PROGRAM} export | ${PROGRAM} --context other apply -f -`,
    )
    .action(run(apply))
}

export function defineDiff(command: Command, { run }: Tools): void {
  addSetFlags(command)
    .addHelpText(
      'after',
      `\nExits with 0 when there is no difference and with ${EXIT.unmet} when there is one.\n\nExamples:\n  ${PROGRAM} diff -f fleet/\n  ${PROGRAM} diff -f fleet/ --prune -o json`,
    )
    .action(
      run(async (session, flags: Flags) => {
        const work = await prepare(session, flags)
        const { preview } = await sendChange(session, { dryRun: true }, batch(work.operations))
        if (!preview) throw new Error('a dry run answers a preview')
        const visible = withoutBookkeeping(session, preview.changes)
        const hidden = preview.changes.length - visible.length
        const shown = { ...preview, changes: visible, change_count: preview.change_count - hidden }
        await session.print({
          ...printablePreview(preview),
          human: ({ paint }) => (shown.change_count === 0 ? '' : describePreview(paint, shown)),
        })
        // What differs has been shown: the exit code says the rest.
        if (shown.change_count > 0) throw unmet('')
      }),
    )
}

function batch(operations: readonly JsonObject[]) {
  return { method: 'POST', path: '/batch', body: { operations } } as const
}

function withoutBookkeeping({ nouns }: Session, changes: readonly DescribedChange[]): DescribedChange[] {
  const kept = nouns.filter(({ bookkeeping }) => bookkeeping).map(({ name }) => name)
  return changes.filter(({ type }) => !kept.includes(type))
}

interface Work {
  readonly set: readonly Wanted[]
  readonly operations: readonly JsonObject[]
}

async function apply(session: Session, flags: Flags): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const work = await prepare(session, flags)
    try {
      const sent = await sendAll(session, flags, work)
      return await report(session, sent)
    } catch (error) {
      // Somebody created or deleted one of the documents in between: what is to be done has to be seen again.
      const isLost = error instanceof Refusal && /exists already|^\S+: no |^no /.test(error.message)
      if (!isLost || flags.plan !== undefined || attempt === TRIES || flags.file.includes('-')) throw error
    }
  }
}

async function prepare(session: Session, flags: Flags): Promise<Work> {
  const { terminal, nouns } = session
  const set = await readSet(terminal, nouns, flags.file)
  const current = await readCurrent(session, set)
  const operations = set.flatMap((wanted): JsonObject[] => {
    const operation = operationFor(wanted, current.get(`${wanted.type}/${wanted.id}`))
    return operation ? [operation] : []
  })
  const bookkeeping = await keepBooks(session, flags, set)
  const all = [...operations, ...bookkeeping]
  // Nothing to do is for the service to say as well: a document as it is.
  const [first] = set
  return { set, operations: all.length > 0 || !first ? all : [asItIs(first)] }
}

function asItIs({ type, id }: Wanted): JsonObject {
  return { op: 'patch', type, id, patch: [] }
}

/** The documents of the set as they are now. */
async function readCurrent(session: Session, set: readonly Wanted[]): Promise<Map<string, JsonObject>> {
  const current = new Map<string, JsonObject>()
  for (const [type, wanted] of Map.groupBy(set, (each) => each.type)) {
    const noun = session.nouns.find(({ name }) => name === type) as Noun
    if (wanted.length > FEW) {
      const { documents } = await listAll(session, noun)
      for (const document of documents) current.set(`${type}/${document.id}`, document)
      continue
    }
    const found = await Promise.all(wanted.map(({ id }) => findDocument(session, noun, id)))
    for (const [i, each] of found.entries()) if (each) current.set(`${type}/${wanted[i]?.id}`, each.document)
  }
  return current
}

/** What remembers the set, and deletes what it holds no longer. */
async function keepBooks(session: Session, flags: Flags, set: readonly Wanted[]): Promise<JsonObject[]> {
  const books = session.nouns.find(({ bookkeeping }) => bookkeeping)
  if (!books) {
    if (flags.prune) throw usage('this server does not remember what was applied, so nothing can be pruned')
    return []
  }
  const name = flags.name ?? defaultName(flags.file)
  const recorded = await findDocument(session, books, name)
  const before = (recorded?.document.documents ?? {}) as Inventory
  const held = entriesOf(before)
  const now = new Set(set.map(({ type, id }) => `${type}/${id}`))
  const missing = held.filter(({ type, id }) => !now.has(`${type}/${id}`))
  if (held.length > 0 && missing.length === held.length) {
    // Two sets of one name, most likely: one must not prune the other.
    const told = `a set "${name}" was applied before that holds none of these documents`
    if (flags.prune && flags.name === undefined) throw usage(`${told}: give this one another name by --name`)
    if (flags.name === undefined) {
      session.note(`${told}: this one is not remembered; give it a name by --name`)
      return []
    }
  }
  const deletions = flags.prune ? await deleteOperations(session, missing) : []
  const documents = inventoryOf(flags.prune ? set : [...held, ...set])
  const write = recorded
    ? operationFor(
        { type: books.name, id: name, document: { id: name, documents }, source: '' },
        recorded.document,
      )
    : { op: 'create', type: books.name, document: { id: name, documents } }
  return [...deletions, ...(write ? [write] : [])]
}

/** What others have deleted meanwhile is gone already. */
async function deleteOperations(
  session: Session,
  entries: readonly { readonly type: string; readonly id: string }[],
): Promise<JsonObject[]> {
  const wanted = entries
    .filter(({ type }) => session.nouns.some(({ name }) => name === type))
    .map((entry) => ({ ...entry, document: {}, source: '' }))
  const current = await readCurrent(session, wanted)
  return wanted
    .filter(({ type, id }) => current.has(`${type}/${id}`))
    .map(({ type, id }) => ({ op: 'delete', type, id }))
}

/** One batch, or several when that is allowed and needed. */
async function sendAll(session: Session, flags: Flags, { operations }: Work): Promise<Sent[]> {
  const parts = splitBySize(operations, clusterNoun(session.nouns).name)
  if (parts.length <= 1) return [await sendChange(session, flags, batch(operations))]
  if (!flags.split) {
    throw usage(
      `the set is too large for one revision: ${count(operations.length, 'operation')} in ${parts.length} parts of 30 MiB`,
      'apply --split does it in several revisions, or apply a folder at a time',
    )
  }
  if (flags.dryRun || flags.plan !== undefined) {
    throw usage(
      '--dry-run and --plan are for one revision: a set that has to be split cannot be previewed as a whole',
    )
  }
  const sent: Sent[] = []
  const progress = startProgress(session, 'Applying')
  try {
    for (const [i, part] of parts.entries()) {
      const message = `${flags.message ?? 'apply'} (part ${i + 1} of ${parts.length})`
      sent.push(await sendChange(session, { ...flags, message, yes: true }, batch(part)))
      progress.show(i + 1, parts.length)
    }
  } finally {
    progress.end()
  }
  return sent
}

function splitBySize(operations: readonly JsonObject[], clusters: string): JsonObject[][] {
  const parts: JsonObject[][] = []
  let size = MAX_BYTES
  // What clusters refer to must be there before they are.
  const weight = ({ op, type }: JsonObject): number => (op === 'delete' ? 2 : type === clusters ? 1 : 0)
  for (const operation of operations.toSorted((a, b) => weight(a) - weight(b))) {
    const bytes = Buffer.byteLength(JSON.stringify(operation)) + 1
    if (bytes > MAX_BYTES) throw new Failure(EXIT.usage, `one document alone is larger than 30 MiB`)
    if (size + bytes > MAX_BYTES) {
      parts.push([])
      size = 0
    }
    parts.at(-1)?.push(operation)
    size += bytes
  }
  return parts
}

async function report(session: Session, sent: readonly Sent[]): Promise<void> {
  const [first] = sent
  if (first?.preview) return session.print(printablePreview(first.preview))
  const answers = sent.flatMap(({ answer }) => (answer ? [answer.body] : []))
  const value = answers.length === 1 ? answers[0] : answers
  if (session.format.kind !== 'human') {
    const names = session.format.kind === 'name' ? (await changesOf(session, answers)).map(nameOf) : []
    return session.print({ value, names, human: () => '' })
  }
  const changes = await changesOf(session, answers)
  const total = answers.reduce((sum, { changes: each }) => sum + each, 0)
  const more = total - changes.length
  const visible = withoutBookkeeping(session, changes)
  await session.print({
    value,
    human: ({ paint }) =>
      [
        ...visible.map((change) => `${nameOf(change)} ${doneTo(change.op)}`),
        ...(more > 0 ? [`… and ${count(more, 'more document')}`] : []),
        total === 0
          ? 'nothing to change'
          : paint(
              'dim',
              `revision ${answers.map(({ revision }) => revision).join(', ')}; ${received(answers)}`,
            ),
      ]
        .map((line) => `${line}\n`)
        .join(''),
  })
}

/** Of several revisions the same cluster may receive something from each. */
function received(answers: readonly { impact: Impact }[]): string {
  const [only] = answers
  return answers.length === 1 && only ? receivers(only.impact) : `${answers.length} revisions`
}

function nameOf({ type, id }: { type: string; id: string }): string {
  return `${type}/${id}`
}

/** What the revisions changed, as far as it fits a screen. */
async function changesOf(
  session: Session,
  answers: readonly { revision: number; changes: number }[],
): Promise<DescribedChange[]> {
  const changes: DescribedChange[] = []
  for (const { revision } of answers.filter((answer) => answer.changes > 0)) {
    if (changes.length >= SHOWN) break
    const { body } = await session.api.get(`/revisions/${revision}`, {
      query: { limit: SHOWN, impact_limit: 0 },
    })
    changes.push(...body.changes)
  }
  return changes
}
