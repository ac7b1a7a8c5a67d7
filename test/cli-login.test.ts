// `login` and `logout` on the command line: tokens in contexts, and logins at an issuer that are kept fresh.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createOidc } from '../src/http/auth/oidc.ts'
import { type CliOptions, cli, onTerminal, outcomesOf, type Run } from './cli-process.ts'
import { start } from './every-store.ts'
import { type OidcIssuer, startOidcIssuer } from './oidc-issuer.ts'
import { standBefore } from './own-server.ts'
import {
  READ_TOKEN,
  startService,
  type TestService,
  temporaryFolder,
  WRITE_TOKEN,
  waitFor,
} from './service.ts'

/** Starting a process is most of the work, and no test here knows of another. */
const AT_ONCE = { concurrency: 4 }
const AUDIENCE = 'flux-resourceset'

let service: TestService
before(async () => {
  service = await startService()
})
after(() => service.stop())

/** Runs the program; no token is ever shown, of whatever kind. */
async function run(args: readonly string[], options: CliOptions = {}): Promise<Run> {
  const ran = await cli(args, options)
  for (const text of [ran.stdout, ran.stderr]) {
    assert.doesNotMatch(text, /^ {4}at /m, text)
    assert.ok(
      ![READ_TOKEN, WRITE_TOKEN, 'hush', 'refresh-', 'access-', 'eyJ', 'frs_'].some((part) =>
        text.includes(part),
      ),
      text,
    )
  }
  return ran
}

const { succeed, fail } = outcomesOf(run)

interface Context {
  readonly api_url: string
  readonly api_token?: string
  readonly write_token?: string
  readonly login?: Record<string, string>
}

interface Config {
  readonly current_context?: string
  readonly contexts: Readonly<Record<string, Context>>
}

/** A home of its own, and the file with the contexts in it. */
class Home {
  readonly env: { readonly HOME: string }
  readonly file: string

  constructor(t: TestContext, contexts?: Readonly<Record<string, Context>>) {
    const HOME = temporaryFolder(t)
    this.env = { HOME }
    this.file = join(HOME, '.config/flux-resourceset/config.json')
    if (contexts) this.config = { current_context: Object.keys(contexts)[0] ?? '', contexts }
  }

  get config(): Config {
    return JSON.parse(readFileSync(this.file, 'utf8'))
  }

  set config(config: Config) {
    mkdirSync(join(this.file, '..'), { recursive: true })
    writeFileSync(this.file, JSON.stringify(config), { mode: 0o600 })
  }
}

function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8)
}

async function made(body: Record<string, string>): Promise<string> {
  const answer = await service.call('POST', '/tokens', { body })
  assert.equal(answer.status, 201, answer.text)
  return answer.body.secret
}

