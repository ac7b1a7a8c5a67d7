// A load of GETs with as little cost of its own as possible, timing each of them.
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'

/** What the Flux Operator sends, byte for byte; by way of a proxy, what that adds to it. */
export function fluxRequest(path: string, token: string, host: string, forwarded = ''): string {
  const lines = [
    `GET ${path} HTTP/1.1`,
    `Host: ${host}`,
    'User-Agent: flux-operator/v0.58.1',
    'Accept: application/json',
    `Authorization: Bearer ${token}`,
    'Accept-Encoding: gzip',
  ]
  return `${lines.join('\r\n')}\r\n${forwarded}\r\n`
}

export interface Load {
  readonly port: number
  readonly paths: readonly string[]
  readonly token: string
  /** One for each path, instead of one for all. */
  readonly tokens?: readonly string[]
  readonly requests: number
  readonly connections: number
  /** A connection for every request, as the Flux Operator does it, instead of few that are kept. */
  readonly reconnect?: boolean
}

/** Milliseconds of each request; throws on any answer but 200. */
export async function runLoad({
  port,
  paths,
  token,
  tokens,
  requests,
  connections,
  reconnect = false,
}: Load): Promise<number[]> {
  const times: number[] = []
  let started = 0
  const request = (): string => {
    const i = (started++ * 7919) % paths.length
    const forwarded = reconnect ? '' : 'X-Forwarded-For: 127.0.0.1\r\n'
    return fluxRequest(paths[i] ?? '', tokens?.[i] ?? token, `127.0.0.1:${port}`, forwarded)
  }
  /** Sends requests over one connection for as long as `more` says so. */
  const converse = (more: () => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      let sent = performance.now()
      let expected = -1
      let received = 0
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      const send = (): void => {
        expected = -1
        received = 0
        socket.write(request(), 'latin1')
      }
      socket.on('connect', send)
      socket.on('error', reject)
      socket.on('close', () => reject(new Error('the connection was closed before the answer')))
      socket.on('data', (chunk) => {
        if (expected < 0) {
          const end = chunk.indexOf('\r\n\r\n')
          const head = chunk.toString('latin1', 0, end)
          if (!head.startsWith('HTTP/1.1 200')) return reject(new Error(`unexpected answer: ${head}`))
          expected = end + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1])
        }
        received += chunk.length
        if (received < expected) return
        times.push(performance.now() - sent)
        if (!more()) {
          socket.end()
          return resolve()
        }
        sent = performance.now()
        send()
      })
    })
  const worker = async (): Promise<void> => {
    if (!reconnect) return converse(() => started < requests)
    while (started < requests) await converse(() => false)
  }
  await Promise.all(Array.from({ length: connections }, worker))
  return times
}

export type SteadyLoad = Pick<Load, 'port' | 'paths' | 'token'> & { readonly rate: number }

/**
 * Sends GETs at a steady rate, each on a connection of its own, until told to stop. Answers the milliseconds from the
 * moment each was due, so that a server that stands still is charged for everyone who waits.
 */
export async function runSteadily(
  { port, paths, token, rate }: SteadyLoad,
  until: Promise<unknown>,
): Promise<number[]> {
  let going = true
  void until.finally(() => {
    going = false
  })
  const times: number[] = []
  const polls: Promise<void>[] = []
  const begun = performance.now()
  for (let sent = 0; going; sent++) {
    const due = begun + (sent * 1000) / rate
    while (performance.now() < due && going) await sleep(Math.max(0, due - performance.now() - 1))
    const path = paths[(sent * 7919) % paths.length] ?? '/'
    polls.push(
      getOnce(port, path, token).then(() => {
        times.push(performance.now() - due)
      }),
    )
  }
  await Promise.all(polls)
  return times
}

/** The same in a thread of its own, for as long as something else runs. */
export async function pollDuring(load: SteadyLoad, work: () => Promise<unknown>): Promise<number[]> {
  const worker = new Worker(new URL('./steady-load.ts', import.meta.url), { workerData: load })
  const times = new Promise<number[]>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
  await once(worker, 'online')
  try {
    await work()
  } finally {
    worker.postMessage('stop')
  }
  return times
}

function getOnce(port: number, path: string, token: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    let head = ''
    socket.on('connect', () => {
      socket.write(fluxRequest(path, token, `127.0.0.1:${port}`), 'latin1')
    })
    socket.on('data', (chunk) => {
      if (head === '') head = chunk.toString('latin1', 0, 12)
    })
    socket.on('error', reject)
    socket.on('close', () => (head === 'HTTP/1.1 200' ? resolve() : reject(new Error(`unexpected: ${head}`))))
  })
}

export function percentile(times: readonly number[], p: number): number {
  const sorted = [...times].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))] ?? 0
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5)
}
