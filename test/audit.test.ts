import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { NDJSON } from '../src/api/media-types.ts'
import type { Revision } from '../src/api/wire-types.ts'
import type { Json } from '../src/base/json.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import type { Store } from '../src/store/store.ts'
import { assertProblem, STORES, start } from './every-store.ts'
import { type Answer, READ_TOKEN, startService, type TestService, temporaryFolder } from './service.ts'

type Write = readonly [method: string, url: string, body?: Json]

const component = (id: string) => ({
  id,
  component_path: 'p',
  component_version: '1',
  oci_url: 'oci://x',
  oci_tag: 'v1',
})

/** Revisions 2 to 21, a minute apart, each with a message of its own. */
const STORY: readonly (readonly [message: string | undefined, ...Write])[] = [
  ['tune team-b', 'PATCH', '/namespaces/team-b', { labels: { step: '2' } }],
  ['tune team-a', 'PATCH', '/namespaces/team-a', { labels: { step: '3' } }],
  ['Team-B for one', 'PUT', '/clusters/one/namespaces/team-b', {}],
  [undefined, 'PATCH', '/namespaces/team-b', { labels: { step: '5' } }],
  ['never mind', 'DELETE', '/clusters/one/namespaces/team-b'],
  ['tune team-b again', 'PATCH', '/namespaces/team-b', { labels: { step: '7' } }],
  ['once more', 'PUT', '/clusters/one/namespaces/team-b', {}],
  ['100% of team_b', 'PATCH', '/namespaces/team-b', { labels: { step: '9' } }],
  ['größer', 'PATCH', '/clusters/two', { node_count: 10 }],
  [undefined, 'PATCH', '/platform_components/c', { oci_tag: 'v11' }],
  ['goodbye', 'DELETE', '/clusters/one'],
  ['nobody has it', 'PATCH', '/namespaces/team-a', { labels: { step: '13' } }],
  ['hello', 'POST', '/clusters/one/restore'],
  ['tune team-a', 'PATCH', '/namespaces/team-a', { labels: { step: '15' } }],
  [
    'all at once',
    'POST',
    '/batch',
    {
      operations: [
        { op: 'patch', type: 'clusters', id: 'two', patch: { node_count: 16 } },
        { op: 'patch', type: 'namespaces', id: 'team-a', patch: { labels: { step: '16' } } },
        { op: 'patch', type: 'clusters', id: 'one', patch: { node_count: 16 } },
        { op: 'create', type: 'namespaces', document: { id: 'team-c' } },
        { op: 'create', type: 'platform_components', document: component('one') },
      ],
    },
  ],
  ['drop a', 'DELETE', '/platform_components/a?cascade=true'],
  ['forget one', 'DELETE', '/clusters/one?purge=true'],
  ['nobody has it', 'PATCH', '/namespaces/team-a', { labels: { step: '19' } }],
  [
    'another one',
    'POST',
    '/clusters',
    { id: 'one', cluster_name: 'new', cluster_dns: 'new.example.com', environment: 'qa' },
  ],
  ['tune team-a', 'PATCH', '/namespaces/team-a', { labels: { step: '21' } }],
]
const LAST = STORY.length + 1

function timeOf(revision: number): string {
  return `2026-01-31T12:${String(revision).padStart(2, '0')}:00.000Z`
}

async function startStory(t: TestContext, store: Store = openMemoryStore()): Promise<TestService> {
  let revision = 1
  const service = await start(t, { store, now: () => new Date(timeOf(revision)) })
  for (const [message, method, url, body] of STORY) {
    revision++
    const answer = await service.call(method, url, {
      // A body of bytes: beside one of text, Node would write the header as UTF-8 a second time.
      ...(body !== undefined && { raw: Buffer.from(JSON.stringify(body)) }),
      headers: {
        'x-request-id': `req-${revision}`,
        ...(message !== undefined && {
          'x-change-message': Buffer.from(message, 'utf8').toString('latin1'),
        }),
      },
    })
    assert.ok(answer.status < 300, answer.text)
    assert.equal(answer.headers['x-revision'], String(revision))
  }
  return service
}

