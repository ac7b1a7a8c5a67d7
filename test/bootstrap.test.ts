// What a new cluster applies once to phone home, asked for over HTTP: which objects, in which bytes, and for whom.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { JsonObject } from '../src/base/json.ts'
import { assertProblem, pathsIn, run, start, temporaryDatabase } from './every-store.ts'
import { parseObjects } from './flux/tools.ts'
import {
  type Answer,
  builtInTemplates,
  builtInTypes,
  type Call,
  READ_TOKEN,
  type ServiceOptions,
  smallFleet,
  startService,
  type TestService,
  temporaryFolder,
  WRITE_TOKEN,
} from './service.ts'

const EXAMPLE = join(import.meta.dirname, '../examples/network-policies')
const POLLS = '/api/v2/flux/clusters'
const HERE = 'https://fleet.example.com'
const FLAVORS = ['concrete', 'identity'] as const
const ENDPOINTS = ['namespaces', 'platform-components', 'rolebindings']

interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly type?: string
  readonly data?: Readonly<Record<string, unknown>>
  // biome-ignore lint/suspicious/noExplicitAny: tests look into manifests freely
  readonly spec?: any
}

type Query = Readonly<Record<string, string>>

/** As templates, shells and Flux write it. */
function variable(name: string): string {
  return `\${${name}}`
}

function urlOf(cluster: string, query: Query): string {
  const parameters = new URLSearchParams(query)
  return `/clusters/${cluster}/bootstrap${parameters.size > 0 ? `?${parameters}` : ''}`
}

/** Asks with the read token, as somebody who may only look. */
function ask(
  service: Pick<TestService, 'call'>,
  query: Query = {},
  { cluster = 'one', ...call }: Call & { readonly cluster?: string } = {},
): Promise<Answer> {
  return service.call('GET', urlOf(cluster, query), { token: READ_TOKEN, ...call })
}

async function bundleOf(
  service: Pick<TestService, 'call'>,
  query: Query = {},
  more: Call & { readonly cluster?: string } = {},
): Promise<Pick<Answer, 'text' | 'headers'> & { readonly manifests: readonly Manifest[] }> {
  const answer = await ask(service, query, more)
  assert.equal(answer.status, 200, answer.text)
  return { ...answer, manifests: parseObjects(answer.text) as Manifest[] }
}

