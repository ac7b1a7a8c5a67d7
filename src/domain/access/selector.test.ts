import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { builtInTypes } from '../../../test/service.ts'
import type { JsonObject } from '../../base/json.ts'
import type { StatusRow } from '../status/status-words.ts'
import type { Document } from '../types/resource-type.ts'
import { MAX_SELECTOR, parseSelector } from './selector.ts'
import type { StatusReader } from './selector-subjects.ts'

const types = builtInTypes()

function cluster(labels: JsonObject = {}, more: JsonObject = {}): Document {
  const own = { id: 'one', cluster_name: 'one', cluster_dns: 'one.example.com', environment: 'dev' }
  return { ...own, labels, ...more }
}

function selects(text: string, document: Document): boolean {
  const parsed = parseSelector(types, text)
  assert.ok(parsed.ok, `${text}: ${JSON.stringify(parsed)}`)
  return parsed.selector.matches(document)
}

function assertSelected(document: Document, expected: Readonly<Record<string, boolean>>): void {
  const found = Object.fromEntries(Object.keys(expected).map((text) => [text, selects(text, document)]))
  assert.deepEqual(found, expected)
}

test('a label is compared by its whole value, with one equals sign or two', () => {
  assertSelected(cluster({ region: 'eu-1', Zone: 'a' }), {
    'region=eu-1': true,
    'region==eu-1': true,
    'region=eu': false,
    'region=EU-1': false,
    'region=eu-1a': false,
    'region!=eu-1': false,
    'region!=eu': true,
    'zone=a': false,
    'Zone=a': true,
  })
})

test('a label is one of a list of values, or none of them', () => {
  assertSelected(cluster({ tier: 'gold' }), {
    'tier in (gold)': true,
    'tier in (silver,gold)': true,
    'tier in (silver,bronze)': false,
    'tier in (gol,old)': false,
    'tier notin (gold)': false,
    'tier notin (silver,gold)': false,
    'tier notin (silver,bronze)': true,
    'tier in (in,notin,gold)': true,
  })
})

test('a label is there or not, whatever its value', () => {
  assertSelected(cluster({ legacy: '', gpu: 'false' }), {
    legacy: true,
    '!legacy': false,
    gpu: true,
    '!gpu': false,
    other: false,
    '!other': true,
  })
})

test('what a missing label is not holds, and nothing else does', () => {
  assertSelected(cluster(), {
    'team!=a': true,
    'team notin (a,b)': true,
    'team=a': false,
    'team=': false,
    'team!=': true,
    'team in (a)': false,
    'team in ()': false,
    'team notin ()': true,
    'team>0': false,
    'team<0': false,
  })
  assert.ok(!selects('team', { id: 'one' }))
  assert.ok(selects('team!=a', { id: 'one' }))
})

test('an empty value is a value: it can be asked for, alone and in a list', () => {
  assertSelected(cluster({ team: '' }), {
    'team=': true,
    'team==': true,
    'team!=': false,
    'team= , team': true,
    'team=,!team': false,
    'team in ()': true,
    'team in ( )': true,
    'team in (a,)': true,
    'team in (,a)': true,
    'team notin (a,,b)': false,
    'team notin (a,b)': true,
  })
  assertSelected(cluster({ team: 'c' }), { 'team=': false, 'team in (a,)': false, 'team notin (a,,b)': true })
})

test('labels compare by size as whole numbers, and text has no size', () => {
  assertSelected(cluster({ nodes: '10', team: 'a', below: '9' }), {
    'nodes>9': true,
    'nodes>10': false,
    'nodes>11': false,
    'nodes<11': true,
    'nodes<10': false,
    'nodes<9': false,
    'nodes>-1': true,
    'nodes>9,nodes<11': true,
    'team>0': false,
    'team<0': false,
    'below>10': false,
  })
})

test('a comma means and', () => {
  const document = cluster({ a: '1', b: '2', c: '3' })
  assertSelected(document, {
    'a=1,b=2,c=3': true,
    'a=1,b=2,c=4': false,
    'a=0,b=2,c=3': false,
    'a,!d,b in (1,2),c notin (1,2)': true,
    'a,!d,b in (1,2),c notin (2,3)': false,
    'a=1,a=2': false,
    'a!=2,a!=3': true,
  })
})

