// What a document needs on its cluster: warnings of what a write leaves without it, exact and no more than that.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import type { Json, JsonObject } from '../src/base/json.ts'
import type { Command } from '../src/domain/commands/command.ts'
import type { View } from '../src/domain/documents/view.ts'
import type { Document } from '../src/domain/types/resource-type.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { start } from './every-store.ts'
import { AUTHOR, load, RUNS } from './random-fleet.ts'
import { builtInTypes, type ServiceOptions, temporaryFolder } from './service.ts'

const HTTPS = { oci_url: 'https://charts.example.com' }
const NOT_ASSIGNED = 'which is not assigned: assign it, unless the cluster has it from elsewhere'

function component(id: string, more: JsonObject = {}): JsonObject {
  const source = { component_path: id, component_version: '1', oci_tag: 'v1' }
  return { id, ...source, oci_url: 'oci://registry.example.com/components', ...more }
}

function binding(id: string, namespace?: string): JsonObject {
  return { id, role: 'view', subjects: [], ...(namespace !== undefined && { namespace }) }
}

function cluster(id: string, more: JsonObject = {}): JsonObject {
  return { id, cluster_name: id, cluster_dns: `${id}.k8s.example.com`, environment: 'dev', ...more }
}

function refs(...ids: string[]): JsonObject[] {
  return ids.map((id) => ({ id }))
}

function fleet() {
  return {
    platform_components: [
      component('chart', { ...HTTPS, namespace: 'team' }),
      component('podinfo', HTTPS),
      component('manifests'),
      component('placed', { namespace: 'team' }),
    ],
    namespaces: refs('team', 'other', 'podinfo', 'manifests', 'kube-system'),
    rolebindings: [
      binding('everywhere'),
      binding('in-team', 'team'),
      binding('stray', 'nope'),
      binding('system', 'kube-system'),
    ],
    clusters: [
      cluster('c1', {
        platform_components: refs('chart', 'podinfo', 'manifests', 'placed'),
        namespaces: refs('team', 'other', 'podinfo', 'manifests', 'kube-system'),
        rolebindings: refs('everywhere', 'in-team', 'system'),
      }),
      cluster('c2'),
      cluster('c3', { rolebindings: refs('stray') }),
    ],
  }
}

type Warned = (method: string, path: string, body?: Json) => Promise<string[]>

/** The warnings of a write; its preview must tell the same. */
async function startWarned(t: TestContext, options: ServiceOptions = {}): Promise<Warned> {
  const service = await start(t, { fleet: fleet(), ...options })
  return async (method, path, body) => {
    const preview = await service.call(method, `${path}${path.includes('?') ? '&' : '?'}dry_run=true`, {
      body,
    })
    const done = await service.call(method, path, { body })
    assert.ok(done.status < 300, done.text)
    const header = [...String(done.headers.warning ?? '').matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g)]
    const told: string[] =
      done.body.warnings ?? header.map(([, text = '']) => text.replaceAll(/\\(.)/g, '$1'))
    const unconfirmed = (warning: string): boolean => warning.startsWith('needs confirm=removals: ')
    assert.deepEqual(
      preview.body.warnings.filter((warning: string) => !unconfirmed(warning)),
      told,
    )
    return told.filter((warning) => warning.includes(' needs '))
  }
}

const STRAY = `role binding "stray" needs namespace "nope", ${NOT_ASSIGNED}`