function namesIn(manifests: readonly Manifest[]): string[] {
  return manifests.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? '-'}/${metadata.name}`)
}

function find(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  return (
    manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name) ??
    assert.fail(`there is no ${kind} ${name}`)
  )
}

/** The providers that poll types. */
function providersIn(manifests: readonly Manifest[]): readonly Manifest[] {
  const found = manifests.filter(
    ({ kind, spec }) => kind === 'ResourceSetInputProvider' && spec.type === 'ExternalService',
  )
  assert.notEqual(found.length, 0)
  return found
}

/** The provider that the identity flavor makes of each endpoint: its template without what only Flux can fill in. */
function providerInTemplate(manifests: readonly Manifest[]): {
  readonly endpoints: readonly string[]
  readonly provider: Manifest
  readonly insecure: string
} {
  const template: string = find(manifests, 'ResourceSet', 'phone-home').spec.resourcesTemplate
  const [, list = '', each = ''] =
    /^<<- range list (.*) >>\n---\n([\s\S]*?\n)<<- end >>\n/.exec(template) ?? []
  const [guarded = '', insecure = ''] =
    / {2}<<- if (.*) >>\n {2}insecure: true\n {2}<<- end >>\n/.exec(each) ?? []
  const plain = each
    .replace(guarded, '')
    .replaceAll(/^.*<<- .*>>\n/gm, '')
    .replaceAll(/: (<< .* >>)$/gm, (_all, code) => `: '${code}'`)
  const [provider] = parseObjects(plain) as Manifest[]
  return {
    endpoints: list.split(' ').map((name) => JSON.parse(name)),
    provider: provider ?? assert.fail(template),
    insecure,
  }
}

/** What a provider must be, whatever else is asked for. */
function providerOf(name: string, url: string, spec: JsonObject = {}, interval = '5m'): JsonObject {
  return {
    apiVersion: 'fluxcd.controlplane.io/v1',
    kind: 'ResourceSetInputProvider',
    metadata: {
      name,
      namespace: 'flux-system',
      annotations: { 'fluxcd.controlplane.io/reconcileEvery': interval },
    },
    spec: {
      type: 'ExternalService',
      url,
      secretRef: { name: 'internal-api-token' },
      filter: { limit: 10_000 },
      defaultValues: { ack: 'components' },
      ...spec,
    },
  }
}

let service: TestService
before(async () => {
  service = await startService({ trustedProxies: ['127.0.0.1'] })
})
after(() => service.stop())

describe('what a bundle holds', () => {
  test('of a cluster: who it is, room for its token, Flux, a provider of each type and what is made of it', async () => {
    const { manifests } = await bundleOf(service, { api_url: HERE })
    assert.deepEqual(namesIn(manifests), [
      'Namespace -/flux-system',
      'ConfigMap flux-system/cluster-identity',
      'Secret flux-system/internal-api-token',
      'FluxInstance flux-system/flux',
      'ResourceSetInputProvider flux-system/namespaces',
      'ResourceSetInputProvider flux-system/platform-components',
      'ResourceSetInputProvider flux-system/rolebindings',
      'ResourceSetInputProvider flux-system/fleet-ack',
      'ResourceSet flux-system/fleet-events',
      'ResourceSet flux-system/fleet-events-operator',
      'ResourceSet flux-system/fleet-ack',
      'ResourceSet flux-system/namespaces',
      'ResourceSet flux-system/platform-components',
      'ResourceSet flux-system/clusterrolebindings',
      'ResourceSet flux-system/rolebindings',
    ])
  })

  test('of any cluster: the same, with one place that says who it is', async () => {
    const { manifests } = await bundleOf(service, { flavor: 'identity', api_url: HERE })
    assert.deepEqual(namesIn(manifests), [
      'Namespace -/flux-system',
      'Secret flux-system/internal-api-token',
      'FluxInstance flux-system/flux',
      'ResourceSetInputProvider flux-system/cluster-identity',
      'ResourceSet flux-system/phone-home',
      'ResourceSet flux-system/fleet-ack',
      'ResourceSet flux-system/namespaces',
      'ResourceSet flux-system/platform-components',
      'ResourceSet flux-system/clusterrolebindings',
      'ResourceSet flux-system/rolebindings',
    ])
    assert.deepEqual(find(manifests, 'ResourceSetInputProvider', 'cluster-identity').spec, {
      type: 'Static',
      defaultValues: { POLL_URL: `${variable('INTERNAL_API_URL')}${POLLS}/${variable('CLUSTER_DNS')}` },
    })
  })

  test('is a stream of YAML that starts with what it is, and with the same when it is asked for nothing', async () => {
    const answer = await ask(service, { api_url: HERE })
    assert.equal(answer.headers['content-type'], 'application/yaml')
    assert.match(
      answer.text,
      /^# Bootstrap of cluster one: .*\n# .*https:\/\/fleet\.example\.com every 5m\.\n---\n/,
    )
    assert.ok(answer.text.endsWith('\n') && !answer.text.endsWith('\n\n'))
    const same = await ask(service, {
      api_url: HERE,
      flavor: 'concrete',
      interval: '5m',
      flux_instance: 'true',
      ack: 'components',
      events: 'on',
    })
    assert.equal(same.text, answer.text)
  })

  test('is the identity as the provisioning layer gives it', async () => {
    const { manifests } = await bundleOf(service, { api_url: HERE })
    assert.deepEqual(find(manifests, 'ConfigMap', 'cluster-identity').data, {
      CLUSTER_NAME: 'one',
      CLUSTER_DNS: 'one.k8s.example.com',
      ENVIRONMENT: 'dev',
      INTERNAL_API_URL: HERE,
    })
  })

  test('polls every type, with a limit that cuts nothing off', async () => {
    const { manifests } = await bundleOf(service, { api_url: HERE })
    const base = `${HERE}${POLLS}/one.k8s.example.com`
    assert.deepEqual(
      providersIn(manifests),
      ENDPOINTS.map((name) => providerOf(name, `${base}/${name}`)),
    )
  })

  test('polls every type of the same identity', async () => {
    const { manifests } = await bundleOf(service, { flavor: 'identity' })
    const { endpoints, provider, insecure } = providerInTemplate(manifests)
    assert.deepEqual(endpoints, ENDPOINTS)
    const url = '<< printf "%s/%s" inputs.POLL_URL . | quote >>'
    assert.deepEqual(provider, providerOf('<< . | quote >>', url))
    assert.equal(insecure, 'hasPrefix "http://" inputs.POLL_URL')
  })

  for (const flavor of FLAVORS) {
    test(`takes inputs by name from providers that it waits for (${flavor})`, async () => {
      const { manifests } = await bundleOf(service, { flavor, api_url: HERE })
      const provided =
        flavor === 'concrete'
          ? providersIn(manifests).map(({ metadata }) => metadata.name)
          : ['cluster-identity', ...providerInTemplate(manifests).endpoints]
      for (const { kind, metadata, spec } of manifests) {
        if (kind !== 'ResourceSet' || metadata.name.startsWith('fleet-')) continue
        const source = { apiVersion: 'fluxcd.controlplane.io/v1', kind: 'ResourceSetInputProvider' }
        const [input, ...more] = spec.inputsFrom
        assert.deepEqual([input, more], [{ ...source, name: input.name }, []], metadata.name)
        assert.ok(provided.includes(input.name), metadata.name)
        assert.deepEqual(spec.dependsOn[0], { ...input, namespace: 'flux-system', ready: true })
      }
    })

    test(`holds no token (${flavor})`, async () => {
      for (const token of [READ_TOKEN, WRITE_TOKEN]) {
        const { text } = await bundleOf(service, { flavor, api_url: HERE }, { token })
        for (const secret of [READ_TOKEN, WRITE_TOKEN]) {
          assert.ok(!text.includes(secret))
          assert.ok(!text.includes(Buffer.from(secret).toString('base64')))
        }
      }
    })

    test(`leaves the token alone that somebody has put there (${flavor})`, async () => {
      const { manifests } = await bundleOf(service, { flavor, api_url: HERE })
      const { data, type, metadata } = find(manifests, 'Secret', 'internal-api-token')
      assert.deepEqual([data, type], [undefined, 'Opaque'])
      const how = metadata.annotations?.['kustomize.toolkit.fluxcd.io/ssa']
      assert.equal(how, flavor === 'identity' ? 'IfNotPresent' : undefined)
    })
  }

  test('from a source is kept when it goes from there, and only the identity is substituted', async () => {
    const { manifests } = await bundleOf(service, { flavor: 'identity' })
    for (const { kind, metadata } of manifests) {
      const { annotations = {}, name } = metadata
      assert.equal(annotations['kustomize.toolkit.fluxcd.io/prune'], 'disabled', `${kind} ${name}`)
      const substitute = name === 'cluster-identity' ? undefined : 'disabled'
      assert.equal(annotations['kustomize.toolkit.fluxcd.io/substitute'], substitute, `${kind} ${name}`)
    }
  })

  test('of a type of your own is its provider, and a word that nothing is made of it yet', async (t) => {
    const extended = await start(t, { types: builtInTypes(EXAMPLE) })
    for (const flavor of FLAVORS) {
      const { text, manifests, headers } = await bundleOf(extended, { flavor, api_url: HERE })
      const said = 'Nothing is made of network-policies yet: there is no template that reads it.'
      assert.ok(text.includes(`\n# ${said}\n`), text)
      assert.equal(headers.warning, `299 flux-resourceset "${said}"`)
      assert.ok(
        !manifests.some(({ kind, metadata }) => kind === 'ResourceSet' && /network/.test(metadata.name)),
      )
      if (flavor === 'identity') {
        assert.deepEqual(providerInTemplate(manifests).endpoints, [...ENDPOINTS, 'network-policies'])
      } else {
        const url = `${HERE}${POLLS}/one.k8s.example.com/network-policies`
        assert.deepEqual(
          find(manifests, 'ResourceSetInputProvider', 'network-policies'),
          providerOf('network-policies', url),
        )
      }
    }
  })

  test('of a type of your own with a template is what is made of it', async (t) => {
    const types = builtInTypes(EXAMPLE)
    const templates = builtInTemplates(types, join(EXAMPLE, 'templates'))
    const extended = await start(t, { types, templates })
    for (const flavor of FLAVORS) {
      const { text, manifests, headers } = await bundleOf(extended, { flavor, api_url: HERE })
      assert.doesNotMatch(text, /Nothing is made of/)
      assert.equal(headers.warning, undefined)
      assert.match(text, /^# Guards namespaces:/m)
      find(manifests, 'ResourceSet', 'network-policies')
    }
  })
})

