// Authentication: tokens of the environment, named tokens, client certificates, OIDC.
import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import { fail, type Problem, type Result, succeed } from '../../base/problem.ts'
import { asToken, type Token, useKeyOf } from '../../domain/access/token.ts'
import type { Entry, PolledView } from '../../domain/documents/view.ts'
import type { Types } from '../../domain/types/resource-type.ts'
import { hashOf, isSecret } from '../../engine/token-secret.ts'
import { MINUTE_MS, type TokenUses } from '../../engine/token-uses.ts'
import type { RequestHead } from '../direct/parse-poll.ts'
import type { Metrics } from '../metrics.ts'
import { type AccessRules, grantOfClaims, grantOfNames, NO_RULES } from './access-rules.ts'
import { certificateNames } from './certificate-names.ts'
import type { AddressOf } from './client-address.ts'
import { type FailureLimit, networkOf } from './failure-limit.ts'
import type { Identity } from './identity.ts'
import { looksLikeJwt, type Oidc } from './oidc.ts'
import type { SharedTokens } from './shared-tokens.ts'

export interface AuthParts {
  readonly types: Types
  readonly state: PolledView
  readonly uses: TokenUses
  /** Applies what other processes have committed, unless that takes long. */
  readonly refresh: () => Promise<unknown>
  /** What can change while the service runs. */
  readonly shared: () => SharedTokens
  readonly rules?: () => AccessRules
  readonly oidc?: Oidc | undefined
  readonly failures: FailureLimit
  readonly addressOf: AddressOf
  readonly metrics: Pick<Metrics, 'countAuthFailure'>
  readonly log: Logger
  readonly now: () => Date
}

type Authenticated = Result<Identity>

export interface Auth {
  /** Synchronous, except where the OIDC issuer or the store has to be asked. */
  identify(request: IncomingMessage): Authenticated | Promise<Authenticated>
  /** The identity of a token that is known and valid; undefined says nothing, and counts as no attempt. */
  recognise(request: RequestHead): Identity | undefined
  /** Whose turn a request takes: that of its token and network, or of the network alone. */
  callerOf(request: RequestHead): string
}

/** Why a credential is refused. `kind` is a label of metrics; the reason is for the log alone. */
interface Refusal {
  readonly kind: 'missing' | 'malformed' | 'unknown' | 'expired' | 'certificate' | 'oidc' | 'unavailable'
  readonly reason: string
  /** Digest of the credential. */
  readonly hash?: string
  /** What the caller is told, where it is more than that the credential is not valid. */
  readonly told?: Problem
}

export function createAuth(parts: AuthParts): Auth {
  return new Identifier(parts)
}

class Identifier implements Auth {
  readonly #parts: AuthParts
  readonly #rules: () => AccessRules

  constructor(parts: AuthParts) {
    this.#parts = parts
    this.#rules = parts.rules ?? (() => NO_RULES)
  }

  callerOf(request: RequestHead): string {
    const { addressOf, shared, state } = this.#parts
    const network = networkOf(addressOf(request))
    const { authorization = '' } = request.headers
    const credential = credentialIn(authorization)
    if (!credential) return network
    const hash = hashOf(credential)
    const known = shared().has(hash) ? 'shared' : state.tokenByHash(hash)?.id
    return known === undefined ? network : `${known} ${network}`
  }

  recognise(request: RequestHead): Identity | undefined {
    const credential = credentialIn(request.headers.authorization ?? '')
    if (!credential) return undefined
    const hash = hashOf(credential)
    const common = this.#parts.shared().get(hash)
    if (common) return common
    const entry = this.#parts.state.tokenByHash(hash)
    return entry && this.#identityBy(request, entry, hash)
  }

