// A process that polls as the Flux Operator does and writes as an admin does, at set times, and tells how long all took.
import { connect } from 'node:net'
import { constants, setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { clusterDns, clusterId, clusterToken } from '../fleet.ts'
import { fluxRequest } from '../load.ts'
import { TOKEN } from '../server-process.ts'
import { NO_ANSWER, type Sample, type Series } from './verdict.ts'

export interface Watch {
  readonly port: number
  readonly clusters: number
  readonly seconds: number
  /** Polls a second. */
  readonly rate: number
  /** Without an answer for so long, it failed. */
  readonly patienceMs: number
  readonly isAdminThere: boolean
}

/** Of the environment prod, where the editor has no business. */
const WRITTEN = clusterId(3)
const ADMIN_MS = 1000

let isStopped = false

function openSeries(): Series {
  return { times: [], failures: {} }
}

/** Nothing when all went well. */
type Failure = string | undefined

async function time({ times, failures }: Series, due: number, work: Promise<Failure>): Promise<Failure> {
  const failure = await work
  if (failure !== undefined) failures[failure] = (failures[failure] ?? 0) + 1
  if (failure === undefined || failure === NO_ANSWER) times.push(performance.now() - due)
  return failure
}

interface Exchange {
  readonly port: number
  readonly patienceMs: number
  readonly request: string
  /** What is wrong with the answer, head and body. */
  readonly check: (head: string, body: Buffer) => Failure
}

/** One request on a connection of its own, up to the last byte of its answer. */
function exchange({ port, patienceMs, request, check }: Exchange): Promise<Failure> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const chunks: Buffer[] = []
    let missing = Number.POSITIVE_INFINITY
    const end = (failure: Failure): void => {
      clearTimeout(timer)
      resolve(failure)
      socket.destroy()
    }
    const timer = setTimeout(() => end(NO_ANSWER), patienceMs)
    socket.on('connect', () => socket.write(request, 'latin1'))
    socket.on('error', ({ code = 'error' }: NodeJS.ErrnoException) => end(code))
    socket.on('close', () => end('cut off'))
    socket.on('data', (chunk) => {
      chunks.push(chunk as Buffer)
      if (missing === Number.POSITIVE_INFINITY) {
        const at = chunk.indexOf('\r\n\r\n')
        missing = at + 4 + Number(/content-length: (\d+)/i.exec(chunk.toString('latin1', 0, at))?.[1] ?? 0)
      }
      missing -= chunk.length
      if (missing > 0) return
      const all = Buffer.concat(chunks)
      const at = all.indexOf('\r\n\r\n')
      end(check(all.toString('latin1', 0, at), all.subarray(at + 4)))
    })
  })
}

/** Whoever gets anything else deletes what is installed, or goes on with what is old. */
function checkPoll(head: string, body: Buffer): Failure {
  if (!head.startsWith('HTTP/1.1 200')) return head.slice(9, 12)
  const text = (/content-encoding: gzip/i.test(head) ? gunzipSync(body) : body).toString()
  return text.startsWith('{"inputs":[{') && text.endsWith('}]}') ? undefined : 'wrong inputs'
}

function poll({ port, clusters, patienceMs }: Watch, n: number): Promise<Failure> {
  const cluster = (n * 7919) % clusters
  const path = `/api/v2/flux/clusters/${clusterDns(cluster)}/platform-components`
  const request = fluxRequest(path, clusterToken(cluster), `127.0.0.1:${port}`)
  return exchange({ port, patienceMs, request, check: checkPoll })
}

function administer({ port, patienceMs }: Watch, line: string, body?: object): Promise<Failure> {
  const text = body === undefined ? '' : JSON.stringify(body)
  const lines = [
    `${line} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    `Authorization: Bearer ${TOKEN}`,
    'Connection: close',
    ...(body === undefined ? [] : ['Content-Type: application/json', `Content-Length: ${text.length}`]),
  ]
  const check = (head: string): Failure => (/^HTTP\/1\.1 2/.test(head) ? undefined : head.slice(9, 12))
  return exchange({ port, patienceMs, request: `${lines.join('\r\n')}\r\n\r\n${text}`, check })
}

/** A label of a cluster, and a token that is made and revoked. */
async function write(watch: Watch, { writes, revocations }: Sample, due: number): Promise<void> {
  const name = `bench-${process.pid}-${Math.round(due)}`
  const patch = administer(watch, `PATCH /clusters/${WRITTEN}`, { labels: { seen: name } })
  const created = time(writes, due, administer(watch, 'POST /tokens', { name, role: 'viewer' }))
  await Promise.all([time(writes, due, patch), created])
  const before = performance.now()
  const isThere = (await created) === undefined
  // What could not be made cannot be revoked: the admin is as helpless.
  const revoked = isThere ? administer(watch, `DELETE /tokens/${name}`) : Promise.resolve('no token')
  await time(revocations, before, revoked)
}

/** Calls it at its times, whatever became of the calls before, until the time is over. */
async function repeat(
  everyMs: number,
  seconds: number,
  work: (due: number, n: number) => unknown,
): Promise<void> {
  const begun = performance.now()
  const all: unknown[] = []
  for (let n = 0; n * everyMs < seconds * 1000 && !isStopped; n++) {
    const due = begun + n * everyMs
    while (performance.now() < due) await sleep(Math.max(0, due - performance.now() - 1))
    all.push(work(due, n))
  }
  await Promise.all(all)
}

async function observe(watch: Watch): Promise<Sample> {
  isStopped = false
  const sample = { polls: openSeries(), writes: openSeries(), revocations: openSeries() }
  await Promise.all([
    repeat(1000 / watch.rate, watch.seconds, (due, n) => time(sample.polls, due, poll(watch, n))),
    watch.isAdminThere && repeat(ADMIN_MS, watch.seconds, (due) => write(watch, sample, due)),
  ])
  return sample
}

// Where all cores are busy, whoever measures would wait for one itself; where it may not go first, figures include that.
try {
  setPriority(0, constants.priority.PRIORITY_HIGHEST)
} catch {
  console.error('polls are measured without priority over the server')
}
process.once('disconnect', () => process.exit())
process.on('message', async (message: Watch | 'stop') => {
  if (message === 'stop') isStopped = true
  else process.send?.(await observe(message))
})