test('spaces may stand anywhere between the words and nowhere have to', () => {
  const document = cluster({ a: '1', b: '2' })
  assertSelected(document, {
    '  a =  1 ,\tb\n!= 3  ': true,
    ' ! c , a == 1 ': true,
    'a in(1,2),b notin(1)': true,
    'a  in\t( 1 , 2 ) , b\nnotin (  1  )': true,
    'a in (2),b notin(1)': false,
    'b  >  1 , b < 3': true,
    ' a ': true,
  })
})

test('keys may have a prefix, and be named like the words of the language', () => {
  assertSelected(
    cluster({ 'example.com/team': 'a', in: 'in', notin: '1', team: 'b', 'k8s.io/a_b.c-d': '' }),
    {
      'example.com/team=a': true,
      'example.com/team!=a': false,
      'example.com/team in (a,b)': true,
      'example.org/team': false,
      'k8s.io/a_b.c-d': true,
      'team=a': false,
      'in in (in)': true,
      'in notin (in)': false,
      'notin,in': true,
      'notin>0': true,
      '!in': false,
    },
  )
})

test('labels that are named like members of every object do not match by accident', () => {
  for (const key of ['constructor', 'toString', 'hasOwnProperty', 'valueOf', 'length', 'labels']) {
    assertSelected(cluster(), {
      [key]: false,
      [`!${key}`]: true,
      [`${key}!=x`]: true,
      [`${key}=undefined`]: false,
      [`${key}=`]: false,
      [`${key}<1`]: false,
    })
    assertSelected(cluster({ [key]: 'x' }), { [key]: true, [`${key}=x`]: true, [`!${key}`]: false })
  }
})

test('own fields of a cluster are asked for like labels, and win over labels of their name', () => {
  const document = cluster(
    { environment: 'label', id: 'label' },
    { id: 'eu-1', cluster_name: 'Europe-1', environment: 'prod' },
  )
  assertSelected(document, {
    'id=eu-1': true,
    'id=EU-1': false,
    'id in (eu-1,eu-2)': true,
    'id!=eu-1': false,
    'id=label': false,
    id: true,
    '!id': false,
    'cluster_name=Europe-1': true,
    'cluster_name=europe-1': false,
    'cluster_name notin (eu-1)': true,
    'environment=prod': true,
    'environment in (dev,qa)': false,
    'environment=label': false,
    '!environment': false,
  })
  assertSelected(cluster({}, { id: '12' }), { 'id>11': true, 'id<12': false })
})

test('a DNS name is the same in any case and with the dot of the root', () => {
  const document = cluster({ dns: 'One.Example.com' }, { cluster_dns: 'One.Example.com' })
  assertSelected(document, {
    'cluster_dns=one.example.com': true,
    'cluster_dns==ONE.EXAMPLE.COM.': true,
    'cluster_dns!=one.example.com.': false,
    'cluster_dns in (two.example.com,one.example.COM)': true,
    'cluster_dns notin (ONE.example.com.)': false,
    'cluster_dns=example.com': false,
    'cluster_dns=one.example.com..': false,
    'dns=one.example.com': false,
  })
})

test('a cluster is asked for by what it is assigned, type by type', () => {
  const document = cluster(
    {},
    {
      namespaces: [{ id: 'team-a' }, { id: 'team-b', labels: {} }],
      platform_components: [{ id: 'grafana' }],
    },
  )
  assertSelected(document, {
    'uses.namespaces=team-a': true,
    'uses.namespaces==team-b': true,
    'uses.namespaces=team': false,
    'uses.namespaces=grafana': false,
    'uses.namespaces=': false,
    'uses.namespaces=team-a,uses.namespaces=team-b': true,
    'uses.namespaces!=team-a': false,
    'uses.namespaces!=team-c': true,
    'uses.namespaces in (team-c,team-b)': true,
    'uses.namespaces in (team-c)': false,
    'uses.namespaces notin (team-c,team-b)': false,
    'uses.namespaces notin (team-c,team-d)': true,
    'uses.namespaces': true,
    '!uses.namespaces': false,
    'uses.namespaces>1': true,
    'uses.namespaces>2': false,
    'uses.namespaces<3': true,
    'uses.namespaces<2': false,
    'uses.platform_components': true,
    'uses.platform_components=grafana': true,
    'uses.platform_components<2': true,
  })
})

