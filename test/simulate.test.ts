// The fleet simulator: its checks notice every kind of wrong answer, and a real service passes them.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { JsonObject } from '../src/base/json.ts'
import type { ClusterRequest } from '../tools/simulate/exchange.ts'
import type { FleetSummary } from '../tools/simulate/fleet-figures.ts'
import { sendRequest } from '../tools/simulate/operator-request.ts'
import { Oracle, type OracleOptions } from '../tools/simulate/oracle.ts'
import { openRemoteFleet, targetOf } from '../tools/simulate/remote-fleet.ts'
import { SimulatedCluster } from '../tools/simulate/simulated-cluster.ts'
import { SimulatedFleet } from '../tools/simulate/simulated-fleet.ts'
import { serve } from './own-server.ts'
import { startUnheld, WRITE_TOKEN } from './service.ts'

const DNS = 'one.k8s.example.com'
const ENDPOINT = 'namespaces'
const EXPECTED: readonly JsonObject[] = [
  { id: 'a', labels: { team: 'x' } },
  { id: 'b', labels: {} },
]
const A = 'aaaaaaaaaaaaaaaa'
const B = 'bbbbbbbbbbbbbbbb'
const ALL = '0123456789abcdef'

function bodyOf(inputs: readonly JsonObject[]): string {
  return JSON.stringify({ inputs })
}

const GOOD = [
  { ...EXPECTED[0], digest: A, answer_digest: ALL },
  { ...EXPECTED[1], digest: B, answer_digest: ALL },
] as const

const expecting: OracleOptions = { expect: () => EXPECTED }

/** Lies of a service, and what is said of them. */
const LIES: Readonly<Record<string, readonly [body: string, problem: RegExp]>> = {
  'an empty answer': [bodyOf([]), /is empty instead of 2 inputs/],
  'a partial answer': [bodyOf([GOOD[0]]), /inputs a instead of a b/],
  'another order': [bodyOf([GOOD[1], GOOD[0]]), /inputs b a instead of a b/],
  'one input too many': [bodyOf([...GOOD, { ...GOOD[0], id: 'c', digest: ALL }]), /a b c instead of a b/],
  'a wrong value': [bodyOf([{ ...GOOD[0], labels: {} }, GOOD[1]]), /input "a" is .* instead of/],
  'a missing field': [
    bodyOf([{ id: 'a', digest: A, answer_digest: ALL }, GOOD[1]]),
    /input "a" is .* instead of/,
  ],
  'no digest': [bodyOf([{ ...EXPECTED[0], answer_digest: ALL } as JsonObject, GOOD[1]]), /has no digest/],
  'a digest in capitals': [bodyOf([{ ...GOOD[0], digest: 'ABCDEF0123456789' }, GOOD[1]]), /has no digest/],
  'no digest of the answer': [
    bodyOf([{ ...EXPECTED[0], digest: A } as JsonObject, GOOD[1]]),
    /has no answer_digest/,
  ],
  'two digests of one answer': [
    bodyOf([GOOD[0], { ...GOOD[1], answer_digest: A }]),
    /"b" has another answer_digest/,
  ],
  'one digest for two inputs': [bodyOf([GOOD[0], { ...GOOD[1], digest: A }]), /of something else/],
  'digests at another place': [
    bodyOf([{ digest: A, answer_digest: ALL, ...EXPECTED[0] } as JsonObject, GOOD[1]]),
    /does not end with its digests/,
  ],
  'no list': ['{"inputs":null}', /has no list of inputs/],
  'no JSON': ['<html>', /is no JSON/],
}

for (const [lie, [body, problem]] of Object.entries(LIES)) {
  test(`the oracle notices ${lie}, each time`, async () => {
    const oracle = new Oracle(expecting)
    for (let times = 0; times < 2; times++) {
      const problems = await oracle.check(DNS, ENDPOINT, { body })
      assert.match(problems.join('\n'), problem)
    }
  })
}

