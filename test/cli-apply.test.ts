// `apply`, `diff` and `export`, as processes against a real service.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { parse, parseAllDocuments } from 'yaml'
import { openMemoryStore } from '../src/store/memory.ts'
import { CLI, type CliOptions, cli, cliEnv, onTerminal, type Run } from './cli-process.ts'
import { changesOf, run, start as startAny } from './every-store.ts'
import { type Hook, standBefore } from './own-server.ts'
import { AUTHOR, commands, start as startRandom, types } from './random-fleet.ts'
import {
  builtInTypes,
  READ_TOKEN,
  type ServiceOptions,
  smallFleet,
  startService,
  type TestService,
  temporaryFolder,
} from './service.ts'

const SEED = join(import.meta.dirname, '../data/seed.json')
const POLICIES = join(import.meta.dirname, '../examples/network-policies')
const POLLS = '/api/v2/flux/clusters'
/** Processes wait for each other now and then. */
const CONCURRENTLY = { concurrency: 3 }

/** A service that is stopped after the test; the types are read once for all. */
function start(t: TestContext, options: ServiceOptions = {}): Promise<TestService> {
  return startAny(t, { types, ...options })
}

/** Files by their path, in a folder of their own. */
function files(t: TestContext, contents: Record<string, unknown>): string {
  const folder = temporaryFolder(t)
  for (const [path, content] of Object.entries(contents)) put(folder, path, content)
  return folder
}

