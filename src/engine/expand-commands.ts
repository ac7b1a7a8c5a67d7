// Expands reverts and rollbacks: looks them up in the log and returns the undos and resets to apply to a view.

import { getOrSet } from '../base/get-or-set.ts'
import { fail, invalid, notFound, type Result, succeed } from '../base/problem.ts'
import type { Steps } from '../base/steps.ts'
import { parseSelector, type Selector } from '../domain/access/selector.ts'
import { warnOfUnknownKeys } from '../domain/access/unknown-keys.ts'
import type {
  Command,
  HistoryCommand,
  Reset,
  Revert,
  Rollback,
  Undo,
  WriteCommand,
} from '../domain/commands/command.ts'
import { findVersion } from '../domain/documents/find-document.ts'
import { shareWith } from '../domain/documents/shared-parts.ts'
import type { View } from '../domain/documents/view.ts'
import type { Document, Irreversible, Types } from '../domain/types/resource-type.ts'
import { nextSlice, runTimeSliced } from '../runtime/run-time-sliced.ts'
import type { Past } from './past.ts'

export interface Expanded {
  readonly commands: readonly Command[]
  /** Warnings for the caller about the expanded commands. */
  readonly warnings: readonly string[]
}

/**
 * Replaces every command that depends on history by commands read from the log; other commands stay as they are. Throws the
 * signal's reason when it is aborted before the log is read.
 */
export async function expandCommands(
  types: Types,
  past: Past,
  view: View,
  commands: readonly WriteCommand[],
  signal: AbortSignal | undefined,
): Promise<Result<Expanded>> {
  if (!commands.some(isHistoryCommand)) return succeed({ commands: commands as Command[], warnings: [] })
  const expanded: Command[] = []
  const warnings: string[] = []
  for (const command of commands) {
    if (!isHistoryCommand(command)) {
      expanded.push(command)
      continue
    }
    await nextSlice()
    const found = await (command.op === 'revert'
      ? expandRevert(types, past, view, command, signal)
      : expandRollback(types, past, view, command, signal))
    if (!found.ok) return found
    for (const each of found.value.commands) expanded.push(each)
    warnings.push(...found.value.warnings)
  }
  return succeed({ commands: expanded, warnings })
}

export function isHistoryCommand(command: WriteCommand): command is HistoryCommand {
  return command.op === 'revert' || command.op === 'rollback'
}

async function expandRevert(
  types: Types,
  past: Past,
  view: View,
  { revision }: Revert,
  signal: AbortSignal | undefined,
): Promise<Result<Expanded>> {
  if (revision < 1 || revision > view.revision) return notFound('revision', String(revision))
  const known = await past.resolve({ revision: revision - 1 }, 'the revision')
  if (!known.ok) return known
  const commands: Undo[] = []
  const staying = new Map<Irreversible, Document[]>()
  for await (const { changes } of past.changesOf(revision)) {
    signal?.throwIfAborted()
    for (const { type, id, ...change } of changes) {
      const current = findVersion(view, type, id)?.document
      const before = standing(change.before, change.before_deleted, current)
      const after = standing(change.after, change.after_deleted, current)
      const irreversible = types.system.get(type)?.irreversible
      if (irreversible === 'ignored') continue
      if (!irreversible) {
        commands.push({ op: 'undo', type, id, revision, path: `/${type}/${id}`, before, after })
        continue
      }
      if (!irreversible.mayStay(before?.document, after?.document)) return refuse(irreversible, revision)
      getOrSet(staying, irreversible, () => []).push(...(before ? [before.document] : []))
    }
  }
  const [first] = staying.keys()
  // The revision holds only irreversible changes, so there is nothing to revert.
  if (commands.length === 0 && first) return refuse(first, revision)
  return succeed({ commands, warnings: [...staying].map(([each, documents]) => each.warning(documents)) })
}

