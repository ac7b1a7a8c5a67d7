// Whether a step of a rollout was right: judged by what the clusters had sent by then, not by what the service made of it.
import type { LoggedRevision } from './fleet-log.ts'
import type { Reached, SentEvidence } from './sent-evidence.ts'
import type { ActiveAt, LoggedRollout, LoggedWave } from './staged-documents.ts'

/** One wave as it was asked for, as far as it is judged. */
export interface JudgedSpec {
  readonly max_concurrent?: number
  readonly deadline_s?: number
  readonly gates?: {
    readonly served_percent?: number
    readonly applied_percent?: number
    readonly healthy_percent?: number
    readonly failures?: number | string
    readonly soak_s?: number
  }
}

/** A rollout at the revision that a step made, and what it was before. */
export interface Step {
  readonly made: LoggedRevision
  readonly before: LoggedRollout
  readonly after: LoggedRollout
  readonly active: ActiveAt
  /** The revision since when the rollout is about what it is about now: evidence from before says nothing. */
  readonly askedAt: number
  readonly specs: readonly JudgedSpec[]
  /** Ids of the components that it changes. */
  readonly components: readonly string[]
}

export interface JudgeOptions {
  readonly evidence: SentEvidence
  /** DNS names of clusters by their ids. */
  readonly names: ReadonlyMap<string, string>
  /** Milliseconds within which a failure that was told has to stop a rollout. */
  readonly reactionMs: number
  /** How often a cluster polls, in milliseconds. */
  readonly intervalMs: number
}

/** The service reads its clock in whole milliseconds, and that clock may drift from ours. */
const TOLERANCE_MS = 250
/** A cluster counts as absent when it was not answered for so many of its intervals. */
const OFFLINE_INTERVALS = 3
const DEFAULT_GATES = { applied_percent: 100, failures: 0 }

export class StepJudge {
  readonly #options: JudgeOptions

  constructor(options: JudgeOptions) {
    this.#options = options
  }

