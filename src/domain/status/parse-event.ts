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
  /** The component, of an event about its release or its source. */
  readonly component: string | undefined
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
export const MAX_REASON = 100
export const MAX_MESSAGE = 1000

/** Returns undefined for events that say nothing of health; a payload may have any shape. */
export function parseEvent(types: Types, payload: JsonObject): FluxEvent | undefined {
  const involved = payload.involvedObject
  if (!isObject(involved)) return undefined
  const [kind, name] = [textOf(involved.kind, 64), textOf(involved.name, 253)]
  const reason = textOf(payload.reason, MAX_REASON)
  if (kind === '' || name === '' || NEUTRAL.test(reason)) return undefined
  const metadata = isObject(payload.metadata) ? payload.metadata : {}
  const endpoint =
    kind === 'ResourceSet' ? endpointOf(types, name, annotated(metadata, 'endpoint')) : undefined
  const component = componentOf(kind, name, annotated(metadata, 'component'))
  if (endpoint === undefined && component === undefined) return undefined
  return {
    object: `${kind}/${name}`,
    endpoint,
    component,
    isRelease: RELEASES.includes(kind),
    verdict: payload.severity === 'error' ? 'failed' : 'succeeded',
    mark: parseHex(annotated(metadata, 'digest')),
    reason,
    message: textOf(payload.message, MAX_MESSAGE),
  }
}

/** A text on one line, well-formed and without control characters, cut off where it is too long. */
export function textOf(value: Json | undefined, max: number): string {
  if (typeof value !== 'string') return ''
  return value
    .slice(0, max * 4)
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
    .slice(0, max)
    .toWellFormed()
}

/**
 * Returns the value of an annotation `event.toolkit.fluxcd.io/<name>`, which arrives with the prefix of one controller or of
 * none; empty without it.
 */
function annotated(metadata: JsonObject, name: string): string {
  const key = Object.keys(metadata).find((each) => each === name || each.endsWith(`/${name}`))
  return key === undefined ? '' : textOf(metadata[key], 253)
}

/** Our bundles say it; other ResourceSets are named after their endpoint. */
function endpointOf(types: Types, name: string, said: string): string | undefined {
  return [said, name].find((endpoint) => types.byEndpoint(endpoint))
}

/** Our templates say it; Flux names charts after the namespace and the release. */
function componentOf(kind: string, name: string, said: string): string | undefined {
  if (RELEASES.includes(kind)) return name
  if (!SOURCES.includes(kind)) return undefined
  return said || (kind === 'HelmChart' ? name.replace(/^flux-system-/, '') : name)
}
