// What callers send costs time in proportion to its length: nothing that reads it is quadratic, and no header, path or
// query of the size that is let in holds up others.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { parseDuration } from '../src/base/duration.ts'
import type { Json, JsonObject } from '../src/base/json.ts'
import { parseTime } from '../src/base/time.ts'
import { parseBaseUrl } from '../src/base/urls.ts'
import { type CertificateRule, grantOfNames } from '../src/http/auth/access-rules.ts'
import { namesIn } from '../src/http/auth/certificate-names.ts'
import { createAddressOf } from '../src/http/auth/client-address.ts'
import { looksLikeJwt } from '../src/http/auth/oidc.ts'
import { acceptsGzip, matchesEtag } from '../src/http/poll/answer.ts'
import { matchesFormat } from '../src/registry/validator.ts'
import { start } from './every-store.ts'
import { type Call, READ_TOKEN, type TestService } from './service.ts'

const HTTP = join(import.meta.dirname, '../src/http')
const POLL = '/api/v2/flux/clusters/one.k8s.example.com/platform-components'
/** Of eight times as much: in proportion it takes 8 times as long, quadratic 64. */
const FACTOR = 8
const MAX_RATIO = 24
/** Below this a run says nothing. */
const NOISE_MS = 2
/** Of one request with as long a header as is let in; what was quadratic took 300 to 1,000. */
const MAX_REQUEST_MS = 150

async function shortest(times: number, run: () => unknown): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < times && least > NOISE_MS; i++) {
    const began = performance.now()
    await run()
    least = Math.min(least, performance.now() - began)
  }
  return least
}

/** Compares a length with eight times that. What is quadratic fails every time, a busy machine only now and then. */
async function assertLinear(length: number, make: (length: number) => () => unknown): Promise<void> {
  const [few, many] = [make(length), make(FACTOR * length)]
  let told = ''
  for (let tries = 0; tries < 3; tries++) {
    const least = Math.max(await shortest(5, few), NOISE_MS)
    const most = await shortest(3, many)
    if (most < MAX_RATIO * least) return
    told = `${length}: ${least.toFixed(1)} ms, ${FACTOR} times as much: ${most.toFixed(1)} ms`
  }
  assert.fail(told)
}

/** Texts that make a pattern try again from many places: runs of one thing, and something at the end that never fits. */
const RUNS = [
  '0',
  '1',
  'a',
  ' ',
  '\t',
  '/',
  '.',
  ',',
  '-',
  ':',
  '"',
  '\\',
  '*',
  '%41',
  'a.',
  'a-',
  '1.',
  'a,',
  '"1",',
  '::',
  'frs_',
  '=',
]

function hostile(length: number): string[] {
  return RUNS.flatMap((run) => {
    const text = run.repeat(Math.ceil(length / run.length))
    return [text, `${text}\u0001`, `${text}x`]
  })
}

describe('a reader of text is not quadratic:', () => {
  const FORMATS = [
    'dns-label',
    'dns-subdomain',
    'hostname',
    'label-key',
    'label-value',
    'role-name',
    'one-line',
    'value-path',
    'uri',
    'date-time',
  ]
  const addressOf = createAddressOf(['127.0.0.0/8'])
  const forwarded = (text: string) =>
    addressOf({ socket: { remoteAddress: '127.0.0.1' }, headers: { 'x-forwarded-for': text } } as never)
  const rule = (name: string) => [{ name, role: 'viewer' } as CertificateRule]
  const READERS: Record<string, { readonly read: (text: string) => unknown; readonly before?: string }> = {
    'Accept-Encoding': { read: acceptsGzip },
    'Accept-Encoding with a weight': { read: acceptsGzip, before: 'gzip;q=0.' },
    'If-None-Match': { read: (text) => matchesEtag(text, '"x"') },
    'X-Forwarded-For': { read: forwarded },
    'X-Forwarded-For with brackets': { read: forwarded, before: '[' },
    'a base URL': { read: parseBaseUrl, before: 'http://a/' },
    'a host': { read: parseBaseUrl, before: 'http://' },
    'a duration': { read: parseDuration },
    'a time': { read: parseTime, before: '2026-01-31T12:00:00.' },
    'a JWT': { read: looksLikeJwt },
    'names in a certificate': { read: (text) => namesIn(`DNS:${text}`, `CN=${text}`) },
    'quoted names in a certificate': { read: (text) => namesIn(`DNS:"${text}`, text) },
    'a rule for certificates': {
      read: (text) => grantOfNames({ oidc: [], certificates: rule('*.*.example.com') }, [text]),
    },
    ...Object.fromEntries(
      FORMATS.map((format) => [
        `the format ${format}`,
        { read: (text: string) => matchesFormat(format, text) },
      ]),
    ),
  }
  for (const [name, { read, before = '' }] of Object.entries(READERS))
    test(name, async () => {
      const make = (length: number) => {
        const texts = hostile(length).map((text) => before + text)
        return () => {
          for (const text of texts) read(text)
        }
      }
      await assertLinear(2000, make)
    })
})

