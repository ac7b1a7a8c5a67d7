// `login`: keeps a token for a context, typed, piped or from an OIDC issuer.
import type { Command } from 'commander'
import type { CallerIdentity } from '../../api/wire-types.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import { fromNow } from '../../base/relative-time.ts'
import { describeGrant } from '../../domain/access/grant.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import {
  type Context,
  type ContextFile,
  hasContext,
  type IssuerLogin,
  loadContexts,
  unknownContext,
  updateContexts,
  withoutTokens,
} from '../config/contexts.ts'
import {
  contextOf,
  type GlobalFlags,
  parseTimeout,
  parseToken,
  parseUrl,
  REQUEST_TIMEOUT_MS,
  type Settings,
  tlsOf,
} from '../config/settings.ts'
import { tlsFields } from '../config/tls-fields.ts'
import { EXIT, Failure, usage } from '../failure.ts'
import { askHidden } from '../input/ask.ts'
import { readStdin } from '../input/read-files.ts'
import { warnOfPlainHttp } from '../output/plain-http.ts'
import { parseFormat, render } from '../output/print.ts'
import { type Env, painter, plain, type Terminal } from '../output/terminal.ts'
import type { Api } from '../server/api.ts'
import { openApi } from '../server/api-client.ts'
import { type Client, loginByDevice, type Prompt } from '../server/device-login.ts'
import { TokenRefused } from '../server/own-words.ts'

export function defineLogin(command: Command, { program, context: { terminal, version } }: Tools): void {
  command
    .option('--with-token', 'read a token from stdin, or type it, instead of logging in at the issuer')
    .addHelpText(
      'after',
      `
For a server with an OIDC issuer, login shows a URL and a code to confirm in a browser, and later commands renew it.
Otherwise it takes a token, piped or typed without being shown. The token is stored in the context in use, in the one
that --context names, or in a new one for --api-url, named by --context or after the host.

Examples:
  ${PROGRAM} login --api-url https://flux-api.example.com
  pass flux/prod | ${PROGRAM} login --with-token --context prod
  ${PROGRAM} logout`,
    )
    .action(async ({ withToken = false }: { withToken?: boolean }) => {
      await login(terminal, version, program.opts<GlobalFlags>(), withToken)
    })
}

async function login(
  terminal: Terminal,
  version: string,
  flags: GlobalFlags,
  withToken: boolean,
): Promise<void> {
  const { env, stderr } = terminal
  if (flags.apiToken !== undefined || flags.writeToken !== undefined)
    throw usage('login asks for the token: pipe it in, and leave --api-token and --write-token out')
  const format = await parseFormat(flags.output)
  const known = loadContexts(env)
  const { name, api_url, isKnown } = chooseContext(flags, env, known)
  const note = (text: string): void => {
    if (!flags.quiet) stderr.write(`${plain(text)}\n`)
  }
  const url = parseUrl(api_url, '--api-url')
  const timeoutMs = parseTimeout(flags.timeout) ?? REQUEST_TIMEOUT_MS
  const tls = tlsOf(flags, env, isKnown ? known.contexts[name] : undefined)
  const as = <T>(token: string | undefined, use: (api: Api) => Promise<T>): Promise<T> => {
    const settings: Settings = {
      url,
      readToken: token,
      writeToken: token,
      context: undefined,
      login: undefined,
      tls,
      allowsHttp: false,
      ask: 'always',
      timeoutMs,
      waitMs: timeoutMs,
    }
    const api = openApi({ settings, env, version, note })
    return use(api).finally(() => api.close())
  }
  warnOfPlainHttp(terminal, url, isKnown && known.contexts[name]?.allow_http)
  const token = await givenToken(terminal, withToken)
  const client = token === undefined && !withToken ? await as(undefined, issuerOf) : undefined
  const credential = client
    ? await loginByDevice(client, { env, version, timeoutMs, caFile: tls.caFile }, (prompt) =>
        show(terminal, prompt),
      )
    : (token ?? (await typedToken(terminal, url)))
  const identity = await as(typeof credential === 'string' ? credential : credential.token, (api) =>
    whoami(api),
  )
  await updateContexts(env, (file) => {
    const old = file.contexts[name]
    const kept = { ...(old && withoutTokens(old)), api_url, ...tlsFields(flags) }
    const context = { ...kept, ...tokensFor(credential, identity) }
    return { ...file, current_context: name, contexts: { ...file.contexts, [name]: context } }
  })
  const isRenewed = typeof credential !== 'string' && credential.refresh_token !== undefined
  const what = isRenewed ? describeGrant(identity) : describeIdentity(identity)
  note(`logged in to ${url.href} as ${identity.name}: ${what}`)
  note(`context "${name}" ${isKnown ? 'changed' : 'added'}, and in use`)
  const overriding = ['FLUX_API_URL', 'FLUX_API_TOKEN', 'FLUX_API_WRITE_TOKEN'].filter((each) =>
    env[each]?.trim(),
  )
  if (overriding.length > 0)
    note(
      `set in the environment, and before the context: ${overriding.join(', ')}; or give --context ${name}`,
    )
  if (format.kind === 'human') return
  const value = { context: name, server: url.href, ...identity }
  const printable = { value, names: [name], human: () => '' }
  terminal.stdout.write(await render(terminal, format, true, printable))
}

