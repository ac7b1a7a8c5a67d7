// Pages have hardly a sentence over 30 words or one of the habits of docs/writing.md.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HABITS } from '../tools/prose/habits.ts'
import { MAX_WORDS, measure, pagesOfProse, readPage, sentencesIn } from '../tools/prose/measure.ts'

/** All pages together: work on several branches meets here, and the next one cleans up. */
const MOST = 10

test('hardly a page has a long sentence or a bad habit', () => {
  const found = pagesOfProse().flatMap((page) => {
    const { long, habits } = measure(readPage(page))
    return [
      ...long.map((sentence) => `${page}: over ${MAX_WORDS} words: ${sentence}`),
      ...habits.map(({ kind, text }) => `${page}: ${kind}: ${text}`),
    ]
  })
  assert.ok(found.length <= MOST, `docs/writing.md says what to write instead:\n${found.join('\n')}`)
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
