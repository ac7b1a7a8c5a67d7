// Kubernetes label selectors, over a cluster's labels, its own fields and what it is assigned.
import { DNS_LABEL } from '../../base/dns-label.ts'
import { canonicalDns, type Document, type Types } from '../types/resource-type.ts'
import {
  fieldSubject,
  labelSubject,
  STATUS_KEYS,
  type StatusReader,
  type Subject,
  statusSubject,
  type Test,
  usesSubject,
} from './selector-subjects.ts'

export interface Selector {
  readonly text: string
  /** The keys that are labels, not fields of clusters. */
  readonly labels: readonly string[]
  matches(cluster: Document): boolean
}

export type ParsedSelector =
  | { readonly ok: true; readonly selector: Selector }
  /** What is wrong, with the position (from 1) where it shows. */
  | { readonly ok: false; readonly message: string }

/** Characters of a selector: it is evaluated for every cluster. */
export const MAX_SELECTOR = 4096
const MAX_REQUIREMENTS = 64

/**
 * `environment in (dev,qa), region=eu, !legacy, uses.platform_components=grafana`: all of them must hold. With a reader
 * also `health in (failed,unknown), operator_version<0.58`; without one such a selector is refused, since what is kept or
 * done by it has to stay as it was previewed.
 */
export function parseSelector(types: Types, text: string, status?: StatusReader): ParsedSelector {
  if (text.length > MAX_SELECTOR) return { ok: false, message: `is longer than ${MAX_SELECTOR} characters` }
  try {
    const parser = new Parser(types, text, status)
    const tests = parser.parse()
    const matches = (cluster: Document): boolean => tests.every((test) => test(cluster))
    return { ok: true, selector: { text, labels: [...parser.labels], matches } }
  } catch (error) {
    if (!(error instanceof Misread)) throw error
    return { ok: false, message: error.message }
  }
}

/** A syntax error in a selector; never leaves this file. */
class Misread extends Error {}

const WORD = /[A-Za-z0-9_./-]+/y
const SPACE = /\s*/y
const NAME = '[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?'
const LABEL_KEY = new RegExp(`^(?:(?=[^/]{1,253}/)${DNS_LABEL}(?:\\.${DNS_LABEL})*/)?${NAME}$`)
const LABEL_VALUE = new RegExp(`^(?:${NAME})?$`)
const USES = 'uses.'

class Parser {
  readonly #types: Types
  readonly #text: string
  readonly #status: StatusReader | undefined
  readonly labels = new Set<string>()
  #at = 0

  constructor(types: Types, text: string, status: StatusReader | undefined) {
    this.#types = types
    this.#text = text
    this.#status = status
  }

