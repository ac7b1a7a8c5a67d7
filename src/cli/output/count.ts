// Numbers and lists of names in lines for people.

export function count(number: number, noun: string): string {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`
}

/** The first names of a list, and how many more there are. */
export function firstOf(names: readonly string[], shown: number): string {
  const more = names.length - shown
  return more > 0 ? `${names.slice(0, shown).join(', ')} and ${count(more, 'other')}` : names.join(', ')
}
