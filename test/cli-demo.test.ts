// The tour of the command line, as anybody would start it.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { cliEnv } from './cli-process.ts'
import { startService } from './service.ts'

const SCRIPT = join(import.meta.dirname, '../examples/cli-demo.sh')

async function tour(url?: string): Promise<string> {
  const env = cliEnv(url === undefined ? {} : { url })
  return (await promisify(execFile)('bash', [SCRIPT], { env, timeout: 240_000 })).stdout
}

test('the tour runs on a service of its own', async () => {
  const screen = await tour()
  for (const part of [
    'namespaces/demo-runtime created and assigned (revision 2)',
    '+        replicaCount: "3"',
    '/source/oci_tag: "latest" → "34.0.0"',
    'assign platform_components/traefik to (environment=dev): 2 documents changed (revision 4)',
    'revert revision 2: 2 documents changed (revision 7)',
    '# The cluster receives what it received before',
  ]) {
    assert.ok(screen.includes(part), `${part}\n\nis missing from\n\n${screen}`)
  }
})

test('the tour on a service that is there leaves its fleet as it was', async () => {
  const fleet = JSON.parse(readFileSync(join(import.meta.dirname, '../data/seed.json'), 'utf8'))
  const service = await startService({ fleet })
  const everything = () =>
    Promise.all(service.types.all.map(async ({ name }) => (await service.call('GET', `/${name}`)).body))
  const before = await everything()
  await tour(service.url)
  assert.deepEqual(await everything(), before)
  assert.equal(service.engine.state.revision, 7)
  await service.stop()
})
