// Keys of bundles: Ed25519, as PEM files like those of openssl, and what is signed with them.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { UsageProblem } from '../base/usage-problem.ts'
import { isEncryptedKey, readCredential } from '../runtime/credential-files.ts'
import { type Signature, StreamError } from './transfer-items.ts'
import type { Checked } from './transfer-lines.ts'

/** Prefix of everything that is signed, so that a signature made for another purpose is not valid for a bundle. */
const CONTEXT = 'flux-resourceset-bundle\n'
const MAKE_ONE = 'make one with "flux-resourceset bundle keygen" or "openssl genpkey -algorithm ed25519"'

export function readPrivateKey(path: string): KeyObject {
  const pem = readPem(path)
  if (isEncryptedKey(pem))
    throw new UsageProblem(
      `${path}: is encrypted: decrypt it with "openssl pkey" into a file that only you can read`,
    )
  if (/-----BEGIN PUBLIC KEY-----/.test(pem))
    throw new UsageProblem(`${path}: is a public key: bundles are signed with the private one`)
  return ed25519(path, () => createPrivateKey(pem))
}

export function readPublicKey(path: string): KeyObject {
  const pem = readPem(path)
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem))
    throw new UsageProblem(
      `${path}: is a private key, which belongs where bundles are made: give the public one`,
    )
  return ed25519(path, () => createPublicKey(pem))
}

function readPem(path: string): string {
  const read = readCredential(path)
  if (read.ok) return read.text
  throw new UsageProblem(`${path}: ${read.why}`)
}

function ed25519(path: string, parse: () => KeyObject): KeyObject {
  let key: KeyObject
  try {
    key = parse()
  } catch {
    throw new UsageProblem(`${path}: is not a key in PEM: ${MAKE_ONE}`)
  }
  if (key.asymmetricKeyType === 'ed25519') return key
  throw new UsageProblem(`${path}: is a key of ${key.asymmetricKeyType}, not of Ed25519: ${MAKE_ONE}`)
}

/** Writes both files; throws when one of them exists. */
export function writeKeyPair(prefix: string): { readonly privateKey: string; readonly publicKey: string } {
  const pair = generateKeyPairSync('ed25519', {
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  const files = { privateKey: `${prefix}.pem`, publicKey: `${prefix}.pub.pem` }
  writeKey(files.privateKey, pair.privateKey, 0o600)
  try {
    writeKey(files.publicKey, pair.publicKey, 0o644)
  } catch (error) {
    rmSync(files.privateKey)
    throw error
  }
  return files
}

function writeKey(path: string, pem: string, mode: number): void {
  try {
    writeFileSync(path, pem, { flag: 'wx', mode })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new UsageProblem(
      code === 'EEXIST'
        ? `${path}: is there already, and keys are not overwritten: give another --to, or move it away`
        : `the keys cannot be written: ${message}`,
    )
  }
}

/** SHA-256 of the public key, in hex. */
export function keyId(key: KeyObject): string {
  const { type } = key
  const spki = (type === 'private' ? createPublicKey(key) : key).export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(spki).digest('hex')
}

/** Signs the end line, which has a digest of all lines before it, and so all of the bundle. */
export function signEnd(key: KeyObject, endLine: string): Signature {
  return { key: keyId(key), value: sign(null, Buffer.from(CONTEXT + endLine), key).toString('base64') }
}

/** Returns the id of the key that the bundle was signed with; throws when it is not one of these keys. */
export function checkSignature(keys: readonly KeyObject[], { signature, endLine }: Checked): string {
  if (!signature) throw refused('is not signed')
  const key = keys.find((known) => keyId(known) === signature.key)
  if (!key) throw refused(`is signed with the key ${signature.key}, which is none of the given`)
  if (!verify(null, Buffer.from(CONTEXT + endLine), key, Buffer.from(signature.value, 'base64')))
    throw refused('its signature does not hold: it was changed on its way')
  return signature.key
}

function refused(message: string): StreamError {
  return new StreamError(message, { isDamaged: true })
}
