// Metrics of polls, counted in plain arrays: the counters of a library would cost more than the answer.

const BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1]
const TOTAL = 'flux_resourceset_polls_total'
const DURATION = 'flux_resourceset_poll_duration_seconds'

class Tally {
  /** Counts by the first digit of the status. */
  readonly classes = [0, 0, 0, 0, 0, 0]
  /** Counts per bucket, not cumulative; the last one is for polls slower than all bounds. */
  readonly buckets = new Array<number>(BUCKETS.length + 1).fill(0)
  count = 0
  sum = 0
}

export class PollMetrics {
  readonly #tallies = new Map<string, Tally>()

  /** Endpoints are fixed at the start, so that text from a request never becomes a label. */
  constructor(endpoints: readonly string[]) {
    for (const endpoint of endpoints) this.#tallies.set(endpoint, new Tally())
  }

  count(endpoint: string, status: number, seconds: number): void {
    const tally = this.#tallies.get(endpoint)
    if (!tally) return
    const digit = Math.floor(status / 100)
    tally.classes[digit] = (tally.classes[digit] ?? 0) + 1
    let bucket = 0
    while (bucket < BUCKETS.length && seconds > (BUCKETS[bucket] as number)) bucket++
    tally.buckets[bucket] = (tally.buckets[bucket] ?? 0) + 1
    tally.count++
    tally.sum += seconds
  }

  /** In Prometheus' text format. */
  render(): string {
    const tallies = [...this.#tallies]
    return [
      `# HELP ${TOTAL} Polls of clusters by endpoint and class of status.`,
      `# TYPE ${TOTAL} counter`,
      ...tallies.flatMap(([endpoint, { classes }]) =>
        classes.flatMap((n, digit) =>
          n > 0 ? [`${TOTAL}{endpoint="${endpoint}",code="${digit}xx"} ${n}`] : [],
        ),
      ),
      `# HELP ${DURATION} Time from a poll to its answer.`,
      `# TYPE ${DURATION} histogram`,
      ...tallies
        .filter(([, { count }]) => count > 0)
        .flatMap(([endpoint, tally]) => histogram(endpoint, tally)),
      '',
    ].join('\n')
  }
}

function histogram(endpoint: string, { buckets, count, sum }: Tally): string[] {
  let below = 0
  const lines = [...BUCKETS, '+Inf'].map((bound, i) => {
    below += buckets[i] ?? 0
    return `${DURATION}_bucket{le="${bound}",endpoint="${endpoint}"} ${below}`
  })
  return [
    ...lines,
    `${DURATION}_sum{endpoint="${endpoint}"} ${sum}`,
    `${DURATION}_count{endpoint="${endpoint}"} ${count}`,
  ]
}
