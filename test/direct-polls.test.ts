// Polls that are answered on the socket itself: nobody can tell them from those that node:http answers.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { READ_TOKEN, smallFleet, startService, startUnheld, type TestService, waitFor } from './service.ts'

const PATH = '/api/v2/flux/clusters/one.k8s.example.com/platform-components'
const AUTHORISED = `Authorization: Bearer ${READ_TOKEN}`
const FLUX = ['Host: x', 'User-Agent: flux-operator/v0.58.1', 'Accept: application/json', AUTHORISED]
const PROXY = [...FLUX, 'X-Forwarded-For: 10.1.2.3']
/** Without meaning here, and unknown to whoever reads only polls: node:http has to read the request. */
const UNKNOWN = 'X-Unknown: 1'

function get(path: string, headers: readonly string[]): string {
  return `GET ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`
}

function open({ app }: TestService): Socket {
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
  return socket.setNoDelay(true).on('error', () => {})
}

/** All that comes until the service closes the connection, or has sent so many answers. */
async function read(socket: Socket, answers = Number.POSITIVE_INFINITY): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let received = ''
  const take = (bytes: Buffer): void => {
    received += bytes.toString('latin1')
    if (countAnswers(received) >= answers) resolve()
  }
  socket.on('data', take).once('close', resolve)
  await promise
  socket.off('data', take)
  return received
}

/** How many answers have come as a whole. */
function countAnswers(received: string): number {
  let count = 0
  for (let start = 0; ; count++) {
    const end = received.indexOf('\r\n\r\n', start)
    if (end < 0) return count
    start = end + 4 + Number(/Content-Length: (\d+)/i.exec(received.slice(start, end))?.[1] ?? 0)
    if (start > received.length) return count
  }
}

/** Requests that node:http was given: whoever answers on the socket emits none. */
function countNodes({ app }: TestService): () => number {
  let count = 0
  app.server.prependListener('request', () => {
    count++
  })
  return () => count
}

function withoutDate(answer: string): string {
  assert.match(answer, /\r\nDate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n/)
  return answer.replace(/\r\nDate: [^\r]*/g, '')
}

/** What is served a second time is compressed, and then sent so. */
async function fillCache(service: TestService, headers: readonly string[]): Promise<void> {
  const texts = new Set<string>()
  for (let i = 0; !texts.has('compressed'); i++) {
    const socket = open(service)
    socket.write(get(PATH, headers))
    const answer = await read(socket, 1)
    const [head = '', body = ''] = answer.split('\r\n\r\n', 2)
    const isPacked = head.includes('Content-Encoding: gzip')
    assert.equal(isPacked, /ETag: "[^"]*-gzip"/.test(head))
    const bytes = Buffer.from(answer.slice(head.length + 4), 'latin1')
    texts.add(isPacked ? gunzipSync(bytes).toString('latin1') : body)
    assert.equal(texts.size, 1)
    if (isPacked) texts.add('compressed')
    else assert.ok(i < 100, 'is never compressed')
  }
}

test('an answer on the socket is byte for byte that of node:http, for Flux and for proxies', async (t) => {
  const fleet = smallFleet()
  const [one, two] = fleet.clusters
  const umlauts = { ...fleet, clusters: [{ ...one, patches: { a: { motd: 'Grüße' } } }, two] }
  for (const content of [fleet, umlauts]) {
    const service = await startUnheld(t, { fleet: content })
    const nodes = countNodes(service)
    const gzip = [...FLUX, 'Accept-Encoding: gzip']
    await fillCache(service, gzip)
    for (const headers of [FLUX, PROXY, [...FLUX, 'Via: 1.1 proxy'], ['Host: x', AUTHORISED], gzip])
      for (const path of [
        PATH,
        PATH.replace('platform-components', 'namespaces'),
        PATH.replace('one', 'two'),
      ]) {
        const before = nodes()
        const direct = open(service)
        direct.write(get(path, headers))
        const ours = await read(direct, 1)
        assert.equal(nodes(), before)
        const other = open(service)
        other.write(get(path, [...headers, UNKNOWN]))
        assert.equal(withoutDate(ours), withoutDate(await read(other, 1)))
        assert.equal(nodes(), before + 1)
      }
  }
})

