import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import fastify from 'fastify'
import { listen } from './listen.ts'

const HOST = '127.0.0.1'

async function get(port: number): Promise<number | undefined> {
  const [response] = (await once(request({ host: HOST, port, agent: false }).end(), 'response')) as [
    IncomingMessage,
  ]
  await response.toArray()
  return response.statusCode
}

/** Listens on a free port; `hold` is what each answer waits for. */
async function start(t: TestContext, hold: () => Promise<void> = async () => {}) {
  const app = fastify()
  let waiting = 0
  app.get('/', async () => {
    waiting++
    await hold()
    return {}
  })
  t.after(() => app.close())
  await listen(app, { host: HOST, port: 0 })
  return { app, port: (app.server.address() as AddressInfo).port, waiting: () => waiting }
}

/** Of /proc/net/tcp: sockets in the state LISTEN on a port of this machine. */
function listeningOn(port: number): number {
  const address = `:${port.toString(16).toUpperCase().padStart(4, '0')} 00000000:0000 0A`
  return readFileSync('/proc/net/tcp', 'utf8').split(address).length - 1
}

describe('a port', () => {
  test('has several sockets that listen, and answers on each of them', {
    skip: process.platform !== 'linux',
  }, async (t) => {
    const { port } = await start(t)
    assert.equal(listeningOn(port), 8)
    const statuses = await Promise.all(Array.from({ length: 64 }, () => get(port)))
    assert.deepEqual(new Set(statuses), new Set([200]))
  })

  test('is not shared with another server', async (t) => {
    const { port } = await start(t)
    const second = fastify()
    t.after(() => second.close())
    await assert.rejects(listen(second, { host: HOST, port }), { code: 'EADDRINUSE' })
  })

  test('is closed once every request is answered, whichever socket it came by', async (t) => {
    const { promise: held, resolve: go } = Promise.withResolvers<void>()
    const { app, port, waiting } = await start(t, () => held)
    const statuses = Promise.all(Array.from({ length: 32 }, () => get(port)))
    while (waiting() < 32) await setImmediate()
    let isClosed = false
    const closed = app.close().then(() => {
      isClosed = true
    })
    for (let turns = 0; turns < 20; turns++) await setImmediate()
    assert.equal(isClosed, false)
    go()
    assert.deepEqual(new Set(await statuses), new Set([200]))
    await closed
    await assert.rejects(get(port), { code: 'ECONNREFUSED' })
  })
})
