import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { renderTable } from './table.ts'
import { cut, isInteractive, painter, plain, type Terminal, widthOf } from './terminal.ts'

const HEADERS = ['ID', 'DNS', 'ENVIRONMENT']
const ROWS = [
  ['one', 'one.k8s.example.com', 'dev'],
  ['a-longer-id', 'x', 'prod'],
]

function linesOf(table: string): string[] {
  assert.ok(table === '' || table.endsWith('\n'), 'the last line is ended too')
  return table.split('\n').slice(0, -1)
}

test('columns are as wide as their widest cell, two spaces apart, and nothing trails', () => {
  assert.equal(
    renderTable(HEADERS, ROWS),
    [
      'ID           DNS                  ENVIRONMENT',
      'one          one.k8s.example.com  dev',
      'a-longer-id  x                    prod',
      '',
    ].join('\n'),
  )
})

test('without headers the columns are only as wide as what is in them', () => {
  assert.equal(renderTable(['IDENTIFIER', 'B'], [['x', 'y']], { headers: false }), 'x  y\n')
})

test('a table of nothing is its headers, and nothing at all without them', () => {
  assert.equal(renderTable(HEADERS, []), 'ID  DNS  ENVIRONMENT\n')
  assert.equal(renderTable(HEADERS, [], { headers: false }), '')
})

test('empty cells, and rows that are too short, leave their column free', () => {
  assert.equal(
    renderTable(['A', 'B', 'C'], [['1', '', '3'], ['1'], ['', '2', '']]),
    ['A  B  C', '1     3', '1', '   2', ''].join('\n'),
  )
})

test('wide characters take two columns, and what they combine with none', () => {
  assert.equal(
    renderTable(
      ['A', 'B'],
      [
        ['漢字', 'x'],
        ['é', 'x'],
        ['👩‍👩‍👧', 'x'],
        ['abcd', 'x'],
      ],
    ),
    ['A     B', '漢字  x', 'é     x', '👩‍👩‍👧    x', 'abcd  x', ''].join('\n'),
  )
})

test('a table that fits the terminal is left as it is', () => {
  const natural = renderTable(HEADERS, ROWS)
  const width = Math.max(...linesOf(natural).map(widthOf))
  assert.equal(renderTable(HEADERS, ROWS, { width }), natural)
  assert.ok(renderTable(HEADERS, ROWS, { width: width - 1 }).includes('…'))
})

test('the widest columns give way first', () => {
  const table = renderTable(['ID', 'LONG'], [['short-id', 'x'.repeat(100)]], { width: 30 })
  assert.deepEqual(linesOf(table), ['ID        LONG', `short-id  ${'x'.repeat(19)}…`])
})

test('when no column can give way any more, the last ones go and the first stays', () => {
  const headers = Array.from({ length: 10 }, (_, i) => `COLUMN-${i}`)
  const row = headers.map((_, i) => `value-of-${i}`)
  const lines = linesOf(renderTable(headers, [row], { width: 20 }))
  assert.ok(lines[0]?.startsWith('COLUM'))
  assert.ok(!lines.join().includes('9'))
  assert.ok(lines.every((line) => widthOf(line) <= 20))
})

const cells = fc.string({ unit: 'grapheme', maxLength: 40 }).map(plain)

test('no line is ever wider than the terminal', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 6 }).chain((columns) => {
        const row = fc.array(cells, { minLength: columns, maxLength: columns })
        return fc.record({ headers: row, rows: fc.array(row, { maxLength: 5 }) })
      }),
      fc.integer({ min: 1, max: 120 }),
      ({ headers, rows }, width) => {
        const lines = linesOf(renderTable(headers, rows, { width }))
        assert.equal(lines.length, rows.length + 1)
        for (const line of lines) assert.ok(widthOf(line) <= width, `${widthOf(line)} > ${width}: ${line}`)
      },
    ),
    { numRuns: 300 },
  )
})

test('cells of one column start at the same place', () => {
  const words = fc.string({ unit: fc.constantFrom('a', 'é', '漢', '🙂'), minLength: 1, maxLength: 12 })
  fc.assert(
    fc.property(fc.array(words, { minLength: 1, maxLength: 8 }), (firsts) => {
      const lines = linesOf(
        renderTable(
          ['FIRST', '|'],
          firsts.map((first) => [first, '|']),
        ),
      )
      const places = lines.map((line) => widthOf(line.slice(0, line.indexOf('|'))))
      assert.deepEqual(new Set(places).size, 1)
    }),
    { numRuns: 200 },
  )
})

