// Putting a file that is whole where another one may have been: at no moment is there none, or half of one.
import { closeSync, fsyncSync, openSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'

/** The file itself must be on the disk already; its name is when this returns. */
export function putInPlace(temporary: string, path: string): void {
  renameSync(temporary, path)
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
