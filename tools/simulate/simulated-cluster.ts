// One cluster as its service sees it: a state machine that says what to send next, and takes the answers.

import { POLL_BASE } from '../../src/base/urls.ts'
import { EventOutbox, type ToldFailure } from './event-outbox.ts'
import type { AckRequest, ClusterAnswer, ClusterRequest, FluxEvent } from './exchange.ts'
import { resourceSetEvent } from './flux-events.ts'
import { PollSchedule } from './poll-schedule.ts'
import { type ComponentTruth, SimulatedComponents } from './simulated-components.ts'
import { type EndpointTruth, SimulatedEndpoint } from './simulated-endpoint.ts'

/** Something that happens to a cluster. */
export type Fault =
  /** A component fails from now on; the first one unless named. */
  | { readonly kind: 'fail'; readonly component?: string }
  /** A component works again; all of them unless named. */
  | { readonly kind: 'recover'; readonly component?: string }
  /** The API server refuses what a ResourceSet applies, or accepts it again. */
  | { readonly kind: 'reject' | 'accept'; readonly endpoint: string }
  /** The cluster is cut off: it goes on inside, and sends nothing. */
  | { readonly kind: 'away' }
  /** It can be reached again, or its operator restarted: everything is polled at once. */
  | { readonly kind: 'back' | 'restart' }

export interface PlannedFault {
  readonly at: number
  readonly fault: Fault
}

export interface Behaviour {
  /** Milliseconds from an answer until it is applied. */
  readonly applyMs: number
  /** Milliseconds from the apply until a component is ready, or has failed. */
  readonly readyMs: number
  /** Milliseconds until something that failed is tried again. */
  readonly retryMs: number
  /** In order of time. */
  readonly plan: readonly PlannedFault[]
  /** Whether an event is lost before anyone sees it. */
  readonly losesEvent: () => boolean
}

const USUAL: Behaviour = {
  applyMs: 500,
  readyMs: 4000,
  retryMs: 60_000,
  plan: [],
  losesEvent: () => false,
}

export interface ClusterOptions {
  readonly dns: string
  readonly token: string
  readonly endpoints: readonly string[]
  /** The endpoint whose inputs are acknowledged one by one. */
  readonly componentEndpoint?: string
  /** Milliseconds between polls. */
  readonly interval: number
  /** When it polls for the first time; 0 unless given. */
  readonly startsAt?: number
  /** Whether it has been there for long, and has already applied what it is served first. */
  readonly isSettled?: boolean
  readonly behaviour?: Partial<Behaviour>
}

/** What is so in a cluster, for comparison with what the service believes. */
export interface ClusterTruth {
  readonly dns: string
  readonly isAway: boolean
  /** What it says of its interval, in milliseconds. */
  readonly everyMs: number
  /** Requests without an answer so far. */
  readonly underWay: number
  /** When the service last heard a poll or a report, or may have: a connection that breaks leaves that open. */
  readonly lastHeardAt: number | undefined
  readonly endpoints: Readonly<Record<string, EndpointTruth>>
  readonly components: Readonly<Record<string, ComponentTruth>>
  /** The report that it would send now, and the last one that the service confirmed. */
  readonly report: string
  readonly confirmedReport: string | undefined
  /** When the confirmed one was sent. */
  readonly confirmedSentAt: number | undefined
  /** What the service was told fails, and not that it works again. */
  readonly toldFailures: readonly (ToldFailure & {
    /** Whether it was reported ready for the first time since, which may have reached the service before the failure did. */
    readonly isOvercome: boolean
  })[]
  readonly lostEvents: number
}

/**
 * Time is what the caller says it is, in milliseconds, and never goes back. Whenever `dueAt` has come the caller takes the
 * requests, sends them, and hands each answer over; what happens inside the cluster happens at its own times, also
 * between two calls.
 */
