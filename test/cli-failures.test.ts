// What the command line says and how it ends when something goes wrong: with the server, on the way, or around it.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import type { JsonObject } from '../src/base/json.ts'
import { buildOpenapi } from '../src/http/openapi/openapi.ts'
import { CLI, type CliOptions, cli, cliEnv, outcomesOf, type Run } from './cli-process.ts'
import { serve } from './own-server.ts'
import {
  builtInTypes,
  READ_TOKEN,
  startService,
  type TestService,
  temporaryFolder,
  WRITE_TOKEN,
} from './service.ts'

const types = builtInTypes()
const OPENAPI = JSON.stringify(buildOpenapi(types, [], { version: 'test' }))
const LIST = ['cluster', 'list']
const CREATE = ['namespace', 'create', 'x', '--yes']

let service: TestService
before(async () => {
  service = await startService({ types })
})
after(() => service.stop())

/** Runs the program; whatever happens, nobody is shown a stack or a token. */
async function run(args: readonly string[], options: CliOptions = {}): Promise<Run> {
  const ran = await cli(args, { timeout: 40_000, ...options })
  for (const text of [ran.stdout, ran.stderr]) {
    assert.doesNotMatch(text, /^ {4}at /m, `a stack is shown:\n${text}`)
    assert.ok(![READ_TOKEN, WRITE_TOKEN].some((token) => text.includes(token)), `a token is shown:\n${text}`)
  }
  return ran
}

const { fail } = outcomesOf(run)

async function timed<T>(work: Promise<T>): Promise<[result: T, ms: number]> {
  const begin = performance.now()
  const result = await work
  return [result, performance.now() - begin]
}

interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

interface Fake {
  readonly url: string
  /** Everything but questions for types. */
  readonly seen: Seen[]
}

type Handle = (response: ServerResponse, request: Seen, nth: number) => unknown

/** A server that has our types and else does what it is told; or that is another one altogether. */
async function fake(t: TestContext, handle: Handle, { isOurs = true } = {}): Promise<Fake> {
  const seen: Seen[] = []
  const { url } = await serve(t, async (request, response) => {
    const { method = '', url = '', headers } = request
    if (isOurs && url === '/openapi.json') return ours(response, 200, OPENAPI)
    const asked = { method, url, headers, body: Buffer.concat(await request.toArray()).toString() }
    await handle(response, asked, seen.push(asked))
  })
  return { url, seen }
}

/** An answer as the service gives it. */
function ours(response: ServerResponse, status: number, body: string, headers: Record<string, string> = {}) {
  response
    .writeHead(status, {
      'content-type': 'application/json; charset=utf-8',
      'x-request-id': 'request-4711',
      'x-revision': '1',
      ...headers,
    })
    .end(body)
}

function refuse(response: ServerResponse, status: number, problem: JsonObject, headers = {}) {
  ours(response, status, JSON.stringify(problem), headers)
}

function emptyList(response: ServerResponse) {
  ours(response, 200, '[]', { 'x-total-count': '0' })
}

/** What the service answers to the same request. */
async function passOn({ method, url, headers, body }: Seen) {
  const { authorization = '', 'content-length': _length, ...rest } = headers as Record<string, string>
  const given = { ...rest, authorization, connection: 'close' }
  return service.call(method, url, { token: null, headers: given, ...(body !== '' && { raw: body }) })
}

