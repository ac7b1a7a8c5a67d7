// What the measurements say, as tables and a drawing for the documentation.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Table } from '../../tools/figures/tables.ts'
import { printTable, reportTable, WRITES } from '../print.ts'
import { isPeer, type Measured, medianOf, type Server, type Style, sorted } from './cases.ts'
import { drawChart, type Line } from './chart.ts'

const DOCS = join(import.meta.dirname, '../../docs')

const HEADINGS: Readonly<Record<Style, string>> = {
  new: 'A connection for each poll, without TLS',
  tls: 'A connection for each poll, TLS 1.3, key exchange as Flux offers it',
  'tls-x25519': 'A connection for each poll, TLS 1.3, X25519 on both sides',
  kept: 'Kept connections, as from a proxy',
}

/** A goal: at most so many times what something else costs in the same run. */
interface Goal {
  readonly what: string
  readonly ours: Measured | undefined
  readonly than: Measured | undefined
  readonly most: number
}

/** The pages compare with peers that serve so many clusters: without them a run is a try. */
const KEPT_PEERS = 10_000

/** Prints what was measured, keeps it for the pages, and draws it. */
export function report(cases: readonly Measured[], peerSize: number): void {
  const show = (name: string, heading: string, { head, rows }: Table): void => {
    console.log(`\n### ${heading}\n`)
    if (peerSize === KEPT_PEERS) reportTable(name, head, rows, 1)
    else printTable(head, rows)
  }
  for (const style of Object.keys(HEADINGS) as Style[]) {
    const rows = cases.filter((each) => each.style === style)
    if (rows.length > 0) show(`polls-${style}`, HEADINGS[style], table(rows, peerSize))
  }
  show('polls-goals', 'Goals', goalsTable(goalsOf(cases, peerSize)))
  if (WRITES && peerSize === KEPT_PEERS) writeFileSync(join(DOCS, 'cost-per-poll.svg'), chartOf(cases))
}

function table(rows: readonly Measured[], peerSize: number): Table {
  const peer = (server: Server): number => medianOf(rows.find((each) => each.server === server))
  const lines = rows.map((each) => {
    const cpu = sorted(each, (sample) => sample.cpu)
    const smallest = rows.find(({ server }) => server === each.server)
    const isGrown = !isPeer(each) && smallest !== each
    return [
      isPeer(each) ? each.server : `ours, ${each.server}, ${each.size.toLocaleString('en')} clusters`,
      medianOf(each).toFixed(1),
      `${cpu[0]?.toFixed(1)}–${cpu.at(-1)?.toFixed(1)}`,
      times(medianOf(each) / peer('nginx')),
      times(medianOf(each) / peer('node:http')),
      isGrown ? times(medianOf(each) / medianOf(smallest)) : '',
      medianOf(each, ({ p99 }) => p99).toFixed(1),
      medianOf(each, ({ clientCpu }) => clientCpu).toFixed(0),
    ]
  })
  const than = `of nginx (${peerSize.toLocaleString('en')} clusters)`
  const head = [
    'server',
    'CPU µs per poll',
    'rounds',
    than,
    'of node:http',
    'of smallest',
    'p99 ms',
    'client µs',
  ]
  return { head, rows: lines }
}

function goalsOf(cases: readonly Measured[], peerSize: number): Goal[] {
  const find = (server: Server, style: Style, size = peerSize): Measured | undefined =>
    cases.find((each) => each.server === server && each.style === style && each.size === size)
  const sizes = [...new Set(cases.map(({ size }) => size))].sort((a, b) => a - b)
  const [smallest = 0, largest = 0] = [sizes[0], sizes.at(-1)]
  const lived = 'lived-in'
  const shared = 'lived-in, shared token'
  const roomy = 'lived-in, room for all answers'
  const goal = (
    what: string,
    ours: Measured | undefined,
    than: Measured | undefined,
    most: number,
  ): Goal => ({
    what,
    ours,
    than,
    most,
  })
  const grown = `${smallest.toLocaleString('en')} → ${largest.toLocaleString('en')} clusters`
  return [
    goal("Flux's request without TLS, of nginx", find(lived, 'new'), find('nginx', 'new'), 2.5),
    goal(
      'with TLS, X25519 on both sides, of nginx',
      find(lived, 'tls-x25519'),
      find('nginx', 'tls-x25519'),
      1.5,
    ),
    goal('with TLS, key exchange as Flux offers it, of nginx', find(lived, 'tls'), find('nginx', 'tls'), 1.5),
    goal('kept connections, of node:http', find(lived, 'kept'), find('node:http', 'kept'), 1.5),
    goal(
      `kept connections at ${largest.toLocaleString('en')}, of node:http`,
      find(lived, 'kept', largest),
      find('node:http', 'kept'),
      1.8,
    ),
    goal(`the same, with room for all answers`, find(roomy, 'kept', largest), find('node:http', 'kept'), 1.8),
    goal(`${grown}, new connections`, find(lived, 'new', largest), find(lived, 'new', smallest), 1.3),
    goal(`${grown}, kept connections`, find(lived, 'kept', largest), find(lived, 'kept', smallest), 1.3),
    goal(
      `${grown}, new, with room for all answers`,
      find(roomy, 'new', largest),
      find(lived, 'new', smallest),
      1.3,
    ),
    goal(
      `${grown}, kept, with room for all answers`,
      find(roomy, 'kept', largest),
      find(lived, 'kept', smallest),
      1.3,
    ),
    goal('a token for each cluster, of a shared one, new', find(lived, 'new'), find(shared, 'new'), 1.1),
    goal('a token for each cluster, of a shared one, kept', find(lived, 'kept'), find(shared, 'kept'), 1.1),
  ]
}

function goalsTable(goals: readonly Goal[]): Table {
  const rows = goals.map(({ what, ours, than, most }) => {
    const ratio = medianOf(ours) / medianOf(than)
    return [what, times(most), times(ratio), Number.isNaN(ratio) ? '' : ratio <= most ? 'yes' : '**no**']
  })
  return { head: ['lived-in fleet, a token for each cluster', 'at most', 'measured', 'met'], rows }
}

function times(ratio: number): string {
  return Number.isNaN(ratio) ? '' : `${ratio.toFixed(2)}×`
}

const LINES: readonly (readonly [string, string, Server, Style])[] = [
  ['lived-in, new connections', '#c0392b', 'lived-in', 'new'],
  ['uniform, new connections', '#e67e22', 'uniform', 'new'],
  ['node:http, new connections', '#7f8c8d', 'node:http', 'new'],
  ['nginx, new connections', '#27ae60', 'nginx', 'new'],
  ['lived-in, kept connections', '#2980b9', 'lived-in', 'kept'],
  ['uniform, kept connections', '#8e44ad', 'uniform', 'kept'],
]

function chartOf(cases: readonly Measured[]): string {
  const sizes = [...new Set(cases.filter((each) => !isPeer(each)).map(({ size }) => size))].sort(
    (a, b) => a - b,
  )
  const lines = LINES.map(([name, colour, server, style]): Line => {
    const found = cases.filter((each) => each.server === server && each.style === style)
    const [only] = found
    const isAcross = only !== undefined && isPeer(only)
    const points = isAcross
      ? sizes.map((size) => [size, medianOf(only)] as const)
      : found.map((each) => [each.size, medianOf(each)] as const)
    return { name, colour, points, isDashed: isAcross }
  })
  return drawChart('CPU µs of the server per poll', sizes, lines)
}
