// Many simulated clusters: each is called when its time has come, so much is sent at once, and chance can be repeated.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as later } from 'node:timers/promises'
import fc from 'fast-check'
import type { ClusterAnswer, ClusterRequest, Send } from '../tools/simulate/exchange.ts'
import { dropSome, planFaults } from '../tools/simulate/faults.ts'
import { SimulatedCluster } from '../tools/simulate/simulated-cluster.ts'
import { SimulatedFleet } from '../tools/simulate/simulated-fleet.ts'
import { TimerWheel } from '../tools/simulate/timer-wheel.ts'
import { createRandom } from './seeded-random.ts'

test('whatever is entered comes out once, never early and at most a slot late', () => {
  const time = fc.nat({ max: 500 })
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat({ max: 20 }), time), { maxLength: 40 }), (entries) => {
      const wheel = new TimerWheel<number>(5, 0)
      const expected = new Map<number, number>()
      for (const [item, at] of entries) {
        wheel.set(item, at)
        expected.set(item, at)
      }
      for (let now = 0; now <= 510; now++) {
        for (const item of wheel.take(now)) {
          const at = expected.get(item) ?? assert.fail(`${item} came out again`)
          assert.ok(now >= at && now < at + 5, `${item} was due at ${at} and came at ${now}`)
          expected.delete(item)
        }
      }
      assert.equal(expected.size, 0)
      assert.equal(wheel.dueAt, Number.POSITIVE_INFINITY)
    }),
  )
})

const INPUT = '"digest":"aaaaaaaaaaaaaaaa","answer_digest":"bbbbbbbbbbbbbbbb"'

function answerTo({ kind }: ClusterRequest): ClusterAnswer {
  if (kind === 'event') return { kind: 'answer', status: 202, body: '' }
  return {
    kind: 'answer',
    status: 200,
    body: kind === 'ack' ? '{"inputs":[]}' : `{"inputs":[{"id":"a",${INPUT}}]}`,
  }
}

function createClusters(
  count: number,
  options: { faults?: number; until?: number } = {},
): SimulatedCluster[] {
  const random = createRandom(options.faults ?? 1)
  const endpoints = ['platform-components', 'namespaces']
  return Array.from({ length: count }, (_, n) => {
    const times = { startsAt: 0, endsAt: options.until ?? 0, endpoints }
    return new SimulatedCluster({
      dns: `c${n}.example.com`,
      token: 'secret',
      endpoints,
      interval: 10_000,
      startsAt: n,
      ...(options.faults !== undefined && { behaviour: planFaults(random, times) }),
    })
  })
}

/** Lets a fleet live on a clock that waits for it; returns everything that was sent. */
async function live(clusters: readonly SimulatedCluster[], until: number, send: Send): Promise<string[]> {
  let now = 0
  const sent: string[] = []
  const fleet = new SimulatedFleet({
    clusters,
    send: (request) => {
      sent.push(`${now} ${request.kind} ${request.path}`)
      return send(request)
    },
    clock: () => now,
  })
  for (; fleet.dueAt <= until; now = fleet.dueAt) {
    fleet.step()
    await fleet.settle()
  }
  return sent
}

test('every cluster of a fleet polls each of its endpoints in every interval', async () => {
  const sent = await live(createClusters(100), 29_999, async (request) => answerTo(request))
  assert.equal(sent.filter((line) => line.includes(' poll ')).length, 100 * 2 * 3)
})

test('no more is under way at once than was asked for, and all of it is sent', async () => {
  let underWay = 0
  let most = 0
  let now = 0
  const fleet = new SimulatedFleet({
    clusters: createClusters(50),
    concurrency: 7,
    clock: () => now,
    async send(request) {
      most = Math.max(most, ++underWay)
      await later()
      underWay--
      return answerTo(request)
    },
  })
  now = 100
  fleet.step()
  await fleet.settle()
  assert.equal(most, 7)
  assert.equal(fleet.figures.summary(1).polls, 100)
})

test('trouble comes by chance that can be repeated, of every kind, and leaves most clusters alone', async () => {
  const lives = async (seed: number): Promise<string[]> => {
    const drop = dropSome(async (request) => answerTo(request), createRandom(seed), 0.01)
    return live(createClusters(200, { faults: seed, until: 40_000 }), 40_000, drop)
  }
  const sent = await lives(7)
  assert.deepEqual(await lives(7), sent)
  assert.notDeepEqual(await lives(8), sent)
  const clusters = createClusters(200, { faults: 7, until: 40_000 })
  await live(clusters, 40_000, async (request) => answerTo(request))
  const truths = clusters.map((cluster) => cluster.truth(40_000))
  const failed = truths.filter(({ components }) => components.a?.state === 'failed')
  const away = truths.filter(({ isAway }) => isAway)
  assert.ok(failed.length > 0 && failed.length < 40, `${failed.length} failed`)
  assert.ok(away.length > 0 && away.length < 40, `${away.length} away`)
})
