// Changes and what they mean for clusters, in lines for people.
import type { DescribedChange } from '../domain/describe-change.ts'
import { diffFields, type FieldChange } from '../domain/diff.ts'
import type { Impact } from '../domain/impact.ts'
import { excerpt, type Json, pointer } from '../domain/json.ts'
import type { Paint, Style } from './terminal.ts'
import { plain } from './terminal.ts'

/** What a dry run answers. */
export interface Preview {
  readonly dry_run: true
  readonly base_revision: number
  readonly change_count: number
  readonly changes: readonly DescribedChange[]
  readonly impact: Impact
  readonly warnings: readonly string[]
  readonly requires_confirmation: readonly string[]
  readonly plan: string
}

/** Of different changes, so many are shown, and so many names with each. */
const SHOWN = 20
const NAMED = 8

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

export function describePreview(paint: Paint, preview: Preview): string {
  const { changes, change_count, impact, warnings, plan } = preview
  if (change_count === 0) return 'Nothing would change.\n'
  return [
    describeChanges(paint, changes, change_count),
    describeImpact(paint, impact),
    ...warnings.map((warning) => `${paint('yellow', 'Warning:')} ${plain(warning)}\n`),
    `Plan: ${plan}\n`,
  ].join('')
}

export function describeChanges(
  paint: Paint,
  changes: readonly DescribedChange[],
  total = changes.length,
): string {
  const described = changes.map((change) => ({ change, fields: fieldLines(paint, change) }))
  // Many clusters are changed in the same way: that is told once.
  const groups = Map.groupBy(described, ({ change: { type, op }, fields }) =>
    [op, type, ...fields].join('\n'),
  )
  const shown = [...groups.values()].slice(0, SHOWN)
  const lines = shown.flatMap((group) => {
    const [{ change, fields }] = group as [(typeof group)[number]]
    const [mark, style] = LOOKS[change.op]
    const ids = some(group.map(({ change: { id } }) => plain(id)))
    return [paint(style, `${mark} ${change.type}/${ids}`), ...fields]
  })
  const more = total - shown.reduce((sum, group) => sum + group.length, 0)
  return joined([...lines, ...(more > 0 ? [`… and ${count(more, 'more document')}`] : [])])
}

function joined(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('')
}

/** The first of many names. */
function some(names: readonly string[]): string {
  const more = names.length - NAMED
  return more > 0 ? `${names.slice(0, NAMED).join(', ')} and ${count(more, 'other')}` : names.join(', ')
}

/** What differs; of something new, what it says. */
function fieldLines(paint: Paint, { op, before, after }: DescribedChange): string[] {
  if (op === 'create') {
    const said = Object.entries(after ?? {}).filter(([name, value]) => name !== 'id' && !isEmpty(value))
    return said.map(
      ([name, value]) => `    ${paint('green', plain(`${pointer('', name)}: ${excerpt(value)}`))}`,
    )
  }
  if (op !== 'update') return []
  return diffFields(before ?? {}, after ?? {}).flatMap((field) => describeField(paint, '    ', field))
}

function isEmpty(value: Json): boolean {
  return value === false || (typeof value === 'object' && Object.keys(value ?? {}).length === 0)
}

/** A list is shown by what joined it and what left it. */
function describeField(paint: Paint, indent: string, { path, before, after }: FieldChange): string[] {
  const value = (text: string, style: Style): string => paint(style, plain(text))
  if (Array.isArray(before) && Array.isArray(after)) {
    const had = new Set(before.map((item) => JSON.stringify(item)))
    const has = new Set(after.map((item) => JSON.stringify(item)))
    const gone = [...had].filter((item) => !has.has(item))
    const come = [...has].filter((item) => !had.has(item))
    if (gone.length + come.length > 0) {
      return [
        `${indent}${plain(path)}:`,
        ...gone.map((item) => `${indent}  ${value(`- ${shorten(item)}`, 'red')}`),
        ...come.map((item) => `${indent}  ${value(`+ ${shorten(item)}`, 'green')}`),
      ]
    }
  }
  const from = before === null ? paint('dim', '(none)') : value(excerpt(before), 'red')
  const to = after === null ? paint('dim', '(none)') : value(excerpt(after), 'green')
  return [`${indent}${plain(path)}: ${from} → ${to}`]
}

function shorten(json: string): string {
  return excerpt(JSON.parse(json))
}

/** Which clusters receive what differently; those with the same difference together. */
export function describeImpact(paint: Paint, impact: Impact): string {
  const { clusters, details } = impact
  if (clusters === 0) return `${receivers(impact)}\n`
  const groups = Map.groupBy(details, ({ cluster: _cluster, environment: _environment, ...same }) =>
    JSON.stringify(same),
  )
  const shown = [...groups.values()].slice(0, SHOWN)
  const lines = shown.flatMap((group) => {
    const [{ endpoint, added, removed, changed }] = group as [(typeof group)[number]]
    const names = some(group.map(({ cluster, environment }) => `${cluster} (${environment})`))
    return [
      `  ${paint('bold', endpoint)} of ${paint('cyan', names)}`,
      ...added.map((id) => `    ${paint('green', `+ ${id}`)}`),
      ...removed.map((id) => `    ${paint('red', `- ${id}`)}`),
      ...changed.flatMap(({ id, fields }) => [
        `    ${paint('yellow', `~ ${id}`)}`,
        ...fields.flatMap((field) => describeField(paint, '        ', field)),
      ]),
    ]
  })
  const told = new Set(shown.flat().map(({ cluster }) => cluster)).size
  const more = clusters - told
  return joined([
    paint('bold', receivers(impact)),
    ...lines,
    ...(more > 0 ? [`  … and ${count(more, 'more cluster')}`] : []),
  ])
}

/** How many clusters, in a line. */
export function receivers({ clusters, by_environment }: Pick<Impact, 'clusters' | 'by_environment'>): string {
  if (clusters === 0) return 'no cluster receives anything else'
  const tiers = Object.entries(by_environment).map(([name, number]) => `${name} ${number}`)
  return `${count(clusters, 'cluster')} ${clusters === 1 ? 'receives' : 'receive'} something else: ${tiers.join(', ')}`
}

export function count(number: number, noun: string): string {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`
}
