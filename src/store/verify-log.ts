// Proving that a log is whole: the hash chain, and that the documents are what the log says.
import { createHash, hash } from 'node:crypto'
import { NO_HASH, RevisionHash } from './hash-chain.ts'
import type { Anchor, LoggedChange, Store } from './store.ts'

export interface Verification {
  readonly verified: boolean
  /** The first revision of the log, and the last one that was looked at. */
  readonly from: number
  readonly to: number
  /** The hash of the last one: kept elsewhere, it proves later that nothing before it was touched. */
  readonly hash: string
  readonly revisions: number
  readonly documents: number
  /** Where the log begins, when older revisions were given up. */
  readonly anchor: Anchor | null
  readonly problems: readonly string[]
}

const MAX_PROBLEMS = 20

/** Reads the whole log and all documents; what is committed meanwhile is left for next time. */
export async function verifyLog(store: Store): Promise<Verification> {
  const anchor = (await store.anchor()) ?? null
  const head = await store.head()
  const problems: string[] = []
  const expected = new Map<string, string | undefined>()
  const { revisions, hash: last } = await checkChain(store, anchor, head, expected, problems)
  if (anchor && (await stateDigest(store, anchor.revision)) !== anchor.state) {
    problems.push(
      `the documents that have not changed since revision ${anchor.revision} are not what they were`,
    )
  }
  const documents = await checkDocuments(store, anchor, head, expected, problems)
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

/** Makes every hash anew; leaves in `expected` what the log says of each document in the end. */
async function checkChain(
  store: Store,
  anchor: Anchor | null,
  head: number,
  expected: Map<string, string | undefined>,
  problems: string[],
): Promise<{ revisions: number; hash: string }> {
  let previous = anchor?.hash ?? NO_HASH
  let last = anchor?.revision ?? 0
  let revisions = 0
  let made: RevisionHash | undefined
  for await (const slice of store.log(last, head)) {
    const { revision } = slice
    if (!made) {
      for (; last + 1 < revision; last++) problems.push(`revision ${last + 1} is missing`)
      made = new RevisionHash(previous, revision, slice.meta)
    }
    for (const change of slice.changes) {
      made.add(change)
      const key = `${change.type}/${change.id}`
      const before = digestOf(change.before, change.before_deleted)
      const known = expected.has(key) ? expected.get(key) : anchor ? before : undefined
      if (known !== before) problems.push(`revision ${revision} changes ${key}, but not from what it was`)
      expected.set(key, digestOf(change.after, change.after_deleted))
    }
    if (!slice.last) continue
    if (made.digest() !== slice.hash)
      problems.push(`revision ${revision} is not what it was: its hash is another`)
    previous = slice.hash
    last = revision
    revisions++
    made = undefined
  }
  for (; last < head; last++) problems.push(`revision ${last + 1} is missing`)
  return { revisions, hash: previous }
}

async function checkDocuments(
  store: Store,
  anchor: Anchor | null,
  head: number,
  expected: ReadonlyMap<string, string | undefined>,
  problems: string[],
): Promise<number> {
  const missing = new Set([...expected].filter(([, digest]) => digest !== undefined).map(([key]) => key))
  let documents = 0
  for await (const { type, id, revision, deleted, json } of store.documents()) {
    const key = `${type}/${id}`
    missing.delete(key)
    documents++
    if (revision > head) {
      if (!(await changedAfter(store, head, type, id))) problems.push(`${key} is not in the log`)
      continue
    }
    const known = expected.has(key)
    if (!known && (!anchor || revision > anchor.revision)) problems.push(`${key} is not in the log`)
    if (known && expected.get(key) !== digestOf(json, deleted))
      problems.push(`${key} is not what the log says`)
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

/** SHA-256 over all documents as they stood at a revision. */
async function stateDigest(store: Store, at: number): Promise<string> {
  const digests = new Map<string, string | undefined>()
  for await (const { type, id, revision, deleted, json } of store.documents()) {
    if (revision <= at) digests.set(`${type}/${id}`, digestOf(json, deleted))
  }
  // Read after the documents, it knows of all that changed while they were read.
  for await (const { type, id, was } of store.changedAfter(at)) {
    digests.set(`${type}/${id}`, was && digestOf(JSON.stringify(was.document), was.deleted))
  }
  const all = createHash('sha256')
  for (const key of [...digests.keys()].sort()) {
    const digest = digests.get(key)
    if (digest !== undefined) all.update(`${JSON.stringify(key)} ${digest}\n`)
  }
  return all.digest('hex')
}

interface Pruned {
  readonly revisions: number
  readonly anchor: Anchor | undefined
}

export type PruneResult =
  | { readonly ok: true; readonly pruned: Pruned }
  | { readonly ok: false; readonly verification: Verification }

/** Gives up every revision from before a time, once the log has proved to be whole. */
export async function pruneLog(store: Store, before: string, dryRun = false): Promise<PruneResult> {
  const verification = await verifyLog(store)
  if (!verification.verified) return { ok: false, verification }
  const known = await store.anchor()
  const target = await store.revisionAt(new Date(Date.parse(before) - 1).toISOString())
  if (target === undefined) return { ok: true, pruned: { revisions: 0, anchor: known } }
  for await (const { revision, meta, hash: sealed } of store.log(target - 1, target)) {
    const anchor = { revision, time: meta.time, hash: sealed, state: await stateDigest(store, revision) }
    if (!dryRun) await store.prune(anchor)
    return { ok: true, pruned: { revisions: revision - (known?.revision ?? 0), anchor } }
  }
  return { ok: true, pruned: { revisions: 0, anchor: known } }
}
