// What a change means for clusters, in lines for people.

import { count, firstOf } from '../../base/sentences.ts'
import type { Impact } from '../../domain/delivery/impact.ts'
import type { InputImpact } from '../../domain/delivery/impact-counts.ts'
import type { Session } from '../session.ts'
import { describeField, type ReportLook } from './field-report.ts'
import { painter, plain } from './terminal.ts'

/** How many different changes are shown, and how many names with each. */
export const SHOWN = 20
export const NAMED = 8
/** How many kinds of differences the summary has, and how many fields it names with each. */
const KINDS = 4
const FIELDS = 2

/** Lines for the clusters that receive something else; those with the same difference are one group. */
export function describeImpact(look: ReportLook, impact: Impact): string {
  const { paint } = look
  const { clusters, details } = impact
  if (clusters === 0) return `${receivers(impact)}\n`
  const groups = Map.groupBy(details, ({ cluster: _cluster, environment: _environment, ...same }) =>
    JSON.stringify(same),
  )
  const shown = [...groups.values()].slice(0, SHOWN)
  const lines = shown.flatMap((group) => {
    const [{ endpoint, added, removed, changed }] = group as [(typeof group)[number]]
    const names = group.map(({ cluster, environment }) => `${cluster} (${environment})`)
    return [
      `  ${paint('bold', endpoint)} of ${paint('cyan', firstOf(names, NAMED))}`,
      ...added.map((id) => `    ${paint('green', `+ ${id}`)}`),
      ...removed.map((id) => `    ${paint('red', `- ${id}`)}`),
      ...changed.flatMap(({ id, fields }) => [
        `    ${paint('yellow', `~ ${id}`)}`,
        ...fields.flatMap((field) => describeField(look, '        ', field)),
      ]),
    ]
  })
  const named = new Set(shown.flat().map(({ cluster }) => cluster)).size
  const more = clusters - named
  const all = [
    paint('bold', receivers(impact)),
    ...lines,
    ...(more > 0 ? [`  … and ${count(more, 'more cluster')}`] : []),
  ]
  return all.map((line) => `${line}\n`).join('')
}

/** Prints on stderr what a refused write would have meant for clusters. */
export function noteImpact({ terminal, note }: Pick<Session, 'terminal' | 'note'>, impact: Impact): void {
  const look = { paint: painter(terminal, terminal.stderr), width: undefined }
  note(describeImpact(look, impact).trimEnd())
}

/** Adds counts that an older service does not send; what it removes from some clusters may be removed from all. */
export function withCounts(impact: Impact): Impact {
  const { clusters, endpoints } = impact
  const takes = Object.values(endpoints).some(({ removed }) => removed > 0)
  const counts = { touched: clusters, joining: 0, leaving: 0, losing: takes ? clusters : 0 }
  return Object.assign({ ...counts, inputs: [], input_count: 0 }, impact)
}

/** A summary in one line: how many clusters receive something else, and what. */
export function receivers(impact: Impact): string {
  const { clusters, by_environment } = impact
  if (clusters === 0) return 'no cluster receives anything else'
  const tiers = Object.entries(by_environment).map(([name, number]) => `${name} ${number}`)
  const head = `${count(clusters, 'cluster')} ${clusters === 1 ? 'receives' : 'receive'} something else`
  const kinds = kindsOf(withCounts(impact))
  return `${head}: ${tiers.join(', ')}${kinds && ` — ${kinds}`}`
}

/** The kinds of differences: losses first, then what is new, then what is different. */
function kindsOf({ joining, leaving, inputs, input_count }: Impact): string {
  const kinds = [
    ...some(leaving, 'leave', 'the fleet'),
    ...inputs.flatMap(({ removed, id }) => some(removed, 'lose', id)),
    ...inputs.flatMap(({ switched_off: off, id }) =>
      off > 0 ? [`${id} is switched off on ${number(off)}`] : [],
    ),
    ...some(joining, 'join', 'the fleet'),
    ...inputs.flatMap(({ added, id }) => some(added, 'get', `${id} (new)`)),
    ...inputs.flatMap((input) => changesOf(input, input_count === 1)),
  ]
  const more = kinds.length + input_count - inputs.length - KINDS
  return [...kinds.slice(0, KINDS), ...(more > 0 ? [`and ${count(more, 'more difference')}`] : [])].join(', ')
}

function some(clusters: number, verb: string, what: string): string[] {
  return clusters > 0 ? [`${number(clusters)} ${verb}${clusters === 1 ? 's' : ''} ${what}`] : []
}

function number(value: number): string {
  return value.toLocaleString('en')
}

/** The difference for clusters that have an input before and after, enabled. */
function changesOf(input: InputImpact, isOnly: boolean): string[] {
  const { id, added, removed, changed, switched_off: off, fields } = input
  const kept = changed - off
  if (kept === 0) return []
  const isNamed = isOnly && added + removed + off > 0
  const names = Object.keys(fields).map(lastStep)
  if (names.length > FIELDS) return some(kept, 'receive', `${id} with ${names.length} other values`)
  return [`${number(kept)} another ${plain(names.join(' and '))}${isNamed ? '' : ` of ${id}`}`]
}

/** The last step of a JSON pointer. */
function lastStep(path: string): string {
  return path
    .slice(path.lastIndexOf('/') + 1)
    .replaceAll('~1', '/')
    .replaceAll('~0', '~')
}