function put(folder: string, path: string, content: unknown): string {
  const file = join(folder, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

/** Namespaces of these names, as a file that can be applied. */
function namespaces(...ids: readonly string[]) {
  return { namespaces: ids.map((id) => ({ id })) }
}

function cluster(id: string, more: object = {}) {
  return { id, cluster_name: id, cluster_dns: `${id}.k8s.example.com`, environment: 'dev', ...more }
}

/** Runs the program on a service. */
function on({ url }: { readonly url: string }, args: readonly string[], options: CliOptions = {}) {
  return cli(args, { url, ...options })
}

/** As `on`, and it must succeed. */
async function done(service: { readonly url: string }, args: readonly string[], options: CliOptions = {}) {
  const result = await on(service, args, options)
  assert.equal(result.code, 0, `${args.join(' ')}\n${result.stdout}${result.stderr}`)
  return result
}

function assertRefused(result: Run, code: number, ...said: readonly (string | RegExp)[]): void {
  assert.equal(result.code, code, result.stdout + result.stderr)
  assert.equal(result.stdout, '')
  for (const part of said) {
    const isThere = typeof part === 'string' ? result.stderr.includes(part) : part.test(result.stderr)
    assert.ok(isThere, `${part} is missing from\n${result.stderr}`)
  }
  assert.doesNotMatch(result.stderr, /^\s+at .*:\d+:\d+/m, 'a stack trace is for nobody')
  assert.doesNotMatch(result.stderr, /trying again/, 'it is over')
}

async function get({ call }: TestService, path: string) {
  return (await call('GET', path)).body
}

/** The ids of a type. */
async function ids(service: TestService, type: string): Promise<string[]> {
  return (await get(service, `/${type}?limit=5000`)).map(({ id }: { id: string }) => id)
}

function revisionOf({ engine }: TestService): number {
  return engine.state.revision
}

/** All documents of every type that a set can hold. */
async function documentsOf(service: TestService): Promise<Record<string, string>> {
  const names = service.types.all.map(({ name }) => name).filter((name) => name !== 'applied_sets')
  const answers = await Promise.all(names.map((name) => service.call('GET', `/${name}?limit=5000`)))
  return Object.fromEntries(names.map((name, i) => [name, answers[i]?.text ?? '']))
}

/** The very bytes that clusters get. */
async function pollsOf(service: TestService): Promise<Record<string, string>> {
  const list = await service.call('GET', POLLS)
  const found: Record<string, string> = { [POLLS]: list.text }
  for (const { cluster_dns } of list.body.inputs) {
    for (const { delivery } of service.types.delivered) {
      const url = `${POLLS}/${cluster_dns}/${delivery.endpoint}`
      found[url] = (await service.call('GET', url)).text
    }
  }
  return found
}

/** Once only, before the first write that is meant. */
function beforeFirstWrite(happens: () => Promise<unknown>): Hook {
  let first = true
  return async ({ method, url = '' }) => {
    if (method !== 'POST' || !url.startsWith('/batch') || url.includes('dry_run') || !first) return
    first = false
    await happens()
  }
}

interface Launched {
  readonly child: ChildProcess
  readonly ended: Promise<Run>
}

function launch(args: readonly string[], options: CliOptions & { readonly uid?: number }): Launched {
  const { cwd, uid } = options
  const child = spawn(process.execPath, [CLI, ...args], {
    env: cliEnv(options),
    cwd,
    timeout: 30_000,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(uid !== undefined && { uid, gid: uid }),
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => {
    output.stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    output.stderr += chunk
  })
  return { child, ended: once(child, 'close').then(([code]) => ({ code, ...output })) }
}

describe('what can be applied', CONCURRENTLY, () => {
  test('a YAML file of several documents creates and updates in one revision', async (t) => {
    const service = await start(t)
    const folder = files(t, {
      'fleet.yaml': `
type: namespaces
id: team-c
labels: {team: c}
---
type: namespaces
id: team-b
annotations: {owner: b}
---
type: clusters
id: two
namespaces: [{id: team-c}]
`,
    })
    const { stdout, stderr } = await done(service, ['apply', '-f', join(folder, 'fleet.yaml')])
    assert.deepEqual(stdout.trimEnd().split('\n').toSorted(), [
      '1 cluster receives something else: prod 1 — 1 gets team-c (new)',
      'apply: 3 documents changed (revision 2)',
      'clusters/two configured',
      'namespaces/team-b configured',
      'namespaces/team-c created',
    ])
    assert.equal(stderr, '')
    assert.deepEqual(await changesOf(service, 2), [
      'create applied_sets/fleet',
      'create namespaces/team-c',
      'update clusters/two',
      'update namespaces/team-b',
    ])
    assert.deepEqual((await get(service, '/namespaces/team-b')).annotations, { owner: 'b' })
  })

  test('a JSON file holds one document, or an array of them', async (t) => {
    const service = await start(t)
    const folder = files(t, {
      'one.json': { type: 'namespaces', id: 'n1', labels: { a: '1' } },
      'many.json': [
        { type: 'namespaces', id: 'n2' },
        { type: 'rolebindings', id: 'viewers', role: 'view', subjects: [] },
      ],
    })
    await done(service, ['apply', '-f', join(folder, 'one.json')])
    await done(service, ['apply', '-f', join(folder, 'many.json')])
    assert.deepEqual(await ids(service, 'namespaces'), ['n1', 'n2', 'team-a', 'team-b'])
    assert.deepEqual(await ids(service, 'rolebindings'), ['admins', 'viewers'])
    assert.equal(revisionOf(service), 3)
  })

  test('a seed file makes an empty service what seeding makes it', async (t) => {
    const fleet = JSON.parse(readFileSync(SEED, 'utf8'))
    const [seeded, applied] = await Promise.all([start(t, { fleet }), start(t, { fleet: {} })])
    await done(applied, ['apply', '-f', SEED, '--yes'])
    assert.deepEqual(await documentsOf(applied), await documentsOf(seeded))
    assert.deepEqual(await pollsOf(applied), await pollsOf(seeded))
    assert.equal(revisionOf(applied), 1)
  })

  test('a seed file may write ids as _id', async (t) => {
    const service = await start(t, { fleet: {} })
    const folder = files(t, { 'seed.json': { namespaces: [{ _id: 'old', labels: { a: '1' } }] } })
    await done(service, ['apply', '-f', join(folder, 'seed.json')])
    assert.deepEqual(await get(service, '/namespaces/old'), {
      id: 'old',
      labels: { a: '1' },
      annotations: {},
    })
  })

  test('a folder is read with all below it, without hidden files and other extensions', async (t) => {
    const service = await start(t, { fleet: {} })
    const folder = files(t, {
      'fleet/b.yml': 'type: namespaces\nid: b\n',
      'fleet/a.yaml': 'type: namespaces\nid: a\n',
      'fleet/deep/er/c.json': { type: 'namespaces', id: 'c' },
      'fleet/.hidden.yaml': 'type: namespaces\nid: hidden\n',
      'fleet/.git/config.yaml': 'not: ours\n',
      'fleet/deep/.cache/d.json': '{',
      'fleet/README.md': 'type: namespaces\nid: readme\n',
      'fleet/a.yaml.bak': 'type: namespaces\nid: backup\n',
    })
    await done(service, ['apply', '-f', join(folder, 'fleet')])
    assert.deepEqual(await ids(service, 'namespaces'), ['a', 'b', 'c'])
    assert.equal(revisionOf(service), 1)
  })

  test('a folder holds the same however its path is written', async (t) => {
    const service = await start(t, { fleet: {} })
    const folder = files(t, {
      'fleet/a.yaml': 'type: namespaces\nid: a\n',
      'fleet/.git/config.yaml': 'not: ours\n',
    })
    for (const [path, cwd] of [
      ['fleet/', folder],
      ['./fleet', folder],
      ['./fleet/', folder],
      ['.', join(folder, 'fleet')],
      ['./', join(folder, 'fleet')],
      ['../fleet', join(folder, 'fleet')],
    ] as const) {
      const { stdout } = await done(service, ['apply', '-f', path, '--dry-run', '-o', 'name'], { cwd })
      assert.match(stdout, /^namespaces\/a$/m, path)
    }
  })

  test('a file that a folder only links to is read', async (t) => {
    const service = await start(t, { fleet: {} })
    // As a ConfigMap is mounted.
    const folder = files(t, { 'set/..data/a.yaml': 'type: namespaces\nid: a\n' })
    symlinkSync('..data/a.yaml', join(folder, 'set/a.yaml'))
    await done(service, ['apply', '-f', join(folder, 'set')])
    assert.deepEqual(await ids(service, 'namespaces'), ['a'])
  })

  test('stdin and several files are one set', async (t) => {
    const service = await start(t, { fleet: {} })
    const folder = files(t, { 'a.json': namespaces('a'), 'more/b.json': namespaces('b') })
    await done(service, ['apply', '-f', '-', '-f', join(folder, 'a.json'), '-f', join(folder, 'more')], {
      input: 'type: namespaces\nid: piped\n---\ntype: namespaces\nid: second\n',
    })
    assert.deepEqual(await ids(service, 'namespaces'), ['a', 'b', 'piped', 'second'])
    assert.equal(revisionOf(service), 1)
  })

  test('YAML may say something once and use it again', async (t) => {
    const service = await start(t, { fleet: {} })
    const input = 'type: namespaces\nid: x\nlabels: &same {team: a}\nannotations: *same\n'
    await done(service, ['apply', '-f', '-'], { input })
    assert.deepEqual((await get(service, '/namespaces/x')).annotations, { team: 'a' })
  })

  test('YAML may use it for as many documents as there are', async (t) => {
    const service = await start(t, { fleet: {} })
    const more = Array.from({ length: 150 }, (_, i) => `- {type: namespaces, id: n${i}, labels: *same}\n`)
    const input = `- {type: namespaces, id: first, labels: &same {team: a}}\n${more.join('')}`
    await done(service, ['apply', '-f', '-'], { input })
    assert.deepEqual((await get(service, '/namespaces/n149')).labels, { team: 'a' })
  })

  test('a cluster that was deleted is created anew', async (t) => {
    const service = await start(t)
    await run(service, ['DELETE', '/clusters/two'])
    const folder = files(t, { 'two.json': { clusters: [cluster('two', { node_count: 3 })] } })
    const { stdout } = await done(service, ['apply', '-f', join(folder, 'two.json')])
    assert.match(stdout, /^clusters\/two created$/m)
    assert.equal((await get(service, '/clusters/two')).node_count, 3)
  })

  test('documents that have a type of their own are written inside of one that names theirs', async (t) => {
    const folder = files(t, {
      'resources/volume.yaml': resourceFile('volumes', { type: { type: 'string' } }),
    })
    const options = { types: builtInTypes(join(folder, 'resources')), fleet: {} }
    const env = { XDG_CACHE_HOME: join(folder, 'cache') }
    const [service, copy] = await Promise.all([start(t, options), start(t, options)])
    const input = 'type: volumes\ndocument: {id: fast, type: ssd}\n---\ntype: volumes\nid: plain\n'
    await done(service, ['apply', '-f', '-'], { input, env })
    assert.deepEqual(await get(service, '/volumes'), [{ id: 'fast', type: 'ssd' }, { id: 'plain' }])
    const seed = JSON.stringify({ volumes: [{ id: 'plain', type: 'tape' }] })
    await done(service, ['apply', '-f', '-'], { input: seed, env })
    for (const format of ['yaml', 'json']) {
      const { stdout } = await done(service, ['export', '-o', format], { env })
      await done(copy, ['apply', '-f', '-'], { input: stdout, env })
      assert.deepEqual(await documentsOf(copy), await documentsOf(service))
    }
  })

  test('a type that the service has only learned since is known', async (t) => {
    const folder = files(t, { 'set.json': { network_policies: [{ id: 'p', target_namespace: 'n' }] } })
    const [before, since] = await Promise.all([start(t), start(t, { types: builtInTypes(POLICIES) })])
    const front = await standBefore(t, before)
    const env = { XDG_CACHE_HOME: join(folder, 'cache') }
    await done(front, ['export'], { env })
    front.leadTo(since)
    await done(front, ['apply', '-f', join(folder, 'set.json')], { env })
    assert.deepEqual(await ids(since, 'network_policies'), ['p'])
  })
})

function resourceFile(kind: string, properties: object) {
  return {
    kind,
    apiVersion: 'v1',
    schema: {
      type: 'array',
      key: { name: 'id', schema: { type: 'string' } },
      'x-flux': { singular: kind.replace(/s$/, '') },
      items: { type: 'object', properties },
    },
  }
}

describe('what an update does', CONCURRENTLY, () => {
  test('fields that are named become exactly that, and others stay', async (t) => {
    const service = await start(t)
    await run(service, [
      'PATCH',
      '/clusters/one',
      { labels: { region: 'eu', canary: 'true' }, node_count: 5, vm_image: 'old' },
    ])
    const folder = files(t, {
      'one.yaml': `
type: clusters
id: one
labels: {region: us}
platform_components: [{id: a}]
node_count: null
`,
    })
    const before = await get(service, '/clusters/one')
    await done(service, ['apply', '-f', join(folder, 'one.yaml'), '--yes'])
    const { node_count, ...kept } = before
    assert.equal(node_count, 5)
    assert.deepEqual(await get(service, '/clusters/one'), {
      ...kept,
      labels: { region: 'us' },
      platform_components: [{ id: 'a', enabled: true }],
    })
  })

  test('null for a field with a default brings the default back', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.yaml': 'type: namespaces\nid: team-a\nlabels: null\n' })
    await done(service, ['apply', '-f', join(folder, 'set.yaml')])
    assert.deepEqual((await get(service, '/namespaces/team-a')).labels, {})
    const { stdout } = await done(service, ['apply', '-f', join(folder, 'set.yaml')])
    assert.equal(stdout, 'nothing to change\n')
    assert.equal(revisionOf(service), 2)
  })

  test('applying again what was applied makes no revision and says so', async (t) => {
    const service = await start(t, { fleet: {} })
    await done(service, ['apply', '-f', SEED, '--yes'])
    const { stdout, stderr } = await done(service, ['apply', '-f', SEED])
    assert.equal(stdout, 'nothing to change\n')
    assert.equal(stderr, '')
    assert.equal(revisionOf(service), 1)
  })

  test('the order of fields and defaults that are left out are no difference', async (t) => {
    const service = await start(t)
    const folder = files(t, {
      'one.json': {
        clusters: [
          {
            platform_components: [{ id: 'a' }, { oci_tag: 'v2.0.0', id: 'b' }],
            environment: 'dev',
            patches: { a: { replicas: '2' } },
            id: 'one',
          },
        ],
      },
    })
    const args = ['-f', join(folder, 'one.json')]
    assert.equal((await on(service, ['diff', ...args])).code, 0)
    await done(service, ['apply', ...args])
    assert.deepEqual(await changesOf(service, 2), ['create applied_sets/one'])
  })

  test('a set that the fleet held already is remembered, and it is said that no document changed', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': namespaces('team-a') })
    const { stdout } = await done(service, ['apply', '-f', join(folder, 'set.json')])
    assert.deepEqual(await changesOf(service, 2), ['create applied_sets/set'])
    assert.match(stdout, /nothing to change|unchanged|remember/)
  })
})

describe('what is wrong with files', CONCURRENTLY, () => {
  const cases: Record<string, [content: string, ...said: (string | RegExp)[]]> = {
    'an unknown type': ['type: namespace\nid: x\n', 'type "namespace" is not known', 'platform_components'],
    'the type that remembers sets': ['type: applied_sets\nid: x\n', 'type "applied_sets" is not known'],
    'no type': ['id: x\n', 'has no type', 'namespaces'],
    'no id': ['type: namespaces\nlabels: {}\n', 'needs an id'],
    'an id that is a number': ['type: namespaces\nid: 12\n', /text|string|quote/],
    'text without fields': ['hello\n', 'must be a document'],
    'the second of two documents': ['type: namespaces\nid: x\n---\nid: y\n', 'document 2'],
    'an unknown type of a seed file': ['{"nodes": [{"id": "x"}]}', '/nodes/0', 'type "nodes" is not known'],
    'a seed file with something else than documents': ['{"namespaces": ["x"]}', '/namespaces/0'],
    'YAML that is none': ['type: namespaces\nid: x\n labels: [\n', 'not valid YAML', 'line 2'],
    'a key that is there twice': ['type: namespaces\nid: x\nid: y\n', 'not valid YAML', 'unique'],
    'a number that JSON does not have': ['type: clusters\nid: one\nnode_count: .nan\n', /NaN|nan|number/],
    'an id that leads elsewhere': ['type: namespaces\nid: ..\n', /\.\./],
    'nothing at all': ['', 'holds no documents'],
    'nothing but comments': ['---\n# later\n---\n', 'holds no documents'],
  }
  for (const [what, [content, ...said]] of Object.entries(cases)) {
    test(`${what} is refused with the file's name, and nothing changes`, async (t) => {
      const service = await start(t)
      const folder = files(t, { 'good.yaml': 'type: namespaces\nid: good\n', 'wrong.yaml': content })
      const args = what.startsWith('nothing')
        ? ['-f', join(folder, 'wrong.yaml')]
        : ['-f', join(folder, 'good.yaml'), '-f', join(folder, 'wrong.yaml')]
      assertRefused(await on(service, ['apply', ...args]), 2, 'wrong.yaml', ...said)
      assert.equal(revisionOf(service), 1)
    })
  }

  test('a .json file that is not JSON is never read as something else', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': '{"type": "namespaces", "id": "team-a", "labels": }' })
    assertRefused(await on(service, ['apply', '-f', join(folder, 'set.json')]), 2, 'set.json', 'JSON')
    assert.deepEqual((await get(service, '/namespaces/team-a')).labels, { team: 'a' })
  })

  test('a document that is there twice is refused with both its places', async (t) => {
    const service = await start(t)
    const folder = files(t, {
      'b/2.yaml': 'type: namespaces\nid: other\n---\ntype: namespaces\nid: x\n',
      'a/1.json': [{ type: 'namespaces', id: 'x' }],
    })
    const both = `namespaces/x is there twice: in ${folder}/a/1.json [0] and in ${folder}/b/2.yaml (document 2)`
    assertRefused(await on(service, ['apply', '-f', folder]), 2, both)
    assert.equal(revisionOf(service), 1)
  })

  test('one bad file of a folder is named, and nothing of the others is applied', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'a.yaml': 'type: namespaces\nid: a\n', 'deep/bad.yaml': 'a: [\n' })
    assertRefused(await on(service, ['apply', '-f', folder]), 2, join(folder, 'deep/bad.yaml'))
    assert.equal(revisionOf(service), 1)
  })

  test('files and folders that are missing or empty are refused', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'empty/README.md': 'nothing' })
    assertRefused(
      await on(service, ['apply', '-f', join(folder, 'none.yaml')]),
      2,
      'none.yaml',
      'no such file',
    )
    assertRefused(await on(service, ['apply', '-f', join(folder, 'empty')]), 2, 'empty', '.yaml')
    assertRefused(await on(service, ['apply', '-f', '-']), 2, 'holds no documents')
    assertRefused(await on(service, ['apply']), 2, '--file')
    // An empty set must not prune everything that it held.
    assertRefused(await on(service, ['apply', '-f', join(folder, 'empty'), '--prune']), 2)
    assert.equal(revisionOf(service), 1)
  })

  // To root nothing is closed.
  const uid = process.getuid?.() === 0 ? { uid: 65_534 } : {}

  test('a file that may not be read is refused with its name', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'secret.yaml': 'type: namespaces\nid: x\n' })
    chmodSync(folder, 0o755)
    chmodSync(join(folder, 'secret.yaml'), 0)
    for (const path of [folder, join(folder, 'secret.yaml')]) {
      const { ended } = launch(['apply', '-f', path], { url: service.url, ...uid })
      assertRefused(await ended, 2, 'secret.yaml', 'permission denied')
    }
    assert.equal(revisionOf(service), 1)
  })

  test('a folder that may not be read is refused with its name', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'a.yaml': 'type: namespaces\nid: x\n', 'closed/b.yaml': '' })
    chmodSync(folder, 0o755)
    chmodSync(join(folder, 'closed'), 0)
    const { ended } = launch(['apply', '-f', folder], { url: service.url, ...uid })
    const refused = await ended
    chmodSync(join(folder, 'closed'), 0o755)
    assertRefused(refused, 2, join(folder, 'closed'), 'permission denied')
    assert.equal(revisionOf(service), 1)
  })

  test('text that is not UTF-8 is refused with the name of its file', async (t) => {
    const service = await start(t)
    const folder = files(t, {})
    const text = 'type: namespaces\nid: x\nannotations: {a: Größe}\n'
    writeFileSync(join(folder, 'latin.yaml'), Buffer.from(text, 'latin1'))
    assertRefused(await on(service, ['apply', '-f', join(folder, 'latin.yaml')]), 2, 'latin.yaml', 'UTF-8')
    assert.equal(revisionOf(service), 1)
  })

  test('YAML that grows without end is refused', async (t) => {
    const service = await start(t)
    const lines = [...'bcdefghijklm'].map((name, i) => {
      const before = 'abcdefghijkl'[i]
      return `${name}: &${name} [${Array(9).fill(`*${before}`).join(', ')}]\n`
    })
    const folder = files(t, { 'bomb.yaml': `type: namespaces\nid: x\na: &a [x, x, x]\n${lines.join('')}` })
    assertRefused(await on(service, ['apply', '-f', join(folder, 'bomb.yaml')]), 2, 'bomb.yaml', 'alias')
    assert.equal(revisionOf(service), 1)
  })

  test('what the service refuses is named as the files name it, and nothing of the set is applied', async (t) => {
    const service = await start(t)
    const folder = files(t, {
      'good.yaml': 'type: namespaces\nid: good\n',
      'wrong.yaml': 'type: clusters\nid: two\nenvironment: mars\nbogus: 1\n',
    })
    const refused = await on(service, ['apply', '-f', folder])
    assertRefused(refused, 1, '/environment', 'mars', '/bogus')
    assert.equal(revisionOf(service), 1)
    // Nobody has seen the batch that the files became.
    assert.match(refused.stderr, /wrong\.yaml|clusters\/two/)
  })

  test('a document that refers to nothing is refused with its name', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.yaml': 'type: clusters\nid: two\nnamespaces: [{id: nowhere}]\n' })
    const refused = await on(service, ['apply', '-f', folder])
    assertRefused(refused, 1, 'nowhere')
    assert.equal(revisionOf(service), 1)
    assert.match(refused.stderr, /set\.yaml|clusters\/two/)
  })

  test('a file may have any name', async (t) => {
    const service = await start(t)
    const names = [
      'My fleet (1).prod.yaml',
      'fleet..v2.yaml',
      `${'x'.repeat(80)}.yaml`,
      'Füße.yaml',
      '數據.yaml',
    ]
    for (const name of names) {
      const folder = files(t, { [name]: 'type: namespaces\nid: x\n' })
      await done(service, ['apply', '-f', join(folder, name), '--dry-run'])
    }
  })

  test('a name that no set can have is refused with the flag that gave it', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.yaml': 'type: namespaces\nid: x\n' })
    for (const name of ['Not A Name', '..', '']) {
      assertRefused(await on(service, ['apply', '-f', folder, '--name', name]), 2, '--name')
    }
    assert.equal(revisionOf(service), 1)
  })
})

