// A change is judged as the whole document is, whatever of it is looked at.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtInTypes } from '../../test/service.ts'
import type { JsonObject } from '../base/json.ts'
import type { Document } from '../domain/types/resource-type.ts'

const CLUSTER = { id: 'one', cluster_name: 'one', cluster_dns: 'one.example.com', environment: 'dev' }

/** Changes of a document, right and wrong, each with all other properties as the same objects. */
const CHANGES: readonly JsonObject[] = [
  { labels: { ring: '1' } },
  { labels: {} },
  { labels: null },
  { labels: { ring: null } },
  { labels: { 'not a key': 'x' } },
  { patches: { c: { b: 1, a: null } } },
  { patches: { c: { text: '\u0085' } } },
  { platform_components: [{ id: 'c' }] },
  { platform_components: [{ enabled: false, id: 'c', oci_tag: null }] },
  { platform_components: [{ id: 7 }] },
  { platform_components: 'c' },
  { cluster_dns: 'no name' },
  { cluster_dns: null },
  { cluster_dns: undefined } as unknown as JsonObject,
  { environment: null },
  { unknown: 1 },
  { node_count: 3 },
]

test('what a change makes of a known document is what the whole of it comes to', () => {
  const { type } = builtInTypes().cluster
  const before = type.conform(CLUSTER).document as Document
  for (const change of CHANGES) {
    const changed = Object.fromEntries(
      Object.entries({ ...before, ...change }).filter(([, v]) => v !== undefined),
    )
    const whole = type.conform(structuredClone(changed) as JsonObject)
    const result = type.conform(changed as JsonObject, before)
    assert.equal(JSON.stringify(result), JSON.stringify(whole), JSON.stringify(change))
  }
})

test('a document that was not judged before is judged as a whole', () => {
  const { type } = builtInTypes().cluster
  const loaded: Document = { ...CLUSTER, cluster_dns: 'no name' }
  assert.ok(type.conform({ ...loaded, labels: { ring: '1' } }, loaded).details.length > 0)
  const refused = type.conform({ ...CLUSTER, cluster_dns: 'no name' }).document as Document
  assert.ok(type.conform({ ...refused, labels: { ring: '1' } }, refused).details.length > 0)
})
