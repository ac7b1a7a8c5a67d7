// Bootstrap bundles in the hands of the real tools: a cluster would take them, and both flavors make the same providers.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { stringify } from 'yaml'
import { start } from '../every-store.ts'
import {
  builtInTemplates,
  builtInTypes,
  READ_TOKEN,
  smallFleet,
  startService,
  type TestService,
  temporaryFolder,
} from '../service.ts'
import { validateObjects } from './schemas.ts'
import { parseObjects, readByKubernetes, renderResourceSet, run } from './tools.ts'

const EXAMPLE = join(import.meta.dirname, '../../examples/network-policies')
const HTTPS = 'https://fleet.example.com/api'
const HTTP = 'http://10.0.0.1:8080'
const ENDPOINTS = ['namespaces', 'platform-components', 'rolebindings', 'network-policies']

// biome-ignore lint/suspicious/noExplicitAny: tests look into objects freely
type Any = any
type Query = Readonly<Record<string, string>>
type Identity = Readonly<Record<string, string>>

const types = builtInTypes(EXAMPLE)
let service: TestService
before(async () => {
  service = await startService({ types, templates: builtInTemplates(types, join(EXAMPLE, 'templates')) })
})
after(() => service.stop())

async function bundleOf(of: TestService, query: Query, cluster = 'one'): Promise<string> {
  const url = `/clusters/${cluster}/bootstrap?${new URLSearchParams(query)}`
  const { status, text } = await of.call('GET', url, { token: READ_TOKEN })
  assert.equal(status, 200, text)
  return text
}

function find(objects: readonly Any[], kind: string, name: string): Any {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name)
  return found ?? assert.fail(`there is no ${kind} ${name}`)
}

function providersIn(objects: readonly Any[]): Any[] {
  return objects.filter(({ kind }) => kind === 'ResourceSetInputProvider')
}

/** What the bundle of any cluster makes of its identity, and the bundle of one cluster has as it is. */
function ofIdentity(objects: readonly Any[]): Any[] {
  return objects.filter(
    ({ kind, metadata }) =>
      kind === 'ResourceSetInputProvider' || (kind === 'ResourceSet' && /^fleet-events/.test(metadata.name)),
  )
}

/** Every way to ask for a bundle of a flavor, but for where clusters reach the service. */
const QUERIES: readonly Query[] = [{}, { token_secret: 'my-token' }].flatMap((token) =>
  [{}, { cert_secret: 'my-ca' }].flatMap((cert) =>
    [{}, { flux_instance: 'false', interval: '1h30m', ack: 'types', events: 'off' }].map((more) => ({
      ...token,
      ...cert,
      ...more,
    })),
  ),
)

/** As a Flux Kustomization that substitutes from the ConfigMap does it, in strict mode. */
async function substituteByFlux(yaml: string, identity: Identity): Promise<Any[]> {
  const args = ['substitute', JSON.stringify(identity)]
  const { code, stdout, stderr } = await run('controllers', args, { input: yaml })
  assert.equal(code, 0, stderr)
  return parseObjects(stdout)
}

/** As `envsubst` does it that is told the two variables, and as templates of cloud-init and Terraform do. */
function substituteInText(yaml: string, identity: Identity): Any[] {
  const names = /\$\{(CLUSTER_DNS|INTERNAL_API_URL)\}/g
  return parseObjects(yaml.replaceAll(names, (_all, name) => identity[name] ?? assert.fail(name)))
}

/** What phone-home makes of the identity in these objects, without the labels of their maker. */
async function phoneHome(t: TestContext, objects: readonly Any[]): Promise<Any[]> {
  const file = join(temporaryFolder(t), 'identity.yaml')
  writeFileSync(
    file,
    stringify(find(objects, 'ResourceSetInputProvider', 'cluster-identity'), { version: '1.1' }),
  )
  const resourceSet = stringify(find(objects, 'ResourceSet', 'phone-home'), { version: '1.1' })
  const args = ['build', 'resourceset', '--filename', '-', '--inputs-from-provider', file]
  const { code, stdout, stderr } = await run('flux-operator', args, { input: resourceSet })
  assert.equal(code, 0, stderr)
  return (parseObjects(stdout) as Any[]).map(({ metadata: { labels, ...metadata }, ...object }) => {
    const {
      'resourceset.fluxcd.controlplane.io/name': name,
      'resourceset.fluxcd.controlplane.io/namespace': namespace,
      ...own
    } = labels
    assert.deepEqual([name, namespace], ['phone-home', 'flux-system'])
    return { ...object, metadata: { ...metadata, ...(Object.keys(own).length > 0 && { labels: own }) } }
  })
}

