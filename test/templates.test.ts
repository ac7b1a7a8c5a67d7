// Templates of one's own in bootstrap bundles: how they get there, what is refused, and what to start one from.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { loadTemplates } from '../src/bootstrap/load-templates.ts'
import { scaffoldTemplate } from '../src/bootstrap/scaffold-template.ts'
import { parseConfig } from '../src/config/config.ts'
import type { RegisteredDelivery, RegisteredTypes } from '../src/registry/build-types.ts'
import { loadTypes } from '../src/registry/load-types.ts'
import { start } from './every-store.ts'
import { parseObjects } from './flux/tools.ts'
import {
  builtInTemplates,
  builtInTypes,
  COMPILED,
  failToStart,
  MAIN,
  READ_TOKEN,
  RESOURCES,
  smallFleet,
  spawnService,
  temporaryFolder,
} from './service.ts'

const ROOT = join(import.meta.dirname, '..')
const EXAMPLE = join(ROOT, 'examples/network-policies')
const OURS = join(ROOT, 'deploy/templates')
const FLAVORS = ['concrete', 'identity'] as const
const types = builtInTypes()

/** Starting a process is most of the work, and no test here knows of another. */
const AT_ONCE = { concurrency: 4 }

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> }
  // biome-ignore lint/suspicious/noExplicitAny: tests look into manifests freely
  readonly [more: string]: any
}

