// How a command ends when it cannot do what was asked: what to say, what to try next, and the exit code.

/** The exit codes, for scripts. */
export const EXIT = {
  ok: 0,
  /** The server said no. */
  refused: 1,
  /** Wrong use: a flag, a file, a setting. */
  usage: 2,
  /** No server answered, or something else did. */
  unreachable: 3,
  /** A difference was found, or a condition does not hold. */
  unmet: 4,
} as const

/** Thrown by commands, told once by the process; without a message only the exit code tells. */
export class Failure extends Error {
  readonly exitCode: number
  /** Lines below the message: which places are wrong, who says so. */
  readonly details: readonly string[]
  readonly hint: string | undefined

  constructor(
    exitCode: number,
    message: string,
    more: { details?: readonly string[]; hint?: string | undefined } = {},
  ) {
    super(message)
    this.exitCode = exitCode
    this.details = more.details ?? []
    this.hint = more.hint
  }
}

export function usage(message: string, hint?: string): Failure {
  return new Failure(EXIT.usage, message, { hint })
}

export function unmet(message: string, hint?: string): Failure {
  return new Failure(EXIT.unmet, message, { hint })
}

/** A name that the server may know by now. */
export class UnknownName extends Failure {
  constructor(message: string) {
    super(EXIT.usage, message)
  }
}
