import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { runStoreCommand } from '../src/admin/store-commands.ts'
import { UsageProblem } from '../src/base/usage-problem.ts'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import { StoreError } from '../src/store/store.ts'
import { cli } from './cli-process.ts'
import { temporaryPostgres } from './postgres-server.ts'
import { COMPILED, MAIN, type ServiceProcess, spawnService, temporaryFolder } from './service.ts'

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'))

/** Starting a process is most of the work, and no test here knows of another. */
const AT_ONCE = { concurrency: 4 }

interface Run {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the program with these arguments and nothing else in its environment, until it ends. */
async function runProcess(args: readonly string[], env: Record<string, string> = {}): Promise<Run> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...COMPILED, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 30_000,
  })
  const [stdout, stderr] = [child.stdout.toArray(), child.stderr.toArray()]
  const [code] = (await once(child, 'close')) as [number | null]
  const text = async (chunks: Promise<Buffer[]>) => Buffer.concat(await chunks).toString('utf8')
  return { code, stdout: await text(stdout), stderr: await text(stderr) }
}

/** The same inside this process, for what is no different there. */
async function run([name = '', ...args]: readonly string[], env: Record<string, string> = {}): Promise<Run> {
  let stdout = ''
  try {
    const code = await runStoreCommand(name, args, env, (line) => {
      stdout += `${line}\n`
    })
    return { code: code ?? null, stdout, stderr: '' }
  } catch (error) {
    if (!(error instanceof UsageProblem) && !(error instanceof StoreError)) throw error
    const problems = error instanceof UsageProblem ? error.problems : [error.message]
    return { code: 2, stdout, stderr: problems.map((problem) => `flux-resourceset: ${problem}\n`).join('') }
  }
}

/** So many hours into the year. */
const hour = (n: number): string => new Date(Date.UTC(2026, 0, 1, n)).toISOString()

/** A file with five revisions, an hour from one to the next, and three documents. */
async function filledFile(t: TestContext) {
  const folder = temporaryFolder(t)
  const path = join(folder, 'fleet.db')
  const env = { DATABASE_URL: `sqlite://${path}` }
  const store = openSqliteStore({ path, write: true })
  const hashes: string[] = []
  for (let base = 0; base < 5; base++) {
    const ids = base === 0 ? ['a', 'b', 'c'] : ['a']
    await store.commit(base, {
      time: hour(base + 1),
      actor: 'writer',
      message: null,
      request_id: `r${base}`,
      client_address: null,
      operation: 'put namespaces',
      changes: ids.map((id) => ({
        type: 'namespaces',
        id,
        after: { json: JSON.stringify({ id, labels: { base } }), deleted: false },
      })),
    })
    const [entry] = await store.history({ limit: 1, changeLimit: 0 })
    hashes.push(entry?.hash ?? '')
  }
  await store.close()
  return { folder, path, env, hashes }
}

function tamper(path: string, sql: string): void {
  const db = new DatabaseSync(path)
  db.exec(sql)
  db.close()
}

/** All rows of a file. */
function rowsOf(path: string): object {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    const tables = ['head', 'documents', 'revisions', 'changes', 'anchor', 'answers']
    return Object.fromEntries(
      tables.map((table) => [table, db.prepare(`SELECT * FROM ${table} ORDER BY rowid`).all()]),
    )
  } finally {
    db.close()
  }
}

/** Bad use is told on stderr alone. */
function assertRefused({ code, stdout, stderr }: Run, message: RegExp): void {
  assert.match(stderr, message)
  for (const line of stderr.trimEnd().split('\n')) assert.match(line, /^flux-resourceset: /)
  assert.equal(stdout, '')
  assert.equal(code, 2)
}

/** The same for many at once, without a process each: what becomes of a UsageProblem is the same for all. */
async function assertBadUse(
  command: string,
  env: Record<string, string>,
  cases: readonly (readonly [args: readonly string[], message: RegExp])[],
): Promise<void> {
  for (const [args, message] of cases) {
    await assert.rejects(
      runStoreCommand(command, args, env, (line) => assert.fail(`printed ${line}`)),
      (error: Error) => error instanceof UsageProblem && message.test(error.message),
      [command, ...args].join(' '),
    )
  }
}

