// What a write did, as it is printed: its preview, one document, or many.

import type { Preview } from '../../api/wire-types.ts'
import { count } from '../../base/sentences.ts'
import type { ApiResponse } from '../server/api.ts'
import type { Noun } from '../server/nouns.ts'
import { nameOf } from '../server/nouns.ts'
import { changesIn } from '../server/read-revisions.ts'
import type { Sent } from '../server/send-change.ts'
import type { Session } from '../session.ts'
import { describePreview } from './change-report.ts'
import { printableDocument } from './document-table.ts'
import { receivers } from './impact-report.ts'
import type { Printable } from './print.ts'
import { printStarted } from './started-report.ts'
import { plain } from './terminal.ts'

interface DocumentWrite {
  readonly noun: Noun
  readonly id: string
  /** What happened to it: `created`. */
  readonly done: string
}

/** The end of what a dry run prints. */
export function endOfDryRun({ change_count: count }: Preview): string {
  return count === 0 ? '' : 'nothing was changed\n'
}

export function printablePreview(preview: Preview): Printable {
  return {
    value: preview,
    names: preview.changes.map(nameOf),
    human: (look) => `${describePreview(look, preview)}${endOfDryRun(preview)}`,
  }
}

function printPreview(session: Session, preview: Preview): Promise<void> {
  return session.print(printablePreview(preview))
}

/** Prints what became of a write that has words of its own: `rollout r42 paused`. */
export async function printDone(
  session: Session,
  sent: Sent,
  { name, told }: { readonly name: string; told(body: ApiResponse['body']): string },
): Promise<void> {
  if (sent.preview) return printPreview(session, sent.preview)
  if (sent.started) return printStarted(session, sent.started)
  const { body, headers } = sent.response
  await session.print({
    value: body,
    names: [name],
    human: ({ paint }) => `${plain(told(body))} ${paint('dim', `(revision ${headers['x-revision']})`)}\n`,
  })
}

/** Prints what became of a write of one document. */
export async function printDocumentWrite(
  session: Session,
  sent: Sent,
  { noun, id, done }: DocumentWrite,
): Promise<void> {
  if (sent.preview) return printPreview(session, sent.preview)
  if (sent.started) return printStarted(session, sent.started)
  const { headers, body } = sent.response
  const isUnchanged = headers['x-change-count'] === '0'
  await session.print({
    ...printableDocument(noun, session.nouns, body ?? {}),
    names: [`${noun.name}/${id}`],
    human: ({ paint }) =>
      `${noun.name}/${id} ${isUnchanged ? 'unchanged' : `${done} ${paint('dim', `(revision ${headers['x-revision']})`)}`}\n`,
  })
}

/** Prints what became of a write of many documents; the title says what was done. */
export async function printFleetWrite(session: Session, sent: Sent, title: string): Promise<void> {
  if (sent.preview) return printPreview(session, sent.preview)
  if (sent.started) return printStarted(session, sent.started)
  const { body } = sent.response
  const { revision, changes, impact } = body
  const changed =
    session.format.kind === 'name' ? await changesIn(session, [body], Number.POSITIVE_INFINITY) : []
  await session.print({
    value: body,
    names: changed.map(nameOf),
    human: ({ paint }) =>
      changes === 0
        ? `${title}: nothing to change\n`
        : `${title}: ${count(changes, 'document')} changed ${paint('dim', `(revision ${revision})`)}\n${receivers(impact)}\n`,
  })
}
