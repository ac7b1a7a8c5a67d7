// The response to a write: the document, a summary of a fleet write, or a preview.
import type { FastifyReply } from 'fastify'
import { CHANGES_IN_PREVIEW } from '../../api/limits.ts'
import type { FleetWritten, Preview, Requirement } from '../../api/wire-types.ts'
import type { Impact } from '../../domain/delivery/impact.ts'
import { beforeAndAfter, describeChange } from '../../domain/documents/describe-change.ts'
import type { Entry } from '../../domain/documents/view.ts'
import { CONFIRMATIONS, type Objection } from '../../domain/guards/guard.ts'
import type { StagedWrite } from '../../domain/rollouts/stage-write.ts'
import type { Types } from '../../domain/types/resource-type.ts'
import type { Written } from '../../engine/write-options.ts'
import { storedRollout } from '../rollouts/describe-rollout.ts'
import type { RolloutPreview } from '../rollouts/preview-rollout.ts'
import { REVISION_HEADER } from './revision-header.ts'
import { warningHeaders } from './warning-header.ts'

/** A response as a value, so that it can be stored under an idempotency key and replayed. */
export interface WriteAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body: unknown
  /** Added to the body of the first response only, and never stored: the secret of a token. */
  readonly shownOnce?: object
}

export function sendWriteAnswer(
  reply: FastifyReply,
  { status = 200, headers = {}, body, shownOnce }: WriteAnswer,
): FastifyReply {
  return reply
    .code(status)
    .headers(headers)
    .send(shownOnce ? { ...(body as object), ...shownOnce } : body)
}

export function withWriteHeaders(answer: WriteAnswer, { revision, changes, warnings }: Written): WriteAnswer {
  const headers = {
    ...answer.headers,
    [REVISION_HEADER]: String(revision),
    'X-Change-Count': String(changes.length),
    ...(warnings.length > 0 && { Warning: warningHeaders(warnings) }),
  }
  return { ...answer, headers }
}

/** The response to a write that started or amended a rollout. */
export function rolloutAnswer({ revision, warnings }: Written, { rollout }: StagedWrite): WriteAnswer {
  return {
    status: 202,
    headers: { Location: `/rollouts/${rollout.id}` },
    body: { rollout: storedRollout(rollout), revision, warnings },
  }
}

export function previewAnswer(types: Types, written: Written, staged?: RolloutPreview): WriteAnswer {
  const { warnings: ofRollout = [], ...rollout }: Partial<RolloutPreview> = staged ?? {}
  const { revision, changes, impact, warnings, plan, objections, kept = [] } = written
  const described = changes
    .slice(0, CHANGES_IN_PREVIEW)
    .map((change) => describeChange(types, beforeAndAfter(change)))
  const confirmable = objections.filter(({ confirmation }) => confirmation !== undefined)
  const others = objections.filter(({ confirmation }) => confirmation === undefined)
  const obstacle = ({ liftedBy }: Objection): string =>
    liftedBy === 'bypass' ? 'needs bypass=true' : 'you may not do this'
  const body: Preview = {
    dry_run: true,
    base_revision: revision,
    change_count: changes.length,
    changes: described,
    impact: impact as Impact,
    warnings: [
      ...confirmable.map(({ problem, confirmation }) => `needs confirm=${confirmation}: ${problem.message}`),
      ...others.map((objection) => `${obstacle(objection)}: ${objection.problem.message}`),
      ...warnings,
      ...ofRollout,
    ],
    requires: objections.map(requirementOf),
    requires_confirmation: CONFIRMATIONS.filter((each) =>
      confirmable.some(({ confirmation }) => confirmation === each),
    ),
    plan: plan as string,
    ...(kept.length > 0 && { kept_overrides: kept }),
    ...rollout,
  }
  return { body }
}

function requirementOf({ kind, problem, liftedBy }: Objection): Requirement {
  const { reason, message, details, nextOpen } = problem
  return {
    kind,
    ...(reason && { reason }),
    message,
    ...(details?.length && { details }),
    ...(liftedBy && { lifted_by: liftedBy }),
    ...(nextOpen !== undefined && { next_open: nextOpen }),
  }
}

/** The response to a fleet write, whose impact is always computed. */
export function fleetAnswer({ revision, changes, impact, warnings, plan }: Written): WriteAnswer {
  const body: FleetWritten = {
    revision,
    changes: changes.length,
    impact: impact as Impact,
    warnings,
    plan: plan as string,
  }
  return { body }
}

export function entryAnswer(entry: Entry, more: Pick<WriteAnswer, 'status' | 'headers'> = {}): WriteAnswer {
  return { ...more, headers: { ...more.headers, ETag: etagOf(entry) }, body: entry.document }
}

export function etagOf({ revision }: Entry): string {
  return `"${revision}"`
}
