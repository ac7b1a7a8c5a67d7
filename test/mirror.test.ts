import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { Command } from '../src/domain/command.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { openSqliteStore } from '../src/store/sqlite.ts'
import { pruneLog, verifyLog } from '../src/store/verify-log.ts'
import { createAuthority } from './certificates.ts'
import { run, start } from './every-store.ts'
import {
  becomesReady,
  changeAtRandom,
  checkSame,
  copyOf,
  createToken,
  degradesFor,
  type MirrorProcess,
  metric,
  mirrorOf,
  randomFleet,
  ready,
  revisionIn,
  servedBy,
  wayTo,
  write,
} from './mirrors.ts'
import { AUTHOR } from './random-fleet.ts'
import { failToStart, READ_TOKEN, type TestService, temporaryFolder, waitFor } from './service.ts'

const POLL = '/api/v2/flux/clusters/k0.example.com/namespaces'

/** A value of so many characters that is another one each time. */
function large(i: number, size: number): Command {
  const patch = { patches: { a: { text: `${i} `.padEnd(size, 'text') } } }
  return { op: 'patch', type: 'clusters', id: 'k0', patch, format: 'merge', path: '' }
}

function upstreamOf(t: TestContext): Promise<TestService> {
  return start(t, { fleet: randomFleet() })
}

describe('a mirror', { concurrency: 3 }, () => {
  test('serves byte for byte what its upstream serves at every revision, over restarts of its own', async (t) => {
    const upstream = await upstreamOf(t)
    let mirror = await mirrorOf(t, upstream.url)
    let revision = 1
    await checkSame(mirror, upstream, revision)
    for await (revision of changeAtRandom(upstream, 42, 40)) {
      await checkSame(mirror, upstream, revision)
      if (revision % 15 > 0) continue
      await mirror.stop(revision % 2 ? 'SIGKILL' : 'SIGTERM')
      mirror = await mirror.again()
    }
    await checkSame(mirror, upstream, revision)
    assert.equal(await mirror.stop(), 0, mirror.output())
    const copy = openSqliteStore({ path: mirror.path, write: false })
    t.after(() => copy.close())
    const { verified, hash } = await verifyLog(copy)
    assert.deepEqual({ verified, hash }, { verified: true, hash: (await upstream.engine.past.verify()).hash })
  })

  test('tells clusters that were deleted or purged what its upstream tells them', async (t) => {
    const upstream = await upstreamOf(t)
    const mirror = await mirrorOf(t, upstream.url)
    for (const url of ['/clusters/k1', '/clusters/k1?purge=true', '/clusters/k0']) {
      const revision = await run(upstream, [
        'DELETE',
        `${url}${url.includes('?') ? '&' : '?'}confirm=removals`,
      ])
      await checkSame(mirror, upstream, revision)
    }
    assert.equal((await mirror.call('GET', POLL)).text, '{"inputs":[]}')
    assert.equal((await mirror.call('GET', POLL.replace('k0', 'k1'))).status, 404)
  })

  test('takes the tokens of its upstream, until they are revoked there', async (t) => {
    const upstream = await upstreamOf(t)
    const mirror = await mirrorOf(t, upstream.url)
    const token = await createToken(upstream, { name: 'cluster-k0', role: 'cluster', cluster: 'k0' })
    const poll = (of: string) => mirror.call('GET', POLL.replace('k0', of), { token })
    await mirror.call('GET', `${POLL}?min_revision=2`)
    assert.equal((await poll('k0')).status, 200)
    assert.equal((await poll('k1')).status, 403)
    await run(upstream, ['DELETE', '/tokens/cluster-k0'])
    await mirror.call('GET', `${POLL}?min_revision=3`)
    assert.equal((await poll('k0')).status, 401)
  })

  test('is read-only, and says how it stands', async (t) => {
    const upstream = await upstreamOf(t)
    const mirror = await mirrorOf(t, upstream.url)
    await mirror.call('GET', `${POLL}?min_revision=${await write(upstream, 'more')}`)
    assert.equal((await mirror.call('POST', '/namespaces', { body: { id: 'x' } })).status, 405)
    assert.deepEqual((await ready(mirror)).body, { status: 'ready', mode: 'read-only', revision: 2 })
    assert.equal(await metric(mirror, 'revision'), 2)
    assert.equal(await metric(mirror, 'store_revision'), 2)
    assert.equal(await metric(mirror, 'lag_revisions'), 0)
    assert.equal(await metric(mirror, 'state_age_seconds'), 0)
    assert.equal(await metric(mirror, 'store_up'), 1)
  })

  test('of a mirror serves the same, and what is written goes through both', async (t) => {
    const upstream = await upstreamOf(t)
    const first = await mirrorOf(t, upstream.url)
    await becomesReady(first)
    const second = await mirrorOf(t, first.url)
    await becomesReady(second)
    for (const id of ['one', 'two']) {
      const revision = await write(upstream, id)
      for (const mirror of [first, second]) await checkSame(mirror, upstream, revision)
    }
  })

  test('follows over TLS, and takes no certificate that it cannot trust', async (t) => {
    const authority = await createAuthority('Fleet')
    const { cert, key } = await authority.issue({ ipAddresses: ['127.0.0.1'] })
    const tls = { cert, key, minVersion: 'TLSv1.2', requestCert: false, rejectUnauthorized: false } as const
    const upstream = await start(t, { fleet: randomFleet(), transport: { tls } })

    const url = upstream.url.replace('http:', 'https:')
    const NODE_EXTRA_CA_CERTS = join(temporaryFolder(t), 'ca.pem')
    writeFileSync(NODE_EXTRA_CA_CERTS, authority.pem)
    const distrustful = await mirrorOf(t, url)
    await waitFor('it says why', async () => /certificate/.test((await ready(distrustful)).text))
    assert.equal((await distrustful.call('GET', POLL)).status, 503)
    const mirror = await mirrorOf(t, url, { NODE_EXTRA_CA_CERTS })
    await becomesReady(mirror)
    assert.equal((await mirror.call('GET', POLL)).status, 200)
  })
})

