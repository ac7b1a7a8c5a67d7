import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, type TestContext, test } from 'node:test'
import { temporaryDatabase } from '../../test/every-store.ts'
import { committed, loadAll, minute, other, put, remove, revisionOf } from '../store/fixtures-for-contract.ts'
import { openMemoryStore } from '../store/memory.ts'
import { openSqliteStore } from '../store/sqlite/sqlite.ts'
import type { Anchor, NewRevision, Store } from '../store/store.ts'
import { pruneLog, verifyLog } from './verify-log.ts'

const ALL = { limit: 1000, changeLimit: 1000 }

function at<T extends NewRevision>(revisions: readonly T[], first = 1): T[] {
  return revisions.map((revision, i) => ({ ...revision, time: minute(first + i) }))
}

/** Seven revisions, a minute from one to the next: all kinds of changes, and one of more changes than a part holds. */
const SEVEN = at([
  revisionOf(put('a', { n: 1 }), put('b'), put('c'), other(put('a')), put('still')),
  revisionOf(put('a', { n: 2 })),
  revisionOf(put('b', {}, true)),
  revisionOf(remove('c'), put('d')),
  revisionOf(...Array.from({ length: 250 }, (_, i) => put(`e${i}`))),
  revisionOf(put('a', { n: 6 }), put('c', { again: true })),
  revisionOf(put('e249', { n: 7 })),
])
/** Everything but c and b's life, which the seven take away, and 250 of e. */
const DOCUMENTS = ['a', 'b', 'c', 'd', 'others/a', 'still'].length + 250

/** What may come after them, touching what nothing has touched for long. */
const MORE = at(
  [
    revisionOf(put('b', { n: 8 }), other(remove('a'))),
    revisionOf(put('still', { n: 9 }, true), put('new')),
    revisionOf(),
    revisionOf(remove('d'), remove('new'), put('still', { n: 11 })),
  ],
  8,
)

async function hashOf(store: Store, revision: number): Promise<string | undefined> {
  return (await store.history({ ...ALL, revision }))[0]?.hash
}

/** Everything that can be seen of a store. */
async function everythingOf(store: Store): Promise<object> {
  const anchor = await store.anchor()
  return { loaded: await loadAll(store), history: await store.history(ALL), anchor: anchor && { ...anchor } }
}

async function anchored(store: Store, before: string): Promise<Anchor> {
  const result = await pruneLog(store, before)
  assert.ok(result.ok && result.pruned.anchor)
  return result.pruned.anchor
}

