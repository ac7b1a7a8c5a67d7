// What the command line tells of the clusters themselves: their status, who needs help, and waiting for them.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { before, describe, type TestContext, test } from 'node:test'
import { CLI, cli, cliEnv, onTerminal, outcomesOf } from './cli-process.ts'
import { serve, standBefore } from './own-server.ts'
import { fleetOf, ReportingCluster } from './reporting-clusters.ts'
import { startUnheld, type TestService, waitFor } from './service.ts'

const { succeed, fail } = outcomesOf(cli)

interface Fleet {
  readonly service: TestService
  readonly url: string
  cluster(id: string): ReportingCluster
  /** Sets a value of a component on some clusters: a revision. */
  change(clusters: readonly string[], replicas: string): Promise<number>
}

/** Three clusters: two have applied everything and are healthy, the third was never heard of. */
async function start(t: TestContext): Promise<Fleet> {
  const fleet = fleetOf({ alpha: {}, beta: { environment: 'prod' }, gone: { environment: 'prod' } })
  const service = await startUnheld(t, { fleet })
  const clusters = new Map(['alpha', 'beta', 'gone'].map((id) => [id, new ReportingCluster(service, id)]))
  const cluster = (id: string): ReportingCluster => clusters.get(id) ?? assert.fail(id)
  for (const id of ['alpha', 'beta']) await cluster(id).settle()
  return {
    service,
    url: service.url,
    cluster,
    async change(ids, replicas) {
      const operation = { op: 'patch_values', component: 'a', values: { replicas }, clusters: [...ids] }
      const { status, body, text } = await service.call('POST', '/batch', {
        body: { operations: [operation] },
      })
      assert.equal(status, 200, text)
      return body.revision
    },
  }
}

describe('lists of clusters', () => {
  test('show what each is doing, from one more request, and as JSON they stay documents', async (t) => {
    const { url, service } = await start(t)
    const seen: string[] = []
    const front = await standBefore(t, service, {
      before: async ({ url: path = '' }) => {
        seen.push(path)
      },
    })
    const { stdout } = await succeed(['cluster', 'list'], { url: front.url })
    const [head, ...rows] = stdout.trimEnd().split('\n')
    assert.match(head ?? '', /^ID +ENV +CONTACT +DELIVERY +HEALTH +SEEN +LABELS +DNS/)
    assert.match(rows[0] ?? '', /^alpha .* current +applied +healthy +\d+s /)
    assert.match(rows[2] ?? '', /^gone .* never +behind +unknown /)
    assert.deepEqual(
      seen.filter((path) => path.startsWith('/status')),
      ['/status?limit=3&offset=0'],
    )
    seen.length = 0
    const json = await succeed(['cluster', 'list', '-o', 'json'], { url: front.url })
    assert.deepEqual(JSON.parse(json.stdout), (await service.call('GET', '/clusters')).body)
    assert.deepEqual(
      seen.filter((path) => path.startsWith('/status')),
      [],
    )
    for (const args of [
      ['--selector', 'id=gone'],
      ['--filter', 'cluster_name=gone'],
      ['--filter', 'environment=prod'],
    ]) {
      const { stdout: part } = await succeed(['cluster', 'list', ...args], { url })
      assert.match(part, /^gone .* never /m, args.join(' '))
      assert.doesNotMatch(part, /^alpha/m)
    }
    const past = await succeed(['cluster', 'list', '--at', '1'], { url })
    assert.doesNotMatch(past.stdout, /CONTACT/, 'of the past there is no status')
  })

  test('fit 80 columns with the states in them', async (t) => {
    const { url } = await start(t)
    const { screen } = await onTerminal(['cluster', 'list'], { url })
    assert.match(screen, /ENV +CONTACT +DELIVERY +HEALTH +SEEN/)
    for (const line of screen.split('\n')) assert.ok(line.length <= 80, line)
  })

  for (const status of [404, 403]) {
    test(`do without states where the server says ${status} to them`, async (t) => {
      const { service } = await start(t)
      const front = await withoutStatus(t, service, status)
      const { stdout } = await succeed(['cluster', 'list'], { url: front })
      assert.match(stdout, /^alpha /m)
      assert.doesNotMatch(stdout, /CONTACT/)
      const told = await succeed(['status'], { url: front })
      assert.match(told.stdout, /^clusters: +3$/m)
      assert.doesNotMatch(told.stdout, /contact/)
      await fail(
        1,
        status === 404 ? 'its version is too old' : 'not for you',
        ['status', '--contact', 'never'],
        { url: front },
      )
    })
  }

  test('go on with a line for each cluster that changes', async (t) => {
    const { url, cluster } = await start(t)
    const columns = ['--columns', 'id,contact,delivery,health,updated']
    const line = [CLI, 'cluster', 'list', '--watch', ...columns, '--sort-by', 'health']
    const child = spawn(process.execPath, line, { env: cliEnv({ url }) })
    t.after(() => child.kill('SIGKILL'))
    let stdout = ''
    child.stdout.on('data', (chunk) => {
      stdout += chunk
    })
    await waitFor('the list is there', () => /^gone .*never/m.test(stdout))
    const before = stdout.split('\n').length
    await cluster('gone').settle()
    await waitFor('the change is there', () => stdout.split('\n').length > before)
    assert.match(stdout.split('\n')[before - 1] ?? '', /^gone +current +applied +healthy +\d+[smh]$/)
    assert.equal(stdout.split('\n').length, before + 1, 'what did not change is not told again')
    child.kill('SIGINT')
    await once(child, 'close')
    await fail(2, '--watch is for tables', ['cluster', 'list', '-w', '-o', 'json'], { url })
  })
})

