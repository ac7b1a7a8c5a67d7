// Stands between a client and a server of a test, and breaks the network between them.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** `up` is from the client to the server. */
export type Direction = 'up' | 'down'

export interface TcpProxy {
  readonly port: number
  /** How many of clients are open. */
  readonly connections: number
  /** Where new connections lead from now on. */
  target(host: string, port: number): void
  /** Resets every connection, and new ones as soon as they are there. */
  cut(): void
  /** Keeps old connections and takes new ones; no byte and no end passes on them. */
  stall(): void
  /** Passes the first half of what comes next on a connection, either way or in that direction only, and resets it. */
  halve(only?: Direction): void
  /** Swallows what comes in that direction. */
  drop(direction: Direction): void
  /** Keeps everything that comes, in both directions, for that long. */
  delay(ms: number): void
  /** All is well again: what was stalled arrives; what was dropped or cut stays lost. */
  heal(): void
  close(): Promise<void>
}

interface Faults {
  readonly isCut?: boolean
  readonly halved?: readonly Direction[]
  readonly dropped?: readonly Direction[]
  readonly delayMs?: number
}

export async function startProxy(to: { readonly host: string; readonly port: number }): Promise<TcpProxy> {
  let goal = to
  let faults: Faults = {}
  let flow = Promise.resolve()
  let release: (() => void) | undefined
  const clients = new Set<Socket>()
  const sockets = new Set<Socket>()

  function hold(socket: Socket): Socket {
    sockets.add(socket.setNoDelay())
    socket.on('close', () => sockets.delete(socket))
    // Those that pass its bytes on hear of it.
    return socket.on('error', () => {})
  }

  const server = createServer({ allowHalfOpen: true }, async (client) => {
    hold(client)
    clients.add(client)
    client.on('close', () => clients.delete(client))
    if (faults.isCut) return client.resetAndDestroy()
    await flow
    if (client.destroyed) return
    const upstream = hold(connect({ ...goal, allowHalfOpen: true }))
    void pass('up', client, upstream)
    void pass('down', upstream, client)
  })

  async function pass(direction: Direction, from: Socket, into: Socket): Promise<void> {
    // Its other direction may go on.
    const chunks: AsyncIterable<Buffer> = from.iterator({ destroyOnReturn: false })
    try {
      for await (const chunk of chunks) {
        await flow
        if (faults.delayMs) await sleep(faults.delayMs)
        if (faults.dropped?.includes(direction)) continue
        if (faults.halved?.includes(direction)) {
          await write(into, chunk.subarray(0, Math.floor(chunk.length / 2)))
          break
        }
        await write(into, chunk)
      }
      await flow
      if (from.readableEnded) into.end()
      else reset(from, into)
    } catch {
      await flow
      reset(from, into)
    }
  }

  function resume(): void {
    release?.()
    release = undefined
  }

  function cut(): void {
    faults = { ...faults, isCut: true }
    reset(...sockets)
    resume()
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  server.unref()
  const { port } = server.address() as AddressInfo
  return {
    port,
    get connections() {
      return clients.size
    },
    target(host, port) {
      goal = { host, port }
    },
    cut,
    stall() {
      faults = { ...faults, isCut: false }
      if (release) return
      const { promise, resolve } = Promise.withResolvers<void>()
      flow = promise
      release = resolve
    },
    halve(only) {
      faults = { ...faults, halved: only ? [only] : ['up', 'down'] }
    },
    drop(direction) {
      faults = { ...faults, dropped: [...(faults.dropped ?? []), direction] }
    },
    delay(ms) {
      faults = { ...faults, delayMs: ms }
    },
    heal() {
      faults = {}
      resume()
    },
    async close() {
      cut()
      server.close()
      await once(server, 'close')
    },
  }
}

function reset(...sockets: readonly Socket[]): void {
  for (const socket of sockets) {
    // Node (26.10) refuses to reset a socket that is being shut down, and never closes it then: the process spins at its
    // end. So what has sent its end is closed without a reset.
    if (socket.writableEnded) socket.destroy()
    else socket.resetAndDestroy()
  }
}

/** Resolves once the bytes have left, so that a reset does not take them back. */
function write(socket: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.write(bytes, (error) => (error ? reject(error) : resolve()))
  })
}
