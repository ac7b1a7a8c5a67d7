// A service with rollouts for tests: its controller takes steps when the test says so, by a clock of the test's own.
import assert from 'node:assert/strict'
import type { JsonObject } from '../src/base/json.ts'
import type { CheckSettings } from '../src/engine/rollouts/check-asker.ts'
import { createController, type RolloutController } from '../src/engine/rollouts/controller.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import type { Store } from '../src/store/store.ts'
import { ReportingCluster, startWatched, type Watched } from './reporting-clusters.ts'
import type { Answer, Call, ServiceOptions, TestService } from './service.ts'

export interface RolledFleet extends Watched {
  readonly store: Store
  readonly controller: RolloutController
  /** What the controller could not do. */
  readonly failures: readonly unknown[]
  cluster(id: string): ReportingCluster
  /** Clusters poll, and report all that they got as applied and ready. */
  settle(...ids: readonly string[]): Promise<void>
  /** Takes all steps that can be taken now. */
  tick(): Promise<void>
  /** Writes with a rollout of these waves; returns its id. */
  start(operations: readonly JsonObject[], waves: readonly JsonObject[], more?: JsonObject): Promise<string>
  rollout(id: string): Promise<Shown>
  /** The state of each of its waves. */
  waves(id: string): Promise<string[]>
  act(id: string, action: string, body?: JsonObject, as?: { query?: string; token?: string }): Promise<Answer>
  /** The secret of a new token. */
  token(name: string, grant: JsonObject): Promise<string>
  /** The tags of a cluster's components, as it gets them. */
  tags(id: string): Promise<Readonly<Record<string, string>>>
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
type Shown = any

/** Stops the service after the test. */
export async function startRolled(
  t: { after(clean: () => Promise<void>): void },
  fleet: unknown,
  options: ServiceOptions = {},
): Promise<RolledFleet> {
  const store = options.store ?? openMemoryStore()
  const watched = await startWatched({ fleet, ...options, store })
  const { service } = watched
  t.after(() => service.stop())
  const failures: unknown[] = []
  const controller = controllerOf(service, store, watched.now, failures, options.checks)
  const clusters = new Map<string, ReportingCluster>()
  const cluster = (id: string): ReportingCluster => {
    const known = clusters.get(id) ?? new ReportingCluster(service, id)
    clusters.set(id, known)
    return known
  }
  const rolled: RolledFleet = {
    ...watched,
    store,
    controller,
    failures,
    cluster,
    async settle(...ids) {
      for (const id of ids) await cluster(id).settle()
    },
    async tick() {
      while ((await controller.tick()) > 0);
    },
    async start(operations, waves, more = {}) {
      const body = { operations, message: 'for the test', rollout: { waves, ...more } } as Call['body']
      const answer = await service.call('POST', '/batch', { body })
      assert.equal(answer.status, 202, answer.text)
      return answer.body.rollout.id
    },
    async rollout(id) {
      const answer = await service.call('GET', `/rollouts/${id}`)
      assert.equal(answer.status, 200, answer.text)
      return answer.body
    },
    async waves(id) {
      return (await this.rollout(id)).waves.map(({ state }: Shown) => state)
    },
    act: (id, action, body, { query = '', ...call } = {}) =>
      service.call('POST', `/rollouts/${id}/${action}${query}`, { body, ...call }),
    async token(name, grant) {
      const { status, body, text } = await service.call('POST', '/tokens', { body: { name, ...grant } })
      assert.equal(status, 201, text)
      return body.secret
    },
    async tags(id) {
      const { body } = await service.call('GET', `/clusters/${id}/inputs/platform-components`)
      // biome-ignore lint/suspicious/noExplicitAny: an input
      return Object.fromEntries(body.inputs.map((input: any) => [input.id, input.source.oci_tag]))
    },
  }
  return rolled
}

export function controllerOf(
  { engine, types }: TestService,
  store: Store,
  now: () => number,
  failures: unknown[],
  checks?: CheckSettings,
): RolloutController {
  return createController({
    types,
    state: engine.state,
    fleet: engine.fleet.fleet,
    leases: store.leases,
    now: () => new Date(now()),
    write: (commands, author, options) => engine.write(commands, author, options),
    subscribe: () => () => {},
    checks,
    failed: (problem) => failures.push(problem),
  })
}

/** A change of one component's tag. */
export function tagOf(id: string, oci_tag: string): JsonObject {
  return { op: 'patch', type: 'platform_components', id, patch: { oci_tag } }
}

/** Waves of one cluster each, in this order. */
export function wavesOf(...ids: readonly string[]): JsonObject[] {
  return ids.map((id) => ({ name: `wave-${id}`, clusters: [id] }))
}
