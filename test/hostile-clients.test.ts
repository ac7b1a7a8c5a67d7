import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { Writable } from 'node:stream'
import { suite, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import pino from 'pino'
import { openMemoryStore } from '../src/store/memory.ts'
import type { Store } from '../src/store/store.ts'
import { createAuthority } from './certificates.ts'
import { run } from './every-store.ts'
import {
  connectionsOf,
  READ_TOKEN,
  type ServiceOptions,
  spawnService,
  startUnheld as start,
  type TestService,
  WRITE_TOKEN,
  waitFor,
} from './service.ts'

const BASE = '/api/v2/flux/clusters'
const POLL = `${BASE}/one.k8s.example.com/platform-components`
/** A whole request that nobody is to take for one. */
const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
const HEAD = `Host: x\r\nAuthorization: Bearer ${WRITE_TOKEN}\r\nContent-Type: application/json\r\n`
const BODY = '{"id":"hostile"}'
/** How long to see whether another answer comes. */
const SETTLE_MS = 100

interface Heard {
  readonly text: string
  /** Of all answers, in their order; 100 is none. */
  readonly statuses: readonly number[]
  readonly isClosed: boolean
}

/** Says these bytes, part by part, and listens until the connection ends or has been quiet for a while. */
async function say(
  { url }: { readonly url: string },
  ...parts: readonly (string | Buffer)[]
): Promise<Heard> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  let text = ''
  let isClosed = false
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk
  })
  for (const event of ['end', 'error', 'close']) {
    socket.on(event, () => {
      isClosed = true
    })
  }
  try {
    for (const [i, part] of parts.entries()) {
      if (i > 0) await sleep(SETTLE_MS / 2)
      // What was refused already is refused.
      if (socket.writable) socket.write(part, 'latin1')
    }
    await waitFor(`something comes after ${String(parts[0]).slice(0, 100)}`, () => isClosed || text !== '')
    for (let quiet = 0; !isClosed && quiet < SETTLE_MS; ) {
      const { length } = text
      await sleep(10)
      quiet = length === text.length ? quiet + 10 : 0
    }
  } finally {
    socket.destroy()
  }
  const statuses = [...text.matchAll(/HTTP\/1\.[01] (\d{3})/g)].map(([, status]) => Number(status))
  return { text, statuses: statuses.filter((status) => status !== 100), isClosed }
}

