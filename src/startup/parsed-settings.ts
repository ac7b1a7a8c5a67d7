// Settings that only the parts they are for can read: selectors by the types, tokens by their files.
import type { TokenSource } from '../base/token-list.ts'
import { UsageProblem } from '../base/usage-problem.ts'
import type { Config } from '../config/config.ts'
import { parseSelector, type Selector } from '../domain/access/selector.ts'
import type { StatusSettings } from '../engine/fleet/follow-fleet.ts'
import type { CheckSettings } from '../engine/rollouts/check-asker.ts'
import { tokensOf } from '../http/auth/shared-tokens.ts'
import type { RegisteredTypes } from '../registry/build-types.ts'

/** Of the key that signs requests. */
const MIN_KEY_LENGTH = 16

/** The key is read anew for every request, so that it can be replaced while the process runs. */
export function checkSettings({ checks }: Config): CheckSettings | undefined {
  if (!checks) return undefined
  if (readFirstToken(checks.key).length < MIN_KEY_LENGTH)
    throw new UsageProblem(
      `ROLLOUT_CHECK_KEY must have at least ${MIN_KEY_LENGTH} characters: it can be guessed otherwise`,
    )
  return { urls: checks.urls, key: () => readFirstToken(checks.key) }
}

export function readFirstToken(source: TokenSource): string {
  const problems: string[] = []
  const [token = ''] = tokensOf(source, problems)
  if (problems.length > 0) throw new UsageProblem(...problems)
  return token
}

export function statusSettings({ status }: Config, types: RegisteredTypes): StatusSettings {
  const { unobserved, ...limits } = status
  const selector =
    unobserved === undefined ? undefined : readSelector(types, 'UNOBSERVED_SELECTOR', unobserved)
  return { ...limits, isUnobserved: (cluster) => selector?.matches(cluster) ?? false }
}

/** The selector of a setting. */
export function readSelector(types: RegisteredTypes, name: string, text: string): Selector {
  const parsed = parseSelector(types, text)
  if (!parsed.ok) throw new UsageProblem(`${name} ${parsed.message}`)
  return parsed.selector
}
