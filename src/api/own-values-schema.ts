// What clusters set themselves, on the wire.
import type { Json } from '../base/json.ts'
import { OWN_KINDS, type OwnKind } from '../domain/delivery/own-values.ts'
import { CLUSTER, COUNT, described, MAYBE_TIME, object, TEXT, word } from './schema-parts.ts'

export interface ShownOwnValue {
  readonly cluster: string
  readonly environment: string | null
  readonly type: string
  readonly id: string
  readonly kind: OwnKind
  readonly field: string
  readonly value: Json
  readonly catalog: Json
  readonly redundant: boolean
  /** Who set it, where that was asked for; null where the log does not reach back that far. */
  readonly revision?: number | null
  readonly time?: string | null
  readonly actor?: string | null
  readonly message?: string | null
}

const VALUE = object({
  cluster: CLUSTER,
  environment: TEXT,
  type: { type: 'string' },
  id: { type: 'string' },
  kind: described(word(OWN_KINDS), 'override: a field of the definition; patch: a value for it.'),
  field: described({ type: 'string' }, 'A field of the definition, or the key of a patch.'),
  value: {},
  catalog: described({}, 'The value that the cluster would get without it; null where the catalog has none.'),
  redundant: described({ type: 'boolean' }, 'Whether the catalog says the same.'),
})

export const OWN_VALUE_SCHEMA = {
  ...VALUE,
  properties: {
    ...(VALUE.properties as object),
    revision: described({ type: ['integer', 'null'] }, 'With explain: the revision that set it.'),
    time: MAYBE_TIME,
    actor: TEXT,
    message: TEXT,
  },
}

export const KEPT_FIELD_SCHEMA = object({
  type: { type: 'string' },
  id: { type: 'string' },
  field: { type: 'string' },
  clusters: COUNT,
  examples: { type: 'array', items: { type: 'string' } },
})
