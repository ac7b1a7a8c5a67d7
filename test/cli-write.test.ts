// Everything of the command line that changes the fleet, except apply: as a process against a real server.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { Json, JsonObject } from '../src/base/json.ts'
import {
  assertFailed,
  type CliOptions,
  cli,
  onTerminal,
  type Run,
  type TerminalOptions,
} from './cli-process.ts'
import { standBefore } from './own-server.ts'
import {
  type Answer,
  builtInTypes,
  type Call,
  chartFleet,
  type ServiceOptions,
  smallFleet,
  startService,
  temporaryFolder,
} from './service.ts'

const ROOT = join(import.meta.dirname, '..')
/** Each test has a fleet of its own; most of the time is the start of processes. */
const PARALLEL = { concurrency: 3 }
const types = builtInTypes()
const demoTypes = builtInTypes(join(ROOT, 'examples/network-policies'))
const demoFleet = JSON.parse(readFileSync(join(ROOT, 'data/seed.json'), 'utf8'))

interface Fleet {
  readonly url: string
  call(method: string, url: string, options?: Call): Promise<Answer>
  /** Of the last change. */
  revision(): number
  /** A document, or whatever else is at this path. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into documents freely
  get(path: string): Promise<any>
  /** A command line. */
  run(args: readonly string[], options?: CliOptions): Promise<Run>
  onTerminal(args: readonly string[], options?: TerminalOptions): ReturnType<typeof onTerminal>
  /** A change by somebody else. */
  change(path: string, patch: Json): Promise<void>
}

async function start(t: TestContext, options: ServiceOptions = {}): Promise<Fleet> {
  const service = await startService({ types, ...options })
  t.after(() => service.stop())
  const { url } = service
  return {
    url,
    call: service.call,
    revision: () => service.engine.state.revision,
    get: async (path) => (await service.call('GET', path)).body,
    run: (args, more) => cli(args, { url, ...more }),
    onTerminal: (args, more) => onTerminal(args, { url, ...more }),
    async change(path, patch) {
      assert.equal((await service.call('PATCH', path, { body: patch })).status, 200)
    },
  }
}

const startDemo = (t: TestContext): Promise<Fleet> => start(t, { types: demoTypes, fleet: demoFleet })

/** Done, and all that there is to say of it is on stdout. */
function assertDone(run: Run, stdout: string | RegExp): void {
  assert.deepEqual({ code: run.code, stderr: run.stderr }, { code: 0, stderr: '' })
  if (typeof stdout === 'string') assert.equal(run.stdout, stdout)
  else assert.match(run.stdout, stdout)
}

const CONFIRMED = ['--confirm', 'removals']

/** Runs what must leave the fleet alone. */
async function changesNothing<T>(fleet: Fleet, action: () => Promise<T>): Promise<T> {
  const before = fleet.revision()
  const result = await action()
  assert.equal(fleet.revision(), before, 'it must change nothing')
  return result
}

/** What must change the fleet by one revision. */
async function isOneRevision<T>(fleet: Fleet, action: () => Promise<T>): Promise<T> {
  const before = fleet.revision()
  const result = await action()
  assert.equal(fleet.revision(), before + 1)
  return result
}

function parse(run: Run): JsonObject {
  assert.equal(run.code, 0, run.stderr)
  return JSON.parse(run.stdout)
}

const PLAN = /^Plan: (sha256:[0-9a-f]{64})$/m

function planIn({ stdout }: Run): string {
  const plan = PLAN.exec(stdout)?.[1]
  assert.ok(plan, stdout)
  return plan
}

