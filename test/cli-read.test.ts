// Everything of the command line that reads: what it prints, in every format, on pipes and on terminals.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer as createRawServer } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { parse, parseAllDocuments } from 'yaml'
import type { Json } from '../src/base/json.ts'
import { widthOf } from '../src/cli/output/terminal.ts'
import {
  CLI,
  type CliOptions,
  cli,
  cliEnv,
  onTerminal,
  type Run,
  type TerminalOptions,
} from './cli-process.ts'
import { standBefore } from './own-server.ts'
import {
  builtInTypes,
  READ_TOKEN,
  smallFleet,
  startService,
  type TestService,
  temporaryFolder,
} from './service.ts'

const PROGRAM = 'flux-resourceset-cli'
const EXAMPLE = join(import.meta.dirname, '../examples/network-policies')
const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'))

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** What somebody might write to play with the terminals of others. */
const NASTY = 'evil \u001b[31mred \u009b32m \u202etxt \u0007 \n second\tline'
const NASTY_KEY = '\u001b[31mkey'

function fleet() {
  const small = smallFleet()
  const [component] = small.platform_components
  const [one, two] = small.clusters
  return {
    ...small,
    platform_components: [
      ...small.platform_components,
      { ...component, id: 'd', component_version: '2.0.0', depends_on: [] },
    ],
    rolebindings: [
      ...small.rolebindings,
      { id: 'viewers', role: 'view', subjects: [{ kind: 'User', name: 'ann' }] },
    ],
    network_policies: [
      { id: 'db', target_namespace: 'team-b' },
      { id: 'web', target_namespace: 'team-a', ingress_rules: [{ from_namespace: 'traefik', port: 80 }] },
    ],
    clusters: [
      {
        ...one,
        labels: { region: 'eu', 'app.kubernetes.io/name': 'shop' },
        network_policies: [{ id: 'web' }],
      },
      { ...two, labels: { region: 'us' } },
      {
        id: 'three',
        cluster_name: 'The third',
        cluster_dns: 'three.k8s.example.com',
        environment: 'qa',
        labels: { region: 'eu' },
        platform_components: [{ id: 'c' }],
        namespaces: [{ id: 'team-b' }],
      },
    ],
  }
}

const started = Date.now()
let clock = started - 10 * DAY
let service: TestService
/** More than a page of everything. */
let large: TestService
const LARGE = { namespaces: 5001, revisions: 1003 }

before(async () => {
  service = await startService({ fleet: fleet(), types: builtInTypes(EXAMPLE), now: () => new Date(clock) })
  const change = async (ago: number, method: string, path: string, body: Json, message?: string) => {
    clock = started - ago
    const headers = message === undefined ? {} : { 'x-change-message': message }
    const { status, text } = await service.call(method, path, { body, headers })
    assert.ok(status < 300, text)
  }
  const documents = { namespaces: ['team-a'] }
  const viewers = { rolebindings: [{ id: 'admins' }, { id: 'viewers' }], patches: { a: { replicas: '3' } } }
  const nasty = {
    op: 'patch',
    type: 'namespaces',
    id: 'team-b',
    patch: { annotations: { note: NASTY.replace('\u009b', '') } },
  }
  await change(5 * DAY, 'POST', '/applied_sets', { id: 'base', documents }, 'INC-4711 first set')
  await change(3 * HOUR, 'PATCH', '/namespaces/team-a', { labels: { team: 'alpha' } }, 'rename the team')
  await change(HOUR, 'PATCH', '/clusters/one', viewers)
  await change(30 * MINUTE, 'POST', '/batch', { message: NASTY, operations: [nasty] })
  await change(10 * MINUTE, 'PATCH', '/applied_sets/base', { documents: { [NASTY_KEY]: ['x'] } })
  await change(5 * MINUTE, 'PATCH', '/applied_sets/base', { documents: { [NASTY_KEY]: ['y'] } })

  const ids = Array.from({ length: LARGE.namespaces }, (_, i) => `n-${String(i).padStart(4, '0')}`)
  large = await startService({ fleet: { namespaces: ids.map((id) => ({ id })) } })
  for (let round = 2; round <= LARGE.revisions; round++) {
    await large.call('PATCH', '/namespaces/n-0000', { body: { labels: { round: String(round) } } })
  }
})

after(async () => {
  await service.stop()
  await large.stop()
})

const NOUNS = [
  { noun: 'cluster', type: 'clusters', id: 'one' },
  { noun: 'component', type: 'platform_components', id: 'b' },
  { noun: 'namespace', type: 'namespaces', id: 'team-a' },
  { noun: 'rolebinding', type: 'rolebindings', id: 'admins' },
  { noun: 'applied-set', type: 'applied_sets', id: 'base' },
  { noun: 'network-policy', type: 'network_policies', id: 'web' },
]

function run(args: readonly string[], options: CliOptions = {}): Promise<Run> {
  return cli(args, { url: service.url, ...options })
}

/** What a command that has nothing to remark prints. */
async function output(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(args)
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' }, `${args.join(' ')}\n${stderr}`)
  return stdout
}

async function names(...args: string[]): Promise<string[]> {
  return linesOf(await output(...args, '-o', 'name'))
}

/** Lines without the break at the end of the last, which has to be there. */
function linesOf(text: string): string[] {
  assert.ok(text === '' || text.endsWith('\n'), 'the last line is ended')
  return text.split('\n').slice(0, -1)
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
async function api(path: string): Promise<any> {
  const { status, body, text } = await service.call('GET', path, { token: READ_TOKEN })
  assert.equal(status, 200, text)
  return body
}

function pretty(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

/** Runs a few at a time: as many as make sense on a small machine. */
async function each<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const queue = [...items.entries()]
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next; next = queue.shift()) results[next[0]] = await work(next[1])
  }
  await Promise.all([worker(), worker(), worker(), worker()])
  return results
}

/** The words of a command line; none of them holds a space. */
function words(line: string): string[] {
  return line.split(' ').filter((word) => word !== '')
}

test('list, get and history print exactly the documents of the API with -o json, for every noun', async () => {
  await each(
    NOUNS.flatMap(({ noun, type, id }) => [
      { args: [noun, 'list'], path: `/${type}` },
      { args: [noun, 'get', id], path: `/${type}/${id}` },
      { args: [noun, 'history', id], path: `/${type}/${id}/history` },
    ]),
    async ({ args, path }) => {
      const body = await api(path)
      assert.ok(JSON.stringify(body).includes('"id"'), `${path} has documents`)
      assert.equal(await output(...args, '-o', 'json'), pretty(body))
    },
  )
})

test('commands about the whole fleet print exactly the documents of the API with -o json', async () => {
  const documents: Record<string, string> = {
    'cluster inputs one platform-components': '/clusters/one/inputs/platform-components',
    'cluster inputs one platform-components --explain':
      '/clusters/one/inputs/platform-components?explain=true',
    log: '/revisions?limit=20',
    'show 4': '/revisions/4',
    verify: '/revisions/verify',
  }
  await each(Object.entries(documents), async ([line, path]) => {
    assert.equal(await output(...words(line), '-o', 'json'), pretty(await api(path)))
  })
})

/** Documents as JSON has them: in YAML they have their type, so that they can be applied. */
function withoutTypes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTypes)
  const { type, ...rest } = value as { type?: unknown }
  return typeof type === 'string' && 'id' in rest ? rest : value
}

