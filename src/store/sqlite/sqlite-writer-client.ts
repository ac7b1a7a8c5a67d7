// The writing thread of a SQLite file, as the rest of the process calls it.
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { TimeSlice } from '../../runtime/time-slice.ts'
import { type CommitResult, type NewChange, type NewRevision, StoreError } from '../store.ts'
import type { WriterOptions } from './sqlite-database.ts'
import type { PartOfCommit, WriterCall, WriterOperations, WriterReply } from './sqlite-writer.ts'

/** Changes to hand over at once. */
const CHANGES_PER_MESSAGE = 20
/** Changes to hand over before the thread has to have written those before them: what waits takes up memory. */
const CHANGES_AHEAD = 1000

interface Waiting {
  readonly resolve: (result: never) => void
  readonly reject: (error: Error) => void
}

export class SqliteWriter {
  readonly #worker: Worker
  readonly #exited: Promise<void>
  /** Calls without a reply yet: the thread replies in the order it is called. */
  readonly #waiting: Waiting[] = []
  #failure: StoreError | undefined
  /** The commit whose changes are being handed over: one at a time. */
  #sending: Promise<unknown> = Promise.resolve()

  constructor(options: WriterOptions) {
    // In the build the file is JavaScript.
    const file = `./sqlite-writer${extname(import.meta.url)}`
    this.#worker = new Worker(new URL(file, import.meta.url), { workerData: options })
    this.#worker.on('message', (reply: WriterReply) => {
      const call = this.#waiting.shift()
      if ('result' in reply) call?.resolve(reply.result as never)
      else call?.reject(new StoreError(reply.error))
    })
    this.#worker.on('error', (cause) => {
      this.#failure = new StoreError('the writing thread of the database failed', { cause })
    })
    this.#exited = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        this.#failure ??= new StoreError('the database is closed')
        for (const call of this.#waiting.splice(0)) call.reject(this.#failure)
        resolve()
      })
    })
  }

  get hasEnded(): boolean {
    return this.#failure !== undefined
  }

  /** Nothing comes between the parts of a commit. */
  async call<K extends keyof WriterOperations>(
    call: K,
    ...args: Parameters<WriterOperations[K]>
  ): Promise<ReturnType<WriterOperations[K]>> {
    await this.#sending
    return this.#call(call, ...args)
  }

  #call<K extends keyof WriterOperations>(
    call: K,
    ...args: Parameters<WriterOperations[K]>
  ): Promise<ReturnType<WriterOperations[K]>> {
    return new Promise((resolve, reject) => {
      if (this.#failure) return reject(this.#failure)
      this.#waiting.push({ resolve, reject })
      this.#worker.postMessage({ call, args } as WriterCall)
    })
  }

  /**
   * Many changes are posted to the thread in parts, so that copying them holds up no poll. The thread writes each as it
   * arrives.
   */
  commit(base: number, revisions: readonly NewRevision[]): Promise<CommitResult> {
    const sent = this.#sending.then(async () => {
      const last = await this.#sendFirstParts(base, revisions)
      return { result: this.#call('commit', last) }
    })
    this.#sending = sent.catch(() => {})
    return sent.then(({ result }) => result)
  }

  /** Returns the parts that are left to send. */
  async #sendFirstParts(base: number, revisions: readonly NewRevision[]): Promise<PartOfCommit[]> {
    const timeSlice = new TimeSlice()
    let last: PartOfCommit[] = []
    let held = 0
    let ahead = 0
    let written: Promise<void> | undefined
    try {
      for (const part of partsOf(base, revisions)) {
        if (held + part.changes.length > CHANGES_PER_MESSAGE) {
          for (const first of last) this.#worker.postMessage(first)
          ahead += held
          if (ahead >= CHANGES_AHEAD) {
            await written
            written = this.#call('keepUp')
            written.catch(() => {})
            ahead = 0
          }
          if (timeSlice.expired) await timeSlice.yield()
          last = []
          held = 0
        }
        last.push(part)
        held += part.changes.length
      }
    } catch (error) {
      await this.#call('abandon')
      throw error
    }
    return last
  }

  async close(): Promise<void> {
    await this.#sending
    this.#worker.postMessage('close')
    await this.#exited
  }
}

/** JSON that is made when it is asked for is made here, a few documents at a time. */
function* partsOf(base: number, revisions: readonly NewRevision[]): Generator<PartOfCommit> {
  for (const [at, { changes, ...revision }] of revisions.entries())
    for (let sent = 0; sent === 0 || sent < changes.length; sent += CHANGES_PER_MESSAGE)
      yield { base, at, revision, changes: toPost(changes.slice(sent, sent + CHANGES_PER_MESSAGE)) }
}

/** What a message can hold. */
function toPost(changes: readonly NewChange[]): NewChange[] {
  return changes.map(({ type, id, after }) => ({
    ...{ type, id },
    after: after && { json: after.json, deleted: after.deleted },
  }))
}