export class SimulatedCluster {
  readonly dns: string
  readonly #token: string
  readonly #every: number
  readonly #behaviour: Behaviour
  readonly #componentEndpoint: string
  readonly #endpoints: readonly SimulatedEndpoint[]
  readonly #components: SimulatedComponents
  readonly #outbox = new EventOutbox()
  readonly #ack: PollSchedule
  /** What a settled cluster reports is known once each endpoint was served. */
  #isReportKnown: boolean
  #plan: readonly PlannedFault[]
  #report: string
  #confirmedReport: string | undefined
  /** By component, the entry of the confirmed report, and when it was first confirmed: that overcomes failures from before. */
  #readySince: ReadonlyMap<string, { readonly entry: string; readonly at: number }> = new Map()
  #isAway = false
  #underWay = 0
  #lastHeardAt: number | undefined
  #ackSentAt = 0
  #confirmedSentAt: number | undefined

  constructor(options: ClusterOptions) {
    const { dns, token, endpoints, interval, startsAt = 0, isSettled = false } = options
    const { componentEndpoint = 'platform-components' } = options
    this.dns = dns
    this.#token = token
    this.#every = Math.max(1, Math.round(interval / 1000))
    this.#behaviour = { ...USUAL, ...options.behaviour }
    this.#plan = this.#behaviour.plan
    this.#componentEndpoint = componentEndpoint
    this.#endpoints = endpoints.map(
      (name) => new SimulatedEndpoint(name, new PollSchedule(startsAt, interval), this.#behaviour, isSettled),
    )
    this.#components = new SimulatedComponents(this.#behaviour, (event, at) => this.#post(event, at))
    this.#ack = new PollSchedule(isSettled ? Number.POSITIVE_INFINITY : startsAt, interval)
    this.#isReportKnown = !isSettled
    this.#report = this.#buildReport()
  }

