// What others have changed since a set was applied: `apply` and `diff` stop, `pull` takes it into the files.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { type CliOptions, cli, onTerminal } from './cli-process.ts'
import { start as startAny } from './every-store.ts'
import { types } from './random-fleet.ts'
import { type TestService, temporaryFolder } from './service.ts'

const FILE = `# Who runs here.
type: clusters
id: one
cluster_name: one
cluster_dns: one.k8s.example.com
environment: dev # the first of them
patches:
  a:
    # Enough for the night.
    replicas: "8"
node_count: 1
---
type: namespaces
id: x
labels: {team: a} # ours
`

/** A service to which a file was applied, and then somebody has changed what a cluster has. */
async function changedByOthers(t: TestContext, text = FILE, name = 'fleet.yaml') {
  const service = await startAny(t, { types })
  const folder = temporaryFolder(t)
  const file = join(folder, name)
  writeFileSync(file, text)
  await succeed(service, ['apply', '-f', file, '--yes'])
  const patches = { a: { replicas: '9' } }
  const changed = await service.call('PATCH', '/clusters/one', {
    body: { patches },
    headers: { 'content-type': 'application/merge-patch+json', 'x-change-message': 'INC-1' },
  })
  assert.equal(changed.status, 200, JSON.stringify(changed.body))
  return { service, file, folder }
}

function on({ url }: TestService, args: readonly string[], options: CliOptions = {}) {
  return cli(args, { url, ...options })
}

async function succeed(service: TestService, args: readonly string[]) {
  const result = await on(service, args)
  assert.equal(result.code, 0, result.stderr)
  return result
}

async function replicas({ call }: TestService): Promise<string> {
  return (await call('GET', '/clusters/one')).body.patches.a.replicas
}

const NAMED = /clusters\/one \/patches\/a\/replicas: "8" → "9", by writer in revision 3 \(INC-1\)/

describe('what others have changed since a set was applied', () => {
  test('stops apply, with who did it and why, and --yes does not overwrite it', async (t) => {
    const { service, file } = await changedByOthers(t)
    for (const flags of [[], ['--yes']]) {
      const result = await on(service, ['apply', '-f', file, ...flags])
      assert.equal(result.code, 2, result.stderr)
      assert.match(result.stderr, NAMED)
      assert.match(result.stderr, /--overwrite/)
    }
    assert.equal(await replicas(service), '9')
    await succeed(service, ['apply', '-f', file, '--overwrite', '--yes'])
    assert.equal(await replicas(service), '8')
    // Nothing is left of it: neither an unchanged file nor a new change of it is stopped.
    await succeed(service, ['apply', '-f', file])
    writeFileSync(file, FILE.replace('"8"', '"7"'))
    await succeed(service, ['apply', '-f', file, '--yes'])
    assert.equal(await replicas(service), '7')
  })

  test('is asked about on a terminal', async (t) => {
    const { service, file } = await changedByOthers(t)
    const { screen } = await onTerminal(['apply', '-f', file], {
      url: service.url,
      columns: 200,
      typing: [
        ['Overwrite 1 change of others on http', 'yes\r'],
        ['Type "', 'yes\r'],
      ],
    })
    assert.match(screen, NAMED)
    assert.equal(await replicas(service), '8', screen)
  })

  test('fails diff and dry runs with 2, after the preview', async (t) => {
    const { service, file } = await changedByOthers(t)
    for (const args of [['diff'], ['apply', '--dry-run']]) {
      const result = await on(service, [...args, '-f', file])
      assert.equal(result.code, 2, result.stderr)
      assert.match(result.stderr, NAMED)
      assert.match(result.stdout, /replicas/)
    }
    assert.equal((await on(service, ['diff', '-f', file, '--overwrite'])).code, 4)
  })

  test('is no conflict where the files do not name the field, or say the same', async (t) => {
    const { service, file } = await changedByOthers(t, FILE.replace(/patches:.*?(?=node_count)/s, ''))
    writeFileSync(
      file,
      FILE.replace(/patches:.*?(?=node_count)/s, '').replace('node_count: 1', 'node_count: 2'),
    )
    await succeed(service, ['apply', '-f', file, '--yes'])
    assert.equal(await replicas(service), '9')
    writeFileSync(file, FILE.replace('"8"', '"9"'))
    await succeed(service, ['apply', '-f', file, '--yes'])
  })

  test('is a document of the set that somebody has deleted', async (t) => {
    const { service, file } = await changedByOthers(t)
    await service.call('DELETE', '/namespaces/x')
    const result = await on(service, ['apply', '-f', file, '--yes'])
    assert.equal(result.code, 2)
    assert.match(result.stderr, /namespaces\/x was deleted, by writer in revision 4/)
    const pulled = await succeed(service, ['pull', '-f', file])
    assert.match(pulled.stderr, /namespaces\/x was deleted: .* take it out of/)
  })
})

describe('pull', () => {
  test("takes others' changes into the file, and leaves its own changes and comments", async (t) => {
    const { service, file } = await changedByOthers(t)
    const own = FILE.replace('node_count: 1', 'node_count: 5')
    writeFileSync(file, own)
    const dry = await succeed(service, ['pull', '-f', file, '--dry-run'])
    assert.match(dry.stdout, NAMED)
    assert.equal(readFileSync(file, 'utf8'), own)
    await succeed(service, ['pull', '-f', file])
    assert.equal(readFileSync(file, 'utf8'), own.replace('"8"', '"9"').replace('{team: a}', '{ team: a }'))
    await succeed(service, ['apply', '-f', file, '--yes'])
    assert.equal(await replicas(service), '9')
    const again = await succeed(service, ['pull', '-f', file])
    assert.match(again.stderr, /nothing to take/)
  })

  test('knows items of lists by their ids', async (t) => {
    const text = `type: clusters
id: one
cluster_name: one
cluster_dns: one.k8s.example.com
environment: dev
namespaces:
  # First of all.
  - id: a
  - id: b # to go
patches: {a: {replicas: "8"}}
---
- {type: namespaces, id: a}
- {type: namespaces, id: b}
- {type: namespaces, id: c}
`
    const { service, file } = await changedByOthers(t, text)
    await succeed(service, [
      'namespace',
      'unassign',
      'b',
      '--cluster',
      'one',
      '--yes',
      '--confirm',
      'removals',
    ])
    await succeed(service, ['namespace', 'assign', 'c', '--cluster', 'one', '--yes'])
    await succeed(service, ['pull', '-f', file])
    const pulled = readFileSync(file, 'utf8')
    assert.match(pulled, /# First of all\.\n {2}- id: a\n {2}- id: c\n/)
    assert.doesNotMatch(pulled, /to go/)
    const { stderr, code } = await on(service, ['diff', '-f', file])
    assert.equal(code, 0, stderr)
  })

  test('writes JSON as JSON, and a set that was never applied takes all that differs', async (t) => {
    const { service, folder } = await changedByOthers(t)
    const file = join(folder, 'other.json')
    const document = { type: 'clusters', id: 'one', environment: 'qa', patches: {} }
    writeFileSync(file, JSON.stringify(document))
    await succeed(service, ['pull', '-f', file])
    assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), {
      ...document,
      environment: 'dev',
      patches: { a: { replicas: '9' } },
    })
  })
})
