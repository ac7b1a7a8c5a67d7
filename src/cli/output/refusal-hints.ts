// What to try after a refusal, by its code and its reason.
import type { Detail, Reason } from '../../base/problem.ts'
import { PROGRAM } from '../cli-command.ts'
import type { Advice } from '../failure.ts'
import { waysThrough } from './ways-through.ts'

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

/** What a refusal is decided by; its text is for people. */
interface Refused {
  readonly error: string
  readonly reason?: Reason
  readonly message: string
}

/** By code and reason; `name` is what the message speaks of. */
function hintForReason(error: string, reason: Reason | undefined, name: string): string | undefined {
  switch (reason) {
    case 'in_use':
      return 'unassign it there first, or delete with --cascade to remove every reference as well'
    case 'token_exists':
      return `${PROGRAM} token rotate ${name} gives it a new secret`
    case 'token_expired':
      return `${PROGRAM} token revoke ${name} makes room for another one of that name`
    case 'too_many_secrets':
      return '--grace 0s, or of bootstrap --token-grace 0s'
    case 'already_exists':
      return error === 'conflict' ? 'to change what is there, use update or apply' : undefined
    case 'protected':
      return `${PROGRAM} cluster update ${name} --set deletion_protection=false`
    case 'no_match':
      return `${PROGRAM} cluster list --selector '…' shows what a selector matches`
    case 'no_route':
      return HINTS.method_not_allowed
    case 'needs_editor':
    case 'needs_admin':
      return `a token of the role ${reason === 'needs_admin' ? 'admin' : 'editor'} is given by FLUX_API_WRITE_TOKEN or --write-token, or kept by ${PROGRAM} login; who you are now: ${WHOAMI}`
    case 'needs_poller':
    case 'needs_mirror':
    case 'needs_viewer':
      return `log in as somebody else (${PROGRAM} login); who you are now: ${WHOAMI}`
    case 'out_of_scope':
    case 'invalid_scope':
    case 'held':
      return `somebody with a wider scope has to do this; ${WHOAMI} shows yours`
    case 'not_staged':
    case 'nothing_to_roll_out':
      return 'do it without --rollout'
    case 'rollout_unfinished':
      return '--confirm finish, when all of the clusters that are left are to get it at once'
    case 'too_many_rollouts':
    case 'rollout_ended':
    case 'rollout_state':
    case 'wave_ended':
      return `${PROGRAM} rollout list shows what there is, and how far it is`
    case 'own_approval':
      return 'somebody else has to approve it'
    default:
      return undefined
  }
}

/** Of these the message says all there is to say. */
const TOLD: readonly (Reason | undefined)[] = ['unknown_method', 'no_role']

/** What to try after a refusal: a hint, and commands where there are several ways on. */
export function adviceFor(
  status: number,
  refused: Refused & { readonly details?: readonly Detail[] },
): Advice {
  const steps = waysThrough(refused)
  return { hint: steps.length > 0 ? 'the ways through it:' : hintFor(status, refused), steps }
}

function hintFor(status: number, { error, reason, message }: Refused): string | undefined {
  if (TOLD.includes(reason)) return undefined
  const [, name = ''] = /"([^"]+)"/.exec(message) ?? []
  return (
    hintForReason(error, reason, name) ??
    HINTS[error] ??
    (status === 429 ? HINTS.too_many_requests : undefined)
  )
}