describe('what can be asked for', () => {
  test('how often to poll', async () => {
    for (const interval of [
      '1s',
      '30s',
      '010m',
      '1h',
      '1h30m',
      '90s',
      '0h0m1s',
      '24h',
      '23h59m60s',
      '86400s',
    ]) {
      const { text, manifests } = await bundleOf(service, { interval, api_url: HERE })
      for (const { metadata } of providersIn(manifests))
        assert.equal(metadata.annotations?.['fluxcd.controlplane.io/reconcileEvery'], interval)
      assert.ok(text.includes(` every ${interval}.\n`))
      const { provider } = providerInTemplate(
        (await bundleOf(service, { interval, flavor: 'identity' })).manifests,
      )
      assert.deepEqual(provider.metadata.annotations, { 'fluxcd.controlplane.io/reconcileEvery': interval })
    }
  })

  test('a Secret that is there already, and the bundle has none then', async () => {
    for (const flavor of FLAVORS) {
      const { manifests } = await bundleOf(service, { token_secret: 'my.token-1', flavor, api_url: HERE })
      assert.ok(!manifests.some(({ kind }) => kind === 'Secret'))
      const providers =
        flavor === 'concrete' ? providersIn(manifests) : [providerInTemplate(manifests).provider]
      for (const { spec } of providers) assert.deepEqual(spec.secretRef, { name: 'my.token-1' })
    }
  })

  test('a Secret with a certificate', async () => {
    for (const flavor of FLAVORS) {
      const { manifests } = await bundleOf(service, { cert_secret: 'fleet-ca', flavor, api_url: HERE })
      find(manifests, 'Secret', 'internal-api-token')
      const providers =
        flavor === 'concrete' ? providersIn(manifests) : [providerInTemplate(manifests).provider]
      for (const { spec } of providers) assert.deepEqual(spec.certSecretRef, { name: 'fleet-ca' })
    }
  })

  test('a bundle without Flux, where it is installed already', async () => {
    for (const flavor of FLAVORS) {
      const whole = await bundleOf(service, { flavor, api_url: HERE })
      const { manifests } = await bundleOf(service, { flavor, api_url: HERE, flux_instance: 'false' })
      assert.deepEqual(
        manifests,
        whole.manifests.filter(({ kind }) => kind !== 'FluxInstance'),
      )
    }
  })

  test('everything at once', async () => {
    const query = {
      interval: '1m',
      token_secret: 'token',
      cert_secret: 'cert',
      flux_instance: 'false',
      api_url: 'http://10.0.0.1:8080/fleet/',
    }
    const { manifests } = await bundleOf(service, query)
    const spec = { secretRef: { name: 'token' }, certSecretRef: { name: 'cert' }, insecure: true }
    const base = `http://10.0.0.1:8080/fleet${POLLS}/one.k8s.example.com`
    assert.deepEqual(
      providersIn(manifests),
      ENDPOINTS.map((name) => providerOf(name, `${base}/${name}`, spec, '1m')),
    )
  })

  test('only what the description of the API names', async () => {
    const { body } = await service.call('GET', '/openapi.json')
    const { get, ...others } = body.paths['/clusters/{cluster}/bootstrap']
    assert.deepEqual(others, {})
    assert.deepEqual(Object.keys(get.responses[200].content), ['application/yaml'])
    const named = get.parameters
      .filter((parameter: { in: string }) => parameter.in === 'query')
      .map(({ name }: { name: string }) => name)
    const values: Query = {
      flavor: 'identity',
      interval: '5m',
      api_url: HERE,
      token_secret: 'a',
      cert_secret: 'b',
      flux_instance: 'false',
      ack: 'types',
      events: 'off',
      min_revision: '1',
    }
    assert.deepEqual(named.toSorted(), Object.keys(values).sort())
    await bundleOf(service, values)
    assertProblem(await ask(service, { at: '1' }), 400, 'validation_error')
    const readOnly = await startService({ mode: 'read-only' })
    const { body: less } = await readOnly.call('GET', '/openapi.json')
    await readOnly.stop()
    assert.equal(less.paths['/clusters/{cluster}/bootstrap'], undefined)
  })
})