const EDITED = `UPDATE revisions SET message = 'forged' WHERE revision = 2`

describe('the program', AT_ONCE, () => {
  test('tells how it is used, without any settings', async () => {
    const ways = [['--help'], ['-h'], ['help'], ['backup', '--help'], ['bundle', 'export', '-h']]
    const [help, ...same] = await Promise.all(ways.map((args) => runProcess(args)))
    assert.ok(help)
    assert.deepEqual({ code: help.code, stderr: help.stderr }, { code: 0, stderr: '' })
    assert.match(help.stdout, /^Usage:$/m)
    for (const part of ['verify', 'prune-history', '--before', '--dry-run', '-o json', '--version']) {
      assert.ok(help.stdout.includes(part), `it tells of ${part}`)
    }
    for (const other of same) assert.deepEqual(other, help)
  })

  test('tells its version, without any settings', async () => {
    assert.deepEqual(await runProcess(['--version']), { code: 0, stdout: `${version}\n`, stderr: '' })
  })

  test('refuses a command that it does not know, and points to the help', async () => {
    assertRefused(await runProcess(['nonsense']), /there is no command "nonsense": see --help/)
    assertRefused(await runProcess(['--verify']), /there is no command "--verify": see --help/)
  })
})

describe('verify', AT_ONCE, () => {
  test('says in words that a history is whole, and exits with 0', async (t) => {
    const { env, hashes } = await filledFile(t)
    assert.deepEqual(await runProcess(['verify'], env), {
      code: 0,
      stdout: `verified: 5 revisions (1 to 5) and 3 documents\nhash of revision 5: ${hashes[4]}\n`,
      stderr: '',
    })
  })

  test('says the same as JSON', async (t) => {
    const { env, hashes } = await filledFile(t)
    const [answer, same] = await Promise.all(
      ['-o', '--output'].map((option) => run(['verify', option, 'json'], env)),
    )
    assert.ok(answer)
    assert.deepEqual({ code: answer.code, stderr: answer.stderr }, { code: 0, stderr: '' })
    assert.deepEqual(JSON.parse(answer.stdout), {
      verified: true,
      from: 1,
      to: 5,
      hash: hashes[4],
      revisions: 5,
      documents: 3,
      anchor: null,
      problems: [],
    })
    assert.deepEqual(same, answer)
  })

  test('changes nothing in the file', async (t) => {
    const { path, env } = await filledFile(t)
    const before = readFileSync(path)
    assert.equal((await run(['verify'], env)).code, 0)
    assert.ok(before.equals(readFileSync(path)))
  })

  test('verifies a store without a single revision', async (t) => {
    const path = join(temporaryFolder(t), 'empty.db')
    await openSqliteStore({ path, write: true }).close()
    assert.deepEqual(await run(['verify'], { DATABASE_URL: `sqlite://${path}` }), {
      code: 0,
      stdout: 'verified: no revisions after 0 and 0 documents\nhash of revision 0: none\n',
      stderr: '',
    })
  })

  test('names what was tampered with, and exits with 4', async (t) => {
    const { path, env } = await filledFile(t)
    tamper(path, `${EDITED}; DELETE FROM documents WHERE id = 'c'`)
    const problems = ['revision 2 is not what it was: its hash is another', 'namespaces/c is missing']
    assert.deepEqual(await runProcess(['verify'], env), {
      code: 4,
      stdout: `not verified:\n${problems.map((problem) => `  ${problem}\n`).join('')}`,
      stderr: '',
    })
    const { code, stdout } = await runProcess(['verify', '-o', 'json'], env)
    assert.equal(code, 4)
    const verification = JSON.parse(stdout)
    assert.equal(verification.verified, false)
    assert.deepEqual(verification.problems, problems)
  })

  test('refuses arguments that it does not know', async (t) => {
    const { env } = await filledFile(t)
    assertRefused(await runProcess(['verify', '-o', 'yaml'], env), /-o must be json, not "yaml"/)
    await assertBadUse('verify', env, [
      [['-o'], /-o/],
      [['--before', '2026-01-01'], /--before/],
      [['--dry-run'], /--dry-run/],
      [['everything'], /everything/],
    ])
  })
})