/** A server that is like another one, and has no status to tell. */
async function withoutStatus(t: TestContext, service: TestService, status: number): Promise<string> {
  const front = await standBefore(t, service)
  const body =
    status === 404
      ? { error: 'not_found', reason: 'no_route', message: 'no route GET /status' }
      : { error: 'forbidden', message: 'this is not for you' }
  const { url } = await serve(t, async (incoming, outgoing) => {
    const { method = 'GET', url: path = '/', headers } = incoming
    if (path.startsWith('/status')) {
      outgoing.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      return
    }
    const given = await fetch(new URL(path, front.url), {
      method,
      headers: { authorization: `${headers.authorization}` },
    })
    const total = given.headers.get('x-total-count')
    outgoing
      .writeHead(given.status, {
        'content-type': 'application/json',
        ...(total && { 'x-total-count': total }),
        'x-revision': '1',
      })
      .end(await given.text())
  })
  return url
}

describe('status', () => {
  test('of the service counts the clusters by state and environment', async (t) => {
    const { url } = await start(t)
    const { stdout } = await succeed(['status'], { url })
    assert.match(stdout, /^Status: +ready$/m)
    assert.match(stdout, /^COLUMN +STATE +CLUSTERS +DEV +PROD$/m)
    assert.match(stdout, /^contact +never +1 +0 +1$/m)
    assert.match(stdout, /^health +healthy +2 +1 +1$/m)
    const json = JSON.parse((await succeed(['status', '-o', 'json'], { url })).stdout)
    assert.deepEqual([json.status, json.fleet.total, json.fleet.counts.contact.current], ['ready', 3, 2])
  })

  test('with a filter lists the clusters', async (t) => {
    const { url } = await start(t)
    const names = async (...args: string[]) =>
      (await succeed(['status', ...args, '-o', 'name'], { url })).stdout
    assert.equal(await names('--contact', 'never'), 'clusters/gone\n')
    assert.equal(await names('-l', 'environment=prod', '--health', 'healthy'), 'clusters/beta\n')
    const { stdout } = await succeed(['status', '--delivery', 'applied'], { url })
    assert.match(stdout, /^CLUSTER +ENV +CONTACT/)
    assert.match(stdout, /^beta +prod +current +applied +healthy +\d+s$/m)
    const none = await succeed(['status', '--contact', 'refused'], { url })
    assert.deepEqual([none.stdout, none.stderr], ['', 'No clusters found.\n'])
    await fail(2, 'Allowed choices are', ['status', '--health', 'good'], { url })
  })

  test('of one cluster tells contact, endpoints, components and transitions', async (t) => {
    const { url, service, cluster, change } = await start(t)
    await service.call('GET', '/status')
    await change(['alpha'], '5')
    await service.call('GET', '/status')
    await service.engine.fleet.sync()
    cluster('alpha').fail('HelmRelease', 'a', 'InstallFailed', 'timed out')
    const { stdout } = await succeed(['cluster', 'status', 'alpha'], { url })
    assert.match(stdout, /^Contact: +current.*, seen \d+s ago, every 5m \(reported\)$/m)
    assert.match(stdout, /^platform-components +behind +1 +[0-9a-f]{8} +[0-9a-f]{8} +\d+s/m)
    assert.match(stdout, /^namespaces +applied +0 +empty +empty/m)
    assert.match(stdout, /^a +failed +\d+s +event +InstallFailed: timed out$/m)
    assert.match(stdout, /^\d+s +delivery +\S+ +\S+$/m)
    const json = JSON.parse((await succeed(['cluster', 'status', 'alpha', '-o', 'json'], { url })).stdout)
    assert.deepEqual(
      Object.keys(json),
      Object.keys((await service.call('GET', '/clusters/alpha/status')).body),
    )
    const { screen } = await onTerminal(['cluster', 'status', 'alpha'], { url })
    for (const line of screen.split('\n')) assert.ok(line.length <= 80, line)
    await fail(1, 'no cluster "nobody"', ['cluster', 'status', 'nobody'], { url })
  })
})

