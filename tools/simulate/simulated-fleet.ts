// Many simulated clusters on one calendar: sends what is due, at most so much at once, and hands the answers over.

import type { ClusterAnswer, ClusterRequest, Send } from './exchange.ts'
import { FleetFigures } from './fleet-figures.ts'
import type { Oracle } from './oracle.ts'
import type { Fault, SimulatedCluster } from './simulated-cluster.ts'
import { TimerWheel } from './timer-wheel.ts'

const SLOT_MS = 5

export interface FleetOptions {
  readonly clusters: readonly SimulatedCluster[]
  readonly send: Send
  /** Checks every answer to a poll. */
  readonly oracle?: Oracle
  /** Milliseconds. */
  readonly clock: () => number
  /** Requests under way at once; others wait their turn. */
  readonly concurrency?: number
}

/** A request, and who sends it. */
interface Job {
  readonly cluster: SimulatedCluster
  readonly request: ClusterRequest
}

export class SimulatedFleet {
  readonly figures = new FleetFigures()
  readonly #options: FleetOptions
  readonly #concurrency: number
  readonly #calendar: TimerWheel<SimulatedCluster>
  #queue: Job[] = []
  /** The first in the queue that was not sent: taking jobs out one by one would move all others each time. */
  #next = 0
  readonly #underWay = new Set<Promise<void>>()

  constructor(options: FleetOptions) {
    this.#options = options
    this.#concurrency = options.concurrency ?? 1000
    this.#calendar = new TimerWheel(SLOT_MS, options.clock())
    for (const cluster of options.clusters) this.#calendar.set(cluster, cluster.dueAt)
  }

  /** When `step` has something to do. */
  get dueAt(): number {
    return this.#calendar.dueAt
  }

  /** Sends everything that is due, without waiting for answers. */
  step(): void {
    const now = this.#options.clock()
    for (const cluster of this.#calendar.take(now)) {
      for (const request of cluster.requestsAt(now)) this.#queue.push({ cluster, request })
      this.#calendar.set(cluster, cluster.dueAt)
    }
    this.#sendQueued()
  }

  /** Makes something happen to one of the clusters now. */
  tell(cluster: SimulatedCluster, fault: Fault): void {
    cluster.tell(fault, this.#options.clock())
    this.#calendar.set(cluster, cluster.dueAt)
  }

  /** Waits until nothing is under way. */
  async settle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
  }

  #sendQueued(): void {
    while (this.#underWay.size < this.#concurrency && this.#next < this.#queue.length) {
      const job = this.#queue[this.#next++] as Job
      const done = this.#run(job).finally(() => {
        this.#underWay.delete(done)
        this.#sendQueued()
      })
      this.#underWay.add(done)
    }
    if (this.#next < this.#queue.length) return
    this.#queue = []
    this.#next = 0
  }

  async #run({ cluster, request }: Job): Promise<void> {
    const { send, clock } = this.#options
    const sentAt = clock()
    const answer = await send(request)
    const now = clock()
    this.figures.count(request, answer, { sentAt, answeredAt: now })
    cluster.answered(request, answer, now)
    this.#calendar.set(cluster, cluster.dueAt)
    await this.#check(request, answer)
  }

  async #check(request: ClusterRequest, answer: ClusterAnswer): Promise<void> {
    if (request.kind !== 'poll' || answer.kind !== 'answer' || answer.status !== 200) return
    const problems = await this.#options.oracle?.check(request.dns, request.endpoint, answer)
    if (problems && problems.length > 0) this.figures.wrong(request, problems)
  }
}

/** Lets a fleet run on the clock of this machine, until the signal. What is under way then is waited for. */
export async function runFleet(fleet: SimulatedFleet, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const ticker = setInterval(() => fleet.step(), SLOT_MS)
  signal.addEventListener('abort', () => resolve(), { once: true })
  if (signal.aborted) resolve()
  await promise
  clearInterval(ticker)
  await fleet.settle()
}
