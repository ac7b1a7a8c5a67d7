// Notes and keys in batches of one transaction each, checked and built in time slices: there may be hundreds of thousands.
import { TimeSlice } from '../runtime/time-slice.ts'
import { MAX_NOTE_LENGTH, type Note } from './notes.ts'

/** What others wait for at most: notes in one transaction, and their characters. */
const NOTES_PER_BATCH = 1000
const BATCH_LENGTH = 256 * 1024

/** Throws RangeError for a value that is too long, before the first batch. */
export async function* batchesOf(notes: readonly Note[]): AsyncGenerator<Note[]> {
  await checkNotes(notes)
  yield* inBatches(notes, lengthOf)
}

export function keyBatchesOf(keys: readonly string[]): AsyncGenerator<string[]> {
  return inBatches(keys, (key) => key.length)
}

/** Throws RangeError for a value that is too long. */
async function checkNotes(notes: readonly Note[]): Promise<void> {
  const timeSlice = new TimeSlice()
  for (const { key, value } of notes) {
    if (value !== null && value.length > MAX_NOTE_LENGTH)
      throw new RangeError(
        `the note under "${key}" has ${value.length} characters, more than ${MAX_NOTE_LENGTH}`,
      )
    if (timeSlice.expired) await timeSlice.yield()
  }
}

async function* inBatches<T>(items: readonly T[], lengthOf: (item: T) => number): AsyncGenerator<T[]> {
  const timeSlice = new TimeSlice()
  let batch: T[] = []
  let length = 0
  for (const item of items) {
    if (timeSlice.expired) await timeSlice.yield()
    batch.push(item)
    length += lengthOf(item)
    if (batch.length < NOTES_PER_BATCH && length < BATCH_LENGTH) continue
    yield batch
    batch = []
    length = 0
  }
  if (batch.length > 0) yield batch
}

function lengthOf({ key, value }: Note): number {
  return key.length + (value?.length ?? 0)
}