for (const [name, open] of [
  ['memory', () => openMemoryStore()],
  ['SQLite', (t: TestContext) => temporaryDatabase(t).open()],
] as const) {
  describe(`the log of a ${name} store`, () => {
    test('verifies when it is empty', async (t) => {
      assert.deepEqual(await verifyLog(open(t)), {
        verified: true,
        from: 1,
        to: 0,
        hash: '',
        revisions: 0,
        documents: 0,
        anchor: null,
        problems: [],
      })
    })

    test('verifies, and its last hash stands for all of it', async (t) => {
      const store = await committed(open(t), ...SEVEN)
      const expected = {
        verified: true,
        from: 1,
        to: 7,
        hash: await hashOf(store, 7),
        revisions: 7,
        documents: DOCUMENTS,
        anchor: null,
        problems: [],
      }
      assert.deepEqual(await verifyLog(store), expected)
      const [first, ...rest] = SEVEN as [NewRevision, ...NewRevision[]]
      const forged = await committed(open(t), { ...first, message: 'written later' }, ...rest)
      const { verified, hash } = await verifyLog(forged)
      assert.ok(verified)
      assert.notEqual(hash, expected.hash)
    })

    for (const count of [199, 200, 201, 400]) {
      test(`verifies with revisions of ${count} changes`, async (t) => {
        const many = (n: number) => Array.from({ length: count }, (_, i) => put(`e${i}`, { n }))
        const store = await committed(open(t), revisionOf(...many(1)), revisionOf(), revisionOf(...many(2)))
        const { problems, revisions, documents } = await verifyLog(store)
        assert.deepEqual({ problems, revisions, documents }, { problems: [], revisions: 3, documents: count })
      })
    }

    test('verifies after every part of it that can be given up, and after more commits', async (t) => {
      for (const revision of [1, 3, 4, 7]) {
        const store = await committed(open(t), ...SEVEN)
        const anchor = await anchored(store, minute(revision + 1))
        assert.equal(anchor.revision, revision)
        const { hash: last, ...verification } = await verifyLog(store)
        assert.deepEqual(
          { ...verification, anchor: { ...verification.anchor } },
          {
            verified: true,
            from: revision + 1,
            to: 7,
            revisions: 7 - revision,
            documents: DOCUMENTS,
            anchor,
            problems: [],
          },
        )
        assert.equal(last, revision === 7 ? anchor.hash : await hashOf(store, 7))
        for (const next of MORE) {
          await committed(store, next)
          assert.deepEqual((await verifyLog(store)).problems, [], `${revision} given up, ${next.time}`)
        }
      }
    })

    test('verifies after more of it is given up', async (t) => {
      const store = await committed(open(t), ...SEVEN, ...MORE)
      for (const before of [3, 5, 9, 12]) {
        await anchored(store, minute(before))
        const { problems, from } = await verifyLog(store)
        assert.deepEqual({ problems, from }, { problems: [], from: before })
      }
    })

    test('is verified from what the store holds, whatever was committed while it was read', async (t) => {
      const store = await committed(open(t), ...SEVEN)
      const verifying = verifyLog(store)
      for (const next of MORE) await committed(store, next)
      const { problems, to } = await verifying
      assert.deepEqual(problems, [])
      assert.ok(to >= 7 && to <= 11)
      assert.equal((await verifyLog(store)).to, 11)
    })
  })

  describe(`giving up the older part of a ${name} store’s log`, () => {
    test('takes every revision from before a time, and none of that time itself', async (t) => {
      const store = await committed(open(t), ...SEVEN)
      const hash = await hashOf(store, 3)
      const result = await pruneLog(store, minute(4))
      assert.ok(result.ok)
      const { revisions, anchor } = result.pruned
      assert.equal(revisions, 3)
      const { state, ...rest } = anchor as Anchor
      assert.deepEqual(rest, { revision: 3, time: minute(3), hash })
      assert.match(state, /^[0-9a-f]{64}$/)
      assert.deepEqual({ ...(await store.anchor()) }, anchor)
      assert.deepEqual(
        (await store.history(ALL)).map(({ revision }) => revision),
        [7, 6, 5, 4],
      )
    })

    test('counts only what is given up this time', async (t) => {
      const store = await committed(open(t), ...SEVEN)
      await anchored(store, minute(3))
      const result = await pruneLog(store, minute(6))
      assert.ok(result.ok)
      assert.deepEqual([result.pruned.revisions, result.pruned.anchor?.revision], [3, 5])
    })

    test('does nothing where nothing is that old', async (t) => {
      const store = await committed(open(t), ...SEVEN)
      assert.deepEqual(await pruneLog(store, minute(1)), {
        ok: true,
        pruned: { revisions: 0, anchor: undefined },
      })
      const anchor = await anchored(store, minute(4))
      const before = await everythingOf(store)
      for (const time of [minute(0), minute(3), minute(4)]) {
        const again = await pruneLog(store, time)
        assert.ok(again.ok)
        const { revisions, anchor: kept } = again.pruned
        assert.deepEqual({ revisions, anchor: { ...kept } }, { revisions: 0, anchor })
      }
      assert.deepEqual(await everythingOf(store), before)
    })

    test('of an empty store does nothing', async (t) => {
      const result = await pruneLog(open(t), minute(1))
      assert.deepEqual(result, { ok: true, pruned: { revisions: 0, anchor: undefined } })
    })

    test('only says what it would do when that is asked', async (t) => {
      const store = await committed(open(t), ...SEVEN)
      const before = await everythingOf(store)
      const tried = await pruneLog(store, minute(6), true)
      assert.deepEqual(await everythingOf(store), before)
      assert.deepEqual(await pruneLog(store, minute(6)), tried)
      assert.ok(tried.ok && tried.pruned.revisions === 5)
    })

    test('seals the documents as they stood then, however late it is done', async (t) => {
      const [early, late] = [open(t), await committed(open(t), ...SEVEN, ...MORE)]
      for (const [i, revision] of [...SEVEN, ...MORE].entries()) {
        await committed(early, revision)
        const [one, two] = await Promise.all(
          [early, late].map((store) => pruneLog(store, minute(i + 2), true)),
        )
        assert.ok(one?.ok && one.pruned.anchor?.revision === i + 1)
        assert.deepEqual(two, one)
      }
    })
  })
}

