import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { builtInTypes } from '../../../test/service.ts'
import type { JsonObject } from '../../base/json.ts'
import { parseEvent } from './parse-event.ts'

const types = builtInTypes()
const DIGEST = '0123456789abcdef'

function event(kind: string, name: string, more: JsonObject = {}): JsonObject {
  return {
    involvedObject: { kind, name, namespace: 'flux-system' },
    severity: 'error',
    reason: 'Failed',
    ...more,
  }
}

test('an event is about a component by its release, or by what its source says', () => {
  const about = (payload: JsonObject) => parseEvent(types, payload)?.component
  assert.equal(about(event('HelmRelease', 'grafana')), 'grafana')
  assert.equal(about(event('Kustomization', 'grafana')), 'grafana')
  assert.equal(about(event('HelmChart', 'flux-system-grafana')), 'grafana')
  const metadata = { 'event.toolkit.fluxcd.io/component': 'grafana' }
  assert.equal(about(event('OCIRepository', 'grafana-0123456789', { metadata })), 'grafana')
  assert.equal(about(event('HelmRepository', 'x', { metadata: { component: 'grafana' } })), 'grafana')
})

test('an event of a ResourceSet is about its endpoint', () => {
  const about = (name: string, metadata: JsonObject = {}) =>
    parseEvent(types, event('ResourceSet', name, { metadata }))?.endpoint
  assert.equal(about('platform-components'), 'platform-components')
  assert.equal(
    about('clusterrolebindings', { 'event.toolkit.fluxcd.io/endpoint': 'rolebindings' }),
    'rolebindings',
  )
  assert.equal(about('fleet-ack'), undefined)
  assert.equal(about('fleet-ack', { endpoint: 'nothing' }), undefined)
})

test('the digest is that of the input alone, whatever prefix it comes with', () => {
  const mark = (metadata: JsonObject) => parseEvent(types, event('HelmRelease', 'a', { metadata }))?.mark
  const halves = { a: 0x01234567, b: 0x89abcdef | 0 }
  assert.deepEqual(mark({ digest: DIGEST }), halves)
  assert.deepEqual(mark({ 'helm.toolkit.fluxcd.io/digest': DIGEST }), halves)
  assert.equal(mark({ digest: 'sha256:e3b0c44298fc1c149afbf4c8996fb924' }), undefined)
  assert.equal(mark({ revision: '1' }), undefined)
})

test('what is under way, and what cleans up after a failure, says nothing', () => {
  for (const reason of ['Progressing', 'ProgressingWithRetry', 'DependencyNotReady', 'UninstallSucceeded'])
    assert.equal(
      parseEvent(types, event('HelmRelease', 'a', { severity: 'info', reason })),
      undefined,
      reason,
    )
  const done = event('HelmRelease', 'a', { severity: 'info', reason: 'UpgradeSucceeded' })
  assert.equal(parseEvent(types, done)?.verdict, 'succeeded')
  assert.equal(parseEvent(types, event('HelmRelease', 'a'))?.verdict, 'failed')
})

test('texts are on one line, and not longer than they may be', () => {
  const message = `one\r\ntwo\u0000\u001b[31m\u202e\u2028${'x'.repeat(5000)}`
  const parsed = parseEvent(types, event('HelmRelease', 'a', { message }))
  assert.match(parsed?.message ?? '', /^one two \[31m x+$/)
  assert.ok((parsed?.message.length ?? 0) <= 1000)
})

test('a payload of any shape is parsed or ignored', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), fc.jsonValue(), (involvedObject, metadata, message) => {
      const payload = { involvedObject, metadata, message, severity: message } as JsonObject
      parseEvent(types, payload)
      parseEvent(types, event('HelmRelease', 'a', { metadata, message } as JsonObject))
    }),
    { numRuns: 300 },
  )
})