  /** Returns what is wrong with a step. */
  judge(step: Step): string[] {
    const { before, after, made } = step
    const problems = [...this.#judgeOrder(step)]
    const isOwn = made.actor === `rollout/${after.id}`
    for (const [i, wave] of after.waves.entries()) {
      const was = before.waves[i]
      if (!was) continue
      if (isOwn && wave.state === 'passed' && was.state !== 'passed')
        problems.push(...this.#judgePassing(step, i))
      if (wave.opened <= was.opened) continue
      problems.push(...this.#judgeOpening(step, i), ...this.#judgeFailures(step, i))
    }
    if (isOwn) problems.push(...this.#judgeSetAside(step))
    if (isOwn && after.state === 'finished' && !before.waves.every(hasEnded))
      problems.push('finished, and not every wave has passed')
    return problems.map((problem) => `${after.id} at revision ${made.revision}: ${problem}`)
  }

  *#judgeOrder({ before, after, made, askedAt }: Step): Generator<string> {
    const isAmended = made.revision === askedAt
    for (const [i, wave] of after.waves.entries()) {
      const was = before.waves[i]
      if (wave.opened > wave.members)
        yield `wave ${wave.name} has ${wave.opened} of ${wave.members} members opened`
      if (was && wave.opened < was.opened && !isAmended) yield `wave ${wave.name} was closed again`
      const earlier = after.waves.slice(0, i).find((each) => !hasEnded(each))
      const opened = wave.opened - (was?.opened ?? 0)
      if (opened > 0 && earlier && !isAmended)
        yield `wave ${wave.name} opened, and ${earlier.name} has not passed`
      if (opened > 0 && before.state === 'paused' && after.state === 'paused')
        yield `wave ${wave.name} opened while it was paused`
      if (opened > 0 && was?.opened === 0 && wave.opened_revision !== made.revision)
        yield `wave ${wave.name} says that it opened at revision ${wave.opened_revision}`
    }
  }

  /** The gates of a wave must be able to hold, and for as long as it had to soak. */
  *#judgePassing(step: Step, at: number): Generator<string> {
    const { name } = step.after.waves[at] as LoggedWave
    const { soak_s = 0, ...gates } = step.specs[at]?.gates ?? {}
    const { served_percent, applied_percent, healthy_percent } =
      Object.keys(gates).length > 0 ? gates : (DEFAULT_GATES as typeof gates)
    const members = this.#membersOf(step, at)
    const setAside = new Set(step.after.set_aside)
    const observable = members.filter(({ id }) => !setAside.has(id)).length
    const time = step.made.time + TOLERANCE_MS - soak_s * 1000
    const reached = members.map(({ id }) => this.#reached(step, at, id))
    const count = (of: keyof Reached): number => reached.filter((each) => each[of] <= time).length
    const asked = [
      ['served', 'servedAt', served_percent],
      ['applied', 'appliedAt', applied_percent],
      ['healthy', 'healthyAt', healthy_percent],
    ] as const
    for (const [word, of, percent] of asked) {
      if (percent === undefined) continue
      const needed = Math.ceil((percent * observable) / 100 - 1e-9)
      if (count(of) < needed)
        yield `wave ${name} passed with ${count(of)} of ${observable} ${word}${soak_s > 0 ? ` for ${soak_s} s` : ''}, and needs ${needed}`
    }
    if (count('servedAt') === 0) yield `wave ${name} passed, and nobody has answered`
  }

  /** Not more members may be under way than allowed. */
  *#judgeOpening(step: Step, at: number): Generator<string> {
    const wave = step.after.waves[at] as LoggedWave
    const { max_concurrent = Number.POSITIVE_INFINITY, gates } = step.specs[at] ?? {}
    const time = step.made.time + TOLERANCE_MS
    const { evidence } = this.#options
    const { components } = step
    const setAside = new Set(step.after.set_aside)
    const isHealthy = gates?.healthy_percent !== undefined
    const isServed = gates?.served_percent !== undefined && gates.applied_percent === undefined
    const needed: keyof Reached = isHealthy ? 'healthyAt' : isServed ? 'servedAt' : 'appliedAt'
    const underWay = this.#membersOf(step, at).filter(({ id, place }) => {
      if (place >= wave.opened || setAside.has(id)) return false
      if (this.#reached(step, at, id)[needed] <= time) return false
      return !evidence.mayBeFailing(this.#nameOf(id), [...components, 'platform-components'], time)
    })
    if (underWay.length > max_concurrent)
      yield `wave ${wave.name} has ${underWay.length} members under way, and ${max_concurrent} may be: ${named(underWay)}`
  }

  /** A wave does not open while more members of those before it fail than may. */
  *#judgeFailures(step: Step, at: number): Generator<string> {
    const { evidence, reactionMs } = this.#options
    const { components, made, before } = step
    const time = made.time + TOLERANCE_MS
    for (const [i, earlier] of before.waves.entries()) {
      if (earlier.opened === 0 || made.revision === step.askedAt) continue
      const failing = this.#membersOf(step, i).filter(({ id, place }) => {
        if (place >= earlier.opened) return false
        return evidence.isKnownToFail(this.#nameOf(id), components, {
          since: this.#sinceOf(step, i),
          after: Date.parse(before.retried_at ?? '') || 0,
          by: made.time - reactionMs,
          until: time,
        })
      })
      const allowed = allowedFailures(step.specs[i]?.gates?.failures ?? 0, earlier.members)
      if (failing.length > allowed)
        yield `wave ${step.after.waves[at]?.name} opened, and ${failing.length} members of ${earlier.name} fail: ${named(failing)}`
    }
  }

  /** Whom the service was answering a moment ago is not absent, and nobody is before the deadline. */
  *#judgeSetAside({ before, after, made, active, specs }: Step): Generator<string> {
    const { evidence, reactionMs, intervalMs } = this.#options
    const known = new Set(before.set_aside)
    for (const id of after.set_aside) {
      if (known.has(id)) continue
      const heard = evidence.lastHeard(this.#nameOf(id), made.time - reactionMs)
      if (made.time - heard < OFFLINE_INTERVALS * intervalMs)
        yield `${id} was set aside, and had been answered ${made.time - heard} ms before`
      // A finish names all who are absent then, before their deadlines too.
      if (after.state === 'finished') continue
      const { wave = 0 } = active.members.get(id) ?? {}
      if (after.waves[wave]?.opened === 0) yield `${id} was set aside in a wave that is not open`
      const { deadline_s = 3600 } = specs[wave] ?? {}
      const opened = this.#openedAt.get(`${after.id} ${wave}`) ?? made.time
      if (made.time + TOLERANCE_MS < opened + deadline_s * 1000)
        yield `${id} was set aside ${made.time - opened} ms after its wave opened, and has ${deadline_s} s`
    }
  }

  /** When waves opened, by the revisions that did it. */
  readonly #openedAt = new Map<string, number>()

  /** Notes when waves open, of every step and of the one that starts a rollout. */
  noteOpening({
    made,
    after,
    before,
  }: Pick<Step, 'made' | 'after'> & { readonly before?: LoggedRollout }): void {
    for (const [i, { opened }] of after.waves.entries())
      if (opened > 0 && (before?.waves[i]?.opened ?? 0) === 0)
        this.#openedAt.set(`${after.id} ${i}`, made.time)
  }

  #membersOf({ active, after }: Step, at: number): Member[] {
    const members: Member[] = []
    for (const [id, { wave, place }] of active.members)
      if (wave === at && !after.skipped.includes(id)) members.push({ id, place })
    return members
  }

  #reached(step: Step, at: number, id: string): Reached {
    return this.#options.evidence.reached(this.#nameOf(id), this.#sinceOf(step, at), step.components)
  }

  #sinceOf({ before, after, askedAt, made }: Step, at: number): number {
    const { opened_revision = made.revision } =
      (before.waves[at]?.opened ?? 0) > 0 ? (before.waves[at] as LoggedWave) : (after.waves[at] as LoggedWave)
    return Math.max(opened_revision, askedAt)
  }

  #nameOf(id: string): string {
    return this.#options.names.get(id) ?? id
  }
}

interface Member {
  readonly id: string
  readonly place: number
}

function named(members: readonly Member[]): string {
  return members
    .slice(0, 5)
    .map(({ id }) => id)
    .join(' ')
}

function hasEnded({ state }: LoggedWave): boolean {
  return state === 'passed' || state === 'skipped'
}

function allowedFailures(failures: number | string, members: number): number {
  return typeof failures === 'number' ? failures : Math.floor((Number.parseFloat(failures) * members) / 100)
}
