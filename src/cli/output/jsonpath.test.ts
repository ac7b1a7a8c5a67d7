import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Failure } from '../failure.ts'
import { compileJsonpath } from './jsonpath.ts'

const NODE = {
  kind: 'List',
  ready: true,
  nothing: null,
  count: 3,
  share: 1.5,
  empty: [],
  letters: ['a', 'b', 'c', 'd'],
  items: [
    {
      name: 'one',
      size: 4,
      labels: { 'kubernetes.io/hostname': 'host-1', region: 'eu', 'k8s-app': 'dns' },
      status: { ready: true, addresses: [{ type: 'ip', address: '10.0.0.1' }] },
    },
    {
      name: 'two',
      size: 8,
      labels: { 'kubernetes.io/hostname': 'host-2' },
      status: {
        ready: false,
        addresses: [
          { type: 'ip', address: '10.0.0.2' },
          { type: 'dns', address: 'two.example.com' },
        ],
      },
    },
    { name: 'three', size: 6, status: { ready: true, addresses: [] } },
  ],
}

/** Renders all of them at once, so that a failure shows every template that is wrong. */
function renders(expected: Readonly<Record<string, string>>, root: unknown = NODE): void {
  const rendered = Object.keys(expected).map((template) => {
    try {
      return [template, compileJsonpath(template)(root)]
    } catch (error) {
      return [template, String(error)]
    }
  })
  assert.deepEqual(Object.fromEntries(rendered), expected)
}

test('a path leads to a value, and text around it stays', () => {
  renders({
    '{.kind}': 'List',
    '{ .kind }': 'List',
    '{$.kind}': 'List',
    '{@.kind}': 'List',
    'kind={.kind}, first={.items[0].name}!': 'kind=List, first=one!',
    '{.items[0].status.addresses[0].address}': '10.0.0.1',
    "{.items[0]['name']}": 'one',
    '{.items[0]["name"]}': 'one',
    '{.kind}{.kind}': 'ListList',
  })
})

test('a template without braces is one expression', () => {
  renders({ '.kind': 'List', '.items[*].name': 'one two three' })
})

test('several values are joined by spaces', () => {
  renders({
    '{.items[*].name}': 'one two three',
    '{.items[*].status.addresses[*].address}': '10.0.0.1 10.0.0.2 two.example.com',
    '{.items[0].labels.*}': 'host-1 eu dns',
    '{.items[0].labels[*]}': 'host-1 eu dns',
  })
})

test('what is not text is written as JSON', () => {
  renders({
    '{.ready} {.nothing} {.count} {.share} {.empty}': 'true null 3 1.5 []',
    '{.letters}': '["a","b","c","d"]',
    '{.items[0].labels}': '{"kubernetes.io/hostname":"host-1","region":"eu","k8s-app":"dns"}',
  })
  renders({ '{}': '{"id":"a"}', '{@}': '{"id":"a"}', '{$}': '{"id":"a"}' }, { id: 'a' })
})

test('what is missing is nothing, and no failure', () => {
  renders({
    'before-{.nosuch}-after': 'before--after',
    '{.nosuch.deeper[0].still}': '',
    '{.letters[9]}': '',
    '{.kind.length}': '',
    '{.constructor}{.__proto__}{.toString}': '',
    '{range .empty[*]}{.x}{end}': '',
    '{range .nosuch[*]}x{end}': '',
  })
})

test('an index counts from the end when it is negative, and a slice leaves its end out', () => {
  renders({
    '{.letters[0]}': 'a',
    '{.letters[-1]}': 'd',
    '{.letters[-2]}': 'c',
    '{.letters[0:2]}': 'a b',
    '{.letters[:2]}': 'a b',
    '{.letters[2:]}': 'c d',
    '{.letters[-1:]}': 'd',
    '{.letters[-3:-1]}': 'b c',
    '{.letters[::2]}': 'a c',
    '{.letters[1::2]}': 'b d',
    '{.letters[:4:3]}': 'a d',
    '{.items[-1:].name}': 'three',
  })
})

test('several indexes or names in one bracket are a union', () => {
  renders({
    '{.letters[0,2]}': 'a c',
    '{.letters[0, -1]}': 'a d',
    '{.items[0,2].name}': 'one three',
    "{.items[0]['name','size']}": 'one 4',
  })
})

test('a name may hold a slash or a dash, and a dot after a backslash', () => {
  renders({
    '{.items[0].labels.k8s-app}': 'dns',
    "{.items[0].labels['kubernetes.io/hostname']}": 'host-1',
    "{.items[0].labels['kubernetes\\.io/hostname']}": 'host-1',
    '{.items[0].labels.kubernetes\\.io/hostname}': 'host-1',
    '{.items[?(@.labels.kubernetes\\.io/hostname=="host-2")].name}': 'two',
  })
})

