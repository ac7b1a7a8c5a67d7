import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { type TestContext, test } from 'node:test'
import { startOtlpTracer } from '../src/runtime/otlp-tracer.ts'
import { serve } from './own-server.ts'
import { startService, waitFor } from './service.ts'

interface Received {
  readonly path: string | undefined
  readonly headers: IncomingHttpHeaders
  // biome-ignore lint/suspicious/noExplicitAny: tests look into what was sent
  readonly body: any
}

/** A collector that keeps what it gets; `status` says what it answers. */
async function startCollector(t: TestContext, status: () => number = () => 200) {
  const received: Received[] = []
  const { url } = await serve(t, async (request, response) => {
    const text = Buffer.concat(await request.toArray()).toString()
    received.push({ path: request.url, headers: request.headers, body: JSON.parse(text) })
    response.writeHead(status(), { 'content-type': 'application/json' }).end('{}')
  })
  // biome-ignore lint/suspicious/noExplicitAny: tests look into what was sent
  const spans = (): any[] => received.flatMap(({ body }) => body.resourceSpans[0].scopeSpans[0].spans)
  return { url, received, spans }
}

const NANO = /^\d{19}$/
const IDS = { traceId: /^[0-9a-f]{32}$/, spanId: /^[0-9a-f]{16}$/ }

function tracerTo(url: string, failed: (error: Error) => void = () => {}) {
  const resource = { 'service.name': 'flux-resourceset', 'service.version': 'test' }
  return startOtlpTracer({
    url: `${url}/v1/traces`,
    headers: { 'x-key': 'k' },
    resource,
    failed,
    flushMs: 20,
  })
}

test('a write is sent as a span with its parts, in the trace of its caller', async (t) => {
  const collector = await startCollector(t)
  const tracer = tracerTo(collector.url)
  const service = await startService({ tracer })
  t.after(() => service.stop())
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const { status, headers } = await service.call('PATCH', '/clusters/one', {
    body: { labels: { secret: 'value' } },
    headers: { traceparent },
  })
  assert.equal(status, 200)
  await tracer.stop()
  const [first] = collector.received
  assert.equal(first?.path, '/v1/traces')
  assert.equal(first?.headers['content-type'], 'application/json')
  assert.equal(first?.headers['x-key'], 'k')
  assert.deepEqual(first?.body.resourceSpans[0].resource.attributes[0], {
    key: 'service.name',
    value: { stringValue: 'flux-resourceset' },
  })
  const spans = collector.spans()
  const root = spans.find(({ kind }) => kind === 2)
  assert.equal(root.name, 'patch clusters')
  assert.equal(root.traceId, '0af7651916cd43dd8448eb211c80319c')
  assert.equal(root.parentSpanId, 'b7ad6b7169203331')
  const parts = spans.filter(({ parentSpanId }) => parentSpanId === root.spanId)
  assert.deepEqual(parts.map(({ name }) => name).sort(), [
    'commit',
    'decide',
    'wait for its turn',
    'work out the impact',
  ])
  for (const span of spans) {
    assert.match(span.traceId, IDS.traceId)
    assert.match(span.spanId, IDS.spanId)
    for (const time of [span.startTimeUnixNano, span.endTimeUnixNano]) assert.match(time, NANO)
    assert.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano))
    assert.deepEqual(span.status, {})
  }
  const attributes = Object.fromEntries(
    root.attributes.map(({ key, value }: { key: string; value: object }) => [key, Object.values(value)[0]]),
  )
  assert.equal(attributes['http.request.method'], 'PATCH')
  assert.equal(attributes['http.route'], '/clusters/:id')
  assert.equal(attributes['flux_resourceset.result'], 'done')
  assert.equal(attributes['flux_resourceset.revision'], headers['x-revision'])
  assert.equal(attributes['flux_resourceset.request_id'], headers['x-request-id'])
  assert.ok(!JSON.stringify(collector.received).includes('secret'))
})

test('a write whose caller does not record its trace is not sent, and one without a trace begins its own', async (t) => {
  const collector = await startCollector(t)
  const tracer = tracerTo(collector.url)
  const service = await startService({ tracer })
  t.after(() => service.stop())
  const patch = (n: string, traceparent: string) =>
    service.call('PATCH', '/clusters/one', { body: { labels: { n } }, headers: { traceparent } })
  await patch('1', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00')
  await patch('2', 'nonsense')
  await tracer.stop()
  const roots = collector.spans().filter(({ kind }) => kind === 2)
  assert.equal(roots.length, 1)
  assert.equal(roots[0].parentSpanId, undefined)
})

test('spans wait while the collector is away, are sent once it is back, and a failure is told once', async (t) => {
  let status = 503
  const collector = await startCollector(t, () => status)
  const failures: string[] = []
  const tracer = tracerTo(collector.url, ({ message }) => failures.push(message))
  tracer.start('write', undefined, {})?.end()
  await waitFor('two tries', () => collector.received.length >= 2)
  assert.deepEqual(failures, ['the collector answered 503'])
  status = 200
  const tries = collector.received.length
  await waitFor('another try', () => collector.received.length > tries)
  await tracer.stop()
  const taken = collector.received.slice(tries)
  assert.equal(taken.length, 1)
  assert.equal(taken[0]?.body.resourceSpans[0].scopeSpans[0].spans[0].name, 'write')
})

test('spans that a collector refuses are dropped, and a failed part says so', async (t) => {
  const collector = await startCollector(t, () => 400)
  const tracer = tracerTo(collector.url)
  const span = tracer.start('write', undefined, { share: 0.5, count: 3, is: true })
  const part = span?.child('commit')
  part?.end('the store is away')
  part?.end('a second end')
  span?.end()
  await waitFor('the spans', () => collector.received.length > 0)
  await tracer.stop()
  const spans = collector.spans()
  assert.equal(spans.length, 2)
  assert.deepEqual(spans[0].status, { code: 2, message: 'the store is away' })
  assert.deepEqual(
    spans[1].attributes.map(({ value }: { value: object }) => value),
    [{ doubleValue: 0.5 }, { intValue: '3' }, { boolValue: true }],
  )
})
