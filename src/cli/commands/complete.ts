// `__complete`: what could come next on a command line, asked by the scripts of shells.
import type { Argument, Command, Option } from 'commander'
import type { ShownHold, ShownRollout } from '../../api/rollout-schema.ts'
import type { Tools } from '../cli-command.ts'
import { loadContexts } from '../config/contexts.ts'
import { LAST } from '../fleet/newest-revision.ts'
import { SHELLS } from '../input/shells.ts'
import { FORMATS } from '../output/print.ts'
import { openApi } from '../server/api-client.ts'
import { type Noun, namesOf } from '../server/nouns.ts'
import { HOLD_ROUTES, pathOf, ROLLOUT_ROUTES, TOKEN_ROUTES } from '../server/read-documents.ts'
import { tokenRenewal } from '../server/token-renewal.ts'

/** Prints candidates, one on each line, with a tab and a description. */
export function defineComplete(command: Command, tools: Tools): void {
  command
    .argument('[words...]', 'the words so far, the one to complete last')
    .action(async (words: string[]) => {
      const found = await complete(tools, words)
      tools.context.terminal.stdout.write(
        found.map(([name, about]) => `${name}${about ? `\t${about}` : ''}\n`).join(''),
      )
    })
}

/** The strategy that is always there. */
const DEFAULT_STRATEGY = 'default'

type Candidate = readonly [name: string, about?: string]

async function complete(tools: Tools, words: readonly string[]): Promise<Candidate[]> {
  const current = words.at(-1) ?? ''
  const [first, ...others] = words.slice(0, -1)
  const isHelp = first === 'help'
  const { command, given, pending } = await walk(tools, isHelp ? others : words.slice(0, -1))
  const starts = (candidates: readonly Candidate[]): Candidate[] =>
    candidates.filter(([name]) => name.startsWith(current))
  if (pending) return starts(await valuesOf(tools, { command, given, pending }))
  if (current.startsWith('-')) return starts(flagsOf(tools, command))
  const commands = command.commands
    .filter((child) => !child.name().startsWith('__'))
    .map((child): Candidate => [child.name(), child.summary() || child.description()])
  const help: Candidate[] = command.parent || isHelp ? [] : [['help', 'show help']]
  if (commands.length > 0) return starts([...commands, ...help])
  if (isHelp) return []
  return starts(await argumentsOf(tools, command, given))
}

interface Place {
  readonly command: Command
  /** Arguments given so far. */
  readonly given: readonly string[]
  /** The flag that lacks its value. */
  readonly pending: Option | undefined
}

/** Follows the words down the tree. */
async function walk({ program, expand }: Tools, words: readonly string[]): Promise<Place> {
  let command = program
  let pending: Option | undefined
  let flag: Option | undefined
  const given: string[] = []
  for (const word of words) {
    if (pending) {
      pending = undefined
      continue
    }
    // Bash makes three words of --flag=value.
    if (word === '=') {
      pending = flag
      continue
    }
    if (word.startsWith('-')) {
      const option = [...command.options, ...program.options].find(
        ({ long, short }) => word === long || word === short,
      )
      if (option?.required) pending = option
      flag = option
      continue
    }
    const child = command.commands.find((each) => each.name() === word || each.aliases().includes(word))
    if (child && given.length === 0) {
      command = child
      await expand(command)
    } else {
      given.push(word)
    }
  }
  return { command, given, pending }
}

function flagsOf({ program }: Tools, command: Command): Candidate[] {
  const options = [...new Set([...command.options, ...program.options])].filter(({ hidden }) => !hidden)
  return [
    ...options.flatMap((option): Candidate[] => {
      const { long, description, optional, argChoices = [] } = option
      const values = optional ? argChoices.map((each): Candidate => [`${long}=${each}`]) : []
      return [[long ?? '', description], ...values]
    }),
    ['--help', 'show help'],
  ]
}

function nounOf({ nouns }: Tools, command: Command): Noun | undefined {
  const name = command.parent?.name() ?? ''
  return nouns.find((noun) => namesOf(noun).includes(name))
}

