import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { STORES, temporaryDatabase } from '../../test/every-store.ts'
import {
  committed,
  loadAll,
  minute,
  other,
  put,
  recordUses,
  remove,
  revisionOf,
  usesOf,
} from '../store/fixtures-for-contract.ts'
import type { IdempotencyRecord } from '../store/idempotency.ts'
import { openMemoryStore } from '../store/memory.ts'
import { type NewRevision, type Store, StoreError } from '../store/store.ts'
import { type ExportOptions, exportLog } from './export-log.ts'
import { importLog } from './import-log.ts'
import { StreamError } from './transfer-items.ts'
import { checkLines, linesOf } from './transfer-lines.ts'
import { pruneLog, verifyLog } from './verify-log.ts'

const ALL = { limit: 1000, changeLimit: 1000 }
const NOW = new Date(minute(60))

function at<T extends NewRevision>(revisions: readonly T[], first = 1): T[] {
  return revisions.map((revision, i) => ({ ...revision, time: minute(first + i) }))
}

const TOKEN = { id: 'tok-1', name: 'ci', role: 'viewer', created_at: minute(2), secrets: [] }
const USE = { id: `${TOKEN.id} ${TOKEN.created_at}`, time: minute(9), address: '192.0.2.7' }
const ANSWER: IdempotencyRecord = { key: 'k', fingerprint: 'f', time: minute(50), answer: '{"status":200}' }

/** Seven revisions, a minute from one to the next: all kinds of changes, one of many, one of none. */
const SEVEN = at([
  revisionOf(put('a', { n: 1 }), put('b'), put('c'), other(put('a')), put('still')),
  {
    ...revisionOf(put('a', { n: 2, text: 'é "\u2028" \\ \u0000' })),
    message: 'why\nnot',
    client_address: '192.0.2.1',
  },
  revisionOf(put('b', {}, true)),
  revisionOf(remove('c'), {
    type: 'tokens',
    id: TOKEN.id,
    after: { json: JSON.stringify(TOKEN), deleted: false },
  }),
  revisionOf(...Array.from({ length: 45 }, (_, i) => put(`e${i}`))),
  revisionOf(),
  revisionOf(put('a', { n: 7 }), put('c', { again: true })),
])
const MORE = at([revisionOf(put('b', { n: 8 }), other(remove('a'))), revisionOf(put('new'))], 8)

async function sevenIn(store: Store): Promise<Store> {
  await committed(store, ...SEVEN)
  await store.idempotency.save(ANSWER)
  await recordUses(store, [USE])
  return store
}

function lines(store: Store, options: Partial<ExportOptions> = {}): AsyncGenerator<string> {
  return exportLog(store, { since: 0, now: NOW, ...options })
}

async function allLines(store: Store, options: Partial<ExportOptions> = {}): Promise<string[]> {
  return listed(lines(store, options))
}

async function listed<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

async function* from(all: Iterable<string>): AsyncGenerator<string> {
  yield* all
}

/** Everything that can be seen of a store. */
async function everythingOf(store: Store): Promise<object> {
  const anchor = await store.anchor()
  return {
    head: await store.head(),
    loaded: await loadAll(store),
    history: await store.history(ALL),
    anchor: anchor && { ...anchor },
  }
}

async function besideOf(store: Store): Promise<object> {
  return {
    answers: (await listed(store.idempotency.list(NOW.toISOString()))).map((answer) => ({ ...answer })),
    uses: await usesOf(store, USE.id),
  }
}

async function pruneAt(store: Store, time: string): Promise<void> {
  const pruned = await pruneLog(store, time)
  assert.ok(pruned.ok && pruned.pruned.revisions > 0)
}

/** The lines with an end that fits them: as somebody would make them who knows the format. */
function resealed(all: readonly string[]): string[] {
  const body = all.filter((line) => !line.startsWith('{"end"'))
  const end = JSON.parse(all.find((line) => line.startsWith('{"end"')) ?? assert.fail('no end'))
  const digest = createHash('sha256')
  for (const line of body) digest.update(`${line}\n`)
  return [...body, JSON.stringify({ end: { ...end.end, sha256: digest.digest('hex') } })]
}