test('a width counts columns on the screen, not characters', () => {
  const widths: Record<string, number> = {
    '': 0,
    abc: 3,
    naïve: 5,
    'e\u0301': 1,
    漢字: 4,
    Ａ: 2,
    ｱ: 1,
    한글: 4,
    '🙂': 2,
    '👩‍👩‍👧': 2,
    '🇩🇪': 2,
    '…': 1,
    '→': 1,
  }
  assert.deepEqual(Object.fromEntries(Object.keys(widths).map((text) => [text, widthOf(text)])), widths)
})

test('a text that is too long is cut and says so', () => {
  const cuts: [text: string, width: number, cut: string][] = [
    ['abcdef', 6, 'abcdef'],
    ['abcdef', 5, 'abcd…'],
    ['abcdef', 1, '…'],
    ['abcdef', 0, ''],
    ['', 0, ''],
    ['漢字漢字', 8, '漢字漢字'],
    ['漢字漢字', 7, '漢字漢…'],
    // Half of a wide character cannot be shown.
    ['漢字漢字', 6, '漢字…'],
    ['e\u0301e\u0301e\u0301', 2, 'e\u0301…'],
    ['👩‍👩‍👧👩‍👩‍👧', 3, '👩‍👩‍👧…'],
  ]
  assert.deepEqual(
    cuts.map(([text, width]) => cut(text, width)),
    cuts.map(([, , expected]) => expected),
  )
})

test('a cut text is never wider than asked for, and the beginning of what it was', () => {
  fc.assert(
    fc.property(cells, fc.nat({ max: 50 }), (text, width) => {
      const kept = cut(text, width)
      assert.ok(widthOf(kept) <= width)
      assert.ok(text.startsWith(kept.replace(/…$/u, '')))
    }),
    { numRuns: 500 },
  )
})

test('what would move the cursor, colour or reorder a line is written out', () => {
  const written: Record<string, string> = {
    'two\nlines': 'two\\nlines',
    'a\tb': 'a\\tb',
    'a\rb': 'a\\u000db',
    '\u001b[31mred': '\\u001b[31mred',
    '\u001b]0;title\u0007': '\\u001b]0;title\\u0007',
    '\u009b31m': '\\u009b31m',
    '\u0000\u0008\u007f': '\\u0000\\u0008\\u007f',
    '\u202egnp.exe': '\\u202egnp.exe',
    '\u2066x\u2069': '\\u2066x\\u2069',
    'plain – naïve 漢字 🙂 "\\"': 'plain – naïve 漢字 🙂 "\\"',
  }
  assert.deepEqual(Object.fromEntries(Object.keys(written).map((text) => [text, plain(text)])), written)
})

/** Where all that is dangerous is found. */
const early = fc.nat({ max: 0x2070 }).map((code) => String.fromCharCode(code))

test('nothing that a terminal acts upon is left in any text', () => {
  fc.assert(
    fc.property(fc.string({ unit: early }), (text) => {
      assert.ok(!/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u.test(plain(text)))
    }),
    { numRuns: 500 },
  )
})

/** A terminal with nothing behind it. */
function terminal(isTTY: boolean, env: Record<string, string> = {}): Terminal {
  return { env, stdin: { isTTY }, stdout: { isTTY }, stderr: { isTTY } } as unknown as Terminal
}

test('colours are for terminals that show them, unless NO_COLOR says otherwise', () => {
  const red = (given: Terminal): string => painter(given, given.stdout)('red', 'text')
  assert.equal(red(terminal(true, { TERM: 'xterm' })), '\u001b[31mtext\u001b[39m')
  assert.equal(red(terminal(true, { TERM: 'xterm', NO_COLOR: '' })), '\u001b[31mtext\u001b[39m')
  assert.equal(red(terminal(true, { TERM: 'xterm', NO_COLOR: '1' })), 'text')
  assert.equal(red(terminal(true, { TERM: 'dumb' })), 'text')
  assert.equal(red(terminal(false, { TERM: 'xterm' })), 'text')
})

test('input and messages are both on a terminal, or else nobody is there; a dumb one is one, too', () => {
  assert.ok(isInteractive(terminal(true, { TERM: 'xterm' })))
  assert.ok(isInteractive(terminal(true, { TERM: 'dumb' })))
  assert.ok(!isInteractive(terminal(false)))
  const half = { ...terminal(true), stdin: { isTTY: false } } as unknown as Terminal
  assert.ok(!isInteractive(half))
})
