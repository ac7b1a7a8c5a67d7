// Named servers with their tokens, in a file that only its owner may read.
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../../base/json.ts'
import { type Failure, usage } from '../failure.ts'
import type { Env } from '../output/terminal.ts'

/** The tokens of a login at an OIDC issuer, and what it takes to renew them. */
export interface IssuerLogin {
  readonly token: string
  /** RFC 3339; when the token expires, where that is known. */
  readonly expires_at?: string
  readonly refresh_token?: string
  readonly token_endpoint: string
  readonly client_id: string
}

export interface Context {
  readonly api_url: string
  readonly api_token?: string
  readonly write_token?: string
  /** A login at an issuer, instead of both tokens. */
  readonly login?: IssuerLogin
  /** How the server is verified, and what is shown to it: absolute paths. */
  readonly ca_file?: string
  readonly client_cert?: string
  readonly client_key?: string
  readonly insecure_skip_tls_verify?: boolean
  /** Whether to leave out the warning about tokens in plain http. */
  readonly allow_http?: boolean
  /** Whether somebody has to agree to what touches several clusters, or takes something from one. */
  readonly ask?: Ask
}

export const ASK = ['always', 'never'] as const
export type Ask = (typeof ASK)[number]

export function parseAsk(text: string | undefined, source: string): Ask | undefined {
  if (text === undefined || text === '') return undefined
  const ask = ASK.find((each) => each === text)
  if (!ask) throw usage(`${source} must be ${ASK.join(' or ')}, not "${text}"`)
  return ask
}

export interface ContextFile {
  readonly current_context?: string
  readonly contexts: Readonly<Record<string, Context>>
}

/** A folder by the XDG base directory specification, which ignores relative paths; undefined without a home. */
function xdg(env: Env, name: string, fallback: string): string | undefined {
  const path = env[name]
  const base = path?.startsWith('/') ? path : env.HOME?.startsWith('/') ? join(env.HOME, fallback) : undefined
  return base && join(base, 'flux-resourceset')
}

export function configPath(env: Env): string | undefined {
  const folder = xdg(env, 'XDG_CONFIG_HOME', '.config')
  return folder && join(folder, 'config.json')
}

export function cacheFolder(env: Env): string | undefined {
  return xdg(env, 'XDG_CACHE_HOME', '.cache')
}

export function loadContexts(env: Env): ContextFile {
  const path = configPath(env)
  if (path === undefined) return { contexts: {} }
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (isMissing(error)) return { contexts: {} }
    throw usage(`${path} cannot be read: ${(error as Error).message}`)
  }
  return parseContexts(path, text)
}

function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOENT' || code === 'ENOTDIR'
}

function parseContexts(path: string, text: string): ContextFile {
  let content: unknown
  try {
    content = JSON.parse(text)
  } catch {
    // The parser's message quotes the file, which may be a token.
    throw usage(`${path} is not JSON: correct it, or delete it and set your contexts again`)
  }
  const contexts = isObject(content) ? content.contexts : undefined
  if (!isObject(contexts)) throw usage(`${path} must hold an object "contexts"`)
  for (const [name, context] of Object.entries(contexts)) {
    const { api_url, api_token = '', write_token = '', login } = isObject(context) ? context : {}
    if (typeof api_url !== 'string') throw usage(`${path}: context "${name}" has no api_url`)
    if (typeof api_token !== 'string' || typeof write_token !== 'string')
      throw usage(`${path}: the tokens of context "${name}" must be text`)
    if (isObject(context) && typeof (context.allow_http ?? false) !== 'boolean')
      throw usage(`${path}: allow_http of context "${name}" must be true or false`)
    for (const file of ['ca_file', 'client_cert', 'client_key'])
      if (isObject(context) && typeof (context[file] ?? '') !== 'string')
        throw usage(`${path}: ${file} of context "${name}" must be a path`)
    if (isObject(context) && context.ask !== undefined)
      parseAsk(String(context.ask), `${path}: ask of context "${name}"`)
    if (login !== undefined && !isLogin(login))
      throw usage(`${path}: the login of context "${name}" is not whole: take it out, and log in again`)
  }
  return content as unknown as ContextFile
}

function isLogin(login: unknown): login is IssuerLogin {
  if (!isObject(login)) return false
  const { token, token_endpoint, client_id, expires_at = '', refresh_token = '' } = login
  const texts = [token, token_endpoint, client_id, expires_at, refresh_token]
  return texts.every((text) => typeof text === 'string')
}

export function hasContext({ contexts }: ContextFile, name: string | undefined): name is string {
  return name !== undefined && Object.hasOwn(contexts, name)
}

/** The context of a server that nobody is logged in to. */
export function withoutTokens({
  api_token: _api,
  write_token: _write,
  login: _login,
  ...rest
}: Context): Context {
  return rest
}

export function unknownContext({ contexts }: ContextFile, name: string): Failure {
  return usage(`there is no context "${name}": known are ${Object.keys(contexts).join(', ') || 'none yet'}`)
}

/** Changes the file under a lock: no other process writes between reading and writing. */
export async function updateContexts(
  env: Env,
  change: (file: ContextFile) => ContextFile | Promise<ContextFile>,
): Promise<void> {
  const path = configPath(env)
  if (path === undefined) throw usage('there is no folder for the configuration: set HOME or XDG_CONFIG_HOME')
  // Loaded here: most commands only read the file.
  const { withLock } = await import('./file-lock.ts')
  const { writeOwnFile } = await import('../output/write-files.ts')
  await withLock(path, async () => {
    const file = loadContexts(env)
    const changed = await change(file)
    if (changed !== file) await writeOwnFile(path, `${JSON.stringify(changed, null, 2)}\n`)
  })
}

/** A warning when other users of this machine can read the tokens; undefined when they cannot. */
export function permissionWarning(env: Env): string | undefined {
  const path = configPath(env)
  if (path === undefined) return undefined
  try {
    const open = statSync(path).mode & 0o077
    return open ? `${path} can be read by others: chmod 600 ${path}` : undefined
  } catch {
    return undefined
  }
}