test('a mirror with settings that make no sense does not start, and says everything that is wrong', async () => {
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

test('a mirror whose selector cannot be read, or whose file is none, does not start', async (t) => {
  const path = join(temporaryFolder(t), 'mirror.db')
  const env = {
    AUTH_TOKEN: READ_TOKEN,
    UPSTREAM_URL: 'http://127.0.0.1:9',
    UPSTREAM_TOKEN: 'token',
    DATABASE_URL: `sqlite://${path}`,
  }
  const unread = await failToStart({ ...env, MIRROR_SELECTOR: 'environment in (' })
  assert.equal(unread.code, 2)
  assert.match(unread.stderr, /MIRROR_SELECTOR/)
  writeFileSync(path, 'this is not a database, whatever its name says'.repeat(100))
  const broken = await failToStart(env)
  assert.equal(broken.code, 2)
  assert.ok(broken.stderr.includes(path), broken.stderr)
  assert.doesNotMatch(broken.stderr, /\n\s+at /)
})

describe('the first copy', { concurrency: 3 }, () => {
  /** Enough that a copy is written down in several steps. */
  async function longUpstream(t: TestContext): Promise<TestService> {
    const upstream = await upstreamOf(t)
    for (let i = 0; i < 999; i++) await upstream.engine.write([large(i, 500)], AUTHOR)
    assert.equal(upstream.engine.state.revision, 1000)
    return upstream
  }

  /** Nothing but that it lives, and that there is nothing yet. */
  async function checkServesNothing(mirror: MirrorProcess): Promise<void> {
    for (const url of [POLL, '/api/v2/flux/clusters', '/whoami', '/log', '/watch', '/openapi.json']) {
      const { status, headers } = await mirror.call('GET', url)
      assert.equal(status, 503, url)
      assert.match(String(headers['retry-after']), /^\d+$/)
    }
    const { status, body } = await ready(mirror)
    assert.equal(status, 503)
    assert.match(body.message, /has not copied everything from its upstream yet/)
    assert.equal((await mirror.call('GET', '/health', { token: null })).status, 200)
    assert.equal(await metric(mirror, 'store_up'), 0)
  }

  async function beginsToCopy(mirror: MirrorProcess): Promise<void> {
    const draft = `${mirror.path}.copy`
    await waitFor('a part is copied', () => revisionIn(draft) > 0)
    assert.ok(revisionIn(draft) < 1000, 'and not everything')
  }

  test('is served only once it is whole, however often the mirror is killed meanwhile', async (t) => {
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
    assert.deepEqual(
      readdirSync(dirname(mirror.path)).filter((name) => name.includes('.copy')),
      [],
    )
  })

  test('is broken off by a stop, which is clean and soon, and goes on after it', async (t) => {
    const upstream = await longUpstream(t)
    const { url, proxy } = await wayTo(t, upstream)
    proxy.delay(150)
    const mirror = await mirrorOf(t, url)
    await beginsToCopy(mirror)
    assert.equal(await mirror.stop(), 0, mirror.output())
    assert.doesNotMatch(mirror.output(), /cannot be followed/)
    assert.ok(!existsSync(mirror.path))
    proxy.heal()
    const next = await mirror.again()
    await becomesReady(next)
    await checkSame(next, upstream, 1000)
  })

  test('that was begun from another upstream is begun anew', async (t) => {
    const [upstream, other] = [await longUpstream(t), await upstreamOf(t)]
    const { url, proxy, lead } = await wayTo(t, upstream)
    proxy.delay(150)
    const mirror = await mirrorOf(t, url)
    await beginsToCopy(mirror)
    lead(other)
    await becomesReady(mirror)
    await checkSame(mirror, other, 1)
  })

  test('waits for an upstream that is not there yet', async (t) => {
    const upstream = await upstreamOf(t)
    const { url, proxy } = await wayTo(t, upstream)
    proxy.cut()
    const mirror = await mirrorOf(t, url)
    await waitFor('it says why', async () => /it cannot be reached/.test((await ready(mirror)).text))
    await checkServesNothing(mirror)
    proxy.heal()
    await becomesReady(mirror)
    await checkSame(mirror, upstream, 1)
  })
})

describe('an upstream that cannot be followed', { concurrency: 3 }, () => {
  test('stops no poll: the mirror tells its age, starts again from its file, and catches up by itself', async (t) => {
    const upstream = await upstreamOf(t)
    const { url, proxy } = await wayTo(t, upstream)
    let mirror = await mirrorOf(t, url)
    await becomesReady(mirror)
    const known = await servedBy(mirror, 1)
    proxy.cut()
    for (const id of ['one', 'two']) await write(upstream, id)
    await degradesFor(mirror, /the upstream cannot be followed: it cannot be reached/)
    assert.equal(await metric(mirror, 'store_up'), 0)
    assert.match(mirror.output(), /"level":50.*the upstream cannot be followed/)
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
    await becomesReady(mirror)
    await checkSame(mirror, upstream, 3)
    assert.equal(await metric(mirror, 'state_age_seconds'), 0)
    assert.match(mirror.output(), /the upstream can be followed again/)
  })

  test('whose answers break off in the middle changes nothing', async (t) => {
    const upstream = await upstreamOf(t)
    const { url, proxy } = await wayTo(t, upstream)
    const mirror = await mirrorOf(t, url)
    await becomesReady(mirror)
    const known = await servedBy(mirror, 1)
    proxy.halve('down')
    const revision = await write(upstream, 'more')
    await degradesFor(mirror, /cut off|cannot be reached/)
    assert.deepEqual(await servedBy(mirror, 1), known)
    proxy.heal()
    await checkSame(mirror, upstream, revision)
    await becomesReady(mirror)
  })

  for (const role of ['viewer', 'editor']) {
    test(`with a token of the role ${role} is told of`, async (t) => {
      const upstream = await upstreamOf(t)
      const UPSTREAM_TOKEN = await createToken(upstream, { name: 'wrong', role })
      const mirror = await mirrorOf(t, upstream.url, { UPSTREAM_TOKEN })
      const reason = `this needs the role mirror, and yours is ${role}`
      await waitFor('it says why', async () => (await ready(mirror)).text.includes(reason))
      assert.equal((await ready(mirror)).status, 503)
    })
  }

  test('because the token was revoked or its file is gone goes on with a new one', async (t) => {
    const upstream = await upstreamOf(t)
    const UPSTREAM_TOKEN_FILE = join(temporaryFolder(t), 'token')
    writeFileSync(UPSTREAM_TOKEN_FILE, await createToken(upstream, { name: 'site', role: 'mirror' }))
    const { url, lead } = await wayTo(t, upstream)
    const mirror = await mirrorOf(t, url, { UPSTREAM_TOKEN: '', UPSTREAM_TOKEN_FILE })
    await becomesReady(mirror)
    await run(upstream, ['DELETE', '/tokens/site'])
    await degradesFor(mirror, /it refuses UPSTREAM_TOKEN: is it still valid there\?/)
    writeFileSync(UPSTREAM_TOKEN_FILE, '')
    lead(upstream)
    await degradesFor(mirror, /UPSTREAM_TOKEN_FILE .* holds no token/)
    writeFileSync(UPSTREAM_TOKEN_FILE, await createToken(upstream, { name: 'site', role: 'mirror' }))
    lead(upstream)
    await becomesReady(mirror)
  })
})

describe('an upstream that was replaced', { concurrency: 3 }, () => {
  /** Another one has taken its place: it is refused, and told of; then the right one is back. */
  async function checkRefused(
    t: TestContext,
    makeOther: (upstream: TestService) => Promise<TestService>,
    reason: RegExp,
  ): Promise<void> {
    const upstream = await upstreamOf(t)
    for (let i = 0; i < 5; i++) await write(upstream, `m${i}`)
    const { url, lead } = await wayTo(t, upstream)
    let mirror = await mirrorOf(t, url)
    await becomesReady(mirror)
    const known = await servedBy(mirror, 6)
    lead(await makeOther(upstream))
    await degradesFor(mirror, reason)
    const message = `delete ${mirror.path} and start it again`
    assert.ok((await ready(mirror)).body.reason.includes(message))
    assert.ok(mirror.output().includes(message), 'the log says it too')
    assert.equal(await metric(mirror, 'store_up'), 0)
    assert.deepEqual(await servedBy(mirror, 6), known)
    await mirror.stop('SIGKILL')
    mirror = await mirror.again()
    await degradesFor(mirror, reason)
    assert.deepEqual(await servedBy(mirror, 6), known)
    lead(upstream)
    await becomesReady(mirror)
    await checkSame(mirror, upstream, await write(upstream, 'last'))
    assert.equal(await metric(mirror, 'store_revision'), 7)
    assert.equal(await metric(mirror, 'lag_revisions'), 0)
  }

  async function fork(t: TestContext, upstream: TestService, more: number): Promise<TestService> {
    const other = await copyOf(t, upstream, { until: 4 })
    for (let i = 0; i < more; i++) await write(other, `other-${i}`)
    return other
  }

  test('by an older backup is refused', (t) =>
    checkRefused(t, (upstream) => fork(t, upstream, 0), /it is an older one than what was copied from it/))

  test('by one that went another way, and is as long, is refused', (t) =>
    checkRefused(t, (upstream) => fork(t, upstream, 2), /it has another history: revision 6/))

  test('by one that went another way, and is longer, is refused', (t) =>
    checkRefused(t, (upstream) => fork(t, upstream, 9), /it has another history: revision 6/))

  test('by an empty one is refused', (t) =>
    checkRefused(t, () => start(t, { fleet: {} }), /it is an older one than what was copied from it/))

  test('by one of the same history is none', async (t) => {
    const upstream = await upstreamOf(t)
    const { url, lead } = await wayTo(t, upstream)
    const mirror = await mirrorOf(t, url)
    await becomesReady(mirror)
    const other = await copyOf(t, upstream)
    lead(other)
    await checkSame(mirror, other, await write(other, 'more'))
    assert.doesNotMatch(mirror.output(), /another history/)
  })
})

describe('an upstream that gave up its older history', { concurrency: 2 }, () => {
  async function prune(upstream: TestService, store: Parameters<typeof pruneLog>[0]): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 5))
    const before = new Date().toISOString()
    await new Promise((resolve) => setTimeout(resolve, 5))
    await write(upstream, 'after')
    const pruned = await pruneLog(store, before)
    assert.ok(pruned.ok && pruned.pruned.revisions > 0)
  }

  test('gives new mirrors what is left, which is all there is', async (t) => {
    const store = openMemoryStore()
    const upstream = await start(t, { store, fleet: randomFleet() })
    await run(upstream, ['DELETE', '/clusters/k1?confirm=removals'])
    await prune(upstream, store)
    const mirror = await mirrorOf(t, upstream.url)
    await checkSame(mirror, upstream, 3)
    await checkSame(mirror, upstream, await write(upstream, 'more'))
    const again = await mirror.again()
    await checkSame(again, upstream, 4)
  })

  test('is followed on by those who have it, and tells those who were away too long what to do', async (t) => {
    const store = openMemoryStore()
    const upstream = await start(t, { store, fleet: randomFleet() })
    const { url, proxy } = await wayTo(t, upstream)
    const [present, away] = [await mirrorOf(t, upstream.url), await mirrorOf(t, url)]
    for (const mirror of [present, away]) await becomesReady(mirror)
    const known = await servedBy(away, 1)
    proxy.cut()
    for (const id of ['one', 'two', 'three']) await write(upstream, id)
    await checkSame(present, upstream, 4)
    await prune(upstream, store)
    await checkSame(present, upstream, 5)
    proxy.heal()
    const { body } = await degradesFor(away, /gave up what is before it, and this store is at 1/)
    assert.ok(body.reason.includes(`stop this mirror, delete ${away.path} and start it again`), body.reason)
    assert.deepEqual(await servedBy(away, 1), known)
    assert.equal(await away.stop(), 0)
    const next = await mirrorOf(t, url)
    assert.notEqual(next.path, away.path)
    await checkSame(next, upstream, 5)
  })
})

