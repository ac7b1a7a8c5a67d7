import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Json, JsonObject } from '../src/base/json.ts'
import {
  type Answer,
  builtInTypes,
  type Call,
  type ServiceProcess,
  smallFleet,
  spawnService,
  startService,
  type TestService,
  temporaryFolder,
} from './service.ts'

const types = builtInTypes()
const JSON_PATCH = { 'content-type': 'application/json-patch+json' }
const HOUR = 60 * 60 * 1000
const SEED_FILE = join(import.meta.dirname, '../data/seed.json')

type Called = Pick<TestService, 'call'>

function cluster(id: string, more: JsonObject = {}) {
  return { id, cluster_name: id, cluster_dns: `${id}.k8s.example.com`, environment: 'dev', ...more }
}

/** Revision 3: a deleted cluster three, and one that was changed. */
async function start(): Promise<TestService> {
  const { clusters, ...rest } = smallFleet()
  const service = await startService({ types, fleet: { ...rest, clusters: [...clusters, cluster('three')] } })
  await service.call('DELETE', '/clusters/three')
  await service.call('PATCH', '/clusters/one', { body: { node_count: 5 } })
  return service
}

function send(service: Called, key: string, on: string, call: Call = {}): Promise<Answer> {
  const [method = '', url = ''] = on.split(' ')
  return service.call(method, url, { ...call, headers: { ...call.headers, 'idempotency-key': key } })
}

function isReplayed({ headers }: Answer): boolean {
  return headers['idempotent-replayed'] === 'true'
}

const KEPT_HEADERS = ['etag', 'location', 'x-revision', 'warning', 'content-type'] as const

/** The first answer again, and said to be so. */
function assertReplayed(again: Answer, first: Answer): void {
  assert.equal(again.status, first.status, again.text)
  assert.equal(again.text, first.text)
  for (const header of KEPT_HEADERS) assert.deepEqual(again.headers[header], first.headers[header], header)
  assert.equal(again.headers['idempotent-replayed'], 'true')
}

function assertFirst(answer: Answer, revision: number): void {
  assert.ok(answer.status === 200 || answer.status === 201, answer.text)
  assert.equal(answer.headers['idempotent-replayed'], undefined)
  assert.equal(answer.headers['x-revision'], String(revision))
}

function assertProblem(answer: Answer, status: number, error: string): void {
  assert.equal(answer.status, status, answer.text)
  assert.equal(answer.body.error, error)
  assert.equal(answer.headers['idempotent-replayed'], undefined)
}

interface Write extends Call {
  readonly on: string
}

const WRITES: readonly Write[] = [
  { on: 'POST /clusters', body: cluster('new') },
  { on: 'PUT /clusters/one?confirm=removals', body: cluster('one') },
  { on: 'PUT /clusters/new', body: cluster('new'), headers: { 'if-none-match': '*' } },
  { on: 'PATCH /clusters/one', body: { environment: 'prod' }, headers: { 'if-match': '"3"' } },
  { on: 'PATCH /clusters/one', body: [{ op: 'remove', path: '/node_count' }], headers: JSON_PATCH },
  { on: 'DELETE /clusters/one' },
  { on: 'DELETE /clusters/one?purge=true' },
  { on: 'POST /clusters/three/restore' },
  { on: 'POST /namespaces', body: { id: 'new' } },
  { on: 'DELETE /platform_components/a?cascade=true' },
  { on: 'PUT /clusters/two/platform_components/b', body: {} },
  { on: 'PUT /clusters/two/namespaces/team-b' },
  { on: 'PATCH /clusters/one/platform_components/b', body: { oci_tag: null } },
  { on: 'DELETE /clusters/one/platform_components/a' },
  { on: 'PUT /clusters/one/patches/a', body: { color: 'red' } },
  { on: 'PATCH /clusters/one/patches/a', body: { replicas: null } },
  { on: 'DELETE /clusters/one/patches/a' },
  { on: 'POST /rollback', body: { to_revision: 1 } },
  { on: 'POST /revisions/3/revert' },
  { on: 'POST /revisions/2/revert', body: { message: 'back' } },
  {
    on: 'POST /batch',
    body: {
      operations: [
        { op: 'create', type: 'namespaces', document: { id: 'new' } },
        { op: 'assign', type: 'namespaces', ref: { id: 'new' }, selector: 'id' },
        { op: 'assign', type: 'platform_components', ref: { id: 'c' }, clusters: ['two'] },
      ],
    },
  },
]

