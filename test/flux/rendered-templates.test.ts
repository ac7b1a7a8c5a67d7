// What Flux makes of what clusters poll: exactly these objects, each value in its place, whatever the documents hold.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import type { Json } from '../../src/base/json.ts'
import { scaffoldTemplate } from '../../src/bootstrap/scaffold-template.ts'
import type { RegisteredDelivery } from '../../src/registry/build-types.ts'
import { start, run as write } from '../every-store.ts'
import { AUTHOR, commands } from '../random-fleet.ts'
import { builtInTypes, READ_TOKEN, startService, type TestService, temporaryFolder } from '../service.ts'
import { withoutDigests } from '../without-digests.ts'
import { validateObjects } from './schemas.ts'
import { parseObjects, readByKubernetes, run } from './tools.ts'

const ROOT = join(import.meta.dirname, '../..')
const EXAMPLE = join(ROOT, 'examples/network-policies')
const RENDERED = join(EXAMPLE, 'rendered/network-policies.yaml')
/** Writes down what is rendered of the example instead of comparing it. */
const UPDATE = process.env.DOCS_UPDATE === '1'

const types = builtInTypes(EXAMPLE)
const BUILT_IN = ['namespaces', 'platform-components', 'rolebindings']
/** The ResourceSets of each endpoint. */
const TEMPLATES: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(BUILT_IN.map((name) => [name, documentsIn(`deploy/templates/${name}.yaml`)])),
  'network-policies': documentsIn('examples/network-policies/templates/network-policies.yaml'),
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into inputs and objects freely
type Any = any

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

function documentsIn(path: string): string[] {
  return read(path).split(/^---\n/m)
}

function templatesOf(endpoint: string): readonly string[] {
  return TEMPLATES[endpoint] ?? assert.fail(endpoint)
}

/** As the cluster of this name polls it. */
async function poll(service: TestService, cluster: string, endpoint: string): Promise<Any[]> {
  const url = `/api/v2/flux/clusters/${cluster}.k8s.example.com/${endpoint}`
  const { status, text, body } = await service.call('GET', url, { token: READ_TOKEN })
  assert.equal(status, 200, text)
  return body.inputs
}

/** What the ResourceSets of an endpoint make, in their order. */
async function renderYaml(templates: readonly string[], inputs: readonly Any[]): Promise<string> {
  const texts = await Promise.all(templates.map((template) => renderOne(template, inputs)))
  return texts.filter((text) => text !== '').join('---\n')
}

async function renderOne(template: string, inputs: readonly Any[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'flux-resourceset-render-'))
  try {
    const file = join(folder, 'inputs.json')
    await writeFile(file, jsonForYaml(inputs))
    const args = ['build', 'resourceset', '--filename', '-', '--inputs-from', file]
    const { code, stdout, stderr } = await run('flux-operator', args, { input: template })
    if (code === 1 && stderr.trim().endsWith('no objects were generated')) return ''
    assert.equal(code, 0, stderr)
    return stdout
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** The operator reads JSON, but its command line YAML, which takes some characters for line breaks and refuses others. */
function jsonForYaml(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

async function render(templates: readonly string[], inputs: readonly Any[]): Promise<Any[]> {
  if (inputs.length === 0) return []
  const yaml = await renderYaml(templates, inputs)
  parseObjects(yaml)
  return readByKubernetes(yaml)
}

// What is expected, said once more and in another language than the templates

/** What Flux adds to the labels of whatever a ResourceSet makes. */
function labelsOf(endpoint: string, labels: object = {}): object {
  return {
    ...labels,
    'resourceset.fluxcd.controlplane.io/name': endpoint,
    'resourceset.fluxcd.controlplane.io/namespace': 'flux-system',
  }
}

function expectedNamespace({ id, labels, annotations, prune }: Any): Any[] {
  const {
    'fluxcd.controlplane.io/prune': annotated,
    'fluxcd.controlplane.io/reconcile': _,
    ...others
  } = annotations
  const kept = prune ?? annotated
  const all = { ...others, ...(kept && { 'fluxcd.controlplane.io/prune': kept }) }
  const metadata = {
    name: id,
    labels: labelsOf('namespaces', labels),
    ...(Object.keys(all).length > 0 && { annotations: all }),
  }
  return [{ apiVersion: 'v1', kind: 'Namespace', metadata }]
}

const RBAC = 'rbac.authorization.k8s.io'

function expectedClusterRoleBinding({ id, namespace, ...binding }: Any): Any[] {
  if (namespace) return []
  return [expectedBinding('ClusterRoleBinding', 'clusterrolebindings', { name: id }, binding)]
}

function expectedRoleBinding({ id, namespace, ...binding }: Any): Any[] {
  if (!namespace) return []
  return [expectedBinding('RoleBinding', 'rolebindings', { name: id, namespace }, binding)]
}

function expectedBinding(kind: string, madeBy: string, metadata: object, { role, subjects }: Any): Any {
  return {
    apiVersion: `${RBAC}/v1`,
    kind,
    metadata: {
      ...metadata,
      labels: labelsOf(madeBy),
      annotations: { 'fluxcd.controlplane.io/force': 'enabled' },
    },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
    ...(subjects.length > 0 && {
      subjects: subjects.map(({ kind, name, namespace }: Any) =>
        kind === 'ServiceAccount' ? { kind, name, namespace } : { kind, name, apiGroup: RBAC },
      ),
    }),
  }
}

const CHART_LAYER = {
  mediaType: 'application/vnd.cncf.helm.chart.content.v1.tar+gzip',
  operation: 'copy',
}

/** An object of Flux that is named after its component, with what travels with its events. */
function named(apiVersion: string, kind: string, { id, digest }: Any, spec: object): Any {
  const key = (name: string): string => `event.toolkit.fluxcd.io/${name}`
  const annotations = { [key('component')]: id, ...(digest && { [key('digest')]: digest }) }
  const metadata = {
    name: id,
    namespace: 'flux-system',
    labels: labelsOf('platform-components'),
    annotations,
  }
  return { apiVersion, kind, metadata, spec }
}

/** A source is named after its content as well, and has no digest of the input. */
function sourceOf(kind: string, { id }: Any, spec: object): Any {
  const { metadata, ...source } = named('source.toolkit.fluxcd.io/v1', kind, { id }, spec)
  return { ...source, metadata: { ...metadata, name: `${id}-${SOME_DIGEST}` } }
}

function isRepository({ source }: Any): boolean {
  return /^https?:/.test(source.oci_url)
}

function isChart(input: Any): boolean {
  return isRepository(input) || input.delivery === 'helm'
}

function expectedComponent(input: Any): Any[] {
  if (!input.enabled) return []
  return isChart(input) ? expectedRelease(input) : expectedKustomization(input)
}

function expectedRelease(input: Any): Any[] {
  const { id, component_path, component_version, patches, source } = input
  const fromRepository = isRepository(input)
  const url = fromRepository ? source.oci_url : `${source.oci_url.replace(/\/$/, '')}/${component_path}`
  const isExact = /^v?\d+\.\d+\.\d+(?:[-+].*)?$/.test(component_version)
  const ref =
    component_version === 'latest'
      ? { semver: '*' }
      : isExact
        ? { tag: component_version.replaceAll('+', '_') }
        : { semver: component_version }
  const pinned = component_version !== 'latest' && { version: component_version }
  const namespace = input.namespace ?? id
  const paths = Object.keys(patches).toSorted()
  const values = `${id}-values-${SOME_DIGEST}`
  return [
    fromRepository
      ? sourceOf('HelmRepository', input, { interval: '1h', url })
      : sourceOf('OCIRepository', input, {
          interval: '10m',
          url,
          ref,
          layerSelector: CHART_LAYER,
        }),
    ...(paths.length > 0 ? [expectedValues(values, paths)] : []),
    named('helm.toolkit.fluxcd.io/v2', 'HelmRelease', input, {
      interval: '1h',
      ...(id.length <= 53 && { releaseName: id }),
      targetNamespace: namespace,
      storageNamespace: namespace,
      ...dependsOn(input),
      ...(fromRepository
        ? {
            chart: {
              spec: {
                chart: component_path,
                ...pinned,
                interval: '1h',
                sourceRef: { kind: 'HelmRepository', name: `${id}-${SOME_DIGEST}` },
              },
            },
          }
        : { chartRef: { kind: 'OCIRepository', name: `${id}-${SOME_DIGEST}` } }),
      install: { createNamespace: true, remediation: { retries: -1 } },
      upgrade: { crds: 'CreateReplace', remediation: { retries: 3 } },
      ...(paths.length > 0 && {
        valuesFrom: paths.map((path) => ({
          kind: 'ConfigMap',
          name: values,
          valuesKey: keyOf(path),
          targetPath: path,
        })),
      }),
    }),
  ]
}

function keyOf(path: string): string {
  return createHash('sha256').update(path).digest('hex').slice(0, 16)
}

/** What the values are is for Helm to say: see `valuesOf`. Their ConfigMap is named after them. */
const SOME_TEXT = 'some text'
const SOME_DIGEST = '0123456789'

function expectedValues(name: string, paths: readonly string[]): Any {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'flux-system', labels: labelsOf('platform-components') },
    data: Object.fromEntries(paths.map((path) => [keyOf(path), SOME_TEXT])),
  }
}

