// Makes a rollout of a decided write: what is committed then is the rollout alone.
import { type Result, succeed } from '../../base/problem.ts'
import type { WriteCommand } from '../../domain/commands/command.ts'
import { summarise } from '../../domain/commands/command.ts'
import type { Decision } from '../../domain/commands/decide.ts'
import type { Comparison } from '../../domain/delivery/compare-served.ts'
import { Draft } from '../../domain/documents/draft.ts'
import { advance } from '../../domain/rollouts/advance.ts'
import { asDocument, ROLLOUTS, type RolloutPlan } from '../../domain/rollouts/rollout.ts'
import { putStaged } from '../../domain/rollouts/rollout-commands.ts'
import {
  openFirst,
  type RolloutRequest,
  type StagedWrite,
  stageWrite,
} from '../../domain/rollouts/stage-write.ts'
import { surroundingsOf } from '../../domain/rollouts/wave-blocks.ts'
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

export async function stageRollout(
  { commands, author, options, rollout }: StagedRequest,
  { changes }: Decision,
  comparison: Comparison,
  now: Date,
  signal: AbortSignal | undefined,
): Promise<Result<Staged>> {
  const { types, before } = comparison
  const { grant, bypass = false, operation = summarise(commands) } = options
  const around = { now: now.toISOString(), revision: before.revision + 1 }
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
  const draft = new Draft(before, types.cluster)
  const put = putStaged(types, draft, staged.value, rollout, { by: author.actor, around })
  if (!put.ok) return put
  const opened = await open(put.value, draft, comparison, now, signal)
  draft.put(ROLLOUTS, asDocument(opened.rollout), { path: '' })
  return succeed({ staged: opened, committed: { changes: draft.changes(), after: draft } })
}

/** Opens the first wave, unless something keeps it from that: then it waits, and its starter is told. */
async function open(
  staged: StagedWrite,
  view: Draft,
  { types }: Comparison,
  now: Date,
  signal: AbortSignal | undefined,
): Promise<StagedWrite> {
  const { rollout, plan, warnings } = staged
  const moment = { types, view, rollout, members: plan.members, now }
  const around = await runTimeSliced(surroundingsOf(moment), signal)
  const opened = openFirst(rollout, { ...around, revision: view.revision })
  const next = opened.waves.every((wave) => wave.opened === 0) ? advance(opened, [], around) : undefined
  if (next?.kind !== 'wait') return { ...staged, rollout: opened }
  return { ...staged, rollout: opened, warnings: [...warnings, `it waits for ${next.waitingFor}`] }
}
