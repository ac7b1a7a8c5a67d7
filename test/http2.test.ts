import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from 'node:http2'
import { get } from 'node:https'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import { createAuthority } from './certificates.ts'
import { start } from './every-store.ts'
import { READ_TOKEN, type TestService, WRITE_TOKEN } from './service.ts'

const POLL = '/api/v2/flux/clusters/one.k8s.example.com/platform-components'

async function startHttp2(t: TestContext): Promise<{
  service: TestService
  ca: string
  session: ClientHttp2Session
  client: { cert: string; key: string }
}> {
  const authority = await createAuthority('fleet')
  const server = await authority.issue({ ipAddresses: ['127.0.0.1'], server: true })
  const client = await authority.issue({ dnsNames: ['one.k8s.example.com'], client: true })
  const tls = {
    ...server,
    ca: authority.pem,
    minVersion: 'TLSv1.2',
    requestCert: true,
    rejectUnauthorized: false,
  } as const
  const service = await start(t, { transport: { tls, http2: true } })
  const session = connect(service.url.replace('http:', 'https:'), { ca: authority.pem, ...client })
  t.after(() => session.close())
  return { service, ca: authority.pem, session, client }
}

async function call(
  session: ClientHttp2Session,
  headers: Record<string, string>,
  body?: object,
): Promise<{ headers: IncomingHttpHeaders; text: string }> {
  const stream = session.request({ ...headers, ...(body && { 'content-type': 'application/json' }) })
  stream.end(body && JSON.stringify(body))
  const [answer] = (await once(stream, 'response')) as [IncomingHttpHeaders]
  const chunks = await stream.toArray()
  return { headers: answer, text: Buffer.concat(chunks).toString() }
}

test('polls, reads and writes go over HTTP/2 as over HTTP/1.1', async (t) => {
  const { service, session, ca } = await startHttp2(t)
  const read = { authorization: `Bearer ${READ_TOKEN}` }
  const poll = await call(session, { ...read, ':path': POLL, 'user-agent': 'flux-operator/v0.58.1' })
  assert.equal(poll.headers[':status'], 200)
  const old = get(service.url.replace('http:', 'https:') + POLL, { ca, headers: read, agent: false })
  const [response] = (await once(old, 'response')) as [IncomingMessage]
  assert.equal(response.httpVersion, '1.1')
  assert.equal(poll.text, Buffer.concat(await response.toArray()).toString())
  const write = { ':method': 'POST', ':path': '/namespaces', authorization: `Bearer ${WRITE_TOKEN}` }
  const created = await call(session, write, { id: 'by-http2' })
  assert.equal(created.headers[':status'], 201, created.text)
  assert.equal((await call(session, { ...read, ':path': '/namespaces/by-http2' })).headers[':status'], 200)
  assert.equal((await call(session, { ':path': '/clusters' })).headers[':status'], 403)
})

test('a client certificate is an identity on HTTP/2 too', async (t) => {
  const { session } = await startHttp2(t)
  assert.equal((await call(session, { ':path': POLL })).headers[':status'], 200)
  const other = POLL.replace('one', 'two')
  assert.equal((await call(session, { ':path': other })).headers[':status'], 403)
})

test('a stop ends idle sessions', async (t) => {
  const { service, session } = await startHttp2(t)
  await call(session, { ':path': POLL })
  const closed = once(session, 'close')
  await service.app.close()
  await closed
})