/** The object with some digest in each name that is made from content, and some text for each value. */
function withoutValues(object: Any): Any {
  const { kind, metadata, data } = object
  if (kind === 'HelmRepository' || kind === 'OCIRepository')
    return { ...object, metadata: { ...metadata, name: withoutDigest(metadata.name) } }
  if (kind === 'HelmRelease' || kind === 'Kustomization') {
    const copy = structuredClone(object)
    for (const reference of [sourceIn(copy), ...(copy.spec.valuesFrom ?? [])])
      reference.name = withoutDigest(reference.name)
    return copy
  }
  if (kind !== 'ConfigMap') return object
  const texts = Object.entries(data).map(([key, value]) => [
    key,
    typeof value === 'string' ? SOME_TEXT : value,
  ])
  const name = withoutDigest(metadata.name)
  return { ...object, metadata: { ...metadata, name }, data: Object.fromEntries(texts) }
}

function withoutDigest(name: string): string {
  return name.replace(/-[0-9a-f]{10}$/, `-${SOME_DIGEST}`)
}

/** The reference of a HelmRelease or Kustomization to its source. */
function sourceIn({ spec }: Any): Any {
  return spec.chart?.spec.sourceRef ?? spec.chartRef ?? spec.sourceRef
}

/** The ConfigMap with the values of a component, if it has any. */
function valuesMapOf(objects: readonly Any[], id: string): Any {
  return objects.find(
    ({ kind, metadata: { name } }) =>
      kind === 'ConfigMap' && withoutDigest(name) === `${id}-values-${SOME_DIGEST}`,
  )
}

function expectedKustomization(input: Any): Any[] {
  const { id, component_path, cluster_env_enabled, patches, source, cluster, namespace } = input
  const path = component_path.replace(/^\.\//, '')
  return [
    sourceOf('OCIRepository', input, {
      interval: '10m',
      url: source.oci_url,
      ref: source.oci_tag.startsWith('sha256:') ? { digest: source.oci_tag } : { tag: source.oci_tag },
    }),
    named('kustomize.toolkit.fluxcd.io/v1', 'Kustomization', input, {
      interval: '1h',
      retryInterval: '2m',
      timeout: '5m',
      prune: true,
      wait: true,
      sourceRef: { kind: 'OCIRepository', name: `${id}-${SOME_DIGEST}` },
      path: cluster_env_enabled ? `./${path.replace(/\/$/, '')}/${cluster.environment}` : `./${path}`,
      ...(namespace && { targetNamespace: namespace }),
      ...dependsOn(input),
      ...(Object.keys(patches).length > 0 && { postBuild: { substitute: patches } }),
    }),
  ]
}

function dependsOn({ depends_on }: Any): object {
  return depends_on.length > 0 ? { dependsOn: depends_on.map((name: string) => ({ name })) } : {}
}

function expectedPolicy({ id, target_namespace, ingress_rules }: Any): Any[] {
  const ingress = ingress_rules.map(({ from_namespace, port }: Any) => ({
    from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': from_namespace } } }],
    ports: [{ protocol: 'TCP', port }],
  }))
  return [
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: id, namespace: target_namespace, labels: labelsOf('network-policies') },
      spec: { podSelector: {}, policyTypes: ['Ingress'], ...(ingress.length > 0 && { ingress }) },
    },
  ]
}

/** What each ResourceSet of an endpoint makes of an input. */
const EXPECTED: Readonly<Record<string, readonly ((input: Any) => Any[])[]>> = {
  namespaces: [expectedNamespace],
  'platform-components': [expectedComponent],
  rolebindings: [expectedClusterRoleBinding, expectedRoleBinding],
  'network-policies': [expectedPolicy],
}

function expectedOf(endpoint: string, inputs: readonly Any[]): Any[] {
  return (EXPECTED[endpoint] ?? assert.fail(endpoint)).flatMap((expected) => inputs.flatMap(expected))
}

/** Renders what was polled, and looks at all of it. */
async function check(endpoint: string, inputs: readonly Any[]): Promise<Any[]> {
  const objects = await render(templatesOf(endpoint), inputs)
  assert.deepEqual(objects.map(withoutValues), expectedOf(endpoint, inputs))
  assert.deepEqual(validateObjects(objects), [])
  for (const { metadata, spec } of objects.filter(({ kind }) => kind === 'HelmRelease')) {
    const map = valuesMapOf(objects, metadata.name)
    for (const { name } of spec.valuesFrom ?? []) assert.equal(name, map.metadata.name)
  }
  const sources = new Set(objects.map(nameOf))
  for (const object of objects.filter(({ kind }) => kind === 'HelmRelease' || kind === 'Kustomization')) {
    const { kind, name } = sourceIn(object)
    assert.ok(sources.has(`${kind} flux-system/${name}`), name)
  }
  return objects
}

// Helm values

/** The values that charts get, by component, as Flux's helm-controller makes them; numbers are bigints. */
async function valuesOf(objects: readonly Any[]): Promise<Record<string, Any>> {
  const releases = objects.filter(({ kind, spec }) => kind === 'HelmRelease' && spec.valuesFrom)
  if (releases.length === 0) return {}
  const lines = releases.map(({ metadata, spec }) => {
    const map = valuesMapOf(objects, metadata.name)
    return JSON.stringify({ data: map.data, valuesFrom: spec.valuesFrom })
  })
  const { code, stdout, stderr } = await run('controllers', ['values'], { input: lines.join('\n') })
  assert.equal(code, 0, stderr)
  const answers = stdout.trimEnd().split('\n').map(parseExactly)
  return Object.fromEntries(
    releases.map(({ metadata }, i) => [metadata.name, answers[i].error ?? answers[i].values]),
  )
}

function parseExactly(text: string): Any {
  const exact = (_key: string, value: unknown, { source }: { source: string }): unknown =>
    typeof value === 'number' ? BigInt(source) : value
  return JSON.parse(text, exact as unknown as (key: string, value: unknown) => unknown)
}

/** As `helm --set` types it: Go folds case as Unicode does, and takes what fits into 64 bits for a number. */
function typed(value: string): string | boolean | bigint | null {
  if (value.startsWith('!!str ')) return value.slice('!!str '.length)
  if (/^true$/iu.test(value)) return true
  if (/^false$/iu.test(value)) return false
  if (/^null$/iu.test(value)) return null
  if (!/^(?:0|[+-]\d+|[1-9]\d*)$/.test(value)) return value
  const number = BigInt(value.replace('+', ''))
  return BigInt.asIntN(64, number) === number ? number : value
}

// Texts that are hard to quote

const TRICKY = [
  ...String.raw`' " '" "' "a" 'a' '' "" \ \\ \n \" a\ \u0000 \, \{ ---`.split(' '),
  ...' # << >> <<-end>> {{.x}} $ $x $(x) %s'.split(' '),
  ...'1 0 -1 +5 -0 007 1.5 1e3 0x1 0o7 0b1 1_000 12:30 .5 . 5. .inf .NaN Infinity'.split(' '),
  ...'9223372036854775807 9223372036854775808 -9223372036854775808 2026-01-31T12:00:00Z'.split(' '),
  ...'true True TRUE false yes No on OFF y N null Null NULL ~ nil'.split(' '),
  ...'!x &a *a - | |- >- @a [a] [0] {a {a,b} {} a,b , a=b = !!str ünï 日本 שלום 😀 👩‍👩‍👧 e\u0301'.split(' '),
  ...['!!str 1', '!!str true', '!!str ', '!!str !!str 1', '!!str "1"', "!!str '", '!!str a\\', '!!str 1,2'],
  ...['!!str {1}', '!!str -1', '!!str +1', '!!str 0', '!!int 1', ' ', ' a ', '\ta\t', 'a\nb', '\n', 'a\r\nb'],
  ...['a\n---\nb', '\n...\n', 'a: b', ': ', 'a #b', '<< inputs.id >>', '<<- end >>', '- a', '? a'],
  ...['\u0001', '\b', '\u001b[31m', '\u00a0', '\ufeff', '\u200f', '\ufffd', '\u00ad', '\u{e0001}'],
  ...['a\n  b: c', 'a"\n  b: "c', 'apiVersion: v1\nkind: Secret', 'it\'s "quoted" \\ and { braced, }'],
  ...['\u{10ffff}', '%YAML 1.1', variable('x'), '`a`', 'x'.repeat(300), ' '.repeat(300)],
]

