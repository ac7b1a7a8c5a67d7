// An export as a folder: one file for each document, the same bytes as long as the document is the same.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { JsonObject } from '../../base/json.ts'
import { count } from '../../base/sentences.ts'
import { usage } from '../failure.ts'
import { type Ignores, readIgnored } from '../input/ignored-files.ts'
import { type Noun, withType } from '../server/nouns.ts'
import type { Session } from '../session.ts'
import { toYaml } from './print.ts'

interface Source {
  readonly revision: string
  /** Whether these are all documents, so that files of others are of documents that are gone. */
  readonly isWhole: boolean
}

/** The file that says where the folder is from. */
const ORIGIN = 'EXPORTED'

/** Writes what has changed, and deletes the files of documents that are gone; what is ignored there is left alone. */
export async function writeFolder(
  session: Session,
  folder: string,
  documents: readonly (readonly [Noun, JsonObject])[],
  { revision, isWhole }: Source,
): Promise<void> {
  const ignores = readIgnored(folder)
  const files = new Map<string, string>()
  for (const [noun, document] of documents) {
    const name = join(noun.name, `${document.id}.yaml`)
    if (!isIgnored(ignores, name)) files.set(name, await toYaml(withType(noun, document)))
  }
  try {
    const written = [...files].filter(([name, text]) => writeChanged(join(folder, name), text))
    const gone = isWhole
      ? filesOf(session.nouns, folder).filter((name) => !files.has(name) && !isIgnored(ignores, name))
      : []
    for (const name of gone) rmSync(join(folder, name))
    writeChanged(join(folder, ORIGIN), `${session.api.url.href} revision ${revision}\n`)
    session.note(
      `${folder}: ${count(files.size, 'document')} of revision ${revision}; ${count(written.length, 'file')} written, ${gone.length} deleted`,
    )
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    throw usage(`${folder} cannot be written: ${message}`)
  }
}

/** Whether a file, or the folder that it is in, is ignored. */
function isIgnored(ignores: Ignores, name: string): boolean {
  return ignores(dirname(name), true) || ignores(name, false)
}

function writeChanged(path: string, text: string): boolean {
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return false
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  return true
}

/** The files of a folder that an export has written; others are left alone. */
function filesOf(nouns: readonly Noun[], folder: string): string[] {
  return nouns.flatMap(({ name }) => {
    const below = join(folder, name)
    if (!existsSync(below)) return []
    return readdirSync(below)
      .filter((file) => file.endsWith('.yaml'))
      .map((file) => join(name, file))
  })
}
