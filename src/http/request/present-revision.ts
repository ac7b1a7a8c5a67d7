// A revision of the log as lists and streams show it.
import type { Revision } from '../../api/wire-types.ts'
import { describeChange } from '../../domain/documents/describe-change.ts'
import type { Types } from '../../domain/types/resource-type.ts'
import type { RecordedRevision } from '../../engine/past.ts'

export function presentRevision(types: Types, { changes, ...revision }: RecordedRevision): Revision {
  return { ...revision, changes: changes.map((change) => describeChange(types, change)) }
}
