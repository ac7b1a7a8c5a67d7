// Files that commands are given: YAML or JSON, from a path, a folder or stdin.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Json } from '../domain/json.ts'
import { usage } from './failure.ts'
import type { Terminal } from './terminal.ts'

export interface Parsed {
  readonly value: Json
  /** Where it is from, for messages. */
  readonly source: string
}

export const STDIN = '-'

/** Everything that a path holds: the documents of a file, of every YAML and JSON file below a folder, or of stdin. */
export async function readFiles(terminal: Terminal, path: string): Promise<Parsed[]> {
  if (path === STDIN) return parseText(await readStdin(terminal), 'stdin')
  const files = isFolder(path) ? filesBelow(path) : [path]
  if (files.length === 0) throw usage(`${path} holds no .yaml, .yml or .json file`)
  const parsed: Parsed[] = []
  for (const file of files) parsed.push(...(await parseText(readText(file), file)))
  return parsed
}

/** The one document of a file. */
export async function readOne(terminal: Terminal, path: string): Promise<Json> {
  const found = isFolderAt(path) ? [] : await readFiles(terminal, path)
  if (found.length !== 1) throw usage(`${path} must hold one document, not ${found.length}`)
  return (found[0] as Parsed).value
}

function isFolderAt(path: string): boolean {
  return path !== STDIN && isFolder(path)
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch (error) {
    throw cannotRead(path, error)
  }
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(?:ya?ml|json)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter(
      (path) =>
        !path
          .slice(folder.length)
          .split('/')
          .some((part) => part.startsWith('.')),
    )
    .sort()
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw cannotRead(path, error)
  }
}

function cannotRead(path: string, error: unknown): Error {
  const { code, message } = error as NodeJS.ErrnoException
  const reason =
    code === 'ENOENT' ? 'there is no such file or folder' : code === 'EACCES' ? 'permission denied' : message
  return usage(`${path} cannot be read: ${reason}`)
}

async function readStdin({ stdin }: Terminal): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString('utf8')
}

/** JSON is tried first: it is YAML too, and read much faster so. */
export async function parseText(text: string, source: string): Promise<Parsed[]> {
  if (/^\s*[[{]/.test(text)) {
    try {
      return [{ value: JSON.parse(text), source }]
    } catch {
      // Flow style of YAML starts like this as well.
    }
  }
  const { parseAllDocuments } = await import('yaml')
  const documents = parseAllDocuments(text)
  if ('empty' in documents) return []
  return documents.flatMap((document, i) => {
    const [problem] = document.errors
    if (problem) throw usage(`${source} is not valid YAML: ${problem.message.split('\n')[0]}`)
    const value = toJson(document, source)
    const place = documents.length > 1 ? `${source} (document ${i + 1})` : source
    return value === null || value === undefined ? [] : [{ value, source: place }]
  })
}

function toJson(document: { toJS(options: { maxAliasCount: number }): unknown }, source: string): Json {
  try {
    return document.toJS({ maxAliasCount: 100 }) as Json
  } catch (error) {
    throw usage(`${source} is not valid YAML: ${(error as Error).message}`)
  }
}
