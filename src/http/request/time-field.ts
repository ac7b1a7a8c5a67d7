// Times in bodies.
import type { Detail } from '../../base/problem.ts'
import { readTime, timeProblem } from './parameters.ts'

/** In UTC; what is wrong with it is added to the details. */
export function readTimeAt(text: string | undefined, path: string, details: Detail[]): string | undefined {
  if (text === undefined) return undefined
  const message = timeProblem(text)
  if (message !== undefined) details.push({ path, message })
  return readTime(text)
}
