// Figures that pages show, made from what was measured: tables of other pages, and single figures in sentences.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { LIMITS } from './limits.ts'
import { cellOf, findCell, numberOf, ROOT, type Table, type Tables } from './tables.ts'

/** Three endpoints every five minutes. */
const POLLS_A_SECOND = 3 / 300
const SIZES = [1000, 10_000, 100_000, 1_000_000]
const LARGE = '100,000'
/** What one poll brings, before a proxy compresses it. */
const ANSWER_KB = 8.6

const STARTED = 'RSS after the start from SQLite'
const POLLED = 'RSS when every cluster has polled 3 endpoints'
const CHANGED = 'change of all and its rollback, twice: peak RSS'

/** Sizes that people ask Kubernetes for, in MiB. */
const STEPS = [256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576]
/** Above what was seen: a fleet of another shape, and polls that go on. */
const RESERVE = 1.25
/** Node takes about half of a limit for its heap, and a large change is heap. */
const FOR_HEAP = 1.8

function quantityOf(megabytes: number): string {
  const mebibytes = STEPS.find((step) => step * 1.048576 >= megabytes) ?? Number.NaN
  return mebibytes % 1024 === 0 ? `${mebibytes / 1024}Gi` : `${mebibytes}Mi`
}

const VOLUMES: Readonly<Record<number, string>> = {
  1000: '1Gi',
  10000: '5Gi',
  100000: '20Gi',
  1000000: '100Gi',
}

function count(number: number): string {
  return number.toLocaleString('en')
}

/** Two digits are as much as another machine would confirm. */
function rounded(number: number): number {
  return Number(number.toPrecision(2))
}

function pollCost(tables: Tables, style: string, row: string): number {
  return numberOf(cellOf(tables, `polls-${style}`, [row], 'CPU µs per poll'))
}

const OWN_TOKENS = 'ours, lived-in, 10,000 clusters'
const SHARED_TOKEN = 'ours, lived-in, shared token, 10,000 clusters'
/** What sums are made with: Flux's request, a token each. */
const COST = (tables: Tables): number => pollCost(tables, 'new', OWN_TOKENS)

function pollCosts(tables: Tables): Table {
  const row = (what: string, style: string, server: string): string[] => {
    const cost = pollCost(tables, style, server)
    return [what, `${cost.toFixed(0)} µs`, count(rounded(1e6 / cost))]
  }
  return {
    head: ['', 'CPU per poll', 'polls a second on one core'],
    rows: [
      row('a connection for every poll, as Flux makes them', 'new', SHARED_TOKEN),
      row('the same, with a token for each cluster', 'new', OWN_TOKENS),
      row('the same, over TLS that the service speaks itself', 'tls', OWN_TOKENS),
      row('connections kept by a proxy in front', 'kept', OWN_TOKENS),
    ],
  }
}

function load(tables: Tables): Table {
  const cost = COST(tables)
  return {
    head: ['clusters', 'polls a second', `of one core, at ${cost.toFixed(0)} µs`, 'replicas for polls'],
    rows: SIZES.map((size) => {
      const polls = size * POLLS_A_SECOND
      const share = (polls * cost) / 1e4
      const needed = Math.max(2, Math.ceil(share / 50) + 1)
      return [
        count(size),
        count(polls),
        `${share < 10 ? share.toPrecision(2) : share.toFixed(0)} %`,
        `${needed}${size === 1000 ? ', for availability' : ''}`,
      ]
    }),
  }
}

function scale(tables: Tables, what: string, size: number | string): string {
  return (
    findCell(tables, 'scale', [what, typeof size === 'string' ? size : count(size)], 'measured') ??
    'not measured'
  )
}