function post(body = BODY, more = ''): string {
  return `POST /namespaces HTTP/1.1\r\n${HEAD}${more}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

function get(path: string, more = ''): string {
  return `GET ${path} HTTP/1.1\r\n${HEAD}${more}\r\n`
}

/** Sockets that are gone after the test, whatever becomes of them. */
function openSockets(t: TestContext, { url }: { readonly url: string }, count: number): Socket[] {
  const port = Number(new URL(url).port)
  const sockets = Array.from({ length: count }, () =>
    connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {}),
  )
  t.after(() => {
    for (const socket of sockets) socket.destroy()
  })
  return sockets
}

/** A store whose writes and histories wait while the gate is shut. */
function gatedStore(): { readonly store: Store; shut(): void; open(): void } {
  const store = openMemoryStore()
  let gate = Promise.withResolvers<void>()
  gate.resolve()
  return {
    shut() {
      gate = Promise.withResolvers()
    },
    open: () => gate.resolve(),
    store: {
      ...store,
      async commit(base, revision) {
        await gate.promise
        return store.commit(base, revision)
      },
      async history(query) {
        await gate.promise
        return store.history(query)
      },
    },
  }
}

async function metric({ call }: Pick<TestService, 'call'>, name: string, labels: string): Promise<number> {
  const { text } = await call('GET', '/metrics', { token: null })
  const line = text.split('\n').find((each) => each.startsWith(`${name}{${labels}} `))
  return Number(line?.split(' ')[1] ?? 0)
}

suite('requests that two could read as two different ones', () => {
  const chunked = (chunks: string, more = 'Transfer-Encoding: chunked\r\n') =>
    `POST /namespaces HTTP/1.1\r\n${HEAD}${more}\r\n${chunks}`
  const WHOLE = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`
  const withLength = (length: string) => `POST /namespaces HTTP/1.1\r\n${HEAD}${length}\r\n${BODY}${SMUGGLED}`
  const CASES: Readonly<Record<string, string>> = {
    'a length and chunks': chunked(
      `${WHOLE}${SMUGGLED}`,
      'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n',
    ),
    'chunks and a length': chunked(
      `${WHOLE}${SMUGGLED}`,
      'Transfer-Encoding: chunked\r\nContent-Length: 4\r\n',
    ),
    'two lengths': withLength('Content-Length: 16\r\nContent-Length: 5\r\n'),
    'two equal lengths': withLength('Content-Length: 16\r\nContent-Length: 16\r\n'),
    'a list of lengths': withLength('Content-Length: 16, 16\r\n'),
    'a length with a sign': withLength('Content-Length: +16\r\n'),
    'a negative length': withLength('Content-Length: -1\r\n'),
    'a length in hex': withLength('Content-Length: 0x10\r\n'),
    'a length that is a fraction': withLength('Content-Length: 16.0\r\n'),
    'no length': withLength('Content-Length:\r\n'),
    'a length beyond all numbers': withLength('Content-Length: 99999999999999999999999\r\n'),
    'a length on two lines': withLength('Content-Length: 1\r\n 6\r\n'),
    'an unknown coding': chunked(`${WHOLE}${SMUGGLED}`, 'Transfer-Encoding: xchunked\r\n'),
    'chunks that are not last': chunked(`${WHOLE}${SMUGGLED}`, 'Transfer-Encoding: chunked, identity\r\n'),
    'chunks after all': chunked(`${WHOLE}${SMUGGLED}`, 'Transfer-Encoding: identity\r\n'),
    'chunks in quotes': chunked(`${WHOLE}${SMUGGLED}`, 'Transfer-Encoding: "chunked"\r\n'),
    'chunks twice': chunked(
      `${WHOLE}${SMUGGLED}`,
      'Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\nContent-Length: 4\r\n',
    ),
    'chunks with a vertical tab': chunked(`${WHOLE}${SMUGGLED}`, 'Transfer-Encoding: \x0bchunked\r\n'),
    'a space before the colon': chunked(
      `${WHOLE}${SMUGGLED}`,
      'Transfer-Encoding : chunked\r\nContent-Length: 4\r\n',
    ),
    'a header on two lines': chunked(
      `${WHOLE}${SMUGGLED}`,
      'Transfer-Encoding:\r\n chunked\r\nContent-Length: 4\r\n',
    ),
    'a header that begins with a space': `POST /namespaces HTTP/1.1\r\n Transfer-Encoding: chunked\r\n${HEAD}\r\n${WHOLE}${SMUGGLED}`,
    'a line that ends without a carriage return': `POST /namespaces HTTP/1.1\r\n${HEAD}X: y\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n${WHOLE}`,
    'a line that ends without a line feed': `POST /namespaces HTTP/1.1\r\n${HEAD}X: y\rTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n${WHOLE}`,
    'only line feeds': post().replaceAll('\r\n', '\n'),
    'only carriage returns': `${post().replaceAll('\r\n', '\r')}\r\n\r\n`,
    'a NUL in a value': post(BODY, 'X: a\0b\r\n'),
    'a NUL in a name': post(BODY, 'X\0: a\r\n'),
    'a NUL in the path': `GET /clusters\0 HTTP/1.1\r\n${HEAD}\r\n`,
    'a header without a colon': post(BODY, 'Nonsense\r\n'),
    'a header without a name': post(BODY, ': x\r\n'),
    'a name with a space': post(BODY, 'Content Length: 4\r\n'),
    'a name with a parenthesis': post(BODY, 'X(: 4\r\n'),
    'a chunk of negative size': chunked(`-1\r\n${SMUGGLED}`),
    'a chunk with 0x': chunked(`0x10\r\n${BODY}\r\n0\r\n\r\n${SMUGGLED}`),
    'a chunk whose size ends with a space': chunked(`10 \r\n${BODY}\r\n0\r\n\r\n${SMUGGLED}`),
    'a chunk beyond all numbers': chunked(`fffffffffffffffff\r\n${BODY}\r\n0\r\n\r\n${SMUGGLED}`),
    'a chunk of another size than it says': chunked(`3\r\n${BODY}\r\n0\r\n\r\n${SMUGGLED}`),
    'a size that ends without a carriage return': chunked(`10\n${BODY}\r\n0\r\n\r\n${SMUGGLED}`),
    'an extension that ends without a carriage return': chunked(`10;x\n${BODY}\r\n0\r\n\r\n${SMUGGLED}`),
    'an extension with a NUL': chunked(`10;x\0y\r\n${BODY}\r\n0\r\n\r\n${SMUGGLED}`),
    'an extension of 20 KiB': chunked(`10;${'x'.repeat(20_000)}\r\n${BODY}\r\n0\r\n\r\n${SMUGGLED}`),
    'a length after the chunks': chunked(WHOLE.replace(/\r\n$/, `Content-Length: 4\r\n\r\n${SMUGGLED}`)),
    'HTTP/0.9': 'GET /clusters\r\n\r\n',
    'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0',
    'HTTP/9.9': `GET /clusters HTTP/9.9\r\n${HEAD}\r\n`,
    'http in small letters': `GET /clusters http/1.1\r\n${HEAD}\r\n`,
    'a tab between': `GET\t/clusters\tHTTP/1.1\r\n${HEAD}\r\n`,
    'more after the version': `GET /clusters HTTP/1.1 x\r\n${HEAD}\r\n`,
    'a method in small letters': `get /clusters HTTP/1.1\r\n${HEAD}\r\n`,
    'a method of nobody': `FETCH /clusters HTTP/1.1\r\n${HEAD}\r\n`,
    'a path without a slash': `GET clusters HTTP/1.1\r\n${HEAD}\r\n`,
    'no host': 'GET /clusters HTTP/1.1\r\n\r\n',
    'the hello of TLS': '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03',
    'a proxy that introduces itself': `PROXY TCP4 6.6.6.6 127.0.0.1 1 2\r\n${SMUGGLED}`,
    'an answer': 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
    nonsense: `${'\xff\xfe'.repeat(500)}\r\n\r\n`,
  }

  test('are refused or dropped, none of them is answered twice, and nothing is written', async (t) => {
    const service = await start(t)
    await Promise.all(
      Object.entries(CASES).map(async ([name, bytes]) => {
        const { statuses, text, isClosed } = await say(service, bytes)
        assert.ok(statuses.length <= 1, `${name}: ${text}`)
        assert.ok(
          statuses.every((status) => status >= 400 && status < 500),
          `${name}: ${text}`,
        )
        assert.ok(isClosed, `${name}: ${text}`)
        assert.doesNotMatch(text, /smuggled|hostile|\bat .*:\d+/, name)
      }),
    )
    assert.equal(service.engine.state.revision, 1)
    assert.equal((await service.call('GET', POLL)).status, 200)
    await waitFor('all connections are gone', async () => (await connectionsOf(service)) === 0)
  })

  test('are so also when they come in pieces', async (t) => {
    const service = await start(t)
    await Promise.all(
      Object.entries(CASES).map(async ([name, bytes]) => {
        const half = Math.floor(bytes.length / 2)
        const { statuses, text } = await say(service, bytes.slice(0, half), bytes.slice(half))
        assert.ok(
          statuses.every((status) => status >= 400 && status < 500),
          `${name}: ${text}`,
        )
        assert.doesNotMatch(text, /smuggled|hostile/, name)
      }),
    )
    assert.equal(service.engine.state.revision, 1)
  })

  test('but those that all read alike are taken', async (t) => {
    const service = await start(t)
    for (const bytes of [
      chunked(WHOLE),
      chunked(WHOLE, 'transfer-encoding: CHUNKED\r\n'),
      chunked(WHOLE, 'Transfer-Encoding: \t chunked \r\n'),
      chunked(WHOLE.replace('\r\n', ';name=value;other="quoted"\r\n')),
      chunked(WHOLE.replace(/\r\n\r\n$/, '\r\nX: y\r\n\r\n')),
      `\r\n\r\n${post()}`,
    ]) {
      const { statuses, text } = await say(service, bytes)
      assert.deepEqual(statuses, [201], text)
      await run(service, ['DELETE', '/namespaces/hostile'])
    }
  })
})

