// Referential integrity: what a document names exists, is named once and makes no cycle; DNS names are unique.

import { getOrSet } from '../../base/get-or-set.ts'
import { isObject, pointer } from '../../base/json.ts'
import {
  type Detail,
  fail,
  invalid,
  MAX_DETAILS,
  type ReasonOf,
  type Result,
  succeed,
} from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import { type Draft, type Origin, pointerTo } from '../documents/draft.ts'
import { unknownDocument } from '../documents/find-document.ts'
import {
  type DeliveredType,
  type Document,
  idsIn,
  type ResourceType,
  referencesOf,
  type Types,
} from '../types/resource-type.ts'
import { MissingDependencies } from './missing-dependencies.ts'

const MAX_NAMED_USERS = 20

/** What is wrong at a place, and the reason for programs. */
interface Finding extends Detail {
  readonly reason: ReasonOf<'validation_error'>
}

/** Checks everything that the draft touched as it would stand in the end; returns the warnings. */
export function* checkIntegrity(types: Types, draft: Draft): Steps<Result<string[]>> {
  const details: Detail[] = []
  const reasons = new Set<Finding['reason']>()
  const missing = new MissingDependencies(types, draft)
  const removed = new Map<string, Set<string>>()
  for (const { type: name, id, before, after, origins } of draft.touched()) {
    yield
    const type = types.get(name)
    if (!type) continue
    if (!after || after.deleted) {
      getOrSet(removed, name, () => new Set()).add(id)
      continue
    }
    const { document } = after
    const reason = before ? undefined : type.reserved.get(id)
    if (reason !== undefined) {
      details.push({ path: pointerTo(origins, '/id'), message: `is reserved: ${reason}; choose another id` })
      reasons.add('reserved_id')
    }
    const isCluster = type === types.cluster.type
    const holder = isCluster ? draft.dnsHolder(String(document[types.cluster.dns]), id) : undefined
    if (holder) return dnsTaken(types, document, holder.id, origins)
    if (isCluster) missing.add(document, before?.deleted ? undefined : before?.document)
    const found = isCluster
      ? checkAssignments(types, draft, document, before?.deleted ? undefined : before?.document)
      : checkReferences(types, draft, type, document)
    for (const { path, message, reason } of found) {
      reasons.add(reason)
      const isShown = details.length < MAX_DETAILS
      details.push({ path: isShown ? pointerTo(origins, path) : path, message })
    }
  }
  if (details.length > 0) return invalid(details, reasons.size === 1 ? [...reasons][0] : undefined)
  for (const [name, ids] of removed) {
    const inUse = yield* checkUnused(types, draft, types.get(name) as ResourceType, ids)
    if (!inUse.ok) return inUse
  }
  return succeed(missing.warnings())
}

function dnsTaken(
  types: Types,
  document: Document,
  holder: string,
  origins: readonly Origin[],
): Result<never> {
  const { dns, type } = types.cluster
  const message = `"${document[dns]}" is the DNS name of ${type.singular} "${holder}" already: choose another`
  return fail({
    code: 'conflict',
    reason: 'dns_taken',
    message,
    details: [{ path: pointerTo(origins, pointer('', dns)), message }],
  })
}

function checkAssignments(
  types: Types,
  draft: Draft,
  cluster: Document,
  before: Document | undefined,
): Finding[] {
  const details: Finding[] = []
  for (const type of types.delivered) {
    if (before && isUntouched(types, draft, type, cluster, before)) continue
    const at = pointer('', type.delivery.assignedBy)
    const seen = new Set<string>()
    referencesOf(cluster, type.delivery).forEach(({ id }, i) => {
      const isDuplicate = seen.has(id)
      const message = isDuplicate
        ? `is a duplicate: ${type.singular} "${id}" is assigned already`
        : draft.get(type.name, id) === undefined &&
          // A document that this write removes is reported as in use instead.
          !draft.has(type.name, id) &&
          `names an unknown ${type.singular} "${id}": create it first`
      const reason = isDuplicate ? 'duplicate_reference' : 'unknown_reference'
      if (message) details.push({ path: `${at}/${i}/id`, message, reason })
      seen.add(id)
    })
    const patches = type.delivery.patches ? cluster[types.cluster.patches] : undefined
    if (!isObject(patches)) continue
    for (const id of Object.keys(patches).filter((id) => !seen.has(id))) {
      const isKnown = draft.get(type.name, id) !== undefined
      const message = isKnown
        ? `patches a ${type.singular} that is not assigned to the cluster: assign "${id}" first`
        : `patches what is not there: ${details.length < MAX_DETAILS ? unknownDocument(draft, type, id) : `no ${type.singular} "${id}"`}`
      const reason = isKnown ? 'not_assigned' : 'unknown_reference'
      details.push({ path: pointer(pointer('', types.cluster.patches), id), message, reason })
    }
  }
  return details
}

