import assert from 'node:assert/strict'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { setImmediate as breathe } from 'node:timers/promises'
import { builtInTypes, temporaryFolder } from '../../test/service.ts'
import type { Json } from '../base/json.ts'
import type { Result } from '../base/problem.ts'
import type { Command, WriteCommand } from '../domain/commands/command.ts'
import { Interrupted } from '../runtime/run-time-sliced.ts'
import { openMemoryStore } from '../store/memory.ts'
import { openSqliteStore } from '../store/sqlite/sqlite.ts'
import { type Store, StoreError } from '../store/store.ts'
import { importLog } from '../transfer/import-log.ts'
import { type Engine, type EngineParts, startEngine } from './engine.ts'
import type { Written } from './write-options.ts'

const types = builtInTypes()
const author = { actor: 'writer', message: null, request_id: 'r', client_address: null }
const now = () => new Date('2026-01-31T12:00:00Z')

async function start(
  t: TestContext,
  store: Store = openMemoryStore(),
  parts: Partial<EngineParts> = {},
): Promise<Engine> {
  const engine = await startEngine({ store, types, now, ...parts })
  t.after(() => engine.stop())
  return engine
}

function create(type: string, document: Json): Command {
  return { op: 'create', type, document, path: '' }
}

const namespace = (id: string): Command => create('namespaces', { id })
const cluster = (id: string): Command =>
  create('clusters', {
    id,
    cluster_name: id,
    cluster_dns: `${id}.k8s.example.com`,
    environment: 'dev',
  })

function label(id: string, name: string, value: string): Command {
  return {
    op: 'patch',
    type: 'clusters',
    id,
    patch: { labels: { [name]: value } },
    format: 'merge',
    path: '',
  }
}

function done(result: Result<Written>): Written {
  assert.ok(result.ok, JSON.stringify(result))
  return result.value
}

function problemCode(result: Result<unknown>): string {
  assert.ok(!result.ok, 'is refused')
  return result.problem.code
}

/** Every document that an engine serves, with its revision. */
function served({ state }: Engine) {
  const entries = types.all.map(({ name }) => [name, [...state.all(name)]] as const)
  return { revision: state.revision, ...Object.fromEntries(entries) }
}

/** A store whose commits do something first. */
function withCommit(store: Store, commit: (through: Store['commit']) => Store['commit']): Store {
  return { ...store, commit: commit(store.commit.bind(store)) }
}

test('a write is served after the store has committed it, and not before', async (t) => {
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  t.after(() => open())
  let reached = () => {}
  const committing = new Promise<void>((resolve) => {
    reached = resolve
  })
  const store = withCommit(openMemoryStore(), (through) => async (base, revision) => {
    reached()
    await gate
    return through(base, revision)
  })
  const engine = await start(t, store)
  const writing = engine.write([namespace('a')], author)
  await committing
  await breathe()
  assert.equal(engine.state.get('namespaces', 'a'), undefined)
  assert.equal(engine.state.revision, 0)
  open()
  assert.equal(done(await writing).revision, 1)
  assert.equal(engine.state.get('namespaces', 'a')?.revision, 1)
  assert.equal(engine.state.revision, 1)
})

test('a write is published by itself, also when its revision is seen in the log before the store has answered', async (t) => {
  const seen: number[] = []
  const store = withCommit(openMemoryStore(), (through) => async (base, revision) => {
    const committed = await through(base, revision)
    void engine.catchUp()
    for (let i = 0; i < 5; i++) await breathe()
    seen.push(engine.state.revision)
    return committed
  })
  const engine = await start(t, store)
  let published = 0
  engine.subscribe(() => published++)
  done(await engine.write([namespace('a')], author))
  await engine.catchUp()
  assert.deepEqual(seen, [0])
  assert.equal(published, 1)
  assert.equal(engine.state.get('namespaces', 'a')?.revision, 1)
})

