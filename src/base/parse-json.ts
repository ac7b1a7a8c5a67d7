// Parses JSON in pieces, so that a large text does not block the event loop, and checks it on the way.
import { checkJson, FORBIDDEN_KEYS, type Json, MAX_DEPTH, pointer } from './json.ts'
import { type Detail, fail, invalid, MAX_FOUND, type Result, succeed } from './problem.ts'
import type { Steps } from './steps.ts'

/** Bytes that JSON.parse gets at once, as long as no single text is longer. */
const PIECE = 32 * 1024
/** Every number, text, list and object counts: each takes far more memory than its bytes. */
const MAX_VALUES = 4_000_000
/** Bytes of one text: no document takes a longer one, and a text cannot be split. */
const MAX_TEXT = 4 * 1024 * 1024

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

export function* parseJson(bytes: Uint8Array, piece = PIECE): Steps<Result<Json>> {
  const parser = new Parser(bytes, piece)
  try {
    const value = yield* parser.parse()
    return parser.details.length > 0 ? invalid(parser.details) : succeed(value)
  } catch (error) {
    if (error instanceof TooMuch) return invalid(parser.details)
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error
    const message = `the body is not valid JSON in UTF-8: ${error.message}`
    return fail({ code: 'validation_error', reason: 'malformed_json', message })
  }
}

/** Thrown when there is no use in reading on; never leaves this file. */
class TooMuch extends Error {}

class Parser {
  readonly details: Detail[] = []
  readonly #bytes: Uint8Array
  readonly #piece: number
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  /** Where each list and object that is longer than a piece ends, by where it begins. */
  readonly #ends = new Map<number, number>()

  constructor(bytes: Uint8Array, piece: number) {
    const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
    this.#bytes = hasMark ? bytes.subarray(3) : bytes
    this.#piece = piece
  }

