import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { suite, type TestContext, test } from 'node:test'
import { openMemoryStore } from '../src/store/memory.ts'
import { createAuthority } from './certificates.ts'
import {
  connectionsOf,
  READ_TOKEN,
  type ServiceOptions,
  smallFleet,
  startUnheld as start,
  type TestService,
  WRITE_TOKEN,
  waitFor,
} from './service.ts'

const POLL = '/api/v2/flux/clusters/one.k8s.example.com/platform-components'
const MANY = 2000
const READER = { token: READ_TOKEN }

/** The small fleet, and many clusters more. */
function largeFleet() {
  const { clusters, ...rest } = smallFleet()
  const more = Array.from({ length: MANY }, (_, i) => ({
    id: `c-${i}`,
    cluster_name: `c-${i}`,
    cluster_dns: `c-${i}.k8s.example.com`,
    environment: 'dev',
  }))
  return { ...rest, clusters: [...clusters, ...more] }
}

/** A small body that asks for as much as it can: every cluster once for each operation. */
function longPreview(operations: number): string {
  const operation = (i: number) => ({
    op: 'patch',
    type: 'clusters',
    selector: 'id',
    patch: { labels: { a: String(i) } },
  })
  return JSON.stringify({
    dry_run: true,
    operations: Array.from({ length: operations }, (_, i) => operation(i)),
  })
}

function head(method: string, path: string, token: string, more = ''): string {
  return `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n${more}\r\n`
}

function posted(path: string, token: string, body: string): string {
  const length = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
  return head('POST', path, token, length) + body
}

function openSocket(t: TestContext, { url }: TestService, localAddress = '127.0.0.1'): Socket {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress })
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  return socket
}

suite('bodies that ask for more than they hold', () => {
  const list = (item: string, megabytes: number): string =>
    `${`${item},`.repeat((megabytes * 1_000_000) / (item.length + 1))}${item}`
  const BODIES: Readonly<Record<string, readonly [body: () => string, says: RegExp]>> = {
    'a list of ones': [
      () => `{"operations":[${list('1', 4)}]}`,
      /\/operations must have at most 100000 items/,
    ],
    'a list of nothing': [
      () => `{"operations":[${list('{}', 4)}]}`,
      /\/operations must have at most 100000 items/,
    ],
    'clusters that are numbers': [
      () => `{"operations":[{"op":"delete","type":"clusters","clusters":[${list('1', 4)}]}]}`,
      /clusters must have at most 100000 items/,
    ],
    'unknown keys': [
      () =>
        `{"operations":[{"op":"delete",${Array.from({ length: 300_000 }, (_, i) => `"k${i}":1`).join()}}]}`,
      /is an unknown field|is required/,
    ],
    'a long selector': [
      () =>
        JSON.stringify({
          operations: [{ op: 'delete', type: 'clusters', selector: `id${',id'.repeat(1e6)}` }],
        }),
      /selector must NOT have more than 4096 characters/,
    ],
    'a selector with many requirements': [
      () =>
        JSON.stringify({
          operations: [{ op: 'delete', type: 'clusters', selector: `id${',id'.repeat(64)}` }],
        }),
      /has more than 64 requirements/,
    ],
    'more values than there may be': [() => `{"operations":[${list('[]', 16)}]}`, /more than 4000000 values/],
  }

  test('are refused by their length from an editor, and by their size from a viewer', async (t) => {
    const service = await start(t)
    for (const [name, [make, says]] of Object.entries(BODIES)) {
      const raw = make()
      // Whoever asks for the end of the connection is still sending when it comes.
      const headers = { connection: 'keep-alive' }
      const refused = await service.call('POST', '/batch?dry_run=true', { raw, headers })
      assert.equal(refused.status, 400, name)
      assert.match(refused.body.message, says, name)
      const asViewer = await service.call('POST', '/batch?dry_run=true', { raw, headers, ...READER })
      const isLarge = raw.length > 1024 * 1024
      assert.equal(asViewer.status, isLarge ? 413 : 400, name)
      if (isLarge) assert.match(asViewer.body.message, /from the role viewer, which is 1 MiB/)
    }
    assert.equal(service.engine.state.revision, 1)
  })

  test('hold as many mistakes as they like: the first are told', async (t) => {
    const service = await start(t)
    const labels = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`wrong key ${i}`, 'x']))
    const answer = await service.call('PATCH', '/clusters/one', { body: { labels } })
    assert.equal(answer.status, 400)
    assert.ok(answer.body.details.length <= 50)
  })

  test('make every cluster large: a write does not grow the fleet without bound', async (t) => {
    const service = await start(t, { fleet: largeFleet() })
    const patch = {
      labels: Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`key-${i}`, 'x'.repeat(20)])),
    }
    const operations = [{ op: 'patch', type: 'clusters', selector: 'id', patch }]
    const answer = await service.call('POST', '/batch', { body: { dry_run: true, operations }, ...READER })
    assert.equal(answer.status, 400)
    assert.match(answer.body.message, /makes documents longer by more than 67108864 characters/)
    assert.equal(answer.body.details[0].path, '/operations/0/selector')
  })

  test('replace every cluster many times over: a write makes so many changes and no more', async (t) => {
    const service = await start(t, { fleet: largeFleet() })
    const answer = await service.call('POST', '/batch', { raw: longPreview(150), ...READER })
    assert.equal(answer.status, 400)
    assert.match(answer.body.message, /changes documents more than 200000 times/)
  })
})

