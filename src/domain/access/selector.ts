// Kubernetes label selectors, over a cluster's labels, its own fields and what it is assigned.
import { DNS_LABEL } from '../../base/dns-label.ts'
import { isObject, own } from '../../base/json.ts'
import { canonicalDns, type Document, referencesOf, type Types } from '../types/resource-type.ts'

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

type Test = (cluster: Document) => boolean

/** Characters of a selector: it is evaluated for every cluster. */
export const MAX_SELECTOR = 4096
const MAX_REQUIREMENTS = 64

/** `environment in (dev,qa), region=eu, !legacy, uses.platform_components=grafana`: all of them must hold. */
export function parseSelector(types: Types, text: string): ParsedSelector {
  if (text.length > MAX_SELECTOR) return { ok: false, message: `is longer than ${MAX_SELECTOR} characters` }
  try {
    const parser = new Parser(types, text)
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

/** How one key is read from a cluster: whether it has a value there, and whether that is one of a list. */
interface Subject {
  has(cluster: Document): boolean
  isOneOf(values: readonly string[]): Test
  /** The value for comparisons by size; NaN where the cluster has none. */
  number(cluster: Document): number
  /** Whether any cluster could have such a value. */
  takes?(value: string): boolean
}

const WORD = /[A-Za-z0-9_./-]+/y
const SPACE = /\s*/y
const WHOLE = /^-?\d+$/
const NAME = '[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?'
const LABEL_KEY = new RegExp(`^(?:(?=[^/]{1,253}/)${DNS_LABEL}(?:\\.${DNS_LABEL})*/)?${NAME}$`)
const LABEL_VALUE = new RegExp(`^(?:${NAME})?$`)
const USES = 'uses.'

class Parser {
  readonly #types: Types
  readonly #text: string
  readonly labels = new Set<string>()
  #at = 0

  constructor(types: Types, text: string) {
    this.#types = types
    this.#text = text
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
    if (this.#takes('!')) {
      const subject = this.#subject()
      return (cluster) => !subject.has(cluster)
    }
    const subject = this.#subject()
    if (this.#takes('!=')) return not(this.#equals(subject))
    if (this.#takes('==') || this.#takes('=')) return this.#equals(subject)
    if (this.#takes('>')) return this.#compares(subject, (a, b) => a > b)
    if (this.#takes('<')) return this.#compares(subject, (a, b) => a < b)
    if (this.#takesWord('notin')) return not(this.#isIn(subject))
    if (this.#takesWord('in')) return this.#isIn(subject)
    if (this.#at < this.#text.length && this.#text[this.#at] !== ',') {
      this.#expected('one of =, ==, !=, <, >, in, notin, "," or the end')
    }
    return (cluster) => subject.has(cluster)
  }

  #equals(subject: Subject): Test {
    return subject.isOneOf([this.#value(subject)])
  }

  #compares(subject: Subject, holds: (a: number, b: number) => boolean): Test {
    const start = this.#at
    const value = this.#word() ?? ''
    if (!WHOLE.test(value)) this.#expected('a whole number', start)
    return (cluster) => holds(subject.number(cluster), Number(value))
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
  #value({ takes }: Subject): string {
    const start = this.#at
    const value = this.#word() ?? ''
    if (takes && !takes(value)) this.#fail(`holds "${value}", which is not a label value`, start)
    return value
  }

  #subject(): Subject {
    const start = this.#at
    const key = this.#word()
    if (key === undefined) this.#expected('a label or field')
    if (key.startsWith(USES)) return this.#uses(key.slice(USES.length), start)
    const { cluster } = this.#types
    if (key === 'id' || cluster.list.includes(key))
      return field(key, key === cluster.dns ? canonicalDns : undefined)
    if (!LABEL_KEY.test(key)) this.#fail(`holds "${key}", which is not a label key`, start)
    this.labels.add(key)
    return label(cluster.labels, key)
  }

  #uses(name: string, start: number): Subject {
    const type = this.#types.delivered.find((delivered) => delivered.name === name)
    if (!type) {
      const known = this.#types.delivered.map((delivered) => USES + delivered.name).join(', ')
      return this.#fail(`holds "${USES}${name}", which is unknown: known are ${known}`, start)
    }
    return {
      has: (cluster) => referencesOf(cluster, type.delivery).length > 0,
      isOneOf(values) {
        const ids = new Set(values)
        return (cluster) => referencesOf(cluster, type.delivery).some(({ id }) => ids.has(id))
      },
      number: (cluster) => referencesOf(cluster, type.delivery).length,
    }
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

function field(name: string, canonical: ((value: string) => string) | undefined): Subject {
  return valueSubject((cluster) => {
    const value = cluster[name]
    return value === undefined ? undefined : String(value)
  }, canonical)
}

function label(property: string | undefined, key: string): Subject {
  const subject = valueSubject((cluster) => {
    const labels = property === undefined ? undefined : cluster[property]
    const value = isObject(labels) ? own(labels, key) : undefined
    return value === undefined ? undefined : String(value)
  })
  return { ...subject, takes: (value) => LABEL_VALUE.test(value) }
}

function valueSubject(
  read: (cluster: Document) => string | undefined,
  canonical: (value: string) => string = (value) => value,
): Subject {
  return {
    has: (cluster) => read(cluster) !== undefined,
    isOneOf(values) {
      const wanted = new Set(values.map(canonical))
      return (cluster) => {
        const known = read(cluster)
        return known !== undefined && wanted.has(canonical(known))
      }
    },
    number: (cluster) => toWhole(read(cluster)),
  }
}

function toWhole(text: string | undefined): number {
  return text !== undefined && WHOLE.test(text) ? Number(text) : Number.NaN
}
