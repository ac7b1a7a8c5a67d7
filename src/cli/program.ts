// Runs a command line: learns the server's types, builds the tree of commands, and reports how the command ended.
import { Command, CommanderError } from 'commander'
import { type CliContext, PROGRAM } from './cli-command.ts'
import { buildTree, createRoot } from './command-tree.ts'
import { type GlobalFlags, resolveSettings, type Settings } from './config/settings.ts'
import { EXIT, Failure, UnknownName } from './failure.ts'
import { COMPLETE, FLEET_COMMANDS } from './fleet-commands.ts'
import type { GivenTokens } from './input/token-files.ts'
import { warnOfPlainHttp } from './output/plain-http.ts'
import { commandOf } from './output/same-command.ts'
import { painter, plain, type Terminal } from './output/terminal.ts'
import { wrapFor } from './output/wrap.ts'
import type { Api } from './server/api.ts'
import { openApi } from './server/api-client.ts'
import { type Learned, learnTypes } from './server/learn-types.ts'
import { namesOf } from './server/nouns.ts'
import { shippedTypes } from './shipped.ts'
import { isVerb, nounFirst } from './verb-first.ts'

/** Runs a command line to its end; returns the exit code. */
export async function runProgram(argv: readonly string[], context: CliContext): Promise<number> {
  try {
    return await runLine(argv, { ...context, tokens: await readTokens(argv, context) })
  } catch (error) {
    return reportFailure(error, context.terminal, argv)
  }
}

/** Reads the files of tokens before the line is run, which may happen twice: stdin can be read once. */
async function readTokens(argv: readonly string[], context: CliContext): Promise<GivenTokens> {
  const isGiven = argv.some((arg) => /^--(?:api|write)-token-file/.test(arg))
  if (!isGiven || argv[0] === COMPLETE) return {}
  const program = createRoot(context)
  program.parseOptions([...argv])
  const { readTokenFiles } = await import('./input/token-files.ts')
  return readTokenFiles(context.terminal, program.opts<GlobalFlags>())
}

/** Runs a line. It is run again with fresh types where cached ones do not have what it names. */
async function runLine(
  argv: readonly string[],
  context: CliContext,
  { refreshTypes = false } = {},
): Promise<number> {
  const program = createRoot(context)
  const words = program.parseOptions([...argv]).operands
  const [word = ''] = words
  const isCompletion = word === COMPLETE
  // The line that is completed may name another server.
  if (isCompletion) readLeniently(program, argv)
  if (word === 'help' && words.length > 1) {
    return runLine([...argv.toSpliced(argv.indexOf('help'), 1), '--help'], context, { refreshTypes })
  }
  const settings = settingsOf(program, context.terminal)
  const command = FLEET_COMMANDS.find(({ name }) => name === word)
  const refresh = refreshTypes || command?.types === 'fresh'
  const learned = !command || command.types ? await learn(argv, context, settings, refresh) : undefined
  const mayBeStale = learned?.from === 'cache' && !refresh
  if (!command && !isNoun(learned, word)) {
    const ordered = learned && nounFirst(program, argv, learned.nouns)
    if (ordered) return runLine(ordered, context, { refreshTypes })
    if (mayBeStale) return runLine(argv, context, { refreshTypes: true })
    if (learned?.problem) throw serverNotAsked(learned.problem, word)
  }
  // --help of a command that does not exist is an error with a suggestion.
  const line = isCommand(learned, words) ? argv : argv.filter((arg) => !HELP_FLAGS.includes(arg))
  const tree = buildTree({
    program,
    context,
    learned: learned ?? { nouns: [] },
    settings,
    words: isCompletion ? [] : words,
  })
  try {
    if (argv.length === 0) program.outputHelp()
    else await program.parseAsync([...line], { from: 'user' })
    return EXIT.ok
  } catch (error) {
    if (mayBeStale && isUnknown(error)) return await runLine(argv, context, { refreshTypes: true })
    if (error instanceof CommanderError && error.exitCode !== 0 && error.code !== 'commander.help') {
      throw misuse(error, tree.commands.reached)
    }
    throw error
  } finally {
    tree.close()
  }
}

/** Resolves the settings at the first call: they are read once for a run. */
function settingsOf(program: Command, { env }: Terminal): () => Settings {
  let settings: Settings | undefined
  return () => {
    settings ??= resolveSettings(program.opts<GlobalFlags>(), env)
    return settings
  }
}

