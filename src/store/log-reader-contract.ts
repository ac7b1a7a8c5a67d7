// The promises of the LogReader interface as one suite.
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Applied } from '../domain/documents/state.ts'
import {
  ALL,
  changedAfter,
  committed,
  hashesOf,
  loadAll,
  logOf,
  META,
  minute,
  numbers,
  type OpenStore,
  other,
  pruneTo,
  put,
  remove,
  revisionOf,
  stored,
} from './fixtures-for-contract.ts'
import type { HistoryQuery, NewRevision, Store } from './store.ts'

export function logReaderContract(open: OpenStore): void {
  describe('history', () => historyPromises(open))
  describe('searching the history', () => searchPromises(open))
  describe('a long history', () => longHistoryPromises(open))
  describe('the log', () => logPromises(open))
  describe('going back in time', () => pastPromises(open))
}

function historyPromises(open: OpenStore): void {
  const five = Array.from({ length: 5 }, (_, i) => revisionOf(put('a', { n: i + 1 }), put(`only-${i + 1}`)))

  test('a revision records who, when, why and what was there before and after', async (t) => {
    const store = await committed(
      await open(t),
      revisionOf(put('a', { n: 1 }), put('gone')),
      revisionOf(put('a', { n: 1 }, true), remove('gone'), put('new')),
      { ...revisionOf(put('a', { n: 2 })), actor: 'ops', message: 'Zurück ↩', request_id: 'req-3' },
    )
    const recorded = await store.history(ALL)
    const [third, second, first] = recorded.map(({ hash, ...rest }) => {
      assert.match(hash, /^[0-9a-f]{64}$/)
      return rest
    })
    const live = { before_deleted: false, after_deleted: false }
    const a1 = { id: 'a', n: 1 }
    assert.deepEqual(first, {
      revision: 1,
      ...META,
      change_count: 2,
      changes: [
        { type: 'things', id: 'a', before: null, after: a1, ...live },
        { type: 'things', id: 'gone', before: null, after: { id: 'gone' }, ...live },
      ],
    })
    assert.deepEqual(second, {
      revision: 2,
      ...META,
      change_count: 3,
      changes: [
        { type: 'things', id: 'a', before: a1, after: a1, before_deleted: false, after_deleted: true },
        { type: 'things', id: 'gone', before: { id: 'gone' }, after: null, ...live },
        { type: 'things', id: 'new', before: null, after: { id: 'new' }, ...live },
      ],
    })
    assert.deepEqual(third, {
      revision: 3,
      ...META,
      actor: 'ops',
      message: 'Zurück ↩',
      request_id: 'req-3',
      change_count: 1,
      changes: [
        {
          type: 'things',
          id: 'a',
          before: a1,
          after: { id: 'a', n: 2 },
          before_deleted: true,
          after_deleted: false,
        },
      ],
    })
  })

  test('revisions come newest first, in pages', async (t) => {
    const store = await committed(await open(t), ...five)
    assert.deepEqual(numbers(await store.history(ALL)), [5, 4, 3, 2, 1])
    assert.deepEqual(numbers(await store.history({ ...ALL, limit: 2 })), [5, 4])
    assert.deepEqual(numbers(await store.history({ ...ALL, limit: 2, before: 4 })), [3, 2])
    assert.deepEqual(numbers(await store.history({ ...ALL, before: 1 })), [])
    assert.deepEqual(numbers(await store.history({ ...ALL, before: 99 })), [5, 4, 3, 2, 1])
  })

  test('one revision is found by its number, and no other', async (t) => {
    const store = await committed(await open(t), ...five)
    const found = await store.history({ ...ALL, revision: 3 })
    assert.deepEqual(numbers(found), [3])
    assert.deepEqual(
      found[0]?.changes.map(({ id }) => id),
      ['a', 'only-3'],
    )
    assert.deepEqual(await store.history({ ...ALL, revision: 6 }), [])
    assert.deepEqual(await store.history({ ...ALL, revision: 0 }), [])
  })

  test('a part of a revision’s changes can be asked for, and the count says how many there are', async (t) => {
    const ids = Array.from({ length: 25 }, (_, i) => `n${i}`)
    const store = await committed(await open(t), revisionOf(...ids.map((id) => put(id))))
    const part = async (changeOffset: number, changeLimit: number) => {
      const [entry] = await store.history({ limit: 1, changeOffset, changeLimit })
      assert.equal(entry?.change_count, 25)
      return entry?.changes.map(({ id }) => id)
    }
    assert.deepEqual(await part(0, 10), ids.slice(0, 10))
    assert.deepEqual(await part(10, 10), ids.slice(10, 20))
    assert.deepEqual(await part(20, 10), ids.slice(20))
    assert.deepEqual(await part(25, 10), [])
  })

  test('one document’s history holds only the revisions that changed it, with only its change', async (t) => {
    const store = await committed(await open(t), ...five, revisionOf(remove('only-2')))
    const document = { type: 'things', id: 'only-2' }
    const found = await store.history({ ...ALL, documents: [document] })
    assert.deepEqual(numbers(found), [6, 2])
    assert.deepEqual(
      found.map(({ changes }) => changes.map(({ id }) => id)),
      [['only-2'], ['only-2']],
    )
    assert.deepEqual(
      found.map(({ change_count }) => change_count),
      [1, 2],
    )
    assert.deepEqual(numbers(await store.history({ ...ALL, documents: [document], before: 6 })), [2])
    assert.deepEqual(numbers(await store.history({ ...ALL, documents: [document], limit: 1 })), [6])
    assert.deepEqual(numbers(await store.history({ ...ALL, documents: [document], revision: 2 })), [2])
    assert.deepEqual(await store.history({ ...ALL, documents: [document], revision: 3 }), [])
    assert.deepEqual(await store.history({ ...ALL, documents: [{ type: 'others', id: 'only-2' }] }), [])
  })

  test('the log alone gives the documents as they are', async (t) => {
    const store = await committed(
      await open(t),
      ...five,
      revisionOf(put('a', { n: 9 }, true), remove('only-1'), put('only-2', { again: true })),
      revisionOf(remove('a'), put('only-1')),
    )
    const rebuilt: Record<string, { revision: number; after: Applied['after'] }> = {}
    for await (const { revision, changes } of store.changesSince(0)) {
      for (const { type, id, after } of changes) {
        if (after) rebuilt[`${type}/${id}`] = { revision, after }
        else delete rebuilt[`${type}/${id}`]
      }
    }
    assert.deepEqual((await loadAll(store)).documents, rebuilt)
  })
}

