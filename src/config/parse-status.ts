// Settings of the status of clusters.
import { parseDuration } from '../base/duration.ts'
import { DEFAULT_STATUS_LIMITS, type StatusLimits } from '../base/status-limits.ts'
import type { Environment } from './environment.ts'

export interface StatusConfig extends StatusLimits {
  /** A selector of clusters that poll somewhere that tells nothing; undefined for none. */
  readonly unobserved: string | undefined
}

/** More intervals than any outage should take to be noticed. */
const MAX_FACTOR = 1000

export function parseStatus(env: Environment, problems: string[]): StatusConfig {
  const late = parseFactor(env, 'STATUS_LATE_AFTER', DEFAULT_STATUS_LIMITS.late, problems)
  const offline = parseFactor(env, 'STATUS_OFFLINE_AFTER', DEFAULT_STATUS_LIMITS.offline, problems)
  if (late !== undefined && offline !== undefined && offline <= late)
    problems.push(
      `STATUS_OFFLINE_AFTER must be greater than STATUS_LATE_AFTER, which is ${late}, not "${offline}"`,
    )
  return {
    late: late ?? DEFAULT_STATUS_LIMITS.late,
    offline: offline ?? DEFAULT_STATUS_LIMITS.offline,
    retentionMs: parseRetention(env, problems),
    unobserved: env.UNOBSERVED_SELECTOR || undefined,
  }
}

/** Undefined where it is wrong: then it is not compared with the other. */
function parseFactor(
  env: Environment,
  name: string,
  fallback: number,
  problems: string[],
): number | undefined {
  const text = env[name]
  if (!text) return fallback
  const factor = /^\d{1,4}(?:\.\d{1,3})?$/.test(text) ? Number(text) : 0
  if (factor >= 1 && factor <= MAX_FACTOR) return factor
  problems.push(`${name} must be a number of intervals from 1 to ${MAX_FACTOR}, not "${text}"`)
  return undefined
}

function parseRetention(env: Environment, problems: string[]): number {
  const text = env.STATUS_RETENTION
  if (!text) return DEFAULT_STATUS_LIMITS.retentionMs
  const seconds = parseDuration(text)
  if (seconds !== undefined && seconds > 0) return seconds * 1000
  problems.push(`STATUS_RETENTION must be a duration such as 12h or 30d, not "${text}"`)
  return DEFAULT_STATUS_LIMITS.retentionMs
}