describe('migrate', AT_ONCE, () => {
  test('makes a store, and says so when it is up to date', async (t) => {
    for (const url of [`sqlite://${join(temporaryFolder(t), 'new.db')}`, await temporaryPostgres(t)]) {
      const env = { DATABASE_URL: url }
      const first = await run(['migrate'], env)
      assert.match(first.stdout, /^the schema is at version \d+ now: it was at none\n$/, first.stderr)
      const again = await run(['migrate'], env)
      assert.match(again.stdout, /^the schema is at version \d+ already\n$/)
      const { from, to } = JSON.parse((await run(['migrate', '-o', 'json'], env)).stdout)
      assert.ok(from > 0 && from === to)
      assert.match((await run(['verify'], env)).stdout, /^verified: no revisions after 0 and 0 documents/)
    }
  })

  test('refuses what cannot be brought up to date', async (t) => {
    const { env } = await filledFile(t)
    assertRefused(await run(['migrate'], { DATABASE_URL: `${env.DATABASE_URL}?mode=ro` }), /mode=ro/)
    assertRefused(await run(['migrate'], { STORE_BACKEND: 'memory' }), /in memory/)
    const away = { DATABASE_URL: 'postgres://fleet:hidden@127.0.0.1:1/fleet' }
    const { code, stderr } = await run(['migrate'], away)
    assert.equal(code, 2)
    assert.equal(stderr, 'flux-resourceset: the database refuses connections\n')
  })
})

