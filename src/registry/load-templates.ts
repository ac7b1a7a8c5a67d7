// Reads the manifests that bootstrap bundles carry, or says everything that is wrong with them.
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { type Document, parseAllDocuments } from 'yaml'
import { isObject, type Json } from '../domain/json.ts'
import type { Types } from '../domain/resource-type.ts'
import { listFiles } from './load-types.ts'

/** One manifest, with its comments as its file has them. */
export interface Template {
  readonly kind: string
  /** The endpoints that it takes inputs from. */
  readonly endpoints: readonly string[]
  readonly yaml: Document
}

export type LoadedTemplates =
  | { readonly ok: true; readonly templates: readonly Template[] }
  | { readonly ok: false; readonly problems: readonly string[] }

/**
 * A file of a later folder replaces one of the same name in an earlier folder. The first folder is ours: what it has
 * for a type that is not there is left out; elsewhere that is a mistake.
 */
export function loadTemplates(folders: readonly string[], types: Types): LoadedTemplates {
  const problems: string[] = []
  const files = new Map<string, { path: string; isOurs: boolean }>()
  folders.forEach((folder, i) => {
    for (const path of listFiles(folder, problems)) files.set(basename(path), { path, isOurs: i === 0 })
  })
  const templates: Template[] = []
  for (const name of [...files.keys()].sort()) {
    const { path, isOurs } = files.get(name) as { path: string; isOurs: boolean }
    for (const yaml of readManifests(path, problems)) {
      const manifest = yaml.toJS() as Json
      const found = checkManifest(manifest).map((problem) => `${path}: ${problem}`)
      const endpoints = providersOf(manifest)
      const foreign = endpoints.filter((endpoint) => !types.byEndpoint(endpoint))
      if (foreign.length > 0 && isOurs) continue
      found.push(...foreign.map((endpoint) => `${path}: ${noSuchProvider(types, endpoint)}`))
      problems.push(...found)
      if (found.length === 0) templates.push({ kind: at(manifest, 'kind') as string, endpoints, yaml })
    }
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, templates }
}

function readManifests(path: string, problems: string[]): Document[] {
  try {
    const documents = parseAllDocuments(readFileSync(path, 'utf8'))
    if (!Array.isArray(documents)) return []
    for (const document of documents) {
      if (document.errors[0]) throw document.errors[0]
      // The bundle puts the separators.
      if (document.directives) document.directives.docStart = null
    }
    return documents.filter(({ contents }) => contents !== null)
  } catch (error) {
    problems.push(`${path}: ${(error as Error).message}`)
    return []
  }
}

function at(value: Json | undefined, ...keys: readonly string[]): Json | undefined {
  return keys.reduce<Json | undefined>((found, key) => (isObject(found) ? found[key] : undefined), value)
}

function listAt(value: Json, ...keys: readonly string[]): readonly Json[] {
  const found = at(value, ...keys)
  return Array.isArray(found) ? found : []
}

/** The providers that feed a ResourceSet, by name. */
function providersOf(manifest: Json): string[] {
  if (at(manifest, 'kind') !== 'ResourceSet') return []
  const names = listAt(manifest, 'spec', 'inputsFrom').map((source) => at(source, 'name'))
  return names.filter((name) => typeof name === 'string')
}

function noSuchProvider(types: Types, endpoint: string): string {
  const known = types.delivered.map(({ delivery }) => delivery.endpoint).join(', ')
  return `takes inputs from "${endpoint}", which is no endpoint of a type: known are ${known}`
}

/** What would leave a cluster without its objects, or the bundle without effect. */
function checkManifest(manifest: Json): string[] {
  const missing = [['apiVersion'], ['kind'], ['metadata', 'name']].filter(
    (keys) => typeof at(manifest, ...keys) !== 'string',
  )
  if (missing.length > 0) return missing.map((keys) => `${keys.join('.')} is required`)
  if (at(manifest, 'kind') !== 'ResourceSet') return []
  const who = `ResourceSet "${at(manifest, 'metadata', 'name')}"`
  if (at(manifest, 'metadata', 'namespace') !== 'flux-system')
    return [`${who}: metadata.namespace must be flux-system, where its provider is`]
  const byLabel = listAt(manifest, 'spec', 'inputsFrom').some((source) => at(source, 'name') === undefined)
  const selected = byLabel
    ? [
        `${who}: spec.inputsFrom must name its provider: one chosen by label takes everything along when it goes`,
      ]
    : []
  const unguarded = providersOf(manifest).filter(
    (name) =>
      !listAt(manifest, 'spec', 'dependsOn').some(
        (other) =>
          at(other, 'kind') === 'ResourceSetInputProvider' &&
          at(other, 'name') === name &&
          at(other, 'ready') === true,
      ),
  )
  return [
    ...selected,
    ...unguarded.map(
      (name) =>
        `${who}: spec.dependsOn must name the provider "${name}" with ready: true, or one that is made anew deletes everything`,
    ),
  ]
}
