// What each reason of a refusal means and what a client can do about it: the source for the docs and for OpenAPI.
import type { ProblemCode, REASONS } from '../base/problem.ts'

export interface ReasonText {
  readonly meaning: string
  readonly advice: string
}

const reason = (meaning: string, advice: string): ReasonText => ({ meaning, advice })

const CORRECT = 'correct what `details` name'
const TRY_AGAIN = 'try again after `Retry-After`'
const READ_AGAIN = 'read it again, then decide'
const OTHER_CREDENTIAL = 'use a credential of that role'
const WIDER_SCOPE = 'leave out what `details` name, or ask somebody with a wider scope'

export const REASON_TEXTS: {
  readonly [C in keyof typeof REASONS & ProblemCode]: Readonly<
    Record<(typeof REASONS)[C][number], ReasonText>
  >
} = {
  validation_error: {
    unknown_reference: reason(
      'it names a document that does not exist',
      'create that first, or correct the name',
    ),
    duplicate_reference: reason('it names the same document twice', 'name it once'),
    dependency_cycle: reason('documents would wait for each other in a circle', CORRECT),
    not_assigned: reason(
      'it has patches for what the cluster is not assigned',
      'assign it in the same write',
    ),
    reserved_id: reason('the id is reserved by the type', 'choose another id'),
    no_match: reason('a selector matches no cluster', 'correct it, or set `allow_empty`'),
    unknown_label: reason('a selector has a label that no cluster has, and matches none', 'correct it'),
    answer_too_large: reason(
      'a poll of a cluster would get more than Flux takes',
      'assign less, or make it smaller',
    ),
    unknown_parameter: reason('the URL has a parameter that the route does not know', 'correct its name'),
    malformed_json: reason('the body is not JSON in UTF-8', 'correct the body'),
    incomplete_body: reason('the body ended too early', 'send the request again'),
    not_staged: reason('a rollout cannot stage such a change', 'write it without a rollout'),
    revision_in_future: reason('it names a revision that does not exist yet', 'use an earlier revision'),
  },
  unauthorized: {
    no_credentials: reason('neither a token nor a client certificate came with it', 'send a token'),
    credential_refused: reason(
      'the credential is not known here, or was revoked, or is not valid',
      'correct it, or get another one',
    ),
    credential_expired: reason(
      'the token has expired; only the holder of its secret is told so',
      'get a new one: rotate the token, or log in again',
    ),
  },
  forbidden: {
    needs_poller: reason('this needs the role poller', OTHER_CREDENTIAL),
    needs_mirror: reason('this needs the role mirror', OTHER_CREDENTIAL),
    needs_viewer: reason('this needs the role viewer', OTHER_CREDENTIAL),
    needs_editor: reason('this needs the role editor', `${OTHER_CREDENTIAL}, or preview with \`dry_run\``),
    needs_admin: reason('this needs the role admin', OTHER_CREDENTIAL),
    purge_needs_admin: reason('only the role admin may purge', 'delete without `purge`'),
    no_role: reason('the caller is known, and has no role here', 'ask an administrator'),
    out_of_scope: reason("the write touches what is outside of the caller's scope", WIDER_SCOPE),
    invalid_scope: reason("the selector of the caller's scope cannot be read any more", 'replace the token'),
    held: reason('it changes an applied set that holds what is outside of the scope', WIDER_SCOPE),
    other_cluster: reason('the token polls for another cluster', "use this cluster's token"),
    copies_only: reason(
      'the token copies some clusters, and polls for none',
      'use a token of the role poller',
    ),
  },
  not_found: {
    unknown_id: reason('nothing has that id', 'correct the id, or create it'),
    unknown_cluster: reason('no cluster has that DNS name; Flux keeps what it has', 'create the cluster'),
    unknown_endpoint: reason('no type has that endpoint', 'the message names those there are'),
    not_assigned: reason('the document exists, and the cluster is not assigned it', 'assign it first'),
    no_route: reason(
      'there is no such route here',
      'correct the path; most routes need an instance in crud mode',
    ),
  },
  method_not_allowed: {
    read_only: reason('the instance is read-only', 'write to one in crud mode'),
    unknown_method: reason('the route does not have this method', '`Allow` has those there are'),
  },
  conflict: {
    already_exists: reason('a document of that id exists', 'replace or patch it'),
    in_use: reason(
      'clusters or definitions use it; `details` name them',
      'unassign it there, or delete with `cascade`',
    ),
    protected: reason('the cluster is protected from deletion', 'set its protection to false first'),
    dns_taken: reason('another live cluster has that DNS name', 'choose another'),
    not_deleted: reason('there is nothing to restore: the cluster is live', 'leave it'),
    test_failed: reason('a `test` of a JSON patch does not hold', READ_AGAIN),
    changed_since: reason(
      'what is to be undone was changed again',
      'undo the later change first, or set the fields',
    ),
    no_longer_valid: reason('what it was then does not fit the fleet or the types any more', CORRECT),
    not_allowed_by_type: reason("a type's `methods` do not allow what would happen", 'leave that type out'),
    token_exists: reason('a token of that name exists', 'rotate or revoke it, or choose another name'),
    token_expired: reason('the token has expired', 'revoke it, and create another one'),
    token_not_restorable: reason('tokens do not come back', 'create another one'),
    too_many_secrets: reason('too many earlier secrets are still valid', 'rotate with a shorter `grace`'),
    revision_mismatch: reason('the store is at another revision than expected', READ_AGAIN),
    held_by_rollout: reason(
      'a running rollout changes the same field',
      'amend, supersede or abort the rollout, or bypass it with a reason',
    ),
    nothing_to_roll_out: reason('no cluster would be served anything else', 'write it without a rollout'),
    rollout_ended: reason('the rollout is finished or aborted', 'start another one'),
    rollout_state: reason('the rollout is in another state', 'read it again'),
    rollout_unfinished: reason('waves of the rollout have not passed', 'wait, or `confirm=finish`'),
    not_reverted: reason(
      'the revision is a step of a rollout or a hold, and changed no document',
      'abort or amend the rollout; hold or release the cluster',
    ),
    too_many_rollouts: reason('too many rollouts are active', 'wait for one to end, or abort it'),
    wave_ended: reason('the wave has passed, or was skipped', 'leave it'),
    own_approval: reason('the wave needs the approval of somebody else', 'ask somebody else'),
    frozen: reason(
      'a freeze covers clusters that the write would change',
      'wait until it is over, or bypass it with a reason',
    ),
    behind_caller: reason(
      'the service is behind what the caller has already',
      'copy from another one, or wait',
    ),
  },
  plan_changed: {
    plan_changed: reason('the write would not do what its plan says', 'preview it again'),
  },
  destructive_change: {
    brake: reason(
      'it removes a lot, and was not confirmed',
      'look at `impact`; if it is meant, `confirm=removals`',
    ),
  },
  gone: {
    history_pruned: reason('history before that revision was pruned', 'use a later revision'),
  },
  precondition_failed: {
    already_exists: reason('`If-None-Match: *`, and it exists', READ_AGAIN),
    unknown_id: reason('`If-Match: *`, and it does not exist', READ_AGAIN),
    revision_mismatch: reason('it was changed, or deleted, since it was read', READ_AGAIN),
    malformed_etag: reason('`If-Match` is not an ETag of this service', 'send the ETag as it was answered'),
  },
  idempotency_mismatch: {
    idempotency_mismatch: reason('the `Idempotency-Key` was used for another request', 'take a new key'),
  },
  rate_limited: {
    failed_authentication: reason('too many requests with wrong credentials', 'correct the credential'),
    caller_share: reason('more of yours at once than your share', 'wait for some of your requests to end'),
    too_many_events: reason('a cluster, or all of them, send more events than are taken', TRY_AGAIN),
  },
  unavailable: {
    store_unavailable: reason('the store cannot be used', TRY_AGAIN),
    not_loaded: reason('the process has not loaded its state yet', TRY_AGAIN),
    draining: reason('the process is stopping', 'try again: another one answers'),
    too_many_writes: reason('too many writes are waiting', TRY_AGAIN),
    too_many_requests: reason('all callers together have too much under way', TRY_AGAIN),
    lost_races: reason('other writers were faster every time', TRY_AGAIN),
    timed_out: reason('it took too long; nothing was stored', 'ask for less at once'),
    behind_revision: reason('the process is not at the revision yet', TRY_AGAIN),
    stale: reason('what is served is older than `MAX_STALENESS`; of `/ready`', 'look at the store'),
    log_incomplete: reason('the log lacks a revision', TRY_AGAIN),
    authentication_unavailable: reason('who asks cannot be checked now', TRY_AGAIN),
    caller_left: reason('the caller hung up', 'nobody reads this'),
  },
}
