// How a command fails: a message, a hint what to try next, and the exit code.

/** The exit codes, for scripts. */
export const EXIT = {
  ok: 0,
  /** The server refused. */
  refused: 1,
  /** Wrong use: a flag, a file, a setting. */
  usage: 2,
  /** No server responded, or something that is not this API. */
  unreachable: 3,
  /** A difference was found, or a condition does not hold. */
  unmet: 4,
  /** What was waited for did not happen in time. */
  timeout: 5,
} as const

/** A command to type next, and what it does: another one, or the same with flags more and others less. */
export type NextStep = { readonly about: string } & (
  | { readonly command: string; readonly again?: undefined }
  | { readonly again: string; readonly without?: readonly string[] }
)

/** What to try after a failure: a hint in words, and commands. */
export interface Advice {
  readonly hint?: string | undefined
  readonly steps?: readonly NextStep[]
}

/** Thrown by commands, reported by the program; without a message only the exit code is set. */
export class Failure extends Error {
  readonly exitCode: number
  /** Lines below the message: which places are wrong, and the source of the error. */
  readonly details: readonly string[]
  readonly hint: string | undefined
  readonly steps: readonly NextStep[]

  constructor(exitCode: number, message: string, more: Advice & { details?: readonly string[] } = {}) {
    super(message)
    this.exitCode = exitCode
    this.details = more.details ?? []
    this.hint = more.hint
    this.steps = more.steps ?? []
  }
}

export function usage(message: string, hint?: string): Failure {
  return new Failure(EXIT.usage, message, { hint })
}

export function unmet(message: string, hint?: string): Failure {
  return new Failure(EXIT.unmet, message, { hint })
}

/** A name that cached types do not have: the server may have it by now. */
export class UnknownName extends Failure {
  constructor(message: string) {
    super(EXIT.usage, message)
  }
}
