// What the keys of a selector stand for: how each is read from a cluster, and which values it takes.
import { isObject, own } from '../../base/json.ts'
import { CONTACTS, DELIVERIES, HEALTHS, type StatusRow } from '../status/status-words.ts'
import { type DeliveredType, type Document, referencesOf } from '../types/resource-type.ts'

export type Test = (cluster: Document) => boolean

/** How one key is read from a cluster: whether it has a value there, and whether that is one of a list. */
export interface Subject {
  has(cluster: Document): boolean
  isOneOf(values: readonly string[]): Test
  /** Compares a cluster's value with another by size; NaN where either has no size. */
  compare(cluster: Document, value: string): number
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

function versionSubject(read: (cluster: Document) => string | undefined): Subject {
  const isVersion = (value: string): boolean => VERSION.test(value)
  return {
    ...valueSubject(read, (value) => value.replace(/^v(?=\d)/, '')),
    compare: (cluster, value) => compareVersions(read(cluster) ?? '', value),
    refuse: (value) => (isVersion(value) ? undefined : 'which is not a version such as 0.58.1'),
    sizes: 'a version such as 0.58.1',
    isSize: isVersion,
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

function valueSubject(
  read: (cluster: Document) => string | undefined,
  canonical: (value: string) => string = (value) => value,
): Subject {
  return {
    has: (cluster) => read(cluster) !== undefined,
    isOneOf(values) {
      const wanted = new Set(values.map(canonical))
      return (cluster) => {
        const known = read(cluster)
        return known !== undefined && wanted.has(canonical(known))
      }
    },
    compare: (cluster, value) => toWhole(read(cluster)) - Number(value),
    ...WHOLE_SIZES,
  }
}

function toWhole(text: string | undefined): number {
  return text !== undefined && WHOLE.test(text) ? Number(text) : Number.NaN
}
