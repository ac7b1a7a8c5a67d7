// Decides writes one at a time, asks the guards, commits, and publishes; previews end before the commit.
import type { BrakePercents } from '../base/brake-percents.ts'
import { fail, type Result, succeed } from '../base/problem.ts'
import type { StatusReader } from '../domain/access/selector-subjects.ts'
import { summarise } from '../domain/commands/command.ts'
import { type Decision, decide } from '../domain/commands/decide.ts'
import { Comparison } from '../domain/delivery/compare-served.ts'
import { IMPACT_LIMIT, impactOf } from '../domain/delivery/impact.ts'
import { keptFields } from '../domain/delivery/own-values.ts'
import type { Applied } from '../domain/documents/state.ts'
import type { Change, View } from '../domain/documents/view.ts'
import { isWayBack } from '../domain/guards/frozen.ts'
import type { DecidedWrite, Objection } from '../domain/guards/guard.ts'
import type { Bypassing } from '../domain/rollouts/bypass.ts'
import type { StagedWrite } from '../domain/rollouts/stage-write.ts'
import { stagingOf, withoutRollout } from '../domain/rollouts/staging.ts'
import type { Types } from '../domain/types/resource-type.ts'
import { runTimeSliced } from '../runtime/run-time-sliced.ts'
import { inSpan } from '../runtime/spans.ts'
import type { IdempotencyRecord } from '../store/idempotency.ts'
import type { Store } from '../store/store.ts'
import { warnOfDefinitions } from './definition-warnings.ts'
import { expandCommands, isHistoryCommand } from './expand-commands.ts'
import type { Follower } from './follower.ts'
import { askGuards, refusalOf } from './guards.ts'
import type { Past } from './past.ts'
import { digestOfEdits, planOf } from './plan.ts'
import { stageRollout } from './rollouts/stage-rollout.ts'
import type { Idempotency, WriteOptions, WriteRequest, Written } from './write-options.ts'
import type { Turn } from './write-queue.ts'

export interface WriterParts {
  readonly store: Store
  readonly types: Types
  readonly now: () => Date
  readonly follower: Follower
  readonly past: Past
  readonly brake: BrakePercents
  /** Only URLs below these may be asked about rollouts. */
  readonly checkUrls: readonly string[]
  /** For the selectors of previews. */
  readonly status: StatusReader
}

interface Decided {
  /** What is committed. */
  readonly decision: Decision
  /** What was asked for: of a rollout, the whole change. */
  readonly whole: Decision
  readonly staged: StagedWrite | undefined
  readonly objections: readonly Objection[]
  readonly comparison: Comparison
}

/** Another process committed first: the write has to be decided again. */
const RACED = { kind: 'raced' } as const
type Attempt<T> = Result<T> | typeof RACED

function isRaced(attempt: Attempt<unknown>): attempt is typeof RACED {
  return 'kind' in attempt
}

/** Other processes can win every race for a while, but not for ever. */
const MAX_ATTEMPTS = 100
/** How long writes take the write lock after another process has won a race. */
const CONTESTED_MS = 1000

export class Writer {
  readonly #parts: WriterParts
  #contestedUntil = 0

  constructor(parts: WriterParts) {
    this.#parts = parts
  }

  /** Decides and commits, again whenever another process has committed first. */
  async write(request: WriteRequest, turn: Turn): Promise<Result<Written>> {
    for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
      const run = (): Promise<Attempt<Written>> => this.#tryWrite(request, turn)
      const isContested = performance.now() < this.#contestedUntil
      // Right after a lost race, waiting for the lock takes less time than losing the next one.
      const attempt = await (isContested ? this.#parts.store.withWriteLock(run) : run())
      if (!isRaced(attempt)) return attempt
      this.#contestedUntil = performance.now() + CONTESTED_MS
    }
    return fail({
      code: 'unavailable',
      reason: 'lost_races',
      message: 'other writers were faster every time: try again',
    })
  }

