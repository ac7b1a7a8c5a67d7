// Fleets, their changes and strategies at random.
import fc from 'fast-check'
import type { Json } from '../src/base/json.ts'
import type { Command } from '../src/domain/commands/command.ts'
import type { Strategy, WaveSpec } from '../src/domain/rollouts/rollout.ts'

export const CLUSTER_IDS = ['c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6'] as const
/** As from JSON: with Object's prototype. */
const PLAIN = { noNullPrototype: true }

const CHART = { component_path: 'p', component_version: '1', oci_url: 'oci://x', oci_tag: 'v1' }

/** What every fleet begins with. */
export function firstFleet(): Command[] {
  const create = (type: string, document: Json): Command => ({ op: 'create', type, document, path: '' })
  const clusters = CLUSTER_IDS.slice(0, 6).map((id, i) => ({
    id,
    cluster_name: id,
    cluster_dns: `${id}.example.com`,
    environment: ['dev', 'qa', 'prod'][i % 3] as string,
    labels: { ring: String(i % 2) },
    platform_components: [{ id: 'a' }, ...(i === 1 ? [] : [{ id: 'b' }])],
    namespaces: i === 2 ? [] : [{ id: 'n0' }],
    patches: i === 3 ? { a: { replicas: '2', color: 'red' } } : {},
  }))
  return [
    create('platform_components', { id: 'a', ...CHART, delivery: 'helm' }),
    create('platform_components', { id: 'b', ...CHART, delivery: 'helm', depends_on: ['a'] }),
    create('platform_components', { id: 'c', ...CHART, delivery: 'helm' }),
    create('namespaces', { id: 'n0', labels: { x: '1', y: '1' } }),
    create('namespaces', { id: 'n1' }),
    create('rolebindings', { id: 'r0', role: 'view', subjects: [] }),
    ...clusters.map((cluster) => create('clusters', cluster)),
  ]
}

export const cluster = fc.constantFrom(...CLUSTER_IDS)
export const component = fc.constantFrom('a', 'a', 'a', 'b', 'b', 'b', 'c', 'c', 'd')
const target = fc.constantFrom(
  ...(['a', 'b', 'b', 'c', 'c', 'c', 'd'] as const).map((id) => ['platform_components', id] as const),
  ['namespaces', 'n0'] as const,
  ['namespaces', 'n1'] as const,
  ['rolebindings', 'r0'] as const,
)
const version = fc.constantFrom('v1', 'v2', 'v3')
const values = fc.dictionary(
  fc.constantFrom('replicas', 'color', 'ui.color', '0', 'a/b', 'a~b'),
  fc.option(fc.constantFrom('1', '2', 'é')),
  { ...PLAIN, minKeys: 1, maxKeys: 2 },
)
const override = fc.record(
  { oci_tag: fc.option(version), enabled: fc.boolean() },
  { ...PLAIN, requiredKeys: [] },
)
const selector = fc.constantFrom(
  'environment=dev',
  'environment!=prod',
  'ring=1',
  'ring=0',
  'id',
  'id',
  'uses.platform_components=b',
)

function patch(type: string, id: string, changes: Json): Command {
  return { op: 'patch', type, id, patch: changes, format: 'merge', path: '' }
}

const componentPatch = fc
  .tuple(
    component,
    fc.record(
      {
        oci_tag: version,
        component_path: fc.constantFrom('p', 'q'),
        depends_on: fc.uniqueArray(component, { maxLength: 2 }),
        delivery: fc.constantFrom('helm', 'kustomize', null),
      },
      { ...PLAIN, requiredKeys: [] },
    ),
  )
  .map(([id, changes]) => patch('platform_components', id, changes))

const namespacePatch = fc
  .tuple(
    fc.constantFrom('n0', 'n1'),
    fc.dictionary(fc.constantFrom('x', 'y', 'z'), fc.option(fc.constantFrom('1', '2')), PLAIN),
  )
  .map(([id, labels]) => patch('namespaces', id, { labels }))

const clusterPatch = fc.oneof(
  fc
    .tuple(cluster, fc.uniqueArray(component, { maxLength: 3 }))
    .map(([id, ids]) =>
      patch('clusters', id, { platform_components: ids.map((one) => ({ id: one })), patches: {} }),
    ),
  fc
    .tuple(cluster, component, values)
    .map(([id, of, some]) => patch('clusters', id, { patches: { [of]: some } })),
  fc
    .tuple(
      cluster,
      fc.dictionary(fc.constantFrom('ring', 'zone'), fc.option(fc.constantFrom('0', '1')), PLAIN),
    )
    .map(([id, labels]) => patch('clusters', id, { labels })),
  fc
    .tuple(cluster, fc.constantFrom('one', 'two'), fc.constantFrom('dev', 'prod'))
    .map(([id, cluster_name, environment]) => patch('clusters', id, { cluster_name, environment })),
)

const definition: fc.Arbitrary<Command> = fc.oneof(
  fc
    .tuple(component, version, fc.uniqueArray(component, { maxLength: 1 }))
    .map(([id, oci_tag, depends_on]) => ({ id, ...CHART, oci_tag, depends_on }))
    .chain((document) =>
      fc.constantFrom<Command>(
        { op: 'create', type: 'platform_components', document, path: '' },
        { op: 'replace', type: 'platform_components', id: document.id, document, path: '' },
      ),
    ),
  fc
    .tuple(target, fc.boolean())
    .map(([[type, id], cascade]): Command => ({ op: 'delete', type, id, cascade, purge: false, path: '' })),
)

