import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtInTypes } from '../../../test/service.ts'
import type { JsonObject } from '../../base/json.ts'
import { parseSelector } from '../access/selector.ts'
import { State } from '../documents/state.ts'
import { documentsOf, HOLDS } from '../rollouts/hold.ts'
import type { Document } from '../types/resource-type.ts'
import { servedVersions } from './served-version.ts'
import { servedTo } from './served-view.ts'

const types = builtInTypes()
const version = servedVersions(types)

function put(state: State, type: string, document: JsonObject): void {
  const after = { document: document as Document, deleted: false, size: 1 }
  state.apply(state.revision + 1, [{ type, id: String(document.id), after }])
}

function stateOf(...clusters: readonly string[]): State {
  const state = new State(types)
  put(state, 'platform_components', { id: 'web', oci_url: 'oci://x', component_version: '1', oci_tag: 'v1' })
  for (const id of clusters) put(state, 'clusters', { id, platform_components: [{ id: 'web' }] })
  return state
}

test('a cluster that is held has the version that it is served, not the one of the catalog', () => {
  const state = stateOf('held', 'free')
  const held = state.get('clusters', 'held') ?? assert.fail()
  const documents = documentsOf(types, servedTo(types, state, 'held'), held)
  put(state, HOLDS, {
    id: 'held',
    reason: 'audit',
    held_by: 'me',
    since: '',
    documents,
  } as unknown as JsonObject)
  put(state, 'platform_components', { id: 'web', oci_url: 'oci://x', component_version: '1', oci_tag: 'v2' })
  assert.deepEqual(
    ['held', 'free', 'nobody'].map((id) => version(state, id, 'web')),
    ['v1', 'v2', undefined],
  )
  const parsed = parseSelector(types, 'version.web=v1', { version })
  assert.ok(parsed.ok)
  assert.ok(parsed.selector.matches(held.document, state))
  assert.ok(!parsed.selector.matches({ ...held.document, id: 'free' }, state))
})
