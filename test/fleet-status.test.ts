// What clusters are doing, as their polls, reports and refusals tell it over HTTP.
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { ClusterStatus } from '../src/api/status-schema.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { READ_TOKEN, type ServiceOptions, smallFleet, startUnheld, type TestService } from './service.ts'

const START = Date.parse('2026-03-01T12:00:00Z')
const POLLS = '/api/v2/flux/clusters'
const ENDPOINTS = ['namespaces', 'platform-components', 'rolebindings']

interface Input {
  readonly id: string
  readonly digest: string
  readonly answer_digest: string
}

/** A service whose clock the test sets, and a cluster that polls and reports as Flux does. */
async function start(t: TestContext, options: ServiceOptions = {}) {
  const clock = { now: START }
  const service = await startUnheld(t, { now: () => new Date(clock.now), ...options })
  return { ...driver(service, clock), service, clock }
}

function driver({ call }: TestService, clock: { now: number }) {
  const dnsOf = (cluster: string): string => `${cluster}.k8s.example.com`
  const poll = async (cluster: string, endpoint: string, token = READ_TOKEN) =>
    call('GET', `${POLLS}/${dnsOf(cluster)}/${endpoint}`, {
      token,
      headers: { 'user-agent': 'flux-operator/v0.58.1' },
    })
  const pollAll = async (cluster: string): Promise<Record<string, Input[]>> => {
    const answers = await Promise.all(ENDPOINTS.map((endpoint) => poll(cluster, endpoint)))
    return Object.fromEntries(ENDPOINTS.map((endpoint, i) => [endpoint, answers[i]?.body.inputs]))
  }
  const report = async (cluster: string, query: string, token = READ_TOKEN) =>
    call('GET', `${POLLS}/${dnsOf(cluster)}/ack?${query}`, { token })
  return {
    poll,
    pollAll,
    report,
    /** Polls everything and reports all of it as applied and ready, but for some components. */
    async settle(cluster: string, { except = [] as string[], every = 60 } = {}) {
      const inputs = await pollAll(cluster)
      clock.now += 5000
      const query = new URLSearchParams({ v: '1', every: String(every) })
      for (const [endpoint, [first]] of Object.entries(inputs))
        if (first) query.append(endpoint, first.answer_digest)
      for (const { id, digest } of inputs['platform-components'] ?? [])
        if (!except.includes(id)) query.append('ready', `${id}:${digest}`)
      assert.equal((await report(cluster, String(query))).status, 200)
    },
    status: async (cluster: string): Promise<ClusterStatus> =>
      (await call('GET', `/clusters/${cluster}/status`, { token: READ_TOKEN })).body,
    pass: (seconds: number) => {
      clock.now += seconds * 1000
    },
  }
}