test('what is not plainly a poll that memory answers is answered by node:http', async (t) => {
  const service = await startUnheld(t)
  const nodes = countNodes(service)
  const cases: [string, RegExp][] = [
    [get(PATH.replace('one.', 'none.'), FLUX), /^HTTP\/1\.1 404 /],
    [get(PATH.replace('platform-components', 'nothing'), FLUX), /^HTTP\/1\.1 404 /],
    [get(PATH, ['Host: x', 'Authorization: Bearer wrong']), /^HTTP\/1\.1 401 /],
    [get(PATH, ['Host: x']), /^HTTP\/1\.1 401 /],
    [get(PATH, [...FLUX, 'Host: y']), /^HTTP\/1\.1 400 /],
    [get(PATH, [AUTHORISED]), /^HTTP\/1\.1 400 /],
    [get(`${PATH}?min_revision=1`, FLUX), /^HTTP\/1\.1 200 /],
    [get(PATH, [...FLUX, 'If-None-Match: *']), /^HTTP\/1\.1 304 /],
    [get(PATH, [...FLUX, 'Connection: close']), /^HTTP\/1\.1 200 .*\r\nConnection: close\r\n/s],
    [get('/health', ['Host: x', 'Connection: close']), /^HTTP\/1\.1 200 /],
    [`HEAD ${PATH} HTTP/1.1\r\n${FLUX.join('\r\n')}\r\n\r\n`, /^HTTP\/1\.1 200 [^{]*$/],
    [`GET ${PATH} HTTP/1.0\r\n${FLUX.join('\r\n')}\r\n\r\n`, /^HTTP\/1\.1 200 /],
    [get(PATH, [...FLUX, 'Content-Length: 3']), /^HTTP\/1\.1 200 /],
    [get(PATH, [...FLUX, 'X-Real-IP:1']), /^HTTP\/1\.1 200 /],
    [get(PATH, [...FLUX, ' folded']), /^HTTP\/1\.1 400 /],
    [get(PATH, FLUX).replaceAll('\r\n', '\n'), /^HTTP\/1\.1 400 /],
    ['nonsense\r\n\r\n', /^HTTP\/1\.1 400 /],
  ]
  for (const [request, expected] of cases) {
    const socket = open(service)
    socket.write(request)
    const before = nodes()
    const answer = await Promise.race([read(socket), sleep(300).then(() => '')])
    if (answer !== '') assert.match(answer, expected, request)
    else {
      // The connection is kept: what came is in the answer to the same request without that.
      socket.destroy()
      assert.equal(nodes(), before + 1, request)
    }
  }
})

test('a kept connection may change between polls and other requests, and every answer comes in its turn', async (t) => {
  const service = await startUnheld(t)
  const nodes = countNodes(service)
  const socket = open(service)
  const ask = async (request: string): Promise<string> => {
    socket.write(request)
    return read(socket, 1)
  }
  for (let i = 0; i < 3; i++) assert.match(await ask(get(PATH, PROXY)), /^HTTP\/1\.1 200 /)
  assert.equal(nodes(), 0)
  assert.match(await ask(get(PATH, [...PROXY, UNKNOWN])), /^HTTP\/1\.1 200 /)
  assert.match(await ask(get(PATH, PROXY)), /^HTTP\/1\.1 200 /)
  assert.equal(nodes(), 2)
})

test('polls in any pieces, and several at once, get the same answers as one by one', async (t) => {
  const service = await startUnheld(t)
  const request = get(PATH, PROXY)
  const alone = open(service)
  alone.write(request)
  const expected = withoutDate(await read(alone, 1))
  alone.destroy()
  const cuts = fc.array(fc.nat(3 * request.length), { maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 3 }), cuts, fc.boolean(), async (count, places, pauses) => {
      const all = request.repeat(count)
      const socket = open(service)
      const ends = [...new Set([...places.filter((at) => at < all.length), all.length])].sort((a, b) => a - b)
      const received = read(socket, count)
      let start = 0
      for (const end of ends) {
        socket.write(all.slice(start, end))
        start = end
        if (pauses) await sleep(1)
      }
      assert.equal(withoutDate(await received), expected.repeat(count))
      socket.destroy()
    }),
    { numRuns: 60 },
  )
})

test('a connection on which nothing comes is refused in time, and one that is kept is closed when the service stops', async (t) => {
  const service = await startService({ limits: { headersMs: 200 } })
  t.after(() => service.stop())
  const silent = open(service)
  assert.match(await read(silent), /^HTTP\/1\.1 408 /)
  const kept = open(service)
  kept.write(get(PATH, PROXY))
  await read(kept, 1)
  const closed = once(kept, 'close')
  await service.app.close()
  await closed
})

test('what a poll on the socket was served, and when its token was used, is noted', async (t) => {
  const service = await startUnheld(t)
  const made = await service.call('POST', '/tokens', {
    body: { name: 'one', role: 'cluster', cluster: 'one' },
  })
  assert.equal(made.status, 201)
  const nodes = countNodes(service)
  const socket = open(service)
  const ownToken = FLUX.map((line) =>
    line === AUTHORISED ? `Authorization: Bearer ${made.body.secret}` : line,
  )
  socket.write(get(PATH, ownToken))
  assert.match(await read(socket), /^HTTP\/1\.1 200 /)
  assert.equal(nodes(), 0)
  const { body } = await service.call('GET', '/clusters/one/status')
  assert.match(JSON.stringify(body), /platform-components/)
  await waitFor('the use', async () => {
    const { body: token } = await service.call('GET', `/tokens/${made.body.id}`)
    return JSON.stringify(token).includes('127.0.0.1')
  })
})
