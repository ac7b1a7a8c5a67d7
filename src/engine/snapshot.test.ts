import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { gunzipSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { AUTHOR, commands, SLOW_RUNS, start, types } from '../../test/random-fleet.ts'
import { temporaryFolder, waitFor } from '../../test/service.ts'
import { TOKENS } from '../domain/access/token.ts'
import { renderInputs } from '../domain/delivery/render-inputs.ts'
import { servedTo } from '../domain/delivery/served-view.ts'
import { State } from '../domain/documents/state.ts'
import type { Document } from '../domain/types/resource-type.ts'
import { openMemoryStore } from '../store/memory.ts'
import { type Head, type Store, StoreError } from '../store/store.ts'
import { type Engine, startEngine } from './engine.ts'
import { type Kept, keepSnapshots, openSnapshots, type Saved, type Snapshots } from './snapshot.ts'

const NOON = new Date('2026-01-31T12:00:00.000Z')
const HASH = 'c0ffee'.repeat(8)

type Put = readonly [type: string, document: Document, how?: { deleted?: boolean; revision?: number }]

/** A state of these documents, whatever their types. */
function stateOf(revision: number, documents: Iterable<Put>): State {
  const state = new State(types)
  for (const [type, document, { deleted = false, revision: made = 1 } = {}] of documents) {
    const size = JSON.stringify(document).length
    state.put(made, { type, id: document.id, after: { document, deleted, size } })
  }
  state.revision = revision
  state.settle()
  return state
}

const savedOf = (state: State, hash = HASH): Saved => ({ state, head: { revision: state.revision, hash } })

const cluster = (id: string, dns = `${id}.k8s.example.com`): Document => ({
  id,
  cluster_name: id,
  cluster_dns: dns,
  environment: 'dev',
  namespaces: [{ id: 'team-a' }],
  platform_components: [],
  rolebindings: [],
  patches: {},
})

const token = (id: string, hash: string): Document => ({
  id,
  name: id,
  role: 'editor',
  created_at: NOON.toISOString(),
  created_by: 'writer',
  secrets: [{ hash, created_at: NOON.toISOString() }],
})

/** A little of everything, and so small that every bit of it can be tried. */
const SMALL: readonly Put[] = [
  ['namespaces', { id: 'team-a', labels: { team: 'ä' } }, { revision: 2 }],
  ['clusters', cluster('one'), { revision: 3 }],
  ['clusters', cluster('old'), { revision: 4, deleted: true }],
  [TOKENS, token('tok-1', 'ab12')],
]
const small = () => savedOf(stateOf(7, SMALL))

/** So many documents of about 2.4 kB that hardly compress. */
function* large(count: number): Generator<Put> {
  for (let i = 0; i < count; i++) {
    yield ['gadgets', { id: `gadget-${i}`, text: randomBytes(1_750).toString('base64') }]
  }
}

/** All that a state holds, in an order that does not depend on how it came to be. */
function contentOf({ state, head }: Saved) {
  const key = ({ type, id }: { type: string; id: string }) => `${type}/${id}`
  const entries = state
    .everything()
    .map(({ type, entry: { id, document, revision, deleted, size } }) => ({
      ...{ type, id, document, revision, deleted, size },
    }))
    .sort((a, b) => (key(a) < key(b) ? -1 : 1))
  return { entries, revision: state.revision, head }
}

async function readBack(snapshots: Snapshots): Promise<Saved & { readonly time: string }> {
  return (await snapshots.read(types)) ?? assert.fail('there is nothing')
}

/** In a folder that is gone after the test, and after what has to be done first. */
function opened(t: TestContext, now?: () => Date, finish: () => Promise<unknown> = async () => {}) {
  const folder = temporaryFolder({ after: (clean) => t.after(() => finish().finally(clean)) })
  return { folder, file: join(folder, 'state.snapshot'), snapshots: openSnapshots(folder, now) }
}

/** A file of these lines with the digest that belongs to them, or another end. */
function sealed(lines: readonly (object | string)[], end?: string): Buffer {
  const text = lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('')
  const sha256 = createHash('sha256').update(text).digest('hex')
  return gzipSync(text + (end ?? `${JSON.stringify({ sha256 })}\n`))
}

const HEADER = { format: 'flux-resourceset-snapshot', version: 1, revision: 7, hash: HASH, documents: 1 }
const DOCUMENT = {
  ...{ type: 'namespaces', id: 'team-a', revision: 2, deleted: false, size: 15 },
  document: { id: 'team-a' },
}

/** Refused as a whole, in words that name the file and what to do. */
async function refuses(snapshots: Snapshots, file: string, problem = /./): Promise<void> {
  await assert.rejects(snapshots.read(types), (error) => {
    assert.ok(error instanceof StoreError, String(error))
    assert.ok(error.message.includes(file), error.message)
    assert.match(error.message, /; delete it: another one is saved/)
    assert.match(error.message, problem)
    return true
  })
}

describe('what was saved is read back', () => {
  test('to the last field: deleted documents, tokens, unknown types, sizes, revisions, the time', async (t) => {
    const { snapshots } = opened(t, () => NOON)
    const saved = savedOf(stateOf(7, [...SMALL, ['gadgets', { id: 'x', text: 'a\nb\u2028c\r"\\😀' }]]))
    await snapshots.write(saved)
    const read = await readBack(snapshots)
    assert.deepEqual(contentOf(read), contentOf(saved))
    assert.equal(read.time, NOON.toISOString())
    const { state } = read
    assert.equal(state.clusterByDns('one.k8s.example.com')?.id, 'one')
    assert.equal(state.clusterByDns('old.k8s.example.com')?.deleted, true)
    assert.equal(state.tokenByHash('ab12')?.id, 'tok-1')
    assert.equal(state.get('clusters', 'old'), undefined)
    assert.deepEqual(state.ceilings, saved.state.ceilings)
    for (const type of types.delivered) {
      const polled = ({ state: view }: Saved) =>
        renderInputs(
          servedTo(types, view, 'one'),
          types,
          type,
          view.get('clusters', 'one') ?? assert.fail('no cluster'),
        )
      assert.deepEqual(polled(read), polled(saved))
    }
  })

  test('also when it is nothing at all', async (t) => {
    const { snapshots } = opened(t)
    const saved = savedOf(stateOf(0, []), '')
    await snapshots.write(saved)
    assert.deepEqual(contentOf(await readBack(snapshots)), contentOf(saved))
  })

  test('whatever fleet it is', async (t) => {
    const { snapshots } = opened(t)
    const counted = { deleted: 0, live: 0 }
    await fc.assert(
      fc.asyncProperty(commands, async (list) => {
        const store = openMemoryStore()
        const engine = await start(store)
        for (const command of list) await engine.write([command], AUTHOR, { confirmRemovals: true })
        await engine.stop()
        const state = new State(types)
        const head = await store.load((revision, document) => state.put(revision, document))
        state.revision = head.revision
        const saved = { state, head }
        await snapshots.write(saved)
        assert.deepEqual(contentOf(await readBack(snapshots)), contentOf(saved))
        for (const { entry } of state.everything()) counted[entry.deleted ? 'deleted' : 'live']++
      }),
      SLOW_RUNS,
    )
    assert.ok(counted.deleted > 0 && counted.live > 0, JSON.stringify(counted))
  })

  test('whatever is in the documents', async (t) => {
    const { snapshots } = opened(t)
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('\n', '\r\n', '\u2028', '\ud800', ''),
    )
    const fields = fc
      .dictionary(text, fc.oneof(text, fc.jsonValue()), { noNullPrototype: true })
      .map((value) => JSON.parse(JSON.stringify(value)) as Document)
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(text, text, fields), { maxLength: 5 }), async (list) => {
        const documents = list.map(([type, id, more]): Put => [`x${type}`, { ...more, id }])
        const saved = savedOf(stateOf(3, documents))
        await snapshots.write(saved)
        assert.deepEqual(contentOf(await readBack(snapshots)), contentOf(saved))
      }),
      { numRuns: 60 },
    )
  })

  test('as it was at the call, whatever is published while it is being written', async (t) => {
    const { snapshots } = opened(t)
    const state = stateOf(7, large(500))
    const saved = savedOf(state)
    const before = contentOf(saved)
    const writing = snapshots.write(saved)
    for (let i = 0; i < 20; i++) {
      const document = { id: `gadget-${i * 25}`, text: 'changed' }
      state.apply(8 + i, [{ type: 'gadgets', id: document.id, after: { document, deleted: false, size: 9 } }])
      await turn()
    }
    await writing
    assert.deepEqual(contentOf(await readBack(snapshots)), before)
  })

  test('nothing, where there is no file or no folder', async (t) => {
    const { folder, snapshots } = opened(t)
    assert.equal(await snapshots.read(types), undefined)
    assert.equal(await openSnapshots(join(folder, 'no', 'where')).read(types), undefined)
    assert.deepEqual(readdirSync(folder), [])
  })
})

