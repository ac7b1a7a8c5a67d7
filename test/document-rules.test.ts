// Rules for documents that Kubernetes and Flux make: ids that are taken, sizes, names of patches.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { parseAllDocuments } from 'yaml'
import type { Json, JsonObject } from '../src/base/json.ts'
import type { Command } from '../src/domain/commands/command.ts'
import type { View } from '../src/domain/documents/view.ts'
import { loadTypes } from '../src/registry/load-types.ts'
import { checkPaths } from '../src/registry/value-paths.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import type { Store } from '../src/store/store.ts'
import { assertProblem, pathsIn, run, start } from './every-store.ts'
import { AUTHOR, load, RUNS } from './random-fleet.ts'
import { type Answer, builtInTypes, RESOURCES, smallFleet, startService, temporaryFolder } from './service.ts'

const TEMPLATE = join(import.meta.dirname, '../deploy/templates/namespaces.yaml')
const JSON_PATCH = { 'content-type': 'application/json-patch+json' }
const SOURCE = { component_path: 'p', component_version: '1', oci_tag: 'v1' }
const OCI = 'oci://registry.example.com/components'
const HTTPS = 'https://charts.example.com'
const SUBJECTS = [{ kind: 'Group', name: 'g' }]

function component(id: string, more: JsonObject = {}): JsonObject {
  return { id, ...SOURCE, oci_url: OCI, ...more }
}

function cluster(id: string, more: JsonObject = {}): JsonObject {
  return { id, cluster_name: id, cluster_dns: `${id}.k8s.example.com`, environment: 'dev', ...more }
}

function refs(...ids: string[]): JsonObject[] {
  return ids.map((id) => ({ id }))
}

function assertRefused(answer: Answer, at: string, says: RegExp): void {
  assertProblem(answer, 400, 'validation_error')
  assert.deepEqual(pathsIn(answer), [at], answer.text)
  assert.match(answer.body.details[0].message, says)
}

function warningsOf({ headers }: Answer): string[] {
  const found = String(headers.warning ?? '').matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g)
  return [...found].map(([, text = '']) => text.replaceAll(/\\(.)/g, '$1'))
}

/** A store with documents that no write of today would make. */
async function storeWith(store: Store, documents: Record<string, readonly JsonObject[]>): Promise<Store> {
  const changes = Object.entries(documents).flatMap(([type, all]) =>
    all.map((document) => ({
      type,
      id: String(document.id),
      after: { json: JSON.stringify(document), deleted: false },
    })),
  )
  const head = await store.head()
  const meta = { time: '2026-01-01T00:00:00.000Z', actor: 'old', message: null, request_id: 'old' }
  const done = await store.commit(head.revision, {
    ...meta,
    client_address: null,
    operation: 'old',
    changes,
  })
  assert.ok(done.ok)
  return store
}

