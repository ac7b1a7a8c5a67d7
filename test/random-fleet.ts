// Fleets and commands at random, and what is compared of them.
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Json } from '../src/base/json.ts'
import type { Command } from '../src/domain/commands/command.ts'
import { renderInputs } from '../src/domain/delivery/render-inputs.ts'
import { servedTo } from '../src/domain/delivery/served-view.ts'
import type { View } from '../src/domain/documents/view.ts'
import { type Engine, startEngine } from '../src/engine/engine.ts'
import type { Store } from '../src/store/store.ts'
import { builtInTypes } from './service.ts'

export const types = builtInTypes()
/** Failing is enough where every run takes a database; elsewhere the smallest example is looked for, for a while. */
export const RUNS = { numRuns: 300, interruptAfterTimeLimit: 30_000, markInterruptAsFailure: true }
export const SLOW_RUNS = { numRuns: 25, endOnFailure: true }

export const AUTHOR = { actor: 'law', message: null, request_id: 'law', client_address: null }
const DEFINITIONS = ['platform_components', 'namespaces', 'rolebindings']

/** As from JSON: with Object's prototype. */
const PLAIN = { noNullPrototype: true }

const component = fc.constantFrom('a', 'b', 'c', 'd')
const namespace = fc.constantFrom('n0', 'n1', 'n2')
const rolebinding = fc.constantFrom('r0', 'r1')
/** Where a binding holds: everywhere, in a namespace that may be missing, or in one that every cluster has. */
const place = fc.constantFrom({}, { namespace: 'n0' }, { namespace: 'n1' }, { namespace: 'default' })
const cluster = fc.constantFrom('k0', 'k1', 'k2', 'k3')
const dns = fc.constantFrom('k0.example.com', 'k1.example.com', 'k2.example.com', 'K2.example.com')
const text = fc.oneof(
  fc.constantFrom('v1', 'v2'),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }),
)
const values = fc.dictionary(fc.constantFrom('replicas', 'color', 'ui.color', '0', 'hosts[0].name'), text, {
  ...PLAIN,
  maxKeys: 3,
})
const override = fc.record(
  { oci_tag: fc.option(text), enabled: fc.boolean() },
  { ...PLAIN, requiredKeys: [] },
)

const componentDocument = fc.record(
  {
    id: component,
    component_path: text,
    component_version: text,
    oci_url: fc.constantFrom('oci://registry.example.com/a', 'https://charts.example.com'),
    oci_tag: text,
    depends_on: fc.array(component, { maxLength: 2 }),
  },
  PLAIN,
)
const clusterDocument = fc.record(
  {
    id: cluster,
    cluster_name: text,
    cluster_dns: dns,
    environment: fc.constantFrom('dev', 'prod'),
    platform_components: fc.array(
      fc.tuple(component, override).map(([id, more]) => ({ id, ...more })),
      { maxLength: 4 },
    ),
    namespaces: fc.array(
      namespace.map((id) => ({ id })),
      { maxLength: 3 },
    ),
    rolebindings: fc.array(
      rolebinding.map((id) => ({ id })),
      { maxLength: 2 },
    ),
    patches: fc.dictionary(component, values, { ...PLAIN, maxKeys: 2 }),
  },
  { ...PLAIN, requiredKeys: ['id', 'cluster_name', 'cluster_dns', 'environment'] },
)
const document = fc.oneof(
  componentDocument.map((value) => ['platform_components', value] as const),
  fc
    .record({
      id: namespace,
      labels: fc.dictionary(fc.constantFrom('x', 'y'), fc.constantFrom('1', '2'), PLAIN),
    })
    .map((value) => ['namespaces', value] as const),
  fc
    .tuple(rolebinding, place)
    .map(
      ([id, where]) =>
        ['rolebindings', { id, role: 'view', subjects: [{ kind: 'Group', name: id }], ...where }] as const,
    ),
  clusterDocument.map((value) => ['clusters', value] as const),
)
const target = fc.oneof(
  component.map((id) => ['platform_components', id] as const),
  namespace.map((id) => ['namespaces', id] as const),
  rolebinding.map((id) => ['rolebindings', id] as const),
)

const selector = fc.constantFrom(
  'environment=dev',
  'environment in (dev,prod)',
  'id!=k0',
  'uses.platform_components=a',
  'id',
  'x=1',
)

/** A command for all clusters that match. */
const fleetCommand: fc.Arbitrary<Command> = fc
  .record({
    selector,
    allowEmpty: fc.boolean(),
    component,
    override,
    values,
    op: fc.constantFrom(0, 0, 1, 2, 2, 3, 3, 3, 4),
  })
  .map(({ selector: chosen, allowEmpty, component: id, override: reference, values: changed, op }) => {
    const type = 'platform_components'
    const having = { type, id }
    const targets = { selector: chosen, allowEmpty }
    const base = { op: 'for_clusters', path: '' } as const
    const place = { type, id, path: '' }
    if (op === 0) return { ...base, targets, command: { op: 'assign', ...place, reference, how: 'ensure' } }
    if (op === 1) {
      return { ...base, targets: { ...targets, having }, command: { op: 'unassign', ...place } }
    }
    if (op === 2) {
      const patch = { op: 'patch_values', component: id, values: changed, merge: true, path: '' } as const
      return { ...base, targets: { ...targets, having }, command: patch }
    }
    const clusters = { type: 'clusters', path: '' }
    if (op === 3) {
      const patch = { labels: { x: '1' } }
      return { ...base, targets, command: { op: 'patch', ...clusters, patch, format: 'merge' } }
    }
    return { ...base, targets, command: { op: 'delete', ...clusters, cascade: false, purge: false } }
  })

