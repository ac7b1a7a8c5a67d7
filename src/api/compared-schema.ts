// The difference of two moments on the wire.
import type { Impact } from '../domain/delivery/impact.ts'
import type { DescribedChange } from '../domain/documents/describe-change.ts'
import { ref } from './component-ref.ts'
import { COUNT, described, object, REVISION } from './schema-parts.ts'

export interface Compared {
  readonly from: number
  readonly to: number
  readonly change_count: number
  /** The first of them. */
  readonly changes: readonly DescribedChange[]
  readonly impact: Impact
}

export const COMPARED_SCHEMA = object({
  from: described(REVISION, 'The revision of the first moment.'),
  to: described(REVISION, 'The revision of the second moment.'),
  change_count: described(COUNT, 'How many documents differ.'),
  changes: { type: 'array', items: ref('change') },
  impact: ref('impact'),
})
