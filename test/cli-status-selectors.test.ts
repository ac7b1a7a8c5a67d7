// The command line changes clusters that were selected by their status: it names those that a preview found.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { cli, type Run } from './cli-process.ts'
import { start } from './every-store.ts'
import type { TestService } from './service.ts'

/** Of two clusters, `one` has polled and `two` has not. */
async function polled(t: TestContext): Promise<TestService & { run(...args: string[]): Promise<Run> }> {
  const service = await start(t)
  await service.call('GET', '/api/v2/flux/clusters/one.k8s.example.com/namespaces')
  return { ...service, run: (...args) => cli(args, { url: service.url }) }
}

test('a write by status changes the clusters that its preview found', async (t) => {
  const service = await polled(t)
  const { code, stderr } = await service.run('component', 'assign', 'a', '-l', 'contact=never', '--yes')
  assert.equal(code, 0, stderr)
  const { body } = await service.call('GET', '/clusters/two')
  assert.deepEqual(
    body.platform_components.map(({ id }: { id: string }) => id),
    ['a'],
  )
  assert.equal(
    (await service.call('GET', '/revisions?limit=1')).body[0].operation,
    'assign platform_components/a to two',
  )
})

test('a removal by status leaves clusters alone that have nothing to remove', async (t) => {
  const service = await polled(t)
  const args = [
    'component',
    'unassign',
    'b',
    '-l',
    'contact in (current,never)',
    '--yes',
    '--confirm',
    'removals',
  ]
  const { code, stderr } = await service.run(...args)
  assert.equal(code, 0, stderr)
  const { body } = await service.call('GET', '/clusters/one')
  assert.deepEqual(
    body.platform_components.map(({ id }: { id: string }) => id),
    ['a'],
  )
})

test('a preview by status stays one, and a status that nobody has changes nothing', async (t) => {
  const service = await polled(t)
  const preview = await service.run('component', 'assign', 'a', '-l', 'contact=never', '--dry-run')
  assert.equal(preview.code, 0, preview.stderr)
  const nobody = await service.run('component', 'assign', 'c', '-l', 'contact=refused', '--yes')
  assert.equal(nobody.code, 1, nobody.stderr)
  assert.match(nobody.stderr, /matches no cluster/)
  const misspelt = await service.run('component', 'assign', 'c', '-l', 'contact=ofline', '--yes')
  assert.match(misspelt.stderr, /known are refused, offline/)
  const present = await service.run('component', 'assign', 'a', '-l', 'contact=current', '--yes')
  assert.match(present.stderr, /no cluster that \(contact=current\) selects would change/)
  assert.equal(service.engine.state.revision, 1)
})
