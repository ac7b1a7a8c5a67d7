// Which server to talk to, with which tokens, and how to answer: flags, then the environment, then the context.

import { isToken } from '../../base/token-list.ts'
import { usage } from '../failure.ts'
import type { Env } from '../output/terminal.ts'
import type { TlsSettings } from '../server/tls-options.ts'
import {
  type Ask,
  type Context,
  type ContextFile,
  hasContext,
  type IssuerLogin,
  loadContexts,
  parseAsk,
  unknownContext,
} from './contexts.ts'

/** The flags that every command takes. */
export interface GlobalFlags {
  readonly apiUrl?: string
  readonly apiToken?: string
  readonly writeToken?: string
  readonly apiTokenFile?: string
  readonly writeTokenFile?: string
  readonly context?: string
  readonly output?: string
  readonly headers?: boolean
  readonly quiet?: boolean
  readonly timeout?: string
  readonly caFile?: string
  readonly clientCert?: string
  readonly clientKey?: string
  readonly insecureSkipTlsVerify?: boolean
}

export interface Settings {
  readonly url: URL
  readonly readToken: string | undefined
  readonly writeToken: string | undefined
  /** Where each token is from, for messages: `FLUX_API_TOKEN`. */
  readonly readSource?: string | undefined
  readonly writeSource?: string | undefined
  readonly context: string | undefined
  /** The login of the context, where its token is used. */
  readonly login: IssuerLogin | undefined
  readonly tls?: TlsSettings
  /** Whether the context allows tokens in plain http. */
  readonly allowsHttp: boolean
  /** Whether somebody has to agree to what touches several clusters, or takes something from one. */
  readonly ask: Ask
  /** How long one request may take. */
  readonly timeoutMs: number
  /** How long to wait for clusters or rollouts, where it was said. */
  readonly waitMs: number | undefined
}

const DEFAULT_URL = 'http://127.0.0.1:8080'
/** How long one request may take, unless --timeout says otherwise. */
export const REQUEST_TIMEOUT_MS = 60_000
const MAX_TIMEOUT_S = 86_400
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 }

export function resolveSettings(flags: GlobalFlags, env: Env): Settings {
  const { name, context, explicit } = chooseContext(flags, env)
  const given = flags.apiUrl ?? (explicit ? context?.api_url : env.FLUX_API_URL || context?.api_url)
  const source = flags.apiUrl !== undefined ? '--api-url' : 'the API URL'
  const url = parseUrl(given ?? DEFAULT_URL, source)
  // Tokens of a context go to its own server only; a context with tokens gets no tokens from the environment.
  const own = context && parseUrl(context.api_url, 'the context').href === url.href ? context : undefined
  const { api_token, write_token, login } = own ?? {}
  // The tokens of the environment are for the server of the environment.
  const isElsewhere =
    Boolean(env.FLUX_API_URL) && parseUrl(env.FLUX_API_URL ?? '', 'FLUX_API_URL').href !== url.href
  const isComplete = explicit && Boolean(api_token || write_token || login)
  const pick = (
    flag: string | undefined,
    flagName: string,
    variable: string,
    held: string | undefined,
  ): Picked => {
    if (flag !== undefined) return { token: parseToken(flag, flagName), source: flagName }
    const fromEnv = isComplete || isElsewhere ? undefined : parseToken(env[variable], variable)
    if (fromEnv !== undefined) return { token: fromEnv, source: variable }
    const source = `the token of context "${name}"`
    return { token: parseToken(held, source), source }
  }
  const read = pick(flags.apiToken, '--api-token', 'FLUX_API_TOKEN', api_token ?? login?.token)
  const write = pick(flags.writeToken, '--write-token', 'FLUX_API_WRITE_TOKEN', write_token ?? login?.token)
  const timeout = parseTimeout(flags.timeout)
  const isUsed = login !== undefined && [read.token, write.token].includes(login.token)
  const [reader, writer] = [read.token === undefined ? write : read, write.token === undefined ? read : write]
  return {
    url,
    readToken: reader.token,
    writeToken: writer.token,
    readSource: reader.source,
    writeSource: writer.source,
    context: own && name,
    login: isUsed ? login : undefined,
    tls: tlsOf(flags, env, own),
    allowsHttp: own?.allow_http ?? false,
    ask: parseAsk(env.FLUX_API_ASK, 'FLUX_API_ASK') ?? own?.ask ?? 'always',
    timeoutMs: timeout ?? REQUEST_TIMEOUT_MS,
    waitMs: timeout,
  }
}

