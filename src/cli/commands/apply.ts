// `apply` and `diff`: the fleet as files say.
import type { Command } from 'commander'
import type { FleetWritten, Preview } from '../../api/wire-types.ts'
import { readSet } from '../apply/apply-set.ts'
import { booksOf, prepare, type SetFlags, type Step, setName, splitBySize } from '../apply/apply-steps.ts'
import { tellOfLeft } from '../apply/choose-prunable.ts'
import { PROGRAM, type Tools } from '../command-tree.ts'
import { EXIT, Failure, unmet, usage } from '../failure.ts'
import { agree, isAsked } from '../input/agree.ts'
import { collect } from '../input/field-flags.ts'
import { describePreview, doneTo } from '../output/change-report.ts'
import { count } from '../output/count.ts'
import { receivers } from '../output/impact-report.ts'
import type { Printable } from '../output/print.ts'
import { startProgress } from '../output/progress.ts'
import { Refusal } from '../server/api-client.ts'
import { nameOf } from '../server/nouns.ts'
import { changesIn } from '../server/revision-changes.ts'
import {
  addWriteFlags,
  printablePreview,
  type Sent,
  sendBatch,
  type WriteFlags,
} from '../server/send-change.ts'
import type { Session } from '../session.ts'

type Flags = WriteFlags & SetFlags & { readonly split?: boolean }

const TRIES = 3
const SHOWN = 1000

