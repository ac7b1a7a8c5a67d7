// Which clusters a command is for: by id, or by selector.
import type { Command } from 'commander'
import type { JsonObject } from '../../base/json.ts'
import { usage } from '../failure.ts'
import { collectIds } from './option-parsers.ts'

export interface TargetFlags {
  readonly cluster?: readonly string[]
  readonly selector?: string
}

export type Targets = JsonObject

export function addTargetFlags(command: Command): Command {
  return command
    .option('--cluster <id>', 'this cluster (repeatable, or ids joined by commas)', collectIds)
    .option('-l, --selector <selector>', 'all clusters that match this label selector')
}

/** The clusters as an operation of a batch has them; undefined when none are named. */
export function readTargets({ cluster, selector }: TargetFlags): Targets | undefined {
  if (cluster && selector !== undefined) throw usage('give clusters by --cluster or by --selector, not both')
  if (cluster) return { clusters: [...new Set(cluster)] }
  return selector === undefined ? undefined : { selector }
}

export function needTargets(flags: TargetFlags): Targets {
  const targets = readTargets(flags)
  if (!targets) throw usage('which clusters? Give --cluster ID or --selector SELECTOR')
  return targets
}

export function describeTargets({ clusters, selector }: Targets): string {
  if (selector !== undefined) return `(${selector})`
  const ids = clusters as readonly string[]
  return ids.length === 1 ? (ids[0] as string) : `${ids.length} clusters`
}
