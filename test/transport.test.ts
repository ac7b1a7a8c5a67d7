import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { suite, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import pino from 'pino'
import type { Json } from '../src/base/json.ts'
import type { OidcResult } from '../src/http/auth/oidc.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { createAuthority, type KeyPair } from './certificates.ts'
import { start } from './every-store.ts'
import {
  COMPILED,
  failToStart,
  MAIN,
  READ_TOKEN,
  type ServiceOptions,
  smallFleet,
  temporaryFolder,
  WRITE_TOKEN,
  waitFor,
} from './service.ts'

const POLL = '/api/v2/flux/clusters/one.k8s.example.com/platform-components'
const authority = await createAuthority('fleet')
const pair = await issueServer('first')

function issueServer(commonName: string): Promise<KeyPair> {
  return authority.issue({ commonName, ipAddresses: ['127.0.0.1'], server: true })
}

/** A port, with an authority where it speaks TLS, or a unix socket. */
type Where = RequestOptions & { readonly ALPNProtocols?: readonly string[] }

interface Sent {
  /** The write token unless said otherwise; null for none. */
  readonly token?: string | null
  readonly body?: Json
  readonly raw?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
}

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
  readonly body: any
  readonly socket: IncomingMessage['socket']
}

/** One request on a connection of its own, unless there is an agent. */
async function send(
  where: Where,
  method: string,
  path: string,
  { token = WRITE_TOKEN, body, raw, headers }: Sent = {},
): Promise<Answer> {
  const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  const request = where.ca ? httpsRequest : httpRequest
  const sent = request({
    host: '127.0.0.1',
    agent: false,
    method,
    path,
    ...where,
    headers: {
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(payload !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
  }).end(payload)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const { socket } = response
  const text = Buffer.concat(await response.toArray()).toString()
  const isJson = response.headers['content-type']?.includes('json') && text !== ''
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text,
    body: isJson ? JSON.parse(text) : undefined,
    socket,
  }
}

interface Running {
  /** What it said when it was ready. */
  readonly ready: { readonly address: { port: number } | string; readonly admin_address?: { port: number } }
  readonly port: number
  output(): string
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/** The program with the usual fleet on whatever address; gone after the test. */
async function run(t: TestContext, env: Record<string, string> = {}): Promise<Running> {
  const seed = join(temporaryFolder(t), 'seed.json')
  writeFileSync(seed, JSON.stringify(smallFleet()))
  const child = spawn(process.execPath, [MAIN], {
    env: { ...COMPILED, ...USUAL, SEED_FILE: seed, ...env },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk
    })
  }
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)))
  const stop = (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal)
    return exited
  }
  t.after(() => stop('SIGKILL'))
  await waitFor('it is ready', () => {
    assert.equal(child.exitCode, null, `the service stopped at once:\n${output}`)
    return output.includes('"msg":"ready"')
  })
  const ready = JSON.parse(output.split('\n').find((line) => line.includes('"msg":"ready"')) ?? '')
  return { ready, port: ready.address.port, output: () => output, stop }
}

const USUAL = {
  AUTH_TOKEN: READ_TOKEN,
  CRUD_AUTH_TOKEN: WRITE_TOKEN,
  API_MODE: 'crud',
  STORE_BACKEND: 'memory',
  LISTEN_ADDR: '127.0.0.1:0',
  // Some tests ask until the answer changes.
  MAX_AUTH_FAILURES: '100000',
}

/** Files of TLS in a folder, and the settings that name them. */
function writePair(folder: string, { cert, key }: KeyPair = pair): Record<string, string> {
  const [TLS_CERT_FILE, TLS_KEY_FILE] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
  writeFileSync(TLS_CERT_FILE, cert)
  writeFileSync(TLS_KEY_FILE, key)
  return { TLS_CERT_FILE, TLS_KEY_FILE }
}

/** Starts in vain; answers the problems, none of which shows a secret or a stack. */
async function refusal(env: Record<string, string>, exitCode = 2): Promise<string[]> {
  const { code, stderr } = await failToStart({ ...USUAL, LOG_LEVEL: 'silent', ...env })
  assert.equal(code, exitCode, stderr)
  assert.doesNotMatch(stderr, /hush|PRIVATE|test-(?:read|write)-token|\n\s+at |\bError:/)
  const [before, ...problems] = stderr.trimEnd().split(/^flux-resourceset: /m)
  assert.equal(before, '', 'every problem is said by the program')
  return problems.map((problem) => problem.trimEnd())
}

