import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseIgnored } from './ignored-files.ts'

test('lines are read as those of .gitignore', () => {
  const ignores = parseIgnored(
    [
      '# not ours',
      '',
      'docs/',
      '/top.yaml',
      'values*.yaml',
      'a/**/x.yaml',
      '!values-kept.yaml',
      'one/two',
    ].join('\n'),
  )
  const files: [path: string, ignored: boolean][] = [
    ['top.yaml', true],
    ['below/top.yaml', false],
    ['values.yaml', true],
    ['deep/down/values-old.yaml', true],
    ['values-kept.yaml', false],
    ['deep/values-kept.yaml', false],
    ['a/x.yaml', true],
    ['a/b/c/x.yaml', true],
    ['a/b/y.yaml', false],
    ['docs', false],
    ['one/two', true],
    ['three/one/two', false],
    ['# not ours', false],
  ]
  for (const [path, ignored] of files) assert.equal(ignores(path, false), ignored, path)
  assert.equal(ignores('docs', true), true)
  assert.equal(ignores('deep/docs', true), true)
})

test('the last line that matches decides', () => {
  const ignores = parseIgnored('*.yaml\n!keep.yaml\nkeep.yaml\n')
  assert.equal(ignores('keep.yaml', false), true)
})