/** How the server is verified: by the flags, the environment, or the context of the server. */
export function tlsOf(flags: GlobalFlags, env: Env, context: Context | undefined): TlsSettings {
  const { ca_file, client_cert, client_key, insecure_skip_tls_verify } = context ?? {}
  const isFlagged = flags.clientCert !== undefined || flags.clientKey !== undefined
  const isSet = Boolean(env.FLUX_API_CLIENT_CERT || env.FLUX_API_CLIENT_KEY)
  return {
    caFile: flags.caFile ?? (env.FLUX_API_CA_FILE || ca_file),
    clientCert: isFlagged ? flags.clientCert : isSet ? env.FLUX_API_CLIENT_CERT || undefined : client_cert,
    clientKey: isFlagged ? flags.clientKey : isSet ? env.FLUX_API_CLIENT_KEY || undefined : client_key,
    isInsecure:
      flags.insecureSkipTlsVerify ??
      (env.FLUX_API_INSECURE_SKIP_TLS_VERIFY === 'true' || insecure_skip_tls_verify),
  }
}

interface Picked {
  readonly token: string | undefined
  readonly source: string
}

/** The context that a flag names, or that of the URL that is given, or else the current one. */
function chooseContext(
  flags: GlobalFlags,
  env: Env,
): { readonly name: string | undefined; readonly context: Context | undefined; readonly explicit: boolean } {
  const explicit = flags.context !== undefined
  const url = explicit ? undefined : (flags.apiUrl ?? (env.FLUX_API_URL || undefined))
  const file: ContextFile = url === undefined ? loadContexts(env) : contextsIfReadable(env)
  const { current_context: current } = file
  const source = flags.apiUrl === undefined ? 'FLUX_API_URL' : '--api-url'
  const name = flags.context ?? (url === undefined ? current : contextOf(file, url, source))
  const context = hasContext(file, name) ? file.contexts[name] : undefined
  if (name !== undefined && !context) throw unknownContext(file, name)
  return { name, context, explicit }
}

/** Whoever names the server needs no file of contexts. */
function contextsIfReadable(env: Env): ContextFile {
  try {
    return loadContexts(env)
  } catch {
    return { contexts: {} }
  }
}

/** The context of a server: the one in use where several are of it. */
export function contextOf(
  { contexts, current_context: current }: ContextFile,
  url: string,
  source: string,
): string | undefined {
  const { href } = parseUrl(url, source)
  const names = Object.keys(contexts).filter(
    (name) => parseUrl(contexts[name]?.api_url ?? '', 'the context').href === href,
  )
  return names.find((name) => name === current) ?? names[0]
}

/** Parses the base URL of the API, which may have a path. */
export function parseUrl(text: string, source: string): URL {
  if (/^[^/]*\/\/[^/]*@/.test(text)) {
    throw usage(`${source} must hold no credentials: give tokens by FLUX_API_TOKEN or a context`)
  }
  const url = URL.parse(text.endsWith('/') ? text : `${text}/`)
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw usage(`${source} must be like https://flux-api.example.com, not "${text}"`)
  }
  if (url.search || url.hash) throw usage(`${source} must end with a host or a path, not "${text}"`)
  return url
}

/** Parses a token. Line breaks around it are ignored, since files end with one; one inside is an error. */
export function parseToken(text: string | undefined, source: string): string | undefined {
  const token = text?.trim()
  if (!token) return undefined
  if (/[\r\n]/.test(token)) throw usage(`${source} holds a line break: it must be one token`)
  if (!isToken(token)) throw usage(`${source} holds characters that no token has`)
  return token
}

/** Parses a duration such as `30`, `30s`, `10m` or `2h`. */
export function parseTimeout(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const [, number = '', unit = 's'] = /^(\d+(?:\.\d+)?)([smh])?$/.exec(text) ?? []
  const seconds = number === '' ? 0 : Number(number) * (SECONDS[unit] ?? 0)
  if (seconds < 0.1 || seconds > MAX_TIMEOUT_S)
    throw usage(`--timeout must be from 0.1 s to 24h, such as 30, 30s, 10m or 2h, not "${text}"`)
  return seconds * 1000
}
