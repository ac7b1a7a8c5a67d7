// Writes files of the user's own: all of a file or nothing of it, readable by nobody else.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { usage } from '../failure.ts'

/** A run that is stopped, or a disk that is full, leaves the file as it was. */
export function replaceFile(path: string, text: string): void {
  const temporary = `${path}.${process.pid}`
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(temporary, text, { mode: 0o600 })
    chmodSync(temporary, 0o600)
    renameSync(temporary, path)
  } catch (error) {
    // Where a folder is missing there is nothing to remove either.
    if (existsSync(temporary)) rmSync(temporary)
    throw usage(`${path} cannot be written: ${(error as Error).message}`)
  }
}

/** Whether a folder takes files, where that must be known before there is anything to write. */
export function checkFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    rmdirSync(mkdtempSync(join(folder, '.flux-resourceset-')))
  } catch (error) {
    throw usage(`${folder} cannot be written: ${(error as Error).message}`)
  }
}
