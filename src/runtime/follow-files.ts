// Reloads a value when its files change; the last valid value stays in use while the files are not valid.
import type { Logger } from 'pino'
import { watchFiles } from './watch-files.ts'

export type Read<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly string[] }

/** Calls back with the new value after every change that leaves the files valid. */
export function followFiles<T>(
  paths: readonly string[],
  read: () => Read<T>,
  take: (value: T) => void,
  log: Logger,
): void {
  if (paths.length === 0) return
  watchFiles(paths, () => {
    const result = read()
    if (result.ok) {
      take(result.value)
      log.info({ files: paths }, 'files have changed and were read again')
    } else {
      log.error(
        { problems: result.problems },
        'files have changed and cannot be used: what they held before stays in use',
      )
    }
  })
}