describe('prune-history', AT_ONCE, () => {
  const anchorOf = (path: string) => (rowsOf(path) as { anchor: object[] }).anchor.map((row) => ({ ...row }))

  test('gives up what is from before a time, says so, and the rest verifies', async (t) => {
    const { path, env, hashes } = await filledFile(t)
    assert.deepEqual(await run(['prune-history', '--before', '2026-01-01T04:00:00Z'], env), {
      code: 0,
      stdout:
        `pruned 3 revisions, up to revision 3 of ${hour(3)}\n` +
        `the history is verifiable from there on: anchor ${hashes[2]}\n`,
      stderr: '',
    })
    const [anchor] = anchorOf(path)
    const { code, stdout } = await run(['verify', '-o', 'json'], env)
    assert.equal(code, 0)
    assert.deepEqual(JSON.parse(stdout), {
      verified: true,
      from: 4,
      to: 5,
      hash: hashes[4],
      revisions: 2,
      documents: 3,
      anchor,
      problems: [],
    })
    const verified = await run(['verify'], env)
    assert.match(verified.stdout, /^verified: 2 revisions \(4 to 5\) and 3 documents\n/)
  })

  test('says the same as JSON, and the next time that there is nothing to give up', async (t) => {
    const { path, env } = await filledFile(t)
    const args = ['prune-history', '--before', '2026-01-01T05:00:00+02:00']
    const first = await run([...args, '-o', 'json'], env)
    const [anchor] = anchorOf(path)
    assert.deepEqual(JSON.parse(first.stdout), { dry_run: false, revisions: 2, anchor })
    assert.equal((anchor as { revision: number }).revision, 2)
    const rows = rowsOf(path)
    const second = await run([...args, '-o', 'json'], env)
    assert.equal(second.code, 0)
    assert.deepEqual(JSON.parse(second.stdout), { dry_run: false, revisions: 0, anchor })
    assert.deepEqual(await run(args, env), {
      code: 0,
      stdout: `no revision is from before ${hour(3)}: nothing to prune\n`,
      stderr: '',
    })
    assert.deepEqual(rowsOf(path), rows)
  })

  test('takes a day for its first moment in UTC', async (t) => {
    const { env } = await filledFile(t)
    const early = await run(['prune-history', '--before', '2026-01-01', '-o', 'json'], env)
    assert.deepEqual(JSON.parse(early.stdout), { dry_run: false, revisions: 0, anchor: null })
    const late = await run(['prune-history', '--before=2026-01-02', '-o', 'json'], env)
    const { revisions, anchor } = JSON.parse(late.stdout)
    assert.deepEqual([revisions, anchor.revision], [5, 5])
  })

  test('only says what it would do on a dry run, and changes not a byte', async (t) => {
    const { path, env, hashes } = await filledFile(t)
    const before = readFileSync(path)
    const args = ['prune-history', '--before', hour(4)]
    assert.deepEqual(await run([...args, '--dry-run'], env), {
      code: 0,
      stdout:
        `would prune 3 revisions, up to revision 3 of ${hour(3)}\n` +
        `the history is verifiable from there on: anchor ${hashes[2]}\n`,
      stderr: '',
    })
    const tried = await run([...args, '--dry-run', '-o', 'json'], env)
    assert.ok(before.equals(readFileSync(path)))
    assert.deepEqual(anchorOf(path), [])
    const done = await run([...args, '-o', 'json'], env)
    const { dry_run, ...what } = JSON.parse(tried.stdout)
    assert.equal(dry_run, true)
    assert.deepEqual(JSON.parse(done.stdout), { dry_run: false, ...what })
  })

  test('gives up nothing of a history that is not whole, and exits with 4', async (t) => {
    const { path, env } = await filledFile(t)
    tamper(path, EDITED)
    const rows = rowsOf(path)
    for (const more of [[], ['--dry-run']]) {
      const { code, stdout, stderr } = await run(['prune-history', '--before', hour(4), ...more], env)
      assert.deepEqual({ code, stderr }, { code: 4, stderr: '' })
      assert.match(stdout, /^nothing was pruned/)
      assert.match(stdout, /^ {2}revision 2 is not what it was/m)
    }
    assert.deepEqual(rowsOf(path), rows)
  })

  test('refuses to run without a time that it understands, and gives up nothing', async (t) => {
    const { path, env } = await filledFile(t)
    const rows = rowsOf(path)
    assertRefused(await run(['prune-history'], env), /--before is required/)
    await assertBadUse('prune-history', env, [
      [['--before', ''], /--before is required/],
      [['--before'], /--before/],
      [['--before', 'yesterday'], /--before must be a date .*, not "yesterday"/],
      [['--before', '2026-13-01'], /not "2026-13-01"/],
      [['--before', '2026'], /not "2026"/],
      [['--before', '2026-01-01T04:00:00'], /not "2026-01-01T04:00:00"/],
      [['--before', hour(4), '-o', 'xml'], /-o must be json, not "xml"/],
      [['--before', hour(4), '--force'], /--force/],
      [['--before', hour(4), 'now'], /now/],
      [['--before', hour(4), '--dry-run=no'], /--dry-run/],
    ])
    assert.deepEqual(rowsOf(path), rows)
  })
})

