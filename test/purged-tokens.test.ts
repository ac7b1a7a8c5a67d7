// The tokens of a cluster go with it when it is purged, and no new cluster inherits them.
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { JsonObject } from '../src/base/json.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { assertProblem, changesOf, run, STORES, start } from './every-store.ts'
import { READ_TOKEN, type ServiceOptions, type TestService } from './service.ts'

function pollUrl(dns: string): string {
  return `/api/v2/flux/clusters/${dns}/namespaces`
}

const DNS = 'one.k8s.example.com'

async function issue(service: TestService, name: string, cluster = 'one'): Promise<string> {
  const made = await service.call('POST', '/tokens', { body: { name, role: 'cluster', cluster } })
  assert.equal(made.status, 201, made.text)
  return made.body.secret
}

interface Issued {
  readonly service: TestService
  /** Two of one and the same cluster. */
  readonly secrets: readonly string[]
  /** Of another cluster. */
  readonly other: string
}

async function startIssued(t: TestContext, options: ServiceOptions = {}): Promise<Issued> {
  const service = await start(t, options)
  const secrets = [await issue(service, 'cluster-one'), await issue(service, 'second')]
  return { service, secrets, other: await issue(service, 'cluster-two', 'two') }
}

async function polled({ service, secrets }: Issued, dns = DNS): Promise<number[]> {
  const answers = await Promise.all(secrets.map((token) => service.call('GET', pollUrl(dns), { token })))
  return answers.map(({ status }) => status)
}

async function tokens(service: TestService): Promise<string[]> {
  const { body } = await service.call('GET', '/tokens')
  return body.map(({ name }: { name: string }) => name)
}

const again: JsonObject = { id: 'one', cluster_name: 'one', cluster_dns: DNS, environment: 'prod' }
const elsewhere: JsonObject = { ...again, cluster_dns: 'new.k8s.example.com' }

describe('purging a cluster', () => {
  for (const [name, open] of Object.entries(STORES)) {
    test(`revokes its tokens in the same revision, and a new cluster of its id has none (${name})`, async (t) => {
      const issued = await startIssued(t, { store: await open(t) })
      const { service, other } = issued
      assert.deepEqual(await polled(issued), [200, 200])
      const purged = await run(service, ['DELETE', '/clusters/one?purge=true'])
      assert.deepEqual(await tokens(service), ['cluster-two'])
      assert.deepEqual(await polled(issued), [401, 401])
      const changes = await changesOf(service, purged)
      assert.equal(changes.length, 3)
      assert.equal(changes.filter((change) => change.startsWith('delete tokens/')).length, 2)
      assert.ok(changes.includes('purge clusters/one'))
      const { text } = await service.call('GET', `/revisions/${purged}`)
      assert.match(text, /"cluster-one"/)
      assert.doesNotMatch(text, /"hash":"[^"]+","created_at"/)
      await run(service, ['POST', '/clusters', again])
      assert.deepEqual(await polled(issued), [401, 401])
      assert.equal((await service.call('GET', pollUrl('two.k8s.example.com'), { token: other })).status, 200)
      assert.equal((await service.call('GET', '/revisions/verify')).body.verified, true)
    })
  }

  test('revokes them also when it was deleted before, is purged in a batch, or never was', async (t) => {
    const purge = { op: 'delete', type: 'clusters', id: 'one', purge: true }
    const ways: readonly (readonly (readonly [string, string, JsonObject?])[])[] = [
      [
        ['DELETE', '/clusters/one'],
        ['DELETE', '/clusters/one?purge=true'],
      ],
      [['POST', '/batch', { operations: [purge] }]],
      [
        [
          'POST',
          '/batch?confirm=removals',
          { operations: [purge, { op: 'create', type: 'clusters', document: again }] },
        ],
      ],
    ]
    for (const writes of ways) {
      const issued = await startIssued(t)
      await run(issued.service, ...writes)
      assert.deepEqual(await tokens(issued.service), ['cluster-two'])
      assert.deepEqual(await polled(issued), [401, 401])
    }
    const { service } = await startIssued(t)
    const { revision } = service.engine.state
    await run(service, ['POST', '/clusters', { ...elsewhere, id: 'three' }])
    const secret = await issue(service, 'cluster-three', 'three')
    await run(service, ['POST', '/rollback', { to_revision: revision, types: ['clusters'] }])
    assert.equal((await service.call('GET', pollUrl('new.k8s.example.com'), { token: secret })).status, 401)
  })

  test('is shown by a preview with the tokens that go', async (t) => {
    const { service } = await startIssued(t)
    const { body } = await service.call('DELETE', '/clusters/one?purge=true&dry_run=true')
    assert.equal(body.change_count, 3)
    const plan = `/clusters/one?purge=true&plan=${body.plan}`
    assert.equal((await service.call('DELETE', plan)).status, 200)
  })

  test('can be reverted: the cluster comes back, its tokens do not, and that is told', async (t) => {
    const issued = await startIssued(t)
    const { service } = issued
    const purged = await run(service, ['DELETE', '/clusters/one?purge=true'])
    const preview = await service.call('POST', `/revisions/${purged}/revert?dry_run=true`)
    const reverted = await service.call('POST', `/revisions/${purged}/revert`)
    assert.equal(reverted.status, 200, reverted.text)
    const told =
      'tokens that were revoked with their cluster do not come back: cluster-one, second; create others'
    assert.ok(reverted.body.warnings.includes(told), reverted.text)
    assert.ok(preview.body.warnings.includes(told))
    assert.equal((await service.call('GET', pollUrl(DNS), { token: READ_TOKEN })).status, 200)
    assert.deepEqual(await polled(issued), [401, 401])
    const revoked = await run(service, ['DELETE', '/tokens/cluster-two'])
    assertProblem(await service.call('POST', `/revisions/${revoked}/revert`), 409, 'conflict')
  })
})

