// The demo on kind, as far as it goes without Docker: its scripts, with programs that only write down how they are called.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { CLI, cli } from './cli-process.ts'
import { type ServiceProcess, spawnService, temporaryFolder } from './service.ts'

const ROOT = join(import.meta.dirname, '..')
const DEMO = join(ROOT, 'examples/kind-demo')
const CONTEXT = 'kind-flux-resourceset-demo'
const ON_CONTEXT = `kubectl --context ${CONTEXT}`

/** The settings and tokens that the demo gives to its API. */
const { configMapGenerator, secretGenerator } = parse(readFileSync(join(DEMO, 'kustomization.yaml'), 'utf8'))
const literalsOf = ([generator]: { literals: string[] }[]): Record<string, string> =>
  Object.fromEntries((generator?.literals ?? []).map((literal) => literal.split(/=(.*)/, 2)))
const settings = literalsOf(configMapGenerator)
const tokens = literalsOf(secretGenerator)

/** The operator of the tests with real programs, without the v that charts do not have. */
const [, operator] =
  /controlplaneio-fluxcd\/flux-operator v(\S+)/.exec(readFileSync(join(ROOT, 'tools/flux/go.mod'), 'utf8')) ??
  []

/** Each program writes its call down, fails when it is told to, and then behaves a little like the real one. */
const PROGRAMS: Readonly<Record<string, string>> = {
  docker: `case "$*" in
    info) test ! -e "$STATE/docker-is-down" ;;
    build*) touch "$STATE/image" ;;
    'image inspect '*) test -e "$STATE/image" ;;
    'image rm '*) rm "$STATE/image" ;;
  esac`,
  kind: `case "$*" in
    'get clusters') if test -e "$STATE/cluster"; then echo flux-resourceset-demo; fi; echo another ;;
    'create cluster'*) touch "$STATE/cluster" ;;
    'delete cluster'*) rm -f "$STATE/cluster" ;;
  esac`,
  kubectl: `case "$*" in
    *' apply -k '*) touch "$STATE/api" ;;
    *' apply -f '*) cp "$5" "$STATE/bundle.yaml" ;;
    *' get deployment '*) if test -e "$STATE/api"; then echo deployment.apps/flux-resourceset; fi ;;
    *' port-forward '*) echo $$ > "$STATE/forward"
      echo "Forwarding from 127.0.0.1:$PORT -> 8080"; echo "Forwarding from [::1]:$PORT -> 8080"; exec sleep 60 ;;
  esac`,
  helm: '',
  npm: `shift 4; exec node ${CLI} "$@"`,
}
const NEEDED = [...Object.keys(PROGRAMS), 'node']
/** What the scripts use of any system. */
const SYSTEM = [
  'awk',
  'bash',
  'cat',
  'cp',
  'dirname',
  'env',
  'grep',
  'mktemp',
  'rm',
  'sed',
  'seq',
  'sleep',
  'touch',
]

function find(program: string): string {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const path = folders.map((folder) => join(folder, program)).find(existsSync)
  assert.ok(path, `${program} is not on the PATH`)
  return path
}

interface Run {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  readonly calls: readonly string[]
}

interface Machine {
  /** Answers with the calls of this run only. */
  run(script: 'up' | 'down', env?: Readonly<Record<string, string>>): Promise<Run>
  readonly state: string
}

/** A machine that has these programs and nothing else. */
function machine(t: TestContext, programs: readonly string[] = NEEDED): Machine {
  const folder = temporaryFolder(t)
  const bin = join(folder, 'bin')
  const state = join(folder, 'state')
  const log = join(folder, 'calls')
  mkdirSync(bin)
  mkdirSync(state)
  for (const name of SYSTEM) symlinkSync(find(name), join(bin, name))
  for (const name of programs) {
    if (name === 'node') symlinkSync(process.execPath, join(bin, name))
    else writeFileSync(join(bin, name), programText(name), { mode: 0o755 })
  }
  return {
    state,
    async run(script, env = {}) {
      writeFileSync(log, '')
      const child = spawn(find('bash'), [join(DEMO, `${script}.sh`)], {
        cwd: folder,
        env: { PATH: bin, HOME: folder, CALLS: log, STATE: state, ...env },
        timeout: 60_000,
      })
      const output = { stdout: '', stderr: '' }
      child.stdout.on('data', (chunk) => {
        output.stdout += chunk
      })
      child.stderr.on('data', (chunk) => {
        output.stderr += chunk
      })
      const [code] = (await once(child, 'close')) as [number | null]
      return { code, ...output, calls: readFileSync(log, 'utf8').split('\n').filter(Boolean) }
    },
  }
}

function programText(name: string): string {
  return `#!${find('bash')}
echo "${name} $*" >> "$CALLS"
if [[ -n \${FAIL:-} && "${name} $*" == *"$FAIL"* ]]; then echo "${name} says no" >&2; exit 7; fi
${PROGRAMS[name]}
`
}

