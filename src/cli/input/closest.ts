// The names that somebody may have meant.

const MOST = 3

/** The names that differ least from a text, where they differ little; the nearest first. */
export function closest(text: string, names: readonly string[]): string[] {
  const limit = Math.max(1, Math.floor(text.length * 0.4))
  const near = names
    .map((name) => ({ name, distance: distanceOf(text, name, Math.min(limit, 3)) }))
    .filter(({ distance }) => distance <= Math.min(limit, 3))
  const least = Math.min(...near.map(({ distance }) => distance))
  return near.flatMap(({ name, distance }) => (distance === least ? [name] : [])).slice(0, MOST)
}

/** How many letters are to be added, left out, replaced or swapped; anything above `most` is as good as infinite. */
function distanceOf(one: string, two: string, most: number): number {
  if (Math.abs(one.length - two.length) > most) return Number.POSITIVE_INFINITY
  let [before, row]: [number[], number[]] = [[], Array.from({ length: two.length + 1 }, (_each, i) => i)]
  for (let i = 1; i <= one.length; i++) {
    const next = [i]
    for (let j = 1; j <= two.length; j++) {
      const isSame = one[i - 1] === two[j - 1]
      const isSwapped = i > 1 && j > 1 && one[i - 1] === two[j - 2] && one[i - 2] === two[j - 1]
      next[j] = Math.min(
        (row[j] ?? 0) + 1,
        (next[j - 1] ?? 0) + 1,
        (row[j - 1] ?? 0) + Number(!isSame),
        isSwapped ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      )
    }
    ;[before, row] = [row, next]
  }
  return row[two.length] ?? 0
}
