// Which server the command line talks to, with which tokens and types: flags, environment, contexts, caches, proxies.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import type { ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { buildOpenapi } from '../src/http/openapi/openapi.ts'
import { type CliOptions, cli, outcomesOf, type Run } from './cli-process.ts'
import { serve } from './own-server.ts'
import {
  builtInTypes,
  READ_TOKEN,
  smallFleet,
  startService,
  type TestService,
  temporaryFolder,
  WRITE_TOKEN,
} from './service.ts'

const OPENAPI = buildOpenapi(builtInTypes(), [], { version: 'test' })
const NETWORK_POLICIES = join(import.meta.dirname, '../examples/network-policies')
const LIST = ['cluster', 'list']
const CREATE = ['namespace', 'create', 'x', '--yes']
const config = (...words: string[]) => ['config', ...words]
/** A URL where nothing listens. */
const NOWHERE = 'http://127.0.0.1:1'

const FIELDS_OF_NEW_CLUSTER = [
  ...['three', '--cluster-name', 'three', '--cluster-dns', 'three.k8s.example.com'],
  ...['--environment', 'dev'],
]

/** Every secret of this file holds this, so that none of them can be shown without being noticed. */
const SECRET = 'hush'
const secret = (name: string): string => `${SECRET}-${name}`

async function run(args: readonly string[], options: CliOptions = {}): Promise<Run> {
  const ran = await cli(args, options)
  for (const text of [ran.stdout, ran.stderr]) {
    assert.doesNotMatch(text, /^ {4}at /m, `a stack is shown:\n${text}`)
    const shown = [READ_TOKEN, WRITE_TOKEN, SECRET].find((token) => text.includes(token))
    assert.equal(shown, undefined, `a token is shown:\n${text}`)
  }
  return ran
}

/** Runs the program where it has to work. */
async function succeed(args: readonly string[], options: CliOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await run(args, options)
  assert.equal(code, 0, stderr)
  return stdout
}

const { fail } = outcomesOf(run)

interface Fake {
  readonly url: string
  /** `GET /clusters?limit=5000&offset=0` */
  readonly asked: string[]
  /** The last part of what was sent in Authorization, with `-` for nothing, in the same order. */
  readonly tokens: string[]
  /** Questions for types. */
  readonly learned: string[]
}

type Handle = (
  response: ServerResponse,
  request: string,
  headers: NodeJS.Dict<string | string[]>,
  body: string,
) => unknown

/** A server that takes every token, has nothing, and agrees to everything. */
function agree(response: ServerResponse, request: string): void {
  const isList = request.startsWith('GET')
  const headers = { 'content-type': 'application/json', 'x-revision': '2', 'x-request-id': 'request-1' }
  response
    .writeHead(isList ? 200 : 201, { ...headers, ...(isList && { 'x-total-count': '0' }) })
    .end(isList ? '[]' : '{"id":"x"}')
}

interface FakeOptions {
  readonly handle?: Handle
  /** Path that it is found below. */
  readonly prefix?: string
  readonly openapi?: () => unknown
}

async function fake(
  t: TestContext,
  { handle = agree, prefix = '', openapi = () => OPENAPI }: FakeOptions = {},
) {
  const found: Fake = { url: '', asked: [], tokens: [], learned: [] }
  const { url: base, server } = await serve(t, async (incoming, response) => {
    const { method, url = '', headers } = incoming
    const body = Buffer.concat(await incoming.toArray()).toString()
    const path = url.replace(/^http:\/\/[^/]+/, '')
    if (path === `${prefix}/openapi.json`) {
      found.learned.push(`${method} ${url}`)
      const head = { 'content-type': 'application/json', 'x-revision': '2', 'x-request-id': 'request-1' }
      return response.writeHead(200, head).end(JSON.stringify(openapi()))
    }
    // After a write its reach is read: with which token is not what these tests are about.
    if (path.startsWith(`${prefix}/revisions/`)) return handle(response, `${method} ${url}`, headers, body)
    found.asked.push(`${method} ${url}`)
    found.tokens.push((headers.authorization ?? '-').replace(/^Bearer /, ''))
    await handle(response, `${method} ${url}`, headers, body)
  })
  return { ...found, server, url: `${base}${prefix}` }
}

/** A port where nothing listens: one that was free a moment ago. */
async function closedPort(): Promise<number> {
  const server = createTcpServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

interface Context {
  readonly api_url: string
  readonly api_token?: string
  readonly write_token?: string
}

/** A home with these contexts, the first of them in use. */
function homeWith(t: TestContext, contexts: Record<string, Context>): string {
  return homeHolding(t, JSON.stringify({ current_context: Object.keys(contexts)[0], contexts }))
}

function homeHolding(t: TestContext, config: string): string {
  const home = temporaryFolder(t)
  mkdirSync(join(configFile(home), '..'), { recursive: true })
  writeFileSync(configFile(home), config, { mode: 0o600 })
  return home
}

function configFile(home: string): string {
  return join(home, '.config/flux-resourceset/config.json')
}

function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8)
}

