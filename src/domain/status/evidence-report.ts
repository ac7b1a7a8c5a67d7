// What a mirror tells its upstream about clusters: notes whose times are ages, since clocks differ.
import type { Json } from '../../base/json.ts'

/** Reports that are forwarded at once, and bytes of them. */
export const MAX_REPORTS = 5000
export const MAX_REPORTS_BYTES = 4 * 1024 * 1024

export interface EvidenceReport {
  readonly kind: string
  readonly key: string
  /** How long ago it was noted. */
  readonly age_ms: number
  /** As it is noted, with times in milliseconds from the moment of sending on; they are past, and so negative. */
  readonly value: readonly Json[] | null
}
