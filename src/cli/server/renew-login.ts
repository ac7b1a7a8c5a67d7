// Renewal of the login of a context before it expires, by one process for all.
import { PROGRAM } from '../cli-command.ts'
import { type IssuerLogin, updateContexts } from '../config/contexts.ts'
import type { Settings } from '../config/settings.ts'
import { EXIT, Failure } from '../failure.ts'
import { type IssuerOptions, postForm, reasonIn, refused, secureUrl, tokensIn } from './issuer.ts'

/** A token that expires sooner than this is renewed. */
const SOON_MS = 60_000
/** Shorter than a lock may be held. --timeout does not count: a renewal that is cut off loses the login. */
const TIMEOUT_MS = 15_000

/** The settings with a token that is valid for a while. */
export async function renewLogin(
  settings: Settings,
  options: Omit<IssuerOptions, 'timeoutMs' | 'caFile'>,
): Promise<Settings> {
  const { login, context: name } = settings
  if (!login || name === undefined || msLeft(login) > SOON_MS) return settings
  let renewed = login
  try {
    await updateContexts(options.env, async (file) => {
      const context = file.contexts[name]
      if (!context?.login) throw refused('somebody has logged out')
      // Another process may have renewed it meanwhile.
      if (msLeft(context.login) > SOON_MS) {
        renewed = context.login
        return file
      }
      renewed = await refresh(context.login, {
        ...options,
        timeoutMs: TIMEOUT_MS,
        caFile: settings.tls?.caFile,
      })
      return { ...file, contexts: { ...file.contexts, [name]: { ...context, login: renewed } } }
    })
  } catch (error) {
    if (!(error instanceof Failure && msLeft(login) > 0)) throw loginExpired(error, name)
    // The old token is still valid.
    return { ...settings, login: undefined }
  }
  const swap = (token: string | undefined): string | undefined =>
    token === login.token ? renewed.token : token
  return {
    ...settings,
    login: renewed,
    readToken: swap(settings.readToken),
    writeToken: swap(settings.writeToken),
  }
}

function msLeft({ expires_at }: IssuerLogin): number {
  return expires_at === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires_at) - Date.now()
}

async function refresh(login: IssuerLogin, options: IssuerOptions): Promise<IssuerLogin> {
  const { refresh_token, token_endpoint, client_id } = login
  if (!refresh_token) throw refused('the issuer gave nothing to renew it with')
  const url = secureUrl(token_endpoint, 'the token_endpoint of the issuer')
  const form = { grant_type: 'refresh_token', refresh_token, client_id }
  const { status, body } = await postForm(url, form, options)
  if (status !== 200) throw refused(`the issuer says ${reasonIn(body, refresh_token)}`)
  // Not every issuer returns another refresh token.
  return { refresh_token, token_endpoint, client_id, ...tokensIn(body, new Date()) }
}

function loginExpired(error: unknown, name: string): unknown {
  if (!(error instanceof Failure)) return error
  return new Failure(EXIT.refused, `your login has expired, and could not be renewed: ${error.message}`, {
    hint: `run login again: ${PROGRAM} login --context ${name}`,
  })
}