describe('tokens', { concurrency: 4 }, () => {
  test('reads carry the read token and writes the write token', async (t) => {
    const { url, tokens } = await fake(t)
    const env = {
      FLUX_API_URL: url,
      FLUX_API_TOKEN: secret('read'),
      FLUX_API_WRITE_TOKEN: secret('write'),
    }
    await succeed(LIST, { env })
    await succeed(CREATE, { env })
    const flags = ['--api-token', secret('flag-read'), '--write-token', secret('flag-write')]
    await succeed([...LIST, ...flags], { env })
    await succeed([...CREATE, ...flags], { env })
    const expected = ['read', 'write', 'flag-read', 'flag-write']
    assert.deepEqual(tokens, expected.map(secret))
  })

  test('one token alone is for both, whichever it is', async (t) => {
    const { url, tokens } = await fake(t)
    for (const name of ['FLUX_API_TOKEN', 'FLUX_API_WRITE_TOKEN']) {
      const env = { FLUX_API_URL: url, [name]: secret(name) }
      await succeed(LIST, { env })
      await succeed(CREATE, { env })
    }
    const [read, write] = [secret('FLUX_API_TOKEN'), secret('FLUX_API_WRITE_TOKEN')]
    assert.deepEqual(tokens, [read, read, write, write])
  })

  test('without a token none is sent', async (t) => {
    const { url, tokens } = await fake(t)
    await succeed(LIST, { env: { FLUX_API_URL: url, FLUX_API_TOKEN: '', FLUX_API_WRITE_TOKEN: ' \n' } })
    assert.deepEqual(tokens, ['-'])
  })

  test('a line break at the end of a token does not count', async (t) => {
    const { url, tokens } = await fake(t)
    await succeed(LIST, { env: { FLUX_API_URL: url, FLUX_API_TOKEN: `${secret('a')}\n` } })
    await succeed([...CREATE, '--write-token', `${secret('b')}\r\n`], { env: { FLUX_API_URL: url } })
    assert.deepEqual(tokens, [secret('a'), secret('b')])
  })

  test('a token with a line break or a space inside is refused before anything is sent', async (t) => {
    const { url, asked } = await fake(t)
    const two = `${secret('a')}\n${secret('b')}`
    await fail(2, /FLUX_API_TOKEN holds a line break/, LIST, {
      env: { FLUX_API_URL: url, FLUX_API_TOKEN: two },
    })
    await fail(2, /--write-token holds a line break/, [...CREATE, '--write-token', two], { url })
    const odd = { env: { FLUX_API_URL: url, FLUX_API_WRITE_TOKEN: `${secret('a')} b` } }
    await fail(2, /FLUX_API_WRITE_TOKEN holds characters/, CREATE, odd)
    assert.deepEqual(asked, [])
  })
})

describe('tokens in files', { concurrency: 4 }, () => {
  function files(t: TestContext) {
    const folder = temporaryFolder(t)
    return (name: string, text = `${secret(name)}\n`): string => {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    }
  }

  test('are sent as those of the flags are, before all others', async (t) => {
    const { url, tokens } = await fake(t)
    const file = files(t)
    const HOME = homeWith(t, { other: { api_url: url, api_token: secret('held') } })
    const env = {
      HOME,
      FLUX_API_URL: url,
      FLUX_API_TOKEN: secret('env'),
      FLUX_API_WRITE_TOKEN: secret('env'),
    }
    const both = ['--api-token-file', file('read'), `--write-token-file=${file('write')}`]
    for (const command of [LIST, CREATE]) {
      await succeed([...both, ...command], { env })
      await succeed([...command, ...both, '--context', 'other'], { env })
    }
    await succeed([...CREATE, '--api-token-file', file('alone')], { env: { HOME, FLUX_API_URL: url } })
    assert.deepEqual(tokens, ['read', 'read', 'write', 'write', 'alone'].map(secret))
  })

  test('come from stdin where that is -, one line each', async (t) => {
    const { url, tokens } = await fake(t)
    const env = { FLUX_API_URL: url }
    const both = ['--api-token-file', '-', '--write-token-file', '-']
    await succeed([...LIST, ...both], { env, input: `${secret('a')}\n\n${secret('b')}\n` })
    await succeed([...CREATE, ...both], { env, input: `${secret('a')}\n${secret('b')}\n` })
    await succeed([...LIST, '--api-token-file', '-'], { env, input: secret('c') })
    assert.deepEqual(tokens, ['a', 'b', 'c'].map(secret))
    await fail(2, /stdin holds 1 line/, [...LIST, ...both], { env, input: secret('only') })
  })

  test('are kept by a context', async (t) => {
    const env = { HOME: temporaryFolder(t) }
    const set = config('set-context', 'one', '--api-url', NOWHERE)
    await succeed([...set, '--api-token-file', files(t)('r'), '--write-token-file', '-'], {
      env,
      input: secret('w'),
    })
    const held = JSON.parse(readFileSync(configFile(env.HOME), 'utf8')).contexts.one
    assert.deepEqual(held, { api_url: NOWHERE, api_token: secret('r'), write_token: secret('w') })
  })

  test('that cannot be read, hold none or more than one, or stand beside a flag are refused before anything is sent', async (t) => {
    const { url, asked } = await fake(t)
    const file = files(t)
    const refused = (says: RegExp, ...flags: string[]) => fail(2, says, [...LIST, ...flags], { url })
    await refused(/nowhere cannot be read: there is no such file/, '--api-token-file', '/nowhere')
    await refused(/--write-token-file: .*empty holds no token/, '--write-token-file', file('empty', ' \n'))
    await refused(
      /--api-token-file holds a line break/,
      '--api-token-file',
      file('two', `${SECRET}\n${SECRET}`),
    )
    for (const name of ['--api-token', '--write-token'])
      await refused(
        new RegExp(`${name} and ${name}-file are both given`),
        name,
        'x',
        `${name}-file`,
        file('x'),
      )
    assert.deepEqual(asked, [])
  })
})

