// One process of a service with rollouts, and the clusters that poll and report there.
import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { parseHex } from '../src/base/digest.ts'
import type { JsonObject } from '../src/base/json.ts'
import type { Result } from '../src/base/problem.ts'
import { finish } from '../src/base/steps.ts'
import type { Command, WriteCommand } from '../src/domain/commands/command.ts'
import { decide } from '../src/domain/commands/decide.ts'
import { servedTo } from '../src/domain/delivery/served-view.ts'
import { stagingOf } from '../src/domain/rollouts/staging.ts'
import type { Engine } from '../src/engine/engine.ts'
import { createController, type RolloutController } from '../src/engine/rollouts/controller.ts'
import type { Author, WriteOptions, Written } from '../src/engine/write-options.ts'
import { AnswerCache } from '../src/http/poll/answer-cache.ts'
import type { Leases } from '../src/store/leases.ts'
import { Evidence } from './rollout-evidence.ts'
import { answersFrom, documentsIn, types } from './rollout-model.ts'

const INTERVAL_MS = 300_000

/** Every controller holds the lease, as when one of them has lost it and does not know. */
const SPLIT_BRAIN: Leases = {
  acquire: async (name, holder) => ({ name, holder, term: 1 }),
  async release() {},
}

export class Replica {
  readonly engine: Engine
  readonly controller: RolloutController
  readonly evidence: Evidence
  /** So small that there is never room for all. */
  readonly cache = new AnswerCache(6000, () => this.#minutes++ * 60_000, { segmentBytes: 2000, minLength: 1 })
  #minutes = 0

  constructor(
    engine: Engine,
    now: () => Date,
    failed: (problem: unknown) => void,
    evidence = new Evidence(),
  ) {
    this.engine = engine
    this.evidence = evidence
    this.controller = createController({
      types,
      state: engine.state,
      fleet: engine.fleet.fleet,
      leases: SPLIT_BRAIN,
      now,
      write: (commands, author, options) => this.write(commands, author, options),
      // Only `tick` takes steps.
      subscribe: () => () => {},
      failed,
    })
  }

  /** Writes commands as they are after they were stored: they are data, and decide the same. */
  write(commands: readonly WriteCommand[], author: Author, options: WriteOptions): Promise<Result<Written>> {
    const stored: readonly WriteCommand[] = JSON.parse(JSON.stringify(commands))
    const [here, there] = [commands, stored].map((each) => {
      const decided = finish(decide(types, this.engine.state, each as readonly Command[]))
      return decided.ok ? { ...decided.value, after: undefined } : decided
    })
    assert.deepEqual(there, here)
    return this.engine.write(stored, author, options)
  }

  /** As the handler of polls notes them. */
  poll(cluster: string): string {
    const { engine, evidence } = this
    const { state } = engine
    const entry = state.get('clusters', cluster)
    if (!entry) return 'no cluster'
    const view = servedTo(types, state, cluster)
    const naive = answersFrom(documentsIn(view), cluster)
    for (const [i, type] of types.delivered.entries()) {
      const version = view.get('clusters', cluster) ?? entry
      const served = () => engine.fleet.fleet.records.get(cluster)?.poll(type.delivery.endpoint)?.mark
      const answer = this.cache.answer(types, view, type, version, served)
      const { digest } = answer
      const text = 'text' in answer ? answer.text : gunzipSync(answer.bytes).toString()
      assert.equal(text, naive[i])
      const mark = text === '{"inputs":[]}' ? undefined : digest
      const { endpoint } = type.delivery
      const from = stagingOf(types, state).servedFrom(cluster)
      engine.fleet.fleet.notePoll(cluster, endpoint, mark, state.revision, undefined, 't', from)
      evidence.poll(cluster, endpoint, text)
    }
    return 'done'
  }

  /** A report of what the cluster was served last; a late one, of what it was served before that. */
  report(cluster: string, isLate = false): string {
    const { engine, evidence } = this
    const entry = engine.state.get('clusters', cluster)
    if (!entry) return 'no cluster'
    const applied = new Map<string, string>()
    const ready = new Map<string, string>()
    for (const { delivery } of types.delivered) {
      const { inputs } = evidence.answer(cluster, delivery.endpoint, isLate)
      if (inputs[0]) applied.set(delivery.endpoint, String(inputs[0].answer_digest))
      if (delivery.reportsHealth)
        for (const input of inputs as JsonObject[]) ready.set(String(input.id), String(input.digest))
    }
    const halves = (digest: string) => parseHex(digest) ?? assert.fail(digest)
    engine.fleet.fleet.noteReport(
      cluster,
      {
        everyMs: INTERVAL_MS,
        part: '',
        applied: new Map([...applied].map(([endpoint, digest]) => [endpoint, halves(digest)])),
        ready: [...ready].map(([id, digest]) => ({ id, mark: halves(digest) })),
      },
      undefined,
    )
    evidence.report(cluster, applied, ready)
    return 'done'
  }

  fail(cluster: string, component: string): string {
    const { engine, evidence } = this
    const entry = engine.state.get('clusters', cluster)
    if (!entry) return 'no cluster'
    const isNoted = engine.fleet.fleet.noteEvent(entry, {
      object: `HelmRelease/${component}`,
      endpoint: undefined,
      component,
      isRelease: true,
      verdict: 'failed',
      mark: undefined,
      reason: 'r',
      message: 'm',
    })
    if (isNoted) evidence.fail(cluster)
    return String(isNoted)
  }

  /** Until what was polled is compressed. */
  async settle(): Promise<void> {
    while (this.cache.isBusy) await nextTurn()
  }

  async stop(): Promise<void> {
    await this.controller.stop()
    await this.engine.stop()
  }
}
