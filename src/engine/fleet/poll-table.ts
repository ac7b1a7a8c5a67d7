// The last polls of all clusters, a row for each cluster and endpoint. They are outside of the heap: as objects they would take
// three times the memory, and every garbage collection would visit them.
import type { AnswerMark, PollEvidence } from '../../domain/status/evidence.ts'

/** What a poll changes: what states are derived from, the token alone, or no more than when the cluster last polled. */
type PollNews = 'state' | 'caller' | 'time'

/** Two gaps between polls agree where they differ by less than this share. */
const AGREEMENT = 0.2
/** Polls that follow each other faster are repeated ones, and say nothing of the interval. */
const LEAST_GAP_MS = 5000

/** Clusters whose rows are allocated together. */
const SLOTS = 1024
/** Numbers of 32 bits in a row, which begins with numbers of 64 bits: a line of the processor's cache. */
const WORDS = 16
/** The places of times, in numbers of 64 bits. */
const [AT, FULL_AT, SINCE, STAGED_SINCE] = [0, 1, 2, 3]
/** The places of all else, in numbers of 32 bits. */
const [REVISION, SINCE_REVISION, STAGED_FROM, INTERVAL, GAP, MARK_A, MARK_B, STATE] = [
  8, 9, 10, 11, 12, 13, 14, 15,
]
/** Of the state of a row: whether there is such a poll, and whether its answer had inputs. */
const EXISTS = 1
const IS_MARKED = 2
const MAX_WORD = 0xffffffff

class Chunk {
  readonly times: Float64Array
  readonly words: Uint32Array
  /** The names of tokens. */
  readonly callers: string[]

  constructor(rows: number) {
    const bytes = new ArrayBuffer(rows * WORDS * 4)
    this.times = new Float64Array(bytes)
    this.words = new Uint32Array(bytes)
    this.callers = new Array(rows).fill('')
  }
}

export class PollTable {
  /** Rows of one cluster. */
  readonly #width: number
  readonly #chunks: Chunk[] = []
  readonly #free: number[] = []
  #taken = 0

  constructor(width: number) {
    this.#width = width
  }

