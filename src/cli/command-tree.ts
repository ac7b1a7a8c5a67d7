// The tree of commands. What each of them takes and does is loaded when it is asked for.
import { Command } from 'commander'
import { FLEET_COMMANDS, NOUN_COMMANDS } from './command-table.ts'
import { permissionWarning } from './config/contexts.ts'
import { type GlobalFlags, resolveSettings, type Settings } from './config/settings.ts'
import type { GivenTokens } from './config/token-files.ts'
import { UnknownName } from './failure.ts'
import { parseFormat } from './output/print.ts'
import type { Terminal } from './output/terminal.ts'
import { type Api, openApi } from './server/api-client.ts'
import type { Learned } from './server/learn-types.ts'
import { describeMethods, type Noun, namesOf, takes } from './server/nouns.ts'
import { warnOfPlainHttp } from './server/plain-http.ts'
import { createSession, type Session } from './session.ts'

export const PROGRAM = 'flux-resourceset-cli'

export interface Surroundings {
  readonly terminal: Terminal
  readonly version: string
  /** Folder of the resource files that come with the program. */
  readonly resources: string
  /** What was read from the files of --api-token-file and --write-token-file. */
  readonly tokens?: GivenTokens
}

/** What a command's definition is given to work with. */
export interface Tools {
  readonly program: Command
  readonly surroundings: Surroundings
  readonly nouns: readonly Noun[]
  /** Whether the server did not answer when it was asked for its types. */
  readonly isAway: boolean
  /** Loads the whole tree below a command. */
  expand(command: Command): Promise<void>
  /** The action of a command: opens a session for it. */
  run<Args extends unknown[]>(
    action: (session: Session, ...args: Args) => Promise<void>,
  ): (...args: Args) => Promise<void>
}

export type Define = (command: Command, tools: Tools) => void
export type DefineFor = (command: Command, tools: Tools, noun: Noun) => void

const EXIT_CODES = `Exit codes: 0 done, 1 the server said no, 2 wrong use, 3 the server cannot be reached,
4 a difference was found, a condition does not hold, or you said no.

What touches several clusters, or takes something from one, is asked about. Where there is no terminal it needs --yes, or
--plan with what --dry-run printed (env FLUX_API_ASK=never: never ask).`

export function createRoot({ terminal, version, tokens = {} }: Surroundings): Command {
  const { stdout, stderr } = terminal
  const root = new Command(PROGRAM)
    .description(
      'The desired state of a fleet of Kubernetes clusters: look at it, change it, take changes back.',
    )
    .exitOverride()
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      // Told once, at the end.
      outputError() {},
    })
    .version(version, '-V, --version')
    .helpOption('-h, --help', 'show help')
    .optionsGroup('Flags of every command:')
    .option('--api-url <url>', 'the API (env FLUX_API_URL, default http://127.0.0.1:8080)')
    .option('--api-token <token>', 'token for reading (env FLUX_API_TOKEN); shows in lists of processes')
    .option('--api-token-file <file>', 'a file with the token for reading, - for stdin')
    .option(
      '--write-token <token>',
      'token for writing (env FLUX_API_WRITE_TOKEN, default the token for reading); shows in lists of processes',
    )
    .option('--write-token-file <file>', 'a file with the token for writing, - for stdin')
    .option('--context <name>', 'a server of your own list: see config')
    .option('-o, --output <format>', 'table, wide, json, yaml, name or jsonpath=TEMPLATE')
    .option('--no-headers', 'tables without their first line')
    .option('-q, --quiet', 'no notes and no progress on stderr')
    .option('--timeout <seconds>', 'how long to wait for an answer (default 60)')
    .addHelpText('after', `\n${EXIT_CODES}\n\nEvery command has examples: ${PROGRAM} cluster list --help`)
  for (const [name, token] of Object.entries(tokens)) root.setOptionValue(name, token)
  return root
}

/** Commands as stubs that learn what they take once they are needed. */
class LazyCommands {
  readonly #loaders = new Map<Command, () => Promise<void>>()
  /** The command that the words led to so far. */
  reached: Command

  constructor(program: Command) {
    this.reached = program
    program.hook('preSubcommand', (_program, child) => this.#load(child))
  }

  add(parent: Command, name: string, summary: string, define: (command: Command) => Promise<void>): Command {
    const command = parent
      .command(name)
      .summary(summary)
      .description(`${summary[0]?.toUpperCase()}${summary.slice(1)}.`)
      .helpOption('-h, --help', 'show help')
      .helpCommand(false)
      .hook('preSubcommand', (_parent, child) => this.#load(child))
    this.#loaders.set(command, () => define(command))
    return command
  }

  async #load(command: Command): Promise<void> {
    this.reached = command
    const loader = this.#loaders.get(command)
    this.#loaders.delete(command)
    await loader?.()
  }

  /** Everything below a command. */
  async expand(command: Command): Promise<void> {
    await this.#load(command)
    for (const child of command.commands) await this.expand(child)
  }
}

/** A command below one that is loaded as a whole. */
export function addSubcommand(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description).helpOption('-h, --help', 'show help')
}

