// The flags that every write takes.
import { type Command, Option } from 'commander'
import { usage } from '../failure.ts'
import { DEFAULT_GOAL, GOALS, type Goal, parseGoal } from './goals.ts'
import { addRolloutFlags, checkRolloutFlags, type RolloutFlags, rolloutFlags } from './rollout-flags.ts'

export interface WriteFlags extends RolloutFlags {
  readonly dryRun?: boolean
  readonly message?: string
  readonly confirm?: string
  readonly plan?: string
  readonly yes?: boolean
  /** What to wait for after the write. */
  readonly wait?: Goal
}

/** What has to be confirmed by a word of its own. */
const CONFIRMATIONS = {
  removals: 'let what removes a lot pass the brake',
  finish: 'also where waves have not passed',
}
type Confirmation = keyof typeof CONFIRMATIONS

const WRITE_FLAGS = [
  ['--dry-run', 'show what would change, for documents and for clusters, and change nothing'],
  ['-m, --message <text>', 'why the change is made; kept with its revision'],
  ['--plan <digest>', 'do exactly what the preview with this plan showed, or nothing'],
  ['-y, --yes', 'do not ask; needed where there is no terminal to ask on'],
] as const

const CONFIRM_FLAG = '--confirm <what>'
const WAIT_FLAG = `--wait [${GOALS.join('|')}]`

/** The long names: `--dry-run`. */
export const WRITE_FLAG_NAMES = [
  ...[...WRITE_FLAGS.map(([flags]) => flags), CONFIRM_FLAG, WAIT_FLAG].map((flags) => new Option(flags).long),
  ...rolloutFlags(),
]

/** Adds the flags of a write; `isStaged` says whether what it changes can be rolled out wave by wave. */
export function addWriteFlags(command: Command, { isStaged = true } = {}): Command {
  addActionFlags(command)
  const about = `then wait for the clusters that receive something else (default ${DEFAULT_GOAL}), or for the rollout`
  const option = new Option(WAIT_FLAG, about).choices(GOALS).preset(DEFAULT_GOAL)
  command.addOption(option.argParser((text) => parseGoal(text, '--wait')))
  return addRolloutFlags(command, { isStaged })
}

/** Adds the flags of a write that is for neither documents nor clusters, and so has nothing to wait for. */
export function addActionFlags(
  command: Command,
  confirmations: readonly Confirmation[] = ['removals'],
): Command {
  for (const [flags, description] of WRITE_FLAGS) command.option(flags, description)
  if (confirmations.length === 0) return command
  const about = confirmations.map((word) => `${word}: ${CONFIRMATIONS[word]}`).join('; ')
  return command.addOption(
    new Option(CONFIRM_FLAG, about).argParser((text) => {
      if (confirmations.some((word) => word === text)) return text
      throw usage(`--confirm must be ${confirmations.join(' or ')}, not "${text}"`)
    }),
  )
}

/** Throws when the flags themselves are wrong. */
export function checkWriteFlags(flags: WriteFlags): void {
  const { plan, message = '' } = flags
  if (/\p{Cc}/u.test(oneLine(message))) throw usage('--message holds control characters: write it without')
  if (plan !== undefined && !/^sha256:[0-9a-f]{64}$/.test(plan)) {
    throw usage('--plan must be what a preview printed: sha256: and 64 hex digits')
  }
  checkRolloutFlags(flags)
}

/** A message as it is sent: line breaks are spaces. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}
