// The simulator's check of the status: it notices whatever a service says that is better or worse than the truth.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FleetStatus } from '../src/api/status-schema.ts'
import type { JsonObject } from '../src/base/json.ts'
import type { ClusterAnswer } from '../tools/simulate/exchange.ts'
import { sendGet, sendRequest } from '../tools/simulate/operator-request.ts'
import { openRemoteFleet } from '../tools/simulate/remote-fleet.ts'
import { type Behaviour, SimulatedCluster } from '../tools/simulate/simulated-cluster.ts'
import { SimulatedFleet } from '../tools/simulate/simulated-fleet.ts'
import { StatusCheck, type StatusCheckSummary } from '../tools/simulate/status-check.ts'
import { startWatched } from './reporting-clusters.ts'
import { WRITE_TOKEN } from './service.ts'

const ENDPOINTS = ['namespaces', 'platform-components', 'rolebindings']
const INTERVAL = 10_000

/** Changes what the service said before it is compared; undefined is a failure. */
type Lie = (path: string, body: string) => string | undefined

interface Run {
  readonly seconds: number
  readonly behaviour?: Partial<Behaviour>
  readonly endpoints?: readonly string[]
  readonly lie?: Lie
}

/** Two clusters and a real service on one clock; what is noticed at the end. */
async function checkAfter(run: Run): Promise<StatusCheckSummary> {
  const { service, pass, now } = await startWatched()
  try {
    const source = await openRemoteFleet({
      url: service.url,
      token: WRITE_TOKEN,
      clusters: 2,
      timeoutMs: 5000,
    })
    const startsAt = now()
    const plan = run.behaviour?.plan?.map(({ at, fault }) => ({ at: startsAt + at, fault })) ?? []
    const clusters = source.clusters.map(
      ({ dns, token }) =>
        new SimulatedCluster({
          dns,
          token,
          endpoints: run.endpoints ?? ENDPOINTS,
          interval: INTERVAL,
          startsAt,
          behaviour: { ...run.behaviour, plan },
        }),
    )
    const fleet = new SimulatedFleet({
      clusters,
      send: (request) => sendRequest(source.target, request),
      clock: now,
    })
    const endsAt = startsAt + run.seconds * 1000
    while (fleet.dueAt <= endsAt) {
      pass((fleet.dueAt - now()) / 1000)
      fleet.step()
      await fleet.settle()
    }
    pass((endsAt - now()) / 1000)
    const get = async (path: string): Promise<ClusterAnswer> => {
      const answer = await sendGet(source.target, path, WRITE_TOKEN)
      if (answer.kind === 'dropped' || !run.lie) return answer
      const body = run.lie(path, answer.body)
      return body === undefined ? { ...answer, status: 503 } : { ...answer, body }
    }
    const ids = new Map(source.clusters.map(({ dns, id }) => [dns, id]))
    const simulated = new Map(clusters.map((cluster) => [ids.get(cluster.dns) ?? '', cluster]))
    const check = new StatusCheck({ clusters: simulated, get, clock: now })
    await check.run()
    return check.summary
  } finally {
    await service.stop()
  }
}

function problemsOf({ wrong }: StatusCheckSummary): string {
  return wrong.map(({ cluster, problems }) => `${cluster}: ${problems.join('; ')}`).join('\n')
}

/** Changes the rows alone, or all that is said of one cluster. */
const inRows =
  (change: JsonObject): Lie =>
  (path, body) => {
    if (!path.startsWith('/status')) return body
    const page = JSON.parse(body) as FleetStatus
    return JSON.stringify({ ...page, clusters: page.clusters.map((row) => ({ ...row, ...change })) })
  }

test('a service that tells the truth of settled clusters has nothing wrong, and all of them are compared', async () => {
  const summary = await checkAfter({ seconds: 25 })
  assert.equal(problemsOf(summary), '')
  const { wrong: _, ...counts } = summary
  assert.deepEqual(counts, {
    checks: 1,
    rows: 2,
    statuses: 2,
    settled: 2,
    untold_failures: 0,
    wrong_statuses: 0,
  })
})

const WORSE: Readonly<Record<string, JsonObject>> = {
  'contact late': { contact: 'late' },
  'delivery served': { delivery: 'served' },
  'health unknown': { health: 'unknown' },
}

for (const [said, change] of Object.entries(WORSE)) {
  test(`${said} of a settled cluster is noticed`, async () => {
    const summary = await checkAfter({ seconds: 25, lie: inRows(change) })
    assert.match(problemsOf(summary), new RegExp(`^one: ${said} of a settled cluster$`, 'm'))
    assert.equal(summary.wrong_statuses, 2)
    const [{ said: row, truth } = assert.fail()] = summary.wrong
    assert.deepEqual({ ...(row as JsonObject), ...change }, row)
    assert.partialDeepStrictEqual(truth, { isAway: false, isReportConfirmed: true, components: {} })
  })
}