test('the oracle has nothing to say about a right answer', async () => {
  const oracle = new Oracle(expecting)
  assert.deepEqual(await oracle.check(DNS, ENDPOINT, { body: bodyOf(GOOD) }), [])
  assert.deepEqual(await oracle.check(DNS, ENDPOINT, { body: bodyOf(GOOD) }), [])
  assert.deepEqual(await new Oracle().check(DNS, ENDPOINT, { body: bodyOf([]) }), [])
})

test('equal inputs with other digests are noticed, also those of another cluster', async () => {
  const oracle = new Oracle()
  await oracle.check(DNS, ENDPOINT, { body: bodyOf(GOOD) })
  const changed = GOOD.map((input) => ({ ...input, answer_digest: A }))
  const problems = await oracle.check('two.k8s.example.com', ENDPOINT, { body: bodyOf(changed) })
  assert.match(problems.join(), /the answer has the digest a+, and had 0123456789abcdef before/)
  const [first, second] = GOOD
  const renewed = [{ ...first, digest: 'cccccccccccccccc' }, second]
  assert.match(
    (await oracle.check(DNS, ENDPOINT, { body: bodyOf(renewed) })).join(),
    /input "a" has the digest c+, and had a+ before/,
  )
})

test('where nobody changes the fleet, an answer with other bytes is wrong', async () => {
  const oracle = new Oracle({ isUnchanging: true })
  assert.deepEqual(await oracle.check(DNS, ENDPOINT, { body: bodyOf(GOOD) }), [])
  const problems = await oracle.check(DNS, ENDPOINT, { body: bodyOf([]) })
  assert.deepEqual(problems, ['the answer changed, and nothing else did'])
})

/** Polls a server for a while with one cluster whose time goes by as fast as it answers. */
async function simulate(t: TestContext, handle: RequestListener, until = 4000): Promise<FleetSummary> {
  const { url } = await serve(t, handle)
  const target = targetOf(new URL(url), 5000)
  const cluster = new SimulatedCluster({ dns: DNS, token: 'secret', endpoints: [ENDPOINT], interval: 1000 })
  let now = 0
  const fleet = new SimulatedFleet({
    clusters: [cluster],
    send: (request) => sendRequest(target, request),
    oracle: new Oracle(expecting),
    clock: () => now,
  })
  for (; fleet.dueAt <= until; now = fleet.dueAt) {
    fleet.step()
    await fleet.settle()
  }
  return fleet.figures.summary(until / 1000)
}

const isPoll = (url: string | undefined): boolean => url?.endsWith(`/${ENDPOINT}`) ?? false

test('a service that lies once in a while is found out', async (t) => {
  let polls = 0
  const summary = await simulate(t, ({ url }, response) => {
    const lies = isPoll(url) && ++polls % 3 === 0
    response.end(isPoll(url) && !lies ? bodyOf(GOOD) : '{"inputs":[]}')
  })
  assert.equal(polls, 5)
  assert.equal(summary.polls, polls)
  assert.equal(summary.wrong_answers, 1)
  assert.deepEqual(summary.wrong, [
    { dns: DNS, endpoint: ENDPOINT, problems: ['the answer is empty instead of 2 inputs'] },
  ])
})

test('failures and dropped connections are errors and no wrong answers', async (t) => {
  let requests = 0
  const summary = await simulate(t, ({ url }, response) => {
    if (!isPoll(url)) return response.end('{"inputs":[]}')
    requests++
    if (requests === 1) return response.destroy()
    return response.writeHead(requests === 2 ? 503 : 200).end(bodyOf(GOOD))
  })
  assert.deepEqual(summary.errors_by_kind.poll, { closed: 1, 503: 1 })
  assert.equal(summary.wrong_answers, 0)
})

const POLL: ClusterRequest = {
  kind: 'poll',
  endpoint: ENDPOINT,
  dns: DNS,
  token: 'secret',
  path: `/api/v2/flux/clusters/${DNS}/${ENDPOINT}`,
  dueAt: 0,
}

