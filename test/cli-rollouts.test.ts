// Staged rollouts on the command line: previews, starts, what people do to them, and following them to their end.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, type TestContext, test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { asRollout } from '../src/domain/rollouts/rollout.ts'
import { CLI, cli, cliEnv, onTerminal, outcomesOf } from './cli-process.ts'
import { fleetOf, ReportingCluster } from './reporting-clusters.ts'
import { startUnheld, type TestService, waitFor } from './service.ts'

const { succeed, fail } = outcomesOf(cli)
const PARALLEL = { concurrency: 4 }
const PROGRAM = 'flux-resourceset-cli'

interface Fleet {
  readonly service: TestService
  readonly url: string
  cluster(id: string): ReportingCluster
  /** Clusters poll and report until a rollout is in a state. */
  drive(rollout: string, state: string, ids?: readonly string[]): Promise<void>
  run(line: string): ReturnType<typeof cli>
  /** What runs well prints. */
  print(line: string): Promise<string>
}

/** A service that takes the steps of rollouts, and three clusters that poll: one of them in dev. */
async function start(t: TestContext): Promise<Fleet> {
  const fleet = fleetOf({ alpha: {}, beta: { environment: 'prod' }, gamma: { environment: 'prod' } })
  const service = await startUnheld(t, { fleet, controlsRollouts: true })
  const { url } = service
  const ids = ['alpha', 'beta', 'gamma']
  const clusters = new Map(ids.map((id) => [id, new ReportingCluster(service, id)]))
  const cluster = (id: string): ReportingCluster => clusters.get(id) ?? assert.fail(id)
  for (const id of ids) await cluster(id).settle()
  return {
    service,
    url,
    cluster,
    drive: (rollout, state, moving = ids) =>
      waitFor(`${rollout} to be ${state}`, async () => {
        for (const id of moving) await cluster(id).settle()
        return (await service.call('GET', `/rollouts/${rollout}`)).body.state === state
      }),
    run: (line) => cli(wordsOf(line), { url }),
    print: async (line) => (await succeed(wordsOf(line), { url })).stdout,
  }
}

function plain(screen: string): string {
  return stripVTControlCharacters(screen)
}