/** A way to tamper with a file, and what is said about it; also where that is not the same of a log that was cut. */
type Tampering = readonly [
  name: string,
  sql: string,
  problems: readonly string[],
  afterPruning?: readonly string[],
]

const isAnother = (revision: number) => `revision ${revision} is not what it was: its hash is another`
const isNotFrom = (revision: number, key: string) =>
  `revision ${revision} changes ${key}, but not from what it was`
const isMissing = (revision: number) => `revision ${revision} is missing`
const UNTOUCHED = 'the documents that have not changed since revision 3 are not what they were'
const NEW_DOCUMENT = `INSERT INTO documents VALUES ('things', 'forged', REVISION, 0, '{"id":"forged"}')`

const TAMPERINGS: readonly Tampering[] = [
  ['a message that was edited', `UPDATE revisions SET message = 'forged' WHERE revision = 6`, [isAnother(6)]],
  ['an actor who was replaced', `UPDATE revisions SET actor = 'forged' WHERE revision = 6`, [isAnother(6)]],
  [
    'a time that was moved',
    `UPDATE revisions SET time = '2026-01-31T12:00:30.000Z' WHERE revision = 6`,
    [isAnother(6)],
  ],
  [
    'a request id that was edited',
    `UPDATE revisions SET request_id = 'x' WHERE revision = 6`,
    [isAnother(6)],
  ],
  [
    'a client address that was made up',
    `UPDATE revisions SET client_address = '10.0.0.1' WHERE revision = 6`,
    [isAnother(6)],
  ],
  ['an operation that was edited', `UPDATE revisions SET operation = '' WHERE revision = 6`, [isAnother(6)]],
  [
    'a hash that was replaced',
    `UPDATE revisions SET hash = '${'0'.repeat(64)}' WHERE revision = 6`,
    [isAnother(6), isAnother(7)],
  ],
  [
    'what a document was before, edited',
    `UPDATE changes SET before = '{"id":"e249","n":9}' WHERE revision = 7`,
    [isNotFrom(7, 'things/e249'), isAnother(7)],
  ],
  [
    'what a document was before, taken away',
    `UPDATE changes SET before = NULL WHERE revision = 7`,
    [isNotFrom(7, 'things/e249'), isAnother(7)],
  ],
  [
    'what a change made of a document, edited',
    `UPDATE changes SET after = '{"id":"c","forged":true}' WHERE revision = 6 AND id = 'c'`,
    [isAnother(6), 'things/c is not what the log says'],
  ],
  [
    'a change that was made a deletion',
    `UPDATE changes SET after_deleted = 1 WHERE revision = 6 AND id = 'c'`,
    [isAnother(6), 'things/c is not what the log says'],
  ],
  [
    'a change that was given to another document',
    `UPDATE changes SET id = 'x' WHERE revision = 6 AND id = 'c'`,
    [isAnother(6), 'things/c is not what the log says', 'things/x is missing'],
  ],
  [
    'a change that was taken out of a large revision',
    `DELETE FROM changes WHERE revision = 5 AND position = 248`,
    [isAnother(5), 'things/e248 is not in the log'],
  ],
  [
    'a change that was added',
    `INSERT INTO changes SELECT 6, 2, type, id, before, before_deleted, after, after_deleted, before_revision
       FROM changes WHERE revision = 6 AND id = 'a'`,
    [isNotFrom(6, 'things/a'), isAnother(6)],
  ],
  [
    'two changes in another order',
    `UPDATE changes SET position = 9 WHERE revision = 6 AND position = 0`,
    [isAnother(6)],
  ],
  [
    'a revision that was taken out of the middle',
    `DELETE FROM changes WHERE revision = 6; DELETE FROM revisions WHERE revision = 6`,
    [isMissing(6), isAnother(7), 'things/a is not what the log says', 'things/c is not what the log says'],
    [
      isMissing(6),
      isAnother(7),
      UNTOUCHED,
      'things/a is not in the log',
      'things/c is not what the log says',
    ],
  ],
  [
    'the last revision, taken away',
    `DELETE FROM changes WHERE revision = 7; DELETE FROM revisions WHERE revision = 7`,
    [isMissing(7), 'things/e249 is not what the log says'],
  ],
  [
    'a revision that was made up',
    `INSERT INTO revisions (revision, time, actor, request_id, change_count, hash)
       VALUES (8, '2026-01-31T13:00:00.000Z', 'forged', 'r', 0, '${'0'.repeat(64)}');
     UPDATE head SET revision = 8`,
    [isAnother(8)],
  ],
  ['a head without its revision', `UPDATE head SET revision = 9`, ['revisions 8 to 9 are missing']],
  [
    'a head beyond all bounds',
    `UPDATE head SET revision = 9007199254740990`,
    ['revisions 8 to 9007199254740990 are missing'],
  ],
  [
    'a head that is behind the log',
    `UPDATE head SET revision = 6`,
    ['revision 7 is beyond the head of the store'],
  ],
  [
    'a document of another revision',
    `UPDATE documents SET revision = 5 WHERE id = 'd'`,
    ['things/d is not what the log says'],
  ],
  [
    'a count of changes that is another',
    `UPDATE revisions SET change_count = 99 WHERE revision = 6`,
    [isAnother(6)],
  ],
  [
    'a document that was edited',
    `UPDATE documents SET document = '{"id":"d","forged":true}' WHERE id = 'd'`,
    ['things/d is not what the log says'],
  ],
  [
    'a document in other words that mean the same',
    `UPDATE documents SET document = '{"id": "d"}' WHERE id = 'd'`,
    ['things/d is not what the log says'],
  ],
  [
    'a document that was made a tombstone',
    `UPDATE documents SET deleted = 1 WHERE id = 'd'`,
    ['things/d is not what the log says'],
  ],
  ['a document that was deleted', `DELETE FROM documents WHERE id = 'd'`, ['things/d is missing']],
  ['a document that was added', NEW_DOCUMENT.replace('REVISION', '6'), ['things/forged is not in the log']],
  [
    'a document that says it is still to come',
    NEW_DOCUMENT.replace('REVISION', '99'),
    ['things/forged is not in the log'],
  ],
]

