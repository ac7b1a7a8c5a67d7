// Bad use of a command or bad settings, which end the process with exit code 2.

/** Bad use, with all that is wrong: told one by one, exit 2. */
export class UsageProblem extends Error {
  readonly problems: readonly string[]
  constructor(...problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}
