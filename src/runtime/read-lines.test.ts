import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type LineProblem, readLines } from './read-lines.ts'

async function* chunksOf(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function linesOf(text: string, size: number, options: Parameters<typeof readLines>[1] = {}) {
  const lines: string[] = []
  for await (const line of readLines(chunksOf(Buffer.from(text), size), options))
    lines.push(Buffer.from(line).toString())
  return lines
}

const toError = (problem: LineProblem): Error => new Error(problem)

test('lines are the same however the bytes are cut, also within a character', async () => {
  const lines = ['first', '', 'größer 漢字', 'with\u2028other\rends', 'x'.repeat(50)]
  const text = lines.map((line) => `${line}\n`).join('')
  for (const size of [1, 2, 3, 7, 20, 1000]) assert.deepEqual(await linesOf(text, size, { toError }), lines)
  assert.deepEqual(await linesOf('', 1, { toError }), [])
})

test('a last line without an end is an error, or left out where that is no error', async () => {
  for (const size of [1, 100]) {
    await assert.rejects(linesOf('one\ntwo', size, { toError }), /cut_off/)
    assert.deepEqual(await linesOf('one\ntwo', size), ['one'])
  }
})

test('a line that is too long is an error before its end has come', async () => {
  await assert.rejects(linesOf('x'.repeat(100), 10, { maxBytes: 30, toError }), /too_long/)
  await assert.rejects(linesOf('x'.repeat(100), 10, { maxBytes: 30 }), /longer than 30 bytes/)
  assert.deepEqual(await linesOf(`${'x'.repeat(30)}\n`.repeat(3), 10, { maxBytes: 30, toError }), [
    'x'.repeat(30),
    'x'.repeat(30),
    'x'.repeat(30),
  ])
})
