import assert from 'node:assert/strict'
import { test } from 'node:test'
import { wrapHelp } from './wrap.ts'

const LONG =
  'The first line of this paragraph is as long as a line of help may be on the wide terminal of its writer,\n'
const HELP = `Usage: program [options]\n\n${LONG}and its second line is short.\n\nExamples:\n  program list\n  program get x\n`

test('paragraphs of help are filled anew on a narrow terminal; short lines stay lines', () => {
  for (const columns of [40, 80]) {
    const lines = wrapHelp({ isTTY: true, columns }, HELP).split('\n')
    assert.ok(lines.every((line) => line.length <= columns))
    const paragraph = lines.slice(2, lines.indexOf('', 2))
    assert.equal(paragraph.join(' '), `${LONG.trimEnd()} and its second line is short.`)
    assert.ok(
      paragraph
        .slice(0, -1)
        .every((line, i) => line.length + 1 + (paragraph[i + 1] ?? '').indexOf(' ') > columns),
      'every line is as full as it can be',
    )
    assert.deepEqual(lines.slice(-4), ['Examples:', '  program list', '  program get x', ''])
  }
})

test('help is left as it is on a wide terminal and in a pipe', () => {
  assert.equal(wrapHelp({ isTTY: true, columns: 200 }, HELP), HELP)
  assert.equal(wrapHelp({ isTTY: false, columns: 80 }, HELP), HELP)
})
