// Words in sentences that name types, which anybody may add.

/** `an applied set`, `a cluster`. */
export function withArticle(singular: string): string {
  return `${/^[aeiou]/i.test(singular) ? 'an' : 'a'} ${singular}`
}
