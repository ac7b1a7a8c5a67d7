// How large one document may be and what a JSON patch may build, whichever way a write comes in.
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Json, JsonObject } from '../src/base/json.ts'
import { MAX_DOCUMENT_SIZE } from '../src/registry/build-types.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { assertProblem, pathsIn, run, start } from './every-store.ts'
import { type Answer, READ_TOKEN, smallFleet } from './service.ts'

const JSON_PATCH = { 'content-type': 'application/json-patch+json' }
const POLL = '/api/v2/flux/clusters/one.k8s.example.com/platform-components'

function binding(id: string, size: number): JsonObject {
  const subjects = Array.from({ length: Math.ceil(size / 1000) }, (_, i) => ({
    kind: 'Group',
    name: `${i}`.padEnd(1000 - '{"kind":"Group","name":""},'.length, 'x'),
  }))
  return { id, role: 'view', subjects }
}

const LARGE = MAX_DOCUMENT_SIZE + 1000
const FITS = MAX_DOCUMENT_SIZE - 5000

function assertRefused(answer: Answer, at: string | undefined, says: RegExp): void {
  assertProblem(answer, 400, 'validation_error')
  assert.match(answer.body.message, says)
  if (at !== undefined) assert.deepEqual(pathsIn(answer), [at])
}

describe('a document of more than 1 MiB', () => {
  /** Whichever way a document is written; all of them make `big` too large. */
  const WAYS: Record<
    string,
    readonly [method: string, url: string, body: Json, at: string, patch?: boolean]
  > = {
    'created by POST': ['POST', '/rolebindings', binding('big', LARGE), ''],
    'replaced by PUT': ['PUT', '/rolebindings/admins', binding('admins', LARGE), ''],
    'merged by PATCH': [
      'PATCH',
      '/rolebindings/admins',
      { subjects: binding('x', LARGE).subjects as Json },
      '',
    ],
    'patched by operations': [
      'PATCH',
      '/rolebindings/admins',
      [{ op: 'add', path: '/subjects', value: binding('x', LARGE).subjects as Json }],
      '',
      true,
    ],
    'created by a batch': [
      'POST',
      '/batch',
      { operations: [{ op: 'create', type: 'rolebindings', document: binding('big', LARGE) }] },
      '/operations/0/document',
    ],
    'patched by a batch': [
      'POST',
      '/batch',
      {
        operations: [
          {
            op: 'patch',
            type: 'rolebindings',
            id: 'admins',
            patch: { subjects: binding('x', LARGE).subjects as Json },
          },
        ],
      },
      '/operations/0/patch',
    ],
    'given values': [
      'PUT',
      '/clusters/one/patches/a',
      Object.fromEntries(Array.from({ length: 1100 }, (_, i) => [`key${i}`, 'x'.repeat(1000)])),
      '',
    ],
  }

  for (const [way, [method, url, body, at, isPatch]] of Object.entries(WAYS))
    test(`${way} is refused, and says what to do`, async (t) => {
      const service = await start(t)
      const headers = isPatch ? JSON_PATCH : {}
      const answer = await service.call(method, url, { body, headers })
      assertRefused(answer, at, /is larger than 1048576 characters of JSON.*leave something out/)
      assert.equal(service.engine.state.revision, 1)
    })

  test('is refused with assignments that make it so', async (t) => {
    const service = await start(t)
    const label = (i: number): [string, string] => [`example.com/${`${i}`.padEnd(63, 'k')}`, 'v'.repeat(63)]
    const each = JSON.stringify(Object.fromEntries([label(0)])).length - 1
    const cluster = service.engine.state.get('clusters', 'one')?.document
    const count = Math.floor((MAX_DOCUMENT_SIZE - JSON.stringify(cluster).length - 10) / each)
    const labels = Object.fromEntries(Array.from({ length: count }, (_, i) => label(i)))
    await run(service, ['PATCH', '/clusters/one', { labels }])
    const url = '/clusters/one/platform_components/c'
    const answer = await service.call('PUT', url, { body: { oci_tag: 'v'.repeat(250) } })
    assertRefused(answer, '', /is larger than/)
  })

  test('that is nearly as large is taken', async (t) => {
    const service = await start(t)
    await run(service, ['POST', '/rolebindings', binding('big', FITS)])
  })

  test('lists of what was applied may be larger: they grow with the fleet', async (t) => {
    const service = await start(t)
    const documents = { namespaces: Array.from({ length: 80_000 }, (_, i) => `namespace-${i}`) }
    await run(service, ['POST', '/applied_sets', { id: 'fleet', documents }])
  })
})

