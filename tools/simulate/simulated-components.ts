// The components of a simulated cluster: each becomes ready some time after it was applied, or fails.
import { isObject, type JsonObject } from '../../src/base/json.ts'
import type { FluxEvent } from './exchange.ts'
import { type ComponentKind, componentEvent } from './flux-events.ts'

type ComponentState = 'progressing' | 'ready' | 'failed'

interface Component {
  readonly id: string
  readonly digest: string
  readonly kind: ComponentKind
  readonly revision: string
  state: ComponentState
  since: number
  /** When it becomes ready or fails; never for one that stays as it is. */
  settlesAt: number
  /** Whether it was ready with this digest once: a later failure takes nothing back. */
  isReached: boolean
}

export interface ComponentTimes {
  /** Milliseconds from the apply until the component is ready, or has failed. */
  readonly readyMs: number
  /** Milliseconds until a failed component tries again. */
  readonly retryMs: number
}

/** Called with every event that a controller tells of. */
export type Tell = (event: FluxEvent, now: number) => void

export class SimulatedComponents {
  readonly #times: ComponentTimes
  readonly #tell: Tell
  readonly #broken = new Set<string>()
  #components = new Map<string, Component>()
  #dueAt = Number.POSITIVE_INFINITY

  constructor(times: ComponentTimes, tell: Tell) {
    this.#times = times
    this.#tell = tell
  }

  /** When the next of them settles. */
  get dueAt(): number {
    return this.#dueAt
  }

  /**
   * Keeps what is applied already, begins what is new, and drops the rest together with its entries. Without news
   * everything has been ready for a long time.
   */
  apply(inputs: readonly JsonObject[], now: number, isNews: boolean): void {
    const applied = new Map<string, Component>()
    for (const input of inputs) {
      if (input.enabled === false) continue
      const id = String(input.id)
      const digest = String(input.digest ?? '')
      const known = this.#components.get(id)
      applied.set(id, known?.digest === digest ? known : this.#begin(id, digest, input, now))
    }
    if (!isNews) for (const component of applied.values()) this.#rest(component, now)
    this.#components = applied
    this.#schedule()
  }

  /** Settles every component whose time has come. */
  advance(now: number): void {
    if (now < this.#dueAt) return
    for (const component of this.#components.values()) {
      if (component.settlesAt <= now) this.#settle(component, component.settlesAt)
    }
    this.#schedule()
  }

  /** From now on the component fails; without an id the first one that is applied. */
  fail(id: string | undefined, now: number): void {
    const broken = id ?? this.#components.keys().next().value
    if (broken === undefined) return
    this.#broken.add(broken)
    this.#settleAt(broken, now)
  }

  /** The component works again, and is ready after the usual time; without an id every one. */
  recover(id: string | undefined, now: number): void {
    for (const broken of id === undefined ? [...this.#broken] : [id]) {
      this.#broken.delete(broken)
      if (this.#components.get(broken)?.state === 'failed') {
        this.#settleAt(broken, now + this.#times.readyMs)
      }
    }
  }

  /** The entries of the report. */
  entries(): string[] {
    return [...this.#components.values()]
      .filter(({ digest, isReached }) => isReached && digest !== '')
      .map(({ id, digest }) => `ready=${id}:${digest}`)
  }

  states(): Record<string, ComponentTruth> {
    const truths = [...this.#components.values()].map(
      ({ id, digest, state, since, isReached }): [string, ComponentTruth] => [
        id,
        { digest, state, since, isReached },
      ],
    )
    return Object.fromEntries(truths)
  }

  #begin(id: string, digest: string, input: JsonObject, now: number): Component {
    const source = isObject(input.source) ? input.source : {}
    const isHelm = input.delivery === 'helm' || String(source.oci_url).startsWith('http')
    return {
      id,
      digest,
      kind: isHelm ? 'HelmRelease' : 'Kustomization',
      revision: String(isHelm ? input.component_version : source.oci_tag),
      state: 'progressing',
      since: now,
      settlesAt: now + this.#times.readyMs,
      isReached: false,
    }
  }

  #settle(component: Component, at: number): void {
    const isBroken = this.#broken.has(component.id)
    const state = isBroken ? 'failed' : 'ready'
    component.settlesAt = isBroken ? at + this.#times.retryMs : Number.POSITIVE_INFINITY
    if (!isBroken) component.isReached = true
    if (component.state !== state) component.since = at
    component.state = state
    this.#tell(componentEvent(component, isBroken, at), at)
  }

  /** Ready since long ago, and told long ago; one that is broken fails now. */
  #rest(component: Component, now: number): void {
    component.state = 'ready'
    component.isReached = true
    component.settlesAt = this.#broken.has(component.id) ? now : Number.POSITIVE_INFINITY
  }

  #settleAt(id: string, at: number): void {
    const component = this.#components.get(id)
    if (!component) return
    component.settlesAt = at
    this.#schedule()
  }

  #schedule(): void {
    this.#dueAt = Number.POSITIVE_INFINITY
    for (const { settlesAt } of this.#components.values()) this.#dueAt = Math.min(this.#dueAt, settlesAt)
  }
}

/** What is so in the cluster, whatever the service was told. */
export interface ComponentTruth {
  readonly digest: string
  readonly state: ComponentState
  readonly since: number
  /** Whether the report has its entry. */
  readonly isReached: boolean
}