suite('paths and methods', () => {
  const ONE = `${BASE}/one.k8s.example.com`

  test('that are odd never lead to a poll that was not meant', async (t) => {
    const service = await start(t)
    const cases = [
      [`${ONE}/namespaces`, 200],
      [`${BASE}/%6fne.k8s.example.com/n%61mespaces`, 200],
      [`${BASE}/ONE.k8s.example.com./namespaces`, 200],
      [`/${ONE}/namespaces`, 404],
      [`${ONE}//namespaces`, 404],
      [`${ONE}/namespaces/`, 404],
      [`${ONE}/./namespaces`, 404],
      [`${ONE}/namespaces/../namespaces`, 404],
      [`${BASE}/two.k8s.example.com/../one.k8s.example.com/namespaces`, 404],
      [`${BASE}/two.k8s.example.com/%2e%2e/one.k8s.example.com/namespaces`, 404],
      [`${ONE}%2fnamespaces`, 404],
      [`${ONE}%2fnamespaces/namespaces`, 404],
      [`${ONE}/..%2fnamespaces`, 404],
      [`${ONE}/%2e%2e`, 404],
      [`${ONE}/namespaces%00`, 404],
      [`${ONE}%00/namespaces`, 404],
      [`${ONE}/namespaces%0d%0aX-Injected:%20yes`, 404],
      [`${BASE}/%250d/namespaces`, 404],
      [`${ONE}/namespaces;x=1`, 404],
      [`${ONE}/NAMESPACES`, 404],
      [`${ONE}\\namespaces`, 404],
      [`${BASE}/%zz/namespaces`, 400],
      [`${BASE}/%ff/namespaces`, 400],
      [`${BASE}/`, 404],
      [`${BASE}x`, 404],
      ['/', 404],
      ['//', 404],
      ['//evil.example.com/clusters', 404],
      ['/../../etc/passwd', 404],
      ['/docs/static/..%2f..%2f..%2fpackage.json', 404],
      ['/clusters/%2e%2e/namespaces', 404],
      ['/__proto__', 404],
      ['/clusters/__proto__', 404],
      ['/clusters/constructor/inputs/namespaces', 404],
    ] as const
    await Promise.all(
      cases.map(async ([path, expected]) => {
        const { statuses, text } = await say(service, get(path))
        assert.deepEqual(statuses, [expected], `${path}: ${text}`)
        assert.doesNotMatch(text, /^X-Injected/m, path)
      }),
    )
  })

  test('a cluster does not get at another by spelling its name', async (t) => {
    const service = await start(t)
    const { body } = await service.call('POST', '/tokens', {
      body: { name: 'one', role: 'cluster', cluster: 'one' },
    })
    const spellings = ['two', '%74wo', 'TWO', 't%77O', 'one%2f..%2ftwo', 'two%00', 'one/../two']
    const answers = spellings.map((dns) =>
      say(service, get(`${BASE}/${dns}.k8s.example.com/namespaces`).replace(WRITE_TOKEN, body.secret)),
    )
    for (const { statuses, text } of await Promise.all(answers)) {
      assert.ok(statuses.length === 1 && [403, 404].includes(statuses[0] as number), text)
      assert.doesNotMatch(text, /"inputs"/)
    }
  })

  test('a poll is answered however its URL is written', async (t) => {
    const service = await start(t)
    await Promise.all(
      [
        `http://fleet.example.com${ONE}/namespaces`,
        `http://fleet.example.com${BASE}`,
        `https://fleet.example.com${BASE}?limit=1`,
        '/%61pi/v2/flux/clusters',
        `/api/v2/%66lux/clusters/one.k8s.example.com/namespaces`,
        `${BASE}#list`,
        `${BASE}//`,
        `${BASE}//namespaces`,
      ].map(async (path) => {
        for (const bytes of [get(path), `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`]) {
          const { statuses, text } = await say(service, bytes)
          assert.equal(statuses.length, 1, `${path}: ${text}`)
          assert.ok((statuses[0] as number) < 500, text)
        }
      }),
    )
  })

  test('a URL with a host is one without', async (t) => {
    const service = await start(t)
    const { statuses, text } = await say(service, get('http://fleet.example.com/clusters/one'))
    assert.deepEqual(statuses, [200], text)
    const unknown = await say(service, `GET http://x/clusters/one HTTP/1.1\r\nHost: x\r\n\r\n`)
    assert.deepEqual(unknown.statuses, [401])
  })

  test('methods that nobody needs are refused, and nothing is echoed', async (t) => {
    const service = await start(t)
    const cases = [
      [`TRACE /clusters HTTP/1.1\r\n${HEAD}X-Secret: hush\r\n\r\n`, 405],
      [`TRACE ${POLL} HTTP/1.1\r\n${HEAD}X-Secret: hush\r\n\r\n`, 405],
      [`OPTIONS * HTTP/1.1\r\n${HEAD}\r\n`, 404],
      [`OPTIONS /clusters HTTP/1.1\r\n${HEAD}\r\n`, 405],
      [`GET * HTTP/1.1\r\n${HEAD}\r\n`, 404],
      [`PROPFIND /clusters HTTP/1.1\r\n${HEAD}\r\n`, 405],
      [`PURGE ${POLL} HTTP/1.1\r\n${HEAD}\r\n`, 405],
      [`QUERY /clusters HTTP/1.1\r\n${HEAD}\r\n`, 405],
      [
        `GET /clusters HTTP/1.1\r\n${HEAD}Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n\r\n`,
        200,
      ],
      [`GET /clusters HTTP/1.1\r\n${HEAD}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`, 200],
    ] as const
    await Promise.all(
      cases.map(async ([bytes, expected]) => {
        const { statuses, text } = await say(service, bytes)
        assert.deepEqual(statuses, [expected], `${bytes}\n${text}`)
        assert.doesNotMatch(text, /hush|test-write-token/)
      }),
    )
    const { statuses, isClosed } = await say(
      service,
      `CONNECT 127.0.0.1:22 HTTP/1.1\r\n${HEAD}\r\n`,
      SMUGGLED,
    )
    assert.deepEqual([statuses, isClosed], [[], true])
  })

  test('what is too long or too much is 431, and the next request is served', async (t) => {
    const service = await start(t)
    for (const bytes of [
      get(`/clusters/${'x'.repeat(20_000)}`),
      get(`/clusters?name=${'x'.repeat(200_000)}`),
      get(POLL, `X-Long: ${'x'.repeat(20_000)}\r\n`),
      get(POLL, `${'x'.repeat(20_000)}: y\r\n`),
      get(POLL, Array.from({ length: 5000 }, (_, i) => `X-${i}: y\r\n`).join('')),
      `GET / HTTP/1.1\r\n${'X: y\r\n'.repeat(50_000)}`,
    ]) {
      const { statuses, text, isClosed } = await say(service, bytes)
      // Who goes on sending may find the connection reset before the answer.
      assert.ok(statuses.length === 0 || (statuses.length === 1 && statuses[0] === 431), text)
      assert.ok(isClosed)
    }
    const many = Array.from({ length: 500 }, (_, i) => `X${i}:\r\n`).join('')
    assert.deepEqual((await say(service, get(POLL, many))).statuses, [200])
  })
})

