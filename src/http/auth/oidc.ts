// Bearer tokens of an OIDC issuer (JWTs): verifies them and reads their claims.
import {
  createRemoteJWKSet,
  decodeJwt,
  errors,
  type JWTVerifyGetKey,
  jwtVerify,
  type RemoteJWKSet,
} from 'jose'
import { isObject, type Json, type JsonObject, own } from '../../base/json.ts'
import { discoveryUrl, parseEndpoint } from '../../base/oidc-discovery.ts'
import { findPoison } from '../../base/parse-json.ts'

export interface OidcOptions {
  /** Exactly as in `iss`. */
  readonly issuer: string
  readonly audience: string
  /** A claim's name, or else a path with dots into nested claims, such as realm_access.roles. */
  readonly roleClaim: string
  readonly usernameClaim: string
  readonly now: () => Date
}

export type OidcResult =
  | {
      readonly ok: true
      /** For the audit: the name, and what the issuer knows the user by where that is something else. */
      readonly username: string
      /** The values of the role claim; empty without one. */
      readonly values: readonly string[]
      /** The token's `exp`; it is accepted a little longer, for clocks that differ. */
      readonly expiresAt: Date
    }
  | {
      readonly ok: false
      /** For our log only; never holds the token or a part of it. */
      readonly reason: string
      /** The issuer is unavailable, so that the token cannot be verified. */
      readonly unavailable?: true
    }

export interface Oidc {
  /** Never rejects. */
  verify(jwt: string): Promise<OidcResult>
}

/** Public keys only: with a shared secret, everyone who can verify could sign. */
const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ')
const MAX_TOKEN_LENGTH = 16 * 1024
const MAX_USERNAME_LENGTH = 256
const SKEW_SECONDS = 60
const TIMEOUT_MS = 5_000
/** The shortest time between two requests to the issuer that callers can cause. */
const PAUSE_MS = 5_000
/** The last time that a Date can hold, in milliseconds. */
const LAST_TIME = 8_640_000_000_000_000

/** Three parts in base64url. The signature may be empty: an unsigned token is refused as one, with its reason. */
export function looksLikeJwt(token: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token)
}

export function createOidc(options: OidcOptions): Oidc {
  const { issuer, audience, now } = options
  const findKey = createKeyFinder(options)
  return {
    async verify(jwt) {
      if (jwt.length > MAX_TOKEN_LENGTH) return refuse(`the token is longer than ${MAX_TOKEN_LENGTH} bytes`)
      if (!looksLikeJwt(jwt)) return refuse('the token is not a JWT')
      if (isPoisoned(jwt)) return refuse('the token has a key with a backslash')
      try {
        // Checked before the keys are fetched: a token of another issuer must not cause requests to ours.
        if (decodeJwt(jwt).iss !== issuer) return refuse(`the token was not issued by "${issuer}"`)
        const { payload } = await jwtVerify(jwt, findKey, {
          algorithms: ALGORITHMS,
          issuer,
          audience,
          requiredClaims: ['exp', 'sub'],
          clockTolerance: SKEW_SECONDS,
          currentDate: now(),
        })
        return readClaims(payload as JsonObject, options)
      } catch (error) {
        if (error instanceof Unavailable) return { ok: false, reason: error.message, unavailable: true }
        return refuse(whyRefused(error, options))
      }
    },
  }
}

function refuse(reason: string): OidcResult {
  return { ok: false, reason }
}

/** Checked before jose parses the token, which is not verified yet. */
function isPoisoned(jwt: string): boolean {
  return jwt.split('.', 2).some((part) => findPoison(Buffer.from(part, 'base64url').toString('utf8')))
}

function readClaims(claims: JsonObject, options: OidcOptions): OidcResult {
  const { usernameClaim, roleClaim } = options
  for (const claim of [usernameClaim, 'sub']) {
    const problem = nameProblem(own(claims, claim))
    if (problem) return refuse(`the claim "${claim}", for the name of the user, ${problem}`)
  }
  if (usernameClaim === 'email' && !MAY_BE_VERIFIED.includes(own(claims, 'email_verified')))
    return refuse('the email of the user is not verified')
  const roles = claimAt(claims, roleClaim)
  const values = (Array.isArray(roles) ? roles : [roles]).filter((role) => typeof role === 'string')
  const expiresAt = new Date(Math.min((claims.exp as number) * 1000, LAST_TIME))
  return { ok: true, username: usernameOf(claims, options), values, expiresAt }
}

/** Values of `email_verified` that do not say that the email is unverified; only `true` says that it is verified. */
const MAY_BE_VERIFIED: readonly (Json | undefined)[] = [true, 'true', undefined]

/** A name can be chosen or change owners, so `sub` is added to it; in place of an unverified email, `sub` is alone. */
function usernameOf(claims: JsonObject, { usernameClaim }: OidcOptions): string {
  const { sub, email_verified, [usernameClaim]: name } = claims
  const isUnsure = usernameClaim === 'email' && email_verified !== true
  return isUnsure || name === sub ? String(sub) : `${name} (${sub})`
}