  identify(request: IncomingMessage): Authenticated | Promise<Authenticated> {
    const { authorization } = request.headers
    if (authorization === undefined)
      return (
        this.#byCertificate(request) ??
        this.#refuse(request, { kind: 'missing', reason: 'there are no credentials' })
      )
    const credential = credentialIn(authorization)
    if (credential) return this.#byToken(request, credential)
    return this.#refuse(request, {
      kind: 'malformed',
      reason: 'the Authorization header is neither Bearer nor Basic',
    })
  }

  #byToken(request: IncomingMessage, credential: string): Authenticated | Promise<Authenticated> {
    const { shared, state, oidc, addressOf, failures } = this.#parts
    const hash = hashOf(credential)
    const common = shared().get(hash)
    if (common) return succeed(common)
    const entry = state.tokenByHash(hash)
    if (entry) return this.#byNamedToken(request, entry, hash)
    if (oidc && looksLikeJwt(credential)) return this.#byOidc(oidc, request, credential, hash)
    const network = networkOf(addressOf(request))
    if (isSecret(credential) && !failures.isReached({ network, credential: hash }))
      return this.#byNewToken(request, hash)
    const reason =
      credential.startsWith('frs_') && !isSecret(credential)
        ? 'the token is cut or mistyped: its checksum does not hold'
        : NO_SUCH_TOKEN
    return this.#refuse(request, { kind: 'unknown', reason, hash })
  }

  /** Looks for a token that another process may have created just now. */
  async #byNewToken(request: IncomingMessage, hash: string): Promise<Authenticated> {
    const { refresh, state } = this.#parts
    await refresh()
    const entry = state.tokenByHash(hash)
    if (entry) return this.#byNamedToken(request, entry, hash)
    return this.#refuse(request, { kind: 'unknown', reason: NO_SUCH_TOKEN, hash })
  }

  #byNamedToken(request: IncomingMessage, entry: Entry, hash: string): Authenticated {
    const identity = this.#identityBy(request, entry, hash)
    if (identity) return succeed(identity)
    const token = asToken(entry.document)
    const end = endOf(token, hash)
    const what = end === token.expires_at ? 'token' : 'rotated secret of token'
    return this.#refuse(request, {
      kind: 'expired',
      reason: `the ${what} "${token.name}" expired at ${end}`,
      hash,
      // It is the right secret: whoever has it may know why it is refused.
      told: {
        code: 'unauthorized',
        reason: 'credential_expired',
        message: `the ${what} "${token.name}" expired at ${end}: get a new one`,
      },
    })
  }

  /** Notes the use of the token; undefined where it has expired. */
  #identityBy(request: RequestHead, entry: Entry, hash: string): Identity | undefined {
    const { uses, addressOf, now } = this.#parts
    const token = asToken(entry.document)
    const time = now()
    const end = endOf(token, hash)
    if (end !== undefined && end <= time.toISOString()) return undefined
    const known = knownToken(entry, token)
    const minute = Math.floor(time.getTime() / MINUTE_MS)
    if (minute !== known.minute) {
      known.minute = minute
      uses.note(useKeyOf(token), () => addressOf(request))
    }
    return end === undefined ? known.identity : { ...known.identity, expiresAt: end }
  }

  async #byOidc(
    issuer: Oidc,
    request: IncomingMessage,
    credential: string,
    hash: string,
  ): Promise<Authenticated> {
    const verified = await issuer.verify(credential)
    if (!verified.ok) {
      const { reason, unavailable } = verified
      return this.#refuse(request, { kind: unavailable ? 'unavailable' : 'oidc', reason, hash })
    }
    const { username, values, expiresAt } = verified
    const grant = grantOfClaims(this.#rules(), values)
    if (grant)
      return succeed({ name: `oidc:${username}`, via: 'oidc', grant, expiresAt: expiresAt.toISOString() })
    this.#parts.log.info({ user: username, claims: values }, 'no rule of ACCESS_FILE gives this user a role')
    return fail({
      code: 'forbidden',
      reason: 'no_role',
      message: 'you are known, but nothing gives you a role here: ask an administrator',
    })
  }

  /** Undefined where there is no certificate. */
  #byCertificate(request: IncomingMessage): Authenticated | undefined {
    const { types, state, now } = this.#parts
    const certificate = certificateNames(request.socket)
    if (!certificate) return undefined
    if (!certificate.ok) return this.#refuse(request, { kind: 'certificate', reason: certificate.reason })
    const { names, expiresAt } = certificate
    if (expiresAt <= now())
      return this.#refuse(request, {
        kind: 'certificate',
        reason: 'the client certificate has expired',
      })
    const own = names.flatMap((name) => {
      const cluster = state.clusterByDns(name)?.id
      return cluster === undefined ? [] : [{ name, grant: { role: 'cluster', cluster } as const }]
    })
    const clusters = new Set(own.map(({ grant }) => grant.cluster))
    const granted = grantOfNames(this.#rules(), names) ?? (clusters.size === 1 ? own[0] : undefined)
    if (granted) {
      const { name, grant } = granted
      const via = 'certificate'
      return succeed({ name: `${via}:${name}`, via, grant, expiresAt: expiresAt.toISOString() })
    }
    const what = clusters.size > 1 ? 'more than one cluster' : `no ${types.cluster.type.singular}`
    return this.#refuse(request, {
      kind: 'certificate',
      reason: `the client certificate names ${what}: ${names.join(', ') || 'it has no names'}`,
    })
  }

  #refuse(request: IncomingMessage, { kind, reason, hash, told = REFUSED }: Refusal): Authenticated {
    const { metrics, log, addressOf, failures } = this.#parts
    metrics.countAuthFailure(kind)
    if (kind === 'unavailable') {
      log.error({ reason }, 'OIDC tokens cannot be verified')
      return fail({
        code: 'unavailable',
        reason: 'authentication_unavailable',
        message: 'who you are cannot be checked now: try again',
      })
    }
    // A request without credentials does not count as a failed attempt.
    if (kind === 'missing') return fail(NO_CREDENTIALS)
    const address = addressOf(request)
    const over = failures.count({ network: networkOf(address), credential: hash })
    if (!over || over.isFirst)
      log.warn({ reason, address, ...(over && { limited_for_s: over.wait }) }, 'authentication failed')
    if (!over) return fail(told)
    return fail({
      code: 'rate_limited',
      reason: 'failed_authentication',
      message: 'too many requests with credentials that are not valid: wait, and correct them',
      retryAfter: over.wait,
    })
  }
}

