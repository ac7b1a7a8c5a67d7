// One rollout on a screen: how far it is, why it does not go on, and what happened.
import type { ShownMember, ShownRollout } from '../../api/rollout-schema.ts'
import { ageOf, fromNow, howLong } from '../../base/relative-time.ts'
import { count } from '../../base/sentences.ts'
import type { Look } from '../output/print.ts'
import { plain } from '../output/terminal.ts'
import { changeOf, memberTable, sum, waveTable } from './rollout-table.ts'

/** How many of the last events are shown; all of them in wide output. */
const LAST = 10

/** How far it is: a head line, why it does not go on, and its waves. */
export function describeProgress(
  look: Pick<Look, 'table' | 'paint'>,
  rollout: ShownRollout,
  now: Date,
): string {
  const { waves, waiting_for, state } = rollout
  const title = look.paint('yellow', state === 'paused' ? 'Paused:' : 'Waiting:')
  const waiting = waiting_for === null ? '' : `${title} ${plain(waiting_for)}\n`
  return `${look.paint('bold', plain(headline(rollout, now)))}\n${waiting}\n${waveTable(look, waves)}`
}

/** `rollout r42 is running for 3h: 40 of 400 clusters have it: Grafana 2`. */
function headline(rollout: ShownRollout, now: Date): string {
  const { id, state, waves, started_at, ended_at } = rollout
  const when =
    ended_at === undefined
      ? `is ${state}, started ${fromNow(started_at, now)}`
      : `${state} ${fromNow(ended_at, now)}, after ${howLong(Date.parse(ended_at) - Date.parse(started_at))}`
  const [served, members] = [sum(waves, 'served'), sum(waves, 'members')]
  const have = ended_at === undefined ? `, on ${served} of ${count(members, 'cluster')}` : ''
  return `rollout ${id} ${when}${have}: ${changeOf(rollout)}`
}

export function describeRollout(look: Look, rollout: ShownRollout, now: Date): string {
  const { id, state, message, operation, strategy, started_by, started_at, ended_at, plan } = rollout
  const head = look.pairs([
    ['Rollout:', id],
    ['State:', state],
    ['Waiting:', rollout.waiting_for ?? ''],
    ['Change:', operation],
    ['Message:', message ?? ''],
    ['Strategy:', strategy ?? 'waves of its own'],
    ['Started:', `${fromNow(started_at, now)} by ${started_by} (${started_at})`],
    ...(ended_at === undefined ? [] : [['Ended:', `${fromNow(ended_at, now)} (${ended_at})`] as const]),
    ['Plan:', plan],
  ])
  return [
    head,
    `${look.paint('bold', 'Waves')}\n${waveTable(look, rollout.waves, { hasAllGates: true })}`,
    ...ids(look, 'Left out', rollout.skipped),
    ...ids(look, 'Set aside, since they were away', rollout.set_aside),
    ...approvals(look, rollout, now),
    events(look, rollout, now),
  ].join('\n')
}

function ids({ paint }: Look, title: string, clusters: readonly string[]): string[] {
  return clusters.length === 0 ? [] : [`${paint('bold', title)}\n${plain(clusters.join(', '))}\n`]
}

function approvals({ paint, table }: Look, { approvals: given }: ShownRollout, now: Date): string[] {
  if (given.length === 0) return []
  const rows = given.map(({ wave, when, by, at, remark }) => [wave, when, by, ageOf(at, now), remark ?? ''])
  return [`${paint('bold', 'Approvals')}\n${table(['WAVE', 'WHEN', 'BY', 'AGE', 'REMARK'], rows)}`]
}

function events({ paint, table, wide }: Look, { events: all }: ShownRollout, now: Date): string {
  const shown = wide ? all : all.slice(-LAST)
  const rows = shown.map(({ at, by, what, remark }) => [ageOf(at, now), by, what, remark ?? ''])
  const earlier = all.length - shown.length
  const more = earlier > 0 ? `… and ${count(earlier, 'earlier one')}: -o wide\n` : ''
  return `${paint('bold', 'What happened')}\n${more}${table(['AGE', 'BY', 'WHAT', 'REMARK'], rows)}`
}

/** Members after the rollout itself. */
export function describeMembers(look: Look, members: readonly ShownMember[]): string {
  const title = look.paint('bold', 'Clusters')
  return members.length === 0 ? `${title}: none\n` : `${title}\n${memberTable(look, members)}`
}