  parse(): Test[] {
    this.#skipSpace()
    if (this.#at === this.#text.length) {
      this.#fail('is empty: name a label or field; "id" alone selects every cluster')
    }
    const tests = [this.#requirement()]
    while (this.#takes(',')) {
      if (tests.length === MAX_REQUIREMENTS) this.#fail(`has more than ${MAX_REQUIREMENTS} requirements`)
      tests.push(this.#requirement())
    }
    if (this.#at < this.#text.length) this.#expected('"," or the end')
    return tests
  }

  #requirement(): Test {
    const start = this.#at
    if (this.#takes('!')) {
      const subject = this.#subject()
      this.#refuseWord(subject, start)
      return (cluster) => !subject.has(cluster)
    }
    const subject = this.#subject()
    if (this.#takes('!=')) return not(this.#equals(subject))
    if (this.#takes('==') || this.#takes('=')) return this.#equals(subject)
    if (this.#takesWord('notin')) return not(this.#isIn(subject))
    if (this.#takesWord('in')) return this.#isIn(subject)
    this.#refuseWord(subject, start)
    if (this.#takes('>')) return this.#compares(subject, (difference) => difference > 0)
    if (this.#takes('<')) return this.#compares(subject, (difference) => difference < 0)
    if (this.#at < this.#text.length && this.#text[this.#at] !== ',') {
      this.#expected('one of =, ==, !=, <, >, in, notin, "," or the end')
    }
    return (cluster) => subject.has(cluster)
  }

  #refuseWord({ isWord }: Subject, start: number): void {
    if (isWord) this.#fail('asks for a state of clusters without a value: use =, !=, in or notin', start)
  }

  #equals(subject: Subject): Test {
    return subject.isOneOf([this.#value(subject)])
  }

  #compares(subject: Subject, holds: (difference: number) => boolean): Test {
    const start = this.#at
    const value = this.#word() ?? ''
    if (!subject.isSize(value)) this.#expected(subject.sizes, start)
    return (cluster) => holds(subject.compare(cluster, value))
  }

  #isIn(subject: Subject): Test {
    if (!this.#takes('(')) this.#expected('"(" and a list of values')
    const values: string[] = []
    do values.push(this.#value(subject))
    while (this.#takes(','))
    if (!this.#takes(')')) this.#expected('"," or ")"')
    return subject.isOneOf(values)
  }

  /** A value that nobody can have would make a negation match everybody. */
  #value(subject: Subject): string {
    const start = this.#at
    const value = this.#word() ?? ''
    const wrong = subject.refuse?.(value)
    if (wrong !== undefined) this.#fail(`holds "${value}", ${wrong}`, start)
    return value
  }

  #subject(): Subject {
    const start = this.#at
    const key = this.#word()
    if (key === undefined) this.#expected('a label or field')
    if (key.startsWith(USES)) return this.#uses(key.slice(USES.length), start)
    const { cluster } = this.#types
    if (key === 'id' || cluster.list.includes(key))
      return fieldSubject(key, key === cluster.dns ? canonicalDns : undefined)
    if (STATUS_KEYS.includes(key)) return this.#statusOf(key, start)
    if (!LABEL_KEY.test(key)) this.#fail(`holds "${key}", which is not a label key`, start)
    this.labels.add(key)
    return labelSubject(cluster.labels, key, LABEL_VALUE)
  }

  #uses(name: string, start: number): Subject {
    const type = this.#types.delivered.find((delivered) => delivered.name === name)
    if (!type) {
      const known = this.#types.delivered.map((delivered) => USES + delivered.name).join(', ')
      return this.#fail(`holds "${USES}${name}", which is unknown: known are ${known}`, start)
    }
    return usesSubject(type)
  }

  #statusOf(key: string, start: number): Subject {
    if (this.#status) return statusSubject(key, this.#status)
    const message = `holds "${key}": the status of clusters changes by itself, so it selects only in lists and in previews. Preview it, then name the clusters`
    return this.#fail(message, start)
  }

  #takes(token: string): boolean {
    if (!this.#text.startsWith(token, this.#at)) return false
    this.#at += token.length
    this.#skipSpace()
    return true
  }

  /** Takes a keyword only as a whole word, not as the beginning of a longer one. */
  #takesWord(keyword: string): boolean {
    const start = this.#at
    if (this.#word() === keyword) return true
    this.#at = start
    return false
  }

  #word(): string | undefined {
    WORD.lastIndex = this.#at
    const word = WORD.exec(this.#text)?.[0]
    this.#at += word?.length ?? 0
    this.#skipSpace()
    return word
  }

  #skipSpace(): void {
    SPACE.lastIndex = this.#at
    this.#at += SPACE.exec(this.#text)?.[0].length ?? 0
  }

  #expected(what: string, at = this.#at): never {
    const found =
      at < this.#text.length ? `"${this.#text.slice(at).split(/[\s,]/)[0] || this.#text[at]}"` : 'the end'
    return this.#fail(`is not a selector: expected ${what}, found ${found}`, at)
  }

  #fail(message: string, at = this.#at): never {
    throw new Misread(`${message} (at position ${at + 1})`)
  }
}

function not(test: Test): Test {
  return (cluster) => !test(cluster)
}
