// Compares what a service says of every simulated cluster with what is so there.
import { STATUS_PAGES } from '../../src/api/limits.ts'
import type { ClusterStatus, FleetStatus, StatusLine } from '../../src/api/status-schema.ts'
import type { ClusterAnswer } from './exchange.ts'
import {
  type Between,
  isPartial,
  isSettled,
  judgeRow,
  judgeStatus,
  type Moment,
  type Standing,
  standingOf,
} from './judge-status.ts'
import type { SimulatedCluster } from './simulated-cluster.ts'

export interface StatusCheckOptions {
  /** By the id that the service knows them by. */
  readonly clusters: ReadonlyMap<string, SimulatedCluster>
  readonly get: (path: string) => Promise<ClusterAnswer>
  /** Milliseconds. */
  readonly clock: () => number
}

export interface WrongStatus {
  readonly cluster: string
  readonly problems: readonly string[]
  /** What the service said, and what was so. */
  readonly said: unknown
  readonly truth: unknown
}

/** Plain data, for people and programs. */
export interface StatusCheckSummary {
  readonly checks: number
  /** Rows of lists, and whole statuses of clusters, of all checks. */
  readonly rows: number
  readonly statuses: number
  /** Rows of clusters of which nothing may look worse than good. */
  readonly settled: number
  /** Rows that are healthy by the last report, while a component fails and its event was lost or held back. */
  readonly untold_failures: number
  readonly wrong_statuses: number
  readonly wrong: readonly WrongStatus[]
}

/** Up to so many clusters the whole status of each is read; beyond, that of some, and of those with a surprising row. */
const MAX_STATUSES = 2000
const SAMPLE = 500
const AT_ONCE = 8
/** So many wrong statuses are kept with their details. */
const MAX_DETAILS = 20

export class StatusCheck {
  readonly #options: StatusCheckOptions
  readonly #wrong: WrongStatus[] = []
  /** Whether all pages of the last list could be read. */
  #isListed = false
  #counts = { checks: 0, rows: 0, statuses: 0, settled: 0, untold_failures: 0, wrong_statuses: 0 }

  constructor(options: StatusCheckOptions) {
    this.#options = options
  }

  get summary(): StatusCheckSummary {
    return { ...this.#counts, wrong: this.#wrong }
  }

  /** Compares all clusters once, while they go on. */
  async run(): Promise<void> {
    this.#counts.checks++
    const { clusters } = this.#options
    const surprising = await this.#checkRows()
    const step = clusters.size <= MAX_STATUSES ? 1 : Math.floor(clusters.size / SAMPLE)
    const chosen = [...clusters.keys()].filter((id, i) => i % step === 0 || surprising.has(id))
    const queue = chosen.values()
    const work = async (): Promise<void> => {
      for (const id of queue) await this.#checkStatus(id, surprising.get(id))
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
  }

  /** Returns the rows that are wrong, unless the clusters poll only some of their endpoints. */
  async #checkRows(): Promise<Map<string, WrongRow>> {
    const { clusters } = this.#options
    const before = new Map([...clusters.keys()].map((id) => [id, standingOf(this.#momentOf(id))]))
    const missing = new Set(clusters.keys())
    const surprising = new Map<string, WrongRow>()
    for await (const row of this.#readRows()) {
      const standing = before.get(row.cluster)
      if (!standing || !missing.delete(row.cluster)) continue
      const moment = this.#momentOf(row.cluster)
      const between = [standing, standingOf(moment)] as const
      this.#count(row, between)
      if (judgeRow(row, between).length > 0) surprising.set(row.cluster, { row, between, moment })
    }
    if (this.#isListed) for (const id of missing) this.#found(id, ['no row'], null, this.#momentOf(id))
    return surprising
  }

  #count({ health }: StatusLine, between: Between<Standing>): void {
    this.#counts.rows++
    if (isSettled(between)) this.#counts.settled++
    if (health === 'healthy' && between.every(({ hasUntoldFailure }) => hasUntoldFailure))
      this.#counts.untold_failures++
  }

  async *#readRows(): AsyncGenerator<StatusLine> {
    const { max } = STATUS_PAGES
    this.#isListed = false
    for (let offset = 0; !this.#isListed; offset += max) {
      const page = await this.#read<FleetStatus>(`/status?limit=${max}&offset=${offset}`)
      if (!page) return
      yield* page.clusters
      this.#isListed = offset + max >= page.total
    }
  }

  async #checkStatus(id: string, wrongRow: WrongRow | undefined): Promise<void> {
    const before = this.#momentOf(id)
    const status = await this.#read<ClusterStatus>(`/clusters/${encodeURIComponent(id)}/status`)
    if (!status) return
    this.#counts.statuses++
    const after = this.#momentOf(id)
    const { transitions: _, ...said } = status
    this.#found(id, judgeStatus(status, [before, after]), said, after)
    if (!wrongRow) return
    const { row, between, moment } = wrongRow
    this.#found(id, judgeRow(row, between, isPartial(status, moment.truth)), row, moment)
  }

  #momentOf(id: string): Moment {
    const now = this.#options.clock()
    return { truth: (this.#options.clusters.get(id) as SimulatedCluster).truth(now), now }
  }

  /** What cannot be read is wrong, too. */
  async #read<T>(path: string): Promise<T | undefined> {
    const answer = await this.#options.get(path)
    if (answer.kind === 'answer' && answer.status === 200) return JSON.parse(answer.body) as T
    const said = answer.kind === 'answer' ? `${answer.status} ${answer.body}` : answer.reason
    this.#found(path, ['no answer with 200'], said)
    return undefined
  }

  #found(cluster: string, problems: readonly string[], said: unknown, moment?: Moment): void {
    if (problems.length === 0) return
    this.#counts.wrong_statuses++
    if (this.#wrong.length >= MAX_DETAILS) return
    this.#wrong.push({ cluster, problems, said, truth: moment ? describe(moment) : null })
  }
}

interface WrongRow {
  readonly row: StatusLine
  readonly between: Between<Standing>
  readonly moment: Moment
}

/** What matters of the truth beside a status: what is not well, and what the service can know. */
function describe({ truth, now }: Moment): Record<string, unknown> {
  const { isAway, underWay, lastHeardAt, toldFailures, report, confirmedReport } = truth
  const bad = Object.entries(truth.components).filter(
    ([, { state, isReached }]) => state !== 'ready' || !isReached,
  )
  return {
    isAway,
    underWay,
    heardSecondsAgo: lastHeardAt === undefined ? null : (now - lastHeardAt) / 1000,
    isReportConfirmed: report === confirmedReport,
    endpoints: truth.endpoints,
    components: Object.fromEntries(bad),
    toldFailures,
  }
}
