import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AUTHOR, answersOf, commands, load, RUNS, start, types } from '../../../test/random-fleet.ts'
import { withoutDigests } from '../../../test/without-digests.ts'
import { hexOf } from '../../base/digest.ts'
import type { JsonObject } from '../../base/json.ts'
import { openMemoryStore } from '../../store/memory.ts'
import type { View } from '../documents/view.ts'
import { digestInputs, renderInputs } from './render-inputs.ts'
import { servedTo } from './served-view.ts'

/** Notes pairs and fails when either side of one is known with another partner. */
class OneToOne {
  readonly #texts = new Map<string, string>()
  readonly #digests = new Map<string, string>()

  note(text: string, digest: string): void {
    assert.equal(this.#texts.get(digest) ?? text, text, 'one digest for two texts')
    assert.equal(this.#digests.get(text) ?? digest, digest, 'two digests for one text')
    this.#texts.set(digest, text)
    this.#digests.set(text, digest)
  }

  get size(): number {
    return this.#texts.size
  }
}

const ofInputs = new OneToOne()
const ofAnswers = new OneToOne()

/** Compares the digests in every answer of a view with its texts, and with those that are told without texts. */
function noteAnswers(view: View): void {
  for (const id of ['k0', 'k1', 'k2', 'k3']) {
    const served = servedTo(types, view, id)
    const cluster = view.get('clusters', id) ?? view.tombstone('clusters', id)
    if (!cluster) continue
    for (const type of types.delivered) {
      const { text, digest } = renderInputs(served, types, type, cluster)
      const told = digestInputs(served, types, type, cluster)
      const plain = withoutDigests(text)
      const inputs: JsonObject[] = JSON.parse(text).inputs
      const bare: JsonObject[] = JSON.parse(plain).inputs
      assert.equal(hexOf(told.digest), hexOf(digest))
      assert.deepEqual(
        told.inputs.map((input) => [input.reference.id, hexOf(input.digest), hexOf(told.digest)]),
        inputs.map((input) => [input.id, input.digest, input.answer_digest]),
      )
      ofAnswers.note(plain, hexOf(digest))
      for (const [i, input] of inputs.entries()) ofInputs.note(JSON.stringify(bare[i]), String(input.digest))
    }
  }
}

test('inputs of any clusters and states are equal if and only if their digests are, and so are answers', async () => {
  await fc.assert(
    fc.asyncProperty(commands, async (sequence) => {
      const engine = await start(openMemoryStore())
      for (const next of sequence) {
        await engine.write([next], AUTHOR, { confirmRemovals: true })
        noteAnswers(engine.state)
      }
    }),
    { ...RUNS, numRuns: 100 },
  )
  assert.ok(ofInputs.size > 100 && ofAnswers.size > 100, `${ofInputs.size} inputs, ${ofAnswers.size} answers`)
})

test('what is kept of renderings never shows: polled after every change or never before, the same bytes come', async () => {
  await fc.assert(
    fc.asyncProperty(commands, async (sequence) => {
      const store = openMemoryStore()
      const engine = await start(store)
      for (const next of sequence) {
        await engine.write([next], AUTHOR, { confirmRemovals: true })
        answersOf(engine)
      }
      assert.deepEqual(answersOf(engine), answersOf(await load(store)))
    }),
    { ...RUNS, numRuns: 60 },
  )
})
