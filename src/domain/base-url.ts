// The URL that a service is reached under: a host, and perhaps a path that its routes are below.

/** Without a slash at its end; nothing when it is no such URL. */
export function parseBaseUrl(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) return undefined
  if (/[\s?#${}<>"'`\\]/.test(text)) return undefined
  return url.href.replace(/\/+$/, '')
}
