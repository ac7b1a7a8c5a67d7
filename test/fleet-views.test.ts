// What the service says of the fleet as a whole: who needs help, how far a revision is, which versions are where.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { loadTypes } from '../src/registry/load-types.ts'
import { fleetOf, ReportingCluster, startWatched, type Watched } from './reporting-clusters.ts'
import { RESOURCES, temporaryFolder } from './service.ts'

type Clusters = Readonly<Record<string, ReportingCluster>>

async function start(clusters: Parameters<typeof fleetOf>[0]): Promise<Watched & { clusters: Clusters }> {
  const watched = await startWatched({ fleet: fleetOf(clusters) })
  const made = Object.keys(clusters).map((id) => [id, new ReportingCluster(watched.service, id)])
  return { ...watched, clusters: Object.fromEntries(made) }
}

async function read({ service }: Pick<Watched, 'service'>, path: string) {
  const { status, body, text } = await service.call('GET', path)
  assert.equal(status, 200, text)
  return body
}

function at(watched: Watched, secondsAgo: number): string {
  return new Date(watched.now() - secondsAgo * 1000).toISOString()
}

/** Half an hour in which every cluster but one has a problem of its own. */
async function startTroubled() {
  const ids = [
    ...['fails', 'fine', 'flaps', 'half', 'late', 'never', 'offline', 'refused', 'rejects', 'silent'],
    'stuck',
  ]
  const watched = await start(Object.fromEntries(ids.map((id) => [id, {}])))
  const cluster = (id: string): ReportingCluster => watched.clusters[id] ?? assert.fail(id)
  for (const id of ids) if (!['half', 'never', 'silent'].includes(id)) await cluster(id).settle()
  const body = { patches: { a: { replicas: '2' } } }
  assert.equal((await watched.service.call('PATCH', '/clusters/stuck', { body })).status, 200)
  for (let tick = 0; tick <= 6; tick++) {
    await read(watched, '/status')
    // A cluster that follows one change after the other is fine.
    const edit = { a: { replicas: String(tick) } }
    assert.equal(
      (await watched.service.call('PATCH', '/clusters/fine', { body: { patches: edit } })).status,
      200,
    )
    await read(watched, '/status')
    for (const id of ['fails', 'fine', 'rejects']) await cluster(id).settle()
    for (const id of ['silent', 'stuck']) await cluster(id).poll()
    await cluster('half').poll(['platform-components', 'rolebindings'])
    if (tick % 2 === 0) await cluster('flaps').settle()
    if (tick <= 4) await cluster('late').settle()
    if (tick === 5) {
      cluster('fails').fail('HelmRelease', 'a', 'InstallFailed', 'timed out')
      cluster('rejects').fail('ResourceSet', 'platform-components', 'BuildFailed', 'no such key')
    }
    await read(watched, '/status')
    if (tick < 6) watched.pass(300)
  }
  await cluster('refused').beRefused()
  return watched
}

