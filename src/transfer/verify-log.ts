// Verifies that a log is whole: the hash chain holds, and the documents are what the log says.
import { createHash, hash } from 'node:crypto'
import { TimeSlice } from '../runtime/time-slice.ts'
import { NO_HASH, RevisionHash } from '../store/hash-chain.ts'
import type { Anchor, DocumentVersion, LoggedChange, Store } from '../store/store.ts'

export interface Verification {
  readonly verified: boolean
  /** The first revision of the log, and the last one that was verified. */
  readonly from: number
  readonly to: number
  /** The hash of the last one: kept elsewhere, it proves later that nothing before it was touched. */
  readonly hash: string
  readonly revisions: number
  readonly documents: number
  /** Where the log begins, when older revisions were pruned. */
  readonly anchor: Anchor | null
  readonly problems: readonly string[]
}

const MAX_PROBLEMS = 20

/** Reads the whole log and all documents as of the call; later commits are not verified. */
export async function verifyLog(store: Store): Promise<Verification> {
  for (;;) {
    const anchor = (await store.anchor()) ?? null
    try {
      const verification = await verifyFrom(store, anchor)
      if ((await store.anchor())?.revision === anchor?.revision) return verification
    } catch (error) {
      if ((await store.anchor())?.revision === anchor?.revision) throw error
    }
    // The log was pruned during the read: start again.
  }
}

async function verifyFrom(store: Store, anchor: Anchor | null): Promise<Verification> {
  const { revision: head } = await store.head()
  const problems: string[] = []
  const known: Known = new Map()
  const { revisions, hash: last } = await checkChain(store, anchor, head, known, problems)
  if (anchor && (await sealOf(store, anchor)) !== anchor.state) {
    problems.push(
      `the documents that have not changed since revision ${anchor.revision} are not what they were`,
    )
  }
  const documents = await checkDocuments(store, anchor, head, known, problems)
  for await (const { revision } of store.log((await store.head()).revision)) {
    if (revision > (await store.head()).revision)
      problems.push(`revision ${revision} is beyond the head of the store`)
    break
  }
  return {
    verified: problems.length === 0,
    from: (anchor?.revision ?? 0) + 1,
    to: head,
    hash: last,
    revisions,
    documents,
    anchor,
    problems: problems.slice(0, MAX_PROBLEMS),
  }
}

/** The last digest of each document in the log, and the revision that made it so. */
type Known = Map<string, { readonly digest: string | undefined; readonly revision: number }>

/** Computes every hash again, and follows every document through its changes. */
async function checkChain(
  store: Store,
  anchor: Anchor | null,
  head: number,
  known: Known,
  problems: string[],
): Promise<{ revisions: number; hash: string }> {
  let previous = anchor?.hash ?? NO_HASH
  let last = anchor?.revision ?? 0
  let revisions = 0
  let changes = 0
  let made: RevisionHash | undefined
  for await (const slice of store.log(last, head)) {
    const { revision } = slice
    if (!made) {
      reportGap(last, revision, problems)
      made = new RevisionHash(previous, revision, slice.meta)
      changes = 0
    }
    for (const change of slice.changes) {
      made.add(change)
      changes++
      if (!follows(change, known, anchor)) {
        problems.push(`revision ${revision} changes ${change.type}/${change.id}, but not from what it was`)
      }
      const digest = digestOf(change.after, change.after_deleted)
      known.set(`${change.type}/${change.id}`, { digest, revision })
    }
    if (!slice.last) continue
    if (made.digest() !== slice.hash || changes !== slice.change_count) {
      problems.push(`revision ${revision} is not what it was: its hash is another`)
    }
    previous = slice.hash
    last = revision
    revisions++
    made = undefined
  }
  reportGap(last, head + 1, problems)
  return { revisions, hash: previous }
}

function reportGap(last: number, next: number, problems: string[]): void {
  if (next === last + 2) problems.push(`revision ${last + 1} is missing`)
  else if (next > last + 2) problems.push(`revisions ${last + 1} to ${next - 1} are missing`)
}

/** Whether a change starts from what the one before it left. */
function follows(change: LoggedChange, known: Known, anchor: Anchor | null): boolean {
  const { type, id, before, before_deleted, before_revision } = change
  const left = known.get(`${type}/${id}`)
  const digest = digestOf(before, before_deleted)
  if (!left)
    return before === null ? before_revision === 0 : anchor !== null && before_revision <= anchor.revision
  return left.digest === digest && before_revision === (digest === undefined ? 0 : left.revision)
}