suite('several requests on one connection', () => {
  test('are answered in their order, each with its own answer', async (t) => {
    const service = await start(t)
    const paths = ['/clusters/two', POLL, '/nothing', '/clusters/one', `${BASE}?limit=1`, '/whoami']
    const { text, statuses } = await say(service, paths.map((path) => get(path)).join(''))
    assert.deepEqual(statuses, [200, 200, 404, 200, 200, 200])
    const bodies = text.split(/HTTP\/1\.1 \d{3}/).slice(1)
    for (const [i, mark] of [
      '"id":"two"',
      '"inputs":[{',
      'no route GET /nothing',
      '"id":"one"',
      '"inputs":[{',
      '"name":"writer"',
    ].entries())
      assert.ok(bodies[i]?.includes(mark), `${paths[i]}: ${bodies[i]}`)
  })

  test('what stands in a body is no request', async (t) => {
    const service = await start(t)
    const length = `Content-Length: ${SMUGGLED.length}\r\n`
    const none = 'Host: x\r\n'
    const cases = [
      [`GET ${POLL} HTTP/1.1\r\n${HEAD}${length}\r\n${SMUGGLED}`, 200],
      [`GET ${POLL} HTTP/1.1\r\n${none}${length}\r\n${SMUGGLED}`, 401],
      [`GET /clusters HTTP/1.1\r\n${HEAD}${length}\r\n${SMUGGLED}`, undefined],
      [`GET /health HTTP/1.1\r\n${none}${length}\r\n${SMUGGLED}`, undefined],
      [`POST /namespaces HTTP/1.1\r\n${none}${length}\r\n${SMUGGLED}`, 401],
      [`POST /namespaces HTTP/1.1\r\n${HEAD}${length}\r\n${SMUGGLED}`, 400],
      [`POST /nothing HTTP/1.1\r\n${HEAD}${length}\r\n${SMUGGLED}`, 404],
      [`DELETE /nothing HTTP/1.1\r\n${none}${length}\r\n${SMUGGLED}`, 404],
      [`OPTIONS /clusters HTTP/1.1\r\n${none}${length}\r\n${SMUGGLED}`, 405],
    ] as const
    await Promise.all(
      cases.map(async ([first, expected]) => {
        const { statuses, text } = await say(service, first + get('/clusters/two'))
        assert.doesNotMatch(text, /smuggled/, first)
        if (expected !== undefined) assert.equal(statuses[0], expected, first)
        // The one after it is either answered as itself or not at all.
        assert.ok(statuses.length === 1 || (statuses.length === 2 && text.includes('"id":"two"')), text)
      }),
    )
  })

  test('the rest of a body that was too long is no request either', async (t) => {
    const service = await start(t)
    const body = SMUGGLED.repeat(Math.ceil(5_000_000 / SMUGGLED.length))
    const { statuses, text } = await say(service, post(body), get('/clusters/two'))
    assert.equal(statuses[0], 413)
    assert.doesNotMatch(text, /smuggled/)
    assert.ok(statuses.length === 1 || text.includes('"id":"two"'), text)
  })

  test('a bad one does not answer for the good one before it', async (t) => {
    const { store, shut, open } = gatedStore()
    const service = await start(t, { store })
    const poll = await say(service, `${get(POLL)}NONSENSE\r\n\r\n`)
    assert.match(poll.statuses.join(), /^200(?:,400)?$/)
    shut()
    const socket = openSockets(t, service, 1)[0] as Socket
    let text = ''
    socket.setEncoding('latin1').on('data', (chunk) => {
      text += chunk
    })
    socket.write(`${post()}NONSENSE\r\n\r\n`)
    await sleep(SETTLE_MS)
    open()
    await waitFor('it is written', () => service.engine.state.revision === 2)
    await waitFor('the connection ends', () => socket.readableEnded)
    assert.doesNotMatch(text, /^HTTP\/1\.1 400/)
  })

  test('a request that was answered before its end is not answered again', async (t) => {
    const service = await start(t)
    const head = 'POST /namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
    const { statuses, text, isClosed } = await say(service, head, 'ZZ\r\n\r\n')
    assert.deepEqual(statuses, [401], text)
    assert.ok(isClosed)
  })
})

