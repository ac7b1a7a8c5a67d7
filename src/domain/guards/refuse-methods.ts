// Changes that the methods of a type do not allow are refused, also those of a revert, a rollback or a cascade.
import { type Detail, MAX_DETAILS, type Problem } from '../../base/problem.ts'
import type { Change } from '../documents/view.ts'
import { type ResourceType, type Types, WRITE_METHODS, type WriteMethod } from '../types/resource-type.ts'
import { typesTouched } from '../types/types-touched.ts'

/** The methods that allow each kind of change: one of them is enough. */
const NEEDED = {
  made: ['post', 'put'],
  changed: ['put', 'patch'],
  deleted: ['delete'],
  restored: ['delete', 'post', 'put'],
} as const satisfies Record<string, readonly WriteMethod[]>

export function describeMethods({ name, methods }: Pick<ResourceType, 'name' | 'methods'>): string {
  return `the file of the type ${name} allows only ${['get', ...methods].join(', ')}`
}

/** An assignment is no change of the cluster's own fields: the methods of the cluster type do not limit it. */
export function refuseMethods(types: Types, changes: readonly Change[]): Problem | undefined {
  const limited = new Map(
    types.all.filter(({ methods }) => methods.size < WRITE_METHODS.length).map((type) => [type.name, type]),
  )
  if (limited.size === 0) return undefined
  const details: Detail[] = []
  for (const change of changes) {
    const type = limited.get(change.type)
    if (!type) continue
    const what = kindOf(change)
    if (NEEDED[what].some((method) => type.methods.has(method))) continue
    if (what === 'changed' && !typesTouched(types, change).includes(type.name)) continue
    const message = `would be ${what}, and ${describeMethods(type)}`
    details.push({ path: `/${type.name}/${change.id}`, message })
    if (details.length === MAX_DETAILS) break
  }
  const [first] = details
  const reason = 'not_allowed_by_type'
  return first && { code: 'conflict', reason, message: `${first.path} ${first.message}`, details }
}

function kindOf({ before, after }: Change): keyof typeof NEEDED {
  if (!after || after.deleted) return 'deleted'
  if (!before) return 'made'
  return before.deleted ? 'restored' : 'changed'
}
