// The flags that choose clusters by what they are doing.
import { type Command, Option } from 'commander'
import { CONTACTS, DELIVERIES, HEALTHS } from '../../domain/status/status-words.ts'

export interface StateFlags {
  readonly selector?: string
  readonly contact?: string
  readonly delivery?: string
  readonly health?: string
}

export function addStateFlags(command: Command): Command {
  const state = (name: string, words: readonly string[]): Option =>
    new Option(`--${name} <state>`, `only clusters with this ${name}`).choices(words)
  return command
    .option('-l, --selector <selector>', 'only clusters that match this label selector')
    .addOption(state('contact', CONTACTS))
    .addOption(state('delivery', DELIVERIES))
    .addOption(state('health', HEALTHS))
}
