// Changes and what they mean for clusters, in lines for people.

import type { Preview } from '../../api/wire-types.ts'
import { diffFields } from '../../base/diff.ts'
import { type Json, pointer } from '../../base/json.ts'
import { count, firstOf } from '../../base/sentences.ts'
import type { KeptField } from '../../domain/delivery/own-values.ts'
import type { DescribedChange } from '../../domain/documents/describe-change.ts'
import { inFlagWords } from '../server/own-words.ts'
import { describeField, type ReportLook, single } from './field-report.ts'
import { describeImpact, NAMED, SHOWN } from './impact-report.ts'
import { describePlannedWaves } from './planned-waves.ts'
import { plain, type Style } from './terminal.ts'

const LOOKS: Record<DescribedChange['op'], readonly [mark: string, style: Style, done: string]> = {
  create: ['+', 'green', 'created'],
  restore: ['+', 'green', 'restored'],
  update: ['~', 'yellow', 'configured'],
  delete: ['-', 'red', 'deleted'],
  purge: ['-', 'red', 'purged'],
}

/** What happened to a document, as kubectl says it. */
export function doneTo(op: DescribedChange['op']): string {
  return LOOKS[op][2]
}

/** Types of the service's own: not their fields but the impact says what a change of them means. */
const KEPT = ['rollouts', 'rollout_plans', 'holds']

export function describePreview(look: ReportLook, preview: Preview): string {
  const { changes, change_count, impact, warnings, plan, kept_overrides = [] } = preview
  if (change_count === 0) return 'Nothing would change.\n'
  const visible = changes.filter(({ type }) => !KEPT.includes(type))
  return [
    describeChanges(look, visible, change_count - changes.length + visible.length),
    describeImpact(look, impact),
    describePlannedWaves(look, preview),
    ...kept_overrides.map((kept) => `${describeKept(kept)}\n`),
    ...warnings.map((warning) => `${look.paint('yellow', 'Warning:')} ${plain(inFlagWords(warning))}\n`),
    `Plan: ${plan}\n`,
  ].join('')
}

/** `2 clusters keep their own oci_tag of grafana: one, two`. */
function describeKept({ id, field, clusters, examples }: KeptField): string {
  const others = Array.from({ length: clusters - examples.length }, () => '')
  const who = firstOf([...examples, ...others].map(plain), examples.length)
  const keeps = clusters === 1 ? 'keeps its' : 'keep their'
  return `${count(clusters, 'cluster')} ${keeps} own ${field} of ${plain(id)}: ${who}`
}

export function describeChanges(
  look: ReportLook,
  changes: readonly DescribedChange[],
  total = changes.length,
): string {
  // Documents with the same change are one group; compared in full, since values that are cut may look the same.
  const groups = Map.groupBy(changes, (change) =>
    [change.op, change.type, ...fieldLines({ ...look, width: undefined }, change)].join('\n'),
  )
  const shown = [...groups.values()].slice(0, SHOWN)
  const lines = shown.flatMap((group) => {
    const [change] = group as [DescribedChange]
    const [mark, style] = LOOKS[change.op]
    const ids = group.map(({ id }) => plain(id))
    const head = look.paint(style, `${mark} ${change.type}/${firstOf(ids, NAMED)}`)
    return [head, ...fieldLines(look, change)]
  })
  const more = total - shown.reduce((sum, group) => sum + group.length, 0)
  const all = [...lines, ...(more > 0 ? [`… and ${count(more, 'more document')}`] : [])]
  return all.map((line) => `${line}\n`).join('')
}

/** Lines for the fields that differ; of a new document, for its fields. */
function fieldLines(look: ReportLook, { op, type, before, after }: DescribedChange): string[] {
  if (KEPT.includes(type)) return []
  if (op === 'create') {
    const fields = Object.entries(after ?? {}).filter(([name, value]) => name !== 'id' && !isEmpty(value))
    return fields.map(
      ([name, value]) => `    ${look.paint('green', plain(`${pointer('', name)}: ${single(look, value)}`))}`,
    )
  }
  if (op !== 'update') return []
  return diffFields(before ?? {}, after ?? {}).flatMap((field) => describeField(look, '    ', field))
}

function isEmpty(value: Json): boolean {
  return value === false || (typeof value === 'object' && Object.keys(value ?? {}).length === 0)
}
