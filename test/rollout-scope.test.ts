// How far editors reach by rollouts: nobody acts on what a rollout changes outside of their scope.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Grant } from '../src/domain/access/grant.ts'
import type { Command, RolloutAction } from '../src/domain/commands/command.ts'
import type { Strategy } from '../src/domain/rollouts/rollout.ts'
import { type Engine, startEngine } from '../src/engine/engine.ts'
import type { RolloutOptions, WriteOptions } from '../src/engine/write-options.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { firstFleet } from './random-changes.ts'
import { answersTo, types } from './rollout-model.ts'

const AUTHOR = { actor: 'ann', message: null, request_id: 'r', client_address: null }
const NOW = new Date('2026-03-01T00:00:00Z')
const ADMIN: Grant = { role: 'admin' }
/** c0 and c3 of c0 to c5. */
const DEV: Grant = { role: 'editor', selector: 'environment=dev' }
const CHARTS: Grant = { role: 'editor', types: ['platform_components'] }
const SPACES: Grant = { role: 'editor', types: ['namespaces'] }

const ALL: Strategy = { waves: [{ name: 'all', rest: true }] }
const ONE_BY_ONE: Strategy = { waves: [{ name: 'all', rest: true, max_concurrent: 1 }] }

const NEW_VERSION: Command = {
  op: 'patch',
  type: 'platform_components',
  id: 'a',
  patch: { oci_tag: 'v2' },
  format: 'merge',
  path: '',
}

function valuesOf(cluster: string): Command {
  return { op: 'patch_values', cluster, component: 'a', values: { replicas: '9' }, merge: true, path: '' }
}

async function startFleet(): Promise<Engine> {
  const engine = await startEngine({ store: openMemoryStore(), types, now: () => NOW })
  assert.ok((await engine.write(firstFleet(), AUTHOR)).ok)
  return engine
}

/** What became of a write: `done`, or the reason of its refusal. */
async function outcome(
  engine: Engine,
  commands: readonly Command[],
  grant: Grant,
  more: WriteOptions = {},
): Promise<string> {
  const done = await engine.write(commands, AUTHOR, { confirmRemovals: true, grant, ...more })
  return done.ok ? 'done' : (done.problem.reason ?? done.problem.code)
}

type Stage = Partial<Pick<RolloutOptions, 'spec' | 'supersedes' | 'amends'>>

function stage(
  engine: Engine,
  commands: readonly Command[],
  grant: Grant,
  more: Stage = {},
): Promise<string> {
  const rollout = { strategy: undefined, spec: ALL, path: '/rollout/waves', operations: [], ...more }
  return outcome(engine, commands, grant, { rollout })
}

function act(engine: Engine, action: RolloutAction, grant: Grant): Promise<string> {
  const at = NOW.toISOString()
  return outcome(engine, [{ op: 'act_on_rollout', id: idOf(engine), action, by: 'ann', at, path: '' }], grant)
}

function finish(engine: Engine, grant: Grant): Promise<string> {
  const id = idOf(engine)
  const at = NOW.toISOString()
  return outcome(
    engine,
    [{ op: 'finish_rollout', id, by: 'ann', at, absent: [], stragglers: [], path: '' }],
    grant,
    { ownRollout: id, confirmFinish: true },
  )
}

function idOf({ state }: Engine): string {
  return [...state.all('rollouts')][0]?.id ?? assert.fail('there is no rollout')
}

function answers({ state }: Engine): unknown {
  return ['c0', 'c1', 'c2', 'c3', 'c4', 'c5'].map((id) => answersTo(state, id))
}

const ACTIONS: readonly RolloutAction[] = [
  { kind: 'pause' },
  { kind: 'retry' },
  { kind: 'skip', clusters: ['c0'] },
  { kind: 'skip', wave: 'all' },
  { kind: 'abort' },
]

test('an editor starts a rollout of what reaches only clusters of the own scope', async () => {
  const engine = await startFleet()
  assert.equal(await stage(engine, [NEW_VERSION], DEV), 'out_of_scope')
  assert.equal(await stage(engine, [valuesOf('c1')], DEV), 'out_of_scope')
  assert.equal(await stage(engine, [valuesOf('c0'), valuesOf('c1')], DEV), 'out_of_scope')
  assert.equal(await stage(engine, [valuesOf('c0')], DEV), 'done')
})

test('an editor acts on no rollout that reaches clusters outside of the scope, and nothing changes', async () => {
  const engine = await startFleet()
  assert.equal(await stage(engine, [NEW_VERSION], ADMIN, { spec: ONE_BY_ONE }), 'done')
  const before = answers(engine)
  for (const action of ACTIONS) assert.equal(await act(engine, action, DEV), 'out_of_scope', action.kind)
  assert.equal(await finish(engine, DEV), 'out_of_scope')
  assert.deepEqual(answers(engine), before)
  assert.equal(await act(engine, { kind: 'pause' }, ADMIN), 'done')
  assert.equal(await act(engine, { kind: 'resume' }, DEV), 'out_of_scope')
})