  /** What a write would do to the fleet as it stands now, whatever is written meanwhile. */
  async preview(request: WriteRequest): Promise<Result<Written>> {
    const { follower } = this.#parts
    await follower.checkHead()
    const view = follower.state.freeze()
    const { options } = request
    try {
      const decided = await inSpan(options.span, 'decide', () => this.#decide(request, view, options.signal))
      if (!decided.ok) return decided
      const { decision, objections, staged, whole } = decided.value
      const assessed = await inSpan(options.span, 'work out the impact', () =>
        assess(decided.value, options, options.signal),
      )
      // What a preview shows of a rollout is the whole change, not the documents that keep it.
      const shown = { ...decision, changes: whole.changes, ...(staged && { staged }) }
      const kept = await runTimeSliced(
        keptFields(this.#parts.types, whole.after, whole.changes),
        options.signal,
      )
      return succeed({ ...shown, objections, revision: view.revision, ...assessed, kept })
    } finally {
      view.release()
    }
  }

  async #tryWrite(request: WriteRequest, turn: Turn): Promise<Attempt<Written>> {
    const { follower } = this.#parts
    const { onlyAt, idempotency } = request.options
    await follower.checkHead()
    const repeated = idempotency && (await this.#findRepeated(idempotency))
    if (repeated) return repeated
    const { state } = follower
    const base = state.revision
    if (onlyAt !== undefined && base !== onlyAt) {
      const message = `the store is at revision ${base}, not ${onlyAt}`
      return fail({ code: 'conflict', reason: 'revision_mismatch', message })
    }
    const decided = await inSpan(request.options.span, 'decide', () =>
      this.#decide(request, state, turn.signal),
    )
    // Read skew: a decision made while a revision of another process was applied may be based on two revisions.
    if (state.revision !== base) return RACED
    if (!decided.ok) return decided
    return idempotency
      ? this.#finishOnce(request, idempotency, base, decided.value, turn)
      : this.#finish(request, base, decided.value, turn)
  }

  async #finish(
    request: WriteRequest,
    base: number,
    decided: Decided,
    turn: Turn,
  ): Promise<Attempt<Written>> {
    const { options } = request
    const { decision, objections, staged } = decided
    if (decision.changes.length === 0) {
      const assessed = await assess(decided, options, turn.signal)
      if (this.#parts.follower.state.revision !== base) return RACED
      turn.hold()
      return succeed({ ...decision, objections, revision: base, ...assessed })
    }
    turn.hold()
    // The impact is worked out while the store is writing.
    const done = await this.#commit(request, base, decided, undefined, () => assess(decided, options))
    if (isRaced(done) || !done.ok) return done
    return succeed({ ...decision, objections, revision: base + 1, ...done.value, ...(staged && { staged }) })
  }

  /** With an idempotency key the response is kept with the commit, so all of it is worked out before. */
  async #finishOnce(
    request: WriteRequest,
    idempotency: Idempotency,
    base: number,
    decided: Decided,
    turn: Turn,
  ): Promise<Attempt<Written>> {
    const { store, now, follower } = this.#parts
    const { decision, objections, staged } = decided
    const revision = base + Number(decision.changes.length > 0)
    const assessed = await assess(decided, request.options, turn.signal)
    const written: Written = { ...decision, objections, revision, ...assessed, ...(staged && { staged }) }
    if (follower.state.revision !== base) return RACED
    turn.hold()
    const { key, fingerprint } = idempotency
    const time = now().toISOString()
    const record: IdempotencyRecord = { key, fingerprint, time, answer: idempotency.response(written) }
    if (revision > base) return this.#commit(request, base, decided, record, async () => written)
    await store.idempotency.save(record)
    // Another process may have had the same request and committed first: its response is the one to return.
    const kept = await this.#findRepeated(idempotency)
    const isOurs = !kept || (kept.ok && kept.value.replayed === record.answer)
    return isOurs ? succeed({ ...written, response: record.answer }) : kept
  }

  async #findRepeated({ key, fingerprint }: Idempotency): Promise<Result<Written> | undefined> {
    const { store, now, follower } = this.#parts
    const known = await store.idempotency.find(key, now().toISOString())
    if (!known) return undefined
    // The caller must find the revision of the response when it reads from this process.
    await follower.checkHead()
    if (known.fingerprint !== fingerprint) {
      return fail({
        code: 'idempotency_mismatch',
        reason: 'idempotency_mismatch',
        message: 'this Idempotency-Key was used for another request: take a new key for every write',
      })
    }
    const { state } = follower
    const nothing = { changes: [], outcomes: [], warnings: [], objections: [] }
    return succeed({ ...nothing, revision: state.revision, after: state, replayed: known.answer })
  }

