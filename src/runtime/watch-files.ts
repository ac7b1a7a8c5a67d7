// Says when files may have changed, however they are replaced.
import { statSync } from 'node:fs'

const INTERVAL_MS = 500

/**
 * Calls back about a second after any of the files may have changed, once for all that change together; answers how to
 * stop. Never keeps the process alive.
 *
 * It looks at what the paths lead to, rather than being told by the kernel: a Secret of Kubernetes is swapped by a link
 * two steps up the path, and a file that was replaced or gone for a moment is another one than the one once watched.
 */
export function watchFiles(paths: readonly string[], changed: () => void): () => void {
  let seen = describe(paths)
  let pending = false
  const timer = setInterval(() => {
    const now = describe(paths)
    const due = pending
    pending = now !== seen
    seen = now
    // A look later than the change was seen: whoever writes several files, or a long one, has had time to finish.
    if (due) changed()
  }, INTERVAL_MS).unref()
  return () => clearInterval(timer)
}

function describe(paths: readonly string[]): string {
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