test('all commands of a write are one revision, or none of them happens', async (t) => {
  const engine = await start(t)
  const written = done(await engine.write([namespace('a'), namespace('b'), cluster('one')], author))
  assert.equal(written.revision, 1)
  assert.equal(written.changes.length, 3)
  assert.equal(written.outcomes.length, 3)
  const refused = await engine.write([namespace('c'), namespace('a')], author)
  assert.equal(problemCode(refused), 'conflict')
  assert.equal(engine.state.get('namespaces', 'c'), undefined)
  assert.equal(engine.state.revision, 1)
})

test('a write that changes nothing makes no revision', async (t) => {
  const engine = await start(t)
  done(await engine.write([cluster('one'), label('one', 'a', '1')], author))
  const again = done(await engine.write([label('one', 'a', '1')], author))
  assert.deepEqual(again.changes, [])
  assert.equal(again.revision, 1)
  const history = await engine.inspect(async (past) => ({
    ok: true,
    value: await past.history({ limit: 10, changeLimit: 10 }),
  }))
  assert.ok(history.ok)
  assert.equal(history.value.length, 1)
})

test('the log says who wrote when by the clock that the engine was given', async (t) => {
  const engine = await start(t)
  await engine.write([namespace('a')], {
    actor: 'ops',
    message: 'Why not',
    request_id: 'req-1',
    client_address: null,
  })
  const history = await engine.inspect(async (past) => ({
    ok: true,
    value: await past.history({ limit: 10, changeLimit: 10 }),
  }))
  assert.ok(history.ok)
  const { time, actor, message, request_id } = history.value[0] ?? assert.fail('no revision')
  assert.deepEqual(
    { time, actor, message, request_id },
    { time: '2026-01-31T12:00:00.000Z', actor: 'ops', message: 'Why not', request_id: 'req-1' },
  )
})

test('a store that fails to commit makes the write unavailable and leaves the state as it was', async (t) => {
  let broken = true
  const store = withCommit(openMemoryStore(), (through) => async (base, revision) => {
    if (broken) throw new StoreError('the disk is full: make room and try again')
    return through(base, revision)
  })
  const told: string[] = []
  const engine = await start(t, store, {
    onStoreError: (error, doing) => told.push(`${doing}: ${error.message}`),
  })
  const before = served(engine)
  const refused = await engine.write([namespace('a')], author)
  assert.equal(problemCode(refused), 'unavailable')
  assert.match(!refused.ok ? refused.problem.message : '', /the disk is full/)
  assert.deepEqual(served(engine), before)
  assert.deepEqual(told, ['commit: the disk is full: make room and try again'])
  broken = false
  assert.equal(done(await engine.write([namespace('a')], author)).revision, 1)
})

test('a store that does not answer makes writes and history unavailable, while the state is still served', async (t) => {
  let away = false
  const memory = openMemoryStore()
  const fail = async (): Promise<never> => {
    throw new StoreError('the store is away')
  }
  const store: Store = {
    ...memory,
    head: () => (away ? fail() : memory.head()),
    history: (query) => (away ? fail() : memory.history(query)),
  }
  const engine = await start(t, store)
  done(await engine.write([namespace('a')], author))
  assert.equal((await engine.check()).problem, undefined)
  away = true
  assert.equal(problemCode(await engine.write([namespace('b')], author)), 'unavailable')
  assert.equal(
    problemCode(
      await engine.inspect(async (past) => ({
        ok: true,
        value: await past.history({ limit: 1, changeLimit: 1 }),
      })),
    ),
    'unavailable',
  )
  assert.match((await engine.check()).problem ?? '', /the store is away/)
  assert.equal(engine.state.get('namespaces', 'a')?.id, 'a')
})

