// Talks to an OIDC issuer: where it is found, its endpoints, and the tokens that it gives.

import { isObject, type JsonObject } from '../../base/json.ts'
import { isSecure } from '../../base/urls.ts'
import { PROGRAM } from '../cli-command.ts'
import type { IssuerLogin } from '../config/contexts.ts'
import { EXIT, Failure } from '../failure.ts'
import type { Env } from '../output/terminal.ts'
import { describeResponse, explain, openSender, type Raw } from './send-request.ts'

export interface How {
  readonly env: Env
  readonly version: string
  readonly timeoutMs: number
}

export interface FormAnswer {
  readonly status: number
  readonly body: JsonObject
}

/** What an issuer says of itself, as far as somebody who logs in needs it. */
export interface Discovered {
  readonly issuer: string
  readonly tokenEndpoint: URL
  readonly deviceEndpoint: URL | undefined
  /** Those that it names, if it names any. */
  readonly scopes: readonly string[] | undefined
}

const DISCOVERY = '/.well-known/openid-configuration'

export async function discover(text: string, how: How): Promise<Discovered> {
  const url = secureUrl(text, 'the address of the issuer')
  const raw = await send(url, 'GET', undefined, how)
  const body = parse(raw)
  if (raw.status !== 200 || !body) throw strange(url, raw)
  const { issuer, token_endpoint, device_authorization_endpoint: device, scopes_supported: scopes } = body
  // Or somebody else's tokens would be asked for under this one's name.
  if (typeof issuer !== 'string' || issuer.replace(/\/$/, '') + DISCOVERY !== text)
    throw refused(`${url.href} is the description of another issuer: ${JSON.stringify(issuer)}`)
  return {
    issuer,
    tokenEndpoint: secureUrl(token_endpoint, 'the token_endpoint of the issuer', url),
    deviceEndpoint:
      device === undefined
        ? undefined
        : secureUrl(device, 'the device_authorization_endpoint of the issuer', url),
    scopes: Array.isArray(scopes) ? scopes.filter((scope) => typeof scope === 'string') : undefined,
  }
}

/** Where secrets may travel to. */
export function secureUrl(text: unknown, what: string, origin?: URL): URL {
  const url = typeof text === 'string' ? URL.parse(text) : null
  if (url && !url.username && !url.password && isSecure(url, origin)) return url
  throw refused(`${what} must be an https URL, not ${JSON.stringify(text) ?? 'left out'}`)
}

/** Posts a form; the answer is JSON of OAuth, of an error too. */
export async function postForm(
  url: URL,
  form: Readonly<Record<string, string>>,
  how: How,
): Promise<FormAnswer> {
  const raw = await send(url, 'POST', new URLSearchParams(form).toString(), how)
  const body = parse(raw)
  const isOk = raw.status === 200
  if (!body || (!isOk && typeof body.error !== 'string') || raw.status >= 500) throw strange(url, raw)
  return { status: raw.status, body }
}

async function send(url: URL, method: string, form: string | undefined, how: How): Promise<Raw> {
  const sender = openSender(url.protocol, how.env, how.timeoutMs)
  const payload = form === undefined ? undefined : Buffer.from(form)
  const headers = {
    accept: 'application/json',
    'user-agent': `${PROGRAM}/${how.version}`,
    ...(payload && {
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': payload.length,
    }),
  }
  try {
    return await sender.send(url, { method, headers, payload })
  } catch (error) {
    throw new Failure(EXIT.unreachable, `cannot reach the issuer at ${url.origin}: ${explain(error)}`)
  } finally {
    sender.close()
  }
}

function parse({ text }: Raw): JsonObject | undefined {
  try {
    const body = JSON.parse(text)
    return isObject(body) ? body : undefined
  } catch {
    return undefined
  }
}

/** What came may hold what was sent, so none of it is shown. */
function strange(url: URL, raw: Raw): Failure {
  const message = `what answers at ${url.origin}${url.pathname} is no issuer that works: ${describeResponse(raw)}`
  return new Failure(EXIT.unreachable, message)
}

export function refused(message: string, hint?: string): Failure {
  return new Failure(EXIT.refused, message, { hint })
}

/** What an issuer says of a refusal, without the secrets that were sent. */
export function reasonIn({ error, error_description: why }: JsonObject, ...secrets: string[]): string {
  const said = typeof why === 'string' && why !== '' ? `${error}: ${why}` : String(error)
  return secrets.reduce((text, secret) => text.replaceAll(secret, '(secret)'), said)
}

/** The tokens of an answer: the one that says who somebody is, where there is one. */
export function tokensIn(
  { id_token, access_token, expires_in, refresh_token }: JsonObject,
  now: Date,
): Pick<IssuerLogin, 'token' | 'expires_at' | 'refresh_token'> {
  const token = id_token ?? access_token
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token))
    throw refused('the issuer answered without a token')
  const told = token === access_token && typeof expires_in === 'number' ? expires_in : undefined
  const ends = expiryOf(token) ?? (told === undefined ? undefined : now.getTime() / 1000 + told)
  return {
    token,
    ...(ends !== undefined && { expires_at: new Date(ends * 1000).toISOString() }),
    ...(typeof refresh_token === 'string' && refresh_token !== '' && { refresh_token }),
  }
}

/** The last second of a JSON Web Token; nothing when it is none, or does not say. */
function expiryOf(token: string): number | undefined {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    return typeof exp === 'number' && exp > 0 && exp < 253_402_300_800 ? exp : undefined
  } catch {
    return undefined
  }
}
