import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import pg from 'pg'
import { createAuthority, type KeyPair } from '../../../test/certificates.ts'
import { start } from '../../../test/every-store.ts'
import {
  type PostgresServer,
  runSql,
  startPostgres,
  temporaryPostgres,
} from '../../../test/postgres-server.ts'
import { builtInTypes, temporaryFolder, waitFor } from '../../../test/service.ts'
import { startProxy } from '../../../test/tcp-proxy.ts'
import { parseStoreConfig } from '../../config/database-url.ts'
import { startEngine } from '../../engine/engine.ts'
import { verifyLog } from '../../transfer/verify-log.ts'
import { loadAll, put, recordUses, remove, revisionOf, usesOf } from '../fixtures-for-contract.ts'
import { openMemoryStore } from '../memory.ts'
import { openStore } from '../open-store.ts'
import { type NewRevision, type Store, StoreError } from '../store.ts'
import { storeContract } from '../store-contract.ts'
import { openPostgresStore } from './postgres.ts'
import type { PostgresOptions } from './postgres-client.ts'

storeContract('PostgreSQL', async (t: TestContext) => open(t, await temporaryPostgres(t)))

function open(t: TestContext, url: string, options: Partial<PostgresOptions> = {}): Store {
  const store = openPostgresStore({ url, write: true, ...options })
  t.after(() => store.close())
  return store
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

async function numbers(store: Store): Promise<number[]> {
  return (await collect(store.changesSince(0))).map(({ revision }) => revision)
}

async function idsOf(items: AsyncIterable<{ readonly id: string }>): Promise<string[]> {
  return (await collect(items)).map(({ id }) => id)
}

async function checkLog(store: Store): Promise<void> {
  assert.deepEqual((await verifyLog(store)).problems, [])
}

function upTo(last: number): number[] {
  return Array.from({ length: last }, (_, i) => i + 1)
}

/** What a store says that cannot do its part. */
async function failureOf(doing: Promise<unknown>): Promise<StoreError> {
  const error = await doing.then(
    () => assert.fail('it worked'),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof StoreError, String(error))
  return error
}

describe('several processes on one PostgreSQL database', () => {
  test('exactly one of their commits wins each base, and the log has no gaps', async (t) => {
    const url = await temporaryPostgres(t)
    const stores = Array.from({ length: 4 }, () => open(t, url))
    const won = new Map<number, number>()
    await Promise.all(
      stores.map(async (store, s) => {
        for (let done = 0, base = 0; done < 15; ) {
          const result = await store.commit(
            base,
            revisionOf(put(`s${s}-${done}`), put('shared', { s, done })),
          )
          if (result.ok) {
            assert.ok(!won.has(base + 1), `revision ${base + 1} was won once`)
            won.set(base + 1, s)
            done++
            base++
          } else {
            assert.ok(result.head > base, 'a refused commit says where the store is')
            base = result.head
          }
        }
      }),
    )
    const [one, ...others] = stores as [Store, ...Store[]]
    assert.deepEqual(await numbers(one), upTo(60))
    assert.deepEqual(
      [...won.keys()].sort((a, b) => a - b),
      upTo(60),
    )
    const state = await loadAll(one)
    for (const other of others) assert.deepEqual(await loadAll(other), state)
    await checkLog(one)
  })

  test('have leases of each other', async (t) => {
    const url = await temporaryPostgres(t)
    const [one, two] = [open(t, url), open(t, url)]
    const mine = await one.leases.acquire('prune', 'one', 60_000)
    assert.equal(mine.holder, 'one')
    assert.deepEqual(await two.leases.acquire('prune', 'two', 60_000), mine)
    await one.leases.release(mine)
    const theirs = await two.leases.acquire('prune', 'two', 60_000)
    assert.equal(theirs.holder, 'two')
    assert.ok(theirs.term > mine.term)
  })

  test('have another term of a lease with every other holder, whenever it is over', async (t) => {
    const url = await temporaryPostgres(t)
    await open(t, url).head()
    // Every look at this clock takes a minute.
    await runSql(
      url,
      `create sequence looks;
      create function clock_timestamp() returns timestamptz language sql volatile as
        $$ select timestamptz '2026-01-31T12:00:00Z' + nextval('public.looks') * interval '1 minute' $$;
      alter database ${new URL(url).pathname.slice(1)} set search_path = public, pg_catalog`,
    )
    const store = open(t, url)
    for (let minutes = 0.5; minutes < 6; minutes++) {
      const name = `for ${minutes} minutes`
      const mine = await store.leases.acquire(name, 'one', minutes * 60_000)
      const theirs = await store.leases.acquire(name, 'two', 60_000)
      assert.equal(theirs.term > mine.term, theirs.holder === 'two', name)
    }
  })

  test('hear of each other’s commits, also after the connection that listens was cut', async (t) => {
    const url = await temporaryPostgres(t)
    const [writer, listener] = [open(t, url), open(t, url)]
    await writer.head()
    let calls = 0
    t.after(listener.watch(() => calls++))
    const heard = async (base: number) => {
      const before = calls
      assert.equal((await writer.commit(base, revisionOf(put('a', { base })))).ok, true)
      await waitFor('the commit is heard of', () => calls > before)
    }
    await waitFor('it listens', () => calls === 1)
    await heard(0)
    const listening = `select pid from pg_stat_activity where query like 'LISTEN%' and datname = current_database()`
    const [cut] = await runSql(url, listening)
    await runSql(url, `select pg_terminate_backend(${Number(cut?.pid)})`)
    await waitFor('it listens again', async () => {
      const [found] = await runSql(url, listening)
      return found !== undefined && found.pid !== cut?.pid
    })
    await heard(1)
  })

  for (const [name, watch] of [
    ['are told of nothing, as behind a pooler', () => () => {}],
    [
      'are told all the time',
      (moved: () => void) => {
        const timer = setInterval(moved, 1)
        return () => clearInterval(timer)
      },
    ],
  ] as [string, Store['watch']][]) {
    test(`follow each other though they ${name}`, async (t) => {
      const url = await temporaryPostgres(t)
      const types = builtInTypes()
      const now = () => new Date()
      const engines = await Promise.all(
        [open(t, url), open(t, url)].map((store) =>
          startEngine({ store: { ...store, watch, close: async () => {} }, types, now }),
        ),
      )
      const [one, two] = engines as [(typeof engines)[0], (typeof engines)[0]]
      t.after(() => Promise.all(engines.map((engine) => engine.stop())))
      for (let i = 1; i <= 3; i++) {
        const document = { id: `n${i}` }
        const command = { op: 'create', type: 'namespaces', document, path: '' } as const
        const author = { actor: 'a', message: null, request_id: 'r', client_address: null }
        assert.ok((await one.write([command], author)).ok)
        await waitFor('the other one follows', () => two.state.revision === i)
        assert.ok(two.state.get('namespaces', `n${i}`))
      }
    })
  }
})

test('what a prune has begun to give up is not in the log any more, also when it was broken off', async (t) => {
  const url = await temporaryPostgres(t)
  const store = open(t, url)
  for (let base = 0; base < 4; base++) await store.commit(base, revisionOf(put('a', { base })))
  const hash = await store.hashOf(2)
  await runSql(
    url,
    `insert into flux_resourceset.anchor values (2, '2026-01-31T12:00:00.000Z', '${hash}', '')`,
  )
  const hashes = await Promise.all([1, 2].map((revision) => store.hashOf(revision)))
  assert.deepEqual(hashes, [undefined, hash])
  assert.ok(await store.hashOf(3))
  assert.equal((await store.commit(4, revisionOf(put('b')))).ok, true)
})

test('a revision whose changes are not all there is not taken for whole', async (t) => {
  const url = await temporaryPostgres(t)
  const store = open(t, url)
  assert.equal((await store.commit(0, revisionOf(put('a'), put('b')))).ok, true)
  await runSql(url, 'delete from flux_resourceset.changes where position = 1')
  for (const items of [store.changesSince(0), store.log(0)] as AsyncIterable<unknown>[])
    assert.match((await failureOf(collect(items))).message, /was given up while it was read/)
})

describe('the schema of a PostgreSQL database', () => {
  test('is made once by eight processes that start together', async (t) => {
    const url = await temporaryPostgres(t)
    const stores = Array.from({ length: 8 }, () => open(t, url))
    const heads = await Promise.all(stores.map((store) => store.head()))
    assert.deepEqual(
      heads.map(({ revision }) => revision),
      stores.map(() => 0),
    )
    const made = await runSql(url, 'select version from flux_resourceset.migrations order by version')
    assert.ok(made.length > 1)
    assert.deepEqual(
      made.map(({ version }) => version),
      upTo(made.length),
    )
    const rows = await runSql(url, 'select * from flux_resourceset.head')
    assert.equal(rows.length, 1)
  })

  test('is waited for by a process that only reads', async (t) => {
    const url = await temporaryPostgres(t)
    const reader = open(t, url, { write: false })
    const { message, isTransient } = await failureOf(reader.head())
    assert.ok(isTransient)
    assert.match(message, /start a process in crud mode/)
    assert.deepEqual(await runSql(url, `select 1 from pg_namespace where nspname = 'flux_resourceset'`), [])
    await open(t, url).commit(0, revisionOf(put('a')))
    assert.equal((await reader.head()).revision, 1)
  })

  test('may have been made empty for this program by somebody else', async (t) => {
    const url = await temporaryPostgres(t)
    await runSql(url, 'create schema flux_resourceset')
    assert.equal((await open(t, url).head()).revision, 0)
  })

  test('of another program is refused and left as it is', async (t) => {
    const url = await temporaryPostgres(t)
    await runSql(url, 'create schema flux_resourceset; create table flux_resourceset.head (theirs text)')
    for (const write of [true, false]) {
      const { message, isTransient } = await failureOf(open(t, url, { write }).head())
      assert.match(message, /is of another program/)
      assert.ok(!isTransient)
    }
    const tables = await runSql(url, `select 1 from pg_tables where schemaname = 'flux_resourceset'`)
    assert.equal(tables.length, 1)
  })

  test('of a newer program is used when that says so, and refused when it says otherwise', async (t) => {
    const url = await temporaryPostgres(t)
    await open(t, url).commit(0, revisionOf(put('a')))
    const running = [true, false].map((write) => open(t, url, { write }))
    await runSql(url, 'insert into flux_resourceset.migrations (version, works_from) values (98, 1)')
    const stores = [...running, ...[true, false].map((write) => open(t, url, { write }))]
    for (const store of stores) assert.equal((await store.head()).revision, 1)
    assert.equal((await open(t, url).commit(1, revisionOf(put('b')))).ok, true)
    await runSql(url, 'insert into flux_resourceset.migrations (version, works_from) values (99, 97)')
    for (const store of [...stores, ...[true, false].map((write) => open(t, url, { write }))]) {
      const { message, isTransient } = await failureOf(store.head())
      assert.match(message, /version 99, which needs a program that knows 97 or more.*upgrade the program/)
      assert.ok(!isTransient)
    }
  })
})

/** A user of its own for the database; its rights are still to be given. */
async function createUser(t: TestContext, url: string): Promise<{ name: string; url: string }> {
  const name = `user_${randomBytes(6).toString('hex')}`
  await runSql(url, `create role ${name} login password 'secret'`)
  t.after(() => void runSql(url, `drop owned by ${name}; drop role ${name}`).catch(() => {}))
  return { name, url: Object.assign(new URL(url), { username: name, password: 'secret' }).href }
}

describe('what a user may do in the database', () => {
  test('reading is enough for a process that only reads; uses of tokens go nowhere then', async (t) => {
    const url = await temporaryPostgres(t)
    const writer = open(t, url)
    await writer.commit(0, revisionOf(put('a')))
    const user = await createUser(t, url)
    await runSql(
      url,
      `grant usage on schema flux_resourceset to ${user.name};
      grant select on all tables in schema flux_resourceset to ${user.name}`,
    )
    const reader = open(t, user.url, { write: false })
    assert.deepEqual(await loadAll(reader), await loadAll(writer))
    await writer.commit(1, revisionOf(put('b')))
    assert.deepEqual(await numbers(reader), [1, 2])
    const use = { id: 'x', time: '2026-01-31T12:00:00.000Z', address: null }
    await recordUses(reader, [use])
    assert.deepEqual(await usesOf(reader, 'x'), [])
    await recordUses(writer, [use])
    assert.deepEqual(await usesOf(reader, 'x'), [use])
    const { message } = await failureOf(open(t, user.url).commit(2, revisionOf(put('c'))))
    assert.match(message, /may not do this in the database: grant/)
    assert.equal((await writer.head()).revision, 2)
  })

  test('without any rights it is told what to grant', async (t) => {
    const url = await temporaryPostgres(t)
    const user = await createUser(t, url)
    const empty = await failureOf(open(t, user.url).head())
    assert.match(empty.message, /may not do this in the database: grant/)
    assert.ok(!empty.isTransient)
    await open(t, url).head()
    for (const write of [true, false]) {
      const { message } = await failureOf(open(t, user.url, { write }).head())
      assert.match(message, /may not do this in the database: grant/)
    }
  })
})

describe('a database that cannot be reached', () => {
  const unreachable: [string, Partial<URL>, RegExp, boolean][] = [
    ['a wrong password', { password: 'wrong' }, /refuses the password: check DATABASE_URL/, false],
    ['no password', { password: '' }, /wants a password: give one in DATABASE_PASSWORD_FILE/, false],
    ['an unknown user', { username: 'nobody' }, /refuses the (password|user)/, false],
    ['a missing database', { pathname: 'nothing' }, /no such database: create it/, false],
    ['a closed port', { port: '1' }, /refuses connections/, true],
    ['an unknown host', { hostname: 'nowhere.invalid' }, /has no address|cannot be resolved/, true],
  ]
  for (const [what, change, expected, away] of unreachable) {
    test(`with ${what} is told in our words`, async (t) => {
      const url = new URL(await temporaryPostgres(t))
      Object.assign(url, change)
      for (const write of [true, false]) {
        const { message, isTransient } = await failureOf(open(t, url.href, { write }).head())
        assert.match(message, expected)
        assert.equal(isTransient, away)
        assert.ok(!message.includes('secret'))
      }
    })
  }

  test('and does not answer is away soon, also for who has not used it yet', async (t) => {
    const url = await temporaryPostgres(t)
    await open(t, url).head()
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    t.after(() => client.end())
    await client.query('begin; lock table flux_resourceset.migrations')
    const begun = performance.now()
    const failures = await Promise.all(
      [true, false].map((write) => failureOf(open(t, url, { write }).head())),
    )
    assert.ok(performance.now() - begun < 20_000)
    for (const { isTransient } of failures) assert.ok(isTransient)
  })

  test('gets a password from its file, and a new one for the next connection', async (t) => {
    const url = new URL(await temporaryPostgres(t))
    const user = new URL((await createUser(t, url.href)).url)
    await runSql(url.href, `grant create on database ${url.pathname.slice(1)} to ${user.username}`)
    const passwordFile = join(temporaryFolder(t), 'password')
    writeFileSync(passwordFile, 'wrong\n')
    const store = open(t, `${Object.assign(user, { password: '' })}`, { passwordFile })
    assert.match((await failureOf(store.head())).message, /refuses the password/)
    writeFileSync(passwordFile, 'secret\n')
    assert.equal((await store.head()).revision, 0)
  })

  test('without the file of the password keeps no connection that waits for it', async (t) => {
    const url = new URL(await temporaryPostgres(t))
    const proxy = await startProxy({ host: url.hostname, port: Number(url.port) })
    t.after(() => proxy.close())
    Object.assign(url, { port: String(proxy.port), password: '' })
    const passwordFile = join(temporaryFolder(t), 'password')
    const store = open(t, url.href, { passwordFile })
    for (let tries = 0; tries < 3; tries++) {
      const { message, isTransient } = await failureOf(store.head())
      assert.match(message, /password that DATABASE_PASSWORD_FILE names cannot be read: ENOENT/)
      assert.ok(isTransient)
    }
    await waitFor('they are closed', () => proxy.connections === 0)
    writeFileSync(passwordFile, 'secret\n')
    assert.equal((await store.head()).revision, 0)
  })
})

test('a database that cannot hold every character is refused before anything is in it', async (t) => {
  const url = new URL(await temporaryPostgres(t))
  const name = `latin_${randomBytes(8).toString('hex')}`
  await runSql(url.href, `create database ${name} template template0 encoding 'LATIN1' locale 'C'`)
  t.after(() => runSql(url.href, `drop database ${name} with (force)`))
  const latin = Object.assign(new URL(url), { pathname: name }).href
  for (const write of [true, false]) {
    const { message, isTransient } = await failureOf(open(t, latin, { write }).head())
    assert.match(message, /^the encoding of the database is LATIN1, and has to be UTF8: create one/)
    assert.equal(isTransient, false)
  }
  assert.deepEqual(await runSql(latin, "select to_regnamespace('flux_resourceset') as made"), [
    { made: null },
  ])
})

test('a process that writes and was led to a standby leaves it once the name leads to the primary', async (t) => {
  const primary = await startPostgres()
  t.after(() => primary.stop())
  const url = await primary.createDatabase()
  await open(t, url).commit(0, revisionOf(put('a')))
  const standby = await primary.standby()
  t.after(() => standby.stop())
  await waitFor('the standby has it', async () => {
    const [row] = await runSql(
      Object.assign(new URL(url), { port: standby.port }).href,
      'select revision from flux_resourceset.head',
    )
    return Number(row?.revision) === 1
  })
  const proxy = await startProxy({ host: '127.0.0.1', port: standby.port })
  t.after(() => proxy.close())
  const store = open(t, Object.assign(new URL(url), { port: proxy.port }).href)
  const { message, isTransient } = await failureOf(store.head())
  assert.match(message, /it is a standby/)
  assert.ok(isTransient)
  // Connections that are open already lead where they led.
  proxy.target('127.0.0.1', primary.port)
  assert.equal((await store.head()).revision, 1)
  assert.equal((await store.commit(1, revisionOf(put('b')))).ok, true)
})

describe('whatever the settings of the database are', () => {
  test('transactions that are serializable by default get in nobody’s way', async (t) => {
    const url = await temporaryPostgres(t)
    const name = new URL(url).pathname.slice(1)
    await runSql(url, `alter database ${name} set default_transaction_isolation = 'serializable'`)
    const stores = [open(t, url), open(t, url), open(t, url)]
    for (let base = 0; base < 10; base++) {
      const results = await Promise.all(
        stores.map((store, s) => store.commit(base, revisionOf(put('a', { base, s }), put(`b${s}`)))),
      )
      assert.deepEqual(results.map(({ ok }) => ok).sort(), [false, false, true])
    }
    assert.deepEqual(await numbers(stores[0] as Store), upTo(10))
  })

  for (const [given, expected] of [
    ['off', 'on'],
    ['local', 'local'],
    ['remote_apply', 'remote_apply'],
  ]) {
    test(`a commit waits for the disk with synchronous_commit=${given}`, async (t) => {
      const url = await temporaryPostgres(t)
      const store = open(t, url)
      await store.head()
      // Told by a trigger at the very end of the transaction.
      await runSql(
        url,
        `create table told (setting text);
        create function tell() returns trigger language plpgsql as $$
          begin insert into told values (current_setting('synchronous_commit')); return null; end $$;
        create constraint trigger tell after update on flux_resourceset.head
          deferrable initially deferred for each row execute function tell();
        alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = '${given}'`,
      )
      const fresh = open(t, url)
      assert.equal((await fresh.commit(0, revisionOf(put('a')))).ok, true)
      const many = Array.from({ length: 1000 }, (_, i) => put(`n${i}`))
      assert.equal((await fresh.commit(1, revisionOf(...many))).ok, true)
      assert.deepEqual(await runSql(url, 'select setting from told'), [
        { setting: expected },
        { setting: expected },
      ])
      const [other] = await runSql(url, `select current_setting('synchronous_commit') as setting`)
      assert.equal(other?.setting, given, 'nobody else is bothered')
    })
  }

  test('any order of letters gives the order that every other store has', async (t) => {
    // Its own database goes first, whatever the test still needs.
    const admin = Object.assign(new URL(await temporaryPostgres(t)), { pathname: 'postgres' }).href
    const [server] = await runSql(admin, `select current_setting('server_version_num')::int as version`)
    if (Number(server?.version) < 150_000) return t.skip('databases of PostgreSQL 14 have no order of ICU')
    const name = `test_${randomBytes(8).toString('hex')}`
    await runSql(
      admin,
      `create database ${name} template template0 locale_provider icu icu_locale 'sv' locale 'C' encoding 'UTF8'`,
    )
    const url = Object.assign(new URL(admin), { pathname: name }).href
    const store = openPostgresStore({ url, write: true })
    t.after(async () => {
      await store.close()
      await runSql(admin, `drop database ${name} with (force)`)
    })
    const letters = ['a', 'B', 'b', 'Z', 'z', 'å', 'ä', 'Ö', 'v', 'w', '1', '10', '2', '-', '_', 'é', 'e']
    // More than one page of each.
    const ids = letters.flatMap((one) =>
      letters.flatMap((two) => letters.slice(0, 6).map((six) => one + two + six)),
    )
    assert.ok(ids.length > 1000)
    const memory = openMemoryStore()
    const revisions: NewRevision[] = [
      revisionOf(...ids.map((id) => put(id))),
      revisionOf(...ids.slice(0, 500).map((id) => put(id, { again: true })), remove('aaa')),
    ]
    for (const each of [store, memory]) assert.equal((await each.commit(0, ...revisions)).ok, true)
    assert.deepEqual(await loadAll(store), await loadAll(memory))
    const listed = await idsOf(store.documents())
    assert.deepEqual(new Set(listed), new Set(await idsOf(memory.documents())))
    assert.equal(listed.length, ids.length - 1)
    const past = async (each: Store) => (await idsOf(each.changedAfter(1))).sort()
    assert.deepEqual(await past(store), await past(memory))
    const history = (each: Store) =>
      each.history({ documents: [{ type: 'things', id: 'ÖÖa' }], limit: 9, changeLimit: 9 })
    assert.deepEqual(await history(store), await history(memory))
    assert.deepEqual(await store.head(), await memory.head())
  })
})

/** Keeps every commit waiting; answers how to let them go on, after something else was done if need be. */
async function holdHead(
  t: TestContext,
  url: string,
  hold = 'select * from flux_resourceset.head for update',
): Promise<(doing?: string) => Promise<void>> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  t.after(() => client.end())
  await client.query(`begin; ${hold}`)
  return async (doing) => {
    await client.query(doing === undefined ? 'rollback' : `${doing}; commit`)
  }
}