function memory(tables: Tables): Table {
  return {
    head: [
      'clusters',
      'after the start',
      'when all have polled',
      'peak of a change of all',
      'request, limit',
    ],
    rows: SIZES.map((size) => {
      const [started = '', polled = '', changed = ''] = [STARTED, POLLED, CHANGED].map((what) =>
        scale(tables, what, size),
      )
      const peak =
        size > 100_000 ? (numberOf(scale(tables, CHANGED, LARGE)) * size) / 100_000 : numberOf(changed)
      const request = numberOf(polled) * RESERVE
      const limit = Math.max(2 * request, peak * FOR_HEAP)
      return [count(size), started, polled, changed, `${quantityOf(request)}, ${quantityOf(limit)}`]
    }),
  }
}

function starts(tables: Tables): Table {
  return {
    head: ['clusters', 'from SQLite', 'from PostgreSQL'],
    rows: SIZES.map((size) => [
      count(size),
      ...['SQLite', 'PostgreSQL'].map((store) => scale(tables, `start from ${store}`, size)),
    ]),
  }
}

function disk(tables: Tables): Table {
  return {
    head: ['clusters', 'SQLite file', 'volume'],
    rows: SIZES.map((size) => [count(size), scale(tables, 'SQLite file', size), VOLUMES[size] ?? '']),
  }
}

function million(tables: Tables): Table {
  const size = '1,000,000'
  const polls = 1e6 * POLLS_A_SECOND
  const cores = [pollCost(tables, 'kept', OWN_TOKENS), COST(tables)].map((cost) => (polls * cost) / 1e6)
  const [least = 0, most = 0] = cores
  const megabytes = (polls * ANSWER_KB) / 1000
  return {
    head: ['', 'from', ''],
    rows: [
      ['polls a second', '1,000,000 × 3 ÷ 300', count(polls)],
      [
        'processor',
        `${count(polls)} × ${COST(tables).toFixed(0)} µs, less over kept connections`,
        `${least.toFixed(1)} to ${most.toFixed(1)} cores`,
      ],
      [
        'replicas',
        `${most.toFixed(1)} cores at 50 % each, and one in reserve`,
        String(Math.ceil(most / 0.5) + 1),
      ],
      [
        'bandwidth',
        `${count(polls)} × ${ANSWER_KB} kB`,
        `${rounded(megabytes)} MB/s, ${rounded(megabytes * 8)} Mbit/s`,
      ],
      [
        'connections',
        'Flux makes one for each poll',
        `${count(polls)} handshakes a second at the load balancer: the first thing to measure`,
      ],
      [
        'memory of a replica',
        '*measured*',
        `${scale(tables, STARTED, size)} after the start, ${scale(tables, POLLED, size)} when all have polled`,
      ],
      [
        'memory of a writer',
        `${scale(tables, CHANGED, LARGE)} peak at ${LARGE} *measured*, for a change of all`,
        'ten times as much: change by tiers instead',
      ],
      ['start of a replica', '*measured*', scale(tables, 'start from SQLite', size)],
      [
        'database',
        `${scale(tables, 'SQLite file', LARGE)} at ${LARGE} *measured* in SQLite`,
        'ten times as much, and history',
      ],
      ['changes', 'each cluster changed once a day by itself', '12 commits a second'],
      ['visibility', 'replica within 250 ms; cluster at its next poll', '150 s on average, 300 s at most'],
    ],
  }
}

/** All attacks of a role at once, and the bare server beside it. */
function attacks(tables: Tables): Table {
  const head = tables.attacks?.head ?? []
  const rows = tables.attacks?.rows ?? []
  const together = rows.filter(([attacker, attack]) => attacker === 'nobody' || attack === 'mix')
  const bareP99 = (attacker = ''): string =>
    findCell(tables, 'attacks', [attacker, 'mix, of a bare node:http server'], 'p99 ms') ?? ''
  return {
    head: [...head.slice(0, 5), 'p99 ms of a bare node:http', ...head.slice(5)],
    rows: together.map((row) => [
      ...row.slice(0, 5),
      row[1] === 'mix' ? bareP99(row[0]) : '',
      ...row.slice(5),
    ]),
  }
}

/** By size, as runs of one size come in any order. */
function sizes(tables: Tables): Table {
  const { head, rows } = tables.scale ?? { head: [], rows: [] }
  return { head, rows: rows.toSorted((a, b) => numberOf(a[1] ?? '') - numberOf(b[1] ?? '')) }
}