/** The words of a line, where quotes hold spaces. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')
}

const CHANGE = 'component update a --set oci_tag=v2.0.0'
const WAVES = `--rollout-wave 'dev: environment=dev' --rollout-wave rest`

describe('a change with a rollout', PARALLEL, () => {
  test('is previewed with the members of its waves and what their gates come to', async (t) => {
    const { print, service } = await start(t)
    const preview = await print(
      `${CHANGE} --rollout-wave 'dev: environment in (dev,qa),environment!=x; soak=10m' --rollout-wave 'half: 50%; failures=50%; approve-before=1' --rollout-wave 'none: environment=nowhere' --dry-run`,
    )
    assert.match(preview, /^3 clusters receive something else: dev 1, prod 2 /m)
    assert.match(
      preview,
      /^Wave by wave\nWAVE +CLUSTERS +AWAY +PASSES WITH +WHO\ndev +1 +0 +1\/1 applied, 0 failed, soak 10m +alpha\n/m,
    )
    assert.match(preview, /^half +1 +0 +1\/1 applied, 0 failed, 1 approval before +(?:beta|gamma)$/m)
    assert.match(preview, /^none +0 +0 +skipped$/m)
    assert.match(preview, /^rest +1 +0 +1\/1 applied, 0 failed +(?:beta|gamma)$/m)
    assert.match(preview, /^Takes at least \d+m, where nothing fails\.$/m)
    assert.match(preview, /^Plan: sha256:/m)
    const json = JSON.parse(await print(`${CHANGE} ${WAVES} --dry-run -o json`))
    assert.deepEqual(
      json.waves.map(({ name, members, details }: Record<string, unknown>) => [name, members, details]),
      [
        ['dev', 1, ['alpha']],
        ['rest', 2, json.waves[1].details],
      ],
    )
    assert.equal(service.engine.state.revision, 1, 'a preview stores nothing')
    assert.equal(await print('rollout list'), '')
  })

  test('says what it has started, and is there in lists, short and whole', async (t) => {
    const { run, print } = await start(t)
    const started = await run(`${CHANGE} ${WAVES} -m 'A 2' --yes`)
    assert.equal(
      started.stdout,
      'rollout r2 is running: 3 clusters in 2 waves, dev is open for 1 of 1 (revision 2)\n',
    )
    assert.equal(started.stderr, `to follow it: ${PROGRAM} rollout watch r2\n`)
    const [head, row] = (await print('rollout list')).split('\n')
    assert.match(head ?? '', /^ID +STATE +WAVE +CLUSTERS +FAILED +AGE +BY +CHANGE$/)
    assert.match(row ?? '', /^r2 +running +dev \(1 of 2\) +1\/3 +0 +\d+s +writer +A 2$/)
    assert.match(await print('rollout list -o wide'), /have not applied it yet: alpha/)
    assert.equal(await print('rollout list --state running -o name'), 'rollouts/r2\n')
    assert.equal(await print('rollout list --state aborted -o name'), '')

    const status = await print('rollout status')
    assert.match(
      status,
      /^rollout r2 is running, started .* ago, on 0 of 3 clusters: A 2\nWaiting: 1 of 1 clusters/,
    )
    assert.match(status, /^dev +open +1 +1 +0 +0 +0 +0 +0 +0\/1 applied/m)
    assert.match(status, /^rest +waiting +2 +0 /m)
    for (const name of ['r2', 'rollouts/r2', 'last'])
      assert.equal(await print(`rollout status ${name} -o jsonpath={.state}`), 'running')

    const all = await print('rollout describe')
    assert.match(all, /^Change: +patch platform_components\/a$/m)
    assert.match(all, /^Strategy: +waves of its own$/m)
    assert.match(all, /^Started: .* by writer /m)
    assert.match(all, /^\d+s +writer +started +A 2$/m)
    assert.match(all, /^\d+s +rollout\/r2 +wave dev: opened 1 of 1$/m)
    assert.equal(JSON.parse(await print('rollout describe r2 -o json')).id, 'r2')
    assert.equal(await print('rollout describe r2 -o name'), 'rollouts/r2\n')
  })

  test('prints the API’s answer as JSON, and the rollout as name', async (t) => {
    const { print } = await start(t)
    const json = JSON.parse(await print(`${CHANGE} ${WAVES} --yes -o json`))
    assert.deepEqual([json.rollout.id, json.revision], ['r2', 2])
    await print('rollout abort r2 --yes')
    assert.equal(await print(`${CHANGE} ${WAVES} --yes -o name`), 'rollouts/r4\n')
  })

  for (const [what, line] of [
    ['a new definition that is assigned', 'namespace create team-x --cluster alpha,beta'],
    ['values of clusters', 'component patch a -l id --set x=1'],
    ['an assignment', 'component assign b -l id'],
    ['a removal', 'component unassign a --cluster alpha --confirm removals'],
    ['fields of clusters', 'cluster update -l id --set patches.a.x=1'],
    ['a place in a list', 'cluster update alpha --set platform_components[0].oci_tag=v4'],
    ['a definition that goes', 'component delete a --cascade --confirm removals'],
  ] as const)
    test(`may be ${what}`, async (t) => {
      const { print, service } = await start(t)
      const before = await service.call('GET', '/clusters/alpha/inputs/platform-components')
      assert.match(
        await print(`${line} --rollout-wave 'one: 1; approve-before=1' --yes`),
        /^rollout r2 is pending: /,
      )
      assert.match(await print('rollout abort r2 --yes'), /^rollout r2 aborted \(revision \d+\)\n$/)
      const after = await service.call('GET', '/clusters/alpha/inputs/platform-components')
      assert.deepEqual(after.body.inputs, before.body.inputs)
    })

  test('may be a file of operations, a set of files, a revert or a rollback', async (t) => {
    const { print, url } = await start(t)
    const staged = async (args: readonly string[], input?: string): Promise<void> => {
      const { stdout } = await succeed([...args, '--rollout-wave', 'rest', '--yes'], {
        url,
        ...(input !== undefined && { input }),
      })
      const [, id] =
        /^rollout (r\d+) is running: 3 clusters in 1 wave, rest is open for 3 of 3/.exec(stdout) ?? []
      await print(`rollout abort ${id ?? assert.fail(stdout)} --yes`)
    }
    const patch = { op: 'patch', type: 'platform_components', id: 'a', patch: { oci_tag: 'v3' } }
    await staged(['batch', '-f', '-'], JSON.stringify([patch]))
    await staged(
      ['apply', '-f', '-'],
      JSON.stringify({ type: 'platform_components', id: 'a', oci_tag: 'v3' }),
    )
    await print(`${CHANGE} --yes`)
    const last = Number(await print('status -o jsonpath={.revision}'))
    await staged(['revert', String(last)])
    await staged(['rollback', '--to', '1'])
  })

  test('of a set holds the set until its end; applied after that, the files change nothing', async (t) => {
    const { run, print, url, drive, service } = await start(t)
    const input = JSON.stringify({ type: 'platform_components', id: 'a', oci_tag: 'v3' })
    const apply = (...flags: string[]) => cli(['apply', '-f', '-', '--name', 'set', ...flags], { url, input })
    const staged = await apply('--rollout-wave', 'rest', '--yes')
    assert.match(staged.stdout, /^rollout r2 is running/)
    const held = await apply('--yes')
    assert.equal(held.code, 1)
    assert.match(held.stderr, /rollout r2 is changing /)
    assert.match(held.stderr, /apply -f - --name set --yes --amend r2/)
    const shown = await apply('--dry-run')
    assert.match(shown.stdout, /^Warning: needs --bypass: rollout r2 is changing/m)
    await drive('r2', 'finished')
    const { revision } = service.engine.state
    assert.equal((await apply('--yes')).stdout, 'nothing to change\n')
    assert.equal(service.engine.state.revision, revision)
    assert.match(await print('applied-set get set -o yaml'), /platform_components/)
    assert.equal((await run('component get a -o jsonpath={.oci_tag}')).stdout, 'v3')
  })

  test('takes a strategy by name, and what else it says in place of the strategy’s own', async (t) => {
    const { print, run, service } = await start(t)
    await print(`strategy create mine --wave 'dev: environment=dev; approve-before=1' --wave rest --bake 1h`)
    const started = await print(`${CHANGE} --rollout mine --on-failure abort --yes -o json`)
    assert.equal(JSON.parse(started).rollout.strategy, 'mine')
    const kept = service.engine.state.get('rollouts', 'r3')
    const { on_failure, bake_s } = asRollout(kept ?? assert.fail('r3')).spec
    assert.deepEqual([on_failure, bake_s], ['abort', 3600])
    const unknown = await run(`${CHANGE} --rollout nine --yes`)
    assert.equal(unknown.code, 1)
    assert.match(unknown.stderr, /^Error: --rollout names no strategy "nine"/)
  })

  test('shows the strategy that is built in, until one of its name is there', async (t) => {
    const { print } = await start(t)
    assert.match(
      await print('strategy list'),
      /^default +dev > qa > uat > canary > 10-percent > 50-percent > rest /m,
    )
    const described = await print('strategy describe default')
    assert.match(
      described,
      /^canary +1 cluster of the rest +100% applied, 100% healthy, 0 failed, soak 10m$/m,
    )
    await print(
      `strategy create default --wave 'all: 100%; failures=3; window=0 6 * * * for 2h in Europe/Vienna'`,
    )
    assert.match(await print('strategy list'), /^ID .*\ndefault +all +pause\n$/)
    assert.match(
      await print('strategy describe default'),
      /^all +up to 100% of the rest +100% applied, at most 3 failed, only at 0 6 \* \* \* \(Europe\/Vienna\) for 2h$/m,
    )
  })

  test('is previewed with who is away, and why', async (t) => {
    const { print } = await start(t)
    await print('hold create alpha --reason audit --yes')
    const preview = await print(`${CHANGE} ${WAVES} --dry-run`)
    assert.match(preview, /^dev +1 +1 +1\/1 applied, 0 failed +alpha\nrest .*\nAway in dev: alpha \(held\)$/m)
    assert.match(preview, /^Warning: wave "dev" does not pass before one of its clusters answers/m)
  })

  test('of clusters by a selector, a hold is one revision, and so is their release', async (t) => {
    const { print, url } = await start(t)
    const done = await print('hold create -l environment=dev --for 2h --reason audit --yes')
    assert.match(done, /^hold \(environment=dev\): .*\(revision 2\)/)
    assert.equal(await print('hold list -o name'), 'clusters/alpha\n')
    assert.match(await print('hold release -l environment=dev --yes'), /\(revision 3\)/)
    assert.equal(await print('hold list -o name'), '')
    for (const line of ['hold create --reason x', 'hold release alpha -l environment=dev'])
      await fail(2, 'which clusters? Give an id or --selector, not both', wordsOf(line), { url })
  })

  test('names the wave of the command line where a wave is wrong', async (t) => {
    const { url } = await start(t)
    const wrong = (wave: string) => [
      ...wordsOf(CHANGE),
      '--rollout-wave',
      wave,
      '--rollout-wave',
      'rest',
      '--yes',
    ]
    await fail(
      1,
      'wave "x" of --rollout-wave: clusters/0 names no live cluster: "nobody"',
      wrong('x; clusters=nobody'),
      { url },
    )
    await fail(1, 'wave "x" of --rollout-wave: selector is not a selector', wrong('x: a=(b'), { url })
    await fail(2, '--rollout-wave must be like', wrong('environment=dev,applied=100'), { url })
    assert.equal((await cli(['status', '-o', 'jsonpath={.revision}'], { url })).stdout, '1')
  })

  test('is refused where its flags do not go together, before anything is sent', async () => {
    const url = 'http://127.0.0.1:9'
    const cases: [string, string][] = [
      [
        '--rollout default --rollout-wave rest',
        'give --rollout, with the name of a strategy, or --rollout-wave',
      ],
      ['--bake 1h', '--bake goes with --rollout STRATEGY'],
      ['--on-failure abort', '--on-failure goes with --rollout STRATEGY'],
      ['--supersede r2', '--supersede goes with --rollout STRATEGY'],
      ['--rollout default --supersede r2 --amend r3', 'give --amend to change the rollout, or --supersede'],
      ['--restart-waves', '--restart-waves goes with --amend ROLLOUT'],
      ['--bypass', '--bypass needs -m'],
      ['--rollout default --bake soon', '--bake must be like 10m or 1h30m, not "soon"'],
      ['--rollout default --on-failure explode', 'Allowed choices are pause, abort'],
    ]
    for (const [flags, says] of cases)
      await fail(2, says, wordsOf(`component patch a --set x=1 -l id ${flags}`), { url })
    await fail(2, '--amend takes a change of documents', wordsOf('revert 1 --amend r2 --yes'), { url })
    const both = JSON.stringify({ operations: [], rollout: { strategy: 'default' } })
    await fail(2, 'the file has a rollout of its own', wordsOf('batch -f - --rollout default --yes'), {
      url,
      input: both,
    })
    await fail(2, "unknown option '--rollout'", wordsOf('cluster restore alpha --rollout default'), { url })
  })
})

describe('a write that a rollout holds back', PARALLEL, () => {
  test('names the ways through as commands that can be typed, and they work', async (t) => {
    const { print, run } = await start(t)
    await print(`${CHANGE} ${WAVES} --yes`)
    const again = 'component update a --set oci_tag=v3.0.0'
    const { code, stderr } = await run(`${again} --yes`)
    assert.equal(code, 1)
    assert.match(stderr, /^Error: rollout r2 is changing \/platform_components\/a\/oci_tag/)
    const commands = [...stderr.matchAll(/^ {2}flux-resourceset-cli (.*?) {2}# /gm)].map(
      ([, command]) => command,
    )
    assert.deepEqual(commands, [
      'rollout watch r2',
      `${again} --yes --amend r2`,
      `${again} --yes --rollout default --supersede r2`,
      'rollout abort r2',
      `${again} --yes --bypass -m 'why'`,
    ])
    assert.match(await print(commands[2] ?? ''), /^rollout r3 is running: 3 clusters in /)
    assert.equal(await print('rollout status r2 -o jsonpath={.state}'), 'aborted')
  })

  test('is refused before anybody is asked, on a terminal too', async (t) => {
    const { print, url } = await start(t)
    await print(`${CHANGE} ${WAVES} --yes`)
    const args = wordsOf('component update a --set oci_tag=v3.0.0')
    const { code, screen } = await onTerminal(args, { url, columns: 200 })
    assert.equal(code, 1)
    assert.match(plain(screen), /^Error: rollout r2 is changing/)
    assert.doesNotMatch(screen, /to go on/)
  })
})

describe('a rollout', PARALLEL, () => {
  test('is paused, resumed, approved, skipped and taken back, each with what was done', async (t) => {
    const { print, service } = await start(t)
    await print(
      `${CHANGE} --rollout-wave 'dev: environment=dev' --rollout-wave 'rest; approve-before=1' --yes`,
    )
    assert.match(await print(`rollout pause r2 -m 'look first'`), /^rollout r2 paused \(revision 3\)\n$/)
    assert.match(await print('rollout status r2'), /^Paused: look first$/m)
    assert.match(await print('rollout resume r2 --dry-run'), /^no cluster receives anything else\nPlan: /)
    assert.equal(await print('rollout resume r2 -o name'), 'rollouts/r2\n')
    assert.match(await print(`rollout approve r2 --wave rest --before -m ok`), /^rollout r2 approved/)
    assert.match(await print('rollout describe r2'), /^rest +before +writer +\d+s +ok$/m)
    assert.match(await print('rollout skip r2 --cluster alpha'), /^rollout r2 goes on without them/)
    assert.match(await print('rollout describe r2'), /^Left out\nalpha$/m)
    assert.match(await print('rollout retry r2'), /^rollout r2 goes on /)
    assert.match(await print('rollout skip r2 --wave rest'), /^rollout r2 goes on without them/)
    await waitFor(
      'r2 to end',
      async () => (await service.call('GET', '/rollouts/r2')).body.state === 'finished',
    )
  })

  test('refuses what makes no sense, with what there is', async (t) => {
    const { print, url } = await start(t)
    await fail(4, 'no rollout is under way', ['rollout', 'status'], { url })
    await fail(4, 'there is no rollout yet', ['rollout', 'abort', 'last'], { url })
    await fail(1, 'no rollout "r9"', ['rollout', 'pause', 'r9'], { url })
    await print(`component patch a --cluster beta --set x=1 --rollout-wave 'w: 1; approve-before=1' --yes`)
    await print(`component patch a --cluster gamma --set y=1 --rollout-wave 'w: 1; approve-before=1' --yes`)
    await fail(2, 'which rollout? There are r3, r2: give its id', ['rollout', 'watch'], { url })
    await fail(2, 'what is to be left out?', ['rollout', 'skip', 'r2'], { url })
    await fail(
      1,
      'the approval is about another plan',
      wordsOf(`rollout approve r2 --of sha256:${'0'.repeat(64)}`),
      { url },
    )
    await fail(1, 'names no wave: "x"', ['rollout', 'skip', 'r2', '--wave', 'x'], { url })
    await fail(1, 'there is nothing to resume', ['rollout', 'resume', 'r2'], { url })
    await fail(
      2,
      "option '--before' cannot be used with option '--after'",
      wordsOf('rollout approve r2 --before --after'),
      { url },
    )
    await fail(2, "unknown option '--confirm'", wordsOf('rollout abort r2 --confirm everything'), { url })
    await print('rollout abort r2')
    await fail(1, 'it cannot be changed any more', ['rollout', 'pause', 'r2'], { url })
    await fail(2, "unknown command 'stop'", ['rollout', 'stop', 'r2'], { url })
  })

  test('that is served to several clusters is taken back only after a question, or with --yes', async (t) => {
    const { print, url, run } = await start(t)
    await print(`${CHANGE} --rollout-wave rest --yes`)
    const refused = await run('rollout abort r2')
    assert.equal(refused.code, 2)
    assert.match(
      refused.stderr,
      /this would abort rollout r2: change 3 clusters.*, and there is no terminal to ask on/,
    )
    const no = await onTerminal(['rollout', 'abort', 'r2'], { url, typing: [['to go on: ', 'no\r']] })
    assert.equal(no.code, 4)
    assert.match(plain(no.screen), /Abort rollout r2: change 3 clusters.*\?\sType "yes" to go on: no/)
    assert.doesNotMatch(no.screen, /rollout_plans/, 'bookkeeping is left out')
    assert.equal(
      await print('rollout abort r2 --yes'),
      'rollout r2 aborted: 3 clusters go back to what they had, at the next poll (revision 3)\n',
    )
  })

  test('is asked about with its waves and the number of its clusters', async (t) => {
    const { url } = await start(t)
    const { code, screen } = await onTerminal([...wordsOf(CHANGE), ...wordsOf(WAVES)], {
      url,
      typing: [['to go on: ', 'yes\r']],
    })
    assert.equal(code, 0, screen)
    assert.match(screen, /^dev +1 +0 +1\/1 applied, 0 failed +alpha$/m)
    assert.match(plain(screen), /Change 3 clusters in 2 waves.*\?\sType "yes" to go on: yes$/m)
    assert.match(plain(screen), /^rollout r2 is running: /m)
    for (const line of screen.split('\n'))
      if (/^(?:WAVE|dev|rest) /.test(line)) assert.ok(line.length <= 80, line)
  })
})

interface Following {
  readonly child: ChildProcess
  readonly closed: Promise<unknown[]>
  stdout(): string
  stderr(): string
}

/** Runs a line as a process that goes on. */
function follow(t: TestContext, url: string, line: string): Following {
  const child = spawn(process.execPath, [CLI, ...wordsOf(line)], { env: cliEnv({ url }), detached: true })
  t.after(() => child.kill('SIGKILL'))
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => {
    output.stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    output.stderr += chunk
  })
  return { child, closed: once(child, 'close'), stdout: () => output.stdout, stderr: () => output.stderr }
}