/** The connections that wait for a lock of another one. */
async function waitingIn(url: string): Promise<number[]> {
  const waiting = `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  return (await runSql(url, waiting)).map(({ pid }) => Number(pid))
}

describe('while another process moves the head', () => {
  const MOVE = 'update flux_resourceset.head set revision = revision + 1'

  test('what is loaded is of one moment: a later revision is followed, and not taken for known', async (t) => {
    const url = await temporaryPostgres(t)
    const store = open(t, url)
    assert.equal((await store.commit(0, revisionOf(put('a')))).ok, true)
    const release = await holdHead(t, url, 'lock table flux_resourceset.head in access exclusive mode')
    const loading = loadAll(store)
    await waitFor('it has come to the head', async () => (await waitingIn(url)).length > 0)
    await release(MOVE)
    assert.equal((await loading).revision, 1)
  })

  test('a commit whose connection broke is not taken for the one that came first', async (t) => {
    const url = await temporaryPostgres(t)
    const store = open(t, url)
    await store.head()
    const release = await holdHead(t, url)
    const committing = store.commit(0, revisionOf(put('mine')))
    let broken: number[] = []
    await waitFor('the commit waits', async () => {
      broken = await waitingIn(url)
      return broken.length > 0
    })
    await runSql(url, `select pg_terminate_backend(${broken[0]})`)
    await waitFor('it is tried again', async () =>
      (await waitingIn(url)).some((pid) => !broken.includes(pid)),
    )
    await release(`insert into flux_resourceset.revisions
      (revision, time, actor, message, request_id, client_address, operation, types, hash, change_count)
      values (1, '2026-01-31T12:00:00.000Z', 'a', null, 'r', null, 'o', '{}', 'of another', 0); ${MOVE}`)
    assert.deepEqual(await committing, { ok: false, head: 1 })
  })

  test('a store is not initialised over what that has written', async (t) => {
    const url = await temporaryPostgres(t)
    const store = open(t, url)
    await store.head()
    const release = await holdHead(t, url)
    const anchor = { revision: 9, time: '2026-01-31T12:00:00.000Z', hash: 'h', state: 's' }
    const initialising = failureOf(store.initFromSnapshot(anchor, []))
    await waitFor('it waits', async () => (await waitingIn(url)).length > 0)
    await release(MOVE)
    assert.match((await initialising).message, /not empty|holds/)
    assert.equal((await store.head()).revision, 1)
    assert.equal(await store.anchor(), undefined)
  })
})

describe('a program of an earlier version on the same database', () => {
  const importing =
    "select 1 from flux_resourceset.leases where name = 'filling' and expires > clock_timestamp()"

  test('knows an import of this one, and this one an import of it', async (t) => {
    const url = await temporaryPostgres(t)
    const store = open(t, url)
    await store.commit(0, revisionOf(put('a')))
    await store.setImportInProgress(true)
    assert.equal((await runSql(url, importing)).length, 1)
    await store.setImportInProgress(false)
    assert.equal((await runSql(url, importing)).length, 0)
    await runSql(
      url,
      `insert into flux_resourceset.leases (name, holder, term, expires)
      values ('filling', 'import', 3, clock_timestamp() + interval '100 years')`,
    )
    assert.equal((await store.head()).importInProgress, true)
    await runSql(url, 'update flux_resourceset.leases set expires = clock_timestamp() where term = 3')
    assert.equal((await store.head()).importInProgress, undefined, 'it leaves its row behind')
    await store.setImportInProgress(true)
    assert.equal((await store.head()).importInProgress, true)
  })

  test('shares the uses of tokens with it', async (t) => {
    const url = await temporaryPostgres(t)
    const store = open(t, url)
    await store.head()
    const time = '2026-01-31T12:00:00.000Z'
    await runSql(url, `insert into flux_resourceset.token_uses values ('a', '${time}', null)`)
    assert.deepEqual(await usesOf(store, 'a'), [{ id: 'a', time, address: null }])
    const newer = { id: 'a', time: '2026-01-31T12:01:00.000Z', address: 'new' }
    await recordUses(store, [newer])
    assert.deepEqual(await runSql(url, 'select id, time, address from flux_resourceset.token_uses'), [newer])
  })
})

describe('a commit that the network gets in the way of', () => {
  async function behindProxy(t: TestContext) {
    const url = await temporaryPostgres(t)
    const proxy = await startProxy({ host: '127.0.0.1', port: Number(new URL(url).port) })
    t.after(() => proxy.close())
    const store = open(t, Object.assign(new URL(url), { port: String(proxy.port) }).href)
    await store.head()
    return { url, proxy, store }
  }

  test('is one revision when its answer was lost, and says so once it is known', async (t) => {
    const { url, proxy, store } = await behindProxy(t)
    for (let base = 0; base < 3; base++) {
      const release = await holdHead(t, url)
      const committing = store.commit(base, revisionOf(put('a', { base })))
      await waitFor('it waits for the head', async () => (await waitingIn(url)).length > 0)
      proxy.halve('down')
      await release()
      await waitFor('the database has it', async () => {
        const [row] = await runSql(url, 'select revision from flux_resourceset.head')
        return Number(row?.revision) === base + 1
      })
      await waitFor('its connection broke', () => proxy.connections === 0)
      proxy.heal()
      assert.equal((await committing).ok, true)
    }
    assert.deepEqual(await numbers(store), upTo(3))
    await checkLog(store)
  })

  test('leaves nothing of 50,000 changes when it is cut off in their middle', async (t) => {
    const { url, proxy, store } = await behindProxy(t)
    const changes = Array.from({ length: 50_000 }, (_, i) => put(`n${i}`, { text: 'x'.repeat(50) }))
    const committing = failureOf(store.commit(0, revisionOf(...changes)))
    await waitFor('it is under way', async () => {
      const busy = `select 1 from pg_stat_activity where datname = current_database() and query like '%MATERIALIZED%'
        and xact_start is not null and pid <> pg_backend_pid() and query not like '%head%'`
      return (await runSql(url, busy)).length > 0
    })
    proxy.cut()
    assert.ok((await committing).isTransient)
    const [left] = await runSql(
      url,
      `select (select revision from flux_resourceset.head) as head,
        (select count(*) from flux_resourceset.changes) as changes,
        (select count(*) from flux_resourceset.revisions) as revisions,
        (select count(*) from flux_resourceset.documents) as documents`,
    )
    assert.deepEqual({ ...left }, { head: '0', changes: '0', revisions: '0', documents: '0' })
    proxy.heal()
    assert.equal((await store.commit(0, revisionOf(...changes))).ok, true)
    assert.equal(Object.keys((await loadAll(store)).documents).length, 50_000)
    await checkLog(store)
  })
})

test('documents of a megabyte come back as they went in', async (t) => {
  const url = await temporaryPostgres(t)
  const [store, memory] = [open(t, url), openMemoryStore()]
  const large = (n: number) => put(`large-${n}`, { text: `"\\\u2028é${n}`.repeat(150_000) })
  for (const each of [store, memory]) {
    assert.equal((await each.commit(0, revisionOf(large(1), large(2), put('small')))).ok, true)
    assert.equal(
      (await each.commit(1, revisionOf({ ...large(3), id: 'large-1' }, remove('large-2')))).ok,
      true,
    )
  }
  assert.deepEqual(await loadAll(store), await loadAll(memory))
  assert.deepEqual(await collect(store.changesSince(0)), await collect(memory.changesSince(0)))
  assert.deepEqual(await store.head(), await memory.head())
})

