// Checks whether a log from lines continues the log of a store.

import { SOURCES } from '../domain/types/system-types.ts'
import type { Head, Store } from '../store/store.ts'
import { type Header, type SentChange, StreamError } from './transfer-items.ts'

const UPSTREAM = 'upstream'

/** The upstream of a store that holds a partial log: its selector, and the last revision that was copied. */
interface Upstream extends Head {
  readonly id: string
  readonly selector: string
}

async function findUpstream(store: Store): Promise<Upstream | undefined> {
  const [last] = await store.history({
    documents: [{ type: SOURCES, id: UPSTREAM }],
    limit: 1,
    changeLimit: 1,
  })
  if (last) return (last.changes[0]?.after ?? undefined) as Upstream | undefined
  for await (const { type, id, json } of store.documents())
    if (type === SOURCES && id === UPSTREAM) return JSON.parse(json)
  return undefined
}

/** The head of the source's log that a store with a partial log has reached. */
export async function upstreamOf(store: Store, head: Head, selector: string): Promise<Head> {
  if (head.revision === 0) return head
  const upstream = await findUpstream(store)
  if (!upstream)
    throw unfit(
      `holds only the clusters with "${selector}", but this store holds a whole log: a part needs a store of its own`,
    )
  if (upstream.selector !== selector)
    throw unfit(
      `holds the clusters with "${selector}", but this store holds those with "${upstream.selector}": another part needs a store of its own`,
    )
  if (upstream.revision !== head.revision)
    throw unfit(`follows its source, but this store went its own way after revision ${upstream.revision}`)
  return { revision: upstream.revision, hash: upstream.hash }
}

/** Throws StreamError when lines do not continue the log of a store, as far as their header shows. */
export async function checkFit(store: Store, header: Header, known: Head): Promise<void> {
  const { since, until, anchor } = header
  const at = known.revision
  if (since > at) throw unfit(`starts at revision ${since}, this store is at ${at}: export one from ${at}`)
  if (until < at) {
    throw unfit(`ends at revision ${until}, this store is at ${at}: it is older than what is here`)
  }
  if (anchor && at > 0 && at < anchor.revision)
    throw unfit(
      `begins with revision ${anchor.revision}, as the source pruned what is before it, and this store is at ${at}: begin with an empty store`,
    )
  const told = [
    [since, header.hash],
    [until, header.until_hash],
    ...(anchor ? [[anchor.revision, anchor.hash]] : []),
  ]
  for (const [revision, hash] of told as [number, string][]) {
    if (revision > at) continue
    await checkSame(store, header, known, revision, hash)
  }
}

/** Throws StreamError for another history. A partial log holds only the last hash of its source; others are not checked. */
export async function checkSame(
  store: Store,
  { selector }: Header,
  known: Head,
  revision: number,
  hash: string,
): Promise<void> {
  const here =
    revision === known.revision
      ? known.hash
      : selector === undefined
        ? await store.hashOf(revision)
        : undefined
  if (here === undefined || here === hash) return
  const upstream = selector === undefined ? await findUpstream(store) : undefined
  const hint = upstream ? `: it holds only the clusters with "${upstream.selector}"` : ''
  throw unfit(`has another history: revision ${revision} is not the one of this store${hint}`)
}

function unfit(message: string): StreamError {
  return new StreamError(message, { isDamaged: false })
}

/** A change in every revision of a partial log: it commits the place in the source's log together with the revision. */
export function upstreamChange({ selector, revision, hash }: Omit<Upstream, 'id'>): SentChange {
  const upstream: Upstream = { id: UPSTREAM, selector, revision, hash }
  return { type: SOURCES, id: UPSTREAM, after: JSON.stringify(upstream), after_deleted: false }
}