describe('a write that is repeated with its key answers the same and does nothing', () => {
  for (const { on, ...call } of WRITES) {
    test(`${on} ${JSON.stringify(call.body ?? '').slice(0, 80)}`, async () => {
      const service = await start()
      const first = await send(service, 'key-1', on, call)
      assertFirst(first, 4)
      assertReplayed(await send(service, 'key-1', on, call), first)
      await service.call('PATCH', '/clusters/two', { body: { node_count: 99 } })
      await service.call('POST', '/namespaces', { body: { id: 'other' } })
      for (let i = 0; i < 3; i++) assertReplayed(await send(service, 'key-1', on, call), first)
      assert.equal(service.engine.state.revision, 6)
    })
  }

  test('also when what it made was changed or deleted since', async () => {
    const service = await start()
    const first = await send(service, 'k', 'POST /namespaces', { body: { id: 'new' } })
    await service.call('PATCH', '/namespaces/new', { body: { labels: { x: 'y' } } })
    assertReplayed(await send(service, 'k', 'POST /namespaces', { body: { id: 'new' } }), first)
    assert.deepEqual((await service.call('GET', '/namespaces/new')).body.labels, { x: 'y' })
    await service.call('DELETE', '/namespaces/new')
    assertReplayed(await send(service, 'k', 'POST /namespaces', { body: { id: 'new' } }), first)
    assert.equal((await service.call('GET', '/namespaces/new')).status, 404)
    assert.equal(service.engine.state.revision, 6)
  })

  test('also when a plan was carried out, or removals were confirmed', async () => {
    const service = await start()
    const body = { environment: 'qa' }
    const { plan } = (await service.call('PATCH', '/clusters/one?dry_run=true', { body })).body
    const first = await send(service, 'k', `PATCH /clusters/one?plan=${plan}`, { body })
    assertFirst(first, 4)
    assertReplayed(await send(service, 'k', `PATCH /clusters/one?plan=${plan}`, { body }), first)
    const confirmed = await send(service, 'c', 'DELETE /namespaces/team-a?cascade=true&confirm=removals')
    assertFirst(confirmed, 5)
    assertReplayed(
      await send(service, 'c', 'DELETE /namespaces/team-a?cascade=true&confirm=removals'),
      confirmed,
    )
  })

  test('however the JSON is laid out', async () => {
    const service = await start()
    const first = await send(service, 'k', 'POST /namespaces', { raw: '{"id":"new"}' })
    assertReplayed(await send(service, 'k', 'POST /namespaces', { raw: '{ "id" : "new" }\n' }), first)
  })

  test('however many come at once', async () => {
    const service = await start()
    for (let round = 0; round < 10; round++) {
      const call = {
        body: [{ op: 'add', path: '/subjects/-', value: subject(`u${round}`) }],
        headers: JSON_PATCH,
      }
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => send(service, `round-${round}`, 'PATCH /rolebindings/admins', call)),
      )
      const [first, ...others] = answers.filter((answer) => !isReplayed(answer))
      assert.ok(first)
      assert.deepEqual(others, [])
      for (const answer of answers.filter(isReplayed)) assertReplayed(answer, first)
    }
    assert.equal(service.engine.state.revision, 13)
    assert.equal((await service.call('GET', '/rolebindings/admins')).body.subjects.length, 11)
  })
})

function subject(name: string) {
  return { kind: 'User', name }
}

