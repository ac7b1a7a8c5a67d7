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
    readTokens: { tokens: [TOKEN] },
    writeTokens: { tokens: [] },
    seedFile: undefined,
    resourceFolders: [],
    templateFolders: [],
    externalUrl: undefined,
    listen: { host: '0.0.0.0', port: 8080 },
    adminListen: undefined,
    tls: undefined,
    oidc: undefined,
    accessFile: undefined,
    trustedProxies: [],
    corsOrigins: [],
    console: true,
    maxConnections: 10_000,
    maxConnectionsPerAddress: 5_000,
    maxRequests: 500,
    maxAuthFailures: 30,
    answerCacheBytes: 64 * 1024 * 1024,
    maxStalenessMs: Number.POSITIVE_INFINITY,
    mirror: undefined,
    snapshotFolder: undefined,
    logLevel: 'info',
    brake: { percent: 10, groupPercent: 25 },
    status: { late: 1.5, offline: 3, retentionMs: 2_592_000_000, unobserved: undefined },
    checks: undefined,
    telemetry: undefined,
    hasProfiles: false,
    shutdownDelayMs: 0,
  })
})

test('every setting is taken from its variable', () => {
  const config = parsed({
    API_MODE: 'crud',
    DATABASE_URL: 'sqlite:///var/lib/fleet.db?mode=rw',
    CRUD_AUTH_TOKEN: 'secret-write-token, next-write-token',
    ADMIN_LISTEN_ADDR: '[::1]:9091',
    TLS_CERT_FILE: '/tls/tls.crt',
    TLS_KEY_FILE: '/tls/tls.key',
    TLS_CLIENT_CA_FILE: '/tls/ca.crt',
    TLS_CLIENT_AUTH: 'required',
    HTTP2: 'on',
    OIDC_ISSUER: 'https://id.example.com/realm',
    OIDC_AUDIENCE: 'fleet',
    OIDC_CLIENT_ID: 'fleet-cli',
    OIDC_ROLE_CLAIM: 'roles',
    OIDC_USERNAME_CLAIM: 'sub',
    ACCESS_FILE: '/access.yaml',
    TRUSTED_PROXIES: '10.0.0.0/8, ::1, unix',
    CORS_ORIGINS: 'https://console.example.com,http://localhost:3000',
    CONSOLE: 'off',
    MAX_CONNECTIONS: '500',
    MAX_REQUESTS: '20',
    MAX_AUTH_FAILURES: '5',
    ANSWER_CACHE_MB: '0',
    MAX_STALENESS: '10m',
    SNAPSHOT_DIR: '/var/lib/snapshots',
    SEED_FILE: 'data/seed.json',
    RESOURCES_DIR: '/extra:/more',
    TEMPLATES_DIR: '/templates',
    EXTERNAL_URL: 'https://fleet.example.com/api/',
    LISTEN_ADDR: '127.0.0.1:9090',
    LOG_LEVEL: 'debug',
    BRAKE_PERCENT: '2.5',
    BRAKE_GROUP_PERCENT: '33',
    STATUS_LATE_AFTER: '2',
    STATUS_OFFLINE_AFTER: '4.5',
    STATUS_RETENTION: '7d',
    UNOBSERVED_SELECTOR: 'airgap=true',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a%2Cb, x-other=c=d',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=prod',
    PROFILES: 'on',
    ROLLOUT_CHECK_URLS: 'https://ci.example.com/checks, https://qa.example.com',
    ROLLOUT_CHECK_KEY: 'a-key-that-signs-checks',
    SHUTDOWN_DELAY_SECONDS: '7',
  })
  assert.deepEqual(config, {
    mode: 'crud',
    store: { backend: 'sqlite', path: '/var/lib/fleet.db', mode: 'rw' },
    readTokens: { tokens: [TOKEN] },
    writeTokens: { tokens: ['secret-write-token', 'next-write-token'] },
    seedFile: 'data/seed.json',
    resourceFolders: ['/extra', '/more'],
    templateFolders: ['/templates'],
    externalUrl: 'https://fleet.example.com/api',
    listen: { host: '127.0.0.1', port: 9090 },
    adminListen: { host: '::1', port: 9091 },
    tls: {
      cert: '/tls/tls.crt',
      key: '/tls/tls.key',
      clientCa: '/tls/ca.crt',
      clientAuth: 'required',
      http2: true,
    },
    oidc: {
      issuer: 'https://id.example.com/realm',
      audience: 'fleet',
      clientId: 'fleet-cli',
      roleClaim: 'roles',
      usernameClaim: 'sub',
    },
    accessFile: '/access.yaml',
    trustedProxies: ['10.0.0.0/8', '::1', 'unix'],
    corsOrigins: ['https://console.example.com', 'http://localhost:3000'],
    console: false,
    maxConnections: 500,
    maxConnectionsPerAddress: 250,
    maxRequests: 20,
    maxAuthFailures: 5,
    answerCacheBytes: 0,
    maxStalenessMs: 600_000,
    mirror: undefined,
    snapshotFolder: '/var/lib/snapshots',
    logLevel: 'debug',
    brake: { percent: 2.5, groupPercent: 33 },
    status: { late: 2, offline: 4.5, retentionMs: 604_800_000, unobserved: 'airgap=true' },
    checks: {
      urls: ['https://ci.example.com/checks', 'https://qa.example.com'],
      key: { tokens: ['a-key-that-signs-checks'] },
    },
    telemetry: {
      url: 'http://collector:4318/v1/traces',
      headers: { 'x-key': 'a,b', 'x-other': 'c=d' },
      serviceName: 'flux-resourceset',
      resource: { 'deployment.environment.name': 'prod' },
    },
    hasProfiles: true,
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
    'AUTH_TOKEN_FILE',
    'CRUD_AUTH_TOKEN_FILE',
    'SHARED_TOKENS',
    'ADMIN_LISTEN_ADDR',
    'TLS_CERT_FILE',
    'TLS_KEY_FILE',
    'TLS_CLIENT_CA_FILE',
    'TLS_CLIENT_AUTH',
    'HTTP2',
    'OIDC_ISSUER',
    'OIDC_AUDIENCE',
    'OIDC_CLIENT_ID',
    'OIDC_ROLE_CLAIM',
    'OIDC_USERNAME_CLAIM',
    'ACCESS_FILE',
    'TRUSTED_PROXIES',
    'CORS_ORIGINS',
    'CONSOLE',
    'MAX_CONNECTIONS',
    'MAX_REQUESTS',
    'MAX_AUTH_FAILURES',
    'ANSWER_CACHE_MB',
    'LOG_LEVEL',
    'BRAKE_PERCENT',
    'BRAKE_GROUP_PERCENT',
    'STATUS_LATE_AFTER',
    'STATUS_OFFLINE_AFTER',
    'STATUS_RETENTION',
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'PROFILES',
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

test('the percentages of the brake are numbers from 0 to 100', () => {
  for (const name of ['BRAKE_PERCENT', 'BRAKE_GROUP_PERCENT']) {
    for (const percent of ['0', '100', '99.5']) parsed({ [name]: percent })
    for (const percent of ['-1', '101', '100.1', '10%', 'ten', '1e1']) {
      assert.match(problem(name, percent), /must be a number from 0 to 100, not/)
    }
  }
})

test('a token that no header can carry is refused without being shown', () => {
  for (const name of ['AUTH_TOKEN', 'CRUD_AUTH_TOKEN']) {
    for (const token of ['with space', 'ümlaut', 'good,not good', 'tab\tin it', 'bell\u0007']) {
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

test('tokens come from the variable or from a file, not from both', () => {
  const file = parsed({ API_MODE: 'crud', AUTH_TOKEN: '', AUTH_TOKEN_FILE: '/secrets/read' })
  const source = { file: '/secrets/read', variable: 'AUTH_TOKEN_FILE' }
  assert.deepEqual([file.readTokens, file.writeTokens], [source, source])
  assert.match(problems({ AUTH_TOKEN_FILE: '/secrets/read' }).join(), /both set/)
  assert.match(problem('AUTH_TOKEN', ' , '), /holds no token/)
})

test('a fleet of named tokens needs none in the environment', () => {
  const config = parsed({ AUTH_TOKEN: '', SHARED_TOKENS: 'off' })
  assert.deepEqual([config.readTokens, config.writeTokens], [{ tokens: [] }, { tokens: [] }])
})

test('a unix socket can be listened on', () => {
  assert.deepEqual(parsed({ LISTEN_ADDR: 'unix:/run/fleet.sock' }).listen, { path: '/run/fleet.sock' })
  assert.deepEqual(parsed({ LISTEN_ADDR: 'unix:///run/fleet.sock' }).listen, { path: '/run/fleet.sock' })
  assert.match(problem('LISTEN_ADDR', 'unix:'), /must name a socket/)
  assert.match(
    problem('ADMIN_LISTEN_ADDR', `unix:/${'x'.repeat(120)}`),
    /ADMIN_LISTEN_ADDR must name a socket/,
  )
})

test('TLS takes a certificate and its key, and asks clients for theirs once it knows whose count', () => {
  const pair = { TLS_CERT_FILE: 'c', TLS_KEY_FILE: 'k' }
  assert.equal(parsed(pair).tls?.clientAuth, 'none')
  assert.equal(parsed({ ...pair, TLS_CLIENT_CA_FILE: 'ca' }).tls?.clientAuth, 'optional')
  assert.match(problem('TLS_CERT_FILE', 'c'), /TLS_KEY_FILE/)
  assert.match(problem('TLS_KEY_FILE', 'k'), /TLS_CERT_FILE/)
  assert.match(problem('TLS_CLIENT_CA_FILE', 'ca'), /without TLS/)
  assert.deepEqual(
    problems({ ...pair, TLS_CLIENT_AUTH: 'required' }).map((text) => /TLS_CLIENT_CA_FILE/.test(text)),
    [true],
  )
})

test('OIDC needs an issuer over TLS, an audience and rules', () => {
  const found = problems({ OIDC_ISSUER: 'http://id.example.com' }).join()
  for (const name of ['https://', 'OIDC_AUDIENCE', 'ACCESS_FILE']) assert.ok(found.includes(name), name)
  assert.match(problem('OIDC_AUDIENCE', 'fleet'), /OIDC_ISSUER/)
  const local = { OIDC_ISSUER: 'http://127.0.0.1:5000', OIDC_AUDIENCE: 'fleet', ACCESS_FILE: 'a' }
  assert.deepEqual(parsed(local).oidc, {
    issuer: 'http://127.0.0.1:5000',
    audience: 'fleet',
    clientId: 'fleet',
    roleClaim: 'groups',
    usernameClaim: 'email',
  })
})

test('proxies are addresses and networks, origins have no path', () => {
  for (const text of ['proxy.example.com', '10.0.0.0/33', '10.0.0.0/8/8', '::/129', 'all'])
    assert.match(problem('TRUSTED_PROXIES', text), /TRUSTED_PROXIES must hold/)
  for (const text of ['*', 'https://a.example.com/', 'a.example.com', 'null'])
    assert.match(problem('CORS_ORIGINS', text), /CORS_ORIGINS must hold/)
})

test('limits are whole numbers of one or more', () => {
  for (const name of ['MAX_CONNECTIONS', 'MAX_REQUESTS', 'MAX_AUTH_FAILURES'])
    for (const text of ['0', '-1', '1.5', 'many'])
      assert.match(problem(name, text), /whole number of 1 or more/)
})

test('a postgres:// URL selects PostgreSQL, and says how to get there', () => {
  const url = 'postgres://fleet:pa%40ss@db.example.com:6432/fleet'
  const at = (host: string): string => `postgres://fleet:pa%40ss@${host}/fleet`
  for (const [host, mode] of [
    ['db.example.com:6432', 'verify-full'],
    ['127.0.0.1', 'disable'],
    ['localhost', 'disable'],
  ]) {
    assert.deepEqual(parsed({ DATABASE_URL: at(String(host)) }).store, {
      backend: 'postgres',
      url: at(String(host)),
      passwordFile: undefined,
      poolSize: 10,
      tls: { mode },
    })
  }
  const secured = `${url}?sslmode=verify-full&sslrootcert=/tls/ca.crt&sslcert=/tls/tls.crt&sslkey=/tls/tls.key`
  assert.deepEqual(parsed({ DATABASE_URL: secured, DATABASE_POOL_SIZE: '3' }).store, {
    backend: 'postgres',
    url,
    passwordFile: undefined,
    poolSize: 3,
    tls: { mode: 'verify-full', ca: '/tls/ca.crt', cert: '/tls/tls.crt', key: '/tls/tls.key' },
  })
  const without = 'postgresql://fleet@db.example.com/fleet'
  const { store } = parsed({ DATABASE_URL: without, DATABASE_PASSWORD_FILE: '/secrets/password' })
  assert.ok(store.backend === 'postgres' && store.passwordFile === '/secrets/password')
  const trusting = parsed({ DATABASE_URL: `${without}?sslrootcert=/tls/ca.crt` }).store
  assert.ok(trusting.backend === 'postgres' && trusting.tls.mode === 'verify-full')
})

test('what is wrong with a postgres:// URL is told without its password', () => {
  const wrong: [Record<string, string>, RegExp][] = [
    [{ DATABASE_URL: 'postgres://u:hidden@host' }, /^DATABASE_URL must be like postgres:/],
    [{ DATABASE_URL: 'sqlite://x.db', STORE_BACKEND: 'postgres' }, /^DATABASE_URL must be like postgres:/],
    [
      { DATABASE_URL: 'postgres://u:hidden@host/db?sslmode=prefer' },
      /sslmode must be one of .*, not "prefer"/,
    ],
    [{ DATABASE_URL: 'postgres://u:hidden@host/db?sslcert=/a' }, /takes both/],
    [
      { DATABASE_URL: 'postgres://u:hidden@host/db?sslmode=disable&sslrootcert=/a' },
      /choose another sslmode/,
    ],
    [{ DATABASE_URL: 'postgres://u:hidden@host/db', DATABASE_PASSWORD_FILE: '/f' }, /give one of them/],
    [{ DATABASE_URL: 'postgres://u:hidden%@host/db' }, /begins no percent-encoding: write it as %25/],
    [
      { DATABASE_URL: 'postgres:///db?host=db.example.com' },
      /parameter host is a folder.*not "db.example.com"/,
    ],
    [{ DATABASE_URL: 'postgres:///db?host=/run&port=x' }, /parameter port must be a number, not "x"/],
    [
      { DATABASE_URL: 'postgres://localhost/db?sslmod=require' },
      /unknown parameter "sslmod": known are sslmode,/,
    ],
    [{ DATABASE_URL: 'postgres://host/db?password=hidden' }, /unknown parameter "password"/],
    [{ DATABASE_URL: 'postgres://u:hidden@host/db', DATABASE_POOL_SIZE: '0' }, /^DATABASE_POOL_SIZE must be/],
  ]
  for (const [env, message] of wrong) {
    const told = problems(env).join('\n')
    assert.match(told, message)
    assert.doesNotMatch(told, /hidden/)
  }
})

test('the age of what may be served is a duration', () => {
  assert.equal(parsed({ MAX_STALENESS: '1h30m' }).maxStalenessMs, 5_400_000)
  assert.match(problem('MAX_STALENESS', '5'), /a duration such as 90s, 10m or 2h, not "5"/)
})

test('a cluster is late and then offline after so many intervals', () => {
  for (const text of ['0', '0.5', 'x', '-2', '1e3', '1001', ' 2'])
    assert.match(problem('STATUS_LATE_AFTER', text), /a number of intervals from 1 to 1000, not/, text)
  const equal = problems({ STATUS_LATE_AFTER: '3' })
  assert.match(equal.join(), /^STATUS_OFFLINE_AFTER must be greater than STATUS_LATE_AFTER, which is 3, not/)
  for (const text of ['30', '0s', 'ever'])
    assert.match(problem('STATUS_RETENTION', text), /a duration such as 12h or 30d, not/, text)
  const all = { STATUS_LATE_AFTER: 'x', STATUS_OFFLINE_AFTER: 'y', STATUS_RETENTION: 'z' }
  assert.equal(problems(all).length, 3)
})

test('a mirror has an upstream, a token for it and a file of its own', () => {
  const env = { UPSTREAM_URL: 'https://fleet.example.com/', UPSTREAM_TOKEN: 'token-of-the-mirror' }
  assert.deepEqual(parsed({ ...env, MIRROR_SELECTOR: 'region=eu' }).mirror, {
    url: 'https://fleet.example.com',
    tokens: { tokens: ['token-of-the-mirror'] },
    selector: 'region=eu',
  })
  assert.ok(parsed({ ...env, UPSTREAM_URL: 'http://127.0.0.1:8080' }).mirror)
  assert.match(
    problems({ ...env, UPSTREAM_URL: 'http://fleet.example.com' }).join(),
    /^UPSTREAM_URL must be an https/,
  )
  assert.match(problems({ UPSTREAM_URL: env.UPSTREAM_URL }).join(), /^UPSTREAM_TOKEN is required/)
  const all = problems({ ...env, API_MODE: 'crud', STORE_BACKEND: 'memory', SEED_FILE: 'seed.json' })
  assert.deepEqual(
    all.map((each) => each.split(' ')[0]),
    ['UPSTREAM_URL', 'UPSTREAM_URL', 'SEED_FILE'],
  )
  const lone = problems({ UPSTREAM_TOKEN: 'x', MIRROR_SELECTOR: 'region=eu' })
  assert.deepEqual(lone.length, 2)
  for (const each of lone) assert.match(each, /needs UPSTREAM_URL/)
})

test('traces go to an HTTP endpoint, with pairs that can be read', () => {
  const given = { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317', OTEL_EXPORTER_OTLP_HEADERS: 'secret' }
  const found = problems({ ...given, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })
  assert.equal(found.length, 3)
  assert.match(found[0] ?? '', /^OTEL_EXPORTER_OTLP_ENDPOINT must be a URL such as http:\/\/collector:4318/)
  assert.match(found[1] ?? '', /^OTEL_EXPORTER_OTLP_PROTOCOL grpc is not spoken here/)
  assert.ok(found[2]?.startsWith('OTEL_EXPORTER_OTLP_HEADERS') && !found[2].includes('secret'))
  assert.equal(parsed({ OTEL_EXPORTER_OTLP_HEADERS: 'secret' }).telemetry, undefined)
})