describe('a store that the commands cannot work on', AT_ONCE, () => {
  const COMMANDS = [['verify'], ['prune-history', '--before', '2026-01-01']]

  async function assertAllRefused(env: Record<string, string>, message: RegExp): Promise<void> {
    for (const refused of await Promise.all(COMMANDS.map((args) => run(args, env)))) {
      assertRefused(refused, message)
    }
  }

  test('is one that is not there, and is not made', async (t) => {
    const folder = temporaryFolder(t)
    await assertAllRefused(
      { DATABASE_URL: `sqlite://${join(folder, 'none.db')}?mode=rwc` },
      /there is no such file/,
    )
    assert.deepEqual(readdirSync(folder), [])
  })

  test('is one in memory, or of a kind that is not known', async () => {
    assertRefused(await run(['verify'], { STORE_BACKEND: 'memory' }), /a store in memory lasts as long/)
    const url = { DATABASE_URL: 'sqlite://?mode=never' }
    assertRefused(await run(['verify'], url), /DATABASE_URL must be like .*\n.*mode must be rwc, rw or ro/)
    for (const [command = '', ...args] of COMMANDS) {
      await assertBadUse(command, { STORE_BACKEND: 'memory' }, [[args, /a store in memory/]])
      await assertBadUse(command, { STORE_BACKEND: 'paper' }, [[args, /STORE_BACKEND must be one of/]])
      await assertBadUse(command, { DATABASE_URL: 'sqlite://' }, [[args, /DATABASE_URL must be like/]])
    }
  })

  test('is one that has to be brought up to date, which looking at it does not do', async (t) => {
    const path = join(temporaryFolder(t), 'fleet.db')
    writeFileSync(path, '')
    const env = { DATABASE_URL: `sqlite://${path}` }
    assertRefused(await run(['verify'], env), /brought up to date first/)
    const dryRun = ['prune-history', '--before', '2026-01-01', '--dry-run']
    assertRefused(await run(dryRun, env), /brought up to date first/)
    assert.equal(readFileSync(path).length, 0)
  })

  test('is a file of something else, which is left alone', async (t) => {
    const path = join(temporaryFolder(t), 'notes.txt')
    const notes = 'not a database '.repeat(1000)
    writeFileSync(path, notes)
    await assertAllRefused(
      { DATABASE_URL: `sqlite://${path}` },
      /notes\.txt: the file is not a SQLite database/,
    )
    assert.equal(readFileSync(path, 'utf8'), notes)
    assert.ok(!existsSync(`${path}-wal`))
  })
})

