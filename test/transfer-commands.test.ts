import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Writable } from 'node:stream'
import { describe, type TestContext, test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { runTransferCommand } from '../src/admin/transfer-commands.ts'
import { UsageProblem } from '../src/base/usage-problem.ts'
import { openPostgresStore } from '../src/store/postgres/postgres.ts'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import type { NewRevision, Store } from '../src/store/store.ts'
import { openLines } from '../src/transfer/transfer-files.ts'
import { StreamError } from '../src/transfer/transfer-items.ts'
import { pruneLog, verifyLog } from '../src/transfer/verify-log.ts'
import { temporaryPostgres } from './postgres-server.ts'
import {
  builtInTypes,
  COMPILED,
  MAIN,
  READ_TOKEN,
  type ServiceProcess,
  smallFleet,
  spawnService,
  startService,
  temporaryFolder,
  waitFor,
} from './service.ts'

/** Starting a process is most of the work, and no test here knows of another. */
const AT_ONCE = { concurrency: 4 }

interface Run {
  readonly code: number | null | undefined
  readonly stdout: string
  readonly stderr: string
}

function spawnProgram(args: readonly string[], env: Record<string, string>): ChildProcess {
  return spawn(process.execPath, [MAIN, ...args], {
    env: { ...COMPILED, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 60_000,
  })
}

async function endOf(child: ChildProcess): Promise<Run> {
  const [stdout, stderr] = [child.stdout, child.stderr].map((stream) => stream?.toArray())
  const [code] = (await once(child, 'close')) as [number | null]
  const text = async (chunks?: Promise<Buffer[]>) => Buffer.concat((await chunks) ?? []).toString('utf8')
  return { code, stdout: await text(stdout), stderr: await text(stderr) }
}

/** Runs the program as a process of its own. */
function run(args: readonly string[], env: Record<string, string> = {}): Promise<Run> {
  return endOf(spawnProgram(args, env))
}

/** The same inside this process; what is thrown is what the program would tell and exit with 2. */
async function runHere(
  [name = '', ...args]: readonly string[],
  env: Record<string, string> = {},
): Promise<Run> {
  const out: string[] = []
  const err: string[] = []
  const stdout = new Writable({
    write(chunk, _encoding, done) {
      out.push(String(chunk))
      done()
    },
  })
  const code = await runTransferCommand(name, args, {
    env,
    types: () => builtInTypes(),
    now: () => new Date(),
    stdout,
    print: (line) => out.push(`${line}\n`),
    tell: (line) => err.push(`${line}\n`),
  })
  return { code, stdout: out.join(''), stderr: err.join('') }
}

function at(path: string): { DATABASE_URL: string } {
  return { DATABASE_URL: `sqlite://${path}` }
}

/** So many hours into the year. */
const hour = (n: number): string => new Date(Date.UTC(2026, 0, 1, n)).toISOString()

function revision(n: number, ...ids: string[]): NewRevision {
  return {
    time: hour(n),
    actor: 'writer',
    message: null,
    request_id: `r${n}`,
    client_address: null,
    operation: 'put namespaces',
    changes: ids.map((id) => ({
      type: 'namespaces',
      id,
      after: { json: JSON.stringify({ id, labels: { n } }), deleted: false },
    })),
  }
}

/** A file with five revisions, an hour from one to the next, and three documents. */
async function filledFile(t: TestContext, name = 'fleet.db') {
  const folder = temporaryFolder(t)
  const path = join(folder, name)
  await using(path, async (store) => {
    await store.commit(0, revision(1, 'a', 'b', 'c'))
    for (let base = 1; base < 5; base++) await store.commit(base, revision(base + 1, 'a'))
    await store.idempotency.save({ key: 'k', fingerprint: 'f', time: new Date().toISOString(), answer: '{}' })
  })
  return { folder, path, env: at(path), file: (other: string) => join(folder, other) }
}

async function using<T>(path: string, use: (store: Store) => Promise<T>): Promise<T> {
  const store = openSqliteStore({ path, write: true })
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

function write(path: string, ...revisions: NewRevision[]): Promise<unknown> {
  return using(path, async (store) => store.commit((await store.head()).revision, ...revisions))
}

/** All rows of a file but for those that tell of who had it open. */
function rowsOf(path: string): object {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    return Object.fromEntries(
      ['head', 'documents', 'revisions', 'changes', 'anchor', 'answers', 'token_uses'].map((table) => {
        const rows = db.prepare(`SELECT * FROM ${table}`).all()
        return [table, rows.map((row) => JSON.stringify(row)).sort()]
      }),
    )
  } finally {
    db.close()
  }
}

/** For its owner alone. */
const PRIVATE = 0o600

function modeOf(path: string): number {
  return statSync(path).mode & 0o777
}

function headOf(path: string): number {
  if (!existsSync(path)) return 0
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    return Number(db.prepare('SELECT revision FROM head').get()?.revision)
  } catch {
    return 0
  } finally {
    db.close()
  }
}

async function assertVerified(path: string): Promise<void> {
  assert.deepEqual(await using(path, async (store) => (await verifyLog(store)).problems), [])
}

/** Refused as bad use, on standard error alone. */
function assertRefused({ code, stdout, stderr }: Run, message: RegExp): void {
  assert.match(stderr, message)
  for (const line of stderr.trimEnd().split('\n')) assert.match(line, /^flux-resourceset: /)
  assert.deepEqual({ code, stdout }, { code: 2, stdout: '' })
}

async function assertBadUse(
  env: Record<string, string>,
  cases: readonly (readonly [args: readonly string[], message: RegExp])[],
): Promise<void> {
  for (const [args, message] of cases) {
    await assert.rejects(
      runHere(args, env),
      (error: Error) =>
        (error instanceof UsageProblem || (error instanceof StreamError && !error.isDamaged)) &&
        message.test(error.message),
      args.join(' '),
    )
  }
}

async function stopLater(t: TestContext, service: Promise<ServiceProcess>): Promise<ServiceProcess> {
  const started = await service
  t.after(() => started.stop('SIGKILL'))
  return started
}

/** A service over a small fleet in a file. */
async function fleetService(t: TestContext) {
  const folder = temporaryFolder(t)
  const path = join(folder, 'fleet.db')
  const seed = join(folder, 'seed.json')
  writeFileSync(seed, JSON.stringify(smallFleet()))
  const service = await stopLater(t, spawnService({ ...at(path), SEED_FILE: seed, API_MODE: 'crud' }))
  return { folder, path, service, file: (other: string) => join(folder, other) }
}

/** What every cluster gets. */
async function answersOf(service: Pick<ServiceProcess, 'call'>): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = {}
  for (const name of ['one', 'two', 'three']) {
    for (const endpoint of ['platform-components', 'namespaces', 'rolebindings']) {
      const url = `/api/v2/flux/clusters/${name}.k8s.example.com/${endpoint}`
      const { status, text, headers } = await service.call('GET', url, { token: READ_TOKEN })
      answers[`${name}/${endpoint}`] = status === 200 ? { text, etag: headers.etag } : status
    }
  }
  return answers
}