describe('login with a token', AT_ONCE, () => {
  test('keeps it in a new context called by the host, and in use when none is', async (t) => {
    const { env, file } = new Home(t)
    const { stdout, stderr } = await succeed(['login', '--api-url', service.url], {
      env,
      input: `${WRITE_TOKEN}\n`,
    })
    assert.equal(stdout, '')
    assert.equal(
      stderr,
      `logged in to ${service.url}/ as writer: role admin\ncontext "${new URL(service.url).host}" added, and in use\n`,
    )
    assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), {
      current_context: new URL(service.url).host,
      contexts: {
        [new URL(service.url).host]: {
          api_url: service.url,
          api_token: WRITE_TOKEN,
          write_token: WRITE_TOKEN,
        },
      },
    })
    assert.deepEqual([modeOf(file), modeOf(join(file, '..'))], ['600', '700'])
    assert.deepEqual(readdirSync(join(file, '..')), ['config.json'])
    assert.match((await succeed(['token', 'whoami'], { env })).stdout, /^Name: +writer$/m)
  })

  test('one that may write is for everything, one that may not is for reading, and earlier ones are gone', async (t) => {
    const editor = await made({
      name: 'ed',
      role: 'editor',
      selector: 'environment=dev',
      expires_at: '2099-01-01T00:00:00Z',
    })
    const home = new Home(t, { mine: { api_url: service.url, api_token: 'old', write_token: 'older' } })
    const args = ['login', '--with-token']
    const { stderr } = await succeed(args, { env: home.env, input: editor })
    assert.match(
      stderr,
      /as ed: role editor for \(environment=dev\), expires in \d+d\ncontext "mine" changed, and in use\n$/,
    )
    assert.deepEqual(home.config.contexts.mine, {
      api_url: service.url,
      api_token: editor,
      write_token: editor,
    })
    await succeed(args, { env: home.env, input: READ_TOKEN })
    assert.deepEqual(home.config.contexts.mine, { api_url: service.url, api_token: READ_TOKEN })
  })

  test('goes to the context that is meant, and to no other', async (t) => {
    const other = await start(t)
    const home = new Home(t, { one: { api_url: service.url }, two: { api_url: `${other.url}/` } })
    const { env } = home
    const held = () =>
      Object.entries(home.config.contexts).flatMap(([name, { api_token }]) => (api_token ? name : []))
    await succeed(['login', '--context', 'two'], { env, input: READ_TOKEN })
    assert.deepEqual(held(), ['two'])
    await succeed(['login', '--api-url', service.url], { env, input: READ_TOKEN })
    assert.deepEqual(held(), ['one', 'two'], 'that of the context in use is not a new one')
    await succeed(['login', '--api-url', other.url], { env, input: READ_TOKEN })
    await succeed(['login', '--api-url', service.url, '--context', 'three'], { env, input: READ_TOKEN })
    assert.deepEqual(held(), ['one', 'two', 'three'])
    assert.equal(home.config.current_context, 'three', 'what was logged in to is in use')
    const third = await start(t)
    await succeed(['login', '--api-url', third.url], { env, input: READ_TOKEN })
    await fail(2, 'there is no context "four"', ['login', '--context', 'four'], { env, input: READ_TOKEN })
    assert.deepEqual(held(), ['one', 'two', 'three', new URL(third.url).host])
  })

  test('says when the environment comes before what was kept', async (t) => {
    const home = new Home(t)
    const env = { ...home.env, FLUX_API_URL: service.url, FLUX_API_TOKEN: READ_TOKEN }
    const { stderr } = await succeed(['login'], { env, input: WRITE_TOKEN })
    assert.match(
      stderr,
      /before the context: FLUX_API_URL, FLUX_API_TOKEN; or give --context 127\.0\.0\.1:\d+\n$/,
    )
    assert.match(
      (await succeed(['token', 'whoami', '--context', new URL(service.url).host], { env })).stdout,
      /writer/,
    )
  })

  test('is printed as JSON where that is asked for', async (t) => {
    const { env } = new Home(t, { mine: { api_url: service.url } })
    const { stdout } = await succeed(['login', '-o', 'json', '-q'], { env, input: READ_TOKEN })
    const server = `${service.url}/`
    const expected = { context: 'mine', server, name: 'reader', via: 'environment', role: 'viewer' }
    assert.deepEqual(JSON.parse(stdout), expected)
  })

  test('keeps nothing when it is not taken, or there is none', async (t) => {
    const home = new Home(t, { mine: { api_url: service.url, api_token: READ_TOKEN } })
    const before = readFileSync(home.file, 'utf8')
    const { env } = home
    const says = /^Error: http:\S+ does not take this token: nothing was kept\n {2}HTTP 401/
    await fail(1, says, ['login'], { env, input: 'hush-wrong' })
    await fail(2, 'stdin holds no token\n', ['login', '--with-token'], { env, input: ' \n' })
    await fail(2, 'stdin holds no token, and the server has no issuer', ['login'], { env })
    await fail(2, 'holds a line break', ['login'], { env, input: 'hush\nhush' })
    await fail(2, 'login asks for the token', ['login', '--api-token', 'hush'], { env })
    await fail(2, '--output must be one of', ['login', '-o', 'xml'], { env, input: READ_TOKEN })
    await fail(
      3,
      'cannot reach http://127.0.0.1:1/',
      ['login', '--api-url', 'http://127.0.0.1:1', '--context', 'x'],
      {
        env,
        input: READ_TOKEN,
      },
    )
    assert.equal(readFileSync(home.file, 'utf8'), before)
    const nowhere = new Home(t)
    await fail(2, 'which server? Give --api-url', ['login'], { env: nowhere.env, input: READ_TOKEN })
    assert.equal(existsSync(nowhere.file), false)
  })

  test('is typed on a terminal without being shown', async (t) => {
    const home = new Home(t, { mine: { api_url: service.url } })
    const prompt = `Token for ${service.url}/: `
    const { code, screen } = await onTerminal(['login'], {
      env: home.env,
      columns: 120,
      typing: [[prompt, `${WRITE_TOKEN}\r`]],
    })
    assert.equal(code, 0, screen)
    assert.ok(screen.startsWith(`${prompt}\nlogged in to `), screen)
    assert.ok(!screen.includes(WRITE_TOKEN))
    assert.equal(home.config.contexts.mine?.write_token, WRITE_TOKEN)
    const stopped = await onTerminal(['login'], { env: home.env, typing: [[prompt, '\u0003']] })
    assert.equal(stopped.code, 130, stopped.screen)
    const none = await onTerminal(['login'], { env: home.env, typing: [[prompt, '\r']] })
    assert.deepEqual([none.code, none.screen.includes('no token was typed')], [2, true], none.screen)
  })

  test('warns where others could read it on its way', async (t) => {
    const { env } = new Home(t)
    const proxied = { ...env, HTTP_PROXY: service.url }
    const args = ['login', '--api-url', 'http://fleet.example.com']
    const { stderr } = await run(args, { env: proxied, input: 'hush' })
    assert.match(stderr, /^Warning: http:\/\/fleet\.example\.com is plain http: whoever is in between/)
  })
})