test('-o yaml holds the same as -o json, and documents with their type', async () => {
  assert.equal(parse(await output('namespace', 'get', 'team-b', '-o=yaml')).type, 'namespaces')
  assert.equal(parse(await output('cluster', 'list', '-o', 'yaml'))[0].type, 'clusters')
  const lines = [
    'cluster list',
    'network-policy get web',
    'namespace get team-b',
    'log',
    'show 7',
    'cluster inputs one',
    'cluster describe three',
    'status',
  ]
  await each(lines, async (line) => {
    const [yaml, json] = await Promise.all([
      output(...words(line), '-o', 'yaml'),
      output(...words(line), '-o', 'json'),
    ])
    assert.deepEqual(withoutTypes(parse(yaml)), JSON.parse(json), line)
    assert.notEqual(yaml, json)
  })
})

test('-o name prints type and id of each', async () => {
  const expected: Record<string, string[]> = {
    'cluster list': ['clusters/one', 'clusters/three', 'clusters/two'],
    'component get b': ['platform_components/b'],
    'namespace list': ['namespaces/team-a', 'namespaces/team-b'],
    'rolebinding list': ['rolebindings/admins', 'rolebindings/viewers'],
    'applied-set list': ['applied_sets/base'],
    'network-policy list': ['network_policies/db', 'network_policies/web'],
    'namespace history team-a': ['revisions/3', 'revisions/1'],
    'show 3': ['revisions/3'],
    'cluster describe one': ['clusters/one'],
    'cluster inputs one': [
      'namespaces/team-a',
      'platform-components/a',
      'platform-components/b',
      'rolebindings/admins',
      'rolebindings/viewers',
      'network-policies/web',
    ],
    'cluster inputs one component': ['platform-components/a', 'platform-components/b'],
  }
  const found = await each(
    Object.keys(expected),
    async (line) => [line, await names(...words(line))] as const,
  )
  assert.deepEqual(Object.fromEntries(found), expected)
})

test('a noun is understood by its own name, by that of its type, and with dashes', async () => {
  const aliases = [
    'component',
    'platform-component',
    'platform_components',
    'platform-components',
    'role-binding',
    'network_policies',
    'network-policies',
    'clusters',
  ]
  const found = await each(aliases, async (noun) => (await names(noun, 'list'))[0]?.split('/')[0])
  assert.deepEqual(found, [
    ...Array(4).fill('platform_components'),
    'rolebindings',
    'network_policies',
    'network_policies',
    'clusters',
  ])
})

test('a table has the columns that matter, wide has all of them, and --no-headers none of the titles', async () => {
  const [clusters, components = '', policies, bindings = '', headless = '', wide = ''] = await each(
    [
      'cluster list',
      'component list',
      'network-policy get web',
      'rolebinding list -o table',
      'namespace list --no-headers',
      'cluster list -o wide',
    ],
    (line) => output(...words(line)),
  )
  assert.equal(
    clusters,
    [
      'ID     ENV   CONTACT  DELIVERY  HEALTH   SEEN  LABELS                                 DNS',
      'one    dev   never    behind    unknown        region=eu,app.kubernetes.io/name=shop  one.k8s.example.com',
      'three  qa    never    behind    unknown        region=eu                              three.k8s.example.com',
      'two    prod  never    behind    unknown        region=us                              two.k8s.example.com',
      '',
    ].join('\n'),
  )
  assert.match(components, /^ID +TAG +VERSION +PATH +DEPENDS-ON +URL\n/)
  assert.match(components, /^c +v1\.0\.0 +1\.0\.0 +core\/c\/1\.0\.0 +b +oci:/m)
  assert.equal(
    policies,
    [
      'ID   TARGET-NAMESPACE  INGRESS-RULES',
      'web  team-a            {"from_namespace":"traefik","port":80}',
      '',
    ].join('\n'),
  )
  assert.match(bindings, /^admins +cluster-admin +Group\/admins$/m)
  assert.match(headless, /^team-a +team=alpha\n/)
  const [titles = '', first = ''] = linesOf(wide)
  for (const title of ['NAME', 'LABELS', 'DELETION-PROTECTION', 'NODE-COUNT', 'NS', 'COMP', 'RB', 'DNS']) {
    assert.ok(words(titles).includes(title), title)
  }
  assert.ok(words(first).includes('region=eu,app.kubernetes.io/name=shop'))
})

test('clusters are listed by label selector, and definitions by the clusters that are given them', async () => {
  const expected: Record<string, string[]> = {
    'cluster|environment=prod': ['two'],
    'cluster|environment in (dev,qa),region=eu': ['one', 'three'],
    'cluster|region!=eu': ['two'],
    'cluster|uses.platform_components=c': ['three'],
    'component|environment=dev': ['a', 'b'],
    'component|region=eu': ['a', 'b', 'c'],
    'component|environment=prod': [],
    'namespace|id=three': ['team-b'],
    'rolebinding|region': ['admins', 'viewers'],
    'network-policy|region=eu': ['web'],
    'network-policy|!region': [],
  }
  const found = await each(Object.keys(expected), async (key) => {
    const [noun = '', selector = ''] = key.split('|')
    const listed = await names(noun, 'list', '-l', selector)
    return [key, listed.map((name) => name.split('/')[1])] as const
  })
  assert.deepEqual(Object.fromEntries(found), expected)
})

test('a label that no cluster has is warned of once, with those that are near', async () => {
  for (const noun of ['cluster', 'component']) {
    const { code, stderr } = await run([noun, 'list', '--selector', '!regoin', '-o', 'name'])
    assert.equal(code, 0, stderr)
    assert.equal(stderr, 'Warning: no cluster has the label "regoin": did you mean "region"?\n')
  }
})

test('filters narrow a list, all of them at once', async () => {
  const expected: Record<string, string[]> = {
    'cluster list --filter environment=qa': ['clusters/three'],
    'cluster list --filter environment=dev --filter cluster_dns=ONE.k8s.example.com.': ['clusters/one'],
    'cluster list --filter environment=dev --filter cluster_name=two': [],
    'cluster list --filter environment=dev --selector region=us': [],
    'component list --filter component_version=2.0.0': ['platform_components/d'],
    'component list --filter component_version=1.0.0 --selector id=three': ['platform_components/c'],
    'rolebinding list --filter role=view': ['rolebindings/viewers'],
    'network-policy list --filter target_namespace=team-b': ['network_policies/db'],
  }
  const found = await each(
    Object.keys(expected),
    async (line) => [line, await names(...words(line))] as const,
  )
  assert.deepEqual(Object.fromEntries(found), expected)
})

test('a filter that is given twice is not silently dropped', async () => {
  const { code, stdout } = await run(words('cluster list --filter environment=dev --filter environment=prod'))
  assert.deepEqual({ code, stdout }, { code: 2, stdout: '' })
})

test('a filter that is a flag of its own points to a flag that exists', async () => {
  const { stdout: help } = await run(words('cluster list --help'))
  await each(['limit', 'at', 'selector', 'offset'], async (name) => {
    const { code, stderr } = await run(['cluster', 'list', '--filter', `${name}=1`])
    assert.equal(code, 2)
    const flag = /--[a-z]+$/m.exec(stderr)?.[0]
    if (flag) assert.ok(help.includes(`${flag} `), `${name}: ${stderr}`)
  })
})

test('a list that is cut short says so on stderr, and quietly does not', async () => {
  const [cut, quiet, whole, json] = await each(
    [
      'cluster list --limit 2',
      'cluster list --limit 2 --quiet',
      'cluster list --limit 3',
      'cluster list --limit 1 -o json',
    ],
    (line) => run(words(line)),
  )
  assert.equal(linesOf(cut?.stdout ?? '').length, 3)
  assert.equal(cut?.stderr, '2 of 3 shown\n')
  assert.deepEqual(quiet, { ...cut, stderr: '' })
  assert.equal(whole?.stderr, '')
  assert.equal(JSON.parse(json?.stdout ?? '').length, 1)
  assert.equal(json?.stderr, '1 of 3 shown\n')
})

