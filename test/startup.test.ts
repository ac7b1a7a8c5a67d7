import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import { failToStart, smallFleet, spawnService, temporaryFolder } from './service.ts'

const TOKENS = { AUTH_TOKEN: 'hush-hush-read', CRUD_AUTH_TOKEN: 'hush-hush-write' }
const LOOPBACK = { LISTEN_ADDR: '127.0.0.1:0' }

function databaseIn(folder: string): { path: string; DATABASE_URL: string } {
  const path = join(folder, 'fleet.db')
  return { path, DATABASE_URL: `sqlite://${path}` }
}

/** Starts with bad settings; answers the problems on stderr, which hold no stack and no token. */
async function refusal(env: Record<string, string>, exitCode = 2): Promise<string[]> {
  const { code, stderr } = await failToStart({ ...TOKENS, ...LOOPBACK, LOG_LEVEL: 'silent', ...env })
  assert.equal(code, exitCode, stderr)
  assert.doesNotMatch(stderr, /hush/)
  assert.doesNotMatch(stderr, /\n\s+at |\bError:/)
  const [before, ...problems] = stderr.trimEnd().split(/^flux-resourceset: /m)
  assert.equal(before, '', 'every problem is said by the program')
  return problems
}

async function headOf(path: string): Promise<number> {
  const store = openSqliteStore({ path, mode: 'rw', write: false })
  const { revision: head } = await store.head()
  await store.close()
  return head
}

