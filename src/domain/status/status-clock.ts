// The time that states are derived at, and how long they hold if nothing new becomes known.

export class StatusClock {
  readonly now: number
  /** The first moment at which a comparison made so far would come out differently. */
  until = Number.POSITIVE_INFINITY

  constructor(now: number) {
    this.now = now
  }

  /** Every rule that depends on time asks here, so that `until` is known. */
  isPast(moment: number): boolean {
    if (this.now >= moment) return true
    if (moment < this.until) this.until = moment
    return false
  }
}