test('a cluster that is assigned nothing uses nothing, whether it has the list or not', () => {
  for (const document of [cluster(), cluster({}, { rolebindings: [] })]) {
    assertSelected(document, {
      'uses.rolebindings': false,
      '!uses.rolebindings': true,
      'uses.rolebindings=admins': false,
      'uses.rolebindings!=admins': true,
      'uses.rolebindings in (admins)': false,
      'uses.rolebindings notin (admins)': true,
      'uses.rolebindings<1': true,
      'uses.rolebindings>0': false,
    })
  }
})

test('a cluster is asked for by what its own references override', () => {
  const document = cluster(
    {},
    {
      platform_components: [
        { id: 'grafana', oci_tag: 'v2' },
        { id: 'podinfo', enabled: false, oci_tag: null },
      ],
    },
  )
  assertSelected(document, {
    'overrides.platform_components': true,
    'overrides.platform_components=grafana': true,
    'overrides.platform_components=podinfo': false,
    'overrides.platform_components!=podinfo': true,
    'overrides.platform_components in (podinfo,grafana)': true,
    'overrides.platform_components>1': false,
    'overrides.namespaces': false,
    '!overrides.namespaces': true,
  })
})

const KEY = /^is not a selector: expected a label or field, found /
const OPERATOR = /^is not a selector: expected one of =, ==, !=, <, >, in, notin, "," or the end, found /
const NEXT = /^is not a selector: expected "," or the end, found /
const NUMBER = /^is not a selector: expected a whole number, found /
const LIST = /^is not a selector: expected "\(" and a list of values, found /
const CLOSE = /^is not a selector: expected "," or "\)", found /
const NO_KEY = /^holds ".+", which is not a label key/
const UNKNOWN_USE =
  /^holds "uses\..*", which is unknown: known are .*uses\.namespaces, uses\.platform_components/

