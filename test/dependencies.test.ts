// What an input waits for: only what its cluster has, has switched on, and is delivered the same way; and how the
// fields that decide it are checked.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { Json, JsonObject } from '../src/base/json.ts'
import { renderInputs } from '../src/domain/delivery/render-inputs.ts'
import { servedTo } from '../src/domain/delivery/served-view.ts'
import { type Reference, referencesOf } from '../src/domain/types/resource-type.ts'
import { loadTypes } from '../src/registry/load-types.ts'
import { assertProblem, run, start, type Write } from './every-store.ts'
import {
  type Answer,
  builtInTypes,
  READ_TOKEN,
  RESOURCES,
  type ServiceOptions,
  type TestService,
  temporaryFolder,
} from './service.ts'
import { withoutDigests } from './without-digests.ts'

const OCI = 'oci://registry.example.com/components'
const HTTPS = 'https://charts.example.com'
const CLUSTERS = ['all', 'some', 'none']

function component(id: string, depends_on: string[] = [], more: JsonObject = {}): JsonObject {
  return {
    id,
    component_path: `core/${id}`,
    component_version: '1.0.0',
    oci_url: OCI,
    oci_tag: 'v1',
    depends_on,
    ...more,
  }
}

/** Three of kustomize in a chain, two charts from different places, and one of each that waits for everything. */
function fleet() {
  const components = [
    component('a'),
    component('b', ['a']),
    component('c', ['b', 'a']),
    component('chart', [], { oci_url: HTTPS }),
    component('oci-chart', ['chart'], { delivery: 'helm' }),
    component('last', ['a', 'chart', 'b', 'oci-chart', 'c']),
    component('last-chart', ['a', 'chart', 'b', 'oci-chart', 'c'], { oci_url: HTTPS }),
  ]
  const cluster = (id: string, ...platform_components: JsonObject[]): JsonObject => ({
    id,
    cluster_name: id,
    cluster_dns: `${id}.k8s.example.com`,
    environment: 'dev',
    platform_components,
  })
  return {
    platform_components: components,
    namespaces: [{ id: 'team' }],
    rolebindings: [{ id: 'admins', role: 'admin', subjects: [{ kind: 'Group', name: 'admins' }] }],
    clusters: [
      cluster('all', ...components.map(({ id = '' }) => ({ id }))),
      cluster(
        'some',
        { id: 'last-chart' },
        { id: 'c' },
        { id: 'a', oci_tag: 'v2' },
        { id: 'chart', enabled: false },
      ),
      cluster('none'),
    ],
  }
}

function startFleet(t: TestContext, options: ServiceOptions = {}): Promise<TestService> {
  return start(t, { fleet: fleet(), ...options })
}

const pollUrl = (cluster: string, endpoint = 'platform-components'): string =>
  `/api/v2/flux/clusters/${cluster}.k8s.example.com/${endpoint}`

function poll(service: TestService, cluster: string, endpoint?: string): Promise<Answer> {
  return service.call('GET', pollUrl(cluster, endpoint), { token: READ_TOKEN })
}

interface Input {
  readonly id: string
  readonly [field: string]: Json
}

async function inputsOf(service: TestService, cluster: string): Promise<readonly Input[]> {
  const { status, body, text } = await poll(service, cluster)
  assert.equal(status, 200, text)
  return body.inputs
}

/** What each input of a cluster waits for. */
async function waits(service: TestService, cluster: string): Promise<Record<string, Json>> {
  const inputs = await inputsOf(service, cluster)
  return Object.fromEntries(inputs.map(({ id, depends_on = null }) => [id, depends_on]))
}

