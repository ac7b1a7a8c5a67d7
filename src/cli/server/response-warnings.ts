// The warnings of a response: in its body, or in its Warning header.
import type { ApiResponse } from './api.ts'

export function warningsIn({ headers, body }: ApiResponse): string[] {
  if (Array.isArray(body?.warnings)) return body.warnings
  const header = headers.warning
  return header === undefined
    ? []
    : [...String(header).matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)].map(unquote)
}

/** Headers are bytes; the service writes them in UTF-8. */
function unquote([, quoted = '']: RegExpMatchArray): string {
  return Buffer.from(quoted.replaceAll(/\\(.)/g, '$1'), 'latin1').toString('utf8')
}