describe('contact', () => {
  test('is never before the first poll, then current, late after 1.5 intervals and offline after 3', async (t) => {
    const { settle, status, pass } = await start(t)
    assert.equal((await status('one')).contact.state, 'never')
    await settle('one', { every: 100 })
    const { contact, operator_version } = await status('one')
    assert.deepEqual(contact, {
      state: 'current',
      since: null,
      last_seen: '2026-03-01T12:00:05.000Z',
      expected_interval_s: 100,
      interval_source: 'reported',
      reason: null,
    })
    assert.equal(operator_version, '0.58.1')
    pass(149)
    assert.equal((await status('one')).contact.state, 'current')
    pass(1)
    assert.equal((await status('one')).contact.state, 'late')
    pass(149)
    assert.equal((await status('one')).contact.state, 'late')
    pass(1)
    assert.equal((await status('one')).contact.state, 'offline')
    await settle('one')
    assert.equal((await status('one')).contact.state, 'current')
  })

  test('goes by an interval that two gaps in a row agree on, where the cluster says none', async (t) => {
    const { poll, status, pass } = await start(t)
    await poll('one', 'namespaces')
    assert.equal((await status('one')).contact.interval_source, 'default')
    for (const seconds of [30, 31]) {
      pass(seconds)
      await poll('one', 'namespaces')
    }
    const { contact } = await status('one')
    assert.deepEqual([contact.expected_interval_s, contact.interval_source], [31, 'learned'])
    pass(7200)
    await poll('one', 'namespaces')
    assert.equal((await status('one')).contact.expected_interval_s, 31, 'a pause is no interval')
    for (let i = 0; i < 5; i++) {
      pass(1)
      await poll('one', 'namespaces')
    }
    assert.equal(
      (await status('one')).contact.expected_interval_s,
      31,
      'nor is a poll that is repeated at once',
    )
  })

  test('goes by a newly learned interval in lists too', async (t) => {
    const { service, poll, status, pass } = await start(t)
    const listed = async () => (await service.call('GET', '/status')).body.clusters[0].contact
    for (let i = 0; i < 3; i++) {
      pass(10)
      await poll('one', 'namespaces')
      assert.equal(await listed(), 'current')
    }
    pass(16)
    assert.deepEqual([(await status('one')).contact.state, await listed()], ['late', 'late'])
  })

  test('is refused while polls in its name fail with 401, 403 or 404, but not for a cluster that still polls', async (t) => {
    const { service, poll, pollAll, status, pass } = await start(t)
    assert.equal((await poll('one', 'namespaces', 'wrong-token')).status, 401)
    const { contact } = await status('one')
    assert.deepEqual([contact.state, contact.reason], ['refused', '401 credential_refused'])
    await pollAll('one')
    await poll('one', 'namespaces', 'wrong-token')
    assert.equal((await status('one')).contact.state, 'current', 'anybody can send a wrong token')
    pass(460)
    await poll('one', 'namespaces', 'wrong-token')
    assert.equal((await status('one')).contact.state, 'refused')
    pass(901)
    assert.equal((await status('one')).contact.state, 'offline')
    assert.equal((await poll('one', 'gone')).status, 404)
    const { state, reason } = (await status('one')).contact
    assert.deepEqual([state, reason], ['refused', '404 unknown_endpoint'])
    const { body } = await service.call('GET', '/status/attention')
    assert.match(body.clusters[0].next_step, /bootstrap one \| kubectl/)
  })

  test('outlives a restart, and time in which the service did not run counts for nobody', async (t) => {
    const store = openMemoryStore()
    const first = await start(t, { store })
    await first.settle('one')
    await first.settle('two')
    first.pass(200)
    await first.poll('one', 'namespaces')
    await first.service.engine.fleet.sync()
    await first.service.stop()
    first.pass(86_400)
    const second = await start(t, { store, now: () => new Date(first.clock.now) })
    await second.service.engine.fleet.loaded
    assert.equal((await second.status('one')).contact.state, 'current')
    assert.equal((await second.status('two')).contact.state, 'offline', 'it had been offline before')
    first.pass(100)
    assert.equal((await second.status('one')).contact.state, 'late')
  })
})

