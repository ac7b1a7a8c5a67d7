// Rollouts: a change that reaches its clusters wave by wave. Plain data, kept in the log like every document.
import type { Json } from '../../base/json.ts'
import type { Grant } from '../access/grant.ts'
import type { Entry } from '../documents/view.ts'
import type { Document } from '../types/resource-type.ts'
import type { DocumentEdit } from './edits.ts'

/** The system type of rollouts: their state, which every step replaces. */
export const ROLLOUTS = 'rollouts'
/** The system type of their plans: edits and members, which hardly ever change. A rollout that has ended has none. */
export const ROLLOUT_PLANS = 'rollout_plans'

/** Their overlay is served to the members of open waves. */
export const ACTIVE_STATES = ['pending', 'running', 'paused', 'baking'] as const
export const ROLLOUT_STATES = [...ACTIVE_STATES, 'finished', 'aborted'] as const
export type RolloutState = (typeof ROLLOUT_STATES)[number]

export const WAVE_STATES = ['waiting', 'open', 'passed', 'skipped'] as const
type WaveState = (typeof WAVE_STATES)[number]

/** What has to be true of a wave's members. Percentages are of the members that can be observed. */
export interface Gates {
  readonly served_percent?: number
  readonly applied_percent?: number
  readonly healthy_percent?: number
  /** The most members that may fail: a number, or a share such as `5%`. */
  readonly failures?: number | string
  /** What systems outside of the service have to say yes to. */
  readonly checks?: readonly CheckSpec[]
  /** For how long the others have to hold. */
  readonly soak_s?: number
}

/** A question to a system outside: it is asked at a URL, or answers by itself. */
export interface CheckSpec {
  readonly name: string
  readonly url?: string
  /** For how long an answer is waited for, from when the other gates hold. */
  readonly timeout_s?: number
}

export interface ApprovalRule {
  readonly count?: number
  readonly not_starter?: boolean
  /** Who may approve: editors too, which is the default, or admins alone. */
  readonly role?: 'editor' | 'admin'
  /** An approval that is older does not count. */
  readonly expires_s?: number
}

/** When a wave may open: for a duration from each time that the cron expression names, in a time zone. */
export interface Window {
  readonly cron: string
  readonly duration_s: number
  readonly zone?: string
}

/** One wave as it is asked for. Exactly one of `selector`, `percent`, `count`, `clusters` and `rest` says who is in it. */
export interface WaveSpec {
  readonly name: string
  readonly selector?: string
  readonly percent?: number
  readonly count?: number
  readonly clusters?: readonly string[]
  readonly rest?: true
  readonly max_concurrent?: number
  readonly deadline_s?: number
  readonly start_at?: string
  readonly window?: Window
  readonly approval?: { readonly before?: ApprovalRule; readonly after?: ApprovalRule }
  readonly gates?: Gates
}

export interface Strategy {
  readonly waves: readonly WaveSpec[]
  /** What a breached limit of failures does. */
  readonly on_failure?: 'pause' | 'abort'
  /** For how long the last wave is watched before the change is finished. */
  readonly bake_s?: number
  /** What clusters that were set aside get after the finish: the change, or a hold. */
  readonly stragglers?: 'follow' | 'hold'
  /** Clusters that no wave takes: a last wave, or a refusal of the rollout. */
  readonly unmatched?: 'rest' | 'refuse'
}

/** In percent, or in numbers of clusters for failures. */
export interface GateResult {
  readonly kind: Exclude<keyof Gates, 'checks' | 'soak_s'> | 'check'
  /** Of a check. */
  readonly name?: string
  readonly needed: number
  readonly value: number
  readonly holds: boolean
  /** The same in numbers of clusters: how many have it, how many need to, and of how many. */
  readonly count: number
  readonly needed_count: number
  readonly of: number
}

/** How far the members of a wave are. */
export interface WaveCounts {
  readonly served: number
  readonly applied: number
  readonly healthy: number
  readonly failed: number
  readonly set_aside: number
}

export interface Wave {
  readonly name: string
  readonly state: WaveState
  readonly members: number
  /** The first so many of its members are served the change. */
  readonly opened: number
  readonly opened_at?: string
  /** When its newest members were opened; left out where all were at once. */
  readonly widened_at?: string
  /** The revision that opened its first members. */
  readonly opened_revision?: number
  /** From which place on members were opened by which later revision; the last of them, in order. */
  readonly widenings?: readonly (readonly [from: number, revision: number])[]
  /** Since when all of its gates hold; the soak counts from here. */
  readonly gates_hold_since?: string
  /** Since when all but its checks hold: their answers are waited for from here. */
  readonly checks_since?: string
  readonly passed_at?: string
  /** As of the last decision about the wave. */
  readonly counts?: WaveCounts
  readonly gates?: readonly GateResult[]
}