/** Five revisions that differ in everything that can be searched for. */
const SEARCHED: readonly NewRevision[] = [
  {
    ...revisionOf(put('a')),
    time: minute(0),
    actor: 'ada',
    message: 'Größe ÄNDERN',
    request_id: 'Req-AA-1',
    operation: 'create things/a',
  },
  {
    ...revisionOf(other(put('b'))),
    time: minute(1),
    actor: 'bob',
    message: null,
    request_id: 'req-bb-2',
    operation: 'patch others/ÉTÉ',
  },
  {
    ...revisionOf(put('a', { n: 1 }), other(put('a'))),
    time: minute(2),
    actor: 'Ørsted',
    message: 'ada asked: 50% of_all',
    request_id: 'x-3',
    operation: 'batch of 2',
  },
  {
    ...revisionOf(remove('a')),
    time: minute(2),
    actor: 'bob',
    message: 'undo',
    request_id: 'x-4',
    operation: 'delete things/a',
  },
  {
    ...revisionOf(),
    time: minute(4),
    actor: 'ada',
    message: null,
    request_id: 'x-5',
    operation: 'nothing',
  },
]

function searchPromises(open: OpenStore): void {
  type Filters = Omit<HistoryQuery, 'limit' | 'changeLimit'>
  const search = async (store: Store, filters: Filters) =>
    numbers(await store.history({ ...ALL, ...filters }))

  async function check(t: TestContext, cases: readonly (readonly [Filters, readonly number[]])[]) {
    const store = await committed(await open(t), ...SEARCHED)
    for (const [filters, expected] of cases) {
      assert.deepEqual(await search(store, filters), expected, JSON.stringify(filters))
    }
  }

  test('an actor’s revisions are found by exactly that name', (t) =>
    check(t, [
      [{ actor: 'ada' }, [5, 1]],
      [{ actor: 'Ørsted' }, [3]],
      [{ actor: 'Ada' }, []],
      [{ actor: 'ad' }, []],
      [{ actor: 'a%' }, []],
    ]))

  test('a type’s revisions are those that changed a document of it, with only those changes', async (t) => {
    await check(t, [
      [{ type: 'things' }, [4, 3, 1]],
      [{ type: 'others' }, [3, 2]],
      [{ type: 'thing' }, []],
      [{ type: 'hings' }, []],
    ])
    const store = await committed(await open(t), ...SEARCHED)
    const found = await store.history({ ...ALL, type: 'others' })
    assert.deepEqual(
      found.map(({ changes }) => changes.map(({ type, id }) => `${type}/${id}`)),
      [['others/a'], ['others/b']],
    )
  })

  test('a time span holds both of its ends', (t) =>
    check(t, [
      [{ since: minute(2) }, [5, 4, 3]],
      [{ since: '2026-01-31T12:02:00.001Z' }, [5]],
      [{ until: minute(2) }, [4, 3, 2, 1]],
      [{ until: '2026-01-31T12:01:59.999Z' }, [2, 1]],
      [{ since: minute(1), until: minute(2) }, [4, 3, 2]],
      [{ since: minute(3), until: minute(3) }, []],
      [{ since: minute(2), until: minute(1) }, []],
    ]))

  test('text is found in the message, the operation, the actor and the request id', (t) =>
    check(t, [
      [{ text: 'undo' }, [4]],
      [{ text: 'batch of' }, [3]],
      [{ text: 'ada' }, [5, 3, 1]],
      [{ text: 'bb-2' }, [2]],
      [{ text: 'things/a' }, [4, 1]],
      [{ text: 'nowhere' }, []],
      [{ text: '' }, [5, 4, 3, 2, 1]],
    ]))

  test('text is found in either case, in every script', (t) =>
    check(t, [
      [{ text: 'UNDO' }, [4]],
      [{ text: 'req-aa' }, [1]],
      [{ text: 'REQ-' }, [2, 1]],
      [{ text: 'grÖße ändern' }, [1]],
      [{ text: 'été' }, [2]],
      [{ text: 'øRSTED' }, [3]],
    ]))

  test('text means itself: it is no pattern and does not reach from one field into the next', (t) =>
    check(t, [
      [{ text: '%' }, [3]],
      [{ text: '50% of_all' }, [3]],
      [{ text: 'asked%all' }, []],
      [{ text: '_all' }, [3]],
      [{ text: 'a.a' }, []],
      [{ text: "'" }, []],
      [{ text: 'undodelete' }, []],
      [{ text: 'bobx-4' }, []],
    ]))

  test('filters narrow each other down', (t) =>
    check(t, [
      [{ actor: 'bob', type: 'things' }, [4]],
      [{ actor: 'ada', text: 'ada', since: minute(1) }, [5]],
      [{ type: 'others', until: minute(1), text: 'patch' }, [2]],
      [{ type: 'others', actor: 'ada' }, []],
      [{ actor: 'bob', before: 4 }, [2]],
      [{ actor: 'bob', revision: 4 }, [4]],
      [{ actor: 'ada', revision: 4 }, []],
      [{ documents: [{ type: 'things', id: 'a' }], actor: 'bob' }, [4]],
      [{ documents: [{ type: 'things', id: 'a' }], type: 'others', text: 'ASKED', since: minute(2) }, []],
      [{ documents: [{ type: 'things', id: 'a' }], type: 'things', text: 'ASKED', since: minute(2) }, [3]],
      [{ documents: [{ type: 'others', id: 'b' }], until: minute(0) }, []],
    ]))

  const spanned = [
    revisionOf(put('a'), put('b'), put('c')),
    revisionOf(put('a', { n: 2 })),
    revisionOf(put('b', { n: 3 })),
    revisionOf(put('c', { n: 4 }), put('b', { n: 4 }), put('a', { n: 4 })),
    revisionOf(put('a', { n: 5 })),
    revisionOf(other(put('a'))),
  ]
  const idsOf = async (store: Store, query: HistoryQuery) =>
    (await store.history(query)).map(({ revision, changes }) => [revision, ...changes.map(({ id }) => id)])

  test('several documents are found together, each in its own span of revisions', async (t) => {
    const store = await committed(await open(t), ...spanned)
    const a = { type: 'things', id: 'a' }
    const b = { type: 'things', id: 'b' }
    const found = (documents: HistoryQuery['documents']) =>
      idsOf(store, { ...ALL, ...(documents && { documents }) })
    assert.deepEqual(await found([{ ...a, from: 2, until: 5 }]), [
      [4, 'a'],
      [2, 'a'],
    ])
    assert.deepEqual(
      await found([
        { ...a, from: 2, until: 5 },
        { ...b, until: 4 },
      ]),
      [
        [4, 'a'],
        [3, 'b'],
        [2, 'a'],
        [1, 'b'],
      ],
    )
    assert.deepEqual(await found([{ ...a, from: 4 }, b]), [
      [5, 'a'],
      [4, 'b', 'a'],
      [3, 'b'],
      [1, 'b'],
    ])
    assert.deepEqual(
      await found([
        { ...a, until: 2 },
        { ...a, from: 5 },
      ]),
      [
        [5, 'a'],
        [1, 'a'],
      ],
    )
    assert.deepEqual(await found([{ ...a, from: 3, until: 3 }]), [])
    assert.deepEqual(await found([]), [])
  })

  test('a document in two spans that overlap is there once', async (t) => {
    const store = await committed(await open(t), ...spanned)
    const a = { type: 'things', id: 'a' }
    const documents = [a, { ...a, from: 1, until: 5 }]
    assert.deepEqual(await idsOf(store, { ...ALL, documents }), [
      [5, 'a'],
      [4, 'a'],
      [2, 'a'],
      [1, 'a'],
    ])
  })

  test('a part of the changes that were asked for is counted among those alone', async (t) => {
    const store = await committed(await open(t), ...spanned)
    const documents = ['a', 'b'].map((id) => ({ type: 'things', id }))
    const query = { documents, revision: 4, limit: 1 }
    assert.deepEqual(await idsOf(store, { ...query, changeLimit: 1 }), [[4, 'b']])
    assert.deepEqual(await idsOf(store, { ...query, changeOffset: 1, changeLimit: 5 }), [[4, 'a']])
    assert.deepEqual(await idsOf(store, { ...query, changeOffset: 2, changeLimit: 5 }), [[4]])
    const [entry] = await store.history({ ...query, changeLimit: 1 })
    assert.equal(entry?.change_count, 3)
  })

  test('what is found can be read in pages', async (t) => {
    const store = await committed(await open(t), ...SEARCHED)
    const queries: Filters[] = [
      { actor: 'bob' },
      { type: 'things' },
      { text: 'ada' },
      { documents: [{ type: 'things', id: 'a' }] },
    ]
    for (const filters of queries) {
      const paged: number[] = []
      for (let before = 99; ; ) {
        const [next, ...more] = await store.history({ ...filters, before, limit: 1, changeLimit: 1 })
        assert.deepEqual(more, [])
        if (!next) break
        paged.push(next.revision)
        before = next.revision
      }
      assert.ok(paged.length > 1)
      assert.deepEqual(paged, await search(store, filters), JSON.stringify(filters))
    }
  })
}