describe('an input waits', () => {
  test('for what its cluster has, switched on and delivered the same way, in the order of the catalog', async (t) => {
    const service = await startFleet(t)
    assert.deepEqual(await waits(service, 'all'), {
      a: [],
      b: ['a'],
      c: ['b', 'a'],
      chart: [],
      'oci-chart': ['chart'],
      last: ['a', 'b', 'c'],
      'last-chart': ['chart', 'oci-chart'],
    })
    assert.deepEqual(await waits(service, 'some'), { 'last-chart': [], c: ['a'], a: [], chart: [] })
    assert.deepEqual(await waits(service, 'none'), {})
  })

  test('in a list that is empty when there is nothing, never left out and never null', async (t) => {
    const service = await startFleet(t)
    for (const cluster of CLUSTERS)
      for (const { depends_on } of await inputsOf(service, cluster)) assert.ok(Array.isArray(depends_on))
  })

  const STEPS: readonly (readonly [what: string, write: Write, waits: Record<string, Json>])[] = [
    [
      'not for what is switched off',
      ['PATCH', '/clusters/all/platform_components/a', { enabled: false }],
      { b: [], c: ['b'], last: ['b', 'c'] },
    ],
    [
      'again for what is switched on again',
      ['PATCH', '/clusters/all/platform_components/a', { enabled: true }],
      { b: ['a'], c: ['b', 'a'], last: ['a', 'b', 'c'] },
    ],
    [
      'the same for what has other overrides',
      ['PUT', '/clusters/all/platform_components/a', { oci_tag: 'v9', component_path: 'x' }],
      { b: ['a'], c: ['b', 'a'], last: ['a', 'b', 'c'] },
    ],
    [
      'not for what is taken from the cluster',
      ['DELETE', '/clusters/all/platform_components/b'],
      { c: ['a'], last: ['a', 'c'] },
    ],
    [
      'again for what is given again, wherever it stands in the list',
      ['PUT', '/clusters/all/platform_components/b', {}],
      { b: ['a'], c: ['b', 'a'], last: ['a', 'b', 'c'] },
    ],
    [
      'not for what has become a chart',
      ['PATCH', '/platform_components/a', { oci_url: HTTPS }],
      { b: [], c: ['b'], last: ['b', 'c'], 'last-chart': ['a', 'chart', 'oci-chart'] },
    ],
    [
      'again for what comes from an artifact again',
      ['PATCH', '/platform_components/a', { oci_url: OCI }],
      { b: ['a'], c: ['b', 'a'], last: ['a', 'b', 'c'], 'last-chart': ['chart', 'oci-chart'] },
    ],
    [
      'not for a chart in an artifact, which is a chart too',
      ['PATCH', '/platform_components/b', { delivery: 'helm' }],
      { b: [], c: ['a'], last: ['a', 'c'], 'last-chart': ['chart', 'b', 'oci-chart'] },
    ],
    [
      'for manifests, said or not',
      ['PATCH', '/platform_components/b', { delivery: 'kustomize' }],
      { b: ['a'], c: ['b', 'a'], last: ['a', 'b', 'c'], 'last-chart': ['chart', 'oci-chart'] },
    ],
    [
      'the same when nothing is said any more',
      ['PATCH', '/platform_components/b', { delivery: null }],
      { b: ['a'], c: ['b', 'a'], last: ['a', 'b', 'c'], 'last-chart': ['chart', 'oci-chart'] },
    ],
    [
      'for other things when it becomes a chart itself',
      ['PATCH', '/platform_components/last', { delivery: 'helm' }],
      { last: ['chart', 'oci-chart'] },
    ],
    [
      'for what its catalog entry names from now on',
      ['PATCH', '/platform_components/c', { depends_on: ['a'] }],
      { c: ['a'] },
    ],
    [
      'for nothing of what is gone from the catalog',
      ['DELETE', '/platform_components/a?cascade=true'],
      { b: [], c: [], last: ['chart', 'oci-chart'] },
    ],
  ]

  test('for what is there after every step of a story', async (t) => {
    const service = await startFleet(t)
    for (const [what, write, expected] of STEPS) {
      await run(service, write)
      const found = await waits(service, 'all')
      for (const [id, depends_on] of Object.entries(expected))
        assert.deepEqual(found[id], depends_on, `${what}: ${id}`)
    }
  })

  test('with a delivery and a namespace where the catalog says them, after all that was there before', async (t) => {
    const service = await startFleet(t)
    await run(service, ['PATCH', '/platform_components/a', { delivery: 'kustomize', namespace: 'core' }])
    const [a = {}, b = {}] = await inputsOf(service, 'all')
    const before = [
      'id',
      'component_path',
      'component_version',
      'cluster_env_enabled',
      'depends_on',
      'enabled',
    ]
    const keys = [...before, 'patches', 'cluster', 'source']
    const digests = ['digest', 'answer_digest']
    assert.deepEqual(Object.keys(b), [...keys, ...digests])
    assert.deepEqual(Object.keys(a), [...keys, 'delivery', 'namespace', ...digests])
    assert.deepEqual([(a as Input).delivery, (a as Input).namespace], ['kustomize', 'core'])
  })
})