describe('pruning', CONCURRENTLY, () => {
  test('deletes exactly what the set held before and holds no longer, in the same revision', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set/x.json': namespaces('x', 'y'), 'set/z.json': namespaces('z') })
    await done(service, ['apply', '-f', join(folder, 'set')])
    put(folder, 'set/x.json', namespaces('y', 'new'))
    put(folder, 'set/z.json', namespaces('z'))
    const { stdout } = await done(service, ['apply', '-f', join(folder, 'set'), '--prune'])
    assert.match(stdout, /^namespaces\/x deleted$/m)
    assert.deepEqual(await changesOf(service, 3), [
      'create namespaces/new',
      'delete namespaces/x',
      'update applied_sets/set',
    ])
    assert.deepEqual(await ids(service, 'namespaces'), ['new', 'team-a', 'team-b', 'y', 'z'])
    const { stdout: again } = await done(service, ['apply', '-f', join(folder, 'set'), '--prune'])
    assert.equal(again, 'nothing to change\n')
  })

  test('what left the set while nobody pruned is remembered until somebody does', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': namespaces('x', 'y') })
    const args = ['apply', '-f', join(folder, 'set.json')]
    await done(service, args)
    put(folder, 'set.json', namespaces('y'))
    await done(service, args)
    put(folder, 'set.json', namespaces('y', 'z'))
    await done(service, args)
    assert.deepEqual(await ids(service, 'namespaces'), ['team-a', 'team-b', 'x', 'y', 'z'])
    await done(service, [...args, '--prune'])
    assert.deepEqual(await ids(service, 'namespaces'), ['team-a', 'team-b', 'y', 'z'])
  })

  test('documents of several types go, clusters and what only they used', async (t) => {
    const service = await start(t)
    const small = { namespaces: [{ id: 'x' }], clusters: [cluster('three', { namespaces: [{ id: 'x' }] })] }
    const folder = files(t, {
      'set.json': { ...small, rolebindings: [{ id: 'r', role: 'view', subjects: [] }] },
    })
    await done(service, ['apply', '-f', join(folder, 'set.json')])
    put(folder, 'set.json', { rolebindings: [{ id: 'r' }] })
    const prune = ['apply', '-f', join(folder, 'set.json'), '--prune']
    assertRefused(await on(service, prune), 2, 'would delete cluster three', '--yes')
    await done(service, [...prune, '--yes'])
    assert.deepEqual(await changesOf(service, 3), [
      'delete clusters/three',
      'delete namespaces/x',
      'update applied_sets/set',
    ])
    // Its Flux has to take everything away.
    const poll = await service.call('GET', `${POLLS}/three.k8s.example.com/namespaces`)
    assert.equal(poll.text, '{"inputs":[]}')
  })

  test('a cluster may give way to another one of its DNS name', async (t) => {
    const service = await start(t)
    const { id: _id, ...same } = cluster('old', { namespaces: [{ id: 'team-a' }] })
    const folder = files(t, { 'set.json': { clusters: [cluster('kept'), { id: 'old', ...same }] } })
    const args = ['apply', '-f', join(folder, 'set.json'), '--prune', '--yes']
    await done(service, args)
    put(folder, 'set.json', { clusters: [{ id: 'kept' }, { id: 'new', ...same }] })
    await done(service, args)
    assert.deepEqual(await ids(service, 'clusters'), ['kept', 'new', 'one', 'two'])
    const { body } = await service.call('GET', `${POLLS}/old.k8s.example.com/namespaces`)
    assert.equal(body.inputs.length, 1)
  })

  test('two sets that share nothing but their name never prune each other', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'a/fleet.json': namespaces('x', 'y'), 'b/fleet.json': namespaces('z') })
    await done(service, ['apply', '-f', join(folder, 'a/fleet.json'), '--prune'])
    const other = ['apply', '-f', join(folder, 'b/fleet.json')]
    assertRefused(await on(service, [...other, '--prune']), 2, '"fleet"', '--name')
    assert.equal(revisionOf(service), 2)
    const { stderr } = await done(service, other)
    assert.match(stderr, /"fleet".*--name/)
    assert.deepEqual((await get(service, '/applied_sets/fleet')).documents, { namespaces: ['x', 'y'] })
    await done(service, [...other, '--name', 'other', '--prune'])
    await done(service, ['apply', '-f', join(folder, 'a/fleet.json'), '--prune'])
    assert.deepEqual(await ids(service, 'namespaces'), ['team-a', 'team-b', 'x', 'y', 'z'])
    assert.deepEqual((await get(service, '/applied_sets/other')).documents, { namespaces: ['z'] })
  })

  test('a set from stdin never prunes another one from stdin', async (t) => {
    const service = await start(t)
    await done(service, ['apply', '-f', '-'], { input: JSON.stringify(namespaces('x')) })
    const refused = await on(service, ['apply', '-f', '-', '--prune'], {
      input: JSON.stringify(namespaces('y')),
    })
    assertRefused(refused, 2, '--name')
    assert.equal(revisionOf(service), 2)
  })

  test('a name says that everything in the set may be another', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': namespaces('x') })
    const args = ['apply', '-f', join(folder, 'set.json'), '--name', 'mine', '--prune']
    await done(service, args)
    put(folder, 'set.json', namespaces('y'))
    await done(service, args)
    assert.deepEqual(await ids(service, 'namespaces'), ['team-a', 'team-b', 'y'])
  })

  test('what others have deleted meanwhile is no problem', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': namespaces('x', 'y', 'z') })
    const args = ['apply', '-f', join(folder, 'set.json')]
    await done(service, args)
    await run(service, ['DELETE', '/namespaces/x'])
    put(folder, 'set.json', namespaces('z'))
    await done(service, [...args, '--prune'])
    assert.deepEqual(await ids(service, 'namespaces'), ['team-a', 'team-b', 'z'])
    assert.deepEqual((await get(service, '/applied_sets/set')).documents, { namespaces: ['z'] })
  })

  test('what others have deleted and made anew is theirs', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': namespaces('x', 'y') })
    const args = ['apply', '-f', join(folder, 'set.json')]
    await done(service, args)
    await run(service, ['DELETE', '/namespaces/x'])
    put(folder, 'set.json', namespaces('y', 'z'))
    await done(service, args)
    await run(service, ['POST', '/namespaces', { id: 'x', labels: { owner: 'somebody' } }])
    await done(service, [...args, '--prune'])
    assert.deepEqual(await ids(service, 'namespaces'), ['team-a', 'team-b', 'x', 'y', 'z'])
  })

  test('what is in use keeps the whole set from being applied', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': namespaces('x', 'y') })
    const args = ['apply', '-f', join(folder, 'set.json')]
    await done(service, args)
    await run(service, ['PUT', '/clusters/two/namespaces/x', {}])
    put(folder, 'set.json', namespaces('y', 'new'))
    assertRefused(await on(service, [...args, '--prune']), 1, '"x"', 'in use', 'two')
    assert.equal(revisionOf(service), 3)
    assert.deepEqual((await get(service, '/applied_sets/set')).documents, { namespaces: ['x', 'y'] })
    await run(service, ['DELETE', '/clusters/two/namespaces/x?confirm=removals'])
    await done(service, [...args, '--prune'])
    assert.deepEqual(await ids(service, 'namespaces'), ['new', 'team-a', 'team-b', 'y'])
  })

  test('many clusters are only deleted when that is confirmed', async (t) => {
    const service = await start(t)
    const many = Array.from({ length: 7 }, (_, i) => cluster(`k${i}`))
    const folder = files(t, { 'set.json': { clusters: many } })
    const args = ['apply', '-f', join(folder, 'set.json'), '--yes']
    await done(service, args)
    put(folder, 'set.json', { clusters: many.slice(0, 1) })
    const refused = await on(service, [...args, '--prune'])
    assertRefused(refused, 1, 'deletes 6 clusters', '--confirm removals')
    assert.equal(revisionOf(service), 2)
    await done(service, [...args, '--prune', '--confirm', 'removals'])
    assert.deepEqual(await ids(service, 'clusters'), ['k0', 'one', 'two'])
  })

  test('sets can be listed, shown and forgotten, and what is forgotten is not pruned', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'fleet/set.json': namespaces('x', 'y') })
    const args = ['apply', '-f', join(folder, 'fleet')]
    await done(service, args)
    const { stdout: list } = await done(service, ['applied-set', 'list', '-o', 'name'])
    assert.equal(list, 'applied_sets/fleet\n')
    const { stdout: shown } = await done(service, ['applied-set', 'get', 'fleet', '-o', 'json'])
    const { digest, ...held } = JSON.parse(shown)
    assert.match(digest, /^sha256:[0-9a-f]{64}$/)
    assert.deepEqual(held, { id: 'fleet', documents: { namespaces: ['x', 'y'] } })
    await done(service, ['applied-set', 'delete', 'fleet'])
    assert.deepEqual(await ids(service, 'namespaces'), ['team-a', 'team-b', 'x', 'y'])
    put(folder, 'fleet/set.json', namespaces('y'))
    await done(service, [...args, '--prune'])
    assert.deepEqual(await ids(service, 'namespaces'), ['team-a', 'team-b', 'x', 'y'])
  })

  test('reverting an apply takes back what is remembered too', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': namespaces('x', 'y') })
    const args = ['apply', '-f', join(folder, 'set.json'), '--prune']
    await done(service, args)
    put(folder, 'set.json', namespaces('y', 'z'))
    await done(service, args)
    await done(service, ['revert', '3'])
    assert.deepEqual(await ids(service, 'namespaces'), ['team-a', 'team-b', 'x', 'y'])
    assert.deepEqual((await get(service, '/applied_sets/set')).documents, { namespaces: ['x', 'y'] })
    await done(service, args)
    assert.deepEqual(await ids(service, 'namespaces'), ['team-a', 'team-b', 'y', 'z'])
    await done(service, ['revert', '5'])
    await done(service, ['revert', '2'])
    assert.deepEqual(await ids(service, 'applied_sets'), [])
  })

  test('a document that moved to another set is not deleted', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'left.json': namespaces('x', 'y'), 'right.json': namespaces('z') })
    const apply = (name: string) => done(service, ['apply', '-f', join(folder, name), '--prune'])
    await apply('left.json')
    await apply('right.json')
    put(folder, 'left.json', namespaces('y'))
    put(folder, 'right.json', namespaces('x', 'z'))
    await apply('right.json')
    await apply('left.json')
    assert.deepEqual(await ids(service, 'namespaces'), ['team-a', 'team-b', 'x', 'y', 'z'])
  })

  test('what somebody else adds to the set at the same time is remembered as well', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'a.json': namespaces('x'), 'b.json': namespaces('x', 'y') })
    await done(service, ['apply', '-f', join(folder, 'a.json'), '--name', 'set'])
    const front = await standBefore(t, service, {
      before: beforeFirstWrite(() => done(service, ['apply', '-f', join(folder, 'b.json'), '--name', 'set'])),
    })
    put(folder, 'a.json', namespaces('x', 'z'))
    await done(front, ['apply', '-f', join(folder, 'a.json'), '--name', 'set'])
    assert.deepEqual((await get(service, '/applied_sets/set')).documents, { namespaces: ['x', 'y', 'z'] })
  })
})