describe('a damaged file is never taken for another state', () => {
  test('cut short anywhere', async (t) => {
    const { file, snapshots } = opened(t)
    await snapshots.write(small())
    const { size } = statSync(file)
    for (let length = size - 1; length >= 0; length -= 2) {
      truncateSync(file, length)
      await refuses(snapshots, file)
    }
  })

  test('with any bit of the file flipped: refused, or still all of it where gzip does not use the bit', async (t) => {
    const { file, snapshots } = opened(t)
    await snapshots.write(small())
    const bytes = readFileSync(file)
    const whole = contentOf(small())
    const unused: number[] = []
    // Every bit of what gzip puts at the front and at the end, and one of each byte between them.
    const tail = (bytes.length - 9) * 8
    for (let bit = 0; bit < bytes.length * 8; bit += bit < 80 || bit >= tail ? 1 : 9) {
      const damaged = Buffer.from(bytes)
      damaged[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7))
      writeFileSync(file, damaged)
      const read = await snapshots.read(types).catch((error: unknown) => error)
      if (read instanceof StoreError) continue
      assert.deepEqual(contentOf(read as Saved), whole, `bit ${bit}`)
      unused.push(bit)
    }
    // A time, a system and hints in the ten bytes at the front; what fills the last byte before the checksum.
    const checksum = (bytes.length - 8) * 8
    const elsewhere = unused.filter((bit) => bit >= 80 && (bit < checksum - 8 || bit >= checksum))
    assert.deepEqual(elsewhere, [])
  })

  test('with any byte of its text changed or cut off, though it is packed well', async (t) => {
    const { file, snapshots } = opened(t)
    await snapshots.write(small())
    const text = gunzipSync(readFileSync(file))
    // A step that no line is a multiple of, so that every field of a line is met somewhere.
    for (let at = 0; at < text.length; at += 3) {
      const damaged = Buffer.from(text)
      damaged[at] = (text[at] as number) ^ (1 << (at & 7))
      writeFileSync(file, gzipSync(damaged, { level: 0 }))
      await refuses(snapshots, file)
      writeFileSync(file, gzipSync(text.subarray(0, at), { level: 0 }))
      await refuses(snapshots, file)
    }
    writeFileSync(file, gzipSync(text, { level: 0 }))
    assert.deepEqual(contentOf(await readBack(snapshots)), contentOf(small()), 'the text itself is good')
  })

  test('with something after its end, packed or not, and however long it is', async (t) => {
    const { file, snapshots } = opened(t)
    for (const saved of [small(), savedOf(stateOf(7, large(200)))]) {
      await snapshots.write(saved)
      const bytes = readFileSync(file)
      for (const more of [Buffer.alloc(1), Buffer.alloc(200_000), Buffer.from('x\n'), bytes]) {
        writeFileSync(file, Buffer.concat([bytes, more]))
        await refuses(snapshots, file, /junk/)
      }
      for (const more of ['\n', '{}\n', 'x', gunzipSync(bytes)]) {
        writeFileSync(file, gzipSync(Buffer.concat([gunzipSync(bytes), Buffer.from(more)])))
        await refuses(snapshots, file, /goes on after its end|cut short/)
      }
    }
  })

  const wrong: readonly (readonly [name: string, content: Buffer, problem: RegExp])[] = [
    ['empty', Buffer.alloc(0), /unexpected end/],
    ['not packed', Buffer.from(JSON.stringify(HEADER)), /incorrect header/],
    ['packed, with nothing in it', gzipSync(''), /cut short/],
    ['of another format', sealed([{ ...HEADER, format: 'x' }, DOCUMENT]), /no snapshot/],
    ['not of objects', sealed(['null', DOCUMENT]), /no snapshot/],
    [
      'of a later version',
      sealed([{ ...HEADER, version: 3 }, DOCUMENT]),
      /version 3, and this process knows 1 and 2/,
    ],
    ['of a negative revision', sealed([{ ...HEADER, revision: -1 }, DOCUMENT]), /first line/],
    ['of no hash', sealed([{ ...HEADER, hash: null }, DOCUMENT]), /first line/],
    ['of no number of documents', sealed([{ ...HEADER, documents: '1' }, DOCUMENT]), /first line/],
    ['with a document too few', sealed([{ ...HEADER, documents: 2 }, DOCUMENT]), /a document is damaged/],
    ['with a document too many', sealed([HEADER, DOCUMENT, DOCUMENT]), /its digest/],
    ['without its last line', sealed([HEADER, DOCUMENT], ''), /cut short/],
    ['with another last line', sealed([HEADER, DOCUMENT], '{}\n'), /its digest/],
    ['with a last line that is null', sealed([HEADER, DOCUMENT], 'null\n'), /its digest/],
    ['with a line that is no JSON', sealed([HEADER, '{"type":']), /no JSON/],
    ['with an empty line', sealed([HEADER, '', DOCUMENT]), /no JSON/],
    ['with a list for a document', sealed([HEADER, '[]']), /a document is damaged/],
    ['with a document of no type', sealed([HEADER, { ...DOCUMENT, type: 1 }]), /a document is damaged/],
    ['with a document of no id', sealed([HEADER, { ...DOCUMENT, id: null }]), /a document is damaged/],
    ['with half a revision', sealed([HEADER, { ...DOCUMENT, revision: 1.5 }]), /a document is damaged/],
    ['with a document of no size', sealed([HEADER, { ...DOCUMENT, size: null }]), /a document is damaged/],
    ['that may be deleted', sealed([HEADER, { ...DOCUMENT, deleted: 1 }]), /a document is damaged/],
    ['without the document', sealed([HEADER, { ...DOCUMENT, document: null }]), /a document is damaged/],
    ['with a token without secrets', sealed([HEADER, { ...DOCUMENT, type: TOKENS }]), /./],
  ]
  for (const [name, content, problem] of wrong) {
    test(`a file ${name}`, async (t) => {
      const { file, snapshots } = opened(t)
      writeFileSync(file, content)
      await refuses(snapshots, file, problem)
      await snapshots.write(small())
      assert.deepEqual(
        contentOf(await readBack(snapshots)),
        contentOf(small()),
        'the next one takes its place',
      )
    })
  }

  test('files are made up by these tests as they are written', async (t) => {
    const { file, snapshots } = opened(t)
    writeFileSync(file, sealed([HEADER, DOCUMENT]))
    const saved = savedOf(stateOf(7, [['namespaces', { id: 'team-a' }, { revision: 2 }]]))
    assert.deepEqual(contentOf(await readBack(snapshots)), contentOf(saved))
    const made = gunzipSync(readFileSync(file)).toString()
    await snapshots.write(saved)
    assert.equal(gunzipSync(readFileSync(file)).toString(), made)
  })

  test('a folder in its place, or a file in the place of its folder', async (t) => {
    const { folder, file, snapshots } = opened(t)
    mkdirSync(file)
    await refuses(snapshots, file, /not a file/)
    writeFileSync(join(folder, 'other'), '')
    await refuses(
      openSnapshots(join(folder, 'other')),
      join(folder, 'other', 'state.snapshot'),
      /ENOTDIR: not a directory/,
    )
  })

  test('a file that may not be read', async (t) => {
    const { file, snapshots } = opened(t)
    await snapshots.write(small())
    chmodSync(file, 0)
    await asNobody(() => refuses(snapshots, file, /EACCES/))
  })

  test('leaves no file open', { skip: !existsSync('/proc/self/fd') && 'no /proc' }, async (t) => {
    const { file, snapshots } = opened(t)
    await snapshots.write(savedOf(stateOf(7, large(200))))
    await snapshots.read(types)
    const open = () => readdirSync('/proc/self/fd').length
    const before = open()
    const bytes = readFileSync(file)
    for (const damaged of [bytes, bytes.subarray(0, -1), bytes.subarray(5), sealed([HEADER, '{']), bytes]) {
      writeFileSync(file, damaged)
      await snapshots.read(types).catch(() => {})
      await snapshots.write(small())
    }
    await waitFor('all files are closed', () => open() <= before)
  })
})

