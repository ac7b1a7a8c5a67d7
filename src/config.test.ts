import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Config, parseConfig } from './config.ts'

const TOKEN = 'secret-read-token'

function parsed(env: Record<string, string> = {}): Config {
  const result = parseConfig({ AUTH_TOKEN: TOKEN, ...env })
  assert.ok(result.ok, JSON.stringify(result))
  return result.config
}

function problems(env: Record<string, string | undefined>): readonly string[] {
  const result = parseConfig({ AUTH_TOKEN: TOKEN, ...env })
  assert.ok(!result.ok, 'is refused')
  return result.problems
}

/** The one problem with a setting, which must name the setting. */
function problem(name: string, value: string): string {
  const [only = '', ...more] = problems({ [name]: value })
  assert.deepEqual(more, [])
  assert.ok(only.startsWith(name), only)
  return only
}

test('a token is all that must be set', () => {
  assert.deepEqual(parsed(), {
    mode: 'read-only',
    store: { backend: 'sqlite', path: './data/flux-resourceset.db', mode: 'rwc' },
    readToken: TOKEN,
    writeToken: TOKEN,
    seedFile: undefined,
    resourceFolders: [],
    templateFolders: [],
    externalUrl: undefined,
    listen: { host: '0.0.0.0', port: 8080 },
    logLevel: 'info',
    brakePercent: 10,
    shutdownDelayMs: 0,
  })
})

test('every setting is taken from its variable', () => {
  const config = parsed({
    API_MODE: 'crud',
    DATABASE_URL: 'sqlite:///var/lib/fleet.db?mode=rw',
    CRUD_AUTH_TOKEN: 'secret-write-token',
    SEED_FILE: 'data/seed.json',
    RESOURCES_DIR: '/extra:/more',
    TEMPLATES_DIR: '/templates',
    EXTERNAL_URL: 'https://fleet.example.com/api/',
    LISTEN_ADDR: '127.0.0.1:9090',
    LOG_LEVEL: 'debug',
    BRAKE_PERCENT: '2.5',
    SHUTDOWN_DELAY_SECONDS: '7',
  })
  assert.deepEqual(config, {
    mode: 'crud',
    store: { backend: 'sqlite', path: '/var/lib/fleet.db', mode: 'rw' },
    readToken: TOKEN,
    writeToken: 'secret-write-token',
    seedFile: 'data/seed.json',
    resourceFolders: ['/extra', '/more'],
    templateFolders: ['/templates'],
    externalUrl: 'https://fleet.example.com/api',
    listen: { host: '127.0.0.1', port: 9090 },
    logLevel: 'debug',
    brakePercent: 2.5,
    shutdownDelayMs: 7000,
  })
})

test('a variable that is set to nothing counts as not set', () => {
  const names = [
    'API_MODE',
    'STORE_BACKEND',
    'DATABASE_URL',
    'CRUD_AUTH_TOKEN',
    'SEED_FILE',
    'RESOURCES_DIR',
    'TEMPLATES_DIR',
    'EXTERNAL_URL',
    'LISTEN_ADDR',
    'LOG_LEVEL',
    'SHUTDOWN_DELAY_SECONDS',
  ]
  assert.deepEqual(parsed(Object.fromEntries(names.map((name) => [name, '']))), parsed())
})

test('a token is required, and one of nothing is none', () => {
  for (const AUTH_TOKEN of [undefined, '']) {
    assert.deepEqual(problems({ AUTH_TOKEN }).length, 1)
    assert.match(problems({ AUTH_TOKEN })[0] ?? '', /^AUTH_TOKEN is required/)
  }
})

test('a SQLite URL names a file from the working folder or from the root', () => {
  const path = (DATABASE_URL: string) => {
    const { store } = parsed({ DATABASE_URL })
    return store.backend === 'sqlite' ? store.path : assert.fail(store.backend)
  }
  assert.equal(path('sqlite://data/fleet.db'), './data/fleet.db')
  assert.equal(path('sqlite://fleet.db'), './fleet.db')
  assert.equal(path('sqlite:fleet.db'), './fleet.db')
  assert.equal(path('sqlite:///var/lib/fleet.db'), '/var/lib/fleet.db')
  assert.equal(path('sqlite:/var/lib/fleet.db'), '/var/lib/fleet.db')
  assert.equal(path('sqlite://data/fleet.db?mode=rwc'), './data/fleet.db')
})

test('a SQLite URL says whether the file may be made or written', () => {
  const mode = (DATABASE_URL: string) => {
    const { store } = parsed({ DATABASE_URL })
    return store.backend === 'sqlite' && store.mode
  }
  assert.equal(mode('sqlite://fleet.db'), 'rwc')
  for (const given of ['rwc', 'rw', 'ro']) assert.equal(mode(`sqlite://fleet.db?mode=${given}`), given)
  assert.match(problem('DATABASE_URL', 'sqlite://fleet.db?mode=rx'), /mode/)
})