async function list(service: TestService, query: string): Promise<Revision[]> {
  const answer = await service.call('GET', `/revisions?${query}`, { token: READ_TOKEN })
  assert.equal(answer.status, 200, `${query}: ${answer.text}`)
  return answer.body
}

function numbers(revisions: readonly Revision[]): number[] {
  return revisions.map(({ revision }) => revision)
}

function keysOf(changes: Revision['changes']): string[] {
  return changes.map(({ type, id }) => `${type}/${id}`)
}

/** What concerns cluster one in the story: the revision, and which of its changes. */
const OF_ONE: readonly (readonly [number, ...string[]])[] = [
  [20, 'clusters/one'],
  [18, 'clusters/one'],
  [17, 'clusters/one', 'platform_components/b'],
  [16, 'clusters/one', 'namespaces/team-a'],
  [15, 'namespaces/team-a'],
  [14, 'clusters/one'],
  [12, 'clusters/one'],
  [9, 'namespaces/team-b'],
  [8, 'clusters/one'],
  [6, 'clusters/one'],
  [5, 'namespaces/team-b'],
  [4, 'clusters/one'],
  [3, 'namespaces/team-a'],
  [
    1,
    'clusters/one',
    'namespaces/team-a',
    'platform_components/a',
    'platform_components/b',
    'rolebindings/admins',
  ],
]

