import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { builtInTypes } from '../../../test/service.ts'
import { type Applied, State } from './state.ts'
import type { View } from './view.ts'

const types = builtInTypes()
const IDS = ['a', 'b', 'c', 'd', 'e']
const NAMES = ['x', 'y', 'z']

function change(id: string, name: string, kind: 'live' | 'deleted' | 'purged'): Applied {
  const document = { id, cluster_name: name, cluster_dns: `${name}.example.com`, environment: 'dev' }
  const after = { document, deleted: kind === 'deleted', size: 1 }
  return { type: 'clusters', id, after: kind === 'purged' ? undefined : after }
}

const changes = fc.array(
  fc.record({
    id: fc.constantFrom(...IDS),
    name: fc.constantFrom(...NAMES),
    kind: fc.constantFrom('live' as const, 'deleted' as const, 'purged' as const),
  }),
  { maxLength: 8 },
)

type Made = { readonly id: string; readonly name: string; readonly kind: 'live' | 'deleted' | 'purged' }

/** Of live clusters, only one has a name: the rules see to that. */
function apply(state: State, revision: number, made: readonly Made[]): void {
  for (const { id, name, kind } of made) {
    if (kind !== 'live' || !state.dnsHolder(`${name}.example.com`, id))
      state.apply(revision, [change(id, name, kind)])
  }
}

/** Everything that a view says of clusters. */
function told(view: View): unknown {
  return {
    revision: view.revision,
    all: [...view.all('clusters')].map(({ id }) => id),
    count: view.count('clusters'),
    live: IDS.map((id) => view.get('clusters', id)),
    tombstones: IDS.map((id) => view.tombstone('clusters', id)),
    deleted: [...view.tombstones('clusters')].map(({ id }) => id).sort(),
    holders: NAMES.map((name) => view.dnsHolder(`${name}.example.com`)?.id),
    gone: NAMES.map((name) =>
      view
        .tombstonesWithDns(`${name}.example.com`)
        .map(({ id }) => id)
        .sort(),
    ),
  }
}

test('a frozen view says the same, whatever is published after it, while it is read, or instead of it', () => {
  fc.assert(
    fc.property(changes, fc.array(changes, { maxLength: 4 }), fc.boolean(), (first, later, replaced) => {
      const state = new State(types)
      apply(state, 1, first)
      const before = told(state)
      const view = state.freeze()
      const reading = view.all('clusters')
      const started = reading.next()
      for (const [i, made] of later.entries()) apply(state, i + 2, made)
      if (replaced) state.become(new State(types))
      assert.deepEqual(told(view), before)
      const read = started.done ? [] : [started.value, ...reading]
      assert.deepEqual(
        read.map(({ id }) => id),
        (before as { all: string[] }).all,
      )
      view.release()
    }),
  )
})

test('a view that is released keeps nothing of what changes later', () => {
  const state = new State(types)
  state.apply(1, [change('a', 'x', 'live')])
  const view = state.freeze()
  view.release()
  state.apply(2, [change('a', 'y', 'live')])
  assert.equal(view.has('clusters', 'a'), false)
})
