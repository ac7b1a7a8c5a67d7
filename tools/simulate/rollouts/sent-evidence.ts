// What the clusters sent, and when: the most that a service can know of them at any moment.
import { getOrSet } from '../../../src/base/get-or-set.ts'
import type { AckRequest, ClusterAnswer, EventRequest, PollRequest, Send } from '../exchange.ts'
import { parseInputs } from '../parse-inputs.ts'

/** The digests of one answer. */
interface Marks {
  readonly answer: string
  readonly inputs: ReadonlyMap<string, string>
}

interface Poll {
  readonly sentAt: number
  /** Of an answer that arrived; one that was lost on its way may have had any revision. */
  readonly answered: { readonly at: number; readonly revision: number; readonly marks: Marks } | undefined
}

/** A report, and when it was sent for the first and the last time. */
interface Report {
  readonly entries: ReadonlySet<string>
  readonly firstAt: number
  lastAt: number
}

/** An event about a component that the service has taken, or may have. */
interface Told {
  readonly component: string
  readonly isFailure: boolean
  readonly sentAt: number
  /** When it was answered with 202. */
  confirmedAt: number | undefined
}

interface Sent {
  readonly polls: Poll[]
  readonly reports: Report[]
  readonly told: Told[]
}

/** How far a member can be, in milliseconds of the clock; Infinity for what it has not reached. */
export interface Reached {
  readonly servedAt: number
  readonly appliedAt: number
  readonly healthyAt: number
}

/** Which failures count, in milliseconds of the clock. */
interface FailureWindow {
  /** The revision that brought what fails. */
  readonly since: number
  /** Those from before do not count. */
  readonly after: number
  /** When the service had to have been told. */
  readonly by: number
  /** Until when nothing else may have been told. */
  readonly until: number
}

const NEVER = Number.POSITIVE_INFINITY
/** The endpoint whose inputs rollouts of the simulation change. */
const ENDPOINT = 'platform-components'

export class SentEvidence {
  readonly #clock: () => number
  readonly #sent = new Map<string, Sent>()

  constructor(clock: () => number) {
    this.#clock = clock
  }