for (const [store, open] of Object.entries(STORES)) {
  test(`a cluster's audit holds its own changes and those of what it was assigned, while it was (${store})`, async (t) => {
    const service = await startStory(t, await open(t))
    const found = await list(service, 'cluster=one')
    assert.deepEqual(
      found.map(({ revision, changes }) => [revision, ...keysOf(changes).toSorted()]),
      OF_ONE,
    )
    const [, , , batch] = found
    assert.equal(batch?.change_count, 5, 'the revision as a whole is as large as it was')
    assert.deepEqual(numbers(await list(service, 'cluster=two')), [16, 10, 1])
    for (const id of ['nobody', 'team-a', '']) {
      const unknown = await service.call('GET', `/revisions?cluster=${id}`)
      assert.equal(unknown.status, 404, id)
    }
  })

  test(`revisions are found by actor, type, id, time and text, alone and together (${store})`, async (t) => {
    const service = await startStory(t, await open(t))
    const all = await Promise.all(
      Array.from({ length: LAST }, async (_, i) => {
        const { body } = await service.call('GET', `/revisions/${LAST - i}`)
        return body as Revision
      }),
    )
    const filters: Record<string, readonly (readonly [string, (revision: Revision) => boolean])[]> = {
      actor: [
        ['seed', ({ actor }) => actor === 'seed'],
        ['writer', ({ actor }) => actor === 'writer'],
        ['Writer', () => false],
      ],
      type: ['clusters', 'namespaces', 'rolebindings'].map((name) => [
        name,
        ({ changes }) => changes.some(({ type }) => type === name),
      ]),
      id: ['one', 'team-a', 'nobody'].map((wanted) => [
        wanted,
        ({ changes }) => changes.some(({ id }) => id === wanted),
      ]),
      since: [
        [timeOf(4), ({ revision }) => revision >= 4],
        ['2026-01-31T14:11:59.999%2B02:00', ({ revision }) => revision >= 12],
      ],
      until: [
        [timeOf(17), ({ revision }) => revision <= 17],
        ['2026-01-31T07:15:59.999-05:00', ({ revision }) => revision <= 15],
      ],
      q: [
        ['TEAM-B', ({ message, operation }) => /team-b/i.test(`${message}\n${operation}`)],
        ['tune', ({ message }) => message?.includes('tune') ?? false],
        ['req-1', ({ request_id }) => request_id.startsWith('req-1')],
      ],
      before: [['15', ({ revision }) => revision < 15]],
    }
    /** Every choice of at most one value for each of the filters. */
    const choices = Object.entries(filters).reduce<[string, string, (revision: Revision) => boolean][][]>(
      (chosen, [name, values]) =>
        chosen.flatMap((others) => [
          others,
          ...values.map(([value, holds]): (typeof chosen)[number] => [...others, [name, value, holds]]),
        ]),
      [[]],
    )
    const some = choices.filter((choice, i) => choice.length < 3 || i % 5 === 0)
    assert.ok(some.length > 500)
    await Promise.all(
      Array.from({ length: 8 }, async (_, lane) => {
        for (const choice of some.filter((_, i) => i % 8 === lane)) {
          const query = choice.map(([name, value]) => `${name}=${value}`).join('&')
          // An id and a type are one document.
          const [type, id] = ['type', 'id'].map((part) => choice.find(([name]) => name === part)?.[1])
          const expected = all.filter(
            (revision) =>
              choice.every(([, , holds]) => holds(revision)) &&
              (!type || !id || keysOf(revision.changes).includes(`${type}/${id}`)),
          )
          const found = await list(service, query)
          assert.deepEqual(numbers(found), numbers(expected), query)
          if (id === undefined) continue
          for (const change of found.flatMap(({ changes }) => changes)) {
            assert.equal(change.id, id, query)
            if (type !== undefined) assert.equal(change.type, type, query)
          }
        }
      }),
    )
  })

  test(`a cluster's audit can be narrowed by everything else (${store})`, async (t) => {
    const service = await startStory(t, await open(t))
    for (const [query, expected] of [
      ['actor=seed', [1]],
      ['q=team-a&actor=writer', [16, 15, 3]],
      ['q=tune', [15, 3]],
      [`since=${timeOf(15)}`, [20, 18, 17, 16, 15]],
      [`until=${timeOf(4)}`, [4, 3, 1]],
      [`since=${timeOf(4)}&until=${timeOf(12)}`, [12, 9, 8, 6, 5, 4]],
      ['id=team-b', [9, 5]],
      ['id=team-a', [16, 15, 3, 1]],
      ['id=one', [20, 18, 17, 16, 14, 12, 8, 6, 4, 1]],
      ['id=two', []],
      ['id=one&type=clusters', [20, 18, 17, 16, 14, 12, 8, 6, 4, 1]],
      ['id=one&type=platform_components', []],
      ['id=team-a&type=namespaces', [16, 15, 3, 1]],
      ['id=team-a&type=namespaces&q=tune', [15, 3]],
      ['limit=3', [20, 18, 17]],
      ['limit=3&before=17', [16, 15, 14]],
      [`limit=2&before=17&since=${timeOf(2)}&q=t`, [16, 15]],
    ] as const) {
      assert.deepEqual(numbers(await list(service, `cluster=one&${query}`)), expected, query)
    }
    const [revision] = await list(service, 'cluster=one&id=team-a&limit=1')
    assert.deepEqual(keysOf(revision?.changes ?? []), ['namespaces/team-a'])
  })

  test(`text is found as it is written, in either case (${store})`, async (t) => {
    const service = await startStory(t, await open(t))
    for (const [text, expected] of [
      ['100% of', [9]],
      ['m_b', [9]],
      ['%', [9]],
      ['GRÖSSER', []],
      ['GRÖß', [10]],
      ['team-b for one', [4]],
      ['ALL REFERENCES', [17]],
      ['and its tombstone', [18]],
      ['restore clusters/one', [14]],
      ['Seed File', [1]],
      ['req-21', [21]],
      ["'", []],
      ['"', []],
      ['\\', []],
    ] as const) {
      assert.deepEqual(numbers(await list(service, `q=${encodeURIComponent(text)}`)), expected, text)
    }
    assert.equal((await list(service, 'q=')).length, LAST, 'no text is in every revision')
    assert.equal((await list(service, 'q=never+mind')).length, 1)
  })

  test(`following the links of a list comes by every revision once (${store})`, async (t) => {
    const service = await startStory(t, await open(t))
    for (const query of [
      '',
      'cluster=one',
      'type=namespaces',
      'id=team-a',
      'q=team&actor=writer',
      'since=2026-01-31T14:03:00+02:00&until=2026-01-31T12:17:00Z',
      'cluster=one&since=2026-01-31T17:34:00%2B05:30',
      'actor=nobody',
    ]) {
      const expected = await list(service, query)
      for (const limit of [1, 2, 5, expected.length || 1]) {
        const found: Revision[] = []
        let url: string | undefined = `/revisions?limit=${limit}&${query}`
        for (let pages = 0; url !== undefined; pages++) {
          assert.ok(pages <= expected.length, url)
          const page: Answer = await service.call('GET', url)
          assert.equal(page.status, 200, `${url}: ${page.text}`)
          assert.ok(page.body.length <= limit)
          found.push(...page.body)
          url = /^<([^>]+)>; rel="next"$/.exec(String(page.headers.link))?.[1]
        }
        assert.deepEqual(found, expected, `${query} by ${limit}`)
      }
    }
  })
}