/** A pod's view of a Secret, as the kubelet changes it: a link to a folder is swapped. */
function mountSecret(folder: string, version: number, files: Readonly<Record<string, string>>): void {
  const data = join(folder, `..version-${version}`)
  mkdirSync(data)
  for (const [name, content] of Object.entries(files)) writeFileSync(join(data, name), content)
  symlinkSync(`..version-${version}`, join(folder, '..data_tmp'))
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  for (const name of Object.keys(files)) {
    const link = join(folder, name)
    if (!lstatSync(link, { throwIfNoEntry: false })) symlinkSync(join('..data', name), link)
  }
}

// Processes take their time to start, and files to be read again.
suite('over TLS', { concurrency: true }, () => {
  test('polls, reads and writes are served, and browsers are told to stay', async (t) => {
    const { port } = await run(t, writePair(temporaryFolder(t)))
    const where = { port, ca: authority.pem }
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const only = { ...where, minVersion: version, maxVersion: version }
      const poll = await send(only, 'GET', POLL, { token: READ_TOKEN })
      assert.equal(poll.status, 200)
      assert.equal((poll.socket as TLSSocket).getProtocol(), version)
      assert.equal(poll.body.inputs.length, 2)
    }
    const made = await send(where, 'POST', '/namespaces', { body: { id: 'by-tls' } })
    assert.equal(made.status, 201, made.text)
    assert.equal((await send(where, 'GET', '/namespaces/by-tls')).status, 200)
    for (const [path, token] of [
      ['/clusters', WRITE_TOKEN],
      ['/docs', null],
      ['/nothing', null],
      ['/clusters', null],
    ] as const) {
      const { headers } = await send(where, 'GET', path, { token })
      assert.match(String(headers['strict-transport-security']), /^max-age=\d{7,}/, path)
    }
    const [latest] = (await send(where, 'GET', '/revisions?limit=1')).body
    assert.equal(latest.client_address, '127.0.0.1')
    await assert.rejects(send({ port }, 'GET', '/health'), { code: /ECONNRESET|EPIPE|HPE_INVALID_CONSTANT/ })
    const ALPNProtocols = ['h2', 'http/1.1']
    const { socket } = await send({ ...where, ALPNProtocols }, 'GET', '/health')
    assert.equal((socket as TLSSocket).alpnProtocol, 'http/1.1')
  })

  test('without TLS browsers are told nothing of it', async (t) => {
    const service = await start(t)
    const { headers } = await service.call('GET', '/clusters')
    assert.equal(headers['strict-transport-security'], undefined)
  })

  test('a certificate is replaced under constant polling, and not one poll fails', async (t) => {
    const folder = temporaryFolder(t)
    const { port, output } = await run(t, writePair(folder))
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.after(() => agent.destroy())
    const seen = new Set<string>()
    let polls = 0
    let isOver = false
    const pollOn = async (more: RequestOptions) => {
      // No longer than the test waits below.
      while (!isOver) {
        const { status, socket } = await send({ port, ca: authority.pem, ...more }, 'GET', POLL)
        assert.equal(status, 200)
        seen.add(String((socket as TLSSocket).getPeerCertificate?.()?.subject?.CN))
        polls++
      }
    }
    const polling = Promise.all([pollOn({}), pollOn({}), pollOn({ agent })])
    // Whatever fails is told at the end.
    polling.catch(() => {
      isOver = true
    })
    try {
      for (const name of ['second', 'third']) {
        writePair(folder, await issueServer(name))
        await waitFor(`${name} is served`, () => isOver || seen.has(name))
      }
      // Half a pair is no pair.
      writeFileSync(join(folder, 'tls.key'), (await issueServer('fourth')).key)
      await waitFor('that is told', () => isOver || output().includes('does not belong to the certificate'))
    } finally {
      isOver = true
    }
    await polling
    assert.deepEqual([...seen], ['first', 'second', 'third'])
    assert.doesNotMatch(output(), /PRIVATE KEY/)
    t.diagnostic(`${polls} polls`)
  })

  test('all problems with all files are told at once, without what is in them', async (t) => {
    const folder = temporaryFolder(t)
    const write = (name: string, content: string): string => {
      writeFileSync(join(folder, name), content)
      return join(folder, name)
    }
    const env = {
      TLS_CERT_FILE: join(folder, 'gone.crt'),
      TLS_KEY_FILE: write('tls.key', pair.key.replaceAll(/^(?!-).*$/gm, 'hush')),
      TLS_CLIENT_CA_FILE: write('ca.crt', 'hush'),
      AUTH_TOKEN: '',
      AUTH_TOKEN_FILE: write('read', 'hush hush'),
      CRUD_AUTH_TOKEN: '',
      CRUD_AUTH_TOKEN_FILE: write('write', ' \n,\n'),
      ACCESS_FILE: write('access.yaml', 'certificates: [{ name: a, role: king }]'),
    }
    const problems = await refusal(env)
    const named = problems.map((problem) => /^([A-Z_]+) (\S+): ./.exec(problem)?.slice(1).join(' '))
    const { AUTH_TOKEN: _, CRUD_AUTH_TOKEN: __, ...files } = env
    const expected = Object.entries(files).map(([name, path]) => `${name} ${path}`)
    assert.deepEqual([...new Set(named)].sort(), expected.sort(), problems.join('\n'))
  })
})

