import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { temporaryDatabase } from '../../../test/every-store.ts'
import { pruneLog, verifyLog } from '../../transfer/verify-log.ts'
import {
  changedAfter,
  committed,
  loadAll,
  minute,
  other,
  put,
  recordUses,
  remove,
  revisionOf,
  usesOf,
} from '../fixtures-for-contract.ts'
import { openMemoryStore } from '../memory.ts'
import { type NewRevision, type Store, StoreError } from '../store.ts'
import { storeContract } from '../store-contract.ts'
import { migrate } from './sqlite-database.ts'

const ALL = { limit: 1000, changeLimit: 1000 }
const UNFIT = /damaged|not a SQLite database|not readable/

/** Runs in a thread: says that it is there, then opens the store as a starting process would. */
const START = `
  const { parentPort, workerData: { module, path } } = require('node:worker_threads')
  import(module).then(async ({ openSqliteStore }) => {
    parentPort.postMessage('here')
    const store = openSqliteStore({ path, write: false })
    await store.head()
    await store.close()
  })`

describe('the mode of the file', () => {
  const FILES = ['', '-wal', '-shm']
  const modesOf = (path: string): string[] =>
    FILES.map((end) => (statSync(path + end).mode & 0o777).toString(8))

  test('lets nobody but its owner read what is in it and beside it, whatever new files are like otherwise', async (t) => {
    for (const umask of [0o000, 0o022, 0o077]) {
      const { path, open } = temporaryDatabase(t)
      const usual = process.umask(umask)
      try {
        const store = open()
        await store.commit(0, revisionOf(put('a', {})))
        assert.deepEqual(modesOf(path), ['600', '600', '600'])
      } finally {
        process.umask(usual)
      }
    }
  })

  test('stays what somebody made it, and files beside it follow', async (t) => {
    const { path, open } = temporaryDatabase(t)
    writeFileSync(path, '')
    chmodSync(path, 0o640)
    const store = open()
    await store.commit(0, revisionOf(put('a', {})))
    assert.deepEqual(modesOf(path), ['640', '640', '640'])
  })
})

test('one that starts while another is making the file waits for it', async (t) => {
  const { path } = temporaryDatabase(t)
  const other = new DatabaseSync(path)
  other.exec('BEGIN IMMEDIATE')
  const workerData = { module: import.meta.resolve('./sqlite.ts'), path }
  const worker = new Worker(START, { eval: true, workerData })
  await once(worker, 'message')
  const exit = once(worker, 'exit')
  await Promise.race([sleep(200), exit.then(() => assert.fail('it did not wait'))])
  other.exec('ROLLBACK')
  other.close()
  assert.deepEqual(await exit, [0])
})

test('one that looks at the file just when another makes the tables takes it for its own', async (t) => {
  const { path, open } = temporaryDatabase(t)
  const empty = new DatabaseSync(path)
  empty.exec('PRAGMA journal_mode = WAL')
  empty.close()
  const prepare = DatabaseSync.prototype.prepare
  let isMade = false
  t.mock.method(DatabaseSync.prototype, 'prepare', function (this: DatabaseSync, sql: string) {
    if (sql.includes('sqlite_schema') && !isMade) {
      isMade = true
      migrate(path)
    }
    return prepare.call(this, sql)
  })
  const store = open()
  assert.equal((await store.head()).revision, 0)
  assert.ok(isMade)
  await store.close()
})

storeContract('SQLite', (t) => temporaryDatabase(t).open())

/** A database of twenty documents over several pages, all in one file. */
async function filledFile(t: TestContext) {
  const database = temporaryDatabase(t)
  const store = database.open()
  for (let base = 0; base < 4; base++) {
    const ids = Array.from({ length: 5 }, (_, i) => `d${base}-${i}`)
    await store.commit(base, revisionOf(...ids.map((id) => put(id, { text: `${id} `.repeat(1500) }))))
  }
  const whole = await loadAll(store)
  await store.close()
  foldLog(database.path)
  return { ...database, whole }
}

function foldLog(path: string): void {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
}

/** What a reader gets of a file: all that is in it, or a refusal. */
async function tryToLoad(open: () => Store) {
  try {
    return { loaded: await loadAll(open()) }
  } catch (error) {
    return { error: error as Error }
  }
}