test('a poll is what the Flux Operator sends', async (t) => {
  let received = ''
  const server = createServer((socket) => {
    socket.on('data', (bytes) => {
      received += bytes
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')
    })
  }).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await sendRequest({ host: '127.0.0.1', port, timeoutMs: 5000 }, POLL)
  assert.deepEqual(received.split('\r\n'), [
    `GET /api/v2/flux/clusters/${DNS}/namespaces HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    'User-Agent: flux-operator/v0.58.1',
    'Accept: application/json',
    'Authorization: Bearer secret',
    'Accept-Encoding: gzip',
    '',
    '',
  ])
})

const text = bodyOf(GOOD)
const RESPONSES: Readonly<Record<string, RequestListener>> = {
  'with a length': (_, response) => response.setHeader('content-length', text.length).end(text),
  'in chunks': (_, response) => {
    response.write(text.slice(0, 10))
    setTimeout(() => response.end(text.slice(10)), 20)
  },
  packed: (_, response) => response.setHeader('content-encoding', 'gzip').end(gzipSync(text)),
  'until the connection ends': ({ socket }) => {
    socket.end(`HTTP/1.1 200 OK\r\nX-Revision: 7\r\n\r\n${text}`)
  },
}

for (const [form, handle] of Object.entries(RESPONSES)) {
  test(`an answer ${form} is read`, async (t) => {
    const { url } = await serve(t, handle)
    const answer = await sendRequest(targetOf(new URL(url), 5000), POLL)
    assert.equal(answer.kind === 'answer' && answer.body, text)
  })
}

test('an answer that is cut off is a dropped connection', async (t) => {
  const { url } = await serve(t, ({ socket }) => {
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"inputs":[]}')
  })
  const answer = await sendRequest(targetOf(new URL(url), 5000), POLL)
  assert.deepEqual(answer, { kind: 'dropped', reason: 'closed' })
})

test('a service that does not answer is a dropped connection', async (t) => {
  const { url } = await serve(t, () => {})
  const answer = await sendRequest(targetOf(new URL(url), 100), POLL)
  assert.deepEqual(answer, { kind: 'dropped', reason: 'timeout' })
})

/** A service whose polls of one endpoint arrive empty, while its readers see what should arrive. */
async function startLiar(t: TestContext): Promise<string> {
  const service = await startUnheld(t)
  const { url } = await serve(t, async (request, response) => {
    const { authorization = '' } = request.headers
    const answer = await fetch(`${service.url}${request.url}`, { headers: { authorization } })
    const isLie = /^\/api.*\/namespaces$/.test(request.url ?? '')
    response.setHeader('x-revision', answer.headers.get('x-revision') ?? '')
    response.writeHead(answer.status).end(isLie ? '{"inputs":[]}' : await answer.text())
  })
  return url
}

test('the polls of a service that is there already are compared with what its readers see', async (t) => {
  const url = await startLiar(t)
  const { clusters, target, oracle } = await openRemoteFleet({
    url,
    token: WRITE_TOKEN,
    clusters: 10,
    timeoutMs: 5000,
  })
  assert.deepEqual(clusters.map(({ dns }) => dns).sort(), ['one.k8s.example.com', 'two.k8s.example.com'])
  const problemsOf = async (dns: string, endpoint: string): Promise<string[]> => {
    const path = `/api/v2/flux/clusters/${dns}/${endpoint}`
    const answer = await sendRequest(target, { ...POLL, token: WRITE_TOKEN, dns, endpoint, path })
    assert.ok(answer.kind === 'answer' && answer.status === 200)
    return oracle.check(dns, endpoint, answer)
  }
  assert.deepEqual(await problemsOf('one.k8s.example.com', 'namespaces'), [
    'the answer is empty instead of 1 inputs',
  ])
  assert.deepEqual(await problemsOf('one.k8s.example.com', 'rolebindings'), [])
  assert.deepEqual(await problemsOf('two.k8s.example.com', 'namespaces'), [])
  assert.equal(oracle.compared, 3)
})
