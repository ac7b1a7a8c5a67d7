// `apply`: makes the fleet what files say.
import type { Command } from 'commander'
import type { FleetWritten } from '../../api/wire-types.ts'
import { count } from '../../base/sentences.ts'
import { readSet, type Step } from '../apply/apply-set.ts'
import { planApply, splitBySize } from '../apply/apply-steps.ts'
import { warnOfUnpruned } from '../apply/choose-prunable.ts'
import { inventoryNoun, withoutInventory } from '../apply/inventory.ts'
import { agreeToOverwrite, refuseOverwritten, warnOfOverwritten } from '../apply/others-changes.ts'
import { inTermsOfFiles, namingFiles, sendSteps } from '../apply/send-set.ts'
import { addSetFlags, type SetFlags, setName } from '../apply/set-flags.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { agree, isAsked } from '../input/agree.ts'
import { stagingOf } from '../input/rollout-flags.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { describePreview, doneTo } from '../output/change-report.ts'
import type { Printable } from '../output/print.ts'
import { startProgress } from '../output/progress.ts'
import { printStarted } from '../output/started-report.ts'
import { describeWritten, endOfDryRun, printablePreview } from '../output/write-report.ts'
import { nameOf } from '../server/nouns.ts'
import { changesIn } from '../server/read-revisions.ts'
import { Refusal } from '../server/refusal.ts'
import type { Sent } from '../server/send-change.ts'
import type { Session } from '../session.ts'

type Flags = WriteFlags & SetFlags & { readonly split?: boolean }

const TRIES = 3
const SHOWN = 1000

const ABOUT = `
Files hold YAML or JSON documents, each with its type, or are seed files (lists of documents by type):

  type: namespaces
  id: team-a
  labels: {team: a}

Documents that do not exist are created. In existing ones, a field that a file names gets exactly that value; other
fields stay, and null removes one. All of it is one revision.

--prune deletes documents that the set held before and no longer holds, if the log shows that this set applied them.
Documents that others have added to the set stay, and are named.

If others have changed a field since the set was last applied, and the files would change it back, apply names the field,
who changed it and why, and stops; on a terminal it asks. pull takes such changes into the files, --overwrite discards
them. A set is identified by --name, or by the name of the first file or folder. ${PROGRAM} applied-set list
shows what each set holds.`

export function defineApply(command: Command, { run }: Tools): void {
  addWriteFlags(addSetFlags(command))
    .option('--split', 'several revisions where one would be too large, definitions first')
    .addHelpText(
      'after',
      `${ABOUT}\n\nExamples:\n  ${PROGRAM} apply -f fleet/ --dry-run\n  ${PROGRAM} apply -f fleet/ --prune -m 'release 42'\n  ${PROGRAM} export | ${PROGRAM} --context other apply -f -`,
    )
    .action(run(apply))
}

async function apply(session: Session, flags: Flags): Promise<void> {
  const set = await readSet(session.terminal, session.nouns, flags.file)
  for (let attempt = 1; ; attempt++) {
    const { steps, unpruned, overwritten } = await planApply(session, flags, set)
    if (attempt === 1) warnOfUnpruned(session, unpruned)
    if (flags.dryRun) await warnOfOverwritten(session, overwritten)
    else await agreeToOverwrite(session, flags, overwritten)
    try {
      await report(session, flags, steps, await sendAll(session, flags, steps))
      return flags.dryRun ? refuseOverwritten(flags, overwritten) : undefined
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      // Another writer has changed one of the documents: the steps have to be planned again.
      const isConflict =
        ['precondition_failed', 'not_found'].includes(error.code) || error.reason === 'already_exists'
      if (!isConflict || flags.plan !== undefined || attempt === TRIES) throw namingFiles(error, steps)
    }
  }
}

/** Sends one batch, or several when that is allowed and needed. */
async function sendAll(session: Session, flags: Flags, steps: readonly Step[]): Promise<Sent[]> {
  const parts = splitBySize(session, steps)
  return parts.length > 1
    ? sendParts(session, flags, parts)
    : [await sendSteps(session, flags, steps, steps.length)]
}

async function sendParts(
  session: Session,
  flags: Flags,
  parts: readonly (readonly Step[])[],
): Promise<Sent[]> {
  const total = parts.reduce((sum, part) => sum + part.length, 0)
  const size = `${count(total, 'operation')} in ${parts.length} parts of 30 MiB`
  if (!flags.split) {
    throw usage(
      `the set is too large for one revision: ${size}`,
      'apply --split does it in several revisions, or apply a folder at a time',
    )
  }
  if (flags.dryRun || flags.plan !== undefined) {
    throw usage('--dry-run and --plan are for one revision: a set that has to be split cannot be previewed')
  }
  if (stagingOf(flags))
    throw usage('a rollout is one change, and the set has to be split: apply a part of it')
  if (isAsked(session, flags)) {
    await agree(session, { does: `apply ${size}, without a preview`, word: 'yes', notes: [] }, 'add --yes')
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
    return await inTermsOfFiles(part, () => sendSteps(session, flags, part))
  } catch (error) {
    const revisions = before.flatMap(({ response }) => response?.body.revision ?? [])
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
    const shown = withoutInventory(session, steps, first.preview)
    const human: Printable['human'] = (look) => `${describePreview(look, shown)}${endOfDryRun(shown)}`
    return session.print({ ...printablePreview(first.preview), human })
  }
  if (first?.started) return printStarted(session, first.started)
  const results = sent.flatMap(({ response }): FleetWritten[] => (response ? [response.body] : []))
  const inventory = inventoryNoun(session)?.name
  const limit = session.format.kind === 'name' ? Number.POSITIVE_INFINITY : SHOWN
  const isNamed = session.format.kind === 'human' || session.format.kind === 'name'
  const changes = isNamed ? await changesIn(session, results, limit) : []
  const visible = changes.filter(({ type }) => type !== inventory)
  const more = results.reduce((sum, result) => sum + result.changes, 0) - changes.length
  await session.print({
    value: results.length === 1 ? results[0] : results,
    names: visible.map(nameOf),
    human: (look) =>
      [
        ...visible.map((change) => `${nameOf(change)} ${doneTo(change.op)}\n`),
        ...(more > 0 ? [`… and ${count(more, 'more document')}\n`] : []),
        ...(visible.length === 0 ? ['nothing to change\n'] : []),
        ...(visible.length > 0 ? [describeWritten(look, 'apply', visible.length + more, results)] : []),
        ...(visible.length === 0 && changes.length > 0 ? [remembered(setName(flags), results)] : []),
      ].join(''),
  })
}

/** No document is different: what the set holds has changed. */
function remembered(name: string, results: readonly FleetWritten[]): string {
  return `what the set "${name}" holds is remembered (revision ${results.map(({ revision }) => revision).join(', ')})\n`
}