test('contact current of a cluster that went away is noticed', async () => {
  const away: Run = { seconds: 60, behaviour: { plan: [{ at: 25_000, fault: { kind: 'away' } }] } }
  assert.equal(problemsOf(await checkAfter(away)), '')
  const lied = await checkAfter({ ...away, lie: inRows({ contact: 'current' }) })
  assert.match(problemsOf(lied), /^one: contact current, and nothing was heard for 1.5 intervals$/m)
})

test('delivery applied before it is is noticed, in rows and of one endpoint', async () => {
  const early: Run = { seconds: 1, behaviour: { applyMs: 5000 } }
  assert.equal(problemsOf(await checkAfter(early)), '')
  const inRow = await checkAfter({ ...early, lie: inRows({ delivery: 'applied' }) })
  assert.match(problemsOf(inRow), /^one: delivery applied, and not everything is$/m)
  const inOne = await checkAfter({
    ...early,
    lie: (path, body) =>
      path.startsWith('/clusters/one')
        ? body.replaceAll('"delivery":"served"', '"delivery":"applied"')
        : body,
  })
  assert.match(
    problemsOf(inOne),
    /^one: delivery applied, and not everything is; endpoint namespaces applied, and it is not; /m,
  )
})

test('health healthy of components that are not ready yet is noticed', async () => {
  const early: Run = { seconds: 2, behaviour: { readyMs: 60_000 } }
  assert.equal(problemsOf(await checkAfter(early)), '')
  const lied = await checkAfter({
    ...early,
    lie: (path, body) =>
      path.startsWith('/clusters/one') ? body.replaceAll('"progressing"', '"healthy"') : body,
  })
  assert.match(
    problemsOf(lied),
    /^one: health healthy, and not every component is; component a healthy, and it is not; component b /m,
  )
})

test('health healthy of a component whose failure was told is noticed', async () => {
  const failing: Run = {
    seconds: 25,
    behaviour: { plan: [{ at: 15_000, fault: { kind: 'fail', component: 'a' } }] },
  }
  const honest = await checkAfter(failing)
  assert.equal(problemsOf(honest), '')
  assert.equal(honest.untold_failures, 0)
  const lied = await checkAfter({
    ...failing,
    lie: (path, body) => (path.startsWith('/clusters/one') ? body.replaceAll('"failed"', '"healthy"') : body),
  })
  assert.match(problemsOf(lied), /^one: health healthy.*; component a healthy, and it is not$/m)
})

test('a failure whose event was lost is counted, and nobody is blamed', async () => {
  const summary = await checkAfter({
    seconds: 25,
    behaviour: {
      losesEvent: () => true,
      plan: [{ at: 15_000, fault: { kind: 'fail', component: 'a' } }],
    },
  })
  assert.equal(problemsOf(summary), '')
  assert.equal(summary.untold_failures, 1)
})

test('a healthy component with another digest than the one that is ready is noticed', async () => {
  const summary = await checkAfter({
    seconds: 25,
    lie: (path, body) =>
      path.startsWith('/clusters/one')
        ? body.replaceAll(/"digest":"[0-9a-f]{16}"/g, `"digest":"${'0'.repeat(16)}"`)
        : body,
  })
  assert.match(problemsOf(summary), /^one: component a healthy, and it is not; component b healthy/m)
})

test('a cluster that polls some of its endpoints is not applied, and settled all the same', async () => {
  const some: Run = { seconds: 25, endpoints: ENDPOINTS.slice(0, 2) }
  const summary = await checkAfter(some)
  assert.equal(problemsOf(summary), '')
  assert.equal(summary.settled, 2)
  const lied = await checkAfter({
    ...some,
    lie: (path, body) => (path.startsWith('/status') ? body : body.replaceAll('"behind"', '"applied"')),
  })
  assert.match(problemsOf(lied), /endpoint rolebindings applied, and it is not/)
})

test('a cluster without a row, and a status that cannot be read, are wrong', async () => {
  const hidden = await checkAfter({
    seconds: 25,
    lie: (path, body) =>
      path.startsWith('/status') ? body.replace('"cluster":"one"', '"cluster":"other"') : body,
  })
  assert.match(problemsOf(hidden), /^one: no row$/m)
  const failing = await checkAfter({
    seconds: 25,
    lie: (path, body) => (path.startsWith('/clusters/one') ? undefined : body),
  })
  assert.equal(problemsOf(failing), '/clusters/one/status: no answer with 200')
})