function refuse(irreversible: Irreversible, revision: number): Result<never> {
  return fail({
    code: 'conflict',
    reason: irreversible.reason,
    message: irreversible.refusal(revision),
  })
}

function standing(json: string | null, deleted: boolean, current: Document | undefined) {
  return json === null ? undefined : { document: shareWith(current, JSON.parse(json) as Document), deleted }
}

async function expandRollback(
  types: Types,
  past: Past,
  view: View,
  command: Rollback,
  signal: AbortSignal | undefined,
): Promise<Result<Expanded>> {
  const { to, ids } = command
  const parsed = command.selector === undefined ? undefined : parseSelector(types, command.selector)
  if (parsed && !parsed.ok) return invalid([{ path: '/selector', message: parsed.message }])
  const selector = parsed?.selector
  const revision = await past.resolve(to, 'revision' in to ? '/to_revision' : '/to_time')
  if (!revision.ok) return revision
  const clusters = types.cluster.type.name
  const chosen = new Set(command.types ?? (selector ? [clusters] : rolledBack(types)))
  const wanted = ids && new Set(ids)
  const matches = (type: string, id: string, then: Document | undefined): boolean => {
    const document = view.get(type, id)?.document ?? then
    return !selector || (type === clusters && document !== undefined && selector.matches(document))
  }
  const commands: Reset[] = []
  for await (const { type, id, was } of past.changedAfter(revision.value)) {
    signal?.throwIfAborted()
    if (!chosen.has(type) || !canRollBack(types, type) || (wanted && !wanted.has(id))) continue
    if (!matches(type, id, was?.document)) continue
    const current = findVersion(view, type, id)?.document
    const then = was && { document: shareWith(current, was.document), deleted: was.deleted }
    commands.push({ op: 'reset', type, id, to: then, path: `/${type}/${id}` })
  }
  const known = command.allowEmpty
    ? succeed(undefined)
    : await runTimeSliced(
        checkChoice(types, view, { ids: ids ?? [], types: chosen, selector }, commands),
        signal,
      )
  if (!known.ok) return known
  const warnings = selector
    ? await runTimeSliced(warnOfUnknownKeys(types.cluster, view, selector), signal)
    : []
  return succeed({ commands, warnings })
}

/** What a rollback is about that names no types. */
function rolledBack({ all }: Types): string[] {
  return all.filter(({ isFleetWide }) => !isFleetWide).map(({ name }) => name)
}

function canRollBack(types: Types, type: string): boolean {
  return types.get(type) !== undefined && types.system.get(type)?.irreversible === undefined
}

interface Choice {
  readonly ids: readonly string[]
  readonly types: ReadonlySet<string>
  readonly selector: Selector | undefined
}

/** Refuses ids and selectors that match nothing: a misspelt one must not look like a rollback with no changes to make. */
function* checkChoice(
  types: Types,
  view: View,
  { ids, types: chosen, selector }: Choice,
  commands: readonly Reset[],
): Steps<Result<void>> {
  const changed = new Set(commands.map(({ id }) => id))
  const isKnown = (id: string): boolean =>
    changed.has(id) || [...chosen].some((type) => view.get(type, id) || view.tombstone(type, id))
  const unknown = ids.flatMap((id, i) =>
    isKnown(id) ? [] : [{ path: `/ids/${i}`, message: `names no document, now or then: "${id}"` }],
  )
  if (unknown.length > 0) return invalid(unknown)
  if (!selector || commands.length > 0) return succeed(undefined)
  for (const { document } of view.all(types.cluster.type.name)) {
    yield
    if (selector.matches(document)) return succeed(undefined)
  }
  const [misspelt] = yield* warnOfUnknownKeys(types.cluster, view, selector)
  const hint = misspelt ?? 'correct it, or set allow_empty to true'
  const reason = misspelt === undefined ? 'no_match' : 'unknown_label'
  return invalid([{ path: '/selector', message: `matches no cluster: ${hint}` }], reason)
}
