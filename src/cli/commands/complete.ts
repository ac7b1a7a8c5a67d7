// `__complete`: what could come next on a command line, asked by the scripts of shells.
import type { Argument, Command, Option } from 'commander'
import type { ShownHold } from '../../api/rollout-schema.ts'
import type { Tools } from '../cli-command.ts'
import { loadContexts } from '../config/contexts.ts'
import { LAST } from '../fleet/newest-revision.ts'
import { SHELLS } from '../input/shells.ts'
import { columnsOf } from '../output/document-columns.ts'
import { FORMATS } from '../output/print.ts'
import {
  type Candidate,
  candidatesAt,
  ids,
  joined,
  labels,
  revisions,
  rollouts,
  wavesOf,
} from '../server/candidates.ts'
import { type Noun, namesOf } from '../server/nouns.ts'
import { HOLD_ROUTES, TOKEN_ROUTES } from '../server/read-documents.ts'

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

async function complete(tools: Tools, words: readonly string[]): Promise<Candidate[]> {
  const current = words.at(-1) ?? ''
  const starts = (candidates: readonly Candidate[]): Candidate[] =>
    candidates.filter(([name]) => name.startsWith(current))
  const typed = words.slice(0, -1)
  const [first = '', ...others] = typed
  const isHelp = first === 'help'
  const [cluster] = tools.nouns
  const isVerbFirst = cluster !== undefined && tools.nounFirst([first, cluster.noun]) !== undefined
  if (isVerbFirst && typed.length === 1)
    return starts(tools.nouns.map((noun): Candidate => [noun.noun, noun.description]))
  const ordered = isVerbFirst ? tools.nounFirst([...typed, current || 'x'])?.slice(0, -1) : undefined
  const { command, given, pending } = await walk(tools, ordered ?? (isHelp ? others : typed))
  const flag = /^(--[\w-]+)=(.*)$/s.exec(current)
  if (flag) {
    const [, long = '', value = ''] = flag
    const option = [...command.options, ...tools.program.options].find((each) => each.long === long)
    const values = option ? await valuesOf(tools, { command, given, pending: option, current: value }) : []
    return values
      .filter(([name]) => name.startsWith(value))
      .map(([name, ...about]): Candidate => [`${long}=${name}`, ...about])
  }
  if (pending) return starts(await valuesOf(tools, { command, given, pending, current }))
  if (current.startsWith('-')) return starts(flagsOf(tools, command))
  const commands = command.commands
    .filter((child) => !child.name().startsWith('__'))
    .map((child): Candidate => [child.name(), child.summary() || child.description()])
  const help: Candidate[] = command.parent || isHelp ? [] : [['help', 'show help']]
  if (commands.length > 0) return starts([...commands, ...help])
  if (isHelp) return []
  return starts(await argumentsOf(tools, command, given, current))
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
  {
    command,
    given,
    pending: option,
    current,
  }: Place & { readonly pending: Option; readonly current: string },
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
  if (name === 'supersede' || name === 'amend') return rollouts(tools, { onlyActive: true })
  if (name === 'wave' && command.parent?.name() === 'rollout') return wavesOf(tools, given[0] ?? '')
  if (['since', 'at', 'from', 'to'].includes(name)) return revisions(tools)
  if (name === 'selector' || name === 'label-columns') return labels(tools, current, name === 'selector')
  if (name === 'filter' || name === 'sort-by' || name === 'columns')
    return fields(tools, command, current, name)
  if (name === 'set' || name === 'unset') return settable(tools, command, current, name === 'set')
  const noun =
    nouns.find((each) => namesOf(each).includes(name)) ??
    (name === 'like' ? nounOf(tools, command) : undefined)
  if (noun) return joined(current, (typed) => ids(tools, noun.name, typed))
  const field = nounOf(tools, command)?.schema.properties?.[name.replaceAll('-', '_')]
  return (field?.enum ?? []).map((each): Candidate => [String(each)])
}

async function argumentsOf(
  tools: Tools,
  command: Command,
  given: readonly string[],
  current: string,
): Promise<Candidate[]> {
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
  if (name.endsWith(`|${LAST}`)) return [[LAST, 'the newest one'], ...(await revisions(tools))]
  if (name === 'shell') return SHELLS.map((each): Candidate => [each])
  if (command.parent?.name() === 'config') {
    return Object.keys(loadContexts(context.terminal.env).contexts).map((each): Candidate => [each])
  }
  const own = nounOf(tools, command)
  // What is created has no id yet.
  if (own && command.name() === 'create') return []
  const noun = name === 'id' ? own : nouns.find((each) => namesOf(each).includes(name))
  if (!noun) return []
  const isDeleted = command.name() === 'restore'
  const found = await ids(tools, noun.name, current, isDeleted)
  return found.filter(([id]) => !given.includes(id))
}

/** Fields of a list's type, and the values that a filter can have. */
async function fields(tools: Tools, command: Command, current: string, flag: string): Promise<Candidate[]> {
  const noun = nounOf(tools, command)
  if (!noun) return []
  if (flag === 'filter') {
    const [field = '', value] = current.split('=')
    if (value === undefined) return noun.filters.map((each): Candidate => [`${each}=`])
    return (noun.schema.properties?.[field]?.enum ?? []).map((each): Candidate => [`${field}=${each}`])
  }
  const titles = columnsOf(noun, tools.nouns).map(({ title }): Candidate => [title.toLowerCase()])
  return joined(current, async () => titles)
}

/** Fields that can be set, with the values that one can have. */
async function settable(
  tools: Tools,
  command: Command,
  current: string,
  isSet: boolean,
): Promise<Candidate[]> {
  const properties = nounOf(tools, command)?.schema.properties ?? {}
  const [field = '', value] = current.split('=')
  if (command.name() === 'patch') return []
  if (value === undefined)
    return Object.keys(properties).flatMap((each): Candidate[] =>
      each === 'id' ? [] : [[isSet ? `${each}=` : each]],
    )
  return (properties[field]?.enum ?? []).map((each): Candidate => [`${field}=${each}`])
}
