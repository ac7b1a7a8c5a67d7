// What tracing needs of code: spans that begin, have parts, and end. Without tracing there are none.

export type Attributes = Readonly<Record<string, string | number | boolean>>

export interface Span {
  /** A part of the work, which ends by itself. */
  child(name: string): Span
  set(attributes: Attributes): void
  /** Ends it, as failed where a problem is given. */
  end(problem?: string): void
}

export interface Tracer {
  /**
   * Begins the span of a request, in the trace of its caller (`traceparent`, W3C). Undefined where the caller says that
   * the trace is not recorded.
   */
  start(name: string, traceparent: string | undefined, attributes: Attributes): Span | undefined
  /** Sends what is left; waits a few seconds at most. */
  stop(): Promise<void>
}

/** Runs work as a part of a span; without a span it is only run. */
export async function inSpan<T>(span: Span | undefined, name: string, run: () => Promise<T>): Promise<T> {
  const part = span?.child(name)
  try {
    const value = await run()
    part?.end()
    return value
  } catch (error) {
    part?.end(error instanceof Error ? error.message : String(error))
    throw error
  }
}