function isDamaged(pattern: RegExp = /./): (error: unknown) => boolean {
  return (error) => error instanceof StreamError && error.isDamaged && pattern.test(error.message)
}

function isUnfit(pattern: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof StreamError && !error.isDamaged && pattern.test(error.message)
}

async function opened(t: TestContext, open: (t: TestContext) => Promise<Store>): Promise<Store> {
  const store = await open(t)
  t.after(() => store.close())
  return store
}

for (const [name, open] of Object.entries(STORES)) {
  describe(`a log that is moved, with ${name} on both sides`, () => {
    test('is the same log, with what is kept beside it', async (t) => {
      const source = await sevenIn(await opened(t, open))
      const target = await opened(t, open)
      const imported = await importLog(target, lines(source, { includeAuxiliary: true }))
      assert.deepEqual(await everythingOf(target), await everythingOf(source))
      assert.deepEqual(await besideOf(target), await besideOf(source))
      assert.deepEqual(imported, {
        from: { revision: 0, hash: '' },
        head: await source.head(),
        revisions: 7,
        known: 0,
        initialDocuments: 0,
        answers: 1,
        uses: 1,
      })
      assert.equal((await verifyLog(target)).verified, true)
    })

    test('leaves out what is kept beside it, unless that is asked for', async (t) => {
      const source = await sevenIn(await opened(t, open))
      const target = await opened(t, open)
      await importLog(target, lines(source))
      assert.deepEqual(await besideOf(target), { answers: [], uses: [] })
    })

    test('begins with the documents as they stood where its older part was given up', async (t) => {
      const source = await sevenIn(await opened(t, open))
      await pruneAt(source, minute(5))
      const target = await opened(t, open)
      const { initialDocuments } = await importLog(target, lines(source))
      assert.equal(initialDocuments, ['a', 'b', 'others/a', 'still', 'tokens/tok-1'].length)
      assert.deepEqual(await everythingOf(target), await everythingOf(source))
      assert.equal((await verifyLog(target)).verified, true)
      await committed(source, ...MORE)
      await importLog(target, lines(source, { since: 7 }))
      assert.deepEqual(await everythingOf(target), await everythingOf(source))
      assert.equal((await verifyLog(target)).verified, true)
    })

    test('is moved as well when nothing of it is left but where it ends', async (t) => {
      const source = await sevenIn(await opened(t, open))
      await pruneAt(source, minute(30))
      const target = await opened(t, open)
      await importLog(target, lines(source))
      assert.deepEqual(await everythingOf(target), await everythingOf(source))
      assert.equal((await verifyLog(target)).verified, true)
    })

    test('goes on where the target is, whatever it has of it already', async (t) => {
      const source = await sevenIn(await opened(t, open))
      for (const since of [0, 3, 7]) {
        const target = await opened(t, open)
        await importLog(target, lines(source, { until: 4 }))
        await importLog(target, lines(source, { since: Math.min(since, 4) }))
        const again = await importLog(target, lines(source, { since }))
        assert.deepEqual([again.revisions, again.known], [0, 7 - since])
        assert.deepEqual(await everythingOf(target), await everythingOf(source))
      }
    })

    test('is cut off at any line, and goes on with the same lines', async (t) => {
      const source = await sevenIn(await opened(t, open))
      await pruneAt(source, minute(2))
      const all = await allLines(source, { includeAuxiliary: true })
      const target = await opened(t, open)
      for (let kept = 0; kept < all.length; kept++) {
        await assert.rejects(importLog(target, from(all.slice(0, kept))), isDamaged(/no end/))
        assert.equal((await verifyLog(target)).verified, true)
        const { revision, importInProgress } = await target.head()
        assert.equal(importInProgress, revision > 0 || undefined, 'it is told that this is not all')
      }
      await assert.rejects(allLines(target), /is being filled/)
      await importLog(target, from(all))
      assert.deepEqual(await everythingOf(target), await everythingOf(source))
      assert.deepEqual(await besideOf(target), await besideOf(source))
      await assert.rejects(importLog(target, from(all.slice(0, 3))), isDamaged(/no end/))
      assert.deepEqual(await target.head(), await source.head(), 'what was whole stays so')
    })

    test('is not mixed with what somebody else writes to the target', async (t) => {
      const source = await sevenIn(await opened(t, open))
      const target = await opened(t, open)
      async function* interrupted(): AsyncGenerator<string> {
        for await (const line of lines(source)) {
          if (line.startsWith('{"revision":3')) await committed(target, revisionOf(put('mine')))
          yield line
        }
      }
      await assert.rejects(importLog(target, interrupted()), /somebody else wrote .* revision 1, not at 0/)
      const { revision, importInProgress } = await target.head()
      assert.deepEqual([revision, importInProgress], [1, undefined])
      assert.deepEqual(Object.keys((await loadAll(target)).documents), ['things/mine'])
    })
  })
}

