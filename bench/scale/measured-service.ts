// The service with a large fleet, and what can be asked of it and measured meanwhile.
import { setTimeout as sleep } from 'node:timers/promises'
import { findPort } from '../../test/find-port.ts'
import { clusterDns, clusterToken } from '../fleet.ts'
import { percentile, pollDuring, runLoad } from '../load.ts'
import { residentMegabytes, startService, stopTarget, type Target, TOKEN } from '../server-process.ts'

/** Polls a second while something else goes on, each on a connection of its own. */
const RATE = 200
/** As it is installed: sources take 30 MB more, for what removes their types. */
const BUILT = '../dist/main.js'
const ENDPOINTS = ['platform-components', 'namespaces', 'rolebindings']

export interface Worked {
  /** Of each piece of work. */
  readonly times: number[]
  readonly polls: { readonly p99: number; readonly worst: number }
}

export class MeasuredService {
  readonly target: Target
  readonly clusters: number

  private constructor(target: Target, clusters: number) {
    this.target = target
    this.clusters = clusters
  }

  static async start(
    database: string,
    clusters: number,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<MeasuredService> {
    const target = await startService('service', database, await findPort(), 'inherit', settings, BUILT)
    return new MeasuredService(target, clusters)
  }

  get memory(): { readonly now: number; readonly peak: number } {
    return residentMegabytes(this.target)
  }

  async call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    const response = await fetch(`http://127.0.0.1:${this.target.port}${path}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${text.slice(0, 500)}`)
    return JSON.parse(text)
  }

  /** Runs work one piece after the other while clusters poll at a steady rate. */
  async work(
    run: (round: number) => Promise<unknown>,
    { rounds = 1, leastMs = 3000 }: { readonly rounds?: number; readonly leastMs?: number } = {},
  ): Promise<Worked> {
    const times: number[] = []
    const paths = this.#paths(20_000, ENDPOINTS.slice(0, 1))
    const polls = await pollDuring({ port: this.target.port, paths, token: TOKEN, rate: RATE }, async () => {
      const end = performance.now() + leastMs
      for (let round = 0; round < rounds || performance.now() < end; round++) {
        const started = performance.now()
        await run(round)
        times.push(performance.now() - started)
        await sleep(20)
      }
    })
    return { times, polls: { p99: percentile(polls, 0.99), worst: Math.max(...polls) } }
  }

  /** What polls take while nothing else is done. */
  async idle(): Promise<Worked['polls']> {
    const { polls } = await this.work(() => sleep(3000))
    return polls
  }

  /** Lets every cluster poll every endpoint once, with its own token. */
  async pollAll(): Promise<void> {
    const requests = this.clusters
    const tokens = Array.from({ length: requests }, (_, n) => clusterToken(n))
    for (const endpoint of ENDPOINTS) {
      const paths = this.#paths(requests, [endpoint])
      await runLoad({ port: this.target.port, paths, token: TOKEN, tokens, requests, connections: 8 })
    }
  }

  stop(): Promise<void> {
    return stopTarget(this.target)
  }

  /** Of clusters spread over the fleet. */
  #paths(most: number, endpoints: readonly string[]): string[] {
    const count = Math.min(most, this.clusters)
    return Array.from({ length: count }, (_, i) =>
      clusterDns(Math.floor((i * this.clusters) / count)),
    ).flatMap((dns) => endpoints.map((endpoint) => `/api/v2/flux/clusters/${dns}/${endpoint}`))
  }
}