interface Chosen {
  readonly name: string
  readonly api_url: string
  readonly isKnown: boolean
}

/** The context to log in to; with a URL it may be a new one. */
function chooseContext(flags: GlobalFlags, env: Env, file: ContextFile): Chosen {
  const { contexts, current_context: current } = file
  const urlOf = (name: string): string => (contexts[name] as Context).api_url
  const isSame = (a: string, b: string): boolean =>
    parseUrl(a, 'the API URL').href === parseUrl(b, 'the context').href
  if (flags.context !== undefined) {
    const { context: name, apiUrl } = flags
    if (name.trim() === '') throw usage('a context needs a name')
    const isKnown = hasContext(file, name)
    if (!isKnown && apiUrl === undefined) throw unknownContext(file, name)
    return { name, api_url: apiUrl ?? urlOf(name), isKnown }
  }
  const given = flags.apiUrl ?? (env.FLUX_API_URL || undefined)
  if (hasContext(file, current) && (given === undefined || isSame(given, urlOf(current))))
    return { name: current, api_url: urlOf(current), isKnown: true }
  if (given === undefined) throw usage('which server? Give --api-url https://…')
  const source = flags.apiUrl === undefined ? 'FLUX_API_URL' : '--api-url'
  // With its port: several servers of one machine are several contexts.
  const name = contextOf(file, given, source) ?? parseUrl(given, source).host
  const isKnown = hasContext(file, name)
  if (isKnown && !isSame(given, urlOf(name)))
    throw usage(`context "${name}" is that of ${urlOf(name)}: give this one a name by --context NAME`)
  return { name, api_url: given, isKnown }
}

/** The token on stdin, if it is not a terminal. */
async function givenToken(terminal: Terminal, withToken: boolean): Promise<string | undefined> {
  if (terminal.stdin.isTTY) return undefined
  const token = parseToken(await readStdin(terminal), 'stdin')
  if (withToken && token === undefined) throw usage('stdin holds no token')
  return token
}

async function typedToken(terminal: Terminal, { href }: URL): Promise<string> {
  const isAsked = terminal.stdin.isTTY
  const typed = isAsked ? await askHidden(terminal, `Token for ${href}: `) : undefined
  const token = parseToken(typed, 'what you typed')
  if (token === undefined)
    throw usage(isAsked ? 'no token was typed' : 'stdin holds no token, and the server has no issuer')
  return token
}

/** The issuer in the server's OpenAPI document; undefined where it has none. */
async function issuerOf(api: Api): Promise<Client | undefined> {
  const { body } = await api.get('/openapi.json')
  const schemes: JsonObject = body?.components?.securitySchemes ?? {}
  const { openIdConnectUrl, 'x-client-id': clientId } = isObject(schemes.oidc) ? schemes.oidc : {}
  const isWhole = typeof openIdConnectUrl === 'string' && typeof clientId === 'string'
  return isWhole ? { openIdConnectUrl, clientId } : undefined
}

/** Prints the code on stderr, also with --quiet: without it nobody can log in. */
function show(terminal: Terminal, { url, completeUrl, code, seconds }: Prompt): void {
  const bold = (text: string): string => painter(terminal, terminal.stderr)('bold', plain(text))
  const minutes = Math.max(1, Math.round(seconds / 60))
  terminal.stderr.write(
    completeUrl === undefined
      ? `To log in, open ${bold(url)}\nand type the code ${bold(code)} there`
      : `To log in, open ${bold(completeUrl)}\nand confirm the code ${bold(code)}`,
  )
  terminal.stderr.write(` within ${minutes} minute${minutes === 1 ? '' : 's'}.\n`)
}

/** Reads who the token is for, before it is stored: a token that is refused is not. */
async function whoami(api: Api): Promise<CallerIdentity> {
  try {
    return (await api.get('/whoami')).body
  } catch (error) {
    if (!(error instanceof TokenRefused)) throw error
    const { details } = error
    throw new Failure(EXIT.refused, `${api.url.href} does not take this token: nothing was kept`, { details })
  }
}

/** The tokens of the context: one that may write is for both uses, and so is a login. */
function tokensFor(credential: string | IssuerLogin, { role }: CallerIdentity): Omit<Context, 'api_url'> {
  if (typeof credential !== 'string') return { login: credential }
  return {
    api_token: credential,
    ...((role === 'editor' || role === 'admin') && { write_token: credential }),
  }
}

function describeIdentity(identity: CallerIdentity): string {
  const { expires_at } = identity
  return `${describeGrant(identity)}${expires_at ? `, expires ${fromNow(expires_at, new Date())}` : ''}`
}