describe('where clusters reach the service', () => {
  const BASES: readonly (readonly [given: string, base: string])[] = [
    [HERE, HERE],
    [`${HERE}/`, HERE],
    [`${HERE}/behind/a/proxy`, `${HERE}/behind/a/proxy`],
    [`${HERE}/behind/a/proxy//`, `${HERE}/behind/a/proxy`],
    [`${HERE}/a/../b/./`, `${HERE}/b`],
    ['https://fleet.example.com:443', HERE],
    ['https://fleet.example.com:8443', 'https://fleet.example.com:8443'],
    ['HTTPS://Fleet.Example.COM/Path', `${HERE}/Path`],
    ['https://[2001:DB8::1]:8443/', 'https://[2001:db8::1]:8443'],
    ['https://192.0.2.7', 'https://192.0.2.7'],
    ['http://fleet.example.com:80/', 'http://fleet.example.com'],
    ['http://[::1]:8080', 'http://[::1]:8080'],
    ['https://fleet.example.com/%20', 'https://fleet.example.com/%20'],
    ['https://flotte.example.com/ä', 'https://flotte.example.com/%C3%A4'],
    ['https://日本.example.com', 'https://xn--wgv71a.example.com'],
    [
      'https://fleet.example.com/a&b=*!;,(c)|d:e@f~g+h%25',
      'https://fleet.example.com/a&b=*!;,(c)|d:e@f~g+h%25',
    ],
  ]

  for (const [given, base] of BASES) {
    test(`${given} is ${base}`, async () => {
      const { manifests } = await bundleOf(service, { api_url: given })
      for (const { metadata, spec } of providersIn(manifests)) {
        assert.equal(spec.url, `${base}${POLLS}/one.k8s.example.com/${metadata.name}`)
        assert.equal(spec.insecure, base.startsWith('http://') ? true : undefined)
      }
      assert.equal(find(manifests, 'ConfigMap', 'cluster-identity').data?.INTERNAL_API_URL, base)
    })
  }

  test('the URLs of a bundle answer with what the cluster is given', async () => {
    const { manifests } = await bundleOf(service)
    for (const { metadata, spec } of providersIn(manifests)) {
      assert.ok(spec.url.startsWith(`${service.url}/`), spec.url)
      const answer = await service.call('GET', spec.url.slice(service.url.length), { token: READ_TOKEN })
      assert.equal(answer.status, 200, answer.text)
      const inputs = await service.call('GET', `/clusters/one/inputs/${metadata.name}`)
      assert.ok(answer.bytes.equals(inputs.bytes))
      assert.ok(answer.body.inputs.length > 0)
    }
  })

  test('a DNS name in capitals is polled as it is written, and answers', async (t) => {
    const fleet = smallFleet()
    const [one, two] = fleet.clusters
    const clusters = [{ ...one, cluster_dns: 'ONE.K8s.Example.com' }, two]
    const shouting = await start(t, { fleet: { ...fleet, clusters } })
    const { manifests } = await bundleOf(shouting)
    assert.equal(find(manifests, 'ConfigMap', 'cluster-identity').data?.CLUSTER_DNS, 'ONE.K8s.Example.com')
    for (const { metadata, spec } of providersIn(manifests)) {
      assert.equal(spec.url, `${shouting.url}${POLLS}/ONE.K8s.Example.com/${metadata.name}`)
      assert.equal((await shouting.call('GET', spec.url.slice(shouting.url.length))).status, 200)
    }
  })

  const INFERRED: readonly (readonly [headers: Record<string, string>, base: string])[] = [
    [{ host: 'fleet.example.com' }, 'http://fleet.example.com'],
    [{ host: 'Fleet.Example.com:8080' }, 'http://fleet.example.com:8080'],
    [{ host: '[::1]:8080' }, 'http://[::1]:8080'],
    [{ host: 'a', 'x-forwarded-proto': 'https' }, 'https://a'],
    [{ host: 'a', 'x-forwarded-host': 'b.example.com' }, 'http://b.example.com'],
    [
      { host: 'a', 'x-forwarded-host': 'b.example.com:8443', 'x-forwarded-proto': 'https' },
      'https://b.example.com:8443',
    ],
    [{ host: 'a', 'x-forwarded-host': 'b, c', 'x-forwarded-proto': 'https,http' }, 'https://b'],
    [{ host: 'a', 'x-forwarded-host': ' ', 'x-forwarded-proto': ',https' }, 'http://a'],
    [{ host: 'a', 'x-forwarded-proto': 'HTTPS' }, 'https://a'],
  ]

  for (const [headers, base] of INFERRED) {
    test(`a request with ${JSON.stringify(headers)} came to ${base}`, async () => {
      const { manifests } = await bundleOf(service, {}, { headers })
      assert.equal(find(manifests, 'ConfigMap', 'cluster-identity').data?.INTERNAL_API_URL, base)
    })
  }

  for (const trustedProxies of [[], ['10.0.0.0/8', '::1', 'unix']])
    test(`is where a request came to, whatever it says itself: proxies are ${trustedProxies.join() || 'nobody'}`, async (t) => {
      const direct = await start(t, { trustedProxies })
      for (const [headers] of INFERRED) {
        const { manifests } = await bundleOf(direct, {}, { headers })
        const url = find(manifests, 'ConfigMap', 'cluster-identity').data?.INTERNAL_API_URL
        assert.equal(url, `http://${headers.host?.toLowerCase()}`)
      }
    })

  test('is what the service was told, rather than what a request came to', async (t) => {
    const told = await start(t, { externalUrl: 'https://told.example.com/fleet' })
    const headers = { host: 'a', 'x-forwarded-host': 'evil.example.com', 'x-forwarded-proto': 'https' }
    const apiUrl = async (query: Query): Promise<unknown> => {
      const { text, manifests } = await bundleOf(told, query, { headers })
      assert.ok(!text.includes('evil'))
      return find(manifests, 'ConfigMap', 'cluster-identity').data?.INTERNAL_API_URL
    }
    assert.equal(await apiUrl({}), 'https://told.example.com/fleet')
    assert.equal(await apiUrl({ api_url: HERE }), HERE)
  })
})

