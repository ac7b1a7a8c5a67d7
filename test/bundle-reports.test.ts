// What a bundle brings so that a cluster answers: marks of what is applied, the report that is made of them, and events.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { start } from './every-store.ts'
import { parseObjects } from './flux/tools.ts'
import { builtInTemplates, builtInTypes, READ_TOKEN, temporaryFolder } from './service.ts'

const HERE = 'https://fleet.example.com'
const BASE = `${HERE}/api/v2/flux/clusters/one.k8s.example.com`
const FLAVORS = ['concrete', 'identity'] as const
const DIGEST = '<< get inputs "answer_digest" >>'

// biome-ignore lint/suspicious/noExplicitAny: tests look into manifests freely
type Any = any
type Query = Readonly<Record<string, string>>

interface Bundle {
  readonly text: string
  readonly objects: readonly Any[]
  readonly warning: string | undefined
}

/** The bundle of a service that has these templates beside the built-in ones. */
async function bundleOf(
  t: TestContext,
  query: Query = {},
  files: Readonly<Record<string, string>> = {},
): Promise<Bundle> {
  const folder = temporaryFolder(t)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const types = builtInTypes()
  const service = await start(t, { types, templates: builtInTemplates(types, folder) })
  const url = `/clusters/one/bootstrap?${new URLSearchParams({ api_url: HERE, ...query })}`
  const { status, text, headers } = await service.call('GET', url, { token: READ_TOKEN })
  assert.equal(status, 200, text)
  return { text, objects: parseObjects(text) as Any[], warning: headers.warning }
}

function find(objects: readonly Any[], kind: string, name: string): Any {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name)
  return found ?? assert.fail(`there is no ${kind} ${name}`)
}

function names(objects: readonly Any[]): string[] {
  return objects.map(({ kind, metadata }) => `${kind}/${metadata.name}`)
}

/** What the marks in a bundle say, by the ResourceSet that makes them. */
function marksIn(objects: readonly Any[]): Record<string, string> {
  const sets = objects.filter(({ kind, spec }) => kind === 'ResourceSet' && spec.inputsFrom)
  return Object.fromEntries(
    sets.flatMap(({ metadata, spec }) =>
      (spec.resources ?? [])
        .filter(({ kind }: Any) => kind === 'ResourceSet')
        .map((mark: Any) => [metadata.name, mark.spec.resources[0].spec.defaultValues.ack]),
    ),
  )
}

function resourceSet(name: string, { provider = 'namespaces', more = '' } = {}): string {
  const source = `apiVersion: fluxcd.controlplane.io/v1, kind: ResourceSetInputProvider, name: ${provider}`
  return `apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: { name: ${name}, namespace: flux-system }
spec:
  inputsFrom: [{ ${source} }]
  dependsOn: [{ ${source}, ready: true }]
  resourcesTemplate: "# mine"
${more}`
}

