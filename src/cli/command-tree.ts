// The tree of commands. What each command takes and does is loaded when the command is needed.
import { Command } from 'commander'
import { type CliContext, PROGRAM, type Tools } from './cli-command.ts'
import type { GlobalFlags, Settings } from './config/settings.ts'
import { UnknownName } from './failure.ts'
import { FLEET_COMMANDS } from './fleet-commands.ts'
import { NOUN_COMMANDS } from './noun-commands.ts'
import { openSession } from './open-session.ts'
import { wrapHelp } from './output/wrap.ts'
import type { Api } from './server/api.ts'
import { explainMissing } from './server/explain-missing.ts'
import type { Learned } from './server/learn-types.ts'
import { describeMethods, type Noun, namesOf, takes } from './server/nouns.ts'
import { resolveArguments } from './server/resolve-ids.ts'
import type { Session } from './session.ts'
import { nounFirst } from './verb-first.ts'

const EXIT_CODES = `Exit codes: 0 done, 1 the server said no, 2 wrong use, 3 the server cannot be reached,
4 a difference was found, a condition does not hold, or you said no, 5 clusters did not get there in time.

A change of several clusters, or one that takes something from a cluster, asks first. Without a terminal it needs --yes, or
--plan with the plan of a --dry-run (env FLUX_API_ASK=never: never ask).`

export function createRoot({ terminal, version, tokens = {} }: CliContext): Command {
  const { stdout, stderr } = terminal
  const root = new Command(PROGRAM)
    .description(
      'The desired state of a fleet of Kubernetes clusters: look at it, change it, take changes back.',
    )
    .exitOverride()
    .configureOutput({
      writeOut: (text) => stdout.write(wrapHelp(stdout, text)),
      writeErr: (text) => stderr.write(wrapHelp(stderr, text)),
      // The program reports errors itself, at the end.
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
    .option(
      '--ca-file <file>',
      'trust what this CA has signed, instead of the CAs of the system (env FLUX_API_CA_FILE)',
    )
    .option('--client-cert <file>', 'your certificate, for servers that want one (env FLUX_API_CLIENT_CERT)')
    .option('--client-key <file>', 'its key (env FLUX_API_CLIENT_KEY)')
    .option(
      '--insecure-skip-tls-verify',
      'do not verify the server: whoever is in between can read the tokens (env FLUX_API_INSECURE_SKIP_TLS_VERIFY)',
    )
    .option('--context <name>', 'a server that config knows by this name')
    .option('-o, --output <format>', 'table, wide, json, yaml, name or jsonpath=TEMPLATE')
    .option('--no-headers', 'leave out the first line of tables')
    .option('-q, --quiet', 'no notes and no progress on stderr')
    .option(
      '--timeout <time>',
      'how long to wait for an answer (default 60s), or with wait and --wait for clusters (default 10m)',
    )
    .addHelpText('after', `\n${EXIT_CODES}\n\nEvery command has examples: ${PROGRAM} cluster list --help`)
  for (const [name, token] of Object.entries(tokens)) root.setOptionValue(name, token)
  return root
}

/** Commands as stubs, whose definitions are loaded once they are needed. */
class LazyCommands {
  readonly #loaders = new Map<Command, () => Promise<void>>()
  /** The last command that parsing has reached. */
  reached: Command

  constructor(program: Command) {
    this.reached = program
    program.hook('preSubcommand', (_program, child) => this.#load(child))
  }

  add(
    parent: Command,
    { name, summary, hidden = false }: { name: string; summary: string; hidden?: boolean | undefined },
    define: (command: Command) => Promise<void>,
  ): Command {
    const command = parent
      .command(name, { hidden })
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

  /** Loads a command and everything below it. */
  async expand(command: Command): Promise<void> {
    await this.#load(command)
    for (const child of command.commands) await this.expand(child)
  }
}

interface Tree {
  readonly tools: Tools
  readonly commands: LazyCommands
  close(): void
}

interface TreeOptions {
  readonly program: Command
  readonly context: CliContext
  readonly learned: Pick<Learned, 'nouns' | 'problem'>
  settings(): Settings
  /** The words of the command line: where they name a command, no other is added. */
  readonly words?: readonly string[]
}

/** Adds the commands of each noun and of the fleet to the program. */
export function buildTree({ program, context, learned, settings, words = [] }: TreeOptions): Tree {
  const { nouns, problem } = learned
  const commands = new LazyCommands(program)
  const opened: Api[] = []
  const tools: Tools = {
    program,
    context,
    nouns,
    isServerUnreachable: problem !== undefined,
    settings,
    nounFirst: (words) => nounFirst(program, words, nouns),
    expand: (command) => commands.expand(command),
    run:
      (action, noun) =>
      async (...args) => {
        const session = await openSession(context, program.opts<GlobalFlags>(), settings(), nouns)
        opened.push(session.api)
        try {
          await action(session, ...(await resolveArguments(session, args, noun)))
        } catch (error) {
          throw await explainMissing(session, error)
        }
        await waitAtEnd(session)
      },
  }
  const named = FLEET_COMMANDS.find(({ name }) => name === words[0])
  const isNoun = !named && addNouns(commands, tools, words)
  const others = isNoun ? [] : FLEET_COMMANDS
  for (const { group, define, ...about } of named ? [named] : others) {
    program.commandsGroup(group)
    commands.add(program, about, async (own) => (await define())(own, tools))
  }
  program.helpCommand('help [command...]', 'show help')
  const close = (): void => {
    for (const api of opened) api.close()
  }
  return { tools, commands, close }
}

/** Waits for what the command has changed, where --wait is given: its clusters, or its rollout. */
async function waitAtEnd(session: Session): Promise<void> {
  for (const awaited of session.awaited) {
    if ('rollout' in awaited) {
      const { waitForRollout } = await import('./rollouts/follow-rollout.ts')
      await waitForRollout(session, awaited.rollout)
    } else {
      const { waitForRevision } = await import('./fleet/wait-for-clusters.ts')
      await waitForRevision(session, awaited.revision, awaited.goal)
    }
  }
}

/** Adds the noun that the first word names, or all of them; returns whether it names one. */
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
    commands.add(program, { name, summary }, define).aliases(aliases)
  }
  return meant !== undefined
}

/** Adds the commands of a noun: the one that the verb names, or all of them. */
function addVerbs(
  commands: LazyCommands,
  tools: Tools,
  parent: Command,
  noun: Noun,
  verb: string | undefined,
): void {
  const all = NOUN_COMMANDS.filter(({ fits }) => fits(noun))
  const possible = all.filter(({ name }, i) => all.findIndex((each) => each.name === name) === i)
  const fitting = possible.filter(({ needs }) => !needs || takes(noun, needs))
  const isNamed = ({ name, aliases = [] }: (typeof all)[number]): boolean =>
    verb !== undefined && [name, ...aliases].includes(verb)
  const named = fitting.find(isNamed)
  if (!named && possible.some(isNamed))
    throw new UnknownName(`${verb} is not possible: ${describeMethods(noun)}`)
  const own: Tools = { ...tools, run: (action) => tools.run(action, noun) }
  for (const { name, aliases = [], summary, define } of named ? [named] : fitting) {
    const about = { name, summary: summary(noun) }
    commands.add(parent, about, async (child) => (await define())(child, own, noun)).aliases(aliases)
  }
}

function lowerFirst(text: string): string {
  return `${text[0]?.toLowerCase()}${text.slice(1)}`
}