describe('names that YAML could take for something else', () => {
  async function nameIn(cluster_name: string): Promise<unknown> {
    await run(service, ['PATCH', '/clusters/two', { cluster_name }])
    const { manifests } = await bundleOf(service, { api_url: HERE }, { cluster: 'two' })
    const { data = {} } = find(manifests, 'ConfigMap', 'cluster-identity')
    for (const [key, value] of Object.entries(data))
      assert.equal(typeof value, 'string', `${key} of ${cluster_name}`)
    assert.deepEqual(Object.keys(data), ['CLUSTER_NAME', 'CLUSTER_DNS', 'ENVIRONMENT', 'INTERNAL_API_URL'])
    return data.CLUSTER_NAME
  }

  const NAMES: Record<string, readonly string[]> = {
    'a boolean or nothing': ['true', 'False', 'null', '~', 'Null'],
    'what only Kubernetes takes for a boolean': ['yes', 'no', 'on', 'Off', 'y', 'N'],
    'a number': ['1e3', '0777', '0x1f', '1.5', '-0', '+1', '.5', '.inf', '.NaN', '12:30:45', '0o17'],
    'what only Kubernetes takes for a number': ['1_000', '0b11', '0x_1f', '1_0.5'],
    'a time': ['2026-01-31', '2026-01-31T12:00:00Z'],
    syntax: [
      '- a',
      'a: b',
      'a #b',
      '#a',
      '[a]',
      '{a',
      '|',
      '>-',
      '!a',
      '%a',
      '@a',
      '`a',
      '*a',
      '&a',
      '? a',
      ':',
    ],
    'a template or a variable': ['<< inputs.x >>', '<<', variable('CLUSTER_DNS'), '{{ .x }}', '%s'],
    'the end of a document': ['---', '...', '--- a', '... a'],
    quotes: ['"a"', "it's", '"', "'", '\\', '\\n', 'a\\'],
    space: [' ', ' a', 'a ', 'a  b', '\u00a0', '\u3000a'],
    'other writing': ['ünï', '日本', '😀', 'שלום', '\ufeffa', '\u200b', '\u202ea', '\ue000', '\ufffd'],
    'a long text': ['x'.repeat(253), `${'word '.repeat(50)}end`],
    'a part of the bundle': ['type: Opaque', '  insecure: true', 'kind: Secret', 'data:'],
  }

  for (const [what, names] of Object.entries(NAMES)) {
    test(`${what} stays a name`, async () => {
      for (const name of names) assert.equal(await nameIn(name), name)
    })
  }

  test('what only Go takes for a number is written in quotes', async () => {
    for (const name of ['0o17', '0O17', '0X1f', '0B11', '7e0_0', '+_1']) {
      await run(service, ['PATCH', '/clusters/two', { cluster_name: name }])
      const { text } = await bundleOf(service, { api_url: HERE }, { cluster: 'two' })
      const [, written = ''] = /^ {2}CLUSTER_NAME: (.*)$/m.exec(text) ?? []
      assert.ok(written === `"${name}"` || written === `'${name}'`, written)
    }
  })

  test('a Secret of such a name stays a name', async () => {
    for (const token_secret of ['true', '1e3', 'on', 'no', '0b1']) {
      const { manifests } = await bundleOf(service, { token_secret, cert_secret: token_secret })
      for (const { spec } of providersIn(manifests)) {
        assert.equal(spec.secretRef.name, token_secret)
        assert.equal(spec.certSecretRef.name, token_secret)
      }
    }
  })

  const NO_NAMES: Record<string, readonly string[]> = {
    'a line break': [
      'a\n',
      '\na',
      'a\n\n b\n',
      'a\r\nb',
      'a\rb',
      'a\n---\nkind: Secret',
      'a\ntype: Opaque\nb',
    ],
    'what only Kubernetes takes for a line break': ['a\u2028  MORE: x', 'a\u2029b', 'a\u0085b'],
    'a control character': ['\t', 'a\tb', 'a\u001b[2Jb', 'a\u007fb', 'a\u009fb'],
    'what is no character': ['a\ufffeb', '\uffff', 'a\u{1ffff}', '\u0378'],
  }

  for (const [what, names] of Object.entries(NO_NAMES)) {
    test(`${what} is in no name`, async () => {
      const { body: cluster } = await service.call('GET', '/clusters/two')
      for (const cluster_name of names) {
        for (const answer of [
          await service.call('PATCH', '/clusters/two', { body: { cluster_name } }),
          await service.call('PUT', '/clusters/two', { body: { ...cluster, cluster_name } }),
          await service.call('POST', '/clusters', {
            body: { id: 'new', cluster_name, cluster_dns: 'new.example.com', environment: 'dev' },
          }),
        ]) {
          assertProblem(answer, 400, 'validation_error')
          assert.deepEqual(pathsIn(answer), ['/cluster_name'], JSON.stringify(cluster_name))
          assert.match(answer.body.message, /^\/cluster_name must be text on one line, without control char/)
        }
      }
    })
  }

  test('a DNS name that looks like a number stays a name when it is substituted', async () => {
    const { text } = await bundleOf(service, { flavor: 'identity' })
    for (const dns of ['1e3', '42', '1.5', 'no', 'true']) {
      const filled = text
        .replaceAll(variable('CLUSTER_DNS'), dns)
        .replaceAll(variable('INTERNAL_API_URL'), HERE)
      const { spec } = find(
        parseObjects(filled) as Manifest[],
        'ResourceSetInputProvider',
        'cluster-identity',
      )
      assert.deepEqual(spec.defaultValues, { POLL_URL: `${HERE}${POLLS}/${dns}` })
    }
  })
})