function assertRefused(error: Error | undefined, message: RegExp): void {
  assert.ok(error instanceof StoreError, `a StoreError, not ${error?.stack}`)
  assert.match(error.message, message)
}

describe('a SQLite file', () => {
  test('keeps documents and log when it is closed and opened again', async (t) => {
    const { open } = temporaryDatabase(t)
    const first = open()
    await first.commit(0, revisionOf(put('a', { n: 1 }), put('b')))
    await first.commit(1, revisionOf(put('a', { n: 1 }, true), remove('b')))
    const [documents, history] = [await loadAll(first), await first.history(ALL)]
    await first.close()
    const second = open()
    assert.deepEqual(await loadAll(second), documents)
    assert.deepEqual(await second.history(ALL), history)
    assert.equal((await second.commit(2, revisionOf(put('c')))).ok, true)
  })

  test('is made together with its folders', async (t) => {
    const { folder, open } = temporaryDatabase(t)
    const path = join(folder, 'some', 'where', 'fleet.db')
    assert.equal((await open({ path }).commit(0, revisionOf(put('a')))).ok, true)
    assert.ok(existsSync(path))
  })

  test('is not made when it may not be: that there is none is said', (t) => {
    const { path, open } = temporaryDatabase(t)
    assert.throws(
      () => open({ mode: 'rw' }),
      (error: Error) => error instanceof StoreError && /there is no such file/.test(error.message),
    )
    assert.ok(!existsSync(path))
  })

  test('is not brought up to date by one that may only read it', (t) => {
    const { path, open } = temporaryDatabase(t)
    writeFileSync(path, '')
    assert.throws(
      () => open({ mode: 'ro', write: false }),
      (error: Error) => error instanceof StoreError && /brought up to date/.test(error.message),
    )
    assert.equal(readFileSync(path).length, 0)
  })

  test('takes no commit once it is closed', async (t) => {
    const { open } = temporaryDatabase(t)
    const store = open()
    await store.close()
    await assert.rejects(async () => store.commit(0, revisionOf(put('a'))), StoreError)
  })
})

describe('two stores on one SQLite file', () => {
  test('see each other’s commits', async (t) => {
    const { open } = temporaryDatabase(t)
    const [one, two] = [open(), open()]
    await one.commit(0, revisionOf(put('a')))
    assert.equal((await two.head()).revision, 1)
    assert.deepEqual(await two.commit(0, revisionOf(put('b'))), { ok: false, head: 1 })
    assert.equal((await two.commit(1, revisionOf(put('b')))).ok, true)
    assert.deepEqual(await loadAll(one), await loadAll(two))
  })

  test('hear of each other’s commits within 250 ms', async (t) => {
    const { open } = temporaryDatabase(t)
    const [writer, reader] = [open(), open({ write: false })]
    let heard = () => {}
    t.after(reader.watch(() => heard()))
    await sleep(150)
    for (let base = 0; base < 8; base++) {
      await sleep(base * 13)
      const moved = new Promise<number>((resolve) => {
        heard = async () => {
          if ((await reader.head()).revision === base + 1) resolve(performance.now())
        }
      })
      await writer.commit(base, revisionOf(put('a', { base })))
      const before = performance.now()
      const delay =
        (await Promise.race([moved, sleep(5000, Number.POSITIVE_INFINITY, { ref: false })])) - before
      assert.ok(delay < 250, `heard after ${delay} ms`)
    }
  })

  test('are quiet when nothing happens, and after the watch is stopped', async (t) => {
    const { open } = temporaryDatabase(t)
    const [writer, reader] = [open(), open()]
    let calls = 0
    const stop = reader.watch(() => {
      calls++
    })
    await sleep(200)
    const atRest = calls
    await sleep(200)
    assert.equal(calls, atRest)
    await writer.commit(0, revisionOf(put('a')))
    await sleep(200)
    assert.ok(calls > atRest)
    stop()
    const stopped = calls
    await writer.commit(1, revisionOf(put('a', { n: 1 })))
    await sleep(200)
    assert.equal(calls, stopped)
  })

  test('tell what the other wrote from what they wrote themselves', async (t) => {
    const { open } = temporaryDatabase(t)
    const [one, two] = [open(), open()]
    const others = () => Promise.all([one, two].map(({ notes }) => notes.othersWrote?.()))
    assert.deepEqual(await others(), [true, true], 'nobody knows what was written before')
    assert.deepEqual(await others(), [false, false])
    await recordUses(one, [{ id: 'a', time: minute(1), address: null }])
    assert.deepEqual(await others(), [false, true])
    assert.deepEqual(await others(), [false, false])
    await committed(two, revisionOf(put('a')))
    assert.deepEqual(await others(), [true, false])
  })

  test('race for one base: one of them wins and the other writes nothing', async (t) => {
    const { open } = temporaryDatabase(t)
    const [one, two] = [open(), open()]
    for (let base = 0; base < 25; base++) {
      const results = await Promise.all([
        one.commit(base, revisionOf(put('one', { base }))),
        two.commit(base, revisionOf(put('two', { base }))),
      ])
      assert.deepEqual(results.map(({ ok }) => ok).sort(), [false, true])
      const [entry] = await one.history({ ...ALL, revision: base + 1 })
      assert.deepEqual(
        entry?.changes.map(({ id }) => id),
        [results[0].ok ? 'one' : 'two'],
      )
    }
    assert.equal((await two.head()).revision, 25)
  })
})

