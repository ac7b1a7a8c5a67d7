// Refusals in the words of the command line: flags instead of parameters, and where a token is from.

import { fromNow } from '../../base/relative-time.ts'
import { PROGRAM } from '../cli-command.ts'
import type { Settings } from '../config/settings.ts'
import { EXIT, Failure } from '../failure.ts'
import type { Refusal } from './refusal.ts'

/** Parameters that are flags of the same name. */
const FLAGS =
  'at|selector|from|to|since|until|limit|offset|actor|type|id|kind|plan|confirm|flavor|interval|token_secret|cert_secret|ack|events'
/** Parameters of lists that are no filters of a type. */
const NO_FILTERS = ['limit', 'offset', 'at', 'selector', 'id_prefix', 'min_revision', 'deleted']

export function inOwnWords(
  refusal: Refusal,
  settings: Settings,
  use: 'readToken' | 'writeToken',
  method: string,
): Failure {
  if (refusal.status === 401) return tokenRefused(refusal, settings, use)
  if (refusal.reason === 'no_route' && settings.url.pathname !== '/')
    return refusal.withHint(
      `is "${settings.url.pathname}" of ${settings.url.href} right? The API is mostly at the root of its host`,
    )
  return method === 'GET' ? refusal.reworded(inFlagWords) : refusal
}

/** `?at` is --at, and a parameter that is unknown was a filter. */
export function inFlagWords(text: string): string {
  return text
    .replace(/\?(\w+) is an unknown parameter: known are (.*)$/, (_all, name: string, known: string) => {
      const filters = known.split(', ').filter((each) => !NO_FILTERS.includes(each))
      return `--filter ${name}: there is no such filter: there are ${filters.join(', ') || 'none here'}`
    })
    .replaceAll('?api_url ', '--external-url ')
    .replaceAll(
      new RegExp(`\\?(${FLAGS})(?![\\w=])`, 'g'),
      (_all, name: string) => `--${name.replaceAll('_', '-')}`,
    )
    .replaceAll(/\?(\w+) (?=must be|is)/g, '--filter $1 ')
    .replace(': correct it, or set allow_empty to true', '')
    .replace('you may preview it with dry_run=true', 'you may preview it with --dry-run')
    .replaceAll('dry_run=true', '--dry-run')
    .replace(/^needs bypass=true: /, 'needs --bypass: ')
    .replace(/^needs confirm=(\w+): /, 'needs --confirm $1: ')
}

/** The server takes no token, or not this one. */
export class TokenRefused extends Failure {}

function tokenRefused(
  refusal: Refusal,
  { url, readToken, writeToken, readSource, writeSource, context, login }: Settings,
  use: 'readToken' | 'writeToken',
): Failure {
  const [token, source] = use === 'readToken' ? [readToken, readSource] : [writeToken, writeSource]
  const logIn = `${PROGRAM} login${context === undefined ? '' : ` --context ${context}`}`
  const isTold = refusal.message.startsWith('a valid token is needed')
  const details = [...(isTold ? [] : [refusal.message]), ...refusal.details.slice(-1)]
  if (token === undefined)
    return new TokenRefused(EXIT.refused, `no token for ${url.href}`, {
      details,
      hint: `log in (${logIn}), or set FLUX_API_TOKEN and, to change things, FLUX_API_WRITE_TOKEN`,
    })
  const which = source?.startsWith('the ') ? source : `the token of ${source}`
  const [, end] = /expired at (\S+): /.exec(refusal.message) ?? []
  if (refusal.reason === 'credential_expired' && end !== undefined)
    return new TokenRefused(EXIT.refused, `${which} expired ${fromNow(end, new Date())}, at ${end}`, {
      details,
      hint: `an admin gives it a new secret by ${PROGRAM} token rotate; or log in again (${logIn})`,
    })
  return new TokenRefused(
    EXIT.refused,
    `${which} was refused by ${url.href}: it is not known there, or was revoked`,
    {
      details,
      hint: login ? `log in again (${logIn})` : `correct it, or log in (${logIn})`,
    },
  )
}