/** As shells and Flux write it. */
function variable(called: string): string {
  return `\${${called}}`
}

/** Refused by the API, stopping the operator, or nothing that its command line can print: tests of their own. */
const UNREADABLE = /[\0\u007f-\u009f\u2028\u2029\ufffe\uffff]/

const text = fc
  .oneof(
    { weight: 4, arbitrary: fc.constantFrom(...TRICKY) },
    {
      weight: 2,
      arbitrary: fc
        .array(fc.constantFrom(...TRICKY, 'a', 'B', '0'), { minLength: 2, maxLength: 4 })
        .map((parts) => parts.join('')),
    },
    { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 12 }) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary-ascii', maxLength: 12 }) },
  )
  .filter((value) => !UNREADABLE.test(value))
const someText = text.map((value) => value || 'a')
const PLAIN = { noNullPrototype: true }

const WORDS = 'true null yes no on y n 1 0 007 1e3 0x1 0b1 0o7 123e4'.split(' ')
const label = fc.oneof(
  fc.constantFrom(...WORDS, 'a'.repeat(63), '0'.repeat(53), `a${'-'.repeat(52)}z`),
  fc.stringMatching(/^[a-z0-9](?:[-a-z0-9]{0,10}[a-z0-9])?$/),
)
const subdomain = fc.oneof(
  label,
  fc.array(label, { minLength: 2, maxLength: 3 }).map((parts) => parts.join('.')),
  fc.constantFrom('1.5', '1.0', '1.2.3.4', '1e3.5', Array(4).fill('a'.repeat(62)).join('.')),
)
const name = fc.oneof(
  fc.constantFrom(...WORDS, 'No', 'NULL', '1.5', '1_000', 'a'.repeat(63)),
  fc.stringMatching(/^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,10}[A-Za-z0-9])?$/),
)
const labelKey = fc.oneof(
  name,
  fc.tuple(subdomain, name).map((parts) => parts.join('/')),
  fc.constantFrom(
    'toString',
    'fluxcd.controlplane.io/prune',
    'fluxcd.controlplane.io/reconcile',
    'fluxcd.controlplane.io/force',
    'kustomize.toolkit.fluxcd.io/prune',
    'resourceset.fluxcd.controlplane.io/name',
  ),
)
const labelValue = fc.oneof(name, fc.constant(''))

/** Paths that do not overlap and what they hold are the leaves of a tree, and the tree is what they mean. */
type Tree = string | { readonly map: [string, Tree][] } | { readonly list: [number, Tree][] }

const valueKey = fc.oneof(
  fc.constantFrom('a', 'b', '0', 'true', '-', '_', '/', '.', '__proto__', 'constructor', 'example.com/team'),
  fc.stringMatching(/^[-A-Za-z0-9_./]{1,6}$/),
)
const { tree } = fc.letrec<{ node: Tree; tree: Tree }>((tie) => ({
  tree: fc
    .uniqueArray(fc.tuple(valueKey, tie('node')), { minLength: 1, maxLength: 4, selector: ([key]) => key })
    .map((map) => ({ map })),
  node: fc.oneof(
    { depthSize: 'small', maxDepth: 4 },
    text,
    tie('tree'),
    fc
      .uniqueArray(fc.tuple(fc.nat({ max: 12 }), tie('node')), {
        minLength: 1,
        maxLength: 3,
        selector: ([index]) => index,
      })
      .map((list) => ({ list })),
  ),
}))

function leavesOf(node: Tree, path = ''): [path: string, value: string][] {
  if (typeof node === 'string') return [[path, node]]
  if ('list' in node) return node.list.flatMap(([index, item]) => leavesOf(item, `${path}[${index}]`))
  return node.map.flatMap(([key, item]) => {
    const escaped = key.replaceAll('.', '\\.')
    return leavesOf(item, path === '' ? escaped : `${path}.${escaped}`)
  })
}

function meaningOf(node: Tree): Any {
  if (typeof node === 'string') return typed(node)
  if ('map' in node) return Object.fromEntries(node.map.map(([key, item]) => [key, meaningOf(item)]))
  const list = Array(Math.max(...node.list.map(([index]) => index)) + 1).fill(null)
  for (const [index, item] of node.list) list[index] = meaningOf(item)
  return list
}

/** Flux takes paths of up to 250 characters, and the API no key that JavaScript has a meaning for. */
const patches = tree
  .map((meant) => ({ meant, values: Object.fromEntries(leavesOf(meant)) as Record<string, string> }))
  .filter(({ values }) =>
    Object.keys(values).every((path) => path.length <= 250 && !/^(?:__proto__|constructor)$/.test(path)),
  )

// Documents at random

const version = fc.oneof(
  fc.constantFrom('>=1 <2', ...'latest 1.2.3 v1.2.3 1.2.3-rc.1 1.2.3+build.5 6.x * 1.2 Latest'.split(' ')),
  someText,
)
const url = fc
  .tuple(
    fc.constantFrom('oci://', 'oci://', 'http://', 'https://'),
    fc.oneof(
      fc.constantFrom('registry.example.com/a', 'registry.example.com/a/', 'x:5000/"', variable('x')),
      text,
    ),
  )
  .map(([scheme, rest]) => scheme + (rest.replaceAll(/\s/g, '') || 'a'))
const tag = fc.oneof(fc.constant(`sha256:${'0'.repeat(64)}`), someText)
const namespaceName = fc.option(label, { nil: undefined })

const component = fc.record(
  {
    component_path: fc.oneof(someText, fc.constantFrom('./a/b', './', '/', 'a/', '../a')),
    component_version: version,
    cluster_env_enabled: fc.boolean(),
    oci_url: url,
    oci_tag: tag,
    delivery: fc.constantFrom('helm', 'kustomize', undefined),
    namespace: namespaceName,
    reference: fc.record(
      { enabled: fc.boolean(), oci_tag: tag, component_path: someText },
      { ...PLAIN, requiredKeys: [] },
    ),
    patches: fc.option(patches, { nil: undefined, freq: 4 }),
  },
  PLAIN,
)
const subject = fc.oneof(
  fc.record({ kind: fc.constant('ServiceAccount'), name: subdomain, namespace: label }, PLAIN),
  fc.record(
    { kind: fc.constantFrom('User', 'Group'), name: someText, apiGroup: text, namespace: label },
    { ...PLAIN, requiredKeys: ['kind', 'name'] },
  ),
)

function severally<T>(
  ids: fc.Arbitrary<string>,
  value: fc.Arbitrary<T>,
): fc.Arbitrary<(T & { id: string })[]> {
  return fc
    .uniqueArray(fc.tuple(ids, value), { maxLength: 20, size: 'max', selector: ([id]) => id })
    .map((pairs) => pairs.map(([id, more]) => ({ id, ...more })))
}

const fleet = fc.record({
  cluster_name: someText.map(onOneLine),
  namespaces: severally(
    label,
    fc.record(
      {
        labels: fc.dictionary(labelKey, labelValue, { ...PLAIN, maxKeys: 4 }),
        annotations: fc.dictionary(labelKey, text, { ...PLAIN, maxKeys: 4 }),
        prune: fc.constantFrom('enabled', 'disabled'),
      },
      { ...PLAIN, requiredKeys: ['labels', 'annotations'] },
    ),
  ),
  components: severally(label, component),
  rolebindings: severally(
    subdomain,
    fc.record(
      { role: someText, subjects: fc.array(subject, { maxLength: 3 }), namespace: label },
      { ...PLAIN, requiredKeys: ['role', 'subjects'] },
    ),
  ),
})
type Fleet = typeof fleet extends fc.Arbitrary<infer T> ? T : never

function onOneLine(value: string): string {
  return value.replaceAll(/[\p{Cc}\p{Cn}\p{Cs}\p{Zl}\p{Zp}]/gu, '').slice(0, 253) || 'a'
}

