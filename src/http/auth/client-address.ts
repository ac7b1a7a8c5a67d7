// Where a request comes from: the connection's other end, or what proxies that are trusted say of it.
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

/** Stands for a connection over a unix socket. */
const UNIX = 'unix'

export type AddressOf = (request: IncomingMessage) => string

/** Reads what proxies add to X-Forwarded-For, from the nearest one on; the first that is not trusted is the client. */
export function createAddressOf(trustedProxies: readonly string[]): AddressOf {
  const isTrusted = createTrust(trustedProxies)
  return (request) => {
    let address = peerOf(request)
    if (!isTrusted(address)) return address
    const hops = String(request.headers['x-forwarded-for'] ?? '').split(',')
    for (const hop of hops.reverse()) {
      const next = plainAddress(hop.trim())
      // What is no address was written by somebody else, or by a proxy that hides it.
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

/** A connection that is gone has no address any more. */
function peerOf({ socket }: IncomingMessage): string {
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

/** Without a port behind it; an IPv4 address stays one on a socket of IPv6. */
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