test('100 is sent to those who wait for it, and one answer after it', async (t) => {
  const service = await start(t)
  const expecting = `POST /namespaces HTTP/1.1\r\n${HEAD}Expect: 100-continue\r\nContent-Length: ${BODY.length}\r\n\r\n`
  const taken = await say(service, expecting, BODY)
  assert.match(taken.text, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201/)
  assert.deepEqual(taken.statuses, [201])
  for (const [bytes, expected] of [
    [expecting.replace(WRITE_TOKEN, 'wrong'), 401],
    [expecting.replace('100-continue', 'miracles'), 417],
    [expecting.replace(/Content-Length: \d+/, 'Content-Length: 5000000'), 413],
  ] as const) {
    const { statuses, text } = await say(service, bytes)
    assert.deepEqual(statuses, [expected], text)
  }
})

test('a request that names the type of a body and has none is answered at once', async (t) => {
  const service = await start(t)
  for (const [line, expected] of [
    ['DELETE /namespaces/nope', 404],
    ['POST /clusters/one/restore', 409],
    ['POST /namespaces', 400],
    ['PATCH /clusters/one', 400],
  ] as const) {
    const { statuses, text } = await say(service, `${line} HTTP/1.1\r\n${HEAD}\r\n`)
    assert.deepEqual(statuses, [expected], `${line}: ${text}`)
  }
})

test('a body that is too long is 413, whether it says so or not, and the connection can go on', async (t) => {
  const service = await start(t)
  const piece = 'x'.repeat(100_000)
  const chunks = `${piece.length.toString(16)}\r\n${piece}\r\n`.repeat(50)
  const head = `POST /namespaces HTTP/1.1\r\n${HEAD}`
  const sent = [
    `${head}Content-Length: 5000000\r\n\r\n${piece.repeat(50)}`,
    `${head}Transfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`,
  ]
  for (const bytes of sent) {
    const { statuses, text } = await say(service, bytes, get('/clusters/one'))
    assert.equal(statuses[0], 413, text)
    assert.ok(statuses.length === 1 || statuses[1] === 200, text)
  }
  // Whoever only threatens with a body gets to hear it at once.
  for (const length of ['4194305', '9007199254740991']) {
    const { statuses, text } = await say(service, `${head}Content-Length: ${length}\r\n\r\n`)
    assert.deepEqual(statuses, [413], text)
  }
  assert.equal(service.engine.state.revision, 1)
})

