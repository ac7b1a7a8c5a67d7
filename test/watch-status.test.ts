// Changes of clusters in the stream of revisions, for those who ask for them.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { fleetOf, ReportingCluster, startWatched, type Watched } from './reporting-clusters.ts'
import { READ_TOKEN, waitFor } from './service.ts'

/** The events of a stream, each as its lines. */
async function watch(t: TestContext, { service }: Watched, query: string) {
  const headers = { authorization: `Bearer ${READ_TOKEN}` }
  const sent = request(`${service.url}/watch${query}`, { headers, agent: false }).end()
  t.after(() => sent.destroy())
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  assert.equal(response.statusCode, 200)
  let text = ''
  response.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  response.on('error', () => {})
  return () =>
    text
      .split('\n\n')
      .slice(0, -1)
      .filter((block) => block.includes('data:'))
}

async function begin(t: TestContext): Promise<Watched & { one: ReportingCluster }> {
  const watched = await startWatched({ fleet: fleetOf({ one: {} }) })
  t.after(() => watched.service.stop())
  const one = new ReportingCluster(watched.service, 'one')
  await one.settle()
  await watched.service.engine.fleet.refresh()
  return { ...watched, one }
}

test('whoever asks for it sees how clusters change, without an id that would pass for a revision', async (t) => {
  const watched = await begin(t)
  const { service } = watched
  const [asking, other] = [await watch(t, watched, '?status=true'), await watch(t, watched, '')]
  await waitFor('both are live', async () => {
    const { text } = await service.call('GET', '/metrics')
    return text.includes('flux_resourceset_watchers 2\n')
  })
  const body = { oci_tag: 'v2.0.0' }
  assert.equal((await service.call('PATCH', '/platform_components/a', { body })).status, 200)
  await waitFor('the revision is seen', () => other().length === 1 && asking().length === 1)
  await service.engine.fleet.refresh()
  await waitFor('the change is seen', () => asking().length === 3)
  const [revision, ...changes] = asking()
  assert.match(revision ?? '', /^id: 2\nevent: revision\n/)
  const time = new Date(watched.now()).toISOString()
  const change = (kind: string, from: string, to: string) =>
    `event: status\ndata: ${JSON.stringify({ cluster: 'one', kind, from, to, time })}`
  assert.deepEqual(changes, [change('delivery', 'applied', 'behind'), change('health', 'healthy', 'unknown')])
  assert.equal(other().length, 1)
})

test('a token that may not read gets no status, and neither does a word that is no flag', async (t) => {
  const { service } = await begin(t)
  const made = await service.call('POST', '/tokens', { body: { name: 'copy', role: 'mirror' } })
  assert.equal(made.status, 201)
  const refused = await service.call('GET', '/watch?status=true', { token: made.body.secret })
  assert.deepEqual([refused.status, refused.body.reason], [403, 'needs_viewer'])
  assert.equal((await service.call('GET', '/watch?status=yes')).status, 400)
})

test('whoever asks for changes of clusters and does not read them is dropped', async (t) => {
  const ids = Array.from({ length: 200 }, (_, i) => `cluster-${i}`)
  const fleet = fleetOf(Object.fromEntries(ids.map((id) => [id, {}])))
  const watched = await startWatched({ fleet, limits: { unsentBytes: 10_000 } })
  const { service } = watched
  t.after(() => service.stop())
  const metric = async (name: string) => {
    const { text } = await service.call('GET', '/metrics')
    return Number(new RegExp(`^flux_resourceset_${name} (\\d+)$`, 'm').exec(text)?.[1])
  }
  const idle = connect(Number(new URL(service.url).port), '127.0.0.1').pause()
  t.after(() => idle.destroy())
  idle.write(`GET /watch?status=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${READ_TOKEN}\r\n\r\n`)
  await waitFor('it has begun', async () => (await metric('watchers')) === 1)
  const { fleet: known } = service.engine.fleet
  await service.engine.fleet.refresh()
  for (let round = 0; round < 2000 && (await metric('dropped_watchers_total')) === 0; round++) {
    for (const id of ids) known.notePoll(id, 'namespaces', undefined, 1, undefined, 'test')
    await service.engine.fleet.refresh()
    // No two gaps agree, so that no interval is learned.
    watched.pass(round % 2 ? 10_000 : 100_000)
    await service.engine.fleet.refresh()
  }
  assert.equal(await metric('dropped_watchers_total'), 1)
  assert.equal(await metric('watchers'), 0)
})
