// Opens the session of a command: its output format, and a client of the API.
import type { CliContext } from './cli-command.ts'
import { permissionWarning } from './config/contexts.ts'
import type { GlobalFlags, Settings } from './config/settings.ts'
import { warnOfPlainHttp } from './output/plain-http.ts'
import { parseFormat } from './output/print.ts'
import { openApi } from './server/api-client.ts'
import type { Noun } from './server/nouns.ts'
import { tokenRenewal } from './server/token-renewal.ts'
import { createSession, type Session } from './session.ts'

export async function openSession(
  context: CliContext,
  flags: GlobalFlags,
  settings: Settings,
  nouns: readonly Noun[],
): Promise<Session> {
  const { terminal, version } = context
  const { env, stderr } = terminal
  const format = await parseFormat(flags.output)
  const quiet = flags.quiet ?? false
  const note = (text: string): void => {
    if (!quiet) stderr.write(`${text}\n`)
  }
  const warning = settings.context === undefined ? undefined : permissionWarning(env)
  if (warning) note(`Warning: ${warning}`)
  if (settings.readToken) warnOfPlainHttp(terminal, settings.url, settings.allowsHttp)
  const api = openApi({ settings, env, version, renew: tokenRenewal(context), note })
  const headers = flags.headers ?? true
  return createSession({ terminal, settings, api, nouns, format, quiet, version, headers })
}
