// `npm run bench:hostile`: how polls and admins fare while somebody with a credential of some role attacks the service.
// Exits with 1 when a target is missed, unless --report-only is given.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { constants, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type PostgresServer, startPostgres } from '../test/postgres-server.ts'
import { addRevisions, clusterDns, clusterId, clusterToken, writeFleet } from './fleet.ts'
import { ATTACKERS, ATTACKS, type Attacker, attacksOf, SCOPE } from './hostile/attacks.ts'
import { Client } from './hostile/client-process.ts'
import { measureRow, RATE, type Row, type Setting } from './hostile/row.ts'
import {
  COLUMNS,
  cellsOf,
  KEPT_COLUMNS,
  keptCellsOf,
  type Seen,
  TARGETS,
  verdictOf,
} from './hostile/verdict.ts'
import { percentile } from './load.ts'
import { keepTable, printTable, progress } from './print.ts'
import { copyStore, startService, startTarget, stopTarget, TOKEN } from './server-process.ts'

const { values: given } = parseArgs({
  options: {
    role: { type: 'string', multiple: true, default: [...ATTACKERS] },
    attack: { type: 'string', multiple: true },
    store: { type: 'string', default: 'sqlite' },
    clusters: { type: 'string', default: '10000' },
    revisions: { type: 'string', default: '20000' },
    connections: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '3' },
    'mix-seconds': { type: 'string', default: '10' },
    'idle-seconds': { type: 'string', default: '8' },
    patience: { type: 'string', default: '5' },
    after: { type: 'string', default: '60' },
    minutes: { type: 'string', default: '7.5' },
    bare: { type: 'boolean', default: false },
    'report-only': { type: 'boolean', default: false },
  },
})
const PORT = 18_600
const BARE_PORT = 18_601
const BARE_SECONDS = 3
const MOST_DRIFT = 3
const MIX = 'mix'
const OF_BARE = ', of a bare node:http server'
const CLUSTERS = Number(given.clusters)

type Tokens = Readonly<Record<Attacker, string | undefined>>
interface Section {
  readonly attacker: Attacker | 'nobody'
  readonly rows: readonly Seen[]
}

// Others on this machine are not to be taken for an attack. The service inherits it, and attackers give it up.
try {
  setPriority(0, constants.priority.PRIORITY_HIGH)
} catch {
  console.error('the service is measured without priority over the rest of this machine')
}
const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-bench-'))
let postgres: PostgresServer | undefined
// Whatever was started ends when this process does.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
try {
  const isMet = await main()
  process.exitCode = isMet || given['report-only'] ? 0 : 1
} finally {
  await postgres?.stop()
}

async function main(): Promise<boolean> {
  refuseUnknown('role', given.role, ATTACKERS)
  refuseUnknown('attack', given.attack ?? [], [...ATTACKS.map(({ name }) => name), MIX])
  refuseUnknown('store', [given.store], ['sqlite', 'postgres'])
  if (given.role.every((role) => plansOf(role as Attacker, undefined, 0).length === 0))
    throw new Error(`the role ${given.role.join(', ')} sends no such attack`)
  const observer = new Client('observer.ts')
  try {
    const setting: Setting = {
      database: await makeFleet(),
      answer: join(folder, 'answer.json'),
      port: PORT,
      clusters: CLUSTERS,
      patienceMs: Number(given.patience) * 1000,
      connections: Number(given.connections),
      observer,
    }
    const tokens = await prepare(setting)
    const idle = [await measure(setting, { name: 'idle' })]
    const noisy = await measure(setting, { name: 'slow clients, bad logins', hasNuisances: true })
    const planned = (given.role as Attacker[]).map((attacker) => ({
      attacker,
      plans: plansOf(attacker, tokens[attacker], p99Of(idle)),
    }))
    const plans = planned.flatMap((section) => section.plans)
    const seen = await measureInTime(setting, plans)
    idle.push(await measure(setting, { name: 'idle, again' }))
    const attacked = planned.map((section) => ({
      attacker: section.attacker,
      rows: section.plans.flatMap((plan) => seen.get(plan) ?? []),
    }))
    const isMet = report(idle, [{ attacker: 'nobody', rows: [...idle, noisy] }, ...attacked])
    const skipped = plans.filter((plan) => !seen.has(plan)).map(({ name }) => name)
    if (skipped.length > 0)
      console.log(`Not measured, as ${given.minutes} minutes were over: ${skipped.join('; ')}.`)
    return isMet && skipped.length === 0
  } finally {
    observer.kill()
  }
}

function refuseUnknown(option: string, names: readonly string[], known: readonly string[]): void {
  const unknown = names.filter((name) => !known.includes(name))
  if (unknown.length > 0)
    throw new Error(`--${option} ${unknown.join()} is unknown; there are: ${known.join('; ')}`)
}

/** Answers the URL of its store. */
async function makeFleet(): Promise<string> {
  const file = join(folder, 'fleet.db')
  progress(`writing a fleet of ${CLUSTERS} clusters with ${given.revisions} revisions`)
  await writeFleet(file, CLUSTERS, true)
  await addRevisions(file, CLUSTERS, Number(given.revisions))
  if (given.store === 'sqlite') return `sqlite://${file}`
  postgres = await startPostgres({ durable: true, settings: { shared_buffers: '256MB' } })
  const database = await postgres.createDatabase()
  await copyStore(`sqlite://${file}`, database)
  return database
}

