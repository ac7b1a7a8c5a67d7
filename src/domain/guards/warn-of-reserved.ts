// Warns of assignments of a document with a reserved id, which may exist from before the id was reserved.

import { type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import type { Draft } from '../documents/draft.ts'
import { findReference, type Types } from '../types/resource-type.ts'
import { Remarks } from './remarks.ts'

export function* warnOfReserved(types: Types, draft: Draft): Steps<Result<string[]>> {
  const remarks = new Remarks()
  const reserving = types.delivered.filter(({ reserved }) => reserved.size > 0)
  for (const { type: name, id, before, after } of reserving.length > 0 ? draft.touched() : []) {
    yield
    if (name !== types.cluster.type.name || !after || after.deleted) continue
    for (const { delivery, reserved, singular } of reserving) {
      for (const [reservedId, reason] of reserved) {
        const had = before && !before.deleted && findReference(before.document, delivery, reservedId)
        if (had || !findReference(after.document, delivery, reservedId)) continue
        remarks.add(id, `${singular} "${reservedId}" has a reserved id: ${reason}`)
      }
    }
  }
  return succeed(remarks.lines())
}
