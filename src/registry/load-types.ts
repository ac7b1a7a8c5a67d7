// Reads the resource files of all folders into types, or says everything that is wrong with them.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseDocument as parseYaml } from 'yaml'
import { buildTypes, type RegisteredTypes } from './build-types.ts'
import { withoutMistakes } from './mistakes-in-file.ts'
import { checkResourceFile, type LoadedFile, type ResourceFile } from './resource-file.ts'

export type LoadedTypes =
  | { readonly ok: true; readonly types: RegisteredTypes }
  | { readonly ok: false; readonly problems: readonly string[] }

/** A file of a later folder replaces one of the same kind in an earlier folder. */
export function loadTypes(folders: readonly string[]): LoadedTypes {
  const problems: string[] = []
  const files = new Map<string, LoadedFile>()
  for (const folder of folders) {
    const inFolder = new Map<string, string>()
    for (const path of listFiles(folder, problems)) {
      const file = readResourceFile(path, problems)
      if (!file) continue
      const twin = inFolder.get(file.kind)
      if (twin) problems.push(`${path}: kind "${file.kind}" is defined by ${twin} already`)
      inFolder.set(file.kind, path)
      files.set(file.kind, { ...file, path })
    }
  }
  const built = buildTypes([...files.values()], problems.length === 0)
  return built.ok ? built : { ok: false, problems: [...problems, ...built.problems] }
}

/** The YAML files of a folder, by name. */
export function listFiles(folder: string, problems: string[]): string[] {
  try {
    const names = readdirSync(folder).filter((name) => /\.ya?ml$/.test(name) && !name.startsWith('.'))
    return names.sort().map((name) => join(folder, name))
  } catch (error) {
    problems.push(`${folder}: cannot be read: ${(error as Error).message}`)
    return []
  }
}

/** Returns the file; of a file with mistakes, what can still be checked. */
function readResourceFile(path: string, problems: string[]): ResourceFile | undefined {
  let content: unknown
  try {
    const yaml = parseYaml(readFileSync(path, 'utf8'))
    if (yaml.errors.length > 0) throw yaml.errors[0]
    content = yaml.toJS()
  } catch (error) {
    problems.push(`${path}: ${(error as Error).message}`)
    return undefined
  }
  if (checkResourceFile(content)) return content as ResourceFile
  for (const { instancePath, message, params } of checkResourceFile.errors ?? []) {
    const extra = params.additionalProperty ? ` (${params.additionalProperty})` : ''
    problems.push(`${path}: ${instancePath || '/'} ${message}${extra}`)
  }
  return withoutMistakes(content)
}
