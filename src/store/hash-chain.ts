// The seal of the log: each revision's hash covers its content and its predecessor's hash.
import { createHash, type Hash } from 'node:crypto'
import { type LoggedChange, type RevisionMeta, StoreError } from './store.ts'

/** The predecessor's hash of the first revision. */
export const NO_HASH = ''

/** The hash of one revision, taking in its changes one by one, in their order. */
export class RevisionHash {
  readonly #hash: Hash = createHash('sha256')

  constructor(previous: string, revision: number, meta: RevisionMeta) {
    const { time, actor, message, request_id, client_address, operation } = meta
    this.#line([previous, revision, time, actor, message, request_id, client_address, operation])
  }

  /** Documents go in as they are stored: JSON has no line break of its own, so lines cannot be confused. */
  add(change: Omit<LoggedChange, 'before_revision'>): this {
    const { type, id, before, before_deleted, after, after_deleted } = change
    this.#line([type, id, before === null, before_deleted, after === null, after_deleted])
    this.#hash.update(`${before ?? ''}\n${after ?? ''}\n`)
    return this
  }

  digest(): string {
    return this.#hash.digest('hex')
  }

  #line(values: readonly unknown[]): void {
    this.#hash.update(`${JSON.stringify(values)}\n`)
  }
}

/** Returns the hash; throws when it is not the one that the revision had in another store. */
export function checkHash(revision: number, hash: string, wanted: string | undefined): string {
  if (wanted === undefined || wanted === hash) return hash
  throw new StoreError(
    `revision ${revision} does not come to its hash: it was changed on its way, or follows another history`,
  )
}