/** Without the rights of root, which may do anything. */
test('a snapshot with rollouts that go on, or with holds, has another version: programs of before must not start from it', async (t) => {
  const { snapshots, file } = opened(t)
  const versionOf = async (...more: Put[]): Promise<number> => {
    const saved = savedOf(stateOf(7, [['clusters', cluster('one')], ...more]))
    await snapshots.write(saved)
    assert.deepEqual(contentOf(await readBack(snapshots)), contentOf(saved))
    const [header = ''] = gunzipSync(readFileSync(file)).toString().split('\n', 1)
    return JSON.parse(header).version
  }
  const plan: Put = ['rollout_plans', { id: 'r6', edits: [], members: [] }]
  assert.equal(await versionOf(['rollouts', { id: 'r6' }]), 1)
  assert.equal(await versionOf(['rollouts', { id: 'r6' }], plan), 2)
  assert.equal(await versionOf(['holds', { id: 'one', documents: {} }]), 2)
})

async function asNobody(run: () => Promise<void>): Promise<void> {
  const isRoot = process.geteuid?.() === 0
  if (isRoot) process.seteuid?.(65534)
  try {
    await run()
  } finally {
    if (isRoot) process.seteuid?.(0)
  }
}

describe('a snapshot on the disk', () => {
  const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

  for (const umask of [0, 0o022, 0o377]) {
    test(`is for its owner alone under umask ${umask.toString(8)}`, async (t) => {
      const { folder } = opened(t)
      const before = process.umask(umask & 0o077)
      t.after(() => process.umask(before))
      const inner = join(folder, 'made', 'here')
      const snapshots = openSnapshots(inner)
      await snapshots.write(small())
      assert.equal(modeOf(inner), '700')
      process.umask(umask)
      await snapshots.write(small())
      assert.equal(modeOf(join(inner, 'state.snapshot')), '600')
      chmodSync(join(inner, 'state.snapshot'), 0o644)
      await snapshots.write(small())
      assert.equal(modeOf(join(inner, 'state.snapshot')), '600')
    })
  }

  test('is replaced in one step: whoever reads meanwhile gets all of one or of the other', async (t) => {
    const { folder, snapshots } = opened(t)
    const both = [savedOf(stateOf(1, large(300)), 'a'), savedOf(stateOf(2, large(20)), 'b')]
    const contents = new Map(both.map((saved) => [saved.head.revision, contentOf(saved)]))
    await snapshots.write(both[0] as Saved)
    let isDone = false
    async function readOn(): Promise<Set<number>> {
      const seen = new Set<number>()
      for (let reads = 0; !isDone && reads < 10_000; reads++) {
        const read = await readBack(openSnapshots(folder))
        assert.deepEqual(contentOf(read), contents.get(read.head.revision))
        seen.add(read.head.revision)
      }
      return seen
    }
    async function writeOn(): Promise<void> {
      for (let i = 1; i <= 40; i++) await snapshots.write(both[i % 2] as Saved)
      isDone = true
    }
    const [seen] = await Promise.all([readOn(), writeOn()])
    assert.deepEqual([...seen].sort(), [1, 2])
    assert.deepEqual(readdirSync(folder), ['state.snapshot'])
  })

  test('takes away what a crash left of the one before, and nothing else', async (t) => {
    const { folder, snapshots } = opened(t)
    const others = ['notes.txt', 'state.snapshot.old', 'xstate.snapshot.1.tmp', 'state.snapshot-1.tmp']
    for (const name of [...others, 'state.snapshot.1.tmp', 'state.snapshot.a-b.tmp'])
      writeFileSync(join(folder, name), 'x')
    await snapshots.write(small())
    assert.deepEqual(readdirSync(folder).sort(), ['state.snapshot', ...others].sort())
  })

  test('outlives a process that is killed while it writes the next one', async (t) => {
    const { folder, snapshots } = opened(t)
    const program = `
      const { State } = await import(${JSON.stringify(join(import.meta.dirname, '../domain/documents/state.ts'))})
      const { openSnapshots } = await import(${JSON.stringify(join(import.meta.dirname, 'snapshot.ts'))})
      const state = new State({ all: [], delivered: [], cluster: { type: { name: 'clusters' } }, system: { all: [], get() {} } })
      for (let i = 0; i < 20000; i++) {
        const document = { id: String(i), text: String(i).repeat(500) }
        state.put(1, { type: 'gadgets', id: document.id, after: { document, deleted: false, size: 1 } })
      }
      for (let i = 0; i < 1000; i++)
        await openSnapshots(${JSON.stringify(folder)}).write({ state, head: { revision: 1, hash: '' } })`
    await snapshots.write(small())
    const { ino } = statSync(join(folder, 'state.snapshot'))
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'ignore' })
    t.after(() => child.kill('SIGKILL'))
    await waitFor('it writes', () => readdirSync(folder).some((name) => name.endsWith('.tmp')))
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
    const { head, state } = await readBack(snapshots)
    const isReplaced = statSync(join(folder, 'state.snapshot')).ino !== ino
    assert.equal(head.revision, isReplaced ? 1 : 7)
    assert.equal(state.everything().length, isReplaced ? 20_000 : SMALL.length)
    await snapshots.write(small())
    assert.deepEqual(readdirSync(folder), ['state.snapshot'])
  })

  test('is as it was when there is no room for the next one', async (t) => {
    let isMounted = false
    const { folder: outer } = opened(t, undefined, async () => isMounted && spawnSync('umount', [folder]))
    const folder = join(outer, 'tiny')
    mkdirSync(folder)
    isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder]).status === 0
    if (!isMounted) return t.skip('no small disk can be mounted here')
    const snapshots = openSnapshots(folder)
    await snapshots.write(small())
    const big = savedOf(stateOf(8, large(500)))
    for (let tries = 0; tries < 2; tries++) {
      await assert.rejects(snapshots.write(big), (error) => {
        assert.ok(error instanceof StoreError)
        assert.match(error.message, /state\.snapshot cannot be saved: ENOSPC: .*; see that .* there is room$/)
        return true
      })
      assert.deepEqual(readdirSync(folder), ['state.snapshot'])
    }
    assert.deepEqual(contentOf(await readBack(snapshots)), contentOf(small()))
    await snapshots.write(small())
  })

  test('cannot be saved or kept up to date where this process may not write', async (t) => {
    const { folder, snapshots } = opened(t, undefined, async () => chmodSync(folder, 0o700))
    await snapshots.write(small())
    const content = readFileSync(join(folder, 'state.snapshot'))
    chmodSync(folder, 0o500)
    await asNobody(() => assert.rejects(snapshots.write(small()), isStoreError(/EACCES/)))
    assert.deepEqual(readdirSync(folder), ['state.snapshot'])
    assert.deepEqual(readFileSync(join(folder, 'state.snapshot')), content)
    const isRoot = process.geteuid?.() === 0
    if (isRoot) await asNobody(() => assert.rejects(snapshots.confirm(), isStoreError(/EACCES|EPERM/)))
  })

  test('cannot be saved over a folder, or below a file, and leaves nothing behind', async (t) => {
    const { folder, file, snapshots } = opened(t)
    mkdirSync(file)
    await assert.rejects(snapshots.write(small()), isStoreError(/EISDIR|ENOTEMPTY|EEXIST/))
    assert.deepEqual(readdirSync(folder), ['state.snapshot'])
    writeFileSync(join(folder, 'other'), 'mine')
    await assert.rejects(openSnapshots(join(folder, 'other')).write(small()), isStoreError(/EEXIST/))
    await assert.rejects(openSnapshots(join(folder, 'other', 'x')).write(small()), isStoreError(/ENOTDIR/))
    assert.equal(readFileSync(join(folder, 'other'), 'utf8'), 'mine')
  })

  test('can be said to be all there is, if it is still there', async (t) => {
    let time = NOON
    const { file, snapshots } = opened(t, () => time)
    assert.equal(await snapshots.confirm(), false)
    assert.equal(existsSync(file), false)
    await snapshots.write(small())
    time = new Date(NOON.getTime() + 3_600_000)
    assert.equal(await snapshots.confirm(), true)
    const read = await readBack(snapshots)
    assert.equal(read.time, '2026-01-31T13:00:00.000Z')
    assert.deepEqual(contentOf(read), contentOf(small()))
  })
})