test('the links of a history come by every revision of the document once', async (t) => {
  const service = await startStory(t)
  const { body: expected } = await service.call('GET', '/namespaces/team-a/history')
  assert.deepEqual(numbers(expected), [21, 19, 16, 15, 13, 3, 1])
  const found: Revision[] = []
  let url: string | undefined = '/namespaces/team-a/history?limit=2'
  while (url !== undefined) {
    const page: Answer = await service.call('GET', url)
    assert.equal(page.status, 200)
    found.push(...page.body)
    url = /^<([^>]+)>; rel="next"$/.exec(String(page.headers.link))?.[1]
  }
  assert.deepEqual(found, expected)
})

test('definitions that a cluster is given by a rollback or a revert count from then on', async (t) => {
  const service = await start(t)
  const patch = (step: number): Write => ['PATCH', '/namespaces/team-a', { labels: { step: String(step) } }]
  for (const [method, url, body] of [
    ['DELETE', '/clusters/one/namespaces/team-a?confirm=removals'],
    patch(3),
    ['POST', '/revisions/2/revert'],
    patch(5),
    ['POST', '/rollback?confirm=removals', { to_revision: 2, types: ['clusters'] }],
    patch(7),
    ['POST', '/rollback', { to_revision: 5, types: ['clusters'] }],
    patch(9),
  ] as const satisfies Write[]) {
    const answer = await service.call(method, url, { body })
    assert.equal(answer.status, 200, answer.text)
  }
  assert.deepEqual(numbers(await list(service, 'cluster=one')), [9, 8, 6, 5, 4, 2, 1])
  assert.deepEqual(numbers(await list(service, 'cluster=one&id=team-a')), [9, 5, 1])
})

test('a parameter that is wrong is refused by its name', async (t) => {
  const service = await start(t)
  for (const [query, path] of [
    ['type=cluster', '?type'],
    ['type=', '?type'],
    ['since=yesterday', '?since'],
    ['until=2026-01-31', '?until'],
    ['since=5', '?since'],
    ['limit=1001', '?limit'],
    ['limit=ten', '?limit'],
    ['before=x', '?before'],
    ['user=writer', '?user'],
    ['actor=seed&actor=writer', '?actor'],
    ['offset=1', '?offset'],
    ['q=%FF', '?'],
  ] as const) {
    const answer = await service.call('GET', `/revisions?${query}`)
    assertProblem(answer, 400, 'validation_error')
    assert.ok(
      answer.body.details.some((detail: { path: string }) => detail.path === path),
      answer.text,
    )
  }
  for (const url of ['/revisions/1?impact_limit=10001', '/revisions/1?impact_limit=x', '/revisions/1?q=x']) {
    assertProblem(await service.call('GET', url), 400, 'validation_error')
  }
})

test('the audit is for those with a token', async (t) => {
  const service = await start(t)
  for (const url of ['/revisions', '/revisions/1', '/revisions/verify', '/clusters/one/history']) {
    assert.equal((await service.call('GET', url, { token: READ_TOKEN })).status, 200)
    assertProblem(await service.call('GET', url, { token: null }), 401, 'unauthorized')
  }
})

