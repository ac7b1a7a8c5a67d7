// Stored instants of rollouts, and stretches of time that begin with one. RFC 3339, UTC.

export function isPast(since: string | undefined, seconds: number, now: string): boolean {
  return since !== undefined && Date.parse(now) >= Date.parse(since) + seconds * 1000
}

export function later(since: string, seconds: number): string {
  return new Date(Date.parse(since) + seconds * 1000).toISOString()
}

/** Whether an instant that was stored is in the future: the clock was put back since. */
export function isAhead(stored: string | undefined, now: string): boolean {
  return stored !== undefined && Date.parse(stored) > Date.parse(now)
}

/** The earliest of some instants. */
export function earliest(...instants: readonly (string | undefined)[]): string | undefined {
  return instants
    .filter((instant) => instant !== undefined)
    .reduce<string | undefined>(
      (first, instant) => (first === undefined || Date.parse(instant) < Date.parse(first) ? instant : first),
      undefined,
    )
}