describe('a request is not quadratic:', () => {
  interface Case {
    /** As many things as the fleet is to hold. */
    readonly fleet?: (count: number) => JsonObject
    readonly prepare?: (service: TestService, count: number) => Promise<unknown>
    readonly call: (count: number) => readonly [method: string, url: string, call?: Call]
    readonly status: number
    readonly count?: number
  }
  const ids = (count: number, prefix = 'n'): string[] =>
    Array.from({ length: count }, (_, i) => `${prefix}${i}`)
  const cluster = (more: JsonObject): Json[] => [
    { id: 'one', cluster_name: 'one', cluster_dns: 'one.k8s.example.com', environment: 'dev', ...more },
  ]
  const component = (id: string, depends_on: readonly string[] = []): JsonObject => ({
    id,
    component_path: 'x',
    component_version: '1',
    oci_url: 'oci://registry.example.com/x',
    oci_tag: 'v1',
    depends_on,
  })
  const refs = (names: readonly string[]): Json => names.map((id) => ({ id }))
  const withNamespaces = (count: number): JsonObject => ({
    namespaces: refs(ids(count)),
    clusters: cluster({ namespaces: refs(ids(count)) }),
  })
  const chained = (count: number): JsonObject => ({
    platform_components: [
      ...ids(count).map((id, i) => component(id, i > 0 ? [`n${i - 1}`] : [])),
      component('last'),
    ],
    clusters: cluster({}),
  })
  const dryRun = (url: string): string => `${url}${url.includes('?') ? '&' : '?'}dry_run=true`

  const CASES: Record<string, Case> = {
    'taking back that references went, after another came': {
      fleet: (count) => ({ ...withNamespaces(count), namespaces: refs([...ids(count), 'other']) }),
      async prepare(service) {
        for (const namespaces of [[], refs(['other'])])
          await service.call('PATCH', '/clusters/one?confirm=removals', { body: { namespaces } })
      },
      // Eight times as many have to fit into one answer.
      count: 600,
      call: () => ['POST', dryRun('/revisions/2/revert')],
      status: 200,
    },
    'a definition that waits for many in a chain': {
      fleet: chained,
      count: 300,
      call: (count) => ['PATCH', dryRun('/platform_components/last'), { body: { depends_on: ids(count) } }],
      status: 200,
    },
    'a definition that waits for many that are not there': {
      fleet: () => chained(1),
      count: 2000,
      call: (count) => [
        'PATCH',
        dryRun('/platform_components/last'),
        { body: { depends_on: ids(count, 'other') } },
      ],
      status: 400,
    },
    'a definition that waits for what waits for it': {
      fleet: chained,
      count: 300,
      call: (count) => ['PATCH', dryRun('/platform_components/n0'), { body: { depends_on: ids(count) } }],
      status: 400,
    },
    'a poll of an input that waits for many in vain': {
      fleet: (count) => ({
        platform_components: [...ids(count).map((id) => component(id)), component('last', ids(count))],
        clusters: cluster({ platform_components: [{ id: 'last', oci_tag: 'v2' }] }),
      }),
      call: () => ['GET', POLL],
      status: 200,
    },
    'a JSON patch of many operations': {
      fleet: withNamespaces,
      count: 600,
      call: (count) => [
        'PATCH',
        dryRun('/clusters/one'),
        {
          body: ids(count).map((id) => ({ op: 'add', path: `/labels/${id}`, value: 'x' })),
          headers: { 'content-type': 'application/json-patch+json' },
        },
      ],
      status: 200,
    },
    'a body of texts without an end': {
      count: 30_000,
      call: (count) => ['POST', '/namespaces', { raw: `["\\\\${'"\\'.repeat(count)}` }],
      status: 400,
    },
    'a body of keys with backslashes': {
      count: 30_000,
      call: (count) => ['POST', '/namespaces', { raw: `{"\\\\.": ${'{"a\\\\.":1},'.repeat(count)}` }],
      status: 400,
    },
  }

  for (const [name, { fleet = () => ({}), prepare, call, status, count = 900 }] of Object.entries(CASES))
    test(name, async (t) => {
      const services = new Map<number, TestService>()
      for (const size of [count, FACTOR * count]) {
        const service = await start(t, { fleet: fleet(size) })
        await prepare?.(service, size)
        services.set(size, service)
      }
      await assertLinear(count, (size) => {
        const [method, url, options] = call(size)
        return async () => {
          const answer = await (services.get(size) as TestService).call(method, url, options)
          assert.equal(answer.status, status, answer.text.slice(0, 300))
        }
      })
    })
})

