// An event of Flux's notification-controller: what it says of a component or of an endpoint's ResourceSet.
import { parseHex } from '../../base/digest.ts'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { Types } from '../types/resource-type.ts'
import type { AnswerMark } from './evidence.ts'

export interface FluxEvent {
  /** The object that it is about, as `HelmRelease/grafana`. */
  readonly object: string
  /** The endpoint, of an event about a ResourceSet. */
  readonly endpoint: string | undefined
  /** Ids that the component may have, by the object's name; empty of an event about a ResourceSet. */
  readonly components: readonly string[]
  /** Whether the object is what makes the component ready, and not only its source. */
  readonly isRelease: boolean
  readonly verdict: 'failed' | 'succeeded'
  /** The digest of the input, where the object says so. */
  readonly mark: AnswerMark
  readonly reason: string
  readonly message: string
}

const RELEASES = ['HelmRelease', 'Kustomization']
const SOURCES = ['HelmChart', 'HelmRepository', 'OCIRepository']
/** Neither a failure nor a success: something is under way, or Helm cleans up after a failure. */
const NEUTRAL = /^(?:Progressing|DependencyNotReady|UninstallSucceeded|RollbackSucceeded|HealthCheckCanceled)/
const MAX_REASON = 100
const MAX_MESSAGE = 1000

/** Returns undefined for events that say nothing of health; a payload may have any shape. */
export function parseEvent(types: Types, payload: JsonObject): FluxEvent | undefined {
  const involved = payload.involvedObject
  if (!isObject(involved)) return undefined
  const [kind, name] = [textOf(involved.kind, 64), textOf(involved.name, 253)]
  const reason = textOf(payload.reason, MAX_REASON)
  if (kind === '' || name === '' || NEUTRAL.test(reason)) return undefined
  const endpoint = kind === 'ResourceSet' ? endpointOf(types, name) : undefined
  const components = componentsOf(kind, name)
  if (endpoint === undefined && components.length === 0) return undefined
  return {
    object: `${kind}/${name}`,
    endpoint,
    components,
    isRelease: RELEASES.includes(kind),
    verdict: payload.severity === 'error' ? 'failed' : 'succeeded',
    mark: markIn(payload.metadata),
    reason,
    message: textOf(payload.message, MAX_MESSAGE),
  }
}

/** A text on one line, without control characters, cut off where it is too long. */
function textOf(value: Json | undefined, max: number): string {
  if (typeof value !== 'string') return ''
  return value
    .slice(0, max * 4)
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
    .slice(0, max)
}

/** A type may be made by several ResourceSets, each named after its endpoint. */
function endpointOf({ delivered }: Types, name: string): string | undefined {
  const endpoints = delivered.map(({ delivery }) => delivery.endpoint)
  const fits = endpoints.filter((endpoint) => name === endpoint || name.startsWith(`${endpoint}-`))
  return fits.sort((one, other) => other.length - one.length)[0]
}

/** Flux names charts after their namespace and release; our templates name sources after their content, too. */
function componentsOf(kind: string, name: string): string[] {
  if (RELEASES.includes(kind)) return [name]
  if (!SOURCES.includes(kind)) return []
  const own = kind === 'HelmChart' ? name.replace(/^flux-system-/, '') : name
  return [own, own.replace(/-[0-9a-f]{10}$/, '')]
}

/** The annotation `event.toolkit.fluxcd.io/digest`, which arrives with the prefix of one controller or of none. */
function markIn(metadata: Json | undefined): AnswerMark {
  if (!isObject(metadata)) return undefined
  const key = Object.keys(metadata).find((name) => name === 'digest' || name.endsWith('/digest'))
  const value = key === undefined ? undefined : metadata[key]
  return typeof value === 'string' ? parseHex(value) : undefined
}