/** The documents of a cluster with all of it. */
function documentsOf({ cluster_name, namespaces, rolebindings, components }: Fleet): Record<string, Any[]> {
  const idsOf = (list: readonly { id: string }[]): object[] => list.map(({ id }) => ({ id }))
  return {
    namespaces,
    rolebindings,
    platform_components: components.map(({ reference: _, patches: __, ...document }, i) => ({
      ...withCharts(document),
      // Of those that come before, so that there are no cycles.
      depends_on: components.slice(Math.max(0, i - 3), i).map(({ id }) => id),
    })),
    clusters: [
      {
        id: 'one',
        cluster_name,
        cluster_dns: 'one.k8s.example.com',
        environment: 'prod',
        namespaces: idsOf(namespaces),
        rolebindings: idsOf(rolebindings),
        platform_components: components.map(({ id, reference }) => ({ id, ...reference })),
        patches: Object.fromEntries(components.map((each) => [each.id, patchesFor(each)])),
      },
    ],
  }
}

/** Values by their paths for charts, by variables for manifests. */
function patchesFor({ patches: given, ...document }: Fleet['components'][number]): Record<string, string> {
  const values = given?.values ?? {}
  if (isHelm(withCharts(document))) return values
  return Object.fromEntries(Object.values(values).map((value, i) => [`v${i}`, value]))
}

function isHelm(of: Any): boolean {
  return /^http/.test(of.oci_url) || of.delivery === 'helm'
}

/** Without what is undefined; and Helm repositories hold charts only. */
function withCharts(document: Any): Any {
  const { delivery, ...others } = JSON.parse(JSON.stringify(document))
  if (!delivery || (delivery === 'kustomize' && /^http/.test(others.oci_url))) return others
  return { ...others, delivery }
}

/** Creates documents through the API. What it refuses is replaced, here as well: no cluster is ever given it. */
async function create(service: TestService, documents: Record<string, Any[]>): Promise<void> {
  const operations = Object.entries(documents).flatMap(([type, list]) =>
    list.map((document) => ({ op: 'create', type, document })),
  )
  for (let tries = 0; ; tries++) {
    const { status, text: said, body } = await service.call('POST', '/batch', { body: { operations } })
    if (status === 200) return
    assert.ok(status === 400 && tries < 3, said)
    for (const { path } of body.details) replaceAt({ operations }, path)
  }
}

function replaceAt(root: Any, pointer: string): void {
  const keys = pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
  const last = keys.pop() as string
  const holder = keys.reduce((found, key) => found[key], root)
  if (keys.at(-2) === 'patches') delete holder[last]
  else holder[last] = 'a'
}

/** What a cluster with these documents should be given of each type. */
function inputsOf({
  namespaces = [],
  rolebindings = [],
  platform_components = [],
  clusters,
}: Record<string, Any[]>) {
  const one = clusters?.[0]
  const cluster = { name: one.cluster_name, dns: one.cluster_dns, environment: one.environment }
  const referenceTo = (id: string): Any => one.platform_components.find((other: Any) => other.id === id)
  const isAwaited = (id: string, by: Any): boolean =>
    referenceTo(id).enabled !== false &&
    isHelm(platform_components.find((other) => other.id === id)) === isHelm(by)
  return {
    namespaces: namespaces.map((document) => ({ ...document, cluster })),
    rolebindings: rolebindings.map((document) => ({ ...document, cluster })),
    'platform-components': platform_components.map((document) => {
      const { oci_url, oci_tag, depends_on, ...others } = document
      const { id, enabled = true, ...overrides } = referenceTo(document.id)
      return {
        ...others,
        component_path: overrides.component_path ?? others.component_path,
        depends_on: depends_on.filter((other: string) => isAwaited(other, document)),
        enabled,
        patches: one.patches[id],
        cluster,
        source: { oci_url, oci_tag: overrides.oci_tag ?? oci_tag },
      }
    }),
  } as Record<string, Any[]>
}

/** On failure the smallest example is looked for, for a while. */
const RUNS = { numRuns: 30, interruptAfterTimeLimit: 60_000, markInterruptAsFailure: true }

/** Makes a cluster with all of it, and polls every type. */
async function pollAll(made: Fleet): Promise<Record<string, Any[]>> {
  const service = await startService({ fleet: {}, types })
  try {
    const documents = documentsOf(made)
    await create(service, documents)
    const endpoints = types.delivered.map(({ delivery }) => delivery.endpoint)
    const polled = await Promise.all(endpoints.map((endpoint) => poll(service, 'one', endpoint)))
    const inputs = Object.fromEntries(endpoints.map((endpoint, i) => [endpoint, polled[i] ?? []]))
    const plain = JSON.parse(withoutDigests(JSON.stringify(inputs)))
    assert.deepEqual(plain, { ...inputsOf(documents), 'network-policies': [] })
    return inputs
  } finally {
    await service.stop()
  }
}

describe('the demo fleet', () => {
  const demo = JSON.parse(read('data/seed.json'))
  let service: TestService
  before(async () => {
    service = await startService({ fleet: demo, types })
  })
  after(() => service.stop())

  for (const { id } of demo.clusters) {
    test(`gives ${id} exactly what is expected, and a cluster would take it`, async () => {
      for (const endpoint of BUILT_IN) {
        const objects = await check(endpoint, await poll(service, id, endpoint))
        assert.ok(objects.length > 0, endpoint)
      }
    })
  }

  test('is these objects on one of its clusters', async () => {
    const objects = await Promise.all(
      BUILT_IN.map(async (endpoint) =>
        render(templatesOf(endpoint), await poll(service, 'demo-cluster-01', endpoint)),
      ),
    )
    assert.deepEqual(objects.flat().map(withoutValues).map(nameOf), [
      'Namespace -/cert-manager',
      'Namespace -/traefik',
      'Namespace -/podinfo',
      `HelmRepository flux-system/cert-manager-${SOME_DIGEST}`,
      `ConfigMap flux-system/cert-manager-values-${SOME_DIGEST}`,
      'HelmRelease flux-system/cert-manager',
      `HelmRepository flux-system/traefik-${SOME_DIGEST}`,
      `ConfigMap flux-system/traefik-values-${SOME_DIGEST}`,
      'HelmRelease flux-system/traefik',
      `HelmRepository flux-system/podinfo-${SOME_DIGEST}`,
      `ConfigMap flux-system/podinfo-values-${SOME_DIGEST}`,
      'HelmRelease flux-system/podinfo',
      'ClusterRoleBinding -/platform-admins',
      'ClusterRoleBinding -/dev-readers',
    ])
  })

  test('has these values on one of its clusters', async () => {
    const inputs = await poll(service, 'demo-cluster-01', 'platform-components')
    assert.deepEqual(await valuesOf(await check('platform-components', inputs)), {
      'cert-manager': { crds: { enabled: true }, startupapicheck: { timeout: '5m' } },
      traefik: { deployment: { replicas: 1n }, service: { type: 'ClusterIP' } },
      podinfo: { replicaCount: 2n, ui: { color: '#2f855a', message: 'Hello from the demo fleet' } },
    })
  })

  test('is the same bytes whenever it is polled, and in another order when its inputs are', async () => {
    for (const endpoint of BUILT_IN) {
      const templates = templatesOf(endpoint)
      const inputs = await poll(service, 'prod-eu-01', endpoint)
      const again = await poll(service, 'prod-eu-01', endpoint)
      assert.equal(await renderYaml(templates, inputs), await renderYaml(templates, again))
      const reversed = inputs.toReversed()
      assert.notDeepEqual(reversed, inputs)
      await check(endpoint, reversed)
    }
  })

  test('renders nothing of components that are switched off, on any cluster', async (t) => {
    const own = await start(t, { fleet: demo, types })
    for (const { id, platform_components } of demo.clusters) {
      const inputs = await poll(own, id, 'platform-components')
      const [{ id: off }, ...others] = inputs
      await write(own, ['PATCH', `/clusters/${id}/platform_components/${off}`, { enabled: false }])
      const after = await poll(own, id, 'platform-components')
      assert.equal(after.length, platform_components.length)
      const objects = await check('platform-components', after)
      assert.ok(!objects.some(({ metadata: { name } }) => name === off))
      assert.equal(valuesMapOf(objects, off), undefined)
      assert.equal(
        objects.length > 0,
        others.some(({ enabled }) => enabled),
      )
      const every = inputs.map((input) => ({ ...input, enabled: false }))
      assert.deepEqual(await render(templatesOf('platform-components'), every), [])
    }
  })
})

function nameOf({ kind, metadata }: Any): string {
  return `${kind} ${metadata.namespace ?? '-'}/${metadata.name}`
}

