// From the body of a batch to commands, or everything that is wrong with it.

import { isObject, type Json, type JsonObject, own } from '../../base/json.ts'
import { type Detail, invalid, MAX_FOUND, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import { overProblem, parseTime } from '../../base/time.ts'
import { parseSelector } from '../access/selector.ts'
import { UNREAD_STATUS } from '../access/selector-subjects.ts'
import { servedVersions } from '../delivery/served-version.ts'
import { below } from '../documents/parse-document.ts'
import { describeMethods } from '../guards/refuse-methods.ts'
import type { Types, WriteMethod } from '../types/resource-type.ts'
import { type ClusterCommand, type Command, type Expectation, onCluster, type Targets } from './command.ts'

export const MAX_OPERATIONS = 100_000

/** The method that an operation on a document needs of its type; assigning needs none. */
export const METHOD_OF: Readonly<Record<string, WriteMethod>> = {
  create: 'post',
  replace: 'put',
  patch: 'patch',
  delete: 'delete',
  restore: 'delete',
}

type Check = (value: Json) => Detail[]

/** Everything wrong with the shape of a batch, by the schemas of the API. */
export interface BatchChecks {
  readonly envelope: Check
  readonly operation: Check
  /** By `op`, without looking into documents, patches, references and values. */
  readonly operations: ReadonlyMap<string, Check>
}

/** Who holds clusters, and when. */
export interface BatchAuthor {
  readonly by: string
  /** RFC 3339, UTC. */
  readonly at: string
}

/** Operations on clusters, whose type needs no saying. */
const TYPELESS = ['patch_values', 'hold', 'release']

/** Fields that hold what only the type can judge. */
const PAYLOADS = ['document', 'patch', 'ref', 'values']

/** Checks lengths first: a list that is too long is not read. */
export function* parseBatch(
  types: Types,
  checks: BatchChecks,
  body: Json,
  author: BatchAuthor,
): Steps<Result<Command[]>> {
  if (!isObject(body)) return invalid([{ path: '', message: 'must be an object with a list of operations' }])
  const { operations, ...rest } = body
  const list: readonly Json[] = Array.isArray(operations) ? operations : []
  if (list.length > MAX_OPERATIONS)
    return invalid([{ path: '/operations', message: `must have at most ${MAX_OPERATIONS} items` }])
  const some = list.length > 0 ? { operations: [{}] } : operations === undefined ? {} : { operations }
  const envelope = checks.envelope({ ...rest, ...some })
  if (envelope.length > 0) return invalid(envelope)
  const allowEmpty = own(rest, 'allow_empty') === true
  const details: Detail[] = []
  const commands: Command[] = []
  for (const [i, operation] of list.entries()) {
    yield
    const parser = new OperationParser({ types, checks, author }, operation, `/operations/${i}`, allowEmpty)
    const command = parser.parse()
    for (const detail of parser.details) details.push(detail)
    if (command) commands.push(command)
    if (details.length > MAX_FOUND) break
  }
  return details.length > 0 ? invalid(details) : succeed(commands)
}

/** Reads one operation; collects what is wrong with it in `details`. */
class OperationParser {
  readonly details: Detail[]
  readonly #types: Types
  readonly #checks: BatchChecks['operations']
  readonly #author: BatchAuthor
  readonly #operation: JsonObject
  readonly #path: string
  readonly #allowEmpty: boolean

  constructor(
    { types, checks, author }: { types: Types; checks: BatchChecks; author: BatchAuthor },
    operation: Json,
    path: string,
    allowEmpty: boolean,
  ) {
    this.#types = types
    this.#author = author
    this.#checks = checks.operations
    this.#path = path
    this.#operation = isObject(operation) ? operation : {}
    this.#allowEmpty = own(this.#operation, 'allow_empty') === true || allowEmpty
    this.details = isObject(operation) ? [] : below(path, checks.operation(operation))
  }

  parse(): Command | undefined {
    if (this.details.length > 0) return undefined
    const op = own(this.#operation, 'op')
    const check = typeof op === 'string' ? this.#checks.get(op) : undefined
    if (!check) {
      const known = [...this.#checks.keys()].join(', ')
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
    if (!TYPELESS.includes(op)) this.#checkType(op, type)
    this.#checkMethod(op, type)
    const expect = this.#expect()
    switch (op) {
      case 'create':
        return { op, type, document: document as Json, ...at('document') }
      case 'replace':
        return { op, type, id, document: document as Json, ...expect, ...at('document') }
      case 'patch': {
        const format = Array.isArray(patch) ? 'json' : 'merge'
        return this.#onDocuments(type, {
          op,
          type,
          patch: patch as Json,
          format,
          ...expect,
          ...at('patch'),
        })
      }
      case 'delete':
        this.#checkFlags(type)
        return this.#onDocuments(type, {
          op,
          type,
          cascade: cascade === true,
          purge: purge === true,
          ...expect,
          ...at('id'),
        })
      case 'restore':
        return this.#onDocuments(type, { op, type, ...at('id') })
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
        const command = { op, type, id: assigned, reference: ref as Json, how, ...at('ref') } as const
        return this.#onClusters(having, command)
      }
      case 'unassign':
        return this.#onClusters({ type, id }, { op, type, id, ...at('id') })
      case 'hold':
        return this.#onClusters(undefined, {
          op: 'hold_cluster',
          reason: text('reason'),
          ...this.#until(),
          ...this.#author,
          ...at('reason'),
        })
      case 'release':
        return this.#onClusters(undefined, { op: 'release_cluster', ifHeld: true, ...at('op') })
      default: {
        const patched = this.#types.patchable?.name ?? ''
        return this.#onClusters(
          { type: patched, id: component },
          { op: 'patch_values', component, values: values as Json, merge: replace !== true, ...at('values') },
        )
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

  /** Checked by the schema as a time. */
  #until(): { until?: string } {
    const { until: given } = this.#operation
    if (given === undefined) return {}
    const until = parseTime(given as string) ?? ''
    const over = overProblem(until, this.#author.at)
    if (over) this.#wrong('/until', over)
    return { until }
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
    command: Extract<ClusterCommand, { op: 'patch' | 'delete' | 'restore' }>,
  ): Command | undefined {
    const { id } = this.#operation
    const clusters = this.#types.cluster.type.name
    const given = ['id', 'clusters', 'selector'].filter((name) => Object.hasOwn(this.#operation, name))
    if (given.length !== 1) return this.#wrongTargets(given, ['id', 'clusters', 'selector'])
    if (id !== undefined) return onCluster(command, id as string)
    if (type !== clusters) {
      return this.#wrong(`/${given[0]}`, `chooses ${clusters}; documents of ${type} are named by id`)
    }
    return this.#onClusters(undefined, command)
  }

  #onClusters(
    having: { type: string; id: string } | undefined,
    command: ClusterCommand,
  ): Command | undefined {
    const { clusters, selector } = this.#operation
    const given = ['clusters', 'selector'].filter((name) => Object.hasOwn(this.#operation, name))
    if (given.length !== 1) return this.#wrongTargets(given, ['clusters', 'selector'])
    const place = { path: `${this.#path}/${given[0]}`, operation: this.#path }
    const spread = (targets: Targets): Command => ({ op: 'for_clusters', targets, command, ...place })
    if (clusters !== undefined) return spread({ ids: clusters as readonly string[] })
    // Whether it may name states is decided with the write: a preview may.
    const parsed = parseSelector(this.#types, String(selector), {
      status: UNREAD_STATUS,
      version: servedVersions(this.#types),
    })
    if (!parsed.ok) return this.#wrong('/selector', parsed.message)
    return spread({ selector: parsed.selector.text, allowEmpty: this.#allowEmpty, ...(having && { having }) })
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