const AT_START: readonly Tampering[] = [
  [
    'a first revision that was taken away',
    `DELETE FROM changes WHERE revision = 1; DELETE FROM revisions WHERE revision = 1`,
    [
      isMissing(1),
      isNotFrom(2, 'things/a'),
      isAnother(2),
      isNotFrom(3, 'things/b'),
      isNotFrom(4, 'things/c'),
      'others/a is not in the log',
      'things/still is not in the log',
    ],
  ],
  [
    'a first revision that claims to follow something',
    `UPDATE changes SET before = '{}' WHERE revision = 1 AND id = 'still'`,
    [isNotFrom(1, 'things/still'), isAnother(1)],
  ],
  [
    'an anchor that hides the beginning',
    `INSERT INTO anchor SELECT revision, time, hash, '${'0'.repeat(64)}' FROM revisions WHERE revision = 3`,
    [UNTOUCHED],
  ],
]

const AFTER_PRUNING: readonly Tampering[] = [
  ['an anchor without its hash', `UPDATE anchor SET hash = ''`, [isAnother(4), UNTOUCHED]],
  ['an anchor of another time', `UPDATE anchor SET time = 'x'`, [UNTOUCHED]],
  ['an anchor with another digest', `UPDATE anchor SET state = '${'0'.repeat(64)}'`, [UNTOUCHED]],
  [
    'an anchor of a later revision',
    `UPDATE anchor SET revision = 4`,
    [isAnother(5), 'the documents that have not changed since revision 4 are not what they were'],
  ],
  [
    'an anchor of an earlier revision',
    `UPDATE anchor SET revision = 2`,
    [
      isMissing(3),
      'the documents that have not changed since revision 2 are not what they were',
      'things/b is not in the log',
    ],
  ],
  [
    'an anchor that was taken away',
    `DELETE FROM anchor`,
    [
      'revisions 1 to 3 are missing',
      isNotFrom(4, 'things/c'),
      isAnother(4),
      isNotFrom(6, 'things/a'),
      'others/a is not in the log',
      'things/b is not in the log',
      'things/still is not in the log',
    ],
  ],
  [
    'a document untouched since the anchor, edited',
    `UPDATE documents SET document = '{"id":"still","forged":true}' WHERE id = 'still'`,
    [UNTOUCHED],
  ],
  [
    'a tombstone from before the anchor, brought to life',
    `UPDATE documents SET deleted = 0 WHERE id = 'b'`,
    [UNTOUCHED],
  ],
  ['a document untouched since the anchor, deleted', `DELETE FROM documents WHERE id = 'still'`, [UNTOUCHED]],
  ['a document that says it is from before the anchor', NEW_DOCUMENT.replace('REVISION', '2'), [UNTOUCHED]],
  [
    'what the first change since the anchor says of a document before it',
    `UPDATE changes SET before = '{"id":"c","forged":true}' WHERE revision = 4 AND id = 'c'`,
    [isAnother(4), UNTOUCHED],
  ],
  [
    'the first revision since the anchor, taken away',
    `DELETE FROM changes WHERE revision = 4; DELETE FROM revisions WHERE revision = 4`,
    [isMissing(4), isAnother(5), UNTOUCHED, 'things/d is not in the log'],
  ],
]