/** Writes until it is told to stop; answers how many it was. */
function keepWriting(service: ServiceProcess): () => Promise<number> {
  let isOn = true
  const writing = (async () => {
    let n = 0
    while (isOn && n < 5000) {
      const body = { labels: { team: `t${n++}` } }
      const { status } = await service.call('PATCH', '/namespaces/team-a', { body })
      assert.equal(status, 200)
    }
    return n
  })()
  return () => {
    isOn = false
    return writing
  }
}

describe('backup and restore', AT_ONCE, () => {
  test('bring back all of it, and tell what they did', async (t) => {
    const { env, path, file } = await filledFile(t)
    const { hash } = await using(path, (store) => store.head())
    for (const name of ['b.ndjson', 'b.gz']) {
      const backup = await run(['backup', '--to', file(name)], env)
      const { size, mode } = statSync(file(name))
      assert.deepEqual(backup, {
        code: 0,
        stdout: `backed up revision 5 with 3 documents: ${size} bytes\nhash of revision 5: ${hash}\n`,
        stderr: '',
      })
      assert.equal(mode & 0o777, PRIVATE)
      const restored = await run(['restore', '--from', file(name)], at(file(`${name}.db`)))
      assert.deepEqual(restored, {
        code: 0,
        stdout: `restored revision 5 with 3 documents: 5 revisions\nhash of revision 5: ${hash}\n`,
        stderr: '',
      })
      assert.deepEqual(rowsOf(file(`${name}.db`)), rowsOf(path))
      assert.equal(modeOf(file(`${name}.db`)), PRIVATE)
    }
    assert.equal(
      gunzipSync(readFileSync(file('b.gz')))
        .toString()
        .split('\n').length,
      readFileSync(file('b.ndjson'), 'utf8').split('\n').length,
    )
    assert.deepEqual(
      readdirSync(file('.')).filter((name) => name.includes('partial')),
      [],
    )
  })

  test('tell it as JSON', async (t) => {
    const { env, path, file } = await filledFile(t)
    const { hash } = await using(path, (store) => store.head())
    const backup = await run(['backup', '--to', file('b'), '-o', 'json'], env)
    const bytes = statSync(file('b')).size
    assert.deepEqual(JSON.parse(backup.stdout), { file: file('b'), revision: 5, hash, documents: 3, bytes })
    const restored = await run(['restore', '--from', file('b'), '-o', 'json'], at(file('r.db')))
    const told = { verified: true, revision: 5, hash, documents: 3, from: 0, problems: [] }
    assert.deepEqual(JSON.parse(restored.stdout), told)
  })

  test('go through the standard output, with the figures beside it', async (t) => {
    const { env, path, file } = await filledFile(t)
    const { code, stdout, stderr } = await run(['backup', '--to', '-'], env)
    assert.equal(code, 0)
    assert.match(stderr, /^backed up revision 5 with 3 documents: \d+ bytes\n/)
    writeFileSync(file('b'), stdout)
    assert.equal((await run(['restore', '--from', file('b')], at(file('r.db')))).code, 0)
    assert.deepEqual(rowsOf(file('r.db')), rowsOf(path))
    assertRefused(await run(['restore', '--from', '-'], at(file('r.db'))), /write it to a file and name that/)
  })

  test('bring back a store whose older history was given up, and one without any', async (t) => {
    const { env, path, file } = await filledFile(t)
    await using(path, async (store) => assert.ok((await pruneLog(store, hour(4))).ok))
    await using(file('empty.db'), async () => {})
    for (const [from, to] of [
      [env, 'r.db'],
      [at(file('empty.db')), 's.db'],
    ] as const) {
      assert.equal((await runHere(['backup', '--to', file('b')], from)).code, 0)
      assert.equal((await runHere(['restore', '--from', file('b')], at(file(to)))).code, 0)
      await assertVerified(file(to))
    }
    assert.deepEqual(rowsOf(file('r.db')), rowsOf(path))
    assert.deepEqual(rowsOf(file('s.db')), rowsOf(file('empty.db')))
  })

  test('take a whole moment of a service that is written to, which others then serve byte by byte', async (t) => {
    const { service, path, file } = await fleetService(t)
    const stop = keepWriting(service)
    const revisions: number[] = []
    for (let i = 0; i < 3; i++) {
      const { code, stdout } = await run(['backup', '--to', file(`b${i}.gz`), '-o', 'json'], at(path))
      assert.equal(code, 0)
      revisions.push(JSON.parse(stdout).revision)
    }
    assert.ok((await stop()) > 0)
    assert.deepEqual(
      revisions,
      revisions.toSorted((a, b) => a - b),
    )
    for (const i of [0, 1, 2]) {
      const { code } = await runHere(['restore', '--from', file(`b${i}.gz`)], at(file(`r${i}.db`)))
      assert.equal(code, 0)
      assert.equal(headOf(file(`r${i}.db`)), revisions[i])
    }
    assert.equal((await runHere(['backup', '--to', file('last')], at(path))).code, 0)
    assert.equal((await runHere(['restore', '--from', file('last')], at(file('last.db')))).code, 0)
    const other = await stopLater(t, spawnService(at(file('last.db'))))
    assert.deepEqual(await answersOf(other), await answersOf(service))
  })

  test('a backup takes the place of an older one only once it is whole', async (t) => {
    const { env, path, file } = await filledFile(t)
    assert.equal((await runHere(['backup', '--to', file('b')], env)).code, 0)
    const before = readFileSync(file('b'))
    const db = new DatabaseSync(path)
    db.exec(`UPDATE revisions SET message = 'forged' WHERE revision = 4`)
    db.close()
    assertRefused(await run(['backup', '--to', file('b')], env), /revision 4 is not what it was.*verify/)
    assert.ok(before.equals(readFileSync(file('b'))))
    assert.deepEqual(
      readdirSync(file('.')).filter((name) => name.includes('partial')),
      [],
    )
  })

  test('a backup is not held up by what one that was killed has left, whatever its process id was', async (t) => {
    const { env, file } = await filledFile(t)
    writeFileSync(file(`b.${process.pid}.partial`), 'half')
    assert.equal((await runHere(['backup', '--to', file('b')], env)).code, 0)
    assert.equal((await runHere(['restore', '--from', file('b')], at(file('r.db')))).code, 0)
  })

  test('a backup is never written over a database, a folder or a device', async (t) => {
    const { folder, env, path, file } = await filledFile(t)
    const before = rowsOf(path)
    await assertBadUse(env, [
      [['backup', '--to', path], /fleet.db: is there already, and is no backup and no bundle/],
      [['backup', '--to', folder], /is not a file/],
      [['backup', '--to', '/dev/null'], /is not a file/],
    ])
    await assert.rejects(runHere(['backup', '--to', file('no/such/b')], env), /cannot be written: ENOENT/)
    assert.deepEqual(rowsOf(path), before)
  })

  test('a backup takes the place of nothing but an older one', async (t) => {
    const { env, path, file } = await filledFile(t)
    const store = openSqliteStore({ path, write: true })
    t.after(() => store.close())
    await store.commit(5, revision(6, 'a'))
    writeFileSync(file('notes.txt'), 'x')
    const before = [`${path}-wal`, file('notes.txt')].map((name) => [name, readFileSync(name)] as const)
    for (const [name, content] of before) {
      await assertBadUse(env, [[['backup', '--to', name], /is there already, and is no backup/]])
      assert.ok(content.length > 0 && content.equals(readFileSync(name)), name)
    }
    writeFileSync(file('empty'), '')
    for (const name of ['empty', 'b', 'b', 'b.gz', 'b.gz'])
      assert.equal((await runHere(['backup', '--to', file(name)], env)).code, 0, name)
  })

  test('a backup that cannot be written out whole fails', { skip: !existsSync('/dev/full') }, async (t) => {
    const { env } = await filledFile(t)
    const child = spawn('sh', ['-c', `"$0" "$1" backup --to - > /dev/full`, process.execPath, MAIN], {
      env: { ...env, PATH: process.env.PATH ?? '' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const { code, stderr } = await endOf(child)
    assert.match(stderr, /the standard output: cannot be written: .*ENOSPC/)
    assert.equal(code, 2)
  })

  test('a backup that its reader leaves before its end fails', async (t) => {
    const { path, env } = await filledFile(t)
    const long = { json: JSON.stringify({ id: 'long', text: 'x'.repeat(1_000_000) }), deleted: false }
    await write(path, { ...revision(6), changes: [{ type: 'namespaces', id: 'long', after: long }] })
    const child = spawnProgram(['backup', '--to', '-'], env)
    child.stdout?.once('data', () => child.stdout?.destroy())
    const stderr = child.stderr?.toArray()
    const [code] = await once(child, 'exit')
    assert.equal(code, 2)
    assert.match(String(await stderr), /the standard output: cannot be written: .*EPIPE/)
  })

  test('a backup goes into an empty store only', async (t) => {
    const { env, path, file } = await filledFile(t)
    assert.equal((await runHere(['backup', '--to', file('b')], env)).code, 0)
    const other = file('other.db')
    await write(other, revision(1, 'x'))
    await write(path, revision(6, 'c'))
    for (const target of [other, path]) {
      const before = rowsOf(target)
      const refused = await run(['restore', '--from', file('b')], at(target))
      assertRefused(refused, /goes into an empty store: name one in DATABASE_URL, or move the one/)
      assert.deepEqual(rowsOf(target), before)
    }
    assertRefused(
      await run(['restore', '--from', file('b')], { DATABASE_URL: `sqlite://${file('n.db')}?mode=rw` }),
      /n.db: there is no such file/,
    )
    assert.ok(!existsSync(file('n.db')))
  })

  test('a backup that was damaged is found before anything is written', async (t) => {
    const { env, file } = await filledFile(t)
    assert.equal((await runHere(['backup', '--to', file('b')], env)).code, 0)
    const text = readFileSync(file('b'), 'utf8')
    const damaged: [string, string | Buffer, RegExp][] = [
      ['flipped', text.replace('\\"n\\":3', '\\"n\\":4'), /another SHA-256/],
      ['cut', text.slice(0, text.length / 2), /cut off/],
      ['without its end', text.split('\n').slice(0, -2).join('\n').concat('\n'), /no end/],
      ['empty', '', /no end/],
      ['packed and cut', gzipSync(text).subarray(0, 200), /cannot be unpacked|cut off/],
      ['with more after it', `${text}{}\n`, /cannot be read/],
      ['twice', text + text, /cannot be read|after the end/],
    ]
    for (const [what, content, message] of damaged) {
      writeFileSync(file('d'), content)
      const { code, stdout, stderr } = await runHere(['restore', '--from', file('d')], at(file('r.db')))
      assert.deepEqual({ code, stdout }, { code: 4, stdout: '' }, what)
      assert.match(stderr, message)
      assert.ok(stderr.startsWith(`flux-resourceset: ${file('d')}: `), stderr)
    }
    for (const content of ['hello\n', readFileSync(MAIN)]) {
      writeFileSync(file('d'), content)
      await assertBadUse(at(file('r.db')), [
        [['restore', '--from', file('d')], /is not a log of flux-resourceset/],
      ])
    }
    await assertBadUse(at(file('r.db')), [
      [['restore', '--from', file('none')], /none: there is no such file/],
    ])
    assert.ok(!existsSync(file('r.db')))
  })

  test('a restore that was killed goes on when it is run again', async (t) => {
    const { path, env, file } = await longFile(t)
    assert.equal((await runHere(['backup', '--to', file('b.gz')], env)).code, 0)
    const target = file('r.db')
    const reached = await killAfterSome(['restore', '--from', file('b.gz')], at(target), () => headOf(target))
    await assertVerified(target)
    const { code, stdout } = await run(['restore', '--from', file('b.gz')], at(target))
    assert.equal(code, 0)
    assert.ok(stdout.includes(`, going on from revision ${reached}\n`), stdout)
    assert.deepEqual(rowsOf(target), rowsOf(path))
  })
})

const LONG = 6000

/** So many revisions that moving them takes a while. */
async function longFile(t: TestContext) {
  const folder = temporaryFolder(t)
  const path = join(folder, 'long.db')
  const filler = 'x'.repeat(1500)
  await using(path, async (store) => {
    for (let base = 0; base < LONG; base += 500) {
      const some = Array.from({ length: 500 }, (_, i) => ({
        ...revision(1, `n${i % 40}`),
        message: `${base + i} ${filler}`,
      }))
      await store.commit(base, ...some)
    }
  })
  return { path, env: at(path), file: (name: string) => join(folder, name) }
}

/** Kills a run once its target has some revisions and not all; answers how many. */
async function killAfterSome(
  args: readonly string[],
  env: Record<string, string>,
  reached: () => number | Promise<number>,
): Promise<number> {
  const child = spawnProgram(args, env)
  const ended = endOf(child)
  await waitFor('something has arrived', async () => child.exitCode !== null || (await reached()) > 0)
  child.kill('SIGKILL')
  const { stdout } = await ended
  assert.equal(stdout, '', 'it was killed before its end')
  const revisions = await reached()
  assert.ok(revisions > 0 && revisions < LONG, `${revisions} revisions`)
  return revisions
}

describe('copy', AT_ONCE, () => {
  test('brings a store into another database and back, with all that belongs to it', async (t) => {
    const { path, file, env } = await filledFile(t)
    const url = await temporaryPostgres(t)
    const there = await run(['copy', '--from', env.DATABASE_URL, '--to', url])
    assert.match(
      there.stdout,
      /^copied 5 revisions, up to revision 5, with 3 documents\nhash of revision 5: [0-9a-f]{64}\n/,
    )
    assert.deepEqual({ code: there.code, stderr: there.stderr }, { code: 0, stderr: '' })
    const back = await run(['copy', '--from', url, '--to', at(file('back.db')).DATABASE_URL, '-o', 'json'])
    assert.equal(back.code, 0)
    const { hash, ...told } = JSON.parse(back.stdout)
    const figures = { revisions: 5, planted: 0, documents: 3, answers: 1, uses: 0 }
    assert.deepEqual(told, { verified: true, revision: 5, source_revision: 5, ...figures, problems: [] })
    assert.match(hash, /^[0-9a-f]{64}$/)
    assert.deepEqual(rowsOf(file('back.db')), rowsOf(path))
    assert.equal(modeOf(file('back.db')), PRIVATE)
  })

  test('lets a service go on from the copy: the same answers, tokens and ETags', async (t) => {
    const { service, path, file } = await fleetService(t)
    const made = await service.call('POST', '/tokens', { body: { name: 'ops', role: 'viewer' } })
    assert.equal(made.status, 201)
    const { secret } = made.body
    assert.equal((await service.call('GET', '/clusters', { token: secret })).status, 200)
    const answers = await answersOf(service)
    await service.stop()
    assert.equal(
      (await run(['copy', '--from', at(path).DATABASE_URL, '--to', at(file('c.db')).DATABASE_URL])).code,
      0,
    )
    assert.deepEqual(rowsOf(file('c.db')), rowsOf(path))
    const other = await stopLater(t, spawnService({ ...at(file('c.db')), API_MODE: 'crud' }))
    assert.deepEqual(await answersOf(other), answers)
    assert.equal((await other.call('GET', '/clusters', { token: secret })).status, 200)
  })

  test('follows a source that is written to, says where it ended, and fetches the rest when it is run again', async (t) => {
    const { service, path, file } = await fleetService(t)
    const args = ['copy', '--from', at(path).DATABASE_URL, '--to', at(file('c.db')).DATABASE_URL]
    const stop = keepWriting(service)
    const first = await run([...args, '-o', 'json'])
    assert.equal(first.code, 0, first.stderr)
    const { revision, hash, source_revision } = JSON.parse(first.stdout)
    assert.ok(revision > 0 && source_revision >= revision)
    assert.equal(await using(path, (store) => store.hashOf(revision)), hash)
    await stop()
    const last = await run(args)
    assert.equal(last.code, 0)
    assert.match(last.stdout, /the target is where the source is/)
    await service.stop()
    assert.deepEqual(rowsOf(file('c.db')), rowsOf(path))
  })

  test('goes on after it was killed, in either database', async (t) => {
    const { path, env, file } = await longFile(t)
    const url = await temporaryPostgres(t)
    const reader = openPostgresStore({ url, write: true })
    t.after(() => reader.close())
    const reachedThere = async (): Promise<number> => (await reader.head()).revision
    for (const [target, reached] of [
      [at(file('c.db')).DATABASE_URL, () => headOf(file('c.db'))],
      [url, reachedThere],
    ] as const) {
      const args = ['copy', '--from', env.DATABASE_URL, '--to', target]
      const revisions = await killAfterSome(args, {}, reached)
      const { code, stdout } = await run(args)
      assert.equal(code, 0)
      assert.ok(stdout.startsWith(`copied ${LONG - revisions} revisions, up to revision ${LONG}`), stdout)
    }
    assert.deepEqual(rowsOf(file('c.db')), rowsOf(path))
    assert.deepEqual(await reader.head(), await using(path, (store) => store.head()))
  })

  test('refuses a target with another history, or with more than the source has', async (t) => {
    const { path, env, file } = await filledFile(t)
    const parted = file('parted.db')
    await write(parted, revision(1, 'other'))
    const ahead = file('ahead.db')
    copyFileSync(path, ahead)
    await write(ahead, revision(6, 'a'))
    for (const [target, message] of [
      [parted, /the source: has another history/],
      [ahead, /the target is at revision 6 and the source at 5/],
    ] as const) {
      const before = rowsOf(target)
      assertRefused(await run(['copy', '--from', env.DATABASE_URL, '--to', at(target).DATABASE_URL]), message)
      assert.deepEqual(rowsOf(target), before)
    }
  })

  test('refuses what it cannot work with, and makes nothing', async (t) => {
    const { env, file } = await filledFile(t)
    const url = env.DATABASE_URL
    const missing = at(file('none.db')).DATABASE_URL
    const target = at(file('t.db')).DATABASE_URL
    await assertBadUse({}, [
      [['copy'], /--from is required/],
      [['copy', '--from', url], /--to is required/],
      [['copy', '--from', url, '--to', url], /are the same store/],
      [['copy', '--from', 'mysql://x/y', '--to', target], /DATABASE_URL must be like/],
      [['copy', '--from', url, '--to', `${target}?mode=ro`], /mode=ro: this needs to write/],
      [['copy', '--from', url, '--to', target, '-o', 'yaml'], /-o must be json/],
      [['copy', url, target], /Unexpected argument/],
    ])
    await assert.rejects(
      runHere(['copy', '--from', missing, '--to', target]),
      /none.db: there is no such file/,
    )
    assert.ok(!existsSync(file('t.db')))
  })
})

/** A store with five revisions, and keys to sign with. */
async function withKeys(t: TestContext) {
  const filled = await filledFile(t)
  const { file } = filled
  assert.equal((await runHere(['bundle', 'keygen', '--to', file('k')])).code, 0)
  const key = file('k.pem')
  const pub = file('k.pub.pem')
  const bundle = async (name: string, ...more: string[]): Promise<string> => {
    const { code } = await runHere(
      ['bundle', 'export', '--to', file(name), '--key', key, ...more],
      filled.env,
    )
    assert.equal(code, 0)
    return file(name)
  }
  const bring = (from: string, to: string): Promise<Run> =>
    runHere(['bundle', 'import', '--from', from, '--key', pub], at(file(to)))
  return { ...filled, key, pub, bundle, bring }
}

function pemOf(type: 'rsa' | 'ec' | 'ed448' | 'ed25519', cipher = {}): { private: string; public: string } {
  const { privateKey, publicKey } = generateKeyPairSync(
    type as 'rsa',
    {
      modulusLength: 2048,
      namedCurve: 'P-256',
    } as { modulusLength: number },
  )
  return {
    private: privateKey.export({ type: 'pkcs8', format: 'pem', ...cipher }) as string,
    public: publicKey.export({ type: 'spki', format: 'pem' }) as string,
  }
}

describe('bundles', AT_ONCE, () => {
  test('are made with a key and brought in with its other half', async (t) => {
    const { env, path, file } = await filledFile(t)
    const keys = await run(['bundle', 'keygen', '--to', file('k')])
    assert.deepEqual(keys, {
      code: 0,
      stdout: `${file('k.pem')}: signs bundles; keep it where they are made\n${file('k.pub.pem')}: checks bundles; give it to those who import them\n`,
      stderr: '',
    })
    assert.equal(modeOf(file('k.pem')), PRIVATE)
    const { hash } = await using(path, (store) => store.head())
    for (const name of ['x.bundle', 'x.bundle.gz']) {
      const made = await run(['bundle', 'export', '--to', file(name), '--key', file('k.pem')], env)
      assert.equal(made.code, 0, made.stderr)
      assert.match(made.stdout, /^bundled what came after revision 0, up to revision 5: \d+ bytes\n/)
      const args = ['bundle', 'import', '--from', file(name), '--key', file('k.pub.pem')]
      const brought = await run([...args, '-o', 'json'], at(file(`${name}.db`)))
      assert.equal(brought.code, 0, brought.stderr)
      const { key, ...told } = JSON.parse(brought.stdout)
      assert.deepEqual(told, { from: 0, revision: 5, hash, revisions: 5, known: 0, source_hash: hash })
      assert.ok(made.stdout.includes(`signed with the key ${key}\n`))
      await assertVerified(file(`${name}.db`))
      assert.equal(modeOf(file(`${name}.db`)), PRIVATE)
      const again = await run(args, at(file(`${name}.db`)))
      assert.match(again.stdout, /^nothing new: this store is at revision 5 already\n/)
      assert.equal(again.code, 0)
    }
  })

  test('do not take along what belongs to one store: remembered answers', async (t) => {
    const { bundle, bring, file } = await withKeys(t)
    await bring(await bundle('x'), 'i.db')
    assert.deepEqual((rowsOf(file('i.db')) as { answers: object[] }).answers, [])
  })

  test('follow one another; an old one, or one too far ahead, is refused and changes nothing', async (t) => {
    const { path, bundle, bring, file } = await withKeys(t)
    const first = await bundle('1')
    await write(path, revision(6, 'b'), revision(7, 'c'))
    const second = await bundle('2', '--since', '5')
    await write(path, revision(8, 'd'))
    const third = await bundle('3', '--since', '7')
    const everything = await bundle('all')
    const refused = async (bundleFile: string, to: string, message: RegExp): Promise<void> => {
      const before = existsSync(file(to)) ? rowsOf(file(to)) : undefined
      await assert.rejects(bring(bundleFile, to), (error: Error) => message.test(error.message))
      assert.deepEqual(existsSync(file(to)) ? rowsOf(file(to)) : undefined, before)
    }
    await refused(second, 'i.db', /i.db: there is no such file/)
    assert.match((await bring(first, 'i.db')).stdout, /^imported revisions 1 to 5\n/)
    await refused(third, 'i.db', /3: starts at revision 7, this store is at 5: export one from 5/)
    assert.match((await bring(second, 'i.db')).stdout, /^imported revisions 6 to 7\n/)
    await refused(first, 'i.db', /1: ends at revision 5, this store is at 7: it is older than what is here/)
    assert.match((await bring(everything, 'i.db')).stdout, /^imported revisions 8 to 8\n/)
    await refused(second, 'i.db', /older than what is here/)
    assert.equal((await bring(third, 'i.db')).code, 0)
    await assertVerified(file('i.db'))
    assert.deepEqual(
      await using(file('i.db'), (store) => store.head()),
      await using(path, (store) => store.head()),
    )
  })

  test('of another history are refused, though they are signed', async (t) => {
    const { bundle, bring, file } = await withKeys(t)
    await write(file('other.db'), revision(1, 'x'))
    const before = rowsOf(file('other.db'))
    await assert.rejects(bring(await bundle('x'), 'other.db'), /another history/)
    await assert.rejects(bring(await bundle('y', '--since', '1'), 'other.db'), /another history/)
    assert.deepEqual(rowsOf(file('other.db')), before)
  })

  test('that were changed in any line are refused, and nothing is written', async (t) => {
    const { bundle, bring, file } = await withKeys(t)
    const all = readFileSync(await bundle('x'), 'utf8')
      .trimEnd()
      .split('\n')
    const kinds = new Set<string>()
    const tried: [string, string[]][] = []
    for (const [i, line] of all.entries()) {
      kinds.add(/^\{"(\w+)"/.exec(line)?.[1] ?? '')
      for (const place of [0.2, 0.5, 0.9].map((share) => Math.floor(line.length * share))) {
        const changed = line.slice(0, place) + (line[place] === '7' ? '8' : '7') + line.slice(place + 1)
        tried.push([`line ${i + 1} changed at ${place}`, all.with(i, changed)])
      }
      tried.push([`cut before line ${i + 1}`, all.slice(0, i)])
      tried.push([`without line ${i + 1}`, all.toSpliced(i, 1)])
      tried.push([`line ${i + 1} twice`, all.toSpliced(i, 0, line)])
      if (i > 0)
        tried.push([
          `lines ${i} and ${i + 1} the other way`,
          all.with(i - 1, line).with(i, all[i - 1] as string),
        ])
    }
    assert.deepEqual([...kinds].sort(), ['changes', 'end', 'format', 'revision', 'signature'])
    for (const [what, lines] of tried) {
      writeFileSync(file('d'), lines.map((line) => `${line}\n`).join(''))
      const { code, stdout } = await bring(file('d'), 'i.db').catch((error: unknown) => {
        // Where the first line is not the header any more, it is no bundle at all.
        assert.ok(error instanceof StreamError, what)
        return { code: 2, stdout: '' }
      })
      assert.ok(
        code === 4 || (code === 2 && /line 1\b|lines 1 |cut before line 1$/.test(what)),
        `${what}: ${code}`,
      )
      assert.equal(stdout, '')
    }
    assert.ok(!existsSync(file('i.db')))
  })

  test('that are not signed by a key that is given are refused', async (t) => {
    const { env, bundle, file, pub } = await withKeys(t)
    const signed = await bundle('x')
    assert.equal((await runHere(['bundle', 'keygen', '--to', file('other')])).code, 0)
    assert.equal((await runHere(['backup', '--to', file('backup')], env)).code, 0)
    const other = file('other.pub.pem')
    const lines = readFileSync(signed, 'utf8').trimEnd().split('\n')
    writeFileSync(file('unsigned'), `${lines.slice(0, -1).join('\n')}\n`)
    const { signature } = JSON.parse(lines.at(-1) as string)
    const resigned = { signature: { ...signature, value: Buffer.alloc(64, 1).toString('base64') } }
    writeFileSync(file('resigned'), `${[...lines.slice(0, -1), JSON.stringify(resigned)].join('\n')}\n`)
    // The signature of another bundle by the same key.
    const elsewhere = readFileSync(await bundle('y', '--since', '2'), 'utf8')
      .trimEnd()
      .split('\n')
    writeFileSync(file('borrowed'), `${[...lines.slice(0, -1), elsewhere.at(-1)].join('\n')}\n`)
    for (const [from, key, message] of [
      [signed, other, /is signed with the key [0-9a-f]{64}, which is none of the given/],
      [file('unsigned'), pub, /is not signed/],
      [file('backup'), pub, /is not signed/],
      [file('resigned'), pub, /signature does not hold/],
      [file('borrowed'), pub, /signature does not hold/],
    ] as const) {
      const refused = await run(['bundle', 'import', '--from', from, '--key', key], at(file('i.db')))
      assert.match(refused.stderr, message)
      assert.deepEqual({ code: refused.code, stdout: refused.stdout }, { code: 4, stdout: '' })
    }
    assert.ok(!existsSync(file('i.db')))
    const args = ['bundle', 'import', '--from', signed, '--key', other, '--key', pub]
    assert.equal((await run(args, at(file('i.db')))).code, 0)
  })

  test('take keys as openssl makes them, and tell what is wrong with others', async (t) => {
    const { env, bundle, file, key, pub } = await withKeys(t)
    const signed = await bundle('x')
    for (const type of ['rsa', 'ec', 'ed448'] as const) {
      const pem = pemOf(type)
      writeFileSync(file(`${type}.pem`), pem.private)
      writeFileSync(file(`${type}.pub.pem`), pem.public)
    }
    writeFileSync(file('locked.pem'), pemOf('ed25519', { cipher: 'aes-256-cbc', passphrase: 'x' }).private)
    writeFileSync(file('noise.pem'), 'not a key')
    const making = (path: string): string[] => ['bundle', 'export', '--to', file('y'), '--key', path]
    const bringing = (path: string): string[] => ['bundle', 'import', '--from', signed, '--key', path]
    await assertBadUse({ ...env }, [
      [making(file('none.pem')), /none.pem: there is no such file \(ENOENT\)/],
      [making(file('noise.pem')), /noise.pem: is not a key in PEM/],
      [making(file('rsa.pem')), /rsa.pem: is a key of rsa, not of Ed25519/],
      [making(file('ec.pem')), /is a key of ec, not of Ed25519/],
      [making(file('ed448.pem')), /is a key of ed448, not of Ed25519/],
      [making(file('locked.pem')), /locked.pem: is encrypted: decrypt it/],
      [making(pub), /k.pub.pem: is a public key/],
      [bringing(key), /k.pem: is a private key/],
      [bringing(file('locked.pem')), /locked.pem: is a private key/],
      [bringing(file('rsa.pub.pem')), /is a key of rsa/],
      [bringing(file('noise.pem')), /is not a key in PEM/],
      [bringing(file('none.pem')), /there is no such file/],
    ])
    assert.ok(!existsSync(file('y')))
    writeFileSync(file('half.pub.pem'), 'somebody else’s')
    await assertBadUse({}, [
      [['bundle', 'keygen', '--to', file('k')], /k.pem: is there already, and keys are not overwritten/],
      [['bundle', 'keygen', '--to', file('half')], /half.pub.pem: is there already/],
      [['bundle', 'keygen', '--to', file('none/k')], /the keys cannot be written: ENOENT/],
    ])
    assert.ok(!existsSync(file('half.pem')))
    const pair = pemOf('ed25519')
    writeFileSync(file('openssl.pem'), pair.private)
    writeFileSync(file('openssl.pub.pem'), pair.public)
    assert.equal((await runHere(making(file('openssl.pem')), env)).code, 0)
    const args = ['bundle', 'import', '--from', file('y'), '--key', file('openssl.pub.pem')]
    assert.equal((await runHere(args, at(file('i.db')))).code, 0)
  })

  test('refuse what they are asked for wrongly', async (t) => {
    const { env, bundle, file, key, pub } = await withKeys(t)
    const signed = await bundle('x')
    const making = ['bundle', 'export', '--to', file('y'), '--key', key]
    await assertBadUse(env, [
      [['bundle'], /no command "bundle ": export, import or keygen/],
      [['bundle', 'send'], /no command "bundle send"/],
      [['bundle', 'keygen'], /--to is required/],
      [['bundle', 'export', '--key', key], /--to is required/],
      [['bundle', 'export', '--to', file('y')], /--key is required/],
      [[...making, '--since', '-1'], /argument.*ambiguous|--since must be a revision/],
      [[...making, '--since', 'x'], /--since must be a revision such as 120, not "x"/],
      [[...making, '--selector', 'a=('], /--selector is not a selector|--selector holds/],
      [['bundle', 'import', '--key', pub], /--from is required/],
      [['bundle', 'import', '--from', signed], /--key is required/],
      [['bundle', 'import', '--from', file('none'), '--key', pub], /there is no such file/],
      [['restore', '--from', signed], /is a bundle and no backup: bring it in with "bundle import"/],
    ])
    await assert.rejects(
      runHere([...making, '--since', '9'], env),
      /source is at revision 5, before revision 9/,
    )
    assert.ok(!existsSync(file('y')))
  })

  test('go on after an import was killed', async (t) => {
    const { path, env, file } = await longFile(t)
    assert.equal((await runHere(['bundle', 'keygen', '--to', file('k')])).code, 0)
    assert.equal(
      (await runHere(['bundle', 'export', '--to', file('x'), '--key', file('k.pem')], env)).code,
      0,
    )
    const target = file('i.db')
    const args = ['bundle', 'import', '--from', file('x'), '--key', file('k.pub.pem')]
    const reached = await killAfterSome(args, at(target), () => headOf(target))
    const { code, stdout } = await run(args, at(target))
    assert.equal(code, 0)
    assert.ok(stdout.startsWith(`imported revisions ${reached + 1} to ${LONG}\n`), stdout)
    assert.deepEqual(rowsOf(target), rowsOf(path))
  })

  test('with a selector serve its clusters as the whole does, and 404 to all others, at every step', async (t) => {
    const { service, path, file } = await fleetService(t)
    assert.equal((await runHere(['bundle', 'keygen', '--to', file('k')])).code, 0)
    const writes: [string, string, object?][] = [
      ['PATCH', '/platform_components/a', { oci_tag: 'v9' }],
      ['PATCH', '/clusters/two', { environment: 'dev', namespaces: [{ id: 'team-b' }] }],
      [
        'POST',
        '/clusters',
        { id: 'three', cluster_name: 'three', cluster_dns: 'three.k8s.example.com', environment: 'prod' },
      ],
      ['PATCH', '/clusters/one', { environment: 'prod' }],
      ['DELETE', '/clusters/two?confirm=removals'],
      ['PATCH', '/clusters/one', { environment: 'dev' }],
    ]
    const served: string[][] = []
    for (let step = 0; step <= writes.length; step++) {
      const since = String(headOf(file('part.db')))
      const made = [
        'bundle',
        'export',
        '--to',
        file('x'),
        '--key',
        file('k.pem'),
        '--since',
        since,
        '--selector',
        'environment=dev',
      ]
      assert.equal((await runHere(made, at(path))).code, 0)
      const { code, stderr } = await runHere(
        ['bundle', 'import', '--from', file('x'), '--key', file('k.pub.pem')],
        at(file('part.db')),
      )
      assert.equal(code, 0, stderr)
      const store = openSqliteStore({ path: file('part.db'), write: false })
      const part = await startService({ store, mode: 'read-only', fleet: {} })
      const [whole, some] = [await answersOf(service), await answersOf(part)]
      await part.stop()
      for (const [poll, answer] of Object.entries(some))
        if (answer !== 404) assert.deepEqual(answer, whole[poll], poll)
      served.push(['one', 'two', 'three'].filter((name) => some[`${name}/namespaces`] !== 404))
      const [method, url, body] = writes[step] ?? []
      if (!method || !url) break
      const answer = await service.call(method, url, { body: body as never })
      assert.ok(answer.status < 300, answer.text)
    }
    assert.deepEqual(served, [
      ['one'],
      ['one'],
      ['one', 'two'],
      ['one', 'two'],
      ['two'],
      ['two'],
      ['one', 'two'],
    ])
    await assertVerified(file('part.db'))
  })
})

describe('a file that is read twice', () => {
  test('gives the same lines again, packed or not', async (t) => {
    const folder = temporaryFolder(t)
    const lines = Array.from({ length: 4000 }, (_, i) => `{"line":${i},"text":"é${'x'.repeat(400)}"}`)
    const text = `${lines.join('\n')}\n`
    for (const [name, content] of [
      ['plain', text],
      ['packed', gzipSync(text)],
    ] as const) {
      writeFileSync(join(folder, name), content)
      const file = await openLines(join(folder, name))
      for (let time = 0; time < 2; time++) {
        const found: string[] = []
        for await (const line of file.lines()) found.push(line)
        assert.deepEqual(found, lines)
      }
      await file.close()
    }
  })

  test('is given up when it was changed, cut or added to in between', async (t) => {
    const path = join(temporaryFolder(t), 'x')
    const text = `${'abcdefg'.repeat(100)}\n`.repeat(3000)
    for (const change of [
      () => writeFileSync(path, `${text.slice(0, -3)}x\n`.padEnd(text.length, '\n')),
      () => writeFileSync(path, text.slice(0, 8000)),
      () => appendFileSync(path, 'more\n'),
    ]) {
      writeFileSync(path, text)
      const file = await openLines(path)
      const read = async (): Promise<number> => {
        let count = 0
        for await (const _line of file.lines()) count++
        return count
      }
      assert.equal(await read(), 3000)
      change()
      await assert.rejects(read(), /was changed while it was read/)
      await file.close()
    }
  })
})

test('the program tells of all of them in its help', async () => {
  const { stdout } = await run(['--help'])
  for (const part of [
    'backup --to',
    'restore --from',
    'copy --from',
    'bundle keygen',
    'bundle export',
    'bundle import',
  ])
    assert.ok(stdout.includes(`flux-resourceset ${part}`), part)
})
