// The status of one cluster, for people.
import type { ClusterStatus, ComponentStatus, EndpointStatus } from '../../api/status-schema.ts'
import { ageOf, fromNow, howLong } from '../../base/relative-time.ts'
import { count } from '../../base/sentences.ts'
import type { Look } from './print.ts'
import { plain } from './terminal.ts'

/** How many of the last transitions are shown; all of them in wide output. */
const LAST = 10
/** How much of a digest is shown. */
const SHORT = 8

export function describeStatus(look: Look, status: ClusterStatus, now: Date): string {
  const { delivery, health, endpoints, components, transitions } = status
  const head = look.pairs([
    ['Cluster:', `${status.cluster}${status.environment ? ` (${status.environment})` : ''}`],
    ['DNS:', status.dns],
    ['Operator:', status.operator_version ?? 'unknown'],
    ['Contact:', contactLine(status, now)],
    ['Delivery:', delivery],
    ['Health:', health],
  ])
  return [
    head,
    section(look, 'Endpoints', Object.entries(endpoints), (each) => endpointTable(look, each, now)),
    section(look, 'Components', Object.entries(components), (each) => componentTable(look, each, now)),
    section(look, 'Last transitions', transitions, (each) => transitionTable(look, each, now)),
  ].join('\n')
}

function section<T>(
  { paint }: Look,
  title: string,
  items: readonly T[],
  table: (items: readonly T[]) => string,
): string {
  return items.length === 0 ? `${paint('bold', title)}: none\n` : `${paint('bold', title)}\n${table(items)}`
}

/** `current since 3h: seen 12s ago, polls every 5m (reported)`. */
function contactLine({ contact }: ClusterStatus, now: Date): string {
  const { state, since, last_seen, expected_interval_s, interval_source, reason } = contact
  return [
    `${state}${since ? ` for ${ageOf(since, now)}` : ''}`,
    last_seen ? `seen ${fromNow(last_seen, now)}` : 'never seen',
    `every ${howLong(expected_interval_s * 1000)} (${interval_source})`,
    ...(reason ? [reason] : []),
  ].join(', ')
}

function endpointTable(
  look: Look,
  endpoints: readonly (readonly [string, EndpointStatus])[],
  now: Date,
): string {
  const digest = (text: string | null | undefined): string =>
    text === undefined ? '' : text === null ? 'empty' : look.wide ? text : text.slice(0, SHORT)
  const rows = endpoints.map(([name, { delivery, inputs, desired, served, applied }]) => [
    name,
    delivery,
    String(inputs),
    digest(desired),
    digest(served?.digest),
    ageOf(served?.at ?? null, now),
    digest(applied?.digest),
    ageOf(applied?.at ?? null, now),
  ])
  const headers = ['ENDPOINT', 'DELIVERY', 'INPUTS', 'DESIRED', 'SERVED', 'AGE', 'APPLIED', 'AGE']
  const failed = endpoints.filter(([, { reason, message }]) => reason || message)
  const notes = failed.map(([name, each]) => `  ${plain(`${name}: ${whyOf(each)}`)}\n`)
  return look.table(headers, rows) + notes.join('')
}

function componentTable(
  look: Look,
  components: readonly (readonly [string, ComponentStatus])[],
  now: Date,
): string {
  const rows = components.map(([id, each]) => [
    id,
    each.health,
    ageOf(each.since, now),
    each.source ?? '',
    whyOf(each),
  ])
  return look.table(['COMPONENT', 'HEALTH', 'SINCE', 'SOURCE', 'REASON'], rows)
}

/** The reason of a failure and its message, as far as there are any. */
export function whyOf({ reason, message }: { reason: string | null; message: string | null }): string {
  return [reason, message].filter(Boolean).join(': ')
}

function transitionTable(look: Look, transitions: ClusterStatus['transitions'], now: Date): string {
  const shown = look.wide ? transitions : transitions.slice(0, LAST)
  const rows = shown.map(({ time, kind, from, to }) => [ageOf(time, now), kind, from, to])
  const more = transitions.length - shown.length
  return (
    look.table(['AGE', 'OF', 'FROM', 'TO'], rows) +
    (more > 0 ? `… and ${count(more, 'earlier one')}: -o wide\n` : '')
  )
}
