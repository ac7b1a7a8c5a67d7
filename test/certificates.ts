// Real certificates for tests: authorities made on the spot, and what they issue.
import type { webcrypto } from 'node:crypto'
import type { Extension, Name, X509Certificate } from '@peculiar/x509'

// The library insists on a polyfill for metadata of decorators, and then reads none. It must be there before the
// library is, so that one is imported late.
Object.assign(Reflect, { getMetadata() {}, getOwnMetadata() {}, defineMetadata() {} })
const x509 = await import('@peculiar/x509')

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const DAY_MS = 24 * 60 * 60 * 1000

interface Validity {
  /** A day ago unless said otherwise. */
  readonly notBefore?: Date
  /** In a day unless said otherwise. */
  readonly notAfter?: Date
}

interface LeafOptions extends Validity {
  readonly commonName?: string
  readonly dnsNames?: readonly string[]
  readonly uris?: readonly string[]
  readonly ipAddresses?: readonly string[]
  /** For a key of RSA with so many bits. */
  readonly rsaBits?: number
  /** Whether clients may show it: yes, unless it is only for servers. */
  readonly client?: boolean
  /** Whether servers may show it: yes, unless it is only for clients. */
  readonly server?: boolean
}

/** In PEM; below an intermediate authority, the certificate has that one's after it. */
export interface KeyPair {
  readonly cert: string
  readonly key: string
}

interface Authority {
  readonly pem: string
  issue(options?: LeafOptions): Promise<KeyPair>
  createIntermediate(name: string): Promise<Authority>
}

/** Who signs, and what leads from it to its root. */
interface Signer {
  readonly certificate: X509Certificate
  readonly keys: webcrypto.CryptoKeyPair
  readonly chain: string
}

export async function createAuthority(name: string, validity: Validity = {}): Promise<Authority> {
  const keys = await createKeys()
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: nameOf(name),
    keys,
    signingAlgorithm: ALGORITHM,
    ...datesOf(validity),
    extensions: await authorityExtensions(keys),
  })
  return authorityOf({ certificate, keys, chain: '' })
}

function authorityOf(signer: Signer): Authority {
  return {
    pem: pemOf(signer.certificate),
    async issue(options = {}) {
      const keys = await createKeys(options.rsaBits)
      const cert = await sign(signer, keys, options.commonName, leafExtensions(options), options)
      const key = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64')
      return {
        cert: pemOf(cert) + signer.chain,
        key: `-----BEGIN PRIVATE KEY-----\n${key.replaceAll(/.{64}/g, '$&\n')}\n-----END PRIVATE KEY-----\n`,
      }
    },
    async createIntermediate(name) {
      const keys = await createKeys()
      const certificate = await sign(signer, keys, name, await authorityExtensions(keys))
      return authorityOf({ certificate, keys, chain: pemOf(certificate) + signer.chain })
    },
  }
}

async function sign(
  signer: Signer,
  keys: webcrypto.CryptoKeyPair,
  commonName: string | undefined,
  extensions: readonly Extension[],
  validity: Validity = {},
): Promise<X509Certificate> {
  return x509.X509CertificateGenerator.create({
    subject: commonName === undefined ? [] : nameOf(commonName),
    issuer: signer.certificate.subjectName,
    publicKey: keys.publicKey,
    signingKey: signer.keys.privateKey,
    signingAlgorithm: ALGORITHM,
    ...datesOf(validity),
    extensions: [...extensions, await x509.AuthorityKeyIdentifierExtension.create(signer.keys.publicKey)],
  })
}

async function authorityExtensions(keys: webcrypto.CryptoKeyPair): Promise<Extension[]> {
  const { keyCertSign, cRLSign } = x509.KeyUsageFlags
  return [
    new x509.BasicConstraintsExtension(true, undefined, true),
    new x509.KeyUsagesExtension(keyCertSign | cRLSign, true),
    await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
  ]
}

function leafExtensions(options: LeafOptions): Extension[] {
  const { dnsNames = [], uris = [], ipAddresses = [] } = options
  const { client = options.server !== true, server = options.client !== true } = options
  const names = [
    ...dnsNames.map((value) => ({ type: 'dns' as const, value })),
    ...uris.map((value) => ({ type: 'url' as const, value })),
    ...ipAddresses.map((value) => ({ type: 'ip' as const, value })),
  ]
  const { clientAuth, serverAuth } = x509.ExtendedKeyUsage
  return [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
    new x509.ExtendedKeyUsageExtension([...(client ? [clientAuth] : []), ...(server ? [serverAuth] : [])]),
    ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
  ]
}

function createKeys(rsaBits?: number): Promise<webcrypto.CryptoKeyPair> {
  const rsa = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', publicExponent: new Uint8Array([1, 0, 1]) }
  const algorithm = rsaBits === undefined ? ALGORITHM : { ...rsa, modulusLength: rsaBits }
  return crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']) as Promise<webcrypto.CryptoKeyPair>
}

/** Typed, so that quotes in it are not taken for syntax. */
function nameOf(commonName: string): Name {
  return new x509.Name([{ CN: [{ utf8String: commonName }] }])
}

function datesOf({ notBefore, notAfter }: Validity): Required<Validity> {
  return {
    notBefore: notBefore ?? new Date(Date.now() - DAY_MS),
    notAfter: notAfter ?? new Date(Date.now() + DAY_MS),
  }
}

function pemOf(certificate: X509Certificate): string {
  return `${certificate.toString('pem')}\n`
}