describe('a key', () => {
  const body = { id: 'new' }

  test('belongs to one request: another body, path, query or method with it is refused', async () => {
    const service = await start()
    const first = await send(service, 'k', 'PATCH /clusters/one', { body: { environment: 'qa' } })
    assertFirst(first, 4)
    for (const [on, call] of [
      ['PATCH /clusters/one', { body: { environment: 'prod' } }],
      ['PATCH /clusters/one', { body: {} }],
      ['PATCH /clusters/two', { body: { environment: 'qa' } }],
      ['PUT /clusters/one', { body: { environment: 'qa' } }],
      ['PATCH /clusters/one?confirm=removals', { body: { environment: 'qa' } }],
      ['DELETE /clusters/one', {}],
      ['POST /namespaces', { body }],
      ['POST /batch', { body: { operations: [{ op: 'delete', type: 'clusters', id: 'two' }] } }],
      ['POST /revisions/3/revert', {}],
      ['POST /rollback', { body: { to_revision: 1 } }],
    ] as readonly [string, Call][]) {
      const refused = await send(service, 'k', on, call)
      assertProblem(refused, 422, 'idempotency_mismatch')
      assert.match(refused.body.message, /Idempotency-Key was used for another request/)
    }
    assert.equal(service.engine.state.revision, 4)
    assertReplayed(await send(service, 'k', 'PATCH /clusters/one', { body: { environment: 'qa' } }), first)
  })

  test('is its own: another key is another write', async () => {
    const service = await start()
    assertFirst(await send(service, 'k', 'POST /namespaces', { body }), 4)
    assertProblem(await send(service, 'K', 'POST /namespaces', { body }), 409, 'conflict')
    assertProblem(await send(service, 'k2', 'POST /namespaces', { body }), 409, 'conflict')
    assertProblem(await service.call('POST', '/namespaces', { body }), 409, 'conflict')
  })

  for (const [is, key] of [
    ['empty', ''],
    ['of 256 characters', 'x'.repeat(256)],
    ['with a space in it', 'a b'],
    ['with a tab in it', 'a\tb'],
    ['outside ASCII', 'schlüssel'],
    ['with a byte above ASCII', 'a\xff'],
  ] as const) {
    test(`${is} is refused`, async () => {
      const service = await start()
      for (const { on, ...call } of [WRITES[0], WRITES[5], WRITES.at(-1)] as Write[]) {
        const payload = call.body === undefined ? {} : { raw: Buffer.from(JSON.stringify(call.body)) }
        const refused = await send(service, key, on, payload)
        assertProblem(refused, 400, 'validation_error')
        assert.equal(refused.body.details[0].path, 'Idempotency-Key')
        assert.match(refused.body.message, /1 to 255 printable ASCII characters/)
      }
      assert.equal(service.engine.state.revision, 3)
    })
  }

  test('may be anything that is printable and not too long', async () => {
    const service = await start()
    const printable = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)).join('')
    for (const [i, key] of [
      'x',
      'x'.repeat(255),
      printable,
      randomUUID(),
      "'; DROP TABLE answers; --".replaceAll(' ', '_'),
    ].entries()) {
      const call = { body: { id: `n${i}` } }
      const first = await send(service, key, 'POST /namespaces', call)
      assertFirst(first, 4 + i)
      assertReplayed(await send(service, key, 'POST /namespaces', call), first)
    }
  })

  test('means nothing to a read', async () => {
    const service = await start()
    for (let i = 0; i < 2; i++) {
      const read = await send(service, 'k', 'GET /clusters/one')
      assert.equal(read.status, 200)
      assert.equal(read.headers['idempotent-replayed'], undefined)
    }
    assertFirst(await send(service, 'k', 'POST /namespaces', { body }), 4)
  })

  test('does not open the door', async () => {
    const service = await start()
    await send(service, 'k', 'POST /namespaces', { body })
    for (const [token, status] of [
      [null, 401],
      ['test-read-token', 403],
    ] as const) {
      const refused = await send(service, 'k', 'POST /namespaces', { body, token })
      assert.equal(refused.status, status)
      assert.equal(refused.headers['idempotent-replayed'], undefined)
    }
  })
})

