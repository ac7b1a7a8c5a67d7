// Watches files for changes by polling, however they are replaced.
import { statSync } from 'node:fs'

const INTERVAL_MS = 500

/**
 * Calls back about a second after any of the files may have changed, once for all that change together; returns a
 * function that stops it. Never keeps the process alive.
 *
 * It polls the paths instead of using inotify: a Kubernetes Secret is replaced through a symbolic link two levels up the
 * path, and inotify goes on watching the inode of a file that was replaced.
 */
export function watchFiles(paths: readonly string[], changed: () => void): () => void {
  let seen = fingerprint(paths)
  let pending = false
  const timer = setInterval(() => {
    const now = fingerprint(paths)
    const due = pending
    pending = now !== seen
    seen = now
    // One interval after the change was seen: the writer of several files, or of a long one, has had time to finish.
    if (due) changed()
  }, INTERVAL_MS).unref()
  return () => clearInterval(timer)
}

function fingerprint(paths: readonly string[]): string {
  return paths.map(describeFile).join(' ')
}

function describeFile(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join(':')
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code)
  }
}