const NO_VALUE = /^holds ".+", which is not a label value/
const MALFORMED: readonly (readonly [text: string, position: number, message: RegExp, found?: string])[] = [
  ['team!=a/b', 7, NO_VALUE],
  ['team!=-x', 7, NO_VALUE],
  ['team notin (a, b-)', 16, NO_VALUE],
  ['a..b/team=x', 1, NO_KEY],
  ['', 1, /^is empty: name a label or field/],
  [' \t\n', 4, /^is empty: name a label or field/],
  [',', 1, KEY, '","'],
  [',a', 1, KEY, '","'],
  ['a,', 3, KEY, 'the end'],
  ['a, ', 4, KEY, 'the end'],
  ['a,,b', 3, KEY, '","'],
  ['=a', 1, KEY, '"=a"'],
  ['(a)', 1, KEY, '"(a)"'],
  ['"a"=b', 1, KEY, '""a"=b"'],
  ['größe=1', 3, OPERATOR, '"öße=1"'],
  ['ö=1', 1, KEY, '"ö=1"'],
  ['!', 2, KEY, 'the end'],
  ['! ', 3, KEY, 'the end'],
  ['!!a', 2, KEY, '"!a"'],
  ['!=a', 2, KEY, '"=a"'],
  ['!,a', 2, KEY, '","'],
  ['!a=b', 3, NEXT, '"=b"'],
  ['! a in (b)', 5, NEXT, '"in"'],
  ['a b', 3, OPERATOR, '"b"'],
  ['a b=c', 3, OPERATOR, '"b=c"'],
  ['a not in (b)', 3, OPERATOR, '"not"'],
  ['a nott in (b)', 3, OPERATOR, '"nott"'],
  ['a IN (b)', 3, OPERATOR, '"IN"'],
  ['a inb (c)', 3, OPERATOR, '"inb"'],
  ['a (b)', 3, OPERATOR, '"(b)"'],
  ['a!b', 2, OPERATOR, '"!b"'],
  ['a! =b', 2, OPERATOR, '"!"'],
  ['a:b', 2, OPERATOR, '":b"'],
  ['a~b', 2, OPERATOR, '"~b"'],
  ['a)', 2, OPERATOR, '")"'],
  ['a=b c', 5, NEXT, '"c"'],
  ['a=b=c', 4, NEXT, '"=c"'],
  ['a===b', 4, NEXT, '"=b"'],
  ['a=!b', 3, NEXT, '"!b"'],
  ['a=(b)', 3, NEXT, '"(b)"'],
  ['a="b"', 3, NEXT, '""b""'],
  ['a=b||c=d', 4, NEXT, '"||c=d"'],
  ['a=b;c', 4, NEXT, '";c"'],
  ['a=b*', 4, NEXT, '"*"'],
  ['a>', 3, NUMBER, 'the end'],
  ['a> ', 4, NUMBER, 'the end'],
  ['a>b', 3, NUMBER, '"b"'],
  ['a < 1.5', 5, NUMBER, '"1.5"'],
  ['a>1e3', 3, NUMBER, '"1e3"'],
  ['a<0x1', 3, NUMBER, '"0x1"'],
  ['a>=1', 3, NUMBER, '"=1"'],
  ['a<,b', 3, NUMBER, '","'],
  ['a>-', 3, NUMBER, '"-"'],
  ['a>1<3', 4, NEXT, '"<3"'],
  ['a in', 5, LIST, 'the end'],
  ['a in b', 6, LIST, '"b"'],
  ['a in, b', 5, LIST, '","'],
  ['a notin', 8, LIST, 'the end'],
  ['a notin b,c', 9, LIST, '"b"'],
  ['a in (', 7, CLOSE, 'the end'],
  ['a in (b', 8, CLOSE, 'the end'],
  ['a in (b,', 9, CLOSE, 'the end'],
  ['a in (b c)', 9, CLOSE, '"c)"'],
  ['a in (b=c)', 8, CLOSE, '"=c)"'],
  ['a in ((b))', 7, CLOSE, '"(b))"'],
  ['a notin (b,"c")', 12, CLOSE, '""c")"'],
  ['a in (b) c', 10, NEXT, '"c"'],
  ['a in (b)c notin (d)', 9, NEXT, '"c"'],
  ['a in (b))', 9, NEXT, '")"'],
  ['-a', 1, NO_KEY],
  ['a_', 1, NO_KEY],
  ['_', 1, NO_KEY],
  ['x,.a=b', 3, NO_KEY],
  ['a=b, c/d/e', 6, NO_KEY],
  ['/a', 1, NO_KEY],
  ['a/', 1, NO_KEY],
  ['Example.com/a', 1, NO_KEY],
  ['example_com/a', 1, NO_KEY],
  ['-example.com/a', 1, NO_KEY],
  ['!-a', 2, NO_KEY],
  [`${'a'.repeat(64)}=b`, 1, NO_KEY],
  [`${'a'.repeat(254)}/b`, 1, NO_KEY],
  ['uses.', 1, UNKNOWN_USE],
  ['uses.namespace=a', 1, UNKNOWN_USE],
  ['uses.clusters', 1, UNKNOWN_USE],
  ['uses.constructor', 1, UNKNOWN_USE],
  ['__proto__', 1, NO_KEY],
  ['x.y, !__proto__', 7, NO_KEY],
  ['a, !uses.Namespaces', 5, UNKNOWN_USE],
]

test('a malformed selector is refused with what was expected, what was found, and where', () => {
  for (const [text, position, message, found] of MALFORMED) {
    const parsed = parseSelector(types, text)
    assert.ok(!parsed.ok, `${JSON.stringify(text)} is taken for a selector`)
    assert.match(parsed.message, message, text)
    assert.ok(
      parsed.message.endsWith(` (at position ${position})`),
      `${JSON.stringify(text)}: ${parsed.message}`,
    )
    if (found) assert.ok(parsed.message.includes(`, found ${found} (at`), `${text}: ${parsed.message}`)
  }
})

test('the longest label keys that a cluster may have can be selected by', () => {
  const key = `${'a'.repeat(63)}.${'b'.repeat(63)}.example.com/${'c'.repeat(63)}`
  assertSelected(cluster({ [key]: '1' }), { [key]: true, [`${key}=1`]: true, [`!${key}`]: false })
})