describe('a SQLite file that was tampered with', () => {
  const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-tampered-'))
  const [whole, pruned] = [join(folder, 'whole.db'), join(folder, 'pruned.db')]
  after(() => rmSync(folder, { recursive: true, force: true }))

  before(async () => {
    for (const path of [whole, pruned]) {
      const store = openSqliteStore({ path, write: true })
      try {
        await committed(store, ...SEVEN)
        if (path === pruned) await anchored(store, minute(4))
      } finally {
        await store.close()
      }
    }
  })

  let copies = 0
  /** Opens a copy of a file after something was done to it behind the program's back. */
  function tampered(t: TestContext, original: string, sql: string, write = false): Store {
    const path = join(folder, `copy-${copies++}.db`)
    copyFileSync(original, path)
    const db = new DatabaseSync(path)
    db.exec(sql)
    db.close()
    const store = openSqliteStore({ path, write })
    t.after(() => store.close())
    return store
  }

  const isFound = (original: string, [name, sql, problems, afterPruning = problems]: Tampering) => {
    test(name, async (t) => {
      const verification = await verifyLog(tampered(t, original, sql))
      const expected = original === pruned ? afterPruning : problems
      assert.deepEqual(verification.problems.toSorted(), expected.toSorted())
      assert.equal(verification.verified, false)
    })
  }

  test('is told from one that was not', async (t) => {
    for (const original of [whole, pruned]) {
      const { verified, problems } = await verifyLog(tampered(t, original, 'SELECT 1'))
      assert.deepEqual({ verified, problems }, { verified: true, problems: [] })
    }
  })

  describe('is found out by', () => {
    for (const tampering of [...TAMPERINGS, ...AT_START]) isFound(whole, tampering)
  })

  describe('after a part of its log was given up, is found out by', () => {
    for (const tampering of [...TAMPERINGS, ...AFTER_PRUNING]) isFound(pruned, tampering)
  })

  test('in many places is told of some of them', async (t) => {
    const store = tampered(t, whole, `DELETE FROM documents WHERE id LIKE 'e%'`)
    const { problems, verified } = await verifyLog(store)
    assert.equal(verified, false)
    assert.equal(problems.length, 20)
    assert.ok(problems.every((problem) => /^things\/e\d+ is missing$/.test(problem)))
  })

  test('stays found out after more commits', async (t) => {
    const store = tampered(t, whole, `UPDATE revisions SET message = 'forged' WHERE revision = 2`, true)
    await committed(store, ...MORE)
    assert.deepEqual((await verifyLog(store)).problems, [isAnother(2)])
  })

  test('gives up nothing of its log, whatever was done to it', async (t) => {
    const cases: readonly [string, Tampering][] = [
      [whole, TAMPERINGS[0] as Tampering],
      [whole, ['a document', `UPDATE documents SET deleted = 1 WHERE id = 'd'`, []]],
      [pruned, ['the anchor', `UPDATE anchor SET hash = ''`, []]],
    ]
    for (const [original, [name, sql]] of cases) {
      const store = tampered(t, original, sql, true)
      const before = await everythingOf(store)
      for (const dryRun of [true, false]) {
        const result = await pruneLog(store, minute(9), dryRun)
        assert.ok(!result.ok, name)
        assert.equal(result.verification.verified, false)
        assert.deepEqual(result.verification.problems, (await verifyLog(store)).problems)
      }
      assert.deepEqual(await everythingOf(store), before)
    }
  })
})

