// The filter of the list of rollouts in the URL, and what a new rollout is to change.
import { ROLLOUT_STATES, type RolloutState } from '../../src/domain/rollouts/rollout.ts'

type Search = Readonly<Record<string, unknown>>

export interface RolloutSearch {
  readonly state?: RolloutState
}

export function parseRolloutSearch(search: Search): RolloutSearch {
  const state = ROLLOUT_STATES.find((each) => each === search.state)
  return state ? { state } : {}
}

export interface StartSearch {
  /** The document to change. */
  readonly type?: string
  readonly id?: string
  readonly strategy?: string
  /** The rollout that gets another change in place of its own. */
  readonly amends?: string
  /** The rollout that ends when the new one starts. */
  readonly supersedes?: string
}

const START_NAMES = ['type', 'id', 'strategy', 'amends', 'supersedes'] as const

export function parseStartSearch(search: Search): StartSearch {
  const given = START_NAMES.filter((name) => typeof search[name] === 'string' && search[name] !== '')
  return Object.fromEntries(given.map((name) => [name, String(search[name])]))
}