test('a selector keeps its text as it was written', () => {
  const parsed = parseSelector(types, ' a in ( b ) ')
  assert.ok(parsed.ok)
  assert.equal(parsed.selector.text, ' a in ( b ) ')
})

type Labels = Readonly<Record<string, string>>

interface Requirement {
  /** Words, where a space may stand between any two. */
  readonly words: readonly string[]
  readonly holds: (labels: Labels) => boolean
}

const key = fc.constantFrom('a', 'b', 'in', 'toString', 'example.com/team')
const value = fc.constantFrom<string[]>('', 'x', 'y', 'in', '1', 'x.y-z_1')
const NUMERIC = 'nodes'

const requirement: fc.Arbitrary<Requirement> = fc.oneof(
  key.map((k) => ({ words: [k], holds: (labels: Labels) => Object.hasOwn(labels, k) })),
  key.map((k) => ({ words: ['!', k], holds: (labels: Labels) => !Object.hasOwn(labels, k) })),
  fc.tuple(key, fc.constantFrom('=', '=='), value).map(([k, sign, v]) => ({
    words: [k, sign, v],
    holds: (labels: Labels) => Object.hasOwn(labels, k) && labels[k] === v,
  })),
  fc.tuple(key, value).map(([k, v]) => ({
    words: [k, '!=', v],
    holds: (labels: Labels) => !Object.hasOwn(labels, k) || labels[k] !== v,
  })),
  fc.tuple(key, fc.boolean(), fc.array(value, { minLength: 1, maxLength: 3 })).map(([k, isIn, values]) => ({
    words: [k, isIn ? ' in ' : ' notin ', '(', ...values.flatMap((v, i) => (i > 0 ? [',', v] : [v])), ')'],
    holds: (labels: Labels) => isIn === (Object.hasOwn(labels, k) && values.includes(labels[k] as string)),
  })),
  fc.tuple(fc.constantFrom('<', '>'), fc.integer({ min: -3, max: 3 })).map(([sign, number]) => ({
    words: [NUMERIC, sign, String(number)],
    holds: (labels: Labels) => {
      const text = labels[NUMERIC]
      if (text === undefined || !/^-?\d+$/.test(text)) return false
      return sign === '<' ? Number(text) < number : Number(text) > number
    },
  })),
)

const labelMap = fc
  .tuple(
    fc.dictionary(key, value, { maxKeys: 4, noNullPrototype: true }),
    fc.option(fc.constantFrom('0', '1', '2', '10', 'many', '', '1.5', '0x10', '1e3', 'Infinity')),
  )
  .map(([labels, number]): Labels => (number === null ? labels : { ...labels, [NUMERIC]: number }))

test('a field that a cluster does not have has no value', () => {
  const { environment: _environment, ...without } = cluster()
  assertSelected(without as Document, {
    environment: false,
    'environment=undefined': false,
    'environment!=undefined': true,
    'environment in (undefined,dev)': false,
  })
})

test('any selector selects what all of its requirements say, however it is spaced', () => {
  const space = fc.infiniteStream(fc.constantFrom('', '', ' ', '\t ', '\n'))
  fc.assert(
    fc.property(
      fc.array(requirement, { minLength: 1, maxLength: 4 }),
      labelMap,
      space,
      (requirements, labels, spaces) => {
        const words = requirements.flatMap(({ words }, i) => (i > 0 ? [',', ...words] : words))
        const text = words.map((word) => spaces.next().value + word).join('') + spaces.next().value
        assert.equal(
          selects(text, cluster(labels)),
          requirements.every(({ holds }) => holds(labels)),
          text,
        )
      },
    ),
    { numRuns: 500 },
  )
})

test('no text makes the parser fail otherwise than by saying where', () => {
  const token = fc.constantFrom(...' ,()!=<>', 'in', 'notin', 'a', '-', '/', '.', '1', 'uses.', 'ö', 'id')
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(token, { maxLength: 12 }).map((tokens) => tokens.join('')),
  )
  fc.assert(
    fc.property(text, labelMap, (sent, labels) => {
      const parsed = parseSelector(types, sent)
      if (parsed.ok) return assert.equal(typeof parsed.selector.matches(cluster(labels)), 'boolean')
      const position = Number(/ \(at position (\d+)\)$/.exec(parsed.message)?.[1])
      assert.ok(position >= 1 && position <= sent.length + 1, parsed.message)
    }),
    { numRuns: 500 },
  )
})