  /** Notes everything that goes through. */
  listenTo(send: Send): Send {
    return async (request) => {
      const sentAt = this.#clock()
      const sent = getOrSet(this.#sent, request.dns, () => ({ polls: [], reports: [], told: [] }))
      if (request.kind === 'ack') noteReport(sent, request, sentAt)
      const told = request.kind === 'event' ? noteEvent(sent, request, sentAt) : undefined
      const answer = await send(request)
      if (request.kind === 'poll') this.#notePoll(sent, request, sentAt, answer)
      if (told && answer.kind === 'answer' && answer.status === 202) told.confirmedAt = this.#clock()
      return answer
    }
  }

  /** How far a cluster can be with what it was served from a revision on. `components` are those that have to be healthy. */
  reached(dns: string, since: number, components: readonly string[]): Reached {
    const { polls = [], reports = [] } = this.#sent.get(dns) ?? {}
    const candidates = polls.filter(({ answered }) => answered === undefined || answered.revision >= since)
    const known = polls.flatMap(({ answered }) => answered?.marks ?? [])
    const reached = { servedAt: NEVER, appliedAt: NEVER, healthyAt: NEVER }
    for (const { sentAt, answered } of candidates) {
      reached.servedAt = Math.min(reached.servedAt, sentAt)
      for (const { answer, inputs } of answered ? [answered.marks] : known) {
        const ready = components.flatMap((id) => (inputs.has(id) ? [`ready=${id}:${inputs.get(id)}`] : []))
        for (const { entries, firstAt, lastAt } of reports) {
          if (lastAt < sentAt || !entries.has(`${ENDPOINT}=${answer}`)) continue
          const at = Math.max(sentAt, firstAt)
          reached.appliedAt = Math.min(reached.appliedAt, at)
          if (ready.every((entry) => entries.has(entry))) reached.healthyAt = Math.min(reached.healthyAt, at)
        }
      }
    }
    return reached
  }

  /** Whether a cluster may have told by `until` that one of these components fails. */
  mayBeFailing(dns: string, components: readonly string[], until: number): boolean {
    const { told = [] } = this.#sent.get(dns) ?? {}
    return told.some(
      ({ component, isFailure, sentAt }) => isFailure && sentAt <= until && components.includes(component),
    )
  }

  /** Whether the service was told that a component fails with what was served from a revision on, and nothing else since. */
  isKnownToFail(
    dns: string,
    components: readonly string[],
    { since, after, by, until }: FailureWindow,
  ): boolean {
    const { polls = [], reports = [], told = [] } = this.#sent.get(dns) ?? {}
    const served = polls.find(({ answered }) => answered !== undefined && answered.revision >= since)
    if (!served?.answered) return false
    const { at: servedAt, marks } = served.answered
    return components.some((component) => {
      if (!marks.inputs.has(component)) return false
      const failure = told.findLast(
        ({ isFailure, confirmedAt = NEVER, sentAt, component: of }) =>
          isFailure && of === component && sentAt > Math.max(servedAt, after) && confirmedAt <= by,
      )
      if (!failure) return false
      const isAfter = (at: number): boolean => at >= failure.sentAt && at <= until
      const isTakenBack = told.some(
        (each) => !each.isFailure && each.component === component && isAfter(each.sentAt),
      )
      // A report that says something else may take it back, too.
      return !isTakenBack && !reports.some(({ firstAt }) => isAfter(firstAt))
    })
  }

  /** When a cluster was last answered before a moment; 0 for never. */
  lastHeard(dns: string, before: number): number {
    const { polls = [] } = this.#sent.get(dns) ?? {}
    return (
      polls.findLast(({ answered }) => answered !== undefined && answered.at <= before)?.answered?.at ?? 0
    )
  }

  #notePoll({ polls }: Sent, { endpoint }: PollRequest, sentAt: number, answer: ClusterAnswer): void {
    if (endpoint !== ENDPOINT) return
    if (answer.kind === 'dropped') {
      if (!answer.isInjected) polls.push({ sentAt, answered: undefined })
      return
    }
    const last = polls.findLast(({ answered }) => answered !== undefined)?.answered
    const marks = answer.status === 200 ? marksOf(answer.body, last?.marks) : undefined
    if (!marks) return
    const answered = { at: this.#clock(), revision: answer.revision ?? 0, marks }
    // Of equal answers in a row, the first and the last one matter.
    const isRepeated = polls.slice(-2).filter((poll) => isSame(poll, answered)).length === 2
    polls.splice(isRepeated ? -1 : polls.length, 1, { sentAt, answered })
  }
}

function isSame({ answered }: Poll, { revision, marks }: NonNullable<Poll['answered']>): boolean {
  return answered !== undefined && answered.revision === revision && answered.marks === marks
}

/** The former marks where the answer is the same. */
function marksOf(body: string, former: Marks | undefined): Marks | undefined {
  const answer = /"answer_digest":"([0-9a-f]+)"/.exec(body)?.[1]
  if (answer !== undefined && answer === former?.answer) return former
  const parsed = parseInputs(body)
  if (!parsed.ok || answer === undefined) return undefined
  return { answer, inputs: new Map(parsed.inputs.map(({ id, digest }) => [String(id), String(digest)])) }
}

function noteReport({ reports }: Sent, { path }: AckRequest, sentAt: number): void {
  const entries = new Set(path.slice(path.indexOf('?') + 1).split('&'))
  const last = reports.at(-1)
  if (last && last.entries.size === entries.size && last.entries.isSubsetOf(entries)) last.lastAt = sentAt
  else reports.push({ entries, firstAt: sentAt, lastAt: sentAt })
}

function noteEvent({ told }: Sent, { event }: EventRequest, sentAt: number): Told {
  const { severity, involvedObject } = event
  const isFailure = severity === 'error'
  const each: Told = { component: involvedObject.name, isFailure, sentAt, confirmedAt: undefined }
  told.push(each)
  return each
}