  *parse(): Steps<Json> {
    const { length } = this.#bytes
    if (length > this.#piece) yield* this.#findEnds()
    return yield* this.#value(0, length, '', 0)
  }

  /** Walks over all bytes once; otherwise a part would be searched for its end again for each list around it. */
  *#findEnds(): Steps<void> {
    const open: number[] = []
    let values = 1
    for (let at = 0, rest = this.#piece; at < this.#bytes.length; at++) {
      const byte = this.#bytes[at]
      if (byte === QUOTE) {
        const start = at
        at = this.#endOfText(at)
        if (at - start > MAX_TEXT) this.#stop('holds a text of more than 4 MiB')
      } else if (byte === COMMA) values++
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
        values++
        if (open.push(at) > MAX_DEPTH + 1) this.#stop(`is nested deeper than ${MAX_DEPTH} levels`)
      } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
        const start = open.pop()
        if (start === undefined) throw this.#unexpected(at)
        if (at + 1 - start > this.#piece) this.#ends.set(start, at)
      }
      if (at < rest) continue
      if (values > MAX_VALUES) this.#stop(`holds more than ${MAX_VALUES} values: send less at once`)
      rest = at + this.#piece
      yield
    }
  }

  /** The closing quote of the text that begins here. */
  #endOfText(start: number): number {
    for (let at = start + 1; ; at++) {
      at = this.#bytes.indexOf(QUOTE, at)
      if (at < 0) throw new SyntaxError(`Unterminated string at byte ${start}`)
      let escapes = 0
      while (this.#bytes[at - 1 - escapes] === BACKSLASH) escapes++
      if (escapes % 2 === 0) return at
    }
  }

  *#value(from: number, to: number, path: string, depth: number): Steps<Json> {
    const [start, end] = this.#trim(from, to)
    const first = this.#bytes[start]
    const isList = first === OPEN_LIST
    // A text, a number or invalid JSON cannot be split, and a short value need not be.
    if (end - start <= this.#piece || !(isList || first === OPEN_OBJECT)) {
      const value = this.#native(start, end)
      this.#check(value, path, depth)
      return value
    }
    if (this.#ends.get(start) !== end - 1) throw this.#unexpected(this.#ends.get(start) ?? start)
    if (this.#bytes[end - 1] !== (isList ? CLOSE_LIST : CLOSE_OBJECT)) throw this.#unexpected(end - 1)
    return isList
      ? yield* this.#list(start + 1, end - 1, path, depth)
      : yield* this.#object(start + 1, end - 1, path, depth)
  }

  *#list(from: number, to: number, path: string, depth: number): Steps<Json[]> {
    const list: Json[] = []
    for (const [start, end] of this.#pieces(from, to)) {
      yield
      if (end - start > this.#piece) {
        list.push(yield* this.#value(start, end, pointer(path, list.length), depth + 1))
        continue
      }
      for (const item of this.#native(start, end, '[]') as Json[]) {
        this.#check(item, pointer(path, list.length), depth + 1)
        list.push(item)
      }
    }
    return list
  }

  *#object(from: number, to: number, path: string, depth: number): Steps<Json> {
    const object: Record<string, Json> = {}
    for (const [start, end] of this.#pieces(from, to)) {
      yield
      if (end - start > this.#piece) {
        const [key, value] = this.#member(start, end)
        this.#check({ [key]: null }, path, depth)
        const found = yield* this.#value(value, end, pointer(path, key), depth + 1)
        // A forbidden key is refused anyway, and assigning `__proto__` would change the object's prototype.
        if (!FORBIDDEN_KEYS.has(key)) object[key] = found
        continue
      }
      const members = this.#native(start, end, '{}') as Record<string, Json>
      this.#check(members, path, depth)
      for (const key of Object.keys(members)) if (!FORBIDDEN_KEYS.has(key)) object[key] = members[key] as Json
    }
    return object
  }

  /** The key of a member, and where its value begins. */
  #member(from: number, to: number): [key: string, value: number] {
    const [start] = this.#trim(from, to)
    if (this.#bytes[start] !== QUOTE) throw this.#unexpected(start)
    const end = this.#endOfText(start) + 1
    const [colon] = this.#trim(end, to)
    if (this.#bytes[colon] !== COLON) throw this.#unexpected(colon)
    const key = this.#decode(start, end)
    this.#refusePoison(`${key}:`)
    return [this.#parse(key, start) as string, colon + 1]
  }

  /** Yields the ranges of members between commas: as many as fit into a piece, and a larger member alone. */
  *#pieces(from: number, to: number): Generator<[start: number, end: number]> {
    const [first, end] = this.#trim(from, to)
    if (first === end) return
    let start = from
    let last = from - 1
    for (let at = from; at <= to; at++) {
      const byte = at === to ? COMMA : this.#bytes[at]
      if (byte === QUOTE) at = this.#endOfText(at)
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) at = this.#ends.get(at) ?? this.#endOfShort(at)
      if (byte !== COMMA) continue
      if (at - start > this.#piece && last >= start) {
        yield this.#notEmpty(start, last)
        start = last + 1
      }
      if (at - start > this.#piece) {
        yield this.#notEmpty(start, at)
        start = at + 1
      }
      last = at
    }
    if (start <= to) yield this.#notEmpty(start, to)
  }

  /** Finds the end of a list or object that is shorter than a piece: `#ends` holds only longer ones. */
  #endOfShort(start: number): number {
    let depth = 0
    for (let at = start; at < this.#bytes.length; at++) {
      const byte = this.#bytes[at]
      if (byte === QUOTE) at = this.#endOfText(at)
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) depth++
      else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
        if (--depth === 0) return at
      }
    }
    throw this.#unexpected(this.#bytes.length)
  }

  #notEmpty(from: number, to: number): [start: number, end: number] {
    const [start, end] = this.#trim(from, to)
    if (start === end) throw this.#unexpected(to)
    return [start, end]
  }

  #trim(from: number, to: number): [start: number, end: number] {
    let [start, end] = [from, to]
    while (start < end && isSpace(this.#bytes[start])) start++
    while (end > start && isSpace(this.#bytes[end - 1])) end--
    return [start, end]
  }

  #native(start: number, end: number, around = ''): Json {
    return this.#parse(`${around.slice(0, 1)}${this.#decode(start, end)}${around.slice(1)}`, start)
  }

  #decode(start: number, end: number): string {
    return this.#decoder.decode(this.#bytes.subarray(start, end))
  }

  #parse(text: string, start: number): Json {
    this.#refusePoison(text)
    try {
      return JSON.parse(text) as Json
    } catch (error) {
      const { message } = error as SyntaxError
      throw start === 0 ? error : new SyntaxError(`${message} (of what begins at byte ${start})`)
    }
  }

  #refusePoison(text: string): void {
    const key = findPoison(text)
    if (key !== undefined) this.#stop(`has the key "${key}": a backslash may stand only before a dot`)
  }

  #check(value: Json, path: string, depth: number): void {
    checkJson(value, path, this.details, depth)
    if (this.details.length > MAX_FOUND) throw new TooMuch()
  }

  #stop(message: string): never {
    this.details.splice(0, this.details.length, { path: '', message })
    throw new TooMuch()
  }

  #unexpected(at: number): SyntaxError {
    const byte = this.#bytes[at]
    const what = byte === undefined ? 'end' : `token '${String.fromCharCode(byte)}'`
    return new SyntaxError(`Unexpected ${what} at byte ${at}`)
  }
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

/**
 * Returns a key with a backslash that V8 must not parse: after such a key, JSON.parse mistakes other keys for it whose
 * escaped text begins the same (nodejs/node#63785). A backslash before a dot, as in Helm paths, has no such effect. The
 * pattern also matches a text without an end, so that it is not tried again from every quote in it.
 */
export function findPoison(text: string): string | undefined {
  if (!/\\\\|\\u005c/i.test(text)) return undefined
  for (const [, string = '', colon] of text.matchAll(/"((?:[^"\\]|\\.)*)"?\s*(:?)/g)) {
    if (colon && /\\\\|\\u005c/i.test(string.replaceAll('\\\\.', ''))) return string
  }
  return undefined
}
