// Snapshots: a file of the state, from which a process starts while the store is unavailable.
import { createHash } from 'node:crypto'
import { type FileHandle, mkdir, open, readdir, rm, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { isObject } from '../base/json.ts'
import { State } from '../domain/documents/state.ts'
import { HOLDS } from '../domain/rollouts/hold.ts'
import { ROLLOUT_PLANS } from '../domain/rollouts/rollout.ts'
import type { Document, Types } from '../domain/types/resource-type.ts'
import { readLines } from '../runtime/read-lines.ts'
import { replaceFile } from '../runtime/replace-file.ts'
import { ReportOnce } from '../runtime/report-once.ts'
import { TimeSlice } from '../runtime/time-slice.ts'
import { type Head, StoreError } from '../store/store.ts'

export interface Saved {
  readonly state: State
  readonly head: Head
  /** How long ago the state was last known to be up to date. */
  readonly stalenessMs?: number
}

/** The snapshots of one process. Every method throws StoreError, and no other error, when it fails. */
export interface Snapshots {
  /**
   * The last snapshot, and when it was known to be up to date (RFC 3339); undefined when there is none. Throws when it is
   * not whole.
   */
  read(types: Types): Promise<(Saved & { readonly time: string }) | undefined>
  /** Replaces the snapshot atomically by the state as of the call. Calls must not overlap. */
  write(saved: Saved): Promise<void>
  /** Marks the snapshot as up to date now; returns whether its file still exists. */
  confirm(): Promise<boolean>
}

export interface Kept {
  /** The state that is served now; undefined before one is loaded. */
  current(): Saved | undefined
  /** Called with the first failure, and again only after a success. */
  failed(error: StoreError): void
}

const FILE = 'state.snapshot'
/** Names of temporary files that a crash can leave behind. */
const LEFTOVER = /^state\.snapshot\..+\.tmp$/
/** Other lines than those of a backup: an earlier version of this program, after a rollback, reads the file too. */
const FORMAT = 'flux-resourceset-snapshot'
const VERSION = 1
/** With rollouts or holds: an earlier version would serve something else, and must not start from the file. */
const STAGED_VERSION = 2
/** The text is compressed in pieces of about this size. */
const PIECE_CHARS = 64 * 1024

/** Keeps one file in a folder, which is made when it is missing. */
export function openSnapshots(folder: string, now: () => Date = () => new Date()): Snapshots {
  const path = join(folder, FILE)

  /** The file's mtime is when the state was last up to date, not when the file was written. */
  async function writeAll(saved: Saved, time: Date): Promise<void> {
    const pieces = piecesOf(saved)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await removeLeftovers(folder)
    await replaceFile(path, async (file) => {
      await pipeline(pieces, createGzip({ level: 1 }), (compressed) => file.writeFile(compressed))
      await file.utimes(time, time)
    })
  }

  return {
    async read(types) {
      try {
        await using file = await openIfThere(path)
        if (!file) return undefined
        const stats = await file.stat()
        if (!stats.isFile()) throw new Error('it is not a file')
        const source = file.createReadStream({ autoClose: false })
        const gunzip = createGunzip({ rejectGarbageAfterEnd: true })
        const saved = await pipeline(source, gunzip, (bytes) => parse(types, bytes))
        return { ...saved, time: stats.mtime.toISOString() }
      } catch (cause) {
        throw new StoreError(
          `the snapshot ${path} cannot be used: ${messageOf(cause)}; delete it: another one is saved once the store can be read`,
          { cause },
        )
      }
    },
    async write(saved) {
      try {
        await writeAll(saved, new Date(now().getTime() - (saved.stalenessMs ?? 0)))
      } catch (cause) {
        throw new StoreError(
          `the snapshot ${path} cannot be saved: ${messageOf(cause)}; see that this process may write there and that there is room`,
          { cause },
        )
      }
    },
    async confirm() {
      const time = now()
      try {
        await utimes(path, time, time)
        return true
      } catch (cause) {
        if (isMissing(cause)) return false
        throw new StoreError(
          `the snapshot ${path} cannot be kept up to date: ${messageOf(cause)}; see that it belongs to this process`,
          { cause },
        )
      }
    },
  }
}

/** The first save waits until the start is over; later ones are rare enough for a fleet that changes all the time. */
const TIMES = { firstMs: 5_000, everyMs: 60_000 }

/** Saves the served state at an interval, where it has changed, and a last time when stopped. */
export function keepSnapshots(
  snapshots: Snapshots,
  kept: Kept,
  { firstMs, everyMs } = TIMES,
): { stop(): Promise<void> } {
  let last: Head | undefined
  const reports = new ReportOnce<StoreError>({ failed: (error) => kept.failed(error) })
  let isStopped = false

  async function keep(): Promise<void> {
    const current = kept.current()
    if (!current) return
    const { head, stalenessMs } = current
    const isSame = head.revision === last?.revision && head.hash === last.hash
    // The same state was saved already, and while it is stale it cannot be confirmed as up to date.
    if (isSame && stalenessMs) return
    try {
      if (!isSame || !(await snapshots.confirm())) await save()
      reports.succeed()
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      reports.fail(error)
    }
  }

  /** Reads the served state again: it may have changed during `confirm`. */
  async function save(): Promise<void> {
    const saved = kept.current()
    if (!saved) return
    await snapshots.write(saved)
    last = saved.head
  }

  let keeping: Promise<void> = Promise.resolve()
  let timer = setTimeout(keepOn, firstMs).unref()
  function keepOn(): void {
    keeping = keep().then(() => {
      if (!isStopped) timer = setTimeout(keepOn, everyMs).unref()
    })
  }

  return {
    async stop() {
      isStopped = true
      clearTimeout(timer)
      await keeping
      await keep()
    },
  }
}

/** The text of a snapshot of the state as of the call, made in time slices. */
function piecesOf({ state, head }: Saved): AsyncIterable<string> {
  const all = state.everything()
  const isStaged = state.count(ROLLOUT_PLANS) + state.count(HOLDS) > 0
  const version = isStaged ? STAGED_VERSION : VERSION
  return (async function* () {
    const hash = createHash('sha256')
    const timeSlice = new TimeSlice()
    let piece = line({ format: FORMAT, version, ...head, documents: all.length })
    for (const { type, entry } of all) {
      const { id, revision, deleted, size, document } = entry
      piece += line({ type, id, revision, deleted, size, document })
      if (piece.length >= PIECE_CHARS) {
        hash.update(piece)
        yield piece
        piece = ''
      }
      if (timeSlice.expired) await timeSlice.yield()
    }
    hash.update(piece)
    yield piece + line({ sha256: hash.digest('hex') })
  })()
}

function line(content: object): string {
  return `${JSON.stringify(content)}\n`
}

/** Returns the state and its head after all of the snapshot was read; throws when it is not whole. */
async function parse(types: Types, bytes: AsyncIterable<Buffer>): Promise<Saved> {
  const state = new State(types)
  const hash = createHash('sha256')
  const timeSlice = new TimeSlice()
  let header: Header | undefined
  let missing = 0
  let isWhole = false
  for await (const text of readLines(bytes, { toError: () => new Error('it is cut short') })) {
    if (isWhole) throw new Error('it goes on after its end')
    const content = parseLine(text)
    if (!header) {
      header = parseHeader(content)
      missing = header.documents
    } else if (missing > 0) {
      put(state, content)
      missing--
    } else {
      const sha256 = isObject(content) ? content.sha256 : undefined
      if (sha256 !== hash.copy().digest('hex')) throw new Error('it does not come to its digest')
      isWhole = true
    }
    hash.update(text).update('\n')
    if (timeSlice.expired) await timeSlice.yield()
  }
  if (!header || !isWhole) throw new Error('it is cut short')
  const { revision, hash: hashOfRevision } = header
  state.revision = revision
  state.settle()
  return { state, head: { revision, hash: hashOfRevision } }
}

const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true })