describe('marks', () => {
  test('are in every ResourceSet of a type, and wait for it', async (t) => {
    for (const flavor of FLAVORS) {
      const { objects, warning } = await bundleOf(t, { flavor })
      assert.equal(warning, undefined)
      assert.deepEqual(marksIn(objects), {
        namespaces: `namespaces=${DIGEST}`,
        'platform-components': `platform-components=${DIGEST}`,
        clusterrolebindings: `rolebindings=${DIGEST}:1/2`,
        rolebindings: `rolebindings=${DIGEST}:2/2`,
      })
      const [mark, ...others] = find(objects, 'ResourceSet', 'clusterrolebindings').spec.resources
      assert.deepEqual(others, [])
      const name = `ack-clusterrolebindings-${DIGEST}`
      const api = 'fluxcd.controlplane.io/v1'
      const main = { apiVersion: api, kind: 'ResourceSet', name: 'clusterrolebindings' }
      assert.deepEqual(mark, {
        apiVersion: api,
        kind: 'ResourceSet',
        metadata: {
          name,
          namespace: 'flux-system',
          annotations: {
            'fluxcd.controlplane.io/reconcile':
              '<< ternary "enabled" "disabled" (hasKey inputs "answer_digest") >>',
          },
        },
        spec: {
          dependsOn: [
            {
              ...main,
              namespace: 'flux-system',
              ready: true,
              readyExpr: `status.conditions.filter(c, c.type == 'Ready').all(c, c.status == 'True' && c.observedGeneration == metadata.generation) && status.inventory.entries.exists(e, e.id.contains('_${name}_'))`,
            },
          ],
          resources: [
            {
              apiVersion: api,
              kind: 'ResourceSetInputProvider',
              metadata: { name, namespace: 'flux-system', labels: { 'flux-resourceset/ack': 'true' } },
              spec: { type: 'Static', defaultValues: { ack: `rolebindings=${DIGEST}:1/2` } },
            },
          ],
        },
      })
    }
  })

  test('are in templates of your own too, each a part of what the type has', async (t) => {
    const { objects, warning } = await bundleOf(
      t,
      {},
      {
        'mine.yaml': `${resourceSet('mine')}---\n${resourceSet('more')}`,
        'rolebindings.yaml': resourceSet('all', { provider: 'rolebindings' }),
      },
    )
    assert.equal(warning, undefined)
    assert.deepEqual(marksIn(objects), {
      mine: `namespaces=${DIGEST}:1/3`,
      more: `namespaces=${DIGEST}:2/3`,
      namespaces: `namespaces=${DIGEST}:3/3`,
      'platform-components': `platform-components=${DIGEST}`,
      all: `rolebindings=${DIGEST}`,
    })
  })

  test('come after the resources that a template has, which stay as they are', async (t) => {
    const resources =
      '  resources:\n    # Mine.\n    - { apiVersion: v1, kind: ConfigMap, metadata: { name: a }, data: { mode: "0444", "on": "yes" } }\n'
    const { text, objects } = await bundleOf(t, {}, { 'mine.yaml': resourceSet('mine', { more: resources }) })
    assert.ok(text.includes(resources), text)
    const [own, mark] = find(objects, 'ResourceSet', 'mine').spec.resources
    assert.deepEqual(own.data, { mode: '0444', on: 'yes' })
    assert.equal(mark.metadata.name, `ack-mine-${DIGEST}`)
  })

  test('have names that are label values, whatever their ResourceSet is called', async (t) => {
    const sets = ['a.b', 'x'.repeat(43), 'x'.repeat(42), 'on']
    const { objects } = await bundleOf(
      t,
      {},
      { 'mine.yaml': sets.map((name) => resourceSet(JSON.stringify(name))).join('---\n') },
    )
    const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16)
    const named = sets.map((name) => find(objects, 'ResourceSet', name).spec.resources[0].metadata.name)
    const short = named.map((name: string) => name.replace(DIGEST, '0'.repeat(16)))
    assert.deepEqual(
      short.map((name) => name.slice(4, -17)),
      [hash('a.b'), hash('x'.repeat(43)), 'x'.repeat(42), 'on'],
    )
    for (const name of short) assert.ok(name.length <= 63, name)
  })

  const OBSTACLES: Readonly<Record<string, string>> = {
    '  wait: true\n': 'it has wait: true',
    '  serviceAccountName: tenant\n': 'its service account may not make ResourceSets',
    '  inputStrategy: { name: Permute }\n': 'it permutes its inputs',
    '  steps: []\n': 'it has steps',
    '  commonMetadata: { annotations: { fluxcd.controlplane.io/prune: disabled } }\n':
      'it keeps what it no longer renders',
  }

  for (const [more, why] of Object.entries(OBSTACLES)) {
    test(`are in no ResourceSet of a type when one cannot have any: ${why}`, async (t) => {
      const files = { 'mine.yaml': resourceSet('mine', { more }) }
      const { text, objects, warning } = await bundleOf(t, {}, files)
      assert.deepEqual(Object.keys(marksIn(objects)), [
        'platform-components',
        'clusterrolebindings',
        'rolebindings',
      ])
      const says = `Clusters cannot report namespaces: ResourceSet "mine", ${why}.`
      assert.ok(text.includes(`\n# ${says}\n`), text)
      assert.equal(warning, `299 flux-resourceset "${says.replaceAll('"', '\\"')}"`)
      const off = await bundleOf(t, { ack: 'off' }, files)
      assert.equal(off.warning, undefined)
    })
  }

  test('are in no ResourceSet that has aliases in their place, or that reads two types', async (t) => {
    const [head, spec] = resourceSet('mine')
      .split(/^spec:\n/m)
      .map((part) => part.trimEnd())
    const aliased = `${head}\nx-spec: &spec\n${spec}\nspec: *spec\n`
    const two = resourceSet('two', { provider: 'namespaces' }).replaceAll(
      /\[(\{.*?)name: namespaces(.*?\})\]/g,
      '[$1name: namespaces$2, $1name: rolebindings$2]',
    )
    const part = 'x-all: &all [{ apiVersion: v1, kind: ConfigMap, metadata: { name: "0444" } }]\n'
    const more = part + resourceSet('more', { more: '  resources: *all\n' })
    const files = { 'a.yaml': aliased, 'b.yaml': two, 'c.yaml': more }
    const { objects, warning } = await bundleOf(t, {}, files)
    assert.deepEqual(Object.keys(marksIn(objects)), ['platform-components'])
    const [{ metadata: kept }] = find(objects, 'ResourceSet', 'more').spec.resources
    assert.deepEqual(kept, { name: '0444' })
    for (const says of [
      'namespaces: ResourceSet \\"mine\\", its spec has aliases.',
      'namespaces: ResourceSet \\"more\\", its spec has aliases.',
      'namespaces: ResourceSet \\"two\\", it reads several providers.',
      'rolebindings: ResourceSet \\"two\\", it reads several providers.',
    ])
      assert.ok(warning?.includes(`Clusters cannot report ${says}`), says)
  })

  test('of components are asked for by the providers', async (t) => {
    for (const [ack, values] of [
      ['components', { ack: 'components' }],
      ['types', undefined],
      ['off', undefined],
    ] as const) {
      const { objects } = await bundleOf(t, { ack })
      for (const name of ['namespaces', 'platform-components', 'rolebindings'])
        assert.deepEqual(find(objects, 'ResourceSetInputProvider', name).spec.defaultValues, values)
      assert.equal(Object.keys(marksIn(objects)).length, ack === 'off' ? 0 : 4)
    }
  })
})