test('a document that became too large before there was a limit is served, can be made smaller, and not larger', async (t) => {
  const store = openMemoryStore()
  const service = await start(t, { store })
  const document = binding('old', 2 * MAX_DOCUMENT_SIZE)
  await store.commit(1, {
    time: '',
    actor: '',
    message: null,
    request_id: '',
    client_address: null,
    operation: '',
    changes: [{ type: 'rolebindings', id: 'old', after: { json: JSON.stringify(document), deleted: false } }],
  })
  await service.engine.check()
  assert.equal((await service.call('GET', '/rolebindings/old')).status, 200)
  const grow = await service.call('PATCH', '/rolebindings/old', {
    body: [{ op: 'add', path: '/subjects/-', value: { kind: 'Group', name: 'one-more' } }],
    headers: JSON_PATCH,
  })
  assertRefused(grow, '', /is larger than/)
  for (const patch of [
    [{ op: 'replace', path: '/role', value: 'edit' }],
    [{ op: 'remove', path: '/subjects/0' }],
  ]) {
    const answer = await service.call('PATCH', '/rolebindings/old', { body: patch, headers: JSON_PATCH })
    assert.equal(answer.status, 200, answer.text.slice(0, 200))
  }
})

describe('a JSON patch that grows without end', () => {
  async function attack(t: TestContext, operations: Json): Promise<{ slowest: number; took: number }> {
    const service = await start(t, { fleet: smallFleet() })
    const began = performance.now()
    const attacked = service.call('PATCH', '/clusters/one?dry_run=true', {
      token: READ_TOKEN,
      body: operations,
      headers: JSON_PATCH,
    })
    let slowest = 0
    let isOver = false
    attacked.finally(() => {
      isOver = true
    })
    do {
      const asked = performance.now()
      assert.equal((await service.call('GET', POLL, { token: READ_TOKEN })).status, 200)
      slowest = Math.max(slowest, performance.now() - asked)
    } while (!isOver)
    const answer = await attacked
    assertRefused(answer, undefined, /comes to more than 3145728 characters|deeper than 64/)
    return { slowest, took: performance.now() - began }
  }

  const ATTACKS: Record<string, Json> = {
    'objects that double': [
      { op: 'add', path: '/labels', value: { a: Array(300).fill({}) } },
      ...Array.from({ length: 26 }, (_, i) => ({ op: 'copy', from: '/labels', path: `/labels/k${i}` })),
    ],
    'texts that double': [
      { op: 'add', path: '/labels', value: { a: 'x'.repeat(100) } },
      ...Array.from({ length: 27 }, (_, i) => ({ op: 'copy', from: '/labels', path: `/labels/k${i}` })),
    ],
    'a document in itself': Array.from({ length: 30 }, (_, i) => ({
      op: 'copy',
      from: '',
      path: `/labels/k${i}`,
    })),
    'a large value that moves': [
      { op: 'add', path: '/a', value: 'x'.repeat(700_000) },
      ...Array.from({ length: 5000 }, (_, i) => ({
        op: 'move',
        from: i % 2 ? '/b' : '/a',
        path: i % 2 ? '/a' : '/b',
      })),
    ],
    'a value that nests': [
      { op: 'add', path: '/labels', value: { a: {} } },
      ...Array.from({ length: 80 }, () => ({ op: 'copy', from: '/labels', path: '/labels/a' })),
    ],
  }
  for (const [name, operations] of Object.entries(ATTACKS))
    test(`${name}: a viewer's preview is refused soon, and polls are answered meanwhile`, async (t) => {
      const { slowest, took } = await attack(t, operations)
      assert.ok(took < 3000, `took ${took} ms`)
      assert.ok(slowest < 1000, `a poll took ${slowest} ms`)
    })

  test('a patch of too many operations is refused by its place in a batch', async (t) => {
    const service = await start(t)
    const patch = Array(10_001).fill({ op: 'test', path: '/id', value: 'one' })
    const answer = await service.call('POST', '/batch', {
      body: { operations: [{ op: 'patch', type: 'clusters', id: 'one', patch }] },
    })
    assertRefused(answer, '/operations/0/patch', /10001 operations, and a patch takes 10000/)
  })
})