suite('on a unix socket', { concurrency: true }, () => {
  test('everything is served, for the owner and the group, and the socket goes with the service', async (t) => {
    const path = join(temporaryFolder(t), 'fleet.sock')
    const { ready, stop } = await run(t, { LISTEN_ADDR: `unix:${path}` })
    assert.equal(ready.address, path)
    assert.equal(statSync(path).mode & 0o777, 0o660)
    const where = { socketPath: path }
    assert.equal((await send(where, 'GET', POLL, { token: READ_TOKEN })).status, 200)
    assert.equal((await send(where, 'GET', '/docs', { token: null })).status, 200)
    assert.equal((await send(where, 'GET', POLL, { token: 'wrong' })).status, 401)
    const spoofed = { body: { id: 'by-socket' }, headers: { 'x-forwarded-for': '6.6.6.6' } }
    assert.equal((await send(where, 'POST', '/namespaces', spoofed)).status, 201)
    const [latest] = (await send(where, 'GET', '/revisions?limit=1')).body
    assert.equal(latest.client_address, 'unix')
    assert.equal(await stop(), 0)
    assert.ok(!existsSync(path))
  })

  test('the socket of a process that was killed is replaced, that of a living one is not', async (t) => {
    const path = join(temporaryFolder(t), 'fleet.sock')
    const env = { LISTEN_ADDR: `unix:${path}` }
    const killed = await run(t, env)
    await killed.stop('SIGKILL')
    assert.ok(statSync(path).isSocket())
    await run(t, { ...env, TRUSTED_PROXIES: 'unix, 10.0.0.0/8' })
    const where = { socketPath: path }
    assert.equal((await send(where, 'GET', POLL)).status, 200)
    const [problem = '', ...more] = await refusal(env, 1)
    assert.match(problem, /EADDRINUSE/)
    assert.deepEqual(more, [])
    // The proxy on this socket is trusted, and says where clients are.
    const headers = { 'x-forwarded-for': '6.6.6.6, 192.0.2.7, 10.1.2.3' }
    await send(where, 'POST', '/namespaces', { body: { id: 'by-proxy' }, headers })
    const [latest] = (await send(where, 'GET', '/revisions?limit=1')).body
    assert.equal(latest.client_address, '192.0.2.7')
  })

  test('a living process that is too busy to answer keeps its socket', async (t) => {
    const path = join(temporaryFolder(t), 'busy.sock')
    const busy = `require('node:net').createServer().listen({ path: ${JSON.stringify(path)}, backlog: 1 }, () => {
      process.stdout.write('ready', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0))
    })`
    const child = spawn(process.execPath, ['-e', busy], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.after(() => child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    // The kernel takes a few connections, and then sends all others away.
    const waiting = Array.from({ length: 4 }, () => connect(path).on('error', () => {}))
    t.after(() => {
      for (const socket of waiting) socket.destroy()
    })
    await sleep(50)
    const { ino } = statSync(path)
    await assert.rejects(run(t, { LISTEN_ADDR: `unix:${path}` }), /EADDRINUSE/)
    assert.equal(statSync(path).ino, ino)
  })

  test('whatever else is in its place is refused and stays', async (t) => {
    const path = join(temporaryFolder(t), 'precious')
    writeFileSync(path, 'do not lose me')
    for (const env of [{ LISTEN_ADDR: `unix:${path}` }, { ADMIN_LISTEN_ADDR: `unix:${path}` }]) {
      const [problem = '', ...more] = await refusal(env, 1)
      assert.match(problem, /EADDRINUSE/)
      assert.deepEqual(more, [])
      assert.equal(readFileSync(path, 'utf8'), 'do not lose me')
    }
  })
})

suite('on a port for those who run the service', { concurrency: true }, () => {
  const ELSEWHERE = [
    '/',
    POLL,
    '/api/v2/flux/clusters',
    '/clusters',
    '/whoami',
    '/tokens',
    '/docs',
    '/openapi.json',
  ]

  test('there are probes and metrics, plain, beside a main port that wants certificates', async (t) => {
    const folder = temporaryFolder(t)
    const TLS_CLIENT_CA_FILE = join(folder, 'ca.crt')
    writeFileSync(TLS_CLIENT_CA_FILE, authority.pem)
    const { ready, port, stop } = await run(t, {
      ...writePair(folder),
      TLS_CLIENT_CA_FILE,
      TLS_CLIENT_AUTH: 'required',
      ADMIN_LISTEN_ADDR: '127.0.0.1:0',
    })
    const admin = { port: ready.admin_address?.port ?? 0 }
    assert.notEqual(admin.port, port)
    const secure = { port, ca: authority.pem }
    await assert.rejects(send(secure, 'GET', '/health', { token: null }))
    const shown = { ...secure, ...(await authority.issue({ dnsNames: ['one.k8s.example.com'] })) }
    for (const path of ['/health', '/ready'])
      for (const where of [admin, shown])
        for (const method of ['GET', 'HEAD'])
          assert.equal((await send(where, method, path, { token: null })).status, 200, path)
    assert.equal((await send(shown, 'GET', POLL, { token: null })).status, 200)
    const metrics = await send(admin, 'GET', '/metrics', { token: null })
    assert.equal(metrics.status, 200)
    assert.match(metrics.text, /flux_resourceset_polls_total\{endpoint="platform-components",code="2xx"\} 1/)
    assert.equal((await send(shown, 'GET', '/metrics')).status, 404)
    for (const path of ELSEWHERE) {
      for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS']) {
        const { status, body } = await send(admin, method, path)
        assert.deepEqual([status, body.error], [404, 'not_found'], `${method} ${path}`)
      }
    }
    assert.equal(await stop(), 0)
  })

  test('it may be a unix socket; no body is read there, and errors are like all others', async (t) => {
    const path = join(temporaryFolder(t), 'admin.sock')
    const { port, stop } = await run(t, { ADMIN_LISTEN_ADDR: `unix:${path}` })
    const admin = { socketPath: path }
    assert.equal((await send(admin, 'GET', '/metrics', { token: null })).status, 200)
    assert.equal((await send({ port }, 'GET', '/metrics')).status, 404)
    const post = async (raw: string): Promise<unknown> =>
      (await send(admin, 'POST', '/x', { raw })).body.error
    assert.equal(await post('{"h":[],"\\\\":0}'), 'not_found')
    const patched = await send({ port }, 'PUT', '/clusters/one/patches/a', { raw: '{"h":"1","\\"":"2"}' })
    assert.equal(patched.body.details[0].path, '/"', patched.text)
    assert.equal(await post('{'), 'not_found')
    assert.equal((await send(admin, 'GET', '/health')).headers['x-content-type-options'], 'nosniff')
    assert.equal(await stop(), 0)
    assert.ok(!existsSync(path))
  })
})

suite('behind proxies', () => {
  /** Says what the audit has for a write with such a header. */
  async function startBehind(t: TestContext, trustedProxies: readonly string[]) {
    const service = await start(t, { trustedProxies })
    const where = { port: Number(new URL(service.url).port) }
    let count = 0
    return async (forwarded: string | string[] | undefined): Promise<string> => {
      const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
      const body = { id: `new-${count++}` }
      const made = await send(where, 'POST', '/namespaces', { body, headers })
      assert.equal(made.status, 201, made.text)
      return (await send(where, 'GET', '/revisions?limit=1')).body[0].client_address
    }
  }

  test('what somebody says who is not trusted is ignored', async (t) => {
    for (const trusted of [[], ['10.0.0.0/8', '::1', 'unix', '127.0.0.2']]) {
      const addressOf = await startBehind(t, trusted)
      assert.equal(await addressOf('192.0.2.7'), '127.0.0.1', trusted.join())
    }
  })

  test('a trusted proxy is believed, and of several hops the last that is not trusted is the client', async (t) => {
    const addressOf = await startBehind(t, ['127.0.0.1', '10.0.0.0/8', '2001:db8:1::/48'])
    for (const [forwarded, expected] of [
      [undefined, '127.0.0.1'],
      ['', '127.0.0.1'],
      ['192.0.2.7', '192.0.2.7'],
      ['192.0.2.7, 10.1.1.1', '192.0.2.7'],
      ['6.6.6.6, 192.0.2.7, 10.1.1.1, 10.2.2.2', '192.0.2.7'],
      ['6.6.6.6,192.0.2.7,10.1.1.1', '192.0.2.7'],
      [['6.6.6.6', '192.0.2.7, 10.1.1.1'], '192.0.2.7'],
      ['10.3.3.3, 10.1.1.1', '10.3.3.3'],
      ['192.0.2.7:4711', '192.0.2.7'],
      ['2001:db8:2::7', '2001:db8:2::7'],
      ['[2001:db8:2::7]:4711', '2001:db8:2::7'],
      ['2001:db8:2::7, 2001:db8:1::1, 10.1.1.1', '2001:db8:2::7'],
      ['::ffff:192.0.2.7', '192.0.2.7'],
      ['192.0.2.7, ::ffff:10.1.1.1', '192.0.2.7'],
      ['unknown, 10.1.1.1', '10.1.1.1'],
      ['192.0.2.7, secret, 10.1.1.1', '10.1.1.1'],
      ['127.0.0.1', '127.0.0.1'],
      ['unix', '127.0.0.1'],
      ['192.0.2.7, unix', '127.0.0.1'],
      ["1' OR 1=1", '127.0.0.1'],
      ['192.0.2.7\t,\t10.1.1.1', '192.0.2.7'],
      ['fe80::1%eth0, 10.1.1.1', 'fe80::1%eth0'],
    ] satisfies [string | string[] | undefined, string][])
      assert.equal(await addressOf(forwarded), expected, String(forwarded))
  })

  test('failed logins are limited by the client, not by the proxy', async (t) => {
    const service = await start(t, { trustedProxies: ['127.0.0.0/8'], maxAuthFailures: 3 })
    let attempt = 0
    const fail = async (client: string) => {
      const headers = { 'x-forwarded-for': client }
      return (await service.call('GET', POLL, { token: `wrong-${attempt++}`, headers })).status
    }
    for (const expected of [401, 401, 401, 429, 429]) assert.equal(await fail('192.0.2.7'), expected)
    assert.equal(await fail('192.0.2.8'), 401)
    // What the client itself puts in front does not make it another one.
    assert.equal(await fail('192.0.2.99, 192.0.2.7'), 429)
  })

  test('somebody who is not trusted does not get around the limit by a header', async (t) => {
    const service = await start(t, { maxAuthFailures: 3, trustedProxies: ['10.0.0.1'] })
    const statuses: number[] = []
    for (let i = 0; i < 6; i++) {
      const headers = { 'x-forwarded-for': `192.0.2.${i}`, 'x-real-ip': `192.0.2.${i}` }
      statuses.push((await service.call('GET', POLL, { token: `wrong-${i}`, headers })).status)
    }
    assert.deepEqual(statuses, [401, 401, 401, 429, 429, 429])
  })

  test('a write whose caller has left before it began is not done', async (t) => {
    const granted: OidcResult = {
      ok: true,
      username: 'ada',
      values: ['x'],
      expiresAt: new Date('2099-01-01'),
    }
    let letGo = () => {}
    const waiting = new Promise<void>((resolve) => {
      letGo = resolve
    })
    const asked = Promise.withResolvers<void>()
    const oidc = {
      async verify() {
        asked.resolve()
        await waiting
        return granted
      },
    }
    const rules = () => ({ oidc: [{ claim: 'x', role: 'admin' }], certificates: [] }) as const
    const service = await start(t, { trustedProxies: ['unix'], auth: { oidc, rules } })
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
    socket.write(
      'DELETE /clusters/two HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a.b.c\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n',
    )
    await asked.promise
    socket.resetAndDestroy()
    await waitFor('the service has seen that', async () => {
      const { promise, resolve } = Promise.withResolvers<number>()
      service.app.server.getConnections((_, count) => resolve(count))
      return (await promise) === 0
    })
    letGo()
    assert.equal((await service.call('DELETE', '/clusters/one')).headers['x-revision'], '2')
    assert.equal((await service.call('GET', '/clusters/two')).status, 200)
  })
})

suite('tokens of the environment', { concurrency: true }, () => {
  const statusOf = async (port: number, token: string, path = POLL) =>
    (await send({ port }, 'GET', path, { token })).status

  test('in files are read again when a Secret is swapped, and stay as they were when it is of no use', async (t) => {
    const folder = temporaryFolder(t)
    mountSecret(folder, 1, { read: 'hush-read-one\n', write: 'hush-write-one' })
    const { port, output } = await run(t, {
      AUTH_TOKEN: '',
      CRUD_AUTH_TOKEN: '',
      AUTH_TOKEN_FILE: join(folder, 'read'),
      CRUD_AUTH_TOKEN_FILE: join(folder, 'write'),
    })
    for (const token of ['hush-read-one', 'hush-write-one']) assert.equal(await statusOf(port, token), 200)
    for (const token of [READ_TOKEN, WRITE_TOKEN]) assert.equal(await statusOf(port, token), 401)
    assert.equal(await statusOf(port, 'hush-read-one', '/tokens'), 403)
    assert.equal(await statusOf(port, 'hush-write-one', '/tokens'), 200)
    mountSecret(folder, 2, {
      read: 'hush-read-one\nhush-read-two, hush-read-three\r\n',
      write: 'hush-write-two',
    })
    await waitFor('the new ones are good', async () => (await statusOf(port, 'hush-write-two')) === 200)
    for (const token of ['hush-read-one', 'hush-read-two', 'hush-read-three'])
      assert.equal(await statusOf(port, token), 200, token)
    assert.equal(await statusOf(port, 'hush-write-one'), 401)
    assert.equal(await statusOf(port, 'hush-write-two', '/tokens'), 200)
    for (const [version, read, why] of [
      [3, '', /holds no token/],
      [4, 'hush hush', /may hold only printable ASCII/],
    ] as const) {
      mountSecret(folder, version, { read, write: 'hush-write-three' })
      await waitFor(`the log tells: ${why}`, () => why.test(output()))
    }
    unlinkSync(join(folder, '..data'))
    await waitFor('the log tells that they are gone', () => /ENOENT/.test(output()))
    for (const token of ['hush-read-two', 'hush-write-two']) assert.equal(await statusOf(port, token), 200)
    assert.equal(await statusOf(port, 'hush-write-three'), 401)
    mountSecret(folder, 5, { read: 'hush-read-three', write: 'hush-write-three' })
    await waitFor('what is mended counts', async () => (await statusOf(port, 'hush-write-three')) === 200)
    assert.equal(await statusOf(port, 'hush-read-two'), 401)
    assert.equal(await statusOf(port, 'hush-read-three'), 200)
    assert.doesNotMatch(output(), /hush/)
  })

  test('are none where they are switched off: a named one from the store lets in', async (t) => {
    const DATABASE_URL = `sqlite://${join(temporaryFolder(t), 'fleet.db')}`
    const { port, stop } = await run(t, { STORE_BACKEND: 'sqlite', DATABASE_URL, SHARED_TOKENS: 'off' })
    for (const token of [READ_TOKEN, WRITE_TOKEN, '', 'undefined'])
      assert.equal(await statusOf(port, token), 401, token)
    const child = spawn(process.execPath, [MAIN, 'token', 'create', 'ops', '--role', 'admin'], {
      env: { ...COMPILED, DATABASE_URL },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const secret = Buffer.concat(await child.stdout.toArray())
      .toString()
      .trim()
    assert.match(secret, /^frs_/)
    await waitFor('it is known to the service', async () => (await statusOf(port, secret)) === 200)
    assert.equal(await statusOf(port, secret, '/tokens'), 200)
    assert.equal(await stop(), 0)
  })
})

suite('for browsers', () => {
  const ORIGIN = 'https://fleet.example.com'
  const preflight = (origin: string) => ({
    token: null,
    headers: {
      origin,
      'access-control-request-method': 'PATCH',
      'access-control-request-headers': 'authorization,content-type,if-match',
    },
  })

  test('no other origin may call the API unless it is named', async (t) => {
    const service = await start(t)
    for (const path of ['/clusters', POLL, '/whoami']) {
      const asked = await service.call('OPTIONS', path, preflight(ORIGIN))
      assert.ok(asked.status >= 400, asked.text)
      const answer = await service.call('GET', path, { headers: { origin: ORIGIN } })
      assert.equal(answer.status, 200)
      for (const { headers } of [asked, answer])
        assert.deepEqual(
          Object.keys(headers).filter((name) => name.startsWith('access-control')),
          [],
        )
    }
  })

  test('an origin that is named may, no other may, and nobody with cookies', async (t) => {
    const service = await start(t, { corsOrigins: [ORIGIN, 'https://second.example.com'] })
    for (const origin of [ORIGIN, 'https://second.example.com']) {
      const asked = await service.call('OPTIONS', '/clusters/one', preflight(origin))
      assert.equal(asked.status, 204, asked.text)
      assert.equal(asked.headers['access-control-allow-origin'], origin)
      assert.match(String(asked.headers['access-control-allow-methods']), /PATCH/)
      for (const name of ['Authorization', 'Content-Type', 'If-Match', 'Idempotency-Key'])
        assert.match(String(asked.headers['access-control-allow-headers']), new RegExp(name, 'i'))
      const headers = { origin }
      const answer = await service.call('PATCH', '/clusters/one', { headers, body: { environment: 'qa' } })
      assert.equal(answer.status, 200)
      assert.equal(answer.headers['access-control-allow-origin'], origin)
      assert.match(String(answer.headers['access-control-expose-headers']), /X-Revision/i)
      const refused = await service.call('GET', '/clusters', { token: null, headers })
      assert.equal(refused.status, 401)
      assert.equal(refused.headers['access-control-allow-origin'], origin)
      for (const given of [asked, answer, refused]) {
        assert.equal(given.headers['access-control-allow-credentials'], undefined)
        assert.match(String(given.headers.vary), /origin/i)
      }
    }
    for (const origin of [
      'https://evil.example.com',
      'http://fleet.example.com',
      'https://fleet.example.com.evil.org',
      'https://fleet.example.com:8443',
      'null',
    ]) {
      for (const answer of [
        await service.call('OPTIONS', '/clusters/one', preflight(origin)),
        await service.call('GET', '/clusters', { headers: { origin } }),
      ])
        assert.equal(answer.headers['access-control-allow-origin'], undefined, origin)
    }
    const plain = await service.call('GET', '/clusters')
    assert.equal(plain.status, 200)
    // What is no preflight is as without.
    assert.ok((await service.call('OPTIONS', '/clusters')).status >= 400)
    assert.equal((await service.call('POST', '/nothing', { body: {} })).status, 404)
    assert.equal((await service.call('DELETE', '/clusters')).headers.allow?.includes('OPTIONS'), false)
  })

  const EVERYWHERE = {
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'same-origin',
  }

  test('pages, answers and errors forbid framing and guessing', async (t) => {
    const service = await start(t, { limits: { requests: 100 } })
    for (const [method, path, options, expected] of [
      ['GET', '/docs', { token: null }, 200],
      ['GET', '/docs/static/swagger-ui.css', { token: null }, 200],
      ['GET', '/openapi.yaml', { token: null }, 200],
      ['GET', '/health', { token: null }, 200],
      ['GET', '/metrics', { token: null }, 200],
      ['GET', '/whoami', {}, 200],
      ['GET', '/clusters', {}, 200],
      ['POST', '/namespaces', { body: { id: 'new' } }, 201],
      ['POST', '/namespaces', { body: { id: 'new' } }, 409],
      ['GET', '/clusters', { token: null }, 401],
      ['DELETE', '/clusters/one', { token: READ_TOKEN }, 403],
      ['GET', '/nothing', {}, 404],
      ['POST', '/health', {}, 405],
      ['GET', '/clusters?odd=1', {}, 400],
      ['POST', '/namespaces', { raw: '{' }, 400],
      ['POST', '/namespaces', { raw: '<x/>', headers: { 'content-type': 'text/xml' } }, 415],
      // Whoever asks for the end of the connection is still sending when it comes.
      ['POST', '/namespaces', { raw: Buffer.alloc(5_000_000), headers: { connection: 'keep-alive' } }, 413],
      ['GET', '/%zz', {}, 400],
      ['GET', `/clusters/${'x'.repeat(400)}`, {}, 400],
    ] as const) {
      const { status, headers, text } = await service.call(method, path, options)
      assert.equal(status, expected, `${method} ${path}: ${text.slice(0, 200)}`)
      assert.partialDeepStrictEqual(headers, EVERYWHERE, `${method} ${path}`)
    }
  })

  test('the page loads nothing from elsewhere and runs nothing inline', async (t) => {
    const service = await start(t)
    const { headers, text } = await service.call('GET', '/docs', { token: null })
    const policy = String(headers['content-security-policy'])
    assert.match(policy, /default-src 'self'/)
    assert.doesNotMatch(policy, /script-src[^;]*'unsafe|\*|https?:/)
    assert.doesNotMatch(text, /<script(?![^>]*\bsrc=)|(?:src|href)="(?:https?:)?\/\//)
  })
})

test('no error shows where in the program it came from', async (t) => {
  const store = openMemoryStore()
  let isBroken = false
  const lines: string[] = []
  const log = pino(
    new Writable({
      write(chunk, _, done) {
        lines.push(String(chunk))
        done()
      },
    }),
  )
  const options: ServiceOptions = {
    log,
    store: {
      ...store,
      async commit(base, revision) {
        if (isBroken) throw new TypeError('hush: /srv/secret.ts is broken')
        return store.commit(base, revision)
      },
    },
    auth: {
      oidc: {
        verify() {
          throw new TypeError('hush: a bug')
        },
      },
    },
  }
  const service = await start(t, options)
  isBroken = true
  for (const [method, path, call, expected] of [
    ['POST', '/namespaces', { body: { id: 'new' } }, [500, 503]],
    ['GET', '/clusters', { token: 'a.b.c' }, [500]],
    ['GET', POLL, { token: 'a.b.c' }, [500]],
    ['GET', '/api/v2/flux/clusters', { token: 'a.b.c' }, [500]],
    ['GET', '/%zz', {}, [400]],
    ['GET', `/clusters/${'x'.repeat(400)}`, {}, [400, 404]],
    ['POST', '/namespaces', { raw: '{"a":' }, [400]],
    ['GET', '/docs/static/%2e%2e/%2e%2e/package.json', {}, [400, 403, 404]],
  ] as const) {
    const { status, text, body, headers } = await service.call(method, path, call)
    assert.ok(
      expected.some((known) => known === status),
      `${method} ${path}: ${status} ${text}`,
    )
    assert.doesNotMatch(text, /hush|\bat \w.*:\d+|node_modules|\/src\/|\.ts\b|Error:/, path)
    assert.equal(typeof body?.error, 'string', text)
    if (status === 500) {
      assert.ok(body.message.includes(headers['x-request-id']), text)
      assert.ok(lines.some((line) => line.includes(String(headers['x-request-id'])) && line.includes('hush')))
    }
  }
  assert.equal((await service.call('GET', POLL)).status, 200)
})