describe('what is remembered', () => {
  test('is not a refusal: the same request may succeed later', async () => {
    const service = await start()
    const create = { body: { id: 'team-b' } }
    assertProblem(await send(service, 'k1', 'POST /namespaces', create), 409, 'conflict')
    await service.call('DELETE', '/namespaces/team-b')
    const first = await send(service, 'k1', 'POST /namespaces', create)
    assertFirst(first, 5)
    assertReplayed(await send(service, 'k1', 'POST /namespaces', create), first)

    const late = { body: { labels: { x: 'y' } } }
    assertProblem(await send(service, 'k2', 'PATCH /namespaces/late', late), 404, 'not_found')
    await service.call('POST', '/namespaces', { body: { id: 'late' } })
    assertFirst(await send(service, 'k2', 'PATCH /namespaces/late', late), 7)

    const matched = { body: { node_count: 6 }, headers: { 'if-match': '"1"' } }
    assertProblem(await send(service, 'k3', 'PATCH /clusters/one', matched), 412, 'precondition_failed')
    const current = { ...matched, headers: { 'if-match': '"3"' } }
    assertFirst(await send(service, 'k3', 'PATCH /clusters/one', current), 8)
  })

  test('is not a refusal by the brake or by a plan either', async () => {
    const { clusters, ...rest } = smallFleet()
    const many = Array.from({ length: 6 }, (_, i) => cluster(`m${i}`, { labels: { many: 'yes' } }))
    const service = await startService({ types, fleet: { ...rest, clusters: [...clusters, ...many] } })
    const operations = [{ op: 'delete', type: 'clusters', selector: 'many' }]
    assertProblem(
      await send(service, 'k', 'POST /batch', { body: { operations } }),
      409,
      'destructive_change',
    )
    const confirmed = { body: { operations, confirm: ['removals'] } }
    const other = { body: { ...confirmed.body, plan: `sha256:${'0'.repeat(64)}` } }
    assertProblem(await send(service, 'k', 'POST /batch', other), 409, 'plan_changed')
    const first = await send(service, 'k', 'POST /batch', confirmed)
    assertFirst(first, 2)
    assertReplayed(await send(service, 'k', 'POST /batch', confirmed), first)
  })

  test('is not a malformed request', async () => {
    const service = await start()
    assert.equal((await send(service, 'k', 'POST /namespaces', { raw: '{' })).status, 400)
    assert.equal((await send(service, 'k', 'POST /namespaces', { body: { id: 'B A D' } })).status, 400)
    assert.equal((await send(service, 'k', 'POST /batch', { body: { operations: [] } })).status, 400)
    assertFirst(await send(service, 'k', 'POST /namespaces', { body: { id: 'new' } }), 4)
  })

  test('is a write that changed nothing: repeated after others changed the document it still does nothing', async () => {
    const service = await start()
    for (const [i, [on, body, undo]] of (
      [
        ['PATCH /clusters/one', { environment: 'dev' }, { environment: 'qa' }],
        [
          'POST /batch',
          { operations: [{ op: 'patch', type: 'clusters', id: 'one', patch: { environment: 'qa' } }] },
          { environment: 'uat' },
        ],
        ['PUT /clusters/one/namespaces/team-a', {}, { namespaces: [] }],
        ['PUT /clusters/one/patches/a', { replicas: '2' }, { patches: { a: { replicas: '9' } } }],
        ['POST /rollback', { to_revision: 7 }, { environment: 'prod' }],
      ] as readonly [string, JsonObject, JsonObject][]
    ).entries()) {
      const key = `nothing-${i}`
      const first = await send(service, key, on, { body })
      assertFirst(first, 3 + i)
      const changed = await service.call('PATCH', '/clusters/one?confirm=removals', { body: undo })
      assert.equal(changed.headers['x-revision'], String(4 + i), `${on} changed nothing`)
      assertReplayed(await send(service, key, on, { body }), first)
      assert.deepEqual((await service.call('GET', '/clusters/one')).body, changed.body)
      assert.equal(service.engine.state.revision, 4 + i)
    }
  })

  test('is no dry run', async () => {
    const service = await start()
    const call = { body: { id: 'new' } }
    for (let i = 0; i < 2; i++) {
      const shown = await send(service, 'k', 'POST /namespaces?dry_run=true', call)
      assert.equal(shown.body.dry_run, true)
      assert.equal(shown.headers['idempotent-replayed'], undefined)
    }
    const first = await send(service, 'k', 'POST /namespaces', call)
    assertFirst(first, 4)
    assertReplayed(await send(service, 'k', 'POST /namespaces', call), first)

    const operations = [{ op: 'delete', type: 'namespaces', id: 'new' }]
    const shown = await send(service, 'b', 'POST /batch', { body: { operations, dry_run: true } })
    assert.equal(shown.body.dry_run, true)
    const done = await send(service, 'b', 'POST /batch', { body: { operations } })
    assertFirst(done, 5)
    assert.equal(done.body.changes, 1)
  })

  test('is forgotten after a day', async () => {
    let time = Date.parse('2026-01-31T12:00:00Z')
    const service = await startService({ types, now: () => new Date(time) })
    const on = 'PATCH /rolebindings/admins'
    const call = { body: [{ op: 'add', path: '/subjects/-', value: subject('ann') }], headers: JSON_PATCH }
    const first = await send(service, 'k', on, call)
    assertFirst(first, 2)
    time += 12 * HOUR
    assertReplayed(await send(service, 'k', on, call), first)
    time += 12 * HOUR - 1000
    assertReplayed(await send(service, 'k', on, call), first)
    assertProblem(await send(service, 'k', on, { ...call, body: [] }), 422, 'idempotency_mismatch')
    time += 2000
    const second = await send(service, 'k', on, call)
    assertFirst(second, 3)
    assertReplayed(await send(service, 'k', on, call), second)
    time += 25 * HOUR
    assertFirst(await send(service, 'k', 'POST /namespaces', { body: { id: 'new' } }), 4)
  })
})

