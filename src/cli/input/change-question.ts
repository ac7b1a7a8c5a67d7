// What somebody is asked before a change: whether clusters go, lose something, or change.

import type { Preview } from '../../api/wire-types.ts'
import type { JsonObject } from '../../base/json.ts'
import { count, firstOf } from '../../base/sentences.ts'
import type { Impact } from '../../domain/delivery/impact.ts'
import type { DescribedChange } from '../../domain/documents/describe-change.ts'
import { PROGRAM } from '../cli-command.ts'
import { withCounts } from '../output/impact-report.ts'
import { clusterNoun, type Noun } from '../server/nouns.ts'
import type { Question } from './agree.ts'

/** How many of the removed inputs are named. */
const NAMED = 3
const REVERT = `${PROGRAM} revert, with the revision that this makes`

/** The question before a change, which a confirmation makes a word of its own; undefined for one of at most one cluster that removes nothing. */
export function questionFor(
  nouns: readonly Noun[],
  preview: Preview,
  confirmation: string | undefined,
): Question | undefined {
  const { changes, warnings } = preview
  const impact = withCounts(preview.impact)
  const clusters = changes.filter(({ type }) => type === clusterNoun(nouns).name)
  const gone = clusters.filter(({ op }) => op === 'delete' || op === 'purge')
  // A preview holds only the first of many changes.
  const touched = Math.max(impact.touched, clusters.length)
  const leaving = Math.max(impact.leaving, gone.length)
  if (leaving > 0) return leavingQuestion(nouns, preview, gone, { touched, leaving })
  const word = confirmation ?? 'yes'
  if (impact.losing > 0) return { ...losingQuestion(impact, touched), word }
  const isOptional = touched <= 1 && confirmation === undefined
  if (isOptional && (touched === 0 || warnings.length === 0)) return undefined
  const { joining } = impact
  const does =
    joining > 0
      ? `add ${count(joining, 'cluster')}${others(touched - joining)}`
      : `change ${count(touched, 'cluster')}`
  return { does, word, notes: [], isOptional }
}

/** A preview by what clusters are served alone: of what is done to rollouts and holds, documents say nothing. */
export function asServed(preview: Preview): Preview {
  const { impact } = preview
  return { ...preview, changes: [], impact: { ...impact, touched: impact.clusters } }
}

/** How the change is to be made, beside what it is. */
export interface Manner {
  /** What it does, where its changes do not tell. */
  readonly does?: string | undefined
  /** The rollout that it is put into. */
  readonly amend?: string | undefined
  readonly bypass?: boolean | undefined
}

/** The question with what a rollout, or passing what holds the change back, adds to it. */
export function inManner(
  question: Question | undefined,
  { waves, requires }: Preview,
  { does: order, amend, bypass = false }: Manner,
): Question | undefined {
  const passed = bypass ? requires.filter(({ lifted_by }) => lifted_by === 'bypass') : []
  if (!question && passed.length === 0) return undefined
  const asked: Question = question ?? { does: 'change documents', word: 'yes', notes: [] }
  const { does, notes } = asked
  const what = order ?? (amend === undefined ? undefined : `amend rollout ${amend}`)
  if (what === undefined && !waves && passed.length === 0) return question
  const filled = waves?.filter(({ members }) => members > 0).length
  const whole = [
    what === undefined ? does : `${what}: ${does}`,
    ...(filled === undefined ? [] : [`in ${count(filled, 'wave')}`]),
    ...(passed.length > 0 ? ['past what holds it back'] : []),
  ]
  const past = passed.map(({ message }) => `It is held back: ${message}.`)
  // What passes something is asked about, however little it is.
  const isOptional = passed.length === 0 && asked.isOptional === true
  return { ...asked, does: whole.join(' '), notes: [...notes, ...past], isOptional }
}

interface Counts {
  readonly touched: number
  readonly leaving: number
}

/** Asks to type the id of one cluster, or the number of several. */
function leavingQuestion(
  nouns: readonly Noun[],
  { changes, change_count }: Preview,
  gone: readonly DescribedChange[],
  { touched, leaving }: Counts,
): Question {
  const deleted = gone.filter(({ op }) => op === 'delete')
  const verb = deleted.length === gone.length ? 'delete' : deleted.length === 0 ? 'purge' : 'delete or purge'
  const only = leaving === 1 ? gone[0]?.id : undefined
  const which = only === undefined ? count(leaving, 'cluster') : `cluster ${only}`
  const isCut = changes.length < change_count
  return {
    does: `${verb} ${which}${others(touched - leaving)}`,
    word: only ?? String(leaving),
    notes: [
      ...(deleted.length > 0 ? deletionNotes(nouns, deleted, isCut) : []),
      ...(deleted.length < gone.length ? PURGE_NOTES : []),
    ],
  }
}

function deletionNotes(
  nouns: readonly Noun[],
  deleted: readonly DescribedChange[],
  isCut: boolean,
): string[] {
  const { noun } = clusterNoun(nouns)
  const [only, ...more] = deleted
  const removed = isCut ? 'everything that came from here' : assignedTo(nouns, deleted)
  const whose = more.length === 0 ? 'Its Flux' : 'The Flux of each'
  const restore = `${PROGRAM} ${noun} restore ${more.length === 0 ? only?.id : 'ID'}`
  return [
    removed === '' ? `${whose} has nothing to remove.` : `${whose} removes ${removed} at the next poll.`,
    `Way back: ${restore}${more.length === 0 ? '' : `, or all of them by ${REVERT}`}.`,
  ]
}

const PURGE_NOTES = [
  'Polls of a purged cluster are refused, so its Flux keeps what it has.',
  `Way back: none by restore; by ${REVERT}, for as long as the log reaches back.`,
]

/** The number of enabled references by type, in words; empty when there are none. */
function assignedTo(nouns: readonly Noun[], deleted: readonly DescribedChange[]): string {
  const counts = nouns.flatMap(({ delivery, singular }) => {
    if (!delivery) return []
    const { assigned_by, enabled_by = '' } = delivery
    const references = deleted.flatMap(({ before }) => (before?.[assigned_by] ?? []) as readonly JsonObject[])
    const enabled = references.filter((reference) => reference[enabled_by] !== false)
    return enabled.length === 0 ? [] : [count(enabled.length, singular)]
  })
  return counts.join(', ')
}

function losingQuestion(impact: Impact, touched: number): Pick<Question, 'does' | 'notes'> {
  const { inputs, losing, details } = impact
  const removed = inputs.flatMap(({ removed: lost, id }) => (lost > 0 ? [id] : []))
  const off = inputs.flatMap(({ switched_off: lost, id }) => (lost > 0 ? [id] : []))
  const only = losing === 1 ? details.find(({ removed: lost }) => lost.length > 0)?.cluster : undefined
  const where = only ?? count(losing, 'cluster')
  const does = [
    ...(removed.length > 0 || off.length === 0 ? [`remove ${firstOf(removed, NAMED) || 'inputs'} from`] : []),
    ...(off.length > 0 ? [`switch off ${firstOf(off, NAMED)} on`] : []),
  ]
  return {
    does: `${does.join(' or ')} ${where}${others(touched - losing)}`,
    notes: [`Flux removes there what is taken away, at the next poll. Way back: ${REVERT}.`],
  }
}

function others(number: number): string {
  return number > 0 ? ` and change ${count(number, 'other')}` : ''
}