describe('following a rollout', PARALLEL, () => {
  test('prints a line for every change on a pipe, and ends well when it is finished', async (t) => {
    const { print, url, drive } = await start(t)
    await print(`${CHANGE} ${WAVES} -m 'A 2' --yes`)
    const watch = follow(t, url, 'rollout watch')
    await waitFor('the first lines', () => watch.stdout().includes('dev: 1 of 1 open, 0 served'))
    await drive('r2', 'finished')
    assert.deepEqual(await watch.closed, [0, null], watch.stderr())
    const lines = watch.stdout().trimEnd().split('\n')
    for (const line of lines) assert.match(line, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ {2}\S/)
    const told = lines.map((line) => line.slice(22))
    assert.equal(told[0], 'writer: started: A 2')
    assert.ok(told.includes('rollout/r2: wave dev: passed'))
    assert.ok(told.includes('rollout/r2: wave rest: opened 2 of 2'))
    assert.equal(told.filter((line) => line === 'rollout/r2: wave dev: opened 1 of 1').length, 1)
    assert.match(told.at(-1) ?? '', /: finished$/)
    assert.match(watch.stderr(), /^rollout r2 finished after \d+s: 3 clusters in 2 waves$/m)
    const ended = await cli(['rollout', 'watch', 'r2'], { url })
    assert.equal(ended.code, 0, 'one that has finished is at its end already')
  })

  test('is JSON on each line where that is asked for', async (t) => {
    const { print, url, drive } = await start(t)
    await print(`${CHANGE} --rollout-wave rest --yes`)
    const watch = follow(t, url, 'rollout watch r2 -o json')
    await drive('r2', 'finished')
    assert.deepEqual(await watch.closed, [0, null], watch.stderr())
    const states = watch
      .stdout()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).state)
    assert.equal(states.at(-1), 'finished')
    assert.equal(new Set(watch.stdout().split('\n')).size, states.length + 1, 'no line twice')
    await fail(2, 'watch prints lines', ['rollout', 'watch', 'r2', '-o', 'yaml'], { url })
  })

  test('is a picture on a terminal that is drawn anew, within its width', async (t) => {
    const { print, url, drive } = await start(t)
    await print(`${CHANGE} ${WAVES} --yes`)
    const watching = onTerminal(['rollout', 'watch', 'r2'], { url, columns: 60 })
    await drive('r2', 'finished')
    const { code, screen } = await watching
    assert.equal(code, 0, screen)
    assert.ok(screen.includes('\u001b[J'), 'it is drawn over')
    const tables = screen.split('\n').filter((line) => /^(?:WAVE|dev|rest) /.test(line))
    for (const line of tables) assert.ok(line.length <= 60, line)
    assert.match(tables.at(-1) ?? '', /^rest +passed +2 /)
  })

  test('ends with 4 and the ways on when it pauses by itself, and waits through a pause by a person', async (t) => {
    const { print, url, cluster } = await start(t)
    await print(`${CHANGE} ${WAVES} --yes`)
    await print(`rollout pause r2 -m 'coffee'`)
    const watch = follow(t, url, 'rollout watch r2')
    await waitFor('the pause is told', () => watch.stdout().includes('writer: paused: coffee'))
    await print('rollout resume r2')
    await cluster('alpha').poll()
    cluster('alpha').fail('HelmRelease', 'a', 'InstallFailed', 'timed out')
    assert.deepEqual(await watch.closed, [4, null], watch.stderr())
    assert.match(
      watch.stderr(),
      /^Error: rollout r2 has paused: 1 of 1 clusters of wave dev failed, .*: alpha$/m,
    )
    for (const way of ['describe r2 --members', 'retry r2', 'skip r2 --wave dev', 'abort r2'])
      assert.ok(watch.stderr().includes(`  ${PROGRAM} rollout ${way}  # `), watch.stderr())
  })

  test('ends with 4 when it is aborted, telling by whom and why', async (t) => {
    const { print, url } = await start(t)
    await print(`${CHANGE} ${WAVES} --yes`)
    const watch = follow(t, url, 'rollout watch r2')
    await waitFor('it watches', () => watch.stdout().includes('dev: 1 of 1 open'))
    await print(`rollout abort r2 -m 'not today'`)
    assert.deepEqual(await watch.closed, [4, null])
    assert.match(watch.stderr(), /^Error: rollout r2 was aborted by writer: not today$/m)
  })

  test('ends with 5 when time is over, telling what it waits for, and with 130 at Ctrl-C', async (t) => {
    const { print, url } = await start(t)
    await print(`${CHANGE} ${WAVES} --yes`)
    const late = await cli(['rollout', 'watch', 'r2', '--timeout', '1'], { url })
    assert.equal(late.code, 5)
    assert.match(
      late.stderr,
      /^Error: rollout r2 is running after 1s: wave dev \(1 of 2\), 0 of 3 clusters have it\n {2}waiting: 1 of 1/m,
    )
    const watch = follow(t, url, 'rollout watch r2')
    await waitFor('it watches', () => watch.stdout().includes('dev: 1 of 1 open'))
    watch.child.kill('SIGINT')
    assert.deepEqual(await watch.closed, [130, null])
    assert.match(watch.stderr(), /no longer waiting for rollout r2: what was changed stays so/)
  })

  test('is what --wait does after a write that starts one', async (t) => {
    const { url, drive, service } = await start(t)
    const write = follow(t, url, `${CHANGE} ${WAVES} --yes --wait`)
    await waitFor('it is started', async () => (await service.call('GET', '/rollouts/r2')).status === 200)
    await waitFor('it is looked at', () => write.stderr().includes('rollout r2 is running'))
    await drive('r2', 'finished')
    assert.deepEqual(await write.closed, [0, null], write.stderr())
    assert.match(write.stderr(), /^rollout r2 is running: wave dev \(1 of 2\), 0 of 3 clusters have it$/m)
    assert.match(write.stderr(), /^rollout r2 finished after \d+s: 3 clusters in 2 waves$/m)
    const late = await cli(
      [
        ...wordsOf('component update a --set oci_tag=v9'),
        ...wordsOf(WAVES),
        '--yes',
        '--wait',
        '--timeout',
        '1',
      ],
      { url },
    )
    assert.equal(late.code, 5)
    assert.match(late.stdout, /^rollout r\d+ is running/)
  })
})

