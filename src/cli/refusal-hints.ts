// What to try after a refusal, by its code.

const PROGRAM = 'flux-resourceset-cli'

const HINTS: Record<string, string> = {
  unauthorized: `set FLUX_API_TOKEN (and FLUX_API_WRITE_TOKEN to change things), or use a context: ${PROGRAM} config set-context --help`,
  forbidden: 'this needs a write token: set FLUX_API_WRITE_TOKEN, or --write-token',
  method_not_allowed: 'this instance only answers polls: point FLUX_API_URL at one in crud mode',
  destructive_change: 'look at what goes with --dry-run; when it is meant, add --confirm removals',
  plan_changed: 'preview again with --dry-run, and use the new plan',
  precondition_failed: 'somebody changed it meanwhile: look again, then repeat',
  gone: `history before that was given up; ${PROGRAM} log shows what is kept`,
  payload_too_large: 'apply a part of it at a time (apply --split does)',
  internal_error: 'give the request id to whoever runs the service: its log has more',
  unavailable: 'nothing was changed; try again in a while',
  too_many_requests: 'wait a while, then try again',
}

export function hintFor(
  status: number,
  { error, message }: { error: string; message: string },
): string | undefined {
  if (error === 'conflict' && message.includes('is in use by')) {
    return 'unassign it there first, or delete with --cascade to remove every reference as well'
  }
  if (error === 'conflict' && message.includes('exists already'))
    return 'to change what is there, use update or apply'
  const [, isProtected] = /"([^"]+)" is protected/.exec(message) ?? []
  if (isProtected) return `${PROGRAM} cluster update ${isProtected} --set deletion_protection=false`
  if (message.includes('allow_empty')) {
    return `${PROGRAM} cluster list --selector '…' shows what a selector matches`
  }
  if (error === 'not_found' && message.startsWith('no route')) return HINTS.method_not_allowed
  return HINTS[error] ?? (status === 429 ? HINTS.too_many_requests : undefined)
}