/** A cheap check by identity: what a live cluster names is there, as long as the write touches neither side of it. */
function isUntouched(
  { cluster: { patches } }: Types,
  draft: Draft,
  { name, delivery }: DeliveredType,
  cluster: Document,
  before: Document,
): boolean {
  return (
    cluster[delivery.assignedBy] === before[delivery.assignedBy] &&
    (!delivery.patches || cluster[patches] === before[patches]) &&
    draft.laid(name).size === 0
  )
}

function checkReferences(types: Types, draft: Draft, type: ResourceType, document: Document): Finding[] {
  return type.references.flatMap(({ field, type: target }) => {
    const value = document[field]
    const singular = types.get(target)?.singular
    const named = new Set<string>()
    const findCycle = cycleFinder(draft, type.name, field, document.id)
    return idsIn(value).flatMap((id, i): Finding[] => {
      const at = Array.isArray(value) ? `${pointer('', field)}/${i}` : pointer('', field)
      if (named.has(id))
        return [{ path: at, message: `names ${singular} "${id}" twice`, reason: 'duplicate_reference' }]
      named.add(id)
      if (!draft.get(target, id))
        return [
          {
            path: at,
            message: `names an unknown ${singular} "${id}": create it first`,
            reason: 'unknown_reference',
          },
        ]
      const cycle = target === type.name && findCycle(id)
      return cycle
        ? [{ path: at, message: `makes a cycle: ${cycle.join(' → ')}`, reason: 'dependency_cycle' }]
        : []
    })
  })
}

/** Cycles reported for one document: more of them say nothing new. */
const MAX_CYCLES = 20

/** Finds the way from a document back to `start` along a reference field; dead ends are searched once. */
function cycleFinder(
  draft: Draft,
  type: string,
  field: string,
  start: string,
): (from: string) => string[] | undefined {
  const deadEnds = new Set<string>()
  let found = 0
  return (from) => {
    if (found >= MAX_CYCLES) return undefined
    const cameFrom = new Map<string, string>([[from, start]])
    const queue = [from]
    for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
      if (id === start) {
        found++
        const way = [id]
        for (let at = cameFrom.get(id); at !== undefined && at !== start; at = cameFrom.get(at)) way.push(at)
        return [...way, start].reverse()
      }
      if (deadEnds.has(id)) continue
      for (const next of idsIn(draft.get(type, id)?.document[field])) {
        if (cameFrom.has(next)) continue
        cameFrom.set(next, id)
        queue.push(next)
      }
    }
    for (const id of cameFrom.keys()) deadEnds.add(id)
    return undefined
  }
}

/** Refuses to remove documents that others refer to, and names those. */
function* checkUnused(
  types: Types,
  draft: Draft,
  type: ResourceType,
  ids: ReadonlySet<string>,
): Steps<Result<void>> {
  const users: Detail[] = []
  let count = 0
  const use = (path: string, message: string): void => {
    if (count++ < MAX_NAMED_USERS) users.push({ path, message })
  }
  const { delivery } = type
  if (delivery) {
    const clusters = types.cluster.type
    for (const { id: cluster, document } of draft.all(clusters.name)) {
      yield
      const used = referencesOf(document, delivery).find(({ id }) => ids.has(id))
      if (used) use(`/${clusters.name}/${cluster}`, `is assigned "${used.id}"`)
    }
  }
  for (const user of types.all) {
    for (const { field } of user.references.filter((reference) => reference.type === type.name)) {
      for (const { id: definition, document } of draft.all(user.name)) {
        yield
        const used = idsIn(document[field]).find((id) => ids.has(id))
        if (used) use(`/${user.name}/${definition}`, `names "${used}" in ${field}`)
      }
    }
  }
  if (count === 0) return succeed(undefined)
  const named = users.map(({ path }) => path.slice(1)).join(', ')
  const more = count > users.length ? ` and ${count - users.length} more` : ''
  const what = `${type.singular} "${[...ids].slice(0, MAX_NAMED_USERS).join('", "')}"`
  const message = `${what} is in use by ${count}: ${named}${more}; unassign it first or delete with cascade`
  return fail({ code: 'conflict', reason: 'in_use', message, details: users })
}