describe('a report', () => {
  test('begins with its version and with how often it comes', async (t) => {
    for (const [interval, seconds] of [
      ['30s', 30],
      ['5m', 300],
      ['1h30m', 5400],
    ] as const) {
      const { objects } = await bundleOf(t, { interval })
      const { metadata, spec } = find(objects, 'ResourceSetInputProvider', 'fleet-ack')
      assert.deepEqual(metadata.labels, { 'flux-resourceset/ack': 'true' })
      const defaultValues = { ack: `v=1&every=${seconds}`, url: `${BASE}/ack` }
      assert.deepEqual(spec, { type: 'Static', defaultValues })
      const template = find(objects, 'ResourceSet', 'fleet-ack').spec.resourcesTemplate
      assert.match(template, new RegExp(`reconcileEvery: "?${interval}"?\\n`))
    }
  })

  test('is made of all marks, once its own provider is there', async (t) => {
    for (const flavor of FLAVORS) {
      const { spec } = find((await bundleOf(t, { flavor })).objects, 'ResourceSet', 'fleet-ack')
      const source = { apiVersion: 'fluxcd.controlplane.io/v1', kind: 'ResourceSetInputProvider' }
      assert.deepEqual(spec.inputStrategy, { name: 'Permute' })
      assert.deepEqual(spec.inputsFrom, [
        { ...source, selector: { matchLabels: { 'flux-resourceset/ack': 'true' } } },
      ])
      assert.deepEqual(spec.dependsOn, [
        { ...source, name: 'fleet-ack', namespace: 'flux-system', ready: true },
      ])
    }
  })

  test('is not there when nothing is to be reported, and templates are as they are written', async (t) => {
    for (const flavor of FLAVORS) {
      const { text, objects } = await bundleOf(t, { flavor, ack: 'off', events: 'off' })
      assert.deepEqual(
        names(objects).filter((name) => /fleet-/.test(name)),
        [],
      )
      assert.doesNotMatch(text, /fleet-|answer_digest|ack: components|event\.toolkit\.fluxcd\.io\/endpoint/)
    }
  })
})