describe('logout', AT_ONCE, () => {
  test('forgets the tokens of a context, and keeps its URL and all other contexts', async (t) => {
    const login = { token: 'hush', token_endpoint: 'https://issuer.example.com/token', client_id: 'x' }
    const tokens = { api_token: 'hush-r', write_token: 'hush-w' }
    const home = new Home(t, {
      one: { api_url: service.url, ...tokens },
      two: { api_url: 'http://127.0.0.1:1', login },
      three: { api_url: 'http://127.0.0.1:1', ...tokens },
    })
    const { env } = home
    const ended = await succeed(['logout'], { env })
    assert.deepEqual([ended.stdout, ended.stderr], ['', 'context "one" holds no tokens any more\n'])
    await succeed(['logout', '--context', 'two'], { env })
    assert.deepEqual(home.config, {
      current_context: 'one',
      contexts: {
        one: { api_url: service.url },
        two: { api_url: 'http://127.0.0.1:1' },
        three: { api_url: 'http://127.0.0.1:1', ...tokens },
      },
    })
    await fail(2, 'there is no context "nope"', ['logout', '--context', 'nope'], { env })
    await fail(2, 'there is no context in use', ['logout'], { env: new Home(t).env })
  })
})

interface Issued {
  readonly issuer: OidcIssuer
  readonly service: TestService
  readonly home: Home
  readonly env: Readonly<Record<string, string>>
}

interface IssuedOptions {
  /** What becomes of a device that asks; approved as an admin unless said otherwise. */
  readonly onDevice?: (code: string, issuer: OidcIssuer) => void
  readonly interval?: number
  readonly expiresIn?: number
}

const ADMIN = { groups: ['admins'] }
const secondsFromNow = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds

