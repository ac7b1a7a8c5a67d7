// Runs a command line: learns what it has to know, follows its words, and tells how it ended.
import { Command, CommanderError } from 'commander'
import { COMPLETE, FLEET_COMMANDS, NOUN_COMMANDS } from './command-table.ts'
import { buildTree, createRoot, PROGRAM, type Surroundings } from './command-tree.ts'
import { type GlobalFlags, resolveSettings, type Settings } from './config/settings.ts'
import type { GivenTokens } from './config/token-files.ts'
import { EXIT, Failure, UnknownName } from './failure.ts'
import { painter, plain, type Terminal } from './output/terminal.ts'
import { type Api, openApi } from './server/api-client.ts'
import { builtInTypes, type Learned, learnTypes } from './server/learn-types.ts'
import { namesOf } from './server/nouns.ts'
import { warnOfPlainHttp } from './server/plain-http.ts'

/** Runs a command line to its end; answers the exit code. */
export async function runProgram(argv: readonly string[], surroundings: Surroundings): Promise<number> {
  try {
    return await runOnce(argv, { ...surroundings, tokens: await readTokens(argv, surroundings) }, false)
  } catch (error) {
    return tell(error, surroundings.terminal)
  }
}

/** Once, whatever runs again: stdin has an end. */
async function readTokens(argv: readonly string[], surroundings: Surroundings): Promise<GivenTokens> {
  const isGiven = argv.some((arg) => /^--(?:api|write)-token-file/.test(arg))
  if (!isGiven || argv[0] === COMPLETE) return {}
  const program = createRoot(surroundings)
  program.parseOptions([...argv])
  const { readTokenFiles } = await import('./config/token-files.ts')
  return readTokenFiles(surroundings.terminal, program.opts<GlobalFlags>())
}

async function runOnce(argv: readonly string[], surroundings: Surroundings, again: boolean): Promise<number> {
  const program = createRoot(surroundings)
  const words = program.parseOptions([...argv]).operands
  const [word = ''] = words
  const isCompletion = word === COMPLETE
  // The line that is completed may name another server.
  if (isCompletion) readLeniently(program, argv)
  if (word === 'help' && words.length > 1) {
    return runOnce([...argv.toSpliced(argv.indexOf('help'), 1), '--help'], surroundings, again)
  }
  const command = FLEET_COMMANDS.find(({ name }) => name === word)
  const fresh = again || command?.types === 'fresh'
  const learned = !command || command.types ? await learn(program, argv, surroundings, fresh) : undefined
  // The server may have got a type since it was last asked.
  const mayBeOld = learned?.from === 'cache' && !fresh
  if (!command && !isNoun(learned, word)) {
    if (mayBeOld) return runOnce(argv, surroundings, true)
    if (learned?.problem) throw notAsked(learned.problem, word)
  }
  // Help of what is not there is a mistake, and gets a suggestion.
  const line = isCommand(learned, words) ? argv : argv.filter((arg) => !HELP_FLAGS.includes(arg))
  const tree = buildTree(program, surroundings, learned ?? { nouns: [] }, isCompletion ? [] : words)
  try {
    if (argv.length === 0) program.outputHelp()
    else await program.parseAsync([...line], { from: 'user' })
    return EXIT.ok
  } catch (error) {
    if (mayBeOld && isUnknown(error)) return await runOnce(argv, surroundings, true)
    if (error instanceof CommanderError && error.exitCode !== 0 && error.code !== 'commander.help') {
      throw misuse(error, tree.commands.reached)
    }
    throw error
  } finally {
    tree.close()
  }
}

/** Takes the program's own flags from a line that is not finished. */
function readLeniently(program: Command, argv: readonly string[]): void {
  try {
    program.parseOptions(argv.slice(argv.indexOf('--') + 1, -1))
  } catch {
    // A flag still waits for its value.
  }
}

