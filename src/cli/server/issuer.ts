// The client of an OIDC issuer: discovery, its endpoints, and the tokens that it returns.

import { isObject, type JsonObject } from '../../base/json.ts'
import { discoveryUrl, parseEndpoint } from '../../base/oidc-discovery.ts'
import { isToken } from '../../base/token-list.ts'
import { PROGRAM } from '../cli-command.ts'
import type { IssuerLogin } from '../config/contexts.ts'
import { EXIT, Failure } from '../failure.ts'
import type { Env } from '../output/terminal.ts'
import { describeResponse, explain, openSender, type Raw } from './send-request.ts'
import { tlsHint } from './tls-options.ts'

/** How an issuer is asked. */
export interface IssuerOptions {
  readonly env: Env
  readonly version: string
  readonly timeoutMs: number
  /** A CA that is trusted too: an issuer may have a public certificate where the service has a private one. */
  readonly caFile?: string | undefined
}

export interface FormResponse {
  readonly status: number
  readonly body: JsonObject
}

/** The part of the discovery document that a login needs. */
export interface Discovered {
  readonly issuer: string
  readonly tokenEndpoint: URL
  readonly deviceEndpoint: URL | undefined
  /** The scopes in the document, if it has any. */
  readonly scopes: readonly string[] | undefined
}

export async function discover(text: string, options: IssuerOptions): Promise<Discovered> {
  const url = secureUrl(text, 'the address of the issuer')
  const raw = await send(url, 'GET', undefined, options)
  const body = parse(raw)
  if (raw.status !== 200 || !body) throw notAnIssuer(url, raw)
  const { issuer, token_endpoint, device_authorization_endpoint: device, scopes_supported: scopes } = body
  // The document of another issuer would lead to tokens of that one.
  if (typeof issuer !== 'string' || discoveryUrl(issuer) !== text)
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

/** Parses a URL that secrets may be sent to: https, or this machine. */
export function secureUrl(text: unknown, what: string, origin?: URL): URL {
  const url = parseEndpoint(text, origin)
  if (url) return url
  throw refused(`${what} must be an https URL, not ${JSON.stringify(text) ?? 'left out'}`)
}

/** Posts a form; the response is JSON of OAuth, also of an error. */
export async function postForm(
  url: URL,
  form: Readonly<Record<string, string>>,
  options: IssuerOptions,
): Promise<FormResponse> {
  const raw = await send(url, 'POST', new URLSearchParams(form).toString(), options)
  const body = parse(raw)
  const isOk = raw.status === 200
  if (!body || (!isOk && typeof body.error !== 'string') || raw.status >= 500) throw notAnIssuer(url, raw)
  return { status: raw.status, body }
}

async function send(
  url: URL,
  method: string,
  form: string | undefined,
  options: IssuerOptions,
): Promise<Raw> {
  const sender = openSender(url.protocol, options.env, options.timeoutMs, { alsoCaFile: options.caFile })
  const payload = form === undefined ? undefined : Buffer.from(form)
  const headers = {
    accept: 'application/json',
    'user-agent': `${PROGRAM}/${options.version}`,
    ...(payload && {
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': payload.length,
    }),
  }
  try {
    return await sender.send(url, { method, headers, payload })
  } catch (error) {
    throw new Failure(EXIT.unreachable, `cannot reach the issuer at ${url.origin}: ${explain(error)}`, {
      hint: tlsHint(error),
    })
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

/** The body is not shown: it may repeat secrets that were sent. */
function notAnIssuer(url: URL, raw: Raw): Failure {
  const message = `what answers at ${url.origin}${url.pathname} is no issuer that works: ${describeResponse(raw)}`
  return new Failure(EXIT.unreachable, message)
}

export function refused(message: string, hint?: string): Failure {
  return new Failure(EXIT.refused, message, { hint })
}

/** The reason of a refusal, without the secrets that were sent. */
export function reasonIn({ error, error_description: why }: JsonObject, ...secrets: string[]): string {
  const reason = typeof why === 'string' && why !== '' ? `${error}: ${why}` : String(error)
  return secrets.reduce((text, secret) => text.replaceAll(secret, '(secret)'), reason)
}

/** The token of a response, which is the ID token where there is one, its expiry, and the refresh token. */
export function tokensIn(
  { id_token, access_token, expires_in, refresh_token }: JsonObject,
  now: Date,
): Pick<IssuerLogin, 'token' | 'expires_at' | 'refresh_token'> {
  const token = id_token ?? access_token
  if (typeof token !== 'string' || !isToken(token)) throw refused('the issuer answered without a token')
  const lifetime = token === access_token && typeof expires_in === 'number' ? expires_in : undefined
  const ends = expiryOf(token) ?? (lifetime === undefined ? undefined : now.getTime() / 1000 + lifetime)
  return {
    token,
    ...(ends !== undefined && { expires_at: new Date(ends * 1000).toISOString() }),
    ...(typeof refresh_token === 'string' && refresh_token !== '' && { refresh_token }),
  }
}

/** The expiry of a JSON Web Token in seconds; undefined when it is none, or has none. */
function expiryOf(token: string): number | undefined {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    return typeof exp === 'number' && exp > 0 && exp < 253_402_300_800 ? exp : undefined
  } catch {
    return undefined
  }
}