describe('delivery', () => {
  test('is behind until the present answer is served, served until it is reported, then applied', async (t) => {
    const { service, pollAll, settle, status, pass } = await start(t)
    const seen = async () => (await status('one')).endpoints['platform-components']?.delivery
    assert.equal(await seen(), 'behind')
    await pollAll('one')
    assert.equal(await seen(), 'served')
    pass(1)
    await settle('one')
    assert.equal(await seen(), 'applied')
    assert.equal((await status('one')).delivery, 'applied')
    pass(1)
    await service.call('PATCH', '/clusters/one/patches/a', { body: { replicas: '9' } })
    assert.equal(await seen(), 'behind')
    assert.equal((await status('one')).delivery, 'behind', 'the worst endpoint counts')
    assert.equal((await status('one')).endpoints.namespaces?.delivery, 'applied')
  })

  test('of an answer without inputs is applied when a report without the type comes after it', async (t) => {
    const { pollAll, report, status, pass } = await start(t)
    await pollAll('two')
    assert.equal((await status('two')).delivery, 'served')
    pass(1)
    await report('two', 'v=1')
    const { delivery, health, endpoints } = await status('two')
    assert.deepEqual([delivery, health], ['applied', 'healthy'])
    assert.deepEqual(endpoints.namespaces?.applied?.digest, null)
  })

  test('is not applied by a report of another digest, nor by one from before the answer', async (t) => {
    const { service, settle, poll, status, pass } = await start(t)
    await settle('one')
    const value = (replicas: string) => service.call('PUT', '/clusters/one/patches/a', { body: { replicas } })
    await value('5')
    await poll('one', 'platform-components')
    assert.equal((await status('one')).endpoints['platform-components']?.delivery, 'served')
    pass(1)
    await value('2')
    await poll('one', 'platform-components')
    const { delivery, applied, desired } = (await status('one')).endpoints['platform-components'] ?? {}
    assert.equal(applied?.digest, desired, 'the report is about an earlier stretch of the same answer')
    assert.equal(delivery, 'served')
    pass(1)
    await settle('one')
    assert.equal((await status('one')).delivery, 'applied')
  })

  test('counts a type that several ResourceSets make when all of them have applied it', async (t) => {
    const { pollAll, report, status, pass } = await start(t)
    const [binding] = (await pollAll('one')).rolebindings ?? []
    const digest = binding?.answer_digest
    const seen = async (query: string) => {
      pass(1)
      assert.equal((await report('one', query)).status, 200)
      return (await status('one')).endpoints.rolebindings?.delivery
    }
    assert.equal(await seen(`rolebindings=${digest}:1/2`), 'served')
    assert.equal(await seen(`rolebindings=${digest}:1/2&rolebindings=${'0'.repeat(16)}:2/2`), 'served')
    assert.equal(await seen(`rolebindings=${digest}:2/2&rolebindings=${digest}:1/2`), 'applied')
  })
})

describe('health', () => {
  test('of a component is unknown, progressing and then healthy by a report of its present digest', async (t) => {
    const { service, pollAll, settle, status, pass } = await start(t)
    const seen = async () => {
      const { components, health } = await status('one')
      return [components.a?.health, components.b?.health, health]
    }
    assert.deepEqual(await seen(), ['unknown', 'unknown', 'unknown'])
    await pollAll('one')
    assert.deepEqual(await seen(), ['progressing', 'progressing', 'progressing'])
    pass(1)
    await settle('one', { except: ['b'] })
    assert.deepEqual(await seen(), ['healthy', 'progressing', 'progressing'])
    await settle('one')
    assert.deepEqual(await seen(), ['healthy', 'healthy', 'healthy'])
    await service.call('PATCH', '/clusters/one/patches/a', { body: { replicas: '9' } })
    assert.deepEqual(await seen(), ['unknown', 'healthy', 'unknown'], 'evidence about another digest')
  })

  test('is unknown of a cluster that is offline, and of one whose reports have stopped', async (t) => {
    const { settle, poll, status, pass } = await start(t)
    await settle('one', { every: 60 })
    assert.equal((await status('one')).health, 'healthy')
    for (let i = 0; i < 4; i++) {
      pass(60)
      await poll('one', 'namespaces')
    }
    const { contact, health } = await status('one')
    assert.deepEqual([contact.state, health], ['current', 'unknown'])
    await settle('one', { every: 60 })
    pass(181)
    assert.deepEqual((await status('one')).health, 'unknown')
  })

  test('of a component that takes too long is unknown', async (t) => {
    const { settle, poll, status, pass } = await start(t)
    await settle('one', { except: ['a'], every: 300 })
    assert.equal((await status('one')).components.a?.health, 'progressing')
    for (let i = 0; i < 4; i++) {
      pass(299)
      await poll('one', 'platform-components')
    }
    assert.equal((await status('one')).components.a?.health, 'unknown')
  })

  test('is not of components that are disabled', async (t) => {
    const { service, settle, status } = await start(t)
    await service.call('PATCH', '/clusters/one/platform_components/b', { body: { enabled: false } })
    await settle('one')
    const { components, health } = await status('one')
    assert.deepEqual(Object.keys(components), ['a'])
    assert.equal(health, 'healthy')
  })
})

