// Files that commands are given: YAML or JSON, from a path, a folder or stdin.
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { checkJson, type Json } from '../../base/json.ts'
import { usage } from '../failure.ts'
import type { Terminal } from '../output/terminal.ts'
import { IGNORE_FILE, type Ignores, readIgnored } from './ignored-files.ts'

export interface Parsed {
  readonly value: Json
  /** The file that it is from, for messages. */
  readonly source: string
}

export const STDIN = '-'
/** The files of a folder that are read. */
const READ = /\.(?:ya?ml|json)$/
/** How often aliases of YAML may be used: a file that expands to millions of values is an attack. */
const MAX_ALIASES = 10_000

/** Reads the documents of a file, of every YAML and JSON file below a folder, or of stdin. */
export async function readFiles(terminal: Terminal, path: string): Promise<Parsed[]> {
  if (path === STDIN) return parseText(await readStdin(terminal), 'stdin')
  const parsed: Parsed[] = []
  for (const file of filesOf(path)) parsed.push(...(await parseText(readText(file), file)))
  return parsed
}

/** The file of a path, or the YAML and JSON files below a folder that its ignore file leaves. */
export function filesOf(path: string): string[] {
  if (!isFolder(path)) return [path]
  const ignores = explainErrors(join(path, IGNORE_FILE), () => readIgnored(path))
  const files = filesBelow(path, { root: path, ignores, above: new Set() })
  if (files.length === 0) throw usage(`${path} holds no .yaml, .yml or .json file`)
  return files
}

/** Reads a file that holds one document. */
export async function readOne(terminal: Terminal, path: string): Promise<Json> {
  const name = path === STDIN ? 'stdin' : path
  if (path !== STDIN && isFolder(path))
    throw usage(`${name} must hold one document, and is a folder: give a file`)
  const found = await readFiles(terminal, path)
  if (found.length !== 1) throw usage(`${name} must hold one document, not ${found.length}`)
  return (found[0] as Parsed).value
}

function isFolder(path: string): boolean {
  return explainErrors(path, () => statSync(path).isDirectory())
}

interface Walk {
  /** The folder that was given. */
  readonly root: string
  readonly ignores: Ignores
  /** The folders that lead here: links may go round in circles. */
  readonly above: ReadonlySet<string>
}

/** The files below a folder, in order, without hidden ones. Links are followed: mounted configuration has them. */
function filesBelow(folder: string, walk: Walk): string[] {
  return explainErrors(folder, () => {
    const above = new Set([...walk.above, realpathSync(folder)])
    const names = readdirSync(folder).filter((name) => !name.startsWith('.'))
    return names.sort().flatMap((name) => {
      const path = join(folder, name)
      const isBelow = isFolder(path)
      if (walk.ignores(relative(walk.root, path), isBelow)) return []
      if (!isBelow) return READ.test(name) ? [path] : []
      return above.has(realpathSync(path)) ? [] : filesBelow(path, { ...walk, above })
    })
  })
}

export function readText(path: string): string {
  return decode(
    explainErrors(path, () => readFileSync(path)),
    path,
  )
}

/** Decodes UTF-8; bytes of another encoding would be lost, so they are an error. */
function decode(bytes: Buffer, source: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw usage(`${source} is not UTF-8: save it as such`)
  }
}

const REASONS: Record<string, string> = {
  ENOENT: 'there is no such file or folder',
  EACCES: 'permission denied',
}

function explainErrors<T>(path: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    throw usage(`${path} cannot be read: ${REASONS[code] ?? message}`)
  }
}

export async function readStdin({ stdin }: Terminal): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk))
  return decode(Buffer.concat(chunks), 'stdin')
}

/** Parses the documents of a text. JSON is tried first: it is YAML too, and parsed much faster. */
export async function parseText(text: string, source: string): Promise<Parsed[]> {
  const values = parseJson(text, source) ?? (await parseYaml(text, source))
  return values.map((value, i) => {
    const place = values.length > 1 ? `${source} (document ${i + 1})` : source
    const [unfit] = checkJson(value)
    if (unfit) throw usage(`${place}: ${unfit.path} ${unfit.message}`)
    return { value, source: place }
  })
}

function parseJson(text: string, source: string): Json[] | undefined {
  const isJson = source.endsWith('.json')
  if (!isJson && !/^\s*[[{]/.test(text)) return undefined
  try {
    return [JSON.parse(text)]
  } catch (error) {
    // The flow style of YAML also begins with a bracket.
    if (isJson) throw usage(`${source} is not valid JSON: ${(error as Error).message}`)
    return undefined
  }
}

async function parseYaml(text: string, source: string): Promise<Json[]> {
  const { parseAllDocuments } = await import('yaml')
  const documents = parseAllDocuments(text, { merge: true })
  if ('empty' in documents) return []
  return documents.flatMap((document) => {
    const [problem] = document.errors
    if (problem) throw usage(`${source} is not valid YAML: ${problem.message.split('\n')[0]}`)
    try {
      const value = document.toJS({ maxAliasCount: MAX_ALIASES })
      return value === null || value === undefined ? [] : [value as Json]
    } catch (error) {
      throw usage(`${source} is not valid YAML: ${(error as Error).message}`)
    }
  })
}
