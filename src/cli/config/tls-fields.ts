// How a server is verified, as its context keeps it.
import { resolve } from 'node:path'
import type { Context } from './contexts.ts'
import type { GlobalFlags } from './settings.ts'

type TlsFields = Pick<Context, 'ca_file' | 'client_cert' | 'client_key' | 'insecure_skip_tls_verify'>

/** What the flags say of TLS, as a context keeps it: it is used from any folder. */
export function tlsFields({ caFile, clientCert, clientKey, insecureSkipTlsVerify }: GlobalFlags): TlsFields {
  return {
    ...(caFile !== undefined && { ca_file: resolve(caFile) }),
    ...(clientCert !== undefined && { client_cert: resolve(clientCert) }),
    ...(clientKey !== undefined && { client_key: resolve(clientKey) }),
    ...(insecureSkipTlsVerify && { insecure_skip_tls_verify: true }),
  }
}

export function tlsKept({
  ca_file,
  client_cert,
  client_key,
  insecure_skip_tls_verify,
}: Partial<Context> = {}): TlsFields {
  return {
    ...(ca_file && { ca_file }),
    ...(client_cert && { client_cert }),
    ...(client_key && { client_key }),
    ...(insecure_skip_tls_verify && { insecure_skip_tls_verify }),
  }
}