describe('a SQLite file that is not fit for use', () => {
  test('of a newer program is refused, and so is left alone', async (t) => {
    const { path, open } = await filledFile(t)
    const db = new DatabaseSync(path)
    db.exec('PRAGMA user_version = 99')
    db.close()
    const before = readFileSync(path)
    for (const write of [true, false]) {
      const { error } = await tryToLoad(() => open({ write }))
      assertRefused(error, /version 99, newer than/)
    }
    assert.ok(before.equals(readFileSync(path)))
  })

  test('of another program is refused, and so is left alone', async (t) => {
    const { path, open } = temporaryDatabase(t)
    const db = new DatabaseSync(path)
    db.exec('CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES (1)')
    db.close()
    const before = readFileSync(path)
    for (const write of [true, false]) {
      const { error } = await tryToLoad(() => open({ write }))
      assertRefused(error, /another program/)
    }
    assert.ok(before.equals(readFileSync(path)))
  })

  test('that is not SQLite at all is refused, and so is left alone', async (t) => {
    const { path, open } = temporaryDatabase(t)
    const garbage = Buffer.alloc(50_000, 'not a database ')
    writeFileSync(path, garbage)
    for (const write of [true, false]) {
      const { error } = await tryToLoad(() => open({ write }))
      assertRefused(error, /not a SQLite database/)
    }
    assert.ok(garbage.equals(readFileSync(path)))
  })

  test('that is a folder is refused', async (t) => {
    const { folder, open } = temporaryDatabase(t)
    const { error } = await tryToLoad(() => open({ path: folder }))
    assertRefused(error, /cannot be opened/)
  })

  test('that was cut off is refused wherever it was cut, never loaded in part', async (t) => {
    const { folder, path, open, whole } = await filledFile(t)
    const { size } = statSync(path)
    let refused = 0
    const cuts = [100, 8192, 8193, size / 4, size / 2, size - 8192, size - 1].map(Math.floor)
    for (const cut of cuts) {
      const copy = join(folder, `cut-${cut}.db`)
      copyFileSync(path, copy)
      truncateSync(copy, cut)
      const { loaded, error } = await tryToLoad(() => open({ path: copy, write: false }))
      if (error) assertRefused(error, UNFIT)
      else assert.deepEqual(loaded, whole, `cut at ${cut}`)
      if (error) refused++
    }
    assert.ok(refused >= cuts.length - 2, `${refused} of ${cuts.length} were refused`)
  })

  test('with a destroyed page is refused or loaded whole, whichever page it is', async (t) => {
    const { folder, path, open, whole } = await filledFile(t)
    const bytes = readFileSync(path)
    const copy = join(folder, 'flipped.db')
    let refused = 0
    for (let page = 0; page * 8192 < bytes.length; page++) {
      const damaged = Buffer.from(bytes)
      for (let i = page * 8192; i < (page + 1) * 8192; i++) damaged[i] = ~(damaged[i] as number)
      writeFileSync(copy, damaged)
      const { loaded, error } = await tryToLoad(() => open({ path: copy, write: false }))
      if (error) assertRefused(error, UNFIT)
      else assert.deepEqual(loaded, whole, `page ${page}`)
      if (error) refused++
      for (const suffix of ['-wal', '-shm']) rmSync(copy + suffix, { force: true })
    }
    assert.ok(refused > 20, `${refused} pages were refused`)
  })

  test('with a document that is no JSON is refused, naming the document', async (t) => {
    const { path, open } = await filledFile(t)
    const db = new DatabaseSync(path)
    db.exec(`UPDATE documents SET document = '{"id":"d2-' WHERE id = 'd2-3'`)
    db.close()
    const { error } = await tryToLoad(open)
    assertRefused(error, /things "d2-3" is not readable/)
  })

  test('with a damaged write-ahead log never shows a part of a revision', async (t) => {
    const { folder, path, open } = temporaryDatabase(t)
    const store = open()
    const states = [await loadAll(store)]
    for (let base = 0; base < 6; base++) {
      await store.commit(base, revisionOf(...['a', 'b', 'c'].map((id) => put(id, { base }))))
      states.push(await loadAll(store))
    }
    const [main, log] = [readFileSync(path), readFileSync(`${path}-wal`)]
    const copy = join(folder, 'copy.db')
    const seen = new Set<number>()
    for (let at = 0; at < log.length; at += 4001) {
      const damaged = Buffer.from(log)
      damaged[at] = ~(damaged[at] as number)
      writeFileSync(copy, main)
      writeFileSync(`${copy}-wal`, damaged)
      const { loaded, error } = await tryToLoad(() => open({ path: copy, write: false }))
      if (error) assertRefused(error, UNFIT)
      else {
        assert.deepEqual(loaded, states[loaded?.revision as number], `byte ${at}`)
        seen.add(loaded?.revision as number)
      }
      for (const suffix of ['', '-wal', '-shm']) rmSync(copy + suffix, { force: true })
    }
    assert.ok(seen.size > 3, `the damage was felt: ${[...seen]}`)
  })
})

