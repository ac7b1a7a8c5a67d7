// Words for sentences that people read.

const MAX_NAMED = 5

/** `an applied set`, `a cluster`. */
export function withArticle(singular: string): string {
  return `${/^[aeiou]/i.test(singular) ? 'an' : 'a'} ${singular}`
}

/** `1 cluster`, `1,250 clusters`. */
export function count(number: number, noun: string): string {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`
}

/** The first ids, for a sentence. */
export function named(ids: readonly string[]): string {
  const more = ids.length > MAX_NAMED ? ` and ${ids.length - MAX_NAMED} more` : ''
  return ids.slice(0, MAX_NAMED).join(', ') + more
}

/** The first names of a list, and how many more there are. */
export function firstOf(names: readonly string[], shown: number): string {
  const more = names.length - shown
  return more > 0 ? `${names.slice(0, shown).join(', ')} and ${count(more, 'other')}` : names.join(', ')
}
