// What files hold, read again when they change: what was good stays in use when they turn bad.
import type { Logger } from 'pino'
import { watchFiles } from './watch-files.ts'

export type Read<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly string[] }

/** Hands over what the files hold after every change of them that makes sense. */
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