describe('a full disk', () => {
  const large = (id: string) => put(id, { text: 'x'.repeat(100_000) })

  test('refuses a commit in words, and nothing of it is there afterwards', async (t) => {
    const { open } = temporaryDatabase(t)
    const store = open({ maxPages: 60 })
    assert.equal((await store.commit(0, revisionOf(put('a')))).ok, true)
    const [documents, history] = [await loadAll(store), await store.history(ALL)]
    const many = Array.from({ length: 20 }, (_, i) => large(`large-${i}`))
    await assert.rejects(
      async () => store.commit(1, revisionOf(put('a', { changed: true }), put('small'), ...many)),
      (error: Error) => error instanceof StoreError && /the disk is full/.test(error.message),
    )
    assert.equal((await store.head()).revision, 1)
    assert.deepEqual(await loadAll(store), documents)
    assert.deepEqual(await store.history(ALL), history)
  })

  test('still takes what fits, and everything once there is room again', async (t) => {
    const { open } = temporaryDatabase(t)
    const full = open({ maxPages: 60 })
    const many = revisionOf(...Array.from({ length: 20 }, (_, i) => large(`large-${i}`)))
    await assert.rejects(async () => full.commit(0, many), StoreError)
    assert.equal((await full.commit(0, revisionOf(put('a')))).ok, true)
    await full.close()
    const roomy = open()
    assert.equal((await roomy.commit(1, many)).ok, true)
    assert.equal(Object.keys((await loadAll(roomy)).documents).length, 21)
  })
})

describe('a SQLite file opened for reading only', () => {
  test('takes no commit and does not change by a byte', async (t) => {
    const { path, open, whole } = await filledFile(t)
    const before = readFileSync(path)
    const store = open({ write: false })
    const stop = store.watch(() => {})
    assert.deepEqual(await loadAll(store), whole)
    assert.equal((await store.head()).revision, 4)
    assert.equal((await store.history(ALL)).length, 4)
    await assert.rejects(
      async () => store.commit(4, revisionOf(put('a'))),
      (error: Error) => error instanceof StoreError && /reading only/.test(error.message),
    )
    await sleep(120)
    stop()
    assert.deepEqual(await loadAll(store), whole)
    await store.close()
    assert.ok(before.equals(readFileSync(path)))
  })
})