describe('the demo on kind', { timeout: 120_000 }, () => {
  let api: ServiceProcess
  let env: Record<string, string>
  before(async () => {
    assert.equal(settings.SEED_FILE, '/app/data/seed.json', 'the demo fleet, where the image has it')
    api = await spawnService({
      ...tokens,
      ...settings,
      API_MODE: 'crud',
      STORE_BACKEND: 'memory',
      SEED_FILE: join(ROOT, 'data/seed.json'),
    })
    env = { PORT: new URL(api.url).port }
  })
  after(() => api.stop())

  test('what is missing is named, all of it and where to get it, and nothing is run', async (t) => {
    const { code, stderr, calls } = await machine(t, []).run('up')
    assert.equal(code, 2)
    for (const name of NEEDED) assert.match(stderr, new RegExp(`^  ${name}: \\S`, 'm'))
    assert.equal(stderr.match(/^ {2}/gm)?.length, NEEDED.length)
    assert.deepEqual(calls, [])
    const some = await machine(t, ['docker', 'kubectl', 'node', 'npm']).run('up')
    assert.match(some.stderr, /^.*\n {2}kind: https:.*\n {2}helm: https:.*\n$/)
  })

  test('a Docker that does not answer is named beside what is missing', async (t) => {
    const { run, state } = machine(t, ['docker', 'kubectl', 'node', 'npm', 'helm'])
    writeFileSync(join(state, 'docker-is-down'), '')
    const { code, stderr, calls } = await run('up')
    assert.equal(code, 2)
    assert.match(stderr, /^ {2}kind: .*\n {2}docker: it is installed, but does not answer/m)
    assert.deepEqual(calls, ['docker info'])
  })

  test('everything is done in its order, on the cluster of the demo and no other', async (t) => {
    const { run } = machine(t)
    const { code, stdout, stderr, calls } = await run('up', env)
    assert.equal(code, 0, stderr)
    const bundle = calls
      .find((call) => call.includes('apply -f'))
      ?.split(' ')
      .at(-1)
    assert.deepEqual(calls, [
      'docker info',
      'kind get clusters',
      'kind create cluster --name flux-resourceset-demo --wait 3m',
      'docker build --tag flux-resourceset:demo .',
      'kind load docker-image flux-resourceset:demo --name flux-resourceset-demo',
      `helm --kube-context ${CONTEXT} upgrade --install flux-operator oci://ghcr.io/controlplaneio-fluxcd/charts/flux-operator --version ${operator} --namespace flux-system --create-namespace --wait --timeout 5m`,
      `${ON_CONTEXT} -n flux-resourceset get deployment flux-resourceset --ignore-not-found -o name`,
      `${ON_CONTEXT} apply -k examples/kind-demo`,
      `${ON_CONTEXT} -n flux-resourceset rollout status deployment/flux-resourceset --timeout 3m`,
      `${ON_CONTEXT} -n flux-resourceset port-forward service/flux-resourceset-crud :80`,
      'npm run --silent cli -- bootstrap demo-cluster-01 --interval 30s --with-token --token-grace 0s',
      `${ON_CONTEXT} apply -f ${bundle}`,
      `${ON_CONTEXT} -n flux-system wait fluxinstance/flux --for condition=Ready --timeout 5m`,
      `${ON_CONTEXT} -n flux-system wait resourcesetinputprovider -l !resourceset.fluxcd.controlplane.io/name --for condition=Ready --timeout 2m`,
      `${ON_CONTEXT} -n flux-system wait resourceset -l !resourceset.fluxcd.controlplane.io/name --for condition=Ready --timeout 5m`,
      `${ON_CONTEXT} -n flux-system wait helmrelease/podinfo --for condition=Ready --timeout 10m`,
      `${ON_CONTEXT} -n podinfo get pods`,
    ])
    assert.equal(stdout.match(/^==> /gm)?.length, 9)
    assert.ok(!existsSync(bundle ?? ''), 'the bundle, which holds a token, is not left behind')
  })

  test('the cluster is given a bundle with a token of its own, to poll the API inside the cluster', async (t) => {
    const { run, state } = machine(t)
    await run('up', env)
    const documents = parseAllDocuments(readFileSync(join(state, 'bundle.yaml'), 'utf8'))
    const objects = documents.map((document) => document.toJS()).filter(Boolean)
    const kinds = objects.map(({ kind }) => kind)
    for (const kind of ['Namespace', 'FluxInstance', 'ResourceSet']) assert.ok(kinds.includes(kind), kind)
    const secret = objects.find(({ kind }) => kind === 'Secret')
    const token = Buffer.from(secret.data.token, 'base64').toString()
    const { name, role, cluster } = (await api.call('GET', '/whoami', { token })).body
    assert.deepEqual(
      [name, role, cluster],
      ['cluster-demo-cluster-01', 'cluster', 'demo-cluster-01'],
      'good for the polls of this cluster alone',
    )
    const headers = Buffer.from(secret.data.headers, 'base64').toString()
    assert.equal(headers, `Authorization: Bearer ${token}`)
    const providers = objects.filter(
      ({ kind, spec }) => kind === 'ResourceSetInputProvider' && spec.type === 'ExternalService',
    )
    assert.equal(providers.length, 3)
    for (const { metadata, spec } of providers) {
      assert.equal(metadata.annotations['fluxcd.controlplane.io/reconcileEvery'], '30s')
      const path = `api/v2/flux/clusters/demo-cluster-01.k8s.example.com/${metadata.name}`
      assert.equal(spec.url, `${settings.EXTERNAL_URL}/${path}`)
    }
  })

  test('run again, it uses the cluster that is there and starts the new image', async (t) => {
    const { run } = machine(t)
    const first = await run('up', env)
    const second = await run('up', env)
    assert.deepEqual([first.code, second.code], [0, 0])
    const only = (here: Run, there: Run): string[] =>
      here.calls.filter((call) => !there.calls.includes(call) && !call.includes(' apply -f '))
    assert.deepEqual(only(first, second), ['kind create cluster --name flux-resourceset-demo --wait 3m'])
    assert.deepEqual(only(second, first), [
      'kind export kubeconfig --name flux-resourceset-demo',
      `${ON_CONTEXT} -n flux-resourceset rollout restart deployment/flux-resourceset`,
    ])
  })

  for (const [call, step] of [
    ['kind get', 'Start the kind cluster flux-resourceset-demo'],
    ['kind create', 'Start the kind cluster flux-resourceset-demo'],
    ['docker build', 'Build the image flux-resourceset:demo and load it into the cluster'],
    ['kind load', 'Build the image flux-resourceset:demo and load it into the cluster'],
    ['helm', `Install the Flux Operator ${operator}`],
    ['get deployment', 'Start the API with the demo fleet'],
    ['apply -k', 'Start the API with the demo fleet'],
    ['rollout status', 'Start the API with the demo fleet'],
    ['port-forward', 'Let the cluster phone home as demo-cluster-01, every 30 seconds'],
    ['npm', 'Let the cluster phone home as demo-cluster-01, every 30 seconds'],
    ['apply -f', 'Let the cluster phone home as demo-cluster-01, every 30 seconds'],
    ['wait fluxinstance', 'Wait until Flux itself runs'],
    ['wait resourcesetinputprovider', 'Wait until the cluster has polled'],
    ['wait resourceset ', 'Wait until what it was given is applied'],
    ['wait helmrelease', 'Wait for podinfo, which waits for cert-manager and Traefik'],
  ] as const) {
    test(`when "${call.trim()}" fails it goes no further, and names the step`, async (t) => {
      const { code, stderr, calls } = await machine(t).run('up', { ...env, FAIL: call })
      assert.ok(code !== 0, 'it says that it failed')
      assert.ok(stderr.includes(`\nThe demo stopped at: ${step}\n`), stderr)
      assert.ok(calls.at(-1)?.includes(call), calls.join('\n'))
    })
  }

  test('no port stays open behind it, whether it ends well or not', async (t) => {
    for (const more of [{}, { FAIL: 'npm' }]) {
      const { run, state } = machine(t)
      await run('up', { ...env, ...more })
      const forward = Number(readFileSync(join(state, 'forward'), 'utf8'))
      assert.throws(() => process.kill(forward, 0), { code: 'ESRCH' })
    }
  })

  test('what it tells to try next works', async (t) => {
    const { stdout } = await machine(t).run('up', env)
    const commands = [...stdout.matchAll(/make cli ARGS='(.*)'/g)].map(([, words = '']) => words.split(' '))
    assert.equal(commands.length, 2)
    for (const words of commands) {
      const { AUTH_TOKEN, CRUD_AUTH_TOKEN } = tokens
      const access = { FLUX_API_TOKEN: AUTH_TOKEN, FLUX_API_WRITE_TOKEN: CRUD_AUTH_TOKEN }
      const tried = await cli([...words, '--dry-run'], { env: { FLUX_API_URL: api.url, ...access } })
      assert.equal(tried.code, 0, tried.stderr)
      assert.match(tried.stdout, /1 cluster receives something else/)
    }
    for (const [line] of stdout.matchAll(/^ {2}kubectl .*/gm)) {
      assert.ok(line.startsWith(`  ${ON_CONTEXT} `), line)
    }
  })

  test('it is removed, cluster and image, and once more when nothing is left', async (t) => {
    const { run } = machine(t)
    await run('up', env)
    const first = await run('down')
    assert.deepEqual(first.calls, [
      'kind delete cluster --name flux-resourceset-demo',
      'docker image inspect flux-resourceset:demo',
      'docker image rm flux-resourceset:demo',
    ])
    const second = await run('down')
    assert.deepEqual([first.code, second.code], [0, 0])
    assert.deepEqual(second.calls, first.calls.slice(0, 2))
    const bare = await machine(t, []).run('down')
    assert.equal(bare.code, 2)
    assert.match(bare.stderr, /: docker kind\n$/)
  })
})

const hasShellcheck = spawnSync('shellcheck', ['--version']).status === 0
test('shellcheck finds nothing to say', { skip: !hasShellcheck && 'needs shellcheck' }, () => {
  const scripts = ['up.sh', 'down.sh'].map((name) => join(DEMO, name))
  const { status, stdout } = spawnSync('shellcheck', scripts, { encoding: 'utf8' })
  assert.equal(status, 0, stdout)
})