test('an editor acts on whatever rollout reaches clusters of the scope alone', async () => {
  for (const action of ACTIONS) {
    const engine = await startFleet()
    assert.equal(await stage(engine, [valuesOf('c0'), valuesOf('c3')], ADMIN, { spec: ONE_BY_ONE }), 'done')
    assert.equal(await act(engine, action, DEV), 'done', action.kind)
  }
})

test('a rollout of somebody else is neither superseded nor amended by an editor whom it goes beyond', async () => {
  const engine = await startFleet()
  assert.equal(await stage(engine, [NEW_VERSION], ADMIN), 'done')
  const [id, before] = [idOf(engine), answers(engine)]
  assert.equal(await stage(engine, [valuesOf('c0')], DEV, { supersedes: id }), 'out_of_scope')
  for (const restart of [true, false])
    assert.equal(await stage(engine, [valuesOf('c0')], DEV, { amends: { id, restart } }), 'out_of_scope')
  assert.deepEqual(answers(engine), before)
  assert.equal(await stage(engine, [valuesOf('c0')], ADMIN, { supersedes: id }), 'done')
})

test('a member that was deleted, or has left the scope since the start, keeps others from the rollout', async () => {
  const deleted = await startFleet()
  assert.equal(await stage(deleted, [valuesOf('c0'), valuesOf('c1')], ADMIN), 'done')
  const remove: Command = { op: 'delete', type: 'clusters', id: 'c1', cascade: false, purge: false, path: '' }
  assert.equal(await outcome(deleted, [remove], ADMIN), 'done')
  assert.equal(await act(deleted, { kind: 'abort' }, DEV), 'out_of_scope', 'it can be restored')
  const moved = await startFleet()
  assert.equal(await stage(moved, [valuesOf('c0'), valuesOf('c3')], DEV), 'done')
  const move: Command = {
    op: 'patch',
    type: 'clusters',
    id: 'c3',
    patch: { environment: 'prod' },
    format: 'merge',
    path: '',
  }
  assert.equal(await outcome(moved, [move], ADMIN), 'done')
  assert.equal(await finish(moved, DEV), 'out_of_scope')
})

test('an editor of some types acts on no rollout that assigns others, or sets their values', async () => {
  for (const [commands, mine, others] of [
    [[valuesOf('c0')], CHARTS, SPACES],
    [[NEW_VERSION], CHARTS, SPACES],
    [
      [{ op: 'assign', type: 'namespaces', cluster: 'c2', id: 'n0', reference: {}, how: 'ensure', path: '' }],
      SPACES,
      CHARTS,
    ],
  ] as const) {
    const engine = await startFleet()
    assert.equal(await stage(engine, commands, others), 'out_of_scope')
    assert.equal(await stage(engine, commands, mine), 'done')
    for (const action of ACTIONS)
      if (action.kind !== 'skip') assert.equal(await act(engine, action, others), 'out_of_scope')
    assert.equal(await finish(engine, others), 'out_of_scope')
    assert.equal(await finish(engine, mine), 'done')
  }
})

test('who may not write does nothing to a rollout', async () => {
  const engine = await startFleet()
  assert.equal(await stage(engine, [valuesOf('c0')], ADMIN), 'done')
  for (const role of ['viewer', 'poller', 'mirror'] as const)
    assert.equal(await act(engine, { kind: 'abort' }, { role }), 'needs_editor', role)
})

test('an editor holds and releases clusters of the scope only, for a hold keeps everything from them', async () => {
  const engine = await startFleet()
  const hold = (cluster: string): Command => ({
    op: 'hold_cluster',
    cluster,
    reason: 'r',
    by: 'ann',
    at: NOW.toISOString(),
    path: '',
  })
  const release = (cluster: string): Command => ({ op: 'release_cluster', cluster, path: '' })
  assert.equal(await outcome(engine, [hold('c1')], DEV), 'out_of_scope')
  assert.equal(await outcome(engine, [hold('c0')], CHARTS), 'out_of_scope')
  assert.equal(await outcome(engine, [hold('c0')], DEV), 'done')
  assert.equal(await outcome(engine, [hold('c1')], ADMIN), 'done')
  assert.equal(await outcome(engine, [release('c1')], DEV), 'out_of_scope')
  assert.equal(await outcome(engine, [release('c0')], DEV), 'done')
})

test('a rollout keeps what its starter may do, and nothing else of the token', async () => {
  const engine = await startFleet()
  const token = { ...DEV, id: 'ann', name: 'ann', secrets: [{ hash: 'h', created_at: NOW.toISOString() }] }
  assert.equal(await stage(engine, [valuesOf('c0')], token), 'done')
  const [rollout] = [...engine.state.all('rollouts')]
  assert.deepEqual(rollout?.document.grant, DEV)
})
