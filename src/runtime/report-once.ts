// Reports a failure once: what goes on failing is no news until it worked again.

interface Reports<E> {
  /** The first failure after a success, and later ones that are news. */
  readonly failed: (error: E) => void
  /** The first success after a failure. */
  readonly restored?: () => void
  /** Whether a failure after another one has to be reported too. */
  readonly isNews?: (error: E, last: E) => boolean
}

export class ReportOnce<E> {
  readonly #reports: Reports<E>
  #failure: E | undefined

  constructor(reports: Reports<E>) {
    this.#reports = reports
  }

  /** The last failure, until a success. */
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
