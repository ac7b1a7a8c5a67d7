// What a cluster reports, made by the real Flux Operator from a bundle: marks of inputs, and URLs of marks.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { stringify } from 'yaml'
import { READ_TOKEN, startService, type TestService, temporaryFolder } from '../service.ts'
import { validateObjects } from './schemas.ts'
import { parseObjects, renderResourceSet, run } from './tools.ts'

const ANSWER = '0123456789abcdef'
/** Digits alone, which YAML would take for a number. */
const NUMBER = '1234567890123456'
const HTTPS = 'https://fleet.example.com'
const REPORT = `${HTTPS}/api/v2/flux/clusters/one.k8s.example.com/ack`
const DNS_LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/

// biome-ignore lint/suspicious/noExplicitAny: tests look into objects freely
type Any = any

let service: TestService
before(async () => {
  service = await startService()
})
after(() => service.stop())

async function bundleOf(query: Readonly<Record<string, string>> = {}): Promise<Any[]> {
  const url = `/clusters/one/bootstrap?${new URLSearchParams({ api_url: HTTPS, ...query })}`
  const { status, text } = await service.call('GET', url, { token: READ_TOKEN })
  assert.equal(status, 200, text)
  return parseObjects(text)
}

function find(objects: readonly Any[], kind: string, name: string): Any {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name)
  return found ?? assert.fail(`there is no ${kind} ${name}`)
}

function toYaml(object: Any): string {
  return stringify(object, { version: '1.1' })
}

/** What a ResourceSet of a bundle makes of inputs as its provider passes them on, with its default values. */
async function apply(bundle: readonly Any[], name: string, inputs: readonly object[]): Promise<Any[]> {
  const set = find(bundle, 'ResourceSet', name)
  const provider = find(bundle, 'ResourceSetInputProvider', set.spec.inputsFrom[0].name)
  return renderResourceSet(
    toYaml(set),
    inputs.map((input) => ({ ...provider.spec.defaultValues, ...input })),
  )
}

function isMark({ kind }: Any): boolean {
  return kind === 'ResourceSet'
}

/** What each of these ResourceSets makes when all that it waits for is ready: a provider. */
async function carryOut(marks: readonly Any[]): Promise<Any[]> {
  const made = await Promise.all(marks.map((mark) => renderResourceSet(toYaml(mark), [])))
  return made.flat()
}

/** The URLs that a cluster with these marks polls, by the name of the provider. */
async function report(
  t: TestContext,
  bundle: readonly Any[],
  marks: readonly Any[],
): Promise<Record<string, string>> {
  const file = join(temporaryFolder(t), 'marks.yaml')
  const floor = find(bundle, 'ResourceSetInputProvider', 'fleet-ack')
  writeFileSync(file, [floor, ...marks].map(toYaml).join('---\n'))
  const args = ['build', 'resourceset', '--filename', '-', '--inputs-from-provider', file]
  const input = toYaml(find(bundle, 'ResourceSet', 'fleet-ack'))
  const { code, stdout, stderr } = await run('flux-operator', args, { input })
  assert.equal(code, 0, stderr)
  const objects = parseObjects(stdout) as Any[]
  assert.deepEqual(validateObjects(objects), [])
  return Object.fromEntries(objects.map(({ metadata, spec }) => [metadata.name, spec.url]))
}

function component(id: string, more: object = {}): Any {
  return {
    id,
    enabled: true,
    component_path: 'app',
    component_version: '1.2.3',
    source: { oci_url: 'oci://registry.example.com/app', oci_tag: 'v1' },
    cluster_env_enabled: false,
    depends_on: [],
    patches: {},
    cluster: { name: 'one', dns: 'one.k8s.example.com', environment: 'dev' },
    digest: createHash('sha256').update(id).digest('hex').slice(0, 16),
    answer_digest: ANSWER,
    ...more,
  }
}

function namespace(id: string, more: object = { digest: NUMBER, answer_digest: NUMBER }): Any {
  return { id, labels: {}, annotations: {}, ...more }
}

/** The mark of a component that is ready, as it is in the cluster. */
function readyMark(id: string, digest: string): Any {
  return {
    apiVersion: 'fluxcd.controlplane.io/v1',
    kind: 'ResourceSetInputProvider',
    metadata: {
      name: `ack-${createHash('sha256').update(`${id} ${digest}`).digest('hex').slice(0, 16)}`,
      namespace: 'flux-system',
      labels: { 'flux-resourceset/ack': 'true' },
    },
    spec: { type: 'Static', defaultValues: { ready: `${id}:${digest}` } },
  }
}

