// A route that nobody guards does nothing for somebody unknown: it fails.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import { identityOf } from './identity.ts'

test('a route outside of the scope that requires access fails instead of acting for somebody unknown', async (t) => {
  const app = Fastify()
  t.after(() => app.close())
  app.decorateRequest('identity', undefined)
  app.get('/stray', (request) => ({ actor: identityOf(request).name }))
  const answer = await app.inject('/stray?secret=1')
  assert.equal(answer.statusCode, 500)
  assert.match(answer.json().message, /^GET \/stray is outside of the scope that requires access$/)
})