describe('how an apply is made', CONCURRENTLY, () => {
  test('a dry run shows everything, stores nothing and remembers nothing', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': { ...namespaces('x'), clusters: [{ id: 'two', node_count: 3 }] } })
    const args = ['apply', '-f', join(folder, 'set.json'), '--dry-run']
    const { stdout } = await done(service, args)
    assert.match(stdout, /^\+ namespaces\/x$/m)
    assert.match(stdout, /^~ clusters\/two$\n.*node_count: \(none\) → 3$/m)
    assert.match(stdout, /^Plan: sha256:[0-9a-f]{64}$/m)
    assert.equal(revisionOf(service), 1)
    assert.deepEqual(await ids(service, 'applied_sets'), [])
  })

  test('a plan is done exactly, or not at all', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': { clusters: [{ id: 'two', namespaces: [{ id: 'team-a' }] }] } })
    const args = ['apply', '-f', join(folder, 'set.json')]
    const planned = async () => JSON.parse((await done(service, [...args, '--dry-run', '-o', 'json'])).stdout)
    const { plan } = await planned()
    await run(service, ['PATCH', '/clusters/two', { node_count: 9 }])
    assertRefused(await on(service, [...args, '--plan', plan]), 1, '--dry-run')
    assert.equal(revisionOf(service), 2)
    await done(service, [...args, '--plan', (await planned()).plan])
    assert.deepEqual((await get(service, '/clusters/two')).namespaces, [{ id: 'team-a' }])
    assertRefused(await on(service, [...args, '--plan', 'what']), 2, '--plan')
  })

  test('its message is kept with the revision', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': namespaces('x') })
    await done(service, ['apply', '-f', folder, '-m', 'Größe: "42" → 43\nsecond line'])
    assert.equal((await get(service, '/revisions/2')).message, 'Größe: "42" → 43 second line')
  })

  test('programs get the answer of the service', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': namespaces('x', 'team-a') })
    const args = ['apply', '-f', join(folder, 'set.json'), '-o']
    const { stdout: json } = await done(service, [...args, 'json'])
    const { revision, changes, impact, warnings, plan } = JSON.parse(json)
    assert.deepEqual(
      [revision, changes, impact.clusters, warnings, plan.slice(0, 7)],
      [2, 2, 0, [], 'sha256:'],
    )
    const { stdout: yaml } = await done(service, [...args, 'yaml'])
    assert.equal(parse(yaml).changes, 0)
  })

  test('names are those of documents that files can hold', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': namespaces('x', 'y') })
    const args = ['apply', '-f', join(folder, 'set.json'), '-o', 'name']
    assert.equal((await done(service, args)).stdout, 'namespaces/x\nnamespaces/y\n')
  })

  test('on a terminal somebody is asked before several clusters are touched', async (t) => {
    const service = await start(t)
    const folder = files(t, {
      'two.json': { clusters: ['one', 'two'].map((id) => ({ id, namespaces: [{ id: 'team-b' }] })) },
      'one.json': { clusters: [{ id: 'two', node_count: 1 }] },
    })
    const args = ['apply', '-f', join(folder, 'two.json')]
    const { url } = service
    const no = await onTerminal(args, { url, typing: [['go on: ', 'no\r']] })
    assert.equal(no.code, 4, no.screen)
    assert.match(no.screen, /~ clusters\/one/)
    assert.match(no.screen, /~ clusters\/two/)
    assert.match(no.screen, /Remove team-a from one and change 1 other on http:\S+\?/)
    assert.match(no.screen, /nothing was changed/)
    assert.equal(revisionOf(service), 1)
    const single = await onTerminal(['apply', '-f', join(folder, 'one.json')], { url })
    assert.equal(single.code, 0, single.screen)
    assert.doesNotMatch(single.screen, /go on/)
    const yes = await onTerminal(args, { url, typing: [['go on: ', 'yes\r']] })
    assert.equal(yes.code, 0, yes.screen)
    assert.deepEqual((await get(service, '/clusters/one')).namespaces, [{ id: 'team-b' }])
    await run(service, ['POST', '/revisions/3/revert?confirm=removals'])
    const sure = await onTerminal([...args, '--yes'], { url })
    assert.equal(sure.code, 0, sure.screen)
    assert.doesNotMatch(sure.screen, /go on/)
    assert.equal(revisionOf(service), 5)
  })

  test('on a terminal clusters that go have to be counted', async (t) => {
    const service = await start(t)
    const many = Array.from({ length: 7 }, (_, i) => cluster(`k${i}`))
    const folder = files(t, { 'set.json': { clusters: many } })
    const args = ['apply', '-f', join(folder, 'set.json')]
    await done(service, [...args, '--yes'])
    put(folder, 'set.json', { clusters: many.slice(0, 1) })
    const { url } = service
    for (const typed of ['yes', 'removals', '7']) {
      const no = await onTerminal([...args, '--prune'], { url, typing: [['go on: ', `${typed}\r`]] })
      assert.equal(no.code, 4, no.screen)
    }
    assert.equal(revisionOf(service), 2)
    // What was agreed to passes the brake, too.
    const six = await onTerminal([...args, '--prune'], { url, typing: [['"6" to go on: ', '6\r']] })
    assert.equal(six.code, 0, six.screen)
    assert.match(six.screen, /Delete 6 clusters on http:\S+\?/)
    assert.deepEqual(await ids(service, 'clusters'), ['k0', 'one', 'two'])
  })

  test('no bar is drawn over the question while somebody thinks about it', async (t) => {
    const service = await start(t)
    const folder = files(t, {
      'two.json': { clusters: ['one', 'two'].map((id) => ({ id, labels: { wave: '1' } })) },
    })
    const { code, screen } = await onTerminal(['apply', '-f', join(folder, 'two.json')], {
      url: service.url,
      typing: [['go on: ', 'yes\r', 1000]],
    })
    assert.equal(code, 0, screen)
    const [, sinceAsked = ''] = screen.split('Change 2 clusters on ')
    assert.match(sinceAsked, /^http:\S+\sType "yes" to go on: /)
    assert.doesNotMatch(sinceAsked, /Applying/)
  })
})

