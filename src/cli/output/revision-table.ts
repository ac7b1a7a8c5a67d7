// Revisions as a table, and one by one with what they changed.
import type { Revision } from '../../api/wire-types.ts'
import type { Impact } from '../../domain/delivery/impact.ts'
import { describeChanges } from './change-report.ts'
import { describeImpact } from './impact-report.ts'
import type { Look } from './print.ts'
import { longTime, shortTime } from './show-time.ts'

/** How many clusters a revision reached, by environment; undefined where that is not known. */
export type Reach = ReadonlyMap<number, Impact | undefined>

export function revisionHeaders(reach?: Reach): string[] {
  return ['REVISION', 'TIME', 'ACTOR', reach ? 'CLUSTERS' : 'CHANGES', 'MESSAGE', 'OPERATION']
}

export function revisionRow(look: Look, revision: Revision, reach?: Reach): string[] {
  const { time, actor, change_count, message, operation } = revision
  return [
    String(revision.revision),
    shortTime(look, time),
    actor,
    reach ? reached(reach.get(revision.revision)) : String(change_count),
    message ?? '',
    operation,
  ]
}

/** `5 (dev 2, prod 3)`; empty where nothing is known. */
function reached(impact: Impact | undefined): string {
  if (!impact) return ''
  const { clusters, by_environment: tiers } = impact
  const where = Object.entries(tiers).map(([name, number]) => `${name} ${number.toLocaleString('en')}`)
  return where.length > 0 ? `${clusters.toLocaleString('en')} (${where.join(', ')})` : String(clusters)
}

export function revisionTable(look: Look, revisions: readonly Revision[], reach?: Reach): string {
  if (revisions.length === 0) return ''
  return look.table(
    revisionHeaders(reach),
    revisions.map((revision) => revisionRow(look, revision, reach)),
  )
}

/** One revision with all that it changed, and what that meant. */
export function describeRevision(look: Look, revision: Revision & { impact?: Impact }): string {
  const { message, operation, actor, time, changes, change_count, impact } = revision
  const head = look.pairs([
    ['Revision:', String(revision.revision)],
    ['Time:', longTime(look, time)],
    ['Actor:', actor],
    ['From:', String(revision.client_address ?? '')],
    ['Message:', message ?? ''],
    ['Operation:', operation],
    ['Request id:', String(revision.request_id ?? '')],
    ['Hash:', String(revision.hash ?? '')],
  ])
  return `${head}\n${describeChanges(look, changes, change_count)}${impact ? describeImpact(look, impact) : ''}`
}