describe('events', () => {
  test('of Flux go to the service with the token, those of the operator only when it fails', async (t) => {
    const { objects } = await bundleOf(t, { token_secret: 'mine', cert_secret: 'ca' })
    const [provider, alert, ...others] = find(objects, 'ResourceSet', 'fleet-events').spec.resources
    assert.deepEqual(others, [])
    assert.deepEqual(provider.spec, {
      type: 'generic',
      address: `${BASE}/events`,
      secretRef: { name: 'mine' },
      certSecretRef: { name: 'ca' },
    })
    const kinds = (spec: Any): string[] => spec.eventSources.map(({ kind }: Any) => kind)
    assert.deepEqual(
      [alert.spec.eventSeverity, kinds(alert.spec)],
      ['info', ['HelmRelease', 'Kustomization', 'HelmChart', 'HelmRepository', 'OCIRepository']],
    )
    const [{ spec }] = find(objects, 'ResourceSet', 'fleet-events-operator').spec.resources
    assert.deepEqual([spec.eventSeverity, kinds(spec)], ['error', ['ResourceSet', 'FluxInstance']])
    for (const { providerRef, eventSources } of [alert.spec, spec]) {
      assert.deepEqual(providerRef, { name: provider.metadata.name })
      for (const { name } of eventSources) assert.equal(name, '*')
    }
  })

  test('wait for the kinds that they need, so that a bundle can be applied before Flux is there', async (t) => {
    const { objects } = await bundleOf(t)
    const waitsFor = (name: string): string[] =>
      find(objects, 'ResourceSet', name).spec.dependsOn.map(({ name }: Any) => name)
    const alerts = 'alerts.notification.toolkit.fluxcd.io'
    assert.deepEqual(waitsFor('fleet-events'), ['providers.notification.toolkit.fluxcd.io', alerts])
    assert.deepEqual(waitsFor('fleet-events-operator'), [alerts])
    assert.ok(!objects.some(({ kind }) => kind === 'Provider' || kind === 'Alert'))
  })

  test('of a ResourceSet name the type that it applies, whatever the ResourceSet is called', async (t) => {
    const { objects } = await bundleOf(t, {}, { 'mine.yaml': resourceSet('mine') })
    const told = ['mine', 'namespaces', 'clusterrolebindings', 'rolebindings'].map(
      (name) => find(objects, 'ResourceSet', name).metadata.annotations['event.toolkit.fluxcd.io/endpoint'],
    )
    assert.deepEqual(told, ['namespaces', 'namespaces', 'rolebindings', 'rolebindings'])
  })

  test('are sent or not, whatever is reported', async (t) => {
    for (const [query, expected] of [
      [{ events: 'off' }, ['ResourceSetInputProvider/fleet-ack', 'ResourceSet/fleet-ack']],
      [{ ack: 'off' }, ['ResourceSet/fleet-events', 'ResourceSet/fleet-events-operator']],
    ] as const) {
      const { objects } = await bundleOf(t, query)
      assert.deepEqual(
        names(objects).filter((name) => /fleet-/.test(name)),
        expected,
      )
    }
  })
})

test('the names of what answers are taken: a template that has one is refused', (t) => {
  const types = builtInTypes()
  for (const [kind, apiVersion, name] of [
    ['ResourceSet', 'fluxcd.controlplane.io/v1', 'fleet-ack'],
    ['ResourceSet', 'fluxcd.controlplane.io/v1', 'fleet-events'],
    ['ResourceSetInputProvider', 'fluxcd.controlplane.io/v1', 'fleet-ack'],
    ['Provider', 'notification.toolkit.fluxcd.io/v1beta3', 'fleet-events'],
    ['Alert', 'notification.toolkit.fluxcd.io/v1beta3', 'fleet-events-operator'],
  ]) {
    const folder = temporaryFolder(t)
    const text = `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: { name: ${name}, namespace: flux-system }\n`
    writeFileSync(join(folder, 'mine.yaml'), text)
    assert.throws(() => builtInTemplates(types, folder), /is in every bundle already/, name)
  }
})
