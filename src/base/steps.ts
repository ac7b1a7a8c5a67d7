// Long work in small steps, so that whoever runs it can let others have their turn in between.

export type Steps<T> = Generator<undefined, T, undefined>

/** Takes all the steps at once. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}
