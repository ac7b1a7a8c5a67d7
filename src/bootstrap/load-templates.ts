// Reads the manifests that bootstrap bundles carry, or says everything that is wrong with them.
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { type Document, isMap, parseAllDocuments } from 'yaml'
import { isObject, type Json, type JsonObject } from '../base/json.ts'
import type { Types } from '../domain/types/resource-type.ts'
import { listFiles } from '../registry/load-types.ts'
import { obstacleToMarks } from './answer-marks.ts'
import {
  ACK,
  EVENTS,
  IDENTITY,
  NAMESPACE,
  OPERATOR_EVENTS,
  PHONE_HOME,
  TOKEN_SECRET,
} from './bundle-names.ts'
import type { Template } from './template.ts'

export type LoadedTemplates =
  | { readonly ok: true; readonly templates: readonly Template[] }
  | { readonly ok: false; readonly problems: readonly string[] }

/**
 * A file of a later folder replaces one of the same name in an earlier folder. The first folder is ours: its templates
 * for types that do not exist are left out. In other folders such a template is a mistake.
 */
export function loadTemplates(folders: readonly string[], types: Types): LoadedTemplates {
  const problems: string[] = []
  const files = new Map<string, { path: string; isOurs: boolean }>()
  folders.forEach((folder, i) => {
    for (const path of listFiles(folder, problems)) files.set(basename(path), { path, isOurs: i === 0 })
  })
  const templates: Template[] = []
  const taken = bundled(types)
  for (const name of [...files.keys()].sort()) {
    const { path, isOurs } = files.get(name) as { path: string; isOurs: boolean }
    for (const { yaml, manifest } of readManifests(path, problems)) {
      const endpoints = providersOf(manifest)
      const foreign = endpoints.filter((endpoint) => !types.byEndpoint(endpoint))
      if (foreign.length > 0 && isOurs) continue
      const found = checkManifest(manifest, yaml)
      const who = keyOf(manifest)
      const holder = taken.get(who)
      if (found.length === 0 && holder) found.push(`${who.replace(/\..*? /, ' ')} is in ${holder} already`)
      taken.set(who, path)
      found.push(...foreign.map((endpoint) => noSuchProvider(types, endpoint)))
      problems.push(...found.map((problem) => `${path}: ${problem}`))
      const obstacle =
        endpoints.length > 0 ? obstacleToMarks(at(manifest, 'spec') as JsonObject, yaml) : undefined
      const name = String(at(manifest, 'metadata', 'name'))
      templates.push({ kind: String(at(manifest, 'kind')), name, endpoints, obstacle, yaml })
    }
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, templates }
}

interface Read {
  readonly yaml: Document
  readonly manifest: Json
}

function readManifests(path: string, problems: string[]): Read[] {
  try {
    const text = readFileSync(path, 'utf8')
    if (/^%TAG\b/m.test(text))
      throw new Error('a bundle carries no directives: write tags out instead of by %TAG')
    const manifests = parseAllDocuments(text, { version: '1.1' }).map((document) => {
      if (document.errors[0]) throw document.errors[0]
      return document.toJS() as Json
    })
    // Parsed again with every scalar as text, so that scalars are written unchanged: 0444 and large numbers too.
    return parseAllDocuments(text, { schema: 'failsafe' }).flatMap((yaml, i) => {
      const manifest = manifests[i] ?? null
      // The bundle has separators of its own, and no directives.
      yaml.directives.docStart = null
      yaml.directives.yaml.explicit = false
      if (at(manifest, 'metadata', 'annotations') === null) yaml.deleteIn(['metadata', 'annotations'])
      return manifest === null ? [] : [{ yaml, manifest }]
    })
  } catch (error) {
    problems.push(`${path}: ${(error as Error).message}`)
    return []
  }
}

function at(value: Json | undefined, ...keys: readonly string[]): Json | undefined {
  return keys.reduce<Json | undefined>((found, key) => (isObject(found) ? found[key] : undefined), value)
}

/** What identifies an object: its group, kind, namespace and name, but not its API version. */
function keyOf(manifest: Json): string {
  const [, group = ''] = /^(.*)\//.exec(String(at(manifest, 'apiVersion'))) ?? []
  const namespace = at(manifest, 'metadata', 'namespace')
  const kind = [at(manifest, 'kind'), group].filter(Boolean).join('.')
  return `${kind} ${namespace ? `${namespace}/` : ''}${at(manifest, 'metadata', 'name')}`
}