test('nobody waits behind a write that gets no answer of a store that is known to be away', async (t) => {
  const memory = openMemoryStore()
  const answer = Promise.withResolvers<void>()
  t.after(() => answer.resolve())
  let state: 'there' | 'away' | 'stalled' = 'there'
  const head: Store['head'] = async () => {
    if (state === 'away') throw new StoreError('the store is away', { isTransient: true })
    if (state === 'stalled') await answer.promise
    return memory.head()
  }
  const store = withCommit({ ...memory, head }, (through) => async (base, revision) => {
    state = 'away'
    await answer.promise
    return through(base, revision)
  })
  const engine = await start(t, store)
  const waiting = engine.write([namespace('a')], author)
  while (state === 'there') await breathe()
  await engine.check()
  state = 'stalled'
  const others = [
    engine.write([namespace('b')], author),
    engine.inspect(async () => ({ ok: true, value: 'read' })),
  ]
  const answers: string[] = []
  for (const other of others) void other.then((given) => answers.push(problemCode(given)))
  for (let i = 0; i < 5; i++) await breathe()
  assert.deepEqual(answers, ['unavailable', 'unavailable'])
  answer.resolve()
  done(await waiting)
})

test('an unforeseen failure of one write does not stop the next', async (t) => {
  let bug = true
  const store = withCommit(openMemoryStore(), (through) => async (base, revision) => {
    if (bug) throw new TypeError('a bug')
    return through(base, revision)
  })
  const engine = await start(t, store)
  await assert.rejects(engine.write([namespace('a')], author), TypeError)
  assert.equal(engine.state.revision, 0)
  bug = false
  done(await engine.write([namespace('a')], author))
})

test('writes that come together are done in their order', async (t) => {
  const engine = await start(t)
  await engine.write([cluster('one')], author)
  const writes = Array.from({ length: 50 }, (_, i) => engine.write([label('one', 'n', String(i))], author))
  const revisions = (await Promise.all(writes)).map((result) => done(result).revision)
  assert.deepEqual(
    revisions,
    Array.from({ length: 50 }, (_, i) => i + 2),
  )
  assert.deepEqual(engine.state.get('clusters', 'one')?.document.labels, { n: '49' })
})

/** Engine whose first commit comes too late: `rival` writes to the same store before it. */
async function outrun(t: TestContext, prepare: Command[], rival: Command[]): Promise<Engine> {
  const memory = openMemoryStore()
  const other = await start(t, memory)
  done(await other.write(prepare, author))
  let late = true
  const store = withCommit(memory, (through) => async (base, revision) => {
    if (late) {
      late = false
      done(await other.write(rival, author))
    }
    return through(base, revision)
  })
  return start(t, store)
}

test('a write that lost the race is decided again on the new state, and both are kept', async (t) => {
  const engine = await outrun(t, [cluster('one')], [label('one', 'rival', 'yes')])
  const written = done(await engine.write([label('one', 'mine', 'yes')], author))
  assert.equal(written.revision, 3)
  assert.deepEqual(engine.state.get('clusters', 'one')?.document.labels, { rival: 'yes', mine: 'yes' })
})

test('a write that lost the race is refused when the new state does not allow it any more', async (t) => {
  const engine = await outrun(t, [cluster('one')], [namespace('a')])
  assert.equal(problemCode(await engine.write([namespace('a')], author)), 'conflict')
  assert.equal(engine.state.revision, 2)
})

test('a write that expects a revision is refused when it lost the race to a change of that document', async (t) => {
  const engine = await outrun(t, [cluster('one')], [label('one', 'rival', 'yes')])
  const mine = { ...label('one', 'mine', 'yes'), expect: { revisions: [1] } }
  assert.equal(problemCode(await engine.write([mine], author)), 'precondition_failed')
  assert.deepEqual(engine.state.get('clusters', 'one')?.document.labels, { rival: 'yes' })
})

test('a write that lost the race to what it wanted itself changes nothing', async (t) => {
  const engine = await outrun(t, [cluster('one')], [label('one', 'a', '1')])
  const written = done(await engine.write([label('one', 'a', '1')], author))
  assert.deepEqual(written.changes, [])
  assert.equal(written.revision, 2)
})

test('a write that loses every race gives up as unavailable instead of trying for ever', async (t) => {
  const store = withCommit(openMemoryStore(), () => async () => ({ ok: false, head: 0 }))
  const engine = await start(t, store)
  assert.equal(problemCode(await engine.write([namespace('a')], author)), 'unavailable')
  assert.equal(engine.state.revision, 0)
})