  /** Decides on top of a view, and refuses what a guard objects to. */
  async #decide(
    { commands, author, options }: WriteRequest,
    view: View,
    signal: AbortSignal | undefined,
  ): Promise<Result<Decided>> {
    const { types, past, brake, status, now, checkUrls } = this.#parts
    const { grant, plan, dryRun = false, confirmRemovals, impactLimit = IMPACT_LIMIT, ownRollout } = options
    const expanded = await expandCommands(types, past, view, commands, signal)
    if (!expanded.ok) return expanded
    const { rollout } = options
    const replacedId = rollout?.amends?.id ?? rollout?.supersedes
    const replaced = stagingOf(types, view).active.find((each) => each.rollout.id === replacedId)
    // What takes the place of a rollout is decided as if that one were not there.
    const seen = replaced ? withoutRollout(types, view, replaced.rollout.id) : view
    const bypassing = bypassOf({ commands, author, options }, now())
    const steps = decide(types, seen, expanded.value.commands, dryRun ? status : undefined, bypassing)
    const decided = await runTimeSliced(steps, signal)
    if (!decided.ok) return decided
    const decision = decided.value
    const comparison = new Comparison(types, seen, decision.after)
    const staged =
      rollout &&
      (await stageRollout(
        { commands, author, options, rollout },
        view,
        { decision, comparison },
        { now: now(), checkUrls, signal },
      ))
    if (staged && !staged.ok) return staged
    const write: DecidedWrite = {
      comparison,
      changes: decision.changes,
      served: staged ? new Comparison(types, view, staged.value.committed.after) : comparison,
      committed: staged ? staged.value.committed.changes : decision.changes,
      grant,
      plan,
      staged: staged?.value.staged,
      ownRollout,
      brake,
      isBypassed: bypassing !== undefined,
      // A new rollout opens nothing that is frozen; what an amended one serves already is another matter.
      isWayBack: staged ? rollout?.amends?.restart !== false : isWayBack(commands),
      now: now().getTime(),
    }
    const lifted = new Set<Objection['liftedBy'] | Objection['confirmation']>([
      ...(confirmRemovals ? ['removals' as const] : []),
      ...(options.confirmFinish ? ['finish' as const] : []),
      ...(options.bypass ? ['bypass' as const] : []),
    ])
    const { objections, refusals } = await askGuards(write, { dryRun, lifted, signal })
    const [first, ...others] = refusals
    if (first) return fail(await refusalOf([first, ...others], write, impactLimit, signal))
    const isUndo = commands.some(isHistoryCommand)
    const noticed = await warnOfDefinitions(types, past, view, { decision, actor: author.actor, isUndo })
    const warnings = [
      ...expanded.value.warnings,
      ...decision.warnings,
      ...noticed,
      ...(staged?.value.staged.warnings ?? []),
    ]
    const whole = { ...decision, warnings }
    const committed = staged ? { ...whole, ...staged.value.committed } : whole
    return succeed({ decision: committed, whole, objections, comparison, staged: staged?.value.staged })
  }

  /** Commits, runs `meanwhile` during the commit, and publishes. */
  async #commit<T>(
    { commands, author, options }: WriteRequest,
    base: number,
    { decision: { changes }, objections }: Decided,
    record: IdempotencyRecord | undefined,
    meanwhile: () => Promise<T>,
  ): Promise<Attempt<T>> {
    const { store, now, follower } = this.#parts
    const { operation = summarise(commands) } = options
    const bypassed = objections.filter(({ liftedBy }) => liftedBy === 'bypass').map(({ kind }) => kind)
    const entry = {
      time: record?.time ?? now().toISOString(),
      ...author,
      operation: bypassed.length > 0 ? `${operation}, past a ${bypassed.join(' and a ')}` : operation,
      changes,
      ...(record && { idempotency: record }),
    }
    const committed = inSpan(options.span, 'commit', () => store.commit(base, entry))
    const preparing = runTimeSliced(follower.state.prepare(base + 1, toApplied(changes)))
    const assessing = inSpan(options.span, 'work out the impact', meanwhile)
    const all = Promise.all([committed, preparing, assessing])
    follower.holdWhile(all)
    const [result, prepared, value] = await all
    if (!result.ok) return RACED
    follower.publishCommit(base, result.hash, prepared)
    return succeed(value)
  }
}

/** A rollout of its own takes nothing from others, and neither does what is done to one. */
function bypassOf({ commands, author, options }: WriteRequest, now: Date): Bypassing | undefined {
  if (!options.bypass || options.rollout || commands.some(({ op }) => op.endsWith('_rollout')))
    return undefined
  const { actor, message } = author
  return { by: actor, at: now.toISOString(), reason: message ?? '', digest: digestOfEdits }
}

/** Computes the impact and the plan of a decision, where the caller asked for them. */
async function assess(
  { whole: { changes }, comparison, staged }: Decided,
  { plan, impactLimit }: WriteOptions,
  signal?: AbortSignal,
): Promise<Pick<Written, 'impact' | 'plan'>> {
  if (impactLimit === undefined) return plan === undefined ? {} : { plan }
  return {
    impact: await runTimeSliced(impactOf(comparison, impactLimit), signal),
    plan: plan ?? staged?.rollout.plan ?? (await runTimeSliced(planOf(comparison.types, changes), signal)),
  }
}

function* toApplied(changes: readonly Change[]): Generator<Applied> {
  for (const { type, id, after } of changes) {
    const applied = after && { document: after.document, deleted: after.deleted, size: after.size }
    yield { type, id, after: applied }
  }
}