/** An issuer, a service that trusts it, and a home with a context for that. */
async function issued(t: TestContext, options: IssuedOptions = {}): Promise<Issued> {
  const { onDevice = (code, to) => to.approve(code, ADMIN), interval = 0.1, expiresIn = 600 } = options
  const issuer: OidcIssuer = await startOidcIssuer(t, {
    audience: AUDIENCE,
    interval,
    expiresIn,
    onDevice: (code) => onDevice(code, issuer),
  })
  const now = () => new Date()
  const own = await start(t, {
    login: { issuer: issuer.url, clientId: AUDIENCE },
    auth: {
      oidc: createOidc({
        issuer: issuer.url,
        audience: AUDIENCE,
        roleClaim: 'groups',
        usernameClaim: 'email',
        now,
      }),
      rules: () => ({ oidc: [{ claim: 'admins', role: 'admin' }], certificates: [] }),
    },
  })
  const home = new Home(t, { lab: { api_url: own.url } })
  return { issuer, service: own, home, env: home.env }
}

const WHOAMI = ['token', 'whoami', '-o', 'jsonpath={.name} {.role}']

/** How often the issuer was asked to renew a login. */
function renewals({ requests }: OidcIssuer): number {
  return requests.filter(({ form }) => form.grant_type === 'refresh_token').length
}