describe('a mirror of some clusters', { concurrency: 2 }, () => {
  const MARKER = 'nobody-in-dev-may-see-this'

  async function upstreamWithSecrets(t: TestContext): Promise<TestService> {
    const upstream = await upstreamOf(t)
    await run(
      upstream,
      ['PATCH', '/clusters/k1', { labels: { secret: MARKER } }],
      [
        'POST',
        '/clusters',
        {
          id: 'k2',
          cluster_name: MARKER,
          cluster_dns: 'k2.example.com',
          environment: 'prod',
          namespaces: [{ id: 'n0' }],
        },
      ],
      ['DELETE', '/clusters/k2?confirm=removals'],
    )
    return upstream
  }

  /** The database and everything beside it. */
  function bytesOf({ path }: MirrorProcess): string {
    return readdirSync(dirname(path))
      .filter((name) => name.startsWith(basename(path)))
      .map((name) => readFileSync(join(dirname(path), name), 'latin1'))
      .join()
  }

  for (const [how, settings] of [
    ['it asks for them', async () => ({ MIRROR_SELECTOR: 'environment=dev' })],
    [
      'its token allows no others',
      async (upstream: TestService) => ({
        UPSTREAM_TOKEN: await createToken(upstream, {
          name: 'dev',
          role: 'mirror',
          selector: 'environment=dev',
        }),
      }),
    ],
  ] as const) {
    test(`never holds anything of the others, when ${how}`, async (t) => {
      const upstream = await upstreamWithSecrets(t)
      const mirror = await mirrorOf(t, upstream.url, await settings(upstream))
      await becomesReady(mirror)
      const check = async (revision: number, served: readonly string[]): Promise<void> => {
        const [here, there] = [await servedBy(mirror, revision), await servedBy(upstream, revision)]
        for (const url of Object.keys(there).filter((each) => each.includes('.example.com/'))) {
          const isServed = served.some((name) => url.includes(`/${name}/`))
          if (isServed) assert.deepEqual(here[url], there[url])
          else assert.equal((here[url] as { status: number }).status, 404, url)
        }
        assert.ok(!bytesOf(mirror).includes(MARKER))
      }
      await check(upstream.engine.state.revision, ['k0.example.com'])
      await check(await run(upstream, ['PATCH', '/clusters/k1', { labels: { more: MARKER } }]), [
        'k0.example.com',
      ])
      await check(await run(upstream, ['PATCH', '/clusters/k0', { environment: 'prod' }]), [])
      await check(await run(upstream, ['PATCH', '/clusters/k0', { labels: { secret: MARKER } }]), [])
      await run(upstream, ['PATCH', '/clusters/k0', { labels: { secret: 'none' } }])
      await check(await run(upstream, ['PATCH', '/clusters/k0', { environment: 'dev' }]), ['k0.example.com'])
      await mirror.stop()
      const again = await mirror.again()
      const revision = await write(upstream, 'more')
      const name = `${POLL}?min_revision=${revision}`
      assert.equal((await again.call('GET', name)).text, (await upstream.call('GET', name)).text)
    })
  }

  test('refuses another selector on the same file, and says so', async (t) => {
    const upstream = await upstreamOf(t)
    const first = await mirrorOf(t, upstream.url, { MIRROR_SELECTOR: 'environment=dev' })
    await becomesReady(first)
    const known = await servedBy(first, 1)
    await first.stop()
    for (const [MIRROR_SELECTOR, reason] of [
      ['environment=prod', /it holds the clusters with "environment=prod", but this store holds those with/],
      ['', /another history.*it holds only the clusters with "environment=dev"/],
    ] as const) {
      const mirror = await first.again({ MIRROR_SELECTOR })
      const { body } = await degradesFor(mirror, reason)
      assert.ok(body.reason.includes(`delete ${mirror.path}`))
      assert.deepEqual(await servedBy(mirror, 1), known)
      await mirror.stop()
    }
    const back = await first.again()
    await becomesReady(back)
  })
})

