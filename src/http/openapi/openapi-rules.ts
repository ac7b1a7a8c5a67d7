// What no flat schema says: which fields go together. Under `if`, `then` and `else`, where generators do not look, a
// request stays one plain type in the clients that they make.
import type { Node } from './openapi-operation.ts'

export interface Case {
  /** The values of the field that the case is for. */
  readonly values: readonly string[]
  readonly rule: Node
}

// biome-ignore-start lint/suspicious/noThenProperty: a keyword of JSON Schema
/** A rule for each value of a field; the last one is for all others. */
export function byValue(field: string, [first, ...rest]: readonly Case[]): Node {
  if (!first) return {}
  if (rest.length === 0) return always(first.rule)
  const condition = { required: [field], ...holds({ [field]: { enum: first.values } }) }
  return { if: condition, then: first.rule, else: byValue(field, rest) }
}

export function always(rule: Node): Node {
  return { if: {}, then: rule }
}
// biome-ignore-end lint/suspicious/noThenProperty: a keyword of JSON Schema

/** Exactly one of the fields. */
export function oneOfFields(names: readonly string[]): Node {
  return { oneOf: names.map((name) => needs(name)) }
}

/** That a field is there. */
export function needs(...names: string[]): Node {
  return { required: names, ...holds(Object.fromEntries(names.map((name) => [name, {}]))) }
}

/** That fields are not there. */
export function lacks(...names: string[]): Node {
  return holds(Object.fromEntries(names.map((name) => [name, { not: {} }])))
}

/** What some of the fields are; the others are as they may. */
export function holds(properties: Readonly<Record<string, Node>>): Node {
  return { properties, additionalProperties: true }
}

/** All of the rules. */
export function every(...rules: readonly Node[]): Node {
  const told = rules.filter((rule) => Object.keys(rule).length > 0)
  return told.length > 1 ? { allOf: told } : (told[0] ?? {})
}