test('a service that is to write is not given a file that it may only read', () => {
  const config = parseConfig({
    AUTH_TOKEN: TOKEN,
    API_MODE: 'crud',
    DATABASE_URL: 'sqlite://fleet.db?mode=ro',
  })
  assert.deepEqual(config, {
    ok: false,
    problems: ['API_MODE crud needs to write, but DATABASE_URL says mode=ro'],
  })
})

test('a URL that names no file of SQLite is refused', () => {
  for (const url of [
    'sqlite://',
    'sqlite:',
    'sqlite://:memory:',
    'sqlite::memory:',
    'mysql://db/fleet',
    'x',
  ]) {
    assert.match(problem('DATABASE_URL', url), /sqlite:\/\/data\/file\.db/)
  }
})

test('the store may be in memory, whatever the URL says', () => {
  assert.deepEqual(parsed({ STORE_BACKEND: 'memory' }).store, { backend: 'memory' })
  assert.deepEqual(parsed({ STORE_BACKEND: 'memory', DATABASE_URL: 'mysql://db' }).store, {
    backend: 'memory',
  })
})

test('a store of an unknown kind is refused, naming the known ones', () => {
  assert.match(problem('STORE_BACKEND', 'mongodb'), /sqlite, memory.*"mongodb"/)
})

test('a mode is read-only or crud', () => {
  assert.equal(parsed({ API_MODE: 'read-only' }).mode, 'read-only')
  assert.equal(parsed({ API_MODE: 'crud' }).mode, 'crud')
  assert.match(problem('API_MODE', 'CRUD'), /read-only, crud.*"CRUD"/)
})

test('an address is a host and a port', () => {
  const listen = (LISTEN_ADDR: string) => parsed({ LISTEN_ADDR }).listen
  assert.deepEqual(listen('localhost:80'), { host: 'localhost', port: 80 })
  assert.deepEqual(listen(':8080'), { host: '0.0.0.0', port: 8080 })
  assert.deepEqual(listen('[::1]:8080'), { host: '::1', port: 8080 })
  assert.deepEqual(listen('127.0.0.1:0'), { host: '127.0.0.1', port: 0 })
  for (const address of [
    '8080',
    'localhost',
    'localhost:',
    'localhost:http',
    '0.0.0.0:65536',
    '0.0.0.0:-1',
  ]) {
    assert.match(problem('LISTEN_ADDR', address), /host:port/)
  }
})

test('a log level is one that the log knows', () => {
  assert.equal(parsed({ LOG_LEVEL: 'silent' }).logLevel, 'silent')
  assert.match(problem('LOG_LEVEL', 'loud'), /info.*"loud"/)
})

test('a delay is a whole number of seconds', () => {
  assert.equal(parsed({ SHUTDOWN_DELAY_SECONDS: '0' }).shutdownDelayMs, 0)
  for (const delay of ['-1', '1.5', 'soon', '1e3']) {
    assert.match(problem('SHUTDOWN_DELAY_SECONDS', delay), /whole number/)
  }
})

test('a token that no header can carry is refused without being shown', () => {
  for (const name of ['AUTH_TOKEN', 'CRUD_AUTH_TOKEN']) {
    for (const token of ['with space', 'ümlaut', 'line\nbreak', 'tab\t', ' ']) {
      const text = problem(name, token)
      assert.match(text, /ASCII/)
      assert.ok(token.trim() === '' || !text.includes(token), text)
    }
  }
})

test('all problems are told at once', () => {
  const found = problems({
    AUTH_TOKEN: '',
    CRUD_AUTH_TOKEN: 'not valid',
    API_MODE: 'write',
    DATABASE_URL: 'sqlite://?mode=never',
    LISTEN_ADDR: 'nowhere',
    LOG_LEVEL: 'loud',
    SHUTDOWN_DELAY_SECONDS: 'soon',
  })
  const names = found.map((text) => /^[A-Z_]+/.exec(text)?.[0])
  assert.deepEqual(names.sort(), [
    'API_MODE',
    'AUTH_TOKEN',
    'CRUD_AUTH_TOKEN',
    'DATABASE_URL',
    'DATABASE_URL',
    'LISTEN_ADDR',
    'LOG_LEVEL',
    'SHUTDOWN_DELAY_SECONDS',
  ])
})

test('no problem shows a token or a password', () => {
  for (const DATABASE_URL of [
    'mysql://user:hidden@db.example.com/fleet',
    'mysql://user:hid@den@db.example.com/fleet',
    'mysql://db.example.com/fleet?user=u&password=hidden',
    'postgres://user:hidden@db.example.com/fleet',
  ]) {
    const text = problems({
      AUTH_TOKEN: 'hidden read',
      CRUD_AUTH_TOKEN: 'hidden write',
      STORE_BACKEND: 'sqlite',
      API_MODE: 'x',
      DATABASE_URL,
    }).join('\n')
    assert.doesNotMatch(text, /hid|den/, DATABASE_URL)
  }
})
