// The way back: what to ask for so that a revision is undone, or a part of the fleet is as it was.

import { fail, invalid, notFound, type Result, succeed } from '../base/problem.ts'
import type { Steps } from '../base/steps.ts'
import type { Selector } from '../domain/access/selector.ts'
import { asToken, TOKENS } from '../domain/access/token.ts'
import { warnOfUnknownKeys } from '../domain/access/unknown-keys.ts'
import type { Command, Undo } from '../domain/commands/command.ts'
import type { View } from '../domain/documents/view.ts'
import { named } from '../domain/guards/brake.ts'
import type { Document, Types } from '../domain/types/resource-type.ts'
import { inTurns } from '../runtime/run-time-sliced.ts'
import type { Engine, Work } from './engine.ts'
import type { At } from './past.ts'

/** Takes back what one revision did, and nothing that was done since. */
export function revert({ past }: Engine, revision: number): Work {
  return {
    operation: `revert revision ${revision}`,
    async load(view) {
      if (revision < 1 || revision > view.revision) return notFound('revision', String(revision))
      const known = await past.resolve({ revision: revision - 1 }, 'the revision')
      if (!known.ok) return known
      const commands: Undo[] = []
      const revoked: string[] = []
      for await (const { changes } of past.changesOf(revision)) {
        for (const { type, id, before, before_deleted, after, after_deleted } of changes) {
          if (type === TOKENS) {
            if (before === null || after !== null) return neverReturns(revision)
            revoked.push(asToken(JSON.parse(before)).name)
            continue
          }
          commands.push({
            op: 'undo',
            type,
            id,
            revision,
            path: `/${type}/${id}`,
            before: standing(before, before_deleted),
            after: standing(after, after_deleted),
          })
        }
      }
      const [first, ...others] = commands
      if (!first) return revoked.length > 0 ? neverReturns(revision) : succeed([])
      return succeed(revoked.length > 0 ? [{ ...first, warning: stayRevoked(revoked) }, ...others] : commands)
    },
  }
}

/** A secret that was taken out of use stays out of use. */
function neverReturns(revision: number): Result<never> {
  const message = `revision ${revision} changed a token, and tokens do not come back: revoke it, or create another one`
  return fail({ code: 'conflict', reason: 'token_not_restorable', message })
}

/** They went with a cluster, which comes back without them. */
function stayRevoked(names: readonly string[]): string {
  return `tokens that were revoked with their cluster do not come back: ${named(names.toSorted())}; create others`
}

function standing(json: string | null, deleted: boolean) {
  return json === null ? undefined : { document: JSON.parse(json) as Document, deleted }
}

/** Which documents to take back, and to when. */
export interface Rollback {
  readonly to: At
  /** Only clusters that match it now; of those that are gone, the ones that matched then. */
  readonly selector?: Selector
  readonly types?: readonly string[]
  readonly ids?: readonly string[]
  readonly allowEmpty: boolean
}

/** Makes documents what they were at an earlier time; those that did not exist then go without a trace. */
export function rollback({ past }: Engine, types: Types, request: Rollback): Work {
  const { to, selector } = request
  const ids = request.ids && new Set(request.ids)
  const clusters = types.cluster.type.name
  const chosen = new Set(request.types ?? (selector ? [clusters] : types.all.map(({ name }) => name)))
  const matches = (view: View, type: string, id: string, then: Document | undefined): boolean => {
    const document = view.get(type, id)?.document ?? then
    return !selector || (type === clusters && document !== undefined && selector.matches(document))
  }

  async function load(view: View): Promise<Result<readonly Command[]>> {
    const path = 'revision' in to ? '/to_revision' : '/to_time'
    const revision = await past.resolve(to, path)
    if (!revision.ok) return revision
    const commands: Command[] = []
    for await (const { type, id, was } of past.changedAfter(revision.value)) {
      if (!chosen.has(type) || !types.get(type) || (ids && !ids.has(id))) continue
      if (!matches(view, type, id, was?.document)) continue
      const then = was && { document: was.document, deleted: was.deleted }
      commands.push({ op: 'reset', type, id, to: then, path: `/${type}/${id}` })
    }
    const known = await inTurns(checkChoice(view, commands))
    return known.ok ? succeed(commands) : known
  }

  /** A misspelt id or selector must not look like a fleet that is as it was already. */
  function* checkChoice(view: View, commands: readonly Command[]): Steps<Result<void>> {
    if (request.allowEmpty) return succeed(undefined)
    const changed = new Set(commands.map((command) => ('id' in command ? command.id : '')))
    const isKnown = (id: string): boolean =>
      changed.has(id) || [...chosen].some((type) => view.get(type, id) || view.tombstone(type, id))
    const unknown = (request.ids ?? []).flatMap((id, i) =>
      isKnown(id) ? [] : [{ path: `/ids/${i}`, message: `names no document, now or then: "${id}"` }],
    )
    if (unknown.length > 0) return invalid(unknown)
    if (!selector || commands.length > 0) return succeed(undefined)
    for (const { document } of view.all(clusters)) {
      yield
      if (selector.matches(document)) return succeed(undefined)
    }
    const [misspelt] = yield* warnOfUnknownKeys(types.cluster, view, selector)
    const hint = misspelt ?? 'correct it, or set allow_empty to true'
    const reason = misspelt === undefined ? 'no_match' : 'unknown_label'
    return invalid([{ path: '/selector', message: `matches no cluster: ${hint}` }], reason)
  }

  function* notice(view: View): Steps<string[]> {
    return selector ? yield* warnOfUnknownKeys(types.cluster, view, selector) : []
  }

  return { operation: describe(request), load, notice }
}

function describe({ to, selector, types, ids }: Rollback): string {
  const when = 'revision' in to ? `revision ${to.revision}` : to.time
  const what = [
    ...(selector ? [`(${selector.text})`] : []),
    ...(types ? [`types ${types.join(', ')}`] : []),
    ...(ids ? [ids.length > 5 ? `${ids.length} ids` : `ids ${ids.join(', ')}`] : []),
  ]
  return `rollback${what.length > 0 ? ` of ${what.join(' and ')}` : ''} to ${when}`
}