test('attention names who needs help, why and what to do, and fails only when it is asked to', async (t) => {
  const { url, cluster } = await start(t)
  const calm = await succeed(['attention', '--exit-code'], { url })
  assert.deepEqual([calm.stdout, calm.stderr], ['', 'No cluster needs attention.\n'])
  cluster('beta').fail('HelmRelease', 'a', 'InstallFailed', 'timed out')
  const { stdout } = await succeed(['attention'], { url })
  assert.match(
    stdout,
    /^CLUSTER +ENVIRONMENT +PROBLEM +SINCE +OF +REASON\nbeta +prod +failed +\d+s +a +InstallFailed: timed out$/m,
  )
  assert.match(stdout, /^Next steps\n {2}beta\n {4}Ask the cluster .*kubectl/m)
  assert.equal((await cli(['attention', '--exit-code'], { url })).code, 4)
  const elsewhere = await cli(['attention', '--exit-code', '-l', 'environment=dev'], { url })
  assert.equal(elsewhere.code, 0)
})

test('the status of a revision counts who has it, and names who has not', async (t) => {
  const { url, cluster, change } = await start(t)
  const revision = await change(['alpha', 'beta', 'gone'], '5')
  await cluster('alpha').settle()
  await cluster('beta').poll()
  const { stdout } = await succeed(['revision', 'status', 'last'], { url })
  assert.match(stdout, new RegExp(`^revision ${revision}, \\d+s ago: 3 clusters$`, 'm'))
  assert.match(stdout, /^served: +\[={20} {10}\] 2\/3 {2}half in \d+s$/m)
  assert.match(stdout, /^applied: +\[={10} {20}\] 1\/3$/m)
  assert.match(stdout, /^healthy: .* 1\/3$/m)
  assert.match(stdout, /^rest: +0 failed, 1 offline, 1 under way or unknown$/m)
  assert.match(stdout, /^beta +current +served +progressing$/m)
  assert.match(stdout, /^gone +never +behind +unknown$/m)
  const json = JSON.parse(
    (await succeed(['revision', 'status', String(revision), '-o', 'json'], { url })).stdout,
  )
  assert.deepEqual([json.revision, json.affected, json.applied], [revision, 3, 1])
  await fail(1, 'no revision', ['revision', 'status', '99'], { url })
  await fail(2, 'a revision is a whole number', ['revision', 'status', 'newest'], { url })
})

test('the versions of a component are counted, with those that are overridden', async (t) => {
  const { url, service, cluster } = await start(t)
  const ref = { id: 'a', oci_tag: 'v2.0.0' }
  const operation = { op: 'assign', type: 'platform_components', ref, merge: true, clusters: ['beta'] }
  assert.equal((await service.call('POST', '/batch', { body: { operations: [operation] } })).status, 200)
  await cluster('beta').poll()
  const { stdout } = await succeed(['component', 'versions', 'a'], { url })
  assert.match(stdout, /^VERSION +CLUSTERS +OVERRIDDEN +APPLIED +HEALTHY +FAILED\n/)
  assert.match(stdout, /^v1\.0\.0 +2 +0 +1 +1 +0$/m)
  assert.match(stdout, /^v2\.0\.0 +1 +1 +0 +0 +0$/m)
  const wide = await succeed(['component', 'versions', 'a', '-o', 'wide'], { url })
  assert.match(wide.stdout, /^v1\.0\.0 .* dev 1\/1, prod 0\/1$/m)
  const none = await succeed(['component', 'versions', 'b'], { url })
  assert.deepEqual([none.stdout, none.stderr], ['', 'No cluster has platform_components/b.\n'])
  await fail(1, 'no platform component "zz"', ['component', 'versions', 'zz'], { url })
  await fail(2, 'versions', ['namespace', 'versions', 'x'], { url })
})