describe('a role binding into a namespace', () => {
  test('that its cluster lacks is told of when it is assigned', async (t) => {
    const warned = await startWarned(t)
    assert.deepEqual(await warned('PUT', '/clusters/c1/rolebindings/stray', {}), [`cluster "c1": ${STRAY}`])
  })

  test('is told of by every way of assigning, once for all clusters', async (t) => {
    const body = {
      operations: [{ op: 'assign', type: 'rolebindings', ref: { id: 'stray' }, selector: 'id!=c3' }],
    }
    const warned = await startWarned(t)
    assert.deepEqual(await warned('POST', '/batch', body), [`2 clusters (c1, c2): ${STRAY}`])
    const again = await startWarned(t)
    const list = { rolebindings: refs('everywhere', 'stray') }
    assert.deepEqual(await again('PATCH', '/clusters/c2', list), [`cluster "c2": ${STRAY}`])
    assert.deepEqual(await again('POST', '/clusters', cluster('c4', list)), [`cluster "c4": ${STRAY}`])
  })

  test('is not told of where the cluster has it, every cluster has it, or it is given in the same write', async (t) => {
    const warned = await startWarned(t)
    assert.deepEqual(await warned('PUT', '/clusters/c2/rolebindings/everywhere', {}), [])
    assert.deepEqual(await warned('PUT', '/clusters/c2/rolebindings/system', {}), [])
    const operations = [
      { op: 'assign', type: 'rolebindings', ref: { id: 'in-team' }, clusters: ['c2'] },
      { op: 'assign', type: 'namespaces', ref: { id: 'team' }, clusters: ['c2'] },
    ]
    assert.deepEqual(await warned('POST', '/batch', { operations }), [])
    assert.deepEqual(await warned('DELETE', '/clusters/c1/namespaces/kube-system'), [])
  })

  test('is told of when the namespace is taken from under it', async (t) => {
    const taken = 'cluster "c1": role binding "in-team" needs namespace "team", which this takes away'
    const ofBinding = (warnings: string[]): string[] =>
      warnings.filter((text) => text.includes('role binding'))
    const one = await startWarned(t)
    assert.deepEqual(ofBinding(await one('DELETE', '/clusters/c1/namespaces/team')), [taken])
    const all = await startWarned(t)
    assert.deepEqual(ofBinding(await all('DELETE', '/namespaces/team?cascade=true')), [taken])
    const both = await startWarned(t)
    const operations = ['rolebindings/in-team', 'namespaces/team'].map((place) => {
      const [type = '', id = ''] = place.split('/')
      return { op: 'unassign', type, id, clusters: ['c1'] }
    })
    assert.deepEqual(ofBinding(await both('POST', '/batch', { operations })), [])
  })

  test('is told of when the binding moves into one that its clusters lack', async (t) => {
    const warned = await startWarned(t)
    assert.deepEqual(await warned('PATCH', '/rolebindings/in-team', { namespace: 'other' }), [])
    assert.deepEqual(await warned('PATCH', '/rolebindings/in-team', { namespace: 'default' }), [])
    assert.deepEqual(await warned('PUT', '/clusters/c2/rolebindings/everywhere', {}), [])
    assert.deepEqual(await warned('PATCH', '/rolebindings/everywhere', { namespace: 'team' }), [
      `cluster "c2": role binding "everywhere" needs namespace "team", ${NOT_ASSIGNED}`,
    ])
    assert.deepEqual(await warned('PATCH', '/rolebindings/everywhere', { role: 'edit' }), [])
    assert.deepEqual(await warned('PATCH', '/rolebindings/everywhere', { namespace: null }), [])
  })

  test('is told of once: what was so before is no news', async (t) => {
    const warned = await startWarned(t)
    assert.deepEqual(await warned('PATCH', '/clusters/c3', { labels: { a: 'b' } }), [])
    assert.deepEqual(await warned('PUT', '/clusters/c3/namespaces/other', {}), [])
    assert.deepEqual(await warned('PATCH', '/rolebindings/stray', { role: 'edit' }), [])
    assert.deepEqual(await warned('PUT', '/clusters/c3/rolebindings/stray', { role: 'admin' }), [])
    assert.deepEqual(await warned('DELETE', '/clusters/c3'), [])
    assert.deepEqual(await warned('POST', '/clusters/c3/restore'), [`cluster "c3": ${STRAY}`])
  })

  test('is told of for so many bindings, and the others are counted', async (t) => {
    const strays = Array.from({ length: 25 }, (_, i) => binding(`stray-${i}`, `nope-${i}`))
    const clusters = Array.from({ length: 12 }, (_, i) => cluster(`k${String(i).padStart(2, '0')}`))
    const service = await start(t, { fleet: { rolebindings: strays, clusters } })
    const operations = strays.map(
      ({ id }): JsonObject => ({
        op: 'assign',
        type: 'rolebindings',
        ref: { id: id as string },
        selector: 'id',
      }),
    )
    const { body } = await service.call('POST', '/batch', { body: { operations } })
    assert.equal(body.warnings.length, 21)
    assert.match(
      body.warnings[0],
      /^12 clusters \(k00, k01, k02, k03, k04 and 7 more\): role binding "stray-0" /,
    )
    assert.equal(body.warnings.at(-1), 'and 5 more')
  })
})