describe('bytes', () => {
  test('of the identity flavor are the same for every cluster, and say nothing of any', async (t) => {
    const fleet = smallFleet()
    const named = fleet.clusters.map((cluster, i) => ({
      ...cluster,
      cluster_name: `Herbert ${i}`,
      cluster_dns: `herbert-${i}.k8s.example.com`,
    }))
    const herberts = await start(t, { fleet: { ...fleet, clusters: named } })
    const [first, ...others] = await Promise.all(
      ['one', 'two'].flatMap((cluster) =>
        [{}, { api_url: HERE }, { api_url: 'http://other.example.com' }].map((query) =>
          bundleOf(herberts, { flavor: 'identity', ...query }, { cluster }),
        ),
      ),
    )
    for (const { text } of others) assert.equal(text, first?.text)
    assert.doesNotMatch(
      first?.text ?? '',
      /herbert|127\.0\.0\.1|fleet\.example|other\.example|\bdev\b|\bprod\b/i,
    )
  })

  test('are the same from two servers, and whatever else has changed', async (t) => {
    const options: ServiceOptions = { types: builtInTypes(EXAMPLE) }
    const [a, b] = [await start(t, options), await start(t, options)]
    const texts = async (of: TestService): Promise<string[]> =>
      Promise.all(FLAVORS.map(async (flavor) => (await bundleOf(of, { flavor, api_url: HERE })).text))
    const before = await texts(a)
    assert.deepEqual(await texts(b), before)
    await run(
      b,
      ['PATCH', '/clusters/one', { node_count: 7, labels: { region: 'eu' } }],
      ['PATCH', '/platform_components/a', { oci_tag: 'v9' }],
      ['DELETE', '/clusters/one/namespaces/team-a?confirm=removals'],
      ['DELETE', '/clusters/two'],
    )
    assert.deepEqual(await texts(b), before)
    await run(b, ['PATCH', '/clusters/one', { environment: 'qa' }])
    const [concrete, identity] = await texts(b)
    assert.equal(identity, before[1])
    assert.equal(concrete, before[0]?.replace('ENVIRONMENT: dev', 'ENVIRONMENT: qa'))
  })

  test('are the same after a restart', async (t) => {
    const database = temporaryDatabase(t)
    const texts: string[] = []
    for (let round = 0; round < 2; round++) {
      const restarted = await startService({ store: database.open() })
      for (const flavor of FLAVORS) texts.push((await bundleOf(restarted, { flavor, api_url: HERE })).text)
      await restarted.stop()
    }
    assert.deepEqual(texts.slice(2), texts.slice(0, 2))
  })

  const [DNS, API_URL] = [variable('CLUSTER_DNS'), variable('INTERNAL_API_URL')]
  const identity: Record<string, string> = { CLUSTER_DNS: 'one.k8s.example.com', INTERNAL_API_URL: HERE }
  const hasEnvsubst = spawnSync('envsubst', ['--version']).status === 0

  /** The variables that the first lines of a bundle have envsubst replace. */
  function listIn(text: string): string {
    return /^# .*: envsubst '([^']*)' < bootstrap\.yaml$/m.exec(text)?.[1] ?? assert.fail(text)
  }

  function filledByHand(text: string): string {
    return text
      .replaceAll(DNS, identity.CLUSTER_DNS as string)
      .replaceAll(API_URL, identity.INTERNAL_API_URL as string)
  }

  test('of the identity flavor name the two variables that are to be replaced, and no others', async () => {
    const { text, manifests } = await bundleOf(service, { flavor: 'identity' })
    assert.equal(listIn(text), `${DNS} ${API_URL}`)
    const filled = parseObjects(filledByHand(text)) as Manifest[]
    const POLL_URL = `${HERE}${POLLS}/one.k8s.example.com`
    const expected = manifests.map((manifest) =>
      manifest.metadata.name === 'cluster-identity'
        ? { ...manifest, spec: { type: 'Static', defaultValues: { POLL_URL } } }
        : manifest,
    )
    assert.deepEqual(filled, expected)
  })

  test('of the identity flavor come out whole of envsubst, asked as its first lines say', {
    skip: hasEnvsubst ? false : 'envsubst is not installed',
  }, async () => {
    const { text } = await bundleOf(service, { flavor: 'identity' })
    const others = Object.fromEntries([...text.matchAll(/\$(\w+)/g)].map(([, name]) => [name, 'wrong']))
    assert.ok(Object.hasOwn(others, 'chart'), 'templates have variables of their own')
    const { stdout, stderr, status } = spawnSync('envsubst', [listIn(text)], {
      input: text,
      encoding: 'utf8',
      env: { PATH: process.env.PATH, ...others, ...identity },
    })
    assert.deepEqual([status, stderr], [0, ''])
    assert.equal(stdout, filledByHand(text))
  })
})

