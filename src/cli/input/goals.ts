// What can be waited for: how far clusters have to come.
import { usage } from '../failure.ts'

export const GOALS = ['served', 'applied', 'healthy'] as const
export type Goal = (typeof GOALS)[number]
export const DEFAULT_GOAL: Goal = 'applied'

export function parseGoal(text: string, flag: string): Goal {
  const goal = GOALS.find((each) => each === text)
  if (goal) return goal
  const hint = flag === '--wait' ? 'its value comes after =, as in --wait=healthy' : undefined
  throw usage(`${flag} must be one of ${GOALS.join(', ')}, not "${text}"`, hint)
}
