// A plan is a digest of changes: it tells whether a write still does what its preview showed.
import { createHash } from 'node:crypto'
import { diffFields } from '../domain/diff.ts'
import { excerpt, type Json } from '../domain/json.ts'
import type { Detail } from '../domain/problem.ts'
import type { Steps } from '../domain/steps.ts'
import type { Change, Entry } from '../domain/view.ts'

/** Equal for equal changes, whatever order they were made in and whatever else is in the fleet. */
export function* planOf(changes: readonly Change[]): Steps<string> {
  const hash = createHash('sha256')
  for (const { type, id, before, after } of [...changes].sort(byPlace)) {
    yield
    hash.update(`${JSON.stringify([type, id, before?.deleted, after?.deleted])}\n`)
    hash.update(`${before ? JSON.stringify(before.document) : ''}\n${after?.json ?? ''}\n`)
  }
  return `sha256:${hash.digest('hex')}`
}

/** Mostly they are in order already, and sorting then costs next to nothing. */
function byPlace(a: Change, b: Change): number {
  if (a.type === b.type) return a.id < b.id ? -1 : 1
  return a.type < b.type ? -1 : 1
}

function keyOf({ type, id }: Change): string {
  return `${type}/${id}`
}

const MAX_DIFFERENCES = 20

/** What a write does now that differs from what its preview showed. */
export function differences(previewed: readonly Change[], now: readonly Change[]): Detail[] {
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
  for (const { path, before, after } of diffFields(contentOf(planned.after), contentOf(current.after))) {
    found.set(path, `would become ${excerpt(after)}, not ${excerpt(before)} as planned`)
  }
  for (const { path, before, after } of diffFields(contentOf(planned.before), contentOf(current.before))) {
    found.set(path, `was ${excerpt(before)} when the plan was made and is ${excerpt(after)} now`)
  }
  return [...found].map(([path, message]) => ({ path: `/${key}${path}`, message }))
}

function contentOf(state: Pick<Entry, 'document' | 'deleted'> | undefined): Json {
  return state === undefined || state.deleted ? null : state.document
}
