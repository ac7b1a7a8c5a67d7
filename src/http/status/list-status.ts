// The states of many clusters: counted, filtered, sorted and a page at a time.
import type { FleetStatus, StatusGroup, StatusLine } from '../../api/status-schema.ts'
import { FirstFew } from '../../base/first-few.ts'
import { getOrSet } from '../../base/get-or-set.ts'
import { isObject, own } from '../../base/json.ts'
import type { Steps } from '../../base/steps.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import { StatusTally } from '../../domain/status/status-tally.ts'
import {
  COLUMNS,
  CONTACTS,
  type Contact,
  DELIVERIES,
  type Delivered,
  HEALTHS,
  type Health,
  type StatusRow,
} from '../../domain/status/status-words.ts'
import type { ClusterType, Document } from '../../domain/types/resource-type.ts'
import type { Fleet } from '../../engine/fleet/fleet.ts'

export const STATUS_SORTS = ['cluster', 'last_seen', ...COLUMNS] as const
export type StatusSort = (typeof STATUS_SORTS)[number]

export interface StatusQuery {
  matches(cluster: Document, view: View): boolean
  /** In the id, in lower case as ids are. */
  readonly text?: string
  readonly contact?: Contact
  readonly delivery?: Delivered
  readonly health?: Health
  /** Worst first of states, longest ago first of times. */
  readonly sort: StatusSort
  /** A label whose values split the counts of each environment. */
  readonly by?: string
  readonly limit: number
  readonly offset: number
}

interface Found {
  readonly entry: Entry
  readonly row: StatusRow
}

/** Deleted clusters are listed only where they are asked for. */
export function* listStatus(
  fleet: Fleet,
  type: ClusterType,
  view: View,
  query: StatusQuery,
  now: number,
): Steps<FleetStatus> {
  const { text, contact, delivery, health, sort, by, limit, offset } = query
  const page = new FirstFew<Found>(offset + limit, comparing(fleet, sort))
  const environments = new Map<string, StatusTally>()
  const versions = new Map<string, number>()
  const groups = new Groups(type, by)
  const { name } = type.type
  for (const entry of contact === 'deleted' ? view.tombstones(name) : view.all(name)) {
    yield
    if (text !== undefined && !entry.id.includes(text)) continue
    if (!query.matches(entry.document, view)) continue
    const row = fleet.rowOf(entry)
    if (contact !== undefined && row.contact !== contact) continue
    if (delivery !== undefined && row.delivery !== delivery) continue
    if (health !== undefined && row.health !== health) continue
    page.add({ entry, row })
    const environment = environmentOf(type, entry) ?? ''
    getOrSet(environments, environment, () => new StatusTally()).count(row)
    groups.count(environment, entry, row)
    const version = fleet.operatorVersion(entry.id) ?? 'unknown'
    versions.set(version, (versions.get(version) ?? 0) + 1)
  }
  const all = new StatusTally(environments.values())
  return {
    total: all.total,
    at: new Date(now).toISOString(),
    counts: all.counts(),
    environments: Object.fromEntries([...environments].sort().map(([each, tally]) => [each, tally.counts()])),
    ...(by !== undefined && { groups: groups.all() }),
    operator_versions: Object.fromEntries([...versions].sort()),
    clusters: page
      .all()
      .slice(offset)
      .map((each) => lineOf(fleet, type, each)),
  }
}

/** So many values of a label are counted apart; those of the rest are left out, the rarest first. */
const MAX_GROUPS = 200

/** Counts by environment and by the value of a label. */
class Groups {
  readonly #labels: string | undefined
  readonly #by: string | undefined
  readonly #tallies = new Map<string, Map<string, StatusTally>>()

  constructor({ labels }: ClusterType, by: string | undefined) {
    this.#labels = labels
    this.#by = by
  }

  count(environment: string, { document }: Entry, row: StatusRow): void {
    if (this.#by === undefined) return
    const labels = this.#labels === undefined ? undefined : document[this.#labels]
    const value = isObject(labels) ? String(own(labels, this.#by) ?? '') : ''
    const values = getOrSet(this.#tallies, environment, () => new Map<string, StatusTally>())
    getOrSet(values, value, () => new StatusTally()).count(row)
  }

  all(): StatusGroup[] {
    const found = [...this.#tallies].flatMap(([environment, values]) =>
      [...values].map(([value, tally]) => ({ environment, value, tally })),
    )
    return found
      .sort((one, other) => other.tally.total - one.tally.total)
      .slice(0, MAX_GROUPS)
      .sort((one, other) => compare(one.environment, other.environment) || compare(one.value, other.value))
      .map(({ tally, ...group }) => ({ ...group, counts: tally.counts() }))
  }
}

function compare(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}

export function environmentOf({ environment }: ClusterType, { document }: Entry): string | null {
  return environment === undefined ? null : String(document[environment] ?? '')
}

function lineOf(fleet: Fleet, type: ClusterType, { entry, row }: Found): StatusLine {
  const seen = fleet.lastSeen(entry.id)
  return {
    cluster: entry.id,
    environment: environmentOf(type, entry),
    ...row,
    last_seen: seen > 0 ? new Date(seen).toISOString() : null,
    operator_version: fleet.operatorVersion(entry.id) ?? null,
  }
}

function comparing(fleet: Fleet, sort: StatusSort): (one: Found, other: Found) => number {
  // Live clusters come in this order already, and deleted ones in none.
  if (sort === 'cluster') return (one, other) => (one.entry.id < other.entry.id ? -1 : 1)
  if (sort === 'last_seen')
    return (one, other) => fleet.lastSeen(one.entry.id) - fleet.lastSeen(other.entry.id)
  const words: readonly string[] = { contact: CONTACTS, delivery: DELIVERIES, health: HEALTHS }[sort]
  return (one, other) => words.indexOf(one.row[sort]) - words.indexOf(other.row[sort])
}