export interface Approval {
  readonly wave: string
  readonly when: 'before' | 'after'
  readonly by: string
  readonly at: string
  readonly remark?: string
}

/** What a system outside said about a wave. It is bound to the plan that it was asked about. */
export interface CheckResult {
  readonly wave: string
  readonly name: string
  readonly ok: boolean
  readonly by: string
  readonly at: string
  readonly plan: string
  readonly remark?: string
}

/** What a person, or the service itself, did to a rollout. */
export interface RolloutEvent {
  readonly at: string
  readonly by: string
  readonly what: string
  readonly remark?: string
}

export interface Rollout {
  readonly id: string
  readonly state: RolloutState
  /** The strategy's name; left out where the waves were given with the write. */
  readonly strategy?: string
  readonly message: string | null
  readonly started_by: string
  readonly started_at: string
  /** What the rollout acts with; checked again at every step that changes what clusters are served. */
  readonly grant?: Grant
  /** Whether it passes freezes that this grant may pass; the reason is the message. */
  readonly bypass?: true
  /** Who amended it last: it is their change too, which others approve. */
  readonly amended_by?: string
  /** A digest of edits, strategy and members: approvals are bound to it. */
  readonly plan: string
  /** The strategy as it was copied. */
  readonly spec: Strategy
  readonly waves: readonly Wave[]
  readonly approvals: readonly Approval[]
  /** The last answer to each check. */
  readonly checks?: readonly CheckResult[]
  /** Clusters that came to a wave after the start, by wave: they follow on the members that the plan names. */
  readonly joined?: readonly (readonly string[])[]
  /** Clusters that somebody took out: they keep the base until the finish. */
  readonly skipped: readonly string[]
  /** Clusters that were absent at their wave's deadline. */
  readonly set_aside: readonly string[]
  /** Failures from before do not count any more. */
  readonly retried_at?: string
  /** Why it is paused, or does not go on. */
  readonly waiting_for: string | null
  readonly baking_since?: string
  readonly ended_at?: string
  /** The newest last. */
  readonly events: readonly RolloutEvent[]
  /** What was written, in a line. */
  readonly operation: string
  /** The revision that the fleet had when the edits were made. */
  readonly base_revision: number
}

export interface RolloutPlan {
  readonly id: string
  readonly edits: readonly DocumentEdit[]
  /** The commands that the edits were made from, as they were sent. */
  readonly operations: readonly Json[]
  /** Ids of the members of each wave, in the order in which they are opened. */
  readonly members: readonly (readonly string[])[]
}

export function asRollout({ document }: Pick<Entry, 'document'>): Rollout {
  return document as unknown as Rollout
}

export function asPlan({ document }: Pick<Entry, 'document'>): RolloutPlan {
  return document as unknown as RolloutPlan
}

const INSTANTS: ReadonlySet<string> = new Set<keyof Rollout | keyof Wave | keyof Approval>([
  // A reason may be thought of after the preview, and is a part of what the rollout says that it waits for.
  ...(['remark', 'waiting_for'] as const),
  ...(['started_at', 'ended_at', 'retried_at', 'baking_since', 'at'] as const),
  ...(['opened_at', 'widened_at', 'gates_hold_since', 'checks_since', 'passed_at'] as const),
])

/** A rollout without the times and the reasons of its steps: each decision of the same step makes them anew. */
export function withoutInstants(rollout: Rollout): object {
  return JSON.parse(JSON.stringify(rollout, (key, value) => (INSTANTS.has(key) ? undefined : value)))
}

export function asDocument(value: Rollout | RolloutPlan): Document {
  return value as unknown as Document
}

/** A wave as it was asked for. One that was added for what was left has no spec of its own. */
export function specOf({ spec, waves }: Rollout, at: number): WaveSpec {
  return spec.waves[at] ?? { name: waves[at]?.name ?? 'rest', rest: true }
}

export function isActive({ state }: Pick<Rollout, 'state'>): boolean {
  return (ACTIVE_STATES as readonly RolloutState[]).includes(state)
}
