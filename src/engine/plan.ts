// A plan is a digest of changes: it tells whether a write still does what its preview showed.
import { createHash } from 'node:crypto'
import { type Detail, fail, type Result } from '../base/problem.ts'
import type { Steps } from '../base/steps.ts'
import { asToken, TOKENS } from '../domain/access/token.ts'
import type { Change } from '../domain/documents/view.ts'
import type { Document } from '../domain/types/resource-type.ts'

/** Equal for equal changes, whatever order they were made in and whatever else is in the fleet. */
export function* planOf(changes: readonly Change[]): Steps<string> {
  const hash = createHash('sha256')
  for (const { type, id, before, after } of [...changes].sort(byPlace)) {
    yield
    hash.update(`${JSON.stringify([type, id, before?.deleted, after?.deleted])}\n`)
    const is = after && type === TOKENS ? JSON.stringify(asked(after.document)) : after?.json
    hash.update(`${before ? JSON.stringify(before.document) : ''}\n${is ?? ''}\n`)
  }
  return `sha256:${hash.digest('hex')}`
}

/** Of a token, what was asked for: its secret and its times are others every time. */
function asked(document: Document): object {
  const { id, name, role, cluster, selector, types, expires_at } = asToken(document)
  return { id, name, role, cluster, selector, types, expires_at }
}

/** Mostly they are in order already, and sorting then costs next to nothing. */
function byPlace(a: Change, b: Change): number {
  if (a.type === b.type) return a.id < b.id ? -1 : 1
  return a.type < b.type ? -1 : 1
}

const MAX_TOLD = 20

/** Says what would happen now, and since when: at once, for other writes wait for this one. */
export function refusePlan(changes: readonly Change[]): Result<never> {
  const now = changes.length === 0 ? ': it would change nothing now' : ''
  return fail({
    code: 'plan_changed',
    reason: 'plan_changed',
    message: `this write does not do what the plan says${now}. Documents have changed since it was made, or the request is another one: preview it again`,
    details: changes.slice(0, MAX_TOLD).map(describe),
  })
}

function describe({ type, id, before, after }: Change): Detail {
  const removed = !after || after.deleted
  const what = removed ? 'deleted' : !before || before.deleted ? 'created' : 'changed'
  const since = before ? `, and was last changed by revision ${before.revision}` : ''
  return { path: `/${type}/${id}`, message: `would be ${what} now${since}` }
}
