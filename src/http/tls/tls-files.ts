// The files that TLS is served with, read and checked.
import { constants, type KeyObject, type X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import type { Read } from '../../runtime/follow-files.ts'
import { type PemFile, parseCertificates, parseKey, readPem } from './pem-files.ts'

export interface TlsFiles {
  readonly cert: string
  readonly key: string
  /** The roots that certificates of clients must lead to. */
  readonly clientCa?: string | undefined
  /** With `optional`, clients without a valid certificate connect too: `socket.authorized` says whether it is valid. */
  readonly clientAuth: 'none' | 'optional' | 'required'
}

/** Options for `https.createServer`, and for `setSecureContext`, which needs all of them each time. */
export interface TlsOptions {
  readonly cert: string
  readonly key: string
  readonly minVersion: 'TLSv1.2'
  readonly requestCert: boolean
  readonly rejectUnauthorized: boolean
  readonly ca?: string
  readonly secureOptions?: number
  readonly honorCipherOrder?: boolean
}

interface ReadTls {
  readonly options: TlsOptions
  readonly certificate: { readonly subject: string; readonly expires: string }
  readonly warnings: readonly string[]
}

/** Returns the options, or all problems with the files. */
export function readTlsFiles(files: TlsFiles): Read<ReadTls> {
  const problems: string[] = []
  const cert = readPem('TLS_CERT_FILE', files.cert, problems)
  const key = readPem('TLS_KEY_FILE', files.key, problems)
  const clientCa = readClientCa(files, problems)
  const chain = cert && parseCertificates(cert, problems)
  const privateKey = key && parseKey(key, problems)
  const roots = clientCa && parseRoots(clientCa, problems)
  if (cert && chain && key && privateKey) checkPair(cert, chain, key, privateKey, problems)
  const [leaf] = chain ?? []
  if (problems.length > 0 || !cert || !chain || !leaf || !privateKey) return { ok: false, problems }

  const asked = files.clientAuth !== 'none'
  const options: TlsOptions = {
    cert: chain.join(''),
    key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    minVersion: 'TLSv1.2',
    requestCert: asked,
    rejectUnauthorized: files.clientAuth === 'required',
    // The Flux Operator resumes no session, and pays for every ticket. A session that is resumed also keeps the
    // verification of its client: a certificate that has expired since would stay valid for as long as the client resumes.
    secureOptions: constants.SSL_OP_NO_TICKET,
    // All that Node offers are safe. Go, like whoever has hardware for AES, begins with AES-128: it is the quickest.
    honorCipherOrder: false,
    ...(asked && roots && { ca: roots.join('') }),
  }
  const refusal = refusalOf(options)
  if (refusal) return { ok: false, problems: [`${cert.label}: cannot be served: ${refusal}`] }
  const certificate = {
    subject: (leaf.subject ?? leaf.subjectAltName ?? '').replaceAll('\n', ', '),
    expires: leaf.validToDate.toISOString(),
  }
  const warnings = [...checkDates(cert, chain), ...(clientCa && roots ? checkDates(clientCa, roots) : [])]
  return { ok: true, value: { options, certificate, warnings } }
}

function readClientCa({ clientCa, clientAuth }: TlsFiles, problems: string[]): PemFile | undefined {
  if (clientCa !== undefined) return readPem('TLS_CLIENT_CA_FILE', clientCa, problems)
  // Without roots of its own, Node would trust every public authority of the web.
  if (clientAuth !== 'none') problems.push('TLS_CLIENT_CA_FILE is required to ask clients for certificates')
  return undefined
}

function parseRoots(file: PemFile, problems: string[]): X509Certificate[] | undefined {
  const certificates = parseCertificates(file, problems)
  // Node verifies a client's chain up to a root only, not to an intermediate.
  if (certificates && !certificates.some(({ subject, issuer }) => subject === issuer)) {
    problems.push(`${file.label}: holds no root, a certificate that is its own issuer`)
    return undefined
  }
  return certificates
}

function checkPair(
  cert: PemFile,
  chain: readonly X509Certificate[],
  key: PemFile,
  privateKey: KeyObject,
  problems: string[],
): void {
  const place = chain.findIndex((certificate) => certificate.checkPrivateKey(privateKey))
  if (place < 0) problems.push(`${key.label}: does not belong to the certificate in ${cert.label}`)
  if (place > 0)
    problems.push(`${cert.label}: the server's own certificate must be the first, not number ${place + 1}`)
}

/** Why OpenSSL refuses the options, such as a key that is too short. */
function refusalOf(options: TlsOptions): string | undefined {
  try {
    createSecureContext(options)
    return undefined
  } catch (error) {
    const { reason, message } = error as Error & { reason?: string }
    return reason ?? message
  }
}

/** Warnings only: a certificate outside its validity is still served, as clocks differ and none would be worse. */
function checkDates({ label }: PemFile, certificates: readonly X509Certificate[]): string[] {
  const now = new Date()
  return certificates.flatMap(({ validFromDate, validToDate }, i) => {
    const which = `${label}: certificate ${i + 1} of ${certificates.length}`
    if (validToDate < now) return [`${which} has expired at ${validToDate.toISOString()}`]
    return validFromDate > now ? [`${which} is not valid before ${validFromDate.toISOString()}`] : []
  })
}
