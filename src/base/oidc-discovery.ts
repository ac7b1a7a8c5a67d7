// OIDC discovery, for the service and for the command line: where the document is, and which of its URLs count.
import { isSecure } from './urls.ts'

/** The URL of an issuer's discovery document; `issuer` is exactly as in `iss`. */
export function discoveryUrl(issuer: string): string {
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
}

/** Parses a URL in the document of `origin`; undefined when it is not https, or within this machine like its origin. */
export function parseEndpoint(text: unknown, origin?: URL): URL | undefined {
  const url = typeof text === 'string' ? URL.parse(text) : null
  return url && !url.username && !url.password && isSecure(url, origin) ? url : undefined
}