describe('a token over plain http', { concurrency: 4 }, () => {
  const PLAIN = 'http://fleet.example.com'
  const WARNING =
    /^Warning: http:\/\/fleet\.example\.com is plain http: whoever is in between can read your token/
  /** Whatever is asked for, the fake is asked. */
  const through = (url: string) => ({ HTTP_PROXY: url, FLUX_API_URL: PLAIN, FLUX_API_TOKEN: secret('read') })

  test('to another machine is warned of, once, also where notes are not wanted', async (t) => {
    const { url, asked } = await fake(t)
    for (const command of [LIST, CREATE, [...LIST, '-q'], ['status']]) {
      const { stderr } = await run(command, { env: { HOME: temporaryFolder(t), ...through(url) } })
      assert.match(stderr, WARNING, command.join(' '))
      assert.equal(stderr.split('is plain http').length, 2, stderr)
    }
    assert.ok(asked.length >= 4)
  })

  test('is no news to those who say that they know', async (t) => {
    const { url } = await fake(t)
    const env = { ...through(url), HOME: temporaryFolder(t) }
    assert.doesNotMatch((await run(LIST, { env: { ...env, FLUX_API_ALLOW_HTTP: 'true' } })).stderr, /Warning/)
    assert.match((await run(LIST, { env: { ...env, FLUX_API_ALLOW_HTTP: 'false' } })).stderr, WARNING)
    const set = config('set-context', 'lab', '--api-url', PLAIN, '--api-token', secret('r'))
    const kept = async () => (await run([...LIST, '--context', 'lab'], { env })).stderr
    await succeed([...set, '--allow-http'], { env })
    assert.doesNotMatch(await kept(), /Warning/)
    await succeed(set, { env })
    assert.doesNotMatch(await kept(), /Warning/, 'it stays')
    await succeed([...set, '--no-allow-http'], { env })
    assert.match(await kept(), WARNING)
  })

  test('is not warned of where there is none, over TLS, or on this machine', async (t) => {
    const { url } = await fake(t)
    const env = { ...through(url), FLUX_API_TOKEN: '' }
    assert.doesNotMatch((await run(LIST, { env })).stderr, /Warning/)
    for (const own of [url, url.replace('127.0.0.1', 'localhost'), 'https://127.0.0.1:1'])
      assert.doesNotMatch((await run([...LIST, '--api-url', own], { url })).stderr, /Warning/, own)
    assert.doesNotMatch((await run(['--help'], { env: through(NOWHERE) })).stderr, /Warning/)
  })
})

describe('where a setting is taken from', { concurrency: 4 }, () => {
  test('flags come before --context, that before the environment, that before the current context', async (t) => {
    const [flag, context, environment, current] = await Promise.all([fake(t), fake(t), fake(t), fake(t)])
    const tokensOf = (name: string) => ({
      api_token: secret(`${name}-read`),
      write_token: secret(`${name}-write`),
    })
    const HOME = homeWith(t, {
      current: { api_url: current.url, ...tokensOf('current') },
      other: { api_url: context.url, ...tokensOf('context') },
    })
    const env = {
      HOME,
      FLUX_API_URL: environment.url,
      FLUX_API_TOKEN: secret('env-read'),
      FLUX_API_WRITE_TOKEN: secret('env-write'),
    }
    const flags = ['--api-url', flag.url, '--api-token', secret('flag-read')]
    const all = [...flags, '--write-token', secret('flag-write'), '--context', 'other']
    for (const command of [LIST, CREATE]) {
      await succeed([...command, ...all], { env })
      await succeed([...command, '--context', 'other'], { env })
      await succeed(command, { env })
      await succeed(command, { env: { HOME } })
    }
    assert.deepEqual(flag.tokens, ['flag-read', 'flag-write'].map(secret))
    assert.deepEqual(context.tokens, ['context-read', 'context-write'].map(secret))
    assert.deepEqual(environment.tokens, ['env-read', 'env-write'].map(secret))
    assert.deepEqual(current.tokens, ['current-read', 'current-write'].map(secret))
  })

  test('without any setting it is port 8080 of this machine', async (t) => {
    const proxy = await fake(t)
    await succeed(LIST, { env: { HOME: temporaryFolder(t), HTTP_PROXY: proxy.url } })
    assert.match(proxy.asked[0] ?? '', /^GET http:\/\/127\.0\.0\.1:8080\/clusters\?/)
  })

  test('an empty FLUX_API_URL counts as none', async (t) => {
    const { url, asked } = await fake(t)
    await succeed(LIST, { env: { HOME: homeWith(t, { only: { api_url: url } }), FLUX_API_URL: '' } })
    assert.equal(asked.length, 1)
  })

  test('the tokens of a context are sent to its own server and to no other', async (t) => {
    const [own, other] = await Promise.all([fake(t), fake(t)])
    const context = { api_url: own.url, api_token: secret('read'), write_token: secret('write') }
    const env = { HOME: homeWith(t, { own: context }) }
    for (const command of [LIST, CREATE]) {
      await succeed([...command, '--api-url', other.url], { env })
      await succeed([...command, '--api-url', other.url, '--context', 'own'], { env })
      await succeed(command, { env: { ...env, FLUX_API_URL: other.url } })
      await succeed([...command, '--api-url', `${own.url}/below`, '--context', 'own'], { env })
    }
    assert.deepEqual(other.tokens, Array(6).fill('-'))
    assert.ok(own.asked.includes('GET /below/clusters?limit=5000&offset=0'))
    assert.deepEqual(new Set(own.tokens), new Set(['-']))
    await succeed([...LIST, '--api-url', `${own.url}/`, '--context', 'own'], { env })
    assert.equal(own.tokens.at(-1), secret('read'))
  })

  test("a context with one token writes with it, and not with the environment's for another server", async (t) => {
    const own = await fake(t)
    const HOME = homeWith(t, {
      current: { api_url: NOWHERE },
      lab: { api_url: own.url, api_token: secret('lab') },
    })
    const env = {
      HOME,
      FLUX_API_URL: 'https://prod.example.com',
      FLUX_API_TOKEN: secret('prod-read'),
      FLUX_API_WRITE_TOKEN: secret('prod-write'),
    }
    await succeed([...LIST, '--context', 'lab'], { env })
    await succeed([...CREATE, '--context', 'lab'], { env })
    assert.deepEqual(own.tokens, [secret('lab'), secret('lab')])
  })
})

