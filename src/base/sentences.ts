// Words for sentences that people read.

const MAX_NAMED = 5

/** `an applied set`, `a cluster`. */
export function withArticle(singular: string): string {
  return `${/^[aeiou]/i.test(singular) ? 'an' : 'a'} ${singular}`
}

/** The first ids, for a sentence. */
export function named(ids: readonly string[]): string {
  const more = ids.length > MAX_NAMED ? ` and ${ids.length - MAX_NAMED} more` : ''
  return ids.slice(0, MAX_NAMED).join(', ') + more
}
