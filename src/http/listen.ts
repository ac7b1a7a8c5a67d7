// Where a server listens: on a port, or on a unix socket.
import { chmodSync, rmSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import type { FastifyInstance } from 'fastify'

type Address = { readonly host: string; readonly port: number } | { readonly path: string }

/** Connections that wait to be accepted; with Node's 511, many that come at once keep a poll out for a second. */
const BACKLOG = 4096

/** Listens. A stale unix socket of a killed process is removed first. */
export async function listen(app: FastifyInstance, address: Address): Promise<void> {
  if ('path' in address) await removeStaleSocket(address.path)
  await app.listen({ ...address, backlog: BACKLOG })
  // Members of the group, such as a proxy, may connect.
  if ('path' in address) chmodSync(address.path, 0o660)
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
