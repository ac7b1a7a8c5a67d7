import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openMemoryStore } from '../src/store/memory.ts'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import { importLog } from '../src/transfer/import-log.ts'
import { verifyLog } from '../src/transfer/verify-log.ts'
import { run, start } from './every-store.ts'
import {
  becomesReady,
  beginsToCopy,
  bytesOf,
  changeAtRandom,
  checkSame,
  checkServesNothing,
  copyOf,
  createToken,
  degradesFor,
  large,
  longUpstream,
  metric,
  mirrorOf,
  POLL,
  pruneOlder,
  randomFleet,
  ready,
  revisionIn,
  servedBy,
  upstreamOf,
  wayTo,
  write,
} from './mirrors.ts'
import { serve } from './own-server.ts'
import { AUTHOR } from './random-fleet.ts'
import {
  failToStart,
  READ_TOKEN,
  type TestService,
  temporaryFolder,
  WRITE_TOKEN,
  waitFor,
} from './service.ts'

/** The file of a mirror whose first copy is not finished: it has what the upstream has now. */
async function beginCopy(t: TestContext, upstream: TestService): Promise<string> {
  const path = join(temporaryFolder(t), 'mirror.db')
  const begun = openSqliteStore({ path: `${path}.copy`, write: true })
  await importLog(begun, upstream.engine.past.export({ since: 0, now: new Date() }))
  await begun.close()
  return path
}

