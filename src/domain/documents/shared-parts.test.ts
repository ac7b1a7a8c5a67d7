import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { builtInTypes } from '../../../test/service.ts'
import type { Document } from '../types/resource-type.ts'
import { SharedParts, shareWith } from './shared-parts.ts'

const types = builtInTypes()

const reference = fc.record(
  { id: fc.constantFrom('a', 'b', 'a b', 'c'), enabled: fc.boolean(), oci_tag: fc.constantFrom('v1', 'v2') },
  { requiredKeys: ['id'] },
)
const cluster = fc.record({
  id: fc.constantFrom('k0', 'k1'),
  cluster_name: fc.constantFrom('k0', 'k1', 'other'),
  labels: fc.dictionary(fc.constantFrom('x', 'y'), fc.constantFrom('1', '2')),
  platform_components: fc.array(reference, { maxLength: 4 }),
  namespaces: fc.array(fc.record({ id: fc.constantFrom('a', 'b', 'a b', 'b c') }), { maxLength: 3 }),
})

test('sharing parts changes no value, whatever was shared before', () => {
  fc.assert(
    fc.property(fc.array(cluster, { maxLength: 12 }), (clusters) => {
      const parts = new SharedParts(types)
      const documents = clusters.map((each) => structuredClone(each) as unknown as Document)
      for (const document of documents) parts.share(document)
      assert.equal(JSON.stringify(documents), JSON.stringify(clusters))
    }),
  )
})

test('clusters that are alike share references, also those that override something, lists and labels', () => {
  const make = (): Document => ({
    id: 'k0',
    cluster_name: 'k0',
    labels: { region: 'eu' },
    namespaces: [{ id: 'a' }, { id: 'b' }],
    platform_components: [
      { id: 'a', enabled: true },
      { id: 'b', enabled: false },
      { id: 'c', enabled: true, oci_tag: 'v2' },
    ],
  })
  const parts = new SharedParts(types)
  const [one, other] = [make(), make()]
  parts.share(one)
  parts.share(other)
  assert.equal(one.labels, other.labels)
  assert.equal(one.namespaces, other.namespaces)
  const [mine, theirs] = [one, other].map((each) => each.platform_components as unknown[])
  for (const i of [0, 1, 2]) assert.equal(mine?.[i], theirs?.[i])
})

test('an earlier version takes over what it has in common with the present one, and stays the same to the byte', () => {
  fc.assert(
    fc.property(cluster, cluster, (is, was) => {
      const version = structuredClone(was) as unknown as Document
      const text = JSON.stringify(version)
      assert.equal(JSON.stringify(shareWith(is as unknown as Document, version)), text)
    }),
  )
  const current = { id: 'k0', labels: { x: '1', y: '2' }, namespaces: [{ id: 'a' }] }
  const version: Document = { id: 'k0', labels: { y: '2', x: '1' }, namespaces: [{ id: 'a' }] }
  shareWith(current, version)
  assert.equal(version.namespaces, current.namespaces)
  assert.deepEqual(Object.keys(version.labels as object), ['y', 'x'])
})