describe('a mark', () => {
  test('is made once for an answer, however many inputs it has', async () => {
    const bundle = await bundleOf()
    const made = await apply(bundle, 'namespaces', [namespace('a'), namespace('b')])
    assert.deepEqual(
      made.map(({ kind, metadata }) => `${kind}/${metadata.name}`),
      [`ResourceSet/ack-namespaces-${NUMBER}`, 'Namespace/a', 'Namespace/b'],
    )
    assert.deepEqual(validateObjects(made), [])
    const [mark] = await carryOut(made.filter(isMark))
    assert.deepEqual(validateObjects([mark]), [])
    assert.deepEqual(mark.metadata.labels['flux-resourceset/ack'], 'true')
    assert.deepEqual(mark.spec, { type: 'Static', defaultValues: { ack: `namespaces=${NUMBER}` } })
  })

  test('is made by both ResourceSets of role bindings, also by the one that has none', async () => {
    const bundle = await bundleOf()
    const inputs = [{ id: 'a', role: 'view', subjects: [], digest: NUMBER, answer_digest: ANSWER }]
    const sets = ['clusterrolebindings', 'rolebindings']
    const made = await Promise.all(sets.map((name) => apply(bundle, name, inputs)))
    assert.deepEqual(
      made.map((objects) => objects.map(({ kind }) => kind)),
      [['ResourceSet', 'ClusterRoleBinding'], ['ResourceSet']],
    )
    const marks = await carryOut(made.flat().filter(isMark))
    assert.deepEqual(
      marks.map(({ spec }) => spec.defaultValues.ack),
      [`rolebindings=${ANSWER}:1/2`, `rolebindings=${ANSWER}:2/2`],
    )
  })

  test('of a component waits for the whole ResourceSet first, then for what installs the component', async () => {
    const bundle = await bundleOf()
    const chart = { source: { oci_url: 'https://charts.example.com', oci_tag: '' } }
    const inputs = [
      component('app'),
      component('chart', chart),
      component('registry', { delivery: 'helm' }),
      component('off', { enabled: false }),
    ]
    const made = await apply(bundle, 'platform-components', inputs)
    assert.deepEqual(validateObjects(made), [])
    const [answer, ...marks] = made.filter(isMark)
    assert.equal(answer.metadata.name, `ack-platform-components-${ANSWER}`)
    const ready = (await carryOut(marks)).map(({ spec }) => spec.defaultValues.ready)
    const expected = inputs.slice(0, 3).map(({ id, digest }) => `${id}:${digest}`)
    assert.deepEqual(ready, expected)
    const waitsFor = marks.map(({ spec }) => spec.dependsOn)
    for (const [first, second, ...others] of waitsFor) {
      assert.deepEqual([first.kind, first.name, first.ready], ['ResourceSet', 'platform-components', true])
      assert.equal(second.ready, true)
      assert.deepEqual(others, [])
      find(made, second.kind, second.name)
    }
    assert.deepEqual(
      waitsFor.map(([, { kind, readyExpr }]) => [kind, /contains\('@v1@'\)$/.test(readyExpr)]),
      [
        ['Kustomization', true],
        ['HelmRelease', false],
        ['HelmRelease', false],
      ],
    )
  })

  test('waits until its ResourceSet says that it made it: a forgotten one never speaks', async () => {
    const bundle = await bundleOf()
    const components = await apply(bundle, 'platform-components', [component('app')])
    const namespaces = await apply(bundle, 'namespaces', [namespace('a')])
    for (const mark of [...components, ...namespaces].filter(isMark))
      assert.match(
        mark.spec.dependsOn[0].readyExpr,
        new RegExp(`contains\\('_${mark.metadata.name}_'\\)\\)$`),
      )
  })

  test('of a component has another name with another digest, so that an old one does not stay', async () => {
    const bundle = await bundleOf()
    const name = async (more: object): Promise<string> => {
      const made = await apply(bundle, 'platform-components', [component('app', more)])
      return made.filter(isMark)[1].metadata.name
    }
    const names = await Promise.all([{}, { digest: NUMBER }, {}].map(name))
    assert.equal(names[0], names[2])
    assert.notEqual(names[0], names[1])
    assert.equal(names[0], readyMark('app', component('app').digest).metadata.name)
  })

  test('of a component is not made where only answers are reported', async () => {
    const bundle = await bundleOf({ ack: 'types' })
    const made = await apply(bundle, 'platform-components', [component('app')])
    assert.deepEqual(
      made.filter(isMark).map(({ metadata }) => metadata.name),
      [`ack-platform-components-${ANSWER}`],
    )
  })

  test('is not made of what a service without digests sends, and everything else is', async () => {
    const bundle = await bundleOf()
    const old = { digest: undefined, answer_digest: undefined }
    const made = [
      ...(await apply(bundle, 'namespaces', [namespace('a', {})])),
      ...(await apply(bundle, 'platform-components', [component('app', old)])),
      ...(await apply(bundle, 'clusterrolebindings', [{ id: 'a', role: 'view', subjects: [] }])),
    ]
    assert.deepEqual(
      made.map(({ kind }) => kind),
      ['Namespace', 'OCIRepository', 'Kustomization', 'ClusterRoleBinding'],
    )
    assert.deepEqual(validateObjects(made), [])
  })

  test('is not made where nothing is reported', async () => {
    const bundle = await bundleOf({ ack: 'off' })
    const made = [
      ...(await apply(bundle, 'namespaces', [namespace('a')])),
      ...(await apply(bundle, 'platform-components', [component('app')])),
    ]
    assert.deepEqual(made.filter(isMark), [])
  })

  test('keeps a tag in its text, whatever is in it', async () => {
    const bundle = await bundleOf()
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: fc.constantFrom(...`'"\\@)\n |&<>{}v1`), maxLength: 12 }),
        async (tag) => {
          const source = { oci_url: 'oci://registry.example.com/app', oci_tag: tag }
          const made = await apply(bundle, 'platform-components', [component('app', { source })])
          const [, , mark] = made.filter(({ kind }) => kind !== 'OCIRepository')
          const { readyExpr } = mark.spec.dependsOn[1]
          const [, inside] = /contains\('@([\s\S]*)@'\)$/.exec(readyExpr) ?? assert.fail(readyExpr)
          assert.equal(inside, tag.replaceAll(/['\\]/g, ''))
        },
      ),
      { numRuns: 15, seed: 7 },
    )
  })
})