describe('a cluster that was deleted', () => {
  test('keeps its tokens, to learn that it is gone and for when it is restored', async (t) => {
    const issued = await startIssued(t)
    await run(issued.service, ['DELETE', '/clusters/one'])
    assert.deepEqual(await polled(issued), [200, 200])
    await run(issued.service, ['POST', '/clusters/one/restore'])
    assert.deepEqual(await polled(issued), [200, 200])
  })

  test('and is created again under its DNS name is the same one, with its tokens', async (t) => {
    const issued = await startIssued(t)
    await run(issued.service, ['DELETE', '/clusters/one'], ['POST', '/clusters', again])
    assert.deepEqual(await polled(issued), [200, 200])
  })

  test('and whose id is taken under another DNS name loses its tokens to nobody', async (t) => {
    for (const write of [
      ['POST', '/clusters', elsewhere],
      ['POST', '/batch', { operations: [{ op: 'create', type: 'clusters', document: elsewhere }] }],
    ] as const) {
      const issued = await startIssued(t)
      await run(issued.service, ['DELETE', '/clusters/one'])
      const made = await run(issued.service, write)
      assert.deepEqual(await polled(issued, 'new.k8s.example.com'), [401, 401])
      assert.equal((await changesOf(issued.service, made)).length, 3)
    }
  })

  test('and whose id an editor of clusters takes is no matter of tokens to them', async (t) => {
    const issued = await startIssued(t)
    const { service } = issued
    const { body } = await service.call('POST', '/tokens', {
      body: { name: 'ed', role: 'editor', types: ['clusters'] },
    })
    await run(service, [
      'PATCH',
      '/clusters/one?confirm=removals',
      { platform_components: [], namespaces: [], rolebindings: [], patches: { a: null } },
    ])
    await run(service, ['DELETE', '/clusters/one'])
    const taken = await service.call('POST', '/clusters', { body: elsewhere, token: body.secret })
    assert.equal(taken.status, 201, taken.text)
    assert.deepEqual(await polled(issued, 'new.k8s.example.com'), [401, 401])
  })
})

test('a token whose cluster went before tokens went with it opens no new one of that id', async (t) => {
  const store = openMemoryStore()
  const issued = await startIssued(t, { store })
  const { service } = issued
  const head = await store.head()
  const meta = { time: '2026-01-01T00:00:00.000Z', actor: 'old', message: null, request_id: 'old' }
  const changes = [{ type: 'clusters', id: 'one', after: undefined }]
  await store.commit(head.revision, { ...meta, client_address: null, operation: 'old', changes })
  await service.engine.catchUp()
  const answer = await service.call('GET', pollUrl(DNS), { token: issued.secrets[0] as string })
  assertProblem(answer, 403, 'forbidden')
  assert.equal(answer.body.message, 'this token polls for cluster "one" alone, which is no more')
  await run(service, ['POST', '/clusters', again])
  assert.deepEqual(await tokens(service), ['cluster-two'])
  assert.deepEqual(await polled(issued), [401, 401])
})

test('a token is told by which name its cluster polls', async (t) => {
  const { service, secrets } = await startIssued(t)
  const answer = await service.call('GET', pollUrl('two.k8s.example.com'), { token: secrets[0] as string })
  assertProblem(answer, 403, 'forbidden')
  assert.equal(
    answer.body.message,
    'this token polls for cluster "one" alone, whose DNS name is "one.k8s.example.com", not "two.k8s.example.com"',
  )
})
