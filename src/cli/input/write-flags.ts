// The flags that every write takes.
import { type Command, Option } from 'commander'
import { usage } from '../failure.ts'
import { DEFAULT_GOAL, GOALS, type Goal, parseGoal } from './goals.ts'

export interface WriteFlags {
  readonly dryRun?: boolean
  readonly message?: string
  readonly confirm?: string
  readonly plan?: string
  readonly yes?: boolean
  /** What to wait for after the write. */
  readonly wait?: Goal
}

const WRITE_FLAGS = [
  ['--dry-run', 'show what would change, for documents and for clusters, and change nothing'],
  ['-m, --message <text>', 'why the change is made; kept with its revision'],
  ['--plan <digest>', 'do exactly what the preview with this plan showed, or nothing'],
  ['--confirm <what>', 'let what removes a lot pass the brake: removals'],
  ['-y, --yes', 'do not ask; needed where there is no terminal to ask on'],
] as const

const WAIT_FLAG = `--wait [${GOALS.join('|')}]`

/** The long names: `--dry-run`. */
export const WRITE_FLAG_NAMES = [...WRITE_FLAGS.map(([flags]) => flags), WAIT_FLAG].map(
  (flags) => new Option(flags).long,
)

export function addWriteFlags(command: Command): Command {
  for (const [flags, description] of WRITE_FLAGS) command.option(flags, description)
  const about = `then wait for the clusters that receive something else (default ${DEFAULT_GOAL})`
  const option = new Option(WAIT_FLAG, about).choices(GOALS).preset(DEFAULT_GOAL)
  return command.addOption(option.argParser((text) => parseGoal(text, '--wait')))
}

/** Throws when the flags themselves are wrong. */
export function checkWriteFlags({ confirm, plan, message = '' }: WriteFlags): void {
  if (/\p{Cc}/u.test(oneLine(message))) throw usage('--message holds control characters: write it without')
  if (confirm !== undefined && confirm !== 'removals') {
    throw usage(`--confirm must be removals, not "${confirm}"`)
  }
  if (plan !== undefined && !/^sha256:[0-9a-f]{64}$/.test(plan)) {
    throw usage('--plan must be what a preview printed: sha256: and 64 hex digits')
  }
}

/** A message as it is sent: line breaks are spaces. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}
