// PEM files, read and parsed, with messages that name the setting and the path and never tell what a file holds.
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { isEncryptedKey, readCredential } from '../../runtime/credential-files.ts'

/** The text of a file, and how messages call it. */
export interface PemFile {
  readonly label: string
  readonly text: string
}

export function readPem(setting: string, path: string, problems: string[]): PemFile | undefined {
  const label = `${setting} ${path}`
  const read = readCredential(path)
  if (read.ok) return { label, text: read.text }
  problems.push(`${label}: ${read.why}`)
  return undefined
}

/** Each part of a PEM file from its BEGIN line on; OpenSSL ignores what follows an END line. */
function blocksOf(text: string, kind: RegExp): string[] {
  return text.split(/(?=^-----BEGIN )/m).filter((block) => kind.test(block))
}

/** All certificates, or undefined when one is broken: OpenSSL would silently leave out the rest. */
export function parseCertificates(
  { label, text }: PemFile,
  problems: string[],
): X509Certificate[] | undefined {
  const blocks = blocksOf(text, /^-----BEGIN CERTIFICATE-----/)
  if (blocks.length === 0) {
    problems.push(`${label}: holds no certificate in PEM`)
    return undefined
  }
  const certificates: X509Certificate[] = []
  for (const [i, block] of blocks.entries()) {
    try {
      certificates.push(new X509Certificate(block))
    } catch {
      problems.push(`${label}: certificate ${i + 1} of ${blocks.length} is broken`)
    }
  }
  return certificates.length === blocks.length ? certificates : undefined
}

export function parseKey({ label, text }: PemFile, problems: string[]): KeyObject | undefined {
  const blocks = blocksOf(text, /^-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----/)
  const [block = ''] = blocks
  const refuse = (why: string): undefined => void problems.push(`${label}: ${why}`)
  if (blocks.length !== 1)
    return refuse(`holds ${blocks.length || 'no'} private key${blocks.length ? 's' : ''} in PEM`)
  if (isEncryptedKey(block)) {
    return refuse('the private key is encrypted: it must be readable without a passphrase')
  }
  try {
    return createPrivateKey(block)
  } catch {
    return refuse('the private key is broken')
  }
}
