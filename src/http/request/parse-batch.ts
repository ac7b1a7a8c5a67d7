// From the body of a batch to commands, or everything that is wrong with it.

import { BATCH_SCHEMA, MAX_OPERATIONS, METHOD_OF, OPERATIONS } from '../../api/batch-schema.ts'
import { isObject, type Json, type JsonObject, own } from '../../base/json.ts'
import { type Detail, invalid, MAX_FOUND, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import { parseSelector } from '../../domain/access/selector.ts'
import type { Command, Expectation, Targets } from '../../domain/commands/command.ts'
import { below } from '../../domain/documents/parse-document.ts'
import { describeMethods } from '../../domain/guards/refuse-methods.ts'
import type { RegisteredTypes } from '../../registry/build-types.ts'
import { buildChecker } from '../../registry/validator.ts'

const checkBatch = buildChecker(BATCH_SCHEMA)
const checkOperation = buildChecker({ type: 'object' })
const checkers = new Map(Object.entries(OPERATIONS).map(([op, schema]) => [op, buildChecker(schema)]))
/** Fields that hold what only the type can judge. */
const PAYLOADS = ['document', 'patch', 'ref', 'values']

/** Lengths first: what is too long is not looked into. */
export function* parseBatch(types: RegisteredTypes, body: Json): Steps<Result<Command[]>> {
  if (!isObject(body)) return invalid([{ path: '', message: 'must be an object with a list of operations' }])
  const { operations, ...rest } = body
  const list: readonly Json[] = Array.isArray(operations) ? operations : []
  if (list.length > MAX_OPERATIONS)
    return invalid([{ path: '/operations', message: `must have at most ${MAX_OPERATIONS} items` }])
  const some = list.length > 0 ? { operations: [{}] } : operations === undefined ? {} : { operations }
  const envelope = checkBatch({ ...rest, ...some })
  if (envelope.length > 0) return invalid(envelope)
  const allowEmpty = own(rest, 'allow_empty') === true
  const details: Detail[] = []
  const commands: Command[] = []
  for (const [i, operation] of list.entries()) {
    yield
    const parser = new OperationParser(types, operation, `/operations/${i}`, allowEmpty)
    const command = parser.parse()
    for (const detail of parser.details) details.push(detail)
    if (command) commands.push(command)
    if (details.length > MAX_FOUND) break
  }
  return details.length > 0 ? invalid(details) : succeed(commands)
}

/** Reads one operation; what is wrong with it gathers in `details`. */
class OperationParser {
  readonly details: Detail[]
  readonly #types: RegisteredTypes
  readonly #operation: JsonObject
  readonly #path: string
  readonly #allowEmpty: boolean

  constructor(types: RegisteredTypes, operation: Json, path: string, allowEmpty: boolean) {
    this.#types = types
    this.#path = path
    this.#operation = isObject(operation) ? operation : {}
    this.#allowEmpty = own(this.#operation, 'allow_empty') === true || allowEmpty
    this.details = isObject(operation) ? [] : below(path, checkOperation(operation))
  }

  parse(): Command | undefined {
    if (this.details.length > 0) return undefined
    const op = own(this.#operation, 'op')
    const check = typeof op === 'string' ? checkers.get(op) : undefined
    if (!check) {
      const known = [...checkers.keys()].join(', ')
      return this.#wrong(
        '/op',
        op === undefined
          ? `is required: one of ${known}`
          : `must be one of ${known}, not ${JSON.stringify(op)}`,
      )
    }
    const payloads = PAYLOADS.filter(
      (name) => isObject(own(this.#operation, name)) || Array.isArray(own(this.#operation, name)),
    )
    const bare = { ...this.#operation }
    for (const name of payloads) bare[name] = Array.isArray(bare[name]) ? [] : {}
    const details = check(bare)
    if (details.length > 0) {
      for (const detail of below(this.#path, details)) this.details.push(detail)
      return undefined
    }
    const command = this.#build(op as string)
    return this.details.length > 0 ? undefined : command
  }

  #build(op: string): Command | undefined {
    const { document, patch, ref, values, cascade, purge, merge, ensure, replace } = this.#operation
    const text = (name: string): string => String(own(this.#operation, name) ?? '')
    const [type, id, component] = [text('type'), text('id'), text('component')]
    const at = (field: string) => ({ path: `${this.#path}/${field}`, operation: this.#path })
    if (op !== 'patch_values') this.#checkType(op, type)
    this.#checkMethod(op, type)
    const expect = this.#expect()
    switch (op) {
      case 'create':
        return { op, type, document: document as Json, ...at('document') }
      case 'replace':
        return { op, type, id, document: document as Json, ...expect, ...at('document') }
      case 'patch': {
        const format = Array.isArray(patch) ? 'json' : 'merge'
        return this.#onDocuments(type, (target) => ({
          op,
          type,
          id: target,
          patch: patch as Json,
          format,
          ...expect,
          ...at('patch'),
        }))
      }
      case 'delete':
        this.#checkFlags(type)
        return this.#onDocuments(type, (target) => ({
          op,
          type,
          id: target,
          cascade: cascade === true,
          purge: purge === true,
          ...expect,
          ...at('id'),
        }))
      case 'restore':
        return this.#onDocuments(type, (target) => ({ op, type, id: target, ...at('id') }))
      case 'assign': {
        const assigned = own(ref as JsonObject, 'id')
        if (typeof assigned !== 'string')
          return this.#wrong('/ref/id', 'is required: the id of what to assign')
        if (merge === true && ensure === true) {
          return this.#wrong(
            '/ensure',
            'does not go with merge: one assigns where it is missing, one does not',
          )
        }
        const how = merge === true ? 'merge' : ensure === true ? 'ensure' : 'replace'
        const having = how === 'merge' ? { type, id: assigned } : undefined
        return this.#onClusters(having, (cluster) => ({
          op,
          type,
          cluster,
          id: assigned,
          reference: ref as Json,
          how,
          ...at('ref'),
        }))
      }
      case 'unassign':
        return this.#onClusters({ type, id }, (cluster) => ({ op, type, cluster, id, ...at('id') }))
      default: {
        const patched = this.#types.patchable?.name ?? ''
        return this.#onClusters({ type: patched, id: component }, (cluster) => ({
          op: 'patch_values',
          cluster,
          component,
          values: values as Json,
          merge: replace !== true,
          ...at('values'),
        }))
      }
    }
  }

  #checkType(op: string, name: string): void {
    const assigning = op === 'assign' || op === 'unassign'
    const known = assigning ? this.#types.delivered : this.#types.all
    if (known.some((type) => type.name === name)) return
    const names = known.map((type) => type.name).join(', ')
    const what = this.#types.get(name) ? 'cannot be assigned' : 'is an unknown type'
    this.#wrong('/type', `${what}: "${name}"; known are ${names}`)
  }

  #checkMethod(op: string, name: string): void {
    const type = this.#types.get(name)
    const needed = METHOD_OF[op]
    if (!type || !needed || type.methods.has(needed)) return
    this.#wrong('/op', `must not be "${op}": ${describeMethods(type)}`)
  }

  #checkFlags(type: string): void {
    const clusters = this.#types.cluster.type.name
    const [flag, whose] = type === clusters ? ['cascade', 'definitions'] : ['purge', clusters]
    if (own(this.#operation, flag) === true) this.#wrong(`/${flag}`, `is for ${whose} only`)
  }

  #expect(): { expect?: Expectation } {
    const { if_revision, id } = this.#operation
    if (if_revision === undefined) return {}
    if (id === undefined)
      this.#wrong('/if_revision', 'goes with id only: several documents have several revisions')
    return { expect: { revisions: [if_revision as number] } }
  }

  /** By id, or for the type of clusters also by several ids or by selector. */
  #onDocuments(
    type: string,
    each: (id: string) => Extract<Command, { op: 'patch' | 'delete' | 'restore' }>,
  ): Command | undefined {
    const { id } = this.#operation
    const clusters = this.#types.cluster.type.name
    const given = ['id', 'clusters', 'selector'].filter((name) => Object.hasOwn(this.#operation, name))
    if (given.length !== 1) return this.#wrongTargets(given, ['id', 'clusters', 'selector'])
    if (id !== undefined) return each(id as string)
    if (type !== clusters) {
      return this.#wrong(`/${given[0]}`, `chooses ${clusters}; documents of ${type} are named by id`)
    }
    return this.#onClusters(undefined, each)
  }

  #onClusters(
    having: { type: string; id: string } | undefined,
    each: Extract<Command, { op: 'for_clusters' }>['each'],
  ): Command | undefined {
    const { clusters, selector } = this.#operation
    const given = ['clusters', 'selector'].filter((name) => Object.hasOwn(this.#operation, name))
    if (given.length !== 1) return this.#wrongTargets(given, ['clusters', 'selector'])
    const place = { path: `${this.#path}/${given[0]}`, operation: this.#path }
    const spread = (targets: Targets): Command => ({ op: 'for_clusters', targets, each, ...place })
    if (clusters !== undefined) return spread({ ids: clusters as readonly string[] })
    const parsed = parseSelector(this.#types, String(selector))
    if (!parsed.ok) return this.#wrong('/selector', parsed.message)
    const targets = { selector: parsed.selector, allowEmpty: this.#allowEmpty, ...(having && { having }) }
    return spread(targets)
  }

  #wrongTargets(given: readonly string[], known: readonly string[]): undefined {
    const choice = `${known.slice(0, -1).join(', ')} or ${known.at(-1)}`
    const message =
      given.length === 0
        ? `names no target: give ${choice}`
        : `has ${given.join(' and ')}: give only one of ${choice}`
    return this.#wrong('', message)
  }

  #wrong(place: string, message: string): undefined {
    this.details.push({ path: this.#path + place, message })
    return undefined
  }
}
