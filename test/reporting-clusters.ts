// Clusters for tests that poll, report and fail as real ones do, by a clock of the test's own.
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import type { JsonObject } from '../src/base/json.ts'
import { parseEvent } from '../src/domain/status/parse-event.ts'
import { READ_TOKEN, type ServiceOptions, startService, type TestService } from './service.ts'

export const ENDPOINTS = ['namespaces', 'platform-components', 'rolebindings']
const BASE = '/api/v2/flux/clusters'

/** A service whose time stands still until the test moves it. */
export interface Watched {
  readonly service: TestService
  /** Moves the clock on. */
  pass(seconds: number): void
  now(): number
}

export async function startWatched(options: ServiceOptions = {}): Promise<Watched> {
  let now = Date.parse('2026-03-01T12:00:00Z')
  const service = await startService({ now: () => new Date(now), ...options })
  return {
    service,
    pass(seconds) {
      now += seconds * 1000
    },
    now: () => now,
  }
}

interface Input {
  readonly id: string
  readonly digest: string
  readonly answer_digest: string
}

export class ReportingCluster {
  readonly id: string
  readonly #service: TestService
  readonly #got = new Map<string, readonly Input[]>()

  constructor(service: TestService, id: string) {
    this.#service = service
    this.id = id
  }

  async poll(endpoints: readonly string[] = ENDPOINTS): Promise<void> {
    for (const endpoint of endpoints) {
      const { status, body } = await this.#get(endpoint)
      assert.equal(status, 200)
      this.#got.set(endpoint, body.inputs)
    }
  }

  /**
   * Reports everything that it was served as applied, and its components as ready but for some; of those, perhaps only a
   * part, and perhaps to a replica.
   */
  async report(
    { except = [] as readonly string[], every = 300, part = '' } = {},
    to: TestService = this.#service,
  ): Promise<void> {
    const query = new URLSearchParams({ v: '1', every: String(every), ...(part !== '' && { part }) })
    for (const [endpoint, [first]] of this.#got) if (first) query.set(endpoint, first.answer_digest)
    for (const { id, digest } of this.#got.get('platform-components') ?? [])
      if (!except.includes(id) && hash('sha256', id).startsWith(part))
        query.append('ready', `${id}:${digest}`)
    assert.equal((await this.#get(`ack?${query}`, READ_TOKEN, to)).status, 200)
  }

  async settle(): Promise<void> {
    await this.poll()
    await this.report()
  }

  /** A request with a token that nobody knows. */
  async beRefused(): Promise<void> {
    assert.equal((await this.#get('namespaces', 'nonsense')).status, 401)
  }

  /** Flux tells of a failure. */
  fail(kind: string, name: string, reason: string, message: string): void {
    const { engine, types } = this.#service
    const payload: JsonObject = { involvedObject: { kind, name }, severity: 'error', reason, message }
    const entry = engine.state.get('clusters', this.id) ?? assert.fail(this.id)
    assert.ok(engine.fleet.fleet.noteEvent(entry, parseEvent(types, payload) ?? assert.fail()))
  }

  #get(path: string, token = READ_TOKEN, to: TestService = this.#service) {
    return to.call('GET', `${BASE}/${this.id}.k8s.example.com/${path}`, { token })
  }
}

/** Clusters of one list of components each, in a tier. */
export function fleetOf(clusters: Readonly<Record<string, { environment?: string; components?: object[] }>>) {
  const component = (id: string) => ({
    id,
    component_path: `core/${id}`,
    component_version: '1.0.0',
    oci_url: 'oci://registry.example.com/components',
    oci_tag: 'v1.0.0',
  })
  return {
    platform_components: ['a', 'b'].map(component),
    clusters: Object.entries(clusters).map(([id, { environment = 'dev', components = [{ id: 'a' }] }]) => ({
      id,
      cluster_name: id,
      cluster_dns: `${id}.k8s.example.com`,
      environment,
      platform_components: components,
    })),
  }
}