describe('diff', CONCURRENTLY, () => {
  test('of what is so is empty and exits with 0', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': smallFleet() })
    const args = ['diff', '-f', join(folder, 'set.json')]
    // Whether the set was ever applied is no difference.
    assert.deepEqual(await on(service, args), { code: 0, stdout: '', stderr: '' })
    await done(service, ['apply', '-f', join(folder, 'set.json')])
    assert.deepEqual(await on(service, args), { code: 0, stdout: '', stderr: '' })
    assert.deepEqual(await on(service, [...args, '--prune']), { code: 0, stdout: '', stderr: '' })
    assert.deepEqual(await on(service, [...args, '-o', 'name']), { code: 0, stdout: '', stderr: '' })
  })

  test('right after an apply there is none', async (t) => {
    const service = await start(t, { fleet: {} })
    await done(service, ['apply', '-f', SEED, '--yes'])
    assert.deepEqual(await on(service, ['diff', '-f', SEED, '--prune']), { code: 0, stdout: '', stderr: '' })
  })

  test('of something else shows it, exits with 4 and changes nothing', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': namespaces('x', 'y') })
    await done(service, ['apply', '-f', join(folder, 'set.json')])
    const sets = await get(service, '/applied_sets')
    put(folder, 'set.json', {
      namespaces: [{ id: 'y', labels: { a: '1' } }, { id: 'z' }],
      clusters: [{ id: 'two', namespaces: [{ id: 'z' }] }],
    })
    const args = ['diff', '-f', join(folder, 'set.json')]
    const plain = await on(service, args)
    assert.equal(plain.code, 4)
    assert.match(plain.stdout, /^\+ namespaces\/z$/m)
    assert.match(plain.stdout, /^~ namespaces\/y$\n.*\/labels\/a: \(none\) → "1"$/m)
    assert.match(plain.stdout, /^~ clusters\/two$/m)
    assert.match(plain.stdout, /^1 cluster receives something else: prod 1 — 1 gets z \(new\)$/m)
    assert.doesNotMatch(plain.stdout, /namespaces\/x|applied_sets/)
    assert.equal(plain.stderr, '')
    const pruning = await on(service, [...args, '--prune'])
    assert.equal(pruning.code, 4)
    assert.match(pruning.stdout, /^- namespaces\/x$/m)
    assert.equal(revisionOf(service), 2)
    assert.deepEqual(await get(service, '/applied_sets'), sets)
  })

  test('of what the service refuses names the file and the document, as apply does', async (t) => {
    const service = await start(t)
    const document = { type: 'clusters', ...cluster('new', { environment: 'prd' }) }
    const folder = files(t, { 'clusters/c.json': document })
    const said = `${join(folder, 'clusters/c.json')}: clusters/new /environment must be one of`
    assertRefused(await on(service, ['diff', '-f', folder]), 1, said)
    assertRefused(await on(service, ['apply', '-f', folder, '--dry-run']), 1, said)
  })

  test('for programs is the preview of the service', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': { clusters: [{ id: 'two', node_count: 3 }] } })
    const result = await on(service, ['diff', '-f', join(folder, 'set.json'), '-o', 'json'])
    assert.equal(result.code, 4)
    const found = JSON.parse(result.stdout)
    const { after } = found.changes.find(({ type }: { type: string }) => type === 'applied_sets')
    assert.deepEqual(after.documents, { clusters: ['two'] })
    const { body } = await service.call('POST', '/batch?dry_run=true', {
      body: {
        operations: [
          { op: 'patch', type: 'clusters', id: 'two', patch: { node_count: 3 } },
          { op: 'create', type: 'applied_sets', document: after },
        ],
      },
    })
    assert.deepEqual(found, body)
    assert.equal(revisionOf(service), 1)
  })

  test('counts no more documents than there are, however many', async (t) => {
    const service = await start(t, { fleet: {} })
    const folder = files(t, { 'set.json': namespaces(...Array.from({ length: 1200 }, (_, i) => `n${i}`)) })
    const { code, stdout } = await on(service, ['diff', '-f', join(folder, 'set.json')])
    assert.equal(code, 4)
    // Those that are shown, those of the same line, and the rest.
    const [, others] = /^\+ namespaces\/(?:n\d+, ){7}n\d+ and ([\d,]+) others$/m.exec(stdout) ?? []
    const [, rest] = /^… and ([\d,]+) more documents?$/m.exec(stdout) ?? []
    assert.equal(8 + Number(others) + Number(rest), 1200, stdout)
  })
})

