// Mirrors and the way to their upstream are broken in every way: what they serve is always what the upstream had.
import assert from 'node:assert/strict'
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { ROLES } from '../../src/domain/access/grant.ts'
import { may } from '../../src/domain/access/permissions.ts'
import { openMemoryStore } from '../../src/store/memory.ts'
import { openPostgresStore } from '../../src/store/postgres/postgres.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import { createAuthority } from '../certificates.ts'
import { run, start } from '../every-store.ts'
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
  type MirrorProcess,
  metric,
  mirrorOf,
  POLL,
  pruneOlder,
  randomFleet,
  ready,
  servedBy,
  upstreamOf,
  type Way,
  wayTo,
  write,
} from '../mirrors.ts'
import { temporaryPostgres } from '../postgres-server.ts'
import { AUTHOR, answersOf } from '../random-fleet.ts'
import { createRandom } from '../seeded-random.ts'
import { failToStart, MAIN, READ_TOKEN, type TestService, temporaryFolder, waitFor } from '../service.ts'
import { chooseSeed } from './fleet-load.ts'

const CHANGES = 150
const PLACES = 3

/** Where one mirror runs after the other, and what was seen of them. */
interface Place {
  readonly way: Way
  mirror: MirrorProcess
  seen: number
  polls: number
}

/** What every poll is answered at a revision, by its path; those that are not here are not found. */
type Expected = ReadonlyMap<number, Record<string, { text: string }>>

/** Polls until told to stop: every answer must be what the upstream had at its revision, which never goes back. */
function pollOn(places: readonly Place[], expected: Expected): () => Promise<void> {
  let isStopped = false
  const paths = ['k0', 'k1', 'k2'].flatMap((id) =>
    ['platform-components', 'namespaces', 'rolebindings'].map((endpoint) => `${id}.example.com/${endpoint}`),
  )
  const polling = places.map(async (place, i) => {
    for (let count = i; !isStopped; count++) {
      const path = paths[count % paths.length] as string
      const answer = await place.mirror.call('GET', `/api/v2/flux/clusters/${path}`).catch(() => undefined)
      await sleep(3)
      // It was killed, or has only begun.
      if (!answer || answer.headers['x-revision'] === undefined) continue
      const revision = Number(answer.headers['x-revision'])
      assert.ok(revision >= place.seen, `${path} went from revision ${place.seen} back to ${revision}`)
      place.seen = revision
      place.polls++
      const known = expected.get(revision) ?? assert.fail(`there is no revision ${revision}`)
      assert.equal(answer.status, known[path] ? 200 : 404, answer.text)
      if (known[path]) assert.equal(answer.text, known[path].text, `${path} at revision ${revision}`)
    }
  })
  const all = Promise.all(polling)
  // Whoever stops it hears of it.
  all.catch(() => {})
  return async () => {
    isStopped = true
    await all
  }
}

