// The tokens of clusters, issued together: one revision, each secret shown once.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { assertProblem } from './every-store.ts'
import { type Answer, startService, type TestService } from './service.ts'

let service: TestService
before(async () => {
  service = await startService()
})
after(() => service.stop())

interface Issued {
  readonly cluster: string
  readonly name: string
  readonly secret: string
}

const issue = (body: object, headers: Record<string, string> = {}, query = ''): Promise<Answer> =>
  service.call('POST', `/tokens/issue${query}`, { body: body as never, headers })

async function whoami(token: string): Promise<unknown> {
  const { body } = await service.call('GET', '/whoami', { token })
  return [body.name, body.role, body.cluster]
}

async function revokeAll(): Promise<void> {
  for (const { id } of (await service.call('GET', '/tokens')).body)
    await service.call('DELETE', `/tokens/${id}`)
}

test('they are created or rotated in one revision, in the order of the request', async (t) => {
  t.after(revokeAll)
  const first = await issue({ clusters: ['two'] })
  const old = first.body.tokens[0].secret
  const { status, headers, body } = await issue({ clusters: ['two', 'one'], grace: '1h' })
  assert.equal(status, 200)
  assert.equal(headers['cache-control'], 'no-store')
  assert.equal(body.revision, first.body.revision + 1)
  const issued: readonly Issued[] = body.tokens
  assert.deepEqual(
    issued.map(({ cluster, name }) => [cluster, name]),
    [
      ['two', 'cluster-two'],
      ['one', 'cluster-one'],
    ],
  )
  for (const { cluster, name, secret } of [...issued, { ...(issued[0] as Issued), secret: old }])
    assert.deepEqual(await whoami(secret), [name, 'cluster', cluster])
  const [revision] = (await service.call('GET', '/revisions?limit=1')).body
  assert.deepEqual(
    [revision.operation, revision.change_count],
    ['issue token cluster-two; issue token cluster-one', 2],
  )
  const { rotated_at, old_secrets_expire_at } = (await service.call('GET', '/tokens/cluster-two')).body
  assert.equal(Date.parse(old_secrets_expire_at) - Date.parse(rotated_at), 3_600_000)
})

test('none is issued where one cannot be, and the answer says which and why', async (t) => {
  t.after(revokeAll)
  await service.call('POST', '/tokens', { body: { name: 'cluster-two', role: 'viewer' } })
  const cases = [
    [{ clusters: ['one', 'nope'] }, 400, '/clusters/1', 'names an unknown cluster "nope"'],
    [{ clusters: ['one', 'two'] }, 409, '/clusters/1', 'it has the role viewer'],
    [{ clusters: ['one', 'one'] }, 400, '/clusters/1', 'is a duplicate'],
    [{ clusters: [] }, 400, '/clusters', ''],
    [{ clusters: 'one' }, 400, '/clusters', ''],
    [{ clusters: ['one'], grace: '91d' }, 400, '/grace', 'must be a duration from 0s to 90d'],
    [{}, 400, '/clusters', 'required'],
    [[], 400, '', 'must be an object'],
  ] as const
  const { revision } = service.engine.state
  for (const [body, status, path, says] of cases) {
    const answer = await issue(body)
    assertProblem(answer, status, status === 409 ? 'conflict' : 'validation_error')
    const [detail] = answer.body.details
    assert.equal(detail.path, path, answer.text)
    assert.ok(detail.message.includes(says), answer.text)
  }
  assert.equal(service.engine.state.revision, revision)
})

test('a preview shows no secret; a request that is sent again changes nothing and shows none either', async (t) => {
  t.after(revokeAll)
  const { revision } = service.engine.state
  const preview = await issue({ clusters: ['one', 'two'] }, {}, '?dry_run=true')
  assert.deepEqual([preview.body.dry_run, preview.body.change_count], [true, 2])
  assert.ok(!preview.text.includes('frs_'))
  assert.equal(service.engine.state.revision, revision)
  const key = { 'Idempotency-Key': 'issued-once' }
  const first = await issue({ clusters: ['one'] }, key)
  const again = await issue({ clusters: ['one'] }, key)
  assert.equal(again.headers['idempotent-replayed'], 'true')
  assert.deepEqual(again.body, { revision: first.body.revision })
  assert.deepEqual(await whoami(first.body.tokens[0].secret), ['cluster-one', 'cluster', 'one'])
})
