// `get clusters`, as kubectl has it: the noun is put before the verb.
import type { Command } from 'commander'
import { NOUN_COMMANDS } from './noun-commands.ts'
import { type Noun, namesOf } from './server/nouns.ts'

/** Verbs that show everything where no id is given. */
const SHOWING = ['get', 'list', 'ls', 'describe']

export function isVerb(word: string): boolean {
  return NOUN_COMMANDS.some(({ name, aliases = [] }) => name === word || aliases.includes(word))
}

/** The line with the noun first: `get cluster/a` is `cluster get a`. Undefined where it does not begin like that. */
export function nounFirst(
  program: Command,
  argv: readonly string[],
  nouns: readonly Noun[],
): string[] | undefined {
  const [verb, target] = operandsOf(program, argv)
  if (!verb || !target || !isVerb(verb.word)) return undefined
  const [type = '', id] = target.word.split('/')
  const noun = nouns.find((each) => namesOf(each).includes(type))
  if (!noun) return undefined
  const isShown = SHOWING.includes(verb.word)
  const isOne = id !== undefined || operandsOf(program, argv)[2] !== undefined
  const wanted = isShown && !isOne ? 'list' : verb.word
  return argv.flatMap((arg, i) => {
    if (i === verb.at) return [noun.noun, wanted]
    if (i === target.at) return id === undefined ? [] : [target.word]
    return [arg]
  })
}

/** The first words of a line that are no flags and no values of the program's own flags. */
function operandsOf(program: Command, argv: readonly string[]): { word: string; at: number }[] {
  const found: { word: string; at: number }[] = []
  for (let at = 0; at < argv.length && found.length < 3; at++) {
    const word = argv[at] as string
    if (!word.startsWith('-')) {
      found.push({ word, at })
      continue
    }
    const option = program.options.find(({ long, short }) => word === long || word === short)
    if (option?.required) at++
    else if (!option && !word.includes('=') && found.length > 1) {
      // A flag of the command: whether what follows is its value is not known here.
      at++
    }
  }
  return found
}