function parseLine(text: Uint8Array): unknown {
  try {
    return JSON.parse(UTF8.decode(text))
  } catch (cause) {
    throw new Error('a line of it is no JSON', { cause })
  }
}

interface Header extends Head {
  readonly documents: number
}

function parseHeader(content: unknown): Header {
  if (!isObject(content) || content.format !== FORMAT) throw new Error('it is no snapshot')
  const { version, revision, hash, documents } = content
  if (version !== VERSION && version !== STAGED_VERSION)
    throw new Error(`it is of version ${version}, and this process knows ${VERSION} and ${STAGED_VERSION}`)
  if (!isCount(revision) || typeof hash !== 'string' || !isCount(documents))
    throw new Error('its first line is damaged')
  return { revision, hash, documents }
}

function put(state: State, content: unknown): void {
  if (!isObject(content)) throw new Error('a document is damaged')
  const { type, id, revision, deleted, size, document } = content
  const isKnown = typeof type === 'string' && typeof id === 'string' && typeof deleted === 'boolean'
  if (!isKnown || !isCount(revision) || !isCount(size) || !isObject(document))
    throw new Error('a document is damaged')
  state.put(revision, { type, id, after: { document: document as Document, deleted, size } })
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r')
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

async function removeLeftovers(folder: string): Promise<void> {
  const names = await readdir(folder)
  for (const name of names.filter((each) => LEFTOVER.test(each)))
    await rm(join(folder, name), { force: true })
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
