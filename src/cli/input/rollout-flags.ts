// The flags that make a write reach its clusters wave by wave, and those that lead past what holds it back.
import { type Command, Option } from 'commander'
import { parseDuration } from '../../base/duration.ts'
import type { JsonObject } from '../../base/json.ts'
import { usage } from '../failure.ts'
import { parseWave } from './wave-syntax.ts'

export interface RolloutFlags {
  /** The name of a strategy. */
  readonly rollout?: string
  readonly rolloutWave?: readonly JsonObject[]
  /** Seconds. */
  readonly bake?: number
  readonly onFailure?: string
  readonly supersede?: string
  readonly amend?: string
  readonly restartWaves?: boolean
  readonly bypass?: boolean
}

/** What a write is to become, beside what it changes. */
export type Staging =
  | { readonly kind: 'start'; readonly rollout: JsonObject }
  | { readonly kind: 'amend'; readonly id: string; readonly how: JsonObject }

/** What they are called under in help. */
const HELP_GROUP = 'Wave by wave:'

/** Made anew for each command: commander keeps in them which group of its help they are in. */
function stagingOptions(): Option[] {
  return [
    new Option('--rollout <strategy>', 'as this strategy has it: default, or one of your own'),
    waveOption('--rollout-wave', "in a wave of your own (repeatable): 'canary: environment=dev; soak=10m'"),
    durationOption('--bake <duration>', 'how long all waves are watched before the change is finished'),
    new Option('--on-failure <what>', 'what too many failures do').choices(['pause', 'abort']),
    new Option('--supersede <rollout>', 'abort this rollout, and start the new one in its place'),
    new Option('--amend <rollout>', 'put the change into this rollout, in place of what it rolls out'),
    new Option('--restart-waves', 'with --amend: begin with the first wave again'),
  ].map((option) => option.helpGroup(HELP_GROUP))
}

function bypassOption(): Option {
  return new Option('--bypass', 'pass what a rollout or a freeze holds back; needs -m, and the permission')
}

/** The long names of the flags that make a rollout of a write. */
export function stagingFlags(): string[] {
  return stagingOptions().map(({ long }) => String(long))
}

/** The long names of all of them. */
export function rolloutFlags(): string[] {
  return [...stagingFlags(), String(bypassOption().long)]
}

/** The flags of strategies, which say how a change goes through the fleet. */
export function waveOption(flag: string, about: string): Option {
  return new Option(`${flag} <wave>`, about).argParser((text, earlier: readonly JsonObject[] = []) => [
    ...earlier,
    parseWave(text, flag),
  ])
}

export function durationOption(flags: string, about: string): Option {
  const option = new Option(flags, about)
  return option.argParser((text) => {
    const seconds = parseDuration(text)
    if (seconds === undefined) throw usage(`${option.long} must be like 10m or 1h30m, not "${text}"`)
    return seconds
  })
}

/** Adds the flags; those that start a rollout only where the command writes what can be rolled out. */
export function addRolloutFlags(command: Command, { isStaged }: { readonly isStaged: boolean }): Command {
  command.addOption(bypassOption())
  if (isStaged) for (const option of stagingOptions()) command.addOption(option)
  return command
}

/** Throws when the flags do not go together. */
export function checkRolloutFlags(flags: RolloutFlags & { readonly message?: string }): void {
  const {
    rollout,
    rolloutWave,
    bake,
    onFailure,
    supersede,
    amend,
    restartWaves,
    bypass,
    message = '',
  } = flags
  const hasWay = rollout !== undefined || rolloutWave !== undefined
  if (rollout !== undefined && rolloutWave)
    throw usage('give --rollout, with the name of a strategy, or --rollout-wave, not both')
  if (supersede !== undefined && amend !== undefined)
    throw usage('give --amend to change the rollout, or --supersede to replace it, not both')
  const without = (flag: string): Error =>
    usage(
      `${flag} goes with --rollout STRATEGY or with --rollout-wave: how is the change to go through the fleet?`,
    )
  if (bake !== undefined && !hasWay) throw without('--bake')
  if (onFailure !== undefined && !hasWay) throw without('--on-failure')
  if (supersede !== undefined && !hasWay) throw without('--supersede')
  if (restartWaves && amend === undefined) throw usage('--restart-waves goes with --amend ROLLOUT')
  if (bypass && message.trim() === '')
    throw usage('--bypass needs -m: why does this have to pass what holds it back?')
}

/** How a write is to be rolled out; undefined where it is to reach all at once. */
export function stagingOf(flags: RolloutFlags): Staging | undefined {
  const { rollout, rolloutWave, bake, onFailure, supersede, amend, restartWaves = false } = flags
  const way: JsonObject = {
    ...(rollout !== undefined && { strategy: rollout }),
    ...(rolloutWave && { waves: rolloutWave }),
    ...(bake !== undefined && { bake_s: bake }),
    ...(onFailure !== undefined && { on_failure: onFailure }),
  }
  if (amend !== undefined) return { kind: 'amend', id: amend, how: { ...way, restart: restartWaves } }
  if (Object.keys(way).length === 0) return undefined
  return { kind: 'start', rollout: { ...way, ...(supersede !== undefined && { supersedes: supersede }) } }
}

/** A place in what was sent, as the flags have it: `wave "canary" of --rollout-wave: clusters/0`. */
export function inFlags({ rolloutWave = [] }: RolloutFlags, text: string): string {
  return text
    .replaceAll(/\/rollout\/strategy(?![\w/])|\?rollout(?= )/g, '--rollout')
    .replaceAll(/(?:\/rollout)?\/waves\/(\d+)(?:\/([\w/]+))?/g, (all, number: string, below = '') => {
      const wave = rolloutWave[Number(number)]
      return wave ? `wave "${wave.name}" of --rollout-wave${below === '' ? '' : `: ${below}`}` : all
    })
    .replaceAll(/\/rollout\/supersedes(?![\w/])/g, '--supersede')
    .replaceAll(/\?confirm=(?=\w)/g, '--confirm ')
}