async function valuesOf(
  tools: Tools,
  { command, given, pending: option }: Place & { readonly pending: Option },
): Promise<Candidate[]> {
  const { nouns, context } = tools
  if (option.argChoices) return option.argChoices.map((each): Candidate => [each])
  const name = option.long?.slice(2) ?? ''
  if (name === 'output') return FORMATS.map((format): Candidate => [format.replace('TEMPLATE', '')])
  if (name === 'context')
    return Object.keys(loadContexts(context.terminal.env).contexts).map((each): Candidate => [each])
  if (name === 'type') return nouns.map((noun): Candidate => [noun.name, noun.description])
  if (name === 'confirm') return [['removals']]
  if (name === 'rollout')
    return [[DEFAULT_STRATEGY], ...(await ids(tools, 'strategies')).filter(([id]) => id !== DEFAULT_STRATEGY)]
  if (name === 'supersede' || name === 'amend') return rollouts(tools, { isActive: true })
  if (name === 'wave' && command.parent?.name() === 'rollout') return wavesOf(tools, given[0] ?? '')
  const noun = nouns.find((each) => namesOf(each).includes(name))
  if (noun) return ids(tools, noun.name)
  const field = nounOf(tools, command)?.schema.properties?.[name.replaceAll('-', '_')]
  return (field?.enum ?? []).map((each): Candidate => [String(each)])
}

async function argumentsOf(tools: Tools, command: Command, given: readonly string[]): Promise<Candidate[]> {
  const { nouns, context } = tools
  const expected: Argument | undefined =
    command.registeredArguments[given.length] ?? command.registeredArguments.at(-1)
  if (!expected || (given.length >= command.registeredArguments.length && !expected.variadic)) return []
  const name = expected.name()
  if (name === 'endpoint')
    return nouns.flatMap(({ delivery }) => (delivery ? [[delivery.endpoint] as const] : []))
  if (name === 'token') return ids(tools, TOKEN_ROUTES.name)
  if (name === 'rollout') return [...(await rollouts(tools)), [LAST, 'the newest one']]
  if (name === 'held')
    return candidatesAt(tools, `/${HOLD_ROUTES.name}`, (body: ShownHold[]) =>
      body.map(({ cluster, reason }) => [cluster, reason]),
    )
  if (name.endsWith(`|${LAST}`)) return [[LAST]]
  if (name === 'shell') return SHELLS.map((each): Candidate => [each])
  if (command.parent?.name() === 'config') {
    return Object.keys(loadContexts(context.terminal.env).contexts).map((each): Candidate => [each])
  }
  const own = nounOf(tools, command)
  // What is created has no id yet.
  if (own && command.name() === 'create') return []
  const noun = name === 'id' ? own : nouns.find((each) => namesOf(each).includes(name))
  return noun ? (await ids(tools, noun.name)).filter(([id]) => !given.includes(id)) : []
}

const MOST_IDS = 1000
/** Completion is interactive: nobody waits longer for it. */
const TIMEOUT_MS = 2000

/** The ids of a list, or the names of tokens, which only those may see who may change them. */
function ids(tools: Tools, list: string): Promise<Candidate[]> {
  if (list !== TOKEN_ROUTES.name)
    return candidatesAt(tools, `/${list}`, (body: { id: string }[]) => body.map(({ id }) => [id]))
  const read = (body: { name: string; role: string }[]): Candidate[] =>
    body.map(({ name, role }) => [name, role])
  return candidatesAt(tools, `/${list}`, read, { isForWriters: true })
}

/** Rollouts with what they are about: all of the newest, or those that have not ended. */
function rollouts(tools: Tools, { isActive = false } = {}): Promise<Candidate[]> {
  return candidatesAt(tools, `/${ROLLOUT_ROUTES.name}`, (body: ShownRollout[]) =>
    body
      .filter(({ state }) => !isActive || (state !== 'finished' && state !== 'aborted'))
      .map(({ id, state, message, operation }) => [id, `${state}: ${message ?? operation}`]),
  )
}

function wavesOf(tools: Tools, rollout: string): Promise<Candidate[]> {
  return candidatesAt(tools, pathOf(ROLLOUT_ROUTES, rollout), ({ waves }: ShownRollout) =>
    waves.map(({ name, state }) => [name, state]),
  )
}

/** What the body of a response offers; nothing where there is none. */
async function candidatesAt<Body>(
  { context, settings, isServerUnreachable }: Tools,
  path: string,
  read: (body: Body) => Candidate[],
  { isForWriters = false } = {},
): Promise<Candidate[]> {
  if (isServerUnreachable) return []
  const { terminal, version } = context
  const { env } = terminal
  try {
    const brief = { ...settings(), timeoutMs: TIMEOUT_MS }
    const api = openApi({ settings: brief, env, version, tries: 1, renew: tokenRenewal(context), note() {} })
    try {
      // One thing has no pages.
      const query = path.lastIndexOf('/') === 0 ? { limit: MOST_IDS } : {}
      const { body } = await (isForWriters ? api.getAsWriter(path, { query }) : api.get(path, { query }))
      return read(body)
    } finally {
      api.close()
    }
  } catch {
    return []
  }
}
