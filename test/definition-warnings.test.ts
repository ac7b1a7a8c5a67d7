// What others made of definitions is told before a write brings it to clusters: by restoring one, or by assigning it.
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Json, JsonObject } from '../src/base/json.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { cli, onTerminal } from './cli-process.ts'
import { run, start as startOn } from './every-store.ts'
import type { Answer, ServiceOptions, TestService } from './service.ts'

const CONCURRENTLY = { concurrency: 3 }
const TIME = '2026-01-31T12:00:00.000Z'

function component(id: string, more: JsonObject = {}) {
  const source = { component_path: id, component_version: '1', oci_url: 'oci://good', oci_tag: 'v1' }
  return { id, ...source, ...more }
}

function cluster(id: string, more: JsonObject = {}) {
  return { id, cluster_name: id, cluster_dns: `${id}.example.com`, environment: 'prod', ...more }
}

function refs(...ids: string[]) {
  return ids.map((id) => ({ id }))
}

const fleet = {
  platform_components: [component('vault'), component('core'), component('seeded')],
  namespaces: refs('apps'),
  clusters: [
    cluster('prod-1', { platform_components: refs('core') }),
    cluster('prod-2', { platform_components: refs('vault', 'core'), namespaces: refs('apps') }),
  ],
}

type By = (method: string, path: string, body?: Json) => Promise<Answer>

async function start(
  t: TestContext,
  options: ServiceOptions = {},
): Promise<{ service: TestService; mallory: By; admin: By }> {
  const service = await startOn(t, { fleet, now: () => new Date(TIME), ...options })
  const made = await service.call('POST', '/tokens', { body: { name: 'mallory', role: 'editor' } })
  const as =
    (token?: string): By =>
    async (method, path, body) => {
      const answer = await service.call(method, path, { body, ...(token && { token }) })
      assert.ok(answer.status < 300, answer.text)
      return answer
    }
  return { service, mallory: as(made.body.secret), admin: as() }
}

/** The warnings of a write, as its preview tells them; the write itself must tell the same. */
async function warningsOf(by: By, method: string, path: string, body?: JsonObject): Promise<string[]> {
  const preview = await by(method, `${path}?dry_run=true`, body)
  const { warnings } = preview.body
  const done = await by(method, path, body)
  const header = [...String(done.headers.warning ?? '').matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g)]
  const told = done.body.warnings ?? header.map(([, text = '']) => text.replaceAll(/\\(.)/g, '$1'))
  assert.deepEqual(told, warnings)
  return warnings
}

const EVIL = { oci_url: 'oci://evil.example.com/x' }