describe('the source of a component', () => {
  /** The name of the source of the component `app` of these fields. */
  async function nameOf(more: object): Promise<string> {
    const made = await apply(await bundleOf(), 'platform-components', [component('app', more)])
    return made.find(({ kind }) => /Repository$/.test(kind)).metadata.name
  }

  const source = (oci_url: string, oci_tag = 'v1'): object => ({ source: { oci_url, oci_tag } })

  test('of a Kustomization is another one at another URL, and the same one at another tag', async () => {
    const [first, tag, version, url] = await Promise.all([
      nameOf(source('oci://a')),
      nameOf(source('oci://a', 'v2')),
      nameOf({ ...source('oci://a'), component_version: '2.0.0', component_path: 'b' }),
      nameOf(source('oci://b')),
    ])
    assert.deepEqual([tag, version], [first, first])
    assert.notEqual(url, first)
    assert.match(first, /^app-[0-9a-f]{10}$/)
  })

  test('of a chart in a registry is another one at another URL, path or version', async () => {
    const helm = { ...source('oci://a'), delivery: 'helm' }
    const names = await Promise.all([
      nameOf(helm),
      nameOf({ ...helm, ...source('oci://b') }),
      nameOf({ ...helm, component_path: 'b' }),
      nameOf({ ...helm, component_version: '2.0.0' }),
    ])
    assert.equal(new Set(names).size, 4)
  })

  test('of a chart in a repository is another one at another URL alone: the release says path and version', async () => {
    const [first, version, url] = await Promise.all([
      nameOf(source('https://a')),
      nameOf({ ...source('https://a'), component_version: '2.0.0', component_path: 'b' }),
      nameOf(source('https://b')),
    ])
    assert.equal(version, first)
    assert.notEqual(url, first)
  })
})

