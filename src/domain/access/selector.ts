// Kubernetes label selectors, over a cluster's labels, its own fields and what it is assigned.
import { DNS_LABEL } from '../../base/dns-label.ts'
import type { View } from '../documents/view.ts'
import { canonicalDns, type DeliveredType, type Document, type Types } from '../types/resource-type.ts'
import {
  fieldSubject,
  labelSubject,
  overridesSubject,
  type ReadVersion,
  STATUS_KEYS,
  type StatusReader,
  type Subject,
  servedVersionSubject,
  statusSubject,
  type Test,
  usesSubject,
} from './selector-subjects.ts'

export interface Selector {
  readonly text: string
  /** The keys that are labels, not fields of clusters. */
  readonly labels: readonly string[]
  /** The definitions that it names, each with the types that it may be of. */
  readonly definitions: readonly NamedDefinition[]
  /** A selector with a reader of versions needs the view that the cluster is from. */
  matches(cluster: Document, view?: View): boolean
}

export interface NamedDefinition {
  readonly id: string
  readonly types: readonly DeliveredType[]
}

/** What a selector may ask for beside documents of clusters. */
export interface SelectorReaders {
  readonly status?: StatusReader | undefined
  /** Only where `matches` is given a view. */
  readonly version?: ReadVersion
}

export type ParsedSelector =
  | { readonly ok: true; readonly selector: Selector }
  /** What is wrong, with the position (from 1) where it shows. */
  | { readonly ok: false; readonly message: string }

/** Characters of a selector: it is evaluated for every cluster. */
export const MAX_SELECTOR = 4096
const MAX_REQUIREMENTS = 64

/**
 * `environment in (dev,qa), region=eu, !legacy, uses.platform_components=grafana, overrides.platform_components=grafana`: all
 * of them must hold. With a reader of versions also `version.grafana=v1.1.0`. With a reader of
 * status also `health in (failed,unknown), operator_version<0.58`; without one such a selector is refused, since what is
 * kept or done by it has to stay as it was previewed.
 */
export function parseSelector(types: Types, text: string, readers: SelectorReaders = {}): ParsedSelector {
  if (text.length > MAX_SELECTOR) return { ok: false, message: `is longer than ${MAX_SELECTOR} characters` }
  try {
    const parser = new Parser(types, text, readers)
    const tests = parser.parse()
    const matches = (cluster: Document, view?: View): boolean => tests.every((test) => test(cluster, view))
    const { labels, definitions } = parser
    return { ok: true, selector: { text, labels: [...labels], definitions, matches } }
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
const OVERRIDES = 'overrides.'
const VERSION = 'version.'

class Parser {
  readonly #types: Types
  readonly #text: string
  readonly #readers: SelectorReaders
  readonly labels = new Set<string>()
  readonly definitions: NamedDefinition[] = []
  #at = 0

  constructor(types: Types, text: string, readers: SelectorReaders) {
    this.#types = types
    this.#text = text
    this.#readers = readers
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
      return not(subject.has)
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
    return subject.has
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
    return (cluster, view) => holds(subject.compare(cluster, value, view))
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
    if (key.startsWith(USES)) return this.#assigned(USES, usesSubject, key, start)
    if (key.startsWith(OVERRIDES)) return this.#assigned(OVERRIDES, overridesSubject, key, start)
    if (key.startsWith(VERSION)) return this.#versionOf(key.slice(VERSION.length), start)
    const { cluster } = this.#types
    if (key === 'id' || cluster.list.includes(key))
      return fieldSubject(key, key === cluster.dns ? canonicalDns : undefined)
    if (STATUS_KEYS.includes(key)) return this.#statusOf(key, start)
    if (!LABEL_KEY.test(key)) this.#fail(`holds "${key}", which is not a label key`, start)
    this.labels.add(key)
    return labelSubject(cluster.labels, key, LABEL_VALUE)
  }

  #assigned(
    prefix: string,
    subjectOf: (type: DeliveredType) => Subject,
    key: string,
    start: number,
  ): Subject {
    const { delivered } = this.#types
    const type = delivered.find(({ name }) => prefix + name === key)
    if (!type) {
      const known = delivered.map(({ name }) => prefix + name).join(', ')
      return this.#fail(`holds "${key}", which is unknown: known are ${known}`, start)
    }
    const subject = subjectOf(type)
    return {
      ...subject,
      isOneOf: (ids) => {
        for (const id of ids) this.definitions.push({ id, types: [type] })
        return subject.isOneOf(ids)
      },
    }
  }

  #versionOf(id: string, start: number): Subject {
    const among = this.#types.delivered.filter(({ delivery }) => delivery.versionField)
    if (id === '')
      this.#fail(`holds "${VERSION}", which names nothing: "${VERSION}ID" is the version of ID`, start)
    this.definitions.push({ id, types: among })
    const { version } = this.#readers
    if (version) return servedVersionSubject(version, id)
    const message = `holds "${VERSION}${id}": the version that clusters are served changes with the catalog, so it selects only in lists and in writes, and nothing that is kept`
    return this.#fail(message, start)
  }

  #statusOf(key: string, start: number): Subject {
    const { status } = this.#readers
    if (status) return statusSubject(key, status)
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
  return (cluster, view) => !test(cluster, view)
}