const NO_SUCH_TOKEN = 'there is no such token, or it was revoked'

/** What polls would make anew of a token: it goes with the version of its document. */
interface KnownToken {
  readonly identity: Identity
  /** In which a use was last noted. */
  minute: number
}

function knownToken(entry: Entry, token: Token): KnownToken {
  const known = entry.rendered as KnownToken | undefined
  if (known) return known
  const made: KnownToken = { identity: { name: token.name, via: 'token', grant: token }, minute: 0 }
  entry.rendered = made
  return made
}

/** When the token or the secret that was shown expires, whichever comes first. */
function endOf({ secrets, expires_at }: Token, hash: string): string | undefined {
  // Found by the hash of its only secret, which mostly lasts for ever.
  if (secrets.length === 1) return earlier(expires_at, secrets[0]?.expires_at)
  return earlier(expires_at, secrets.find((each) => each.hash === hash)?.expires_at)
}

function earlier(a: string | undefined, b: string | undefined): string | undefined {
  return a === undefined || (b !== undefined && b < a) ? b : a
}

/** The bearer token, or the password of HTTP Basic. */
function credentialIn(authorization: string): string | undefined {
  const space = authorization.indexOf(' ')
  const scheme = authorization.slice(0, space).toLowerCase()
  const credentials = authorization.slice(space + 1).trim()
  if (scheme === 'bearer') return credentials
  if (scheme !== 'basic') return undefined
  const pair = Buffer.from(credentials, 'base64').toString('utf8')
  const colon = pair.indexOf(':')
  return colon < 0 ? undefined : pair.slice(colon + 1)
}

const A_TOKEN = 'a valid token is needed: send "Authorization: Bearer <token>"'
const NO_CREDENTIALS: Problem = { code: 'unauthorized', reason: 'no_credentials', message: A_TOKEN }
const REFUSED: Problem = { code: 'unauthorized', reason: 'credential_refused', message: A_TOKEN }
