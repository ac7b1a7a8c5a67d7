// How much a request may hold and a response returns at most, and what numbers and digests look like on the wire.

const MIB = 1024 * 1024
/** Bytes of a request body: of most requests, of a batch, and of a caller who may only preview. */
export const BODY_LIMIT = 4 * MIB
export const BATCH_BODY_LIMIT = 32 * MIB
export const PREVIEW_BODY_LIMIT = MIB
/** Bytes of an event that a cluster sends. */
export const EVENT_BODY_LIMIT = 64 * 1024

/** Items of a page: by default, and at most. */
export interface PageLimits {
  readonly limit: number
  readonly max: number
}
export const PAGES: PageLimits = { limit: 1000, max: 5000 }
export const REVISION_PAGES: PageLimits = { limit: 50, max: 1000 }
export const STATUS_PAGES: PageLimits = { limit: 100, max: 5000 }
/** Each of them may be looked up in the log. */
export const OVERRIDE_PAGES: PageLimits = { limit: 100, max: 1000 }
/** Pages of the changes of one revision. */
export const CHANGE_PAGES: PageLimits = { limit: 1000, max: 1000 }
/** Changes that a list of revisions shows of each; `change_count` says how many there are. */
export const CHANGES_IN_LIST = 20
/** Changes that a preview shows; `change_count` says how many there are. */
export const CHANGES_IN_PREVIEW = 1000

/** Characters of the message of a change. */
export const MAX_MESSAGE = 1000
/** Details of an impact, at most. */
export const MAX_IMPACT_DETAILS = 10_000

/** The highest number of a revision that a request can name. */
export const MAX_REVISION = 999_999_999_999_999
/** The plan that a preview returns: a digest of its changes. */
export const PLAN_PATTERN = '^sha256:[0-9a-f]{64}$'
export const IDEMPOTENCY_KEY_PATTERN = '^[!-~]{1,255}$'