/** Whether the words lead somewhere, as far as they go. */
function isCommand(learned: Learned | undefined, [word = '', verb]: readonly string[]): boolean {
  if (word === '' || word === 'help' || FLEET_COMMANDS.some(({ name }) => name === word)) return true
  const noun = learned?.nouns.find((each) => namesOf(each).includes(word))
  return noun !== undefined && (verb === undefined || NOUN_COMMANDS.some(({ name }) => name === verb))
}

function isNoun(learned: Learned | undefined, word: string): boolean {
  const names = learned?.nouns.flatMap(namesOf) ?? []
  return word === '' || word === 'help' || names.includes(word)
}

/** A word that might be a type of the server's, which could not be asked. */
function notAsked({ exitCode, message, details, hint }: Failure, word: string): Failure {
  const why = `"${word}" is no command and no built-in type, and the server could not be asked for its own`
  return new Failure(exitCode, message, { details: [why, ...details], hint })
}

function isUnknown(error: unknown): boolean {
  if (error instanceof UnknownName) return true
  const codes = ['commander.unknownCommand', 'commander.unknownOption', 'commander.excessArguments']
  return error instanceof CommanderError && codes.includes(error.code)
}

/** What commander says in one or two lines, with where to read more. */
function misuse({ message }: CommanderError, command: Command): Failure {
  const [first = '', ...more] = message.replace(/^error: /, '').split('\n')
  const names: string[] = []
  for (let at: Command | null = command; at; at = at.parent) names.unshift(at.name())
  return new Failure(EXIT.usage, first, { details: more, hint: `see ${names.join(' ')} --help` })
}

const HELP_FLAGS = ['-h', '--help']
const LEARNING_TIMEOUT_MS = 10_000
/** Help and completion must not wait for a server that is away. */
const SHORT_TIMEOUT_MS = 1500

async function learn(
  program: Command,
  argv: readonly string[],
  { terminal, version, resources }: Surroundings,
  fresh: boolean,
): Promise<Learned> {
  const { env } = terminal
  const wantsHelp = argv.length === 0 || argv.some((arg) => arg === 'help' || HELP_FLAGS.includes(arg))
  let settings: Settings
  try {
    settings = resolveSettings(program.opts<GlobalFlags>(), env)
  } catch (error) {
    // Whoever does not know how to set it up needs help most.
    if (!wantsHelp) throw error
    return { nouns: await builtInTypes(resources), from: 'built-in' }
  }
  const longest = wantsHelp || argv[0] === COMPLETE ? SHORT_TIMEOUT_MS : LEARNING_TIMEOUT_MS
  const brief = { ...settings, timeoutMs: Math.min(settings.timeoutMs, longest) }
  const open = (): Api => {
    if (settings.readToken && argv[0] !== COMPLETE)
      warnOfPlainHttp(terminal, settings.url, settings.allowsHttp)
    return openApi({ settings: brief, env, version, tries: 1, note() {} })
  }
  return learnTypes({ url: settings.url, open, env, resources, fresh })
}

/** What went wrong, for people, on stderr. */
function tell(error: unknown, terminal: Terminal): number {
  const { stderr } = terminal
  const paint = painter(terminal, stderr)
  if (error instanceof CommanderError) {
    // Help was shown: asked for, or because a command was missing.
    if (error.exitCode === 0) return EXIT.ok
    if (error.code === 'commander.help') return EXIT.usage
    return tell(misuse(error, new Command(PROGRAM)), terminal)
  }
  if (!(error instanceof Failure)) {
    stderr.write(`${paint('red', 'Error:')} ${error instanceof Error ? error.stack : String(error)}\n`)
    return EXIT.refused
  }
  if (error.message) stderr.write(`${paint('red', 'Error:')} ${plain(error.message)}\n`)
  for (const detail of error.details) stderr.write(`  ${plain(detail)}\n`)
  if (error.hint) stderr.write(`${paint('dim', 'Hint:')} ${plain(error.hint)}\n`)
  return error.exitCode
}
