// What tests of replicas and of faults share: a seed for chance, replicas, and the fleet as the log has it.
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { POLL_BASE } from '../../src/base/urls.ts'
import { renderInputs } from '../../src/domain/delivery/render-inputs.ts'
import { servedTo } from '../../src/domain/delivery/served-view.ts'
import { State } from '../../src/domain/documents/state.ts'
import { NO_HASH } from '../../src/store/hash-chain.ts'
import { toApplied } from '../../src/store/log-rows.ts'
import { openPostgresStore } from '../../src/store/postgres/postgres.ts'
import type { LoggedChange, LogSlice } from '../../src/store/store.ts'
import { type Answer, builtInTypes, type ServiceProcess, spawnService } from '../service.ts'

const types = builtInTypes()
export const ENDPOINTS: readonly string[] = types.delivered.map(({ delivery }) => delivery.endpoint)

/** Of this run: printed with what came of it, and given again by FAULTS_SEED. */
export function chooseSeed(): number {
  return Number(process.env.FAULTS_SEED || randomInt(2 ** 31))
}

/** Starts processes together; all of them are gone after the test, whatever happens. */
export async function startReplicas(
  context: { after(clean: () => unknown): void },
  ...envs: Record<string, string>[]
): Promise<ServiceProcess[]> {
  const started = await Promise.allSettled(envs.map((env) => spawnService(env)))
  for (const result of started) {
    if (result.status === 'fulfilled') context.after(() => result.value.stop('SIGKILL'))
  }
  return started.map((result) =>
    result.status === 'fulfilled' ? result.value : assert.fail(result.reason as Error),
  )
}

export function revisionOf({ headers }: Answer): number {
  return Number(headers['x-revision'])
}

export function dnsOf(cluster: string): string {
  return `${cluster}.k8s.example.com`
}

export function pollUrl(dns: string, endpoint: string): string {
  return `${POLL_BASE}/${dns}/${endpoint}`
}

/** The fleet as the log in the database has it, revision by revision. */
export class Replay {
  readonly state = new State(types)
  /** Revisions by the id of the request that made them. */
  readonly made = new Map<string, number[]>()
  #hash = NO_HASH

  /** Reads on from where it was; the log must go on from there without gaps, and hold what it held. */
  async follow(database: string, reached: () => void = () => {}): Promise<void> {
    const store = openPostgresStore({ url: database, write: false })
    try {
      assert.equal(await store.hashOf(this.state.revision), this.#hash, 'the log has stayed what it was')
      let changes: LoggedChange[] = []
      for await (const slice of store.log(this.state.revision)) {
        changes.push(...slice.changes)
        if (!slice.last) continue
        this.#take(slice, changes)
        changes = []
        reached()
      }
    } finally {
      await store.close()
    }
  }

  #take({ revision, meta, hash, change_count }: LogSlice, changes: readonly LoggedChange[]): void {
    const { state, made } = this
    assert.equal(revision, state.revision + 1, 'the log has no gaps')
    assert.equal(changes.length, change_count, `revision ${revision} is whole`)
    for (const { type, id, before, before_deleted } of changes) {
      const known = state.get(type, id) ?? state.tombstone(type, id)
      const expected = known && { document: known.document, deleted: known.deleted }
      const said = before === null ? undefined : { document: JSON.parse(before), deleted: before_deleted }
      assert.deepEqual(said, expected, `${type}/${id} before revision ${revision}`)
    }
    state.apply(revision, changes.map(toApplied))
    made.set(meta.request_id, [...(made.get(meta.request_id) ?? []), revision])
    this.#hash = hash
  }

  /** What a poll is answered at this revision; nothing for a cluster that is not known. */
  poll(dns: string, endpoint: string): string | undefined {
    const { state } = this
    const [type, cluster] = [types.byEndpoint(endpoint), state.clusterByDns(dns)]
    return type && cluster && renderInputs(servedTo(types, state, cluster.id), types, type, cluster).text
  }
}

/** Everything that clusters get of a replica at a revision must be what the log makes of it. */
export async function checkServed(
  replica: Pick<ServiceProcess, 'call'>,
  replay: Replay,
  clusters: readonly string[],
): Promise<void> {
  const { revision } = replay.state
  for (const cluster of clusters) {
    for (const endpoint of ENDPOINTS) {
      const url = pollUrl(dnsOf(cluster), endpoint)
      const answer = await replica.call('GET', `${url}?min_revision=${revision}`)
      assert.equal(answer.status, 200, answer.text)
      assert.equal(revisionOf(answer), revision)
      assert.equal(answer.text, replay.poll(dnsOf(cluster), endpoint), `${url} at revision ${revision}`)
    }
  }
}

/** The log must be whole for every replica that has it, up to the revision where it ends. */
export async function checkVerified(
  replicas: readonly Pick<ServiceProcess, 'call'>[],
  head: number,
): Promise<void> {
  for (const replica of replicas) {
    const { status, text, body } = await replica.call('GET', '/revisions/verify')
    assert.equal(status, 200, text)
    const { verified, problems, from, to, revisions } = body
    assert.deepEqual(
      { verified, problems, from, to, revisions },
      { verified: true, problems: [], from: 1, to: head, revisions: head },
    )
  }
}