/** A folder with these files. */
function folderWith(t: TestContext, files: Readonly<Record<string, string>>): string {
  const folder = temporaryFolder(t)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

function configMap(name: string, more = ''): string {
  return `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n  namespace: flux-system\n${more}`
}

/** A ResourceSet that is as it should be, but for what is said otherwise. */
function resourceSet(
  name: string,
  {
    provider = 'namespaces',
    namespace = 'flux-system',
    inputsFrom = `[{ apiVersion: fluxcd.controlplane.io/v1, kind: ResourceSetInputProvider, name: ${provider} }]`,
    dependsOn = `[{ apiVersion: fluxcd.controlplane.io/v1, kind: ResourceSetInputProvider, name: ${provider}, ready: true }]`,
  }: { provider?: string; namespace?: string; inputsFrom?: string; dependsOn?: string } = {},
): string {
  return `apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: { name: ${name}, namespace: ${namespace} }
spec:
  inputsFrom: ${inputsFrom}
  dependsOn: ${dependsOn}
  resourcesTemplate: "# of ${name}"
`
}

/** The bundles of a service that has these folders beside the built-in templates. */
async function bundles(
  t: TestContext,
  folders: readonly string[],
  more = '',
): Promise<
  Record<(typeof FLAVORS)[number], { readonly text: string; readonly manifests: readonly Manifest[] }>
> {
  const service = await start(t, { types, templates: builtInTemplates(types, ...folders) })
  const read = async (flavor: string) => {
    const url = `/clusters/one/bootstrap?flavor=${flavor}&api_url=https://fleet.example.com${more}`
    const { status, text } = await service.call('GET', url)
    assert.equal(status, 200, text)
    return { text, manifests: parseObjects(text) as Manifest[] }
  }
  return { concrete: await read('concrete'), identity: await read('identity') }
}

function namesIn(manifests: readonly Manifest[]): string[] {
  return manifests.map(({ kind, metadata }) => `${kind}/${metadata.name}`)
}

/** The problems with one file, without its folder. */
function problemsWith(t: TestContext, text: string, file = 'mine.yaml'): readonly string[] {
  const folder = folderWith(t, { [file]: text })
  const loaded = loadTemplates([OURS, folder], types)
  if (loaded.ok) return []
  return loaded.problems.map((problem) => {
    assert.ok(problem.startsWith(`${join(folder, file)}: `), problem)
    return problem.slice(join(folder, file).length + 2)
  })
}

describe('templates of your own', () => {
  test('replace the built-in one of the same file name, and leave the others', async (t) => {
    const before = await bundles(t, [])
    const found = await bundles(t, [folderWith(t, { 'namespaces.yaml': resourceSet('my-namespaces') })])
    for (const flavor of FLAVORS) {
      assert.deepEqual(
        namesIn(found[flavor].manifests),
        namesIn(before[flavor].manifests).map((name) =>
          name === 'ResourceSet/namespaces' ? 'ResourceSet/my-namespaces' : name,
        ),
      )
      assert.doesNotMatch(found[flavor].text, /Makes the namespaces that the cluster is given/)
    }
  })

  test('come beside the built-in ones: what takes no inputs before the providers, the others after them', async (t) => {
    const folder = folderWith(t, {
      'zoo.yaml': configMap('zoo'),
      'aviary.yml': resourceSet('aviary', { provider: 'rolebindings' }),
      'b.yaml': `${resourceSet('first')}---\n${configMap('second')}---\n${resourceSet('third')}`,
    })
    const { concrete, identity } = await bundles(t, [folder])
    assert.deepEqual(namesIn(concrete.manifests).slice(3), [
      'ConfigMap/second',
      'FluxInstance/flux',
      'ConfigMap/zoo',
      'ResourceSetInputProvider/namespaces',
      'ResourceSetInputProvider/platform-components',
      'ResourceSetInputProvider/rolebindings',
      'ResourceSetInputProvider/fleet-ack',
      'ResourceSet/fleet-events',
      'ResourceSet/fleet-events-operator',
      'ResourceSet/fleet-ack',
      'ResourceSet/aviary',
      'ResourceSet/first',
      'ResourceSet/third',
      'ResourceSet/namespaces',
      'ResourceSet/platform-components',
      'ResourceSet/clusterrolebindings',
      'ResourceSet/rolebindings',
    ])
    assert.deepEqual(namesIn(identity.manifests).slice(2, 7), [
      'ConfigMap/second',
      'FluxInstance/flux',
      'ConfigMap/zoo',
      'ResourceSetInputProvider/cluster-identity',
      'ResourceSet/phone-home',
    ])
  })

  test('keep their comments and their layout', async (t) => {
    const text = [
      '# What the zoo needs.',
      '# Two lines of it.',
      configMap('zoo', 'data:\n  # Above.\n  a: "b" # Beside.\n  c: |\n    # not a comment\n    d\n'),
    ].join('\n')
    const { concrete, identity } = await bundles(t, [
      folderWith(t, { 'zoo.yaml': `${text}\n# At the end.\n` }),
    ])
    assert.ok(concrete.text.includes(`---\n${text}`), concrete.text)
    for (const { text } of [concrete, identity]) {
      for (const comment of [
        '# What the zoo needs.\n# Two lines of it.\n',
        '  # Above.\n',
        '"b" # Beside.\n',
        '# At the end.\n',
      ])
        assert.ok(text.includes(comment), comment)
    }
  })

  test('of a source keep their own annotations, and are kept and not substituted, whatever these say', async (t) => {
    const annotations = 'annotations: { a: b, kustomize.toolkit.fluxcd.io/prune: enabled }'
    const folder = folderWith(t, {
      'zoo.yaml': configMap('zoo', `  ${annotations}\ndata: { x: "\${CLUSTER_DNS}" }\n`),
      'flow.yaml': '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flow"}}',
    })
    const { concrete, identity } = await bundles(t, [folder])
    const kept = {
      'kustomize.toolkit.fluxcd.io/prune': 'disabled',
      'kustomize.toolkit.fluxcd.io/substitute': 'disabled',
    }
    const of = (manifests: readonly Manifest[], name: string) =>
      manifests.find(({ metadata }) => metadata.name === name)?.metadata.annotations
    assert.deepEqual(of(identity.manifests, 'zoo'), { a: 'b', ...kept })
    assert.deepEqual(of(identity.manifests, 'flow'), kept)
    assert.deepEqual(of(concrete.manifests, 'zoo'), {
      a: 'b',
      'kustomize.toolkit.fluxcd.io/prune': 'enabled',
    })
  })

  test('with Flux in them go with Flux', async (t) => {
    const text = 'apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: { name: flux }\n'
    const templates = builtInTemplates(types, folderWith(t, { 'flux-instance.yaml': text }))
    const service = await start(t, { types, templates })
    const with_ = await service.call('GET', '/clusters/one/bootstrap')
    const without = await service.call('GET', '/clusters/one/bootstrap?flux_instance=false')
    assert.equal(with_.text.match(/^kind: FluxInstance$/gm)?.length, 1)
    assert.doesNotMatch(without.text, /^kind: FluxInstance$/m)
  })

  test('are the YAML files of their folder, and may be none', async (t) => {
    const before = await bundles(t, [])
    const folder = folderWith(t, {
      'notes.txt': 'kind: [',
      '.hidden.yaml': 'kind: [',
      'namespaces.yaml.bak': 'kind: [',
      'empty.yaml': '',
      'comment.yaml': '# Nothing yet.\n',
    })
    mkdirSync(join(folder, 'below'))
    assert.deepEqual(await bundles(t, [folder]), before)
  })

  test('may have Windows line ends and a byte order mark', async (t) => {
    const text = `\ufeff${configMap('zoo', 'data:\n  a: |\n    b\n    c\n').replaceAll('\n', '\r\n')}`
    const { concrete } = await bundles(t, [folderWith(t, { 'zoo.yaml': text })])
    assert.deepEqual(concrete.manifests.find(({ metadata }) => metadata.name === 'zoo')?.data, {
      a: 'b\nc\n',
    })
    assert.doesNotMatch(concrete.text, /[\r\ufeff]/)
  })

  test('come in later folders before those of earlier ones, as the process is told', async (t) => {
    const first = folderWith(t, { 'a.yaml': configMap('a-first'), 'b.yaml': configMap('b-first') })
    const second = folderWith(t, { 'b.yaml': configMap('b-second'), 'namespaces.yaml': resourceSet('mine') })
    const seed = folderWith(t, { 'seed.json': JSON.stringify(smallFleet()) })
    const service = await spawnService({
      STORE_BACKEND: 'memory',
      API_MODE: 'crud',
      SEED_FILE: join(seed, 'seed.json'),
      TEMPLATES_DIR: `${first}::${second}:`,
      EXTERNAL_URL: 'https://Fleet.Example.com:443/api/',
    })
    t.after(() => service.stop('SIGKILL'))
    const { status, text } = await service.call('GET', '/clusters/one/bootstrap', { token: READ_TOKEN })
    assert.equal(status, 200, text)
    const names = namesIn(parseObjects(text) as Manifest[])
    assert.ok(names.includes('ConfigMap/a-first') && names.includes('ConfigMap/b-second'))
    assert.ok(!names.includes('ConfigMap/b-first') && !names.includes('ResourceSet/namespaces'))
    assert.match(text, /^ {2}INTERNAL_API_URL: https:\/\/fleet\.example\.com\/api$/m)
    assert.equal(await service.stop(), 0)
  })

  for (const [metadata, annotations] of [
    ['{ name: zoo, annotations: }', {}],
    ['{ name: zoo, annotations: {} }', {}],
    ['{ name: zoo, annotations: ~ }', {}],
    ['{ name: zoo, annotations: null }', {}],
    ['{ name: zoo, labels: &l { a: b }, annotations: *l }', { a: 'b' }],
  ] as const) {
    test(`may have metadata: ${metadata}`, async (t) => {
      const text = `apiVersion: v1\nkind: ConfigMap\nmetadata: ${metadata}\n`
      const { identity } = await bundles(t, [folderWith(t, { 'zoo.yaml': text })])
      const zoo = identity.manifests.find(({ metadata }) => metadata.name === 'zoo')
      assert.deepEqual(zoo?.metadata, {
        name: 'zoo',
        ...('a' in annotations && { labels: annotations }),
        annotations: {
          ...annotations,
          'kustomize.toolkit.fluxcd.io/prune': 'disabled',
          'kustomize.toolkit.fluxcd.io/substitute': 'disabled',
        },
      })
    })
  }

  test('keep what is in them as it is written', async (t) => {
    const values = [
      'mode: 0444',
      'big: 12345678901234567890',
      'plus: +5',
      'e: 1e3',
      'long: 0.10000000000000000001',
      'thousand: 1_000',
      'truth: yes',
      'text: "no"',
      "other: 'off'",
      'time: 2026-01-31',
      'nothing:',
      'tilde: ~',
      'tagged: !!str 0444',
      '"on": n',
      'anchor: &a { b: 0777 }',
      'alias: *a',
    ]
    const text = configMap('zoo', `spec:\n${values.map((value) => `  ${value}\n`).join('')}`)
    const { concrete, identity } = await bundles(t, [folderWith(t, { 'zoo.yaml': text })])
    assert.ok(concrete.text.includes(text), concrete.text)
    for (const value of values) assert.ok(identity.text.includes(`\n  ${value}\n`), value)
  })

  test('may say which YAML they are, and where they end', async (t) => {
    const text = `%YAML 1.1\n---\n${configMap('zoo', 'data: { a: "5" }\n')}...\n`
    const found = await bundles(t, [folderWith(t, { 'zoo.yaml': text })])
    for (const flavor of FLAVORS) {
      const zoo = found[flavor].manifests.find(({ metadata }) => metadata.name === 'zoo')
      assert.deepEqual(zoo?.data, { a: '5' })
      assert.doesNotMatch(found[flavor].text, /^%/m)
    }
  })

  test('may have separators with nothing between them', async (t) => {
    const before = await bundles(t, [])
    const text = `---\n# About the zoo.\n---\n${configMap('zoo')}---\n---\n~\n---\n`
    const found = await bundles(t, [folderWith(t, { 'zoo.yaml': text })])
    for (const flavor of FLAVORS) {
      const more = namesIn(found[flavor].manifests).filter((name) => name !== 'ConfigMap/zoo')
      assert.deepEqual(more, namesIn(before[flavor].manifests))
      assert.equal(found[flavor].manifests.length, more.length + 1)
    }
  })

  test('may have two objects of one name whose kinds are of different groups', (t) => {
    const service = (apiVersion: string): string =>
      `apiVersion: ${apiVersion}\nkind: Service\nmetadata: { name: zoo, namespace: zoo }\n`
    assert.deepEqual(problemsWith(t, `${service('v1')}---\n${service('serving.knative.dev/v1')}`), [])
  })
})

describe('a template that is refused', () => {
  const UNGUARDED = (who: string, provider: string): string =>
    `ResourceSet "${who}": spec.dependsOn must name the provider "${provider}" with ready: true, or one that is made anew deletes everything`
  const BY_LABEL = (who: string): string =>
    `ResourceSet "${who}": spec.inputsFrom must name its provider: one chosen by label takes everything along when it goes`
  const UNKNOWN = (provider: string): string =>
    `takes inputs from "${provider}", which is no endpoint of a type: known are namespaces, platform-components, rolebindings`
  const REQUIRED = ['apiVersion is required', 'kind is required', 'metadata.name is required']
  const NAMESPACE = 'ResourceSet "zoo": metadata.namespace must be flux-system, where its provider is'
  const provider = (fields: string): string => `[{ kind: ResourceSetInputProvider, ${fields} }]`

  const REFUSED: readonly (readonly [is: string, text: string, problems: readonly string[]])[] = [
    ['has no kind', configMap('zoo').replace('kind: ConfigMap\n', ''), ['kind is required']],
    ['has no apiVersion', configMap('zoo').replace('apiVersion: v1\n', ''), ['apiVersion is required']],
    ['has no name', 'apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n', ['metadata.name is required']],
    ['has a number for a name', configMap('5'), ['metadata.name is required']],
    ['has no metadata', 'apiVersion: v1\nkind: ConfigMap\n', ['metadata.name is required']],
    ['is a list', '- a\n- b\n', REQUIRED],
    ['is a word', 'zoo\n', REQUIRED],
    ['is in another namespace', resourceSet('zoo', { namespace: 'zoo' }), [NAMESPACE]],
    ['is in no namespace', resourceSet('zoo').replace(', namespace: flux-system', ''), [NAMESPACE]],
    ['takes inputs from what is no type', resourceSet('zoo', { provider: 'animals' }), [UNKNOWN('animals')]],
    [
      'names a type as in routes',
      resourceSet('zoo', { provider: 'platform_components' }),
      [UNKNOWN('platform_components')],
    ],
    [
      'takes inputs by label',
      resourceSet('zoo', { inputsFrom: '[{ selector: { matchLabels: { a: b } } }]' }),
      [BY_LABEL('zoo')],
    ],
    [
      'takes inputs by name and by label',
      resourceSet('zoo', { inputsFrom: '[{ name: namespaces }, { selector: { matchLabels: { a: b } } }]' }),
      [BY_LABEL('zoo')],
    ],
    ['waits for nothing', resourceSet('zoo', { dependsOn: '[]' }), [UNGUARDED('zoo', 'namespaces')]],
    [
      'waits without ready',
      resourceSet('zoo', { dependsOn: provider('name: namespaces') }),
      [UNGUARDED('zoo', 'namespaces')],
    ],
    [
      'waits with ready: false',
      resourceSet('zoo', { dependsOn: provider('name: namespaces, ready: false') }),
      [UNGUARDED('zoo', 'namespaces')],
    ],
    [
      'waits with ready in quotes',
      resourceSet('zoo', { dependsOn: provider("name: namespaces, ready: 'true'") }),
      [UNGUARDED('zoo', 'namespaces')],
    ],
    [
      'waits for another provider',
      resourceSet('zoo', { dependsOn: provider('name: rolebindings, ready: true') }),
      [UNGUARDED('zoo', 'namespaces')],
    ],
    [
      'waits for another kind',
      resourceSet('zoo', { dependsOn: '[{ kind: ResourceSet, name: namespaces, ready: true }]' }),
      [UNGUARDED('zoo', 'namespaces')],
    ],
    [
      'waits for one of two',
      resourceSet('zoo', { inputsFrom: '[{ name: namespaces }, { name: rolebindings }]' }),
      [UNGUARDED('zoo', 'rolebindings')],
    ],
    [
      'is wrong in every way, also in its second document',
      `${configMap('5')}---\n${resourceSet('zoo', { inputsFrom: '[{ name: animals }, { selector: {} }]', dependsOn: '[]' })}`,
      ['metadata.name is required', BY_LABEL('zoo'), UNKNOWN('animals')],
    ],
    [
      'waits for nothing and takes inputs from what is no type',
      resourceSet('zoo', { provider: 'animals', dependsOn: '[]' }),
      [UNGUARDED('zoo', 'animals'), UNKNOWN('animals')],
    ],
    [
      'waits for a provider of another namespace',
      resourceSet('zoo', { dependsOn: provider('name: namespaces, namespace: zoo, ready: true') }),
      [UNGUARDED('zoo', 'namespaces')],
    ],
    [
      'waits in what is no list',
      resourceSet('zoo', { dependsOn: '{ kind: ResourceSetInputProvider, name: namespaces, ready: true }' }),
      [UNGUARDED('zoo', 'namespaces')],
    ],
    [
      'takes inputs from what is no list',
      resourceSet('zoo', { inputsFrom: '{ selector: { matchLabels: { a: b } } }' }),
      ['ResourceSet "zoo": spec.inputsFrom must be a list'],
    ],
    [
      'takes inputs from a name that is no text',
      resourceSet('zoo', { inputsFrom: '[{ name: 5 }]' }),
      [BY_LABEL('zoo')],
    ],
    [
      'takes inputs from one with both a name and labels',
      resourceSet('zoo', { inputsFrom: '[{ name: namespaces, selector: { matchLabels: { a: b } } }]' }),
      [BY_LABEL('zoo')],
    ],
    ['has an empty name', configMap("''"), ['metadata.name is required']],
    ['has a name that Kubernetes takes for a boolean', configMap('no'), ['metadata.name is required']],
  ]

  for (const [is, text, problems] of REFUSED) {
    test(is, (t) => {
      assert.deepEqual(problemsWith(t, text), problems)
    })
  }

  for (const [is, text, says] of [
    ['is not YAML', 'kind: [ConfigMap', /line 1/],
    ['says a thing twice', configMap('zoo', 'data: { a: b, a: c }\n'), /Map keys must be unique at line 6/],
    ['is not YAML in its second document', `${configMap('zoo')}---\na: b: c\n`, /line 7/],
    ['has an alias of nothing', configMap('zoo', 'data: { a: *nothing }\n'), /alias.*nothing/i],
    ['has aliases of aliases without end', configMap('zoo', aliasesOfAliases()), /alias/i],
  ] as const) {
    test(is, (t) => {
      const [problem = '', ...more] = problemsWith(t, text)
      assert.match(problem, says)
      assert.deepEqual(more, [])
    })
  }

  test('is a folder, or in a folder that is not there', (t) => {
    const folder = temporaryFolder(t)
    mkdirSync(join(folder, 'zoo.yaml'))
    const missing = join(folder, 'missing')
    const loaded = loadTemplates([OURS, folder, missing], types)
    assert.ok(!loaded.ok)
    const [first = '', second = '', ...more] = loaded.problems.toSorted()
    assert.deepEqual(more, [])
    assert.ok(first.startsWith(`${missing}: cannot be read: ENOENT`), first)
    assert.ok(second.startsWith(`${join(folder, 'zoo.yaml')}: EISDIR`), second)
  })

  test('stops the service before it starts, and every problem of every file is told', AT_ONCE, async (t) => {
    const folder = folderWith(t, {
      'a.yaml': 'kind: [',
      'b.yaml': resourceSet('b', { provider: 'animals' }),
      'c.yaml': resourceSet('c', { dependsOn: '[]' }),
      'd.yaml': configMap('fine'),
    })
    const TEMPLATES_DIR = `${folder}:${join(folder, 'missing')}`
    const { code, stderr } = await failToStart({
      AUTH_TOKEN: 'hush',
      STORE_BACKEND: 'memory',
      LISTEN_ADDR: '127.0.0.1:0',
      TEMPLATES_DIR,
    })
    assert.equal(code, 2, stderr)
    assert.doesNotMatch(stderr, /hush|\n\s+at |d\.yaml/)
    const [before, ...problems] = stderr.trimEnd().split(/^flux-resourceset: /m)
    assert.equal(before, '')
    const files = problems.map((problem) => /^(\S+?): /.exec(problem)?.[1]?.slice(folder.length + 1))
    assert.deepEqual(files, ['missing', 'a.yaml', 'b.yaml', 'c.yaml'])
  })

  test('makes an object that another file makes already', (t) => {
    const ours = join(OURS, 'namespaces.yaml')
    assert.deepEqual(problemsWith(t, resourceSet('namespaces'), 'namespaces.yml'), [
      `ResourceSet flux-system/namespaces is in ${ours} already`,
    ])
    const folder = folderWith(t, { 'before.yaml': resourceSet('namespaces') })
    const loaded = loadTemplates([OURS, folder], types)
    assert.ok(!loaded.ok)
    const [problem = '', ...more] = loaded.problems
    for (const file of [ours, join(folder, 'before.yaml')]) assert.ok(problem.includes(file), problem)
    assert.deepEqual(more, [])
  })

  test('makes an object twice', (t) => {
    const [problem = '', ...more] = problemsWith(t, `${configMap('zoo')}---\n${configMap('zoo')}`)
    assert.match(problem, /^ConfigMap flux-system\/zoo is in \S+mine\.yaml already$/)
    assert.deepEqual(more, [])
    const elsewhere = configMap('zoo').replace('flux-system', 'zoo')
    assert.deepEqual(problemsWith(t, `${configMap('zoo')}---\n${elsewhere}`), [])
  })

  test('makes an object that the bundle makes itself', (t) => {
    const FLUX = 'apiVersion: fluxcd.controlplane.io/v1\n'
    const inFlux = (name: string): string => `metadata: { name: ${name}, namespace: flux-system }\n`
    const providers = ['namespaces', 'platform-components', 'rolebindings', 'cluster-identity'].map(
      (name) => [
        `ResourceSetInputProvider flux-system/${name}`,
        `${FLUX}kind: ResourceSetInputProvider\n${inFlux(name)}spec: { type: Static }\n`,
      ],
    )
    for (const [who, text = ''] of [
      ...providers,
      ['ConfigMap flux-system/cluster-identity', configMap('cluster-identity')],
      [
        'Secret flux-system/internal-api-token',
        `apiVersion: v1\nkind: Secret\n${inFlux('internal-api-token')}`,
      ],
      ['Namespace flux-system', 'apiVersion: v1\nkind: Namespace\nmetadata: { name: flux-system }\n'],
      ['ResourceSet flux-system/phone-home', resourceSet('phone-home')],
    ])
      assert.deepEqual(problemsWith(t, text), [`${who} is in every bundle already`])
    const others = ['cluster-identity', 'namespaces'].map((name) => configMap(`${name}-2`)).join('---\n')
    assert.deepEqual(problemsWith(t, others), [])
  })

  test('says what its tags stand for', (t) => {
    const text = `%TAG !y! tag:yaml.org,2002:\n---\n${configMap('zoo', 'data: { a: !y!str 5 }\n')}`
    assert.match(problemsWith(t, text).join('\n'), /^a bundle carries no directives/)
  })

  test('has metadata that is an alias', (t) => {
    const text = 'apiVersion: v1\nkind: Thing\nspec: { template: &m { name: zoo } }\nmetadata: *m\n'
    assert.deepEqual(problemsWith(t, text), ['metadata must be written out'])
  })

  test('has annotations that are no map', (t) => {
    for (const annotations of ['[a]', 'text'])
      assert.equal(
        problemsWith(t, configMap('zoo', `  annotations: ${annotations}\n`)).length,
        1,
        annotations,
      )
  })
})

function aliasesOfAliases(): string {
  const ten = (item: string): string => `[${Array(10).fill(item).join(', ')}]`
  return `a: &a ${ten('x')}\nb: &b ${ten('*a')}\nc: &c ${ten('*b')}\nd: &d ${ten('*c')}\n`
}

describe('a built-in template', () => {
  test('is left out when its type is not there, and one of your own for it is refused', (t) => {
    const resources = temporaryFolder(t)
    cpSync(RESOURCES, resources, { recursive: true })
    rmSync(join(resources, 'rolebinding.yaml'))
    const fewer = loadTypes([resources])
    assert.ok(fewer.ok)
    const loaded = loadTemplates([OURS], fewer.types)
    assert.ok(loaded.ok)
    assert.deepEqual(
      loaded.templates.flatMap(({ endpoints }) => endpoints),
      ['namespaces', 'platform-components'],
    )
    const mine = folderWith(t, { 'mine.yaml': resourceSet('mine', { provider: 'rolebindings' }) })
    const refused = loadTemplates([OURS, mine], fewer.types)
    assert.ok(!refused.ok)
    assert.match(refused.problems.join('\n'), /^\S+mine\.yaml: takes inputs from "rolebindings"/)
  })

  test('is as its file has it, comments and all', async (t) => {
    const { concrete } = await bundles(t, [], '&ack=off&events=off')
    for (const name of ['flux-instance', 'namespaces', 'platform-components', 'rolebindings']) {
      const text = readFileSync(join(OURS, `${name}.yaml`), 'utf8')
      assert.ok(concrete.text.includes(`---\n${text}`), name)
    }
  })
})

function typeOf(all: RegisteredTypes, endpoint: string): RegisteredDelivery {
  return all.delivered.find(({ delivery }) => delivery.endpoint === endpoint) ?? assert.fail(endpoint)
}

interface Run {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the command with no other settings in its environment. */
function scaffold(args: readonly string[], env: Record<string, string> = {}): Promise<Run> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [MAIN, 'scaffold-template', ...args],
      { env: { ...COMPILED, ...env }, timeout: 30_000 },
      (_error, stdout, stderr) => resolve({ code: child.exitCode, stdout, stderr }),
    )
  })
}

