// `npm run simulate` as a process, with a service of its own.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { COMPILED, temporaryFolder } from './service.ts'

const MAIN = join(import.meta.dirname, '../tools/simulate/main.ts')

/** Runs the command; its exit code and what it printed. */
async function run(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const done = promisify(execFile)(process.execPath, [MAIN, ...args], {
    env: { ...process.env, ...COMPILED },
    timeout: 300_000,
  })
  return done.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  )
}

test('fifty clusters install what they get from a service of their own, and its status is true of each', async () => {
  const { code, stdout, stderr } = await run(
    '--clusters',
    '50',
    '--interval',
    '2s',
    '--duration',
    '8s',
    '--install',
    '--check-status',
    '-o',
    'json',
  )
  const summary = JSON.parse(stdout)
  assert.deepEqual({ code, stderr, wrong: summary.wrong }, { code: 0, stderr: '', wrong: [] })
  assert.equal(summary.errors, 0)
  // However slow the machine: every cluster polls each endpoint in the first interval, and reports what it has then.
  assert.equal(summary.compared_answers, 50 * 3)
  assert.ok(summary.polls >= 50 * 3, `${summary.polls} polls`)
  assert.ok(summary.acknowledgements >= 50, `${summary.acknowledgements} acknowledgements`)
  // 20 components and 3 ResourceSets, where the machine is fast enough.
  assert.ok(summary.events >= 50, `${summary.events} events`)
  const { wrong, wrong_statuses, rows, statuses, settled } = summary.status_check
  assert.deepEqual(
    { wrong, wrong_statuses, rows, statuses },
    { wrong: [], wrong_statuses: 0, rows: 50, statuses: 50 },
  )
  assert.ok(settled > 0, 'no cluster was settled')
  assert.ok(summary.server.cpuSeconds > 0)
})

test('a change goes through a whole rollout, and every answer and step is right', async (t) => {
  const strategy = join(temporaryFolder(t), 'strategy.json')
  const waves = [
    { name: 'canary', count: 2, gates: { applied_percent: 100 } },
    { name: 'rest', rest: true, gates: { served_percent: 100 } },
  ]
  writeFileSync(strategy, JSON.stringify({ waves }))
  const options = ['--clusters', '10', '--interval', '1s', '--rollout', 'finish', '--strategy', strategy]
  const { code, stdout, stderr } = await run(...options, '-o', 'json')
  const { wrong, errors, rollout } = JSON.parse(stdout)
  assert.deepEqual({ code, stderr, wrong, errors }, { code: 0, stderr: '', wrong: [], errors: 0 })
  assert.partialDeepStrictEqual(rollout, {
    end: 'finish',
    waves: [
      { name: 'canary', members: 2, opened: 0 },
      { name: 'rest', members: 8 },
    ],
    wrong_steps: [],
  })
  assert.ok(rollout.steps >= 4, `${rollout.steps} steps`)
})

test('bad options are refused, all of them at once', async () => {
  const { code, stderr } = await run('--clusters', 'many', '--interval', 'often', '--url', 'http://127.0.0.1')
  assert.equal(code, 2)
  assert.deepEqual(stderr.trimEnd().split('\n'), [
    'simulate: --url and --token belong together',
    'simulate: --clusters must be a number from 1 to 1000000, not "many"',
    'simulate: --interval must be a duration such as 30s, not "often"',
  ])
  const { stderr: of } = await run('--rollout', 'well', '--url', 'http://127.0.0.1', '--token', 'x')
  assert.deepEqual(of.trimEnd().split('\n'), [
    'simulate: --rollout is for a service that is started here, as it changes the fleet',
    'simulate: --rollout must be finish, abort, amend, not "well"',
  ])
  assert.match((await run('--what')).stderr, /^simulate: Unknown option '--what'/)
})
