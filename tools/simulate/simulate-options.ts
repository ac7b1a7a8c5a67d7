// The options of `npm run simulate`.
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { parseDuration } from '../../src/base/duration.ts'
import { isObject, type JsonObject } from '../../src/base/json.ts'
import { UsageProblem } from '../../src/base/usage-problem.ts'
import { ENDPOINTS } from './bench-fleet-inputs.ts'
import { ENDS, type End } from './rollouts/rollout-run.ts'

export const HELP = `Usage: npm run simulate -- [options]

Behaves like the Flux Operators of many clusters: polls, applies, acknowledges, posts events, and checks every answer.
Starts a service with a made fleet, unless --url names one. Exits with 1 after wrong answers, wrong statuses or errors.

  --clusters N       how many clusters (1000)
  --types N          how many endpoints each of them polls: 1 to ${ENDPOINTS.length} (${ENDPOINTS.length})
  --interval D       time between two polls of an endpoint (30s)
  --duration D       how long all of it lasts (60s); with --rollout, how long at most (10m)
  --restart-storm    all clusters poll at once at the start, instead of spread over the interval; fails unless every
                     endpoint of every cluster is answered within one interval
  --install          all clusters begin empty and install everything, instead of having it already
  --faults           some components fail and flap, some clusters go away, some connections drop, some events are lost
  --check-status     at the end, and with --faults three times before, compares what the service says of every cluster
                     with what is so there: never better, and not worse of a cluster that is settled
  --rollout END      takes a change of every cluster through a whole rollout; END is ${ENDS.join(', ')}: what becomes of it.
                     Every answer is compared with what the cluster should get at its revision, and every step with
                     what the clusters had sent by then
  --strategy FILE    JSON: the strategy of that rollout, with its waves; by default ten clusters, 10 %, 50 %, the rest
  --seed N           chance for --faults (1)
  --concurrency N    connections at once (1000)
  --timeout D        a poll without an answer for so long is dropped (10s)
  --tls              the service that is started speaks TLS
  --url URL          a service that is there already: its clusters are taken from its list
  --token TOKEN      for --url: may list clusters, read them, and poll for any of them
  -o json            prints JSON instead of a table
`

export interface Options {
  readonly clusters: number
  readonly endpoints: readonly string[]
  readonly intervalMs: number
  readonly durationMs: number
  readonly isStorm: boolean
  readonly hasFaults: boolean
  readonly isInstall: boolean
  readonly checksStatus: boolean
  readonly rollout: { readonly end: End; readonly strategy: JsonObject | undefined } | undefined
  readonly seed: number
  readonly concurrency: number
  readonly timeoutMs: number
  readonly tls: boolean
  readonly remote: { readonly url: string; readonly token: string } | undefined
  readonly format: 'table' | 'json'
}

const DURATION = '60s'
const ROLLOUT_DURATION = '10m'

/** Returns undefined when only help is wanted. */
export function parseOptions(args: string[]): Options | undefined {
  const { values } = parseStrictly(args)
  if (values.help) return undefined
  const problems: string[] = []
  const count = (name: 'clusters' | 'types' | 'seed' | 'concurrency', max: number): number => {
    const value = Number(values[name])
    if (!Number.isInteger(value) || value < 1 || value > max)
      problems.push(`--${name} must be a number from 1 to ${max}, not "${values[name]}"`)
    return value
  }
  const duration = (name: 'interval' | 'duration' | 'timeout', otherwise = ''): number => {
    const text = values[name] ?? otherwise
    const seconds = parseDuration(text)
    if (!seconds) problems.push(`--${name} must be a duration such as 30s, not "${text}"`)
    return (seconds ?? 0) * 1000
  }
  const { url, token, tls, output, rollout } = values
  if ((url === undefined) !== (token === undefined)) problems.push('--url and --token belong together')
  if (url !== undefined && tls)
    problems.push('--tls is for a service that is started here: give an https URL')
  if (url !== undefined && rollout !== undefined)
    problems.push('--rollout is for a service that is started here, as it changes the fleet')
  if (output !== 'table' && output !== 'json') problems.push(`-o must be table or json, not "${output}"`)
  const options: Options = {
    clusters: count('clusters', 1_000_000),
    endpoints: ENDPOINTS.slice(0, count('types', ENDPOINTS.length)),
    intervalMs: duration('interval'),
    durationMs: duration('duration', rollout === undefined ? DURATION : ROLLOUT_DURATION),
    isStorm: values['restart-storm'],
    hasFaults: values.faults,
    isInstall: values.install,
    checksStatus: values['check-status'],
    rollout: parseRollout(values, problems),
    seed: count('seed', 2 ** 31),
    concurrency: count('concurrency', 10_000),
    timeoutMs: duration('timeout'),
    tls,
    remote: url !== undefined && token !== undefined ? { url, token } : undefined,
    format: output === 'json' ? 'json' : 'table',
  }
  if (problems.length > 0) throw new UsageProblem(...problems)
  return options
}

function parseRollout(
  { rollout, strategy }: { readonly rollout?: string; readonly strategy?: string },
  problems: string[],
): Options['rollout'] {
  if (rollout === undefined) {
    if (strategy !== undefined) problems.push('--strategy is for --rollout')
    return undefined
  }
  const end = ENDS.find((each) => each === rollout)
  if (!end) problems.push(`--rollout must be ${ENDS.join(', ')}, not "${rollout}"`)
  const read = strategy === undefined ? undefined : readStrategy(strategy, problems)
  return end && { end, strategy: read }
}

function readStrategy(path: string, problems: string[]): JsonObject | undefined {
  try {
    const strategy: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (isObject(strategy)) return strategy
    problems.push(`--strategy: ${path} must hold an object with waves`)
  } catch (error) {
    problems.push(`--strategy: ${path} cannot be read: ${(error as Error).message}`)
  }
  return undefined
}

function parseStrictly(args: string[]) {
  try {
    return parseArgs({
      args,
      options: {
        clusters: { type: 'string', default: '1000' },
        types: { type: 'string', default: String(ENDPOINTS.length) },
        interval: { type: 'string', default: '30s' },
        duration: { type: 'string' },
        'restart-storm': { type: 'boolean', default: false },
        faults: { type: 'boolean', default: false },
        install: { type: 'boolean', default: false },
        'check-status': { type: 'boolean', default: false },
        rollout: { type: 'string' },
        strategy: { type: 'string' },
        seed: { type: 'string', default: '1' },
        concurrency: { type: 'string', default: '1000' },
        timeout: { type: 'string', default: '10s' },
        tls: { type: 'boolean', default: false },
        url: { type: 'string' },
        token: { type: 'string' },
        output: { type: 'string', short: 'o', default: 'table' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
  } catch (error) {
    throw new UsageProblem(error instanceof Error ? error.message : String(error))
  }
}
