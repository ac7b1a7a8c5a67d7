// Times in bodies.
import type { Detail } from '../../base/problem.ts'
import { readTime, timeProblem } from './parameters.ts'

/** Returns the time in UTC; adds a detail when it is not valid. */
export function readTimeAt(text: string | undefined, path: string, details: Detail[]): string | undefined {
  if (text === undefined) return undefined
  const message = timeProblem(text)
  if (message !== undefined) details.push({ path, message })
  return readTime(text)
}
