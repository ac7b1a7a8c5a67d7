// What differs between two moments, in lines for people.
import type { Compared } from '../../api/compared-schema.ts'
import { count } from '../../base/sentences.ts'
import { describeChanges } from './change-report.ts'
import type { ReportLook } from './field-report.ts'
import { describeImpact } from './impact-report.ts'

export function describeCompared(look: ReportLook, compared: Compared): string {
  const { from, to, changes, change_count, impact } = compared
  if (change_count === 0 && impact.clusters === 0) return ''
  const title = look.paint('bold', `revision ${from} → ${to}: ${count(change_count, 'document')}`)
  return `${title}\n${describeChanges(look, changes, change_count)}${describeImpact(look, impact)}`
}