describe('a component in a namespace', () => {
  const taken = (id: string, namespace: string): string =>
    `cluster "c1": platform component "${id}" needs namespace "${namespace}", which this takes away`

  test('that is taken away is told of, also when it is a chart that goes where it is called', async (t) => {
    const warned = await startWarned(t)
    assert.deepEqual(await warned('DELETE', '/clusters/c1/namespaces/podinfo'), [taken('podinfo', 'podinfo')])
    assert.deepEqual(await warned('DELETE', '/clusters/c1/namespaces/team'), [
      taken('chart', 'team'),
      taken('placed', 'team'),
      'cluster "c1": role binding "in-team" needs namespace "team", which this takes away',
    ])
    assert.deepEqual(await warned('DELETE', '/clusters/c1/namespaces/manifests'), [])
  })

  test('that was never assigned is not told of: Helm makes it', async (t) => {
    const warned = await startWarned(t)
    assert.deepEqual(await warned('PUT', '/clusters/c2/platform_components/chart', {}), [])
    assert.deepEqual(await warned('PATCH', '/platform_components/chart', { namespace: 'elsewhere' }), [])
    assert.deepEqual(await warned('PUT', '/clusters/c2/namespaces/other', {}), [])
    assert.deepEqual(await warned('DELETE', '/clusters/c2/namespaces/other?confirm=removals'), [])
  })

  test('that is taken away is not told of where the component is off, or goes as well', async (t) => {
    const warned = await startWarned(t)
    await warned('PATCH', '/clusters/c1/platform_components/podinfo', { enabled: false })
    assert.deepEqual(await warned('DELETE', '/clusters/c1/namespaces/podinfo'), [])
    const operations = ['chart', 'placed']
      .map((id): JsonObject => ({ op: 'unassign', type: 'platform_components', id, clusters: ['c1'] }))
      .concat({ op: 'unassign', type: 'rolebindings', id: 'in-team', clusters: ['c1'] })
      .concat({ op: 'unassign', type: 'namespaces', id: 'team', clusters: ['c1'] })
    assert.deepEqual(await warned('POST', '/batch', { operations }), [])
  })
})

test('a type of its own says what it needs, and clusters may say otherwise', async (t) => {
  const folder = temporaryFolder(t)
  writeFileSync(
    join(folder, 'gadget.yaml'),
    `kind: gadgets
apiVersion: v1
schema:
  type: array
  key: { name: id }
  items: { type: object, properties: { room: { type: string }, mode: { type: string } } }
  x-flux:
    endpoint: gadgets
    assigned_by: gadgets
    input: [room, mode]
    overrides: [room]
    needs: [{ field: room, type: namespaces, where: { mode: ^strict$ } }]
`,
  )
  const types = builtInTypes(folder)
  const gadgets = [
    { id: 'g', room: 'nope', mode: 'strict' },
    { id: 'lax', room: 'nope' },
  ]
  const warned = await startWarned(t, { types, fleet: { ...fleet(), gadgets } })
  const told = (cluster: string, id: string, room: string): string =>
    `cluster "${cluster}": gadget "${id}" needs namespace "${room}", ${NOT_ASSIGNED}`
  assert.deepEqual(await warned('PUT', '/clusters/c1/gadgets/g', { room: 'team' }), [])
  assert.deepEqual(await warned('PUT', '/clusters/c1/gadgets/lax', {}), [])
  assert.deepEqual(await warned('PATCH', '/clusters/c1/gadgets/g', { room: null }), [told('c1', 'g', 'nope')])
  assert.deepEqual(await warned('PATCH', '/clusters/c1/gadgets/g', { room: 'team' }), [])
  assert.deepEqual(await warned('PATCH', '/gadgets/g', { room: 'gone' }), [])
  assert.deepEqual(await warned('PATCH', '/gadgets/lax', { mode: 'strict' }), [told('c1', 'lax', 'nope')])
})