describe('login at an issuer', AT_ONCE, () => {
  test('shows where to say yes, waits for it, and is used from then on', async (t) => {
    const codes: string[] = []
    const { issuer, home, env } = await issued(t, {
      onDevice: (code, to) => {
        codes.push(code)
        const hasAsked = () => issuer.count('token') > 0
        void waitFor('the program has asked in vain', hasAsked).then(() => to.approve(code, ADMIN))
      },
    })
    const { stdout, stderr } = await succeed(['login', '--quiet'], { env })
    const [code] = codes
    assert.equal(stdout, '')
    assert.equal(
      stderr,
      `To log in, open ${issuer.url}/activate?user_code=${code}\nand confirm the code ${code} within 10 minutes.\n`,
    )
    assert.ok(issuer.count('token') > 1)
    const { login, ...rest } = home.config.contexts.lab as Context
    assert.deepEqual(Object.keys(rest), ['api_url'])
    assert.match(login?.token ?? '', /^eyJ/)
    assert.match(login?.refresh_token ?? '', /^refresh-/)
    assert.deepEqual([login?.token_endpoint, login?.client_id], [`${issuer.url}/token`, AUDIENCE])
    assert.ok(Date.parse(login?.expires_at ?? '') > Date.now())
    assert.equal(modeOf(home.file), '600')
    assert.equal((await succeed(WHOAMI, { env })).stdout, 'oidc:ada@example.com (user-1) admin')
    const made = await succeed(['namespace', 'create', 'by-ada'], { env })
    assert.match(made.stdout, /created/)
    assert.equal(renewals(issuer), 0)
  })

  test('says who somebody is, and shows nothing secret of it in the configuration', async (t) => {
    const { home, env } = await issued(t)
    const { stderr } = await succeed(['login', '--context', 'lab'], { env })
    assert.match(
      stderr,
      /\nlogged in to \S+ as oidc:ada@example\.com \(user-1\): role admin\ncontext "lab" changed, and in use\n$/,
    )
    for (const what of ['view', 'get-contexts'])
      for (const format of ['table', 'json', 'yaml', 'jsonpath={.contexts}'])
        assert.match((await succeed(['config', what, '-o', format], { env })).stdout, /lab/)
    const view = JSON.parse((await succeed(['config', 'view'], { env })).stdout)
    const { token, refresh_token, ...plain } = home.config.contexts.lab?.login ?? {}
    assert.ok(token && refresh_token)
    assert.deepEqual(view.contexts.lab.login, { ...plain, token: '(set)', refresh_token: '(set)' })
    assert.match((await succeed(['config', 'get-contexts'], { env })).stdout, /lab .* login$/m)
    await succeed(['config', 'set-context', 'lab', '--api-token', READ_TOKEN], { env })
    assert.deepEqual(
      Object.keys(home.config.contexts.lab ?? {}),
      ['api_url', 'api_token'],
      'a token takes its place',
    )
  })

  test('asks for the scopes that the issuer knows', async (t) => {
    const { issuer, env } = await issued(t)
    await succeed(['login'], { env })
    issuer.advertise({ scopes_supported: ['openid', 'profile', 'email', 'phone'] })
    await succeed(['login'], { env })
    const asked = issuer.requests.filter(({ place }) => place === 'device').map(({ form }) => form.scope)
    assert.deepEqual(asked, ['openid email profile groups offline_access', 'openid email profile'])
  })

  test('is refused by whoever is asked, and then nothing is kept', async (t) => {
    const { home, env } = await issued(t, { onDevice: (code, to) => to.deny(code) })
    const before = readFileSync(home.file, 'utf8')
    await fail(1, 'Error: the login was denied at the issuer\n', ['login'], { env })
    assert.equal(readFileSync(home.file, 'utf8'), before)
  })

  test('is over when nobody says yes in time, whoever notices it first', async (t) => {
    const told = await issued(t, { onDevice: (code, to) => to.expire(code) })
    const says = /^Error: nobody confirmed the login in time: the code has expired\nHint: log in again/m
    await fail(1, says, ['login'], { env: told.env })
    const noticed = await issued(t, { onDevice: () => {}, expiresIn: 0.5 })
    await fail(1, says, ['login'], { env: noticed.env })
  })

  test('asks less often when it is told to slow down', async (t) => {
    const { issuer, env } = await issued(t, {
      onDevice: (code, to) => {
        to.slowDown(code)
        to.approve(code, ADMIN)
      },
    })
    const started = Date.now()
    await succeed(['login'], { env })
    assert.equal(issuer.count('token'), 2)
    assert.ok(Date.now() - started >= 5000, 'five seconds more, as RFC 8628 has it')
  })

  test('goes on when the issuer is away for a moment, and not for ever', async (t) => {
    const { issuer, env } = await issued(t, {
      onDevice: (code, to) => {
        to.approve(code, ADMIN)
        to.behave('fail', 'token')
      },
    })
    const logging = succeed(['login'], { env })
    for (let tries = 0; issuer.count('token') < 2 && tries < 1000; tries++) await sleep(10)
    issuer.behave('well', 'token')
    await logging
    const away = await issued(t, { onDevice: (_code, to) => to.behave('garbage', 'token') })
    await fail(
      3,
      `what answers at ${away.issuer.url}/token is no issuer that works: HTTP 200`,
      ['login'],
      away,
    )
  })

  test('is told clearly when there is no issuer to log in at', async (t) => {
    const gone = await issued(t)
    gone.issuer.stop()
    await fail(3, `cannot reach the issuer at ${gone.issuer.url}: connection refused`, ['login'], gone)
    for (const [mood, says] of [
      ['fail', 'is no issuer that works: HTTP 500'],
      ['garbage', 'is no issuer that works: HTTP 200'],
      ['redirect', 'HTTP 302, no content type, and points to /elsewhere'],
    ] as const) {
      const { issuer, env } = await issued(t)
      issuer.behave(mood, 'discovery')
      await fail(3, says, ['login'], { env })
    }
    const { issuer, home, env } = await issued(t)
    issuer.behave('hang', 'device')
    await fail(3, 'no answer within 0.5 s', ['login', '--timeout', '0.5'], { env })
    assert.equal(home.config.contexts.lab?.login, undefined)
  })

  test('trusts no issuer that is not safe, or another', async (t) => {
    const { issuer, env } = await issued(t)
    const bad: readonly (readonly [says: string, advertised: Record<string, unknown>])[] = [
      [
        'the token_endpoint of the issuer must be an https URL',
        { token_endpoint: 'http://issuer.example.com/token' },
      ],
      [
        'device_authorization_endpoint of the issuer must be',
        { device_authorization_endpoint: 'ftp://127.0.0.1/' },
      ],
      ['the token_endpoint of the issuer must be an https URL, not left out', { token_endpoint: undefined }],
      [
        'is the description of another issuer: "https://issuer.example.com"',
        { issuer: 'https://issuer.example.com' },
      ],
      ['has no login for devices', { device_authorization_endpoint: undefined }],
    ]
    const usual = {
      issuer: issuer.url,
      token_endpoint: `${issuer.url}/token`,
      device_authorization_endpoint: `${issuer.url}/device`,
    }
    for (const [says, advertised] of bad) {
      issuer.advertise({ ...usual, ...advertised })
      await fail(1, says, ['login'], { env })
    }
    assert.deepEqual([issuer.count('device'), issuer.count('token')], [0, 0])
    const plain = await start(t, { login: { issuer: 'http://issuer.example.com', clientId: 'x' } })
    const url = ['--api-url', plain.url, '--context', 'plain']
    await fail(1, 'the address of the issuer must be an https URL', ['login', ...url], { env })
  })

  test('keeps nothing for somebody who may do nothing here', async (t) => {
    const { home, env } = await issued(t, {
      onDevice: (code, to) => to.approve(code, { groups: ['others'] }),
    })
    const stderr = await fail(1, 'you are known, but nothing gives you a role here', ['login'], { env })
    assert.doesNotMatch(stderr, /^Hint/m)
    assert.equal(home.config.contexts.lab?.login, undefined)
    const unknown = await issued(t, { onDevice: (code, to) => to.approve(code, { aud: 'another' }) })
    await fail(1, 'does not take this token: nothing was kept', ['login'], unknown)
  })

  test('is not needed with a token, piped or typed', async (t) => {
    const { issuer, home, env } = await issued(t)
    await succeed(['login'], { env, input: READ_TOKEN })
    assert.deepEqual([home.config.contexts.lab?.api_token, issuer.count('discovery')], [READ_TOKEN, 0])
    const { code, screen } = await onTerminal(['login', '--with-token'], {
      env,
      typing: [['Token for ', `${WRITE_TOKEN}\r`]],
    })
    assert.equal(code, 0, screen)
    assert.equal(home.config.contexts.lab?.write_token, WRITE_TOKEN)
  })
})

