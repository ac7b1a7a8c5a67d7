// Notes read from a database a page at a time, in time slices that their reader shares.
import { TimeSlice } from '../runtime/time-slice.ts'
import type { Note } from './notes.ts'

type Page = Promise<readonly Note[]>

/** `read` takes the last note of the page before; a page with fewer notes than `size` is the last. */
export async function* inPages(size: number, read: (last?: Note) => Page): AsyncGenerator<Note> {
  const timeSlice = new TimeSlice()
  for (let page = await read(); ; page = await read(page.at(-1))) {
    yield* sliced(page, timeSlice)
    if (page.length < size) return
  }
}

/** `read` takes at most `size` of the keys, each once. */
export async function* underKeys(
  size: number,
  keys: readonly string[],
  read: (some: readonly string[]) => Page,
): AsyncGenerator<Note> {
  const timeSlice = new TimeSlice()
  const asked = [...new Set(keys)]
  for (let at = 0; at < asked.length; at += size)
    yield* sliced(await read(asked.slice(at, at + size)), timeSlice)
}

async function* sliced(page: readonly Note[], timeSlice: TimeSlice): AsyncGenerator<Note> {
  for (const note of page) {
    yield note
    if (timeSlice.expired) await timeSlice.yield()
  }
}