describe('export', CONCURRENTLY, () => {
  test('applied to an empty service gives an equal fleet, whatever the fleet', async () => {
    await fc.assert(
      fc.asyncProperty(commands, fc.constantFrom('yaml', 'json'), async (work, format) => {
        const store = openMemoryStore()
        const engine = await startRandom(store)
        for (const command of work) {
          const done = await engine.write([command], AUTHOR)
          // A cluster may be restored with patches that no longer fit, with a warning; a new one may not have them.
          fc.pre(!done.ok || !done.value.warnings.some((warning) => warning.includes('do not fit it')))
        }
        const [source, copy] = await Promise.all([
          startService({ store, types }),
          startService({ fleet: {}, types }),
        ])
        try {
          const { stdout } = await done(source, ['export', '-o', format])
          if (parseAllDocuments(stdout).length > 0)
            await done(copy, ['apply', '-f', '-', '--yes'], { input: stdout })
          assert.deepEqual(await documentsOf(copy), await documentsOf(source))
          assert.deepEqual(await pollsOf(copy), await pollsOf(source))
          const diff = await on(source, ['diff', '-f', '-'], { input: stdout })
          assert.deepEqual(diff, { code: 0, stdout: '', stderr: '' })
        } finally {
          await Promise.all([source.stop(), copy.stop(), engine.stop()])
        }
      }),
      { numRuns: 8, endOnFailure: true },
    )
  })

  test('keeps every text as it is', async (t) => {
    const texts = [
      'yes',
      '1.10',
      '0x1f',
      '~',
      ' a ',
      '',
      '\n',
      ' \n',
      'a\n\n',
      'a: b # c',
      '---\n',
      '\ta\r\n',
      '🧵\u2028',
    ]
    const annotations = Object.fromEntries(texts.map((text, i) => [`t${i}`, text]))
    const service = await start(t, { fleet: { namespaces: [{ id: 'x', annotations }] } })
    const copy = await start(t, { fleet: {} })
    const { stdout } = await done(service, ['export'])
    await done(copy, ['apply', '-f', '-', '--yes'], { input: stdout })
    assert.deepEqual((await get(copy, '/namespaces/x')).annotations, annotations)
  })

  test('has definitions first, clusters last, and nothing that tools keep for themselves', async (t) => {
    const service = await start(t)
    await done(service, ['apply', '-f', '-'], { input: JSON.stringify(namespaces('x')) })
    await run(service, ['DELETE', '/clusters/two'])
    const names = [
      'namespaces/team-a',
      'namespaces/team-b',
      'namespaces/x',
      'platform_components/a',
      'platform_components/b',
      'platform_components/c',
      'rolebindings/admins',
      'clusters/one',
    ]
    const { stdout } = await done(service, ['export', '-o', 'name'])
    assert.deepEqual(stdout.trimEnd().split('\n'), names)
    const { stdout: yaml } = await done(service, ['export'])
    const documents = parseAllDocuments(yaml) as { toJS(): { type: string; id: string } }[]
    assert.deepEqual(
      documents.map((document) => document.toJS()).map(({ type, id }) => `${type}/${id}`),
      names,
    )
    assertRefused(await on(service, ['export', '-o', 'jsonpath={.id}']), 2, 'yaml')
  })

  test('of some clusters holds them and all that they use, by any way', async (t) => {
    const service = await start(t)
    await run(
      service,
      ['PATCH', '/clusters/two', { platform_components: [{ id: 'c', enabled: false }] }],
      ['POST', '/clusters', cluster('three', { environment: 'qa' })],
    )
    const { stdout } = await done(service, ['export', '--selector', 'environment=prod', '-o', 'json'])
    const copy = await start(t, { fleet: {} })
    await done(copy, ['apply', '-f', '-', '--yes'], { input: stdout })
    assert.deepEqual(await ids(copy, 'clusters'), ['two'])
    // Component c needs b, and b needs a.
    assert.deepEqual(await ids(copy, 'platform_components'), ['a', 'b', 'c'])
    assert.deepEqual(await ids(copy, 'namespaces'), [])
    assert.deepEqual(await ids(copy, 'rolebindings'), [])
    const poll = `${POLLS}/two.k8s.example.com/platform-components`
    assert.equal((await copy.call('GET', poll)).text, (await service.call('GET', poll)).text)
    assertRefused(await on(service, ['export', '--selector', 'environment in (']), 1, 'selector')
  })

  test('is of one moment while somebody writes', async (t) => {
    const service = await start(t)
    const before = (await done(service, ['export', '-o', 'json'])).stdout
    let writes = 0
    const front = await standBefore(t, service, {
      // Between any two of its requests, something is added and something goes.
      after: async ({ url = '' }) => {
        if (url.startsWith('/openapi')) return
        writes++
        await run(
          service,
          ['POST', '/namespaces', { id: `added-${writes}` }],
          ['PATCH', '/clusters/one', { node_count: writes }],
          ['POST', '/clusters', cluster(`added-${writes}`, { namespaces: [{ id: `added-${writes}` }] })],
        )
      },
    })
    const { stdout } = await done(front, ['export', '-o', 'json'])
    assert.ok(writes > 3)
    assert.equal(stdout, before)
  })

  test('can be of an earlier moment', async (t) => {
    const service = await start(t)
    const before = (await done(service, ['export'])).stdout
    await run(service, ['DELETE', '/clusters/two'], ['PATCH', '/namespaces/team-a', { labels: {} }])
    assert.equal((await done(service, ['export', '--at', '1'])).stdout, before)
    assertRefused(await on(service, ['export', '--at', '99']), 1, '99')
  })

  test('takes moments as other commands do', async (t) => {
    let late = 7_200_000
    const service = await start(t, { now: () => new Date(Date.now() - late) })
    late = 0
    const { stdout } = await done(service, ['export', '--at', '1h', '-o', 'name'])
    assert.match(stdout, /clusters\/two/)
  })

  test('misses no type that the service has only learned since', async (t) => {
    const policies = { network_policies: [{ id: 'p', target_namespace: 'n' }] }
    const [before, since] = await Promise.all([
      start(t),
      start(t, { types: builtInTypes(POLICIES), fleet: { ...smallFleet(), ...policies } }),
    ])
    const front = await standBefore(t, before)
    const env = { XDG_CACHE_HOME: temporaryFolder(t) }
    await done(front, ['export'], { env })
    front.leadTo(since)
    const { stdout } = await done(front, ['export', '-o', 'name'], { env })
    assert.match(stdout, /network_policies\/p/)
  })
})