test('lists and revisions come as lines of JSON for those who ask', async (t) => {
  const service = await startStory(t)
  for (const url of [
    '/revisions',
    '/revisions?limit=3',
    '/revisions?cluster=one&q=team',
    '/revisions?actor=nobody',
    '/revisions/16',
    '/revisions/16?limit=1&impact_limit=0',
    '/clusters/one/history',
    '/namespaces/team-a/history?limit=2&before=19',
  ]) {
    const plain = await service.call('GET', url)
    assert.match(String(plain.headers['content-type']), /^application\/json\b/)
    for (const accept of [NDJSON, `${NDJSON}, application/json;q=0.5`]) {
      const lines = await service.call('GET', url, { headers: { accept } })
      assert.equal(lines.status, 200)
      assert.equal(String(lines.headers['content-type']).split(';')[0], NDJSON)
      const items = Array.isArray(plain.body) ? plain.body : [plain.body]
      const parts = lines.text.split('\n')
      assert.equal(parts.pop(), '', 'every line ends')
      assert.deepEqual(
        parts.map((line) => JSON.parse(line)),
        items,
        url,
      )
      assert.equal(lines.headers.link, plain.headers.link)
    }
    const other = await service.call('GET', url, { headers: { accept: 'application/json, */*' } })
    assert.deepEqual(other.body, plain.body)
  }
})

test('a problem is one JSON object even for those who ask for lines', async (t) => {
  const service = await start(t)
  const headers = { accept: NDJSON }
  for (const [url, status, error] of [
    ['/revisions?limit=x', 400, 'validation_error'],
    ['/revisions/99', 404, 'not_found'],
    ['/clusters/nobody/history', 404, 'not_found'],
  ] as const) {
    const answer = await service.call('GET', url, { headers })
    assertProblem(answer, status, error)
    assert.match(String(answer.headers['content-type']), /^application\/json\b/)
  }
})

/** One of every kind of write, and how it is told of. */
const KINDS: readonly (readonly [operation: string, ...Write])[] = [
  ['create namespaces/team-c', 'POST', '/namespaces', { id: 'team-c' }],
  ['replace namespaces/team-c', 'PUT', '/namespaces/team-c', { labels: { team: 'c' } }],
  ['patch platform_components/a', 'PATCH', '/platform_components/a', { oci_tag: 'v9', component_path: 'x' }],
  ['patch clusters/one', 'PATCH', '/clusters/one', { environment: 'qa', cluster_name: 'first' }],
  ['assign platform_components/c to one', 'PUT', '/clusters/one/platform_components/c', { enabled: false }],
  [
    'assign platform_components/c to one',
    'PATCH',
    '/clusters/one/platform_components/c',
    { enabled: true, oci_tag: 'v3' },
  ],
  ['patch values of a on one', 'PATCH', '/clusters/one/patches/a', { replicas: '7', color: 'red' }],
  ['patch values of a on one', 'DELETE', '/clusters/one/patches/a'],
  ['unassign platform_components/b from one', 'DELETE', '/clusters/one/platform_components/b'],
  [
    'create clusters/three',
    'POST',
    '/clusters',
    {
      id: 'three',
      cluster_name: 'three',
      cluster_dns: 'three.k8s.example.com',
      environment: 'uat',
      platform_components: [{ id: 'a' }, { id: 'b' }],
      namespaces: [{ id: 'team-c' }],
    },
  ],
  ['delete clusters/one', 'DELETE', '/clusters/one'],
  ['restore clusters/one', 'POST', '/clusters/one/restore'],
  ['delete platform_components/a and all references to it', 'DELETE', '/platform_components/a?cascade=true'],
  ['delete clusters/two and its tombstone', 'DELETE', '/clusters/two?purge=true'],
  [
    'patch clusters/(environment in (qa,uat)); assign namespaces/team-b to (2 clusters); unassign namespaces/team-c from three',
    'POST',
    '/batch',
    {
      operations: [
        { op: 'patch', type: 'clusters', selector: 'environment in (qa,uat)', patch: { node_count: 4 } },
        { op: 'assign', type: 'namespaces', ref: { id: 'team-b' }, clusters: ['one', 'three'] },
        { op: 'unassign', type: 'namespaces', id: 'team-c', clusters: ['three'] },
      ],
    },
  ],
  ['revert revision 14', 'POST', '/revisions/14/revert'],
  [
    'rollback of types clusters to revision 15',
    'POST',
    '/rollback',
    { to_revision: 15, types: ['clusters'] },
  ],
  ['rollback to revision 1', 'POST', '/rollback', { to_revision: 1 }],
  [
    'create namespaces/n0; create namespaces/n1; create namespaces/n2; create namespaces/n3; create namespaces/n4; and 2 more',
    'POST',
    '/batch',
    {
      operations: [0, 1, 2, 3, 4, 5, 6].map((i) => ({
        op: 'create',
        type: 'namespaces',
        document: { id: `n${i}` },
      })),
    },
  ],
]

