// What can be asked for. A write is a list of commands; `decide` turns it into changes.
import { isObject, type Json, type JsonObject, own } from '../../base/json.ts'
import type { Role } from '../access/grant.ts'
import type { Token } from '../access/token.ts'
import type { DocumentVersion } from '../documents/view.ts'
import type { Rollout } from '../rollouts/rollout.ts'
import type { Document } from '../types/resource-type.ts'

/** The state a caller expects the document to be in: If-Match and If-None-Match of HTTP. */
export type Expectation =
  | { readonly exists: true }
  | { readonly exists: false }
  | { readonly revisions: readonly number[] }

interface Base {
  /** JSON pointer to the command's payload in what was sent; the payload's problems are reported below it. */
  readonly path: string
  /** JSON pointer to the command itself, where what was sent holds several. */
  readonly operation?: string
  readonly expect?: Expectation
}

export interface Create extends Base {
  readonly op: 'create'
  readonly type: string
  readonly document: Json
}
/** Replaces a document; with `exists: false` expected, creates it. */
export interface Replace extends Base {
  readonly op: 'replace'
  readonly type: string
  readonly id: string
  readonly document: Json
}
export interface Patch extends Base {
  readonly op: 'patch'
  readonly type: string
  readonly id: string
  readonly patch: Json
  /** RFC 7396 or RFC 6902. */
  readonly format: 'merge' | 'json'
}
export interface Delete extends Base {
  readonly op: 'delete'
  readonly type: string
  readonly id: string
  /** Also removes every reference to it. */
  readonly cascade: boolean
  /** Leaves no tombstone. */
  readonly purge: boolean
}
export interface Restore extends Base {
  readonly op: 'restore'
  readonly type: string
  readonly id: string
}
/** Assigns a document to a cluster, or changes how it is assigned; keeps its place in the list. */
export interface Assign extends Base {
  readonly op: 'assign'
  readonly type: string
  readonly cluster: string
  readonly id: string
  readonly reference: Json
  /**
   * `replace` makes the reference exactly this. `merge` changes the named fields of one that is there, and refuses
   * where there is none; `ensure` assigns there.
   */
  readonly how: 'replace' | 'merge' | 'ensure'
}
export interface Unassign extends Base {
  readonly op: 'unassign'
  readonly type: string
  readonly cluster: string
  readonly id: string
}
/** Sets a cluster's values for one of its components; null removes a value. */
export interface PatchValues extends Base {
  readonly op: 'patch_values'
  readonly cluster: string
  readonly component: string
  readonly values: Json
  /** Keeps the values that are not named. */
  readonly merge: boolean
}

/** One command for each of several clusters. */
export interface ForClusters extends Base {
  readonly op: 'for_clusters'
  readonly targets: Targets
  readonly command: ClusterCommand
}
export type Targets =
  | { readonly ids: readonly string[] }
  | {
      /** A label selector, as text. */
      readonly selector: string
      /** Only those that are assigned this document; the others are left alone, with a warning. */
      readonly having?: { readonly type: string; readonly id: string }
      /** Matching no cluster is not a mistake. */
      readonly allowEmpty: boolean
    }

type Without<T, K extends string> = T extends unknown ? Omit<T, K> : never
type OfCluster = Patch | Delete | Restore
type ForCluster = Assign | Unassign | PatchValues
/** A command that says everything but the cluster. */
export type ClusterCommand = Without<OfCluster, 'id'> | Without<ForCluster, 'cluster'>

/** The command for one cluster. */
export function onCluster(command: ClusterCommand, cluster: string): OfCluster | ForCluster {
  switch (command.op) {
    case 'patch':
    case 'delete':
    case 'restore':
      return { ...command, id: cluster }
    default:
      return { ...command, cluster }
  }
}