suite('previews', () => {
  test('do not hold up a write, however long they take', async (t) => {
    const service = await start(t, { fleet: largeFleet() })
    const { state } = service.engine
    const begun = Promise.withResolvers<void>()
    t.mock.method(state, 'freeze', () => {
      begun.resolve()
      return Object.getPrototypeOf(state).freeze.call(state)
    })
    const preview = service.call('POST', '/batch', { raw: longPreview(90), ...READER })
    await begun.promise
    let isDone = false
    void preview.then(() => {
      isDone = true
    })
    const write = await service.call('POST', '/namespaces', { body: { id: 'meanwhile' } })
    assert.deepEqual([write.status, isDone], [201, false])
    const { status, body } = await preview
    assert.deepEqual([status, body.base_revision, body.change_count], [200, 1, MANY + 2])
  })

  test('end when their caller has left, who then has room for others', async (t) => {
    const service = await start(t, { fleet: largeFleet() })
    // Each would go on until its time is over.
    for (let i = 0; i < 6; i++) {
      const socket = openSocket(t, service)
      await once(socket, 'connect')
      const operation = { op: 'patch', type: 'clusters', selector: 'id', patch: {} }
      const body = JSON.stringify({ dry_run: true, operations: Array(10_000).fill(operation) })
      socket.write(posted('/batch', READ_TOKEN, body))
      setTimeout(() => socket.resetAndDestroy(), 100)
    }
    const answer = await service.call('POST', '/batch', { raw: longPreview(1), ...READER })
    assert.equal(answer.status, 200)
  })
})

