// The failures of one cluster that events told of: of each object the newest, or when it was cleared.
import type { FailureEvidence, FailureSubject } from '../../domain/status/evidence.ts'

/** Failures to keep of one cluster, those that were cleared included. */
const MAX_FAILURES = 500

export interface Failure extends FailureEvidence {
  readonly subject: FailureSubject
}

export interface ClearedFailure {
  readonly clearedAt: number
}

export class Failures {
  /** By object, as `HelmRelease/grafana`. */
  readonly #known = new Map<string, Failure | ClearedFailure>()

  get(object: string): Failure | ClearedFailure | undefined {
    return this.#known.get(object)
  }

  objects(): string[] {
    return [...this.#known.keys()]
  }

  /** Takes the newest failure of an object; it began with the first since the last success. */
  note(object: string, failure: Omit<Failure, 'since'>): void {
    const known = this.#known.get(object)
    this.set(object, { ...failure, since: known && !('clearedAt' in known) ? known.since : failure.at })
  }

  /** Where there are too many, the one that was noted first makes room. */
  set(object: string, failure: Failure | ClearedFailure): void {
    if (!this.#known.has(object) && this.#known.size >= MAX_FAILURES)
      for (const first of this.#known.keys()) {
        this.#known.delete(first)
        break
      }
    this.#known.set(object, failure)
  }

  /** Returns whether anything is known of the object. */
  clear(object: string, at: number): boolean {
    if (!this.#known.has(object)) return false
    this.#known.set(object, { clearedAt: at })
    return true
  }

  /** Clears all that is about a component or an endpoint; returns the objects. */
  clearAbout(subject: FailureSubject, at: number): string[] {
    const objects: string[] = []
    for (const [object, failure] of this.#known)
      if (!('clearedAt' in failure) && isAbout(failure.subject, subject)) objects.push(object)
    for (const object of objects) this.clear(object, at)
    return objects
  }

  newestOf(subject: FailureSubject): FailureEvidence | undefined {
    let newest: FailureEvidence | undefined
    for (const failure of this.#known.values()) {
      if ('clearedAt' in failure || !isAbout(failure.subject, subject)) continue
      if (!newest || failure.at > newest.at) newest = failure
    }
    return newest
  }

  /** Whether one is known that no success has followed. */
  get areAny(): boolean {
    for (const failure of this.#known.values()) if (!('clearedAt' in failure)) return true
    return false
  }

  /** When the oldest failure of components, or of endpoints, began that was repeated after a moment; 0 without one. */
  failingSince(subject: 'component' | 'endpoint', after: number): number {
    let oldest = 0
    for (const failure of this.#known.values()) {
      if ('clearedAt' in failure || !(subject in failure.subject) || failure.at <= after) continue
      if (oldest === 0 || failure.since < oldest) oldest = failure.since
    }
    return oldest
  }
}

function isAbout(one: FailureSubject, other: FailureSubject): boolean {
  if ('component' in one) return 'component' in other && one.component === other.component
  return 'endpoint' in other && one.endpoint === other.endpoint
}
