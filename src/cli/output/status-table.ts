// What clusters are doing, as tables: a row for each cluster, and counts by state.
import type { FleetStatus, StatusLine } from '../../api/status-schema.ts'
import { ageOf } from '../../base/relative-time.ts'
import { COLUMNS } from '../../domain/status/status-words.ts'
import type { Column } from './document-columns.ts'
import type { Look } from './print.ts'

export const STATUS_TITLES = ['CONTACT', 'DELIVERY', 'HEALTH', 'SEEN', 'OPERATOR']

/** The columns that a list of clusters has beside those of their documents. */
export function statusColumns({ clusters, at }: FleetStatus): Column[] {
  const lines = new Map(clusters.map((line) => [line.cluster, line]))
  const column = (title: string, read: (line: StatusLine) => string, wide = false): Column => ({
    title,
    wide,
    read({ id }) {
      const line = lines.get(String(id))
      return line ? read(line) : ''
    },
  })
  const seen = column('SEEN', ({ last_seen }) => ageOf(last_seen, new Date(at)))
  return [
    column('CONTACT', ({ contact }) => contact),
    column('DELIVERY', ({ delivery }) => delivery),
    column('HEALTH', ({ health }) => health),
    { ...seen, order: ({ id }) => -Date.parse(lines.get(String(id))?.last_seen ?? '') },
    column('OPERATOR', ({ operator_version }) => operator_version ?? '', true),
  ]
}

export function statusTable({ table }: Look, { clusters, at }: FleetStatus): string {
  const now = new Date(at)
  return table(
    ['CLUSTER', 'ENV', 'CONTACT', 'DELIVERY', 'HEALTH', 'SEEN', 'OPERATOR'],
    clusters.map(({ cluster, environment, contact, delivery, health, last_seen, operator_version }) => [
      cluster,
      environment ?? '',
      contact,
      delivery,
      health,
      ageOf(last_seen, now),
      operator_version ?? '',
    ]),
  )
}

/** A row for each state that a cluster is in, with a column for each environment. */
export function countsTable({ table }: Look, { counts, environments }: FleetStatus): string {
  const tiers = Object.entries(environments)
  const rows = COLUMNS.flatMap((column) =>
    Object.entries(counts[column])
      .filter(([, number]) => number > 0)
      .map(([state, number]) => [
        column,
        state,
        number.toLocaleString('en'),
        ...tiers.map(([, each]) => numberOf(each[column], state)),
      ]),
  )
  return table(['COLUMN', 'STATE', 'CLUSTERS', ...tiers.map(([tier]) => tier.toUpperCase())], rows)
}

function numberOf(numbers: Readonly<Record<string, number>>, state: string): string {
  return (numbers[state] ?? 0).toLocaleString('en')
}
