// The shape of a freeze's present state on the wire.
import type { SchemaObject } from '../base/json-schema.ts'

export interface FreezeStatus {
  readonly id: string
  /** Whether what it blocks may happen now. */
  readonly open: boolean
  /** While it is on: when it ends, null where no end is in sight. */
  readonly next_open: string | null
  /** While it is not on: when it begins, null where it never will. */
  readonly next_freeze: string | null
  /** How many live clusters it covers. */
  readonly clusters: number
}

const moment = (description: string): SchemaObject => ({
  type: ['string', 'null'],
  format: 'date-time',
  description,
})

export const FREEZE_STATUS_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['id', 'open', 'next_open', 'next_freeze', 'clusters'],
  properties: {
    id: { type: 'string' },
    open: { type: 'boolean', description: 'Whether what it blocks may happen now.' },
    next_open: moment('While it is on: when it ends. Null while it is not, and where no end is in sight.'),
    next_freeze: moment('While it is not on: when it begins. Null while it is, and where it never will.'),
    clusters: { type: 'integer', minimum: 0, description: 'How many live clusters it covers.' },
  },
}
