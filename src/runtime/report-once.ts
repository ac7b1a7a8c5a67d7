// Reports only the first of consecutive failures, until a success.

interface Reports<E> {
  /** Called with the first failure after a success, and with later ones that `isNews` accepts. */
  readonly failed: (error: E) => void
  /** Called on the first success after a failure. */
  readonly restored?: () => void
  /** Whether a failure that follows another failure is reported too. */
  readonly isNews?: (error: E, last: E) => boolean
}

export class ReportOnce<E> {
  readonly #reports: Reports<E>
  #failure: E | undefined

  constructor(reports: Reports<E>) {
    this.#reports = reports
  }

  /** The last failure; undefined after a success. */
  get failure(): E | undefined {
    return this.#failure
  }

  fail(error: E): void {
    const { failed, isNews } = this.#reports
    if (this.#failure === undefined || isNews?.(error, this.#failure)) failed(error)
    this.#failure = error
  }

  succeed(): void {
    if (this.#failure !== undefined) this.#reports.restored?.()
    this.#failure = undefined
  }
}
