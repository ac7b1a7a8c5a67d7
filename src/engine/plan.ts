// A plan is a digest of changes: it tells whether a write still does what its preview showed.
import { createHash } from 'node:crypto'
import type { Command } from '../domain/command.ts'
import { type Decision, decide } from '../domain/decide.ts'
import { shown } from '../domain/describe-change.ts'
import { diffFields } from '../domain/diff.ts'
import { excerpts, type Json } from '../domain/json.ts'
import { type Detail, fail, type Result } from '../domain/problem.ts'
import type { Document, Types } from '../domain/resource-type.ts'
import type { Steps } from '../domain/steps.ts'
import { asToken, TOKENS } from '../domain/token.ts'
import type { Change, Entry } from '../domain/view.ts'
import type { Past } from './past.ts'

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

function keyOf({ type, id }: Change): string {
  return `${type}/${id}`
}

/** How far back to look for what a plan was made of, and for how long. */
const MAX_AGE = 50
const SEARCH_MS = 500
const MAX_DIFFERENCES = 20

interface Unplanned {
  readonly plan: string
  readonly commands: readonly Command[]
  /** What the commands do now. */
  readonly decision: Decision
}

/** Finds the revision at which the same commands did what the plan says, to tell what has come between. */
export async function refusePlan(
  types: Types,
  past: Past,
  head: number,
  { plan, commands, decision }: Unplanned,
): Promise<Result<never>> {
  const end = performance.now() + SEARCH_MS
  for (
    let revision = head - 1;
    revision >= Math.max(head - MAX_AGE, 0) && performance.now() < end;
    revision--
  ) {
    if (!(await past.resolve({ revision }, 'plan')).ok) break
    const previewed = await past.read(revision, undefined, function* (view) {
      const then = yield* decide(types, view, commands)
      return then.ok && (yield* planOf(then.value.changes)) === plan ? then.value.changes : undefined
    })
    if (previewed) {
      const why = `documents have changed since revision ${revision}, when it was made`
      return planChanged(why, differences(previewed, decision.changes))
    }
  }
  const now = decision.changes.slice(0, MAX_DIFFERENCES)
  return planChanged(
    'either the request is another one, or the plan is old',
    now.map((change) => ({ path: `/${keyOf(change)}`, message: 'would be changed now' })),
  )
}

function planChanged(why: string, details: readonly Detail[]): Result<never> {
  const message = `this write does not do what the plan says: ${why}. Preview it again`
  return fail({ code: 'plan_changed', message, details })
}

/** What a write does now that differs from what its preview showed. */
function differences(previewed: readonly Change[], now: readonly Change[]): Detail[] {
  const [then, today] = [byKey(previewed), byKey(now)]
  const gone = [...then.keys()].filter((key) => !today.has(key))
  const added = [...today.keys()].filter((key) => !then.has(key))
  const changed = [...then].flatMap(([key, planned]) => differencesOf(key, planned, today.get(key)))
  return [
    ...changed,
    ...gone.map((key) => ({ path: `/${key}`, message: 'was to be changed, and would not be now' })),
    ...added.map((key) => ({ path: `/${key}`, message: 'would be changed, and was not to be' })),
  ].slice(0, MAX_DIFFERENCES)
}

function byKey(changes: readonly Change[]): Map<string, Change> {
  return new Map(changes.map((change) => [keyOf(change), change]))
}

function differencesOf(key: string, planned: Change, current: Change | undefined): Detail[] {
  if (!current) return []
  const found = new Map<string, string>()
  for (const { path, before, after } of diffFields(
    contentOf(planned, planned.after),
    contentOf(current, current.after),
  )) {
    const [wanted, now] = excerpts(before, after)
    found.set(path, `would become ${now}, not ${wanted} as planned`)
  }
  for (const { path, before, after } of diffFields(
    contentOf(planned, planned.before),
    contentOf(current, current.before),
  )) {
    const [then, now] = excerpts(before, after)
    found.set(path, `was ${then} when the plan was made and is ${now} now`)
  }
  return [...found].map(([path, message]) => ({ path: `/${key}${path}`, message }))
}

function contentOf({ type }: Change, state: Pick<Entry, 'document' | 'deleted'> | undefined): Json {
  return state === undefined || state.deleted ? null : shown(type, state.document)
}