test('a list of what clusters are given says as well that it is cut short', async () => {
  const [cut, whole] = await each(['1', '3'], (limit) =>
    run(words(`component list --selector region=eu --no-headers --limit ${limit}`)),
  )
  assert.deepEqual([linesOf(cut?.stdout ?? '').length, cut?.stderr], [1, '1 of 3 shown\n'])
  assert.deepEqual([linesOf(whole?.stdout ?? '').length, whole?.stderr], [3, ''])
})

test('an empty list leaves nothing on stdout for a script to take for a row', async () => {
  const { code, stdout, stderr } = await run(words('component list --selector environment=prod --no-headers'))
  assert.deepEqual(
    { code, stdout, stderr },
    { code: 0, stdout: '', stderr: 'No platform components found.\n' },
  )
})

test('a list is read to its end, however many pages that takes', async () => {
  const { code, stdout, stderr } = await run(words('namespace list -o name'), { url: large.url })
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' })
  const ids = linesOf(stdout)
  assert.equal(ids.length, LARGE.namespaces)
  assert.equal(new Set(ids).size, LARGE.namespaces)
  assert.equal(ids.at(-1), 'namespaces/n-5000')
})

test('everything can be read as it was at a revision or at a time', async () => {
  const at = (ago: number) => new Date(started - ago).toISOString()
  const documents: [line: string, path: string][] = [
    ['namespace list --at 2', '/namespaces?at=2'],
    [`namespace list --at ${at(4 * HOUR)}`, '/namespaces?at=2'],
    ['namespace get team-a --at 2', '/namespaces/team-a?at=2'],
    [`cluster get one --at ${at(2 * HOUR)}`, '/clusters/one?at=3'],
    ['cluster list --at 3 --selector region=eu', '/clusters?at=3&selector=region%3Deu'],
    ['cluster inputs one rolebindings --at 3', '/clusters/one/inputs/rolebindings?at=3'],
    [
      `cluster inputs one rolebinding --explain --at ${at(2 * HOUR)}`,
      '/clusters/one/inputs/rolebindings?at=3&explain=true',
    ],
  ]
  await each(documents, async ([line, path]) => {
    const then = await api(path)
    assert.notDeepEqual(then, await api(path.replace(/at=\d+&?/, '')), `${path} has changed since`)
    assert.equal(await output(...words(line), '-o', 'json'), pretty(then), line)
  })
  assert.deepEqual(await names(...words('rolebinding list --selector id=one --at 3')), [
    'rolebindings/admins',
  ])
  assert.deepEqual(await names(...words('applied-set list --at 1')), [])
})

test('a moment is told by --at as it is by --since: how long ago, or a date', async () => {
  const long = new Date(started - 7 * DAY).toISOString().slice(0, 10)
  const found = await each(['2h', '6d', long], (moment) =>
    run(['namespace', 'get', 'team-a', '--at', moment, '-o', 'jsonpath={.labels.team}']),
  )
  assert.deepEqual(
    found.map(({ code, stdout }) => [code, stdout]),
    [
      [0, 'alpha'],
      [0, 'a'],
      [0, 'a'],
    ],
  )
})

test('what does not exist, and what the server does not take, is told by its message with exit code 1', async () => {
  const expected: [args: string[], message: RegExp][] = [
    [['cluster', 'get', 'nosuch'], /^Error: no cluster "nosuch"\n/],
    [['network-policy', 'get', 'a/b'], /^Error: no network policy "a\/b"\n/],
    [['cluster', 'get', 'one', '--at', '0'], /^Error: no cluster "one"\n/],
    [['cluster', 'list', '--at', '99'], /revision 99.*still to come: the newest is 7/],
    [['cluster', 'history', 'nosuch'], /^Error: no cluster "nosuch"\n/],
    [['cluster', 'describe', 'nosuch'], /^Error: no cluster "nosuch"\n/],
    [['show', '99'], /^Error: no revision "99"\n/],
    [
      ['cluster', 'list', '--filter', 'colour=red'],
      /--filter colour: there is no such filter: there are .*environment/,
    ],
    [['cluster', 'list', '--filter', 'environment=moon'], /must be one of dev, qa, uat, prod, not "moon"/],
    [['cluster', 'list', '--selector', 'region ~ eu'], /found "~" \(at position 8\)/],
    [['component', 'list', '--selector', ''], /is empty/],
    [['log', '--type', 'pods'], /known are .*network_policies/],
    [['export', '--selector', 'uses.pods=x'], /known are .*uses\.network_policies/],
  ]
  await each(expected, async ([args, message]) => {
    const { code, stdout, stderr } = await run(args)
    assert.deepEqual({ code, stdout }, { code: 1, stdout: '' }, args.join(' '))
    assert.match(stderr, message)
    assert.match(stderr, /\n {2}HTTP 4\d\d \w+, request id \S+\n/)
  })
})

test('a cluster that does not exist is told once, with no word about connections', async () => {
  const { code, stdout, stderr } = await run(words('cluster inputs nosuch'))
  assert.deepEqual({ code, stdout }, { code: 1, stdout: '' })
  assert.match(stderr, /^Error: no cluster "nosuch"\n {2}HTTP 404 not_found, request id \S+\n$/)
})

test('inputs are what the cluster gets when it polls, of all endpoints or of one', async () => {
  const endpoints = ['namespaces', 'platform-components', 'rolebindings', 'network-policies']
  const polls = await Promise.all(
    endpoints.map((endpoint) => api(`/api/v2/flux/clusters/one.k8s.example.com/${endpoint}`)),
  )
  const [all = '', one, byNoun, byType, human = '', humanOne = '', none = ''] = await each(
    [
      'cluster inputs one -o json',
      'cluster inputs one network-policies -o json',
      'cluster inputs one network-policy -o json',
      'cluster inputs one network_policies -o json',
      'cluster inputs one',
      'cluster inputs one component',
      'cluster inputs two',
    ],
    (line) => output(...words(line)),
  )
  const parsed = JSON.parse(all)
  assert.deepEqual(Object.keys(parsed).toSorted(), endpoints.toSorted())
  for (const [i, endpoint] of endpoints.entries()) {
    assert.deepEqual(parsed[endpoint].inputs, polls[i].inputs)
    assert.match(human, new RegExp(`^${endpoint}\nID `, 'm'))
    assert.match(none, new RegExp(`^${endpoint}\n\\(none\\)\n`, 'm'))
  }
  assert.deepEqual(JSON.parse(one ?? '').inputs, polls[3].inputs)
  assert.equal(byNoun, one)
  assert.equal(byType, one)
  assert.match(humanOne, /^ID +TAG +VERSION +PATH .*PATCHES +URL\n/)
  assert.match(humanOne, /^a +v1\.0\.0 .*replicas=3 /m)
  assert.match(humanOne, /^b +v2\.0\.0 /m)
  const { code, stdout, stderr } = await run(words('cluster inputs one pods'))
  assert.deepEqual({ code, stdout }, { code: 2, stdout: '' })
  for (const endpoint of endpoints) assert.ok(stderr.includes(endpoint))
})