describe('wait', () => {
  test('ends when all clusters of a revision are there, and tells how far they are meanwhile', async (t) => {
    const { url, cluster, change } = await start(t)
    const revision = await change(['alpha', 'beta'], '5')
    await cluster('alpha').settle()
    const waiting = cli(['wait', '--revision', String(revision), '--for', 'healthy'], { url })
    await cluster('beta').poll()
    await new Promise((resolve) => setTimeout(resolve, 1500))
    await cluster('beta').report()
    const { code, stdout } = await waiting
    assert.deepEqual([code, stdout], [0, `revision ${revision}: healthy on 2 clusters\n`])
  })

  test('is over with 5 when the time is, and names who is not there', async (t) => {
    const { url, change } = await start(t)
    const revision = await change(['beta', 'gone'], '5')
    const args = ['wait', '--last', '--timeout', '0.5']
    const stderr = await fail(
      5,
      [
        `Error: revision ${revision}: applied on 0 of 2 clusters after 1s`,
        'gone: contact never, delivery behind',
      ],
      args,
      { url },
    )
    assert.match(stderr, /^revision \d+: applied on 0 of 2 clusters, 1 offline$/m, 'progress')
    assert.match(stderr, /^Hint: .*--ignore-offline/m)
  })

  test('sets clusters aside that nothing is heard of, when it is told to, and lists them', async (t) => {
    const { url, cluster, change } = await start(t)
    const revision = await change(['beta', 'gone'], '5')
    await cluster('beta').settle()
    const { stdout } = await succeed(['wait', '--last', '--ignore-offline'], { url })
    assert.equal(stdout, `revision ${revision}: applied on 1 of 2 clusters; 1 offline set aside: gone\n`)
    const all = await succeed(['wait', '--ignore-offline', '-o', 'json'], { url })
    const { goal, total, reached, offline } = JSON.parse(all.stdout)
    assert.deepEqual([goal, total, reached, offline], ['applied', 3, 2, 1])
  })

  test('is over with 4 when a component fails, and names it', async (t) => {
    const { url, cluster, change } = await start(t)
    await change(['beta'], '5')
    await cluster('beta').poll()
    cluster('beta').fail('HelmRelease', 'a', 'InstallFailed', 'timed out')
    const says = ['1 cluster failed', 'beta: a InstallFailed: timed out', 'attention']
    await fail(4, says, ['wait', '--last', '--for', 'healthy'], { url })
    await fail(4, says, ['wait', '-l', 'environment=prod', '--for', 'healthy'], { url })
    await succeed(['wait', '--last', '--for', 'served'], { url })
    await succeed(['wait', '--last', '-l', 'id=alpha', '--for', 'healthy'], { url })
  })

  test('of a selector is for what its clusters are to have now', async (t) => {
    const { url } = await start(t)
    const { stdout } = await succeed(['wait', '-l', 'id in (alpha,beta)', '--for', 'healthy'], { url })
    assert.equal(stdout, 'clusters (id in (alpha,beta)): healthy on 2 clusters\n')
    await fail(4, 'nothing to wait for', ['wait', '-l', 'id=nobody'], { url })
    await fail(2, 'give one of', ['wait', '--last', '--revision', '1'], { url })
    await fail(2, 'Allowed choices are served, applied, healthy', ['wait', '--for', 'ready'], { url })
    await fail(2, '--timeout must be', ['wait', '--timeout', '10x'], { url })
  })

  test('ends cleanly at Ctrl-C', async (t) => {
    const { url, change } = await start(t)
    await change(['gone'], '5')
    const child = spawn(process.execPath, [CLI, 'wait', '--last'], { env: cliEnv({ url }) })
    t.after(() => child.kill('SIGKILL'))
    let stderr = ''
    child.stderr.on('data', (chunk) => {
      stderr += chunk
    })
    await waitFor('it waits', () => stderr.includes('applied on 0 of 1 cluster'))
    child.kill('SIGINT')
    const [code] = await once(child, 'close')
    assert.equal(code, 130)
    assert.match(stderr, /^Error: no longer waiting for revision 2/m)
    assert.doesNotMatch(stderr, /^ +at /m)
  })

  test('shows one line that moves on a terminal', async (t) => {
    const { url, change } = await start(t)
    await change(['gone'], '5')
    const { code, screen } = await onTerminal(['wait', '--last', '--timeout', '3'], { url })
    assert.equal(code, 5)
    const bar = `\r\u001b[Krevision 2: applied [${' '.repeat(30)}] 0/1, 1 offline`
    assert.ok(screen.includes(bar), screen)
    assert.doesNotMatch(screen, /applied on 0 of 1 cluster, 1 offline/)
  })
})

