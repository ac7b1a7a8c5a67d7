// What to try after a refusal, by its code.
import { PROGRAM } from '../cli-command.ts'

const WHOAMI = `${PROGRAM} token whoami`

const HINTS: Record<string, string> = {
  unauthorized: `log in (${PROGRAM} login), or set FLUX_API_TOKEN and, to change things, FLUX_API_WRITE_TOKEN; or use a context: ${PROGRAM} config set-context --help`,
  forbidden: `${WHOAMI} shows who you are, and what you may do`,
  method_not_allowed: 'this instance only answers polls: point FLUX_API_URL at one in crud mode',
  destructive_change: 'look at what goes with --dry-run; when it is meant, add --confirm removals',
  plan_changed: 'preview again with --dry-run, and use the new plan',
  precondition_failed: 'somebody changed it meanwhile: look again, then repeat',
  gone: `history before that was given up; ${PROGRAM} log shows what is kept`,
  payload_too_large: 'apply a part of it at a time (apply --split does)',
  internal_error: 'give the request id to whoever runs the service: its log has more',
  unavailable: 'nothing was changed; try again in a while',
  rate_limited: `wait a minute, and correct the token meanwhile: it is not valid (${PROGRAM} login)`,
  too_many_requests: 'wait a while, then try again',
}

export function hintFor(
  status: number,
  { error, message }: { error: string; message: string },
): string | undefined {
  if (error === 'forbidden') return hintForRole(message)
  if (error === 'conflict' && message.includes('is in use by')) {
    return 'unassign it there first, or delete with --cascade to remove every reference as well'
  }
  const [, token] = /^there is a token "([^"]+)" already/.exec(message) ?? []
  if (token) return `${PROGRAM} token rotate ${token} gives it a new secret`
  const [, expired] = /^token "([^"]+)" has expired/.exec(message) ?? []
  if (expired) return `${PROGRAM} token revoke ${expired} makes room for another one of that name`
  if (message.includes('earlier secrets of token')) return '--grace 0s, or of bootstrap --token-grace 0s'
  if (error === 'conflict' && message.includes('exists already'))
    return 'to change what is there, use update or apply'
  const [, isProtected] = /"([^"]+)" is protected/.exec(message) ?? []
  if (isProtected) return `${PROGRAM} cluster update ${isProtected} --set deletion_protection=false`
  if (message.includes('allow_empty')) {
    return `${PROGRAM} cluster list --selector '…' shows what a selector matches`
  }
  // For a type without this method the message is enough.
  if (error === 'method_not_allowed' && !message.includes('read-only')) return undefined
  if (error === 'not_found' && message.startsWith('no route')) return HINTS.method_not_allowed
  return HINTS[error] ?? (status === 429 ? HINTS.too_many_requests : undefined)
}

/** The hint by what is missing: a role, which another token may have, or a wider scope. */
function hintForRole(message: string): string | undefined {
  // Where the caller has no role at all, the message says whom to ask.
  if (message.includes('gives you a role')) return undefined
  const [, role] = /needs the role (\w+)/.exec(message) ?? []
  if (role === 'editor' || role === 'admin')
    return `a token of that role is given by FLUX_API_WRITE_TOKEN or --write-token, or kept by ${PROGRAM} login; who you are now: ${WHOAMI}`
  if (role) return `log in as somebody else (${PROGRAM} login); who you are now: ${WHOAMI}`
  if (message.includes('your scope'))
    return `somebody with a wider scope has to do this; ${WHOAMI} shows yours`
  return HINTS.forbidden
}