/** The keys of the objects that every bundle has, whatever its templates. */
function bundled(types: Types): Map<string, string> {
  const providers = [IDENTITY, ACK, ...types.delivered.map(({ delivery }) => delivery.endpoint)]
  const names = [
    `Namespace ${NAMESPACE}`,
    `ConfigMap ${NAMESPACE}/${IDENTITY}`,
    `Secret ${NAMESPACE}/${TOKEN_SECRET}`,
    ...[PHONE_HOME, ACK, EVENTS, OPERATOR_EVENTS].map(
      (name) => `ResourceSet.fluxcd.controlplane.io ${NAMESPACE}/${name}`,
    ),
    `Provider.notification.toolkit.fluxcd.io ${NAMESPACE}/${EVENTS}`,
    ...[EVENTS, OPERATOR_EVENTS].map((name) => `Alert.notification.toolkit.fluxcd.io ${NAMESPACE}/${name}`),
    ...providers.map((name) => `ResourceSetInputProvider.fluxcd.controlplane.io ${NAMESPACE}/${name}`),
  ]
  return new Map(names.map((name) => [name, 'every bundle']))
}

/** The providers that feed a ResourceSet, by name. */
function providersOf(manifest: Json): string[] {
  const sources = at(manifest, 'kind') === 'ResourceSet' ? at(manifest, 'spec', 'inputsFrom') : undefined
  const names = Array.isArray(sources) ? sources.map((source) => at(source, 'name')) : []
  return names.filter((name) => typeof name === 'string')
}

function noSuchProvider(types: Types, endpoint: string): string {
  const known = types.delivered.map(({ delivery }) => delivery.endpoint).join(', ')
  return `takes inputs from "${endpoint}", which is no endpoint of a type: known are ${known}`
}

/** Returns mistakes that would delete a cluster's objects, or leave the bundle without effect. */
function checkManifest(manifest: Json, yaml: Document): string[] {
  const missing = [['apiVersion'], ['kind'], ['metadata', 'name']].filter((keys) => {
    const value = at(manifest, ...keys)
    return typeof value !== 'string' || value === ''
  })
  if (missing.length > 0) return missing.map((keys) => `${keys.join('.')} is required`)
  // The bundle adds annotations to the metadata, so it cannot be an alias.
  if (!isMap(yaml.get('metadata', true))) return ['metadata must be written out']
  const annotations = at(manifest, 'metadata', 'annotations') ?? {}
  if (!isObject(annotations)) return ['metadata.annotations must be a map']
  if (at(manifest, 'kind') !== 'ResourceSet') return []
  const who = `ResourceSet "${at(manifest, 'metadata', 'name')}"`
  if (at(manifest, 'metadata', 'namespace') !== NAMESPACE)
    return [`${who}: metadata.namespace must be ${NAMESPACE}, where its provider is`]
  const sources = at(manifest, 'spec', 'inputsFrom') ?? []
  if (!Array.isArray(sources)) return [`${who}: spec.inputsFrom must be a list`]
  const isNamed = (source: Json): boolean =>
    typeof at(source, 'name') === 'string' && at(source, 'selector') === undefined
  if (!sources.every(isNamed))
    return [
      `${who}: spec.inputsFrom must name its provider: one chosen by label takes everything along when it goes`,
    ]
  const guards = at(manifest, 'spec', 'dependsOn')
  const isGuarded = (name: string): boolean =>
    Array.isArray(guards) && guards.some((guard) => guardsProvider(guard, name))
  return providersOf(manifest)
    .filter((name) => !isGuarded(name))
    .map(
      (name) =>
        `${who}: spec.dependsOn must name the provider "${name}" with ready: true, or one that is made anew deletes everything`,
    )
}

function guardsProvider(guard: Json, name: string): boolean {
  const namespace = at(guard, 'namespace')
  return (
    at(guard, 'kind') === 'ResourceSetInputProvider' &&
    at(guard, 'name') === name &&
    (namespace === undefined || namespace === NAMESPACE) &&
    at(guard, 'ready') === true
  )
}