describe('a mirror', { concurrency: 2 }, () => {
  test('serves byte for byte what its upstream serves at every revision, over restarts of its own', async (t) => {
    const upstream = await upstreamOf(t)
    let mirror = await mirrorOf(t, upstream.url)
    await becomesReady(mirror)
    let revision = 1
    for await (revision of changeAtRandom(upstream, 42, 20)) {
      await checkSame(mirror, upstream, revision)
      if (revision !== 12) continue
      await mirror.stop('SIGKILL')
      mirror = await mirror.again()
    }
    assert.equal(await mirror.stop(), 0, mirror.output())
    const copy = openSqliteStore({ path: mirror.path, write: false })
    t.after(() => copy.close())
    const { verified, to, hash } = await verifyLog(copy)
    const expected = await upstream.engine.past.verify()
    assert.deepEqual({ verified, to, hash }, { verified: true, to: revision, hash: expected.hash })
  })

  test('is read-only, says how it stands, and tells every cluster and token what its upstream does', async (t) => {
    const upstream = await upstreamOf(t)
    const mirror = await mirrorOf(t, upstream.url)
    await becomesReady(mirror)
    for (const end of ['', '-wal', '-shm']) assert.equal(statSync(mirror.path + end).mode & 0o777, 0o600)
    const token = await createToken(upstream, { name: 'cluster-k0', role: 'cluster', cluster: 'k0' })
    const poll = (of: string) => mirror.call('GET', POLL.replace('k0', of), { token })
    await checkSame(mirror, upstream, 2)
    assert.equal((await poll('k0')).status, 200)
    assert.equal((await poll('k1')).status, 403)
    await checkSame(mirror, upstream, await run(upstream, ['DELETE', '/tokens/cluster-k0']))
    assert.equal((await poll('k0')).status, 401)
    for (const url of ['k1?confirm=removals', 'k1?purge=true&confirm=removals', 'k0?confirm=removals'])
      await checkSame(mirror, upstream, await run(upstream, ['DELETE', `/clusters/${url}`]))
    assert.equal((await mirror.call('GET', POLL)).text, '{"inputs":[]}')
    assert.equal((await mirror.call('GET', POLL.replace('k0', 'k1'))).status, 404)
    assert.equal((await mirror.call('POST', '/namespaces', { body: { id: 'x' } })).status, 405)
    assert.deepEqual((await ready(mirror)).body, { status: 'ready', mode: 'read-only', revision: 6 })
    assert.equal(await metric(mirror, 'revision'), 6)
    assert.equal(await metric(mirror, 'store_revision'), 6)
    assert.equal(await metric(mirror, 'lag_revisions'), 0)
    assert.equal(await metric(mirror, 'state_age_seconds'), 0)
    assert.equal(await metric(mirror, 'store_up'), 1)
  })

  test('with settings that make no sense does not start, and says everything that is wrong', async () => {
    const { code, stderr } = await failToStart({
      AUTH_TOKEN: READ_TOKEN,
      UPSTREAM_URL: 'http://fleet.example.com',
      API_MODE: 'crud',
      STORE_BACKEND: 'memory',
      SEED_FILE: 'seed.json',
    })
    assert.equal(code, 2)
    for (const problem of [
      /UPSTREAM_URL must be an https:\/\/ URL .* not "http:\/\/fleet.example.com"/,
      /UPSTREAM_TOKEN is required/,
      /leave API_MODE out/,
      /needs a SQLite file of its own/,
      /SEED_FILE has no place/,
    ])
      assert.match(stderr, problem)
    assert.doesNotMatch(stderr, /\n\s+at /)
  })

  test('whose file is none does not start, and says so', async (t) => {
    const path = join(temporaryFolder(t), 'mirror.db')
    writeFileSync(path, 'this is not a database, whatever its name says'.repeat(100))
    const { code, stderr } = await failToStart({
      AUTH_TOKEN: READ_TOKEN,
      UPSTREAM_URL: 'http://127.0.0.1:9',
      UPSTREAM_TOKEN: 'token',
      DATABASE_URL: `sqlite://${path}`,
    })
    assert.equal(code, 2)
    assert.ok(stderr.includes(path), stderr)
    assert.doesNotMatch(stderr, /\n\s+at /)
  })

  test('serves a first copy only once it is whole, and goes on with it when it was killed meanwhile', async (t) => {
    const upstream = await longUpstream(t)
    const { url, proxy } = await wayTo(t, upstream)
    proxy.delay(150)
    let mirror = await mirrorOf(t, url)
    await checkServesNothing(mirror)
    await beginsToCopy(mirror)
    await checkServesNothing(mirror)
    await mirror.stop('SIGKILL')
    const copied = revisionIn(`${mirror.path}.copy`)
    mirror = await mirror.again()
    await checkServesNothing(mirror)
    assert.ok(revisionIn(`${mirror.path}.copy`) >= copied, 'it goes on from where it was')
    proxy.heal()
    await becomesReady(mirror)
    await checkSame(mirror, upstream, 1000)
    for (const end of ['', '-wal', '-shm']) assert.ok(!existsSync(`${mirror.path}.copy${end}`))
  })

  test('goes on serving while its upstream is away, tells its age, and starts again from its file', async (t) => {
    const upstream = await upstreamOf(t)
    const { url, proxy } = await wayTo(t, upstream)
    let mirror = await mirrorOf(t, url)
    await becomesReady(mirror)
    const known = await servedBy(mirror, 1)
    proxy.cut()
    for (const id of ['one', 'two']) await write(upstream, id)
    await degradesFor(mirror, /the upstream cannot be followed: it cannot be reached/)
    assert.equal(await metric(mirror, 'store_up'), 0)
    await waitFor('it is in the log', () =>
      /"level":50.*the upstream cannot be followed/.test(mirror.output()),
    )
    await mirror.stop('SIGKILL')
    const begun = performance.now()
    mirror = await mirror.again()
    assert.doesNotMatch(mirror.output(), /nothing to serve/)
    assert.deepEqual(await servedBy(mirror, 1), known)
    const { body } = await degradesFor(mirror, /it cannot be reached/)
    assert.equal(body.revision, 1)
    const age = await metric(mirror, 'state_age_seconds')
    assert.ok(age >= (performance.now() - begun) / 1000, `${age} s: since before it was started`)
    assert.equal(await metric(mirror, 'store_revision'), 1)
    proxy.heal()
    await checkSame(mirror, upstream, 3)
    await becomesReady(mirror)
    assert.equal(await metric(mirror, 'state_age_seconds'), 0)
    await waitFor('it is in the log', () => /upstream connection restored/.test(mirror.output()))
  })

  test('goes on with a copy that was begun elsewhere, and serves it once everything is there', async (t) => {
    const upstream = await upstreamOf(t)
    const path = await beginCopy(t, upstream)
    const last = await write(upstream, 'later')
    const { url, proxy } = await wayTo(t, upstream)
    proxy.cut()
    const mirror = await mirrorOf(t, url, { DATABASE_URL: `sqlite://${path}` })
    await checkServesNothing(mirror)
    proxy.heal()
    await becomesReady(mirror)
    await checkSame(mirror, upstream, last)
    assert.ok(!existsSync(`${path}.copy`))
  })

  test('whose file holds nothing yet serves nothing before everything is there', async (t) => {
    const upstream = await upstreamOf(t)
    const path = join(temporaryFolder(t), 'mirror.db')
    const empty = openSqliteStore({ path, write: true })
    assert.equal((await empty.head()).revision, 0)
    await empty.close()
    const { url, proxy } = await wayTo(t, upstream)
    proxy.cut()
    const mirror = await mirrorOf(t, url, { DATABASE_URL: `sqlite://${path}` })
    await checkServesNothing(mirror)
    proxy.heal()
    await becomesReady(mirror)
    await checkSame(mirror, upstream, 1)
  })

  test('is not led elsewhere by its upstream', async (t) => {
    const upstream = await upstreamOf(t)
    const { url } = await serve(t, (request, response) => {
      response.writeHead(307, { location: `${upstream.url}${request.url}` }).end()
    })
    const mirror = await mirrorOf(t, url)
    await waitFor('it says why', async () => /unexpected redirect/.test((await ready(mirror)).text))
    await checkServesNothing(mirror)
  })

  test('refuses an upstream that went another way, and goes on by itself when the right one is back', async (t) => {
    const upstream = await upstreamOf(t)
    for (const id of ['one', 'two']) await write(upstream, id)
    const { url, lead } = await wayTo(t, upstream)
    const mirror = await mirrorOf(t, url)
    await becomesReady(mirror)
    const known = await servedBy(mirror, 3)
    const older = await copyOf(t, upstream, { until: 2 })
    const fork = await copyOf(t, upstream, { until: 2 })
    for (const id of ['other', 'another', 'more']) await write(fork, id)
    for (const [other, reason] of [
      [older, /it is an older one than what was copied from it/],
      [fork, /it has another history: revision 3/],
    ] as const) {
      lead(other)
      const { body } = await degradesFor(mirror, reason)
      assert.ok(body.reason.includes(`delete ${mirror.path} and start it again`), body.reason)
      await waitFor('it is in the log too', () => reason.test(mirror.output()))
      assert.equal(await metric(mirror, 'store_up'), 0)
      assert.deepEqual(await servedBy(mirror, 3), known)
    }
    lead(upstream)
    await checkSame(mirror, upstream, await write(upstream, 'last'))
    await becomesReady(mirror)
    assert.equal(await metric(mirror, 'store_revision'), 4)
    assert.equal(await metric(mirror, 'lag_revisions'), 0)
  })

  test('that was away for long serves what it has taken in, while more is still on its way', async (t) => {
    const store = openMemoryStore()
    const { promise: go, resolve } = Promise.withResolvers<void>()
    const log: typeof store.log = async function* (since, until) {
      for await (const slice of store.log(since, until)) {
        if (slice.revision === 300) await go
        yield slice
      }
    }
    const upstream = await start(t, { store: { ...store, log }, fleet: randomFleet() })
    t.after(() => resolve())
    const { url, proxy } = await wayTo(t, upstream)
    const mirror = await mirrorOf(t, url)
    await becomesReady(mirror)
    proxy.cut()
    for (let i = 0; i < 400; i++) await upstream.engine.write([large(i, 10)], AUTHOR)
    proxy.heal()
    const served = async () => Number((await mirror.call('GET', POLL)).headers['x-revision'])
    await waitFor('the first of it is served', async () => (await served()) > 200)
    assert.ok((await served()) < 300)
    resolve()
    await checkSame(mirror, upstream, 401)
  })

  test('that was away while its upstream gave up what it needs says what to do', async (t) => {
    const store = openMemoryStore()
    const upstream = await start(t, { store, fleet: randomFleet() })
    const { url, proxy } = await wayTo(t, upstream)
    const mirror = await mirrorOf(t, url)
    await becomesReady(mirror)
    const known = await servedBy(mirror, 1)
    proxy.cut()
    for (const id of ['one', 'two', 'three']) await write(upstream, id)
    await pruneOlder(upstream, store)
    proxy.heal()
    const { body } = await degradesFor(mirror, /pruned what is before it, and this store is at 1/)
    assert.ok(body.reason.includes(`stop this mirror, delete ${mirror.path} and start it again`), body.reason)
    assert.deepEqual(await servedBy(mirror, 1), known)
  })

  test('keeps what it has of a copy when a proxy answers in the place of its upstream', async (t) => {
    const path = await beginCopy(t, await upstreamOf(t))
    const { url } = await serve(t, (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Please log in</html>\n')
    })
    const mirror = await mirrorOf(t, url, { DATABASE_URL: `sqlite://${path}` })
    await waitFor('it says why', async () => /is a proxy in the way/.test((await ready(mirror)).text))
    assert.equal(revisionIn(`${path}.copy`), 1)
  })

  test('of some clusters never holds anything of the others', async (t) => {
    const upstream = await upstreamOf(t)
    const marker = 'nobody-in-dev-may-see-this'
    const other = { id: marker, cluster_name: marker, cluster_dns: 'k2.example.com', environment: 'prod' }
    await run(upstream, ['PATCH', '/clusters/k1', { labels: { marker } }], ['POST', '/clusters', other])
    await run(upstream, ['POST', '/applied_sets', { id: 'fleet', documents: { clusters: ['k0', marker] } }])
    await run(upstream, ['DELETE', `/clusters/${marker}?confirm=removals`])
    const tokenOfOther = await createToken(upstream, { name: 'k1', role: 'cluster', cluster: 'k1' })
    const selector = 'environment=dev'
    const UPSTREAM_TOKEN = await createToken(upstream, { name: 'dev', role: 'mirror', selector })
    const mirror = await mirrorOf(t, upstream.url, { UPSTREAM_TOKEN })
    await becomesReady(mirror)
    const check = async (revision: number, isServed: boolean): Promise<void> => {
      const [here, there] = [await servedBy(mirror, revision), await servedBy(upstream, revision)]
      for (const [url, answer] of Object.entries(there).filter(([each]) => each.includes('.example.com/'))) {
        if (isServed && url.includes('/k0.')) assert.deepEqual(here[url], answer)
        else assert.equal(here[url]?.status, 404, url)
      }
      assert.ok(!bytesOf(mirror).includes(marker))
    }
    const change = (id: string, body: Record<string, string | Record<string, string>>) =>
      run(upstream, ['PATCH', `/clusters/${id}`, body])
    await check(upstream.engine.state.revision, true)
    assert.equal((await mirror.call('GET', POLL, { token: tokenOfOther })).status, 401)
    await check(await change('k1', { labels: { marker, more: marker } }), true)
    const documents = { clusters: [marker], namespaces: [marker] }
    await check(await run(upstream, ['PATCH', '/applied_sets/fleet', { documents }]), true)
    const operations = [
      { op: 'patch', type: 'clusters', selector: `id notin (${marker})`, patch: { node_count: 7 } },
      { op: 'restore', type: 'clusters', id: marker },
    ]
    await check(await run(upstream, ['POST', '/batch', { operations }]), true)
    await check(await run(upstream, ['DELETE', '/applied_sets/fleet']), true)
    await check(await change('k0', { environment: 'prod' }), false)
    await check(await change('k0', { labels: { marker } }), false)
    await change('k0', { labels: { marker: 'none' } })
    await check(await change('k0', { environment: 'dev' }), true)
  })
})

