// Bad use of a command or bad settings, which end the process with exit code 2.

/** Everything wrong with a command line or with settings: each problem is reported on its own line. */
export class UsageProblem extends Error {
  readonly problems: readonly string[]
  constructor(...problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}