describe('a reserved id', () => {
  const RESERVED: readonly (readonly [type: string, document: JsonObject, says: RegExp])[] = [
    ['platform_components', component('flux-system'), /^is reserved: Flux keeps .*; choose another id$/],
    ...['cluster-admin', 'flux-operator', 'cluster-reconciler-flux-system', 'crd-controller-flux-system'].map(
      (id) =>
        [
          'rolebindings',
          { id, role: 'view', subjects: SUBJECTS },
          /^is reserved: .* of this name.*; choose another id$/,
        ] as const,
    ),
  ]

  for (const [type, document, says] of RESERVED) {
    const id = String(document.id)
    test(`is refused for new documents on every way in: ${type}/${id}`, async (t) => {
      const service = await start(t)
      const { id: _id, ...body } = document
      const created = await service.call('POST', `/${type}`, { body: document })
      assertRefused(created, '/id', says)
      assertRefused(
        await service.call('PUT', `/${type}/${id}`, { body, headers: { 'if-none-match': '*' } }),
        '/id',
        says,
      )
      const operations: Json[] = [
        { op: 'create', type: 'namespaces', document: { id: 'fine' } },
        { op: 'create', type, document },
      ]
      assertRefused(
        await service.call('POST', '/batch', { body: { operations } }),
        '/operations/1/document/id',
        says,
      )
      assertRefused(await service.call('POST', `/${type}?dry_run=true`, { body: document }), '/id', says)
      assert.equal(service.engine.state.revision, 1)
    })
  }

  test('is refused in a seed file', async () => {
    const fleet = { ...smallFleet(), platform_components: [component('flux-system')] }
    await assert.rejects(startService({ fleet }), /platform_components\/0\/id is reserved/)
  })

  test('of a document that is there already is read, changed, assigned with a warning, taken away and deleted', async (t) => {
    const store = await storeWith(openMemoryStore(), {
      platform_components: [component('flux-system')],
      clusters: [
        cluster('old', { platform_components: refs('flux-system') }),
        cluster('new'),
        cluster('newer'),
      ],
    })
    const service = await start(t, { store, fleet: undefined })
    assert.equal((await service.call('GET', '/platform_components/flux-system')).status, 200)
    const changed = await service.call('PATCH', '/platform_components/flux-system', {
      body: { oci_tag: 'v2' },
    })
    assert.deepEqual([changed.status, warningsOf(changed)], [200, []])
    const labelled = await service.call('PATCH', '/clusters/old', { body: { labels: { a: 'b' } } })
    assert.deepEqual([labelled.status, warningsOf(labelled)], [200, []])
    const body = {
      operations: [
        { op: 'assign', type: 'platform_components', ref: { id: 'flux-system' }, clusters: ['new', 'newer'] },
      ],
    }
    const assigned = await service.call('POST', '/batch', { body })
    assert.equal(assigned.status, 200, assigned.text)
    assert.equal(assigned.body.warnings.length, 1)
    assert.match(
      assigned.body.warnings[0],
      /^2 clusters \(new, newer\): platform component "flux-system" has a reserved id: Flux keeps/,
    )
    await run(service, ['DELETE', '/clusters/old/platform_components/flux-system?confirm=removals'])
    await run(service, ['DELETE', '/platform_components/flux-system?cascade=true&confirm=removals'])
    const back = await service.call('POST', `/revisions/${service.engine.state.revision}/revert`)
    assertProblem(back, 409, 'conflict')
    assert.match(back.body.message, /is reserved/)
  })

  test('of a namespace that every cluster has is taken, since the template never deletes one', async (t) => {
    const service = await start(t)
    const [template] = parseAllDocuments(readFileSync(TEMPLATE, 'utf8'))
    const kept = /has inputs\.id \(list ([^)]*)\)/.exec(template?.toJS().spec.resourcesTemplate)?.[1] ?? ''
    const everywhere = builtInTypes().get('namespaces')?.delivery?.onEveryCluster ?? []
    assert.deepEqual(kept.replaceAll('"', '').split(' ').sort(), [...everywhere].sort())
    assert.ok([...everywhere].includes('kube-system'))
    for (const id of everywhere)
      await run(service, ['POST', '/namespaces', { id }], ['PUT', `/clusters/one/namespaces/${id}`, {}])
  })
})