test('a revision tells what was asked for, from where, and what its dry run had shown', async (t) => {
  const service = await start(t)
  const previews: { changes: Json; impact: Json; change_count: number }[] = []
  for (const [operation, method, url, body] of KINDS) {
    const dry = `${url}${url.includes('?') ? '&' : '?'}dry_run=true`
    const preview = await service.call(method, dry, { body })
    assert.equal(preview.status, 200, `${operation}: ${preview.text}`)
    const done = await service.call(method, url, { body })
    assert.ok(done.status < 300, `${operation}: ${done.text}`)
    previews[Number(done.headers['x-revision'])] = preview.body
  }
  const hashes = new Set<string>()
  for (const [i, [operation]] of KINDS.entries()) {
    const { body } = await service.call('GET', `/revisions/${i + 2}`)
    const preview = previews[i + 2]
    assert.equal(body.operation, operation)
    assert.equal(body.client_address, '127.0.0.1')
    assert.match(body.hash, /^[0-9a-f]{64}$/)
    assert.equal(body.change_count, preview?.change_count, operation)
    assert.deepEqual(body.changes, preview?.changes, operation)
    assert.deepEqual(body.impact, preview?.impact, operation)
    hashes.add(body.hash)
  }
  assert.equal(hashes.size, KINDS.length)
})

test('the impact of a revision has as many details as are asked for, and all counts', async (t) => {
  const clusters = Array.from({ length: 150 }, (_, i) => ({
    id: `k${String(i).padStart(3, '0')}`,
    cluster_name: `k${i}`,
    cluster_dns: `k${i}.example.com`,
    environment: i % 3 === 0 ? 'dev' : 'prod',
    platform_components: [{ id: 'a' }],
  }))
  const fleet = { platform_components: [component('a')], clusters }
  const service = await start(t, { fleet })
  await service.call('PATCH', '/platform_components/a', { body: { oci_tag: 'v2' } })
  await service.call('DELETE', '/clusters/k007')
  for (const [query, details] of [
    ['', 100],
    ['?impact_limit=0', 0],
    ['?impact_limit=3', 3],
    ['?impact_limit=10000', 150],
  ] as const) {
    const { impact } = (await service.call('GET', `/revisions/2${query}`)).body
    assert.equal(impact.clusters, 150)
    assert.deepEqual(impact.by_environment, { dev: 50, prod: 100 })
    assert.deepEqual(impact.endpoints, {
      'platform-components': { clusters: 150, added: 0, removed: 0, changed: 150 },
    })
    assert.equal(impact.details.length, details)
    assert.deepEqual(
      impact.details.map(({ cluster }: { cluster: string }) => cluster),
      clusters.slice(0, details).map(({ id }) => id),
    )
  }
  const { impact } = (await service.call('GET', '/revisions/2?impact_limit=8')).body
  assert.deepEqual(impact.details[7], {
    cluster: 'k007',
    environment: 'prod',
    endpoint: 'platform-components',
    added: [],
    removed: [],
    changed: [{ id: 'a', fields: [{ path: '/source/oci_tag', before: 'v1', after: 'v2' }] }],
  })
})

test('a log that nobody has touched is whole', async (t) => {
  const service = await startStory(t)
  await service.call('DELETE', '/clusters/two')
  const { body } = await service.call('GET', '/revisions/verify')
  const { hash } = (await service.call('GET', `/revisions/${LAST + 1}`)).body
  const documents = await Promise.all(
    service.types.all.map(async ({ name }) => (await service.call('GET', `/${name}`)).body.length),
  )
  assert.deepEqual(body, {
    verified: true,
    from: 1,
    to: LAST + 1,
    hash,
    revisions: LAST + 1,
    documents: documents.reduce((sum, count) => sum + count, 1),
    anchor: null,
    problems: [],
  })
})