test('no text of a request makes the database fail', async (t) => {
  const store = openPostgresStore({ url: await temporaryPostgres(t), write: true })
  const service = await start(t, { store })
  const texts = ['%00', 'a%00b', '%ED%A0%80', '%F0%9F%98%80', '%E2%80%A8', "'", '%5C', '%25', '%22']
  const paths = texts.flatMap((text) => [
    `/revisions?actor=${text}`,
    `/revisions?q=${text}`,
    `/revisions?type=${text}`,
    `/revisions?cluster=${text}`,
    `/revisions?type=namespaces&id=${text}`,
    `/clusters/${text}/history`,
    `/clusters/${text}?at=1`,
    `/namespaces?at=1&id=${text}`,
    `/api/v2/flux/clusters/${text}/namespaces`,
  ])
  for (const path of paths) {
    const { status, text } = await service.call('GET', path)
    assert.ok(status < 500, `${path}: ${status} ${text}`)
  }
  const words = [
    '\\u0000',
    '\\ud800',
    '\\udc00',
    '\\ud83d\\ude00',
    '\\u2028',
    '\\\\',
    "'",
    '\\u007f',
    '\\ufffe',
  ]
  for (const [i, word] of words.entries()) {
    const raw = `{"id":"n${i}","labels":{"x":"${word}"}}`
    const made = await service.call('POST', '/namespaces', { raw })
    assert.ok(made.status === 201 || made.status === 400, `${raw}: ${made.text}`)
    if (made.status === 201) {
      const { body } = await service.call('GET', `/namespaces/n${i}`)
      assert.equal(body.labels.x, JSON.parse(`"${word}"`))
    }
    const batch = `{"message":"${word}","operations":[{"op":"create","type":"namespaces","document":{"id":"b${i}"}}]}`
    const { status, text } = await service.call('POST', '/batch', { raw: batch })
    assert.ok(status < 500, `${batch}: ${status} ${text}`)
  }
  for (const header of ['idempotency-key', 'x-change-message', 'x-request-id']) {
    for (const [i, text] of ['\u00ed\u00a0\u0080', '\u00ff', "'", '\\u0000', '😀'].entries()) {
      const value = Buffer.from(text).toString('latin1')
      const body = { id: `h${i}-${header}` }
      const answer = await service.call('POST', '/namespaces', { body, headers: { [header]: value } })
      assert.ok(answer.status < 500, `${header}: ${text}: ${answer.status} ${answer.text}`)
    }
  }
})

