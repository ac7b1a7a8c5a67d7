// The secret of a token: what it looks like, how it is made, and the digest that is kept of it.
import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Grant } from '../domain/access/grant.ts'
import { TOKENS, type Token } from '../domain/access/token.ts'
import type { Entry, View } from '../domain/documents/view.ts'

const PREFIX = 'frs_'
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const BYTES = 32
/** Digits of the 256 random bits, and of the checksum of 32 bits. */
const RANDOM_LENGTH = 43
const CHECKSUM_LENGTH = 6

/** `frs_`, 256 random bits, and a checksum by which scanners tell a token from what looks like one. */
function mintSecret(): string {
  const random = toDigits(BigInt(`0x${randomBytes(BYTES).toString('hex')}`), RANDOM_LENGTH)
  return PREFIX + random + checksumOf(random)
}

/** Whether a text can be one of our secrets at all. */
export function isSecret(text: string): boolean {
  const random = text.slice(PREFIX.length, -CHECKSUM_LENGTH)
  return (
    text.startsWith(PREFIX) &&
    random.length === RANDOM_LENGTH &&
    text.slice(-CHECKSUM_LENGTH) === checksumOf(random)
  )
}

function checksumOf(random: string): string {
  return toDigits(BigInt(crc32(random)), CHECKSUM_LENGTH)
}

function toDigits(value: bigint, length: number): string {
  let digits = ''
  for (let rest = value; digits.length < length; rest /= 62n) digits = DIGITS[Number(rest % 62n)] + digits
  return digits
}

/** The digest by which a secret is stored and found. Secrets of 256 random bits need no slow password hash. */
export function hashOf(secret: string): string {
  return hash('sha256', secret)
}

/** The id of the token with a name; derived from the name, so that names are unique. */
export function tokenIdOf(name: string): string {
  return `tok-${hash('sha256', name).slice(0, 16)}`
}

/** Finds a token by its id or by its name. */
export function findToken(view: View, text: string): Entry | undefined {
  return view.get(TOKENS, text) ?? view.get(TOKENS, tokenIdOf(text))
}

export interface TokenRequest {
  readonly name: string
  readonly grant: Grant
  readonly expiresAt: string | undefined
  readonly createdBy: string
}

/** Returns a token to create, and its secret, which is not stored and cannot be shown again. */
export function newToken(
  { name, grant, expiresAt, createdBy }: TokenRequest,
  now: Date,
): { readonly token: Token; readonly secret: string } {
  const { secret, kept } = newSecret(now)
  const token = {
    id: tokenIdOf(name),
    name,
    ...grant,
    created_at: kept.created_at,
    created_by: createdBy,
    ...(expiresAt !== undefined && { expires_at: expiresAt }),
    secrets: [kept],
  }
  return { token, secret }
}

export function newSecret(now: Date): { readonly secret: string; readonly kept: Token['secrets'][number] } {
  const secret = mintSecret()
  return { secret, kept: { hash: hashOf(secret), created_at: now.toISOString() } }
}