function writeJson(folder: string, name: string, content: unknown): string {
  const path = join(folder, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

test('a selector of unobserved clusters that is none is told', async () => {
  for (const [selector, message] of [
    ['airgap in (', /^UNOBSERVED_SELECTOR .* \(at position/],
    ['contact=offline', /^UNOBSERVED_SELECTOR holds "contact": the status of clusters changes by itself/],
  ] as const) {
    const [line = ''] = await refusal({ UNOBSERVED_SELECTOR: selector, STORE_BACKEND: 'memory' })
    assert.match(line, message)
  }
})

test('all problems with the settings are told at once', async () => {
  const lines = await refusal({
    AUTH_TOKEN: 'hush hush',
    API_MODE: 'write',
    STORE_BACKEND: 'floppy',
    LISTEN_ADDR: 'nowhere',
    LOG_LEVEL: 'loud',
    SHUTDOWN_DELAY_SECONDS: 'soon',
  })
  const names = lines.map((line) => /^[A-Z_]+/.exec(line)?.[0])
  assert.deepEqual(names.sort(), [
    'API_MODE',
    'AUTH_TOKEN',
    'LISTEN_ADDR',
    'LOG_LEVEL',
    'SHUTDOWN_DELAY_SECONDS',
    'STORE_BACKEND',
  ])
})

test('without a token nothing starts', async () => {
  const [line = '', ...more] = await refusal({ AUTH_TOKEN: '' })
  assert.match(line, /AUTH_TOKEN is required/)
  assert.deepEqual(more, [])
})

for (const mode of ['crud', 'read-only']) {
  test(`a ${mode} service without its seed file does not start`, async (t) => {
    const folder = temporaryFolder(t)
    const SEED_FILE = join(folder, 'missing.json')
    const [line = '', ...more] = await refusal({ ...databaseIn(folder), API_MODE: mode, SEED_FILE })
    assert.ok(line.includes('SEED_FILE') && line.includes(SEED_FILE), line)
    assert.deepEqual(more, [])
  })
}

test('a seed file that is not JSON is refused, naming the file', async (t) => {
  const folder = temporaryFolder(t)
  const SEED_FILE = writeJson(folder, 'seed.json', '{"clusters": [')
  const [line = ''] = await refusal({ ...databaseIn(folder), SEED_FILE })
  assert.ok(line.includes(SEED_FILE), line)
})

for (const backend of ['sqlite', 'memory']) {
  test(`a seed file with broken references is refused whole by a ${backend} store, each problem with its place`, async (t) => {
    const folder = temporaryFolder(t)
    const { path, DATABASE_URL } = databaseIn(folder)
    const fleet = smallFleet()
    fleet.platform_components[0]?.depends_on.push('phantom')
    fleet.clusters[0]?.namespaces?.push({ id: 'ghost' })
    const SEED_FILE = writeJson(folder, 'seed.json', fleet)
    const lines = await refusal({ STORE_BACKEND: backend, DATABASE_URL, API_MODE: 'crud', SEED_FILE })
    assert.equal(lines.length, 2)
    assert.ok(lines.every((line) => line.includes(SEED_FILE)))
    assert.ok(lines.some((line) => line.includes('/platform_components/0/depends_on/0')))
    assert.ok(lines.some((line) => line.includes('/clusters/0/namespaces/1/id')))
    if (backend === 'sqlite') assert.equal(await headOf(path), 0)
  })
}

test('a service that was refused for its seed starts once the seed is mended', async (t) => {
  const folder = temporaryFolder(t)
  const { path, DATABASE_URL } = databaseIn(folder)
  const broken = writeJson(folder, 'broken.json', { clusters: [{ id: 'one' }] })
  await refusal({ DATABASE_URL, SEED_FILE: broken })
  const SEED_FILE = writeJson(folder, 'seed.json', smallFleet())
  const service = await spawnService({ DATABASE_URL, SEED_FILE })
  t.after(() => service.stop('SIGKILL'))
  const poll = await service.call('GET', '/api/v2/flux/clusters/one.k8s.example.com/namespaces')
  assert.equal(poll.status, 200)
  assert.equal(await service.stop(), 0)
  assert.equal(await headOf(path), 1)
})

function resourcesWith(t: TestContext, name: string, content: string): { folder: string; path: string } {
  const folder = temporaryFolder(t)
  const path = join(folder, name)
  writeFileSync(path, content)
  return { folder, path }
}

test('a resource file that is not YAML is refused, naming the file', async (t) => {
  const { folder, path } = resourcesWith(t, 'broken.yaml', 'kind: [gadgets')
  const lines = await refusal({ STORE_BACKEND: 'memory', RESOURCES_DIR: folder })
  assert.ok(lines[0]?.includes(path), lines.join('\n'))
})

test('a resource file that says too much or too little is refused, each problem with its place', async (t) => {
  const { folder, path } = resourcesWith(t, 'gadget.yaml', 'kind: gadgets\nsize: large\n')
  const lines = await refusal({ STORE_BACKEND: 'memory', RESOURCES_DIR: folder })
  assert.ok(lines.every((line) => line.includes(path)))
  assert.ok(lines.some((line) => line.includes('apiVersion')))
  assert.ok(lines.some((line) => line.includes('size')))
  assert.ok(lines.some((line) => /'schema'/.test(line)))
})

test('a resource file that does not fit the others is refused', async (t) => {
  const gadget = `
kind: gadgets
apiVersion: v1
schema:
  type: array
  key: { name: id }
  x-flux: { endpoint: namespaces, assigned_by: gadgets, input: [colour] }
  items: { type: object, properties: { size: { type: string } } }
`
  const { folder } = resourcesWith(t, 'gadget.yaml', gadget)
  const lines = await refusal({ STORE_BACKEND: 'memory', RESOURCES_DIR: folder })
  assert.ok(lines.some((line) => /gadget\.yaml: .*"colour"/.test(line)))
  assert.ok(lines.some((line) => /gadget\.yaml: .*endpoint "namespaces"/.test(line)))
})

test('a folder of resources that is not there is refused', async (t) => {
  const RESOURCES_DIR = join(temporaryFolder(t), 'missing')
  const [line = ''] = await refusal({ STORE_BACKEND: 'memory', RESOURCES_DIR })
  assert.ok(line.includes(RESOURCES_DIR), line)
})

test('a database that may not be made and is not there is refused, and its folder stays away', async (t) => {
  const folder = join(temporaryFolder(t), 'missing')
  for (const mode of ['crud', 'read-only']) {
    const { path, DATABASE_URL } = databaseIn(folder)
    const [line = ''] = await refusal({ DATABASE_URL: `${DATABASE_URL}?mode=rw`, API_MODE: mode })
    assert.ok(line.includes(path), line)
    assert.match(line, /no such file/)
  }
  assert.ok(!existsSync(folder))
})

test('a database whose folder cannot be made is refused', async (t) => {
  const folder = temporaryFolder(t)
  const blocked = writeJson(folder, 'a-file', 'not a folder')
  const { path, DATABASE_URL } = databaseIn(join(blocked, 'below'))
  const [line = ''] = await refusal({ DATABASE_URL, API_MODE: 'crud' })
  assert.ok(line.includes(path), line)
})

test('a database in a folder that takes no new files is refused', async () => {
  // The kernel's own folder takes files from nobody, not even from root.
  const { path, DATABASE_URL } = databaseIn('/proc')
  const [line = '', ...more] = await refusal({ DATABASE_URL, API_MODE: 'crud' })
  assert.ok(line.includes(path), line)
  assert.deepEqual(more, [])
})

for (const mode of ['crud', 'read-only']) {
  test(`a damaged database is refused by a ${mode} service and left as it is`, async (t) => {
    const folder = temporaryFolder(t)
    const { path, DATABASE_URL } = databaseIn(folder)
    writeFileSync(path, Buffer.alloc(20_000, 'damage'))
    const SEED_FILE = writeJson(folder, 'seed.json', smallFleet())
    const [line = '', ...more] = await refusal({ DATABASE_URL, API_MODE: mode, SEED_FILE })
    assert.ok(line.includes(path), line)
    assert.match(line, /damaged/)
    assert.deepEqual(more, [])
    assert.deepEqual(readdirSync(folder).sort(), ['fleet.db', 'seed.json'])
  })

  test(`the database of a newer program is refused by a ${mode} service`, async (t) => {
    const { path, DATABASE_URL } = databaseIn(temporaryFolder(t))
    const store = openSqliteStore({ path, write: true })
    await store.close()
    const db = new DatabaseSync(path)
    db.exec('PRAGMA user_version = 1000')
    db.close()
    const [line = '', ...more] = await refusal({ DATABASE_URL, API_MODE: mode })
    assert.ok(line.includes(path), line)
    assert.match(line, /newer/)
    assert.deepEqual(more, [])
  })
}

test('a database that is damaged inside is refused, and nothing of it is served', async (t) => {
  const { path, DATABASE_URL } = databaseIn(temporaryFolder(t))
  const store = openSqliteStore({ path, write: true })
  const json = JSON.stringify({ id: 'a', text: 'x'.repeat(50_000) })
  const changes = [{ type: 'namespaces', id: 'a', after: { json, deleted: false } }]
  await store.commit(0, {
    time: '',
    actor: '',
    message: null,
    request_id: '',
    client_address: null,
    operation: '',
    changes,
  })
  await store.close()
  const db = new DatabaseSync(path)
  db.exec(`UPDATE documents SET document = substr(document, 1, 1000)`)
  db.close()
  const [line = ''] = await refusal({ DATABASE_URL, API_MODE: 'crud' })
  assert.match(line, /namespaces "a" is not readable/)
})

test('an address that is in use is told in one line, without a stack, and exits with 1', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const env = { STORE_BACKEND: 'memory', LISTEN_ADDR: `127.0.0.1:${port}` }
  const lines = await refusal(env, 1)
  assert.equal(lines.length, 1)
  assert.match(lines[0] ?? '', new RegExp(`in use.*127\\.0\\.0\\.1:${port}`))
})

test('a service makes the folder of its database', async (t) => {
  const folder = join(temporaryFolder(t), 'some', 'where')
  const service = await spawnService({ ...databaseIn(folder) })
  t.after(() => service.stop('SIGKILL'))
  assert.equal(await service.stop(), 0)
  assert.ok(existsSync(join(folder, 'fleet.db')))
})

test('a type that no template reads is told of at start', async (t) => {
  const RESOURCES_DIR = join(import.meta.dirname, '../examples/network-policies')
  const env = { STORE_BACKEND: 'memory', AUTH_TOKEN: 'a-token-that-is-long', RESOURCES_DIR }
  const service = await spawnService(env)
  t.after(() => service.stop('SIGKILL'))
  const warnings = service
    .output()
    .split('\n')
    .filter((line) => line.includes('"level":40'))
  assert.equal(warnings.length, 1, service.output())
  assert.match(warnings[0] ?? '', /Nothing is made of network-policies yet/)
  const read = await spawnService({ ...env, TEMPLATES_DIR: join(RESOURCES_DIR, 'templates') })
  t.after(() => read.stop('SIGKILL'))
  assert.doesNotMatch(read.output(), /Nothing is made of/)
})

test('a service without any documents starts, and knows no cluster', async (t) => {
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, 'empty'))
  const env = { ...databaseIn(folder), RESOURCES_DIR: join(folder, 'empty') }
  const service = await spawnService(env)
  t.after(() => service.stop('SIGKILL'))
  const poll = await service.call('GET', '/api/v2/flux/clusters/one.k8s.example.com/namespaces')
  assert.equal(poll.status, 404)
  assert.equal(await service.stop(), 0)
})