describe('a write with --wait', () => {
  test('ends when its clusters have applied what it made, and prints as without', async (t) => {
    const { url, cluster } = await start(t)
    const args = ['component', 'patch', 'a', '--cluster', 'alpha', '--set', 'replicas=7', '-o', 'json']
    const writing = cli([...args, '--wait=healthy', '--timeout', '30s'], { url })
    const settling = setInterval(() => cluster('alpha').settle(), 500)
    t.after(() => clearInterval(settling))
    const { code, stdout, stderr } = await writing
    clearInterval(settling)
    assert.equal(code, 0, stderr)
    assert.equal(JSON.parse(stdout).revision, 2)
    assert.match(stderr, /^revision 2: healthy on 1 cluster$/m)
  })

  test('is over with 5 when they do not in time, and the write stays', async (t) => {
    const { url, service } = await start(t)
    const ran = await cli(
      ['cluster', 'update', 'gone', '--set', 'labels.a=b', '--wait', '--timeout', '0.5'],
      { url },
    )
    assert.deepEqual(
      [ran.code, ran.stdout],
      [0, 'clusters/gone configured (revision 2)\nno cluster receives anything else\n'],
      ran.stderr,
    )
    assert.match(ran.stderr, /revision 2: no cluster receives anything else/)
    const late = await cli(
      ['component', 'patch', 'a', '--cluster', 'gone', '--set', 'x=1', '--wait', '--timeout', '0.5'],
      { url },
    )
    assert.equal(late.code, 5, late.stderr)
    assert.match(late.stdout, /revision 3/)
    assert.equal((await service.call('GET', '/clusters/gone')).body.patches.a.x, '1')
  })

  test('that changes nothing, and one that is only previewed, end at once', async (t) => {
    const { url } = await start(t)
    const same = await succeed(['cluster', 'update', 'gone', '--set', 'environment=prod', '--wait'], { url })
    assert.deepEqual([same.stdout, same.stderr], ['clusters/gone unchanged\n', ''])
    await succeed(['component', 'patch', 'a', '--cluster', 'gone', '--set', 'x=1', '--wait', '--dry-run'], {
      url,
    })
    await fail(
      2,
      ['--wait must be one of served, applied, healthy', '--wait=healthy'],
      ['cluster', 'update', '--wait', 'gone', '--set', 'labels.a=b'],
      { url },
    )
  })
})

describe('completion', () => {
  let lines: (...words: string[]) => Promise<string[]>
  before(() => {
    lines = async (...words) =>
      (await succeed(['__complete', '--', ...words])).stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.split('\t')[0] ?? '')
  })

  test('knows the commands and the words of their flags', async () => {
    assert.deepEqual(await lines('att'), ['attention'])
    assert.deepEqual(await lines('cluster', 'sta'), ['status'])
    assert.deepEqual(await lines('revision', 'status', ''), ['last'])
    assert.deepEqual(await lines('wait', '--for', ''), ['served', 'applied', 'healthy'])
    assert.deepEqual(await lines('status', '--health', 'f'), ['failed'])
    assert.deepEqual(await lines('cluster', 'delete', '--wait='), [
      '--wait=served',
      '--wait=applied',
      '--wait=healthy',
    ])
    assert.deepEqual(await lines('cluster', 'delete', '--wait', '=', 'h'), ['healthy'])
  })
})