describe('completion', () => {
  test('offers rollouts, their waves, and strategies', async (t) => {
    const { print, url } = await start(t)
    await print(`strategy create mine --wave rest`)
    await print(`${CHANGE} ${WAVES} -m 'A 2' --yes`)
    const complete = async (...words: string[]) => (await cli(['__complete', '--', ...words], { url })).stdout
    assert.equal(await complete('rollout', 'abort', ''), 'r3\trunning: A 2\nlast\tthe newest one\n')
    assert.equal(await complete('rollout', 'approve', 'r3', '--wave', ''), 'dev\topen\nrest\twaiting\n')
    assert.match(await complete(...wordsOf(CHANGE), '--rollout', ''), /^default\n(?:.*\n)*mine\n/)
    assert.equal(await complete(...wordsOf(CHANGE), '--amend', ''), 'r3\trunning: A 2\n')
    assert.equal(await complete(...wordsOf(CHANGE), '--on-failure', ''), 'pause\nabort\n')
    await print('rollout abort r3')
    assert.equal(await complete(...wordsOf(CHANGE), '--supersede', ''), '')
    assert.match(await complete('rollout', 'sto'), /^stop-line\t/)
    assert.match(await complete('hold', 'create', ''), /^alpha\nbeta\ngamma\n/)
  })
})