describe('large sets', CONCURRENTLY, () => {
  test('thousands of documents are one revision', async (t) => {
    const service = await start(t, { fleet: {} })
    const numbers = Array.from({ length: 5100 }, (_, i) => i)
    const fleet = {
      ...namespaces(...numbers.map((i) => `n${i}`)),
      clusters: numbers.slice(0, 100).map((i) => cluster(`k${i}`, { namespaces: [{ id: `n${i}` }] })),
    }
    const folder = files(t, { 'fleet.json': fleet })
    const args = ['apply', '-f', join(folder, 'fleet.json'), '--yes']
    const { stdout } = await done(service, args)
    assert.equal(revisionOf(service), 1)
    assert.equal((await service.call('GET', '/clusters?limit=0')).headers['x-total-count'], '100')
    assert.ok(stdout.split('\n').length < 1010, 'nobody reads more')
    assert.match(stdout, /^… and 4,20\d more documents$/m)
    assert.equal((await done(service, args)).stdout, 'nothing to change\n')
    const { stdout: names } = await done(service, ['export', '-o', 'name'])
    assert.equal(new Set(names.trimEnd().split('\n')).size, 5200)
  })

  test('programs get the names of everything that changed, however much', async (t) => {
    const service = await start(t, { fleet: {} })
    const folder = files(t, { 'set.json': namespaces(...Array.from({ length: 1500 }, (_, i) => `n${i}`)) })
    const { stdout } = await done(service, ['apply', '-f', join(folder, 'set.json'), '-o', 'name'])
    assert.equal(stdout.split('\n').filter((line) => line.startsWith('namespaces/')).length, 1500)
  })

  test('what is too large for one revision is refused, and done in several when that is wanted', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'fleet.json': tooLarge('x', 'goes') })
    const args = ['apply', '-f', join(folder, 'fleet.json')]
    assertRefused(await on(service, args), 2, '30 MiB', '--split')
    assertRefused(await on(service, [...args, '--split', '--dry-run']), 2, '--dry-run')
    assertRefused(await on(service, [...args, '--split']), 2, 'without a preview', '--yes')
    assert.equal(revisionOf(service), 1)
    await done(service, [...args, '--split', '--yes', '-m', 'all of it'])
    assert.equal(revisionOf(service), 3)
    assert.equal((await get(service, '/revisions/2')).message, 'all of it (part 1 of 2)')
    const clustersIn = async (revision: number) =>
      (await changesOf(service, revision)).filter((change) => change.includes(' clusters/'))
    assert.deepEqual(await clustersIn(2), [])
    assert.deepEqual(await clustersIn(3), ['create clusters/k0', 'create clusters/k1'])
    assert.equal((await done(service, [...args, '--split'])).stdout, 'nothing to change\n')

    await run(service, ['PUT', '/clusters/two/namespaces/goes', {}])
    put(folder, 'fleet.json', tooLarge('y'))
    const refused = await on(service, [...args, '--split', '--prune', '--yes'])
    assertRefused(refused, 1, 'in use')
    await run(service, ['DELETE', '/clusters/two/namespaces/goes?confirm=removals'])
    await done(service, [...args, '--split', '--prune', '--yes'])
    assert.deepEqual(
      {
        'it was told what had been stored': /revision 5/.test(refused.stderr),
        'it was not forgotten what has to go': !(await ids(service, 'namespaces')).includes('goes'),
      },
      { 'it was told what had been stored': true, 'it was not forgotten what has to go': true },
    )
  })

  test('somebody at a terminal is asked before a large set touches several clusters, too', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'fleet.json': tooLarge('x') })
    const args = ['apply', '-f', join(folder, 'fleet.json'), '--split']
    const { code, screen } = await onTerminal(args, { url: service.url, typing: [['go on: ', 'no\r']] })
    assert.equal(code, 4, screen.slice(0, 200))
    assert.equal(revisionOf(service), 1)
  })
})