describe('clusters that need somebody', () => {
  test('come worst first, each once, with its reason and the command to run next', async () => {
    const watched = await startTroubled()
    const { total, clusters } = await read(watched, '/status/attention')
    assert.equal(total, 8)
    const seen = clusters.map(({ next_step, environment, message, ...rest }: Record<string, string>) => {
      assert.equal(environment, 'dev')
      return [Object.values(rest), message, /: ([a-z].*)$/.exec(next_step ?? '')?.[1]]
    })
    const component = 'kubectl -n flux-system describe helmrelease,kustomization a'
    const resourceset = 'kubectl -n flux-system describe resourceset platform-components'
    const endpoint = 'platform-components'
    assert.deepEqual(seen, [
      [
        ['refused', 'refused', at(watched, 1800), null, null, '401 credential_refused'],
        null,
        'flux-resourceset-cli bootstrap refused --with-token | kubectl apply -f -',
      ],
      [['fails', 'failed', at(watched, 300), 'a', endpoint, 'InstallFailed'], 'timed out', component],
      [['rejects', 'rejected', at(watched, 300), null, endpoint, 'BuildFailed'], 'no such key', resourceset],
      [
        ['offline', 'offline', at(watched, 1800), null, null, null],
        null,
        'kubectl -n flux-system get resourcesetinputprovider',
      ],
      [['stuck', 'stuck', at(watched, 1800), null, endpoint, null], null, resourceset],
      [
        ['half', 'partial', at(watched, 1800), null, 'namespaces', null],
        null,
        'resume that provider, or give it all of them with flux-resourceset-cli bootstrap half | kubectl apply -f -',
      ],
      [
        ['flaps', 'flapping', at(watched, 1200), null, null, null],
        null,
        'kubectl -n flux-system get events --sort-by=.lastTimestamp',
      ],
      [
        ['late', 'late', at(watched, 600), null, null, null],
        null,
        'kubectl -n flux-system logs deployment/flux-operator --since=1h',
      ],
    ])
  })

  test('are chosen by a selector, and counted beyond the limit', async () => {
    const watched = await startTroubled()
    const some = await read(watched, '/status/attention?selector=id%20in%20(late,stuck,fine)')
    assert.deepEqual(
      some.clusters.map(({ cluster }: { cluster: string }) => cluster),
      ['stuck', 'late'],
    )
    const first = await read(watched, '/status/attention?limit=1')
    assert.deepEqual([first.total, first.clusters.length, first.clusters[0].cluster], [8, 1, 'refused'])
    const wrong = await watched.service.call('GET', '/status/attention?selector=(')
    assert.equal(wrong.status, 400)
    assert.match(wrong.text, /\?selector/)
  })

  test('are partial where an endpoint is asked for no more, or never was, or less often than its own interval tells', async () => {
    const watched = await start({ reports: {}, stopped: {}, slow: {}, unasked: {}, whole: {} })
    const polls = (id: string, endpoints?: string[]) => watched.clusters[id]?.poll(endpoints)
    const others = ['platform-components', 'rolebindings']
    for (let tick = 0; tick <= 25; tick++) {
      await polls('whole')
      await polls('unasked', others)
      await watched.clusters.reports?.report()
      await polls('stopped', tick < 3 ? undefined : others)
      // Ten times as long as the others, as it is known after three of them.
      await polls('slow', tick % 10 === 0 ? undefined : others)
      watched.pass(300)
    }
    for (const id of ['slow', 'stopped', 'unasked', 'whole']) await polls(id, others)
    await watched.clusters.reports?.report()
    const { clusters } = await read(watched, '/status/attention')
    assert.deepEqual(
      clusters.map(({ cluster, problem, endpoint, since }: Record<string, string>) => [
        cluster,
        problem,
        endpoint,
        since,
      ]),
      [
        ['unasked', 'partial', 'namespaces', at(watched, 26 * 300)],
        ['stopped', 'partial', 'namespaces', at(watched, 24 * 300)],
        ['reports', 'partial', 'namespaces', null],
      ],
    )
  })

  test('of one problem the one that lasts longest is first', async () => {
    const watched = await start({ a: {}, b: {}, c: {} })
    for (const id of ['b', 'c', 'a']) {
      await watched.clusters[id]?.settle()
      watched.pass(60)
    }
    watched.pass(1000)
    const { clusters } = await read(watched, '/status/attention')
    assert.deepEqual(
      clusters.map(({ cluster }: { cluster: string }) => cluster),
      ['b', 'c', 'a'],
    )
  })
})