const ABOUT = `
Files hold YAML or JSON documents, each with its type, or are seed files (lists of documents by type):

  type: namespaces
  id: team-a
  labels: {team: a}

What is missing is created. Of what is there, the fields that a file names become exactly what it says; fields that it
does not name stay (null removes one). All of it is one revision.

--prune deletes what the same set held before and holds no longer, as far as the log shows that this set applied it;
what somebody else only wrote into the set stays, and is named. A set is known by its name: --name, or else the name
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
        const set = await readSet(session.terminal, session.nouns, flags.file)
        const { steps, left } = await prepare(session, flags, set)
        tellOfLeft(session, left)
        const { preview } = await inWordsOf(steps, () => send(session, { dryRun: true }, steps, steps.length))
        if (!preview) throw new Error('a dry run answers a preview')
        const shown = withoutBooks(session, steps, preview)
        await session.print({
          ...printablePreview(preview),
          human: (look) => (shown.change_count === 0 ? '' : describePreview(look, shown)),
        })
        // What differs has been shown: the exit code says the rest.
        if (shown.change_count > 0) throw unmet('')
      }),
    )
}

/** With a size, how far it is is shown. */
function send(session: Session, flags: WriteFlags, steps: readonly Step[], size?: number): Promise<Sent> {
  const operations = steps.map(({ operation }) => operation)
  return sendBatch(session, flags, operations, size)
}

async function inWordsOf<T>(steps: readonly Step[], call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw error instanceof Refusal ? inTheSet(error, steps) : error
  }
}

/** A preview as it concerns people. */
function withoutBooks(session: Session, steps: readonly Step[], preview: Preview): Preview {
  const books = booksOf(session)?.name
  const hidden = steps.filter(({ operation }) => operation.type === books).length
  return {
    ...preview,
    changes: preview.changes.filter(({ type }) => type !== books),
    change_count: preview.change_count - hidden,
  }
}

async function apply(session: Session, flags: Flags): Promise<void> {
  const set = await readSet(session.terminal, session.nouns, flags.file)
  for (let attempt = 1; ; attempt++) {
    const { steps, left } = await prepare(session, flags, set)
    if (attempt === 1) tellOfLeft(session, left)
    try {
      return await report(session, flags, steps, await sendAll(session, flags, steps))
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      // Somebody was faster with one of the documents: what is to be done has to be seen again.
      const isLost =
        ['precondition_failed', 'not_found'].includes(error.code) || error.reason === 'already_exists'
      if (!isLost || flags.plan !== undefined || attempt === TRIES) throw inTheSet(error, steps)
    }
  }
}

/** A refusal in the words of the files: which document of which file, instead of which operation. */
function inTheSet({ exitCode, message, details, hint }: Refusal, steps: readonly Step[]): Failure {
  const translate = (text: string): string =>
    text.replaceAll(/\/operations\/(\d+)(?:\/(?:document|patch)(?=[/ ]|$))?/g, (all, number: string) => {
      const { wanted } = steps[Number(number)] ?? {}
      return wanted ? `${wanted.source}: ${wanted.type}/${wanted.id} ` : all
    })
  return new Failure(exitCode, translate(message), { details: details.map(translate), hint })
}

/** One batch, or several when that is allowed and needed. */
async function sendAll(session: Session, flags: Flags, steps: readonly Step[]): Promise<Sent[]> {
  const parts = splitBySize(session, steps)
  return parts.length > 1
    ? sendParts(session, flags, parts)
    : [await send(session, flags, steps, steps.length)]
}

async function sendParts(
  session: Session,
  flags: Flags,
  parts: readonly (readonly Step[])[],
): Promise<Sent[]> {
  const total = parts.reduce((sum, part) => sum + part.length, 0)
  const told = `${count(total, 'operation')} in ${parts.length} parts of 30 MiB`
  if (!flags.split) {
    throw usage(
      `the set is too large for one revision: ${told}`,
      'apply --split does it in several revisions, or apply a folder at a time',
    )
  }
  if (flags.dryRun || flags.plan !== undefined) {
    throw usage('--dry-run and --plan are for one revision: a set that has to be split cannot be previewed')
  }
  if (isAsked(session, flags)) {
    await agree(session, { does: `apply ${told}, without a preview`, word: 'yes', notes: [] }, 'add --yes')
  }
  const sent: Sent[] = []
  const progress = startProgress(session, 'Applying')
  try {
    for (const [i, part] of parts.entries()) {
      progress.show(i, parts.length)
      const message = `${flags.message ?? 'apply'} (part ${i + 1} of ${parts.length})`
      sent.push(await sendPart(session, { ...flags, message, yes: true }, part, sent))
    }
  } finally {
    progress.end()
  }
  return sent
}

async function sendPart(
  session: Session,
  flags: WriteFlags,
  part: readonly Step[],
  before: readonly Sent[],
): Promise<Sent> {
  try {
    return await inWordsOf(part, () => send(session, flags, part))
  } catch (error) {
    const revisions = before.flatMap(({ answer }) => answer?.body.revision ?? [])
    if (revisions.length > 0) {
      const which = `${revisions.length === 1 ? 'revision' : 'revisions'} ${revisions.join(', ')}`
      session.warn(`what came before this part is stored, as ${which}`)
    }
    throw error
  }
}

async function report(
  session: Session,
  flags: Flags,
  steps: readonly Step[],
  sent: readonly Sent[],
): Promise<void> {
  const [first] = sent
  if (first?.preview) {
    const shown = withoutBooks(session, steps, first.preview)
    const human: Printable['human'] = (look) => describePreview(look, shown)
    return session.print({ ...printablePreview(first.preview), human })
  }
  const answers = sent.flatMap(({ answer }): FleetWritten[] => (answer ? [answer.body] : []))
  const books = booksOf(session)?.name
  const limit = session.format.kind === 'name' ? Number.POSITIVE_INFINITY : SHOWN
  const isNamed = session.format.kind === 'human' || session.format.kind === 'name'
  const changes = isNamed ? await changesIn(session, answers, limit) : []
  const visible = changes.filter(({ type }) => type !== books)
  const more = answers.reduce((sum, answer) => sum + answer.changes, 0) - changes.length
  await session.print({
    value: answers.length === 1 ? answers[0] : answers,
    names: visible.map(nameOf),
    human: ({ paint }) =>
      [
        ...visible.map((change) => `${nameOf(change)} ${doneTo(change.op)}`),
        ...(more > 0 ? [`… and ${count(more, 'more document')}`] : []),
        ...(visible.length === 0 ? ['nothing to change'] : []),
        ...(changes.length > 0 ? [paint('dim', revisionLine(setName(flags), visible.length, answers))] : []),
      ]
        .map((line) => `${line}\n`)
        .join(''),
  })
}

/** Of several revisions the same cluster may receive something from each. */
function revisionLine(name: string, visible: number, answers: readonly FleetWritten[]): string {
  const revisions = answers.map(({ revision }) => revision).join(', ')
  const [only] = answers
  if (visible === 0) return `revision ${revisions}; what the set "${name}" holds is remembered`
  return `revision ${revisions}; ${answers.length === 1 && only ? receivers(only.impact) : `${answers.length} revisions`}`
}
