// How the server of an https URL is verified, and how the client shows who it is.
import { readFileSync } from 'node:fs'
import type { AgentOptions } from 'node:https'
import { usage } from '../failure.ts'

/** Files, and whether to verify at all. */
export interface TlsSettings {
  readonly caFile?: string | undefined
  /** A CA beside those of the system, where caFile is the only one. */
  readonly alsoCaFile?: string | undefined
  readonly clientCert?: string | undefined
  readonly clientKey?: string | undefined
  readonly isInsecure?: boolean | undefined
}

/**
 * With `system`, the CAs of the system are trusted instead of those of Node: reading them takes as long as a small command,
 * so it is done only for a server that Node's do not verify.
 */
export function tlsOptions(
  { caFile, alsoCaFile, clientCert, clientKey, isInsecure }: TlsSettings,
  { system = false } = {},
): AgentOptions {
  if (clientCert !== undefined && clientKey === undefined)
    throw usage('--client-cert needs --client-key: the key of the certificate')
  if (clientKey !== undefined && clientCert === undefined)
    throw usage('--client-key needs --client-cert: the certificate of the key')
  const ca = caFile === undefined ? trusted(system, alsoCaFile) : read(caFile, '--ca-file')
  return {
    ...(ca !== undefined && { ca }),
    ...(clientCert !== undefined && { cert: read(clientCert, '--client-cert') }),
    ...(clientKey !== undefined && { key: read(clientKey, '--client-key') }),
    ...(isInsecure && { rejectUnauthorized: false }),
  }
}

/** Undefined for those of Node alone, which it has at hand. */
function trusted(system: boolean, more: string | undefined): (string | Buffer)[] | undefined {
  if (!system && more === undefined) return undefined
  const { getCACertificates } = process.getBuiltinModule('node:tls')
  const known = getCACertificates(system ? 'system' : 'default')
  return more === undefined ? known : [...known, read(more, '--ca-file')]
}

/** Whether the CAs of the system may verify what Node's did not. */
export function mayTrustSystem({ caFile, isInsecure }: TlsSettings, error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException
  return caFile === undefined && !isInsecure && UNVERIFIED.includes(code)
}

function read(path: string, flag: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw usage(`${flag} ${path} cannot be read: ${code === 'ENOENT' ? 'there is no such file' : message}`)
  }
}

/** What to try after a failure of TLS; undefined after others. */
export function tlsHint(error: unknown): string | undefined {
  const { code = '' } = error as NodeJS.ErrnoException
  if (UNVERIFIED.includes(code))
    return 'give the CA of the server by --ca-file, FLUX_API_CA_FILE or NODE_EXTRA_CA_CERTS'
  if (/ALERT_(?:CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE)/.test(code))
    return 'it wants a client certificate: --client-cert and --client-key, or those of a context'
  if (/ALERT_(?:UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_\w+)/.test(code))
    return 'is the client certificate of the CA that this server trusts, and still valid?'
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'call it by a name that its certificate has'
  return undefined
}

const UNVERIFIED = [
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]

/** The error in words; undefined where its own message says it. */
export function tlsReason(error: unknown): string | undefined {
  const { code = '' } = error as NodeJS.ErrnoException
  if (UNVERIFIED.includes(code)) return 'nobody that is trusted here has signed its certificate'
  if (code === 'CERT_HAS_EXPIRED') return 'its certificate has expired'
  if (code === 'CERT_NOT_YET_VALID') return 'its certificate is not valid yet'
  if (/ALERT_CERTIFICATE_REQUIRED|ALERT_HANDSHAKE_FAILURE/.test(code))
    return 'it refuses clients without a certificate'
  if (/ALERT_(?:UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_\w+)/.test(code))
    return 'it refuses the client certificate'
  return undefined
}
