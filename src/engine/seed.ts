// Fills an empty store from a seed file: all of it as revision 1, or nothing.

import { checkJson, isObject, type Json, own, pointer } from '../base/json.ts'
import { type Detail, invalid, type Result, succeed } from '../base/problem.ts'
import { SEEDER } from '../domain/access/token.ts'
import type { Create } from '../domain/commands/command.ts'
import { parseDocument } from '../domain/documents/parse-document.ts'
import { SharedParts } from '../domain/documents/shared-parts.ts'
import type { DeliveredType, ResourceType, Types } from '../domain/types/resource-type.ts'
import type { Engine } from './engine.ts'

/** The first process seeds the store; all others find it filled. Documents of the content are put in order as they are read. */
export async function seed(engine: Engine, types: Types, content: unknown): Promise<Result<void>> {
  await engine.catchUp()
  if (engine.state.revision > 0) return succeed(undefined)
  const commands = parseSeed(types, content)
  if (!commands.ok) return commands
  const author = { actor: SEEDER, message: 'Seed file', request_id: 'seed', client_address: null }
  const written = await engine.write(commands.value, author, { onlyAt: 0, operation: 'load the seed file' })
  const filledByOther = !written.ok && engine.state.revision > 0
  return written.ok || filledByOther ? succeed(undefined) : written
}

/**
 * `{type: [documents]}`, ids as `id` or `_id`. Where a type has no list at all, the documents that clusters refer to
 * are made from what the references themselves say.
 */
function parseSeed(types: Types, content: unknown): Result<Create[]> {
  const unfit = checkJson(content)
  if (unfit.length > 0) return invalid(unfit)
  if (!isObject(content))
    return invalid([{ path: '', message: 'must be an object: a list of documents by type' }])
  const details: Detail[] = []
  const missing = types.delivered.filter((type) => !Object.hasOwn(content, type.name))
  const commands = missing.flatMap((type) => impliedDefinitions(types, type, content))
  const parts = new SharedParts(types)
  for (const [name, documents] of Object.entries(content)) {
    const type = types.get(name)
    if (!type) {
      const known = types.all.map((other) => other.name).join(', ')
      details.push({ path: pointer('', name), message: `is an unknown type: known are ${known}` })
    } else if (!Array.isArray(documents)) {
      details.push({ path: pointer('', name), message: 'must be a list of documents' })
    } else {
      for (const [i, item] of documents.entries()) {
        const command = create(type, withPlainId(item), `/${name}/${i}`)
        const parsed = parseDocument(type, command.document, undefined, command.path)
        if (parsed.ok) {
          if (type === types.cluster.type) parts.share(parsed.value)
          // What was read is let go of, document by document: a large fleet is not kept twice.
          documents[i] = parsed.value
          commands.push({ ...command, document: parsed.value })
        } else {
          const { details: wrong = [] } = parsed.problem
          details.push(...wrong.map((detail) => asWritten(detail, command, item)))
        }
      }
    }
  }
  return details.length > 0 ? invalid(details) : succeed(commands)
}

function create(type: ResourceType, document: Json, path: string): Create {
  return { op: 'create', type: type.name, document, path }
}

function withPlainId(item: Json): Json {
  if (!isObject(item) || !Object.hasOwn(item, '_id')) return item
  const { _id, ...rest } = item
  return { id: _id as Json, ...rest }
}

/** Moves the path of a problem to `_id` where the file spells the id so. */
function asWritten(detail: Detail, { path }: Create, item: Json): Detail {
  const renamed = isObject(item) && Object.hasOwn(item, '_id') && detail.path === `${path}/id`
  return renamed ? { ...detail, path: `${path}/_id` } : detail
}

/** Old seed files write namespaces and role bindings out in each cluster: the first mention becomes the definition. */
function impliedDefinitions(types: Types, type: DeliveredType, content: Json): Create[] {
  const { assignedBy, referenceDefaults } = type.delivery
  const clusters = isObject(content) ? own(content, types.cluster.type.name) : undefined
  const found = new Map<Json | undefined, Create>()
  for (const [i, cluster] of (Array.isArray(clusters) ? clusters : []).entries()) {
    const references = isObject(cluster) ? own(cluster, assignedBy) : undefined
    for (const [j, reference] of (Array.isArray(references) ? references : []).entries()) {
      if (!isObject(reference) || found.has(reference.id)) continue
      const fields = Object.entries(reference).filter(([key]) => !Object.hasOwn(referenceDefaults, key))
      const path = `/${types.cluster.type.name}/${i}/${assignedBy}/${j}`
      const command = create(type, Object.fromEntries(fields), path)
      if (parseDocument(type, command.document, undefined, path).ok) found.set(reference.id, command)
    }
  }
  return [...found.values()]
}
