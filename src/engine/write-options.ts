// What is asked of a write beside its commands, and what comes of it.
import type { Grant } from '../domain/access/grant.ts'
import type { Outcome, WriteCommand } from '../domain/commands/command.ts'
import type { Impact } from '../domain/delivery/impact.ts'
import type { KeptField } from '../domain/delivery/own-values.ts'
import type { Change, View } from '../domain/documents/view.ts'
import type { Objection } from '../domain/guards/guard.ts'
import type { RolloutRequest, StagedWrite } from '../domain/rollouts/stage-write.ts'
import type { Span } from '../runtime/spans.ts'
import type { RevisionMeta } from '../store/store.ts'

export type Author = Pick<RevisionMeta, 'actor' | 'message' | 'request_id' | 'client_address'>

export interface WriteOptions {
  /** Refuses changes that this does not allow; a dry run reports them instead. */
  readonly grant?: Grant
  /** Writes only while this is the current revision. */
  readonly onlyAt?: number
  /** The operation that the audit shows; by default a summary of the commands. */
  readonly operation?: string
  /** Stores nothing. */
  readonly dryRun?: boolean
  /** Writes only if the changes are exactly those of this plan. */
  readonly plan?: string
  /** Lets removals pass the brake. */
  readonly confirmRemovals?: boolean
  /** Lets a rollout be finished whose waves are not all through. */
  readonly confirmFinish?: boolean
  /** Computes the impact and the plan; the impact has details of at most this many clusters' endpoints. */
  readonly impactLimit?: number
  /** Writes once for this key; a repetition returns the first response. */
  readonly idempotency?: Idempotency
  /** Makes a rollout of the changes instead of writing them at once. */
  readonly rollout?: RolloutOptions
  /** The rollout that the write finishes: it holds nothing against that. */
  readonly ownRollout?: string
  /** Lets the write pass what rollouts and freezes hold against it; the reason is in the audit. */
  readonly bypass?: boolean
  /** Whose turn the write takes in the queue; by default the author's. */
  readonly caller?: string
  /** The span of the request, where it is traced: the write adds its parts. */
  readonly span?: Span | undefined
  /** Ends it before anything is committed; its reason is an `Interrupted`. */
  readonly signal?: AbortSignal
}

/** How the changes of a write are to be rolled out. */
export type RolloutOptions = Pick<RolloutRequest, 'strategy' | 'spec' | 'path' | 'keeps' | 'operations'> & {
  /** A running rollout that is aborted in the same revision. */
  readonly supersedes?: string
  /** A running rollout that gets these changes in place of its own; its waves start again where `restart` is set. */
  readonly amends?: { readonly id: string; readonly restart: boolean }
}

export interface Idempotency {
  readonly key: string
  /** Tells a repetition from another request with the same key. */
  readonly fingerprint: string
  /** The response to keep. */
  response(written: Written): string
}

export interface Written {
  /** The revision that the write made; the current one when nothing changed or nothing was to be stored. */
  readonly revision: number
  readonly changes: readonly Change[]
  /** One per command, in their order. */
  readonly outcomes: readonly Outcome[]
  /** The view right after the write, whatever has been published since. */
  readonly after: View
  readonly warnings: readonly string[]
  /** What the guards object to, lifted or not. */
  readonly objections: readonly Objection[]
  readonly impact?: Impact
  readonly plan?: string
  /** In a preview: where clusters keep a value of their own for what is changed in the catalog. */
  readonly kept?: readonly KeptField[]
  /** The rollout that the write starts or amends. */
  readonly staged?: StagedWrite
  /** The response to the first write with the same key: nothing was done now. */
  readonly replayed?: string
  /** The response as it was kept, where the state may have moved on since. */
  readonly response?: string
}

export interface WriteRequest {
  readonly commands: readonly WriteCommand[]
  readonly author: Author
  readonly options: WriteOptions
}