suite('places', () => {
  test('are not taken by half a body', async (t) => {
    const service = await start(t, { limits: { requests: 4 } })
    for (let i = 0; i < 20; i++) {
      const socket = openSocket(t, service)
      socket.write(posted('/batch', READ_TOKEN, '{"operations":[]}').slice(0, -10))
    }
    await waitFor('all are in', async () => (await connectionsOf(service)) === 20)
    assert.equal((await service.call('POST', '/namespaces', { body: { id: 'there-is-room' } })).status, 201)
  })

  test('are not taken by waiting for a revision, which each caller may do so often', async (t) => {
    const service = await start(t, { limits: { requests: 4 } })
    const url = '/whoami?min_revision=999999'
    const waits = Array.from({ length: 25 }, () => service.call('GET', url, READER))
    const first = await Promise.race(waits)
    assert.deepEqual(
      [first.status, first.body.error, first.headers['retry-after']],
      [429, 'rate_limited', '1'],
    )
    assert.equal((await service.call('GET', '/clusters')).status, 200)
    const statuses = (await Promise.all(waits)).map(({ status }) => status)
    assert.equal(statuses.filter((status) => status === 429).length, 5)
    assert.equal(statuses.filter((status) => status === 503).length, 20)
  })

  test('are not all taken by one caller, and never those for managing tokens', async (t) => {
    const store = openMemoryStore()
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const history: typeof store.history = (query) => gate.then(() => store.history(query))
    const service = await start(t, { store: { ...store, history }, limits: { requests: 8 } })
    t.after(() => open())
    const { secret } = (await service.call('POST', '/tokens', { body: { name: 'stolen', role: 'viewer' } }))
      .body
    const greedy = Array.from({ length: 10 }, () => service.call('GET', '/revisions', { token: secret }))
    const refused = await Promise.race(greedy)
    assert.deepEqual([refused.status, refused.body.error], [429, 'rate_limited'])
    // Another one with the same role has room; an administrator may take all that is left.
    assert.equal((await service.call('GET', '/clusters', READER)).status, 200)
    const reads = Array.from({ length: 6 }, () => service.call('GET', '/revisions'))
    await waitFor('it is full', async () => (await service.call('GET', '/clusters')).status === 503)
    const revoked = await service.call('DELETE', '/tokens/stolen')
    assert.equal(revoked.status, 200)
    open()
    await Promise.all([...greedy, ...reads])
    assert.equal((await service.call('GET', '/whoami', { token: secret })).status, 401)
  })

  test('bodies have their share for each caller', async (t) => {
    const service = await start(t)
    // Nine of a mebibyte each, of which all but the last byte comes.
    const sockets = Array.from({ length: 9 }, () => openSocket(t, service))
    const body = ' '.repeat(1024 * 1024)
    const heard = sockets.map(async (socket) => {
      socket.write(posted('/batch', READ_TOKEN, body).slice(0, -1))
      return String((await once(socket, 'data'))[0])
    })
    assert.match(await Promise.race(heard), /^HTTP\/1\.1 429 /)
    assert.equal((await service.call('POST', '/namespaces', { body: { id: 'room' } })).status, 201)
  })
})

suite('answers that nobody reads', () => {
  /** A list that no buffer of a connection takes whole. */
  async function startLarge(t: TestContext, options: ServiceOptions = {}): Promise<TestService> {
    const { clusters, ...rest } = largeFleet()
    const labels = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`label-${i}`, 'x'.repeat(60)]))
    return start(t, {
      fleet: { ...rest, clusters: clusters.map((each) => ({ ...each, labels })) },
      ...options,
    })
  }

  test('are cut off when they make no progress', async (t) => {
    const service = await startLarge(t, { limits: { stalledMs: 300 } })
    const socket = openSocket(t, service).pause()
    socket.write(head('GET', '/clusters?limit=5000', READ_TOKEN))
    await waitFor('it is in', async () => (await connectionsOf(service)) === 1)
    await waitFor('it is cut off', async () => (await connectionsOf(service)) === 0)
  })

  test('are the same bytes when they are read, however long they are', async (t) => {
    const service = await startLarge(t)
    const { status, body, headers, text } = await service.call('GET', '/clusters?limit=5000', READER)
    assert.equal(status, 200)
    assert.equal(headers['content-type'], 'application/json; charset=utf-8')
    assert.equal(body.length, MANY + 2)
    assert.equal(text, JSON.stringify(body))
  })

  test('wait on a connection one at a time, and who asks for more without reading is cut off', async (t) => {
    const service = await start(t)
    const few = openSocket(t, service)
    let heard = ''
    few.on('data', (chunk) => {
      heard += chunk
    })
    few.write(head('GET', POLL, READ_TOKEN).repeat(10))
    await waitFor('all are answered', () => heard.split('HTTP/1.1 200').length === 11)
    const many = openSocket(t, service).pause()
    many.write(head('GET', '/clusters', READ_TOKEN).repeat(200))
    await once(many.resume(), 'close')
    assert.equal((await service.call('GET', POLL)).status, 200)
  })

  test('of HTTP/2 are cut off as well, also when the window is shut', async (t) => {
    const authority = await createAuthority('fleet')
    const server = await authority.issue({ ipAddresses: ['127.0.0.1'], server: true })
    const tls = { ...server, minVersion: 'TLSv1.2', requestCert: false, rejectUnauthorized: false } as const
    const service = await start(t, { limits: { stalledMs: 300 }, transport: { tls, http2: true } })
    const session = connectHttp2(service.url.replace('http:', 'https:'), {
      ca: authority.pem,
      settings: { initialWindowSize: 0 },
    })
    t.after(() => session.destroy())
    session.on('error', () => {})
    const streams = Array.from({ length: 20 }, () => session.request({ ':path': '/openapi.json' }))
    for (const stream of streams) stream.on('error', () => {}).resume()
    // Whoever lives still pings.
    const alive = setInterval(() => !session.destroyed && session.ping(() => {}), 50)
    t.after(() => clearInterval(alive))
    await waitFor('all are ended', () => streams.every((stream) => stream.closed || stream.destroyed))
  })
})

