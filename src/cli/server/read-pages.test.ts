import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type PageStart, readPages } from './read-pages.ts'

const LIST = Array.from({ length: 25 }, (_, i) => i)

interface Answered {
  readonly items: number[]
  readonly total?: number
}

async function readAll(
  options: { size: number; limit?: number },
  readPage: (start: PageStart<number>) => Answered,
): Promise<{ items: number[]; requests: number }> {
  const items: number[] = []
  let requests = 0
  const read = async (start: PageStart<number>) => {
    requests++
    assert.ok(requests < 100)
    const { items: body, total } = readPage(start)
    return { status: 200, headers: total === undefined ? {} : { 'x-total-count': String(total) }, body }
  }
  for await (const page of readPages<number>(read, options)) items.push(...page.items)
  return { items, requests }
}

const byOffset = ({ offset, limit }: PageStart<number>): Answered => ({
  items: LIST.slice(offset, offset + limit),
  total: LIST.length,
})

const byCursor = ({ last = -1, limit }: PageStart<number>): Answered => ({
  items: LIST.filter((each) => each > last).slice(0, limit),
})

test('a list is read to its end, whatever the size of a page, by offset or by cursor', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 30 }), async (size) => {
      for (const readPage of [byOffset, byCursor])
        assert.deepEqual((await readAll({ size }, readPage)).items, LIST)
    }),
  )
})

test('with a total, the last full page is known to be the last; without one, another request tells', async () => {
  assert.equal((await readAll({ size: 5 }, byOffset)).requests, 5)
  assert.equal((await readAll({ size: 5 }, byCursor)).requests, 6)
})

test('a limit ends the reading, and is asked for exactly', async () => {
  for (const readPage of [byOffset, byCursor]) {
    const limits: number[] = []
    const { items } = await readAll({ size: 10, limit: 12 }, (start) => {
      limits.push(start.limit)
      return readPage(start)
    })
    assert.deepEqual(items, LIST.slice(0, 12))
    assert.deepEqual(limits, [10, 2])
  }
})

test('a limit of nothing still reads one page: its total is of use', async () => {
  assert.deepEqual(await readAll({ size: 10, limit: 0 }, byOffset), { items: [], requests: 1 })
})

test('a list that shrinks while it is read ends with an empty page', async () => {
  const { items } = await readAll({ size: 10 }, ({ offset, limit }) => ({
    items: LIST.slice(offset, Math.min(offset + limit, 15)),
    total: 25,
  }))
  assert.deepEqual(items, LIST.slice(0, 15))
})