/** One store for all: making it is what takes time. */
function longHistoryPromises(open: OpenStore): void {
  test('of more revisions than are looked at at once', async (t) => {
    const COUNT = 2050
    const rare = [2049, 2001, 2000, 1999, 51, 50, 49, 1]
    const store = await open(t)
    const revisions = Array.from({ length: COUNT }, (_, base) => ({
      ...revisionOf(rare.includes(base + 1) ? other(put('rare', { base })) : put('a', { base })),
      actor: rare.includes(base + 1) ? 'rare' : 'often',
      time: minute(base + 1),
    }))
    assert.ok((await store.commit(0, ...revisions)).ok)

    await t.test('is searched to its end', async () => {
      const filters = [{ actor: 'rare' }, { type: 'others' }, { text: 'RARE' }]
      for (const filter of [...filters, { documents: [{ type: 'others', id: 'rare' }] }]) {
        assert.deepEqual(numbers(await store.history({ ...ALL, ...filter })), rare, JSON.stringify(filter))
      }
      const query = { ...ALL, actor: 'rare', since: minute(49), until: minute(2000) }
      assert.deepEqual(numbers(await store.history(query)), [2000, 1999, 51, 50, 49])
      assert.deepEqual(await store.history({ ...ALL, actor: 'nobody' }), [])
    })

    await t.test('gives pages that reach over what is looked at at once', async () => {
      const page = async (before: number) =>
        numbers(await store.history({ actor: 'rare', before, limit: 3, changeLimit: 1 }))
      assert.deepEqual(await page(9999), rare.slice(0, 3))
      assert.deepEqual(await page(2000), rare.slice(3, 6))
      assert.deepEqual(await page(50), rare.slice(6))
      assert.deepEqual(await page(1), [])
      const plain = await store.history({ before: 53, limit: 5, changeLimit: 1 })
      assert.deepEqual(numbers(plain), [52, 51, 50, 49, 48])
    })

    await t.test('is given whole when all of it is asked for', async () => {
      const all = numbers(await store.history({ limit: 5000, changeLimit: 1 }))
      assert.deepEqual(
        all,
        Array.from({ length: COUNT }, (_, i) => COUNT - i),
      )
    })

    await t.test('is given up whole', async () => {
      await pruneTo(store, 2045)
      assert.deepEqual(numbers(await store.history(ALL)), [2050, 2049, 2048, 2047, 2046])
      assert.deepEqual(numbers(await store.history({ ...ALL, actor: 'rare' })), [2049])
    })
  })
}