const isStoreError = (message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof StoreError, String(error))
  assert.match(error.message, message)
  return true
}

test('a large fleet is saved and read in turns with everything else', async (t) => {
  const { snapshots } = opened(t)
  const COUNT = 10_000
  let turns = 0
  let isDone = false
  const perTurn: number[] = []
  const state = stateOf(7, large(COUNT))
  for (const { entry } of state.everything()) {
    const noted = {
      enumerable: false,
      value: () => {
        perTurn[turns] = (perTurn[turns] ?? 0) + 1
        return { ...entry.document }
      },
    }
    Object.defineProperty(entry.document, 'toJSON', noted)
  }
  const counting = (async () => {
    for (; !isDone; turns++) await turn()
  })()
  await snapshots.write(savedOf(state))
  const written = turns
  assert.equal(
    perTurn.reduce((sum, count) => sum + count, 0),
    COUNT,
  )
  const most = Math.max(...perTurn.filter((count) => count !== undefined))
  assert.ok(most <= COUNT / 50, `${most} documents in one turn of ${written}`)
  const read = await readBack(snapshots)
  isDone = true
  await counting
  assert.ok(turns - written > 50, `read in ${turns - written} turns`)
  assert.equal(read.state.count('gadgets'), COUNT)
})

describe('snapshots are kept', () => {
  const SOON = { firstMs: 1, everyMs: 5 }

  /** A state that moves on, kept in a folder; what was asked of the snapshots is counted. */
  function keeping(t: TestContext, { times = SOON, now = () => NOON, known = true } = {}) {
    const { folder, file, snapshots: real } = opened(t, now, () => keeper.stop())
    const fleet = { state: stateOf(1, SMALL), hash: HASH, known, asked: 0 }
    const count = { writes: 0, confirms: 0 }
    const failures: StoreError[] = []
    const snapshots: Snapshots = {
      ...real,
      write(saved) {
        count.writes++
        return real.write(saved)
      },
      confirm() {
        count.confirms++
        return real.confirm()
      },
    }
    const kept: Kept = {
      current() {
        fleet.asked++
        return fleet.known ? savedOf(fleet.state, fleet.hash) : undefined
      },
      failed: (error) => failures.push(error),
    }
    /** Changes what is served, and its hash with it. */
    function move(): void {
      const revision = fleet.state.revision + 1
      const document = { id: 'team-b', labels: { revision: String(revision) } }
      const after = { document, deleted: false, size: JSON.stringify(document).length }
      fleet.state.apply(revision, [{ type: 'namespaces', id: 'team-b', after }])
      fleet.hash = `hash of ${revision}`
    }
    /** Until nothing is under way. */
    async function pause(): Promise<void> {
      fleet.known = false
      const { asked } = fleet
      await waitFor('it was asked a few times', () => fleet.asked >= asked + 3)
    }
    const keeper = keepSnapshots(snapshots, kept, times)
    const savedRevision = async () => (await real.read(types).catch(() => undefined))?.head.revision
    return { folder, file, snapshots: real, fleet, count, failures, keeper, move, pause, savedRevision, kept }
  }

  test('soon after the start, and again whenever the revision has moved', async (t) => {
    const { fleet, move, savedRevision, snapshots, count, failures } = keeping(t)
    await waitFor('it is saved', async () => (await savedRevision()) === 1)
    for (const revision of [2, 3]) {
      move()
      await waitFor('it is saved again', async () => (await savedRevision()) === revision)
    }
    const read = await readBack(snapshots)
    assert.deepEqual(contentOf(read), contentOf(savedOf(fleet.state, 'hash of 3')))
    assert.equal(count.writes, 3)
    assert.deepEqual(failures, [])
  })

  test('again when the same revision is another one', async (t) => {
    const { fleet, savedRevision, snapshots } = keeping(t)
    await waitFor('it is saved', async () => (await savedRevision()) === 1)
    fleet.hash = 'another'
    await waitFor('it is saved again', async () => (await readBack(snapshots)).head.hash === 'another')
  })

  test('as they are while the revision stands still: only their time moves on', async (t) => {
    let minutes = 0
    const now = () => new Date(NOON.getTime() + minutes * 60_000)
    const { file, count, savedRevision, snapshots } = keeping(t, { now })
    await waitFor('it is saved', async () => (await savedRevision()) === 1)
    const { ino } = statSync(file)
    for (minutes = 1; minutes <= 3; minutes++) {
      const time = now().toISOString()
      await waitFor('it is confirmed', async () => (await readBack(snapshots)).time === time)
    }
    assert.equal(statSync(file).ino, ino)
    assert.equal(count.writes, 1)
  })

  test('not at all while it is not known what there is', async (t) => {
    const { folder, fleet, count, keeper, pause, savedRevision } = keeping(t, { known: false })
    await pause()
    assert.deepEqual(readdirSync(folder), [])
    fleet.known = true
    await waitFor('it is saved', async () => (await savedRevision()) === 1)
    await pause()
    const before = { ...count }
    await pause()
    await keeper.stop()
    assert.deepEqual(count, before)
    assert.equal(count.writes, 1)
  })

  test('with the time at which they were known to be all, which does not move on by itself', async (t) => {
    const { kept, snapshots, file } = keeping(t, { known: false })
    let state = stateOf(1, SMALL)
    const keeper = keepSnapshots(
      snapshots,
      { ...kept, current: () => ({ ...savedOf(state), stalenessMs: 60_000 }) },
      SOON,
    )
    t.after(() => keeper.stop())
    const before = new Date(NOON.getTime() - 60_000).toISOString()
    for (const revision of [1, 2]) {
      state = stateOf(revision, SMALL)
      await waitFor('it is saved', async () => (await snapshots.read(types))?.head.revision === revision)
      assert.equal((await readBack(snapshots)).time, before)
    }
    await keeper.stop()
    assert.equal(statSync(file).mtime.toISOString(), before)
  })

  test('when the process stops: first what is under way, then what came meanwhile', async () => {
    const state = stateOf(1, SMALL)
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const done: string[] = []
    const snapshots: Snapshots = {
      read: async () => undefined,
      async write({ head }) {
        done.push(`begins ${head.revision}`)
        await gate
        done.push(`ends ${head.revision}`)
      },
      confirm: async () => done.push('confirms') > 0,
    }
    const keeper = keepSnapshots(snapshots, { current: () => savedOf(state), failed: assert.fail }, SOON)
    await waitFor('it has begun', () => done.length > 0)
    state.revision++
    const stopping = keeper.stop().then(() => done.push('stops'))
    for (let i = 0; i < 10; i++) await turn()
    assert.deepEqual(done, ['begins 1'])
    open()
    await stopping
    await keeper.stop()
    assert.deepEqual(done, ['begins 1', 'ends 1', 'begins 2', 'ends 2', 'stops', 'confirms'])
  })

  test('when the process stops before the first one was due', async (t) => {
    const { keeper, savedRevision } = keeping(t, { times: { firstMs: 600_000, everyMs: 600_000 } })
    await keeper.stop()
    assert.equal(await savedRevision(), 1)
  })

  test('with a failure told once, until one has worked again', async (t) => {
    const { folder, fleet, failures, count, move, pause, savedRevision } = keeping(t)
    await waitFor('it is saved', async () => (await savedRevision()) === 1)
    for (const told of [1, 2]) {
      await pause()
      rmSync(folder, { recursive: true })
      writeFileSync(folder, 'in the way')
      move()
      fleet.known = true
      await waitFor('it is told', () => failures.length === told)
      const { writes } = count
      await waitFor('it was tried again', () => count.writes >= writes + 3)
      assert.equal(failures.length, told)
      await pause()
      rmSync(folder)
      fleet.known = true
      await waitFor('it is saved', async () => (await savedRevision()) === told + 1)
    }
    for (const error of failures) {
      assert.ok(error instanceof StoreError)
      assert.match(error.message, /state\.snapshot cannot be saved: EEXIST/)
    }
  })

  test('also when somebody deletes them', async (t) => {
    const { file, count, failures, savedRevision } = keeping(t)
    await waitFor('it is saved', async () => (await savedRevision()) === 1)
    rmSync(file)
    await waitFor('it is saved again', async () => (await savedRevision()) === 1)
    assert.equal(count.writes, 2)
    assert.deepEqual(failures, [])
  })

  test('whole, when the state moves on while the file is looked for', async (t) => {
    const { kept, fleet, move, keeper, snapshots } = keeping(t, { known: false })
    await keeper.stop()
    fleet.known = true
    const heads: Head[] = []
    const moving: Snapshots = {
      ...snapshots,
      async confirm() {
        move()
        return false
      },
      async write(saved) {
        heads.push(saved.head)
        assert.equal(saved.head.revision, saved.state.revision)
        return snapshots.write(saved)
      },
    }
    const other = keepSnapshots(moving, kept, SOON)
    await waitFor('it is saved a few times', () => heads.length > 2)
    await other.stop()
    const read = await readBack(snapshots)
    assert.deepEqual(contentOf(read), contentOf(savedOf(fleet.state, fleet.hash)))
  })

  test('once a minute at most, the first time after five seconds', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const state = stateOf(1, SMALL)
    const done: string[] = []
    const snapshots: Snapshots = {
      read: async () => undefined,
      write: async ({ head }) => void done.push(`write ${head.revision}`),
      confirm: async () => done.push('confirm') > 0,
    }
    const keeper = keepSnapshots(snapshots, { current: () => savedOf(state), failed: assert.fail })
    async function pass(ms: number): Promise<void> {
      t.mock.timers.tick(ms)
      await turn()
    }
    await pass(4_999)
    assert.deepEqual(done, [])
    await pass(1)
    assert.deepEqual(done, ['write 1'])
    for (let second = 1; second < 60; second++) {
      state.revision++
      await pass(1_000)
    }
    assert.deepEqual(done, ['write 1'])
    await pass(1_000)
    await pass(60_000)
    assert.deepEqual(done, ['write 1', 'write 60', 'confirm'])
    await keeper.stop()
    assert.equal(done.length, 4)
    state.revision++
    await pass(600_000)
    assert.equal(done.length, 4, 'nothing more after the stop')
  })

  test('without keeping a process alive that has nothing else to do', (t) => {
    const { folder } = opened(t)
    const program = `
      const { keepSnapshots, openSnapshots } = await import(${JSON.stringify(join(import.meta.dirname, 'snapshot.ts'))})
      const snapshots = openSnapshots(${JSON.stringify(folder)})
      keepSnapshots(snapshots, { current() {}, failed() {} }, { firstMs: 600_000, everyMs: 600_000 })
      const alive = setInterval(() => {}, 10)
      keepSnapshots(snapshots, { current: () => clearInterval(alive), failed() {} }, { firstMs: 1, everyMs: 600_000 })`
    const args = ['--input-type=module', '-e', program]
    const { status, stderr } = spawnSync(process.execPath, args, { timeout: 60_000, encoding: 'utf8' })
    assert.equal(status, 0, stderr)
  })
})