describe('scaffold-template', AT_ONCE, () => {
  const KNOWN = 'known are namespaces, platform_components, rolebindings'

  test('knows a type by its kind, by its noun and by its endpoint', async () => {
    const type = typeOf(types, 'platform-components')
    const runs = await Promise.all(
      ['platform_components', 'component', 'platform-components'].map((name) => scaffold([name])),
    )
    for (const run of runs) assert.deepEqual(run, { code: 0, stdout: scaffoldTemplate(type), stderr: '' })
  })

  test('knows the types of RESOURCES_DIR', async () => {
    const { code, stdout, stderr } = await scaffold(['network-policy'], { RESOURCES_DIR: EXAMPLE })
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(stdout, /^ {2}name: network-policies$/m)
  })

  for (const [args, says] of [
    [[], `scaffold-template needs one type: ${KNOWN}`],
    [['namespaces', 'rolebindings'], `scaffold-template needs one type: ${KNOWN}`],
    [['animals'], `there is no type "animals" that reaches clusters: ${KNOWN}`],
    [['clusters'], `there is no type "clusters" that reaches clusters: ${KNOWN}`],
  ] as const) {
    test(`${['scaffold-template', ...args].join(' ')} is wrong use`, async () => {
      assert.deepEqual(await scaffold(args), { code: 2, stdout: '', stderr: `flux-resourceset: ${says}\n` })
    })
  }

  test('tells what is wrong with RESOURCES_DIR', async (t) => {
    const folder = folderWith(t, { 'zoo.yaml': 'kind: [' })
    const RESOURCES_DIR = `${folder}:${join(folder, 'missing')}`
    const { code, stdout, stderr } = await scaffold(['namespaces'], { RESOURCES_DIR })
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, /^flux-resourceset: \S+zoo\.yaml: /)
    assert.match(stderr, /^flux-resourceset: \S+missing: cannot be read: /m)
  })
})

