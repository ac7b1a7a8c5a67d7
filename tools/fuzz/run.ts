// Asks the service everything that its description says can be asked, right and wrong, once for each role: every answer
// must be one that the description tells of. Needs Python; `--help` says more.
import { spawn, spawnSync } from 'node:child_process'
import {
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Role } from '../../src/domain/access/grant.ts'
import {
  type Answer,
  READ_TOKEN,
  type ServiceProcess,
  spawnService,
  WRITE_TOKEN,
} from '../../test/service.ts'

const HERE = import.meta.dirname
const ROOT = join(HERE, '../..')
const VENV = join(ROOT, '.tools/fuzz-venv')
const REPORTS = join(ROOT, '.tools/fuzz-reports')
const REQUIREMENTS = join(HERE, 'requirements.txt')
/** Schemathesis ends long before; one that hangs is a failure too. */
const TIMEOUT_MS = 15 * 60_000

interface Caller {
  /** A token of the environment; none and no grant: nobody. */
  readonly token?: string
  /** What a token is created with. */
  readonly grant?: Readonly<Record<string, string>>
  /** What it must leave alone, whatever it asks for: everything, or the clusters of these environments. */
  readonly spares?: 'everything' | readonly string[]
  /** Gets hardly anywhere: what every run asks is enough, with a little more. */
  readonly isShut?: boolean
}

/** Everybody that asks: nobody, the tokens of the environment, and each role at least once. */
const CALLERS: Readonly<Record<string, Caller>> & Readonly<Record<Role, Caller>> = {
  anonymous: { spares: 'everything', isShut: true },
  reader: { token: READ_TOKEN, spares: 'everything' },
  writer: { token: WRITE_TOKEN },
  cluster: { grant: { role: 'cluster', cluster: 'demo-cluster-01' }, spares: 'everything', isShut: true },
  poller: { grant: { role: 'poller' }, spares: 'everything', isShut: true },
  mirror: { grant: { role: 'mirror' }, spares: 'everything', isShut: true },
  viewer: { grant: { role: 'viewer' }, spares: 'everything' },
  editor: { grant: { role: 'editor' } },
  'scoped-editor': {
    grant: { role: 'editor', selector: 'environment in (dev,qa)' },
    spares: ['uat', 'prod'],
  },
  admin: { grant: { role: 'admin' } },
}

const { values: options } = parseArgs({
  options: {
    roles: { type: 'string', default: process.env.FUZZ_ROLES || Object.keys(CALLERS).join() },
    seed: { type: 'string', default: process.env.FUZZ_SEED || '1' },
    examples: { type: 'string', default: process.env.FUZZ_EXAMPLES || '15' },
    help: { type: 'boolean' },
  },
})

const HELP = `Usage: node tools/fuzz/run.ts [--roles reader,writer] [--seed 1] [--examples 15]

  --roles     which of ${Object.keys(CALLERS).join(', ')}; FUZZ_ROLES
  --seed      another seed asks other things, the same seed the same; FUZZ_SEED
  --examples  how many requests to make up for each operation, beside those that every run makes; FUZZ_EXAMPLES

Reports are left in .tools/fuzz-reports. Exits with 1 when anything was found, with 2 when it could not look.`

interface Report {
  readonly complete: boolean
  readonly operations: { readonly selected: number; readonly tested: number; readonly errored: number }
  readonly test_cases: { readonly generated: number }
  readonly failures: readonly { readonly title: string; readonly count: number }[]
}

/** Cannot look, for want of something. */
function giveUp(message: string): never {
  console.error(message)
  process.exit(2)
}

function install(): void {
  const stamp = join(VENV, 'installed.txt')
  const wanted = readFileSync(REQUIREMENTS, 'utf8')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
  const python = spawnSync('python3', ['-c', 'import sys, venv, ensurepip, tomllib'], { encoding: 'utf8' })
  if (python.error)
    giveUp('Schemathesis needs Python, and there is no python3 on the PATH: install 3.11 or newer.')
  if (python.status !== 0)
    giveUp(
      `Schemathesis needs Python 3.11 or newer with its venv module (Debian has it in python3-venv):\n${python.stderr}`,
    )
  console.log('installing Schemathesis into .tools/fuzz-venv…')
  const pip = join(VENV, 'bin/pip')
  for (const [command, ...args] of [
    ['python3', '-m', 'venv', '--clear', VENV],
    [pip, 'install', '--quiet', '--disable-pip-version-check', '-r', REQUIREMENTS],
  ] as const) {
    const { status } = spawnSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] })
    if (status !== 0) giveUp(`${command} ${args.join(' ')} failed`)
  }
  writeFileSync(stamp, wanted)
}

