// Settings of the checks that rollouts ask systems outside for.
import type { TokenSource } from '../base/token-list.ts'
import { isSecure } from '../base/urls.ts'
import { type Environment, listIn, redact } from './environment.ts'
import { parseTokens } from './parse-tokens.ts'

export interface CheckConfig {
  /** Only these URLs, and what is below them, are asked. */
  readonly urls: readonly string[]
  /** What requests are signed with: the first of them. */
  readonly key: TokenSource
}

export function parseChecks(env: Environment, problems: string[]): CheckConfig | undefined {
  const urls = listIn(env.ROLLOUT_CHECK_URLS)
  const key = parseTokens(env, 'ROLLOUT_CHECK_KEY', problems)
  if (urls.length === 0) {
    if (key)
      problems.push('ROLLOUT_CHECK_KEY needs ROLLOUT_CHECK_URLS: where requests are sent that it signs')
    return undefined
  }
  for (const text of urls) {
    const url = URL.parse(text)
    if (!url || url.username || url.password || url.search || url.hash || !isSecure(url))
      problems.push(
        `ROLLOUT_CHECK_URLS must hold https:// URLs without query, such as https://ci.example.com/checks, separated by commas, not "${redact(text)}"`,
      )
  }
  if (!key)
    problems.push(
      'ROLLOUT_CHECK_KEY is required with ROLLOUT_CHECK_URLS, or ROLLOUT_CHECK_KEY_FILE: what requests are signed with',
    )
  return { urls, key: key ?? { tokens: [] } }
}
