// The stream of revisions, seen by those who watch: nothing lost, nothing twice, and nobody in the way of others.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { Json } from '../src/base/json.ts'
import { ROLES } from '../src/domain/access/grant.ts'
import type { AccessRules } from '../src/http/auth/access-rules.ts'
import { createOidc, type Oidc } from '../src/http/auth/oidc.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { type Store, StoreError } from '../src/store/store.ts'
import { createAuthority } from './certificates.ts'
import { assertProblem, pathsIn, run, STORES, start } from './every-store.ts'
import { startOidcIssuer } from './oidc-issuer.ts'
import {
  READ_TOKEN,
  type ServiceProcess,
  spawnService,
  startService,
  type TestService,
  temporaryFolder,
  WRITE_TOKEN,
  waitFor,
} from './service.ts'

interface Seen {
  readonly id: number
  readonly event: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
  readonly data: any
}

interface Watching {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** Everything that came, as it came. */
  text(): string
  /** The whole events. */
  events(): Seen[]
  revisions(): number[]
  /** Whether the stream came to an end, cleanly or not. */
  end(): 'ended' | 'cut' | undefined
  cut(): void
}

interface How {
  readonly since?: number | string
  readonly last?: number | string
  readonly token?: string
}

/** Opens a stream, and reads it until the test is over. */
async function watch(
  t: TestContext,
  { url }: Pick<TestService, 'url'>,
  { since, last, token = READ_TOKEN }: How = {},
): Promise<Watching> {
  const target = new URL('/watch', url)
  if (since !== undefined) target.searchParams.set('since', String(since))
  const headers = {
    authorization: `Bearer ${token}`,
    ...(last !== undefined && { 'last-event-id': String(last) }),
  }
  const sent = request(target, { headers, agent: false }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  let text = ''
  let end: 'ended' | 'cut' | undefined
  response.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  response.on('end', () => {
    end ??= 'ended'
  })
  response.on('error', () => {
    end ??= 'cut'
  })
  t.after(() => sent.destroy())
  const events = (): Seen[] => eventsIn(text)
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text: () => text,
    events,
    revisions: () => events().map(({ id }) => id),
    end: () => end,
    cut: () => sent.destroy(),
  }
}

function eventsIn(text: string): Seen[] {
  const blocks = text.split('\n\n').slice(0, -1)
  return blocks.flatMap((block) => {
    const found = /^id: (\d+)\nevent: (\w+)\ndata: (.*)$/.exec(block)
    if (!found && block.includes('data')) assert.fail(`strange event: ${block.slice(0, 200)}`)
    return found ? [{ id: Number(found[1]), event: found[2] ?? '', data: JSON.parse(found[3] ?? '') }] : []
  })
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i)
}

/** One revision. */
function edit(service: TestService, value: Json): Promise<number> {
  return run(service, ['PATCH', '/namespaces/team-b', { annotations: { value } }])
}

async function edits(service: TestService, count: number): Promise<number> {
  for (let i = 0; i < count; i++) await edit(service, `${Math.random()}`)
  return service.engine.state.revision
}

async function metric({ call }: Pick<TestService, 'call'>, name: string): Promise<number> {
  const { text } = await call('GET', '/metrics')
  return Number(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'm').exec(text)?.[1])
}

