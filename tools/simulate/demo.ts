// `make run`: the service with the demo fleet, and simulated clusters that poll it, so that its status has something to show.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { endWithUs, SMALL_HEAP_STEPS } from '../../bench/server-process.ts'
import { ENDPOINTS } from './bench-fleet-inputs.ts'
import { writeDemoEnvironment } from './demo-environment.ts'
import { DEMO_FAULTS, DEMO_INTERVAL_MS } from './demo-faults.ts'
import type { FleetSource } from './fleet-source.ts'
import { sendRequest } from './operator-request.ts'
import { openRemoteFleet } from './remote-fleet.ts'
import { SimulatedCluster } from './simulated-cluster.ts'
import { runFleet, SimulatedFleet } from './simulated-fleet.ts'

const MAIN = join(import.meta.dirname, '../../src/main.ts')
const MAX_CLUSTERS = 10
/** One after the other, and soon. */
const START_MS = 100
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

const { DEMO_CLUSTERS = String(MAX_CLUSTERS), LISTEN_ADDR = '', AUTH_TOKEN = '' } = process.env
const { CRUD_AUTH_TOKEN = AUTH_TOKEN, DATABASE_URL = '', DEMO_ENV_FILE, SEED_FILE } = process.env

/** Where the simulated clusters reach the service; undefined where they cannot. */
function serviceUrl(): string | undefined {
  const [, host, port] = /^(.*):(\d+)$/.exec(LISTEN_ADDR) ?? []
  if (port === undefined || LISTEN_ADDR.startsWith('unix:') || process.env.TLS_CERT_FILE) return undefined
  return `http://${host === '' || host === '0.0.0.0' || host === '[::]' ? '127.0.0.1' : host}:${port}`
}

async function untilReady(url: string): Promise<void> {
  for (;;) {
    const ready = await fetch(`${url}/ready`).catch(() => undefined)
    if (ready?.ok) return
    await sleep(200)
  }
}

function buildFleet({ target, clusters }: FleetSource): SimulatedFleet {
  const clock = (): number => Date.now()
  return new SimulatedFleet({
    clusters: clusters.map(({ dns, token }, i) => {
      const { interval = DEMO_INTERVAL_MS, plan = [] } =
        DEMO_FAULTS.find((faults) => faults.dns === dns) ?? {}
      const startsAt = clock() + i * START_MS
      return new SimulatedCluster({
        dns,
        token,
        endpoints: ENDPOINTS,
        interval,
        startsAt,
        behaviour: { plan: plan.map(({ at, fault }) => ({ at: startsAt + at, fault })) },
      })
    }),
    send: (request) => sendRequest(target, request),
    clock,
  })
}

/** For as long as the service runs. */
async function simulateClusters(count: number): Promise<void> {
  const url = serviceUrl()
  if (url === undefined) throw new Error('they poll over http only')
  await untilReady(url)
  const source = await openRemoteFleet({ url, token: AUTH_TOKEN, clusters: count, timeoutMs: 10_000 })
  await runFleet(buildFleet(source), new AbortController().signal)
}

/** Of a new database, before the service opens it: whoever looks at the demo finds a week of changes. */
async function prepareHistory(): Promise<void> {
  const [, path = ''] = /^sqlite:\/\/([^?]+)/.exec(DATABASE_URL) ?? []
  if (path === '' || SEED_FILE === undefined || existsSync(path)) return
  const { writeDemoHistory } = await import('./demo-history.ts')
  await writeDemoHistory(path, JSON.parse(readFileSync(SEED_FILE, 'utf8')))
}

const count = Number(DEMO_CLUSTERS)
if (!Number.isInteger(count) || count < 0) {
  console.error(`DEMO_CLUSTERS must be a number of clusters, not "${DEMO_CLUSTERS}"`)
  process.exit(2)
}
const url = serviceUrl()
if (DEMO_ENV_FILE !== undefined && url !== undefined) {
  const tokens = { readToken: AUTH_TOKEN, writeToken: CRUD_AUTH_TOKEN }
  writeDemoEnvironment(DEMO_ENV_FILE, { url, ...tokens, databaseUrl: DATABASE_URL })
}
if (count > 0) await prepareHistory()
const service = endWithUs(spawn(process.execPath, [...SMALL_HEAP_STEPS, MAIN], { stdio: 'inherit' }))
for (const signal of SIGNALS) process.on(signal, () => service.kill(signal))
if (count > 0)
  simulateClusters(count).catch((error: Error) =>
    console.error(`the demo goes on without simulated clusters: ${error.message}`),
  )
const [code, signal] = (await once(service, 'exit')) as [number | null, NodeJS.Signals | null]
process.exit(code ?? 128 + (signal ? constants.signals[signal] : 0))
