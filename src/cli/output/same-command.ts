// A command line as it can be typed again, with other flags.
import { PROGRAM } from '../cli-command.ts'
import type { NextStep } from '../failure.ts'

/** Secrets, and what is only for one run: never repeated. */
const NEVER = ['--api-token', '--write-token', '--plan', '--dry-run']
const WITHOUT_VALUE = ['--dry-run', '--restart-waves']

/** The command of a step; of one that is the same command again, with what it adds. */
export function commandOf(step: NextStep, argv: readonly string[]): string {
  if (step.again === undefined) return `${PROGRAM} ${step.command}`
  const hasMessage = argv.some((arg) => /^(?:-m|--message(?:=.*)?)$/.test(arg))
  const added = hasMessage ? step.again.replace(/ -m '[^']*'$/, '') : step.again
  const kept = withoutFlags(argv, [...NEVER, ...(step.without ?? [])])
  return [PROGRAM, ...kept.map(quote), added].join(' ')
}

function withoutFlags(argv: readonly string[], flags: readonly string[]): string[] {
  const kept: string[] = []
  for (let i = 0; i < argv.length; i++) {
    const arg = argv[i] as string
    const flag = flags.find((each) => arg === each || arg.startsWith(`${each}=`))
    if (flag === undefined) kept.push(arg)
    else if (arg === flag && !WITHOUT_VALUE.includes(flag)) i++
  }
  return kept
}

/** Quotes a word for a shell, where it needs it. */
function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