describe('a scaffold', () => {
  for (const type of builtInTypes(EXAMPLE).delivered) {
    test(`of ${type.name} is a template: it loads, and makes something of every field`, async (t) => {
      const all = builtInTypes(EXAMPLE)
      const { endpoint, input, enabledBy } = type.delivery
      const folder = folderWith(t, { [`${endpoint}.yaml`]: scaffoldTemplate(type) })
      const service = await start(t, { types: all, templates: builtInTemplates(all, folder) })
      for (const flavor of FLAVORS) {
        const { text } = await service.call('GET', `/clusters/one/bootstrap?flavor=${flavor}`)
        assert.ok(!text.includes(`Nothing is made of ${endpoint}`))
        const found = (parseObjects(text) as Manifest[]).filter(
          ({ kind, metadata }) => kind === 'ResourceSet' && metadata.name === endpoint,
        )
        assert.equal(found.length, 1)
        const template: string = found[0]?.spec.resourcesTemplate
        for (const { name } of input)
          assert.match(template, new RegExp(`^  ${name}: << .*\\| quote >>$`, 'm'))
        assert.equal(template.startsWith(`<<- if inputs.${enabledBy} >>\n`), enabledBy !== undefined)
        const open = template.match(/<<- if /g)?.length ?? 0
        assert.equal(template.match(/<<- end >>/g)?.length ?? 0, open)
      }
    })

    test(`of ${type.name} looks first whether an input has what it may lack`, () => {
      const text = scaffoldTemplate(type)
      const { properties = {}, required = [] } = type.schema
      for (const field of type.delivery.input) {
        if (field.kind !== 'value') continue
        const isOptional =
          properties[field.source] !== undefined &&
          properties[field.source]?.default === undefined &&
          !required.includes(field.source)
        assert.equal(text.includes(`<<- if hasKey inputs "${field.name}" >>`), isOptional, field.name)
      }
    })
  }

  /** A type with these fields. */
  function gadgetFile(
    flux: string,
    properties: string,
    { endpoint = 'gadgets', required = '[]' }: { endpoint?: string; required?: string } = {},
  ): string {
    return `
kind: gadgets
apiVersion: v1
schema:
  type: array
  key: { name: id }
  x-flux: { endpoint: '${endpoint}', assigned_by: gadgets, ${flux} }
  items: { type: object, required: ${required}, properties: { ${properties} } }
`
  }

  function scaffoldOf(t: TestContext, flux: string, properties: string, required = '[]'): string {
    const folder = folderWith(t, { 'gadget.yaml': gadgetFile(flux, properties, { required }) })
    return scaffoldTemplate(typeOf(builtInTypes(folder), 'gadgets'))
  }

  test('writes numbers, lists and odd names in ways that templates can read', (t) => {
    const properties =
      'count: { type: integer, default: 1 }, ratio: { type: number, default: 1 }, a-b: { type: string }, list: { type: array, default: [] }'
    const text = scaffoldOf(t, 'input: [count, ratio, a-b, list, { pair: [count, ratio] }]', properties)
    for (const line of [
      '  count: << inputs.count | int64 | quote >>',
      '  ratio: << inputs.ratio | toJson | quote >>',
      '  a-b: << get inputs "a-b" | quote >>',
      '  list: << inputs.list | toJson | quote >>',
      '  pair: << inputs.pair | toJson | quote >>',
      '  cluster: << inputs.cluster | toJson | quote >>',
    ])
      assert.ok(text.includes(`    ${line}\n`), line)
  })

  test('asks only for what inputs have', (t) => {
    const flux = 'reference: { active: { type: boolean, default: true } }, enabled_by: active'
    const properties = 'size: { type: string }'
    assert.doesNotMatch(scaffoldOf(t, `${flux}, input: [size]`, properties), /inputs\.active/)
    const text = scaffoldOf(t, `${flux}, input: [size, active]`, properties)
    assert.match(text, /^ {4}<<- if inputs\.active >>\n {4}---\n[\s\S]*\n {4}<<- end >>\n$/m)
  })

  test('looks first whether an input has its switch', (t) => {
    const flux = 'reference: { active: { type: boolean } }, enabled_by: active, input: [active]'
    assert.doesNotMatch(scaffoldOf(t, flux, 'size: { type: string }'), /<<- if inputs\.active >>/)
  })

  test('looks first whether an input has what it may wait for in vain', (t) => {
    const flux = 'references: { parent: gadgets, needs: gadgets }, input: [parent, needs]'
    const properties = 'parent: { type: string }, needs: { type: array, items: { type: string } }'
    const text = scaffoldOf(t, flux, properties, '[parent, needs]')
    assert.match(
      text,
      /<<- if hasKey inputs "parent" >>\n +parent: << inputs\.parent \| quote >>\n +<<- end >>/,
    )
    assert.doesNotMatch(text, /hasKey inputs "needs"/)
  })

  test('knows that no name in a template starts with a digit, and that on is a boolean', (t) => {
    const names = ['1st', 'on', 'Null', '0777', 'n']
    const properties = names.map((name) => `'${name}': { type: string }`).join(', ')
    const input = names.map((name) => `'${name}'`).join(', ')
    const text = scaffoldOf(t, `input: [${input}, { 'off': [n] }]`, properties)
    for (const line of [
      '"1st": << get inputs "1st" | quote >>',
      '"on": << inputs.on | quote >>',
      '"Null": << inputs.Null | quote >>',
      '"0777": << get inputs "0777" | quote >>',
      '"n": << inputs.n | quote >>',
      '"off": << inputs.off | toJson | quote >>',
    ])
      assert.ok(text.includes(`      ${line}\n`), `${line}\n${text}`)
  })

  test('knows a switch of such a name', (t) => {
    const flux = 'reference: { is-on: { type: boolean, default: true } }, enabled_by: is-on, input: [is-on]'
    const text = scaffoldOf(t, flux, 'size: { type: string }')
    assert.doesNotMatch(text, /inputs\.is-on/)
    assert.match(text, /<<- if .*"is-on".* >>/)
  })

  test('knows an endpoint of such a name', (t) => {
    for (const endpoint of ['on', '1e3', '0777']) {
      const folder = folderWith(t, {
        'gadget.yaml': gadgetFile('input: [size]', 'size: { type: string }', { endpoint }),
      })
      const all = builtInTypes(folder)
      const text = scaffoldTemplate(typeOf(all, endpoint))
      const loaded = loadTemplates([OURS, folderWith(t, { 'mine.yaml': text })], all)
      assert.deepEqual(loaded.ok ? [] : loaded.problems, [])
    }
  })
})