interface Tree {
  readonly tools: Tools
  readonly commands: LazyCommands
  close(): void
}

/** The commands of each noun and of the fleet; only those that the words name, if they do. */
export function buildTree(
  program: Command,
  surroundings: Surroundings,
  { nouns, problem }: Pick<Learned, 'nouns' | 'problem'>,
  words: readonly string[] = [],
): Tree {
  const commands = new LazyCommands(program)
  const opened: Api[] = []
  const tools: Tools = {
    program,
    surroundings,
    nouns,
    isAway: problem !== undefined,
    expand: (command) => commands.expand(command),
    run:
      (action) =>
      async (...args) => {
        const session = await openSession(program, surroundings, nouns)
        opened.push(session.api)
        return action(session, ...args)
      },
  }
  const named = FLEET_COMMANDS.find(({ name }) => name === words[0])
  const isNoun = !named && addNouns(commands, tools, words)
  const others = isNoun ? [] : FLEET_COMMANDS
  for (const { name, summary, group, hidden, define } of named ? [named] : others) {
    program.commandsGroup(group)
    const child = commands.add(program, name, summary, async (own) => (await define())(own, tools))
    if (hidden) Object.assign(child, { _hidden: true })
  }
  program.helpCommand('help [command...]', 'show help')
  const close = (): void => {
    for (const api of opened) api.close()
  }
  return { tools, commands, close }
}

/** Adds the noun that is named, or all of them; answers whether one was. */
function addNouns(commands: LazyCommands, tools: Tools, [word = '', verb]: readonly string[]): boolean {
  const { program, nouns } = tools
  program.commandsGroup('Resources:')
  const taken = new Set([...FLEET_COMMANDS.map(({ name }) => name), 'help'])
  const proper = new Map(nouns.map((noun) => [noun, taken.has(noun.noun) ? noun.name : noun.noun]))
  for (const name of proper.values()) taken.add(name)
  const meant = [...proper].find(([noun, name]) => [name, ...namesOf(noun)].includes(word))
  for (const [noun, name] of meant ? [meant] : proper) {
    const aliases = namesOf(noun).filter((each) => !taken.has(each))
    for (const alias of aliases) taken.add(alias)
    const summary = lowerFirst(noun.description.replace(/\.$/, ''))
    const define = async (parent: Command): Promise<void> => addVerbs(commands, tools, parent, noun, verb)
    commands.add(program, name, summary, define).aliases(aliases)
  }
  return meant !== undefined
}

/** Adds what can be done with a noun: the verb that is named, or all of them. */
function addVerbs(
  commands: LazyCommands,
  tools: Tools,
  parent: Command,
  noun: Noun,
  verb: string | undefined,
): void {
  const possible = NOUN_COMMANDS.filter(({ fits }) => fits(noun))
  const fitting = possible.filter(({ needs }) => !needs || takes(noun, needs))
  const named = fitting.find(({ name }) => name === verb)
  if (!named && possible.some(({ name }) => name === verb))
    throw new UnknownName(`${verb} is not possible: ${describeMethods(noun)}`)
  for (const { name, summary, define } of named ? [named] : fitting) {
    commands.add(parent, name, summary(noun), async (child) => (await define())(child, tools, noun))
  }
}

function lowerFirst(text: string): string {
  return `${text[0]?.toLowerCase()}${text.slice(1)}`
}

/** Keeps the token of somebody who has logged in good, for as long as a command takes. */
export function keepFresh({ terminal: { env }, version }: Surroundings) {
  return async (settings: Settings): Promise<Settings> => {
    if (!settings.login) return settings
    const { renewLogin } = await import('./server/renew-login.ts')
    return renewLogin(settings, { env, version })
  }
}

async function openSession(
  program: Command,
  surroundings: Surroundings,
  nouns: readonly Noun[],
): Promise<Session> {
  const { terminal, version } = surroundings
  const flags = program.opts<GlobalFlags>()
  const settings = resolveSettings(flags, terminal.env)
  const format = await parseFormat(flags.output)
  const quiet = flags.quiet ?? false
  const note = (text: string): void => {
    if (!quiet) terminal.stderr.write(`${text}\n`)
  }
  const warning = settings.context === undefined ? undefined : permissionWarning(terminal.env)
  if (warning) note(`Warning: ${warning}`)
  if (settings.readToken) warnOfPlainHttp(terminal, settings.url, settings.allowsHttp)
  const api = openApi({ settings, env: terminal.env, version, fresh: keepFresh(surroundings), note })
  return createSession({
    terminal,
    settings,
    api,
    nouns,
    format,
    quiet,
    version,
    headers: flags.headers ?? true,
  })
}
