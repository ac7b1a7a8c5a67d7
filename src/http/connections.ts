// How many connections there may be, how many of one address, and how long one may stay without getting anywhere.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { Shares } from './admission.ts'
import { plainAddress } from './client-address.ts'
import { networkOf } from './failure-limit.ts'
import type { FairQueue } from './fair-queue.ts'
import type { Limits } from './service.ts'

/** From this share on connections are not kept for a next request: room is left for those who have one. */
const NEARLY_FULL = 0.8

/** What it costs to read from a connection at the least. */
const CONNECTION_MS = 0.05

export interface Connections {
  /** Whether there is so little room that a connection should end with its answer. */
  readonly isNearlyFull: boolean
}

export function limitConnections(
  server: Server,
  turns: FairQueue,
  { connections, connectionsPerAddress = Math.ceil(connections / 2), trusts = () => false }: Limits,
): Connections {
  const ofAddresses = new Shares({ perCaller: connectionsPerAddress })
  // What is sent at once on a thousand new connections would be read in one turn of the event loop.
  const isPlain = !('setSecureContext' in server)
  if (isPlain) Object.assign(server, { pauseOnConnect: true })
  const read = (network: string, socket: Socket): void => {
    if (isPlain)
      turns.run(
        () => network,
        CONNECTION_MS,
        () => socket.resume(),
      )
  }
  let open = 0
  server.maxConnections = connections

  server.on('connection', (socket: Socket) => {
    open++
    socket.once('close', () => open--)
    const address = plainAddress(socket.remoteAddress ?? '')
    // A proxy has as many as it needs for all its clients.
    if (address === '' || trusts(address)) return read(address, socket)
    const network = networkOf(address)
    if (ofAddresses.take(network) !== 'taken') return void socket.destroy()
    socket.once('close', () => ofAddresses.give(network))
    read(network, socket)
  })

  return {
    get isNearlyFull() {
      return open >= connections * NEARLY_FULL
    },
  }
}