/** Where this is left out, a provider that is made anew would empty the cluster, or one with more inputs a part of it. */
function checkGuards(objects: readonly Any[]): void {
  const polling = providersIn(objects).filter(({ spec }) => spec.type === 'ExternalService')
  for (const { metadata, spec } of polling) assert.equal(spec.filter.limit, 10_000, metadata.name)
  const sets = objects.filter(
    ({ kind, metadata }) => kind === 'ResourceSet' && !/^fleet-/.test(metadata.name),
  )
  for (const { metadata, spec } of sets) {
    const [source, ...others] = spec.inputsFrom
    assert.deepEqual(others, [], metadata.name)
    const { apiVersion, kind, name, ...more } = source
    assert.deepEqual([kind, more], ['ResourceSetInputProvider', {}], metadata.name)
    find(objects, kind, name)
    const guard = { apiVersion, kind, name, namespace: 'flux-system', ready: true }
    assert.ok(
      spec.dependsOn.some((other: Any) => JSON.stringify(other) === JSON.stringify(guard)),
      metadata.name,
    )
  }
}

for (const api_url of [HTTPS, HTTP]) {
  for (const query of QUERIES) {
    test(`a cluster would take all of a bundle for ${new URLSearchParams({ api_url, ...query })}`, async (t) => {
      const concrete = parseObjects(await bundleOf(service, { api_url, ...query })) as Any[]
      assert.deepEqual(validateObjects(concrete), [])
      checkGuards(concrete)
      const text = await bundleOf(service, { api_url, ...query, flavor: 'identity' })
      assert.deepEqual(validateObjects(parseObjects(text)), [])
      const { data } = find(concrete, 'ConfigMap', 'cluster-identity')
      const filled = await substituteByFlux(text, data)
      assert.deepEqual(filled, substituteInText(text, data))
      const made = await phoneHome(t, filled)
      assert.deepEqual(made, ofIdentity(concrete))
      const whole = [...filled, ...made]
      assert.deepEqual(validateObjects(whole), [])
      checkGuards(whole)
      const polling = made.filter(({ spec }) => spec.type === 'ExternalService')
      assert.deepEqual(
        polling.map(({ metadata }) => metadata.name),
        ENDPOINTS,
      )
      for (const { spec } of polling) {
        assert.equal(spec.insecure, api_url === HTTP ? true : undefined)
        assert.equal(spec.secretRef.name, query.token_secret ?? 'internal-api-token')
        assert.equal(spec.certSecretRef?.name, query.cert_secret)
      }
    })
  }
}

test('a bundle is read alike by Kubernetes and by these tests', async () => {
  for (const flavor of ['concrete', 'identity']) {
    for (const name of ['my-token', 'on', 'no', '1e3', '0b1', 'true', 'null', '1.5']) {
      const text = await bundleOf(service, { flavor, api_url: HTTPS, token_secret: name, cert_secret: name })
      const objects = await readByKubernetes(text)
      assert.deepEqual(objects, parseObjects(text))
      assert.deepEqual(validateObjects(objects), [])
    }
  }
})

