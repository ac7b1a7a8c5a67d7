// JSON values: their types, their equality, and what no document may hold.
import type { Detail } from './problem.ts'

export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [key: string]: Json
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A member that the object itself holds; never one of Object.prototype's. */
export function own(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined
}

/** Extends a JSON pointer (RFC 6901) by one step. */
export function pointer(base: string, key: string | number): string {
  return `${base}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** Equality by meaning: the order of an object's keys does not count. */
export function equalJson(a: Json, b: Json): boolean {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, i) => equalJson(item, b[i]))
  }
  if (!isObject(a) || !isObject(b)) return false
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length) return false
  return keys.every((key) => Object.hasOwn(b, key) && equalJson(a[key] as Json, b[key] as Json))
}

const MAX_EXCERPT = 100

/** A value as part of a sentence: a long one is cut. */
export function excerpt(value: Json | undefined): string {
  const text = JSON.stringify(value ?? null)
  return text.length > MAX_EXCERPT ? partOf(text, 0) : text
}

/** Characters that two values have in common and that are kept before their first difference. */
const LEAD = 30

/** Two different values in a sentence: long ones are cut so that the first difference shows. */
export function excerpts(a: Json | undefined, b: Json | undefined): readonly [string, string] {
  const texts = [JSON.stringify(a ?? null), JSON.stringify(b ?? null)] as const
  const [one, other] = texts
  if (one.length <= MAX_EXCERPT && other.length <= MAX_EXCERPT) return texts
  let same = 0
  while (same < one.length && one[same] === other[same]) same++
  const from = same < MAX_EXCERPT - LEAD ? 0 : same - LEAD
  return [partOf(one, from), partOf(other, from)]
}

/** Cuts between whole characters, never inside a surrogate pair. */
function partOf(text: string, from: number): string {
  const isHalf = (at: number): boolean => /^[\udc00-\udfff]/.test(text.slice(at, at + 1))
  const start = isHalf(from) ? from - 1 : from
  const end = isHalf(from + MAX_EXCERPT) ? from + MAX_EXCERPT - 1 : from + MAX_EXCERPT
  return `${start > 0 ? '…' : ''}${text.slice(start, end)}${end < text.length ? '…' : ''}`
}

export const FORBIDDEN_KEYS = new Set(['__proto__', 'constructor', 'prototype'])
export const MAX_DEPTH = 64

/** The length of a value's JSON, escapes aside, and how deep it is nested. Beyond `limit` it stops counting. */
export function measureJson(value: Json, limit: number): { readonly size: number; readonly depth: number } {
  let size = 0
  let depth = 0
  const visit = (part: Json, level: number): void => {
    if (level > depth) depth = level
    if (typeof part !== 'object' || part === null) size += leafLength(part)
    else {
      const keys = Array.isArray(part) ? undefined : Object.keys(part)
      const count = keys?.length ?? (part as readonly Json[]).length
      size += frameLength(count)
      for (let i = 0; i < count && size <= limit; i++) {
        const key = keys?.[i]
        size += key === undefined ? 0 : key.length + 3
        visit((part as JsonObject)[key ?? i] as Json, level + 1)
      }
    }
  }
  visit(value, 0)
  return { size, depth }
}

/** The length of the JSON of a value that holds no others, escapes aside. */
export function leafLength(value: Json): number {
  return typeof value === 'string' ? value.length + 2 : String(value).length
}

/** The length of the brackets and commas around so many members. */
export function frameLength(members: number): number {
  return Math.max(members, 1) + 1
}

/** Returns what is wrong with a parsed value whatever its schema: depth, numbers, reserved keys and invalid Unicode. */
export function checkJson(value: unknown, path = '', details: Detail[] = [], depth = 0): Detail[] {
  // Paths are made only where something is wrong: they would cost more than all checks.
  if (!isSound(value, depth)) findProblems(value, path, details, depth)
  return details
}

function isSound(value: unknown, depth: number): boolean {
  if (depth > MAX_DEPTH) return false
  if (typeof value === 'string') return textProblem(value) === undefined
  if (typeof value === 'number')
    return Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value)
  if (Array.isArray(value)) return value.every((item) => isSound(item, depth + 1))
  if (!isObject(value)) return true
  for (const key of Object.keys(value))
    if (FORBIDDEN_KEYS.has(key) || textProblem(key) !== undefined || !isSound(value[key], depth + 1))
      return false
  return true
}

function findProblems(value: unknown, path: string, details: Detail[], depth: number): void {
  if (depth > MAX_DEPTH) {
    details.push({ path, message: `is nested deeper than ${MAX_DEPTH} levels` })
  } else if (typeof value === 'string') {
    const problem = textProblem(value)
    if (problem) details.push({ path, message: problem })
  } else if (typeof value === 'number') {
    if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
      details.push({
        path,
        message: 'is an integer beyond 2^53, which loses digits on its way: send a string',
      })
    } else if (!Number.isFinite(value)) {
      details.push({ path, message: 'is too large for a number: send a string' })
    }
  } else if (Array.isArray(value)) {
    value.forEach((item, i) => {
      findProblems(item, pointer(path, i), details, depth + 1)
    })
  } else if (isObject(value)) {
    for (const [key, item] of Object.entries(value)) {
      const at = pointer(path, key)
      const problem = FORBIDDEN_KEYS.has(key) ? 'is a reserved key: use another name' : textProblem(key)
      if (problem) details.push({ path: at, message: problem })
      else findProblems(item, at, details, depth + 1)
    }
  }
}

function textProblem(text: string): string | undefined {
  if (text.includes('\0')) return 'holds a NUL character: remove it'
  if (!text.isWellFormed()) return 'holds half of a surrogate pair: send valid Unicode'
  return undefined
}