describe('a cluster that is restored', CONCURRENTLY, () => {
  test('comes with a warning of what its definitions have become', async (t) => {
    const { mallory, admin } = await start(t)
    const gone = (await admin('DELETE', '/clusters/prod-2')).headers['x-revision']
    const changed = (await mallory('PATCH', '/platform_components/vault', EVIL)).headers['x-revision']
    assert.deepEqual(await warningsOf(admin, 'POST', '/clusters/prod-2/restore'), [
      `cluster prod-2: platform component "vault" is not what it was at the deletion in revision ${gone}: /oci_url was "oci://good" and is "oci://evil.example.com/x"; changed in revision ${changed} by mallory (${TIME})`,
    ])
  })

  test('says nothing of what was changed before, changed back, or is not its own', async (t) => {
    const { mallory, admin } = await start(t)
    await mallory('PATCH', '/platform_components/vault', { oci_tag: 'v2' })
    await admin('DELETE', '/clusters/prod-2')
    await mallory('PATCH', '/platform_components/core', EVIL)
    await mallory('PATCH', '/platform_components/core', { oci_url: 'oci://good' })
    await mallory('PATCH', '/platform_components/seeded', EVIL)
    assert.deepEqual(await warningsOf(admin, 'POST', '/clusters/prod-2/restore'), [])
  })

  test('is told of by a revert of the deletion, a rollback and a batch as well', async (t) => {
    const ways: Record<string, (gone: number) => [string, JsonObject?]> = {
      revert: (gone) => [`/revisions/${gone}/revert`],
      rollback: (gone) => ['/rollback', { to_revision: gone - 1, types: ['clusters'] }],
      batch: () => ['/batch', { operations: [{ op: 'restore', type: 'clusters', id: 'prod-2' }] }],
    }
    for (const way of Object.values(ways)) {
      const { mallory, admin } = await start(t)
      const gone = Number((await admin('DELETE', '/clusters/prod-2')).headers['x-revision'])
      await mallory('PATCH', '/platform_components/vault', EVIL)
      const [path, body] = way(gone)
      const warnings = await warningsOf(admin, 'POST', path, body)
      assert.equal(warnings.length, 1)
      assert.match(warnings[0] ?? '', /"vault" is not what it was .* by mallory/)
    }
  })

  test('is told of by a rollback to before its last change, and not where that takes the definitions back too', async (t) => {
    const { mallory, admin } = await start(t)
    const edited = Number((await admin('PATCH', '/clusters/prod-2', { node_count: 5 })).headers['x-revision'])
    await admin('DELETE', '/clusters/prod-2')
    await mallory('PATCH', '/platform_components/vault', EVIL)
    const to = { to_revision: edited - 1 }
    const some = await admin('POST', '/rollback?dry_run=true', { ...to, types: ['clusters'] })
    assert.equal(some.body.warnings.length, 1)
    const all = await admin('POST', '/rollback?dry_run=true', to)
    assert.deepEqual(all.body.warnings, [])
  })

  test('is one of several that are told of together, with all who changed what they use', async (t) => {
    const { mallory, admin } = await start(t)
    await admin('DELETE', '/clusters/prod-1')
    await mallory('PATCH', '/platform_components/core', { oci_tag: 'v2' })
    await admin('DELETE', '/clusters/prod-2')
    await admin('PATCH', '/platform_components/core', { component_version: '2' })
    const operations = ['prod-1', 'prod-2'].map((id) => ({ op: 'restore', type: 'clusters', id }))
    const [warning = '', ...more] = await warningsOf(admin, 'POST', '/batch', { operations })
    assert.deepEqual(more, [])
    assert.match(warning, /^clusters prod-1, prod-2: platform component "core" /)
    assert.match(warning, /\/component_version was "1" and is "2", \/oci_tag was "v1" and is "v2"; /)
    assert.match(warning, /; changed in revision \d+ by writer .*, revision \d+ by mallory /)
  })

  test('is told with the values of ten fields, and the names of more', async (t) => {
    const { mallory, admin } = await start(t)
    await admin('DELETE', '/clusters/prod-2')
    const keys = Array.from({ length: 12 }, (_, i) => `k${String(i).padStart(2, '0')}`)
    await mallory('PATCH', '/namespaces/apps', { labels: Object.fromEntries(keys.map((key) => [key, 'x'])) })
    const [warning = ''] = await warningsOf(admin, 'POST', '/clusters/prod-2/restore')
    assert.match(warning, /\/labels\/k00 was null and is "x", /)
    assert.match(
      warning,
      /k09 was null and is "x", and \/labels\/k10, \/labels\/k11 changed as well; changed in /,
    )
  })

  test('is told of where the log no longer holds what it had', async (t) => {
    const store = openMemoryStore()
    const { service, mallory, admin } = await start(t, { store })
    await admin('DELETE', '/clusters/prod-2')
    await mallory('PATCH', '/platform_components/vault', EVIL)
    await store.prune({ revision: service.engine.state.revision, time: TIME, hash: '', state: '' })
    const [warning = ''] = await warningsOf(admin, 'POST', '/clusters/prod-2/restore')
    assert.match(
      warning,
      /"vault" .*: the log does not reach back to what it was; changed in .*no longer holds$/,
    )
  })

  test('is not one that is created anew in its place', async (t) => {
    const { mallory, admin } = await start(t)
    await admin('DELETE', '/clusters/prod-2')
    await mallory('PATCH', '/platform_components/core', EVIL)
    const anew = cluster('prod-2', { platform_components: refs('core') })
    assert.deepEqual(await warningsOf(admin, 'POST', '/clusters', anew), [])
  })

  test('has a bounded number of warnings, that fit into headers and name the rest', async (t) => {
    const { service, mallory, admin } = await start(t)
    const ids = Array.from({ length: 30 }, (_, i) => `n${String(i).padStart(2, '0')}`)
    const annotations = { text: 'ü'.repeat(1000) }
    const create = ids.map((id) => ({ op: 'create', type: 'namespaces', document: { id, annotations } }))
    await admin('POST', '/batch', { operations: create })
    await admin('POST', '/clusters', cluster('prod-3', { namespaces: refs(...ids) }))
    await admin('DELETE', '/clusters/prod-3')
    const patch = { annotations: { text: 'ä'.repeat(1000) } }
    await mallory('POST', '/batch', {
      operations: ids.map((id) => ({ op: 'patch', type: 'namespaces', id, patch })),
    })
    const { body } = await admin('POST', '/clusters/prod-3/restore?dry_run=true')
    assert.equal(body.warnings.length, 21)
    assert.equal(
      body.warnings.at(-1),
      `and 10 more, changed since the clusters were deleted that use them: ${ids
        .slice(20)
        .map((id) => `namespaces/${id}`)
        .join(', ')}`,
    )
    const { headers } = await admin('POST', '/clusters/prod-3/restore')
    assert.ok(String(headers.warning).length < 10_000)
    assert.match(String(headers.warning), /and \d+ more: a dry run tells all of them"$/)
    assert.equal(service.engine.state.get('clusters', 'prod-3')?.deleted, false)
  })
})

describe('a definition that no cluster has yet', CONCURRENTLY, () => {
  const first = (revision: unknown, id = 'new') =>
    `platform component "${id}", which no cluster has yet, was last changed in revision ${revision} by mallory (${TIME}): look at it first`

  test('comes with a warning when another one made it, by any way of assigning it', async (t) => {
    const ways: Record<string, [string, string, JsonObject]> = {
      assign: ['PUT', '/clusters/prod-1/platform_components/new', {}],
      patch: ['PATCH', '/clusters/prod-1', { platform_components: refs('core', 'new') }],
      replace: ['PUT', '/clusters/prod-1', cluster('prod-1', { platform_components: refs('new', 'core') })],
      create: ['POST', '/clusters', cluster('prod-3', { platform_components: refs('new') })],
      selector: [
        'POST',
        '/batch',
        { operations: [{ op: 'assign', type: 'platform_components', ref: { id: 'new' }, selector: 'id' }] },
      ],
    }
    for (const way of Object.values(ways)) {
      const { mallory, admin } = await start(t)
      const revision = (await mallory('POST', '/platform_components', component('new', EVIL))).headers[
        'x-revision'
      ]
      assert.deepEqual(await warningsOf(admin, ...way), [first(revision)])
    }
  })

  test('is nothing to whoever made it, and nothing once a cluster has it', async (t) => {
    const { mallory, admin } = await start(t)
    await mallory('POST', '/platform_components', component('new'))
    assert.deepEqual(await warningsOf(mallory, 'PUT', '/clusters/prod-1/platform_components/new', {}), [])
    assert.deepEqual(await warningsOf(admin, 'PUT', '/clusters/prod-2/platform_components/new', {}), [])
  })

  test('is nothing new as the service was set up with it, nor when it is made in the same write', async (t) => {
    const { admin } = await start(t)
    assert.deepEqual(await warningsOf(admin, 'PUT', '/clusters/prod-1/platform_components/seeded', {}), [])
    const operations = [
      { op: 'create', type: 'platform_components', document: component('new') },
      { op: 'assign', type: 'platform_components', ref: { id: 'new' }, clusters: ['prod-1'] },
    ]
    assert.deepEqual(await warningsOf(admin, 'POST', '/batch', { operations }), [])
  })

  test('is told of also when the same write sets some of its fields: the others stay', async (t) => {
    const { mallory, admin } = await start(t)
    const revision = (await mallory('POST', '/platform_components', component('new', EVIL))).headers[
      'x-revision'
    ]
    const operations = [
      { op: 'patch', type: 'platform_components', id: 'new', patch: { oci_tag: 'v2' } },
      { op: 'assign', type: 'platform_components', ref: { id: 'new' }, clusters: ['prod-1'] },
    ]
    assert.deepEqual(await warningsOf(admin, 'POST', '/batch', { operations }), [first(revision)])
  })

  test('is not looked for when a cluster is changed otherwise', async (t) => {
    const { mallory, admin, service } = await start(t)
    await mallory('PATCH', '/platform_components/vault', EVIL)
    const asked: unknown[] = []
    const { past } = service.engine
    const history = past.history
    past.history = (query) => {
      asked.push(query)
      return history(query)
    }
    await admin('PATCH', '/clusters/prod-2', { node_count: 3, platform_components: refs('core', 'vault') })
    await admin('DELETE', '/clusters/prod-2/platform_components/vault')
    await admin('DELETE', '/clusters/prod-2')
    assert.deepEqual(asked, [])
  })

  test('is told of in a bounded number of warnings', async (t) => {
    const { mallory, admin } = await start(t)
    const ids = Array.from({ length: 25 }, (_, i) => `c${String(i).padStart(2, '0')}`)
    await mallory('POST', '/batch', {
      operations: ids.map((id) => ({ op: 'create', type: 'platform_components', document: component(id) })),
    })
    const { body } = await admin('PATCH', '/clusters/prod-1?dry_run=true', {
      platform_components: refs(...ids),
    })
    assert.equal(body.warnings.length, 21)
    assert.equal(
      body.warnings.at(-1),
      `and 5 more, which no cluster has yet: ${ids
        .slice(20)
        .map((id) => `platform_components/${id}`)
        .join(', ')}`,
    )
  })
})

describe('the command line', CONCURRENTLY, () => {
  async function poisoned(t: TestContext) {
    const { service, mallory, admin } = await start(t)
    await admin('DELETE', '/clusters/prod-2')
    await mallory('PATCH', '/platform_components/vault', EVIL)
    return {
      service,
      url: service.url,
      isBack: () => service.engine.state.get('clusters', 'prod-2') !== undefined,
    }
  }

  test('tells in a preview and after a restore', async (t) => {
    const { url, isBack } = await poisoned(t)
    const args = ['cluster', 'restore', 'prod-2']
    const preview = await cli([...args, '--dry-run'], { url })
    assert.match(preview.stdout, /^Warning: cluster prod-2: platform component "vault" .*oci:\/\/evil/m)
    assert.equal(isBack(), false)
    const done = await cli(args, { url })
    assert.equal(done.code, 0)
    assert.match(done.stderr, /^Warning: cluster prod-2: .* by mallory/m)
  })

  test('asks somebody at a terminal before one cluster comes back to something else', async (t) => {
    const { url, isBack } = await poisoned(t)
    const args = ['cluster', 'restore', 'prod-2']
    const no = await onTerminal(args, { url, columns: 400, typing: [['go on: ', 'no\r']] })
    assert.equal(no.code, 4, no.screen)
    assert.match(
      no.screen,
      /Warning:.* cluster prod-2: platform component "vault" [\s\S]*Add 1 cluster on http:\S+\?/,
    )
    assert.equal(isBack(), false)
    const yes = await onTerminal(args, { url, columns: 400, typing: [['go on: ', 'yes\r']] })
    assert.equal(yes.code, 0, yes.screen)
    assert.equal(isBack(), true)
  })

  test('asks before several come back, with the same warning', async (t) => {
    const { service, url } = await poisoned(t)
    await run(service, ['DELETE', '/clusters/prod-1'])
    const args = ['rollback', '--to', '1', '--type', 'clusters']
    const no = await onTerminal(args, { url, columns: 400, typing: [['go on: ', 'no\r']] })
    assert.equal(no.code, 4, no.screen)
    assert.match(no.screen, /"vault" is not what it was/)
  })
})