test('an engine starts from what another one saved while the store is away, and goes on when it is back', async (t) => {
  let second: Engine | undefined
  const { snapshots } = opened(t, undefined, async () => second?.stop())
  const store = openMemoryStore()
  const parts = { types, now: () => new Date(), snapshots }
  const namespace = (id: string) =>
    ({ op: 'create', type: 'namespaces', document: { id }, path: '' }) as const
  // The next one goes on with the same store, which a stop would let go of.
  const first = await startEngine({ ...parts, store: { ...store, close: async () => {} } })
  assert.ok((await first.write([namespace('a')], AUTHOR)).ok)
  await first.stop()

  let isTransient = true
  const head: Store['head'] = async () => {
    if (isTransient) throw new StoreError('the store is away', { isTransient })
    return store.head()
  }
  const engine = await startEngine({ ...parts, store: { ...store, head } })
  second = engine
  assert.ok(engine.isLoaded)
  assert.deepEqual([engine.state.revision, engine.state.get('namespaces', 'a')?.revision], [1, 1])
  assert.equal((await engine.write([namespace('b')], AUTHOR)).ok, false)
  isTransient = false
  await waitFor('it is back', async () => (await engine.check()).problem === undefined)
  assert.ok((await engine.write([namespace('b')], AUTHOR)).ok)
})

test('an engine that stops while the store is away leaves what it served, and how old that is', async (t) => {
  const { snapshots } = opened(t)
  const store = openMemoryStore()
  let isTransient = false
  const head: Store['head'] = async () => {
    if (isTransient) throw new StoreError('the store is away', { isTransient })
    return store.head()
  }
  const parts = { types, now: () => new Date(), snapshots, store: { ...store, head, close: async () => {} } }
  const document = { id: 'a' }
  const first = await startEngine(parts)
  assert.ok((await first.write([{ op: 'create', type: 'namespaces', document, path: '' }], AUTHOR)).ok)
  isTransient = true
  await waitFor('it is noticed', async () => (await first.check()).problem !== undefined)
  await sleep(50)
  const { stalenessMs } = first.status
  await first.stop()
  const second = await startEngine(parts)
  t.after(() => second.stop())
  assert.ok(second.isLoaded)
  assert.ok(second.state.get('namespaces', 'a'))
  assert.ok(
    second.status.stalenessMs >= Math.floor(stalenessMs),
    `${second.status.stalenessMs} of ${stalenessMs}`,
  )
})
