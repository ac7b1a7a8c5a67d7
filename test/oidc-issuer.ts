// An OIDC issuer for tests, on a free port: discovery, keys, tokens with any claims, and the device grant (RFC 8628).
import { randomBytes, randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { CompactSign, type CryptoKey, exportJWK, exportSPKI, generateKeyPair, type JWK } from 'jose'
import { serve } from './own-server.ts'

type Place = 'discovery' | 'jwks' | 'device' | 'token'
/** Failing is with status 500, stalling within the body; garbage is no JSON; a redirect leads to where all is well. */
type Mood = 'well' | 'fail' | 'hang' | 'stall' | 'garbage' | 'redirect'
type Claims = Readonly<Record<string, unknown>>

interface OidcIssuerOptions {
  /** In `aud` of its tokens. */
  readonly audience?: string
  /** Of the client that may use the device grant; the audience unless said otherwise. */
  readonly clientId?: string
  /** Seconds between two questions of a device for its token; 1 unless said otherwise. */
  readonly interval?: number
  /** Seconds that a user has to approve. */
  readonly expiresIn?: number
  /** Called when a device has got its codes, so that a test can approve at once. */
  readonly onDevice?: (userCode: string) => void
}

interface MintOptions {
  /** ES256 unless said otherwise; its key is in the JWKS from then on. */
  readonly alg?: string
  readonly kid?: string
  readonly header?: Claims
  /** What to sign with instead of its own key. */
  readonly key?: CryptoKey | Uint8Array
}

export interface OidcIssuer {
  readonly url: string
  /** Everything asked for so far, with what was in the body. */
  readonly requests: readonly { readonly place: Place; readonly form: Readonly<Record<string, string>> }[]
  count(place: Place): number
  /** Good for an hour unless claims say otherwise: undefined leaves one out, and a text stands for all of them. */
  mint(claims?: Claims | string, options?: MintOptions): Promise<string>
  /** As PEM. */
  publicKey(alg?: string): Promise<string>
  /** New keys instead of the old ones. */
  rotate(): Promise<void>
  /** How it answers from now on, everywhere or in one place. */
  behave(mood: Mood, place?: Place): void
  /** What stands in its discovery document from now on. */
  advertise(members: Claims): void
  /** Keys that stand in its JWKS as well from now on. */
  publish(...keys: readonly JWK[]): void
  /** Nobody listens any longer. */
  stop(): void
  approve(userCode: string, claims?: Claims): void
  deny(userCode: string): void
  expire(userCode: string): void
  /** The next question of this device is answered with slow_down. */
  slowDown(userCode: string): void
  revokeRefreshTokens(): void
}

interface Device {
  readonly userCode: string
  expiresAt: number
  askedAt: number
  tooFast: boolean
  verdict: Claims | 'denied' | undefined
}

const PATHS: Readonly<Record<string, Place>> = {
  '/.well-known/openid-configuration': 'discovery',
  '/keys': 'jwks',
  '/device': 'device',
  '/token': 'token',
}
const ELSEWHERE = '/elsewhere'
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

const inBase64 = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

export async function startOidcIssuer(t: TestContext, options: OidcIssuerOptions = {}): Promise<OidcIssuer> {
  const { audience = 'flux-resourceset', clientId = audience, interval = 1, expiresIn = 600 } = options
  const moods: Record<Place, Mood> = { discovery: 'well', jwks: 'well', device: 'well', token: 'well' }
  const requests: OidcIssuer['requests'][number][] = []
  const published: JWK[] = []
  const devices = new Map<string, Device>()
  const refreshTokens = new Map<string, Claims>()
  let advertised: Claims = {}
  let generation = 1
  let keys = new Map<string, ReturnType<typeof generateKeyPair>>()

  function keysFor(alg: string): ReturnType<typeof generateKeyPair> {
    const found = keys.get(alg) ?? generateKeyPair(alg)
    keys.set(alg, found)
    return found
  }

  async function mint(claims: Claims | string = {}, mintOptions: MintOptions = {}): Promise<string> {
    const { alg = 'ES256', kid = `${alg}-${generation}`, key } = mintOptions
    const header = { alg, kid, typ: 'JWT', ...mintOptions.header }
    const now = Math.floor(Date.now() / 1000)
    const person = { sub: 'user-1', email: 'ada@example.com', email_verified: true }
    const usual = { iss: url, aud: audience, ...person, iat: now, exp: now + 3600 }
    const payload = typeof claims === 'string' ? claims : JSON.stringify({ ...usual, ...claims })
    if (alg === 'none') return `${inBase64(header)}.${inBase64(payload)}.`
    const signer = new CompactSign(Buffer.from(payload)).setProtectedHeader(header)
    return signer.sign(key ?? (await keysFor(alg)).privateKey)
  }

  async function jwks(): Promise<unknown> {
    const own = [...keys].map(async ([alg, pair]) => {
      return { ...(await exportJWK((await pair).publicKey)), alg, use: 'sig', kid: `${alg}-${generation}` }
    })
    return { keys: [...(await Promise.all(own)), ...published] }
  }

  function discovery(): unknown {
    return {
      issuer: url,
      jwks_uri: `${url}/keys`,
      device_authorization_endpoint: `${url}/device`,
      token_endpoint: `${url}/token`,
      grant_types_supported: [DEVICE_GRANT, 'refresh_token'],
      ...advertised,
    }
  }

  function startDevice(): unknown {
    const [deviceCode, letters] = [randomUUID(), randomBytes(4).toString('hex').toUpperCase()]
    const userCode = `${letters.slice(0, 4)}-${letters.slice(4)}`
    const expiresAt = Date.now() + expiresIn * 1000
    devices.set(deviceCode, { userCode, expiresAt, askedAt: 0, tooFast: false, verdict: undefined })
    options.onDevice?.(userCode)
    return {
      device_code: deviceCode,
      user_code: userCode,
      verification_uri: `${url}/activate`,
      verification_uri_complete: `${url}/activate?user_code=${userCode}`,
      expires_in: expiresIn,
      interval,
    }
  }

  function deviceWith(userCode: string): Device {
    const device = devices.values().find((one) => one.userCode === userCode)
    if (!device) throw new Error(`no device has the code ${userCode}`)
    return device
  }

  /** Claims for a token, or an error as of RFC 6749 and RFC 8628. */
  function grant(form: Readonly<Record<string, string>>): Claims | string {
    if (form.grant_type === 'refresh_token') {
      const claims = refreshTokens.get(form.refresh_token ?? '')
      refreshTokens.delete(form.refresh_token ?? '')
      // Whatever time was given to the first token, those after it get the usual one.
      const { exp: _, iat: __, ...rest } = claims ?? {}
      return claims ? rest : 'invalid_grant'
    }
    if (form.grant_type !== DEVICE_GRANT) return 'unsupported_grant_type'
    const device = devices.get(form.device_code ?? '')
    if (!device) return 'invalid_grant'
    if (Date.now() >= device.expiresAt) return 'expired_token'
    // Timers and sockets are not exact: only who is far too early gets to hear it.
    const isTooFast = device.tooFast || Date.now() - device.askedAt < (interval * 1000) / 2
    Object.assign(device, { askedAt: Date.now(), tooFast: false })
    if (isTooFast) return 'slow_down'
    if (device.verdict === undefined) return 'authorization_pending'
    devices.delete(form.device_code ?? '')
    return device.verdict === 'denied' ? 'access_denied' : device.verdict
  }

  async function issueTokens(claims: Claims): Promise<unknown> {
    const refreshToken = `refresh-${randomUUID()}`
    refreshTokens.set(refreshToken, claims)
    return {
      token_type: 'Bearer',
      expires_in: 3600,
      id_token: await mint(claims),
      // As with many issuers, for itself only.
      access_token: `access-${randomUUID()}`,
      refresh_token: refreshToken,
    }
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const send = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    const { pathname } = new URL(request.url ?? '/', url)
    const isElsewhere = pathname.startsWith(ELSEWHERE)
    const place = PATHS[isElsewhere ? pathname.slice(ELSEWHERE.length) : pathname]
    const body = Buffer.concat(await request.toArray()).toString()
    if (!place) return void send(404, { error: 'not_found' })
    const form = Object.fromEntries(new URLSearchParams(body))
    requests.push({ place, form })
    const mood = isElsewhere ? 'well' : moods[place]
    if (mood === 'hang') return
    if (mood === 'stall') return void response.write('{')
    if (mood === 'fail') return void send(500, { error: 'server_error' })
    if (mood === 'garbage') return void response.end('<html>what?</html>')
    if (mood === 'redirect') return void response.writeHead(302, { location: ELSEWHERE + pathname }).end()
    if (place === 'discovery') return void send(200, discovery())
    if (place === 'jwks') return void send(200, await jwks())
    if (request.method !== 'POST') return void send(405, { error: 'invalid_request' })
    if (form.client_id !== clientId) return void send(401, { error: 'invalid_client' })
    if (place === 'device') return void send(200, startDevice())
    const granted = grant(form)
    if (typeof granted === 'string') send(400, { error: granted })
    else send(200, await issueTokens(granted))
  }

  const { url, server } = await serve(t, (request, response) => {
    // Whoever asked is gone, or gets to notice.
    answer(request, response).catch(() => response.destroy())
  })
  await keysFor('ES256')
  return {
    url,
    requests,
    count: (place) => requests.filter((request) => request.place === place).length,
    mint,
    publicKey: async (alg = 'ES256') => exportSPKI((await keysFor(alg)).publicKey),
    async rotate() {
      generation += 1
      keys = new Map()
      await keysFor('ES256')
    },
    behave(mood, place) {
      for (const one of place ? [place] : Object.values(PATHS)) moods[one] = mood
    },
    advertise(members) {
      advertised = { ...advertised, ...members }
    },
    publish: (...more) => void published.push(...more),
    stop() {
      server.close()
      server.closeAllConnections()
    },
    approve(userCode, claims = {}) {
      deviceWith(userCode).verdict = claims
    },
    deny(userCode) {
      deviceWith(userCode).verdict = 'denied'
    },
    expire(userCode) {
      deviceWith(userCode).expiresAt = 0
    },
    slowDown(userCode) {
      deviceWith(userCode).tooFast = true
    },
    revokeRefreshTokens: () => refreshTokens.clear(),
  }
}