describe('a report', () => {
  test('is one URL of all marks, in one order', async (t) => {
    const bundle = await bundleOf()
    const inputs = [component('web'), component('db')]
    const made = [
      ...(await apply(bundle, 'platform-components', inputs)),
      ...(await apply(bundle, 'namespaces', [namespace('a')])),
    ]
    const marks = await carryOut(made.filter(isMark))
    const [web, db] = inputs.map(({ digest }) => digest)
    const url = `${REPORT}?namespaces=${NUMBER}&platform-components=${ANSWER}&v=1&every=300&ready=db:${db}&ready=web:${web}`
    assert.deepEqual(await report(t, bundle, marks), { 'fleet-ack-report': url })
    assert.deepEqual(await report(t, bundle, marks.toReversed()), { 'fleet-ack-report': url })
  })

  test('comes from a cluster that has nothing', async (t) => {
    assert.deepEqual(await report(t, await bundleOf(), []), { 'fleet-ack-report': `${REPORT}?v=1&every=300` })
  })

  test('is polled as the other providers are: how often, with which Secrets, over which protocol', async (t) => {
    const query = { api_url: 'http://10.0.0.1', interval: '90s', token_secret: 'mine', cert_secret: 'ca' }
    const bundle = await bundleOf(query)
    const file = join(temporaryFolder(t), 'floor.yaml')
    writeFileSync(file, toYaml(find(bundle, 'ResourceSetInputProvider', 'fleet-ack')))
    const args = ['build', 'resourceset', '--filename', '-', '--inputs-from-provider', file]
    const input = toYaml(find(bundle, 'ResourceSet', 'fleet-ack'))
    const [made] = parseObjects((await run('flux-operator', args, { input })).stdout) as Any[]
    const { metadata, spec } = find(bundle, 'ResourceSetInputProvider', 'namespaces')
    assert.deepEqual(made.metadata.annotations, metadata.annotations)
    const { defaultValues: _, ...polled } = spec
    const url = 'http://10.0.0.1/api/v2/flux/clusters/one.k8s.example.com/ack?v=1&every=90'
    assert.deepEqual(made.spec, { ...polled, url })
  })

  for (const [components, reports] of [
    [20, 1],
    [150, 1],
    [1000, 16],
    [5000, 256],
  ] as const) {
    test(`of ${components} components is ${reports} of at most 7,500 characters, each component in one`, async (t) => {
      const bundle = await bundleOf()
      const ids = Array.from({ length: components }, (_, i) => `component-${String(i).padStart(5, '0')}`)
      const answer = readyMark('x', ANSWER)
      const types = { ...answer, spec: { type: 'Static', defaultValues: { ack: `namespaces=${ANSWER}` } } }
      const marks = ids.map((id) => readyMark(id, ANSWER))
      const urls = Object.entries(await report(t, bundle, [types, ...marks]))
      assert.equal(urls.length, reports)
      const found = urls.flatMap(([name, url]) => {
        assert.ok(url.length <= 7500, `${url.length} characters`)
        const { searchParams } = new URL(url)
        assert.deepEqual(
          [searchParams.getAll('v'), searchParams.getAll('every'), searchParams.getAll('namespaces')],
          [['1'], ['300'], [ANSWER]],
        )
        const part = searchParams.get('part') ?? ''
        assert.equal(name, part === '' ? 'fleet-ack-report' : `fleet-ack-report-${part}`)
        assert.equal(16 ** part.length, reports)
        const ready = searchParams.getAll('ready').map((text) => text.split(':')[0] as string)
        for (const id of ready) assert.ok(hashOf(id).startsWith(part), id)
        return ready
      })
      assert.deepEqual(found.sort(), ids)
    })
  }

  test('of components of any name has each of them as it is', async (t) => {
    const bundle = await bundleOf()
    const label = fc
      .string({ unit: fc.constantFrom(...'abz019-'), minLength: 1, maxLength: 63 })
      .filter((id) => DNS_LABEL.test(id))
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(label, { minLength: 1, maxLength: 30 }), async (ids) => {
        const inputs = ids.map((id) => component(id))
        const made = await apply(bundle, 'platform-components', inputs)
        assert.deepEqual(validateObjects(made), [])
        const marks = await carryOut(made.filter(isMark))
        const [url = ''] = Object.values(await report(t, bundle, marks))
        const ready = new URL(url).searchParams.getAll('ready')
        assert.deepEqual(ready, inputs.map(({ id, digest }) => `${id}:${digest}`).sort())
      }),
      { numRuns: 4, seed: 7 },
    )
  })

  function hashOf(id: string): string {
    return createHash('sha256').update(id).digest('hex')
  }
})

test('a cluster would take what sends events, with the kinds that the operator adds', async () => {
  const bundle = await bundleOf({ cert_secret: 'ca' })
  const sets = ['fleet-events', 'fleet-events-operator'].map((name) => find(bundle, 'ResourceSet', name))
  const objects = await carryOut(sets)
  assert.deepEqual(
    objects.map(({ kind, metadata }) => `${kind}/${metadata.name}`),
    ['Provider/fleet-events', 'Alert/fleet-events', 'Alert/fleet-events-operator'],
  )
  assert.deepEqual(validateObjects(objects), [])
})
