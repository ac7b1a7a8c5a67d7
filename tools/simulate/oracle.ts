// Checks answers to polls: what a cluster should get, and what must hold of any answers whatever they should be.
import { hash } from 'node:crypto'
import { equalJson, type JsonObject } from '../../src/base/json.ts'
import { parseInputs } from './parse-inputs.ts'

/** Inputs in the order in which they are served, without their digests. */
export type ExpectedInputs = readonly JsonObject[]

/** Returns what a cluster should get at an endpoint; undefined when that is not known. */
export type Expect = (
  dns: string,
  endpoint: string,
  answered: Answered,
) => ExpectedInputs | undefined | Promise<ExpectedInputs | undefined>

/** What it did get, and the revision that the answer names. */
export interface Answered {
  readonly inputs: ExpectedInputs
  readonly revision: number | undefined
}

/** An answer with 200. */
export interface ServedAnswer {
  readonly body: string
  readonly revision?: number
}

export interface OracleOptions {
  readonly expect?: Expect
  /** Whether nobody changes the fleet: then every answer to a cluster is the same, and an empty one after inputs wrong. */
  readonly isUnchanging?: boolean
  /**
   * Names all that an answer at a revision is made from. When it changes, equal bytes are looked at again: they may have
   * to be others now; and where the same inputs are expected as before, the bytes have to be the same.
   */
  readonly stateAt?: (dns: string, endpoint: string, revision: number) => Promise<string>
}

/** An answer that was right. */
interface RightAnswer {
  readonly fingerprint: string
  readonly state: string
}

const DIGEST = /^[0-9a-f]{16}$/
const LAST_KEYS = ['digest', 'answer_digest']
/** Pairs of inputs and digests that are remembered: about 150 bytes each. Those of later inputs are not compared. */
const MAX_REMEMBERED = 1_000_000

export class Oracle {
  readonly #expect: Expect | undefined
  readonly #isUnchanging: boolean
  readonly #stateAt: OracleOptions['stateAt']
  /** The last correct body of each cluster and endpoint, by its hash. */
  readonly #bodies = new Map<string, RightAnswer>()
  /** Hashes of correct bodies by what was expected, while the fleet changes. */
  readonly #bodiesOf = new Map<string, string>()
  readonly #digests = new Map<string, string>()
  #compared = 0

  constructor({ expect, isUnchanging = false, stateAt }: OracleOptions = {}) {
    this.#expect = expect
    this.#isUnchanging = isUnchanging
    this.#stateAt = stateAt
  }

  /** Returns what is wrong with an answer. Bytes that this cluster got before are not looked at again in the same state. */
  async check(dns: string, endpoint: string, answer: ServedAnswer): Promise<string[]> {
    const { body, revision } = answer
    const key = `${dns}/${endpoint}`
    const before = this.#bodies.get(key)
    const fingerprint = hash('sha1', body)
    const state = (await this.#stateAt?.(dns, endpoint, revision ?? 0)) ?? ''
    if (fingerprint === before?.fingerprint && state === before.state) return []
    const parsed = parseInputs(body)
    if (!parsed.ok) return [parsed.problem]
    const bare = parsed.inputs.map(withoutDigests)
    const problems = [...this.#checkDigests(endpoint, parsed.inputs, bare)]
    if (before !== undefined && this.#isUnchanging) problems.push('the answer changed, and nothing else did')
    const expected = await this.#expect?.(dns, endpoint, { inputs: bare, revision })
    if (expected) problems.push(...compare(bare, expected))
    if (expected && this.#stateAt) problems.push(...this.#compareBytes(key, expected, fingerprint))
    if (expected) this.#compared++
    if (problems.length === 0) this.#bodies.set(key, { fingerprint, state })
    return problems
  }

  /** How many answers were compared with what they should be; equal bytes to one cluster count once. */
  get compared(): number {
    return this.#compared
  }

  /** Where the same is expected as at some time before, the bytes are those of then. */
  *#compareBytes(key: string, expected: ExpectedInputs, fingerprint: string): Generator<string> {
    const content = `${key} ${hash('sha1', JSON.stringify(expected))}`
    const known = this.#bodiesOf.get(content)
    if (known !== undefined && known !== fingerprint)
      yield 'the answer has other bytes than before, and nothing in it has changed'
    if (known === undefined) this.#bodiesOf.set(content, fingerprint)
  }

  *#checkDigests(
    endpoint: string,
    inputs: readonly JsonObject[],
    bare: readonly JsonObject[],
  ): Generator<string> {
    const answerDigest = inputs[0]?.answer_digest
    for (const [i, input] of inputs.entries()) {
      const id = String(input.id)
      const { digest } = input
      if (!isDigest(digest)) yield `input "${id}" has no digest`
      else yield* this.#compareDigest(`input "${id}"`, `${endpoint} ${JSON.stringify(bare[i])}`, digest)
      if (!isDigest(input.answer_digest)) yield `input "${id}" has no answer_digest`
      else if (input.answer_digest !== answerDigest) yield `input "${id}" has another answer_digest`
      if (Object.keys(input).slice(-2).join() !== LAST_KEYS.join())
        yield `input "${id}" does not end with its digests`
    }
    if (isDigest(answerDigest))
      yield* this.#compareDigest('the answer', `${endpoint} ${JSON.stringify(bare)}`, answerDigest)
  }

  /** Equal texts have equal digests, other texts have others. */
  *#compareDigest(what: string, text: string, digest: string): Generator<string> {
    const content = hash('sha1', text, 'base64')
    const of = this.#digests.get(content)
    if (of !== undefined && of !== digest) yield `${what} has the digest ${digest}, and had ${of} before`
    const other = this.#digests.get(digest)
    if (other !== undefined && other !== content) yield `${what} has the digest ${digest} of something else`
    if (this.#digests.size >= MAX_REMEMBERED) return
    this.#digests.set(content, digest)
    this.#digests.set(digest, content)
  }
}

function isDigest(value: unknown): value is string {
  return typeof value === 'string' && DIGEST.test(value)
}

/** An input without the two keys that the service adds to it. */
export function withoutDigests({ digest: _, answer_digest: __, ...bare }: JsonObject): JsonObject {
  return bare as JsonObject
}

function compare(inputs: readonly JsonObject[], expected: ExpectedInputs): string[] {
  if (inputs.length === 0 && expected.length > 0)
    return [`the answer is empty instead of ${expected.length} inputs`]
  const ids = (list: readonly JsonObject[]): string => list.map(({ id }) => id).join(' ')
  if (ids(inputs) !== ids(expected)) return [`inputs ${ids(inputs)} instead of ${ids(expected)}`]
  return inputs.flatMap((input, i) => {
    const wanted = expected[i] as JsonObject
    if (equalJson(input, wanted)) return []
    return [`input "${input.id}" is ${JSON.stringify(input)} instead of ${JSON.stringify(wanted)}`]
  })
}