describe('the propagation of a revision', () => {
  const edit = async ({ service }: Watched, path: string, body: object): Promise<number> => {
    const { status, headers, text } = await service.call('PATCH', path, { body: body as never })
    assert.equal(status, 200, text)
    return Number(headers['x-revision'])
  }
  const counts = ({
    affected,
    served,
    applied,
    healthy,
    failed,
    offline,
    unknown,
  }: Record<string, number>) => ({
    affected,
    served,
    applied,
    healthy,
    failed,
    offline,
    unknown,
  })
  const none = { served: 0, applied: 0, healthy: 0, failed: 0, offline: 0, unknown: 0 }

  test('counts each cluster as it is served, applies and becomes healthy, and knows when that was', async () => {
    const watched = await start({ one: {}, two: {}, away: {}, other: { components: [{ id: 'b' }] } })
    const { one, two, away, other } = watched.clusters as Required<Clusters>
    for (const cluster of [one, two, away, other]) await cluster?.settle()
    watched.pass(1000)
    for (const cluster of [one, two]) await cluster?.settle()
    watched.pass(100)
    const revision = await edit(watched, '/platform_components/a', { oci_tag: 'v1.1.0' })
    const progress = () => read(watched, `/revisions/${revision}/propagation`)
    const before = await progress()
    assert.deepEqual(counts(before), { ...none, affected: 3, offline: 1, unknown: 2 })
    assert.deepEqual(
      [before.revision, before.time, before.forecast],
      [revision, at(watched, 0), { served_s: 200 }],
    )
    assert.deepEqual(before.pending[0], {
      cluster: 'away',
      contact: 'offline',
      delivery: 'behind',
      health: 'unknown',
    })

    watched.pass(20)
    await one?.poll()
    const served = await progress()
    assert.deepEqual(counts(served), { ...none, affected: 3, served: 1, offline: 1, unknown: 2 })
    assert.deepEqual(served.times.served, { p50_s: null, p95_s: null, p100_s: null })

    watched.pass(10)
    await one?.report({ except: ['a'] })
    assert.deepEqual(counts(await progress()), {
      ...none,
      affected: 3,
      served: 1,
      applied: 1,
      offline: 1,
      unknown: 2,
    })
    await one?.report()
    watched.pass(10)
    await two?.poll()
    two?.fail('HelmRelease', 'a', 'UpgradeFailed', 'no')
    const later = await progress()
    assert.deepEqual(counts(later), {
      affected: 3,
      served: 2,
      applied: 1,
      healthy: 1,
      failed: 1,
      offline: 1,
      unknown: 0,
    })
    assert.deepEqual(later.times, {
      served: { p50_s: 40, p95_s: null, p100_s: null },
      applied: { p50_s: null, p95_s: null, p100_s: null },
    })
    assert.deepEqual(later.forecast, { served_s: null })
    assert.deepEqual(
      later.pending.map(({ cluster }: { cluster: string }) => cluster),
      ['away', 'two'],
    )
  })

  test('of a later change of the same clusters leaves the earlier one applied, and a deleted cluster counts no more', async () => {
    const watched = await start({ one: {}, two: {} })
    const { one, two } = watched.clusters
    const first = await edit(watched, '/platform_components/a', { oci_tag: 'v1.1.0' })
    await one?.settle()
    const second = await edit(watched, '/platform_components/a', { oci_tag: 'v1.2.0' })
    assert.deepEqual(counts(await read(watched, `/revisions/${first}/propagation`)), {
      ...none,
      affected: 2,
      served: 1,
      applied: 1,
      offline: 1,
      unknown: 1,
    })
    assert.equal((await read(watched, `/revisions/${second}/propagation`)).applied, 0)
    const ofTwo = await read(
      watched,
      `/revisions/${first}/propagation?selector=${encodeURIComponent('id=two')}`,
    )
    assert.deepEqual([ofTwo.affected, ofTwo.applied], [1, 0])
    const wrong = await watched.service.call('GET', `/revisions/${first}/propagation?selector=,`)
    assert.deepEqual([wrong.status, wrong.body.details[0].path], [400, '?selector'])
    for (const cluster of [one, two]) await cluster?.settle()
    for (const revision of [first, second])
      assert.deepEqual(counts(await read(watched, `/revisions/${revision}/propagation`)), {
        ...none,
        affected: 2,
        served: 2,
        applied: 2,
        healthy: 2,
      })
    assert.equal((await watched.service.call('DELETE', '/clusters/two?confirm=removals')).status, 200)
    assert.equal((await read(watched, `/revisions/${first}/propagation`)).affected, 1)
  })

  test('of a removal is done when the cluster reports that it has nothing left', async () => {
    const watched = await start({ one: {} })
    const { one } = watched.clusters
    await one?.settle()
    const revision = await edit(watched, '/clusters/one?confirm=removals', { platform_components: [] })
    const progress = async () => counts(await read(watched, `/revisions/${revision}/propagation`))
    watched.pass(5)
    await one?.poll()
    assert.deepEqual(await progress(), { ...none, affected: 1, served: 1, unknown: 1 })
    watched.pass(5)
    await one?.report()
    assert.deepEqual(await progress(), { ...none, affected: 1, served: 1, applied: 1, healthy: 1 })
  })

  test('of one that changes nothing for clusters is of none, and an unknown one is not found', async () => {
    const watched = await start({ one: {} })
    const revision = await edit(watched, '/platform_components/b', { oci_tag: 'v1.1.0' })
    const { pending, times, ...rest } = await read(watched, `/revisions/${revision}/propagation`)
    assert.deepEqual([counts(rest), pending], [{ ...none, affected: 0 }, []])
    assert.deepEqual(times.served, { p50_s: null, p95_s: null, p100_s: null })
    for (const [path, status] of [
      ['99', 404],
      ['x', 404],
    ]) {
      const answer = await watched.service.call('GET', `/revisions/${path}/propagation`)
      const plain = await watched.service.call('GET', `/revisions/${path}`)
      assert.deepEqual([answer.status, plain.status], [status, status])
    }
  })
})