describe('the cost of a poll', () => {
  /** How often a poll reads the references of its cluster and the catalog, the first time and once more. */
  async function readsOf(t: TestContext, count: number): Promise<readonly number[]> {
    const idOf = (i: number): string => `c${String(i).padStart(4, '0')}`
    const components = Array.from({ length: count }, (_, i) =>
      component(
        idOf(i),
        [1, 2, 5, 50].filter((back) => back <= i).map((back) => idOf(i - back)),
        i % 7 === 0 ? { delivery: 'helm' } : {},
      ),
    )
    const [, , none] = fleet().clusters
    // One in ten is not assigned, one in ten switched off, one in ten has an override.
    const platform_components = components.flatMap(({ id = '' }, i): JsonObject[] => {
      if (i % 10 === 3) return []
      return [{ id, ...(i % 10 === 5 && { enabled: false }), ...(i % 10 === 7 && { oci_tag: 'v2' }) }]
    })
    const { engine, types } = await start(t, {
      fleet: { platform_components: components, clusters: [{ ...none, platform_components }] },
    })
    const type = types.byEndpoint('platform-components') ?? assert.fail()
    const entry = engine.state.get('clusters', 'none') ?? assert.fail()
    let reads = 0
    const counted = new Proxy(referencesOf(entry.document, type.delivery) as Reference[], {
      get(target, key, receiver) {
        reads++
        return Reflect.get(target, key, receiver)
      },
    })
    const cluster = { ...entry, document: { ...entry.document, platform_components: counted } }
    const view = new Proxy(engine.state, {
      get(target, key) {
        reads++
        const value = Reflect.get(target, key, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const texts: string[] = []
    const found = [1, 2].map(() => {
      reads = 0
      texts.push(renderInputs(servedTo(types, view, cluster.id), types, type, cluster).text)
      return reads
    })
    const plain = renderInputs(servedTo(types, engine.state, entry.id), types, type, entry).text
    assert.deepEqual(texts, [plain, plain])
    assert.equal(JSON.parse(plain).inputs.length, platform_components.length)
    return found
  }

  test('of a cluster with 2,500 components that wait for each other is ten times that of one with 250', async (t) => {
    const [few, many] = [await readsOf(t, 250), await readsOf(t, 2500)]
    for (const [i, reads] of few.entries()) {
      assert.ok(reads > 250, `${reads} reads are counted`)
      const more = (many[i] ?? assert.fail()) / reads
      assert.ok(more < 11, `${reads} reads become ${many[i]}`)
    }
  })
})

/** Writes of all sorts: each may change what dependants wait for, on one cluster or on many. */
const WRITES: readonly Write[] = [
  ['PATCH', '/platform_components/a', { oci_url: HTTPS }],
  ['PATCH', '/clusters/all/platform_components/a', { enabled: false }],
  ['PATCH', '/platform_components/a', { oci_url: OCI, delivery: 'helm' }],
  ['DELETE', '/clusters/some/platform_components/a'],
  ['PATCH', '/platform_components/a', { delivery: null }],
  ['PATCH', '/clusters/all/platform_components/a', { enabled: true }],
  ['PUT', '/clusters/some/platform_components/b', { enabled: false }],
  ['PATCH', '/platform_components/chart', { oci_url: OCI }],
  ['PATCH', '/clusters/some', { cluster_name: 'other' }],
  ['DELETE', '/clusters/all/platform_components/chart'],
  ['PATCH', '/platform_components/chart', { oci_tag: 'v7' }],
  ['PATCH', '/clusters/some/platform_components/b', { enabled: true, oci_tag: 'v8' }],
  ['PATCH', '/platform_components/last-chart', { depends_on: ['chart'] }],
  ['PUT', '/clusters/none/platform_components/last', {}],
  ['PUT', '/clusters/none/platform_components/c', {}],
  ['PATCH', '/platform_components/c', { delivery: 'helm', depends_on: ['oci-chart'] }],
  ['PATCH', '/clusters/some/platform_components/chart', { enabled: true }],
  [
    'POST',
    '/batch?confirm=removals',
    {
      operations: [
        { op: 'patch', type: 'platform_components', id: 'b', patch: { oci_url: HTTPS } },
        { op: 'patch', type: 'platform_components', id: 'chart', patch: { oci_url: HTTPS } },
        { op: 'assign', type: 'platform_components', ref: { id: 'a' }, selector: 'id' },
        { op: 'unassign', type: 'platform_components', id: 'c', clusters: ['all'] },
      ],
    },
  ],
  ['PATCH', '/platform_components/b', { oci_url: OCI }],
  ['DELETE', '/platform_components/oci-chart?cascade=true&confirm=removals'],
  ['DELETE', '/clusters/all'],
]

interface Seen {
  readonly text: string
  readonly etag: string | undefined
  readonly inputs: readonly Input[]
}

async function everyPoll(
  service: TestService,
  clusters = CLUSTERS,
  endpoint?: string,
): Promise<Record<string, Seen>> {
  const seen = await Promise.all(
    clusters.map(async (cluster) => {
      const { text, headers } = await poll(service, cluster, endpoint)
      const { inputs } = JSON.parse(withoutDigests(text))
      return [cluster, { text, etag: headers.etag, inputs }] as const
    }),
  )
  return Object.fromEntries(seen)
}

type Difference = {
  readonly added: string[]
  readonly removed: string[]
  readonly changed: Record<string, string[]>
}

/** What differs between two polls, in the words of an impact: by cluster, and by the fields of an input. */
function differences(before: Record<string, Seen>, after: Record<string, Seen>): Record<string, Difference> {
  const found = Object.keys(before).flatMap((cluster): [string, Difference][] => {
    const had = new Map(before[cluster]?.inputs.map((input) => [input.id, input]))
    const has = new Map(after[cluster]?.inputs.map((input) => [input.id, input]))
    const added = [...has.keys()].filter((id) => !had.has(id)).sort()
    const removed = [...had.keys()].filter((id) => !has.has(id)).sort()
    const changed = [...has].flatMap(([id, input]): [string, string[]][] => {
      const old = had.get(id)
      if (!old || JSON.stringify(old) === JSON.stringify(input)) return []
      const fields = [...new Set([...Object.keys(old), ...Object.keys(input)])]
      return [
        [id, fields.filter((field) => JSON.stringify(old[field]) !== JSON.stringify(input[field])).sort()],
      ]
    })
    if (added.length + removed.length + changed.length === 0) return []
    return [[cluster, { added, removed, changed: Object.fromEntries(changed) }]]
  })
  return Object.fromEntries(found)
}

interface ToldChange {
  readonly id: string
  readonly fields: readonly { readonly path: string }[]
}

interface ToldCluster {
  readonly cluster: string
  readonly endpoint: string
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly ToldChange[]
}

/** The same of an impact. */
function told(details: readonly ToldCluster[], of = 'platform-components'): Record<string, Difference> {
  const ofEndpoint = details.filter(({ endpoint }) => endpoint === of)
  return Object.fromEntries(
    ofEndpoint.map(({ cluster, added, removed, changed }) => [
      cluster,
      {
        added: added.toSorted(),
        removed: removed.toSorted(),
        changed: Object.fromEntries(
          changed.map(({ id, fields }) => [
            id,
            [...new Set(fields.map(({ path }) => path.split('/')[1] ?? ''))].sort(),
          ]),
        ),
      },
    ]),
  )
}

const ORDERS: Record<string, readonly Write[]> = {
  'one after the other': WRITES,
  'from the last to the first': WRITES.toReversed(),
  'the even ones first': [...WRITES.filter((_, i) => i % 2 === 0), ...WRITES.filter((_, i) => i % 2 === 1)],
}

describe('changes of what an input waits for', () => {
  for (const [order, writes] of Object.entries(ORDERS)) {
    test(`are told before and after a write, and change the ETag with the bytes (${order})`, async (t) => {
      const service = await startFleet(t)
      let before = await everyPoll(service)
      let done = 0
      for (const [method, url, body] of writes) {
        const label = `${method} ${url} ${JSON.stringify(body)}`
        const preview = await service.call(method, `${url}${url.includes('?') ? '&' : '?'}dry_run=true`, {
          body,
        })
        const answer = await service.call(method, url, { body })
        assert.equal(preview.status < 300, answer.status < 300, label)
        if (answer.status >= 300) continue
        done++
        const after = await everyPoll(service)
        const expected = differences(before, after)
        assert.deepEqual(told(preview.body.impact.details), expected, label)
        assert.equal(preview.body.impact.clusters, Object.keys(expected).length, label)
        if (answer.headers['x-change-count'] !== '0') {
          const recorded = await service.call('GET', `/revisions/${answer.headers['x-revision']}`)
          assert.deepEqual(told(recorded.body.impact.details), expected, label)
        }
        for (const cluster of CLUSTERS) {
          const [was, is] = [before[cluster], after[cluster]]
          assert.equal(was?.etag === is?.etag, was?.text === is?.text, `${label} ${cluster}`)
        }
        before = after
      }
      assert.ok(done > 12, `${done} writes`)
    })
  }

  test('are told by a preview field by field: a catalog entry that becomes a chart', async (t) => {
    const service = await startFleet(t)
    const url = '/platform_components/a?dry_run=true'
    const { body } = await service.call('PATCH', url, { body: { oci_url: HTTPS } })
    const fields = (before: string[], after: string[]) => [{ path: '/depends_on', before, after }]
    const source = [{ path: '/source/oci_url', before: OCI, after: HTTPS }]
    const { clusters, endpoints, details } = body.impact
    assert.equal(clusters, 2)
    assert.deepEqual(endpoints, { 'platform-components': { clusters: 2, added: 0, removed: 0, changed: 8 } })
    assert.deepEqual(details, [
      {
        cluster: 'all',
        environment: 'dev',
        endpoint: 'platform-components',
        added: [],
        removed: [],
        changed: [
          { id: 'a', fields: source },
          { id: 'b', fields: fields(['a'], []) },
          { id: 'c', fields: fields(['b', 'a'], ['b']) },
          { id: 'last', fields: fields(['a', 'b', 'c'], ['b', 'c']) },
          { id: 'last-chart', fields: fields(['chart', 'oci-chart'], ['a', 'chart', 'oci-chart']) },
        ],
      },
      {
        cluster: 'some',
        environment: 'dev',
        endpoint: 'platform-components',
        added: [],
        removed: [],
        changed: [
          { id: 'last-chart', fields: fields([], ['a']) },
          { id: 'c', fields: fields(['a'], []) },
          { id: 'a', fields: source },
        ],
      },
    ])
    assert.equal((await waits(service, 'some')).c?.toString(), 'a')
  })

  for (const [what, on, body] of [
    ['switched off', 'PATCH', { enabled: false }],
    ['taken away', 'DELETE', undefined],
  ] as const) {
    test(`are told by a preview field by field: a component that is ${what}`, async (t) => {
      const service = await startFleet(t)
      const url = '/clusters/some/platform_components/a?dry_run=true'
      const preview = await service.call(on, url, { body: body as Json | undefined })
      const [{ added, removed, changed }] = preview.body.impact.details
      assert.deepEqual(added, [])
      assert.deepEqual(removed, on === 'DELETE' ? ['a'] : [])
      const c = changed.find(({ id }: { id: string }) => id === 'c')
      assert.deepEqual(c.fields, [{ path: '/depends_on', before: ['a'], after: [] }])
      const how = on === 'DELETE' ? 'is not assigned' : 'is switched off'
      assert.ok(preview.body.warnings.includes(`cluster "some": "c" depends on "a", which ${how}`))
      const answer = await service.call(on, '/clusters/some/platform_components/a', {
        body: body as Json | undefined,
      })
      assert.match(String(answer.headers.warning), new RegExp(`c.* depends on .*a.*, which ${how}`))
    })
  }

  test('leave the polls of clusters alone that have none of it', async (t) => {
    const service = await startFleet(t)
    await run(service, ['PUT', '/clusters/none/platform_components/b', {}])
    const before = await poll(service, 'none')
    await run(
      service,
      ['PATCH', '/platform_components/a', { oci_url: HTTPS }],
      ['PATCH', '/platform_components/c', { oci_tag: 'v9' }],
      ['PATCH', '/clusters/all/platform_components/a', { enabled: false }],
    )
    const after = await poll(service, 'none')
    assert.deepEqual([after.text, after.headers.etag], [before.text, before.headers.etag])
    const again = await service.call('GET', pollUrl('none'), {
      headers: { 'if-none-match': String(before.headers.etag) },
    })
    assert.equal(again.status, 304)
  })

  test('come back byte by byte with what made them', async (t) => {
    const service = await startFleet(t)
    const before = await everyPoll(service)
    for (const [there, back] of [
      [{ oci_url: HTTPS }, { oci_url: OCI }],
      [{ delivery: 'helm' }, { delivery: null }],
    ] as const) {
      await run(service, ['PATCH', '/platform_components/a', there])
      assert.notDeepEqual(await everyPoll(service), before)
      await run(service, ['PATCH', '/platform_components/a', back])
      assert.deepEqual(await everyPoll(service), before)
    }
  })

  test('are read back as they were at any revision', async (t) => {
    const service = await startFleet(t)
    const history: Record<string, Seen>[] = []
    history[Number((await poll(service, 'none')).headers['x-revision'])] = await everyPoll(service)
    for (const [method, url, body] of WRITES.slice(0, -1)) {
      const answer = await service.call(method, url, { body })
      if (answer.status < 300) history[Number(answer.headers['x-revision'])] = await everyPoll(service)
    }
    for (const [at, seen] of Object.entries(history)) {
      for (const cluster of CLUSTERS) {
        const past = await service.call('GET', `/clusters/${cluster}/inputs/platform-components?at=${at}`)
        assert.equal(past.text, seen[cluster]?.text, `${cluster} at ${at}`)
        assert.equal(past.headers.etag, seen[cluster]?.etag)
      }
    }
  })
})

describe('an explanation', () => {
  interface Field {
    readonly path: string
    readonly value: Json
    readonly source: string
    readonly document: string | null
    readonly revision: number | null
  }

  async function explained(service: TestService, cluster: string, id: string, at = ''): Promise<Field> {
    const url = `/clusters/${cluster}/inputs/platform-components?explain=true${at === '' ? '' : `&at=${at}`}`
    const { body } = await service.call('GET', url)
    const input = body.inputs.find((other: { id: string }) => other.id === id)
    const field = input?.fields.find(({ path }: Field) => path === '/depends_on')
    return field ?? assert.fail(`nothing is told of ${id}`)
  }

  test('of what an input waits for has the value of the poll, now and then', async (t) => {
    const service = await startFleet(t)
    for (const write of WRITES.slice(0, 8)) await service.call(write[0], write[1], { body: write[2] })
    const revision = (await poll(service, 'all')).headers['x-revision']
    for (const at of ['', '1', '3', String(revision)]) {
      for (const cluster of ['all', 'some']) {
        const query = at === '' ? '' : `?at=${at}`
        const { body } = await service.call('GET', `/clusters/${cluster}/inputs/platform-components${query}`)
        for (const { id, depends_on } of body.inputs)
          assert.deepEqual(
            (await explained(service, cluster, id, at)).value,
            depends_on,
            `${cluster} ${id} at ${at}`,
          )
      }
    }
  })

  test('names the catalog for what is whole, and the cluster for what it lacks', async (t) => {
    const service = await startFleet(t)
    const where = async (cluster: string, id: string) => {
      const { source, document, revision } = await explained(service, cluster, id)
      return `${source} ${document} ${revision}`
    }
    assert.equal(await where('all', 'b'), 'catalog platform_components/b 1')
    assert.equal(await where('some', 'c'), 'cluster clusters/some 1')
    await run(service, ['PATCH', '/clusters/all/platform_components/a', { enabled: false }])
    assert.equal(await where('all', 'b'), 'cluster clusters/all 2')
    await run(service, ['PATCH', '/clusters/all', { node_count: 3 }])
    assert.equal(await where('all', 'b'), 'cluster clusters/all 2')
    await run(service, ['PATCH', '/clusters/all/platform_components/a', { enabled: true }])
    assert.equal(await where('all', 'b'), 'catalog platform_components/b 1')
    await run(service, ['DELETE', '/clusters/all/platform_components/a'])
    assert.equal(await where('all', 'b'), 'cluster clusters/all 5')
  })
})

describe('a type of your own', () => {
  function gadgets(t: TestContext, flux: string): string {
    const folder = temporaryFolder(t)
    const text = `
kind: gadgets
apiVersion: v1
schema:
  type: array
  key: { name: id }
  x-flux: { endpoint: gadgets, assigned_by: gadgets, ${flux} }
  items:
    type: object
    properties:
      needs: { type: array, items: { type: string }, default: [] }
      parent: { type: string }
      mode: { type: string }
`
    writeFileSync(join(folder, 'gadget.yaml'), text)
    return folder
  }

  const WAITS =
    'references: { needs: gadgets, parent: gadgets }, overrides: [needs, mode], input: [needs, parent, mode]'

  async function startGadgets(t: TestContext, flux: string, references: JsonObject[]): Promise<TestService> {
    const [cluster] = fleet().clusters.slice(2)
    return start(t, {
      types: builtInTypes(gadgets(t, flux)),
      fleet: {
        gadgets: [
          { id: 'x' },
          { id: 'y', needs: ['x'], parent: 'x' },
          { id: 'z', needs: ['x', 'y'], parent: 'y', mode: 'fast' },
          { id: 'w' },
        ],
        clusters: [{ ...cluster, gadgets: references }],
      },
    })
  }

  const given = async (service: TestService): Promise<unknown> =>
    JSON.parse(withoutDigests((await poll(service, 'none', 'gadgets')).text)).inputs.map(
      ({ cluster: _cluster, ...input }: Input) => input,
    )

  test('waits for others of its own kind in every field that names them; a single one is left out', async (t) => {
    const service = await startGadgets(t, WAITS, [{ id: 'z' }, { id: 'y' }])
    assert.deepEqual(await given(service), [
      { id: 'z', needs: ['y'], parent: 'y', mode: 'fast' },
      { id: 'y', needs: [] },
    ])
  })

  test('waits for what its cluster says instead, of what is there', async (t) => {
    const service = await startGadgets(t, WAITS, [
      { id: 'z', needs: ['y', 'x', 'ghost'] },
      { id: 'y' },
      { id: 'x' },
    ])
    const [z] = (await given(service)) as Input[]
    assert.deepEqual(z?.needs, ['y', 'x'])
  })

  test('waits only among its sort, if it names sorts', async (t) => {
    const all = [{ id: 'z' }, { id: 'y' }, { id: 'x' }]
    const service = await startGadgets(t, `${WAITS}, waits_among: { mode: ^fast$ }`, all)
    assert.deepEqual(await waitsOf(service), { z: [], y: ['x'], x: [] })
    await run(service, ['PATCH', '/gadgets/y', { mode: 'fast' }])
    assert.deepEqual(await waitsOf(service), { z: ['y'], y: [], x: [] })
    await run(service, ['PATCH', '/gadgets/x', { mode: 'faster' }])
    assert.deepEqual(await waitsOf(service), { z: ['y'], y: [], x: [] })
  })

  async function waitsOf(service: TestService): Promise<Record<string, Json>> {
    const inputs = (await given(service)) as Input[]
    return Object.fromEntries(inputs.map(({ id, needs = null }) => [id, needs]))
  }

  test('is of the sort that its cluster makes it', async (t) => {
    const all = [{ id: 'z' }, { id: 'y', mode: 'fast' }, { id: 'x' }]
    const service = await startGadgets(t, `${WAITS}, waits_among: { mode: ^fast$ }`, all)
    assert.deepEqual(await waitsOf(service), { z: ['y'], y: [], x: [] })
  })

  const CHANGES: readonly (readonly [what: string, write: Write, expected: string[]])[] = [
    [
      'becomes of another sort in the catalog',
      ['PATCH', '/gadgets/x', { mode: 'fast' }],
      ['w', 'x', 'y', 'z'],
    ],
    [
      'becomes of another sort on its cluster',
      ['PATCH', '/clusters/none/gadgets/x', { mode: 'fast' }],
      ['w', 'x', 'y', 'z'],
    ],
    ['is taken away', ['DELETE', '/clusters/none/gadgets/x'], ['w', 'y']],
  ]

  for (const [what, write, expected] of CHANGES) {
    test(`has its changes told when what it waits for ${what}`, async (t) => {
      const references = [{ id: 'z' }, { id: 'y' }, { id: 'x' }, { id: 'w', needs: ['x'] }]
      const service = await startGadgets(t, `${WAITS}, waits_among: { mode: ^fast$ }`, references)
      const before = await everyPoll(service, ['none'], 'gadgets')
      const [method, url, body] = write
      const preview = await service.call(method, `${url}?dry_run=true`, { body })
      await run(service, write)
      const found = differences(before, await everyPoll(service, ['none'], 'gadgets'))
      assert.deepEqual(Object.keys(found.none?.changed ?? {}).sort(), expected)
      assert.deepEqual(told(preview.body.impact.details, 'gadgets'), found)
    })
  }

  test('is refused when its sorts are of no field, or of no pattern', (t) => {
    for (const [sorts, says] of [
      [
        '{ colour: red }',
        /gadget\.yaml: x-flux\.waits_among names "colour", which is not one of needs, parent, mode/,
      ],
      ["{ mode: '(' }", /Invalid regular expression/],
      ["{ mode: '' }", /\/schema\/x-flux\/waits_among\/mode/],
      ['[mode]', /\/schema\/x-flux\/waits_among must be object/],
    ] as const) {
      const loaded = loadTypes([RESOURCES, gadgets(t, `${WAITS}, waits_among: ${sorts}`)])
      assert.ok(!loaded.ok, sorts)
      assert.match(loaded.problems.join('\n'), says)
    }
  })
})

type Problems = readonly (readonly [path: string, says: RegExp])[]

/** Exactly these problems, whatever their order. */
function assertRefused(answer: Answer, problems: Problems, label: string): void {
  assert.equal(answer.status, 400, `${label}: ${answer.text}`)
  assertProblem(answer, 400, 'validation_error')
  const details: readonly { path: string; message: string }[] = answer.body.details
  assert.deepEqual(
    details.map(({ path }) => path).sort(),
    problems.map(([path]) => path).sort(),
    `${label}: ${answer.text}`,
  )
  for (const [path, says] of problems)
    assert.ok(
      details.some((detail) => detail.path === path && says.test(detail.message)),
      `${label}: ${answer.text}`,
    )
}

describe('how a component is delivered', () => {
  const NOT_KUSTOMIZE = /^must be one of helm, not "kustomize"$/
  const URL_PATTERN = /^must match \^\(oci\|https\?\):\/\/.*, not /

  test('is taken in every way that Flux can install it', async (t) => {
    const service = await startFleet(t)
    let n = 0
    for (const more of [
      { oci_url: OCI },
      { oci_url: OCI, delivery: 'kustomize' },
      { oci_url: OCI, delivery: 'helm' },
      { oci_url: OCI, delivery: null },
      { oci_url: HTTPS },
      { oci_url: HTTPS, delivery: 'helm' },
      { oci_url: 'http://charts.example.com', delivery: 'helm', namespace: 'apps' },
    ]) {
      const answer = await service.call('POST', '/platform_components', {
        body: component(`new-${n++}`, [], more),
      })
      assert.equal(answer.status, 201, answer.text)
      assert.equal(answer.body.delivery, more.delivery ?? undefined)
    }
  })

  test('is refused where it cannot work, naming the field and what is right', async (t) => {
    const service = await startFleet(t)
    const cases: readonly (readonly [more: JsonObject, problems: Problems])[] = [
      [{ oci_url: HTTPS, delivery: 'kustomize' }, [['/delivery', NOT_KUSTOMIZE]]],
      [{ oci_url: 'http://charts.example.com', delivery: 'kustomize' }, [['/delivery', NOT_KUSTOMIZE]]],
      [{ delivery: 'flux' }, [['/delivery', /^must be one of kustomize, helm, not "flux"$/]]],
      [
        { delivery: 5 },
        [
          ['/delivery', /^must be a string, not 5$/],
          ['/delivery', /one of kustomize, helm/],
        ],
      ],
      [{ oci_url: 'registry.example.com/a' }, [['/oci_url', URL_PATTERN]]],
      [{ oci_url: 'ftp://a' }, [['/oci_url', URL_PATTERN]]],
      [{ oci_url: 'OCI://a' }, [['/oci_url', URL_PATTERN]]],
      [{ oci_url: 'oci://' }, [['/oci_url', URL_PATTERN]]],
      [{ oci_url: 'oci://a b' }, [['/oci_url', URL_PATTERN]]],
      [{ oci_url: 'oci://a\n' }, [['/oci_url', URL_PATTERN]]],
      [{ namespace: 'Not_A_Label' }, [['/namespace', /^must be an RFC 1123 label: .*, not "Not_A_Label"$/]]],
      [{ namespace: '' }, [['/namespace', /RFC 1123 label/]]],
    ]
    for (const [more, problems] of cases) {
      const label = JSON.stringify(more)
      const body = component('new', [], more)
      assertRefused(await service.call('POST', '/platform_components', { body }), problems, label)
      assertRefused(await service.call('PATCH', '/platform_components/a', { body: more }), problems, label)
      const operations = [{ op: 'patch', type: 'platform_components', id: 'a', patch: more }]
      const below = problems.map(([path, says]) => [`/operations/0/patch${path}`, says] as const)
      assertRefused(await service.call('POST', '/batch', { body: { operations } }), below, label)
    }
  })

  test('is refused when only one half of it changes', async (t) => {
    const service = await startFleet(t)
    const move = await service.call('PATCH', '/platform_components/chart', {
      body: { delivery: 'kustomize' },
    })
    assertRefused(move, [['/delivery', NOT_KUSTOMIZE]], 'delivery')
    await run(service, ['PATCH', '/platform_components/a', { delivery: 'kustomize' }])
    const half = await service.call('PATCH', '/platform_components/a', { body: { oci_url: HTTPS } })
    assertRefused(half, [['/delivery', NOT_KUSTOMIZE]], 'oci_url')
    await run(service, ['PATCH', '/platform_components/a', { oci_url: HTTPS, delivery: null }])
  })

  test('is not blamed for a URL that is missing or no text', async (t) => {
    const service = await startFleet(t)
    const { oci_url: _url, ...rest } = component('new', [], { delivery: 'kustomize' })
    const missing = await service.call('POST', '/platform_components', { body: rest })
    assertRefused(missing, [['/oci_url', /^is required$/]], 'missing')
    const number = await service.call('POST', '/platform_components', { body: { ...rest, oci_url: 5 } })
    assertRefused(number, [['/oci_url', /^must be a string, not 5$/]], 'a number')
  })
})

describe('a subject', () => {
  const ACCOUNT = { kind: 'ServiceAccount', name: 'robot' }

  test('that is a service account has a namespace; others may have one', async (t) => {
    const service = await startFleet(t)
    const subjects = [
      { ...ACCOUNT, namespace: 'team' },
      { kind: 'User', name: 'ann' },
      { kind: 'Group', name: 'all', apiGroup: 'rbac.authorization.k8s.io', namespace: 'team' },
    ]
    await run(
      service,
      ['POST', '/rolebindings', { id: 'new', role: 'view', subjects, namespace: 'team' }],
      ['PUT', '/clusters/all/rolebindings/admins', { subjects }],
    )
    const { body } = await poll(service, 'all', 'rolebindings')
    assert.deepEqual(body.inputs[0].subjects, subjects)
  })

  test('that is a service account without one is refused everywhere, with its place', async (t) => {
    const service = await startFleet(t)
    const subjects = [{ kind: 'User', name: 'ann' }, ACCOUNT, { ...ACCOUNT, namespace: 'No_Label' }]
    const problems: Problems = [
      ['/subjects/1/namespace', /^is required$/],
      ['/subjects/2/namespace', /^must be an RFC 1123 label: .*, not "No_Label"$/],
    ]
    const below = (at: string): Problems => problems.map(([path, says]) => [`${at}${path}`, says])
    const cases: readonly (readonly [on: string, url: string, body: Json, at: string])[] = [
      ['POST', '/rolebindings', { id: 'new', role: 'view', subjects }, ''],
      ['PUT', '/rolebindings/admins', { role: 'view', subjects }, ''],
      ['PATCH', '/rolebindings/admins', { subjects }, ''],
      ['PUT', '/clusters/all/rolebindings/admins', { subjects }, ''],
      ['PATCH', '/clusters/all', { rolebindings: [{ id: 'admins', subjects }] }, '/rolebindings/0'],
      [
        'POST',
        '/batch',
        {
          operations: [
            { op: 'assign', type: 'rolebindings', ref: { id: 'admins', subjects }, clusters: ['all'] },
          ],
        },
        '/operations/0/ref',
      ],
    ]
    for (const [on, url, body, at] of cases)
      assertRefused(await service.call(on, url, { body }), below(at), `${on} ${url}`)
  })

  test('without a kind is told of its kind alone', async (t) => {
    const service = await startFleet(t)
    const body = { id: 'new', role: 'view', subjects: [{ name: 'ann' }] }
    const answer = await service.call('POST', '/rolebindings', { body })
    assertRefused(answer, [['/subjects/0/kind', /^is required$/]], 'no kind')
  })
})

test('whether a namespace goes with its assignment is enabled or disabled, or not said', async (t) => {
  const service = await startFleet(t)
  const inputs = async () => (await poll(service, 'none', 'namespaces')).body.inputs[0]
  await run(service, ['PUT', '/clusters/none/namespaces/team', {}])
  assert.ok(!Object.hasOwn(await inputs(), 'prune'))
  await run(service, ['PATCH', '/namespaces/team', { prune: 'disabled' }])
  assert.equal((await inputs()).prune, 'disabled')
  await run(service, ['PATCH', '/clusters/none/namespaces/team', { prune: 'enabled' }])
  assert.equal((await inputs()).prune, 'enabled')
  assert.deepEqual(Object.keys(await inputs()).slice(-3), ['prune', 'digest', 'answer_digest'])
  for (const prune of ['yes', true, '']) {
    const answer = await service.call('PATCH', '/namespaces/team', { body: { prune } })
    assert.equal(answer.status, 400, answer.text)
    assert.match(answer.body.message, /^\/prune must be /)
  }
})

describe('the path of a value', () => {
  const CHARTS = ['chart', 'oci-chart', 'last-chart']
  const GOOD = [
    'a',
    '0',
    'replicaCount',
    'CLUSTER_NAME',
    '_private',
    'with-dash',
    'image.tag',
    'a.b.c.d.e',
    'hosts[0]',
    'hosts[0].name',
    'a[0][12].b[9999]',
    'ui/replicas',
    'annotations.example\\.com/team',
    'a\\.b\\.c',
    'x'.repeat(250),
  ]
  const BAD = [
    '',
    ' ',
    'a b',
    'a ',
    '.a',
    'a.',
    'a..b',
    '[0]',
    'a[]',
    'a[x]',
    'a[-1]',
    'a[0',
    'a]',
    'a.[0]',
    'a[0]b',
    'a[12345]',
    'a[00001]',
    'hosts[65537].name',
    'a=b',
    'a,b',
    'a{b}',
    'a:b',
    'a"b',
    "a'b",
    'a\nb',
    'a\n',
    '$a',
    '<< a >>',
    'ünï',
    'a#b',
    'a*',
    'x'.repeat(251),
  ]
  const SAYS = /^must be a variable or a Helm path of at most 250 characters, such as replicaCount, .*, not "/

  function escaped(key: string): string {
    return key.replaceAll('~', '~0').replaceAll('/', '~1')
  }

  test('is taken as Helm writes it, on every way in', async (t) => {
    const service = await startFleet(t)
    for (const key of GOOD) {
      const values = { [key]: 'x' }
      const { body: cluster } = await service.call('GET', '/clusters/all')
      await run(
        service,
        ['PATCH', '/clusters/all/patches/chart', values],
        ['PUT', '/clusters/all/patches/oci-chart', values],
        ['PUT', '/clusters/all', { ...cluster, patches: { 'last-chart': values } }],
        ['PATCH', '/clusters/all', { patches: { chart: values } }],
        [
          'POST',
          '/batch',
          { operations: [{ op: 'patch_values', component: 'oci-chart', values, clusters: ['all'] }] },
        ],
      )
      const inputs = await inputsOf(service, 'all')
      for (const { id, patches } of inputs)
        assert.deepEqual(patches, CHARTS.includes(id) ? values : {}, `${id} ${key}`)
      await run(service, [
        'PATCH',
        '/clusters/all',
        { patches: { chart: null, 'oci-chart': null, 'last-chart': null } },
      ])
    }
  })

  test('is refused otherwise, on every way in, with its place and what is right', async (t) => {
    const service = await startFleet(t)
    const { body: cluster } = await service.call('GET', '/clusters/all')
    const before = await poll(service, 'all')
    for (const key of BAD) {
      const values = { [key]: 'x', fine: 'y' }
      const ways: readonly (readonly [on: string, url: string, body: Json, at: string])[] = [
        ['PATCH', '/clusters/all/patches/chart', values, ''],
        ['PUT', '/clusters/all/patches/chart', values, ''],
        ['PUT', '/clusters/all', { ...cluster, patches: { chart: values } }, '/patches/chart'],
        ['PATCH', '/clusters/all', { patches: { chart: values } }, '/patches/chart'],
        [
          'POST',
          '/clusters',
          { ...cluster, id: 'new', cluster_dns: 'new', patches: { chart: values } },
          '/patches/chart',
        ],
        [
          'POST',
          '/batch',
          { operations: [{ op: 'patch_values', component: 'chart', values, clusters: ['all'] }] },
          '/operations/0/values',
        ],
        [
          'POST',
          '/batch',
          {
            operations: [{ op: 'patch', type: 'clusters', id: 'all', patch: { patches: { chart: values } } }],
          },
          '/operations/0/patch/patches/chart',
        ],
      ]
      for (const [on, url, body, at] of ways) {
        const answer = await service.call(on, url, { body })
        assertRefused(answer, [[`${at}/${escaped(key)}`, SAYS]], `${on} ${url} ${JSON.stringify(key)}`)
      }
    }
    assert.equal((await poll(service, 'all')).headers['x-revision'], before.headers['x-revision'])
  })

  test('is told of once for each that is wrong', async (t) => {
    const service = await startFleet(t)
    const body = { 'a b': 'x', 'c d': 'y', fine: 'z' }
    const answer = await service.call('PATCH', '/clusters/all/patches/chart', { body })
    assertRefused(
      answer,
      [
        ['/a b', SAYS],
        ['/c d', SAYS],
      ],
      'two',
    )
  })

  test('holds a backslash before a dot only, and no other is ever taken for it', async (t) => {
    const service = await startFleet(t)
    const keys = ['b\\\\.c', 'b\\', 'b\\/c', 'b\\nc', 'b\\\\']
    for (const key of keys) {
      const answer = await service.call('PUT', '/clusters/all/patches/chart', {
        body: { a: '1', [key]: '2' },
      })
      assertRefused(answer, [['', /^has the key ".*": a backslash may stand only before a dot$/]], key)
    }
    for (const raw of ['{"a":"1","b\\u005c":"2"}', '{"a":"1","b\\u005C.c":"2"}']) {
      assertRefused(
        await service.call('PUT', '/clusters/all/patches/chart', { raw }),
        [['', /backslash/]],
        raw,
      )
    }
    const values = { a: '\\\\ "x": "\\', 'b\\.cd': '2', 'b/c': '3' }
    await run(service, ['PUT', '/clusters/all/patches/chart', values])
    assert.deepEqual((await service.call('GET', '/clusters/all/patches/chart')).body, values)
  })

  test('may be wrong when it is taken away', async (t) => {
    const service = await startFleet(t)
    await run(service, ['PATCH', '/clusters/all/patches/chart', { fine: 'x' }])
    await run(service, ['PATCH', '/clusters/all/patches/chart', { 'not fine': null }])
    const { body } = await service.call('GET', '/clusters/all/patches/chart')
    assert.deepEqual(body, { fine: 'x' })
  })
})
