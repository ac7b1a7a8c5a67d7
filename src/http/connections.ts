// How many connections there may be, how many of one address, and how long one may stay without getting anywhere.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { Shares } from './admission.ts'
import { plainAddress } from './client-address.ts'
import { networkOf } from './failure-limit.ts'
import type { Limits } from './service.ts'

/** From this share on connections are not kept for a next request: room is left for those who have one. */
const NEARLY_FULL = 0.8

export interface Connections {
  /** Whether there is so little room that a connection should end with its answer. */
  readonly isNearlyFull: boolean
}

export function limitConnections(
  server: Server,
  { connections, connectionsPerAddress = Math.ceil(connections / 2), trusts = () => false }: Limits,
): Connections {
  const ofAddresses = new Shares({ perCaller: connectionsPerAddress })
  let open = 0
  server.maxConnections = connections

  server.on('connection', (socket: Socket) => {
    open++
    socket.once('close', () => open--)
    const { remoteAddress } = socket
    // A proxy has as many as it needs for all its clients.
    if (remoteAddress === undefined || trusts(plainAddress(remoteAddress))) return
    const network = networkOf(plainAddress(remoteAddress))
    if (ofAddresses.take(network) === 'taken') socket.once('close', () => ofAddresses.give(network))
    else socket.destroy()
  })

  return {
    get isNearlyFull() {
      return open >= connections * NEARLY_FULL
    },
  }
}