describe('the fleet', () => {
  test('is counted by state and environment, filtered, sorted and paged', async (t) => {
    const { service, settle } = await start(t)
    const list = async (query: string) => {
      const answer = await service.call('GET', `/status?${query}`, { token: READ_TOKEN })
      assert.equal(answer.status, 200, answer.text)
      return answer
    }
    await settle('one')
    const { body, headers } = await list('sort=contact')
    assert.equal(body.total, 2)
    assert.deepEqual(
      body.clusters.map(({ cluster }: { cluster: string }) => cluster),
      ['two', 'one'],
    )
    assert.deepEqual([body.counts.contact.current, body.counts.contact.never], [1, 1])
    assert.deepEqual(body.environments.dev.health.healthy, 1)
    assert.deepEqual(body.operator_versions, { '0.58.1': 1, unknown: 1 })
    assert.equal(headers['x-total-count'], '2')
    assert.deepEqual((await list('contact=never')).body.total, 1)
    assert.deepEqual((await list('environment=prod&health=unknown')).body.clusters[0].cluster, 'two')
    assert.deepEqual((await list('selector=environment%3Ddev')).body.total, 1)
    const page = await list('limit=1&offset=1')
    assert.deepEqual([page.body.total, page.body.clusters.length], [2, 1])
    for (const wrong of ['contact=gone', 'sort=name', 'limit=-1', 'selector=%3D'])
      assert.equal((await service.call('GET', `/status?${wrong}`)).status, 400, wrong)
  })

  test('is seen by viewers, and a cluster sees itself alone', async (t) => {
    const { service } = await start(t)
    const made = await service.call('POST', '/tokens', {
      body: { name: 'one', role: 'cluster', cluster: 'one' },
    })
    const { secret } = made.body
    const as = async (path: string, token: string) => (await service.call('GET', path, { token })).status
    assert.equal(await as('/clusters/one/status', secret), 200)
    assert.equal(await as('/clusters/two/status', secret), 403)
    assert.equal(await as('/status', secret), 403)
    assert.equal(await as('/clusters/none/status', READ_TOKEN), 404)
  })

  test('is told in read-only mode too', async (t) => {
    const { service, settle } = await start(t, { mode: 'read-only' })
    await settle('one')
    const { body } = await service.call('GET', '/clusters/one/status', { token: READ_TOKEN })
    assert.equal(body.health, 'healthy')
  })
})