/** Answers what is wrong, a line each. */
async function fuzz(name: string, role: Caller): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-fuzz-'))
  const service = await spawnService({
    API_MODE: 'crud',
    DATABASE_URL: `sqlite://${folder}/fuzz.db`,
    SEED_FILE: join(ROOT, 'data/seed.json'),
    // Nobody guesses tokens as often as this does.
    MAX_AUTH_FAILURES: '100000000',
  })
  try {
    const given = await tokenFor(service, name, role)
    const before = (await service.call('GET', '/ready')).body.revision
    const started = performance.now()
    const examples = role.isShut ? Math.ceil(Number(options.examples) / 5) : Number(options.examples)
    const { report, code } = await runSchemathesis(service, role, { ...given, name, examples, folder })
    const seconds = Math.round((performance.now() - started) / 1000)
    const problems = [
      ...problemsIn(report, code),
      ...(await checkAfterwards(service, given.token)),
      ...(await checkSpared(service, name, role, before)),
    ]
    const { operations, test_cases } = report ?? {}
    const asked = `${test_cases?.generated ?? 0} requests to ${operations?.tested ?? 0} operations`
    console.log(
      `${name.padEnd(14)} ${problems.length === 0 ? 'ok    ' : 'FAILED'} ${String(seconds).padStart(4)} s  ${asked}`,
    )
    for (const problem of problems) console.log(`  ${problem}`)
    return problems
  } finally {
    await service.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Given {
  /** None for nobody. */
  readonly token?: string
  /** Of a token that was created. */
  readonly id?: string
}

async function tokenFor(service: ServiceProcess, name: string, { token, grant }: Caller): Promise<Given> {
  if (!grant) return token === undefined ? {} : { token }
  const { status, body, text } = await service.call('POST', '/tokens', {
    body: { name: `fuzz-${name}`, ...grant },
  })
  if (status !== 201) throw new Error(`no token for the role ${name}: ${status} ${text}`)
  return { token: body.secret ?? body.token, id: body.id }
}

/** What it changed and may not have. */
async function checkSpared(
  service: ServiceProcess,
  name: string,
  { spares }: Caller,
  before: number,
): Promise<string[]> {
  const { revision } = (await service.call('GET', '/ready')).body
  if (spares === 'everything')
    return revision === before
      ? []
      : [`it may not write, and made the revisions from ${before + 1} to ${revision}`]
  if (spares === undefined) return []
  const actor = `fuzz-${name}`
  const problems: string[] = []
  let count = 0
  for (let next: number | undefined = revision + 1; next !== undefined; ) {
    const { body }: Answer = await service.call('GET', `/revisions?actor=${actor}&limit=1000&before=${next}`)
    count += body.length
    for (const { revision } of body) problems.push(...(await checkScope(service, revision, spares)))
    next = body.at(-1)?.revision
  }
  return count > 0 ? problems : ['it wrote nothing at all: nothing was learnt of its scope']
}

/** A revision may touch clusters of the scope only. */
async function checkScope(
  service: ServiceProcess,
  revision: number,
  spares: readonly string[],
): Promise<string[]> {
  const { changes, impact } = (await service.call('GET', `/revisions/${revision}?impact_limit=0`)).body
  const environments = [
    ...Object.keys(impact.by_environment),
    ...changes
      .filter(({ type }: { type: string }) => type === 'clusters')
      .flatMap(({ before, after }: Record<string, { environment: string } | null>) => [before, after])
      .map((cluster: { environment: string } | null) => cluster?.environment),
  ]
  const touched = spares.filter((environment) => environments.includes(environment))
  return touched.map((environment) => `it touched clusters of ${environment} in revision ${revision}`)
}

async function runSchemathesis(
  { url }: ServiceProcess,
  { spares }: Caller,
  { name, token, id, examples, folder }: Given & { name: string; examples: number; folder: string },
): Promise<{ report: Report | undefined; code: number | null }> {
  const path = join(folder, 'report.json')
  const output = createWriteStream(join(REPORTS, `${name}.txt`))
  const child = spawn(
    join(VENV, 'bin/schemathesis'),
    [
      ...['--config-file', join(HERE, 'schemathesis.toml'), 'run', `${url}/openapi.json`],
      ...(token === undefined ? [] : ['--header', `Authorization: Bearer ${token}`]),
      ...['--seed', String(options.seed), '--max-examples', String(examples)],
      ...['--report', 'json', '--report-json-path', path],
    ],
    {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        PYTHONHASHSEED: '0',
        PYTHONDONTWRITEBYTECODE: '1',
        SCHEMATHESIS_HOOKS: join(HERE, 'hooks.py'),
        FUZZ_ROLE: name,
        FUZZ_URL: url,
        ...(spares !== 'everything' && { FUZZ_RESET_TOKEN: WRITE_TOKEN }),
        FUZZ_OWN_TOKEN: `${id} fuzz-${name}`,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: TIMEOUT_MS,
    },
  )
  for (const stream of [child.stdout, child.stderr]) stream.pipe(output, { end: false })
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  await new Promise<void>((resolve) => output.end(resolve))
  // One that had to be ended leaves an empty file.
  const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
  return { report: text === '' ? undefined : JSON.parse(text), code }
}

function problemsIn(report: Report | undefined, code: number | null): string[] {
  if (!report) return [`Schemathesis did not finish: exit ${code}`]
  const { complete, operations, failures } = report
  const { selected, tested, errored } = operations
  const found = failures.map(({ title, count }) => `${title}: ${count}`)
  // A thread that dies takes its part of the operations with it, and leaves the exit code as it is.
  if (!complete || tested < selected || errored > 0)
    found.push(`only ${tested} of ${selected} operations were tested, ${errored} of them with errors`)
  return found.length === 0 && code !== 0 ? [`Schemathesis failed: exit ${code}`] : found
}

/** What must hold whatever was asked. */
async function checkAfterwards(service: ServiceProcess, token: string | undefined): Promise<string[]> {
  const ready = await service.call('GET', '/ready')
  const log = (await service.call('GET', '/revisions/verify')).body
  const errors = service
    .output()
    .split('\n')
    .filter((line) => /^\{"level":[56]0,/.test(line))
  const list = await service.call('GET', '/api/v2/flux/clusters?limit=0', { token: token ?? WRITE_TOKEN })
  return [
    ...(ready.status === 200 ? [] : [`the service is not ready any more: ${ready.text}`]),
    ...(log.verified ? [] : [`the log is not whole any more: ${log.problems?.join('; ')}`]),
    ...(list.status === 401 ? ['its token is not valid any more: most of the requests were in vain'] : []),
    ...errors.map((line) => `the log says: ${line.slice(0, 300)}…`),
  ]
}

if (options.help) {
  console.log(HELP)
  process.exit(0)
}
for (const name of ['seed', 'examples'] as const) {
  if (!/^[1-9]\d{0,8}$/.test(options[name]))
    giveUp(`--${name} must be a whole number of 1 or more, not "${options[name]}"`)
}
const wanted = options.roles.split(',')
const unknown = wanted.filter((name) => !Object.hasOwn(CALLERS, name))
if (unknown.length > 0) giveUp(`unknown roles: ${unknown.join(', ')}\n\n${HELP}`)
install()
mkdirSync(REPORTS, { recursive: true })
console.log(`seed ${options.seed}, ${options.examples} examples; reports in .tools/fuzz-reports`)
const failed: string[] = []
for (const name of wanted) {
  const problems = await fuzz(name, CALLERS[name] as Caller)
  if (problems.length > 0) failed.push(name)
}
if (failed.length > 0) {
  console.log(
    `\nFAILED: ${failed.join(', ')}. What was asked and answered is in .tools/fuzz-reports; to repeat it:`,
  )
  console.log(
    `  node tools/fuzz/run.ts --roles ${failed} --seed ${options.seed} --examples ${options.examples}`,
  )
}
process.exit(failed.length > 0 ? 1 : 0)
