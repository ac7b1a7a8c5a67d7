// The templates of `-o jsonpath=…`, as kubectl has them: {.a.b[0]}, {[*].id}, {range …}…{end}, {..x}, filters, "text".
import { usage } from '../failure.ts'

type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'value'; readonly path: readonly Step[] }
  | { readonly kind: 'range'; readonly path: readonly Step[]; readonly body: readonly Part[] }

type Step = (values: readonly unknown[], root: unknown) => unknown[]

/** Parses a template; returns a function that renders values with it. */
export function compileJsonpath(template: string): (root: unknown) => string {
  const { parts } = new Template(template)
  return (root) => parts.map((part) => renderPart(part, root, root)).join('')
}

function renderPart(part: Part, current: unknown, root: unknown): string {
  if (part.kind === 'text') return part.text
  const values = follow(part.path, current, root)
  if (part.kind === 'value') return values.map(show).join(' ')
  return values.flatMap((value) => part.body.map((inner) => renderPart(inner, value, root))).join('')
}

function follow(path: readonly Step[], start: unknown, root: unknown): unknown[] {
  return path.reduce((values, step) => step(values, root), [start])
}

function unescaped(name: string): string {
  return name.replaceAll(/\\(.)/g, '$1')
}

function show(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function childrenOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value
  return typeof value === 'object' && value !== null ? Object.values(value) : []
}

function member(name: string): Step {
  return (values) =>
    values.flatMap((value) => {
      if (Array.isArray(value)) {
        throw usage(
          `jsonpath: .${name} is asked of a list: say which of it, such as [*].${name} or [0].${name}`,
        )
      }
      const has = typeof value === 'object' && value !== null && Object.hasOwn(value, name)
      return has ? [(value as Record<string, unknown>)[name]] : []
    })
}

function descendants(name: string): Step {
  const find = (value: unknown): unknown[] => [
    ...(Array.isArray(value) ? [] : member(name)([value], undefined)),
    ...childrenOf(value).flatMap(find),
  ]
  return (values) => values.flatMap(find)
}

const all: Step = (values) => values.flatMap(childrenOf)

/** A slice: start, end (exclusive) and step; negative ones count from the end. */
function slice(from: number | undefined, to: number | undefined, every: number): Step {
  return (values) =>
    values.flatMap((value) =>
      Array.isArray(value) ? value.slice(from ?? 0, to).filter((_item, i) => i % every === 0) : [],
    )
}

function at(index: number): Step {
  return (values) =>
    values.flatMap((value) => {
      if (!Array.isArray(value)) return []
      const item = value.at(index)
      return item === undefined ? [] : [item]
    })
}

type Operand = (item: unknown, root: unknown) => unknown

const COMPARE: Record<string, (a: unknown, b: unknown) => boolean> = {
  '==': (a, b) => a === b,
  '!=': (a, b) => a !== b,
  '<=': (a, b) => (a as number) <= (b as number),
  '>=': (a, b) => (a as number) >= (b as number),
  '<': (a, b) => (a as number) < (b as number),
  '>': (a, b) => (a as number) > (b as number),
}

function filter(left: Operand, operator: string | undefined, right: Operand | undefined): Step {
  const holds = operator === undefined ? undefined : COMPARE[operator]
  return (values, root) =>
    values.flatMap(childrenOf).filter((item) => {
      // Items without the field do not match.
      const value = left(item, root)
      return value !== undefined && (holds && right ? holds(value, right(item, root)) : true)
    })
}

/** Reads a template from left to right. */
class Template {
  readonly parts: readonly Part[]
  readonly #text: string
  #at = 0

  constructor(text: string) {
    // A template without braces is one expression.
    this.#text = text.includes('{') ? text : `{${text}}`
    this.parts = this.#parts(false)
  }

  #parts(inRange: boolean): Part[] {
    const parts: Part[] = []
    while (this.#at < this.#text.length) {
      const text = this.#take(/[^{]+/y)
      if (text !== undefined) {
        parts.push({ kind: 'text', text })
        continue
      }
      this.#need(/\{\s*/y, '{')
      if (this.#take(/end\s*\}/y) !== undefined) {
        if (!inRange) this.#fail('{end} without {range}')
        return parts
      }
      parts.push(this.#braces())
    }
    if (inRange) this.#fail('{range} without {end}')
    return parts
  }