describe('the versions of a component', () => {
  test('are those that clusters are to have, by the catalog or by their own override, with how they fare', async () => {
    const pinned = [{ id: 'a', oci_tag: 'v0.9.0' }]
    const watched = await start({
      one: { environment: 'prod' },
      two: { environment: 'dev' },
      pinned: { environment: 'prod', components: pinned },
      broken: { environment: 'dev', components: pinned },
      off: { components: [{ id: 'a', enabled: false }] },
      other: { components: [{ id: 'b' }] },
    })
    const { one, two, pinned: held, broken } = watched.clusters
    await one?.settle()
    await two?.poll()
    await held?.poll()
    await held?.report({ except: ['a'] })
    await broken?.poll()
    broken?.fail('Kustomization', 'a', 'BuildFailed', 'no such file')
    const none = { clusters: 1, applied: 0, healthy: 0, failed: 0 }
    assert.deepEqual(await read(watched, '/platform_components/a/versions'), {
      type: 'platform_components',
      id: 'a',
      versions: [
        {
          version: 'v0.9.0',
          overridden: 2,
          clusters: 2,
          applied: 1,
          healthy: 0,
          failed: 1,
          environments: { dev: { ...none, failed: 1 }, prod: { ...none, applied: 1 } },
        },
        {
          version: 'v1.0.0',
          overridden: 0,
          clusters: 2,
          applied: 1,
          healthy: 1,
          failed: 0,
          environments: { dev: none, prod: { ...none, applied: 1, healthy: 1 } },
        },
      ],
    })
  })

  test('of a chart are the versions of the chart, and not its tag', async () => {
    const { platform_components, ...fleet } = fleetOf({ one: {} })
    const charts = platform_components.map((each) => ({ ...each, delivery: 'helm' }))
    const watched = await startWatched({ fleet: { ...fleet, platform_components: charts } })
    const { versions } = await read(watched, '/platform_components/a/versions')
    assert.deepEqual(
      versions.map(({ version }: { version: string }) => version),
      ['1.0.0'],
    )
  })

  test('are none of an unknown component, nor of one that no cluster has', async () => {
    const watched = await start({ one: {} })
    for (const path of ['/platform_components/nonsense/versions', '/clusters/one/versions'])
      assert.equal((await watched.service.call('GET', path)).status, 404, path)
    assert.deepEqual((await read(watched, '/platform_components/b/versions')).versions, [])
  })
})

describe('the metrics of the fleet', () => {
  const samples = async ({ service }: Watched, name: string): Promise<Record<string, number>> => {
    await service.engine.fleet.refresh()
    const { text } = await service.call('GET', '/metrics', { token: null })
    const found = [...text.matchAll(/^(flux_resourceset_\w+)(?:\{(.*)\})? (\S+)$/gm)]
    return Object.fromEntries(
      found.flatMap(([, metric, labels = '', value]) => (metric === name ? [[labels, Number(value)]] : [])),
    )
  }
  test('count clusters by state and environment, by problem, and by what they have reported', async () => {
    const watched = await start({ one: { environment: 'prod' }, two: {}, three: {} })
    const { one, two } = watched.clusters
    await one?.settle()
    await two?.poll()
    watched.pass(2000)
    await two?.poll()
    assert.deepEqual(above(await samples(watched, 'flux_resourceset_clusters_contact')), {
      'environment="dev",state="current"': 1,
      'environment="dev",state="never"': 1,
      'environment="prod",state="offline"': 1,
    })
    assert.deepEqual(above(await samples(watched, 'flux_resourceset_clusters_delivery')), {
      'environment="dev",state="behind"': 1,
      'environment="dev",state="served"': 1,
      'environment="prod",state="applied"': 1,
    })
    assert.deepEqual(above(await samples(watched, 'flux_resourceset_clusters_health')), {
      'environment="dev",state="unknown"': 2,
      'environment="prod",state="unknown"': 1,
    })
    assert.deepEqual(above(await samples(watched, 'flux_resourceset_clusters_problem')), {
      'problem="offline"': 1,
    })
    assert.deepEqual(await samples(watched, 'flux_resourceset_reports_total'), { '': 1 })
    assert.deepEqual(await samples(watched, 'flux_resourceset_oldest_contact_seconds'), { '': 2000 })
    assert.ok(((await samples(watched, 'flux_resourceset_notes_pending'))[''] ?? 0) > 0)
  })

  test('say how many clusters in contact are behind, and for how long', async () => {
    const watched = await start({ one: {}, two: {} })
    const { one, two } = watched.clusters
    for (const cluster of [one, two]) await cluster?.settle()
    const lag = async () => [
      (await samples(watched, 'flux_resourceset_clusters_behind'))[''],
      (await samples(watched, 'flux_resourceset_behind_seconds'))[''],
    ]
    assert.deepEqual(await lag(), [0, 0])
    const body = { oci_tag: 'v2.0.0' }
    assert.equal((await watched.service.call('PATCH', '/platform_components/a', { body })).status, 200)
    assert.deepEqual(await lag(), [2, 0])
    watched.pass(100)
    await one?.poll()
    assert.deepEqual(await lag(), [1, 100])
  })

  test('name the largest environments only, and count the others together', async () => {
    const file = readFileSync(join(RESOURCES, 'cluster.yaml'), 'utf8')
    const anywhere = file.replace(/enum: \[dev, qa, uat, prod\]/g, 'minLength: 1')
    assert.notEqual(anywhere, file)
    const folder = temporaryFolder({ after })
    for (const name of readdirSync(RESOURCES))
      writeFileSync(
        join(folder, name),
        name === 'cluster.yaml' ? anywhere : readFileSync(join(RESOURCES, name), 'utf8'),
      )
    const loaded = loadTypes([folder])
    assert.ok(loaded.ok)
    const many = Array.from({ length: 30 }, (_, i) => [`c${i}`, { environment: `tier-${i}` }] as const)
    const fleet = fleetOf({ ...Object.fromEntries(many), last: { environment: 'tier-29' } })
    const watched = await startWatched({ fleet, types: loaded.types })
    const counts = above(await samples(watched, 'flux_resourceset_clusters_contact'))
    assert.equal(Object.keys(counts).length, 21)
    assert.equal(counts['environment="tier-29",state="never"'], 2)
    assert.equal(counts['environment="other",state="never"'], 10)
  })
})

