// The operation of a batch that changes all clusters which a filter leaves, from what somebody typed.
import type { Noun } from '../../../src/api/noun.ts'
import { isObject, type Json, type JsonObject } from '../../../src/base/json.ts'
import { STATUS_KEYS } from '../../../src/domain/access/selector-subjects.ts'
import type { FleetFilter } from '../../api/queries.ts'
import type { HoldInput } from '../../parts/hold-fields.tsx'
import { parseJsonText } from '../../parts/json-box.tsx'
import { untilOf } from '../../parts/spans.ts'

/** More of them can only be named by a selector. */
export const MAX_NAMED = 5000

export const BULK_KINDS = {
  labels: 'Labels',
  values: 'Values',
  assign: 'Assign',
  unassign: 'Unassign',
  fields: 'Fields',
  hold: 'Hold',
  release: 'Release',
  delete: 'Delete',
} as const
export type BulkKind = keyof typeof BULK_KINDS

export type Target = { readonly selector: string } | { readonly clusters: readonly string[] }

/**
 * The selector that chooses what the filter leaves; undefined where none may: states change by themselves, so writes
 * are not chosen by them, and a part of a name is no selector.
 */
export function selectorOf(filter: FleetFilter): string | undefined {
  const { q, contact, delivery, health, selector, environment } = filter
  const usesStates = STATUS_KEYS.some((key) => new RegExp(`\\b${key}\\b`).test(selector ?? ''))
  if (q || contact || delivery || health || usesStates) return undefined
  return [selector, environment && `environment=${environment}`].filter(Boolean).join(',') || undefined
}

export interface BulkInput extends HoldInput {
  readonly kind: BulkKind
  /** As for kubectl: `tier=gold zone-`. */
  readonly labels: string
  readonly component: string
  /** What is assigned, or taken away: its type and its id. */
  readonly type: string
  readonly id: string
  /** JSON, for `values`, `fields` and the overrides of `assign`. */
  readonly json: string
}

type Made =
  | { readonly ok: true; readonly operation: JsonObject }
  | { readonly ok: false; readonly message: string }

export function bulkOperation(
  type: Noun,
  { kind, labels, component, type: assigned, id, reason, hours, json }: BulkInput,
  target: Target,
): Made {
  const aim = target as unknown as JsonObject
  const patch = (fields: Json): Made => ({
    ok: true,
    operation: { op: 'patch', type: type.name, ...aim, patch: fields },
  })
  if (kind === 'delete') return { ok: true, operation: { op: 'delete', type: type.name, ...aim } }
  if (kind === 'release') return { ok: true, operation: { op: kind, ...aim } }
  if (kind === 'hold') {
    if (reason.trim() === '') return { ok: false, message: 'needs a reason' }
    const until = untilOf(hours)
    const end = until === undefined ? {} : { until }
    return { ok: true, operation: { op: kind, reason: reason.trim(), ...end, ...aim } }
  }
  if (kind === 'labels') {
    const parsed = parseLabels(labels)
    return typeof parsed === 'string'
      ? { ok: false, message: parsed }
      : patch({ [type.cluster?.labels ?? 'labels']: parsed })
  }
  if (kind === 'unassign' || kind === 'assign') {
    if (assigned === '' || id.trim() === '') return { ok: false, message: 'names nothing to assign yet' }
    if (kind === 'unassign')
      return { ok: true, operation: { op: kind, type: assigned, id: id.trim(), ...aim } }
  }
  const parsed = parseJsonText(json)
  if (!parsed.ok) return parsed
  // Clusters that have it already keep their overrides: `ensure` changes the named ones alone.
  if (kind === 'assign' && isObject(parsed.value)) {
    const ref = { ...parsed.value, id: id.trim() }
    return { ok: true, operation: { op: kind, type: assigned, ref, ensure: true, ...aim } }
  }
  if (!isObject(parsed.value) || Object.keys(parsed.value).length === 0)
    return { ok: false, message: 'names nothing to change yet' }
  if (kind === 'fields') return patch(parsed.value)
  if (component.trim() === '') return { ok: false, message: 'needs the name of a component' }
  return {
    ok: true,
    operation: { op: 'patch_values', component: component.trim(), values: parsed.value, ...aim },
  }
}

/** Null removes a label. */
function parseLabels(text: string): Readonly<Record<string, string | null>> | string {
  const words = text.split(/[\s,]+/).filter(Boolean)
  if (words.length === 0) return 'names no label yet'
  const labels: Record<string, string | null> = {}
  for (const word of words) {
    const [, name = '', value] = /^([^=]+)=(.*)$/.exec(word) ?? []
    if (value !== undefined) labels[name] = value
    else if (/^[^=]+-$/.test(word)) labels[word.slice(0, -1)] = null
    else return `${word} is neither name=value nor name-`
  }
  return labels
}
