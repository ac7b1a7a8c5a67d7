// Makes a rollout of a decided write: what is committed then is the rollout alone.
import { type Detail, invalid, type Result, succeed } from '../../base/problem.ts'
import { isBelowOneOf } from '../../base/urls.ts'
import type { WriteCommand } from '../../domain/commands/command.ts'
import { summarise } from '../../domain/commands/command.ts'
import type { Decision } from '../../domain/commands/decide.ts'
import type { Comparison } from '../../domain/delivery/compare-served.ts'
import { Draft } from '../../domain/documents/draft.ts'
import type { View } from '../../domain/documents/view.ts'
import { advance } from '../../domain/rollouts/advance.ts'
import { asDocument, ROLLOUTS, type RolloutPlan } from '../../domain/rollouts/rollout.ts'
import { putStaged } from '../../domain/rollouts/rollout-commands.ts'
import {
  openFirst,
  type RolloutRequest,
  type StagedWrite,
  stageWrite,
} from '../../domain/rollouts/stage-write.ts'
import { stagingOf } from '../../domain/rollouts/staging.ts'
import { surroundingsOf } from '../../domain/rollouts/wave-blocks.ts'
import type { Types } from '../../domain/types/resource-type.ts'
import { runTimeSliced } from '../../runtime/run-time-sliced.ts'
import { planOf } from '../plan.ts'
import type { Author, RolloutOptions, WriteOptions } from '../write-options.ts'

export interface Staged {
  readonly staged: StagedWrite
  readonly committed: Pick<Decision, 'changes' | 'after'>
}

interface StagedRequest {
  readonly commands: readonly WriteCommand[]
  readonly author: Author
  readonly options: WriteOptions
  readonly rollout: RolloutOptions
}

interface StagingParts {
  readonly now: Date
  /** Only URLs below these may be asked. */
  readonly checkUrls: readonly string[]
  readonly signal: AbortSignal | undefined
}

interface Decided {
  readonly decision: Decision
  readonly comparison: Comparison
}

export async function stageRollout(
  { commands, author, options, rollout }: StagedRequest,
  view: View,
  { decision: { changes }, comparison }: Decided,
  { now, checkUrls, signal }: StagingParts,
): Promise<Result<Staged>> {
  const wrong = refuseChecks(rollout, checkUrls)
  if (wrong.length > 0) return invalid(wrong)
  const { types } = comparison
  const { grant, bypass = false, operation = summarise(commands) } = options
  const around = { now: now.toISOString(), revision: view.revision + 1, present: view }
  const request: RolloutRequest = {
    ...rollout,
    // No other revision has this number, so that no other rollout has this id.
    id: `r${around.revision}`,
    message: author.message,
    startedBy: author.actor,
    grant,
    bypass,
    operation,
  }
  const digest = (members: RolloutPlan['members']) => planOf(types, changes, { spec: rollout.spec, members })
  const staged = await runTimeSliced(stageWrite(comparison, changes, request, around, digest), signal)
  if (!staged.ok) return staged
  const draft = new Draft(view, types.cluster)
  const put = putStaged(types, draft, staged.value, rollout, { by: author.actor, around })
  if (!put.ok) return put
  const opened = await open(put.value, draft, types, now, signal)
  draft.put(ROLLOUTS, asDocument(opened.rollout), { path: '' })
  return succeed({ staged: opened, committed: { changes: draft.changes(), after: draft } })
}

/** The service asks only where it was told that it may: whoever starts rollouts cannot make it call anything else. */
function refuseChecks({ spec, path, strategy }: RolloutOptions, allowed: readonly string[]): Detail[] {
  return spec.waves.flatMap(({ name, gates }, i) =>
    (gates?.checks ?? []).flatMap(({ name: check, url }, j) => {
      if (url === undefined || isBelowOneOf(url, allowed)) return []
      const why =
        allowed.length === 0
          ? 'this service may ask no system outside: ROLLOUT_CHECK_URLS is not set'
          : 'it is not below any of ROLLOUT_CHECK_URLS'
      const message = `has check ${check} of wave ${name} at a URL that is not allowed: ${why}`
      const isInline = strategy === undefined && path !== undefined
      return [{ path: isInline ? `${path}/${i}/gates/checks/${j}/url` : (path ?? ''), message }]
    }),
  )
}

/** Opens the first wave, unless something keeps it from that: then it waits, and its starter is told. */
async function open(
  staged: StagedWrite,
  draft: Draft,
  types: Types,
  now: Date,
  signal: AbortSignal | undefined,
): Promise<StagedWrite> {
  const { rollout, warnings } = staged
  const active = stagingOf(types, draft).active.find((each) => each.rollout.id === rollout.id)
  if (!active) return staged
  const around = await runTimeSliced(surroundingsOf({ types, view: draft, active, now }), signal)
  const opened = openFirst(rollout, { ...around, revision: draft.revision })
  const next = opened.waves.every((wave) => wave.opened === 0) ? advance(opened, [], around) : undefined
  if (next?.kind !== 'wait') return { ...staged, rollout: opened }
  return { ...staged, rollout: opened, warnings: [...warnings, `it waits for ${next.waitingFor}`] }
}