/** Definitions that nearly fill a revision, and clusters that no longer fit in. */
function tooLarge(letter: string, ...more: readonly string[]) {
  // Each of them is nearly as large as one may be.
  const text = letter.repeat(1020 * 1024)
  const subjects = [{ kind: 'Group', name: text }]
  return {
    clusters: ['k0', 'k1'].map((id) => cluster(id, { vm_image: text, namespaces: [{ id: 'n0' }] })),
    namespaces: [{ id: 'n0', labels: { letter } }, ...more.map((id) => ({ id }))],
    rolebindings: Array.from({ length: 30 }, (_, i) => ({ id: `r${i + 1}`, role: 'view', subjects })),
  }
}

describe('long work', CONCURRENTLY, () => {
  test('shows how far it is on a terminal, and nowhere else', async (t) => {
    const service = await start(t, { fleet: namespaces(...Array.from({ length: 30 }, (_, i) => `n${i}`)) })
    const front = await standBefore(t, service, {
      before: ({ url = '' }) => (url.startsWith('/namespaces') ? sleep(500) : undefined),
    })
    const folder = files(t, { 'set.json': namespaces(...Array.from({ length: 30 }, (_, i) => `n${i}`)) })
    const args = ['apply', '-f', join(folder, 'set.json')]
    const shown = await onTerminal(args, { url: front.url })
    assert.equal(shown.code, 0, shown.screen)
    assert.match(shown.screen, /Reading namespaces \[=+ *\] 30\/30/)
    // Gone when it is over.
    assert.ok(shown.screen.includes('30/30\r\u001b[K'))
    const quiet = await onTerminal([...args, '--quiet'], { url: front.url })
    assert.doesNotMatch(quiet.screen, /\[=/)
    const piped = await done(front, args)
    assert.deepEqual([piped.stdout, piped.stderr], ['nothing to change\n', ''])
  })

  test('that is interrupted is done wholly or not at all', async (t) => {
    const numbers = Array.from({ length: 2000 }, (_, i) => `n${i}`)
    const folder = files(t, { 'set.json': namespaces(...numbers) })
    const args = ['apply', '-f', join(folder, 'set.json'), '--yes']
    for (const delay of [60, 110, 140, 170, 200, 240]) {
      const service = await start(t, { fleet: {} })
      const { child, ended } = launch(args, { url: service.url })
      await sleep(delay)
      child.kill('SIGINT')
      await ended
      await sleep(150)
      const total = (await service.call('GET', '/namespaces?limit=0')).headers['x-total-count']
      const sets = await ids(service, 'applied_sets')
      assert.deepEqual([total, sets], revisionOf(service) === 0 ? ['0', []] : ['2000', ['set']])
    }
  })

  test('that is interrupted on its way says that it may have been done', async (t) => {
    const folder = files(t, { 'set.json': namespaces('x') })
    const service = await start(t)
    let interrupt = (): void => {}
    const front = await standBefore(t, service, {
      after: async ({ url = '' }) => {
        if (!url.startsWith('/batch')) return
        interrupt()
        await sleep(300)
      },
    })
    const { child, ended } = launch(['apply', '-f', folder, '--name', 'set', '--yes'], { url: front.url })
    interrupt = () => child.kill('SIGINT')
    const { code, stderr } = await ended
    assert.equal(code, 130)
    assert.match(stderr, /wholly or not at all/)
    assert.deepEqual(await changesOf(service, 2), ['create applied_sets/set', 'create namespaces/x'])
  })
})

describe('at the same time as others', CONCURRENTLY, () => {
  test('sets are applied all of them', async (t) => {
    const service = await start(t)
    const names = ['a', 'b', 'c', 'd']
    const folder = files(
      t,
      Object.fromEntries(names.map((name) => [`${name}.json`, namespaces(`${name}1`, `${name}2`)])),
    )
    await Promise.all(
      names.map((name) => done(service, ['apply', '-f', join(folder, `${name}.json`), '--prune'])),
    )
    assert.equal(revisionOf(service), 5)
    assert.deepEqual(await ids(service, 'applied_sets'), names)
    assert.equal((await ids(service, 'namespaces')).length, 10)
  })

  test('the same set may be applied twice', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': namespaces('x', 'y') })
    await Promise.all(
      [1, 2, 3].map(() => done(service, ['apply', '-f', join(folder, 'set.json'), '--prune'])),
    )
    assert.deepEqual((await get(service, '/applied_sets/set')).documents, { namespaces: ['x', 'y'] })
    assert.equal(revisionOf(service), 2)
  })

  const races: Record<string, (service: TestService) => Promise<unknown>> = {
    'creates one of the documents': (service) =>
      run(service, ['POST', '/namespaces', { id: 'x', labels: { a: '1' } }]),
    'deletes one of the documents': (service) => run(service, ['DELETE', '/namespaces/y']),
    'deletes what is to be pruned': (service) => run(service, ['DELETE', '/namespaces/z']),
  }
  for (const [what, happens] of Object.entries(races)) {
    test(`somebody ${what}, and the set is applied all the same`, async (t) => {
      const service = await start(t)
      const folder = files(t, { 'set.json': namespaces('y', 'z') })
      await done(service, ['apply', '-f', join(folder, 'set.json')])
      const front = await standBefore(t, service, { before: beforeFirstWrite(() => happens(service)) })
      put(folder, 'set.json', { namespaces: ['x', 'y'].map((id) => ({ id, labels: { a: '2' } })) })
      await done(front, ['apply', '-f', join(folder, 'set.json'), '--prune', '--overwrite'])
      assert.deepEqual(await ids(service, 'namespaces'), ['team-a', 'team-b', 'x', 'y'])
      assert.deepEqual((await get(service, '/namespaces/x')).labels, { a: '2' })
      assert.deepEqual((await get(service, '/namespaces/y')).labels, { a: '2' })
    })
  }

  test('somebody creates one of the documents, and a set from stdin is applied all the same', async (t) => {
    const service = await start(t)
    const front = await standBefore(t, service, {
      before: beforeFirstWrite(() => run(service, ['POST', '/namespaces', { id: 'x' }])),
    })
    const input = JSON.stringify({ namespaces: [{ id: 'x', labels: { a: '1' } }] })
    await done(front, ['apply', '-f', '-'], { input })
    assert.deepEqual((await get(service, '/namespaces/x')).labels, { a: '1' })
  })

  test('an answer that got lost is asked for again, and the set is applied once', async (t) => {
    const service = await start(t)
    let lost = false
    const front = await standBefore(t, service, {
      after: ({ url = '' }) => {
        if (lost || !url.startsWith('/batch')) return
        lost = true
        throw new Error('the connection breaks')
      },
    })
    const folder = files(t, { 'set.json': namespaces('x') })
    const { stdout } = await done(front, ['apply', '-f', join(folder, 'set.json')])
    assert.equal(
      stdout,
      'namespaces/x created\napply: 1 document changed (revision 2)\nno cluster receives anything else\n',
    )
    assert.ok(lost)
    assert.equal(revisionOf(service), 2)
  })

  test('only a token for writing applies', async (t) => {
    const service = await start(t)
    const folder = files(t, { 'set.json': namespaces('x') })
    const env = { FLUX_API_WRITE_TOKEN: READ_TOKEN }
    assertRefused(await on(service, ['apply', '-f', folder], { env }), 1, 'FLUX_API_WRITE_TOKEN')
    assert.equal(revisionOf(service), 1)
  })
})