suite('connections', () => {
  const isOpen = (socket: Socket): boolean => !socket.destroyed && !socket.closed

  test('of one address take half of the room, and leave the other half', async (t) => {
    const service = await start(t, { limits: { connections: 10 } })
    const greedy = Array.from({ length: 20 }, () => openSocket(t, service, '127.0.0.2').resume())
    await waitFor('five are left', () => greedy.filter(isOpen).length === 5)
    assert.equal((await service.call('GET', POLL)).status, 200)
  })

  test('of a proxy that is trusted are not counted', async (t) => {
    const trusts = (address: string): boolean => address === '127.0.0.2'
    const service = await start(t, { limits: { connections: 10, connectionsPerAddress: 2, trusts } })
    const sockets = Array.from({ length: 6 }, () => openSocket(t, service, '127.0.0.2').resume())
    await waitFor('all are in', async () => (await connectionsOf(service)) === 6)
    assert.ok(sockets.every(isOpen))
  })

  test('end with their answer when there is little room', async (t) => {
    const service = await start(t, { limits: { connections: 10, connectionsPerAddress: 10 } })
    const ask = async (): Promise<string | undefined> => {
      const { headers } = await new Promise<IncomingMessage>((resolve) => {
        const sent = request(
          service.url + POLL,
          { headers: { authorization: `Bearer ${READ_TOKEN}`, connection: 'keep-alive' } },
          resolve,
        )
        sent.end()
      })
      return headers.connection
    }
    assert.equal(await ask(), 'keep-alive')
    for (let i = 0; i < 8; i++) openSocket(t, service)
    await waitFor('there is little room', async () => (await connectionsOf(service)) >= 8)
    assert.equal(await ask(), 'close')
  })
})

test('a request with two Host headers, or without a version, is refused', async (t) => {
  const service = await start(t)
  for (const bytes of [`GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n`, 'GET /health\r\n\r\n']) {
    const socket = openSocket(t, service)
    socket.write(bytes)
    const [answer] = await once(socket, 'data')
    assert.match(String(answer), /^HTTP\/1\.1 400 /)
  }
})

test('whoever writes much does not keep an administrator from writing', async (t) => {
  const service = await start(t, { fleet: largeFleet() })
  const { secret } = (
    await service.call('POST', '/tokens', {
      body: { name: 'editor', role: 'editor', selector: 'environment=dev' },
    })
  ).body
  const operations = Array.from({ length: 40 }, (_, i) => ({
    op: 'patch',
    type: 'clusters',
    selector: 'environment=dev',
    patch: { labels: { [`l-${i}`]: 'x' } },
  }))
  const long = service.call('POST', '/batch', { body: { operations }, token: secret })
  const before = service.engine.state.revision
  const write = await service.call('POST', '/namespaces', { body: { id: 'urgent' }, token: WRITE_TOKEN })
  assert.deepEqual([write.status, write.headers['x-revision']], [201, String(before + 1)])
  const { status, headers } = await long
  assert.deepEqual([status, headers['x-revision']], [200, String(before + 2)])
})

test('links that would be longer than clients take are left out, and the count is there', async (t) => {
  const service = await start(t, { fleet: largeFleet() })
  const list = async (values: number) => {
    const selector = encodeURIComponent(`environment notin (x${',x'.repeat(values)})`)
    return service.call('GET', `/clusters?limit=1&offset=1&selector=${selector}`, READER)
  }
  const [short, long] = [await list(10), await list(1900)]
  assert.deepEqual([short.status, long.status], [200, 200])
  assert.match(String(short.headers.link), /rel="prev".*rel="next"/)
  assert.equal(long.headers.link, undefined)
  assert.equal(long.headers['x-total-count'], short.headers['x-total-count'])
})