function file(t: TestContext, name: string, content: string | JsonObject): string {
  const path = join(temporaryFolder(t), name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

describe('create', PARALLEL, () => {
  test('has a flag for every property of every noun', async (t) => {
    const fleet = await start(t, { types: demoTypes })
    const words = (line: string, ...more: string[]): Promise<Run> => fleet.run([...line.split(' '), ...more])
    assertDone(
      await words(
        'component create grafana --component-path obs/grafana --component-version 1.10 --oci-url oci://r.example/c --oci-tag 2 --cluster-env-enabled --depends-on a --depends-on b',
      ),
      'platform_components/grafana created (revision 2)\nno cluster receives anything else\n',
    )
    assert.deepEqual(await fleet.get('/platform_components/grafana'), {
      id: 'grafana',
      component_path: 'obs/grafana',
      component_version: '1.10',
      cluster_env_enabled: true,
      oci_url: 'oci://r.example/c',
      oci_tag: '2',
      depends_on: ['a', 'b'],
    })
    assertDone(
      await words(
        'namespace create team-c --label team=c --label app.kubernetes.io/part-of=x',
        '--annotation',
        'note=a=b, "c"\nü 🚀',
        '--annotation',
        'empty=',
      ),
      'namespaces/team-c created (revision 3)\nno cluster receives anything else\n',
    )
    assert.deepEqual(await fleet.get('/namespaces/team-c'), {
      id: 'team-c',
      labels: { team: 'c', 'app.kubernetes.io/part-of': 'x' },
      annotations: { note: 'a=b, "c"\nü 🚀', empty: '' },
    })
    assertDone(
      await words(
        'rolebinding create devs --role view --subject kind=Group,name=devs,apiGroup=rbac.authorization.k8s.io --subject kind=ServiceAccount,name=ci,namespace=team-a --subject {"kind":"User","name":"CN=ann,O=x"}',
      ),
      'rolebindings/devs created (revision 4)\nno cluster receives anything else\n',
    )
    assert.deepEqual(await fleet.get('/rolebindings/devs'), {
      id: 'devs',
      role: 'view',
      subjects: [
        { kind: 'Group', name: 'devs', apiGroup: 'rbac.authorization.k8s.io' },
        { kind: 'ServiceAccount', name: 'ci', namespace: 'team-a' },
        { kind: 'User', name: 'CN=ann,O=x' },
      ],
    })
    assertDone(
      await words(
        'network-policy create guard --target-namespace team-a --ingress-rule from_namespace=traefik,port=9898 --ingress-rule from_namespace=team-b,port=80',
      ),
      'network_policies/guard created (revision 5)\nno cluster receives anything else\n',
    )
    assert.deepEqual(await fleet.get('/network_policies/guard'), {
      id: 'guard',
      target_namespace: 'team-a',
      ingress_rules: [
        { from_namespace: 'traefik', port: 9898 },
        { from_namespace: 'team-b', port: 80 },
      ],
    })
    assertDone(
      await words(
        'cluster create three --cluster-name Three --cluster-dns three.k8s.example.com --environment qa --label region=eu --label wave=1 --node-count 3 --deletion-protection --vm-image ubuntu --k0s-version 1.30 --patches {"a":{"x_y":"1"}} --component a,b --component c --namespace team-a --rolebinding admins --network-policy guard',
      ),
      'clusters/three created (revision 6)\n1 cluster receives something else: qa 1 — 1 joins the fleet\n',
    )
    assert.deepEqual(await fleet.get('/clusters/three'), {
      id: 'three',
      cluster_name: 'Three',
      cluster_dns: 'three.k8s.example.com',
      environment: 'qa',
      labels: { region: 'eu', wave: '1' },
      deletion_protection: true,
      node_count: 3,
      vm_image: 'ubuntu',
      k0s_version: '1.30',
      patches: { a: { x_y: '1' } },
      namespaces: [{ id: 'team-a' }],
      platform_components: ['a', 'b', 'c'].map((id) => ({ id, enabled: true })),
      rolebindings: [{ id: 'admins' }],
      network_policies: [{ id: 'guard' }],
    })
    assertDone(
      await words('applied-set create set --document namespaces=["team-a"]'),
      'applied_sets/set created (revision 7)\n',
    )
  })

  test('every item that is given for the same key of a map of lists is kept', async (t) => {
    const fleet = await start(t)
    const run = await fleet.run([
      ...['applied-set', 'create', 'set', '-o', 'json'],
      ...['--document', 'namespaces=team-a', '--document', 'namespaces=team-b'],
    ])
    assert.deepEqual(parse(run).documents, { namespaces: ['team-a', 'team-b'] })
  })

  test('a value of the wrong type is wrong use, one that the server refuses is not', async (t) => {
    const fleet = await start(t, { types: demoTypes })
    const create = 'cluster create x --cluster-name x --cluster-dns x.example.com --environment'
    const cases: readonly (readonly [string, number, RegExp])[] = [
      [`${create} dev --node-count many`, 2, /^Error: --node-count must be a number, not "many"\n$/],
      [`${create} dev --deletion-protection=maybe`, 2, /--deletion-protection must be true or false/],
      [`${create} dev --label team`, 2, /--label must be key=value, not "team"/],
      [`${create} dev --nodes 3`, 2, /unknown option '--nodes'[\s\S]*cluster create --help/],
      ['network-policy create x --ingress-rule from_namespace=a,port=http', 2, /--ingress-rule port must be/],
      [
        `${create} production`,
        1,
        /environment must be one of dev, qa, uat, prod, not "production"\n.*HTTP 400/,
      ],
      [`${create} dev --component nope`, 1, /unknown platform component "nope"/],
      [
        'component create x',
        1,
        /--component-path is required \(and 3 more\)\n(.*\n){3}.*--oci-tag is required/,
      ],
    ]
    await changesNothing(fleet, () =>
      Promise.all(
        cases.map(async ([line, code, message]) =>
          assertFailed(await fleet.run(line.split(' ')), code, message),
        ),
      ),
    )
  })

  test('reads YAML and JSON from files and stdin, and flags and the id go before what they say', async (t) => {
    const fleet = await start(t)
    const yaml = file(
      t,
      'ns.yaml',
      'id: from-yaml\nlabels: {team: x}\nannotations:\n  a: |\n    l1\n    l2\n',
    )
    const json = file(t, 'ns.json', { id: 'from-json', labels: { team: 'x' } })
    const run = (args: string, input = ''): Promise<Run> => fleet.run(args.split(' '), { input })
    assertDone(await run(`namespace create -f ${yaml}`), /^namespaces\/from-yaml created/)
    assert.deepEqual(await fleet.get('/namespaces/from-yaml'), {
      id: 'from-yaml',
      labels: { team: 'x' },
      annotations: { a: 'l1\nl2\n' },
    })
    assertDone(await run(`namespace create -f ${json}`), /^namespaces\/from-json created/)
    assertDone(
      await run(`namespace create renamed -f ${json} --label team=y`),
      /^namespaces\/renamed created/,
    )
    assert.deepEqual((await fleet.get('/namespaces/renamed')).labels, { team: 'y' })
    assertDone(
      await run('namespace create -f -', '\ufeffid: from-stdin\r\nlabels:\r\n  a: b\r\n'),
      /from-stdin/,
    )
    assert.deepEqual((await fleet.get('/namespaces/from-stdin')).labels, { a: 'b' })
    assertDone(await run('namespace create -f -', '{"type": "namespaces", "id": "typed"}'), /typed created/)
    const cluster = { id: 'three', cluster_name: 'x', cluster_dns: 'three.example.com', environment: 'dev' }
    const named = file(t, 'three.json', { ...cluster, platform_components: [{ id: 'a', oci_tag: 'v9' }] })
    assertDone(await run(`cluster create -f ${named} --cluster-name three --node-count 2`), /three created/)
    const { cluster_name, node_count, platform_components } = await fleet.get('/clusters/three')
    assert.deepEqual([cluster_name, node_count], ['three', 2])
    assert.deepEqual(platform_components, [{ id: 'a', enabled: true, oci_tag: 'v9' }])
  })

  test('a file that is not one document is wrong use', async (t) => {
    const fleet = await start(t)
    const cases: readonly (readonly [string, RegExp])[] = [
      ['', /must hold one document, not 0/],
      ['- id: x\n', /must hold an object/],
      ['id: x\n---\nid: y\n', /must hold one document, not 2/],
      ['id: [x\n', /is not valid YAML: /],
      ['id: 5\n', /needs an id/],
    ]
    await changesNothing(fleet, () =>
      Promise.all(
        cases.map(async ([input, message]) =>
          assertFailed(await fleet.run(['namespace', 'create', '-f', '-'], { input }), 2, message),
        ),
      ),
    )
    assertFailed(await fleet.run(['namespace', 'create', '-f', '/nowhere.yaml']), 2, /no such file/)
    assertFailed(
      await fleet.run(['namespace', 'create', '-f', temporaryFolder(t)]),
      2,
      /must hold one document/,
    )
    assertFailed(await fleet.run(['namespace', 'create']), 2, /^Error: the new document needs an id/)
  })

  test('a file that says it is of another type is refused', async (t) => {
    const fleet = await start(t)
    const input = '{"type": "clusters", "id": "wrong"}'
    const run = await changesNothing(fleet, () => fleet.run(['namespace', 'create', '-f', '-'], { input }))
    assertFailed(run, 2, /clusters/)
  })

  test('an id that exists is a conflict that says what to use instead', async (t) => {
    const fleet = await start(t)
    const run = await changesNothing(fleet, () =>
      fleet.run(['namespace', 'create', 'team-a', '--label', 'team=other']),
    )
    assertFailed(run, 1, /namespace "team-a" exists already[\s\S]*HTTP 409 conflict[\s\S]*Hint: .*update/)
  })

  test('what the server warns of is on stderr, and it is done', async (t) => {
    const fleet = await start(t)
    const args = '--cluster-name x --cluster-dns x.example.com --environment dev --component b'
    const run = await fleet.run(['cluster', 'create', 'x', ...args.split(' ')])
    assert.equal(
      run.stdout,
      'clusters/x created (revision 2)\n1 cluster receives something else: dev 1 — 1 joins the fleet\n',
    )
    assert.equal(run.stderr, 'Warning: cluster "x": "b" depends on "a", which is not assigned\n')
    assert.equal(run.code, 0)
  })
})

describe('create with clusters', PARALLEL, () => {
  test('creates and assigns in one revision', async (t) => {
    const fleet = await start(t)
    const line = 'namespace create team-c --cluster one,two --cluster one --label team=c --yes'
    const run = await isOneRevision(fleet, () => fleet.run(line.split(' ')))
    assertDone(
      run,
      'namespaces/team-c created and assigned (revision 2)\n2 clusters receive something else: dev 1, prod 1 — 2 get team-c (new)\n',
    )
    assert.deepEqual((await fleet.get('/namespaces/team-c')).labels, { team: 'c' })
    assert.deepEqual((await fleet.get('/clusters/one')).namespaces, [{ id: 'team-a' }, { id: 'team-c' }])
    assert.deepEqual((await fleet.get('/clusters/two')).namespaces, [{ id: 'team-c' }])
  })

  test('updates the given fields of what exists, assigns it where it is missing, and keeps overrides', async (t) => {
    const fleet = await start(t)
    const line = 'component create b --oci-tag v1.1.0 --selector environment --depends-on a'
    const run = await isOneRevision(fleet, () => fleet.run(line.split(' ')))
    assert.equal(run.code, 0)
    assert.equal(
      run.stdout,
      'platform_components/b configured and assigned (revision 2)\n1 cluster receives something else: prod 1 — 1 gets b (new)\n',
    )
    assert.match(run.stderr, /^Warning: cluster "two": "b" depends on "a"/)
    const { oci_tag, component_version } = await fleet.get('/platform_components/b')
    assert.deepEqual([oci_tag, component_version], ['v1.1.0', '1.0.0'])
    const one = await fleet.get('/clusters/one')
    assert.deepEqual(one.platform_components[1], { id: 'b', enabled: true, oci_tag: 'v2.0.0' })
    assert.deepEqual((await fleet.get('/clusters/two')).platform_components, [{ id: 'b', enabled: true }])
    const again = await changesNothing(fleet, () => fleet.run(line.split(' ')))
    assert.equal(again.stdout, 'platform_components/b unchanged\n')
    const only = await changesNothing(fleet, () => fleet.run('component create b --cluster one'.split(' ')))
    assertDone(only, 'platform_components/b unchanged\n')
  })

  test('does nothing at all where one part of it cannot be done', async (t) => {
    const fleet = await start(t)
    const cases: readonly (readonly [string, number, RegExp])[] = [
      ['namespace create new --cluster one,nope', 1, /no cluster "nope"/],
      ['namespace create new --selector environment=qa', 1, /matches no cluster/],
      ['namespace create new --selector ', 1, /selector is empty/],
      ['namespace create new --cluster one --selector id', 2, /by --cluster or by --selector, not both/],
      ['component create b --oci-tag  --cluster two', 1, /\/oci_tag must not be empty/],
    ]
    await changesNothing(fleet, () =>
      Promise.all(
        cases.map(async ([line, code, message]) =>
          assertFailed(await fleet.run(line.split(' ')), code, message),
        ),
      ),
    )
  })

  test('refuses unknown fields of a file, whatever characters they have', async (t) => {
    const fleet = await start(t)
    const input = '{"id": "team-a", "labels/hidden": "x"}'
    const run = await changesNothing(fleet, () =>
      fleet.run(['namespace', 'create', '-f', '-', '--cluster', 'one'], { input }),
    )
    assertFailed(run, 1, /unknown field/)
  })
})

test('the commands of the demo work word for word', async (t) => {
  const fleet = await startDemo(t)
  // It becomes manifests below, which do not take the paths of its chart.
  await fleet.change('/clusters/demo-cluster-01', { patches: { 'cert-manager': null } })
  const run = (line: string): Promise<Run> => fleet.run(line.split(' '))
  assertDone(
    await run(
      'namespace create team-sandbox --cluster demo-cluster-01 --label team=sandbox --annotation owner=platform',
    ),
    'namespaces/team-sandbox created and assigned (revision 3)\n1 cluster receives something else: dev 1 — 1 gets team-sandbox (new)\n',
  )
  assertDone(
    await run(
      'component create cert-manager --component-path core/cert-manager/1.14.0 --component-version 1.14.0 --oci-url oci://registry.example/platform-components --oci-tag v1.0.0 --cluster demo-cluster-01 --yes',
    ),
    'platform_components/cert-manager configured and assigned (revision 4)\n7 clusters receive something else: dev 2, prod 2, qa 2, uat 1 — 7 receive cert-manager with 4 other values, 7 another depends_on of traefik, 3 another depends_on of external-secrets\n',
  )
  assert.deepEqual(await fleet.get('/platform_components/cert-manager'), {
    id: 'cert-manager',
    component_path: 'core/cert-manager/1.14.0',
    component_version: '1.14.0',
    cluster_env_enabled: false,
    oci_url: 'oci://registry.example/platform-components',
    oci_tag: 'v1.0.0',
    depends_on: [],
  })
  assertDone(
    await run('component patch podinfo --cluster demo-cluster-01 --set replicaCount=3'),
    'patch values of podinfo on demo-cluster-01: 1 document changed (revision 5)\n1 cluster receives something else: dev 1 — 1 another replicaCount of podinfo\n',
  )
  assertDone(
    await run('demo add-namespace demo-cluster-01 demo-runtime --label team=platform --annotation owner=you'),
    'namespaces/demo-runtime created and assigned (revision 6)\n1 cluster receives something else: dev 1 — 1 gets demo-runtime (new)\n',
  )
  assertDone(
    await run(
      'demo patch-component demo-cluster-01 podinfo --set replicaCount=3 --set ui.message=Hello --set ui.color=#3b82f6',
    ),
    /^patch values of podinfo on demo-cluster-01: 1 document changed \(revision 7\)\n/,
  )
  const cluster = await fleet.get('/clusters/demo-cluster-01')
  assert.deepEqual(cluster.patches.podinfo, {
    replicaCount: '3',
    'ui.color': '#3b82f6',
    'ui.message': 'Hello',
  })
  assert.deepEqual(
    cluster.namespaces.map(({ id }: { id: string }) => id),
    ['cert-manager', 'traefik', 'podinfo', 'team-sandbox', 'demo-runtime'],
  )
  const polled = await run('demo flux-namespaces demo-cluster-01.k8s.example.com')
  assertDone(polled, /^\{\n {2}"inputs": \[/)
  const url = '/api/v2/flux/clusters/demo-cluster-01.k8s.example.com/namespaces'
  assert.deepEqual(JSON.parse(polled.stdout), await fleet.get(url))
  assertFailed(await run('demo flux-namespaces nowhere.example.com'), 1, /HTTP 404 not_found/)
})

describe('update', PARALLEL, () => {
  test('gives fields the types that they have', async (t) => {
    const fleet = await start(t, { fleet: chartFleet() })
    const set = (...settings: string[]): string[] => settings.flatMap((each) => ['--set', each])
    assertDone(
      await fleet.run([
        ...['cluster', 'update', 'one', '-m', 'types'],
        ...set('node_count=12', 'deletion_protection=true', 'k0s_version=1.30', 'vm_image='),
        ...set('labels.wave=2', 'labels.app\\.kubernetes\\.io/part-of=true', 'labels["a.b/c"]=007'),
        ...set('patches.a.msg=a=b "c"\nü 🚀', 'patches.a["x.y"]='),
      ]),
      'clusters/one configured (revision 2)\n1 cluster receives something else: dev 1 — 1 another msg and x.y of a\n',
    )
    const one = await fleet.get('/clusters/one')
    assert.deepEqual(
      [one.node_count, one.deletion_protection, one.k0s_version, one.vm_image],
      [12, true, '1.30', ''],
    )
    assert.deepEqual(one.labels, { wave: '2', 'app.kubernetes.io/part-of': 'true', 'a.b/c': '007' })
    assert.deepEqual(one.patches.a, { replicas: '2', msg: 'a=b "c"\nü 🚀', 'x.y': '' })
    assertDone(await fleet.run(['component', 'update', 'c', ...set('depends_on=a')]), /configured/)
    assert.deepEqual((await fleet.get('/platform_components/c')).depends_on, ['a'])
    assertDone(await fleet.run(['component', 'update', 'c', ...set('depends_on=["b","a"]')]), /configured/)
    assert.deepEqual((await fleet.get('/platform_components/c')).depends_on, ['b', 'a'])
    assertDone(await fleet.run(['component', 'update', 'c', ...set('depends_on=[]')]), /configured/)
    assert.deepEqual((await fleet.get('/platform_components/c')).depends_on, [])
  })

  test('removes fields, or gives them their defaults', async (t) => {
    const fleet = await start(t)
    await fleet.change('/clusters/one', {
      node_count: 3,
      labels: { a: '1', b: '2' },
      deletion_protection: true,
    })
    const line =
      'cluster update one --unset node_count --unset labels.a --unset labels.never --unset deletion_protection'
    assertDone(
      await fleet.run(line.split(' ')),
      'clusters/one configured (revision 3)\nno cluster receives anything else\n',
    )
    const one = await fleet.get('/clusters/one')
    assert.deepEqual(one.labels, { b: '2' })
    assert.equal(Object.hasOwn(one, 'node_count'), false)
    assert.equal(one.deletion_protection, false)
    const again = await changesNothing(fleet, () => fleet.run(line.split(' ')))
    assertDone(again, 'clusters/one unchanged\n')
  })

  test('changes, adds and removes places of a list', async (t) => {
    const fleet = await start(t)
    const names = async (): Promise<string[]> =>
      (await fleet.get('/rolebindings/admins')).subjects.map(({ name }: { name: string }) => name)
    const update = (...args: string[]): Promise<Run> =>
      fleet.run(['rolebinding', 'update', 'admins', ...args])
    assertDone(
      await update(
        '--set',
        'role=view',
        '--set',
        'subjects[0].name=x',
        '--set',
        'subjects[1]=kind=User,name=y',
      ),
      'rolebindings/admins configured (revision 2)\n1 cluster receives something else: dev 1 — 1 another role and subjects of admins\n',
    )
    assert.deepEqual(await fleet.get('/rolebindings/admins'), {
      id: 'admins',
      role: 'view',
      subjects: [
        { kind: 'Group', name: 'x' },
        { kind: 'User', name: 'y' },
      ],
    })
    assertDone(await update('--set', 'subjects[2].kind=User', '--set', 'subjects[2].name=z'), /configured/)
    assert.deepEqual(await names(), ['x', 'y', 'z'])
    assertDone(await update('--unset', 'subjects[1]'), /configured/)
    assert.deepEqual(await names(), ['x', 'z'])
    assertFailed(await update('--set', 'subjects[3].name=q'), 2, /\[3\] is beyond the end of a list of 2/)
    assertFailed(await update('--unset', 'subjects[7]'), 2, /beyond the end/)
    assertFailed(await update('--set', 'subjects[0].name='), 1, /\/subjects\/0\/name must not be empty/)
    assert.deepEqual(await names(), ['x', 'z'])
  })

  test('removes the places that are named, however many of them', async (t) => {
    const fleet = await start(t)
    const subjects = ['s0', 's1', 's2', 's3'].map((name) => ({ kind: 'User', name }))
    await fleet.change('/rolebindings/admins', { subjects })
    const run = await fleet.run([
      ...['rolebinding', 'update', 'admins', '-o', 'json'],
      ...['--unset', 'subjects[0]', '--unset', 'subjects[1]'],
    ])
    assert.deepEqual(parse(run).subjects, subjects.slice(2))
  })

  test('removes a key of a map beside a place of a list', async (t) => {
    const fleet = await start(t)
    await fleet.change('/clusters/one', { labels: { old: '1', kept: '2' } })
    const run = await fleet.run([
      ...['cluster', 'update', 'one', '-o', 'json', '--yes'],
      ...[
        '--set',
        'platform_components[0].enabled=false',
        '--unset',
        'labels.old',
        '--unset',
        'labels.never',
      ],
    ])
    assert.equal(run.code, 0, run.stderr)
    const { labels, platform_components } = parse(run)
    assert.deepEqual(labels, { kept: '2' })
    assert.deepEqual((platform_components as Json[])[0], { id: 'a', enabled: false })
  })

  test('takes what is in a list of a cluster for what its type says', async (t) => {
    const fleet = await start(t)
    const run = await fleet.run([
      ...['cluster', 'update', 'one', '-o', 'json', '--set', 'platform_components[0].oci_tag=17'],
    ])
    assert.equal(run.code, 0, run.stderr)
    assert.deepEqual((parse(run).platform_components as Json[])[0], { id: 'a', enabled: true, oci_tag: '17' })
  })

  test('a map that is set as a whole is that map afterwards', async (t) => {
    const fleet = await start(t)
    const labels = async (value: string): Promise<Json | undefined> =>
      parse(await fleet.run(['namespace', 'update', 'team-a', '-o', 'json', '--set', `labels=${value}`]))
        .labels
    assert.deepEqual(await labels('{"x":"y"}'), { x: 'y' })
    assert.deepEqual(await labels('z=1'), { z: '1' })
    assert.deepEqual(await labels('{}'), {})
  })

  test('does not lose what is set below a field that is removed', async (t) => {
    const fleet = await start(t)
    const run = await fleet.run([
      ...['namespace', 'update', 'team-a', '-o', 'json'],
      ...['--unset', 'labels', '--set', 'labels.fresh=1'],
    ])
    // Refusing it would be right as well; dropping a setting without a word is not.
    if (run.code === 0) assert.deepEqual(parse(run).labels, { fresh: '1' })
    else assertFailed(run, 2, /labels/)
  })

  test('changes all clusters of a selector in one revision', async (t) => {
    const fleet = await start(t)
    const line =
      'cluster update --selector environment --set labels.wave=1 --set node_count=2 --unset vm_image --yes'
    const run = await isOneRevision(fleet, () => fleet.run(line.split(' ')))
    assertDone(
      run,
      'clusters (environment): 2 documents changed (revision 2)\nno cluster receives anything else\n',
    )
    for (const id of ['one', 'two']) {
      const { labels, node_count } = await fleet.get(`/clusters/${id}`)
      assert.deepEqual([labels, node_count], [{ wave: '1' }, 2])
    }
    const again = await changesNothing(fleet, () => fleet.run(line.split(' ')))
    assertDone(again, 'clusters (environment): nothing to change\n')
  })

  test('says what is wrong with a setting, and changes nothing', async (t) => {
    const fleet = await start(t)
    const cases: readonly (readonly [string, number, RegExp])[] = [
      ['cluster update one', 2, /what is to be changed\?/],
      ['cluster update --set labels.a=b', 2, /which cluster\? Give its id, or --selector/],
      ['cluster update --selector id --set platform_components[0].enabled=false', 2, /not with --selector/],
      ['cluster update --selector  --set labels.a=b', 1, /selector is empty/],
      ['cluster update one --set labels.a', 2, /--set must be like path=value, .*not "labels\.a"/],
      ['cluster update one --unset labels.', 2, /--unset must be a path/],
      ['cluster update one --set node_count=a.lot', 2, /--set node_count must be a number, not "a\.lot"/],
      [
        'cluster update one --set deletion_protection=1',
        2,
        /--set deletion_protection must be true or false/,
      ],
      ['cluster update one --set nope=1', 1, /\/nope is an unknown field: known are id, cluster_name/],
      ['cluster update one --set __proto__.a=1', 1, /\/__proto__ is a reserved key/],
      ['cluster update one --set id=two', 1, /\/id must be "one"/],
      ['rolebinding update nope --set subjects[0].name=b', 1, /no role binding "nope"/],
    ]
    await changesNothing(fleet, () =>
      Promise.all(
        cases.map(async ([line, code, message]) =>
          assertFailed(await fleet.run(line.split(' ')), code, message),
        ),
      ),
    )
  })

  test('a place in a list is set on what others have made of the document meanwhile', async (t) => {
    const fleet = await start(t)
    let others = 0
    const url = await between(t, fleet, async (method, path) => {
      if (method !== 'GET' || path !== '/rolebindings/admins' || others === 2) return
      others++
      const subjects = ['admins', ...Array.from({ length: others }, (_, i) => `other-${i}`)]
      await fleet.change(path, { subjects: subjects.map((name) => ({ kind: 'Group', name })) })
    })
    const line = 'rolebinding update admins --set subjects[0].name=mine'
    assertDone(
      await fleet.run(line.split(' '), { url }),
      'rolebindings/admins configured (revision 4)\n1 cluster receives something else: dev 1 — 1 another subjects of admins\n',
    )
    const { subjects } = await fleet.get('/rolebindings/admins')
    assert.deepEqual(
      subjects.map(({ name }: { name: string }) => name),
      ['mine', 'other-0', 'other-1'],
    )
  })

  test('gives up on a document that never stays the same for long enough', async (t) => {
    const fleet = await start(t)
    let others = 0
    const url = await between(t, fleet, async (method, path) => {
      if (method === 'GET' && path === '/rolebindings/admins')
        await fleet.change(path, { role: `r${++others}` })
    })
    const run = await fleet.run('rolebinding update admins --set subjects[0].name=mine'.split(' '), { url })
    assertFailed(run, 1, /HTTP 412 precondition_failed[\s\S]*Hint: somebody changed it meanwhile/)
    assert.deepEqual(
      [(await fleet.get('/rolebindings/admins')).subjects[0].name, others > 1],
      ['admins', true],
    )
  })
})

/** A server in front of the fleet; what is given happens after it has answered and before the answer goes on. */
async function between(
  t: TestContext,
  fleet: Fleet,
  happens: (method: string, path: string, query: URLSearchParams) => Promise<void>,
): Promise<string> {
  const after = ({ method = '', url = '' }: IncomingMessage): Promise<void> => {
    const { pathname, searchParams } = new URL(url, fleet.url)
    return happens(method, pathname, searchParams)
  }
  return (await standBefore(t, fleet, { after })).url
}

/** An editor that does this to `text`, knowing how often it was opened before as `times`; and what it has seen. */
function editor(t: TestContext, body: string): { command: string; folder: string; seen(): string[] } {
  const [path, log] = [join(temporaryFolder(t), 'my editor.mjs'), join(temporaryFolder(t), 'seen')]
  writeFileSync(
    path,
    `import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
const file = process.argv.at(-1)
let text = readFileSync(file, 'utf8')
const times = existsSync(${JSON.stringify(log)}) ? readFileSync(${JSON.stringify(log)}, 'utf8').split('\\0').length - 1 : 0
appendFileSync(${JSON.stringify(log)}, text + '\\0')
${body}
writeFileSync(file, text)
`,
  )
  return {
    command: `'${process.execPath}' '${path}'`,
    folder: temporaryFolder(t),
    seen: () => (existsSync(log) ? readFileSync(log, 'utf8').split('\0').slice(0, -1) : []),
  }
}

describe('edit', PARALLEL, () => {
  test('applies what was changed, with comments left out and nothing left behind', async (t) => {
    const fleet = await start(t)
    const odd = {
      yes: 'yes',
      number: '1.0',
      nothing: 'null',
      hash: '#3b82f6',
      lines: 'l1\n  l2\n\n',
      empty: '',
      quotes: `'"\\`,
      unicode: 'ü 🚀 \u2028',
      long: 'word '.repeat(60),
    }
    await fleet.change('/namespaces/team-a', { annotations: odd })
    const { command, folder, seen } = editor(t, "text = text.replace('team: a', 'team: x')")
    const run = await fleet.run(['namespace', 'edit', 'team-a', '-m', 'why'], {
      env: { EDITOR: command, TMPDIR: folder },
    })
    assertDone(
      run,
      'namespaces/team-a edited (revision 3)\n1 cluster receives something else: dev 1 — 1 another team of team-a\n',
    )
    assert.deepEqual(await fleet.get('/namespaces/team-a'), {
      id: 'team-a',
      labels: { team: 'x' },
      annotations: odd,
    })
    assert.equal((await fleet.get('/revisions/3')).message, 'why')
    assert.match(
      seen()[0] ?? '',
      /^# namespaces\/team-a: save to apply.*\n#\nid: team-a\nlabels:\n {2}team: a\n/,
    )
    assert.deepEqual(readdirSync(folder), [])
  })

  test('an unchanged or an empty file cancels', async (t) => {
    const fleet = await start(t)
    const bodies = ['', "text = ''", "text = '# only\\n# comments\\n'", "text += '# a comment more\\n'"]
    await changesNothing(fleet, () =>
      Promise.all(
        bodies.map(async (body) => {
          const { command, folder } = editor(t, body)
          const env = { EDITOR: command, TMPDIR: folder }
          assert.deepEqual(await fleet.run(['namespace', 'edit', 'team-a'], { env }), {
            code: 0,
            stdout: '',
            stderr: 'Edit cancelled, nothing was changed.\n',
          })
          assert.deepEqual(readdirSync(folder), [])
        }),
      ),
    )
  })

  test('a result that cannot be is refused where nobody is there to correct it', async (t) => {
    const fleet = await start(t)
    const cases: readonly (readonly [string, RegExp])[] = [
      ["text = text.replace('team: a', 'team: [a]')", /\/labels\/team must be a string, not an array/],
      ["text = text.replace('team: a', 'team: [a')", /not valid YAML/],
      ["text = text.replace('id: team-a', 'id: other')", /\/id must be "team-a"/],
      ["text = '- a list\\n'", /there must be one document, an object/],
      ["text += '---\\nid: second\\n'", /there must be one document, an object/],
    ]
    await changesNothing(fleet, () =>
      Promise.all(
        cases.map(async ([body, message]) => {
          const { command, folder, seen } = editor(t, body)
          const env = { EDITOR: command, TMPDIR: folder }
          assertFailed(await fleet.run(['namespace', 'edit', 'team-a'], { env }), 1, message)
          assert.equal(seen().length, 1)
        }),
      ),
    )
  })

  test('on a terminal it opens again with the problem on top, until it is right or left as it is', async (t) => {
    const fleet = await start(t)
    const fixing = editor(
      t,
      `if (times === 0) text = text.replace('team: a', 'team: [a')
      else if (times === 1) text = text.replace('team: [a', 'team: [a]')
      else text = text.replace('team: [a]', 'team: right')`,
    )
    const env = { EDITOR: fixing.command, TMPDIR: fixing.folder }
    const fixed = await fleet.onTerminal(['namespace', 'edit', 'team-a'], { env })
    assert.match(fixed.screen, /namespaces\/team-a edited/)
    assert.equal(fixed.code, 0)
    const [, second = '', third = ''] = fixing.seen()
    assert.match(
      second,
      /^# .*\n#\n# It was not saved:\n# - .*not valid YAML.*\n#\nid: team-a\nlabels:\n {2}team: \[a\n/,
    )
    assert.match(third, /^# .*\n#\n# It was not saved:\n# - \/labels\/team must be a string.*\n#\nid: /)
    assert.deepEqual((await fleet.get('/namespaces/team-a')).labels, { team: 'right' })
    assert.deepEqual(readdirSync(fixing.folder), [])
    const leaving = editor(t, "text = text.replace('team: right', 'team: [x]')")
    const left = await changesNothing(fleet, () =>
      fleet.onTerminal(['namespace', 'edit', 'team-a'], {
        env: { EDITOR: leaving.command, TMPDIR: leaving.folder },
      }),
    )
    assert.match(left.screen, /Edit cancelled, nothing was changed/)
    assert.deepEqual([left.code, leaving.seen().length, readdirSync(leaving.folder)], [0, 2, []])
  })

  test('an editor that fails changes nothing, and one that is set with arguments is run with them', async (t) => {
    const fleet = await start(t)
    const folder = temporaryFolder(t)
    const edit = (env: Record<string, string>): Promise<Run> =>
      fleet.run(['namespace', 'edit', 'team-a'], { env: { TMPDIR: folder, ...env } })
    await changesNothing(fleet, async () => {
      assertFailed(await edit({ EDITOR: 'false' }), 2, /the editor "false" failed: nothing was changed/)
      assertFailed(await edit({ EDITOR: '/no/such/editor' }), 2, /the editor "\/no\/such\/editor" failed/)
    })
    assert.deepEqual(readdirSync(folder), [])
    const arguments_ = { EDITOR: "sed -i -e 's/team: a/team: b c/' -e 's/b c/bc/'" }
    assertDone(await edit(arguments_), /^namespaces\/team-a edited/)
    assertDone(await edit({ EDITOR: 'false', VISUAL: 'sed -i s/bc/visual/' }), /^namespaces\/team-a edited/)
    assert.deepEqual((await fleet.get('/namespaces/team-a')).labels, { team: 'visual' })
    assertFailed(await fleet.run(['namespace', 'edit', 'nope']), 1, /no namespace "nope"/)
  })

  test('an edit of what somebody changed meanwhile is kept in a file that it names', async (t) => {
    const fleet = await start(t)
    const { command, folder } = editor(
      t,
      `text = text.replace('team: a', 'team: mine')
const response = await fetch(process.env.FLUX_API_URL + '/namespaces/team-a', {
  method: 'PATCH',
  headers: { authorization: 'Bearer ' + process.env.FLUX_API_WRITE_TOKEN, 'content-type': 'application/json' },
  body: JSON.stringify({ labels: { other: String(Date.now()) } }),
})
if (!response.ok) process.exit(1)`,
    )
    const env = { EDITOR: command, TMPDIR: folder }
    const run = await fleet.run(['namespace', 'edit', 'team-a'], { env })
    assertFailed(run, 1, /somebody else has changed it meanwhile/)
    const kept = /your edit is kept in (\S+): /m.exec(run.stderr)?.[1] ?? ''
    assert.match(readFileSync(kept, 'utf8'), /^ {2}team: mine$/m)
    assert.equal((await fleet.get('/namespaces/team-a')).labels.team, 'a')
    const quiet = await fleet.run(['namespace', 'edit', 'team-a', '--quiet'], { env })
    assert.equal(quiet.code, 1)
    const [, other = ''] = readdirSync(folder).sort(
      (a, b) => Number(kept.includes(b)) - Number(kept.includes(a)),
    )
    assert.ok(other && quiet.stderr.includes(other), 'what is kept but not named is lost')
  })

  test('flags that are wrong are told before the editor opens', async (t) => {
    const fleet = await start(t)
    const { command, seen } = editor(t, "text = text.replace('team: a', 'team: x')")
    const env = { EDITOR: command }
    const run = await changesNothing(fleet, () =>
      fleet.run(['namespace', 'edit', 'team-a', '--confirm', 'everything'], { env }),
    )
    assertFailed(run, 2, /--confirm must be removals/)
    assert.deepEqual(seen(), [])
  })
})

describe('delete and restore', PARALLEL, () => {
  test('what is in use stays, with a hint; cascade takes every reference with it', async (t) => {
    const fleet = await start(t)
    const run = await changesNothing(fleet, () => fleet.run(['namespace', 'delete', 'team-a']))
    assertFailed(run, 1, /is in use by 1: clusters\/one[\s\S]*HTTP 409 conflict[\s\S]*Hint: .*--cascade/)
    assertDone(
      await fleet.run(['namespace', 'delete', 'team-b']),
      'namespaces/team-b deleted (revision 2)\nno cluster receives anything else\n',
    )
    assertFailed(await fleet.run(['namespace', 'delete', 'team-b']), 1, /no namespace "team-b"/)
    const line = ['namespace', 'delete', 'team-a', '--cascade', '-o', 'json', '--yes']
    const last = await changesNothing(fleet, () => fleet.run(line))
    assertFailed(last, 1, /it empties one \(namespaces\)[\s\S]*Hint: .*--confirm removals/)
    const cascade = await isOneRevision(fleet, () => fleet.run([...line, ...CONFIRMED]))
    assert.deepEqual(parse(cascade), { id: 'team-a', labels: { team: 'a' }, annotations: {} })
    assert.deepEqual((await fleet.get('/clusters/one')).namespaces, [])
    assert.equal((await fleet.call('GET', '/namespaces/team-a')).status, 404)
  })

  test('several are deleted together or not at all', async (t) => {
    const fleet = await start(t)
    await changesNothing(fleet, async () => {
      assertFailed(await fleet.run(['namespace', 'delete', 'team-b', 'nope']), 1, /no namespace "nope"/)
      assertFailed(await fleet.run(['namespace', 'delete', 'team-b', 'team-a']), 1, /is in use by/)
      assertFailed(await fleet.run(['namespace', 'delete']), 2, /missing required argument 'id'/)
      assertFailed(
        await fleet.run(['namespace', 'delete', 'team-b', '--purge']),
        2,
        /unknown option '--purge'/,
      )
    })
    const run = await isOneRevision(fleet, () =>
      fleet.run(['namespace', 'delete', 'team-a', 'team-b', '--cascade', '--yes', ...CONFIRMED]),
    )
    assertDone(
      run,
      'delete 2 namespaces: 3 documents changed (revision 2)\n1 cluster receives something else: dev 1 — 1 loses team-a\n',
    )
    assert.deepEqual(await fleet.get('/namespaces'), [])
  })

  test('a cluster leaves a tombstone, comes back as it was, and is forgotten when purged', async (t) => {
    const fleet = await start(t)
    const before = await fleet.get('/clusters/one')
    const poll = async (): Promise<readonly [number, string]> => {
      const url = '/api/v2/flux/clusters/one.k8s.example.com/namespaces'
      const { status, text } = await fleet.call('GET', url)
      return [status, status === 200 ? text : '']
    }
    const rendered = await poll()
    assertDone(
      await fleet.run(['cluster', 'delete', 'one', '--yes']),
      'clusters/one deleted (revision 2)\n1 cluster receives something else: dev 1 — 1 leaves the fleet\n',
    )
    assert.deepEqual(await poll(), [200, '{"inputs":[]}'])
    assertDone(
      await fleet.run(['cluster', 'restore', 'one']),
      'clusters/one restored (revision 3)\n1 cluster receives something else: dev 1 — 1 joins the fleet\n',
    )
    assert.deepEqual(await fleet.get('/clusters/one'), before)
    assert.deepEqual(await poll(), rendered)
    assertFailed(await fleet.run(['cluster', 'restore', 'one']), 1, /is not deleted/)
    assertDone(
      await fleet.run(['cluster', 'delete', 'one', '--purge', '--yes']),
      'clusters/one purged (revision 4)\n1 cluster receives something else: dev 1 — 1 leaves the fleet\n',
    )
    assert.deepEqual(await poll(), [404, ''])
    assertFailed(await fleet.run(['cluster', 'restore', 'one']), 1, /no deleted cluster "one"/)
    assertFailed(await fleet.run(['cluster', 'delete', 'two', '--cascade']), 2, /unknown option '--cascade'/)
  })

  test('a protected cluster stays whatever is confirmed, with the command that lifts the protection', async (t) => {
    const fleet = await start(t)
    await fleet.change('/clusters/one', { deletion_protection: true })
    await changesNothing(fleet, async () => {
      const run = await fleet.run(['cluster', 'delete', 'one', '--confirm', 'removals'])
      assertFailed(
        run,
        1,
        /cluster "one" is protected[\s\S]*Hint: .*cluster update .*deletion_protection=false/,
      )
      assertFailed(await fleet.run(['cluster', 'delete', 'two', 'one', '--purge']), 1, /"one" is protected/)
    })
    assertDone(await fleet.run('cluster update one --set deletion_protection=false'.split(' ')), /configured/)
    assertDone(
      await fleet.run(['cluster', 'delete', 'one', 'two', '--yes']),
      /^delete 2 clusters: 2 documents changed/,
    )
  })
})

describe('assign, unassign and patch', PARALLEL, () => {
  test('assigning gives, changes what is named and keeps the rest, and gives overrides up', async (t) => {
    const fleet = await start(t)
    const assign = (args: string): Promise<Run> => fleet.run(['component', 'assign', ...args.split(' ')])
    const references = async (id: string): Promise<Json> =>
      (await fleet.get(`/clusters/${id}`)).platform_components
    assertDone(
      await assign('a --cluster two --oci-tag v9 --enabled false'),
      'assign platform_components/a to two: 1 document changed (revision 2)\n1 cluster receives something else: prod 1 — 1 gets a (new)\n',
    )
    assert.deepEqual(await references('two'), [{ id: 'a', enabled: false, oci_tag: 'v9' }])
    assertDone(await assign('a --cluster two --component-path p/q --enabled'), /1 document changed/)
    assert.deepEqual(await references('two'), [
      { id: 'a', enabled: true, component_path: 'p/q', oci_tag: 'v9' },
    ])
    assertDone(await assign('a --cluster two --unset oci_tag --unset component-path'), /1 document changed/)
    assert.deepEqual(await references('two'), [{ id: 'a', enabled: true }])
    const same = await changesNothing(fleet, () => assign('a --cluster one,two'))
    assertDone(same, 'assign platform_components/a to 2 clusters: nothing to change\n')
    assertDone(await assign('b --selector id --oci-tag v3 --yes'), /2 documents changed/)
    assert.deepEqual(await references('one'), [
      { id: 'a', enabled: true },
      { id: 'b', enabled: true, oci_tag: 'v3' },
    ])
    assert.deepEqual(await references('two'), [
      { id: 'a', enabled: true },
      { id: 'b', enabled: true, oci_tag: 'v3' },
    ])
  })

  test('--existing changes only clusters that have it', async (t) => {
    const fleet = await start(t)
    const run = await fleet.run('component assign b --existing --selector id --oci-tag v3'.split(' '))
    assert.equal(run.code, 0)
    assert.match(run.stdout, /^assign platform_components\/b to \(id\): 1 document changed/)
    assert.match(
      run.stderr,
      /^Warning: 1 of the clusters that match \(.*\) does not have "b": nothing changes there\n/,
    )
    assert.deepEqual((await fleet.get('/clusters/two')).platform_components, [])
    const named = 'component assign b --existing --cluster two --oci-tag v3'
    assertFailed(await fleet.run(named.split(' ')), 1, /"b" is not assigned to cluster "two"/)
  })

  test('overrides of every noun can be given', async (t) => {
    const fleet = await start(t, { types: demoTypes })
    const run = (line: string): Promise<Run> => fleet.run(line.split(' '))
    assertDone(
      await run('namespace assign team-b --cluster two --label team=b --annotation a=b=c'),
      /changed/,
    )
    assertDone(await run('rolebinding assign admins --cluster two --subject kind=User,name=ann'), /changed/)
    assertDone(await run('network-policy create guard --target-namespace team-b'), /created/)
    assertDone(
      await run('network-policy assign guard --cluster two --ingress-rule from_namespace=x,port=80'),
      /changed/,
    )
    const { namespaces, rolebindings, network_policies } = await fleet.get('/clusters/two')
    assert.deepEqual(namespaces, [{ id: 'team-b', labels: { team: 'b' }, annotations: { a: 'b=c' } }])
    assert.deepEqual(rolebindings, [{ id: 'admins', subjects: [{ kind: 'User', name: 'ann' }] }])
    assert.deepEqual(network_policies, [{ id: 'guard', ingress_rules: [{ from_namespace: 'x', port: 80 }] }])
  })

  test('unassigning takes away, with the values of the cluster for it', async (t) => {
    const fleet = await start(t)
    const run = (line: string): Promise<Run> => fleet.run(line.split(' '))
    assertDone(
      await run('component unassign b --cluster one --yes'),
      'unassign platform_components/b from one: 1 document changed (revision 2)\n1 cluster receives something else: dev 1 — 1 loses b\n',
    )
    assertFailed(await run('component unassign b --cluster one'), 1, /"b" is not assigned to cluster "one"/)
    const a = await run('component unassign a --selector id --yes --confirm removals')
    assert.match(
      a.stderr,
      /^Warning: 1 of the clusters that match \(id\) does not have "a": nothing changes there\n/,
    )
    assert.equal(a.code, 0)
    const { platform_components, patches } = await fleet.get('/clusters/one')
    assert.deepEqual([platform_components, patches], [[], {}])
  })

  test('patching takes keys and values as they are', async (t) => {
    const fleet = await start(t, { fleet: chartFleet() })
    const patch = (...args: string[]): Promise<Run> =>
      fleet.run(['component', 'patch', 'a', '--cluster', 'one', ...args])
    const values = async (): Promise<JsonObject> => (await fleet.get('/clusters/one')).patches.a
    const set = [
      'a.b[0]=x=y',
      'quotes="\'`$HOME',
      'lines=l1\nl2',
      'unicode=ü 🚀',
      'empty=',
      'path/to\\.it=  ',
      'n=3',
    ]
    assertDone(
      await patch(...set.flatMap((each) => ['--set', each])),
      'patch values of a on one: 1 document changed (revision 2)\n1 cluster receives something else: dev 1 — 1 receives a with 7 other values\n',
    )
    assert.deepEqual(await values(), {
      replicas: '2',
      'a.b[0]': 'x=y',
      quotes: '"\'`$HOME',
      lines: 'l1\nl2',
      unicode: 'ü 🚀',
      empty: '',
      'path/to\\.it': '  ',
      n: '3',
    })
    assertDone(await patch('--unset', 'a.b[0]', '--unset', 'never', '--set', 'n=4'), /1 document changed/)
    assert.deepEqual(Object.keys(await values()), [
      'replicas',
      'quotes',
      'lines',
      'unicode',
      'empty',
      'path/to\\.it',
      'n',
    ])
    assertDone(await patch('--replace', '--set', 'only=1'), /1 document changed/)
    assert.deepEqual(await values(), { only: '1' })
    assertDone(
      await changesNothing(fleet, () => patch('--set', 'only=1')),
      'patch values of a on one: nothing to change\n',
    )
    assertDone(await patch('--replace'), /1 document changed/)
    assert.deepEqual((await fleet.get('/clusters/one')).patches, {})
  })

  test('says what is missing or wrong, and changes nothing', async (t) => {
    const fleet = await start(t)
    const cases: readonly (readonly [string, number, RegExp])[] = [
      ['component assign a', 2, /which clusters\? Give --cluster ID or --selector SELECTOR/],
      ['component assign a --cluster one --enabled=perhaps', 2, /--enabled must be true or false/],
      [
        'component assign a --cluster one --unset id',
        2,
        /--unset must be one of enabled, component_path, oci_tag/,
      ],
      ['component assign nope --cluster one', 1, /unknown platform component "nope"/],
      ['component assign a --selector tier=gold', 1, /matches no cluster/],
      ['component assign a --selector tier=(', 1, /not a selector/],
      ['component patch a --cluster one', 2, /which values\? Give --set key=value or --unset key/],
      ['component patch a --cluster one --set x', 2, /--set must be key=value, not "x"/],
      ['component patch a --cluster one --set __proto__=x', 1, /reserved key/],
      ['component patch c --cluster one --set x=1', 1, /"c" is not assigned to cluster "one"/],
      ['namespace patch team-a --cluster one --set x=1', 2, /unknown command 'patch'/],
    ]
    await changesNothing(fleet, () =>
      Promise.all(
        cases.map(async ([line, code, message]) =>
          assertFailed(await fleet.run(line.split(' ')), code, message),
        ),
      ),
    )
  })

  test('setting and removing the same thing is refused instead of half done', async (t) => {
    const fleet = await start(t)
    const lines = [
      'component patch a --cluster one --set x=1 --unset x',
      'component assign a --cluster one --oci-tag v5 --unset oci_tag',
      'namespace update team-a --set labels.x=1 --unset labels.x',
    ]
    const runs = await changesNothing(fleet, () =>
      Promise.all(lines.map((line) => fleet.run(line.split(' ')))),
    )
    for (const run of runs) assertFailed(run, 2, /^Error: /)
  })
})

describe('batch', PARALLEL, () => {
  const operations = [
    { op: 'create', type: 'namespaces', document: { id: 'team-c' } },
    { op: 'assign', type: 'namespaces', ref: { id: 'team-c' }, clusters: ['one', 'two'] },
  ]
  const YAML = `
message: aus der Datei – ü 🚀
operations:
  - {op: create, type: namespaces, document: {id: team-c}}
  - op: assign
    type: namespaces
    ref: {id: team-c}
    clusters: [one, two]
`

  test('does the operations of YAML, JSON, a list or stdin as one revision', async (t) => {
    const fleet = await start(t)
    const inputs = [YAML, JSON.stringify({ operations }), JSON.stringify(operations)]
    const done = 'batch: 3 documents changed (revision '
    for (const [i, content] of inputs.entries()) {
      const args = ['batch', '--yes', '-f', i === 1 ? '-' : file(t, 'batch', content)]
      const run = await isOneRevision(fleet, () => fleet.run(args, { input: i === 1 ? content : '' }))
      assertDone(
        run,
        `${done}${fleet.revision()})\n2 clusters receive something else: dev 1, prod 1 — 2 get team-c (new)\n`,
      )
      assert.deepEqual((await fleet.get('/clusters/two')).namespaces, [{ id: 'team-c' }])
      assertDone(
        await fleet.run(['namespace', 'delete', 'team-c', '--cascade', '--yes', ...CONFIRMED]),
        /deleted/,
      )
    }
    const messages = (await fleet.get('/revisions')).map(({ message }: { message: string | null }) => message)
    assert.deepEqual(messages.toReversed().slice(1), ['aus der Datei – ü 🚀', null, null, null, null, null])
  })

  test('a message of the command line goes before the one of the file', async (t) => {
    const fleet = await start(t)
    assertDone(
      await fleet.run(['batch', '-f', '-', '-m', 'größer', '--yes'], { input: YAML }),
      /3 documents changed/,
    )
    assert.equal((await fleet.get('/revisions/2')).message, 'größer')
  })

  test('a file that asks for a dry run gets one, and can be held to its plan', async (t) => {
    const fleet = await start(t)
    const input = `dry_run: true${YAML}`
    const run = await changesNothing(fleet, () => fleet.run(['batch', '-f', '-'], { input }))
    const plan = planIn(run)
    assert.match(run.stdout, /^\+ namespaces\/team-c\n~ clusters\/one, two\n/)
    assertDone(await fleet.run(['batch', '-f', '-', '--plan', plan], { input: YAML }), /3 documents changed/)
  })

  test('a file that asks for a dry run in a way that the API would refuse is refused, not done', async (t) => {
    const fleet = await start(t)
    for (const dry_run of ['true', 'yes', 1]) {
      const input = JSON.stringify({ operations, dry_run })
      const run = await changesNothing(fleet, () => fleet.run(['batch', '-f', '-'], { input }))
      assert.ok(run.code === 1 || run.code === 2, run.stdout)
    }
  })

  test('what is no batch is refused, and so is one with a mistake anywhere', async (t) => {
    const fleet = await start(t)
    const cases: readonly (readonly [string, number, RegExp])[] = [
      ['', 2, /must hold one document, not 0/],
      ['text', 2, /must hold a list of operations/],
      ['{}', 1, /\/operations is required/],
      ['[{"op": "explode"}]', 1, /operation 1: \/op must be one of create/],
      [JSON.stringify({ operations, dryrun: true }), 1, /\/dryrun is an unknown field/],
      [
        JSON.stringify([...operations, { op: 'delete', type: 'namespaces', id: 'nope' }]),
        1,
        /operation 3: no/,
      ],
    ]
    await changesNothing(fleet, () =>
      Promise.all(
        cases.map(async ([input, code, message]) =>
          assertFailed(await fleet.run(['batch', '-f', '-'], { input }), code, message),
        ),
      ),
    )
    assertFailed(await fleet.run(['batch']), 2, /required option '-f, --file <file>' not specified/)
  })
})

describe('revert and rollback', PARALLEL, () => {
  test('revert takes one revision back and leaves what others did since', async (t) => {
    const fleet = await start(t)
    await fleet.change('/namespaces/team-a', { labels: { team: 'broken' } })
    await fleet.change('/namespaces/team-b', { labels: { other: 'x' } })
    assertDone(
      await fleet.run(['revert', '2', '-m', 'zurück']),
      'revert revision 2: 1 document changed (revision 4)\n1 cluster receives something else: dev 1 — 1 another team of team-a\n',
    )
    assert.deepEqual((await fleet.get('/namespaces/team-a')).labels, { team: 'a' })
    assert.deepEqual((await fleet.get('/namespaces/team-b')).labels, { other: 'x' })
    assert.equal((await fleet.get('/revisions/4')).message, 'zurück')
    await changesNothing(fleet, async () => {
      assertDone(await fleet.run(['revert', '2']), 'revert revision 2: nothing to change\n')
      assertFailed(await fleet.run(['revert', '99']), 1, /no revision "99"/)
      assertFailed(await fleet.run(['revert', '0']), 1, /no revision "0"/)
      assertFailed(await fleet.run(['revert']), 2, /this would revert revision 4/, /add --yes/)
      for (const text of ['2h', '']) {
        assertFailed(await fleet.run(['revert', text]), 2, /a revision is a whole number, not "/)
      }
    })
    await fleet.change('/namespaces/team-b', { labels: { other: 'y' } })
    const conflict = await changesNothing(fleet, () => fleet.run(['revert', '3']))
    assertFailed(conflict, 1, /has been changed again since revision 3[\s\S]*HTTP 409 conflict/)
  })

  test('rollback goes to a revision or a moment, as a whole or in part', async (t) => {
    let now = new Date(Date.now() - 3 * 3_600_000)
    const fleet = await start(t, { now: () => now })
    now = new Date(Date.now() - 3_600_000)
    await fleet.change('/namespaces/team-a', { labels: { team: 'later' } })
    await fleet.change('/clusters/one', { labels: { wave: '1' } })
    await fleet.change('/clusters/two', { labels: { wave: '1' } })
    now = new Date()
    const labels = async (): Promise<Json[]> =>
      Promise.all(
        ['/namespaces/team-a', '/clusters/one', '/clusters/two'].map(
          async (path) => (await fleet.get(path)).labels,
        ),
      )
    const rollback = (args: string): Promise<Run> => fleet.run(['rollback', '--yes', ...args.split(' ')])
    const before = [{ team: 'a' }, {}, {}]
    const after = [{ team: 'later' }, { wave: '1' }, { wave: '1' }]
    const parts: readonly (readonly [string, Json[]])[] = [
      ['--to 1 --selector environment=dev', [after[0], before[1], after[2]] as Json[]],
      ['--to 2h --type namespaces', [before[0], after[1], after[2]] as Json[]],
      ['--to 1 --type clusters --id two', [after[0], after[1], before[2]] as Json[]],
      ['--to 2h --id one,team-a', [before[0], before[1], after[2]] as Json[]],
    ]
    for (const [args, expected] of parts) {
      const target = args.split(' ')[1]
      const run = await isOneRevision(fleet, () => rollback(args))
      assertDone(run, new RegExp(`^roll back to ${target}: . documents? changed \\(revision \\d+\\)\n`))
      assert.deepEqual(await labels(), expected)
      assertDone(await rollback('--to 4'), /^roll back to 4: . documents? changed/)
    }
    assert.deepEqual(await labels(), after)
    const time = new Date(Date.now() - 2 * 3_600_000).toISOString()
    assertDone(await rollback(`--to ${time} -m zurück`), /3 documents changed/)
    assert.deepEqual(await labels(), before)
    assert.equal((await fleet.get(`/revisions/${fleet.revision()}`)).message, 'zurück')
    const again = await changesNothing(fleet, () => rollback('--to 1'))
    assertDone(again, 'roll back to 1: nothing to change\n')
  })

  test('rollback says what it cannot go to, and never takes an empty part for everything', async (t) => {
    const fleet = await start(t)
    await fleet.change('/namespaces/team-a', { labels: { team: 'later' } })
    const cases: readonly (readonly [readonly string[], number, RegExp])[] = [
      [[], 2, /required option '--to <revision\|time>' not specified/],
      [['--to', 'tomorrow'], 2, /--to must be a revision, or like .*not "tomorrow"/],
      [['--to', '99'], 1, /still to come/],
      [['--to', '2099-01-01'], 1, /in the future/],
      [['--to', '1', '--selector', ''], 1, /selector is empty/],
      [['--to', '1', '--type', ''], 1, /types must not be empty/],
      [['--to', '1', '--id', ''], 1, /ids must not be empty/],
      [['--to', '1', '--id', 'nope'], 1, /names no document/],
    ]
    await changesNothing(fleet, () =>
      Promise.all(
        cases.map(async ([args, code, message]) =>
          assertFailed(await fleet.run(['rollback', ...args]), code, message),
        ),
      ),
    )
  })
})

/** What needs an answer is not done where nobody can give one. */
const NOBODY_TO_ASK =
  /^Error: this would .*, and there is no terminal to ask on: nothing was changed\n(?: {2}.*\n)+Hint: .*--dry-run.*--yes, or --plan/m

describe('every write', PARALLEL, () => {
  const EDIT = "sed -i 's/team: a/team: x/'"
  const BATCH = '[{"op":"patch_values","component":"a","values":{"x":"1"},"selector":"id=one"}]'
  const restorable = { id: 'gone', cluster_name: 'gone', cluster_dns: 'gone.example.com', environment: 'dev' }
  interface Write {
    readonly line: string
    readonly input?: string
    /** The same as a request. */
    readonly request: readonly [method: string, path: string, body?: Json]
    first?(fleet: Fleet): Promise<void>
  }
  const assign = (id: string, clusters: string[]): JsonObject => ({
    op: 'assign',
    type: 'namespaces',
    ensure: true,
    ref: { id },
    clusters,
  })
  const batch = (...operations: JsonObject[]): Write['request'] => ['POST', '/batch', { operations }]
  const WRITES: readonly Write[] = [
    {
      line: 'namespace create new --label a=b',
      request: ['POST', '/namespaces', { id: 'new', labels: { a: 'b' } }],
    },
    {
      line: 'namespace create new --cluster one,two',
      request: batch(
        { op: 'create', type: 'namespaces', document: { id: 'new' } },
        assign('new', ['one', 'two']),
      ),
    },
    {
      line: 'demo add-namespace one new --label a=b',
      request: batch(
        { op: 'create', type: 'namespaces', document: { id: 'new', labels: { a: 'b' } } },
        assign('new', ['one']),
      ),
    },
    {
      line: 'namespace update team-a --set labels.x=y --unset labels.team',
      request: ['PATCH', '/namespaces/team-a', { labels: { x: 'y', team: null } }],
    },
    {
      line: 'rolebinding update admins --set subjects[0].name=x',
      request: [
        'PUT',
        '/rolebindings/admins',
        { id: 'admins', role: 'cluster-admin', subjects: [{ kind: 'Group', name: 'x' }] },
      ],
    },
    {
      line: 'cluster update --selector id --set labels.x=y',
      request: batch({ op: 'patch', type: 'clusters', selector: 'id', patch: { labels: { x: 'y' } } }),
    },
    {
      line: 'namespace edit team-a',
      request: ['PUT', '/namespaces/team-a', { id: 'team-a', labels: { team: 'x' }, annotations: {} }],
    },
    { line: 'namespace delete team-a --cascade', request: ['DELETE', '/namespaces/team-a?cascade=true'] },
    {
      line: 'namespace delete team-a team-b --cascade',
      request: batch(
        { op: 'delete', type: 'namespaces', id: 'team-a', cascade: true },
        { op: 'delete', type: 'namespaces', id: 'team-b', cascade: true },
      ),
    },
    { line: 'cluster delete one --purge', request: ['DELETE', '/clusters/one?purge=true'] },
    {
      line: 'cluster restore gone',
      request: ['POST', '/clusters/gone/restore'],
      async first({ call }) {
        assert.equal((await call('POST', '/clusters', { body: restorable })).status, 201)
        assert.equal((await call('DELETE', '/clusters/gone')).status, 200)
      },
    },
    {
      line: 'component assign a --cluster two --oci-tag v9',
      request: batch({
        op: 'assign',
        type: 'platform_components',
        ensure: true,
        ref: { id: 'a', oci_tag: 'v9' },
        clusters: ['two'],
      }),
    },
    {
      line: 'component unassign b --cluster one',
      request: batch({ op: 'unassign', type: 'platform_components', id: 'b', clusters: ['one'] }),
    },
    {
      line: 'component patch a --selector id=one --set x_y=1 --unset replicas',
      request: batch({
        op: 'patch_values',
        component: 'a',
        values: { x_y: '1', replicas: null },
        selector: 'id=one',
      }),
    },
    {
      line: 'demo patch-component one a --set x_y=1',
      request: batch({ op: 'patch_values', component: 'a', values: { x_y: '1' }, clusters: ['one'] }),
    },
    { line: 'batch -f -', input: BATCH, request: ['POST', '/batch', { operations: JSON.parse(BATCH) }] },
    {
      line: 'revert 2',
      request: ['POST', '/revisions/2/revert'],
      first: ({ change }) => change('/namespaces/team-a', { labels: { team: 'broken' } }),
    },
    {
      line: 'rollback --to 1 --type namespaces',
      request: ['POST', '/rollback', { to_revision: 1, types: ['namespaces'] }],
      first: ({ change }) => change('/namespaces/team-a', { labels: { team: 'broken' } }),
    },
  ]

  for (const { line, input, request, first } of WRITES) {
    test(`${line}: the preview is the API's, and its plan does exactly that`, async (t) => {
      const fleet = await start(t)
      await first?.(fleet)
      const run = (...more: string[]): Promise<Run> =>
        fleet.run([...line.split(' '), ...more], {
          env: { EDITOR: EDIT },
          ...(input !== undefined && { input }),
        })
      const [method, path, body] = request
      const query = `${path.includes('?') ? '&' : '?'}dry_run=true`
      const expected = await fleet.call(method, `${path}${query}`, { body })
      assert.equal(expected.status, 200, expected.text)
      const { changes, impact, plan, requires_confirmation } = expected.body
      const [text, json] = await changesNothing(fleet, () =>
        Promise.all([run('--dry-run'), run('--dry-run', '-o', 'json')]),
      )
      assert.deepEqual(JSON.parse(json.stdout), expected.body)
      assert.deepEqual([json.code, json.stderr, text.code, text.stderr], [0, '', 0, ''])
      assert.equal(planIn(text), plan)
      for (const { type } of changes) assert.match(text.stdout, new RegExp(`^[-+~] ${type}/`, 'm'))
      const receiving =
        impact.clusters === 0 ? /^no cluster receives anything else$/m : /^\d clusters? receives? /m
      assert.match(text.stdout, receiving)
      if (impact.touched > 1 || impact.losing + impact.leaving > 0) {
        const held = await changesNothing(fleet, () => run())
        assertFailed(held, 2, NOBODY_TO_ASK)
      }
      const planned = ['--plan', plan, '-m', 'grüße 🚀\nund mehr']
      if (requires_confirmation.length > 0) {
        const held = await changesNothing(fleet, () => run(...planned))
        assertFailed(held, 1, /HTTP 409 destructive_change[\s\S]*Hint: .*--confirm removals/)
        planned.push(...CONFIRMED)
      }
      const done = await isOneRevision(fleet, () => run(...planned))
      assert.equal(done.code, 0, done.stderr)
      const revision = await fleet.get(`/revisions/${fleet.revision()}`)
      assert.deepEqual(revision.changes, changes)
      assert.match(revision.message, /^grüße 🚀\s+und mehr$/)
      assert.match(done.stdout, new RegExp(`\\(revision ${fleet.revision()}\\)`))
    })
  }

  test('a plan that no longer holds is refused, with what to do', async (t) => {
    const fleet = await start(t)
    const line = 'component patch a --cluster one --set x=1'.split(' ')
    const plan = planIn(await fleet.run([...line, '--dry-run']))
    await fleet.change('/clusters/one', { patches: { a: { x: 'somebody else' } } })
    const run = await changesNothing(fleet, () => fleet.run([...line, '--plan', plan]))
    assertFailed(run, 1, /HTTP 409 plan_changed[\s\S]*Hint: preview again with --dry-run/)
    assert.match(run.stderr, /clusters\/one would be changed now, and was last changed by revision 2$/m)
  })

  test('what is no plan and no confirmation is wrong use, before anything is sent', async (t) => {
    const fleet = await start(t)
    const bad: readonly (readonly [string[], RegExp])[] = [
      [['--confirm', 'everything'], /--confirm must be removals, not "everything"/],
      [['--plan', 'sha256:12'], /--plan must be what a preview printed/],
      [['--plan', `sha256:${'0'.repeat(63)}Z`], /--plan must be/],
      [['--plan'], /argument missing/],
    ]
    const lines = ['namespace create new', 'component unassign b --cluster one', 'rollback --to 1']
    await changesNothing(fleet, () =>
      Promise.all(
        bad.map(async ([flags, message], i) => {
          const line = lines[i % lines.length] as string
          assertFailed(await fleet.run([...line.split(' '), ...flags]), 2, message)
        }),
      ),
    )
    const unknown = ['--plan', `sha256:${'0'.repeat(64)}`]
    const run = await changesNothing(fleet, () => fleet.run(['namespace', 'create', 'new', ...unknown]))
    assertFailed(run, 1, /HTTP 409 plan_changed/)
  })

  const emptying = 'cluster update one --set namespaces=[]'.split(' ')
  const full = {
    ...smallFleet(),
    namespaces: ['n1', 'n2', 'n3'].map((id) => ({ id })),
    clusters: [
      {
        id: 'one',
        cluster_name: 'one',
        cluster_dns: 'one.k8s.example.com',
        environment: 'dev',
        namespaces: ['n1', 'n2', 'n3'].map((id) => ({ id })),
      },
    ],
  }

  test('what removes a lot needs to be confirmed', async (t) => {
    const fleet = await start(t, { fleet: full })
    const asked = await changesNothing(fleet, () => fleet.run(emptying))
    assertFailed(
      asked,
      2,
      /^Error: this would remove n1, n2, n3 from one, /,
      /^Hint: .*--yes.*--confirm removals$/m,
    )
    const run = await changesNothing(fleet, () => fleet.run([...emptying, '--yes']))
    assertFailed(run, 1, /HTTP 409 destructive_change[\s\S]*Hint: .*--confirm removals/)
    assert.match(run.stderr, /namespaces of one \(dev\)\n {4}- n1\n {4}- n2\n {4}- n3\n/)
    const preview = await changesNothing(fleet, () => fleet.run([...emptying, '--dry-run']))
    assertDone(preview, /^Warning: needs --confirm removals/m)
    assertDone(await fleet.run([...emptying, '--yes', '--confirm', 'removals']), /^clusters\/one configured/)
    assert.deepEqual((await fleet.get('/clusters/one')).namespaces, [])
  })

  test('a message with characters that no header takes is not taken for a server that is away', async (t) => {
    const fleet = await start(t)
    for (const [i, message] of ['bell \u0007', 'red \u001b[31m', 'del \u007f'].entries()) {
      const run = await fleet.run(['namespace', 'create', `new-${i}`, '-m', message])
      if (run.code === 0)
        assert.match((await fleet.get(`/revisions/${fleet.revision()}`)).message, /^(bell|red|del)/)
      else assertFailed(run, 2, /message/)
    }
    const long = await changesNothing(fleet, () =>
      fleet.run(['namespace', 'create', 'long', '-m', 'x'.repeat(100_000)]),
    )
    assert.ok(long.code === 1 || long.code === 2, long.stderr)
    assert.match(long.stderr, /^Error: /)
  })

  describe('on a terminal', PARALLEL, () => {
    const many = 'cluster update --selector id --set labels.wave=1'.split(' ')
    const plainText = (screen: string): string =>
      // biome-ignore lint/suspicious/noControlCharactersInRegex: colours and movements of the cursor
      screen.replaceAll(/\u001b\[[\d;]*[A-Za-z]/g, '')

    test('several clusters are changed after a coloured diff and a yes', async (t) => {
      const fleet = await start(t)
      const long = await fleet.onTerminal(many, { typing: [['go on: ', 'yes\n']] })
      assert.match(
        plainText(long.screen),
        /^~ clusters\/one, two\n {4}\/labels\/wave: \(none\) → "1"\nno cluster/,
      )
      assert.match(plainText(long.screen), /Change 2 clusters on http:\S+\?\sType "yes" to go on: /)
      assert.ok(long.screen.includes('\u001b[33m~ clusters/one, two\u001b[39m'))
      assert.ok(long.screen.includes('\u001b[32m"1"\u001b[39m'))
      assert.match(plainText(long.screen), /clusters \(id\): 2 documents changed \(revision 2\)\n/)
      assert.deepEqual([long.code, fleet.revision()], [0, 2])
      const short = await fleet.onTerminal('component assign a --selector id --oci-tag v2'.split(' '), {
        typing: [['go on: ', 'Y\n']],
        env: { NO_COLOR: '1' },
      })
      assert.match(short.screen, /~ a\n {8}\/source\/oci_tag: "v1\.0\.0" → "v2"\n/)
      assert.deepEqual([short.code, fleet.revision()], [0, 3])
    })

    test('anything else changes nothing', async (t) => {
      const fleet = await start(t)
      for (const typed of ['no\n', '\n', 'yess\n', 'removals\n', '\u0004']) {
        const { code, screen } = await changesNothing(fleet, () =>
          fleet.onTerminal(many, { typing: [['go on: ', typed]] }),
        )
        assert.match(plainText(screen), /nothing was changed\n$/, JSON.stringify(typed))
        assert.equal(code, 4, JSON.stringify(typed))
      }
    })

    test('Ctrl-C changes nothing, and is told by the exit code of shells', async (t) => {
      const fleet = await start(t)
      const { code, screen } = await changesNothing(fleet, () =>
        fleet.onTerminal(many, { typing: [['go on: ', '\u0003']] }),
      )
      assert.match(plainText(screen), /nothing was changed\n$/)
      assert.equal(code, 130)
    })

    test('what is said after Ctrl-D is on a line of its own', async (t) => {
      const fleet = await start(t)
      const { screen } = await fleet.onTerminal(many, { typing: [['go on: ', '\u0004']] })
      assert.match(plainText(screen), /go on: \s*\n.*Error: nothing was changed\n$/)
    })

    test('--yes, a plan, or a change of one cluster asks nothing', async (t) => {
      const fleet = await start(t)
      const asks = /Type "/
      const runs = [
        [...many, '--yes'],
        'cluster update one --set labels.wave=2'.split(' '),
        'component patch a --cluster one --set x=1'.split(' '),
        'namespace create new'.split(' '),
        many,
      ]
      for (const [i, args] of runs.entries()) {
        // The last of them has something to do on one of two clusters only.
        const { code, screen } = await fleet.onTerminal(args, { timeout: 40_000 })
        assert.doesNotMatch(screen, asks)
        assert.deepEqual([code, fleet.revision()], [0, i + 2])
      }
      const args = 'cluster update --selector id --set labels.wave=9'.split(' ')
      const plan = planIn(await fleet.run([...args, '--dry-run']))
      const planned = await fleet.onTerminal([...args, '--plan', plan], { timeout: 40_000 })
      assert.doesNotMatch(planned.screen, asks)
      assert.equal((await fleet.get('/clusters/two')).labels.wave, '9')
    })

    test('removals take the word, even of one cluster, and --yes is not that word', async (t) => {
      const fleet = await start(t, { fleet: full })
      await changesNothing(fleet, async () => {
        const yes = await fleet.onTerminal(emptying, { typing: [['go on: ', 'yes\n']] })
        assert.match(
          plainText(yes.screen),
          /Remove n1, n2, n3 from one on http:\S+\?\sType "removals" to go on: /,
        )
        assert.match(plainText(yes.screen), /Warning: needs --confirm removals/)
        assert.equal(yes.code, 4)
        const skipped = await fleet.onTerminal([...emptying, '--yes'], { timeout: 40_000 })
        assert.match(plainText(skipped.screen), /HTTP 409 destructive_change/)
        assert.equal(skipped.code, 1)
      })
      const word = await fleet.onTerminal(emptying, { typing: [['go on: ', 'removals\n']] })
      assert.match(plainText(word.screen), /clusters\/one configured \(revision 2\)/)
      assert.equal(word.code, 0)
      assert.deepEqual((await fleet.get('/clusters/one')).namespaces, [])
    })

    test('what was seen is what is done: a change in between stops it', async (t) => {
      const fleet = await start(t)
      let others = 0
      const url = await between(t, fleet, async (_method, _path, query) => {
        if (query.get('dry_run') !== 'true') return
        others++
        await fleet.change('/clusters/two', { labels: { wave: 'other' } })
      })
      const { code, screen } = await fleet.onTerminal(many, { url, typing: [['go on: ', 'yes\n']] })
      assert.match(plainText(screen), /HTTP 409 plan_changed/)
      assert.deepEqual([code, others, fleet.revision()], [1, 1, 2])
      assert.deepEqual((await fleet.get('/clusters/one')).labels, {})
    })
  })

  test('where questions are never to be asked, changes are made without them', async (t) => {
    const fleet = await start(t)
    const many = 'cluster update --selector id --set labels.wave=1'.split(' ')
    const run = (env: Record<string, string>): Promise<Run> => fleet.run(many, { env, input: 'yes\n' })
    assertFailed(await changesNothing(fleet, () => run({})), 2, /would change 2 clusters/, NOBODY_TO_ASK)
    assertFailed(await changesNothing(fleet, () => run({ FLUX_API_ASK: 'always' })), 2, NOBODY_TO_ASK)
    assertFailed(await run({ FLUX_API_ASK: 'no' }), 2, /FLUX_API_ASK must be always or never, not "no"/)
    assertDone(await run({ FLUX_API_ASK: 'never' }), /^clusters \(id\): 2 documents changed/)
  })
})

describe('results', PARALLEL, () => {
  test('of one document are the document, its name, or what a path finds in it', async (t) => {
    const fleet = await start(t)
    const run = (line: string): Promise<Run> => fleet.run(line.split(' '))
    const document = { id: 'new', labels: { a: 'b' }, annotations: {} }
    assert.deepEqual(parse(await run('namespace create new --label a=b -o json')), document)
    assertDone(
      await run('namespace update new --set labels.a=c -o yaml'),
      'type: namespaces\nid: new\nlabels:\n  a: c\nannotations: {}\n',
    )
    assertDone(await run('namespace update new --set labels.a=c -o name'), 'namespaces/new\n')
    assertDone(await run('namespace update new --set labels.a=d -o jsonpath={.labels.a}'), /^d\n?$/)
    assertDone(await run('namespace create new --cluster one -o jsonpath={.id}'), /^new\n?$/)
    assertDone(await run('namespace create more --cluster one -o name'), 'namespaces/more\n')
    assertDone(await run('cluster delete two -o name --yes'), 'clusters/two\n')
    assertDone(await run('cluster restore two -o jsonpath={.cluster_name}'), /^two\n?$/)
    assertDone(await run('namespace delete more --cascade -o name --dry-run'), /^namespaces\/more$/m)
  })

  test('of many documents are the answer of the API', async (t) => {
    const fleet = await start(t)
    const run = (line: string): Promise<Run> => fleet.run(line.split(' '))
    const { revision, changes, impact, warnings, plan } = parse(
      await run('component patch a --cluster one --set x=1 -o json'),
    )
    assert.deepEqual([revision, changes, warnings], [2, 1, []])
    assert.deepEqual((impact as JsonObject).by_environment, { dev: 1 })
    assert.match(String(plan), /^sha256:/)
    assertDone(await run('component patch a --cluster one --set x=1 -o jsonpath={.changes}'), /^0\n?$/)
    assertDone(
      await run('cluster update --selector id --set labels.a=b -o yaml --yes'),
      /^revision: 3\nchanges: 2\n/,
    )
    assertDone(await run('revert 3 --yes -o jsonpath={.revision}/{.changes}'), /^4\/2\n?$/)
  })

  test('of many documents are their names too', async (t) => {
    const cases: readonly (readonly [string, readonly string[]])[] = [
      [
        'namespace delete team-a team-b --cascade --confirm removals',
        ['clusters/one', 'namespaces/team-a', 'namespaces/team-b'],
      ],
      ['component patch a --cluster one --set x=1', ['clusters/one']],
      ['cluster update --selector id --set labels.a=b', ['clusters/one', 'clusters/two']],
      ['revert 2', ['namespaces/team-a']],
    ]
    await Promise.all(
      cases.map(async ([line, names]) => {
        const fleet = await start(t)
        await fleet.change('/namespaces/team-a', { annotations: { a: 'b' } })
        const run = await fleet.run([...line.split(' '), '--yes', '-o', 'name'])
        const done = fleet.revision() === 3
        assert.equal(done, run.code === 0, `${line}: exit ${run.code}, and ${done ? 'done' : 'not done'}`)
        assert.deepEqual([run.code, run.stdout.trim().split('\n').sort()], [0, names], line)
      }),
    )
  })

  test('an output that cannot be is told before anything is changed', async (t) => {
    const fleet = await start(t)
    const lines = [
      'namespace create new -o jsonpath={.id',
      'namespace create new -o jsonpath=',
      'namespace create new -o xml',
      'component patch a --cluster one --set x=1 -o jsonpath={.a[}',
      'cluster delete two -o jsonpath={',
    ]
    for (const line of lines) {
      const before = fleet.revision()
      assertFailed(await fleet.run(line.split(' ')), 2, /^Error: (jsonpath|--output)/)
      assert.equal(fleet.revision(), before, line)
    }
  })

  test('show what is in documents without letting it write to the terminal', async (t) => {
    const fleet = await start(t)
    const documents = (item: string): JsonObject => ({ documents: { '\u001b[2Jkey': [item] } })
    const created = await fleet.call('POST', '/applied_sets', { body: { id: 'odd', ...documents('a') } })
    assert.equal(created.status, 201)
    await fleet.change('/applied_sets/odd', documents('b'))
    await fleet.change('/clusters/one', { patches: { a: { key: '\u001b[2Jvalue' } } })
    const run = await fleet.run(['rollback', '--to', '2', '--dry-run'])
    assertDone(run, /\\u001b\[2Jkey/)
    assert.ok(!run.stdout.includes('\u001b'), JSON.stringify(run.stdout))
  })

  test('a write that changes nothing says so and makes no revision', async (t) => {
    const fleet = await start(t)
    const lines = [
      'namespace update team-a --set labels.team=a',
      'rolebinding update admins --set subjects[0].name=admins',
      'namespace create team-a --cluster one --label team=a',
      'component assign a --cluster one',
      'component patch a --cluster one --set replicas=2 --unset never',
      'cluster update --selector id --unset labels.never',
      'rollback --to 1',
      'demo patch-component one a --set replicas=2',
    ]
    const runs = await changesNothing(fleet, () =>
      Promise.all(lines.map((line) => fleet.run(line.split(' ')))),
    )
    for (const run of runs) assertDone(run, /unchanged\n$|nothing to change\n$/)
    const preview = await fleet.run('namespace update team-a --set labels.team=a --dry-run'.split(' '))
    assertDone(preview, 'Nothing would change.\n')
  })
})

describe('types of your own', PARALLEL, () => {
  /** With fields named like flags, and with one named like what files say of their type. */
  function ownTypes(t: TestContext) {
    const folder = temporaryFolder(t)
    const text = readFileSync(join(ROOT, 'examples/network-policies/network_policy.yaml'), 'utf8')
    const head = text.slice(0, text.indexOf('schema:\n  type: array'))
    writeFileSync(
      join(folder, 'notice.yaml'),
      `${head.replaceAll('network_policies', 'notices')}
schema:
  type: array
  key: { name: id, description: Name., schema: { type: string, format: dns-subdomain } }
  x-flux:
    singular: notice
    endpoint: notices
    assigned_by: notices
    overrides: [message]
    input: [message, cluster]
  items:
    type: object
    properties:
      message: { type: string, description: What to say. }
      file: { type: string, description: Where to write it. }
      selector: { type: string, description: What it is about. }
      type: { type: string, description: How bad it is. }
`,
    )
    return builtInTypes(folder)
  }

  test('a flag of the command is never taken for a field of the same name', async (t) => {
    const fleet = await start(t, { types: ownTypes(t) })
    const created = await fleet.run(['notice', 'create', 'one', '-m', 'the reason', '-o', 'json'])
    assert.deepEqual(parse(created), { id: 'one' })
    const read = await fleet.run(['notice', 'create', '-f', '-', '-o', 'json'], {
      input: '{"id": "two", "message": "down"}',
    })
    assert.deepEqual(parse(read), { id: 'two', message: 'down' })
    const selected = await fleet.run('notice create three --selector id=one -o json'.split(' '))
    assert.deepEqual(parse(selected), { id: 'three' })
    assertDone(
      await fleet.run(['notice', 'assign', 'one', '--cluster', 'one', '-m', 'the reason']),
      /changed/,
    )
    assert.deepEqual((await fleet.get('/clusters/one')).notices, [{ id: 'three' }, { id: 'one' }])
  })

  test('a field that is named type is read from a file', async (t) => {
    const fleet = await start(t, { types: ownTypes(t) })
    const input = '{"id": "one", "type": "critical"}'
    const run = await fleet.run(['notice', 'create', '-f', '-', '-o', 'json'], { input })
    assert.equal(parse(run).type, 'critical')
  })
})

test('an id that would be something else in a URL is refused, and nothing else is touched', async (t) => {
  const fleet = await start(t)
  const ids = ['a b', '%', '%2e%2e', '..', '', 'ü🚀', '../clusters/one', 'one?purge=true']
  const commands = (id: string): string[][] => [
    ['namespace', 'create', id],
    ['cluster', 'delete', id],
    ['namespace', 'create', id, '--cluster', 'one'],
  ]
  await changesNothing(fleet, async () => {
    for (const id of ids) {
      const runs = await Promise.all(commands(id).map((args) => fleet.run(args)))
      for (const [i, { code, stdout, stderr }] of runs.entries()) {
        const what = `${commands(id)[i]?.join(' ')}\n${stderr}`
        assert.ok(code === 1 || code === 2, what)
        assert.match(
          stderr,
          /^Error: .*(?:not an id|\/id must|no .*cluster|no namespace|must not be empty)/,
          what,
        )
        assert.doesNotMatch(stderr, /\n +at /, what)
        assert.equal(stdout, '')
      }
    }
  })
  const line = 'rolebinding create dots.in.the-name --role view --subject kind=User,name=ü%2F..'
  assertDone(await fleet.run(line.split(' ')), /^rolebindings\/dots\.in\.the-name created/)
  assertDone(await fleet.run(['rolebinding', 'delete', 'dots.in.the-name']), /deleted/)
})