/** Restores an earlier version of a document. */
export interface Reset extends Base {
  readonly op: 'reset'
  readonly type: string
  readonly id: string
  readonly to: DocumentVersion | undefined
}
/** Undoes what a revision changed in a document, and nothing that was changed since. */
export interface Undo extends Base {
  readonly op: 'undo'
  readonly type: string
  readonly id: string
  readonly revision: number
  readonly before: DocumentVersion | undefined
  readonly after: DocumentVersion | undefined
}

/** Undoes what one revision did, and nothing that was done since. */
export interface Revert extends Base {
  readonly op: 'revert'
  readonly revision: number
}
/** A point in the log: a revision, or the newest one at a time. */
export type At = { readonly revision: number } | { readonly time: string }
/** Restores documents to an earlier time; those that did not exist then are purged. */
export interface Rollback extends Base {
  readonly op: 'rollback'
  readonly to: At
  /** Only clusters that match it now, and clusters gone since that matched it then. */
  readonly selector?: string
  readonly types?: readonly string[]
  readonly ids?: readonly string[]
  /** Choosing no document is not a mistake. */
  readonly allowEmpty: boolean
}

export interface CreateToken extends Base {
  readonly op: 'create_token'
  readonly token: Token
}
/** A new secret at once; earlier ones are valid until the end of the grace at most. */
export interface RotateToken extends Base {
  readonly op: 'rotate_token'
  readonly id: string
  readonly name: string
  readonly secret: Token['secrets'][number]
  /** RFC 3339, UTC. */
  readonly graceEnd: string
}
/** The token of a cluster: created, or given the new secret where it is there already. */
export interface IssueToken extends Base {
  readonly op: 'issue_token'
  readonly token: Token
  /** As for a rotation. */
  readonly graceEnd: string
}
export interface RevokeToken extends Base {
  readonly op: 'revoke_token'
  readonly id: string
  readonly name: string
}

/** Writes a rollout as it was worked out: its start, its amendment, or a step of the controller. */
export interface PutRollout extends Base {
  readonly op: 'put_rollout'
  readonly rollout: Rollout
  /** The revision that it was worked out for: what it opens is opened by the one that it becomes. */
  readonly assumed: number
}
export type RolloutAction =
  | { readonly kind: 'pause' | 'abort'; readonly remark?: string }
  | { readonly kind: 'resume' | 'retry' }
  | {
      readonly kind: 'approve'
      readonly wave?: string
      readonly when?: 'before' | 'after'
      readonly remark?: string
      /** The plan that is approved; the present one by default. */
      readonly plan?: string
      /** Of whoever approves. */
      readonly role?: Role
    }
  | {
      readonly kind: 'check'
      readonly wave: string
      readonly name: string
      readonly ok: boolean
      readonly remark?: string
      /** The plan that the answer is about; the present one by default. */
      readonly plan?: string
    }
  | { readonly kind: 'skip'; readonly wave: string }
  | { readonly kind: 'skip'; readonly clusters: readonly string[] }
/** What a person does to a rollout. */
export interface ActOnRollout extends Base {
  readonly op: 'act_on_rollout'
  readonly id: string
  readonly action: RolloutAction
  readonly by: string
  /** RFC 3339, UTC. */
  readonly at: string
}
/** Makes the edits of a rollout part of the documents. */
export interface FinishRollout extends Base {
  readonly op: 'finish_rollout'
  readonly id: string
  readonly by: string
  readonly at: string
  readonly remark?: string
  /** Members of opened waves that are absent, and those of them that were never served the change. */
  readonly absent: readonly string[]
  readonly stragglers: readonly string[]
}
/** Keeps a cluster at what it is served now. */
export interface HoldCluster extends Base {
  readonly op: 'hold_cluster'
  readonly cluster: string
  readonly until?: string
  readonly reason: string
  readonly by: string
  readonly at: string
}
export interface ReleaseCluster extends Base {
  readonly op: 'release_cluster'
  readonly cluster: string
}

