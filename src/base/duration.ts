// Durations as Go and Kubernetes write them: 30s, 5m, 1h30m; and 7d, which they do not know.

const SECONDS: Readonly<Record<string, number>> = { d: 86_400, h: 3600, m: 60, s: 1 }

/** Returns seconds; undefined when the text is no duration. */
export function parseDuration(text: string): number | undefined {
  if (!/^(?:\d{1,6}[dhms])+$/.test(text)) return undefined
  const parts = text.matchAll(/(\d+)([dhms])/g)
  return parts.reduce((sum, [, count, unit = 's']) => sum + Number(count) * (SECONDS[unit] ?? 0), 0)
}

/** The inverse, exact to the second: `2d14h`. */
export function formatDuration(seconds: number): string {
  const parts: string[] = []
  let left = Math.round(seconds)
  for (const [unit, size] of Object.entries(SECONDS)) {
    const count = Math.floor(left / size)
    if (count > 0) parts.push(`${count}${unit}`)
    left -= count * size
  }
  return parts.join('') || '0s'
}