describe('EXTERNAL_URL', () => {
  const TOKEN = { AUTH_TOKEN: 'hush' }

  test('is taken without the slash at its end', () => {
    for (const [given, url] of [
      ['https://fleet.example.com', 'https://fleet.example.com'],
      ['https://fleet.example.com/api//', 'https://fleet.example.com/api'],
      ['http://[::1]:8080/', 'http://[::1]:8080'],
      ['', undefined],
    ] as const) {
      const parsed = parseConfig({ ...TOKEN, EXTERNAL_URL: given })
      assert.ok(parsed.ok)
      assert.equal(parsed.config.externalUrl, url)
    }
  })

  const BAD = [
    'fleet.example.com',
    'fleet.example.com:8080',
    'ftp://fleet.example.com',
    'https://',
    'https://fleet.example.com?token=hush',
    'https://fleet.example.com/#top',
    'https://fleet.example.com?',
    'https://fleet.example.com#',
    'https://fleet.example.com/?',
    'https://fleet.example.com/#',
    'https://user:hush@fleet.example.com',
    'https://fleet.example.com/a b',
    'https://fleet.example.com/$HOME',
    'https://fleet.example.com/"',
    ' https://fleet.example.com',
    'https://fleet.example.com:99999',
  ]

  test('is refused when it is no such URL, without the secrets in it', () => {
    for (const EXTERNAL_URL of BAD) {
      const parsed = parseConfig({ ...TOKEN, EXTERNAL_URL })
      assert.ok(!parsed.ok, EXTERNAL_URL)
      const [problem = '', ...more] = parsed.problems
      assert.match(problem, /^EXTERNAL_URL must be like https:\/\/fleet\.example\.com, not "/)
      assert.doesNotMatch(problem, /hush/)
      assert.deepEqual(more, [])
    }
  })

  test('stops the service before it starts, with all else that is wrong', AT_ONCE, async () => {
    const env = {
      EXTERNAL_URL: 'https://user:hush@fleet.example.com',
      LOG_LEVEL: 'loud',
      STORE_BACKEND: 'memory',
    }
    const { code, stderr } = await failToStart({ ...TOKEN, ...env })
    assert.equal(code, 2)
    assert.match(
      stderr,
      /^flux-resourceset: EXTERNAL_URL must be like .*, not "https:\/\/\*\*\*@fleet\.example\.com"$/m,
    )
    assert.match(stderr, /^flux-resourceset: LOG_LEVEL must be /m)
    assert.doesNotMatch(stderr, /hush/)
  })

  for (const EXTERNAL_URL of [
    'https:user:hush@fleet.example.com',
    'user:hush@fleet.example.com',
    'user2:hush@fleet.example.com',
    'hush@fleet.example.com',
    '//user:hush@fleet.example.com',
    ' https://user:hush@fleet.example.com',
  ]) {
    test(`is refused without the password in it: "${EXTERNAL_URL}"`, () => {
      const parsed = parseConfig({ ...TOKEN, EXTERNAL_URL })
      assert.ok(!parsed.ok)
      assert.match(parsed.problems.join(), /^EXTERNAL_URL must be like .*fleet\.example\.com"$/)
      assert.doesNotMatch(parsed.problems.join(), /hush/)
    })
  }
})