/** A command that `decide` runs without reading the log. */
export type Command =
  | Create
  | Replace
  | Patch
  | Delete
  | Restore
  | Assign
  | Unassign
  | PatchValues
  | ForClusters
  | Reset
  | Undo
  | CreateToken
  | RotateToken
  | IssueToken
  | RevokeToken
  | PutRollout
  | ActOnRollout
  | FinishRollout
  | HoldCluster
  | ReleaseCluster
/** A command that reads the log: the engine replaces it by undos and resets. */
export type HistoryCommand = Revert | Rollback
/** What a write consists of. Plain data: it can be stored, sent, and run later. */
export type WriteCommand = Command | HistoryCommand

/** The document that a command is about. */
export interface Outcome {
  readonly type: string
  readonly id: string
  readonly created: boolean
  /** What a new document replaces: a tombstone, or null where there was none. */
  readonly former?: Document | null
  /** What a deleting command removed. */
  readonly removed?: JsonObject
  /** Warnings for the caller. */
  readonly warnings?: readonly string[]
}

const MAX_SUMMARISED = 5

/** What was asked for, in a line for the audit. */
export function summarise(commands: readonly WriteCommand[]): string {
  const lines = commands.slice(0, MAX_SUMMARISED).map(summariseOne)
  const more = commands.length - lines.length
  return [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('; ')
}

function summariseOne(command: WriteCommand): string {
  switch (command.op) {
    case 'create': {
      const id = isObject(command.document) ? own(command.document, 'id') : undefined
      return `create ${command.type}/${id}`
    }
    case 'create_token':
      return `create ${command.token.role} token ${command.token.name}`
    case 'rotate_token':
      return `rotate token ${command.name}`
    case 'issue_token':
      return `issue token ${command.token.name}`
    case 'revoke_token':
      return `revoke token ${command.name}`
    case 'put_rollout':
      return `advance rollout ${command.rollout.id}`
    case 'act_on_rollout':
      return `${command.action.kind} rollout ${command.id}`
    case 'finish_rollout':
      return `finish rollout ${command.id}`
    case 'hold_cluster':
      return `hold cluster ${command.cluster}`
    case 'release_cluster':
      return `release cluster ${command.cluster}`
    case 'for_clusters':
      return summariseOn(command.command, describeTargets(command.targets))
    case 'revert':
      return `revert revision ${command.revision}`
    case 'rollback':
      return summariseRollback(command)
    case 'replace':
    case 'reset':
    case 'undo':
      return `${command.op} ${command.type}/${command.id}`
    default:
      return summariseOn(command, 'cluster' in command ? command.cluster : command.id)
  }
}

/** `target` is the id of a cluster or document, or says which clusters are meant. */
function summariseOn(command: ClusterCommand, target: string): string {
  switch (command.op) {
    case 'assign':
      return `assign ${command.type}/${command.id} to ${target}`
    case 'unassign':
      return `unassign ${command.type}/${command.id} from ${target}`
    case 'patch_values':
      return `patch values of ${command.component} on ${target}`
    case 'delete': {
      const how = command.purge ? ' and its tombstone' : command.cascade ? ' and all references to it' : ''
      return `delete ${command.type}/${target}${how}`
    }
    default:
      return `${command.op} ${command.type}/${target}`
  }
}

function summariseRollback({ to, selector, types, ids }: Rollback): string {
  const when = 'revision' in to ? `revision ${to.revision}` : to.time
  const what = [
    ...(selector === undefined ? [] : [`(${selector})`]),
    ...(types ? [`types ${types.join(', ')}`] : []),
    ...(ids ? [ids.length > MAX_SUMMARISED ? `${ids.length} ids` : `ids ${ids.join(', ')}`] : []),
  ]
  return `rollback${what.length > 0 ? ` of ${what.join(' and ')}` : ''} to ${when}`
}

function describeTargets(targets: Targets): string {
  if ('selector' in targets) return `(${targets.selector})`
  const [first = '', ...others] = targets.ids
  return others.length === 0 ? first : `(${targets.ids.length} clusters)`
}