/** The name goes into the audit and into logs, where control characters could disguise it. */
function nameProblem(name: Json | undefined): string | undefined {
  if (typeof name !== 'string') return 'is missing or no text'
  if (name.trim() === '') return 'is empty'
  if (name.length > MAX_USERNAME_LENGTH) return `is longer than ${MAX_USERNAME_LENGTH} characters`
  const isPlain = !/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(name)
  return isPlain ? undefined : 'holds characters that are no text'
}

function claimAt(claims: JsonObject, name: string): Json | undefined {
  if (Object.hasOwn(claims, name)) return claims[name]
  let value: Json | undefined = claims
  for (const step of name.split('.')) value = isObject(value) ? own(value, step) : undefined
  return value
}

/** Our own messages, since those of jose could quote the token. */
const REFUSALS: Readonly<Record<string, string>> = {
  [errors.JWTExpired.code]: 'the token has expired',
  [errors.JWTInvalid.code]: 'the token is not a well-formed JWT',
  [errors.JWSInvalid.code]: 'the token is not a well-formed JWT',
  [errors.JOSENotSupported.code]: 'the token asks for an extension that is not known here',
  [errors.JOSEAlgNotAllowed.code]: 'the token is signed with an algorithm that is not allowed, or not at all',
  [errors.JWSSignatureVerificationFailed.code]: 'the signature of the token is wrong',
  [errors.JWKSNoMatchingKey.code]: 'the issuer has no key that the token could be signed with',
  [errors.JWKSMultipleMatchingKeys.code]: 'the token does not say which key of the issuer it is signed with',
}

function whyRefused(error: unknown, { audience }: OidcOptions): string {
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'aud') return `the token is not for the audience "${audience}"`
    return `the claims of the token do not hold: ${error.message}`
  }
  const words = error instanceof errors.JOSEError ? REFUSALS[error.code] : (error as Error).message
  return words ?? 'the token could not be verified'
}

class Unavailable extends Error {}

/** Finds keys of the issuer; fetches them when they are first needed and when they may have changed. */
function createKeyFinder({ issuer, now }: OidcOptions): JWTVerifyGetKey {
  let keys: RemoteJWKSet | undefined
  let fetching: Promise<RemoteJWKSet> | undefined
  let failed: { readonly at: number; readonly error: Unavailable } | undefined
  let lookedAgainAt = Number.NEGATIVE_INFINITY

  // Absolute, so that a clock that is moved back does not lengthen the pause.
  const isRecent = (time: number) => Math.abs(now().getTime() - time) < PAUSE_MS

  /** All waiting callers share one fetch; after a failure there is none for PAUSE_MS. */
  async function fetchKeys(): Promise<RemoteJWKSet> {
    if (!fetching && failed && isRecent(failed.at)) throw failed.error
    fetching ??= askIssuer().finally(() => {
      fetching = undefined
    })
    return fetching
  }

  async function askIssuer(): Promise<RemoteJWKSet> {
    try {
      // The code below decides when to fetch a missing key: jose itself waits after every fetch.
      const limits = { timeoutDuration: TIMEOUT_MS, cooldownDuration: Number.POSITIVE_INFINITY }
      keys ??= createRemoteJWKSet(await discover(issuer), limits)
      await keys.reload()
      failed = undefined
      return keys
    } catch (error) {
      // Without usable keys, discovery runs again: the jwks_uri may have changed.
      if (!keys?.fresh) keys = undefined
      const message = `the issuer "${issuer}" could not be asked for its keys: ${whyUnavailable(error)}`
      failed = { at: now().getTime(), error: new Unavailable(message) }
      throw failed.error
    }
  }

  return async (header, token) => {
    const find = async (known: RemoteJWKSet) => {
      try {
        return await known(header, token)
      } catch (error) {
        const isOfToken =
          error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys
        throw isOfToken
          ? error
          : new Unavailable(`a key of the issuer cannot be used: ${whyUnavailable(error)}`)
      }
    }
    try {
      return await find(keys?.fresh ? keys : await fetchKeys())
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || isRecent(lookedAgainAt)) throw error
      const fetched = await fetchKeys()
      lookedAgainAt = now().getTime()
      return find(fetched)
    }
  }
}

/** Where the issuer has its keys. */
async function discover(issuer: string): Promise<URL> {
  const base = parseEndpoint(issuer)
  if (!base) throw new Error('it must be an https URL, or one on loopback')
  const response = await fetch(discoveryUrl(issuer), {
    headers: { accept: 'application/json' },
    // A redirect must not decide which keys are the issuer's.
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`its discovery document came with status ${response.status}`)
  }
  const found: unknown = await response.json()
  if (!isObject(found)) throw new Error('its discovery document is not an object')
  if (found.issuer !== issuer) throw new Error('its discovery document is that of another issuer')
  const uri = parseEndpoint(found.jwks_uri, base)
  if (!uri) throw new Error('its jwks_uri must be https, or on loopback like the issuer')
  return uri
}

/** Describes a failed request to the issuer. */
function whyUnavailable(error: unknown): string {
  const { name, message, cause } = error as Error & { cause?: { name?: string; code?: string } }
  const isLate = [name, cause?.name].includes('TimeoutError')
  if (isLate) return `no whole answer within ${TIMEOUT_MS / 1000} s`
  if (error instanceof SyntaxError) return 'its discovery document is not JSON'
  return cause?.code ? `${message} (${cause.code})` : message
}