test('what was decided while another write was taken in is decided again', async (t) => {
  const memory = openMemoryStore()
  const other = await start(t, memory)
  done(await other.write([namespace('mine')], author))
  let reads = 0
  const store: Store = {
    ...memory,
    async *log(...range) {
      if (++reads === 1) {
        done(await other.write([namespace('theirs')], author))
        await engine.catchUp()
      }
      yield* memory.log(...range)
    },
  }
  const engine = await start(t, store)
  const reverted = done(await engine.write([{ op: 'revert', revision: 1, path: '' }], author))
  assert.equal(reverted.revision, 3)
  assert.equal(reads, 2)
})

/** What is kept under one key, by whoever is first. */
function once(answer: string) {
  return { key: 'key', fingerprint: 'same', response: () => answer }
}

test('of two processes that find nothing to change under one key at once, both answer the same', async (t) => {
  const memory = openMemoryStore()
  const other = await start(t, memory)
  done(await other.write([cluster('one'), label('one', 'a', '1')], author))
  const again = [label('one', 'a', '1')]
  const save: Store['idempotency']['save'] = async (record) => {
    done(await other.write(again, author, { idempotency: once('theirs') }))
    await memory.idempotency.save(record)
  }
  const engine = await start(t, { ...memory, idempotency: { ...memory.idempotency, save } })
  const { replayed, response } = done(await engine.write(again, author, { idempotency: once('ours') }))
  assert.deepEqual([replayed, response], ['theirs', undefined])
})

test('whoever is answered again what another process has just written finds it here', async (t) => {
  const memory = openMemoryStore()
  const other = await start(t, memory)
  const find: Store['idempotency']['find'] = async (...asked) => {
    done(await other.write([namespace('a')], author, { idempotency: once('made a') }))
    return memory.idempotency.find(...asked)
  }
  const engine = await start(t, { ...memory, idempotency: { ...memory.idempotency, find } })
  const { replayed } = done(await engine.write([namespace('a')], author, { idempotency: once('made a') }))
  assert.equal(replayed, 'made a')
  assert.ok(engine.state.get('namespaces', 'a'))
})

test('an engine catches up with what another has committed', async (t) => {
  const store = openMemoryStore()
  const [one, two] = [await start(t, store), await start(t, store)]
  await one.write([cluster('one')], author)
  await one.write([namespace('a')], author)
  await one.write(
    [{ op: 'delete', type: 'clusters', id: 'one', cascade: false, purge: false, path: '' }],
    author,
  )
  assert.equal(two.state.revision, 0)
  await Promise.all([two.catchUp(), two.catchUp(), two.catchUp()])
  assert.deepEqual(served(two), served(one))
  assert.equal(two.state.clusterByDns('one.k8s.example.com')?.deleted, true)
})

test('an engine that starts late serves what an engine that saw everything serves', async (t) => {
  const store = openMemoryStore()
  const early = await start(t, store)
  for (const command of [cluster('one'), namespace('a'), label('one', 'n', '1'), label('one', 'n', '2')]) {
    done(await early.write([command], author))
  }
  assert.deepEqual(served(await start(t, store)), served(early))
})

test('two engines on one SQLite file that write at once lose nothing and end equal', async (t) => {
  const path = join(temporaryFolder(t), 'fleet.db')
  const open = () => openSqliteStore({ path, write: true })
  const engines = [await start(t, open()), await start(t, open())] as const
  done(await engines[0].write([cluster('shared')], author))
  const each = 150
  const writes = engines.flatMap((engine, e) =>
    Array.from({ length: each }, (_, i) =>
      engine.write([label('shared', `e${e}-${i}`, 'yes'), namespace(`e${e}-${i}`)], author),
    ),
  )
  const revisions = (await Promise.all(writes)).map((result) => done(result).revision)
  assert.equal(new Set(revisions).size, 2 * each, 'every write has a revision of its own')
  for (const engine of engines) await engine.catchUp()
  assert.deepEqual(served(engines[0]), served(engines[1]))
  assert.equal(engines[0].state.revision, 2 * each + 1)
  const wanted = engines.flatMap((_, e) => Array.from({ length: each }, (_, i) => `e${e}-${i}`)).sort()
  const { document } = engines[0].state.get('clusters', 'shared') ?? assert.fail('no cluster')
  assert.deepEqual(Object.keys(document.labels as object).sort(), wanted)
  assert.deepEqual(
    [...engines[0].state.all('namespaces')].map(({ id }) => id),
    wanted,
  )
})