/** Files that the server may read, which may run under another account. */
function writeFor(server: { uid: number | undefined }, file: string, text: string): string {
  writeFileSync(file, text)
  if (server.uid !== undefined) chownSync(file, server.uid, server.uid)
  chmodSync(file, 0o600)
  return file
}

describe('a PostgreSQL server that speaks TLS', () => {
  interface Secured {
    readonly server: PostgresServer
    readonly url: string
    readonly ca: string
    readonly otherCa: string
    readonly client: { readonly cert: string; readonly key: string }
  }

  async function startSecured(
    t: TestContext,
    names: { dnsNames?: string[]; ipAddresses?: string[] },
  ): Promise<Secured> {
    const folder = temporaryFolder(t)
    const account = { uid: process.getuid?.() === 0 ? 65_534 : undefined }
    if (account.uid !== undefined) chownSync(folder, account.uid, account.uid)
    const file = (name: string, text: string) => writeFor(account, join(folder, name), text)
    const pair = (name: string, { cert, key }: KeyPair) => ({
      cert: file(`${name}.pem`, cert),
      key: file(`${name}.key`, key),
    })
    const [authority, other] = await Promise.all([createAuthority('databases'), createAuthority('others')])
    const own = pair('server', await authority.issue({ commonName: 'database', server: true, ...names }))
    const client = pair('client', await authority.issue({ commonName: 'postgres', client: true }))
    const ca = file('ca.pem', authority.pem)
    const server = await startPostgres({
      settings: { ssl: 'on', ssl_cert_file: own.cert, ssl_key_file: own.key, ssl_ca_file: ca },
    })
    t.after(() => server.stop())
    return { server, url: await server.createDatabase(), ca, otherCa: file('other.pem', other.pem), client }
  }

  function openUrl(t: TestContext, url: string, parameters: Record<string, string>): Store {
    const DATABASE_URL = `${url}?${new URLSearchParams(parameters)}`
    const parsed = parseStoreConfig({ DATABASE_URL })
    if (!parsed.ok) return assert.fail(parsed.problems.join())
    const store = openStore(parsed.store, { write: true })
    t.after(() => store.close())
    return store
  }

  const usesTls = `select bool_and(ssl) as all from pg_stat_ssl join pg_stat_activity using (pid)
    where application_name like 'flux-resourceset/%'`

  test('is used as the URL says, and no other one is taken for it', async (t) => {
    const { server, url, ca, otherCa } = await startSecured(t, { ipAddresses: ['127.0.0.1'] })
    const allowed = [
      { sslmode: 'require' },
      { sslmode: 'require', sslrootcert: ca },
      { sslmode: 'verify-ca', sslrootcert: ca },
      { sslmode: 'verify-full', sslrootcert: ca },
      { sslrootcert: ca },
    ]
    for (const parameters of allowed) {
      assert.equal((await openUrl(t, url, parameters).head()).revision, 0)
      assert.deepEqual({ ...(await server.query(usesTls))[0] }, { all: true }, JSON.stringify(parameters))
    }
    for (const sslmode of ['require', 'verify-ca', 'verify-full']) {
      const { message } = await failureOf(openUrl(t, url, { sslmode, sslrootcert: otherCa }).head())
      assert.match(message, /certificate/)
    }
    const { message } = await failureOf(openUrl(t, url, { sslmode: 'verify-full' }).head())
    assert.match(message, /certificate/)
    assert.equal((await openUrl(t, url, { sslmode: 'disable' }).head()).revision, 0)
    assert.deepEqual({ ...(await server.query(usesTls))[0] }, { all: false })
  })

  test('under another name is refused by verify-full alone; it may ask for certificates of clients', async (t) => {
    const { server, url, ca, client } = await startSecured(t, { dnsNames: ['elsewhere.example.com'] })
    assert.equal((await openUrl(t, url, { sslmode: 'verify-ca', sslrootcert: ca }).head()).revision, 0)
    const { message } = await failureOf(openUrl(t, url, { sslmode: 'verify-full', sslrootcert: ca }).head())
    assert.match(message, /does not match certificate/)
    writeFileSync(join(server.folder, 'data/pg_hba.conf'), 'hostssl all all 127.0.0.1/32 cert\n')
    await server.query('select pg_reload_conf()')
    const files = { sslmode: 'verify-ca', sslrootcert: ca }
    await waitFor('it asks for certificates', () =>
      openUrl(t, url, files)
        .head()
        .then(
          () => false,
          ({ message }: StoreError) => /refuses the user/.test(message),
        ),
    )
    const store = openUrl(t, url, { ...files, sslcert: client.cert, sslkey: client.key })
    assert.equal((await store.head()).revision, 0)
  })

  test('with a file that is gone is refused for as long as it is, and the process goes on', async (t) => {
    const { server, url, ca, client } = await startSecured(t, { ipAddresses: ['127.0.0.1'] })
    const files = { sslrootcert: ca, sslcert: client.cert, sslkey: client.key }
    const store = openUrl(t, url, files)
    assert.equal((await store.head()).revision, 0)
    for (const file of Object.values(files)) {
      const content = readFileSync(file)
      rmSync(file)
      await server.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'flux-resourceset/%'",
      )
      const gone = `the file ${file} that DATABASE_URL names cannot be read`
      await waitFor('it is asked for', () =>
        store.head().then(
          () => false,
          ({ message, isTransient }: StoreError) => isTransient && message.startsWith(gone),
        ),
      )
      writeFileSync(file, content)
      assert.equal((await store.head()).revision, 0)
    }
  })

  test('is not taken for granted: one without it is refused', async (t) => {
    const url = await temporaryPostgres(t)
    const { message } = await failureOf(openUrl(t, url, { sslmode: 'require' }).head())
    assert.match(message, /does not speak TLS/)
  })
})
