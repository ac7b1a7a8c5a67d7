// Processes of one service that are killed and started again, and the simulated clusters that poll whichever of them lives.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { clusterDns, clusterId, fleetSeed } from '../../bench/fleet.ts'
import { ENDPOINTS } from '../../tools/simulate/bench-fleet-inputs.ts'
import type { ClusterAnswer } from '../../tools/simulate/exchange.ts'
import type { FleetSummary } from '../../tools/simulate/fleet-figures.ts'
import {
  type JsonRequest,
  sendGet,
  sendJson,
  sendRequest,
  type Target,
} from '../../tools/simulate/operator-request.ts'
import { targetOf } from '../../tools/simulate/remote-fleet.ts'
import type { RolloutWorld } from '../../tools/simulate/rollouts/rollout-run.ts'
import { RolloutWatch } from '../../tools/simulate/rollouts/rollout-watch.ts'
import { SimulatedCluster } from '../../tools/simulate/simulated-cluster.ts'
import { runFleet, SimulatedFleet } from '../../tools/simulate/simulated-fleet.ts'
import { runSql } from '../postgres-server.ts'
import type { Random } from '../seeded-random.ts'
import { READ_TOKEN, type ServiceProcess, spawnService, temporaryFolder, WRITE_TOKEN } from '../service.ts'

/** The shortest that a cluster can say of itself. */
const INTERVAL_MS = 1000
const TIMEOUT_MS = 10_000
const NOBODY: ClusterAnswer = { kind: 'dropped', reason: 'nobody lives' }
const LEASE = 'rollouts'

/** A write that was acknowledged. */
interface Acknowledged {
  readonly key: string
  readonly revision: number
}

export interface KilledOptions {
  readonly database: string
  /** Processes that run beside each other. */
  readonly processes: number
  readonly clusters: number
  readonly random: Random
}

export class KilledService {
  readonly world: RolloutWorld
  readonly acknowledged: Acknowledged[] = []
  readonly #options: KilledOptions
  readonly #settings: Record<string, string>
  readonly #living: (ServiceProcess | undefined)[]
  readonly #fleet: SimulatedFleet
  readonly #end = new AbortController()
  #running: Promise<void> | undefined

