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
}

export function parseStartSearch(search: Search): StartSearch {
  const given = (['type', 'id', 'strategy'] as const).filter((name) => typeof search[name] === 'string')
  return Object.fromEntries(given.map((name) => [name, String(search[name])]))
}