function logPromises(open: OpenStore): void {
  test('it holds everything that was recorded, oldest first, with documents as they were stored', async (t) => {
    const meta = { ...META, actor: 'ops', message: 'Zurück ↩', client_address: '::1', operation: 'undo' }
    const store = await committed(
      await open(t),
      revisionOf(put('a', { n: 1 }), put('gone')),
      { ...meta, changes: [put('a', { n: 1 }, true), remove('gone'), other(put('new'))] },
      revisionOf(put('a', { n: 2 })),
    )
    const [one, two, three] = await hashesOf(store)
    const live = { before_deleted: false, before_revision: 0, after_deleted: false }
    const a1 = '{"id":"a","n":1}'
    const gone = '{"id":"gone"}'
    const whole = [
      {
        revision: 1,
        meta: META,
        hash: one,
        changes: [
          { type: 'things', id: 'a', before: null, after: a1, ...live },
          { type: 'things', id: 'gone', before: null, after: gone, ...live },
        ],
      },
      {
        revision: 2,
        meta,
        hash: two,
        changes: [
          {
            type: 'things',
            id: 'a',
            before: a1,
            after: a1,
            ...live,
            before_revision: 1,
            after_deleted: true,
          },
          { type: 'things', id: 'gone', before: gone, after: null, ...live, before_revision: 1 },
          { type: 'others', id: 'new', before: null, after: '{"id":"new"}', ...live },
        ],
      },
      {
        revision: 3,
        meta: META,
        hash: three,
        changes: [
          {
            type: 'things',
            id: 'a',
            before: a1,
            after: '{"id":"a","n":2}',
            before_deleted: true,
            before_revision: 2,
            after_deleted: false,
          },
        ],
      },
    ]
    assert.deepEqual(await logOf(store, 0), whole)
    assert.deepEqual(await logOf(store, 1), whole.slice(1))
    assert.deepEqual(await logOf(store, 0, 2), whole.slice(0, 2))
    assert.deepEqual(await logOf(store, 1, 2), whole.slice(1, 2))
    assert.deepEqual(await logOf(store, 2, 99), whole.slice(2))
    assert.deepEqual(await logOf(store, 3), [])
    assert.deepEqual(await logOf(store, 2, 2), [])
    assert.deepEqual(await logOf(store, 2, 1), [])
  })

  test('an empty store has none', async (t) => {
    assert.deepEqual(await logOf(await open(t), 0), [])
  })

  test('revisions of any number of changes are whole and in order, none included', async (t) => {
    const counts = [0, 1, 199, 200, 201, 0, 399, 400, 401, 1]
    const idsOf = (count: number, n: number) => Array.from({ length: count }, (_, i) => `${n}-${count - i}`)
    const revisions = counts.map((count, n) => revisionOf(...idsOf(count, n).map((id) => put(id))))
    const store = await committed(await open(t), ...revisions)
    const found = await logOf(store, 0)
    assert.deepEqual(
      found.map(({ revision, changes }) => [revision, ...changes.map(({ id }) => id)]),
      counts.map((count, n) => [n + 1, ...idsOf(count, n)]),
    )
    assert.deepEqual(
      (await store.history(ALL)).map(({ change_count }) => change_count),
      [...counts].reverse(),
    )
    for (const [n, count] of counts.entries()) {
      const [only, ...more] = await logOf(store, n, n + 1)
      assert.deepEqual([only?.revision, only?.changes.length, more.length], [n + 1, count, 0])
    }
  })

  test('a reader that stops half-way leaves the store as usable as before', async (t) => {
    const many = Array.from({ length: 450 }, (_, i) => put(`n${i}`))
    const store = await committed(await open(t), revisionOf(...many), revisionOf(put('a')))
    for await (const { revision } of store.log(0)) {
      assert.equal(revision, 1)
      break
    }
    await committed(store, revisionOf(put('b')))
    assert.deepEqual(numbers(await logOf(store, 0)), [1, 2, 3])
  })
}

