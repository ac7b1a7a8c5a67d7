// Makes sure that a document is there and assigned: what `NOUN create` with clusters and `demo add-namespace` do.
import type { Json, JsonObject } from '../../base/json.ts'
import type { Targets } from '../input/targets.ts'
import type { WriteFlags } from '../input/write-flags.ts'
import { printDocumentWrite } from '../output/write-report.ts'
import type { Noun } from '../server/nouns.ts'
import { findDocument, getDocument } from '../server/read-documents.ts'
import { type Sent, sendBatch } from '../server/send-change.ts'
import type { Session } from '../session.ts'
import { operationFor } from './apply-set.ts'

/** Creates or updates a document, and assigns it, as one revision. */
export async function ensureAssigned(
  session: Session,
  flags: WriteFlags,
  noun: Noun,
  document: JsonObject,
  targets: Targets,
  /** How clusters have it differently. */
  own: JsonObject = {},
): Promise<void> {
  const id = String(document.id)
  const type = noun.name
  const found = await findDocument(session, noun, id)
  const write = operationFor({ type, id, document, source: '' }, found?.document)
  const assign = { op: 'assign', type, ensure: true, ref: { id, ...own }, ...targets }
  const operations = [...(write ? [write] : []), assign]
  const sent = await sendBatch(session, flags, operations)
  const { response } = sent
  const written: Sent = response ? { response: { ...response, body: await reread(session, noun, id) } } : sent
  const done = found ? 'configured and assigned' : 'created and assigned'
  await printDocumentWrite(session, written, { noun, id, done })
}

async function reread(session: Session, noun: Noun, id: string): Promise<Json> {
  return session.format.kind === 'human' ? null : (await getDocument(session, noun, id)).body
}