test('a store is not said to be filled before the last of it is there', async () => {
  const source = await sevenIn(openMemoryStore())
  for (const includeAuxiliary of [false, true]) {
    const done: string[] = []
    const memory = openMemoryStore()
    const noted = <A extends unknown[], R>(name: string, run: (...given: A) => R) => {
      return (...given: A): R => {
        done.push(name === 'import' ? `import ${given[0]}` : name)
        return run(...given)
      }
    }
    await importLog(
      {
        ...memory,
        commit: noted('commit', memory.commit),
        initFromSnapshot: noted('initFromSnapshot', memory.initFromSnapshot),
        setImportInProgress: noted('import', memory.setImportInProgress),
        idempotency: { ...memory.idempotency, save: noted('save', memory.idempotency.save) },
        notes: { ...memory.notes, record: noted('record', memory.notes.record) },
      },
      lines(source, { includeAuxiliary }),
    )
    const written = includeAuxiliary ? ['commit', 'save', 'record'] : ['commit']
    assert.deepEqual(done, ['import true', ...written, 'import false'])
  }
})

test('a store that somebody else wrote to while it was filled is not said to be filled', async () => {
  const [source, target] = [openMemoryStore(), openMemoryStore()]
  for (let n = 0; n < 300; n++) await committed(source, revisionOf(put('a', { n })))
  async function* interrupted(): AsyncGenerator<string> {
    for await (const line of lines(source)) {
      if (line.startsWith('{"revision":250')) await committed(target, revisionOf(put('mine')))
      yield line
    }
  }
  await assert.rejects(importLog(target, interrupted()), /somebody else wrote to this store/)
  const { revision, importInProgress } = await target.head()
  assert.ok(revision > 1 && revision < 300, `it is at ${revision}`)
  assert.equal(importInProgress, true)
})

