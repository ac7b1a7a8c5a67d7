// The file `.frsignore` of a folder: which of the files below are nobody's documents. It is written like `.gitignore`.
import { existsSync, readFileSync } from 'node:fs'
import { join, matchesGlob } from 'node:path'

export const IGNORE_FILE = '.frsignore'

/** Whether a path below the folder is ignored; what lies in a folder that is ignored is never asked about. */
export type Ignores = (path: string, isFolder: boolean) => boolean

interface Rule {
  readonly glob: string
  readonly isNegated: boolean
  readonly isForFolders: boolean
}

/** Reads the file of a folder. Without one, nothing is ignored. */
export function readIgnored(folder: string): Ignores {
  const path = join(folder, IGNORE_FILE)
  return existsSync(path) ? parseIgnored(readFileSync(path, 'utf8')) : () => false
}

/** As in Git, the last line that matches decides. */
export function parseIgnored(text: string): Ignores {
  const rules = text.split('\n').flatMap(parseLine)
  return (path, isFolder) => {
    const rule = rules.findLast(
      ({ glob, isForFolders }) => (isFolder || !isForFolders) && matchesGlob(path, glob),
    )
    return rule !== undefined && !rule.isNegated
  }
}

function parseLine(line: string): Rule[] {
  const text = line.trim()
  if (text === '' || text.startsWith('#')) return []
  const isNegated = text.startsWith('!')
  const pattern = isNegated ? text.slice(1) : text
  const isForFolders = pattern.endsWith('/')
  const path = isForFolders ? pattern.slice(0, -1) : pattern
  // A slash ties a pattern to the folder of the file; without one it is for names at any depth.
  const glob = path.includes('/') ? path.replace(/^\//, '') : `**/${path}`
  return [{ glob, isNegated, isForFolders }]
}
