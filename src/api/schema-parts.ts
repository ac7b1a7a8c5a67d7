// Parts of the schemas of what the service answers about the fleet.

export type Schema = Readonly<Record<string, unknown>>

export const TIME = { type: 'string', format: 'date-time', example: '2026-01-31T12:00:00.000Z' }
export const MAYBE_TIME = { ...TIME, type: ['string', 'null'] }
export const REVISION = { type: 'integer', minimum: 0 }
export const COUNT = { type: 'integer', minimum: 0 }
export const TEXT = { type: ['string', 'null'] }
export const CLUSTER = { type: 'string', example: 'prod-eu-01' }

/** With all properties, in this order. */
export function object(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: 'object', required: Object.keys(properties), properties }
}

export function maybe(schema: Schema): Schema {
  return { oneOf: [schema, { type: 'null' }] }
}

export function word(words: readonly string[]): Schema {
  return { type: 'string', enum: words }
}

export function described(schema: Schema, description: string): Schema {
  return { ...schema, description }
}
