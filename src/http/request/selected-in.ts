// The clusters that `?selector` chooses, for routes that go through the present fleet.
import { invalid, type Result, succeed } from '../../base/problem.ts'
import { parseSelector, type Selector } from '../../domain/access/selector.ts'
import { servedVersions } from '../../domain/delivery/served-version.ts'
import type { Service } from '../service.ts'
import type { Query } from './parameters.ts'

/** Whether a cluster is one of those that `?selector` chooses; without one all are. */
export function selectedIn({ types, engine }: Service, { selector }: Query): Result<Selector['matches']> {
  if (selector === undefined) return succeed(() => true)
  const { status } = engine.fleet
  const parsed = parseSelector(types, selector, { status, version: servedVersions(types) })
  if (!parsed.ok) return invalid([{ path: '?selector', message: parsed.message }])
  return succeed(parsed.selector.matches)
}