test('a log or a document that was touched behind the back of the service is found out', async (t) => {
  const path = join(temporaryFolder(t), 'fleet.db')
  const service = await startStory(t, openSqliteStore({ path, write: true }))
  const db = new DatabaseSync(path)
  t.after(() => db.close())
  const verify = async () => (await service.call('GET', '/revisions/verify')).body
  for (const [tampering, told] of [
    ["UPDATE revisions SET message = 'nothing' WHERE revision = 3", /revision 3\b/],
    ["UPDATE revisions SET actor = 'nobody' WHERE revision = 4", /revision 4\b/],
    ["UPDATE revisions SET time = '2026-01-31T12:00:00.000Z' WHERE revision = 5", /revision 5\b/],
    ["UPDATE revisions SET client_address = '10.0.0.1' WHERE revision = 6", /revision 6\b/],
    ["UPDATE revisions SET operation = 'x' WHERE revision = 7", /revision 7\b/],
    ["UPDATE changes SET after = replace(after, '16', '17') WHERE revision = 16", /revision 16\b/],
    ["UPDATE changes SET before = replace(before, '13', '14') WHERE revision = 15", /revision 15\b/],
    ['UPDATE changes SET after_deleted = 0 WHERE revision = 12', /revision 12\b/],
    ["DELETE FROM changes WHERE revision = 16 AND id = 'two'", /revision 16\b/],
    ['DELETE FROM revisions WHERE revision = 10', /revision 10\b/],
    [`DELETE FROM revisions WHERE revision = ${LAST}`, new RegExp(`revision ${LAST}\\b`)],
    [
      "UPDATE documents SET document = replace(document, '21', '22') WHERE id = 'team-a'",
      /namespaces\/team-a/,
    ],
    ["UPDATE documents SET deleted = 1 WHERE id = 'two'", /clusters\/two/],
    ["DELETE FROM documents WHERE id = 'team-b'", /namespaces\/team-b/],
    [
      "INSERT INTO documents (type, id, revision, deleted, document) VALUES ('namespaces', 'x', 3, 0, '{}')",
      /namespaces\/x/,
    ],
  ] as const) {
    db.exec('PRAGMA foreign_keys = OFF')
    const backup = ['revisions', 'changes', 'documents'].map((table) => [table, `kept_${table}`] as const)
    for (const [table, kept] of backup) db.exec(`CREATE TABLE ${kept} AS SELECT * FROM ${table}`)
    const { changes } = db.prepare(tampering).run()
    assert.ok(Number(changes) > 0, tampering)
    const found = await verify()
    assert.equal(found.verified, false, tampering)
    assert.match(found.problems.join('\n'), told, tampering)
    for (const [table, kept] of backup) {
      db.exec(`DELETE FROM ${table}; INSERT INTO ${table} SELECT * FROM ${kept}; DROP TABLE ${kept}`)
    }
    assert.equal((await verify()).verified, true, `after ${tampering}`)
  }
})

test('every process on one file tells the same of the past', async (t) => {
  const path = join(temporaryFolder(t), 'fleet.db')
  const one = await startStory(t, openSqliteStore({ path, write: true }))
  const two = await start(t, { store: openSqliteStore({ path, write: true }) })
  for (const url of [
    '/revisions',
    '/revisions?cluster=one',
    '/revisions?type=clusters&q=one',
    '/revisions/16',
    '/revisions/verify',
    '/clusters/one/history',
  ]) {
    assert.equal((await two.call('GET', url)).text, (await one.call('GET', url)).text, url)
  }
})

test('a cluster and a type together ask for what the cluster was given of that type', async (t) => {
  const service = await startService()
  t.after(() => service.stop())
  const operations = [
    { op: 'patch', type: 'clusters', id: 'one', patch: { labels: { a: '1' } } },
    { op: 'create', type: 'namespaces', document: { id: 'unrelated' } },
  ]
  await service.call('POST', '/batch', { body: { operations } })
  await service.call('PATCH', '/namespaces/team-a', { body: { labels: { team: 'x' } } })
  const { body } = await service.call('GET', '/revisions?cluster=one&type=namespaces')
  assert.deepEqual(
    body.map(({ revision, changes }: { revision: number; changes: { id: string }[] }) => [
      revision,
      ...changes.map(({ id }) => id),
    ]),
    [
      [3, 'team-a'],
      [1, 'team-a'],
    ],
  )
})
