// The client address of a request: the peer of the connection, or what trusted proxies report.
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
import type { RequestHead } from '../direct/parse-poll.ts'

/** Stands for a connection over a unix socket. */
const UNIX = 'unix'

export type AddressOf = (request: RequestHead) => string

/**
 * Reads X-Forwarded-For from the nearest hop on; the first address that is not a trusted proxy is the client.
 *
 * `@fastify/proxy-addr`, which Fastify has, does not do this: it returns a hop that is not an address as the client, takes
 * an address with a port for such a hop, and knows no unix sockets.
 */
export function createAddressOf(trustedProxies: readonly string[]): AddressOf {
  const isTrusted = createTrust(trustedProxies)
  return (request) => {
    let address = peerOf(request)
    if (!isTrusted(address)) return address
    const hops = String(request.headers['x-forwarded-for'] ?? '').split(',')
    for (const hop of hops.reverse()) {
      const next = plainAddress(hop.trim())
      // A hop that is not an address was forged by the client, or hidden by a proxy.
      if (isIP(next) === 0) return address
      address = next
      if (!isTrusted(address)) return address
    }
    return address
  }
}

/** Whether a request comes from a proxy that is trusted, so that its other headers count as well. */
export function createIsProxied(trustedProxies: readonly string[]): (request: IncomingMessage) => boolean {
  const isTrusted = createTrust(trustedProxies)
  return (request) => isTrusted(peerOf(request))
}

/** The address of the peer; `unknown` after the connection has closed. */
function peerOf({ socket }: Pick<RequestHead, 'socket'>): string {
  return plainAddress(socket.remoteAddress ?? (socket.destroyed ? 'unknown' : UNIX))
}

/** Whether an address is one of the proxies that are trusted. */
export function createTrust(trustedProxies: readonly string[]): (address: string) => boolean {
  const trusted = new BlockList()
  for (const network of trustedProxies.filter((each) => each !== UNIX)) addNetwork(trusted, network)
  const trustsUnix = trustedProxies.includes(UNIX)
  return (address) => {
    if (address === UNIX) return trustsUnix
    const version = trustedProxies.length === 0 ? 0 : isIP(address)
    return version !== 0 && trusted.check(address, version === 6 ? 'ipv6' : 'ipv4')
  }
}

const PLAIN_IPV4 = /^[\d.]{7,15}$/

/** Removes the port, and the prefix of an IPv4 address mapped to IPv6. */
export function plainAddress(address: string): string {
  if (PLAIN_IPV4.test(address)) return address
  const bare = address.replace(/^\[([^\]]*)\](?::\d+)?$/, '$1').replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
  return bare.replace(/^::ffff:(?=\d+\.)/i, '')
}

function addNetwork(list: BlockList, network: string): void {
  const [address = '', prefix] = network.split('/')
  const version = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  if (prefix === undefined) list.addAddress(address, version)
  else list.addSubnet(address, Number(prefix), version)
}
