// What the commands that move a log share: their surroundings, flags, and lines read, written and reported on.
import type { Writable } from 'node:stream'
import { UsageProblem } from '../base/usage-problem.ts'
import type { Types } from '../domain/types/resource-type.ts'
import type { Store } from '../store/store.ts'
import { type Imported, importLog } from '../transfer/import-log.ts'
import type { Progress } from '../transfer/replication-status.ts'
import { type LinesFile, openLines, writeLines } from '../transfer/transfer-files.ts'
import { type End, StreamError } from '../transfer/transfer-items.ts'
import type { Environment, Print } from './store-commands.ts'

export interface Surroundings {
  readonly env: Environment
  /** Loaded only where a selector has to be parsed. */
  readonly types: () => Types
  readonly now: () => Date
  readonly stdout: Writable
  /** `print` writes a line to the standard output, `tell` to the standard error. */
  readonly print: Print
  readonly tell: Print
}

export const TEXT = { type: 'string' } as const
const TELL_EVERY_MS = 3000

export function required(flag: string, value: string | boolean | undefined): string {
  if (typeof value === 'string' && value !== '') return value
  throw new UsageProblem(`${flag} is required: see --help`)
}

export async function reading<T>(path: string, use: (file: LinesFile) => Promise<T>): Promise<T> {
  const file = await openLines(path)
  try {
    return await use(file)
  } finally {
    await file.close()
  }
}

/** Names the source of the lines in errors about them. */
export async function namingSource<T>(from: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof StreamError)) throw error
    throw new StreamError(`${from}: ${error.message}`, error)
  }
}

export function apply(store: Store, file: LinesFile, { tell }: Surroundings): Promise<Imported> {
  return importLog(store, file.lines(), { progress: progressOn(tell, 'written') })
}

/** Writes lines; returns the content of their `end` line, and how many bytes were written. */
export async function write(
  path: string,
  lines: AsyncIterable<string>,
  stdout: Writable,
): Promise<{ readonly end: End; readonly bytes: number }> {
  let end: End | undefined
  async function* seen(): AsyncGenerator<string> {
    for await (const line of lines) {
      if (line.startsWith('{"end":')) end = JSON.parse(line).end
      yield line
    }
  }
  const bytes = await writeLines(path, seen(), stdout)
  return { end: end as End, bytes }
}

/** Reports the progress of long work every few seconds. */
export function progressOn(tell: Print, done: string): Progress {
  let told = performance.now()
  return (revision, until) => {
    if (performance.now() - told < TELL_EVERY_MS) return
    told = performance.now()
    tell(`${done} up to revision ${revision} of ${until}`)
  }
}
