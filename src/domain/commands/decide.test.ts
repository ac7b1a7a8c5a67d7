import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtInTypes } from '../../../test/service.ts'
import type { Json } from '../../base/json.ts'
import { finish } from '../../base/steps.ts'
import { pointerTo } from '../documents/draft.ts'
import { State } from '../documents/state.ts'
import type { Command } from './command.ts'
import { decide } from './decide.ts'

const types = builtInTypes()

function cluster(id: string, more: Record<string, Json> = {}): Command {
  const document = { id, cluster_name: id, cluster_dns: `${id}.example.com`, environment: 'dev', ...more }
  return { op: 'create', type: 'clusters', document, path: `/${id}` }
}

function patch(id: string, change: Json): Command {
  return { op: 'patch', type: 'clusters', id, patch: change, format: 'merge', path: `/${id}` }
}

/** A state after these commands, each list of them as one revision. */
function stateAfter(...batches: Command[][]): State {
  const state = new State(types)
  for (const commands of batches) {
    const decided = finish(decide(types, state, commands))
    assert.ok(decided.ok, JSON.stringify(decided))
    const changes = decided.value.changes.map(({ type, id, after }) => ({
      type,
      id,
      after: after && { document: after.document, deleted: after.deleted, size: after.json.length },
    }))
    state.apply(state.revision + 1, changes)
  }
  return state
}

function refusal(state: State, commands: Command[]): { code: string; paths: string[] } {
  const decided = finish(decide(types, state, commands))
  assert.ok(!decided.ok)
  return { code: decided.problem.code, paths: (decided.problem.details ?? []).map(({ path }) => path) }
}

test('two clusters of one DNS name are refused in one batch as well, whatever the case', () => {
  const taken = { cluster_dns: 'ONE.example.com' }
  assert.deepEqual(refusal(stateAfter(), [cluster('one'), cluster('two', taken)]), {
    code: 'conflict',
    paths: ['/one/cluster_dns'],
  })
  const state = stateAfter([cluster('one')], [cluster('two')])
  assert.equal(refusal(state, [patch('two', taken)]).code, 'conflict')
})

test('clusters may exchange their DNS names in one batch, and polls follow', () => {
  const swap = [
    patch('one', { cluster_dns: 'two.example.com' }),
    patch('two', { cluster_dns: 'one.example.com' }),
  ]
  for (const batch of [swap, swap.toReversed()]) {
    const state = stateAfter([cluster('one'), cluster('two')], batch)
    assert.equal(state.clusterByDns('one.example.com')?.id, 'two')
    assert.equal(state.clusterByDns('two.example.com')?.id, 'one')
  }
})

test('a name that moves from one cluster to another in one batch is never lost', () => {
  const move = [
    patch('one', { cluster_dns: 'new.example.com' }),
    cluster('two', { cluster_dns: 'one.example.com' }),
  ]
  for (const batch of [move, move.toReversed()]) {
    const state = stateAfter([cluster('one')], batch)
    assert.equal(state.clusterByDns('one.example.com')?.id, 'two')
    assert.equal(state.clusterByDns('new.example.com')?.id, 'one')
  }
})

test('commands may lean on later ones of their batch, but not on what the batch takes away', () => {
  const namespace: Command = { op: 'create', type: 'namespaces', document: { id: 'n' }, path: '/n' }
  const user = cluster('one', { namespaces: [{ id: 'n' }] })
  assert.equal(stateAfter([user, namespace]).count('clusters'), 1)
  const remove: Command = {
    op: 'delete',
    type: 'namespaces',
    id: 'n',
    cascade: false,
    purge: false,
    path: '/d',
  }
  assert.equal(refusal(stateAfter([namespace]), [user, remove]).code, 'conflict')
  assert.equal(refusal(stateAfter([namespace, user]), [remove]).code, 'conflict')
})

test('what a batch does and undoes is no change', () => {
  const state = stateAfter([cluster('one')])
  const there = patch('one', { labels: { a: '1' } })
  const back = patch('one', { labels: { a: null } })
  const decided = finish(decide(types, state, [there, back]))
  assert.ok(decided.ok)
  assert.deepEqual(decided.value.changes, [])
  assert.equal(decided.value.after.get('clusters', 'one')?.revision, 1)
})

test('a problem elsewhere in a document points at what was sent last, and not into it', () => {
  const assigned = { path: '/operations/0/ref', at: '/namespaces/1' }
  const patched = { path: '/operations/1/patch' }
  assert.equal(pointerTo([assigned], '/namespaces/10/id'), '/operations/0/ref')
  assert.equal(pointerTo([assigned], '/namespaces/1/id'), '/operations/0/ref/id')
  assert.equal(pointerTo([assigned, patched], '/namespaces/1/id'), '/operations/0/ref/id')
  assert.equal(pointerTo([assigned, patched], '/labels/a'), '/operations/1/patch/labels/a')
})

test('every document of a batch that is wrong is told of', () => {
  const bad = (id: string): Command => ({ op: 'create', type: 'clusters', document: { id }, path: `/${id}` })
  const { code, paths } = refusal(stateAfter(), [bad('one'), cluster('two'), bad('three')])
  assert.equal(code, 'validation_error')
  assert.deepEqual([...new Set(paths.map((path) => path.split('/')[1]))], ['one', 'three'])
})