test('mirrors that are killed, stopped, frozen and cut off under changes serve nothing that never was', async (t) => {
  const seed = chooseSeed()
  t.diagnostic(`FAULTS_SEED=${seed}`)
  const random = createRandom(seed)
  const upstream = await upstreamOf(t)
  const expected = new Map([[1, answersOf(upstream.engine)]])
  const places: Place[] = []
  for (let i = 0; i < PLACES; i++) {
    // The last one is a mirror of a mirror.
    const way = await wayTo(t, i < PLACES - 1 ? upstream : (places[0] as Place).mirror)
    const mirror = await mirrorOf(t, way.url)
    await becomesReady(mirror)
    places.push({ way, mirror, seen: 0, polls: 0 })
  }
  const restart = async (place: Place, signal: NodeJS.Signals): Promise<void> => {
    const code = await place.mirror.stop(signal)
    if (signal === 'SIGTERM') assert.equal(code, 0, place.mirror.output())
    place.mirror = await place.mirror.again()
    if (place === places[0]) places.at(-1)?.way.lead(place.mirror)
  }
  const faults: ((place: Place) => unknown)[] = [
    (place) => restart(place, 'SIGKILL'),
    (place) => restart(place, 'SIGTERM'),
    ({ way }) => way.proxy.cut(),
    ({ way }) => way.proxy.stall(),
    ({ way }) => way.proxy.halve('down'),
    ({ way }) => way.proxy.drop('down'),
    ({ way }) => way.proxy.delay(40),
    async ({ mirror }) => {
      mirror.child.kill('SIGSTOP')
      await sleep(300)
      mirror.child.kill('SIGCONT')
    },
  ]
  const stop = pollOn(places, expected)
  let revision = 1
  for await (revision of changeAtRandom(upstream, random.below(1e9), CHANGES)) {
    expected.set(revision, answersOf(upstream.engine))
    await sleep(random.below(40))
    if (revision % 8 > 0) continue
    const place = random.pick(places)
    if (random.below(3) === 0) place.way.proxy.heal()
    else await random.pick(faults)(place)
  }
  for (const { way } of places) {
    way.proxy.cut()
    way.proxy.heal()
  }
  for (const { mirror } of places) {
    await waitFor('it is there again', async () => (await ready(mirror)).body.revision === revision)
    await checkSame(mirror, upstream, revision)
  }
  await stop()
  for (const { mirror, polls } of places) {
    assert.ok(polls > 50, `${polls} polls`)
    assert.doesNotMatch(mirror.output(), /another history|an older one/)
    assert.equal(await mirror.stop(), 0)
  }
})

test('an upstream that holds back everything is noticed, and so is that it is back', async (t) => {
  const upstream = await upstreamOf(t)
  const { url, proxy } = await wayTo(t, upstream)
  const mirror = await mirrorOf(t, url)
  await becomesReady(mirror)
  const known = await servedBy(mirror, 1)
  proxy.stall()
  await write(upstream, 'meanwhile')
  await sleep(10_000)
  const { body } = await degradesFor(mirror, /it has not said for a while that nothing is missing here/)
  assert.ok(body.age_seconds >= 10)
  assert.equal(await metric(mirror, 'store_up'), 0)
  assert.deepEqual(await servedBy(mirror, 1), known)
  proxy.heal()
  await checkSame(mirror, upstream, 2)
  await becomesReady(mirror)
})

test('what a mirror notes of its own does not make it look newer than it is', async (t) => {
  const upstream = await upstreamOf(t)
  const token = await createToken(upstream, { name: 'cluster-k0', role: 'cluster', cluster: 'k0' })
  const { url, proxy } = await wayTo(t, upstream)
  const mirror = await mirrorOf(t, url)
  await becomesReady(mirror)
  proxy.cut()
  const cut = performance.now()
  await degradesFor(mirror, /it cannot be reached/)
  assert.equal((await mirror.call('GET', POLL, { token })).status, 200)
  await sleep(2000)
  // When the token was used is written down now.
  assert.equal(await mirror.stop(), 0)
  const next = await mirror.again()
  await degradesFor(next, /it cannot be reached/)
  const age = await metric(next, 'state_age_seconds')
  assert.ok(age >= (performance.now() - cut) / 1000, `${age} s`)
})

test('a mirror follows two replicas on one database, whichever of them it reaches', async (t) => {
  const url = await temporaryPostgres(t)
  const open = () => openPostgresStore({ url, write: true })
  const replicas: TestService[] = [
    await start(t, { store: open(), fleet: randomFleet() }),
    await start(t, { store: open(), fleet: {} }),
  ]
  const way = await wayTo(t, replicas[0] as TestService)
  const mirror = await mirrorOf(t, way.url)
  await becomesReady(mirror)
  for (let i = 0; i < 8; i++) {
    const [one, other] = i % 2 ? replicas : replicas.toReversed()
    const revision = await write(one as TestService, `n-${i}`)
    way.lead(i % 3 ? (one as TestService) : (other as TestService))
    await checkSame(mirror, one as TestService, revision)
  }
  assert.doesNotMatch(mirror.output(), /another history|an older one/)
})

