// Files that commands write: readable by their owner alone, whole or not at all.
import { mkdirSync, mkdtempSync, rmdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { replaceFile } from '../../runtime/replace-file.ts'
import { usage } from '../failure.ts'

/** Replaces a file, and makes its folder where that is missing. */
export async function writeOwnFile(path: string, text: string): Promise<void> {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    await replaceFile(path, text)
  } catch (error) {
    throw usage(`${path} cannot be written: ${(error as Error).message}`)
  }
}

/** Throws when a folder takes no files: known before there is anything to write. */
export function checkFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    rmdirSync(mkdtempSync(join(folder, '.flux-resourceset-')))
  } catch (error) {
    throw usage(`${folder} cannot be written: ${(error as Error).message}`)
  }
}