test('verifying beside another store that commits to the same file finds nothing wrong', async (t) => {
  const { open } = temporaryDatabase(t)
  const [writer, reader] = [open(), open({ write: false })]
  await committed(writer, ...SEVEN)
  let stop = false
  /** Many at a time, so that the writing thread is busy while the log is read. */
  async function writeOn(): Promise<void> {
    for (let n = 0; !stop; n++) {
      const id = `moving-${n % 5}`
      const three = [
        revisionOf(put(id, { n }), put('still', { n }), put(`e${n % 250}`, { n })),
        revisionOf(put(id, { n }, true)),
        revisionOf(remove(id)),
      ].map((revision) => ({ ...revision, time: minute(20 + n) }))
      const revisions = Array.from({ length: 10 }, () => three).flat()
      const { revision: base } = await writer.head()
      const results = await Promise.all(revisions.map((revision, i) => writer.commit(base + i, revision)))
      assert.ok(results.every(({ ok }) => ok))
    }
  }
  const writing = writeOn()
  try {
    const seen = new Set<number>()
    const end = performance.now() + 30_000
    for (let i = 0; seen.size < 6; i++) {
      if (i === 4) await anchored(writer, minute(8))
      const { problems, from, to, revisions, hash } = await verifyLog(reader)
      assert.deepEqual(problems, [])
      assert.deepEqual({ revisions, hash }, { revisions: to - from + 1, hash: await hashOf(reader, to) })
      seen.add(to)
      assert.ok(performance.now() < end, `there were commits meanwhile: ${[...seen]}`)
    }
  } finally {
    stop = true
    await writing
  }
  assert.deepEqual((await verifyLog(reader)).problems, [])
})