test('a cluster of any name has that name in its identity', async (t) => {
  const line = fc
    .oneof(
      fc.constantFrom(
        ...'yes no on Off y N 1_000 0b11 007 1e3 12:30 .5 . ~ null - ? | > " \' \\ # : 😀'.split(' '),
      ),
      fc.constantFrom(
        ' a ',
        'a: b',
        'a #b',
        '- a',
        "it's",
        '"a"',
        'a\\',
        '<< inputs.x >>',
        '{{ .x }}',
        '%YAML 1.1',
      ),
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.string({ unit: 'binary-ascii', maxLength: 20 }),
    )
    .map((text) => text.replaceAll(/[\p{Cc}\p{Cn}\p{Cs}\p{Zl}\p{Zp}]/gu, '') || 'a')
  const names = fc.sample(line, { numRuns: 300, seed: 7 })
  const clusters = names.map((cluster_name, i) => ({
    id: `c${i}`,
    cluster_name,
    cluster_dns: `c${i}.k8s.example.com`,
    environment: 'dev',
  }))
  const own = await start(t, { fleet: { clusters } })
  const query = { api_url: HTTPS, token_secret: 'a', flux_instance: 'false' }
  const texts = await Promise.all(clusters.map(({ id }) => bundleOf(own, query, id)))
  const found = (await readByKubernetes(texts.join('---\n'))).filter(({ kind }) => kind === 'ConfigMap')
  assert.deepEqual(
    found.map(({ data }) => data),
    clusters.map(({ cluster_name, cluster_dns, environment }) => ({
      CLUSTER_NAME: cluster_name,
      CLUSTER_DNS: cluster_dns,
      ENVIRONMENT: environment,
      INTERNAL_API_URL: HTTPS,
    })),
  )
})

describe('the bundle of any cluster', () => {
  const IDENTITY = { CLUSTER_DNS: 'one.k8s.example.com', INTERNAL_API_URL: HTTPS }

  /** As it is, and in a service of its own with these templates. */
  async function withTemplates(
    t: TestContext,
    files: Readonly<Record<string, string>>,
  ): Promise<TestService> {
    const folder = temporaryFolder(t)
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
    const builtIn = builtInTypes()
    return start(t, { types: builtIn, templates: builtInTemplates(builtIn, folder) })
  }

  test('is refused by a strict Kustomization that lacks a variable', async () => {
    const text = await bundleOf(service, { flavor: 'identity' })
    for (const name of ['CLUSTER_DNS', 'INTERNAL_API_URL'] as const) {
      const { [name]: _, ...less } = IDENTITY
      const { code, stderr } = await run('controllers', ['substitute', JSON.stringify(less)], { input: text })
      assert.notEqual(code, 0)
      assert.match(stderr, new RegExp(`variable not set.*"${name}"`))
    }
  })

  test('does nothing when nobody has filled it in: its providers are refused', async (t) => {
    const made = await phoneHome(t, parseObjects(await bundleOf(service, { flavor: 'identity' })))
    const polling = made.filter(({ spec }) => spec.type === 'ExternalService')
    assert.deepEqual(
      polling.map((provider) => validateObjects([provider]).length > 0),
      ENDPOINTS.map(() => true),
    )
  })

  test('changes in the identity alone when it is filled in', async () => {
    const text = await bundleOf(service, { flavor: 'identity' })
    const filled = await substituteByFlux(text, IDENTITY)
    const POLL_URL = `${HTTPS}/api/v2/flux/clusters/one.k8s.example.com`
    const expected = (parseObjects(text) as Any[]).map((object) =>
      object.metadata.name === 'cluster-identity'
        ? { ...object, spec: { ...object.spec, defaultValues: { POLL_URL } } }
        : object,
    )
    assert.deepEqual(filled, expected)
  })

  test('leaves alone what looks like variables in templates', async (t) => {
    const name = (text: string): string => `\${${text}}`
    const strange = [
      name('HOME'),
      name('CLUSTER_DNS'),
      name('x:=y'),
      name('x'),
      '$CLUSTER_DNS',
      '$$x',
      '$',
    ].join(' ')
    const source = {
      apiVersion: 'fluxcd.controlplane.io/v1',
      kind: 'ResourceSetInputProvider',
      name: 'namespaces',
    }
    const mine = {
      apiVersion: 'fluxcd.controlplane.io/v1',
      kind: 'ResourceSet',
      metadata: { name: 'mine', namespace: 'flux-system' },
      spec: {
        inputsFrom: [source],
        dependsOn: [{ ...source, namespace: 'flux-system', ready: true }],
        resourcesTemplate: `---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata: { a: '${strange}' }\n`,
      },
    }
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mine', namespace: 'flux-system' } }
    const own = await withTemplates(t, {
      'mine.yaml': stringify(mine),
      'map.yaml': stringify({ ...map, data: { a: strange } }),
    })
    const text = await bundleOf(own, { flavor: 'identity' })
    const filled = await substituteByFlux(text, IDENTITY)
    assert.deepEqual(validateObjects(filled), [])
    assert.equal(find(filled, 'ResourceSet', 'mine').spec.resourcesTemplate, mine.spec.resourcesTemplate)
    assert.equal(find(filled, 'ConfigMap', 'mine').data.a, strange)
    const concrete = parseObjects(await bundleOf(own, { api_url: HTTPS }))
    assert.equal(find(concrete, 'ConfigMap', 'mine').data.a, strange)
  })

  async function checkNames(t: TestContext, fill: typeof substituteByFlux): Promise<void> {
    const text = await bundleOf(service, { flavor: 'identity' })
    for (const dns of ['ONE.k8s.Example.com', '42', '1e3', '1.5', '0x1', 'no', 'true', 'null', '007']) {
      const made = await phoneHome(t, await fill(text, { ...IDENTITY, CLUSTER_DNS: dns }))
      const base = `${HTTPS}/api/v2/flux/clusters/${dns}`
      assert.deepEqual(
        made.flatMap(
          ({ spec }) => spec.url ?? spec.defaultValues?.url ?? spec.resources[0].spec.address ?? [],
        ),
        [...ENDPOINTS, 'ack', 'events'].map((endpoint) => `${base}/${endpoint}`),
      )
    }
  }

  test('takes a DNS name that looks like a number for a text', (t) =>
    checkNames(t, async (text, identity) => substituteInText(text, identity)))

  test('takes a DNS name that looks like a number for a text, filled in by Flux, too', (t) =>
    checkNames(t, substituteByFlux))
})

