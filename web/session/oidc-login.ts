// Logging in at an OIDC issuer with PKCE: there and back again, with nothing secret in any URL of this service.
import type { AuthorizationServer, Client } from 'oauth4webapi'
import type { ConsoleSettings } from '../../src/api/console-settings.ts'
import { isSecure } from '../../src/base/urls.ts'

type Login = NonNullable<ConsoleSettings['login']>

/** What the way back must fit; it lives as long as the tab. */
interface Begun {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  /** Where somebody was when they had to log in. */
  readonly path: string
}

const KEY = 'flux-resourceset.login'
const SCOPE = 'openid profile email'

function redirectUri(): string {
  return `${window.location.origin}/console`
}

/** Whether the issuer has just sent the browser back. */
export function isOidcReturn(): boolean {
  const search = new URLSearchParams(window.location.search)
  return (
    search.has('state') && (search.has('code') || search.has('error')) && sessionStorage.getItem(KEY) !== null
  )
}

/** Leaves the page; it resolves only when that failed. */
export async function beginOidcLogin(login: Login): Promise<void> {
  const oauth = await import('oauth4webapi')
  const server = await discover(login)
  if (!server.authorization_endpoint) throw new Error('the issuer has no authorization_endpoint')
  const { pathname, search } = window.location
  const begun: Begun = {
    state: oauth.generateRandomState(),
    nonce: oauth.generateRandomNonce(),
    verifier: oauth.generateRandomCodeVerifier(),
    path: pathname + search,
  }
  sessionStorage.setItem(KEY, JSON.stringify(begun))
  const url = new URL(server.authorization_endpoint)
  const parameters = {
    client_id: login.client_id,
    redirect_uri: redirectUri(),
    response_type: 'code',
    scope: SCOPE,
    state: begun.state,
    nonce: begun.nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(begun.verifier),
    code_challenge_method: 'S256',
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  window.location.assign(url)
}

/** Returns the ID token, which is what the service checks, and goes back to where the login began. */
export async function finishOidcLogin(login: Login): Promise<string> {
  const oauth = await import('oauth4webapi')
  const begun = JSON.parse(sessionStorage.getItem(KEY) ?? '{}') as Begun
  sessionStorage.removeItem(KEY)
  const here = new URL(window.location.href)
  window.history.replaceState(null, '', begun.path)
  const server = await discover(login)
  const client: Client = { client_id: login.client_id }
  const parameters = oauth.validateAuthResponse(server, client, here, begun.state)
  const response = await oauth.authorizationCodeGrantRequest(
    server,
    client,
    oauth.None(),
    parameters,
    redirectUri(),
    begun.verifier,
    { [oauth.allowInsecureRequests]: isLocal(login) },
  )
  const { id_token } = await oauth.processAuthorizationCodeResponse(server, client, response, {
    expectedNonce: begun.nonce,
    requireIdToken: true,
  })
  if (!id_token) throw new Error('the issuer answered without an ID token')
  return id_token
}

/** As the service itself, which takes an issuer without https on this machine alone. */
function isLocal({ issuer }: Pick<Login, 'issuer'>): boolean {
  return isSecure(new URL(issuer))
}

async function discover({ issuer }: Pick<Login, 'issuer'>): Promise<AuthorizationServer> {
  const oauth = await import('oauth4webapi')
  const url = new URL(issuer)
  return oauth.processDiscoveryResponse(
    url,
    await oauth.discoveryRequest(url, { [oauth.allowInsecureRequests]: isLocal({ issuer }) }),
  )
}
