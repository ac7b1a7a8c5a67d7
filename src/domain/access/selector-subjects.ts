// What the keys of a selector stand for: how each is read from a cluster, and which values it takes.
import { isObject, own } from '../../base/json.ts'
import type { View } from '../documents/view.ts'
import { CONTACTS, DELIVERIES, HEALTHS, type StatusRow } from '../status/status-words.ts'
import { type DeliveredType, type Document, overriddenFields, referencesOf } from '../types/resource-type.ts'

/** Of a cluster, in the view that it is from where the key asks for more than its document. */
export type Test = (cluster: Document, view?: View) => boolean

/** How one key is read from a cluster: whether it has a value there, and whether that is one of a list. */
export interface Subject {
  readonly has: Test
  isOneOf(values: readonly string[]): Test
  /** Compares a cluster's value with another by size; NaN where either has no size. */
  compare(cluster: Document, value: string, view?: View): number
  /** What is wrong with a value that no cluster could have; undefined when nothing is. */
  refuse?(value: string): string | undefined
  /** What a comparison by size has to be with. */
  readonly sizes: string
  isSize(value: string): boolean
  /** Every cluster has a value, so a question for it alone says nothing; nor has it a size. */
  readonly isWord?: boolean
}

/** Reads the status of clusters, which changes by itself. */
export interface StatusReader {
  /** The states of a cluster of the present; undefined when there is no such cluster. */
  rowOf(cluster: string): StatusRow | undefined
  operatorVersion(cluster: string): string | undefined
}

/** For selectors that are only checked: none of their questions is asked. */
export const UNREAD_STATUS: StatusReader = { rowOf: () => undefined, operatorVersion: () => undefined }

const WORDS: Readonly<Record<string, readonly string[]>> = {
  contact: CONTACTS,
  delivery: DELIVERIES,
  health: HEALTHS,
}
const OPERATOR_VERSION = 'operator_version'
export const STATUS_KEYS: readonly string[] = [...Object.keys(WORDS), OPERATOR_VERSION]

const WHOLE = /^-?\d+$/
const WHOLE_SIZES = { sizes: 'a whole number', isSize: (value: string): boolean => WHOLE.test(value) }

export function fieldSubject(name: string, canonical: ((value: string) => string) | undefined): Subject {
  return valueSubject((cluster) => {
    const value = cluster[name]
    return value === undefined ? undefined : String(value)
  }, canonical)
}

export function labelSubject(property: string | undefined, key: string, values: RegExp): Subject {
  const subject = valueSubject((cluster) => {
    const labels = property === undefined ? undefined : cluster[property]
    const value = isObject(labels) ? own(labels, key) : undefined
    return value === undefined ? undefined : String(value)
  })
  return { ...subject, refuse: (value) => (values.test(value) ? undefined : 'which is not a label value') }
}

export function usesSubject({ delivery }: DeliveredType): Subject {
  return {
    has: (cluster) => referencesOf(cluster, delivery).length > 0,
    isOneOf(values) {
      const ids = new Set(values)
      return (cluster) => referencesOf(cluster, delivery).some(({ id }) => ids.has(id))
    },
    compare: (cluster, value) => referencesOf(cluster, delivery).length - Number(value),
    ...WHOLE_SIZES,
  }
}

/** What a cluster's own document says instead of the catalog: the ids of those that it overrides a field of. */
export function overridesSubject({ delivery }: DeliveredType): Subject {
  const overridden = (cluster: Document): readonly string[] =>
    referencesOf(cluster, delivery).flatMap((reference) =>
      overriddenFields(delivery, reference).length > 0 ? [reference.id] : [],
    )
  return {
    has: (cluster) => overridden(cluster).length > 0,
    isOneOf(values) {
      const ids = new Set(values)
      return (cluster) => overridden(cluster).some((id) => ids.has(id))
    },
    compare: (cluster, value) => overridden(cluster).length - Number(value),
    ...WHOLE_SIZES,
  }
}

/** Reads the version of a definition that a cluster is served; undefined where it is not to have it, or it has no version. */
export type ReadVersion = (view: View, cluster: string, id: string) => string | undefined

export function servedVersionSubject(read: ReadVersion, id: string): Subject {
  return sizedByVersion((cluster, view) => view && read(view, cluster.id, id))
}

/** Of one of the `STATUS_KEYS`. */
export function statusSubject(key: string, status: StatusReader): Subject {
  if (key === OPERATOR_VERSION) return versionSubject((cluster) => status.operatorVersion(String(cluster.id)))
  const words = WORDS[key] ?? []
  const subject = valueSubject((cluster) => status.rowOf(String(cluster.id))?.[key as keyof StatusRow])
  const refuse = (value: string): string | undefined =>
    words.includes(value) ? undefined : `which is unknown: known are ${words.join(', ')}`
  return { ...subject, refuse, isWord: true }
}

const VERSION = /^v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(-[-.\w]+)?$/

function versionSubject(read: Read): Subject {
  return {
    ...sizedByVersion(read, (value) => value.replace(/^v(?=\d)/, '')),
    refuse: (value) => (VERSION.test(value) ? undefined : 'which is not a version such as 0.58.1'),
  }
}

/** Any text is a value; those that are versions have an order. */
function sizedByVersion(read: Read, canonical?: (value: string) => string): Subject {
  return {
    ...valueSubject(read, canonical),
    compare: (cluster, value, view) => compareVersions(read(cluster, view) ?? '', value),
    sizes: 'a version such as 0.58.1',
    isSize: (value) => VERSION.test(value),
  }
}

/** By their numbers, where one that is left out is 0; a pre-release comes before its release. */
function compareVersions(one: string, other: string): number {
  const [a, b] = [VERSION.exec(one.split('+')[0] ?? ''), VERSION.exec(other)]
  if (!a || !b) return Number.NaN
  for (const i of [1, 2, 3]) {
    const difference = Number(a[i] ?? 0) - Number(b[i] ?? 0)
    if (difference !== 0) return difference
  }
  return Number(b[4] !== undefined) - Number(a[4] !== undefined)
}

type Read = (cluster: Document, view?: View) => string | undefined

function valueSubject(read: Read, canonical: (value: string) => string = (value) => value): Subject {
  return {
    has: (cluster, view) => read(cluster, view) !== undefined,
    isOneOf(values) {
      const wanted = new Set(values.map(canonical))
      return (cluster, view) => {
        const known = read(cluster, view)
        return known !== undefined && wanted.has(canonical(known))
      }
    },
    compare: (cluster, value, view) => toWhole(read(cluster, view)) - Number(value),
    ...WHOLE_SIZES,
  }
}

function toWhole(text: string | undefined): number {
  return text !== undefined && WHOLE.test(text) ? Number(text) : Number.NaN
}