/** Somebody who has logged in with a token that ends so many seconds from now. */
async function loggedIn(t: TestContext, seconds: number): Promise<Issued> {
  const found = await issued(t, {
    onDevice: (code, to) => to.approve(code, { ...ADMIN, exp: secondsFromNow(seconds) }),
  })
  await succeed(['login'], { env: found.env })
  return found
}

describe('a login', AT_ONCE, () => {
  test('is renewed when it ends within a minute, once, and what is new is kept', async (t) => {
    const { issuer, home, env } = await loggedIn(t, 30)
    const before = home.config.contexts.lab?.login
    assert.equal((await succeed(WHOAMI, { env })).stdout, 'oidc:ada@example.com (user-1) admin')
    const after = home.config.contexts.lab?.login
    assert.notEqual(after?.token, before?.token)
    assert.notEqual(after?.refresh_token, before?.refresh_token)
    assert.ok(Date.parse(after?.expires_at ?? '') > Date.parse(before?.expires_at ?? ''))
    assert.equal(modeOf(home.file), '600')
    await succeed(WHOAMI, { env })
    assert.equal(renewals(issuer), 1)
    const [form] = issuer.requests.filter(({ form }) => form.grant_type === 'refresh_token')
    assert.equal(form?.form.client_id, AUDIENCE)
    assert.deepEqual(readdirSync(join(home.file, '..')), ['config.json'])
  })

  test('is renewed by one of many processes, and none of them loses it', async (t) => {
    const { issuer, home, env } = await loggedIn(t, -5)
    const commands = [WHOAMI, WHOAMI, WHOAMI, WHOAMI]
    const ran = await Promise.all([
      ...commands.map((args) => succeed(args, { env })),
      succeed(['config', 'set-context', 'other', '--api-url', 'http://127.0.0.1:1'], { env }),
    ])
    assert.deepEqual(
      ran.slice(0, 4).map(({ stdout }) => stdout),
      Array(4).fill('oidc:ada@example.com (user-1) admin'),
    )
    assert.equal(renewals(issuer), 1)
    assert.deepEqual(Object.keys(home.config.contexts), ['lab', 'other'])
    assert.match(home.config.contexts.lab?.login?.refresh_token ?? '', /^refresh-/)
    await succeed(WHOAMI, { env })
    assert.deepEqual(readdirSync(join(home.file, '..')), ['config.json'])
  })

  test('is renewed once by the requests of one command that are under way together', async (t) => {
    const { issuer, env } = await loggedIn(t, -5)
    assert.match((await succeed(['status'], { env })).stdout, /^clusters: +2$/m)
    assert.equal(renewals(issuer), 1)
  })

  test('is renewed although a process that did so was ended half way', async (t) => {
    const { home, env } = await loggedIn(t, -5)
    // No process has a number as large as this.
    writeFileSync(`${home.file}.lock`, `${hostname()} 99999999`)
    assert.equal((await succeed(WHOAMI, { env })).stdout, 'oidc:ada@example.com (user-1) admin')
    assert.deepEqual(readdirSync(join(home.file, '..')), ['config.json'])
  })

  test('that cannot be renewed is told with what to do, and logging in again helps', async (t) => {
    const { issuer, home, env } = await loggedIn(t, -5)
    issuer.revokeRefreshTokens()
    const says =
      /^Error: your login has expired, and could not be renewed: the issuer says invalid_grant\nHint: run login again: flux-resourceset-cli login --context lab\n$/
    await fail(1, says, WHOAMI, { env })
    const { refresh_token: _gone, ...login } = home.config.contexts.lab?.login ?? {}
    home.config = { ...home.config, contexts: { lab: { ...(home.config.contexts.lab as Context), login } } }
    await fail(
      1,
      /could not be renewed: the issuer gave nothing to renew it with\nHint: run login again/,
      WHOAMI,
      { env },
    )
    issuer.stop()
    home.config = {
      ...home.config,
      contexts: {
        lab: { ...(home.config.contexts.lab as Context), login: { ...login, refresh_token: 'x' } },
      },
    }
    await fail(1, /could not be renewed: cannot reach the issuer at .*\nHint: run login again/, WHOAMI, {
      env,
    })
    const again = await loggedIn(t, -5)
    again.issuer.revokeRefreshTokens()
    await fail(1, 'run login again', WHOAMI, { env: again.env })
    await succeed(['login'], { env: again.env })
  })

  test('that has some seconds left is used while the issuer is away', async (t) => {
    const { issuer, env } = await loggedIn(t, 50)
    issuer.behave('fail', 'token')
    assert.equal((await succeed(WHOAMI, { env })).stdout, 'oidc:ada@example.com (user-1) admin')
    assert.equal(renewals(issuer), 1)
  })

  test('is not renewed, and not sent, where another token or another server is meant', async (t) => {
    const { issuer, env } = await loggedIn(t, -5)
    const seen: (string | undefined)[] = []
    const front = await standBefore(t, service, {
      before: ({ headers }) => seen.push(headers.authorization),
    })
    await succeed(
      ['cluster', 'list', '--api-token', READ_TOKEN, '--write-token', WRITE_TOKEN, '--api-url', front.url],
      { env },
    )
    await fail(1, '401', ['cluster', 'list', '--api-url', front.url, '--context', 'lab'], { env })
    assert.ok(!seen.some((header) => header?.includes('eyJ')))
    assert.equal(renewals(issuer), 0)
  })

  test('is kept by completion too', async (t) => {
    const { issuer, env } = await loggedIn(t, -5)
    const { stdout } = await succeed(['__complete', '--', 'cluster', 'get', 'tw'], { env })
    assert.deepEqual([stdout, renewals(issuer)], ['two\n', 1])
  })

  test('of a file that is broken is told with its path', async (t) => {
    const home = new Home(t, { lab: { api_url: service.url, login: { token: 'hush' } } })
    await fail(2, `${home.file}: the login of context "lab" is not whole`, WHOAMI, { env: home.env })
  })
})

test('contexts that are set by many processes at once are all there', async (t) => {
  const home = new Home(t)
  const names = ['a', 'b', 'c', 'd', 'e']
  const set = (name: string) => ['config', 'set-context', name, '--api-url', 'http://127.0.0.1:1']
  await Promise.all(names.map((name) => succeed(set(name), { env: home.env })))
  assert.deepEqual(Object.keys(home.config.contexts).sort(), names)
})
