// Named tokens: who they are for, what they grant, until when. Of their secrets only digests are known.

import { parseDuration } from '../../base/duration.ts'
import { type Detail, fail, invalid, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import type { CreateToken, Outcome, RevokeToken, RotateToken } from '../commands/command.ts'
import type { Draft } from '../documents/draft.ts'
import { checkExpectation, findLive } from '../documents/find-document.ts'
import type { Document, Types } from '../types/resource-type.ts'
import { checkGrant, type Grant } from './grant.ts'
import { parseSelector } from './selector.ts'
import { warnOfUnknownKeys } from './unknown-keys.ts'

/** Where they are kept: beside the documents, and of no type that a request could name. */
export const TOKENS = 'tokens'
const TYPE = { name: TOKENS, singular: 'token' }

interface Secret {
  /** SHA-256, in hex. */
  readonly hash: string
  readonly created_at: string
  /** Once it was rotated away. */
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

/** As anybody may see it. */
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

/** What its uses are kept under: another token of the same name is another one. */
export function useKeyOf({ id, created_at }: Token): string {
  return `${id} ${created_at}`
}

/** How long earlier secrets stay valid when nothing is said. */
export const DEFAULT_GRACE = '24h'
const MAX_GRACE_DAYS = 90
export const GRACE = `a duration from 0s to ${MAX_GRACE_DAYS}d, such as 30m, 24h or 7d`

/** In seconds; nothing when it is none, or too long. */
export function parseGrace(text: string): number | undefined {
  const seconds = parseDuration(text)
  return seconds !== undefined && seconds <= MAX_GRACE_DAYS * 86_400 ? seconds : undefined
}

/** What the audit calls the file that a store was first filled with. */
export const SEEDER = 'seed'
/** Names that the audit uses for others. */
const RESERVED_NAMES = ['reader', 'writer', SEEDER, 'local', 'unknown', 'anonymous']
export const TOKEN_NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?$/
const ID = /^(?:tok-[0-9a-f]{16}$|frs_)/i
/** Of one token at a time, those within their grace included. */
const MAX_SECRETS = 5

function checkName(name: string): Detail[] {
  const message = RESERVED_NAMES.includes(name.toLowerCase())
    ? 'is what the audit calls somebody else: choose another'
    : ID.test(name)
      ? 'looks like the id or the secret of a token: choose another'
      : !TOKEN_NAME.test(name) &&
        'must be 1 to 253 letters, digits, "-", "_" or ".", with a letter or digit at both ends, such as ci-team-a'
  return message ? [{ path: '/name', message }] : []
}

/** Tokens of the environment: themselves, or a file that holds them and the variable that names it. */
export type TokenSource =
  | { readonly tokens: readonly string[] }
  | { readonly file: string; readonly variable: string }

/** Tokens beside each other, by commas or on lines of their own: while one takes another's place, both are good. */
export function parseTokenList(text: string): {
  readonly tokens: readonly string[]
  readonly problem?: string
} {
  const tokens = text
    .split(/[,\r\n]/)
    .map((token) => token.trim())
    .filter((token) => token !== '')
  // A token travels in a header, so it can hold no space and nothing outside ASCII.
  const isFit = tokens.every((token) => /^[\x21-\x7e]+$/.test(token))
  if (!isFit) return { tokens: [], problem: 'may hold only printable ASCII characters without spaces' }
  return tokens.length > 0 ? { tokens } : { tokens, problem: 'holds no token' }
}

export function* createToken(
  types: Types,
  draft: Draft,
  { token, expect }: CreateToken,
): Steps<Result<Outcome>> {
  const details = [...checkName(token.name), ...checkGrant(types, draft, token)]
  if (token.expires_at !== undefined && token.expires_at <= token.created_at)
    details.push({ path: '/expires_at', message: `is ${token.expires_at}, which is over already` })
  if (details.length > 0) return invalid(details)
  const current = draft.get(TOKENS, token.id)
  const met = checkExpectation(TYPE, token.name, current, expect)
  if (!met.ok) return met
  if (current) {
    const message = `there is a token "${token.name}" already: choose another name, or rotate or revoke that one`
    return fail({ code: 'conflict', reason: 'token_exists', message, details: [{ path: '/name', message }] })
  }
  put(draft, token)
  const parsed = token.selector === undefined ? undefined : parseSelector(types, token.selector)
  const warnings = parsed?.ok ? yield* warnOfUnknownKeys(types.cluster, draft, parsed.selector) : []
  return succeed({ type: TOKENS, id: token.id, created: true, warnings })
}

export function rotateToken(draft: Draft, command: RotateToken): Result<Outcome> {
  const { id, secret, graceEnd, expect } = command
  const found = findLive(draft, TYPE, id, expect)
  if (!found.ok) return found
  const token = asToken(found.value.document)
  const { created_at: now } = secret
  if (token.expires_at !== undefined && token.expires_at <= now) {
    return fail({
      code: 'conflict',
      reason: 'token_expired',
      message: `token "${token.name}" has expired: revoke it and create another one`,
    })
  }
  // A second rotation may shorten the grace of the first, and never makes it longer.
  const old = token.secrets
    .map(({ expires_at = graceEnd, ...rest }) => ({
      ...rest,
      expires_at: expires_at < graceEnd ? expires_at : graceEnd,
    }))
    .filter(({ expires_at }) => expires_at > now)
  if (old.length >= MAX_SECRETS) {
    const message = `${old.length} earlier secrets of token "${token.name}" are still valid: rotate with a shorter grace, such as 0s`
    return fail({ code: 'conflict', reason: 'too_many_secrets', message })
  }
  put(draft, { ...token, secrets: [secret, ...old] })
  return succeed({ type: TOKENS, id, created: false })
}

export function revokeToken(draft: Draft, { id, expect }: RevokeToken): Result<Outcome> {
  const found = findLive(draft, TYPE, id, expect)
  if (!found.ok) return found
  draft.remove(TOKENS, id, { path: '' })
  return succeed({ type: TOKENS, id, created: false, removed: found.value.document })
}

function put(draft: Draft, token: Token): void {
  draft.put(TOKENS, token as unknown as Document, { path: '' })
}