test('the identity that the example for Cluster API gives a cluster makes the providers of its own bundle', async (t) => {
  const example = readFileSync(join(import.meta.dirname, '../../examples/cluster-api/fleet.yaml'), 'utf8')
  const [fleet, identities] = parseObjects(example) as Any[]
  const { body } = await service.call('GET', '/api/v2/flux/clusters', { token: READ_TOKEN })
  const inputs = body.inputs.map((input: object) => ({ ...input, ...fleet.spec.defaultValues }))
  const rendered = (await renderResourceSet(stringify(identities), inputs)) as Any[]
  const own = parseObjects(find(rendered, 'ConfigMap', 'identity-one').data['identity.yaml']) as Any[]
  assert.deepEqual(validateObjects(own), [])
  const shared = parseObjects(await bundleOf(service, { flavor: 'identity' })) as Any[]
  const made = await phoneHome(t, [...own, find(shared, 'ResourceSet', 'phone-home')])
  const concrete = parseObjects(
    await bundleOf(service, { api_url: fleet.spec.defaultValues.api_url }),
  ) as Any[]
  assert.deepEqual(made, ofIdentity(concrete))
  assert.deepEqual(
    find(own, 'ConfigMap', 'cluster-identity'),
    find(concrete, 'ConfigMap', 'cluster-identity'),
  )
})

test('the providers of a bundle poll what its templates render', async (t) => {
  const own = await start(t, { fleet: smallFleet() })
  const objects = parseObjects(await bundleOf(own, { api_url: own.url })) as Any[]
  const sets = objects.filter(({ kind, spec }) => kind === 'ResourceSet' && spec.inputsFrom)
  for (const { metadata, spec } of providersIn(objects).filter(({ spec }) => spec.url)) {
    const { status, body } = await own.call('GET', spec.url.slice(own.url.length), { token: READ_TOKEN })
    assert.equal(status, 200)
    const fed = sets.filter((set) => set.spec.inputsFrom[0].name === metadata.name)
    const texts = fed.map((set) => stringify(set, { version: '1.1' }))
    const made = (await Promise.all(texts.map((text) => renderResourceSet(text, body.inputs)))).flat()
    assert.deepEqual(validateObjects(made), [])
    assert.ok(made.length >= body.inputs.length, metadata.name)
  }
})
