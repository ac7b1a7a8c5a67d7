import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReportOnce } from './report-once.ts'

function start(isNews?: (error: string, last: string) => boolean) {
  const seen: string[] = []
  const reports = new ReportOnce<string>({
    failed: (error) => seen.push(error),
    restored: () => seen.push('restored'),
    ...(isNews && { isNews }),
  })
  return { seen, reports }
}

test('a failure is reported once, and again after a success', () => {
  const { seen, reports } = start()
  reports.succeed()
  for (const error of ['a', 'b', 'c']) reports.fail(error)
  assert.equal(reports.failure, 'c')
  reports.succeed()
  reports.succeed()
  assert.equal(reports.failure, undefined)
  reports.fail('d')
  assert.deepEqual(seen, ['a', 'restored', 'd'])
})

test('a later failure that is news, compared with the one right before it, is reported', () => {
  const { seen, reports } = start((error, last) => error !== last)
  for (const error of ['a', 'a', 'b', 'b', 'a']) reports.fail(error)
  assert.deepEqual(seen, ['a', 'b', 'a'])
})