test('an engine that drains says so and finishes what comes, and one that has stopped takes no writes', async (t) => {
  const engine = await start(t)
  done(await engine.write([namespace('a')], author))
  engine.drain()
  assert.equal(engine.draining, true)
  done(await engine.write([namespace('b')], author))
  await engine.stop()
  assert.equal(problemCode(await engine.write([namespace('c')], author)), 'unavailable')
  assert.equal(engine.state.get('namespaces', 'a')?.id, 'a')
  assert.equal(engine.state.revision, 2)
})

test('stopping finishes the writes under way before it lets go of the store', async (t) => {
  const memory = openMemoryStore()
  const events: string[] = []
  const store: Store = {
    ...withCommit(memory, (through) => async (base, revision) => {
      await breathe()
      const result = await through(base, revision)
      events.push('committed')
      return result
    }),
    async close() {
      events.push('closed')
    },
  }
  const engine = await start(t, store)
  const writes = [engine.write([namespace('a')], author), engine.write([namespace('b')], author)]
  await engine.stop()
  for (const write of writes) done(await write)
  assert.deepEqual(events, ['committed', 'committed', 'closed'])
})

test('a store that cannot be loaded gives no engine', async () => {
  const store: Store = {
    ...openMemoryStore(),
    load: async () => {
      throw new StoreError('the database is damaged')
    },
  }
  await assert.rejects(startEngine({ store, types, now }), StoreError)
})

test('a failure while following is told and does not stop the following', async (t) => {
  const memory = openMemoryStore()
  const other = await start(t, memory)
  let moved = () => {}
  let broken = true
  const store: Store = {
    ...memory,
    watch(call) {
      moved = call
      return () => {}
    },
    async *changesSince(revision) {
      if (broken) throw new StoreError('the store is away')
      yield* memory.changesSince(revision)
    },
  }
  const told: string[] = []
  const engine = await start(t, store, { onStoreError: (_error, doing) => told.push(doing) })
  done(await other.write([namespace('a')], author))
  moved()
  await breathe()
  assert.deepEqual(told, ['follow'])
  assert.equal(engine.state.revision, 0)
  broken = false
  moved()
  await breathe()
  assert.equal(engine.state.revision, 1)
})

test('a gap in the log is told, once, and nothing beyond it is served', async (t) => {
  const failures: string[] = []
  let look: () => unknown = () => {}
  let isAhead = false
  const after = { document: { id: 'late' }, deleted: false, size: 13 }
  const store: Store = {
    ...openMemoryStore(),
    head: async () => ({ revision: isAhead ? 2 : 0, hash: '' }),
    async *changesSince() {
      yield { revision: 2, hash: '', changes: [{ type: 'namespaces', id: 'late', after }] }
    },
    watch(moved) {
      look = moved
      return () => {}
    },
  }
  const engine = await start(t, store, { onStoreError: (error) => failures.push(error.message) })
  isAhead = true
  for (let i = 0; i < 2; i++) {
    look()
    await breathe()
  }
  assert.deepEqual(failures, ['revision 1 is missing from the log'])
  assert.equal(engine.state.revision, 0)
  assert.equal(engine.state.get('namespaces', 'late'), undefined)
})

test('a store that was set back is not followed, and what is served stays', async (t) => {
  const memory = openMemoryStore()
  const older = { revision: 1, hash: '' }
  let isSetBack = false
  const engine = await start(t, { ...memory, head: async () => (isSetBack ? older : memory.head()) })
  done(await engine.write([namespace('a')], author))
  older.hash = (await memory.head()).hash
  done(await engine.write([namespace('b')], author))
  isSetBack = true
  assert.match(
    (await engine.check()).problem ?? '',
    /the store is at revision 1, and this process at 2 already: it was set back/,
  )
  assert.equal(problemCode(await engine.write([namespace('c')], author)), 'unavailable')
  assert.equal(engine.state.revision, 2)
  assert.ok(engine.state.get('namespaces', 'b'))
})