suite('failed logins', () => {
  const statusOf = async (service: TestService, token: string, headers = {}) =>
    (await service.call('GET', POLL, { token, headers })).status

  test('1,000 from one address: 30 are told, all others wait, and who has a valid token notices nothing', async (t) => {
    let now = Date.parse('2026-01-01T00:00:00Z')
    const lines: string[] = []
    const sink = new Writable({
      write(chunk, _, done) {
        lines.push(String(chunk))
        done()
      },
    })
    const options = { now: () => new Date(now), maxAuthFailures: 30, log: pino({ level: 'warn' }, sink) }
    const service = await start(t, options)
    const found = { 401: 0, 429: 0 }
    for (let i = 0; i < 1000; i++) {
      const path = ['/clusters', POLL, BASE, '/whoami'][i % 4] as string
      const { status, headers, body } = await service.call('GET', path, { token: `guess-${i}` })
      assert.ok(status === 401 || status === 429, String(status))
      assert.equal(status, i < 30 ? 401 : 429, String(i))
      found[status]++
      if (status === 429) {
        assert.equal(body.error, 'rate_limited')
        assert.equal(headers['retry-after'], '60')
      }
      if (i % 50 === 0) {
        for (const token of [READ_TOKEN, WRITE_TOKEN]) assert.equal(await statusOf(service, token), 200)
        assert.equal((await service.call('GET', POLL, { token: null })).status, 401)
      }
    }
    assert.deepEqual(found, { 401: 30, 429: 970 })
    await run(service, ['POST', '/namespaces', { id: 'still-writes' }])
    assert.equal(
      await metric(service, 'flux_resourceset_authentication_failures_total', 'reason="unknown"'),
      1000,
    )
    // The log can still be read, and holds no guess.
    assert.equal(lines.length, 31, lines.join(''))
    assert.doesNotMatch(lines.join(''), /guess/)
    now += 59_000
    const late = await service.call('GET', POLL, { token: 'guess' })
    assert.deepEqual([late.status, late.headers['retry-after']], [429, '1'])
    now += 1000
    assert.equal(await statusOf(service, 'guess'), 401)
  })

  test('of one credential are counted over all addresses', async (t) => {
    const service = await start(t, { trustedProxies: ['127.0.0.1'], maxAuthFailures: 30 })
    const from = (i: number) => ({ 'x-forwarded-for': `192.0.2.${i}` })
    for (let i = 0; i < 40; i++)
      assert.equal(await statusOf(service, 'leaked-and-revoked', from(i)), i < 30 ? 401 : 429, String(i))
    assert.equal(await statusOf(service, 'another', from(1)), 401)
    assert.equal(await statusOf(service, READ_TOKEN, from(1)), 200)
  })

  test('of IPv6 are counted by network, for one customer has 2^64 addresses', async (t) => {
    const service = await start(t, { trustedProxies: ['127.0.0.1'], maxAuthFailures: 5 })
    const fail = (address: string, i: number) =>
      statusOf(service, `guess-${address}-${i}`, { 'x-forwarded-for': address })
    const own = [
      '2001:db8:1:2::1',
      '2001:db8:1:2::2',
      '2001:db8:1:2:3:4:5:6',
      '2001:db8:1:2:ffff::',
      '2001:db8:1:2::9',
    ]
    for (const [i, address] of own.entries()) assert.equal(await fail(address, i), 401)
    for (const address of ['2001:db8:1:2::ffff', '2001:db8:1:2:1:1:1:1'])
      assert.equal(await fail(address, 0), 429, address)
    for (const address of ['2001:db8:1:3::1', '2001:db8::1:2:0:0', '2001:db8:1::2']) {
      assert.equal(await fail(address, 0), 401, address)
    }
  })

  test('with a header that is neither Bearer nor Basic count, without any header they do not', async (t) => {
    const service = await start(t, { maxAuthFailures: 2 })
    const ask = async (headers: Record<string, string>) =>
      (await service.call('GET', POLL, { token: null, headers })).status
    for (let i = 0; i < 5; i++) assert.equal(await ask({}), 401)
    const found: number[] = []
    for (let i = 0; i < 4; i++) found.push(await ask({ authorization: `Digest ${i}` }))
    assert.deepEqual(found, [401, 401, 429, 429])
    assert.equal(await ask({}), 401)
  })
})

