// The types of examples/more-types: they load, their documents can be applied, and bundles carry their templates.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { loadTemplates } from '../src/bootstrap/load-templates.ts'
import { builtInTypes, startService } from './service.ts'

const EXAMPLE = join(import.meta.dirname, '../examples/more-types')
const ENDPOINTS = ['certificates', 'external-secrets', 'prometheus-rules', 'resource-quotas']

type Documents = { readonly type: string; readonly [field: string]: unknown }[]

function documentsOfExample(): Documents {
  const text = readFileSync(join(EXAMPLE, 'documents/fleet.yaml'), 'utf8')
  return parseAllDocuments(text).map((document) => document.toJS())
}

test('documents of the example types are taken, and a cluster gets one input of each', async (t) => {
  const service = await startService({ types: builtInTypes(EXAMPLE), fleet: {} })
  t.after(() => service.stop())
  const operations = documentsOfExample().map(({ type, ...document }) => ({ op: 'create', type, document }))
  const written = await service.call('POST', '/batch', { body: { operations } as never })
  assert.equal(written.status, 200, written.text)
  for (const endpoint of ENDPOINTS) {
    const { status, body } = await service.call(
      'GET',
      `/api/v2/flux/clusters/lab-01.k8s.example.com/${endpoint}`,
    )
    assert.equal(status, 200)
    assert.equal(body.inputs.length, 1, endpoint)
  }
})

test('each of the example types has a template', () => {
  const types = builtInTypes(EXAMPLE)
  const loaded = loadTemplates([join(EXAMPLE, 'templates')], types)
  assert.ok(loaded.ok)
  const endpoints = types.delivered.map(({ delivery }) => delivery.endpoint)
  assert.deepEqual(
    ENDPOINTS.filter((endpoint) => !endpoints.includes(endpoint)),
    [],
  )
  assert.equal(loaded.templates.length, ENDPOINTS.length)
})
