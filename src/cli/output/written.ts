// What is said of a document after a write.

import type { Noun } from '../server/nouns.ts'
import { printablePreview, type Sent } from '../server/send-change.ts'
import type { Session } from '../session.ts'
import { printableDocument } from './document-table.ts'

interface Written {
  readonly noun: Noun
  readonly id: string
  /** What happened to it: `created`. */
  readonly done: string
}

export async function printWritten(session: Session, sent: Sent, { noun, id, done }: Written): Promise<void> {
  if (sent.preview) return session.print(printablePreview(sent.preview))
  const { headers, body } = sent.answer
  const unchanged = headers['x-change-count'] === '0'
  await session.print({
    ...printableDocument(noun, session.nouns, body ?? {}),
    names: [`${noun.name}/${id}`],
    human: ({ paint }) =>
      `${noun.name}/${id} ${unchanged ? 'unchanged' : `${done} ${paint('dim', `(revision ${headers['x-revision']})`)}`}\n`,
  })
}
