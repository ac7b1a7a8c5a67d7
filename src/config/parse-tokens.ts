// Secrets of the environment: in a variable, or in a file that another one names.
import { parseTokenList, type TokenSource } from '../base/token-list.ts'
import type { Environment } from './environment.ts'

/** Returns tokens from the variable, or from the file that the variable with the suffix `_FILE` names. */
export function parseTokens(env: Environment, name: string, problems: string[]): TokenSource | undefined {
  const variable = `${name}_FILE`
  const file = env[variable]
  if (file && env[name]) problems.push(`${name} and ${variable} are both set: give one of them`)
  if (file) return { file, variable }
  if (!env[name]) return undefined
  const { tokens, problem } = parseTokenList(env[name])
  if (problem) problems.push(`${name} ${problem}`)
  return { tokens }
}
