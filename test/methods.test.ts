// What a resource file allows to be done: routes, the description, batches, the ways back, and the command line.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { parse, stringify } from 'yaml'
import type { RegisteredTypes } from '../src/registry/build-types.ts'
import { cli } from './cli-process.ts'
import { assertProblem as assertRefused, pathsIn, run, start } from './every-store.ts'
import {
  type Answer,
  builtInTypes,
  RESOURCES,
  smallFleet,
  type TestService,
  temporaryFolder,
} from './service.ts'

interface Methods {
  readonly resource?: readonly string[]
  readonly instance?: readonly string[]
}

/** The built-in types and quotas, which allow so much; further types may be limited too. */
function typesWith(t: TestContext, methods: Methods, others: Record<string, Methods> = {}): RegisteredTypes {
  const folder = temporaryFolder(t)
  const quota = {
    kind: 'quotas',
    apiVersion: 'v1',
    methods,
    schema: {
      key: { name: 'id' },
      'x-flux': {
        endpoint: 'quotas',
        assigned_by: 'quotas',
        references: { namespace: 'namespaces' },
        input: ['pods'],
      },
      items: { properties: { pods: { type: 'integer' }, namespace: { type: 'string' } } },
    },
  }
  writeFileSync(join(folder, 'quota.yaml'), stringify(quota))
  for (const [file, limits] of Object.entries(others)) {
    const { security: _security, ...known } = parse(readFileSync(join(RESOURCES, file), 'utf8'))
    writeFileSync(join(folder, file), stringify({ ...known, methods: limits }))
  }
  return builtInTypes(folder)
}

function assertProblem(answer: Answer, status: number, error: string, path?: string): void {
  assertRefused(answer, status, error)
  if (path !== undefined) assert.deepEqual(pathsIn(answer), [path])
}

const READ_ONLY = { resource: ['get'], instance: ['get'] }

/** Quotas come from the seed file, which may say anything. */
function startWith(t: TestContext, methods: Methods, others?: Record<string, Methods>): Promise<TestService> {
  const { namespaces, ...fleet } = smallFleet()
  const seeded = { ...fleet, namespaces, quotas: [{ id: 'small', pods: 10, namespace: namespaces[0]?.id }] }
  return start(t, { types: typesWith(t, methods, others), fleet: seeded as never })
}

test('a method that the file leaves out is a 405, with those that are there', async (t) => {
  const service = await startWith(t, READ_ONLY)
  for (const [method, url] of [
    ['POST', '/quotas'],
    ['PUT', '/quotas/small'],
    ['PATCH', '/quotas/small'],
    ['DELETE', '/quotas/small'],
  ] as const) {
    const answer = await service.call(method, url, { body: { id: 'other' } })
    assertProblem(answer, 405, 'method_not_allowed')
    assert.equal(answer.headers.allow, 'GET, HEAD')
  }
  assert.deepEqual((await service.call('GET', '/quotas/small')).body.pods, 10)
  assert.equal(service.engine.state.revision, 1)
})

test('one method alone can be left out', async (t) => {
  const service = await startWith(t, { instance: ['get', 'put', 'patch'] })
  const refused = await service.call('DELETE', '/quotas/small')
  assertProblem(refused, 405, 'method_not_allowed')
  assert.equal(refused.headers.allow, 'GET, HEAD, PATCH, PUT')
  await run(service, ['POST', '/quotas', { id: 'large' }], ['PATCH', '/quotas/small', { pods: 20 }])
})

test('assigning needs no method: it changes clusters', async (t) => {
  const service = await startWith(t, READ_ONLY)
  await run(
    service,
    ['PUT', '/clusters/one/quotas/small', {}],
    ['DELETE', '/clusters/one/quotas/small?confirm=removals'],
    [
      'POST',
      '/batch',
      { operations: [{ op: 'assign', type: 'quotas', ref: { id: 'small' }, clusters: ['one'] }] },
    ],
  )
})

test('the description has the routes and operations that there are, and says which methods a type takes', async (t) => {
  const service = await startWith(t, { resource: ['get', 'post'], instance: ['get'] })
  const { body } = await service.call('GET', '/openapi.json')
  const verbs = (path: string): string[] =>
    Object.keys(body.paths[path]).filter((name) => name !== 'parameters')
  assert.deepEqual(verbs('/quotas'), ['get', 'post'])
  assert.deepEqual(verbs('/quotas/{id}'), ['get'])
  assert.deepEqual(verbs('/clusters/{cluster}/quotas/{id}'), ['get', 'put', 'patch', 'delete'])
  const { mapping } = body.components.schemas.batch_operation.discriminator
  const ops = Object.keys(mapping).filter((op) =>
    body.components.schemas[`${op}_operation`].properties.type?.enum.includes('quotas'),
  )
  assert.deepEqual(ops.sort(), ['assign', 'create', 'unassign'])
  const described = body['x-flux-types'].find(({ name }: { name: string }) => name === 'quotas')
  assert.deepEqual(described.methods, ['get', 'post'])
})

