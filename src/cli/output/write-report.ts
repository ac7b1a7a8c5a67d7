// What a write did, as it is printed: its preview, one document, or many.

import type { FleetWritten, Preview } from '../../api/wire-types.ts'
import { isObject } from '../../base/json.ts'
import { count } from '../../base/sentences.ts'
import type { Impact } from '../../domain/delivery/impact.ts'
import { Failure } from '../failure.ts'
import type { ApiResponse } from '../server/api.ts'
import { isServed, type Noun, nameOf } from '../server/nouns.ts'
import { changesIn } from '../server/read-revisions.ts'
import type { Sent } from '../server/send-change.ts'
import type { Session } from '../session.ts'
import { describePreview } from './change-report.ts'
import { printableDocument } from './document-table.ts'
import type { ReportLook } from './field-report.ts'
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

/** Prints what became of a write of one document, and how many clusters it reached. */
export async function printDocumentWrite(
  session: Session,
  sent: Sent,
  { noun, id, done }: DocumentWrite,
): Promise<void> {
  if (sent.preview) return printPreview(session, sent.preview)
  if (sent.started) return printStarted(session, sent.started)
  const { headers, body } = sent.response
  const isUnchanged = headers['x-change-count'] === '0'
  const revision = Number(headers['x-revision'])
  const reached =
    isUnchanged || session.format.kind !== 'human' || !isServed(noun) ? '' : await reach(session, revision)
  await session.print({
    ...printableDocument(noun, session.nouns, body ?? {}),
    names: [`${noun.name}/${id}`],
    human: ({ paint }) =>
      isUnchanged
        ? `${noun.name}/${id} unchanged\n`
        : `${noun.name}/${id} ${done} ${paint('dim', `(revision ${revision})`)}\n${reached}`,
  })
}

/** How many clusters a revision reached; the write is done, whether this can be read or not. */
async function reach({ api }: Session, revision: number): Promise<string> {
  try {
    const { body } = await api.get(`/revisions/${revision}`, { query: { limit: 1, impact_limit: 0 } })
    return isObject(body) && isObject(body.impact) ? `${receivers(body.impact as unknown as Impact)}\n` : ''
  } catch (error) {
    if (error instanceof Failure) return ''
    throw error
  }
}

/** Prints what became of a write of many documents; the title says what was done. */
export async function printFleetWrite(session: Session, sent: Sent, title: string): Promise<void> {
  if (sent.preview) return printPreview(session, sent.preview)
  if (sent.started) return printStarted(session, sent.started)
  const body: FleetWritten = sent.response.body
  const changed =
    session.format.kind === 'name' ? await changesIn(session, [body], Number.POSITIVE_INFINITY) : []
  await session.print({
    value: body,
    names: changed.map(nameOf),
    human: (look) =>
      body.changes === 0
        ? `${title}: nothing to change\n`
        : describeWritten(look, title, body.changes, [body]),
  })
}

/** How many documents were changed and clusters reached; of several revisions, the same cluster may be in each. */
export function describeWritten(
  { paint }: Pick<ReportLook, 'paint'>,
  title: string,
  documents: number,
  results: readonly FleetWritten[],
): string {
  const revisions = `${results.length === 1 ? 'revision' : 'revisions'} ${results.map(({ revision }) => revision).join(', ')}`
  const [only] = results.length === 1 ? results : []
  const reached = only ? `${receivers(only.impact)}\n` : ''
  return `${title}: ${count(documents, 'document')} changed ${paint('dim', `(${revisions})`)}\n${reached}`
}