/** Of the cluster `one`. */
function reader(row: Partial<StatusRow>, version?: string): StatusReader {
  const known = { contact: 'current', delivery: 'applied', health: 'healthy', ...row } as const
  return {
    rowOf: (id) => (id === 'one' ? known : undefined),
    operatorVersion: (id) => (id === 'one' ? version : undefined),
  }
}

function assertSelectedBy(status: StatusReader, expected: Readonly<Record<string, boolean>>): void {
  for (const [text, isSelected] of Object.entries(expected)) {
    const parsed = parseSelector(types, text, { status })
    assert.ok(parsed.ok, `${text}: ${JSON.stringify(parsed)}`)
    assert.equal(parsed.selector.matches(cluster({ health: 'label' })), isSelected, text)
    assert.deepEqual(parsed.selector.labels, [])
  }
}

test('with a reader of status, clusters are selected by their states', () => {
  assertSelectedBy(reader({ contact: 'offline', health: 'failed' }), {
    'contact=offline': true,
    'contact==current': false,
    'contact!=offline': false,
    'health in (failed,unknown)': true,
    'health notin (failed,unknown)': false,
    'delivery=applied,health=failed': true,
    'delivery=behind,health=failed': false,
    'environment=dev,contact=offline': true,
  })
})

test('versions of the operator are compared by their numbers', () => {
  assertSelectedBy(reader({}, '0.58.1'), {
    'operator_version<0.58': false,
    'operator_version<0.58.2': true,
    'operator_version<0.100': true,
    'operator_version>0.9.9': true,
    'operator_version>0.58': true,
    'operator_version>1': false,
    'operator_version=0.58.1': true,
    'operator_version=v0.58.1': true,
    'operator_version!=0.58.1': false,
    'operator_version in (0.58,0.58.1)': true,
    'operator_version notin (0.58)': true,
    operator_version: true,
    '!operator_version': false,
  })
  assertSelectedBy(reader({}, '0.58.0-rc.1'), {
    'operator_version<0.58': true,
    'operator_version>0.57.9': true,
    'operator_version<0.58.0-rc.2': false,
  })
  assertSelectedBy(reader({}), {
    'operator_version<1': false,
    'operator_version>0': false,
    'operator_version!=1': true,
    '!operator_version': true,
  })
})

function messageOf(text: string, status?: StatusReader): string {
  const parsed = parseSelector(types, text, { status })
  assert.ok(!parsed.ok, text)
  return parsed.message
}

test('a state that there is not is refused, with those there are', () => {
  const known = reader({})
  assert.equal(
    messageOf('contact=ofline', known),
    'holds "ofline", which is unknown: known are refused, offline, never, late, unobserved, current, deleted (at position 9)',
  )
  assert.match(messageOf('health in (failed,ill)', known), /"ill", which is unknown: known are failed,/)
  assert.match(messageOf('operator_version=new', known), /"new", which is not a version/)
  assert.match(messageOf('operator_version<x', known), /expected a version such as 0.58.1, found "x"/)
  for (const text of ['contact', '!health', 'delivery<5', 'environment=dev,health>failed'])
    assert.match(messageOf(text, known), /a state of clusters without a value: use =, !=, in or notin/, text)
})

test('without a reader of status its keys are refused, also where clusters have such labels', () => {
  for (const key of ['contact', 'delivery', 'health', 'operator_version'])
    assert.match(
      messageOf(`environment=dev, ${key}=1`),
      new RegExp(`^holds "${key}": .* only in lists and in previews.* \\(at position 18\\)$`),
    )
})

test('a selector has a maximum length, for it is evaluated for every cluster', () => {
  const ofLength = (length: number) => 'environment=dev'.padEnd(length)
  assert.ok(selects(ofLength(MAX_SELECTOR), cluster()))
  assert.equal(messageOf(ofLength(MAX_SELECTOR + 1)), `is longer than ${MAX_SELECTOR} characters`)
})
