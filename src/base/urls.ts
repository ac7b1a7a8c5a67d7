// URLs: of a service, a host and perhaps a path that its routes are below; where clusters poll; and of this machine.

/** Below the base: the list of clusters, and `/{dns}/{endpoint}` for what one of them gets. */
export const POLL_BASE = '/api/v2/flux/clusters'

/** Whether a URL leads to this machine, where no TLS is needed. */
function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}

/** Whether every % in a URL, or in a part of one, begins a percent-encoding. */
export function isWellEncoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** Whether secrets may travel there: over https, or on this machine; and from https nothing leads away from it. */
export function isSecure(url: URL, origin = url): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url) && isLoopback(origin))
}

/** Without a slash at its end; nothing when it is no such URL. */
export function parseBaseUrl(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) return undefined
  if (/[\s?#${}<>"'`\\]/.test(text)) return undefined
  // A pattern for slashes at the end would be tried from every slash.
  let end = url.href.length
  while (url.href[end - 1] === '/') end--
  return url.href.slice(0, end)
}