describe('what is refused', () => {
  const BAD: Record<string, readonly string[]> = {
    flavor: ['', 'Concrete', 'both', 'identity '],
    interval: [
      '',
      '5',
      '0s',
      '0.0h',
      '-5m',
      '5 m',
      '5M',
      '1d',
      '5m\n',
      '1e3s',
      '1.2345s',
      '90.5s',
      '500ms',
      '1s500ms',
      '1us',
      '0h0m0s',
      '25h',
      '24h1s',
      '1441m',
      '86401s',
      '999999h',
      '5m5',
      '+5m',
      '1h-5m',
      '٥m',
      'm',
      '5m#',
      '"5m"',
      '<< x >>',
    ],
    api_url: [
      '',
      'fleet.example.com',
      '//fleet.example.com',
      'ftp://fleet.example.com',
      'javascript:alert(1)',
      'https://',
      'https://user@fleet.example.com',
      'https://user:secret@fleet.example.com',
      'https://:secret@fleet.example.com',
      `${HERE}?a=b`,
      `${HERE}#a`,
      `${HERE}?`,
      `${HERE}#`,
      `${HERE}/?`,
      `${HERE}/#`,
      `${HERE}/path?#`,
      `${HERE}/a b`,
      `${HERE}/a\nb`,
      `${HERE}/a\tb`,
      `${HERE}/"`,
      `${HERE}/'`,
      `${HERE}/\``,
      `${HERE}/\\`,
      `${HERE}/$x`,
      `${HERE}/${variable('CLUSTER_DNS')}`,
      `${HERE}/<<x>>`,
      `${HERE}/{{x}}`,
      `${HERE}:99999`,
      ` ${HERE}`,
    ],
    token_secret: [
      '',
      'Upper',
      'under_score',
      'a b',
      '-a',
      'a/b',
      'a: b',
      'a#b',
      '"a"',
      '<<',
      variable('a'),
      'a\nb',
      'x'.repeat(254),
    ],
    cert_secret: ['', 'Upper', 'a\n  insecure: true', 'a..b'],
    ack: ['', 'Components', 'on', 'true', 'types '],
    events: ['', 'On', 'true', 'no', '1'],
  }

  for (const [name, values] of Object.entries(BAD)) {
    test(`${name} of ${values.length} wrong kinds, each time with its name`, async () => {
      for (const value of values) {
        for (const flavor of name === 'flavor' ? [] : FLAVORS) {
          const answer = await ask(service, { flavor, [name]: value })
          assertProblem(answer, 400, 'validation_error')
          assert.deepEqual(pathsIn(answer), [`?${name}`], value)
        }
        const answer = await ask(service, { [name]: value })
        assertProblem(answer, 400, 'validation_error')
        assert.deepEqual(pathsIn(answer), [`?${name}`], value)
        assert.match(answer.body.details[0].message, /^must be /)
        assert.doesNotMatch(answer.text, /secret@/)
      }
    })
  }

  test('a flag that is neither true nor false', async () => {
    for (const flux_instance of ['', 'no', 'TRUE', '0']) {
      const answer = await ask(service, { flux_instance })
      assertProblem(answer, 400, 'validation_error')
      assert.deepEqual(pathsIn(answer), ['?flux_instance'])
    }
  })

  test('all that is wrong, at once', async () => {
    const answer = await ask(service, {
      flavor: 'x',
      interval: 'x',
      api_url: 'x',
      token_secret: 'X',
      cert_secret: 'X',
    })
    assertProblem(answer, 400, 'validation_error')
    const wrong = ['?api_url', '?cert_secret', '?flavor', '?interval', '?token_secret']
    assert.deepEqual(pathsIn(answer).toSorted(), wrong)
  })

  test('a parameter that is not known, or given twice', async () => {
    for (const query of [
      'at=1',
      'flavour=identity',
      'flavor=identity&flavor=concrete',
      'cluster=two',
      'format=json',
    ]) {
      const answer = await service.call('GET', `/clusters/one/bootstrap?${query}`)
      assertProblem(answer, 400, 'validation_error')
      assert.deepEqual(pathsIn(answer), [`?${query.split('=')[0]}`])
    }
  })

  test('a request that did not come to any URL, with what to say instead', async () => {
    const HOSTS = [
      'a b',
      'a"b',
      "a'b",
      'a<<b',
      variable('a'),
      'u:p@h',
      'a#b',
      'a#',
      'a?b',
      'a?',
      'a\\b',
      'a:99999',
      'a`b',
      '[::1',
    ]
    for (const host of HOSTS) {
      const headers: Record<string, string>[] = [{ host }, { 'x-forwarded-host': host }]
      for (const given of headers) {
        const answer = await ask(service, {}, { headers: given })
        assertProblem(answer, 400, 'validation_error')
        assert.deepEqual(pathsIn(answer), ['?api_url'], host)
        const { manifests } = await bundleOf(service, { api_url: HERE }, { headers: given })
        assert.equal(manifests.length, 15)
      }
    }
    for (const proto of ['ftp', 'javascript', 'https://evil.example.com/?', 'ht tp', '<<', variable('x')]) {
      const answer = await ask(service, {}, { headers: { 'x-forwarded-proto': proto } })
      assertProblem(answer, 400, 'validation_error')
    }
  })

  test('whoever has no token, before anything else is looked at', async () => {
    for (const token of [null, 'wrong']) {
      for (const query of [{}, { flavor: 'x' }]) {
        const answer = await ask(service, query, { token })
        assertProblem(answer, 401, 'unauthorized')
        assert.match(answer.headers['www-authenticate'] ?? '', /^Bearer/)
      }
    }
  })

  test('a cluster that is not there, or not any more', async (t) => {
    const own = await start(t)
    assertProblem(await ask(own, {}, { cluster: 'nope' }), 404, 'not_found')
    assertProblem(await ask(own, {}, { cluster: 'one.k8s.example.com' }), 404, 'not_found')
    assertProblem(await ask(own, {}, { cluster: '__proto__' }), 404, 'not_found')
    await run(own, ['DELETE', '/clusters/one'])
    for (const flavor of FLAVORS) {
      const answer = await ask(own, { flavor })
      assertProblem(answer, 404, 'not_found')
      assert.match(answer.body.message, /cluster "one"/)
    }
    await run(own, ['POST', '/clusters/one/restore'])
    await bundleOf(own)
  })

  test('every question in read-only mode', async (t) => {
    const readOnly = await start(t, { mode: 'read-only' })
    assertProblem(await ask(readOnly), 404, 'not_found')
    assertProblem(await ask(readOnly, { flavor: 'identity' }, { token: WRITE_TOKEN }), 404, 'not_found')
  })

  test('every other method', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const answer = await service.call(method, '/clusters/one/bootstrap')
      assertProblem(answer, 405, 'method_not_allowed')
      assert.equal(answer.headers.allow, 'GET, HEAD')
    }
  })
})

