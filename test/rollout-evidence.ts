// What clusters were served and reported to one replica, and what that proves.
import { isObject, type JsonObject } from '../src/base/json.ts'
import { types } from './rollout-model.ts'

interface Polled {
  /** When: grows with everything that is noted anywhere. */
  readonly place: number
  readonly text: string
}

interface Reported {
  readonly place: number
  readonly applied: ReadonlyMap<string, string>
  readonly ready: ReadonlyMap<string, string>
}

let lastPlace = 0

/** A moment in the order of all that is noted. */
export function nextPlace(): number {
  return ++lastPlace
}

export class Evidence {
  readonly #polls = new Map<string, Polled[]>()
  readonly #reports = new Map<string, Reported[]>()
  readonly #failed = new Set<string>()

  poll(cluster: string, endpoint: string, text: string): void {
    this.#pollsOf(cluster, endpoint).push({ place: nextPlace(), text })
  }

  report(cluster: string, applied: ReadonlyMap<string, string>, ready: ReadonlyMap<string, string>): void {
    this.#reportsOf(cluster).push({ place: nextPlace(), applied, ready })
  }

  fail(cluster: string): void {
    this.#failed.add(cluster)
  }

  hasFailed(cluster: string): boolean {
    return this.#failed.has(cluster)
  }

  /** The inputs that a cluster got last, or those that it got before them. */
  answer(cluster: string, endpoint: string, isLate: boolean): { inputs: readonly JsonObject[] } {
    const polls = this.#pollsOf(cluster, endpoint)
    const last = polls.at(-1)?.text
    const { text } = (isLate ? polls.findLast((poll) => poll.text !== last) : polls.at(-1)) ?? {
      text: '{"inputs":[]}',
    }
    const parsed: unknown = JSON.parse(text)
    return { inputs: isObject(parsed) ? (parsed.inputs as unknown as JsonObject[]) : [] }
  }

  /** Whether a cluster got these answers since a moment, and nothing else since. */
  isServed(cluster: string, since: number, answers: ReadonlyMap<string, string>): boolean {
    return [...answers].every(
      ([endpoint, text]) => this.#servedFrom(cluster, endpoint, since, text) !== undefined,
    )
  }

  /** Whether it reported them as applied after it got them. */
  isApplied(cluster: string, since: number, answers: ReadonlyMap<string, string>): boolean {
    const report = this.#reportsOf(cluster).at(-1)
    return [...answers].every(([endpoint, text]) => {
      const from = this.#servedFrom(cluster, endpoint, since, text)
      const { inputs } = JSON.parse(text) as { inputs: JsonObject[] }
      const digest = inputs[0]?.answer_digest
      return (
        from !== undefined &&
        report !== undefined &&
        report.place > from &&
        report.applied.get(endpoint) === digest
      )
    })
  }

  /** Whether it reported all of their enabled inputs as ready too. */
  isHealthy(cluster: string, since: number, answers: ReadonlyMap<string, string>): boolean {
    const report = this.#reportsOf(cluster).at(-1)
    return (
      [...answers].every(([endpoint, text]) => {
        if (!types.byEndpoint(endpoint)?.delivery.reportsHealth) return true
        const { inputs } = JSON.parse(text) as { inputs: JsonObject[] }
        return inputs.every(
          ({ id, digest, enabled }) => enabled === false || report?.ready.get(String(id)) === digest,
        )
      }) && this.isApplied(cluster, since, answers)
    )
  }

  /** When the cluster first got what it gets ever since, if that is this text and after a moment. */
  #servedFrom(cluster: string, endpoint: string, since: number, text: string): number | undefined {
    const polls = this.#pollsOf(cluster, endpoint)
    let from: number | undefined
    for (const poll of polls.toReversed()) {
      if (poll.text !== text || poll.place < since) break
      from = poll.place
    }
    return from
  }

  #pollsOf(cluster: string, endpoint: string): Polled[] {
    return listIn(this.#polls, `${cluster} ${endpoint}`)
  }

  #reportsOf(cluster: string): Reported[] {
    return listIn(this.#reports, cluster)
  }

  /** What is known to those who know all of it. */
  static merged(all: readonly Evidence[]): Evidence {
    const merged = new Evidence()
    for (const each of all) {
      for (const [key, polls] of each.#polls) listIn(merged.#polls, key).push(...polls)
      for (const [key, reports] of each.#reports) listIn(merged.#reports, key).push(...reports)
      for (const cluster of each.#failed) merged.#failed.add(cluster)
    }
    for (const list of [...merged.#polls.values(), ...merged.#reports.values()])
      list.sort((a, b) => a.place - b.place)
    return merged
  }
}

function listIn<T>(map: Map<string, T[]>, key: string): T[] {
  const list = map.get(key) ?? []
  map.set(key, list)
  return list
}