describe('the URL', { concurrency: 4 }, () => {
  test('it may have a path of its own, with a slash at its end or without', async (t) => {
    const { url, asked, learned } = await fake(t, { prefix: '/fleet/api' })
    for (const each of [url, `${url}/`]) {
      await succeed(LIST, { url: each })
      await succeed(CREATE, { url: each })
    }
    const expected = ['GET /fleet/api/clusters?limit=5000&offset=0', 'POST /fleet/api/namespaces']
    assert.deepEqual(asked, [...expected, ...expected])
    assert.ok(learned.length > 0)
  })

  for (const bad of [
    'localhost:8080',
    '127.0.0.1:8080',
    'flux-api.example.com',
    'ftp://flux-api.example.com',
    'http://',
    'http://[::1',
    'http://host:99999',
    'http://ho st',
    'http://host/?token=x',
    'http://host/#x',
    ' ',
  ]) {
    test(`"${bad}" is refused, and told what it should be like`, async () => {
      const said = await fail(2, /^Error: --api-url must /, [...LIST, '--api-url', bad])
      assert.ok(said.includes(`"${bad}"`), said)
    })
  }

  test('it is refused in the environment as well', async () => {
    await fail(2, /^Error: (?:the API URL|FLUX_API_URL) must .*"nonsense"/, LIST, {
      env: { FLUX_API_URL: 'nonsense' },
    })
  })

  test('credentials in it are refused, and not shown', async (t) => {
    const HOME = temporaryFolder(t)
    for (const url of [
      'http://u:hush@host',
      'https://hush@host/path',
      'ftp://u:hush@host',
      'http://u:hush@host:99999',
    ]) {
      await fail(2, /^Error: --api-url must /, [...LIST, '--api-url', url])
      await fail(2, /^Error: .* must /, LIST, { env: { FLUX_API_URL: url } })
      await fail(2, /^Error: --api-url must /, ['config', 'set-context', 'x', '--api-url', url], {
        env: { HOME },
      })
    }
    assert.equal(existsSync(configFile(HOME)), false)
  })

  test('help is shown whatever the settings are', async (t) => {
    assert.match(await succeed(['--help'], { env: { FLUX_API_URL: 'nonsense' } }), /^Usage: /)
    assert.match(
      await succeed(['cluster', 'list', '--help'], { env: { HOME: homeHolding(t, '{') } }),
      /^Usage: /,
    )
  })
})

