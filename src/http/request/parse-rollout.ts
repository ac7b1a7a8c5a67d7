// What a write says about its rollout: a strategy by name, or waves of its own.
import { isObject, type Json, type JsonObject, own, pointer } from '../../base/json.ts'
import { type Detail, invalid, type Result, succeed } from '../../base/problem.ts'
import { unknownDocument } from '../../domain/documents/find-document.ts'
import { below } from '../../domain/documents/parse-document.ts'
import type { Strategy } from '../../domain/rollouts/rollout.ts'
import {
  asStrategy,
  checkStrategy,
  DEFAULT_STRATEGY,
  DEFAULT_STRATEGY_ID,
  STRATEGIES,
} from '../../domain/rollouts/strategy.ts'
import type { Document } from '../../domain/types/resource-type.ts'
import type { RolloutOptions } from '../../engine/write-options.ts'
import type { RegisteredType } from '../../registry/build-types.ts'
import type { Service } from '../service.ts'

/** Where the request came from: the field of a body, or the parameter of a URL. */
interface Place {
  readonly path: string
  readonly operations: readonly Json[]
}

/** What a rollout in a body may have. */
const FIELDS: readonly string[] = [
  'strategy',
  'waves',
  'on_failure',
  'bake_s',
  'stragglers',
  'unmatched',
  'supersedes',
]

/** A strategy by its name. */
function findStrategy(
  { engine, types }: Pick<Service, 'engine' | 'types'>,
  id: string,
  path: string,
): Result<Strategy> {
  const type = types.get(STRATEGIES)
  const found = engine.state.get(STRATEGIES, id)
  if (found) return succeed(asStrategy(found.document))
  if (id === DEFAULT_STRATEGY_ID) return succeed(DEFAULT_STRATEGY)
  const message = type ? unknownDocument(engine.state, type, id) : `no strategy "${id}"`
  return invalid([{ path, message: `names ${message}` }], 'unknown_reference')
}

/** The rollout of a body: `{"strategy": "default"}`, or `{"waves": […]}`; what else a strategy has replaces its own. */
export function parseRollout(
  service: Pick<Service, 'engine' | 'types'>,
  given: Json,
  { path, operations }: Place,
): Result<RolloutOptions> {
  if (!isObject(given)) return invalid([{ path, message: 'must be an object with a strategy or with waves' }])
  const { strategy, supersedes, ...spec } = given
  const details: Detail[] = Object.keys(given)
    .filter((name) => !FIELDS.includes(name))
    .map((name) => ({
      path: pointer(path, name),
      message: `is an unknown field: known are ${FIELDS.join(', ')}`,
    }))
  for (const [name, value] of Object.entries({ strategy, supersedes }))
    if (value !== undefined && typeof value !== 'string')
      details.push({ path: `${path}/${name}`, message: 'must be a text: an id' })
  if (strategy === undefined && spec.waves === undefined)
    details.push({ path, message: 'needs one of strategy and waves: how to go through the fleet' })
  if (strategy !== undefined && spec.waves !== undefined)
    details.push({ path, message: 'has strategy and waves: give only one of them' })
  if (details.length > 0) return invalid(details)
  const replaced = typeof supersedes === 'string' ? { supersedes } : {}
  if (typeof strategy === 'string') {
    const found = findStrategy(service, strategy, path.startsWith('?') ? path : `${path}/strategy`)
    if (!found.ok) return found
    const whole = { ...found.value, ...spec } as unknown as JsonObject
    const changed = Object.keys(spec).length === 0 ? found : parseSpec(service, whole, path)
    return changed.ok ? succeed({ strategy, spec: changed.value, path, operations, ...replaced }) : changed
  }
  const own = parseSpec(service, spec as JsonObject, path)
  return own.ok
    ? succeed({ strategy: undefined, spec: own.value, path: `${path}/waves`, operations, ...replaced })
    : own
}

function parseSpec({ types }: Pick<Service, 'types'>, spec: JsonObject, path: string): Result<Strategy> {
  const type = types.get(STRATEGIES) as RegisteredType
  // The shape is that of a strategy's document.
  const document = type.normalise({ id: 'inline', ...spec })
  const details = below(path, type.check(document))
  if (details.length > 0) return invalid(details)
  const strategy = asStrategy(document as Document)
  const wrong = checkStrategy(types, strategy, path)
  return wrong.length > 0 ? invalid(wrong) : succeed(strategy)
}

/** The operations of a batch as they were sent, or the request itself in their form. */
export function operationsOf(body: Json | undefined): readonly Json[] {
  const operations = isObject(body) ? own(body, 'operations') : undefined
  return Array.isArray(operations) ? operations : []
}
