// Long work in small steps, so that its caller can let other work run in between.

export type Steps<T> = Generator<undefined, T, undefined>

/** Runs all steps at once, without a pause. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}
