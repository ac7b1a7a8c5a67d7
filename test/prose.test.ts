// Long sentences and the habits of docs/writing.md may only become fewer: `PROSE_UPDATE=1` writes down that they have.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { HABITS } from '../tools/prose/habits.ts'
import { MAX_WORDS, measure, pagesOfProse, readPage, sentencesIn } from '../tools/prose/measure.ts'

const BUDGET = join(import.meta.dirname, '../tools/prose/budget.json')

interface Allowed {
  readonly long: number
  readonly habits: number
}

const budget = JSON.parse(readFileSync(BUDGET, 'utf8')) as Record<string, Allowed>

/** Of a page that is new. */
const FIRST: Allowed = { long: 3, habits: 5 }

function allowedOn(page: string): Allowed {
  return budget[page] ?? FIRST
}

function lowered(): Record<string, Allowed> {
  const entries = pagesOfProse().map((page) => {
    const { long, habits } = measure(readPage(page))
    const allowed = allowedOn(page)
    return [
      page,
      { long: Math.min(long.length, allowed.long), habits: Math.min(habits.length, allowed.habits) },
    ] as const
  })
  return Object.fromEntries(entries)
}

test('no page has more long sentences or bad habits than before', () => {
  if (process.env.PROSE_UPDATE === '1') writeFileSync(BUDGET, `${JSON.stringify(lowered(), null, 2)}\n`)
  const over = pagesOfProse().flatMap((page) => {
    const { long, habits } = measure(readPage(page))
    const allowed = allowedOn(page)
    return [
      ...(long.length > allowed.long
        ? [`${page}: over ${MAX_WORDS} words, ${allowed.long} allowed:`, ...long]
        : []),
      ...(habits.length > allowed.habits
        ? [
            `${page}: ${allowed.habits} habits allowed:`,
            ...habits.map(({ kind, text }) => `${kind}: ${text}`),
          ]
        : []),
    ]
  })
  assert.deepEqual(over, [], 'docs/writing.md says what to write instead')
})

test('sentences end where a reader sees them end', () => {
  const text =
    'One. Two `a. B` three!\n\n- item one\n- item two\n\n| a cell | another |\n\n```sh\nnot prose. At all.\n```\n'
  assert.deepEqual(sentencesIn(text), [
    'One.',
    'Two `a. B` three!',
    'item one',
    'item two',
    'a cell',
    'another',
  ])
})

test('every habit finds what it is about', () => {
  const examples: Record<string, string> = {
    'status code as a verb': 'Polls are 503 then.',
    '"Of …:" or "Of …," first': 'Of SQLite, a snapshot is a backup.',
    '"What …" or "Who …" first': 'What is lost is little.',
    '"when nothing is said"': 'It is 5m when nothing is said.',
    'old word': 'It stays for ever.',
    'thing that acts like a person': 'The store is away.',
    'home-made term for a known one': 'It was set back.',
  }
  for (const { name, pattern } of HABITS)
    assert.match(examples[name] ?? '', new RegExp(pattern.source, 'i'), name)
})