describe('annotations of a namespace', () => {
  const LIMIT = 262_108

  /** Of so many bytes, keys included; two bytes for each character but the key's. */
  function annotations(bytes: number): JsonObject {
    const half = 'example.com/long'
    return {
      [half]: 'ü'.repeat((bytes - half.length - 'odd'.length - (bytes % 2 === 0 ? 1 : 0)) / 2),
      odd: bytes % 2 === 0 ? 'x' : '',
    }
  }

  test('are refused above what Kubernetes takes, by bytes and on every way in', async (t) => {
    const service = await start(t)
    const good = annotations(LIMIT)
    const bad = annotations(LIMIT + 1)
    const size = (all: JsonObject): number =>
      Object.entries(all).reduce((sum, [key, value]) => sum + Buffer.byteLength(key + value), 0)
    assert.deepEqual([size(good), size(bad)], [LIMIT, LIMIT + 1])
    await run(
      service,
      ['POST', '/namespaces', { id: 'long', annotations: good }],
      ['PUT', '/clusters/one/namespaces/team-a', { annotations: good }],
    )
    const says = /^has 262109 bytes of UTF-8, keys and values together, and may have 262108: make it shorter$/
    const operations = [{ op: 'add', path: '/annotations', value: bad }]
    const ways: readonly (readonly [method: string, url: string, body: Json, at: string])[] = [
      ['POST', '/namespaces', { id: 'longer', annotations: bad }, '/annotations'],
      ['PUT', '/namespaces/team-a', { annotations: bad }, '/annotations'],
      ['PATCH', '/namespaces/team-a', { annotations: bad }, '/annotations'],
      ['PATCH', '/namespaces/long', { annotations: { more: '' } }, '/annotations'],
      ['PATCH', '/namespaces/team-a', operations, '/annotations'],
      ['PUT', '/clusters/one/namespaces/team-a', { annotations: bad }, '/annotations'],
      ['PATCH', '/clusters/one/namespaces/team-a', { annotations: { ...bad } }, '/annotations'],
    ]
    for (const [method, url, body, at] of ways) {
      const headers = Array.isArray(body) ? JSON_PATCH : {}
      const answer = await service.call(method, url, { body, headers })
      assertRefused(
        answer,
        at,
        url.endsWith('/long') || url.startsWith('/clusters') ? /^has \d+ bytes/ : says,
      )
    }
    const { body: one } = await service.call('GET', '/clusters/one')
    const whole = { ...one, namespaces: [{ id: 'team-a', annotations: bad }] }
    assertRefused(
      await service.call('PUT', '/clusters/one', { body: whole }),
      '/namespaces/0/annotations',
      says,
    )
  })

  test('leave room for the one that the template adds', () => {
    assert.equal(LIMIT + 'fluxcd.controlplane.io/prune'.length + 'disabled'.length, 256 * 1024)
  })
})