  #braces(): Part {
    if (this.#take(/range\s+/y) !== undefined) {
      const path = this.#path()
      this.#need(/\s*\}/y, '}')
      return { kind: 'range', path, body: this.#parts(true) }
    }
    const literal = this.#literal()
    const part: Part =
      literal === undefined ? { kind: 'value', path: this.#path() } : { kind: 'text', text: String(literal) }
    this.#need(/\s*\}/y, '}')
    return part
  }

  #path(): Step[] {
    this.#take(/[$@]/y)
    const steps: Step[] = []
    for (;;) {
      const deep = this.#take(/\.\.(?:[^\s.,:[\]$@{}()'"=<>!*\\]|\\.)+/y)
      const name = deep ?? this.#take(/\.(?:[^\s.,:[\]$@{}()'"=<>!*\\]|\\.)+/y)
      if (deep !== undefined) steps.push(descendants(unescaped(deep.slice(2))))
      else if (name !== undefined) steps.push(member(unescaped(name.slice(1))))
      else if (this.#take(/\.\*/y) !== undefined) steps.push(all)
      else if (this.#take(/\[/y) !== undefined) steps.push(this.#bracket())
      else if (this.#take(/\./y) === undefined) return steps
    }
  }

  #bracket(): Step {
    if (this.#take(/\*\s*\]/y) !== undefined) return all
    if (this.#take(/\?\(\s*/y) !== undefined) return this.#filter()
    const steps = [this.#choice()]
    while (this.#take(/\s*,\s*/y) !== undefined) steps.push(this.#choice())
    this.#need(/\s*\]/y, ']')
    const [only] = steps
    if (steps.length === 1 && only) return only
    return (values, root) => values.flatMap((value) => steps.flatMap((step) => step([value], root)))
  }

  /** Parses what is in brackets: a name, a slice or an index. */
  #choice(): Step {
    const name = this.#literal()
    if (name !== undefined) return member(name)
    const range = this.#take(/-?\d*:-?\d*(?::\d+)?/y)
    if (range !== undefined) {
      const [from, to, every] = range.split(':')
      const number = (text: string | undefined) => (text ? Number(text) : undefined)
      return slice(number(from), number(to), number(every) || 1)
    }
    return at(Number(this.#need(/-?\d+/y, 'an index, *, a name in quotes or ?(…)')))
  }

  #filter(): Step {
    const left = this.#operand()
    const operator = this.#take(/\s*(?:==|!=|<=|>=|<|>)\s*/y)?.trim()
    const right = operator === undefined ? undefined : this.#operand()
    this.#need(/\s*\)\s*\]/y, ')]')
    return filter(left, operator, right)
  }

  #operand(): Operand {
    if (this.#text[this.#at] === '@' || this.#text[this.#at] === '$') {
      const fromRoot = this.#text[this.#at] === '$'
      const path = this.#path()
      return (item, root) => follow(path, fromRoot ? root : item, root)[0]
    }
    const text = this.#literal()
    const value = text ?? JSON.parse(this.#need(/-?\d+(?:\.\d+)?|true|false|null/y, '@, quotes or a number'))
    return () => value
  }

  /** Parses text in quotes. */
  #literal(): string | undefined {
    const quoted = this.#take(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/y)
    if (quoted === undefined) return undefined
    const escapes: Record<string, string> = { n: '\n', t: '\t', r: '\r' }
    return quoted
      .slice(1, -1)
      .replaceAll(/\\(.)/gs, (_all, character: string) => escapes[character] ?? character)
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    if (found !== undefined) this.#at += found.length
    return found
  }

  #need(pattern: RegExp, what: string): string {
    return this.#take(pattern) ?? this.#fail(`expected ${what}`)
  }

  #fail(message: string): never {
    throw usage(`jsonpath: ${message} at position ${this.#at + 1} of ${this.#text}`)
  }
}