  constructor(t: TestContext, options: KilledOptions) {
    const { clusters, processes, database } = options
    this.#options = options
    const seed = join(temporaryFolder(t), 'seed.json')
    writeFileSync(seed, JSON.stringify(fleetSeed(clusters)))
    this.#settings = { DATABASE_URL: database, SEED_FILE: seed, API_MODE: 'crud' }
    this.#living = Array.from({ length: processes }, () => undefined)
    t.after(() => this.#stop())
    const clock = (): number => performance.timeOrigin + performance.now()
    const names = new Map(Array.from({ length: clusters }, (_, n) => [clusterId(n), clusterDns(n)]))
    const watch = new RolloutWatch({
      names,
      clock,
      intervalMs: INTERVAL_MS,
      // Failures that one process was told of are known to the others after some seconds, unless it is killed.
      reactionMs: 60_000,
      get: (path) => this.#toAnyone((target) => sendGet(target, path, WRITE_TOKEN)),
    })
    const startsAt = clock()
    this.#fleet = new SimulatedFleet({
      clusters: [...names.values()].map(
        (dns, n) =>
          new SimulatedCluster({
            dns,
            token: READ_TOKEN,
            endpoints: ENDPOINTS,
            interval: INTERVAL_MS,
            startsAt: startsAt + (n * INTERVAL_MS) / clusters,
            isSettled: true,
            behaviour: { applyMs: 50, readyMs: 100 },
          }),
      ),
      send: watch.listenTo((request) => this.#toAnyone((target) => sendRequest(target, request))),
      oracle: watch.oracle,
      clock,
    })
    const pass = async (ms: number): Promise<void> => void (await sleep(ms))
    this.world = { watch, clock, lookMs: 100, pass, ask: (request) => this.#ask(request) }
  }

  /** All processes, and the clusters that poll them. */
  async start(): Promise<void> {
    for (let i = 0; i < this.#living.length; i++) await this.#spawn(i)
    this.#running = runFleet(this.#fleet, this.#end.signal)
  }

  get processes(): readonly ServiceProcess[] {
    return this.#living.filter((each) => each !== undefined)
  }

  figures(): FleetSummary {
    return this.#fleet.figures.summary(1)
  }

  /**
   * Kills the process that takes the steps of rollouts, and starts another one. Its lease expires at once, so that nobody
   * has to wait for that; or else when its time has come.
   */
  async killController({ expiresAtOnce = true } = {}): Promise<void> {
    const found = await this.#controlling()
    const victim = found >= 0 ? found : this.#options.random.below(this.#living.length)
    await this.#living[victim]?.stop('SIGKILL')
    this.#living[victim] = undefined
    if (expiresAtOnce) await this.#expire()
    await this.#spawn(victim)
  }

  /** Waits until a process that lives may take the steps of rollouts, for so long. */
  async untilControlled(withinMs: number): Promise<void> {
    const end = performance.now() + withinMs
    while ((await this.#controlling()) < 0 && performance.now() < end) await sleep(100)
  }

  /** The place of the process that takes the steps of rollouts; negative while none does. */
  async #controlling(): Promise<number> {
    const holder = await this.#holder()
    return this.#living.findIndex((each) => each && holder?.startsWith(`${each.child.pid}-`))
  }

  /** How often the lease has changed hands. */
  async leaseTerm(): Promise<number> {
    const [row] = await this.#query('term')
    return Number(row?.term ?? 0)
  }

  async #holder(): Promise<string | undefined> {
    const [row] = await this.#query('holder')
    return row && String(row.holder)
  }

  async #query(column: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const { database } = this.#options
    if (!database.startsWith('sqlite:'))
      return runSql(database, `select ${column} from flux_resourceset.leases where name = '${LEASE}'`)
    return this.#inFile((db) => db.prepare(`SELECT ${column} FROM leases WHERE name = ?`).all(LEASE))
  }

  async #expire(): Promise<void> {
    const { database } = this.#options
    if (database.startsWith('sqlite:'))
      this.#inFile((db) => db.prepare('UPDATE leases SET expires = 0 WHERE name = ?').run(LEASE))
    else await runSql(database, `update flux_resourceset.leases set expires = now() where name = '${LEASE}'`)
  }

  #inFile<T>(use: (db: DatabaseSync) => T): T {
    const db = new DatabaseSync(this.#options.database.slice('sqlite://'.length), { timeout: 5000 })
    try {
      return use(db)
    } finally {
      db.close()
    }
  }

  async #spawn(i: number): Promise<void> {
    const service = await spawnService(this.#settings)
    if (this.#end.signal.aborted) await service.stop('SIGKILL')
    else this.#living[i] = service
  }

  async #toAnyone(send: (target: Target) => Promise<ClusterAnswer>): Promise<ClusterAnswer> {
    const { processes } = this
    if (processes.length === 0) return NOBODY
    return send(targetOf(new URL(this.#options.random.pick(processes).url), TIMEOUT_MS))
  }

  async #ask(request: Omit<JsonRequest, 'token'>): Promise<ClusterAnswer> {
    const answer = await this.#toAnyone((target) => sendJson(target, { ...request, token: WRITE_TOKEN }))
    const { key } = request
    const isWrite = key !== undefined && !request.path.includes('dry_run')
    if (isWrite && answer.kind === 'answer' && answer.status < 300)
      this.acknowledged.push({ key, revision: Number(answer.revision) })
    return answer
  }

  /** Every acknowledged write is one revision of the log, that very one; and the whole log is what it says. */
  async checkLog(): Promise<void> {
    const { log } = this.world.watch
    await log.follow()
    for (const { key, revision } of this.acknowledged) assert.deepEqual(log.madeBy(key), [revision], key)
    for (const service of this.processes) {
      const { status, body, text } = await service.call('GET', '/revisions/verify')
      assert.equal(status, 200, text)
      assert.deepEqual(body.problems, [])
    }
  }

  async #stop(): Promise<void> {
    this.#end.abort()
    await this.#running
    for (const service of this.processes) await service.stop('SIGKILL')
  }
}
