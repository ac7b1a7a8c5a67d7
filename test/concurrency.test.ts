import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Store } from '../src/store/store.ts'
import { STORES } from './every-store.ts'
import { startService, type TestService } from './service.ts'

const MANY = 60
const all = Array.from({ length: MANY }, (_, i) => i)

async function start(t: TestContext, open: (t: TestContext) => Promise<Store>): Promise<TestService> {
  const service = await startService({ store: await open(t) })
  t.after(() => service.stop())
  return service
}

for (const [name, open] of Object.entries(STORES)) {
  test(`of ${MANY} patches at once of different fields of one cluster none is lost (${name})`, async (t) => {
    const service = await start(t, open)
    const answers = await Promise.all(
      all.map((i) =>
        service.call('PATCH', '/clusters/one', { body: { labels: { [`field-${i}`]: String(i) } } }),
      ),
    )
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    const revisions = answers.map(({ headers }) => Number(headers['x-revision']))
    assert.equal(new Set(revisions).size, MANY, 'every patch has a revision of its own')
    answers.forEach(({ body, headers }, i) => {
      assert.equal(body.labels[`field-${i}`], String(i), 'an answer shows its own patch')
      assert.equal(headers.etag, `"${headers['x-revision']}"`)
      assert.equal(Object.keys(body.labels).length, Number(headers['x-revision']) - 1, 'and all earlier ones')
    })
    const { body } = await service.call('GET', '/clusters/one')
    assert.deepEqual(body.labels, Object.fromEntries(all.map((i) => [`field-${i}`, String(i)])))
    const history = await service.call('GET', '/clusters/one/history?limit=100')
    assert.equal(history.body[0].revision, MANY + 1)
  })

  test(`of ${MANY} patches at once of one field with one ETag exactly one wins (${name})`, async (t) => {
    const service = await start(t, open)
    for (let round = 0; round < 3; round++) {
      const { headers } = await service.call('GET', '/clusters/one')
      const etag = String(headers.etag)
      const answers = await Promise.all(
        all.map((i) =>
          service.call('PATCH', '/clusters/one', {
            body: { labels: { winner: `r${round}-${i}` } },
            headers: { 'if-match': etag },
          }),
        ),
      )
      const winners = all.filter((i) => answers[i]?.status === 200)
      assert.equal(winners.length, 1, `winners: ${winners}`)
      const losers = answers.filter(({ status }) => status === 412)
      assert.equal(losers.length, MANY - 1)
      assert.ok(losers.every(({ body }) => body.error === 'precondition_failed'))
      const { body } = await service.call('GET', '/clusters/one')
      assert.equal(body.labels.winner, `r${round}-${winners[0]}`)
      assert.equal(service.engine.state.revision, round + 2)
    }
  })

  test(`clients that read, change and write with If-Match until they win count without a loss (${name})`, async (t) => {
    const service = await start(t, open)
    const increments = 5
    async function increment(): Promise<void> {
      for (;;) {
        const { body, headers } = await service.call('GET', '/clusters/one')
        const count = String(Number(body.labels.count ?? 0) + 1)
        const { status } = await service.call('PATCH', '/clusters/one', {
          body: { labels: { count } },
          headers: { 'if-match': String(headers.etag) },
        })
        if (status === 200) return
        assert.equal(status, 412)
      }
    }
    const clients = Array.from({ length: 10 }, async () => {
      for (let i = 0; i < increments; i++) await increment()
    })
    await Promise.all(clients)
    const { body } = await service.call('GET', '/clusters/one')
    assert.equal(body.labels.count, String(10 * increments))
  })

  test(`of ${MANY} creations at once of one id exactly one wins (${name})`, async (t) => {
    const service = await start(t, open)
    const answers = await Promise.all(
      all.map((i) =>
        service.call('POST', '/namespaces', { body: { id: 'wanted', labels: { by: String(i) } } }),
      ),
    )
    const winners = all.filter((i) => answers[i]?.status === 201)
    assert.equal(winners.length, 1)
    assert.equal(answers.filter(({ status }) => status === 409).length, MANY - 1)
    const { body } = await service.call('GET', '/namespaces/wanted')
    assert.equal(body.labels.by, String(winners[0]))
  })

  test(`assigning and deleting one definition at once never leaves a reference to nothing (${name})`, async (t) => {
    const service = await start(t, open)
    for (const i of all.slice(0, 40)) {
      const id = `shaky-${i}`
      await service.call('POST', '/namespaces', { body: { id } })
      const [assigned, deleted] = await Promise.all([
        service.call('PUT', `/clusters/two/namespaces/${id}`, { body: {} }),
        service.call('DELETE', `/namespaces/${id}`),
      ])
      const outcome = `${assigned.status} ${deleted.status}`
      assert.ok(['201 409', '400 200'].includes(outcome), outcome)
    }
    const { body } = await service.call('GET', '/clusters/two')
    for (const { id } of body.namespaces) {
      assert.equal((await service.call('GET', `/namespaces/${id}`)).status, 200)
    }
  })
}