describe('a mirror', { concurrency: 2 }, () => {
  test('of a mirror serves the same, and what is written goes through both', async (t) => {
    const upstream = await upstreamOf(t)
    const first = await mirrorOf(t, upstream.url)
    await becomesReady(first)
    const second = await mirrorOf(t, first.url)
    for (const id of ['one', 'two']) {
      const revision = await write(upstream, id)
      for (const mirror of [first, second]) await becomesReady(mirror)
      for (const mirror of [first, second]) await checkSame(mirror, upstream, revision)
    }
  })

  test('of a mirror that cannot follow is as old as that one is, over restarts, and not ready for longer', async (t) => {
    const upstream = await upstreamOf(t)
    const token = await createToken(upstream, { name: 'second', role: 'mirror' })
    const { url, proxy } = await wayTo(t, upstream)
    const first = await mirrorOf(t, url)
    await becomesReady(first)
    const env = { UPSTREAM_TOKEN: token, MAX_STALENESS: '20s' }
    const second = await mirrorOf(t, first.url, env)
    await becomesReady(second)
    proxy.cut()
    await write(upstream, 'meanwhile')
    await sleep(16_000)
    const { body } = await degradesFor(second, /it has not said for a while that nothing is missing here/)
    assert.ok(body.age_seconds >= 15, `${body.age_seconds} s`)
    assert.equal(await metric(second, 'store_up'), 0)
    assert.equal(await second.stop(), 0)
    const next = await second.again()
    await waitFor('it is too old', async () => (await ready(next)).status === 503)
    assert.ok((await metric(next, 'state_age_seconds')) >= 20)
    proxy.heal()
    await checkSame(next, upstream, 3)
    await becomesReady(next)
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
    await checkServesNothing(distrustful)
    const mirror = await mirrorOf(t, url, { NODE_EXTRA_CA_CERTS })
    await becomesReady(mirror)
    assert.equal((await mirror.call('GET', POLL)).status, 200)
  })

  test('whose selector cannot be read does not start', async (t) => {
    const { code, stderr } = await failToStart({
      AUTH_TOKEN: READ_TOKEN,
      UPSTREAM_URL: 'http://127.0.0.1:9',
      UPSTREAM_TOKEN: 'token',
      DATABASE_URL: `sqlite://${join(temporaryFolder(t), 'mirror.db')}`,
      MIRROR_SELECTOR: 'environment in (',
    })
    assert.equal(code, 2)
    assert.match(stderr, /MIRROR_SELECTOR/)
  })

  test('whose upstream breaks off its answers changes nothing', async (t) => {
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

  test('follows an upstream that another one of the same history has replaced', async (t) => {
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

describe('the first copy', { concurrency: 2 }, () => {
  test('is broken off by a stop, which is clean, and goes on after it', async (t) => {
    const upstream = await longUpstream(t)
    const { url, proxy } = await wayTo(t, upstream)
    proxy.delay(150)
    const mirror = await mirrorOf(t, url)
    await beginsToCopy(mirror)
    assert.equal(await mirror.stop(), 0, mirror.output())
    assert.doesNotMatch(mirror.output(), /cannot be followed/)
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

  for (const role of ROLES.filter((role) => !may({ role }, 'mirror'))) {
    test(`is not made with a token of the role ${role}, which is told`, async (t) => {
      const upstream = await upstreamOf(t)
      const UPSTREAM_TOKEN = await createToken(upstream, {
        name: 'wrong',
        role,
        ...(role === 'cluster' && { cluster: 'k0' }),
      })
      const mirror = await mirrorOf(t, upstream.url, { UPSTREAM_TOKEN })
      const reason = `this needs the role mirror, and yours is ${role}`
      await waitFor('it says why', async () => (await ready(mirror)).text.includes(reason))
      await checkServesNothing(mirror)
    })
  }
})

test('a mirror whose token was revoked, or lost its file, goes on with a new one', async (t) => {
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

describe('an upstream that was replaced', { concurrency: 2 }, () => {
  /** Also by a mirror that starts while the wrong one is there. */
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
    await waitFor('it is in the log', () => reason.test(mirror.output()))
    assert.deepEqual(await servedBy(mirror, 6), known)
    await mirror.stop('SIGKILL')
    mirror = await mirror.again()
    const { body } = await degradesFor(mirror, reason)
    assert.ok(body.reason.includes(`delete ${mirror.path} and start it again`), body.reason)
    assert.deepEqual(await servedBy(mirror, 6), known)
    lead(upstream)
    await checkSame(mirror, upstream, await write(upstream, 'last'))
    await becomesReady(mirror)
    assert.equal(await metric(mirror, 'lag_revisions'), 0)
  }

  async function fork(t: TestContext, upstream: TestService, more: number): Promise<TestService> {
    const other = await copyOf(t, upstream, { until: 4 })
    for (let i = 0; i < more; i++) await write(other, `other-${i}`)
    return other
  }

  const OLDER = /it is an older one than what was copied from it/
  test('by an older backup is refused', (t) => checkRefused(t, (upstream) => fork(t, upstream, 0), OLDER))
  test('by an empty one is refused', (t) => checkRefused(t, () => start(t, { fleet: {} }), OLDER))
  for (const [length, more] of [
    ['as long', 2],
    ['longer', 9],
  ] as const) {
    test(`by one that went another way, and is ${length}, is refused`, (t) =>
      checkRefused(t, (upstream) => fork(t, upstream, more), /it has another history: revision 6/))
  }
})

describe('an upstream that gave up its older history', { concurrency: 2 }, () => {
  test('gives new mirrors what is left, which is all there is', async (t) => {
    const store = openMemoryStore()
    const upstream = await start(t, { store, fleet: randomFleet() })
    await run(upstream, ['DELETE', '/clusters/k1?confirm=removals'])
    await pruneOlder(upstream, store)
    for (const env of [{}, { MIRROR_SELECTOR: 'id' }] as Record<string, string>[]) {
      const mirror = await mirrorOf(t, upstream.url, env)
      await becomesReady(mirror)
      await checkSame(mirror, upstream, await write(upstream, `more-${Object.keys(env).length}`))
      await mirror.stop('SIGKILL')
      await checkSame(await mirror.again(), upstream, upstream.engine.state.revision)
    }
  })

  test('is followed on by those who have it; those who were away too long begin anew, as they are told', async (t) => {
    const path = join(temporaryFolder(t), 'fleet.db')
    const upstream = await start(t, { store: openSqliteStore({ path, write: true }), fleet: randomFleet() })
    const { url, proxy } = await wayTo(t, upstream)
    const [present, away] = [await mirrorOf(t, upstream.url), await mirrorOf(t, url)]
    for (const mirror of [present, away]) await becomesReady(mirror)
    const known = await servedBy(away, 1)
    proxy.cut()
    for (const id of ['one', 'two', 'three']) await write(upstream, id)
    await checkSame(present, upstream, 4)
    await sleep(5)
    const before = new Date().toISOString()
    await sleep(5)
    await write(upstream, 'after')
    const env = { ...process.env, DATABASE_URL: `sqlite://${path}` }
    await promisify(execFile)(process.execPath, [MAIN, 'prune-history', '--before', before], { env })
    await checkSame(present, upstream, await write(upstream, 'more'))
    proxy.heal()
    const { body } = await degradesFor(away, /pruned what is before it, and this store is at 1/)
    assert.deepEqual(await servedBy(away, 1), known)
    assert.equal(await away.stop(), 0)
    const [, told] = /delete (\S+) and start it again/.exec(body.reason) ?? []
    rmSync(told as string)
    const next = await away.again()
    await becomesReady(next)
    await checkSame(next, upstream, 6)
  })
})

describe('a mirror of some clusters', { concurrency: 2 }, () => {
  test('that it asks for holds nothing of the others, over restarts', async (t) => {
    const upstream = await upstreamOf(t)
    const marker = 'nobody-in-dev-may-see-this'
    let mirror = await mirrorOf(t, upstream.url, { MIRROR_SELECTOR: 'environment=dev' })
    await becomesReady(mirror)
    for (let i = 0; i < 6; i++) {
      const environment = i % 2 ? 'dev' : 'prod'
      await run(upstream, ['PATCH', '/clusters/k0', { environment }])
      const labels = { marker: environment === 'dev' ? 'none' : marker }
      const revision = await run(upstream, [
        'PATCH',
        '/clusters/k1',
        { labels: { marker: `${marker}-${i}` } },
      ])
      const [here, there] = [await servedBy(mirror, revision), await servedBy(upstream, revision)]
      for (const url of Object.keys(there).filter((each) => each.includes('/k0.')))
        if (environment === 'dev') assert.deepEqual(here[url], there[url])
        else assert.equal(here[url]?.status, 404)
      assert.equal(here[POLL.replace('k0', 'k1')]?.status, 404)
      await run(upstream, ['PATCH', '/clusters/k0', { labels }])
      assert.ok(!bytesOf(mirror).includes(marker))
      if (environment === 'prod')
        await run(upstream, ['PATCH', '/clusters/k0', { labels: { marker: 'none' } }])
      if (i % 3 > 0) continue
      await mirror.stop(i ? 'SIGKILL' : 'SIGTERM')
      mirror = await mirror.again()
    }
  })

  test('refuses another selector on the same file, and says so', async (t) => {
    const upstream = await upstreamOf(t)
    const first = await mirrorOf(t, upstream.url, { MIRROR_SELECTOR: 'environment=dev' })
    await becomesReady(first)
    const known = await servedBy(first, 1)
    await first.stop()
    for (const [MIRROR_SELECTOR, reason] of [
      ['environment=prod', /it holds the clusters with "environment=prod", but this store holds those with/],
      ['', /it has another history.*it holds only the clusters with "environment=dev"/],
    ] as const) {
      const mirror = await first.again({ MIRROR_SELECTOR })
      const { body } = await degradesFor(mirror, reason)
      assert.ok(body.reason.includes(`delete ${mirror.path}`))
      assert.deepEqual(await servedBy(mirror, 1), known)
      await mirror.stop()
    }
    const back = await first.again()
    await checkSame(back, back, 1)
    await becomesReady(back)
  })
})

/** A disk of its own that is soon full; nothing where that cannot be. */
function smallDisk(t: TestContext): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-'))
  const isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', folder]).status === 0
  t.after(() => {
    if (isMounted) execFileSync('umount', ['-l', folder])
    rmdirSync(folder)
  })
  return isMounted ? folder : undefined
}

test('a mirror on a full disk goes on serving, and goes on following once there is room', async (t) => {
  const folder = smallDisk(t)
  if (folder === undefined) return t.skip('no disk can be made here')
  const upstream = await upstreamOf(t)
  const ballast = join(folder, 'ballast')
  const fill = () => execFileSync('sh', ['-c', `cat /dev/zero > '${ballast}' || true`], { stdio: 'ignore' })
  fill()
  const mirror = await mirrorOf(t, upstream.url, { DATABASE_URL: `sqlite://${join(folder, 'mirror.db')}` })
  await waitFor('it says why', async () => /disk is full/.test((await ready(mirror)).text))
  await checkServesNothing(mirror)
  rmSync(ballast)
  await becomesReady(mirror)
  const known = await servedBy(mirror, 1)
  fill()
  for (let i = 0; i < 3; i++) assert.ok((await upstream.engine.write([large(i, 100_000)], AUTHOR)).ok)
  await degradesFor(mirror, /disk is full/)
  assert.deepEqual(await servedBy(mirror, 1), known)
  rmSync(ballast)
  await checkSame(mirror, upstream, 4)
  await becomesReady(mirror)
})