test('two dots find a name at any depth, from the top down', () => {
  renders({
    '{..address}': '10.0.0.1 10.0.0.2 two.example.com',
    '{..name}': 'one two three',
    '{.items[1]..type}': 'ip dns',
    '{..nosuch}': '',
    '{.items..addresses[0].address}': '10.0.0.1 10.0.0.2',
  })
})

test('a range repeats its body for every value', () => {
  renders({
    '{range .items[*]}{.name}{"\\n"}{end}': 'one\ntwo\nthree\n',
    '{range .items[*]}[{.name}, {.size}] {end}{.kind}': '[one, 4] [two, 8] [three, 6] List',
    '{range .items[*]}{range .status.addresses[*]}{.address}, {end}{end}':
      '10.0.0.1, 10.0.0.2, two.example.com, ',
    '{range .letters[*]}{@}{"\\t"}{end}': 'a\tb\tc\td\t',
    '{range .items[?(@.size>5)]}{.name}={.size};{end}': 'two=8;three=6;',
    '{ range .letters[0:2] }{@}{ end }!': 'ab!',
  })
  renders({ '{range [*]}{.id}{"\\n"}{end}': 'a\nb\n', '{[*].id}': 'a b' }, [{ id: 'a' }, { id: 'b' }])
})

test('text in quotes is taken as it is, with its escapes', () => {
  renders({
    '{"{"}{.kind}{"}"}': '{List}',
    "{'single'}": 'single',
    '{"a\\tb\\nc"}': 'a\tb\nc',
    '{"say \\"hi\\""}': 'say "hi"',
    "{'it\\'s'}": "it's",
    '{"back\\\\slash"}': 'back\\slash',
    '{"ü漢"}ü漢': 'ü漢ü漢',
  })
})

test('a filter compares, or asks whether something is there', () => {
  renders({
    '{.items[?(@.name=="two")].size}': '8',
    "{.items[?(@.name=='two')].size}": '8',
    '{.items[?( @.name == "two" )].size}': '8',
    '{.items[?(@.size!=4)].name}': 'two three',
    '{.items[?(@.size>=6)].name}': 'two three',
    '{.items[?(@.size<=6)].name}': 'one three',
    '{.items[?(@.size<6)].name}': 'one',
    '{.items[?(@.size>6)].name}': 'two',
    '{.items[?(@.status.ready==true)].name}': 'one three',
    '{.items[?(@..ready==true)].name}': 'one three',
    '{.items[?(@.labels)].name}': 'one two',
    '{.items[?(@.labels.region)].name}': 'one',
    '{.items[?(@.name=="two")].status.addresses[?(@.type=="dns")].address}': 'two.example.com',
    '{.letters[?(@>"b")]}': 'c d',
    '{.items[?("two"==@.name)].size}': '8',
    '{.items[?(@.nosuch=="x")].name}': '',
  })
})

test('an item without the field is in no comparison, not even in an unequal one', () => {
  renders({ '{.items[?(@.labels.region!="us")].name}': 'one', '{.items[?(@.nosuch!="x")].name}': '' })
})

test('a list has no names of its own, and the failure says what to write instead', () => {
  assert.throws(
    () => compileJsonpath('{.items.name}')(NODE),
    (error) => error instanceof Failure && error.exitCode === 2 && error.message.includes('[*].name'),
  )
})

test('a template that cannot be read says where', () => {
  const positions: Record<string, number> = {
    '{.kind': 7,
    '{.kind}{.kind': 14,
    '{.items[x]}': 9,
    '{.items[0}': 10,
    '{.items[?(@.x)}': 14,
    '{.items[?(@.x=)]}': 14,
    '{.items[?(@.size<>4)]}': 18,
    '{kind}': 2,
    '{"open}': 2,
    '{range .items[*]': 17,
  }
  const found = Object.keys(positions).map((template) => {
    try {
      return [template, compileJsonpath(template)(NODE)]
    } catch (error) {
      if (!(error instanceof Failure)) return [template, String(error)]
      assert.equal(error.exitCode, 2)
      return [template, Number(/at position (\d+) of /.exec(error.message)?.[1])]
    }
  })
  assert.deepEqual(Object.fromEntries(found), positions)
})

test('a range and its end belong together', () => {
  const failure = (message: string) => (error: unknown) =>
    error instanceof Failure && error.exitCode === 2 && error.message.includes(message)
  assert.throws(() => compileJsonpath('{range .items[*]}{.name}')(NODE), failure('{range} without {end}'))
  assert.throws(
    () => compileJsonpath('{range .items[*]}{range .x[*]}{end}')(NODE),
    failure('{range} without {end}'),
  )
  assert.throws(() => compileJsonpath('{end}')(NODE), failure('{end} without {range}'))
  assert.throws(() => compileJsonpath('{range .items[*]}{end}{end}')(NODE), failure('{end} without {range}'))
})