test('a mirror of some clusters goes on when its token is exchanged for one of just those', async (t) => {
  const upstream = await upstreamOf(t)
  const selector = 'environment=dev'
  const whole = await createToken(upstream, { name: 'whole', role: 'mirror' })
  const some = await createToken(upstream, { name: 'some', role: 'mirror', selector })
  const mirror = await mirrorOf(t, upstream.url, { UPSTREAM_TOKEN: whole, MIRROR_SELECTOR: selector })
  await becomesReady(mirror)
  assert.equal(await mirror.stop(), 0)
  const next = await mirror.again({ UPSTREAM_TOKEN: some })
  await servedBy(next, await write(upstream, 'later'))
  await becomesReady(next)
})

test('a token for a mirror of some clusters shows nothing of the others in any other way', async (t) => {
  const upstream = await upstreamOf(t)
  const grant = { role: 'mirror', selector: 'environment=dev' }
  const token = await createToken(upstream, { name: 'dev', ...grant })
  const other = POLL.replace('k0', 'k1')
  for (const query of ['', '?selector=environment=prod', '?selector=environment', '?selector=!team']) {
    const { status, text } = await upstream.call('GET', `/log${query}`, { token })
    assert.equal(status, 200, query)
    assert.doesNotMatch(text, /k1\.example\.com/, query)
  }
  for (const url of ['/clusters', '/clusters/k1', '/revisions', '/revisions/1'])
    assert.equal((await upstream.call('GET', url, { token })).status, 403, url)
  for (const url of [other, `${other}?min_revision=1`, '/api/v2/flux/clusters'])
    assert.equal((await upstream.call('GET', url, { token })).status, 403, url)
})

