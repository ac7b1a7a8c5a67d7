// Metrics as Prometheus reads them: the sum of each name over its labels.

export function parseMetrics(text: string): ReadonlyMap<string, number> {
  const sums = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [, name, value] = /^([a-zA-Z_:][\w:]*)(?:\{.*\})? (\S+)/.exec(line) ?? []
    if (name === undefined || !Number.isFinite(Number(value))) continue
    sums.set(name, (sums.get(name) ?? 0) + Number(value))
  }
  return sums
}