test('a process that is behind what was pruned reads the documents again', async (t) => {
  const store = openMemoryStore()
  const [writer, behind] = [await start(t, store), await start(t, store)]
  done(await writer.write([namespace('a')], author))
  await behind.catchUp()
  done(await writer.write([namespace('b')], author))
  done(
    await writer.write(
      [{ op: 'delete', type: 'namespaces', id: 'a', cascade: false, purge: false, path: '' }],
      author,
    ),
  )
  await store.prune({ revision: 3, time: '', hash: '', state: '' })
  await behind.catchUp()
  assert.equal(behind.state.revision, 3)
  assert.deepEqual(
    [...behind.state.all('namespaces')].map(({ id }) => id),
    ['b'],
  )
  done(await behind.write([namespace('c')], author))
})

test('a log that was cut before what is served, and does not know it, is not followed', async (t) => {
  const store = openMemoryStore()
  const [writer, behind] = [
    await start(t, store),
    await start(t, { ...store, hashOf: async () => undefined }),
  ]
  done(await writer.write([namespace('a')], author))
  await store.prune({ revision: 1, time: '', hash: (await store.head()).hash, state: '' })
  await behind.catchUp()
  done(await writer.write([namespace('b')], author))
  await assert.rejects(behind.catchUp(), /another revision 1 than this process/)
  assert.equal(behind.state.revision, 1)
})

test('a process that has nothing yet serves what an empty store is filled with', async (t) => {
  const store = openMemoryStore()
  const engine = await start(t, store)
  assert.equal(engine.state.revision, 0)
  const document = { type: 'namespaces', id: 'a', revision: 2, deleted: false, json: '{"id":"a"}' }
  await store.initFromSnapshot({ revision: 3, time: '', hash: 'of 3', state: '' }, [document])
  await engine.catchUp()
  assert.equal(engine.state.revision, 3)
  assert.ok(engine.state.get('namespaces', 'a'))
  done(await engine.write([namespace('b')], author))
})

test('a store that is being filled is not served before all of it is there, by whoever runs or starts', async (t) => {
  const writer = await start(t)
  for (let i = 0; i < 300; i++) done(await writer.write([namespace(`n${i}`)], author))
  const lines: string[] = []
  for await (const line of writer.past.export({ since: 0, now: now() })) lines.push(line)
  const store = openMemoryStore()
  const running = await start(t, store)
  const killed = importLog(store, Readable.from(lines.slice(0, -1)))
  await assert.rejects(killed, /there is no end/)
  assert.ok((await store.head()).revision > 0)
  const late = await start(t, store)
  assert.deepEqual([running.isLoaded, late.isLoaded], [true, false])
  for (const engine of [running, late]) {
    const { problem } = await engine.check()
    assert.match(problem ?? '', /is being filled .* run it again if it was broken off/)
    assert.equal(engine.state.revision, 0)
    assert.equal(problemCode(await engine.write([namespace('mine')], author)), 'unavailable')
  }
  await importLog(store, Readable.from(lines))
  for (const engine of [running, late]) {
    assert.equal((await engine.check()).problem, undefined)
    assert.equal(engine.state.revision, 300)
    assert.ok(engine.isLoaded)
  }
})

test('what another process has just committed can be read at once', async (t) => {
  const store = openMemoryStore()
  const [writer, reader] = [await start(t, store), await start(t, store)]
  done(await writer.write([namespace('a')], author))
  const seen = await reader.inspect(async (past) => past.resolve({ revision: 1 }, '?at'))
  assert.deepEqual(seen, { ok: true, value: 1 })
  assert.equal(reader.state.get('namespaces', 'a')?.id, 'a')
})