  /** When the cluster wants to be called next. */
  get dueAt(): number {
    return Math.min(this.#happensAt, this.#speaksAt)
  }

  /** Lets time pass until now, and returns what the cluster sends at this moment. */
  requestsAt(now: number): ClusterRequest[] {
    this.#advance(now)
    if (this.#isAway) return []
    const requests: ClusterRequest[] = []
    for (const { name, schedule } of this.#endpoints) {
      const { dueAt } = schedule
      if (dueAt > now) continue
      schedule.started()
      requests.push({ kind: 'poll', endpoint: name, ...this.#addressed(name, dueAt) })
    }
    const { dueAt } = this.#ack
    if (dueAt <= now) {
      this.#ack.started()
      this.#ackSentAt = now
      requests.push({ kind: 'ack', ...this.#addressed(`ack?${this.#report}`, dueAt) })
    }
    for (const posting of this.#outbox.take(now)) {
      requests.push({ kind: 'event', ...this.#addressed('events', posting.dueAt), ...posting })
    }
    this.#underWay += requests.length
    return requests
  }

  /** Takes what became of a request. */
  answered(request: ClusterRequest, answer: ClusterAnswer, now: number): void {
    this.#advance(now)
    this.#underWay--
    const isHeard = answer.kind === 'answer' || !answer.isInjected
    if (isHeard && request.kind !== 'event') this.#lastHeardAt = now
    if (request.kind === 'event') this.#outbox.answered(request, answer, now)
    else if (request.kind === 'ack') this.#ackAnswered(request, answer, now)
    else this.#endpoints.find(({ name }) => name === request.endpoint)?.answered(answer, now)
  }

  /** Makes something happen now. */
  tell(fault: Fault, now: number): void {
    this.#advance(now)
    this.#happen(fault, now)
    this.#renewReport(now)
  }

  truth(now: number): ClusterTruth {
    this.#advance(now)
    return {
      dns: this.dns,
      isAway: this.#isAway,
      everyMs: this.#every * 1000,
      underWay: this.#underWay,
      lastHeardAt: this.#lastHeardAt,
      endpoints: Object.fromEntries(this.#endpoints.map((endpoint) => [endpoint.name, endpoint.truth()])),
      components: this.#components.states(),
      report: this.#report,
      confirmedReport: this.#confirmedReport,
      confirmedSentAt: this.#confirmedSentAt,
      toldFailures: this.#outbox.toldFailures.map((failure) => ({
        ...failure,
        isOvercome:
          failure.kind !== 'ResourceSet' && failure.at < (this.#readySince.get(failure.name)?.at ?? 0),
      })),
      lostEvents: this.#outbox.lost,
    }
  }

  /** When something happens inside the cluster. */
  get #happensAt(): number {
    let at = Math.min(this.#plan[0]?.at ?? Number.POSITIVE_INFINITY, this.#components.dueAt)
    for (const { appliesAt } of this.#endpoints) at = Math.min(at, appliesAt)
    return at
  }

  get #speaksAt(): number {
    if (this.#isAway) return Number.POSITIVE_INFINITY
    let at = Math.min(this.#ack.dueAt, this.#outbox.dueAt)
    for (const { schedule } of this.#endpoints) at = Math.min(at, schedule.dueAt)
    return at
  }

  /** Everything in the order in which it happens, however much time has passed. */
  #advance(now: number): void {
    for (let at = this.#happensAt; at <= now; at = this.#happensAt) {
      for (const endpoint of this.#endpoints) this.#apply(endpoint, at)
      this.#components.advance(at)
      const [next, ...later] = this.#plan
      if (next && next.at <= at) {
        this.#plan = later
        this.#happen(next.fault, at)
      }
      this.#renewReport(at)
    }
  }

  #apply(endpoint: SimulatedEndpoint, at: number): void {
    const attempt = endpoint.advance(at)
    if (!attempt) return
    const { name } = endpoint
    if (attempt.kind === 'applied' && name === this.#componentEndpoint)
      this.#components.apply(attempt.inputs, at, attempt.isNews)
    if (attempt.kind === 'rejected' || attempt.isNews)
      this.#post(resourceSetEvent(name, attempt.kind === 'rejected', at), at)
  }

  #happen(fault: Fault, at: number): void {
    const { kind } = fault
    if (kind === 'fail') this.#components.fail(fault.component, at)
    else if (kind === 'recover') this.#components.recover(fault.component, at)
    else if (kind === 'reject' || kind === 'accept') {
      this.#endpoints.find(({ name }) => name === fault.endpoint)?.reject(kind === 'reject', at)
    } else {
      this.#isAway = kind === 'away'
      if (kind !== 'away') this.#pollEverything(at)
    }
  }

  #pollEverything(at: number): void {
    for (const { schedule } of this.#endpoints) schedule.pollNow(at)
    if (this.#isReportKnown) this.#ack.pollNow(at)
  }

  #post(event: FluxEvent, at: number): void {
    if (this.#isAway || this.#behaviour.losesEvent()) this.#outbox.lose()
    else this.#outbox.add(event, at)
  }

  /** A changed URL is polled at once. */
  #renewReport(at: number): void {
    if (!this.#isReportKnown && this.#endpoints.some((endpoint) => !endpoint.truth().applied)) return
    const report = this.#buildReport()
    if (report === this.#report && this.#isReportKnown) return
    this.#isReportKnown = true
    this.#report = report
    this.#ack.pollNow(at)
  }

  #buildReport(): string {
    const marks = this.#endpoints.flatMap((endpoint) => endpoint.entries())
    return ['v=1', `every=${this.#every}`, ...marks, ...this.#components.entries()].sort().join('&')
  }

  #ackAnswered({ path }: AckRequest, answer: ClusterAnswer, now: number): void {
    const isConfirmed = answer.kind === 'answer' && answer.status === 200
    if (isConfirmed) {
      const report = path.slice(path.indexOf('?') + 1)
      if (report !== this.#confirmedReport) this.#renewReady(report, now)
      this.#confirmedReport = report
      this.#confirmedSentAt = this.#ackSentAt
    }
    this.#ack.ended(isConfirmed ? 'succeeded' : answer.kind === 'dropped' ? 'dropped' : 'failed', now)
  }

  #renewReady(report: string, now: number): void {
    const known = this.#readySince
    this.#readySince = new Map(
      new URLSearchParams(report).getAll('ready').map((entry) => {
        const [id = ''] = entry.split(':')
        const before = known.get(id)
        return [id, before?.entry === entry ? before : { entry, at: now }]
      }),
    )
  }

  #addressed(path: string, dueAt: number): Pick<ClusterRequest, 'dns' | 'token' | 'path' | 'dueAt'> {
    return { dns: this.dns, token: this.#token, path: `${POLL_BASE}/${this.dns}/${path}`, dueAt }
  }
}
