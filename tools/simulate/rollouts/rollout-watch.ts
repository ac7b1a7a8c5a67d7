// Watches every rollout of a service from outside: each step is judged, and each answer compared with what it should be.
import type { ClusterAnswer, Send } from '../exchange.ts'
import { Oracle } from '../oracle.ts'
import { FleetLog, type LoggedRevision, type ReadLog } from './fleet-log.ts'
import { SentEvidence } from './sent-evidence.ts'
import { type ActiveAt, type LoggedRollout, StagedDocuments } from './staged-documents.ts'
import { type JudgedSpec, type JudgeOptions, type Step, StepJudge } from './step-judge.ts'

export interface WatchOptions extends Pick<JudgeOptions, 'reactionMs' | 'intervalMs'> {
  /** DNS names of the clusters by their ids. */
  readonly names: ReadonlyMap<string, string>
  readonly clock: () => number
  /** Asks whichever process of the service lives; undefined when none does. */
  readonly get: (path: string) => Promise<ClusterAnswer>
}

/** So many problems are kept. */
const MAX_PROBLEMS = 50

export class RolloutWatch {
  readonly documents: StagedDocuments
  readonly evidence: SentEvidence
  /** Knows what each cluster is to be served at the revision that an answer names. */
  readonly oracle: Oracle
  readonly log: FleetLog
  readonly #judge: StepJudge
  readonly #problems: string[] = []
  readonly #rollouts = new Map<string, LoggedRollout>()
  /** Rollouts are judged with the plan that they had before the step: the last one drops it. */
  readonly #plans = new Map<string, ActiveAt>()
  readonly #setAside = new Set<string>()
  #steps = 0

  constructor({ names, clock, get, ...options }: WatchOptions) {
    this.evidence = new SentEvidence(clock)
    this.log = new FleetLog(readLogBy(get), (revision) => this.#take(revision))
    this.documents = new StagedDocuments(this.log, new Map([...names].map(([id, dns]) => [dns, id])))
    this.#judge = new StepJudge({ evidence: this.evidence, names, ...options })
    this.oracle = new Oracle({
      expect: (dns, endpoint, { revision = 0 }) => this.documents.expect(dns, endpoint, revision),
      stateAt: (dns, endpoint, revision) => this.documents.stateAt(dns, endpoint, revision),
    })
  }

  /** Wrong steps; the first of them. */
  get problems(): readonly string[] {
    return this.#problems
  }

  /** How many steps were judged. */
  get steps(): number {
    return this.#steps
  }

  /** How many clusters were set aside at some time. */
  get setAside(): number {
    return this.#setAside.size
  }

  listenTo(send: Send): Send {
    return this.evidence.listenTo(send)
  }

  /** A rollout as the log has it so far. */
  rollout(id: string): LoggedRollout | undefined {
    return this.#rollouts.get(id)
  }

  #take(made: LoggedRevision): void {
    const active = new Map([...this.documents.activeAt(made.revision)].map((each) => [each.rollout.id, each]))
    for (const { type, id, after } of made.changes) {
      if (type !== 'rollouts' || after === null) continue
      const rollout = after as unknown as LoggedRollout
      const before = this.#rollouts.get(id)
      const plan = active.get(id) ?? this.#plans.get(id)
      this.#rollouts.set(id, rollout)
      for (const cluster of rollout.set_aside) this.#setAside.add(cluster)
      if (before && plan) this.#judgeStep(made, before, rollout, plan)
      this.#judge.noteOpening({ made, after: rollout, ...(before && { before }) })
      if (plan) this.#plans.set(id, plan)
    }
  }

  #judgeStep(made: LoggedRevision, before: LoggedRollout, after: LoggedRollout, active: ActiveAt): void {
    const { askedAt, changes } = this.documents.askedFor(active)
    const { spec } = after as unknown as { readonly spec: { readonly waves: readonly JudgedSpec[] } }
    const components = changes.map(({ id }) => id)
    const step: Step = { made, before, after, active, askedAt, specs: spec.waves, components }
    this.#steps++
    const problems = this.#judge.judge(step)
    this.#problems.push(...problems.slice(0, MAX_PROBLEMS - this.#problems.length))
  }
}

function readLogBy(get: WatchOptions['get']): ReadLog {
  return async (since) => {
    const answer = await get(`/log?since=${since}`)
    return answer.kind === 'answer' && answer.status === 200 ? answer.body : undefined
  }
}