test('--explain says of each field where it comes from and who set it', async () => {
  const [table = '', json = ''] = await each(
    ['cluster inputs one component --explain', 'cluster inputs one --explain -o json'],
    (line) => output(...words(line)),
  )
  const rows = linesOf(table).map((line) => line.split(/ {2,}/))
  assert.deepEqual(rows[0], ['INPUT', 'FIELD', 'VALUE', 'SOURCE', 'REVISION', 'ACTOR', 'MESSAGE'])
  const row = (input: string, field: string) => rows.find((each) => each[0] === input && each[1] === field)
  assert.deepEqual(row('a', '/patches/replicas'), ['a', '/patches/replicas', '3', 'patch', '4', 'writer'])
  assert.deepEqual(row('b', '/source/oci_tag'), [
    'b',
    '/source/oci_tag',
    'v2.0.0',
    'override',
    '1',
    'seed',
    'Seed file',
  ])
  assert.equal(row('b', '/depends_on')?.[2], '["a"]')
  for (const [endpoint, explained] of Object.entries(JSON.parse(json))) {
    assert.deepEqual(explained, await api(`/clusters/one/inputs/${endpoint}?explain=true`))
  }
})

test('describe puts a cluster on one screen: what it is, what it gets, what changed', async () => {
  const [human = '', json = '', bare = ''] = await each(
    ['cluster describe one', 'cluster describe one -o json', 'cluster describe two'],
    (line) => output(...words(line)),
  )
  for (const line of [
    /^id: +one$/,
    /^cluster dns: +one\.k8s\.example\.com$/,
    /^labels: +region=eu,app\.kubernetes\.io\/name=shop$/,
    /^platform components$/,
    /^b +override: oci_tag .* v2\.0\.0 /,
    /^ {2}a: replicas=3$/,
    /^web +catalog +team-a /,
    /^4 .* writer .*patch clusters\/one$/,
  ]) {
    assert.ok(
      human.split('\n').some((each) => line.test(each)),
      `${line} in\n${human}`,
    )
  }
  const { cluster, inputs, revisions } = JSON.parse(json)
  assert.deepEqual(cluster, await api('/clusters/one'))
  assert.deepEqual(inputs.rolebindings, await api('/clusters/one/inputs/rolebindings?explain=true'))
  assert.deepEqual(revisions, await api('/revisions?cluster=one&limit=5'))
  assert.match(bare, /^platform components: none$/m)
})

