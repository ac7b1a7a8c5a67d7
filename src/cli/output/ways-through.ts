// What to type after a refusal that has more than one way through, as commands.
import type { Detail, Reason } from '../../base/problem.ts'
import type { NextStep } from '../failure.ts'
import { stagingFlags } from '../input/rollout-flags.ts'

interface Refused {
  readonly reason?: Reason | undefined
  readonly message: string
  readonly details?: readonly Detail[]
}

const PASS: NextStep = {
  again: "--bypass -m 'why'",
  about: 'write it all the same, to all its clusters at once',
}

export function waysThrough(refused: Refused): readonly NextStep[] {
  switch (refused.reason) {
    case 'held_by_rollout':
      return waysPast(rolloutIn(refused))
    case 'frozen':
      return [{ command: 'freeze list', about: 'what is frozen, and until when' }, PASS]
    default:
      return []
  }
}

function waysPast(id: string): readonly NextStep[] {
  return [
    { command: `rollout watch ${id}`, about: 'wait until it has ended' },
    {
      again: `--amend ${id}`,
      without: stagingFlags(),
      about: 'put this into the rollout, in place of what it rolls out',
    },
    {
      again: `--rollout default --supersede ${id}`,
      without: stagingFlags(),
      about: 'abort it, and roll this out instead',
    },
    { command: `rollout abort ${id}`, about: 'take it back, then write' },
    PASS,
  ]
}

/** The first rollout that a refusal names. */
function rolloutIn({ message, details = [] }: Refused): string {
  const texts = [...details.map((detail) => detail.message), message]
  return texts.flatMap((text) => /\brollout "?(r\d+)/.exec(text)?.[1] ?? [])[0] ?? 'ID'
}
