// Which value of a definition's field a cluster gets: its override, the catalog's value or a default.
import { type Json, type JsonObject, own } from '../../base/json.ts'
import type { Delivery, Document, ReadField, Reference } from '../types/resource-type.ts'

/** Returns a reader of the fields of a definition as a cluster gets them. */
export function readerOf(delivery: Delivery, definition: Document, reference: Reference): ReadField {
  return (field) => (field === 'id' ? definition.id : resolveField(delivery, definition, reference, field))
}

export function resolveField(
  delivery: Delivery,
  definition: Document,
  reference: Reference,
  field: string,
): Json | undefined {
  const holder = holderOf(delivery, definition, reference, field)
  return holder && own(holder, field)
}

/** Whose value counts: the reference's where it has one, else the definition's, else the type's default. */
export function holderOf(
  delivery: Delivery,
  definition: Document,
  reference: Reference,
  field: string,
): JsonObject | undefined {
  const { referenceDefaults, definitionDefaults, overrides } = delivery
  const hasValue = (holder: JsonObject): boolean => (own(holder, field) ?? null) !== null
  const referenced = Object.hasOwn(referenceDefaults, field) || overrides.includes(field)
  if (referenced && hasValue(reference)) return reference
  return [definition, referenceDefaults, definitionDefaults].find(hasValue)
}