describe('the log of an upstream', () => {
  test('is given to as many as before, when those who asked for it left at once', async (t) => {
    const upstream = await upstreamOf(t)
    const { hostname, port } = new URL(upstream.url)
    for (let i = 0; i < 150; i++) {
      const socket = connect(Number(port), hostname)
      await once(socket, 'connect')
      socket.write(
        `GET /log HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${i % 2 ? 'test-write-token' : 'wrong'}\r\n\r\n`,
      )
      await new Promise((resolve) => setImmediate(resolve))
      socket.destroy()
    }
    assert.equal((await upstream.call('GET', '/log')).status, 200)
  })

  test('is not needed by those who stop: a reader that has fallen asleep holds nobody up', async (t) => {
    const upstream = await upstreamOf(t)
    for (let i = 0; i < 100; i++) assert.ok((await upstream.engine.write([large(i, 200_000)], AUTHOR)).ok)
    const { hostname, port } = new URL(upstream.url)
    const sleeper = connect(Number(port), hostname).pause()
    t.after(() => sleeper.destroy())
    sleeper.write('GET /log HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer test-write-token\r\n\r\n')
    await once(sleeper, 'readable')
    await write(upstream, 'meanwhile')
    assert.equal((await upstream.call('GET', POLL)).status, 200)
    await upstream.app.close()
  })
})
