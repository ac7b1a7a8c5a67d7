// The device authorization grant (RFC 8628): somebody says yes in a browser, wherever that is, and we ask until then.
import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonObject } from '../../base/json.ts'
import type { IssuerLogin } from '../config/contexts.ts'
import { EXIT, Failure } from '../failure.ts'
import {
  type Discovered,
  discover,
  type FormAnswer,
  type How,
  postForm,
  reasonIn,
  refused,
  secureUrl,
  tokensIn,
} from './issuer.ts'

export interface Client {
  /** Where the issuer describes itself. */
  readonly openIdConnectUrl: string
  readonly clientId: string
}

/** What to show to whoever logs in. */
export interface Prompt {
  readonly url: string
  /** With the code already in it, where the issuer has such a URL. */
  readonly completeUrl: string | undefined
  readonly code: string
  readonly seconds: number
}

const GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const WANTED = ['openid', 'email', 'profile', 'groups', 'offline_access']
/** What every issuer knows. */
const BASIC = ['openid', 'email', 'profile']
const DEFAULT_INTERVAL_S = 5
const SLOW_DOWN_S = 5
/** No issuer may make us wait for ever. */
const LONGEST_S = 3600
/** Questions in a row that got no answer. */
const FAILURES = 4

export async function loginByDevice(
  { openIdConnectUrl, clientId }: Client,
  how: How,
  show: (prompt: Prompt) => void,
): Promise<IssuerLogin> {
  const issuer = await discover(openIdConnectUrl, how)
  const { deviceEndpoint, tokenEndpoint } = issuer
  if (!deviceEndpoint)
    throw refused(
      `the issuer ${issuer.issuer} has no login for devices`,
      'get a token elsewhere, and give it by --with-token',
    )
  const { status, body } = await startDevice(deviceEndpoint, clientId, issuer, how)
  if (status !== 200) throw refused(`the issuer refuses to log anybody in: ${reasonIn(body)}`)
  const { device_code, user_code, verification_uri, verification_uri_complete: complete } = body
  if (typeof device_code !== 'string' || typeof user_code !== 'string')
    throw refused('the issuer answered without a code to log in with')
  const seconds = secondsIn(body.expires_in, LONGEST_S) ?? LONGEST_S
  show({
    url: secureUrl(verification_uri, 'the verification_uri of the issuer', tokenEndpoint).href,
    completeUrl:
      complete === undefined
        ? undefined
        : secureUrl(complete, 'the verification_uri_complete of the issuer', tokenEndpoint).href,
    code: user_code,
    seconds,
  })
  const interval = secondsIn(body.interval, LONGEST_S) ?? DEFAULT_INTERVAL_S
  const form = { grant_type: GRANT, device_code, client_id: clientId }
  const granted = await waitForYes(tokenEndpoint, form, { interval, seconds }, how)
  return { ...tokensIn(granted, new Date()), token_endpoint: tokenEndpoint.href, client_id: clientId }
}

function secondsIn(value: unknown, most: number): number | undefined {
  return typeof value === 'number' && value > 0 ? Math.min(value, most) : undefined
}

/** With every scope that the issuer knows, or once more with those that all of them know. */
async function startDevice(
  url: URL,
  client_id: string,
  { scopes }: Discovered,
  how: How,
): Promise<FormAnswer> {
  const wanted = WANTED.filter((scope) => scope === 'openid' || (scopes?.includes(scope) ?? true))
  const first = await postForm(url, { client_id, scope: wanted.join(' ') }, how)
  if (first.status === 200 || first.body.error !== 'invalid_scope') return first
  return postForm(url, { client_id, scope: BASIC.join(' ') }, how)
}

/** Asks as often as the issuer allows, until somebody has said yes or no, or the time is over. */
async function waitForYes(
  url: URL,
  form: { readonly device_code: string } & Readonly<Record<string, string>>,
  { interval, seconds }: { interval: number; seconds: number },
  how: How,
): Promise<JsonObject> {
  const ends = Date.now() + seconds * 1000
  let pause = interval
  let failures = 0
  for (;;) {
    await sleep(Math.min(pause * 1000, Math.max(0, ends - Date.now())))
    if (Date.now() >= ends) throw expired()
    try {
      const { status, body } = await postForm(url, form, how)
      if (status === 200) return body
      failures = 0
      if (body.error === 'slow_down') pause += SLOW_DOWN_S
      else if (body.error === 'access_denied') throw refused('the login was denied at the issuer')
      else if (body.error === 'expired_token') throw expired()
      else if (body.error !== 'authorization_pending')
        throw refused(`the issuer refuses the login: ${reasonIn(body, form.device_code)}`)
    } catch (error) {
      const isAway = error instanceof Failure && error.exitCode === EXIT.unreachable
      if (!isAway || ++failures === FAILURES) throw error
      pause *= 2
    }
  }
}

function expired(): Failure {
  return refused('nobody confirmed the login in time: the code has expired', 'log in again for a new one')
}
