// A small made fleet, a service inside this process and its controller on one clock, for tests of whole rollouts.
import { clusterDns, clusterId, fleetSeed } from '../bench/fleet.ts'
import { asPlan, ROLLOUT_PLANS } from '../src/domain/rollouts/rollout.ts'
import { createController } from '../src/engine/rollouts/controller.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { ENDPOINTS } from '../tools/simulate/bench-fleet-inputs.ts'
import type { ClusterAnswer, ClusterRequest } from '../tools/simulate/exchange.ts'
import type { FleetSummary } from '../tools/simulate/fleet-figures.ts'
import { sendGet, sendJson, sendRequest } from '../tools/simulate/operator-request.ts'
import { targetOf } from '../tools/simulate/remote-fleet.ts'
import type { RolloutWorld } from '../tools/simulate/rollouts/rollout-run.ts'
import { RolloutWatch } from '../tools/simulate/rollouts/rollout-watch.ts'
import { type Fault, type PlannedFault, SimulatedCluster } from '../tools/simulate/simulated-cluster.ts'
import { SimulatedFleet } from '../tools/simulate/simulated-fleet.ts'
import { READ_TOKEN, startService, type TestService, WRITE_TOKEN } from './service.ts'

export interface SimulatedRollouts {
  readonly world: RolloutWorld
  readonly service: TestService
  /** Ids and DNS names of the clusters, by their number. */
  readonly ids: readonly string[]
  readonly names: readonly string[]
  /** Numbers of the members of a wave. */
  named(rollout: string, wave: number): number[]
  /** Makes something happen to the n-th cluster now. */
  tell(n: number, fault: Fault): void
  figures(): FleetSummary
  stop(): Promise<void>
}

export interface SimulationOptions {
  readonly clusters: number
  /** Milliseconds between polls. */
  readonly interval?: number
  /** What happens to the n-th cluster, by milliseconds from the start. */
  readonly plan?: (n: number) => readonly PlannedFault[]
  /** Whether the service takes the steps of rollouts by itself. */
  readonly isControlled?: boolean
  /** Changes answers before clusters get them. */
  readonly lie?: (request: ClusterRequest, answer: ClusterAnswer) => ClusterAnswer
}

const LOOK_MS = 1000

/** Clusters that have been there for long, and poll all their endpoints. */
export async function simulateRollouts({
  clusters,
  interval = 10_000,
  plan = () => [],
  isControlled = true,
  lie = (_, answer) => answer,
}: SimulationOptions): Promise<SimulatedRollouts> {
  let now = Date.parse('2026-03-01T12:00:00Z')
  const clock = (): number => now
  const store = openMemoryStore()
  const service = await startService({ store, now: () => new Date(now), fleet: fleetSeed(clusters) })
  const { engine, types } = service
  const target = targetOf(new URL(service.url), 10_000)
  const names = new Map(Array.from({ length: clusters }, (_, n) => [clusterId(n), clusterDns(n)]))
  const watch = new RolloutWatch({
    names,
    clock,
    intervalMs: interval,
    reactionMs: 2 * LOOK_MS,
    get: (path) => sendGet(target, path, WRITE_TOKEN),
  })
  const simulated = [...names.values()].map(
    (dns, n) =>
      new SimulatedCluster({
        dns,
        token: READ_TOKEN,
        endpoints: ENDPOINTS,
        interval,
        startsAt: now + (n * interval) / clusters,
        isSettled: true,
        behaviour: { plan: plan(n).map(({ at, fault }) => ({ at: now + at, fault })) },
      }),
  )
  const fleet = new SimulatedFleet({
    clusters: simulated,
    send: watch.listenTo(async (request) => lie(request, await sendRequest(target, request))),
    oracle: watch.oracle,
    clock,
  })
  const controller =
    isControlled &&
    createController({
      types,
      state: engine.state,
      fleet: engine.fleet.fleet,
      leases: store.leases,
      now: () => new Date(now),
      write: engine.write,
      subscribe: engine.subscribe,
      failed: (problem) => {
        throw problem
      },
    })
  const pass = async (ms: number): Promise<void> => {
    const until = now + ms
    while (now < until) {
      now = Math.min(until, Math.max(now, fleet.dueAt), now - (now % LOOK_MS) + LOOK_MS)
      fleet.step()
      await fleet.settle()
      if (now % LOOK_MS === 0 && controller) await controller.tick()
    }
  }
  return {
    service,
    ids: [...names.keys()],
    names: [...names.values()],
    named(rollout, wave) {
      const plan = engine.state.get(ROLLOUT_PLANS, rollout)
      const members = (plan && asPlan(plan).members[wave]) ?? []
      return members.map((id) => [...names.keys()].indexOf(id))
    },
    world: {
      watch,
      clock,
      lookMs: LOOK_MS,
      pass,
      ask: (request) => sendJson(target, { ...request, token: WRITE_TOKEN }),
    },
    tell: (n, fault) => fleet.tell(simulated[n] as SimulatedCluster, fault),
    figures: () => fleet.figures.summary(1),
    async stop() {
      if (controller) await controller.stop()
      await service.stop()
    },
  }
}