/** A port that takes connections and does this with them. */
async function port(t: TestContext, handle: (socket: Socket) => void): Promise<number> {
  const open = new Set<Socket>()
  const server = createTcpServer((socket) => {
    open.add(socket.on('error', () => {}).on('close', () => open.delete(socket)))
    handle(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** A port where nothing listens: one that was free a moment ago. */
async function closedPort(): Promise<number> {
  const server = createTcpServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port: free } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return free
}

describe('a server that is away', { concurrency: 4 }, () => {
  test('where nothing listens, the URL and the reason are told', async () => {
    const url = `http://127.0.0.1:${await closedPort()}`
    await Promise.all([
      fail(3, [`cannot reach ${url}/`, 'connection refused', /^Hint: .*--api-url/m], LIST, { url }),
      fail(3, [`cannot reach ${url}/`, 'connection refused'], ['log'], { url }),
      fail(3, [`cannot reach ${url}/`, 'connection refused'], CREATE, { url }),
      fail(3, ['connection refused'], LIST, { url: url.replace('127.0.0.1', 'localhost') }),
    ])
  })

  test('a host name that nobody knows is told', async () => {
    const url = 'http://flux-api.invalid'
    await fail(3, [`cannot reach ${url}/`, /no such host|could not be looked up/], LIST, { url })
  })

  for (const scheme of ['http', 'https']) {
    test(`a port that never answers over ${scheme} is given up after --timeout`, async (t) => {
      const url = `${scheme}://127.0.0.1:${await port(t, () => {})}`
      const [, ms] = await timed(
        fail(3, [`cannot reach ${url}/`, 'no answer within 0.4 s'], [...LIST, '--timeout', '0.4'], { url }),
      )
      assert.ok(ms >= 400, `${ms} ms`)
    })
  }

  test('a forward proxy that never answers is given up after --timeout as well', async (t) => {
    const env = { HTTPS_PROXY: `http://127.0.0.1:${await port(t, () => {})}` }
    const url = 'https://flux-api.example.com'
    const args = [...LIST, '--timeout', '0.4']
    await fail(3, [`cannot reach ${url}/`, 'no answer within 0.4 s'], args, { url, env, timeout: 40_000 })
  })

  test('an answer that does not end is given up after --timeout', async (t) => {
    const { url, seen } = await fake(t, (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'x-revision': '1' }).write('[')
      const more = setInterval(() => response.write(' '), 50)
      response.on('close', () => clearInterval(more))
    })
    await fail(3, ['no answer within 0.5 s'], [...LIST, '--timeout', '0.5'], { url })
    assert.equal(seen.length, 1)
  })

  test('an answer that takes less than --timeout is waited for', async (t) => {
    const { url } = await fake(t, async (response) => {
      await sleep(700)
      emptyList(response)
    })
    const { code, stdout, stderr } = await run([...LIST, '--timeout', '8'], { url })
    assert.deepEqual([code, stdout, stderr], [0, '', 'No clusters found.\n'])
  })

  test('an answer that is cut in the middle is no answer, and the program ends at once', async (t) => {
    const { url, seen } = await fake(t, (response) => {
      response.writeHead(200, {
        'content-type': 'application/json',
        'content-length': 1000,
        'x-revision': '1',
      })
      response.write('[{"id":"one"}', () => response.destroy())
    })
    await fail(3, [`cannot reach ${url}/`, 'the connection was cut'], LIST, { url, timeout: 40_000 })
    assert.ok(seen.length > 1 && seen.length < 10, `tried ${seen.length} times`)
  })

  test('after one cut answer the next one is taken, and the program ends at once', async (t) => {
    const { url } = await fake(t, (response, _request, nth) => {
      if (nth > 1) return emptyList(response)
      response.writeHead(200, {
        'content-type': 'application/json',
        'content-length': 1000,
        'x-revision': '1',
      })
      response.write('[', () => response.destroy())
    })
    const { code, stdout } = await run(LIST, { url, timeout: 40_000 })
    assert.deepEqual([code, stdout], [0, ''])
  })

  test('https where only http is spoken is told as such', async () => {
    const url = service.url.replace('http:', 'https:')
    await fail(3, [`cannot reach ${url}/`, /does not speak TLS.*http/], LIST, { url })
  })

  test('a port that speaks something else is told as such', async (t) => {
    const url = `http://127.0.0.1:${await port(t, (socket) => socket.write('SSH-2.0-OpenSSH_9.6\r\n'))}`
    await fail(3, [`cannot reach ${url}/`, 'does not speak HTTP'], LIST, { url })
  })

  test('a write without an answer is not told as if nothing had happened', async (t) => {
    const { url, seen } = await fake(t, () => {})
    const stderr = await fail(3, ['no answer within 0.5 s'], [...CREATE, '--timeout', '0.5'], { url })
    assert.equal(seen[0]?.method, 'POST')
    assert.match(stderr, /may (?:still )?(?:be|have been) made|wholly or not at all|see the log/i)
  })

  test('a preview without an answer, by a dry run or before a question, changed nothing for certain', async (t) => {
    const { url, seen } = await fake(t, () => {})
    const create = ['namespace', 'create', 'x', '--timeout', '0.5']
    for (const args of [create, [...create, '--dry-run']]) {
      const stderr = await fail(3, ['no answer within 0.5 s'], args, { url })
      assert.doesNotMatch(stderr, /may have been made/)
    }
    assert.deepEqual(
      seen.map(({ method, url: path }) => `${method} ${path}`),
      ['POST /namespaces?dry_run=true', 'POST /namespaces?dry_run=true'],
    )
  })
})

describe('what the service refuses', { concurrency: 4 }, () => {
  const withReadToken = { env: { FLUX_API_TOKEN: READ_TOKEN } }
  const unreachablePlan = `sha256:${'0'.repeat(64)}`

  const cases: [
    name: string,
    args: readonly string[],
    said: RegExp,
    who: string,
    hint: RegExp | undefined,
    env?: Readonly<Record<string, string | undefined>>,
  ][] = [
    [
      'a token that is missing',
      LIST,
      /^Error: no token for http/,
      '401 unauthorized',
      /login.*FLUX_API_TOKEN.*FLUX_API_WRITE_TOKEN/,
      { FLUX_API_TOKEN: undefined, FLUX_API_WRITE_TOKEN: undefined },
    ],
    [
      'a token that is wrong',
      CREATE,
      /^Error: the token of FLUX_API_WRITE_TOKEN was refused by http/,
      '401 unauthorized',
      /log in/,
      { FLUX_API_WRITE_TOKEN: 'wrong' },
    ],
    [
      'a token that may only read',
      CREATE,
      /^Error: this needs the role editor, and yours is viewer/,
      '403 forbidden',
      /FLUX_API_WRITE_TOKEN or --write-token.*token whoami/,
      { ...withReadToken.env, FLUX_API_WRITE_TOKEN: undefined },
    ],
    [
      'what is not there',
      ['cluster', 'get', 'nope'],
      /^Error: no cluster "nope"$/m,
      '404 not_found',
      undefined,
    ],
    [
      'what is there already',
      ['namespace', 'create', 'team-a'],
      /^Error: namespace "team-a" exists already/,
      '409 conflict',
      /update or apply/,
    ],
    [
      'what is in use',
      ['namespace', 'delete', 'team-a'],
      /^Error: namespace "team-a" is in use by 1: clusters\/one/,
      '409 conflict',
      /--cascade/,
    ],
    [
      'a plan that does not hold',
      [...CREATE, '--plan', unreachablePlan],
      /^Error: this write does not do what the plan says/,
      '409 plan_changed',
      /--dry-run/,
    ],
  ]
  for (const [name, args, said, who, hint, env] of cases) {
    test(`${name}: the message, who says so with the request id, and what to try`, async () => {
      const stderr = await fail(1, [said], args, { url: service.url, ...(env && { env }) })
      assert.match(stderr, new RegExp(`^  HTTP ${who}, request id [\\w-]{36}$`, 'm'))
      if (hint) assert.match(stderr, new RegExp(`^Hint: .*${hint.source}`, 'm'))
      else assert.doesNotMatch(stderr, /^Hint:/m)
      assert.equal((await service.call('GET', '/namespaces/x')).status, 404)
    })
  }

  test('several mistakes in a document are told one by one, each with its path', async () => {
    const args = ['namespace', 'create', 'Bad_Name', '--label', 'a b=c']
    await fail(
      1,
      [/^ {2}\/id must /m, /^ {2}\/labels\/a b must /m, 'HTTP 400 validation_error'],
      args,
      service,
    )
  })

  test('a single mistake in a document is told once, with its path', async () => {
    const stderr = await fail(1, ['HTTP 400 validation_error'], ['namespace', 'create', 'Bad_Name'], service)
    assert.equal(stderr.match(/\/id must /g)?.length, 1, stderr)
  })

  test('a document that is too large is told as such every time, and sent once', async (t) => {
    const file = join(temporaryFolder(t), 'large.json')
    const values = Array.from({ length: 150 }, (_, i) => [`key-${i}`, 'x'.repeat(100_000)])
    writeFileSync(file, JSON.stringify({ id: 'large', annotations: Object.fromEntries(values) }))
    const create = () =>
      fail(1, ['HTTP 413 payload_too_large', /^Hint: /m], ['namespace', 'create', '-f', file], service)
    // The service answers before it has read everything: that must not look like a connection that was cut.
    for (const said of await Promise.all([create(), create(), create(), create()])) {
      assert.doesNotMatch(said, /trying again/)
    }
  })

  test('a read-only server says so on writes and on reads, and where to go', async (t) => {
    const { url, stop } = await startService({ types, mode: 'read-only' })
    t.after(stop)
    await fail(1, ['HTTP 405 method_not_allowed', /^Hint: .*crud mode/m], CREATE, { url })
    await fail(1, ['HTTP 404 not_found', /^Hint: .*crud mode/m], LIST, { url })
  })

  const faked: [status: number, error: string, says: RegExp][] = [
    [410, 'gone', /^Hint: .*flux-resourceset-cli log/m],
    [412, 'precondition_failed', /^Hint: .*look again/m],
    [422, 'idempotency_mismatch', /^ {2}HTTP 422/m],
    [500, 'internal_error', /^Hint: .*request id/m],
  ]
  for (const [status, error, says] of faked) {
    test(`${status} ${error} is told, and not tried again`, async (t) => {
      const { url, seen } = await fake(t, (response) =>
        refuse(response, status, { error, message: 'so it is' }),
      )
      const who = `  HTTP ${status} ${error}, request id request-4711`
      await fail(1, [/^Error: so it is$/m, who, says], LIST, { url })
      await fail(1, [/^Error: so it is$/m, who, says], CREATE, { url })
      assert.deepEqual(
        seen.map(({ method }) => method),
        ['GET', 'POST'],
      )
    })
  }

  test('what a server says cannot move the cursor or fake lines of ours', async (t) => {
    const message = 'red \u001b[31m\nError: \u0007two\u202e'
    const { url } = await fake(t, (response) =>
      refuse(response, 400, { error: 'a\u001b[2J', message, details: [{ path: '/\n', message }] }),
    )
    const stderr = await fail(1, [], LIST, { url })
    assert.equal(stderr.match(/^Error:/gm)?.length, 1, stderr)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point
    assert.doesNotMatch(stderr, /[\u0000-\u0009\u000b-\u001f\u202e]/)
  })

  test('a change message that no header can hold is a mistake of ours, not of the server', async () => {
    const stderr = await fail(2, [], [...CREATE, '-m', 'a\u0001b'], service)
    assert.doesNotMatch(stderr, /cannot reach/)
  })
})

describe('something else answers', { concurrency: 4 }, () => {
  const HTML = { 'content-type': 'text/html; charset=utf-8' }
  const JSON_TYPE = { 'content-type': 'application/json' }

  const pages: [name: string, status: number, headers: Record<string, string>, body: string | Buffer][] = [
    ['a page of HTML with 200', 200, HTML, '<!doctype html>\n<title>Welcome</title>'],
    ['a page of HTML with 404', 404, HTML, '<h1>Not found</h1>'],
    ['a page of HTML with 502', 502, { ...HTML, 'retry-after': '0' }, '<h1>Bad gateway</h1>'],
    ['nothing with 404', 404, {}, ''],
    ['an error of a gateway in JSON', 404, JSON_TYPE, '{"message":"no Route matched"}'],
    ['JSON that is broken', 200, JSON_TYPE, '[{"id":"one"'],
    ['JSON in gzip that nobody asked for', 200, { ...JSON_TYPE, 'content-encoding': 'gzip' }, gzipSync('[]')],
  ]
  for (const [name, status, headers, body] of pages) {
    test(`${name} is not taken for the API`, async (t) => {
      const { url } = await fake(t, (response) => response.writeHead(status, headers).end(body), {
        isOurs: false,
      })
      const says = [`what answers at ${url}/ is not this API`, `HTTP ${status}`, /^Hint: .*--api-url/m]
      await fail(3, says, LIST, { url })
      await fail(3, says, CREATE, { url })
    })
  }

  test('a redirect to a login page is told with where it points, and not followed', async (t) => {
    const login = await fake(t, (response) => emptyList(response), { isOurs: false })
    const { url } = await fake(
      t,
      (response) => response.writeHead(302, { location: `${login.url}/login?next=%2F` }).end(),
      { isOurs: false },
    )
    await fail(3, ['is not this API: HTTP 302', `points to ${login.url}/login?next=%2F`], LIST, { url })
    await fail(3, ['is not this API: HTTP 302'], CREATE, { url })
    assert.deepEqual(login.seen, [])
  })

  for (const body of ['{"hello":"world"}', 'null', '"hello"', '[1,null]', '']) {
    test(`${body || 'an empty body'} with 200 is not taken for the API's answer`, async (t) => {
      const { url } = await fake(t, (response) => response.writeHead(200, JSON_TYPE).end(body), {
        isOurs: false,
      })
      const commands = [LIST, ['cluster', 'get', 'one'], ['log'], ['status'], ['cluster', 'inputs', 'one']]
      for (const args of commands) await fail(3, [url], args, { url })
    })

    test(`${body || 'an empty body'} with 200 does not mean that a write was done`, async (t) => {
      const { url } = await fake(t, (response) => response.writeHead(200, JSON_TYPE).end(body), {
        isOurs: false,
      })
      const commands = [CREATE, ['namespace', 'delete', 'team-a'], ['revert', '1']]
      for (const args of commands) await fail(3, [url], args, { url })
    })
  }

  for (const details of ['upstream', null, 7, [null, null], [{ path: 7 }, {}]] as const) {
    test(`a refusal with the details ${JSON.stringify(details)} is still told`, async (t) => {
      const problem = { error: 'bad', message: 'so it is', details: details as unknown as null }
      const { url } = await fake(t, (response) => refuse(response, 400, problem))
      const { code, stderr } = await run(LIST, { url })
      assert.ok(code === 1 || code === 3, `${code}`)
      assert.match(stderr, /so it is/)
      assert.doesNotMatch(stderr, /cannot reach|is not a function|Cannot read/)
    })
  }

  test('what to try is decided by the reason, whatever the message says', async (t) => {
    const refused = async (problem: { reason?: string; message: string }): Promise<string> =>
      fail(
        1,
        [problem.message],
        LIST,
        await fake(t, (response) => refuse(response, 409, { error: 'conflict', ...problem })),
      )
    assert.match(await refused({ reason: 'in_use', message: 'others need it' }), /^Hint: .*--cascade/m)
    assert.doesNotMatch(await refused({ message: 'it is in use by 1, and exists already' }), /^Hint:/m)
  })

  test('a token that is sent back is not shown', async (t) => {
    const echo = await fake(
      t,
      (response, { headers }) => response.writeHead(400, HTML).end(`<p>bad header: ${headers.authorization}`),
      { isOurs: false },
    )
    await fail(3, ['is not this API'], LIST, echo)
    const refusing = await fake(t, (response, { headers }) =>
      refuse(response, 401, { error: 'unauthorized', message: `unknown: ${headers.authorization}` }),
    )
    await fail(1, ['unknown: '], LIST, refusing)
  })
})

describe('trying again', { concurrency: 4 }, () => {
  for (const status of [429, 502, 503, 504]) {
    test(`a read is repeated after ${status}, as soon as Retry-After allows`, async (t) => {
      const { url, seen } = await fake(t, (response, _request, nth) => {
        if (nth > 2) return emptyList(response)
        response.writeHead(status, { 'retry-after': '0' }).end('<h1>Busy</h1>')
      })
      const { code, stdout, stderr } = await run(LIST, { url })
      assert.deepEqual([code, stdout], [0, ''], stderr)
      assert.match(stderr, /No clusters found\.\n$/)
      assert.equal(
        stderr.match(new RegExp(`^${url}: HTTP ${status}; trying again in 0.0 s$`, 'gm'))?.length,
        2,
      )
      assert.equal(seen.length, 3)
    })
  }

  test('Retry-After is waited for', async (t) => {
    const { url } = await fake(t, (response, _request, nth) => {
      if (nth > 1) return emptyList(response)
      refuse(response, 503, { error: 'unavailable', message: 'busy' }, { 'retry-after': '2' })
    })
    const [{ code, stderr }, ms] = await timed(run(LIST, { url }))
    assert.equal(code, 0, stderr)
    assert.match(stderr, /trying again in 2\.0 s/)
    assert.ok(ms >= 2000, `${ms} ms`)
  })

  test('a read is repeated after a connection that was cut', async (t) => {
    const { url, seen } = await fake(t, (response, _request, nth) =>
      nth > 1 ? emptyList(response) : response.destroy(),
    )
    const { code, stdout, stderr } = await run(LIST, { url })
    assert.deepEqual([code, stdout], [0, ''], stderr)
    assert.match(stderr, /No clusters found\.\n$/)
    assert.match(stderr, /the connection was cut; trying again in 0\.\d s/)
    assert.equal(seen.length, 2)
  })

  test('with --quiet the same happens without a word', async (t) => {
    const { url, seen } = await fake(t, (response, _request, nth) =>
      nth > 1 ? emptyList(response) : response.writeHead(503, { 'retry-after': '0' }).end(),
    )
    const { code, stderr } = await run([...LIST, '--quiet'], { url })
    assert.deepEqual([code, stderr, seen.length], [0, '', 2])
  })

  test('it gives up after four times, and says what was said last', async (t) => {
    const { url, seen } = await fake(t, (response, _request, nth) => {
      const problem = { error: 'unavailable', message: `busy ${nth}` }
      refuse(response, 503, problem, { 'retry-after': '0' })
    })
    await fail(1, [/^Error: busy 4$/m, 'HTTP 503 unavailable', /^Hint: .*try again/m], LIST, { url })
    assert.equal(seen.length, 4)
    seen.length = 0
    await fail(1, [/^Error: busy 4$/m, 'HTTP 503 unavailable'], CREATE, { url })
    assert.equal(seen.length, 4)
  })

  test('too many requests with a wrong token are told at once: trying again would not help', async (t) => {
    const { url, seen } = await fake(t, (response) =>
      refuse(response, 429, { error: 'rate_limited', message: 'slow down' }, { 'retry-after': '60' }),
    )
    await fail(1, [/^Error: slow down$/m, 'HTTP 429', /^Hint: wait.*correct the token/m], LIST, { url })
    assert.equal(seen.length, 1)
  })

  test('a write is repeated with the same key and the same body, and other writes have other keys', async (t) => {
    const { url, seen } = await fake(t, (response, _request, nth) => {
      if (nth === 1) return response.writeHead(503, { 'retry-after': '0' }).end()
      if (nth === 2) return response.destroy()
      ours(response, 201, '{"id":"x"}', { 'x-revision': '2', 'x-change-count': '1' })
    })
    const { code, stdout, stderr } = await run([...CREATE, '--label', 'a=b', '-m', 'why'], { url })
    assert.deepEqual([code, stdout], [0, 'namespaces/x created (revision 2)\n'], stderr)
    const writes = () => seen.filter(({ method }) => method === 'POST')
    const sent = writes().map(({ method, url: path, body, headers }) => ({
      request: `${method} ${path}`,
      body: JSON.parse(body),
      key: headers['idempotency-key'],
      message: headers['x-change-message'],
    }))
    const [first] = sent
    assert.ok(first?.key)
    assert.deepEqual(first.body, { id: 'x', labels: { a: 'b' } })
    assert.equal(first.message, 'why')
    assert.deepEqual(sent, [first, first, first])
    await run(CREATE, { url })
    assert.notEqual(writes()[3]?.headers['idempotency-key'], first.key)
  })

  test('reads have no key', async (t) => {
    const { url, seen } = await fake(t, (response) => emptyList(response))
    await run(LIST, { url })
    assert.equal(seen[0]?.headers['idempotency-key'], undefined)
  })

  test('a write whose answer is lost on the way is done once', async (t) => {
    let lost = 0
    const { url } = await fake(t, async (response, request) => {
      const { status, headers, bytes } = await passOn(request)
      const isWrite = request.method !== 'GET'
      if (isWrite && headers['idempotent-replayed'] === undefined && status < 300) {
        lost++
        return response.destroy()
      }
      response.writeHead(status, { ...headers, connection: 'close' }).end(bytes)
    })
    const file = join(temporaryFolder(t), 'once.yaml')
    writeFileSync(file, 'type: namespaces\nid: once-applied\n')
    const writes: [args: string[], says: RegExp][] = [
      [['namespace', 'create', 'once'], /^namespaces\/once created/],
      [['namespace', 'update', 'once', '--set', 'labels.a=b'], /^namespaces\/once configured/],
      [['namespace', 'assign', 'once', '--cluster', 'two'], /1 document changed/],
      [['namespace', 'delete', 'once', '--cascade', '--confirm', 'removals'], /^namespaces\/once deleted/],
      [['apply', '-f', file], /^namespaces\/once-applied created/],
    ]
    for (const [args, says] of writes) {
      const before = service.engine.state.revision
      const { code, stdout, stderr } = await run([...args, '--yes'], { url })
      assert.equal(code, 0, stderr)
      assert.match(stdout, says)
      assert.match(stderr, /the connection was cut; trying again/)
      assert.equal(service.engine.state.revision, before + 1, args.join(' '))
    }
    assert.equal(lost, writes.length)
  })

  test('the status of a server that is not ready is told at once', async (t) => {
    const { url, seen } = await fake(t, (response) =>
      refuse(response, 503, { error: 'unavailable', message: 'the store is away' }, { 'retry-after': '0' }),
    )
    const { code, stdout, stderr } = await run(['status'], { url })
    assert.equal(code, 4, stderr)
    assert.match(stdout, /^Status: +the store is away$/m)
    assert.deepEqual(
      seen.map(({ url: path }) => path),
      ['/ready'],
    )
  })
})

test('the status of a server that cannot follow its store says so, and since when', async (t) => {
  const degraded = {
    status: 'degraded',
    mode: 'read-only',
    revision: 7,
    age_seconds: 16,
    reason: 'it is away',
  }
  const { url } = await fake(t, (response) => ours(response, 200, JSON.stringify(degraded)))
  const { code, stdout } = await run(['status'], { url })
  assert.equal(code, 0)
  assert.match(stdout, /^Status: +degraded, 16 s old: it is away$/m)
  const { server, version, documents, ...rest } = JSON.parse(
    (await run(['status', '-o', 'json'], { url })).stdout,
  )
  assert.deepEqual(rest, degraded)
})

/** Runs a script of bash in which `$CLI` is the program. */
async function bash(script: string, options: CliOptions = {}): Promise<Run> {
  const env = { ...cliEnv({ url: service.url, ...options }), CLI: `${process.execPath} ${CLI}` }
  const child = spawn('bash', ['-c', script], { env, timeout: 40_000, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, [code]] = await Promise.all([
    child.stdout.toArray(),
    child.stderr.toArray(),
    once(child, 'close') as Promise<[number | null]>,
  ])
  return { code, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() }
}

describe('streams', { concurrency: 4 }, () => {
  test('a reader that has seen enough ends the program without a word', async (t) => {
    const clusters = Array.from({ length: 2000 }, (_, i) => ({
      id: `c${i}`,
      cluster_name: `c${i}`,
      cluster_dns: `c${i}.k8s.example.com`,
      environment: 'dev',
    }))
    const { url, stop } = await startService({ types, fleet: { clusters } })
    t.after(stop)
    for (const [args, first] of [
      ['cluster list -o json', '['],
      ['export', '---'],
    ]) {
      const script = `$CLI ${args} | head -1; echo "\${PIPESTATUS[@]}"`
      assert.deepEqual(await bash(script, { url }), { code: 0, stdout: `${first}\n0 0\n`, stderr: '' })
    }
  })

  for (const args of ['cluster list', 'namespace list -o json', '--help', '--version']) {
    test(`${args}: a full disk is a failure, and told`, async () => {
      const { code, stderr } = await bash(`$CLI ${args} > /dev/full`)
      assert.ok(code !== 0 && code !== null, `${code}`)
      assert.match(stderr, /no space|ENOSPC|cannot be written|could not be written/i)
      assert.doesNotMatch(stderr, /^ {4}at /m)
    })
  }

  test('the exit code is the same when nobody reads stderr any longer', async () => {
    const url = `http://127.0.0.1:${await closedPort()}`
    const child = spawn(process.execPath, [CLI, ...LIST], { env: cliEnv({ url }), timeout: 40_000 })
    child.stderr.destroy()
    child.stdout.resume()
    const [code] = await once(child, 'close')
    assert.equal(code, 3)
  })

  test('a closed stdin is an empty one', async () => {
    const { code, stdout, stderr } = await bash(
      '$CLI namespace get team-a -o name <&-; $CLI apply -f - <&-; echo $?',
    )
    assert.deepEqual([code, stdout], [0, 'namespaces/team-a\n2\n'])
    assert.match(stderr, /^Error: \S.* no documents$/m)
    assert.doesNotMatch(stderr, /^ {4}at /m)
  })

  test('a closed stdout is no problem for a write', async () => {
    const { code, stderr } = await bash('$CLI namespace create closed-stdout >&-')
    assert.deepEqual([code, stderr], [0, ''])
    assert.equal((await service.call('GET', '/namespaces/closed-stdout')).status, 200)
  })
})

describe('signals', { concurrency: 4 }, () => {
  /** Sends a signal once the server has this request, which it never answers. */
  async function interrupt(
    t: TestContext,
    signal: NodeJS.Signals,
    args: readonly string[],
  ): Promise<Run & { signal: NodeJS.Signals | null }> {
    const asked = Promise.withResolvers<void>()
    const { url } = await fake(t, () => asked.resolve())
    const child = spawn(process.execPath, [CLI, ...args], { env: cliEnv({ url }), timeout: 40_000 })
    const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
    const output = Promise.all([child.stdout.toArray(), child.stderr.toArray()])
    await asked.promise
    child.kill(signal)
    const [code, ended] = await closed
    const [stdout, stderr] = (await output).map((chunks) => Buffer.concat(chunks).toString())
    return { code, signal: ended, stdout: stdout ?? '', stderr: stderr ?? '' }
  }

  /** As a shell sees it. */
  const asShell = (ran: { code: number | null; signal: NodeJS.Signals | null }): number | null =>
    ran.signal === 'SIGINT' ? 130 : ran.signal === 'SIGTERM' ? 143 : ran.code

  test('Ctrl-C ends a slow read without a word', async (t) => {
    const ran = await interrupt(t, 'SIGINT', LIST)
    assert.deepEqual([asShell(ran), ran.stdout, ran.stderr], [130, '', ''])
  })

  for (const quiet of [[], ['--quiet']]) {
    test(`Ctrl-C during a slow write says that it may be made ${quiet.join('')}`, async (t) => {
      const ran = await interrupt(t, 'SIGINT', [...CREATE, ...quiet])
      assert.deepEqual([asShell(ran), ran.stdout], [130, ''])
      assert.match(ran.stderr, /^Warning: interrupted .*wholly or not at all.* log$/m)
    })
  }

  test('a preview that is interrupted has changed nothing, and says nothing', async (t) => {
    const ran = await interrupt(t, 'SIGINT', [...CREATE, '--dry-run'])
    assert.deepEqual([asShell(ran), ran.stdout, ran.stderr], [130, '', ''])
  })

  for (const args of [LIST, CREATE]) {
    test(`SIGTERM ends ${args.join(' ')} at once`, async (t) => {
      const ran = await interrupt(t, 'SIGTERM', args)
      assert.deepEqual([asShell(ran), ran.stdout], [143, ''])
    })
  }
})

describe('exit codes', { concurrency: 4 }, () => {
  const differs = 'type: namespaces\nid: team-a\nlabels: {team: other}\n'
  const same = 'type: namespaces\nid: team-a\nlabels: {team: a}\n'

  const codes: [code: number, name: string, args: string[], input?: string][] = [
    [0, 'done', LIST],
    [0, 'help that was asked for', ['cluster', '--help']],
    [0, 'no difference', ['diff', '-f', '-'], same],
    [1, 'the server said no', ['cluster', 'get', 'nope']],
    [2, 'an unknown command', ['clutser', 'list']],
    [2, 'an unknown flag', [...LIST, '--nope']],
    [2, 'a missing argument', ['cluster', 'get']],
    [2, 'an unknown format', [...LIST, '-o', 'xml']],
    [2, 'a file that is not there', ['apply', '-f', '/nowhere/at/all.yaml']],
    [2, 'a broken file', ['apply', '-f', '-'], '{'],
    [2, 'a timeout that is none', [...LIST, '--timeout', 'soon']],
    [4, 'a difference', ['diff', '-f', '-'], differs],
  ]
  for (const [code, name, args, input = ''] of codes) {
    test(`${code}: ${name}`, async () => {
      const ran = await run(args, { url: service.url, input })
      assert.equal(ran.code, code, ran.stderr)
      if (code === 0 || code === 4) assert.equal(ran.stderr, '')
      else assert.match(ran.stderr, /^Error: \S/m)
      if (code === 1 || code === 2) assert.equal(ran.stdout, '')
      if (code === 4) assert.match(ran.stdout, /namespaces\/team-a/)
    })
  }

  test('3: the server cannot be reached', async () => {
    await fail(3, ['cannot reach'], LIST, { url: `http://127.0.0.1:${await closedPort()}` })
  })

  test('help tells what they mean', async () => {
    const { stdout } = await run(['--help'], { url: service.url })
    assert.match(
      stdout.replaceAll(/\s+/g, ' '),
      /0 done, 1 the server said no, 2 wrong use, 3 the server cannot be reached, 4 a difference/,
    )
  })
})
