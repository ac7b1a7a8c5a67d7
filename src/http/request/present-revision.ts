// How a revision of the log is shown, in lists and to those who watch.
import { describeChange } from '../../domain/documents/describe-change.ts'
import type { Types } from '../../domain/types/resource-type.ts'
import type { RecordedRevision } from '../../engine/past.ts'

export function presentRevision(types: Types, { changes, ...revision }: RecordedRevision) {
  return { ...revision, changes: changes.map((change) => describeChange(types, change)) }
}
