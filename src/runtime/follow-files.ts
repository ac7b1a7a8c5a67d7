// Reloads a value when its files change; the last valid value stays in use while the files are not valid.
import { watchFiles } from './watch-files.ts'

export type Read<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly string[] }

export interface Following<T> {
  read(): Read<T>
  /** Called with every valid value; `isRecovered` is true when the files were not valid before. */
  take(value: T, isRecovered: boolean): void
  /** Called with the problems that are new since the files were last valid. */
  refuse(problems: readonly string[]): void
}

const RETRY_MS = 1000

/** Reads the files after every change, and while they are not valid. Never keeps the process alive. */
export function followFiles<T>(
  paths: readonly string[],
  { read, take, refuse }: Following<T>,
): { readNow(): void; stop(): void } {
  let retry: NodeJS.Timeout | undefined
  const told = new Set<string>()
  const readNow = (): void => {
    clearTimeout(retry)
    const result = read()
    if (result.ok) {
      const isRecovered = told.size > 0
      told.clear()
      take(result.value, isRecovered)
      return
    }
    // The files may have been read between two writes, and the watch may have seen the second one already.
    retry = setTimeout(readNow, RETRY_MS).unref()
    const news = result.problems.filter((problem) => !told.has(problem))
    for (const problem of news) told.add(problem)
    if (news.length > 0) refuse(news)
  }
  const unwatch = paths.length > 0 ? watchFiles(paths, readNow) : () => {}
  return {
    readNow,
    stop() {
      unwatch()
      clearTimeout(retry)
    },
  }
}