export const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 2, arbitrary: fleetCommand },
  {
    weight: 4,
    arbitrary: document.map(
      ([type, value]) => ({ op: 'create', type, document: value as Json, path: '' }) as const,
    ),
  },
  document.map(
    ([type, value]) => ({ op: 'replace', type, id: value.id, document: value as Json, path: '' }) as const,
  ),
  fc
    .tuple(
      component,
      fc.record(
        {
          oci_tag: text,
          delivery: fc.constantFrom('helm', 'kustomize', null),
          depends_on: fc.array(component, { maxLength: 2 }),
        },
        { ...PLAIN, requiredKeys: [] },
      ),
    )
    .map(
      ([id, patch]) =>
        ({ op: 'patch', type: 'platform_components', id, patch, format: 'merge', path: '' }) as const,
    ),
  fc
    .tuple(
      cluster,
      fc.record(
        { cluster_dns: dns, patches: fc.dictionary(component, fc.option(values), PLAIN) },
        { ...PLAIN, requiredKeys: [] },
      ),
    )
    .map(
      ([id, patch]) =>
        ({ op: 'patch', type: 'clusters', id, patch: patch as Json, format: 'merge', path: '' }) as const,
    ),
  fc
    .tuple(target, fc.boolean())
    .map(([[type, id], cascade]) => ({ op: 'delete', type, id, cascade, purge: false, path: '' }) as const),
  fc
    .tuple(cluster, fc.boolean())
    .map(([id, purge]) => ({ op: 'delete', type: 'clusters', id, cascade: false, purge, path: '' }) as const),
  cluster.map((id) => ({ op: 'restore', type: 'clusters', id, path: '' }) as const),
  {
    weight: 3,
    arbitrary: fc.tuple(target, cluster, override, fc.constantFrom('replace', 'merge', 'ensure')).map(
      ([[type, id], to, reference, how]) =>
        ({
          op: 'assign',
          type,
          cluster: to,
          id,
          reference: type === 'platform_components' ? reference : {},
          how,
          path: '',
        }) as const,
    ),
  },
  fc
    .tuple(target, cluster)
    .map(([[type, id], from]) => ({ op: 'unassign', type, cluster: from, id, path: '' }) as const),
  fc
    .tuple(
      component,
      cluster,
      fc.dictionary(fc.constantFrom('replicas', 'color', 'ui.color'), fc.option(text), PLAIN),
      fc.boolean(),
    )
    .map(
      ([id, of, changed, merge]) =>
        ({ op: 'patch_values', cluster: of, component: id, values: changed, merge, path: '' }) as const,
    ),
)
export const commands = fc.array(command, { minLength: 20, maxLength: 50 })

export function load(store: Store): Promise<Engine> {
  return startEngine({ store, types, now: () => new Date(0) })
}

/** A small fleet to begin with, so that commands find something to work on. */
export async function start(store: Store): Promise<Engine> {
  const engine = await load(store)
  const chart = {
    component_path: 'p',
    component_version: '1',
    oci_url: 'oci://x',
    oci_tag: 'v1',
    delivery: 'helm',
  }
  const fleet: [string, Json][] = [
    ['platform_components', { id: 'a', ...chart }],
    ['platform_components', { id: 'b', ...chart, depends_on: ['a'] }],
    ['namespaces', { id: 'n0' }],
    ['rolebindings', { id: 'r0', role: 'view', subjects: [] }],
    [
      'clusters',
      {
        id: 'k0',
        cluster_name: 'k0',
        cluster_dns: 'k0.example.com',
        environment: 'dev',
        platform_components: [{ id: 'a' }, { id: 'b' }],
        namespaces: [{ id: 'n0' }],
      },
    ],
  ]
  const created = await engine.write(
    fleet.map(([type, value]) => ({ op: 'create', type, document: value, path: '' })),
    AUTHOR,
  )
  assert.ok(created.ok)
  return engine
}

export function documentsOf(view: View): Record<string, unknown> {
  const found: Record<string, unknown> = {}
  for (const { name } of types.all) {
    for (const { id, document, revision } of view.all(name)) found[`${name}/${id}`] = { document, revision }
  }
  for (const id of ['k0', 'k1', 'k2', 'k3']) {
    const tombstone = view.tombstone('clusters', id)
    if (tombstone) found[`deleted/${id}`] = { document: tombstone.document, revision: tombstone.revision }
  }
  return found
}

/** Every answer that any cluster could get. */
export function answersOf({ state }: Engine): Record<string, { text: string; etag: string }> {
  const answers: Record<string, { text: string; etag: string }> = {}
  for (const name of ['k0.example.com', 'k1.example.com', 'k2.example.com']) {
    const entry = state.clusterByDns(name)
    if (!entry) continue
    for (const type of types.delivered) {
      const { text, digest } = renderInputs(servedTo(types, state, entry.id), types, type, entry)
      answers[`${name}/${type.delivery.endpoint}`] = { text, etag: `${digest.a}.${digest.b}` }
    }
  }
  return answers
}

/** All documents of every type, whatever revision made them so. */
export function contents(view: View): unknown {
  return DEFINITIONS.concat('clusters').map((name) => [...view.all(name)].map(({ document }) => document))
}