/** Asks for a stream, and never reads it. */
function connectIdly(t: TestContext, { url }: TestService, path: string, token = READ_TOKEN): void {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  t.after(() => socket.destroy())
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`)
}

async function giveUp(store: Store, revision: number): Promise<void> {
  const hash = (await store.hashOf(revision)) ?? assert.fail(`there is no revision ${revision}`)
  await store.prune({ revision, time: new Date().toISOString(), hash, state: '' })
}

async function arrived(watching: Watching, revision: number): Promise<void> {
  await waitFor(`revision ${revision} is seen`, () => watching.revisions().includes(revision))
}

for (const [name, open] of Object.entries(STORES)) {
  describe(`with the ${name} store`, () => {
    test('each revision after the one that the watcher has comes once, as a list of revisions shows it', async (t) => {
      const service = await start(t, { store: await open(t) })
      await edits(service, 30)
      const operations = range(1, 25).map((i) => ({
        op: 'create',
        type: 'namespaces',
        document: { id: `n${i}` },
      }))
      await run(service, ['POST', '/batch', { operations }])
      const watching = await watch(t, service, { since: 3 })
      const last = await edits(service, 5)
      await arrived(watching, last)
      assert.deepEqual(watching.revisions(), range(4, last))
      const { body } = await service.call('GET', '/revisions?limit=1000')
      const listed = body.filter(({ revision }: { revision: number }) => revision > 3).toReversed()
      assert.deepEqual(
        watching.events().map(({ data }) => data),
        listed,
      )
      const batch = watching.events().find(({ data }) => data.change_count === 25)
      assert.equal(batch?.data.changes.length, 20)
      assert.ok(watching.events().every(({ event }) => event === 'revision'))
    })

    test('many writers at once, watchers from everywhere: the same order for all, without gaps', async (t) => {
      const service = await start(t, { store: await open(t) })
      await edits(service, 25)
      const starts = [0, 1, 7, 20, 26, undefined]
      const early = await Promise.all(
        starts.map((since) => watch(t, service, since === undefined ? {} : { since })),
      )
      const writes = range(1, 60).map((i) => service.call('POST', '/namespaces', { body: { id: `n-${i}` } }))
      const during: Watching[] = []
      for (let i = 0; i < 6; i++) {
        await Promise.race(writes.slice(i * 10, i * 10 + 10))
        during.push(await watch(t, service, { since: i * 5 }))
      }
      for (const { status, text } of await Promise.all(writes)) assert.equal(status, 201, text)
      const last = service.engine.state.revision
      assert.equal(last, 86)
      for (const watching of [...early, ...during]) await arrived(watching, last)
      for (const [i, watching] of early.entries())
        assert.deepEqual(watching.revisions(), range((starts[i] ?? 26) + 1, last))
      for (const [i, watching] of during.entries())
        assert.deepEqual(watching.revisions(), range(i * 5 + 1, last))
      const texts = new Set(early.map((watching) => JSON.stringify(watching.events().slice(-60))))
      assert.equal(texts.size, 1)
    })

    test('cut anywhere and resumed by Last-Event-ID, nothing is lost and nothing comes twice', async (t) => {
      const service = await start(t, { store: await open(t) })
      const seen: number[] = []
      let last = 0
      let writing = true
      const writer = edits(service, 120).finally(() => {
        writing = false
      })
      for (let round = 0; round < 200; round++) {
        const goal = writing ? Math.floor(Math.random() * 12) : Number.POSITIVE_INFINITY
        const watching = await watch(t, service, { since: 1, last })
        assert.equal(watching.status, 200)
        await waitFor('some have come', () => {
          const count = watching.revisions().length
          return count >= goal || last + count >= 121
        })
        watching.cut()
        // What came after the last whole event is as if it had not.
        const revisions = watching.revisions()
        seen.push(...revisions)
        last = revisions.at(-1) ?? last
        if (last === 121) break
      }
      await writer
      assert.deepEqual(seen, range(1, 121))
    })

    test('history that was given up is 410, and what is left comes whole', async (t) => {
      const store = await open(t)
      const service = await start(t, { store })
      await edits(service, 10)
      await giveUp(store, 6)
      assertProblem(await service.call('GET', '/watch?since=5'), 410, 'gone')
      const told = await service.call('GET', '/watch', { headers: { 'last-event-id': '2' } })
      assertProblem(told, 410, 'gone')
      assert.match(told.body.message, /^Last-Event-ID is revision 2, and history is kept from revision 6/)
      const watching = await watch(t, service, { since: 6 })
      await arrived(watching, 11)
      assert.deepEqual(watching.revisions(), range(7, 11))
    })

    // All of what is read next is gone, or only the older part of it.
    for (const last of [45, 30])
      test(`history that is given up up to revision ${last} under way ends the stream before the gap`, async (t) => {
        const store = await open(t)
        let reads = 0
        const history: Store['history'] = async (query) => {
          if (++reads === 2) await giveUp(store, last)
          return store.history(query)
        }
        const service = await start(t, { store: { ...store, history } })
        await edits(service, 49)
        const watching = await watch(t, service, { since: 0 })
        await waitFor('it has ended', () => watching.end() === 'ended')
        const seen = watching.revisions()
        assert.ok(seen.length > 0 && seen.length < last, `${seen.length}`)
        assert.deepEqual(seen, range(1, seen.length))
        assertProblem(
          await service.call('GET', '/watch', { headers: { 'last-event-id': '20' } }),
          410,
          'gone',
        )
      })
  })
}

describe('how a stream begins', () => {
  test('at once with a hint when to come back, where it stands, and headers that keep proxies from holding it', async (t) => {
    const service = await start(t)
    await edits(service, 2)
    const watching = await watch(t, service)
    await waitFor('the first bytes are there', () => watching.text().endsWith('\n\n'))
    const [, retry] = /^retry: (\d+)\nid: 3\n: revision 3\n\n$/.exec(watching.text()) ?? []
    assert.ok(Number(retry) >= 1000 && Number(retry) <= 3000, watching.text())
    assert.match(String(watching.headers['content-type']), /^text\/event-stream/)
    assert.equal(watching.headers['cache-control'], 'no-store')
    assert.equal(watching.headers['x-accel-buffering'], 'no')
    assert.equal(watching.headers['x-revision'], '3')
    assert.ok(watching.headers['x-request-id'])
    assert.equal(watching.headers['x-content-type-options'], 'nosniff')
    await edit(service, 'now')
    await arrived(watching, 4)
    assert.deepEqual(watching.revisions(), [4])
  })

  test('clients do not all get the same hint when to come back', async (t) => {
    const service = await start(t)
    const hints = new Set<string>()
    for (let i = 0; i < 20; i++) {
      const watching = await watch(t, service)
      await waitFor('the first bytes are there', () => watching.text().endsWith('\n\n'))
      hints.add(watching.text().split('\n')[0] ?? '')
      watching.cut()
    }
    assert.ok(hints.size > 1)
  })

  test('what a client that comes back says counts more than the address; an empty id is none', async (t) => {
    const service = await start(t)
    await edits(service, 5)
    const back = await watch(t, service, { since: 0, last: 4 })
    const empty = await watch(t, service, { since: 2, last: '' })
    await arrived(back, 6)
    await arrived(empty, 6)
    assert.deepEqual(back.revisions(), [5, 6])
    assert.deepEqual(empty.revisions(), [3, 4, 5, 6])
  })

  test('what is no number is a 400 that names it', async (t) => {
    const service = await start(t)
    for (const since of ['x', '-1', '1.5', '', '99999999999999999999']) {
      const answer = await service.call('GET', `/watch?since=${since}`)
      assertProblem(answer, 400, 'validation_error')
      assert.deepEqual(pathsIn(answer), ['?since'], since)
      if (since === '') continue
      const told = await service.call('GET', '/watch?since=1', { headers: { 'last-event-id': since } })
      assertProblem(told, 400, 'validation_error')
      assert.deepEqual(pathsIn(told), ['Last-Event-ID'], since)
    }
    assertProblem(await service.call('GET', '/watch?sinse=1'), 400, 'validation_error')
    assertProblem(await service.call('GET', '/watch?since=1&since=2'), 400, 'validation_error')
  })

  test('a revision that nobody has made yet is a 400 that names it and the newest', async (t) => {
    const service = await start(t)
    const answer = await service.call('GET', '/watch?since=7')
    assertProblem(answer, 400, 'validation_error')
    assert.equal(answer.body.message, '?since is revision 7, which is still to come: the newest is 1')
  })

  test('a replica that is behind waits for the revision that a caller has seen elsewhere', async (t) => {
    const service = await start(t)
    const asked = watch(t, service, { since: 3 })
    await edits(service, 3)
    const watching = await asked
    assert.equal(watching.status, 200)
    await arrived(watching, 4)
    assert.deepEqual(watching.revisions(), [4])
  })

  test('HEAD answers the headers alone', async (t) => {
    const service = await start(t)
    const { status, headers, text } = await service.call('HEAD', '/watch?since=0')
    assert.deepEqual([status, text], [200, ''])
    assert.match(String(headers['content-type']), /^text\/event-stream/)
    assertProblem(await service.call('POST', '/watch', { body: {} }), 405, 'method_not_allowed')
    assert.equal(await metric(service, 'flux_resourceset_watchers'), 0)
  })

  for (const mode of ['crud', 'read-only'] as const) {
    test(`whoever may read may watch, in ${mode} mode`, async (t) => {
      const store = openMemoryStore()
      const crud = await start(t, { store })
      const tokens: Record<string, string> = {}
      for (const role of ROLES) {
        const body = { name: role, role, ...(role === 'cluster' && { cluster: 'one' }) }
        tokens[role] = (await crud.call('POST', '/tokens', { body })).body.secret
      }
      const service = mode === 'crud' ? crud : await start(t, { store, mode, fleet: {} })
      const statuses: Record<string, number> = {}
      for (const [role, token] of Object.entries(tokens)) {
        const watching = await watch(t, service, { token })
        statuses[role] = watching.status
      }
      const mayNot = { cluster: 403, poller: 403 }
      assert.deepEqual(statuses, { ...mayNot, mirror: 200, viewer: 200, editor: 200, admin: 200 })
      assert.equal((await watch(t, service, { token: 'wrong' })).status, 401)
      const watching = await watch(t, service, { since: 0 })
      const newest = 1 + ROLES.length
      await arrived(watching, newest)
      assert.deepEqual(watching.revisions(), range(1, newest))
    })
  }
})

describe('while a stream is open', () => {
  test('heartbeats say where the replica is', async (t) => {
    const service = await start(t, { limits: { heartbeatMs: 20 } })
    const watching = await watch(t, service)
    await waitFor('three heartbeats', () => watching.text().split(': revision 1\n\n').length > 4)
    await edits(service, 2)
    await waitFor('a heartbeat of the new revision', () => watching.text().includes('\n\n: revision 3\n\n'))
    assert.deepEqual(watching.revisions(), [2, 3])
  })

  test('each revision is read once for all who have the one before', async (t) => {
    const store = openMemoryStore()
    let reads = 0
    const history: Store['history'] = (query) => {
      reads++
      return store.history(query)
    }
    const service = await start(t, { store: { ...store, history } })
    const watchers = await Promise.all(range(1, 150).map(() => watch(t, service)))
    assert.equal(await metric(service, 'flux_resourceset_watchers'), 150)
    for (let i = 0; i < 3; i++) {
      const revision = await edit(service, `${i}`)
      for (const watching of watchers) await arrived(watching, revision)
    }
    assert.equal(reads, 3)
    for (const watching of watchers) assert.deepEqual(watching.revisions(), [2, 3, 4])
    for (const watching of watchers) watching.cut()
    await waitFor('all are gone', async () => (await metric(service, 'flux_resourceset_watchers')) === 0)
    await edit(service, 'nobody looks')
    assert.equal(reads, 3)
  })

  test('whoever does not read is dropped, and nobody else notices', async (t) => {
    const service = await start(t)
    connectIdly(t, service, '/watch')
    await waitFor('it has begun', async () => (await metric(service, 'flux_resourceset_watchers')) === 1)
    const fast = await watch(t, service)
    const dropped = () => metric(service, 'flux_resourceset_dropped_watchers_total')
    let last = 0
    for (let i = 0; i < 300 && (await dropped()) === 0; i++) {
      last = await edit(service, `${i} ${'x'.repeat(100_000)}`)
      await arrived(fast, last)
    }
    assert.equal(await dropped(), 1)
    assert.equal(await metric(service, 'flux_resourceset_watchers'), 1)
    last = await edit(service, 'after')
    await arrived(fast, last)
    assert.deepEqual(fast.revisions(), range(2, last))
  })

  test('whoever reads nothing for long is dropped, also on the way through the past', async (t) => {
    const service = await start(t, { limits: { heartbeatMs: 20, stuckMs: 50 } })
    for (let i = 0; i < 100; i++) await edit(service, `${i} ${'x'.repeat(100_000)}`)
    connectIdly(t, service, '/watch?since=0')
    const dropped = () => metric(service, 'flux_resourceset_dropped_watchers_total')
    await waitFor('it is dropped', async () => (await dropped()) === 1)
    assert.equal(await metric(service, 'flux_resourceset_watchers'), 0)
  })

  test('there are so many and no more, and they do not count as requests under way', async (t) => {
    const service = await start(t, { limits: { watchers: 3, watchersPerCaller: 3, requests: 2 } })
    const watchers = await Promise.all([watch(t, service), watch(t, service), watch(t, service)])
    assert.deepEqual(
      watchers.map(({ status }) => status),
      [200, 200, 200],
    )
    const refused = await service.call('GET', '/watch')
    assertProblem(refused, 503, 'unavailable')
    assert.ok(Number(refused.headers['retry-after']) > 0)
    assert.equal((await service.call('GET', '/clusters')).status, 200)
    assert.equal((await service.call('PATCH', '/clusters/one', { body: { node_count: 3 } })).status, 200)
    watchers[0]?.cut()
    await waitFor(
      'there is room again',
      async () => (await metric(service, 'flux_resourceset_watchers')) === 2,
    )
    assert.equal((await watch(t, service)).status, 200)
    // Refused ones take no place for longer than their answer.
    for (let i = 0; i < 5; i++) assertProblem(await service.call('GET', '/watch'), 503, 'unavailable')
  })

  test('one caller has a quarter of them, and leaves the others room', async (t) => {
    const service = await start(t, { limits: { watchers: 4 } })
    assert.equal((await watch(t, service)).status, 200)
    const refused = await service.call('GET', '/watch', { token: READ_TOKEN })
    assertProblem(refused, 429, 'rate_limited')
    assert.equal(refused.headers['retry-after'], '1')
    assert.equal((await watch(t, service, { token: WRITE_TOKEN })).status, 200)
  })

  test('the store away, the stream stays and goes on later', async (t) => {
    const store = openMemoryStore()
    let isAway = false
    const history: Store['history'] = async (query) => {
      if (isAway) throw new StoreError('the disk is gone')
      return store.history(query)
    }
    const service = await start(t, { store: { ...store, history } })
    const watching = await watch(t, service)
    const late = await watch(t, service, { since: 1 })
    isAway = true
    await edits(service, 3)
    const during = await watch(t, service, { since: 2 })
    isAway = false
    await arrived(watching, 4)
    await arrived(late, 4)
    assert.deepEqual(watching.revisions(), [2, 3, 4])
    await arrived(during, 4)
    assert.deepEqual(late.revisions(), [2, 3, 4])
    assert.deepEqual(during.revisions(), [3, 4])
    assert.equal(watching.end(), undefined)
  })

  test('whoever misses what was given up before it could be sent is told by the end of the stream', async (t) => {
    const store = openMemoryStore()
    const history: Store['history'] = async (query) => {
      await giveUp(store, (await store.head()).revision)
      return store.history(query)
    }
    const service = await start(t, { store: { ...store, history } })
    const watching = await watch(t, service)
    await edit(service, 'given up')
    await waitFor('it has ended', () => watching.end() === 'ended')
    assert.deepEqual(watching.revisions(), [])
  })

  test('while the issuer of the token cannot be asked, the stream stays', async (t) => {
    let isAway = false
    const verify: Oidc['verify'] = async () =>
      isAway
        ? { ok: false, reason: 'no answer', unavailable: true }
        : { ok: true, username: 'a', values: ['all'], expiresAt: new Date(Date.now() + 3_600_000) }
    const rules = (): AccessRules => ({ oidc: [{ claim: 'all', role: 'viewer' }], certificates: [] })
    const service = await start(t, { auth: { oidc: { verify }, rules }, limits: { heartbeatMs: 20 } })
    const watching = await watch(t, service, { token: 'eyJhbGciOiJub25lIn0.e30.c2ln' })
    assert.equal(watching.status, 200)
    isAway = true
    const beats = () => watching.text().split(': revision 1\n\n').length
    const before = beats()
    await waitFor('it goes on', () => beats() > before + 3 || watching.end() !== undefined)
    assert.equal(watching.end(), undefined)
  })

  test('with the store away, the past is a 503, and what is to come can be waited for', async (t) => {
    const store = openMemoryStore()
    let isAway = false
    const head: Store['head'] = async () => {
      if (isAway) throw new StoreError('the disk is gone')
      return store.head()
    }
    const service = await start(t, { store: { ...store, head } })
    await edits(service, 2)
    isAway = true
    assertProblem(await service.call('GET', '/watch?since=1'), 503, 'unavailable')
    const ahead = await service.call('GET', '/watch?since=9')
    assertProblem(ahead, 503, 'unavailable')
    assert.equal(ahead.body.message, 'this replica is at revision 3, not at 9 yet')
    const watchers = [await watch(t, service), await watch(t, service, { since: 3 })]
    isAway = false
    await edit(service, 'back')
    for (const watching of watchers) {
      await arrived(watching, 4)
      assert.deepEqual(watching.revisions(), [4])
    }
  })
})

describe('a stream ends', () => {
  async function issue(service: TestService, body: Json): Promise<string> {
    const answer = await service.call('POST', '/tokens', { body })
    assert.equal(answer.status, 201, answer.text)
    return answer.body.secret
  }

  test('with the token that is revoked, before what comes next', async (t) => {
    const service = await start(t)
    const token = await issue(service, { name: 'short', role: 'viewer' })
    const [watching, other] = [await watch(t, service, { token }), await watch(t, service)]
    await run(service, ['DELETE', '/tokens/short'])
    await waitFor('it ends', () => watching.end() !== undefined)
    assert.equal(watching.end(), 'ended')
    assert.deepEqual(watching.revisions(), [])
    const last = await edit(service, 'after')
    await arrived(other, last)
    assert.equal(other.end(), undefined)
  })

  test('with the token that is revoked, also when nobody reads it: its place is free again', async (t) => {
    const service = await start(t, { limits: { watchers: 1, heartbeatMs: 20 } })
    for (let i = 0; i < 100; i++) await edit(service, `${i} ${'x'.repeat(100_000)}`)
    connectIdly(t, service, '/watch?since=0', await issue(service, { name: 'short', role: 'viewer' }))
    await waitFor('it has begun', async () => (await metric(service, 'flux_resourceset_watchers')) === 1)
    await run(service, ['DELETE', '/tokens/short'])
    await waitFor('another one may watch', async () => (await watch(t, service)).status === 200)
  })

  test('with the token that expires, at a heartbeat', async (t) => {
    let time = Date.parse('2026-01-01T00:00:00Z')
    const service = await start(t, { now: () => new Date(time), limits: { heartbeatMs: 20 } })
    const token = await issue(service, { name: 'short', role: 'viewer', expires_at: '2026-01-01T01:00:00Z' })
    const watching = await watch(t, service, { token })
    await waitFor('it goes on', () => watching.text().split(': revision 2\n\n').length > 3)
    assert.equal(watching.end(), undefined)
    time += 3_600_000
    await waitFor('it ends', () => watching.end() === 'ended')
  })

  test('with the OIDC token that expires, or the role that is lost', async (t) => {
    const issuer = await startOidcIssuer(t, { audience: 'fleet' })
    let time = Date.now()
    const now = () => new Date(time)
    const names = { audience: 'fleet', roleClaim: 'groups', usernameClaim: 'email' }
    const oidc = createOidc({ issuer: issuer.url, ...names, now })
    let rules: AccessRules = { oidc: [{ claim: 'all', role: 'viewer' }], certificates: [] }
    const auth = { oidc, rules: () => rules }
    const patient = await start(t, { now, auth })
    const eager = await start(t, { now, auth, limits: { heartbeatMs: 20 } })
    const token = await issuer.mint({ groups: ['all'] })
    const watchers = [await watch(t, patient, { token }), await watch(t, eager, { token })]
    assert.deepEqual(
      watchers.map(({ status }) => status),
      [200, 200],
    )
    await arrived(watchers[0] as Watching, await edit(patient, 'one'))
    rules = { oidc: [], certificates: [] }
    await waitFor('who lost the role is gone', () => watchers[1]?.end() === 'ended')
    assert.equal(watchers[0]?.end(), undefined)
    time += 24 * 3_600_000
    await edit(patient, 'two')
    await waitFor('whose token is over is gone', () => watchers[0]?.end() === 'ended')
    assert.deepEqual(watchers[0]?.revisions(), [2])
  })

  test('with a role that shows what changed, for one that is only told that something did', async (t) => {
    const issuer = await startOidcIssuer(t, { audience: 'fleet' })
    const names = { audience: 'fleet', roleClaim: 'groups', usernameClaim: 'email' }
    const oidc = createOidc({ issuer: issuer.url, ...names, now: () => new Date() })
    let role: 'viewer' | 'mirror' = 'viewer'
    const rules = (): AccessRules => ({ oidc: [{ claim: 'all', role }], certificates: [] })
    const service = await start(t, { auth: { oidc, rules }, limits: { heartbeatMs: 20 } })
    const token = await issuer.mint({ groups: ['all'] })
    const watching = await watch(t, service, { token })
    await arrived(watching, await edit(service, 'seen'))
    role = 'mirror'
    await waitFor('it ends', () => watching.end() === 'ended')
    const again = await watch(t, service, { token })
    const last = await edit(service, 'unseen')
    await waitFor('the bell rings', () => again.text().includes(`id: ${last}\n`))
    assert.doesNotMatch(again.text(), /unseen|data/)
  })

  test('when the service stops, which does not wait for it', async (t) => {
    const service = await startService()
    await edits(service, 3)
    const watchers = await Promise.all([watch(t, service), watch(t, service, { since: 0 })])
    service.engine.drain()
    // Whoever comes while others are told to go elsewhere still gets an answer.
    watchers.push(await watch(t, service, { since: 2 }))
    await service.stop()
    await waitFor('all have ended', () => watchers.every((watching) => watching.end() === 'ended'))
    assert.deepEqual(watchers[1]?.revisions(), [1, 2, 3, 4])
  })

  test('when the service stops while nobody reads it', async (t) => {
    const store = openMemoryStore()
    let reads = 0
    const history: Store['history'] = (query) => {
      reads++
      return store.history(query)
    }
    const service = await startService({ store: { ...store, history } })
    for (let i = 0; i < 200; i++) await edit(service, `${i} ${'x'.repeat(100_000)}`)
    connectIdly(t, service, '/watch?since=0')
    const last = { reads: 0, looks: 0 }
    await waitFor('nothing moves any more', () => {
      last.looks = reads > 0 && last.reads === reads ? last.looks + 1 : 0
      last.reads = reads
      return last.looks === 20
    })
    assert.ok(reads < 10, 'all of it was taken')
    await service.stop()
  })
})

test('over HTTP/2 it is the same, and no limit on requests ends it', async (t) => {
  const authority = await createAuthority('fleet')
  const server = await authority.issue({ ipAddresses: ['127.0.0.1'], server: true })
  const tls = { ...server, minVersion: 'TLSv1.2', requestCert: false, rejectUnauthorized: false } as const
  const service = await startService({
    transport: { tls, http2: true },
    limits: { headersMs: 100, requestMs: 100, heartbeatMs: 50 },
  })
  const session = connectHttp2(service.url.replace('http:', 'https:'), { ca: authority.pem })
  t.after(() => session.destroy())
  const stream = session.request({ ':path': '/watch?since=0', authorization: `Bearer ${READ_TOKEN}` })
  let text = ''
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  const ended = once(stream, 'end')
  await waitFor('it is older than a request may be', () => text.split(': revision 1\n\n').length > 8)
  const write = { op: 'create', type: 'namespaces', document: { id: 'new' }, path: '' } as const
  const author = { actor: 'test', message: null, request_id: 'test', client_address: null }
  assert.ok((await service.engine.write([write], author)).ok)
  await waitFor('what is new has come', () => eventsIn(text).length === 2)
  assert.deepEqual(
    eventsIn(text).map(({ id }) => id),
    [1, 2],
  )
  await service.stop()
  await ended
})

test('a process that only reads streams what another one commits to the same file', async (t) => {
  const DATABASE_URL = `sqlite://${join(temporaryFolder(t), 'fleet.db')}`
  const SEED_FILE = join(import.meta.dirname, '../data/seed.json')
  const spawned: ServiceProcess[] = []
  for (const API_MODE of ['crud', 'read-only']) {
    const service = await spawnService({ DATABASE_URL, SEED_FILE, API_MODE })
    t.after(() => service.stop('SIGKILL'))
    spawned.push(service)
  }
  const [writer, reader] = spawned as [ServiceProcess, ServiceProcess]
  const [watching, past] = [await watch(t, reader), await watch(t, reader, { since: 0 })]
  for (let i = 0; i < 20; i++) {
    const body = { id: `n-${i}` }
    assert.equal((await writer.call('POST', '/namespaces', { body })).status, 201)
  }
  // The writer's answer may be known before the reader has taken the commit in.
  const newest = await watch(t, reader, { since: 21 })
  assert.equal(newest.status, 200)
  await arrived(watching, 21)
  await arrived(past, 21)
  assert.deepEqual(watching.revisions(), range(2, 21))
  assert.deepEqual(past.revisions(), range(1, 21))
  assert.equal(await reader.stop(), 0)
  await waitFor('its streams have ended', () => watching.end() === 'ended' && newest.end() === 'ended')
})