/** Makes the tokens of the attackers, and tells what the polls of this benchmark cost by themselves. */
async function prepare(setting: Setting): Promise<Tokens> {
  const service = await startService('the service', setting.database, PORT)
  try {
    const create = async (role: Attacker, scope: object = {}): Promise<string> => {
      const response = await fetch(`http://127.0.0.1:${PORT}/tokens`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify({ name: `attacker-${role}`, role, ...scope }),
      })
      const created = (await response.json()) as { secret?: string }
      if (created.secret === undefined) throw new Error(JSON.stringify(created))
      return created.secret
    }
    const tokens = {
      anonymous: undefined,
      cluster: await create('cluster', { cluster: clusterId(0) }),
      poller: await create('poller'),
      viewer: await create('viewer'),
      editor: await create('editor', { selector: SCOPE }),
    }
    const url = `http://127.0.0.1:${PORT}/api/v2/flux/clusters/${clusterDns(0)}/platform-components`
    const answer = await fetch(url, { headers: { authorization: `Bearer ${clusterToken(0)}` } })
    writeFileSync(setting.answer, await answer.text())
    return tokens
  } finally {
    await stopTarget(service)
    await measureClient(setting)
  }
}

async function measureClient({ observer, patienceMs, answer }: Setting): Promise<void> {
  const bare = await startTarget(
    'bare node:http',
    'bare-server.ts',
    [answer, String(BARE_PORT)],
    BARE_PORT,
    {},
  )
  const watch = { port: BARE_PORT, clusters: CLUSTERS, patienceMs, rate: RATE, isAdminThere: false }
  try {
    await observer.observe({ ...watch, seconds: 1 })
    const { polls } = await observer.observe({ ...watch, seconds: BARE_SECONDS })
    const [p50, p99] = [0.5, 0.99].map((share) => percentile(polls.times, share).toFixed(1))
    console.log(`The same polls of a bare node:http server: p50 ${p50} ms, p99 ${p99} ms.`)
  } finally {
    await stopTarget(bare)
  }
}

type Plan = Partial<Row> & Pick<Row, 'name'>

/** Begins no further row when the time is over; what tells most comes first. */
async function measureInTime(setting: Setting, plans: readonly Plan[]): Promise<Map<Plan, Seen>> {
  const end = Number(given.minutes) * 60_000
  const isMix = ({ name }: Plan): boolean => name.startsWith(MIX)
  const seen = new Map<Plan, Seen>()
  for (const plan of [...plans.filter(isMix), ...plans.filter((each) => !isMix(each))])
    if (performance.now() < end) seen.set(plan, await measure(setting, plan))
  return seen
}

async function measure(setting: Setting, plan: Plan): Promise<Seen> {
  progress(plan.name)
  const nobody = { attacks: [], token: undefined, hasNuisances: false, idleP99: Number.POSITIVE_INFINITY }
  const row = { ...nobody, seconds: Number(given['idle-seconds']), ...plan }
  const seen = await measureRow(setting, row)
  progress('')
  console.error(`${row.name}: ${verdictOf(seen, row.idleP99).join(', ') || 'all targets met'}`)
  return seen
}

/** Each attack alone, which shows the worst of them, and all of them at once. */
function plansOf(attacker: Attacker, token: string | undefined, idleP99: number): Plan[] {
  const { alone, mixed } = attacksOf(attacker)
  const isChosen = ({ name }: { name: string }): boolean => given.attack?.includes(name) ?? true
  const shared = { token, hasNuisances: true, idleP99 }
  const after = { afterSeconds: Number(given.after) }
  // Chosen by its name, an attack is sent by whoever may, and what it leaves behind is judged too.
  const single = (given.attack ? mixed : alone).map(({ name }) => ({
    ...shared,
    ...(given.attack && after),
    name,
    attacks: [name],
    seconds: Number(given.seconds),
  }))
  const attacks = mixed.map(({ name }) => name)
  const mix = { ...shared, ...after, name: MIX, attacks, seconds: Number(given['mix-seconds']) }
  const chosen = [...single, mix].filter(isChosen)
  if (!given.bare) return chosen
  return chosen.flatMap((plan) => [plan, { ...plan, name: `${plan.name}${OF_BARE}`, isBare: true }])
}

function p99Of(idle: readonly Seen[]): number {
  const times = idle.flatMap(({ sample }) => sample.polls.times)
  return percentile(times, 0.99)
}

/** What else a machine does changes in minutes, and what the idle service does not. */
function isSteady(idle: readonly Seen[]): boolean {
  const p99s = idle.map((seen) => p99Of([seen]))
  return Math.max(...p99s) <= MOST_DRIFT * Math.min(...p99s)
}

function report(idle: readonly Seen[], sections: readonly Section[]): boolean {
  const idleP99 = p99Of(idle)
  for (const section of sections.filter((each) => each.rows.length > 0)) {
    console.log(`\nAttacker: ${section.attacker}\n`)
    const cells = section.rows.map((row) => cellsOf(row, idleP99))
    printTable(COLUMNS, cells)
  }
  const kept = sections.flatMap(({ attacker, rows }) =>
    rows.map((row) => keptCellsOf(attacker, row, idleP99)),
  )
  keepTable('attacks', KEPT_COLUMNS, kept, 2)
  const isMissed = (row: Seen): boolean => verdictOf(row, idleP99).length > 0
  const rows = sections.flatMap((section) => section.rows)
  const missed = rows.filter(isMissed)
  const { ofIdle, pollMs, adminMs, rssMb } = TARGETS
  console.log(
    `\nTargets: no poll fails; p99 ≤ ${ofIdle}× idle and ≤ ${pollMs} ms; writes and revocations ≤ ${adminMs / 1000} s; RSS ≤ ${rssMb} MB; nothing left ${given.after} s after.`,
  )
  if (idle.some(isMissed) || !isSteady(idle))
    console.log('This machine is too busy with other things to judge by: see the two idle rows.')
  console.log(missed.length === 0 ? 'All are met.' : `Missed in ${missed.length} of ${rows.length} rows.`)
  return missed.length === 0
}