suite('slow clients', () => {
  const half = post().slice(0, -4)
  /** Connected and silent, half a head, half a body, and one byte after the other. */
  const KINDS = ['', 'GET /clusters HTTP/1.1\r\nHost: x\r\nX-Slow', half]

  test('500 of them do not keep a poll waiting', async (t) => {
    const service = await spawnService({ STORE_BACKEND: 'memory', API_MODE: 'crud' })
    t.after(() => service.stop('SIGKILL'))
    await service.call('POST', '/clusters', {
      body: { id: 'one', cluster_name: 'one', cluster_dns: 'one.k8s.example.com', environment: 'dev' },
    })
    const slow = openSockets(t, service, 500)
    await Promise.all(slow.map((socket) => once(socket, 'connect')))
    for (const [i, socket] of slow.entries()) socket.write(KINDS[i % KINDS.length] as string)
    const agent = new Agent({ keepAlive: true, maxSockets: 8 })
    t.after(() => agent.destroy())
    const poll = async (i: number): Promise<number> => {
      const started = performance.now()
      // Every other one on a connection of its own, as Flux does it.
      const sent = request(service.url + POLL, {
        headers: { authorization: `Bearer ${READ_TOKEN}` },
        agent: i % 2 === 0 ? agent : false,
      }).end()
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      await response.toArray()
      assert.equal(response.statusCode, 200)
      return performance.now() - started
    }
    const times: number[] = []
    for (let i = 0; i < 2000; i += 8)
      times.push(...(await Promise.all(Array.from({ length: 8 }, (_, j) => poll(i + j)))))
    times.sort((a, b) => a - b)
    const at = (share: number) => (times[Math.floor(times.length * share)] ?? 0).toFixed(1)
    const held = slow.filter((socket) => !socket.readableEnded && !socket.destroyed).length
    t.diagnostic(
      `2,000 polls beside ${held} slow clients: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(0.9999)} ms`,
    )
    assert.equal(times.length, 2000)
  })

  test('get 408 and the end of their connection', async (t) => {
    const service = await start(t, { limits: { headersMs: 200, requestMs: 400 } })
    const answers = await Promise.all(KINDS.map((bytes) => say(service, bytes)))
    for (const { statuses, isClosed, text } of answers)
      assert.deepEqual([statuses, isClosed], [[408], true], text)
    await waitFor('all are gone', async () => (await connectionsOf(service)) === 0)
    assert.equal(service.engine.state.revision, 1)
  })

  test('that send a byte now and then do not get more time', async (t) => {
    const service = await start(t, { limits: { headersMs: 200, requestMs: 400 } })
    const endings = [...openSockets(t, service, 2)].map(async (socket, i) => {
      socket.write(i === 0 ? 'GET / HTTP/1.1\r\nX: ' : half)
      socket.resume()
      await dripUntil(
        () => socket.readableEnded,
        () => socket.writable && socket.write('x'),
      )
    })
    await Promise.all(endings)
  })

  test('that do not close their side after the answer are closed nevertheless', async (t) => {
    const service = await start(t, { limits: { headersMs: 200, requestMs: 400 } })
    const sockets = openSockets(t, service, 8)
    for (const [i, socket] of sockets.entries()) {
      socket.resume()
      socket.write([...KINDS, 'NONSENSE\r\n\r\n'][i % 4] as string)
    }
    await waitFor('they have their answer', () => sockets.every((socket) => socket.readableEnded))
    await waitFor('the service has let go of them', async () => (await connectionsOf(service)) === 0)
  })

  test('that are silent, or stop in the middle of the handshake of TLS, are closed', async (t) => {
    const authority = await createAuthority('fleet')
    const server = await authority.issue({ ipAddresses: ['127.0.0.1'], server: true })
    for (const http2 of [false, true]) {
      const tls = { ...server, minVersion: 'TLSv1.2', requestCert: false, rejectUnauthorized: false } as const
      // The usual 10 seconds would be long for a test.
      const hasty = { ...tls, handshakeTimeout: 200 }
      const service = await start(t, { transport: { tls: hasty, http2 } })
      const sockets = openSockets(t, service, 4)
      await Promise.all(sockets.map((socket) => once(socket, 'connect')))
      for (const [i, socket] of sockets.entries())
        socket.resume().write(i % 2 === 0 ? '' : '\x16\x03\x01\x02\0\x01', 'latin1')
      await waitFor('all are taken', async () => (await connectionsOf(service)) > 0)
      await waitFor('all are gone', async () => (await connectionsOf(service)) === 0)
      const { port } = new URL(service.url)
      const good: ConnectionOptions = { port: Number(port), host: '127.0.0.1', ca: authority.pem }
      const client = connectTls(good)
      await once(client, 'secureConnect')
      client.destroy()
    }
  })

  test('of HTTP/2 that send a byte now and then do not get more time', async (t) => {
    const authority = await createAuthority('fleet')
    const server = await authority.issue({ ipAddresses: ['127.0.0.1'], server: true })
    const tls = { ...server, minVersion: 'TLSv1.2', requestCert: false, rejectUnauthorized: false } as const
    const service = await start(t, {
      limits: { headersMs: 200, requestMs: 400 },
      transport: { tls, http2: true },
    })
    const session = connectHttp2(service.url.replace('http:', 'https:'), { ca: authority.pem })
    t.after(() => session.destroy())
    const stream = session.request({
      ':method': 'POST',
      ':path': '/namespaces',
      authorization: `Bearer ${WRITE_TOKEN}`,
      'content-type': 'application/json',
    })
    stream.on('error', () => {}).resume()
    await dripUntil(
      () => stream.destroyed || stream.closed,
      () => stream.writable && stream.write(' '),
    )
  })

  /** Sends something ten times a second until it is over, which takes a few seconds at most. */
  async function dripUntil(isOver: () => boolean, drip: () => void): Promise<void> {
    let count = 0
    await waitFor('who drips is cut off', () => {
      if (count++ % 10 === 0) drip()
      return isOver()
    })
  }
})