describe('a batch', () => {
  const operations = {
    create: { document: { id: 'large' } },
    replace: { id: 'small', document: { pods: 1 } },
    patch: { id: 'small', patch: { pods: 1 } },
    delete: { id: 'small' },
    restore: { id: 'small' },
  }
  for (const [op, more] of Object.entries(operations)) {
    test(`does not ${op} what the file does not allow, in a preview neither`, async (t) => {
      const service = await startWith(t, READ_ONLY)
      for (const dry_run of [false, true]) {
        const body = { dry_run, operations: [{ op, type: 'quotas', ...more }] }
        const answer = await service.call('POST', '/batch', { body })
        assertProblem(answer, 400, 'validation_error', '/operations/0/op')
        assert.match(answer.body.message, /the file of the type quotas allows only get$/)
      }
    })
  }
})

describe('what the file does not allow does not come about', () => {
  test('by a cascade', async (t) => {
    const service = await startWith(t, READ_ONLY)
    const id = service.engine.state.get('quotas', 'small')?.document.namespace
    const answer = await service.call('DELETE', `/namespaces/${id}?cascade=true&confirm=removals`)
    assertProblem(answer, 409, 'conflict', '/quotas/small')
    assert.match(answer.body.message, /\/quotas\/small would be changed, and the file .* allows only get$/)
  })

  test('by a revert or a rollback', async (t) => {
    const service = await startWith(t, { resource: ['get', 'post'], instance: ['get'] })
    const made = await run(service, ['POST', '/quotas', { id: 'large' }])
    for (const [url, body] of [
      [`/revisions/${made}/revert`, {}],
      ['/rollback', { to_revision: 1 }],
    ] as const) {
      const answer = await service.call('POST', url, { body: { ...body, confirm: ['removals'] } })
      assertProblem(answer, 409, 'conflict', '/quotas/large')
      assert.match(answer.body.message, /would be deleted, and the file .* allows only get, post$/)
    }
    const chosen = { to_revision: 1, types: ['namespaces'], confirm: ['removals'] }
    await run(service, ['POST', '/rollback', chosen])
  })

  test('by a revert that makes it again', async (t) => {
    const service = await startWith(t, { resource: ['get'], instance: ['get', 'patch', 'delete'] })
    const gone = await run(service, ['DELETE', '/quotas/small'])
    assertProblem(await service.call('POST', `/revisions/${gone}/revert`), 409, 'conflict', '/quotas/small')
  })

  test('what clusters are assigned can still be taken back where their own fields cannot be changed', async (t) => {
    const limited = { 'cluster.yaml': { resource: ['get'], instance: ['get'] } }
    const service = await startWith(t, {}, limited)
    const assigned = await run(service, ['PUT', '/clusters/one/quotas/small', {}])
    await run(service, ['POST', `/revisions/${assigned}/revert?confirm=removals`, {}])
    assertProblem(await service.call('PATCH', '/clusters/one', { body: {} }), 405, 'method_not_allowed')
    assertProblem(await service.call('POST', '/clusters/one/restore'), 404, 'not_found')
  })
})

test('a type without a limit beside it is written as ever', async (t) => {
  const service = await startWith(t, READ_ONLY)
  const made = await run(service, ['POST', '/namespaces', { id: 'fresh' }])
  await run(service, ['POST', `/revisions/${made}/revert`, {}])
})

describe('the command line', () => {
  test('has no command for what the server does not take, and says why', async (t) => {
    const { url } = await startWith(t, { resource: ['get'], instance: ['get', 'patch'] })
    const help = await cli(['quota', '--help'], { url })
    assert.match(help.stdout, /^ {2}update /m)
    assert.doesNotMatch(help.stdout, /^ {2}(create|edit|delete) /m)
    const refused = await cli(['quota', 'delete', 'small'], { url })
    assert.equal(refused.code, 2)
    assert.match(
      refused.stderr,
      /^Error: delete is not possible: the server takes only get, patch of quotas\n/,
    )
  })

  test('applies a set that holds such documents, and prunes none of them', async (t) => {
    const { url } = await startWith(t, { resource: ['get', 'post'], instance: ['get'] })
    const file = join(temporaryFolder(t), 'set.yaml')
    const apply = (...documents: object[]) => {
      writeFileSync(file, documents.map((document) => stringify(document)).join('---\n'))
      return cli(['apply', '-f', file, '--prune', '--name', 'own'], { url })
    }
    const quota = { type: 'quotas', id: 'applied', pods: 1 }
    const first = await apply(quota, { type: 'namespaces', id: 'applied' })
    assert.equal(first.code, 0, first.stderr)
    const unchanged = await apply(quota, { type: 'namespaces', id: 'applied' })
    assert.equal(unchanged.code, 0, unchanged.stderr)
    const pruned = await apply({ type: 'namespaces', id: 'applied' })
    assert.equal(pruned.code, 0, pruned.stderr)
    assert.match(
      pruned.stderr,
      /^Warning: quotas\/applied is not pruned: the server takes only get, post of quotas$/m,
    )
    for (const _ of ['again', 'and unchanged']) {
      const alone = await apply(quota)
      assert.equal(alone.code, 0, alone.stderr)
    }
  })
})