describe('lines that do not go on from what is here', () => {
  /** Tries lines on a store, which must stay as it is. */
  async function assertRefused(target: Store, all: readonly string[], pattern: RegExp): Promise<void> {
    const before = await everythingOf(target)
    await assert.rejects(importLog(target, from(all)), isUnfit(pattern))
    assert.deepEqual(await everythingOf(target), before)
  }

  test('start after it', async () => {
    const source = await sevenIn(openMemoryStore())
    const pattern = /starts at revision 5, this store is at 3: export one from 3/
    const target = await committed(openMemoryStore(), ...SEVEN.slice(0, 3))
    await assertRefused(target, await allLines(source, { since: 5 }), pattern)
    await assertRefused(openMemoryStore(), await allLines(source, { since: 1 }), /this store is at 0/)
  })

  test('end before it', async () => {
    const source = await sevenIn(openMemoryStore())
    const target = await sevenIn(openMemoryStore())
    for (const until of [0, 6])
      await assertRefused(target, await allLines(source, { until }), /older than what is here/)
  })

  test('are of another history, wherever it parted', async () => {
    const source = await sevenIn(openMemoryStore())
    for (const parted of [0, 3, 6]) {
      const other = [revisionOf(put('other')), ...SEVEN.slice(parted + 1)]
      const target = await committed(openMemoryStore(), ...SEVEN.slice(0, parted), ...at(other, parted + 1))
      for (const since of [0, parted, 7])
        await assertRefused(target, await allLines(source, { since }), /another history/)
      const short = await committed(openMemoryStore(), ...SEVEN.slice(0, parted), revisionOf(put('other')))
      await assertRefused(short, await allLines(source), /another history/)
    }
  })

  test('begin after it because the source gave up what is before', async () => {
    const source = await sevenIn(openMemoryStore())
    const target = await committed(openMemoryStore(), ...SEVEN.slice(0, 2))
    await pruneAt(source, minute(5))
    await assertRefused(
      target,
      await allLines(source, { since: 2 }),
      /begins with revision 4, .* this store is at 2: begin with an empty store/,
    )
  })

  test('are not made for a range that the source does not have', async () => {
    const source = await sevenIn(openMemoryStore())
    await assert.rejects(allLines(source, { since: 8 }), /source is at revision 7, before revision 8/)
    await assert.rejects(allLines(source, { until: 9 }), /source is at revision 7, before revision 9/)
    await assert.rejects(allLines(source, { since: 5, until: 4 }), /revision 4 is before revision 5/)
    await pruneAt(source, minute(5))
    await assert.rejects(allLines(source, { until: 3 }), /reaches back to revision 4/)
  })
})

test('lines go on from a store that gave up more than their source', async () => {
  const source = await sevenIn(openMemoryStore())
  const target = await sevenIn(openMemoryStore())
  await pruneAt(target, minute(6))
  await committed(source, ...MORE)
  for (const since of [7, 0, 2]) await importLog(target, from(await allLines(source, { since })))
  assert.deepEqual(await target.head(), await source.head())
  assert.equal((await verifyLog(target)).verified, true)
})