describe('how a component is delivered', () => {
  const OCI = 'oci://registry.example.com/platform'
  const CHARTS = 'https://charts.example.com'
  const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`
  const LONG = 'a'.repeat(63)
  const source = { component_path: 'app', component_version: '1.2.3', oci_tag: 'v1' }
  const kustomize = { ...source, component_path: 'apps/app', oci_url: OCI }
  const chart = { ...source, oci_url: CHARTS }
  const helm = { ...source, oci_url: OCI, delivery: 'helm' }
  const chartSpec = (spec: object) => ({
    chart: {
      spec: {
        chart: 'app',
        interval: '1h',
        sourceRef: { kind: 'HelmRepository', name: `app-${SOME_DIGEST}` },
        ...spec,
      },
    },
  })

  interface Case {
    readonly document: Readonly<Record<string, Json>>
    readonly reference?: Readonly<Record<string, Json>>
    readonly patches?: Readonly<Record<string, string>>
    /** Some fields of the spec of objects, by kind; undefined where there is none. */
    readonly specs: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  }

  const CASES: Readonly<Record<string, Case>> = {
    'a chart of a version': {
      document: chart,
      specs: { HelmRepository: { url: CHARTS }, HelmRelease: chartSpec({ version: '1.2.3' }) },
    },
    'the latest chart': {
      document: { ...chart, component_version: 'latest' },
      specs: { HelmRepository: {}, HelmRelease: chartSpec({}) },
    },
    'a chart of a range, in plain HTTP': {
      document: { ...chart, oci_url: 'http://charts.example.com/a', component_version: '>=1.0.0 <2' },
      specs: {
        HelmRepository: { url: 'http://charts.example.com/a' },
        HelmRelease: chartSpec({ version: '>=1.0.0 <2' }),
      },
    },
    'a chart that another one takes the place of, on one cluster': {
      document: { ...chart, delivery: 'helm' },
      reference: { component_path: 'app-next' },
      specs: { HelmRepository: {}, HelmRelease: chartSpec({ version: '1.2.3', chart: 'app-next' }) },
    },
    'a chart in a namespace': {
      document: { ...chart, namespace: 'apps' },
      specs: {
        HelmRepository: {},
        HelmRelease: { releaseName: 'app', targetNamespace: 'apps', storageNamespace: 'apps' },
      },
    },
    'a chart with values': {
      document: chart,
      patches: { replicas: '3' },
      specs: {
        HelmRepository: {},
        ConfigMap: {},
        HelmRelease: {
          targetNamespace: 'app',
          valuesFrom: [
            {
              kind: 'ConfigMap',
              name: `app-values-${SOME_DIGEST}`,
              valuesKey: keyOf('replicas'),
              targetPath: 'replicas',
            },
          ],
        },
      },
    },
    'a path at a tag': {
      document: kustomize,
      specs: {
        OCIRepository: { url: OCI, ref: { tag: 'v1' } },
        Kustomization: {
          path: './apps/app',
          targetNamespace: undefined,
          postBuild: undefined,
          dependsOn: undefined,
        },
      },
    },
    'a path at a digest': {
      document: { ...kustomize, delivery: 'kustomize', oci_tag: DIGEST },
      specs: { OCIRepository: { ref: { digest: DIGEST } }, Kustomization: {} },
    },
    'a path at a digest, on one cluster': {
      document: kustomize,
      reference: { oci_tag: DIGEST, component_path: './apps/next' },
      specs: { OCIRepository: { ref: { digest: DIGEST } }, Kustomization: { path: './apps/next' } },
    },
    'the path of an environment': {
      document: { ...kustomize, component_path: './apps/app/', cluster_env_enabled: true },
      specs: { OCIRepository: {}, Kustomization: { path: './apps/app/dev' } },
    },
    'a path in a namespace': {
      document: { ...kustomize, namespace: 'apps' },
      specs: { OCIRepository: {}, Kustomization: { targetNamespace: 'apps' } },
    },
    'a path with variables': {
      document: kustomize,
      patches: { replicas: '3', empty: '', tagged: '!!str 1' },
      specs: {
        OCIRepository: {},
        Kustomization: { postBuild: { substitute: { replicas: '3', empty: '', tagged: '!!str 1' } } },
      },
    },
    'a chart of a version in a registry': {
      document: helm,
      specs: {
        OCIRepository: { url: `${OCI}/app`, ref: { tag: '1.2.3' }, layerSelector: CHART_LAYER },
        HelmRelease: { chart: undefined, chartRef: { kind: 'OCIRepository', name: `app-${SOME_DIGEST}` } },
      },
    },
    'the latest chart in a registry with a slash at its end': {
      document: { ...helm, oci_url: `${OCI}/`, component_version: 'latest' },
      specs: { OCIRepository: { url: `${OCI}/app`, ref: { semver: '*' } }, HelmRelease: {} },
    },
    'a chart of a range in a registry': {
      document: { ...helm, component_version: '6.x' },
      specs: { OCIRepository: { ref: { semver: '6.x' } }, HelmRelease: {} },
    },
    'a chart of a version with a v': {
      document: { ...helm, component_version: 'v1.2.3-rc.1' },
      specs: { OCIRepository: { ref: { tag: 'v1.2.3-rc.1' } }, HelmRelease: {} },
    },
    'a chart of a version with build metadata, for which tags have no character': {
      document: { ...helm, component_version: '1.2.3-rc.1+build.5+more' },
      specs: { OCIRepository: { ref: { tag: '1.2.3-rc.1_build.5_more' } }, HelmRelease: {} },
    },
    'nothing, where it is switched off': {
      document: { ...helm, namespace: 'apps' },
      reference: { enabled: false },
      patches: { replicas: '3' },
      specs: {},
    },
  }

  for (const [title, { document, reference = {}, patches: values = {}, specs }] of Object.entries(CASES)) {
    test(title, async (t) => {
      const service = await start(t, { fleet: {}, types })
      const cluster = { cluster_name: 'one', cluster_dns: 'one.k8s.example.com', environment: 'dev' }
      await write(
        service,
        ['POST', '/platform_components', { id: 'app', ...document }],
        ['POST', '/clusters', { id: 'one', ...cluster }],
        ['PUT', '/clusters/one/platform_components/app', reference],
        ['PUT', '/clusters/one/patches/app', values],
      )
      const objects = await check('platform-components', await poll(service, 'one', 'platform-components'))
      assert.deepEqual(
        objects.map(({ kind }) => kind),
        Object.keys(specs),
      )
      for (const { kind, spec } of objects.map(withoutValues)) {
        for (const [field, value] of Object.entries(specs[kind] ?? {}))
          assert.deepEqual(spec[field], value, field)
      }
    })
  }

  test('names of 63 characters: a release is named by Flux then, since Helm takes 53', async (t) => {
    const fleetOf = (id: string, document: object): object => ({ id, ...document })
    const ids = [LONG, `b${LONG.slice(1)}`, `c${LONG.slice(1)}`, 'd'.repeat(53), 'e'.repeat(54)]
    const cluster = { id: 'one', cluster_name: 'one', cluster_dns: 'one.k8s.example.com', environment: 'dev' }
    const service = await start(t, {
      types,
      fleet: {
        platform_components: [kustomize, chart, helm, chart, chart].map((document, i) =>
          fleetOf(ids[i] as string, { ...document, namespace: `n${ids[i]?.slice(1)}` }),
        ),
        clusters: [
          {
            ...cluster,
            platform_components: ids.map((id) => ({ id })),
            patches: Object.fromEntries(ids.map((id) => [id, { a: '1' }])),
          },
        ],
      },
    })
    const objects = await check('platform-components', await poll(service, 'one', 'platform-components'))
    const releases = objects.filter(({ kind }) => kind === 'HelmRelease').map(({ spec }) => spec.releaseName)
    assert.deepEqual(releases, [undefined, undefined, 'd'.repeat(53), undefined])
  })

  test('dependencies are waited for where they are there, switched on and of the same kind', async (t) => {
    const needs = (...depends_on: string[]): object => ({ depends_on })
    const cluster = { id: 'one', cluster_name: 'one', cluster_dns: 'one.k8s.example.com', environment: 'dev' }
    const service = await start(t, {
      types,
      fleet: {
        platform_components: [
          { id: 'chart', ...chart },
          { id: 'registry', ...helm },
          { id: 'path', ...kustomize },
          { id: 'off', ...chart },
          { id: 'path-off', ...kustomize },
          { id: 'away', ...chart },
          { id: 'waits', ...chart, ...needs('path', 'registry', 'off', 'chart', 'away') },
          { id: 'waits-too', ...helm, ...needs('away', 'chart') },
          { id: 'path-waits', ...kustomize, ...needs('path-off', 'path', 'chart') },
          { id: 'path-waits-not', ...kustomize, ...needs('path-off', 'registry') },
        ],
        clusters: [
          {
            ...cluster,
            platform_components: [
              ...['waits', 'waits-too', 'path-waits', 'path-waits-not', 'chart', 'registry', 'path'].map(
                (id) => ({ id }),
              ),
              { id: 'off', enabled: false },
              { id: 'path-off', enabled: false },
            ],
          },
        ],
      },
    })
    const objects = await check('platform-components', await poll(service, 'one', 'platform-components'))
    const waiting = objects.filter(({ spec }) => spec.dependsOn)
    assert.deepEqual(
      waiting.map(({ kind, metadata, spec }) => [
        kind,
        metadata.name,
        ...spec.dependsOn.map((other: Any) => other.name),
      ]),
      [
        ['HelmRelease', 'waits', 'registry', 'chart'],
        ['HelmRelease', 'waits-too', 'chart'],
        ['Kustomization', 'path-waits', 'path'],
      ],
    )
  })
})

describe('a namespace', () => {
  const PRUNE = 'fluxcd.controlplane.io/prune'
  const RECONCILE = 'fluxcd.controlplane.io/reconcile'

  async function annotationsOf(t: TestContext, document: object, reference: object = {}): Promise<Any> {
    const cluster = { cluster_name: 'one', cluster_dns: 'one.k8s.example.com', environment: 'dev' }
    const service = await start(t, { fleet: {}, types })
    await write(
      service,
      ['POST', '/namespaces', { id: 'team', ...document }],
      ['POST', '/clusters', { id: 'one', ...cluster }],
      ['PUT', '/clusters/one/namespaces/team', reference as Json],
    )
    const [namespace, ...others] = await check('namespaces', await poll(service, 'one', 'namespaces'))
    assert.deepEqual([namespace.kind, namespace.metadata.name, others], ['Namespace', 'team', []])
    return namespace.metadata.annotations
  }

  const CASES: readonly (readonly [
    title: string,
    document: object,
    reference: object,
    annotations: unknown,
  ])[] = [
    ['without anything has no annotations', {}, {}, undefined],
    ['that is kept says so', { prune: 'disabled' }, {}, { [PRUNE]: 'disabled' }],
    ['that is kept on one cluster says so there', {}, { prune: 'disabled' }, { [PRUNE]: 'disabled' }],
    ['that is kept, but not here', { prune: 'disabled' }, { prune: 'enabled' }, { [PRUNE]: 'enabled' }],
    [
      'kept by its annotation',
      { annotations: { [PRUNE]: 'disabled', a: '1' } },
      {},
      { [PRUNE]: 'disabled', a: '1' },
    ],
    [
      'whose field and annotation disagree does as its field says',
      { prune: 'enabled', annotations: { [PRUNE]: 'disabled' } },
      {},
      { [PRUNE]: 'enabled' },
    ],
    [
      'that Flux is to leave alone is still there',
      { annotations: { [RECONCILE]: 'disabled' } },
      {},
      undefined,
    ],
    [
      'that Flux is to leave alone on one cluster is still there',
      { annotations: { a: '1' }, prune: 'disabled' },
      { annotations: { [RECONCILE]: 'disabled', b: '2' } },
      { b: '2', [PRUNE]: 'disabled' },
    ],
  ]
  for (const [title, document, reference, annotations] of CASES) {
    test(title, async (t) => {
      assert.deepEqual(await annotationsOf(t, document, reference), annotations)
    })
  }
})

test('a role binding of each kind of subject, in the whole cluster and in a namespace', async (t) => {
  const user = { kind: 'User', name: 'jane@example.com' }
  const group = { kind: 'Group', name: 'system:masters', apiGroup: 'other.example.com' }
  const account = { kind: 'ServiceAccount', name: 'deployer', namespace: 'ci', apiGroup: 'v1' }
  const strange = { ...user, namespace: 'nowhere' }
  const lists = [[user], [group], [account], [strange], [user, group, account], []]
  const rolebindings = lists.flatMap((subjects, i) => [
    { id: `everywhere-${i}`, role: 'view', subjects },
    { id: `here-${i}`, role: 'system:aggregate-to-view', subjects, namespace: 'podinfo' },
  ])
  const cluster = { id: 'one', cluster_name: 'one', cluster_dns: 'one.k8s.example.com', environment: 'dev' }
  const assigned = rolebindings.map(({ id }) => ({ id }))
  const service = await start(t, {
    types,
    fleet: { rolebindings, clusters: [{ ...cluster, rolebindings: assigned }] },
  })
  const objects = await check('rolebindings', await poll(service, 'one', 'rolebindings'))
  const whole = [
    { kind: 'User', name: 'jane@example.com', apiGroup: RBAC },
    { kind: 'Group', name: 'system:masters', apiGroup: RBAC },
    { kind: 'ServiceAccount', name: 'deployer', namespace: 'ci' },
  ]
  for (const name of ['everywhere-4', 'here-4'])
    assert.deepEqual(objects.find(({ metadata }) => metadata.name === name).subjects, whole)
  assert.deepEqual(
    objects.filter(({ kind }) => kind === 'RoleBinding').map(({ metadata }) => metadata.namespace),
    lists.map(() => 'podinfo'),
  )
})

test('roles in the whole cluster are in a ResourceSet of their own, which waits for its provider alone', async () => {
  const inputs = [
    { id: 'everywhere', role: 'view', subjects: [] },
    { id: 'here', role: 'view', subjects: [], namespace: 'podinfo' },
  ]
  const sets = await Promise.all(
    templatesOf('rolebindings').map(async (template) => {
      const [{ metadata, spec }] = parseObjects(template) as Any[]
      const kinds = (await render([template], inputs)).map(({ kind }) => kind)
      const waitsFor = spec.dependsOn.map(({ kind, name, readyExpr }: Any) => [kind, name, readyExpr])
      return { name: metadata.name, kinds, waitsFor }
    }),
  )
  const provider = ['ResourceSetInputProvider', 'rolebindings', undefined]
  // Until it has applied once, not until it is ready: one that fails must not hold up the other.
  const first = ['ResourceSet', 'clusterrolebindings', 'has(status.lastAppliedRevision)']
  assert.deepEqual(sets, [
    { name: 'clusterrolebindings', kinds: ['ClusterRoleBinding'], waitsFor: [provider] },
    { name: 'rolebindings', kinds: ['RoleBinding'], waitsFor: [provider, first] },
  ])
})

describe('hostile documents', () => {
  test('become exactly the objects that they describe, with every value in its place', async () => {
    const kinds = new Map<string, number>()
    const texts = new Set<unknown>()
    await fc.assert(
      fc.asyncProperty(fleet, async (made) => {
        const inputs = await pollAll(made)
        const rendered = await Promise.all(
          BUILT_IN.map((endpoint) => check(endpoint, inputs[endpoint] ?? [])),
        )
        const objects = rendered.flat()
        const releases = objects
          .filter(({ kind }) => kind === 'HelmRelease')
          .map(({ metadata }) => metadata.name)
        const meant = made.components.flatMap(({ id, patches: given }) =>
          given && releases.includes(id) ? [[id, meaningOf(given.meant)]] : [],
        )
        assert.deepEqual(await valuesOf(objects), Object.fromEntries(meant))
        for (const { kind } of objects) kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
        JSON.stringify(objects, (_key, value) =>
          typeof value === 'string' ? texts.add(value) && value : value,
        )
      }),
      RUNS,
    )
    assert.equal(kinds.size, 8)
    for (const [kind, count] of kinds) assert.ok(count > 20, `${count} of ${kind}`)
    assert.ok(texts.size > 1000, `${texts.size} texts`)
  })

  test('keep their values in their fields in what is made by the scaffold of every type', async () => {
    await fc.assert(
      fc.asyncProperty(fleet, async (made) => {
        const inputs = await pollAll(made)
        await Promise.all(
          types.delivered.map((type) => checkScaffold(type, inputs[type.delivery.endpoint] ?? [])),
        )
      }),
      { ...RUNS, numRuns: 15 },
    )
  })

  async function checkScaffold(type: RegisteredDelivery, inputs: readonly Any[]): Promise<void> {
    const { endpoint } = type.delivery
    const objects = await render([scaffoldTemplate(type)], inputs)
    const on = inputs.filter(({ enabled }) => enabled !== false)
    assert.deepEqual(
      objects.map(({ kind, metadata }) => [kind, metadata]),
      on.map(({ id }) => [
        'ConfigMap',
        { name: `${endpoint}-${id}`, namespace: 'flux-system', labels: labelsOf(endpoint) },
      ]),
    )
    objects.forEach(({ data }, i) => {
      const { id: _, digest: _digest, answer_digest: _answer, ...fields } = on[i]
      const isText = (value: unknown): boolean => typeof value === 'string' || typeof value === 'boolean'
      const found = Object.entries(data).map(([name, value]) => [
        name,
        isText(fields[name]) ? value : JSON.parse(value as string),
      ])
      const wanted = Object.entries(fields).map(([name, value]) => [
        name,
        isText(value) ? String(value) : value,
      ])
      assert.deepEqual(Object.fromEntries(found), Object.fromEntries(wanted))
    })
    // Ids of up to 253 characters make names that are longer: the scaffold is to be replaced.
    assert.deepEqual(validateObjects(objects.filter(({ metadata }) => metadata.name.length <= 253)), [])
  }
})

describe('the values of a chart', () => {
  /** Components with these patches, each on its own chart, all on one cluster. */
  async function valuesFrom(
    t: TestContext,
    sets: readonly Readonly<Record<string, string>>[],
  ): Promise<Any[]> {
    const service = await start(t, { types, fleet: chartsWith(sets) })
    const objects = await check('platform-components', await poll(service, 'one', 'platform-components'))
    const values = await valuesOf(objects)
    return sets.map((_, i) => values[`c${i}`])
  }

  function chartsWith(sets: readonly Readonly<Record<string, string>>[]): object {
    const ids = sets.map((_, i) => `c${i}`)
    const chart = {
      component_path: 'a',
      component_version: '1',
      oci_url: 'https://charts.example.com',
      oci_tag: 'v1',
    }
    const cluster = { id: 'one', cluster_name: 'one', cluster_dns: 'one.k8s.example.com', environment: 'dev' }
    return {
      platform_components: ids.map((id) => ({ id, ...chart })),
      clusters: [
        {
          ...cluster,
          platform_components: ids.map((id) => ({ id })),
          patches: Object.fromEntries(ids.map((id, i) => [id, sets[i]])),
        },
      ],
    }
  }

  test('are what their paths mean, whatever is in them', async (t) => {
    const table: readonly (readonly [patches: Record<string, string>, values: object])[] = [
      [{ replicaCount: '3' }, { replicaCount: 3n }],
      [{ replicaCount: '!!str 3' }, { replicaCount: '3' }],
      [{ 'a.b[0].c': 'x', 'a.b[1].c': 'y', 'a.d': 'z' }, { a: { b: [{ c: 'x' }, { c: 'y' }], d: 'z' } }],
      [{ 'a[2]': 'x', 'a[10]': 'y' }, { a: [null, null, 'x', ...Array(7).fill(null), 'y'] }],
      [{ 'a[0][1]': '', 'a[1][0].b': 'x' }, { a: [[null, ''], [{ b: 'x' }]] }],
      [{ 'annotations.prometheus\\.io/scrape': 'true' }, { annotations: { 'prometheus.io/scrape': true } }],
      [
        { 'annotations.prometheus\\.io/scrape': '!!str true' },
        { annotations: { 'prometheus.io/scrape': 'true' } },
      ],
      [
        { 'a/b': 'x', '\\.': 'y', '-': 'z', _: '' },
        { 'a/b': 'x', '.': 'y', '-': 'z', _: '' },
      ],
      [
        { '0': 'x', true: 'y', 'null.1': '!!str 1' },
        { '0': 'x', true: 'y', null: { '1': '1' } },
      ],
      [
        { __proto__x: '1', 'a.__proto__': '2' },
        { __proto__x: 1n, a: Object.fromEntries([['__proto__', 2n]]) },
      ],
      [
        { list: '{a,b}', map: '{"a": 1}', text: 'a,b=c' },
        { list: '{a,b}', map: '{"a": 1}', text: 'a,b=c' },
      ],
      [
        { a: 'null', b: '!!str null', c: '!!str ', d: '' },
        { a: null, b: 'null', c: '', d: '' },
      ],
      [
        { a: `a\u2028b`, b: '\u2029', c: '.' },
        { a: 'a\u2028b', b: '\u2029', c: '.' },
      ],
      [{ a: 'long '.repeat(20_000) }, { a: 'long '.repeat(20_000) }],
    ]
    const found = await valuesFrom(
      t,
      table.map(([given]) => given),
    )
    table.forEach(([given, values], i) => {
      assert.deepEqual(found[i], values, JSON.stringify(given).slice(0, 200))
    })
  })

  test('are typed as by helm --set, as Helm itself says', async (t) => {
    const texts = TRICKY.filter((value) => !value.startsWith('!!str '))
    const folder = temporaryFolder(t)
    mkdirSync(join(folder, 'templates'))
    writeFileSync(join(folder, 'Chart.yaml'), 'apiVersion: v2\nname: chart\nversion: 1.0.0\n')
    writeFileSync(join(folder, 'templates/values.yaml'), 'values: {{ .Values | toJson | quote }}\n')
    const sets = texts.flatMap((value, i) => ['--set', `v${i}=${value.replaceAll(/[\\,{]/g, '\\$&')}`])
    const { code, stdout, stderr } = await run('helm', ['template', 'chart', folder, ...sets])
    assert.equal(code, 0, stderr)
    const [printed] = parseObjects(stdout) as Any[]
    const byHelm = parseExactly(printed.values)
    const named = (start: string) => Object.fromEntries(texts.map((value, i) => [`v${i}`, start + value]))
    const [byFlux, kept] = await valuesFrom(t, [named(''), named('!!str ')])
    assert.deepEqual(kept, named(''))
    texts.forEach((value, i) => {
      // Helm leaves out what is null.
      assert.deepEqual(byFlux[`v${i}`], byHelm[`v${i}`] ?? null, JSON.stringify(value))
      assert.deepEqual(byFlux[`v${i}`], typed(value), JSON.stringify(value))
    })
  })

  /** The ConfigMaps of components with these patches, in their order. */
  async function mapsFrom(sets: readonly Readonly<Record<string, string>>[]): Promise<Any[]> {
    const service = await startService({ types, fleet: chartsWith(sets) })
    const inputs = await poll(service, 'one', 'platform-components')
    await service.stop()
    const objects = await render(templatesOf('platform-components'), inputs)
    return sets.map((_, i) => valuesMapOf(objects, `c${i}`))
  }

  test('travel under keys of their own: another value that comes or goes changes none', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(patches, { minLength: 1, maxLength: 20 }), async (sets) => {
        const whole = sets.map(({ values }) => values)
        const less = whole.map((values, i) =>
          Object.fromEntries(Object.entries(values).filter((_, at) => at !== i % Object.keys(values).length)),
        )
        const [before, after] = await Promise.all([whole, less].map(mapsFrom))
        whole.forEach((values, i) => {
          const data = { ...before?.[i].data }
          const gone = Object.keys(values).find((path) => less[i]?.[path] === undefined) as string
          assert.equal(typeof data[keyOf(gone)], 'string')
          delete data[keyOf(gone)]
          assert.deepEqual(after?.[i]?.data ?? {}, data)
        })
      }),
      { ...RUNS, numRuns: 10 },
    )
  })

  test('are in a ConfigMap of another name as soon as one of them is another, and of the same one otherwise', async () => {
    const [before, same, ...others] = await Promise.all(
      [
        { a: '1', 'b.c': 'x' },
        { 'b.c': 'x', a: '1' },
        { a: '2', 'b.c': 'x' },
        { a: '!!str 1', 'b.c': 'x' },
        { a: '1' },
        { a: '1', 'b.c': 'x', d: '' },
        { a: '1', 'b.d': 'x' },
        { a: 'x', 'b.c': '1' },
      ].map(async (values) => (await mapsFrom([values]))[0].metadata.name),
    )
    assert.equal(same, before)
    assert.equal(new Set([before, ...others]).size, 1 + others.length)
  })

  test('may be empty in a list of objects', async (t) => {
    assert.deepEqual(await valuesFrom(t, [{ 'hosts[0].name': '' }, { 'a.b[1].c.d': '!!str ' }]), [
      { hosts: [{ name: '' }] },
      { a: { b: [null, { c: { d: '' } }] } },
    ])
  })

  test('stay strings after !!str, also where Helm folds other letters to those of false', async (t) => {
    assert.deepEqual(await valuesFrom(t, [{ a: '!!str falſe', b: '!!str FALſE' }]), [
      { a: 'falſe', b: 'FALſE' },
    ])
  })
})

describe('the example of network policies', () => {
  const POLICY = {
    id: 'allow-monitoring',
    target_namespace: 'podinfo',
    ingress_rules: [{ from_namespace: 'observability', port: 9090 }],
  }

  test('is rendered as its folder shows', async (t) => {
    const service = await start(t, { fleet: JSON.parse(read('data/seed.json')), types })
    await write(
      service,
      ['POST', '/network_policies', POLICY],
      ['PUT', '/clusters/demo-cluster-01/network_policies/allow-monitoring'],
    )
    const inputs = await poll(service, 'demo-cluster-01', 'network-policies')
    await check('network-policies', inputs)
    const heading = '# What the Flux Operator makes of the network policy in docs/resource-types.md.\n'
    const rendered = heading + (await renderYaml(templatesOf('network-policies'), inputs))
    if (UPDATE) {
      mkdirSync(dirname(RENDERED), { recursive: true })
      writeFileSync(RENDERED, rendered)
    }
    assert.equal(readFileSync(RENDERED, 'utf8'), rendered)
    assert.ok(read('docs/resource-types.md').includes(JSON.stringify(POLICY)))
  })

  test('guards whatever namespaces, from whomever', async () => {
    const rule = fc.record({ from_namespace: label, port: fc.integer({ min: 1, max: 65_535 }) }, PLAIN)
    const policies = severally(
      subdomain,
      fc.record(
        { target_namespace: label, ingress_rules: fc.array(rule, { maxLength: 4 }) },
        { ...PLAIN, requiredKeys: ['target_namespace'] },
      ),
    )
    const cluster = { id: 'one', cluster_name: 'one', cluster_dns: 'one.k8s.example.com', environment: 'qa' }
    await fc.assert(
      fc.asyncProperty(policies, async (network_policies) => {
        const assigned = network_policies.map(({ id }) => ({ id }))
        const clusters = [{ ...cluster, network_policies: assigned }]
        const service = await startService({ types, fleet: { network_policies, clusters } })
        const inputs = await poll(service, 'one', 'network-policies')
        await service.stop()
        const { name, dns, environment } = { ...cluster, name: 'one', dns: cluster.cluster_dns }
        assert.deepEqual(
          JSON.parse(withoutDigests(JSON.stringify(inputs))),
          network_policies.map((policy) => ({
            ingress_rules: [],
            ...policy,
            cluster: { name, dns, environment },
          })),
        )
        await check('network-policies', inputs)
      }),
      { ...RUNS, numRuns: 10 },
    )
  })
})

test('no answer to a poll holds a null, whatever was done to a fleet', async () => {
  let polled = 0
  const source = { component_path: 'p', component_version: '1', oci_url: 'oci://x', oci_tag: 'v1' }
  const assigned = {
    platform_components: ['a', 'b', 'c', 'd'].map((id) => ({ id })),
    namespaces: ['n0', 'n1', 'n2'].map((id) => ({ id })),
    rolebindings: ['r0', 'r1'].map((id) => ({ id })),
  }
  const begin = {
    ...assigned,
    platform_components: assigned.platform_components.map(({ id }) => ({ id, ...source })),
    rolebindings: assigned.rolebindings.map(({ id }) => ({ id, role: 'view', subjects: [] })),
    clusters: ['k0', 'k1', 'k2'].map((id) => ({
      id,
      cluster_name: id,
      cluster_dns: `${id}.example.com`,
      environment: 'dev',
      ...assigned,
    })),
  }
  await fc.assert(
    fc.asyncProperty(commands, async (list) => {
      const service = await startService({ fleet: begin })
      try {
        for (const command of list) await service.engine.write([command], AUTHOR)
        for (const dns of ['k0', 'k1', 'k2']) {
          for (const endpoint of BUILT_IN) {
            const url = `/api/v2/flux/clusters/${dns}.example.com/${endpoint}`
            const { status, text } = await service.call('GET', url, { token: READ_TOKEN })
            if (status === 404) continue
            assert.equal(status, 200, text)
            if (text !== '{"inputs":[]}') polled++
            JSON.parse(text, (key, value) => {
              assert.notEqual(value, null, `${key} in ${text}`)
              return value
            })
          }
        }
      } finally {
        await service.stop()
      }
    }),
    { ...RUNS, numRuns: 60 },
  )
  assert.ok(polled > 60, String(polled))
})

describe('what would stop a cluster is refused by the API', () => {
  const chart = {
    component_path: 'a',
    component_version: '1.0.0',
    oci_url: 'https://charts.example.com',
    oci_tag: 'v1',
  }
  const cluster = { cluster_name: 'one', cluster_dns: 'one.k8s.example.com', environment: 'dev' }

  /** Gives the document to a cluster; answers its inputs, or nothing when the API refuses. */
  async function given(
    t: TestContext,
    type: string,
    endpoint: string,
    document: object,
    values: Readonly<Record<string, string>> = {},
  ): Promise<Any[] | undefined> {
    const service = await start(t, { fleet: {}, types })
    const create = async (url: string, body: Json, mayFail: boolean): Promise<boolean> => {
      const { status, text } = await service.call('POST', url, { body })
      if (status === 400 && mayFail) return false
      assert.equal(status, 201, text)
      return true
    }
    const patched = Object.keys(values).length > 0 && { patches: { x: values } }
    const assigned = { id: 'one', ...cluster, [type]: [{ id: 'x' }], ...patched }
    const isTaken =
      (await create(`/${type}`, { id: 'x', ...document }, true)) &&
      (await create('/clusters', assigned, patched !== false))
    if (!isTaken) return undefined
    return poll(service, 'one', endpoint)
  }

  test('characters that Flux cannot write', async (t) => {
    for (const character of ['\u007f', '\u0080', '\u0085', '\u009f', '\ufffe', '\uffff']) {
      for (const [type, endpoint, document] of [
        ['namespaces', 'namespaces', { annotations: { a: character } }],
        ['rolebindings', 'rolebindings', { role: `a${character}`, subjects: [] }],
        ['platform_components', 'platform-components', { ...chart, component_version: character }],
      ] as const) {
        const inputs = await given(t, type, endpoint, document)
        if (inputs) await check(endpoint, inputs)
      }
    }
    const inputs = await given(t, 'platform_components', 'platform-components', chart, { a: '\u0090' })
    if (inputs) await check('platform-components', inputs)
  })

  test('the path of a chart that makes no URL, or that is too long for Flux', async (t) => {
    for (const document of [
      { ...chart, oci_url: 'oci://registry.example.com', delivery: 'helm', component_path: 'a\nb' },
      { ...chart, component_path: 'x'.repeat(2049) },
    ]) {
      const inputs = await given(t, 'platform_components', 'platform-components', document)
      if (inputs) await check('platform-components', inputs)
    }
  })

  test('roles and service accounts of names that Kubernetes has none of', async (t) => {
    const account = (name: string): object => ({
      role: 'view',
      subjects: [{ kind: 'ServiceAccount', name, namespace: 'a' }],
    })
    for (const document of [
      ...['a/b', 'a%b', '.', '..'].map((role) => ({ role, subjects: [] })),
      ...['A', 'a b', 'a_b', '-a', 'system:serviceaccount:a:b', 'a'.repeat(254)].map(account),
    ])
      assert.equal(
        await given(t, 'rolebindings', 'rolebindings', document),
        undefined,
        JSON.stringify(document),
      )
  })

  test('paths that Helm does not take', async (t) => {
    for (const path of ['a[65537]', Array(32).fill('a').join('.')]) {
      const inputs = await given(t, 'platform_components', 'platform-components', chart, { [path]: '1' })
      assert.equal(inputs, undefined, path)
    }
  })

  /** JSON.parse of V8 takes a key for another once it has seen that one after the same keys: nodejs/node#63785. */
  test('keys that change how keys are read after them', async (t) => {
    const service = await start(t, { fleet: {}, types })
    const values = { a: '1', 'b\\.cd': '2' }
    await write(
      service,
      ['POST', '/platform_components', { id: 'x', ...chart }],
      ['POST', '/clusters', { id: 'one', ...cluster, platform_components: [{ id: 'x' }] }],
    )
    const url = '/clusters/one/patches/x'
    await service.call('PUT', url, { raw: String.raw`{"a":"1","b\\\\.c":"2"}` })
    await write(service, ['PUT', url, values])
    const { text: stored } = await service.call('GET', url)
    assert.equal(stored, JSON.stringify(values))
  })
})
