// The names that a client certificate bears.
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

export type CertificateNames =
  | { readonly ok: true; readonly names: readonly string[]; readonly expiresAt: Date }
  /** Why the names do not count, for the log. */
  | { readonly ok: false; readonly reason: string }

const known = new WeakMap<Socket, CertificateNames>()
const DISTRUSTED = Symbol('distrusted')

/** Marks the certificate of a connection as not trusted any more: its authority may have been removed. */
export function distrust(socket: Socket): void {
  Object.assign(socket, { [DISTRUSTED]: true })
}

/** The names are read once for each connection; undefined when the client sent no certificate. */
export function certificateNames(socket: Socket): CertificateNames | undefined {
  // On HTTP/2 the socket is a proxy object.
  if (!('getPeerX509Certificate' in socket)) return undefined
  if ((socket as { [DISTRUSTED]?: true })[DISTRUSTED])
    return { ok: false, reason: 'the authorities have changed since this connection was made' }
  const read = known.get(socket)
  if (read) return read
  const { authorized, authorizationError } = socket as TLSSocket
  const certificate = (socket as TLSSocket).getPeerX509Certificate()
  if (!certificate) return undefined
  const names: CertificateNames = authorized
    ? {
        ok: true,
        names: namesIn(certificate.subjectAltName, certificate.subject),
        expiresAt: certificate.validToDate,
      }
    : { ok: false, reason: `the client certificate is not valid: ${authorizationError}` }
  known.set(socket, names)
  return names
}

const ENTRY = /([A-Za-z][\w ]*):("(?:[^"\\]|\\.)*"|[^",]*)(?:, |$)/y

const PRINTABLE_ASCII = /^[\x20-\x7e]+$/

/** DNS names and URIs; the common name only where there is neither. Names that are quoted or not ASCII are ignored. */
export function namesIn(subjectAltName: string | undefined, subject = ''): string[] {
  const names: string[] = []
  const text = subjectAltName ?? ''
  ENTRY.lastIndex = 0
  while (ENTRY.lastIndex < text.length) {
    const [, kind, value = ''] = ENTRY.exec(text) ?? []
    if (kind === undefined) return []
    if ((kind === 'DNS' || kind === 'URI') && !value.startsWith('"')) names.push(value)
  }
  const isFit = (name: string): boolean => PRINTABLE_ASCII.test(name)
  if (names.some((name) => name !== '')) return names.filter(isFit)
  const commonNames = subject.split('\n').filter((line) => line.startsWith('CN='))
  return commonNames.length === 1 ? commonNames.map((line) => line.slice(3)).filter(isFit) : []
}