describe('as long as it may be, no', () => {
  const LONG = 14_000
  /** What may stand in a header. */
  const FILLERS = RUNS.filter((run) => run.trim() !== '' || run === ' ').map((run) =>
    run.repeat(Math.floor(LONG / run.length)),
  )

  async function assertQuick(
    service: TestService,
    method: string,
    url: string,
    options: Call = {},
  ): Promise<void> {
    const ask = async (): Promise<void> => {
      const { status } = await service.call(method, url, options)
      assert.ok(status < 500, `${method} ${url.slice(0, 80)}: ${status}`)
    }
    // Mostly once is enough: only what was slow is asked again.
    let took = await shortest(1, ask)
    if (took >= MAX_REQUEST_MS) took = await shortest(3, ask)
    assert.ok(
      took < MAX_REQUEST_MS,
      `${method} ${url.slice(0, 80)} ${JSON.stringify(options.headers ?? {}).slice(0, 80)} took ${took} ms`,
    )
  }

  async function wordyService(t: TestContext): Promise<TestService> {
    const platform_components = Array.from({ length: 20 }, (_, i) => ({
      id: `c${i}`,
      component_path: 'x'.repeat(200),
      component_version: '1',
      oci_url: 'oci://registry.example.com/x',
      oci_tag: 'v1',
    }))
    const clusters = [
      {
        id: 'one',
        cluster_name: 'one',
        cluster_dns: 'one.k8s.example.com',
        environment: 'dev',
        platform_components: platform_components.map(({ id }) => ({ id })),
      },
    ]
    return start(t, { fleet: { platform_components, clusters }, trustedProxies: ['127.0.0.0/8'] })
  }

  /** Everything in the sources that looks like the name of a header, and those that have no dash. */
  function headersRead(): string[] {
    const sources = readdirSync(HTTP, { recursive: true, encoding: 'utf8' }).filter(
      (name) => name.endsWith('.ts') && !name.endsWith('.test.ts'),
    )
    const named = sources.flatMap(
      (name) =>
        readFileSync(join(HTTP, name), 'utf8').match(/(?<=(?:headers\[|first\()')[a-z-]+(?=')/g) ?? [],
    )
    return [
      ...new Set([
        ...named,
        'accept',
        'authorization',
        'last-event-id',
        'cookie',
        'forwarded',
        'range',
        'origin',
      ]),
    ].filter((name) => name !== 'content-type')
  }

  test('header holds up a poll, a read or a write', async (t) => {
    const service = await wordyService(t)
    const names = headersRead()
    for (const expected of [
      'accept-encoding',
      'if-match',
      'if-none-match',
      'x-forwarded-for',
      'last-event-id',
    ])
      assert.ok(names.includes(expected), expected)
    const before: Record<string, readonly string[]> = {
      'accept-encoding': ['', 'gzip;q=0.'],
      authorization: ['', 'Bearer ', 'Basic ', 'Bearer frs_'],
      'x-forwarded-for': ['', '['],
      'x-forwarded-host': ['', 'a/'],
    }
    for (const name of names)
      for (const start of before[name] ?? [''])
        for (const filler of FILLERS) {
          const headers = { [name]: `${start}${filler}x` }
          await assertQuick(service, 'GET', POLL, { headers })
          await assertQuick(service, 'PATCH', '/clusters/one?dry_run=true', { headers, body: {} })
          await assertQuick(service, 'GET', '/clusters/one/bootstrap', { headers })
        }
  })

  test('path or query does', async (t) => {
    const service = await wordyService(t)
    const { paths } = (await service.call('GET', '/openapi.json')).body as {
      paths: Record<string, { get?: { parameters?: { name: string; in: string }[] } }>
    }
    const seen = new Set<string>()
    for (const [path, { get }] of Object.entries(paths)) {
      if (!get || path === '/watch' || path === '/log') continue
      const url = path.replaceAll('{id}', 'one').replaceAll(/\{\w+\}/g, '1')
      const queried = (get.parameters ?? []).filter((each) => each.in === 'query' && !seen.has(each.name))
      for (const { name } of queried) seen.add(name)
      for (const filler of FILLERS) {
        const text = encodeURIComponent(filler).slice(0, LONG)
        for (const { name } of queried)
          await assertQuick(service, 'GET', `${url}?${name}=http%3A%2F%2F${text}x`)
        if (path.includes('{'))
          await assertQuick(service, 'GET', path.replaceAll(/\{\w+\}/g, text.slice(0, LONG / 3)))
      }
    }
    assert.ok(seen.has('selector') && seen.has('api_url'))
    for (const filler of FILLERS)
      await assertQuick(service, 'PATCH', `/nowhere/${encodeURIComponent(filler).slice(0, LONG)}`, {
        token: READ_TOKEN,
      })
  })
})