describe('a report', () => {
  test('of what nobody was served is answered and counts for nothing', async (t) => {
    const { report, status } = await start(t)
    const {
      status: code,
      text,
      headers,
    } = await report('one', `v=2&new=1&namespaces=${'f'.repeat(16)}&ready=zz:${'0'.repeat(16)}`)
    assert.deepEqual([code, text], [200, '{"inputs":[]}'])
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal((await status('one')).delivery, 'behind')
  })

  test('with two digests of one type or component says nothing of it: the mark before is being removed', async (t) => {
    const { pollAll, report, status, pass } = await start(t)
    const { namespaces: [namespace] = [], 'platform-components': [a] = [] } = await pollAll('one')
    const other = '0123456789abcdef'
    const send = async (query: string) => {
      pass(1)
      assert.equal((await report('one', query)).status, 200, query)
      const { endpoints, components } = await status('one')
      return [endpoints.namespaces?.delivery, components.a?.health]
    }
    const applied = `namespaces=${namespace?.answer_digest}`
    const ready = `ready=a:${a?.digest}`
    assert.deepEqual(await send(`${applied}&namespaces=${other}&${ready}&ready=a:${other}`), [
      'served',
      'progressing',
    ])
    assert.deepEqual(await send(`${applied}&${ready}&${ready}`), ['applied', 'healthy'])
  })

  test('of a part speaks of the components alone whose hashed id begins with it', async (t) => {
    const { pollAll, report, status, pass } = await start(t)
    const { 'platform-components': [a, b] = [] } = await pollAll('one')
    const send = async (query: string) => {
      pass(1)
      assert.equal((await report('one', query)).status, 200, query)
      const { components } = await status('one')
      return [components.a?.health, components.b?.health]
    }
    // SHA-256 of "a" begins with ca, that of "b" with 3e.
    assert.deepEqual(await send(`part=c&ready=a:${a?.digest}`), ['healthy', 'progressing'])
    assert.deepEqual(await send(`part=3e&ready=b:${b?.digest}`), ['healthy', 'healthy'])
    assert.deepEqual(await send('part=3f'), ['healthy', 'healthy'])
    assert.deepEqual(await send('part=ca'), ['progressing', 'healthy'])
    assert.deepEqual(await send('v=1'), ['progressing', 'progressing'], 'without a part it speaks of all')
  })

  test('that is not well formed is refused, and changes nothing', async (t) => {
    const { report, settle, status } = await start(t)
    await settle('one')
    const before = await status('one')
    const digest = '0123456789abcdef'
    for (const [query, path] of [
      ['namespaces=ABCDEF0123456789', '?namespaces'],
      ['namespaces=12', '?namespaces'],
      [`namespaces=${digest}:0/2`, '?namespaces'],
      ['part=xyz', '?part'],
      ['ready=a', '?ready'],
      [`ready=:${digest}`, '?ready'],
      ['ready=a:xyz', '?ready'],
      ['every=0', '?every'],
      ['every=-5', '?every'],
      ['every=99999999', '?every'],
    ] as const) {
      const { status: code, body } = await report('one', query)
      assert.deepEqual([code, body.details?.[0]?.path], [400, path], query)
    }
    assert.deepEqual(await status('one'), before)
  })

  test('is for the cluster itself: others are refused, unknown names not found, deleted clusters answered', async (t) => {
    const { service, report } = await start(t)
    const made = await service.call('POST', '/tokens', {
      body: { name: 'one', role: 'cluster', cluster: 'one' },
    })
    assert.equal((await report('one', 'v=1', made.body.secret)).status, 200)
    assert.equal((await report('two', 'v=1', made.body.secret)).status, 403)
    assert.equal((await report('nobody', 'v=1')).status, 404)
    await service.call('DELETE', '/clusters/two')
    assert.equal((await report('two', 'v=1')).status, 200)
  })

  test('never changes what is served', async (t) => {
    const { report, poll } = await start(t)
    const before = await poll('one', 'platform-components')
    await report('one', `platform-components=${'0'.repeat(16)}`)
    assert.equal((await poll('one', 'platform-components')).text, before.text)
  })
})

test('replicas know of each other what clusters told them', async (t) => {
  const store = openMemoryStore()
  // A store of several processes has to be asked for what others wrote.
  const { isPrivate: _isPrivate, ...shared } = store
  const one = await start(t, { store: shared })
  const other = await start(t, { store: shared, fleet: smallFleet() }).catch((error) => error)
  if (other instanceof Error) throw other
  await one.settle('one')
  await one.service.engine.fleet.sync()
  await other.service.engine.fleet.sync()
  assert.equal((await other.status('one')).health, 'healthy')
  other.clock.now = one.clock.now + 1000
  await other.poll('one', 'namespaces')
  await other.service.engine.fleet.sync()
  await one.service.engine.fleet.sync()
  const seen = (await one.status('one')).contact.last_seen
  assert.equal(seen, new Date(other.clock.now).toISOString())
})

test('transitions are kept, newest first, and outlive a restart', async (t) => {
  const store = openMemoryStore()
  const { service, settle, status, pass } = await start(t, { store })
  const look = () => service.call('GET', '/status', { token: READ_TOKEN })
  await look()
  await settle('one')
  await look()
  pass(1000)
  await look()
  await service.engine.fleet.sync()
  const { transitions, contact } = await status('one')
  assert.deepEqual(
    transitions.map(({ kind, from, to }) => [kind, from, to]),
    [
      ['health', 'healthy', 'unknown'],
      ['contact', 'current', 'offline'],
      ['health', 'unknown', 'healthy'],
      ['delivery', 'behind', 'applied'],
      ['contact', 'never', 'current'],
    ],
  )
  assert.equal(contact.since, transitions[1]?.time)
  await service.stop()
  const later = await start(t, { store })
  assert.deepEqual((await later.status('one')).transitions, transitions)
})