  /** Returns the number of a cluster's rows, which are empty. */
  take(): number {
    const slot = this.#free.pop() ?? this.#taken++
    if (slot >= this.#chunks.length * SLOTS) this.#chunks.push(new Chunk(SLOTS * this.#width))
    return slot
  }

  /** Nobody may hold a record of theirs then. */
  release(slot: number): void {
    const { words, callers } = this.#chunkOf(slot)
    const first = this.#rowOf(slot, 0)
    words.fill(0, first * WORDS, (first + this.#width) * WORDS)
    callers.fill('', first, first + this.#width)
    this.#free.push(slot)
  }

  find(slot: number, place: number): PollRecord | undefined {
    const chunk = this.#chunkOf(slot)
    const row = this.#rowOf(slot, place)
    return chunk.words[row * WORDS + STATE] ? new PollRecord(chunk, row) : undefined
  }

  findOrMake(slot: number, place: number): PollRecord {
    const chunk = this.#chunkOf(slot)
    const row = this.#rowOf(slot, place)
    chunk.words[row * WORDS + STATE] = (chunk.words[row * WORDS + STATE] as number) | EXISTS
    return new PollRecord(chunk, row)
  }

  #chunkOf(slot: number): Chunk {
    return this.#chunks[Math.floor(slot / SLOTS)] as Chunk
  }

  #rowOf(slot: number, place: number): number {
    return (slot % SLOTS) * this.#width + place
  }
}

/** A row of the table, to be read and changed in place; not to be kept. */
export class PollRecord implements PollEvidence {
  readonly #chunk: Chunk
  readonly #row: number

  constructor(chunk: Chunk, row: number) {
    this.#chunk = chunk
    this.#row = row
  }

  get at(): number {
    return this.#time(AT)
  }

  set at(time: number) {
    this.#setTime(AT, time)
  }

  /** When the newest note of it in full was made: after that, polls with the same answer are noted by their time alone. */
  get fullAt(): number {
    return this.#time(FULL_AT)
  }

  set fullAt(time: number) {
    this.#setTime(FULL_AT, time)
  }

  get since(): number {
    return this.#time(SINCE)
  }

  set since(time: number) {
    this.#setTime(SINCE, time)
  }

  get stagedSince(): number {
    return this.#time(STAGED_SINCE)
  }

  set stagedSince(time: number) {
    this.#setTime(STAGED_SINCE, time)
  }

  get revision(): number {
    return this.#word(REVISION)
  }

  set revision(revision: number) {
    this.#setWord(REVISION, revision)
  }

  get sinceRevision(): number {
    return this.#word(SINCE_REVISION)
  }

  set sinceRevision(revision: number) {
    this.#setWord(SINCE_REVISION, revision)
  }

  get stagedFrom(): number {
    return this.#word(STAGED_FROM)
  }

  set stagedFrom(revision: number) {
    this.#setWord(STAGED_FROM, revision)
  }

  get intervalMs(): number {
    return this.#word(INTERVAL)
  }

  set intervalMs(ms: number) {
    this.#setWord(INTERVAL, ms)
  }

  /** The token's name. */
  get by(): string {
    return this.#chunk.callers[this.#row] as string
  }

  set by(name: string) {
    this.#chunk.callers[this.#row] = name
  }

  get mark(): AnswerMark {
    if (!(this.#word(STATE) & IS_MARKED)) return undefined
    return { a: this.#word(MARK_A) | 0, b: this.#word(MARK_B) | 0 }
  }

  set mark(mark: AnswerMark) {
    const { words } = this.#chunk
    const first = this.#row * WORDS
    words[first + STATE] = mark ? EXISTS | IS_MARKED : EXISTS
    words[first + MARK_A] = mark?.a ?? 0
    words[first + MARK_B] = mark?.b ?? 0
  }

  /** As `sameMark` of `mark`, without making an object: every poll asks. */
  #hasMark(mark: AnswerMark): boolean {
    const isMarked = (this.#word(STATE) & IS_MARKED) !== 0
    if (!mark) return !isMarked
    return isMarked && mark.a === (this.#word(MARK_A) | 0) && mark.b === (this.#word(MARK_B) | 0)
  }

  /** Notes an answer; returns what differs from what was known. */
  note(at: number, mark: AnswerMark, revision: number, by: string, servedFrom: number): PollNews {
    const before = this.at
    const isNew = before === 0 || !this.#hasMark(mark)
    const isStaged = servedFrom > this.stagedFrom
    const isLearned = this.#learnInterval(before === 0 ? 0 : at - before)
    if (isNew) {
      this.mark = mark
      this.since = at
      this.sinceRevision = revision
    }
    if (isStaged) {
      this.stagedFrom = servedFrom
      this.stagedSince = at
    }
    const isOther = this.by !== by
    this.at = at
    this.revision = revision
    if (isOther) this.by = by
    return isNew || isStaged || isLearned ? 'state' : isOther ? 'caller' : 'time'
  }

  /** Small differences are ignored, so that a cluster's state is not derived again after each of its polls. */
  #learnInterval(gapMs: number): boolean {
    if (gapMs < LEAST_GAP_MS) return false
    const isConfirmed = agree(gapMs, this.#word(GAP)) && !agree(gapMs, this.intervalMs)
    if (isConfirmed) this.intervalMs = gapMs
    this.#setWord(GAP, gapMs)
    return isConfirmed
  }

  #time(place: number): number {
    return this.#chunk.times[this.#row * (WORDS / 2) + place] as number
  }

  #setTime(place: number, time: number): void {
    this.#chunk.times[this.#row * (WORDS / 2) + place] = time
  }

  #word(place: number): number {
    return this.#chunk.words[this.#row * WORDS + place] as number
  }

  /** Revisions and intervals in milliseconds: larger ones than fit are as good as the largest. */
  #setWord(place: number, value: number): void {
    this.#chunk.words[this.#row * WORDS + place] = Math.min(value, MAX_WORD)
  }
}

function agree(gapMs: number, other: number): boolean {
  return Math.abs(gapMs - other) < AGREEMENT * gapMs
}