const assignment: fc.Arbitrary<Command> = fc
  .oneof(
    {
      weight: 3,
      arbitrary: fc.tuple(target, cluster, override, fc.constantFrom('replace', 'merge', 'ensure')),
    },
    fc.tuple(target, cluster, override, fc.constant('unassign')),
  )
  .map(([[type, id], on, fields, how]): Command => {
    if (how === 'unassign') return { op: 'unassign', type, cluster: on, id, path: '' }
    const reference = type === 'platform_components' ? fields : {}
    return { op: 'assign', type, cluster: on, id, reference, how: how as 'ensure', path: '' }
  })

const onMany: fc.Arbitrary<Command> = fc
  .tuple(selector, target, override, values, fc.nat({ max: 3 }))
  .map(([chosen, [type, id], fields, some, kind]): Command => {
    const base = { op: 'for_clusters', path: '' } as const
    const targets = { selector: chosen, allowEmpty: false }
    const having = { ...targets, having: { type, id } }
    const reference = type === 'platform_components' ? fields : {}
    if (kind === 0) return { ...base, targets: having, command: { op: 'unassign', type, id, path: '' } }
    if (kind === 1 && type === 'platform_components')
      return {
        ...base,
        targets: having,
        command: { op: 'patch_values', component: id, values: some, merge: true, path: '' },
      }
    if (kind === 2)
      return {
        ...base,
        targets,
        command: {
          op: 'patch',
          type: 'clusters',
          patch: { labels: { zone: '1' } },
          format: 'merge',
          path: '',
        },
      }
    return { ...base, targets, command: { op: 'assign', type, id, reference, how: 'ensure', path: '' } }
  })

/** What can be rolled out. */
const change: fc.Arbitrary<Command> = fc.oneof(
  { weight: 4, arbitrary: componentPatch },
  { weight: 2, arbitrary: namespacePatch },
  { weight: 2, arbitrary: clusterPatch },
  { weight: 2, arbitrary: definition },
  { weight: 4, arbitrary: assignment },
  { weight: 3, arbitrary: onMany },
  {
    weight: 3,
    arbitrary: fc.tuple(cluster, component, values, fc.boolean()).map(
      ([on, of, some, merge]): Command => ({
        op: 'patch_values',
        cluster: on,
        component: of,
        values: some,
        merge,
        path: '',
      }),
    ),
  },
)

/** What is written at once only. */
const clusterLife: fc.Arbitrary<Command> = fc.oneof(
  cluster.map(
    (id): Command => ({ op: 'delete', type: 'clusters', id, cascade: false, purge: false, path: '' }),
  ),
  cluster.map((id): Command => ({ op: 'restore', type: 'clusters', id, path: '' })),
  fc.tuple(cluster, fc.uniqueArray(component, { maxLength: 2 })).map(
    ([id, ids]): Command => ({
      op: 'create',
      type: 'clusters',
      document: {
        id,
        cluster_name: id,
        cluster_dns: `${id}.example.com`,
        environment: 'dev',
        platform_components: ids.map((one) => ({ id: one })),
      },
      path: '',
    }),
  ),
)

export const changes = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(change) },
  fc.array(change, { minLength: 2, maxLength: 3 }),
)
export const writes = fc.oneof({ weight: 4, arbitrary: changes }, fc.tuple(clusterLife))

const gates = fc.constantFrom<WaveSpec['gates'][]>(
  undefined,
  { served_percent: 100 },
  { applied_percent: 50, failures: 1 },
  { applied_percent: 100, failures: 0, soak_s: 600 },
  { healthy_percent: 100, failures: '50%' },
)
const who = fc.oneof(
  fc.constantFrom('environment=dev', 'ring=1', 'environment!=dev').map((text) => ({ selector: text })),
  fc.constantFrom(10, 34, 50, 100).map((percent) => ({ percent })),
  fc.constantFrom(1, 2).map((count) => ({ count })),
  fc.subarray(['c0', 'c1', 'c2', 'c3'], { minLength: 1 }).map((clusters) => ({ clusters })),
)
const wave = fc.record(
  {
    who,
    gates,
    max_concurrent: fc.constantFrom(1, 2),
    deadline_s: fc.constantFrom(1, 600, 3600),
    approval: fc.constantFrom<WaveSpec['approval'][]>(
      { before: { count: 1 } },
      { before: { count: 2, not_starter: true, expires_s: 600 } },
      { after: { count: 1 } },
    ),
  },
  { ...PLAIN, requiredKeys: ['who'] },
)
const rest = wave.map(({ who: _, ...other }) => ({ ...other, who: { rest: true } as const }))

export const strategy: fc.Arbitrary<Strategy> = fc
  .record(
    {
      waves: fc.tuple(fc.array(wave, { maxLength: 3 }), fc.option(rest, { nil: undefined, freq: 2 })),
      on_failure: fc.constantFrom('pause', 'abort'),
      bake_s: fc.constantFrom(0, 600),
      stragglers: fc.constantFrom('follow', 'hold'),
    },
    { ...PLAIN, requiredKeys: ['waves'] },
  )
  .map(({ waves: [some, last], ...others }) => {
    const named = new Set<string>()
    const all = [...some, ...(last ? [last] : [])].map(({ who: by, ...more }, i): WaveSpec => {
      // The same id in two waves is an error.
      const mine =
        'clusters' in by ? { clusters: by.clusters.filter((id) => !named.has(id) && named.add(id)) } : by
      return JSON.parse(JSON.stringify({ name: `w${i}`, ...mine, ...more }))
    })
    return { waves: all.length > 0 ? all : [{ name: 'all', rest: true }], ...others }
  })
