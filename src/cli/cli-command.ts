// What a command is: how it is defined, and what its definition is given to work with.
import type { Command } from 'commander'
import type { Settings } from './config/settings.ts'
import type { GivenTokens } from './input/token-files.ts'
import type { Terminal } from './output/terminal.ts'
import type { Noun } from './server/nouns.ts'
import type { Session } from './session.ts'

export const PROGRAM = 'flux-resourceset-cli'

/** What the process gives to every run of a command line. */
export interface CliContext {
  readonly terminal: Terminal
  readonly version: string
  /** The tokens in the files of --api-token-file and --write-token-file. */
  readonly tokens?: GivenTokens
}

/** What a command's definition is given to work with. */
export interface Tools {
  readonly program: Command
  readonly context: CliContext
  readonly nouns: readonly Noun[]
  /** Whether the server did not respond when it was asked for its types. */
  readonly isServerUnreachable: boolean
  /** The settings of this run, resolved at the first call. */
  settings(): Settings
  /** A line that begins with a verb, with its noun first; undefined for other lines. */
  nounFirst(words: readonly string[]): string[] | undefined
  /** Loads the whole tree below a command. */
  expand(command: Command): Promise<void>
  /** The action of a command: opens a session for it. Ids are those of `noun`, or of the noun that an argument is called by. */
  run<Args extends unknown[]>(
    action: (session: Session, ...args: Args) => Promise<void>,
    noun?: Noun,
  ): (...args: Args) => Promise<void>
}

export type Define = (command: Command, tools: Tools) => void
export type DefineFor = (command: Command, tools: Tools, noun: Noun) => void

/** Adds a command below one that is loaded as a whole. */
export function addSubcommand(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description).helpOption('-h, --help', 'show help')
}