test('a database with a document whose id is reserved is served, and the log says so at start', async (t) => {
  const { path, DATABASE_URL } = databaseIn(temporaryFolder(t))
  const store = openSqliteStore({ path, write: true })
  const [component] = smallFleet().platform_components
  const changes = [
    {
      type: 'platform_components',
      id: 'flux-system',
      after: { json: JSON.stringify({ ...component, id: 'flux-system' }), deleted: false },
    },
  ]
  const meta = { time: '2026-01-01T00:00:00.000Z', actor: 'old', message: null, request_id: 'old' }
  await store.commit(0, { ...meta, client_address: null, operation: 'old', changes })
  await store.close()
  const service = await spawnService({ DATABASE_URL, API_MODE: 'crud' })
  t.after(() => service.stop('SIGKILL'))
  const line = service
    .output()
    .split('\n')
    .find((text) => text.includes('whose id is reserved'))
  const { type, id, reason } = JSON.parse(line ?? '{}')
  assert.deepEqual([type, id], ['platform_components', 'flux-system'])
  assert.match(reason, /^Flux keeps a cluster in sync/)
  assert.equal((await service.call('GET', '/platform_components/flux-system')).status, 200)
  assert.equal((await service.call('DELETE', '/platform_components/flux-system')).status, 200)
})