function pastPromises(open: OpenStore): void {
  test('a document that was changed since stands as it stood, whatever happened after that', async (t) => {
    const store = await committed(
      await open(t),
      revisionOf(put('a', { n: 1 }), put('b')),
      revisionOf(put('a', { n: 22 })),
      revisionOf(put('a', { n: 3 })),
      revisionOf(remove('a')),
    )
    const a1 = { ...stored({ id: 'a', n: 1 }), revision: 1 }
    const a2 = { ...stored({ id: 'a', n: 22 }), revision: 2 }
    const a3 = { ...stored({ id: 'a', n: 3 }), revision: 3 }
    assert.deepEqual(await changedAfter(store, 1), { 'things/a': a1 })
    assert.deepEqual(await changedAfter(store, 2), { 'things/a': a2 })
    assert.deepEqual(await changedAfter(store, 3), { 'things/a': a3 })
  })

  test('a document that was made since was not there', async (t) => {
    const store = await committed(
      await open(t),
      revisionOf(put('a')),
      revisionOf(put('b')),
      revisionOf(put('b', { n: 2 })),
      revisionOf(remove('a')),
      revisionOf(put('a', { again: true })),
    )
    assert.deepEqual(await changedAfter(store, 0), { 'things/a': undefined, 'things/b': undefined })
    assert.deepEqual(await changedAfter(store, 1), {
      'things/a': { ...stored({ id: 'a' }), revision: 1 },
      'things/b': undefined,
    })
    assert.deepEqual(await changedAfter(store, 4), { 'things/a': undefined })
  })

  test('a tombstone was a tombstone', async (t) => {
    const store = await committed(
      await open(t),
      revisionOf(put('a', { n: 1 })),
      revisionOf(put('a', { n: 1 }, true)),
      revisionOf(put('a', { n: 2 })),
    )
    assert.deepEqual(await changedAfter(store, 2), {
      'things/a': { ...stored({ id: 'a', n: 1 }, true), revision: 2 },
    })
    assert.deepEqual(await changedAfter(store, 1), {
      'things/a': { ...stored({ id: 'a', n: 1 }), revision: 1 },
    })
  })

  test('only documents of one type, or only one document, can be asked for', async (t) => {
    const store = await committed(
      await open(t),
      revisionOf(put('a'), put('b'), other(put('a', { other: true }))),
      revisionOf(put('a', { n: 2 }), other(put('a', { n: 2 }))),
      revisionOf(put('a', { n: 3 }), put('b', { n: 3 }), put('c')),
    )
    const was = <T extends { id: string }>(fields: T) => ({ ...stored(fields), revision: 1 })
    const things = { 'things/a': was({ id: 'a' }), 'things/b': was({ id: 'b' }), 'things/c': undefined }
    const others = { 'others/a': was({ id: 'a', other: true }) }
    assert.deepEqual(await changedAfter(store, 1), { ...things, ...others })
    assert.deepEqual(await changedAfter(store, 1, { type: 'things' }), things)
    assert.deepEqual(await changedAfter(store, 1, { type: 'others' }), others)
    assert.deepEqual(await changedAfter(store, 1, { type: 'thing' }), {})
    assert.deepEqual(await changedAfter(store, 1, { type: 'things', id: 'a' }), {
      'things/a': was({ id: 'a' }),
    })
    assert.deepEqual(await changedAfter(store, 1, { type: 'things', id: 'b' }), {
      'things/b': was({ id: 'b' }),
    })
    assert.deepEqual(await changedAfter(store, 1, { type: 'others', id: 'a' }), others)
    assert.deepEqual(await changedAfter(store, 1, { type: 'things', id: 'c' }), { 'things/c': undefined })
    assert.deepEqual(await changedAfter(store, 1, { type: 'others', id: 'b' }), {})
    assert.deepEqual(await changedAfter(store, 2, { type: 'others', id: 'a' }), {})
  })

  test('nothing comes where nothing has changed since', async (t) => {
    const store = await open(t)
    assert.deepEqual(await changedAfter(store, 0), {})
    await committed(store, revisionOf(put('a')), revisionOf())
    assert.deepEqual(await changedAfter(store, 1), {})
    assert.deepEqual(await changedAfter(store, 2), {})
    assert.deepEqual(await changedAfter(store, 99), {})
    assert.deepEqual(await changedAfter(store, 2, { type: 'things' }), {})
    assert.deepEqual(await changedAfter(store, 2, { type: 'things', id: 'a' }), {})
  })

  test('thousands of documents come once each, as they stood', async (t) => {
    const ids = Array.from({ length: 4100 }, (_, i) => `n${i}`)
    const store = await committed(
      await open(t),
      revisionOf(...ids.map((id) => put(id)), other(put('rare'))),
      revisionOf(...ids.map((id) => put(id, { second: true }))),
      revisionOf(...ids.slice(1000).map((id) => remove(id)), other(put('rare', { n: 2 })), put('new')),
    )
    const found = await changedAfter(store, 1)
    assert.equal(Object.keys(found).length, ids.length + 2)
    for (const id of ids)
      assert.deepEqual(found[`things/${id}`], { ...stored({ id }), revision: 1 }, `things/${id}`)
    const rare = { 'others/rare': { ...stored({ id: 'rare' }), revision: 1 } }
    assert.deepEqual(await changedAfter(store, 1, { type: 'others' }), rare)
    assert.deepEqual(await changedAfter(store, 2, { type: 'others' }), rare)
    const later = await changedAfter(store, 2)
    assert.equal(Object.keys(later).length, ids.length - 1000 + 2)
    assert.equal(later['things/n1000']?.revision, 2)
    assert.deepEqual(later['things/new'], undefined)
  })

  test('what is now and what was changed since give every earlier state', async (t) => {
    const store = await open(t)
    const states = [await loadAll(store)]
    const revisions = [
      revisionOf(put('a', { n: 1 }), put('b'), other(put('a'))),
      revisionOf(put('b', {}, true), put('c')),
      revisionOf(remove('a'), remove('b')),
      revisionOf(put('a', { n: 4 }), other(put('a', {}, true))),
      revisionOf(put('c', { n: 5 }), other(put('a', { n: 5 })), put('d', {}, true)),
      revisionOf(remove('d')),
    ]
    for (const revision of revisions) states.push(await loadAll(await committed(store, revision)))
    const { documents: now } = states.at(-1) as { documents: object }
    for (const { revision, documents } of states) {
      const rebuilt: Record<string, unknown> = { ...now }
      for (const [key, was] of Object.entries(await changedAfter(store, revision))) {
        if (was) {
          const { revision: made, ...after } = was
          rebuilt[key] = { revision: made, after }
        } else delete rebuilt[key]
      }
      assert.deepEqual(rebuilt, documents, `revision ${revision}`)
    }
  })

  test('a moment belongs to the last revision that was made by then', async (t) => {
    const store = await open(t)
    assert.equal(await store.revisionAt(minute(0)), undefined)
    const times = [minute(1), minute(2), minute(2), minute(5)]
    await committed(store, ...times.map((time) => ({ ...revisionOf(put('a')), time })))
    const moments = {
      [minute(0)]: undefined,
      '2026-01-31T12:00:59.999Z': undefined,
      [minute(1)]: 1,
      '2026-01-31T12:01:59.999Z': 1,
      [minute(2)]: 3,
      [minute(3)]: 3,
      '2026-01-31T12:04:59.999Z': 3,
      [minute(5)]: 4,
      '2027-01-01T00:00:00.000Z': 4,
    }
    for (const [time, revision] of Object.entries(moments)) {
      assert.equal(await store.revisionAt(time), revision, time)
    }
  })
}