function settings(t: TestContext): Record<string, string> {
  const database = join(temporaryFolder(t), 'fleet.db')
  return {
    API_MODE: 'crud',
    DATABASE_URL: `sqlite://${database}`,
    SEED_FILE,
  }
}

async function run(t: TestContext, env: Record<string, string>): Promise<ServiceProcess> {
  const service = await spawnService(env)
  t.after(() => service.stop('SIGKILL'))
  return service
}

/** A change that would be made once more if it were done once more. */
function addSubject(name: string): Call {
  return { body: [{ op: 'add', path: '/subjects/-', value: subject(name) }], headers: JSON_PATCH }
}

const COUNTED = { id: 'counted', role: 'view', subjects: [] } satisfies Json

async function subjectNames(service: ServiceProcess): Promise<string[]> {
  const { body } = await service.call('GET', '/rolebindings/counted')
  return body.subjects.map(({ name }: { name: string }) => name)
}

describe('on SQLite', () => {
  test('answers survive a restart and a kill', async (t) => {
    const env = settings(t)
    let service = await run(t, env)
    const nothing = { body: { labels: { region: 'eu' } } }
    const writes = [
      ['created', 'POST /rolebindings', { body: COUNTED }],
      ['patched', 'PATCH /rolebindings/counted', addSubject('ann')],
      ['nothing', 'PATCH /clusters/demo-cluster-01', nothing],
      [
        'batched',
        'POST /batch',
        { body: { operations: [{ op: 'create', type: 'namespaces', document: { id: 'new' } }] } },
      ],
    ] as const
    const firsts: Answer[] = []
    for (const [key, on, call] of writes) {
      const first = await send(service, key, on, call as unknown as Call)
      assert.ok(first.status < 300, first.text)
      firsts.push(first)
    }
    assert.deepEqual(
      firsts.map(({ headers }) => headers['x-revision']),
      ['2', '3', '3', '4'],
    )
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await service.stop(signal)
      service = await run(t, env)
      for (const [i, [key, on, call]] of writes.entries()) {
        assertReplayed(await send(service, key, on, call as unknown as Call), firsts[i] as Answer)
      }
      assertProblem(
        await send(service, 'patched', 'PATCH /rolebindings/counted', addSubject('bob')),
        422,
        'idempotency_mismatch',
      )
    }
    assert.equal((await service.call('GET', '/ready')).body.revision, 4)
    assert.deepEqual(await subjectNames(service), ['ann'])
  })

  test('of two processes that get the same request at the same instant one does it, and both answer it', async (t) => {
    const env = settings(t)
    const services = await Promise.all([run(t, env), run(t, env)])
    const [one] = services
    assert.equal((await one.call('POST', '/rolebindings', { body: COUNTED })).headers['x-revision'], '2')
    const rounds = 60
    for (let round = 0; round < rounds; round++) {
      const senders = round % 3 === 0 ? [...services, ...services] : services
      const answers = await Promise.all(
        senders.map((service) =>
          send(service, `round-${round}`, 'PATCH /rolebindings/counted', addSubject(`u${round}`)),
        ),
      )
      const firsts = answers.filter((answer) => !isReplayed(answer))
      assert.equal(firsts.length, 1, answers.map(({ text }) => text).join('\n'))
      const first = firsts[0] as Answer
      assertFirst(first, 3 + round)
      for (const answer of answers.filter(isReplayed)) assertReplayed(answer, first)
    }
    assert.deepEqual(
      await subjectNames(one),
      Array.from({ length: rounds }, (_, i) => `u${i}`),
    )
    const { body } = await one.call('GET', '/revisions?limit=1')
    assert.equal(body[0].revision, 2 + rounds)
  })

  test('a key that one process has used is known to the other', async (t) => {
    const env = settings(t)
    const [one, two] = await Promise.all([run(t, env), run(t, env)])
    const create = { body: { id: 'new' } }
    const first = await send(one, 'k', 'POST /namespaces', create)
    assertFirst(first, 2)
    assertReplayed(await send(two, 'k', 'POST /namespaces', create), first)
    assertProblem(
      await send(two, 'k', 'POST /namespaces', { body: { id: 'other' } }),
      422,
      'idempotency_mismatch',
    )
    const nothing = { body: { labels: { region: 'eu' } } }
    const unchanged = await send(two, 'n', 'PATCH /clusters/demo-cluster-01', nothing)
    assertFirst(unchanged, 2)
    await one.call('PATCH', '/clusters/demo-cluster-01', { body: { labels: { region: 'us' } } })
    assertReplayed(await send(one, 'n', 'PATCH /clusters/demo-cluster-01', nothing), unchanged)
    assert.equal((await one.call('GET', '/clusters/demo-cluster-01')).body.labels.region, 'us')
  })

  test('writes that are sent again after a kill are done once, whenever it came', async (t) => {
    const env = settings(t)
    let service = await run(t, env)
    await service.call('POST', '/rolebindings', { body: COUNTED })
    const expected: string[] = []
    for (let round = 0; round < 4; round++) {
      const names = Array.from({ length: 12 }, (_, i) => `r${round}-${i}`)
      expected.push(...names)
      const write = (name: string) => send(service, name, 'PATCH /rolebindings/counted', addSubject(name))
      const acknowledged = new Map<string, Answer>()
      const sending = names.map((name) =>
        write(name).then(
          (answer) => acknowledged.set(name, answer),
          () => undefined,
        ),
      )
      await sleep(5 + round * 5)
      await service.stop('SIGKILL')
      await Promise.all(sending)
      service = await run(t, env)
      for (const name of names) {
        const answer = await write(name)
        assert.equal(answer.status, 200, answer.text)
        const before = acknowledged.get(name)
        if (before) assertReplayed(answer, before)
      }
    }
    assert.deepEqual((await subjectNames(service)).toSorted(), expected.toSorted())
    assert.equal((await service.call('GET', '/ready')).body.revision, 2 + expected.length)
  })
})
