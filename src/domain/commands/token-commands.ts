// Creating, issuing, rotating and revoking tokens.
import { fail, invalid, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import { overProblem } from '../../base/time.ts'
import { checkGrant, describeGrant } from '../access/grant.ts'
import { parseSelector } from '../access/selector.ts'
import { asToken, checkTokenName, TOKENS, type Token } from '../access/token.ts'
import { warnOfUnknownKeys } from '../access/unknown-keys.ts'
import type { Draft } from '../documents/draft.ts'
import { checkExpectation, findLive } from '../documents/find-document.ts'
import type { Document, Types } from '../types/resource-type.ts'
import { TOKEN_TYPE } from '../types/system-types.ts'
import type { CreateToken, IssueToken, Outcome, RevokeToken, RotateToken } from './command.ts'

/** Secrets of one token at a time, those within their grace period included. */
const MAX_SECRETS = 5

export function* createToken(
  types: Types,
  draft: Draft,
  { token, expect }: CreateToken,
): Steps<Result<Outcome>> {
  const details = [...checkTokenName(token.name), ...checkGrant(types, draft, token)]
  const { expires_at, created_at } = token
  const over = expires_at === undefined ? undefined : overProblem(expires_at, created_at)
  if (over) details.push({ path: '/expires_at', message: over })
  if (details.length > 0) return invalid(details)
  const current = draft.get(TOKENS, token.id)
  const met = checkExpectation(TOKEN_TYPE, token.name, current, expect)
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
  const found = findLive(draft, TOKEN_TYPE, id, expect)
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

/** Problems are reported where the cluster was named. */
export function* issueToken(
  types: Types,
  draft: Draft,
  { token, graceEnd, path }: IssueToken,
): Steps<Result<Outcome>> {
  const { id, name, secrets } = token
  const there = draft.get(TOKENS, id)
  if (!there) {
    const created = yield* createToken(types, draft, { op: 'create_token', token, path })
    if (created.ok || created.problem.code !== 'validation_error') return created
    return invalid((created.problem.details ?? []).map(({ message }) => ({ path, message })))
  }
  const current = asToken(there.document)
  if (current.role !== token.role || current.cluster !== token.cluster) {
    const message = `there is a token "${name}" already, and it is not for polls of this cluster: it has the ${describeGrant(current)}`
    return fail({ code: 'conflict', reason: 'token_exists', message, details: [{ path, message }] })
  }
  const [secret] = secrets as [Token['secrets'][number]]
  return rotateToken(draft, { op: 'rotate_token', id, name, secret, graceEnd, path })
}

export function revokeToken(draft: Draft, { id, expect }: RevokeToken): Result<Outcome> {
  const found = findLive(draft, TOKEN_TYPE, id, expect)
  if (!found.ok) return found
  draft.remove(TOKENS, id, { path: '' })
  return succeed({ type: TOKENS, id, created: false, removed: found.value.document })
}

function put(draft: Draft, token: Token): void {
  draft.put(TOKENS, token as unknown as Document, { path: '' })
}
