// URLs: the base URL of a service, the path that clusters poll, and whether secrets may be sent to a URL.

/** The path of the list of clusters; below it, `/{dns}/{endpoint}` is what one cluster polls. */
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

/**
 * Whether secrets may be sent to a URL: over https, or within this machine. `origin` is the URL that named it, if any.
 */
export function isSecure(url: URL, origin = url): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url) && isLoopback(origin))
}

/** Returns the base URL of a service without a slash at its end; undefined when the text is no such URL. */
export function parseBaseUrl(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) return undefined
  if (/[\s?#${}<>"'`\\]/.test(text)) return undefined
  // A regular expression for the slashes at the end would be tried from every slash.
  let end = url.href.length
  while (url.href[end - 1] === '/') end--
  return url.href.slice(0, end)
}

/**
 * Whether a URL is one of these, or below one: of the same origin, with a path that goes on after a slash. Slashes that
 * are percent-encoded could mean another path to whoever is asked.
 */
export function isBelowOneOf(text: string, prefixes: readonly string[]): boolean {
  const url = URL.parse(text)
  if (!url || url.username || url.password || /%2f|%5c/i.test(url.pathname)) return false
  return prefixes.some((each) => {
    const prefix = URL.parse(each)
    if (!prefix || prefix.origin !== url.origin) return false
    const path = prefix.pathname.endsWith('/') ? prefix.pathname : `${prefix.pathname}/`
    return url.pathname.startsWith(path) || url.pathname === prefix.pathname
  })
}