test('counts of the status are those of its rows, whatever the filters, and its pages are one list', async () => {
  const watched = await start(
    Object.fromEntries(
      Array.from({ length: 12 }, (_, i) => [
        `c${i}`,
        { environment: ['dev', 'prod', 'qa'][i % 3] as string, components: i % 2 ? [{ id: 'a' }] : [] },
      ]),
    ),
  )
  const deed = fc.constantFrom('poll', 'settle', 'refuse', 'fail', 'wait', 'edit')
  const filters = fc.record(
    {
      contact: fc.constantFrom('current', 'late', 'offline', 'never', 'refused'),
      delivery: fc.constantFrom('behind', 'served', 'applied', 'rejected'),
      health: fc.constantFrom('failed', 'unknown', 'progressing', 'healthy'),
      environment: fc.constantFrom('dev', 'prod'),
      selector: fc.constantFrom('environment!=qa', 'uses.platform_components=a'),
      sort: fc.constantFrom('cluster', 'last_seen', 'contact', 'delivery', 'health'),
    },
    { requiredKeys: [] },
  )
  let edits = 0
  const act = async (deed: string, i: number): Promise<void> => {
    const cluster = watched.clusters[`c${i}`] ?? assert.fail()
    if (deed === 'poll') await cluster.poll()
    else if (deed === 'settle') await cluster.settle()
    else if (deed === 'refuse') await cluster.beRefused()
    else if (deed === 'fail' && i % 2) cluster.fail('HelmRelease', 'a', 'InstallFailed', 'no')
    else if (deed === 'wait') watched.pass(400)
    else if (deed === 'edit')
      await watched.service.call('PATCH', '/platform_components/a', { body: { oci_tag: `v${++edits}` } })
  }
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(deed, fc.nat(11)), { maxLength: 8 }),
      filters,
      fc.integer({ min: 1, max: 5 }),
      async (deeds, query, limit) => {
        for (const [deed, i] of deeds) await act(deed, i)
        const search = (page: object) => `/status?${new URLSearchParams({ ...query, ...page } as never)}`
        const whole = await read(watched, search({ limit: '5000' }))
        assert.equal(whole.total, whole.clusters.length)
        const rows: Row[] = whole.clusters
        for (const column of ['contact', 'delivery', 'health'] as const) {
          assert.deepEqual(above(whole.counts[column]), countBy(rows, column))
          for (const [environment, counts] of Object.entries<Row & Record<string, never>>(whole.environments))
            assert.deepEqual(
              above(counts[column] as never),
              countBy(
                rows.filter((row) => row.environment === environment),
                column,
              ),
            )
        }
        const pages: Row[] = []
        for (let offset = 0; offset < whole.total; offset += limit)
          pages.push(...(await read(watched, search({ limit, offset }))).clusters)
        assert.deepEqual(pages, rows)
      },
    ),
    { numRuns: 30 },
  )
})

interface Row {
  readonly environment: string
  readonly contact: string
  readonly delivery: string
  readonly health: string
}

function countBy(rows: readonly Row[], column: keyof Row): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const row of rows) counts[row[column]] = (counts[row[column]] ?? 0) + 1
  return counts
}

function above(counts: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
}
