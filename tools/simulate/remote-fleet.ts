// The fleet of a service that is there already: its clusters from its list, and what they should get from its readers' API.
import { POLL_BASE, parseBaseUrl } from '../../src/base/urls.ts'
import { UsageProblem } from '../../src/base/usage-problem.ts'
import type { FleetSource } from './fleet-source.ts'
import type { Target } from './operator-request.ts'
import { type Answered, Oracle, withoutDigests } from './oracle.ts'
import { parseInputs } from './parse-inputs.ts'

export interface RemoteFleetOptions {
  readonly url: string
  /** May list clusters, read them, and poll for any of them. */
  readonly token: string
  /** How many of its clusters take part. */
  readonly clusters: number
  readonly timeoutMs: number
}

/** Answers a second that are compared with the readers' API, which costs the service far more than a poll. */
const CHECKS_PER_SECOND = 20

export async function openRemoteFleet(options: RemoteFleetOptions): Promise<FleetSource> {
  const { token, clusters, timeoutMs } = options
  const base = parseBaseUrl(options.url)
  if (base === undefined) throw new UsageProblem(`--url must be an http or https URL, not "${options.url}"`)
  const listed = await get(base, `${POLL_BASE}?limit=${clusters}`, token)
  const parsed = parseInputs(listed.text)
  if (listed.status !== 200 || !parsed.ok)
    throw new UsageProblem(`${base} does not list its clusters: ${listed.status || ''} ${listed.text}`)
  const ids = new Map(parsed.inputs.map(({ id, cluster_dns }) => [String(cluster_dns), String(id)]))
  return {
    target: targetOf(new URL(base), timeoutMs),
    clusters: [...ids].map(([dns, id]) => ({ id, dns, token })),
    token,
    oracle: new Oracle({ expect: askReaders(base, token, ids) }),
    cost: () => undefined,
    async close() {},
  }
}

export function targetOf({ protocol, hostname, port }: URL, timeoutMs: number): Target {
  const isTls = protocol === 'https:'
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return { host, port: Number(port || (isTls ? 443 : 80)), timeoutMs, tls: isTls ? {} : undefined }
}

/** Asks for the same inputs as they were at the revision that the answer names. Empty answers are always compared. */
function askReaders(base: string, token: string, ids: ReadonlyMap<string, string>) {
  let second = 0
  let asked = 0
  return async (dns: string, endpoint: string, { revision, inputs }: Answered) => {
    const now = Math.floor(performance.now() / 1000)
    if (now !== second) asked = 0
    second = now
    if (inputs.length > 0 && ++asked > CHECKS_PER_SECOND) return undefined
    const at = revision === undefined ? '' : `?at=${revision}`
    const path = `/clusters/${encodeURIComponent(ids.get(dns) ?? '')}/inputs/${endpoint}${at}`
    const { status, text } = await get(base, path, token)
    const parsed = parseInputs(text)
    return status === 200 && parsed.ok ? parsed.inputs.map(withoutDigests) : undefined
  }
}

/** A service that cannot be reached has the status 0. */
async function get(base: string, path: string, token: string): Promise<{ status: number; text: string }> {
  try {
    const answer = await fetch(`${base}${path}`, { headers: { authorization: `Bearer ${token}` } })
    return { status: answer.status, text: await answer.text() }
  } catch (error) {
    const { cause } = error as Error
    return { status: 0, text: cause instanceof Error ? cause.message : String(error) }
  }
}
