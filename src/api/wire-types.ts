// The bodies of the API's responses as TypeScript types: the service builds them, and its clients read them.
import type { Detail, ProblemCode, Reason } from '../base/problem.ts'
import type { Grant } from '../domain/access/grant.ts'
import type { PublicToken } from '../domain/access/token.ts'
import type { ExplainedInput } from '../domain/delivery/explain-input.ts'
import type { Impact } from '../domain/delivery/impact.ts'
import type { KeptField } from '../domain/delivery/own-values.ts'
import type { DescribedChange } from '../domain/documents/describe-change.ts'
import type { Objection } from '../domain/guards/guard.ts'
import type { PlannedWave } from './rollout-schema.ts'

/** The body of a refused request. */
export interface ErrorBody {
  readonly error: ProblemCode
  /** Which of the refusals with this code it is, where that is known. */
  readonly reason?: Reason
  readonly message: string
  readonly details?: readonly Detail[]
  /** Set where the code is `destructive_change`. */
  readonly impact?: Impact
  /** Set where the reason is `frozen` and an end is in sight: when the freezes are over. */
  readonly next_open?: string
}

/** The result of a dry run. */
export interface Preview {
  readonly dry_run: true
  readonly base_revision: number
  readonly change_count: number
  /** The first changes; `change_count` says how many there are. */
  readonly changes: readonly DescribedChange[]
  readonly impact: Impact
  readonly warnings: readonly string[]
  /** The objections that refuse the write as it is. */
  readonly requires: readonly Requirement[]
  readonly requires_confirmation: readonly string[]
  readonly plan: string
  /** Fields that are changed in the catalog, and clusters that keep a value of their own. */
  readonly kept_overrides?: readonly KeptField[]
  /** Of a rollout: its waves with their members, and how long it takes at least. */
  readonly waves?: readonly PlannedWave[]
  readonly expected_duration_s?: number
}

/** What one guard objects to, and what lifts it, if anything does. */
export interface Requirement {
  readonly kind: Objection['kind']
  readonly reason?: Reason
  readonly message: string
  readonly details?: readonly Detail[]
  readonly lifted_by?: 'confirm' | 'bypass'
  /** When it is gone by itself, where that is known. */
  readonly next_open?: string
}

/** The result of a batch, a revert or a rollback. */
export interface FleetWritten {
  readonly revision: number
  /** How many documents were changed. */
  readonly changes: number
  readonly impact: Impact
  readonly warnings: readonly string[]
  readonly plan: string
}

/** One entry of the log. */
export interface Revision {
  readonly revision: number
  /** RFC 3339, UTC. */
  readonly time: string
  readonly actor: string
  readonly message: string | null
  readonly request_id: string
  readonly client_address: string | null
  /** The request, in one line. */
  readonly operation: string
  readonly hash: string
  readonly change_count: number
  /** All changes, or the first of them. */
  readonly changes: readonly DescribedChange[]
}

export interface RevisionWithImpact extends Revision {
  readonly impact: Impact
}

/** Where every field of a cluster's inputs comes from. */
export interface Explanation {
  readonly cluster: string
  readonly endpoint: string
  readonly revision: number
  readonly inputs: readonly ExplainedInput[]
}

export interface ShownToken extends PublicToken {
  readonly last_used_at: string | null
  readonly last_used_from: string | null
  readonly valid_secrets: number
}

/** With its secret, which is shown once. */
export interface IssuedToken extends ShownToken {
  readonly secret: string
}

/** The tokens of clusters, issued in one revision; a repeated response does not hold them. */
export interface IssuedTokens {
  readonly revision: number
  readonly tokens?: readonly { readonly cluster: string; readonly name: string; readonly secret: string }[]
}

/** Who the service identified the caller as. */
export interface CallerIdentity extends Grant {
  /** The caller's name, as the audit has it. */
  readonly name: string
  readonly via: 'environment' | 'token' | 'certificate' | 'oidc'
  readonly expires_at?: string
}