describe('beside a running service', AT_ONCE, () => {
  async function start(t: TestContext): Promise<{ service: ServiceProcess; env: Record<string, string> }> {
    const env = { DATABASE_URL: `sqlite://${join(temporaryFolder(t), 'fleet.db')}` }
    const service = await spawnService({ ...env, API_MODE: 'crud' })
    t.after(() => service.stop('SIGKILL'))
    return { service, env }
  }

  /** Creates a namespace and changes it, one revision after the other, each at a time of its own. */
  async function writeNamespace(service: ServiceProcess, revisions: number): Promise<string[]> {
    const times: string[] = []
    for (let n = 1; n <= revisions; n++) {
      const body = { id: 'team', labels: { n: String(n) } }
      const { status, text } = await (n === 1
        ? service.call('POST', '/namespaces', { body })
        : service.call('PUT', '/namespaces/team', { body }))
      assert.equal(status, n === 1 ? 201 : 200, text)
      times.push((await service.call('GET', `/revisions/${n}`)).body.time)
      await sleep(3)
    }
    return times
  }

  test('a history is verified', async (t) => {
    const { service, env } = await start(t)
    await writeNamespace(service, 3)
    const { code, stdout } = await runProcess(['verify', '-o', 'json'], env)
    assert.equal(code, 0, stdout)
    assert.deepEqual(JSON.parse(stdout), (await service.call('GET', '/revisions/verify')).body)
    assert.equal(JSON.parse(stdout).to, 3)
  })

  test('what is given up is gone for the service, and the rest is as it was', async (t) => {
    const { service, env } = await start(t)
    const times = await writeNamespace(service, 6)
    const at = (moment: string | number) =>
      service.call('GET', `/namespaces/team?at=${encodeURIComponent(moment)}`)
    assert.equal((await at(2)).body.labels.n, '2')

    const { code, stdout } = await runProcess(
      ['prune-history', '--before', times[3] as string, '-o', 'json'],
      env,
    )
    assert.equal(code, 0, stdout)
    const { revisions, anchor } = JSON.parse(stdout)
    assert.deepEqual([revisions, anchor.revision, anchor.time], [3, 3, times[2]])

    for (const moment of [0, 1, 2, times[0] as string, times[1] as string]) {
      const { status, body } = await at(moment)
      assert.deepEqual([status, body.error], [410, 'gone'], String(moment))
      assert.ok(body.message.includes(`history is kept from revision 3 (${times[2]}) on`), body.message)
    }
    for (const n of [3, 4, 5, 6]) {
      for (const moment of [n, times[n - 1] as string]) {
        const { status, body } = await at(moment)
        assert.deepEqual([status, body.labels?.n], [200, String(n)], String(moment))
      }
    }
    assert.equal((await service.call('GET', '/revisions/2')).status, 410)
    assert.equal((await service.call('GET', '/revisions/4')).status, 200)
    const { body: list } = await service.call('GET', '/revisions')
    assert.deepEqual(
      list.map(({ revision }: { revision: number }) => revision),
      [6, 5, 4],
    )
    const { body: verification } = await service.call('GET', '/revisions/verify')
    assert.deepEqual(
      [verification.verified, verification.from, verification.to, verification.anchor],
      [true, 4, 6, anchor],
    )

    const { status, headers } = await service.call('PUT', '/namespaces/team', { body: { id: 'team' } })
    assert.deepEqual([status, headers['x-revision']], [200, '7'])
    assert.equal((await service.call('GET', '/revisions/verify')).body.verified, true)
    assert.match((await runProcess(['verify'], env)).stdout, /^verified: 4 revisions \(4 to 7\)/)
  })

  test('everything can be given up, and the service goes on', async (t) => {
    const { service, env } = await start(t)
    await writeNamespace(service, 3)
    assert.equal((await runProcess(['prune-history', '--before', '2999-01-01'], env)).code, 0)
    assert.deepEqual((await service.call('GET', '/revisions')).body, [])
    assert.equal((await service.call('GET', '/namespaces/team?at=3')).status, 200)
    const written = await service.call('PUT', '/namespaces/team', { body: { id: 'team' } })
    assert.equal(written.headers['x-revision'], '4', written.text)
    const { body } = await service.call('GET', '/revisions/verify')
    assert.deepEqual([body.verified, body.from, body.to], [true, 4, 4])
    assert.equal((await runProcess(['verify'], env)).code, 0)
  })

  test('writes go on while a history is verified and given up', async (t) => {
    const { service, env } = await start(t)
    const times = await writeNamespace(service, 4)
    let stop = false
    const statuses: number[] = []
    async function writeOn(): Promise<void> {
      for (let n = 0; !stop; n++) {
        const { status } = await service.call('POST', '/namespaces', { body: { id: `more-${n}` } })
        statuses.push(status)
      }
    }
    const writing = writeOn()
    let runs: Run[]
    try {
      runs = await Promise.all([
        runProcess(['verify'], env),
        runProcess(['prune-history', '--before', times[2] as string, '--dry-run'], env),
      ])
      runs.push(
        await runProcess(['prune-history', '--before', times[2] as string], env),
        await runProcess(['verify'], env),
      )
    } finally {
      stop = true
      await writing
    }
    for (const { code, stdout, stderr } of runs) assert.equal(code, 0, stdout + stderr)
    assert.ok(statuses.length > 10, `${statuses.length} writes`)
    assert.deepEqual([...new Set(statuses)], [201])
    const { body } = await service.call('GET', '/revisions/verify')
    assert.deepEqual([body.verified, body.from, body.to], [true, 3, 4 + statuses.length])
  })

  test('tampering is found by the service and by the command alike', async (t) => {
    const { service, env } = await start(t)
    await writeNamespace(service, 3)
    tamper(env.DATABASE_URL?.replace('sqlite://', '') as string, EDITED)
    const { status, body } = await service.call('GET', '/revisions/verify')
    assert.deepEqual([status, body.verified], [200, false])
    const { code, stdout } = await runProcess(['verify', '-o', 'json'], env)
    assert.equal(code, 4)
    assert.deepEqual(JSON.parse(stdout), body)
    const asked = await cli(['verify', '-o', 'json'], { url: service.url })
    assert.deepEqual([asked.code, JSON.parse(asked.stdout)], [code, body])
  })
})
