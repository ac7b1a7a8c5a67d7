// What Flux makes of the types in examples/more-types, and of the components in examples/components.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { builtInTypes, startService, temporaryFolder } from '../service.ts'
import { validateObjects } from './schemas.ts'
import { parseObjects, run } from './tools.ts'

const ROOT = join(import.meta.dirname, '../..')
const EXAMPLE = join(ROOT, 'examples/more-types')
const RENDERED = join(EXAMPLE, 'rendered/fleet.yaml')
const ENDPOINTS = ['certificates', 'external-secrets', 'prometheus-rules', 'resource-quotas']
/** No schema of it is at hand: the External Secrets Operator is not among the modules. */
const UNKNOWN = 'ExternalSecret'

test('the types of examples/more-types become the objects of examples/more-types/rendered/fleet.yaml', async (t) => {
  const service = await startService({ types: builtInTypes(EXAMPLE), fleet: {} })
  t.after(() => service.stop())
  const documents = parseAllDocuments(readFileSync(join(EXAMPLE, 'documents/fleet.yaml'), 'utf8'))
  const operations = documents.map((document) => {
    const { type, ...fields } = document.toJS()
    return { op: 'create', type, document: fields }
  })
  assert.equal((await service.call('POST', '/batch', { body: { operations } })).status, 200)
  const made: string[] = []
  for (const endpoint of ENDPOINTS) {
    const poll = await service.call('GET', `/api/v2/flux/clusters/lab-01.k8s.example.com/${endpoint}`)
    const inputs = join(temporaryFolder(t), 'inputs.json')
    writeFileSync(inputs, JSON.stringify(poll.body.inputs))
    const template = readFileSync(join(EXAMPLE, 'templates', `${endpoint}.yaml`), 'utf8')
    const args = ['build', 'resourceset', '--filename', '-', '--inputs-from', inputs]
    const { code, stdout, stderr } = await run('flux-operator', args, { input: template })
    assert.equal(code, 0, stderr)
    made.push(stdout)
  }
  const text = `# What the Flux Operator makes of documents/fleet.yaml.\n${made.join('')}`
  if (process.env.DOCS_UPDATE === '1') writeFileSync(RENDERED, text)
  assert.equal(readFileSync(RENDERED, 'utf8'), text)
  const known = parseObjects(made.join('---\n')).filter(
    (object) => (object as { kind?: string }).kind !== UNKNOWN,
  )
  assert.deepEqual(validateObjects(known), [])
})

for (const path of [
  'core/cert-manager/1.19.1/dev',
  'core/cert-manager/1.19.1/prod',
  'observability/grafana/17.0.0',
]) {
  test(`the folder ${path} of examples/components builds to objects that an API server takes`, async () => {
    const { code, stdout, stderr } = await run('kubectl', [
      'kustomize',
      join(ROOT, 'examples/components', path),
    ])
    assert.equal(code, 0, stderr)
    assert.deepEqual(validateObjects(parseObjects(stdout)), [])
  })
}

test('the backup job of docs/scheduled-jobs.md is one that an API server takes', () => {
  const [, yaml = ''] =
    /```yaml\n([\s\S]*?)\n```/.exec(readFileSync(join(ROOT, 'docs/scheduled-jobs.md'), 'utf8')) ?? []
  const objects = parseObjects(yaml)
  assert.equal(objects.length, 4)
  assert.deepEqual(validateObjects(objects), [])
})