describe('idempotency records in a SQLite file', () => {
  const idempotency = { key: 'k', fingerprint: 'f', time: minute(0), answer: '{"revision":1}' }
  const find = async (store: Store) => ({ ...(await store.idempotency.find('k', minute(1))) })

  test('are still there when it is opened again, and known to other stores', async (t) => {
    const { open } = temporaryDatabase(t)
    const first = open()
    await committed(first, { ...revisionOf(put('a')), idempotency })
    assert.deepEqual(await find(open({ write: false })), idempotency)
    await first.close()
    assert.deepEqual(await find(open()), idempotency)
  })

  test('are not saved when the disk is full', async (t) => {
    const { open } = temporaryDatabase(t)
    const store = open({ maxPages: 60 })
    const many = Array.from({ length: 20 }, (_, i) => put(`large-${i}`, { text: 'x'.repeat(100_000) }))
    await assert.rejects(async () => store.commit(0, { ...revisionOf(...many), idempotency }), StoreError)
    assert.deepEqual(await find(store), {})
  })
})

describe('giving up a part of the log in a SQLite file', () => {
  const six = Array.from({ length: 6 }, (_, i) => ({
    ...revisionOf(put('a', { i }), put(`only-${i}`)),
    time: minute(i + 1),
  }))

  test('is seen by other stores at once, which go on from there', async (t) => {
    const { open } = temporaryDatabase(t)
    const [one, two] = [open(), open()]
    await committed(one, ...six)
    assert.equal((await two.history(ALL)).length, 6)
    assert.ok((await pruneLog(one, minute(5))).ok)
    assert.equal((await two.anchor())?.revision, 4)
    assert.deepEqual(await two.history(ALL), await one.history(ALL))
    await committed(two, revisionOf(put('b')))
    assert.deepEqual((await verifyLog(one)).problems, [])
    assert.equal((await one.history(ALL)).length, 3)
  })

  test('outlasts a restart', async (t) => {
    const { open } = temporaryDatabase(t)
    const first = await committed(open(), ...six)
    assert.ok((await pruneLog(first, minute(7))).ok)
    const [anchor, loaded] = [await first.anchor(), await loadAll(first)]
    await first.close()
    const second = open()
    assert.deepEqual(await second.anchor(), anchor)
    assert.deepEqual(await loadAll(second), loaded)
    await committed(second, revisionOf(put('b')))
    assert.deepEqual((await verifyLog(second)).problems, [])
  })

  test('leaves no trace of what was given up, also when the first attempt was cut short', async (t) => {
    const { path, open } = temporaryDatabase(t)
    const store = await committed(open(), ...six)
    const tried = await pruneLog(store, minute(4), true)
    assert.ok(tried.ok && tried.pruned.anchor)
    const { revision, time, hash, state } = tried.pruned.anchor
    await store.close()
    const db = new DatabaseSync(path)
    t.after(() => db.close())
    // The anchor stands, and only the first changes are gone.
    db.prepare('INSERT INTO anchor VALUES (?, ?, ?, ?)').run(revision, time, hash, state)
    db.exec('DELETE FROM changes WHERE revision = 1')
    const after = open()
    assert.deepEqual(
      (await after.history(ALL)).map((entry) => entry.revision),
      [6, 5, 4],
    )
    assert.deepEqual(await after.history({ ...ALL, documents: [{ type: 'things', id: 'only-1' }] }), [])
    assert.deepEqual(await after.history({ ...ALL, revision: 2 }), [])
    assert.equal(await after.revisionAt(minute(3)), undefined)
    for await (const slice of after.log(0)) assert.ok(slice.revision > 3)
    assert.deepEqual((await verifyLog(after)).problems, [])
    assert.ok((await pruneLog(after, minute(5))).ok)
    assert.deepEqual((await verifyLog(after)).problems, [])
    for (const table of ['changes', 'revisions']) {
      const [row] = db.prepare(`SELECT min(revision) AS first FROM ${table}`).all()
      assert.equal(row?.first, 5, table)
    }
  })

  test('and saving an idempotency record are refused by one that may only read', async (t) => {
    const { open } = temporaryDatabase(t)
    await committed(open(), ...six)
    const reader = open({ write: false })
    const isRefused = (error: Error) => error instanceof StoreError && /reading only/.test(error.message)
    await assert.rejects(async () => pruneLog(reader, minute(4)), isRefused)
    const record = { key: 'k', fingerprint: 'f', time: minute(0), answer: '{}' }
    await assert.rejects(async () => reader.idempotency.save(record), isRefused)
    assert.equal(await reader.anchor(), undefined)
    assert.ok((await pruneLog(reader, minute(4), true)).ok, 'but it may say what it would do')
  })
})

