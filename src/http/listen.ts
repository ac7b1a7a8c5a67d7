// Where a server listens: on a port, or on a unix socket.
import { once } from 'node:events'
import { chmodSync, rmSync, statSync } from 'node:fs'
import type { Server as HttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import type { FastifyInstance } from 'fastify'

interface Port {
  readonly host: string
  readonly port: number
}
type Address = Port | { readonly path: string }

/** Connections that wait to be accepted; with Node's 511, many that come at once keep a poll out for a second. */
const BACKLOG = 4096

/**
 * Sockets that listen on one port: libuv accepts one connection per socket and turn of the event loop, so with one socket
 * a poll would wait for as many turns as connections were opened before it.
 */
const SOCKETS = 8

/** Listens. A stale unix socket of a killed process is removed first. */
export async function listen(app: FastifyInstance, address: Address): Promise<void> {
  if (!('path' in address)) return listenOnPort(app, address)
  await removeStaleSocket(address.path)
  await app.listen({ ...address, backlog: BACKLOG })
  // Members of the group, such as a proxy, may connect.
  chmodSync(address.path, 0o660)
}

async function listenOnPort(app: FastifyInstance, address: Port): Promise<void> {
  // Only Linux spreads connections over the sockets.
  if (process.platform !== 'linux') return void (await app.listen({ ...address, backlog: BACKLOG }))
  await refuseUsedPort(address)
  const options = { ...address, backlog: BACKLOG, reusePort: true }
  await app.listen(options)
  const { port } = app.server.address() as AddressInfo
  const others: Server[] = []
  closeTogether(app.server, others)
  for (let i = 1; i < SOCKETS; i++) {
    const other = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
      app.server.emit('connection', socket),
    )
    others.push(other.listen({ ...options, port }))
    await once(other, 'listening')
  }
}

/** A port that several sockets may share could be shared with another process, too. */
async function refuseUsedPort(address: Port): Promise<void> {
  if (address.port === 0) return
  const probe = createServer().listen(address)
  await once(probe, 'listening')
  probe.close()
  await once(probe, 'close')
}

/** The server is closed once no connection of any socket is left. */
function closeTogether(server: HttpServer, others: readonly Server[]): void {
  const close = server.close.bind(server)
  server.close = (done) => {
    const closed = others.map((other) => new Promise((resolve) => other.close(resolve)))
    return close((error) => void Promise.all(closed).then(() => done?.(error)))
  }
}

async function removeStaleSocket(path: string): Promise<void> {
  if (!statSync(path, { throwIfNoEntry: false })?.isSocket()) return
  const socket = connect(path)
  const isServed = await new Promise<boolean>((resolve) => {
    socket
      .once('connect', () => resolve(true))
      .once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'ECONNREFUSED'))
  })
  socket.destroy()
  if (!isServed) rmSync(path, { force: true })
}