test('the log is searched by who, what, when and which words', async () => {
  const time = (ago: number) => new Date(started - ago).toISOString()
  const offset = `${time(4 * HOUR).slice(0, 19)}+00:00`
  const date = time(7 * DAY).slice(0, 10)
  const expected: Record<string, number[]> = {
    log: [7, 6, 5, 4, 3, 2, 1],
    'log --actor seed': [1],
    'log --actor writer --limit 2 --quiet': [7, 6],
    'log --actor nobody': [],
    'log --cluster one': [4, 3, 1],
    'log --cluster three': [5, 1],
    'log --type applied_sets': [7, 6, 2],
    'log --type network_policies': [1],
    'log --id team-a': [3, 1],
    'log --type clusters --id one': [4, 1],
    'log --type clusters --id team-a': [],
    'log --since 2h': [7, 6, 5, 4],
    'log --since 40m': [7, 6, 5],
    'log --since 3d': [7, 6, 5, 4, 3],
    'log --since 1w': [7, 6, 5, 4, 3, 2],
    [`log --since ${date}`]: [7, 6, 5, 4, 3, 2],
    [`log --since ${time(4 * HOUR)}`]: [7, 6, 5, 4, 3],
    [`log --since ${offset}`]: [7, 6, 5, 4, 3],
    'log --until 2h': [3, 2, 1],
    [`log --until ${date}`]: [1],
    'log --since 6d --until 2h': [3, 2],
    'log --grep INC-4711': [2],
    'log --grep namespaces/team-b': [5],
    'log --grep nothing-like-that': [],
    'log --cluster one --since 2h --actor writer': [4],
    'cluster history one': [4, 1],
    'cluster history one --limit 1 --quiet': [4],
  }
  const found = await each(Object.keys(expected), async (line) => {
    const listed = await names(...words(line))
    return [line, listed.map((name) => Number(name.replace(/^revisions\//, '')))] as const
  })
  assert.deepEqual(Object.fromEntries(found), expected)
})

test('the log is a table with the newest first, and says when there is more', async () => {
  const [table = '', headless = ''] = await each(['log --limit 3 --quiet', 'log --no-headers'], (line) =>
    output(...words(line)),
  )
  assert.match(table, /^REVISION +TIME +ACTOR +CLUSTERS +MESSAGE +OPERATION\n7 /)
  assert.equal(linesOf(headless).length, 7)
  assert.match(
    headless,
    /^2 +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ +writer +0 +INC-4711 first set +create applied_sets\/base$/m,
  )
  const [some, all] = await each(['log --limit 3', 'log --limit 8'], (line) => run(words(line)))
  assert.equal(some?.stderr, 'the newest 3; --limit shows more\n')
  assert.equal(all?.stderr, '')
})

test('the log does not promise more where there is no more', async () => {
  const { stdout, stderr } = await run(words('log --no-headers --limit 7'))
  assert.deepEqual([linesOf(stdout).length, stderr], [7, ''])
})

test('the log is read beyond a page', async () => {
  const { code, stdout } = await run(words('log --limit 100000 -o name'), { url: large.url })
  assert.equal(code, 0)
  const revisions = linesOf(stdout).map((name) => Number(name.split('/')[1]))
  const expected = Array.from({ length: LARGE.revisions }, (_, i) => LARGE.revisions - i)
  assert.deepEqual(revisions, expected)
})

test('a moment that is none is refused with what it may look like', async () => {
  const moments = ['soon', '2x', '1.5h', '2026-02-30', '2026-01-31T25:00:00Z', '2026-01-31 12', '']
  await each(moments, async (moment) => {
    const { code, stdout, stderr } = await run(['log', '--since', moment])
    assert.deepEqual({ code, stdout }, { code: 2, stdout: '' }, `${moment}: ${stderr}`)
    assert.match(
      stderr,
      /^Error: --since must be like 2h, 1h30m, 3d, yesterday, 2026-01-31, .* \(UTC without a zone\), not "/,
    )
  })
})

test('show tells who did what to which documents, and what it meant for clusters', async () => {
  const [fields = '', list = ''] = await each(['show 3', 'show 4'], (line) => output(...words(line)))
  const { hash, request_id } = await api('/revisions/3')
  for (const part of [
    /^Revision: +3$/m,
    /^Actor: +writer$/m,
    /^From: +127\.0\.0\.1$/m,
    /^Message: +rename the team$/m,
    /^Operation: +patch namespaces\/team-a$/m,
    new RegExp(`^Request id: +${request_id}$`, 'm'),
    new RegExp(`^Hash: +${hash}$`, 'm'),
    /^~ namespaces\/team-a\n {4}\/labels\/team: "a" → "alpha"$/m,
    /^1 cluster receives something else: dev 1 — 1 another team of team-a\n {2}namespaces of one \(dev\)\n {4}~ team-a\n/m,
  ]) {
    assert.match(fields, part)
  }
  assert.match(list, /^ {4}\/patches\/a\/replicas: "2" → "3"$/m)
  assert.match(list, /^ {4}\+ viewers$/m)
  const wrong = await each(['x', '-1', '1.5', ''], (revision) => run(['show', revision]))
  assert.deepEqual(
    wrong.map(({ code, stdout }) => [code, stdout]),
    Array(4).fill([2, '']),
  )
})

test('status says which server it is and what it holds, and verify that its log is whole', async () => {
  const [status = '', json = '', verified = '', revision] = await each(
    ['status', 'status -o json', 'verify', 'status -o jsonpath={.revision}'],
    (line) => output(...words(line)),
  )
  const { documents, fleet, ...rest } = JSON.parse(json)
  assert.equal(fleet.total, 3)
  assert.deepEqual(rest, {
    server: `${service.url}/`,
    version: 'test',
    status: 'ready',
    mode: 'crud',
    revision: 7,
  })
  assert.deepEqual(documents, {
    applied_sets: 1,
    clusters: 3,
    freezes: 0,
    namespaces: 2,
    platform_components: 4,
    rolebindings: 2,
    network_policies: 2,
    strategies: 0,
  })
  assert.match(status, /^Server: +http:\/\/127\.0\.0\.1:\d+\/$/m)
  assert.match(status, /^network_policies: +2$/m)
  assert.equal(verified, 'The log is whole: 7 revisions, 14 documents.\n')
  assert.equal(revision, '7')
})

test('watch prints each revision once, the oldest first, one on a line', async () => {
  const known = await api('/revisions')
  const [json, quiet, human, template, none] = await each(
    [
      'watch --since 2 --count 3 -o json',
      'watch --since 0 --count 1 --quiet -o name',
      'watch --since 1 --count 1',
      'watch --since 5 --count 2 -o jsonpath={.revision}:{.operation}',
      'watch --count 0',
    ],
    (line) => run(words(line)),
  )
  const lines = linesOf(json?.stdout ?? '').map((line) => JSON.parse(line))
  assert.deepEqual(lines, known.slice(2, 5).toReversed())
  assert.equal(json?.stderr, `watching ${service.url}/ after revision 2\n`)
  assert.deepEqual(quiet, { code: 0, stdout: 'revisions/1\n', stderr: '' })
  assert.match(
    human?.stdout ?? '',
    /^REVISION +TIME +ACTOR +CLUSTERS +MESSAGE +OPERATION\n2 +\S+Z +writer +0 +INC-4711 first set +create applied_sets\/base\n$/,
  )
  assert.deepEqual(linesOf(template?.stdout ?? ''), [
    '6:patch applied_sets/base',
    '7:patch applied_sets/base',
  ])
  assert.deepEqual([none?.code, none?.stdout], [0, ''])
})

test('watch catches up over many pages', async () => {
  const { code, stdout } = await run(words(`watch --since 0 --count ${LARGE.revisions} -o name`), {
    url: large.url,
  })
  assert.equal(code, 0)
  assert.deepEqual(
    linesOf(stdout),
    Array.from({ length: LARGE.revisions }, (_, i) => `revisions/${i + 1}`),
  )
})

test('watch shows what happens meanwhile, until it is interrupted', async (t) => {
  const own = await startService()
  t.after(() => own.stop())
  const child = spawn(process.execPath, [CLI, ...words('watch -o name')], {
    env: cliEnv({ url: own.url }),
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  const until = async (seen: () => boolean): Promise<void> => {
    for (let tries = 0; !seen() && tries < 200; tries++) await sleep(25)
  }
  const closed = once(child, 'close')
  await until(() => stderr.includes('after revision 1'))
  await own.call('PATCH', '/namespaces/team-b', { body: { labels: { seen: 'first' } } })
  await until(() => stdout.includes('revisions/2'))
  await own.call('PATCH', '/namespaces/team-b', { body: { labels: { seen: 'second' } } })
  await until(() => stdout.includes('revisions/3'))
  child.kill('SIGINT')
  const [code, signal] = await closed
  assert.equal(stdout, 'revisions/2\nrevisions/3\n')
  assert.equal(stderr, `watching ${own.url}/ after revision 1\n`)
  assert.ok(signal === 'SIGINT' || code === 130 || code === 0, `ended with ${code} ${signal}`)
})

/** What an export of these documents holds. */
async function typed(ids: Readonly<Record<string, readonly string[]>>, at = ''): Promise<unknown[]> {
  const lists = await Promise.all(
    Object.entries(ids).map(async ([type, wanted]) =>
      (await api(`/${type}${at}`))
        .filter(({ id }: { id: string }) => wanted.includes(id))
        .map((document: object) => ({ type, ...document })),
    ),
  )
  return lists.flat()
}

const byKey = (a: { type: string; id: string }, b: { type: string; id: string }): number =>
  `${a.type}/${a.id}` < `${b.type}/${b.id}` ? -1 : 1

test('an export holds every document but the bookkeeping, definitions before clusters', async () => {
  const [yaml = '', json = '', listed = ''] = await each(
    ['export', 'export -o json', 'export -o name'],
    (line) => output(...words(line)),
  )
  const documents = JSON.parse(json)
  const expected = await typed({
    namespaces: ['team-a', 'team-b'],
    platform_components: ['a', 'b', 'c', 'd'],
    rolebindings: ['admins', 'viewers'],
    network_policies: ['db', 'web'],
    clusters: ['one', 'two', 'three'],
  })
  assert.equal(expected.length, 13)
  assert.deepEqual(documents.toSorted(byKey), (expected as typeof documents).toSorted(byKey))
  assert.deepEqual(
    documents.slice(-3).map(({ type }: { type: string }) => type),
    Array(3).fill('clusters'),
  )
  assert.deepEqual(
    parseAllDocuments(yaml).map((document) => document.toJS()),
    documents,
  )
  assert.deepEqual(
    linesOf(listed),
    documents.map(({ type, id }: { type: string; id: string }) => `${type}/${id}`),
  )
})

test('an export of some clusters holds all that they use, and what that depends on', async () => {
  const [three, one, past, none, noneYaml] = await each(
    [
      'export --selector id=three -o name',
      'export -l environment=dev -o name',
      'export -l environment=dev --at 3 -o json',
      'export -l id=nobody -o json',
      'export -l id=nobody',
    ],
    (line) => output(...words(line)),
  )
  assert.deepEqual(linesOf(three ?? '').toSorted(), [
    'clusters/three',
    'namespaces/team-b',
    'platform_components/a',
    'platform_components/b',
    'platform_components/c',
  ])
  assert.deepEqual(linesOf(one ?? '').toSorted(), [
    'clusters/one',
    'namespaces/team-a',
    'network_policies/web',
    'platform_components/a',
    'platform_components/b',
    'rolebindings/admins',
    'rolebindings/viewers',
  ])
  const expected = await typed(
    {
      namespaces: ['team-a'],
      platform_components: ['a', 'b'],
      rolebindings: ['admins'],
      network_policies: ['web'],
      clusters: ['one'],
    },
    '?at=3',
  )
  assert.deepEqual(JSON.parse(past ?? '').toSorted(byKey), (expected as never[]).toSorted(byKey))
  assert.deepEqual([none, noneYaml], ['[]\n', ''])
})

test('an export leaves nothing out when the server has learned a type since it was last asked', async (t) => {
  const proxy = await standBefore(t, large)
  const early = await run(words('status -o json'), { url: proxy.url })
  assert.equal(Object.hasOwn(JSON.parse(early.stdout).documents, 'network_policies'), false)
  proxy.leadTo(service)
  const { stdout } = await run(words('export -o name'), { url: proxy.url })
  assert.ok(linesOf(stdout).includes('network_policies/web'), stdout)
})

test('a noun that the server has learned since it was last asked is found', async (t) => {
  const proxy = await standBefore(t, large)
  assert.equal((await run(['verify'], { url: proxy.url })).code, 0)
  assert.equal((await run(words('namespace get n-0000'), { url: proxy.url })).code, 0)
  proxy.leadTo(service)
  const { code, stdout } = await run(words('network-policy list -o name'), { url: proxy.url })
  assert.deepEqual({ code, stdout }, { code: 0, stdout: 'network_policies/db\nnetwork_policies/web\n' })
})

test('jsonpath templates pick what a script needs', async () => {
  const expected: [args: string[], template: string, text: string][] = [
    [['cluster', 'list'], '{range [*]}{.id}{"\\n"}{end}', 'one\nthree\ntwo\n'],
    [['cluster', 'list'], '{[?(@.environment=="qa")].cluster_dns}', 'three.k8s.example.com'],
    [['cluster', 'get', 'one'], '{.platform_components[*].id}', 'a b'],
    [['cluster', 'get', 'one'], "{.labels['app\\.kubernetes\\.io/name']}", 'shop'],
    [['cluster', 'inputs', 'one', 'component'], '{.inputs[?(@.id=="a")].patches.replicas}', '3'],
    [['log'], '{[0].revision} {[-1:].operation}', '7 load the seed file'],
    [['show', '4'], '{.impact.clusters}', '1'],
    [['verify'], '{.verified}', 'true'],
    [['network-policy', 'get', 'web'], '.ingress_rules[0].port', '80'],
  ]
  await each(expected, async ([args, template, text]) => {
    assert.equal(await output(...args, '-o', `jsonpath=${template}`), text)
  })
})

const AWAY = 'http://127.0.0.1:1'

test('a format that there is not, or that a command cannot have, is refused before the server is asked', async () => {
  const wrong: [line: string, format: string][] = [
    ...['bogus', '', 'JSON', 'jsonpath', 'jsonpath=', 'jsonpath={.id', 'custom-columns=ID'].map(
      (format): [string, string] => ['cluster list', format],
    ),
    ['watch', 'yaml'],
    ['export', 'jsonpath={.id}'],
    ['status', 'name'],
    ['verify', 'name'],
    // A change must not have been made when its answer cannot be printed.
    ['namespace create new', 'jsonpath={.id'],
  ]
  const ended = await each(wrong, async ([line, format]) => {
    const { code, stdout, stderr } = await run([...words(line), '-o', format], { url: AWAY })
    return [`${line} -o '${format}'`, { code, stdout, isTold: stderr.startsWith('Error: ') }] as const
  })
  const refused = wrong.map(([line, format]) => [
    `${line} -o '${format}'`,
    { code: 2, stdout: '', isTold: true },
  ])
  assert.deepEqual(Object.fromEntries(ended), Object.fromEntries(refused))
})

test('whoever reads only the beginning gets it, and no complaint', async () => {
  const line = `set -o pipefail; "${process.execPath}" "${CLI}" export | head -n 2`
  const child = spawn('bash', ['-c', line], { env: cliEnv({ url: large.url }) })
  const [stdout, stderr] = await Promise.all([child.stdout.toArray(), child.stderr.toArray()])
  if (child.exitCode === null) await once(child, 'exit')
  assert.equal(Buffer.concat(stderr).toString(), '')
  assert.equal(Buffer.concat(stdout).toString(), '---\ntype: namespaces\n')
  assert.equal(child.exitCode, 0)
})

// biome-ignore lint/suspicious/noControlCharactersInRegex: the codes of terminals
const COLOURS = /\u001b\[\d+m/g

// biome-ignore lint/suspicious/noControlCharactersInRegex: what it draws over
const DRAWN_OVER = /[^\n]*\r\u001b\[K/g

async function screenOf(line: string, options: TerminalOptions = {}): Promise<string> {
  const { code, screen } = await onTerminal(words(line), { url: service.url, ...options })
  assert.equal(code, 0, `${line}\n${screen}`)
  // On a slow machine a bar was drawn, and the line after it drawn over it.
  return screen.replaceAll(DRAWN_OVER, '')
}

test('colours are shown on a terminal, and nowhere else or when they are not wanted', async () => {
  const coloured = await screenOf('cluster describe one')
  assert.match(coloured, COLOURS)
  const [unwanted, dumb, piped] = await Promise.all([
    screenOf('cluster describe one', { env: { NO_COLOR: '1' } }),
    screenOf('cluster describe one', { env: { TERM: 'dumb' } }),
    output('cluster', 'describe', 'one'),
  ])
  for (const plain of [unwanted, dumb, piped]) assert.doesNotMatch(plain, COLOURS)
  assert.equal(coloured.replaceAll(COLOURS, ''), unwanted)
  const { screen } = await onTerminal(['cluster', 'get', 'nosuch'], { url: service.url })
  assert.ok(screen.startsWith('\u001b[31mError:\u001b[39m no cluster "nosuch"'), screen)
})

test('no line of a table is longer than the terminal is wide, however narrow', async () => {
  const lines = [
    'cluster list',
    'component list',
    'network-policy list',
    'log',
    'cluster inputs one',
    'cluster inputs one component --explain',
    'cluster describe one',
    'status',
  ]
  const screens = [20, 40, 60].flatMap((columns) =>
    lines
      .filter((_line, i) => columns === 20 || i % 2 === (columns === 40 ? 0 : 1))
      .map((line) => ({ line, columns })),
  )
  await each(screens, async ({ line, columns }) => {
    const screen = await screenOf(line, { columns })
    if (columns === 20) assert.notEqual(screen, await screenOf(line, { columns: 250 }), `${line} is fitted`)
    for (const each of screen.replaceAll(COLOURS, '').split('\n')) {
      assert.ok(widthOf(each) <= columns, `${line} at ${columns}: ${each}`)
    }
  })
  const wide = await screenOf('cluster list -o wide', { columns: 40 })
  assert.ok(wide.split('\n').some((line) => line.length > 100))
  assert.doesNotMatch(wide, /…/)
})

/** Where these commands let what others wrote act upon the terminal. */
async function actingOn(lines: readonly string[]): Promise<string[]> {
  const acting = await each(lines, async (line) => {
    const screen = await screenOf(`${line} --quiet`, { columns: 250, env: { NO_COLOR: '1' } })
    assert.match(screen, /evil|key/, `${line} shows it`)
    const found = /[^\P{Cc}\n]|[\u202a-\u202e\u2066-\u2069]/u.exec(screen)
    return found ? [`${line}: ${JSON.stringify(screen.slice(found.index - 10, found.index + 10))}`] : []
  })
  return acting.flat()
}

test('what others wrote cannot act upon the terminal', async () => {
  const lines = [
    'log',
    'show 5',
    'show 7',
    'namespace list',
    'namespace get team-b -o wide',
    'namespace history team-b',
    'applied-set get base',
    'cluster describe three',
    'cluster inputs three namespaces',
    'cluster inputs three namespaces --explain',
    'watch --since 4 --count 3',
  ]
  assert.deepEqual(await actingOn(lines), [])
})

test('documents on a terminal cannot act upon it either', async () => {
  const lines = ['show 5 -o json', 'show 5 -o yaml', 'export', 'watch --since 4 --count 1 -o json']
  assert.deepEqual(await actingOn(lines), [])
})

const COMMAND_GROUPS = [
  'Commands:',
  'Resources:',
  'Changing the fleet:',
  'Looking at the fleet:',
  'Setting up:',
]

/** Names of the commands that a help lists. */
function commandsIn(help: string): string[] {
  let inCommands = false
  return help.split('\n').flatMap((line) => {
    if (/^\S/.test(line)) inCommands = COMMAND_GROUPS.includes(line)
    const name = inCommands ? /^ {2}([a-z][\w-]*)/.exec(line)?.[1] : undefined
    return name === undefined || name === 'help' ? [] : [name]
  })
}

/** The help of a command and of all below it, by their words. */
async function walkHelp(path: readonly string[]): Promise<[path: string, help: string][]> {
  const { code, stdout, stderr } = await run([...path, '--help'])
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' }, path.join(' '))
  const below = await each(commandsIn(stdout), (name) => walkHelp([...path, name]))
  return [[path.join(' '), stdout], ...below.flat()]
}

test('every command has help with its usage, and with examples that use flags that exist', async () => {
  const helps = new Map(await walkHelp([]))
  const verbs = ['list', 'get', 'history', 'create', 'update', 'edit', 'delete']
  const given = ['assign', 'unassign']
  const expected = [
    ...NOUNS.flatMap(({ noun }) => [noun, ...verbs.map((verb) => `${noun} ${verb}`)]),
    ...['component', 'namespace', 'rolebinding', 'network-policy'].flatMap((noun) =>
      given.map((verb) => `${noun} ${verb}`),
    ),
    ...['component patch', 'cluster describe', 'cluster inputs', 'cluster restore'],
    ...['apply', 'diff', 'batch', 'revert', 'rollback', 'status', 'log', 'show', 'watch', 'export', 'verify'],
    ...['completion', 'config', 'demo', 'demo add-namespace', 'demo patch-component', 'demo flux-namespaces'],
    ...['set-context', 'use-context', 'delete-context', 'get-contexts', 'view'].map(
      (name) => `config ${name}`,
    ),
    ...['login', 'logout', 'token'],
    ...['create', 'list', 'rotate', 'revoke', 'whoami'].map((name) => `token ${name}`),
  ]
  const missing = expected.filter((path) => !helps.has(path))
  assert.deepEqual(missing, [])
  for (const [path, help] of helps) {
    const [usage = ''] = help.split('\n')
    assert.ok(usage.startsWith(`Usage: ${[PROGRAM, ...words(path)].join(' ')}`), `${path}: ${usage}`)
    assert.ok(help.endsWith('\n'), path)
    const isLeaf = commandsIn(help).length === 0
    if (isLeaf) assert.match(help, /\nExamples:\n {2}\S/, path)
  }
  for (const [path, help] of helps) {
    for (const { command, flags } of examplesIn(help)) {
      const own = [...helps.keys()].filter((each) => each !== '' && `${command} `.startsWith(`${each} `))
      const about = own.toSorted((a, b) => b.length - a.length)[0]
      assert.ok(about, `${path}: the example "${command}" is a command`)
      for (const flag of flags) {
        const known = [helps.get(about), helps.get('')].some((each) => each?.includes(flag))
        assert.ok(known, `${path}: the example "${command}" uses ${flag}, which ${about} does not have`)
      }
    }
  }
})

/** The runs of the program that examples show: their words up to the first flag, and the flags. */
function examplesIn(help: string): { command: string; flags: string[] }[] {
  const examples = help.split('\nExamples:\n')[1] ?? ''
  return examples.split(/\n|\|/).flatMap((line) => {
    const at = line.indexOf(`${PROGRAM} `)
    if (at < 0) return []
    const rest = line.slice(at + PROGRAM.length + 1).replaceAll(/'[^']*'/g, 'TEXT')
    const bare = rest.replace(/^--context \S+ /, '')
    const command = words(bare).filter((word) => !word.startsWith('-'))
    return [{ command: command.join(' '), flags: rest.match(/--[a-z-]+/g) ?? [] }]
  })
}

test('help of a command is what its --help shows', async () => {
  const paths = ['', 'cluster', 'cluster list', 'network-policy get', 'config set-context', 'log']
  await each(paths, async (path) => {
    const [help, flag] = await Promise.all([output('help', ...words(path)), output(...words(path), '-h')])
    assert.equal(help, flag, path)
  })
  const { code, stdout, stderr } = await run(['cluster'])
  assert.deepEqual({ code, stdout }, { code: 2, stdout: '' })
  assert.match(stderr, /^Usage: flux-resourceset-cli cluster/)
})

test('help for what there is not says so', async () => {
  const [noun, verb] = await each(['help clustr', 'help cluster lst'], (line) => run(words(line)))
  assert.deepEqual([noun?.code, noun?.stdout, verb?.code, verb?.stdout], [2, '', 2, ''])
  assert.match(noun?.stderr ?? '', /unknown command 'clustr'[\s\S]*Did you mean .*cluster/)
  assert.match(verb?.stderr ?? '', /unknown command 'lst'[\s\S]*Did you mean .*list/)
})

test('--help fits the terminal, and needs no server', async () => {
  for (const line of (await screenOf('cluster list --help')).split('Examples:')[0]?.split('\n') ?? []) {
    assert.ok(line.length <= 80, line)
  }
  const { code, stdout, stderr } = await run(words('cluster list --help'), { url: AWAY })
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' })
  assert.match(stdout, /^ {2}-l, --selector /m)
})

test('--version prints the version of the package', async () => {
  const found = await each(['--version', '-V', 'cluster list --version'], (line) =>
    run(words(line), { url: AWAY }),
  )
  assert.deepEqual(found, Array(3).fill({ code: 0, stdout: `${version}\n`, stderr: '' }))
})

test('wrong use ends with exit code 2, what was meant, and the help to read', async () => {
  const expected: [line: string, message: string, suggestion: string, help: string][] = [
    ['clustr list', "unknown command 'clustr'", 'cluster', ''],
    ['lgo', "unknown command 'lgo'", 'log', ''],
    ['cluster lst', "unknown command 'lst'", 'list', 'cluster'],
    ['network-policy gett web', "unknown command 'gett'", 'get', 'network-policy'],
    ['config set-contxt x', "unknown command 'set-contxt'", 'set-context', 'config'],
    ['demo add-namspace x', "unknown command 'add-namspace'", 'add-namespace', 'demo'],
    ['cluster list --selectr x', "unknown option '--selectr'", '--selector', 'cluster list'],
    ['cluster list --outptu json', "unknown option '--outptu'", '--output', 'cluster list'],
    ['log --sinc 2h', "unknown option '--sinc'", '--since', 'log'],
    ['applied-set list --selector x', "unknown option '--selector'", '', 'applied-set list'],
    ['cluster get', "missing required argument 'id'", '', 'cluster get'],
    ['completion', "missing required argument 'shell'", '', 'completion'],
    ['config use-context', "missing required argument 'name'", '', 'config use-context'],
    ['cluster inputs one namespaces two', "too many arguments for 'inputs'", '', 'cluster inputs'],
    ['status now', "too many arguments for 'status'", '', 'status'],
    ['cluster list --limit some', "option '--limit <number>' argument 'some' is invalid", '', 'cluster list'],
    ['cluster list --limit=-1', "option '--limit <number>' argument '-1' is invalid", '', 'cluster list'],
    ['watch --count some', "option '--count <number>' argument 'some' is invalid", '', 'watch'],
    ['log --limit', "option '-n, --limit <number>' argument missing", '', 'log'],
  ]
  await each(expected, async ([line, message, suggestion, help]) => {
    const { code, stdout, stderr } = await run(words(line))
    assert.deepEqual({ code, stdout }, { code: 2, stdout: '' }, line)
    assert.ok(stderr.startsWith(`Error: ${message}`), `${line}: ${stderr}`)
    if (suggestion) assert.match(stderr, new RegExp(`\\(Did you mean .*${suggestion}.*\\?\\)`))
    const hint = [PROGRAM, ...words(help), '--help'].join(' ')
    assert.ok(stderr.endsWith(`Hint: see ${hint}\n`), `${line}: ${stderr}`)
  })
})

/** What could come next on a command line; the last word is the one to complete. */
async function candidates(line: string, options: CliOptions = {}): Promise<string[]> {
  const { code, stdout, stderr } = await run(['__complete', '--', ...line.split(' ')], options)
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' }, line)
  return linesOf(stdout).map((candidate) => candidate.split('\t')[0] ?? '')
}

test('completion knows commands, flags, values, endpoints and the ids of the server', async () => {
  const exact: Record<string, string[]> = {
    clu: ['cluster'],
    net: ['network-policy'],
    'cluster de': ['describe', 'delete'],
    'cluster get ': ['one', 'three', 'two'],
    'cluster get t': ['three', 'two'],
    'clusters get o': ['one'],
    'cluster get one ': ['three', 'two'],
    'component get ': ['a', 'b', 'c', 'd'],
    'network-policy history w': ['web'],
    'applied-set get ': ['base'],
    '-o json namespace get ': ['team-a', 'team-b'],
    'namespace --no-headers get team-b': ['team-b'],
    'cluster inputs o': ['one'],
    'cluster inputs one p': ['platform-components'],
    'cluster list --sel': ['--selector'],
    'cluster list --no': ['--no-headers'],
    'cluster list -o j': ['json', 'jsonpath='],
    'cluster list --output y': ['yaml'],
    'log --cluster th': ['three'],
    'log --type net': ['network_policies'],
    'component assign a --cluster tw': ['two'],
    'cluster create --environment ': ['dev', 'qa', 'uat', 'prod'],
    'completion ': ['bash', 'zsh', 'fish', 'powershell'],
    'config use': ['use-context'],
    'demo patch-component one ': ['a', 'b', 'c', 'd'],
    'cluster list --he': ['--help'],
  }
  const found = await each(
    Object.keys(exact),
    async (line) => [line, (await candidates(line)).toSorted()] as const,
  )
  const sorted = Object.entries(exact).map(([line, expected]) => [line, expected.toSorted()])
  assert.deepEqual(Object.fromEntries(found), Object.fromEntries(sorted))
  const everything = await candidates('')
  for (const name of ['cluster', 'network-policy', 'apply', 'log', 'config']) {
    assert.ok(everything.includes(name), name)
  }
  assert.ok(!everything.some((name) => name.startsWith('__')))
})

test('completion of help goes on as that of the command itself', async () => {
  assert.deepEqual(await candidates('hel'), ['help'])
  assert.deepEqual(await candidates('help cluster li'), ['list'])
})

test('completion knows contexts, and asks the server that the command line names', async (t) => {
  const env = { XDG_CONFIG_HOME: temporaryFolder(t) }
  const lab = words(`config set-context lab --api-url ${service.url} --api-token ${READ_TOKEN}`)
  assert.equal((await run(lab, { env })).code, 0)
  const other = { url: large.url, env }
  assert.deepEqual(await candidates('config use-context l', other), ['lab'])
  assert.deepEqual(await candidates('status --context ', other), ['lab'])
  assert.deepEqual(await candidates('namespace --context lab get team', other), ['team-a', 'team-b'])
  assert.deepEqual(await candidates(`--api-url ${service.url} network-policy get w`, other), ['web'])
})

test('completion needs no server for commands and flags, and does not wait for one', async (t) => {
  const silent = createRawServer(() => {}).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.after(() => silent.close())
  const mute = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
  // Ended from outside before the time that a command waits for an answer is over.
  const timeout = 40_000
  assert.deepEqual(
    await Promise.all([
      candidates('cluster ge', { url: AWAY, timeout }),
      candidates('log --si', { url: AWAY, timeout }),
      candidates('cluster get ', { url: AWAY, timeout }),
      candidates('cluster ge', { url: mute, timeout }),
      candidates('cluster get ', { url: mute, timeout }),
    ]),
    [['get'], ['--since'], [], ['get'], []],
  )
})

/** A folder with the program in it, under its own name. */
function programFolder(t: { after(clean: () => void): void }): string {
  const folder = temporaryFolder(t)
  const path = join(folder, PROGRAM)
  writeFileSync(path, `#!/bin/sh\nexec "${process.execPath}" "${CLI}" "$@"\n`)
  chmodSync(path, 0o755)
  return folder
}

test('there is completion for three shells, and for no other', async () => {
  const [bash, zsh, fish, other] = await each(['bash', 'zsh', 'fish', 'tcsh'], (shell) =>
    run(['completion', shell], { url: AWAY }),
  )
  assert.match(bash?.stdout ?? '', /^complete .*-F \S+ flux-resourceset-cli frs$/m)
  assert.match(zsh?.stdout ?? '', /^#compdef flux-resourceset-cli frs\n/)
  assert.match(fish?.stdout ?? '', /^for name in flux-resourceset-cli frs$/m)
  for (const script of [bash, zsh, fish]) assert.deepEqual([script?.code, script?.stderr], [0, ''])
  assert.deepEqual([other?.code, other?.stdout], [2, ''])
  assert.match(other?.stderr ?? '', /bash, zsh, fish/)
})

test('the script for bash completes what is typed', async (t) => {
  const folder = programFolder(t)
  const typed = [
    'clus',
    'cluster get t',
    'cluster inputs one ',
    'cluster list -o js',
    'log --gr',
    'cluster get zzz',
  ]
  const asked = typed.map((line) => {
    const given = [PROGRAM, ...line.split(' ')].map((word) => `'${word}'`)
    return `COMP_WORDS=(${given.join(' ')}); COMP_CWORD=${given.length - 1}; "$f"; echo "\${COMPREPLY[*]}"`
  })
  const script = [
    'source <(flux-resourceset-cli completion bash)',
    `f=$(complete -p ${PROGRAM} | sed 's/.* -F //; s/ .*//')`,
    ...asked,
  ].join('\n')
  const env = cliEnv({ url: service.url })
  const child = spawn('bash', ['--norc', '-c', script], {
    env: { ...env, PATH: `${folder}:${env.PATH}` },
    cwd: folder,
  })
  const [stdout, stderr] = await Promise.all([child.stdout.toArray(), child.stderr.toArray()])
  assert.equal(Buffer.concat(stderr).toString(), '')
  const found = linesOf(Buffer.concat(stdout).toString()).map((line) => line.split(' ').toSorted().join(' '))
  assert.deepEqual(found, [
    'cluster',
    'three two',
    'namespaces network-policies platform-components rolebindings',
    'json jsonpath=',
    '--grep',
    '',
  ])
})

test('a command is completed as itself, not as a folder of that name', async (t) => {
  const folder = programFolder(t)
  for (const name of ['config', 'one']) mkdirSync(join(folder, name))
  const env = cliEnv({ url: service.url })
  const child = spawn('script', ['-qfec', 'bash --norc --noprofile -i', '/dev/null'], {
    env: { ...env, PATH: `${folder}:${env.PATH}`, TERM: 'dumb', PS1: 'READY> ', HISTFILE: '' },
    cwd: folder,
    timeout: 40_000,
  })
  let screen = ''
  child.stdout.on('data', (chunk) => {
    screen += chunk
  })
  const closed = once(child, 'close')
  const until = async (seen: string): Promise<void> => {
    for (let tries = 0; !screen.includes(seen) && tries < 160; tries++) await sleep(25)
    assert.ok(screen.includes(seen), `${JSON.stringify(seen)} in ${JSON.stringify(screen)}`)
  }
  await until('READY> ')
  child.stdin.write(`source <(${PROGRAM} completion bash); echo sour'ced'\n`)
  await until('sourced')
  const complete = async (typed: string, seen: string): Promise<string> => {
    screen = ''
    child.stdin.write(`${PROGRAM} ${typed}\t`)
    await until(seen)
    // What is put behind it comes at once.
    await sleep(100)
    child.stdin.write('\u0015')
    return screen.slice(screen.indexOf(PROGRAM) + PROGRAM.length + 1)
  }
  const found = {
    command: await complete('conf', 'config'),
    id: await complete('cluster get on', 'get one'),
    format: await complete('cluster list -o jsonp', 'jsonpath'),
  }
  child.stdin.write('exit\n')
  await closed
  assert.deepEqual(found, {
    command: 'config ',
    id: 'cluster get one ',
    format: 'cluster list -o jsonpath=',
  })
})