test('a preview waits for no write and holds up none, and shows the fleet as it was when it began', async (t) => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const slow = withCommit(openMemoryStore(), (through) => async (...entry) => {
    await released
    return through(...entry)
  })
  const engine = await start(t, slow)
  const waiting = engine.write([namespace('slow')], author)
  const preview = done(await engine.write([namespace('seen')], author, { dryRun: true }))
  assert.deepEqual(
    preview.changes.map(({ id }) => id),
    ['seen'],
  )
  assert.equal(preview.revision, 0)
  release()
  assert.equal(done(await waiting).revision, 1)
})

test('a preview and a write that are interrupted change nothing, and say why', async (t) => {
  const engine = await start(t)
  done(await engine.write([cluster('a'), namespace('n')], author))
  const many = Array.from({ length: 20_000 }, (_, i) => label('a', `l${i}`, 'x'))
  for (const dryRun of [true, false]) {
    const leaving = new AbortController()
    const result = engine.write(many, author, { dryRun, signal: leaving.signal })
    await breathe()
    leaving.abort(new Interrupted({ code: 'unavailable', message: 'took too long' }))
    assert.equal(problemCode(await result), 'unavailable')
  }
  assert.equal(engine.state.revision, 1)
})

test('a rollback that is interrupted reads no more of the log', async (t) => {
  const store = openMemoryStore()
  let read = 0
  const slow: Store = {
    ...store,
    async *changedAfter(revision, only) {
      for await (const past of store.changedAfter(revision, only)) {
        read++
        yield past
        await breathe()
      }
    },
  }
  const engine = await start(t, slow)
  done(
    await engine.write(
      Array.from({ length: 50 }, (_, i) => namespace(`n${i}`)),
      author,
    ),
  )
  const leaving = new AbortController()
  const rollback: WriteCommand = { op: 'rollback', path: '', to: { revision: 0 }, allowEmpty: true }
  const result = engine.write([rollback], author, { dryRun: true, signal: leaving.signal })
  while (read < 3) await breathe()
  leaving.abort(new Interrupted({ code: 'unavailable', message: 'took too long' }))
  assert.equal(problemCode(await result), 'unavailable')
  assert.ok(read < 10, `${read} documents`)
})

test('a write of an administrator does not wait for a long one of somebody else, which is done after it', async (t) => {
  const engine = await start(t)
  done(await engine.write([cluster('a')], author))
  const many = Array.from({ length: 1_000 }, (_, i) => label('a', `l${i}`, 'x'))
  const long = engine.write(many, { ...author, actor: 'editor' }, { grant: { role: 'editor' } })
  await breathe()
  const urgent = done(await engine.write([namespace('n')], author, { grant: { role: 'admin' } }))
  assert.equal(urgent.revision, 2)
  assert.equal(done(await long).revision, 3)
})

test('a load that takes long says every few seconds how far it is', async (t) => {
  const store = openMemoryStore()
  let clock = performance.now()
  t.mock.method(performance, 'now', () => clock)
  const load: Store['load'] = async (take) => {
    for (let n = 1; n <= 3500; n++) {
      clock += 1
      take(1, {
        type: 'namespaces',
        id: `n${n}`,
        after: { document: { id: `n${n}` }, deleted: false, size: 1 },
      })
    }
    return { revision: 1, hash: 'x' }
  }
  const told: number[] = []
  await start(t, { ...store, load }, { onLoading: (documents) => told.push(documents) })
  assert.deepEqual(told, [2000])
})

test('a process does not read its own commit back, also when its head is looked at before it is published', async (t) => {
  const store = openSqliteStore({ path: join(temporaryFolder(t), 'fleet.db'), write: true })
  let reads = 0
  const watched: Store = {
    ...store,
    changesSince(revision) {
      reads++
      return store.changesSince(revision)
    },
    async commit(...given) {
      const result = await store.commit(...given)
      // As the timer does it that looks for commits of others.
      setImmediate(() => void engine.check())
      await breathe()
      await breathe()
      return result
    },
  }
  const engine = await start(t, watched)
  const before = reads
  for (const n of ['a', 'b', 'c']) done(await engine.write([namespace(n)], author))
  assert.equal(engine.state.revision, 3)
  assert.equal(reads, before)
})
