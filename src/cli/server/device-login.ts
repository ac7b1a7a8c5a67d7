// The device authorization grant (RFC 8628): somebody logs in by a browser on any device, and we poll until then.
import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonObject } from '../../base/json.ts'
import { backoff } from '../../runtime/backoff.ts'
import type { IssuerLogin } from '../config/contexts.ts'
import { EXIT, Failure } from '../failure.ts'
import {
  type Discovered,
  discover,
  type FormResponse,
  type IssuerOptions,
  postForm,
  reasonIn,
  refused,
  secureUrl,
  tokensIn,
} from './issuer.ts'

export interface Client {
  /** The URL of the discovery document. */
  readonly openIdConnectUrl: string
  readonly clientId: string
}

/** What is shown to the person who logs in. */
export interface Prompt {
  readonly url: string
  /** The URL with the code in it, where the issuer has one. */
  readonly completeUrl: string | undefined
  readonly code: string
  readonly seconds: number
}

const GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const WANTED = ['openid', 'email', 'profile', 'groups', 'offline_access']
/** The scopes that every issuer knows. */
const BASIC = ['openid', 'email', 'profile']
const DEFAULT_INTERVAL_S = 5
const SLOW_DOWN_S = 5
/** The most that an issuer may make us wait. */
const MAX_S = 3600
/** Polls in a row that may fail. */
const MAX_FAILURES = 4

export async function loginByDevice(
  { openIdConnectUrl, clientId }: Client,
  options: IssuerOptions,
  show: (prompt: Prompt) => void,
): Promise<IssuerLogin> {
  const issuer = await discover(openIdConnectUrl, options)
  const { deviceEndpoint, tokenEndpoint } = issuer
  if (!deviceEndpoint)
    throw refused(
      `the issuer ${issuer.issuer} has no login for devices`,
      'get a token elsewhere, and give it by --with-token',
    )
  const { status, body } = await startDevice(deviceEndpoint, clientId, issuer, options)
  if (status !== 200) throw refused(`the issuer refuses to log anybody in: ${reasonIn(body)}`)
  const { device_code, user_code, verification_uri, verification_uri_complete: complete } = body
  if (typeof device_code !== 'string' || typeof user_code !== 'string')
    throw refused('the issuer answered without a code to log in with')
  const seconds = secondsIn(body.expires_in, MAX_S) ?? MAX_S
  show({
    url: secureUrl(verification_uri, 'the verification_uri of the issuer', tokenEndpoint).href,
    completeUrl:
      complete === undefined
        ? undefined
        : secureUrl(complete, 'the verification_uri_complete of the issuer', tokenEndpoint).href,
    code: user_code,
    seconds,
  })
  const interval = secondsIn(body.interval, MAX_S) ?? DEFAULT_INTERVAL_S
  const form = { grant_type: GRANT, device_code, client_id: clientId }
  const granted = await pollForToken(tokenEndpoint, form, { interval, seconds }, options)
  return { ...tokensIn(granted, new Date()), token_endpoint: tokenEndpoint.href, client_id: clientId }
}

function secondsIn(value: unknown, most: number): number | undefined {
  return typeof value === 'number' && value > 0 ? Math.min(value, most) : undefined
}

/** Requests a code with every scope that the issuer knows; where it refuses one, again with the basic scopes. */
async function startDevice(
  url: URL,
  client_id: string,
  { scopes }: Discovered,
  options: IssuerOptions,
): Promise<FormResponse> {
  const wanted = WANTED.filter((scope) => scope === 'openid' || (scopes?.includes(scope) ?? true))
  const first = await postForm(url, { client_id, scope: wanted.join(' ') }, options)
  if (first.status === 200 || first.body.error !== 'invalid_scope') return first
  return postForm(url, { client_id, scope: BASIC.join(' ') }, options)
}

/** Polls for the token as often as the issuer allows, until the login is confirmed, denied or expired. */
async function pollForToken(
  url: URL,
  form: { readonly device_code: string } & Readonly<Record<string, string>>,
  { interval, seconds }: { interval: number; seconds: number },
  options: IssuerOptions,
): Promise<JsonObject> {
  const ends = Date.now() + seconds * 1000
  // Added to the interval, which must not be cut short: RFC 8628, section 3.5.
  const delays = backoff({ first: interval * 1000, max: MAX_S * 1000 })
  let pauseMs = interval * 1000
  let failures = 0
  for (;;) {
    await sleep(Math.min(pauseMs, Math.max(0, ends - Date.now())))
    if (Date.now() >= ends) throw expired()
    try {
      const { status, body } = await postForm(url, form, options)
      if (status === 200) return body
      failures = 0
      if (body.error === 'slow_down') pauseMs += SLOW_DOWN_S * 1000
      else if (body.error === 'access_denied') throw refused('the login was denied at the issuer')
      else if (body.error === 'expired_token') throw expired()
      else if (body.error !== 'authorization_pending')
        throw refused(`the issuer refuses the login: ${reasonIn(body, form.device_code)}`)
    } catch (error) {
      const isUnreachable = error instanceof Failure && error.exitCode === EXIT.unreachable
      if (!isUnreachable || ++failures === MAX_FAILURES) throw error
      pauseMs += delays.next()
    }
  }
}

function expired(): Failure {
  return refused('nobody confirmed the login in time: the code has expired', 'log in again for a new one')
}
