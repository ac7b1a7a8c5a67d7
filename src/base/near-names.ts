// Suggestions for a misspelt name: the known names that are most similar to it.

/** How many names are compared, and how many are suggested, at most. */
const MAX_LOOKED_AT = 10_000
const MAX_TOLD = 3

/** Returns `: did you mean "podinfo"?`, or an empty string where no name is similar. */
export function didYouMean(name: string, names: Iterable<string>): string {
  const near = nearNames(name, names).map((other) => `"${other}"`)
  return near.length === 0 ? '' : `: did you mean ${near.join(' or ')}?`
}

/**
 * Returns similar names, the nearest first. Each differs by at most one mistake in three characters, and three in all.
 */
function nearNames(name: string, names: Iterable<string>): string[] {
  const most = Math.min(3, Math.floor(name.length / 3))
  const near: { other: string; mistakes: number }[] = []
  let looked = 0
  for (const other of names) {
    if (++looked > MAX_LOOKED_AT) break
    if (Math.abs(other.length - name.length) > most) continue
    const mistakes = distance(name, other)
    if (mistakes <= most) near.push({ other, mistakes })
  }
  return near
    .sort((a, b) => a.mistakes - b.mistakes)
    .slice(0, MAX_TOLD)
    .map(({ other }) => other)
}

/** The Damerau-Levenshtein distance: how many characters are missing, surplus, wrong or swapped. */
function distance(a: string, b: string): number {
  let [before, row]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      next[j] = Math.min(
        (row[j] as number) + 1,
        (next[j - 1] as number) + 1,
        (row[j - 1] as number) + Number(!isSame),
        swapped ? (before[j - 2] as number) + 1 : Number.POSITIVE_INFINITY,
      )
    }
    ;[before, row] = [row, next]
  }
  return row[b.length] as number
}
