// Named tokens: who they are for, what they grant, until when. Of their secrets only digests are known.
import { parseDuration } from '../../base/duration.ts'
import type { Detail } from '../../base/problem.ts'
import type { Document } from '../types/resource-type.ts'
import type { Grant } from './grant.ts'

/** The name of the system type of tokens. */
export const TOKENS = 'tokens'

interface Secret {
  /** SHA-256, in hex. */
  readonly hash: string
  readonly created_at: string
  /** Set when a newer secret replaced it. */
  readonly expires_at?: string
}

/** Times are RFC 3339, in UTC. */
export interface Token extends Grant {
  readonly id: string
  readonly name: string
  readonly created_at: string
  readonly created_by: string
  readonly expires_at?: string
  /** The newest comes first. */
  readonly secrets: readonly Secret[]
}

export function asToken(document: Document): Token {
  return document as unknown as Token
}

/** Without digests of secrets. */
export interface PublicToken extends Omit<Token, 'secrets'> {
  readonly rotated_at?: string
  readonly old_secrets_expire_at?: string
}

export function withoutSecrets({ secrets, ...token }: Token): PublicToken {
  const [newest, ...old] = secrets
  const last = old
    .map(({ expires_at }) => expires_at ?? '')
    .sort()
    .at(-1)
  return {
    ...token,
    ...(newest && newest.created_at !== token.created_at && { rotated_at: newest.created_at }),
    ...(last && { old_secrets_expire_at: last }),
  }
}

/** How many of its secrets are valid at a time: none once it has expired itself. */
export function validSecrets({ secrets, expires_at }: Token, now: Date): number {
  const isLater = (end: string | undefined): boolean => end === undefined || Date.parse(end) > now.getTime()
  return isLater(expires_at) ? secrets.filter((secret) => isLater(secret.expires_at)).length : 0
}

/** The key of a token's uses; another token of the same name has another key. */
export function useKeyOf({ id, created_at }: Token): string {
  return `${id} ${created_at}`
}

/** The name of the token that is issued for the polls of a cluster. */
export function clusterTokenName(cluster: string): string {
  return `cluster-${cluster}`
}

/** How long earlier secrets stay valid by default. */
export const DEFAULT_GRACE = '24h'
const MAX_GRACE_DAYS = 90
export const GRACE = `a duration from 0s to ${MAX_GRACE_DAYS}d, such as 30m, 24h or 7d`

/** Returns seconds; undefined when the text is no duration, or too long. */
export function parseGrace(text: string): number | undefined {
  const seconds = parseDuration(text)
  return seconds !== undefined && seconds <= MAX_GRACE_DAYS * 86_400 ? seconds : undefined
}

/** The author of what a seed file wrote, in the audit. */
export const SEEDER = 'seed'
/** Names that the audit uses for authors other than named tokens. */
const RESERVED_NAMES = ['reader', 'writer', SEEDER, 'local', 'unknown', 'anonymous']
export const TOKEN_NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?$/
const ID = /^(?:tok-[0-9a-f]{16}$|frs_)/i

export function checkTokenName(name: string): Detail[] {
  const message = RESERVED_NAMES.includes(name.toLowerCase())
    ? 'is what the audit calls somebody else: choose another'
    : ID.test(name)
      ? 'looks like the id or the secret of a token: choose another'
      : !TOKEN_NAME.test(name) &&
        'must be 1 to 253 letters, digits, "-", "_" or ".", with a letter or digit at both ends, such as ci-team-a'
  return message ? [{ path: '/name', message }] : []
}
