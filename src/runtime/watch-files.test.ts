import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { temporaryFolder } from '../../test/service.ts'
import { watchFiles } from './watch-files.ts'

/** Two files that are watched, in a folder of their own. */
function startWatch(t: TestContext) {
  const folder = temporaryFolder(t)
  const paths = [join(folder, 'one'), join(folder, 'two')] as const
  for (const path of paths) writeFileSync(path, 'first')
  let calls = 0
  const stop = watchFiles(paths, () => {
    calls++
  })
  t.after(stop)
  /** Waits until there were so many calls; answers how many there are a while later. */
  const countCalls = async (expected: number): Promise<number> => {
    for (let tries = 0; tries < 1000 && calls < expected; tries++) await sleep(20)
    await sleep(1200)
    return calls
  }
  return { folder, paths, stop, countCalls }
}

suite('files are seen to change', { concurrency: true }, () => {
  test('when they are written in place, once for all that change together', async (t) => {
    const { paths, countCalls } = startWatch(t)
    for (const path of paths) writeFileSync(path, 'other')
    assert.equal(await countCalls(1), 1)
    writeFileSync(paths[1], 'third')
    assert.equal(await countCalls(2), 2)
  })

  test('when another one takes their place, of the same size and age', async (t) => {
    const { folder, paths, countCalls } = startWatch(t)
    const other = join(folder, 'other')
    writeFileSync(other, 'again')
    for (const path of [other, paths[0]]) utimesSync(path, 1, 1)
    assert.equal(await countCalls(1), 1)
    renameSync(other, paths[0])
    assert.equal(await countCalls(2), 2)
  })

  test('when they vanish, and when they are back', async (t) => {
    const { paths, countCalls } = startWatch(t)
    rmSync(paths[0])
    assert.equal(await countCalls(1), 1)
    writeFileSync(paths[0], 'first')
    assert.equal(await countCalls(2), 2)
  })

  test('when a link on their way is switched to another folder', async (t) => {
    const folder = temporaryFolder(t)
    const link = join(folder, '..data')
    for (const version of ['..1', '..2']) {
      mkdirSync(join(folder, version))
      writeFileSync(join(folder, version, 'tls.crt'), 'same')
    }
    symlinkSync('..1', link)
    symlinkSync('..data/tls.crt', join(folder, 'tls.crt'))
    let calls = 0
    t.after(watchFiles([join(folder, 'tls.crt')], () => calls++))
    symlinkSync('..2', `${link}_tmp`)
    renameSync(`${link}_tmp`, link)
    rmSync(join(folder, '..1'), { recursive: true })
    for (let tries = 0; tries < 1000 && calls === 0; tries++) await sleep(20)
    assert.equal(calls, 1)
  })

  test('never when nothing happens, nor after the watch was stopped', async (t) => {
    const { paths, stop, countCalls } = startWatch(t)
    assert.equal(await countCalls(0), 0)
    writeFileSync(paths[0], 'other')
    stop()
    assert.equal(await countCalls(0), 0)
  })
})

test('a watch does not keep the process alive', () => {
  const module = join(import.meta.dirname, 'watch-files.ts')
  const code = `import { watchFiles } from ${JSON.stringify(module)}; watchFiles([${JSON.stringify(module)}], () => {})`
  execFileSync(process.execPath, ['--input-type=module', '--eval', code], { timeout: 20_000 })
})
