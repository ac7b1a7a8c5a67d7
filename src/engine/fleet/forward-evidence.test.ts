import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EVIDENCE_KINDS, type EvidenceKind, isKeyOf } from './evidence-notes.ts'
import { noteOfReport } from './forward-evidence.ts'
import { shiftTimes } from './shift-note.ts'

const DIGEST = '0123456789abcdef'
/** One of each kind, all of whose times are 1,000. */
const VALUES = {
  polls: [DIGEST, 7, 1000, 5, 300, '0.58.1', 'one'],
  reports: [300, { namespaces: [DIGEST, 1000, 7] }, { 1000: { web: DIGEST } }, '0.58.1'],
  refusals: [403, 'other_cluster'],
  failures: [1000, DIGEST, 'UpgradeFailed', 'timed out', { component: 'web' }],
} as const

test('all times of a note move, and nothing else does', () => {
  assert.deepEqual(
    EVIDENCE_KINDS.map((kind) => shiftTimes(kind, VALUES[kind], 500)),
    [
      [DIGEST, 7, 1500, 5, 300, '0.58.1', 'one'],
      [300, { namespaces: [DIGEST, 1500, 7] }, { 1500: { web: DIGEST } }, '0.58.1'],
      [403, 'other_cluster'],
      [1500, DIGEST, 'UpgradeFailed', 'timed out', { component: 'web' }],
    ],
  )
  for (const kind of EVIDENCE_KINDS) {
    assert.deepEqual(shiftTimes(kind, shiftTimes(kind, VALUES[kind], -9_000_000), 9_000_000), VALUES[kind])
    for (const odd of [null, [], ['x'], [{}, [], 'x'], [1, { a: 5 }, { b: 5 }]])
      assert.doesNotThrow(() => shiftTimes(kind, odd, 5))
  }
})

test('an age becomes a time of the clock of whoever takes the report', () => {
  const report = {
    kind: 'failures',
    key: 'one HelmRelease/web',
    age_ms: 2000,
    value: [-3000, '', '', '', {}],
  }
  const note = noteOfReport('failures', report, 10_000)
  assert.deepEqual(
    [note.key, note.time, note.value],
    [report.key, '1970-01-01T00:00:08.000Z', '[7000,"","","",{}]'],
  )
  assert.equal(noteOfReport('failures', { ...report, value: null }, 10_000).value, null)
})

test('a key is of a cluster and, by its kind, of an endpoint or object there', () => {
  const keys = [
    'one',
    'one namespaces',
    'one HelmRelease/web',
    'one HelmRelease/web\n',
    'one ',
    ' x',
    '',
    'a\u0000',
  ]
  const fitting = (kind: EvidenceKind): string[] => keys.filter((key) => isKeyOf(kind, key))
  assert.deepEqual(EVIDENCE_KINDS.map(fitting), [
    ['one namespaces', 'one HelmRelease/web'],
    ['one'],
    ['one'],
    ['one HelmRelease/web'],
  ])
})
