import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import jsonPatch, { type Operation } from 'fast-json-patch'
import { equalJson, type Json, type JsonObject } from '../../base/json.ts'
import { operationFor } from './apply-set.ts'
import { entriesOf, inventoryOf } from './set-entries.ts'
import { defaultName } from './set-flags.ts'

/** What a set can be called: an RFC 1123 subdomain. */
const NAME = /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)*$/

test('a set is called after its first file or folder', () => {
  const names = [
    [['fleet/prod.yaml', 'other.yaml'], 'prod'],
    [['/srv/fleet/'], 'fleet'],
    [['./My Fleet.v2.json'], 'my-fleet.v2'],
    [['-', 'fleet'], 'stdin'],
    [['/'], 'set'],
    [['.yaml'], 'set'],
  ] as const
  for (const [paths, name] of names) assert.equal(defaultName(paths), name)
})

test('whatever a file is called, a set can be called after it', () => {
  const character = fc.constantFrom(...'aZ0-_. ()é數')
  const path = fc.string({ unit: character, minLength: 1, maxLength: 120 }).map((name) => `/fleet/${name}`)
  fc.assert(fc.property(path, (each) => assert.match(defaultName([each]), NAME)))
})

const field = fc.constantFrom('labels', 'a/b', '~', '~1', 'ünï', '')
const value = fc.oneof(
  fc.constantFrom<Json>(null, 'x', 0, false),
  fc.array(fc.constantFrom('x', 'y'), { maxLength: 2 }),
  fc.dictionary(fc.constantFrom('x', 'y'), fc.constantFrom('1', '2'), { noNullPrototype: true }),
)
const fields = fc.dictionary(field, value, { noNullPrototype: true, maxKeys: 4 })

test('what is there becomes what the set says of it, and keeps everything else', () => {
  fc.assert(
    fc.property(fields, fields, (was, says) => {
      const current = { id: 'x', ...was } as JsonObject
      const document = { id: 'x', ...says } as JsonObject
      const operation = operationFor({ type: 'namespaces', id: 'x', document, source: '' }, current)
      const wanted = { ...current, ...document }
      assert.equal(operation === undefined, equalJson(current, wanted))
      if (!operation) return
      const { patch, ...rest } = operation
      assert.deepEqual(rest, { op: 'patch', type: 'namespaces', id: 'x' })
      const patched = jsonPatch.applyPatch(structuredClone(current), patch as unknown as Operation[], true)
      assert.deepEqual(patched.newDocument, wanted)
    }),
  )
})

test('what is missing is created as the set says', () => {
  const document = { id: 'x', labels: {} }
  assert.deepEqual(operationFor({ type: 'namespaces', id: 'x', document, source: '' }, undefined), {
    op: 'create',
    type: 'namespaces',
    document,
  })
})

test('what a set holds is written down in order, each document once', () => {
  const entry = fc.record({ type: fc.constantFrom('b', 'a'), id: fc.constantFrom('z', 'y', 'x') })
  fc.assert(
    fc.property(fc.array(entry), (set) => {
      const keys = (list: readonly { readonly type: string; readonly id: string }[]) =>
        list.map(({ type, id }) => `${type}/${id}`)
      assert.deepEqual(keys(entriesOf(inventoryOf(set))), [...new Set(keys(set))].toSorted())
    }),
  )
})