describe('the log of an upstream', () => {
  const REQUEST = `GET /log HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${WRITE_TOKEN}\r\n\r\n`

  async function openSocket(t: TestContext, { url }: TestService) {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    t.after(() => socket.destroy())
    await once(socket, 'connect')
    return socket
  }

  test('is given to as many as before, when many who asked for it left before they got it', async (t) => {
    const store = openMemoryStore()
    let [asked, answered] = [0, 0]
    const anchor = async () => {
      asked++
      await sleep(100)
      answered++
      return store.anchor()
    }
    const upstream = await start(t, { store: { ...store, anchor }, fleet: randomFleet() })
    for (let i = 0; i < 100; i++) {
      const socket = await openSocket(t, upstream)
      const before = asked
      socket.write(REQUEST)
      await waitFor('it is asked for', () => asked > before)
      socket.destroy()
    }
    await waitFor('nobody waits for it any more', () => answered === asked)
    for (let i = 0; i < 2; i++) assert.equal((await upstream.call('GET', '/log')).status, 200)
  })

  test('is not read for who asks for its headers alone', async (t) => {
    const store = openMemoryStore()
    let reads = 0
    const log: typeof store.log = (...range) => {
      reads++
      return store.log(...range)
    }
    const upstream = await start(t, { store: { ...store, log }, fleet: randomFleet() })
    const { status, headers, text } = await upstream.call('HEAD', '/log')
    assert.deepEqual([status, headers['content-type'], text], [200, 'application/x-ndjson', ''])
    assert.equal((await upstream.call('HEAD', '/log?since=9')).status, 409)
    assert.equal(reads, 0)
  })

  test('holds nothing up when its reader has fallen asleep, not even a stop', async (t) => {
    const upstream = await upstreamOf(t)
    for (let i = 0; i < 100; i++) assert.ok((await upstream.engine.write([large(i, 200_000)], AUTHOR)).ok)
    const sleeper = (await openSocket(t, upstream)).pause()
    sleeper.write(REQUEST)
    await once(sleeper, 'readable')
    await write(upstream, 'meanwhile')
    assert.equal((await upstream.call('GET', POLL)).status, 200)
    await upstream.app.close()
  })
})