async function checkDocuments(
  store: Store,
  anchor: Anchor | null,
  head: number,
  known: Known,
  problems: string[],
): Promise<number> {
  const missing = new Set<string>()
  const timeSlice = new TimeSlice()
  for (const [key, { digest }] of known) {
    if (digest !== undefined) missing.add(key)
    if (timeSlice.expired) await timeSlice.yield()
  }
  let documents = 0
  for await (const { type, id, revision, deleted, json } of store.documents()) {
    const key = `${type}/${id}`
    missing.delete(key)
    documents++
    const said = known.get(key)
    if (revision > head) {
      if (!(await changedAfter(store, head, type, id))) problems.push(`${key} is not in the log`)
    } else if (!said) {
      if (!anchor || revision > anchor.revision) problems.push(`${key} is not in the log`)
    } else if (said.digest !== digestOf(json, deleted) || said.revision !== revision) {
      problems.push(`${key} is not what the log says`)
    }
  }
  for (const key of missing) {
    const [type = '', ...id] = key.split('/')
    if (!(await changedAfter(store, head, type, id.join('/')))) problems.push(`${key} is missing`)
  }
  return documents
}

async function changedAfter(store: Store, revision: number, type: string, id: string): Promise<boolean> {
  for await (const _change of store.changedAfter(revision, { type, id })) return true
  return false
}

function digestOf(json: LoggedChange['before'], deleted: boolean): string | undefined {
  return json === null ? undefined : hash('sha256', `${deleted}\n${json}`)
}

/** All documents as they were at a revision, whatever is written meanwhile; those that changed since come last. */
export async function* documentsAt(store: Store, at: number): AsyncGenerator<DocumentVersion> {
  const seen = new Set<string>()
  for await (const document of store.documents()) {
    if (document.revision > at) continue
    seen.add(`${document.type}/${document.id}`)
    yield document
  }
  // Read after the documents, so that it includes every change made during that read.
  for await (const { type, id, was } of store.changedAfter(at)) {
    if (!was || seen.has(`${type}/${id}`)) continue
    const { document, deleted, revision } = was
    yield { type, id, revision, deleted, json: JSON.stringify(document) }
  }
}

/** SHA-256 over an anchor and all documents at it; the order in which they are added does not matter. */
export class StateSeal {
  readonly #lines = new Map<string, string>()

  add({ type, id, revision, deleted, json }: DocumentVersion): void {
    this.#lines.set(`${type}/${id}`, `${revision} ${digestOf(json, deleted)}`)
  }

  digest({ revision, time, hash: sealed }: Omit<Anchor, 'state'>): string {
    const all = createHash('sha256').update(`${revision} ${time} ${sealed}\n`)
    for (const key of [...this.#lines.keys()].sort())
      all.update(`${JSON.stringify(key)} ${this.#lines.get(key)}\n`)
    return all.digest('hex')
  }
}

async function sealOf(store: Store, anchor: Omit<Anchor, 'state'>): Promise<string> {
  const seal = new StateSeal()
  for await (const document of documentsAt(store, anchor.revision)) seal.add(document)
  return seal.digest(anchor)
}

interface Pruned {
  readonly revisions: number
  readonly anchor: Anchor | undefined
}

export type PruneResult =
  | { readonly ok: true; readonly pruned: Pruned }
  | { readonly ok: false; readonly verification: Verification }

/** Verifies the log, then prunes every revision from before a time. */
export async function pruneLog(store: Store, before: string, dryRun = false): Promise<PruneResult> {
  const verification = await verifyLog(store)
  if (!verification.verified) return { ok: false, verification }
  const known = await store.anchor()
  const target = await store.revisionAt(new Date(Date.parse(before) - 1).toISOString())
  if (target === undefined) return { ok: true, pruned: { revisions: 0, anchor: known } }
  for await (const { revision, meta, hash: sealed } of store.log(target - 1, target)) {
    const end = { revision, time: meta.time, hash: sealed }
    const anchor = { ...end, state: await sealOf(store, end) }
    if (!dryRun) await store.prune(anchor)
    return { ok: true, pruned: { revisions: revision - (known?.revision ?? 0), anchor } }
  }
  return { ok: true, pruned: { revisions: 0, anchor: known } }
}