/** Commands on two clusters, two namespaces and two bindings, which all are there. */
const some: fc.Arbitrary<Command> = fc
  .record({
    op: fc.constantFrom('assign', 'assign', 'unassign', 'move', 'delete', 'restore'),
    cluster: fc.constantFrom('k0', 'k1'),
    place: fc.constantFrom(...['namespaces/n0', 'namespaces/n1', 'rolebindings/r0', 'rolebindings/r1']),
    namespace: fc.constantFrom('n0', 'n1', 'default', null),
  })
  .map(({ op, cluster: name, place, namespace }): Command => {
    const [type = '', id = ''] = place.split('/')
    if (op === 'assign') return { op, type, id, cluster: name, reference: {}, how: 'replace', path: '' }
    if (op === 'unassign') return { op, type, id, cluster: name, path: '' }
    if (op === 'restore') return { op, type: 'clusters', id: name, path: '' }
    if (op === 'delete') return { op, type: 'clusters', id: name, cascade: false, purge: false, path: '' }
    const binding = id.replace('n', 'r')
    return { op: 'patch', type: 'rolebindings', id: binding, patch: { namespace }, format: 'merge', path: '' }
  })

/** Bindings without their namespace, on clusters that have them. */
function unmet(view: View): Set<string> {
  const found = new Set<string>()
  for (const { id: name, document } of view.all('clusters')) {
    const has = (list: string): string[] =>
      ((document[list] ?? []) as readonly Document[]).map(({ id }) => id)
    for (const id of has('rolebindings')) {
      const namespace = view.get('rolebindings', id)?.document.namespace
      if (typeof namespace === 'string' && namespace !== 'default' && !has('namespaces').includes(namespace))
        found.add(`${name} ${id} ${namespace}`)
    }
  }
  return found
}

/** The same, from warnings. */
function told(warnings: readonly string[]): string[] {
  return warnings.flatMap((text) => {
    const [, one, several = '', id, namespace] =
      /^(?:cluster "(.*)"|\d+ clusters \((.*)\)): role binding "(.*)" needs namespace "(.*)", /.exec(text) ??
      []
    const names = one === undefined ? several.split(', ') : [one]
    return id === undefined ? [] : names.map((name) => `${name} ${id} ${namespace}`)
  })
}

test('a write warns of exactly what it leaves without a namespace and was not so before', async () => {
  const seed: readonly (readonly [string, JsonObject])[] = [
    ['namespaces', { id: 'n0' }],
    ['namespaces', { id: 'n1' }],
    ['rolebindings', binding('r0', 'n0')],
    ['rolebindings', binding('r1')],
    ['clusters', cluster('k0')],
    ['clusters', cluster('k1')],
  ]
  const creations = seed.map(([type, document]): Command => ({ op: 'create', type, document, path: '' }))
  let warnings = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(some, { minLength: 1, maxLength: 3 }), { minLength: 10, maxLength: 20 }),
      async (batches) => {
        const engine = await load(openMemoryStore())
        assert.ok((await engine.write(creations, AUTHOR)).ok)
        for (const batch of batches) {
          const before = unmet(engine.state)
          const written = await engine.write(batch, AUTHOR, { confirmRemovals: true })
          if (!written.ok) continue
          const found = told(written.value.warnings)
          warnings += found.length
          assert.deepEqual(found.sort(), [...unmet(engine.state).difference(before)].sort())
        }
      },
    ),
    RUNS,
  )
  assert.ok(warnings > 100, `only ${warnings} warnings`)
})