describe('contexts', { concurrency: 4 }, () => {
  test('they are set, used, listed and forgotten, and commands go where they say', async (t) => {
    const [one, two] = await Promise.all([fake(t), fake(t)])
    const env = { HOME: temporaryFolder(t) }
    const set = await run(
      config(
        'set-context',
        'one',
        '--api-url',
        one.url,
        '--api-token',
        secret('r'),
        '--write-token',
        secret('w'),
      ),
      { env },
    )
    assert.deepEqual(set, { code: 0, stdout: '', stderr: 'context "one" added, and in use\n' })
    await succeed(config('set-context', 'two', '--api-url', two.url), { env })
    const table = (await succeed(config('get-contexts'), { env })).trimEnd().split('\n')
    assert.deepEqual(
      table.map((line) => line.trim().split(/ {2,}/)),
      [
        ['CURRENT', 'NAME', 'API-URL', 'TOKENS'],
        ['*', 'one', one.url, 'read, write'],
        ['two', two.url],
      ],
    )
    await succeed(LIST, { env })
    await succeed([...LIST, '--context', 'two'], { env })
    await succeed(config('use-context', 'two'), { env })
    await succeed(CREATE, { env })
    assert.deepEqual(one.tokens, [secret('r')])
    assert.deepEqual(two.tokens, ['-', '-'])
    assert.equal(await succeed(config('get-contexts', '-o', 'name'), { env }), 'one\ntwo\n')
    await succeed(config('delete-context', 'one'), { env })
    assert.equal(await succeed(config('get-contexts', '-o', 'name'), { env }), 'two\n')
    assert.doesNotMatch(readFileSync(configFile(env.HOME), 'utf8'), new RegExp(SECRET))
  })

  test('what is not given again stays, and an empty token is forgotten', async (t) => {
    const env = { HOME: homeWith(t, { one: { api_url: NOWHERE, api_token: 'r', write_token: 'w' } }) }
    const held = () => JSON.parse(readFileSync(configFile(env.HOME), 'utf8')).contexts.one
    await succeed(config('set-context', 'one', '--api-token', secret('new')), { env })
    assert.deepEqual(held(), { api_url: NOWHERE, api_token: secret('new'), write_token: 'w' })
    await succeed(config('set-context', 'one', '--write-token', ''), { env })
    assert.deepEqual(held(), { api_url: NOWHERE, api_token: secret('new') })
  })

  test('what is shown of the file holds no token, in any format', async (t) => {
    const context = { api_url: NOWHERE, api_token: secret('r'), write_token: secret('w') }
    const env = { HOME: homeWith(t, { one: context }) }
    for (const what of ['view', 'get-contexts']) {
      for (const format of ['table', 'json', 'jsonpath={.contexts.one}']) {
        assert.match(await succeed(config(what, '-o', format), { env }), /one|127\.0\.0\.1/)
      }
    }
    const view = JSON.parse(await succeed(config('view'), { env }))
    assert.deepEqual(view, {
      current_context: 'one',
      contexts: { one: { api_url: NOWHERE, api_token: '(set)', write_token: '(set)' } },
    })
  })

  test('the file is for its owner alone', async (t) => {
    const env = { HOME: temporaryFolder(t) }
    await succeed(config('set-context', 'one', '--api-url', NOWHERE, '--api-token', secret('r')), { env })
    const file = configFile(env.HOME)
    assert.deepEqual([modeOf(file), modeOf(join(file, '..'))], ['600', '700'])
    assert.deepEqual(readdirSync(join(file, '..')), ['config.json'])
  })

  test('a file that others can read is warned about, and closed when it is written', async (t) => {
    const env = { HOME: homeWith(t, { one: { api_url: NOWHERE, api_token: secret('r') } }) }
    const file = configFile(env.HOME)
    chmodSync(file, 0o644)
    const { code, stderr } = await run(config('get-contexts'), { env })
    assert.equal(code, 0)
    assert.ok(stderr.startsWith('Warning: ') && stderr.includes(`chmod 600 ${file}`), stderr)
    assert.equal(modeOf(file), '644')
    await succeed(config('use-context', 'one'), { env })
    assert.equal(modeOf(file), '600')
    assert.equal((await run(config('get-contexts'), { env })).stderr, '')
  })

  test('XDG_CONFIG_HOME says where the file is, unless it is relative', async (t) => {
    const folder = temporaryFolder(t)
    const HOME = temporaryFolder(t)
    const cwd = temporaryFolder(t)
    const set = config('set-context', 'one', '--api-url', NOWHERE)
    await succeed(set, { env: { HOME, XDG_CONFIG_HOME: folder } })
    assert.ok(existsSync(join(folder, 'flux-resourceset/config.json')))
    assert.equal(existsSync(join(HOME, '.config')), false)
    await succeed(set, { cwd, env: { HOME, XDG_CONFIG_HOME: 'relative', XDG_CACHE_HOME: './relative' } })
    assert.ok(existsSync(configFile(HOME)))
    assert.deepEqual(readdirSync(cwd), [])
  })

  test('without a home nothing is written to the current folder, or read from there', async (t) => {
    const { url } = await fake(t)
    const other = await fake(t)
    const cwd = temporaryFolder(t)
    await succeed(LIST, { cwd, env: { HOME: '', FLUX_API_URL: url } })
    assert.deepEqual(readdirSync(cwd), [])
    const trap = homeWith(t, { trap: { api_url: other.url, api_token: 'x' } })
    await run([...LIST, '--timeout', '0.3', '-q'], { cwd: trap, env: { HOME: '', HTTP_PROXY: url } })
    assert.deepEqual(other.asked, [])
  })

  test('without HOME in the environment commands work as ever', async (t) => {
    const { url } = await fake(t)
    const env = { HOME: undefined, XDG_CACHE_HOME: temporaryFolder(t) }
    assert.deepEqual(await run(LIST, { url, env }), { code: 0, stdout: '', stderr: 'No clusters found.\n' })
  })

  test('tokens given as - come from stdin, one line each', async (t) => {
    const env = { HOME: temporaryFolder(t) }
    const set = config('set-context', 'one', '--api-url', NOWHERE)
    const both = [...set, '--api-token', '-', '--write-token', '-']
    await succeed(both, { env, input: `${secret('r')}\n${secret('w')}\n` })
    const held = JSON.parse(readFileSync(configFile(env.HOME), 'utf8')).contexts.one
    assert.deepEqual(held, { api_url: NOWHERE, api_token: secret('r'), write_token: secret('w') })
    const before = readFileSync(configFile(env.HOME), 'utf8')
    await fail(2, /stdin holds 1 line/, both, { env, input: secret('only') })
    await fail(2, /stdin holds 0 lines/, [...set, '--api-token', '-'], { env, input: '' })
    assert.equal(readFileSync(configFile(env.HOME), 'utf8'), before)
  })

  test('a context that is not known is told with those that are', async (t) => {
    const env = { HOME: homeWith(t, { one: { api_url: NOWHERE }, two: { api_url: NOWHERE } }) }
    const says = /there is no context "three": known are one, two/
    await fail(2, says, config('use-context', 'three'), { env })
    await fail(2, says, config('delete-context', 'three'), { env })
    await fail(2, says, [...LIST, '--context', 'three'], { env })
    await fail(2, /known are none yet/, [...LIST, '--context', 'three'], {
      env: { HOME: temporaryFolder(t) },
    })
  })

  test('a context in use that is not there is told, and no other server is asked instead', async (t) => {
    const proxy = await fake(t)
    const HOME = homeHolding(
      t,
      '{"current_context":"gone","contexts":{"one":{"api_url":"http://127.0.0.1:1"}}}',
    )
    await fail(2, /"gone"/, LIST, { env: { HOME, HTTP_PROXY: proxy.url } })
    assert.deepEqual(proxy.asked, [])
  })

  test('a new context needs a URL, a good one, and a name', async (t) => {
    const env = { HOME: temporaryFolder(t) }
    await fail(2, /"one" needs --api-url/, config('set-context', 'one'), { env })
    await fail(2, /--api-url must be like/, config('set-context', 'one', '--api-url', 'nonsense'), { env })
    await fail(2, /line break/, config('set-context', 'one', '--api-url', NOWHERE, '--api-token', 'a\nb'), {
      env,
    })
    await fail(2, /name/, config('set-context', '', '--api-url', NOWHERE), { env })
    assert.equal(existsSync(configFile(env.HOME)), false)
  })

  for (const [name, content, says] of [
    ['no JSON', `{"contexts":{"one":{"api_token":"${secret('r')}"`, /is not JSON/],
    ['nothing', '', /is not JSON/],
    ['a list', '[]', /must hold an object "contexts"/],
    [
      'a context without a URL',
      `{"contexts":{"one":{"api_token":"${secret('r')}"}}}`,
      /"one" has no api_url/,
    ],
    [
      'a token that is a number',
      '{"current_context":"one","contexts":{"one":{"api_url":"http://127.0.0.1:1","api_token":5}}}',
      /token/,
    ],
  ] as const) {
    test(`a file that holds ${name} is told with its path, and left as it is`, async (t) => {
      const env = { HOME: homeHolding(t, content) }
      const file = configFile(env.HOME)
      for (const args of [LIST, config('use-context', 'one')]) {
        const stderr = await fail(2, says, args, { env })
        assert.ok(stderr.includes(file), stderr)
      }
      assert.equal(readFileSync(file, 'utf8'), content)
    })
  }

  test('a file that cannot be read or written is told with its path', async (t) => {
    const unreadable = temporaryFolder(t)
    mkdirSync(configFile(unreadable), { recursive: true })
    await fail(2, /config\.json cannot be read/, LIST, { env: { HOME: unreadable } })
    const notFolder = join(temporaryFolder(t), 'file')
    writeFileSync(notFolder, '')
    const set = config('set-context', 'one', '--api-url', NOWHERE)
    for (const XDG_CONFIG_HOME of [notFolder, '/dev/null']) {
      const stderr = await fail(2, /cannot be written/, set, { env: { XDG_CONFIG_HOME } })
      assert.ok(stderr.includes(join(XDG_CONFIG_HOME, 'flux-resourceset/config.json')), stderr)
    }
  })

  test('a file that its owner has closed is told, and left as it is', {
    skip: process.getuid?.() === 0,
  }, async (t) => {
    const env = { HOME: homeWith(t, { one: { api_url: NOWHERE } }) }
    const file = configFile(env.HOME)
    const content = readFileSync(file, 'utf8')
    chmodSync(file, 0o000)
    await fail(2, /config\.json cannot be read/, LIST, { env })
    chmodSync(file, 0o600)
    chmodSync(join(file, '..'), 0o500)
    try {
      await fail(2, /config\.json cannot be written/, config('set-context', 'two', '--api-url', NOWHERE), {
        env,
      })
    } finally {
      chmodSync(join(file, '..'), 0o700)
    }
    assert.equal(readFileSync(file, 'utf8'), content)
  })

  test('the file is whole at every moment while several write it', async (t) => {
    const env = { HOME: homeWith(t, { first: { api_url: NOWHERE, api_token: 'x'.repeat(100_000) } }) }
    const file = configFile(env.HOME)
    let isDone = false
    let looks = 0
    const looking = (async () => {
      for (; !isDone; looks++) {
        assert.ok(JSON.parse(readFileSync(file, 'utf8')).contexts.first)
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
    })()
    const names = ['a', 'b', 'c', 'd']
    await Promise.all(
      names.map((name) => succeed(config('set-context', name, '--api-url', NOWHERE), { env })),
    )
    isDone = true
    await looking
    assert.ok(looks > 2)
    assert.deepEqual(readdirSync(join(file, '..')), ['config.json'])
  })

  test('config and completion talk to no server', async (t) => {
    const { url, asked, learned } = await fake(t)
    const env = { HOME: homeWith(t, { one: { api_url: url, api_token: 'x' } }) }
    for (const args of [
      config('get-contexts'),
      config('view'),
      config('use-context', 'one'),
      config('set-context', 'two', '--api-url', url, '--api-token', secret('r')),
      config('--help'),
      ['completion', 'bash'],
    ]) {
      await succeed(args, { env })
    }
    assert.deepEqual([...asked, ...learned], [])
  })

  test('a context that is of no use can be left, changed and deleted', async (t) => {
    const broken =
      '{"current_context":"bad","contexts":{"bad":{"api_url":"nonsense"},"good":{"api_url":"http://127.0.0.1:1"}}}'
    for (const args of [
      config('use-context', 'good'),
      config('set-context', 'bad', '--api-url', NOWHERE),
      config('delete-context', 'bad'),
      config('get-contexts'),
    ]) {
      await succeed(args, { env: { HOME: homeHolding(t, broken) } })
    }
  })
})

describe('types of a server', { concurrency: 4 }, () => {
  let plain: TestService
  let rich: TestService
  before(async () => {
    const types = builtInTypes(NETWORK_POLICIES)
    plain = await startService()
    const network_policies = [{ id: 'default-deny', target_namespace: 'podinfo' }]
    rich = await startService({ types, fleet: { ...smallFleet(), network_policies } })
  })
  after(async () => {
    await plain.stop()
    await rich.stop()
  })

  function cacheFiles(home: string): string[] {
    const folder = join(home, '.cache/flux-resourceset')
    return readdirSync(folder)
      .filter((name) => name.startsWith('types-'))
      .map((name) => join(folder, name))
  }

  /** A server that is one at first, and another after a word. */
  async function changing(t: TestContext) {
    const target = { service: plain }
    const front = await fake(t, {
      openapi: () => JSON.parse(openapiOf(target.service)),
      handle: async (
        response,
        request,
        { authorization, 'content-type': type, 'idempotency-key': key },
        body,
      ) => {
        const [method = '', path = ''] = request.split(' ')
        const head = { authorization, 'content-type': type, 'idempotency-key': key }
        const headers = JSON.parse(JSON.stringify(head))
        const passed = { token: null, headers, ...(body !== '' && { raw: body }) }
        const { status, headers: answered, bytes } = await target.service.call(method, path, passed)
        response.writeHead(status, { ...answered, connection: 'close' }).end(bytes)
      },
    })
    return { ...front, become: (service: TestService) => Object.assign(target, { service }) }
  }

  function openapiOf({ types }: TestService): string {
    return JSON.stringify(buildOpenapi(types, [], { version: 'test' }))
  }

  test('a type that the program was not built with has its commands, flags and help', async () => {
    const { url } = rich
    assert.match(await succeed(['network-policy', 'list'], { url }), /^default-deny +podinfo/m)
    const help = await succeed(['network-policy', 'create', '--help'], { url })
    assert.match(help, /--target-namespace <text>/)
    assert.match(help, /--cluster /)
    assert.match(await succeed(['--help'], { url }), /^ {2}network-policy/m)
    const create = ['network-policy', 'create', 'web', '--target-namespace', 'team-a']
    assert.match(await succeed(create, { url }), /^network_policies\/web created/)
    await succeed(['network-policy', 'assign', 'web', '--cluster', 'two'], { url })
    const { body } = await rich.call('GET', '/clusters/two')
    assert.deepEqual(body.network_policies, [{ id: 'web' }])
    await fail(2, /unknown command 'network-policy'/, ['network-policy', 'list'], { url: plain.url })
  })

  test('a server is asked for its types once in ten minutes, each server by itself', async (t) => {
    const [one, two] = await Promise.all([fake(t), fake(t)])
    const HOME = temporaryFolder(t)
    for (const { url } of [one, two, one, two]) await succeed(LIST, { url, env: { HOME } })
    assert.deepEqual([one.learned.length, two.learned.length], [1, 1])
    assert.equal(cacheFiles(HOME).length, 2)
    for (const file of cacheFiles(HOME)) age(file)
    await succeed(LIST, { url: one.url, env: { HOME } })
    assert.deepEqual([one.learned.length, two.learned.length], [2, 1])
  })

  /** Makes a cache eleven minutes old. */
  function age(file: string): void {
    const cached = JSON.parse(readFileSync(file, 'utf8'))
    const then = Date.now() - 11 * 60 * 1000
    writeFileSync(file, JSON.stringify({ ...cached, at: then }))
    utimesSync(file, then / 1000, then / 1000)
  }

  test('the cache is found below XDG_CACHE_HOME', async (t) => {
    const { url } = await fake(t)
    const XDG_CACHE_HOME = temporaryFolder(t)
    const HOME = temporaryFolder(t)
    await succeed(LIST, { url, env: { HOME, XDG_CACHE_HOME } })
    const names = readdirSync(join(XDG_CACHE_HOME, 'flux-resourceset'))
    assert.equal(names.filter((name) => name.startsWith('types-')).length, 1)
    assert.equal(existsSync(join(HOME, '.cache')), false)
  })

  const news: [name: string, args: string[]][] = [
    ['a noun', ['network-policy', 'get', 'default-deny']],
    ['help for a noun', ['network-policy', 'get', '--help']],
    [
      'a flag',
      ['cluster', 'create', ...FIELDS_OF_NEW_CLUSTER, '--network-policy', 'default-deny', '--dry-run'],
    ],
    ['an endpoint', ['cluster', 'inputs', 'one', 'network-policies']],
    ['a type in a file', ['diff', '-f', '-']],
  ]
  for (const [name, args] of news) {
    test(`${name} that the server has learned meanwhile is asked for before it is refused`, async (t) => {
      const front = await changing(t)
      const env = { HOME: temporaryFolder(t) }
      await succeed(LIST, { url: front.url, env })
      front.become(rich)
      const input = 'type: network_policies\nid: default-deny\n'
      const stdout = await succeed(args, { url: front.url, env, input })
      if (name !== 'a type in a file') assert.match(stdout, /default-deny|network-policy get|\(none\)/)
      assert.equal(front.learned.length, 2)
    })
  }

  test('what no server knows is asked for once, and then refused', async (t) => {
    const { url, learned } = await fake(t)
    const env = { HOME: temporaryFolder(t) }
    await succeed(LIST, { url, env })
    await fail(2, /unknown command 'nope'/, ['nope', 'list'], { url, env })
    await fail(2, /unknown option '--nope'/, [...LIST, '--nope'], { url, env })
    assert.equal(learned.length, 3)
  })

  for (const [name, damage] of [
    ['half of it', (text: string) => text.slice(0, text.length / 2)],
    ['nothing', () => ''],
    ['null', () => 'null'],
    ['another shape', (text: string) => JSON.stringify({ ...JSON.parse(text), nouns: [{}] })],
    ['nouns of null', (text: string) => JSON.stringify({ ...JSON.parse(text), nouns: [null] })],
    [
      'nouns of another version',
      (text: string) =>
        JSON.stringify({
          ...JSON.parse(text),
          nouns: [{ name: 'clusters', noun: 'cluster', singular: 'cluster', description: 'Clusters.' }],
        }),
    ],
  ] as const) {
    test(`a cache that holds ${name} is ignored`, async (t) => {
      const { url, learned } = await fake(t)
      const HOME = temporaryFolder(t)
      await succeed(LIST, { url, env: { HOME } })
      const [cache = ''] = cacheFiles(HOME)
      writeFileSync(cache, damage(readFileSync(cache, 'utf8')))
      assert.equal(await succeed(LIST, { url, env: { HOME } }), '')
      assert.equal(learned.length, 2)
    })
  }

  test('a cache that cannot be written only costs time', async (t) => {
    const { url, learned } = await fake(t)
    const file = join(temporaryFolder(t), 'file')
    writeFileSync(file, '')
    for (const XDG_CACHE_HOME of [file, '/dev/null']) {
      const ran = await run(LIST, { url, env: { XDG_CACHE_HOME } })
      assert.deepEqual(ran, { code: 0, stdout: '', stderr: 'No clusters found.\n' })
    }
    assert.equal(learned.length, 2)
  })

  test('with the server away, help has the types that every server has, and their flags', async (t) => {
    const url = `http://127.0.0.1:${await closedPort()}`
    const options = { url, env: { HOME: temporaryFolder(t) } }
    const help = await succeed(['--help'], options)
    for (const noun of ['cluster', 'component', 'namespace', 'rolebinding']) {
      assert.match(help, new RegExp(`^  ${noun}[ |]`, 'm'))
    }
    const flags: [noun: string, flags: string[]][] = [
      ['cluster', ['--cluster-dns', '--environment', '--label']],
      ['component', ['--oci-url', '--oci-tag', '--depends-on']],
      ['namespace', ['--label', '--annotation']],
      ['rolebinding', ['--role', '--subject']],
    ]
    for (const [noun, names] of flags) {
      const shown = await succeed([noun, 'create', '--help'], options)
      for (const name of names) assert.match(shown, new RegExp(`^  ${name}\\b`, 'm'))
    }
  })

  test('with the server away, what was learned before is used however old it is', async (t) => {
    const front = await changing(t)
    front.become(rich)
    const options = { url: front.url, env: { HOME: temporaryFolder(t) } }
    await succeed(['network-policy', 'list'], options)
    for (const file of cacheFiles(options.env.HOME)) age(file)
    front.server.closeAllConnections()
    front.server.close()
    await once(front.server, 'close')
    assert.match(await succeed(['network-policy', 'create', '--help'], options), /--target-namespace/)
    await fail(3, /cannot reach/, ['network-policy', 'list', '-q'], options)
  })

  test('a noun of a server that is away is not called unknown', async (t) => {
    const url = `http://127.0.0.1:${await closedPort()}`
    const options = { url, env: { HOME: temporaryFolder(t) } }
    const stderr = await fail(3, /cannot (?:reach|be reached)/, ['network-policy', 'list', '-q'], options)
    assert.ok(stderr.includes(url), stderr)
  })

  test('a server that is too old to tell its types is taken to have those of the program', async (t) => {
    const { 'x-flux-types': _types, ...old } = OPENAPI as unknown as Record<string, unknown>
    assert.ok(_types)
    const { url, asked } = await fake(t, { openapi: () => old })
    assert.equal(await succeed(LIST, { url }), '')
    await succeed(CREATE, { url })
    assert.deepEqual(asked, ['GET /clusters?limit=5000&offset=0', 'POST /namespaces'])
  })
})

describe('forward proxies', { concurrency: 4 }, () => {
  for (const name of ['HTTP_PROXY', 'http_proxy']) {
    test(`${name} gets what is for http`, async (t) => {
      const proxy = await fake(t)
      const url = 'http://flux-api.example.com/fleet'
      assert.equal(await succeed(LIST, { url, env: { [name]: proxy.url } }), '')
      assert.deepEqual(proxy.asked.slice(-1), [`GET ${url}/clusters?limit=5000&offset=0`])
    })
  }

  test('HTTPS_PROXY is asked for a tunnel to what is for https, and gets no token', async (t) => {
    const proxy = await fake(t)
    const tunnels: string[] = []
    proxy.server.on('connect', ({ url, headers }, socket) => {
      tunnels.push(`${url} ${headers.authorization ?? '-'}`)
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    })
    const env = { HTTPS_PROXY: proxy.url.replace('//', '//user:hush@') }
    const url = 'https://flux-api.example.com'
    const stderr = await fail(3, /cannot reach https:\/\/flux-api\.example\.com\/: .*403/, LIST, { url, env })
    assert.ok(stderr.includes(proxy.url), stderr)
    assert.deepEqual(new Set(tunnels), new Set(['flux-api.example.com:443 -']))
  })

  test('hosts of NO_PROXY are asked directly', async (t) => {
    const [server, proxy] = await Promise.all([fake(t), fake(t)])
    for (const name of ['NO_PROXY', 'no_proxy']) {
      const env = { HTTP_PROXY: proxy.url, [name]: 'example.com,127.0.0.1' }
      await succeed(LIST, { url: server.url, env })
    }
    assert.equal(server.asked.length, 2)
    assert.deepEqual([...proxy.asked, ...proxy.learned], [])
    await succeed(LIST, { url: server.url, env: { HTTP_PROXY: proxy.url, NO_PROXY: 'example.com' } })
    assert.equal(proxy.asked.length, 1)
  })

  test('an empty variable is no proxy', async (t) => {
    const { url, asked } = await fake(t)
    await succeed(LIST, { url, env: { HTTP_PROXY: '', https_proxy: '' } })
    assert.equal(asked.length, 1)
  })

  test('when it is the proxy that is away, the proxy is named', async () => {
    const proxy = `http://127.0.0.1:${await closedPort()}`
    const url = 'http://flux-api.example.com'
    const env = { HTTP_PROXY: proxy.replace('//', '//user:hush@') }
    const stderr = await fail(3, /cannot reach/, [...LIST, '-q'], { url, env })
    assert.ok(stderr.includes(proxy.replace('http://', '')), stderr)
  })

  test('a proxy that is not given as a URL is used or refused, and not left out', async (t) => {
    const [server, proxy] = await Promise.all([fake(t), fake(t)])
    const env = { HTTP_PROXY: proxy.url.replace('http://', '') }
    const { code, stderr } = await run(LIST, { url: server.url, env })
    assert.deepEqual(server.asked, [])
    if (code === 0) assert.equal(proxy.asked.length, 1)
    else assert.match(stderr, /HTTP_PROXY/)
  })
})