suite('load', () => {
  test('more connections than allowed are dropped, and there is room again when others go', async (t) => {
    const service = await start(t, { limits: { connections: 5, connectionsPerAddress: 5 } })
    const held = openSockets(t, service, 5)
    await waitFor('all are in', async () => (await connectionsOf(service)) === 5)
    for (let i = 0; i < 10; i++) {
      const { statuses, isClosed } = await say(service, get(POLL))
      assert.deepEqual([statuses, isClosed], [[], true])
    }
    assert.equal(await connectionsOf(service), 5)
    // Those who are in are served.
    const [first] = held as [Socket, ...Socket[]]
    first.write(get(POLL))
    assert.match(String(await once(first, 'data')), /^HTTP\/1\.1 200/)
    first.destroy()
    await waitFor('there is room', async () => (await connectionsOf(service)) < 5)
    assert.deepEqual((await say(service, get(POLL))).statuses, [200])
  })

  /** Waits until so many requests of this service hang at the gate; those beyond the limit are answered meanwhile. */
  async function startGated(t: TestContext, options: ServiceOptions = {}) {
    const { store, shut, open } = gatedStore()
    const service = await start(t, { store, ...options })
    t.after(open)
    return { service, shut, open }
  }

  test('too many writes are refused at once, reads later, and polls never', async (t) => {
    const { service, shut, open } = await startGated(t, { limits: { requests: 8 } })
    shut()
    const make = (i: number) => service.call('POST', '/namespaces', { body: { id: `load-${i}` } })
    const writes = Array.from({ length: 30 }, (_, i) => make(i))
    const refused: number[] = []
    for (const [i, write] of writes.entries())
      void write.then(({ status, headers, body }) => {
        if (status !== 503) return
        assert.deepEqual([headers['retry-after'], body.error], ['1', 'unavailable'])
        refused.push(i)
      })
    await waitFor('all but 4 are refused', () => refused.length === 26)
    assert.equal((await service.call('GET', '/clusters')).status, 200)
    const reads = Array.from({ length: 4 }, () => service.call('GET', '/revisions'))
    await waitFor(
      'reads are refused as well',
      async () => (await service.call('GET', '/clusters')).status === 503,
    )
    const shed = await service.call('GET', '/clusters')
    assert.equal(shed.headers['retry-after'], '1')
    const polls = Array.from({ length: 200 }, (_, i) => service.call('GET', i % 2 === 0 ? POLL : BASE))
    for (const { status } of await Promise.all(polls)) assert.equal(status, 200)
    for (const path of ['/health', '/ready', '/metrics', '/openapi.json'])
      assert.equal((await service.call('GET', path, { token: null })).status, 200, path)
    open()
    for (const { status } of await Promise.all(reads)) assert.equal(status, 200)
    const made = (await Promise.all(writes)).filter(({ status }) => status === 201)
    assert.equal(made.length, 4)
    assert.equal(service.engine.state.revision, 5)
    const name = 'flux_resourceset_shed_requests_total'
    assert.equal(await metric(service, name, 'kind="write"'), 26)
    assert.ok((await metric(service, name, 'kind="read"')) >= 2)
    assert.equal((await make(100)).status, 201)
  })

  test('who sends half a body without a valid token takes no place', async (t) => {
    const service = await start(t, { limits: { requests: 4 } })
    const sockets = openSockets(t, service, 20)
    for (const socket of sockets) socket.write(post().slice(0, -4).replace(WRITE_TOKEN, 'wrong'))
    for (const socket of sockets) assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 401/)
    await run(service, ['POST', '/namespaces', { id: 'there-is-room' }])
  })

  test('clients that go away in the middle leave no place taken', async (t) => {
    const { service, shut, open } = await startGated(t, { limits: { requests: 4 } })
    const gone = async (bytes: string) => {
      const socket = openSockets(t, service, 1)[0] as Socket
      await once(socket, 'connect')
      socket.write(bytes)
      await sleep(10)
      socket.resetAndDestroy()
      await waitFor('the service has noticed', async () => (await connectionsOf(service)) === 0)
    }
    for (let i = 0; i < 6; i++) {
      await gone(post().slice(0, -4))
      await gone(post().slice(0, 120))
      await gone(get('/clusters').repeat(3))
      await gone(get('/clusters', 'Content-Length: 100\r\n'))
    }
    // Others wait behind one that takes long, and their answers never get a connection.
    for (let i = 0; i < 3; i++) {
      shut()
      await gone(post(`{"id":"gone-${i}"}`) + get('/revisions') + get('/clusters') + SMUGGLED)
      open()
      await waitFor('it is written', () => service.engine.state.revision === i + 2)
    }
    shut()
    const whole = [
      ...Array.from({ length: 2 }, (_, i) =>
        service.call('POST', '/namespaces', { body: { id: `after-${i}` } }),
      ),
      ...Array.from({ length: 2 }, () => service.call('GET', '/revisions')),
    ]
    await waitFor('all places are taken', async () => (await service.call('GET', '/clusters')).status === 503)
    open()
    assert.deepEqual(
      (await Promise.all(whole)).map(({ status }) => status),
      [201, 201, 200, 200],
    )
  })
})