/** Reads the program's own flags from a line that is not finished. */
function readLeniently(program: Command, argv: readonly string[]): void {
  try {
    program.parseOptions(argv.slice(argv.indexOf('--') + 1, -1))
  } catch {
    // A flag still lacks its value.
  }
}

/** Whether the words name a command, or the beginning of one. */
function isCommand(learned: Learned | undefined, [word = '', verb]: readonly string[]): boolean {
  if (word === '' || word === 'help' || FLEET_COMMANDS.some(({ name }) => name === word)) return true
  const noun = learned?.nouns.find((each) => namesOf(each).includes(word))
  return noun !== undefined && (verb === undefined || isVerb(verb))
}

function isNoun(learned: Learned | undefined, word: string): boolean {
  const names = learned?.nouns.flatMap(namesOf) ?? []
  return word === '' || word === 'help' || names.includes(word)
}

/** The failure to ask the server for its types, where a word may be one of them. */
function serverNotAsked({ exitCode, message, details, hint }: Failure, word: string): Failure {
  const why = `"${word}" is no command and no built-in type, and the server could not be asked for its own`
  return new Failure(exitCode, message, { details: [why, ...details], hint })
}

function isUnknown(error: unknown): boolean {
  if (error instanceof UnknownName) return true
  const codes = ['commander.unknownCommand', 'commander.unknownOption', 'commander.excessArguments']
  return error instanceof CommanderError && codes.includes(error.code)
}

/** An error of commander, with a hint to the help of the command. */
function misuse({ message }: CommanderError, command: Command): Failure {
  const [first = '', ...more] = message.replace(/^error: /, '').split('\n')
  const names: string[] = []
  for (let at: Command | null = command; at; at = at.parent) names.unshift(at.name())
  return new Failure(EXIT.usage, first, { details: more, hint: `see ${names.join(' ')} --help` })
}

const HELP_FLAGS = ['-h', '--help']
const LEARNING_TIMEOUT_MS = 10_000
/** Help and completion do not wait long for a server that does not respond. */
const SHORT_TIMEOUT_MS = 1500

async function learn(
  argv: readonly string[],
  { terminal, version }: CliContext,
  resolve: () => Settings,
  refresh: boolean,
): Promise<Learned> {
  const { env } = terminal
  const wantsHelp = argv.length === 0 || argv.some((arg) => arg === 'help' || HELP_FLAGS.includes(arg))
  let settings: Settings
  try {
    settings = resolve()
  } catch (error) {
    // Help must work before anything is set up.
    if (!wantsHelp) throw error
    return { nouns: await shippedTypes(), from: 'built-in' }
  }
  const longest = wantsHelp || argv[0] === COMPLETE ? SHORT_TIMEOUT_MS : LEARNING_TIMEOUT_MS
  const brief = { ...settings, timeoutMs: Math.min(settings.timeoutMs, longest) }
  const open = (): Api => {
    if (settings.readToken && argv[0] !== COMPLETE)
      warnOfPlainHttp(terminal, settings.url, settings.allowsHttp)
    return openApi({ settings: brief, env, version, tries: 1, note() {} })
  }
  return learnTypes({ url: settings.url, open, env, refresh })
}

/** Reports a failure on stderr; returns the exit code. */
function reportFailure(error: unknown, terminal: Terminal, argv: readonly string[]): number {
  const { stderr } = terminal
  const paint = painter(terminal, stderr)
  if (error instanceof CommanderError) {
    // Help was shown: on request, or because a command was missing.
    if (error.exitCode === 0) return EXIT.ok
    if (error.code === 'commander.help') return EXIT.usage
    return reportFailure(misuse(error, new Command(PROGRAM)), terminal, argv)
  }
  if (!(error instanceof Failure)) {
    stderr.write(`${paint('red', 'Error:')} ${error instanceof Error ? error.stack : String(error)}\n`)
    return EXIT.refused
  }
  const write = (text: string): unknown => stderr.write(wrapFor(stderr, `${text}\n`))
  if (error.message) write(`${paint('red', 'Error:')} ${plain(error.message)}`)
  for (const detail of error.details) write(`  ${plain(detail)}`)
  if (error.hint) write(`${paint('dim', 'Hint:')} ${plain(error.hint)}`)
  // Commands are to be copied: they are not broken.
  for (const step of error.steps)
    stderr.write(`  ${plain(commandOf(step, argv))}  ${paint('dim', `# ${step.about}`)}\n`)
  return error.exitCode
}
