// Takes rollouts from their preview to their end, as a person would, and measures what they take.
import { randomUUID } from 'node:crypto'
import type { Json, JsonObject } from '../../../src/base/json.ts'
import type { ClusterAnswer } from '../exchange.ts'
import type { JsonRequest } from '../operator-request.ts'
import type { RolloutWatch } from './rollout-watch.ts'
import type { AskedChange, LoggedRollout } from './staged-documents.ts'

/** A service with its clusters, and time. */
export interface RolloutWorld {
  readonly watch: RolloutWatch
  /** Milliseconds. */
  readonly clock: () => number
  /** How often somebody who waits looks again, in milliseconds. */
  readonly lookMs: number
  /** Lets time go by: the clusters and the service go on meanwhile. */
  readonly pass: (ms: number) => Promise<void>
  /** Asks one process of the service. What has a key is done once, however often asked. */
  readonly ask: (request: Omit<JsonRequest, 'token'>) => Promise<ClusterAnswer>
}

/** How a rollout is ended. */
export const ENDS = ['finish', 'abort', 'amend'] as const
export type End = (typeof ENDS)[number]

export interface RolloutOrder {
  /** No other write has it. */
  readonly message: string
  readonly changes: readonly AskedChange[]
  /** The `rollout` of the batch: a strategy by its name, or waves. */
  readonly rollout: JsonObject
}

const TRIES = 600
const UNAVAILABLE = 503

/** Asks until somebody answers; throws when the answer is a refusal. */
export async function askUntilDone(
  { ask, pass, lookMs }: RolloutWorld,
  method: string,
  path: string,
  body: JsonObject,
): Promise<Json> {
  const key = randomUUID()
  for (let tries = 0; tries < TRIES; tries++) {
    const said = await ask({ method, path, body, key })
    if (said.kind === 'answer' && said.status < 300) return JSON.parse(said.body)
    if (said.kind === 'answer' && said.status !== UNAVAILABLE)
      throw new Error(`${method} ${path}: ${said.status} ${said.body.slice(0, 1000)}`)
    await pass(lookMs)
  }
  throw new Error(`${method} ${path}: nobody answered`)
}

function batchOf({ message, changes, rollout }: RolloutOrder): JsonObject {
  return { operations: changes.map((change) => ({ op: 'patch', ...change })), message, rollout }
}

/** The preview of a rollout, in parts that do not change while nobody writes. */
export async function previewRollout(world: RolloutWorld, order: RolloutOrder): Promise<JsonObject> {
  const path = '/batch?dry_run=true'
  return (await askUntilDone(world, 'POST', path, batchOf(order))) as JsonObject
}

/** Starts a rollout; returns its id. */
export async function startRollout(world: RolloutWorld, order: RolloutOrder): Promise<string> {
  world.watch.documents.ask(order.message, order.changes)
  const started = (await askUntilDone(world, 'POST', '/batch', batchOf(order))) as {
    readonly rollout: { readonly id: string }
    readonly revision: number
  }
  await world.watch.log.reach(started.revision)
  return started.rollout.id
}

export async function amendRollout(
  world: RolloutWorld,
  id: string,
  { message, changes, restart = false }: Omit<RolloutOrder, 'rollout'> & { readonly restart?: boolean },
): Promise<void> {
  world.watch.documents.ask(message, changes)
  const operations = changes.map((change) => ({ op: 'patch', ...change }))
  await askUntilDone(world, 'POST', `/rollouts/${id}/amend`, { operations, message, restart })
}

/** Waits until a rollout is as wanted, and does something about it meanwhile; throws with what keeps it when that takes too long. */
export async function untilRollout(
  world: RolloutWorld,
  id: string,
  isReached: (rollout: LoggedRollout) => boolean,
  withinMs: number,
  meanwhile: (rollout: LoggedRollout) => Promise<unknown> = async () => {},
): Promise<LoggedRollout> {
  const { watch, clock, pass, ask, lookMs } = world
  const begun = clock()
  for (;;) {
    await watch.log.follow()
    const rollout = watch.rollout(id)
    if (rollout && isReached(rollout)) return rollout
    if (rollout) await meanwhile(rollout)
    if (clock() - begun > withinMs) {
      const said = await ask({ method: 'GET', path: `/rollouts/${id}` })
      throw new Error(`rollout ${id} did not go on for ${withinMs} ms: ${JSON.stringify(said)}`)
    }
    await pass(lookMs)
  }
}

export function hasEnded({ state }: LoggedRollout): boolean {
  return state === 'finished' || state === 'aborted'
}

/** Waits until every member was answered after a revision. */
export async function untilHeard(
  { watch, clock, pass, lookMs }: RolloutWorld,
  clusters: Iterable<string>,
  withinMs: number,
): Promise<void> {
  const since = clock()
  for (const dns of clusters)
    while (watch.evidence.lastHeard(dns, Number.POSITIVE_INFINITY) < since && clock() - since < withinMs)
      await pass(lookMs)
}
