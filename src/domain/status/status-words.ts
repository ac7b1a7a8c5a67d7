// The states of a cluster, one word each and worst first where one is worse than another.

/** Whether a cluster still speaks to the service. */
export const CONTACTS = ['refused', 'offline', 'never', 'late', 'unobserved', 'current', 'deleted'] as const
export type Contact = (typeof CONTACTS)[number]

/** Whether a cluster has spoken lately: what else is known of a silent one is old. */
export function isHeard(contact: Contact): boolean {
  return contact === 'current' || contact === 'late'
}

/** How far what a cluster is to be served has come. */
export const DELIVERIES = ['rejected', 'behind', 'served', 'held', 'applied'] as const
export type Delivered = (typeof DELIVERIES)[number]

/** How a component fares. `unknown` is what nothing is known of, and evidence about another input. */
export const HEALTHS = ['failed', 'unknown', 'progressing', 'healthy'] as const
export type Health = (typeof HEALTHS)[number]

/** What a transition is of. */
export const COLUMNS = ['contact', 'delivery', 'health'] as const
export type Column = (typeof COLUMNS)[number]

/** The states of a cluster in one row. */
export interface StatusRow {
  readonly contact: Contact
  readonly delivery: Delivered
  readonly health: Health
}

/** Returns the worse of two states of one list. */
export function worse<T extends string>(words: readonly T[], one: T, other: T): T {
  return words.indexOf(one) <= words.indexOf(other) ? one : other
}
