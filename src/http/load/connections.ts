// How many connections there may be, and how many of them may come from one address.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { plainAddress } from '../auth/client-address.ts'
import { networkOf } from '../auth/failure-limit.ts'
import type { Limits } from '../service-limits.ts'
import { Shares } from './admission.ts'
import type { FairQueue } from './fair-queue.ts'
import type { Traffic } from './traffic.ts'

/** From this share on connections are not kept alive, which leaves room for clients with a request. */
const NEARLY_FULL = 0.8

export interface Connections {
  /** Whether connections should be closed after their response. */
  readonly isNearlyFull: boolean
}

export function limitConnections(
  server: Server,
  turns: FairQueue,
  traffic: Traffic,
  { connections, connectionsPerAddress = Math.ceil(connections / 2), trusts }: Limits,
): Connections {
  const ofAddresses = new Shares({ perCaller: connectionsPerAddress })
  let open = 0
  server.on('connection', (socket: Socket) => {
    turns.noteConnection()
    open++
    traffic.begin()
    const network = networkToCount(socket.remoteAddress)
    const isCounted = network !== undefined && ofAddresses.take(network) === 'taken'
    // Not `once`, whose wrappers keep closed sockets in memory until a full garbage collection.
    socket.on('close', () => {
      open--
      traffic.end(socket)
      if (isCounted) ofAddresses.give(network)
    })
    // Node's own limit is one per listening socket.
    if (open > connections || (network !== undefined && !isCounted)) socket.destroy()
  })

  /** The network to count; undefined for trusted proxies and unix sockets, which carry many clients and have no limit. */
  function networkToCount(remote: string | undefined): string | undefined {
    if (remote === undefined) return undefined
    const address = plainAddress(remote)
    return trusts?.(address) ? undefined : networkOf(address)
  }

  return {
    get isNearlyFull() {
      return open >= connections * NEARLY_FULL
    },
  }
}