/** What the first version of the schema recorded of these revisions, in a file as it left it. */
function writeVersion1(path: string, revisions: readonly NewRevision[]): void {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; BEGIN')
  db.exec(readFileSync(new URL('../migrations/sqlite-001.sql', import.meta.url), 'utf8'))
  const revision = db.prepare('INSERT INTO revisions VALUES (?, ?, ?, ?, ?, ?)')
  const change = db.prepare('INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
  const read = db.prepare('SELECT document, deleted FROM documents WHERE type = ? AND id = ?')
  const removed = db.prepare('DELETE FROM documents WHERE type = ? AND id = ?')
  const added = db.prepare('INSERT INTO documents VALUES (?, ?, ?, ?, ?)')
  for (const [i, { time, actor, message, request_id, changes }] of revisions.entries()) {
    revision.run(i + 1, time, actor, message, request_id, changes.length)
    for (const [position, { type, id, after }] of changes.entries()) {
      const before = read.get(type, id)
      const deleted = Number(after?.deleted ?? false)
      change.run(
        i + 1,
        position,
        type,
        id,
        before?.document ?? null,
        before?.deleted ?? 0,
        after?.json ?? null,
        deleted,
      )
      removed.run(type, id)
      if (after) added.run(type, id, i + 1, deleted, after.json)
    }
  }
  db.exec(`UPDATE head SET revision = ${revisions.length}; PRAGMA user_version = 1; COMMIT`)
  db.close()
}

describe('a SQLite file of the first version', () => {
  /** What was not recorded then is empty now. */
  const OLD = [
    revisionOf(put('a', { text: 'ü 漢字' }), put('b'), other(put('a'))),
    revisionOf(put('a', { n: 2 }), put('b', {}, true)),
    { ...revisionOf(remove('a'), other(put('a', { n: 3 }))), actor: 'ops', message: 'Zurück ↩' },
    revisionOf(put('a', { again: true }), ...Array.from({ length: 250 }, (_, i) => put(`e${i}`))),
    revisionOf(put('a', { n: 5 })),
  ].map((revision, i) => ({ ...revision, time: minute(i + 1), operation: '' }))

  async function opened(t: TestContext) {
    const database = temporaryDatabase(t)
    writeVersion1(database.path, OLD)
    return { ...database, store: database.open(), same: await committed(openMemoryStore(), ...OLD) }
  }

  test('opens with everything that it held', async (t) => {
    const { store, same } = await opened(t)
    assert.deepEqual(await loadAll(store), await loadAll(same))
    assert.equal(await store.anchor(), undefined)
  })

  test('gets the hashes that its log would have had from the start, and verifies', async (t) => {
    const { store, same } = await opened(t)
    assert.deepEqual(await store.history(ALL), await same.history(ALL))
    assert.deepEqual(await verifyLog(store), await verifyLog(same))
    assert.ok((await verifyLog(store)).verified)
  })

  test('can be searched and gone back in', async (t) => {
    const { store, same } = await opened(t)
    const found = await store.history({ ...ALL, type: 'others' })
    assert.deepEqual(
      found.map(({ revision }) => revision),
      [3, 1],
    )
    for (const query of [{ type: 'things' }, { text: 'ZURÜCK' }, { actor: 'ops' }, { since: minute(4) }]) {
      assert.deepEqual(await store.history({ ...ALL, ...query }), await same.history({ ...ALL, ...query }))
    }
    for (let revision = 0; revision <= OLD.length; revision++) {
      assert.deepEqual(await changedAfter(store, revision), await changedAfter(same, revision))
      assert.equal(await store.revisionAt(minute(revision)), await same.revisionAt(minute(revision)))
    }
  })

  test('works on: takes commits and idempotency records, verifies, gives up a part, and opens again', async (t) => {
    const { store, same, open } = await opened(t)
    const idempotency = { key: 'k', fingerprint: 'f', time: minute(9), answer: '{}' }
    const next = { ...revisionOf(put('a', { n: 6 }), remove('b')), time: minute(9), idempotency }
    await committed(store, next)
    await committed(same, next)
    assert.deepEqual(await verifyLog(store), await verifyLog(same))
    assert.deepEqual({ ...(await store.idempotency.find('k', minute(9))) }, idempotency)
    assert.deepEqual(await pruneLog(store, minute(4)), await pruneLog(same, minute(4)))
    assert.deepEqual((await verifyLog(store)).problems, [])
    const history = await store.history(ALL)
    await store.close()
    const again = open({ mode: 'rw' })
    assert.deepEqual(await again.history(ALL), history)
    assert.deepEqual((await verifyLog(again)).problems, [])
  })

  test('is brought up to date also by one that only reads, unless the file may only be read', async (t) => {
    const { path, open } = temporaryDatabase(t)
    writeVersion1(path, OLD)
    const before = readFileSync(path)
    assert.throws(
      () => open({ mode: 'ro', write: false }),
      (error: Error) => error instanceof StoreError && /brought up to date/.test(error.message),
    )
    assert.ok(before.equals(readFileSync(path)))
    assert.ok((await verifyLog(open({ write: false }))).verified)
    assert.ok((await verifyLog(open({ mode: 'ro', write: false }))).verified)
  })

  test('is brought up to date once, by however many that start together', async (t) => {
    const { path, open } = temporaryDatabase(t)
    writeVersion1(path, OLD)
    const workerData = { module: import.meta.resolve('./sqlite.ts'), path }
    const workers = Array.from({ length: 4 }, () => new Worker(START, { eval: true, workerData }))
    assert.deepEqual((await Promise.all(workers.map((worker) => once(worker, 'exit')))).flat(), [0, 0, 0, 0])
    const same = await committed(openMemoryStore(), ...OLD)
    assert.deepEqual(await verifyLog(open()), await verifyLog(same))
  })

  test('of which nothing was ever written is a store like any other', async (t) => {
    const { path, open } = temporaryDatabase(t)
    writeVersion1(path, [])
    const store = open()
    assert.deepEqual(await loadAll(store), { revision: 0, documents: {} })
    await committed(store, revisionOf(put('a')))
    assert.ok((await verifyLog(store)).verified)
  })
})

describe('uses of tokens in a SQLite file', () => {
  const use = { id: 'tok-a', time: minute(1), address: '10.0.0.1' }

  test('survive reopening, and are seen by others that have it open', async (t) => {
    const { open } = temporaryDatabase(t)
    const [store, beside] = [open(), open({ write: false })]
    assert.deepEqual(await usesOf(beside, 'tok-a'), [])
    await recordUses(store, [use])
    assert.deepEqual(await usesOf(beside, 'tok-a'), [use])
    await store.close()
    assert.deepEqual(await usesOf(open({ mode: 'rw' }), 'tok-a'), [use])
  })

  test('are recorded by one that only reads too, which still commits nothing', async (t) => {
    const { open } = temporaryDatabase(t)
    const store = await committed(open(), revisionOf(put('a')))
    const reader = open({ write: false })
    await recordUses(reader, [use])
    assert.deepEqual(await usesOf(store, 'tok-a'), [use])
    await assert.rejects(async () => reader.commit(1, revisionOf(put('b'))), /reading only/)
    assert.equal((await store.head()).revision, 1)
    await reader.close()
    const older = { ...use, time: minute(0), address: null }
    await recordUses(store, [older])
    assert.deepEqual(await usesOf(open({ write: false }), 'tok-a'), [use])
  })

  test('are recorded by several at once: the newest wins, whoever had it', async (t) => {
    const { open } = temporaryDatabase(t)
    const stores = [open(), open({ write: false }), open({ write: false })]
    const times = [3, 7, 5]
    await Promise.all(
      stores.map((store, i) =>
        recordUses(store, [{ id: 'tok-a', time: minute(times[i] as number), address: `from ${i}` }]),
      ),
    )
    for (const store of stores)
      assert.deepEqual(await usesOf(store, 'tok-a'), [{ id: 'tok-a', time: minute(7), address: 'from 1' }])
  })

  test('are not recorded where the file may only be read, and nothing fails for it', async (t) => {
    const { path, open } = temporaryDatabase(t)
    const store = await committed(open(), revisionOf(put('a')))
    await recordUses(store, [use])
    await store.close()
    foldLog(path)
    const before = readFileSync(path)
    const reader = open({ mode: 'ro', write: false })
    await recordUses(reader, [{ ...use, time: minute(9) }])
    assert.deepEqual(await usesOf(reader, 'tok-a'), [use])
    await reader.close()
    assert.ok(before.equals(readFileSync(path)))
  })

  for (const [what, isFirst] of [
    ['that cannot be recorded fail as the store fails, and work again once it does', false],
    ['that cannot be recorded the first time work again once the store does', true],
  ] as const) {
    test(what, async (t) => {
      const { path, open } = temporaryDatabase(t)
      const store = open({ write: false })
      if (!isFirst) await recordUses(store, [{ ...use, time: minute(0) }])
      const db = new DatabaseSync(path)
      t.after(() => db.close())
      db.exec('ALTER TABLE token_uses RENAME TO away')
      await assert.rejects(async () => recordUses(store, [use]), StoreError)
      await assert.rejects(async () => usesOf(store, 'tok-a'), StoreError)
      db.exec('ALTER TABLE away RENAME TO token_uses')
      await recordUses(store, [use])
      assert.deepEqual(await usesOf(store, 'tok-a'), [use])
    })
  }

  test('find their place in a file of the first version', async (t) => {
    const { path, open } = temporaryDatabase(t)
    writeVersion1(path, [revisionOf(put('a'))])
    const store = open({ write: false })
    await recordUses(store, [use])
    assert.deepEqual(await usesOf(store, 'tok-a'), [use])
  })
})

describe('a program of an earlier version that has the same SQLite file open', () => {
  const importing = "SELECT 1 FROM leases WHERE name = 'filling' AND expires > ?"

  test('knows an import of this one, and this one an import of it', async (t) => {
    const { path, open } = temporaryDatabase(t)
    const store = await committed(open(), revisionOf(put('a')))
    const earlier = new DatabaseSync(path)
    t.after(() => earlier.close())
    await store.setImportInProgress(true)
    assert.ok(earlier.prepare(importing).get(Date.now()))
    await store.setImportInProgress(false)
    assert.equal(earlier.prepare(importing).get(Date.now()), undefined)
    earlier.exec(
      `INSERT INTO leases (name, holder, term, expires) VALUES ('filling', 'import', 3, ${Date.now() + 1e12})`,
    )
    assert.equal((await store.head()).importInProgress, true)
    earlier.exec("UPDATE leases SET expires = 0 WHERE name = 'filling' AND term = 3")
    assert.equal((await store.head()).importInProgress, undefined, 'it leaves its row behind')
    await store.setImportInProgress(true)
    assert.equal((await store.head()).importInProgress, true)
  })

  test('shares the uses of tokens with it', async (t) => {
    const { path, open } = temporaryDatabase(t)
    const store = open()
    const earlier = new DatabaseSync(path)
    t.after(() => earlier.close())
    earlier.prepare('INSERT INTO token_uses (id, time, address) VALUES (?, ?, ?)').run('a', minute(1), null)
    assert.deepEqual(await usesOf(store, 'a'), [{ id: 'a', time: minute(1), address: null }])
    await recordUses(store, [{ id: 'a', time: minute(2), address: 'new' }])
    const rows = earlier.prepare('SELECT id, time, address FROM token_uses').all()
    assert.deepEqual(
      rows.map((row) => ({ ...row })),
      [{ id: 'a', time: minute(2), address: 'new' }],
    )
  })
})

test('many notes let commits have their turn, and are all written', async (t) => {
  const store = temporaryDatabase(t).open()
  const notes = Array.from({ length: 30_000 }, (_, i) => ({ key: `k${i}`, time: minute(i), value: 'x' }))
  let isDone = false
  const recording = store.notes.record('sightings', notes).then(() => {
    isDone = true
  })
  let commits = 0
  for (; !isDone && commits < 1000; commits++) await committed(store, revisionOf(put(`c${commits}`)))
  await recording
  assert.ok(commits > 3, `${commits} commits`)
  let count = 0
  for await (const _note of store.notes.read('sightings')) count++
  assert.equal(count, notes.length)
})

test('a walk along many small revisions lets others have their turn', async (t) => {
  const revisions = Array.from({ length: 1500 }, (_, i) => revisionOf(put(`thing-${i}`)))
  const store = await committed(temporaryDatabase(t).open(), ...revisions)
  let turns = 0
  const count = (): void => {
    turns++
    next = setImmediate(count)
  }
  let next = setImmediate(count)
  t.after(() => clearImmediate(next))
  const follow = async (): Promise<void> => {
    for await (const _revision of store.changesSince(0));
  }
  for (const walk of [() => verifyLog(store), follow]) {
    turns = 0
    await walk()
    assert.ok(turns > 10, `${turns} turns`)
  }
})
