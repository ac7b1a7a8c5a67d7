import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { recordUses } from '../store/fixtures-for-contract.ts'
import { openMemoryStore } from '../store/memory.ts'
import { type TokenUse, useOfNote } from '../store/notes.ts'
import { type Store, StoreError } from '../store/store.ts'
import { followUses } from './token-uses.ts'

const NOON = Date.parse('2026-01-31T12:00:00.000Z')
const FROM = () => '10.0.0.1'

/** Uses on a clock of the test's, over a store that can be told to fail; what reached it is in `recorded`. */
function following(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const recorded: (readonly TokenUse[])[] = []
  const problems: string[] = []
  const state = { time: NOON, broken: false, store: openMemoryStore() }
  const { notes } = state.store
  const record: Store['notes']['record'] = async (kind, given) => {
    if (state.broken) throw new StoreError('the disk is full')
    recorded.push(given.map(useOfNote))
    return notes.record(kind, given)
  }
  const store = { ...state.store, notes: { ...notes, record } }
  const uses = followUses(
    store,
    () => new Date(state.time),
    ({ message }) => problems.push(message),
  )
  /** So many seconds go by, and what waits for that is done. */
  async function pass(seconds: number): Promise<void> {
    state.time += seconds * 1000
    t.mock.timers.tick(seconds * 1000)
    for (let i = 0; i < 50; i++) await turn()
  }
  return { uses, state, recorded, problems, pass }
}

const timeOf = async (uses: ReturnType<typeof followUses>, id: string) => (await uses.of([id])).get(id)?.time

describe('the last use of a token', () => {
  test('is known at once, to the minute, with the address', async (t) => {
    const { uses, pass } = following(t)
    await pass(59)
    uses.note('a', FROM)
    assert.deepEqual(
      [...(await uses.of(['a', 'unknown']))],
      [['a', { id: 'a', time: '2026-01-31T12:00:00.000Z', address: '10.0.0.1' }]],
    )
  })

  test('asks for the address once a minute at most, and can do without one', async (t) => {
    const { uses, pass } = following(t)
    let asked = 0
    const address = () => {
      asked++
      return undefined
    }
    for (let i = 0; i < 100; i++) uses.note('a', address)
    assert.equal(asked, 1)
    await pass(60)
    for (let i = 0; i < 100; i++) uses.note('a', address)
    assert.equal(asked, 2)
    assert.deepEqual((await uses.of(['a'])).get('a'), {
      id: 'a',
      time: '2026-01-31T12:01:00.000Z',
      address: null,
    })
  })

  test('is the newer one of what this process has seen and what others have written down', async (t) => {
    const { uses, state } = following(t)
    const elsewhere = (time: string) => ({ id: 'a', time, address: 'elsewhere' })
    uses.note('a', FROM)
    await recordUses(state.store, [elsewhere('2026-01-31T11:59:00.000Z')])
    assert.equal((await uses.of(['a'])).get('a')?.address, '10.0.0.1')
    await recordUses(state.store, [elsewhere('2026-01-31T12:01:00.000Z')])
    assert.equal((await uses.of(['a'])).get('a')?.address, 'elsewhere')
  })

  test('of any id is kept apart', async (t) => {
    const { uses } = following(t)
    for (const id of ['__proto__', 'constructor', '', 'ü']) uses.note(id, () => `from ${id}`)
    const found = await uses.of(['__proto__', 'constructor', '', 'ü', 'toString'])
    assert.deepEqual(
      [...found.values()].map(({ address }) => address),
      ['from __proto__', 'from constructor', 'from ', 'from ü'],
    )
  })
})

describe('uses are written down', () => {
  test('once a minute, all together, and only those that are new', async (t) => {
    const { uses, recorded, pass } = following(t)
    uses.note('a', FROM)
    uses.note('b', FROM)
    await pass(59)
    assert.equal(recorded.length, 0)
    await pass(1)
    assert.deepEqual(
      recorded.map((batch) => batch.map(({ id }) => id)),
      [['a', 'b']],
    )
    await pass(600)
    assert.equal(recorded.length, 1, 'nothing new, nothing written')
    uses.note('b', FROM)
    await pass(60)
    assert.deepEqual(recorded[1], [{ id: 'b', time: '2026-01-31T12:11:00.000Z', address: '10.0.0.1' }])
  })

  test('when the process stops, and never again after that', async (t) => {
    const { uses, recorded, pass } = following(t)
    uses.note('a', FROM)
    await uses.stop()
    assert.deepEqual(recorded, [[{ id: 'a', time: '2026-01-31T12:00:00.000Z', address: '10.0.0.1' }]])
    await pass(600)
    assert.equal(recorded.length, 1)
  })

  test('later, when the store fails: that is told once, and nothing is lost', async (t) => {
    const { uses, state, recorded, problems, pass } = following(t)
    state.broken = true
    uses.note('a', FROM)
    await pass(60)
    await pass(60)
    uses.note('b', FROM)
    await pass(60)
    assert.deepEqual(problems, ['the disk is full'])
    assert.equal(await timeOf(uses, 'a'), '2026-01-31T12:00:00.000Z', 'it is known all the same')
    state.broken = false
    await pass(60)
    assert.deepEqual(
      recorded.flat().map(({ id, time }) => [id, time]),
      [
        ['a', '2026-01-31T12:00:00.000Z'],
        ['b', '2026-01-31T12:02:00.000Z'],
      ],
    )
    state.broken = true
    uses.note('a', FROM)
    await pass(60)
    assert.equal(problems.length, 2, 'a store that worked in between is told of again')
    await uses.stop()
  })

  test('and a use of the same token while that is failing takes the place of the older one', async (t) => {
    const { uses, state, recorded, pass } = following(t)
    state.broken = true
    uses.note('a', FROM)
    await pass(60)
    uses.note('a', FROM)
    await pass(60)
    state.broken = false
    await uses.stop()
    assert.deepEqual(recorded, [[{ id: 'a', time: '2026-01-31T12:01:00.000Z', address: '10.0.0.1' }]])
  })
})
