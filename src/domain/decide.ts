// The one place that says what a write changes: commands and a view in, changes or a problem out.
import { checkLimits } from './answer-limits.ts'
import { assign, patchValues, unassign } from './assignment-commands.ts'
import { checkWhole } from './check-whole.ts'
import type { Command, Outcome } from './command.ts'
import { create, patch, remove, replace, restore } from './document-commands.ts'
import { Draft } from './draft.ts'
import { notFound, type Result, succeed } from './problem.ts'
import type { DeliveredType, ResourceType, Types } from './resource-type.ts'
import type { Change, PolledView, View } from './view.ts'

export interface Decision {
  readonly changes: readonly Change[]
  readonly warnings: readonly string[]
  /** One per command, in their order. */
  readonly outcomes: readonly Outcome[]
  /** The view with the changes in it. */
  readonly after: View
}

/** Decides all commands or none. Later commands see what earlier ones did. */
export function decide(types: Types, view: PolledView, commands: readonly Command[]): Result<Decision> {
  const draft = new Draft(view, types.cluster)
  const outcomes: Outcome[] = []
  for (const command of commands) {
    const outcome = run(types, draft, command)
    if (!outcome.ok) return outcome
    outcomes.push(outcome.value)
  }
  const whole = checkWhole(types, draft)
  if (!whole.ok) return whole
  const limits = checkLimits(types, view, draft)
  if (!limits.ok) return limits
  return succeed({ changes: draft.changes(), warnings: whole.value, outcomes, after: draft })
}

function run(types: Types, draft: Draft, command: Command): Result<Outcome> {
  switch (command.op) {
    case 'create':
      return withType(types, command.type, (type) => create(draft, type, command))
    case 'replace':
      return withType(types, command.type, (type) => replace(draft, type, command))
    case 'patch':
      return withType(types, command.type, (type) => patch(draft, type, command))
    case 'delete':
      return withType(types, command.type, (type) => remove(types, draft, type, command))
    case 'restore':
      return withType(types, command.type, (type) => restore(draft, type, command))
    case 'assign':
      return withDelivered(types, command.type, (type) => assign(types, draft, type, command))
    case 'unassign':
      return withDelivered(types, command.type, (type) => unassign(types, draft, type, command))
    case 'patch_values':
      return patchValues(types, draft, command)
  }
}

function withType(types: Types, name: string, use: (type: ResourceType) => Result<Outcome>): Result<Outcome> {
  const type = types.get(name)
  return type ? use(type) : notFound('type', name)
}

function withDelivered(
  types: Types,
  name: string,
  use: (type: DeliveredType) => Result<Outcome>,
): Result<Outcome> {
  return withType(types, name, (type) =>
    type.delivery ? use(type as DeliveredType) : notFound('assignable type', name),
  )
}