/** What each panel shows, in the order in which a reader sees them. */
function panelsOf(dashboard: string): Table {
  const file = join(ROOT, 'deploy/chart/dashboards', `${dashboard}.json`)
  const { panels } = JSON.parse(readFileSync(file, 'utf8')) as { panels: Panel[] }
  const inOrder = panels.toSorted((a, b) => a.gridPos.y - b.gridPos.y || a.gridPos.x - b.gridPos.x)
  return {
    head: ['panel', 'shows', 'metrics'],
    rows: inOrder.map(({ title, description = '', targets }) => {
      const names = targets.flatMap(
        ({ expr }) => expr.match(/\b(?:flux_resourceset|nodejs|process)_\w+/g) ?? [],
      )
      const metrics = new Set(names.map((name) => `\`${name.replace(/_bucket$/, '')}\``))
      return [title, description, [...metrics].join(', ')]
    }),
  }
}

interface Panel {
  readonly title: string
  readonly description?: string
  readonly gridPos: { readonly x: number; readonly y: number }
  readonly targets: readonly { readonly expr: string }[]
}

/** Tables by the name in their marker: measured ones as they are, and these. */
export const DERIVED: Readonly<Record<string, (tables: Tables) => Table>> = {
  limits: () => LIMITS,
  'dashboard-fleet': () => panelsOf('fleet'),
  'dashboard-service': () => panelsOf('service'),
  'sizing-polls': pollCosts,
  'sizing-load': load,
  'sizing-memory': memory,
  'sizing-starts': starts,
  'sizing-disk': disk,
  'growth-million': million,
  'attacks-together': attacks,
  scale: sizes,
}

function megabytes(what: string, size: number): (tables: Tables) => string {
  return (tables) => `${count(rounded(numberOf(scale(tables, what, size))))} MB`
}

/** Single figures by the name in their marker. */
export const FIGURES: Readonly<Record<string, (tables: Tables) => string>> = {
  'memory of 1,000': megabytes(STARTED, 1000),
  'memory of 10,000': megabytes(STARTED, 10_000),
  'memory of 100,000': megabytes(STARTED, 100_000),
  'peak of a change of 100,000': megabytes(CHANGED, 100_000),
  'file of 100,000': megabytes('SQLite file', 100_000),
  'cores for 100,000': (tables) => {
    const cores = (100_000 * POLLS_A_SECOND * COST(tables)) / 1e6
    return cores < 1 ? `${Math.round(cores * 100)} % of a core` : `${Math.ceil(cores)} cores`
  },
  'commits a second': (tables) => {
    const rates = (tables['replica-writes']?.rows ?? [])
      .filter(([name]) => name?.startsWith('100000 clusters, PostgreSQL'))
      .map(([, , rate = '']) => numberOf(rate))
    return `${Math.min(...rates)} to ${Math.max(...rates)} a second`
  },
  'commits a second of one': (tables) =>
    `${cellOf(tables, 'replica-writes', ['100000 clusters, PostgreSQL', '1'], 'writes a second')} a second`,
  'seen by a replica': (tables) => {
    const medians = (tables['replica-writes']?.rows ?? [])
      .map((row) => Number(row[6] ?? ''))
      .filter((value) => value > 0)
    const worst = (tables['replica-writes']?.rows ?? []).map((row) => Number(row[7] ?? ''))
    return `${Math.floor(Math.min(...medians))} to ${Math.ceil(Math.max(...medians))} ms at the median and ${Math.ceil(Math.max(...worst))} ms at worst`
  },
  'batch of 25,000': (tables) => {
    const seconds = (tables.changes?.rows ?? [])
      .filter(([work]) => work?.startsWith('batch:'))
      .map(([, median = '']) => numberOf(median) / 1000)
    return `${Math.min(...seconds).toFixed(1)} to ${Math.max(...seconds).toFixed(1)} s`
  },
}