describe('the names of patches', () => {
  const KUSTOMIZE =
    /^must be a variable \(letters, digits and "_", no digit first\), as only charts take Helm paths, not "/

  function fleet() {
    return {
      platform_components: [
        component('app'),
        component('chart', { oci_url: HTTPS }),
        component('oci-chart', { delivery: 'helm' }),
      ],
      clusters: [
        cluster('c1', { platform_components: refs('app', 'chart', 'oci-chart') }),
        cluster('c2', { platform_components: refs('app', 'chart', 'oci-chart') }),
      ],
    }
  }

  const PATHS = ['a.b', 'has-dash', 'a\\.b', 'a[0]', '0', '9a', 'a/b']
  const VARIABLES = ['a', '_', 'A_1', 'replicaCount']

  test('are variables where a component becomes a Kustomization, on every way in', async (t) => {
    const service = await start(t, { fleet: fleet() })
    const { body: c1 } = await service.call('GET', '/clusters/c1')
    for (const name of PATHS) {
      const values = { [name]: 'x', fine: 'y' }
      const patches = { app: values }
      const at = `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
      const ways: readonly (readonly [method: string, url: string, body: Json, at: string])[] = [
        ['PATCH', '/clusters/c1/patches/app', values, ''],
        ['PUT', '/clusters/c1/patches/app', values, ''],
        ['PATCH', '/clusters/c1', { patches }, '/patches/app'],
        ['PUT', '/clusters/c1', { ...c1, patches }, '/patches/app'],
        ['POST', '/clusters', { ...c1, id: 'c3', cluster_dns: 'c3', patches }, '/patches/app'],
        [
          'POST',
          '/batch',
          { operations: [{ op: 'patch_values', component: 'app', values, selector: 'id=c1' }] },
          '/operations/0/values',
        ],
      ]
      for (const [method, url, body, place] of ways)
        assertRefused(await service.call(method, url, { body }), `${place}${at}`, KUSTOMIZE)
      for (const chart of ['chart', 'oci-chart'])
        await run(service, ['PUT', `/clusters/c1/patches/${chart}`, { [name]: 'x' }])
    }
    const names = Object.fromEntries(VARIABLES.map((name) => [name, 'x']))
    for (const id of ['app', 'chart', 'oci-chart'])
      await run(service, ['PUT', `/clusters/c1/patches/${id}`, names])
  })

  test('are held against how a component comes to be delivered, and name the clusters', async (t) => {
    const service = await start(t, { fleet: fleet() })
    await run(
      service,
      ['PUT', '/clusters/c1/patches/oci-chart', { 'a.b': 'x' }],
      ['PUT', '/clusters/c2/patches/oci-chart', { 'a.b': 'x', fine: 'x' }],
      ['PUT', '/clusters/c1/patches/chart', { fine: 'x' }],
    )
    const says =
      /^does not go with the patches of 2 clusters \(c1, c2\), whose \/patches\/oci-chart\/a\.b must be a variable .*; change those patches first, or in the same write$/
    for (const delivery of ['kustomize', null])
      assertRefused(
        await service.call('PATCH', '/platform_components/oci-chart', { body: { delivery } }),
        '/delivery',
        says,
      )
    await run(service, ['PATCH', '/platform_components/chart', { oci_url: OCI }])
    const patch = (id: string): Json => ({
      op: 'patch_values',
      component: 'oci-chart',
      values: { 'a.b': null, a_b: 'x' },
      clusters: [id],
    })
    const operations = [
      { op: 'patch', type: 'platform_components', id: 'oci-chart', patch: { delivery: null } },
      patch('c1'),
    ]
    const half = await service.call('POST', '/batch', { body: { operations } })
    assertRefused(half, '/operations/0/patch/delivery', /of cluster "c2", whose/)
    await run(service, ['POST', '/batch', { operations: [...operations, patch('c2')] }])
    // The other way round nothing can be wrong: a variable is a path, too.
    await run(service, ['PATCH', '/platform_components/oci-chart', { delivery: 'helm' }])
  })

  test('that are wrong already are left alone, and may be taken away', async (t) => {
    const { platform_components, clusters } = fleet()
    const [first, ...others] = clusters
    const wrong = { ...first, patches: { app: { 'a.b': 'x', 'c.d': 'y' } } } as JsonObject
    const store = await storeWith(openMemoryStore(), { platform_components, clusters: [wrong, ...others] })
    const service = await start(t, { store, fleet: undefined })
    await run(
      service,
      ['PATCH', '/clusters/c1', { labels: { x: 'y' } }],
      ['PATCH', '/clusters/c1/patches/app', { fine: 'z' }],
      ['PATCH', '/clusters/c1/patches/app', { 'a.b': null }],
      ['PATCH', '/platform_components/app', { oci_tag: 'v2' }],
      ['DELETE', '/clusters/c1/platform_components/chart'],
    )
    const more = await service.call('PATCH', '/clusters/c1/patches/app', { body: { 'e.f': 'x' } })
    assertRefused(more, '/e.f', KUSTOMIZE)
    await run(service, ['DELETE', '/clusters/c1/patches/app'])
  })

  test('of a deleted cluster are told of when it comes back to what does not take them', async (t) => {
    const service = await start(t, { fleet: fleet() })
    await run(
      service,
      ['PUT', '/clusters/c1/patches/oci-chart', { 'a.b': 'x' }],
      ['DELETE', '/clusters/c1'],
      ['PATCH', '/platform_components/oci-chart', { delivery: null }],
    )
    const preview = await service.call('POST', '/clusters/c1/restore?dry_run=true')
    const restored = await service.call('POST', '/clusters/c1/restore')
    assert.equal(restored.status, 200, restored.text)
    const told = warningsOf(restored).filter((warning) => warning.includes('patches of'))
    assert.equal(told.length, 1)
    assert.match(
      told[0] ?? '',
      /^cluster "c1": the patches of platform component "oci-chart" do not fit it: \/patches\/oci-chart\/a\.b must be/,
    )
    assert.ok(preview.body.warnings.includes(told[0]))
  })

  test('do not come back where they are refused, by whatever way', async (t) => {
    const service = await start(t, { fleet: fleet() })
    const set = await run(service, ['PUT', '/clusters/c1/patches/oci-chart', { 'a.b': 'x' }])
    const removed = await run(service, ['DELETE', '/clusters/c1/patches/oci-chart'])
    await run(service, ['PATCH', '/platform_components/oci-chart', { delivery: null }])
    for (const [url, body] of [
      [`/revisions/${removed}/revert`, undefined],
      ['/rollback', { to_revision: set, types: ['clusters'] }],
    ] as const)
      assertProblem(await service.call('POST', url, { body }), 409, 'conflict')
  })

  test('are refused however many of them are wrong, with the first of them told', async (t) => {
    const service = await start(t, { fleet: fleet() })
    const names = Array.from({ length: 2000 }, (_, i) => [`a.${i}`, ''])
    for (const component of ['app', 'chart']) {
      const values = Object.fromEntries(component === 'app' ? names : [['a', ''], ...names])
      const answer = await service.call('PUT', `/clusters/c1/patches/${component}`, { body: values })
      assertProblem(answer, 400, 'validation_error')
      assert.equal(answer.body.details.length, 50)
      assert.match(answer.body.message, /^\/a\.0 .* \(and at least 100 more\)$/)
    }
  })

  test('of a chart do not contradict each other', async (t) => {
    const service = await start(t, { fleet: fleet() })
    const pairs: readonly (readonly [first: string, second: string, says: RegExp])[] = [
      [
        'message',
        'message.sub',
        /^is a part of "message", which has a value of its own: leave one of them out$/,
      ],
      ['a[0]', 'a[0].b', /^is a part of "a\[0\]"/],
      ['a', 'a[0]', /^is a part of "a"/],
      ['a.b', 'a.b.c.d', /^is a part of "a\.b"/],
      ['a\\.b', 'a\\.b.c', /^is a part of "a\\\.b"/],
      ['a[00]', 'a[0].b', /^is a part of "a\[00\]"/],
      ['a[0]', 'a[00]', /^is the same path as "a\[0\]": name it once$/],
      ['a.b', 'a[0]', /^makes a list of what "a\.b" makes an object: leave one of them out$/],
      ['a[0].b', 'a[0][1]', /^makes a list of what "a\[0\]\.b" makes an object/],
    ]
    for (const [first, second, says] of pairs) {
      const at = `/${second}`
      const both = { [first]: 'x', [second]: 'y' }
      for (const method of ['PUT', 'PATCH'])
        assertRefused(await service.call(method, '/clusters/c1/patches/chart', { body: both }), at, says)
      await run(service, ['PUT', '/clusters/c1/patches/chart', { [first]: 'x' }])
      const later = await service.call('PATCH', '/clusters/c1/patches/chart', { body: { [second]: 'y' } })
      assertRefused(later, at, says)
      await run(service, ['PUT', '/clusters/c1/patches/chart', { [second]: 'y' }])
      await run(service, ['DELETE', '/clusters/c1/patches/chart'])
    }
    const apart = {
      'a.b': '1',
      'a.bc': '2',
      ab: '3',
      'a\\.b': '4',
      'l[0]': '5',
      'l[1].x': '6',
      'l[10]': '7',
      'a/b': '8',
    }
    await run(service, ['PUT', '/clusters/c1/patches/chart', apart])
  })

  test('contradict each other exactly where one document cannot hold both', () => {
    const key = fc.constantFrom('a', 'b', 'a\\.b', '\\.')
    const step = fc.oneof(
      key.map((text) => `.${text}`),
      fc.constantFrom('[0]', '[1]', '[00]'),
    )
    const path = fc.tuple(key, fc.array(step, { maxLength: 3 })).map(([head, rest]) => head + rest.join(''))
    fc.assert(
      fc.property(fc.uniqueArray(path, { maxLength: 4 }), (paths) => {
        assert.equal(checkPaths(paths).length === 0, canHold(paths), paths.join(' '))
      }),
      { numRuns: 500 },
    )
  })

  /** Puts the values one after the other into a document; the order that is hardest on them. */
  function canHold(paths: readonly string[]): boolean {
    const root = new Map<string | number, unknown>()
    return paths.every((path) => {
      const steps = [...path.matchAll(/((?:[^.[\]\\]|\\.)+)|\[(\d+)\]/g)].map(
        ([, name, index]) => name ?? Number(index),
      )
      let holder = root
      for (const [i, step] of steps.entries()) {
        const others = [...holder.keys()]
        if (others.some((other) => typeof other !== typeof step)) return false
        if (i === steps.length - 1) {
          if (holder.has(step)) return false
          holder.set(step, 'value')
        } else {
          if (!holder.has(step)) holder.set(step, new Map())
          const next = holder.get(step)
          if (!(next instanceof Map)) return false
          holder = next
        }
      }
      return true
    })
  }
})

/** Commands on two clusters and two components that they have. */
const some: fc.Arbitrary<Command> = fc
  .record({
    op: fc.constantFrom('values', 'values', 'deliver', 'deliver', 'cluster', 'delete', 'restore'),
    on: fc.constantFrom('k0', 'k1'),
    component: fc.constantFrom('a', 'b'),
    values: fc.dictionary(fc.constantFrom('x', 'y', 'x.y', '0'), fc.constantFrom('1', '2', null), {
      noNullPrototype: true,
      maxKeys: 2,
    }),
    deliver: fc.constantFrom<JsonObject>(
      { delivery: 'helm' },
      { delivery: null },
      { delivery: null, oci_url: OCI },
      { oci_url: HTTPS, delivery: null },
    ),
  })
  .map(({ op, on, component: id, values, deliver }): Command => {
    if (op === 'values')
      return { op: 'patch_values', cluster: on, component: id, values, merge: true, path: '' }
    if (op === 'restore') return { op, type: 'clusters', id: on, path: '' }
    if (op === 'delete') return { op, type: 'clusters', id: on, cascade: false, purge: false, path: '' }
    const patch = op === 'cluster' ? { patches: { [id]: values } } : deliver
    const [type, of] = op === 'cluster' ? ['clusters', on] : ['platform_components', id]
    return { op: 'patch', type, id: of, patch, format: 'merge', path: '' }
  })

/** Names that do not fit, by cluster and component. */
function wrongNames(view: View): Set<string> {
  const found = new Set<string>()
  for (const { id: name, document } of view.all('clusters')) {
    for (const [id, values] of Object.entries((document.patches ?? {}) as Record<string, JsonObject>)) {
      const definition = view.get('platform_components', id)?.document
      const isChart = definition?.delivery === 'helm' || String(definition?.oci_url).startsWith('http')
      for (const key of Object.keys(values))
        if (!isChart && !/^[_A-Za-z][_A-Za-z0-9]*$/.test(key)) found.add(`${name} ${id} ${key}`)
    }
  }
  return found
}

test('no write leaves a name that does not fit, but what was so before or comes back', async () => {
  const seed: readonly (readonly [string, JsonObject])[] = [
    ['platform_components', component('a')],
    ['platform_components', component('b', { delivery: 'helm' })],
    ['clusters', cluster('k0', { platform_components: refs('a', 'b') })],
    ['clusters', cluster('k1', { platform_components: refs('a', 'b') })],
  ]
  const creations = seed.map(([type, document]): Command => ({ op: 'create', type, document, path: '' }))
  let refused = 0
  await fc.assert(
    fc.asyncProperty(fc.array(some, { minLength: 10, maxLength: 20 }), async (sequence) => {
      const engine = await load(openMemoryStore())
      assert.ok((await engine.write(creations, AUTHOR)).ok)
      for (const next of sequence) {
        const before = wrongNames(engine.state)
        const written = await engine.write([next], AUTHOR, { confirmRemovals: true })
        if (!written.ok && written.problem.message.includes('Helm paths')) refused++
        const after = wrongNames(engine.state)
        if (next.op === 'restore') continue
        assert.deepEqual([...after.difference(before)], [])
      }
    }),
    RUNS,
  )
  assert.ok(refused > 50, `only ${refused} were refused`)
})

describe('a control character that YAML cannot carry', () => {
  const CHARACTERS = Array.from({ length: 0x9f - 0x7f + 1 }, (_, i) => String.fromCharCode(0x7f + i)).concat(
    '\ufffe',
    '\uffff',
  )

  test('is refused wherever a text reaches clusters, NEL with the others', async (t) => {
    const service = await start(t)
    for (const character of CHARACTERS) {
      const text = `a${character}b`
      const ways: readonly (readonly [url: string, body: JsonObject, at: string])[] = [
        ['/namespaces/team-a', { annotations: { note: text } }, '/annotations/note'],
        ['/rolebindings/admins', { subjects: [{ kind: 'User', name: text }] }, '/subjects/0/name'],
        ['/clusters/one/patches/a', { replicas: text }, '/replicas'],
        ['/clusters/one', { vm_image: text }, '/vm_image'],
      ]
      for (const [url, body, at] of ways) {
        const says = /^holds a control character that YAML cannot carry: remove it$/
        assertRefused(await service.call('PATCH', url, { body }), at, says)
      }
    }
    for (const character of ['\u2028', '\u2029', '\ufeff', '\u00a0', '\t', '\n'])
      await run(service, ['PATCH', '/namespaces/team-a', { annotations: { note: `a${character}b` } }])
  })
})

describe('the file of a type', () => {
  function typesWith(t: TestContext, flux: string) {
    const folder = temporaryFolder(t)
    const properties =
      'colour: { type: string }, place: { type: string }, notes: { type: object, additionalProperties: { type: string } }'
    const head = `kind: gadgets\napiVersion: v1\nschema:\n  type: array\n  key: { name: id }\n`
    writeFileSync(
      join(folder, 'gadget.yaml'),
      `${head}  items: { type: object, properties: { ${properties} } }\n  x-flux: { endpoint: gadgets, assigned_by: gadgets, input: [colour, notes], overrides: [notes], ${flux} }\n`,
    )
    return loadTypes([RESOURCES, folder])
  }

  test('may reserve ids and limit bytes, as the built-in ones do', async (t) => {
    const loaded = typesWith(
      t,
      'reserved: { main: the firmware is called that }, max_bytes: { notes: 5, colour: 4 }',
    )
    assert.ok(loaded.ok)
    const service = await start(t, { types: loaded.types })
    const create = (body: JsonObject): Promise<Answer> => service.call('POST', '/gadgets', { body })
    assertRefused(
      await create({ id: 'main' }),
      '/id',
      /^is reserved: the firmware is called that; choose another id$/,
    )
    assertRefused(
      await create({ id: 'x', notes: { a: 'ü', b: 'ü' } }),
      '/notes',
      /^has 6 bytes .* may have 5/,
    )
    assertRefused(await create({ id: 'x', colour: 'rouge' }), '/colour', /^has 5 bytes/)
    assert.equal((await create({ id: 'x', notes: { a: 'xyz', b: '' }, colour: 'blau' })).status, 201)
    const assigned = await service.call('PUT', '/clusters/one/gadgets/x', { body: { notes: { a: 'xyzzy' } } })
    assertRefused(assigned, '/notes', /^has 6 bytes/)
  })

  test('is refused when a rule names what is not there', (t) => {
    const wrong: readonly (readonly [flux: string, says: RegExp])[] = [
      ['reserved: [main]', /x-flux\/reserved must be object/],
      ["reserved: { main: '' }", /x-flux\/reserved\/main/],
      ['max_bytes: { size: 5 }', /x-flux\.max_bytes names "size", which is not one of colour, place, notes/],
      ['max_bytes: { notes: many }', /x-flux\/max_bytes\/notes must be integer/],
      ['needs: [{ field: room, type: namespaces }]', /x-flux\.needs names "room"/],
      [
        'needs: [{ field: place, type: clusters }]',
        /x-flux\.needs names "clusters", which clusters cannot be given/,
      ],
      ['needs: [{ field: place }]', /must have required property 'type'/],
      ['needs: [{ field: place, type: namespaces, where: { size: x } }]', /x-flux\.where names "size"/],
      ['patch_names: [{ format: variable }]', /must have property patches/],
      ['patches: true, patch_names: [{ format: nonsense }]', /patch_names\/0\/format/],
      ['version: [{ field: size }]', /x-flux\.version names "size"/],
      ['version: [{ field: colour, where: { size: x } }]', /x-flux\.where names "size"/],
      ['version: colour', /x-flux\/version must be array/],
      ['on_every_cluster: main', /x-flux\/on_every_cluster must be array/],
    ]
    for (const [flux, says] of wrong) {
      const loaded = typesWith(t, flux)
      assert.ok(!loaded.ok, flux)
      assert.match(loaded.problems.join('\n'), says)
    }
  })
})
