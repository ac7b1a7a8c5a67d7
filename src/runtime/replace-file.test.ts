import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../test/service.ts'
import { moveIntoPlace, replaceFile } from './replace-file.ts'

test('a file is made or replaced, readable by its owner alone', async (t) => {
  const folder = temporaryFolder(t)
  const path = join(folder, 'config')
  await replaceFile(path, 'first')
  assert.equal(readFileSync(path, 'utf8'), 'first')
  writeFileSync(path, 'open to all', { mode: 0o644 })
  await replaceFile(path, (file) => file.writeFile('second'))
  assert.equal(readFileSync(path, 'utf8'), 'second')
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(folder), ['config'])
})

test('its owner may read it, whatever the umask takes away', (t) => {
  const path = join(temporaryFolder(t), 'config')
  const module = join(import.meta.dirname, 'replace-file.ts')
  const code = `import { replaceFile } from ${JSON.stringify(module)}; process.umask(0o777); await replaceFile(${JSON.stringify(path)}, 'text')`
  execFileSync(process.execPath, ['--input-type=module', '--eval', code], { timeout: 20_000 })
  assert.equal(statSync(path).mode & 0o777, 0o600)
})

test('until all is written the old file is there; a failure leaves it, and nothing else', async (t) => {
  const folder = temporaryFolder(t)
  const path = join(folder, 'config')
  writeFileSync(path, 'old')
  const failure = new Error('the disk is full')
  const replacing = replaceFile(path, async (file) => {
    await file.writeFile('half of the n')
    assert.equal(readFileSync(path, 'utf8'), 'old')
    assert.match(readdirSync(folder).join(' '), /config\.[-0-9a-f]{36}\.tmp/)
    throw failure
  })
  await assert.rejects(replacing, failure)
  assert.equal(readFileSync(path, 'utf8'), 'old')
  assert.deepEqual(readdirSync(folder), ['config'])
})

test('a symbolic link is replaced: what it points to stays', async (t) => {
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, 'target'), 'of somebody else')
  symlinkSync('target', join(folder, 'config'))
  await replaceFile(join(folder, 'config'), 'own')
  assert.equal(readFileSync(join(folder, 'target'), 'utf8'), 'of somebody else')
  assert.equal(readFileSync(join(folder, 'config'), 'utf8'), 'own')
})

test('a folder in its place, or none to be in, is an error, and leaves nothing behind', async (t) => {
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, 'config/inside'), { recursive: true })
  await assert.rejects(replaceFile(join(folder, 'config'), 'text'))
  await assert.rejects(replaceFile(join(folder, 'missing/config'), 'text'), { code: 'ENOENT' })
  assert.deepEqual(readdirSync(folder), ['config'])
})

test('a file that is complete moves into the place of another', async (t) => {
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, 'draft'), 'new')
  writeFileSync(join(folder, 'config'), 'old')
  await moveIntoPlace(join(folder, 'draft'), join(folder, 'config'))
  assert.equal(readFileSync(join(folder, 'config'), 'utf8'), 'new')
  assert.deepEqual(readdirSync(folder), ['config'])
})