test('a question for the headers alone is answered with them alone', async () => {
  const whole = await ask(service, { api_url: HERE })
  const url = urlOf('one', { api_url: HERE })
  const head = await service.call('HEAD', url, { token: READ_TOKEN })
  assert.deepEqual([head.status, head.text], [200, ''])
  for (const name of ['content-type', 'content-length', 'x-revision'])
    assert.equal(head.headers[name], whole.headers[name], name)
  assert.equal((await service.call('HEAD', '/clusters/nope/bootstrap')).status, 404)
  assert.equal((await service.call('HEAD', '/clusters/one/bootstrap', { token: null })).status, 401)
})

test('no cluster can be given more than the providers of its bundle take', async (t) => {
  const { manifests } = await bundleOf(service)
  const limits = providersIn(manifests).map(({ spec }) => spec.filter.limit)
  const [limit = 0] = limits
  assert.deepEqual(limits, [limit, limit, limit])
  const { provider } = providerInTemplate((await bundleOf(service, { flavor: 'identity' })).manifests)
  assert.equal(provider.spec.filter.limit, limit)
  const ids = Array.from({ length: limit + 1 }, (_, i) => `n${i}`)
  const full = await start(t, {
    fleet: { ...smallFleet(), namespaces: [...ids, 'team-a'].map((id) => ({ id })) },
  })
  const answer = await full.call('PATCH', '/clusters/two', {
    body: { namespaces: ids.map((id) => ({ id })) },
  })
  assertProblem(answer, 400, 'validation_error')
  assert.deepEqual(pathsIn(answer), ['/namespaces'])
  assert.ok(answer.body.message.includes(`${limit + 1} inputs of namespaces: Flux takes at most ${limit}`))
})

test('the endpoint of a type of your own stays a name, whatever Kubernetes takes it for', async (t) => {
  for (const endpoint of ['on', '1e3', '0777']) {
    const folder = temporaryFolder(t)
    const file = {
      kind: 'gadgets',
      apiVersion: 'v1',
      schema: {
        type: 'array',
        key: { name: 'id' },
        'x-flux': { endpoint, assigned_by: 'gadgets', input: ['size'] },
        items: { type: 'object', properties: { size: { type: 'string' } } },
      },
    }
    writeFileSync(join(folder, 'gadget.yaml'), JSON.stringify(file))
    const extended = await start(t, { types: builtInTypes(folder) })
    const { manifests } = await bundleOf(extended, { api_url: HERE })
    const names = providersIn(manifests).map(({ metadata }) => metadata.name)
    assert.deepEqual(names, [...ENDPOINTS, endpoint])
    const shared = await bundleOf(extended, { flavor: 'identity' })
    assert.deepEqual(providerInTemplate(shared.manifests).endpoints, [...ENDPOINTS, endpoint])
  }
})