describe('lines that were changed on their way', () => {
  /** All kinds of lines: from a log whose older part was given up, with what is beside it. */
  async function everyKind(): Promise<string[]> {
    const source = await sevenIn(openMemoryStore())
    await pruneAt(source, minute(3))
    return allLines(source, { includeAuxiliary: true })
  }

  /** Whatever was taken before the change was found is a whole beginning of the same log. */
  async function assertFound(all: readonly string[], what: string): Promise<void> {
    await assert.rejects(checkAndImport(all), StoreError, what)
  }

  /** As a file is brought in: read once to check it, then once more. */
  async function checkAndImport(all: readonly string[]): Promise<void> {
    await checkLines(from(all))
    const target = openMemoryStore()
    await importLog(target, from(all)).finally(async () => {
      assert.equal((await verifyLog(target)).verified, true)
    })
  }

  test('are found by the digest at the end, whichever line and character it was', async () => {
    const all = await everyKind()
    await checkAndImport(all)
    for (const [i, line] of all.entries()) {
      for (const place of [1, Math.floor(line.length / 2), line.length - 2]) {
        const changed = `${line.slice(0, place)}${line[place] === '0' ? '1' : '0'}${line.slice(place + 1)}`
        await assert.rejects(checkLines(from(all.with(i, changed))), StreamError, `line ${i + 1}: ${changed}`)
      }
    }
  })

  test('are found by the hashes and the seal, where the digest was made to fit', async () => {
    const all = await everyKind()
    const edits: [start: string, edit: (line: string) => string][] = [
      ['{"document":{"type":"things","id":"still"', (line) => line.replace('\\"still\\"', '\\"other\\"')],
      ['{"document":{"type":"things","id":"b"', (line) => line.replace('"deleted":false', '"deleted":true')],
      ['{"document":{"type":"things","id":"a"', (line) => line.replace('"revision":2', '"revision":1')],
      ['{"revision":3', (line) => line.replace('"actor":"writer"', '"actor":"forger"')],
      ['{"revision":4', (line) => line.replace(/"time":"[^"]*"/, `"time":"${minute(40)}"`)],
      ['{"revision":5', (line) => line.replace(/"hash":"./, '"hash":"_').replace('_', '0')],
      ['{"revision":7', (line) => line.replace('"message":null', '"message":"forged"')],
      ['{"changes":[{"type":"things","id":"e0"', (line) => line.replace('"id":"e0"', '"id":"e99"')],
      ['{"changes":[{"type":"things","id":"a"', (line) => line.replace('\\"n\\":7', '\\"n\\":8')],
      [
        '{"changes":[{"type":"things","id":"c"',
        (line) => line.replace('"after_deleted":false', '"after_deleted":true'),
      ],
    ]
    for (const [start, edit] of edits) {
      const i = all.findIndex((line) => line.startsWith(start))
      assert.ok(i >= 0, `there is a line ${start}`)
      const changed = edit(all[i] as string)
      assert.notEqual(changed, all[i], `${start} was changed`)
      await assertFound(resealed(all.with(i, changed)), start)
    }
  })

  test('are found when one is missing, doubled, or in another place, where the digest was made to fit', async () => {
    const all = await everyKind()
    /** Outside the order of the log, one more or less is not a damage that anything but the digest can tell. */
    const isFree = (line: string): boolean => /^\{"(?:document|answer|use)"/.test(line)
    for (let i = 0; i < all.length - 1; i++) {
      const line = all[i] as string
      const next = all[i + 1] as string
      if (isFree(line)) continue
      await assertFound(resealed(all.toSpliced(i, 1)), `without line ${i + 1}`)
      await assertFound(resealed(all.toSpliced(i, 0, line)), `line ${i + 1} twice`)
      if (!next.startsWith('{"end"'))
        await assertFound(
          resealed(all.with(i, next).with(i + 1, line)),
          `lines ${i + 1} and ${i + 2} the other way`,
        )
    }
  })

  test('are found in a first reading, which knows nothing of any store, where their order tells it', async () => {
    const all = await everyKind()
    const place = (start: string): number => all.findIndex((line) => line.startsWith(start))
    const [document, third, seventh] = ['{"document"', '{"revision":3', '{"revision":7'].map(place) as [
      number,
      number,
      number,
    ]
    const header = all[0] as string
    const other = 'f'.repeat(64)
    const { hash: sixth } = JSON.parse(all[place('{"revision":6')] as string)
    const shortened = header.replace(/"until":7,"until_hash":"\w+"/, `"until":6,"until_hash":"${sixth}"`)
    const edits: [RegExp, string[]][] = [
      [
        /revision 7 has another hash than the header/,
        all.with(0, header.replace(/"until_hash":"\w+"/, `"until_hash":"${other}"`)),
      ],
      [/revision 7 is beyond the end/, all.with(0, shortened)],
      [/revision 8 is missing/, all.with(0, header.replace('"until":7', '"until":8'))],
      [
        /revision 3 has 2 changes, not 1/,
        all.with(third, (all[third] as string).replace('"change_count":1', '"change_count":2')),
      ],
      [/a document is out of its place/, all.toSpliced(third + 2, 0, all[document] as string)],
      [
        /a document is newer than revision 2/,
        all.with(document, (all[document] as string).replace(/"revision":\d/, '"revision":3')),
      ],
      [/revision 7 comes after 2: it is out of order/, all.toSpliced(third, seventh - third)],
      [
        /a revision is out of its place/,
        [...all.slice(0, -1), ...all.slice(seventh, seventh + 2), ...all.slice(-1)],
      ],
      [
        /the end is not that of the header/,
        all.with(-1, (all.at(-1) as string).replace('"revision":7', '"revision":6')),
      ],
      [/ends before it begins/, all.with(0, header.replace('"until":7', '"until":1'))],
      [/not for an empty store/, all.with(0, header.replace('"since":0', '"since":1'))],
      [/the header is missing|is not a log/, all.slice(1)],
    ]
    for (const [message, lines] of edits)
      await assert.rejects(checkLines(from(resealed(lines))), (error: Error) => {
        return error instanceof StreamError && message.test(error.message)
      })
  })

  test('are found when the last revisions are missing, though the end is there', async () => {
    const all = await allLines(await sevenIn(openMemoryStore()))
    const i = all.findIndex((line) => line.startsWith('{"revision":7'))
    const cut = resealed(all.filter((line, at) => at < i || line.startsWith('{"end"')))
    const target = openMemoryStore()
    await assert.rejects(importLog(target, from(cut)), isDamaged(/revision 7 is missing/))
    assert.equal((await target.head()).revision, 0)
  })

  test('are found when the documents that the log begins with are not all there', async () => {
    const all = await everyKind()
    const documents = all.flatMap((line, i) => (line.startsWith('{"document"') ? [i] : []))
    assert.ok(documents.length > 3)
    for (const i of documents) {
      const target = openMemoryStore()
      const without = resealed(all.toSpliced(i, 1))
      await assert.rejects(importLog(target, from(without)), isDamaged(/documents .* not what they were/))
      assert.equal((await target.head()).revision, 0)
    }
  })

  test('are found when something follows the end', async () => {
    const all = await everyKind()
    for (const more of ['', '{}', all[1] as string, all.at(-1) as string])
      await assert.rejects(checkLines(from([...all, more])), isDamaged())
  })

  test('are refused when they are of something else, or of a later version of the format', async () => {
    const [header = '', ...rest] = await everyKind()
    for (const first of ['', 'SQLite format 3', '[]', 'null', '{}', header.replace('-log', '-fog')])
      await assert.rejects(checkLines(from([first, ...rest])), isUnfit(/is not a log of flux-resourceset/))
    await assert.rejects(
      checkLines(from([header.replace('"version":2', '"version":3'), ...rest])),
      isUnfit(/version 3 of the format, not in 1 or 2/),
    )
  })

  test('are refused where a member is of another kind, and nothing is applied of it', async () => {
    const all = await everyKind()
    for (const [i, line] of all.entries()) {
      for (const [name, bad] of [
        [/"(revision|since|until|change_count|documents)":\d+/, '"$1":-1'],
        [/"(revision|since|until|change_count|documents)":(\d+)/, '"$1":"$2"'],
        [/"(deleted|after_deleted|last)":(?:true|false)/, '"$1":0'],
        [/"(hash|until_hash|sha256|state)":"[0-9a-f]{64}"/, '"$1":"abc"'],
        [/"(time)":"[^"]*"/, '"$1":"yesterday"'],
        [/"(id|type|actor|key|fingerprint)":"[^"]*"/, '"$1":null'],
        [/"(json|after)":"[^"]/, '"$1":"}'],
      ] as [RegExp, string][]) {
        const changed = line.replace(name, bad)
        if (changed === line) continue
        const target = openMemoryStore()
        await assert.rejects(
          importLog(target, from(all.with(i, changed))),
          isDamaged(),
          `${name} in line ${i + 1}`,
        )
        const { revision } = await target.head()
        assert.ok(revision === 0 || revision === 2 || i > all.findIndex((l) => l.startsWith('{"revision":3')))
      }
    }
  })

  test('are refused where a document is no JSON of one line', async () => {
    const source = await committed(openMemoryStore(), revisionOf(put('a')))
    const all = await allLines(source)
    for (const json of ['', '[]', '1', '{"id":"a"', '{"id":"a",\n"n":1}']) {
      const changed = all.map((line) =>
        line.replace(/"after":"(?:[^"\\]|\\.)*"/, `"after":${JSON.stringify(json)}`),
      )
      await assert.rejects(
        importLog(openMemoryStore(), from(resealed(changed))),
        isDamaged(/line 3: cannot be read/),
      )
    }
  })
})

describe('lines in bytes', () => {
  async function* chunks(text: string, size: number): AsyncGenerator<Uint8Array> {
    const bytes = Buffer.from(text)
    for (let i = 0; i < bytes.length; i += size) yield bytes.subarray(i, i + size)
  }

  test('come out as they went in, however they are cut', async () => {
    const wanted = ['{"a":"é😀\u2028"}', '', 'x'.repeat(50)]
    for (const size of [1, 2, 3, 7, 1000])
      assert.deepEqual(await listed(linesOf(chunks(`${wanted.join('\n')}\n`, size))), wanted)
    assert.deepEqual(await listed(linesOf(chunks('', 1))), [])
  })

  test('that end in the middle, or are not UTF-8, are damaged', async () => {
    await assert.rejects(listed(linesOf(chunks('a\nb', 10))), isDamaged(/last line is cut off/))
    const bad = (async function* () {
      yield Buffer.from([0x61, 0xff, 0x0a])
    })()
    await assert.rejects(listed(linesOf(bad)), isDamaged(/UTF-8/))
  })

  test('are refused when one has no end', async () => {
    const endless = (async function* () {
      const block = Buffer.alloc(1024 * 1024, 'x')
      for (let i = 0; i < 100; i++) yield block
    })()
    await assert.rejects(listed(linesOf(endless)), isDamaged(/longer than/))
  })
})

describe('a log that is moved while it is written', () => {
  test('ends where it was when that began, with no answer to a write that came later', async () => {
    const source = await sevenIn(openMemoryStore())
    const moving = lines(source, { includeAuxiliary: true })
    const first = await moving.next()
    await committed(
      source,
      { ...MORE[0], idempotency: { ...ANSWER, key: 'later' } } as NewRevision,
      ...MORE.slice(1),
    )
    await source.idempotency.save({ ...ANSWER, key: 'unchanged' })
    const all = [first.value as string, ...(await listed(moving))]
    const target = openMemoryStore()
    const { head, answers } = await importLog(target, from(all))
    assert.equal(head.revision, 7)
    assert.equal(answers, 1)
    assert.equal(await target.idempotency.find('later', NOW.toISOString()), undefined)
    assert.equal(JSON.parse(all.at(-1) as string).end.documents, 5 + 45 + 1)
    await importLog(target, lines(source, { since: 7, includeAuxiliary: true }))
    assert.deepEqual(await everythingOf(target), await everythingOf(source))
    assert.deepEqual(await besideOf(target), await besideOf(source))
  })

  test('has the documents it begins with as they stood, though all of them change meanwhile', async () => {
    const source = await sevenIn(openMemoryStore())
    await pruneAt(source, minute(5))
    const moving = lines(source)
    const begun = [await moving.next(), await moving.next()].map(({ value }) => value as string)
    await committed(
      source,
      revisionOf(put('a'), remove('b'), remove('still'), put('c'), other(put('a', { n: 9 }))),
    )
    const target = openMemoryStore()
    await importLog(target, from([...begun, ...(await listed(moving))]))
    await importLog(target, lines(source, { since: 7 }))
    assert.deepEqual(await everythingOf(target), await everythingOf(source))
  })

  test('is given up when its older part is, rather than moved with a gap', async (t) => {
    const source = await sevenIn(temporaryDatabase(t).open())
    const moving = lines(source)
    await moving.next()
    await moving.next()
    await pruneAt(source, minute(6))
    await assert.rejects(listed(moving), (error) => {
      return error instanceof StoreError && /was given up while it was read/.test(error.message)
    })
  })

  for (const [name, open] of Object.entries(STORES)) {
    test(`is moved as it was read ahead, or not at all, when its older part is given up: ${name}`, async (t) => {
      const source = await sevenIn(await opened(t, open))
      const moving = lines(source)
      const begun = [await moving.next(), await moving.next()].map(({ value }) => value as string)
      await pruneAt(source, minute(6))
      const rest = await listed(moving).catch((error) => error as Error)
      if (rest instanceof Error) return assert.match(rest.message, /was given up while it was read/)
      const target = openMemoryStore()
      await importLog(target, from([...begun, ...rest]))
      assert.deepEqual(await target.head(), await source.head())
    })
  }
})

describe('a log that is not whole', () => {
  for (const [what, sql, problem = /its hash is another/] of [
    ['a revision in other words', `UPDATE revisions SET message = 'forged' WHERE revision = 2`],
    ['a change to something else', `UPDATE changes SET after = '{"id":"a","n":99}' WHERE revision = 2`],
    [
      'a revision that is missing',
      `DELETE FROM changes WHERE revision = 6; DELETE FROM revisions WHERE revision = 6`,
      /revision 6 is missing/,
    ],
    ['a change that is missing', 'DELETE FROM changes WHERE revision = 5 AND position = 7'],
  ] as [string, string, RegExp?][]) {
    test(`is not moved: ${what}`, async (t) => {
      const { path, open } = temporaryDatabase(t)
      const source = await sevenIn(open())
      const db = new DatabaseSync(path)
      db.exec(`PRAGMA foreign_keys = OFF; ${sql}`)
      db.close()
      await assert.rejects(allLines(source), (error) => {
        return (
          error instanceof StoreError &&
          /see what "verify" finds/.test(error.message) &&
          problem.test(error.message)
        )
      })
    })
  }

  test('is not moved: documents from before it begins that are not what they were', async (t) => {
    const { path, open } = temporaryDatabase(t)
    const source = await sevenIn(open())
    await pruneAt(source, minute(5))
    const db = new DatabaseSync(path)
    db.exec(`UPDATE documents SET document = '{"id":"still","forged":true}' WHERE id = 'still'`)
    db.close()
    await assert.rejects(allLines(source), /documents are not what they were at revision 4.*verify/)
  })
})

describe('a log of many revisions, and a revision of many changes', () => {
  test('is written many revisions at a time, and tells how far it is', async () => {
    const many = Array.from({ length: 450 }, (_, i) => revisionOf(put(`x${i % 7}`, { i })))
    const source = await committed(openMemoryStore(), ...at(many))
    const target = openMemoryStore()
    const sizes: number[] = []
    const told: [number, number][] = []
    const counting: Store = {
      ...target,
      commit(base, ...revisions) {
        sizes.push(revisions.length)
        return target.commit(base, ...revisions)
      },
    }
    await importLog(counting, lines(source), { progress: (...to) => told.push(to) })
    assert.deepEqual(sizes, [200, 200, 50])
    assert.deepEqual(told, [
      [200, 450],
      [400, 450],
      [450, 450],
    ])
    assert.deepEqual(await everythingOf(target), await everythingOf(source))
  })

  test('travels without an answer that is longer than any line that is read', async () => {
    const source = await sevenIn(openMemoryStore())
    await source.idempotency.save({ ...ANSWER, key: 'long', answer: '"'.repeat(33 * 1024 * 1024) })
    async function* file(): AsyncGenerator<Uint8Array> {
      for await (const line of lines(source, { includeAuxiliary: true })) yield Buffer.from(`${line}\n`)
    }
    const target = openMemoryStore()
    assert.equal((await importLog(target, linesOf(file()))).answers, 1)
    assert.deepEqual(await target.idempotency.find(ANSWER.key, NOW.toISOString()), ANSWER)
    assert.deepEqual(await everythingOf(target), await everythingOf(source))
  })

  test('is written in parts of some size, and travels in lines of some size', async () => {
    const text = 'x'.repeat(300_000)
    const large = Array.from({ length: 40 }, (_, i) => revisionOf(put(`x${i}`, { text })))
    const one = revisionOf(...Array.from({ length: 30 }, (_, i) => put(`y${i}`, { text })))
    const source = await committed(openMemoryStore(), ...at([...large, one]))
    const all = await allLines(source)
    assert.ok(all.every((line) => line.length < 1_500_000))
    const target = openMemoryStore()
    const sizes: number[] = []
    const counting: Store = {
      ...target,
      commit(base, ...revisions) {
        sizes.push(revisions.flatMap(({ changes }) => changes).length)
        return target.commit(base, ...revisions)
      },
    }
    await importLog(counting, from(all))
    assert.ok(
      sizes.every((size) => size <= 48),
      String(sizes),
    )
    assert.ok(sizes.length >= 3)
    assert.deepEqual(await target.head(), await source.head())
  })
})
